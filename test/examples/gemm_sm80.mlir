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
!buffer = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "24576:1">
!buffer_2 = !cute.ptr<f16, smem, align<1024>, S<3,4,3>>
!memref = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,32,3):(32,1,4096)">
!memref_2 = !cute.memref<f16, gmem, "(128,32,?):(?,1,32)">
!memref_3 = !cute.memref<f16, gmem, "((1,1),32,1,?):((0,0),?{div=4},0,32)">
!memref_4 = !cute.memref<f16, smem, S<3,4,3>, "((1,1),32,1,3):((0,0),128,0,4096)">
!layout_3 = !cute.layout<"(?,?):(1@0,1@1)">
!coord_tensor = !cute.coord_tensor<"(0,0)", "(?,?):(1@0,1@1)">
!ids = !cute.coord_tensor<"(?{div=128},0)", "(128,32):(1@0,1@1)">
!coord_tensor_2 = !cute.coord_tensor<"(?,?)", "((1,1),32,1):((0,0),4@0,0)">
!flags = !cute.memref<i1, rmem, align<32>, "(1,32,1):(0,1,0)">
!from_a = !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,1),4,2,3):((1,0),1024,16,4096)">
!acc = !cute.memref<f32, rmem, align<32>, "((2,2),4,8):((1,2),4,16)">
!memref_5 = !cute.memref<f16, smem, S<3,4,3>, "((1,1),32,1):((0,0),128,0)">
!held = !cute.memref<f16, rmem, align<32>, "((1,1),32,1):((0,0),1,0)">
!memref_6 = !cute.memref<f16, gmem, "((1,1),32,1):((0,0),?{div=4},0)">
!memref_7 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,32):(32,1)">
!memref_8 = !cute.memref<f16, smem, align<4>, S<3,4,3>, "((2,2,2),4,2):((1,256,8),1024,16)">
!rA = !cute.memref<f16, rmem, align<32>, "((2,2,2),4,2):((1,2,4),8,32)">
!memref_9 = !cute.memref<f16, smem, align<4>, S<3,4,3>, "((2,2),8,2):((1,8),512,16)">
!rB = !cute.memref<f16, rmem, align<32>, "((2,2),8,2):((1,2),4,32)">
!to_a = !cute.memref<f16, rmem, align<32>, "((8,1),4,2):((1,0),8,32)">
!memref_10 = !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,1),4):((1,0),1024)">
!memref_11 = !cute.memref<f16, rmem, align<32>, "((8,1),4):((1,0),8)">
!memref_12 = !cute.memref<f16, rmem, align<32>, "((2,2,2),4):((1,2,4),8)">
!memref_13 = !cute.memref<f16, rmem, align<32>, "((2,2),8):((1,2),4)">
!sC = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,(64,2)):(64,(1,8192))">
!out = !cute.memref<f16, rmem, align<32>, "((2,2),4,8):((1,2),4,16)">
!memref_14 = !cute.memref<f16, rmem, align<32>, "((1,(4,2)),4,4):((0,(1,16)),4,32)">
!memref_15 = !cute.memref<f16, smem, align<4>, S<3,4,3>, "((1,(2,2,2)),4,(2,2)):((0,(1,512,16)),2048,(32,8192))">
!coord_tensor_3 = !cute.coord_tensor<"(?{div=128},?{div=128})", "(128,128):(1@0,1@1)">
!ids_2 = !cute.coord_tensor<"(?{div=128},?)", "((1,1),128,1):((0,0),1@0,0)">
!source = !cute.memref<f16, smem, S<3,4,3>, "((1,1),128,1):((0,0),64,0)">
!memref_16 = !cute.memref<f16, gmem, "(128,128):(?,1)">
!target = !cute.memref<f16, gmem, "((1,1),128,1):((0,0),?,0)">
!memref_17 = !cute.memref<f16, smem, S<3,4,3>, "((1,1)):((0,0))">
!held_2 = !cute.memref<f16, rmem, "((1,1)):((0,0))">
!memref_18 = !cute.memref<f16, gmem, "((1,1)):((0,0))">
!flags_2 = !cute.memref<i1, rmem, "((1,1)):((0,0))">
!coord_tensor_4 = !cute.coord_tensor<"(?,?)", "((1,1)):((0,0))">
!A_2 = !cute.memref<f16, gmem, align<16>, "(?,?{div=8}):(?{div=8},1)">
!layout_4 = !cute.layout<"(?,?{div=8}):(?{div=8},1)">
!simt_async_copy = !cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>
!tiled_copy_6 = !cute.tiled_copy<!simt_async_copy, layout_copy_tv = <"((4,32),8):((256,1),32)">, tiler_mn = <"[32:1;32:1]">>
!tiled_copy_7 = !cute.tiled_copy<!universal_copy, layout_copy_tv = <"((16,8),8):((64,1),8)">, tiler_mn = <"[8:1;128:1]">>
!memref_19 = !cute.memref<f16, gmem, align<16>, "(128,32,?):(?{div=8},1,32)">
!memref_20 = !cute.memref<f16, gmem, align<16>, "((8,1),4,1,?):((1,0),?{div=256},0,32)">
!memref_21 = !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,1),4,1,3):((1,0),1024,0,4096)">
!layout_5 = !cute.layout<"(?,?{div=8}):(1@0,1@1)">
!coord_tensor_5 = !cute.coord_tensor<"(0,0)", "(?,?{div=8}):(1@0,1@1)">
!coord_tensor_6 = !cute.coord_tensor<"(?,?{div=8})", "((8,1),4,1):((1@1,0),32@0,0)">
!flags_3 = !cute.memref<i1, rmem, align<4>, "(1,4,1):(0,1,0)">
!int_tuple = !cute.int_tuple<"(?,?{div=8})">
!memref_22 = !cute.memref<f16, gmem, align<16>, "((8,1),4,1):((1,0),?{div=256},0)">
!memref_23 = !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,1),4,1):((1,0),1024,0)">
!ids_3 = !cute.coord_tensor<"(?,?{div=8})", "((1,8),16,1):((0,1@1),8@0,0)">
!source_2 = !cute.memref<f16, smem, align<16>, S<3,4,3>, "((1,8),16,1):((0,1),512,0)">
!memref_24 = !cute.memref<f16, gmem, align<16>, "(128,128):(?{div=8},1)">
!target_2 = !cute.memref<f16, gmem, align<16>, "((1,8),16,1):((0,1),?{div=64},0)">
!memref_25 = !cute.memref<f16, smem, align<16>, S<3,4,3>, "((1,8)):((0,1))">
!held_3 = !cute.memref<f16, rmem, align<16>, "((1,8)):((0,1))">
!memref_26 = !cute.memref<f16, gmem, align<16>, "((1,8)):((0,1))">
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
      %buffer = cute.memref.alloc_smem() : !buffer
      %buffer_3 = cute.get_iter(%buffer) : !buffer
      %27 = cute.make_view(%buffer_3, %6) : !memref
      %28 = cute.make_coord(%row_2) : (i32) -> !cute.coord<"(?,_)">
      %29 = cute.local_tile(%A, %7, %28) : (!A, !cute.shape<"(128,32)">, !cute.coord<"(?,_)">) -> !memref_2
      %30 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %31 = cute.tiled.copy.partition_S(%9, %29, %30) : (!tiled_copy, !memref_2, !cute.coord<"?">) -> !memref_3
      %32 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %33 = cute.tiled.copy.partition_D(%9, %27, %32) : (!tiled_copy, !memref, !cute.coord<"?">) -> !memref_4
      %34 = cute.make_shape(%5#0, %5#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %35 = cute.make_identity_layout(%34) : !cute.shape<"(?,?)"> -> !layout_3
      %36 = cute.make_view(%10, %35) : !coord_tensor
      %37 = cute.make_coord(%row_2) : (i32) -> !cute.coord<"(?,0)">
      %ids = cute.local_tile(%36, %7, %37) : (!coord_tensor, !cute.shape<"(128,32)">, !cute.coord<"(?,0)">) -> !ids
      %38 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %39 = cute.tiled.copy.partition_S(%9, %ids, %38) : (!tiled_copy, !ids, !cute.coord<"?">) -> !coord_tensor_2
      // One predicate per copy: is its row in bounds?
      %40 = cute.memref.alloca() : !flags
      scf.for %i = %c0_i32 to %c32_i32 step %c1_i32 : i32 {
        %92 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %93 = cute.memref.load(%39, %92) : (!coord_tensor_2, !cute.coord<"(0,?,0)">) -> !cute.int_tuple<"(?,?)">
        %94:2 = cute.get_scalars<{only_dynamic}> (%93) : !cute.int_tuple<"(?,?)">
        %95 = arith.cmpi slt, %94#0, %5#0 : i32
        %96 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%40, %96, %95) : (!flags, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %41 = cute.add_offset(%buffer_3, %11) : (!buffer_2, !cute.int_tuple<"12288">) -> !buffer_2
      %42 = cute.make_view(%41, %6) : !memref
      %43 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,_)">
      %44 = cute.local_tile(%B, %7, %43) : (!A, !cute.shape<"(128,32)">, !cute.coord<"(?,_)">) -> !memref_2
      %45 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %46 = cute.tiled.copy.partition_S(%9, %44, %45) : (!tiled_copy, !memref_2, !cute.coord<"?">) -> !memref_3
      %47 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %48 = cute.tiled.copy.partition_D(%9, %42, %47) : (!tiled_copy, !memref, !cute.coord<"?">) -> !memref_4
      %49 = cute.make_shape(%3#0, %3#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %50 = cute.make_identity_layout(%49) : !cute.shape<"(?,?)"> -> !layout_3
      %51 = cute.make_view(%10, %50) : !coord_tensor
      %52 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,0)">
      %ids_4 = cute.local_tile(%51, %7, %52) : (!coord_tensor, !cute.shape<"(128,32)">, !cute.coord<"(?,0)">) -> !ids
      %53 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %54 = cute.tiled.copy.partition_S(%9, %ids_4, %53) : (!tiled_copy, !ids, !cute.coord<"?">) -> !coord_tensor_2
      %55 = cute.memref.alloca() : !flags
      scf.for %i = %c0_i32 to %c32_i32 step %c1_i32 : i32 {
        %92 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %93 = cute.memref.load(%54, %92) : (!coord_tensor_2, !cute.coord<"(0,?,0)">) -> !cute.int_tuple<"(?,?)">
        %94:2 = cute.get_scalars<{only_dynamic}> (%93) : !cute.int_tuple<"(?,?)">
        %95 = arith.cmpi slt, %94#0, %3#0 : i32
        %96 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%55, %96, %95) : (!flags, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %56 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %from_a = cute.tiled.copy.partition_S(%13, %27, %56) : (!tiled_copy_2, !memref, !cute.coord<"?">) -> !from_a
      %57 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %from_b = cute.tiled.copy.partition_S(%14, %42, %57) : (!tiled_copy_3, !memref, !cute.coord<"?">) -> !from_a
      %acc = cute.tiled.mma.make_fragment_C(%17, %15) : (!tiled_mma, !cute.shape<"((2,2),4,8)">) -> !acc
      cute.fill(%acc, %cst) : (!acc, f32) -> ()
      %58 = arith.addi %5#1, %c31_i32 : i32
      %k_tiles = arith.shrui %58, %c5_i32 : i32
      %last = arith.subi %k_tiles, %c1_i32 : i32
      // zero if K is 0
      %59 = arith.muli %last, %c32_i32 : i32
      %60 = arith.subi %5#1, %59 : i32
      %left = arith.minsi %60, %5#1 : i32
      %flags = cute.memref.alloca() : !flags
      scf.for %i = %c0_i32 to %c32_i32 step %c1_i32 : i32 {
        %92 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %93 = cute.memref.load(%40, %92) : (!flags, !cute.coord<"(0,?,0)">) -> i1
        %94 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %95 = cute.memref.load(%39, %94) : (!coord_tensor_2, !cute.coord<"(0,?,0)">) -> !cute.int_tuple<"(?,?)">
        %96:2 = cute.get_scalars<{only_dynamic}> (%95) : !cute.int_tuple<"(?,?)">
        %97 = arith.cmpi slt, %96#1, %left : i32
        %98 = arith.andi %93, %97 : i1
        %99 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%flags, %99, %98) : (!flags, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %61 = cute.slice(%33, %18) : !memref_4, !cute.coord<"(_,_,_,0)">
      %held = cute.make_fragment_like(%61) : !memref_5 -> !held
      cute.fill(%held, %cst_1) : (!held, f16) -> ()
      %62 = cute.make_coord(%last) : (i32) -> !cute.coord<"(_,_,_,?)">
      %63 = cute.slice(%31, %62) : !memref_3, !cute.coord<"(_,_,_,?)">
      cute.copy(%8, %63, %held, pred = %flags) : (!universal_copy, !memref_6, !held, !flags) -> ()
      %64 = cute.slice(%33, %18) : !memref_4, !cute.coord<"(_,_,_,0)">
      cute.copy(%8, %held, %64) : (!universal_copy, !held, !memref_5) -> ()
      %flags_5 = cute.memref.alloca() : !flags
      scf.for %i = %c0_i32 to %c32_i32 step %c1_i32 : i32 {
        %92 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %93 = cute.memref.load(%55, %92) : (!flags, !cute.coord<"(0,?,0)">) -> i1
        %94 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %95 = cute.memref.load(%54, %94) : (!coord_tensor_2, !cute.coord<"(0,?,0)">) -> !cute.int_tuple<"(?,?)">
        %96:2 = cute.get_scalars<{only_dynamic}> (%95) : !cute.int_tuple<"(?,?)">
        %97 = arith.cmpi slt, %96#1, %left : i32
        %98 = arith.andi %93, %97 : i1
        %99 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%flags_5, %99, %98) : (!flags, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %65 = cute.slice(%48, %18) : !memref_4, !cute.coord<"(_,_,_,0)">
      %held_6 = cute.make_fragment_like(%65) : !memref_5 -> !held
      cute.fill(%held_6, %cst_1) : (!held, f16) -> ()
      %66 = cute.make_coord(%last) : (i32) -> !cute.coord<"(_,_,_,?)">
      %67 = cute.slice(%46, %66) : !memref_3, !cute.coord<"(_,_,_,?)">
      cute.copy(%8, %67, %held_6, pred = %flags_5) : (!universal_copy, !memref_6, !held, !flags) -> ()
      %68 = cute.slice(%48, %18) : !memref_4, !cute.coord<"(_,_,_,0)">
      cute.copy(%8, %held_6, %68) : (!universal_copy, !held, !memref_5) -> ()
      %69 = arith.cmpi ugt, %k_tiles, %c1_i32 : i32
      scf.if %69 {
        %92 = cute.slice(%33, %18) : !memref_4, !cute.coord<"(_,_,_,0)">
        %held_9 = cute.make_fragment_like(%92) : !memref_5 -> !held
        cute.fill(%held_9, %cst_1) : (!held, f16) -> ()
        %93 = cute.slice(%31, %18) : !memref_3, !cute.coord<"(_,_,_,0)">
        cute.copy(%8, %93, %held_9, pred = %40) : (!universal_copy, !memref_6, !held, !flags) -> ()
        %94 = cute.slice(%33, %19) : !memref_4, !cute.coord<"(_,_,_,1)">
        cute.copy(%8, %held_9, %94) : (!universal_copy, !held, !memref_5) -> ()
        %95 = cute.slice(%48, %18) : !memref_4, !cute.coord<"(_,_,_,0)">
        %held_10 = cute.make_fragment_like(%95) : !memref_5 -> !held
        cute.fill(%held_10, %cst_1) : (!held, f16) -> ()
        %96 = cute.slice(%46, %18) : !memref_3, !cute.coord<"(_,_,_,0)">
        cute.copy(%8, %96, %held_10, pred = %55) : (!universal_copy, !memref_6, !held, !flags) -> ()
        %97 = cute.slice(%48, %19) : !memref_4, !cute.coord<"(_,_,_,1)">
        cute.copy(%8, %held_10, %97) : (!universal_copy, !held, !memref_5) -> ()
      }
      %70:2 = scf.for %i = %c0_i32 to %k_tiles step %c1_i32 iter_args(%arg0 = %c0_i32, %arg1 = %c2_i32) -> (i32, i32) : i32 {
        cute_nvgpu.arch.barrier() : () -> ()
        // Refill the stage that was read in the previous step with the tile for ``stages - 1`` steps later.
        %ahead = arith.addi %i, %c2_i32 : i32
        %more = arith.cmpi ult, %ahead, %k_tiles : i32
        %92 = cute.slice(%33, %18) : !memref_4, !cute.coord<"(_,_,_,0)">
        %held_9 = cute.make_fragment_like(%92) : !memref_5 -> !held
        cute.fill(%held_9, %cst_1) : (!held, f16) -> ()
        %93 = cute.slice(%48, %18) : !memref_4, !cute.coord<"(_,_,_,0)">
        %held_10 = cute.make_fragment_like(%93) : !memref_5 -> !held
        cute.fill(%held_10, %cst_1) : (!held, f16) -> ()
        scf.if %more {
          %108 = arith.subi %ahead, %c1_i32 : i32
          %109 = cute.make_coord(%108) : (i32) -> !cute.coord<"(_,_,_,?)">
          %110 = cute.slice(%31, %109) : !memref_3, !cute.coord<"(_,_,_,?)">
          cute.copy(%8, %110, %held_9, pred = %40) : (!universal_copy, !memref_6, !held, !flags) -> ()
          %111 = arith.subi %ahead, %c1_i32 : i32
          %112 = cute.make_coord(%111) : (i32) -> !cute.coord<"(_,_,_,?)">
          %113 = cute.slice(%46, %112) : !memref_3, !cute.coord<"(_,_,_,?)">
          cute.copy(%8, %113, %held_10, pred = %55) : (!universal_copy, !memref_6, !held, !flags) -> ()
        }
        %94 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,_,?)">
        %95 = cute.slice(%27, %94) : !memref, !cute.coord<"(_,_,?)">
        %96 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
        %97 = cute.tiled.mma.partition_A(%17, %95, %96) : (!tiled_mma, !memref_7, !cute.coord<"?">) -> !memref_8
        %rA = cute.tiled.mma.make_fragment_A(%17, %97) : (!tiled_mma, !memref_8) -> !rA
        %98 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,_,?)">
        %99 = cute.slice(%42, %98) : !memref, !cute.coord<"(_,_,?)">
        %100 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
        %101 = cute.tiled.mma.partition_B(%17, %99, %100) : (!tiled_mma, !memref_7, !cute.coord<"?">) -> !memref_9
        %rB = cute.tiled.mma.make_fragment_B(%17, %101) : (!tiled_mma, !memref_9) -> !rB
        %to_a = cute.tiled.copy.retile(%13, %rA) : (!tiled_copy_2, !rA) -> !to_a
        %to_b = cute.tiled.copy.retile(%14, %rB) : (!tiled_copy_3, !rB) -> !to_a
        scf.for %j = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
          %108 = cute.make_coord(%j, %arg0) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
          %109 = cute.slice(%from_a, %108) : !from_a, !cute.coord<"(_,_,?,?)">
          %110 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %111 = cute.slice(%to_a, %110) : !to_a, !cute.coord<"(_,_,?)">
          cute.copy(%12, %109, %111) : (!ldsm, !memref_10, !memref_11) -> ()
          %112 = cute.make_coord(%j, %arg0) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
          %113 = cute.slice(%from_b, %112) : !from_a, !cute.coord<"(_,_,?,?)">
          %114 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %115 = cute.slice(%to_b, %114) : !to_a, !cute.coord<"(_,_,?)">
          cute.copy(%12, %113, %115) : (!ldsm, !memref_10, !memref_11) -> ()
        }
        scf.for %j = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
          %108 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %109 = cute.slice(%rA, %108) : !rA, !cute.coord<"(_,_,?)">
          %110 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %111 = cute.slice(%rB, %110) : !rB, !cute.coord<"(_,_,?)">
          cute.gemm(%17, %acc, %109, %111, %acc) : (!tiled_mma, !acc, !memref_12, !memref_13, !acc) -> ()
        }
        scf.if %more {
          %108 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,_,?)">
          %109 = cute.slice(%33, %108) : !memref_4, !cute.coord<"(_,_,_,?)">
          cute.copy(%8, %held_9, %109) : (!universal_copy, !held, !memref_5) -> ()
          %110 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,_,?)">
          %111 = cute.slice(%48, %110) : !memref_4, !cute.coord<"(_,_,_,?)">
          cute.copy(%8, %held_10, %111) : (!universal_copy, !held, !memref_5) -> ()
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
      cute_nvgpu.arch.barrier() : () -> ()
      %sC = cute.make_view(%buffer_3, %20) : !sC
      %out = cute.make_fragment_like(%acc) [f16] : !acc -> !out
      %71 = cute.memref.load_vec %acc : !acc
      %72 = arith.truncf %71 : vector<128xf32> to vector<128xf16>
      cute.memref.store_vec %72, %out : !out
      %73 = cute.tiled.copy.retile(%21, %out) : (!tiled_copy_4, !out) -> !memref_14
      %74 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %75 = cute.tiled.copy.partition_D(%21, %sC, %74) : (!tiled_copy_4, !sC, !cute.coord<"?">) -> !memref_15
      cute.copy(%8, %73, %75) : (!universal_copy, !memref_14, !memref_15) -> ()
      cute_nvgpu.arch.barrier() : () -> ()
      %76 = cute.make_shape(%1#0, %1#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %77 = cute.make_identity_layout(%76) : !cute.shape<"(?,?)"> -> !layout_3
      %78 = cute.make_view(%10, %77) : !coord_tensor
      %79 = cute.make_coord(%row_2, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %80 = cute.local_tile(%78, %22, %79) : (!coord_tensor, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !coord_tensor_3
      %81 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %ids_7 = cute.tiled.copy.partition_S(%23, %80, %81) : (!tiled_copy_5, !coord_tensor_3, !cute.coord<"?">) -> !ids_2
      %82 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %source = cute.tiled.copy.partition_S(%23, %sC, %82) : (!tiled_copy_5, !sC, !cute.coord<"?">) -> !source
      %83 = cute.make_coord(%row_2, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %84 = cute.local_tile(%C, %22, %83) : (!A, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !memref_16
      %85 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %target = cute.tiled.copy.partition_D(%23, %84, %85) : (!tiled_copy_5, !memref_16, !cute.coord<"?">) -> !target
      %86 = arith.muli %row_2, %c128_i32 : i32
      %87 = arith.addi %86, %c128_i32 : i32
      %88 = arith.cmpi sle, %87, %1#0 : i32
      %89 = arith.muli %column, %c128_i32 : i32
      %90 = arith.addi %89, %c128_i32 : i32
      %91 = arith.cmpi sle, %90, %1#1 : i32
      %inside_8 = arith.andi %88, %91 : i1
      scf.if %inside_8 {
        scf.for %i = %c0_i32 to %c128_i32 step %c1_i32 : i32 {
          %92 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %93 = cute.slice(%source, %92) : !source, !cute.coord<"(_,?,0)">
          %held_9 = cute.make_fragment_like(%93) : !memref_17 -> !held_2
          %94 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %95 = cute.slice(%source, %94) : !source, !cute.coord<"(_,?,0)">
          cute.copy(%8, %95, %held_9) : (!universal_copy, !memref_17, !held_2) -> ()
          %96 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %97 = cute.slice(%target, %96) : !target, !cute.coord<"(_,?,0)">
          cute.copy(%8, %held_9, %97) : (!universal_copy, !held_2, !memref_18) -> ()
        }
      } else {
        scf.for %i = %c0_i32 to %c128_i32 step %c1_i32 : i32 {
          %92 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %93 = cute.slice(%source, %92) : !source, !cute.coord<"(_,?,0)">
          %held_9 = cute.make_fragment_like(%93) : !memref_17 -> !held_2
          %flags_10 = cute.make_fragment_like(%held_9) [i1] : !held_2 -> !flags_2
          %94 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %95 = cute.slice(%ids_7, %94) : !ids_2, !cute.coord<"(_,?,0)">
          %96 = cute.memref.load(%95, %24) : (!coord_tensor_4, !cute.coord<"0">) -> !cute.int_tuple<"(?,?)">
          %97:2 = cute.get_scalars<{only_dynamic}> (%96) : !cute.int_tuple<"(?,?)">
          %98 = cute.make_int_tuple(%97#0, %97#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %99 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %100 = cute.elem_less(%98, %99) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          cute.memref.store(%flags_10, %24, %100) : (!flags_2, !cute.coord<"0">, i1) -> ()
          %101 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %102 = cute.slice(%source, %101) : !source, !cute.coord<"(_,?,0)">
          cute.copy(%8, %102, %held_9) : (!universal_copy, !memref_17, !held_2) -> ()
          %103 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %104 = cute.slice(%target, %103) : !target, !cute.coord<"(_,?,0)">
          cute.copy(%8, %held_9, %104, pred = %flags_10) : (!universal_copy, !held_2, !memref_18, !flags_2) -> ()
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
      %buffer = cute.memref.alloc_smem() : !buffer
      %buffer_2 = cute.get_iter(%buffer) : !buffer
      %27 = cute.make_view(%buffer_2, %6) : !memref
      %28 = cute.make_coord(%row_1) : (i32) -> !cute.coord<"(?,_)">
      %29 = cute.local_tile(%A, %7, %28) : (!A_2, !cute.shape<"(128,32)">, !cute.coord<"(?,_)">) -> !memref_19
      %30 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %31 = cute.tiled.copy.partition_S(%9, %29, %30) : (!tiled_copy_6, !memref_19, !cute.coord<"?">) -> !memref_20
      %32 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %33 = cute.tiled.copy.partition_D(%9, %27, %32) : (!tiled_copy_6, !memref, !cute.coord<"?">) -> !memref_21
      %34 = cute.assume(%5#1) : (i32) -> !cute.i32<divby 8>
      %35 = cute.make_shape(%5#0, %34) : (i32, !cute.i32<divby 8>) -> !cute.shape<"(?,?{div=8})">
      %36 = cute.make_identity_layout(%35) : !cute.shape<"(?,?{div=8})"> -> !layout_5
      %37 = cute.make_view(%10, %36) : !coord_tensor_5
      %38 = cute.make_coord(%row_1) : (i32) -> !cute.coord<"(?,0)">
      %ids = cute.local_tile(%37, %7, %38) : (!coord_tensor_5, !cute.shape<"(128,32)">, !cute.coord<"(?,0)">) -> !ids
      %39 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %40 = cute.tiled.copy.partition_S(%9, %ids, %39) : (!tiled_copy_6, !ids, !cute.coord<"?">) -> !coord_tensor_6
      // One predicate per copy: is its row in bounds?
      %41 = cute.memref.alloca() : !flags_3
      scf.for %i = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
        %93 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %94 = cute.memref.load(%40, %93) : (!coord_tensor_6, !cute.coord<"(0,?,0)">) -> !int_tuple
        %95:2 = cute.get_scalars<{only_dynamic}> (%94) : !int_tuple
        %96 = arith.cmpi slt, %95#0, %5#0 : i32
        %97 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%41, %97, %96) : (!flags_3, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %42 = cute.add_offset(%buffer_2, %11) : (!buffer_2, !cute.int_tuple<"12288">) -> !buffer_2
      %43 = cute.make_view(%42, %6) : !memref
      %44 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,_)">
      %45 = cute.local_tile(%B, %7, %44) : (!A_2, !cute.shape<"(128,32)">, !cute.coord<"(?,_)">) -> !memref_19
      %46 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %47 = cute.tiled.copy.partition_S(%9, %45, %46) : (!tiled_copy_6, !memref_19, !cute.coord<"?">) -> !memref_20
      %48 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %49 = cute.tiled.copy.partition_D(%9, %43, %48) : (!tiled_copy_6, !memref, !cute.coord<"?">) -> !memref_21
      %50 = cute.assume(%3#1) : (i32) -> !cute.i32<divby 8>
      %51 = cute.make_shape(%3#0, %50) : (i32, !cute.i32<divby 8>) -> !cute.shape<"(?,?{div=8})">
      %52 = cute.make_identity_layout(%51) : !cute.shape<"(?,?{div=8})"> -> !layout_5
      %53 = cute.make_view(%10, %52) : !coord_tensor_5
      %54 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,0)">
      %ids_3 = cute.local_tile(%53, %7, %54) : (!coord_tensor_5, !cute.shape<"(128,32)">, !cute.coord<"(?,0)">) -> !ids
      %55 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %56 = cute.tiled.copy.partition_S(%9, %ids_3, %55) : (!tiled_copy_6, !ids, !cute.coord<"?">) -> !coord_tensor_6
      %57 = cute.memref.alloca() : !flags_3
      scf.for %i = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
        %93 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %94 = cute.memref.load(%56, %93) : (!coord_tensor_6, !cute.coord<"(0,?,0)">) -> !int_tuple
        %95:2 = cute.get_scalars<{only_dynamic}> (%94) : !int_tuple
        %96 = arith.cmpi slt, %95#0, %3#0 : i32
        %97 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%57, %97, %96) : (!flags_3, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %58 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %from_a = cute.tiled.copy.partition_S(%13, %27, %58) : (!tiled_copy_2, !memref, !cute.coord<"?">) -> !from_a
      %59 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %from_b = cute.tiled.copy.partition_S(%14, %43, %59) : (!tiled_copy_3, !memref, !cute.coord<"?">) -> !from_a
      %acc = cute.tiled.mma.make_fragment_C(%17, %15) : (!tiled_mma, !cute.shape<"((2,2),4,8)">) -> !acc
      cute.fill(%acc, %cst) : (!acc, f32) -> ()
      %60 = arith.addi %5#1, %c31_i32 : i32
      %k_tiles = arith.shrui %60, %c5_i32 : i32
      %last = arith.subi %k_tiles, %c1_i32 : i32
      // zero if K is 0
      %61 = arith.muli %last, %c32_i32 : i32
      %62 = arith.subi %5#1, %61 : i32
      %left = arith.minsi %62, %5#1 : i32
      %flags = cute.memref.alloca() : !flags_3
      scf.for %i = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
        %93 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %94 = cute.memref.load(%41, %93) : (!flags_3, !cute.coord<"(0,?,0)">) -> i1
        %95 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %96 = cute.memref.load(%40, %95) : (!coord_tensor_6, !cute.coord<"(0,?,0)">) -> !int_tuple
        %97:2 = cute.get_scalars<{only_dynamic}> (%96) : !int_tuple
        %98 = arith.cmpi slt, %97#1, %left : i32
        %99 = arith.andi %94, %98 : i1
        %100 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%flags, %100, %99) : (!flags_3, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %63 = cute.make_coord(%last) : (i32) -> !cute.coord<"(_,_,_,?)">
      %64 = cute.slice(%31, %63) : !memref_20, !cute.coord<"(_,_,_,?)">
      %65 = cute.slice(%33, %18) : !memref_21, !cute.coord<"(_,_,_,0)">
      cute.copy(%8, %64, %65, pred = %flags) : (!simt_async_copy, !memref_22, !memref_23, !flags_3) -> ()
      %flags_4 = cute.memref.alloca() : !flags_3
      scf.for %i = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
        %93 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %94 = cute.memref.load(%57, %93) : (!flags_3, !cute.coord<"(0,?,0)">) -> i1
        %95 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        %96 = cute.memref.load(%56, %95) : (!coord_tensor_6, !cute.coord<"(0,?,0)">) -> !int_tuple
        %97:2 = cute.get_scalars<{only_dynamic}> (%96) : !int_tuple
        %98 = arith.cmpi slt, %97#1, %left : i32
        %99 = arith.andi %94, %98 : i1
        %100 = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%flags_4, %100, %99) : (!flags_3, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %66 = cute.make_coord(%last) : (i32) -> !cute.coord<"(_,_,_,?)">
      %67 = cute.slice(%47, %66) : !memref_20, !cute.coord<"(_,_,_,?)">
      %68 = cute.slice(%49, %18) : !memref_21, !cute.coord<"(_,_,_,0)">
      cute.copy(%8, %67, %68, pred = %flags_4) : (!simt_async_copy, !memref_22, !memref_23, !flags_3) -> ()
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      %69 = arith.cmpi ugt, %k_tiles, %c1_i32 : i32
      scf.if %69 {
        %93 = cute.slice(%31, %18) : !memref_20, !cute.coord<"(_,_,_,0)">
        %94 = cute.slice(%33, %19) : !memref_21, !cute.coord<"(_,_,_,1)">
        cute.copy(%8, %93, %94, pred = %41) : (!simt_async_copy, !memref_22, !memref_23, !flags_3) -> ()
        %95 = cute.slice(%47, %18) : !memref_20, !cute.coord<"(_,_,_,0)">
        %96 = cute.slice(%49, %19) : !memref_21, !cute.coord<"(_,_,_,1)">
        cute.copy(%8, %95, %96, pred = %57) : (!simt_async_copy, !memref_22, !memref_23, !flags_3) -> ()
      }
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      %70:2 = scf.for %i = %c0_i32 to %k_tiles step %c1_i32 iter_args(%arg0 = %c0_i32, %arg1 = %c2_i32) -> (i32, i32) : i32 {
        cute_nvgpu.arch.cp_async_wait_group() {n = 1 : i32} : () -> ()
        cute_nvgpu.arch.barrier() : () -> ()
        // Refill the stage that was read in the previous step with the tile for ``stages - 1`` steps later.
        %ahead = arith.addi %i, %c2_i32 : i32
        %more = arith.cmpi ult, %ahead, %k_tiles : i32
        scf.if %more {
          %107 = arith.subi %ahead, %c1_i32 : i32
          %108 = cute.make_coord(%107) : (i32) -> !cute.coord<"(_,_,_,?)">
          %109 = cute.slice(%31, %108) : !memref_20, !cute.coord<"(_,_,_,?)">
          %110 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,_,?)">
          %111 = cute.slice(%33, %110) : !memref_21, !cute.coord<"(_,_,_,?)">
          cute.copy(%8, %109, %111, pred = %41) : (!simt_async_copy, !memref_22, !memref_23, !flags_3) -> ()
          %112 = arith.subi %ahead, %c1_i32 : i32
          %113 = cute.make_coord(%112) : (i32) -> !cute.coord<"(_,_,_,?)">
          %114 = cute.slice(%47, %113) : !memref_20, !cute.coord<"(_,_,_,?)">
          %115 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,_,?)">
          %116 = cute.slice(%49, %115) : !memref_21, !cute.coord<"(_,_,_,?)">
          cute.copy(%8, %114, %116, pred = %57) : (!simt_async_copy, !memref_22, !memref_23, !flags_3) -> ()
        }
        cute_nvgpu.arch.cp_async_commit_group() : () -> ()
        %93 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,_,?)">
        %94 = cute.slice(%27, %93) : !memref, !cute.coord<"(_,_,?)">
        %95 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
        %96 = cute.tiled.mma.partition_A(%17, %94, %95) : (!tiled_mma, !memref_7, !cute.coord<"?">) -> !memref_8
        %rA = cute.tiled.mma.make_fragment_A(%17, %96) : (!tiled_mma, !memref_8) -> !rA
        %97 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,_,?)">
        %98 = cute.slice(%43, %97) : !memref, !cute.coord<"(_,_,?)">
        %99 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
        %100 = cute.tiled.mma.partition_B(%17, %98, %99) : (!tiled_mma, !memref_7, !cute.coord<"?">) -> !memref_9
        %rB = cute.tiled.mma.make_fragment_B(%17, %100) : (!tiled_mma, !memref_9) -> !rB
        %to_a = cute.tiled.copy.retile(%13, %rA) : (!tiled_copy_2, !rA) -> !to_a
        %to_b = cute.tiled.copy.retile(%14, %rB) : (!tiled_copy_3, !rB) -> !to_a
        scf.for %j = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
          %107 = cute.make_coord(%j, %arg0) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
          %108 = cute.slice(%from_a, %107) : !from_a, !cute.coord<"(_,_,?,?)">
          %109 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %110 = cute.slice(%to_a, %109) : !to_a, !cute.coord<"(_,_,?)">
          cute.copy(%12, %108, %110) : (!ldsm, !memref_10, !memref_11) -> ()
          %111 = cute.make_coord(%j, %arg0) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
          %112 = cute.slice(%from_b, %111) : !from_a, !cute.coord<"(_,_,?,?)">
          %113 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %114 = cute.slice(%to_b, %113) : !to_a, !cute.coord<"(_,_,?)">
          cute.copy(%12, %112, %114) : (!ldsm, !memref_10, !memref_11) -> ()
        }
        scf.for %j = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
          %107 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %108 = cute.slice(%rA, %107) : !rA, !cute.coord<"(_,_,?)">
          %109 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %110 = cute.slice(%rB, %109) : !rB, !cute.coord<"(_,_,?)">
          cute.gemm(%17, %acc, %108, %110, %acc) : (!tiled_mma, !acc, !memref_12, !memref_13, !acc) -> ()
        }
        scf.if %more {
        }
        %101 = arith.addi %arg0, %c1_i32 : i32
        %102 = arith.cmpi eq, %101, %c3_i32 : i32
        %103 = arith.addi %arg0, %c1_i32 : i32
        %read = arith.select %102, %c0_i32, %103 : i32
        %104 = arith.addi %arg1, %c1_i32 : i32
        %105 = arith.cmpi eq, %104, %c3_i32 : i32
        %106 = arith.addi %arg1, %c1_i32 : i32
        %write = arith.select %105, %c0_i32, %106 : i32
        scf.yield %read, %write : i32, i32
      }
      cute_nvgpu.arch.cp_async_wait_group() {n = 0 : i32} : () -> ()
      cute_nvgpu.arch.barrier() : () -> ()
      %sC = cute.make_view(%buffer_2, %20) : !sC
      %out = cute.make_fragment_like(%acc) [f16] : !acc -> !out
      %71 = cute.memref.load_vec %acc : !acc
      %72 = arith.truncf %71 : vector<128xf32> to vector<128xf16>
      cute.memref.store_vec %72, %out : !out
      %73 = cute.tiled.copy.retile(%22, %out) : (!tiled_copy_4, !out) -> !memref_14
      %74 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %75 = cute.tiled.copy.partition_D(%22, %sC, %74) : (!tiled_copy_4, !sC, !cute.coord<"?">) -> !memref_15
      cute.copy(%21, %73, %75) : (!universal_copy, !memref_14, !memref_15) -> ()
      cute_nvgpu.arch.barrier() : () -> ()
      %76 = cute.assume(%1#1) : (i32) -> !cute.i32<divby 8>
      %77 = cute.make_shape(%1#0, %76) : (i32, !cute.i32<divby 8>) -> !cute.shape<"(?,?{div=8})">
      %78 = cute.make_identity_layout(%77) : !cute.shape<"(?,?{div=8})"> -> !layout_5
      %79 = cute.make_view(%10, %78) : !coord_tensor_5
      %80 = cute.make_coord(%row_1, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %81 = cute.local_tile(%79, %23, %80) : (!coord_tensor_5, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !coord_tensor_3
      %82 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %ids_5 = cute.tiled.copy.partition_S(%24, %81, %82) : (!tiled_copy_7, !coord_tensor_3, !cute.coord<"?">) -> !ids_3
      %83 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %source = cute.tiled.copy.partition_S(%24, %sC, %83) : (!tiled_copy_7, !sC, !cute.coord<"?">) -> !source_2
      %84 = cute.make_coord(%row_1, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %85 = cute.local_tile(%C, %23, %84) : (!A_2, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !memref_24
      %86 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %target = cute.tiled.copy.partition_D(%24, %85, %86) : (!tiled_copy_7, !memref_24, !cute.coord<"?">) -> !target_2
      %87 = arith.muli %row_1, %c128_i32 : i32
      %88 = arith.addi %87, %c128_i32 : i32
      %89 = arith.cmpi sle, %88, %1#0 : i32
      %90 = arith.muli %column, %c128_i32 : i32
      %91 = arith.addi %90, %c128_i32 : i32
      %92 = arith.cmpi sle, %91, %1#1 : i32
      %inside_6 = arith.andi %89, %92 : i1
      scf.if %inside_6 {
        scf.for %i = %c0_i32 to %c16_i32 step %c1_i32 : i32 {
          %93 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %94 = cute.slice(%source, %93) : !source_2, !cute.coord<"(_,?,0)">
          %held = cute.make_fragment_like(%94) : !memref_25 -> !held_3
          %95 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %96 = cute.slice(%source, %95) : !source_2, !cute.coord<"(_,?,0)">
          cute.copy(%21, %96, %held) : (!universal_copy, !memref_25, !held_3) -> ()
          %97 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %98 = cute.slice(%target, %97) : !target_2, !cute.coord<"(_,?,0)">
          cute.copy(%21, %held, %98) : (!universal_copy, !held_3, !memref_26) -> ()
        }
      } else {
        scf.for %i = %c0_i32 to %c16_i32 step %c1_i32 : i32 {
          %93 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %94 = cute.slice(%source, %93) : !source_2, !cute.coord<"(_,?,0)">
          %held = cute.make_fragment_like(%94) : !memref_25 -> !held_3
          %flags_7 = cute.make_fragment_like(%held) [i1] : !held_3 -> !flags_4
          scf.for %j = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
            %99 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
            %100 = cute.slice(%ids_5, %99) : !ids_3, !cute.coord<"(_,?,0)">
            %101 = cute.make_coord(%j) : (i32) -> !cute.coord<"?">
            %102 = cute.memref.load(%100, %101) : (!coord_tensor_7, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
            %103:2 = cute.get_scalars<{only_dynamic}> (%102) : !cute.int_tuple<"(?,?)">
            %104 = cute.make_int_tuple(%103#0, %103#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
            %105 = cute.assume(%1#1) : (i32) -> !cute.i32<divby 8>
            %106 = cute.make_int_tuple(%1#0, %105) : (i32, !cute.i32<divby 8>) -> !int_tuple
            %107 = cute.elem_less(%104, %106) : (!cute.int_tuple<"(?,?)">, !int_tuple) -> i1
            %108 = cute.make_coord(%j) : (i32) -> !cute.coord<"?">
            cute.memref.store(%flags_7, %108, %107) : (!flags_4, !cute.coord<"?">, i1) -> ()
          }
          %95 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %96 = cute.slice(%source, %95) : !source_2, !cute.coord<"(_,?,0)">
          cute.copy(%21, %96, %held) : (!universal_copy, !memref_25, !held_3) -> ()
          %97 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?,0)">
          %98 = cute.slice(%target, %97) : !target_2, !cute.coord<"(_,?,0)">
          cute.copy(%21, %held, %98, pred = %flags_7) : (!universal_copy, !held_3, !memref_26, !flags_4) -> ()
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
