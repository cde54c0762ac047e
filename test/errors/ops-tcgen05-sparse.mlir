// Errors of the MMA of tensor memory with a sparse A.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{the shape is 64x64x32 with cta_group 1; kind f16 with a sparse A needs M of 128, N a multiple of 16 up to 256, and K of 32}}
func.func private @f(!cute_nvgpu.atom.tcgen05_mma_sp<64x64x32, (f32,f16,f16,f32)>)

// -----

// expected-error @below {{cta_group is 3; use 1, or 2 for a pair of blocks}}
func.func private @f(!cute_nvgpu.atom.tcgen05_mma_sp<128x64x32, (f32,f16,f16,f32), cta_group = 3>)

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.tcgen05_mma_sp<128x64x32, (f32,f16,f16,f32)>, atom_layout_MNK = <"(1,1,1):(0,0,0)">>
func.func @f(%m: !mma, %s: !cute.shape<"((128,2),1,4,2)">) {
  // expected-error @below {{the partition of E has the shape ((128,2),1,4,2); use (V,RestM,RestK)}}
  %f = cute.tiled.mma.make_fragment_E(%m, %s) : (!mma, !cute.shape<"((128,2),1,4,2)">) -> !cute.memref<i16, tmem, align<16>, "(((8,2,8),2),1,4):(((131072,1,2097152),1048576),8,2)">
  return
}

// -----

!d = !cute.memref<f32, tmem, "((128,64)):((65536,1))">
!a = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((128,16)):((64,1))">
!b = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,32)):((64,1))">
!e = !cute.memref<i16, tmem, align<16>, "((128,2)):((131072,1))">
!mma = !cute_nvgpu.atom.tcgen05_mma_sp<128x64x32, (f32,f16,f16,f32)>
func.func @f(%m: !mma, %d: !d, %a: !a, %b: !b, %e: !e) {
  // expected-error @below {{mode V of E is (128,2):(131072,1) of !cute.memref<i16, tmem, align<16>, "((128,2)):((131072,1))">; !cute_nvgpu.atom.tcgen05_mma_sp<128x64x32, (f32,f16,f16,f32), A = smem, major = (k, k)> needs ((8,2,8),2):((131072,1,2097152),1048576), as cute.tiled.mma.make_fragment_E returns it}}
  cute.sparse_gemm(%m, %d, %a, %b, %e) : (!mma, !d, !a, !b, !e) -> ()
  return
}

// -----

!d = !cute.memref<f32, tmem, "((128,64)):((65536,1))">
!a = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((128,16)):((64,1))">
!b = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,32)):((64,1))">
!e = !cute.memref<i16, tmem, align<8>, "(((8,2,8),2)):(((131072,1,2097152),1048576))">
!mma = !cute_nvgpu.atom.tcgen05_mma_sp<128x64x32, (f32,f16,f16,f32)>
func.func @f(%m: !mma, %d: !d, %a: !a, %b: !b, %e: !e) {
  // expected-error @below {{E is aligned to 8 bytes (!cute.memref<i16, tmem, align<8>, "(((8,2,8),2)):(((131072,1,2097152),1048576))">); it must be aligned to 16 bytes, 4 columns}}
  cute.sparse_gemm(%m, %d, %a, %b, %e) : (!mma, !d, !a, !b, !e) -> ()
  return
}

// -----

!d = !cute.memref<f32, tmem, "(128,64):(65536,1)">
!a = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">
!b = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,32):(64,1)">
!e = !cute.ptr<i16, smem, align<16>>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e) {
  // expected-error @below {{operand #3, E, must be a pointer to tmem, got !cute.ptr<i16, smem, align<16>>}}
  cute_nvgpu.arch.tcgen05_mma_sp(%d, %a, %b, %e) {accumulate = false, atom = !cute_nvgpu.atom.tcgen05_mma_sp<128x64x32, (f32,f16,f16,f32)>} : (!d, !a, !b, !e) -> ()
  return
}

// -----

!d = !cute.memref<f32, tmem, "(128,64):(65536,1)">
!a = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">
!b = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,32):(64,1)">
!e = !cute.ptr<i16, tmem, align<4>>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e) {
  // expected-error @below {{operand #3, E, is aligned to 4 bytes (!cute.ptr<i16, tmem, align<4>>); it must be aligned to 8 bytes, 2 columns}}
  cute_nvgpu.arch.tcgen05_mma_sp(%d, %a, %b, %e) {accumulate = false, atom = !cute_nvgpu.atom.tcgen05_mma_sp<128x64x32, (f32,f16,f16,f32)>} : (!d, !a, !b, !e) -> ()
  return
}

// -----

!d = !cute.memref<f32, tmem, "(128,64):(65536,1)">
!a = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">
!b = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,32):(64,1)">
!e = !cute.ptr<i16, tmem, align<16>>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %x: i1) {
  // expected-error @below {{operand #4 is i1 and accumulate is false; a flag is i1, and needs accumulate = true}}
  cute_nvgpu.arch.tcgen05_mma_sp(%d, %a, %b, %e, %x) {accumulate = false, atom = !cute_nvgpu.atom.tcgen05_mma_sp<128x64x32, (f32,f16,f16,f32)>} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

!d = !cute.memref<f32, tmem, "(128,64):(65536,1)">
!a = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">
!b = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,32):(64,1)">
!e = !cute.ptr<i16, tmem, align<16>>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e) {
  // expected-error @below {{property selector is 2; an MMA on f16 needs 0 to 1}}
  cute_nvgpu.arch.tcgen05_mma_sp(%d, %a, %b, %e) {accumulate = false, selector = 2 : i32, atom = !cute_nvgpu.atom.tcgen05_mma_sp<128x64x32, (f32,f16,f16,f32)>} : (!d, !a, !b, !e) -> ()
  return
}

// -----

!d = !cute.memref<f32, tmem, "(128,64):(65536,1)">
!a = !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(128,32):(128,1)">
!b = !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(64,64):(128,1)">
!e = !cute.ptr<i32, tmem, align<16>>
!s = !cute.ptr<f32, tmem, align<16>>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %s: !s) {
  // expected-error @below {{property sf_a is 4; an MMA with K / vec = 1 needs one of 0, 1, 2, 3}}
  cute_nvgpu.arch.tcgen05_mma_sp(%d, %a, %b, %e, %s, %s) {accumulate = false, sf_a = 4 : i32, atom = !cute_nvgpu.atom.tcgen05_mma_sp<128x64x64, (f32,f8E4M3FN,f8E4M3FN,f32), kind = mxf8f6f4>} : (!d, !a, !b, !e, !s, !s) -> ()
  return
}
