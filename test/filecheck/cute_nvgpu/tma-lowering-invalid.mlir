// What the lowering of TMA copies rejects.
// RUN: cute-opt %s --split-input-file --verify-diagnostics --pipeline=base

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
!xy = !cute.coord_tensor<"(?,?)", "(8,64):(1@1,1@0)">
!s = !cute.memref<f16, smem, align<128>, "(8,64):(64,1)">
gpu.module @m {
  gpu.func @k(%a: !load, %x: !xy) kernel {
    %s = cute.memref.alloc_smem() : !s
    // expected-error @below {{this copy needs the mbarrier that counts its bytes: set it with cute.atom.set_value … {field = tma_bar} between the atom and the copy, in the same function}}
    cute.copy(%a, %x, %s) : (!load, !xy, !s) -> ()
    gpu.return
  }
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
!xy = !cute.coord_tensor<"(?{i64},?)", "(8,64):(1@1,1@0)">
!s = !cute.memref<f16, smem, align<128>, "(8,64):(64,1)">
gpu.module @m {
  gpu.func @k(%a: !load, %x: !xy) kernel {
    %s = cute.memref.alloc_smem() : !s
    %bars = cute.memref.alloc_smem() : !cute.memref<i64, smem, "1:0">
    %bar = cute.get_iter(%bars) : !cute.memref<i64, smem, "1:0">
    %b = cute.atom.set_value(%a, %bar) {field = tma_bar} : (!load, !cute.ptr<i64, smem>) -> !load
    // expected-error @below {{cannot lower 'cute.copy': TMA coordinates have 64 bits; they must have 32; use tile coordinates of type ?{i32}}}
    cute.copy(%b, %x, %s) : (!load, !xy, !s) -> ()
    gpu.return
  }
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
gpu.module @m {
  gpu.func @k(%p: !cute.ptr<f16, gmem>, %n: i64) kernel {
    // expected-error @below {{a tensor map is built on the host; move this op to the function that launches the kernel}}
    %a = cute_nvgpu.arch.make_tensor_map(%p, %n, %n, %n) : (!cute.ptr<f16, gmem>, i64, i64, i64) -> !load
    cute_nvgpu.arch.prefetch_tensormap(%a) : (!load) -> ()
    gpu.return
  }
}
