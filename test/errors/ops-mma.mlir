// Errors of tiled MMAs and gemm whose operands do not fit the atom.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

!atom = !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>
func.func @f(%a: !cute_nvgpu.atom.mma_sync<16x8x8, (f32,f16,f16,f32)>) {
  // expected-error @below {{'cute.make_tiled_mma' op the atom has type !cute_nvgpu.atom.mma_sync<16x8x8, (f32,f16,f16,f32)>; the result type needs !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>}}
  %m = cute.make_tiled_mma(%a) : !cute.tiled_mma<!atom, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
//     ^
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.wgmma<64x128x16, (f32,f16,f16,f32), A = smem, major = (k, k)>, atom_layout_MNK = <"(1,1,1):(0,0,0)">>
func.func @f(%m: !mma, %a: !cute.memref<f16, smem, "S<3,3,3> o 0 o (64,64):(64,1)">, %c: !cute.coord<"?">) {
  // expected-error @below {{'cute.tiled.mma.partition_A' op the layout is composed (S<3,3,3> o 0 o (64,64):(64,1)); use a plain layout and put a swizzle on the pointer}}
  %r = "cute.tiled.mma.partition_A"(%m, %a, %c) : (!mma, !cute.memref<f16, smem, "S<3,3,3> o 0 o (64,64):(64,1)">, !cute.coord<"?">) -> !cute.memref<f16, smem, "8:1">
//     ^
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
func.func @f(%m: !mma, %a: !cute.memref<f16, smem, "(64,64):(64,1)">, %c: !cute.coord<"(?,?)">) {
  // expected-error @below {{'cute.tiled.mma.partition_A' op operand #2 must be a thread index, got (?,?)}}
  %r = cute.tiled.mma.partition_A(%m, %a, %c) : (!mma, !cute.memref<f16, smem, "(64,64):(64,1)">, !cute.coord<"(?,?)">) -> !cute.memref<f16, smem, "8:1">
//     ^
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
func.func @f(%m: !mma, %a: !cute.memref<f16, smem, "64:1">, %c: !cute.coord<"?">) {
  // expected-error @below {{'cute.tiled.mma.partition_A' op expected a layout of rank 2 or more for operand A, got 64:1}}
  %r = cute.tiled.mma.partition_A(%m, %a, %c) : (!mma, !cute.memref<f16, smem, "64:1">, !cute.coord<"?">) -> !cute.memref<f16, smem, "8:1">
//     ^
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.wgmma<64x64x16, (f32,f16,f16,f32), A = smem, major = (k, k)>, atom_layout_MNK = <"(1,1,1):(0,0,0)">>
func.func @f(%m: !mma, %a: !cute.memref<f16, gmem, "(64,64):(64,1)">, %c: !cute.coord<"?">) {
  // expected-error @below {{'cute.tiled.mma.partition_A' op operand A of !cute_nvgpu.atom.wgmma<64x64x16, (f32,f16,f16,f32), A = smem, major = (k, k)> is in gmem; it must be in smem}}
  %r = cute.tiled.mma.partition_A(%m, %a, %c) : (!mma, !cute.memref<f16, gmem, "(64,64):(64,1)">, !cute.coord<"?">) -> !cute.memref<f16, smem, "8:1">
//     ^
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
func.func @f(%m: !mma, %s: !cute.shape<"64">) {
  // expected-error @below {{'cute.tiled.mma.partition_shape_A' op the shape is 64; use (M,K,…) of rank 2 or more}}
  %r = cute.tiled.mma.partition_shape_A(%m, %s) : (!mma, !cute.shape<"64">) -> !cute.shape<"64">
//     ^
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
func.func @f(%m: !mma, %s: !cute.memref<f16, smem, "(8,?,4):(1,8,?)">) {
  // expected-error @below {{'cute.tiled.mma.make_fragment_A' op the shape is not static ((8,?,4)); use static extents}}
  %r = cute.tiled.mma.make_fragment_A(%m, %s) : (!mma, !cute.memref<f16, smem, "(8,?,4):(1,8,?)">) -> !cute.memref<f16, rmem, "8:1">
//     ^
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
func.func @f(%m: !mma, %s: !cute.memref<f16, smem, "(4,2,4):(1,4,8)">) {
  // expected-error @below {{'cute.tiled.mma.make_fragment_A' op A has 4 values in mode 0 of (4,2,4); the atom !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)> needs 8}}
  %r = cute.tiled.mma.make_fragment_A(%m, %s) : (!mma, !cute.memref<f16, smem, "(4,2,4):(1,4,8)">) -> !cute.memref<f16, rmem, "8:1">
//     ^
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
!a = !cute.memref<f16, rmem, "(8,1):(1,0)">
!b = !cute.memref<f16, rmem, "(4,1,1):(1,0,0)">
!d = !cute.memref<f32, rmem, "(4,1,1):(1,0,0)">
func.func @f(%m: !mma, %d: !d, %a: !a, %b: !b) {
  // expected-error @below {{'cute.gemm' op A, B and D have ranks 2 3 3 ((8,1), (4,1,1), (4,1,1)); use one of 1 1 1: one atom, 1 1 2: outer product of (M) and (N), 2 2 2: (M,K) and (N,K), 2 2 3: (V,M) and (V,N), 3 3 3: (V,M,K) and (V,N,K)}}
  cute.gemm(%m, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d) -> ()
//^
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
!a = !cute.memref<f16, rmem, "(4,1,1):(1,0,0)">
!b = !cute.memref<f16, rmem, "(4,1,1):(1,0,0)">
!d = !cute.memref<f32, rmem, "(4,1,1):(1,0,0)">
func.func @f(%m: !mma, %d: !d, %a: !a, %b: !b) {
  // expected-error @below {{'cute.gemm' op A has 4 values in mode V of (4,1,1); the atom !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)> needs 8}}
  cute.gemm(%m, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d) -> ()
//^
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
!a = !cute.memref<f16, rmem, "S<1,0,1> o 0 o (8,1,1):(1,0,0)">
!b = !cute.memref<f16, rmem, "(4,1,1):(1,0,0)">
!d = !cute.memref<f32, rmem, "(4,1,1):(1,0,0)">
func.func @f(%m: !mma, %d: !d, %a: !a, %b: !b) {
  // expected-error @below {{'cute.gemm' op the layout of A is not plain (S<1,0,1> o 0 o (8,1,1):(1,0,0)); use a plain layout and put a swizzle on the pointer}}
  cute.gemm(%m, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d) -> ()
//^
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
!a = !cute.memref<f16, smem, "(8,1,1):(1,0,0)">
!b = !cute.memref<f16, rmem, "(4,1,1):(1,0,0)">
!d = !cute.memref<f32, rmem, "(4,1,1):(1,0,0)">
func.func @f(%m: !mma, %d: !d, %a: !a, %b: !b) {
  // expected-error @below {{'cute.gemm' op A is in smem; the atom !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)> needs it in rmem}}
  cute.gemm(%m, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d) -> ()
//^
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
!a = !cute.memref<f16, rmem, "(8,1,?):(1,0,?)">
!b = !cute.memref<f16, rmem, "(4,1,1):(1,0,0)">
!d = !cute.memref<f32, rmem, "(4,1,1):(1,0,0)">
func.func @f(%m: !mma, %d: !d, %a: !a, %b: !b) {
  // expected-error @below {{'cute.gemm' op the layout of A is not static ((8,1,?):(1,0,?)); use static extents and strides}}
  cute.gemm(%m, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d) -> ()
//^
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
!a = !cute.memref<f16, rmem, "(8,1,1):(1,0,0)">
!b = !cute.memref<f16, rmem, "(4,1,1):(1,0,0)">
!d = !cute.memref<f32, rmem, "(4,1,1):(0,0,0)">
func.func @f(%m: !mma, %d: !d, %a: !a, %b: !b) {
  // expected-error @below {{'cute.gemm' op D has a mode of extent 4 and stride 0 in (4,1,1):(0,0,0); its layout must be injective}}
  cute.gemm(%m, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d) -> ()
//^
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
!a = !cute.memref<f16, rmem, "(8,2,1):(1,8,0)">
!b = !cute.memref<f16, rmem, "(4,1,1):(1,0,0)">
!d = !cute.memref<f32, rmem, "(4,2,1):(1,4,0)">
!c = !cute.memref<f32, rmem, "(4,1,1):(1,4,0)">
func.func @f(%m: !mma, %d: !d, %a: !a, %b: !b, %c: !c) {
  // expected-error @below {{'cute.gemm' op C and D have extents (4,1,1) and (4,2,1), which differ in mode M; they must be equal}}
  cute.gemm(%m, %d, %a, %b, %c) : (!mma, !d, !a, !b, !c) -> ()
//^
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.wgmma<64x8x16, (f32,f16,f16,f32), A = smem, major = (k, k)>, atom_layout_MNK = <"(1,1,1):(0,0,0)">>
!a = !cute.memref<f16, smem, align<8>, "(((8,8),(8,2)),1,1):(((8,64),(1,512)),0,0)">
!b = !cute.memref<f16, smem, align<128>, "((8,(8,2)),1,1):((8,(1,64)),0,0)">
!d = !cute.memref<f32, rmem, "(4,1,1):(1,0,0)">
func.func @f(%m: !mma, %d: !d, %a: !a, %b: !b) {
  // expected-error @below {{'cute.gemm' op A is aligned to 8 bytes (!cute.memref<f16, smem, align<8>, "(((8,8),(8,2)),1,1):(((8,64),(1,512)),0,0)">); it must be aligned to at least 16 bytes}}
  cute.gemm(%m, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d) -> ()
//^
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.wgmma<64x8x16, (f32,f16,f16,f32), A = smem, major = (k, k)>, atom_layout_MNK = <"(1,1,1):(0,0,0)">>
!a = !cute.memref<f16, smem, align<128>, "(((8,8),(8,2)),1,2):(((8,64),(1,512)),0,4)">
!b = !cute.memref<f16, smem, align<128>, "((8,(8,2)),1,2):((8,(1,64)),0,128)">
!d = !cute.memref<f32, rmem, "(4,1,1):(1,0,0)">
func.func @f(%m: !mma, %d: !d, %a: !a, %b: !b) {
  // expected-error @below {{'cute.gemm' op mode RestK of A has a stride of 4 elements of 16 bits in (((8,8),(8,2)),1,2):(((8,64),(1,512)),0,4); strides must be multiples of 16 bytes}}
  cute.gemm(%m, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d) -> ()
//^
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.wgmma<64x8x16, (f32,f16,f16,f32), A = smem, major = (k, k)>, atom_layout_MNK = <"(1,1,1):(0,0,0)">>
!a = !cute.memref<f16, smem, align<128>, "((64,16),1,1):((?,1),0,0)">
!b = !cute.memref<f16, smem, align<128>, "((8,(8,2)),1,1):((8,(1,64)),0,0)">
!d = !cute.memref<f32, rmem, "(4,1,1):(1,0,0)">
func.func @f(%m: !mma, %d: !d, %a: !a, %b: !b) {
  // expected-error @below {{'cute.gemm' op the layout of one instruction's tile of A is not static ((64,16):(?,1)); use static extents and strides}}
  cute.gemm(%m, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d) -> ()
//^
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.wgmma<64x8x16, (f32,f16,f16,f32), A = smem, major = (k, k)>, atom_layout_MNK = <"(1,1,1):(0,0,0)">>
!a = !cute.memref<f16, smem, align<128>, "((64,16),1,1):((2,1),0,0)">
!b = !cute.memref<f16, smem, align<128>, "((8,(8,2)),1,1):((8,(1,64)),0,0)">
!d = !cute.memref<f32, rmem, "(4,1,1):(1,0,0)">
func.func @f(%m: !mma, %d: !d, %a: !a, %b: !b) {
  // expected-error @below {{'cute.gemm' op operand A, tile (M,K) = (64,16):(2,1) of !cute.memref<f16, smem, align<128>, "((64,16),1,1):((2,1),0,0)">, has no matrix descriptor: X: expected strides that are multiples of 8 elements (16 bytes), got 2 in 64:2}}
  cute.gemm(%m, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d) -> ()
//^
  return
}

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<8x8x32, (i32,i4,i4,i32)>, atom_layout_MNK = <"(1,1,1):(0,0,0)">>
!t = !cute.memref<i4, smem, align<16>, "(8,32):(32,1)">
!c = !cute.memref<i32, smem, align<16>, "(8,8):(8,1)">
func.func @f(%m: !mma, %c: !c, %a: !t, %b: !t, %i: !cute.coord<"?">) {
  // expected-error @below {{'cute.cooperative_gemm' op A has elements i4; use elements of whole bytes}}
  cute.cooperative_gemm(%m, %c, %a, %b, %i) : (!mma, !c, !t, !t, !cute.coord<"?">) -> ()
//^
  return
}
