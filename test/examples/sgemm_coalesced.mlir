// C = A * B in f32 for row-major matrices of any size:
// a thread computes one element; the threads of a warp lie in one row of C.

!mat = !cute.memref<f32, gmem, "(?,?):(?,1)">
!gA = !cute.memref<f32, gmem, "(32,?):(?,1)">
!mBt = !cute.memref<f32, gmem, "(?,?):(1,?)">
!gB = !cute.memref<f32, gmem, "(32,?):(1,?)">
!gC = !cute.memref<f32, gmem, "(32,32):(?,1)">
!mIds = !cute.coord_tensor<"(0,0)", "(?,?):(1@0,1@1)">
!ids_tile = !cute.coord_tensor<"(?{div=32},?{div=32})", "(32,32):(1@0,1@1)">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @sgemm(%mA: !mat, %mB: !mat, %mC: !mat) kernel attributes {known_block_size = array<i32: 1024, 1, 1>} {
      %c1_i32 = arith.constant 1 : i32
      %c0_i32 = arith.constant 0 : i32
      %c32_i32 = arith.constant 32 : i32
      // This block's rows of A, columns of B, and tile of C.
      %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32
      %0 = cute.get_layout(%mC) : !mat
      %1 = cute.get_shape(%0) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
      %2:2 = cute.get_scalars (%1) : !cute.shape<"(?,?)">
      %across = arith.ceildivsi %2#1, %c32_i32 : i32
      %bid = nvvm.read.ptx.sreg.ctaid.x : i32
      %row = arith.divsi %bid, %across : i32
      %column = arith.remsi %bid, %across : i32
      %3 = cute.static : !cute.tile<"[32:1]">
      %4 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?)">
      %gA = cute.local_tile(%mA, %3, %4) : (!mat, !cute.tile<"[32:1]">, !cute.coord<"(?)">) -> !gA
      %mBt = cute.select<[1, 0]> (%mB) : !mat -> !mBt
      %5 = cute.static : !cute.tile<"[32:1]">
      %6 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?)">
      %gB = cute.local_tile(%mBt, %5, %6) : (!mBt, !cute.tile<"[32:1]">, !cute.coord<"(?)">) -> !gB
      %7 = cute.static : !cute.tile<"[32:1;32:1]">
      %8 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %gC = cute.local_tile(%mC, %7, %8) : (!mat, !cute.tile<"[32:1;32:1]">, !cute.coord<"(?,?)">) -> !gC
      %9 = cute.get_layout(%mC) : !mat
      %10 = cute.get_shape(%9) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
      %11 = cute.make_identity_layout(%10) : !cute.shape<"(?,?)"> -> !cute.layout<"(?,?):(1@0,1@1)">
      %12 = cute.static : !cute.int_tuple<"(0,0)">
      %mIds = cute.make_view(%12, %11) : !mIds
      %13 = cute.static : !cute.tile<"[32:1;32:1]">
      %14 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %ids = cute.local_tile(%mIds, %13, %14) : (!mIds, !cute.tile<"[32:1;32:1]">, !cute.coord<"(?,?)">) -> !ids_tile
      // Threads of a warp: one row.
      %n = arith.remui %tid, %c32_i32 : i32
      %m = arith.divui %tid, %c32_i32 : i32
      %where = cute.make_coord(%m, %n) : (i32, i32) -> !cute.coord<"(?,?)">
      %15 = cute.memref.load(%ids, %where) : (!ids_tile, !cute.coord<"(?,?)">) -> !cute.int_tuple<"(?,?)">
      %16 = cute.get_layout(%mC) : !mat
      %17 = cute.get_shape(%16) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
      %inside = cute.elem_less(%15, %17) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
      scf.if %inside {
        %cst = arith.constant 0.000000e+00 : f32
        %18 = cute.get_layout(%mA) : !mat
        %19 = cute.get_shape(%18) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
        %20:2 = cute.get_scalars (%19) : !cute.shape<"(?,?)">
        %21 = scf.for %arg0 = %c0_i32 to %20#1 step %c1_i32 iter_args(%arg1 = %cst) -> (f32) : i32 {
          %22 = cute.make_coord(%m, %arg0) : (i32, i32) -> !cute.coord<"(?,?)">
          %a = cute.memref.load(%gA, %22) : (!gA, !cute.coord<"(?,?)">) -> f32
          %23 = cute.make_coord(%n, %arg0) : (i32, i32) -> !cute.coord<"(?,?)">
          %b = cute.memref.load(%gB, %23) : (!gB, !cute.coord<"(?,?)">) -> f32
          %24 = math.fma %a, %b, %arg1 : f32
          scf.yield %24 : f32
        }
        cute.memref.store(%gC, %where, %21) : (!gC, !cute.coord<"(?,?)">, f32) -> ()
      }
      gpu.return
    }
  }
  func.func @launch(%mA: !mat, %mB: !mat, %mC: !mat) {
    %c1024_i32 = arith.constant 1024 : i32
    %c1_i32 = arith.constant 1 : i32
    %c32_i32 = arith.constant 32 : i32
    %0 = cute.get_layout(%mA) : !mat
    %1 = cute.get_shape(%0) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
    %2:2 = cute.get_scalars (%1) : !cute.shape<"(?,?)">
    %3 = cute.get_layout(%mB) : !mat
    %4 = cute.get_shape(%3) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
    %5:2 = cute.get_scalars (%4) : !cute.shape<"(?,?)">
    %6 = cute.get_layout(%mC) : !mat
    %7 = cute.get_shape(%6) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
    %8:2 = cute.get_scalars (%7) : !cute.shape<"(?,?)">
    %9 = arith.cmpi eq, %2#1, %5#0 : i32
    %10 = arith.cmpi eq, %2#0, %8#0 : i32
    %11 = arith.cmpi eq, %5#1, %8#1 : i32
    cf.assert %9, "A and B must have the same K"
    cf.assert %10, "A and C must have the same M"
    cf.assert %11, "B and C must have the same N"
    // One block a tile of C.
    %12 = arith.ceildivsi %8#0, %c32_i32 : i32
    %13 = arith.ceildivsi %8#1, %c32_i32 : i32
    %14 = arith.muli %12, %13 : i32
    gpu.launch_func @kernels::@sgemm blocks in (%14, %c1_i32, %c1_i32) threads in (%c1024_i32, %c1_i32, %c1_i32) : i32 args(%mA : !mat, %mB : !mat, %mC : !mat)
    return
  }
}
