// C = A * B^T of f16, one tile of 128 x 32, on one SM of Blackwell.  Thread 0 loads by TMA and multiplies, the four warps
// store the accumulator from tensor memory.  docs/blackwell.md breaks this kernel in three ways.

!matrix = !cute.memref<f16, gmem, "(?,?):(?{div=8},1)">
!result = !cute.memref<f32, gmem, align<16>, "(128,32):(32,1)">
!load_a = !cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>
!load_b = !cute_nvgpu.atom.tma_load<f16, box = (64, 32), swizzle = 128>
!tile_a = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,64):(64,1)">
!tile_b = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(32,64):(64,1)">
!part_a = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((128,16),1,4):((64,1),0,16)">
!part_b = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((32,16),1,4):((64,1),0,16)">
!smem = !cute.ptr<f16, smem, align<1024>, S<3,4,3>>
!xy = !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">
!bars = !cute.memref<i64, smem, "3:1">
!bar = !cute.ptr<i64, smem>
!slot = !cute.ptr<i32, smem>
!mma_atom = !cute_nvgpu.atom.tcgen05_mma<128x32x16, (f32,f16,f16,f32), A = smem, major = (k, k)>
!mma = !cute.tiled_mma<!mma_atom, atom_layout_MNK = <"(1,1,1):(0,0,0)">>
!tmem = !cute.ptr<f32, tmem, align<128>>
!acc = !cute.memref<f32, tmem, align<128>, "((128,32),1,1):((65536,1),0,0)">
!windows = !cute.memref<f32, tmem, align<128>, "(32,32,4):(1,65536,2097152)">
!window = !cute.memref<f32, tmem, align<128>, "(32,32):(1,65536)">
!registers = !cute.memref<f32, rmem, align<32>, "32:1">

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @tile(%tma_a: !load_a, %tma_b: !load_b, %c: !result, %k_tiles: i32)
        kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c64 = arith.constant 64 : i32
      %sA = cute.memref.alloc_smem() : !tile_a
      %sB = cute.memref.alloc_smem() : !tile_b
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
        cute_nvgpu.arch.tmem_alloc(%slot) {columns = 32 : i32} : (!slot) -> ()
        cute_nvgpu.arch.tmem_relinquish() : () -> ()
      }
      cute_nvgpu.arch.barrier() : () -> ()
      %tmem = cute_nvgpu.arch.tmem_pointer(%slot) : (!slot) -> !tmem

      scf.if %first {
        %atom = cute.atom() : !mma_atom
        %mma = cute.make_tiled_mma(%atom) : !mma
        %acc_layout = cute.static : !cute.layout<"((128,32),1,1):((65536,1),0,0)">
        %acc = cute.make_view(%tmem, %acc_layout) : !acc
        %zero = cute.static : !cute.coord<"0">
        %pa = cute.get_iter(%sA) : !tile_a
        %pb = cute.get_iter(%sB) : !tile_b
        %a = cute.tiled.mma.partition_A(%mma, %sA, %zero) : (!mma, !tile_a, !cute.coord<"0">) -> !part_a
        %b = cute.tiled.mma.partition_B(%mma, %sB, %zero) : (!mma, !tile_b, !cute.coord<"0">) -> !part_b
        %bytes = arith.constant 20480 : i32
        scf.for %k = %c0 to %k_tiles step %c1 iter_args(%phase = %c0) -> (i32) : i32 {
          %released = arith.xori %phase, %c1 : i32
          cute_nvgpu.arch.mbarrier_wait(%empty, %released) : (!bar, i32) -> ()
          %x = arith.muli %k, %c64 : i32
          cute_nvgpu.arch.mbarrier_arrive_expect_tx(%full, %bytes) : (!bar, i32) -> ()
          cute_nvgpu.arch.tma_load(%tma_a, %x, %c0, %pa, %full) : (!load_a, i32, i32, !smem, !bar) -> ()
          cute_nvgpu.arch.tma_load(%tma_b, %x, %c0, %pb, %full) : (!load_b, i32, i32, !smem, !bar) -> ()
          cute_nvgpu.arch.mbarrier_wait(%full, %phase) : (!bar, i32) -> ()
          cute_nvgpu.arch.tcgen05_fence() {kind = "after"} : () -> ()
          %accumulates = arith.cmpi ne, %k, %c0 : i32
          %flagged = cute.atom.set_value(%mma, %accumulates) {field = "accumulate"} : (!mma, i1) -> !mma
          cute.gemm(%flagged, %acc, %a, %b) : (!mma, !acc, !part_a, !part_b) -> ()
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
        cute_nvgpu.arch.tmem_dealloc(%tmem) {columns = 32 : i32} : (!tmem) -> ()
      }
      gpu.return
    }
  }

  func.func @launch(%a: !matrix, %b: !matrix, %c: !result) {
    %tiler_a = cute.static : !cute.tile<"[128:1;64:1]">
    %tiler_b = cute.static : !cute.tile<"[32:1;64:1]">
    %smem_a = cute.static : !cute.layout<"(128,64):(64,1)">
    %smem_b = cute.static : !cute.layout<"(32,64):(64,1)">
    %load_a, %xy_a = cute_nvgpu.make_tma_load(%a, %smem_a, %tiler_a) {swizzle = 128 : i32}
      : (!matrix, !cute.layout<"(128,64):(64,1)">, !cute.tile<"[128:1;64:1]">) -> (!load_a, !xy)
    %load_b, %xy_b = cute_nvgpu.make_tma_load(%b, %smem_b, %tiler_b) {swizzle = 128 : i32}
      : (!matrix, !cute.layout<"(32,64):(64,1)">, !cute.tile<"[32:1;64:1]">) -> (!load_b, !xy)
    %columns = cute.size<[1]> (%a) : (!matrix) -> !cute.int_tuple<"?">
    %step = cute.static : !cute.int_tuple<"64">
    %tiles = cute.ceil_div(%columns, %step) : (!cute.int_tuple<"?">, !cute.int_tuple<"64">) -> !cute.int_tuple<"?">
    %k_tiles = cute.get_scalars (%tiles) : !cute.int_tuple<"?">
    %one = arith.constant 1 : i32
    %threads = arith.constant 128 : i32
    gpu.launch_func @kernels::@tile blocks in (%one, %one, %one) threads in (%threads, %one, %one) : i32
      args(%load_a : !load_a, %load_b : !load_b, %c : !result, %k_tiles : i32)
    return
  }
}
