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
    gpu.func @sgemm(%mA: !mA, %mB: !mA, %mC: !mA) kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 2 : i32} {
      %0 = cute.get_layout(%mA) : !mA
      %1:3 = cute.get_scalars<{only_dynamic}> (%0) : !cute.layout<"(?,?):(?,1)">
      %2 = cute.static : !cute.int_tuple<"128">
      %3 = cute.static : !cute.int_tuple<"(0,0)">
      %4 = cute.static : !cute.shape<"(128,128)">
      %5 = cute.atom() : !universal_fma
      %6 = cute.make_tiled_mma(%5) : !tiled_mma
      %7 = cute.static : !cute.shape<"(128,16)">
      %8 = cute.atom() : !simt_async_copy
      %9 = cute.make_tiled_copy(%8) : !tiled_copy
      %10 = cute.static : !cute.coord<"(0,_,_)">
      %c0_i32 = arith.constant 0 : i32
      %c8_i32 = arith.constant 8 : i32
      %c1_i32 = arith.constant 1 : i32
      %11 = cute.static : !cute.coord<"(_,_,0)">
      %12 = cute.make_tiled_copy(%8) : !tiled_copy_2
      %13 = cute.static : !cute.coord<"(_,_,1)">
      %14 = cute.static : !cute.int_tuple<"16">
      %c2_i32 = arith.constant 2 : i32
      %c3_i32 = arith.constant 3 : i32
      %15 = cute.static : !cute.shape<"(128,2)">
      %16 = cute.atom() : !universal_copy
      %17 = cute.static : !cute.shape<"(128,1)">
      %18 = cute.static : !cute.coord<"(0,0)">
      %19 = cute.static : !cute.coord<"(0,1)">
      %20 = cute.static : !cute.coord<"16383">
      %c64_i32 = arith.constant 64 : i32
      %21 = cute.get_layout(%mC) : !mA
      %22:3 = cute.get_scalars<{only_dynamic}> (%21) : !cute.layout<"(?,?):(?,1)">
      %23 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %24 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %25 = cute.make_int_tuple(%22#1) : (i32) -> !cute.int_tuple<"?">
      %26 = cute.ceil_div(%25, %2) : (!cute.int_tuple<"?">, !cute.int_tuple<"128">) -> !cute.int_tuple<"?">
      %across = cute.get_scalars<{only_dynamic}> (%26) : !cute.int_tuple<"?">
      %row = arith.divui %24, %across : i32
      %column = arith.remui %24, %across : i32
      %27 = cute.make_shape(%1#0, %1#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %28 = cute.make_identity_layout(%27) : !cute.shape<"(?,?)"> -> !layout
      %29 = cute.make_view(%3, %28) : !coord_tensor
      %30 = cute.select<[1, 0]> (%mB) : !mA -> !memref
      %31 = cute.get_layout(%30) : !memref
      %32:3 = cute.get_scalars<{only_dynamic}> (%31) : !cute.layout<"(?,?):(1,?)">
      %33 = cute.make_shape(%32#0, %32#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %34 = cute.make_identity_layout(%33) : !cute.shape<"(?,?)"> -> !layout
      %35 = cute.make_view(%3, %34) : !coord_tensor
      %36 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %37 = cute.local_tile(%mC, %4, %36) : (!mA, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !memref_2
      %38 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %39 = cute.tiled.mma.partition_C(%6, %37, %38) : (!tiled_mma, !memref_2, !cute.coord<"?">) -> !memref_3
      %40 = cute.tiled.mma.make_fragment_C(%6, %39) : (!tiled_mma, !memref_3) -> !memref_4
      cute.clear(%40) : (!memref_4) -> ()
      %sA = cute.memref.alloc_smem() : !sA
      %sB = cute.memref.alloc_smem() : !sB
      %41 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,0)">
      %42 = cute.local_tile(%mA, %7, %41) : (!mA, !cute.shape<"(128,16)">, !cute.coord<"(?,0)">) -> !memref_5
      %43 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %part = cute.tiled.copy.partition_S(%9, %42, %43) : (!tiled_copy, !memref_5, !cute.coord<"?">) -> !part
      %44 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,0)">
      %45 = cute.local_tile(%29, %7, %44) : (!coord_tensor, !cute.shape<"(128,16)">, !cute.coord<"(?,0)">) -> !coord_tensor_2
      %46 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %ids = cute.tiled.copy.partition_S(%9, %45, %46) : (!tiled_copy, !coord_tensor_2, !cute.coord<"?">) -> !ids
      %flags = cute.memref.alloca() : !flags
      %first = cute.slice(%ids, %10) : !ids, !cute.coord<"(0,_,_)">
      %each = cute.slice(%flags, %10) : !flags, !cute.coord<"(0,_,_)">
      scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
        %88 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %89 = cute.memref.load(%first, %88) : (!first, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
        %90:2 = cute.get_scalars<{only_dynamic}> (%89) : !cute.int_tuple<"(?,?)">
        %91 = cute.make_int_tuple(%90#0, %90#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %92 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %93 = cute.elem_less(%91, %92) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        %94 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%each, %94, %93) : (!each, !cute.coord<"?">, i1) -> ()
      }
      %47 = cute.slice(%sA, %11) : !sA, !cute.coord<"(_,_,0)">
      %48 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %49 = cute.tiled.copy.partition_D(%9, %47, %48) : (!tiled_copy, !memref_6, !cute.coord<"?">) -> !memref_7
      cute.copy(%8, %part, %49, pred = %flags) : (!simt_async_copy, !part, !memref_7, !flags) -> ()
      %50 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,0)">
      %51 = cute.local_tile(%30, %7, %50) : (!memref, !cute.shape<"(128,16)">, !cute.coord<"(?,0)">) -> !memref_8
      %52 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %part_0 = cute.tiled.copy.partition_S(%12, %51, %52) : (!tiled_copy_2, !memref_8, !cute.coord<"?">) -> !part_2
      %53 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,0)">
      %54 = cute.local_tile(%35, %7, %53) : (!coord_tensor, !cute.shape<"(128,16)">, !cute.coord<"(?,0)">) -> !coord_tensor_2
      %55 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %ids_1 = cute.tiled.copy.partition_S(%12, %54, %55) : (!tiled_copy_2, !coord_tensor_2, !cute.coord<"?">) -> !ids_2
      %flags_2 = cute.memref.alloca() : !flags_2
      %first_3 = cute.slice(%ids_1, %10) : !ids_2, !cute.coord<"(0,_,_)">
      %each_4 = cute.slice(%flags_2, %10) : !flags_2, !cute.coord<"(0,_,_)">
      scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
        %88 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %89 = cute.memref.load(%first_3, %88) : (!first_2, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
        %90:2 = cute.get_scalars<{only_dynamic}> (%89) : !cute.int_tuple<"(?,?)">
        %91 = cute.make_int_tuple(%90#0, %90#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %92 = cute.make_int_tuple(%32#0, %32#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %93 = cute.elem_less(%91, %92) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        %94 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%each_4, %94, %93) : (!each_2, !cute.coord<"?">, i1) -> ()
      }
      %56 = cute.slice(%sB, %11) : !sB, !cute.coord<"(_,_,0)">
      %57 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %58 = cute.tiled.copy.partition_D(%12, %56, %57) : (!tiled_copy_2, !memref_9, !cute.coord<"?">) -> !memref_10
      cute.copy(%8, %part_0, %58, pred = %flags_2) : (!simt_async_copy, !part_2, !memref_10, !flags_2) -> ()
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      %59 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,1)">
      %60 = cute.local_tile(%mA, %7, %59) : (!mA, !cute.shape<"(128,16)">, !cute.coord<"(?,1)">) -> !memref_5
      %61 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %part_5 = cute.tiled.copy.partition_S(%9, %60, %61) : (!tiled_copy, !memref_5, !cute.coord<"?">) -> !part
      %62 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,1)">
      %63 = cute.local_tile(%29, %7, %62) : (!coord_tensor, !cute.shape<"(128,16)">, !cute.coord<"(?,1)">) -> !coord_tensor_3
      %64 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %ids_6 = cute.tiled.copy.partition_S(%9, %63, %64) : (!tiled_copy, !coord_tensor_3, !cute.coord<"?">) -> !ids
      %flags_7 = cute.memref.alloca() : !flags
      %first_8 = cute.slice(%ids_6, %10) : !ids, !cute.coord<"(0,_,_)">
      %each_9 = cute.slice(%flags_7, %10) : !flags, !cute.coord<"(0,_,_)">
      scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
        %88 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %89 = cute.memref.load(%first_8, %88) : (!first, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
        %90:2 = cute.get_scalars<{only_dynamic}> (%89) : !cute.int_tuple<"(?,?)">
        %91 = cute.make_int_tuple(%90#0, %90#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %92 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %93 = cute.elem_less(%91, %92) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        %94 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%each_9, %94, %93) : (!each, !cute.coord<"?">, i1) -> ()
      }
      %65 = cute.slice(%sA, %13) : !sA, !cute.coord<"(_,_,1)">
      %66 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %67 = cute.tiled.copy.partition_D(%9, %65, %66) : (!tiled_copy, !memref_6, !cute.coord<"?">) -> !memref_7
      cute.copy(%8, %part_5, %67, pred = %flags_7) : (!simt_async_copy, !part, !memref_7, !flags) -> ()
      %68 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,1)">
      %69 = cute.local_tile(%30, %7, %68) : (!memref, !cute.shape<"(128,16)">, !cute.coord<"(?,1)">) -> !memref_8
      %70 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %part_10 = cute.tiled.copy.partition_S(%12, %69, %70) : (!tiled_copy_2, !memref_8, !cute.coord<"?">) -> !part_2
      %71 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,1)">
      %72 = cute.local_tile(%35, %7, %71) : (!coord_tensor, !cute.shape<"(128,16)">, !cute.coord<"(?,1)">) -> !coord_tensor_3
      %73 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %ids_11 = cute.tiled.copy.partition_S(%12, %72, %73) : (!tiled_copy_2, !coord_tensor_3, !cute.coord<"?">) -> !ids_2
      %flags_12 = cute.memref.alloca() : !flags_2
      %first_13 = cute.slice(%ids_11, %10) : !ids_2, !cute.coord<"(0,_,_)">
      %each_14 = cute.slice(%flags_12, %10) : !flags_2, !cute.coord<"(0,_,_)">
      scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
        %88 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %89 = cute.memref.load(%first_13, %88) : (!first_2, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
        %90:2 = cute.get_scalars<{only_dynamic}> (%89) : !cute.int_tuple<"(?,?)">
        %91 = cute.make_int_tuple(%90#0, %90#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %92 = cute.make_int_tuple(%32#0, %32#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
        %93 = cute.elem_less(%91, %92) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
        %94 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%each_14, %94, %93) : (!each_2, !cute.coord<"?">, i1) -> ()
      }
      %74 = cute.slice(%sB, %13) : !sB, !cute.coord<"(_,_,1)">
      %75 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %76 = cute.tiled.copy.partition_D(%12, %74, %75) : (!tiled_copy_2, !memref_9, !cute.coord<"?">) -> !memref_10
      cute.copy(%8, %part_10, %76, pred = %flags_12) : (!simt_async_copy, !part_2, !memref_10, !flags_2) -> ()
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      %77 = cute.make_int_tuple(%1#1) : (i32) -> !cute.int_tuple<"?">
      %78 = cute.ceil_div(%77, %14) : (!cute.int_tuple<"?">, !cute.int_tuple<"16">) -> !cute.int_tuple<"?">
      %79 = cute.get_scalars<{only_dynamic}> (%78) : !cute.int_tuple<"?">
      scf.for %tile = %c0_i32 to %79 step %c1_i32 : i32 {
        cute_nvgpu.arch.cp_async_wait_group() {n = 1 : i32} : () -> ()
        cute_nvgpu.arch.barrier() : () -> ()
        %ahead = arith.addi %tile, %c2_i32 : i32
        %88 = arith.floordivsi %ahead, %c3_i32 : i32
        %89 = arith.muli %88, %c3_i32 : i32
        %90 = arith.subi %ahead, %89 : i32
        %91 = cute.make_coord(%row, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %92 = cute.local_tile(%mA, %7, %91) : (!mA, !cute.shape<"(128,16)">, !cute.coord<"(?,?)">) -> !memref_5
        %93 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
        %part_16 = cute.tiled.copy.partition_S(%9, %92, %93) : (!tiled_copy, !memref_5, !cute.coord<"?">) -> !part
        %94 = cute.make_coord(%row, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %95 = cute.local_tile(%29, %7, %94) : (!coord_tensor, !cute.shape<"(128,16)">, !cute.coord<"(?,?)">) -> !coord_tensor_4
        %96 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
        %ids_17 = cute.tiled.copy.partition_S(%9, %95, %96) : (!tiled_copy, !coord_tensor_4, !cute.coord<"?">) -> !ids
        %flags_18 = cute.memref.alloca() : !flags
        %first_19 = cute.slice(%ids_17, %10) : !ids, !cute.coord<"(0,_,_)">
        %each_20 = cute.slice(%flags_18, %10) : !flags, !cute.coord<"(0,_,_)">
        scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %111 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %112 = cute.memref.load(%first_19, %111) : (!first, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %113:2 = cute.get_scalars<{only_dynamic}> (%112) : !cute.int_tuple<"(?,?)">
          %114 = cute.make_int_tuple(%113#0, %113#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %115 = cute.make_int_tuple(%1#0, %1#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %116 = cute.elem_less(%114, %115) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          %117 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%each_20, %117, %116) : (!each, !cute.coord<"?">, i1) -> ()
        }
        %97 = cute.make_coord(%90) : (i32) -> !cute.coord<"(_,_,?)">
        %98 = cute.slice(%sA, %97) : !sA, !cute.coord<"(_,_,?)">
        %99 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
        %100 = cute.tiled.copy.partition_D(%9, %98, %99) : (!tiled_copy, !memref_6, !cute.coord<"?">) -> !memref_7
        cute.copy(%8, %part_16, %100, pred = %flags_18) : (!simt_async_copy, !part, !memref_7, !flags) -> ()
        %101 = cute.make_coord(%column, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %102 = cute.local_tile(%30, %7, %101) : (!memref, !cute.shape<"(128,16)">, !cute.coord<"(?,?)">) -> !memref_8
        %103 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
        %part_21 = cute.tiled.copy.partition_S(%12, %102, %103) : (!tiled_copy_2, !memref_8, !cute.coord<"?">) -> !part_2
        %104 = cute.make_coord(%column, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %105 = cute.local_tile(%35, %7, %104) : (!coord_tensor, !cute.shape<"(128,16)">, !cute.coord<"(?,?)">) -> !coord_tensor_4
        %106 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
        %ids_22 = cute.tiled.copy.partition_S(%12, %105, %106) : (!tiled_copy_2, !coord_tensor_4, !cute.coord<"?">) -> !ids_2
        %flags_23 = cute.memref.alloca() : !flags_2
        %first_24 = cute.slice(%ids_22, %10) : !ids_2, !cute.coord<"(0,_,_)">
        %each_25 = cute.slice(%flags_23, %10) : !flags_2, !cute.coord<"(0,_,_)">
        scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %111 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %112 = cute.memref.load(%first_24, %111) : (!first_2, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %113:2 = cute.get_scalars<{only_dynamic}> (%112) : !cute.int_tuple<"(?,?)">
          %114 = cute.make_int_tuple(%113#0, %113#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %115 = cute.make_int_tuple(%32#0, %32#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %116 = cute.elem_less(%114, %115) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          %117 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%each_25, %117, %116) : (!each_2, !cute.coord<"?">, i1) -> ()
        }
        %107 = cute.make_coord(%90) : (i32) -> !cute.coord<"(_,_,?)">
        %108 = cute.slice(%sB, %107) : !sB, !cute.coord<"(_,_,?)">
        %109 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
        %110 = cute.tiled.copy.partition_D(%12, %108, %109) : (!tiled_copy_2, !memref_9, !cute.coord<"?">) -> !memref_10
        cute.copy(%8, %part_21, %110, pred = %flags_23) : (!simt_async_copy, !part_2, !memref_10, !flags_2) -> ()
        cute_nvgpu.arch.cp_async_commit_group() : () -> ()
        %stage = arith.remui %tile, %c3_i32 : i32
        scf.for %k = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %111 = cute.make_coord(%stage) : (i32) -> !cute.coord<"(_,_,?)">
          %112 = cute.slice(%sA, %111) : !sA, !cute.coord<"(_,_,?)">
          %113 = cute.make_coord(%stage) : (i32) -> !cute.coord<"(_,_,?)">
          %114 = cute.slice(%sB, %113) : !sB, !cute.coord<"(_,_,?)">
          %115 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %116 = cute.local_tile(%112, %15, %115) : (!memref_6, !cute.shape<"(128,2)">, !cute.coord<"(0,?)">) -> !memref_11
          %117 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
          %blockA = cute.tiled.mma.partition_A(%6, %116, %117) : (!tiled_mma, !memref_11, !cute.coord<"?">) -> !blockA
          %rA = cute.tiled.mma.make_fragment_A(%6, %blockA) : (!tiled_mma, !blockA) -> !rA
          cute.copy(%16, %blockA, %rA) : (!universal_copy, !blockA, !rA) -> ()
          %118 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %blockB = cute.local_tile(%114, %15, %118) : (!memref_9, !cute.shape<"(128,2)">, !cute.coord<"(0,?)">) -> !blockB
          %119 = cute.local_tile(%blockB, %17, %18) : (!blockB, !cute.shape<"(128,1)">, !cute.coord<"(0,0)">) -> !memref_12
          %120 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
          %columnB = cute.tiled.mma.partition_B(%6, %119, %120) : (!tiled_mma, !memref_12, !cute.coord<"?">) -> !columnB
          %rB = cute.tiled.mma.make_fragment_B(%6, %columnB) : (!tiled_mma, !columnB) -> !rB
          cute.copy(%16, %columnB, %rB) : (!universal_copy, !columnB, !rB) -> ()
          %121 = cute.slice(%rA, %11) : !rA, !cute.coord<"(_,_,0)">
          %122 = cute.slice(%rB, %11) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%6, %40, %121, %122, %40) : (!tiled_mma, !memref_4, !memref_13, !memref_14, !memref_4) -> ()
          %123 = cute.local_tile(%blockB, %17, %19) : (!blockB, !cute.shape<"(128,1)">, !cute.coord<"(0,1)">) -> !memref_12
          %124 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
          %columnB_26 = cute.tiled.mma.partition_B(%6, %123, %124) : (!tiled_mma, !memref_12, !cute.coord<"?">) -> !columnB
          %rB_27 = cute.tiled.mma.make_fragment_B(%6, %columnB_26) : (!tiled_mma, !columnB) -> !rB
          cute.copy(%16, %columnB_26, %rB_27) : (!universal_copy, !columnB, !rB) -> ()
          %125 = cute.slice(%rA, %13) : !rA, !cute.coord<"(_,_,1)">
          %126 = cute.slice(%rB_27, %11) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%6, %40, %125, %126, %40) : (!tiled_mma, !memref_4, !memref_13, !memref_14, !memref_4) -> ()
        }
      }
      cute_nvgpu.arch.cp_async_wait_group() {n = 0 : i32} : () -> ()
      %80 = cute.make_shape(%22#0, %22#1) : (i32, i32) -> !cute.shape<"(?,?)">
      %81 = cute.make_identity_layout(%80) : !cute.shape<"(?,?)"> -> !layout
      %82 = cute.make_view(%3, %81) : !coord_tensor
      %83 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %ids_15 = cute.local_tile(%82, %4, %83) : (!coord_tensor, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !ids_3
      %84 = cute.memref.load(%ids_15, %20) : (!ids_3, !cute.coord<"16383">) -> !cute.int_tuple<"(?,?)">
      %85:2 = cute.get_scalars<{only_dynamic}> (%84) : !cute.int_tuple<"(?,?)">
      %86 = cute.make_int_tuple(%85#0, %85#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %87 = cute.make_int_tuple(%22#0, %22#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %whole = cute.elem_less(%86, %87) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
      scf.if %whole {
        cute.copy(%16, %40, %39) : (!universal_copy, !memref_4, !memref_3) -> ()
      } else {
        %88 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
        %xC = cute.tiled.mma.partition_C(%6, %ids_15, %88) : (!tiled_mma, !ids_3, !cute.coord<"?">) -> !xC
        %inside = cute.make_fragment_like(%xC) [i1] : !xC -> !inside
        scf.for %i = %c0_i32 to %c64_i32 step %c1_i32 : i32 {
          %89 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %90 = cute.memref.load(%xC, %89) : (!xC, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %91:2 = cute.get_scalars<{only_dynamic}> (%90) : !cute.int_tuple<"(?,?)">
          %92 = cute.make_int_tuple(%91#0, %91#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %93 = cute.make_int_tuple(%22#0, %22#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %94 = cute.elem_less(%92, %93) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?,?)">) -> i1
          %95 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%inside, %95, %94) : (!inside, !cute.coord<"?">, i1) -> ()
        }
        cute.copy(%16, %40, %39, pred = %inside) : (!universal_copy, !memref_4, !memref_3, !inside) -> ()
      }
      gpu.return
    }
    gpu.func @sgemm_v(%mA: !mA_2, %mB: !mA_2, %mC: !mA_2) kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 2 : i32} {
      %0 = cute.get_layout(%mA) : !mA_2
      %1:3 = cute.get_scalars<{only_dynamic}> (%0) : !layout_2
      %2 = cute.static : !cute.int_tuple<"128">
      %3 = cute.static : !cute.int_tuple<"(0,0)">
      %4 = cute.static : !cute.shape<"(128,128)">
      %5 = cute.atom() : !universal_fma
      %6 = cute.make_tiled_mma(%5) : !tiled_mma
      %7 = cute.static : !cute.shape<"(128,16)">
      %8 = cute.atom() : !simt_async_copy_2
      %9 = cute.make_tiled_copy(%8) : !tiled_copy_3
      %10 = cute.static : !cute.coord<"(0,_,_)">
      %c0_i32 = arith.constant 0 : i32
      %c2_i32 = arith.constant 2 : i32
      %c1_i32 = arith.constant 1 : i32
      %11 = cute.static : !cute.coord<"(_,_,0)">
      %12 = cute.make_tiled_copy(%8) : !tiled_copy_4
      %13 = cute.static : !cute.coord<"(_,_,1)">
      %14 = cute.static : !cute.int_tuple<"16">
      %c3_i32 = arith.constant 3 : i32
      %15 = cute.static : !cute.shape<"(128,2)">
      %16 = cute.atom() : !universal_copy
      %17 = cute.static : !cute.shape<"(128,1)">
      %18 = cute.static : !cute.coord<"(0,0)">
      %19 = cute.static : !cute.coord<"(0,1)">
      %c8_i32 = arith.constant 8 : i32
      %20 = cute.static : !cute.coord<"16383">
      %c64_i32 = arith.constant 64 : i32
      %21 = cute.get_layout(%mC) : !mA_2
      %22:3 = cute.get_scalars<{only_dynamic}> (%21) : !layout_2
      %23 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %24 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %25 = cute.assume(%22#1) : (i32) -> !cute.i32<divby 4>
      %26 = cute.make_int_tuple(%25) : (!cute.i32<divby 4>) -> !cute.int_tuple<"?{div=4}">
      %27 = cute.ceil_div(%26, %2) : (!cute.int_tuple<"?{div=4}">, !cute.int_tuple<"128">) -> !cute.int_tuple<"?">
      %across = cute.get_scalars<{only_dynamic}> (%27) : !cute.int_tuple<"?">
      %row = arith.divui %24, %across : i32
      %column = arith.remui %24, %across : i32
      %28 = cute.assume(%1#1) : (i32) -> !cute.i32<divby 4>
      %29 = cute.make_shape(%1#0, %28) : (i32, !cute.i32<divby 4>) -> !cute.shape<"(?,?{div=4})">
      %30 = cute.make_identity_layout(%29) : !cute.shape<"(?,?{div=4})"> -> !layout_3
      %31 = cute.make_view(%3, %30) : !coord_tensor_5
      %32 = cute.select<[1, 0]> (%mB) : !mA_2 -> !memref_15
      %33 = cute.get_layout(%32) : !memref_15
      %34:3 = cute.get_scalars<{only_dynamic}> (%33) : !layout_4
      %35 = cute.assume(%34#0) : (i32) -> !cute.i32<divby 4>
      %36 = cute.make_shape(%35, %34#1) : (!cute.i32<divby 4>, i32) -> !cute.shape<"(?{div=4},?)">
      %37 = cute.make_identity_layout(%36) : !cute.shape<"(?{div=4},?)"> -> !layout_5
      %38 = cute.make_view(%3, %37) : !coord_tensor_6
      %39 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %40 = cute.local_tile(%mC, %4, %39) : (!mA_2, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !memref_16
      %41 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %42 = cute.tiled.mma.partition_C(%6, %40, %41) : (!tiled_mma, !memref_16, !cute.coord<"?">) -> !memref_17
      %43 = cute.tiled.mma.make_fragment_C(%6, %42) : (!tiled_mma, !memref_17) -> !memref_4
      cute.clear(%43) : (!memref_4) -> ()
      %sA = cute.memref.alloc_smem() : !sA
      %sB = cute.memref.alloc_smem() : !sB
      %44 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,0)">
      %45 = cute.local_tile(%mA, %7, %44) : (!mA_2, !cute.shape<"(128,16)">, !cute.coord<"(?,0)">) -> !memref_18
      %46 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %part = cute.tiled.copy.partition_S(%9, %45, %46) : (!tiled_copy_3, !memref_18, !cute.coord<"?">) -> !part_3
      %47 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,0)">
      %48 = cute.local_tile(%31, %7, %47) : (!coord_tensor_5, !cute.shape<"(128,16)">, !cute.coord<"(?,0)">) -> !coord_tensor_2
      %49 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %ids = cute.tiled.copy.partition_S(%9, %48, %49) : (!tiled_copy_3, !coord_tensor_2, !cute.coord<"?">) -> !ids_4
      %flags = cute.memref.alloca() : !flags_3
      %first = cute.slice(%ids, %10) : !ids_4, !cute.coord<"(0,_,_)">
      %each = cute.slice(%flags, %10) : !flags_3, !cute.coord<"(0,_,_)">
      scf.for %i = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
        %94 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %95 = cute.memref.load(%first, %94) : (!first_3, !cute.coord<"?">) -> !int_tuple
        %96:2 = cute.get_scalars<{only_dynamic}> (%95) : !int_tuple
        %97 = cute.assume(%96#1) : (i32) -> !cute.i32<divby 4>
        %98 = cute.make_int_tuple(%96#0, %97) : (i32, !cute.i32<divby 4>) -> !int_tuple
        %99 = cute.assume(%1#1) : (i32) -> !cute.i32<divby 4>
        %100 = cute.make_int_tuple(%1#0, %99) : (i32, !cute.i32<divby 4>) -> !int_tuple
        %101 = cute.elem_less(%98, %100) : (!int_tuple, !int_tuple) -> i1
        %102 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%each, %102, %101) : (!each_3, !cute.coord<"?">, i1) -> ()
      }
      %50 = cute.slice(%sA, %11) : !sA, !cute.coord<"(_,_,0)">
      %51 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %52 = cute.tiled.copy.partition_D(%9, %50, %51) : (!tiled_copy_3, !memref_6, !cute.coord<"?">) -> !memref_19
      cute.copy(%8, %part, %52, pred = %flags) : (!simt_async_copy_2, !part_3, !memref_19, !flags_3) -> ()
      %53 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,0)">
      %54 = cute.local_tile(%32, %7, %53) : (!memref_15, !cute.shape<"(128,16)">, !cute.coord<"(?,0)">) -> !memref_20
      %55 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %part_0 = cute.tiled.copy.partition_S(%12, %54, %55) : (!tiled_copy_4, !memref_20, !cute.coord<"?">) -> !part_4
      %56 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,0)">
      %57 = cute.local_tile(%38, %7, %56) : (!coord_tensor_6, !cute.shape<"(128,16)">, !cute.coord<"(?,0)">) -> !coord_tensor_2
      %58 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %ids_1 = cute.tiled.copy.partition_S(%12, %57, %58) : (!tiled_copy_4, !coord_tensor_2, !cute.coord<"?">) -> !ids_5
      %flags_2 = cute.memref.alloca() : !flags_4
      %first_3 = cute.slice(%ids_1, %10) : !ids_5, !cute.coord<"(0,_,_)">
      %each_4 = cute.slice(%flags_2, %10) : !flags_4, !cute.coord<"(0,_,_)">
      scf.for %i = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
        %94 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %95 = cute.memref.load(%first_3, %94) : (!first_4, !cute.coord<"?">) -> !int_tuple_2
        %96:2 = cute.get_scalars<{only_dynamic}> (%95) : !int_tuple_2
        %97 = cute.assume(%96#0) : (i32) -> !cute.i32<divby 4>
        %98 = cute.make_int_tuple(%97, %96#1) : (!cute.i32<divby 4>, i32) -> !int_tuple_2
        %99 = cute.assume(%34#0) : (i32) -> !cute.i32<divby 4>
        %100 = cute.make_int_tuple(%99, %34#1) : (!cute.i32<divby 4>, i32) -> !int_tuple_2
        %101 = cute.elem_less(%98, %100) : (!int_tuple_2, !int_tuple_2) -> i1
        %102 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%each_4, %102, %101) : (!each_4, !cute.coord<"?">, i1) -> ()
      }
      %59 = cute.slice(%sB, %11) : !sB, !cute.coord<"(_,_,0)">
      %60 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %61 = cute.tiled.copy.partition_D(%12, %59, %60) : (!tiled_copy_4, !memref_9, !cute.coord<"?">) -> !memref_21
      cute.copy(%8, %part_0, %61, pred = %flags_2) : (!simt_async_copy_2, !part_4, !memref_21, !flags_4) -> ()
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      %62 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,1)">
      %63 = cute.local_tile(%mA, %7, %62) : (!mA_2, !cute.shape<"(128,16)">, !cute.coord<"(?,1)">) -> !memref_18
      %64 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %part_5 = cute.tiled.copy.partition_S(%9, %63, %64) : (!tiled_copy_3, !memref_18, !cute.coord<"?">) -> !part_3
      %65 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,1)">
      %66 = cute.local_tile(%31, %7, %65) : (!coord_tensor_5, !cute.shape<"(128,16)">, !cute.coord<"(?,1)">) -> !coord_tensor_3
      %67 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %ids_6 = cute.tiled.copy.partition_S(%9, %66, %67) : (!tiled_copy_3, !coord_tensor_3, !cute.coord<"?">) -> !ids_4
      %flags_7 = cute.memref.alloca() : !flags_3
      %first_8 = cute.slice(%ids_6, %10) : !ids_4, !cute.coord<"(0,_,_)">
      %each_9 = cute.slice(%flags_7, %10) : !flags_3, !cute.coord<"(0,_,_)">
      scf.for %i = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
        %94 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %95 = cute.memref.load(%first_8, %94) : (!first_3, !cute.coord<"?">) -> !int_tuple
        %96:2 = cute.get_scalars<{only_dynamic}> (%95) : !int_tuple
        %97 = cute.assume(%96#1) : (i32) -> !cute.i32<divby 4>
        %98 = cute.make_int_tuple(%96#0, %97) : (i32, !cute.i32<divby 4>) -> !int_tuple
        %99 = cute.assume(%1#1) : (i32) -> !cute.i32<divby 4>
        %100 = cute.make_int_tuple(%1#0, %99) : (i32, !cute.i32<divby 4>) -> !int_tuple
        %101 = cute.elem_less(%98, %100) : (!int_tuple, !int_tuple) -> i1
        %102 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%each_9, %102, %101) : (!each_3, !cute.coord<"?">, i1) -> ()
      }
      %68 = cute.slice(%sA, %13) : !sA, !cute.coord<"(_,_,1)">
      %69 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %70 = cute.tiled.copy.partition_D(%9, %68, %69) : (!tiled_copy_3, !memref_6, !cute.coord<"?">) -> !memref_19
      cute.copy(%8, %part_5, %70, pred = %flags_7) : (!simt_async_copy_2, !part_3, !memref_19, !flags_3) -> ()
      %71 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,1)">
      %72 = cute.local_tile(%32, %7, %71) : (!memref_15, !cute.shape<"(128,16)">, !cute.coord<"(?,1)">) -> !memref_20
      %73 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %part_10 = cute.tiled.copy.partition_S(%12, %72, %73) : (!tiled_copy_4, !memref_20, !cute.coord<"?">) -> !part_4
      %74 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,1)">
      %75 = cute.local_tile(%38, %7, %74) : (!coord_tensor_6, !cute.shape<"(128,16)">, !cute.coord<"(?,1)">) -> !coord_tensor_3
      %76 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %ids_11 = cute.tiled.copy.partition_S(%12, %75, %76) : (!tiled_copy_4, !coord_tensor_3, !cute.coord<"?">) -> !ids_5
      %flags_12 = cute.memref.alloca() : !flags_4
      %first_13 = cute.slice(%ids_11, %10) : !ids_5, !cute.coord<"(0,_,_)">
      %each_14 = cute.slice(%flags_12, %10) : !flags_4, !cute.coord<"(0,_,_)">
      scf.for %i = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
        %94 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %95 = cute.memref.load(%first_13, %94) : (!first_4, !cute.coord<"?">) -> !int_tuple_2
        %96:2 = cute.get_scalars<{only_dynamic}> (%95) : !int_tuple_2
        %97 = cute.assume(%96#0) : (i32) -> !cute.i32<divby 4>
        %98 = cute.make_int_tuple(%97, %96#1) : (!cute.i32<divby 4>, i32) -> !int_tuple_2
        %99 = cute.assume(%34#0) : (i32) -> !cute.i32<divby 4>
        %100 = cute.make_int_tuple(%99, %34#1) : (!cute.i32<divby 4>, i32) -> !int_tuple_2
        %101 = cute.elem_less(%98, %100) : (!int_tuple_2, !int_tuple_2) -> i1
        %102 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        cute.memref.store(%each_14, %102, %101) : (!each_4, !cute.coord<"?">, i1) -> ()
      }
      %77 = cute.slice(%sB, %13) : !sB, !cute.coord<"(_,_,1)">
      %78 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %79 = cute.tiled.copy.partition_D(%12, %77, %78) : (!tiled_copy_4, !memref_9, !cute.coord<"?">) -> !memref_21
      cute.copy(%8, %part_10, %79, pred = %flags_12) : (!simt_async_copy_2, !part_4, !memref_21, !flags_4) -> ()
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      %80 = cute.assume(%1#1) : (i32) -> !cute.i32<divby 4>
      %81 = cute.make_int_tuple(%80) : (!cute.i32<divby 4>) -> !cute.int_tuple<"?{div=4}">
      %82 = cute.ceil_div(%81, %14) : (!cute.int_tuple<"?{div=4}">, !cute.int_tuple<"16">) -> !cute.int_tuple<"?">
      %83 = cute.get_scalars<{only_dynamic}> (%82) : !cute.int_tuple<"?">
      scf.for %tile = %c0_i32 to %83 step %c1_i32 : i32 {
        cute_nvgpu.arch.cp_async_wait_group() {n = 1 : i32} : () -> ()
        cute_nvgpu.arch.barrier() : () -> ()
        %ahead = arith.addi %tile, %c2_i32 : i32
        %94 = arith.floordivsi %ahead, %c3_i32 : i32
        %95 = arith.muli %94, %c3_i32 : i32
        %96 = arith.subi %ahead, %95 : i32
        %97 = cute.make_coord(%row, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %98 = cute.local_tile(%mA, %7, %97) : (!mA_2, !cute.shape<"(128,16)">, !cute.coord<"(?,?)">) -> !memref_18
        %99 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
        %part_16 = cute.tiled.copy.partition_S(%9, %98, %99) : (!tiled_copy_3, !memref_18, !cute.coord<"?">) -> !part_3
        %100 = cute.make_coord(%row, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %101 = cute.local_tile(%31, %7, %100) : (!coord_tensor_5, !cute.shape<"(128,16)">, !cute.coord<"(?,?)">) -> !coord_tensor_4
        %102 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
        %ids_17 = cute.tiled.copy.partition_S(%9, %101, %102) : (!tiled_copy_3, !coord_tensor_4, !cute.coord<"?">) -> !ids_4
        %flags_18 = cute.memref.alloca() : !flags_3
        %first_19 = cute.slice(%ids_17, %10) : !ids_4, !cute.coord<"(0,_,_)">
        %each_20 = cute.slice(%flags_18, %10) : !flags_3, !cute.coord<"(0,_,_)">
        scf.for %i = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
          %117 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %118 = cute.memref.load(%first_19, %117) : (!first_3, !cute.coord<"?">) -> !int_tuple
          %119:2 = cute.get_scalars<{only_dynamic}> (%118) : !int_tuple
          %120 = cute.assume(%119#1) : (i32) -> !cute.i32<divby 4>
          %121 = cute.make_int_tuple(%119#0, %120) : (i32, !cute.i32<divby 4>) -> !int_tuple
          %122 = cute.assume(%1#1) : (i32) -> !cute.i32<divby 4>
          %123 = cute.make_int_tuple(%1#0, %122) : (i32, !cute.i32<divby 4>) -> !int_tuple
          %124 = cute.elem_less(%121, %123) : (!int_tuple, !int_tuple) -> i1
          %125 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%each_20, %125, %124) : (!each_3, !cute.coord<"?">, i1) -> ()
        }
        %103 = cute.make_coord(%96) : (i32) -> !cute.coord<"(_,_,?)">
        %104 = cute.slice(%sA, %103) : !sA, !cute.coord<"(_,_,?)">
        %105 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
        %106 = cute.tiled.copy.partition_D(%9, %104, %105) : (!tiled_copy_3, !memref_6, !cute.coord<"?">) -> !memref_19
        cute.copy(%8, %part_16, %106, pred = %flags_18) : (!simt_async_copy_2, !part_3, !memref_19, !flags_3) -> ()
        %107 = cute.make_coord(%column, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %108 = cute.local_tile(%32, %7, %107) : (!memref_15, !cute.shape<"(128,16)">, !cute.coord<"(?,?)">) -> !memref_20
        %109 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
        %part_21 = cute.tiled.copy.partition_S(%12, %108, %109) : (!tiled_copy_4, !memref_20, !cute.coord<"?">) -> !part_4
        %110 = cute.make_coord(%column, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %111 = cute.local_tile(%38, %7, %110) : (!coord_tensor_6, !cute.shape<"(128,16)">, !cute.coord<"(?,?)">) -> !coord_tensor_4
        %112 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
        %ids_22 = cute.tiled.copy.partition_S(%12, %111, %112) : (!tiled_copy_4, !coord_tensor_4, !cute.coord<"?">) -> !ids_5
        %flags_23 = cute.memref.alloca() : !flags_4
        %first_24 = cute.slice(%ids_22, %10) : !ids_5, !cute.coord<"(0,_,_)">
        %each_25 = cute.slice(%flags_23, %10) : !flags_4, !cute.coord<"(0,_,_)">
        scf.for %i = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
          %117 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %118 = cute.memref.load(%first_24, %117) : (!first_4, !cute.coord<"?">) -> !int_tuple_2
          %119:2 = cute.get_scalars<{only_dynamic}> (%118) : !int_tuple_2
          %120 = cute.assume(%119#0) : (i32) -> !cute.i32<divby 4>
          %121 = cute.make_int_tuple(%120, %119#1) : (!cute.i32<divby 4>, i32) -> !int_tuple_2
          %122 = cute.assume(%34#0) : (i32) -> !cute.i32<divby 4>
          %123 = cute.make_int_tuple(%122, %34#1) : (!cute.i32<divby 4>, i32) -> !int_tuple_2
          %124 = cute.elem_less(%121, %123) : (!int_tuple_2, !int_tuple_2) -> i1
          %125 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%each_25, %125, %124) : (!each_4, !cute.coord<"?">, i1) -> ()
        }
        %113 = cute.make_coord(%96) : (i32) -> !cute.coord<"(_,_,?)">
        %114 = cute.slice(%sB, %113) : !sB, !cute.coord<"(_,_,?)">
        %115 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
        %116 = cute.tiled.copy.partition_D(%12, %114, %115) : (!tiled_copy_4, !memref_9, !cute.coord<"?">) -> !memref_21
        cute.copy(%8, %part_21, %116, pred = %flags_23) : (!simt_async_copy_2, !part_4, !memref_21, !flags_4) -> ()
        cute_nvgpu.arch.cp_async_commit_group() : () -> ()
        %stage = arith.remui %tile, %c3_i32 : i32
        scf.for %k = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %117 = cute.make_coord(%stage) : (i32) -> !cute.coord<"(_,_,?)">
          %118 = cute.slice(%sA, %117) : !sA, !cute.coord<"(_,_,?)">
          %119 = cute.make_coord(%stage) : (i32) -> !cute.coord<"(_,_,?)">
          %120 = cute.slice(%sB, %119) : !sB, !cute.coord<"(_,_,?)">
          %121 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %122 = cute.local_tile(%118, %15, %121) : (!memref_6, !cute.shape<"(128,2)">, !cute.coord<"(0,?)">) -> !memref_11
          %123 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
          %blockA = cute.tiled.mma.partition_A(%6, %122, %123) : (!tiled_mma, !memref_11, !cute.coord<"?">) -> !blockA
          %rA = cute.tiled.mma.make_fragment_A(%6, %blockA) : (!tiled_mma, !blockA) -> !rA
          cute.copy(%16, %blockA, %rA) : (!universal_copy, !blockA, !rA) -> ()
          %124 = cute.make_coord(%k) : (i32) -> !cute.coord<"(0,?)">
          %blockB = cute.local_tile(%120, %15, %124) : (!memref_9, !cute.shape<"(128,2)">, !cute.coord<"(0,?)">) -> !blockB
          %125 = cute.local_tile(%blockB, %17, %18) : (!blockB, !cute.shape<"(128,1)">, !cute.coord<"(0,0)">) -> !memref_12
          %126 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
          %columnB = cute.tiled.mma.partition_B(%6, %125, %126) : (!tiled_mma, !memref_12, !cute.coord<"?">) -> !columnB
          %rB = cute.tiled.mma.make_fragment_B(%6, %columnB) : (!tiled_mma, !columnB) -> !rB
          cute.copy(%16, %columnB, %rB) : (!universal_copy, !columnB, !rB) -> ()
          %127 = cute.slice(%rA, %11) : !rA, !cute.coord<"(_,_,0)">
          %128 = cute.slice(%rB, %11) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%6, %43, %127, %128, %43) : (!tiled_mma, !memref_4, !memref_13, !memref_14, !memref_4) -> ()
          %129 = cute.local_tile(%blockB, %17, %19) : (!blockB, !cute.shape<"(128,1)">, !cute.coord<"(0,1)">) -> !memref_12
          %130 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
          %columnB_26 = cute.tiled.mma.partition_B(%6, %129, %130) : (!tiled_mma, !memref_12, !cute.coord<"?">) -> !columnB
          %rB_27 = cute.tiled.mma.make_fragment_B(%6, %columnB_26) : (!tiled_mma, !columnB) -> !rB
          cute.copy(%16, %columnB_26, %rB_27) : (!universal_copy, !columnB, !rB) -> ()
          %131 = cute.slice(%rA, %13) : !rA, !cute.coord<"(_,_,1)">
          %132 = cute.slice(%rB_27, %11) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%6, %43, %131, %132, %43) : (!tiled_mma, !memref_4, !memref_13, !memref_14, !memref_4) -> ()
        }
      }
      cute_nvgpu.arch.cp_async_wait_group() {n = 0 : i32} : () -> ()
      %84 = cute.assume(%22#1) : (i32) -> !cute.i32<divby 4>
      %85 = cute.make_shape(%22#0, %84) : (i32, !cute.i32<divby 4>) -> !cute.shape<"(?,?{div=4})">
      %86 = cute.make_identity_layout(%85) : !cute.shape<"(?,?{div=4})"> -> !layout_3
      %87 = cute.make_view(%3, %86) : !coord_tensor_5
      %88 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %ids_15 = cute.local_tile(%87, %4, %88) : (!coord_tensor_5, !cute.shape<"(128,128)">, !cute.coord<"(?,?)">) -> !ids_3
      %89 = cute.memref.load(%ids_15, %20) : (!ids_3, !cute.coord<"16383">) -> !cute.int_tuple<"(?,?)">
      %90:2 = cute.get_scalars<{only_dynamic}> (%89) : !cute.int_tuple<"(?,?)">
      %91 = cute.make_int_tuple(%90#0, %90#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %92 = cute.assume(%22#1) : (i32) -> !cute.i32<divby 4>
      %93 = cute.make_int_tuple(%22#0, %92) : (i32, !cute.i32<divby 4>) -> !int_tuple
      %whole = cute.elem_less(%91, %93) : (!cute.int_tuple<"(?,?)">, !int_tuple) -> i1
      scf.if %whole {
        cute.copy(%16, %43, %42) : (!universal_copy, !memref_4, !memref_17) -> ()
      } else {
        %94 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
        %xC = cute.tiled.mma.partition_C(%6, %ids_15, %94) : (!tiled_mma, !ids_3, !cute.coord<"?">) -> !xC
        %inside = cute.make_fragment_like(%xC) [i1] : !xC -> !inside
        scf.for %i = %c0_i32 to %c64_i32 step %c1_i32 : i32 {
          %95 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          %96 = cute.memref.load(%xC, %95) : (!xC, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %97:2 = cute.get_scalars<{only_dynamic}> (%96) : !cute.int_tuple<"(?,?)">
          %98 = cute.make_int_tuple(%97#0, %97#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %99 = cute.assume(%22#1) : (i32) -> !cute.i32<divby 4>
          %100 = cute.make_int_tuple(%22#0, %99) : (i32, !cute.i32<divby 4>) -> !int_tuple
          %101 = cute.elem_less(%98, %100) : (!cute.int_tuple<"(?,?)">, !int_tuple) -> i1
          %102 = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
          cute.memref.store(%inside, %102, %101) : (!inside, !cute.coord<"?">, i1) -> ()
        }
        cute.copy(%16, %43, %42, pred = %inside) : (!universal_copy, !memref_4, !memref_17, !inside) -> ()
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
