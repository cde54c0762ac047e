!mA = !cute.memref<f32, gmem, "(?,?):(?,?)">
!universal_copy = !cute_nvgpu.atom.universal_copy<f32>
!tiled_copy = !cute.tiled_copy<!universal_copy, layout_copy_tv = <"((64,4),(1,16)):((64,1),(4096,4))">, tiler_mn = <"[64:1;64:1]">>
!tiled_copy_2 = !cute.tiled_copy<!universal_copy, layout_copy_tv = <"((64,4),(1,16)):((1,64),(64,256))">, tiler_mn = <"[64:1;64:1]">>
!gA = !cute.memref<f32, gmem, "(64,64):(?,?)">
!layout = !cute.layout<"(?,?):(1@0,1@1)">
!coord_tensor = !cute.coord_tensor<"(0,0)", "(?,?):(1@0,1@1)">
!ids = !cute.coord_tensor<"(?{div=64},?{div=64})", "(64,64):(1@0,1@1)">
!sT = !cute.memref<f32, smem, align<4096>, S<5,2,5>, "(64,(32,2)):(32,(1,2048))">
!memref = !cute.memref<f32, gmem, "((1,16),1,1):((0,?{div=4}),0,0)">
!memref_2 = !cute.memref<f32, smem, S<5,2,5>, "((1,16),1,1):((0,128),0,0)">
!values = !cute.memref<f32, rmem, align<32>, "((1,16),1,1):((0,1),0,0)">
!values_2 = !cute.memref<f32, rmem, align<32>, "16:1">
!memref_3 = !cute.memref<f32, smem, S<5,2,5>, "((1,(8,2)),1,1):((0,(4,2048)),0,0)">
!values_3 = !cute.memref<f32, rmem, align<32>, "((1,(8,2)),1,1):((0,(1,8)),0,0)">
!mA_2 = !cute.memref<f32, gmem, align<16>, "(?,?):(?{div=4},1)">
!tiled_copy_3 = !cute.tiled_copy<!universal_copy, layout_copy_tv = <"((16,16),(4,4)):((256,4),(64,1))">, tiler_mn = <"[64:1;64:1]">>
!tiled_copy_4 = !cute.tiled_copy<!universal_copy, layout_copy_tv = <"((16,16),(4,4)):((4,256),(1,64))">, tiler_mn = <"[64:1;64:1]">>
!layout_2 = !cute.layout<"(?,?):(?{div=4},1)">
!gA_2 = !cute.memref<f32, gmem, align<16>, "(64,64):(?{div=4},1)">
!memref_4 = !cute.memref<f32, gmem, align<16>, "(?,?):(1,?{div=4})">
!gB = !cute.memref<f32, gmem, align<16>, "(64,64):(1,?{div=4})">
!sT_2 = !cute.memref<f32, smem, align<1024>, S<3,4,3>, "((32,2),(4,16)):((1,2048),(512,32))">
!memref_5 = !cute.memref<f32, gmem, align<16>, "((1,(4,4)),1,1):((0,(1,?{div=4})),0,0)">
!memref_6 = !cute.memref<f32, smem, align<16>, S<3,4,3>, "((1,(4,4)),1,1):((0,(512,1)),0,0)">
!values_4 = !cute.memref<f32, rmem, align<32>, "((1,(4,4)),1,1):((0,(1,4)),0,0)">
!memref_7 = !cute.memref<f32, smem, align<16>, S<3,4,3>, "((1,(4,4)),1,1):((0,(1,512)),0,0)">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // Transpose a tile of matrices with any strides.
    gpu.func @transpose(%mA: !mA, %mB: !mA) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c63_i32 = arith.constant 63 : i32
      %c6_i32 = arith.constant 6 : i32
      %0 = cute.static : !cute.shape<"(64,64)">
      %1 = cute.static : !cute.int_tuple<"(0,0)">
      %2 = cute.static : !cute.coord<"4095">
      %3 = cute.atom() : !universal_copy
      %4 = cute.make_tiled_copy(%3) : !tiled_copy
      %c256_i32 = arith.constant 256 : i32
      %c0_i32 = arith.constant 0 : i32
      %c16_i32 = arith.constant 16 : i32
      %c1_i32 = arith.constant 1 : i32
      %c4096_i32 = arith.constant 4096 : i32
      %5 = cute.make_tiled_copy(%3) : !tiled_copy_2
      %6 = cute.get_layout(%mA) : !mA
      %7:4 = cute.get_scalars<{only_dynamic}> (%6) : !cute.layout<"(?,?):(?,?)">
      %8 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %9 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      // This block's tile of A, of B viewed as (m, n), and of the coordinates.
      %10 = arith.addi %7#1, %c63_i32 : i32
      %across = arith.shrui %10, %c6_i32 : i32
      %11 = arith.divui %9, %across : i32
      %12 = arith.remui %9, %across : i32
      %13 = cute.make_coord(%11, %12) : (i32, i32) -> !cute.coord<"(?,?)">
      %gA = cute.local_tile(%mA, %0, %13) : (!mA, !cute.shape<"(64,64)">, !cute.coord<"(?,?)">) -> !gA
      %14 = cute.select<[1, 0]> (%mB) : !mA -> !mA
      %15 = cute.make_coord(%11, %12) : (i32, i32) -> !cute.coord<"(?,?)">
      %gB = cute.local_tile(%14, %0, %15) : (!mA, !cute.shape<"(64,64)">, !cute.coord<"(?,?)">) -> !gA
      %16 = cute.make_shape(%7#0, %7#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %17 = cute.make_identity_layout(%16) : !cute.shape<"(?,?)"> -> !layout
      %18 = cute.make_view(%1, %17) : !coord_tensor
      %19 = cute.make_coord(%11, %12) : (i32, i32) -> !cute.coord<"(?,?)">
      %ids = cute.local_tile(%18, %0, %19) : (!coord_tensor, !cute.shape<"(64,64)">, !cute.coord<"(?,?)">) -> !ids
      %20 = cute.memref.load(%ids, %2) : (!ids, !cute.coord<"4095">) -> !cute.int_tuple<"(?,?)">
      %21:2 = cute.get_scalars<{only_dynamic}> (%20) : !cute.int_tuple<"(?,?)">
      %22 = cute.make_int_tuple(%21#0, %21#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %23 = cute.make_int_tuple(%7#0, %7#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %whole = cute.elem_less(%22, %23) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
      %sT = cute.memref.alloc_smem() : !sT
      scf.if %whole {
        // This thread's elements of A go through registers to shared memory.
        %24 = cute.make_coord(%8) : (i32) -> !cute.coord<"?">
        %25 = cute.tiled.copy.partition_S(%4, %gA, %24) : (!tiled_copy, !gA, !cute.coord<"?">) -> !memref
        %26 = cute.make_coord(%8) : (i32) -> !cute.coord<"?">
        %27 = cute.tiled.copy.partition_D(%4, %sT, %26) : (!tiled_copy, !sT, !cute.coord<"?">) -> !memref_2
        %values = cute.make_fragment_like(%25) : !memref -> !values
        cute.copy(%3, %25, %values) : (!universal_copy, !memref, !values) -> ()
        cute.copy(%3, %values, %27) : (!universal_copy, !values, !memref_2) -> ()
      } else {
        // At an edge, copy element by element along the rows of A.
        scf.for %start = %8 to %c4096_i32 step %c4096_i32 : i32 {
          %values = cute.memref.alloca() : !values_2
          // values are in registers, so the passes unroll this loop
          scf.for %k = %c0_i32 to %c16_i32 step %c1_i32 : i32 {
            %24 = arith.muli %k, %c256_i32 : i32
            %i = arith.addi %start, %24 : i32
            %25 = arith.shrui %i, %c6_i32 : i32
            %26 = arith.andi %i, %c63_i32 : i32
            %27 = cute.make_coord(%25, %26) : (i32, i32) -> !cute.coord<"(?,?)">
            %28 = cute.memref.load(%ids, %27) : (!ids, !cute.coord<"(?,?)">) -> !cute.int_tuple<"(?,?)">
            %29:2 = cute.get_scalars<{only_dynamic}> (%28) : !cute.int_tuple<"(?,?)">
            %30 = cute.make_int_tuple(%29#0, %29#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
            %31 = cute.make_int_tuple(%7#0, %7#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
            %32 = cute.elem_less(%30, %31) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
            scf.if %32 {
              %33 = cute.make_coord(%25, %26) : (i32, i32) -> !cute.coord<"(?,?)">
              %34 = cute.memref.load(%gA, %33) : (!gA, !cute.coord<"(?,?)">) -> f32
              %35 = cute.make_coord(%k) : (i32) -> !cute.coord<"?">
              cute.memref.store(%values, %35, %34) : (!values_2, !cute.coord<"?">, f32) -> ()
            }
          }
          scf.for %k = %c0_i32 to %c16_i32 step %c1_i32 : i32 {
            %24 = arith.muli %k, %c256_i32 : i32
            %i = arith.addi %start, %24 : i32
            %25 = arith.shrui %i, %c6_i32 : i32
            %26 = arith.andi %i, %c63_i32 : i32
            %27 = cute.make_coord(%25, %26) : (i32, i32) -> !cute.coord<"(?,?)">
            %28 = cute.memref.load(%ids, %27) : (!ids, !cute.coord<"(?,?)">) -> !cute.int_tuple<"(?,?)">
            %29:2 = cute.get_scalars<{only_dynamic}> (%28) : !cute.int_tuple<"(?,?)">
            %30 = cute.make_int_tuple(%29#0, %29#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
            %31 = cute.make_int_tuple(%7#0, %7#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
            %32 = cute.elem_less(%30, %31) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
            scf.if %32 {
              %33 = cute.make_coord(%k) : (i32) -> !cute.coord<"?">
              %34 = cute.memref.load(%values, %33) : (!values_2, !cute.coord<"?">) -> f32
              %35 = cute.make_coord(%25, %26) : (i32, i32) -> !cute.coord<"(?,?)">
              cute.memref.store(%sT, %35, %34) : (!sT, !cute.coord<"(?,?)">, f32) -> ()
            }
          }
        }
      }
      cute_nvgpu.arch.barrier() : () -> ()
      scf.if %whole {
        // Write the tile as rows of B.
        %24 = cute.make_coord(%8) : (i32) -> !cute.coord<"?">
        %25 = cute.tiled.copy.partition_S(%5, %sT, %24) : (!tiled_copy_2, !sT, !cute.coord<"?">) -> !memref_3
        %26 = cute.make_coord(%8) : (i32) -> !cute.coord<"?">
        %27 = cute.tiled.copy.partition_D(%5, %gB, %26) : (!tiled_copy_2, !gA, !cute.coord<"?">) -> !memref
        %values = cute.make_fragment_like(%25) : !memref_3 -> !values_3
        cute.copy(%3, %25, %values) : (!universal_copy, !memref_3, !values_3) -> ()
        cute.copy(%3, %values, %27) : (!universal_copy, !values_3, !memref) -> ()
      } else {
        // At an edge, copy element by element along the rows of B.
        scf.for %i = %8 to %c4096_i32 step %c256_i32 : i32 {
          %24 = arith.andi %i, %c63_i32 : i32
          %25 = arith.shrui %i, %c6_i32 : i32
          %26 = cute.make_coord(%24, %25) : (i32, i32) -> !cute.coord<"(?,?)">
          %27 = cute.memref.load(%ids, %26) : (!ids, !cute.coord<"(?,?)">) -> !cute.int_tuple<"(?,?)">
          %28:2 = cute.get_scalars<{only_dynamic}> (%27) : !cute.int_tuple<"(?,?)">
          %29 = cute.make_int_tuple(%28#0, %28#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %30 = cute.make_int_tuple(%7#0, %7#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %31 = cute.elem_less(%29, %30) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          scf.if %31 {
            %32 = cute.make_coord(%24, %25) : (i32, i32) -> !cute.coord<"(?,?)">
            %33 = cute.memref.load(%sT, %32) : (!sT, !cute.coord<"(?,?)">) -> f32
            %34 = cute.make_coord(%24, %25) : (i32, i32) -> !cute.coord<"(?,?)">
            cute.memref.store(%gB, %34, %33) : (!gA, !cute.coord<"(?,?)">, f32) -> ()
          }
        }
      }
      gpu.return
    }
    // Transpose a tile of matrices with 16-byte aligned rows.
    gpu.func @transpose_v(%mA: !mA_2, %mB: !mA_2) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c63_i32 = arith.constant 63 : i32
      %c6_i32 = arith.constant 6 : i32
      %0 = cute.static : !cute.shape<"(64,64)">
      %1 = cute.static : !cute.int_tuple<"(0,0)">
      %2 = cute.static : !cute.coord<"4095">
      %3 = cute.atom() : !universal_copy
      %4 = cute.make_tiled_copy(%3) : !tiled_copy_3
      %c256_i32 = arith.constant 256 : i32
      %c0_i32 = arith.constant 0 : i32
      %c16_i32 = arith.constant 16 : i32
      %c1_i32 = arith.constant 1 : i32
      %c4096_i32 = arith.constant 4096 : i32
      %5 = cute.make_tiled_copy(%3) : !tiled_copy_4
      %6 = cute.get_layout(%mA) : !mA_2
      %7:3 = cute.get_scalars<{only_dynamic}> (%6) : !layout_2
      %8 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %9 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      // This block's tile of A, of B viewed as (m, n), and of the coordinates.
      %10 = arith.addi %7#1, %c63_i32 : i32
      %across = arith.shrui %10, %c6_i32 : i32
      %11 = arith.divui %9, %across : i32
      %12 = arith.remui %9, %across : i32
      %13 = cute.make_coord(%11, %12) : (i32, i32) -> !cute.coord<"(?,?)">
      %gA = cute.local_tile(%mA, %0, %13) : (!mA_2, !cute.shape<"(64,64)">, !cute.coord<"(?,?)">) -> !gA_2
      %14 = cute.select<[1, 0]> (%mB) : !mA_2 -> !memref_4
      %15 = cute.make_coord(%11, %12) : (i32, i32) -> !cute.coord<"(?,?)">
      %gB = cute.local_tile(%14, %0, %15) : (!memref_4, !cute.shape<"(64,64)">, !cute.coord<"(?,?)">) -> !gB
      %16 = cute.make_shape(%7#0, %7#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %17 = cute.make_identity_layout(%16) : !cute.shape<"(?,?)"> -> !layout
      %18 = cute.make_view(%1, %17) : !coord_tensor
      %19 = cute.make_coord(%11, %12) : (i32, i32) -> !cute.coord<"(?,?)">
      %ids = cute.local_tile(%18, %0, %19) : (!coord_tensor, !cute.shape<"(64,64)">, !cute.coord<"(?,?)">) -> !ids
      %20 = cute.memref.load(%ids, %2) : (!ids, !cute.coord<"4095">) -> !cute.int_tuple<"(?,?)">
      %21:2 = cute.get_scalars<{only_dynamic}> (%20) : !cute.int_tuple<"(?,?)">
      %22 = cute.make_int_tuple(%21#0, %21#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %23 = cute.make_int_tuple(%7#0, %7#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %whole = cute.elem_less(%22, %23) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
      %sT = cute.memref.alloc_smem() : !sT_2
      scf.if %whole {
        // This thread's elements of A go through registers to shared memory.
        %24 = cute.make_coord(%8) : (i32) -> !cute.coord<"?">
        %25 = cute.tiled.copy.partition_S(%4, %gA, %24) : (!tiled_copy_3, !gA_2, !cute.coord<"?">) -> !memref_5
        %26 = cute.make_coord(%8) : (i32) -> !cute.coord<"?">
        %27 = cute.tiled.copy.partition_D(%4, %sT, %26) : (!tiled_copy_3, !sT_2, !cute.coord<"?">) -> !memref_6
        %values = cute.make_fragment_like(%25) : !memref_5 -> !values_4
        cute.copy(%3, %25, %values) : (!universal_copy, !memref_5, !values_4) -> ()
        cute.copy(%3, %values, %27) : (!universal_copy, !values_4, !memref_6) -> ()
      } else {
        // At an edge, copy element by element along the rows of A.
        scf.for %start = %8 to %c4096_i32 step %c4096_i32 : i32 {
          %values = cute.memref.alloca() : !values_2
          // values are in registers, so the passes unroll this loop
          scf.for %k = %c0_i32 to %c16_i32 step %c1_i32 : i32 {
            %24 = arith.muli %k, %c256_i32 : i32
            %i = arith.addi %start, %24 : i32
            %25 = arith.shrui %i, %c6_i32 : i32
            %26 = arith.andi %i, %c63_i32 : i32
            %27 = cute.make_coord(%25, %26) : (i32, i32) -> !cute.coord<"(?,?)">
            %28 = cute.memref.load(%ids, %27) : (!ids, !cute.coord<"(?,?)">) -> !cute.int_tuple<"(?,?)">
            %29:2 = cute.get_scalars<{only_dynamic}> (%28) : !cute.int_tuple<"(?,?)">
            %30 = cute.make_int_tuple(%29#0, %29#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
            %31 = cute.make_int_tuple(%7#0, %7#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
            %32 = cute.elem_less(%30, %31) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
            scf.if %32 {
              %33 = cute.make_coord(%25, %26) : (i32, i32) -> !cute.coord<"(?,?)">
              %34 = cute.memref.load(%gA, %33) : (!gA_2, !cute.coord<"(?,?)">) -> f32
              %35 = cute.make_coord(%k) : (i32) -> !cute.coord<"?">
              cute.memref.store(%values, %35, %34) : (!values_2, !cute.coord<"?">, f32) -> ()
            }
          }
          scf.for %k = %c0_i32 to %c16_i32 step %c1_i32 : i32 {
            %24 = arith.muli %k, %c256_i32 : i32
            %i = arith.addi %start, %24 : i32
            %25 = arith.shrui %i, %c6_i32 : i32
            %26 = arith.andi %i, %c63_i32 : i32
            %27 = cute.make_coord(%25, %26) : (i32, i32) -> !cute.coord<"(?,?)">
            %28 = cute.memref.load(%ids, %27) : (!ids, !cute.coord<"(?,?)">) -> !cute.int_tuple<"(?,?)">
            %29:2 = cute.get_scalars<{only_dynamic}> (%28) : !cute.int_tuple<"(?,?)">
            %30 = cute.make_int_tuple(%29#0, %29#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
            %31 = cute.make_int_tuple(%7#0, %7#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
            %32 = cute.elem_less(%30, %31) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
            scf.if %32 {
              %33 = cute.make_coord(%k) : (i32) -> !cute.coord<"?">
              %34 = cute.memref.load(%values, %33) : (!values_2, !cute.coord<"?">) -> f32
              %35 = cute.make_coord(%25, %26) : (i32, i32) -> !cute.coord<"(?,?)">
              cute.memref.store(%sT, %35, %34) : (!sT_2, !cute.coord<"(?,?)">, f32) -> ()
            }
          }
        }
      }
      cute_nvgpu.arch.barrier() : () -> ()
      scf.if %whole {
        // Write the tile as rows of B.
        %24 = cute.make_coord(%8) : (i32) -> !cute.coord<"?">
        %25 = cute.tiled.copy.partition_S(%5, %sT, %24) : (!tiled_copy_4, !sT_2, !cute.coord<"?">) -> !memref_7
        %26 = cute.make_coord(%8) : (i32) -> !cute.coord<"?">
        %27 = cute.tiled.copy.partition_D(%5, %gB, %26) : (!tiled_copy_4, !gB, !cute.coord<"?">) -> !memref_5
        %values = cute.make_fragment_like(%25) : !memref_7 -> !values_4
        cute.copy(%3, %25, %values) : (!universal_copy, !memref_7, !values_4) -> ()
        cute.copy(%3, %values, %27) : (!universal_copy, !values_4, !memref_5) -> ()
      } else {
        // At an edge, copy element by element along the rows of B.
        scf.for %i = %8 to %c4096_i32 step %c256_i32 : i32 {
          %24 = arith.andi %i, %c63_i32 : i32
          %25 = arith.shrui %i, %c6_i32 : i32
          %26 = cute.make_coord(%24, %25) : (i32, i32) -> !cute.coord<"(?,?)">
          %27 = cute.memref.load(%ids, %26) : (!ids, !cute.coord<"(?,?)">) -> !cute.int_tuple<"(?,?)">
          %28:2 = cute.get_scalars<{only_dynamic}> (%27) : !cute.int_tuple<"(?,?)">
          %29 = cute.make_int_tuple(%28#0, %28#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %30 = cute.make_int_tuple(%7#0, %7#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %31 = cute.elem_less(%29, %30) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          scf.if %31 {
            %32 = cute.make_coord(%24, %25) : (i32, i32) -> !cute.coord<"(?,?)">
            %33 = cute.memref.load(%sT, %32) : (!sT_2, !cute.coord<"(?,?)">) -> f32
            %34 = cute.make_coord(%24, %25) : (i32, i32) -> !cute.coord<"(?,?)">
            cute.memref.store(%gB, %34, %33) : (!gB, !cute.coord<"(?,?)">, f32) -> ()
          }
        }
      }
      gpu.return
    }
  }
  // Launch one block per tile, with vector accesses if the matrices allow it.
  func.func @launch(%mA: !mA, %mB: !mA) {
    %0 = cute.static : !cute.int_tuple<"64">
    %c1_i32 = arith.constant 1 : i32
    %c256_i32 = arith.constant 256 : i32
    %1 = cute.get_layout(%mA) : !mA
    %2:4 = cute.get_scalars<{only_dynamic}> (%1) : !cute.layout<"(?,?):(?,?)">
    %3 = cute.get_layout(%mB) : !mA
    %4:4 = cute.get_scalars<{only_dynamic}> (%3) : !cute.layout<"(?,?):(?,?)">
    %5 = arith.cmpi eq, %4#0, %2#1 : i32
    cf.assert %5, "B must have as many rows as A has columns"
    %6 = arith.cmpi eq, %4#1, %2#0 : i32
    cf.assert %6, "B must have as many columns as A has rows"
    %7 = cute.make_int_tuple(%2#0) : (i32) -> !cute.int_tuple<"?">
    %8 = cute.ceil_div(%7, %0) : (!cute.int_tuple<"?">, !cute.int_tuple<"64">) -> !cute.int_tuple<"?">
    %9 = cute.get_scalars<{only_dynamic}> (%8) : !cute.int_tuple<"?">
    %10 = cute.make_int_tuple(%2#1) : (i32) -> !cute.int_tuple<"?">
    %11 = cute.ceil_div(%10, %0) : (!cute.int_tuple<"?">, !cute.int_tuple<"64">) -> !cute.int_tuple<"?">
    %12 = cute.get_scalars<{only_dynamic}> (%11) : !cute.int_tuple<"?">
    %13 = arith.muli %9, %12 : i32
    gpu.launch_func @kernels::@transpose blocks in (%13, %c1_i32, %c1_i32) threads in (%c256_i32, %c1_i32, %c1_i32) : i32 args(%mA : !mA, %mB : !mA) {cute.variants = [@kernels::@transpose_v]}
    return
  }
}
