// A copy of rows by index needs their indices.
// RUN: cute-opt %s --cute-expand-ops --convert-cute-algo-to-arch --verify-diagnostics

!store = !cute_nvgpu.atom.tma_store<f16, box = (64, 1), mode = scatter4>
!tile = !cute.coord_tensor<"(0,0)", "(4,64):(1@1,1@0)">
!s = !cute.memref<f16, smem, align<128>, "(4,64):(64,1)">
gpu.module @kernels {
  gpu.func @k(%m: !store, %x: !tile, %s: !s) kernel {
    // expected-error @below {{this copy needs the indices of the rows of scatter4: set them with cute.atom.set_value … {field = rows} between the atom and the copy, in the same function}}
    cute.copy(%m, %s, %x) : (!store, !s, !tile) -> ()
    gpu.return
  }
}
