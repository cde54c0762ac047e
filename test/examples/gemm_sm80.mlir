!A = !cute.memref<f16, gmem, "(?,?):(?,1)">
!layout = !cute.layout<"(128,32,3):(32,1,4096)">
!universal_copy = !cute_nvgpu.atom.universal_copy<f16>
!tiled_copy = !cute.tiled_copy<!universal_copy, layout_copy_tv = <"((32,4),1):((4,1),0)">, tiler_mn = <"[4:1;32:1]">>
!ldsm = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>
!tiled_copy_2 = !cute.tiled_copy<!ldsm, layout_copy_tv = <"((4,8,2,2),((2,2,2),(1,1))):((64,1,16,0),((32,8,256),(32,512)))">, tiler_mn = <"[32:1;16:1]">>
!tiled_copy_3 = !cute.tiled_copy<!ldsm, layout_copy_tv = <"((4,8,2,2),((2,2),(2,1))):((64,1,0,8),((32,256),(16,512)))">, tiler_mn = <"[32:1;16:1]">>
!mma_sync = !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>
!tiled_mma = !cute.tiled_mma<!mma_sync, atom_layout_MNK = <"(2,2,1):(1,2,0)">, permutation_MNK = <"[32:1;32:1;16:1]">>
!layout_2 = !cute.layout<"(128,(64,2)):(64,(1,8192))">
!tiled_copy_4 = !cute.tiled_copy<!universal_copy, layout_copy_tv = <"((4,8,2,2),((2,2),(1,2))):((64,1,16,256),((32,8),(32,512)))">, tiler_mn = <"[32:1;32:1]">>
!tiled_copy_5 = !cute.tiled_copy<!universal_copy, layout_copy_tv = <"(128,1):(1,0)">, tiler_mn = <"[1:0;128:1]">>
!memref = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "24576:1">
!buffer = !cute.ptr<f16, smem, align<1024>, S<3,4,3>>
!memref_2 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,32,3):(32,1,4096)">
!memref_3 = !cute.memref<f16, gmem, "(128,32,?):(?,1,32)">
!memref_4 = !cute.memref<f16, gmem, "((1,1),32,1,?):((0,0),?{div=4},0,32)">
!memref_5 = !cute.memref<f16, smem, S<3,4,3>, "((1,1),32,1,3):((0,0),128,0,4096)">
!layout_3 = !cute.layout<"(?,?):(1@0,1@1)">
!coord_tensor = !cute.coord_tensor<"(0,0)", "(?,?):(1@0,1@1)">
!ids = !cute.coord_tensor<"(?{div=128},0)", "(128,32):(1@0,1@1)">
!coord_tensor_2 = !cute.coord_tensor<"(?,?)", "((1,1),32,1):((0,0),4@0,0)">
!flags = !cute.memref<i1, rmem, align<32>, "(1,32,1):(0,1,0)">
!from_a = !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,1),4,2,3):((1,0),1024,16,4096)">
!acc = !cute.memref<f32, rmem, align<32>, "((2,2),4,8):((1,2),4,16)">
!memref_6 = !cute.memref<f16, smem, S<3,4,3>, "((1,1),32,1):((0,0),128,0)">
!held = !cute.memref<f16, rmem, align<32>, "((1,1),32,1):((0,0),1,0)">
!memref_7 = !cute.memref<f16, gmem, "((1,1),32,1):((0,0),?{div=4},0)">
!memref_8 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,32):(32,1)">
!memref_9 = !cute.memref<f16, smem, align<4>, S<3,4,3>, "((2,2,2),4,2):((1,256,8),1024,16)">
!rA = !cute.memref<f16, rmem, align<32>, "((2,2,2),4,2):((1,2,4),8,32)">
!memref_10 = !cute.memref<f16, smem, align<4>, S<3,4,3>, "((2,2),8,2):((1,8),512,16)">
!rB = !cute.memref<f16, rmem, align<32>, "((2,2),8,2):((1,2),4,32)">
!to_a = !cute.memref<f16, rmem, align<32>, "((8,1),4,2):((1,0),8,32)">
!memref_11 = !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,1),4):((1,0),1024)">
!memref_12 = !cute.memref<f16, rmem, align<32>, "((8,1),4):((1,0),8)">
!memref_13 = !cute.memref<f16, rmem, align<32>, "((2,2,2),4):((1,2,4),8)">
!memref_14 = !cute.memref<f16, rmem, align<32>, "((2,2),8):((1,2),4)">
!sC = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,(64,2)):(64,(1,8192))">
!out = !cute.memref<f16, rmem, align<32>, "((2,2),4,8):((1,2),4,16)">
!memref_15 = !cute.memref<f16, rmem, align<32>, "((1,(4,2)),4,4):((0,(1,16)),4,32)">
!memref_16 = !cute.memref<f16, smem, align<4>, S<3,4,3>, "((1,(2,2,2)),4,(2,2)):((0,(1,512,16)),2048,(32,8192))">
!coord_tensor_3 = !cute.coord_tensor<"(?{div=128},?{div=128})", "(128,128):(1@0,1@1)">
!ids_2 = !cute.coord_tensor<"(?{div=128},?)", "((1,1),128,1):((0,0),1@0,0)">
!source = !cute.memref<f16, smem, S<3,4,3>, "((1,1),128,1):((0,0),64,0)">
!memref_17 = !cute.memref<f16, gmem, "(128,128):(?,1)">
!target = !cute.memref<f16, gmem, "((1,1),128,1):((0,0),?,0)">
!source_2 = !cute.memref<f16, smem, S<3,4,3>, "((1,1),(128,1)):((0,0),(64,0))">
!target_2 = !cute.memref<f16, gmem, "((1,1),(128,1)):((0,0),(?,0))">
!ids_3 = !cute.coord_tensor<"(?{div=128},?)", "((1,1),(128,1)):((0,0),(1@0,0))">
!memref_18 = !cute.memref<f16, smem, S<3,4,3>, "((1,1)):((0,0))">
!held_2 = !cute.memref<f16, rmem, "((1,1)):((0,0))">
!memref_19 = !cute.memref<f16, gmem, "((1,1)):((0,0))">
!flags_2 = !cute.memref<i1, rmem, "((1,1)):((0,0))">
!coord_tensor_4 = !cute.coord_tensor<"(?,?)", "((1,1)):((0,0))">
!A_2 = !cute.memref<f16, gmem, align<16>, "(?,?{div=8}):(?{div=8},1)">
!layout_4 = !cute.layout<"(?,?{div=8}):(?{div=8},1)">
!simt_async_copy = !cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>
!tiled_copy_6 = !cute.tiled_copy<!simt_async_copy, layout_copy_tv = <"((4,32),8):((256,1),32)">, tiler_mn = <"[32:1;32:1]">>
!tiled_copy_7 = !cute.tiled_copy<!universal_copy, layout_copy_tv = <"((16,8),8):((64,1),8)">, tiler_mn = <"[8:1;128:1]">>
!memref_20 = !cute.memref<f16, gmem, align<16>, "(128,32,?):(?{div=8},1,32)">
!memref_21 = !cute.memref<f16, gmem, align<16>, "((8,1),4,1,?):((1,0),?{div=256},0,32)">
!memref_22 = !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,1),4,1,3):((1,0),1024,0,4096)">
!layout_5 = !cute.layout<"(?,?{div=8}):(1@0,1@1)">
!coord_tensor_5 = !cute.coord_tensor<"(0,0)", "(?,?{div=8}):(1@0,1@1)">
!coord_tensor_6 = !cute.coord_tensor<"(?,?{div=8})", "((8,1),4,1):((1@1,0),32@0,0)">
!flags_3 = !cute.memref<i1, rmem, align<4>, "(1,4,1):(0,1,0)">
!int_tuple = !cute.int_tuple<"(?,?{div=8})">
!memref_23 = !cute.memref<f16, gmem, align<16>, "((8,1),4,1):((1,0),?{div=256},0)">
!memref_24 = !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,1),4,1):((1,0),1024,0)">
!ids_4 = !cute.coord_tensor<"(?,?{div=8})", "((1,8),16,1):((0,1@1),8@0,0)">
!source_3 = !cute.memref<f16, smem, align<16>, S<3,4,3>, "((1,8),16,1):((0,1),512,0)">
!memref_25 = !cute.memref<f16, gmem, align<16>, "(128,128):(?{div=8},1)">
!target_3 = !cute.memref<f16, gmem, align<16>, "((1,8),16,1):((0,1),?{div=64},0)">
!source_4 = !cute.memref<f16, smem, align<16>, S<3,4,3>, "((1,8),(16,1)):((0,1),(512,0))">
!target_4 = !cute.memref<f16, gmem, align<16>, "((1,8),(16,1)):((0,1),(?{div=64},0))">
!ids_5 = !cute.coord_tensor<"(?,?{div=8})", "((1,8),(16,1)):((0,1@1),(8@0,0))">
!memref_26 = !cute.memref<f16, smem, align<16>, S<3,4,3>, "((1,8)):((0,1))">
!held_3 = !cute.memref<f16, rmem, align<16>, "((1,8)):((0,1))">
!memref_27 = !cute.memref<f16, gmem, align<16>, "((1,8)):((0,1))">
!flags_4 = !cute.memref<i1, rmem, align<8>, "((1,8)):((0,1))">
!coord_tensor_7 = !cute.coord_tensor<"(?,?{div=8})", "((1,8)):((0,1@1))">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @gemm(%A: !A, %B: !A, %C: !A, %tiles: i32, %tiles_0: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %0 = cute.get_layout(%C) : !A
      %1:3 = cute.get_scalars<{only_dynamic}> (%0) : !cute.layout<"(?,?):(?,1)">
      %2 = cute.get_layout(%B) : !A
      %3:3 = cute.get_scalars<{only_dynamic}> (%2) : !cute.layout<"(?,?):(?,1)">
      %4 = cute.get_layout(%A) : !A
      %5:3 = cute.get_scalars<{only_dynamic}> (%4) : !cute.layout<"(?,?):(?,1)">
      %c8_i32 = arith.constant 8 : i32
      %6 = cute.static : !layout
      %7 = cute.static : !cute.shape<"(128,32)">
      %8 = cute.atom() : !universal_copy
      %9 = cute.make_tiled_copy(%8) : !tiled_copy
      %10 = cute.static : !cute.int_tuple<"(0,0)">
      %c0_i32 = arith.constant 0 : i32
      %c32_i32 = arith.constant 32 : i32
      %c1_i32 = arith.constant 1 : i32
      %11 = cute.static : !cute.int_tuple<"12288">
      %12 = cute.atom() : !ldsm
      %13 = cute.make_tiled_copy(%12) : !tiled_copy_2
      %14 = cute.make_tiled_copy(%12) : !tiled_copy_3
      %15 = cute.static : !cute.shape<"((2,2),4,8)">
      %16 = cute.atom() : !mma_sync
      %17 = cute.make_tiled_mma(%16) : !tiled_mma
      %cst = arith.constant 0.000000e+00 : f32
      %18 = cute.static : !cute.int_tuple<"32">
      %19 = cute.static : !cute.coord<"(_,_,_,0)">
      %cst_1 = arith.constant 0.000000e+00 : f16
      %20 = cute.static : !cute.coord<"(_,_,_,1)">
      %c2_i32 = arith.constant 2 : i32
      %c3_i32 = arith.constant 3 : i32
      %21 = cute.static : !layout_2
      %22 = cute.make_tiled_copy(%8) : !tiled_copy_4
      %23 = cute.static : !cute.shape<"(128,128)">
      %24 = cute.make_tiled_copy(%8) : !tiled_copy_5
      %c128_i32 = arith.constant 128 : i32
      %25 = cute.static : !cute.coord<"0">
      %thread = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
      %26 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %per_group = arith.muli %tiles_0, %c8_i32 : i32
      %group = arith.divui %26, %per_group : i32
      %27 = arith.muli %group, %per_group : i32
      %inside = arith.subi %26, %27 : i32
      %first = arith.muli %group, %c8_i32 : i32
      %28 = arith.subi %tiles, %first : i32
      %rows = arith.minui %28, %c8_i32 : i32
      %column = arith.divui %inside, %rows : i32
      %29 = arith.muli %column, %rows : i32
      %30 = arith.subi %inside, %29 : i32
      %row = arith.addi %first, %30 : i32
      %31 = cute.memref.alloc_smem() : !memref
      %buffer = cute.get_iter(%31) : !memref
      %32 = cute.make_view(%buffer, %6) : !memref_2
      %33 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,_)">
      %34 = cute.local_tile(%A, %7, %33) : (!A, !cute.shape<"(128,32)">, !cute.coord<"(?,_)">) -> !memref_3
      %35 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %36 = cute.tiled.copy.partition_S(%9, %34, %35) : (!tiled_copy, !memref_3, !cute.coord<"?">) -> !memref_4
      %37 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %38 = cute.tiled.copy.partition_D(%9, %32, %37) : (!tiled_copy, !memref_2, !cute.coord<"?">) -> !memref_5
      %39 = cute.make_shape(%5#0, %5#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %40 = cute.make_identity_layout(%39) : !cute.shape<"(?,?)"> -> !layout_3
      %41 = cute.make_view(%10, %40) : !coord_tensor
      %42 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,0)">
      %ids = cute.local_tile(%41, %7, %42) : (!coord_tensor, !cute.shape<"(128,32)">, !cute.coord<"(?,0)">) -> !ids
      %43 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %44 = cute.tiled.copy.partition_S(%9, %ids, %43) : (!tiled_copy, !ids, !cute.coord<"?">) -> !coord_tensor_2
      %45 = cute.memref.alloca() : !flags
      scf.for %i = %c0_i32 to %c32_i32 step %c1_i32 : i32 {
        %98 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %99 = cute.memref.load(%44, %98) : (!coord_tensor_2, !cute.coord<"(0,?,0)">) -> !cute.int_tuple<"(?,?)">
        %100:2 = cute.get_scalars<{only_dynamic}> (%99) : !cute.int_tuple<"(?,?)">
        %101 = arith.cmpi slt, %100#0, %5#0 : i32
        %102 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%45, %102, %101) : (!flags, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %46 = cute.add_offset(%buffer, %11) : (!buffer, !cute.int_tuple<"12288">) -> !buffer
      %47 = cute.make_view(%46, %6) : !memref_2
      %48 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,_)">
      %49 = cute.local_tile(%B, %7, %48) : (!A, !cute.shape<"(128,32)">, !cute.coord<"(?,_)">) -> !memref_3
      %50 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %51 = cute.tiled.copy.partition_S(%9, %49, %50) : (!tiled_copy, !memref_3, !cute.coord<"?">) -> !memref_4
      %52 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %53 = cute.tiled.copy.partition_D(%9, %47, %52) : (!tiled_copy, !memref_2, !cute.coord<"?">) -> !memref_5
      %54 = cute.make_shape(%3#0, %3#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %55 = cute.make_identity_layout(%54) : !cute.shape<"(?,?)"> -> !layout_3
      %56 = cute.make_view(%10, %55) : !coord_tensor
      %57 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,0)">
      %ids_2 = cute.local_tile(%56, %7, %57) : (!coord_tensor, !cute.shape<"(128,32)">, !cute.coord<"(?,0)">) -> !ids
      %58 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %59 = cute.tiled.copy.partition_S(%9, %ids_2, %58) : (!tiled_copy, !ids, !cute.coord<"?">) -> !coord_tensor_2
      %60 = cute.memref.alloca() : !flags
      scf.for %i = %c0_i32 to %c32_i32 step %c1_i32 : i32 {
        %98 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %99 = cute.memref.load(%59, %98) : (!coord_tensor_2, !cute.coord<"(0,?,0)">) -> !cute.int_tuple<"(?,?)">
        %100:2 = cute.get_scalars<{only_dynamic}> (%99) : !cute.int_tuple<"(?,?)">
        %101 = arith.cmpi slt, %100#0, %3#0 : i32
        %102 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%60, %102, %101) : (!flags, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %61 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %from_a = cute.tiled.copy.partition_S(%13, %32, %61) : (!tiled_copy_2, !memref_2, !cute.coord<"?">) -> !from_a
      %62 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %from_b = cute.tiled.copy.partition_S(%14, %47, %62) : (!tiled_copy_3, !memref_2, !cute.coord<"?">) -> !from_a
      %acc = cute.tiled.mma.make_fragment_C(%17, %15) : (!tiled_mma, !cute.shape<"((2,2),4,8)">) -> !acc
      cute.fill(%acc, %cst) : (!acc, f32) -> ()
      %63 = cute.make_int_tuple(%5#1) : (i32) -> !cute.int_tuple<"?">
      %64 = cute.ceil_div(%63, %18) : (!cute.int_tuple<"?">, !cute.int_tuple<"32">) -> !cute.int_tuple<"?">
      %k_tiles = cute.get_scalars<{only_dynamic}> (%64) : !cute.int_tuple<"?">
      %last = arith.subi %k_tiles, %c1_i32 : i32
      %65 = arith.muli %last, %c32_i32 : i32
      %66 = arith.subi %5#1, %65 : i32
      %left = arith.minsi %66, %5#1 : i32
      %flags = cute.memref.alloca() : !flags
      scf.for %i = %c0_i32 to %c32_i32 step %c1_i32 : i32 {
        %98 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %99 = cute.memref.load(%45, %98) : (!flags, !cute.coord<"(0,?,0)">) -> i1
        %100 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %101 = cute.memref.load(%44, %100) : (!coord_tensor_2, !cute.coord<"(0,?,0)">) -> !cute.int_tuple<"(?,?)">
        %102:2 = cute.get_scalars<{only_dynamic}> (%101) : !cute.int_tuple<"(?,?)">
        %103 = arith.cmpi slt, %102#1, %left : i32
        %104 = arith.andi %99, %103 : i1
        %105 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%flags, %105, %104) : (!flags, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %67 = cute.slice(%38, %19) : !memref_5, !cute.coord<"(_,_,_,0)">
      %held = cute.make_fragment_like(%67) : !memref_6 -> !held
      cute.fill(%held, %cst_1) : (!held, f16) -> ()
      %68 = cute.make_coord(%last) : (i32) -> !cute.coord<"(_,_,_,?)">
      %69 = cute.slice(%36, %68) : !memref_4, !cute.coord<"(_,_,_,?)">
      cute.copy(%8, %69, %held, pred = %flags) : (!universal_copy, !memref_7, !held, !flags) -> ()
      %70 = cute.slice(%38, %19) : !memref_5, !cute.coord<"(_,_,_,0)">
      cute.copy(%8, %held, %70) : (!universal_copy, !held, !memref_6) -> ()
      %flags_3 = cute.memref.alloca() : !flags
      scf.for %i = %c0_i32 to %c32_i32 step %c1_i32 : i32 {
        %98 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %99 = cute.memref.load(%60, %98) : (!flags, !cute.coord<"(0,?,0)">) -> i1
        %100 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %101 = cute.memref.load(%59, %100) : (!coord_tensor_2, !cute.coord<"(0,?,0)">) -> !cute.int_tuple<"(?,?)">
        %102:2 = cute.get_scalars<{only_dynamic}> (%101) : !cute.int_tuple<"(?,?)">
        %103 = arith.cmpi slt, %102#1, %left : i32
        %104 = arith.andi %99, %103 : i1
        %105 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%flags_3, %105, %104) : (!flags, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %71 = cute.slice(%53, %19) : !memref_5, !cute.coord<"(_,_,_,0)">
      %held_4 = cute.make_fragment_like(%71) : !memref_6 -> !held
      cute.fill(%held_4, %cst_1) : (!held, f16) -> ()
      %72 = cute.make_coord(%last) : (i32) -> !cute.coord<"(_,_,_,?)">
      %73 = cute.slice(%51, %72) : !memref_4, !cute.coord<"(_,_,_,?)">
      cute.copy(%8, %73, %held_4, pred = %flags_3) : (!universal_copy, !memref_7, !held, !flags) -> ()
      %74 = cute.slice(%53, %19) : !memref_5, !cute.coord<"(_,_,_,0)">
      cute.copy(%8, %held_4, %74) : (!universal_copy, !held, !memref_6) -> ()
      %75 = arith.cmpi sgt, %k_tiles, %c1_i32 : i32
      scf.if %75 {
        %98 = cute.slice(%38, %19) : !memref_5, !cute.coord<"(_,_,_,0)">
        %held_10 = cute.make_fragment_like(%98) : !memref_6 -> !held
        cute.fill(%held_10, %cst_1) : (!held, f16) -> ()
        %99 = cute.slice(%36, %19) : !memref_4, !cute.coord<"(_,_,_,0)">
        cute.copy(%8, %99, %held_10, pred = %45) : (!universal_copy, !memref_7, !held, !flags) -> ()
        %100 = cute.slice(%38, %20) : !memref_5, !cute.coord<"(_,_,_,1)">
        cute.copy(%8, %held_10, %100) : (!universal_copy, !held, !memref_6) -> ()
        %101 = cute.slice(%53, %19) : !memref_5, !cute.coord<"(_,_,_,0)">
        %held_11 = cute.make_fragment_like(%101) : !memref_6 -> !held
        cute.fill(%held_11, %cst_1) : (!held, f16) -> ()
        %102 = cute.slice(%51, %19) : !memref_4, !cute.coord<"(_,_,_,0)">
        cute.copy(%8, %102, %held_11, pred = %60) : (!universal_copy, !memref_7, !held, !flags) -> ()
        %103 = cute.slice(%53, %20) : !memref_5, !cute.coord<"(_,_,_,1)">
        cute.copy(%8, %held_11, %103) : (!universal_copy, !held, !memref_6) -> ()
      }
      %76:2 = scf.for %i = %c0_i32 to %k_tiles step %c1_i32 iter_args(%arg0 = %c0_i32, %arg1 = %c2_i32) -> (i32, i32) : i32 {
        cute_nvgpu.arch.barrier() : () -> ()
        %ahead = arith.addi %i, %c2_i32 : i32
        %more = arith.cmpi ult, %ahead, %k_tiles : i32
        %98 = cute.slice(%38, %19) : !memref_5, !cute.coord<"(_,_,_,0)">
        %held_10 = cute.make_fragment_like(%98) : !memref_6 -> !held
        cute.fill(%held_10, %cst_1) : (!held, f16) -> ()
        %99 = cute.slice(%53, %19) : !memref_5, !cute.coord<"(_,_,_,0)">
        %held_11 = cute.make_fragment_like(%99) : !memref_6 -> !held
        cute.fill(%held_11, %cst_1) : (!held, f16) -> ()
        scf.if %more {
          %114 = arith.subi %ahead, %c1_i32 : i32
          %115 = arith.extui %114 : i32 to i64
          %116 = cute.make_coord(%115) : (i64) -> !cute.coord<"(_,_,_,?{i64})">
          %117 = cute.slice(%36, %116) : !memref_4, !cute.coord<"(_,_,_,?{i64})">
          cute.copy(%8, %117, %held_10, pred = %45) : (!universal_copy, !memref_7, !held, !flags) -> ()
          %118 = arith.subi %ahead, %c1_i32 : i32
          %119 = arith.extui %118 : i32 to i64
          %120 = cute.make_coord(%119) : (i64) -> !cute.coord<"(_,_,_,?{i64})">
          %121 = cute.slice(%51, %120) : !memref_4, !cute.coord<"(_,_,_,?{i64})">
          cute.copy(%8, %121, %held_11, pred = %60) : (!universal_copy, !memref_7, !held, !flags) -> ()
        }
        %100 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,_,?)">
        %101 = cute.slice(%32, %100) : !memref_2, !cute.coord<"(_,_,?)">
        %102 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
        %103 = cute.tiled.mma.partition_A(%17, %101, %102) : (!tiled_mma, !memref_8, !cute.coord<"?">) -> !memref_9
        %rA = cute.tiled.mma.make_fragment_A(%17, %103) : (!tiled_mma, !memref_9) -> !rA
        %104 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,_,?)">
        %105 = cute.slice(%47, %104) : !memref_2, !cute.coord<"(_,_,?)">
        %106 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
        %107 = cute.tiled.mma.partition_B(%17, %105, %106) : (!tiled_mma, !memref_8, !cute.coord<"?">) -> !memref_10
        %rB = cute.tiled.mma.make_fragment_B(%17, %107) : (!tiled_mma, !memref_10) -> !rB
        %to_a = cute.tiled.copy.retile(%13, %rA) : (!tiled_copy_2, !rA) -> !to_a
        %to_b = cute.tiled.copy.retile(%14, %rB) : (!tiled_copy_3, !rB) -> !to_a
        scf.for %j = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
          %114 = cute.make_coord(%j, %arg0) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
          %115 = cute.slice(%from_a, %114) : !from_a, !cute.coord<"(_,_,?,?)">
          %116 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %117 = cute.slice(%to_a, %116) : !to_a, !cute.coord<"(_,_,?)">
          cute.copy(%12, %115, %117) : (!ldsm, !memref_11, !memref_12) -> ()
          %118 = cute.make_coord(%j, %arg0) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
          %119 = cute.slice(%from_b, %118) : !from_a, !cute.coord<"(_,_,?,?)">
          %120 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %121 = cute.slice(%to_b, %120) : !to_a, !cute.coord<"(_,_,?)">
          cute.copy(%12, %119, %121) : (!ldsm, !memref_11, !memref_12) -> ()
        }
        scf.for %j = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
          %114 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %115 = cute.slice(%rA, %114) : !rA, !cute.coord<"(_,_,?)">
          %116 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %117 = cute.slice(%rB, %116) : !rB, !cute.coord<"(_,_,?)">
          cute.gemm(%17, %acc, %115, %117, %acc) : (!tiled_mma, !acc, !memref_13, !memref_14, !acc) -> ()
        }
        scf.if %more {
          %114 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,_,?)">
          %115 = cute.slice(%38, %114) : !memref_5, !cute.coord<"(_,_,_,?)">
          cute.copy(%8, %held_10, %115) : (!universal_copy, !held, !memref_6) -> ()
          %116 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,_,?)">
          %117 = cute.slice(%53, %116) : !memref_5, !cute.coord<"(_,_,_,?)">
          cute.copy(%8, %held_11, %117) : (!universal_copy, !held, !memref_6) -> ()
        }
        %108 = arith.addi %arg0, %c1_i32 : i32
        %109 = arith.cmpi eq, %108, %c3_i32 : i32
        %110 = arith.addi %arg0, %c1_i32 : i32
        %read = arith.select %109, %c0_i32, %110 : i32
        %111 = arith.addi %arg1, %c1_i32 : i32
        %112 = arith.cmpi eq, %111, %c3_i32 : i32
        %113 = arith.addi %arg1, %c1_i32 : i32
        %write = arith.select %112, %c0_i32, %113 : i32
        scf.yield %read, %write : i32, i32
      }
      cute_nvgpu.arch.barrier() : () -> ()
      %sC = cute.make_view(%buffer, %21) : !sC
      %out = cute.make_fragment_like(%acc) [f16] : !acc -> !out
      %77 = cute.memref.load_vec %acc : !acc
      %78 = arith.truncf %77 : vector<128xf32> to vector<128xf16>
      cute.memref.store_vec %78, %out : !out
      %79 = cute.tiled.copy.retile(%22, %out) : (!tiled_copy_4, !out) -> !memref_15
      %80 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %81 = cute.tiled.copy.partition_D(%22, %sC, %80) : (!tiled_copy_4, !sC, !cute.coord<"?">) -> !memref_16
      cute.copy(%8, %79, %81) : (!universal_copy, !memref_15, !memref_16) -> ()
      cute_nvgpu.arch.barrier() : () -> ()
      %82 = cute.make_shape(%1#0, %1#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %83 = cute.make_identity_layout(%82) : !cute.shape<"(?,?)"> -> !layout_3
      %84 = cute.make_view(%10, %83) : !coord_tensor
      %85 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %86 = cute.local_tile(%84, %23, %85) : (!coord_tensor, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !coord_tensor_3
      %87 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %ids_5 = cute.tiled.copy.partition_S(%24, %86, %87) : (!tiled_copy_5, !coord_tensor_3, !cute.coord<"?">) -> !ids_2
      %88 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %source = cute.tiled.copy.partition_S(%24, %sC, %88) : (!tiled_copy_5, !sC, !cute.coord<"?">) -> !source
      %89 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %90 = cute.local_tile(%C, %23, %89) : (!A, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !memref_17
      %91 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %target = cute.tiled.copy.partition_D(%24, %90, %91) : (!tiled_copy_5, !memref_17, !cute.coord<"?">) -> !target
      %source_6 = cute.group_modes<1, 3> (%source) : (!source) -> !source_2
      %target_7 = cute.group_modes<1, 3> (%target) : (!target) -> !target_2
      %ids_8 = cute.group_modes<1, 3> (%ids_5) : (!ids_2) -> !ids_3
      %92 = arith.muli %row, %c128_i32 : i32
      %93 = arith.addi %92, %c128_i32 : i32
      %94 = arith.cmpi sle, %93, %1#0 : i32
      %95 = arith.muli %column, %c128_i32 : i32
      %96 = arith.addi %95, %c128_i32 : i32
      %97 = arith.cmpi sle, %96, %1#1 : i32
      %inside_9 = arith.andi %94, %97 : i1
      scf.if %inside_9 {
        scf.for %i = %c0_i32 to %c128_i32 step %c1_i32 : i32 {
          %98 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?)">
          %99 = cute.slice(%source_6, %98) : !source_2, !cute.coord<"(_,?)">
          %held_10 = cute.make_fragment_like(%99) : !memref_18 -> !held_2
          %100 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?)">
          %101 = cute.slice(%source_6, %100) : !source_2, !cute.coord<"(_,?)">
          cute.copy(%8, %101, %held_10) : (!universal_copy, !memref_18, !held_2) -> ()
          %102 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?)">
          %103 = cute.slice(%target_7, %102) : !target_2, !cute.coord<"(_,?)">
          cute.copy(%8, %held_10, %103) : (!universal_copy, !held_2, !memref_19) -> ()
        }
      } else {
        scf.for %i = %c0_i32 to %c128_i32 step %c1_i32 : i32 {
          %98 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?)">
          %99 = cute.slice(%source_6, %98) : !source_2, !cute.coord<"(_,?)">
          %held_10 = cute.make_fragment_like(%99) : !memref_18 -> !held_2
          %flags_11 = cute.make_fragment_like(%held_10) [i1] : !held_2 -> !flags_2
          %100 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?)">
          %101 = cute.slice(%ids_8, %100) : !ids_3, !cute.coord<"(_,?)">
          %102 = cute.memref.load(%101, %25) : (!coord_tensor_4, !cute.coord<"0">) -> !cute.int_tuple<"(?,?)">
          %103:2 = cute.get_scalars<{only_dynamic}> (%102) : !cute.int_tuple<"(?,?)">
          %104 = cute.make_int_tuple(%103#0, %103#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %105 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %106 = cute.elem_less(%104, %105) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          cute.memref.store(%flags_11, %25, %106) : (!flags_2, !cute.coord<"0">, i1) -> ()
          %107 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?)">
          %108 = cute.slice(%source_6, %107) : !source_2, !cute.coord<"(_,?)">
          cute.copy(%8, %108, %held_10) : (!universal_copy, !memref_18, !held_2) -> ()
          %109 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?)">
          %110 = cute.slice(%target_7, %109) : !target_2, !cute.coord<"(_,?)">
          cute.copy(%8, %held_10, %110, pred = %flags_11) : (!universal_copy, !held_2, !memref_19, !flags_2) -> ()
        }
      }
      gpu.return
    }
    gpu.func @gemm_16(%A: !A_2, %B: !A_2, %C: !A_2, %tiles: i32, %tiles_0: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %0 = cute.get_layout(%C) : !A_2
      %1:3 = cute.get_scalars<{only_dynamic}> (%0) : !layout_4
      %2 = cute.get_layout(%B) : !A_2
      %3:3 = cute.get_scalars<{only_dynamic}> (%2) : !layout_4
      %4 = cute.get_layout(%A) : !A_2
      %5:3 = cute.get_scalars<{only_dynamic}> (%4) : !layout_4
      %c8_i32 = arith.constant 8 : i32
      %6 = cute.static : !layout
      %7 = cute.static : !cute.shape<"(128,32)">
      %8 = cute.atom() : !simt_async_copy
      %9 = cute.make_tiled_copy(%8) : !tiled_copy_6
      %10 = cute.static : !cute.int_tuple<"(0,0)">
      %c0_i32 = arith.constant 0 : i32
      %c4_i32 = arith.constant 4 : i32
      %c1_i32 = arith.constant 1 : i32
      %11 = cute.static : !cute.int_tuple<"12288">
      %12 = cute.atom() : !ldsm
      %13 = cute.make_tiled_copy(%12) : !tiled_copy_2
      %14 = cute.make_tiled_copy(%12) : !tiled_copy_3
      %15 = cute.static : !cute.shape<"((2,2),4,8)">
      %16 = cute.atom() : !mma_sync
      %17 = cute.make_tiled_mma(%16) : !tiled_mma
      %cst = arith.constant 0.000000e+00 : f32
      %18 = cute.static : !cute.int_tuple<"32">
      %c32_i32 = arith.constant 32 : i32
      %19 = cute.static : !cute.coord<"(_,_,_,0)">
      %20 = cute.static : !cute.coord<"(_,_,_,1)">
      %c2_i32 = arith.constant 2 : i32
      %c3_i32 = arith.constant 3 : i32
      %21 = cute.static : !layout_2
      %22 = cute.atom() : !universal_copy
      %23 = cute.make_tiled_copy(%22) : !tiled_copy_4
      %24 = cute.static : !cute.shape<"(128,128)">
      %25 = cute.make_tiled_copy(%22) : !tiled_copy_7
      %c128_i32 = arith.constant 128 : i32
      %c16_i32 = arith.constant 16 : i32
      %thread = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
      %26 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %per_group = arith.muli %tiles_0, %c8_i32 : i32
      %group = arith.divui %26, %per_group : i32
      %27 = arith.muli %group, %per_group : i32
      %inside = arith.subi %26, %27 : i32
      %first = arith.muli %group, %c8_i32 : i32
      %28 = arith.subi %tiles, %first : i32
      %rows = arith.minui %28, %c8_i32 : i32
      %column = arith.divui %inside, %rows : i32
      %29 = arith.muli %column, %rows : i32
      %30 = arith.subi %inside, %29 : i32
      %row = arith.addi %first, %30 : i32
      %31 = cute.memref.alloc_smem() : !memref
      %buffer = cute.get_iter(%31) : !memref
      %32 = cute.make_view(%buffer, %6) : !memref_2
      %33 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,_)">
      %34 = cute.local_tile(%A, %7, %33) : (!A_2, !cute.shape<"(128,32)">, !cute.coord<"(?,_)">) -> !memref_20
      %35 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %36 = cute.tiled.copy.partition_S(%9, %34, %35) : (!tiled_copy_6, !memref_20, !cute.coord<"?">) -> !memref_21
      %37 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %38 = cute.tiled.copy.partition_D(%9, %32, %37) : (!tiled_copy_6, !memref_2, !cute.coord<"?">) -> !memref_22
      %39 = cute.assume(%5#1) : (i32) -> !cute.i32<divby 8>
      %40 = cute.make_shape(%5#0, %39) : (i32, !cute.i32<divby 8>) -> !cute.shape<"(?,?{div=8})">
      %41 = cute.make_identity_layout(%40) : !cute.shape<"(?,?{div=8})"> -> !layout_5
      %42 = cute.make_view(%10, %41) : !coord_tensor_5
      %43 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,0)">
      %ids = cute.local_tile(%42, %7, %43) : (!coord_tensor_5, !cute.shape<"(128,32)">, !cute.coord<"(?,0)">) -> !ids
      %44 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %45 = cute.tiled.copy.partition_S(%9, %ids, %44) : (!tiled_copy_6, !ids, !cute.coord<"?">) -> !coord_tensor_6
      %46 = cute.memref.alloca() : !flags_3
      scf.for %i = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
        %100 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %101 = cute.memref.load(%45, %100) : (!coord_tensor_6, !cute.coord<"(0,?,0)">) -> !int_tuple
        %102:2 = cute.get_scalars<{only_dynamic}> (%101) : !int_tuple
        %103 = arith.cmpi slt, %102#0, %5#0 : i32
        %104 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%46, %104, %103) : (!flags_3, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %47 = cute.add_offset(%buffer, %11) : (!buffer, !cute.int_tuple<"12288">) -> !buffer
      %48 = cute.make_view(%47, %6) : !memref_2
      %49 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,_)">
      %50 = cute.local_tile(%B, %7, %49) : (!A_2, !cute.shape<"(128,32)">, !cute.coord<"(?,_)">) -> !memref_20
      %51 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %52 = cute.tiled.copy.partition_S(%9, %50, %51) : (!tiled_copy_6, !memref_20, !cute.coord<"?">) -> !memref_21
      %53 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %54 = cute.tiled.copy.partition_D(%9, %48, %53) : (!tiled_copy_6, !memref_2, !cute.coord<"?">) -> !memref_22
      %55 = cute.assume(%3#1) : (i32) -> !cute.i32<divby 8>
      %56 = cute.make_shape(%3#0, %55) : (i32, !cute.i32<divby 8>) -> !cute.shape<"(?,?{div=8})">
      %57 = cute.make_identity_layout(%56) : !cute.shape<"(?,?{div=8})"> -> !layout_5
      %58 = cute.make_view(%10, %57) : !coord_tensor_5
      %59 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,0)">
      %ids_1 = cute.local_tile(%58, %7, %59) : (!coord_tensor_5, !cute.shape<"(128,32)">, !cute.coord<"(?,0)">) -> !ids
      %60 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %61 = cute.tiled.copy.partition_S(%9, %ids_1, %60) : (!tiled_copy_6, !ids, !cute.coord<"?">) -> !coord_tensor_6
      %62 = cute.memref.alloca() : !flags_3
      scf.for %i = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
        %100 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %101 = cute.memref.load(%61, %100) : (!coord_tensor_6, !cute.coord<"(0,?,0)">) -> !int_tuple
        %102:2 = cute.get_scalars<{only_dynamic}> (%101) : !int_tuple
        %103 = arith.cmpi slt, %102#0, %3#0 : i32
        %104 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%62, %104, %103) : (!flags_3, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %63 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %from_a = cute.tiled.copy.partition_S(%13, %32, %63) : (!tiled_copy_2, !memref_2, !cute.coord<"?">) -> !from_a
      %64 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %from_b = cute.tiled.copy.partition_S(%14, %48, %64) : (!tiled_copy_3, !memref_2, !cute.coord<"?">) -> !from_a
      %acc = cute.tiled.mma.make_fragment_C(%17, %15) : (!tiled_mma, !cute.shape<"((2,2),4,8)">) -> !acc
      cute.fill(%acc, %cst) : (!acc, f32) -> ()
      %65 = cute.assume(%5#1) : (i32) -> !cute.i32<divby 8>
      %66 = cute.make_int_tuple(%65) : (!cute.i32<divby 8>) -> !cute.int_tuple<"?{div=8}">
      %67 = cute.ceil_div(%66, %18) : (!cute.int_tuple<"?{div=8}">, !cute.int_tuple<"32">) -> !cute.int_tuple<"?">
      %k_tiles = cute.get_scalars<{only_dynamic}> (%67) : !cute.int_tuple<"?">
      %last = arith.subi %k_tiles, %c1_i32 : i32
      %68 = arith.muli %last, %c32_i32 : i32
      %69 = arith.subi %5#1, %68 : i32
      %left = arith.minsi %69, %5#1 : i32
      %flags = cute.memref.alloca() : !flags_3
      scf.for %i = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
        %100 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %101 = cute.memref.load(%46, %100) : (!flags_3, !cute.coord<"(0,?,0)">) -> i1
        %102 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %103 = cute.memref.load(%45, %102) : (!coord_tensor_6, !cute.coord<"(0,?,0)">) -> !int_tuple
        %104:2 = cute.get_scalars<{only_dynamic}> (%103) : !int_tuple
        %105 = arith.cmpi slt, %104#1, %left : i32
        %106 = arith.andi %101, %105 : i1
        %107 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%flags, %107, %106) : (!flags_3, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %70 = cute.make_coord(%last) : (i32) -> !cute.coord<"(_,_,_,?)">
      %71 = cute.slice(%36, %70) : !memref_21, !cute.coord<"(_,_,_,?)">
      %72 = cute.slice(%38, %19) : !memref_22, !cute.coord<"(_,_,_,0)">
      cute.copy(%8, %71, %72, pred = %flags) : (!simt_async_copy, !memref_23, !memref_24, !flags_3) -> ()
      %flags_2 = cute.memref.alloca() : !flags_3
      scf.for %i = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
        %100 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %101 = cute.memref.load(%62, %100) : (!flags_3, !cute.coord<"(0,?,0)">) -> i1
        %102 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %103 = cute.memref.load(%61, %102) : (!coord_tensor_6, !cute.coord<"(0,?,0)">) -> !int_tuple
        %104:2 = cute.get_scalars<{only_dynamic}> (%103) : !int_tuple
        %105 = arith.cmpi slt, %104#1, %left : i32
        %106 = arith.andi %101, %105 : i1
        %107 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%flags_2, %107, %106) : (!flags_3, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %73 = cute.make_coord(%last) : (i32) -> !cute.coord<"(_,_,_,?)">
      %74 = cute.slice(%52, %73) : !memref_21, !cute.coord<"(_,_,_,?)">
      %75 = cute.slice(%54, %19) : !memref_22, !cute.coord<"(_,_,_,0)">
      cute.copy(%8, %74, %75, pred = %flags_2) : (!simt_async_copy, !memref_23, !memref_24, !flags_3) -> ()
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      %76 = arith.cmpi sgt, %k_tiles, %c1_i32 : i32
      scf.if %76 {
        %100 = cute.slice(%36, %19) : !memref_21, !cute.coord<"(_,_,_,0)">
        %101 = cute.slice(%38, %20) : !memref_22, !cute.coord<"(_,_,_,1)">
        cute.copy(%8, %100, %101, pred = %46) : (!simt_async_copy, !memref_23, !memref_24, !flags_3) -> ()
        %102 = cute.slice(%52, %19) : !memref_21, !cute.coord<"(_,_,_,0)">
        %103 = cute.slice(%54, %20) : !memref_22, !cute.coord<"(_,_,_,1)">
        cute.copy(%8, %102, %103, pred = %62) : (!simt_async_copy, !memref_23, !memref_24, !flags_3) -> ()
      }
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      %77:2 = scf.for %i = %c0_i32 to %k_tiles step %c1_i32 iter_args(%arg0 = %c0_i32, %arg1 = %c2_i32) -> (i32, i32) : i32 {
        cute_nvgpu.arch.cp_async_wait_group() {n = 1 : i32} : () -> ()
        cute_nvgpu.arch.barrier() : () -> ()
        %ahead = arith.addi %i, %c2_i32 : i32
        %more = arith.cmpi ult, %ahead, %k_tiles : i32
        scf.if %more {
          %114 = arith.subi %ahead, %c1_i32 : i32
          %115 = arith.extui %114 : i32 to i64
          %116 = cute.make_coord(%115) : (i64) -> !cute.coord<"(_,_,_,?{i64})">
          %117 = cute.slice(%36, %116) : !memref_21, !cute.coord<"(_,_,_,?{i64})">
          %118 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,_,?)">
          %119 = cute.slice(%38, %118) : !memref_22, !cute.coord<"(_,_,_,?)">
          cute.copy(%8, %117, %119, pred = %46) : (!simt_async_copy, !memref_23, !memref_24, !flags_3) -> ()
          %120 = arith.subi %ahead, %c1_i32 : i32
          %121 = arith.extui %120 : i32 to i64
          %122 = cute.make_coord(%121) : (i64) -> !cute.coord<"(_,_,_,?{i64})">
          %123 = cute.slice(%52, %122) : !memref_21, !cute.coord<"(_,_,_,?{i64})">
          %124 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,_,?)">
          %125 = cute.slice(%54, %124) : !memref_22, !cute.coord<"(_,_,_,?)">
          cute.copy(%8, %123, %125, pred = %62) : (!simt_async_copy, !memref_23, !memref_24, !flags_3) -> ()
        }
        cute_nvgpu.arch.cp_async_commit_group() : () -> ()
        %100 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,_,?)">
        %101 = cute.slice(%32, %100) : !memref_2, !cute.coord<"(_,_,?)">
        %102 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
        %103 = cute.tiled.mma.partition_A(%17, %101, %102) : (!tiled_mma, !memref_8, !cute.coord<"?">) -> !memref_9
        %rA = cute.tiled.mma.make_fragment_A(%17, %103) : (!tiled_mma, !memref_9) -> !rA
        %104 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,_,?)">
        %105 = cute.slice(%48, %104) : !memref_2, !cute.coord<"(_,_,?)">
        %106 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
        %107 = cute.tiled.mma.partition_B(%17, %105, %106) : (!tiled_mma, !memref_8, !cute.coord<"?">) -> !memref_10
        %rB = cute.tiled.mma.make_fragment_B(%17, %107) : (!tiled_mma, !memref_10) -> !rB
        %to_a = cute.tiled.copy.retile(%13, %rA) : (!tiled_copy_2, !rA) -> !to_a
        %to_b = cute.tiled.copy.retile(%14, %rB) : (!tiled_copy_3, !rB) -> !to_a
        scf.for %j = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
          %114 = cute.make_coord(%j, %arg0) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
          %115 = cute.slice(%from_a, %114) : !from_a, !cute.coord<"(_,_,?,?)">
          %116 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %117 = cute.slice(%to_a, %116) : !to_a, !cute.coord<"(_,_,?)">
          cute.copy(%12, %115, %117) : (!ldsm, !memref_11, !memref_12) -> ()
          %118 = cute.make_coord(%j, %arg0) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
          %119 = cute.slice(%from_b, %118) : !from_a, !cute.coord<"(_,_,?,?)">
          %120 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %121 = cute.slice(%to_b, %120) : !to_a, !cute.coord<"(_,_,?)">
          cute.copy(%12, %119, %121) : (!ldsm, !memref_11, !memref_12) -> ()
        }
        scf.for %j = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
          %114 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %115 = cute.slice(%rA, %114) : !rA, !cute.coord<"(_,_,?)">
          %116 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %117 = cute.slice(%rB, %116) : !rB, !cute.coord<"(_,_,?)">
          cute.gemm(%17, %acc, %115, %117, %acc) : (!tiled_mma, !acc, !memref_13, !memref_14, !acc) -> ()
        }
        scf.if %more {
        }
        %108 = arith.addi %arg0, %c1_i32 : i32
        %109 = arith.cmpi eq, %108, %c3_i32 : i32
        %110 = arith.addi %arg0, %c1_i32 : i32
        %read = arith.select %109, %c0_i32, %110 : i32
        %111 = arith.addi %arg1, %c1_i32 : i32
        %112 = arith.cmpi eq, %111, %c3_i32 : i32
        %113 = arith.addi %arg1, %c1_i32 : i32
        %write = arith.select %112, %c0_i32, %113 : i32
        scf.yield %read, %write : i32, i32
      }
      cute_nvgpu.arch.cp_async_wait_group() {n = 0 : i32} : () -> ()
      cute_nvgpu.arch.barrier() : () -> ()
      %sC = cute.make_view(%buffer, %21) : !sC
      %out = cute.make_fragment_like(%acc) [f16] : !acc -> !out
      %78 = cute.memref.load_vec %acc : !acc
      %79 = arith.truncf %78 : vector<128xf32> to vector<128xf16>
      cute.memref.store_vec %79, %out : !out
      %80 = cute.tiled.copy.retile(%23, %out) : (!tiled_copy_4, !out) -> !memref_15
      %81 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %82 = cute.tiled.copy.partition_D(%23, %sC, %81) : (!tiled_copy_4, !sC, !cute.coord<"?">) -> !memref_16
      cute.copy(%22, %80, %82) : (!universal_copy, !memref_15, !memref_16) -> ()
      cute_nvgpu.arch.barrier() : () -> ()
      %83 = cute.assume(%1#1) : (i32) -> !cute.i32<divby 8>
      %84 = cute.make_shape(%1#0, %83) : (i32, !cute.i32<divby 8>) -> !cute.shape<"(?,?{div=8})">
      %85 = cute.make_identity_layout(%84) : !cute.shape<"(?,?{div=8})"> -> !layout_5
      %86 = cute.make_view(%10, %85) : !coord_tensor_5
      %87 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %88 = cute.local_tile(%86, %24, %87) : (!coord_tensor_5, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !coord_tensor_3
      %89 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %ids_3 = cute.tiled.copy.partition_S(%25, %88, %89) : (!tiled_copy_7, !coord_tensor_3, !cute.coord<"?">) -> !ids_4
      %90 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %source = cute.tiled.copy.partition_S(%25, %sC, %90) : (!tiled_copy_7, !sC, !cute.coord<"?">) -> !source_3
      %91 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %92 = cute.local_tile(%C, %24, %91) : (!A_2, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !memref_25
      %93 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %target = cute.tiled.copy.partition_D(%25, %92, %93) : (!tiled_copy_7, !memref_25, !cute.coord<"?">) -> !target_3
      %source_4 = cute.group_modes<1, 3> (%source) : (!source_3) -> !source_4
      %target_5 = cute.group_modes<1, 3> (%target) : (!target_3) -> !target_4
      %ids_6 = cute.group_modes<1, 3> (%ids_3) : (!ids_4) -> !ids_5
      %94 = arith.muli %row, %c128_i32 : i32
      %95 = arith.addi %94, %c128_i32 : i32
      %96 = arith.cmpi sle, %95, %1#0 : i32
      %97 = arith.muli %column, %c128_i32 : i32
      %98 = arith.addi %97, %c128_i32 : i32
      %99 = arith.cmpi sle, %98, %1#1 : i32
      %inside_7 = arith.andi %96, %99 : i1
      scf.if %inside_7 {
        scf.for %i = %c0_i32 to %c16_i32 step %c1_i32 : i32 {
          %100 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?)">
          %101 = cute.slice(%source_4, %100) : !source_4, !cute.coord<"(_,?)">
          %held = cute.make_fragment_like(%101) : !memref_26 -> !held_3
          %102 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?)">
          %103 = cute.slice(%source_4, %102) : !source_4, !cute.coord<"(_,?)">
          cute.copy(%22, %103, %held) : (!universal_copy, !memref_26, !held_3) -> ()
          %104 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?)">
          %105 = cute.slice(%target_5, %104) : !target_4, !cute.coord<"(_,?)">
          cute.copy(%22, %held, %105) : (!universal_copy, !held_3, !memref_27) -> ()
        }
      } else {
        scf.for %i = %c0_i32 to %c16_i32 step %c1_i32 : i32 {
          %100 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?)">
          %101 = cute.slice(%source_4, %100) : !source_4, !cute.coord<"(_,?)">
          %held = cute.make_fragment_like(%101) : !memref_26 -> !held_3
          %flags_8 = cute.make_fragment_like(%held) [i1] : !held_3 -> !flags_4
          scf.for %j = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
            %106 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?)">
            %107 = cute.slice(%ids_6, %106) : !ids_5, !cute.coord<"(_,?)">
            %108 = cute.make_coord(%j) : (i32) -> !cute.coord<"?">
            %109 = cute.memref.load(%107, %108) : (!coord_tensor_7, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
            %110:2 = cute.get_scalars<{only_dynamic}> (%109) : !cute.int_tuple<"(?,?)">
            %111 = cute.make_int_tuple(%110#0, %110#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
            %112 = cute.assume(%1#1) : (i32) -> !cute.i32<divby 8>
            %113 = cute.make_int_tuple(%1#0, %112) : (i32, !cute.i32<divby 8>) -> !int_tuple
            %114 = cute.elem_less(%111, %113) : (!cute.int_tuple<"(?,?)">, !int_tuple) -> i1
            %115 = cute.make_coord(%j) : (i32) -> !cute.coord<"?">
            cute.memref.store(%flags_8, %115, %114) : (!flags_4, !cute.coord<"?">, i1) -> ()
          }
          %102 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?)">
          %103 = cute.slice(%source_4, %102) : !source_4, !cute.coord<"(_,?)">
          cute.copy(%22, %103, %held) : (!universal_copy, !memref_26, !held_3) -> ()
          %104 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?)">
          %105 = cute.slice(%target_5, %104) : !target_4, !cute.coord<"(_,?)">
          cute.copy(%22, %held, %105, pred = %flags_8) : (!universal_copy, !held_3, !memref_27, !flags_4) -> ()
        }
      }
      gpu.return
    }
  }
  func.func @launch(%A: !A, %B: !A, %C: !A) {
    %0 = cute.static : !cute.int_tuple<"(128,128)">
    %c1_i32 = arith.constant 1 : i32
    %c128_i32 = arith.constant 128 : i32
    %1 = cute.get_layout(%B) : !A
    %2:3 = cute.get_scalars<{only_dynamic}> (%1) : !cute.layout<"(?,?):(?,1)">
    %3 = cute.get_layout(%A) : !A
    %4:3 = cute.get_scalars<{only_dynamic}> (%3) : !cute.layout<"(?,?):(?,1)">
    %5 = cute.get_layout(%C) : !A
    %6:3 = cute.get_scalars<{only_dynamic}> (%5) : !cute.layout<"(?,?):(?,1)">
    %7 = arith.cmpi eq, %4#1, %2#1 : i32
    cf.assert %7, "A and B must have the same K"
    %8 = arith.cmpi eq, %4#0, %6#0 : i32
    cf.assert %8, "A and C must have the same M"
    %9 = arith.cmpi eq, %2#0, %6#1 : i32
    cf.assert %9, "B and C must have the same N"
    %10 = cute.make_int_tuple(%6#0, %6#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
    %11 = cute.ceil_div(%10, %0) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(128,128)">) -> !cute.int_tuple<"(?,?)">
    %12:2 = cute.get_scalars<{only_dynamic}> (%11) : !cute.int_tuple<"(?,?)">
    %13 = arith.muli %12#0, %12#1 : i32
    gpu.launch_func @kernels::@gemm blocks in (%13, %c1_i32, %c1_i32) threads in (%c128_i32, %c1_i32, %c1_i32) : i32 args(%A : !A, %B : !A, %C : !A, %12#0 : i32, %12#1 : i32) {cute.variants = [@kernels::@gemm_16]}
    return
  }
}
