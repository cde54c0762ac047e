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
!partials = !cute.memref<f32, smem, "8:1">
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
      %c10_i32 = arith.constant 10 : i32
      %c4096_i32 = arith.constant 4096 : i32
      %0 = cute.static : !layout
      %1 = cute.static : !cute.layout<"(4,4):(1,4)">
      %2 = cute.atom() : !universal_copy
      %3 = cute.static : !cute.layout<"4:1">
      %4 = cute.static : !cute.int_tuple<"4">
      %5 = cute.static : !cute.int_tuple<"8">
      %6 = cute.static : !cute.int_tuple<"12">
      %c1_i32 = arith.constant 1 : i32
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
      %rounds = arith.shrsi %vectors, %c10_i32 : i32
      %42 = scf.for %i_3 = %c0_i32 to %rounds step %c1_i32 iter_args(%arg0 = %14) -> (vector<4xf32>) : i32 {
        %values_4 = cute.memref.alloca() : !values
        %93 = cute.get_iter(%values_4) : !values
        %94 = cute.get_iter(%values_4) : !values
        %95 = cute.get_iter(%values_4) : !values
        %96 = cute.get_iter(%values_4) : !values
        %97 = cute.get_iter(%values_4) : !values
        %98 = arith.muli %i_3, %c4096_i32 : i32
        %99 = cute.assume(%98) : (i32) -> !cute.i32<divby 4096>
        %100 = cute.make_int_tuple(%99) : (!cute.i32<divby 4096>) -> !int_tuple
        %101 = cute.add_offset(%begin, %100) : (!begin, !int_tuple) -> !begin
        %102 = cute.make_view(%101, %0) : !memref
        %103 = cute.make_view(%97, %1) : !memref_2
        cute.copy(%2, %102, %103) : (!universal_copy, !memref, !memref_2) -> ()
        %104 = cute.make_view(%96, %3) : !memref_3
        %105 = cute.memref.load_vec %104 : !memref_3
        %106 = arith.addf %arg0, %105 fastmath<contract> : vector<4xf32>
        %107 = cute.add_offset(%95, %4) : (!ptr, !cute.int_tuple<"4">) -> !ptr_2
        %108 = cute.make_view(%107, %3) : !memref_4
        %109 = cute.memref.load_vec %108 : !memref_4
        %110 = arith.addf %106, %109 fastmath<contract> : vector<4xf32>
        %111 = cute.add_offset(%94, %5) : (!ptr, !cute.int_tuple<"8">) -> !ptr
        %112 = cute.make_view(%111, %3) : !memref_3
        %113 = cute.memref.load_vec %112 : !memref_3
        %114 = arith.addf %110, %113 fastmath<contract> : vector<4xf32>
        %115 = cute.add_offset(%93, %6) : (!ptr, !cute.int_tuple<"12">) -> !ptr_2
        %116 = cute.make_view(%115, %3) : !memref_4
        %117 = cute.memref.load_vec %116 : !memref_4
        %118 = arith.addf %114, %117 fastmath<contract> : vector<4xf32>
        scf.yield %118 : vector<4xf32>
      }
      %values = cute.memref.alloca() : !values
      %43 = cute.get_iter(%values) : !values
      %44 = cute.get_iter(%values) : !values
      %45 = cute.get_iter(%values) : !values
      %46 = cute.get_iter(%values) : !values
      %47 = cute.get_iter(%values) : !values
      cute.fill(%values, %cst) : (!values, f32) -> ()
      %first = arith.muli %rounds, %c1024_i32 : i32
      scf.for %i_3 = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
        %93 = arith.muli %i_3, %c256_i32 : i32
        %94 = arith.addi %first, %93 : i32
        %95 = arith.addi %94, %i : i32
        %96 = arith.cmpi slt, %95, %vectors : i32
        scf.if %96 {
          %97 = arith.muli %first, %c4_i32 : i32
          %98 = cute.assume(%97) : (i32) -> !cute.i32<divby 4096>
          %99 = cute.make_int_tuple(%98) : (!cute.i32<divby 4096>) -> !int_tuple
          %100 = cute.add_offset(%begin, %99) : (!begin, !int_tuple) -> !begin
          %101 = arith.muli %i_3, %c1024_i32 : i32
          %102 = cute.assume(%101) : (i32) -> !cute.i32<divby 1024>
          %103 = cute.make_int_tuple(%102) : (!cute.i32<divby 1024>) -> !int_tuple_2
          %104 = cute.add_offset(%100, %103) : (!begin, !int_tuple_2) -> !begin
          %source_4 = cute.make_view(%104, %7) : !source
          %105 = arith.muli %i_3, %c4_i32 : i32
          %106 = cute.assume(%105) : (i32) -> !cute.i32<divby 4>
          %107 = cute.make_int_tuple(%106) : (!cute.i32<divby 4>) -> !cute.int_tuple<"?{div=4}">
          %108 = cute.add_offset(%47, %107) : (!ptr, !cute.int_tuple<"?{div=4}">) -> !ptr_2
          %109 = cute.make_view(%108, %8) : !memref_5
          cute.copy(%2, %source_4, %109) : (!universal_copy, !source, !memref_5) -> ()
        }
      }
      %48 = cute.make_view(%46, %3) : !memref_3
      %49 = cute.memref.load_vec %48 : !memref_3
      %50 = arith.addf %42, %49 fastmath<contract> : vector<4xf32>
      %51 = cute.add_offset(%45, %4) : (!ptr, !cute.int_tuple<"4">) -> !ptr_2
      %52 = cute.make_view(%51, %3) : !memref_4
      %53 = cute.memref.load_vec %52 : !memref_4
      %54 = arith.addf %50, %53 fastmath<contract> : vector<4xf32>
      %55 = cute.add_offset(%44, %5) : (!ptr, !cute.int_tuple<"8">) -> !ptr
      %56 = cute.make_view(%55, %3) : !memref_3
      %57 = cute.memref.load_vec %56 : !memref_3
      %58 = arith.addf %54, %57 fastmath<contract> : vector<4xf32>
      %59 = cute.add_offset(%43, %6) : (!ptr, !cute.int_tuple<"12">) -> !ptr_2
      %60 = cute.make_view(%59, %3) : !memref_4
      %61 = cute.memref.load_vec %60 : !memref_4
      %62 = arith.addf %58, %61 fastmath<contract> : vector<4xf32>
      %values_0 = cute.memref.alloca() : !values_2
      cute.fill(%values_0, %cst) : (!values_2, f32) -> ()
      scf.if %34 {
        %93 = cute.make_coord(%source, %column) : (i32, i32) -> !cute.coord<"(?,?)">
        %94 = cute.memref.load(%x, %93) : (!x, !cute.coord<"(?,?)">) -> f32
        cute.memref.store(%values_0, %9, %94) : (!values_2, !cute.coord<"0">, f32) -> ()
      }
      %63 = cute.memref.load(%values_0, %9) : (!values_2, !cute.coord<"0">) -> f32
      %64 = arith.addf %cst, %63 fastmath<contract> : f32
      %65 = vector.shuffle %62, %62 [0, 2] : vector<4xf32>, vector<4xf32>
      %66 = vector.shuffle %62, %62 [1, 3] : vector<4xf32>, vector<4xf32>
      %67 = arith.addf %65, %66 fastmath<contract> : vector<2xf32>
      %68 = vector.shuffle %67, %67 [0] : vector<2xf32>, vector<2xf32>
      %69 = vector.shuffle %67, %67 [1] : vector<2xf32>, vector<2xf32>
      %70 = arith.addf %68, %69 fastmath<contract> : vector<1xf32>
      %71 = vector.extract %70[0] : f32 from vector<1xf32>
      %72 = arith.addf %71, %64 fastmath<contract> : f32
      %73 = cute_nvgpu.arch.shfl_sync(%72, %c16_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %74 = arith.addf %72, %73 fastmath<contract> : f32
      %75 = cute_nvgpu.arch.shfl_sync(%74, %c8_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %76 = arith.addf %74, %75 fastmath<contract> : f32
      %77 = cute_nvgpu.arch.shfl_sync(%76, %c4_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %78 = arith.addf %76, %77 fastmath<contract> : f32
      %79 = cute_nvgpu.arch.shfl_sync(%78, %c2_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %80 = arith.addf %78, %79 fastmath<contract> : f32
      %81 = cute_nvgpu.arch.shfl_sync(%80, %c1_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %x_1 = arith.addf %80, %81 fastmath<contract> : f32
      %82 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %83 = arith.shrui %82, %c5_i32 : i32
      %warp = cute_nvgpu.arch.shfl_sync(%83, %c0_i32) {mode = "idx", width = 32 : i32} : (i32, i32) -> i32
      // The warps put their numbers into shared memory; each lane reads those of one.
      %partials = cute.memref.alloc_smem() : !partials
      %84 = arith.cmpi eq, %11, %c0_i32 : i32
      scf.if %84 {
        %93 = cute.make_coord(%warp) : (i32) -> !cute.coord<"?">
        cute.memref.store(%partials, %93, %x_1) : (!partials, !cute.coord<"?">, f32) -> ()
      }
      cute_nvgpu.arch.barrier() : () -> ()
      %column_2 = arith.andi %11, %c7_i32 : i32
      %85 = cute.make_coord(%column_2) : (i32) -> !cute.coord<"?">
      %86 = cute.memref.load(%partials, %85) : (!partials, !cute.coord<"?">) -> f32
      %87 = cute_nvgpu.arch.shfl_sync(%86, %c4_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %88 = arith.addf %86, %87 fastmath<contract> : f32
      %89 = cute_nvgpu.arch.shfl_sync(%88, %c2_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %90 = arith.addf %88, %89 fastmath<contract> : f32
      %91 = cute_nvgpu.arch.shfl_sync(%90, %c1_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %found = arith.addf %90, %91 fastmath<contract> : f32
      %92 = arith.cmpi eq, %i, %c0_i32 : i32
      scf.if %92 {
        %93 = cute.make_coord(%source) : (i32) -> !cute.coord<"?">
        cute.memref.store(%y, %93, %found) : (!y, !cute.coord<"?">, f32) -> ()
      }
      gpu.return
    }
    // Find the number of each row of this block.
    gpu.func @sum_v(%x: !x_2, %y: !y) kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 4 : i32} {
      %c4_i32 = arith.constant 4 : i32
      %cst = arith.constant 0.000000e+00 : f32
      %c2_i32 = arith.constant 2 : i32
      %c10_i32 = arith.constant 10 : i32
      %c4096_i32 = arith.constant 4096 : i32
      %0 = cute.static : !layout
      %1 = cute.static : !cute.layout<"(4,4):(1,4)">
      %2 = cute.atom() : !universal_copy
      %3 = cute.static : !cute.layout<"4:1">
      %4 = cute.static : !cute.int_tuple<"4">
      %5 = cute.static : !cute.int_tuple<"8">
      %6 = cute.static : !cute.int_tuple<"12">
      %c0_i32 = arith.constant 0 : i32
      %c1_i32 = arith.constant 1 : i32
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
      %rounds = arith.shrui %15, %c10_i32 : i32
      %20 = scf.for %i = %c0_i32 to %rounds step %c1_i32 iter_args(%arg0 = %14) -> (vector<4xf32>) : i32 {
        %values_1 = cute.memref.alloca() : !values
        %69 = cute.get_iter(%values_1) : !values
        %70 = cute.get_iter(%values_1) : !values
        %71 = cute.get_iter(%values_1) : !values
        %72 = cute.get_iter(%values_1) : !values
        %73 = cute.get_iter(%values_1) : !values
        %74 = arith.muli %i, %c4096_i32 : i32
        %75 = cute.assume(%74) : (i32) -> !cute.i32<divby 4096>
        %76 = cute.make_int_tuple(%75) : (!cute.i32<divby 4096>) -> !int_tuple
        %77 = cute.add_offset(%begin, %76) : (!begin, !int_tuple) -> !begin
        %78 = cute.make_view(%77, %0) : !memref
        %79 = cute.make_view(%73, %1) : !memref_2
        cute.copy(%2, %78, %79) : (!universal_copy, !memref, !memref_2) -> ()
        %80 = cute.make_view(%72, %3) : !memref_3
        %81 = cute.memref.load_vec %80 : !memref_3
        %82 = arith.addf %arg0, %81 fastmath<contract> : vector<4xf32>
        %83 = cute.add_offset(%71, %4) : (!ptr, !cute.int_tuple<"4">) -> !ptr_2
        %84 = cute.make_view(%83, %3) : !memref_4
        %85 = cute.memref.load_vec %84 : !memref_4
        %86 = arith.addf %82, %85 fastmath<contract> : vector<4xf32>
        %87 = cute.add_offset(%70, %5) : (!ptr, !cute.int_tuple<"8">) -> !ptr
        %88 = cute.make_view(%87, %3) : !memref_3
        %89 = cute.memref.load_vec %88 : !memref_3
        %90 = arith.addf %86, %89 fastmath<contract> : vector<4xf32>
        %91 = cute.add_offset(%69, %6) : (!ptr, !cute.int_tuple<"12">) -> !ptr_2
        %92 = cute.make_view(%91, %3) : !memref_4
        %93 = cute.memref.load_vec %92 : !memref_4
        %94 = arith.addf %90, %93 fastmath<contract> : vector<4xf32>
        scf.yield %94 : vector<4xf32>
      }
      %values = cute.memref.alloca() : !values
      %21 = cute.get_iter(%values) : !values
      %22 = cute.get_iter(%values) : !values
      %23 = cute.get_iter(%values) : !values
      %24 = cute.get_iter(%values) : !values
      %25 = cute.get_iter(%values) : !values
      cute.fill(%values, %cst) : (!values, f32) -> ()
      %first = arith.muli %rounds, %c1024_i32 : i32
      scf.for %i = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
        %69 = arith.muli %i, %c256_i32 : i32
        %70 = arith.addi %first, %69 : i32
        %71 = arith.addi %70, %10 : i32
        %72 = arith.cmpi ult, %71, %15 : i32
        scf.if %72 {
          %73 = arith.muli %first, %c4_i32 : i32
          %74 = cute.assume(%73) : (i32) -> !cute.i32<divby 4096>
          %75 = cute.make_int_tuple(%74) : (!cute.i32<divby 4096>) -> !int_tuple
          %76 = cute.add_offset(%begin, %75) : (!begin, !int_tuple) -> !begin
          %77 = arith.muli %i, %c1024_i32 : i32
          %78 = cute.assume(%77) : (i32) -> !cute.i32<divby 1024>
          %79 = cute.make_int_tuple(%78) : (!cute.i32<divby 1024>) -> !int_tuple_2
          %80 = cute.add_offset(%76, %79) : (!begin, !int_tuple_2) -> !begin
          %source_1 = cute.make_view(%80, %7) : !source
          %81 = arith.muli %i, %c4_i32 : i32
          %82 = cute.assume(%81) : (i32) -> !cute.i32<divby 4>
          %83 = cute.make_int_tuple(%82) : (!cute.i32<divby 4>) -> !cute.int_tuple<"?{div=4}">
          %84 = cute.add_offset(%25, %83) : (!ptr, !cute.int_tuple<"?{div=4}">) -> !ptr_2
          %85 = cute.make_view(%84, %8) : !memref_5
          cute.copy(%2, %source_1, %85) : (!universal_copy, !source, !memref_5) -> ()
        }
      }
      %26 = cute.make_view(%24, %3) : !memref_3
      %27 = cute.memref.load_vec %26 : !memref_3
      %28 = arith.addf %20, %27 fastmath<contract> : vector<4xf32>
      %29 = cute.add_offset(%23, %4) : (!ptr, !cute.int_tuple<"4">) -> !ptr_2
      %30 = cute.make_view(%29, %3) : !memref_4
      %31 = cute.memref.load_vec %30 : !memref_4
      %32 = arith.addf %28, %31 fastmath<contract> : vector<4xf32>
      %33 = cute.add_offset(%22, %5) : (!ptr, !cute.int_tuple<"8">) -> !ptr
      %34 = cute.make_view(%33, %3) : !memref_3
      %35 = cute.memref.load_vec %34 : !memref_3
      %36 = arith.addf %32, %35 fastmath<contract> : vector<4xf32>
      %37 = cute.add_offset(%21, %6) : (!ptr, !cute.int_tuple<"12">) -> !ptr_2
      %38 = cute.make_view(%37, %3) : !memref_4
      %39 = cute.memref.load_vec %38 : !memref_4
      %40 = arith.addf %36, %39 fastmath<contract> : vector<4xf32>
      %41 = vector.shuffle %40, %40 [0, 2] : vector<4xf32>, vector<4xf32>
      %42 = vector.shuffle %40, %40 [1, 3] : vector<4xf32>, vector<4xf32>
      %43 = arith.addf %41, %42 fastmath<contract> : vector<2xf32>
      %44 = vector.shuffle %43, %43 [0] : vector<2xf32>, vector<2xf32>
      %45 = vector.shuffle %43, %43 [1] : vector<2xf32>, vector<2xf32>
      %46 = arith.addf %44, %45 fastmath<contract> : vector<1xf32>
      %47 = vector.extract %46[0] : f32 from vector<1xf32>
      %48 = arith.addf %47, %cst fastmath<contract> : f32
      %49 = cute_nvgpu.arch.shfl_sync(%48, %c16_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %50 = arith.addf %48, %49 fastmath<contract> : f32
      %51 = cute_nvgpu.arch.shfl_sync(%50, %c8_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %52 = arith.addf %50, %51 fastmath<contract> : f32
      %53 = cute_nvgpu.arch.shfl_sync(%52, %c4_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %54 = arith.addf %52, %53 fastmath<contract> : f32
      %55 = cute_nvgpu.arch.shfl_sync(%54, %c2_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %56 = arith.addf %54, %55 fastmath<contract> : f32
      %57 = cute_nvgpu.arch.shfl_sync(%56, %c1_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %x_0 = arith.addf %56, %57 fastmath<contract> : f32
      %58 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %59 = arith.shrui %58, %c5_i32 : i32
      %warp = cute_nvgpu.arch.shfl_sync(%59, %c0_i32) {mode = "idx", width = 32 : i32} : (i32, i32) -> i32
      // The warps put their numbers into shared memory; each lane reads those of one.
      %partials = cute.memref.alloc_smem() : !partials
      %60 = arith.cmpi eq, %11, %c0_i32 : i32
      scf.if %60 {
        %69 = cute.make_coord(%warp) : (i32) -> !cute.coord<"?">
        cute.memref.store(%partials, %69, %x_0) : (!partials, !cute.coord<"?">, f32) -> ()
      }
      cute_nvgpu.arch.barrier() : () -> ()
      %column = arith.andi %11, %c7_i32 : i32
      %61 = cute.make_coord(%column) : (i32) -> !cute.coord<"?">
      %62 = cute.memref.load(%partials, %61) : (!partials, !cute.coord<"?">) -> f32
      %63 = cute_nvgpu.arch.shfl_sync(%62, %c4_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %64 = arith.addf %62, %63 fastmath<contract> : f32
      %65 = cute_nvgpu.arch.shfl_sync(%64, %c2_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %66 = arith.addf %64, %65 fastmath<contract> : f32
      %67 = cute_nvgpu.arch.shfl_sync(%66, %c1_i32) {mode = "bfly", width = 32 : i32} : (f32, i32) -> f32
      %found = arith.addf %66, %67 fastmath<contract> : f32
      %68 = arith.cmpi eq, %10, %c0_i32 : i32
      scf.if %68 {
        %69 = cute.make_coord(%source) : (i32) -> !cute.coord<"?">
        cute.memref.store(%y, %69, %found) : (!y, !cute.coord<"?">, f32) -> ()
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
