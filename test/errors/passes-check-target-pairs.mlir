// cute-check-target reports TMA loads of a pair of blocks on chips without pairs.
// RUN: cute-opt %s --cute-check-target="chip=sm_90 features=+ptx88" --verify-diagnostics

gpu.module @m {
  gpu.func @k(%map: !cute_nvgpu.atom.tma_load<f16, box = (64, 128), cta_group = 2>, %x: i32, %smem: !cute.ptr<f16, smem, align<128>>, %bar: !cute.ptr<i64, smem>) kernel {
    // expected-error @below {{sm_90 has no cute_nvgpu.arch.tma_load with cta_group 2, which needs sm_100a/f, sm_103a/f or sm_110a/f}}
    cute_nvgpu.arch.tma_load(%map, %x, %x, %smem, %bar) : (!cute_nvgpu.atom.tma_load<f16, box = (64, 128), cta_group = 2>, i32, i32, !cute.ptr<f16, smem, align<128>>, !cute.ptr<i64, smem>) -> ()
    gpu.return
  }
}
