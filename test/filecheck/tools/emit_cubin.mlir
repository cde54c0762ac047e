// REQUIRES: mlir, ptxas
// RUN: cute-opt %s --emit=cubin -o %t.cubin && %python -c "import sys; d = open(sys.argv[1], 'rb').read(); print(d[1:4].decode(), b'scale' in d)" %t.cubin | filecheck %s
// RUN: cute-opt %s --pipeline=nvptx=compilation-target=bin --emit=cubin -o %t.bin && %python -c "import sys; print(open(sys.argv[1], 'rb').read(4)[1:].decode())" %t.bin | filecheck %s --check-prefix=BIN
// CHECK: ELF True
// BIN: ELF
gpu.module @kernels {
  gpu.func @scale(%p: !llvm.ptr, %n: i32) kernel {
    llvm.store %n, %p : i32, !llvm.ptr
    gpu.return
  }
}
