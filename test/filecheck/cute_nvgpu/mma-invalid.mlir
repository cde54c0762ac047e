// RUN: cute-opt %s --convert-cute-algo-to-arch --cute-to-base --split-input-file --verify-diagnostics

!w = !cute_nvgpu.atom.wgmma<64x8x16, (f32,f16,f16,f32), A = smem, major = (k, k)>
!d = !cute.memref<f32, rmem, align<16>, "(4,1,1):(1,0,0)">
!a = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,16),1,1):((64,1),0,0)">
!b = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((8,16),1,1):((64,1),0,0)">
func.func @two_ways_to_accumulate(%flag: i1, %sa: !a, %sb: !b) {
  %at = cute.atom() : !w
  %with = cute.atom.set_value(%at, %flag) {field = accumulate} : (!w, i1) -> !w
  %d = cute.memref.alloca() : !d
  // expected-error @below {{C cannot be combined with an accumulate flag of the atom (cute.atom.set_value); omit one of them}}
  cute.gemm(%with, %d, %sa, %sb, %d) : (!w, !d, !a, !b, !d) -> ()
  return
}

// -----

!w = !cute_nvgpu.atom.wgmma<64x8x16, (f32,f16,f16,f32), A = smem, major = (k, k)>
!d = !cute.memref<f32, rmem, align<16>, "(4,1,1):(1,0,0)">
!a = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,16),1,1):((64,1),0,0)">
!b = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((8,16),1,1):((64,1),0,0)">
func.func @accumulators_indexed_at_run_time(%i: i32, %sa: !a, %sb: !b) -> f32 {
  %at = cute.atom() : !w
  %d = cute.memref.alloca() : !d
  // expected-error @below {{the accumulators of wgmma must stay in registers, but this tensor had to be placed in local memory}}
  cute.gemm(%at, %d, %sa, %sb) : (!w, !d, !a, !b) -> ()
  %c = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
  %x = cute.memref.load(%d, %c) : (!d, !cute.coord<"?">) -> f32
  return %x : f32
}
