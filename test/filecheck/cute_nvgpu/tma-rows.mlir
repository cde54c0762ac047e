// Rows of a matrix by index: gather4 loads and prefetches, scatter4 stores.
// RUN: cute-opt %s --verify-roundtrip | FileCheck %s
// RUN: cute-opt %s --cute-expand-ops --convert-cute-algo-to-arch --verify-legality | FileCheck %s --check-prefix=ARCH
// RUN: cute-opt %s --pipeline=base | FileCheck %s --check-prefix=BASE

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 1), swizzle = 128, mode = gather4>
!pair = !cute_nvgpu.atom.tma_load<f16, box = (64, 1), swizzle = 128, cta_group = 2, mode = gather4>
!store = !cute_nvgpu.atom.tma_store<f16, box = (64, 1), swizzle = 128, mode = scatter4>
!g = !cute.memref<f16, gmem, "(?,?):(?{div=8},1)">
!xy = !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">
// Two boxes of 64 columns. The tile begins at half the period of the swizzle, which is that of addresses.
!s = !cute.memref<f16, smem, align<512>, S<3,4,3>, "(4,(64,2)):(64,(1,1024))">
!tile = !cute.coord_tensor<"(?,?)", "(4,128):(1@1,1@0)">
!bar = !cute.ptr<i64, smem>
!p = !cute.ptr<f16, smem, align<512>, S<3,4,3>>

// CHECK-LABEL: @host
// BASE: llvm.call @cute_tensor_map_tiled_2d
func.func @host(%g: !g) -> (!load, !store) {
  %l = cute.static : !cute.layout<"(4,64):(64,1)">
  %t = cute.static : !cute.tile<"[4:1;64:1]">
  // CHECK: cute_nvgpu.make_tma_load(%{{.*}}, %{{.*}}, %{{.*}}) {mode = gather4, swizzle = 128 : i32} : {{.*}} -> (!cute_nvgpu.atom.tma_load<f16, box = (64, 1), swizzle = 128, mode = gather4>,
  %a, %x = cute_nvgpu.make_tma_load(%g, %l, %t) {mode = gather4, swizzle = 128 : i32} : (!g, !cute.layout<"(4,64):(64,1)">, !cute.tile<"[4:1;64:1]">) -> (!load, !xy)
  // CHECK: cute_nvgpu.make_tma_store(%{{.*}}, %{{.*}}, %{{.*}}) {mode = scatter4, swizzle = 128 : i32}
  %b, %y = cute_nvgpu.make_tma_store(%g, %l, %t) {mode = scatter4, swizzle = 128 : i32} : (!g, !cute.layout<"(4,64):(64,1)">, !cute.tile<"[4:1;64:1]">) -> (!store, !xy)
  return %a, %b : !load, !store
}

gpu.module @kernels {
  // ARCH-LABEL: gpu.func @k
  // BASE-LABEL: llvm.func @k
  gpu.func @k(%load: !load, %pair: !pair, %store: !store, %x: !tile, %r: i32, %mask: i16, %s: !s, %bar: !bar, %p: !p) kernel {
    %rows = cute.make_coord(%r) : (i32) -> !cute.coord<"(3,?,-1,0)">
    // CHECK: cute.atom.set_value(%{{.*}}, %{{.*}}) {field = rows} : (!cute_nvgpu.atom.tma_load<{{.*}}>, !cute.coord<"(3,?,-1,0)">) ->
    %0 = cute.atom.set_value(%load, %rows) {field = rows} : (!load, !cute.coord<"(3,?,-1,0)">) -> !load
    %a = cute.atom.set_value(%0, %bar) {field = tma_bar} : (!load, !bar) -> !load
    // The second box begins 64 columns on, in the same rows.
    // ARCH-COUNT-2: cute_nvgpu.arch.tma_load(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (!cute_nvgpu.atom.tma_load<{{.*}}>, i32, i32, i32, i32, i32, !cute.ptr
    // BASE-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}box[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] {isCTAOnly = true, mode = #nvvm.tma_load_mode<tile_gather4>} : !llvm.ptr<3>
    cute.copy(%a, %x, %s) : (!load, !tile, !s) -> ()
    %m = cute.atom.set_value(%a, %mask) {field = multicast_mask} : (!load, i16) -> !load
    // BASE-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} multicast_mask = %{{.*}} {{{.*}}mode = #nvvm.tma_load_mode<tile_gather4>} : !llvm.ptr<7>
    cute.copy(%m, %x, %s) : (!load, !tile, !s) -> ()
    // BASE: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} {group = #nvvm.cta_group<cta_2>, {{.*}}mode = #nvvm.tma_load_mode<tile_gather4>} : !llvm.ptr<7>
    cute_nvgpu.arch.tma_load(%pair, %r, %r, %r, %r, %r, %p, %bar) : (!pair, i32, i32, i32, i32, i32, !p, !bar) -> ()
    %1 = cute.atom.set_value(%store, %rows) {field = rows} : (!store, !cute.coord<"(3,?,-1,0)">) -> !store
    // BASE-COUNT-2: nvvm.cp.async.bulk.tensor.global.shared.cta {{.*}}box[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] {mode = #nvvm.tma_store_mode<tile_scatter4>}
    cute.copy(%1, %s, %x) : (!store, !s, !tile) -> ()
    // BASE: nvvm.cp.async.bulk.tensor.prefetch {{.*}}box[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] {mode = #nvvm.tma_load_mode<tile_gather4>}
    cute_nvgpu.arch.tma_prefetch(%load, %r, %r, %r, %r, %r) : (!load, i32, i32, i32, i32, i32) -> ()
    gpu.return
  }
}
