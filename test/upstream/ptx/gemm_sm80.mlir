// REQUIRES: mlir
// RUN: cute-opt %S/../../examples/gemm_sm80.mlir --pipeline=nvptx=chip=sm_80,features=+ptx74 --emit=ptx | FileCheck %s

// The kernels compile for sm_80, keep all register tensors out of local memory, and need no repacking of registers.
// CHECK:     .target sm_80
// CHECK-NOT: .local
// CHECK:     .visible .entry gemm_16(
// CHECK-NOT: prmt
// CHECK-COUNT-16: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK-COUNT-64: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// CHECK-NOT: prmt
// CHECK:     cp.async.wait_group {{.*}}1;
// CHECK-NEXT: bar.sync {{.*}}0;
// CHECK-COUNT-8: cp.async.cg.shared.global
// CHECK:     cp.async.wait_group {{.*}}0;
