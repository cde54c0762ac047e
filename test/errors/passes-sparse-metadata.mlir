// Errors of lowering GEMMs with a sparse A whose metadata are in tensor memory.
// RUN: cute-opt %s --convert-cute-algo-to-arch --split-input-file --verify-diagnostics

!d = !cute.memref<f32, tmem, "((128,64),1):((65536,1),0)">
!a = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((128,16),1,2):((64,1),0,16)">
!b = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,32),1,2):((64,1),0,32)">
!e = !cute.memref<i16, tmem, align<16>, "(((8,2,8),2),1,2):(((131072,1,2097152),1048576),0,?{div=2})">
!mma = !cute_nvgpu.atom.tcgen05_mma_sp<128x64x32, (f32,f16,f16,f32)>
gpu.module @kernels {
  gpu.func @f(%m: !mma, %d: !cute.memref<f32, tmem, "((128,64),1,1):((65536,1),0,0)">, %a: !a, %b: !b, %e: !e) kernel {
    // expected-error @below {{the position of E in tensor memory depends on run-time values, but the instruction encodes it; use static strides, and an offset of the pointer that is a multiple of 4 columns}}
    cute.sparse_gemm(%m, %d, %a, %b, %e) : (!mma, !cute.memref<f32, tmem, "((128,64),1,1):((65536,1),0,0)">, !a, !b, !e) -> ()
    gpu.return
  }
}

// -----

!d = !cute.memref<f32, tmem, "((128,64),1,1):((65536,1),0,0)">
!a = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((128,16),1,2):((64,1),0,16)">
!b = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,32),1,2):((64,1),0,32)">
!e = !cute.memref<i16, tmem, align<16>, "(((8,2,8),2),1,2):(((131072,1,2097152),1048576),0,1)">
!mma = !cute_nvgpu.atom.tcgen05_mma_sp<128x64x32, (f32,f16,f16,f32)>
gpu.module @kernels {
  gpu.func @f(%m: !mma, %d: !d, %a: !a, %b: !b, %e: !e) kernel {
    // expected-error @below {{E of an instruction begins at element 1; !cute_nvgpu.atom.tcgen05_mma_sp<128x64x32, (f32,f16,f16,f32), A = smem, major = (k, k)> needs a multiple of 2}}
    cute.sparse_gemm(%m, %d, %a, %b, %e) : (!mma, !d, !a, !b, !e) -> ()
    gpu.return
  }
}

// -----

!d = !cute.memref<f32, tmem, "((128,64),1,1):((65536,1),0,0)">
!a = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((128,16),1,2):((64,1),0,16)">
!b = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,32),1,2):((64,1),0,32)">
!e = !cute.memref<i16, tmem, align<16>, "(((8,2,8),2),1,2):(((131072,1,2097152),1048576),0,2)">
!mma = !cute_nvgpu.atom.tcgen05_mma_sp<128x64x32, (f32,f16,f16,f32)>
gpu.module @kernels {
  gpu.func @f(%m: !mma, %d: !d, %a: !a, %b: !b, %e: !e, %c: !d) kernel {
    // expected-error @below {{C is another tensor than D, but the MMA accumulates in D; pass D as C}}
    cute.sparse_gemm(%m, %d, %a, %b, %e, %c) : (!mma, !d, !a, !b, !e, !d) -> ()
    gpu.return
  }
}
