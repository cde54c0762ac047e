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
    gpu.func @sgemm(%mA: !mA, %mB: !mA, %mC: !mA) kernel attributes {known_block_size = array<i32: 512, 1, 1>} {
      %0 = cute.get_layout(%mA) : !mA
      %1:3 = cute.get_scalars<{only_dynamic}> (%0) : !cute.layout<"(?,?):(?,1)">
      %2 = cute.static : !cute.int_tuple<"64">
      %3 = cute.static : !cute.int_tuple<"(0,0)">
      %4 = cute.static : !cute.shape<"(64,64)">
      %5 = cute.atom() : !universal_fma
      %6 = cute.make_tiled_mma(%5) : !tiled_mma
      %7 = cute.static : !cute.int_tuple<"8">
      %8 = cute.static : !cute.shape<"(64,8)">
      %9 = cute.atom() : !universal_copy
      %10 = cute.make_tiled_copy(%9) : !tiled_copy
      %11 = cute.static : !cute.coord<"(0,_,_)">
      %12 = cute.static : !cute.coord<"0">
      %13 = cute.make_tiled_copy(%9) : !tiled_copy_2
      %14 = cute.static : !cute.shape<"(64,1)">
      %15 = cute.static : !cute.coord<"(_,_,0)">
      %c0_i32 = arith.constant 0 : i32
      %c8_i32 = arith.constant 8 : i32
      %c1_i32 = arith.constant 1 : i32
      %16 = cute.static : !cute.coord<"4095">
      %17 = cute.get_layout(%mC) : !mA
      %18:3 = cute.get_scalars<{only_dynamic}> (%17) : !cute.layout<"(?,?):(?,1)">
      %19 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 512> : i32
      %20 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %21 = cute.make_int_tuple(%18#1) : (i32) -> !cute.int_tuple<"?">
      %22 = cute.ceil_div(%21, %2) : (!cute.int_tuple<"?">, !cute.int_tuple<"64">) -> !cute.int_tuple<"?">
      %across = cute.get_scalars<{only_dynamic}> (%22) : !cute.int_tuple<"?">
      %row = arith.divui %20, %across : i32
      %column = arith.remui %20, %across : i32
      %23 = cute.make_shape(%1#0, %1#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %24 = cute.make_identity_layout(%23) : !cute.shape<"(?,?)"> -> !layout
      %25 = cute.make_view(%3, %24) : !coord_tensor
      %26 = cute.select<[1, 0]> (%mB) : !mA -> !memref
      %27 = cute.get_layout(%26) : !memref
      %28:3 = cute.get_scalars<{only_dynamic}> (%27) : !cute.layout<"(?,?):(1,?)">
      %29 = cute.make_shape(%28#0, %28#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %30 = cute.make_identity_layout(%29) : !cute.shape<"(?,?)"> -> !layout
      %31 = cute.make_view(%3, %30) : !coord_tensor
      %32 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %33 = cute.local_tile(%mC, %4, %32) : (!mA, !cute.shape<"(64,64)">, !cute.coord<"(?,?)">) -> !memref_2
      %34 = cute.make_coord(%19) : (i32) -> !cute.coord<"?">
      %35 = cute.tiled.mma.partition_C(%6, %33, %34) : (!tiled_mma, !memref_2, !cute.coord<"?">) -> !memref_3
      %36 = cute.tiled.mma.make_fragment_C(%6, %35) : (!tiled_mma, !memref_3) -> !rA
      cute.clear(%36) : (!rA) -> ()
      %sA = cute.memref.alloc_smem() : !sA
      %sB = cute.memref.alloc_smem() : !sB
      %37 = cute.make_int_tuple(%1#1) : (i32) -> !cute.int_tuple<"?">
      %38 = cute.ceil_div(%37, %7) : (!cute.int_tuple<"?">, !cute.int_tuple<"8">) -> !cute.int_tuple<"?">
      %39 = cute.get_scalars<{only_dynamic}> (%38) : !cute.int_tuple<"?">
      scf.for %tile = %c0_i32 to %39 step %c1_i32 : i32 {
        %48 = cute.make_coord(%row, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %49 = cute.local_tile(%mA, %8, %48) : (!mA, !cute.shape<"(64,8)">, !cute.coord<"(?,?)">) -> !memref_4
        %50 = cute.make_coord(%19) : (i32) -> !cute.coord<"?">
        %part = cute.tiled.copy.partition_S(%10, %49, %50) : (!tiled_copy, !memref_4, !cute.coord<"?">) -> !part
        %51 = cute.make_coord(%row, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %52 = cute.local_tile(%25, %8, %51) : (!coord_tensor, !cute.shape<"(64,8)">, !cute.coord<"(?,?)">) -> !coord_tensor_2
        %53 = cute.make_coord(%19) : (i32) -> !cute.coord<"?">
        %ids_0 = cute.tiled.copy.partition_S(%10, %52, %53) : (!tiled_copy, !coord_tensor_2, !cute.coord<"?">) -> !ids
        %flags = cute.memref.alloca() : !flags
        %first = cute.slice(%ids_0, %11) : !ids, !cute.coord<"(0,_,_)">
        %each = cute.slice(%flags, %11) : !flags, !cute.coord<"(0,_,_)">
        %54 = cute.memref.load(%first, %12) : (!first, !cute.coord<"0">) -> !cute.int_tuple<"(?,?)">
        %55:2 = cute.get_scalars<{only_dynamic}> (%54) : !cute.int_tuple<"(?,?)">
        %56 = cute.make_int_tuple(%55#0, %55#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %57 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %58 = cute.elem_less(%56, %57) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        cute.memref.store(%each, %12, %58) : (!each, !cute.coord<"0">, i1) -> ()
        %values = cute.make_fragment_like(%part) : !part -> !values
        cute.clear(%values) : (!values) -> ()
        cute.copy(%9, %part, %values, pred = %flags) : (!universal_copy, !part, !values, !flags) -> ()
        %59 = cute.make_coord(%column, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %60 = cute.local_tile(%26, %8, %59) : (!memref, !cute.shape<"(64,8)">, !cute.coord<"(?,?)">) -> !memref_5
        %61 = cute.make_coord(%19) : (i32) -> !cute.coord<"?">
        %part_1 = cute.tiled.copy.partition_S(%13, %60, %61) : (!tiled_copy_2, !memref_5, !cute.coord<"?">) -> !part
        %62 = cute.make_coord(%column, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %63 = cute.local_tile(%31, %8, %62) : (!coord_tensor, !cute.shape<"(64,8)">, !cute.coord<"(?,?)">) -> !coord_tensor_2
        %64 = cute.make_coord(%19) : (i32) -> !cute.coord<"?">
        %ids_2 = cute.tiled.copy.partition_S(%13, %63, %64) : (!tiled_copy_2, !coord_tensor_2, !cute.coord<"?">) -> !ids
        %flags_3 = cute.memref.alloca() : !flags
        %first_4 = cute.slice(%ids_2, %11) : !ids, !cute.coord<"(0,_,_)">
        %each_5 = cute.slice(%flags_3, %11) : !flags, !cute.coord<"(0,_,_)">
        %65 = cute.memref.load(%first_4, %12) : (!first, !cute.coord<"0">) -> !cute.int_tuple<"(?,?)">
        %66:2 = cute.get_scalars<{only_dynamic}> (%65) : !cute.int_tuple<"(?,?)">
        %67 = cute.make_int_tuple(%66#0, %66#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %68 = cute.make_int_tuple(%28#0, %28#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %69 = cute.elem_less(%67, %68) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        cute.memref.store(%each_5, %12, %69) : (!each, !cute.coord<"0">, i1) -> ()
        %values_6 = cute.make_fragment_like(%part_1) : !part -> !values
        cute.clear(%values_6) : (!values) -> ()
        cute.copy(%9, %part_1, %values_6, pred = %flags_3) : (!universal_copy, !part, !values, !flags) -> ()
        %70 = cute.make_coord(%19) : (i32) -> !cute.coord<"?">
        %71 = cute.tiled.copy.partition_D(%10, %sA, %70) : (!tiled_copy, !sA, !cute.coord<"?">) -> !memref_6
        cute.copy(%9, %values, %71) : (!universal_copy, !values, !memref_6) -> ()
        %72 = cute.make_coord(%19) : (i32) -> !cute.coord<"?">
        %73 = cute.tiled.copy.partition_D(%13, %sB, %72) : (!tiled_copy_2, !sB, !cute.coord<"?">) -> !memref_6
        cute.copy(%9, %values_6, %73) : (!universal_copy, !values, !memref_6) -> ()
        cute_nvgpu.arch.barrier() : () -> ()
        scf.for %k = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %74 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %75 = cute.local_tile(%sA, %14, %74) : (!sA, !cute.shape<"(64,1)">, !cute.coord<"(0,?)">) -> !memref_7
          %76 = cute.make_coord(%19) : (i32) -> !cute.coord<"?">
          %blockA = cute.tiled.mma.partition_A(%6, %75, %76) : (!tiled_mma, !memref_7, !cute.coord<"?">) -> !blockA
          %rA = cute.tiled.mma.make_fragment_A(%6, %blockA) : (!tiled_mma, !blockA) -> !rA
          cute.copy(%9, %blockA, %rA) : (!universal_copy, !blockA, !rA) -> ()
          %77 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %78 = cute.local_tile(%sB, %14, %77) : (!sB, !cute.shape<"(64,1)">, !cute.coord<"(0,?)">) -> !memref_8
          %79 = cute.make_coord(%19) : (i32) -> !cute.coord<"?">
          %columnB = cute.tiled.mma.partition_B(%6, %78, %79) : (!tiled_mma, !memref_8, !cute.coord<"?">) -> !columnB
          %rB = cute.tiled.mma.make_fragment_B(%6, %columnB) : (!tiled_mma, !columnB) -> !rB
          cute.copy(%9, %columnB, %rB) : (!universal_copy, !columnB, !rB) -> ()
          %80 = cute.slice(%rA, %15) : !rA, !cute.coord<"(_,_,0)">
          %81 = cute.slice(%rB, %15) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%6, %36, %80, %81, %36) : (!tiled_mma, !rA, !memref_9, !memref_10, !rA) -> ()
        }
        cute_nvgpu.arch.barrier() : () -> ()
      }
      %40 = cute.make_shape(%18#0, %18#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %41 = cute.make_identity_layout(%40) : !cute.shape<"(?,?)"> -> !layout
      %42 = cute.make_view(%3, %41) : !coord_tensor
      %43 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %ids = cute.local_tile(%42, %4, %43) : (!coord_tensor, !cute.shape<"(64,64)">, !cute.coord<"(?,?)">) -> !ids_2
      %44 = cute.memref.load(%ids, %16) : (!ids_2, !cute.coord<"4095">) -> !cute.int_tuple<"(?,?)">
      %45:2 = cute.get_scalars<{only_dynamic}> (%44) : !cute.int_tuple<"(?,?)">
      %46 = cute.make_int_tuple(%45#0, %45#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %47 = cute.make_int_tuple(%18#0, %18#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %whole = cute.elem_less(%46, %47) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
      scf.if %whole {
        cute.copy(%9, %36, %35) : (!universal_copy, !rA, !memref_3) -> ()
      } else {
        %48 = cute.make_coord(%19) : (i32) -> !cute.coord<"?">
        %xC = cute.tiled.mma.partition_C(%6, %ids, %48) : (!tiled_mma, !ids_2, !cute.coord<"?">) -> !xC
        %inside = cute.make_fragment_like(%xC) [i1] : !xC -> !inside
        scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %49 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %50 = cute.memref.load(%xC, %49) : (!xC, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %51:2 = cute.get_scalars<{only_dynamic}> (%50) : !cute.int_tuple<"(?,?)">
          %52 = cute.make_int_tuple(%51#0, %51#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %53 = cute.make_int_tuple(%18#0, %18#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %54 = cute.elem_less(%52, %53) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          %55 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%inside, %55, %54) : (!inside, !cute.coord<"?">, i1) -> ()
        }
        cute.copy(%9, %36, %35, pred = %inside) : (!universal_copy, !rA, !memref_3, !inside) -> ()
      }
      gpu.return
    }
  }
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
