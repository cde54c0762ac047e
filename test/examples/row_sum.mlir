!x = !cute.memref<f32, gmem, "(?,4096):(?,1)">
!y = !cute.memref<f32, gmem, "(?):(1)">
!universal_copy = !cute_nvgpu.atom.universal_copy<f32>
!memref = !cute.memref<f32, gmem, "(4096):(1)">
!values = !cute.memref<f32, rmem, align<32>, "8:1">
!ptr = !cute.ptr<f32, rmem, align<32>>
!int_tuple = !cute.int_tuple<"?{div=2048}">
!under_way = !cute.memref<f32, gmem, "(1,8):(1,256)">
!memref_2 = !cute.memref<f32, rmem, align<32>, "(1,8):(1,1)">
!groups = !cute.memref<f32, rmem, align<32>, "(4,2):(1,4)">
!memref_3 = !cute.memref<f32, rmem, align<16>, "(4):(1)">
!table = !cute.memref<f32, smem, "8:1">
!x_2 = !cute.memref<f32, gmem, align<16>, "(?,4096):(?{div=4},1)">
!layout = !cute.layout<"(4,4):(1,1024)">
!memref_4 = !cute.memref<f32, gmem, align<16>, "(4096):(1)">
!begin = !cute.ptr<f32, gmem, align<16>>
!values_2 = !cute.memref<f32, rmem, align<32>, "16:1">
!memref_5 = !cute.memref<f32, gmem, align<16>, "(4,4):(1,1024)">
!groups_2 = !cute.memref<f32, rmem, align<32>, "(4,4):(1,4)">
!memref_6 = !cute.memref<f32, rmem, align<32>, "(4):(1)">
!layout_2 = !cute.layout<"(?,4096):(?,1)">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // Work on the rows of this block.
    gpu.func @sum(%x: !x, %y: !y) kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 4 : i32} {
      %cst = arith.constant 0.000000e+00 : f32
      %c2048_i32 = arith.constant 2048 : i32
      %0 = cute.static : !cute.layout<"(1,8):(1,256)">
      %1 = cute.static : !cute.layout<"(1,8):(1,1)">
      %2 = cute.atom() : !universal_copy
      %3 = cute.static : !cute.layout<"(4,2):(1,4)">
      %c0_i32 = arith.constant 0 : i32
      %c2_i32 = arith.constant 2 : i32
      %c1_i32 = arith.constant 1 : i32
      %4 = cute.static : !cute.int_tuple<"4096">
      %c16_i32 = arith.constant 16 : i32
      %c8_i32 = arith.constant 8 : i32
      %c4_i32 = arith.constant 4 : i32
      %c5_i32 = arith.constant 5 : i32
      %c7_i32 = arith.constant 7 : i32
      %5 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %source = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %6 = cute_nvgpu.arch.lane_id() : () -> i32
      %7 = cute.make_coord(%source) : (i32) -> !cute.coord<"(?,_)">
      %8 = cute.slice(%x, %7) : !x, !cute.coord<"(?,_)">
      %9 = cute.get_iter(%8) : !memref
      %10 = cute.make_int_tuple(%5) : (i32) -> !cute.int_tuple<"?">
      %begin = cute.add_offset(%9, %10) : (!cute.ptr<f32, gmem>, !cute.int_tuple<"?">) -> !cute.ptr<f32, gmem>
      // Many vectors are under way at once; each of four sums has every fourth element.
      %fours = vector.broadcast %cst : f32 to vector<4xf32>
      %11 = scf.for %i = %c0_i32 to %c2_i32 step %c1_i32 iter_args(%arg0 = %fours) -> (vector<4xf32>) : i32 {
        %values = cute.memref.alloca() : !values
        %38 = cute.get_iter(%values) : !values
        %39 = cute.get_iter(%values) : !values
        %40 = arith.muli %i, %c2048_i32 : i32
        %41 = cute.assume(%40) : (i32) -> !cute.i32<divby 2048>
        %42 = cute.make_int_tuple(%41) : (!cute.i32<divby 2048>) -> !int_tuple
        %43 = cute.add_offset(%begin, %42) : (!cute.ptr<f32, gmem>, !int_tuple) -> !cute.ptr<f32, gmem>
        %under_way = cute.make_view(%43, %0) : !under_way
        %44 = cute.make_view(%39, %1) : !memref_2
        cute.copy(%2, %under_way, %44) : (!universal_copy, !under_way, !memref_2) -> ()
        %groups = cute.make_view(%38, %3) : !groups
        %45 = scf.for %k = %c0_i32 to %c2_i32 step %c1_i32 iter_args(%arg1 = %arg0) -> (vector<4xf32>) : i32 {
          %46 = cute.make_coord(%k) : (i32) -> !cute.coord<"(_,?)">
          %47 = cute.slice(%groups, %46) : !groups, !cute.coord<"(_,?)">
          %48 = cute.memref.load_vec %47 : !memref_3
          %fours_3 = arith.addf %arg1, %48 fastmath<contract> : vector<4xf32>
          scf.yield %fours_3 : vector<4xf32>
        }
        scf.yield %45 : vector<4xf32>
      }
      %12 = vector.shuffle %11, %11 [0, 2] : vector<4xf32>, vector<4xf32>
      %13 = vector.shuffle %11, %11 [1, 3] : vector<4xf32>, vector<4xf32>
      %14 = arith.addf %12, %13 fastmath<contract> : vector<2xf32>
      %15 = vector.shuffle %14, %14 [0] : vector<2xf32>, vector<2xf32>
      %16 = vector.shuffle %14, %14 [1] : vector<2xf32>, vector<2xf32>
      %17 = arith.addf %15, %16 fastmath<contract> : vector<1xf32>
      %total = vector.extract %17[0] : f32 from vector<1xf32>
      %begin_0 = cute.add_offset(%begin, %4) : (!cute.ptr<f32, gmem>, !cute.int_tuple<"4096">) -> !cute.ptr<f32, gmem>
      // By shuffles: the sum of the warp, then of the row; all lanes have it.
      %18 = cute_nvgpu.arch.shfl_sync(%total, %c16_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %19 = arith.addf %total, %18 fastmath<contract> : f32
      %20 = cute_nvgpu.arch.shfl_sync(%19, %c8_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %21 = arith.addf %19, %20 fastmath<contract> : f32
      %22 = cute_nvgpu.arch.shfl_sync(%21, %c4_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %23 = arith.addf %21, %22 fastmath<contract> : f32
      %24 = cute_nvgpu.arch.shfl_sync(%23, %c2_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %25 = arith.addf %23, %24 fastmath<contract> : f32
      %26 = cute_nvgpu.arch.shfl_sync(%25, %c1_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %x_1 = arith.addf %25, %26 fastmath<contract> : f32
      %27 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %28 = arith.shrui %27, %c5_i32 : i32
      %warp = cute_nvgpu.arch.shfl_sync(%28, %c0_i32) {mode = "idx", width = 32 : i32} : (i32, i32) -> i32
      // The warps put their numbers into shared memory; each lane reads those of one.
      %table = cute.memref.alloc_smem() : !table
      %29 = arith.cmpi eq, %6, %c0_i32 : i32
      scf.if %29 {
        %38 = cute.make_coord(%warp) : (i32) -> !cute.coord<"?">
        cute.memref.store(%table, %38, %x_1) : (!table, !cute.coord<"?">, f32) -> ()
      }
      cute_nvgpu.arch.barrier() : () -> ()
      %column = arith.andi %6, %c7_i32 : i32
      %30 = cute.make_coord(%column) : (i32) -> !cute.coord<"?">
      %31 = cute.memref.load(%table, %30) : (!table, !cute.coord<"?">) -> f32
      %32 = cute_nvgpu.arch.shfl_sync(%31, %c4_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %33 = arith.addf %31, %32 fastmath<contract> : f32
      %34 = cute_nvgpu.arch.shfl_sync(%33, %c2_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %35 = arith.addf %33, %34 fastmath<contract> : f32
      %36 = cute_nvgpu.arch.shfl_sync(%35, %c1_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %total_2 = arith.addf %35, %36 fastmath<contract> : f32
      %37 = arith.cmpi eq, %5, %c0_i32 : i32
      scf.if %37 {
        %38 = cute.make_coord(%source) : (i32) -> !cute.coord<"?">
        cute.memref.store(%y, %38, %total_2) : (!y, !cute.coord<"?">, f32) -> ()
      }
      gpu.return
    }
    // Work on the rows of this block.
    gpu.func @sum_v(%x: !x_2, %y: !y) kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 4 : i32} {
      %c4_i32 = arith.constant 4 : i32
      %0 = cute.static : !layout
      %1 = cute.static : !cute.layout<"(4,4):(1,4)">
      %2 = cute.atom() : !universal_copy
      %3 = cute.static : !cute.coord<"(_,0)">
      %c1_i32 = arith.constant 1 : i32
      %c16_i32 = arith.constant 16 : i32
      %c8_i32 = arith.constant 8 : i32
      %c2_i32 = arith.constant 2 : i32
      %c5_i32 = arith.constant 5 : i32
      %c0_i32 = arith.constant 0 : i32
      %c7_i32 = arith.constant 7 : i32
      %4 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %source = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %5 = cute_nvgpu.arch.lane_id() : () -> i32
      // Where this thread begins in a row, and in the part of a row that the block has.
      %6 = arith.muli %4, %c4_i32 : i32
      %7 = arith.muli %4, %c4_i32 : i32
      %8 = cute.make_coord(%source) : (i32) -> !cute.coord<"(?,_)">
      %9 = cute.slice(%x, %8) : !x_2, !cute.coord<"(?,_)">
      %10 = cute.get_iter(%9) : !memref_4
      %11 = cute.assume(%6) : (i32) -> !cute.i32<divby 4>
      %12 = cute.make_int_tuple(%11) : (!cute.i32<divby 4>) -> !cute.int_tuple<"?{div=4}">
      %begin = cute.add_offset(%10, %12) : (!begin, !cute.int_tuple<"?{div=4}">) -> !begin
      %values = cute.memref.alloca() : !values_2
      %13 = cute.get_iter(%values) : !values_2
      %14 = cute.get_iter(%values) : !values_2
      %15 = cute.make_view(%begin, %0) : !memref_5
      %16 = cute.make_view(%14, %1) : !groups_2
      cute.copy(%2, %15, %16) : (!universal_copy, !memref_5, !groups_2) -> ()
      %groups = cute.make_view(%13, %1) : !groups_2
      %17 = cute.slice(%groups, %3) : !groups_2, !cute.coord<"(_,0)">
      %total = cute.memref.load_vec %17 : !memref_6
      %18 = scf.for %i = %c1_i32 to %c4_i32 step %c1_i32 iter_args(%arg0 = %total) -> (vector<4xf32>) : i32 {
        %45 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?)">
        %46 = cute.slice(%groups, %45) : !groups_2, !cute.coord<"(_,?)">
        %47 = cute.memref.load_vec %46 : !memref_3
        %total_2 = arith.addf %arg0, %47 fastmath<contract> : vector<4xf32>
        scf.yield %total_2 : vector<4xf32>
      }
      %19 = vector.extract %18[0] : f32 from vector<4xf32>
      %20 = vector.extract %18[1] : f32 from vector<4xf32>
      %21 = vector.extract %18[2] : f32 from vector<4xf32>
      %22 = vector.extract %18[3] : f32 from vector<4xf32>
      %23 = arith.addf %19, %20 fastmath<contract> : f32
      %24 = arith.addf %21, %22 fastmath<contract> : f32
      %rest = arith.addf %23, %24 fastmath<contract> : f32
      // By shuffles: the sum of the warp, then of the row; all lanes have it.
      %25 = cute_nvgpu.arch.shfl_sync(%rest, %c16_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %26 = arith.addf %rest, %25 fastmath<contract> : f32
      %27 = cute_nvgpu.arch.shfl_sync(%26, %c8_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %28 = arith.addf %26, %27 fastmath<contract> : f32
      %29 = cute_nvgpu.arch.shfl_sync(%28, %c4_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %30 = arith.addf %28, %29 fastmath<contract> : f32
      %31 = cute_nvgpu.arch.shfl_sync(%30, %c2_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %32 = arith.addf %30, %31 fastmath<contract> : f32
      %33 = cute_nvgpu.arch.shfl_sync(%32, %c1_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %x_0 = arith.addf %32, %33 fastmath<contract> : f32
      %34 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %35 = arith.shrui %34, %c5_i32 : i32
      %warp = cute_nvgpu.arch.shfl_sync(%35, %c0_i32) {mode = "idx", width = 32 : i32} : (i32, i32) -> i32
      // The warps put their numbers into shared memory; each lane reads those of one.
      %table = cute.memref.alloc_smem() : !table
      %36 = arith.cmpi eq, %5, %c0_i32 : i32
      scf.if %36 {
        %45 = cute.make_coord(%warp) : (i32) -> !cute.coord<"?">
        cute.memref.store(%table, %45, %x_0) : (!table, !cute.coord<"?">, f32) -> ()
      }
      cute_nvgpu.arch.barrier() : () -> ()
      %column = arith.andi %5, %c7_i32 : i32
      %37 = cute.make_coord(%column) : (i32) -> !cute.coord<"?">
      %38 = cute.memref.load(%table, %37) : (!table, !cute.coord<"?">) -> f32
      %39 = cute_nvgpu.arch.shfl_sync(%38, %c4_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %40 = arith.addf %38, %39 fastmath<contract> : f32
      %41 = cute_nvgpu.arch.shfl_sync(%40, %c2_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %42 = arith.addf %40, %41 fastmath<contract> : f32
      %43 = cute_nvgpu.arch.shfl_sync(%42, %c1_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %total_1 = arith.addf %42, %43 fastmath<contract> : f32
      %44 = arith.cmpi eq, %4, %c0_i32 : i32
      scf.if %44 {
        %45 = cute.make_coord(%source) : (i32) -> !cute.coord<"?">
        cute.memref.store(%y, %45, %total_1) : (!y, !cute.coord<"?">, f32) -> ()
      }
      gpu.return
    }
  }
  // Launch as many blocks as the rows need, or as the GPU holds where they work on rows in turn.
  //
  // ``w`` and ``b``: weights, None where the operation has none.
  func.func @launch(%x: !x, %y: !y) {
    %0 = cute.static : !cute.int_tuple<"1">
    %c1_i32 = arith.constant 1 : i32
    %c256_i32 = arith.constant 256 : i32
    %1 = cute.get_layout(%y) : !y
    %2 = cute.get_scalars<{only_dynamic}> (%1) : !cute.layout<"(?):(1)">
    %3 = cute.get_layout(%x) : !x
    %rows:2 = cute.get_scalars<{only_dynamic}> (%3) : !layout_2
    %4 = arith.cmpi eq, %2, %rows#0 : i32
    cf.assert %4, "y must have as many rows as x"
    %5 = cute.make_int_tuple(%rows#0) : (i32) -> !cute.int_tuple<"?">
    %6 = cute.ceil_div(%5, %0) : (!cute.int_tuple<"?">, !cute.int_tuple<"1">) -> !cute.int_tuple<"?">
    %grid = cute.get_scalars<{only_dynamic}> (%6) : !cute.int_tuple<"?">
    gpu.launch_func @kernels::@sum blocks in (%grid, %c1_i32, %c1_i32) threads in (%c256_i32, %c1_i32, %c1_i32) : i32 args(%x : !x, %y : !y) {cute.variants = [@kernels::@sum_v]}
    return
  }
}
