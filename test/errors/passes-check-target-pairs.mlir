// cute-check-target reports TMA loads of a pair of blocks, and of 4-bit elements, on chips without them.
// RUN: cute-opt %s --cute-check-target="chip=sm_90 features=+ptx88" --verify-diagnostics

gpu.module @m {
  gpu.func @k(%map: !cute_nvgpu.atom.tma_load<f16, box = (64, 128), cta_group = 2>, %x: i32, %narrow: !cute_nvgpu.atom.tma_load<f4E2M1FN, box = (128, 8), unpack = 16>, %bytes: !cute.ptr<i8, smem, align<128>>, %smem: !cute.ptr<f16, smem, align<128>>, %bar: !cute.ptr<i64, smem>) kernel {
    // expected-error @below {{sm_90 has no cute_nvgpu.arch.tma_load with cta_group 2, which needs sm_100a/f, sm_103a/f or sm_110a/f}}
    cute_nvgpu.arch.tma_load(%map, %x, %x, %smem, %bar) : (!cute_nvgpu.atom.tma_load<f16, box = (64, 128), cta_group = 2>, i32, i32, !cute.ptr<f16, smem, align<128>>, !cute.ptr<i64, smem>) -> ()
    // expected-error @below {{sm_90 has no cute_nvgpu.arch.tma_load of elements of 4 or 6 bits, which needs sm_100}}
    cute_nvgpu.arch.tma_load(%narrow, %x, %x, %bytes, %bar) : (!cute_nvgpu.atom.tma_load<f4E2M1FN, box = (128, 8), unpack = 16>, i32, i32, !cute.ptr<i8, smem, align<128>>, !cute.ptr<i64, smem>) -> ()
    gpu.return
  }
}
