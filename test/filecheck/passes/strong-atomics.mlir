// RUN: cute-opt %s --cute-strong-atomics --verify-legality | FileCheck %s

// Only what LLVM would make weaker changes, and only on the GPU.
module attributes {gpu.container_module} {
  gpu.module @m {
    // CHECK-LABEL: llvm.func @f
    llvm.func @f(%p: !llvm.ptr<1>, %s: !llvm.ptr<3>, %v: i32, %h: f16) {
      // CHECK: llvm.atomicrmw add %arg0, %arg2 syncscope("device") monotonic
      %0 = llvm.atomicrmw add %p, %v syncscope("device") monotonic : !llvm.ptr<1>, i32
      // CHECK: llvm.inline_asm has_side_effects {{.*}}"atom.acquire.gpu.global.add.u32 $0, [$1], $2;", "=r,l,r,~{memory}" %arg0, %arg2
      %1 = llvm.atomicrmw add %p, %v syncscope("device") acquire : !llvm.ptr<1>, i32
      // CHECK: llvm.inline_asm has_side_effects {{.*}}"fence.sc.cta; atom.acquire.cta.shared.max.s32 $0, [$1], $2;"
      %2 = llvm.atomicrmw max %s, %v syncscope("block") seq_cst : !llvm.ptr<3>, i32
      // CHECK: %[[Z:.*]] = llvm.mlir.constant(0 : i32)
      // CHECK: %[[N:.*]] = llvm.sub %[[Z]], %arg2
      // CHECK: %[[R:.*]] = llvm.inline_asm has_side_effects {{.*}}"atom.relaxed.sys.global.add.u32 $0, [$1], $2;", "=r,l,r,~{memory}" %arg0, %[[N]]
      %3 = llvm.atomicrmw sub %p, %v monotonic : !llvm.ptr<1>, i32
      // CHECK: llvm.store %[[R]], %arg0
      llvm.store %3, %p : i32, !llvm.ptr<1>
      // CHECK: %[[M:.*]] = llvm.fneg %arg3
      // CHECK: llvm.atomicrmw fsub %arg0, %[[M]] acq_rel
      %4 = llvm.atomicrmw fadd %p, %h acq_rel : !llvm.ptr<1>, f16
      llvm.return
    }
  }
  // CHECK-LABEL: llvm.func @host
  llvm.func @host(%p: !llvm.ptr, %v: i32) {
    // CHECK: llvm.atomicrmw add %arg0, %arg1 acq_rel
    %0 = llvm.atomicrmw add %p, %v acq_rel : !llvm.ptr, i32
    llvm.return
  }
}
