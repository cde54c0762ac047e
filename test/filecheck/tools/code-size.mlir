// How large code is from stage to stage: ops of each function, and, with ptxas, bytes of machine code.
// RUN: cute-opt %s --pipeline=base --code-size -o %t.mlir 2>&1 | FileCheck %s
// RUN: %if ptxas %{ %if mlir %{ cute-opt %s --pipeline --emit=ptx --code-size -o %t.ptx 2>&1 | FileCheck %s --check-prefix=PTX %} %}

// CHECK:      ===-- code size report --===
// CHECK-NEXT:   @scale  ops after
// CHECK-NEXT:  {{^ +}}6  input
// CHECK:       {{^ +[0-9]+}}  cute-expand-ops
// CHECK:       {{^ +[0-9]+}}  cute-to-base
// PTX:         @scale  ops after
// PTX:         {{^ +[0-9]+}}  one-shot-convert-to-llvm
// PTX:         {{^ +[0-9]+}}  PTX instructions
// PTX-NEXT:    {{^ +[1-9][0-9]+}}  bytes of machine code (ptxas {{.*}}, sm_90a)
gpu.module @kernels {
  gpu.func @scale(%x: !cute.memref<f32, gmem, "128:1">) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %k = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
    %v = cute.memref.load(%x, %k) : (!cute.memref<f32, gmem, "128:1">, !cute.coord<"?">) -> f32
    %w = arith.addf %v, %v : f32
    cute.memref.store(%x, %k, %w) : (!cute.memref<f32, gmem, "128:1">, !cute.coord<"?">, f32) -> ()
    gpu.return
  }
}
