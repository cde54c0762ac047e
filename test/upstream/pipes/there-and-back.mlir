// cute-opt runs between two runs of upstream's mlir-opt, for which cute ops belong to an unregistered dialect.

// REQUIRES: mlir-opt, mlir-runner

// RUN: mlir-opt %s --allow-unregistered-dialect --canonicalize --mlir-print-op-generic \
// RUN:   | cute-opt --pipeline=base \
// RUN:   | mlir-opt --canonicalize --convert-scf-to-cf --convert-to-llvm --reconcile-unrealized-casts > %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: mlir-runner %t.mlir -e main -entry-point-result=void | FileCheck %s --check-prefix=OUTPUT

// cute-opt also parses the default output of mlir-opt, which prints unregistered ops in generic form.
// RUN: mlir-opt %s --allow-unregistered-dialect --canonicalize | cute-opt - --pipeline=host > %t.host.mlir
// RUN: mlir-runner %t.host.mlir -e main -entry-point-result=void | FileCheck %s --check-prefix=OUTPUT

// Upstream passes run between two of our passes. They move and merge known ops, and do not change cute ops.
// RUN: cute-opt %s --cute-fold-static --cute-expand-ops --mlir-print-op-generic \
// RUN:   | mlir-opt --allow-unregistered-dialect --cse --loop-invariant-code-motion --mlir-print-op-generic \
// RUN:   | cute-opt --cute-to-base --base-prepare --one-shot-convert-to-llvm \
// RUN:   | mlir-runner -e main -entry-point-result=void | FileCheck %s --check-prefix=OUTPUT

// Our generic form passes through upstream without a difference.
// RUN: cute-opt %s > %t.ours
// RUN: cute-opt %s --mlir-print-op-generic | mlir-opt --allow-unregistered-dialect --mlir-print-op-generic \
// RUN:   | cute-opt > %t.back
// RUN: diff %t.ours %t.back

// Upstream folds 3 + 4 before our passes run, and the size 7 * 6 after they have lowered it to arithmetic.
// CHECK-LABEL: llvm.func @main()
// CHECK-DAG:     %[[N:.*]] = llvm.mlir.constant(7 : i32) : i32
// CHECK-DAG:     %[[S:.*]] = llvm.mlir.constant(42 : i32) : i32
// CHECK:         llvm.call @printf(%{{.*}}, %[[N]]) vararg
// CHECK:         llvm.call @printf(%{{.*}}, %[[S]]) vararg

// OUTPUT:      (7,6):(6,1)
// OUTPUT-NEXT: (7,6):(6,1)
// OUTPUT-NEXT: 42
// OUTPUT-NOT:  {{.}}
func.func @main() {
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  %n = arith.addi %c3, %c4 : i32
  %s = "cute.make_shape"(%n) : (i32) -> !cute.shape<"(?,6)">
  %t = "cute.static"() : () -> !cute.int_tuple<"(1,0)">
  %l = "cute.make_ordered_layout"(%s, %t) : (!cute.shape<"(?,6)">, !cute.int_tuple<"(1,0)">) -> !cute.layout<"(?,6):(6,1)">
  %lo = arith.constant 0 : index
  %hi = arith.constant 2 : index
  %by = arith.constant 1 : index
  scf.for %i = %lo to %hi step %by {
    "cute.print"(%l) : (!cute.layout<"(?,6):(6,1)">) -> ()
  }
  %z = "cute.size"(%l) : (!cute.layout<"(?,6):(6,1)">) -> !cute.int_tuple<"?">
  "cute.print"(%z) : (!cute.int_tuple<"?">) -> ()
  return
}
