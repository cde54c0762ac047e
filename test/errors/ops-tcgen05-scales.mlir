// Errors of the MMA of tensor memory with block scales, and of the copy of scale factors.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{an MMA with block scales cannot have A = tmem; A must be in shared memory, both operands k-major, and saturate and ws are not available}}
func.func private @f(!cute_nvgpu.atom.tcgen05_mma<128x64x32, (f32,f8E4M3FN,f8E4M3FN,f32), A = tmem, kind = mxf8f6f4>)

// -----

// expected-error @below {{an MMA with block scales cannot have major = (k, mn) and saturate; A must be in shared memory}}
func.func private @f(!cute_nvgpu.atom.tcgen05_mma<128x64x32, (f32,f8E4M3FN,f8E4M3FN,f32), major = (k, mn), saturate, kind = mxf8f6f4>)

// -----

// expected-error @below {{'mxf8' is not a kind of tcgen05.mma with block scales; use one of mxf8f6f4, mxf4, mxf4nvf4}}
func.func private @f(!cute_nvgpu.atom.tcgen05_mma<128x64x32, (f32,f8E4M3FN,f8E4M3FN,f32), kind = mxf8>)

// -----

// expected-error @below {{kind mxf4 has no D, A, B = f32, f8E4M3FN, f8E4M3FN; use f32 and f4E2M1FN}}
func.func private @f(!cute_nvgpu.atom.tcgen05_mma<128x64x64, (f32,f8E4M3FN,f8E4M3FN,f32), kind = mxf4>)

// -----

// expected-error @below {{kind mxf8f6f4 has no scale factors sf = ue4m3, vec = 16; use sf = f8E8M0FNU, vec = 32}}
func.func private @f(!cute_nvgpu.atom.tcgen05_mma<128x64x32, (f32,f8E4M3FN,f8E4M3FN,f32), kind = mxf8f6f4, sf = ue4m3, vec = 16>)

// -----

// expected-error @below {{the shape is 64x64x32 with cta_group 1; kind mxf8f6f4 needs M of 128 (or 256 with cta_group 2), N a multiple of 8 (16 with cta_group 2) up to 256, and K of 32}}
func.func private @f(!cute_nvgpu.atom.tcgen05_mma<64x64x32, (f32,f8E4M3FN,f8E4M3FN,f32), kind = mxf8f6f4>)

// -----

!d = !cute.memref<f32, tmem, "(128,64):(65536,1)">
!a = !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(128,32):(128,1)">
!b = !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(64,32):(128,1)">
!p = !cute.ptr<f32, tmem, align<16>>
!q = !cute.ptr<f32, smem, align<16>>
!mma = !cute_nvgpu.atom.tcgen05_mma<128x64x32, (f32,f8E4M3FN,f8E4M3FN,f32), kind = mxf8f6f4>
func.func @f(%d: !d, %a: !a, %b: !b, %p: !p) {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_mma' op the atom !cute_nvgpu.atom.tcgen05_mma<128x64x32, (f32,f8E4M3FN,f8E4M3FN,f32), A = smem, major = (k, k), kind = mxf8f6f4, sf = f8E8M0FNU, vec = 32> has scale factors; use cute_nvgpu.arch.tcgen05_scaled_mma}}
  cute_nvgpu.arch.tcgen05_mma(%d, %a, %b) {accumulate = true, atom = !mma} : (!d, !a, !b) -> ()
  return
}

// -----

!d = !cute.memref<f32, tmem, "(128,64):(65536,1)">
!a = !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(128,32):(128,1)">
!b = !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(64,32):(128,1)">
!p = !cute.ptr<f32, tmem, align<16>>
!q = !cute.ptr<f32, smem, align<16>>
!mma = !cute_nvgpu.atom.tcgen05_mma<128x64x32, (f32,f8E4M3FN,f8E4M3FN,f32)>
func.func @f(%d: !d, %a: !a, %b: !b, %p: !p) {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_scaled_mma' op the atom !cute_nvgpu.atom.tcgen05_mma<128x64x32, (f32,f8E4M3FN,f8E4M3FN,f32), A = smem, major = (k, k)> has no scale factors; use cute_nvgpu.arch.tcgen05_mma}}
  cute_nvgpu.arch.tcgen05_scaled_mma(%d, %a, %b, %p, %p) {accumulate = true, atom = !mma} : (!d, !a, !b, !p, !p) -> ()
  return
}

// -----

!d = !cute.memref<f32, tmem, "(128,64):(65536,1)">
!a = !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(128,32):(128,1)">
!b = !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(64,32):(128,1)">
!p = !cute.ptr<f32, tmem, align<16>>
!q = !cute.ptr<f32, smem, align<16>>
!mma = !cute_nvgpu.atom.tcgen05_mma<128x64x32, (f32,f8E4M3FN,f8E4M3FN,f32), kind = mxf8f6f4>
func.func @f(%d: !d, %a: !a, %b: !b, %p: !p, %q: !q) {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_scaled_mma' op operand #4, SFB, must be a pointer to tmem, got !cute.ptr<f32, smem, align<16>>}}
  cute_nvgpu.arch.tcgen05_scaled_mma(%d, %a, %b, %p, %q) {accumulate = true, atom = !mma} : (!d, !a, !b, !p, !q) -> ()
  return
}

// -----

!d = !cute.memref<f32, tmem, "(128,64):(65536,1)">
!a = !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(128,32):(128,1)">
!b = !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(64,32):(128,1)">
!p = !cute.ptr<f32, tmem, align<16>>
!q = !cute.ptr<f32, smem, align<16>>
!mma = !cute_nvgpu.atom.tcgen05_mma<128x64x32, (f32,f8E4M3FN,f8E4M3FN,f32), kind = mxf8f6f4>
func.func @f(%d: !d, %a: !a, %b: !b, %p: !p, %x: i32) {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_scaled_mma' op operand #5 is i32 and accumulate is true; a flag is i1, and needs accumulate = true}}
  cute_nvgpu.arch.tcgen05_scaled_mma(%d, %a, %b, %p, %p, %x) {accumulate = true, atom = !mma} : (!d, !a, !b, !p, !p, i32) -> ()
  return
}

// -----

!d = !cute.memref<f32, tmem, "(128,64):(65536,1)">
!a = !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(128,32):(128,1)">
!b = !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(64,32):(128,1)">
!p = !cute.ptr<f32, tmem, align<16>>
!q = !cute.ptr<f32, smem, align<16>>
!mma = !cute_nvgpu.atom.tcgen05_mma<128x64x32, (f32,f8E4M3FN,f8E4M3FN,f32), kind = mxf8f6f4>
func.func @f(%d: !d, %a: !a, %b: !b, %p: !p) {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_scaled_mma' op property sf_b is 4; an MMA with K / vec = 1 needs one of 0, 1, 2, 3}}
  cute_nvgpu.arch.tcgen05_scaled_mma(%d, %a, %b, %p, %p) {accumulate = true, sf_b = 4 : i32, atom = !mma} : (!d, !a, !b, !p, !p) -> ()
  return
}

// -----

!d = !cute.memref<f32, tmem, "(128,64):(65536,1)">
!a = !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(128,32):(128,1)">
!b = !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(64,32):(128,1)">
!p = !cute.ptr<f32, tmem, align<16>>
!q = !cute.ptr<f32, smem, align<16>>
!mma = !cute_nvgpu.atom.tcgen05_mma<128x64x64, (f32,f4E2M1FN,f4E2M1FN,f32), kind = mxf4nvf4>
func.func @f(%d: !d, %a: !a, %b: !b, %p: !p) {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_scaled_mma' op operand A has elements f8E4M3FN; the atom !cute_nvgpu.atom.tcgen05_mma<128x64x64, (f32,f4E2M1FN,f4E2M1FN,f32), A = smem, major = (k, k), kind = mxf4nvf4, sf = ue4m3, vec = 16> needs f4E2M1FN}}
  cute_nvgpu.arch.tcgen05_scaled_mma(%d, %a, %b, %p, %p) {accumulate = true, atom = !mma} : (!d, !a, !b, !p, !p) -> ()
  return
}

// -----

!d = !cute.memref<f32, tmem, "(128,64):(65536,1)">
!a = !cute.memref<i8, smem, align<1024>, S<3,4,3>, "(128,32):(128,1)">
!b = !cute.memref<i8, smem, align<1024>, S<3,4,3>, "(64,16):(128,1)">
!p = !cute.ptr<f32, tmem, align<16>>
!q = !cute.ptr<f32, smem, align<16>>
!mma = !cute_nvgpu.atom.tcgen05_mma<128x64x64, (f32,f4E2M1FN,f4E2M1FN,f32), kind = mxf4nvf4>
func.func @f(%d: !d, %a: !a, %b: !b, %p: !p) {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_scaled_mma' op operand B has (64,16) bytes; !cute_nvgpu.atom.tcgen05_mma<128x64x64, (f32,f4E2M1FN,f4E2M1FN,f32), A = smem, major = (k, k), kind = mxf4nvf4, sf = ue4m3, vec = 16> needs (64,32)}}
  cute_nvgpu.arch.tcgen05_scaled_mma(%d, %a, %b, %p, %p) {accumulate = true, atom = !mma} : (!d, !a, !b, !p, !p) -> ()
  return
}

// -----

!p = !cute.ptr<f32, tmem, align<16>>
!q = !cute.ptr<i8, smem, align<8>>
func.func @f(%p: !p, %q: !q) {
  // expected-error @below {{'cute_nvgpu.arch.tmem_copy' op operand #1, src, is !cute.ptr<i8, smem, align<8>>; use a pointer aligned to 16 bytes, without a swizzle}}
  cute_nvgpu.arch.tmem_copy(%p, %q) : (!p, !q) -> ()
  return
}

// -----

!d = !cute.memref<f32, tmem, "(128,64):(65536,1)">
!a = !cute.memref<i8, gmem, "(128,32):(128,1)">
!b = !cute.memref<i8, smem, align<1024>, S<3,4,3>, "(64,32):(128,1)">
!p = !cute.ptr<f32, tmem, align<16>>
!mma = !cute_nvgpu.atom.tcgen05_mma<128x64x64, (f32,f4E2M1FN,f4E2M1FN,f32), kind = mxf4nvf4>
func.func @f(%d: !d, %a: !a, %b: !b, %p: !p) {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_scaled_mma' op operand A is !cute.memref<i8, gmem, "(128,32):(128,1)">; pass a tensor in smem}}
  cute_nvgpu.arch.tcgen05_scaled_mma(%d, %a, %b, %p, %p) {accumulate = true, atom = !mma} : (!d, !a, !b, !p, !p) -> ()
  return
}

// -----

!d = !cute.memref<f32, tmem, "((128,64)):((65536,1))">
!a = !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "((128,32)):((128,1))">
!b = !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "((64,32)):((128,1))">
!s = !cute.memref<f8E8M0FNU, tmem, "((128)):((1))">
!mma = !cute_nvgpu.atom.tcgen05_mma<128x64x32, (f32,f8E4M3FN,f8E4M3FN,f32), kind = mxf8f6f4>
func.func @f(%m: !mma, %d: !d, %a: !a, %b: !b, %s: !s) {
  // expected-error @below {{'cute.scaled_gemm' op mode V of SFA is (128):(1) of !cute.memref<f8E8M0FNU, tmem, "((128)):((1))">; !cute_nvgpu.atom.tcgen05_mma<128x64x32, (f32,f8E4M3FN,f8E4M3FN,f32), A = smem, major = (k, k), kind = mxf8f6f4, sf = f8E8M0FNU, vec = 32> needs ((32,4),1):((262144,4),1), or more rows, with modes of stride 0 in any place}}
  cute.scaled_gemm(%m, %d, %a, %b, %s, %s) : (!mma, !d, !a, !b, !s, !s) -> ()
  return
}

// -----

!d = !cute.memref<f32, tmem, "((128,64),1,1):((65536,1),0,0)">
!a = !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "((128,32),1,2):((128,1),0,32)">
!b = !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "((64,32),1,2):((128,1),0,32)">
!s = !cute.memref<f8E8M0FNU, tmem, "((32,4),1,2):((262144,4),0,?)">
!mma = !cute_nvgpu.atom.tcgen05_mma<128x64x32, (f32,f8E4M3FN,f8E4M3FN,f32), kind = mxf8f6f4>
func.func @f(%m: !mma, %d: !d, %a: !a, %b: !b, %s: !s) {
  // expected-error @below {{'cute.scaled_gemm' op the layout of SFA is not static (((32,4),1,2):((262144,4),0,?)); use static strides}}
  cute.scaled_gemm(%m, %d, %a, %b, %s, %s) : (!mma, !d, !a, !b, !s, !s) -> ()
  return
}

// -----

// expected-error @below {{tcgen05.cp has no shape 32x64b; use one of 128x256b, 128x128b, 4x256b, 64x128b_warpx2_02_13, 64x128b_warpx2_01_23, 32x128b_warpx4}}
func.func private @f(!cute_nvgpu.atom.tmem_copy<f8E8M0FNU, 32x64b>)

// -----

// expected-error @below {{cta_group is 3; use 1, or 2 for a pair of blocks}}
func.func private @f(!cute_nvgpu.atom.tmem_copy<f8E8M0FNU, 32x128b_warpx4, cta_group = 3>)

// -----

// expected-error @below {{the element f4E2M1FN has 4 bits; use one of 8, 16 or 32}}
func.func private @f(!cute_nvgpu.atom.tmem_copy<f4E2M1FN, 32x128b_warpx4>)

// -----

!cp = !cute_nvgpu.atom.tmem_copy<i8, 32x128b_warpx4>
!s = !cute.memref<i8, smem, align<512>, "(512):(1)">
!t = !cute.memref<i8, tmem, align<16>, "((16,32)):((262144,1))">
func.func @f(%c: !cp, %s: !s, %t: !t) {
  // expected-error @below {{'cute.copy' op one copy with !cute_nvgpu.atom.tmem_copy<i8, 32x128b_warpx4> writes the elements (16,32):(1,262144) of tensor memory, got (16,32):(262144,1) in mode 0 of ((16,32)):((262144,1))}}
  cute.copy(%c, %s, %t) : (!cp, !s, !t) -> ()
  return
}

// -----

!cp = !cute_nvgpu.atom.tmem_copy<i8, 32x128b_warpx4>
!s = !cute.memref<i8, smem, align<512>, "(512,2):(1,512)">
!t = !cute.memref<i8, tmem, align<16>, "((16,32),2):((1,262144),18)">
func.func @f(%c: !cp, %s: !s, %t: !t) {
  // expected-error @below {{'cute.copy' op mode 1 of the destination has stride 18 in ((16,32),2):((1,262144),18); use multiples of 4 (columns) below 262144 (a lane)}}
  cute.copy(%c, %s, %t) : (!cp, !s, !t) -> ()
  return
}

// -----

// expected-error @below {{the shape is 128x24x96 with cta_group 1; kind mxf4 needs M of 128 (or 256 with cta_group 2), N a multiple of 8 (16 with cta_group 2) up to 256, and K of 64, or of 96 on sm_103a, with N a multiple of 16 (32)}}
func.func private @f(!cute_nvgpu.atom.tcgen05_mma<128x24x96, (f32,f4E2M1FN,f4E2M1FN,f32), kind = mxf4>)

// -----

!d = !cute.memref<f32, tmem, "((128,64)):((65536,1))">
!a = !cute.memref<f4E2M1FN, smem, align<1024>, "((((8,16),(32,3)))):((((32,256),(1,4096))))">
!b = !cute.memref<f4E2M1FN, smem, align<1024>, "(((8,8),(32,3))):(((32,256),(1,2048)))">
!s = !cute.memref<f8E8M0FNU, tmem, align<16>, "(((32,4),3)):(((262144,4),1))">
!mma = !cute_nvgpu.atom.tcgen05_mma<128x64x96, (f32,f4E2M1FN,f4E2M1FN,f32), kind = mxf4>
func.func @f(%m: !mma, %d: !d, %a: !a, %b: !b, %s: !s) {
  // expected-error @below {{has no matrix descriptor: expected a layout of rank 2 (X,K), got (((8,16),(16,3))):(((16,128),(1,2048)))}}
  cute.scaled_gemm(%m, %d, %a, %b, %s, %s) : (!mma, !d, !a, !b, !s, !s) -> ()
  return
}

// -----

!d = !cute.memref<f32, tmem, "((128,64)):((65536,1))">
!a = !cute.memref<f4E2M1FN, smem, align<1024>, "(((8,16),(32,3))):(((32,256),(1,4096)))">
!b = !cute.memref<f4E2M1FN, smem, align<1024>, "(((8,8),(32,3))):(((32,256),(1,2048)))">
!s = !cute.memref<f8E8M0FNU, tmem, align<16>, "(((32,4),3)):(((262144,4),1))">
!mma = !cute_nvgpu.atom.tcgen05_mma<128x64x96, (f32,f4E2M1FN,f4E2M1FN,f32), kind = mxf4>
func.func @f(%m: !mma, %d: !d, %a: !a, %b: !b, %s: !s) {
  // expected-error @below {{the 3 factors of a row that !cute_nvgpu.atom.tcgen05_mma<128x64x96, (f32,f4E2M1FN,f4E2M1FN,f32), A = smem, major = (k, k), kind = mxf4, sf = f8E8M0FNU, vec = 32> reads lie in two columns, which no layout expresses; use cute_nvgpu.arch.tcgen05_scaled_mma}}
  cute.scaled_gemm(%m, %d, %a, %b, %s, %s) : (!mma, !d, !a, !b, !s, !s) -> ()
  return
}

// -----

!d = !cute.memref<f32, tmem, "(128,64):(65536,1)">
!a = !cute.memref<i8, smem, align<1024>, S<3,4,3>, "(128,48):(128,1)">
!b = !cute.memref<i8, smem, align<1024>, "((8,8),(16,3)):((16,128),(1,1024))">
!p = !cute.ptr<f32, tmem, align<16>>
func.func @f(%d: !d, %a: !a, %b: !b, %p: !p) {
  // expected-error @below {{operand A, tile (M,K) = (128,48):(128,1) of !cute.memref<i8, smem, align<1024>, S<3,4,3>, "(128,48):(128,1)">, has no matrix descriptor: swizzle: expected a tile without a swizzle for K of 96}}
  cute_nvgpu.arch.tcgen05_scaled_mma(%d, %a, %b, %p, %p) {accumulate = false, atom = !cute_nvgpu.atom.tcgen05_mma<128x64x96, (f32,f4E2M1FN,f4E2M1FN,f32), kind = mxf4>} : (!d, !a, !b, !p, !p) -> ()
  return
}

// -----

!d = !cute.memref<f32, tmem, "(128,64):(65536,1)">
!a = !cute.memref<i8, smem, align<1024>, "((8,8),(16,6)):((16,128),(1,1024))">
!b = !cute.memref<i8, smem, align<1024>, "((8,8),(16,3)):((16,128),(1,1024))">
!p = !cute.ptr<f32, tmem, align<16>>
func.func @f(%d: !d, %a: !a, %b: !b, %p: !p) {
  // expected-error @below {{K: expected 48 bytes, got 96 in ((8,8),(16,6)):((16,128),(1,1024))}}
  cute_nvgpu.arch.tcgen05_scaled_mma(%d, %a, %b, %p, %p) {accumulate = false, atom = !cute_nvgpu.atom.tcgen05_mma<128x64x96, (f32,f4E2M1FN,f4E2M1FN,f32), kind = mxf4>} : (!d, !a, !b, !p, !p) -> ()
  return
}
