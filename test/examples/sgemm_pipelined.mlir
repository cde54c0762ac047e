!loads = !cute_nvgpu.atom.tma_load<f32, box = (16, 128), swizzle = 64, l2 = 256>
!loads_2 = !cute.coord_tensor<"(0,0)", "(?,?{div=4}):(1@1,1@0)">
!loads_3 = !cute_nvgpu.atom.tma_load<f32, box = (128, 16), l2 = 256>
!loads_4 = !cute.coord_tensor<"(0,0)", "(?{div=4},?):(1@0,1@1)">
!mC = !cute.memref<f32, gmem, align<16>, "(?,?{div=4}):(?{div=4},1)">
!layout = !cute.layout<"(?,?{div=4}):(1@1,1@0)">
!universal_fma = !cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f32)>
!tiled_mma = !cute.tiled_mma<!universal_fma, atom_layout_MNK = <"((8,2),(4,2),1):((4,32),(1,64),0)">, permutation_MNK = <"[(8,2,8):(1,64,8);(4,2,4,4):(4,64,1,16);_]">>
!universal_copy = !cute_nvgpu.atom.universal_copy<f32>
!layout_2 = !cute.layout<"(?,?{div=4}):(?{div=4},1)">
!memref = !cute.memref<f32, gmem, align<16>, "(128,128):(?{div=4},1)">
!memref_2 = !cute.memref<f32, gmem, align<16>, "(1,8,(4,4)):(0,?{div=32},(1,16))">
!sums = !cute.memref<f32, rmem, align<32>, "(1,8,(4,4)):(0,1,(8,32))">
!coord_tensor = !cute.coord_tensor<"(0,?{div=128})", "(128,16,?):(1@1,1@0,16@0)">
!coord_tensor_2 = !cute.coord_tensor<"(?{div=128},0)", "(128,16,?):(1@0,1@1,16@1)">
!memref_3 = !cute.memref<f32, smem, align<1024>, S<2,4,3>, "(128,16,4):(16,1,2048)">
!memref_4 = !cute.memref<f32, smem, align<1024>, "(128,16,4):(1,128,2048)">
!full = !cute.memref<i8, smem, align<8>, "32:1">
!coord_tensor_3 = !cute.coord_tensor<"(0,?{div=128})", "(128,16):(1@1,1@0)">
!memref_5 = !cute.memref<f32, smem, align<1024>, S<2,4,3>, "(128,16):(16,1)">
!coord_tensor_4 = !cute.coord_tensor<"(?{div=128},0)", "(128,16):(1@0,1@1)">
!memref_6 = !cute.memref<f32, smem, align<1024>, "(128,16):(1,128)">
!coord_tensor_5 = !cute.coord_tensor<"(16,?{div=128})", "(128,16):(1@1,1@0)">
!coord_tensor_6 = !cute.coord_tensor<"(?{div=128},16)", "(128,16):(1@0,1@1)">
!coord_tensor_7 = !cute.coord_tensor<"(32,?{div=128})", "(128,16):(1@1,1@0)">
!coord_tensor_8 = !cute.coord_tensor<"(?{div=128},32)", "(128,16):(1@0,1@1)">
!tA = !cute.memref<f32, smem, align<64>, S<2,4,3>, "(1,8,16,4):(0,128,1,2048)">
!tB = !cute.memref<f32, smem, align<16>, "(1,(4,4),16,4):(0,(1,16),128,2048)">
!memref_7 = !cute.memref<f32, rmem, align<32>, "(1,8,4):(0,4,1)">
!memref_8 = !cute.memref<f32, rmem, align<32>, "(1,(4,4)):(0,(1,4))">
!memref_9 = !cute.memref<f32, smem, align<64>, S<2,4,3>, "(1,8,16):(0,128,1)">
!source = !cute.memref<f32, smem, align<64>, S<2,4,3>, "(1,8,4):(0,128,1)">
!memref_10 = !cute.memref<f32, smem, align<16>, "(1,(4,4)):(0,(1,16))">
!memref_11 = !cute.memref<f32, rmem, align<32>, "(1,8):(0,4)">
!source_2 = !cute.memref<f32, smem, align<16>, S<2,4,3>, "(1,8,4):(0,128,1)">
!memref_12 = !cute.memref<f32, rmem, "(1,8):(0,4)">
!memref_13 = !cute.memref<f32, rmem, align<8>, "(1,8):(0,4)">
!source_3 = !cute.memref<f32, smem, align<32>, S<2,4,3>, "(1,8,4):(0,128,1)">
!coord_tensor_9 = !cute.coord_tensor<"(?{div=16},?{div=128})", "(128,16):(1@1,1@0)">
!coord_tensor_10 = !cute.coord_tensor<"(?{div=128},?{div=16})", "(128,16):(1@0,1@1)">
!layout_3 = !cute.layout<"(?,?{div=4}):(1@0,1@1)">
!coord_tensor_11 = !cute.coord_tensor<"(0,0)", "(?,?{div=4}):(1@0,1@1)">
!ids = !cute.coord_tensor<"(?{div=128},?{div=128})", "(128,128):(1@0,1@1)">
!int_tuple = !cute.int_tuple<"(?,?{div=4})">
!xC = !cute.coord_tensor<"(?,?{div=4})", "(1,8,(4,4)):(0,8@0,(1@1,16@1))">
!inside = !cute.memref<i1, rmem, align<32>, "(1,8,(4,4)):(0,16,(1,4))">
!mA = !cute.memref<f32, gmem, "(?,?):(?,1)">
!tiled_mma_2 = !cute.tiled_mma<!universal_fma, atom_layout_MNK = <"((4,4),(8,2),1):((8,64),(1,32),0)">, permutation_MNK = <"[(4,4,8):(1,32,4);(8,2,4,2):(4,64,1,32);_]">>
!simt_async_copy = !cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>
!tiled_copy = !cute.tiled_copy<!simt_async_copy, layout_copy_tv = <"((16,16),1):((16,1),16)">, tiler_mn = <"[16:1;16:1]">>
!tiled_copy_2 = !cute.tiled_copy<!simt_async_copy, layout_copy_tv = <"((128,2),1):((1,128),1)">, tiler_mn = <"[128:1;2:1]">>
!layout_4 = !cute.layout<"(?,?):(1@0,1@1)">
!coord_tensor_12 = !cute.coord_tensor<"(0,0)", "(?,?):(1@0,1@1)">
!memref_14 = !cute.memref<f32, gmem, "(?,?):(1,?)">
!memref_15 = !cute.memref<f32, gmem, "(128,128):(?,1)">
!memref_16 = !cute.memref<f32, gmem, "(1,8,(4,2)):(0,?{div=4},(1,32))">
!memref_17 = !cute.memref<f32, rmem, align<32>, "(1,8,(4,2)):(0,1,(8,32))">
!sA = !cute.memref<f32, smem, align<512>, S<2,4,3>, "(128,16,3):(16,1,2048)">
!sB = !cute.memref<f32, smem, align<16>, "(128,16,3):(1,128,2048)">
!memref_18 = !cute.memref<f32, gmem, "(128,16):(?,1)">
!part = !cute.memref<f32, gmem, "((1,1),8,1):((0,0),?{div=16},0)">
!ids_2 = !cute.coord_tensor<"(?,?)", "((1,1),8,1):((0,0),16@0,0)">
!flags = !cute.memref<i1, rmem, align<8>, "(1,8,1):(0,1,8)">
!first = !cute.coord_tensor<"(?,?)", "(8,1):(16@0,0)">
!each = !cute.memref<i1, rmem, align<8>, "(8,1):(1,8)">
!memref_19 = !cute.memref<f32, smem, align<512>, S<2,4,3>, "(128,16):(16,1)">
!memref_20 = !cute.memref<f32, smem, S<2,4,3>, "((1,1),8,1):((0,0),256,0)">
!memref_21 = !cute.memref<f32, gmem, "(128,16):(1,?)">
!part_2 = !cute.memref<f32, gmem, "((1,1),1,8):((0,0),0,?{div=2})">
!ids_3 = !cute.coord_tensor<"(?,?)", "((1,1),1,8):((0,0),0,2@1)">
!flags_2 = !cute.memref<i1, rmem, align<8>, "(1,1,8):(0,1,1)">
!first_2 = !cute.coord_tensor<"(?,?)", "(1,8):(0,2@1)">
!each_2 = !cute.memref<i1, rmem, align<8>, "(1,8):(1,1)">
!memref_22 = !cute.memref<f32, smem, align<16>, "(128,16):(1,128)">
!memref_23 = !cute.memref<f32, smem, "((1,1),1,8):((0,0),0,256)">
!memref_24 = !cute.memref<f32, smem, align<8>, S<2,4,3>, "(128,2):(16,1)">
!blockA = !cute.memref<f32, smem, align<8>, S<2,4,3>, "(1,8,2):(0,64,1)">
!rA = !cute.memref<f32, rmem, align<32>, "(1,8,2):(0,1,8)">
!blockB = !cute.memref<f32, smem, align<16>, "(128,2):(1,128)">
!memref_25 = !cute.memref<f32, smem, align<16>, "(128,1):(1,0)">
!columnB = !cute.memref<f32, smem, align<16>, "(1,(4,2),1):(0,(1,32),0)">
!rB = !cute.memref<f32, rmem, align<32>, "(1,(4,2),1):(0,(1,4),0)">
!memref_26 = !cute.memref<f32, rmem, align<32>, "(1,8):(0,1)">
!memref_27 = !cute.memref<f32, rmem, align<32>, "(1,(4,2)):(0,(1,4))">
!xC_2 = !cute.coord_tensor<"(?,?{div=4})", "(1,8,(4,2)):(0,4@0,(1@1,32@1))">
!inside_2 = !cute.memref<i1, rmem, align<32>, "(1,8,(4,2)):(0,8,(1,4))">
!layout_5 = !cute.layout<"(128,16):(16,1)">
!layout_6 = !cute.layout<"(128,16):(1,128)">
!ptr = !cute.ptr<f32, gmem, align<16>>
!memref_28 = !cute.memref<f32, gmem, align<16>, "(?{div=4},?):(1,?{div=4})">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // Multiply matrices with 16-byte aligned rows: TMA loads tiles, and registers are loaded one step ahead.
    gpu.func @sgemm(%loads: !loads, %loads_0: !loads_2, %loads_1: !loads_3, %loads_2: !loads_4, %mC: !mC) kernel attributes {known_block_size = array<i32: 128, 1, 1>, nvvm.minctasm = 2 : i32} {
      %0 = cute.get_layout(%loads_0) : !loads_2
      %1:2 = cute.get_scalars<{only_dynamic}> (%0) : !layout
      %c127_i32 = arith.constant 127 : i32
      %c7_i32 = arith.constant 7 : i32
      %c8_i32 = arith.constant 8 : i32
      %2 = cute.static : !cute.shape<"(128,128)">
      %3 = cute.atom() : !universal_fma
      %4 = cute.make_tiled_mma(%3) : !tiled_mma
      %c15_i32 = arith.constant 15 : i32
      %c4_i32 = arith.constant 4 : i32
      %5 = cute.static : !cute.shape<"(128,16)">
      %c0_i32 = arith.constant 0 : i32
      %c1_i32 = arith.constant 1 : i32
      %c16384_i32 = arith.constant 16384 : i32
      %6 = cute.static : !cute.coord<"(_,_,0)">
      %7 = cute.static : !cute.int_tuple<"1">
      %8 = cute.static : !cute.coord<"(_,_,1)">
      %9 = cute.static : !cute.int_tuple<"2">
      %10 = cute.static : !cute.coord<"(_,_,2)">
      %11 = cute.static : !cute.coord<"(_,_,_,0)">
      %12 = cute.static : !cute.shape<"(1,8,4)">
      %13 = cute.static : !cute.coord<"(0,0,0)">
      %14 = cute.atom() : !universal_copy
      %15 = cute.static : !cute.coord<"(_,_,0,0)">
      %16 = cute.static : !cute.coord<"(0,0,1)">
      %17 = cute.static : !cute.coord<"(_,_,3)">
      %18 = cute.static : !cute.coord<"(0,0,2)">
      %19 = cute.static : !cute.coord<"(0,0,3)">
      %c3_i32 = arith.constant 3 : i32
      %cst = arith.constant 0.000000e+00 : f32
      %c128_i32 = arith.constant 128 : i32
      %20 = cute.static : !cute.int_tuple<"(0,0)">
      %21 = cute.static : !cute.coord<"16383">
      %22 = cute.get_layout(%mC) : !mC
      %23:3 = cute.get_scalars<{only_dynamic}> (%22) : !layout_2
      %24 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
      %25 = arith.addi %23#0, %c127_i32 : i32
      %tiles_m = arith.shrui %25, %c7_i32 : i32
      %26 = arith.addi %23#1, %c127_i32 : i32
      %tiles_n = arith.shrui %26, %c7_i32 : i32
      %tile = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %27 = arith.muli %tiles_n, %c8_i32 : i32
      %group = arith.divui %tile, %27 : i32
      %inside = arith.remui %tile, %27 : i32
      %first = arith.muli %group, %c8_i32 : i32
      %28 = arith.subi %tiles_m, %first : i32
      %rows = arith.minsi %28, %c8_i32 : i32
      %column = arith.divui %inside, %rows : i32
      %row = arith.remui %inside, %rows : i32
      %row_3 = arith.addi %first, %row : i32
      %29 = cute.make_coord(%row_3, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %30 = cute.local_tile(%mC, %2, %29) : (!mC, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !memref
      %31 = cute.make_coord(%24) : (i32) -> !cute.coord<"?">
      %32 = cute.tiled.mma.partition_C(%4, %30, %31) : (!tiled_mma, !memref, !cute.coord<"?">) -> !memref_2
      %33 = cute.tiled.mma.make_fragment_C(%4, %32) : (!tiled_mma, !memref_2) -> !sums
      cute.clear(%33) : (!sums) -> ()
      %34 = arith.addi %1#1, %c15_i32 : i32
      %35 = arith.shrui %34, %c4_i32 : i32
      %36 = cute.make_coord(%row_3) : (i32) -> !cute.coord<"(?,_)">
      %37 = cute.local_tile(%loads_0, %5, %36) : (!loads_2, !cute.shape<"(128,16)">, !cute.coord<"(?,_)">) -> !coord_tensor
      %38 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,_)">
      %39 = cute.local_tile(%loads_2, %5, %38) : (!loads_4, !cute.shape<"(128,16)">, !cute.coord<"(?,_)">) -> !coord_tensor_2
      %40 = cute.memref.alloc_smem() : !memref_3
      %41 = cute.memref.alloc_smem() : !memref_4
      %full = cute.memref.alloc_smem() : !full
      %42 = cute.get_iter(%full) : !full
      %full_4 = cute.recast_iter(%42) : !cute.ptr<i8, smem, align<8>> to !cute.ptr<i64, smem>
      %leader = arith.cmpi eq, %24, %c0_i32 : i32
      scf.if %leader {
        scf.for %stage = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
          %93 = cute.make_int_tuple(%stage) : (i32) -> !cute.int_tuple<"?">
          %94 = cute.add_offset(%full_4, %93) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%94, %c1_i32) : (!cute.ptr<i64, smem>, i32) -> ()
        }
        cute_nvgpu.arch.fence_mbarrier_init() : () -> ()
        cute_nvgpu.arch.mbarrier_arrive_expect_tx(%full_4, %c16384_i32) : (!cute.ptr<i64, smem>, i32) -> ()
        %75 = cute.slice(%37, %6) : !coord_tensor, !cute.coord<"(_,_,0)">
        %76 = cute.slice(%40, %6) : !memref_3, !cute.coord<"(_,_,0)">
        %77 = cute.atom.set_value(%loads, %full_4) {field = tma_bar} : (!loads, !cute.ptr<i64, smem>) -> !loads
        cute.copy(%77, %75, %76) : (!loads, !coord_tensor_3, !memref_5) -> ()
        %78 = cute.slice(%39, %6) : !coord_tensor_2, !cute.coord<"(_,_,0)">
        %79 = cute.slice(%41, %6) : !memref_4, !cute.coord<"(_,_,0)">
        %80 = cute.atom.set_value(%loads_1, %full_4) {field = tma_bar} : (!loads_3, !cute.ptr<i64, smem>) -> !loads_3
        cute.copy(%80, %78, %79) : (!loads_3, !coord_tensor_4, !memref_6) -> ()
        %full_11 = cute.add_offset(%full_4, %7) : (!cute.ptr<i64, smem>, !cute.int_tuple<"1">) -> !cute.ptr<i64, smem>
        cute_nvgpu.arch.mbarrier_arrive_expect_tx(%full_11, %c16384_i32) : (!cute.ptr<i64, smem>, i32) -> ()
        %81 = cute.slice(%37, %8) : !coord_tensor, !cute.coord<"(_,_,1)">
        %82 = cute.slice(%40, %8) : !memref_3, !cute.coord<"(_,_,1)">
        %83 = cute.atom.set_value(%loads, %full_11) {field = tma_bar} : (!loads, !cute.ptr<i64, smem>) -> !loads
        cute.copy(%83, %81, %82) : (!loads, !coord_tensor_5, !memref_5) -> ()
        %84 = cute.slice(%39, %8) : !coord_tensor_2, !cute.coord<"(_,_,1)">
        %85 = cute.slice(%41, %8) : !memref_4, !cute.coord<"(_,_,1)">
        %86 = cute.atom.set_value(%loads_1, %full_11) {field = tma_bar} : (!loads_3, !cute.ptr<i64, smem>) -> !loads_3
        cute.copy(%86, %84, %85) : (!loads_3, !coord_tensor_6, !memref_6) -> ()
        %full_12 = cute.add_offset(%full_4, %9) : (!cute.ptr<i64, smem>, !cute.int_tuple<"2">) -> !cute.ptr<i64, smem>
        cute_nvgpu.arch.mbarrier_arrive_expect_tx(%full_12, %c16384_i32) : (!cute.ptr<i64, smem>, i32) -> ()
        %87 = cute.slice(%37, %10) : !coord_tensor, !cute.coord<"(_,_,2)">
        %88 = cute.slice(%40, %10) : !memref_3, !cute.coord<"(_,_,2)">
        %89 = cute.atom.set_value(%loads, %full_12) {field = tma_bar} : (!loads, !cute.ptr<i64, smem>) -> !loads
        cute.copy(%89, %87, %88) : (!loads, !coord_tensor_7, !memref_5) -> ()
        %90 = cute.slice(%39, %10) : !coord_tensor_2, !cute.coord<"(_,_,2)">
        %91 = cute.slice(%41, %10) : !memref_4, !cute.coord<"(_,_,2)">
        %92 = cute.atom.set_value(%loads_1, %full_12) {field = tma_bar} : (!loads_3, !cute.ptr<i64, smem>) -> !loads_3
        cute.copy(%92, %90, %91) : (!loads_3, !coord_tensor_8, !memref_6) -> ()
      }
      cute_nvgpu.arch.barrier() : () -> ()
      // This thread's operands: four k of A at once, one k of B, two register sets each.
      %43 = cute.make_coord(%24) : (i32) -> !cute.coord<"?">
      %tA = cute.tiled.mma.partition_A(%4, %40, %43) : (!tiled_mma, !memref_3, !cute.coord<"?">) -> !tA
      %44 = cute.make_coord(%24) : (i32) -> !cute.coord<"?">
      %tB = cute.tiled.mma.partition_B(%4, %41, %44) : (!tiled_mma, !memref_4, !cute.coord<"?">) -> !tB
      %45 = cute.memref.alloca() : !memref_7
      %46 = cute.memref.alloca() : !memref_7
      %47 = cute.memref.alloca() : !memref_8
      %48 = cute.memref.alloca() : !memref_8
      cute_nvgpu.arch.mbarrier_wait(%full_4, %c0_i32) : (!cute.ptr<i64, smem>, i32) -> ()
      %49 = cute.slice(%tA, %11) : !tA, !cute.coord<"(_,_,_,0)">
      %source = cute.local_tile(%49, %12, %13) : (!memref_9, !cute.shape<"(1,8,4)">, !cute.coord<"(0,0,0)">) -> !source
      cute.copy(%14, %source, %45) : (!universal_copy, !source, !memref_7) -> ()
      %50 = cute.slice(%tB, %15) : !tB, !cute.coord<"(_,_,0,0)">
      cute.copy(%14, %50, %47) : (!universal_copy, !memref_10, !memref_8) -> ()
      %51:2 = scf.for %tile_11 = %c0_i32 to %35 step %c1_i32 iter_args(%arg0 = %c0_i32, %arg1 = %c0_i32) -> (i32, i32) : i32 {
        %75 = arith.addi %arg1, %c1_i32 : i32
        %wraps_12 = arith.cmpi eq, %75, %c4_i32 : i32
        %76 = arith.addi %arg1, %c1_i32 : i32
        %next_slot = arith.select %wraps_12, %c0_i32, %76 : i32
        %77 = arith.extui %wraps_12 : i1 to i32
        %next_phase = arith.xori %arg0, %77 : i32
        %78 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,1,?)">
        %79 = cute.slice(%tB, %78) : !tB, !cute.coord<"(_,_,1,?)">
        cute.copy(%14, %79, %48) : (!universal_copy, !memref_10, !memref_8) -> ()
        %80 = cute.slice(%45, %6) : !memref_7, !cute.coord<"(_,_,0)">
        cute.gemm(%4, %33, %80, %47, %33) : (!tiled_mma, !sums, !memref_11, !memref_8, !sums) -> ()
        %81 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,2,?)">
        %82 = cute.slice(%tB, %81) : !tB, !cute.coord<"(_,_,2,?)">
        cute.copy(%14, %82, %47) : (!universal_copy, !memref_10, !memref_8) -> ()
        %83 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,_,?)">
        %84 = cute.slice(%tA, %83) : !tA, !cute.coord<"(_,_,_,?)">
        %source_13 = cute.local_tile(%84, %12, %16) : (!memref_9, !cute.shape<"(1,8,4)">, !cute.coord<"(0,0,1)">) -> !source_2
        cute.copy(%14, %source_13, %46) : (!universal_copy, !source_2, !memref_7) -> ()
        %85 = cute.slice(%45, %8) : !memref_7, !cute.coord<"(_,_,1)">
        cute.gemm(%4, %33, %85, %48, %33) : (!tiled_mma, !sums, !memref_12, !memref_8, !sums) -> ()
        %86 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,3,?)">
        %87 = cute.slice(%tB, %86) : !tB, !cute.coord<"(_,_,3,?)">
        cute.copy(%14, %87, %48) : (!universal_copy, !memref_10, !memref_8) -> ()
        %88 = cute.slice(%45, %10) : !memref_7, !cute.coord<"(_,_,2)">
        cute.gemm(%4, %33, %88, %47, %33) : (!tiled_mma, !sums, !memref_13, !memref_8, !sums) -> ()
        %89 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,4,?)">
        %90 = cute.slice(%tB, %89) : !tB, !cute.coord<"(_,_,4,?)">
        cute.copy(%14, %90, %47) : (!universal_copy, !memref_10, !memref_8) -> ()
        %91 = cute.slice(%45, %17) : !memref_7, !cute.coord<"(_,_,3)">
        cute.gemm(%4, %33, %91, %48, %33) : (!tiled_mma, !sums, !memref_12, !memref_8, !sums) -> ()
        %92 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,5,?)">
        %93 = cute.slice(%tB, %92) : !tB, !cute.coord<"(_,_,5,?)">
        cute.copy(%14, %93, %48) : (!universal_copy, !memref_10, !memref_8) -> ()
        %94 = cute.slice(%46, %6) : !memref_7, !cute.coord<"(_,_,0)">
        cute.gemm(%4, %33, %94, %47, %33) : (!tiled_mma, !sums, !memref_11, !memref_8, !sums) -> ()
        %95 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,6,?)">
        %96 = cute.slice(%tB, %95) : !tB, !cute.coord<"(_,_,6,?)">
        cute.copy(%14, %96, %47) : (!universal_copy, !memref_10, !memref_8) -> ()
        %97 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,_,?)">
        %98 = cute.slice(%tA, %97) : !tA, !cute.coord<"(_,_,_,?)">
        %source_14 = cute.local_tile(%98, %12, %18) : (!memref_9, !cute.shape<"(1,8,4)">, !cute.coord<"(0,0,2)">) -> !source_3
        cute.copy(%14, %source_14, %45) : (!universal_copy, !source_3, !memref_7) -> ()
        %99 = cute.slice(%46, %8) : !memref_7, !cute.coord<"(_,_,1)">
        cute.gemm(%4, %33, %99, %48, %33) : (!tiled_mma, !sums, !memref_12, !memref_8, !sums) -> ()
        %100 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,7,?)">
        %101 = cute.slice(%tB, %100) : !tB, !cute.coord<"(_,_,7,?)">
        cute.copy(%14, %101, %48) : (!universal_copy, !memref_10, !memref_8) -> ()
        %102 = cute.slice(%46, %10) : !memref_7, !cute.coord<"(_,_,2)">
        cute.gemm(%4, %33, %102, %47, %33) : (!tiled_mma, !sums, !memref_13, !memref_8, !sums) -> ()
        %103 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,8,?)">
        %104 = cute.slice(%tB, %103) : !tB, !cute.coord<"(_,_,8,?)">
        cute.copy(%14, %104, %47) : (!universal_copy, !memref_10, !memref_8) -> ()
        %105 = cute.slice(%46, %17) : !memref_7, !cute.coord<"(_,_,3)">
        cute.gemm(%4, %33, %105, %48, %33) : (!tiled_mma, !sums, !memref_12, !memref_8, !sums) -> ()
        %106 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,9,?)">
        %107 = cute.slice(%tB, %106) : !tB, !cute.coord<"(_,_,9,?)">
        cute.copy(%14, %107, %48) : (!universal_copy, !memref_10, !memref_8) -> ()
        %108 = cute.slice(%45, %6) : !memref_7, !cute.coord<"(_,_,0)">
        cute.gemm(%4, %33, %108, %47, %33) : (!tiled_mma, !sums, !memref_11, !memref_8, !sums) -> ()
        %109 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,10,?)">
        %110 = cute.slice(%tB, %109) : !tB, !cute.coord<"(_,_,10,?)">
        cute.copy(%14, %110, %47) : (!universal_copy, !memref_10, !memref_8) -> ()
        %111 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,_,?)">
        %112 = cute.slice(%tA, %111) : !tA, !cute.coord<"(_,_,_,?)">
        %source_15 = cute.local_tile(%112, %12, %19) : (!memref_9, !cute.shape<"(1,8,4)">, !cute.coord<"(0,0,3)">) -> !source_2
        cute.copy(%14, %source_15, %46) : (!universal_copy, !source_2, !memref_7) -> ()
        %113 = cute.slice(%45, %8) : !memref_7, !cute.coord<"(_,_,1)">
        cute.gemm(%4, %33, %113, %48, %33) : (!tiled_mma, !sums, !memref_12, !memref_8, !sums) -> ()
        %114 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,11,?)">
        %115 = cute.slice(%tB, %114) : !tB, !cute.coord<"(_,_,11,?)">
        cute.copy(%14, %115, %48) : (!universal_copy, !memref_10, !memref_8) -> ()
        %116 = cute.slice(%45, %10) : !memref_7, !cute.coord<"(_,_,2)">
        cute.gemm(%4, %33, %116, %47, %33) : (!tiled_mma, !sums, !memref_13, !memref_8, !sums) -> ()
        %117 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,12,?)">
        %118 = cute.slice(%tB, %117) : !tB, !cute.coord<"(_,_,12,?)">
        cute.copy(%14, %118, %47) : (!universal_copy, !memref_10, !memref_8) -> ()
        %119 = cute.slice(%45, %17) : !memref_7, !cute.coord<"(_,_,3)">
        cute.gemm(%4, %33, %119, %48, %33) : (!tiled_mma, !sums, !memref_12, !memref_8, !sums) -> ()
        %120 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,13,?)">
        %121 = cute.slice(%tB, %120) : !tB, !cute.coord<"(_,_,13,?)">
        cute.copy(%14, %121, %48) : (!universal_copy, !memref_10, !memref_8) -> ()
        %122 = cute.slice(%46, %6) : !memref_7, !cute.coord<"(_,_,0)">
        cute.gemm(%4, %33, %122, %47, %33) : (!tiled_mma, !sums, !memref_11, !memref_8, !sums) -> ()
        // All threads are done with the previous tile. Its slot gets the last requested tile; the next tile has
        // arrived.
        cute_nvgpu.arch.barrier() : () -> ()
        scf.if %leader {
          %136 = arith.addi %tile_11, %c3_i32 : i32
          %137 = arith.addi %arg1, %c3_i32 : i32
          %138 = arith.andi %137, %c3_i32 : i32
          %139 = cute.make_int_tuple(%138) : (i32) -> !cute.int_tuple<"?">
          %full_17 = cute.add_offset(%full_4, %139) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_arrive_expect_tx(%full_17, %c16384_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %140 = cute.make_coord(%136) : (i32) -> !cute.coord<"(_,_,?)">
          %141 = cute.slice(%37, %140) : !coord_tensor, !cute.coord<"(_,_,?)">
          %142 = cute.make_coord(%138) : (i32) -> !cute.coord<"(_,_,?)">
          %143 = cute.slice(%40, %142) : !memref_3, !cute.coord<"(_,_,?)">
          %144 = cute.atom.set_value(%loads, %full_17) {field = tma_bar} : (!loads, !cute.ptr<i64, smem>) -> !loads
          cute.copy(%144, %141, %143) : (!loads, !coord_tensor_9, !memref_5) -> ()
          %145 = cute.make_coord(%136) : (i32) -> !cute.coord<"(_,_,?)">
          %146 = cute.slice(%39, %145) : !coord_tensor_2, !cute.coord<"(_,_,?)">
          %147 = cute.make_coord(%138) : (i32) -> !cute.coord<"(_,_,?)">
          %148 = cute.slice(%41, %147) : !memref_4, !cute.coord<"(_,_,?)">
          %149 = cute.atom.set_value(%loads_1, %full_17) {field = tma_bar} : (!loads_3, !cute.ptr<i64, smem>) -> !loads_3
          cute.copy(%149, %146, %148) : (!loads_3, !coord_tensor_10, !memref_6) -> ()
        }
        %123 = cute.make_int_tuple(%next_slot) : (i32) -> !cute.int_tuple<"?">
        %124 = cute.add_offset(%full_4, %123) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
        cute_nvgpu.arch.mbarrier_wait(%124, %next_phase) : (!cute.ptr<i64, smem>, i32) -> ()
        %125 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,14,?)">
        %126 = cute.slice(%tB, %125) : !tB, !cute.coord<"(_,_,14,?)">
        cute.copy(%14, %126, %47) : (!universal_copy, !memref_10, !memref_8) -> ()
        %127 = cute.make_coord(%next_slot) : (i32) -> !cute.coord<"(_,_,_,?)">
        %128 = cute.slice(%tA, %127) : !tA, !cute.coord<"(_,_,_,?)">
        %source_16 = cute.local_tile(%128, %12, %13) : (!memref_9, !cute.shape<"(1,8,4)">, !cute.coord<"(0,0,0)">) -> !source
        cute.copy(%14, %source_16, %45) : (!universal_copy, !source, !memref_7) -> ()
        %129 = cute.slice(%46, %8) : !memref_7, !cute.coord<"(_,_,1)">
        cute.gemm(%4, %33, %129, %48, %33) : (!tiled_mma, !sums, !memref_12, !memref_8, !sums) -> ()
        %130 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,15,?)">
        %131 = cute.slice(%tB, %130) : !tB, !cute.coord<"(_,_,15,?)">
        cute.copy(%14, %131, %48) : (!universal_copy, !memref_10, !memref_8) -> ()
        %132 = cute.slice(%46, %10) : !memref_7, !cute.coord<"(_,_,2)">
        cute.gemm(%4, %33, %132, %47, %33) : (!tiled_mma, !sums, !memref_13, !memref_8, !sums) -> ()
        %133 = cute.make_coord(%next_slot) : (i32) -> !cute.coord<"(_,_,0,?)">
        %134 = cute.slice(%tB, %133) : !tB, !cute.coord<"(_,_,0,?)">
        cute.copy(%14, %134, %47) : (!universal_copy, !memref_10, !memref_8) -> ()
        %135 = cute.slice(%46, %17) : !memref_7, !cute.coord<"(_,_,3)">
        cute.gemm(%4, %33, %135, %48, %33) : (!tiled_mma, !sums, !memref_12, !memref_8, !sums) -> ()
        scf.yield %next_phase, %next_slot : i32, i32
      }
      // Wait for tiles that are still in flight.
      %52 = arith.addi %51#1, %c1_i32 : i32
      %wraps = arith.cmpi eq, %52, %c4_i32 : i32
      %53 = arith.addi %51#1, %c1_i32 : i32
      %slot = arith.select %wraps, %c0_i32, %53 : i32
      %54 = arith.extui %wraps : i1 to i32
      %phase = arith.xori %51#0, %54 : i32
      %55 = cute.make_int_tuple(%slot) : (i32) -> !cute.int_tuple<"?">
      %56 = cute.add_offset(%full_4, %55) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
      cute_nvgpu.arch.mbarrier_wait(%56, %phase) : (!cute.ptr<i64, smem>, i32) -> ()
      %57 = arith.addi %slot, %c1_i32 : i32
      %wraps_5 = arith.cmpi eq, %57, %c4_i32 : i32
      %58 = arith.addi %slot, %c1_i32 : i32
      %slot_6 = arith.select %wraps_5, %c0_i32, %58 : i32
      %59 = arith.extui %wraps_5 : i1 to i32
      %phase_7 = arith.xori %phase, %59 : i32
      %60 = cute.make_int_tuple(%slot_6) : (i32) -> !cute.int_tuple<"?">
      %61 = cute.add_offset(%full_4, %60) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
      cute_nvgpu.arch.mbarrier_wait(%61, %phase_7) : (!cute.ptr<i64, smem>, i32) -> ()
      %62 = arith.addi %slot_6, %c1_i32 : i32
      %wraps_8 = arith.cmpi eq, %62, %c4_i32 : i32
      %63 = arith.addi %slot_6, %c1_i32 : i32
      %slot_9 = arith.select %wraps_8, %c0_i32, %63 : i32
      %64 = arith.extui %wraps_8 : i1 to i32
      %phase_10 = arith.xori %phase_7, %64 : i32
      // Copy the accumulator. A 128-bit store needs four consecutive registers, which would constrain those of the FMAs.
      %sums = cute.make_fragment_like(%33) : !sums -> !sums
      scf.for %i = %c0_i32 to %c128_i32 step %c1_i32 : i32 {
        %75 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %76 = cute.memref.load(%33, %75) : (!sums, !cute.coord<"?">) -> f32
        %77 = arith.addf %76, %cst fastmath<contract> : f32
        %78 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%sums, %78, %77) : (!sums, !cute.coord<"?">, f32) -> ()
      }
      %65 = cute.assume(%23#1) : (i32) -> !cute.i32<divby 4>
      %66 = cute.make_shape(%23#0, %65) : (i32, !cute.i32<divby 4>) -> !cute.shape<"(?,?{div=4})">
      %67 = cute.make_identity_layout(%66) : !cute.shape<"(?,?{div=4})"> -> !layout_3
      %68 = cute.make_view(%20, %67) : !coord_tensor_11
      %69 = cute.make_coord(%row_3, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %ids = cute.local_tile(%68, %2, %69) : (!coord_tensor_11, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !ids
      %70 = cute.memref.load(%ids, %21) : (!ids, !cute.coord<"16383">) -> !cute.int_tuple<"(?,?)">
      %71:2 = cute.get_scalars<{only_dynamic}> (%70) : !cute.int_tuple<"(?,?)">
      %72 = cute.make_int_tuple(%71#0, %71#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %73 = cute.assume(%23#1) : (i32) -> !cute.i32<divby 4>
      %74 = cute.make_int_tuple(%23#0, %73) : (i32, !cute.i32<divby 4>) -> !int_tuple
      %whole = cute.elem_less(%72, %74) : (!cute.int_tuple<"(?,?)">, !int_tuple) -> i1
      scf.if %whole {
        cute.copy(%14, %sums, %32) : (!universal_copy, !sums, !memref_2) -> ()
      } else {
        %75 = cute.make_coord(%24) : (i32) -> !cute.coord<"?">
        %xC = cute.tiled.mma.partition_C(%4, %ids, %75) : (!tiled_mma, !ids, !cute.coord<"?">) -> !xC
        %inside_11 = cute.make_fragment_like(%xC) [i1] : !xC -> !inside
        scf.for %i = %c0_i32 to %c128_i32 step %c1_i32 : i32 {
          %76 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %77 = cute.memref.load(%xC, %76) : (!xC, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %78:2 = cute.get_scalars<{only_dynamic}> (%77) : !cute.int_tuple<"(?,?)">
          %79 = cute.make_int_tuple(%78#0, %78#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %80 = cute.assume(%23#1) : (i32) -> !cute.i32<divby 4>
          %81 = cute.make_int_tuple(%23#0, %80) : (i32, !cute.i32<divby 4>) -> !int_tuple
          %82 = cute.elem_less(%79, %81) : (!cute.int_tuple<"(?,?)">, !int_tuple) -> i1
          %83 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%inside_11, %83, %82) : (!inside, !cute.coord<"?">, i1) -> ()
        }
        cute.copy(%14, %sums, %32, pred = %inside_11) : (!universal_copy, !sums, !memref_2, !inside) -> ()
      }
      gpu.return
    }
    // Multiply matrices that TMA cannot describe.
    gpu.func @sgemm_any(%mA: !mA, %mB: !mA, %mC: !mA) kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 2 : i32} {
      %0 = cute.get_layout(%mA) : !mA
      %1:3 = cute.get_scalars<{only_dynamic}> (%0) : !cute.layout<"(?,?):(?,1)">
      %c127_i32 = arith.constant 127 : i32
      %c7_i32 = arith.constant 7 : i32
      %2 = cute.static : !cute.int_tuple<"(0,0)">
      %3 = cute.static : !cute.shape<"(128,128)">
      %4 = cute.atom() : !universal_fma
      %5 = cute.make_tiled_mma(%4) : !tiled_mma_2
      %6 = cute.static : !cute.shape<"(128,16)">
      %7 = cute.atom() : !simt_async_copy
      %8 = cute.make_tiled_copy(%7) : !tiled_copy
      %9 = cute.static : !cute.coord<"(0,_,_)">
      %c0_i32 = arith.constant 0 : i32
      %c8_i32 = arith.constant 8 : i32
      %c1_i32 = arith.constant 1 : i32
      %10 = cute.static : !cute.coord<"(_,_,0)">
      %11 = cute.make_tiled_copy(%7) : !tiled_copy_2
      %12 = cute.static : !cute.coord<"(_,_,1)">
      %c15_i32 = arith.constant 15 : i32
      %c4_i32 = arith.constant 4 : i32
      %c2_i32 = arith.constant 2 : i32
      %c3_i32 = arith.constant 3 : i32
      %13 = cute.static : !cute.shape<"(128,2)">
      %14 = cute.atom() : !universal_copy
      %15 = cute.static : !cute.shape<"(128,1)">
      %16 = cute.static : !cute.coord<"(0,0)">
      %17 = cute.static : !cute.coord<"(0,1)">
      %18 = cute.static : !cute.coord<"16383">
      %c64_i32 = arith.constant 64 : i32
      %19 = cute.get_layout(%mC) : !mA
      %20:3 = cute.get_scalars<{only_dynamic}> (%19) : !cute.layout<"(?,?):(?,1)">
      %21 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %22 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %23 = arith.addi %20#1, %c127_i32 : i32
      %across = arith.shrui %23, %c7_i32 : i32
      %row = arith.divui %22, %across : i32
      %column = arith.remui %22, %across : i32
      %24 = cute.make_shape(%1#0, %1#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %25 = cute.make_identity_layout(%24) : !cute.shape<"(?,?)"> -> !layout_4
      %26 = cute.make_view(%2, %25) : !coord_tensor_12
      %27 = cute.select<[1, 0]> (%mB) : !mA -> !memref_14
      %28 = cute.get_layout(%27) : !memref_14
      %29:3 = cute.get_scalars<{only_dynamic}> (%28) : !cute.layout<"(?,?):(1,?)">
      %30 = cute.make_shape(%29#0, %29#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %31 = cute.make_identity_layout(%30) : !cute.shape<"(?,?)"> -> !layout_4
      %32 = cute.make_view(%2, %31) : !coord_tensor_12
      %33 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %34 = cute.local_tile(%mC, %3, %33) : (!mA, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !memref_15
      %35 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %36 = cute.tiled.mma.partition_C(%5, %34, %35) : (!tiled_mma_2, !memref_15, !cute.coord<"?">) -> !memref_16
      %37 = cute.tiled.mma.make_fragment_C(%5, %36) : (!tiled_mma_2, !memref_16) -> !memref_17
      cute.clear(%37) : (!memref_17) -> ()
      %sA = cute.memref.alloc_smem() : !sA
      %sB = cute.memref.alloc_smem() : !sB
      // tiles past the last one are zero
      %38 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,0)">
      %39 = cute.local_tile(%mA, %6, %38) : (!mA, !cute.shape<"(128,16)">, !cute.coord<"(?,0)">) -> !memref_18
      %40 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %part = cute.tiled.copy.partition_S(%8, %39, %40) : (!tiled_copy, !memref_18, !cute.coord<"?">) -> !part
      %41 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,0)">
      %42 = cute.local_tile(%26, %6, %41) : (!coord_tensor_12, !cute.shape<"(128,16)">, !cute.coord<"(?,0)">) -> !coord_tensor_4
      %43 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %ids = cute.tiled.copy.partition_S(%8, %42, %43) : (!tiled_copy, !coord_tensor_4, !cute.coord<"?">) -> !ids_2
      %flags = cute.memref.alloca() : !flags
      %first = cute.slice(%ids, %9) : !ids_2, !cute.coord<"(0,_,_)">
      %each = cute.slice(%flags, %9) : !flags, !cute.coord<"(0,_,_)">
      scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
        %84 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %85 = cute.memref.load(%first, %84) : (!first, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
        %86:2 = cute.get_scalars<{only_dynamic}> (%85) : !cute.int_tuple<"(?,?)">
        %87 = cute.make_int_tuple(%86#0, %86#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %88 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %89 = cute.elem_less(%87, %88) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        %90 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%each, %90, %89) : (!each, !cute.coord<"?">, i1) -> ()
      }
      %44 = cute.slice(%sA, %10) : !sA, !cute.coord<"(_,_,0)">
      %45 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %46 = cute.tiled.copy.partition_D(%8, %44, %45) : (!tiled_copy, !memref_19, !cute.coord<"?">) -> !memref_20
      cute.copy(%7, %part, %46, pred = %flags) : (!simt_async_copy, !part, !memref_20, !flags) -> ()
      %47 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,0)">
      %48 = cute.local_tile(%27, %6, %47) : (!memref_14, !cute.shape<"(128,16)">, !cute.coord<"(?,0)">) -> !memref_21
      %49 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %part_0 = cute.tiled.copy.partition_S(%11, %48, %49) : (!tiled_copy_2, !memref_21, !cute.coord<"?">) -> !part_2
      %50 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,0)">
      %51 = cute.local_tile(%32, %6, %50) : (!coord_tensor_12, !cute.shape<"(128,16)">, !cute.coord<"(?,0)">) -> !coord_tensor_4
      %52 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %ids_1 = cute.tiled.copy.partition_S(%11, %51, %52) : (!tiled_copy_2, !coord_tensor_4, !cute.coord<"?">) -> !ids_3
      %flags_2 = cute.memref.alloca() : !flags_2
      %first_3 = cute.slice(%ids_1, %9) : !ids_3, !cute.coord<"(0,_,_)">
      %each_4 = cute.slice(%flags_2, %9) : !flags_2, !cute.coord<"(0,_,_)">
      scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
        %84 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %85 = cute.memref.load(%first_3, %84) : (!first_2, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
        %86:2 = cute.get_scalars<{only_dynamic}> (%85) : !cute.int_tuple<"(?,?)">
        %87 = cute.make_int_tuple(%86#0, %86#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %88 = cute.make_int_tuple(%29#0, %29#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %89 = cute.elem_less(%87, %88) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        %90 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%each_4, %90, %89) : (!each_2, !cute.coord<"?">, i1) -> ()
      }
      %53 = cute.slice(%sB, %10) : !sB, !cute.coord<"(_,_,0)">
      %54 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %55 = cute.tiled.copy.partition_D(%11, %53, %54) : (!tiled_copy_2, !memref_22, !cute.coord<"?">) -> !memref_23
      cute.copy(%7, %part_0, %55, pred = %flags_2) : (!simt_async_copy, !part_2, !memref_23, !flags_2) -> ()
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      %56 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,1)">
      %57 = cute.local_tile(%mA, %6, %56) : (!mA, !cute.shape<"(128,16)">, !cute.coord<"(?,1)">) -> !memref_18
      %58 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %part_5 = cute.tiled.copy.partition_S(%8, %57, %58) : (!tiled_copy, !memref_18, !cute.coord<"?">) -> !part
      %59 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,1)">
      %60 = cute.local_tile(%26, %6, %59) : (!coord_tensor_12, !cute.shape<"(128,16)">, !cute.coord<"(?,1)">) -> !coord_tensor_6
      %61 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %ids_6 = cute.tiled.copy.partition_S(%8, %60, %61) : (!tiled_copy, !coord_tensor_6, !cute.coord<"?">) -> !ids_2
      %flags_7 = cute.memref.alloca() : !flags
      %first_8 = cute.slice(%ids_6, %9) : !ids_2, !cute.coord<"(0,_,_)">
      %each_9 = cute.slice(%flags_7, %9) : !flags, !cute.coord<"(0,_,_)">
      scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
        %84 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %85 = cute.memref.load(%first_8, %84) : (!first, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
        %86:2 = cute.get_scalars<{only_dynamic}> (%85) : !cute.int_tuple<"(?,?)">
        %87 = cute.make_int_tuple(%86#0, %86#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %88 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %89 = cute.elem_less(%87, %88) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        %90 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%each_9, %90, %89) : (!each, !cute.coord<"?">, i1) -> ()
      }
      %62 = cute.slice(%sA, %12) : !sA, !cute.coord<"(_,_,1)">
      %63 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %64 = cute.tiled.copy.partition_D(%8, %62, %63) : (!tiled_copy, !memref_19, !cute.coord<"?">) -> !memref_20
      cute.copy(%7, %part_5, %64, pred = %flags_7) : (!simt_async_copy, !part, !memref_20, !flags) -> ()
      %65 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,1)">
      %66 = cute.local_tile(%27, %6, %65) : (!memref_14, !cute.shape<"(128,16)">, !cute.coord<"(?,1)">) -> !memref_21
      %67 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %part_10 = cute.tiled.copy.partition_S(%11, %66, %67) : (!tiled_copy_2, !memref_21, !cute.coord<"?">) -> !part_2
      %68 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,1)">
      %69 = cute.local_tile(%32, %6, %68) : (!coord_tensor_12, !cute.shape<"(128,16)">, !cute.coord<"(?,1)">) -> !coord_tensor_6
      %70 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %ids_11 = cute.tiled.copy.partition_S(%11, %69, %70) : (!tiled_copy_2, !coord_tensor_6, !cute.coord<"?">) -> !ids_3
      %flags_12 = cute.memref.alloca() : !flags_2
      %first_13 = cute.slice(%ids_11, %9) : !ids_3, !cute.coord<"(0,_,_)">
      %each_14 = cute.slice(%flags_12, %9) : !flags_2, !cute.coord<"(0,_,_)">
      scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
        %84 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %85 = cute.memref.load(%first_13, %84) : (!first_2, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
        %86:2 = cute.get_scalars<{only_dynamic}> (%85) : !cute.int_tuple<"(?,?)">
        %87 = cute.make_int_tuple(%86#0, %86#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %88 = cute.make_int_tuple(%29#0, %29#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %89 = cute.elem_less(%87, %88) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        %90 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%each_14, %90, %89) : (!each_2, !cute.coord<"?">, i1) -> ()
      }
      %71 = cute.slice(%sB, %12) : !sB, !cute.coord<"(_,_,1)">
      %72 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %73 = cute.tiled.copy.partition_D(%11, %71, %72) : (!tiled_copy_2, !memref_22, !cute.coord<"?">) -> !memref_23
      cute.copy(%7, %part_10, %73, pred = %flags_12) : (!simt_async_copy, !part_2, !memref_23, !flags_2) -> ()
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      %74 = arith.addi %1#1, %c15_i32 : i32
      %75 = arith.shrui %74, %c4_i32 : i32
      scf.for %tile = %c0_i32 to %75 step %c1_i32 : i32 {
        // Wait for this tile, and for all threads to be done with the previous one, then request another in its place.
        cute_nvgpu.arch.cp_async_wait_group() {n = 1 : i32} : () -> ()
        cute_nvgpu.arch.barrier() : () -> ()
        %ahead = arith.addi %tile, %c2_i32 : i32
        %84 = arith.remui %ahead, %c3_i32 : i32
        %85 = cute.make_coord(%row, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %86 = cute.local_tile(%mA, %6, %85) : (!mA, !cute.shape<"(128,16)">, !cute.coord<"(?,?)">) -> !memref_18
        %87 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
        %part_16 = cute.tiled.copy.partition_S(%8, %86, %87) : (!tiled_copy, !memref_18, !cute.coord<"?">) -> !part
        %88 = cute.make_coord(%row, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %89 = cute.local_tile(%26, %6, %88) : (!coord_tensor_12, !cute.shape<"(128,16)">, !cute.coord<"(?,?)">) -> !coord_tensor_10
        %90 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
        %ids_17 = cute.tiled.copy.partition_S(%8, %89, %90) : (!tiled_copy, !coord_tensor_10, !cute.coord<"?">) -> !ids_2
        %flags_18 = cute.memref.alloca() : !flags
        %first_19 = cute.slice(%ids_17, %9) : !ids_2, !cute.coord<"(0,_,_)">
        %each_20 = cute.slice(%flags_18, %9) : !flags, !cute.coord<"(0,_,_)">
        scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %105 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %106 = cute.memref.load(%first_19, %105) : (!first, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %107:2 = cute.get_scalars<{only_dynamic}> (%106) : !cute.int_tuple<"(?,?)">
          %108 = cute.make_int_tuple(%107#0, %107#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %109 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %110 = cute.elem_less(%108, %109) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          %111 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%each_20, %111, %110) : (!each, !cute.coord<"?">, i1) -> ()
        }
        %91 = cute.make_coord(%84) : (i32) -> !cute.coord<"(_,_,?)">
        %92 = cute.slice(%sA, %91) : !sA, !cute.coord<"(_,_,?)">
        %93 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
        %94 = cute.tiled.copy.partition_D(%8, %92, %93) : (!tiled_copy, !memref_19, !cute.coord<"?">) -> !memref_20
        cute.copy(%7, %part_16, %94, pred = %flags_18) : (!simt_async_copy, !part, !memref_20, !flags) -> ()
        %95 = cute.make_coord(%column, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %96 = cute.local_tile(%27, %6, %95) : (!memref_14, !cute.shape<"(128,16)">, !cute.coord<"(?,?)">) -> !memref_21
        %97 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
        %part_21 = cute.tiled.copy.partition_S(%11, %96, %97) : (!tiled_copy_2, !memref_21, !cute.coord<"?">) -> !part_2
        %98 = cute.make_coord(%column, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %99 = cute.local_tile(%32, %6, %98) : (!coord_tensor_12, !cute.shape<"(128,16)">, !cute.coord<"(?,?)">) -> !coord_tensor_10
        %100 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
        %ids_22 = cute.tiled.copy.partition_S(%11, %99, %100) : (!tiled_copy_2, !coord_tensor_10, !cute.coord<"?">) -> !ids_3
        %flags_23 = cute.memref.alloca() : !flags_2
        %first_24 = cute.slice(%ids_22, %9) : !ids_3, !cute.coord<"(0,_,_)">
        %each_25 = cute.slice(%flags_23, %9) : !flags_2, !cute.coord<"(0,_,_)">
        scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %105 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %106 = cute.memref.load(%first_24, %105) : (!first_2, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %107:2 = cute.get_scalars<{only_dynamic}> (%106) : !cute.int_tuple<"(?,?)">
          %108 = cute.make_int_tuple(%107#0, %107#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %109 = cute.make_int_tuple(%29#0, %29#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %110 = cute.elem_less(%108, %109) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          %111 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%each_25, %111, %110) : (!each_2, !cute.coord<"?">, i1) -> ()
        }
        %101 = cute.make_coord(%84) : (i32) -> !cute.coord<"(_,_,?)">
        %102 = cute.slice(%sB, %101) : !sB, !cute.coord<"(_,_,?)">
        %103 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
        %104 = cute.tiled.copy.partition_D(%11, %102, %103) : (!tiled_copy_2, !memref_22, !cute.coord<"?">) -> !memref_23
        cute.copy(%7, %part_21, %104, pred = %flags_23) : (!simt_async_copy, !part_2, !memref_23, !flags_2) -> ()
        cute_nvgpu.arch.cp_async_commit_group() : () -> ()
        %stage = arith.remui %tile, %c3_i32 : i32
        scf.for %k = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %105 = cute.make_coord(%stage) : (i32) -> !cute.coord<"(_,_,?)">
          %106 = cute.slice(%sA, %105) : !sA, !cute.coord<"(_,_,?)">
          %107 = cute.make_coord(%stage) : (i32) -> !cute.coord<"(_,_,?)">
          %108 = cute.slice(%sB, %107) : !sB, !cute.coord<"(_,_,?)">
          %109 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %110 = cute.local_tile(%106, %13, %109) : (!memref_19, !cute.shape<"(128,2)">, !cute.coord<"(0,?)">) -> !memref_24
          %111 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
          %blockA = cute.tiled.mma.partition_A(%5, %110, %111) : (!tiled_mma_2, !memref_24, !cute.coord<"?">) -> !blockA
          %rA = cute.tiled.mma.make_fragment_A(%5, %blockA) : (!tiled_mma_2, !blockA) -> !rA
          cute.copy(%14, %blockA, %rA) : (!universal_copy, !blockA, !rA) -> ()
          %112 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %blockB = cute.local_tile(%108, %13, %112) : (!memref_22, !cute.shape<"(128,2)">, !cute.coord<"(0,?)">) -> !blockB
          %113 = cute.local_tile(%blockB, %15, %16) : (!blockB, !cute.shape<"(128,1)">, !cute.coord<"(0,0)">) -> !memref_25
          %114 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
          %columnB = cute.tiled.mma.partition_B(%5, %113, %114) : (!tiled_mma_2, !memref_25, !cute.coord<"?">) -> !columnB
          %rB = cute.tiled.mma.make_fragment_B(%5, %columnB) : (!tiled_mma_2, !columnB) -> !rB
          cute.copy(%14, %columnB, %rB) : (!universal_copy, !columnB, !rB) -> ()
          %115 = cute.slice(%rA, %10) : !rA, !cute.coord<"(_,_,0)">
          %116 = cute.slice(%rB, %10) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%5, %37, %115, %116, %37) : (!tiled_mma_2, !memref_17, !memref_26, !memref_27, !memref_17) -> ()
          %117 = cute.local_tile(%blockB, %15, %17) : (!blockB, !cute.shape<"(128,1)">, !cute.coord<"(0,1)">) -> !memref_25
          %118 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
          %columnB_26 = cute.tiled.mma.partition_B(%5, %117, %118) : (!tiled_mma_2, !memref_25, !cute.coord<"?">) -> !columnB
          %rB_27 = cute.tiled.mma.make_fragment_B(%5, %columnB_26) : (!tiled_mma_2, !columnB) -> !rB
          cute.copy(%14, %columnB_26, %rB_27) : (!universal_copy, !columnB, !rB) -> ()
          %119 = cute.slice(%rA, %12) : !rA, !cute.coord<"(_,_,1)">
          %120 = cute.slice(%rB_27, %10) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%5, %37, %119, %120, %37) : (!tiled_mma_2, !memref_17, !memref_26, !memref_27, !memref_17) -> ()
        }
      }
      cute_nvgpu.arch.cp_async_wait_group() {n = 0 : i32} : () -> ()
      %76 = cute.make_shape(%20#0, %20#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %77 = cute.make_identity_layout(%76) : !cute.shape<"(?,?)"> -> !layout_4
      %78 = cute.make_view(%2, %77) : !coord_tensor_12
      %79 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %ids_15 = cute.local_tile(%78, %3, %79) : (!coord_tensor_12, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !ids
      %80 = cute.memref.load(%ids_15, %18) : (!ids, !cute.coord<"16383">) -> !cute.int_tuple<"(?,?)">
      %81:2 = cute.get_scalars<{only_dynamic}> (%80) : !cute.int_tuple<"(?,?)">
      %82 = cute.make_int_tuple(%81#0, %81#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %83 = cute.make_int_tuple(%20#0, %20#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %whole = cute.elem_less(%82, %83) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
      scf.if %whole {
        cute.copy(%14, %37, %36) : (!universal_copy, !memref_17, !memref_16) -> ()
      } else {
        %84 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
        %xC = cute.tiled.mma.partition_C(%5, %ids_15, %84) : (!tiled_mma_2, !ids, !cute.coord<"?">) -> !xC_2
        %inside = cute.make_fragment_like(%xC) [i1] : !xC_2 -> !inside_2
        scf.for %i = %c0_i32 to %c64_i32 step %c1_i32 : i32 {
          %85 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %86 = cute.memref.load(%xC, %85) : (!xC_2, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %87:2 = cute.get_scalars<{only_dynamic}> (%86) : !cute.int_tuple<"(?,?)">
          %88 = cute.make_int_tuple(%87#0, %87#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %89 = cute.make_int_tuple(%20#0, %20#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %90 = cute.elem_less(%88, %89) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          %91 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%inside, %91, %90) : (!inside_2, !cute.coord<"?">, i1) -> ()
        }
        cute.copy(%14, %37, %36, pred = %inside) : (!universal_copy, !memref_17, !memref_16, !inside_2) -> ()
      }
      gpu.return
    }
  }
  // Launch one block per tile of C, with vector accesses if the matrices allow it.
  func.func @launch(%mA: !mA, %mB: !mA, %mC: !mA) {
    %0 = cute.get_iter(%mC) : !mA
    %1 = cute.get_iter(%mB) : !mA
    %2 = cute.get_iter(%mA) : !mA
    %3 = cute.static : !cute.int_tuple<"128">
    %4 = cute.static : !layout_5
    %5 = cute.static : !cute.shape<"(128,16)">
    %6 = cute.static : !layout_6
    %c1_i32 = arith.constant 1 : i32
    %c128_i32 = arith.constant 128 : i32
    %c256_i32 = arith.constant 256 : i32
    %7 = cute.get_layout(%mC) : !mA
    %8:3 = cute.get_scalars<{only_dynamic}> (%7) : !cute.layout<"(?,?):(?,1)">
    %9 = cute.get_layout(%mB) : !mA
    %10:3 = cute.get_scalars<{only_dynamic}> (%9) : !cute.layout<"(?,?):(?,1)">
    %11 = cute.get_layout(%mA) : !mA
    %12:3 = cute.get_scalars<{only_dynamic}> (%11) : !cute.layout<"(?,?):(?,1)">
    %13 = arith.cmpi eq, %12#1, %10#0 : i32
    cf.assert %13, "A and B must have the same K"
    %14 = arith.cmpi eq, %12#0, %8#0 : i32
    cf.assert %14, "A and C must have the same M"
    %15 = arith.cmpi eq, %10#1, %8#1 : i32
    cf.assert %15, "B and C must have the same N"
    %16 = cute.make_int_tuple(%8#0) : (i32) -> !cute.int_tuple<"?">
    %17 = cute.ceil_div(%16, %3) : (!cute.int_tuple<"?">, !cute.int_tuple<"128">) -> !cute.int_tuple<"?">
    %18 = cute.get_scalars<{only_dynamic}> (%17) : !cute.int_tuple<"?">
    %19 = cute.make_int_tuple(%8#1) : (i32) -> !cute.int_tuple<"?">
    %20 = cute.ceil_div(%19, %3) : (!cute.int_tuple<"?">, !cute.int_tuple<"128">) -> !cute.int_tuple<"?">
    %21 = cute.get_scalars<{only_dynamic}> (%20) : !cute.int_tuple<"?">
    %22 = arith.muli %18, %21 : i32
    %23 = cute.assume(%2) : (!cute.ptr<f32, gmem>) -> !ptr
    %24 = cute.assume(%12#1) : (i32) -> !cute.i32<divby 4>
    %25 = cute.make_shape(%12#0, %24) : (i32, !cute.i32<divby 4>) -> !cute.shape<"(?,?{div=4})">
    %26 = cute.assume(%12#2) : (i32) -> !cute.i32<divby 4>
    %27 = cute.make_stride(%26) : (!cute.i32<divby 4>) -> !cute.stride<"(?{div=4},1)">
    %28 = cute.make_layout(%25, %27) : (!cute.shape<"(?,?{div=4})">, !cute.stride<"(?{div=4},1)">) -> !layout_2
    %vA = cute.make_view(%23, %28) : !mC
    %29 = cute.assume(%1) : (!cute.ptr<f32, gmem>) -> !ptr
    %30 = cute.assume(%10#1) : (i32) -> !cute.i32<divby 4>
    %31 = cute.make_shape(%10#0, %30) : (i32, !cute.i32<divby 4>) -> !cute.shape<"(?,?{div=4})">
    %32 = cute.assume(%10#2) : (i32) -> !cute.i32<divby 4>
    %33 = cute.make_stride(%32) : (!cute.i32<divby 4>) -> !cute.stride<"(?{div=4},1)">
    %34 = cute.make_layout(%31, %33) : (!cute.shape<"(?,?{div=4})">, !cute.stride<"(?{div=4},1)">) -> !layout_2
    %vB = cute.make_view(%29, %34) : !mC
    %35 = cute.assume(%0) : (!cute.ptr<f32, gmem>) -> !ptr
    %36 = cute.assume(%8#1) : (i32) -> !cute.i32<divby 4>
    %37 = cute.make_shape(%8#0, %36) : (i32, !cute.i32<divby 4>) -> !cute.shape<"(?,?{div=4})">
    %38 = cute.assume(%8#2) : (i32) -> !cute.i32<divby 4>
    %39 = cute.make_stride(%38) : (!cute.i32<divby 4>) -> !cute.stride<"(?{div=4},1)">
    %40 = cute.make_layout(%37, %39) : (!cute.shape<"(?,?{div=4})">, !cute.stride<"(?{div=4},1)">) -> !layout_2
    %vC = cute.make_view(%35, %40) : !mC
    %41:2 = cute_nvgpu.make_tma_load(%vA, %4, %5) {l2 = 256 : i32, swizzle = 64 : i32} : (!mC, !layout_5, !cute.shape<"(128,16)">) -> (!loads, !loads_2)
    %42 = cute.select<[1, 0]> (%vB) : !mC -> !memref_28
    %43:2 = cute_nvgpu.make_tma_load(%42, %6, %5) {l2 = 256 : i32} : (!memref_28, !layout_6, !cute.shape<"(128,16)">) -> (!loads_3, !loads_4)
    gpu.launch_func @kernels::@sgemm blocks in (%22, %c1_i32, %c1_i32) threads in (%c128_i32, %c1_i32, %c1_i32) : i32 args(%41#0 : !loads, %41#1 : !loads_2, %43#0 : !loads_3, %43#1 : !loads_4, %vC : !mC)
    gpu.launch_func @kernels::@sgemm_any blocks in (%22, %c1_i32, %c1_i32) threads in (%c256_i32, %c1_i32, %c1_i32) : i32 args(%mA : !mA, %mB : !mA, %mC : !mA) {cute.fallback}
    return
  }
}
