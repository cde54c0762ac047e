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
    // Compute this block's tiles.
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
      // This block's tiles: every n-th one, n the number of clusters.
      %26 = cute_nvgpu.arch.cluster_rank() : () -> i32
      %27 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %28 = nvvm.read.ptx.sreg.nctaid.x range <i32, 1, 2147483647> : i32
      %tile = arith.shrui %27, %c1_i32 : i32
      %29 = arith.shrui %28, %c1_i32 : i32
      %30 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
      %31 = arith.cmpi eq, %30, %c0_i32 : i32
      scf.if %31 {
        cute_nvgpu.arch.prefetch_tensormap(%tma_a) : (!tma_a) -> ()
        cute_nvgpu.arch.prefetch_tensormap(%tma_b) : (!tma_a) -> ()
        cute_nvgpu.arch.prefetch_tensormap(%tma_c) : (!tma_c) -> ()
      }
      // Shared memory: the stages of A and B, two buffers for 64 rows of C each; then the barriers full and empty.
      %sA = cute.memref.alloc_smem() : !sA
      %sB = cute.memref.alloc_smem() : !sB
      %sC = cute.memref.alloc_smem() : !sC
      %32 = cute.group_modes<0, 2> (%sA) : (!sA) -> !memref
      %33 = cute.flat_divide(%tma_a_0, %0) : (!tma_a_2, !cute.shape<"(128,64)">) -> !coord_tensor
      %34 = cute.group_modes<0, 2> (%33) : (!coord_tensor) -> !coord_tensor_2
      %35 = cute.group_modes<0, 2> (%sB) : (!sB) -> !memref_2
      %36 = cute.flat_divide(%tma_b_1, %1) : (!tma_a_2, !cute.shape<"(256,64)">) -> !coord_tensor_3
      %37 = cute.group_modes<0, 2> (%36) : (!coord_tensor_3) -> !coord_tensor_4
      %38 = cute.make_coord(%26) : (i32) -> !cute.coord<"?">
      %39 = cute.layout_eval(%38, %2) : (!cute.coord<"?">, !cute.layout<"2:1">) -> !cute.int_tuple<"?">
      %40 = cute.get_scalars<{only_dynamic}> (%39) : !cute.int_tuple<"?">
      %41 = cute.composition(%35, %3) : (!memref_2, !tile) -> !memref_3
      %42 = cute.make_coord(%40) : (i32) -> !cute.coord<"((_,?),_)">
      %43 = cute.slice(%41, %42) : !memref_3, !cute.coord<"((_,?),_)">
      %44 = cute.composition(%37, %4) : (!coord_tensor_4, !tile_2) -> !coord_tensor_5
      %45 = cute.make_coord(%40) : (i32) -> !cute.coord<"((_,?),_,_)">
      %46 = cute.slice(%44, %45) : !coord_tensor_5, !cute.coord<"((_,?),_,_)">
      %47 = cute.memref.alloc_smem() : !memref_5
      %48 = cute.get_iter(%47) : !memref_5
      %barrier_storage = cute.recast_iter(%48) : !cute.ptr<i8, smem, align<8>> to !cute.ptr<i64, smem>
      %49 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
      %thread = arith.andi %49, %c127_i32 : i32
      %50 = arith.cmpi ult, %thread, %c2_i32 : i32
      // Thread d of each warp (group) tells block d of the cluster, if that shares an operand with this one.
      %51 = arith.andi %thread, %c1_i32 : i32
      %52 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
      %53 = arith.shrui %52, %c5_i32 : i32
      %54 = arith.cmpi eq, %53, %c0_i32 : i32
      scf.if %54 {
        %59 = cute_nvgpu.arch.elect_one() : () -> i1
        scf.if %59 {
          %60 = cute.add_offset(%barrier_storage, %5) : (!cute.ptr<i64, smem>, !cute.int_tuple<"4">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%60, %c4_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          cute_nvgpu.arch.mbarrier_init(%barrier_storage, %c1_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %61 = cute.add_offset(%barrier_storage, %5) : (!cute.ptr<i64, smem>, !cute.int_tuple<"4">) -> !cute.ptr<i64, smem>
          %62 = cute.add_offset(%61, %6) : (!cute.ptr<i64, smem>, !cute.int_tuple<"1">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%62, %c4_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %63 = cute.add_offset(%barrier_storage, %6) : (!cute.ptr<i64, smem>, !cute.int_tuple<"1">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%63, %c1_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %64 = cute.add_offset(%barrier_storage, %5) : (!cute.ptr<i64, smem>, !cute.int_tuple<"4">) -> !cute.ptr<i64, smem>
          %65 = cute.add_offset(%64, %7) : (!cute.ptr<i64, smem>, !cute.int_tuple<"2">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%65, %c4_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %66 = cute.add_offset(%barrier_storage, %7) : (!cute.ptr<i64, smem>, !cute.int_tuple<"2">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%66, %c1_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %67 = cute.add_offset(%barrier_storage, %5) : (!cute.ptr<i64, smem>, !cute.int_tuple<"4">) -> !cute.ptr<i64, smem>
          %68 = cute.add_offset(%67, %8) : (!cute.ptr<i64, smem>, !cute.int_tuple<"3">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%68, %c4_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %69 = cute.add_offset(%barrier_storage, %8) : (!cute.ptr<i64, smem>, !cute.int_tuple<"3">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%69, %c1_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          cute_nvgpu.arch.fence_mbarrier_init() : () -> ()
        }
      }
      // The first loads: those that only this block's barriers see need not wait for the cluster.
      %55 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
      %56 = arith.cmpi eq, %55, %c0_i32 : i32
      scf.if %56 {
        %59 = arith.muli %raster_3, %c8_i32 : i32
        %group = arith.divui %tile, %59 : i32
        %inside = arith.remui %tile, %59 : i32
        %first = arith.muli %group, %c8_i32 : i32
        %60 = arith.subi %raster, %first : i32
        %rows = arith.minsi %60, %c8_i32 : i32
        %column = arith.divui %inside, %rows : i32
        %row = arith.remui %inside, %rows : i32
        %row_4 = arith.addi %first, %row : i32
        %61 = arith.andi %group, %c1_i32 : i32
        %62 = arith.cmpi ne, %61, %c0_i32 : i32
        %63 = arith.subi %raster_3, %c1_i32 : i32
        %64 = arith.subi %63, %column : i32
        %column_5 = arith.select %62, %64, %column : i32
        %65 = arith.muli %row_4, %c2_i32 : i32
        %row_6 = arith.addi %65, %26 : i32
        %66 = arith.minui %k_tiles, %c4_i32 : i32
        scf.for %i = %c0_i32 to %66 step %c1_i32 : i32 {
          %67 = cute.make_int_tuple(%i) : (i32) -> !cute.int_tuple<"?">
          %68 = cute.add_offset(%barrier_storage, %67) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_arrive_expect_tx(%68, %c49152_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %69 = cute.make_int_tuple(%i) : (i32) -> !cute.int_tuple<"?">
          %70 = cute.add_offset(%barrier_storage, %69) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          %71 = cute.make_coord(%row_6, %i) : (i32, i32) -> !cute.coord<"(_,?,?)">
          %72 = cute.slice(%34, %71) : !coord_tensor_2, !cute.coord<"(_,?,?)">
          %73 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?)">
          %74 = cute.slice(%32, %73) : !memref, !cute.coord<"(_,?)">
          %75 = cute.atom.set_value(%tma_a, %70) {field = tma_bar} : (!tma_a, !cute.ptr<i64, smem>) -> !tma_a
          cute.copy(%75, %72, %74) : (!tma_a, !coord_tensor_7, !memref_6) -> ()
        }
      }
      cute_nvgpu.arch.cluster_arrive() {relaxed = true} : () -> ()
      cute_nvgpu.arch.cluster_wait() : () -> ()
      // Warp group 0 produces, the others consume.
      %57 = arith.cmpi eq, %warp_group, %c0_i32 : i32
      %58:6 = scf.if %57 -> (i32, i32, i32, i32, i32, i32) {
        cute_nvgpu.arch.setmaxnreg() {action = "decrease", count = 40 : i32} : () -> ()
        %59 = arith.cmpi eq, %warp, %c0_i32 : i32
        %60 = scf.if %59 -> (i1) {
          %62 = cute_nvgpu.arch.elect_one() : () -> i1
          scf.yield %62 : i1
        } else {
          scf.yield %false : i1
        }
        %61:3 = scf.if %60 -> (i32, i32, i32) {
          %done = arith.minui %k_tiles, %c4_i32 : i32
          %62 = arith.muli %raster_3, %c8_i32 : i32
          %group = arith.divui %tile, %62 : i32
          %inside = arith.remui %tile, %62 : i32
          %first = arith.muli %group, %c8_i32 : i32
          %63 = arith.subi %raster, %first : i32
          %rows = arith.minsi %63, %c8_i32 : i32
          %column = arith.divui %inside, %rows : i32
          %row = arith.remui %inside, %rows : i32
          %row_4 = arith.addi %first, %row : i32
          %64 = arith.andi %group, %c1_i32 : i32
          %65 = arith.cmpi ne, %64, %c0_i32 : i32
          %66 = arith.subi %raster_3, %c1_i32 : i32
          %67 = arith.subi %66, %column : i32
          %column_5 = arith.select %65, %67, %column : i32
          %68 = arith.muli %row_4, %c2_i32 : i32
          %row_6 = arith.addi %68, %26 : i32
          scf.for %i = %c0_i32 to %done step %c1_i32 : i32 {
            %74 = cute.make_int_tuple(%i) : (i32) -> !cute.int_tuple<"?">
            %75 = cute.add_offset(%barrier_storage, %74) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            %76 = cute.make_coord(%column_5, %i) : (i32, i32) -> !cute.coord<"(_,?,?)">
            %77 = cute.slice(%46, %76) : !coord_tensor_6, !cute.coord<"(_,?,?)">
            %78 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?)">
            %79 = cute.slice(%43, %78) : !memref_4, !cute.coord<"(_,?)">
            %80 = cute.atom.set_value(%tma_b, %75) {field = tma_bar} : (!tma_a, !cute.ptr<i64, smem>) -> !tma_a
            %81 = cute.atom.set_value(%80, %c3_i16) {field = multicast_mask} : (!tma_a, i16) -> !tma_a
            cute.copy(%81, %77, %79) : (!tma_a, !coord_tensor_8, !memref_7) -> ()
          }
          %69 = arith.andi %done, %c3_i32 : i32
          %70 = arith.shrui %done, %c2_i32 : i32
          %71 = arith.andi %70, %c1_i32 : i32
          %72 = arith.xori %c1_i32, %71 : i32
          %tiles = arith.muli %raster, %raster_3 : i32
          %73:5 = scf.for %tile_7 = %tile to %tiles step %29 iter_args(%arg0 = %false, %arg1 = %done, %arg2 = %done, %arg3 = %69, %arg4 = %72) -> (i1, i32, i32, i32, i32) : i32 {
            %74 = arith.muli %raster_3, %c8_i32 : i32
            %group_8 = arith.divui %tile_7, %74 : i32
            %inside_9 = arith.remui %tile_7, %74 : i32
            %first_10 = arith.muli %group_8, %c8_i32 : i32
            %75 = arith.subi %raster, %first_10 : i32
            %rows_11 = arith.minsi %75, %c8_i32 : i32
            %column_12 = arith.divui %inside_9, %rows_11 : i32
            %row_13 = arith.remui %inside_9, %rows_11 : i32
            %row_14 = arith.addi %first_10, %row_13 : i32
            %76 = arith.andi %group_8, %c1_i32 : i32
            %77 = arith.cmpi ne, %76, %c0_i32 : i32
            %78 = arith.subi %raster_3, %c1_i32 : i32
            %79 = arith.subi %78, %column_12 : i32
            %column_15 = arith.select %77, %79, %column_12 : i32
            %80 = arith.muli %row_14, %c2_i32 : i32
            %row_16 = arith.addi %80, %26 : i32
            %81:3 = scf.for %i = %arg1 to %k_tiles step %c1_i32 iter_args(%arg5 = %arg2, %arg6 = %arg3, %arg7 = %arg4) -> (i32, i32, i32) : i32 {
              %82 = arith.subi %k_tiles, %c1_i32 : i32
              %83 = arith.subi %82, %i : i32
              %84 = arith.select %arg0, %83, %i : i32
              %85 = arith.addi %arg6, %c4_i32 : i32
              %86 = cute.make_int_tuple(%85) : (i32) -> !cute.int_tuple<"?">
              %87 = cute.add_offset(%barrier_storage, %86) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
              cute_nvgpu.arch.mbarrier_wait(%87, %arg7) : (!cute.ptr<i64, smem>, i32) -> ()
              %88 = cute.make_int_tuple(%arg6) : (i32) -> !cute.int_tuple<"?">
              %89 = cute.add_offset(%barrier_storage, %88) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
              cute_nvgpu.arch.mbarrier_arrive_expect_tx(%89, %c49152_i32) : (!cute.ptr<i64, smem>, i32) -> ()
              %following = arith.addi %arg6, %c1_i32 : i32
              %wraps = arith.cmpi eq, %following, %c4_i32 : i32
              %90 = arith.select %wraps, %c0_i32, %following : i32
              %91 = arith.select %wraps, %c1_i32, %c0_i32 : i32
              %92 = arith.xori %arg7, %91 : i32
              %93 = arith.addi %arg5, %c1_i32 : i32
              %94 = cute.make_int_tuple(%arg6) : (i32) -> !cute.int_tuple<"?">
              %95 = cute.add_offset(%barrier_storage, %94) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
              %96 = cute.make_coord(%row_16, %84) : (i32, i32) -> !cute.coord<"(_,?,?)">
              %97 = cute.slice(%34, %96) : !coord_tensor_2, !cute.coord<"(_,?,?)">
              %98 = cute.make_coord(%arg6) : (i32) -> !cute.coord<"(_,?)">
              %99 = cute.slice(%32, %98) : !memref, !cute.coord<"(_,?)">
              %100 = cute.atom.set_value(%tma_a, %95) {field = tma_bar} : (!tma_a, !cute.ptr<i64, smem>) -> !tma_a
              cute.copy(%100, %97, %99) : (!tma_a, !coord_tensor_7, !memref_6) -> ()
              %101 = cute.make_coord(%column_15, %84) : (i32, i32) -> !cute.coord<"(_,?,?)">
              %102 = cute.slice(%46, %101) : !coord_tensor_6, !cute.coord<"(_,?,?)">
              %103 = cute.make_coord(%arg6) : (i32) -> !cute.coord<"(_,?)">
              %104 = cute.slice(%43, %103) : !memref_4, !cute.coord<"(_,?)">
              %105 = cute.atom.set_value(%tma_b, %95) {field = tma_bar} : (!tma_a, !cute.ptr<i64, smem>) -> !tma_a
              %106 = cute.atom.set_value(%105, %c3_i16) {field = multicast_mask} : (!tma_a, i16) -> !tma_a
              cute.copy(%106, %102, %104) : (!tma_a, !coord_tensor_8, !memref_7) -> ()
              scf.yield %93, %90, %92 : i32, i32, i32
            }
            %backwards = arith.xori %arg0, %true : i1
            scf.yield %backwards, %c0_i32, %81#0, %81#1, %81#2 : i1, i32, i32, i32, i32
          }
          scf.yield %73#2, %73#3, %73#4 : i32, i32, i32
        } else {
          scf.yield %c0_i32, %c0_i32, %c1_i32 : i32, i32, i32
        }
        scf.yield %61#0, %61#1, %61#2, %c0_i32, %c0_i32, %c0_i32 : i32, i32, i32, i32, i32, i32
      } else {
        cute_nvgpu.arch.setmaxnreg() {action = "increase", count = 232 : i32} : () -> ()
        %group = arith.subi %warp_group, %c1_i32 : i32
        %59 = arith.muli %group, %c128_i32 : i32
        %60 = cute.assume(%59) : (i32) -> !cute.i32<divby 128>
        %61 = cute.make_coord(%60) : (!cute.i32<divby 128>) -> !cute.coord<"?{div=128}">
        %62 = cute.tiled.mma.partition_A(%10, %sA, %61) : (!tiled_mma, !sA, !cute.coord<"?{div=128}">) -> !rA
        %rA = cute.tiled.mma.make_fragment_A(%10, %62) : (!tiled_mma, !rA) -> !rA
        %63 = cute.assume(%59) : (i32) -> !cute.i32<divby 128>
        %64 = cute.make_coord(%63) : (!cute.i32<divby 128>) -> !cute.coord<"?{div=128}">
        %65 = cute.tiled.mma.partition_B(%10, %sB, %64) : (!tiled_mma, !sB, !cute.coord<"?{div=128}">) -> !rB
        %rB = cute.tiled.mma.make_fragment_B(%10, %65) : (!tiled_mma, !rB) -> !rB
        %acc = cute.tiled.mma.make_fragment_C(%10, %11) : (!tiled_mma, !cute.shape<"((2,2,32),1,1)">) -> !acc
        %66 = cute.get_iter(%acc) : !acc
        %67 = cute.get_iter(%acc) : !acc
        %68 = cute.get_iter(%acc) : !acc
        %69 = cute.get_iter(%acc) : !acc
        %70 = cute.get_iter(%acc) : !acc
        %71 = cute.get_iter(%acc) : !acc
        %72 = cute.get_iter(%acc) : !acc
        %73 = cute.get_iter(%acc) : !acc
        %74 = cute.get_iter(%acc) : !acc
        %75 = cute.get_iter(%acc) : !acc
        %76 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
        %77 = arith.shrui %76, %c5_i32 : i32
        %78 = arith.andi %77, %c3_i32 : i32
        %79 = cute_nvgpu.arch.lane_id() : () -> i32
        %80 = cute.flat_divide(%tma_c_2, %12) : (!tma_a_2, !cute.shape<"(16,64)">) -> !coord_tensor_9
        %81 = cute.make_fragment_like(%acc) [f16] : !acc -> !memref_8
        %82 = cute.get_iter(%81) : !memref_8
        %83 = cute.get_iter(%81) : !memref_8
        %84 = cute.get_iter(%81) : !memref_8
        %85 = cute.get_iter(%81) : !memref_8
        %86 = cute.get_iter(%81) : !memref_8
        %87 = cute.get_iter(%81) : !memref_8
        %88 = cute.get_iter(%81) : !memref_8
        %89 = cute.get_iter(%81) : !memref_8
        %90 = cute.get_iter(%81) : !memref_8
        %91 = cute.get_iter(%81) : !memref_8
        %92 = cute.get_iter(%81) : !memref_8
        %93 = cute.get_iter(%81) : !memref_8
        %94 = cute.get_iter(%81) : !memref_8
        %95 = cute.get_iter(%81) : !memref_8
        %96 = cute.get_iter(%81) : !memref_8
        %97 = cute.get_iter(%81) : !memref_8
        %98 = cute.get_iter(%81) : !memref_8
        %99 = cute.get_iter(%81) : !memref_8
        %100 = cute.get_iter(%81) : !memref_8
        %101 = cute.get_iter(%81) : !memref_8
        %tiles = arith.muli %raster, %raster_3 : i32
        %102:5 = scf.for %tile_10 = %tile to %tiles step %29 iter_args(%arg0 = %c0_i32, %arg1 = %c0_i32, %arg2 = %c0_i32, %arg3 = %c0_i32, %arg4 = %c0_i32) -> (i32, i32, i32, i32, i32) : i32 {
          %141 = arith.muli %raster_3, %c8_i32 : i32
          %group_11 = arith.divui %tile_10, %141 : i32
          %inside = arith.remui %tile_10, %141 : i32
          %first = arith.muli %group_11, %c8_i32 : i32
          %142 = arith.subi %raster, %first : i32
          %rows = arith.minsi %142, %c8_i32 : i32
          %column = arith.divui %inside, %rows : i32
          %row = arith.remui %inside, %rows : i32
          %row_12 = arith.addi %first, %row : i32
          %143 = arith.andi %group_11, %c1_i32 : i32
          %144 = arith.cmpi ne, %143, %c0_i32 : i32
          %145 = arith.subi %raster_3, %c1_i32 : i32
          %146 = arith.subi %145, %column : i32
          %column_13 = arith.select %144, %146, %column : i32
          %147 = arith.muli %row_12, %c2_i32 : i32
          %row_14 = arith.addi %147, %26 : i32
          %148 = cute.make_int_tuple(%arg3) : (i32) -> !cute.int_tuple<"?">
          %149 = cute.add_offset(%barrier_storage, %148) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_wait(%149, %arg4) : (!cute.ptr<i64, smem>, i32) -> ()
          %following = arith.addi %arg3, %c1_i32 : i32
          %wraps = arith.cmpi eq, %following, %c4_i32 : i32
          %150 = arith.select %wraps, %c0_i32, %following : i32
          %151 = arith.select %wraps, %c1_i32, %c0_i32 : i32
          %152 = arith.xori %arg4, %151 : i32
          %153 = arith.addi %arg2, %c1_i32 : i32
          cute_nvgpu.arch.wgmma_fence() : () -> ()
          %154 = cute.make_coord(%arg3) : (i32) -> !cute.coord<"(_,_,_,?)">
          %155 = cute.slice(%rA, %154) : !rA, !cute.coord<"(_,_,_,?)">
          %156 = cute.make_coord(%arg3) : (i32) -> !cute.coord<"(_,_,_,?)">
          %157 = cute.slice(%rB, %156) : !rB, !cute.coord<"(_,_,_,?)">
          cute.gemm(%10, %acc, %155, %157) : (!tiled_mma, !acc, !memref_9, !memref_10) -> ()
          cute_nvgpu.arch.wgmma_commit_group() : () -> ()
          // The tile before is stored while this one is multiplied.
          %158 = arith.cmpi ne, %tile_10, %tile : i32
          scf.if %158 {
            %values_21 = cute.make_view(%93, %14) : !values
            // With an odd number of chunks the last one of a tile has used the buffer of the first.
            %182 = arith.cmpi eq, %79, %c0_i32 : i32
            scf.if %182 {
              cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
            }
            cute_nvgpu.arch.syncwarp() : () -> ()
            %183 = arith.muli %group, %c8_i32 : i32
            %184 = arith.addi %183, %78 : i32
            %185 = cute.make_coord(%184) : (i32) -> !cute.coord<"(_,_,?)">
            %here_22 = cute.slice(%sC, %185) : !sC, !cute.coord<"(_,_,?)">
            %186 = cute.tiled.copy.retile(%16, %values_21) : (!tiled_copy, !values) -> !memref_11
            %187 = cute.make_coord(%79) : (i32) -> !cute.coord<"?">
            %188 = cute.tiled.copy.partition_D(%16, %here_22, %187) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_12
            cute.copy(%15, %186, %188) : (!stsm, !memref_11, !memref_12) -> ()
            cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
            cute_nvgpu.arch.syncwarp() : () -> ()
            %189 = arith.cmpi eq, %79, %c0_i32 : i32
            scf.if %189 {
              %first_25 = arith.muli %group, %c4_i32 : i32
              %200 = arith.muli %arg0, %c8_i32 : i32
              %201 = arith.addi %200, %first_25 : i32
              %202 = arith.addi %201, %78 : i32
              %203 = arith.muli %arg1, %c4_i32 : i32
              %204 = cute.assume(%203) : (i32) -> !cute.i32<divby 4>
              %205 = cute.make_coord(%202, %204) : (i32, !cute.i32<divby 4>) -> !coord
              %there = cute.slice(%80, %205) : !coord_tensor_9, !coord
              %source = cute.group_modes<0, 2> (%here_22) : (!here) -> !source
              %target = cute.group_modes<0, 2> (%there) : (!there) -> !target
              cute.copy(%tma_c, %source, %target) : (!tma_c, !source, !target) -> ()
              cute_nvgpu.arch.bulk_commit_group() : () -> ()
            }
            %190 = cute.add_offset(%92, %17) : (!ptr_2, !cute.int_tuple<"32">) -> !ptr_2
            %values_23 = cute.make_view(%190, %14) : !values
            %191 = arith.cmpi eq, %79, %c0_i32 : i32
            scf.if %191 {
              cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
            }
            cute_nvgpu.arch.syncwarp() : () -> ()
            %192 = arith.muli %group, %c8_i32 : i32
            %193 = arith.addi %192, %c4_i32 : i32
            %194 = arith.addi %193, %78 : i32
            %195 = cute.make_coord(%194) : (i32) -> !cute.coord<"(_,_,?)">
            %here_24 = cute.slice(%sC, %195) : !sC, !cute.coord<"(_,_,?)">
            %196 = cute.tiled.copy.retile(%16, %values_23) : (!tiled_copy, !values) -> !memref_11
            %197 = cute.make_coord(%79) : (i32) -> !cute.coord<"?">
            %198 = cute.tiled.copy.partition_D(%16, %here_24, %197) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_12
            cute.copy(%15, %196, %198) : (!stsm, !memref_11, !memref_12) -> ()
            cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
            cute_nvgpu.arch.syncwarp() : () -> ()
            %199 = arith.cmpi eq, %79, %c0_i32 : i32
            scf.if %199 {
              %first_25 = arith.muli %group, %c4_i32 : i32
              %200 = arith.muli %arg0, %c8_i32 : i32
              %201 = arith.addi %200, %first_25 : i32
              %202 = arith.addi %201, %78 : i32
              %203 = arith.muli %arg1, %c4_i32 : i32
              %204 = arith.addi %203, %c1_i32 : i32
              %205 = cute.make_coord(%202, %204) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
              %there = cute.slice(%80, %205) : !coord_tensor_9, !cute.coord<"(_,_,?,?)">
              %source = cute.group_modes<0, 2> (%here_24) : (!here) -> !source
              %target = cute.group_modes<0, 2> (%there) : (!there_2) -> !target_2
              cute.copy(%tma_c, %source, %target) : (!tma_c, !source, !target_2) -> ()
              cute_nvgpu.arch.bulk_commit_group() : () -> ()
            }
          }
          %159 = arith.minui %k_tiles, %c2_i32 : i32
          %160:6 = scf.for %arg5 = %c1_i32 to %159 step %c1_i32 iter_args(%arg6 = %arg3, %arg7 = %arg4, %arg8 = %arg2, %arg9 = %153, %arg10 = %150, %arg11 = %152) -> (i32, i32, i32, i32, i32, i32) : i32 {
            %182 = cute.make_int_tuple(%arg10) : (i32) -> !cute.int_tuple<"?">
            %183 = cute.add_offset(%barrier_storage, %182) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_wait(%183, %arg11) : (!cute.ptr<i64, smem>, i32) -> ()
            %following_21 = arith.addi %arg10, %c1_i32 : i32
            %wraps_22 = arith.cmpi eq, %following_21, %c4_i32 : i32
            %184 = arith.select %wraps_22, %c0_i32, %following_21 : i32
            %185 = arith.select %wraps_22, %c1_i32, %c0_i32 : i32
            %186 = arith.xori %arg11, %185 : i32
            %187 = arith.addi %arg9, %c1_i32 : i32
            cute_nvgpu.arch.wgmma_fence() : () -> ()
            %188 = cute.make_coord(%arg10) : (i32) -> !cute.coord<"(_,_,_,?)">
            %189 = cute.slice(%rA, %188) : !rA, !cute.coord<"(_,_,_,?)">
            %190 = cute.make_coord(%arg10) : (i32) -> !cute.coord<"(_,_,_,?)">
            %191 = cute.slice(%rB, %190) : !rB, !cute.coord<"(_,_,_,?)">
            cute.gemm(%10, %acc, %189, %191, %acc) : (!tiled_mma, !acc, !memref_9, !memref_10, !acc) -> ()
            cute_nvgpu.arch.wgmma_commit_group() : () -> ()
            cute_nvgpu.arch.wgmma_wait_group() {n = 1 : i32} : () -> ()
            %192 = arith.addi %arg6, %c4_i32 : i32
            %193 = cute.make_int_tuple(%192) : (i32) -> !cute.int_tuple<"?">
            %194 = cute.add_offset(%barrier_storage, %193) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_arrive_cluster(%194, %51, %50) : (!cute.ptr<i64, smem>, i32, i1) -> ()
            scf.yield %arg10, %arg11, %arg9, %187, %184, %186 : i32, i32, i32, i32, i32, i32
          }
          %161 = arith.cmpi ne, %tile_10, %tile : i32
          scf.if %161 {
            %182 = cute.add_offset(%91, %19) : (!ptr_2, !cute.int_tuple<"64">) -> !ptr_2
            %values_21 = cute.make_view(%182, %14) : !values
            %183 = arith.cmpi eq, %79, %c0_i32 : i32
            scf.if %183 {
              cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
            }
            cute_nvgpu.arch.syncwarp() : () -> ()
            %184 = arith.muli %group, %c8_i32 : i32
            %185 = arith.addi %184, %78 : i32
            %186 = cute.make_coord(%185) : (i32) -> !cute.coord<"(_,_,?)">
            %here_22 = cute.slice(%sC, %186) : !sC, !cute.coord<"(_,_,?)">
            %187 = cute.tiled.copy.retile(%16, %values_21) : (!tiled_copy, !values) -> !memref_11
            %188 = cute.make_coord(%79) : (i32) -> !cute.coord<"?">
            %189 = cute.tiled.copy.partition_D(%16, %here_22, %188) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_12
            cute.copy(%15, %187, %189) : (!stsm, !memref_11, !memref_12) -> ()
            cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
            cute_nvgpu.arch.syncwarp() : () -> ()
            %190 = arith.cmpi eq, %79, %c0_i32 : i32
            scf.if %190 {
              %first_25 = arith.muli %group, %c4_i32 : i32
              %201 = arith.muli %arg0, %c8_i32 : i32
              %202 = arith.addi %201, %first_25 : i32
              %203 = arith.addi %202, %78 : i32
              %204 = arith.muli %arg1, %c4_i32 : i32
              %205 = arith.addi %204, %c2_i32 : i32
              %206 = cute.assume(%205) : (i32) -> !cute.i32<divby 2>
              %207 = cute.make_coord(%203, %206) : (i32, !cute.i32<divby 2>) -> !coord_2
              %there = cute.slice(%80, %207) : !coord_tensor_9, !coord_2
              %source = cute.group_modes<0, 2> (%here_22) : (!here) -> !source
              %target = cute.group_modes<0, 2> (%there) : (!there_3) -> !target_3
              cute.copy(%tma_c, %source, %target) : (!tma_c, !source, !target_3) -> ()
              cute_nvgpu.arch.bulk_commit_group() : () -> ()
            }
            %191 = cute.add_offset(%90, %20) : (!ptr_2, !cute.int_tuple<"96">) -> !ptr_2
            %values_23 = cute.make_view(%191, %14) : !values
            %192 = arith.cmpi eq, %79, %c0_i32 : i32
            scf.if %192 {
              cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
            }
            cute_nvgpu.arch.syncwarp() : () -> ()
            %193 = arith.muli %group, %c8_i32 : i32
            %194 = arith.addi %193, %c4_i32 : i32
            %195 = arith.addi %194, %78 : i32
            %196 = cute.make_coord(%195) : (i32) -> !cute.coord<"(_,_,?)">
            %here_24 = cute.slice(%sC, %196) : !sC, !cute.coord<"(_,_,?)">
            %197 = cute.tiled.copy.retile(%16, %values_23) : (!tiled_copy, !values) -> !memref_11
            %198 = cute.make_coord(%79) : (i32) -> !cute.coord<"?">
            %199 = cute.tiled.copy.partition_D(%16, %here_24, %198) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_12
            cute.copy(%15, %197, %199) : (!stsm, !memref_11, !memref_12) -> ()
            cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
            cute_nvgpu.arch.syncwarp() : () -> ()
            %200 = arith.cmpi eq, %79, %c0_i32 : i32
            scf.if %200 {
              %first_25 = arith.muli %group, %c4_i32 : i32
              %201 = arith.muli %arg0, %c8_i32 : i32
              %202 = arith.addi %201, %first_25 : i32
              %203 = arith.addi %202, %78 : i32
              %204 = arith.muli %arg1, %c4_i32 : i32
              %205 = arith.addi %204, %c3_i32 : i32
              %206 = cute.make_coord(%203, %205) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
              %there = cute.slice(%80, %206) : !coord_tensor_9, !cute.coord<"(_,_,?,?)">
              %source = cute.group_modes<0, 2> (%here_24) : (!here) -> !source
              %target = cute.group_modes<0, 2> (%there) : (!there_2) -> !target_2
              cute.copy(%tma_c, %source, %target) : (!tma_c, !source, !target_2) -> ()
              cute_nvgpu.arch.bulk_commit_group() : () -> ()
            }
          }
          %162:6 = scf.for %arg5 = %c2_i32 to %k_tiles step %c1_i32 iter_args(%arg6 = %160#0, %arg7 = %160#1, %arg8 = %160#2, %arg9 = %160#3, %arg10 = %160#4, %arg11 = %160#5) -> (i32, i32, i32, i32, i32, i32) : i32 {
            %182 = cute.make_int_tuple(%arg10) : (i32) -> !cute.int_tuple<"?">
            %183 = cute.add_offset(%barrier_storage, %182) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_wait(%183, %arg11) : (!cute.ptr<i64, smem>, i32) -> ()
            %following_21 = arith.addi %arg10, %c1_i32 : i32
            %wraps_22 = arith.cmpi eq, %following_21, %c4_i32 : i32
            %184 = arith.select %wraps_22, %c0_i32, %following_21 : i32
            %185 = arith.select %wraps_22, %c1_i32, %c0_i32 : i32
            %186 = arith.xori %arg11, %185 : i32
            %187 = arith.addi %arg9, %c1_i32 : i32
            cute_nvgpu.arch.wgmma_fence() : () -> ()
            %188 = cute.make_coord(%arg10) : (i32) -> !cute.coord<"(_,_,_,?)">
            %189 = cute.slice(%rA, %188) : !rA, !cute.coord<"(_,_,_,?)">
            %190 = cute.make_coord(%arg10) : (i32) -> !cute.coord<"(_,_,_,?)">
            %191 = cute.slice(%rB, %190) : !rB, !cute.coord<"(_,_,_,?)">
            cute.gemm(%10, %acc, %189, %191, %acc) : (!tiled_mma, !acc, !memref_9, !memref_10, !acc) -> ()
            cute_nvgpu.arch.wgmma_commit_group() : () -> ()
            cute_nvgpu.arch.wgmma_wait_group() {n = 1 : i32} : () -> ()
            %192 = arith.addi %arg6, %c4_i32 : i32
            %193 = cute.make_int_tuple(%192) : (i32) -> !cute.int_tuple<"?">
            %194 = cute.add_offset(%barrier_storage, %193) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_arrive_cluster(%194, %51, %50) : (!cute.ptr<i64, smem>, i32, i1) -> ()
            scf.yield %arg10, %arg11, %arg9, %187, %184, %186 : i32, i32, i32, i32, i32, i32
          }
          cute_nvgpu.arch.wgmma_wait_group(%acc) {n = 0 : i32} : (!acc) -> ()
          %163 = arith.addi %162#0, %c4_i32 : i32
          %164 = cute.make_int_tuple(%163) : (i32) -> !cute.int_tuple<"?">
          %165 = cute.add_offset(%barrier_storage, %164) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_arrive_cluster(%165, %51, %50) : (!cute.ptr<i64, smem>, i32, i1) -> ()
          %166 = cute.make_view(%70, %14) : !sums
          %167 = cute.get_iter(%166) : !sums
          %of_atom = cute.make_view(%167, %21) : !of_atom
          %sums = cute.make_view(%69, %14) : !sums
          %out = cute.make_view(%89, %14) : !values
          %168 = cute.memref.load_vec %sums : !sums
          %169 = arith.truncf %168 : vector<32xf32> to vector<32xf16>
          cute.memref.store_vec %169, %out : !values
          %170 = cute.add_offset(%68, %17) : (!ptr, !cute.int_tuple<"32">) -> !ptr
          %sums_15 = cute.make_view(%170, %14) : !sums
          %171 = cute.add_offset(%88, %17) : (!ptr_2, !cute.int_tuple<"32">) -> !ptr_2
          %out_16 = cute.make_view(%171, %14) : !values
          %172 = cute.memref.load_vec %sums_15 : !sums
          %173 = arith.truncf %172 : vector<32xf32> to vector<32xf16>
          cute.memref.store_vec %173, %out_16 : !values
          %174 = cute.add_offset(%67, %19) : (!ptr, !cute.int_tuple<"64">) -> !ptr
          %sums_17 = cute.make_view(%174, %14) : !sums
          %175 = cute.add_offset(%87, %19) : (!ptr_2, !cute.int_tuple<"64">) -> !ptr_2
          %out_18 = cute.make_view(%175, %14) : !values
          %176 = cute.memref.load_vec %sums_17 : !sums
          %177 = arith.truncf %176 : vector<32xf32> to vector<32xf16>
          cute.memref.store_vec %177, %out_18 : !values
          %178 = cute.add_offset(%66, %20) : (!ptr, !cute.int_tuple<"96">) -> !ptr
          %sums_19 = cute.make_view(%178, %14) : !sums
          %179 = cute.add_offset(%86, %20) : (!ptr_2, !cute.int_tuple<"96">) -> !ptr_2
          %out_20 = cute.make_view(%179, %14) : !values
          %180 = cute.memref.load_vec %sums_19 : !sums
          %181 = arith.truncf %180 : vector<32xf32> to vector<32xf16>
          cute.memref.store_vec %181, %out_20 : !values
          scf.yield %row_14, %column_13, %162#3, %162#4, %162#5 : i32, i32, i32, i32, i32
        }
        %values = cute.make_view(%85, %14) : !values
        %103 = arith.cmpi eq, %79, %c0_i32 : i32
        scf.if %103 {
          cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
        }
        cute_nvgpu.arch.syncwarp() : () -> ()
        %104 = arith.muli %group, %c8_i32 : i32
        %105 = arith.addi %104, %78 : i32
        %106 = cute.make_coord(%105) : (i32) -> !cute.coord<"(_,_,?)">
        %here = cute.slice(%sC, %106) : !sC, !cute.coord<"(_,_,?)">
        %107 = cute.tiled.copy.retile(%16, %values) : (!tiled_copy, !values) -> !memref_11
        %108 = cute.make_coord(%79) : (i32) -> !cute.coord<"?">
        %109 = cute.tiled.copy.partition_D(%16, %here, %108) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_12
        cute.copy(%15, %107, %109) : (!stsm, !memref_11, !memref_12) -> ()
        cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
        cute_nvgpu.arch.syncwarp() : () -> ()
        %110 = arith.cmpi eq, %79, %c0_i32 : i32
        scf.if %110 {
          %first = arith.muli %group, %c4_i32 : i32
          %141 = arith.muli %102#0, %c8_i32 : i32
          %142 = arith.addi %141, %first : i32
          %143 = arith.addi %142, %78 : i32
          %144 = arith.muli %102#1, %c4_i32 : i32
          %145 = cute.assume(%144) : (i32) -> !cute.i32<divby 4>
          %146 = cute.make_coord(%143, %145) : (i32, !cute.i32<divby 4>) -> !coord
          %there = cute.slice(%80, %146) : !coord_tensor_9, !coord
          %source = cute.group_modes<0, 2> (%here) : (!here) -> !source
          %target = cute.group_modes<0, 2> (%there) : (!there) -> !target
          cute.copy(%tma_c, %source, %target) : (!tma_c, !source, !target) -> ()
          cute_nvgpu.arch.bulk_commit_group() : () -> ()
        }
        %111 = cute.add_offset(%84, %17) : (!ptr_2, !cute.int_tuple<"32">) -> !ptr_2
        %values_4 = cute.make_view(%111, %14) : !values
        %112 = arith.cmpi eq, %79, %c0_i32 : i32
        scf.if %112 {
          cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
        }
        cute_nvgpu.arch.syncwarp() : () -> ()
        %113 = arith.muli %group, %c8_i32 : i32
        %114 = arith.addi %113, %c4_i32 : i32
        %115 = arith.addi %114, %78 : i32
        %116 = cute.make_coord(%115) : (i32) -> !cute.coord<"(_,_,?)">
        %here_5 = cute.slice(%sC, %116) : !sC, !cute.coord<"(_,_,?)">
        %117 = cute.tiled.copy.retile(%16, %values_4) : (!tiled_copy, !values) -> !memref_11
        %118 = cute.make_coord(%79) : (i32) -> !cute.coord<"?">
        %119 = cute.tiled.copy.partition_D(%16, %here_5, %118) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_12
        cute.copy(%15, %117, %119) : (!stsm, !memref_11, !memref_12) -> ()
        cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
        cute_nvgpu.arch.syncwarp() : () -> ()
        %120 = arith.cmpi eq, %79, %c0_i32 : i32
        scf.if %120 {
          %first = arith.muli %group, %c4_i32 : i32
          %141 = arith.muli %102#0, %c8_i32 : i32
          %142 = arith.addi %141, %first : i32
          %143 = arith.addi %142, %78 : i32
          %144 = arith.muli %102#1, %c4_i32 : i32
          %145 = arith.addi %144, %c1_i32 : i32
          %146 = cute.make_coord(%143, %145) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
          %there = cute.slice(%80, %146) : !coord_tensor_9, !cute.coord<"(_,_,?,?)">
          %source = cute.group_modes<0, 2> (%here_5) : (!here) -> !source
          %target = cute.group_modes<0, 2> (%there) : (!there_2) -> !target_2
          cute.copy(%tma_c, %source, %target) : (!tma_c, !source, !target_2) -> ()
          cute_nvgpu.arch.bulk_commit_group() : () -> ()
        }
        %121 = cute.add_offset(%83, %19) : (!ptr_2, !cute.int_tuple<"64">) -> !ptr_2
        %values_6 = cute.make_view(%121, %14) : !values
        %122 = arith.cmpi eq, %79, %c0_i32 : i32
        scf.if %122 {
          cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
        }
        cute_nvgpu.arch.syncwarp() : () -> ()
        %123 = arith.muli %group, %c8_i32 : i32
        %124 = arith.addi %123, %78 : i32
        %125 = cute.make_coord(%124) : (i32) -> !cute.coord<"(_,_,?)">
        %here_7 = cute.slice(%sC, %125) : !sC, !cute.coord<"(_,_,?)">
        %126 = cute.tiled.copy.retile(%16, %values_6) : (!tiled_copy, !values) -> !memref_11
        %127 = cute.make_coord(%79) : (i32) -> !cute.coord<"?">
        %128 = cute.tiled.copy.partition_D(%16, %here_7, %127) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_12
        cute.copy(%15, %126, %128) : (!stsm, !memref_11, !memref_12) -> ()
        cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
        cute_nvgpu.arch.syncwarp() : () -> ()
        %129 = arith.cmpi eq, %79, %c0_i32 : i32
        scf.if %129 {
          %first = arith.muli %group, %c4_i32 : i32
          %141 = arith.muli %102#0, %c8_i32 : i32
          %142 = arith.addi %141, %first : i32
          %143 = arith.addi %142, %78 : i32
          %144 = arith.muli %102#1, %c4_i32 : i32
          %145 = arith.addi %144, %c2_i32 : i32
          %146 = cute.assume(%145) : (i32) -> !cute.i32<divby 2>
          %147 = cute.make_coord(%143, %146) : (i32, !cute.i32<divby 2>) -> !coord_2
          %there = cute.slice(%80, %147) : !coord_tensor_9, !coord_2
          %source = cute.group_modes<0, 2> (%here_7) : (!here) -> !source
          %target = cute.group_modes<0, 2> (%there) : (!there_3) -> !target_3
          cute.copy(%tma_c, %source, %target) : (!tma_c, !source, !target_3) -> ()
          cute_nvgpu.arch.bulk_commit_group() : () -> ()
        }
        %130 = cute.add_offset(%82, %20) : (!ptr_2, !cute.int_tuple<"96">) -> !ptr_2
        %values_8 = cute.make_view(%130, %14) : !values
        %131 = arith.cmpi eq, %79, %c0_i32 : i32
        scf.if %131 {
          cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
        }
        cute_nvgpu.arch.syncwarp() : () -> ()
        %132 = arith.muli %group, %c8_i32 : i32
        %133 = arith.addi %132, %c4_i32 : i32
        %134 = arith.addi %133, %78 : i32
        %135 = cute.make_coord(%134) : (i32) -> !cute.coord<"(_,_,?)">
        %here_9 = cute.slice(%sC, %135) : !sC, !cute.coord<"(_,_,?)">
        %136 = cute.tiled.copy.retile(%16, %values_8) : (!tiled_copy, !values) -> !memref_11
        %137 = cute.make_coord(%79) : (i32) -> !cute.coord<"?">
        %138 = cute.tiled.copy.partition_D(%16, %here_9, %137) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_12
        cute.copy(%15, %136, %138) : (!stsm, !memref_11, !memref_12) -> ()
        cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
        cute_nvgpu.arch.syncwarp() : () -> ()
        %139 = arith.cmpi eq, %79, %c0_i32 : i32
        scf.if %139 {
          %first = arith.muli %group, %c4_i32 : i32
          %141 = arith.muli %102#0, %c8_i32 : i32
          %142 = arith.addi %141, %first : i32
          %143 = arith.addi %142, %78 : i32
          %144 = arith.muli %102#1, %c4_i32 : i32
          %145 = arith.addi %144, %c3_i32 : i32
          %146 = cute.make_coord(%143, %145) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
          %there = cute.slice(%80, %146) : !coord_tensor_9, !cute.coord<"(_,_,?,?)">
          %source = cute.group_modes<0, 2> (%here_9) : (!here) -> !source
          %target = cute.group_modes<0, 2> (%there) : (!there_2) -> !target_2
          cute.copy(%tma_c, %source, %target) : (!tma_c, !source, !target_2) -> ()
          cute_nvgpu.arch.bulk_commit_group() : () -> ()
        }
        %140 = arith.cmpi eq, %79, %c0_i32 : i32
        scf.if %140 {
          cute_nvgpu.arch.bulk_wait_group() {n = 0 : i32, read = true} : () -> ()
        }
        scf.yield %c0_i32, %c0_i32, %c1_i32, %102#2, %102#3, %102#4 : i32, i32, i32, i32, i32, i32
      }
      cute_nvgpu.arch.cluster_arrive() : () -> ()
      cute_nvgpu.arch.cluster_wait() : () -> ()
      gpu.return
    }
    // Compute one tile of C; f16, bf16, tf32 and 8-bit floats, sums in f32.
    gpu.func @gemm_any(%A: !A, %B: !A, %C: !A) kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 2 : i32} {
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
      // This block's tile of C, and the matrix.
      %tile = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %8 = arith.addi %7#0, %c63_i32 : i32
      %tiles_m = arith.shrui %8, %c6_i32 : i32
      %9 = arith.addi %7#1, %c63_i32 : i32
      %tiles_n = arith.shrui %9, %c6_i32 : i32
      %10 = arith.remui %tile, %tiles_m : i32
      %m0 = arith.muli %10, %c64_i32 : i32
      %11 = arith.divui %tile, %tiles_m : i32
      %n0 = arith.muli %11, %c64_i32 : i32
      // Tiles of A and B in shared memory, rows 16 bytes apart: reads of fragments hit all banks once; then the sums.
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
      // Through shared memory, so that neighbours write neighbours.
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
  // Launch the kernel of a configuration; what stands behind C is for those that want it.
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
    %c1_i32 = arith.constant 1 : i32
    %c2_i32 = arith.constant 2 : i32
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
    %56 = cute.get_scalars<{only_dynamic}> (%55) : !cute.int_tuple<"?">
    %waves = arith.maxui %56, %c1_i32 : i32
    %57 = cute.make_int_tuple(%tiles_3) : (i32) -> !cute.int_tuple<"?">
    %58 = cute.make_int_tuple(%waves) : (i32) -> !cute.int_tuple<"?">
    %59 = cute.ceil_div(%57, %58) : (!cute.int_tuple<"?">, !cute.int_tuple<"?">) -> !cute.int_tuple<"?">
    %60 = cute.get_scalars<{only_dynamic}> (%59) : !cute.int_tuple<"?">
    %grid = arith.muli %60, %c2_i32 : i32
    gpu.launch_func @kernels::@gemm clusters in (%c2_i32, %c1_i32, %c1_i32) blocks in (%grid, %c1_i32, %c1_i32) threads in (%c384_i32, %c1_i32, %c1_i32) : i32 args(%46#0 : !tma_a, %46#1 : !tma_a_2, %47#0 : !tma_a, %47#1 : !tma_a_2, %48#0 : !tma_c, %48#1 : !tma_a_2, %51#0 : i32, %51#1 : i32, %k_tiles : i32)
    gpu.launch_func @kernels::@gemm_any blocks in (%tiles, %c1_i32, %c1_i32) threads in (%c256_i32, %c1_i32, %c1_i32) : i32 args(%A : !A, %B : !A, %C : !A) {cute.fallback}
    return
  }
}
