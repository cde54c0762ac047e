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
!memref_5 = !cute.memref<i8, smem, align<8>, "32:1">
!coord_tensor_3 = !cute.coord_tensor<"(0,?{div=128})", "(128,16):(1@1,1@0)">
!memref_6 = !cute.memref<f32, smem, align<1024>, S<2,4,3>, "(128,16):(16,1)">
!coord_tensor_4 = !cute.coord_tensor<"(?{div=128},0)", "(128,16):(1@0,1@1)">
!memref_7 = !cute.memref<f32, smem, align<1024>, "(128,16):(1,128)">
!coord_tensor_5 = !cute.coord_tensor<"(16,?{div=128})", "(128,16):(1@1,1@0)">
!coord_tensor_6 = !cute.coord_tensor<"(?{div=128},16)", "(128,16):(1@0,1@1)">
!coord_tensor_7 = !cute.coord_tensor<"(32,?{div=128})", "(128,16):(1@1,1@0)">
!coord_tensor_8 = !cute.coord_tensor<"(?{div=128},32)", "(128,16):(1@0,1@1)">
!tA = !cute.memref<f32, smem, align<64>, S<2,4,3>, "(1,8,16,4):(0,128,1,2048)">
!tB = !cute.memref<f32, smem, align<16>, "(1,(4,4),16,4):(0,(1,16),128,2048)">
!memref_8 = !cute.memref<f32, rmem, align<32>, "(1,8,4):(0,4,1)">
!memref_9 = !cute.memref<f32, rmem, align<32>, "(1,(4,4)):(0,(1,4))">
!memref_10 = !cute.memref<f32, smem, align<64>, S<2,4,3>, "(1,8,16):(0,128,1)">
!source = !cute.memref<f32, smem, align<64>, S<2,4,3>, "(1,8,4):(0,128,1)">
!memref_11 = !cute.memref<f32, smem, align<16>, "(1,(4,4)):(0,(1,16))">
!memref_12 = !cute.memref<f32, rmem, align<32>, "(1,8):(0,4)">
!source_2 = !cute.memref<f32, smem, align<16>, S<2,4,3>, "(1,8,4):(0,128,1)">
!memref_13 = !cute.memref<f32, rmem, "(1,8):(0,4)">
!memref_14 = !cute.memref<f32, rmem, align<8>, "(1,8):(0,4)">
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
!memref_15 = !cute.memref<f32, gmem, "(?,?):(1,?)">
!memref_16 = !cute.memref<f32, gmem, "(128,128):(?,1)">
!memref_17 = !cute.memref<f32, gmem, "(1,8,(4,2)):(0,?{div=4},(1,32))">
!memref_18 = !cute.memref<f32, rmem, align<32>, "(1,8,(4,2)):(0,1,(8,32))">
!sA = !cute.memref<f32, smem, align<512>, S<2,4,3>, "(128,16,3):(16,1,2048)">
!sB = !cute.memref<f32, smem, align<16>, "(128,16,3):(1,128,2048)">
!memref_19 = !cute.memref<f32, gmem, "(128,16):(?,1)">
!part = !cute.memref<f32, gmem, "((1,1),8,1):((0,0),?{div=16},0)">
!ids_2 = !cute.coord_tensor<"(?,?)", "((1,1),8,1):((0,0),16@0,0)">
!flags = !cute.memref<i1, rmem, align<8>, "(1,8,1):(0,1,8)">
!first = !cute.coord_tensor<"(?,?)", "(8,1):(16@0,0)">
!each = !cute.memref<i1, rmem, align<8>, "(8,1):(1,8)">
!memref_20 = !cute.memref<f32, smem, align<512>, S<2,4,3>, "(128,16):(16,1)">
!memref_21 = !cute.memref<f32, smem, S<2,4,3>, "((1,1),8,1):((0,0),256,0)">
!memref_22 = !cute.memref<f32, gmem, "(128,16):(1,?)">
!part_2 = !cute.memref<f32, gmem, "((1,1),1,8):((0,0),0,?{div=2})">
!ids_3 = !cute.coord_tensor<"(?,?)", "((1,1),1,8):((0,0),0,2@1)">
!flags_2 = !cute.memref<i1, rmem, align<8>, "(1,1,8):(0,1,1)">
!first_2 = !cute.coord_tensor<"(?,?)", "(1,8):(0,2@1)">
!each_2 = !cute.memref<i1, rmem, align<8>, "(1,8):(1,1)">
!memref_23 = !cute.memref<f32, smem, align<16>, "(128,16):(1,128)">
!memref_24 = !cute.memref<f32, smem, "((1,1),1,8):((0,0),0,256)">
!memref_25 = !cute.memref<f32, smem, align<8>, S<2,4,3>, "(128,2):(16,1)">
!blockA = !cute.memref<f32, smem, align<8>, S<2,4,3>, "(1,8,2):(0,64,1)">
!rA = !cute.memref<f32, rmem, align<32>, "(1,8,2):(0,1,8)">
!blockB = !cute.memref<f32, smem, align<16>, "(128,2):(1,128)">
!memref_26 = !cute.memref<f32, smem, align<16>, "(128,1):(1,0)">
!columnB = !cute.memref<f32, smem, align<16>, "(1,(4,2),1):(0,(1,32),0)">
!rB = !cute.memref<f32, rmem, align<32>, "(1,(4,2),1):(0,(1,4),0)">
!memref_27 = !cute.memref<f32, rmem, align<32>, "(1,8):(0,1)">
!memref_28 = !cute.memref<f32, rmem, align<32>, "(1,(4,2)):(0,(1,4))">
!xC_2 = !cute.coord_tensor<"(?,?{div=4})", "(1,8,(4,2)):(0,4@0,(1@1,32@1))">
!inside_2 = !cute.memref<i1, rmem, align<32>, "(1,8,(4,2)):(0,8,(1,4))">
!layout_5 = !cute.layout<"(128,16):(16,1)">
!layout_6 = !cute.layout<"(128,16):(1,128)">
!ptr = !cute.ptr<f32, gmem, align<16>>
!memref_29 = !cute.memref<f32, gmem, align<16>, "(?{div=4},?):(1,?{div=4})">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @sgemm(%loads: !loads, %loads_0: !loads_2, %loads_1: !loads_3, %loads_2: !loads_4, %mC: !mC) kernel attributes {known_block_size = array<i32: 128, 1, 1>, nvvm.minctasm = 2 : i32} {
      %0 = cute.get_layout(%loads_0) : !loads_2
      %1:2 = cute.get_scalars<{only_dynamic}> (%0) : !layout
      %2 = cute.static : !cute.int_tuple<"128">
      %c8_i32 = arith.constant 8 : i32
      %3 = cute.static : !cute.shape<"(128,128)">
      %4 = cute.atom() : !universal_fma
      %5 = cute.make_tiled_mma(%4) : !tiled_mma
      %6 = cute.static : !cute.int_tuple<"16">
      %7 = cute.static : !cute.shape<"(128,16)">
      %c0_i32 = arith.constant 0 : i32
      %c1_i32 = arith.constant 1 : i32
      %c4_i32 = arith.constant 4 : i32
      %c16384_i32 = arith.constant 16384 : i32
      %8 = cute.static : !cute.coord<"(_,_,0)">
      %9 = cute.static : !cute.int_tuple<"1">
      %10 = cute.static : !cute.coord<"(_,_,1)">
      %11 = cute.static : !cute.int_tuple<"2">
      %12 = cute.static : !cute.coord<"(_,_,2)">
      %13 = cute.static : !cute.coord<"(_,_,_,0)">
      %14 = cute.static : !cute.shape<"(1,8,4)">
      %15 = cute.static : !cute.coord<"(0,0,0)">
      %16 = cute.atom() : !universal_copy
      %17 = cute.static : !cute.coord<"(_,_,0,0)">
      %18 = cute.static : !cute.coord<"(0,0,1)">
      %19 = cute.static : !cute.coord<"(_,_,3)">
      %20 = cute.static : !cute.coord<"(0,0,2)">
      %21 = cute.static : !cute.coord<"(0,0,3)">
      %c3_i32 = arith.constant 3 : i32
      %cst = arith.constant 0.000000e+00 : f32
      %c128_i32 = arith.constant 128 : i32
      %22 = cute.static : !cute.int_tuple<"(0,0)">
      %23 = cute.static : !cute.coord<"16383">
      %24 = cute.get_layout(%mC) : !mC
      %25:3 = cute.get_scalars<{only_dynamic}> (%24) : !layout_2
      %26 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
      %27 = cute.make_int_tuple(%25#0) : (i32) -> !cute.int_tuple<"?">
      %28 = cute.ceil_div(%27, %2) : (!cute.int_tuple<"?">, !cute.int_tuple<"128">) -> !cute.int_tuple<"?">
      %rows = cute.get_scalars<{only_dynamic}> (%28) : !cute.int_tuple<"?">
      %29 = cute.assume(%25#1) : (i32) -> !cute.i32<divby 4>
      %30 = cute.make_int_tuple(%29) : (!cute.i32<divby 4>) -> !cute.int_tuple<"?{div=4}">
      %31 = cute.ceil_div(%30, %2) : (!cute.int_tuple<"?{div=4}">, !cute.int_tuple<"128">) -> !cute.int_tuple<"?">
      %columns = cute.get_scalars<{only_dynamic}> (%31) : !cute.int_tuple<"?">
      %block = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %per_group = arith.muli %columns, %c8_i32 : i32
      %number = arith.divui %block, %per_group : i32
      %32 = arith.muli %number, %per_group : i32
      %inside = arith.subi %block, %32 : i32
      %first = arith.muli %number, %c8_i32 : i32
      %33 = arith.subi %rows, %first : i32
      %34 = arith.cmpi ugt, %33, %c8_i32 : i32
      %height = arith.select %34, %c8_i32, %33 : i32
      %column = arith.divui %inside, %height : i32
      %35 = arith.muli %column, %height : i32
      %36 = arith.subi %inside, %35 : i32
      %row = arith.addi %first, %36 : i32
      %37 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %38 = cute.local_tile(%mC, %3, %37) : (!mC, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !memref
      %39 = cute.make_coord(%26) : (i32) -> !cute.coord<"?">
      %40 = cute.tiled.mma.partition_C(%5, %38, %39) : (!tiled_mma, !memref, !cute.coord<"?">) -> !memref_2
      %41 = cute.tiled.mma.make_fragment_C(%5, %40) : (!tiled_mma, !memref_2) -> !sums
      cute.clear(%41) : (!sums) -> ()
      %42 = cute.assume(%1#1) : (i32) -> !cute.i32<divby 4>
      %43 = cute.make_int_tuple(%42) : (!cute.i32<divby 4>) -> !cute.int_tuple<"?{div=4}">
      %44 = cute.ceil_div(%43, %6) : (!cute.int_tuple<"?{div=4}">, !cute.int_tuple<"16">) -> !cute.int_tuple<"?">
      %45 = cute.get_scalars<{only_dynamic}> (%44) : !cute.int_tuple<"?">
      %46 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,_)">
      %47 = cute.local_tile(%loads_0, %7, %46) : (!loads_2, !cute.shape<"(128,16)">, !cute.coord<"(?,_)">) -> !coord_tensor
      %48 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,_)">
      %49 = cute.local_tile(%loads_2, %7, %48) : (!loads_4, !cute.shape<"(128,16)">, !cute.coord<"(?,_)">) -> !coord_tensor_2
      %50 = cute.memref.alloc_smem() : !memref_3
      %51 = cute.memref.alloc_smem() : !memref_4
      %52 = cute.memref.alloc_smem() : !memref_5
      %53 = cute.get_iter(%52) : !memref_5
      %full = cute.recast_iter(%53) : !cute.ptr<i8, smem, align<8>> to !cute.ptr<i64, smem>
      %leader = arith.cmpi eq, %26, %c0_i32 : i32
      scf.if %leader {
        scf.for %stage = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
          %104 = cute.make_int_tuple(%stage) : (i32) -> !cute.int_tuple<"?">
          %105 = cute.add_offset(%full, %104) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%105, %c1_i32) : (!cute.ptr<i64, smem>, i32) -> ()
        }
        cute_nvgpu.arch.fence_mbarrier_init() : () -> ()
        cute_nvgpu.arch.mbarrier_arrive_expect_tx(%full, %c16384_i32) : (!cute.ptr<i64, smem>, i32) -> ()
        %86 = cute.slice(%47, %8) : !coord_tensor, !cute.coord<"(_,_,0)">
        %87 = cute.slice(%50, %8) : !memref_3, !cute.coord<"(_,_,0)">
        %88 = cute.atom.set_value(%loads, %full) {field = tma_bar} : (!loads, !cute.ptr<i64, smem>) -> !loads
        cute.copy(%88, %86, %87) : (!loads, !coord_tensor_3, !memref_6) -> ()
        %89 = cute.slice(%49, %8) : !coord_tensor_2, !cute.coord<"(_,_,0)">
        %90 = cute.slice(%51, %8) : !memref_4, !cute.coord<"(_,_,0)">
        %91 = cute.atom.set_value(%loads_1, %full) {field = tma_bar} : (!loads_3, !cute.ptr<i64, smem>) -> !loads_3
        cute.copy(%91, %89, %90) : (!loads_3, !coord_tensor_4, !memref_7) -> ()
        %full_9 = cute.add_offset(%full, %9) : (!cute.ptr<i64, smem>, !cute.int_tuple<"1">) -> !cute.ptr<i64, smem>
        cute_nvgpu.arch.mbarrier_arrive_expect_tx(%full_9, %c16384_i32) : (!cute.ptr<i64, smem>, i32) -> ()
        %92 = cute.slice(%47, %10) : !coord_tensor, !cute.coord<"(_,_,1)">
        %93 = cute.slice(%50, %10) : !memref_3, !cute.coord<"(_,_,1)">
        %94 = cute.atom.set_value(%loads, %full_9) {field = tma_bar} : (!loads, !cute.ptr<i64, smem>) -> !loads
        cute.copy(%94, %92, %93) : (!loads, !coord_tensor_5, !memref_6) -> ()
        %95 = cute.slice(%49, %10) : !coord_tensor_2, !cute.coord<"(_,_,1)">
        %96 = cute.slice(%51, %10) : !memref_4, !cute.coord<"(_,_,1)">
        %97 = cute.atom.set_value(%loads_1, %full_9) {field = tma_bar} : (!loads_3, !cute.ptr<i64, smem>) -> !loads_3
        cute.copy(%97, %95, %96) : (!loads_3, !coord_tensor_6, !memref_7) -> ()
        %full_10 = cute.add_offset(%full, %11) : (!cute.ptr<i64, smem>, !cute.int_tuple<"2">) -> !cute.ptr<i64, smem>
        cute_nvgpu.arch.mbarrier_arrive_expect_tx(%full_10, %c16384_i32) : (!cute.ptr<i64, smem>, i32) -> ()
        %98 = cute.slice(%47, %12) : !coord_tensor, !cute.coord<"(_,_,2)">
        %99 = cute.slice(%50, %12) : !memref_3, !cute.coord<"(_,_,2)">
        %100 = cute.atom.set_value(%loads, %full_10) {field = tma_bar} : (!loads, !cute.ptr<i64, smem>) -> !loads
        cute.copy(%100, %98, %99) : (!loads, !coord_tensor_7, !memref_6) -> ()
        %101 = cute.slice(%49, %12) : !coord_tensor_2, !cute.coord<"(_,_,2)">
        %102 = cute.slice(%51, %12) : !memref_4, !cute.coord<"(_,_,2)">
        %103 = cute.atom.set_value(%loads_1, %full_10) {field = tma_bar} : (!loads_3, !cute.ptr<i64, smem>) -> !loads_3
        cute.copy(%103, %101, %102) : (!loads_3, !coord_tensor_8, !memref_7) -> ()
      }
      cute_nvgpu.arch.barrier() : () -> ()
      %54 = cute.make_coord(%26) : (i32) -> !cute.coord<"?">
      %tA = cute.tiled.mma.partition_A(%5, %50, %54) : (!tiled_mma, !memref_3, !cute.coord<"?">) -> !tA
      %55 = cute.make_coord(%26) : (i32) -> !cute.coord<"?">
      %tB = cute.tiled.mma.partition_B(%5, %51, %55) : (!tiled_mma, !memref_4, !cute.coord<"?">) -> !tB
      %56 = cute.memref.alloca() : !memref_8
      %57 = cute.memref.alloca() : !memref_8
      %58 = cute.memref.alloca() : !memref_9
      %59 = cute.memref.alloca() : !memref_9
      cute_nvgpu.arch.mbarrier_wait(%full, %c0_i32) : (!cute.ptr<i64, smem>, i32) -> ()
      %60 = cute.slice(%tA, %13) : !tA, !cute.coord<"(_,_,_,0)">
      %source = cute.local_tile(%60, %14, %15) : (!memref_10, !cute.shape<"(1,8,4)">, !cute.coord<"(0,0,0)">) -> !source
      cute.copy(%16, %source, %56) : (!universal_copy, !source, !memref_8) -> ()
      %61 = cute.slice(%tB, %17) : !tB, !cute.coord<"(_,_,0,0)">
      cute.copy(%16, %61, %58) : (!universal_copy, !memref_11, !memref_9) -> ()
      %62:2 = scf.for %tile = %c0_i32 to %45 step %c1_i32 iter_args(%arg0 = %c0_i32, %arg1 = %c0_i32) -> (i32, i32) : i32 {
        %86 = arith.addi %arg1, %c1_i32 : i32
        %wraps_9 = arith.cmpi eq, %86, %c4_i32 : i32
        %87 = arith.addi %arg1, %c1_i32 : i32
        %next_slot = arith.select %wraps_9, %c0_i32, %87 : i32
        %88 = arith.extui %wraps_9 : i1 to i32
        %next_phase = arith.xori %arg0, %88 : i32
        %89 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,1,?)">
        %90 = cute.slice(%tB, %89) : !tB, !cute.coord<"(_,_,1,?)">
        cute.copy(%16, %90, %59) : (!universal_copy, !memref_11, !memref_9) -> ()
        %91 = cute.slice(%56, %8) : !memref_8, !cute.coord<"(_,_,0)">
        cute.gemm(%5, %41, %91, %58, %41) : (!tiled_mma, !sums, !memref_12, !memref_9, !sums) -> ()
        %92 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,2,?)">
        %93 = cute.slice(%tB, %92) : !tB, !cute.coord<"(_,_,2,?)">
        cute.copy(%16, %93, %58) : (!universal_copy, !memref_11, !memref_9) -> ()
        %94 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,_,?)">
        %95 = cute.slice(%tA, %94) : !tA, !cute.coord<"(_,_,_,?)">
        %source_10 = cute.local_tile(%95, %14, %18) : (!memref_10, !cute.shape<"(1,8,4)">, !cute.coord<"(0,0,1)">) -> !source_2
        cute.copy(%16, %source_10, %57) : (!universal_copy, !source_2, !memref_8) -> ()
        %96 = cute.slice(%56, %10) : !memref_8, !cute.coord<"(_,_,1)">
        cute.gemm(%5, %41, %96, %59, %41) : (!tiled_mma, !sums, !memref_13, !memref_9, !sums) -> ()
        %97 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,3,?)">
        %98 = cute.slice(%tB, %97) : !tB, !cute.coord<"(_,_,3,?)">
        cute.copy(%16, %98, %59) : (!universal_copy, !memref_11, !memref_9) -> ()
        %99 = cute.slice(%56, %12) : !memref_8, !cute.coord<"(_,_,2)">
        cute.gemm(%5, %41, %99, %58, %41) : (!tiled_mma, !sums, !memref_14, !memref_9, !sums) -> ()
        %100 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,4,?)">
        %101 = cute.slice(%tB, %100) : !tB, !cute.coord<"(_,_,4,?)">
        cute.copy(%16, %101, %58) : (!universal_copy, !memref_11, !memref_9) -> ()
        %102 = cute.slice(%56, %19) : !memref_8, !cute.coord<"(_,_,3)">
        cute.gemm(%5, %41, %102, %59, %41) : (!tiled_mma, !sums, !memref_13, !memref_9, !sums) -> ()
        %103 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,5,?)">
        %104 = cute.slice(%tB, %103) : !tB, !cute.coord<"(_,_,5,?)">
        cute.copy(%16, %104, %59) : (!universal_copy, !memref_11, !memref_9) -> ()
        %105 = cute.slice(%57, %8) : !memref_8, !cute.coord<"(_,_,0)">
        cute.gemm(%5, %41, %105, %58, %41) : (!tiled_mma, !sums, !memref_12, !memref_9, !sums) -> ()
        %106 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,6,?)">
        %107 = cute.slice(%tB, %106) : !tB, !cute.coord<"(_,_,6,?)">
        cute.copy(%16, %107, %58) : (!universal_copy, !memref_11, !memref_9) -> ()
        %108 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,_,?)">
        %109 = cute.slice(%tA, %108) : !tA, !cute.coord<"(_,_,_,?)">
        %source_11 = cute.local_tile(%109, %14, %20) : (!memref_10, !cute.shape<"(1,8,4)">, !cute.coord<"(0,0,2)">) -> !source_3
        cute.copy(%16, %source_11, %56) : (!universal_copy, !source_3, !memref_8) -> ()
        %110 = cute.slice(%57, %10) : !memref_8, !cute.coord<"(_,_,1)">
        cute.gemm(%5, %41, %110, %59, %41) : (!tiled_mma, !sums, !memref_13, !memref_9, !sums) -> ()
        %111 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,7,?)">
        %112 = cute.slice(%tB, %111) : !tB, !cute.coord<"(_,_,7,?)">
        cute.copy(%16, %112, %59) : (!universal_copy, !memref_11, !memref_9) -> ()
        %113 = cute.slice(%57, %12) : !memref_8, !cute.coord<"(_,_,2)">
        cute.gemm(%5, %41, %113, %58, %41) : (!tiled_mma, !sums, !memref_14, !memref_9, !sums) -> ()
        %114 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,8,?)">
        %115 = cute.slice(%tB, %114) : !tB, !cute.coord<"(_,_,8,?)">
        cute.copy(%16, %115, %58) : (!universal_copy, !memref_11, !memref_9) -> ()
        %116 = cute.slice(%57, %19) : !memref_8, !cute.coord<"(_,_,3)">
        cute.gemm(%5, %41, %116, %59, %41) : (!tiled_mma, !sums, !memref_13, !memref_9, !sums) -> ()
        %117 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,9,?)">
        %118 = cute.slice(%tB, %117) : !tB, !cute.coord<"(_,_,9,?)">
        cute.copy(%16, %118, %59) : (!universal_copy, !memref_11, !memref_9) -> ()
        %119 = cute.slice(%56, %8) : !memref_8, !cute.coord<"(_,_,0)">
        cute.gemm(%5, %41, %119, %58, %41) : (!tiled_mma, !sums, !memref_12, !memref_9, !sums) -> ()
        %120 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,10,?)">
        %121 = cute.slice(%tB, %120) : !tB, !cute.coord<"(_,_,10,?)">
        cute.copy(%16, %121, %58) : (!universal_copy, !memref_11, !memref_9) -> ()
        %122 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,_,?)">
        %123 = cute.slice(%tA, %122) : !tA, !cute.coord<"(_,_,_,?)">
        %source_12 = cute.local_tile(%123, %14, %21) : (!memref_10, !cute.shape<"(1,8,4)">, !cute.coord<"(0,0,3)">) -> !source_2
        cute.copy(%16, %source_12, %57) : (!universal_copy, !source_2, !memref_8) -> ()
        %124 = cute.slice(%56, %10) : !memref_8, !cute.coord<"(_,_,1)">
        cute.gemm(%5, %41, %124, %59, %41) : (!tiled_mma, !sums, !memref_13, !memref_9, !sums) -> ()
        %125 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,11,?)">
        %126 = cute.slice(%tB, %125) : !tB, !cute.coord<"(_,_,11,?)">
        cute.copy(%16, %126, %59) : (!universal_copy, !memref_11, !memref_9) -> ()
        %127 = cute.slice(%56, %12) : !memref_8, !cute.coord<"(_,_,2)">
        cute.gemm(%5, %41, %127, %58, %41) : (!tiled_mma, !sums, !memref_14, !memref_9, !sums) -> ()
        %128 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,12,?)">
        %129 = cute.slice(%tB, %128) : !tB, !cute.coord<"(_,_,12,?)">
        cute.copy(%16, %129, %58) : (!universal_copy, !memref_11, !memref_9) -> ()
        %130 = cute.slice(%56, %19) : !memref_8, !cute.coord<"(_,_,3)">
        cute.gemm(%5, %41, %130, %59, %41) : (!tiled_mma, !sums, !memref_13, !memref_9, !sums) -> ()
        %131 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,13,?)">
        %132 = cute.slice(%tB, %131) : !tB, !cute.coord<"(_,_,13,?)">
        cute.copy(%16, %132, %59) : (!universal_copy, !memref_11, !memref_9) -> ()
        %133 = cute.slice(%57, %8) : !memref_8, !cute.coord<"(_,_,0)">
        cute.gemm(%5, %41, %133, %58, %41) : (!tiled_mma, !sums, !memref_12, !memref_9, !sums) -> ()
        cute_nvgpu.arch.barrier() : () -> ()
        scf.if %leader {
          %147 = arith.addi %tile, %c3_i32 : i32
          %148 = arith.addi %arg1, %c3_i32 : i32
          %149 = arith.andi %148, %c3_i32 : i32
          %150 = cute.make_int_tuple(%149) : (i32) -> !cute.int_tuple<"?">
          %full_14 = cute.add_offset(%full, %150) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_arrive_expect_tx(%full_14, %c16384_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %151 = cute.make_coord(%147) : (i32) -> !cute.coord<"(_,_,?)">
          %152 = cute.slice(%47, %151) : !coord_tensor, !cute.coord<"(_,_,?)">
          %153 = cute.make_coord(%149) : (i32) -> !cute.coord<"(_,_,?)">
          %154 = cute.slice(%50, %153) : !memref_3, !cute.coord<"(_,_,?)">
          %155 = cute.atom.set_value(%loads, %full_14) {field = tma_bar} : (!loads, !cute.ptr<i64, smem>) -> !loads
          cute.copy(%155, %152, %154) : (!loads, !coord_tensor_9, !memref_6) -> ()
          %156 = cute.make_coord(%147) : (i32) -> !cute.coord<"(_,_,?)">
          %157 = cute.slice(%49, %156) : !coord_tensor_2, !cute.coord<"(_,_,?)">
          %158 = cute.make_coord(%149) : (i32) -> !cute.coord<"(_,_,?)">
          %159 = cute.slice(%51, %158) : !memref_4, !cute.coord<"(_,_,?)">
          %160 = cute.atom.set_value(%loads_1, %full_14) {field = tma_bar} : (!loads_3, !cute.ptr<i64, smem>) -> !loads_3
          cute.copy(%160, %157, %159) : (!loads_3, !coord_tensor_10, !memref_7) -> ()
        }
        %134 = cute.make_int_tuple(%next_slot) : (i32) -> !cute.int_tuple<"?">
        %135 = cute.add_offset(%full, %134) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
        cute_nvgpu.arch.mbarrier_wait(%135, %next_phase) : (!cute.ptr<i64, smem>, i32) -> ()
        %136 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,14,?)">
        %137 = cute.slice(%tB, %136) : !tB, !cute.coord<"(_,_,14,?)">
        cute.copy(%16, %137, %58) : (!universal_copy, !memref_11, !memref_9) -> ()
        %138 = cute.make_coord(%next_slot) : (i32) -> !cute.coord<"(_,_,_,?)">
        %139 = cute.slice(%tA, %138) : !tA, !cute.coord<"(_,_,_,?)">
        %source_13 = cute.local_tile(%139, %14, %15) : (!memref_10, !cute.shape<"(1,8,4)">, !cute.coord<"(0,0,0)">) -> !source
        cute.copy(%16, %source_13, %56) : (!universal_copy, !source, !memref_8) -> ()
        %140 = cute.slice(%57, %10) : !memref_8, !cute.coord<"(_,_,1)">
        cute.gemm(%5, %41, %140, %59, %41) : (!tiled_mma, !sums, !memref_13, !memref_9, !sums) -> ()
        %141 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,15,?)">
        %142 = cute.slice(%tB, %141) : !tB, !cute.coord<"(_,_,15,?)">
        cute.copy(%16, %142, %59) : (!universal_copy, !memref_11, !memref_9) -> ()
        %143 = cute.slice(%57, %12) : !memref_8, !cute.coord<"(_,_,2)">
        cute.gemm(%5, %41, %143, %58, %41) : (!tiled_mma, !sums, !memref_14, !memref_9, !sums) -> ()
        %144 = cute.make_coord(%next_slot) : (i32) -> !cute.coord<"(_,_,0,?)">
        %145 = cute.slice(%tB, %144) : !tB, !cute.coord<"(_,_,0,?)">
        cute.copy(%16, %145, %58) : (!universal_copy, !memref_11, !memref_9) -> ()
        %146 = cute.slice(%57, %19) : !memref_8, !cute.coord<"(_,_,3)">
        cute.gemm(%5, %41, %146, %59, %41) : (!tiled_mma, !sums, !memref_13, !memref_9, !sums) -> ()
        scf.yield %next_phase, %next_slot : i32, i32
      }
      %63 = arith.addi %62#1, %c1_i32 : i32
      %wraps = arith.cmpi eq, %63, %c4_i32 : i32
      %64 = arith.addi %62#1, %c1_i32 : i32
      %slot = arith.select %wraps, %c0_i32, %64 : i32
      %65 = arith.extui %wraps : i1 to i32
      %phase = arith.xori %62#0, %65 : i32
      %66 = cute.make_int_tuple(%slot) : (i32) -> !cute.int_tuple<"?">
      %67 = cute.add_offset(%full, %66) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
      cute_nvgpu.arch.mbarrier_wait(%67, %phase) : (!cute.ptr<i64, smem>, i32) -> ()
      %68 = arith.addi %slot, %c1_i32 : i32
      %wraps_3 = arith.cmpi eq, %68, %c4_i32 : i32
      %69 = arith.addi %slot, %c1_i32 : i32
      %slot_4 = arith.select %wraps_3, %c0_i32, %69 : i32
      %70 = arith.extui %wraps_3 : i1 to i32
      %phase_5 = arith.xori %phase, %70 : i32
      %71 = cute.make_int_tuple(%slot_4) : (i32) -> !cute.int_tuple<"?">
      %72 = cute.add_offset(%full, %71) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
      cute_nvgpu.arch.mbarrier_wait(%72, %phase_5) : (!cute.ptr<i64, smem>, i32) -> ()
      %73 = arith.addi %slot_4, %c1_i32 : i32
      %wraps_6 = arith.cmpi eq, %73, %c4_i32 : i32
      %74 = arith.addi %slot_4, %c1_i32 : i32
      %slot_7 = arith.select %wraps_6, %c0_i32, %74 : i32
      %75 = arith.extui %wraps_6 : i1 to i32
      %phase_8 = arith.xori %phase_5, %75 : i32
      %sums = cute.make_fragment_like(%41) : !sums -> !sums
      scf.for %i = %c0_i32 to %c128_i32 step %c1_i32 : i32 {
        %86 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %87 = cute.memref.load(%41, %86) : (!sums, !cute.coord<"?">) -> f32
        %88 = arith.addf %87, %cst fastmath<contract> : f32
        %89 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%sums, %89, %88) : (!sums, !cute.coord<"?">, f32) -> ()
      }
      %76 = cute.assume(%25#1) : (i32) -> !cute.i32<divby 4>
      %77 = cute.make_shape(%25#0, %76) : (i32, !cute.i32<divby 4>) -> !cute.shape<"(?,?{div=4})">
      %78 = cute.make_identity_layout(%77) : !cute.shape<"(?,?{div=4})"> -> !layout_3
      %79 = cute.make_view(%22, %78) : !coord_tensor_11
      %80 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %ids = cute.local_tile(%79, %3, %80) : (!coord_tensor_11, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !ids
      %81 = cute.memref.load(%ids, %23) : (!ids, !cute.coord<"16383">) -> !cute.int_tuple<"(?,?)">
      %82:2 = cute.get_scalars<{only_dynamic}> (%81) : !cute.int_tuple<"(?,?)">
      %83 = cute.make_int_tuple(%82#0, %82#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %84 = cute.assume(%25#1) : (i32) -> !cute.i32<divby 4>
      %85 = cute.make_int_tuple(%25#0, %84) : (i32, !cute.i32<divby 4>) -> !int_tuple
      %whole = cute.elem_less(%83, %85) : (!cute.int_tuple<"(?,?)">, !int_tuple) -> i1
      scf.if %whole {
        cute.copy(%16, %sums, %40) : (!universal_copy, !sums, !memref_2) -> ()
      } else {
        %86 = cute.make_coord(%26) : (i32) -> !cute.coord<"?">
        %xC = cute.tiled.mma.partition_C(%5, %ids, %86) : (!tiled_mma, !ids, !cute.coord<"?">) -> !xC
        %inside_9 = cute.make_fragment_like(%xC) [i1] : !xC -> !inside
        scf.for %i = %c0_i32 to %c128_i32 step %c1_i32 : i32 {
          %87 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %88 = cute.memref.load(%xC, %87) : (!xC, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %89:2 = cute.get_scalars<{only_dynamic}> (%88) : !cute.int_tuple<"(?,?)">
          %90 = cute.make_int_tuple(%89#0, %89#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %91 = cute.assume(%25#1) : (i32) -> !cute.i32<divby 4>
          %92 = cute.make_int_tuple(%25#0, %91) : (i32, !cute.i32<divby 4>) -> !int_tuple
          %93 = cute.elem_less(%90, %92) : (!cute.int_tuple<"(?,?)">, !int_tuple) -> i1
          %94 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%inside_9, %94, %93) : (!inside, !cute.coord<"?">, i1) -> ()
        }
        cute.copy(%16, %sums, %40, pred = %inside_9) : (!universal_copy, !sums, !memref_2, !inside) -> ()
      }
      gpu.return
    }
    gpu.func @sgemm_any(%mA: !mA, %mB: !mA, %mC: !mA) kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 2 : i32} {
      %0 = cute.get_layout(%mA) : !mA
      %1:3 = cute.get_scalars<{only_dynamic}> (%0) : !cute.layout<"(?,?):(?,1)">
      %2 = cute.static : !cute.int_tuple<"128">
      %3 = cute.static : !cute.int_tuple<"(0,0)">
      %4 = cute.static : !cute.shape<"(128,128)">
      %5 = cute.atom() : !universal_fma
      %6 = cute.make_tiled_mma(%5) : !tiled_mma_2
      %7 = cute.static : !cute.shape<"(128,16)">
      %8 = cute.atom() : !simt_async_copy
      %9 = cute.make_tiled_copy(%8) : !tiled_copy
      %10 = cute.static : !cute.coord<"(0,_,_)">
      %c0_i32 = arith.constant 0 : i32
      %c8_i32 = arith.constant 8 : i32
      %c1_i32 = arith.constant 1 : i32
      %11 = cute.static : !cute.coord<"(_,_,0)">
      %12 = cute.make_tiled_copy(%8) : !tiled_copy_2
      %13 = cute.static : !cute.coord<"(_,_,1)">
      %14 = cute.static : !cute.int_tuple<"16">
      %c2_i32 = arith.constant 2 : i32
      %c3_i32 = arith.constant 3 : i32
      %15 = cute.static : !cute.shape<"(128,2)">
      %16 = cute.atom() : !universal_copy
      %17 = cute.static : !cute.shape<"(128,1)">
      %18 = cute.static : !cute.coord<"(0,0)">
      %19 = cute.static : !cute.coord<"(0,1)">
      %20 = cute.static : !cute.coord<"16383">
      %c64_i32 = arith.constant 64 : i32
      %21 = cute.get_layout(%mC) : !mA
      %22:3 = cute.get_scalars<{only_dynamic}> (%21) : !cute.layout<"(?,?):(?,1)">
      %23 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %24 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %25 = cute.make_int_tuple(%22#1) : (i32) -> !cute.int_tuple<"?">
      %26 = cute.ceil_div(%25, %2) : (!cute.int_tuple<"?">, !cute.int_tuple<"128">) -> !cute.int_tuple<"?">
      %across = cute.get_scalars<{only_dynamic}> (%26) : !cute.int_tuple<"?">
      %row = arith.divui %24, %across : i32
      %column = arith.remui %24, %across : i32
      %27 = cute.make_shape(%1#0, %1#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %28 = cute.make_identity_layout(%27) : !cute.shape<"(?,?)"> -> !layout_4
      %29 = cute.make_view(%3, %28) : !coord_tensor_12
      %30 = cute.select<[1, 0]> (%mB) : !mA -> !memref_15
      %31 = cute.get_layout(%30) : !memref_15
      %32:3 = cute.get_scalars<{only_dynamic}> (%31) : !cute.layout<"(?,?):(1,?)">
      %33 = cute.make_shape(%32#0, %32#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %34 = cute.make_identity_layout(%33) : !cute.shape<"(?,?)"> -> !layout_4
      %35 = cute.make_view(%3, %34) : !coord_tensor_12
      %36 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %37 = cute.local_tile(%mC, %4, %36) : (!mA, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !memref_16
      %38 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %39 = cute.tiled.mma.partition_C(%6, %37, %38) : (!tiled_mma_2, !memref_16, !cute.coord<"?">) -> !memref_17
      %40 = cute.tiled.mma.make_fragment_C(%6, %39) : (!tiled_mma_2, !memref_17) -> !memref_18
      cute.clear(%40) : (!memref_18) -> ()
      %sA = cute.memref.alloc_smem() : !sA
      %sB = cute.memref.alloc_smem() : !sB
      %41 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,0)">
      %42 = cute.local_tile(%mA, %7, %41) : (!mA, !cute.shape<"(128,16)">, !cute.coord<"(?,0)">) -> !memref_19
      %43 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %part = cute.tiled.copy.partition_S(%9, %42, %43) : (!tiled_copy, !memref_19, !cute.coord<"?">) -> !part
      %44 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,0)">
      %45 = cute.local_tile(%29, %7, %44) : (!coord_tensor_12, !cute.shape<"(128,16)">, !cute.coord<"(?,0)">) -> !coord_tensor_4
      %46 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %ids = cute.tiled.copy.partition_S(%9, %45, %46) : (!tiled_copy, !coord_tensor_4, !cute.coord<"?">) -> !ids_2
      %flags = cute.memref.alloca() : !flags
      %first = cute.slice(%ids, %10) : !ids_2, !cute.coord<"(0,_,_)">
      %each = cute.slice(%flags, %10) : !flags, !cute.coord<"(0,_,_)">
      scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
        %88 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %89 = cute.memref.load(%first, %88) : (!first, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
        %90:2 = cute.get_scalars<{only_dynamic}> (%89) : !cute.int_tuple<"(?,?)">
        %91 = cute.make_int_tuple(%90#0, %90#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %92 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %93 = cute.elem_less(%91, %92) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        %94 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%each, %94, %93) : (!each, !cute.coord<"?">, i1) -> ()
      }
      %47 = cute.slice(%sA, %11) : !sA, !cute.coord<"(_,_,0)">
      %48 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %49 = cute.tiled.copy.partition_D(%9, %47, %48) : (!tiled_copy, !memref_20, !cute.coord<"?">) -> !memref_21
      cute.copy(%8, %part, %49, pred = %flags) : (!simt_async_copy, !part, !memref_21, !flags) -> ()
      %50 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,0)">
      %51 = cute.local_tile(%30, %7, %50) : (!memref_15, !cute.shape<"(128,16)">, !cute.coord<"(?,0)">) -> !memref_22
      %52 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %part_0 = cute.tiled.copy.partition_S(%12, %51, %52) : (!tiled_copy_2, !memref_22, !cute.coord<"?">) -> !part_2
      %53 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,0)">
      %54 = cute.local_tile(%35, %7, %53) : (!coord_tensor_12, !cute.shape<"(128,16)">, !cute.coord<"(?,0)">) -> !coord_tensor_4
      %55 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %ids_1 = cute.tiled.copy.partition_S(%12, %54, %55) : (!tiled_copy_2, !coord_tensor_4, !cute.coord<"?">) -> !ids_3
      %flags_2 = cute.memref.alloca() : !flags_2
      %first_3 = cute.slice(%ids_1, %10) : !ids_3, !cute.coord<"(0,_,_)">
      %each_4 = cute.slice(%flags_2, %10) : !flags_2, !cute.coord<"(0,_,_)">
      scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
        %88 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %89 = cute.memref.load(%first_3, %88) : (!first_2, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
        %90:2 = cute.get_scalars<{only_dynamic}> (%89) : !cute.int_tuple<"(?,?)">
        %91 = cute.make_int_tuple(%90#0, %90#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %92 = cute.make_int_tuple(%32#0, %32#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %93 = cute.elem_less(%91, %92) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        %94 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%each_4, %94, %93) : (!each_2, !cute.coord<"?">, i1) -> ()
      }
      %56 = cute.slice(%sB, %11) : !sB, !cute.coord<"(_,_,0)">
      %57 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %58 = cute.tiled.copy.partition_D(%12, %56, %57) : (!tiled_copy_2, !memref_23, !cute.coord<"?">) -> !memref_24
      cute.copy(%8, %part_0, %58, pred = %flags_2) : (!simt_async_copy, !part_2, !memref_24, !flags_2) -> ()
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      %59 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,1)">
      %60 = cute.local_tile(%mA, %7, %59) : (!mA, !cute.shape<"(128,16)">, !cute.coord<"(?,1)">) -> !memref_19
      %61 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %part_5 = cute.tiled.copy.partition_S(%9, %60, %61) : (!tiled_copy, !memref_19, !cute.coord<"?">) -> !part
      %62 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,1)">
      %63 = cute.local_tile(%29, %7, %62) : (!coord_tensor_12, !cute.shape<"(128,16)">, !cute.coord<"(?,1)">) -> !coord_tensor_6
      %64 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %ids_6 = cute.tiled.copy.partition_S(%9, %63, %64) : (!tiled_copy, !coord_tensor_6, !cute.coord<"?">) -> !ids_2
      %flags_7 = cute.memref.alloca() : !flags
      %first_8 = cute.slice(%ids_6, %10) : !ids_2, !cute.coord<"(0,_,_)">
      %each_9 = cute.slice(%flags_7, %10) : !flags, !cute.coord<"(0,_,_)">
      scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
        %88 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %89 = cute.memref.load(%first_8, %88) : (!first, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
        %90:2 = cute.get_scalars<{only_dynamic}> (%89) : !cute.int_tuple<"(?,?)">
        %91 = cute.make_int_tuple(%90#0, %90#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %92 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %93 = cute.elem_less(%91, %92) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        %94 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%each_9, %94, %93) : (!each, !cute.coord<"?">, i1) -> ()
      }
      %65 = cute.slice(%sA, %13) : !sA, !cute.coord<"(_,_,1)">
      %66 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %67 = cute.tiled.copy.partition_D(%9, %65, %66) : (!tiled_copy, !memref_20, !cute.coord<"?">) -> !memref_21
      cute.copy(%8, %part_5, %67, pred = %flags_7) : (!simt_async_copy, !part, !memref_21, !flags) -> ()
      %68 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,1)">
      %69 = cute.local_tile(%30, %7, %68) : (!memref_15, !cute.shape<"(128,16)">, !cute.coord<"(?,1)">) -> !memref_22
      %70 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %part_10 = cute.tiled.copy.partition_S(%12, %69, %70) : (!tiled_copy_2, !memref_22, !cute.coord<"?">) -> !part_2
      %71 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,1)">
      %72 = cute.local_tile(%35, %7, %71) : (!coord_tensor_12, !cute.shape<"(128,16)">, !cute.coord<"(?,1)">) -> !coord_tensor_6
      %73 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %ids_11 = cute.tiled.copy.partition_S(%12, %72, %73) : (!tiled_copy_2, !coord_tensor_6, !cute.coord<"?">) -> !ids_3
      %flags_12 = cute.memref.alloca() : !flags_2
      %first_13 = cute.slice(%ids_11, %10) : !ids_3, !cute.coord<"(0,_,_)">
      %each_14 = cute.slice(%flags_12, %10) : !flags_2, !cute.coord<"(0,_,_)">
      scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
        %88 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %89 = cute.memref.load(%first_13, %88) : (!first_2, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
        %90:2 = cute.get_scalars<{only_dynamic}> (%89) : !cute.int_tuple<"(?,?)">
        %91 = cute.make_int_tuple(%90#0, %90#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %92 = cute.make_int_tuple(%32#0, %32#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %93 = cute.elem_less(%91, %92) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        %94 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%each_14, %94, %93) : (!each_2, !cute.coord<"?">, i1) -> ()
      }
      %74 = cute.slice(%sB, %13) : !sB, !cute.coord<"(_,_,1)">
      %75 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %76 = cute.tiled.copy.partition_D(%12, %74, %75) : (!tiled_copy_2, !memref_23, !cute.coord<"?">) -> !memref_24
      cute.copy(%8, %part_10, %76, pred = %flags_12) : (!simt_async_copy, !part_2, !memref_24, !flags_2) -> ()
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      %77 = cute.make_int_tuple(%1#1) : (i32) -> !cute.int_tuple<"?">
      %78 = cute.ceil_div(%77, %14) : (!cute.int_tuple<"?">, !cute.int_tuple<"16">) -> !cute.int_tuple<"?">
      %79 = cute.get_scalars<{only_dynamic}> (%78) : !cute.int_tuple<"?">
      scf.for %tile = %c0_i32 to %79 step %c1_i32 : i32 {
        cute_nvgpu.arch.cp_async_wait_group() {n = 1 : i32} : () -> ()
        cute_nvgpu.arch.barrier() : () -> ()
        %ahead = arith.addi %tile, %c2_i32 : i32
        %88 = arith.floordivsi %ahead, %c3_i32 : i32
        %89 = arith.muli %88, %c3_i32 : i32
        %90 = arith.subi %ahead, %89 : i32
        %91 = cute.make_coord(%row, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %92 = cute.local_tile(%mA, %7, %91) : (!mA, !cute.shape<"(128,16)">, !cute.coord<"(?,?)">) -> !memref_19
        %93 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
        %part_16 = cute.tiled.copy.partition_S(%9, %92, %93) : (!tiled_copy, !memref_19, !cute.coord<"?">) -> !part
        %94 = cute.make_coord(%row, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %95 = cute.local_tile(%29, %7, %94) : (!coord_tensor_12, !cute.shape<"(128,16)">, !cute.coord<"(?,?)">) -> !coord_tensor_10
        %96 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
        %ids_17 = cute.tiled.copy.partition_S(%9, %95, %96) : (!tiled_copy, !coord_tensor_10, !cute.coord<"?">) -> !ids_2
        %flags_18 = cute.memref.alloca() : !flags
        %first_19 = cute.slice(%ids_17, %10) : !ids_2, !cute.coord<"(0,_,_)">
        %each_20 = cute.slice(%flags_18, %10) : !flags, !cute.coord<"(0,_,_)">
        scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %111 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %112 = cute.memref.load(%first_19, %111) : (!first, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %113:2 = cute.get_scalars<{only_dynamic}> (%112) : !cute.int_tuple<"(?,?)">
          %114 = cute.make_int_tuple(%113#0, %113#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %115 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %116 = cute.elem_less(%114, %115) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          %117 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%each_20, %117, %116) : (!each, !cute.coord<"?">, i1) -> ()
        }
        %97 = cute.make_coord(%90) : (i32) -> !cute.coord<"(_,_,?)">
        %98 = cute.slice(%sA, %97) : !sA, !cute.coord<"(_,_,?)">
        %99 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
        %100 = cute.tiled.copy.partition_D(%9, %98, %99) : (!tiled_copy, !memref_20, !cute.coord<"?">) -> !memref_21
        cute.copy(%8, %part_16, %100, pred = %flags_18) : (!simt_async_copy, !part, !memref_21, !flags) -> ()
        %101 = cute.make_coord(%column, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %102 = cute.local_tile(%30, %7, %101) : (!memref_15, !cute.shape<"(128,16)">, !cute.coord<"(?,?)">) -> !memref_22
        %103 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
        %part_21 = cute.tiled.copy.partition_S(%12, %102, %103) : (!tiled_copy_2, !memref_22, !cute.coord<"?">) -> !part_2
        %104 = cute.make_coord(%column, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %105 = cute.local_tile(%35, %7, %104) : (!coord_tensor_12, !cute.shape<"(128,16)">, !cute.coord<"(?,?)">) -> !coord_tensor_10
        %106 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
        %ids_22 = cute.tiled.copy.partition_S(%12, %105, %106) : (!tiled_copy_2, !coord_tensor_10, !cute.coord<"?">) -> !ids_3
        %flags_23 = cute.memref.alloca() : !flags_2
        %first_24 = cute.slice(%ids_22, %10) : !ids_3, !cute.coord<"(0,_,_)">
        %each_25 = cute.slice(%flags_23, %10) : !flags_2, !cute.coord<"(0,_,_)">
        scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %111 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %112 = cute.memref.load(%first_24, %111) : (!first_2, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %113:2 = cute.get_scalars<{only_dynamic}> (%112) : !cute.int_tuple<"(?,?)">
          %114 = cute.make_int_tuple(%113#0, %113#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %115 = cute.make_int_tuple(%32#0, %32#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %116 = cute.elem_less(%114, %115) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          %117 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%each_25, %117, %116) : (!each_2, !cute.coord<"?">, i1) -> ()
        }
        %107 = cute.make_coord(%90) : (i32) -> !cute.coord<"(_,_,?)">
        %108 = cute.slice(%sB, %107) : !sB, !cute.coord<"(_,_,?)">
        %109 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
        %110 = cute.tiled.copy.partition_D(%12, %108, %109) : (!tiled_copy_2, !memref_23, !cute.coord<"?">) -> !memref_24
        cute.copy(%8, %part_21, %110, pred = %flags_23) : (!simt_async_copy, !part_2, !memref_24, !flags_2) -> ()
        cute_nvgpu.arch.cp_async_commit_group() : () -> ()
        %stage = arith.remui %tile, %c3_i32 : i32
        scf.for %k = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %111 = cute.make_coord(%stage) : (i32) -> !cute.coord<"(_,_,?)">
          %112 = cute.slice(%sA, %111) : !sA, !cute.coord<"(_,_,?)">
          %113 = cute.make_coord(%stage) : (i32) -> !cute.coord<"(_,_,?)">
          %114 = cute.slice(%sB, %113) : !sB, !cute.coord<"(_,_,?)">
          %115 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %116 = cute.local_tile(%112, %15, %115) : (!memref_20, !cute.shape<"(128,2)">, !cute.coord<"(0,?)">) -> !memref_25
          %117 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
          %blockA = cute.tiled.mma.partition_A(%6, %116, %117) : (!tiled_mma_2, !memref_25, !cute.coord<"?">) -> !blockA
          %rA = cute.tiled.mma.make_fragment_A(%6, %blockA) : (!tiled_mma_2, !blockA) -> !rA
          cute.copy(%16, %blockA, %rA) : (!universal_copy, !blockA, !rA) -> ()
          %118 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %blockB = cute.local_tile(%114, %15, %118) : (!memref_23, !cute.shape<"(128,2)">, !cute.coord<"(0,?)">) -> !blockB
          %119 = cute.local_tile(%blockB, %17, %18) : (!blockB, !cute.shape<"(128,1)">, !cute.coord<"(0,0)">) -> !memref_26
          %120 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
          %columnB = cute.tiled.mma.partition_B(%6, %119, %120) : (!tiled_mma_2, !memref_26, !cute.coord<"?">) -> !columnB
          %rB = cute.tiled.mma.make_fragment_B(%6, %columnB) : (!tiled_mma_2, !columnB) -> !rB
          cute.copy(%16, %columnB, %rB) : (!universal_copy, !columnB, !rB) -> ()
          %121 = cute.slice(%rA, %11) : !rA, !cute.coord<"(_,_,0)">
          %122 = cute.slice(%rB, %11) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%6, %40, %121, %122, %40) : (!tiled_mma_2, !memref_18, !memref_27, !memref_28, !memref_18) -> ()
          %123 = cute.local_tile(%blockB, %17, %19) : (!blockB, !cute.shape<"(128,1)">, !cute.coord<"(0,1)">) -> !memref_26
          %124 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
          %columnB_26 = cute.tiled.mma.partition_B(%6, %123, %124) : (!tiled_mma_2, !memref_26, !cute.coord<"?">) -> !columnB
          %rB_27 = cute.tiled.mma.make_fragment_B(%6, %columnB_26) : (!tiled_mma_2, !columnB) -> !rB
          cute.copy(%16, %columnB_26, %rB_27) : (!universal_copy, !columnB, !rB) -> ()
          %125 = cute.slice(%rA, %13) : !rA, !cute.coord<"(_,_,1)">
          %126 = cute.slice(%rB_27, %11) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%6, %40, %125, %126, %40) : (!tiled_mma_2, !memref_18, !memref_27, !memref_28, !memref_18) -> ()
        }
      }
      cute_nvgpu.arch.cp_async_wait_group() {n = 0 : i32} : () -> ()
      %80 = cute.make_shape(%22#0, %22#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %81 = cute.make_identity_layout(%80) : !cute.shape<"(?,?)"> -> !layout_4
      %82 = cute.make_view(%3, %81) : !coord_tensor_12
      %83 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %ids_15 = cute.local_tile(%82, %4, %83) : (!coord_tensor_12, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !ids
      %84 = cute.memref.load(%ids_15, %20) : (!ids, !cute.coord<"16383">) -> !cute.int_tuple<"(?,?)">
      %85:2 = cute.get_scalars<{only_dynamic}> (%84) : !cute.int_tuple<"(?,?)">
      %86 = cute.make_int_tuple(%85#0, %85#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %87 = cute.make_int_tuple(%22#0, %22#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %whole = cute.elem_less(%86, %87) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
      scf.if %whole {
        cute.copy(%16, %40, %39) : (!universal_copy, !memref_18, !memref_17) -> ()
      } else {
        %88 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
        %xC = cute.tiled.mma.partition_C(%6, %ids_15, %88) : (!tiled_mma_2, !ids, !cute.coord<"?">) -> !xC_2
        %inside = cute.make_fragment_like(%xC) [i1] : !xC_2 -> !inside_2
        scf.for %i = %c0_i32 to %c64_i32 step %c1_i32 : i32 {
          %89 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %90 = cute.memref.load(%xC, %89) : (!xC_2, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %91:2 = cute.get_scalars<{only_dynamic}> (%90) : !cute.int_tuple<"(?,?)">
          %92 = cute.make_int_tuple(%91#0, %91#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %93 = cute.make_int_tuple(%22#0, %22#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %94 = cute.elem_less(%92, %93) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          %95 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%inside, %95, %94) : (!inside_2, !cute.coord<"?">, i1) -> ()
        }
        cute.copy(%16, %40, %39, pred = %inside) : (!universal_copy, !memref_18, !memref_17, !inside_2) -> ()
      }
      gpu.return
    }
  }
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
    %42 = cute.select<[1, 0]> (%vB) : !mC -> !memref_29
    %43:2 = cute_nvgpu.make_tma_load(%42, %6, %5) {l2 = 256 : i32} : (!memref_29, !layout_6, !cute.shape<"(128,16)">) -> (!loads_3, !loads_4)
    gpu.launch_func @kernels::@sgemm blocks in (%22, %c1_i32, %c1_i32) threads in (%c128_i32, %c1_i32, %c1_i32) : i32 args(%41#0 : !loads, %41#1 : !loads_2, %43#0 : !loads_3, %43#1 : !loads_4, %vC : !mC)
    gpu.launch_func @kernels::@sgemm_any blocks in (%22, %c1_i32, %c1_i32) threads in (%c256_i32, %c1_i32, %c1_i32) : i32 args(%mA : !mA, %mB : !mA, %mC : !mA) {cute.fallback}
    return
  }
}
