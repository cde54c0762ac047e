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
!memref_3 = !cute.memref<f32, smem, S<5,2,5>, "((1,(8,2)),1,1):((0,(4,2048)),0,0)">
!values_2 = !cute.memref<f32, rmem, align<32>, "((1,(8,2)),1,1):((0,(1,8)),0,0)">
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
!values_3 = !cute.memref<f32, rmem, align<32>, "((1,(4,4)),1,1):((0,(1,4)),0,0)">
!memref_7 = !cute.memref<f32, smem, align<16>, S<3,4,3>, "((1,(4,4)),1,1):((0,(1,512)),0,0)">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @transpose(%mA: !mA, %mB: !mA) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %0 = cute.static : !cute.int_tuple<"64">
      %1 = cute.static : !cute.shape<"(64,64)">
      %2 = cute.static : !cute.int_tuple<"(0,0)">
      %3 = cute.static : !cute.coord<"4095">
      %4 = cute.atom() : !universal_copy
      %5 = cute.make_tiled_copy(%4) : !tiled_copy
      %c6_i32 = arith.constant 6 : i32
      %c63_i32 = arith.constant 63 : i32
      %c4096_i32 = arith.constant 4096 : i32
      %c256_i32 = arith.constant 256 : i32
      %6 = cute.make_tiled_copy(%4) : !tiled_copy_2
      %7 = cute.get_layout(%mA) : !mA
      %8:4 = cute.get_scalars<{only_dynamic}> (%7) : !cute.layout<"(?,?):(?,?)">
      %9 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %10 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %11 = cute.make_int_tuple(%8#1) : (i32) -> !cute.int_tuple<"?">
      %12 = cute.ceil_div(%11, %0) : (!cute.int_tuple<"?">, !cute.int_tuple<"64">) -> !cute.int_tuple<"?">
      %across = cute.get_scalars<{only_dynamic}> (%12) : !cute.int_tuple<"?">
      %13 = arith.divui %10, %across : i32
      %14 = arith.remui %10, %across : i32
      %15 = cute.make_coord(%13, %14) : (i32, i32) -> !cute.coord<"(?,?)">
      %gA = cute.local_tile(%mA, %1, %15) : (!mA, !cute.shape<"(64,64)">, !cute.coord<"(?,?)">) -> !gA
      %16 = cute.select<[1, 0]> (%mB) : !mA -> !mA
      %17 = cute.make_coord(%13, %14) : (i32, i32) -> !cute.coord<"(?,?)">
      %gB = cute.local_tile(%16, %1, %17) : (!mA, !cute.shape<"(64,64)">, !cute.coord<"(?,?)">) -> !gA
      %18 = cute.make_shape(%8#0, %8#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %19 = cute.make_identity_layout(%18) : !cute.shape<"(?,?)"> -> !layout
      %20 = cute.make_view(%2, %19) : !coord_tensor
      %21 = cute.make_coord(%13, %14) : (i32, i32) -> !cute.coord<"(?,?)">
      %ids = cute.local_tile(%20, %1, %21) : (!coord_tensor, !cute.shape<"(64,64)">, !cute.coord<"(?,?)">) -> !ids
      %22 = cute.memref.load(%ids, %3) : (!ids, !cute.coord<"4095">) -> !cute.int_tuple<"(?,?)">
      %23:2 = cute.get_scalars<{only_dynamic}> (%22) : !cute.int_tuple<"(?,?)">
      %24 = cute.make_int_tuple(%23#0, %23#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %25 = cute.make_int_tuple(%8#0, %8#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %whole = cute.elem_less(%24, %25) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
      %sT = cute.memref.alloc_smem() : !sT
      scf.if %whole {
        %26 = cute.make_coord(%9) : (i32) -> !cute.coord<"?">
        %27 = cute.tiled.copy.partition_S(%5, %gA, %26) : (!tiled_copy, !gA, !cute.coord<"?">) -> !memref
        %28 = cute.make_coord(%9) : (i32) -> !cute.coord<"?">
        %29 = cute.tiled.copy.partition_D(%5, %sT, %28) : (!tiled_copy, !sT, !cute.coord<"?">) -> !memref_2
        %values = cute.make_fragment_like(%27) : !memref -> !values
        cute.copy(%4, %27, %values) : (!universal_copy, !memref, !values) -> ()
        cute.copy(%4, %values, %29) : (!universal_copy, !values, !memref_2) -> ()
      } else {
        scf.for %i = %9 to %c4096_i32 step %c256_i32 : i32 {
          %26 = arith.shrui %i, %c6_i32 : i32
          %27 = arith.andi %i, %c63_i32 : i32
          %28 = cute.make_coord(%26, %27) : (i32, i32) -> !cute.coord<"(?,?)">
          %29 = cute.memref.load(%ids, %28) : (!ids, !cute.coord<"(?,?)">) -> !cute.int_tuple<"(?,?)">
          %30:2 = cute.get_scalars<{only_dynamic}> (%29) : !cute.int_tuple<"(?,?)">
          %31 = cute.make_int_tuple(%30#0, %30#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %32 = cute.make_int_tuple(%8#0, %8#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %33 = cute.elem_less(%31, %32) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          scf.if %33 {
            %34 = cute.make_coord(%26, %27) : (i32, i32) -> !cute.coord<"(?,?)">
            %35 = cute.memref.load(%gA, %34) : (!gA, !cute.coord<"(?,?)">) -> f32
            %36 = cute.make_coord(%26, %27) : (i32, i32) -> !cute.coord<"(?,?)">
            cute.memref.store(%sT, %36, %35) : (!sT, !cute.coord<"(?,?)">, f32) -> ()
          }
        }
      }
      cute_nvgpu.arch.barrier() : () -> ()
      scf.if %whole {
        %26 = cute.make_coord(%9) : (i32) -> !cute.coord<"?">
        %27 = cute.tiled.copy.partition_S(%6, %sT, %26) : (!tiled_copy_2, !sT, !cute.coord<"?">) -> !memref_3
        %28 = cute.make_coord(%9) : (i32) -> !cute.coord<"?">
        %29 = cute.tiled.copy.partition_D(%6, %gB, %28) : (!tiled_copy_2, !gA, !cute.coord<"?">) -> !memref
        %values = cute.make_fragment_like(%27) : !memref_3 -> !values_2
        cute.copy(%4, %27, %values) : (!universal_copy, !memref_3, !values_2) -> ()
        cute.copy(%4, %values, %29) : (!universal_copy, !values_2, !memref) -> ()
      } else {
        scf.for %i = %9 to %c4096_i32 step %c256_i32 : i32 {
          %26 = arith.andi %i, %c63_i32 : i32
          %27 = arith.shrui %i, %c6_i32 : i32
          %28 = cute.make_coord(%26, %27) : (i32, i32) -> !cute.coord<"(?,?)">
          %29 = cute.memref.load(%ids, %28) : (!ids, !cute.coord<"(?,?)">) -> !cute.int_tuple<"(?,?)">
          %30:2 = cute.get_scalars<{only_dynamic}> (%29) : !cute.int_tuple<"(?,?)">
          %31 = cute.make_int_tuple(%30#0, %30#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %32 = cute.make_int_tuple(%8#0, %8#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %33 = cute.elem_less(%31, %32) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          scf.if %33 {
            %34 = cute.make_coord(%26, %27) : (i32, i32) -> !cute.coord<"(?,?)">
            %35 = cute.memref.load(%sT, %34) : (!sT, !cute.coord<"(?,?)">) -> f32
            %36 = cute.make_coord(%26, %27) : (i32, i32) -> !cute.coord<"(?,?)">
            cute.memref.store(%gB, %36, %35) : (!gA, !cute.coord<"(?,?)">, f32) -> ()
          }
        }
      }
      gpu.return
    }
    gpu.func @transpose_v(%mA: !mA_2, %mB: !mA_2) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %0 = cute.static : !cute.int_tuple<"64">
      %1 = cute.static : !cute.shape<"(64,64)">
      %2 = cute.static : !cute.int_tuple<"(0,0)">
      %3 = cute.static : !cute.coord<"4095">
      %4 = cute.atom() : !universal_copy
      %5 = cute.make_tiled_copy(%4) : !tiled_copy_3
      %c6_i32 = arith.constant 6 : i32
      %c63_i32 = arith.constant 63 : i32
      %c4096_i32 = arith.constant 4096 : i32
      %c256_i32 = arith.constant 256 : i32
      %6 = cute.make_tiled_copy(%4) : !tiled_copy_4
      %7 = cute.get_layout(%mA) : !mA_2
      %8:3 = cute.get_scalars<{only_dynamic}> (%7) : !layout_2
      %9 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %10 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %11 = cute.make_int_tuple(%8#1) : (i32) -> !cute.int_tuple<"?">
      %12 = cute.ceil_div(%11, %0) : (!cute.int_tuple<"?">, !cute.int_tuple<"64">) -> !cute.int_tuple<"?">
      %across = cute.get_scalars<{only_dynamic}> (%12) : !cute.int_tuple<"?">
      %13 = arith.divui %10, %across : i32
      %14 = arith.remui %10, %across : i32
      %15 = cute.make_coord(%13, %14) : (i32, i32) -> !cute.coord<"(?,?)">
      %gA = cute.local_tile(%mA, %1, %15) : (!mA_2, !cute.shape<"(64,64)">, !cute.coord<"(?,?)">) -> !gA_2
      %16 = cute.select<[1, 0]> (%mB) : !mA_2 -> !memref_4
      %17 = cute.make_coord(%13, %14) : (i32, i32) -> !cute.coord<"(?,?)">
      %gB = cute.local_tile(%16, %1, %17) : (!memref_4, !cute.shape<"(64,64)">, !cute.coord<"(?,?)">) -> !gB
      %18 = cute.make_shape(%8#0, %8#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %19 = cute.make_identity_layout(%18) : !cute.shape<"(?,?)"> -> !layout
      %20 = cute.make_view(%2, %19) : !coord_tensor
      %21 = cute.make_coord(%13, %14) : (i32, i32) -> !cute.coord<"(?,?)">
      %ids = cute.local_tile(%20, %1, %21) : (!coord_tensor, !cute.shape<"(64,64)">, !cute.coord<"(?,?)">) -> !ids
      %22 = cute.memref.load(%ids, %3) : (!ids, !cute.coord<"4095">) -> !cute.int_tuple<"(?,?)">
      %23:2 = cute.get_scalars<{only_dynamic}> (%22) : !cute.int_tuple<"(?,?)">
      %24 = cute.make_int_tuple(%23#0, %23#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %25 = cute.make_int_tuple(%8#0, %8#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %whole = cute.elem_less(%24, %25) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
      %sT = cute.memref.alloc_smem() : !sT_2
      scf.if %whole {
        %26 = cute.make_coord(%9) : (i32) -> !cute.coord<"?">
        %27 = cute.tiled.copy.partition_S(%5, %gA, %26) : (!tiled_copy_3, !gA_2, !cute.coord<"?">) -> !memref_5
        %28 = cute.make_coord(%9) : (i32) -> !cute.coord<"?">
        %29 = cute.tiled.copy.partition_D(%5, %sT, %28) : (!tiled_copy_3, !sT_2, !cute.coord<"?">) -> !memref_6
        %values = cute.make_fragment_like(%27) : !memref_5 -> !values_3
        cute.copy(%4, %27, %values) : (!universal_copy, !memref_5, !values_3) -> ()
        cute.copy(%4, %values, %29) : (!universal_copy, !values_3, !memref_6) -> ()
      } else {
        scf.for %i = %9 to %c4096_i32 step %c256_i32 : i32 {
          %26 = arith.shrui %i, %c6_i32 : i32
          %27 = arith.andi %i, %c63_i32 : i32
          %28 = cute.make_coord(%26, %27) : (i32, i32) -> !cute.coord<"(?,?)">
          %29 = cute.memref.load(%ids, %28) : (!ids, !cute.coord<"(?,?)">) -> !cute.int_tuple<"(?,?)">
          %30:2 = cute.get_scalars<{only_dynamic}> (%29) : !cute.int_tuple<"(?,?)">
          %31 = cute.make_int_tuple(%30#0, %30#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %32 = cute.make_int_tuple(%8#0, %8#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %33 = cute.elem_less(%31, %32) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          scf.if %33 {
            %34 = cute.make_coord(%26, %27) : (i32, i32) -> !cute.coord<"(?,?)">
            %35 = cute.memref.load(%gA, %34) : (!gA_2, !cute.coord<"(?,?)">) -> f32
            %36 = cute.make_coord(%26, %27) : (i32, i32) -> !cute.coord<"(?,?)">
            cute.memref.store(%sT, %36, %35) : (!sT_2, !cute.coord<"(?,?)">, f32) -> ()
          }
        }
      }
      cute_nvgpu.arch.barrier() : () -> ()
      scf.if %whole {
        %26 = cute.make_coord(%9) : (i32) -> !cute.coord<"?">
        %27 = cute.tiled.copy.partition_S(%6, %sT, %26) : (!tiled_copy_4, !sT_2, !cute.coord<"?">) -> !memref_7
        %28 = cute.make_coord(%9) : (i32) -> !cute.coord<"?">
        %29 = cute.tiled.copy.partition_D(%6, %gB, %28) : (!tiled_copy_4, !gB, !cute.coord<"?">) -> !memref_5
        %values = cute.make_fragment_like(%27) : !memref_7 -> !values_3
        cute.copy(%4, %27, %values) : (!universal_copy, !memref_7, !values_3) -> ()
        cute.copy(%4, %values, %29) : (!universal_copy, !values_3, !memref_5) -> ()
      } else {
        scf.for %i = %9 to %c4096_i32 step %c256_i32 : i32 {
          %26 = arith.andi %i, %c63_i32 : i32
          %27 = arith.shrui %i, %c6_i32 : i32
          %28 = cute.make_coord(%26, %27) : (i32, i32) -> !cute.coord<"(?,?)">
          %29 = cute.memref.load(%ids, %28) : (!ids, !cute.coord<"(?,?)">) -> !cute.int_tuple<"(?,?)">
          %30:2 = cute.get_scalars<{only_dynamic}> (%29) : !cute.int_tuple<"(?,?)">
          %31 = cute.make_int_tuple(%30#0, %30#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %32 = cute.make_int_tuple(%8#0, %8#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %33 = cute.elem_less(%31, %32) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          scf.if %33 {
            %34 = cute.make_coord(%26, %27) : (i32, i32) -> !cute.coord<"(?,?)">
            %35 = cute.memref.load(%sT, %34) : (!sT_2, !cute.coord<"(?,?)">) -> f32
            %36 = cute.make_coord(%26, %27) : (i32, i32) -> !cute.coord<"(?,?)">
            cute.memref.store(%gB, %36, %35) : (!gB, !cute.coord<"(?,?)">, f32) -> ()
          }
        }
      }
      gpu.return
    }
  }
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
