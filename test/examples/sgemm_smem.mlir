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
    // Multiply matrices of any alignment, tile by tile.
    gpu.func @sgemm(%mA: !mA, %mB: !mA, %mC: !mA) kernel attributes {known_block_size = array<i32: 1024, 1, 1>} {
      %0 = cute.get_layout(%mA) : !mA
      %1:3 = cute.get_scalars<{only_dynamic}> (%0) : !cute.layout<"(?,?):(?,1)">
      %c31_i32 = arith.constant 31 : i32
      %c5_i32 = arith.constant 5 : i32
      %2 = cute.static : !cute.int_tuple<"(0,0)">
      %3 = cute.static : !cute.shape<"(32,32)">
      %4 = cute.atom() : !universal_fma
      %5 = cute.make_tiled_mma(%4) : !tiled_mma
      %6 = cute.atom() : !universal_copy
      %7 = cute.make_tiled_copy(%6) : !tiled_copy
      %8 = cute.static : !cute.coord<"(0,_,_)">
      %9 = cute.static : !cute.coord<"0">
      %10 = cute.make_tiled_copy(%6) : !tiled_copy_2
      %11 = cute.static : !cute.shape<"(32,4)">
      %12 = cute.static : !cute.shape<"(32,1)">
      %13 = cute.static : !cute.coord<"(0,0)">
      %14 = cute.static : !cute.coord<"(_,_,0)">
      %15 = cute.static : !cute.coord<"(0,1)">
      %16 = cute.static : !cute.coord<"(_,_,1)">
      %17 = cute.static : !cute.coord<"(0,2)">
      %18 = cute.static : !cute.coord<"(_,_,2)">
      %19 = cute.static : !cute.coord<"(0,3)">
      %20 = cute.static : !cute.coord<"(_,_,3)">
      %c0_i32 = arith.constant 0 : i32
      %c8_i32 = arith.constant 8 : i32
      %c1_i32 = arith.constant 1 : i32
      %21 = cute.static : !cute.coord<"1023">
      %22 = cute.get_layout(%mC) : !mA
      %23:3 = cute.get_scalars<{only_dynamic}> (%22) : !cute.layout<"(?,?):(?,1)">
      %24 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32
      %25 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %26 = arith.addi %23#1, %c31_i32 : i32
      %across = arith.shrui %26, %c5_i32 : i32
      %row = arith.divui %25, %across : i32
      %column = arith.remui %25, %across : i32
      %27 = cute.make_shape(%1#0, %1#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %28 = cute.make_identity_layout(%27) : !cute.shape<"(?,?)"> -> !layout
      %29 = cute.make_view(%2, %28) : !coord_tensor
      %30 = cute.select<[1, 0]> (%mB) : !mA -> !memref
      %31 = cute.get_layout(%30) : !memref
      %32:3 = cute.get_scalars<{only_dynamic}> (%31) : !cute.layout<"(?,?):(1,?)">
      %33 = cute.make_shape(%32#0, %32#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %34 = cute.make_identity_layout(%33) : !cute.shape<"(?,?)"> -> !layout
      %35 = cute.make_view(%2, %34) : !coord_tensor
      %36 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %37 = cute.local_tile(%mC, %3, %36) : (!mA, !cute.shape<"(32,32)">, !cute.coord<"(?,?)">) -> !memref_2
      %38 = cute.make_coord(%24) : (i32) -> !cute.coord<"?">
      %39 = cute.tiled.mma.partition_C(%5, %37, %38) : (!tiled_mma, !memref_2, !cute.coord<"?">) -> !memref_3
      %40 = cute.tiled.mma.make_fragment_C(%5, %39) : (!tiled_mma, !memref_3) -> !rB
      cute.clear(%40) : (!rB) -> ()
      %sA = cute.memref.alloc_smem() : !sA
      %sB = cute.memref.alloc_smem() : !sB
      %41 = arith.addi %1#1, %c31_i32 : i32
      %42 = arith.shrui %41, %c5_i32 : i32
      scf.for %tile = %c0_i32 to %42 step %c1_i32 : i32 {
        // Load the next tiles through registers.
        %51 = cute.make_coord(%row, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %52 = cute.local_tile(%mA, %3, %51) : (!mA, !cute.shape<"(32,32)">, !cute.coord<"(?,?)">) -> !memref_2
        %53 = cute.make_coord(%24) : (i32) -> !cute.coord<"?">
        %part = cute.tiled.copy.partition_S(%7, %52, %53) : (!tiled_copy, !memref_2, !cute.coord<"?">) -> !part
        %54 = cute.make_coord(%row, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %55 = cute.local_tile(%29, %3, %54) : (!coord_tensor, !cute.shape<"(32,32)">, !cute.coord<"(?,?)">) -> !ids
        %56 = cute.make_coord(%24) : (i32) -> !cute.coord<"?">
        %ids_0 = cute.tiled.copy.partition_S(%7, %55, %56) : (!tiled_copy, !ids, !cute.coord<"?">) -> !ids_2
        %flags = cute.memref.alloca() : !flags
        %first = cute.slice(%ids_0, %8) : !ids_2, !cute.coord<"(0,_,_)">
        %each = cute.slice(%flags, %8) : !flags, !cute.coord<"(0,_,_)">
        %57 = cute.memref.load(%first, %9) : (!first, !cute.coord<"0">) -> !cute.int_tuple<"(?,?)">
        %58:2 = cute.get_scalars<{only_dynamic}> (%57) : !cute.int_tuple<"(?,?)">
        %59 = cute.make_int_tuple(%58#0, %58#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %60 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %61 = cute.elem_less(%59, %60) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        cute.memref.store(%each, %9, %61) : (!each, !cute.coord<"0">, i1) -> ()
        %values = cute.make_fragment_like(%part) : !part -> !values
        cute.clear(%values) : (!values) -> ()
        cute.copy(%6, %part, %values, pred = %flags) : (!universal_copy, !part, !values, !flags) -> ()
        %62 = cute.make_coord(%column, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %63 = cute.local_tile(%30, %3, %62) : (!memref, !cute.shape<"(32,32)">, !cute.coord<"(?,?)">) -> !memref_4
        %64 = cute.make_coord(%24) : (i32) -> !cute.coord<"?">
        %part_1 = cute.tiled.copy.partition_S(%10, %63, %64) : (!tiled_copy_2, !memref_4, !cute.coord<"?">) -> !part
        %65 = cute.make_coord(%column, %tile) : (i32, i32) -> !cute.coord<"(?,?)">
        %66 = cute.local_tile(%35, %3, %65) : (!coord_tensor, !cute.shape<"(32,32)">, !cute.coord<"(?,?)">) -> !ids
        %67 = cute.make_coord(%24) : (i32) -> !cute.coord<"?">
        %ids_2 = cute.tiled.copy.partition_S(%10, %66, %67) : (!tiled_copy_2, !ids, !cute.coord<"?">) -> !ids_2
        %flags_3 = cute.memref.alloca() : !flags
        %first_4 = cute.slice(%ids_2, %8) : !ids_2, !cute.coord<"(0,_,_)">
        %each_5 = cute.slice(%flags_3, %8) : !flags, !cute.coord<"(0,_,_)">
        %68 = cute.memref.load(%first_4, %9) : (!first, !cute.coord<"0">) -> !cute.int_tuple<"(?,?)">
        %69:2 = cute.get_scalars<{only_dynamic}> (%68) : !cute.int_tuple<"(?,?)">
        %70 = cute.make_int_tuple(%69#0, %69#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %71 = cute.make_int_tuple(%32#0, %32#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %72 = cute.elem_less(%70, %71) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        cute.memref.store(%each_5, %9, %72) : (!each, !cute.coord<"0">, i1) -> ()
        %values_6 = cute.make_fragment_like(%part_1) : !part -> !values
        cute.clear(%values_6) : (!values) -> ()
        cute.copy(%6, %part_1, %values_6, pred = %flags_3) : (!universal_copy, !part, !values, !flags) -> ()
        %73 = cute.make_coord(%24) : (i32) -> !cute.coord<"?">
        %74 = cute.tiled.copy.partition_D(%7, %sA, %73) : (!tiled_copy, !sA, !cute.coord<"?">) -> !memref_5
        cute.copy(%6, %values, %74) : (!universal_copy, !values, !memref_5) -> ()
        %75 = cute.make_coord(%24) : (i32) -> !cute.coord<"?">
        %76 = cute.tiled.copy.partition_D(%10, %sB, %75) : (!tiled_copy_2, !sB, !cute.coord<"?">) -> !memref_5
        cute.copy(%6, %values_6, %76) : (!universal_copy, !values, !memref_5) -> ()
        cute_nvgpu.arch.barrier() : () -> ()
        scf.for %k = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %77 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %78 = cute.local_tile(%sA, %11, %77) : (!sA, !cute.shape<"(32,4)">, !cute.coord<"(0,?)">) -> !memref_6
          %79 = cute.make_coord(%24) : (i32) -> !cute.coord<"?">
          %blockA = cute.tiled.mma.partition_A(%5, %78, %79) : (!tiled_mma, !memref_6, !cute.coord<"?">) -> !blockA
          %rA = cute.tiled.mma.make_fragment_A(%5, %blockA) : (!tiled_mma, !blockA) -> !rA
          cute.copy(%6, %blockA, %rA) : (!universal_copy, !blockA, !rA) -> ()
          %80 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %blockB = cute.local_tile(%sB, %11, %80) : (!sB, !cute.shape<"(32,4)">, !cute.coord<"(0,?)">) -> !blockB
          %81 = cute.local_tile(%blockB, %12, %13) : (!blockB, !cute.shape<"(32,1)">, !cute.coord<"(0,0)">) -> !memref_7
          %82 = cute.make_coord(%24) : (i32) -> !cute.coord<"?">
          %columnB = cute.tiled.mma.partition_B(%5, %81, %82) : (!tiled_mma, !memref_7, !cute.coord<"?">) -> !columnB
          %rB = cute.tiled.mma.make_fragment_B(%5, %columnB) : (!tiled_mma, !columnB) -> !rB
          cute.copy(%6, %columnB, %rB) : (!universal_copy, !columnB, !rB) -> ()
          %83 = cute.slice(%rA, %14) : !rA, !cute.coord<"(_,_,0)">
          %84 = cute.slice(%rB, %14) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%5, %40, %83, %84, %40) : (!tiled_mma, !rB, !memref_8, !memref_9, !rB) -> ()
          %85 = cute.local_tile(%blockB, %12, %15) : (!blockB, !cute.shape<"(32,1)">, !cute.coord<"(0,1)">) -> !memref_7
          %86 = cute.make_coord(%24) : (i32) -> !cute.coord<"?">
          %columnB_7 = cute.tiled.mma.partition_B(%5, %85, %86) : (!tiled_mma, !memref_7, !cute.coord<"?">) -> !columnB
          %rB_8 = cute.tiled.mma.make_fragment_B(%5, %columnB_7) : (!tiled_mma, !columnB) -> !rB
          cute.copy(%6, %columnB_7, %rB_8) : (!universal_copy, !columnB, !rB) -> ()
          %87 = cute.slice(%rA, %16) : !rA, !cute.coord<"(_,_,1)">
          %88 = cute.slice(%rB_8, %14) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%5, %40, %87, %88, %40) : (!tiled_mma, !rB, !memref_9, !memref_9, !rB) -> ()
          %89 = cute.local_tile(%blockB, %12, %17) : (!blockB, !cute.shape<"(32,1)">, !cute.coord<"(0,2)">) -> !memref_7
          %90 = cute.make_coord(%24) : (i32) -> !cute.coord<"?">
          %columnB_9 = cute.tiled.mma.partition_B(%5, %89, %90) : (!tiled_mma, !memref_7, !cute.coord<"?">) -> !columnB
          %rB_10 = cute.tiled.mma.make_fragment_B(%5, %columnB_9) : (!tiled_mma, !columnB) -> !rB
          cute.copy(%6, %columnB_9, %rB_10) : (!universal_copy, !columnB, !rB) -> ()
          %91 = cute.slice(%rA, %18) : !rA, !cute.coord<"(_,_,2)">
          %92 = cute.slice(%rB_10, %14) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%5, %40, %91, %92, %40) : (!tiled_mma, !rB, !memref_10, !memref_9, !rB) -> ()
          %93 = cute.local_tile(%blockB, %12, %19) : (!blockB, !cute.shape<"(32,1)">, !cute.coord<"(0,3)">) -> !memref_7
          %94 = cute.make_coord(%24) : (i32) -> !cute.coord<"?">
          %columnB_11 = cute.tiled.mma.partition_B(%5, %93, %94) : (!tiled_mma, !memref_7, !cute.coord<"?">) -> !columnB
          %rB_12 = cute.tiled.mma.make_fragment_B(%5, %columnB_11) : (!tiled_mma, !columnB) -> !rB
          cute.copy(%6, %columnB_11, %rB_12) : (!universal_copy, !columnB, !rB) -> ()
          %95 = cute.slice(%rA, %20) : !rA, !cute.coord<"(_,_,3)">
          %96 = cute.slice(%rB_12, %14) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%5, %40, %95, %96, %40) : (!tiled_mma, !rB, !memref_9, !memref_9, !rB) -> ()
        }
        cute_nvgpu.arch.barrier() : () -> ()
      }
      %43 = cute.make_shape(%23#0, %23#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %44 = cute.make_identity_layout(%43) : !cute.shape<"(?,?)"> -> !layout
      %45 = cute.make_view(%2, %44) : !coord_tensor
      %46 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %ids = cute.local_tile(%45, %3, %46) : (!coord_tensor, !cute.shape<"(32,32)">, !cute.coord<"(?,?)">) -> !ids
      %47 = cute.memref.load(%ids, %21) : (!ids, !cute.coord<"1023">) -> !cute.int_tuple<"(?,?)">
      %48:2 = cute.get_scalars<{only_dynamic}> (%47) : !cute.int_tuple<"(?,?)">
      %49 = cute.make_int_tuple(%48#0, %48#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %50 = cute.make_int_tuple(%23#0, %23#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %whole = cute.elem_less(%49, %50) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
      scf.if %whole {
        cute.copy(%6, %40, %39) : (!universal_copy, !rB, !memref_3) -> ()
      } else {
        %51 = cute.make_coord(%24) : (i32) -> !cute.coord<"?">
        %xC = cute.tiled.mma.partition_C(%5, %ids, %51) : (!tiled_mma, !ids, !cute.coord<"?">) -> !xC
        %inside = cute.make_fragment_like(%xC) [i1] : !xC -> !inside
        %52 = cute.memref.load(%xC, %9) : (!xC, !cute.coord<"0">) -> !cute.int_tuple<"(?,?)">
        %53:2 = cute.get_scalars<{only_dynamic}> (%52) : !cute.int_tuple<"(?,?)">
        %54 = cute.make_int_tuple(%53#0, %53#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %55 = cute.make_int_tuple(%23#0, %23#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %56 = cute.elem_less(%54, %55) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        cute.memref.store(%inside, %9, %56) : (!inside, !cute.coord<"0">, i1) -> ()
        cute.copy(%6, %40, %39, pred = %inside) : (!universal_copy, !rB, !memref_3, !inside) -> ()
      }
      gpu.return
    }
  }
  // Launch one block per tile of C, with vector accesses if the matrices allow it.
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
