// im2col loads along W (sm_100): the halo is a constant of the instruction, and the offset its one operand.
// RUN: cute-opt %s --verify-roundtrip | FileCheck %s
// RUN: cute-opt %s --cute-expand-ops --convert-cute-algo-to-arch --verify-legality | FileCheck %s --check-prefix=ARCH
// RUN: cute-opt %s --pipeline=base | FileCheck %s --check-prefix=BASE

!load = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 16, lower = (-1, 0), upper = (0, 0), pixel_strides = (2, 1), swizzle = 128, mode = w, halo = 2>
!all = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (0, 0), upper = (0, 0), swizzle = 128, cta_group = 2, mode = w_128, halo = 1>
!g = !cute.memref<f16, gmem, "(?,?,?,?):(1,?,?,?)">
!s = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,18):(1,64)">
!tile = !cute.coord_tensor<"(?,?,?,?)", "(64,18):(1@0,0)">
!bar = !cute.ptr<i64, smem>
!p = !cute.ptr<f16, smem, align<1024>, S<3,4,3>>

// CHECK-LABEL: @host
func.func @host(%g: !g) -> (!load, !all) {
  // CHECK: -> !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 16, lower = (-1, 0), upper = (0, 0), pixel_strides = (2, 1), swizzle = 128, mode = w, halo = 2>
  // Channels, pixels, the mode, the corners and the steps.
  // BASE: llvm.call @cute_tensor_map_im2col_4d({{.*}}, %c64_i32, %c16_i32, %c1_i32, %{{.*}}, %c0_i32, %c0_i32, %c0_i32, %c1_i32, %c2_i32,
  %a = cute_nvgpu.make_tma_load_im2col(%g) : (!g) -> !load
  // BASE: llvm.call @cute_tensor_map_im2col_4d({{.*}}, %c64_i32, %c128_i32, %c2_i32,
  %b = cute_nvgpu.make_tma_load_im2col(%g) : (!g) -> !all
  return %a, %b : !load, !all
}

gpu.module @kernels {
  // ARCH-LABEL: gpu.func @k
  // BASE-LABEL: llvm.func @k
  gpu.func @k(%load: !load, %all: !all, %x: !tile, %s: !s, %o: i32, %h: i16, %bar: !bar, %p: !p) kernel {
    %c = cute.make_coord(%o) : (i32) -> !cute.coord<"?">
    %0 = cute.atom.set_value(%load, %c) {field = im2col_offsets} : (!load, !cute.coord<"?">) -> !load
    %a = cute.atom.set_value(%0, %bar) {field = tma_bar} : (!load, !bar) -> !load
    // ARCH: %[[W:.*]] = arith.trunci %{{.*}} : i32 to i16
    // ARCH: cute_nvgpu.arch.tma_load_im2col(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[W]])
    // BASE: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}im2col[%c2_i16, %{{.*}}] {isCTAOnly = true, mode = #nvvm.tma_load_mode<im2col_w>} : !llvm.ptr<3>
    cute.copy(%a, %x, %s) : (!load, !tile, !s) -> ()
    // BASE: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}im2col[%c1_i16, %{{.*}}] {group = #nvvm.cta_group<cta_2>, {{.*}}mode = #nvvm.tma_load_mode<im2col_w_128>} : !llvm.ptr<7>
    cute_nvgpu.arch.tma_load_im2col(%all, %o, %o, %o, %o, %p, %bar, %h) : (!all, i32, i32, i32, i32, !p, !bar, i16) -> ()
    // BASE: nvvm.cp.async.bulk.tensor.prefetch {{.*}}im2col[%{{.*}}, %{{.*}}] {mode = #nvvm.tma_load_mode<im2col_w>}
    cute_nvgpu.arch.tma_prefetch_im2col(%load, %o, %o, %o, %o, %h) : (!load, i32, i32, i32, i32, i16) -> ()
    gpu.return
  }
}
