// Instructions of sm_100a and sm_103a only: reductions of f32 over a warp, and stochastic rounding.
// RUN: cute-opt %s --pipeline=nvptx=chip=sm_100a --emit=ptx | FileCheck %s
// RUN: cute-opt %s --pipeline=nvptx=chip=sm_103a --emit=cubin -o /dev/null
// RUN: not cute-opt %s --pipeline=nvptx=chip=sm_120a --emit=ptx 2>&1 | FileCheck %s --check-prefix=LATER
// REQUIRES: mlir, ptxas

gpu.module @m {
  // LATER: sm_120a has no cute_nvgpu.arch.redux_sync_f32, which needs sm_100a/f or sm_103a/f
  // LATER: sm_120a has no nvvm.convert.f32x4.to.f8x4 (cvt.rs.e4m3x4.f32), which needs sm_100a or sm_103a
  // CHECK-LABEL: .entry k(
  // CHECK: redux.sync.max.abs.NaN.f32
  // CHECK: redux.sync.min.f32
  // CHECK: cvt.rs.satfinite.e4m3x4.f32
  // CHECK: cvt.rs.satfinite.e2m1x4.f32
  // CHECK: cvt.rs.bf16x2.f32
  gpu.func @k(%p: !llvm.ptr<1>, %a: f32, %v: vector<4xf32>, %bits: i32) kernel {
    %0 = cute_nvgpu.arch.redux_sync_f32(%a) {kind = "max", abs, nan} : (f32) -> f32
    %1 = cute_nvgpu.arch.redux_sync_f32(%0) {kind = "min"} : (f32) -> f32
    llvm.store volatile %1, %p : f32, !llvm.ptr<1>
    %2 = nvvm.convert.f32x4.to.f8x4 %v, %bits : vector<4xf32> -> vector<4xi8> (f8E4M3FN)
    llvm.store volatile %2, %p : vector<4xi8>, !llvm.ptr<1>
    %3 = nvvm.convert.f32x4.to.f4x4 %v, %bits : vector<4xf32> -> i16 (f4E2M1FN)
    llvm.store volatile %3, %p : i16, !llvm.ptr<1>
    %4 = nvvm.convert.f32x2.to.bf16x2 %a, %1, %bits {rnd = #nvvm.fp_rnd_mode<rs>} : vector<2xbf16>
    llvm.store volatile %4, %p : vector<2xbf16>, !llvm.ptr<1>
    gpu.return
  }
}
