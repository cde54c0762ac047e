!tma_a = !cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128, l2 = 256>
!tma_a_2 = !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">
!tma_c = !cute_nvgpu.atom.tma_store<f16, box = (64, 16), swizzle = 128, l2 = 256>
!tile = !cute.tile<"[((64,128),2):((256,1),128);_]">
!tile_2 = !cute.tile<"[((64,128),2):((256,1),128);_;_]">
!wgmma = !cute_nvgpu.atom.wgmma<64x256x16, (f32,f16,f16,f32), A = smem, major = (k, k)>
!tiled_mma = !cute.tiled_mma<!wgmma, atom_layout_MNK = <"(2,1,1):(1,0,0)">>
!layout = !cute.layout<"((2,2,8),1,1):((1,2,4),0,0)">
!stsm = !cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>
!tiled_copy = !cute.tiled_copy<!stsm, layout_copy_tv = <"((4,8),(2,2,8)):((32,1),(16,8,128))">, tiler_mn = <"[16:1;64:1]">>
!sA = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((8,16),(64,1),(1,4)):((64,512),(1,0),(0,8192))">
!sB = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((8,32),(64,1),(1,4)):((64,512),(1,0),(0,16384))">
!sC = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((8,2),(64,1),(1,16)):((64,512),(1,0),(0,1024))">
!memref = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(((8,16),(64,1)),(1,4)):(((64,512),(1,0)),(0,8192))">
!coord_tensor = !cute.coord_tensor<"(0,0)", "(128,64,?,?):(1@1,1@0,128@1,64@0)">
!coord_tensor_2 = !cute.coord_tensor<"(0,0)", "((128,64),?,?):((1@1,1@0),128@1,64@0)">
!memref_2 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(((8,32),(64,1)),(1,4)):(((64,512),(1,0)),(0,16384))">
!coord_tensor_3 = !cute.coord_tensor<"(0,0)", "(256,64,?,?):(1@1,1@0,256@1,64@0)">
!coord_tensor_4 = !cute.coord_tensor<"(0,0)", "((256,64),?,?):((1@1,1@0),256@1,64@0)">
!memref_3 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(((64,128),2),(1,4)):(((1,64),8192),(0,16384))">
!memref_4 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,128),(1,4)):((1,64),(0,16384))">
!coord_tensor_5 = !cute.coord_tensor<"(0,0)", "(((64,128),2),?,?):(((1@0,1@1),128@1),256@1,64@0)">
!coord_tensor_6 = !cute.coord_tensor<"(0,?{div=128})", "((64,128),?,?):((1@0,1@1),256@1,64@0)">
!memref_5 = !cute.memref<i8, smem, align<8>, "64:1">
!coord_tensor_7 = !cute.coord_tensor<"(?{div=64},?{div=128})", "((128,64)):((1@1,1@0))">
!memref_6 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(((8,16),(64,1))):(((64,512),(1,0)))">
!coord_tensor_8 = !cute.coord_tensor<"(?{div=64},?{div=128})", "((64,128)):((1@0,1@1))">
!memref_7 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,128)):((1,64))">
!rA = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,16),1,4,(1,4)):((64,1),0,16,(0,8192))">
!rB = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((256,16),1,4,(1,4)):((64,1),0,16,(0,16384))">
!acc = !cute.memref<f32, rmem, align<32>, "((2,2,32),1,1):((1,2,4),0,0)">
!ptr = !cute.ptr<f32, rmem, align<32>>
!coord_tensor_9 = !cute.coord_tensor<"(0,0)", "(16,64,?,?):(1@1,1@0,16@1,64@0)">
!memref_8 = !cute.memref<f16, rmem, align<32>, "((2,2,32),1,1):((1,2,4),0,0)">
!ptr_2 = !cute.ptr<f16, rmem, align<32>>
!memref_9 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,16),1,4):((64,1),0,16)">
!memref_10 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((256,16),1,4):((64,1),0,16)">
!values = !cute.memref<f16, rmem, align<32>, "((2,2,8),1,1):((1,2,4),0,0)">
!here = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((8,2),(64,1)):((64,512),(1,0))">
!memref_11 = !cute.memref<f16, rmem, align<32>, "((8,4),1,1):((1,8),0,0)">
!memref_12 = !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,4),1,1):((1,16),0,0)">
!coord = !cute.coord<"(_,_,?,?{div=4})">
!there = !cute.coord_tensor<"(?{div=256},?{div=16})", "(16,64):(1@1,1@0)">
!source = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(((8,2),(64,1))):(((64,512),(1,0)))">
!target = !cute.coord_tensor<"(?{div=256},?{div=16})", "((16,64)):((1@1,1@0))">
!there_2 = !cute.coord_tensor<"(?{div=64},?{div=16})", "(16,64):(1@1,1@0)">
!target_2 = !cute.coord_tensor<"(?{div=64},?{div=16})", "((16,64)):((1@1,1@0))">
!coord_2 = !cute.coord<"(_,_,?,?{div=2})">
!there_3 = !cute.coord_tensor<"(?{div=128},?{div=16})", "(16,64):(1@1,1@0)">
!target_3 = !cute.coord_tensor<"(?{div=128},?{div=16})", "((16,64)):((1@1,1@0))">
!sums = !cute.memref<f32, rmem, align<32>, "((2,2,8),1,1):((1,2,4),0,0)">
!of_atom = !cute.memref<f32, rmem, align<32>, "128:1">
!A = !cute.memref<f16, gmem, "(?,?):(?,1)">
!mma_sync = !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>
!tiled_mma_2 = !cute.tiled_mma<!mma_sync, atom_layout_MNK = <"(2,4,1):(1,2,0)">>
!universal_copy = !cute_nvgpu.atom.universal_copy<f16, 32 b>
!universal_copy_2 = !cute_nvgpu.atom.universal_copy<f32, 64 b>
!sA_2 = !cute.memref<f16, smem, align<16>, "(64,32):(40,1)">
!sums_2 = !cute.memref<f32, smem, align<16>, "(64,64):(72,1)">
!of_a = !cute.memref<f16, smem, align<4>, "((2,2,2),2,2):((1,320,8),1280,16)">
!of_b = !cute.memref<f16, smem, align<4>, "((2,2),2,2):((1,8),1280,16)">
!of_c = !cute.memref<f32, smem, align<8>, "((2,2),2,2):((1,576),2304,32)">
!acc_2 = !cute.memref<f32, rmem, align<32>, "((2,2),2,2):((1,2),4,8)">
!a = !cute.memref<f16, smem, align<4>, "((2,2,2),2):((1,320,8),1280)">
!b = !cute.memref<f16, smem, align<4>, "((2,2),2):((1,8),1280)">
!rA_2 = !cute.memref<f16, rmem, align<32>, "((2,2,2),2):((1,2,4),8)">
!rB_2 = !cute.memref<f16, rmem, align<16>, "((2,2),2):((1,2),4)">
!layout_2 = !cute.layout<"((8,16),(64,1)):((64,512),(1,0))">
!layout_3 = !cute.layout<"((8,2),(64,1)):((64,512),(1,0))">
!ptr_3 = !cute.ptr<f16, gmem, align<16>>
!layout_4 = !cute.layout<"(?,?):(?{div=8},1)">
!A_2 = !cute.memref<f16, gmem, align<16>, "(?,?):(?{div=8},1)">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @gemm(%tma_a: !tma_a, %tma_a_0: !tma_a_2, %tma_b: !tma_a, %tma_b_1: !tma_a_2, %tma_c: !tma_c, %tma_c_2: !tma_a_2, %raster: i32, %raster_3: i32, %k_tiles: i32) kernel attributes {known_block_size = array<i32: 384, 1, 1>, known_cluster_size = array<i32: 2, 1, 1>, nvvm.minctasm = 1 : i32} {
      %c7_i32 = arith.constant 7 : i32
      %c0_i32 = arith.constant 0 : i32
      %c5_i32 = arith.constant 5 : i32
      %c3_i32 = arith.constant 3 : i32
      %c1_i32 = arith.constant 1 : i32
      %0 = cute.static : !cute.shape<"(128,64)">
      %1 = cute.static : !cute.shape<"(256,64)">
      %2 = cute.static : !cute.layout<"2:1">
      %3 = cute.static : !tile
      %4 = cute.static : !tile_2
      %c127_i32 = arith.constant 127 : i32
      %c2_i32 = arith.constant 2 : i32
      %5 = cute.static : !cute.int_tuple<"4">
      %c4_i32 = arith.constant 4 : i32
      %6 = cute.static : !cute.int_tuple<"1">
      %7 = cute.static : !cute.int_tuple<"2">
      %8 = cute.static : !cute.int_tuple<"3">
      %c8_i32 = arith.constant 8 : i32
      %c49152_i32 = arith.constant 49152 : i32
      %false = arith.constant false
      %c3_i16 = arith.constant 3 : i16
      %true = arith.constant true
      %c128_i32 = arith.constant 128 : i32
      %9 = cute.atom() : !wgmma
      %10 = cute.make_tiled_mma(%9) : !tiled_mma
      %11 = cute.static : !cute.shape<"((2,2,32),1,1)">
      %12 = cute.static : !cute.shape<"(16,64)">
      %13 = cute.static : !cute.coord<"(_,_,_,0)">
      %14 = cute.static : !layout
      %15 = cute.atom() : !stsm
      %16 = cute.make_tiled_copy(%15) : !tiled_copy
      %17 = cute.static : !cute.int_tuple<"32">
      %18 = cute.static : !cute.coord<"(_,_,_,1)">
      %19 = cute.static : !cute.int_tuple<"64">
      %20 = cute.static : !cute.int_tuple<"96">
      %21 = cute.static : !cute.layout<"128:1">
      %22 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
      %23 = arith.shrui %22, %c7_i32 : i32
      %warp_group = cute_nvgpu.arch.shfl_sync(%23, %c0_i32) {mode = "idx", width = 32 : i32} : (i32, i32) -> i32
      %24 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
      %25 = arith.shrui %24, %c5_i32 : i32
      %warp = arith.andi %25, %c3_i32 : i32
      %26 = cute_nvgpu.arch.cluster_rank() : () -> i32
      %27 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %28 = nvvm.read.ptx.sreg.nctaid.x range <i32, 1, 2147483647> : i32
      %29 = arith.shrui %27, %c1_i32 : i32
      %30 = arith.shrui %28, %c1_i32 : i32
      %31 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
      %32 = arith.cmpi eq, %31, %c0_i32 : i32
      scf.if %32 {
        cute_nvgpu.arch.prefetch_tensormap(%tma_a) : (!tma_a) -> ()
        cute_nvgpu.arch.prefetch_tensormap(%tma_b) : (!tma_a) -> ()
        cute_nvgpu.arch.prefetch_tensormap(%tma_c) : (!tma_c) -> ()
      }
      %sA = cute.memref.alloc_smem() : !sA
      %sB = cute.memref.alloc_smem() : !sB
      %sC = cute.memref.alloc_smem() : !sC
      %33 = cute.group_modes<0, 2> (%sA) : (!sA) -> !memref
      %34 = cute.flat_divide(%tma_a_0, %0) : (!tma_a_2, !cute.shape<"(128,64)">) -> !coord_tensor
      %35 = cute.group_modes<0, 2> (%34) : (!coord_tensor) -> !coord_tensor_2
      %36 = cute.group_modes<0, 2> (%sB) : (!sB) -> !memref_2
      %37 = cute.flat_divide(%tma_b_1, %1) : (!tma_a_2, !cute.shape<"(256,64)">) -> !coord_tensor_3
      %38 = cute.group_modes<0, 2> (%37) : (!coord_tensor_3) -> !coord_tensor_4
      %39 = cute.make_coord(%26) : (i32) -> !cute.coord<"?">
      %40 = cute.layout_eval(%39, %2) : (!cute.coord<"?">, !cute.layout<"2:1">) -> !cute.int_tuple<"?">
      %41 = cute.get_scalars<{only_dynamic}> (%40) : !cute.int_tuple<"?">
      %42 = cute.composition(%36, %3) : (!memref_2, !tile) -> !memref_3
      %43 = cute.make_coord(%41) : (i32) -> !cute.coord<"((_,?),_)">
      %44 = cute.slice(%42, %43) : !memref_3, !cute.coord<"((_,?),_)">
      %45 = cute.composition(%38, %4) : (!coord_tensor_4, !tile_2) -> !coord_tensor_5
      %46 = cute.make_coord(%41) : (i32) -> !cute.coord<"((_,?),_,_)">
      %47 = cute.slice(%45, %46) : !coord_tensor_5, !cute.coord<"((_,?),_,_)">
      %48 = cute.memref.alloc_smem() : !memref_5
      %49 = cute.get_iter(%48) : !memref_5
      %barrier_storage = cute.recast_iter(%49) : !cute.ptr<i8, smem, align<8>> to !cute.ptr<i64, smem>
      %50 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
      %thread = arith.andi %50, %c127_i32 : i32
      %51 = arith.cmpi ult, %thread, %c2_i32 : i32
      %52 = arith.andi %thread, %c1_i32 : i32
      %53 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
      %54 = arith.shrui %53, %c5_i32 : i32
      %55 = arith.cmpi eq, %54, %c0_i32 : i32
      scf.if %55 {
        %60 = cute_nvgpu.arch.elect_one() : () -> i1
        scf.if %60 {
          cute_nvgpu.arch.mbarrier_init(%barrier_storage, %c1_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %61 = cute.add_offset(%barrier_storage, %5) : (!cute.ptr<i64, smem>, !cute.int_tuple<"4">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%61, %c4_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %62 = cute.add_offset(%barrier_storage, %6) : (!cute.ptr<i64, smem>, !cute.int_tuple<"1">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%62, %c1_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %63 = cute.add_offset(%barrier_storage, %5) : (!cute.ptr<i64, smem>, !cute.int_tuple<"4">) -> !cute.ptr<i64, smem>
          %64 = cute.add_offset(%63, %6) : (!cute.ptr<i64, smem>, !cute.int_tuple<"1">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%64, %c4_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %65 = cute.add_offset(%barrier_storage, %7) : (!cute.ptr<i64, smem>, !cute.int_tuple<"2">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%65, %c1_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %66 = cute.add_offset(%barrier_storage, %5) : (!cute.ptr<i64, smem>, !cute.int_tuple<"4">) -> !cute.ptr<i64, smem>
          %67 = cute.add_offset(%66, %7) : (!cute.ptr<i64, smem>, !cute.int_tuple<"2">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%67, %c4_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %68 = cute.add_offset(%barrier_storage, %8) : (!cute.ptr<i64, smem>, !cute.int_tuple<"3">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%68, %c1_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %69 = cute.add_offset(%barrier_storage, %5) : (!cute.ptr<i64, smem>, !cute.int_tuple<"4">) -> !cute.ptr<i64, smem>
          %70 = cute.add_offset(%69, %8) : (!cute.ptr<i64, smem>, !cute.int_tuple<"3">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%70, %c4_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          cute_nvgpu.arch.fence_mbarrier_init() : () -> ()
        }
      }
      %56 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
      %57 = arith.cmpi eq, %56, %c0_i32 : i32
      scf.if %57 {
        %60 = arith.muli %raster_3, %c8_i32 : i32
        %group = arith.divui %29, %60 : i32
        %inside = arith.remui %29, %60 : i32
        %first = arith.muli %group, %c8_i32 : i32
        %61 = arith.subi %raster, %first : i32
        %rows = arith.minsi %61, %c8_i32 : i32
        %column = arith.divui %inside, %rows : i32
        %row = arith.remui %inside, %rows : i32
        %row_4 = arith.addi %first, %row : i32
        %62 = arith.andi %group, %c1_i32 : i32
        %63 = arith.cmpi ne, %62, %c0_i32 : i32
        %64 = arith.subi %raster_3, %c1_i32 : i32
        %65 = arith.subi %64, %column : i32
        %column_5 = arith.select %63, %65, %column : i32
        %66 = arith.muli %row_4, %c2_i32 : i32
        %row_6 = arith.addi %66, %26 : i32
        %67 = arith.minui %k_tiles, %c4_i32 : i32
        scf.for %i = %c0_i32 to %67 step %c1_i32 : i32 {
          %68 = cute.make_int_tuple(%i) : (i32) -> !cute.int_tuple<"?">
          %69 = cute.add_offset(%barrier_storage, %68) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_arrive_expect_tx(%69, %c49152_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %70 = cute.make_int_tuple(%i) : (i32) -> !cute.int_tuple<"?">
          %71 = cute.add_offset(%barrier_storage, %70) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          %72 = cute.make_coord(%row_6, %i) : (i32, i32) -> !cute.coord<"(_,?,?)">
          %73 = cute.slice(%35, %72) : !coord_tensor_2, !cute.coord<"(_,?,?)">
          %74 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?)">
          %75 = cute.slice(%33, %74) : !memref, !cute.coord<"(_,?)">
          %76 = cute.atom.set_value(%tma_a, %71) {field = tma_bar} : (!tma_a, !cute.ptr<i64, smem>) -> !tma_a
          cute.copy(%76, %73, %75) : (!tma_a, !coord_tensor_7, !memref_6) -> ()
        }
      }
      cute_nvgpu.arch.cluster_arrive() {relaxed = true} : () -> ()
      cute_nvgpu.arch.cluster_wait() : () -> ()
      %58 = arith.cmpi eq, %warp_group, %c0_i32 : i32
      %59:6 = scf.if %58 -> (i32, i32, i32, i32, i32, i32) {
        cute_nvgpu.arch.setmaxnreg() {action = "decrease", count = 40 : i32} : () -> ()
        %60 = arith.cmpi eq, %warp, %c0_i32 : i32
        %61 = scf.if %60 -> (i1) {
          %63 = cute_nvgpu.arch.elect_one() : () -> i1
          scf.yield %63 : i1
        } else {
          scf.yield %false : i1
        }
        %62:3 = scf.if %61 -> (i32, i32, i32) {
          %done = arith.minui %k_tiles, %c4_i32 : i32
          %63 = arith.muli %raster_3, %c8_i32 : i32
          %group = arith.divui %29, %63 : i32
          %inside = arith.remui %29, %63 : i32
          %first = arith.muli %group, %c8_i32 : i32
          %64 = arith.subi %raster, %first : i32
          %rows = arith.minsi %64, %c8_i32 : i32
          %column = arith.divui %inside, %rows : i32
          %row = arith.remui %inside, %rows : i32
          %row_4 = arith.addi %first, %row : i32
          %65 = arith.andi %group, %c1_i32 : i32
          %66 = arith.cmpi ne, %65, %c0_i32 : i32
          %67 = arith.subi %raster_3, %c1_i32 : i32
          %68 = arith.subi %67, %column : i32
          %column_5 = arith.select %66, %68, %column : i32
          %69 = arith.muli %row_4, %c2_i32 : i32
          %row_6 = arith.addi %69, %26 : i32
          scf.for %i = %c0_i32 to %done step %c1_i32 : i32 {
            %75 = cute.make_int_tuple(%i) : (i32) -> !cute.int_tuple<"?">
            %76 = cute.add_offset(%barrier_storage, %75) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            %77 = cute.make_coord(%column_5, %i) : (i32, i32) -> !cute.coord<"(_,?,?)">
            %78 = cute.slice(%47, %77) : !coord_tensor_6, !cute.coord<"(_,?,?)">
            %79 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?)">
            %80 = cute.slice(%44, %79) : !memref_4, !cute.coord<"(_,?)">
            %81 = cute.atom.set_value(%tma_b, %76) {field = tma_bar} : (!tma_a, !cute.ptr<i64, smem>) -> !tma_a
            %82 = cute.atom.set_value(%81, %c3_i16) {field = multicast_mask} : (!tma_a, i16) -> !tma_a
            cute.copy(%82, %78, %80) : (!tma_a, !coord_tensor_8, !memref_7) -> ()
          }
          %70 = arith.andi %done, %c3_i32 : i32
          %71 = arith.shrui %done, %c2_i32 : i32
          %72 = arith.andi %71, %c1_i32 : i32
          %73 = arith.xori %c1_i32, %72 : i32
          %tiles = arith.muli %raster, %raster_3 : i32
          %74:5 = scf.for %tile = %29 to %tiles step %30 iter_args(%arg0 = %false, %arg1 = %done, %arg2 = %done, %arg3 = %70, %arg4 = %73) -> (i1, i32, i32, i32, i32) : i32 {
            %75 = arith.muli %raster_3, %c8_i32 : i32
            %group_7 = arith.divui %tile, %75 : i32
            %inside_8 = arith.remui %tile, %75 : i32
            %first_9 = arith.muli %group_7, %c8_i32 : i32
            %76 = arith.subi %raster, %first_9 : i32
            %rows_10 = arith.minsi %76, %c8_i32 : i32
            %column_11 = arith.divui %inside_8, %rows_10 : i32
            %row_12 = arith.remui %inside_8, %rows_10 : i32
            %row_13 = arith.addi %first_9, %row_12 : i32
            %77 = arith.andi %group_7, %c1_i32 : i32
            %78 = arith.cmpi ne, %77, %c0_i32 : i32
            %79 = arith.subi %raster_3, %c1_i32 : i32
            %80 = arith.subi %79, %column_11 : i32
            %column_14 = arith.select %78, %80, %column_11 : i32
            %81 = arith.muli %row_13, %c2_i32 : i32
            %row_15 = arith.addi %81, %26 : i32
            %82:3 = scf.for %i = %arg1 to %k_tiles step %c1_i32 iter_args(%arg5 = %arg2, %arg6 = %arg3, %arg7 = %arg4) -> (i32, i32, i32) : i32 {
              %83 = arith.subi %k_tiles, %c1_i32 : i32
              %84 = arith.subi %83, %i : i32
              %85 = arith.select %arg0, %84, %i : i32
              %86 = arith.addi %arg6, %c4_i32 : i32
              %87 = cute.make_int_tuple(%86) : (i32) -> !cute.int_tuple<"?">
              %88 = cute.add_offset(%barrier_storage, %87) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
              cute_nvgpu.arch.mbarrier_wait(%88, %arg7) : (!cute.ptr<i64, smem>, i32) -> ()
              %89 = cute.make_int_tuple(%arg6) : (i32) -> !cute.int_tuple<"?">
              %90 = cute.add_offset(%barrier_storage, %89) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
              cute_nvgpu.arch.mbarrier_arrive_expect_tx(%90, %c49152_i32) : (!cute.ptr<i64, smem>, i32) -> ()
              %following = arith.addi %arg6, %c1_i32 : i32
              %wraps = arith.cmpi eq, %following, %c4_i32 : i32
              %91 = arith.select %wraps, %c0_i32, %following : i32
              %92 = arith.select %wraps, %c1_i32, %c0_i32 : i32
              %93 = arith.xori %arg7, %92 : i32
              %94 = arith.addi %arg5, %c1_i32 : i32
              %95 = cute.make_int_tuple(%arg6) : (i32) -> !cute.int_tuple<"?">
              %96 = cute.add_offset(%barrier_storage, %95) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
              %97 = cute.make_coord(%row_15, %85) : (i32, i32) -> !cute.coord<"(_,?,?)">
              %98 = cute.slice(%35, %97) : !coord_tensor_2, !cute.coord<"(_,?,?)">
              %99 = cute.make_coord(%arg6) : (i32) -> !cute.coord<"(_,?)">
              %100 = cute.slice(%33, %99) : !memref, !cute.coord<"(_,?)">
              %101 = cute.atom.set_value(%tma_a, %96) {field = tma_bar} : (!tma_a, !cute.ptr<i64, smem>) -> !tma_a
              cute.copy(%101, %98, %100) : (!tma_a, !coord_tensor_7, !memref_6) -> ()
              %102 = cute.make_coord(%column_14, %85) : (i32, i32) -> !cute.coord<"(_,?,?)">
              %103 = cute.slice(%47, %102) : !coord_tensor_6, !cute.coord<"(_,?,?)">
              %104 = cute.make_coord(%arg6) : (i32) -> !cute.coord<"(_,?)">
              %105 = cute.slice(%44, %104) : !memref_4, !cute.coord<"(_,?)">
              %106 = cute.atom.set_value(%tma_b, %96) {field = tma_bar} : (!tma_a, !cute.ptr<i64, smem>) -> !tma_a
              %107 = cute.atom.set_value(%106, %c3_i16) {field = multicast_mask} : (!tma_a, i16) -> !tma_a
              cute.copy(%107, %103, %105) : (!tma_a, !coord_tensor_8, !memref_7) -> ()
              scf.yield %94, %91, %93 : i32, i32, i32
            }
            %backwards = arith.xori %arg0, %true : i1
            scf.yield %backwards, %c0_i32, %82#0, %82#1, %82#2 : i1, i32, i32, i32, i32
          }
          scf.yield %74#2, %74#3, %74#4 : i32, i32, i32
        } else {
          scf.yield %c0_i32, %c0_i32, %c1_i32 : i32, i32, i32
        }
        scf.yield %62#0, %62#1, %62#2, %c0_i32, %c0_i32, %c0_i32 : i32, i32, i32, i32, i32, i32
      } else {
        cute_nvgpu.arch.setmaxnreg() {action = "increase", count = 232 : i32} : () -> ()
        %group = arith.subi %warp_group, %c1_i32 : i32
        %60 = arith.muli %group, %c128_i32 : i32
        %61 = cute.assume(%60) : (i32) -> !cute.i32<divby 128>
        %62 = cute.make_coord(%61) : (!cute.i32<divby 128>) -> !cute.coord<"?{div=128}">
        %63 = cute.tiled.mma.partition_A(%10, %sA, %62) : (!tiled_mma, !sA, !cute.coord<"?{div=128}">) -> !rA
        %rA = cute.tiled.mma.make_fragment_A(%10, %63) : (!tiled_mma, !rA) -> !rA
        %64 = cute.assume(%60) : (i32) -> !cute.i32<divby 128>
        %65 = cute.make_coord(%64) : (!cute.i32<divby 128>) -> !cute.coord<"?{div=128}">
        %66 = cute.tiled.mma.partition_B(%10, %sB, %65) : (!tiled_mma, !sB, !cute.coord<"?{div=128}">) -> !rB
        %rB = cute.tiled.mma.make_fragment_B(%10, %66) : (!tiled_mma, !rB) -> !rB
        %acc = cute.tiled.mma.make_fragment_C(%10, %11) : (!tiled_mma, !cute.shape<"((2,2,32),1,1)">) -> !acc
        %67 = cute.get_iter(%acc) : !acc
        %68 = cute.get_iter(%acc) : !acc
        %69 = cute.get_iter(%acc) : !acc
        %70 = cute.get_iter(%acc) : !acc
        %71 = cute.get_iter(%acc) : !acc
        %72 = cute.get_iter(%acc) : !acc
        %73 = cute.get_iter(%acc) : !acc
        %74 = cute.get_iter(%acc) : !acc
        %75 = cute.get_iter(%acc) : !acc
        %76 = cute.get_iter(%acc) : !acc
        %77 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
        %78 = arith.shrui %77, %c5_i32 : i32
        %79 = arith.andi %78, %c3_i32 : i32
        %80 = cute_nvgpu.arch.lane_id() : () -> i32
        %81 = cute.flat_divide(%tma_c_2, %12) : (!tma_a_2, !cute.shape<"(16,64)">) -> !coord_tensor_9
        %82 = cute.make_fragment_like(%acc) [f16] : !acc -> !memref_8
        %83 = cute.get_iter(%82) : !memref_8
        %84 = cute.get_iter(%82) : !memref_8
        %85 = cute.get_iter(%82) : !memref_8
        %86 = cute.get_iter(%82) : !memref_8
        %87 = cute.get_iter(%82) : !memref_8
        %88 = cute.get_iter(%82) : !memref_8
        %89 = cute.get_iter(%82) : !memref_8
        %90 = cute.get_iter(%82) : !memref_8
        %91 = cute.get_iter(%82) : !memref_8
        %92 = cute.get_iter(%82) : !memref_8
        %93 = cute.get_iter(%82) : !memref_8
        %94 = cute.get_iter(%82) : !memref_8
        %95 = cute.get_iter(%82) : !memref_8
        %96 = cute.get_iter(%82) : !memref_8
        %97 = cute.get_iter(%82) : !memref_8
        %98 = cute.get_iter(%82) : !memref_8
        %99 = cute.get_iter(%82) : !memref_8
        %100 = cute.get_iter(%82) : !memref_8
        %101 = cute.get_iter(%82) : !memref_8
        %102 = cute.get_iter(%82) : !memref_8
        %tiles = arith.muli %raster, %raster_3 : i32
        %103:5 = scf.for %tile = %29 to %tiles step %30 iter_args(%arg0 = %c0_i32, %arg1 = %c0_i32, %arg2 = %c0_i32, %arg3 = %c0_i32, %arg4 = %c0_i32) -> (i32, i32, i32, i32, i32) : i32 {
          %142 = arith.muli %raster_3, %c8_i32 : i32
          %group_10 = arith.divui %tile, %142 : i32
          %inside = arith.remui %tile, %142 : i32
          %first = arith.muli %group_10, %c8_i32 : i32
          %143 = arith.subi %raster, %first : i32
          %rows = arith.minsi %143, %c8_i32 : i32
          %column = arith.divui %inside, %rows : i32
          %row = arith.remui %inside, %rows : i32
          %row_11 = arith.addi %first, %row : i32
          %144 = arith.andi %group_10, %c1_i32 : i32
          %145 = arith.cmpi ne, %144, %c0_i32 : i32
          %146 = arith.subi %raster_3, %c1_i32 : i32
          %147 = arith.subi %146, %column : i32
          %column_12 = arith.select %145, %147, %column : i32
          %148 = arith.muli %row_11, %c2_i32 : i32
          %row_13 = arith.addi %148, %26 : i32
          %149 = cute.make_int_tuple(%arg3) : (i32) -> !cute.int_tuple<"?">
          %150 = cute.add_offset(%barrier_storage, %149) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_wait(%150, %arg4) : (!cute.ptr<i64, smem>, i32) -> ()
          %following = arith.addi %arg3, %c1_i32 : i32
          %wraps = arith.cmpi eq, %following, %c4_i32 : i32
          %151 = arith.select %wraps, %c0_i32, %following : i32
          %152 = arith.select %wraps, %c1_i32, %c0_i32 : i32
          %153 = arith.xori %arg4, %152 : i32
          %154 = arith.addi %arg2, %c1_i32 : i32
          cute_nvgpu.arch.wgmma_fence() : () -> ()
          %155 = cute.make_coord(%arg3) : (i32) -> !cute.coord<"(_,_,_,?)">
          %156 = cute.slice(%rA, %155) : !rA, !cute.coord<"(_,_,_,?)">
          %157 = cute.make_coord(%arg3) : (i32) -> !cute.coord<"(_,_,_,?)">
          %158 = cute.slice(%rB, %157) : !rB, !cute.coord<"(_,_,_,?)">
          cute.gemm(%10, %acc, %156, %158) : (!tiled_mma, !acc, !memref_9, !memref_10) -> ()
          cute_nvgpu.arch.wgmma_commit_group() : () -> ()
          %159 = arith.cmpi ne, %tile, %29 : i32
          scf.if %159 {
            %values_20 = cute.make_view(%94, %14) : !values
            %183 = arith.cmpi eq, %80, %c0_i32 : i32
            scf.if %183 {
              cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
            }
            cute_nvgpu.arch.syncwarp() : () -> ()
            %184 = arith.muli %group, %c8_i32 : i32
            %185 = arith.addi %184, %79 : i32
            %186 = cute.make_coord(%185) : (i32) -> !cute.coord<"(_,_,?)">
            %here_21 = cute.slice(%sC, %186) : !sC, !cute.coord<"(_,_,?)">
            %187 = cute.tiled.copy.retile(%16, %values_20) : (!tiled_copy, !values) -> !memref_11
            %188 = cute.make_coord(%80) : (i32) -> !cute.coord<"?">
            %189 = cute.tiled.copy.partition_D(%16, %here_21, %188) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_12
            cute.copy(%15, %187, %189) : (!stsm, !memref_11, !memref_12) -> ()
            cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
            cute_nvgpu.arch.syncwarp() : () -> ()
            %190 = arith.cmpi eq, %80, %c0_i32 : i32
            scf.if %190 {
              %first_24 = arith.muli %group, %c4_i32 : i32
              %201 = arith.muli %arg0, %c8_i32 : i32
              %202 = arith.addi %201, %first_24 : i32
              %203 = arith.addi %202, %79 : i32
              %204 = arith.muli %arg1, %c4_i32 : i32
              %205 = cute.assume(%204) : (i32) -> !cute.i32<divby 4>
              %206 = cute.make_coord(%203, %205) : (i32, !cute.i32<divby 4>) -> !coord
              %there = cute.slice(%81, %206) : !coord_tensor_9, !coord
              %source = cute.group_modes<0, 2> (%here_21) : (!here) -> !source
              %target = cute.group_modes<0, 2> (%there) : (!there) -> !target
              cute.copy(%tma_c, %source, %target) : (!tma_c, !source, !target) -> ()
              cute_nvgpu.arch.bulk_commit_group() : () -> ()
            }
            %191 = cute.add_offset(%93, %17) : (!ptr_2, !cute.int_tuple<"32">) -> !ptr_2
            %values_22 = cute.make_view(%191, %14) : !values
            %192 = arith.cmpi eq, %80, %c0_i32 : i32
            scf.if %192 {
              cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
            }
            cute_nvgpu.arch.syncwarp() : () -> ()
            %193 = arith.muli %group, %c8_i32 : i32
            %194 = arith.addi %193, %c4_i32 : i32
            %195 = arith.addi %194, %79 : i32
            %196 = cute.make_coord(%195) : (i32) -> !cute.coord<"(_,_,?)">
            %here_23 = cute.slice(%sC, %196) : !sC, !cute.coord<"(_,_,?)">
            %197 = cute.tiled.copy.retile(%16, %values_22) : (!tiled_copy, !values) -> !memref_11
            %198 = cute.make_coord(%80) : (i32) -> !cute.coord<"?">
            %199 = cute.tiled.copy.partition_D(%16, %here_23, %198) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_12
            cute.copy(%15, %197, %199) : (!stsm, !memref_11, !memref_12) -> ()
            cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
            cute_nvgpu.arch.syncwarp() : () -> ()
            %200 = arith.cmpi eq, %80, %c0_i32 : i32
            scf.if %200 {
              %first_24 = arith.muli %group, %c4_i32 : i32
              %201 = arith.muli %arg0, %c8_i32 : i32
              %202 = arith.addi %201, %first_24 : i32
              %203 = arith.addi %202, %79 : i32
              %204 = arith.muli %arg1, %c4_i32 : i32
              %205 = arith.addi %204, %c1_i32 : i32
              %206 = cute.make_coord(%203, %205) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
              %there = cute.slice(%81, %206) : !coord_tensor_9, !cute.coord<"(_,_,?,?)">
              %source = cute.group_modes<0, 2> (%here_23) : (!here) -> !source
              %target = cute.group_modes<0, 2> (%there) : (!there_2) -> !target_2
              cute.copy(%tma_c, %source, %target) : (!tma_c, !source, !target_2) -> ()
              cute_nvgpu.arch.bulk_commit_group() : () -> ()
            }
          }
          %160 = arith.minui %k_tiles, %c2_i32 : i32
          %161:6 = scf.for %arg5 = %c1_i32 to %160 step %c1_i32 iter_args(%arg6 = %arg3, %arg7 = %arg4, %arg8 = %arg2, %arg9 = %154, %arg10 = %151, %arg11 = %153) -> (i32, i32, i32, i32, i32, i32) : i32 {
            %183 = cute.make_int_tuple(%arg10) : (i32) -> !cute.int_tuple<"?">
            %184 = cute.add_offset(%barrier_storage, %183) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_wait(%184, %arg11) : (!cute.ptr<i64, smem>, i32) -> ()
            %following_20 = arith.addi %arg10, %c1_i32 : i32
            %wraps_21 = arith.cmpi eq, %following_20, %c4_i32 : i32
            %185 = arith.select %wraps_21, %c0_i32, %following_20 : i32
            %186 = arith.select %wraps_21, %c1_i32, %c0_i32 : i32
            %187 = arith.xori %arg11, %186 : i32
            %188 = arith.addi %arg9, %c1_i32 : i32
            cute_nvgpu.arch.wgmma_fence() : () -> ()
            %189 = cute.make_coord(%arg10) : (i32) -> !cute.coord<"(_,_,_,?)">
            %190 = cute.slice(%rA, %189) : !rA, !cute.coord<"(_,_,_,?)">
            %191 = cute.make_coord(%arg10) : (i32) -> !cute.coord<"(_,_,_,?)">
            %192 = cute.slice(%rB, %191) : !rB, !cute.coord<"(_,_,_,?)">
            cute.gemm(%10, %acc, %190, %192, %acc) : (!tiled_mma, !acc, !memref_9, !memref_10, !acc) -> ()
            cute_nvgpu.arch.wgmma_commit_group() : () -> ()
            cute_nvgpu.arch.wgmma_wait_group() {n = 1 : i32} : () -> ()
            %193 = arith.addi %arg6, %c4_i32 : i32
            %194 = cute.make_int_tuple(%193) : (i32) -> !cute.int_tuple<"?">
            %195 = cute.add_offset(%barrier_storage, %194) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_arrive_cluster(%195, %52, %51) : (!cute.ptr<i64, smem>, i32, i1) -> ()
            scf.yield %arg10, %arg11, %arg9, %188, %185, %187 : i32, i32, i32, i32, i32, i32
          }
          %162 = arith.cmpi ne, %tile, %29 : i32
          scf.if %162 {
            %183 = cute.add_offset(%92, %19) : (!ptr_2, !cute.int_tuple<"64">) -> !ptr_2
            %values_20 = cute.make_view(%183, %14) : !values
            %184 = arith.cmpi eq, %80, %c0_i32 : i32
            scf.if %184 {
              cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
            }
            cute_nvgpu.arch.syncwarp() : () -> ()
            %185 = arith.muli %group, %c8_i32 : i32
            %186 = arith.addi %185, %79 : i32
            %187 = cute.make_coord(%186) : (i32) -> !cute.coord<"(_,_,?)">
            %here_21 = cute.slice(%sC, %187) : !sC, !cute.coord<"(_,_,?)">
            %188 = cute.tiled.copy.retile(%16, %values_20) : (!tiled_copy, !values) -> !memref_11
            %189 = cute.make_coord(%80) : (i32) -> !cute.coord<"?">
            %190 = cute.tiled.copy.partition_D(%16, %here_21, %189) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_12
            cute.copy(%15, %188, %190) : (!stsm, !memref_11, !memref_12) -> ()
            cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
            cute_nvgpu.arch.syncwarp() : () -> ()
            %191 = arith.cmpi eq, %80, %c0_i32 : i32
            scf.if %191 {
              %first_24 = arith.muli %group, %c4_i32 : i32
              %202 = arith.muli %arg0, %c8_i32 : i32
              %203 = arith.addi %202, %first_24 : i32
              %204 = arith.addi %203, %79 : i32
              %205 = arith.muli %arg1, %c4_i32 : i32
              %206 = arith.addi %205, %c2_i32 : i32
              %207 = cute.assume(%206) : (i32) -> !cute.i32<divby 2>
              %208 = cute.make_coord(%204, %207) : (i32, !cute.i32<divby 2>) -> !coord_2
              %there = cute.slice(%81, %208) : !coord_tensor_9, !coord_2
              %source = cute.group_modes<0, 2> (%here_21) : (!here) -> !source
              %target = cute.group_modes<0, 2> (%there) : (!there_3) -> !target_3
              cute.copy(%tma_c, %source, %target) : (!tma_c, !source, !target_3) -> ()
              cute_nvgpu.arch.bulk_commit_group() : () -> ()
            }
            %192 = cute.add_offset(%91, %20) : (!ptr_2, !cute.int_tuple<"96">) -> !ptr_2
            %values_22 = cute.make_view(%192, %14) : !values
            %193 = arith.cmpi eq, %80, %c0_i32 : i32
            scf.if %193 {
              cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
            }
            cute_nvgpu.arch.syncwarp() : () -> ()
            %194 = arith.muli %group, %c8_i32 : i32
            %195 = arith.addi %194, %c4_i32 : i32
            %196 = arith.addi %195, %79 : i32
            %197 = cute.make_coord(%196) : (i32) -> !cute.coord<"(_,_,?)">
            %here_23 = cute.slice(%sC, %197) : !sC, !cute.coord<"(_,_,?)">
            %198 = cute.tiled.copy.retile(%16, %values_22) : (!tiled_copy, !values) -> !memref_11
            %199 = cute.make_coord(%80) : (i32) -> !cute.coord<"?">
            %200 = cute.tiled.copy.partition_D(%16, %here_23, %199) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_12
            cute.copy(%15, %198, %200) : (!stsm, !memref_11, !memref_12) -> ()
            cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
            cute_nvgpu.arch.syncwarp() : () -> ()
            %201 = arith.cmpi eq, %80, %c0_i32 : i32
            scf.if %201 {
              %first_24 = arith.muli %group, %c4_i32 : i32
              %202 = arith.muli %arg0, %c8_i32 : i32
              %203 = arith.addi %202, %first_24 : i32
              %204 = arith.addi %203, %79 : i32
              %205 = arith.muli %arg1, %c4_i32 : i32
              %206 = arith.addi %205, %c3_i32 : i32
              %207 = cute.make_coord(%204, %206) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
              %there = cute.slice(%81, %207) : !coord_tensor_9, !cute.coord<"(_,_,?,?)">
              %source = cute.group_modes<0, 2> (%here_23) : (!here) -> !source
              %target = cute.group_modes<0, 2> (%there) : (!there_2) -> !target_2
              cute.copy(%tma_c, %source, %target) : (!tma_c, !source, !target_2) -> ()
              cute_nvgpu.arch.bulk_commit_group() : () -> ()
            }
          }
          %163:6 = scf.for %arg5 = %c2_i32 to %k_tiles step %c1_i32 iter_args(%arg6 = %161#0, %arg7 = %161#1, %arg8 = %161#2, %arg9 = %161#3, %arg10 = %161#4, %arg11 = %161#5) -> (i32, i32, i32, i32, i32, i32) : i32 {
            %183 = cute.make_int_tuple(%arg10) : (i32) -> !cute.int_tuple<"?">
            %184 = cute.add_offset(%barrier_storage, %183) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_wait(%184, %arg11) : (!cute.ptr<i64, smem>, i32) -> ()
            %following_20 = arith.addi %arg10, %c1_i32 : i32
            %wraps_21 = arith.cmpi eq, %following_20, %c4_i32 : i32
            %185 = arith.select %wraps_21, %c0_i32, %following_20 : i32
            %186 = arith.select %wraps_21, %c1_i32, %c0_i32 : i32
            %187 = arith.xori %arg11, %186 : i32
            %188 = arith.addi %arg9, %c1_i32 : i32
            cute_nvgpu.arch.wgmma_fence() : () -> ()
            %189 = cute.make_coord(%arg10) : (i32) -> !cute.coord<"(_,_,_,?)">
            %190 = cute.slice(%rA, %189) : !rA, !cute.coord<"(_,_,_,?)">
            %191 = cute.make_coord(%arg10) : (i32) -> !cute.coord<"(_,_,_,?)">
            %192 = cute.slice(%rB, %191) : !rB, !cute.coord<"(_,_,_,?)">
            cute.gemm(%10, %acc, %190, %192, %acc) : (!tiled_mma, !acc, !memref_9, !memref_10, !acc) -> ()
            cute_nvgpu.arch.wgmma_commit_group() : () -> ()
            cute_nvgpu.arch.wgmma_wait_group() {n = 1 : i32} : () -> ()
            %193 = arith.addi %arg6, %c4_i32 : i32
            %194 = cute.make_int_tuple(%193) : (i32) -> !cute.int_tuple<"?">
            %195 = cute.add_offset(%barrier_storage, %194) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_arrive_cluster(%195, %52, %51) : (!cute.ptr<i64, smem>, i32, i1) -> ()
            scf.yield %arg10, %arg11, %arg9, %188, %185, %187 : i32, i32, i32, i32, i32, i32
          }
          cute_nvgpu.arch.wgmma_wait_group(%acc) {n = 0 : i32} : (!acc) -> ()
          %164 = arith.addi %163#0, %c4_i32 : i32
          %165 = cute.make_int_tuple(%164) : (i32) -> !cute.int_tuple<"?">
          %166 = cute.add_offset(%barrier_storage, %165) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_arrive_cluster(%166, %52, %51) : (!cute.ptr<i64, smem>, i32, i1) -> ()
          %167 = cute.make_view(%71, %14) : !sums
          %168 = cute.get_iter(%167) : !sums
          %of_atom = cute.make_view(%168, %21) : !of_atom
          %sums = cute.make_view(%70, %14) : !sums
          %out = cute.make_view(%90, %14) : !values
          %169 = cute.memref.load_vec %sums : !sums
          %170 = arith.truncf %169 : vector<32xf32> to vector<32xf16>
          cute.memref.store_vec %170, %out : !values
          %171 = cute.add_offset(%69, %17) : (!ptr, !cute.int_tuple<"32">) -> !ptr
          %sums_14 = cute.make_view(%171, %14) : !sums
          %172 = cute.add_offset(%89, %17) : (!ptr_2, !cute.int_tuple<"32">) -> !ptr_2
          %out_15 = cute.make_view(%172, %14) : !values
          %173 = cute.memref.load_vec %sums_14 : !sums
          %174 = arith.truncf %173 : vector<32xf32> to vector<32xf16>
          cute.memref.store_vec %174, %out_15 : !values
          %175 = cute.add_offset(%68, %19) : (!ptr, !cute.int_tuple<"64">) -> !ptr
          %sums_16 = cute.make_view(%175, %14) : !sums
          %176 = cute.add_offset(%88, %19) : (!ptr_2, !cute.int_tuple<"64">) -> !ptr_2
          %out_17 = cute.make_view(%176, %14) : !values
          %177 = cute.memref.load_vec %sums_16 : !sums
          %178 = arith.truncf %177 : vector<32xf32> to vector<32xf16>
          cute.memref.store_vec %178, %out_17 : !values
          %179 = cute.add_offset(%67, %20) : (!ptr, !cute.int_tuple<"96">) -> !ptr
          %sums_18 = cute.make_view(%179, %14) : !sums
          %180 = cute.add_offset(%87, %20) : (!ptr_2, !cute.int_tuple<"96">) -> !ptr_2
          %out_19 = cute.make_view(%180, %14) : !values
          %181 = cute.memref.load_vec %sums_18 : !sums
          %182 = arith.truncf %181 : vector<32xf32> to vector<32xf16>
          cute.memref.store_vec %182, %out_19 : !values
          scf.yield %row_13, %column_12, %163#3, %163#4, %163#5 : i32, i32, i32, i32, i32
        }
        %values = cute.make_view(%86, %14) : !values
        %104 = arith.cmpi eq, %80, %c0_i32 : i32
        scf.if %104 {
          cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
        }
        cute_nvgpu.arch.syncwarp() : () -> ()
        %105 = arith.muli %group, %c8_i32 : i32
        %106 = arith.addi %105, %79 : i32
        %107 = cute.make_coord(%106) : (i32) -> !cute.coord<"(_,_,?)">
        %here = cute.slice(%sC, %107) : !sC, !cute.coord<"(_,_,?)">
        %108 = cute.tiled.copy.retile(%16, %values) : (!tiled_copy, !values) -> !memref_11
        %109 = cute.make_coord(%80) : (i32) -> !cute.coord<"?">
        %110 = cute.tiled.copy.partition_D(%16, %here, %109) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_12
        cute.copy(%15, %108, %110) : (!stsm, !memref_11, !memref_12) -> ()
        cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
        cute_nvgpu.arch.syncwarp() : () -> ()
        %111 = arith.cmpi eq, %80, %c0_i32 : i32
        scf.if %111 {
          %first = arith.muli %group, %c4_i32 : i32
          %142 = arith.muli %103#0, %c8_i32 : i32
          %143 = arith.addi %142, %first : i32
          %144 = arith.addi %143, %79 : i32
          %145 = arith.muli %103#1, %c4_i32 : i32
          %146 = cute.assume(%145) : (i32) -> !cute.i32<divby 4>
          %147 = cute.make_coord(%144, %146) : (i32, !cute.i32<divby 4>) -> !coord
          %there = cute.slice(%81, %147) : !coord_tensor_9, !coord
          %source = cute.group_modes<0, 2> (%here) : (!here) -> !source
          %target = cute.group_modes<0, 2> (%there) : (!there) -> !target
          cute.copy(%tma_c, %source, %target) : (!tma_c, !source, !target) -> ()
          cute_nvgpu.arch.bulk_commit_group() : () -> ()
        }
        %112 = cute.add_offset(%85, %17) : (!ptr_2, !cute.int_tuple<"32">) -> !ptr_2
        %values_4 = cute.make_view(%112, %14) : !values
        %113 = arith.cmpi eq, %80, %c0_i32 : i32
        scf.if %113 {
          cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
        }
        cute_nvgpu.arch.syncwarp() : () -> ()
        %114 = arith.muli %group, %c8_i32 : i32
        %115 = arith.addi %114, %c4_i32 : i32
        %116 = arith.addi %115, %79 : i32
        %117 = cute.make_coord(%116) : (i32) -> !cute.coord<"(_,_,?)">
        %here_5 = cute.slice(%sC, %117) : !sC, !cute.coord<"(_,_,?)">
        %118 = cute.tiled.copy.retile(%16, %values_4) : (!tiled_copy, !values) -> !memref_11
        %119 = cute.make_coord(%80) : (i32) -> !cute.coord<"?">
        %120 = cute.tiled.copy.partition_D(%16, %here_5, %119) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_12
        cute.copy(%15, %118, %120) : (!stsm, !memref_11, !memref_12) -> ()
        cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
        cute_nvgpu.arch.syncwarp() : () -> ()
        %121 = arith.cmpi eq, %80, %c0_i32 : i32
        scf.if %121 {
          %first = arith.muli %group, %c4_i32 : i32
          %142 = arith.muli %103#0, %c8_i32 : i32
          %143 = arith.addi %142, %first : i32
          %144 = arith.addi %143, %79 : i32
          %145 = arith.muli %103#1, %c4_i32 : i32
          %146 = arith.addi %145, %c1_i32 : i32
          %147 = cute.make_coord(%144, %146) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
          %there = cute.slice(%81, %147) : !coord_tensor_9, !cute.coord<"(_,_,?,?)">
          %source = cute.group_modes<0, 2> (%here_5) : (!here) -> !source
          %target = cute.group_modes<0, 2> (%there) : (!there_2) -> !target_2
          cute.copy(%tma_c, %source, %target) : (!tma_c, !source, !target_2) -> ()
          cute_nvgpu.arch.bulk_commit_group() : () -> ()
        }
        %122 = cute.add_offset(%84, %19) : (!ptr_2, !cute.int_tuple<"64">) -> !ptr_2
        %values_6 = cute.make_view(%122, %14) : !values
        %123 = arith.cmpi eq, %80, %c0_i32 : i32
        scf.if %123 {
          cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
        }
        cute_nvgpu.arch.syncwarp() : () -> ()
        %124 = arith.muli %group, %c8_i32 : i32
        %125 = arith.addi %124, %79 : i32
        %126 = cute.make_coord(%125) : (i32) -> !cute.coord<"(_,_,?)">
        %here_7 = cute.slice(%sC, %126) : !sC, !cute.coord<"(_,_,?)">
        %127 = cute.tiled.copy.retile(%16, %values_6) : (!tiled_copy, !values) -> !memref_11
        %128 = cute.make_coord(%80) : (i32) -> !cute.coord<"?">
        %129 = cute.tiled.copy.partition_D(%16, %here_7, %128) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_12
        cute.copy(%15, %127, %129) : (!stsm, !memref_11, !memref_12) -> ()
        cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
        cute_nvgpu.arch.syncwarp() : () -> ()
        %130 = arith.cmpi eq, %80, %c0_i32 : i32
        scf.if %130 {
          %first = arith.muli %group, %c4_i32 : i32
          %142 = arith.muli %103#0, %c8_i32 : i32
          %143 = arith.addi %142, %first : i32
          %144 = arith.addi %143, %79 : i32
          %145 = arith.muli %103#1, %c4_i32 : i32
          %146 = arith.addi %145, %c2_i32 : i32
          %147 = cute.assume(%146) : (i32) -> !cute.i32<divby 2>
          %148 = cute.make_coord(%144, %147) : (i32, !cute.i32<divby 2>) -> !coord_2
          %there = cute.slice(%81, %148) : !coord_tensor_9, !coord_2
          %source = cute.group_modes<0, 2> (%here_7) : (!here) -> !source
          %target = cute.group_modes<0, 2> (%there) : (!there_3) -> !target_3
          cute.copy(%tma_c, %source, %target) : (!tma_c, !source, !target_3) -> ()
          cute_nvgpu.arch.bulk_commit_group() : () -> ()
        }
        %131 = cute.add_offset(%83, %20) : (!ptr_2, !cute.int_tuple<"96">) -> !ptr_2
        %values_8 = cute.make_view(%131, %14) : !values
        %132 = arith.cmpi eq, %80, %c0_i32 : i32
        scf.if %132 {
          cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
        }
        cute_nvgpu.arch.syncwarp() : () -> ()
        %133 = arith.muli %group, %c8_i32 : i32
        %134 = arith.addi %133, %c4_i32 : i32
        %135 = arith.addi %134, %79 : i32
        %136 = cute.make_coord(%135) : (i32) -> !cute.coord<"(_,_,?)">
        %here_9 = cute.slice(%sC, %136) : !sC, !cute.coord<"(_,_,?)">
        %137 = cute.tiled.copy.retile(%16, %values_8) : (!tiled_copy, !values) -> !memref_11
        %138 = cute.make_coord(%80) : (i32) -> !cute.coord<"?">
        %139 = cute.tiled.copy.partition_D(%16, %here_9, %138) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_12
        cute.copy(%15, %137, %139) : (!stsm, !memref_11, !memref_12) -> ()
        cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
        cute_nvgpu.arch.syncwarp() : () -> ()
        %140 = arith.cmpi eq, %80, %c0_i32 : i32
        scf.if %140 {
          %first = arith.muli %group, %c4_i32 : i32
          %142 = arith.muli %103#0, %c8_i32 : i32
          %143 = arith.addi %142, %first : i32
          %144 = arith.addi %143, %79 : i32
          %145 = arith.muli %103#1, %c4_i32 : i32
          %146 = arith.addi %145, %c3_i32 : i32
          %147 = cute.make_coord(%144, %146) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
          %there = cute.slice(%81, %147) : !coord_tensor_9, !cute.coord<"(_,_,?,?)">
          %source = cute.group_modes<0, 2> (%here_9) : (!here) -> !source
          %target = cute.group_modes<0, 2> (%there) : (!there_2) -> !target_2
          cute.copy(%tma_c, %source, %target) : (!tma_c, !source, !target_2) -> ()
          cute_nvgpu.arch.bulk_commit_group() : () -> ()
        }
        %141 = arith.cmpi eq, %80, %c0_i32 : i32
        scf.if %141 {
          cute_nvgpu.arch.bulk_wait_group() {n = 0 : i32, read = true} : () -> ()
        }
        scf.yield %c0_i32, %c0_i32, %c1_i32, %103#2, %103#3, %103#4 : i32, i32, i32, i32, i32, i32
      }
      cute_nvgpu.arch.cluster_arrive() : () -> ()
      cute_nvgpu.arch.cluster_wait() : () -> ()
      gpu.return
    }
    gpu.func @gemm_any(%A: !A, %B: !A, %C: !A) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %0 = cute.get_layout(%B) : !A
      %extent:3 = cute.get_scalars<{only_dynamic}> (%0) : !cute.layout<"(?,?):(?,1)">
      %1 = cute.get_layout(%A) : !A
      %extent_0:3 = cute.get_scalars<{only_dynamic}> (%1) : !cute.layout<"(?,?):(?,1)">
      %c63_i32 = arith.constant 63 : i32
      %c6_i32 = arith.constant 6 : i32
      %c64_i32 = arith.constant 64 : i32
      %2 = cute.atom() : !mma_sync
      %3 = cute.make_tiled_mma(%2) : !tiled_mma_2
      %cst = arith.constant 0.000000e+00 : f32
      %c31_i32 = arith.constant 31 : i32
      %c5_i32 = arith.constant 5 : i32
      %c32_i32 = arith.constant 32 : i32
      %c256_i32 = arith.constant 256 : i32
      %c1_i32 = arith.constant 1 : i32
      %cst_1 = arith.constant 0.000000e+00 : f16
      %c0_i32 = arith.constant 0 : i32
      %c8_i32 = arith.constant 8 : i32
      %4 = cute.atom() : !universal_copy
      %c2_i32 = arith.constant 2 : i32
      %5 = cute.atom() : !universal_copy_2
      %c16_i32 = arith.constant 16 : i32
      %6 = cute.get_layout(%C) : !A
      %7:3 = cute.get_scalars<{only_dynamic}> (%6) : !cute.layout<"(?,?):(?,1)">
      %thread = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %tile = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %8 = arith.addi %7#0, %c63_i32 : i32
      %tiles_m = arith.shrui %8, %c6_i32 : i32
      %9 = arith.addi %7#1, %c63_i32 : i32
      %tiles_n = arith.shrui %9, %c6_i32 : i32
      %10 = arith.remui %tile, %tiles_m : i32
      %m0 = arith.muli %10, %c64_i32 : i32
      %11 = arith.divui %tile, %tiles_m : i32
      %n0 = arith.muli %11, %c64_i32 : i32
      %sA = cute.memref.alloc_smem() : !sA_2
      %sB = cute.memref.alloc_smem() : !sA_2
      %sums = cute.memref.alloc_smem() : !sums_2
      %12 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %of_a = cute.tiled.mma.partition_A(%3, %sA, %12) : (!tiled_mma_2, !sA_2, !cute.coord<"?">) -> !of_a
      %13 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %of_b = cute.tiled.mma.partition_B(%3, %sB, %13) : (!tiled_mma_2, !sA_2, !cute.coord<"?">) -> !of_b
      %14 = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %of_c = cute.tiled.mma.partition_C(%3, %sums, %14) : (!tiled_mma_2, !sums_2, !cute.coord<"?">) -> !of_c
      %acc = cute.tiled.mma.make_fragment_C(%3, %of_c) : (!tiled_mma_2, !of_c) -> !acc_2
      cute.fill(%acc, %cst) : (!acc_2, f32) -> ()
      %15 = arith.addi %extent_0#1, %c31_i32 : i32
      %16 = arith.shrui %15, %c5_i32 : i32
      scf.for %k = %c0_i32 to %16 step %c1_i32 : i32 {
        %17 = arith.muli %k, %c32_i32 : i32
        scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %19 = arith.muli %i, %c256_i32 : i32
          %at = arith.addi %19, %thread : i32
          %row = arith.shrui %at, %c5_i32 : i32
          %k_2 = arith.andi %at, %c31_i32 : i32
          %20 = arith.addi %m0, %row : i32
          %21 = arith.subi %extent_0#0, %c1_i32 : i32
          %22 = arith.minsi %20, %21 : i32
          %23 = arith.addi %17, %k_2 : i32
          %24 = arith.subi %extent_0#1, %c1_i32 : i32
          %25 = arith.minsi %23, %24 : i32
          %26 = cute.make_coord(%22, %25) : (i32, i32) -> !cute.coord<"(?,?)">
          %value = cute.memref.load(%A, %26) : (!A, !cute.coord<"(?,?)">) -> f16
          %27 = arith.addi %m0, %row : i32
          %28 = arith.cmpi slt, %27, %extent_0#0 : i32
          %29 = arith.addi %17, %k_2 : i32
          %30 = arith.cmpi ult, %29, %extent_0#1 : i32
          %31 = arith.andi %28, %30 : i1
          %32 = arith.select %31, %value, %cst_1 : f16
          %33 = cute.make_coord(%row, %k_2) : (i32, i32) -> !cute.coord<"(?,?)">
          cute.memref.store(%sA, %33, %32) : (!sA_2, !cute.coord<"(?,?)">, f16) -> ()
        }
        %18 = arith.muli %k, %c32_i32 : i32
        scf.for %i = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %19 = arith.muli %i, %c256_i32 : i32
          %at = arith.addi %19, %thread : i32
          %row = arith.shrui %at, %c5_i32 : i32
          %k_2 = arith.andi %at, %c31_i32 : i32
          %20 = arith.addi %n0, %row : i32
          %21 = arith.subi %extent#0, %c1_i32 : i32
          %22 = arith.minsi %20, %21 : i32
          %23 = arith.addi %18, %k_2 : i32
          %24 = arith.subi %extent#1, %c1_i32 : i32
          %25 = arith.minsi %23, %24 : i32
          %26 = cute.make_coord(%22, %25) : (i32, i32) -> !cute.coord<"(?,?)">
          %value = cute.memref.load(%B, %26) : (!A, !cute.coord<"(?,?)">) -> f16
          %27 = arith.addi %n0, %row : i32
          %28 = arith.cmpi slt, %27, %extent#0 : i32
          %29 = arith.addi %18, %k_2 : i32
          %30 = arith.cmpi ult, %29, %extent#1 : i32
          %31 = arith.andi %28, %30 : i1
          %32 = arith.select %31, %value, %cst_1 : f16
          %33 = cute.make_coord(%row, %k_2) : (i32, i32) -> !cute.coord<"(?,?)">
          cute.memref.store(%sB, %33, %32) : (!sA_2, !cute.coord<"(?,?)">, f16) -> ()
        }
        cute_nvgpu.arch.barrier() : () -> ()
        scf.for %j = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
          %19 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %a = cute.slice(%of_a, %19) : !of_a, !cute.coord<"(_,_,?)">
          %20 = cute.make_coord(%j) : (i32) -> !cute.coord<"(_,_,?)">
          %b = cute.slice(%of_b, %20) : !of_b, !cute.coord<"(_,_,?)">
          %rA = cute.tiled.mma.make_fragment_A(%3, %a) : (!tiled_mma_2, !a) -> !rA_2
          %rB = cute.tiled.mma.make_fragment_B(%3, %b) : (!tiled_mma_2, !b) -> !rB_2
          cute.copy(%4, %a, %rA) : (!universal_copy, !a, !rA_2) -> ()
          cute.copy(%4, %b, %rB) : (!universal_copy, !b, !rB_2) -> ()
          cute.gemm(%3, %acc, %rA, %rB, %acc) : (!tiled_mma_2, !acc_2, !rA_2, !rB_2, !acc_2) -> ()
        }
        cute_nvgpu.arch.barrier() : () -> ()
      }
      cute.copy(%5, %acc, %of_c) : (!universal_copy_2, !acc_2, !of_c) -> ()
      cute_nvgpu.arch.barrier() : () -> ()
      scf.for %i = %c0_i32 to %c16_i32 step %c1_i32 : i32 {
        %17 = arith.muli %i, %c256_i32 : i32
        %at = arith.addi %17, %thread : i32
        %row = arith.shrui %at, %c6_i32 : i32
        %column = arith.andi %at, %c63_i32 : i32
        %18 = arith.addi %m0, %row : i32
        %19 = arith.cmpi slt, %18, %7#0 : i32
        %20 = arith.addi %n0, %column : i32
        %21 = arith.cmpi slt, %20, %7#1 : i32
        %22 = arith.andi %19, %21 : i1
        scf.if %22 {
          %23 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
          %24 = cute.memref.load(%sums, %23) : (!sums_2, !cute.coord<"(?,?)">) -> f32
          %25 = arith.truncf %24 : f32 to f16
          %26 = arith.addi %m0, %row : i32
          %27 = arith.addi %n0, %column : i32
          %28 = cute.make_coord(%26, %27) : (i32, i32) -> !cute.coord<"(?,?)">
          cute.memref.store(%C, %28, %25) : (!A, !cute.coord<"(?,?)">, f16) -> ()
        }
      }
      gpu.return
    }
  }
  func.func @launch(%A: !A, %B: !A, %C: !A) {
    %0 = cute.get_iter(%C) : !A
    %1 = cute.get_iter(%B) : !A
    %2 = cute.get_iter(%A) : !A
    %3 = cute.static : !cute.int_tuple<"64">
    %4 = cute.static : !layout_2
    %5 = cute.static : !cute.shape<"(128,64)">
    %6 = cute.static : !layout_3
    %7 = cute.static : !cute.shape<"(16,64)">
    %8 = cute.static : !cute.int_tuple<"(256,256)">
    %9 = cute.static : !cute.int_tuple<"66">
    %c2_i32 = arith.constant 2 : i32
    %c1_i32 = arith.constant 1 : i32
    %c384_i32 = arith.constant 384 : i32
    %c256_i32 = arith.constant 256 : i32
    %10 = cute.get_layout(%C) : !A
    %11:3 = cute.get_scalars<{only_dynamic}> (%10) : !cute.layout<"(?,?):(?,1)">
    %12 = cute.get_layout(%B) : !A
    %13:3 = cute.get_scalars<{only_dynamic}> (%12) : !cute.layout<"(?,?):(?,1)">
    %14 = cute.get_layout(%A) : !A
    %15:3 = cute.get_scalars<{only_dynamic}> (%14) : !cute.layout<"(?,?):(?,1)">
    %16 = arith.cmpi eq, %15#1, %13#1 : i32
    cf.assert %16, "A and B must have the same K"
    %17 = arith.cmpi eq, %15#0, %11#0 : i32
    cf.assert %17, "A and C must have the same M"
    %18 = arith.cmpi eq, %13#0, %11#1 : i32
    cf.assert %18, "B and C must have the same N"
    %19 = cute.make_int_tuple(%11#0) : (i32) -> !cute.int_tuple<"?">
    %20 = cute.ceil_div(%19, %3) : (!cute.int_tuple<"?">, !cute.int_tuple<"64">) -> !cute.int_tuple<"?">
    %21 = cute.get_scalars<{only_dynamic}> (%20) : !cute.int_tuple<"?">
    %22 = cute.make_int_tuple(%11#1) : (i32) -> !cute.int_tuple<"?">
    %23 = cute.ceil_div(%22, %3) : (!cute.int_tuple<"?">, !cute.int_tuple<"64">) -> !cute.int_tuple<"?">
    %24 = cute.get_scalars<{only_dynamic}> (%23) : !cute.int_tuple<"?">
    %tiles = arith.muli %21, %24 : i32
    %25 = cute.assume(%2) : (!cute.ptr<f16, gmem>) -> !ptr_3
    %26 = cute.make_shape(%15#0, %15#1) : (i32, i32) -> !cute.shape<"(?,?)">
    %27 = cute.assume(%15#2) : (i32) -> !cute.i32<divby 8>
    %28 = cute.make_stride(%27) : (!cute.i32<divby 8>) -> !cute.stride<"(?{div=8},1)">
    %29 = cute.make_layout(%26, %28) : (!cute.shape<"(?,?)">, !cute.stride<"(?{div=8},1)">) -> !layout_4
    %A_0 = cute.make_view(%25, %29) : !A_2
    %30 = cute.get_layout(%A_0) : !A_2
    %31:3 = cute.get_scalars<{only_dynamic}> (%30) : !layout_4
    %32 = cute.assume(%1) : (!cute.ptr<f16, gmem>) -> !ptr_3
    %33 = cute.make_shape(%13#0, %13#1) : (i32, i32) -> !cute.shape<"(?,?)">
    %34 = cute.assume(%13#2) : (i32) -> !cute.i32<divby 8>
    %35 = cute.make_stride(%34) : (!cute.i32<divby 8>) -> !cute.stride<"(?{div=8},1)">
    %36 = cute.make_layout(%33, %35) : (!cute.shape<"(?,?)">, !cute.stride<"(?{div=8},1)">) -> !layout_4
    %B_1 = cute.make_view(%32, %36) : !A_2
    %37 = cute.get_layout(%B_1) : !A_2
    %38:3 = cute.get_scalars<{only_dynamic}> (%37) : !layout_4
    %39 = cute.assume(%0) : (!cute.ptr<f16, gmem>) -> !ptr_3
    %40 = cute.make_shape(%11#0, %11#1) : (i32, i32) -> !cute.shape<"(?,?)">
    %41 = cute.assume(%11#2) : (i32) -> !cute.i32<divby 8>
    %42 = cute.make_stride(%41) : (!cute.i32<divby 8>) -> !cute.stride<"(?{div=8},1)">
    %43 = cute.make_layout(%40, %42) : (!cute.shape<"(?,?)">, !cute.stride<"(?{div=8},1)">) -> !layout_4
    %C_2 = cute.make_view(%39, %43) : !A_2
    %44 = cute.get_layout(%C_2) : !A_2
    %45:3 = cute.get_scalars<{only_dynamic}> (%44) : !layout_4
    %46:2 = cute_nvgpu.make_tma_load(%A_0, %4, %5) {l2 = 256 : i32, swizzle = 128 : i32} : (!A_2, !layout_2, !cute.shape<"(128,64)">) -> (!tma_a, !tma_a_2)
    %47:2 = cute_nvgpu.make_tma_load(%B_1, %4, %5) {l2 = 256 : i32, swizzle = 128 : i32} : (!A_2, !layout_2, !cute.shape<"(128,64)">) -> (!tma_a, !tma_a_2)
    %48:2 = cute_nvgpu.make_tma_store(%C_2, %6, %7) {l2 = 256 : i32, swizzle = 128 : i32} : (!A_2, !layout_3, !cute.shape<"(16,64)">) -> (!tma_c, !tma_a_2)
    %49 = cute.make_int_tuple(%45#0, %45#1) : (i32, i32) -> !cute.int_tuple<"(?,?)">
    %50 = cute.ceil_div(%49, %8) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(256,256)">) -> !cute.int_tuple<"(?,?)">
    %51:2 = cute.get_scalars<{only_dynamic}> (%50) : !cute.int_tuple<"(?,?)">
    %52 = cute.make_int_tuple(%31#1) : (i32) -> !cute.int_tuple<"?">
    %53 = cute.ceil_div(%52, %3) : (!cute.int_tuple<"?">, !cute.int_tuple<"64">) -> !cute.int_tuple<"?">
    %k_tiles = cute.get_scalars<{only_dynamic}> (%53) : !cute.int_tuple<"?">
    %tiles_3 = arith.muli %51#0, %51#1 : i32
    %54 = cute.make_int_tuple(%tiles_3) : (i32) -> !cute.int_tuple<"?">
    %55 = cute.ceil_div(%54, %9) : (!cute.int_tuple<"?">, !cute.int_tuple<"66">) -> !cute.int_tuple<"?">
    %waves = cute.get_scalars<{only_dynamic}> (%55) : !cute.int_tuple<"?">
    %56 = cute.make_int_tuple(%tiles_3) : (i32) -> !cute.int_tuple<"?">
    %57 = cute.make_int_tuple(%waves) : (i32) -> !cute.int_tuple<"?">
    %58 = cute.ceil_div(%56, %57) : (!cute.int_tuple<"?">, !cute.int_tuple<"?">) -> !cute.int_tuple<"?">
    %59 = cute.get_scalars<{only_dynamic}> (%58) : !cute.int_tuple<"?">
    %grid = arith.muli %59, %c2_i32 : i32
    gpu.launch_func @kernels::@gemm clusters in (%c2_i32, %c1_i32, %c1_i32) blocks in (%grid, %c1_i32, %c1_i32) threads in (%c384_i32, %c1_i32, %c1_i32) : i32 args(%46#0 : !tma_a, %46#1 : !tma_a_2, %47#0 : !tma_a, %47#1 : !tma_a_2, %48#0 : !tma_c, %48#1 : !tma_a_2, %51#0 : i32, %51#1 : i32, %k_tiles : i32)
    gpu.launch_func @kernels::@gemm_any blocks in (%tiles, %c1_i32, %c1_i32) threads in (%c256_i32, %c1_i32, %c1_i32) : i32 args(%A : !A, %B : !A, %C : !A) {cute.fallback}
    return
  }
}
