// C = A + B over row-major matrices of f32, of any shape and row stride.
//
// A block of 128 threads computes a tile of 16 x 128 elements, and each thread computes 4 x 4 of them.  @add supports
// any row stride.  @add_v needs row strides that are multiples of 4 and pointers aligned to 16 bytes; tiles inside the
// matrix then use 128-bit accesses only.  The launch selects @add_v if the arguments allow it.

!tile = !cute.tile<"[16:1;128:1]">
!atom = !cute_nvgpu.atom.universal_copy<f32>
!copy = !cute.tiled_copy<!atom, layout_copy_tv = <"((32,4),(4,4)):((64,4),(16,1))">, tiler_mn = <"[16:1;128:1]">>

// Coordinate tensors of the matrix, the tiled matrix, a block's tile, a thread's values, and a row of them.
!ids = !cute.coord_tensor<"(0,0)", "(?,?):(1@0,1@1)">
!ids_tiled = !cute.coord_tensor<"(0,0)", "((16,128),(?,?)):((1@0,1@1),(16@0,128@1))">
!ids_block = !cute.coord_tensor<"(?{div=16},?{div=128})", "(16,128):(1@0,1@1)">
!ids_thread = !cute.coord_tensor<"(?{div=4},?{div=4})", "((1,(4,4)),1,1):((0,(1@1,1@0)),0,0)">
!ids_row = !cute.coord_tensor<"(?,?{div=4})", "(1,4,1,1):(0,1@1,0,0)">

// Register tensors for a thread's values, for a row of them, and for the predicates of a row.
!regs = !cute.memref<f32, rmem, align<32>, "((1,(4,4)),1,1):((0,(1,4)),0,0)">
!row_regs = !cute.memref<f32, rmem, align<16>, "(1,4,1,1):(0,1,0,0)">
!row_flags = !cute.memref<i1, rmem, align<4>, "(1,4,1,1):(0,1,0,0)">

// Any matrix: the matrix, the tiled matrix, a block's tile, a thread's values, and a row of them.
!mat = !cute.memref<f32, gmem, "(?,?):(?,1)">
!mat_tiled = !cute.memref<f32, gmem, "((16,128),(?,?)):((?,1),(?{div=16},128))">
!mat_block = !cute.memref<f32, gmem, "(16,128):(?,1)">
!mat_thread = !cute.memref<f32, gmem, "((1,(4,4)),1,1):((0,(1,?)),0,0)">
!mat_row = !cute.memref<f32, gmem, "(1,4,1,1):(0,1,0,0)">

// The same for a matrix whose row stride is a multiple of 4 and whose pointer is aligned to 16 bytes.
!vec = !cute.memref<f32, gmem, align<16>, "(?,?):(?{div=4},1)">
!vec_tiled = !cute.memref<f32, gmem, align<16>, "((16,128),(?,?)):((?{div=4},1),(?{div=64},128))">
!vec_block = !cute.memref<f32, gmem, align<16>, "(16,128):(?{div=4},1)">
!vec_thread = !cute.memref<f32, gmem, align<16>, "((1,(4,4)),1,1):((0,(1,?{div=4})),0,0)">
!vec_row = !cute.memref<f32, gmem, align<16>, "(1,4,1,1):(0,1,0,0)">

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @add(%mA: !mat, %mB: !mat, %mC: !mat) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      // Tile the matrices and their coordinate tensor.
      %tiler = cute.static : !tile
      %gA = cute.zipped_divide(%mA, %tiler) : (!mat, !tile) -> !mat_tiled
      %gB = cute.zipped_divide(%mB, %tiler) : (!mat, !tile) -> !mat_tiled
      %gC = cute.zipped_divide(%mC, %tiler) : (!mat, !tile) -> !mat_tiled
      %lC = cute.get_layout(%mC) : !mat
      %mn = cute.get_shape(%lC) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
      %identity = cute.make_identity_layout(%mn) : !cute.shape<"(?,?)"> -> !cute.layout<"(?,?):(1@0,1@1)">
      %origin = cute.static : !cute.int_tuple<"(0,0)">
      %mX = cute.make_view(%origin, %identity) : !ids
      %gX = cute.zipped_divide(%mX, %tiler) : (!ids, !tile) -> !ids_tiled

      // Select the tile of this block.
      %bid = nvvm.read.ptx.sreg.ctaid.x : i32
      %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
      %where = cute.make_coord(%bid) : (i32) -> !cute.coord<"((_,_),?)">
      %bA = cute.slice(%gA, %where) : !mat_tiled, !cute.coord<"((_,_),?)">
      %bB = cute.slice(%gB, %where) : !mat_tiled, !cute.coord<"((_,_),?)">
      %bC = cute.slice(%gC, %where) : !mat_tiled, !cute.coord<"((_,_),?)">
      %bX = cute.slice(%gX, %where) : !ids_tiled, !cute.coord<"((_,_),?)">

      // Partition the tile among threads, and allocate registers for the values of this thread.
      %atom = cute.atom() : !atom
      %copy = cute.make_tiled_copy(%atom) : !copy
      %thr = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %tA = cute.tiled.copy.partition_S(%copy, %bA, %thr) : (!copy, !mat_block, !cute.coord<"?">) -> !mat_thread
      %tB = cute.tiled.copy.partition_S(%copy, %bB, %thr) : (!copy, !mat_block, !cute.coord<"?">) -> !mat_thread
      %tC = cute.tiled.copy.partition_D(%copy, %bC, %thr) : (!copy, !mat_block, !cute.coord<"?">) -> !mat_thread
      %tX = cute.tiled.copy.partition_S(%copy, %bX, %thr) : (!copy, !ids_block, !cute.coord<"?">) -> !ids_thread
      %fA = cute.make_fragment_like(%tA) : !mat_thread -> !regs
      %fB = cute.make_fragment_like(%tB) : !mat_thread -> !regs
      %fC = cute.make_fragment_like(%tC) : !mat_thread -> !regs

      // If the last coordinate of the tile is inside the matrix, the whole tile is.
      %corner = cute.static : !cute.coord<"(15,127)">
      %last = cute.memref.load(%bX, %corner) : (!ids_block, !cute.coord<"(15,127)">) -> !cute.int_tuple<"(?,?)">
      %inside = cute.elem_less(%last, %mn) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
      scf.if %inside {
        cute.copy(%atom, %tA, %fA) : (!atom, !mat_thread, !regs) -> ()
        cute.copy(%atom, %tB, %fB) : (!atom, !mat_thread, !regs) -> ()
        %a = cute.memref.load_vec %fA : !regs
        %b = cute.memref.load_vec %fB : !regs
        %c = arith.addf %a, %b : vector<16xf32>
        cute.memref.store_vec %c, %fC : !regs
        cute.copy(%atom, %fC, %tC) : (!atom, !regs, !mat_thread) -> ()
      } else {
        // At the edge, the copies of each row are predicated: a coordinate must be less than the shape.
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %rows = arith.constant 4 : i32
        scf.for %r = %c0 to %rows step %c1 : i32 {
          %row = cute.make_coord(%r) : (i32) -> !cute.coord<"((_,(_,?)),_,_)">
          %rA = cute.slice(%tA, %row) : !mat_thread, !cute.coord<"((_,(_,?)),_,_)">
          %rB = cute.slice(%tB, %row) : !mat_thread, !cute.coord<"((_,(_,?)),_,_)">
          %rC = cute.slice(%tC, %row) : !mat_thread, !cute.coord<"((_,(_,?)),_,_)">
          %rX = cute.slice(%tX, %row) : !ids_thread, !cute.coord<"((_,(_,?)),_,_)">
          %fP = cute.make_fragment_like(%rX) [i1] : !ids_row -> !row_flags
          %eA = cute.make_fragment_like(%rA) : !mat_row -> !row_regs
          %eB = cute.make_fragment_like(%rB) : !mat_row -> !row_regs
          %eC = cute.make_fragment_like(%rC) : !mat_row -> !row_regs
          %i0 = arith.constant 0 : i32
          %i1 = arith.constant 1 : i32
          %in = arith.constant 4 : i32
          scf.for %i = %i0 to %in step %i1 : i32 {
            %ci = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
            %at = cute.memref.load(%rX, %ci) : (!ids_row, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
            %flag = cute.elem_less(%at, %mn) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
            cute.memref.store(%fP, %ci, %flag) : (!row_flags, !cute.coord<"?">, i1) -> ()
          }
          cute.copy(%atom, %rA, %eA, pred = %fP) : (!atom, !mat_row, !row_regs, !row_flags) -> ()
          cute.copy(%atom, %rB, %eB, pred = %fP) : (!atom, !mat_row, !row_regs, !row_flags) -> ()
          %a = cute.memref.load_vec %eA : !row_regs
          %b = cute.memref.load_vec %eB : !row_regs
          %c = arith.addf %a, %b : vector<4xf32>
          cute.memref.store_vec %c, %eC : !row_regs
          cute.copy(%atom, %eC, %rC, pred = %fP) : (!atom, !row_regs, !mat_row, !row_flags) -> ()
        }
      }
      gpu.return
    }

    gpu.func @add_v(%mA: !vec, %mB: !vec, %mC: !vec) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      // Tile the matrices and their coordinate tensor.
      %tiler = cute.static : !tile
      %gA = cute.zipped_divide(%mA, %tiler) : (!vec, !tile) -> !vec_tiled
      %gB = cute.zipped_divide(%mB, %tiler) : (!vec, !tile) -> !vec_tiled
      %gC = cute.zipped_divide(%mC, %tiler) : (!vec, !tile) -> !vec_tiled
      %lC = cute.get_layout(%mC) : !vec
      %mn = cute.get_shape(%lC) : !cute.layout<"(?,?):(?{div=4},1)"> -> !cute.shape<"(?,?)">
      %identity = cute.make_identity_layout(%mn) : !cute.shape<"(?,?)"> -> !cute.layout<"(?,?):(1@0,1@1)">
      %origin = cute.static : !cute.int_tuple<"(0,0)">
      %mX = cute.make_view(%origin, %identity) : !ids
      %gX = cute.zipped_divide(%mX, %tiler) : (!ids, !tile) -> !ids_tiled

      // Select the tile of this block.
      %bid = nvvm.read.ptx.sreg.ctaid.x : i32
      %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
      %where = cute.make_coord(%bid) : (i32) -> !cute.coord<"((_,_),?)">
      %bA = cute.slice(%gA, %where) : !vec_tiled, !cute.coord<"((_,_),?)">
      %bB = cute.slice(%gB, %where) : !vec_tiled, !cute.coord<"((_,_),?)">
      %bC = cute.slice(%gC, %where) : !vec_tiled, !cute.coord<"((_,_),?)">
      %bX = cute.slice(%gX, %where) : !ids_tiled, !cute.coord<"((_,_),?)">

      // Partition the tile among threads, and allocate registers for the values of this thread.
      %atom = cute.atom() : !atom
      %copy = cute.make_tiled_copy(%atom) : !copy
      %thr = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %tA = cute.tiled.copy.partition_S(%copy, %bA, %thr) : (!copy, !vec_block, !cute.coord<"?">) -> !vec_thread
      %tB = cute.tiled.copy.partition_S(%copy, %bB, %thr) : (!copy, !vec_block, !cute.coord<"?">) -> !vec_thread
      %tC = cute.tiled.copy.partition_D(%copy, %bC, %thr) : (!copy, !vec_block, !cute.coord<"?">) -> !vec_thread
      %tX = cute.tiled.copy.partition_S(%copy, %bX, %thr) : (!copy, !ids_block, !cute.coord<"?">) -> !ids_thread
      %fA = cute.make_fragment_like(%tA) : !vec_thread -> !regs
      %fB = cute.make_fragment_like(%tB) : !vec_thread -> !regs
      %fC = cute.make_fragment_like(%tC) : !vec_thread -> !regs

      // If the last coordinate of the tile is inside the matrix, the whole tile is.
      %corner = cute.static : !cute.coord<"(15,127)">
      %last = cute.memref.load(%bX, %corner) : (!ids_block, !cute.coord<"(15,127)">) -> !cute.int_tuple<"(?,?)">
      %inside = cute.elem_less(%last, %mn) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
      scf.if %inside {
        cute.copy(%atom, %tA, %fA) : (!atom, !vec_thread, !regs) -> ()
        cute.copy(%atom, %tB, %fB) : (!atom, !vec_thread, !regs) -> ()
        %a = cute.memref.load_vec %fA : !regs
        %b = cute.memref.load_vec %fB : !regs
        %c = arith.addf %a, %b : vector<16xf32>
        cute.memref.store_vec %c, %fC : !regs
        cute.copy(%atom, %fC, %tC) : (!atom, !regs, !vec_thread) -> ()
      } else {
        // At the edge, the copies of each row are predicated: a coordinate must be less than the shape.
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %rows = arith.constant 4 : i32
        scf.for %r = %c0 to %rows step %c1 : i32 {
          %row = cute.make_coord(%r) : (i32) -> !cute.coord<"((_,(_,?)),_,_)">
          %rA = cute.slice(%tA, %row) : !vec_thread, !cute.coord<"((_,(_,?)),_,_)">
          %rB = cute.slice(%tB, %row) : !vec_thread, !cute.coord<"((_,(_,?)),_,_)">
          %rC = cute.slice(%tC, %row) : !vec_thread, !cute.coord<"((_,(_,?)),_,_)">
          %rX = cute.slice(%tX, %row) : !ids_thread, !cute.coord<"((_,(_,?)),_,_)">
          %fP = cute.make_fragment_like(%rX) [i1] : !ids_row -> !row_flags
          %eA = cute.make_fragment_like(%rA) : !vec_row -> !row_regs
          %eB = cute.make_fragment_like(%rB) : !vec_row -> !row_regs
          %eC = cute.make_fragment_like(%rC) : !vec_row -> !row_regs
          %i0 = arith.constant 0 : i32
          %i1 = arith.constant 1 : i32
          %in = arith.constant 4 : i32
          scf.for %i = %i0 to %in step %i1 : i32 {
            %ci = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
            %at = cute.memref.load(%rX, %ci) : (!ids_row, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
            %flag = cute.elem_less(%at, %mn) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
            cute.memref.store(%fP, %ci, %flag) : (!row_flags, !cute.coord<"?">, i1) -> ()
          }
          cute.copy(%atom, %rA, %eA, pred = %fP) : (!atom, !vec_row, !row_regs, !row_flags) -> ()
          cute.copy(%atom, %rB, %eB, pred = %fP) : (!atom, !vec_row, !row_regs, !row_flags) -> ()
          %a = cute.memref.load_vec %eA : !row_regs
          %b = cute.memref.load_vec %eB : !row_regs
          %c = arith.addf %a, %b : vector<4xf32>
          cute.memref.store_vec %c, %eC : !row_regs
          cute.copy(%atom, %eC, %rC, pred = %fP) : (!atom, !row_regs, !vec_row, !row_flags) -> ()
        }
      }
      gpu.return
    }
  }

  // One block a tile.
  func.func @launch(%mA: !mat, %mB: !mat, %mC: !mat) {
    %lA = cute.get_layout(%mA) : !mat
    %lB = cute.get_layout(%mB) : !mat
    %lC = cute.get_layout(%mC) : !mat
    %sA = cute.get_shape(%lA) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
    %sB = cute.get_shape(%lB) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
    %sC = cute.get_shape(%lC) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
    %sameA = cute.equal(%sA, %sC) : (!cute.shape<"(?,?)">, !cute.shape<"(?,?)">) -> i1
    cf.assert %sameA, "A and C must have the same shape"
    %sameB = cute.equal(%sB, %sC) : (!cute.shape<"(?,?)">, !cute.shape<"(?,?)">) -> i1
    cf.assert %sameB, "B and C must have the same shape"
    %tiler = cute.static : !tile
    %gC = cute.zipped_divide(%mC, %tiler) : (!mat, !tile) -> !mat_tiled
    %tiles = cute.size<[1]> (%gC) : (!mat_tiled) -> !cute.int_tuple<"?">
    %grid = cute.get_scalars (%tiles) : !cute.int_tuple<"?">
    %tv = cute.static : !cute.layout<"((32,4),(4,4)):((64,4),(16,1))">
    %threads = cute.size<[0]> (%tv) : (!cute.layout<"((32,4),(4,4)):((64,4),(16,1))">) -> !cute.int_tuple<"128">
    %block = cute.get_scalars (%threads) : !cute.int_tuple<"128">
    %one = arith.constant 1 : i32
    gpu.launch_func @kernels::@add blocks in (%grid, %one, %one) threads in (%block, %one, %one) : i32
      args(%mA : !mat, %mB : !mat, %mC : !mat) {cute.variants = [@kernels::@add_v]}
    return
  }
}
