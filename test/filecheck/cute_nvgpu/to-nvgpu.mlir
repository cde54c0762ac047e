// RUN: cute-opt %s --cute-to-base=arch-dialect=nvgpu --verify-legality | FileCheck %s
// RUN: cute-opt %s --cute-to-base=arch-dialect=nvgpu --verify-diagnostics
// RUN: cute-opt %s --cute-to-base | FileCheck %s --check-prefix=NVVM
// RUN: not cute-opt %s --cute-to-base=arch-dialect=spirv 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not cute-opt %s --pipeline=nvptx=arch-dialect=spirv 2>&1 | FileCheck %s --check-prefix=PIPELINE

// OPTION: option 'arch-dialect' of pass 'cute-to-base': expected nvvm or nvgpu, got 'spirv'
// PIPELINE: option 'arch-dialect' of pipeline 'nvptx': expected nvvm or nvgpu, got 'spirv'
// NVVM-NOT: nvgpu

!ldsm = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>
!ldsm_t = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 2, t>
!stsm = !cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>
!cp = !cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>
!cp4 = !cute_nvgpu.atom.simt_async_copy<f16, cache = always, 32 b>
!mma = !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>
!mma_bf16 = !cute_nvgpu.atom.mma_sync<16x8x16, (f32,bf16,bf16,f32)>
!row = !cute.memref<f16, smem, align<16>, "8:1">
!g = !cute.memref<f16, gmem, align<16>, "8:1">
!row2 = !cute.memref<f16, smem, align<4>, "2:1">
!g2 = !cute.memref<f16, gmem, align<4>, "2:1">
!a = !cute.memref<f16, rmem, "(2,2,2):(1,2,4)">
!b = !cute.memref<f16, rmem, "(2,2):(1,2)">
!c = !cute.memref<f32, rmem, "(2,2):(1,2)">
!a_bf16 = !cute.memref<bf16, rmem, "(2,2,2):(1,2,4)">
!b_bf16 = !cute.memref<bf16, rmem, "(2,2):(1,2)">
!bar = !cute.ptr<i64, smem>

gpu.module @m {
  // A memref of what is moved, from the pointer; a predicate becomes the number of elements that are read.
  // CHECK-LABEL: llvm.func @copies
  // CHECK-DAG: %[[G:.*]] = builtin.unrealized_conversion_cast %{{.*}} : !llvm.struct<(ptr<1>, ptr<1>, i64, array<1 x i64>, array<1 x i64>)> to memref<8xf16, #gpu.address_space<global>>
  // CHECK-DAG: %[[S:.*]] = builtin.unrealized_conversion_cast %{{.*}} : !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)> to memref<8xf16, #gpu.address_space<workgroup>>
  // CHECK: %[[T0:.*]] = nvgpu.device_async_copy %[[G]][%c0], %[[S]][%c0], 8 {bypassL1} : memref<8xf16, #gpu.address_space<global>> to memref<8xf16, #gpu.address_space<workgroup>>
  // CHECK: %[[N:.*]] = arith.select %{{.*}}, %c8, %c0 : index
  // CHECK: %[[T1:.*]] = nvgpu.device_async_copy %[[G]][%c0], %[[S]][%c0], 8, %[[N]] {bypassL1}
  // CHECK: %[[GROUP:.*]] = nvgpu.device_async_create_group %[[T0]], %[[T1]]
  // CHECK: %[[T2:.*]] = nvgpu.device_async_copy %{{.*}}[%c0], %{{.*}}[%c0], 2 : memref<2xf16
  // CHECK: nvgpu.device_async_create_group %[[T2]]
  // CHECK: nvgpu.device_async_wait %{{.*}} {numGroups = 1 : i32}
  // CHECK: scf.if
  // CHECK:   %[[NO:.*]] = builtin.unrealized_conversion_cast %{{.*}} : i32 to !nvgpu.device.async.token
  // CHECK:   nvgpu.device_async_wait %[[NO]] {numGroups = 0 : i32}
  gpu.func @copies(%g: !g, %s: !row, %g2: !g2, %s2: !row2, %p: i1) kernel {
    cute_nvgpu.arch.cp_async(%g, %s) {atom = !cp} : (!g, !row) -> ()
    cute_nvgpu.arch.cp_async(%g, %s, %p) {atom = !cp} : (!g, !row, i1) -> ()
    cute_nvgpu.arch.cp_async_commit_group() : () -> ()
    cute_nvgpu.arch.cp_async(%g2, %s2) {atom = !cp4} : (!g2, !row2) -> ()
    cute_nvgpu.arch.cp_async_commit_group() : () -> ()
    cute_nvgpu.arch.cp_async_wait_group() {n = 1 : i32} : () -> ()
    scf.if %p {
      cute_nvgpu.arch.cp_async_wait_group() {n = 0 : i32} : () -> ()
    }
    gpu.return
  }

  // What ldmatrix gives is what mma.sync takes; accumulators go from one to the next.
  // CHECK-LABEL: llvm.func @matrices
  // CHECK: %[[A:.*]] = nvgpu.ldmatrix %{{.*}}[%c0] {numTiles = 4 : i32, transpose = false} : memref<8xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
  // CHECK: %[[B:.*]] = nvgpu.ldmatrix %{{.*}}[%c0] {numTiles = 2 : i32, transpose = true} : memref<8xf16, #gpu.address_space<workgroup>> -> vector<2x2xf16>
  // CHECK: %[[C:.*]] = nvgpu.mma.sync(%[[A]], %[[B]], %{{.*}}) {mmaShape = [16 : i64, 8 : i64, 16 : i64]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
  // CHECK: nvgpu.mma.sync(%[[A]], %[[B]], %[[C]])
  // CHECK: nvvm.stmatrix
  // CHECK: nvvm.mma.sync {{.*}} #nvvm.mma_type<bf16>
  gpu.func @matrices(%s: !row) kernel {
    %a = cute.memref.alloca() : !a
    %b = cute.memref.alloca() : !b
    %c = cute.memref.alloca() : !c
    cute_nvgpu.arch.ldmatrix(%s, %a) {atom = !ldsm} : (!row, !a) -> ()
    cute_nvgpu.arch.ldmatrix(%s, %b) {atom = !ldsm_t} : (!row, !b) -> ()
    cute_nvgpu.arch.mma_sync(%c, %a, %b, %c) {atom = !mma} : (!c, !a, !b, !c) -> ()
    cute_nvgpu.arch.mma_sync(%c, %a, %b, %c) {atom = !mma} : (!c, !a, !b, !c) -> ()
    // expected-remark @below {{'cute_nvgpu.arch.stmatrix' is not lowered to nvgpu: nvgpu has no stmatrix}}
    cute_nvgpu.arch.stmatrix(%a, %s) {atom = !stsm} : (!a, !row) -> ()
    %a2 = cute.memref.alloca() : !a_bf16
    %b2 = cute.memref.alloca() : !b_bf16
    // expected-remark @below {{'cute_nvgpu.arch.mma_sync' is not lowered to nvgpu: nvgpu.mma.sync of MLIR 22 has no registers for elements bf16}}
    cute_nvgpu.arch.mma_sync(%c, %a2, %b2, %c) {atom = !mma_bf16} : (!c, !a_bf16, !b_bf16, !c) -> ()
    gpu.return
  }

  // CHECK-LABEL: llvm.func @barriers
  // CHECK: %[[BAR:.*]] = builtin.unrealized_conversion_cast %{{.*}} : !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)> to !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
  // CHECK: nvgpu.mbarrier.init %[[BAR]][%c0], %c1
  // CHECK: nvgpu.mbarrier.arrive %[[BAR]][%c0]
  // CHECK: nvgpu.mbarrier.arrive.expect_tx %[[BAR]][%c0], %{{.*}} :
  // CHECK: %[[BIT:.*]] = arith.trunci %{{.*}} : i32 to i1
  // CHECK: nvgpu.mbarrier.try_wait.parity %[[BAR]][%c0], %[[BIT]], %c10000000
  // CHECK: nvvm.mbarrier.try_wait
  gpu.func @barriers(%bar: !bar, %bytes: i32, %parity: i32) kernel {
    %c1 = arith.constant 1 : i32
    cute_nvgpu.arch.mbarrier_init(%bar, %c1) : (!bar, i32) -> ()
    cute_nvgpu.arch.mbarrier_arrive(%bar) : (!bar) -> ()
    cute_nvgpu.arch.mbarrier_arrive_expect_tx(%bar, %bytes) : (!bar, i32) -> ()
    cute_nvgpu.arch.mbarrier_wait(%bar, %parity) : (!bar, i32) -> ()
    // expected-remark @below {{'cute_nvgpu.arch.mbarrier_try_wait' is not lowered to nvgpu: nvgpu.mbarrier.try_wait.parity blocks and returns no result}}
    %done = cute_nvgpu.arch.mbarrier_try_wait(%bar, %parity) : (!bar, i32) -> i1
    gpu.return
  }
}
