// TMA: every type and op in its canonical form, and the same by way of the generic form.
// RUN: cute-opt %s --verify-roundtrip | filecheck %s
// RUN: cute-opt %s --mlir-print-op-generic | cute-opt | filecheck %s

!g = !cute.memref<f16, gmem, "(?,?):(?{div=8},1)">
!l = !cute.layout<"(128,64):(64,1)">
!t = !cute.tile<"[128:1;64:1]">
!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>
!store = !cute_nvgpu.atom.tma_store<f16, box = (64, 128), swizzle = 128>
!reduce = !cute_nvgpu.atom.tma_reduce<f16, max, box = (64, 128), swizzle = 128, l2 = 256>
!xy = !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">
!tile = !cute.coord_tensor<"(?,?)", "(128,64):(1@1,1@0)">
!s = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,64):(64,1)">
!p = !cute.ptr<f16, smem, align<1024>, S<3,4,3>>
!bar = !cute.ptr<i64, smem>

// What is by default is not printed.
// CHECK-LABEL: @types
// CHECK-SAME: !cute_nvgpu.atom.tma_load<bf16, box = (64, 8)>
// CHECK-SAME: !cute_nvgpu.atom.tma_load<f32, box = (16, 8, 2), swizzle = 64, element_strides = (1, 2, 1), oob = nan, l2 = 0>
// CHECK-SAME: !cute_nvgpu.atom.tma_store<i8, box = (32, 4, 1), swizzle = 32, interleave = 32>
func.func private @types(
  !cute_nvgpu.atom.tma_load<bf16, box = (64, 8), swizzle = 0, interleave = 0, element_strides = (1, 1), oob = zero, l2 = 128>,
  !cute_nvgpu.atom.tma_load<f32, box = (16, 8, 2), l2 = 0, oob = nan, element_strides = (1, 2, 1), swizzle = 64>,
  !cute_nvgpu.atom.tma_store<i8, box = (32, 4, 1), swizzle = 32, interleave = 32>)

// CHECK-LABEL: @host
func.func @host(%g: !g) {
  %l = cute.static : !l
  %t = cute.static : !t
  // CHECK: %{{.*}} = cute_nvgpu.make_tma_load(%{{.*}}, %{{.*}}, %{{.*}}) {swizzle = 128 : i32} : (!cute.memref<f16, gmem, "(?,?):(?{div=8},1)">, !cute.layout<"(128,64):(64,1)">, !cute.tile<"[128:1;64:1]">) -> (!cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>, !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">)
  %a, %x = cute_nvgpu.make_tma_load(%g, %l, %t) {swizzle = 128 : i32} : (!g, !l, !t) -> (!load, !xy)
  // CHECK: cute_nvgpu.make_tma_store(%{{.*}}, %{{.*}}, %{{.*}}) {swizzle = 128 : i32}
  %b, %y = cute_nvgpu.make_tma_store(%g, %l, %t) {swizzle = 128 : i32} : (!g, !l, !t) -> (!store, !xy)
  // CHECK: cute_nvgpu.make_tma_reduce(%{{.*}}, %{{.*}}, %{{.*}}) {l2 = 256 : i32, reduction = max, swizzle = 128 : i32}
  %c, %z = cute_nvgpu.make_tma_reduce(%g, %l, %t) {swizzle = 128 : i32, reduction = "max", l2 = 256 : i32}
    : (!g, !l, !t) -> (!reduce, !xy)
  // A swizzle in the layout, a multicast, a fill.
  %s = cute.static : !cute.composed_layout<"S<3,3,3> o 0 o (128,64):(64,1)">
  // CHECK: cute_nvgpu.make_tma_load(%{{.*}}, %{{.*}}, %{{.*}}) {multicast = 2 : i32, oob = nan} : {{.*}} -> (!cute_nvgpu.atom.tma_load<f16, box = (64, 64), swizzle = 128, oob = nan>,
  %d, %w = cute_nvgpu.make_tma_load(%g, %s, %t) {multicast = 2 : i32, oob = nan}
    : (!g, !cute.composed_layout<"S<3,3,3> o 0 o (128,64):(64,1)">, !t)
    -> (!cute_nvgpu.atom.tma_load<f16, box = (64, 64), swizzle = 128, oob = nan>, !xy)
  return
}

// CHECK-LABEL: @numbers
func.func @numbers(%p: !cute.ptr<f16, gmem>, %n: i64) -> !load {
  // CHECK: cute_nvgpu.arch.make_tensor_map(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (!cute.ptr<f16, gmem>, i64, i64, i64) -> !cute_nvgpu.atom.tma_load
  %a = cute_nvgpu.arch.make_tensor_map(%p, %n, %n, %n) : (!cute.ptr<f16, gmem>, i64, i64, i64) -> !load
  return %a : !load
}

// CHECK-LABEL: @device
func.func @device(%a: !load, %b: !store, %c: !reduce, %x: !tile, %s: !s, %p: !p, %bar: !bar, %m: i16, %h: i64, %f: i1, %i: i32) {
  // CHECK: cute.atom.set_value(%{{.*}}, %{{.*}}) {field = tma_bar} : (!cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>, !cute.ptr<i64, smem>) -> !cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>
  %a1 = cute.atom.set_value(%a, %bar) {field = tma_bar} : (!load, !bar) -> !load
  // CHECK: cute.atom.set_value(%{{.*}}, %{{.*}}) {field = multicast_mask}
  %a2 = cute.atom.set_value(%a1, %m) {field = "multicast_mask"} : (!load, i16) -> !load
  // CHECK: cute.atom.set_value(%{{.*}}, %{{.*}}) {field = cache_hint}
  %a3 = cute.atom.set_value(%a2, %h) {field = cache_hint} : (!load, i64) -> !load
  // CHECK: cute.atom.set_value(%{{.*}}, %{{.*}}) {field = pred}
  %a4 = cute.atom.set_value(%a3, %f) {field = pred} : (!load, i1) -> !load
  // CHECK: cute.copy(%{{.*}}, %{{.*}}, %{{.*}}) : (!cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>, !cute.coord_tensor<"(?,?)", "(128,64):(1@1,1@0)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,64):(64,1)">) -> ()
  cute.copy(%a4, %x, %s) : (!load, !tile, !s) -> ()
  // CHECK: cute.copy(%{{.*}}, %{{.*}}, %{{.*}}) : (!cute_nvgpu.atom.tma_store<f16, box = (64, 128), swizzle = 128>,
  cute.copy(%b, %s, %x) : (!store, !s, !tile) -> ()
  // CHECK: cute_nvgpu.arch.prefetch_tensormap(%{{.*}}) : (!cute_nvgpu.atom.tma_load
  cute_nvgpu.arch.prefetch_tensormap(%a) : (!load) -> ()
  // CHECK: cute_nvgpu.arch.tensor_map_address(%{{.*}}) : ({{.*}}) -> !cute.ptr<i64, generic, align<64>>
  %map = cute_nvgpu.arch.tensor_map_address(%a) : (!load) -> !cute.ptr<i64, generic, align<64>>
  // CHECK: cute_nvgpu.arch.tensor_map_at(%{{.*}}, %{{.*}}) : (!cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>, !cute.ptr<i64, generic, align<64>>) -> !cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>
  %same = cute_nvgpu.arch.tensor_map_at(%a, %map) : (!load, !cute.ptr<i64, generic, align<64>>) -> !load
  // CHECK: cute_nvgpu.arch.tma_load(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : ({{.*}}, i32, i32, !cute.ptr<f16, smem, align<1024>, S<3,4,3>>, !cute.ptr<i64, smem>, i16, i64) -> ()
  cute_nvgpu.arch.tma_load(%a, %i, %i, %p, %bar, %m, %h) : (!load, i32, i32, !p, !bar, i16, i64) -> ()
  // CHECK: cute_nvgpu.arch.tma_store(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : ({{.*}}, i32, i32, !cute.ptr<f16, smem, align<1024>, S<3,4,3>>) -> ()
  cute_nvgpu.arch.tma_store(%b, %i, %i, %p) : (!store, i32, i32, !p) -> ()
  // CHECK: cute_nvgpu.arch.tma_reduce(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : ({{.*}}, i32, i32, !cute.ptr<f16, smem, align<1024>, S<3,4,3>>, i64) -> ()
  cute_nvgpu.arch.tma_reduce(%c, %i, %i, %p, %h) : (!reduce, i32, i32, !p, i64) -> ()
  return
}
