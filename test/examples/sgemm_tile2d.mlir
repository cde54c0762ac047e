!mA = !cute.memref<f32, gmem, "(?,?):(?,1)">
!universal_fma = !cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f32)>
!tiled_mma = !cute.tiled_mma<!universal_fma, atom_layout_MNK = <"(16,16,1):(16,1,0)">>
!universal_copy = !cute_nvgpu.atom.universal_copy<f32>
!tiled_copy = !cute.tiled_copy<!universal_copy, layout_copy_tv = <"((8,32),1):((32,1),32)">, tiler_mn = <"[32:1;8:1]">>
!tiled_copy_2 = !cute.tiled_copy<!universal_copy, layout_copy_tv = <"((128,2),1):((1,128),1)">, tiler_mn = <"[128:1;2:1]">>
!layout = !cute.layout<"(?,?):(1@0,1@1)">
!coord_tensor = !cute.coord_tensor<"(0,0)", "(?,?):(1@0,1@1)">
!memref = !cute.memref<f32, gmem, "(?,?):(1,?)">
!memref_2 = !cute.memref<f32, gmem, "(128,128):(?,1)">
!memref_3 = !cute.memref<f32, gmem, "(1,8,8):(0,?{div=16},16)">
!memref_4 = !cute.memref<f32, rmem, align<32>, "(1,8,8):(0,1,8)">
!sA = !cute.memref<f32, smem, align<16>, "(128,8):(8,1)">
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
!memref_7 = !cute.memref<f32, smem, "((1,1),4,1):((0,0),256,0)">
!memref_8 = !cute.memref<f32, smem, "((1,1),1,4):((0,0),0,256)">
!memref_9 = !cute.memref<f32, smem, "(128,1):(8,0)">
!blockA = !cute.memref<f32, smem, "(1,8,1):(0,128,0)">
!rA = !cute.memref<f32, rmem, align<32>, "(1,8,1):(0,1,0)">
!memref_10 = !cute.memref<f32, smem, align<16>, "(128,1):(1,0)">
!columnB = !cute.memref<f32, smem, "(1,8,1):(0,16,0)">
!memref_11 = !cute.memref<f32, rmem, align<32>, "(1,8):(0,1)">
!ids_3 = !cute.coord_tensor<"(?{div=128},?{div=128})", "(128,128):(1@0,1@1)">
!xC = !cute.coord_tensor<"(?,?)", "(1,8,8):(0,16@0,16@1)">
!inside = !cute.memref<i1, rmem, align<32>, "(1,8,8):(0,8,1)">
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
          %63 = cute.local_tile(%sB, %11, %62) : (!sB, !cute.shape<"(128,1)">, !cute.coord<"(0,?)">) -> !memref_10
          %64 = cute.make_coord(%16) : (i32) -> !cute.coord<"?">
          %columnB = cute.tiled.mma.partition_B(%5, %63, %64) : (!tiled_mma, !memref_10, !cute.coord<"?">) -> !columnB
          %rB = cute.tiled.mma.make_fragment_B(%5, %columnB) : (!tiled_mma, !columnB) -> !rA
          cute.copy(%7, %columnB, %rB) : (!universal_copy, !columnB, !rA) -> ()
          %65 = cute.slice(%rA, %12) : !rA, !cute.coord<"(_,_,0)">
          %66 = cute.slice(%rB, %12) : !rA, !cute.coord<"(_,_,0)">
          cute.gemm(%5, %32, %65, %66, %32) : (!tiled_mma, !memref_4, !memref_11, !memref_11, !memref_4) -> ()
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
    gpu.launch_func @kernels::@sgemm blocks in (%16, %c1_i32, %c1_i32) threads in (%c256_i32, %c1_i32, %c1_i32) : i32 args(%mA : !mA, %mB : !mA, %mC : !mA)
    return
  }
}
