// Errors of kernels with tensor memory that concern the whole kernel or its launch.
// RUN: cute-opt %s --split-input-file --verify-diagnostics --cute-to-base

module attributes {gpu.container_module} {
gpu.module @m {
  gpu.func @k(%slot: !cute.ptr<i32, smem>) kernel {
    cute_nvgpu.arch.tmem_alloc(%slot) {columns = 64 : i32} : (!cute.ptr<i32, smem>) -> ()
    // expected-error @below {{'cute_nvgpu.arch.tmem_relinquish' has cta_group 2, but 'cute_nvgpu.arch.tmem_alloc' of the same kernel has 1; use the same cta_group for all tcgen05 instructions of a kernel, and for its TMA loads for a pair}}
    cute_nvgpu.arch.tmem_relinquish() {cta_group = 2 : i32} : () -> ()
    gpu.return
  }
}
}

// -----

module attributes {gpu.container_module} {
gpu.module @m {
  gpu.func @k(%map: !cute_nvgpu.atom.tma_load<f16, box = (64, 128), cta_group = 2>, %x: i32, %smem: !cute.ptr<f16, smem, align<128>>, %bar: !cute.ptr<i64, smem>) kernel {
    cute_nvgpu.arch.tcgen05_commit(%bar) : (!cute.ptr<i64, smem>) -> ()
    // expected-error @below {{'cute_nvgpu.arch.tma_load' has cta_group 2, but 'cute_nvgpu.arch.tcgen05_commit' of the same kernel has 1}}
    cute_nvgpu.arch.tma_load(%map, %x, %x, %smem, %bar) : (!cute_nvgpu.atom.tma_load<f16, box = (64, 128), cta_group = 2>, i32, i32, !cute.ptr<f16, smem, align<128>>, !cute.ptr<i64, smem>) -> ()
    gpu.return
  }
}
}

// -----

module attributes {gpu.container_module} {
gpu.module @m {
  gpu.func @k() kernel attributes {known_cluster_size = array<i32: 3, 1, 1>} {
    // expected-error @below {{'cute_nvgpu.arch.tmem_relinquish' is executed by a pair of blocks (cta_group 2), but the clusters of the kernel have 3 x 1 x 1 blocks; use clusters with an even number of blocks, such as 2 x 1 x 1}}
    cute_nvgpu.arch.tmem_relinquish() {cta_group = 2 : i32} : () -> ()
    gpu.return
  }
}
}

// -----

module attributes {gpu.container_module} {
gpu.module @m {
  gpu.func @k() kernel {
    cute_nvgpu.arch.tmem_relinquish() {cta_group = 2 : i32} : () -> ()
    gpu.return
  }
}
func.func @launch(%n: i32) {
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  gpu.launch_func @m::@k clusters in (%c1, %c2, %c1) blocks in (%n, %n, %c1) threads in (%n, %c1, %c1) : i32
  gpu.launch_func @m::@k clusters in (%n, %c1, %c1) blocks in (%n, %n, %c1) threads in (%n, %c1, %c1) : i32
  // expected-error @below {{the kernel @k has instructions of a pair of blocks (cta_group 2), but this launch has clusters of 1 x 1 x 1 blocks; use clusters with an even number of blocks, such as 2 x 1 x 1}}
  gpu.launch_func @m::@k blocks in (%n, %c1, %c1) threads in (%n, %c1, %c1) : i32
  return
}
}

// -----

module attributes {gpu.container_module} {
gpu.module @m {
  gpu.func @k(%slot: !cute.ptr<i32, smem>, %p: !cute.ptr<f32, tmem, align<128>>, %odd: i1) kernel {
    scf.if %odd {
      cute_nvgpu.arch.tmem_alloc(%slot) {columns = 512 : i32} : (!cute.ptr<i32, smem>) -> ()
    } else {
      cute_nvgpu.arch.tmem_alloc(%slot) {columns = 256 : i32} : (!cute.ptr<i32, smem>) -> ()
    }
    cute_nvgpu.arch.tmem_dealloc(%p) {columns = 512 : i32} : (!cute.ptr<f32, tmem, align<128>>) -> ()
    cute_nvgpu.arch.tmem_alloc(%slot) {columns = 512 : i32} : (!cute.ptr<i32, smem>) -> ()
    // expected-error @below {{the kernel allocates 544 columns of tensor memory up to here; a block has 512; allocate fewer columns, or free columns first}}
    cute_nvgpu.arch.tmem_alloc(%slot) {columns = 32 : i32} : (!cute.ptr<i32, smem>) -> ()
    cute_nvgpu.arch.tmem_alloc(%slot) {columns = 32 : i32} : (!cute.ptr<i32, smem>) -> ()
    gpu.return
  }
}
}
