// RUN: cute-opt %s --split-input-file --verify-diagnostics

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
!a = !cute.memref<f16, smem, "(64,32):(32,1)">
!b = !cute.memref<f16, smem, "(32,32):(32,1)">
!c = !cute.memref<f32, smem, "(64,32):(32,1)">

func.func @fits(%mma: !mma, %a: !a, %b: !b, %c: !c, %t: !cute.coord<"?">) {
  cute.cooperative_gemm(%mma, %c, %a, %b, %t) : (!mma, !c, !a, !b, !cute.coord<"?">) -> ()
  cute.cooperative_gemm(%mma, %c, %a, %b, %t) {accumulate = false} : (!mma, !c, !a, !b, !cute.coord<"?">) -> ()
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
!a = !cute.memref<f16, smem, "(48,32):(32,1)">
!b = !cute.memref<f16, smem, "(32,32):(32,1)">
!c = !cute.memref<f32, smem, "(48,32):(32,1)">

func.func @tile(%mma: !mma, %a: !a, %b: !b, %c: !c, %t: !cute.coord<"?">) {
  // expected-error @below {{C has extent 48 along M in (48,32); it must be a multiple of 32, the tile of the MMA}}
  cute.cooperative_gemm(%mma, %c, %a, %b, %t) : (!mma, !c, !a, !b, !cute.coord<"?">) -> ()
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
!a = !cute.memref<f16, smem, "(64,32):(32,1)">
!b = !cute.memref<f16, smem, "(32,64):(64,1)">
!c = !cute.memref<f32, smem, "(64,32):(32,1)">

func.func @extents(%mma: !mma, %a: !a, %b: !b, %c: !c, %t: !cute.coord<"?">) {
  // expected-error @below {{mode K of A and B has extents 32 and 64; they must be equal}}
  cute.cooperative_gemm(%mma, %c, %a, %b, %t) : (!mma, !c, !a, !b, !cute.coord<"?">) -> ()
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
!a = !cute.memref<f16, rmem, "(64,32):(32,1)">
!b = !cute.memref<f16, smem, "(32,32):(32,1)">
!c = !cute.memref<f32, smem, "(64,32):(32,1)">

func.func @space(%mma: !mma, %a: !a, %b: !b, %c: !c, %t: !cute.coord<"?">) {
  // expected-error @below {{A is not in memory that the threads share (!cute.memref<f16, rmem, "(64,32):(32,1)">); use a tile in gmem or smem}}
  cute.cooperative_gemm(%mma, %c, %a, %b, %t) : (!mma, !c, !a, !b, !cute.coord<"?">) -> ()
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
!a = !cute.memref<f16, smem, "(64,32):(32,1)">
!b = !cute.memref<bf16, smem, "(32,32):(32,1)">
!c = !cute.memref<f32, smem, "(64,32):(32,1)">

func.func @elements(%mma: !mma, %a: !a, %b: !b, %c: !c, %t: !cute.coord<"?">) {
  // expected-error @below {{operand B has elements bf16; the atom !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)> needs f16}}
  cute.cooperative_gemm(%mma, %c, %a, %b, %t) : (!mma, !c, !a, !b, !cute.coord<"?">) -> ()
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(1,1,2):(0,0,1)">>
!a = !cute.memref<f16, smem, "(64,32):(32,1)">
!b = !cute.memref<f16, smem, "(32,32):(32,1)">
!c = !cute.memref<f32, smem, "(64,32):(32,1)">

func.func @split_k(%mma: !mma, %a: !a, %b: !b, %c: !c, %t: !cute.coord<"?">) {
  // expected-error @below {{the tiled MMA has several atoms along K}}
  cute.cooperative_gemm(%mma, %c, %a, %b, %t) : (!mma, !c, !a, !b, !cute.coord<"?">) -> ()
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
!a = !cute.memref<f16, smem, "(64,?):(?,1)">
!b = !cute.memref<f16, smem, "(32,32):(32,1)">
!c = !cute.memref<f32, smem, "(64,32):(32,1)">

func.func @dynamic(%mma: !mma, %a: !a, %b: !b, %c: !c, %t: !cute.coord<"?">) {
  // expected-error @below {{the shape of A is not static ((64,?)); use static extents}}
  cute.cooperative_gemm(%mma, %c, %a, %b, %t) : (!mma, !c, !a, !b, !cute.coord<"?">) -> ()
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
!a = !cute.memref<f16, smem, "(64,32):(32,1)">
!b = !cute.memref<f16, smem, "1024:1">
!c = !cute.memref<f32, smem, "(64,32):(32,1)">

func.func @rank(%mma: !mma, %a: !a, %b: !b, %c: !c, %t: !cute.coord<"?">) {
  // expected-error @below {{the tile of B is 1024; use (N,K)}}
  cute.cooperative_gemm(%mma, %c, %a, %b, %t) : (!mma, !c, !a, !b, !cute.coord<"?">) -> ()
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
!a = !cute.memref<f16, smem, "S<3,3,3> o 0 o (64,32):(32,1)">
!b = !cute.memref<f16, smem, "(32,32):(32,1)">
!c = !cute.memref<f32, smem, "(64,32):(32,1)">

func.func @composed(%mma: !mma, %a: !a, %b: !b, %c: !c, %t: !cute.coord<"?">) {
  // expected-error @below {{the layout of A is not plain (S<3,3,3> o 0 o (64,32):(32,1)); use a plain layout and put a swizzle on the pointer}}
  cute.cooperative_gemm(%mma, %c, %a, %b, %t) : (!mma, !c, !a, !b, !cute.coord<"?">) -> ()
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
!a = !cute.memref<f16, smem, "(64,32):(32,1)">
!b = !cute.memref<f16, smem, "(32,32):(32,1)">
!c = !cute.memref<f32, rmem, "((2,2),1,2):((1,2),0,4)">

func.func @accumulators(%mma: !mma, %a: !a, %b: !b, %c: !c, %t: !cute.coord<"?">) {
  // expected-error @below {{mode M of A and D has extents 2 in ((2,2,2),2,2) and 1 in ((2,2),1,2); they must be equal}}
  cute.cooperative_gemm(%mma, %c, %a, %b, %t) : (!mma, !c, !a, !b, !cute.coord<"?">) -> ()
  return
}
