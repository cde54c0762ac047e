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
!memref_11 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((8,2),(64,1)):((64,512),(1,0))">
!memref_12 = !cute.memref<f16, rmem, align<32>, "((8,4),1,1):((1,8),0,0)">
!memref_13 = !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,4),1,1):((1,16),0,0)">
!source = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(((8,2),(64,1))):(((64,512),(1,0)))">
!coord = !cute.coord<"(_,_,?,?{div=4})">
!coord_tensor_10 = !cute.coord_tensor<"(?{div=256},?{div=16})", "(16,64):(1@1,1@0)">
!target = !cute.coord_tensor<"(?{div=256},?{div=16})", "((16,64)):((1@1,1@0))">
!coord_tensor_11 = !cute.coord_tensor<"(?{div=64},?{div=16})", "(16,64):(1@1,1@0)">
!target_2 = !cute.coord_tensor<"(?{div=64},?{div=16})", "((16,64)):((1@1,1@0))">
!coord_2 = !cute.coord<"(_,_,?,?{div=2})">
!coord_tensor_12 = !cute.coord_tensor<"(?{div=128},?{div=16})", "(16,64):(1@1,1@0)">
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
        %102:5 = scf.for %tile_7 = %tile to %tiles step %29 iter_args(%arg0 = %c0_i32, %arg1 = %c0_i32, %arg2 = %c0_i32, %arg3 = %c0_i32, %arg4 = %c0_i32) -> (i32, i32, i32, i32, i32) : i32 {
          %145 = arith.muli %raster_3, %c8_i32 : i32
          %group_8 = arith.divui %tile_7, %145 : i32
          %inside = arith.remui %tile_7, %145 : i32
          %first = arith.muli %group_8, %c8_i32 : i32
          %146 = arith.subi %raster, %first : i32
          %rows = arith.minsi %146, %c8_i32 : i32
          %column = arith.divui %inside, %rows : i32
          %row = arith.remui %inside, %rows : i32
          %row_9 = arith.addi %first, %row : i32
          %147 = arith.andi %group_8, %c1_i32 : i32
          %148 = arith.cmpi ne, %147, %c0_i32 : i32
          %149 = arith.subi %raster_3, %c1_i32 : i32
          %150 = arith.subi %149, %column : i32
          %column_10 = arith.select %148, %150, %column : i32
          %151 = arith.muli %row_9, %c2_i32 : i32
          %row_11 = arith.addi %151, %26 : i32
          %152 = cute.make_int_tuple(%arg3) : (i32) -> !cute.int_tuple<"?">
          %153 = cute.add_offset(%barrier_storage, %152) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_wait(%153, %arg4) : (!cute.ptr<i64, smem>, i32) -> ()
          %following = arith.addi %arg3, %c1_i32 : i32
          %wraps = arith.cmpi eq, %following, %c4_i32 : i32
          %154 = arith.select %wraps, %c0_i32, %following : i32
          %155 = arith.select %wraps, %c1_i32, %c0_i32 : i32
          %156 = arith.xori %arg4, %155 : i32
          %157 = arith.addi %arg2, %c1_i32 : i32
          cute_nvgpu.arch.wgmma_fence() : () -> ()
          %158 = cute.make_coord(%arg3) : (i32) -> !cute.coord<"(_,_,_,?)">
          %159 = cute.slice(%rA, %158) : !rA, !cute.coord<"(_,_,_,?)">
          %160 = cute.make_coord(%arg3) : (i32) -> !cute.coord<"(_,_,_,?)">
          %161 = cute.slice(%rB, %160) : !rB, !cute.coord<"(_,_,_,?)">
          cute.gemm(%10, %acc, %159, %161) : (!tiled_mma, !acc, !memref_9, !memref_10) -> ()
          cute_nvgpu.arch.wgmma_commit_group() : () -> ()
          // The tile before is stored while this one is multiplied.
          %162 = arith.cmpi ne, %tile_7, %tile : i32
          scf.if %162 {
            %values_18 = cute.make_view(%93, %14) : !values
            // With an odd number of chunks the last one of a tile has used the buffer of the first.
            %186 = arith.cmpi eq, %79, %c0_i32 : i32
            scf.if %186 {
              cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
            }
            cute_nvgpu.arch.syncwarp() : () -> ()
            %187 = arith.muli %group, %c8_i32 : i32
            %188 = arith.addi %187, %78 : i32
            %189 = cute.make_coord(%188) : (i32) -> !cute.coord<"(_,_,?)">
            %190 = cute.slice(%sC, %189) : !sC, !cute.coord<"(_,_,?)">
            %191 = cute.tiled.copy.retile(%16, %values_18) : (!tiled_copy, !values) -> !memref_12
            %192 = cute.make_coord(%79) : (i32) -> !cute.coord<"?">
            %193 = cute.tiled.copy.partition_D(%16, %190, %192) : (!tiled_copy, !memref_11, !cute.coord<"?">) -> !memref_13
            cute.copy(%15, %191, %193) : (!stsm, !memref_12, !memref_13) -> ()
            cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
            cute_nvgpu.arch.syncwarp() : () -> ()
            %194 = arith.cmpi eq, %79, %c0_i32 : i32
            scf.if %194 {
              %source = cute.group_modes<0, 2> (%190) : (!memref_11) -> !source
              %first_20 = arith.muli %group, %c4_i32 : i32
              %206 = arith.muli %arg0, %c8_i32 : i32
              %207 = arith.addi %206, %first_20 : i32
              %208 = arith.addi %207, %78 : i32
              %209 = arith.muli %arg1, %c4_i32 : i32
              %210 = cute.assume(%209) : (i32) -> !cute.i32<divby 4>
              %211 = cute.make_coord(%208, %210) : (i32, !cute.i32<divby 4>) -> !coord
              %212 = cute.slice(%80, %211) : !coord_tensor_9, !coord
              %target = cute.group_modes<0, 2> (%212) : (!coord_tensor_10) -> !target
              cute.copy(%tma_c, %source, %target) : (!tma_c, !source, !target) -> ()
              cute_nvgpu.arch.bulk_commit_group() : () -> ()
            }
            %195 = cute.add_offset(%92, %17) : (!ptr_2, !cute.int_tuple<"32">) -> !ptr_2
            %values_19 = cute.make_view(%195, %14) : !values
            %196 = arith.cmpi eq, %79, %c0_i32 : i32
            scf.if %196 {
              cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
            }
            cute_nvgpu.arch.syncwarp() : () -> ()
            %197 = arith.muli %group, %c8_i32 : i32
            %198 = arith.addi %197, %c4_i32 : i32
            %199 = arith.addi %198, %78 : i32
            %200 = cute.make_coord(%199) : (i32) -> !cute.coord<"(_,_,?)">
            %201 = cute.slice(%sC, %200) : !sC, !cute.coord<"(_,_,?)">
            %202 = cute.tiled.copy.retile(%16, %values_19) : (!tiled_copy, !values) -> !memref_12
            %203 = cute.make_coord(%79) : (i32) -> !cute.coord<"?">
            %204 = cute.tiled.copy.partition_D(%16, %201, %203) : (!tiled_copy, !memref_11, !cute.coord<"?">) -> !memref_13
            cute.copy(%15, %202, %204) : (!stsm, !memref_12, !memref_13) -> ()
            cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
            cute_nvgpu.arch.syncwarp() : () -> ()
            %205 = arith.cmpi eq, %79, %c0_i32 : i32
            scf.if %205 {
              %source = cute.group_modes<0, 2> (%201) : (!memref_11) -> !source
              %first_20 = arith.muli %group, %c4_i32 : i32
              %206 = arith.muli %arg0, %c8_i32 : i32
              %207 = arith.addi %206, %first_20 : i32
              %208 = arith.addi %207, %78 : i32
              %209 = arith.muli %arg1, %c4_i32 : i32
              %210 = arith.addi %209, %c1_i32 : i32
              %211 = cute.make_coord(%208, %210) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
              %212 = cute.slice(%80, %211) : !coord_tensor_9, !cute.coord<"(_,_,?,?)">
              %target = cute.group_modes<0, 2> (%212) : (!coord_tensor_11) -> !target_2
              cute.copy(%tma_c, %source, %target) : (!tma_c, !source, !target_2) -> ()
              cute_nvgpu.arch.bulk_commit_group() : () -> ()
            }
          }
          %163 = arith.minui %k_tiles, %c2_i32 : i32
          %164:6 = scf.for %arg5 = %c1_i32 to %163 step %c1_i32 iter_args(%arg6 = %arg3, %arg7 = %arg4, %arg8 = %arg2, %arg9 = %157, %arg10 = %154, %arg11 = %156) -> (i32, i32, i32, i32, i32, i32) : i32 {
            %186 = cute.make_int_tuple(%arg10) : (i32) -> !cute.int_tuple<"?">
            %187 = cute.add_offset(%barrier_storage, %186) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_wait(%187, %arg11) : (!cute.ptr<i64, smem>, i32) -> ()
            %following_18 = arith.addi %arg10, %c1_i32 : i32
            %wraps_19 = arith.cmpi eq, %following_18, %c4_i32 : i32
            %188 = arith.select %wraps_19, %c0_i32, %following_18 : i32
            %189 = arith.select %wraps_19, %c1_i32, %c0_i32 : i32
            %190 = arith.xori %arg11, %189 : i32
            %191 = arith.addi %arg9, %c1_i32 : i32
            cute_nvgpu.arch.wgmma_fence() : () -> ()
            %192 = cute.make_coord(%arg10) : (i32) -> !cute.coord<"(_,_,_,?)">
            %193 = cute.slice(%rA, %192) : !rA, !cute.coord<"(_,_,_,?)">
            %194 = cute.make_coord(%arg10) : (i32) -> !cute.coord<"(_,_,_,?)">
            %195 = cute.slice(%rB, %194) : !rB, !cute.coord<"(_,_,_,?)">
            cute.gemm(%10, %acc, %193, %195, %acc) : (!tiled_mma, !acc, !memref_9, !memref_10, !acc) -> ()
            cute_nvgpu.arch.wgmma_commit_group() : () -> ()
            cute_nvgpu.arch.wgmma_wait_group() {n = 1 : i32} : () -> ()
            %196 = arith.addi %arg6, %c4_i32 : i32
            %197 = cute.make_int_tuple(%196) : (i32) -> !cute.int_tuple<"?">
            %198 = cute.add_offset(%barrier_storage, %197) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_arrive_cluster(%198, %51, %50) : (!cute.ptr<i64, smem>, i32, i1) -> ()
            scf.yield %arg10, %arg11, %arg9, %191, %188, %190 : i32, i32, i32, i32, i32, i32
          }
          %165 = arith.cmpi ne, %tile_7, %tile : i32
          scf.if %165 {
            %186 = cute.add_offset(%91, %19) : (!ptr_2, !cute.int_tuple<"64">) -> !ptr_2
            %values_18 = cute.make_view(%186, %14) : !values
            %187 = arith.cmpi eq, %79, %c0_i32 : i32
            scf.if %187 {
              cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
            }
            cute_nvgpu.arch.syncwarp() : () -> ()
            %188 = arith.muli %group, %c8_i32 : i32
            %189 = arith.addi %188, %78 : i32
            %190 = cute.make_coord(%189) : (i32) -> !cute.coord<"(_,_,?)">
            %191 = cute.slice(%sC, %190) : !sC, !cute.coord<"(_,_,?)">
            %192 = cute.tiled.copy.retile(%16, %values_18) : (!tiled_copy, !values) -> !memref_12
            %193 = cute.make_coord(%79) : (i32) -> !cute.coord<"?">
            %194 = cute.tiled.copy.partition_D(%16, %191, %193) : (!tiled_copy, !memref_11, !cute.coord<"?">) -> !memref_13
            cute.copy(%15, %192, %194) : (!stsm, !memref_12, !memref_13) -> ()
            cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
            cute_nvgpu.arch.syncwarp() : () -> ()
            %195 = arith.cmpi eq, %79, %c0_i32 : i32
            scf.if %195 {
              %source = cute.group_modes<0, 2> (%191) : (!memref_11) -> !source
              %first_20 = arith.muli %group, %c4_i32 : i32
              %207 = arith.muli %arg0, %c8_i32 : i32
              %208 = arith.addi %207, %first_20 : i32
              %209 = arith.addi %208, %78 : i32
              %210 = arith.muli %arg1, %c4_i32 : i32
              %211 = arith.addi %210, %c2_i32 : i32
              %212 = cute.assume(%211) : (i32) -> !cute.i32<divby 2>
              %213 = cute.make_coord(%209, %212) : (i32, !cute.i32<divby 2>) -> !coord_2
              %214 = cute.slice(%80, %213) : !coord_tensor_9, !coord_2
              %target = cute.group_modes<0, 2> (%214) : (!coord_tensor_12) -> !target_3
              cute.copy(%tma_c, %source, %target) : (!tma_c, !source, !target_3) -> ()
              cute_nvgpu.arch.bulk_commit_group() : () -> ()
            }
            %196 = cute.add_offset(%90, %20) : (!ptr_2, !cute.int_tuple<"96">) -> !ptr_2
            %values_19 = cute.make_view(%196, %14) : !values
            %197 = arith.cmpi eq, %79, %c0_i32 : i32
            scf.if %197 {
              cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
            }
            cute_nvgpu.arch.syncwarp() : () -> ()
            %198 = arith.muli %group, %c8_i32 : i32
            %199 = arith.addi %198, %c4_i32 : i32
            %200 = arith.addi %199, %78 : i32
            %201 = cute.make_coord(%200) : (i32) -> !cute.coord<"(_,_,?)">
            %202 = cute.slice(%sC, %201) : !sC, !cute.coord<"(_,_,?)">
            %203 = cute.tiled.copy.retile(%16, %values_19) : (!tiled_copy, !values) -> !memref_12
            %204 = cute.make_coord(%79) : (i32) -> !cute.coord<"?">
            %205 = cute.tiled.copy.partition_D(%16, %202, %204) : (!tiled_copy, !memref_11, !cute.coord<"?">) -> !memref_13
            cute.copy(%15, %203, %205) : (!stsm, !memref_12, !memref_13) -> ()
            cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
            cute_nvgpu.arch.syncwarp() : () -> ()
            %206 = arith.cmpi eq, %79, %c0_i32 : i32
            scf.if %206 {
              %source = cute.group_modes<0, 2> (%202) : (!memref_11) -> !source
              %first_20 = arith.muli %group, %c4_i32 : i32
              %207 = arith.muli %arg0, %c8_i32 : i32
              %208 = arith.addi %207, %first_20 : i32
              %209 = arith.addi %208, %78 : i32
              %210 = arith.muli %arg1, %c4_i32 : i32
              %211 = arith.addi %210, %c3_i32 : i32
              %212 = cute.make_coord(%209, %211) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
              %213 = cute.slice(%80, %212) : !coord_tensor_9, !cute.coord<"(_,_,?,?)">
              %target = cute.group_modes<0, 2> (%213) : (!coord_tensor_11) -> !target_2
              cute.copy(%tma_c, %source, %target) : (!tma_c, !source, !target_2) -> ()
              cute_nvgpu.arch.bulk_commit_group() : () -> ()
            }
          }
          %166:6 = scf.for %arg5 = %c2_i32 to %k_tiles step %c1_i32 iter_args(%arg6 = %164#0, %arg7 = %164#1, %arg8 = %164#2, %arg9 = %164#3, %arg10 = %164#4, %arg11 = %164#5) -> (i32, i32, i32, i32, i32, i32) : i32 {
            %186 = cute.make_int_tuple(%arg10) : (i32) -> !cute.int_tuple<"?">
            %187 = cute.add_offset(%barrier_storage, %186) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_wait(%187, %arg11) : (!cute.ptr<i64, smem>, i32) -> ()
            %following_18 = arith.addi %arg10, %c1_i32 : i32
            %wraps_19 = arith.cmpi eq, %following_18, %c4_i32 : i32
            %188 = arith.select %wraps_19, %c0_i32, %following_18 : i32
            %189 = arith.select %wraps_19, %c1_i32, %c0_i32 : i32
            %190 = arith.xori %arg11, %189 : i32
            %191 = arith.addi %arg9, %c1_i32 : i32
            cute_nvgpu.arch.wgmma_fence() : () -> ()
            %192 = cute.make_coord(%arg10) : (i32) -> !cute.coord<"(_,_,_,?)">
            %193 = cute.slice(%rA, %192) : !rA, !cute.coord<"(_,_,_,?)">
            %194 = cute.make_coord(%arg10) : (i32) -> !cute.coord<"(_,_,_,?)">
            %195 = cute.slice(%rB, %194) : !rB, !cute.coord<"(_,_,_,?)">
            cute.gemm(%10, %acc, %193, %195, %acc) : (!tiled_mma, !acc, !memref_9, !memref_10, !acc) -> ()
            cute_nvgpu.arch.wgmma_commit_group() : () -> ()
            cute_nvgpu.arch.wgmma_wait_group() {n = 1 : i32} : () -> ()
            %196 = arith.addi %arg6, %c4_i32 : i32
            %197 = cute.make_int_tuple(%196) : (i32) -> !cute.int_tuple<"?">
            %198 = cute.add_offset(%barrier_storage, %197) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_arrive_cluster(%198, %51, %50) : (!cute.ptr<i64, smem>, i32, i1) -> ()
            scf.yield %arg10, %arg11, %arg9, %191, %188, %190 : i32, i32, i32, i32, i32, i32
          }
          cute_nvgpu.arch.wgmma_wait_group(%acc) {n = 0 : i32} : (!acc) -> ()
          %167 = arith.addi %166#0, %c4_i32 : i32
          %168 = cute.make_int_tuple(%167) : (i32) -> !cute.int_tuple<"?">
          %169 = cute.add_offset(%barrier_storage, %168) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_arrive_cluster(%169, %51, %50) : (!cute.ptr<i64, smem>, i32, i1) -> ()
          %170 = cute.make_view(%70, %14) : !sums
          %171 = cute.get_iter(%170) : !sums
          %of_atom = cute.make_view(%171, %21) : !of_atom
          %sums = cute.make_view(%69, %14) : !sums
          %out = cute.make_view(%89, %14) : !values
          %172 = cute.memref.load_vec %sums : !sums
          %173 = arith.truncf %172 : vector<32xf32> to vector<32xf16>
          cute.memref.store_vec %173, %out : !values
          %174 = cute.add_offset(%68, %17) : (!ptr, !cute.int_tuple<"32">) -> !ptr
          %sums_12 = cute.make_view(%174, %14) : !sums
          %175 = cute.add_offset(%88, %17) : (!ptr_2, !cute.int_tuple<"32">) -> !ptr_2
          %out_13 = cute.make_view(%175, %14) : !values
          %176 = cute.memref.load_vec %sums_12 : !sums
          %177 = arith.truncf %176 : vector<32xf32> to vector<32xf16>
          cute.memref.store_vec %177, %out_13 : !values
          %178 = cute.add_offset(%67, %19) : (!ptr, !cute.int_tuple<"64">) -> !ptr
          %sums_14 = cute.make_view(%178, %14) : !sums
          %179 = cute.add_offset(%87, %19) : (!ptr_2, !cute.int_tuple<"64">) -> !ptr_2
          %out_15 = cute.make_view(%179, %14) : !values
          %180 = cute.memref.load_vec %sums_14 : !sums
          %181 = arith.truncf %180 : vector<32xf32> to vector<32xf16>
          cute.memref.store_vec %181, %out_15 : !values
          %182 = cute.add_offset(%66, %20) : (!ptr, !cute.int_tuple<"96">) -> !ptr
          %sums_16 = cute.make_view(%182, %14) : !sums
          %183 = cute.add_offset(%86, %20) : (!ptr_2, !cute.int_tuple<"96">) -> !ptr_2
          %out_17 = cute.make_view(%183, %14) : !values
          %184 = cute.memref.load_vec %sums_16 : !sums
          %185 = arith.truncf %184 : vector<32xf32> to vector<32xf16>
          cute.memref.store_vec %185, %out_17 : !values
          scf.yield %row_11, %column_10, %166#3, %166#4, %166#5 : i32, i32, i32, i32, i32
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
        %107 = cute.slice(%sC, %106) : !sC, !cute.coord<"(_,_,?)">
        %108 = cute.tiled.copy.retile(%16, %values) : (!tiled_copy, !values) -> !memref_12
        %109 = cute.make_coord(%79) : (i32) -> !cute.coord<"?">
        %110 = cute.tiled.copy.partition_D(%16, %107, %109) : (!tiled_copy, !memref_11, !cute.coord<"?">) -> !memref_13
        cute.copy(%15, %108, %110) : (!stsm, !memref_12, !memref_13) -> ()
        cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
        cute_nvgpu.arch.syncwarp() : () -> ()
        %111 = arith.cmpi eq, %79, %c0_i32 : i32
        scf.if %111 {
          %source = cute.group_modes<0, 2> (%107) : (!memref_11) -> !source
          %first = arith.muli %group, %c4_i32 : i32
          %145 = arith.muli %102#0, %c8_i32 : i32
          %146 = arith.addi %145, %first : i32
          %147 = arith.addi %146, %78 : i32
          %148 = arith.muli %102#1, %c4_i32 : i32
          %149 = cute.assume(%148) : (i32) -> !cute.i32<divby 4>
          %150 = cute.make_coord(%147, %149) : (i32, !cute.i32<divby 4>) -> !coord
          %151 = cute.slice(%80, %150) : !coord_tensor_9, !coord
          %target = cute.group_modes<0, 2> (%151) : (!coord_tensor_10) -> !target
          cute.copy(%tma_c, %source, %target) : (!tma_c, !source, !target) -> ()
          cute_nvgpu.arch.bulk_commit_group() : () -> ()
        }
        %112 = cute.add_offset(%84, %17) : (!ptr_2, !cute.int_tuple<"32">) -> !ptr_2
        %values_4 = cute.make_view(%112, %14) : !values
        %113 = arith.cmpi eq, %79, %c0_i32 : i32
        scf.if %113 {
          cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
        }
        cute_nvgpu.arch.syncwarp() : () -> ()
        %114 = arith.muli %group, %c8_i32 : i32
        %115 = arith.addi %114, %c4_i32 : i32
        %116 = arith.addi %115, %78 : i32
        %117 = cute.make_coord(%116) : (i32) -> !cute.coord<"(_,_,?)">
        %118 = cute.slice(%sC, %117) : !sC, !cute.coord<"(_,_,?)">
        %119 = cute.tiled.copy.retile(%16, %values_4) : (!tiled_copy, !values) -> !memref_12
        %120 = cute.make_coord(%79) : (i32) -> !cute.coord<"?">
        %121 = cute.tiled.copy.partition_D(%16, %118, %120) : (!tiled_copy, !memref_11, !cute.coord<"?">) -> !memref_13
        cute.copy(%15, %119, %121) : (!stsm, !memref_12, !memref_13) -> ()
        cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
        cute_nvgpu.arch.syncwarp() : () -> ()
        %122 = arith.cmpi eq, %79, %c0_i32 : i32
        scf.if %122 {
          %source = cute.group_modes<0, 2> (%118) : (!memref_11) -> !source
          %first = arith.muli %group, %c4_i32 : i32
          %145 = arith.muli %102#0, %c8_i32 : i32
          %146 = arith.addi %145, %first : i32
          %147 = arith.addi %146, %78 : i32
          %148 = arith.muli %102#1, %c4_i32 : i32
          %149 = arith.addi %148, %c1_i32 : i32
          %150 = cute.make_coord(%147, %149) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
          %151 = cute.slice(%80, %150) : !coord_tensor_9, !cute.coord<"(_,_,?,?)">
          %target = cute.group_modes<0, 2> (%151) : (!coord_tensor_11) -> !target_2
          cute.copy(%tma_c, %source, %target) : (!tma_c, !source, !target_2) -> ()
          cute_nvgpu.arch.bulk_commit_group() : () -> ()
        }
        %123 = cute.add_offset(%83, %19) : (!ptr_2, !cute.int_tuple<"64">) -> !ptr_2
        %values_5 = cute.make_view(%123, %14) : !values
        %124 = arith.cmpi eq, %79, %c0_i32 : i32
        scf.if %124 {
          cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
        }
        cute_nvgpu.arch.syncwarp() : () -> ()
        %125 = arith.muli %group, %c8_i32 : i32
        %126 = arith.addi %125, %78 : i32
        %127 = cute.make_coord(%126) : (i32) -> !cute.coord<"(_,_,?)">
        %128 = cute.slice(%sC, %127) : !sC, !cute.coord<"(_,_,?)">
        %129 = cute.tiled.copy.retile(%16, %values_5) : (!tiled_copy, !values) -> !memref_12
        %130 = cute.make_coord(%79) : (i32) -> !cute.coord<"?">
        %131 = cute.tiled.copy.partition_D(%16, %128, %130) : (!tiled_copy, !memref_11, !cute.coord<"?">) -> !memref_13
        cute.copy(%15, %129, %131) : (!stsm, !memref_12, !memref_13) -> ()
        cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
        cute_nvgpu.arch.syncwarp() : () -> ()
        %132 = arith.cmpi eq, %79, %c0_i32 : i32
        scf.if %132 {
          %source = cute.group_modes<0, 2> (%128) : (!memref_11) -> !source
          %first = arith.muli %group, %c4_i32 : i32
          %145 = arith.muli %102#0, %c8_i32 : i32
          %146 = arith.addi %145, %first : i32
          %147 = arith.addi %146, %78 : i32
          %148 = arith.muli %102#1, %c4_i32 : i32
          %149 = arith.addi %148, %c2_i32 : i32
          %150 = cute.assume(%149) : (i32) -> !cute.i32<divby 2>
          %151 = cute.make_coord(%147, %150) : (i32, !cute.i32<divby 2>) -> !coord_2
          %152 = cute.slice(%80, %151) : !coord_tensor_9, !coord_2
          %target = cute.group_modes<0, 2> (%152) : (!coord_tensor_12) -> !target_3
          cute.copy(%tma_c, %source, %target) : (!tma_c, !source, !target_3) -> ()
          cute_nvgpu.arch.bulk_commit_group() : () -> ()
        }
        %133 = cute.add_offset(%82, %20) : (!ptr_2, !cute.int_tuple<"96">) -> !ptr_2
        %values_6 = cute.make_view(%133, %14) : !values
        %134 = arith.cmpi eq, %79, %c0_i32 : i32
        scf.if %134 {
          cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
        }
        cute_nvgpu.arch.syncwarp() : () -> ()
        %135 = arith.muli %group, %c8_i32 : i32
        %136 = arith.addi %135, %c4_i32 : i32
        %137 = arith.addi %136, %78 : i32
        %138 = cute.make_coord(%137) : (i32) -> !cute.coord<"(_,_,?)">
        %139 = cute.slice(%sC, %138) : !sC, !cute.coord<"(_,_,?)">
        %140 = cute.tiled.copy.retile(%16, %values_6) : (!tiled_copy, !values) -> !memref_12
        %141 = cute.make_coord(%79) : (i32) -> !cute.coord<"?">
        %142 = cute.tiled.copy.partition_D(%16, %139, %141) : (!tiled_copy, !memref_11, !cute.coord<"?">) -> !memref_13
        cute.copy(%15, %140, %142) : (!stsm, !memref_12, !memref_13) -> ()
        cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
        cute_nvgpu.arch.syncwarp() : () -> ()
        %143 = arith.cmpi eq, %79, %c0_i32 : i32
        scf.if %143 {
          %source = cute.group_modes<0, 2> (%139) : (!memref_11) -> !source
          %first = arith.muli %group, %c4_i32 : i32
          %145 = arith.muli %102#0, %c8_i32 : i32
          %146 = arith.addi %145, %first : i32
          %147 = arith.addi %146, %78 : i32
          %148 = arith.muli %102#1, %c4_i32 : i32
          %149 = arith.addi %148, %c3_i32 : i32
          %150 = cute.make_coord(%147, %149) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
          %151 = cute.slice(%80, %150) : !coord_tensor_9, !cute.coord<"(_,_,?,?)">
          %target = cute.group_modes<0, 2> (%151) : (!coord_tensor_11) -> !target_2
          cute.copy(%tma_c, %source, %target) : (!tma_c, !source, !target_2) -> ()
          cute_nvgpu.arch.bulk_commit_group() : () -> ()
        }
        %144 = arith.cmpi eq, %79, %c0_i32 : i32
        scf.if %144 {
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
