// All tcgen05 instructions of a kernel have one cta_group, which ptxas requires.
// RUN: cute-opt %s --cute-check-target="chip=sm_100a features=+ptx88" --split-input-file --verify-diagnostics

gpu.module @m {
  gpu.func @alloc(%s: !cute.ptr<i32, smem>, %bar: !cute.ptr<i64, smem>) kernel {
    cute_nvgpu.arch.tmem_alloc(%s) {columns = 64 : i32, cta_group = 2 : i32} : (!cute.ptr<i32, smem>) -> ()
    cute_nvgpu.arch.tcgen05_fence() {kind = "after"} : () -> ()
    // expected-error @below {{'cute_nvgpu.arch.tcgen05_commit' has cta_group 1, but an earlier instruction of the kernel has 2; use one cta_group in a kernel}}
    cute_nvgpu.arch.tcgen05_commit(%bar) : (!cute.ptr<i64, smem>) -> ()
//  ^
    gpu.return
  }
  gpu.func @other(%bar: !cute.ptr<i64, smem>) kernel {
    cute_nvgpu.arch.tcgen05_commit(%bar) : (!cute.ptr<i64, smem>) -> ()
    gpu.return
  }
}

// -----

!mma = !cute_nvgpu.atom.tcgen05_mma<256x64x16, (f32,f16,f16,f32), cta_group = 2>
!d = !cute.memref<f32, tmem, align<128>, "(128,64):(65536,1)">
!a = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">
!b = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(32,16):(64,1)">
gpu.module @m {
  gpu.func @mma(%d: !d, %a: !a, %b: !b) kernel {
    cute_nvgpu.arch.tmem_relinquish() : () -> ()
    // expected-error @below {{'cute_nvgpu.arch.tcgen05_mma' has cta_group 2, but an earlier instruction of the kernel has 1; use one cta_group in a kernel}}
    cute_nvgpu.arch.tcgen05_mma(%d, %a, %b) {accumulate = false, atom = !mma} : (!d, !a, !b) -> ()
//  ^
    gpu.return
  }
}
