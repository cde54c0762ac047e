// A kernel with types of tensors, tiled copies and atoms, from mlir-opt to cute-opt and the other way round.

// REQUIRES: mlir-opt, mlir

// RUN: cute-opt %root/test/examples/elementwise_add.mlir --mlir-print-op-generic --mlir-print-debuginfo > %t.generic.mlir
// RUN: mlir-opt %t.generic.mlir --allow-unregistered-dialect --canonicalize --cse --mlir-print-op-generic \
// RUN:   | cute-opt --pipeline --emit=ptx | FileCheck %s --check-prefix=PTX

// cute-opt lowers the kernel to the base level, and mlir-opt does the rest.
// RUN: cute-opt %t.generic.mlir --pipeline=base \
// RUN:   | mlir-opt --canonicalize --nvvm-attach-target="chip=sm_90a O=3" --convert-vector-to-scf --convert-scf-to-cf \
// RUN:       --convert-gpu-to-nvvm --convert-vector-to-llvm --convert-to-llvm --reconcile-unrealized-casts \
// RUN:   | FileCheck %s --check-prefix=LLVM

// cute-opt parses the output of mlir-opt.
// RUN: mlir-opt %t.generic.mlir --allow-unregistered-dialect | cute-opt --verify-roundtrip > %t.back.mlir
// RUN: cute-opt %root/test/examples/elementwise_add.mlir > %t.ours.mlir
// RUN: diff %t.ours.mlir %t.back.mlir

// PTX: .visible .entry add(
// PTX: ld.global{{.*}}.v4.{{[bfu]}}32
// LLVM: gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_90a">]
// LLVM: llvm.func @add(
// LLVM-NOT: cute.{{[a-z_]+}}"
