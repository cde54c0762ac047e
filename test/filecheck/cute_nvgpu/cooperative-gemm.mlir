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
  // expected-error @below {{expected a multiple of 32 along M in C, the tile of the MMA, got 48 in (48,32)}}
  cute.cooperative_gemm(%mma, %c, %a, %b, %t) : (!mma, !c, !a, !b, !cute.coord<"?">) -> ()
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
!a = !cute.memref<f16, smem, "(64,32):(32,1)">
!b = !cute.memref<f16, smem, "(32,64):(64,1)">
!c = !cute.memref<f32, smem, "(64,32):(32,1)">

func.func @extents(%mma: !mma, %a: !a, %b: !b, %c: !c, %t: !cute.coord<"?">) {
  // expected-error @below {{expected the same extent of mode K in A and B, got 32 and 64}}
  cute.cooperative_gemm(%mma, %c, %a, %b, %t) : (!mma, !c, !a, !b, !cute.coord<"?">) -> ()
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
!a = !cute.memref<f16, rmem, "(64,32):(32,1)">
!b = !cute.memref<f16, smem, "(32,32):(32,1)">
!c = !cute.memref<f32, smem, "(64,32):(32,1)">

func.func @space(%mma: !mma, %a: !a, %b: !b, %c: !c, %t: !cute.coord<"?">) {
  // expected-error @below {{expected a tile of A in memory that the threads share, got !cute.memref<f16, rmem, "(64,32):(32,1)">}}
  cute.cooperative_gemm(%mma, %c, %a, %b, %t) : (!mma, !c, !a, !b, !cute.coord<"?">) -> ()
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
!a = !cute.memref<f16, smem, "(64,32):(32,1)">
!b = !cute.memref<bf16, smem, "(32,32):(32,1)">
!c = !cute.memref<f32, smem, "(64,32):(32,1)">

func.func @elements(%mma: !mma, %a: !a, %b: !b, %c: !c, %t: !cute.coord<"?">) {
  // expected-error @below {{expected operand B of elements f16 for the atom !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, got bf16}}
  cute.cooperative_gemm(%mma, %c, %a, %b, %t) : (!mma, !c, !a, !b, !cute.coord<"?">) -> ()
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(1,1,2):(0,0,1)">>
!a = !cute.memref<f16, smem, "(64,32):(32,1)">
!b = !cute.memref<f16, smem, "(32,32):(32,1)">
!c = !cute.memref<f32, smem, "(64,32):(32,1)">

func.func @split_k(%mma: !mma, %a: !a, %b: !b, %c: !c, %t: !cute.coord<"?">) {
  // expected-error @below {{expected an MMA with one atom along K}}
  cute.cooperative_gemm(%mma, %c, %a, %b, %t) : (!mma, !c, !a, !b, !cute.coord<"?">) -> ()
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
!a = !cute.memref<f16, smem, "(64,?):(?,1)">
!b = !cute.memref<f16, smem, "(32,32):(32,1)">
!c = !cute.memref<f32, smem, "(64,32):(32,1)">

func.func @dynamic(%mma: !mma, %a: !a, %b: !b, %c: !c, %t: !cute.coord<"?">) {
  // expected-error @below {{expected a static shape of A, got (64,?)}}
  cute.cooperative_gemm(%mma, %c, %a, %b, %t) : (!mma, !c, !a, !b, !cute.coord<"?">) -> ()
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
!a = !cute.memref<f16, smem, "(64,32):(32,1)">
!b = !cute.memref<f16, smem, "1024:1">
!c = !cute.memref<f32, smem, "(64,32):(32,1)">

func.func @rank(%mma: !mma, %a: !a, %b: !b, %c: !c, %t: !cute.coord<"?">) {
  // expected-error @below {{expected a tile (N,K) of B, got 1024}}
  cute.cooperative_gemm(%mma, %c, %a, %b, %t) : (!mma, !c, !a, !b, !cute.coord<"?">) -> ()
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
!a = !cute.memref<f16, smem, "S<3,3,3> o 0 o (64,32):(32,1)">
!b = !cute.memref<f16, smem, "(32,32):(32,1)">
!c = !cute.memref<f32, smem, "(64,32):(32,1)">

func.func @composed(%mma: !mma, %a: !a, %b: !b, %c: !c, %t: !cute.coord<"?">) {
  // expected-error @below {{expected a plain layout of A (a swizzle belongs on the pointer), got S<3,3,3> o 0 o (64,32):(32,1)}}
  cute.cooperative_gemm(%mma, %c, %a, %b, %t) : (!mma, !c, !a, !b, !cute.coord<"?">) -> ()
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
!a = !cute.memref<f16, smem, "(64,32):(32,1)">
!b = !cute.memref<f16, smem, "(32,32):(32,1)">
!c = !cute.memref<f32, rmem, "((2,2),1,2):((1,2),0,4)">

func.func @accumulators(%mma: !mma, %a: !a, %b: !b, %c: !c, %t: !cute.coord<"?">) {
  // expected-error @below {{expected the same extent of mode M in A and D, got 2 in ((2,2,2),2,2) and 1 in ((2,2),1,2)}}
  cute.cooperative_gemm(%mma, %c, %a, %b, %t) : (!mma, !c, !a, !b, !cute.coord<"?">) -> ()
  return
}
