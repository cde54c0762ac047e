// B = A for matrices of f16 with contiguous rows, any shape, through shared memory by TMA.
//
// A block loads a tile of 128 x 64 and stores it; TMA leaves out what lies outside of the matrices.  The host makes the
// tensor maps.  TMA wants addresses and row strides that are multiples of 16 bytes: for other matrices the launch falls
// back to @launch_any, whose kernel copies element by element.

!matrix = !cute.memref<f16, gmem, "(?,?):(?,1)">

// Tensor maps: a box is 64 columns (128 bytes, what the swizzle spans) of 128 rows.
!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>
!store = !cute_nvgpu.atom.tma_store<f16, box = (64, 128), swizzle = 128>

// TMA coordinates, the contiguous dimension first: of a matrix, tiled, of a block's tile.
!xy = !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">
!xy_tiled = !cute.coord_tensor<"(0,0)", "((128,64),(?,?)):((1@1,1@0),(128@1,64@0))">
!xy_block = !cute.coord_tensor<"(?{div=64},?{div=128})", "(128,64):(1@1,1@0)">

// The tile in shared memory, and the barrier that counts its bytes.
!tile = !cute.tile<"[128:1;64:1]">
!smem_layout = !cute.layout<"(128,64):(64,1)">
!smem = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,64):(64,1)">
!bars = !cute.memref<i64, smem, "1:0">
!bar = !cute.ptr<i64, smem>

// Without TMA: a row of 128 elements for a block, one for a thread.
!row = !cute.tile<"[1:0;128:1]">
!matrix_rows = !cute.memref<f16, gmem, "((1,128),(?,?)):((0,1),(?,128))">
!matrix_row = !cute.memref<f16, gmem, "(1,128):(0,1)">
!ids = !cute.coord_tensor<"(0,0)", "(?,?):(1@0,1@1)">
!ids_rows = !cute.coord_tensor<"(0,0)", "((1,128),(?,?)):((0,1@1),(1@0,128@1))">
!ids_row = !cute.coord_tensor<"(?,?{div=128})", "(1,128):(0,1@1)">

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @copy_tma(%load: !load, %mA: !xy, %store: !store, %mB: !xy)
        kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %sT = cute.memref.alloc_smem() : !smem
      %bars = cute.memref.alloc_smem() : !bars
      %bar = cute.get_iter(%bars) : !bars
      %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 32> : i32
      %bid = nvvm.read.ptx.sreg.ctaid.x : i32
      %zero = arith.constant 0 : i32
      %first = arith.cmpi eq, %tid, %zero : i32

      // This block's tile of both matrices.
      %tiler = cute.static : !tile
      %where = cute.make_coord(%bid) : (i32) -> !cute.coord<"((_,_),?)">
      %gA = cute.zipped_divide(%mA, %tiler) : (!xy, !tile) -> !xy_tiled
      %gB = cute.zipped_divide(%mB, %tiler) : (!xy, !tile) -> !xy_tiled
      %bA = cute.slice(%gA, %where) : !xy_tiled, !cute.coord<"((_,_),?)">
      %bB = cute.slice(%gB, %where) : !xy_tiled, !cute.coord<"((_,_),?)">

      // One thread makes the barrier, asks for the tile, waits, and stores it.
      scf.if %first {
        %one = arith.constant 1 : i32
        cute_nvgpu.arch.mbarrier_init(%bar, %one) : (!bar, i32) -> ()
        cute_nvgpu.arch.fence_mbarrier_init() : () -> ()
        %bytes = arith.constant 16384 : i32
        cute_nvgpu.arch.mbarrier_arrive_expect_tx(%bar, %bytes) : (!bar, i32) -> ()
        %counted = cute.atom.set_value(%load, %bar) {field = tma_bar} : (!load, !bar) -> !load
        cute.copy(%counted, %bA, %sT) : (!load, !xy_block, !smem) -> ()
        cute_nvgpu.arch.mbarrier_wait(%bar, %zero) : (!bar, i32) -> ()
        cute.copy(%store, %sT, %bB) : (!store, !smem, !xy_block) -> ()
        cute_nvgpu.arch.bulk_commit_group() : () -> ()
        cute_nvgpu.arch.bulk_wait_group() {n = 0 : i32} : () -> ()
      }
      gpu.return
    }

    gpu.func @copy_any(%mA: !matrix, %mB: !matrix) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
      %bid = nvvm.read.ptx.sreg.ctaid.x : i32
      %tiler = cute.static : !row
      %where = cute.make_coord(%bid) : (i32) -> !cute.coord<"((_,_),?)">
      %gA = cute.zipped_divide(%mA, %tiler) : (!matrix, !row) -> !matrix_rows
      %gB = cute.zipped_divide(%mB, %tiler) : (!matrix, !row) -> !matrix_rows
      %bA = cute.slice(%gA, %where) : !matrix_rows, !cute.coord<"((_,_),?)">
      %bB = cute.slice(%gB, %where) : !matrix_rows, !cute.coord<"((_,_),?)">
      // The coordinate of this thread's element, and whether it is in the matrix.
      %lB = cute.get_layout(%mB) : !matrix
      %mn = cute.get_shape(%lB) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
      %identity = cute.make_identity_layout(%mn) : !cute.shape<"(?,?)"> -> !cute.layout<"(?,?):(1@0,1@1)">
      %origin = cute.static : !cute.int_tuple<"(0,0)">
      %mX = cute.make_view(%origin, %identity) : !ids
      %gX = cute.zipped_divide(%mX, %tiler) : (!ids, !row) -> !ids_rows
      %bX = cute.slice(%gX, %where) : !ids_rows, !cute.coord<"((_,_),?)">
      %thr = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %at = cute.memref.load(%bX, %thr) : (!ids_row, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
      %inside = cute.elem_less(%at, %mn) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
      scf.if %inside {
        %x = cute.memref.load(%bA, %thr) : (!matrix_row, !cute.coord<"?">) -> f16
        cute.memref.store(%bB, %thr, %x) : (!matrix_row, !cute.coord<"?">, f16) -> ()
      }
      gpu.return
    }
  }

  // One block a tile.
  func.func @launch(%mA: !matrix, %mB: !matrix) attributes {cute.fallback = @launch_any} {
    %lA = cute.get_layout(%mA) : !matrix
    %lB = cute.get_layout(%mB) : !matrix
    %sA = cute.get_shape(%lA) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
    %sB = cute.get_shape(%lB) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
    %same = cute.equal(%sA, %sB) : (!cute.shape<"(?,?)">, !cute.shape<"(?,?)">) -> i1
    cf.assert %same, "A and B must have the same shape"
    %tiler = cute.static : !tile
    %smem = cute.static : !smem_layout
    %load, %cA = cute_nvgpu.make_tma_load(%mA, %smem, %tiler) {swizzle = 128 : i32}
      : (!matrix, !smem_layout, !tile) -> (!load, !xy)
    %store, %cB = cute_nvgpu.make_tma_store(%mB, %smem, %tiler) {swizzle = 128 : i32}
      : (!matrix, !smem_layout, !tile) -> (!store, !xy)
    %gB = cute.zipped_divide(%cB, %tiler) : (!xy, !tile) -> !xy_tiled
    %tiles = cute.size<[1]> (%gB) : (!xy_tiled) -> !cute.int_tuple<"?">
    %grid = cute.get_scalars (%tiles) : !cute.int_tuple<"?">
    %one = arith.constant 1 : i32
    %block = arith.constant 32 : i32
    gpu.launch_func @kernels::@copy_tma blocks in (%grid, %one, %one) threads in (%block, %one, %one) : i32
      args(%load : !load, %cA : !xy, %store : !store, %cB : !xy)
    return
  }

  // One block for 128 elements of a row.
  func.func @launch_any(%mA: !matrix, %mB: !matrix) {
    %lA = cute.get_layout(%mA) : !matrix
    %lB = cute.get_layout(%mB) : !matrix
    %sA = cute.get_shape(%lA) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
    %sB = cute.get_shape(%lB) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
    %same = cute.equal(%sA, %sB) : (!cute.shape<"(?,?)">, !cute.shape<"(?,?)">) -> i1
    cf.assert %same, "A and B must have the same shape"
    %tiler = cute.static : !row
    %gB = cute.zipped_divide(%mB, %tiler) : (!matrix, !row) -> !matrix_rows
    %tiles = cute.size<[1]> (%gB) : (!matrix_rows) -> !cute.int_tuple<"?">
    %grid = cute.get_scalars (%tiles) : !cute.int_tuple<"?">
    %one = arith.constant 1 : i32
    %block = arith.constant 128 : i32
    gpu.launch_func @kernels::@copy_any blocks in (%grid, %one, %one) threads in (%block, %one, %one) : i32
      args(%mA : !matrix, %mB : !matrix)
    return
  }
}
