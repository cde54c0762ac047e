// TMA loads that place 16 elements of 4 or 6 bits in 16 bytes of shared memory.
// RUN: cute-opt %s --verify-roundtrip | FileCheck %s
// RUN: cute-opt %s --cute-expand-ops --convert-cute-algo-to-arch --verify-legality | FileCheck %s --check-prefix=ARCH
// RUN: cute-opt %s --pipeline=base | FileCheck %s --check-prefix=BASE

!four = !cute_nvgpu.atom.tma_load<f4E2M1FN, box = (128, 64), swizzle = 128, unpack = 16>
!six = !cute_nvgpu.atom.tma_load<f6E3M2FN, box = (128, 64), swizzle = 128, unpack = 16>
!g4 = !cute.memref<f4E2M1FN, gmem, "(?,?):(?{div=128},1)">
!g6 = !cute.memref<f6E3M2FN, gmem, "(?,?):(?{div=128},1)">
!xy = !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">
// Two boxes of 128 elements, a byte each.
!s = !cute.memref<i8, smem, align<1024>, S<3,4,3>, "(64,(128,2)):(128,(1,8192))">
!tile = !cute.coord_tensor<"(?,?)", "(64,256):(1@1,1@0)">
!bar = !cute.ptr<i64, smem>

// CHECK-LABEL: @host
func.func @host(%g: !g4, %h: !g6) -> (!four, !six) {
  %l = cute.static : !cute.layout<"(64,128):(128,1)">
  %t = cute.static : !cute.tile<"[64:1;128:1]">
  // CHECK: cute_nvgpu.make_tma_load(%{{.*}}, %{{.*}}, %{{.*}}) {swizzle = 128 : i32, unpack = 16 : i32} : {{.*}} -> (!cute_nvgpu.atom.tma_load<f4E2M1FN, box = (128, 64), swizzle = 128, unpack = 16>,
  // The strides in bytes, and code 14 of CUtensorMapDataType.
  // ARCH: arith.muli %{{.*}}, %c4_i64
  // ARCH: cute_nvgpu.arch.make_tensor_map(
  // BASE: llvm.call @cute_tensor_map_tiled_2d({{.*}}%c14_i32,
  %a, %x = cute_nvgpu.make_tma_load(%g, %l, %t) {swizzle = 128 : i32, unpack = 16 : i32} : (!g4, !cute.layout<"(64,128):(128,1)">, !cute.tile<"[64:1;128:1]">) -> (!four, !xy)
  // ARCH: arith.muli %{{.*}}, %c6_i64
  // BASE: llvm.call @cute_tensor_map_tiled_2d({{.*}}%c15_i32,
  %b, %y = cute_nvgpu.make_tma_load(%h, %l, %t) {swizzle = 128 : i32, unpack = 16 : i32} : (!g6, !cute.layout<"(64,128):(128,1)">, !cute.tile<"[64:1;128:1]">) -> (!six, !xy)
  return %a, %b : !four, !six
}

gpu.module @kernels {
  // ARCH-LABEL: gpu.func @k
  // BASE-LABEL: llvm.func @k
  gpu.func @k(%load: !four, %x: !tile, %s: !s, %bar: !bar) kernel {
    %a = cute.atom.set_value(%load, %bar) {field = tma_bar} : (!four, !bar) -> !four
    // ARCH-COUNT-2: cute_nvgpu.arch.tma_load(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (!cute_nvgpu.atom.tma_load<{{.*}}>, i32, i32, !cute.ptr<i8, smem
    // BASE-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}box[%{{.*}}, %{{.*}}]
    cute.copy(%a, %x, %s) : (!four, !tile, !s) -> ()
    gpu.return
  }
}
