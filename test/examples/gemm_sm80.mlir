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
!ids_3 = !cute.coord_tensor<"(?,?{div=8})", "((1,8),16,1):((0,1@1),8@0,0)">
!source_2 = !cute.memref<f16, smem, align<16>, S<3,4,3>, "((1,8),16,1):((0,1),512,0)">
!memref_25 = !cute.memref<f16, gmem, align<16>, "(128,128):(?{div=8},1)">
!target_2 = !cute.memref<f16, gmem, align<16>, "((1,8),16,1):((0,1),?{div=64},0)">
!memref_26 = !cute.memref<f16, smem, align<16>, S<3,4,3>, "((1,8)):((0,1))">
!held_3 = !cute.memref<f16, rmem, align<16>, "((1,8)):((0,1))">
!memref_27 = !cute.memref<f16, gmem, align<16>, "((1,8)):((0,1))">
!flags_4 = !cute.memref<i1, rmem, align<8>, "((1,8)):((0,1))">
!coord_tensor_7 = !cute.coord_tensor<"(?,?{div=8})", "((1,8)):((0,1@1))">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // Multiply matrices of any alignment.
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
      %c31_i32 = arith.constant 31 : i32
      %c5_i32 = arith.constant 5 : i32
      %18 = cute.static : !cute.coord<"(_,_,_,0)">
      %cst_1 = arith.constant 0.000000e+00 : f16
      %19 = cute.static : !cute.coord<"(_,_,_,1)">
      %c2_i32 = arith.constant 2 : i32
      %c3_i32 = arith.constant 3 : i32
      %20 = cute.static : !layout_2
      %21 = cute.make_tiled_copy(%8) : !tiled_copy_4
      %22 = cute.static : !cute.shape<"(128,128)">
      %23 = cute.make_tiled_copy(%8) : !tiled_copy_5
      %c128_i32 = arith.constant 128 : i32
      %24 = cute.static : !cute.coord<"0">
      %tile = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %25 = arith.muli %tiles_0, %c8_i32 : i32
      %group = arith.divui %tile, %25 : i32
      %inside = arith.remui %tile, %25 : i32
      %first = arith.muli %group, %c8_i32 : i32
      %26 = arith.subi %tiles, %first : i32
      %rows = arith.minsi %26, %c8_i32 : i32
      %column = arith.divui %inside, %rows : i32
      %row = arith.remui %inside, %rows : i32
      %row_2 = arith.addi %first, %row : i32
      %thread = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
      // Two MMAs along N are adjacent in a warp, so that one ldmatrix serves both.
      %27 = cute.memref.alloc_smem() : !memref
      %buffer = cute.get_iter(%27) : !memref
      %28 = cute.make_view(%buffer, %6) : !memref_2
      %29 = cute.make_coord(%row_2) : (i32) -> !cute.coord<"(?,_)">
      %30 = cute.local_tile(%A, %7, %29) : (!A, !cute.shape<"(128,32)">, !cute.coord<"(?,_)">) -> !memref_3
      %31 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %32 = cute.tiled.copy.partition_S(%9, %30, %31) : (!tiled_copy, !memref_3, !cute.coord<"?">) -> !memref_4
      %33 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %34 = cute.tiled.copy.partition_D(%9, %28, %33) : (!tiled_copy, !memref_2, !cute.coord<"?">) -> !memref_5
      %35 = cute.make_shape(%5#0, %5#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %36 = cute.make_identity_layout(%35) : !cute.shape<"(?,?)"> -> !layout_3
      %37 = cute.make_view(%10, %36) : !coord_tensor
      %38 = cute.make_coord(%row_2) : (i32) -> !cute.coord<"(?,0)">
      %ids = cute.local_tile(%37, %7, %38) : (!coord_tensor, !cute.shape<"(128,32)">, !cute.coord<"(?,0)">) -> !ids
      %39 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %40 = cute.tiled.copy.partition_S(%9, %ids, %39) : (!tiled_copy, !ids, !cute.coord<"?">) -> !coord_tensor_2
      // One predicate per copy: is its row in bounds?
      %41 = cute.memref.alloca() : !flags
      scf.for %i = %c0_i32 to %c32_i32 step %c1_i32 : i32 {
        %93 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %94 = cute.memref.load(%40, %93) : (!coord_tensor_2, !cute.coord<"(0,?,0)">) -> !cute.int_tuple<"(?,?)">
        %95:2 = cute.get_scalars<{only_dynamic}> (%94) : !cute.int_tuple<"(?,?)">
        %96 = arith.cmpi slt, %95#0, %5#0 : i32
        %97 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%41, %97, %96) : (!flags, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %42 = cute.add_offset(%buffer, %11) : (!buffer, !cute.int_tuple<"12288">) -> !buffer
      %43 = cute.make_view(%42, %6) : !memref_2
      %44 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,_)">
      %45 = cute.local_tile(%B, %7, %44) : (!A, !cute.shape<"(128,32)">, !cute.coord<"(?,_)">) -> !memref_3
      %46 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %47 = cute.tiled.copy.partition_S(%9, %45, %46) : (!tiled_copy, !memref_3, !cute.coord<"?">) -> !memref_4
      %48 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %49 = cute.tiled.copy.partition_D(%9, %43, %48) : (!tiled_copy, !memref_2, !cute.coord<"?">) -> !memref_5
      %50 = cute.make_shape(%3#0, %3#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %51 = cute.make_identity_layout(%50) : !cute.shape<"(?,?)"> -> !layout_3
      %52 = cute.make_view(%10, %51) : !coord_tensor
      %53 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,0)">
      %ids_3 = cute.local_tile(%52, %7, %53) : (!coord_tensor, !cute.shape<"(128,32)">, !cute.coord<"(?,0)">) -> !ids
      %54 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %55 = cute.tiled.copy.partition_S(%9, %ids_3, %54) : (!tiled_copy, !ids, !cute.coord<"?">) -> !coord_tensor_2
      %56 = cute.memref.alloca() : !flags
      scf.for %i = %c0_i32 to %c32_i32 step %c1_i32 : i32 {
        %93 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %94 = cute.memref.load(%55, %93) : (!coord_tensor_2, !cute.coord<"(0,?,0)">) -> !cute.int_tuple<"(?,?)">
        %95:2 = cute.get_scalars<{only_dynamic}> (%94) : !cute.int_tuple<"(?,?)">
        %96 = arith.cmpi slt, %95#0, %3#0 : i32
        %97 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%56, %97, %96) : (!flags, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %57 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %from_a = cute.tiled.copy.partition_S(%13, %28, %57) : (!tiled_copy_2, !memref_2, !cute.coord<"?">) -> !from_a
      %58 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %from_b = cute.tiled.copy.partition_S(%14, %43, %58) : (!tiled_copy_3, !memref_2, !cute.coord<"?">) -> !from_a
      %acc = cute.tiled.mma.make_fragment_C(%17, %15) : (!tiled_mma, !cute.shape<"((2,2),4,8)">) -> !acc
      cute.fill(%acc, %cst) : (!acc, f32) -> ()
      %59 = arith.addi %5#1, %c31_i32 : i32
      %k_tiles = arith.shrui %59, %c5_i32 : i32
      %last = arith.subi %k_tiles, %c1_i32 : i32
      // zero if K is 0
      %60 = arith.muli %last, %c32_i32 : i32
      %61 = arith.subi %5#1, %60 : i32
      %left = arith.minsi %61, %5#1 : i32
      %flags = cute.memref.alloca() : !flags
      scf.for %i = %c0_i32 to %c32_i32 step %c1_i32 : i32 {
        %93 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %94 = cute.memref.load(%41, %93) : (!flags, !cute.coord<"(0,?,0)">) -> i1
        %95 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %96 = cute.memref.load(%40, %95) : (!coord_tensor_2, !cute.coord<"(0,?,0)">) -> !cute.int_tuple<"(?,?)">
        %97:2 = cute.get_scalars<{only_dynamic}> (%96) : !cute.int_tuple<"(?,?)">
        %98 = arith.cmpi slt, %97#1, %left : i32
        %99 = arith.andi %94, %98 : i1
        %100 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%flags, %100, %99) : (!flags, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %62 = cute.slice(%34, %18) : !memref_5, !cute.coord<"(_,_,_,0)">
      %held = cute.make_fragment_like(%62) : !memref_6 -> !held
      cute.fill(%held, %cst_1) : (!held, f16) -> ()
      %63 = cute.make_coord(%last) : (i32) -> !cute.coord<"(_,_,_,?)">
      %64 = cute.slice(%32, %63) : !memref_4, !cute.coord<"(_,_,_,?)">
      cute.copy(%8, %64, %held, pred = %flags) : (!universal_copy, !memref_7, !held, !flags) -> ()
      %65 = cute.slice(%34, %18) : !memref_5, !cute.coord<"(_,_,_,0)">
      cute.copy(%8, %held, %65) : (!universal_copy, !held, !memref_6) -> ()
      %flags_4 = cute.memref.alloca() : !flags
      scf.for %i = %c0_i32 to %c32_i32 step %c1_i32 : i32 {
        %93 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %94 = cute.memref.load(%56, %93) : (!flags, !cute.coord<"(0,?,0)">) -> i1
        %95 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %96 = cute.memref.load(%55, %95) : (!coord_tensor_2, !cute.coord<"(0,?,0)">) -> !cute.int_tuple<"(?,?)">
        %97:2 = cute.get_scalars<{only_dynamic}> (%96) : !cute.int_tuple<"(?,?)">
        %98 = arith.cmpi slt, %97#1, %left : i32
        %99 = arith.andi %94, %98 : i1
        %100 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%flags_4, %100, %99) : (!flags, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %66 = cute.slice(%49, %18) : !memref_5, !cute.coord<"(_,_,_,0)">
      %held_5 = cute.make_fragment_like(%66) : !memref_6 -> !held
      cute.fill(%held_5, %cst_1) : (!held, f16) -> ()
      %67 = cute.make_coord(%last) : (i32) -> !cute.coord<"(_,_,_,?)">
      %68 = cute.slice(%47, %67) : !memref_4, !cute.coord<"(_,_,_,?)">
      cute.copy(%8, %68, %held_5, pred = %flags_4) : (!universal_copy, !memref_7, !held, !flags) -> ()
      %69 = cute.slice(%49, %18) : !memref_5, !cute.coord<"(_,_,_,0)">
      cute.copy(%8, %held_5, %69) : (!universal_copy, !held, !memref_6) -> ()
      %70 = arith.cmpi ugt, %k_tiles, %c1_i32 : i32
      scf.if %70 {
        %93 = cute.slice(%34, %18) : !memref_5, !cute.coord<"(_,_,_,0)">
        %held_8 = cute.make_fragment_like(%93) : !memref_6 -> !held
        cute.fill(%held_8, %cst_1) : (!held, f16) -> ()
        %94 = cute.slice(%32, %18) : !memref_4, !cute.coord<"(_,_,_,0)">
        cute.copy(%8, %94, %held_8, pred = %41) : (!universal_copy, !memref_7, !held, !flags) -> ()
        %95 = cute.slice(%34, %19) : !memref_5, !cute.coord<"(_,_,_,1)">
        cute.copy(%8, %held_8, %95) : (!universal_copy, !held, !memref_6) -> ()
        %96 = cute.slice(%49, %18) : !memref_5, !cute.coord<"(_,_,_,0)">
        %held_9 = cute.make_fragment_like(%96) : !memref_6 -> !held
        cute.fill(%held_9, %cst_1) : (!held, f16) -> ()
        %97 = cute.slice(%47, %18) : !memref_4, !cute.coord<"(_,_,_,0)">
        cute.copy(%8, %97, %held_9, pred = %56) : (!universal_copy, !memref_7, !held, !flags) -> ()
        %98 = cute.slice(%49, %19) : !memref_5, !cute.coord<"(_,_,_,1)">
        cute.copy(%8, %held_9, %98) : (!universal_copy, !held, !memref_6) -> ()
      }
      %71:2 = scf.for %i = %c0_i32 to %k_tiles step %c1_i32 iter_args(%arg0 = %c0_i32, %arg1 = %c2_i32) -> (i32, i32) : i32 {
        cute_nvgpu.arch.barrier() : () -> ()
        // Refill the stage that was read in the previous step with the tile for ``stages - 1`` steps later.
        %ahead = arith.addi %i, %c2_i32 : i32
        %more = arith.cmpi ult, %ahead, %k_tiles : i32
        %93 = cute.slice(%34, %18) : !memref_5, !cute.coord<"(_,_,_,0)">
        %held_8 = cute.make_fragment_like(%93) : !memref_6 -> !held
        cute.fill(%held_8, %cst_1) : (!held, f16) -> ()
        %94 = cute.slice(%49, %18) : !memref_5, !cute.coord<"(_,_,_,0)">
        %held_9 = cute.make_fragment_like(%94) : !memref_6 -> !held
        cute.fill(%held_9, %cst_1) : (!held, f16) -> ()
        scf.if %more {
          %109 = arith.subi %ahead, %c1_i32 : i32
          %110 = cute.make_coord(%109) : (i32) -> !cute.coord<"(_,_,_,?)">
          %111 = cute.slice(%32, %110) : !memref_4, !cute.coord<"(_,_,_,?)">
          cute.copy(%8, %111, %held_8, pred = %41) : (!universal_copy, !memref_7, !held, !flags) -> ()
          %112 = arith.subi %ahead, %c1_i32 : i32
          %113 = cute.make_coord(%112) : (i32) -> !cute.coord<"(_,_,_,?)">
          %114 = cute.slice(%47, %113) : !memref_4, !cute.coord<"(_,_,_,?)">
          cute.copy(%8, %114, %held_9, pred = %56) : (!universal_copy, !memref_7, !held, !flags) -> ()
        }
        %95 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,_,?)">
        %96 = cute.slice(%28, %95) : !memref_2, !cute.coord<"(_,_,?)">
        %97 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
        %98 = cute.tiled.mma.partition_A(%17, %96, %97) : (!tiled_mma, !memref_8, !cute.coord<"?">) -> !memref_9
        %rA = cute.tiled.mma.make_fragment_A(%17, %98) : (!tiled_mma, !memref_9) -> !rA
        %99 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,_,?)">
        %100 = cute.slice(%43, %99) : !memref_2, !cute.coord<"(_,_,?)">
        %101 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
        %102 = cute.tiled.mma.partition_B(%17, %100, %101) : (!tiled_mma, !memref_8, !cute.coord<"?">) -> !memref_10
        %rB = cute.tiled.mma.make_fragment_B(%17, %102) : (!tiled_mma, !memref_10) -> !rB
        %to_a = cute.tiled.copy.retile(%13, %rA) : (!tiled_copy_2, !rA) -> !to_a
        %to_b = cute.tiled.copy.retile(%14, %rB) : (!tiled_copy_3, !rB) -> !to_a
        scf.for %j = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
          %109 = cute.make_coord(%j, %arg0) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
          %110 = cute.slice(%from_a, %109) : !from_a, !cute.coord<"(_,_,?,?)">
          %111 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %112 = cute.slice(%to_a, %111) : !to_a, !cute.coord<"(_,_,?)">
          cute.copy(%12, %110, %112) : (!ldsm, !memref_11, !memref_12) -> ()
          %113 = cute.make_coord(%j, %arg0) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
          %114 = cute.slice(%from_b, %113) : !from_a, !cute.coord<"(_,_,?,?)">
          %115 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %116 = cute.slice(%to_b, %115) : !to_a, !cute.coord<"(_,_,?)">
          cute.copy(%12, %114, %116) : (!ldsm, !memref_11, !memref_12) -> ()
        }
        scf.for %j = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
          %109 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %110 = cute.slice(%rA, %109) : !rA, !cute.coord<"(_,_,?)">
          %111 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %112 = cute.slice(%rB, %111) : !rB, !cute.coord<"(_,_,?)">
          cute.gemm(%17, %acc, %110, %112, %acc) : (!tiled_mma, !acc, !memref_13, !memref_14, !acc) -> ()
        }
        scf.if %more {
          %109 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,_,?)">
          %110 = cute.slice(%34, %109) : !memref_5, !cute.coord<"(_,_,_,?)">
          cute.copy(%8, %held_8, %110) : (!universal_copy, !held, !memref_6) -> ()
          %111 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,_,?)">
          %112 = cute.slice(%49, %111) : !memref_5, !cute.coord<"(_,_,_,?)">
          cute.copy(%8, %held_9, %112) : (!universal_copy, !held, !memref_6) -> ()
        }
        %103 = arith.addi %arg0, %c1_i32 : i32
        %104 = arith.cmpi eq, %103, %c3_i32 : i32
        %105 = arith.addi %arg0, %c1_i32 : i32
        %read = arith.select %104, %c0_i32, %105 : i32
        %106 = arith.addi %arg1, %c1_i32 : i32
        %107 = arith.cmpi eq, %106, %c3_i32 : i32
        %108 = arith.addi %arg1, %c1_i32 : i32
        %write = arith.select %107, %c0_i32, %108 : i32
        scf.yield %read, %write : i32, i32
      }
      cute_nvgpu.arch.barrier() : () -> ()
      %sC = cute.make_view(%buffer, %20) : !sC
      %out = cute.make_fragment_like(%acc) [f16] : !acc -> !out
      %72 = cute.memref.load_vec %acc : !acc
      %73 = arith.truncf %72 : vector<128xf32> to vector<128xf16>
      cute.memref.store_vec %73, %out : !out
      %74 = cute.tiled.copy.retile(%21, %out) : (!tiled_copy_4, !out) -> !memref_15
      %75 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %76 = cute.tiled.copy.partition_D(%21, %sC, %75) : (!tiled_copy_4, !sC, !cute.coord<"?">) -> !memref_16
      cute.copy(%8, %74, %76) : (!universal_copy, !memref_15, !memref_16) -> ()
      cute_nvgpu.arch.barrier() : () -> ()
      %77 = cute.make_shape(%1#0, %1#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %78 = cute.make_identity_layout(%77) : !cute.shape<"(?,?)"> -> !layout_3
      %79 = cute.make_view(%10, %78) : !coord_tensor
      %80 = cute.make_coord(%row_2, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %81 = cute.local_tile(%79, %22, %80) : (!coord_tensor, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !coord_tensor_3
      %82 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %ids_6 = cute.tiled.copy.partition_S(%23, %81, %82) : (!tiled_copy_5, !coord_tensor_3, !cute.coord<"?">) -> !ids_2
      %83 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %source = cute.tiled.copy.partition_S(%23, %sC, %83) : (!tiled_copy_5, !sC, !cute.coord<"?">) -> !source
      %84 = cute.make_coord(%row_2, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %85 = cute.local_tile(%C, %22, %84) : (!A, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !memref_17
      %86 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %target = cute.tiled.copy.partition_D(%23, %85, %86) : (!tiled_copy_5, !memref_17, !cute.coord<"?">) -> !target
      %87 = arith.muli %row_2, %c128_i32 : i32
      %88 = arith.addi %87, %c128_i32 : i32
      %89 = arith.cmpi sle, %88, %1#0 : i32
      %90 = arith.muli %column, %c128_i32 : i32
      %91 = arith.addi %90, %c128_i32 : i32
      %92 = arith.cmpi sle, %91, %1#1 : i32
      %inside_7 = arith.andi %89, %92 : i1
      scf.if %inside_7 {
        scf.for %i = %c0_i32 to %c128_i32 step %c1_i32 : i32 {
          %93 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %94 = cute.slice(%source, %93) : !source, !cute.coord<"(_,?,0)">
          %held_8 = cute.make_fragment_like(%94) : !memref_18 -> !held_2
          %95 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %96 = cute.slice(%source, %95) : !source, !cute.coord<"(_,?,0)">
          cute.copy(%8, %96, %held_8) : (!universal_copy, !memref_18, !held_2) -> ()
          %97 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %98 = cute.slice(%target, %97) : !target, !cute.coord<"(_,?,0)">
          cute.copy(%8, %held_8, %98) : (!universal_copy, !held_2, !memref_19) -> ()
        }
      } else {
        scf.for %i = %c0_i32 to %c128_i32 step %c1_i32 : i32 {
          %93 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %94 = cute.slice(%source, %93) : !source, !cute.coord<"(_,?,0)">
          %held_8 = cute.make_fragment_like(%94) : !memref_18 -> !held_2
          %flags_9 = cute.make_fragment_like(%held_8) [i1] : !held_2 -> !flags_2
          %95 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %96 = cute.slice(%ids_6, %95) : !ids_2, !cute.coord<"(_,?,0)">
          %97 = cute.memref.load(%96, %24) : (!coord_tensor_4, !cute.coord<"0">) -> !cute.int_tuple<"(?,?)">
          %98:2 = cute.get_scalars<{only_dynamic}> (%97) : !cute.int_tuple<"(?,?)">
          %99 = cute.make_int_tuple(%98#0, %98#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %100 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %101 = cute.elem_less(%99, %100) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          cute.memref.store(%flags_9, %24, %101) : (!flags_2, !cute.coord<"0">, i1) -> ()
          %102 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %103 = cute.slice(%source, %102) : !source, !cute.coord<"(_,?,0)">
          cute.copy(%8, %103, %held_8) : (!universal_copy, !memref_18, !held_2) -> ()
          %104 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %105 = cute.slice(%target, %104) : !target, !cute.coord<"(_,?,0)">
          cute.copy(%8, %held_8, %105, pred = %flags_9) : (!universal_copy, !held_2, !memref_19, !flags_2) -> ()
        }
      }
      gpu.return
    }
    // Multiply matrices whose rows are multiples of 16 bytes.
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
      %c31_i32 = arith.constant 31 : i32
      %c5_i32 = arith.constant 5 : i32
      %c32_i32 = arith.constant 32 : i32
      %18 = cute.static : !cute.coord<"(_,_,_,0)">
      %19 = cute.static : !cute.coord<"(_,_,_,1)">
      %c2_i32 = arith.constant 2 : i32
      %c3_i32 = arith.constant 3 : i32
      %20 = cute.static : !layout_2
      %21 = cute.atom() : !universal_copy
      %22 = cute.make_tiled_copy(%21) : !tiled_copy_4
      %23 = cute.static : !cute.shape<"(128,128)">
      %24 = cute.make_tiled_copy(%21) : !tiled_copy_7
      %c128_i32 = arith.constant 128 : i32
      %c16_i32 = arith.constant 16 : i32
      %tile = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %25 = arith.muli %tiles_0, %c8_i32 : i32
      %group = arith.divui %tile, %25 : i32
      %inside = arith.remui %tile, %25 : i32
      %first = arith.muli %group, %c8_i32 : i32
      %26 = arith.subi %tiles, %first : i32
      %rows = arith.minsi %26, %c8_i32 : i32
      %column = arith.divui %inside, %rows : i32
      %row = arith.remui %inside, %rows : i32
      %row_1 = arith.addi %first, %row : i32
      %thread = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
      // Two MMAs along N are adjacent in a warp, so that one ldmatrix serves both.
      %27 = cute.memref.alloc_smem() : !memref
      %buffer = cute.get_iter(%27) : !memref
      %28 = cute.make_view(%buffer, %6) : !memref_2
      %29 = cute.make_coord(%row_1) : (i32) -> !cute.coord<"(?,_)">
      %30 = cute.local_tile(%A, %7, %29) : (!A_2, !cute.shape<"(128,32)">, !cute.coord<"(?,_)">) -> !memref_20
      %31 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %32 = cute.tiled.copy.partition_S(%9, %30, %31) : (!tiled_copy_6, !memref_20, !cute.coord<"?">) -> !memref_21
      %33 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %34 = cute.tiled.copy.partition_D(%9, %28, %33) : (!tiled_copy_6, !memref_2, !cute.coord<"?">) -> !memref_22
      %35 = cute.assume(%5#1) : (i32) -> !cute.i32<divby 8>
      %36 = cute.make_shape(%5#0, %35) : (i32, !cute.i32<divby 8>) -> !cute.shape<"(?,?{div=8})">
      %37 = cute.make_identity_layout(%36) : !cute.shape<"(?,?{div=8})"> -> !layout_5
      %38 = cute.make_view(%10, %37) : !coord_tensor_5
      %39 = cute.make_coord(%row_1) : (i32) -> !cute.coord<"(?,0)">
      %ids = cute.local_tile(%38, %7, %39) : (!coord_tensor_5, !cute.shape<"(128,32)">, !cute.coord<"(?,0)">) -> !ids
      %40 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %41 = cute.tiled.copy.partition_S(%9, %ids, %40) : (!tiled_copy_6, !ids, !cute.coord<"?">) -> !coord_tensor_6
      // One predicate per copy: is its row in bounds?
      %42 = cute.memref.alloca() : !flags_3
      scf.for %i = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
        %94 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %95 = cute.memref.load(%41, %94) : (!coord_tensor_6, !cute.coord<"(0,?,0)">) -> !int_tuple
        %96:2 = cute.get_scalars<{only_dynamic}> (%95) : !int_tuple
        %97 = arith.cmpi slt, %96#0, %5#0 : i32
        %98 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%42, %98, %97) : (!flags_3, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %43 = cute.add_offset(%buffer, %11) : (!buffer, !cute.int_tuple<"12288">) -> !buffer
      %44 = cute.make_view(%43, %6) : !memref_2
      %45 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,_)">
      %46 = cute.local_tile(%B, %7, %45) : (!A_2, !cute.shape<"(128,32)">, !cute.coord<"(?,_)">) -> !memref_20
      %47 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %48 = cute.tiled.copy.partition_S(%9, %46, %47) : (!tiled_copy_6, !memref_20, !cute.coord<"?">) -> !memref_21
      %49 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %50 = cute.tiled.copy.partition_D(%9, %44, %49) : (!tiled_copy_6, !memref_2, !cute.coord<"?">) -> !memref_22
      %51 = cute.assume(%3#1) : (i32) -> !cute.i32<divby 8>
      %52 = cute.make_shape(%3#0, %51) : (i32, !cute.i32<divby 8>) -> !cute.shape<"(?,?{div=8})">
      %53 = cute.make_identity_layout(%52) : !cute.shape<"(?,?{div=8})"> -> !layout_5
      %54 = cute.make_view(%10, %53) : !coord_tensor_5
      %55 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,0)">
      %ids_2 = cute.local_tile(%54, %7, %55) : (!coord_tensor_5, !cute.shape<"(128,32)">, !cute.coord<"(?,0)">) -> !ids
      %56 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %57 = cute.tiled.copy.partition_S(%9, %ids_2, %56) : (!tiled_copy_6, !ids, !cute.coord<"?">) -> !coord_tensor_6
      %58 = cute.memref.alloca() : !flags_3
      scf.for %i = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
        %94 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %95 = cute.memref.load(%57, %94) : (!coord_tensor_6, !cute.coord<"(0,?,0)">) -> !int_tuple
        %96:2 = cute.get_scalars<{only_dynamic}> (%95) : !int_tuple
        %97 = arith.cmpi slt, %96#0, %3#0 : i32
        %98 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%58, %98, %97) : (!flags_3, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %59 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %from_a = cute.tiled.copy.partition_S(%13, %28, %59) : (!tiled_copy_2, !memref_2, !cute.coord<"?">) -> !from_a
      %60 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %from_b = cute.tiled.copy.partition_S(%14, %44, %60) : (!tiled_copy_3, !memref_2, !cute.coord<"?">) -> !from_a
      %acc = cute.tiled.mma.make_fragment_C(%17, %15) : (!tiled_mma, !cute.shape<"((2,2),4,8)">) -> !acc
      cute.fill(%acc, %cst) : (!acc, f32) -> ()
      %61 = arith.addi %5#1, %c31_i32 : i32
      %k_tiles = arith.shrui %61, %c5_i32 : i32
      %last = arith.subi %k_tiles, %c1_i32 : i32
      // zero if K is 0
      %62 = arith.muli %last, %c32_i32 : i32
      %63 = arith.subi %5#1, %62 : i32
      %left = arith.minsi %63, %5#1 : i32
      %flags = cute.memref.alloca() : !flags_3
      scf.for %i = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
        %94 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %95 = cute.memref.load(%42, %94) : (!flags_3, !cute.coord<"(0,?,0)">) -> i1
        %96 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %97 = cute.memref.load(%41, %96) : (!coord_tensor_6, !cute.coord<"(0,?,0)">) -> !int_tuple
        %98:2 = cute.get_scalars<{only_dynamic}> (%97) : !int_tuple
        %99 = arith.cmpi slt, %98#1, %left : i32
        %100 = arith.andi %95, %99 : i1
        %101 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%flags, %101, %100) : (!flags_3, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %64 = cute.make_coord(%last) : (i32) -> !cute.coord<"(_,_,_,?)">
      %65 = cute.slice(%32, %64) : !memref_21, !cute.coord<"(_,_,_,?)">
      %66 = cute.slice(%34, %18) : !memref_22, !cute.coord<"(_,_,_,0)">
      cute.copy(%8, %65, %66, pred = %flags) : (!simt_async_copy, !memref_23, !memref_24, !flags_3) -> ()
      %flags_3 = cute.memref.alloca() : !flags_3
      scf.for %i = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
        %94 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %95 = cute.memref.load(%58, %94) : (!flags_3, !cute.coord<"(0,?,0)">) -> i1
        %96 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %97 = cute.memref.load(%57, %96) : (!coord_tensor_6, !cute.coord<"(0,?,0)">) -> !int_tuple
        %98:2 = cute.get_scalars<{only_dynamic}> (%97) : !int_tuple
        %99 = arith.cmpi slt, %98#1, %left : i32
        %100 = arith.andi %95, %99 : i1
        %101 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%flags_3, %101, %100) : (!flags_3, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %67 = cute.make_coord(%last) : (i32) -> !cute.coord<"(_,_,_,?)">
      %68 = cute.slice(%48, %67) : !memref_21, !cute.coord<"(_,_,_,?)">
      %69 = cute.slice(%50, %18) : !memref_22, !cute.coord<"(_,_,_,0)">
      cute.copy(%8, %68, %69, pred = %flags_3) : (!simt_async_copy, !memref_23, !memref_24, !flags_3) -> ()
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      %70 = arith.cmpi ugt, %k_tiles, %c1_i32 : i32
      scf.if %70 {
        %94 = cute.slice(%32, %18) : !memref_21, !cute.coord<"(_,_,_,0)">
        %95 = cute.slice(%34, %19) : !memref_22, !cute.coord<"(_,_,_,1)">
        cute.copy(%8, %94, %95, pred = %42) : (!simt_async_copy, !memref_23, !memref_24, !flags_3) -> ()
        %96 = cute.slice(%48, %18) : !memref_21, !cute.coord<"(_,_,_,0)">
        %97 = cute.slice(%50, %19) : !memref_22, !cute.coord<"(_,_,_,1)">
        cute.copy(%8, %96, %97, pred = %58) : (!simt_async_copy, !memref_23, !memref_24, !flags_3) -> ()
      }
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      %71:2 = scf.for %i = %c0_i32 to %k_tiles step %c1_i32 iter_args(%arg0 = %c0_i32, %arg1 = %c2_i32) -> (i32, i32) : i32 {
        cute_nvgpu.arch.cp_async_wait_group() {n = 1 : i32} : () -> ()
        cute_nvgpu.arch.barrier() : () -> ()
        // Refill the stage that was read in the previous step with the tile for ``stages - 1`` steps later.
        %ahead = arith.addi %i, %c2_i32 : i32
        %more = arith.cmpi ult, %ahead, %k_tiles : i32
        scf.if %more {
          %108 = arith.subi %ahead, %c1_i32 : i32
          %109 = cute.make_coord(%108) : (i32) -> !cute.coord<"(_,_,_,?)">
          %110 = cute.slice(%32, %109) : !memref_21, !cute.coord<"(_,_,_,?)">
          %111 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,_,?)">
          %112 = cute.slice(%34, %111) : !memref_22, !cute.coord<"(_,_,_,?)">
          cute.copy(%8, %110, %112, pred = %42) : (!simt_async_copy, !memref_23, !memref_24, !flags_3) -> ()
          %113 = arith.subi %ahead, %c1_i32 : i32
          %114 = cute.make_coord(%113) : (i32) -> !cute.coord<"(_,_,_,?)">
          %115 = cute.slice(%48, %114) : !memref_21, !cute.coord<"(_,_,_,?)">
          %116 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,_,?)">
          %117 = cute.slice(%50, %116) : !memref_22, !cute.coord<"(_,_,_,?)">
          cute.copy(%8, %115, %117, pred = %58) : (!simt_async_copy, !memref_23, !memref_24, !flags_3) -> ()
        }
        cute_nvgpu.arch.cp_async_commit_group() : () -> ()
        %94 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,_,?)">
        %95 = cute.slice(%28, %94) : !memref_2, !cute.coord<"(_,_,?)">
        %96 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
        %97 = cute.tiled.mma.partition_A(%17, %95, %96) : (!tiled_mma, !memref_8, !cute.coord<"?">) -> !memref_9
        %rA = cute.tiled.mma.make_fragment_A(%17, %97) : (!tiled_mma, !memref_9) -> !rA
        %98 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,_,?)">
        %99 = cute.slice(%44, %98) : !memref_2, !cute.coord<"(_,_,?)">
        %100 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
        %101 = cute.tiled.mma.partition_B(%17, %99, %100) : (!tiled_mma, !memref_8, !cute.coord<"?">) -> !memref_10
        %rB = cute.tiled.mma.make_fragment_B(%17, %101) : (!tiled_mma, !memref_10) -> !rB
        %to_a = cute.tiled.copy.retile(%13, %rA) : (!tiled_copy_2, !rA) -> !to_a
        %to_b = cute.tiled.copy.retile(%14, %rB) : (!tiled_copy_3, !rB) -> !to_a
        scf.for %j = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
          %108 = cute.make_coord(%j, %arg0) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
          %109 = cute.slice(%from_a, %108) : !from_a, !cute.coord<"(_,_,?,?)">
          %110 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %111 = cute.slice(%to_a, %110) : !to_a, !cute.coord<"(_,_,?)">
          cute.copy(%12, %109, %111) : (!ldsm, !memref_11, !memref_12) -> ()
          %112 = cute.make_coord(%j, %arg0) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
          %113 = cute.slice(%from_b, %112) : !from_a, !cute.coord<"(_,_,?,?)">
          %114 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %115 = cute.slice(%to_b, %114) : !to_a, !cute.coord<"(_,_,?)">
          cute.copy(%12, %113, %115) : (!ldsm, !memref_11, !memref_12) -> ()
        }
        scf.for %j = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
          %108 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %109 = cute.slice(%rA, %108) : !rA, !cute.coord<"(_,_,?)">
          %110 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %111 = cute.slice(%rB, %110) : !rB, !cute.coord<"(_,_,?)">
          cute.gemm(%17, %acc, %109, %111, %acc) : (!tiled_mma, !acc, !memref_13, !memref_14, !acc) -> ()
        }
        scf.if %more {
        }
        %102 = arith.addi %arg0, %c1_i32 : i32
        %103 = arith.cmpi eq, %102, %c3_i32 : i32
        %104 = arith.addi %arg0, %c1_i32 : i32
        %read = arith.select %103, %c0_i32, %104 : i32
        %105 = arith.addi %arg1, %c1_i32 : i32
        %106 = arith.cmpi eq, %105, %c3_i32 : i32
        %107 = arith.addi %arg1, %c1_i32 : i32
        %write = arith.select %106, %c0_i32, %107 : i32
        scf.yield %read, %write : i32, i32
      }
      cute_nvgpu.arch.cp_async_wait_group() {n = 0 : i32} : () -> ()
      cute_nvgpu.arch.barrier() : () -> ()
      %sC = cute.make_view(%buffer, %20) : !sC
      %out = cute.make_fragment_like(%acc) [f16] : !acc -> !out
      %72 = cute.memref.load_vec %acc : !acc
      %73 = arith.truncf %72 : vector<128xf32> to vector<128xf16>
      cute.memref.store_vec %73, %out : !out
      %74 = cute.tiled.copy.retile(%22, %out) : (!tiled_copy_4, !out) -> !memref_15
      %75 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %76 = cute.tiled.copy.partition_D(%22, %sC, %75) : (!tiled_copy_4, !sC, !cute.coord<"?">) -> !memref_16
      cute.copy(%21, %74, %76) : (!universal_copy, !memref_15, !memref_16) -> ()
      cute_nvgpu.arch.barrier() : () -> ()
      %77 = cute.assume(%1#1) : (i32) -> !cute.i32<divby 8>
      %78 = cute.make_shape(%1#0, %77) : (i32, !cute.i32<divby 8>) -> !cute.shape<"(?,?{div=8})">
      %79 = cute.make_identity_layout(%78) : !cute.shape<"(?,?{div=8})"> -> !layout_5
      %80 = cute.make_view(%10, %79) : !coord_tensor_5
      %81 = cute.make_coord(%row_1, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %82 = cute.local_tile(%80, %23, %81) : (!coord_tensor_5, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !coord_tensor_3
      %83 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %ids_4 = cute.tiled.copy.partition_S(%24, %82, %83) : (!tiled_copy_7, !coord_tensor_3, !cute.coord<"?">) -> !ids_3
      %84 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %source = cute.tiled.copy.partition_S(%24, %sC, %84) : (!tiled_copy_7, !sC, !cute.coord<"?">) -> !source_2
      %85 = cute.make_coord(%row_1, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %86 = cute.local_tile(%C, %23, %85) : (!A_2, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !memref_25
      %87 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %target = cute.tiled.copy.partition_D(%24, %86, %87) : (!tiled_copy_7, !memref_25, !cute.coord<"?">) -> !target_2
      %88 = arith.muli %row_1, %c128_i32 : i32
      %89 = arith.addi %88, %c128_i32 : i32
      %90 = arith.cmpi sle, %89, %1#0 : i32
      %91 = arith.muli %column, %c128_i32 : i32
      %92 = arith.addi %91, %c128_i32 : i32
      %93 = arith.cmpi sle, %92, %1#1 : i32
      %inside_5 = arith.andi %90, %93 : i1
      scf.if %inside_5 {
        scf.for %i = %c0_i32 to %c16_i32 step %c1_i32 : i32 {
          %94 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %95 = cute.slice(%source, %94) : !source_2, !cute.coord<"(_,?,0)">
          %held = cute.make_fragment_like(%95) : !memref_26 -> !held_3
          %96 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %97 = cute.slice(%source, %96) : !source_2, !cute.coord<"(_,?,0)">
          cute.copy(%21, %97, %held) : (!universal_copy, !memref_26, !held_3) -> ()
          %98 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %99 = cute.slice(%target, %98) : !target_2, !cute.coord<"(_,?,0)">
          cute.copy(%21, %held, %99) : (!universal_copy, !held_3, !memref_27) -> ()
        }
      } else {
        scf.for %i = %c0_i32 to %c16_i32 step %c1_i32 : i32 {
          %94 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %95 = cute.slice(%source, %94) : !source_2, !cute.coord<"(_,?,0)">
          %held = cute.make_fragment_like(%95) : !memref_26 -> !held_3
          %flags_6 = cute.make_fragment_like(%held) [i1] : !held_3 -> !flags_4
          scf.for %j = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
            %100 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
            %101 = cute.slice(%ids_4, %100) : !ids_3, !cute.coord<"(_,?,0)">
            %102 = cute.make_coord(%j) : (i32) -> !cute.coord<"?">
            %103 = cute.memref.load(%101, %102) : (!coord_tensor_7, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
            %104:2 = cute.get_scalars<{only_dynamic}> (%103) : !cute.int_tuple<"(?,?)">
            %105 = cute.make_int_tuple(%104#0, %104#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
            %106 = cute.assume(%1#1) : (i32) -> !cute.i32<divby 8>
            %107 = cute.make_int_tuple(%1#0, %106) : (i32, !cute.i32<divby 8>) -> !int_tuple
            %108 = cute.elem_less(%105, %107) : (!cute.int_tuple<"(?,?)">, !int_tuple) -> i1
            %109 = cute.make_coord(%j) : (i32) -> !cute.coord<"?">
            cute.memref.store(%flags_6, %109, %108) : (!flags_4, !cute.coord<"?">, i1) -> ()
          }
          %96 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %97 = cute.slice(%source, %96) : !source_2, !cute.coord<"(_,?,0)">
          cute.copy(%21, %97, %held) : (!universal_copy, !memref_26, !held_3) -> ()
          %98 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %99 = cute.slice(%target, %98) : !target_2, !cute.coord<"(_,?,0)">
          cute.copy(%21, %held, %99, pred = %flags_6) : (!universal_copy, !held_3, !memref_27, !flags_4) -> ()
        }
      }
      gpu.return
    }
  }
  // Multiply matrices or batches of them. The arguments after C belong to the epilogue.
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
    %7 = cute.size<[0]> (%C) : (!A) -> !cute.int_tuple<"?">
    %8 = cute.get_scalars<{only_dynamic}> (%7) : !cute.int_tuple<"?">
    %9 = cute.size<[1]> (%C) : (!A) -> !cute.int_tuple<"?">
    %10 = cute.get_scalars<{only_dynamic}> (%9) : !cute.int_tuple<"?">
    %11 = arith.cmpi eq, %4#1, %2#1 : i32
    cf.assert %11, "A and B must have the same K"
    %12 = cute.size<[0]> (%C) : (!A) -> !cute.int_tuple<"?">
    %13 = cute.get_scalars<{only_dynamic}> (%12) : !cute.int_tuple<"?">
    %14 = cute.size<[1]> (%C) : (!A) -> !cute.int_tuple<"?">
    %15 = cute.get_scalars<{only_dynamic}> (%14) : !cute.int_tuple<"?">
    %16 = arith.cmpi eq, %4#0, %13 : i32
    cf.assert %16, "A and C must have the same M"
    %17 = arith.cmpi eq, %2#0, %15 : i32
    cf.assert %17, "B and C must have the same N"
    %18 = cute.make_int_tuple(%6#0, %6#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
    %19 = cute.ceil_div(%18, %0) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(128,128)">) -> !cute.int_tuple<"(?,?)">
    %20:2 = cute.get_scalars<{only_dynamic}> (%19) : !cute.int_tuple<"(?,?)">
    %tiles = arith.muli %20#0, %20#1 : i32
    gpu.launch_func @kernels::@gemm blocks in (%tiles, %c1_i32, %c1_i32) threads in (%c128_i32, %c1_i32, %c1_i32) : i32 args(%A : !A, %B : !A, %C : !A, %20#0 : i32, %20#1 : i32) {cute.variants = [@kernels::@gemm_16]}
    return
  }
}
