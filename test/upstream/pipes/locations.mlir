// Locations survive the exchange with upstream, which prints them as aliases that are defined after their use.

// REQUIRES: mlir-opt

// RUN: mlir-opt %s --allow-unregistered-dialect --mlir-print-op-generic --mlir-print-debuginfo > %t.mlir
// RUN: cute-opt %t.mlir --cute-expand-ops --mlir-print-debuginfo | FileCheck %s
// RUN: not cute-opt %t.mlir --cute-to-base 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: cute-opt %t.mlir --mlir-print-op-generic --mlir-print-debuginfo \
// RUN:   | mlir-opt --allow-unregistered-dialect --mlir-print-debuginfo --mlir-print-local-scope --mlir-print-op-generic \
// RUN:   | FileCheck %s --check-prefix=BACK

// CHECK: arith.muli {{.*}} loc(callsite("k.cute":3:4 at "inlined"))
// ERROR: k.cute:3:4: error: 'cute.size' cannot be lowered here
// BACK:  "cute.size"({{.*}} loc(callsite("k.cute":3:4 at "inlined"))
func.func @f(%s: !cute.shape<"(?,6)">) {
  %z = "cute.size"(%s) : (!cute.shape<"(?,6)">) -> !cute.int_tuple<"?"> loc(callsite("k.cute":3:4 at "inlined"))
  "cute.print"(%z) : (!cute.int_tuple<"?">) -> ()
  return
}
