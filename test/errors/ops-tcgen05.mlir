// Errors of tensor memory and of its MMA.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{K is 8; use 16 for kind f16}}
func.func private @f(!cute_nvgpu.atom.tcgen05_mma<128x64x8, (f32,f16,f16,f32)>)

// -----

// expected-error @below {{C has elements f16; they must be those of D, f32}}
func.func private @f(!cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f16)>)

// -----

// expected-error @below {{tcgen05.mma has no D, A, B = f32, f16, bf16; its kinds are f16: A and B f16 with D f16 or f32, or A and B bf16 with D f32; tf32: A and B tf32 with D f32; f8f6f4: A and B each one of f8E4M3FN, f8E5M2, f6E2M3FN, f6E3M2FN, f4E2M1FN with D f32 or f16; i8: A and B each i8 or ui8 with D i32}}
func.func private @f(!cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,bf16,f32)>)

// -----

// expected-error @below {{N is 24; use one of 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256 for kind f16, M = 128, cta_group 1 and A in tmem}}
func.func private @f(!cute_nvgpu.atom.tcgen05_mma<128x24x16, (f32,f16,f16,f32), A = tmem>)

// -----

// expected-error @below {{negated operands must be floating-point, got i8 and i8}}
func.func private @f(!cute_nvgpu.atom.tcgen05_mma<128x64x32, (i32,i8,i8,i32), A = smem, major = (k, k), negate_a>)

// -----

// expected-error @below {{'rmem' is not supported here; write smem or tmem}}
func.func private @f(!cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32), A = rmem>)

// -----

// expected-error @below {{the majors of A in tensor memory and B of type f16 are mn and k; use k}}
func.func private @f(!cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32), A = tmem, major = (mn, k)>)

// -----

// expected-error @below {{cta_group is 3; use 1, or 2 for a pair of blocks}}
func.func private @f(!cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32), cta_group = 3>)

// -----

// expected-error @below {{saturate needs integers, got D of type f32}}
func.func private @f(!cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32), A = smem, major = (k, k), saturate>)

// -----

func.func @f(%d: !cute.memref<f32, tmem, "(128,64):(64,1)">, %a: !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">, %b: !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">) {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_mma' op the tile of D in tensor memory is (128,64):(64,1) of !cute.memref<f32, tmem, "(128,64):(64,1)">; !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32), A = smem, major = (k, k)> needs (128,64):(65536,1)}}
  cute_nvgpu.arch.tcgen05_mma(%d, %a, %b) {accumulate = true, atom = !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32)>} : (!cute.memref<f32, tmem, "(128,64):(64,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">) -> ()
  return
}

// -----

func.func @f(%d: !cute.memref<f32, smem, "(128,64):(64,1)">, %a: !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">, %b: !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">) {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_mma' op D is in smem; the atom !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32), A = smem, major = (k, k)> needs it in tmem}}
  cute_nvgpu.arch.tcgen05_mma(%d, %a, %b) {accumulate = true, atom = !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32)>} : (!cute.memref<f32, smem, "(128,64):(64,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">) -> ()
  return
}

// -----

func.func @f(%d: !cute.memref<f32, tmem, "(64,64):(65536,1)">, %a: !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">, %b: !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">) {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_mma' op D has 4096 values in (64,64):(65536,1); the atom !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32), A = smem, major = (k, k)> needs 8192}}
  cute_nvgpu.arch.tcgen05_mma(%d, %a, %b) {accumulate = true, atom = !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32)>} : (!cute.memref<f32, tmem, "(64,64):(65536,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">) -> ()
  return
}

// -----

func.func @f(%d: !cute.memref<f32, tmem, "(128,64):(65536,1)">, %a: !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(1,128)">, %b: !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">) {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_mma' op operand A, tile (M,K) = (128,16):(1,128) of !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(1,128)">, has no matrix descriptor: X: expected strides that are multiples of 8 elements (16 bytes), got 1 in 128:1}}
  cute_nvgpu.arch.tcgen05_mma(%d, %a, %b) {accumulate = true, atom = !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32)>} : (!cute.memref<f32, tmem, "(128,64):(65536,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(1,128)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">) -> ()
  return
}

// -----

func.func @f(%d: !cute.memref<f32, tmem, "(128,64):(65536,1)">, %a: !cute.memref<f32, smem, align<1024>, S<3,4,3>, "(128,8):(32,1)">, %b: !cute.memref<f32, smem, align<1024>, S<3,4,3>, "((32,2),8):((1,256),32)">) {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_mma' op operand B, tile (N,K) = ((32,2),8):((1,256),32) of !cute.memref<f32, smem, align<1024>, S<3,4,3>, "((32,2),8):((1,256),32)">, has no matrix descriptor: swizzle: expected the swizzle S<2,5,2> on bytes for an mn-major operand of 32-bit elements}}
  cute_nvgpu.arch.tcgen05_mma(%d, %a, %b) {accumulate = true, atom = !cute_nvgpu.atom.tcgen05_mma<128x64x8, (f32,tf32,tf32,f32), A = smem, major = (k, mn)>} : (!cute.memref<f32, tmem, "(128,64):(65536,1)">, !cute.memref<f32, smem, align<1024>, S<3,4,3>, "(128,8):(32,1)">, !cute.memref<f32, smem, align<1024>, S<3,4,3>, "((32,2),8):((1,256),32)">) -> ()
  return
}

// -----

func.func @f(%d: !cute.memref<f32, tmem, "(128,64):(65536,1)">, %a: !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">, %b: !cute.memref<f16, smem, align<1024>, S<2,5,2>, "(64,16):(64,1)">) {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_mma' op operand B, tile (N,K) = (64,16):(64,1) of !cute.memref<f16, smem, align<1024>, S<2,5,2>, "(64,16):(64,1)">, has no matrix descriptor: swizzle: expected a swizzle that keeps 16 bytes together for k-major elements of 16 bits, got S<2,5,2>}}
  cute_nvgpu.arch.tcgen05_mma(%d, %a, %b) {accumulate = true, atom = !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32)>} : (!cute.memref<f32, tmem, "(128,64):(65536,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">, !cute.memref<f16, smem, align<1024>, S<2,5,2>, "(64,16):(64,1)">) -> ()
  return
}

// -----

func.func @f(%d: !cute.memref<f32, tmem, "(128,64):(65536,1)">, %a: !cute.memref<f4E2M1FN, smem, align<1024>, "(128,32):(32,1)">, %b: !cute.memref<i8, smem, align<1024>, S<3,4,3>, "(64,32):(128,1)">) {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_mma' op operand A has elements f4E2M1FN; the atom !cute_nvgpu.atom.tcgen05_mma<128x64x32, (f32,f4E2M1FN,f4E2M1FN,f32), A = smem, major = (k, k)> needs i8, 16 bytes for 16 elements of f4E2M1FN}}
  cute_nvgpu.arch.tcgen05_mma(%d, %a, %b) {accumulate = true, atom = !cute_nvgpu.atom.tcgen05_mma<128x64x32, (f32,f4E2M1FN,f4E2M1FN,f32)>} : (!cute.memref<f32, tmem, "(128,64):(65536,1)">, !cute.memref<f4E2M1FN, smem, align<1024>, "(128,32):(32,1)">, !cute.memref<i8, smem, align<1024>, S<3,4,3>, "(64,32):(128,1)">) -> ()
  return
}

// -----

func.func @f(%d: !cute.memref<f32, tmem, "(128,64):(65536,1)">, %a: !cute.memref<f16, tmem, "(128,16):(131072,2)">, %b: !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">) {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_mma' op the tile of A in tensor memory is (128,16):(131072,2) of !cute.memref<f16, tmem, "(128,16):(131072,2)">; !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32), A = tmem, major = (k, k)> needs (128,16):(131072,1)}}
  cute_nvgpu.arch.tcgen05_mma(%d, %a, %b) {accumulate = true, atom = !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32), A = tmem>} : (!cute.memref<f32, tmem, "(128,64):(65536,1)">, !cute.memref<f16, tmem, "(128,16):(131072,2)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">) -> ()
  return
}

// -----

func.func @f(%d: !cute.memref<f32, tmem, "(128,64):(65536,1)">, %a: !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">, %b: !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">, %x0: i32) {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_mma' op the operands after B are i32; use a mask of lanes (vector<4xi32>) and a flag (i1), each optional, in this order}}
  cute_nvgpu.arch.tcgen05_mma(%d, %a, %b, %x0) {accumulate = true, atom = !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32)>} : (!cute.memref<f32, tmem, "(128,64):(65536,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">, i32) -> ()
  return
}

// -----

func.func @f(%d: !cute.memref<f32, tmem, "(128,64):(65536,1)">, %a: !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">, %b: !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">, %x0: i1) {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_mma' op accumulate must be true if there is a flag operand, got false}}
  cute_nvgpu.arch.tcgen05_mma(%d, %a, %b, %x0) {accumulate = false, atom = !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32)>} : (!cute.memref<f32, tmem, "(128,64):(65536,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">, i1) -> ()
  return
}

// -----

func.func @f(%d: !cute.memref<f32, tmem, "(128,64):(65536,1)">, %a: !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">, %b: !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">, %x0: vector<8xi32>) {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_mma' op the operands after B are vector<8xi32>; use a mask of lanes (vector<4xi32>) and a flag (i1), each optional, in this order}}
  cute_nvgpu.arch.tcgen05_mma(%d, %a, %b, %x0) {accumulate = true, atom = !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32)>} : (!cute.memref<f32, tmem, "(128,64):(65536,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">, vector<8xi32>) -> ()
  return
}

// -----

func.func @f(%d: !cute.memref<f32, tmem, "(128,64):(65536,1)">, %a: !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">, %b: !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">) {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_mma' op property scale_d is 16 : i32; use 0 to 15 (i32)}}
  cute_nvgpu.arch.tcgen05_mma(%d, %a, %b) {accumulate = true, scale_d = 16 : i32, atom = !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32)>} : (!cute.memref<f32, tmem, "(128,64):(65536,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">) -> ()
  return
}

// -----

func.func @f(%d: !cute.memref<f32, tmem, "(128,64):(65536,1)">, %a: !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(128,32):(128,1)">, %b: !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(64,32):(128,1)">) {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_mma' op property scale_d is 2; kind f8f6f4 does not scale D, use 0}}
  cute_nvgpu.arch.tcgen05_mma(%d, %a, %b) {accumulate = true, scale_d = 2 : i32, atom = !cute_nvgpu.atom.tcgen05_mma<128x64x32, (f32,f8E4M3FN,f8E4M3FN,f32)>} : (!cute.memref<f32, tmem, "(128,64):(65536,1)">, !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(128,32):(128,1)">, !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(64,32):(128,1)">) -> ()
  return
}

// -----

func.func @f(%d: !cute.memref<f32, tmem, "(128,64):(65536,1)">, %a: !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">, %b: !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">) {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_mma' op property collector is "keep"; use one of "discard", "lastuse", "fill", "use"}}
  cute_nvgpu.arch.tcgen05_mma(%d, %a, %b) {accumulate = true, collector = "keep", atom = !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32)>} : (!cute.memref<f32, tmem, "(128,64):(65536,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">) -> ()
  return
}

// -----

func.func @f(%s: !cute.ptr<i32, smem>) {
  // expected-error @below {{'cute_nvgpu.arch.tmem_alloc' op property columns is 48 : i32; use 32, 64, 128, 256 or 512 (i32)}}
  cute_nvgpu.arch.tmem_alloc(%s) {columns = 48 : i32} : (!cute.ptr<i32, smem>) -> ()
  return
}

// -----

func.func @f(%s: !cute.ptr<f32, smem>) {
  // expected-error @below {{'cute_nvgpu.arch.tmem_alloc' op operand #0 (slot) must be !cute.ptr<i32, smem>, which receives an address, got !cute.ptr<f32, smem>}}
  cute_nvgpu.arch.tmem_alloc(%s) {columns = 64 : i32} : (!cute.ptr<f32, smem>) -> ()
  return
}

// -----

func.func @f(%s: !cute.ptr<f32, smem>) {
  // expected-error @below {{'cute_nvgpu.arch.tmem_dealloc' op operand #0 (ptr) must be a pointer to tmem, got !cute.ptr<f32, smem>}}
  cute_nvgpu.arch.tmem_dealloc(%s) {columns = 64 : i32} : (!cute.ptr<f32, smem>) -> ()
  return
}

// -----

func.func @f(%p: !cute.ptr<f32, tmem, align<128>>) {
  // expected-error @below {{'cute_nvgpu.arch.tmem_dealloc' op property cta_group is 3 : i32; use 1, or 2 for a pair of blocks (i32)}}
  cute_nvgpu.arch.tmem_dealloc(%p) {columns = 64 : i32, cta_group = 3 : i32} : (!cute.ptr<f32, tmem, align<128>>) -> ()
  return
}

// -----

func.func @f() {
  // expected-error @below {{'cute_nvgpu.arch.tmem_wait' op property kind is "both"; use one of 'load', 'store'}}
  cute_nvgpu.arch.tmem_wait() {kind = "both"} : () -> ()
  return
}

// -----

func.func @f() {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_fence' op property kind is missing; use one of 'before', 'after'}}
  cute_nvgpu.arch.tcgen05_fence() : () -> ()
  return
}

// -----

func.func @f(%b: !cute.ptr<i32, smem>) {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_commit' op operand #0 (bar) must be !cute.ptr<i64, smem>, an mbarrier, got !cute.ptr<i32, smem>}}
  cute_nvgpu.arch.tcgen05_commit(%b) : (!cute.ptr<i32, smem>) -> ()
  return
}

// -----

func.func @f(%b: !cute.ptr<i64, smem>, %m: i32) {
  // expected-error @below {{'cute_nvgpu.arch.tcgen05_commit' op operand #1 (mask) must be i16, a mask of the blocks of the cluster, got i32}}
  cute_nvgpu.arch.tcgen05_commit(%b, %m) : (!cute.ptr<i64, smem>, i32) -> ()
  return
}

// -----

// expected-error @below {{8x8b is not a shape of tensor memory; use one of 16x256b, 16x128b, 16x64b, 16x32bx2, 32x32b}}
func.func private @f(!cute_nvgpu.atom.tmem_load<f32, 8x8b, x1>)

// -----

// expected-error @below {{32x32b has no x3; use one of x1, x2, x4, x8, x16, x32, x64, x128}}
func.func private @f(!cute_nvgpu.atom.tmem_load<f32, 32x32b, x3>)

// -----

// expected-error @below {{'y4' is not a number of repetitions; write one such as x32}}
func.func private @f(!cute_nvgpu.atom.tmem_load<f32, 32x32b, y4>)

// -----

// expected-error @below {{pack needs elements of 16 bits, got f32}}
func.func private @f(!cute_nvgpu.atom.tmem_load<f32, 32x32b, x4, pack>)

// -----

// expected-error @below {{the element i8 has 8 bits; use one of 16 or 32}}
func.func private @f(!cute_nvgpu.atom.tmem_store<i8, 32x32b, x4>)

// -----

func.func @f(%t: !cute.memref<f32, tmem, "(32,4):(65536,1)">, %r: !cute.memref<f32, rmem, align<16>, "4:1">) {
  // expected-error @below {{'cute_nvgpu.arch.tmem_load' op one load with !cute_nvgpu.atom.tmem_load<f32, 32x32b, x4> accesses the elements (4,32):(1,65536) of tensor memory, got (32,4):(65536,1) in mode 0 of ((32,4)):((65536,1))}}
  cute_nvgpu.arch.tmem_load(%t, %r) {atom = !cute_nvgpu.atom.tmem_load<f32, 32x32b, x4>} : (!cute.memref<f32, tmem, "(32,4):(65536,1)">, !cute.memref<f32, rmem, align<16>, "4:1">) -> ()
  return
}

// -----

func.func @f(%t: !cute.memref<f32, tmem, "(4,32):(1,65536)">, %r: !cute.memref<f32, rmem, align<16>, "4:1">) {
  // expected-error @below {{'cute_nvgpu.arch.tmem_store' op the source is in tmem (!cute.memref<f32, tmem, "((4,32)):((1,65536))">); it must be in rmem, because tmem_store moves rmem to tmem}}
  cute_nvgpu.arch.tmem_store(%t, %r) {atom = !cute_nvgpu.atom.tmem_store<f32, 32x32b, x4>} : (!cute.memref<f32, tmem, "(4,32):(1,65536)">, !cute.memref<f32, rmem, align<16>, "4:1">) -> ()
  return
}

// -----

func.func @f(%t: !cute.memref<f32, tmem, "(4,32):(1,65536)">, %r: !cute.memref<f32, rmem, align<32>, "8:1">) {
  // expected-error @below {{'cute_nvgpu.arch.tmem_load' op mode 0 has 1 instructions at the source (128 values each) and 2 at the destination (4 values each) of ((4,32)) and 8; use the same number}}
  cute_nvgpu.arch.tmem_load(%t, %r) {atom = !cute_nvgpu.atom.tmem_load<f32, 32x32b, x4>} : (!cute.memref<f32, tmem, "(4,32):(1,65536)">, !cute.memref<f32, rmem, align<32>, "8:1">) -> ()
  return
}

// -----

func.func @f(%at: !cute_nvgpu.atom.tmem_load<f32, 32x32b, x4>, %t: !cute.memref<f32, tmem, "((4,32),2):((1,65536),131072)">, %r: !cute.memref<f32, rmem, align<32>, "(4,2):(1,4)">) {
  // expected-error @below {{'cute.copy' op mode 1 of the source has stride 131072 in ((4,32),2):((1,65536),131072); use multiples of 1 (columns), or of 2097152 (32 lanes)}}
  cute.copy(%at, %t, %r) : (!cute_nvgpu.atom.tmem_load<f32, 32x32b, x4>, !cute.memref<f32, tmem, "((4,32),2):((1,65536),131072)">, !cute.memref<f32, rmem, align<32>, "(4,2):(1,4)">) -> ()
  return
}

// -----

func.func @f(%m: !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32)>, %d: !cute.memref<f32, tmem, "((128,64),1,1):((64,1),0,0)">, %a: !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((128,16),1,1):((64,1),0,0)">, %b: !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,16),1,1):((64,1),0,0)">) {
  // expected-error @below {{'cute.gemm' op the tile of D in tensor memory is (128,64):(64,1) of !cute.memref<f32, tmem, "((128,64),1,1):((64,1),0,0)">; !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32), A = smem, major = (k, k)> needs (128,64):(65536,1)}}
  cute.gemm(%m, %d, %a, %b) : (!cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32)>, !cute.memref<f32, tmem, "((128,64),1,1):((64,1),0,0)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((128,16),1,1):((64,1),0,0)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,16),1,1):((64,1),0,0)">) -> ()
  return
}

// -----

func.func @f(%a: !cute_nvgpu.atom.tmem_load<f32, 32x32b, x8>, %t: !cute.memref<f32, smem, "(128,64):(64,1)">) {
  // expected-error @below {{'cute.make_tmem_copy' op operand #1 must be a tensor in tmem, got !cute.memref<f32, smem, "(128,64):(64,1)">}}
  %c = "cute.make_tmem_copy"(%a, %t) : (!cute_nvgpu.atom.tmem_load<f32, 32x32b, x8>, !cute.memref<f32, smem, "(128,64):(64,1)">) -> !cute.tiled_copy<!cute_nvgpu.atom.tmem_load<f32, 32x32b, x8>, layout_copy_tv = <"((32,4),(8,32)):((0,32),(128,1))">, tiler_mn = <"[128:1;8:1]">>
  return
}

// -----

func.func @f(%a: !cute_nvgpu.atom.universal_copy<f32>, %t: !cute.memref<f32, tmem, "(128,64):(65536,1)">) {
  // expected-error @below {{'cute.make_tmem_copy' op operand #0 must be an atom of tensor memory, got !cute_nvgpu.atom.universal_copy<f32>}}
  %c = "cute.make_tmem_copy"(%a, %t) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, tmem, "(128,64):(65536,1)">) -> !cute.tiled_copy<!cute_nvgpu.atom.tmem_load<f32, 32x32b, x8>, layout_copy_tv = <"((32,4),(8,32)):((0,32),(128,1))">, tiler_mn = <"[128:1;8:1]">>
  return
}

// -----

func.func @f(%a: !cute_nvgpu.atom.tmem_load<f32, 32x32b, x8>, %t: !cute.memref<f16, tmem, "(128,64):(131072,2)">) {
  // expected-error @below {{'cute.make_tmem_copy' op operand #1 must have elements as wide as the atom's f32, got f16}}
  %c = "cute.make_tmem_copy"(%a, %t) : (!cute_nvgpu.atom.tmem_load<f32, 32x32b, x8>, !cute.memref<f16, tmem, "(128,64):(131072,2)">) -> !cute.tiled_copy<!cute_nvgpu.atom.tmem_load<f32, 32x32b, x8>, layout_copy_tv = <"((32,4),(8,32)):((0,32),(128,1))">, tiler_mn = <"[128:1;8:1]">>
  return
}

// -----

func.func @f(%a: !cute_nvgpu.atom.tmem_load<f32, 32x32b, x8>, %t: !cute.memref<f32, tmem, "(?,64):(65536,1)">) {
  // expected-error @below {{'cute.make_tmem_copy' op the layout of the tensor is not static ((?,64):(65536,1)); use a static one}}
  %c = "cute.make_tmem_copy"(%a, %t) : (!cute_nvgpu.atom.tmem_load<f32, 32x32b, x8>, !cute.memref<f32, tmem, "(?,64):(65536,1)">) -> !cute.tiled_copy<!cute_nvgpu.atom.tmem_load<f32, 32x32b, x8>, layout_copy_tv = <"((32,4),(8,32)):((0,32),(128,1))">, tiler_mn = <"[128:1;8:1]">>
  return
}

// -----

func.func @f(%a: !cute_nvgpu.atom.tmem_load<f32, 32x32b, x8>, %t: !cute.memref<f32, tmem, "((16,4),64):((65536,2097152),1)">) {
  // expected-error @below {{'cute.make_tmem_copy' op the elements ((16,4),64):((65536,2097152),1) of the tensor are not windows (8,32):(1,65536) of !cute_nvgpu.atom.tmem_load<f32, 32x32b, x8>: they have no element at offset 2031616}}
  %c = "cute.make_tmem_copy"(%a, %t) : (!cute_nvgpu.atom.tmem_load<f32, 32x32b, x8>, !cute.memref<f32, tmem, "((16,4),64):((65536,2097152),1)">) -> !cute.tiled_copy<!cute_nvgpu.atom.tmem_load<f32, 32x32b, x8>, layout_copy_tv = <"((32,4),(8,32)):((0,32),(128,1))">, tiler_mn = <"[128:1;8:1]">>
  return
}

// -----

func.func @f(%a: !cute_nvgpu.atom.tmem_load<f32, 32x32b, x128>, %t: !cute.memref<f32, tmem, "(128,64):(65536,1)">) {
  // expected-error @below {{'cute.make_tmem_copy' op the elements (128,64):(65536,1) of the tensor are not windows (128,32):(1,65536) of !cute_nvgpu.atom.tmem_load<f32, 32x32b, x128>: they have 8192 elements, and the threads access the element 16383}}
  %c = "cute.make_tmem_copy"(%a, %t) : (!cute_nvgpu.atom.tmem_load<f32, 32x32b, x128>, !cute.memref<f32, tmem, "(128,64):(65536,1)">) -> !cute.tiled_copy<!cute_nvgpu.atom.tmem_load<f32, 32x32b, x8>, layout_copy_tv = <"((32,4),(8,32)):((0,32),(128,1))">, tiler_mn = <"[128:1;8:1]">>
  return
}

// -----

// expected-error @below {{cta_group is 3; use 1, or 2 for a pair of blocks}}
func.func private @f(!cute_nvgpu.atom.tma_load<f16, box = (64, 128), cta_group = 3>)

// -----

// expected-error @below {{'cta_group' is not supported here; write one of box, swizzle, interleave, element_strides, oob, l2}}
func.func private @f(!cute_nvgpu.atom.tma_store<f16, box = (64, 128), cta_group = 2>)

// -----

// expected-error @below {{the shape is 96x64x16; kind f16 with ws and A in smem needs M of 32 or 64 or 128, N of 64 or 128 or 256, and K of 16}}
func.func private @f(!cute_nvgpu.atom.tcgen05_mma<96x64x16, (f32,f16,f16,f32), ws>)

// -----

// expected-error @below {{the shape is 32x64x16; kind f16 with ws and A in tmem needs M of 128, N of 64 or 128 or 256, and K of 16}}
func.func private @f(!cute_nvgpu.atom.tcgen05_mma<32x64x16, (f32,f16,f16,f32), A = tmem, ws>)

// -----

// expected-error @below {{cta_group is 2; one block executes an MMA with ws, use 1}}
func.func private @f(!cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32), cta_group = 2, ws>)

// -----

!d = !cute.memref<f32, tmem, "(128,64):(65536,1)">
!a = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">
!b = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">
func.func @f(%d: !d, %a: !a, %b: !b) {
  // expected-error @below {{the atom !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32), A = smem, major = (k, k), ws> keeps B in a buffer; use cute_nvgpu.arch.tcgen05_mma_ws}}
  cute_nvgpu.arch.tcgen05_mma(%d, %a, %b) {accumulate = false, atom = !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32), ws>} : (!d, !a, !b) -> ()
  return
}

// -----

!d = !cute.memref<f32, tmem, "(128,64):(65536,1)">
!a = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">
!b = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">
func.func @f(%d: !d, %a: !a, %b: !b) {
  // expected-error @below {{the atom !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32), A = smem, major = (k, k)> keeps B in no buffer; use cute_nvgpu.arch.tcgen05_mma, or write ws}}
  cute_nvgpu.arch.tcgen05_mma_ws(%d, %a, %b) {accumulate = false, atom = !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32)>} : (!d, !a, !b) -> ()
  return
}

// -----

!d = !cute.memref<f32, tmem, "(128,64):(65536,1)">
!a = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">
!b = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">
func.func @f(%d: !d, %a: !a, %b: !b, %x: i32) {
  // expected-error @below {{the operands after B are i32 and accumulate is true; use a mask of columns (i64) and a flag (i1), each optional, in this order; a flag needs accumulate = true}}
  cute_nvgpu.arch.tcgen05_mma_ws(%d, %a, %b, %x) {accumulate = true, atom = !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32), ws>} : (!d, !a, !b, i32) -> ()
  return
}

// -----

!d = !cute.memref<f32, tmem, "(128,64):(65536,1)">
!a = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">
!b = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">
func.func @f(%d: !d, %a: !a, %b: !b) {
  // expected-error @below {{property buffer is 4 : i32; use 0 to 3 (i32)}}
  cute_nvgpu.arch.tcgen05_mma_ws(%d, %a, %b) {accumulate = false, buffer = 4 : i32, atom = !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32), ws>} : (!d, !a, !b) -> ()
  return
}
