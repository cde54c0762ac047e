// Every op that an expansion makes stands where the op stood.
// RUN: cute-opt %s --cute-expand-ops --mlir-print-debuginfo | filecheck %s

// CHECK-LABEL: @f(
// CHECK:       cute.get_scalars{{.*}} loc("kernel.py":7:3)
// CHECK-NEXT:  arith.constant {{.*}} loc("kernel.py":7:3)
// CHECK-NEXT:  arith.muli {{.*}} loc("kernel.py":7:3)
// CHECK-NEXT:  cute.make_int_tuple{{.*}} loc("kernel.py":7:3)
func.func @f(%c: !cute.coord<"?">, %l: !cute.layout<"8:16">) -> !cute.int_tuple<"?"> {
  %r = cute.layout_eval(%c, %l) : (!cute.coord<"?">, !cute.layout<"8:16">) -> !cute.int_tuple<"?"> loc("kernel.py":7:3)
  return %r : !cute.int_tuple<"?">
}
