// cute-check-target reports memory orders and scopes that the chip does not support.
// RUN: cute-opt %s --cute-check-target="chip=sm_61 features=+ptx63" --split-input-file --verify-diagnostics

gpu.module @m {
  gpu.func @k(%p: !cute.ptr<i32, gmem>, %v: i32) kernel {
    cute_nvgpu.arch.fence_acq_rel() : () -> ()
    %0 = cute_nvgpu.arch.atomic_add(%p, %v) {scope = "sys"} : (!cute.ptr<i32, gmem>, i32) -> i32
    // expected-error @below {{sm_61 has no cute_nvgpu.arch.atomic_add with an order other than relaxed, which needs sm_70}}
    %1 = cute_nvgpu.arch.atomic_add(%p, %v) {order = "acquire"} : (!cute.ptr<i32, gmem>, i32) -> i32
//       ^
    // expected-error @below {{sm_61 has no cute_nvgpu.arch.atomic_cas of cluster scope, which needs sm_90}}
    %2 = cute_nvgpu.arch.atomic_cas(%p, %v, %v) {scope = "cluster"} : (!cute.ptr<i32, gmem>, i32, i32) -> i32
//       ^
    // expected-error @below {{sm_61 has no cute_nvgpu.arch.fence_acq_rel of cluster scope, which needs sm_90}}
    cute_nvgpu.arch.fence_acq_rel() {scope = "cluster"} : () -> ()
//  ^
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @k(%p: !llvm.ptr<1>, %v: i32) kernel {
    llvm.fence syncscope("device") acq_rel
    %0 = llvm.atomicrmw add %p, %v syncscope("device") monotonic : !llvm.ptr<1>, i32
    // expected-error @below {{sm_61 has no llvm.cmpxchg with an order other than relaxed, which needs sm_70}}
    %1 = llvm.cmpxchg %p, %v, %v acq_rel monotonic : !llvm.ptr<1>, i32
//       ^
    // expected-error @below {{sm_61 has no llvm.load with an order other than relaxed, which needs sm_70}}
    %2 = llvm.load %p atomic acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
//       ^
    // expected-error @below {{sm_61 has no llvm.fence of cluster scope, which needs sm_90}}
    llvm.fence syncscope("cluster") acq_rel
//  ^
    gpu.return
  }
}
