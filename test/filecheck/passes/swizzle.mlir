// RUN: cute-opt %s --cute-fold-static --cute-expand-ops --convert-cute-algo-to-arch --cute-to-base --verify-legality | FileCheck %s

!s = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,(8,8),3):(64,(1,8),4096)">
!v = !cute.memref<f16, smem, align<16>, S<3,4,3>, "(8):(1)">
!w = !cute.memref<f16, smem, align<128>, S<3,4,3>, "(8):(1)">

// One swizzle for all eight chunks of a row: the stage is added after it, a chunk is one xor away.
// CHECK-LABEL: llvm.func @stages
// CHECK:         %[[BASE:.*]] = llvm.mlir.addressof @stages__smem
// CHECK:         %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x
// CHECK:         %[[ROW:.*]] = arith.muli %[[TID]], %c128_i32
// CHECK:         %[[STAGE:.*]] = arith.muli %{{.*}}, %c8192_i32
// CHECK:         %[[BITS:.*]] = arith.andi %[[ROW]], %c896_i32
// CHECK:         %[[DOWN:.*]] = arith.shrui %[[BITS]], %c3_i32
// CHECK:         %[[MOVED:.*]] = arith.xori %[[ROW]], %[[DOWN]]
// CHECK:         %[[AT:.*]] = llvm.getelementptr %[[BASE]][%[[STAGE]]]
// CHECK:         %[[P0:.*]] = llvm.getelementptr %[[AT]][%[[MOVED]]]
// CHECK:         llvm.store %{{.*}}, %[[P0]] {alignment = 16 : i64} : vector<8xf16>
// CHECK:         %[[NEXT:.*]] = arith.xori %[[MOVED]], %c48_i32
// CHECK:         %[[P1:.*]] = llvm.getelementptr %[[AT]][%[[NEXT]]]
// CHECK:         llvm.store %{{.*}}, %[[P1]] {alignment = 16 : i64} : vector<8xf16>
// CHECK-NOT:     ptrtoint
gpu.module @m {
  gpu.func @stages(%x: vector<8xf16>, %stage: i32) kernel {
    %s = cute.memref.alloc_smem() : !s
    %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 64> : i32
    %c0 = cute.make_coord(%tid, %stage) : (i32, i32) -> !cute.coord<"(?,(_,0),?)">
    %c3 = cute.make_coord(%tid, %stage) : (i32, i32) -> !cute.coord<"(?,(_,3),?)">
    %v0 = cute.slice(%s, %c0) : !s, !cute.coord<"(?,(_,0),?)">
    %v3 = cute.slice(%s, %c3) : !s, !cute.coord<"(?,(_,3),?)">
    cute.memref.store_vec %x, %v0 : !w
    cute.memref.store_vec %x, %v3 : !v
    gpu.return
  }

  // Eight rows on the pattern repeats: an immediate.
  // CHECK-LABEL: llvm.func @rows
  // CHECK:         %[[X:.*]] = arith.xori
  // CHECK:         %[[P0:.*]] = llvm.getelementptr %{{.*}}[%[[X]]]
  // CHECK:         llvm.store %{{.*}}, %[[P0]]
  // CHECK:         %[[P8:.*]] = llvm.getelementptr %[[P0]][1024]
  // CHECK:         llvm.store %{{.*}}, %[[P8]]
  gpu.func @rows(%x: vector<8xf16>) kernel {
    %s = cute.memref.alloc_smem() : !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((8,8),(8,8)):((64,512),(1,8))">
    %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 8> : i32
    %c0 = cute.make_coord(%tid) : (i32) -> !cute.coord<"((?,0),(_,0))">
    %c1 = cute.make_coord(%tid) : (i32) -> !cute.coord<"((?,1),(_,0))">
    %v0 = cute.slice(%s, %c0) : !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((8,8),(8,8)):((64,512),(1,8))">, !cute.coord<"((?,0),(_,0))">
    %v1 = cute.slice(%s, %c1) : !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((8,8),(8,8)):((64,512),(1,8))">, !cute.coord<"((?,1),(_,0))">
    cute.memref.store_vec %x, %v0 : !cute.memref<f16, smem, align<128>, S<3,4,3>, "(8):(1)">
    cute.memref.store_vec %x, %v1 : !cute.memref<f16, smem, align<128>, S<3,4,3>, "(8):(1)">
    gpu.return
  }
}
