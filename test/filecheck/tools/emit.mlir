// REQUIRES: mlir
// RUN: cute-opt %s --pipeline=nvptx --emit=ptx | filecheck %s --check-prefix=PTX
// RUN: cute-opt %s --emit=ptx -o %t.ptx && filecheck %s --check-prefix=PTX < %t.ptx
// RUN: cute-opt %s --pipeline=nvptx=chip=sm_80,features=+ptx80 --emit=ptx | filecheck %s --check-prefix=SM80
// RUN: cute-opt %s --emit=llvm | filecheck %s --check-prefix=LLVM
// RUN: cute-opt %s --pipeline | filecheck %s --check-prefix=BINARY
// RUN: not cute-opt %s --pipeline=base --emit=ptx 2>&1 | filecheck %s --check-prefix=NONE

// PTX: .version 8.3
// PTX: .target sm_90a
// PTX: .visible .entry scale(
// SM80: .version 8.0
// SM80: .target sm_80
// LLVM: define ptx_kernel void @scale(ptr
// BINARY: gpu.binary @kernels
// BINARY-SAME: chip = "sm_90a"
// NONE: error: --emit=ptx needs a pipeline that ends in upstream MLIR
gpu.module @kernels {
  gpu.func @scale(%p: !llvm.ptr, %n: i32) kernel {
    %s = cute.make_shape(%n) : (i32) -> !cute.shape<"(?,6)">
    %z = cute.size(%s) : (!cute.shape<"(?,6)">) -> !cute.int_tuple<"?">
    %i = cute.get_scalars(%z) : !cute.int_tuple<"?">
    llvm.store %i, %p : i32, !llvm.ptr
    gpu.return
  }
}
