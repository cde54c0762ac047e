// Errors of tensor memory that appear when ops are lowered.
// RUN: cute-opt %s --convert-cute-algo-to-arch --cute-to-base --split-input-file --verify-diagnostics

!mma = !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32)>
!d = !cute.memref<f32, tmem, align<128>, "((128,64),1,1):((65536,1),0,0)">
!a = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((128,16),1,1):((64,1),0,0)">
!b = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,16),1,1):((64,1),0,0)">
func.func @other_c(%mma: !mma, %d: !d, %c: !d, %a: !a, %b: !b) {
  // expected-error @below {{C is another tensor than D, but the MMA accumulates in D; pass D as C}}
  cute.gemm(%mma, %d, %a, %b, %c) : (!mma, !d, !a, !b, !d) -> ()
//^
  return
}

// -----

!load = !cute_nvgpu.atom.tmem_load<f32, 32x32b, x4>
!t = !cute.memref<f32, tmem, "(4,32):(1,65536)">
!r = !cute.memref<f32, rmem, align<16>, "4:1">
func.func @local(%t: !t, %i: !cute.coord<"?">) -> f32 {
  %r = cute.memref.alloca() : !r
  // expected-error @below {{the result of tmem_load must stay in registers, but this tensor had to be placed in local memory}}
  cute_nvgpu.arch.tmem_load(%t, %r) {atom = !load} : (!t, !r) -> ()
//^
  %v = cute.memref.load(%r, %i) : (!r, !cute.coord<"?">) -> f32
  return %v : f32
}
