// Columns of pixels by cute.copy: loads, stores, reductions; prefetches.
// RUN: cute-opt %s --verify-roundtrip | FileCheck %s
// RUN: cute-opt %s --cute-expand-ops --convert-cute-algo-to-arch --verify-legality | FileCheck %s --check-prefix=ARCH
// RUN: cute-opt %s --pipeline=base | FileCheck %s --check-prefix=BASE

!load = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 16, lower = (-1, -1), upper = (-1, -1), swizzle = 128>
!store = !cute_nvgpu.atom.tma_store_im2col<f16, channels = 64, pixels = 16, lower = (0, 0), upper = (0, 0), swizzle = 128>
!reduce = !cute_nvgpu.atom.tma_reduce_im2col<f16, add, channels = 64, pixels = 16, lower = (0, 0), upper = (0, 0), swizzle = 128>
!tiled = !cute_nvgpu.atom.tma_load<f16, box = (64, 16)>
!g = !cute.memref<f16, gmem, "(?,?,?,?):(1,?,?,?)">
!s = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,2),16):((1,1024),64)">
// 128 channels of 16 pixels, the first of which is the iterator.
!tile = !cute.coord_tensor<"(?,?,?,?)", "(128,16):(1@0,0)">
!bar = !cute.ptr<i64, smem>

// BASE-COUNT-3: llvm.call @cute_tensor_map_im2col_4d
func.func @host(%g: !g) -> (!load, !store, !reduce) {
  // CHECK: cute_nvgpu.make_tma_store_im2col(%{{.*}}) : (!cute.memref<f16, gmem, "(?,?,?,?):(1,?,?,?)">) -> !cute_nvgpu.atom.tma_store_im2col<f16, channels = 64,
  // CHECK: cute_nvgpu.make_tma_reduce_im2col(%{{.*}}) : {{.*}} -> !cute_nvgpu.atom.tma_reduce_im2col<f16, add, channels = 64,
  %a = cute_nvgpu.make_tma_load_im2col(%g) : (!g) -> !load
  %b = cute_nvgpu.make_tma_store_im2col(%g) : (!g) -> !store
  %c = cute_nvgpu.make_tma_reduce_im2col(%g) : (!g) -> !reduce
  return %a, %b, %c : !load, !store, !reduce
}

gpu.module @kernels {
  // ARCH-LABEL: gpu.func @k
  // BASE-LABEL: llvm.func @k
  gpu.func @k(%load: !load, %store: !store, %reduce: !reduce, %t: !tiled, %x: !tile, %s0: i32, %h: i64) kernel {
    %s = cute.memref.alloc_smem() : !s
    %bars = cute.memref.alloc_smem() : !cute.memref<i64, smem, "1:0">
    %bar = cute.get_iter(%bars) : !cute.memref<i64, smem, "1:0">
    %c2 = cute.make_coord(%s0) : (i32) -> !cute.coord<"(?,1)">
    // CHECK: cute.atom.set_value(%{{.*}}, %{{.*}}) {field = im2col_offsets} : (!cute_nvgpu.atom.tma_load_im2col<{{.*}}>, !cute.coord<"(?,1)">) ->
    %o = cute.atom.set_value(%load, %c2) {field = im2col_offsets} : (!load, !cute.coord<"(?,1)">) -> !load
    %a = cute.atom.set_value(%o, %bar) {field = tma_bar} : (!load, !bar) -> !load
    // ARCH:      %[[W:.*]] = arith.trunci %{{.*}} : i32 to i16
    // ARCH-COUNT-2: cute_nvgpu.arch.tma_load_im2col(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[W]], %c1_i16)
    // BASE-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}im2col[%{{.*}}, %{{.*}}] {{.*}}mode = #nvvm.tma_load_mode<im2col>
    cute.copy(%a, %x, %s) : (!load, !tile, !s) -> ()
    // ARCH-COUNT-2: cute_nvgpu.arch.tma_store_im2col(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) :
    // BASE-COUNT-2: nvvm.cp.async.bulk.tensor.global.shared.cta {{.*}}mode = #nvvm.tma_store_mode<im2col>
    cute.copy(%store, %s, %x) : (!store, !s, !tile) -> ()
    // ARCH-COUNT-2: cute_nvgpu.arch.tma_reduce_im2col(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) :
    // BASE-COUNT-2: nvvm.cp.async.bulk.tensor.reduce {{.*}}mode = #nvvm.tma_store_mode<im2col>, redKind = #nvvm.tma_redux_kind<add>
    cute.copy(%reduce, %s, %x) : (!reduce, !s, !tile) -> ()
    %zero = arith.constant 0 : i16
    // CHECK: cute_nvgpu.arch.tma_prefetch_im2col(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (!cute_nvgpu.atom.tma_load_im2col<{{.*}}>, i32, i32, i32, i32, i16, i16, i64) -> ()
    // BASE: nvvm.cp.async.bulk.tensor.prefetch {{.*}}l2_cache_hint = %{{.*}} {mode = #nvvm.tma_load_mode<im2col>}
    cute_nvgpu.arch.tma_prefetch_im2col(%load, %s0, %s0, %s0, %s0, %zero, %zero, %h) : (!load, i32, i32, i32, i32, i16, i16, i64) -> ()
    // CHECK: cute_nvgpu.arch.tma_prefetch(%{{.*}}, %{{.*}}, %{{.*}}) : (!cute_nvgpu.atom.tma_load<f16, box = (64, 16)>, i32, i32) -> ()
    // BASE: nvvm.cp.async.bulk.tensor.prefetch %{{.*}}, box[%{{.*}}, %{{.*}}] :
    cute_nvgpu.arch.tma_prefetch(%t, %s0, %s0) : (!tiled, i32, i32) -> ()
    gpu.return
  }
}
