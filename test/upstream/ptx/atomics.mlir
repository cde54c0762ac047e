// Atomics whose order or scope LLVM would drop become inline PTX; relaxed atomics of gpu scope use LLVM's op.

// REQUIRES: mlir

// RUN: cute-opt %s --pipeline=base | FileCheck %s --check-prefix=BASE
// RUN: cute-opt %s --pipeline --emit=ptx | FileCheck %s --check-prefix=PTX

// BASE-LABEL: llvm.func @k(
// BASE:         llvm.atomicrmw add %{{.*}}, %{{.*}} syncscope("device") monotonic
// BASE:         llvm.atomicrmw add %{{.*}}, %{{.*}} acq_rel
// BASE:         llvm.atomicrmw fadd %{{.*}}, %{{.*}} syncscope("device") release

// PTX-LABEL:   .visible .entry k(
// PTX:         atom.global.add.u32
// PTX:         atom.acq_rel.sys.global.add.u32 %{{.*}}, [%{{.*}}], %{{.*}};
// PTX:         neg.bf16
// PTX:         atom.release.gpu.global.cas.b32
// PTX:         ret;
gpu.module @m {
  gpu.func @k(%p: !cute.ptr<i32, gmem>, %q: !cute.ptr<bf16, gmem>, %v: i32, %x: bf16) kernel {
    %0 = cute_nvgpu.arch.atomic_add(%p, %v) : (!cute.ptr<i32, gmem>, i32) -> i32
    %1 = cute_nvgpu.arch.atomic_add(%p, %v) {order = "acq_rel", scope = "sys"} : (!cute.ptr<i32, gmem>, i32) -> i32
    %2 = cute_nvgpu.arch.atomic_add(%q, %x) {order = "release"} : (!cute.ptr<bf16, gmem>, bf16) -> bf16
    gpu.return
  }
}
