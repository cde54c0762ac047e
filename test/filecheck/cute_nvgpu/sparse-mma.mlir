// RUN: cute-opt %s --convert-cute-algo-to-arch --verify-legality | FileCheck %s --check-prefix=ARCH
// RUN: cute-opt %s --pipeline=base | FileCheck %s --check-prefix=BASE
// RUN: %if mlir %{ cute-opt %s --pipeline=nvptx=features=+ptx85 --emit=ptx | FileCheck %s --check-prefix=PTX %}

// A sparse tile of 32x64, its kept half 32x32, its metadata 32x4 half words, read as they lie in memory: two k steps, each
// with its own register of metadata.

!atom = !cute_nvgpu.atom.mma_sp<16x8x32, (f32,f16,f16,f32), selector = 1>
!mma = !cute.tiled_mma<!atom, atom_layout_MNK = <"(2,1,1):(1,0,0)">>
!A = !cute.memref<f16, gmem, align<16>, "(32,32):(32,1)">
!B = !cute.memref<f16, gmem, align<16>, "(8,64):(64,1)">
!E = !cute.memref<i16, gmem, align<16>, "(32,4):(4,1)">
!D = !cute.memref<f32, gmem, align<16>, "(32,8):(8,1)">
!tA = !cute.memref<f16, gmem, align<4>, "((2,2,2),1,2):((1,256,8),0,16)">
!tB = !cute.memref<f16, gmem, align<4>, "((2,4),1,2):((1,8),0,32)">
!tE = !cute.memref<i16, gmem, "(2,1,2):(32,0,2)">
!tD = !cute.memref<f32, gmem, align<8>, "((2,2),1,1):((1,64),0,0)">
!rA = !cute.memref<f16, rmem, align<32>, "((2,2,2),1,2):((1,2,4),0,8)">
!rB = !cute.memref<f16, rmem, align<32>, "((2,4),1,2):((1,2),0,8)">
!rE = !cute.memref<i16, rmem, align<8>, "(2,1,2):(1,0,2)">
!rD = !cute.memref<f32, rmem, align<16>, "((2,2),1,1):((1,2),0,0)">
!copy16 = !cute_nvgpu.atom.universal_copy<f16>
!copyi = !cute_nvgpu.atom.universal_copy<i16>
!copy32 = !cute_nvgpu.atom.universal_copy<f32>

// Lane t of four holds the words of column t mod 2 and rows g, g + 8: 4 half words a row, so the pair is 32 apart.
// ARCH-LABEL: gpu.func @sparse
// ARCH-DAG:     cute.make_view(%{{.*}}, %{{.*}}) : !cute.memref<i16, gmem, "(2,1,2):(32,0,2)">
// ARCH:         cute_nvgpu.arch.mma_sp(%[[D:.*]], %[[A0:.*]], %[[B0:.*]], %[[Z:.*]], %[[E0:.*]]) {atom = !cute_nvgpu.atom.mma_sp<16x8x32, (f32,f16,f16,f32), selector = 1>}
// ARCH-SAME:      !cute.memref<i16, rmem, align<8>, "2:1">) -> ()
// ARCH:         cute_nvgpu.arch.mma_sp(%[[D]], %{{.*}}, %{{.*}}, %[[D]], %{{.*}})
// ARCH-NOT:     cute_nvgpu.arch.mma_sp

// BASE-LABEL: llvm.func @sparse
// BASE:         %[[E:.*]] = llvm.bitcast %{{.*}} : vector<2xi16> to i32
// BASE:         "nvvm.mma.sp.sync"({{.*}}, %[[E]], %c1_i32)
// BASE-SAME:      multiplicandAPtxType = #nvvm.mma_type<f16>
// BASE-SAME:      operandSegmentSizes = array<i32: 4, 4, 4, 1, 1>, orderedMetadata, shape = #nvvm.shape<m = 16, n = 8, k = 32>
// BASE:         "nvvm.mma.sp.sync"
// BASE-NOT:     nvvm.mma.sp.sync
// BASE-NOT:     llvm.alloca

// PTX-LABEL:    .entry sparse
// PTX-COUNT-2:  mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32
gpu.module @m {
  gpu.func @sparse(%A: !A, %B: !B, %E: !E, %D: !D) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 64> : i32
    %k = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
    %at = cute.atom() : !atom
    %mma = cute.make_tiled_mma(%at) : !mma
    %c16 = cute.atom() : !copy16
    %ci = cute.atom() : !copyi
    %c32 = cute.atom() : !copy32
    %tA = cute.tiled.mma.partition_A(%mma, %A, %k) : (!mma, !A, !cute.coord<"?">) -> !tA
    %tB = cute.tiled.mma.partition_B(%mma, %B, %k) : (!mma, !B, !cute.coord<"?">) -> !tB
    %tE = cute.tiled.mma.partition_E(%mma, %E, %k) : (!mma, !E, !cute.coord<"?">) -> !tE
    %tD = cute.tiled.mma.partition_C(%mma, %D, %k) : (!mma, !D, !cute.coord<"?">) -> !tD
    %rA = cute.tiled.mma.make_fragment_A(%mma, %tA) : (!mma, !tA) -> !rA
    %rB = cute.tiled.mma.make_fragment_B(%mma, %tB) : (!mma, !tB) -> !rB
    %rE = cute.tiled.mma.make_fragment_E(%mma, %tE) : (!mma, !tE) -> !rE
    %rD = cute.tiled.mma.make_fragment_C(%mma, %tD) : (!mma, !tD) -> !rD
    cute.copy(%c16, %tA, %rA) : (!copy16, !tA, !rA) -> ()
    cute.copy(%c16, %tB, %rB) : (!copy16, !tB, !rB) -> ()
    cute.copy(%ci, %tE, %rE) : (!copyi, !tE, !rE) -> ()
    cute.sparse_gemm(%mma, %rD, %rA, %rB, %rE) : (!mma, !rD, !rA, !rB, !rE) -> ()
    cute.copy(%c32, %rD, %tD) : (!copy32, !rD, !tD) -> ()
    gpu.return
  }
}
