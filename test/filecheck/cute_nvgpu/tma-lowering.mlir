// RUN: cute-opt %s --cute-expand-ops --convert-cute-algo-to-arch --verify-legality | FileCheck %s --check-prefix=ARCH
// RUN: cute-opt %s --pipeline=base | FileCheck %s --check-prefix=BASE

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 32), swizzle = 128>
!store = !cute_nvgpu.atom.tma_store<f16, box = (64, 32), swizzle = 128>
!reduce = !cute_nvgpu.atom.tma_reduce<f16, add, box = (64, 32), swizzle = 128>
!g = !cute.memref<f16, gmem, "(?,?):(?,1)">
!l = !cute.layout<"(32,(64,2)):(64,(1,2048))">
!t = !cute.tile<"[32:1;128:1]">
!xy = !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">
!tile = !cute.coord_tensor<"(?,?)", "(32,128):(1@1,1@0)">
!s = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(32,(64,2)):(64,(1,2048))">
!bar = !cute.ptr<i64, smem>

// The runtime function is declared once.
// BASE-COUNT-1: llvm.func @cute_tensor_map_tiled_2d(!llvm.ptr<1>, i64, i64, i64, i32, i32, i32, i32, i32, i32, i32, i32, i32) -> !llvm.ptr
// BASE-NOT:     llvm.func @cute_tensor_map_tiled

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // A tensor map is a parameter by value.
    // BASE-LABEL: llvm.func @k(%arg0: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}, %arg1: !llvm.ptr {llvm.align
    gpu.func @k(%load: !load, %store: !store, %reduce: !reduce, %x: !tile, %m: i16, %h: i64, %p: i1) kernel {
      %s = cute.memref.alloc_smem() : !s
      %bars = cute.memref.alloc_smem() : !cute.memref<i64, smem, "1:0">
      %bar = cute.get_iter(%bars) : !cute.memref<i64, smem, "1:0">
      // One instruction a box: 64 columns further, 4096 bytes further.
      // ARCH:      cute_nvgpu.arch.tma_load(%{{.*}}, %[[X:.*]], %[[Y:.*]], %[[S:.*]], %[[BAR:.*]]) : (!cute_nvgpu.atom.tma_load<f16, box = (64, 32), swizzle = 128>, i32, i32, !cute.ptr<f16, smem, align<1024>, S<3,4,3>>, !cute.ptr<i64, smem>) -> ()
      // ARCH:      %[[X64:.*]] = arith.addi %[[X]], %c64_i32
      // ARCH:      %[[S1:.*]] = cute.add_offset(%[[S]], %{{.*}}) : (!cute.ptr<f16, smem, align<1024>, S<3,4,3>>, !cute.int_tuple<"2048">)
      // ARCH:      cute_nvgpu.arch.tma_load(%{{.*}}, %[[X64]], %[[Y]], %[[S1]], %[[BAR]])
      // ARCH-NOT:  cute_nvgpu.arch.tma_load
      // BASE:      llvm.addrspacecast %{{.*}} : !llvm.ptr<3> to !llvm.ptr<7>
      // BASE:      nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %arg0, %{{.*}}, box[%{{.*}}, %{{.*}}] : !llvm.ptr<7>, !llvm.ptr
      // BASE:      nvvm.cp.async.bulk.tensor.shared.cluster.global
      %a = cute.atom.set_value(%load, %bar) {field = tma_bar} : (!load, !bar) -> !load
      cute.copy(%a, %x, %s) : (!load, !tile, !s) -> ()
      // All of the state; of two values for a field the later.
      // ARCH:      scf.if %{{.*}} {
      // ARCH:        cute_nvgpu.arch.tma_load({{.*}}, %[[BAR]], %[[MASK:.*]], %[[HINT:.*]]) : ({{.*}}, i16, i64) -> ()
      // ARCH:        cute_nvgpu.arch.tma_load({{.*}}, %[[BAR]], %[[MASK]], %[[HINT]])
      // ARCH-NEXT: }
      // BASE:      multicast_mask = %{{.*}} l2_cache_hint = %{{.*}} : !llvm.ptr<7>, !llvm.ptr
      %other = arith.constant 3 : i16
      %b = cute.atom.set_value(%a, %other) {field = multicast_mask} : (!load, i16) -> !load
      %c = cute.atom.set_value(%b, %m) {field = multicast_mask} : (!load, i16) -> !load
      %d = cute.atom.set_value(%c, %h) {field = cache_hint} : (!load, i64) -> !load
      %e = cute.atom.set_value(%d, %p) {field = pred} : (!load, i1) -> !load
      cute.copy(%e, %x, %s) : (!load, !tile, !s) -> ()
      // ARCH:      cute_nvgpu.arch.tma_store
      // ARCH:      cute_nvgpu.arch.tma_store
      // BASE:      nvvm.cp.async.bulk.tensor.global.shared.cta %arg1, %{{.*}}, box[%{{.*}}, %{{.*}}] : !llvm.ptr, <3>
      // BASE:      nvvm.cp.async.bulk.tensor.global.shared.cta
      cute.copy(%store, %s, %x) : (!store, !s, !tile) -> ()
      // ARCH:      cute_nvgpu.arch.tma_reduce
      // BASE:      nvvm.cp.async.bulk.tensor.reduce %arg2, %{{.*}}, box[%{{.*}}, %{{.*}}] {redKind = #nvvm.tma_redux_kind<add>} : !llvm.ptr, <3>
      cute.copy(%reduce, %s, %x) : (!reduce, !s, !tile) -> ()
      // BASE:      nvvm.prefetch tensormap in_param_space, %arg0 : !llvm.ptr
      cute_nvgpu.arch.prefetch_tensormap(%load) : (!load) -> ()
      gpu.return
    }
  }

  // Extents and bytes go to the runtime; the launch says which tensor maps it passes.
  // ARCH-LABEL: func.func @launch
  // ARCH:       cute_nvgpu.arch.make_tensor_map(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (!cute.ptr<f16, gmem>, i64, i64, i64) -> !cute_nvgpu.atom.tma_load<f16, box = (64, 32), swizzle = 128>
  // ARCH:       cute.make_view(%{{.*}}, %{{.*}}) : !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">
  // BASE-LABEL: func.func @launch
  // BASE:       %[[LD:.*]] = llvm.extractvalue %arg0[1, 1]
  // BASE:       %[[K:.*]] = arith.extsi
  // BASE:       %[[M:.*]] = arith.extsi
  // BASE:       %[[W:.*]] = arith.extsi %[[LD]] : i32 to i64
  // BASE:       %[[B:.*]] = arith.muli %[[W]], %c2_i64
  // BASE:       %[[P:.*]] = llvm.extractvalue %arg0[0]
  // BASE:       %[[MAP:.*]] = llvm.call @cute_tensor_map_tiled_2d(%[[P]], %[[K]], %[[M]], %[[B]], %c64_i32, %c32_i32, %c1_i32, %c1_i32, %c6_i32, %c0_i32, %c3_i32, %c2_i32, %c0_i32)
  // BASE:       gpu.launch_func {{.*}} args(%[[MAP]] : !llvm.ptr, {{.*}} {cute.args = ["!cute_nvgpu.atom.tma_load<f16, box = (64, 32), swizzle = 128>"
  func.func @launch(%g: !g, %m: i16, %h: i64, %p: i1) {
    %l = cute.static : !l
    %t = cute.static : !t
    %load, %x = cute_nvgpu.make_tma_load(%g, %l, %t) {swizzle = 128 : i32} : (!g, !l, !t) -> (!load, !xy)
    %store, %y = cute_nvgpu.make_tma_store(%g, %l, %t) {swizzle = 128 : i32} : (!g, !l, !t) -> (!store, !xy)
    %reduce, %z = cute_nvgpu.make_tma_reduce(%g, %l, %t) {swizzle = 128 : i32} : (!g, !l, !t) -> (!reduce, !xy)
    %c0 = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %o = cute.make_int_tuple(%c0, %c0) : (i32, i32) -> !cute.int_tuple<"(?,?)">
    %w = cute.static : !cute.layout<"(32,128):(1@1,1@0)">
    %tile = cute.make_view(%o, %w) : !tile
    gpu.launch_func @kernels::@k blocks in (%one, %one, %one) threads in (%one, %one, %one) : i32
      args(%load : !load, %store : !store, %reduce : !reduce, %tile : !tile, %m : i16, %h : i64, %p : i1)
    return
  }
}
