!mA = !cute.memref<f32, gmem, "(?,?):(?,1)">
!universal_fma = !cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f32)>
!tiled_mma = !cute.tiled_mma<!universal_fma, atom_layout_MNK = <"((4,4),(8,2),1):((8,64),(1,32),0)">, permutation_MNK = <"[(4,4,8):(1,32,4);(8,2,4,2):(4,64,1,32);_]">>
!simt_async_copy = !cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>
!tiled_copy = !cute.tiled_copy<!simt_async_copy, layout_copy_tv = <"((16,16),1):((16,1),16)">, tiler_mn = <"[16:1;16:1]">>
!tiled_copy_2 = !cute.tiled_copy<!simt_async_copy, layout_copy_tv = <"((128,2),1):((1,128),1)">, tiler_mn = <"[128:1;2:1]">>
!universal_copy = !cute_nvgpu.atom.universal_copy<f32>
!layout = !cute.layout<"(?,?):(1@0,1@1)">
!coord_tensor = !cute.coord_tensor<"(0,0)", "(?,?):(1@0,1@1)">
!memref = !cute.memref<f32, gmem, "(?,?):(1,?)">
!memref_2 = !cute.memref<f32, gmem, "(128,128):(?,1)">
!memref_3 = !cute.memref<f32, gmem, "(1,8,(4,2)):(0,?{div=4},(1,32))">
!memref_4 = !cute.memref<f32, rmem, align<32>, "(1,8,(4,2)):(0,1,(8,32))">
!sA = !cute.memref<f32, smem, align<512>, S<2,4,3>, "(128,16,3):(16,1,2048)">
!sB = !cute.memref<f32, smem, align<16>, "(128,16,3):(1,128,2048)">
!memref_5 = !cute.memref<f32, gmem, "(128,16):(?,1)">
!part = !cute.memref<f32, gmem, "((1,1),8,1):((0,0),?{div=16},0)">
!coord_tensor_2 = !cute.coord_tensor<"(?{div=128},0)", "(128,16):(1@0,1@1)">
!ids = !cute.coord_tensor<"(?,?)", "((1,1),8,1):((0,0),16@0,0)">
!flags = !cute.memref<i1, rmem, align<8>, "(1,8,1):(0,1,8)">
!first = !cute.coord_tensor<"(?,?)", "(8,1):(16@0,0)">
!each = !cute.memref<i1, rmem, align<8>, "(8,1):(1,8)">
!memref_6 = !cute.memref<f32, smem, align<512>, S<2,4,3>, "(128,16):(16,1)">
!memref_7 = !cute.memref<f32, smem, S<2,4,3>, "((1,1),8,1):((0,0),256,0)">
!memref_8 = !cute.memref<f32, gmem, "(128,16):(1,?)">
!part_2 = !cute.memref<f32, gmem, "((1,1),1,8):((0,0),0,?{div=2})">
!ids_2 = !cute.coord_tensor<"(?,?)", "((1,1),1,8):((0,0),0,2@1)">
!flags_2 = !cute.memref<i1, rmem, align<8>, "(1,1,8):(0,1,1)">
!first_2 = !cute.coord_tensor<"(?,?)", "(1,8):(0,2@1)">
!each_2 = !cute.memref<i1, rmem, align<8>, "(1,8):(1,1)">
!memref_9 = !cute.memref<f32, smem, align<16>, "(128,16):(1,128)">
!memref_10 = !cute.memref<f32, smem, "((1,1),1,8):((0,0),0,256)">
!coord_tensor_3 = !cute.coord_tensor<"(?{div=128},16)", "(128,16):(1@0,1@1)">
!coord_tensor_4 = !cute.coord_tensor<"(?{div=128},?{div=16})", "(128,16):(1@0,1@1)">
!memref_11 = !cute.memref<f32, smem, align<8>, S<2,4,3>, "(128,2):(16,1)">
!blockA = !cute.memref<f32, smem, align<8>, S<2,4,3>, "(1,8,2):(0,64,1)">
!rA = !cute.memref<f32, rmem, align<32>, "(1,8,2):(0,1,8)">
!blockB = !cute.memref<f32, smem, align<16>, "(128,2):(1,128)">
!memref_12 = !cute.memref<f32, smem, align<16>, "(128,1):(1,0)">
!columnB = !cute.memref<f32, smem, align<16>, "(1,(4,2),1):(0,(1,32),0)">
!rB = !cute.memref<f32, rmem, align<32>, "(1,(4,2),1):(0,(1,4),0)">
!memref_13 = !cute.memref<f32, rmem, align<32>, "(1,8):(0,1)">
!memref_14 = !cute.memref<f32, rmem, align<32>, "(1,(4,2)):(0,(1,4))">
!ids_3 = !cute.coord_tensor<"(?{div=128},?{div=128})", "(128,128):(1@0,1@1)">
!xC = !cute.coord_tensor<"(?,?{div=4})", "(1,8,(4,2)):(0,4@0,(1@1,32@1))">
!inside = !cute.memref<i1, rmem, align<32>, "(1,8,(4,2)):(0,8,(1,4))">
!mA_2 = !cute.memref<f32, gmem, align<16>, "(?,?{div=4}):(?{div=4},1)">
!layout_2 = !cute.layout<"(?,?{div=4}):(?{div=4},1)">
!simt_async_copy_2 = !cute_nvgpu.atom.simt_async_copy<f32, cache = global, 128 b>
!tiled_copy_3 = !cute.tiled_copy<!simt_async_copy_2, layout_copy_tv = <"((4,64),4):((256,1),64)">, tiler_mn = <"[64:1;16:1]">>
!tiled_copy_4 = !cute.tiled_copy<!simt_async_copy_2, layout_copy_tv = <"((32,8),4):((4,128),1)">, tiler_mn = <"[128:1;8:1]">>
!layout_3 = !cute.layout<"(?,?{div=4}):(1@0,1@1)">
!coord_tensor_5 = !cute.coord_tensor<"(0,0)", "(?,?{div=4}):(1@0,1@1)">
!memref_15 = !cute.memref<f32, gmem, align<16>, "(?{div=4},?):(1,?{div=4})">
!layout_4 = !cute.layout<"(?{div=4},?):(1,?{div=4})">
!layout_5 = !cute.layout<"(?{div=4},?):(1@0,1@1)">
!coord_tensor_6 = !cute.coord_tensor<"(0,0)", "(?{div=4},?):(1@0,1@1)">
!memref_16 = !cute.memref<f32, gmem, align<16>, "(128,128):(?{div=4},1)">
!memref_17 = !cute.memref<f32, gmem, align<16>, "(1,8,(4,2)):(0,?{div=16},(1,32))">
!memref_18 = !cute.memref<f32, gmem, align<16>, "(128,16):(?{div=4},1)">
!part_3 = !cute.memref<f32, gmem, align<16>, "((4,1),2,1):((1,0),?{div=256},0)">
!ids_4 = !cute.coord_tensor<"(?,?{div=4})", "((4,1),2,1):((1@1,0),64@0,0)">
!flags_3 = !cute.memref<i1, rmem, align<2>, "(1,2,1):(0,1,2)">
!first_3 = !cute.coord_tensor<"(?,?{div=4})", "(2,1):(64@0,0)">
!each_3 = !cute.memref<i1, rmem, align<2>, "(2,1):(1,2)">
!int_tuple = !cute.int_tuple<"(?,?{div=4})">
!memref_19 = !cute.memref<f32, smem, align<16>, S<2,4,3>, "((4,1),2,1):((1,0),1024,0)">
!memref_20 = !cute.memref<f32, gmem, align<16>, "(128,16):(1,?{div=4})">
!part_4 = !cute.memref<f32, gmem, align<16>, "((4,1),1,2):((1,0),0,?{div=32})">
!ids_5 = !cute.coord_tensor<"(?{div=4},?)", "((4,1),1,2):((1@0,0),0,8@1)">
!flags_4 = !cute.memref<i1, rmem, align<2>, "(1,1,2):(0,1,1)">
!first_4 = !cute.coord_tensor<"(?{div=4},?)", "(1,2):(0,8@1)">
!each_4 = !cute.memref<i1, rmem, align<2>, "(1,2):(1,1)">
!int_tuple_2 = !cute.int_tuple<"(?{div=4},?)">
!memref_21 = !cute.memref<f32, smem, align<16>, "((4,1),1,2):((1,0),0,1024)">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // Multiply matrices of any alignment, with prefetch of tiles.
    gpu.func @sgemm(%mA: !mA, %mB: !mA, %mC: !mA) kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 2 : i32} {
      %0 = cute.get_layout(%mA) : !mA
      %1:3 = cute.get_scalars<{only_dynamic}> (%0) : !cute.layout<"(?,?):(?,1)">
      %c127_i32 = arith.constant 127 : i32
      %c7_i32 = arith.constant 7 : i32
      %2 = cute.static : !cute.int_tuple<"(0,0)">
      %3 = cute.static : !cute.shape<"(128,128)">
      %4 = cute.atom() : !universal_fma
      %5 = cute.make_tiled_mma(%4) : !tiled_mma
      %6 = cute.static : !cute.shape<"(128,16)">
      %7 = cute.atom() : !simt_async_copy
      %8 = cute.make_tiled_copy(%7) : !tiled_copy
      %9 = cute.static : !cute.coord<"(0,_,_)">
      %c0_i32 = arith.constant 0 : i32
      %c8_i32 = arith.constant 8 : i32
      %c1_i32 = arith.constant 1 : i32
      %10 = cute.static : !cute.coord<"(_,_,0)">
      %11 = cute.make_tiled_copy(%7) : !tiled_copy_2
      %12 = cute.static : !cute.coord<"(_,_,1)">
      %c15_i32 = arith.constant 15 : i32
      %c4_i32 = arith.constant 4 : i32
      %c2_i32 = arith.constant 2 : i32
      %c3_i32 = arith.constant 3 : i32
      %13 = cute.static : !cute.shape<"(128,2)">
      %14 = cute.atom() : !universal_copy
      %15 = cute.static : !cute.shape<"(128,1)">
      %16 = cute.static : !cute.coord<"(0,0)">
      %17 = cute.static : !cute.coord<"(0,1)">
      %18 = cute.static : !cute.coord<"16383">
      %c64_i32 = arith.constant 64 : i32
      %19 = cute.get_layout(%mC) : !mA
      %20:3 = cute.get_scalars<{only_dynamic}> (%19) : !cute.layout<"(?,?):(?,1)">
      %21 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %22 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %23 = arith.addi %20#1, %c127_i32 : i32
      %across = arith.shrui %23, %c7_i32 : i32
      %row = arith.divui %22, %across : i32
      %column = arith.remui %22, %across : i32
      %24 = cute.make_shape(%1#0, %1#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %25 = cute.make_identity_layout(%24) : !cute.shape<"(?,?)"> -> !layout
      %26 = cute.make_view(%2, %25) : !coord_tensor
      %27 = cute.select<[1, 0]> (%mB) : !mA -> !memref
      %28 = cute.get_layout(%27) : !memref
      %29:3 = cute.get_scalars<{only_dynamic}> (%28) : !cute.layout<"(?,?):(1,?)">
      %30 = cute.make_shape(%29#0, %29#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %31 = cute.make_identity_layout(%30) : !cute.shape<"(?,?)"> -> !layout
      %32 = cute.make_view(%2, %31) : !coord_tensor
      %33 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %34 = cute.local_tile(%mC, %3, %33) : (!mA, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !memref_2
      %35 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %36 = cute.tiled.mma.partition_C(%5, %34, %35) : (!tiled_mma, !memref_2, !cute.coord<"?">) -> !memref_3
      %37 = cute.tiled.mma.make_fragment_C(%5, %36) : (!tiled_mma, !memref_3) -> !memref_4
      cute.clear(%37) : (!memref_4) -> ()
      %sA = cute.memref.alloc_smem() : !sA
      %sB = cute.memref.alloc_smem() : !sB
      // tiles past the last one are zero
      %38 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,0)">
      %39 = cute.local_tile(%mA, %6, %38) : (!mA, !cute.shape<"(128,16)">, !cute.coord<"(?,0)">) -> !memref_5
      %40 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %part = cute.tiled.copy.partition_S(%8, %39, %40) : (!tiled_copy, !memref_5, !cute.coord<"?">) -> !part
      %41 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,0)">
      %42 = cute.local_tile(%26, %6, %41) : (!coord_tensor, !cute.shape<"(128,16)">, !cute.coord<"(?,0)">) -> !coord_tensor_2
      %43 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %ids = cute.tiled.copy.partition_S(%8, %42, %43) : (!tiled_copy, !coord_tensor_2, !cute.coord<"?">) -> !ids
      %flags = cute.memref.alloca() : !flags
      %first = cute.slice(%ids, %9) : !ids, !cute.coord<"(0,_,_)">
      %each = cute.slice(%flags, %9) : !flags, !cute.coord<"(0,_,_)">
      scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
        %84 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %85 = cute.memref.load(%first, %84) : (!first, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
        %86:2 = cute.get_scalars<{only_dynamic}> (%85) : !cute.int_tuple<"(?,?)">
        %87 = cute.make_int_tuple(%86#0, %86#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %88 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %89 = cute.elem_less(%87, %88) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        %90 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%each, %90, %89) : (!each, !cute.coord<"?">, i1) -> ()
      }
      %44 = cute.slice(%sA, %10) : !sA, !cute.coord<"(_,_,0)">
      %45 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %46 = cute.tiled.copy.partition_D(%8, %44, %45) : (!tiled_copy, !memref_6, !cute.coord<"?">) -> !memref_7
      cute.copy(%7, %part, %46, pred = %flags) : (!simt_async_copy, !part, !memref_7, !flags) -> ()
      %47 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,0)">
      %48 = cute.local_tile(%27, %6, %47) : (!memref, !cute.shape<"(128,16)">, !cute.coord<"(?,0)">) -> !memref_8
      %49 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %part_0 = cute.tiled.copy.partition_S(%11, %48, %49) : (!tiled_copy_2, !memref_8, !cute.coord<"?">) -> !part_2
      %50 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,0)">
      %51 = cute.local_tile(%32, %6, %50) : (!coord_tensor, !cute.shape<"(128,16)">, !cute.coord<"(?,0)">) -> !coord_tensor_2
      %52 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %ids_1 = cute.tiled.copy.partition_S(%11, %51, %52) : (!tiled_copy_2, !coord_tensor_2, !cute.coord<"?">) -> !ids_2
      %flags_2 = cute.memref.alloca() : !flags_2
      %first_3 = cute.slice(%ids_1, %9) : !ids_2, !cute.coord<"(0,_,_)">
      %each_4 = cute.slice(%flags_2, %9) : !flags_2, !cute.coord<"(0,_,_)">
      scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
        %84 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %85 = cute.memref.load(%first_3, %84) : (!first_2, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
        %86:2 = cute.get_scalars<{only_dynamic}> (%85) : !cute.int_tuple<"(?,?)">
        %87 = cute.make_int_tuple(%86#0, %86#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %88 = cute.make_int_tuple(%29#0, %29#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %89 = cute.elem_less(%87, %88) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        %90 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%each_4, %90, %89) : (!each_2, !cute.coord<"?">, i1) -> ()
      }
      %53 = cute.slice(%sB, %10) : !sB, !cute.coord<"(_,_,0)">
      %54 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %55 = cute.tiled.copy.partition_D(%11, %53, %54) : (!tiled_copy_2, !memref_9, !cute.coord<"?">) -> !memref_10
      cute.copy(%7, %part_0, %55, pred = %flags_2) : (!simt_async_copy, !part_2, !memref_10, !flags_2) -> ()
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      %56 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,1)">
      %57 = cute.local_tile(%mA, %6, %56) : (!mA, !cute.shape<"(128,16)">, !cute.coord<"(?,1)">) -> !memref_5
      %58 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %part_5 = cute.tiled.copy.partition_S(%8, %57, %58) : (!tiled_copy, !memref_5, !cute.coord<"?">) -> !part
      %59 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,1)">
      %60 = cute.local_tile(%26, %6, %59) : (!coord_tensor, !cute.shape<"(128,16)">, !cute.coord<"(?,1)">) -> !coord_tensor_3
      %61 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %ids_6 = cute.tiled.copy.partition_S(%8, %60, %61) : (!tiled_copy, !coord_tensor_3, !cute.coord<"?">) -> !ids
      %flags_7 = cute.memref.alloca() : !flags
      %first_8 = cute.slice(%ids_6, %9) : !ids, !cute.coord<"(0,_,_)">
      %each_9 = cute.slice(%flags_7, %9) : !flags, !cute.coord<"(0,_,_)">
      scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
        %84 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %85 = cute.memref.load(%first_8, %84) : (!first, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
        %86:2 = cute.get_scalars<{only_dynamic}> (%85) : !cute.int_tuple<"(?,?)">
        %87 = cute.make_int_tuple(%86#0, %86#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %88 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %89 = cute.elem_less(%87, %88) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        %90 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%each_9, %90, %89) : (!each, !cute.coord<"?">, i1) -> ()
      }
      %62 = cute.slice(%sA, %12) : !sA, !cute.coord<"(_,_,1)">
      %63 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %64 = cute.tiled.copy.partition_D(%8, %62, %63) : (!tiled_copy, !memref_6, !cute.coord<"?">) -> !memref_7
      cute.copy(%7, %part_5, %64, pred = %flags_7) : (!simt_async_copy, !part, !memref_7, !flags) -> ()
      %65 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,1)">
      %66 = cute.local_tile(%27, %6, %65) : (!memref, !cute.shape<"(128,16)">, !cute.coord<"(?,1)">) -> !memref_8
      %67 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %part_10 = cute.tiled.copy.partition_S(%11, %66, %67) : (!tiled_copy_2, !memref_8, !cute.coord<"?">) -> !part_2
      %68 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,1)">
      %69 = cute.local_tile(%32, %6, %68) : (!coord_tensor, !cute.shape<"(128,16)">, !cute.coord<"(?,1)">) -> !coord_tensor_3
      %70 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %ids_11 = cute.tiled.copy.partition_S(%11, %69, %70) : (!tiled_copy_2, !coord_tensor_3, !cute.coord<"?">) -> !ids_2
      %flags_12 = cute.memref.alloca() : !flags_2
      %first_13 = cute.slice(%ids_11, %9) : !ids_2, !cute.coord<"(0,_,_)">
      %each_14 = cute.slice(%flags_12, %9) : !flags_2, !cute.coord<"(0,_,_)">
      scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
        %84 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %85 = cute.memref.load(%first_13, %84) : (!first_2, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
        %86:2 = cute.get_scalars<{only_dynamic}> (%85) : !cute.int_tuple<"(?,?)">
        %87 = cute.make_int_tuple(%86#0, %86#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %88 = cute.make_int_tuple(%29#0, %29#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %89 = cute.elem_less(%87, %88) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        %90 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%each_14, %90, %89) : (!each_2, !cute.coord<"?">, i1) -> ()
      }
      %71 = cute.slice(%sB, %12) : !sB, !cute.coord<"(_,_,1)">
      %72 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %73 = cute.tiled.copy.partition_D(%11, %71, %72) : (!tiled_copy_2, !memref_9, !cute.coord<"?">) -> !memref_10
      cute.copy(%7, %part_10, %73, pred = %flags_12) : (!simt_async_copy, !part_2, !memref_10, !flags_2) -> ()
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      %74 = arith.addi %1#1, %c15_i32 : i32
      %75 = arith.shrui %74, %c4_i32 : i32
      scf.for %tile = %c0_i32 to %75 step %c1_i32 : i32 {
        // Wait for this tile, and for all threads to be done with the previous one, then request another in its place.
        cute_nvgpu.arch.cp_async_wait_group() {n = 1 : i32} : () -> ()
        cute_nvgpu.arch.barrier() : () -> ()
        %ahead = arith.addi %tile, %c2_i32 : i32
        %84 = arith.remui %ahead, %c3_i32 : i32
        %85 = cute.make_coord(%row, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %86 = cute.local_tile(%mA, %6, %85) : (!mA, !cute.shape<"(128,16)">, !cute.coord<"(?,?)">) -> !memref_5
        %87 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
        %part_16 = cute.tiled.copy.partition_S(%8, %86, %87) : (!tiled_copy, !memref_5, !cute.coord<"?">) -> !part
        %88 = cute.make_coord(%row, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %89 = cute.local_tile(%26, %6, %88) : (!coord_tensor, !cute.shape<"(128,16)">, !cute.coord<"(?,?)">) -> !coord_tensor_4
        %90 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
        %ids_17 = cute.tiled.copy.partition_S(%8, %89, %90) : (!tiled_copy, !coord_tensor_4, !cute.coord<"?">) -> !ids
        %flags_18 = cute.memref.alloca() : !flags
        %first_19 = cute.slice(%ids_17, %9) : !ids, !cute.coord<"(0,_,_)">
        %each_20 = cute.slice(%flags_18, %9) : !flags, !cute.coord<"(0,_,_)">
        scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %105 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %106 = cute.memref.load(%first_19, %105) : (!first, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %107:2 = cute.get_scalars<{only_dynamic}> (%106) : !cute.int_tuple<"(?,?)">
          %108 = cute.make_int_tuple(%107#0, %107#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %109 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %110 = cute.elem_less(%108, %109) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          %111 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%each_20, %111, %110) : (!each, !cute.coord<"?">, i1) -> ()
        }
        %91 = cute.make_coord(%84) : (i32) -> !cute.coord<"(_,_,?)">
        %92 = cute.slice(%sA, %91) : !sA, !cute.coord<"(_,_,?)">
        %93 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
        %94 = cute.tiled.copy.partition_D(%8, %92, %93) : (!tiled_copy, !memref_6, !cute.coord<"?">) -> !memref_7
        cute.copy(%7, %part_16, %94, pred = %flags_18) : (!simt_async_copy, !part, !memref_7, !flags) -> ()
        %95 = cute.make_coord(%column, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %96 = cute.local_tile(%27, %6, %95) : (!memref, !cute.shape<"(128,16)">, !cute.coord<"(?,?)">) -> !memref_8
        %97 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
        %part_21 = cute.tiled.copy.partition_S(%11, %96, %97) : (!tiled_copy_2, !memref_8, !cute.coord<"?">) -> !part_2
        %98 = cute.make_coord(%column, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %99 = cute.local_tile(%32, %6, %98) : (!coord_tensor, !cute.shape<"(128,16)">, !cute.coord<"(?,?)">) -> !coord_tensor_4
        %100 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
        %ids_22 = cute.tiled.copy.partition_S(%11, %99, %100) : (!tiled_copy_2, !coord_tensor_4, !cute.coord<"?">) -> !ids_2
        %flags_23 = cute.memref.alloca() : !flags_2
        %first_24 = cute.slice(%ids_22, %9) : !ids_2, !cute.coord<"(0,_,_)">
        %each_25 = cute.slice(%flags_23, %9) : !flags_2, !cute.coord<"(0,_,_)">
        scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %105 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %106 = cute.memref.load(%first_24, %105) : (!first_2, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %107:2 = cute.get_scalars<{only_dynamic}> (%106) : !cute.int_tuple<"(?,?)">
          %108 = cute.make_int_tuple(%107#0, %107#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %109 = cute.make_int_tuple(%29#0, %29#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %110 = cute.elem_less(%108, %109) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          %111 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%each_25, %111, %110) : (!each_2, !cute.coord<"?">, i1) -> ()
        }
        %101 = cute.make_coord(%84) : (i32) -> !cute.coord<"(_,_,?)">
        %102 = cute.slice(%sB, %101) : !sB, !cute.coord<"(_,_,?)">
        %103 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
        %104 = cute.tiled.copy.partition_D(%11, %102, %103) : (!tiled_copy_2, !memref_9, !cute.coord<"?">) -> !memref_10
        cute.copy(%7, %part_21, %104, pred = %flags_23) : (!simt_async_copy, !part_2, !memref_10, !flags_2) -> ()
        cute_nvgpu.arch.cp_async_commit_group() : () -> ()
        %stage = arith.remui %tile, %c3_i32 : i32
        scf.for %k = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %105 = cute.make_coord(%stage) : (i32) -> !cute.coord<"(_,_,?)">
          %106 = cute.slice(%sA, %105) : !sA, !cute.coord<"(_,_,?)">
          %107 = cute.make_coord(%stage) : (i32) -> !cute.coord<"(_,_,?)">
          %108 = cute.slice(%sB, %107) : !sB, !cute.coord<"(_,_,?)">
          %109 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %110 = cute.local_tile(%106, %13, %109) : (!memref_6, !cute.shape<"(128,2)">, !cute.coord<"(0,?)">) -> !memref_11
          %111 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
          %blockA = cute.tiled.mma.partition_A(%5, %110, %111) : (!tiled_mma, !memref_11, !cute.coord<"?">) -> !blockA
          %rA = cute.tiled.mma.make_fragment_A(%5, %blockA) : (!tiled_mma, !blockA) -> !rA
          cute.copy(%14, %blockA, %rA) : (!universal_copy, !blockA, !rA) -> ()
          %112 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %blockB = cute.local_tile(%108, %13, %112) : (!memref_9, !cute.shape<"(128,2)">, !cute.coord<"(0,?)">) -> !blockB
          %113 = cute.local_tile(%blockB, %15, %16) : (!blockB, !cute.shape<"(128,1)">, !cute.coord<"(0,0)">) -> !memref_12
          %114 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
          %columnB = cute.tiled.mma.partition_B(%5, %113, %114) : (!tiled_mma, !memref_12, !cute.coord<"?">) -> !columnB
          %rB = cute.tiled.mma.make_fragment_B(%5, %columnB) : (!tiled_mma, !columnB) -> !rB
          cute.copy(%14, %columnB, %rB) : (!universal_copy, !columnB, !rB) -> ()
          %115 = cute.slice(%rA, %10) : !rA, !cute.coord<"(_,_,0)">
          %116 = cute.slice(%rB, %10) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%5, %37, %115, %116, %37) : (!tiled_mma, !memref_4, !memref_13, !memref_14, !memref_4) -> ()
          %117 = cute.local_tile(%blockB, %15, %17) : (!blockB, !cute.shape<"(128,1)">, !cute.coord<"(0,1)">) -> !memref_12
          %118 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
          %columnB_26 = cute.tiled.mma.partition_B(%5, %117, %118) : (!tiled_mma, !memref_12, !cute.coord<"?">) -> !columnB
          %rB_27 = cute.tiled.mma.make_fragment_B(%5, %columnB_26) : (!tiled_mma, !columnB) -> !rB
          cute.copy(%14, %columnB_26, %rB_27) : (!universal_copy, !columnB, !rB) -> ()
          %119 = cute.slice(%rA, %12) : !rA, !cute.coord<"(_,_,1)">
          %120 = cute.slice(%rB_27, %10) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%5, %37, %119, %120, %37) : (!tiled_mma, !memref_4, !memref_13, !memref_14, !memref_4) -> ()
        }
      }
      cute_nvgpu.arch.cp_async_wait_group() {n = 0 : i32} : () -> ()
      %76 = cute.make_shape(%20#0, %20#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %77 = cute.make_identity_layout(%76) : !cute.shape<"(?,?)"> -> !layout
      %78 = cute.make_view(%2, %77) : !coord_tensor
      %79 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %ids_15 = cute.local_tile(%78, %3, %79) : (!coord_tensor, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !ids_3
      %80 = cute.memref.load(%ids_15, %18) : (!ids_3, !cute.coord<"16383">) -> !cute.int_tuple<"(?,?)">
      %81:2 = cute.get_scalars<{only_dynamic}> (%80) : !cute.int_tuple<"(?,?)">
      %82 = cute.make_int_tuple(%81#0, %81#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %83 = cute.make_int_tuple(%20#0, %20#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %whole = cute.elem_less(%82, %83) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
      scf.if %whole {
        cute.copy(%14, %37, %36) : (!universal_copy, !memref_4, !memref_3) -> ()
      } else {
        %84 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
        %xC = cute.tiled.mma.partition_C(%5, %ids_15, %84) : (!tiled_mma, !ids_3, !cute.coord<"?">) -> !xC
        %inside = cute.make_fragment_like(%xC) [i1] : !xC -> !inside
        scf.for %i = %c0_i32 to %c64_i32 step %c1_i32 : i32 {
          %85 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %86 = cute.memref.load(%xC, %85) : (!xC, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %87:2 = cute.get_scalars<{only_dynamic}> (%86) : !cute.int_tuple<"(?,?)">
          %88 = cute.make_int_tuple(%87#0, %87#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %89 = cute.make_int_tuple(%20#0, %20#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %90 = cute.elem_less(%88, %89) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          %91 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%inside, %91, %90) : (!inside, !cute.coord<"?">, i1) -> ()
        }
        cute.copy(%14, %37, %36, pred = %inside) : (!universal_copy, !memref_4, !memref_3, !inside) -> ()
      }
      gpu.return
    }
    // Multiply matrices with 16-byte aligned rows, with prefetch of tiles.
    gpu.func @sgemm_v(%mA: !mA_2, %mB: !mA_2, %mC: !mA_2) kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 2 : i32} {
      %0 = cute.get_layout(%mA) : !mA_2
      %1:3 = cute.get_scalars<{only_dynamic}> (%0) : !layout_2
      %c127_i32 = arith.constant 127 : i32
      %c7_i32 = arith.constant 7 : i32
      %2 = cute.static : !cute.int_tuple<"(0,0)">
      %3 = cute.static : !cute.shape<"(128,128)">
      %4 = cute.atom() : !universal_fma
      %5 = cute.make_tiled_mma(%4) : !tiled_mma
      %6 = cute.static : !cute.shape<"(128,16)">
      %7 = cute.atom() : !simt_async_copy_2
      %8 = cute.make_tiled_copy(%7) : !tiled_copy_3
      %9 = cute.static : !cute.coord<"(0,_,_)">
      %c0_i32 = arith.constant 0 : i32
      %c2_i32 = arith.constant 2 : i32
      %c1_i32 = arith.constant 1 : i32
      %10 = cute.static : !cute.coord<"(_,_,0)">
      %11 = cute.make_tiled_copy(%7) : !tiled_copy_4
      %12 = cute.static : !cute.coord<"(_,_,1)">
      %c15_i32 = arith.constant 15 : i32
      %c4_i32 = arith.constant 4 : i32
      %c3_i32 = arith.constant 3 : i32
      %13 = cute.static : !cute.shape<"(128,2)">
      %14 = cute.atom() : !universal_copy
      %15 = cute.static : !cute.shape<"(128,1)">
      %16 = cute.static : !cute.coord<"(0,0)">
      %17 = cute.static : !cute.coord<"(0,1)">
      %c8_i32 = arith.constant 8 : i32
      %18 = cute.static : !cute.coord<"16383">
      %c64_i32 = arith.constant 64 : i32
      %19 = cute.get_layout(%mC) : !mA_2
      %20:3 = cute.get_scalars<{only_dynamic}> (%19) : !layout_2
      %21 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %22 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %23 = arith.addi %20#1, %c127_i32 : i32
      %across = arith.shrui %23, %c7_i32 : i32
      %row = arith.divui %22, %across : i32
      %column = arith.remui %22, %across : i32
      %24 = cute.assume(%1#1) : (i32) -> !cute.i32<divby 4>
      %25 = cute.make_shape(%1#0, %24) : (i32, !cute.i32<divby 4>) -> !cute.shape<"(?,?{div=4})">
      %26 = cute.make_identity_layout(%25) : !cute.shape<"(?,?{div=4})"> -> !layout_3
      %27 = cute.make_view(%2, %26) : !coord_tensor_5
      %28 = cute.select<[1, 0]> (%mB) : !mA_2 -> !memref_15
      %29 = cute.get_layout(%28) : !memref_15
      %30:3 = cute.get_scalars<{only_dynamic}> (%29) : !layout_4
      %31 = cute.assume(%30#0) : (i32) -> !cute.i32<divby 4>
      %32 = cute.make_shape(%31, %30#1) : (!cute.i32<divby 4>, i32) -> !cute.shape<"(?{div=4},?)">
      %33 = cute.make_identity_layout(%32) : !cute.shape<"(?{div=4},?)"> -> !layout_5
      %34 = cute.make_view(%2, %33) : !coord_tensor_6
      %35 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %36 = cute.local_tile(%mC, %3, %35) : (!mA_2, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !memref_16
      %37 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %38 = cute.tiled.mma.partition_C(%5, %36, %37) : (!tiled_mma, !memref_16, !cute.coord<"?">) -> !memref_17
      %39 = cute.tiled.mma.make_fragment_C(%5, %38) : (!tiled_mma, !memref_17) -> !memref_4
      cute.clear(%39) : (!memref_4) -> ()
      %sA = cute.memref.alloc_smem() : !sA
      %sB = cute.memref.alloc_smem() : !sB
      // tiles past the last one are zero
      %40 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,0)">
      %41 = cute.local_tile(%mA, %6, %40) : (!mA_2, !cute.shape<"(128,16)">, !cute.coord<"(?,0)">) -> !memref_18
      %42 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %part = cute.tiled.copy.partition_S(%8, %41, %42) : (!tiled_copy_3, !memref_18, !cute.coord<"?">) -> !part_3
      %43 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,0)">
      %44 = cute.local_tile(%27, %6, %43) : (!coord_tensor_5, !cute.shape<"(128,16)">, !cute.coord<"(?,0)">) -> !coord_tensor_2
      %45 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %ids = cute.tiled.copy.partition_S(%8, %44, %45) : (!tiled_copy_3, !coord_tensor_2, !cute.coord<"?">) -> !ids_4
      %flags = cute.memref.alloca() : !flags_3
      %first = cute.slice(%ids, %9) : !ids_4, !cute.coord<"(0,_,_)">
      %each = cute.slice(%flags, %9) : !flags_3, !cute.coord<"(0,_,_)">
      scf.for %i = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
        %88 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %89 = cute.memref.load(%first, %88) : (!first_3, !cute.coord<"?">) -> !int_tuple
        %90:2 = cute.get_scalars<{only_dynamic}> (%89) : !int_tuple
        %91 = cute.assume(%90#1) : (i32) -> !cute.i32<divby 4>
        %92 = cute.make_int_tuple(%90#0, %91) : (i32, !cute.i32<divby 4>) -> !int_tuple
        %93 = cute.assume(%1#1) : (i32) -> !cute.i32<divby 4>
        %94 = cute.make_int_tuple(%1#0, %93) : (i32, !cute.i32<divby 4>) -> !int_tuple
        %95 = cute.elem_less(%92, %94) : (!int_tuple, !int_tuple) -> i1
        %96 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%each, %96, %95) : (!each_3, !cute.coord<"?">, i1) -> ()
      }
      %46 = cute.slice(%sA, %10) : !sA, !cute.coord<"(_,_,0)">
      %47 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %48 = cute.tiled.copy.partition_D(%8, %46, %47) : (!tiled_copy_3, !memref_6, !cute.coord<"?">) -> !memref_19
      cute.copy(%7, %part, %48, pred = %flags) : (!simt_async_copy_2, !part_3, !memref_19, !flags_3) -> ()
      %49 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,0)">
      %50 = cute.local_tile(%28, %6, %49) : (!memref_15, !cute.shape<"(128,16)">, !cute.coord<"(?,0)">) -> !memref_20
      %51 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %part_0 = cute.tiled.copy.partition_S(%11, %50, %51) : (!tiled_copy_4, !memref_20, !cute.coord<"?">) -> !part_4
      %52 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,0)">
      %53 = cute.local_tile(%34, %6, %52) : (!coord_tensor_6, !cute.shape<"(128,16)">, !cute.coord<"(?,0)">) -> !coord_tensor_2
      %54 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %ids_1 = cute.tiled.copy.partition_S(%11, %53, %54) : (!tiled_copy_4, !coord_tensor_2, !cute.coord<"?">) -> !ids_5
      %flags_2 = cute.memref.alloca() : !flags_4
      %first_3 = cute.slice(%ids_1, %9) : !ids_5, !cute.coord<"(0,_,_)">
      %each_4 = cute.slice(%flags_2, %9) : !flags_4, !cute.coord<"(0,_,_)">
      scf.for %i = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
        %88 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %89 = cute.memref.load(%first_3, %88) : (!first_4, !cute.coord<"?">) -> !int_tuple_2
        %90:2 = cute.get_scalars<{only_dynamic}> (%89) : !int_tuple_2
        %91 = cute.assume(%90#0) : (i32) -> !cute.i32<divby 4>
        %92 = cute.make_int_tuple(%91, %90#1) : (!cute.i32<divby 4>, i32) -> !int_tuple_2
        %93 = cute.assume(%30#0) : (i32) -> !cute.i32<divby 4>
        %94 = cute.make_int_tuple(%93, %30#1) : (!cute.i32<divby 4>, i32) -> !int_tuple_2
        %95 = cute.elem_less(%92, %94) : (!int_tuple_2, !int_tuple_2) -> i1
        %96 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%each_4, %96, %95) : (!each_4, !cute.coord<"?">, i1) -> ()
      }
      %55 = cute.slice(%sB, %10) : !sB, !cute.coord<"(_,_,0)">
      %56 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %57 = cute.tiled.copy.partition_D(%11, %55, %56) : (!tiled_copy_4, !memref_9, !cute.coord<"?">) -> !memref_21
      cute.copy(%7, %part_0, %57, pred = %flags_2) : (!simt_async_copy_2, !part_4, !memref_21, !flags_4) -> ()
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      %58 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,1)">
      %59 = cute.local_tile(%mA, %6, %58) : (!mA_2, !cute.shape<"(128,16)">, !cute.coord<"(?,1)">) -> !memref_18
      %60 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %part_5 = cute.tiled.copy.partition_S(%8, %59, %60) : (!tiled_copy_3, !memref_18, !cute.coord<"?">) -> !part_3
      %61 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,1)">
      %62 = cute.local_tile(%27, %6, %61) : (!coord_tensor_5, !cute.shape<"(128,16)">, !cute.coord<"(?,1)">) -> !coord_tensor_3
      %63 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %ids_6 = cute.tiled.copy.partition_S(%8, %62, %63) : (!tiled_copy_3, !coord_tensor_3, !cute.coord<"?">) -> !ids_4
      %flags_7 = cute.memref.alloca() : !flags_3
      %first_8 = cute.slice(%ids_6, %9) : !ids_4, !cute.coord<"(0,_,_)">
      %each_9 = cute.slice(%flags_7, %9) : !flags_3, !cute.coord<"(0,_,_)">
      scf.for %i = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
        %88 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %89 = cute.memref.load(%first_8, %88) : (!first_3, !cute.coord<"?">) -> !int_tuple
        %90:2 = cute.get_scalars<{only_dynamic}> (%89) : !int_tuple
        %91 = cute.assume(%90#1) : (i32) -> !cute.i32<divby 4>
        %92 = cute.make_int_tuple(%90#0, %91) : (i32, !cute.i32<divby 4>) -> !int_tuple
        %93 = cute.assume(%1#1) : (i32) -> !cute.i32<divby 4>
        %94 = cute.make_int_tuple(%1#0, %93) : (i32, !cute.i32<divby 4>) -> !int_tuple
        %95 = cute.elem_less(%92, %94) : (!int_tuple, !int_tuple) -> i1
        %96 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%each_9, %96, %95) : (!each_3, !cute.coord<"?">, i1) -> ()
      }
      %64 = cute.slice(%sA, %12) : !sA, !cute.coord<"(_,_,1)">
      %65 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %66 = cute.tiled.copy.partition_D(%8, %64, %65) : (!tiled_copy_3, !memref_6, !cute.coord<"?">) -> !memref_19
      cute.copy(%7, %part_5, %66, pred = %flags_7) : (!simt_async_copy_2, !part_3, !memref_19, !flags_3) -> ()
      %67 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,1)">
      %68 = cute.local_tile(%28, %6, %67) : (!memref_15, !cute.shape<"(128,16)">, !cute.coord<"(?,1)">) -> !memref_20
      %69 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %part_10 = cute.tiled.copy.partition_S(%11, %68, %69) : (!tiled_copy_4, !memref_20, !cute.coord<"?">) -> !part_4
      %70 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,1)">
      %71 = cute.local_tile(%34, %6, %70) : (!coord_tensor_6, !cute.shape<"(128,16)">, !cute.coord<"(?,1)">) -> !coord_tensor_3
      %72 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %ids_11 = cute.tiled.copy.partition_S(%11, %71, %72) : (!tiled_copy_4, !coord_tensor_3, !cute.coord<"?">) -> !ids_5
      %flags_12 = cute.memref.alloca() : !flags_4
      %first_13 = cute.slice(%ids_11, %9) : !ids_5, !cute.coord<"(0,_,_)">
      %each_14 = cute.slice(%flags_12, %9) : !flags_4, !cute.coord<"(0,_,_)">
      scf.for %i = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
        %88 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %89 = cute.memref.load(%first_13, %88) : (!first_4, !cute.coord<"?">) -> !int_tuple_2
        %90:2 = cute.get_scalars<{only_dynamic}> (%89) : !int_tuple_2
        %91 = cute.assume(%90#0) : (i32) -> !cute.i32<divby 4>
        %92 = cute.make_int_tuple(%91, %90#1) : (!cute.i32<divby 4>, i32) -> !int_tuple_2
        %93 = cute.assume(%30#0) : (i32) -> !cute.i32<divby 4>
        %94 = cute.make_int_tuple(%93, %30#1) : (!cute.i32<divby 4>, i32) -> !int_tuple_2
        %95 = cute.elem_less(%92, %94) : (!int_tuple_2, !int_tuple_2) -> i1
        %96 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%each_14, %96, %95) : (!each_4, !cute.coord<"?">, i1) -> ()
      }
      %73 = cute.slice(%sB, %12) : !sB, !cute.coord<"(_,_,1)">
      %74 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
      %75 = cute.tiled.copy.partition_D(%11, %73, %74) : (!tiled_copy_4, !memref_9, !cute.coord<"?">) -> !memref_21
      cute.copy(%7, %part_10, %75, pred = %flags_12) : (!simt_async_copy_2, !part_4, !memref_21, !flags_4) -> ()
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      %76 = arith.addi %1#1, %c15_i32 : i32
      %77 = arith.shrui %76, %c4_i32 : i32
      scf.for %tile = %c0_i32 to %77 step %c1_i32 : i32 {
        // Wait for this tile, and for all threads to be done with the previous one, then request another in its place.
        cute_nvgpu.arch.cp_async_wait_group() {n = 1 : i32} : () -> ()
        cute_nvgpu.arch.barrier() : () -> ()
        %ahead = arith.addi %tile, %c2_i32 : i32
        %88 = arith.remui %ahead, %c3_i32 : i32
        %89 = cute.make_coord(%row, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %90 = cute.local_tile(%mA, %6, %89) : (!mA_2, !cute.shape<"(128,16)">, !cute.coord<"(?,?)">) -> !memref_18
        %91 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
        %part_16 = cute.tiled.copy.partition_S(%8, %90, %91) : (!tiled_copy_3, !memref_18, !cute.coord<"?">) -> !part_3
        %92 = cute.make_coord(%row, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %93 = cute.local_tile(%27, %6, %92) : (!coord_tensor_5, !cute.shape<"(128,16)">, !cute.coord<"(?,?)">) -> !coord_tensor_4
        %94 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
        %ids_17 = cute.tiled.copy.partition_S(%8, %93, %94) : (!tiled_copy_3, !coord_tensor_4, !cute.coord<"?">) -> !ids_4
        %flags_18 = cute.memref.alloca() : !flags_3
        %first_19 = cute.slice(%ids_17, %9) : !ids_4, !cute.coord<"(0,_,_)">
        %each_20 = cute.slice(%flags_18, %9) : !flags_3, !cute.coord<"(0,_,_)">
        scf.for %i = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
          %109 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %110 = cute.memref.load(%first_19, %109) : (!first_3, !cute.coord<"?">) -> !int_tuple
          %111:2 = cute.get_scalars<{only_dynamic}> (%110) : !int_tuple
          %112 = cute.assume(%111#1) : (i32) -> !cute.i32<divby 4>
          %113 = cute.make_int_tuple(%111#0, %112) : (i32, !cute.i32<divby 4>) -> !int_tuple
          %114 = cute.assume(%1#1) : (i32) -> !cute.i32<divby 4>
          %115 = cute.make_int_tuple(%1#0, %114) : (i32, !cute.i32<divby 4>) -> !int_tuple
          %116 = cute.elem_less(%113, %115) : (!int_tuple, !int_tuple) -> i1
          %117 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%each_20, %117, %116) : (!each_3, !cute.coord<"?">, i1) -> ()
        }
        %95 = cute.make_coord(%88) : (i32) -> !cute.coord<"(_,_,?)">
        %96 = cute.slice(%sA, %95) : !sA, !cute.coord<"(_,_,?)">
        %97 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
        %98 = cute.tiled.copy.partition_D(%8, %96, %97) : (!tiled_copy_3, !memref_6, !cute.coord<"?">) -> !memref_19
        cute.copy(%7, %part_16, %98, pred = %flags_18) : (!simt_async_copy_2, !part_3, !memref_19, !flags_3) -> ()
        %99 = cute.make_coord(%column, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %100 = cute.local_tile(%28, %6, %99) : (!memref_15, !cute.shape<"(128,16)">, !cute.coord<"(?,?)">) -> !memref_20
        %101 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
        %part_21 = cute.tiled.copy.partition_S(%11, %100, %101) : (!tiled_copy_4, !memref_20, !cute.coord<"?">) -> !part_4
        %102 = cute.make_coord(%column, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %103 = cute.local_tile(%34, %6, %102) : (!coord_tensor_6, !cute.shape<"(128,16)">, !cute.coord<"(?,?)">) -> !coord_tensor_4
        %104 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
        %ids_22 = cute.tiled.copy.partition_S(%11, %103, %104) : (!tiled_copy_4, !coord_tensor_4, !cute.coord<"?">) -> !ids_5
        %flags_23 = cute.memref.alloca() : !flags_4
        %first_24 = cute.slice(%ids_22, %9) : !ids_5, !cute.coord<"(0,_,_)">
        %each_25 = cute.slice(%flags_23, %9) : !flags_4, !cute.coord<"(0,_,_)">
        scf.for %i = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
          %109 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %110 = cute.memref.load(%first_24, %109) : (!first_4, !cute.coord<"?">) -> !int_tuple_2
          %111:2 = cute.get_scalars<{only_dynamic}> (%110) : !int_tuple_2
          %112 = cute.assume(%111#0) : (i32) -> !cute.i32<divby 4>
          %113 = cute.make_int_tuple(%112, %111#1) : (!cute.i32<divby 4>, i32) -> !int_tuple_2
          %114 = cute.assume(%30#0) : (i32) -> !cute.i32<divby 4>
          %115 = cute.make_int_tuple(%114, %30#1) : (!cute.i32<divby 4>, i32) -> !int_tuple_2
          %116 = cute.elem_less(%113, %115) : (!int_tuple_2, !int_tuple_2) -> i1
          %117 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%each_25, %117, %116) : (!each_4, !cute.coord<"?">, i1) -> ()
        }
        %105 = cute.make_coord(%88) : (i32) -> !cute.coord<"(_,_,?)">
        %106 = cute.slice(%sB, %105) : !sB, !cute.coord<"(_,_,?)">
        %107 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
        %108 = cute.tiled.copy.partition_D(%11, %106, %107) : (!tiled_copy_4, !memref_9, !cute.coord<"?">) -> !memref_21
        cute.copy(%7, %part_21, %108, pred = %flags_23) : (!simt_async_copy_2, !part_4, !memref_21, !flags_4) -> ()
        cute_nvgpu.arch.cp_async_commit_group() : () -> ()
        %stage = arith.remui %tile, %c3_i32 : i32
        scf.for %k = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %109 = cute.make_coord(%stage) : (i32) -> !cute.coord<"(_,_,?)">
          %110 = cute.slice(%sA, %109) : !sA, !cute.coord<"(_,_,?)">
          %111 = cute.make_coord(%stage) : (i32) -> !cute.coord<"(_,_,?)">
          %112 = cute.slice(%sB, %111) : !sB, !cute.coord<"(_,_,?)">
          %113 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %114 = cute.local_tile(%110, %13, %113) : (!memref_6, !cute.shape<"(128,2)">, !cute.coord<"(0,?)">) -> !memref_11
          %115 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
          %blockA = cute.tiled.mma.partition_A(%5, %114, %115) : (!tiled_mma, !memref_11, !cute.coord<"?">) -> !blockA
          %rA = cute.tiled.mma.make_fragment_A(%5, %blockA) : (!tiled_mma, !blockA) -> !rA
          cute.copy(%14, %blockA, %rA) : (!universal_copy, !blockA, !rA) -> ()
          %116 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %blockB = cute.local_tile(%112, %13, %116) : (!memref_9, !cute.shape<"(128,2)">, !cute.coord<"(0,?)">) -> !blockB
          %117 = cute.local_tile(%blockB, %15, %16) : (!blockB, !cute.shape<"(128,1)">, !cute.coord<"(0,0)">) -> !memref_12
          %118 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
          %columnB = cute.tiled.mma.partition_B(%5, %117, %118) : (!tiled_mma, !memref_12, !cute.coord<"?">) -> !columnB
          %rB = cute.tiled.mma.make_fragment_B(%5, %columnB) : (!tiled_mma, !columnB) -> !rB
          cute.copy(%14, %columnB, %rB) : (!universal_copy, !columnB, !rB) -> ()
          %119 = cute.slice(%rA, %10) : !rA, !cute.coord<"(_,_,0)">
          %120 = cute.slice(%rB, %10) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%5, %39, %119, %120, %39) : (!tiled_mma, !memref_4, !memref_13, !memref_14, !memref_4) -> ()
          %121 = cute.local_tile(%blockB, %15, %17) : (!blockB, !cute.shape<"(128,1)">, !cute.coord<"(0,1)">) -> !memref_12
          %122 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
          %columnB_26 = cute.tiled.mma.partition_B(%5, %121, %122) : (!tiled_mma, !memref_12, !cute.coord<"?">) -> !columnB
          %rB_27 = cute.tiled.mma.make_fragment_B(%5, %columnB_26) : (!tiled_mma, !columnB) -> !rB
          cute.copy(%14, %columnB_26, %rB_27) : (!universal_copy, !columnB, !rB) -> ()
          %123 = cute.slice(%rA, %12) : !rA, !cute.coord<"(_,_,1)">
          %124 = cute.slice(%rB_27, %10) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%5, %39, %123, %124, %39) : (!tiled_mma, !memref_4, !memref_13, !memref_14, !memref_4) -> ()
        }
      }
      cute_nvgpu.arch.cp_async_wait_group() {n = 0 : i32} : () -> ()
      %78 = cute.assume(%20#1) : (i32) -> !cute.i32<divby 4>
      %79 = cute.make_shape(%20#0, %78) : (i32, !cute.i32<divby 4>) -> !cute.shape<"(?,?{div=4})">
      %80 = cute.make_identity_layout(%79) : !cute.shape<"(?,?{div=4})"> -> !layout_3
      %81 = cute.make_view(%2, %80) : !coord_tensor_5
      %82 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %ids_15 = cute.local_tile(%81, %3, %82) : (!coord_tensor_5, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !ids_3
      %83 = cute.memref.load(%ids_15, %18) : (!ids_3, !cute.coord<"16383">) -> !cute.int_tuple<"(?,?)">
      %84:2 = cute.get_scalars<{only_dynamic}> (%83) : !cute.int_tuple<"(?,?)">
      %85 = cute.make_int_tuple(%84#0, %84#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %86 = cute.assume(%20#1) : (i32) -> !cute.i32<divby 4>
      %87 = cute.make_int_tuple(%20#0, %86) : (i32, !cute.i32<divby 4>) -> !int_tuple
      %whole = cute.elem_less(%85, %87) : (!cute.int_tuple<"(?,?)">, !int_tuple) -> i1
      scf.if %whole {
        cute.copy(%14, %39, %38) : (!universal_copy, !memref_4, !memref_17) -> ()
      } else {
        %88 = cute.make_coord(%21) : (i32) -> !cute.coord<"?">
        %xC = cute.tiled.mma.partition_C(%5, %ids_15, %88) : (!tiled_mma, !ids_3, !cute.coord<"?">) -> !xC
        %inside = cute.make_fragment_like(%xC) [i1] : !xC -> !inside
        scf.for %i = %c0_i32 to %c64_i32 step %c1_i32 : i32 {
          %89 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %90 = cute.memref.load(%xC, %89) : (!xC, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %91:2 = cute.get_scalars<{only_dynamic}> (%90) : !cute.int_tuple<"(?,?)">
          %92 = cute.make_int_tuple(%91#0, %91#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %93 = cute.assume(%20#1) : (i32) -> !cute.i32<divby 4>
          %94 = cute.make_int_tuple(%20#0, %93) : (i32, !cute.i32<divby 4>) -> !int_tuple
          %95 = cute.elem_less(%92, %94) : (!cute.int_tuple<"(?,?)">, !int_tuple) -> i1
          %96 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%inside, %96, %95) : (!inside, !cute.coord<"?">, i1) -> ()
        }
        cute.copy(%14, %39, %38, pred = %inside) : (!universal_copy, !memref_4, !memref_17, !inside) -> ()
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
