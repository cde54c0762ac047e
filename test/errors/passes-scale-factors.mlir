// Errors of lowering GEMMs whose scale factors are in tensor memory.
// RUN: cute-opt %s --convert-cute-algo-to-arch --split-input-file --verify-diagnostics

!d = !cute.memref<f32, tmem, "((128,64)):((65536,1))">
!a = !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "((128,32)):((128,1))">
!b = !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "((64,32)):((128,1))">
!s = !cute.memref<f8E8M0FNU, tmem, "((32,4)):((262144,4))">
!mma = !cute_nvgpu.atom.tcgen05_mma<128x64x32, (f32,f8E4M3FN,f8E4M3FN,f32), kind = mxf8f6f4>
gpu.module @kernels {
  gpu.func @f(%m: !mma, %d: !d, %a: !a, %b: !b, %s: !s) kernel {
    // expected-error @below {{the position of SFA in its column of tensor memory depends on run-time values, but the instruction encodes it; unroll the loop over K}}
    cute.scaled_gemm(%m, %d, %a, %b, %s, %s) : (!mma, !d, !a, !b, !s, !s) -> ()
    gpu.return
  }
}

// -----

!d = !cute.memref<f32, tmem, "((128,64)):((65536,1))">
!a = !cute.memref<f4E2M1FN, smem, align<1024>, S<3,4,3>, "((128,64)):((256,1))">
!b = !cute.memref<f4E2M1FN, smem, align<1024>, S<3,4,3>, "((64,64)):((256,1))">
!p = !cute.ptr<f8E8M0FNU, tmem, align<16>>
!mma = !cute_nvgpu.atom.tcgen05_mma<128x64x64, (f32,f4E2M1FN,f4E2M1FN,f32), kind = mxf4>
gpu.module @kernels {
  gpu.func @f(%m: !mma, %d: !d, %a: !a, %b: !b, %p: !p) kernel {
    %one = cute.static : !cute.int_tuple<"1">
    %q = cute.add_offset(%p, %one) : (!p, !cute.int_tuple<"1">) -> !cute.ptr<f8E8M0FNU, tmem>
    %l = cute.static : !cute.layout<"(((32,4),2)):(((262144,4),1))">
    %s = cute.make_view(%q, %l) : !cute.memref<f8E8M0FNU, tmem, "(((32,4),2)):(((262144,4),1))">
    // expected-error @below {{SFA begins at byte 1 of a column of tensor memory; an MMA with 2 factors per row needs one of 0, 2}}
    cute.scaled_gemm(%m, %d, %a, %b, %s, %s) : (!mma, !d, !a, !b, !cute.memref<f8E8M0FNU, tmem, "(((32,4),2)):(((262144,4),1))">, !cute.memref<f8E8M0FNU, tmem, "(((32,4),2)):(((262144,4),1))">) -> ()
    gpu.return
  }
}
