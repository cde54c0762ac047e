!x = !cute.memref<f32, gmem, "(?,?):(?,1)">
!y = !cute.memref<f32, gmem, "(?):(1)">
!layout = !cute.layout<"(4,4):(1,1024)">
!universal_copy = !cute_nvgpu.atom.universal_copy<f32>
!layout_2 = !cute.layout<"(4,1):(1,1024)">
!begin = !cute.ptr<f32, gmem, align<16>>
!values = !cute.memref<f32, rmem, align<32>, "16:1">
!ptr = !cute.ptr<f32, rmem, align<32>>
!int_tuple = !cute.int_tuple<"?{div=4096}">
!memref = !cute.memref<f32, gmem, align<16>, "(4,4):(1,1024)">
!memref_2 = !cute.memref<f32, rmem, align<32>, "(4,4):(1,4)">
!memref_3 = !cute.memref<f32, rmem, align<32>, "4:1">
!ptr_2 = !cute.ptr<f32, rmem, align<16>>
!memref_4 = !cute.memref<f32, rmem, align<16>, "4:1">
!int_tuple_2 = !cute.int_tuple<"?{div=1024}">
!source = !cute.memref<f32, gmem, align<16>, "(4,1):(1,1024)">
!memref_5 = !cute.memref<f32, rmem, align<16>, "(4,1):(1,4)">
!values_2 = !cute.memref<f32, rmem, "1:0">
!table = !cute.memref<f32, smem, "8:1">
!x_2 = !cute.memref<f32, gmem, align<16>, "(?,?{div=4}):(?{div=4},1)">
!layout_3 = !cute.layout<"(?,?{div=4}):(?{div=4},1)">
!memref_6 = !cute.memref<f32, gmem, align<16>, "(?{div=4}):(1)">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // Reduce each row of this block.
    gpu.func @sum(%x: !x, %y: !y) kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 4 : i32} {
      %c4_i32 = arith.constant 4 : i32
      %c0_i32 = arith.constant 0 : i32
      %c15_i32 = arith.constant 15 : i32
      %c2_i32 = arith.constant 2 : i32
      %cst = arith.constant 0.000000e+00 : f32
      %c1_i32 = arith.constant 1 : i32
      %c10_i32 = arith.constant 10 : i32
      %c4096_i32 = arith.constant 4096 : i32
      %0 = cute.static : !layout
      %1 = cute.static : !cute.layout<"(4,4):(1,4)">
      %2 = cute.atom() : !universal_copy
      %3 = cute.static : !cute.layout<"4:1">
      %4 = cute.static : !cute.int_tuple<"4">
      %5 = cute.static : !cute.int_tuple<"8">
      %6 = cute.static : !cute.int_tuple<"12">
      %c1024_i32 = arith.constant 1024 : i32
      %c256_i32 = arith.constant 256 : i32
      %7 = cute.static : !layout_2
      %8 = cute.static : !cute.layout<"(4,1):(1,4)">
      %9 = cute.static : !cute.coord<"0">
      %c16_i32 = arith.constant 16 : i32
      %c8_i32 = arith.constant 8 : i32
      %c5_i32 = arith.constant 5 : i32
      %c7_i32 = arith.constant 7 : i32
      %10 = cute.get_layout(%x) : !x
      %rows:3 = cute.get_scalars<{only_dynamic}> (%10) : !cute.layout<"(?,?):(?,1)">
      %i = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %source = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %11 = cute_nvgpu.arch.lane_id() : () -> i32
      // This thread's first element in a row, and in the part of a row that the block has.
      %12 = arith.muli %i, %c4_i32 : i32
      %13 = arith.muli %i, %c4_i32 : i32
      %14 = cute.make_coord(%source) : (i32) -> !cute.coord<"(?,_)">
      %15 = cute.slice(%x, %14) : !x, !cute.coord<"(?,_)">
      %16 = cute.get_iter(%15) : !y
      %17 = builtin.unrealized_conversion_cast %16 : !cute.ptr<f32, gmem> to !llvm.ptr<1>
      %18 = llvm.ptrtoint %17 : !llvm.ptr<1> to i64
      %address = arith.trunci %18 : i64 to i32
      %19 = arith.subi %c0_i32, %address : i32
      %20 = arith.andi %19, %c15_i32 : i32
      %21 = arith.shrui %20, %c2_i32 : i32
      %22 = arith.minui %21, %rows#1 : i32
      %23 = arith.subi %rows#1, %22 : i32
      %vectors = arith.shrsi %23, %c2_i32 : i32
      %24 = arith.subi %rows#1, %22 : i32
      %25 = arith.muli %vectors, %c4_i32 : i32
      %after = arith.subi %24, %25 : i32
      // The first threads have the elements before the first vector, the next ones those after the last vector.
      %26 = arith.cmpi ult, %i, %c4_i32 : i32
      %27 = arith.subi %rows#1, %after : i32
      %28 = arith.addi %27, %i : i32
      %29 = arith.subi %28, %c4_i32 : i32
      %column = arith.select %26, %i, %29 : i32
      %30 = arith.cmpi ult, %i, %c4_i32 : i32
      %31 = arith.cmpi ult, %i, %22 : i32
      %32 = arith.subi %i, %c4_i32 : i32
      %33 = arith.cmpi slt, %32, %after : i32
      %34 = arith.select %30, %31, %33 : i1
      // issue all loads before any row is processed
      %35 = vector.broadcast %cst : f32 to vector<4xf32>
      %36 = cute.make_coord(%source) : (i32) -> !cute.coord<"(?,_)">
      %37 = cute.slice(%x, %36) : !x, !cute.coord<"(?,_)">
      %start = cute.get_iter(%37) : !y
      %38 = cute.make_int_tuple(%22) : (i32) -> !cute.int_tuple<"?">
      %39 = cute.add_offset(%start, %38) : (!cute.ptr<f32, gmem>, !cute.int_tuple<"?">) -> !cute.ptr<f32, gmem>
      %40 = cute.assume(%39) : (!cute.ptr<f32, gmem>) -> !begin
      %41 = cute.assume(%12) : (i32) -> !cute.i32<divby 4>
      %42 = cute.make_int_tuple(%41) : (!cute.i32<divby 4>) -> !cute.int_tuple<"?{div=4}">
      %begin = cute.add_offset(%40, %42) : (!begin, !cute.int_tuple<"?{div=4}">) -> !begin
      // The last iteration is never empty, so that a short row needs no loop.
      %43 = arith.subi %vectors, %c1_i32 : i32
      %44 = arith.maxsi %43, %c0_i32 : i32
      %rounds = arith.shrui %44, %c10_i32 : i32
      %45 = scf.for %i_3 = %c0_i32 to %rounds step %c1_i32 iter_args(%arg0 = %35) -> (vector<4xf32>) : i32 {
        %values_4 = cute.memref.alloca() : !values
        %82 = cute.get_iter(%values_4) : !values
        %83 = cute.get_iter(%values_4) : !values
        %84 = cute.get_iter(%values_4) : !values
        %85 = cute.get_iter(%values_4) : !values
        %86 = cute.get_iter(%values_4) : !values
        %87 = arith.muli %i_3, %c4096_i32 : i32
        %88 = cute.assume(%87) : (i32) -> !cute.i32<divby 4096>
        %89 = cute.make_int_tuple(%88) : (!cute.i32<divby 4096>) -> !int_tuple
        %90 = cute.add_offset(%begin, %89) : (!begin, !int_tuple) -> !begin
        %91 = cute.make_view(%90, %0) : !memref
        %92 = cute.make_view(%86, %1) : !memref_2
        cute.copy(%2, %91, %92) : (!universal_copy, !memref, !memref_2) -> ()
        %93 = cute.make_view(%85, %3) : !memref_3
        %94 = cute.memref.load_vec %93 : !memref_3
        %95 = arith.addf %arg0, %94 fastmath<contract> : vector<4xf32>
        %96 = cute.add_offset(%84, %4) : (!ptr, !cute.int_tuple<"4">) -> !ptr_2
        %97 = cute.make_view(%96, %3) : !memref_4
        %98 = cute.memref.load_vec %97 : !memref_4
        %99 = arith.addf %95, %98 fastmath<contract> : vector<4xf32>
        %100 = cute.add_offset(%83, %5) : (!ptr, !cute.int_tuple<"8">) -> !ptr
        %101 = cute.make_view(%100, %3) : !memref_3
        %102 = cute.memref.load_vec %101 : !memref_3
        %103 = arith.addf %99, %102 fastmath<contract> : vector<4xf32>
        %104 = cute.add_offset(%82, %6) : (!ptr, !cute.int_tuple<"12">) -> !ptr_2
        %105 = cute.make_view(%104, %3) : !memref_4
        %106 = cute.memref.load_vec %105 : !memref_4
        %107 = arith.addf %103, %106 fastmath<contract> : vector<4xf32>
        scf.yield %107 : vector<4xf32>
      }
      %values = cute.memref.alloca() : !values
      %46 = cute.get_iter(%values) : !values
      %47 = cute.get_iter(%values) : !values
      %48 = cute.get_iter(%values) : !values
      cute.fill(%values, %cst) : (!values, f32) -> ()
      %first = arith.muli %rounds, %c1024_i32 : i32
      scf.for %i_3 = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
        %82 = arith.muli %i_3, %c256_i32 : i32
        %83 = arith.addi %first, %82 : i32
        %84 = arith.addi %83, %i : i32
        %85 = arith.cmpi slt, %84, %vectors : i32
        scf.if %85 {
          %86 = arith.muli %first, %c4_i32 : i32
          %87 = cute.assume(%86) : (i32) -> !cute.i32<divby 4096>
          %88 = cute.make_int_tuple(%87) : (!cute.i32<divby 4096>) -> !int_tuple
          %89 = cute.add_offset(%begin, %88) : (!begin, !int_tuple) -> !begin
          %90 = arith.muli %i_3, %c1024_i32 : i32
          %91 = cute.assume(%90) : (i32) -> !cute.i32<divby 1024>
          %92 = cute.make_int_tuple(%91) : (!cute.i32<divby 1024>) -> !int_tuple_2
          %93 = cute.add_offset(%89, %92) : (!begin, !int_tuple_2) -> !begin
          %source_4 = cute.make_view(%93, %7) : !source
          %94 = arith.muli %i_3, %c4_i32 : i32
          %95 = cute.assume(%94) : (i32) -> !cute.i32<divby 4>
          %96 = cute.make_int_tuple(%95) : (!cute.i32<divby 4>) -> !cute.int_tuple<"?{div=4}">
          %97 = cute.add_offset(%48, %96) : (!ptr, !cute.int_tuple<"?{div=4}">) -> !ptr_2
          %98 = cute.make_view(%97, %8) : !memref_5
          cute.copy(%2, %source_4, %98) : (!universal_copy, !source, !memref_5) -> ()
        }
      }
      %values_0 = cute.memref.alloca() : !values_2
      cute.fill(%values_0, %cst) : (!values_2, f32) -> ()
      scf.if %34 {
        %82 = cute.make_coord(%source, %column) : (i32, i32) -> !cute.coord<"(?,?)">
        %83 = cute.memref.load(%x, %82) : (!x, !cute.coord<"(?,?)">) -> f32
        cute.memref.store(%values_0, %9, %83) : (!values_2, !cute.coord<"0">, f32) -> ()
      }
      %49 = arith.muli %rounds, %c1024_i32 : i32
      %50 = scf.for %i_3 = %c0_i32 to %c4_i32 step %c1_i32 iter_args(%arg0 = %45) -> (vector<4xf32>) : i32 {
        %82 = arith.muli %i_3, %c256_i32 : i32
        %83 = arith.addi %49, %82 : i32
        %84 = arith.addi %83, %i : i32
        %85 = arith.cmpi slt, %84, %vectors : i32
        %86 = scf.if %85 -> (vector<4xf32>) {
          %87 = arith.muli %i_3, %c4_i32 : i32
          %88 = cute.assume(%87) : (i32) -> !cute.i32<divby 4>
          %89 = cute.make_int_tuple(%88) : (!cute.i32<divby 4>) -> !cute.int_tuple<"?{div=4}">
          %90 = cute.add_offset(%46, %89) : (!ptr, !cute.int_tuple<"?{div=4}">) -> !ptr_2
          %91 = cute.make_view(%90, %3) : !memref_4
          %92 = cute.get_iter(%91) : !memref_4
          %93 = cute.make_view(%92, %3) : !memref_4
          %94 = cute.memref.load_vec %93 : !memref_4
          %95 = arith.addf %arg0, %94 fastmath<contract> : vector<4xf32>
          scf.yield %95 : vector<4xf32>
        } else {
          scf.yield %arg0 : vector<4xf32>
        }
        scf.yield %86 : vector<4xf32>
      }
      %51 = cute.memref.load(%values_0, %9) : (!values_2, !cute.coord<"0">) -> f32
      %52 = arith.addf %cst, %51 fastmath<contract> : f32
      %53 = vector.shuffle %50, %50 [0, 2] : vector<4xf32>, vector<4xf32>
      %54 = vector.shuffle %50, %50 [1, 3] : vector<4xf32>, vector<4xf32>
      %55 = arith.addf %53, %54 fastmath<contract> : vector<2xf32>
      %56 = vector.shuffle %55, %55 [0] : vector<2xf32>, vector<2xf32>
      %57 = vector.shuffle %55, %55 [1] : vector<2xf32>, vector<2xf32>
      %58 = arith.addf %56, %57 fastmath<contract> : vector<1xf32>
      %59 = vector.extract %58[0] : f32 from vector<1xf32>
      %60 = arith.addf %59, %52 fastmath<contract> : f32
      %61 = cute_nvgpu.arch.shfl_sync(%60, %c16_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %62 = arith.addf %60, %61 fastmath<contract> : f32
      %63 = cute_nvgpu.arch.shfl_sync(%62, %c8_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %64 = arith.addf %62, %63 fastmath<contract> : f32
      %65 = cute_nvgpu.arch.shfl_sync(%64, %c4_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %66 = arith.addf %64, %65 fastmath<contract> : f32
      %67 = cute_nvgpu.arch.shfl_sync(%66, %c2_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %68 = arith.addf %66, %67 fastmath<contract> : f32
      %69 = cute_nvgpu.arch.shfl_sync(%68, %c1_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %x_1 = arith.addf %68, %69 fastmath<contract> : f32
      %70 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %71 = arith.shrui %70, %c5_i32 : i32
      %warp = cute_nvgpu.arch.shfl_sync(%71, %c0_i32) {mode = "idx", width = 32 : i32} : (i32, i32) -> i32
      // Each warp writes its results to shared memory, and each lane reads those of one warp.
      %table = cute.memref.alloc_smem() : !table
      %72 = arith.cmpi eq, %11, %c0_i32 : i32
      scf.if %72 {
        %82 = cute.make_coord(%warp) : (i32) -> !cute.coord<"?">
        cute.memref.store(%table, %82, %x_1) : (!table, !cute.coord<"?">, f32) -> ()
      }
      cute_nvgpu.arch.barrier() : () -> ()
      %column_2 = arith.andi %11, %c7_i32 : i32
      %73 = cute.make_coord(%column_2) : (i32) -> !cute.coord<"?">
      %74 = cute.memref.load(%table, %73) : (!table, !cute.coord<"?">) -> f32
      %75 = cute_nvgpu.arch.shfl_sync(%74, %c4_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %76 = arith.addf %74, %75 fastmath<contract> : f32
      %77 = cute_nvgpu.arch.shfl_sync(%76, %c2_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %78 = arith.addf %76, %77 fastmath<contract> : f32
      %79 = cute_nvgpu.arch.shfl_sync(%78, %c1_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %80 = arith.addf %78, %79 fastmath<contract> : f32
      %81 = arith.cmpi eq, %i, %c0_i32 : i32
      scf.if %81 {
        %82 = cute.make_coord(%source) : (i32) -> !cute.coord<"?">
        cute.memref.store(%y, %82, %80) : (!y, !cute.coord<"?">, f32) -> ()
      }
      gpu.return
    }
    // Reduce each row of this block.
    gpu.func @sum_v(%x: !x_2, %y: !y) kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 4 : i32} {
      %c4_i32 = arith.constant 4 : i32
      %c2_i32 = arith.constant 2 : i32
      %cst = arith.constant 0.000000e+00 : f32
      %c1_i32 = arith.constant 1 : i32
      %c0_i32 = arith.constant 0 : i32
      %c10_i32 = arith.constant 10 : i32
      %c4096_i32 = arith.constant 4096 : i32
      %0 = cute.static : !layout
      %1 = cute.static : !cute.layout<"(4,4):(1,4)">
      %2 = cute.atom() : !universal_copy
      %3 = cute.static : !cute.layout<"4:1">
      %4 = cute.static : !cute.int_tuple<"4">
      %5 = cute.static : !cute.int_tuple<"8">
      %6 = cute.static : !cute.int_tuple<"12">
      %c1024_i32 = arith.constant 1024 : i32
      %c256_i32 = arith.constant 256 : i32
      %7 = cute.static : !layout_2
      %8 = cute.static : !cute.layout<"(4,1):(1,4)">
      %c16_i32 = arith.constant 16 : i32
      %c8_i32 = arith.constant 8 : i32
      %c5_i32 = arith.constant 5 : i32
      %c7_i32 = arith.constant 7 : i32
      %9 = cute.get_layout(%x) : !x_2
      %rows:3 = cute.get_scalars<{only_dynamic}> (%9) : !layout_3
      %10 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %source = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %11 = cute_nvgpu.arch.lane_id() : () -> i32
      // This thread's first element in a row, and in the part of a row that the block has.
      %12 = arith.muli %10, %c4_i32 : i32
      %13 = arith.muli %10, %c4_i32 : i32
      %14 = arith.shrui %rows#1, %c2_i32 : i32
      // issue all loads before any row is processed
      %15 = vector.broadcast %cst : f32 to vector<4xf32>
      %16 = cute.make_coord(%source) : (i32) -> !cute.coord<"(?,_)">
      %17 = cute.slice(%x, %16) : !x_2, !cute.coord<"(?,_)">
      %start = cute.get_iter(%17) : !memref_6
      %18 = cute.assume(%12) : (i32) -> !cute.i32<divby 4>
      %19 = cute.make_int_tuple(%18) : (!cute.i32<divby 4>) -> !cute.int_tuple<"?{div=4}">
      %begin = cute.add_offset(%start, %19) : (!begin, !cute.int_tuple<"?{div=4}">) -> !begin
      // The last iteration is never empty, so that a short row needs no loop.
      %20 = arith.subi %14, %c1_i32 : i32
      %21 = arith.maxsi %20, %c0_i32 : i32
      %rounds = arith.shrui %21, %c10_i32 : i32
      %22 = scf.for %i = %c0_i32 to %rounds step %c1_i32 iter_args(%arg0 = %15) -> (vector<4xf32>) : i32 {
        %values_1 = cute.memref.alloca() : !values
        %57 = cute.get_iter(%values_1) : !values
        %58 = cute.get_iter(%values_1) : !values
        %59 = cute.get_iter(%values_1) : !values
        %60 = cute.get_iter(%values_1) : !values
        %61 = cute.get_iter(%values_1) : !values
        %62 = arith.muli %i, %c4096_i32 : i32
        %63 = cute.assume(%62) : (i32) -> !cute.i32<divby 4096>
        %64 = cute.make_int_tuple(%63) : (!cute.i32<divby 4096>) -> !int_tuple
        %65 = cute.add_offset(%begin, %64) : (!begin, !int_tuple) -> !begin
        %66 = cute.make_view(%65, %0) : !memref
        %67 = cute.make_view(%61, %1) : !memref_2
        cute.copy(%2, %66, %67) : (!universal_copy, !memref, !memref_2) -> ()
        %68 = cute.make_view(%60, %3) : !memref_3
        %69 = cute.memref.load_vec %68 : !memref_3
        %70 = arith.addf %arg0, %69 fastmath<contract> : vector<4xf32>
        %71 = cute.add_offset(%59, %4) : (!ptr, !cute.int_tuple<"4">) -> !ptr_2
        %72 = cute.make_view(%71, %3) : !memref_4
        %73 = cute.memref.load_vec %72 : !memref_4
        %74 = arith.addf %70, %73 fastmath<contract> : vector<4xf32>
        %75 = cute.add_offset(%58, %5) : (!ptr, !cute.int_tuple<"8">) -> !ptr
        %76 = cute.make_view(%75, %3) : !memref_3
        %77 = cute.memref.load_vec %76 : !memref_3
        %78 = arith.addf %74, %77 fastmath<contract> : vector<4xf32>
        %79 = cute.add_offset(%57, %6) : (!ptr, !cute.int_tuple<"12">) -> !ptr_2
        %80 = cute.make_view(%79, %3) : !memref_4
        %81 = cute.memref.load_vec %80 : !memref_4
        %82 = arith.addf %78, %81 fastmath<contract> : vector<4xf32>
        scf.yield %82 : vector<4xf32>
      }
      %values = cute.memref.alloca() : !values
      %23 = cute.get_iter(%values) : !values
      %24 = cute.get_iter(%values) : !values
      %25 = cute.get_iter(%values) : !values
      cute.fill(%values, %cst) : (!values, f32) -> ()
      %first = arith.muli %rounds, %c1024_i32 : i32
      scf.for %i = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
        %57 = arith.muli %i, %c256_i32 : i32
        %58 = arith.addi %first, %57 : i32
        %59 = arith.addi %58, %10 : i32
        %60 = arith.cmpi ult, %59, %14 : i32
        scf.if %60 {
          %61 = arith.muli %first, %c4_i32 : i32
          %62 = cute.assume(%61) : (i32) -> !cute.i32<divby 4096>
          %63 = cute.make_int_tuple(%62) : (!cute.i32<divby 4096>) -> !int_tuple
          %64 = cute.add_offset(%begin, %63) : (!begin, !int_tuple) -> !begin
          %65 = arith.muli %i, %c1024_i32 : i32
          %66 = cute.assume(%65) : (i32) -> !cute.i32<divby 1024>
          %67 = cute.make_int_tuple(%66) : (!cute.i32<divby 1024>) -> !int_tuple_2
          %68 = cute.add_offset(%64, %67) : (!begin, !int_tuple_2) -> !begin
          %source_1 = cute.make_view(%68, %7) : !source
          %69 = arith.muli %i, %c4_i32 : i32
          %70 = cute.assume(%69) : (i32) -> !cute.i32<divby 4>
          %71 = cute.make_int_tuple(%70) : (!cute.i32<divby 4>) -> !cute.int_tuple<"?{div=4}">
          %72 = cute.add_offset(%25, %71) : (!ptr, !cute.int_tuple<"?{div=4}">) -> !ptr_2
          %73 = cute.make_view(%72, %8) : !memref_5
          cute.copy(%2, %source_1, %73) : (!universal_copy, !source, !memref_5) -> ()
        }
      }
      %26 = arith.muli %rounds, %c1024_i32 : i32
      %27 = scf.for %i = %c0_i32 to %c4_i32 step %c1_i32 iter_args(%arg0 = %22) -> (vector<4xf32>) : i32 {
        %57 = arith.muli %i, %c256_i32 : i32
        %58 = arith.addi %26, %57 : i32
        %59 = arith.addi %58, %10 : i32
        %60 = arith.cmpi ult, %59, %14 : i32
        %61 = scf.if %60 -> (vector<4xf32>) {
          %62 = arith.muli %i, %c4_i32 : i32
          %63 = cute.assume(%62) : (i32) -> !cute.i32<divby 4>
          %64 = cute.make_int_tuple(%63) : (!cute.i32<divby 4>) -> !cute.int_tuple<"?{div=4}">
          %65 = cute.add_offset(%23, %64) : (!ptr, !cute.int_tuple<"?{div=4}">) -> !ptr_2
          %66 = cute.make_view(%65, %3) : !memref_4
          %67 = cute.get_iter(%66) : !memref_4
          %68 = cute.make_view(%67, %3) : !memref_4
          %69 = cute.memref.load_vec %68 : !memref_4
          %70 = arith.addf %arg0, %69 fastmath<contract> : vector<4xf32>
          scf.yield %70 : vector<4xf32>
        } else {
          scf.yield %arg0 : vector<4xf32>
        }
        scf.yield %61 : vector<4xf32>
      }
      %28 = vector.shuffle %27, %27 [0, 2] : vector<4xf32>, vector<4xf32>
      %29 = vector.shuffle %27, %27 [1, 3] : vector<4xf32>, vector<4xf32>
      %30 = arith.addf %28, %29 fastmath<contract> : vector<2xf32>
      %31 = vector.shuffle %30, %30 [0] : vector<2xf32>, vector<2xf32>
      %32 = vector.shuffle %30, %30 [1] : vector<2xf32>, vector<2xf32>
      %33 = arith.addf %31, %32 fastmath<contract> : vector<1xf32>
      %34 = vector.extract %33[0] : f32 from vector<1xf32>
      %35 = arith.addf %34, %cst fastmath<contract> : f32
      %36 = cute_nvgpu.arch.shfl_sync(%35, %c16_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %37 = arith.addf %35, %36 fastmath<contract> : f32
      %38 = cute_nvgpu.arch.shfl_sync(%37, %c8_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %39 = arith.addf %37, %38 fastmath<contract> : f32
      %40 = cute_nvgpu.arch.shfl_sync(%39, %c4_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %41 = arith.addf %39, %40 fastmath<contract> : f32
      %42 = cute_nvgpu.arch.shfl_sync(%41, %c2_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %43 = arith.addf %41, %42 fastmath<contract> : f32
      %44 = cute_nvgpu.arch.shfl_sync(%43, %c1_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %x_0 = arith.addf %43, %44 fastmath<contract> : f32
      %45 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %46 = arith.shrui %45, %c5_i32 : i32
      %warp = cute_nvgpu.arch.shfl_sync(%46, %c0_i32) {mode = "idx", width = 32 : i32} : (i32, i32) -> i32
      // Each warp writes its results to shared memory, and each lane reads those of one warp.
      %table = cute.memref.alloc_smem() : !table
      %47 = arith.cmpi eq, %11, %c0_i32 : i32
      scf.if %47 {
        %57 = cute.make_coord(%warp) : (i32) -> !cute.coord<"?">
        cute.memref.store(%table, %57, %x_0) : (!table, !cute.coord<"?">, f32) -> ()
      }
      cute_nvgpu.arch.barrier() : () -> ()
      %column = arith.andi %11, %c7_i32 : i32
      %48 = cute.make_coord(%column) : (i32) -> !cute.coord<"?">
      %49 = cute.memref.load(%table, %48) : (!table, !cute.coord<"?">) -> f32
      %50 = cute_nvgpu.arch.shfl_sync(%49, %c4_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %51 = arith.addf %49, %50 fastmath<contract> : f32
      %52 = cute_nvgpu.arch.shfl_sync(%51, %c2_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %53 = arith.addf %51, %52 fastmath<contract> : f32
      %54 = cute_nvgpu.arch.shfl_sync(%53, %c1_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %55 = arith.addf %53, %54 fastmath<contract> : f32
      %56 = arith.cmpi eq, %10, %c0_i32 : i32
      scf.if %56 {
        %57 = cute.make_coord(%source) : (i32) -> !cute.coord<"?">
        cute.memref.store(%y, %57, %55) : (!y, !cute.coord<"?">, f32) -> ()
      }
      gpu.return
    }
  }
  func.func @launch(%x: !x, %y: !y) {
    %0 = cute.static : !cute.int_tuple<"1">
    %c1_i32 = arith.constant 1 : i32
    %c256_i32 = arith.constant 256 : i32
    %1 = cute.get_layout(%y) : !y
    %2 = cute.get_scalars<{only_dynamic}> (%1) : !cute.layout<"(?):(1)">
    %3 = cute.get_layout(%x) : !x
    %rows:3 = cute.get_scalars<{only_dynamic}> (%3) : !cute.layout<"(?,?):(?,1)">
    %4 = arith.cmpi eq, %2, %rows#0 : i32
    cf.assert %4, "y must have as many elements as x has rows"
    %5 = cute.make_int_tuple(%rows#0) : (i32) -> !cute.int_tuple<"?">
    %6 = cute.ceil_div(%5, %0) : (!cute.int_tuple<"?">, !cute.int_tuple<"1">) -> !cute.int_tuple<"?">
    %7 = cute.get_scalars<{only_dynamic}> (%6) : !cute.int_tuple<"?">
    gpu.launch_func @kernels::@sum blocks in (%7, %c1_i32, %c1_i32) threads in (%c256_i32, %c1_i32, %c1_i32) : i32 args(%x : !x, %y : !y) {cute.variants = [@kernels::@sum_v]}
    return
  }
}
