// RUN: cute-opt %s --convert-cute-algo-to-arch --verify-legality | FileCheck %s --check-prefix=ARCH
// RUN: cute-opt %s --pipeline=base | FileCheck %s --check-prefix=BASE
// RUN: %if mlir %{ cute-opt %s --pipeline --emit=ptx | FileCheck %s --check-prefix=PTX %}

// Two k steps of 32: A, the kept half, steps by 32 bytes, B by 64, each product with its own register of metadata.

!atom = !cute_nvgpu.atom.wgmma_sp<64x8x32, (f32,f16,f16,f32), A = smem, major = (k, k), selector = 1>
!mma = !cute.tiled_mma<!atom, atom_layout_MNK = <"(1,1,1):(0,0,0)">>
!sA = !cute.memref<f16, smem, align<1024>, S<2,4,3>, "(64,32):(32,1)">
!sB = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(8,64):(64,1)">
!tA = !cute.memref<f16, smem, align<1024>, S<2,4,3>, "((64,16),1,2):((32,1),0,16)">
!tB = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((8,32),1,2):((64,1),0,32)">
!rE = !cute.memref<i16, rmem, align<8>, "(2,1,2):(1,0,2)">
!rD = !cute.memref<f32, rmem, align<16>, "((2,2,1),1,1):((1,2,0),0,0)">

// ARCH-LABEL: gpu.func @sparse
// ARCH:         cute_nvgpu.arch.wgmma_sp(%[[D:.*]], %{{.*}}, %{{.*}}, %[[E:.*]]) {accumulate = false, atom = !cute_nvgpu.atom.wgmma_sp<64x8x32, (f32,f16,f16,f32), A = smem, major = (k, k), selector = 1>}
// ARCH:         cute_nvgpu.arch.wgmma_sp(%[[D]], %{{.*}}, %{{.*}}, %{{.*}}) {accumulate = true,
// ARCH-NOT:     cute_nvgpu.arch.wgmma_sp

// The steps in units of 16 bytes: 2 of A; 4 of B, which lies 256 further.
// BASE-LABEL: llvm.func @sparse
// BASE:         %[[U:.*]] = llvm.mlir.undef : !llvm.struct<(f32, f32, f32, f32)>
// BASE:         %[[W:.*]] = llvm.inline_asm has_side_effects asm_dialect = att "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {$0, $1, $2, $3}, $8, $9, $10, 1, 0, 1, 1, 0, 0;", "=f,=f,=f,=f,0,1,2,3,l,l,r"
// BASE:         arith.constant 2 : i32
// BASE:         arith.constant 260 : i32
// BASE:         llvm.inline_asm has_side_effects asm_dialect = att "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {$0, $1, $2, $3}, $8, $9, $10, 1, 1, 1, 1, 0, 0;", "=f,=f,=f,=f,0,1,2,3,l,l,r"
// BASE-NOT:     wgmma.mma_async

// PTX-LABEL:    .entry sparse
// PTX-COUNT-2:  wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16
gpu.module @m {
  gpu.func @sparse(%E: vector<4xi16>, %D: !cute.memref<f32, gmem, align<16>, "(128,4):(4,1)">) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
    %k = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
    %at = cute.atom() : !atom
    %mma = cute.make_tiled_mma(%at) : !mma
    %sA = cute.memref.alloc_smem() : !sA
    %sB = cute.memref.alloc_smem() : !sB
    %tA = cute.tiled.mma.partition_A(%mma, %sA, %k) : (!mma, !sA, !cute.coord<"?">) -> !tA
    %tB = cute.tiled.mma.partition_B(%mma, %sB, %k) : (!mma, !sB, !cute.coord<"?">) -> !tB
    %rE = cute.memref.alloca() : !rE
    cute.memref.store_vec %E, %rE : !rE
    %rD = cute.memref.alloca() : !rD
    cute_nvgpu.arch.wgmma_fence() : () -> ()
    cute.sparse_gemm(%mma, %rD, %tA, %tB, %rE) : (!mma, !rD, !tA, !tB, !rE) -> ()
    cute_nvgpu.arch.wgmma_commit_group() : () -> ()
    cute_nvgpu.arch.wgmma_wait_group(%rD) {n = 0 : i32} : (!rD) -> ()
    %v = cute.memref.load_vec %rD : !rD
    %w = cute.make_coord(%tid) : (i32) -> !cute.coord<"(?,_)">
    %row = cute.slice(%D, %w) : !cute.memref<f32, gmem, align<16>, "(128,4):(4,1)">, !cute.coord<"(?,_)">
    cute.memref.store_vec %v, %row : !cute.memref<f32, gmem, align<16>, "(4):(1)">
    gpu.return
  }
}
