// Loads to shared memory on sm_120, which has no clusters: the form of one block, except with multicast.
// RUN: cute-opt %s --cute-expand-ops --convert-cute-algo-to-arch --cute-to-base=chip=sm_120a | FileCheck %s --check-prefix=OWN
// RUN: cute-opt %s --cute-expand-ops --convert-cute-algo-to-arch --cute-to-base=chip=sm_121f | FileCheck %s --check-prefix=OWN
// RUN: cute-opt %s --cute-expand-ops --convert-cute-algo-to-arch --cute-to-base=chip=sm_100a | FileCheck %s --check-prefix=CLUSTER
// RUN: cute-opt %s --cute-expand-ops --convert-cute-algo-to-arch --cute-to-base | FileCheck %s --check-prefix=CLUSTER

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 32), swizzle = 128>
!tile = !cute.coord_tensor<"(?,?)", "(32,64):(1@1,1@0)">
!s = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(32,64):(64,1)">
!bulk = !cute_nvgpu.atom.bulk_copy<f32>
!g = !cute.memref<f32, gmem, align<16>, "96:1">
!b = !cute.memref<f32, smem, align<16>, "96:1">
!bar = !cute.ptr<i64, smem>

gpu.module @kernels {
  // OWN-LABEL: llvm.func @k
  // CLUSTER-LABEL: llvm.func @k
  gpu.func @k(%load: !load, %x: !tile, %g: !g, %mask: i16, %hint: i64) kernel {
    %s = cute.memref.alloc_smem() : !s
    %b = cute.memref.alloc_smem() : !b
    %bars = cute.memref.alloc_smem() : !cute.memref<i64, smem, "1:0">
    %bar = cute.get_iter(%bars) : !cute.memref<i64, smem, "1:0">
    // OWN:         nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} l2_cache_hint = %{{[^ ]*}} {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
    // CLUSTER:     nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} l2_cache_hint = %{{[^ ]*}} : !llvm.ptr<7>, !llvm.ptr
    %a = cute.atom.set_value(%load, %bar) {field = tma_bar} : (!load, !bar) -> !load
    %h = cute.atom.set_value(%a, %hint) {field = cache_hint} : (!load, i64) -> !load
    cute.copy(%h, %x, %s) : (!load, !tile, !s) -> ()
    // OWN:         multicast_mask = %{{[^ ]*}} : !llvm.ptr<7>, !llvm.ptr
    // CLUSTER:     multicast_mask = %{{[^ ]*}} : !llvm.ptr<7>, !llvm.ptr
    %m = cute.atom.set_value(%a, %mask) {field = multicast_mask} : (!load, i16) -> !load
    cute.copy(%m, %x, %s) : (!load, !tile, !s) -> ()
    // OWN:         nvvm.cp.async.bulk.shared.cluster.global {{.*}} : !llvm.ptr<3>, <1>
    // CLUSTER:     nvvm.cp.async.bulk.shared.cluster.global {{.*}} : !llvm.ptr<7>, <1>
    %bulk = cute.atom() : !bulk
    %c = cute.atom.set_value(%bulk, %bar) {field = tma_bar} : (!bulk, !bar) -> !bulk
    cute.copy(%c, %g, %b) : (!bulk, !g, !b) -> ()
    // OWN:         nvvm.cp.async.bulk.shared.cluster.global {{.*}} multicast_mask = %{{[^ ]*}} : !llvm.ptr<7>, <1>
    // CLUSTER:     nvvm.cp.async.bulk.shared.cluster.global {{.*}} multicast_mask = %{{[^ ]*}} : !llvm.ptr<7>, <1>
    %d = cute.atom.set_value(%c, %mask) {field = multicast_mask} : (!bulk, i16) -> !bulk
    cute.copy(%d, %g, %b) : (!bulk, !g, !b) -> ()
    gpu.return
  }
}
