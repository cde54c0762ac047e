!mA = !cute.memref<f32, gmem, "(?,?):(?,1)">
!universal_fma = !cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f32)>
!tiled_mma = !cute.tiled_mma<!universal_fma, atom_layout_MNK = <"(8,64,1):(64,1,0)">>
!universal_copy = !cute_nvgpu.atom.universal_copy<f32>
!tiled_copy = !cute.tiled_copy<!universal_copy, layout_copy_tv = <"((8,64),1):((64,1),64)">, tiler_mn = <"[64:1;8:1]">>
!tiled_copy_2 = !cute.tiled_copy<!universal_copy, layout_copy_tv = <"((64,8),1):((1,64),1)">, tiler_mn = <"[64:1;8:1]">>
!layout = !cute.layout<"(?,?):(1@0,1@1)">
!coord_tensor = !cute.coord_tensor<"(0,0)", "(?,?):(1@0,1@1)">
!memref = !cute.memref<f32, gmem, "(?,?):(1,?)">
!memref_2 = !cute.memref<f32, gmem, "(64,64):(?,1)">
!memref_3 = !cute.memref<f32, gmem, "(1,8,1):(0,?{div=8},0)">
!rA = !cute.memref<f32, rmem, align<32>, "(1,8,1):(0,1,0)">
!sA = !cute.memref<f32, smem, align<16>, "(64,8):(8,1)">
!sB = !cute.memref<f32, smem, align<16>, "(64,8):(1,64)">
!memref_4 = !cute.memref<f32, gmem, "(64,8):(?,1)">
!part = !cute.memref<f32, gmem, "((1,1),1,1):((0,0),0,0)">
!coord_tensor_2 = !cute.coord_tensor<"(?{div=64},?{div=8})", "(64,8):(1@0,1@1)">
!ids = !cute.coord_tensor<"(?,?)", "((1,1),1,1):((0,0),0,0)">
!flags = !cute.memref<i1, rmem, "(1,1,1):(0,1,1)">
!first = !cute.coord_tensor<"(?,?)", "(1,1):(0,0)">
!each = !cute.memref<i1, rmem, "(1,1):(1,1)">
!values = !cute.memref<f32, rmem, "((1,1),1,1):((0,0),0,0)">
!memref_5 = !cute.memref<f32, gmem, "(64,8):(1,?)">
!memref_6 = !cute.memref<f32, smem, "((1,1),1,1):((0,0),0,0)">
!memref_7 = !cute.memref<f32, smem, "(64,1):(8,0)">
!blockA = !cute.memref<f32, smem, "(1,8,1):(0,64,0)">
!memref_8 = !cute.memref<f32, smem, align<16>, "(64,1):(1,0)">
!columnB = !cute.memref<f32, smem, "(1,1,1):(0,0,0)">
!rB = !cute.memref<f32, rmem, "(1,1,1):(0,0,0)">
!memref_9 = !cute.memref<f32, rmem, align<32>, "(1,8):(0,1)">
!memref_10 = !cute.memref<f32, rmem, "(1,1):(0,0)">
!ids_2 = !cute.coord_tensor<"(?{div=64},?{div=64})", "(64,64):(1@0,1@1)">
!xC = !cute.coord_tensor<"(?,?)", "(1,8,1):(0,8@0,0)">
!inside = !cute.memref<i1, rmem, align<8>, "(1,8,1):(0,1,0)">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // Multiply matrices of any alignment, tile by tile.
    gpu.func @sgemm(%mA: !mA, %mB: !mA, %mC: !mA) kernel attributes {known_block_size = array<i32: 512, 1, 1>} {
      %0 = cute.get_layout(%mA) : !mA
      %1:3 = cute.get_scalars<{only_dynamic}> (%0) : !cute.layout<"(?,?):(?,1)">
      %c63_i32 = arith.constant 63 : i32
      %c6_i32 = arith.constant 6 : i32
      %2 = cute.static : !cute.int_tuple<"(0,0)">
      %3 = cute.static : !cute.shape<"(64,64)">
      %4 = cute.atom() : !universal_fma
      %5 = cute.make_tiled_mma(%4) : !tiled_mma
      %c7_i32 = arith.constant 7 : i32
      %c3_i32 = arith.constant 3 : i32
      %6 = cute.static : !cute.shape<"(64,8)">
      %7 = cute.atom() : !universal_copy
      %8 = cute.make_tiled_copy(%7) : !tiled_copy
      %9 = cute.static : !cute.coord<"(0,_,_)">
      %10 = cute.static : !cute.coord<"0">
      %11 = cute.make_tiled_copy(%7) : !tiled_copy_2
      %12 = cute.static : !cute.shape<"(64,1)">
      %13 = cute.static : !cute.coord<"(_,_,0)">
      %c0_i32 = arith.constant 0 : i32
      %c8_i32 = arith.constant 8 : i32
      %c1_i32 = arith.constant 1 : i32
      %14 = cute.static : !cute.coord<"4095">
      %15 = cute.get_layout(%mC) : !mA
      %16:3 = cute.get_scalars<{only_dynamic}> (%15) : !cute.layout<"(?,?):(?,1)">
      %17 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 512> : i32
      %18 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %19 = arith.addi %16#1, %c63_i32 : i32
      %across = arith.shrui %19, %c6_i32 : i32
      %row = arith.divui %18, %across : i32
      %column = arith.remui %18, %across : i32
      %20 = cute.make_shape(%1#0, %1#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %21 = cute.make_identity_layout(%20) : !cute.shape<"(?,?)"> -> !layout
      %22 = cute.make_view(%2, %21) : !coord_tensor
      %23 = cute.select<[1, 0]> (%mB) : !mA -> !memref
      %24 = cute.get_layout(%23) : !memref
      %25:3 = cute.get_scalars<{only_dynamic}> (%24) : !cute.layout<"(?,?):(1,?)">
      %26 = cute.make_shape(%25#0, %25#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %27 = cute.make_identity_layout(%26) : !cute.shape<"(?,?)"> -> !layout
      %28 = cute.make_view(%2, %27) : !coord_tensor
      %29 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %30 = cute.local_tile(%mC, %3, %29) : (!mA, !cute.shape<"(64,64)">, !cute.coord<"(?,?)">) -> !memref_2
      %31 = cute.make_coord(%17) : (i32) -> !cute.coord<"?">
      %32 = cute.tiled.mma.partition_C(%5, %30, %31) : (!tiled_mma, !memref_2, !cute.coord<"?">) -> !memref_3
      %33 = cute.tiled.mma.make_fragment_C(%5, %32) : (!tiled_mma, !memref_3) -> !rA
      cute.clear(%33) : (!rA) -> ()
      %sA = cute.memref.alloc_smem() : !sA
      %sB = cute.memref.alloc_smem() : !sB
      %34 = arith.addi %1#1, %c7_i32 : i32
      %35 = arith.shrui %34, %c3_i32 : i32
      scf.for %tile = %c0_i32 to %35 step %c1_i32 : i32 {
        // Load the next tiles through registers.
        %44 = cute.make_coord(%row, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %45 = cute.local_tile(%mA, %6, %44) : (!mA, !cute.shape<"(64,8)">, !cute.coord<"(?,?)">) -> !memref_4
        %46 = cute.make_coord(%17) : (i32) -> !cute.coord<"?">
        %part = cute.tiled.copy.partition_S(%8, %45, %46) : (!tiled_copy, !memref_4, !cute.coord<"?">) -> !part
        %47 = cute.make_coord(%row, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %48 = cute.local_tile(%22, %6, %47) : (!coord_tensor, !cute.shape<"(64,8)">, !cute.coord<"(?,?)">) -> !coord_tensor_2
        %49 = cute.make_coord(%17) : (i32) -> !cute.coord<"?">
        %ids_0 = cute.tiled.copy.partition_S(%8, %48, %49) : (!tiled_copy, !coord_tensor_2, !cute.coord<"?">) -> !ids
        %flags = cute.memref.alloca() : !flags
        %first = cute.slice(%ids_0, %9) : !ids, !cute.coord<"(0,_,_)">
        %each = cute.slice(%flags, %9) : !flags, !cute.coord<"(0,_,_)">
        %50 = cute.memref.load(%first, %10) : (!first, !cute.coord<"0">) -> !cute.int_tuple<"(?,?)">
        %51:2 = cute.get_scalars<{only_dynamic}> (%50) : !cute.int_tuple<"(?,?)">
        %52 = cute.make_int_tuple(%51#0, %51#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %53 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %54 = cute.elem_less(%52, %53) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        cute.memref.store(%each, %10, %54) : (!each, !cute.coord<"0">, i1) -> ()
        %values = cute.make_fragment_like(%part) : !part -> !values
        cute.clear(%values) : (!values) -> ()
        cute.copy(%7, %part, %values, pred = %flags) : (!universal_copy, !part, !values, !flags) -> ()
        %55 = cute.make_coord(%column, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %56 = cute.local_tile(%23, %6, %55) : (!memref, !cute.shape<"(64,8)">, !cute.coord<"(?,?)">) -> !memref_5
        %57 = cute.make_coord(%17) : (i32) -> !cute.coord<"?">
        %part_1 = cute.tiled.copy.partition_S(%11, %56, %57) : (!tiled_copy_2, !memref_5, !cute.coord<"?">) -> !part
        %58 = cute.make_coord(%column, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %59 = cute.local_tile(%28, %6, %58) : (!coord_tensor, !cute.shape<"(64,8)">, !cute.coord<"(?,?)">) -> !coord_tensor_2
        %60 = cute.make_coord(%17) : (i32) -> !cute.coord<"?">
        %ids_2 = cute.tiled.copy.partition_S(%11, %59, %60) : (!tiled_copy_2, !coord_tensor_2, !cute.coord<"?">) -> !ids
        %flags_3 = cute.memref.alloca() : !flags
        %first_4 = cute.slice(%ids_2, %9) : !ids, !cute.coord<"(0,_,_)">
        %each_5 = cute.slice(%flags_3, %9) : !flags, !cute.coord<"(0,_,_)">
        %61 = cute.memref.load(%first_4, %10) : (!first, !cute.coord<"0">) -> !cute.int_tuple<"(?,?)">
        %62:2 = cute.get_scalars<{only_dynamic}> (%61) : !cute.int_tuple<"(?,?)">
        %63 = cute.make_int_tuple(%62#0, %62#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %64 = cute.make_int_tuple(%25#0, %25#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %65 = cute.elem_less(%63, %64) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        cute.memref.store(%each_5, %10, %65) : (!each, !cute.coord<"0">, i1) -> ()
        %values_6 = cute.make_fragment_like(%part_1) : !part -> !values
        cute.clear(%values_6) : (!values) -> ()
        cute.copy(%7, %part_1, %values_6, pred = %flags_3) : (!universal_copy, !part, !values, !flags) -> ()
        %66 = cute.make_coord(%17) : (i32) -> !cute.coord<"?">
        %67 = cute.tiled.copy.partition_D(%8, %sA, %66) : (!tiled_copy, !sA, !cute.coord<"?">) -> !memref_6
        cute.copy(%7, %values, %67) : (!universal_copy, !values, !memref_6) -> ()
        %68 = cute.make_coord(%17) : (i32) -> !cute.coord<"?">
        %69 = cute.tiled.copy.partition_D(%11, %sB, %68) : (!tiled_copy_2, !sB, !cute.coord<"?">) -> !memref_6
        cute.copy(%7, %values_6, %69) : (!universal_copy, !values, !memref_6) -> ()
        cute_nvgpu.arch.barrier() : () -> ()
        scf.for %k = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %70 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %71 = cute.local_tile(%sA, %12, %70) : (!sA, !cute.shape<"(64,1)">, !cute.coord<"(0,?)">) -> !memref_7
          %72 = cute.make_coord(%17) : (i32) -> !cute.coord<"?">
          %blockA = cute.tiled.mma.partition_A(%5, %71, %72) : (!tiled_mma, !memref_7, !cute.coord<"?">) -> !blockA
          %rA = cute.tiled.mma.make_fragment_A(%5, %blockA) : (!tiled_mma, !blockA) -> !rA
          cute.copy(%7, %blockA, %rA) : (!universal_copy, !blockA, !rA) -> ()
          %73 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %74 = cute.local_tile(%sB, %12, %73) : (!sB, !cute.shape<"(64,1)">, !cute.coord<"(0,?)">) -> !memref_8
          %75 = cute.make_coord(%17) : (i32) -> !cute.coord<"?">
          %columnB = cute.tiled.mma.partition_B(%5, %74, %75) : (!tiled_mma, !memref_8, !cute.coord<"?">) -> !columnB
          %rB = cute.tiled.mma.make_fragment_B(%5, %columnB) : (!tiled_mma, !columnB) -> !rB
          cute.copy(%7, %columnB, %rB) : (!universal_copy, !columnB, !rB) -> ()
          %76 = cute.slice(%rA, %13) : !rA, !cute.coord<"(_,_,0)">
          %77 = cute.slice(%rB, %13) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%5, %33, %76, %77, %33) : (!tiled_mma, !rA, !memref_9, !memref_10, !rA) -> ()
        }
        cute_nvgpu.arch.barrier() : () -> ()
      }
      %36 = cute.make_shape(%16#0, %16#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %37 = cute.make_identity_layout(%36) : !cute.shape<"(?,?)"> -> !layout
      %38 = cute.make_view(%2, %37) : !coord_tensor
      %39 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %ids = cute.local_tile(%38, %3, %39) : (!coord_tensor, !cute.shape<"(64,64)">, !cute.coord<"(?,?)">) -> !ids_2
      %40 = cute.memref.load(%ids, %14) : (!ids_2, !cute.coord<"4095">) -> !cute.int_tuple<"(?,?)">
      %41:2 = cute.get_scalars<{only_dynamic}> (%40) : !cute.int_tuple<"(?,?)">
      %42 = cute.make_int_tuple(%41#0, %41#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %43 = cute.make_int_tuple(%16#0, %16#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %whole = cute.elem_less(%42, %43) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
      scf.if %whole {
        cute.copy(%7, %33, %32) : (!universal_copy, !rA, !memref_3) -> ()
      } else {
        %44 = cute.make_coord(%17) : (i32) -> !cute.coord<"?">
        %xC = cute.tiled.mma.partition_C(%5, %ids, %44) : (!tiled_mma, !ids_2, !cute.coord<"?">) -> !xC
        %inside = cute.make_fragment_like(%xC) [i1] : !xC -> !inside
        scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %45 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %46 = cute.memref.load(%xC, %45) : (!xC, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %47:2 = cute.get_scalars<{only_dynamic}> (%46) : !cute.int_tuple<"(?,?)">
          %48 = cute.make_int_tuple(%47#0, %47#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %49 = cute.make_int_tuple(%16#0, %16#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %50 = cute.elem_less(%48, %49) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          %51 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%inside, %51, %50) : (!inside, !cute.coord<"?">, i1) -> ()
        }
        cute.copy(%7, %33, %32, pred = %inside) : (!universal_copy, !rA, !memref_3, !inside) -> ()
      }
      gpu.return
    }
  }
  // Launch one block per tile of C, with vector accesses if the matrices allow it.
  func.func @launch(%mA: !mA, %mB: !mA, %mC: !mA) {
    %0 = cute.static : !cute.int_tuple<"64">
    %c1_i32 = arith.constant 1 : i32
    %c512_i32 = arith.constant 512 : i32
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
    %11 = cute.ceil_div(%10, %0) : (!cute.int_tuple<"?">, !cute.int_tuple<"64">) -> !cute.int_tuple<"?">
    %12 = cute.get_scalars<{only_dynamic}> (%11) : !cute.int_tuple<"?">
    %13 = cute.make_int_tuple(%2#1) : (i32) -> !cute.int_tuple<"?">
    %14 = cute.ceil_div(%13, %0) : (!cute.int_tuple<"?">, !cute.int_tuple<"64">) -> !cute.int_tuple<"?">
    %15 = cute.get_scalars<{only_dynamic}> (%14) : !cute.int_tuple<"?">
    %16 = arith.muli %12, %15 : i32
    gpu.launch_func @kernels::@sgemm blocks in (%16, %c1_i32, %c1_i32) threads in (%c512_i32, %c1_i32, %c1_i32) : i32 args(%mA : !mA, %mB : !mA, %mC : !mA)
    return
  }
}
