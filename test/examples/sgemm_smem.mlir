!mA = !cute.memref<f32, gmem, "(?,?):(?,1)">
!universal_fma = !cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f32)>
!tiled_mma = !cute.tiled_mma<!universal_fma, atom_layout_MNK = <"(32,32,1):(32,1,0)">>
!universal_copy = !cute_nvgpu.atom.universal_copy<f32>
!tiled_copy = !cute.tiled_copy<!universal_copy, layout_copy_tv = <"((32,32),1):((32,1),32)">, tiler_mn = <"[32:1;32:1]">>
!tiled_copy_2 = !cute.tiled_copy<!universal_copy, layout_copy_tv = <"((32,32),1):((1,32),1)">, tiler_mn = <"[32:1;32:1]">>
!layout = !cute.layout<"(?,?):(1@0,1@1)">
!coord_tensor = !cute.coord_tensor<"(0,0)", "(?,?):(1@0,1@1)">
!memref = !cute.memref<f32, gmem, "(?,?):(1,?)">
!memref_2 = !cute.memref<f32, gmem, "(32,32):(?,1)">
!memref_3 = !cute.memref<f32, gmem, "(1,1,1):(0,0,0)">
!rB = !cute.memref<f32, rmem, "(1,1,1):(0,0,0)">
!sA = !cute.memref<f32, smem, align<16>, "(32,32):(32,1)">
!sB = !cute.memref<f32, smem, align<16>, "(32,32):(1,32)">
!part = !cute.memref<f32, gmem, "((1,1),1,1):((0,0),0,0)">
!ids = !cute.coord_tensor<"(?{div=32},?{div=32})", "(32,32):(1@0,1@1)">
!ids_2 = !cute.coord_tensor<"(?,?)", "((1,1),1,1):((0,0),0,0)">
!flags = !cute.memref<i1, rmem, "(1,1,1):(0,1,1)">
!first = !cute.coord_tensor<"(?,?)", "(1,1):(0,0)">
!each = !cute.memref<i1, rmem, "(1,1):(1,1)">
!values = !cute.memref<f32, rmem, "((1,1),1,1):((0,0),0,0)">
!memref_4 = !cute.memref<f32, gmem, "(32,32):(1,?)">
!memref_5 = !cute.memref<f32, smem, "((1,1),1,1):((0,0),0,0)">
!memref_6 = !cute.memref<f32, smem, align<16>, "(32,4):(32,1)">
!blockA = !cute.memref<f32, smem, align<16>, "(1,1,4):(0,0,1)">
!rA = !cute.memref<f32, rmem, align<16>, "(1,1,4):(0,0,1)">
!blockB = !cute.memref<f32, smem, align<16>, "(32,4):(1,32)">
!memref_7 = !cute.memref<f32, smem, align<16>, "(32,1):(1,0)">
!columnB = !cute.memref<f32, smem, "(1,1,1):(0,0,0)">
!memref_8 = !cute.memref<f32, rmem, align<16>, "(1,1):(0,0)">
!memref_9 = !cute.memref<f32, rmem, "(1,1):(0,0)">
!memref_10 = !cute.memref<f32, rmem, align<8>, "(1,1):(0,0)">
!xC = !cute.coord_tensor<"(?,?)", "(1,1,1):(0,0,0)">
!inside = !cute.memref<i1, rmem, "(1,1,1):(0,0,0)">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @sgemm(%mA: !mA, %mB: !mA, %mC: !mA) kernel attributes {known_block_size = array<i32: 1024, 1, 1>} {
      %0 = cute.get_layout(%mA) : !mA
      %1:3 = cute.get_scalars<{only_dynamic}> (%0) : !cute.layout<"(?,?):(?,1)">
      %2 = cute.static : !cute.int_tuple<"32">
      %3 = cute.static : !cute.int_tuple<"(0,0)">
      %4 = cute.static : !cute.shape<"(32,32)">
      %5 = cute.atom() : !universal_fma
      %6 = cute.make_tiled_mma(%5) : !tiled_mma
      %7 = cute.atom() : !universal_copy
      %8 = cute.make_tiled_copy(%7) : !tiled_copy
      %9 = cute.static : !cute.coord<"(0,_,_)">
      %10 = cute.static : !cute.coord<"0">
      %11 = cute.make_tiled_copy(%7) : !tiled_copy_2
      %12 = cute.static : !cute.shape<"(32,4)">
      %13 = cute.static : !cute.shape<"(32,1)">
      %14 = cute.static : !cute.coord<"(0,0)">
      %15 = cute.static : !cute.coord<"(_,_,0)">
      %16 = cute.static : !cute.coord<"(0,1)">
      %17 = cute.static : !cute.coord<"(_,_,1)">
      %18 = cute.static : !cute.coord<"(0,2)">
      %19 = cute.static : !cute.coord<"(_,_,2)">
      %20 = cute.static : !cute.coord<"(0,3)">
      %21 = cute.static : !cute.coord<"(_,_,3)">
      %c0_i32 = arith.constant 0 : i32
      %c8_i32 = arith.constant 8 : i32
      %c1_i32 = arith.constant 1 : i32
      %22 = cute.static : !cute.coord<"1023">
      %23 = cute.get_layout(%mC) : !mA
      %24:3 = cute.get_scalars<{only_dynamic}> (%23) : !cute.layout<"(?,?):(?,1)">
      %25 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32
      %26 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %27 = cute.make_int_tuple(%24#1) : (i32) -> !cute.int_tuple<"?">
      %28 = cute.ceil_div(%27, %2) : (!cute.int_tuple<"?">, !cute.int_tuple<"32">) -> !cute.int_tuple<"?">
      %across = cute.get_scalars<{only_dynamic}> (%28) : !cute.int_tuple<"?">
      %row = arith.divui %26, %across : i32
      %column = arith.remui %26, %across : i32
      %29 = cute.make_shape(%1#0, %1#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %30 = cute.make_identity_layout(%29) : !cute.shape<"(?,?)"> -> !layout
      %31 = cute.make_view(%3, %30) : !coord_tensor
      %32 = cute.select<[1, 0]> (%mB) : !mA -> !memref
      %33 = cute.get_layout(%32) : !memref
      %34:3 = cute.get_scalars<{only_dynamic}> (%33) : !cute.layout<"(?,?):(1,?)">
      %35 = cute.make_shape(%34#0, %34#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %36 = cute.make_identity_layout(%35) : !cute.shape<"(?,?)"> -> !layout
      %37 = cute.make_view(%3, %36) : !coord_tensor
      %38 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %39 = cute.local_tile(%mC, %4, %38) : (!mA, !cute.shape<"(32,32)">, !cute.coord<"(?,?)">) -> !memref_2
      %40 = cute.make_coord(%25) : (i32) -> !cute.coord<"?">
      %41 = cute.tiled.mma.partition_C(%6, %39, %40) : (!tiled_mma, !memref_2, !cute.coord<"?">) -> !memref_3
      %42 = cute.tiled.mma.make_fragment_C(%6, %41) : (!tiled_mma, !memref_3) -> !rB
      cute.clear(%42) : (!rB) -> ()
      %sA = cute.memref.alloc_smem() : !sA
      %sB = cute.memref.alloc_smem() : !sB
      %43 = cute.make_int_tuple(%1#1) : (i32) -> !cute.int_tuple<"?">
      %44 = cute.ceil_div(%43, %2) : (!cute.int_tuple<"?">, !cute.int_tuple<"32">) -> !cute.int_tuple<"?">
      %45 = cute.get_scalars<{only_dynamic}> (%44) : !cute.int_tuple<"?">
      scf.for %tile = %c0_i32 to %45 step %c1_i32 : i32 {
        %54 = cute.make_coord(%row, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %55 = cute.local_tile(%mA, %4, %54) : (!mA, !cute.shape<"(32,32)">, !cute.coord<"(?,?)">) -> !memref_2
        %56 = cute.make_coord(%25) : (i32) -> !cute.coord<"?">
        %part = cute.tiled.copy.partition_S(%8, %55, %56) : (!tiled_copy, !memref_2, !cute.coord<"?">) -> !part
        %57 = cute.make_coord(%row, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %58 = cute.local_tile(%31, %4, %57) : (!coord_tensor, !cute.shape<"(32,32)">, !cute.coord<"(?,?)">) -> !ids
        %59 = cute.make_coord(%25) : (i32) -> !cute.coord<"?">
        %ids_0 = cute.tiled.copy.partition_S(%8, %58, %59) : (!tiled_copy, !ids, !cute.coord<"?">) -> !ids_2
        %flags = cute.memref.alloca() : !flags
        %first = cute.slice(%ids_0, %9) : !ids_2, !cute.coord<"(0,_,_)">
        %each = cute.slice(%flags, %9) : !flags, !cute.coord<"(0,_,_)">
        %60 = cute.memref.load(%first, %10) : (!first, !cute.coord<"0">) -> !cute.int_tuple<"(?,?)">
        %61:2 = cute.get_scalars<{only_dynamic}> (%60) : !cute.int_tuple<"(?,?)">
        %62 = cute.make_int_tuple(%61#0, %61#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %63 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %64 = cute.elem_less(%62, %63) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        cute.memref.store(%each, %10, %64) : (!each, !cute.coord<"0">, i1) -> ()
        %values = cute.make_fragment_like(%part) : !part -> !values
        cute.clear(%values) : (!values) -> ()
        cute.copy(%7, %part, %values, pred = %flags) : (!universal_copy, !part, !values, !flags) -> ()
        %65 = cute.make_coord(%column, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %66 = cute.local_tile(%32, %4, %65) : (!memref, !cute.shape<"(32,32)">, !cute.coord<"(?,?)">) -> !memref_4
        %67 = cute.make_coord(%25) : (i32) -> !cute.coord<"?">
        %part_1 = cute.tiled.copy.partition_S(%11, %66, %67) : (!tiled_copy_2, !memref_4, !cute.coord<"?">) -> !part
        %68 = cute.make_coord(%column, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %69 = cute.local_tile(%37, %4, %68) : (!coord_tensor, !cute.shape<"(32,32)">, !cute.coord<"(?,?)">) -> !ids
        %70 = cute.make_coord(%25) : (i32) -> !cute.coord<"?">
        %ids_2 = cute.tiled.copy.partition_S(%11, %69, %70) : (!tiled_copy_2, !ids, !cute.coord<"?">) -> !ids_2
        %flags_3 = cute.memref.alloca() : !flags
        %first_4 = cute.slice(%ids_2, %9) : !ids_2, !cute.coord<"(0,_,_)">
        %each_5 = cute.slice(%flags_3, %9) : !flags, !cute.coord<"(0,_,_)">
        %71 = cute.memref.load(%first_4, %10) : (!first, !cute.coord<"0">) -> !cute.int_tuple<"(?,?)">
        %72:2 = cute.get_scalars<{only_dynamic}> (%71) : !cute.int_tuple<"(?,?)">
        %73 = cute.make_int_tuple(%72#0, %72#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %74 = cute.make_int_tuple(%34#0, %34#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %75 = cute.elem_less(%73, %74) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        cute.memref.store(%each_5, %10, %75) : (!each, !cute.coord<"0">, i1) -> ()
        %values_6 = cute.make_fragment_like(%part_1) : !part -> !values
        cute.clear(%values_6) : (!values) -> ()
        cute.copy(%7, %part_1, %values_6, pred = %flags_3) : (!universal_copy, !part, !values, !flags) -> ()
        %76 = cute.make_coord(%25) : (i32) -> !cute.coord<"?">
        %77 = cute.tiled.copy.partition_D(%8, %sA, %76) : (!tiled_copy, !sA, !cute.coord<"?">) -> !memref_5
        cute.copy(%7, %values, %77) : (!universal_copy, !values, !memref_5) -> ()
        %78 = cute.make_coord(%25) : (i32) -> !cute.coord<"?">
        %79 = cute.tiled.copy.partition_D(%11, %sB, %78) : (!tiled_copy_2, !sB, !cute.coord<"?">) -> !memref_5
        cute.copy(%7, %values_6, %79) : (!universal_copy, !values, !memref_5) -> ()
        cute_nvgpu.arch.barrier() : () -> ()
        scf.for %k = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %80 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %81 = cute.local_tile(%sA, %12, %80) : (!sA, !cute.shape<"(32,4)">, !cute.coord<"(0,?)">) -> !memref_6
          %82 = cute.make_coord(%25) : (i32) -> !cute.coord<"?">
          %blockA = cute.tiled.mma.partition_A(%6, %81, %82) : (!tiled_mma, !memref_6, !cute.coord<"?">) -> !blockA
          %rA = cute.tiled.mma.make_fragment_A(%6, %blockA) : (!tiled_mma, !blockA) -> !rA
          cute.copy(%7, %blockA, %rA) : (!universal_copy, !blockA, !rA) -> ()
          %83 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %blockB = cute.local_tile(%sB, %12, %83) : (!sB, !cute.shape<"(32,4)">, !cute.coord<"(0,?)">) -> !blockB
          %84 = cute.local_tile(%blockB, %13, %14) : (!blockB, !cute.shape<"(32,1)">, !cute.coord<"(0,0)">) -> !memref_7
          %85 = cute.make_coord(%25) : (i32) -> !cute.coord<"?">
          %columnB = cute.tiled.mma.partition_B(%6, %84, %85) : (!tiled_mma, !memref_7, !cute.coord<"?">) -> !columnB
          %rB = cute.tiled.mma.make_fragment_B(%6, %columnB) : (!tiled_mma, !columnB) -> !rB
          cute.copy(%7, %columnB, %rB) : (!universal_copy, !columnB, !rB) -> ()
          %86 = cute.slice(%rA, %15) : !rA, !cute.coord<"(_,_,0)">
          %87 = cute.slice(%rB, %15) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%6, %42, %86, %87, %42) : (!tiled_mma, !rB, !memref_8, !memref_9, !rB) -> ()
          %88 = cute.local_tile(%blockB, %13, %16) : (!blockB, !cute.shape<"(32,1)">, !cute.coord<"(0,1)">) -> !memref_7
          %89 = cute.make_coord(%25) : (i32) -> !cute.coord<"?">
          %columnB_7 = cute.tiled.mma.partition_B(%6, %88, %89) : (!tiled_mma, !memref_7, !cute.coord<"?">) -> !columnB
          %rB_8 = cute.tiled.mma.make_fragment_B(%6, %columnB_7) : (!tiled_mma, !columnB) -> !rB
          cute.copy(%7, %columnB_7, %rB_8) : (!universal_copy, !columnB, !rB) -> ()
          %90 = cute.slice(%rA, %17) : !rA, !cute.coord<"(_,_,1)">
          %91 = cute.slice(%rB_8, %15) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%6, %42, %90, %91, %42) : (!tiled_mma, !rB, !memref_9, !memref_9, !rB) -> ()
          %92 = cute.local_tile(%blockB, %13, %18) : (!blockB, !cute.shape<"(32,1)">, !cute.coord<"(0,2)">) -> !memref_7
          %93 = cute.make_coord(%25) : (i32) -> !cute.coord<"?">
          %columnB_9 = cute.tiled.mma.partition_B(%6, %92, %93) : (!tiled_mma, !memref_7, !cute.coord<"?">) -> !columnB
          %rB_10 = cute.tiled.mma.make_fragment_B(%6, %columnB_9) : (!tiled_mma, !columnB) -> !rB
          cute.copy(%7, %columnB_9, %rB_10) : (!universal_copy, !columnB, !rB) -> ()
          %94 = cute.slice(%rA, %19) : !rA, !cute.coord<"(_,_,2)">
          %95 = cute.slice(%rB_10, %15) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%6, %42, %94, %95, %42) : (!tiled_mma, !rB, !memref_10, !memref_9, !rB) -> ()
          %96 = cute.local_tile(%blockB, %13, %20) : (!blockB, !cute.shape<"(32,1)">, !cute.coord<"(0,3)">) -> !memref_7
          %97 = cute.make_coord(%25) : (i32) -> !cute.coord<"?">
          %columnB_11 = cute.tiled.mma.partition_B(%6, %96, %97) : (!tiled_mma, !memref_7, !cute.coord<"?">) -> !columnB
          %rB_12 = cute.tiled.mma.make_fragment_B(%6, %columnB_11) : (!tiled_mma, !columnB) -> !rB
          cute.copy(%7, %columnB_11, %rB_12) : (!universal_copy, !columnB, !rB) -> ()
          %98 = cute.slice(%rA, %21) : !rA, !cute.coord<"(_,_,3)">
          %99 = cute.slice(%rB_12, %15) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%6, %42, %98, %99, %42) : (!tiled_mma, !rB, !memref_9, !memref_9, !rB) -> ()
        }
        cute_nvgpu.arch.barrier() : () -> ()
      }
      %46 = cute.make_shape(%24#0, %24#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %47 = cute.make_identity_layout(%46) : !cute.shape<"(?,?)"> -> !layout
      %48 = cute.make_view(%3, %47) : !coord_tensor
      %49 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %ids = cute.local_tile(%48, %4, %49) : (!coord_tensor, !cute.shape<"(32,32)">, !cute.coord<"(?,?)">) -> !ids
      %50 = cute.memref.load(%ids, %22) : (!ids, !cute.coord<"1023">) -> !cute.int_tuple<"(?,?)">
      %51:2 = cute.get_scalars<{only_dynamic}> (%50) : !cute.int_tuple<"(?,?)">
      %52 = cute.make_int_tuple(%51#0, %51#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %53 = cute.make_int_tuple(%24#0, %24#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %whole = cute.elem_less(%52, %53) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
      scf.if %whole {
        cute.copy(%7, %42, %41) : (!universal_copy, !rB, !memref_3) -> ()
      } else {
        %54 = cute.make_coord(%25) : (i32) -> !cute.coord<"?">
        %xC = cute.tiled.mma.partition_C(%6, %ids, %54) : (!tiled_mma, !ids, !cute.coord<"?">) -> !xC
        %inside = cute.make_fragment_like(%xC) [i1] : !xC -> !inside
        %55 = cute.memref.load(%xC, %10) : (!xC, !cute.coord<"0">) -> !cute.int_tuple<"(?,?)">
        %56:2 = cute.get_scalars<{only_dynamic}> (%55) : !cute.int_tuple<"(?,?)">
        %57 = cute.make_int_tuple(%56#0, %56#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %58 = cute.make_int_tuple(%24#0, %24#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %59 = cute.elem_less(%57, %58) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        cute.memref.store(%inside, %10, %59) : (!inside, !cute.coord<"0">, i1) -> ()
        cute.copy(%7, %42, %41, pred = %inside) : (!universal_copy, !rB, !memref_3, !inside) -> ()
      }
      gpu.return
    }
  }
  func.func @launch(%mA: !mA, %mB: !mA, %mC: !mA) {
    %0 = cute.static : !cute.int_tuple<"32">
    %c1_i32 = arith.constant 1 : i32
    %c1024_i32 = arith.constant 1024 : i32
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
    %11 = cute.ceil_div(%10, %0) : (!cute.int_tuple<"?">, !cute.int_tuple<"32">) -> !cute.int_tuple<"?">
    %12 = cute.get_scalars<{only_dynamic}> (%11) : !cute.int_tuple<"?">
    %13 = cute.make_int_tuple(%2#1) : (i32) -> !cute.int_tuple<"?">
    %14 = cute.ceil_div(%13, %0) : (!cute.int_tuple<"?">, !cute.int_tuple<"32">) -> !cute.int_tuple<"?">
    %15 = cute.get_scalars<{only_dynamic}> (%14) : !cute.int_tuple<"?">
    %16 = arith.muli %12, %15 : i32
    gpu.launch_func @kernels::@sgemm blocks in (%16, %c1_i32, %c1_i32) threads in (%c1024_i32, %c1_i32, %c1_i32) : i32 args(%mA : !mA, %mB : !mA, %mC : !mA)
    return
  }
}
