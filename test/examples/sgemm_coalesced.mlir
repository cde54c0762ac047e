!mA = !cute.memref<f32, gmem, "(?,?):(?,1)">
!gA = !cute.memref<f32, gmem, "(32,?):(?,1)">
!memref = !cute.memref<f32, gmem, "(?,?):(1,?)">
!gB = !cute.memref<f32, gmem, "(32,?):(1,?)">
!gC = !cute.memref<f32, gmem, "(32,32):(?,1)">
!layout = !cute.layout<"(?,?):(1@0,1@1)">
!coord_tensor = !cute.coord_tensor<"(0,0)", "(?,?):(1@0,1@1)">
!ids = !cute.coord_tensor<"(?{div=32},?{div=32})", "(32,32):(1@0,1@1)">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // Compute one element of C per thread.
    gpu.func @sgemm(%mA: !mA, %mB: !mA, %mC: !mA) kernel attributes {known_block_size = array<i32: 1024, 1, 1>} {
      %0 = cute.get_layout(%mA) : !mA
      %1:3 = cute.get_scalars<{only_dynamic}> (%0) : !cute.layout<"(?,?):(?,1)">
      %c31_i32 = arith.constant 31 : i32
      %c5_i32 = arith.constant 5 : i32
      %2 = cute.static : !cute.shape<"(32)">
      %3 = cute.static : !cute.shape<"(32,32)">
      %4 = cute.static : !cute.int_tuple<"(0,0)">
      %c0_i32 = arith.constant 0 : i32
      %c1_i32 = arith.constant 1 : i32
      %cst = arith.constant 0.000000e+00 : f32
      %5 = cute.get_layout(%mC) : !mA
      %6:3 = cute.get_scalars<{only_dynamic}> (%5) : !cute.layout<"(?,?):(?,1)">
      %7 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32
      // This block's rows of A, columns of B, and tile of C.
      %8 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %9 = arith.addi %6#1, %c31_i32 : i32
      %across = arith.shrui %9, %c5_i32 : i32
      %row = arith.divui %8, %across : i32
      %column = arith.remui %8, %across : i32
      %10 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?)">
      %gA = cute.local_tile(%mA, %2, %10) : (!mA, !cute.shape<"(32)">, !cute.coord<"(?)">) -> !gA
      %11 = cute.select<[1, 0]> (%mB) : !mA -> !memref
      %12 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?)">
      %gB = cute.local_tile(%11, %2, %12) : (!memref, !cute.shape<"(32)">, !cute.coord<"(?)">) -> !gB
      %13 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %gC = cute.local_tile(%mC, %3, %13) : (!mA, !cute.shape<"(32,32)">, !cute.coord<"(?,?)">) -> !gC
      %14 = cute.make_shape(%6#0, %6#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %15 = cute.make_identity_layout(%14) : !cute.shape<"(?,?)"> -> !layout
      %16 = cute.make_view(%4, %15) : !coord_tensor
      %17 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %ids = cute.local_tile(%16, %3, %17) : (!coord_tensor, !cute.shape<"(32,32)">, !cute.coord<"(?,?)">) -> !ids
      // The threads of a warp are in one column, or in one row.
      %m = arith.shrui %7, %c5_i32 : i32
      %n = arith.andi %7, %c31_i32 : i32
      %18 = cute.make_coord(%m, %n) : (i32, i32) -> !cute.coord<"(?,?)">
      %19 = cute.memref.load(%ids, %18) : (!ids, !cute.coord<"(?,?)">) -> !cute.int_tuple<"(?,?)">
      %20:2 = cute.get_scalars<{only_dynamic}> (%19) : !cute.int_tuple<"(?,?)">
      %21 = cute.make_int_tuple(%20#0, %20#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %22 = cute.make_int_tuple(%6#0, %6#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %23 = cute.elem_less(%21, %22) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
      scf.if %23 {
        %24 = scf.for %k = %c0_i32 to %1#1 step %c1_i32 iter_args(%arg0 = %cst) -> (f32) : i32 {
          %26 = cute.make_coord(%m, %k) : (i32, i32) -> !cute.coord<"(?,?)">
          %27 = cute.memref.load(%gA, %26) : (!gA, !cute.coord<"(?,?)">) -> f32
          %28 = cute.make_coord(%n, %k) : (i32, i32) -> !cute.coord<"(?,?)">
          %29 = cute.memref.load(%gB, %28) : (!gB, !cute.coord<"(?,?)">) -> f32
          %total = math.fma %27, %29, %arg0 fastmath<contract> : f32
          scf.yield %total : f32
        }
        %25 = cute.make_coord(%m, %n) : (i32, i32) -> !cute.coord<"(?,?)">
        cute.memref.store(%gC, %25, %24) : (!gC, !cute.coord<"(?,?)">, f32) -> ()
      }
      gpu.return
    }
  }
  // Launch one block per tile of C, with vector accesses if the matrices allow it.
  func.func @launch(%mA: !mA, %mB: !mA, %mC: !mA) {
    %0 = cute.static : !cute.int_tuple<"32">
    %c1_i32 = arith.constant 1 : i32
    %c1024_i32 = arith.constant 1024 : i32
    %1 = cute.get_layout(%mC) : !mA
    %2:3 = cute.get_scalars<{only_dynamic}> (%1) : !cute.layout<"(?,?):(?,1)">
    %3 = cute.get_layout(%mB) : !mA
    %4:3 = cute.get_scalars<{only_dynamic}> (%3) : !cute.layout<"(?,?):(?,1)">
    %5 = cute.get_layout(%mA) : !mA
    %6:3 = cute.get_scalars<{only_dynamic}> (%5) : !cute.layout<"(?,?):(?,1)">
    %7 = arith.cmpi eq, %6#1, %4#0 : i32
    cf.assert %7, "A and B must have the same K"
    %8 = arith.cmpi eq, %6#0, %2#0 : i32
    cf.assert %8, "A and C must have the same M"
    %9 = arith.cmpi eq, %4#1, %2#1 : i32
    cf.assert %9, "B and C must have the same N"
    %10 = cute.make_int_tuple(%2#0) : (i32) -> !cute.int_tuple<"?">
    %11 = cute.ceil_div(%10, %0) : (!cute.int_tuple<"?">, !cute.int_tuple<"32">) -> !cute.int_tuple<"?">
    %12 = cute.get_scalars<{only_dynamic}> (%11) : !cute.int_tuple<"?">
    %13 = cute.make_int_tuple(%2#1) : (i32) -> !cute.int_tuple<"?">
    %14 = cute.ceil_div(%13, %0) : (!cute.int_tuple<"?">, !cute.int_tuple<"32">) -> !cute.int_tuple<"?">
    %15 = cute.get_scalars<{only_dynamic}> (%14) : !cute.int_tuple<"?">
    %16 = arith.muli %12, %15 : i32
    gpu.launch_func @kernels::@sgemm blocks in (%16, %c1_i32, %c1_i32) threads in (%c1024_i32, %c1_i32, %c1_i32) : i32 args(%mA : !mA, %mB : !mA, %mC : !mA)
    return
  }
}
