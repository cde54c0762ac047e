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
    gpu.func @sgemm(%mA: !mA, %mB: !mA, %mC: !mA) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %0 = cute.get_layout(%mA) : !mA
      %1:3 = cute.get_scalars<{only_dynamic}> (%0) : !cute.layout<"(?,?):(?,1)">
      %2 = cute.static : !cute.int_tuple<"128">
      %3 = cute.static : !cute.int_tuple<"(0,0)">
      %4 = cute.static : !cute.shape<"(128,128)">
      %5 = cute.atom() : !universal_fma
      %6 = cute.make_tiled_mma(%5) : !tiled_mma
      %7 = cute.static : !cute.int_tuple<"8">
      %8 = cute.static : !cute.shape<"(128,8)">
      %9 = cute.atom() : !universal_copy
      %10 = cute.make_tiled_copy(%9) : !tiled_copy
      %11 = cute.static : !cute.coord<"(0,_,_)">
      %c0_i32 = arith.constant 0 : i32
      %c4_i32 = arith.constant 4 : i32
      %c1_i32 = arith.constant 1 : i32
      %12 = cute.make_tiled_copy(%9) : !tiled_copy_2
      %13 = cute.static : !cute.shape<"(128,1)">
      %14 = cute.static : !cute.coord<"(_,_,0)">
      %c8_i32 = arith.constant 8 : i32
      %15 = cute.static : !cute.coord<"16383">
      %c64_i32 = arith.constant 64 : i32
      %16 = cute.get_layout(%mC) : !mA
      %17:3 = cute.get_scalars<{only_dynamic}> (%16) : !cute.layout<"(?,?):(?,1)">
      %18 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %19 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %20 = cute.make_int_tuple(%17#1) : (i32) -> !cute.int_tuple<"?">
      %21 = cute.ceil_div(%20, %2) : (!cute.int_tuple<"?">, !cute.int_tuple<"128">) -> !cute.int_tuple<"?">
      %across = cute.get_scalars<{only_dynamic}> (%21) : !cute.int_tuple<"?">
      %row = arith.divui %19, %across : i32
      %column = arith.remui %19, %across : i32
      %22 = cute.make_shape(%1#0, %1#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %23 = cute.make_identity_layout(%22) : !cute.shape<"(?,?)"> -> !layout
      %24 = cute.make_view(%3, %23) : !coord_tensor
      %25 = cute.select<[1, 0]> (%mB) : !mA -> !memref
      %26 = cute.get_layout(%25) : !memref
      %27:3 = cute.get_scalars<{only_dynamic}> (%26) : !cute.layout<"(?,?):(1,?)">
      %28 = cute.make_shape(%27#0, %27#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %29 = cute.make_identity_layout(%28) : !cute.shape<"(?,?)"> -> !layout
      %30 = cute.make_view(%3, %29) : !coord_tensor
      %31 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %32 = cute.local_tile(%mC, %4, %31) : (!mA, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !memref_2
      %33 = cute.make_coord(%18) : (i32) -> !cute.coord<"?">
      %34 = cute.tiled.mma.partition_C(%6, %32, %33) : (!tiled_mma, !memref_2, !cute.coord<"?">) -> !memref_3
      %35 = cute.tiled.mma.make_fragment_C(%6, %34) : (!tiled_mma, !memref_3) -> !memref_4
      cute.clear(%35) : (!memref_4) -> ()
      %sA = cute.memref.alloc_smem() : !sA
      %sB = cute.memref.alloc_smem() : !sB
      %36 = cute.make_int_tuple(%1#1) : (i32) -> !cute.int_tuple<"?">
      %37 = cute.ceil_div(%36, %7) : (!cute.int_tuple<"?">, !cute.int_tuple<"8">) -> !cute.int_tuple<"?">
      %38 = cute.get_scalars<{only_dynamic}> (%37) : !cute.int_tuple<"?">
      scf.for %tile = %c0_i32 to %38 step %c1_i32 : i32 {
        %47 = cute.make_coord(%row, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %48 = cute.local_tile(%mA, %8, %47) : (!mA, !cute.shape<"(128,8)">, !cute.coord<"(?,?)">) -> !memref_5
        %49 = cute.make_coord(%18) : (i32) -> !cute.coord<"?">
        %part = cute.tiled.copy.partition_S(%10, %48, %49) : (!tiled_copy, !memref_5, !cute.coord<"?">) -> !part
        %50 = cute.make_coord(%row, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %51 = cute.local_tile(%24, %8, %50) : (!coord_tensor, !cute.shape<"(128,8)">, !cute.coord<"(?,?)">) -> !coord_tensor_2
        %52 = cute.make_coord(%18) : (i32) -> !cute.coord<"?">
        %ids_0 = cute.tiled.copy.partition_S(%10, %51, %52) : (!tiled_copy, !coord_tensor_2, !cute.coord<"?">) -> !ids
        %flags = cute.memref.alloca() : !flags
        %first = cute.slice(%ids_0, %11) : !ids, !cute.coord<"(0,_,_)">
        %each = cute.slice(%flags, %11) : !flags, !cute.coord<"(0,_,_)">
        scf.for %i = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
          %63 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %64 = cute.memref.load(%first, %63) : (!first, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %65:2 = cute.get_scalars<{only_dynamic}> (%64) : !cute.int_tuple<"(?,?)">
          %66 = cute.make_int_tuple(%65#0, %65#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %67 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %68 = cute.elem_less(%66, %67) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          %69 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%each, %69, %68) : (!each, !cute.coord<"?">, i1) -> ()
        }
        %values = cute.make_fragment_like(%part) : !part -> !values
        cute.clear(%values) : (!values) -> ()
        cute.copy(%9, %part, %values, pred = %flags) : (!universal_copy, !part, !values, !flags) -> ()
        %53 = cute.make_coord(%column, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %54 = cute.local_tile(%25, %8, %53) : (!memref, !cute.shape<"(128,8)">, !cute.coord<"(?,?)">) -> !memref_6
        %55 = cute.make_coord(%18) : (i32) -> !cute.coord<"?">
        %part_1 = cute.tiled.copy.partition_S(%12, %54, %55) : (!tiled_copy_2, !memref_6, !cute.coord<"?">) -> !part_2
        %56 = cute.make_coord(%column, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %57 = cute.local_tile(%30, %8, %56) : (!coord_tensor, !cute.shape<"(128,8)">, !cute.coord<"(?,?)">) -> !coord_tensor_2
        %58 = cute.make_coord(%18) : (i32) -> !cute.coord<"?">
        %ids_2 = cute.tiled.copy.partition_S(%12, %57, %58) : (!tiled_copy_2, !coord_tensor_2, !cute.coord<"?">) -> !ids_2
        %flags_3 = cute.memref.alloca() : !flags_2
        %first_4 = cute.slice(%ids_2, %11) : !ids_2, !cute.coord<"(0,_,_)">
        %each_5 = cute.slice(%flags_3, %11) : !flags_2, !cute.coord<"(0,_,_)">
        scf.for %i = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
          %63 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %64 = cute.memref.load(%first_4, %63) : (!first_2, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %65:2 = cute.get_scalars<{only_dynamic}> (%64) : !cute.int_tuple<"(?,?)">
          %66 = cute.make_int_tuple(%65#0, %65#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %67 = cute.make_int_tuple(%27#0, %27#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %68 = cute.elem_less(%66, %67) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          %69 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%each_5, %69, %68) : (!each_2, !cute.coord<"?">, i1) -> ()
        }
        %values_6 = cute.make_fragment_like(%part_1) : !part_2 -> !values_2
        cute.clear(%values_6) : (!values_2) -> ()
        cute.copy(%9, %part_1, %values_6, pred = %flags_3) : (!universal_copy, !part_2, !values_2, !flags_2) -> ()
        %59 = cute.make_coord(%18) : (i32) -> !cute.coord<"?">
        %60 = cute.tiled.copy.partition_D(%10, %sA, %59) : (!tiled_copy, !sA, !cute.coord<"?">) -> !memref_7
        cute.copy(%9, %values, %60) : (!universal_copy, !values, !memref_7) -> ()
        %61 = cute.make_coord(%18) : (i32) -> !cute.coord<"?">
        %62 = cute.tiled.copy.partition_D(%12, %sB, %61) : (!tiled_copy_2, !sB, !cute.coord<"?">) -> !memref_8
        cute.copy(%9, %values_6, %62) : (!universal_copy, !values_2, !memref_8) -> ()
        cute_nvgpu.arch.barrier() : () -> ()
        scf.for %k = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %63 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %64 = cute.local_tile(%sA, %13, %63) : (!sA, !cute.shape<"(128,1)">, !cute.coord<"(0,?)">) -> !memref_9
          %65 = cute.make_coord(%18) : (i32) -> !cute.coord<"?">
          %blockA = cute.tiled.mma.partition_A(%6, %64, %65) : (!tiled_mma, !memref_9, !cute.coord<"?">) -> !blockA
          %rA = cute.tiled.mma.make_fragment_A(%6, %blockA) : (!tiled_mma, !blockA) -> !rA
          cute.copy(%9, %blockA, %rA) : (!universal_copy, !blockA, !rA) -> ()
          %66 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %67 = cute.local_tile(%sB, %13, %66) : (!sB, !cute.shape<"(128,1)">, !cute.coord<"(0,?)">) -> !memref_9
          %68 = cute.make_coord(%18) : (i32) -> !cute.coord<"?">
          %columnB = cute.tiled.mma.partition_B(%6, %67, %68) : (!tiled_mma, !memref_9, !cute.coord<"?">) -> !blockA
          %rB = cute.tiled.mma.make_fragment_B(%6, %columnB) : (!tiled_mma, !blockA) -> !rA
          cute.copy(%9, %columnB, %rB) : (!universal_copy, !blockA, !rA) -> ()
          %69 = cute.slice(%rA, %14) : !rA, !cute.coord<"(_,_,0)">
          %70 = cute.slice(%rB, %14) : !rA, !cute.coord<"(_,_,0)">
          cute.gemm(%6, %35, %69, %70, %35) : (!tiled_mma, !memref_4, !memref_10, !memref_10, !memref_4) -> ()
        }
        cute_nvgpu.arch.barrier() : () -> ()
      }
      %39 = cute.make_shape(%17#0, %17#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %40 = cute.make_identity_layout(%39) : !cute.shape<"(?,?)"> -> !layout
      %41 = cute.make_view(%3, %40) : !coord_tensor
      %42 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %ids = cute.local_tile(%41, %4, %42) : (!coord_tensor, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !ids_3
      %43 = cute.memref.load(%ids, %15) : (!ids_3, !cute.coord<"16383">) -> !cute.int_tuple<"(?,?)">
      %44:2 = cute.get_scalars<{only_dynamic}> (%43) : !cute.int_tuple<"(?,?)">
      %45 = cute.make_int_tuple(%44#0, %44#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %46 = cute.make_int_tuple(%17#0, %17#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %whole = cute.elem_less(%45, %46) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
      scf.if %whole {
        cute.copy(%9, %35, %34) : (!universal_copy, !memref_4, !memref_3) -> ()
      } else {
        %47 = cute.make_coord(%18) : (i32) -> !cute.coord<"?">
        %xC = cute.tiled.mma.partition_C(%6, %ids, %47) : (!tiled_mma, !ids_3, !cute.coord<"?">) -> !xC
        %inside = cute.make_fragment_like(%xC) [i1] : !xC -> !inside
        scf.for %i = %c0_i32 to %c64_i32 step %c1_i32 : i32 {
          %48 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %49 = cute.memref.load(%xC, %48) : (!xC, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %50:2 = cute.get_scalars<{only_dynamic}> (%49) : !cute.int_tuple<"(?,?)">
          %51 = cute.make_int_tuple(%50#0, %50#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %52 = cute.make_int_tuple(%17#0, %17#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %53 = cute.elem_less(%51, %52) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          %54 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%inside, %54, %53) : (!inside, !cute.coord<"?">, i1) -> ()
        }
        cute.copy(%9, %35, %34, pred = %inside) : (!universal_copy, !memref_4, !memref_3, !inside) -> ()
      }
      gpu.return
    }
    gpu.func @sgemm_v(%mA: !mA_2, %mB: !mA_2, %mC: !mA_2) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %0 = cute.get_layout(%mA) : !mA_2
      %1:3 = cute.get_scalars<{only_dynamic}> (%0) : !layout_2
      %2 = cute.static : !cute.int_tuple<"128">
      %3 = cute.static : !cute.int_tuple<"(0,0)">
      %4 = cute.static : !cute.shape<"(128,128)">
      %5 = cute.atom() : !universal_fma
      %6 = cute.make_tiled_mma(%5) : !tiled_mma
      %7 = cute.static : !cute.int_tuple<"8">
      %8 = cute.static : !cute.shape<"(128,8)">
      %9 = cute.atom() : !universal_copy_2
      %10 = cute.make_tiled_copy(%9) : !tiled_copy_3
      %11 = cute.static : !cute.coord<"(0,_,_)">
      %12 = cute.static : !cute.coord<"0">
      %13 = cute.make_tiled_copy(%9) : !tiled_copy_4
      %14 = cute.atom() : !universal_copy
      %15 = cute.static : !cute.shape<"(128,1)">
      %16 = cute.static : !cute.coord<"(_,_,0)">
      %c0_i32 = arith.constant 0 : i32
      %c8_i32 = arith.constant 8 : i32
      %c1_i32 = arith.constant 1 : i32
      %17 = cute.static : !cute.coord<"16383">
      %c64_i32 = arith.constant 64 : i32
      %18 = cute.get_layout(%mC) : !mA_2
      %19:3 = cute.get_scalars<{only_dynamic}> (%18) : !layout_2
      %20 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %21 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %22 = cute.assume(%19#1) : (i32) -> !cute.i32<divby 4>
      %23 = cute.make_int_tuple(%22) : (!cute.i32<divby 4>) -> !cute.int_tuple<"?{div=4}">
      %24 = cute.ceil_div(%23, %2) : (!cute.int_tuple<"?{div=4}">, !cute.int_tuple<"128">) -> !cute.int_tuple<"?">
      %across = cute.get_scalars<{only_dynamic}> (%24) : !cute.int_tuple<"?">
      %row = arith.divui %21, %across : i32
      %column = arith.remui %21, %across : i32
      %25 = cute.assume(%1#1) : (i32) -> !cute.i32<divby 4>
      %26 = cute.make_shape(%1#0, %25) : (i32, !cute.i32<divby 4>) -> !cute.shape<"(?,?{div=4})">
      %27 = cute.make_identity_layout(%26) : !cute.shape<"(?,?{div=4})"> -> !layout_3
      %28 = cute.make_view(%3, %27) : !coord_tensor_3
      %29 = cute.select<[1, 0]> (%mB) : !mA_2 -> !memref_11
      %30 = cute.get_layout(%29) : !memref_11
      %31:3 = cute.get_scalars<{only_dynamic}> (%30) : !layout_4
      %32 = cute.assume(%31#0) : (i32) -> !cute.i32<divby 4>
      %33 = cute.make_shape(%32, %31#1) : (!cute.i32<divby 4>, i32) -> !cute.shape<"(?{div=4},?)">
      %34 = cute.make_identity_layout(%33) : !cute.shape<"(?{div=4},?)"> -> !layout_5
      %35 = cute.make_view(%3, %34) : !coord_tensor_4
      %36 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %37 = cute.local_tile(%mC, %4, %36) : (!mA_2, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !memref_12
      %38 = cute.make_coord(%20) : (i32) -> !cute.coord<"?">
      %39 = cute.tiled.mma.partition_C(%6, %37, %38) : (!tiled_mma, !memref_12, !cute.coord<"?">) -> !memref_13
      %40 = cute.tiled.mma.make_fragment_C(%6, %39) : (!tiled_mma, !memref_13) -> !memref_4
      cute.clear(%40) : (!memref_4) -> ()
      %sA = cute.memref.alloc_smem() : !sA
      %sB = cute.memref.alloc_smem() : !sB
      %41 = cute.assume(%1#1) : (i32) -> !cute.i32<divby 4>
      %42 = cute.make_int_tuple(%41) : (!cute.i32<divby 4>) -> !cute.int_tuple<"?{div=4}">
      %43 = cute.ceil_div(%42, %7) : (!cute.int_tuple<"?{div=4}">, !cute.int_tuple<"8">) -> !cute.int_tuple<"?">
      %44 = cute.get_scalars<{only_dynamic}> (%43) : !cute.int_tuple<"?">
      scf.for %tile = %c0_i32 to %44 step %c1_i32 : i32 {
        %55 = cute.make_coord(%row, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %56 = cute.local_tile(%mA, %8, %55) : (!mA_2, !cute.shape<"(128,8)">, !cute.coord<"(?,?)">) -> !memref_14
        %57 = cute.make_coord(%20) : (i32) -> !cute.coord<"?">
        %part = cute.tiled.copy.partition_S(%10, %56, %57) : (!tiled_copy_3, !memref_14, !cute.coord<"?">) -> !part_3
        %58 = cute.make_coord(%row, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %59 = cute.local_tile(%28, %8, %58) : (!coord_tensor_3, !cute.shape<"(128,8)">, !cute.coord<"(?,?)">) -> !coord_tensor_2
        %60 = cute.make_coord(%20) : (i32) -> !cute.coord<"?">
        %ids_0 = cute.tiled.copy.partition_S(%10, %59, %60) : (!tiled_copy_3, !coord_tensor_2, !cute.coord<"?">) -> !ids_4
        %flags = cute.memref.alloca() : !flags_3
        %first = cute.slice(%ids_0, %11) : !ids_4, !cute.coord<"(0,_,_)">
        %each = cute.slice(%flags, %11) : !flags_3, !cute.coord<"(0,_,_)">
        %61 = cute.memref.load(%first, %12) : (!first_3, !cute.coord<"0">) -> !int_tuple
        %62:2 = cute.get_scalars<{only_dynamic}> (%61) : !int_tuple
        %63 = cute.assume(%62#1) : (i32) -> !cute.i32<divby 4>
        %64 = cute.make_int_tuple(%62#0, %63) : (i32, !cute.i32<divby 4>) -> !int_tuple
        %65 = cute.assume(%1#1) : (i32) -> !cute.i32<divby 4>
        %66 = cute.make_int_tuple(%1#0, %65) : (i32, !cute.i32<divby 4>) -> !int_tuple
        %67 = cute.elem_less(%64, %66) : (!int_tuple, !int_tuple) -> i1
        cute.memref.store(%each, %12, %67) : (!each_3, !cute.coord<"0">, i1) -> ()
        %values = cute.make_fragment_like(%part) : !part_3 -> !values_3
        cute.clear(%values) : (!values_3) -> ()
        cute.copy(%9, %part, %values, pred = %flags) : (!universal_copy_2, !part_3, !values_3, !flags_3) -> ()
        %68 = cute.make_coord(%column, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %69 = cute.local_tile(%29, %8, %68) : (!memref_11, !cute.shape<"(128,8)">, !cute.coord<"(?,?)">) -> !memref_15
        %70 = cute.make_coord(%20) : (i32) -> !cute.coord<"?">
        %part_1 = cute.tiled.copy.partition_S(%13, %69, %70) : (!tiled_copy_4, !memref_15, !cute.coord<"?">) -> !part_3
        %71 = cute.make_coord(%column, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %72 = cute.local_tile(%35, %8, %71) : (!coord_tensor_4, !cute.shape<"(128,8)">, !cute.coord<"(?,?)">) -> !coord_tensor_2
        %73 = cute.make_coord(%20) : (i32) -> !cute.coord<"?">
        %ids_2 = cute.tiled.copy.partition_S(%13, %72, %73) : (!tiled_copy_4, !coord_tensor_2, !cute.coord<"?">) -> !ids_5
        %flags_3 = cute.memref.alloca() : !flags_3
        %first_4 = cute.slice(%ids_2, %11) : !ids_5, !cute.coord<"(0,_,_)">
        %each_5 = cute.slice(%flags_3, %11) : !flags_3, !cute.coord<"(0,_,_)">
        %74 = cute.memref.load(%first_4, %12) : (!first_4, !cute.coord<"0">) -> !int_tuple_2
        %75:2 = cute.get_scalars<{only_dynamic}> (%74) : !int_tuple_2
        %76 = cute.assume(%75#0) : (i32) -> !cute.i32<divby 4>
        %77 = cute.make_int_tuple(%76, %75#1) : (!cute.i32<divby 4>, i32) -> !int_tuple_2
        %78 = cute.assume(%31#0) : (i32) -> !cute.i32<divby 4>
        %79 = cute.make_int_tuple(%78, %31#1) : (!cute.i32<divby 4>, i32) -> !int_tuple_2
        %80 = cute.elem_less(%77, %79) : (!int_tuple_2, !int_tuple_2) -> i1
        cute.memref.store(%each_5, %12, %80) : (!each_3, !cute.coord<"0">, i1) -> ()
        %values_6 = cute.make_fragment_like(%part_1) : !part_3 -> !values_3
        cute.clear(%values_6) : (!values_3) -> ()
        cute.copy(%9, %part_1, %values_6, pred = %flags_3) : (!universal_copy_2, !part_3, !values_3, !flags_3) -> ()
        %81 = cute.make_coord(%20) : (i32) -> !cute.coord<"?">
        %82 = cute.tiled.copy.partition_D(%10, %sA, %81) : (!tiled_copy_3, !sA, !cute.coord<"?">) -> !memref_16
        cute.copy(%14, %values, %82) : (!universal_copy, !values_3, !memref_16) -> ()
        %83 = cute.make_coord(%20) : (i32) -> !cute.coord<"?">
        %84 = cute.tiled.copy.partition_D(%13, %sB, %83) : (!tiled_copy_4, !sB, !cute.coord<"?">) -> !memref_17
        cute.copy(%14, %values_6, %84) : (!universal_copy, !values_3, !memref_17) -> ()
        cute_nvgpu.arch.barrier() : () -> ()
        scf.for %k = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %85 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %86 = cute.local_tile(%sA, %15, %85) : (!sA, !cute.shape<"(128,1)">, !cute.coord<"(0,?)">) -> !memref_9
          %87 = cute.make_coord(%20) : (i32) -> !cute.coord<"?">
          %blockA = cute.tiled.mma.partition_A(%6, %86, %87) : (!tiled_mma, !memref_9, !cute.coord<"?">) -> !blockA
          %rA = cute.tiled.mma.make_fragment_A(%6, %blockA) : (!tiled_mma, !blockA) -> !rA
          cute.copy(%14, %blockA, %rA) : (!universal_copy, !blockA, !rA) -> ()
          %88 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %89 = cute.local_tile(%sB, %15, %88) : (!sB, !cute.shape<"(128,1)">, !cute.coord<"(0,?)">) -> !memref_9
          %90 = cute.make_coord(%20) : (i32) -> !cute.coord<"?">
          %columnB = cute.tiled.mma.partition_B(%6, %89, %90) : (!tiled_mma, !memref_9, !cute.coord<"?">) -> !blockA
          %rB = cute.tiled.mma.make_fragment_B(%6, %columnB) : (!tiled_mma, !blockA) -> !rA
          cute.copy(%14, %columnB, %rB) : (!universal_copy, !blockA, !rA) -> ()
          %91 = cute.slice(%rA, %16) : !rA, !cute.coord<"(_,_,0)">
          %92 = cute.slice(%rB, %16) : !rA, !cute.coord<"(_,_,0)">
          cute.gemm(%6, %40, %91, %92, %40) : (!tiled_mma, !memref_4, !memref_10, !memref_10, !memref_4) -> ()
        }
        cute_nvgpu.arch.barrier() : () -> ()
      }
      %45 = cute.assume(%19#1) : (i32) -> !cute.i32<divby 4>
      %46 = cute.make_shape(%19#0, %45) : (i32, !cute.i32<divby 4>) -> !cute.shape<"(?,?{div=4})">
      %47 = cute.make_identity_layout(%46) : !cute.shape<"(?,?{div=4})"> -> !layout_3
      %48 = cute.make_view(%3, %47) : !coord_tensor_3
      %49 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %ids = cute.local_tile(%48, %4, %49) : (!coord_tensor_3, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !ids_3
      %50 = cute.memref.load(%ids, %17) : (!ids_3, !cute.coord<"16383">) -> !cute.int_tuple<"(?,?)">
      %51:2 = cute.get_scalars<{only_dynamic}> (%50) : !cute.int_tuple<"(?,?)">
      %52 = cute.make_int_tuple(%51#0, %51#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %53 = cute.assume(%19#1) : (i32) -> !cute.i32<divby 4>
      %54 = cute.make_int_tuple(%19#0, %53) : (i32, !cute.i32<divby 4>) -> !int_tuple
      %whole = cute.elem_less(%52, %54) : (!cute.int_tuple<"(?,?)">, !int_tuple) -> i1
      scf.if %whole {
        cute.copy(%14, %40, %39) : (!universal_copy, !memref_4, !memref_13) -> ()
      } else {
        %55 = cute.make_coord(%20) : (i32) -> !cute.coord<"?">
        %xC = cute.tiled.mma.partition_C(%6, %ids, %55) : (!tiled_mma, !ids_3, !cute.coord<"?">) -> !xC
        %inside = cute.make_fragment_like(%xC) [i1] : !xC -> !inside
        scf.for %i = %c0_i32 to %c64_i32 step %c1_i32 : i32 {
          %56 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %57 = cute.memref.load(%xC, %56) : (!xC, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %58:2 = cute.get_scalars<{only_dynamic}> (%57) : !cute.int_tuple<"(?,?)">
          %59 = cute.make_int_tuple(%58#0, %58#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %60 = cute.assume(%19#1) : (i32) -> !cute.i32<divby 4>
          %61 = cute.make_int_tuple(%19#0, %60) : (i32, !cute.i32<divby 4>) -> !int_tuple
          %62 = cute.elem_less(%59, %61) : (!cute.int_tuple<"(?,?)">, !int_tuple) -> i1
          %63 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%inside, %63, %62) : (!inside, !cute.coord<"?">, i1) -> ()
        }
        cute.copy(%14, %40, %39, pred = %inside) : (!universal_copy, !memref_4, !memref_13, !inside) -> ()
      }
      gpu.return
    }
  }
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
