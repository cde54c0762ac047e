// C = A * B^T of bf16 by pairs of blocks: tiles of 256x256, a ring of four stages, an f32 accumulator in tensor memory.
// Each block loads its half of A (128 rows) and of B (128 rows), and holds and stores its 128 rows of C. The even block
// multiplies for both. Warp 0 loads, warp 1 multiplies, warps 4 to 7 store.
!stages = !cute.memref<bf16, smem, align<1024>, S<3,4,3>, "((128,16),1,4,4):((64,1),0,16,8192)">
!stage = !cute.memref<bf16, smem, align<1024>, S<3,4,3>, "((128,16),1,4):((64,1),0,16)">
!load = !cute_nvgpu.atom.tma_load<bf16, box = (64, 128), swizzle = 128, cta_group = 2>
!mma_atom = !cute_nvgpu.atom.tcgen05_mma<256x256x16, (f32,bf16,bf16,f32), A = smem, major = (k, k), cta_group = 2>
!mma = !cute.tiled_mma<!mma_atom, atom_layout_MNK = <"(1,1,1):(0,0,0)">>
!acc = !cute.memref<f32, tmem, align<128>, "((128,256),1,1):((65536,1),0,0)">
!tmem_load = !cute_nvgpu.atom.tmem_load<f32, 32x32b, x32>
!window = !cute.memref<f32, tmem, align<128>, "(32,32):(1,65536)">
!smem = !cute.ptr<bf16, smem, align<1024>, S<3,4,3>>
!bars = !cute.memref<i64, smem, "9:1">
!bar = !cute.ptr<i64, smem>
!slot = !cute.ptr<i32, smem>
!tmem = !cute.ptr<f32, tmem, align<128>>
!c = !cute.memref<bf16, gmem, align<32>, "(?,?):(?{div=16},1)">

!matrix = !cute.memref<bf16, gmem, "(?,?):(?,1)">
!ptr = !cute.ptr<bf16, gmem, align<32>>
!strided = !cute.layout<"(?,?):(?{div=16},1)">
!xy = !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">

module attributes {gpu.container_module} {
gpu.module @kernels {
  gpu.func @gemm(%tma_a: !load, %tma_b: !load, %c: !c, %k_tiles: i32) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>, known_cluster_size = array<i32: 2, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %c64 = arith.constant 64 : i32
    %both = arith.constant 3 : i16
    %bytes = arith.constant 65536 : i32
    %sA = cute.memref.alloc_smem() : !stages
    %sB = cute.memref.alloc_smem() : !stages
    %bars = cute.memref.alloc_smem() : !bars
    %slots = cute.memref.alloc_smem() : !cute.memref<i32, smem, "1:0">
    %full = cute.get_iter(%bars) : !bars
    %o4 = cute.static : !cute.int_tuple<"4">
    %o8 = cute.static : !cute.int_tuple<"8">
    %empty = cute.add_offset(%full, %o4) : (!bar, !cute.int_tuple<"4">) -> !bar
    %done = cute.add_offset(%full, %o8) : (!bar, !cute.int_tuple<"8">) -> !bar
    %slot = cute.get_iter(%slots) : !cute.memref<i32, smem, "1:0">
    %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
    %m = nvvm.read.ptx.sreg.ctaid.x : i32
    %n = nvvm.read.ptx.sreg.ctaid.y : i32
    %warp = cute_nvgpu.arch.warp_id() : () -> i32
    %rank = cute_nvgpu.arch.cluster_rank() : () -> i32
    %leads = arith.cmpi eq, %rank, %c0 : i32

    %first = arith.cmpi eq, %tid, %c0 : i32
    scf.if %first {
      scf.for %i = %c0 to %c4 step %c1 : i32 {
        %o = cute.make_int_tuple(%i) : (i32) -> !cute.int_tuple<"?">
        %f = cute.add_offset(%full, %o) : (!bar, !cute.int_tuple<"?">) -> !bar
        %e = cute.add_offset(%empty, %o) : (!bar, !cute.int_tuple<"?">) -> !bar
        cute_nvgpu.arch.mbarrier_init(%f, %c1) : (!bar, i32) -> ()
        cute_nvgpu.arch.mbarrier_init(%e, %c1) : (!bar, i32) -> ()
      }
      cute_nvgpu.arch.mbarrier_init(%done, %c1) : (!bar, i32) -> ()
      cute_nvgpu.arch.fence_mbarrier_init() : () -> ()
    }
    %allocates = arith.cmpi eq, %warp, %c1 : i32
    scf.if %allocates {
      cute_nvgpu.arch.tmem_alloc(%slot) {columns = 256 : i32, cta_group = 2 : i32} : (!slot) -> ()
      cute_nvgpu.arch.tmem_relinquish() {cta_group = 2 : i32} : () -> ()
    }
    cute_nvgpu.arch.tcgen05_fence() {kind = "before"} : () -> ()
    cute_nvgpu.arch.cluster_arrive() : () -> ()
    cute_nvgpu.arch.cluster_wait() : () -> ()
    cute_nvgpu.arch.tcgen05_fence() {kind = "after"} : () -> ()
    %tmem = cute_nvgpu.arch.tmem_pointer(%slot) : (!slot) -> !tmem
    %elected = cute_nvgpu.arch.elect_one() : () -> i1

    %loads = arith.cmpi eq, %warp, %c0 : i32
    %loads_one = arith.andi %loads, %elected : i1
    scf.if %loads_one {
      %c128 = arith.constant 128 : i32
      %c256 = arith.constant 256 : i32
      %y_a = arith.muli %m, %c128 : i32
      %half = arith.muli %rank, %c128 : i32
      %y_b0 = arith.muli %n, %c256 : i32
      %y_b = arith.addi %y_b0, %half : i32
      scf.for %k = %c0 to %k_tiles step %c1 iter_args(%stage = %c0, %phase = %c1) -> (i32, i32) : i32 {
        %o = cute.make_int_tuple(%stage) : (i32) -> !cute.int_tuple<"?">
        %e = cute.add_offset(%empty, %o) : (!bar, !cute.int_tuple<"?">) -> !bar
        %f = cute.add_offset(%full, %o) : (!bar, !cute.int_tuple<"?">) -> !bar
        cute_nvgpu.arch.mbarrier_wait(%e, %phase) : (!bar, i32) -> ()
        scf.if %leads {
          cute_nvgpu.arch.mbarrier_arrive_expect_tx(%f, %bytes) : (!bar, i32) -> ()
        }
        %x = arith.muli %k, %c64 : i32
        %at = cute.make_coord(%stage) : (i32) -> !cute.coord<"(_,_,_,?)">
        %a = cute.slice(%sA, %at) : !stages, !cute.coord<"(_,_,_,?)">
        %b = cute.slice(%sB, %at) : !stages, !cute.coord<"(_,_,_,?)">
        %pa = cute.get_iter(%a) : !stage
        %pb = cute.get_iter(%b) : !stage
        cute_nvgpu.arch.tma_load(%tma_a, %x, %y_a, %pa, %f) : (!load, i32, i32, !smem, !bar) -> ()
        cute_nvgpu.arch.tma_load(%tma_b, %x, %y_b, %pb, %f) : (!load, i32, i32, !smem, !bar) -> ()
        %next = arith.addi %stage, %c1 : i32
        %wraps = arith.cmpi eq, %next, %c4 : i32
        %stage_1 = arith.select %wraps, %c0, %next : i32
        %flip = arith.extui %wraps : i1 to i32
        %phase_1 = arith.xori %phase, %flip : i32
        scf.yield %stage_1, %phase_1 : i32, i32
      }
    }

    %multiplies = arith.cmpi eq, %warp, %c1 : i32
    %multiplies_here = arith.andi %multiplies, %leads : i1
    %multiplies_one = arith.andi %multiplies_here, %elected : i1
    scf.if %multiplies_one {
      %atom = cute.atom() : !mma_atom
      %mma = cute.make_tiled_mma(%atom) : !mma
      %acc_layout = cute.static : !cute.layout<"((128,256),1,1):((65536,1),0,0)">
      %acc = cute.make_view(%tmem, %acc_layout) : !acc
      scf.for %k = %c0 to %k_tiles step %c1 iter_args(%stage = %c0, %phase = %c0) -> (i32, i32) : i32 {
        %o = cute.make_int_tuple(%stage) : (i32) -> !cute.int_tuple<"?">
        %f = cute.add_offset(%full, %o) : (!bar, !cute.int_tuple<"?">) -> !bar
        %e = cute.add_offset(%empty, %o) : (!bar, !cute.int_tuple<"?">) -> !bar
        cute_nvgpu.arch.mbarrier_wait(%f, %phase) : (!bar, i32) -> ()
        cute_nvgpu.arch.tcgen05_fence() {kind = "after"} : () -> ()
        %at = cute.make_coord(%stage) : (i32) -> !cute.coord<"(_,_,_,?)">
        %a = cute.slice(%sA, %at) : !stages, !cute.coord<"(_,_,_,?)">
        %b = cute.slice(%sB, %at) : !stages, !cute.coord<"(_,_,_,?)">
        %accumulates = arith.cmpi ne, %k, %c0 : i32
        %flagged = cute.atom.set_value(%mma, %accumulates) {field = "accumulate"} : (!mma, i1) -> !mma
        cute.gemm(%flagged, %acc, %a, %b) : (!mma, !acc, !stage, !stage) -> ()
        cute_nvgpu.arch.tcgen05_commit(%e, %both) {cta_group = 2 : i32} : (!bar, i16) -> ()
        %next = arith.addi %stage, %c1 : i32
        %wraps = arith.cmpi eq, %next, %c4 : i32
        %stage_1 = arith.select %wraps, %c0, %next : i32
        %flip = arith.extui %wraps : i1 to i32
        %phase_1 = arith.xori %phase, %flip : i32
        scf.yield %stage_1, %phase_1 : i32, i32
      }
      cute_nvgpu.arch.tcgen05_commit(%done, %both) {cta_group = 2 : i32} : (!bar, i16) -> ()
    }

    %stores = arith.cmpi uge, %warp, %c4 : i32
    scf.if %stores {
      cute_nvgpu.arch.mbarrier_wait(%done, %c0) : (!bar, i32) -> ()
      cute_nvgpu.arch.tcgen05_fence() {kind = "after"} : () -> ()
      %c3 = arith.constant 3 : i32
      %c127 = arith.constant 127 : i32
      %quarter = arith.andi %warp, %c3 : i32
      %row = arith.andi %tid, %c127 : i32
      %tiler = cute.static : !cute.shape<"(128,32)">
      %tiles = cute.flat_divide(%c, %tiler) : (!c, !cute.shape<"(128,32)">) -> !cute.memref<bf16, gmem, align<32>, "(128,32,?,?):(?{div=16},1,?{div=2048},32)">
      %window_layout = cute.static : !cute.layout<"(32,32,4,8):(1,65536,2097152,32)">
      %windows = cute.make_view(%tmem, %window_layout) : !cute.memref<f32, tmem, align<128>, "(32,32,4,8):(1,65536,2097152,32)">
      %c8 = arith.constant 8 : i32
      %n0 = arith.muli %n, %c8 : i32
      scf.for %j = %c0 to %c8 step %c1 : i32 {
        %where = cute.make_coord(%quarter, %j) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
        %window = cute.slice(%windows, %where) : !cute.memref<f32, tmem, align<128>, "(32,32,4,8):(1,65536,2097152,32)">, !cute.coord<"(_,_,?,?)">
        %r = cute.memref.alloca() : !cute.memref<f32, rmem, align<32>, "32:1">
        cute_nvgpu.arch.tmem_load(%window, %r) {atom = !tmem_load} : (!window, !cute.memref<f32, rmem, align<32>, "32:1">) -> ()
        cute_nvgpu.arch.tmem_wait() {kind = "load"} : () -> ()
        %v = cute.memref.load_vec %r : !cute.memref<f32, rmem, align<32>, "32:1">
        %h = arith.truncf %v : vector<32xf32> to vector<32xbf16>
        %column = arith.addi %n0, %j : i32
        %spot = cute.make_coord(%row, %m, %column) : (i32, i32, i32) -> !cute.coord<"(?,_,?,?)">
        %out = cute.slice(%tiles, %spot) : !cute.memref<bf16, gmem, align<32>, "(128,32,?,?):(?{div=16},1,?{div=2048},32)">, !cute.coord<"(?,_,?,?)">
        cute.memref.store_vec %h, %out : !cute.memref<bf16, gmem, align<32>, "(32):(1)">
      } {cute.unroll = 8 : i32}
      cute_nvgpu.arch.tcgen05_fence() {kind = "before"} : () -> ()
    }
    cute_nvgpu.arch.cluster_arrive() : () -> ()
    cute_nvgpu.arch.cluster_wait() : () -> ()
    scf.if %allocates {
      cute_nvgpu.arch.tcgen05_fence() {kind = "after"} : () -> ()
      cute_nvgpu.arch.tmem_dealloc(%tmem) {columns = 256 : i32, cta_group = 2 : i32} : (!tmem) -> ()
    }
    gpu.return
  }
}

  // Two blocks per tile of 256x256. M, N and K are multiples of 256, 256 and 64, and rows are aligned to 32 bytes.
  func.func @launch(%A: !matrix, %B: !matrix, %C: !matrix) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c64 = arith.constant 64 : i32
    %c128 = arith.constant 128 : i32
    %c256 = arith.constant 256 : i32
    %la = cute.get_layout(%A) : !matrix
    %a:3 = cute.get_scalars<{only_dynamic}> (%la) : !cute.layout<"(?,?):(?,1)">
    %ia = cute.get_iter(%A) : !matrix
    %pa = cute.assume(%ia) : (!cute.ptr<bf16, gmem>) -> !ptr
    %da = cute.assume(%a#2) : (i32) -> !cute.i32<divby 16>
    %sa = cute.make_shape(%a#0, %a#1) : (i32, i32) -> !cute.shape<"(?,?)">
    %ta = cute.make_stride(%da) : (!cute.i32<divby 16>) -> !cute.stride<"(?{div=16},1)">
    %na = cute.make_layout(%sa, %ta) : (!cute.shape<"(?,?)">, !cute.stride<"(?{div=16},1)">) -> !strided
    %va = cute.make_view(%pa, %na) : !c
    %lb = cute.get_layout(%B) : !matrix
    %b:3 = cute.get_scalars<{only_dynamic}> (%lb) : !cute.layout<"(?,?):(?,1)">
    %ib = cute.get_iter(%B) : !matrix
    %pb = cute.assume(%ib) : (!cute.ptr<bf16, gmem>) -> !ptr
    %db = cute.assume(%b#2) : (i32) -> !cute.i32<divby 16>
    %sb = cute.make_shape(%b#0, %b#1) : (i32, i32) -> !cute.shape<"(?,?)">
    %tb = cute.make_stride(%db) : (!cute.i32<divby 16>) -> !cute.stride<"(?{div=16},1)">
    %nb = cute.make_layout(%sb, %tb) : (!cute.shape<"(?,?)">, !cute.stride<"(?{div=16},1)">) -> !strided
    %vb = cute.make_view(%pb, %nb) : !c
    %lc = cute.get_layout(%C) : !matrix
    %c:3 = cute.get_scalars<{only_dynamic}> (%lc) : !cute.layout<"(?,?):(?,1)">
    %ic = cute.get_iter(%C) : !matrix
    %pc = cute.assume(%ic) : (!cute.ptr<bf16, gmem>) -> !ptr
    %dc = cute.assume(%c#2) : (i32) -> !cute.i32<divby 16>
    %sc = cute.make_shape(%c#0, %c#1) : (i32, i32) -> !cute.shape<"(?,?)">
    %tc = cute.make_stride(%dc) : (!cute.i32<divby 16>) -> !cute.stride<"(?{div=16},1)">
    %nc = cute.make_layout(%sc, %tc) : (!cute.shape<"(?,?)">, !cute.stride<"(?{div=16},1)">) -> !strided
    %vc = cute.make_view(%pc, %nc) : !c
    %same_k = arith.cmpi eq, %a#1, %b#1 : i32
    cf.assert %same_k, "A and B must have the same K"
    %same_m = arith.cmpi eq, %a#0, %c#0 : i32
    cf.assert %same_m, "A and C must have the same M"
    %same_n = arith.cmpi eq, %b#0, %c#1 : i32
    cf.assert %same_n, "B and C must have the same N"
    %rest_m = arith.remui %a#0, %c256 : i32
    %rest_n = arith.remui %b#0, %c256 : i32
    %rest_k = arith.remui %a#1, %c64 : i32
    %rest_mn = arith.ori %rest_m, %rest_n : i32
    %rest = arith.ori %rest_mn, %rest_k : i32
    %whole = arith.cmpi eq, %rest, %c0 : i32
    cf.assert %whole, "M, N and K must be multiples of 256, 256 and 64"
    %half_layout = cute.static : !cute.layout<"(128,64):(64,1)">
    %half = cute.static : !cute.shape<"(128,64)">
    %tma_a, %xy_a = cute_nvgpu.make_tma_load(%va, %half_layout, %half) {swizzle = 128 : i32, cta_group = 2 : i32} : (!c, !cute.layout<"(128,64):(64,1)">, !cute.shape<"(128,64)">) -> (!load, !xy)
    %tma_b, %xy_b = cute_nvgpu.make_tma_load(%vb, %half_layout, %half) {swizzle = 128 : i32, cta_group = 2 : i32} : (!c, !cute.layout<"(128,64):(64,1)">, !cute.shape<"(128,64)">) -> (!load, !xy)
    %blocks_m = arith.divui %a#0, %c128 : i32
    %tiles_n = arith.divui %b#0, %c256 : i32
    %tiles_k = arith.divui %a#1, %c64 : i32
    gpu.launch_func @kernels::@gemm clusters in (%c2, %c1, %c1) blocks in (%blocks_m, %tiles_n, %c1) threads in (%c256, %c1, %c1) : i32 args(%tma_a : !load, %tma_b : !load, %vc : !c, %tiles_k : i32)
    return
  }
}
