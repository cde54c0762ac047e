// The plug-in, in xDSL's own program: its passes (cse, canonicalize, dce) and ours in one pipeline.

// RUN: xdsl-opt %s -p cute-fold-static,cse,cute-expand-ops,canonicalize | FileCheck %s --check-prefix=EXPANDED
// RUN: xdsl-opt %s -p cute-fold-static,cse,cute-expand-ops,canonicalize,cute-to-base,canonicalize,cse,dce > %t.mlir
// RUN: FileCheck %s < %t.mlir

// What comes out is base IR: cute-opt without the cute dialects reads it.
// RUN: cute-opt %t.mlir --dialects=base --verify-roundtrip --verify-diagnostics
// RUN: xdsl-opt %s -p 'cute-expand-ops,cute-to-base' | cute-opt - --dialects=base --verify-diagnostics
// RUN: xdsl-opt %s --print-op-generic | cute-opt - --pipeline=base --verify-legality | FileCheck %s --check-prefix=BASE

// EXPANDED-LABEL: func.func @main
// EXPANDED-NOT:     make_ordered_layout
// EXPANDED-COUNT-1: arith.muli
// EXPANDED-NOT:     arith.muli

// CHECK-DAG:   llvm.mlir.global internal constant @[[L:.*]]("(%d,6):(6,1)\0A\00")
// CHECK-DAG:   llvm.mlir.global internal constant @[[Z:.*]]("%d\0A\00")
// CHECK-DAG:   llvm.func @printf(!llvm.ptr, ...) -> i32
// CHECK-LABEL: func.func @main(%n: i32)
// CHECK-NOT:     cute
// CHECK:         %[[A:.*]] = llvm.mlir.addressof @[[L]] : !llvm.ptr
// CHECK:         %[[G:.*]] = llvm.getelementptr %[[A]][0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<14 x i8>
// CHECK:         llvm.call @printf(%[[G]], %n) vararg(!llvm.func<i32 (ptr, ...)>) : (!llvm.ptr, i32) -> i32
// CHECK:         %[[SIX:.*]] = arith.constant 6 : i32
// CHECK:         %[[S:.*]] = arith.muli %{{.*}}, %[[SIX]] overflow<nsw> : i32
// CHECK-COUNT-2: llvm.call @printf(%{{.*}}, %[[S]]) vararg
// CHECK:         func.return

// BASE-LABEL: func.func @main(%{{.*}}: i32)
// BASE-NOT:     cute
func.func @main(%n: i32) {
  %s = cute.make_shape(%n) : (i32) -> !cute.shape<"(?,6)">
  %t = cute.make_int_tuple() : () -> !cute.int_tuple<"(1,0)">
  %l = cute.make_ordered_layout(%s, %t) : (!cute.shape<"(?,6)">, !cute.int_tuple<"(1,0)">) -> !cute.layout<"(?,6):(6,1)">
  cute.print(%l) : !cute.layout<"(?,6):(6,1)">
  %z = cute.size (%l) : (!cute.layout<"(?,6):(6,1)">) -> !cute.int_tuple<"?">
  %y = cute.size (%l) : (!cute.layout<"(?,6):(6,1)">) -> !cute.int_tuple<"?">
  %unused = cute.get_shape(%l) : !cute.layout<"(?,6):(6,1)"> -> !cute.shape<"(?,6)">
  cute.print(%z) : !cute.int_tuple<"?">
  cute.print(%y) : !cute.int_tuple<"?">
  return
}
