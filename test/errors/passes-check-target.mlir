// cute-check-target reports ops that the chip or the PTX version does not support.
// RUN: cute-opt %s --convert-cute-algo-to-arch --cute-check-target="chip=sm_90 features=+ptx78" --split-input-file --verify-diagnostics

gpu.module @m {
  gpu.func @k(%d: !cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">, %a: !cute.memref<f16, rmem, align<16>, "(2,2,2):(1,2,4)">, %b: !cute.memref<f16, rmem, align<8>, "(2,2):(1,2)">) kernel {
    // Chips older than sm_90 support this op as well, so there is no error.
    cute_nvgpu.arch.mma_sync(%d, %a, %b, %d) {atom = !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>} : (!cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">, !cute.memref<f16, rmem, align<16>, "(2,2,2):(1,2,4)">, !cute.memref<f16, rmem, align<8>, "(2,2):(1,2)">, !cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">) -> ()
    cute_nvgpu.arch.cluster_wait() : () -> ()
    // expected-error @below {{sm_90 has no cute_nvgpu.arch.setmaxnreg, which needs sm_90a}}
    cute_nvgpu.arch.setmaxnreg() {action = "decrease", count = 40 : i32} : () -> ()
//  ^
    // A second op with the same error is not reported again.
    cute_nvgpu.arch.setmaxnreg() {action = "decrease", count = 40 : i32} : () -> ()
    // expected-error @below {{PTX 7.8 has no cute_nvgpu.arch.elect_one, which needs 8.0: features=+ptx80 or later}}
    %0 = cute_nvgpu.arch.elect_one() : () -> i1
//       ^
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @k(%x: i32) kernel {
    // expected-error @below {{sm_90 has no nvvm.wgmma.fence.aligned, which needs sm_90a}}
    nvvm.wgmma.fence.aligned
//  ^
    // expected-error @below {{sm_90 has no setmaxnreg.dec.sync.aligned.u32, which needs sm_90a}}
    nvvm.inline_ptx "setmaxnreg.dec.sync.aligned.u32 40;"
//  ^
    // expected-error @below {{sm_90 has no wgmma.commit_group.sync.aligned, which needs sm_90a}}
    llvm.inline_asm has_side_effects "{ .reg .pred p; @p wgmma.commit_group.sync.aligned; }", "" : () -> ()
//  ^
    // expected-error @below {{sm_90 has no tcgen05.wait.ld, which needs sm_100a}}
    llvm.call_intrinsic "llvm.nvvm.tcgen05.wait.ld"() : () -> ()
//  ^
    llvm.inline_asm has_side_effects "bar.sync 0;", "" : () -> ()
    gpu.return
  }
}

// -----

// LLVM would drop the rounding mode, because it always selects cvt.rn.
gpu.module @m {
  gpu.func @k(%x: f32, %v: vector<4xf32>, %i: i32) kernel {
    %0 = arith.truncf %x : f32 to f16
    %1 = arith.truncf %x to_nearest_even : f32 to bf16
    // expected-error @below {{arith.truncf: a GPU rounds to nearest even, got toward_zero; remove the rounding mode}}
    %2 = arith.truncf %x toward_zero : f32 to f16
//       ^
    // expected-error @below {{arith.truncf: a GPU rounds to nearest even, got downward; remove the rounding mode}}
    %3 = arith.truncf %v downward : vector<4xf32> to vector<4xbf16>
//       ^
    // expected-error @below {{arith.truncf: a GPU rounds to nearest even, got upward; remove the rounding mode}}
    %4 = arith.truncf %x upward : f32 to f16
    // expected-error @below {{arith.truncf: a GPU rounds to nearest even, got to_nearest_away; remove the rounding mode}}
    %5 = arith.truncf %x to_nearest_away : f32 to f16
    %6 = llvm.intr.experimental.constrained.fptrunc %x tonearest ignore : f32 to f16
    // expected-error @below {{llvm.intr.experimental.constrained.fptrunc: a GPU rounds to nearest even, got towardzero; remove the rounding mode}}
    %7 = llvm.intr.experimental.constrained.fptrunc %x towardzero ignore : f32 to f16
//       ^
    // expected-error @below {{llvm.intr.experimental.constrained.sitofp: a GPU rounds to nearest even, got upward; remove the rounding mode}}
    %8 = llvm.intr.experimental.constrained.sitofp %i upward ignore : i32 to f32
//       ^
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{the name 'scale-2' is not a PTX identifier; use letters a to z, digits, _ and $, without a leading digit; rename the function}}
  gpu.func @"scale-2"(%n: i32) kernel {
//^
    gpu.return
  }
}
