// Bulk copies: types, ops and copies in their canonical form, lowered, assembled to one instruction a run.
// RUN: cute-opt %s --verify-roundtrip | FileCheck %s
// RUN: cute-opt %s --cute-expand-ops --convert-cute-algo-to-arch --verify-legality | FileCheck %s --check-prefix=ARCH
// RUN: cute-opt %s --cute-expand-ops --convert-cute-algo-to-arch --cute-to-base | FileCheck %s --check-prefix=BASE

// CHECK-LABEL: @types
// CHECK-SAME: !cute_nvgpu.atom.bulk_copy<f32>, !cute_nvgpu.atom.bulk_copy<f16, 4096 b>
// CHECK-SAME: !cute_nvgpu.atom.bulk_reduce<bf16, add>, !cute_nvgpu.atom.bulk_reduce<i32, xor, 128 b>
func.func private @types(
  !cute_nvgpu.atom.bulk_copy<f32>, !cute_nvgpu.atom.bulk_copy<f16, 4096 b>,
  !cute_nvgpu.atom.bulk_reduce<bf16, add>, !cute_nvgpu.atom.bulk_reduce<i32, xor, 128 b>)

!at = !cute_nvgpu.atom.bulk_copy<f32>
!red = !cute_nvgpu.atom.bulk_reduce<f32, add>
!g = !cute.memref<f32, gmem, align<16>, "(96,2):(1,?{div=4})">
!s = !cute.memref<f32, smem, align<16>, "(96,2):(1,100)">
!bar = !cute.ptr<i64, smem>

// A run of 96 elements, twice: the stride between them is dynamic.
// ARCH-LABEL: func.func @load
// ARCH-COUNT-2: cute_nvgpu.arch.bulk_copy(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (!cute.memref<f32, gmem, align<16>, "96:1">, !cute.memref<f32, smem, align<16>, "96:1">, !cute.ptr<i64, smem>, i16, i64) -> ()
// ARCH-NOT: bulk_copy
// BASE-LABEL: func.func @load
// BASE-COUNT-2: nvvm.cp.async.bulk.shared.cluster.global %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} multicast_mask = %{{.*}} l2_cache_hint = %{{.*}}
func.func @load(%g: !g, %s: !s, %bar: !bar, %mask: i16, %hint: i64) {
  %at = cute.atom() : !at
  // CHECK: cute.atom.set_value(%{{.*}}, %{{.*}}) {field = tma_bar} : (!cute_nvgpu.atom.bulk_copy<f32>, !cute.ptr<i64, smem>) -> !cute_nvgpu.atom.bulk_copy<f32>
  %a = cute.atom.set_value(%at, %bar) {field = tma_bar} : (!at, !bar) -> !at
  %b = cute.atom.set_value(%a, %mask) {field = multicast_mask} : (!at, i16) -> !at
  %c = cute.atom.set_value(%b, %hint) {field = cache_hint} : (!at, i64) -> !at
  // CHECK: cute.copy(%{{.*}}, %{{.*}}, %{{.*}}) : (!cute_nvgpu.atom.bulk_copy<f32>, !cute.memref<f32, gmem, align<16>, "(96,2):(1,?{div=4})">, !cute.memref<f32, smem, align<16>, "(96,2):(1,100)">) -> ()
  cute.copy(%c, %g, %s) : (!at, !g, !s) -> ()
  return
}

// ARCH-LABEL: func.func @store
// ARCH: scf.if %{{.*}} {
// ARCH-COUNT-2: cute_nvgpu.arch.bulk_copy(%{{.*}}, %{{.*}}, %{{.*}}) : (!cute.memref<f32, smem, align<16>, "96:1">, !cute.memref<f32, gmem, align<16>, "96:1">, i64) -> ()
// BASE-LABEL: func.func @store
// BASE-COUNT-2: nvvm.cp.async.bulk.global.shared.cta %{{.*}}, %{{.*}}, %{{.*}} l2_cache_hint = %{{.*}}
func.func @store(%g: !g, %s: !s, %hint: i64, %flag: i1) {
  %at = cute.atom() : !at
  %a = cute.atom.set_value(%at, %hint) {field = cache_hint} : (!at, i64) -> !at
  %b = cute.atom.set_value(%a, %flag) {field = pred} : (!at, i1) -> !at
  cute.copy(%b, %s, %g) : (!at, !s, !g) -> ()
  return
}

// ARCH-LABEL: func.func @reduce
// ARCH-COUNT-2: cute_nvgpu.arch.bulk_reduce(%{{.*}}, %{{.*}}) {reduction = "add"} : (!cute.memref<f32, smem, align<16>, "96:1">, !cute.memref<f32, gmem, align<16>, "96:1">) -> ()
// BASE-LABEL: func.func @reduce
// BASE: nvvm.inline_ptx "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [$0], [$1], $2;"
// BASE-LABEL: func.func @reduce_hint
// BASE: nvvm.inline_ptx "cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.add.f32 [$0], [$1], $2, $3;"
func.func @reduce(%g: !g, %s: !s) {
  %at = cute.atom() : !red
  cute.copy(%at, %s, %g) : (!red, !s, !g) -> ()
  return
}
func.func @reduce_hint(%g: !g, %s: !s, %hint: i64) {
  %at = cute.atom() : !red
  %a = cute.atom.set_value(%at, %hint) {field = cache_hint} : (!red, i64) -> !red
  cute.copy(%a, %s, %g) : (!red, !s, !g) -> ()
  return
}

// A row each of eight threads; what was set before holds for the tiled copy, what is set on it too.
!row = !cute_nvgpu.atom.bulk_copy<f32, 1024 b>
!rows = !cute.tiled_copy<!row, layout_copy_tv = <"(8,32):(1,8)">, tiler_mn = <"[8:1;32:1]">>
!tg = !cute.memref<f32, gmem, align<16>, "(8,32):(?{div=4},1)">
!ts = !cute.memref<f32, smem, align<16>, "(8,32):(32,1)">
// ARCH-LABEL: func.func @tiled
// ARCH: cute_nvgpu.arch.bulk_copy(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (!cute.memref<f32, gmem, align<16>, "32:1">, !cute.memref<f32, smem, align<16>, "32:1">, !cute.ptr<i64, smem>, i64) -> ()
// ARCH-NOT: bulk_copy
func.func @tiled(%g: !tg, %s: !ts, %bar: !bar, %hint: i64, %t: i32) {
  %k = cute.make_coord(%t) : (i32) -> !cute.coord<"?">
  %at = cute.atom() : !row
  %a = cute.atom.set_value(%at, %bar) {field = tma_bar} : (!row, !bar) -> !row
  %tc = cute.make_tiled_copy(%a) : !rows
  // CHECK: cute.atom.set_value(%{{.*}}, %{{.*}}) {field = cache_hint} : (!cute.tiled_copy<
  %b = cute.atom.set_value(%tc, %hint) {field = cache_hint} : (!rows, i64) -> !rows
  cute.tiled_copy(%b, %g, %s, %k) : (!rows, !tg, !ts, !cute.coord<"?">) -> ()
  return
}
