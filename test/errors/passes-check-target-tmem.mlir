// cute-check-target reports loads of tensor memory with a reduction on chips without them.
// RUN: cute-opt %s --cute-check-target="chip=sm_100a features=+ptx88" --verify-diagnostics

!t = !cute.memref<f32, tmem, "(4,32):(1,65536)">
!r = !cute.memref<f32, rmem, "4:1">
!m = !cute.memref<f32, rmem, "1:0">
gpu.module @m {
  gpu.func @k(%t: !t, %r: !r, %m: !m) kernel {
    // expected-error @below {{sm_100a has no cute_nvgpu.arch.tmem_load_red, which needs sm_103a/f or sm_110a/f}}
    cute_nvgpu.arch.tmem_load_red(%t, %r, %m) {atom = !cute_nvgpu.atom.tmem_load<f32, 32x32b, x4, red = max>} : (!t, !r, !m) -> ()
    gpu.return
  }
}
