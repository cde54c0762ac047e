// RUN: cute-opt %s --cute-to-base --verify-legality | FileCheck %s

// CHECK-DAG: llvm.func @printf(!llvm.ptr, ...) -> i32
// CHECK-DAG: llvm.mlir.global internal constant @printfFormat_0("(%d,(8,%lld))\0A\00")
// CHECK-DAG: llvm.mlir.global internal constant @printfFormat_1("S<2,3,3> o %d o (8,%d):(1,8)\0A\00")

// CHECK-LABEL: func.func @host
// CHECK:         %[[A:.*]] = llvm.mlir.addressof @printfFormat_0 : !llvm.ptr
// CHECK:         %[[G:.*]] = llvm.getelementptr %[[A]][0, 0]
// CHECK:         llvm.call @printf(%[[G]], %{{.*}}, %{{.*}}) vararg(!llvm.func<i32 (ptr, ...)>) : (!llvm.ptr, i32, i64) -> i32
func.func @host(%s: !cute.shape<"(?,(8,?{i64}))">) {
  cute.print(%s) : !cute.shape<"(?,(8,?{i64}))">
  return
}

// Stored: outer, offset, inner.  Printed: inner, offset, outer.
// CHECK-LABEL: func.func @print_order
// CHECK-DAG:     %[[N:.*]] = llvm.extractvalue %arg0[0, 0]
// CHECK-DAG:     %[[O:.*]] = llvm.extractvalue %arg0[1]
// CHECK:         llvm.call @printf(%{{.*}}, %[[O]], %[[N]])
func.func @print_order(%arg0: !cute.composed_layout<"S<2,3,3> o ? o (8,?):(1,8)">) {
  cute.print(%arg0) : !cute.composed_layout<"S<2,3,3> o ? o (8,?):(1,8)">
  return
}

// CHECK-LABEL: llvm.func @device
// CHECK:         gpu.printf "(_,%d)\0A", %arg0 : i32
gpu.module @m {
  gpu.func @device(%arg0: !cute.coord<"(_,?)">) kernel {
    cute.print(%arg0) : !cute.coord<"(_,?)">
    gpu.return
  }
}
