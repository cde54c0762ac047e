// Diagnostics: every op in its canonical form, and the same by way of the generic form.
// RUN: cute-opt %s --verify-roundtrip | filecheck %s
// RUN: cute-opt %s --mlir-print-op-generic | cute-opt | filecheck %s

// CHECK-LABEL: @print(
func.func @print(%l: !cute.layout<"(?,6):(6,1)">) {
  // CHECK: cute.print(%{{.*}}) : !cute.layout<"(?,6):(6,1)">
  cute.print(%l) : !cute.layout<"(?,6):(6,1)">
  return
}

// CHECK-LABEL: @print_2(
func.func @print_2(%l: !cute.tile<"[_;4:?]">) {
  // CHECK: cute.print(%{{.*}}) : !cute.tile<"[_;4:?]"> {note}
  cute.print(%l) : !cute.tile<"[_;4:?]"> {note}
  return
}
