// Modules that hold nothing cross to upstream like others.
// REQUIRES: mlir
// RUN: cute-opt %s --pipeline --split-input-file | filecheck %s
// RUN: cute-opt %s --pipeline=host --split-input-file | filecheck %s --check-prefix=HOST
// RUN: echo "gpu.module @m {}" | cute-opt - --pipeline --emit=ptx | filecheck %s --check-prefix=PTX
// RUN: echo "gpu.module @m {}" | cute-opt - --pipeline --emit=llvm | filecheck %s --check-prefix=LLVM
// RUN: echo "module {}" | not cute-opt - --pipeline --emit=ptx 2>&1 | filecheck %s --check-prefix=NONE

// CHECK: module {
// CHECK-NEXT: }
// HOST: module {
// HOST-NEXT: }
module {}

// -----

// CHECK: gpu.binary @m
// HOST: gpu.module @m {
// HOST-NEXT: }
module attributes {gpu.container_module} {
  gpu.module @m {
  }
}

// PTX: .target sm_90a
// LLVM: ModuleID
// NONE: error: --emit=ptx: no gpu.binary found; it needs a gpu.module and emit-gpu-binary as the last pass
