// Accesses of mbarriers in other blocks stay in the nvvm dialect.
// RUN: cute-opt %s --cute-to-base=arch-dialect=nvgpu --verify-legality | FileCheck %s
// RUN: cute-opt %s --cute-to-base=arch-dialect=nvgpu --verify-diagnostics

!bar = !cute.ptr<i64, smem>

gpu.module @m {
  // CHECK-LABEL: llvm.func @other_blocks
  // CHECK: nvvm.mapa
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global
  gpu.func @other_blocks(%narrow: !cute_nvgpu.atom.tma_load<f4E2M1FN, box = (128, 8), unpack = 16>, %bytes: !cute.ptr<i8, smem, align<128>>, %map: !cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128, cta_group = 2>, %x: i32, %smem: !cute.ptr<f16, smem, align<1024>>, %bar: !bar) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    // expected-remark @below {{'cute_nvgpu.arch.mbarrier_arrive_expect_tx' is not lowered to nvgpu: nvgpu expects bytes at mbarriers of the own block only}}
    cute_nvgpu.arch.mbarrier_arrive_expect_tx(%bar, %x, %x) : (!bar, i32, i32) -> ()
    // expected-remark @below {{'cute_nvgpu.arch.tma_load' is not lowered to nvgpu: nvgpu.tma.async.load does not unpack 4-bit and 6-bit elements}}
    cute_nvgpu.arch.tma_load(%narrow, %x, %x, %bytes, %bar) : (!cute_nvgpu.atom.tma_load<f4E2M1FN, box = (128, 8), unpack = 16>, i32, i32, !cute.ptr<i8, smem, align<128>>, !bar) -> ()
    // expected-remark @below {{'cute_nvgpu.arch.tma_load' is not lowered to nvgpu: nvgpu.tma.async.load signals mbarriers of the own block only}}
    cute_nvgpu.arch.tma_load(%map, %x, %x, %smem, %bar) : (!cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128, cta_group = 2>, i32, i32, !cute.ptr<f16, smem, align<1024>>, !bar) -> ()
    gpu.return
  }
}
