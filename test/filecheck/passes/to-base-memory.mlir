// RUN: cute-opt %s --cute-to-base --verify-legality | FileCheck %s

!row = !cute.memref<f32, gmem, "(?,?):(?,1)">
!regs = !cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">

// CHECK-LABEL: func.func @tensor
// CHECK-SAME:    (%{{.*}}: !llvm.struct<(ptr<1>, struct<(struct<(i32, i32)>, i32)>)>, %{{.*}}: !llvm.struct<(i32, struct<(i32, struct<()>)>)>)
func.func @tensor(%t: !row, %c: !cute.coord_tensor<"(0,?)", "(?,4):(1@0,1@1)">) { return }

// The address is computed in 64 bits: no product wraps at 2^31.
// CHECK-LABEL: func.func @wide
// CHECK-DAG:     %[[LD:.*]] = llvm.extractvalue %arg0[1, 1]
// CHECK-DAG:     %[[LD64:.*]] = arith.extsi %[[LD]] : i32 to i64
// CHECK-DAG:     %[[M:.*]] = llvm.extractvalue %arg1[0]
// CHECK-DAG:     %[[M64:.*]] = arith.extsi %[[M]] : i32 to i64
// CHECK:         %[[X:.*]] = arith.muli %[[M64]], %[[LD64]] overflow<nsw> : i64
// CHECK:         %[[O:.*]] = arith.addi %[[X]], %{{.*}} overflow<nsw> : i64
// CHECK:         llvm.getelementptr %{{.*}}[%[[O]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
// CHECK:         llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> f32
func.func @wide(%t: !row, %c: !cute.coord<"(?,?)">) -> f32 {
  %x = cute.memref.load(%t, %c) : (!row, !cute.coord<"(?,?)">) -> f32
  return %x : f32
}

// A small static tensor: 32 bits do.
// CHECK-LABEL: func.func @narrow
// CHECK-NOT:     i64
// CHECK:         llvm.getelementptr %{{.*}}[%{{.*}}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
// CHECK:         return
func.func @narrow(%t: !cute.memref<f32, gmem, "(4,8):(8,1)">, %c: !cute.coord<"(?,?)">) -> f32 {
  %x = cute.memref.load(%t, %c) : (!cute.memref<f32, gmem, "(4,8):(8,1)">, !cute.coord<"(?,?)">) -> f32
  return %x : f32
}

// Contiguous and aligned: one vector.
// CHECK-LABEL: func.func @vector
// CHECK:         llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
func.func @vector(%t: !cute.memref<f32, gmem, align<16>, "4:1">) -> vector<4xf32> {
  %v = cute.memref.load_vec %t : !cute.memref<f32, gmem, align<16>, "4:1">
  return %v : vector<4xf32>
}

// Register tensors are values; a branch that writes one gives it back.
// CHECK-LABEL: func.func @registers
// CHECK-SAME:    (%[[X:.*]]: f32, %[[Y:.*]]: f32, %[[B:.*]]: i1) -> f32
// CHECK-NOT:     llvm.alloca
// CHECK:         %[[R:.*]] = scf.if %[[B]] -> (f32) {
// CHECK-NEXT:      scf.yield %[[Y]] : f32
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %[[X]] : f32
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[R]]
func.func @registers(%x: f32, %y: f32, %b: i1) -> f32 {
  %f = cute.memref.alloca() : !regs
  %c = cute.static : !cute.coord<"(1,1)">
  cute.memref.store(%f, %c, %x) : (!regs, !cute.coord<"(1,1)">, f32) -> ()
  scf.if %b {
    cute.memref.store(%f, %c, %y) : (!regs, !cute.coord<"(1,1)">, f32) -> ()
  }
  %r = cute.memref.load(%f, %c) : (!regs, !cute.coord<"(1,1)">) -> f32
  return %r : f32
}

// A loop over a register tensor with static bounds is unrolled; the sum of 0, 1, 2, 3.
// CHECK-LABEL: func.func @unrolled
// CHECK-NOT:     scf.for
// CHECK-NOT:     llvm.alloca
// CHECK:         return
func.func @unrolled(%x: i32) -> i32 {
  %f = cute.memref.alloca() : !cute.memref<i32, rmem, align<16>, "(2,2):(1,2)">
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  scf.for %i = %c0 to %c4 step %c1 : i32 {
    %ci = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
    %v = arith.addi %x, %i : i32
    cute.memref.store(%f, %ci, %v) : (!cute.memref<i32, rmem, align<16>, "(2,2):(1,2)">, !cute.coord<"?">, i32) -> ()
  }
  %three = cute.static : !cute.coord<"3">
  %r = cute.memref.load(%f, %three) : (!cute.memref<i32, rmem, align<16>, "(2,2):(1,2)">, !cute.coord<"3">) -> i32
  return %r : i32
}

// A loop that need not be unrolled carries the tensor.
// CHECK-LABEL: func.func @accumulate
// CHECK:         scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}) -> (f32)
// CHECK:           %[[S:.*]] = arith.addf %[[A]], %{{.*}} : f32
// CHECK:           scf.yield %[[S]] : f32
func.func @accumulate(%x: f32, %n: i32) -> f32 {
  %f = cute.memref.alloca() : !cute.memref<f32, rmem, "1:0">
  %z = arith.constant 0.0 : f32
  %c = cute.static : !cute.coord<"0">
  cute.memref.store(%f, %c, %z) : (!cute.memref<f32, rmem, "1:0">, !cute.coord<"0">, f32) -> ()
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %a = cute.memref.load(%f, %c) : (!cute.memref<f32, rmem, "1:0">, !cute.coord<"0">) -> f32
    %s = arith.addf %a, %x : f32
    cute.memref.store(%f, %c, %s) : (!cute.memref<f32, rmem, "1:0">, !cute.coord<"0">, f32) -> ()
  }
  %r = cute.memref.load(%f, %c) : (!cute.memref<f32, rmem, "1:0">, !cute.coord<"0">) -> f32
  return %r : f32
}
