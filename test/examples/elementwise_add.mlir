!mA = !cute.memref<f32, gmem, "(?,?):(?,1)">
!universal_copy = !cute_nvgpu.atom.universal_copy<f32>
!tiled_copy = !cute.tiled_copy<!universal_copy, layout_copy_tv = <"((32,4),(4,4)):((64,4),(16,1))">, tiler_mn = <"[16:1;128:1]">>
!gA = !cute.memref<f32, gmem, "((16,128),(?,?)):((?,1),(?{div=16},128))">
!layout = !cute.layout<"(?,?):(1@0,1@1)">
!coord_tensor = !cute.coord_tensor<"(0,0)", "(?,?):(1@0,1@1)">
!gX = !cute.coord_tensor<"(0,0)", "((16,128),(?,?)):((1@0,1@1),(16@0,128@1))">
!layout_2 = !cute.layout<"((16,128),(?,?)):((1@0,1@1),(16@0,128@1))">
!bA = !cute.memref<f32, gmem, "(16,128):(?,1)">
!bX = !cute.coord_tensor<"(?{div=16},?{div=128})", "(16,128):(1@0,1@1)">
!tA = !cute.memref<f32, gmem, "((1,(4,4)),1,1):((0,(1,?)),0,0)">
!tX = !cute.coord_tensor<"(?{div=4},?{div=4})", "((1,(4,4)),1,1):((0,(1@1,1@0)),0,0)">
!fA = !cute.memref<f32, rmem, align<32>, "((1,(4,4)),1,1):((0,(1,4)),0,0)">
!coord = !cute.coord<"((_,(_,?)),_,_)">
!memref = !cute.memref<f32, gmem, "(1,4,1,1):(0,1,0,0)">
!coord_tensor_2 = !cute.coord_tensor<"(?,?{div=4})", "(1,4,1,1):(0,1@1,0,0)">
!inside = !cute.memref<i1, rmem, align<4>, "(1,4,1,1):(0,1,0,0)">
!fA_2 = !cute.memref<f32, rmem, align<16>, "(1,4,1,1):(0,1,0,0)">
!mA_2 = !cute.memref<f32, gmem, align<16>, "(?,?):(?{div=4},1)">
!layout_3 = !cute.layout<"(?,?):(?{div=4},1)">
!gA_2 = !cute.memref<f32, gmem, align<16>, "((16,128),(?,?)):((?{div=4},1),(?{div=64},128))">
!bA_2 = !cute.memref<f32, gmem, align<16>, "(16,128):(?{div=4},1)">
!tA_2 = !cute.memref<f32, gmem, align<16>, "((1,(4,4)),1,1):((0,(1,?{div=4})),0,0)">
!memref_2 = !cute.memref<f32, gmem, align<16>, "(1,4,1,1):(0,1,0,0)">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // Add matrices of any alignment.
    gpu.func @add(%mA: !mA, %mB: !mA, %mC: !mA) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %0 = cute.get_layout(%mC) : !mA
      %1:3 = cute.get_scalars<{only_dynamic}> (%0) : !cute.layout<"(?,?):(?,1)">
      %2 = cute.static : !cute.shape<"(16,128)">
      %3 = cute.static : !cute.int_tuple<"(0,0)">
      %4 = cute.atom() : !universal_copy
      %5 = cute.make_tiled_copy(%4) : !tiled_copy
      %6 = cute.static : !cute.coord<"(15,127)">
      %c0_i32 = arith.constant 0 : i32
      %c4_i32 = arith.constant 4 : i32
      %c1_i32 = arith.constant 1 : i32
      %7 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
      %where = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      // This block's tile of the matrices and of the coordinate tensor.
      %gA = cute.zipped_divide(%mA, %2) : (!mA, !cute.shape<"(16,128)">) -> !gA
      %gB = cute.zipped_divide(%mB, %2) : (!mA, !cute.shape<"(16,128)">) -> !gA
      %gC = cute.zipped_divide(%mC, %2) : (!mA, !cute.shape<"(16,128)">) -> !gA
      %8 = cute.make_shape(%1#0, %1#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %9 = cute.make_identity_layout(%8) : !cute.shape<"(?,?)"> -> !layout
      %10 = cute.make_view(%3, %9) : !coord_tensor
      %gX = cute.zipped_divide(%10, %2) : (!coord_tensor, !cute.shape<"(16,128)">) -> !gX
      %11 = cute.get_layout(%gX) : !gX
      %12:2 = cute.get_scalars<{only_dynamic}> (%11) : !layout_2
      %13 = cute.make_coord(%where) : (i32) -> !cute.coord<"((_,_),?)">
      %bA = cute.slice(%gA, %13) : !gA, !cute.coord<"((_,_),?)">
      %14 = cute.make_coord(%where) : (i32) -> !cute.coord<"((_,_),?)">
      %bB = cute.slice(%gB, %14) : !gA, !cute.coord<"((_,_),?)">
      %15 = cute.make_coord(%where) : (i32) -> !cute.coord<"((_,_),?)">
      %bC = cute.slice(%gC, %15) : !gA, !cute.coord<"((_,_),?)">
      %16 = cute.make_coord(%where) : (i32) -> !cute.coord<"((_,_),?)">
      %bX = cute.slice(%gX, %16) : !gX, !cute.coord<"((_,_),?)">
      %17 = cute.make_coord(%7) : (i32) -> !cute.coord<"?">
      %tA = cute.tiled.copy.partition_S(%5, %bA, %17) : (!tiled_copy, !bA, !cute.coord<"?">) -> !tA
      %18 = cute.make_coord(%7) : (i32) -> !cute.coord<"?">
      %tB = cute.tiled.copy.partition_S(%5, %bB, %18) : (!tiled_copy, !bA, !cute.coord<"?">) -> !tA
      %19 = cute.make_coord(%7) : (i32) -> !cute.coord<"?">
      %tX = cute.tiled.copy.partition_S(%5, %bX, %19) : (!tiled_copy, !bX, !cute.coord<"?">) -> !tX
      %20 = cute.make_coord(%7) : (i32) -> !cute.coord<"?">
      %tC = cute.tiled.copy.partition_D(%5, %bC, %20) : (!tiled_copy, !bA, !cute.coord<"?">) -> !tA
      // If the last coordinate of the tile is in bounds, all are.
      %21 = cute.memref.load(%bX, %6) : (!bX, !cute.coord<"(15,127)">) -> !cute.int_tuple<"(?,?)">
      %22:2 = cute.get_scalars<{only_dynamic}> (%21) : !cute.int_tuple<"(?,?)">
      %23 = cute.make_int_tuple(%22#0, %22#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %24 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %whole = cute.elem_less(%23, %24) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
      scf.if %whole {
        %fA = cute.make_fragment_like(%tA) : !tA -> !fA
        %fB = cute.make_fragment_like(%tB) : !tA -> !fA
        %fC = cute.make_fragment_like(%tC) : !tA -> !fA
        cute.copy(%4, %tA, %fA) : (!universal_copy, !tA, !fA) -> ()
        cute.copy(%4, %tB, %fB) : (!universal_copy, !tA, !fA) -> ()
        %25 = cute.memref.load_vec %fA : !fA
        %26 = cute.memref.load_vec %fB : !fA
        %27 = arith.addf %25, %26 fastmath<contract> : vector<16xf32>
        cute.memref.store_vec %27, %fC : !fA
        cute.copy(%4, %fC, %tC) : (!universal_copy, !fA, !tA) -> ()
      } else {
        scf.for %row = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
          %25 = cute.make_coord(%row) : (i32) -> !coord
          %26 = cute.slice(%tA, %25) : !tA, !coord
          %27 = cute.make_coord(%row) : (i32) -> !coord
          %28 = cute.slice(%tB, %27) : !tA, !coord
          %29 = cute.make_coord(%row) : (i32) -> !coord
          %30 = cute.slice(%tC, %29) : !tA, !coord
          %31 = cute.make_coord(%row) : (i32) -> !coord
          %32 = cute.slice(%tX, %31) : !tX, !coord
          %inside = cute.make_fragment_like(%32) [i1] : !coord_tensor_2 -> !inside
          scf.for %i = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
            %36 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
            %37 = cute.memref.load(%32, %36) : (!coord_tensor_2, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
            %38:2 = cute.get_scalars<{only_dynamic}> (%37) : !cute.int_tuple<"(?,?)">
            %39 = cute.make_int_tuple(%38#0, %38#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
            %40 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
            %41 = cute.elem_less(%39, %40) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
            %42 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
            cute.memref.store(%inside, %42, %41) : (!inside, !cute.coord<"?">, i1) -> ()
          }
          %fA = cute.make_fragment_like(%26) : !memref -> !fA_2
          %fB = cute.make_fragment_like(%28) : !memref -> !fA_2
          %fC = cute.make_fragment_like(%30) : !memref -> !fA_2
          cute.copy(%4, %26, %fA, pred = %inside) : (!universal_copy, !memref, !fA_2, !inside) -> ()
          cute.copy(%4, %28, %fB, pred = %inside) : (!universal_copy, !memref, !fA_2, !inside) -> ()
          %33 = cute.memref.load_vec %fA : !fA_2
          %34 = cute.memref.load_vec %fB : !fA_2
          %35 = arith.addf %33, %34 fastmath<contract> : vector<4xf32>
          cute.memref.store_vec %35, %fC : !fA_2
          cute.copy(%4, %fC, %30, pred = %inside) : (!universal_copy, !fA_2, !memref, !inside) -> ()
        }
      }
      gpu.return
    }
    // Add matrices with 16-byte aligned rows.
    gpu.func @add_v(%mA: !mA_2, %mB: !mA_2, %mC: !mA_2) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %0 = cute.get_layout(%mC) : !mA_2
      %1:3 = cute.get_scalars<{only_dynamic}> (%0) : !layout_3
      %2 = cute.static : !cute.shape<"(16,128)">
      %3 = cute.static : !cute.int_tuple<"(0,0)">
      %4 = cute.atom() : !universal_copy
      %5 = cute.make_tiled_copy(%4) : !tiled_copy
      %6 = cute.static : !cute.coord<"(15,127)">
      %c0_i32 = arith.constant 0 : i32
      %c4_i32 = arith.constant 4 : i32
      %c1_i32 = arith.constant 1 : i32
      %7 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
      %where = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      // This block's tile of the matrices and of the coordinate tensor.
      %gA = cute.zipped_divide(%mA, %2) : (!mA_2, !cute.shape<"(16,128)">) -> !gA_2
      %gB = cute.zipped_divide(%mB, %2) : (!mA_2, !cute.shape<"(16,128)">) -> !gA_2
      %gC = cute.zipped_divide(%mC, %2) : (!mA_2, !cute.shape<"(16,128)">) -> !gA_2
      %8 = cute.make_shape(%1#0, %1#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %9 = cute.make_identity_layout(%8) : !cute.shape<"(?,?)"> -> !layout
      %10 = cute.make_view(%3, %9) : !coord_tensor
      %gX = cute.zipped_divide(%10, %2) : (!coord_tensor, !cute.shape<"(16,128)">) -> !gX
      %11 = cute.get_layout(%gX) : !gX
      %12:2 = cute.get_scalars<{only_dynamic}> (%11) : !layout_2
      %13 = cute.make_coord(%where) : (i32) -> !cute.coord<"((_,_),?)">
      %bA = cute.slice(%gA, %13) : !gA_2, !cute.coord<"((_,_),?)">
      %14 = cute.make_coord(%where) : (i32) -> !cute.coord<"((_,_),?)">
      %bB = cute.slice(%gB, %14) : !gA_2, !cute.coord<"((_,_),?)">
      %15 = cute.make_coord(%where) : (i32) -> !cute.coord<"((_,_),?)">
      %bC = cute.slice(%gC, %15) : !gA_2, !cute.coord<"((_,_),?)">
      %16 = cute.make_coord(%where) : (i32) -> !cute.coord<"((_,_),?)">
      %bX = cute.slice(%gX, %16) : !gX, !cute.coord<"((_,_),?)">
      %17 = cute.make_coord(%7) : (i32) -> !cute.coord<"?">
      %tA = cute.tiled.copy.partition_S(%5, %bA, %17) : (!tiled_copy, !bA_2, !cute.coord<"?">) -> !tA_2
      %18 = cute.make_coord(%7) : (i32) -> !cute.coord<"?">
      %tB = cute.tiled.copy.partition_S(%5, %bB, %18) : (!tiled_copy, !bA_2, !cute.coord<"?">) -> !tA_2
      %19 = cute.make_coord(%7) : (i32) -> !cute.coord<"?">
      %tX = cute.tiled.copy.partition_S(%5, %bX, %19) : (!tiled_copy, !bX, !cute.coord<"?">) -> !tX
      %20 = cute.make_coord(%7) : (i32) -> !cute.coord<"?">
      %tC = cute.tiled.copy.partition_D(%5, %bC, %20) : (!tiled_copy, !bA_2, !cute.coord<"?">) -> !tA_2
      // If the last coordinate of the tile is in bounds, all are.
      %21 = cute.memref.load(%bX, %6) : (!bX, !cute.coord<"(15,127)">) -> !cute.int_tuple<"(?,?)">
      %22:2 = cute.get_scalars<{only_dynamic}> (%21) : !cute.int_tuple<"(?,?)">
      %23 = cute.make_int_tuple(%22#0, %22#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %24 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %whole = cute.elem_less(%23, %24) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
      scf.if %whole {
        %fA = cute.make_fragment_like(%tA) : !tA_2 -> !fA
        %fB = cute.make_fragment_like(%tB) : !tA_2 -> !fA
        %fC = cute.make_fragment_like(%tC) : !tA_2 -> !fA
        cute.copy(%4, %tA, %fA) : (!universal_copy, !tA_2, !fA) -> ()
        cute.copy(%4, %tB, %fB) : (!universal_copy, !tA_2, !fA) -> ()
        %25 = cute.memref.load_vec %fA : !fA
        %26 = cute.memref.load_vec %fB : !fA
        %27 = arith.addf %25, %26 fastmath<contract> : vector<16xf32>
        cute.memref.store_vec %27, %fC : !fA
        cute.copy(%4, %fC, %tC) : (!universal_copy, !fA, !tA_2) -> ()
      } else {
        scf.for %row = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
          %25 = cute.make_coord(%row) : (i32) -> !coord
          %26 = cute.slice(%tA, %25) : !tA_2, !coord
          %27 = cute.make_coord(%row) : (i32) -> !coord
          %28 = cute.slice(%tB, %27) : !tA_2, !coord
          %29 = cute.make_coord(%row) : (i32) -> !coord
          %30 = cute.slice(%tC, %29) : !tA_2, !coord
          %31 = cute.make_coord(%row) : (i32) -> !coord
          %32 = cute.slice(%tX, %31) : !tX, !coord
          %inside = cute.make_fragment_like(%32) [i1] : !coord_tensor_2 -> !inside
          scf.for %i = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
            %36 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
            %37 = cute.memref.load(%32, %36) : (!coord_tensor_2, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
            %38:2 = cute.get_scalars<{only_dynamic}> (%37) : !cute.int_tuple<"(?,?)">
            %39 = cute.make_int_tuple(%38#0, %38#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
            %40 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
            %41 = cute.elem_less(%39, %40) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
            %42 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
            cute.memref.store(%inside, %42, %41) : (!inside, !cute.coord<"?">, i1) -> ()
          }
          %fA = cute.make_fragment_like(%26) : !memref_2 -> !fA_2
          %fB = cute.make_fragment_like(%28) : !memref_2 -> !fA_2
          %fC = cute.make_fragment_like(%30) : !memref_2 -> !fA_2
          cute.copy(%4, %26, %fA, pred = %inside) : (!universal_copy, !memref_2, !fA_2, !inside) -> ()
          cute.copy(%4, %28, %fB, pred = %inside) : (!universal_copy, !memref_2, !fA_2, !inside) -> ()
          %33 = cute.memref.load_vec %fA : !fA_2
          %34 = cute.memref.load_vec %fB : !fA_2
          %35 = arith.addf %33, %34 fastmath<contract> : vector<4xf32>
          cute.memref.store_vec %35, %fC : !fA_2
          cute.copy(%4, %fC, %30, pred = %inside) : (!universal_copy, !fA_2, !memref_2, !inside) -> ()
        }
      }
      gpu.return
    }
  }
  // Launch one block per tile, with vector accesses if the matrices allow it.
  //
  // With ``rows_first``, consecutive blocks go down the rows (the order of the divided tensor's modes), otherwise along
  // them.
  func.func @launch(%mA: !mA, %mB: !mA, %mC: !mA) {
    %0 = cute.static : !cute.shape<"(16,128)">
    %c1_i32 = arith.constant 1 : i32
    %c128_i32 = arith.constant 128 : i32
    %1 = cute.get_layout(%mB) : !mA
    %2:3 = cute.get_scalars<{only_dynamic}> (%1) : !cute.layout<"(?,?):(?,1)">
    %3 = cute.get_layout(%mC) : !mA
    %4:3 = cute.get_scalars<{only_dynamic}> (%3) : !cute.layout<"(?,?):(?,1)">
    %5 = cute.get_layout(%mA) : !mA
    %6:3 = cute.get_scalars<{only_dynamic}> (%5) : !cute.layout<"(?,?):(?,1)">
    %7 = arith.cmpi eq, %6#0, %4#0 : i32
    %8 = arith.cmpi eq, %6#1, %4#1 : i32
    %9 = arith.andi %7, %8 : i1
    cf.assert %9, "A and C must have the same shape"
    %10 = arith.cmpi eq, %2#0, %4#0 : i32
    %11 = arith.cmpi eq, %2#1, %4#1 : i32
    %12 = arith.andi %10, %11 : i1
    cf.assert %12, "B and C must have the same shape"
    %13 = cute.zipped_divide(%mC, %0) : (!mA, !cute.shape<"(16,128)">) -> !gA
    %14 = cute.size<[1]> (%13) : (!gA) -> !cute.int_tuple<"?">
    %15 = cute.get_scalars<{only_dynamic}> (%14) : !cute.int_tuple<"?">
    gpu.launch_func @kernels::@add blocks in (%15, %c1_i32, %c1_i32) threads in (%c128_i32, %c1_i32, %c1_i32) : i32 args(%mA : !mA, %mB : !mA, %mC : !mA) {cute.variants = [@kernels::@add_v]}
    return
  }
}
