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
    // Find the number of each row of this block.
    gpu.func @sum(%x: !x, %y: !y) kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 4 : i32} {
      %c4_i32 = arith.constant 4 : i32
      %cst = arith.constant 0.000000e+00 : f32
      %c0_i32 = arith.constant 0 : i32
      %c15_i32 = arith.constant 15 : i32
      %c2_i32 = arith.constant 2 : i32
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
      // Where this thread begins in a row, and in the part of a row that the block has.
      %12 = arith.muli %i, %c4_i32 : i32
      %13 = arith.muli %i, %c4_i32 : i32
      %14 = vector.broadcast %cst : f32 to vector<4xf32>
      %15 = cute.make_coord(%source) : (i32) -> !cute.coord<"(?,_)">
      %16 = cute.slice(%x, %15) : !x, !cute.coord<"(?,_)">
      %17 = cute.get_iter(%16) : !y
      %18 = builtin.unrealized_conversion_cast %17 : !cute.ptr<f32, gmem> to !llvm.ptr<1>
      %19 = llvm.ptrtoint %18 : !llvm.ptr<1> to i64
      %address = arith.trunci %19 : i64 to i32
      %20 = arith.subi %c0_i32, %address : i32
      %21 = arith.andi %20, %c15_i32 : i32
      %22 = arith.shrui %21, %c2_i32 : i32
      %head = arith.minui %22, %rows#1 : i32
      %23 = arith.subi %rows#1, %head : i32
      %vectors = arith.shrsi %23, %c2_i32 : i32
      %24 = arith.subi %rows#1, %head : i32
      %25 = arith.muli %vectors, %c4_i32 : i32
      %after = arith.subi %24, %25 : i32
      // The first threads have what is before the first vector, the next ones what is after the last.
      %26 = arith.cmpi ult, %i, %c4_i32 : i32
      %27 = arith.subi %rows#1, %after : i32
      %28 = arith.addi %27, %i : i32
      %29 = arith.subi %28, %c4_i32 : i32
      %column = arith.select %26, %i, %29 : i32
      %30 = arith.cmpi ult, %i, %c4_i32 : i32
      %31 = arith.cmpi ult, %i, %head : i32
      %32 = arith.subi %i, %c4_i32 : i32
      %33 = arith.cmpi slt, %32, %after : i32
      %34 = arith.select %30, %31, %33 : i1
      %35 = cute.make_coord(%source) : (i32) -> !cute.coord<"(?,_)">
      %36 = cute.slice(%x, %35) : !x, !cute.coord<"(?,_)">
      %start = cute.get_iter(%36) : !y
      %37 = cute.make_int_tuple(%head) : (i32) -> !cute.int_tuple<"?">
      %38 = cute.add_offset(%start, %37) : (!cute.ptr<f32, gmem>, !cute.int_tuple<"?">) -> !cute.ptr<f32, gmem>
      %39 = cute.assume(%38) : (!cute.ptr<f32, gmem>) -> !begin
      %40 = cute.assume(%12) : (i32) -> !cute.i32<divby 4>
      %41 = cute.make_int_tuple(%40) : (!cute.i32<divby 4>) -> !cute.int_tuple<"?{div=4}">
      %begin = cute.add_offset(%39, %41) : (!begin, !cute.int_tuple<"?{div=4}">) -> !begin
      // What is left of a row after whole rounds is never nothing: a row of one round needs no loop.
      %42 = arith.subi %vectors, %c1_i32 : i32
      %43 = arith.maxsi %42, %c0_i32 : i32
      %rounds = arith.shrui %43, %c10_i32 : i32
      %44 = scf.for %i_4 = %c0_i32 to %rounds step %c1_i32 iter_args(%arg0 = %14) -> (vector<4xf32>) : i32 {
        %values_5 = cute.memref.alloca() : !values
        %79 = cute.get_iter(%values_5) : !values
        %80 = cute.get_iter(%values_5) : !values
        %81 = cute.get_iter(%values_5) : !values
        %82 = cute.get_iter(%values_5) : !values
        %83 = cute.get_iter(%values_5) : !values
        %84 = arith.muli %i_4, %c4096_i32 : i32
        %85 = cute.assume(%84) : (i32) -> !cute.i32<divby 4096>
        %86 = cute.make_int_tuple(%85) : (!cute.i32<divby 4096>) -> !int_tuple
        %87 = cute.add_offset(%begin, %86) : (!begin, !int_tuple) -> !begin
        %88 = cute.make_view(%87, %0) : !memref
        %89 = cute.make_view(%83, %1) : !memref_2
        cute.copy(%2, %88, %89) : (!universal_copy, !memref, !memref_2) -> ()
        %90 = cute.make_view(%82, %3) : !memref_3
        %91 = cute.memref.load_vec %90 : !memref_3
        %92 = arith.addf %arg0, %91 fastmath<contract> : vector<4xf32>
        %93 = cute.add_offset(%81, %4) : (!ptr, !cute.int_tuple<"4">) -> !ptr_2
        %94 = cute.make_view(%93, %3) : !memref_4
        %95 = cute.memref.load_vec %94 : !memref_4
        %96 = arith.addf %92, %95 fastmath<contract> : vector<4xf32>
        %97 = cute.add_offset(%80, %5) : (!ptr, !cute.int_tuple<"8">) -> !ptr
        %98 = cute.make_view(%97, %3) : !memref_3
        %99 = cute.memref.load_vec %98 : !memref_3
        %100 = arith.addf %96, %99 fastmath<contract> : vector<4xf32>
        %101 = cute.add_offset(%79, %6) : (!ptr, !cute.int_tuple<"12">) -> !ptr_2
        %102 = cute.make_view(%101, %3) : !memref_4
        %103 = cute.memref.load_vec %102 : !memref_4
        %104 = arith.addf %100, %103 fastmath<contract> : vector<4xf32>
        scf.yield %104 : vector<4xf32>
      }
      %values = cute.memref.alloca() : !values
      %45 = cute.get_iter(%values) : !values
      %46 = cute.get_iter(%values) : !values
      %47 = cute.get_iter(%values) : !values
      cute.fill(%values, %cst) : (!values, f32) -> ()
      %first = arith.muli %rounds, %c1024_i32 : i32
      scf.for %i_4 = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
        %79 = arith.muli %i_4, %c256_i32 : i32
        %80 = arith.addi %first, %79 : i32
        %81 = arith.addi %80, %i : i32
        %82 = arith.cmpi slt, %81, %vectors : i32
        scf.if %82 {
          %83 = arith.muli %first, %c4_i32 : i32
          %84 = cute.assume(%83) : (i32) -> !cute.i32<divby 4096>
          %85 = cute.make_int_tuple(%84) : (!cute.i32<divby 4096>) -> !int_tuple
          %86 = cute.add_offset(%begin, %85) : (!begin, !int_tuple) -> !begin
          %87 = arith.muli %i_4, %c1024_i32 : i32
          %88 = cute.assume(%87) : (i32) -> !cute.i32<divby 1024>
          %89 = cute.make_int_tuple(%88) : (!cute.i32<divby 1024>) -> !int_tuple_2
          %90 = cute.add_offset(%86, %89) : (!begin, !int_tuple_2) -> !begin
          %source_5 = cute.make_view(%90, %7) : !source
          %91 = arith.muli %i_4, %c4_i32 : i32
          %92 = cute.assume(%91) : (i32) -> !cute.i32<divby 4>
          %93 = cute.make_int_tuple(%92) : (!cute.i32<divby 4>) -> !cute.int_tuple<"?{div=4}">
          %94 = cute.add_offset(%47, %93) : (!ptr, !cute.int_tuple<"?{div=4}">) -> !ptr_2
          %95 = cute.make_view(%94, %8) : !memref_5
          cute.copy(%2, %source_5, %95) : (!universal_copy, !source, !memref_5) -> ()
        }
      }
      %values_0 = cute.memref.alloca() : !values_2
      cute.fill(%values_0, %cst) : (!values_2, f32) -> ()
      scf.if %34 {
        %79 = cute.make_coord(%source, %column) : (i32, i32) -> !cute.coord<"(?,?)">
        %80 = cute.memref.load(%x, %79) : (!x, !cute.coord<"(?,?)">) -> f32
        cute.memref.store(%values_0, %9, %80) : (!values_2, !cute.coord<"0">, f32) -> ()
      }
      %first_1 = arith.muli %rounds, %c1024_i32 : i32
      %48 = scf.for %i_4 = %c0_i32 to %c4_i32 step %c1_i32 iter_args(%arg0 = %44) -> (vector<4xf32>) : i32 {
        %79 = arith.muli %i_4, %c256_i32 : i32
        %80 = arith.addi %first_1, %79 : i32
        %81 = arith.cmpi slt, %80, %vectors : i32
        %82 = scf.if %81 -> (vector<4xf32>) {
          %83 = arith.muli %i_4, %c4_i32 : i32
          %84 = cute.assume(%83) : (i32) -> !cute.i32<divby 4>
          %85 = cute.make_int_tuple(%84) : (!cute.i32<divby 4>) -> !cute.int_tuple<"?{div=4}">
          %86 = cute.add_offset(%45, %85) : (!ptr, !cute.int_tuple<"?{div=4}">) -> !ptr_2
          %87 = cute.make_view(%86, %3) : !memref_4
          %88 = cute.get_iter(%87) : !memref_4
          %89 = cute.make_view(%88, %3) : !memref_4
          %90 = cute.memref.load_vec %89 : !memref_4
          %91 = arith.addf %arg0, %90 fastmath<contract> : vector<4xf32>
          scf.yield %91 : vector<4xf32>
        } else {
          scf.yield %arg0 : vector<4xf32>
        }
        scf.yield %82 : vector<4xf32>
      }
      %49 = cute.memref.load(%values_0, %9) : (!values_2, !cute.coord<"0">) -> f32
      %50 = arith.addf %cst, %49 fastmath<contract> : f32
      %51 = vector.shuffle %48, %48 [0, 2] : vector<4xf32>, vector<4xf32>
      %52 = vector.shuffle %48, %48 [1, 3] : vector<4xf32>, vector<4xf32>
      %53 = arith.addf %51, %52 fastmath<contract> : vector<2xf32>
      %54 = vector.shuffle %53, %53 [0] : vector<2xf32>, vector<2xf32>
      %55 = vector.shuffle %53, %53 [1] : vector<2xf32>, vector<2xf32>
      %56 = arith.addf %54, %55 fastmath<contract> : vector<1xf32>
      %57 = vector.extract %56[0] : f32 from vector<1xf32>
      %58 = arith.addf %57, %50 fastmath<contract> : f32
      %59 = cute_nvgpu.arch.shfl_sync(%58, %c16_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %60 = arith.addf %58, %59 fastmath<contract> : f32
      %61 = cute_nvgpu.arch.shfl_sync(%60, %c8_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %62 = arith.addf %60, %61 fastmath<contract> : f32
      %63 = cute_nvgpu.arch.shfl_sync(%62, %c4_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %64 = arith.addf %62, %63 fastmath<contract> : f32
      %65 = cute_nvgpu.arch.shfl_sync(%64, %c2_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %66 = arith.addf %64, %65 fastmath<contract> : f32
      %67 = cute_nvgpu.arch.shfl_sync(%66, %c1_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %x_2 = arith.addf %66, %67 fastmath<contract> : f32
      %68 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %69 = arith.shrui %68, %c5_i32 : i32
      %warp = cute_nvgpu.arch.shfl_sync(%69, %c0_i32) {mode = "idx", width = 32 : i32} : (i32, i32) -> i32
      // The warps put their numbers into shared memory; each lane reads those of one.
      %table = cute.memref.alloc_smem() : !table
      %70 = arith.cmpi eq, %11, %c0_i32 : i32
      scf.if %70 {
        %79 = cute.make_coord(%warp) : (i32) -> !cute.coord<"?">
        cute.memref.store(%table, %79, %x_2) : (!table, !cute.coord<"?">, f32) -> ()
      }
      cute_nvgpu.arch.barrier() : () -> ()
      %column_3 = arith.andi %11, %c7_i32 : i32
      %71 = cute.make_coord(%column_3) : (i32) -> !cute.coord<"?">
      %72 = cute.memref.load(%table, %71) : (!table, !cute.coord<"?">) -> f32
      %73 = cute_nvgpu.arch.shfl_sync(%72, %c4_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %74 = arith.addf %72, %73 fastmath<contract> : f32
      %75 = cute_nvgpu.arch.shfl_sync(%74, %c2_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %76 = arith.addf %74, %75 fastmath<contract> : f32
      %77 = cute_nvgpu.arch.shfl_sync(%76, %c1_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %found = arith.addf %76, %77 fastmath<contract> : f32
      %78 = arith.cmpi eq, %i, %c0_i32 : i32
      scf.if %78 {
        %79 = cute.make_coord(%source) : (i32) -> !cute.coord<"?">
        cute.memref.store(%y, %79, %found) : (!y, !cute.coord<"?">, f32) -> ()
      }
      gpu.return
    }
    // Find the number of each row of this block.
    gpu.func @sum_v(%x: !x_2, %y: !y) kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 4 : i32} {
      %c4_i32 = arith.constant 4 : i32
      %cst = arith.constant 0.000000e+00 : f32
      %c2_i32 = arith.constant 2 : i32
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
      // Where this thread begins in a row, and in the part of a row that the block has.
      %12 = arith.muli %10, %c4_i32 : i32
      %13 = arith.muli %10, %c4_i32 : i32
      %14 = vector.broadcast %cst : f32 to vector<4xf32>
      %15 = arith.shrui %rows#1, %c2_i32 : i32
      %16 = cute.make_coord(%source) : (i32) -> !cute.coord<"(?,_)">
      %17 = cute.slice(%x, %16) : !x_2, !cute.coord<"(?,_)">
      %start = cute.get_iter(%17) : !memref_6
      %18 = cute.assume(%12) : (i32) -> !cute.i32<divby 4>
      %19 = cute.make_int_tuple(%18) : (!cute.i32<divby 4>) -> !cute.int_tuple<"?{div=4}">
      %begin = cute.add_offset(%start, %19) : (!begin, !cute.int_tuple<"?{div=4}">) -> !begin
      // What is left of a row after whole rounds is never nothing: a row of one round needs no loop.
      %20 = arith.subi %15, %c1_i32 : i32
      %21 = arith.maxsi %20, %c0_i32 : i32
      %rounds = arith.shrui %21, %c10_i32 : i32
      %22 = scf.for %i = %c0_i32 to %rounds step %c1_i32 iter_args(%arg0 = %14) -> (vector<4xf32>) : i32 {
        %values_2 = cute.memref.alloca() : !values
        %55 = cute.get_iter(%values_2) : !values
        %56 = cute.get_iter(%values_2) : !values
        %57 = cute.get_iter(%values_2) : !values
        %58 = cute.get_iter(%values_2) : !values
        %59 = cute.get_iter(%values_2) : !values
        %60 = arith.muli %i, %c4096_i32 : i32
        %61 = cute.assume(%60) : (i32) -> !cute.i32<divby 4096>
        %62 = cute.make_int_tuple(%61) : (!cute.i32<divby 4096>) -> !int_tuple
        %63 = cute.add_offset(%begin, %62) : (!begin, !int_tuple) -> !begin
        %64 = cute.make_view(%63, %0) : !memref
        %65 = cute.make_view(%59, %1) : !memref_2
        cute.copy(%2, %64, %65) : (!universal_copy, !memref, !memref_2) -> ()
        %66 = cute.make_view(%58, %3) : !memref_3
        %67 = cute.memref.load_vec %66 : !memref_3
        %68 = arith.addf %arg0, %67 fastmath<contract> : vector<4xf32>
        %69 = cute.add_offset(%57, %4) : (!ptr, !cute.int_tuple<"4">) -> !ptr_2
        %70 = cute.make_view(%69, %3) : !memref_4
        %71 = cute.memref.load_vec %70 : !memref_4
        %72 = arith.addf %68, %71 fastmath<contract> : vector<4xf32>
        %73 = cute.add_offset(%56, %5) : (!ptr, !cute.int_tuple<"8">) -> !ptr
        %74 = cute.make_view(%73, %3) : !memref_3
        %75 = cute.memref.load_vec %74 : !memref_3
        %76 = arith.addf %72, %75 fastmath<contract> : vector<4xf32>
        %77 = cute.add_offset(%55, %6) : (!ptr, !cute.int_tuple<"12">) -> !ptr_2
        %78 = cute.make_view(%77, %3) : !memref_4
        %79 = cute.memref.load_vec %78 : !memref_4
        %80 = arith.addf %76, %79 fastmath<contract> : vector<4xf32>
        scf.yield %80 : vector<4xf32>
      }
      %values = cute.memref.alloca() : !values
      %23 = cute.get_iter(%values) : !values
      %24 = cute.get_iter(%values) : !values
      %25 = cute.get_iter(%values) : !values
      cute.fill(%values, %cst) : (!values, f32) -> ()
      %first = arith.muli %rounds, %c1024_i32 : i32
      scf.for %i = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
        %55 = arith.muli %i, %c256_i32 : i32
        %56 = arith.addi %first, %55 : i32
        %57 = arith.addi %56, %10 : i32
        %58 = arith.cmpi ult, %57, %15 : i32
        scf.if %58 {
          %59 = arith.muli %first, %c4_i32 : i32
          %60 = cute.assume(%59) : (i32) -> !cute.i32<divby 4096>
          %61 = cute.make_int_tuple(%60) : (!cute.i32<divby 4096>) -> !int_tuple
          %62 = cute.add_offset(%begin, %61) : (!begin, !int_tuple) -> !begin
          %63 = arith.muli %i, %c1024_i32 : i32
          %64 = cute.assume(%63) : (i32) -> !cute.i32<divby 1024>
          %65 = cute.make_int_tuple(%64) : (!cute.i32<divby 1024>) -> !int_tuple_2
          %66 = cute.add_offset(%62, %65) : (!begin, !int_tuple_2) -> !begin
          %source_2 = cute.make_view(%66, %7) : !source
          %67 = arith.muli %i, %c4_i32 : i32
          %68 = cute.assume(%67) : (i32) -> !cute.i32<divby 4>
          %69 = cute.make_int_tuple(%68) : (!cute.i32<divby 4>) -> !cute.int_tuple<"?{div=4}">
          %70 = cute.add_offset(%25, %69) : (!ptr, !cute.int_tuple<"?{div=4}">) -> !ptr_2
          %71 = cute.make_view(%70, %8) : !memref_5
          cute.copy(%2, %source_2, %71) : (!universal_copy, !source, !memref_5) -> ()
        }
      }
      %first_0 = arith.muli %rounds, %c1024_i32 : i32
      %26 = scf.for %i = %c0_i32 to %c4_i32 step %c1_i32 iter_args(%arg0 = %22) -> (vector<4xf32>) : i32 {
        %55 = arith.muli %i, %c256_i32 : i32
        %56 = arith.addi %first_0, %55 : i32
        %57 = arith.cmpi ult, %56, %15 : i32
        %58 = scf.if %57 -> (vector<4xf32>) {
          %59 = arith.muli %i, %c4_i32 : i32
          %60 = cute.assume(%59) : (i32) -> !cute.i32<divby 4>
          %61 = cute.make_int_tuple(%60) : (!cute.i32<divby 4>) -> !cute.int_tuple<"?{div=4}">
          %62 = cute.add_offset(%23, %61) : (!ptr, !cute.int_tuple<"?{div=4}">) -> !ptr_2
          %63 = cute.make_view(%62, %3) : !memref_4
          %64 = cute.get_iter(%63) : !memref_4
          %65 = cute.make_view(%64, %3) : !memref_4
          %66 = cute.memref.load_vec %65 : !memref_4
          %67 = arith.addf %arg0, %66 fastmath<contract> : vector<4xf32>
          scf.yield %67 : vector<4xf32>
        } else {
          scf.yield %arg0 : vector<4xf32>
        }
        scf.yield %58 : vector<4xf32>
      }
      %27 = vector.shuffle %26, %26 [0, 2] : vector<4xf32>, vector<4xf32>
      %28 = vector.shuffle %26, %26 [1, 3] : vector<4xf32>, vector<4xf32>
      %29 = arith.addf %27, %28 fastmath<contract> : vector<2xf32>
      %30 = vector.shuffle %29, %29 [0] : vector<2xf32>, vector<2xf32>
      %31 = vector.shuffle %29, %29 [1] : vector<2xf32>, vector<2xf32>
      %32 = arith.addf %30, %31 fastmath<contract> : vector<1xf32>
      %33 = vector.extract %32[0] : f32 from vector<1xf32>
      %34 = arith.addf %33, %cst fastmath<contract> : f32
      %35 = cute_nvgpu.arch.shfl_sync(%34, %c16_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %36 = arith.addf %34, %35 fastmath<contract> : f32
      %37 = cute_nvgpu.arch.shfl_sync(%36, %c8_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %38 = arith.addf %36, %37 fastmath<contract> : f32
      %39 = cute_nvgpu.arch.shfl_sync(%38, %c4_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %40 = arith.addf %38, %39 fastmath<contract> : f32
      %41 = cute_nvgpu.arch.shfl_sync(%40, %c2_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %42 = arith.addf %40, %41 fastmath<contract> : f32
      %43 = cute_nvgpu.arch.shfl_sync(%42, %c1_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %x_1 = arith.addf %42, %43 fastmath<contract> : f32
      %44 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %45 = arith.shrui %44, %c5_i32 : i32
      %warp = cute_nvgpu.arch.shfl_sync(%45, %c0_i32) {mode = "idx", width = 32 : i32} : (i32, i32) -> i32
      // The warps put their numbers into shared memory; each lane reads those of one.
      %table = cute.memref.alloc_smem() : !table
      %46 = arith.cmpi eq, %11, %c0_i32 : i32
      scf.if %46 {
        %55 = cute.make_coord(%warp) : (i32) -> !cute.coord<"?">
        cute.memref.store(%table, %55, %x_1) : (!table, !cute.coord<"?">, f32) -> ()
      }
      cute_nvgpu.arch.barrier() : () -> ()
      %column = arith.andi %11, %c7_i32 : i32
      %47 = cute.make_coord(%column) : (i32) -> !cute.coord<"?">
      %48 = cute.memref.load(%table, %47) : (!table, !cute.coord<"?">) -> f32
      %49 = cute_nvgpu.arch.shfl_sync(%48, %c4_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %50 = arith.addf %48, %49 fastmath<contract> : f32
      %51 = cute_nvgpu.arch.shfl_sync(%50, %c2_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %52 = arith.addf %50, %51 fastmath<contract> : f32
      %53 = cute_nvgpu.arch.shfl_sync(%52, %c1_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %found = arith.addf %52, %53 fastmath<contract> : f32
      %54 = arith.cmpi eq, %10, %c0_i32 : i32
      scf.if %54 {
        %55 = cute.make_coord(%source) : (i32) -> !cute.coord<"?">
        cute.memref.store(%y, %55, %found) : (!y, !cute.coord<"?">, f32) -> ()
      }
      gpu.return
    }
  }
  // Launch as many blocks as the rows need.
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
