// RUN: cute-opt %s --pipeline=base | FileCheck %s --check-prefix=BASE
// RUN: %if mlir %{ cute-opt %s --pipeline --emit=ptx | FileCheck %s --check-prefix=PTX %}

// Two k-tiles of 64 in swizzled stages; the second in a loop.

!atom = !cute_nvgpu.atom.wgmma<64x64x16, (f32,f16,f16,f32), A = smem, major = (k, k)>
!mma = !cute.tiled_mma<!atom, atom_layout_MNK = <"(1,1,1):(0,0,0)">>
!smem = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((8,8),64,4):((64,512),1,4096)">
!part = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,16),1,4,4):((64,1),0,16,4096)">
!tile = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,16),1,4):((64,1),0,16)">
!acc = !cute.memref<f32, rmem, align<32>, "((2,2,8),1,1):((1,2,4),0,0)">
!out = !cute.memref<f32, gmem, align<16>, "(64,64):(64,1)">
!mine = !cute.memref<f32, gmem, align<8>, "((2,2,8),1,1):((1,512,8),0,0)">

// The constant half of a descriptor is SBO 1024 bytes and the 128-byte swizzle (0x40000040 in the high word); the low word
// is the address of the stage in units of 16 bytes; k steps add 2.
// BASE-LABEL: llvm.func @two
// BASE:         %[[N:.*]] = llvm.ptrtoint %{{.*}} : !llvm.ptr<3> to i32
// BASE:         %[[A:.*]] = arith.andi %[[N]],
// BASE:         arith.shrui %[[A]],
// BASE:         nvvm.wgmma.fence.aligned
// BASE:         arith.constant 4611686293305294848 : i64
// BASE:         %[[U:.*]] = llvm.mlir.undef
// BASE:         %[[W0:.*]] = nvvm.wgmma.mma_async %{{.*}}, %{{.*}}, %[[U]], {{.*}}D[<f32>, <zero>], A[<f16>, <one>, <row>], B[<f16>, <one>, <col>]
// BASE:         %[[W1:.*]] = nvvm.wgmma.mma_async %{{.*}}, %{{.*}}, %[[W0]], {{.*}}D[<f32>, <one>]
// BASE:         %[[W2:.*]] = nvvm.wgmma.mma_async %{{.*}}, %{{.*}}, %[[W1]],
// BASE:         %[[W3:.*]] = nvvm.wgmma.mma_async %{{.*}}, %{{.*}}, %[[W2]],
// BASE:         nvvm.wgmma.commit.group.sync.aligned
// BASE:         %[[R:.*]] = scf.for {{.*}} iter_args(%[[S:.*]] = %[[W3]]) -> (!llvm.struct<(f32,
// BASE:           nvvm.wgmma.mma_async %{{.*}}, %{{.*}}, %[[S]],
// BASE-COUNT-3:   nvvm.wgmma.mma_async
// BASE:           nvvm.wgmma.commit.group.sync.aligned
// BASE:           nvvm.wgmma.wait.group.sync.aligned 1
// BASE:           scf.yield
// BASE:         %[[M:.*]] = llvm.extractvalue %[[R]][0]
// BASE:         llvm.inline_asm has_side_effects asm_dialect = att "wgmma.wait_group.sync.aligned 0;", "=f,{{.*}}=f,0,1,{{.*}},31" %[[M]],

// PTX-LABEL:    .entry two
// PTX-COUNT-8:  wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16
// PTX-NOT:      wgmma.mma_async
// PTX:          wgmma.wait_group.sync.aligned 0;
gpu.module @m {
  gpu.func @two(%c: !out, %n: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
    %k = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
    %at = cute.atom() : !atom
    %mma = cute.make_tiled_mma(%at) : !mma
    %sA = cute.memref.alloc_smem() : !smem
    %sB = cute.memref.alloc_smem() : !smem
    %tA = cute.tiled.mma.partition_A(%mma, %sA, %k) : (!mma, !smem, !cute.coord<"?">) -> !part
    %tB = cute.tiled.mma.partition_B(%mma, %sB, %k) : (!mma, !smem, !cute.coord<"?">) -> !part
    %tC = cute.tiled.mma.partition_C(%mma, %c, %k) : (!mma, !out, !cute.coord<"?">) -> !mine
    %acc = cute.tiled.mma.make_fragment_C(%mma, %tC) : (!mma, !mine) -> !acc
    %zero = cute.static : !cute.coord<"(_,_,_,0)">
    %a0 = cute.slice(%tA, %zero) : !part, !cute.coord<"(_,_,_,0)">
    %b0 = cute.slice(%tB, %zero) : !part, !cute.coord<"(_,_,_,0)">
    cute_nvgpu.arch.wgmma_fence() : () -> ()
    cute.gemm(%mma, %acc, %a0, %b0) : (!mma, !acc, !tile, !tile) -> ()
    cute_nvgpu.arch.wgmma_commit_group() : () -> ()
    %c1 = arith.constant 1 : i32
    scf.for %i = %c1 to %n step %c1 : i32 {
      %at_i = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,_,_,?)">
      %a = cute.slice(%tA, %at_i) : !part, !cute.coord<"(_,_,_,?)">
      %b = cute.slice(%tB, %at_i) : !part, !cute.coord<"(_,_,_,?)">
      cute_nvgpu.arch.wgmma_fence() : () -> ()
      cute.gemm(%mma, %acc, %a, %b, %acc) : (!mma, !acc, !tile, !tile, !acc) -> ()
      cute_nvgpu.arch.wgmma_commit_group() : () -> ()
      cute_nvgpu.arch.wgmma_wait_group() {n = 1 : i32} : () -> ()
    }
    cute_nvgpu.arch.wgmma_wait_group(%acc) {n = 0 : i32} : (!acc) -> ()
    %copy = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
    cute.copy(%copy, %acc, %tC) : (!cute_nvgpu.atom.universal_copy<f32>, !acc, !mine) -> ()
    gpu.return
  }
}
