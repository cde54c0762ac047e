// cute-check-target reports copies of rows by index, and im2col loads along W, on chips without them: before and after
// the lowering to nvvm.
// RUN: cute-opt %s --split-input-file --cute-check-target="chip=sm_120a features=+ptx88" --verify-diagnostics

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 1), mode = gather4>
!store = !cute_nvgpu.atom.tma_store<f16, box = (64, 1), mode = scatter4>
gpu.module @m {
  gpu.func @k(%load: !load, %store: !store, %x: i32, %s: !cute.ptr<f16, smem, align<128>>, %bar: !cute.ptr<i64, smem>, %mask: i16) kernel {
    cute_nvgpu.arch.tma_load(%load, %x, %x, %x, %x, %x, %s, %bar) : (!load, i32, i32, i32, i32, i32, !cute.ptr<f16, smem, align<128>>, !cute.ptr<i64, smem>) -> ()
    // expected-error @below {{sm_120a has no cute_nvgpu.arch.tma_load of mode gather4 to the shared memory of a cluster, which needs sm_100a/f, sm_103a/f or sm_110a/f}}
    cute_nvgpu.arch.tma_load(%load, %x, %x, %x, %x, %x, %s, %bar, %mask) : (!load, i32, i32, i32, i32, i32, !cute.ptr<f16, smem, align<128>>, !cute.ptr<i64, smem>, i16) -> ()
    // expected-error @below {{sm_120a has no cute_nvgpu.arch.tma_store of mode scatter4, which needs sm_100a/f, sm_103a/f or sm_110a/f}}
    cute_nvgpu.arch.tma_store(%store, %x, %x, %x, %x, %x, %s) : (!store, i32, i32, i32, i32, i32, !cute.ptr<f16, smem, align<128>>) -> ()
    // expected-error @below {{sm_120a has no cute_nvgpu.arch.tma_prefetch of mode gather4, which needs sm_100a/f, sm_103a/f or sm_110a/f}}
    cute_nvgpu.arch.tma_prefetch(%load, %x, %x, %x, %x, %x) : (!load, i32, i32, i32, i32, i32) -> ()
    gpu.return
  }
}

// -----

gpu.module @m {
  llvm.func @k(%map: !llvm.ptr, %s: !llvm.ptr<3>, %c: !llvm.ptr<7>, %bar: !llvm.ptr<3>, %x: i32) attributes {gpu.kernel} {
    nvvm.cp.async.bulk.tensor.shared.cluster.global %s, %map, %bar, box[%x, %x, %x, %x, %x] {isCTAOnly = true, mode = #nvvm.tma_load_mode<tile_gather4>} : !llvm.ptr<3>, !llvm.ptr
    // expected-error @below {{sm_120a has no nvvm.cp.async.bulk.tensor.shared.cluster.global of mode gather4 to the shared memory of a cluster, which needs sm_100a/f, sm_103a/f or sm_110a/f}}
    nvvm.cp.async.bulk.tensor.shared.cluster.global %c, %map, %bar, box[%x, %x, %x, %x, %x] {mode = #nvvm.tma_load_mode<tile_gather4>} : !llvm.ptr<7>, !llvm.ptr
    // expected-error @below {{sm_120a has no nvvm.cp.async.bulk.tensor.global.shared.cta of mode scatter4, which needs sm_100a/f, sm_103a/f or sm_110a/f}}
    nvvm.cp.async.bulk.tensor.global.shared.cta %map, %s, box[%x, %x, %x, %x, %x] {mode = #nvvm.tma_store_mode<tile_scatter4>} : !llvm.ptr, !llvm.ptr<3>
    llvm.return
  }
}

// -----

!wide = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 16, lower = (0), upper = (0), swizzle = 128, mode = w>
gpu.module @m {
  gpu.func @k(%load: !wide, %x: i32, %o: i16, %s: !cute.ptr<f16, smem, align<1024>>, %bar: !cute.ptr<i64, smem>) kernel {
    // expected-error @below {{sm_120a has no cute_nvgpu.arch.tma_load_im2col of mode im2col::w, which needs sm_100a/f, sm_103a/f or sm_110a/f}}
    cute_nvgpu.arch.tma_load_im2col(%load, %x, %x, %x, %s, %bar, %o) : (!wide, i32, i32, i32, !cute.ptr<f16, smem, align<1024>>, !cute.ptr<i64, smem>, i16) -> ()
    gpu.return
  }
}

// -----

gpu.module @m {
  llvm.func @k(%map: !llvm.ptr, %s: !llvm.ptr<3>, %bar: !llvm.ptr<3>, %x: i32, %o: i16) attributes {gpu.kernel} {
    // expected-error @below {{sm_120a has no nvvm.cp.async.bulk.tensor.shared.cluster.global of mode im2col::w, which needs sm_100a/f, sm_103a/f or sm_110a/f}}
    nvvm.cp.async.bulk.tensor.shared.cluster.global %s, %map, %bar, box[%x, %x, %x] im2col[%o, %o] {isCTAOnly = true, mode = #nvvm.tma_load_mode<im2col_w_128>} : !llvm.ptr<3>, !llvm.ptr
    llvm.return
  }
}
