!mA = !cute.memref<f32, gmem, "(?,?):(?,1)">
!universal_fma = !cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f32)>
!tiled_mma = !cute.tiled_mma<!universal_fma, atom_layout_MNK = <"(16,16,1):(16,1,0)">, permutation_MNK = <"[(16,4,2):(4,1,64);(16,4,2):(4,1,64);_]">>
!universal_copy = !cute_nvgpu.atom.universal_copy<f32>
!tiled_copy = !cute.tiled_copy<!universal_copy, layout_copy_tv = <"((8,32),1):((32,1),32)">, tiler_mn = <"[32:1;8:1]">>
!tiled_copy_2 = !cute.tiled_copy<!universal_copy, layout_copy_tv = <"((128,2),1):((1,128),1)">, tiler_mn = <"[128:1;2:1]">>
!layout = !cute.layout<"(?,?):(1@0,1@1)">
!coord_tensor = !cute.coord_tensor<"(0,0)", "(?,?):(1@0,1@1)">
!memref = !cute.memref<f32, gmem, "(?,?):(1,?)">
!memref_2 = !cute.memref<f32, gmem, "(128,128):(?,1)">
!memref_3 = !cute.memref<f32, gmem, "(1,(4,2),(4,2)):(0,(?,?{div=64}),(1,64))">
!memref_4 = !cute.memref<f32, rmem, align<32>, "(1,(4,2),(4,2)):(0,(1,4),(8,32))">
!sA = !cute.memref<f32, smem, align<16>, "(128,8):(1,132)">
!sB = !cute.memref<f32, smem, align<16>, "(128,8):(1,128)">
!memref_5 = !cute.memref<f32, gmem, "(128,8):(?,1)">
!part = !cute.memref<f32, gmem, "((1,1),4,1):((0,0),?{div=32},0)">
!coord_tensor_2 = !cute.coord_tensor<"(?{div=128},?{div=8})", "(128,8):(1@0,1@1)">
!ids = !cute.coord_tensor<"(?,?)", "((1,1),4,1):((0,0),32@0,0)">
!flags = !cute.memref<i1, rmem, align<4>, "(1,4,1):(0,1,4)">
!first = !cute.coord_tensor<"(?,?)", "(4,1):(32@0,0)">
!each = !cute.memref<i1, rmem, align<4>, "(4,1):(1,4)">
!values = !cute.memref<f32, rmem, align<16>, "((1,1),4,1):((0,0),1,0)">
!memref_6 = !cute.memref<f32, gmem, "(128,8):(1,?)">
!part_2 = !cute.memref<f32, gmem, "((1,1),1,4):((0,0),0,?{div=2})">
!ids_2 = !cute.coord_tensor<"(?,?)", "((1,1),1,4):((0,0),0,2@1)">
!flags_2 = !cute.memref<i1, rmem, align<4>, "(1,1,4):(0,1,1)">
!first_2 = !cute.coord_tensor<"(?,?)", "(1,4):(0,2@1)">
!each_2 = !cute.memref<i1, rmem, align<4>, "(1,4):(1,1)">
!values_2 = !cute.memref<f32, rmem, align<16>, "((1,1),1,4):((0,0),0,1)">
!memref_7 = !cute.memref<f32, smem, "((1,1),4,1):((0,0),32,0)">
!memref_8 = !cute.memref<f32, smem, "((1,1),1,4):((0,0),0,256)">
!memref_9 = !cute.memref<f32, smem, align<16>, "(128,1):(1,0)">
!blockA = !cute.memref<f32, smem, align<16>, "(1,(4,2),1):(0,(1,64),0)">
!rA = !cute.memref<f32, rmem, align<32>, "(1,(4,2),1):(0,(1,4),0)">
!memref_10 = !cute.memref<f32, rmem, align<32>, "(1,(4,2)):(0,(1,4))">
!ids_3 = !cute.coord_tensor<"(?{div=128},?{div=128})", "(128,128):(1@0,1@1)">
!xC = !cute.coord_tensor<"(?{div=4},?{div=4})", "(1,(4,2),(4,2)):(0,(1@0,64@0),(1@1,64@1))">
!inside = !cute.memref<i1, rmem, align<32>, "(1,(4,2),(4,2)):(0,(8,32),(1,4))">
!mA_2 = !cute.memref<f32, gmem, align<16>, "(?,?{div=4}):(?{div=4},1)">
!layout_2 = !cute.layout<"(?,?{div=4}):(?{div=4},1)">
!universal_copy_2 = !cute_nvgpu.atom.universal_copy<f32, 128 b>
!tiled_copy_3 = !cute.tiled_copy<!universal_copy_2, layout_copy_tv = <"((2,128),4):((512,1),128)">, tiler_mn = <"[128:1;8:1]">>
!tiled_copy_4 = !cute.tiled_copy<!universal_copy_2, layout_copy_tv = <"((32,8),4):((4,128),1)">, tiler_mn = <"[128:1;8:1]">>
!layout_3 = !cute.layout<"(?,?{div=4}):(1@0,1@1)">
!coord_tensor_3 = !cute.coord_tensor<"(0,0)", "(?,?{div=4}):(1@0,1@1)">
!memref_11 = !cute.memref<f32, gmem, align<16>, "(?{div=4},?):(1,?{div=4})">
!layout_4 = !cute.layout<"(?{div=4},?):(1,?{div=4})">
!layout_5 = !cute.layout<"(?{div=4},?):(1@0,1@1)">
!coord_tensor_4 = !cute.coord_tensor<"(0,0)", "(?{div=4},?):(1@0,1@1)">
!memref_12 = !cute.memref<f32, gmem, align<16>, "(128,128):(?{div=4},1)">
!memref_13 = !cute.memref<f32, gmem, align<16>, "(1,(4,2),(4,2)):(0,(?{div=4},?{div=256}),(1,64))">
!memref_14 = !cute.memref<f32, gmem, align<16>, "(128,8):(?{div=4},1)">
!part_3 = !cute.memref<f32, gmem, align<16>, "((4,1),1,1):((1,0),0,0)">
!ids_4 = !cute.coord_tensor<"(?,?{div=4})", "((4,1),1,1):((1@1,0),0,0)">
!flags_3 = !cute.memref<i1, rmem, "(1,1,1):(0,1,1)">
!first_3 = !cute.coord_tensor<"(?,?{div=4})", "(1,1):(0,0)">
!each_3 = !cute.memref<i1, rmem, "(1,1):(1,1)">
!int_tuple = !cute.int_tuple<"(?,?{div=4})">
!values_3 = !cute.memref<f32, rmem, align<16>, "((4,1),1,1):((1,0),0,0)">
!memref_15 = !cute.memref<f32, gmem, align<16>, "(128,8):(1,?{div=4})">
!ids_5 = !cute.coord_tensor<"(?{div=4},?)", "((4,1),1,1):((1@0,0),0,0)">
!first_4 = !cute.coord_tensor<"(?{div=4},?)", "(1,1):(0,0)">
!int_tuple_2 = !cute.int_tuple<"(?{div=4},?)">
!memref_16 = !cute.memref<f32, smem, "((4,1),1,1):((132,0),0,0)">
!memref_17 = !cute.memref<f32, smem, align<16>, "((4,1),1,1):((1,0),0,0)">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // Multiply matrices of any alignment, tile by tile.
    gpu.func @sgemm(%mA: !mA, %mB: !mA, %mC: !mA) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %0 = cute.get_layout(%mA) : !mA
      %1:3 = cute.get_scalars<{only_dynamic}> (%0) : !cute.layout<"(?,?):(?,1)">
      %c127_i32 = arith.constant 127 : i32
      %c7_i32 = arith.constant 7 : i32
      %2 = cute.static : !cute.int_tuple<"(0,0)">
      %3 = cute.static : !cute.shape<"(128,128)">
      %4 = cute.atom() : !universal_fma
      %5 = cute.make_tiled_mma(%4) : !tiled_mma
      %c3_i32 = arith.constant 3 : i32
      %6 = cute.static : !cute.shape<"(128,8)">
      %7 = cute.atom() : !universal_copy
      %8 = cute.make_tiled_copy(%7) : !tiled_copy
      %9 = cute.static : !cute.coord<"(0,_,_)">
      %c0_i32 = arith.constant 0 : i32
      %c4_i32 = arith.constant 4 : i32
      %c1_i32 = arith.constant 1 : i32
      %10 = cute.make_tiled_copy(%7) : !tiled_copy_2
      %11 = cute.static : !cute.shape<"(128,1)">
      %12 = cute.static : !cute.coord<"(_,_,0)">
      %c8_i32 = arith.constant 8 : i32
      %13 = cute.static : !cute.coord<"16383">
      %c64_i32 = arith.constant 64 : i32
      %14 = cute.get_layout(%mC) : !mA
      %15:3 = cute.get_scalars<{only_dynamic}> (%14) : !cute.layout<"(?,?):(?,1)">
      %16 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %17 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %18 = arith.addi %15#1, %c127_i32 : i32
      %across = arith.shrui %18, %c7_i32 : i32
      %row = arith.divui %17, %across : i32
      %column = arith.remui %17, %across : i32
      %19 = cute.make_shape(%1#0, %1#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %20 = cute.make_identity_layout(%19) : !cute.shape<"(?,?)"> -> !layout
      %21 = cute.make_view(%2, %20) : !coord_tensor
      %22 = cute.select<[1, 0]> (%mB) : !mA -> !memref
      %23 = cute.get_layout(%22) : !memref
      %24:3 = cute.get_scalars<{only_dynamic}> (%23) : !cute.layout<"(?,?):(1,?)">
      %25 = cute.make_shape(%24#0, %24#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %26 = cute.make_identity_layout(%25) : !cute.shape<"(?,?)"> -> !layout
      %27 = cute.make_view(%2, %26) : !coord_tensor
      %28 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %29 = cute.local_tile(%mC, %3, %28) : (!mA, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !memref_2
      %30 = cute.make_coord(%16) : (i32) -> !cute.coord<"?">
      %31 = cute.tiled.mma.partition_C(%5, %29, %30) : (!tiled_mma, !memref_2, !cute.coord<"?">) -> !memref_3
      %32 = cute.tiled.mma.make_fragment_C(%5, %31) : (!tiled_mma, !memref_3) -> !memref_4
      cute.clear(%32) : (!memref_4) -> ()
      %sA = cute.memref.alloc_smem() : !sA
      %sB = cute.memref.alloc_smem() : !sB
      %33 = arith.addi %1#1, %c7_i32 : i32
      %34 = arith.shrui %33, %c3_i32 : i32
      scf.for %tile = %c0_i32 to %34 step %c1_i32 : i32 {
        // Load the next tiles through registers.
        %43 = cute.make_coord(%row, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %44 = cute.local_tile(%mA, %6, %43) : (!mA, !cute.shape<"(128,8)">, !cute.coord<"(?,?)">) -> !memref_5
        %45 = cute.make_coord(%16) : (i32) -> !cute.coord<"?">
        %part = cute.tiled.copy.partition_S(%8, %44, %45) : (!tiled_copy, !memref_5, !cute.coord<"?">) -> !part
        %46 = cute.make_coord(%row, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %47 = cute.local_tile(%21, %6, %46) : (!coord_tensor, !cute.shape<"(128,8)">, !cute.coord<"(?,?)">) -> !coord_tensor_2
        %48 = cute.make_coord(%16) : (i32) -> !cute.coord<"?">
        %ids_0 = cute.tiled.copy.partition_S(%8, %47, %48) : (!tiled_copy, !coord_tensor_2, !cute.coord<"?">) -> !ids
        %flags = cute.memref.alloca() : !flags
        %first = cute.slice(%ids_0, %9) : !ids, !cute.coord<"(0,_,_)">
        %each = cute.slice(%flags, %9) : !flags, !cute.coord<"(0,_,_)">
        scf.for %i = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
          %59 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %60 = cute.memref.load(%first, %59) : (!first, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %61:2 = cute.get_scalars<{only_dynamic}> (%60) : !cute.int_tuple<"(?,?)">
          %62 = cute.make_int_tuple(%61#0, %61#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %63 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %64 = cute.elem_less(%62, %63) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          %65 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%each, %65, %64) : (!each, !cute.coord<"?">, i1) -> ()
        }
        %values = cute.make_fragment_like(%part) : !part -> !values
        cute.clear(%values) : (!values) -> ()
        cute.copy(%7, %part, %values, pred = %flags) : (!universal_copy, !part, !values, !flags) -> ()
        %49 = cute.make_coord(%column, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %50 = cute.local_tile(%22, %6, %49) : (!memref, !cute.shape<"(128,8)">, !cute.coord<"(?,?)">) -> !memref_6
        %51 = cute.make_coord(%16) : (i32) -> !cute.coord<"?">
        %part_1 = cute.tiled.copy.partition_S(%10, %50, %51) : (!tiled_copy_2, !memref_6, !cute.coord<"?">) -> !part_2
        %52 = cute.make_coord(%column, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %53 = cute.local_tile(%27, %6, %52) : (!coord_tensor, !cute.shape<"(128,8)">, !cute.coord<"(?,?)">) -> !coord_tensor_2
        %54 = cute.make_coord(%16) : (i32) -> !cute.coord<"?">
        %ids_2 = cute.tiled.copy.partition_S(%10, %53, %54) : (!tiled_copy_2, !coord_tensor_2, !cute.coord<"?">) -> !ids_2
        %flags_3 = cute.memref.alloca() : !flags_2
        %first_4 = cute.slice(%ids_2, %9) : !ids_2, !cute.coord<"(0,_,_)">
        %each_5 = cute.slice(%flags_3, %9) : !flags_2, !cute.coord<"(0,_,_)">
        scf.for %i = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
          %59 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %60 = cute.memref.load(%first_4, %59) : (!first_2, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %61:2 = cute.get_scalars<{only_dynamic}> (%60) : !cute.int_tuple<"(?,?)">
          %62 = cute.make_int_tuple(%61#0, %61#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %63 = cute.make_int_tuple(%24#0, %24#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %64 = cute.elem_less(%62, %63) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          %65 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%each_5, %65, %64) : (!each_2, !cute.coord<"?">, i1) -> ()
        }
        %values_6 = cute.make_fragment_like(%part_1) : !part_2 -> !values_2
        cute.clear(%values_6) : (!values_2) -> ()
        cute.copy(%7, %part_1, %values_6, pred = %flags_3) : (!universal_copy, !part_2, !values_2, !flags_2) -> ()
        %55 = cute.make_coord(%16) : (i32) -> !cute.coord<"?">
        %56 = cute.tiled.copy.partition_D(%8, %sA, %55) : (!tiled_copy, !sA, !cute.coord<"?">) -> !memref_7
        cute.copy(%7, %values, %56) : (!universal_copy, !values, !memref_7) -> ()
        %57 = cute.make_coord(%16) : (i32) -> !cute.coord<"?">
        %58 = cute.tiled.copy.partition_D(%10, %sB, %57) : (!tiled_copy_2, !sB, !cute.coord<"?">) -> !memref_8
        cute.copy(%7, %values_6, %58) : (!universal_copy, !values_2, !memref_8) -> ()
        cute_nvgpu.arch.barrier() : () -> ()
        scf.for %k = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %59 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %60 = cute.local_tile(%sA, %11, %59) : (!sA, !cute.shape<"(128,1)">, !cute.coord<"(0,?)">) -> !memref_9
          %61 = cute.make_coord(%16) : (i32) -> !cute.coord<"?">
          %blockA = cute.tiled.mma.partition_A(%5, %60, %61) : (!tiled_mma, !memref_9, !cute.coord<"?">) -> !blockA
          %rA = cute.tiled.mma.make_fragment_A(%5, %blockA) : (!tiled_mma, !blockA) -> !rA
          cute.copy(%7, %blockA, %rA) : (!universal_copy, !blockA, !rA) -> ()
          %62 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %63 = cute.local_tile(%sB, %11, %62) : (!sB, !cute.shape<"(128,1)">, !cute.coord<"(0,?)">) -> !memref_9
          %64 = cute.make_coord(%16) : (i32) -> !cute.coord<"?">
          %columnB = cute.tiled.mma.partition_B(%5, %63, %64) : (!tiled_mma, !memref_9, !cute.coord<"?">) -> !blockA
          %rB = cute.tiled.mma.make_fragment_B(%5, %columnB) : (!tiled_mma, !blockA) -> !rA
          cute.copy(%7, %columnB, %rB) : (!universal_copy, !blockA, !rA) -> ()
          %65 = cute.slice(%rA, %12) : !rA, !cute.coord<"(_,_,0)">
          %66 = cute.slice(%rB, %12) : !rA, !cute.coord<"(_,_,0)">
          cute.gemm(%5, %32, %65, %66, %32) : (!tiled_mma, !memref_4, !memref_10, !memref_10, !memref_4) -> ()
        }
        cute_nvgpu.arch.barrier() : () -> ()
      }
      %35 = cute.make_shape(%15#0, %15#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %36 = cute.make_identity_layout(%35) : !cute.shape<"(?,?)"> -> !layout
      %37 = cute.make_view(%2, %36) : !coord_tensor
      %38 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %ids = cute.local_tile(%37, %3, %38) : (!coord_tensor, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !ids_3
      %39 = cute.memref.load(%ids, %13) : (!ids_3, !cute.coord<"16383">) -> !cute.int_tuple<"(?,?)">
      %40:2 = cute.get_scalars<{only_dynamic}> (%39) : !cute.int_tuple<"(?,?)">
      %41 = cute.make_int_tuple(%40#0, %40#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %42 = cute.make_int_tuple(%15#0, %15#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %whole = cute.elem_less(%41, %42) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
      scf.if %whole {
        cute.copy(%7, %32, %31) : (!universal_copy, !memref_4, !memref_3) -> ()
      } else {
        %43 = cute.make_coord(%16) : (i32) -> !cute.coord<"?">
        %xC = cute.tiled.mma.partition_C(%5, %ids, %43) : (!tiled_mma, !ids_3, !cute.coord<"?">) -> !xC
        %inside = cute.make_fragment_like(%xC) [i1] : !xC -> !inside
        scf.for %i = %c0_i32 to %c64_i32 step %c1_i32 : i32 {
          %44 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %45 = cute.memref.load(%xC, %44) : (!xC, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %46:2 = cute.get_scalars<{only_dynamic}> (%45) : !cute.int_tuple<"(?,?)">
          %47 = cute.make_int_tuple(%46#0, %46#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %48 = cute.make_int_tuple(%15#0, %15#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %49 = cute.elem_less(%47, %48) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          %50 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%inside, %50, %49) : (!inside, !cute.coord<"?">, i1) -> ()
        }
        cute.copy(%7, %32, %31, pred = %inside) : (!universal_copy, !memref_4, !memref_3, !inside) -> ()
      }
      gpu.return
    }
    // Multiply matrices with 16-byte aligned rows, tile by tile.
    gpu.func @sgemm_v(%mA: !mA_2, %mB: !mA_2, %mC: !mA_2) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %0 = cute.get_layout(%mA) : !mA_2
      %1:3 = cute.get_scalars<{only_dynamic}> (%0) : !layout_2
      %c127_i32 = arith.constant 127 : i32
      %c7_i32 = arith.constant 7 : i32
      %2 = cute.static : !cute.int_tuple<"(0,0)">
      %3 = cute.static : !cute.shape<"(128,128)">
      %4 = cute.atom() : !universal_fma
      %5 = cute.make_tiled_mma(%4) : !tiled_mma
      %c3_i32 = arith.constant 3 : i32
      %6 = cute.static : !cute.shape<"(128,8)">
      %7 = cute.atom() : !universal_copy_2
      %8 = cute.make_tiled_copy(%7) : !tiled_copy_3
      %9 = cute.static : !cute.coord<"(0,_,_)">
      %10 = cute.static : !cute.coord<"0">
      %11 = cute.make_tiled_copy(%7) : !tiled_copy_4
      %12 = cute.atom() : !universal_copy
      %13 = cute.static : !cute.shape<"(128,1)">
      %14 = cute.static : !cute.coord<"(_,_,0)">
      %c0_i32 = arith.constant 0 : i32
      %c8_i32 = arith.constant 8 : i32
      %c1_i32 = arith.constant 1 : i32
      %15 = cute.static : !cute.coord<"16383">
      %c64_i32 = arith.constant 64 : i32
      %16 = cute.get_layout(%mC) : !mA_2
      %17:3 = cute.get_scalars<{only_dynamic}> (%16) : !layout_2
      %18 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %19 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %20 = arith.addi %17#1, %c127_i32 : i32
      %across = arith.shrui %20, %c7_i32 : i32
      %row = arith.divui %19, %across : i32
      %column = arith.remui %19, %across : i32
      %21 = cute.assume(%1#1) : (i32) -> !cute.i32<divby 4>
      %22 = cute.make_shape(%1#0, %21) : (i32, !cute.i32<divby 4>) -> !cute.shape<"(?,?{div=4})">
      %23 = cute.make_identity_layout(%22) : !cute.shape<"(?,?{div=4})"> -> !layout_3
      %24 = cute.make_view(%2, %23) : !coord_tensor_3
      %25 = cute.select<[1, 0]> (%mB) : !mA_2 -> !memref_11
      %26 = cute.get_layout(%25) : !memref_11
      %27:3 = cute.get_scalars<{only_dynamic}> (%26) : !layout_4
      %28 = cute.assume(%27#0) : (i32) -> !cute.i32<divby 4>
      %29 = cute.make_shape(%28, %27#1) : (!cute.i32<divby 4>, i32) -> !cute.shape<"(?{div=4},?)">
      %30 = cute.make_identity_layout(%29) : !cute.shape<"(?{div=4},?)"> -> !layout_5
      %31 = cute.make_view(%2, %30) : !coord_tensor_4
      %32 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %33 = cute.local_tile(%mC, %3, %32) : (!mA_2, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !memref_12
      %34 = cute.make_coord(%18) : (i32) -> !cute.coord<"?">
      %35 = cute.tiled.mma.partition_C(%5, %33, %34) : (!tiled_mma, !memref_12, !cute.coord<"?">) -> !memref_13
      %36 = cute.tiled.mma.make_fragment_C(%5, %35) : (!tiled_mma, !memref_13) -> !memref_4
      cute.clear(%36) : (!memref_4) -> ()
      %sA = cute.memref.alloc_smem() : !sA
      %sB = cute.memref.alloc_smem() : !sB
      %37 = arith.addi %1#1, %c7_i32 : i32
      %38 = arith.shrui %37, %c3_i32 : i32
      scf.for %tile = %c0_i32 to %38 step %c1_i32 : i32 {
        // Load the next tiles through registers.
        %49 = cute.make_coord(%row, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %50 = cute.local_tile(%mA, %6, %49) : (!mA_2, !cute.shape<"(128,8)">, !cute.coord<"(?,?)">) -> !memref_14
        %51 = cute.make_coord(%18) : (i32) -> !cute.coord<"?">
        %part = cute.tiled.copy.partition_S(%8, %50, %51) : (!tiled_copy_3, !memref_14, !cute.coord<"?">) -> !part_3
        %52 = cute.make_coord(%row, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %53 = cute.local_tile(%24, %6, %52) : (!coord_tensor_3, !cute.shape<"(128,8)">, !cute.coord<"(?,?)">) -> !coord_tensor_2
        %54 = cute.make_coord(%18) : (i32) -> !cute.coord<"?">
        %ids_0 = cute.tiled.copy.partition_S(%8, %53, %54) : (!tiled_copy_3, !coord_tensor_2, !cute.coord<"?">) -> !ids_4
        %flags = cute.memref.alloca() : !flags_3
        %first = cute.slice(%ids_0, %9) : !ids_4, !cute.coord<"(0,_,_)">
        %each = cute.slice(%flags, %9) : !flags_3, !cute.coord<"(0,_,_)">
        %55 = cute.memref.load(%first, %10) : (!first_3, !cute.coord<"0">) -> !int_tuple
        %56:2 = cute.get_scalars<{only_dynamic}> (%55) : !int_tuple
        %57 = cute.assume(%56#1) : (i32) -> !cute.i32<divby 4>
        %58 = cute.make_int_tuple(%56#0, %57) : (i32, !cute.i32<divby 4>) -> !int_tuple
        %59 = cute.assume(%1#1) : (i32) -> !cute.i32<divby 4>
        %60 = cute.make_int_tuple(%1#0, %59) : (i32, !cute.i32<divby 4>) -> !int_tuple
        %61 = cute.elem_less(%58, %60) : (!int_tuple, !int_tuple) -> i1
        cute.memref.store(%each, %10, %61) : (!each_3, !cute.coord<"0">, i1) -> ()
        %values = cute.make_fragment_like(%part) : !part_3 -> !values_3
        cute.clear(%values) : (!values_3) -> ()
        cute.copy(%7, %part, %values, pred = %flags) : (!universal_copy_2, !part_3, !values_3, !flags_3) -> ()
        %62 = cute.make_coord(%column, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %63 = cute.local_tile(%25, %6, %62) : (!memref_11, !cute.shape<"(128,8)">, !cute.coord<"(?,?)">) -> !memref_15
        %64 = cute.make_coord(%18) : (i32) -> !cute.coord<"?">
        %part_1 = cute.tiled.copy.partition_S(%11, %63, %64) : (!tiled_copy_4, !memref_15, !cute.coord<"?">) -> !part_3
        %65 = cute.make_coord(%column, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %66 = cute.local_tile(%31, %6, %65) : (!coord_tensor_4, !cute.shape<"(128,8)">, !cute.coord<"(?,?)">) -> !coord_tensor_2
        %67 = cute.make_coord(%18) : (i32) -> !cute.coord<"?">
        %ids_2 = cute.tiled.copy.partition_S(%11, %66, %67) : (!tiled_copy_4, !coord_tensor_2, !cute.coord<"?">) -> !ids_5
        %flags_3 = cute.memref.alloca() : !flags_3
        %first_4 = cute.slice(%ids_2, %9) : !ids_5, !cute.coord<"(0,_,_)">
        %each_5 = cute.slice(%flags_3, %9) : !flags_3, !cute.coord<"(0,_,_)">
        %68 = cute.memref.load(%first_4, %10) : (!first_4, !cute.coord<"0">) -> !int_tuple_2
        %69:2 = cute.get_scalars<{only_dynamic}> (%68) : !int_tuple_2
        %70 = cute.assume(%69#0) : (i32) -> !cute.i32<divby 4>
        %71 = cute.make_int_tuple(%70, %69#1) : (!cute.i32<divby 4>, i32) -> !int_tuple_2
        %72 = cute.assume(%27#0) : (i32) -> !cute.i32<divby 4>
        %73 = cute.make_int_tuple(%72, %27#1) : (!cute.i32<divby 4>, i32) -> !int_tuple_2
        %74 = cute.elem_less(%71, %73) : (!int_tuple_2, !int_tuple_2) -> i1
        cute.memref.store(%each_5, %10, %74) : (!each_3, !cute.coord<"0">, i1) -> ()
        %values_6 = cute.make_fragment_like(%part_1) : !part_3 -> !values_3
        cute.clear(%values_6) : (!values_3) -> ()
        cute.copy(%7, %part_1, %values_6, pred = %flags_3) : (!universal_copy_2, !part_3, !values_3, !flags_3) -> ()
        %75 = cute.make_coord(%18) : (i32) -> !cute.coord<"?">
        %76 = cute.tiled.copy.partition_D(%8, %sA, %75) : (!tiled_copy_3, !sA, !cute.coord<"?">) -> !memref_16
        cute.copy(%12, %values, %76) : (!universal_copy, !values_3, !memref_16) -> ()
        %77 = cute.make_coord(%18) : (i32) -> !cute.coord<"?">
        %78 = cute.tiled.copy.partition_D(%11, %sB, %77) : (!tiled_copy_4, !sB, !cute.coord<"?">) -> !memref_17
        cute.copy(%12, %values_6, %78) : (!universal_copy, !values_3, !memref_17) -> ()
        cute_nvgpu.arch.barrier() : () -> ()
        scf.for %k = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %79 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %80 = cute.local_tile(%sA, %13, %79) : (!sA, !cute.shape<"(128,1)">, !cute.coord<"(0,?)">) -> !memref_9
          %81 = cute.make_coord(%18) : (i32) -> !cute.coord<"?">
          %blockA = cute.tiled.mma.partition_A(%5, %80, %81) : (!tiled_mma, !memref_9, !cute.coord<"?">) -> !blockA
          %rA = cute.tiled.mma.make_fragment_A(%5, %blockA) : (!tiled_mma, !blockA) -> !rA
          cute.copy(%12, %blockA, %rA) : (!universal_copy, !blockA, !rA) -> ()
          %82 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %83 = cute.local_tile(%sB, %13, %82) : (!sB, !cute.shape<"(128,1)">, !cute.coord<"(0,?)">) -> !memref_9
          %84 = cute.make_coord(%18) : (i32) -> !cute.coord<"?">
          %columnB = cute.tiled.mma.partition_B(%5, %83, %84) : (!tiled_mma, !memref_9, !cute.coord<"?">) -> !blockA
          %rB = cute.tiled.mma.make_fragment_B(%5, %columnB) : (!tiled_mma, !blockA) -> !rA
          cute.copy(%12, %columnB, %rB) : (!universal_copy, !blockA, !rA) -> ()
          %85 = cute.slice(%rA, %14) : !rA, !cute.coord<"(_,_,0)">
          %86 = cute.slice(%rB, %14) : !rA, !cute.coord<"(_,_,0)">
          cute.gemm(%5, %36, %85, %86, %36) : (!tiled_mma, !memref_4, !memref_10, !memref_10, !memref_4) -> ()
        }
        cute_nvgpu.arch.barrier() : () -> ()
      }
      %39 = cute.assume(%17#1) : (i32) -> !cute.i32<divby 4>
      %40 = cute.make_shape(%17#0, %39) : (i32, !cute.i32<divby 4>) -> !cute.shape<"(?,?{div=4})">
      %41 = cute.make_identity_layout(%40) : !cute.shape<"(?,?{div=4})"> -> !layout_3
      %42 = cute.make_view(%2, %41) : !coord_tensor_3
      %43 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %ids = cute.local_tile(%42, %3, %43) : (!coord_tensor_3, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !ids_3
      %44 = cute.memref.load(%ids, %15) : (!ids_3, !cute.coord<"16383">) -> !cute.int_tuple<"(?,?)">
      %45:2 = cute.get_scalars<{only_dynamic}> (%44) : !cute.int_tuple<"(?,?)">
      %46 = cute.make_int_tuple(%45#0, %45#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %47 = cute.assume(%17#1) : (i32) -> !cute.i32<divby 4>
      %48 = cute.make_int_tuple(%17#0, %47) : (i32, !cute.i32<divby 4>) -> !int_tuple
      %whole = cute.elem_less(%46, %48) : (!cute.int_tuple<"(?,?)">, !int_tuple) -> i1
      scf.if %whole {
        cute.copy(%12, %36, %35) : (!universal_copy, !memref_4, !memref_13) -> ()
      } else {
        %49 = cute.make_coord(%18) : (i32) -> !cute.coord<"?">
        %xC = cute.tiled.mma.partition_C(%5, %ids, %49) : (!tiled_mma, !ids_3, !cute.coord<"?">) -> !xC
        %inside = cute.make_fragment_like(%xC) [i1] : !xC -> !inside
        scf.for %i = %c0_i32 to %c64_i32 step %c1_i32 : i32 {
          %50 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %51 = cute.memref.load(%xC, %50) : (!xC, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %52:2 = cute.get_scalars<{only_dynamic}> (%51) : !cute.int_tuple<"(?,?)">
          %53 = cute.make_int_tuple(%52#0, %52#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %54 = cute.assume(%17#1) : (i32) -> !cute.i32<divby 4>
          %55 = cute.make_int_tuple(%17#0, %54) : (i32, !cute.i32<divby 4>) -> !int_tuple
          %56 = cute.elem_less(%53, %55) : (!cute.int_tuple<"(?,?)">, !int_tuple) -> i1
          %57 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%inside, %57, %56) : (!inside, !cute.coord<"?">, i1) -> ()
        }
        cute.copy(%12, %36, %35, pred = %inside) : (!universal_copy, !memref_4, !memref_13, !inside) -> ()
      }
      gpu.return
    }
  }
  // Launch one block per tile of C, with vector accesses if the matrices allow it.
  func.func @launch(%mA: !mA, %mB: !mA, %mC: !mA) {
    %0 = cute.static : !cute.int_tuple<"128">
    %c1_i32 = arith.constant 1 : i32
    %c256_i32 = arith.constant 256 : i32
    %1 = cute.get_layout(%mC) : !mA
    %2:3 = cute.get_scalars<{only_dynamic}> (%1) : !cute.layout<"(?,?):(?,1)">
    %3 = cute.get_layout(%mB) : !mA
    %4:3 = cute.get_scalars<{only_dynamic}> (%3) : !cute.layout<"(?,?):(?,1)">
    %5 = cute.get_layout(%mA) : !mA
    %6:3 = cute.get_scalars<{only_dynamic}> (%5) : !cute.layout<"(?,?):(?,1)">
    %7 = arith.cmpi eq, %6#1, %4#0 : i32
    cf.assert %7, "A and B must have the same K"
    %8 = arith.cmpi eq, %6#0, %2#0 : i32
    cf.assert %8, "A and C must have the same M"
    %9 = arith.cmpi eq, %4#1, %2#1 : i32
    cf.assert %9, "B and C must have the same N"
    %10 = cute.make_int_tuple(%2#0) : (i32) -> !cute.int_tuple<"?">
    %11 = cute.ceil_div(%10, %0) : (!cute.int_tuple<"?">, !cute.int_tuple<"128">) -> !cute.int_tuple<"?">
    %12 = cute.get_scalars<{only_dynamic}> (%11) : !cute.int_tuple<"?">
    %13 = cute.make_int_tuple(%2#1) : (i32) -> !cute.int_tuple<"?">
    %14 = cute.ceil_div(%13, %0) : (!cute.int_tuple<"?">, !cute.int_tuple<"128">) -> !cute.int_tuple<"?">
    %15 = cute.get_scalars<{only_dynamic}> (%14) : !cute.int_tuple<"?">
    %16 = arith.muli %12, %15 : i32
    gpu.launch_func @kernels::@sgemm blocks in (%16, %c1_i32, %c1_i32) threads in (%c256_i32, %c1_i32, %c1_i32) : i32 args(%mA : !mA, %mB : !mA, %mC : !mA) {cute.variants = [@kernels::@sgemm_v]}
    return
  }
}
