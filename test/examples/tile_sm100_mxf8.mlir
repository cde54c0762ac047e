// C = (SFA * A) * (SFB * B)^T of f8E4M3FN, one tile of 128 x 32, with a scale factor for each row and 32 elements along K.
// Factors are blocks of 512 bytes: that of row m and factor s is byte 16 * (m % 32) + 4 * (m / 32) + s.  Thread 0 loads
// by TMA, copies the factors to tensor memory and multiplies.  The four warps store the accumulator.

!matrix = !cute.memref<f8E4M3FN, gmem, "(?,?):(?{div=16},1)">
!result = !cute.memref<f32, gmem, align<16>, "(128,32):(32,1)">
!load_a = !cute_nvgpu.atom.tma_load<f8E4M3FN, box = (128, 128), swizzle = 128>
!load_b = !cute_nvgpu.atom.tma_load<f8E4M3FN, box = (128, 32), swizzle = 128>
!tile_a = !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(128,128):(128,1)">
!tile_b = !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(32,128):(128,1)">
!smem = !cute.ptr<f8E4M3FN, smem, align<1024>, S<3,4,3>>
!xy = !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">
!bars = !cute.memref<i64, smem, "3:1">
!bar = !cute.ptr<i64, smem>
!slot = !cute.ptr<i32, smem>
!mma_atom = !cute_nvgpu.atom.tcgen05_mma<128x32x32, (f32,f8E4M3FN,f8E4M3FN,f32), A = smem, major = (k, k), kind = mxf8f6f4, sf = f8E8M0FNU, vec = 32>
!tmem = !cute.ptr<f32, tmem, align<128>>
!acc = !cute.memref<f32, tmem, align<128>, "(128,32):(65536,1)">
!va0 = !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(128,32):(128,1)">
!va1 = !cute.memref<f8E4M3FN, smem, align<32>, S<3,4,3>, "(128,32):(128,1)">
!va2 = !cute.memref<f8E4M3FN, smem, align<64>, S<3,4,3>, "(128,32):(128,1)">
!vb0 = !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(32,32):(128,1)">
!vb1 = !cute.memref<f8E4M3FN, smem, align<32>, S<3,4,3>, "(32,32):(128,1)">
!vb2 = !cute.memref<f8E4M3FN, smem, align<64>, S<3,4,3>, "(32,32):(128,1)">
!step1 = !cute.ptr<f8E4M3FN, smem, align<32>, S<3,4,3>>
!step2 = !cute.ptr<f8E4M3FN, smem, align<64>, S<3,4,3>>
!columns = !cute.ptr<f32, tmem, align<16>>
!run = !cute.memref<i8, gmem, align<16>, "512:1">
!factors = !cute.memref<i8, gmem, align<16>, "?:1">
!factor = !cute.ptr<i8, gmem, align<16>>
!block = !cute.memref<i8, smem, align<512>, "512:1">
!bytes = !cute.ptr<i8, smem, align<512>>
!windows = !cute.memref<f32, tmem, align<128>, "(32,32,4):(1,65536,2097152)">
!window = !cute.memref<f32, tmem, align<128>, "(32,32):(1,65536)">
!registers = !cute.memref<f32, rmem, align<32>, "32:1">

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @tile(%tma_a: !load_a, %tma_b: !load_b, %sfa: !factors, %sfb: !factors, %c: !result, %k_tiles: i32)
        kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c128 = arith.constant 128 : i32
      %c512 = arith.constant 512 : i32
      %sA = cute.memref.alloc_smem() : !tile_a
      %sB = cute.memref.alloc_smem() : !tile_b
      %sSFA = cute.memref.alloc_smem() : !block
      %sSFB = cute.memref.alloc_smem() : !block
      %bars = cute.memref.alloc_smem() : !bars
      %slots = cute.memref.alloc_smem() : !cute.memref<i32, smem, "1:0">
      %full = cute.get_iter(%bars) : !bars
      %o1 = cute.static : !cute.int_tuple<"1">
      %o2 = cute.static : !cute.int_tuple<"2">
      %empty = cute.add_offset(%full, %o1) : (!bar, !cute.int_tuple<"1">) -> !bar
      %done = cute.add_offset(%full, %o2) : (!bar, !cute.int_tuple<"2">) -> !bar
      %slot = cute.get_iter(%slots) : !cute.memref<i32, smem, "1:0">
      %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
      %warp = cute_nvgpu.arch.warp_id() : () -> i32
      %first = arith.cmpi eq, %tid, %c0 : i32
      %allocates = arith.cmpi eq, %warp, %c0 : i32

      scf.if %first {
        cute_nvgpu.arch.mbarrier_init(%full, %c1) : (!bar, i32) -> ()
        cute_nvgpu.arch.mbarrier_init(%empty, %c1) : (!bar, i32) -> ()
        cute_nvgpu.arch.mbarrier_init(%done, %c1) : (!bar, i32) -> ()
        cute_nvgpu.arch.fence_mbarrier_init() : () -> ()
      }
      scf.if %allocates {
        cute_nvgpu.arch.tmem_alloc(%slot) {columns = 64 : i32} : (!slot) -> ()
        cute_nvgpu.arch.tmem_relinquish() : () -> ()
      }
      cute_nvgpu.arch.barrier() : () -> ()
      %tmem = cute_nvgpu.arch.tmem_pointer(%slot) : (!slot) -> !tmem

      scf.if %first {
        %acc_layout = cute.static : !cute.layout<"(128,32):(65536,1)">
        %acc = cute.make_view(%tmem, %acc_layout) : !acc
        %pa = cute.get_iter(%sA) : !tile_a
        %pb = cute.get_iter(%sB) : !tile_b
        %o4 = cute.static : !cute.int_tuple<"4">
        %o32 = cute.static : !cute.int_tuple<"32">
        %sfa_columns = cute.add_offset(%tmem, %o32) : (!tmem, !cute.int_tuple<"32">) -> !tmem
        %sfb_columns = cute.add_offset(%sfa_columns, %o4) : (!tmem, !cute.int_tuple<"4">) -> !columns
        %pfa = cute.get_iter(%sSFA) : !block
        %pfb = cute.get_iter(%sSFB) : !block
        %gfa = cute.get_iter(%sfa) : !factors
        %gfb = cute.get_iter(%sfb) : !factors
        %run = cute.static : !cute.layout<"512:1">
        %oa0 = cute.static : !cute.int_tuple<"0">
        %pa0 = cute.add_offset(%pa, %oa0) : (!smem, !cute.int_tuple<"0">) -> !smem
        %la0 = cute.static : !cute.layout<"(128,32):(128,1)">
        %va0 = cute.make_view(%pa0, %la0) : !va0
        %oa1 = cute.static : !cute.int_tuple<"32">
        %pa1 = cute.add_offset(%pa, %oa1) : (!smem, !cute.int_tuple<"32">) -> !step1
        %la1 = cute.static : !cute.layout<"(128,32):(128,1)">
        %va1 = cute.make_view(%pa1, %la1) : !va1
        %oa2 = cute.static : !cute.int_tuple<"64">
        %pa2 = cute.add_offset(%pa, %oa2) : (!smem, !cute.int_tuple<"64">) -> !step2
        %la2 = cute.static : !cute.layout<"(128,32):(128,1)">
        %va2 = cute.make_view(%pa2, %la2) : !va2
        %oa3 = cute.static : !cute.int_tuple<"96">
        %pa3 = cute.add_offset(%pa, %oa3) : (!smem, !cute.int_tuple<"96">) -> !step1
        %la3 = cute.static : !cute.layout<"(128,32):(128,1)">
        %va3 = cute.make_view(%pa3, %la3) : !va1
        %ob0 = cute.static : !cute.int_tuple<"0">
        %pb0 = cute.add_offset(%pb, %ob0) : (!smem, !cute.int_tuple<"0">) -> !smem
        %lb0 = cute.static : !cute.layout<"(32,32):(128,1)">
        %vb0 = cute.make_view(%pb0, %lb0) : !vb0
        %ob1 = cute.static : !cute.int_tuple<"32">
        %pb1 = cute.add_offset(%pb, %ob1) : (!smem, !cute.int_tuple<"32">) -> !step1
        %lb1 = cute.static : !cute.layout<"(32,32):(128,1)">
        %vb1 = cute.make_view(%pb1, %lb1) : !vb1
        %ob2 = cute.static : !cute.int_tuple<"64">
        %pb2 = cute.add_offset(%pb, %ob2) : (!smem, !cute.int_tuple<"64">) -> !step2
        %lb2 = cute.static : !cute.layout<"(32,32):(128,1)">
        %vb2 = cute.make_view(%pb2, %lb2) : !vb2
        %ob3 = cute.static : !cute.int_tuple<"96">
        %pb3 = cute.add_offset(%pb, %ob3) : (!smem, !cute.int_tuple<"96">) -> !step1
        %lb3 = cute.static : !cute.layout<"(32,32):(128,1)">
        %vb3 = cute.make_view(%pb3, %lb3) : !vb1
        %bytes = arith.constant 21504 : i32
        scf.for %k = %c0 to %k_tiles step %c1 iter_args(%phase = %c0) -> (i32) : i32 {
          %released = arith.xori %phase, %c1 : i32
          cute_nvgpu.arch.mbarrier_wait(%empty, %released) : (!bar, i32) -> ()
          %x = arith.muli %k, %c128 : i32
          cute_nvgpu.arch.mbarrier_arrive_expect_tx(%full, %bytes) : (!bar, i32) -> ()
          cute_nvgpu.arch.tma_load(%tma_a, %x, %c0, %pa, %full) : (!load_a, i32, i32, !smem, !bar) -> ()
          cute_nvgpu.arch.tma_load(%tma_b, %x, %c0, %pb, %full) : (!load_b, i32, i32, !smem, !bar) -> ()
          %byte = arith.muli %k, %c512 : i32
          %from = cute.assume(%byte) : (i32) -> !cute.i32<divby 512>
          %at = cute.make_int_tuple(%from) : (!cute.i32<divby 512>) -> !cute.int_tuple<"?{div=512}">
          %ga = cute.add_offset(%gfa, %at) : (!factor, !cute.int_tuple<"?{div=512}">) -> !factor
          %gb = cute.add_offset(%gfb, %at) : (!factor, !cute.int_tuple<"?{div=512}">) -> !factor
          %run_a = cute.make_view(%ga, %run) : !run
          %run_b = cute.make_view(%gb, %run) : !run
          cute_nvgpu.arch.bulk_copy(%run_a, %sSFA, %full) : (!run, !block, !bar) -> ()
          cute_nvgpu.arch.bulk_copy(%run_b, %sSFB, %full) : (!run, !block, !bar) -> ()
          cute_nvgpu.arch.mbarrier_wait(%full, %phase) : (!bar, i32) -> ()
          cute_nvgpu.arch.tcgen05_fence() {kind = "after"} : () -> ()
          %accumulates = arith.cmpi ne, %k, %c0 : i32
          cute_nvgpu.arch.tmem_copy(%sfa_columns, %pfa) : (!tmem, !bytes) -> ()
          cute_nvgpu.arch.tmem_copy(%sfb_columns, %pfb) : (!columns, !bytes) -> ()
          cute_nvgpu.arch.tcgen05_scaled_mma(%acc, %va0, %vb0, %sfa_columns, %sfb_columns, %accumulates) {accumulate = true, sf_a = 0 : i32, sf_b = 0 : i32, atom = !mma_atom} : (!acc, !va0, !vb0, !tmem, !columns, i1) -> ()
          cute_nvgpu.arch.tcgen05_scaled_mma(%acc, %va1, %vb1, %sfa_columns, %sfb_columns) {accumulate = true, sf_a = 1 : i32, sf_b = 1 : i32, atom = !mma_atom} : (!acc, !va1, !vb1, !tmem, !columns) -> ()
          cute_nvgpu.arch.tcgen05_scaled_mma(%acc, %va2, %vb2, %sfa_columns, %sfb_columns) {accumulate = true, sf_a = 2 : i32, sf_b = 2 : i32, atom = !mma_atom} : (!acc, !va2, !vb2, !tmem, !columns) -> ()
          cute_nvgpu.arch.tcgen05_scaled_mma(%acc, %va3, %vb3, %sfa_columns, %sfb_columns) {accumulate = true, sf_a = 3 : i32, sf_b = 3 : i32, atom = !mma_atom} : (!acc, !va1, !vb1, !tmem, !columns) -> ()
          cute_nvgpu.arch.tcgen05_commit(%empty) : (!bar) -> ()
          %next = arith.xori %phase, %c1 : i32
          scf.yield %next : i32
        }
        cute_nvgpu.arch.tcgen05_commit(%done) : (!bar) -> ()
      }

      cute_nvgpu.arch.mbarrier_wait(%done, %c0) : (!bar, i32) -> ()
      cute_nvgpu.arch.tcgen05_fence() {kind = "after"} : () -> ()
      %window_layout = cute.static : !cute.layout<"(32,32,4):(1,65536,2097152)">
      %windows = cute.make_view(%tmem, %window_layout) : !windows
      %where = cute.make_coord(%warp) : (i32) -> !cute.coord<"(_,_,?)">
      %window = cute.slice(%windows, %where) : !windows, !cute.coord<"(_,_,?)">
      %r = cute.memref.alloca() : !registers
      cute_nvgpu.arch.tmem_load(%window, %r) {atom = !cute_nvgpu.atom.tmem_load<f32, 32x32b, x32>} : (!window, !registers) -> ()
      cute_nvgpu.arch.tmem_wait() {kind = "load"} : () -> ()
      cute_nvgpu.arch.tcgen05_fence() {kind = "before"} : () -> ()
      %v = cute.memref.load_vec %r : !registers
      %spot = cute.make_coord(%tid) : (i32) -> !cute.coord<"(?,_)">
      %row = cute.slice(%c, %spot) : !result, !cute.coord<"(?,_)">
      cute.memref.store_vec %v, %row : !cute.memref<f32, gmem, align<16>, "(32):(1)">

      cute_nvgpu.arch.barrier() : () -> ()
      scf.if %allocates {
        cute_nvgpu.arch.tmem_dealloc(%tmem) {columns = 64 : i32} : (!tmem) -> ()
      }
      gpu.return
    }
  }

  func.func @launch(%a: !matrix, %b: !matrix, %sfa: !factors, %sfb: !factors, %c: !result) {
    %tiler_a = cute.static : !cute.tile<"[128:1;128:1]">
    %tiler_b = cute.static : !cute.tile<"[32:1;128:1]">
    %smem_a = cute.static : !cute.layout<"(128,128):(128,1)">
    %smem_b = cute.static : !cute.layout<"(32,128):(128,1)">
    %load_a, %xy_a = cute_nvgpu.make_tma_load(%a, %smem_a, %tiler_a) {swizzle = 128 : i32}
      : (!matrix, !cute.layout<"(128,128):(128,1)">, !cute.tile<"[128:1;128:1]">) -> (!load_a, !xy)
    %load_b, %xy_b = cute_nvgpu.make_tma_load(%b, %smem_b, %tiler_b) {swizzle = 128 : i32}
      : (!matrix, !cute.layout<"(32,128):(128,1)">, !cute.tile<"[32:1;128:1]">) -> (!load_b, !xy)
    %columns = cute.size<[1]> (%a) : (!matrix) -> !cute.int_tuple<"?">
    %step = cute.static : !cute.int_tuple<"128">
    %tiles = cute.ceil_div(%columns, %step) : (!cute.int_tuple<"?">, !cute.int_tuple<"128">) -> !cute.int_tuple<"?">
    %k_tiles = cute.get_scalars (%tiles) : !cute.int_tuple<"?">
    %one = arith.constant 1 : i32
    %threads = arith.constant 128 : i32
    gpu.launch_func @kernels::@tile blocks in (%one, %one, %one) threads in (%threads, %one, %one) : i32
      args(%load_a : !load_a, %load_b : !load_b, %sfa : !factors, %sfb : !factors, %c : !result, %k_tiles : i32)
    return
  }
}
