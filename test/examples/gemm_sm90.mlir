!tma_a = !cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>
!tma_a_2 = !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">
!tmas_c = !cute_nvgpu.atom.tma_store<f16, box = (64, 16), swizzle = 128>
!tile = !cute.tile<"[((64,128),2):((256,1),128);_]">
!tile_2 = !cute.tile<"[((64,128),2):((256,1),128);_;_]">
!wgmma = !cute_nvgpu.atom.wgmma<64x256x16, (f32,f16,f16,f32), A = smem, major = (k, k)>
!tiled_mma = !cute.tiled_mma<!wgmma, atom_layout_MNK = <"(2,1,1):(1,0,0)">>
!layout = !cute.layout<"(16,64,4,4):(64,1,1024,4096)">
!layout_2 = !cute.layout<"((2,2,8),1,1):((1,2,4),0,0)">
!stsm = !cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>
!tiled_copy = !cute.tiled_copy<!stsm, layout_copy_tv = <"((4,8),(2,2,8)):((32,1),(16,8,128))">, tiler_mn = <"[16:1;64:1]">>
!sA = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((8,16),(64,1),(1,4)):((64,512),(1,0),(0,8192))">
!sB = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((8,32),(64,1),(1,4)):((64,512),(1,0),(0,16384))">
!memref = !cute.memref<i8, smem, align<1024>, "32768:1">
!staging = !cute.ptr<i8, smem, align<1024>>
!memref_2 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(((8,16),(64,1)),(1,4)):(((64,512),(1,0)),(0,8192))">
!coord_tensor = !cute.coord_tensor<"(0,0)", "(128,64,?,?):(1@1,1@0,128@1,64@0)">
!coord_tensor_2 = !cute.coord_tensor<"(0,0)", "((128,64),?,?):((1@1,1@0),128@1,64@0)">
!memref_3 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(((8,32),(64,1)),(1,4)):(((64,512),(1,0)),(0,16384))">
!coord_tensor_3 = !cute.coord_tensor<"(0,0)", "(256,64,?,?):(1@1,1@0,256@1,64@0)">
!coord_tensor_4 = !cute.coord_tensor<"(0,0)", "((256,64),?,?):((1@1,1@0),256@1,64@0)">
!memref_4 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(((64,128),2),(1,4)):(((1,64),8192),(0,16384))">
!memref_5 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,128),(1,4)):((1,64),(0,16384))">
!coord_tensor_5 = !cute.coord_tensor<"(0,0)", "(((64,128),2),?,?):(((1@0,1@1),128@1),256@1,64@0)">
!coord_tensor_6 = !cute.coord_tensor<"(0,?{div=128})", "((64,128),?,?):((1@0,1@1),256@1,64@0)">
!memref_6 = !cute.memref<i8, smem, align<8>, "64:1">
!coord_tensor_7 = !cute.coord_tensor<"(?{div=64},?{div=128})", "((128,64)):((1@1,1@0))">
!memref_7 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(((8,16),(64,1))):(((64,512),(1,0)))">
!coord_tensor_8 = !cute.coord_tensor<"(?{div=64},?{div=128})", "((64,128)):((1@0,1@1))">
!memref_8 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,128)):((1,64))">
!rA = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,16),1,4,(1,4)):((64,1),0,16,(0,8192))">
!rB = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((256,16),1,4,(1,4)):((64,1),0,16,(0,16384))">
!acc = !cute.memref<f32, rmem, align<32>, "((2,2,32),1,1):((1,2,4),0,0)">
!start = !cute.ptr<f32, rmem, align<32>>
!start_2 = !cute.ptr<f16, smem, align<1024>, S<3,4,3>>
!memref_9 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(16,64,4,4):(64,1,1024,4096)">
!memref_10 = !cute.memref<f16, rmem, align<32>, "((2,2,32),1,1):((1,2,4),0,0)">
!ptr = !cute.ptr<f16, rmem, align<32>>
!memref_11 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,16),1,4):((64,1),0,16)">
!memref_12 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((256,16),1,4):((64,1),0,16)">
!values = !cute.memref<f16, rmem, align<32>, "((2,2,8),1,1):((1,2,4),0,0)">
!coord = !cute.coord<"(_,_,?,?{div=2})">
!here = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(16,64):(64,1)">
!memref_13 = !cute.memref<f16, rmem, align<32>, "((8,4),1,1):((1,8),0,0)">
!memref_14 = !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,4),1,1):((1,16),0,0)">
!coord_2 = !cute.coord<"(?{div=16},?{div=256})">
!coord_tensor_9 = !cute.coord_tensor<"(?{div=256},?{div=16})", "(?,?):(1@1,1@0)">
!tiles = !cute.coord_tensor<"(?{div=256},?{div=16})", "(16,64,?,?):(1@1,1@0,16@1,64@0)">
!layout_3 = !cute.layout<"(16,64,?,?):(1@1,1@0,16@1,64@0)">
!source = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((16,64)):((64,1))">
!coord_tensor_10 = !cute.coord_tensor<"(?{div=256},?{div=16})", "(16,64):(1@1,1@0)">
!target = !cute.coord_tensor<"(?{div=256},?{div=16})", "((16,64)):((1@1,1@0))">
!coord_3 = !cute.coord<"(?{div=16},?{div=64})">
!coord_tensor_11 = !cute.coord_tensor<"(?{div=64},?{div=16})", "(?,?):(1@1,1@0)">
!tiles_2 = !cute.coord_tensor<"(?{div=64},?{div=16})", "(16,64,?,?):(1@1,1@0,16@1,64@0)">
!coord_tensor_12 = !cute.coord_tensor<"(?{div=64},?{div=16})", "(16,64):(1@1,1@0)">
!target_2 = !cute.coord_tensor<"(?{div=64},?{div=16})", "((16,64)):((1@1,1@0))">
!coord_4 = !cute.coord<"(?{div=16},?{div=128})">
!coord_tensor_13 = !cute.coord_tensor<"(?{div=128},?{div=16})", "(?,?):(1@1,1@0)">
!tiles_3 = !cute.coord_tensor<"(?{div=128},?{div=16})", "(16,64,?,?):(1@1,1@0,16@1,64@0)">
!coord_tensor_14 = !cute.coord_tensor<"(?{div=128},?{div=16})", "(16,64):(1@1,1@0)">
!target_3 = !cute.coord_tensor<"(?{div=128},?{div=16})", "((16,64)):((1@1,1@0))">
!values_2 = !cute.memref<f32, rmem, align<32>, "128:1">
!sums = !cute.memref<f32, rmem, align<32>, "((2,2,8),1,1):((1,2,4),0,0)">
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
!layout_4 = !cute.layout<"((8,16),(64,1)):((64,512),(1,0))">
!layout_5 = !cute.layout<"(16,64):(64,1)">
!ptr_2 = !cute.ptr<f16, gmem, align<16>>
!layout_6 = !cute.layout<"(?,?):(?{div=8},1)">
!A_2 = !cute.memref<f16, gmem, align<16>, "(?,?):(?{div=8},1)">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @gemm(%tma_a: !tma_a, %tma_a_0: !tma_a_2, %tma_b: !tma_a, %tma_b_1: !tma_a_2, %tmas_c: !tmas_c, %tmas_c_2: !tma_a_2, %raster: i32, %raster_3: i32, %k_tiles: i32) kernel attributes {known_block_size = array<i32: 384, 1, 1>, known_cluster_size = array<i32: 2, 1, 1>, nvvm.minctasm = 1 : i32} {
      %c1_i32 = arith.constant 1 : i32
      %c0_i32 = arith.constant 0 : i32
      %0 = cute.static : !cute.shape<"(128,64)">
      %1 = cute.static : !cute.shape<"(256,64)">
      %2 = cute.static : !cute.layout<"2:1">
      %3 = cute.static : !tile
      %4 = cute.static : !tile_2
      %c127_i32 = arith.constant 127 : i32
      %c2_i32 = arith.constant 2 : i32
      %c5_i32 = arith.constant 5 : i32
      %5 = cute.static : !cute.int_tuple<"4">
      %c4_i32 = arith.constant 4 : i32
      %6 = cute.static : !cute.int_tuple<"1">
      %7 = cute.static : !cute.int_tuple<"2">
      %8 = cute.static : !cute.int_tuple<"3">
      %c8_i32 = arith.constant 8 : i32
      %c49152_i32 = arith.constant 49152 : i32
      %c7_i32 = arith.constant 7 : i32
      %c3_i32 = arith.constant 3 : i32
      %false = arith.constant false
      %c3_i16 = arith.constant 3 : i16
      %true = arith.constant true
      %c128_i32 = arith.constant 128 : i32
      %9 = cute.atom() : !wgmma
      %10 = cute.make_tiled_mma(%9) : !tiled_mma
      %11 = cute.static : !cute.shape<"((2,2,32),1,1)">
      %12 = cute.static : !layout
      %13 = cute.static : !cute.coord<"(_,_,_,0)">
      %14 = cute.static : !layout_2
      %c64_i32 = arith.constant 64 : i32
      %15 = cute.atom() : !stsm
      %16 = cute.make_tiled_copy(%15) : !tiled_copy
      %c16_i32 = arith.constant 16 : i32
      %17 = cute.static : !cute.shape<"(16,64)">
      %18 = cute.static : !cute.coord<"(_,_,0,0)">
      %19 = cute.static : !cute.int_tuple<"32">
      %20 = cute.static : !cute.coord<"(_,_,_,1)">
      %21 = cute.static : !cute.int_tuple<"64">
      %22 = cute.static : !cute.int_tuple<"96">
      %23 = cute.static : !cute.layout<"128:1">
      %c256_i32 = arith.constant 256 : i32
      %c192_i32 = arith.constant 192 : i32
      // This block's tiles: every n-th tile, n being the number of clusters.
      %24 = cute_nvgpu.arch.cluster_rank() : () -> i32
      // The blocks of a cluster are numbered along M first, then along N.
      %25 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %26 = nvvm.read.ptx.sreg.nctaid.x range <i32, 1, 2147483647> : i32
      %tile = arith.shrui %25, %c1_i32 : i32
      %27 = arith.shrui %26, %c1_i32 : i32
      // The producer thread prefetches only the tensor maps that it loads with, because every thread waits for its first
      // load.
      %28 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
      %29 = arith.cmpi eq, %28, %c0_i32 : i32
      scf.if %29 {
        cute_nvgpu.arch.prefetch_tensormap(%tma_a) : (!tma_a) -> ()
        cute_nvgpu.arch.prefetch_tensormap(%tma_b) : (!tma_a) -> ()
      }
      // Shared memory: the stages of A and B, staging buffers of 64 rows of C, then the full and empty barriers.
      %sA = cute.memref.alloc_smem() : !sA
      %sB = cute.memref.alloc_smem() : !sB
      %30 = cute.memref.alloc_smem() : !memref
      %31 = cute.get_iter(%30) : !memref
      %staging = cute.recast_iter(%31) : !staging to !staging
      // A tile that is sliced along K: the number of slices, and this block's.
      %32 = cute.group_modes<0, 2> (%sA) : (!sA) -> !memref_2
      %33 = cute.flat_divide(%tma_a_0, %0) : (!tma_a_2, !cute.shape<"(128,64)">) -> !coord_tensor
      %34 = cute.group_modes<0, 2> (%33) : (!coord_tensor) -> !coord_tensor_2
      %35 = cute.group_modes<0, 2> (%sB) : (!sB) -> !memref_3
      %36 = cute.flat_divide(%tma_b_1, %1) : (!tma_a_2, !cute.shape<"(256,64)">) -> !coord_tensor_3
      %37 = cute.group_modes<0, 2> (%36) : (!coord_tensor_3) -> !coord_tensor_4
      %38 = cute.make_coord(%24) : (i32) -> !cute.coord<"?">
      %39 = cute.layout_eval(%38, %2) : (!cute.coord<"?">, !cute.layout<"2:1">) -> !cute.int_tuple<"?">
      %40 = cute.get_scalars<{only_dynamic}> (%39) : !cute.int_tuple<"?">
      %41 = cute.composition(%35, %3) : (!memref_3, !tile) -> !memref_4
      %42 = cute.make_coord(%40) : (i32) -> !cute.coord<"((_,?),_)">
      %43 = cute.slice(%41, %42) : !memref_4, !cute.coord<"((_,?),_)">
      %44 = cute.composition(%37, %4) : (!coord_tensor_4, !tile_2) -> !coord_tensor_5
      %45 = cute.make_coord(%40) : (i32) -> !cute.coord<"((_,?),_,_)">
      %46 = cute.slice(%44, %45) : !coord_tensor_5, !cute.coord<"((_,?),_,_)">
      // A slot is released per warpgroup, or per warp if each warp reads A to registers itself.
      %47 = cute.memref.alloc_smem() : !memref_6
      %48 = cute.get_iter(%47) : !memref_6
      %barrier_storage = cute.recast_iter(%48) : !cute.ptr<i8, smem, align<8>> to !cute.ptr<i64, smem>
      %49 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
      %thread = arith.andi %49, %c127_i32 : i32
      %50 = arith.cmpi ult, %thread, %c2_i32 : i32
      // Thread d of each warp (or warpgroup) signals block d of the cluster if they share an operand.
      %51 = arith.andi %thread, %c1_i32 : i32
      %52 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
      %53 = arith.shrui %52, %c5_i32 : i32
      %54 = arith.cmpi eq, %53, %c0_i32 : i32
      scf.if %54 {
        %64 = cute_nvgpu.arch.elect_one() : () -> i1
        scf.if %64 {
          %65 = cute.add_offset(%barrier_storage, %5) : (!cute.ptr<i64, smem>, !cute.int_tuple<"4">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%65, %c4_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          cute_nvgpu.arch.mbarrier_init(%barrier_storage, %c1_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %66 = cute.add_offset(%barrier_storage, %5) : (!cute.ptr<i64, smem>, !cute.int_tuple<"4">) -> !cute.ptr<i64, smem>
          %67 = cute.add_offset(%66, %6) : (!cute.ptr<i64, smem>, !cute.int_tuple<"1">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%67, %c4_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %68 = cute.add_offset(%barrier_storage, %6) : (!cute.ptr<i64, smem>, !cute.int_tuple<"1">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%68, %c1_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %69 = cute.add_offset(%barrier_storage, %5) : (!cute.ptr<i64, smem>, !cute.int_tuple<"4">) -> !cute.ptr<i64, smem>
          %70 = cute.add_offset(%69, %7) : (!cute.ptr<i64, smem>, !cute.int_tuple<"2">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%70, %c4_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %71 = cute.add_offset(%barrier_storage, %7) : (!cute.ptr<i64, smem>, !cute.int_tuple<"2">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%71, %c1_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %72 = cute.add_offset(%barrier_storage, %5) : (!cute.ptr<i64, smem>, !cute.int_tuple<"4">) -> !cute.ptr<i64, smem>
          %73 = cute.add_offset(%72, %8) : (!cute.ptr<i64, smem>, !cute.int_tuple<"3">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%73, %c4_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %74 = cute.add_offset(%barrier_storage, %8) : (!cute.ptr<i64, smem>, !cute.int_tuple<"3">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%74, %c1_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          cute_nvgpu.arch.fence_mbarrier_init() : () -> ()
        }
      }
      // Loads that signal only this block's barriers start before the cluster and block barriers: the issuing thread has
      // initialized those mbarriers itself. No other thread waits for these loads to be issued.
      cute_nvgpu.arch.cluster_arrive() {relaxed = true} : () -> ()
      %55 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
      %56 = arith.shrui %55, %c5_i32 : i32
      %57 = arith.cmpi eq, %56, %c0_i32 : i32
      scf.if %57 {
        %64 = cute_nvgpu.arch.elect_one() : () -> i1
        scf.if %64 {
          %65 = arith.muli %raster_3, %c8_i32 : i32
          %group = arith.divui %tile, %65 : i32
          %inside = arith.remui %tile, %65 : i32
          %first = arith.muli %group, %c8_i32 : i32
          %66 = arith.subi %raster, %first : i32
          %rows = arith.minsi %66, %c8_i32 : i32
          %column = arith.divui %inside, %rows : i32
          %row = arith.remui %inside, %rows : i32
          %row_4 = arith.addi %first, %row : i32
          %67 = arith.andi %group, %c1_i32 : i32
          %68 = arith.cmpi ne, %67, %c0_i32 : i32
          %69 = arith.subi %raster_3, %c1_i32 : i32
          %70 = arith.subi %69, %column : i32
          %column_5 = arith.select %68, %70, %column : i32
          %71 = arith.muli %row_4, %c2_i32 : i32
          %row_6 = arith.addi %71, %24 : i32
          %72 = arith.minui %k_tiles, %c4_i32 : i32
          scf.for %i = %c0_i32 to %72 step %c1_i32 : i32 {
            %73 = cute.make_int_tuple(%i) : (i32) -> !cute.int_tuple<"?">
            %74 = cute.add_offset(%barrier_storage, %73) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_arrive_expect_tx(%74, %c49152_i32) : (!cute.ptr<i64, smem>, i32) -> ()
            %75 = cute.make_int_tuple(%i) : (i32) -> !cute.int_tuple<"?">
            %76 = cute.add_offset(%barrier_storage, %75) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            %77 = cute.make_coord(%row_6, %i) : (i32, i32) -> !cute.coord<"(_,?,?)">
            %78 = cute.slice(%34, %77) : !coord_tensor_2, !cute.coord<"(_,?,?)">
            %79 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?)">
            %80 = cute.slice(%32, %79) : !memref_2, !cute.coord<"(_,?)">
            %81 = cute.atom.set_value(%tma_a, %76) {field = tma_bar} : (!tma_a, !cute.ptr<i64, smem>) -> !tma_a
            cute.copy(%81, %78, %80) : (!tma_a, !coord_tensor_7, !memref_7) -> ()
          }
        }
      }
      cute_nvgpu.arch.cluster_wait() : () -> ()
      %58 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
      %59 = arith.shrui %58, %c7_i32 : i32
      %warp_group = cute_nvgpu.arch.shfl_sync(%59, %c0_i32) {mode = "idx", width = 32 : i32} : (i32, i32) -> i32
      %60 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
      %61 = arith.shrui %60, %c5_i32 : i32
      %warp = arith.andi %61, %c3_i32 : i32
      %62 = arith.cmpi eq, %warp_group, %c0_i32 : i32
      %63:6 = scf.if %62 -> (i32, i32, i32, i32, i32, i32) {
        cute_nvgpu.arch.setmaxnreg() {action = "decrease", count = 40 : i32} : () -> ()
        %64 = arith.cmpi eq, %warp, %c0_i32 : i32
        %65 = scf.if %64 -> (i1) {
          %67 = cute_nvgpu.arch.elect_one() : () -> i1
          scf.yield %67 : i1
        } else {
          scf.yield %false : i1
        }
        %66:3 = scf.if %65 -> (i32, i32, i32) {
          %done = arith.minui %k_tiles, %c4_i32 : i32
          %67 = arith.muli %raster_3, %c8_i32 : i32
          %group = arith.divui %tile, %67 : i32
          %inside = arith.remui %tile, %67 : i32
          %first = arith.muli %group, %c8_i32 : i32
          %68 = arith.subi %raster, %first : i32
          %rows = arith.minsi %68, %c8_i32 : i32
          %column = arith.divui %inside, %rows : i32
          %row = arith.remui %inside, %rows : i32
          %row_4 = arith.addi %first, %row : i32
          %69 = arith.andi %group, %c1_i32 : i32
          %70 = arith.cmpi ne, %69, %c0_i32 : i32
          %71 = arith.subi %raster_3, %c1_i32 : i32
          %72 = arith.subi %71, %column : i32
          %column_5 = arith.select %70, %72, %column : i32
          %73 = arith.muli %row_4, %c2_i32 : i32
          %row_6 = arith.addi %73, %24 : i32
          scf.for %i = %c0_i32 to %done step %c1_i32 : i32 {
            %79 = cute.make_int_tuple(%i) : (i32) -> !cute.int_tuple<"?">
            %80 = cute.add_offset(%barrier_storage, %79) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            %81 = cute.make_coord(%column_5, %i) : (i32, i32) -> !cute.coord<"(_,?,?)">
            %82 = cute.slice(%46, %81) : !coord_tensor_6, !cute.coord<"(_,?,?)">
            %83 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?)">
            %84 = cute.slice(%43, %83) : !memref_5, !cute.coord<"(_,?)">
            %85 = cute.atom.set_value(%tma_b, %80) {field = tma_bar} : (!tma_a, !cute.ptr<i64, smem>) -> !tma_a
            %86 = cute.atom.set_value(%85, %c3_i16) {field = multicast_mask} : (!tma_a, i16) -> !tma_a
            cute.copy(%86, %82, %84) : (!tma_a, !coord_tensor_8, !memref_8) -> ()
          }
          %74 = arith.andi %done, %c3_i32 : i32
          %75 = arith.shrui %done, %c2_i32 : i32
          %76 = arith.andi %75, %c1_i32 : i32
          %77 = arith.xori %c1_i32, %76 : i32
          %tiles = arith.muli %raster, %raster_3 : i32
          %78:5 = scf.for %tile_7 = %tile to %tiles step %27 iter_args(%arg0 = %false, %arg1 = %done, %arg2 = %done, %arg3 = %74, %arg4 = %77) -> (i1, i32, i32, i32, i32) : i32 {
            %79 = arith.muli %raster_3, %c8_i32 : i32
            %group_8 = arith.divui %tile_7, %79 : i32
            %inside_9 = arith.remui %tile_7, %79 : i32
            %first_10 = arith.muli %group_8, %c8_i32 : i32
            %80 = arith.subi %raster, %first_10 : i32
            %rows_11 = arith.minsi %80, %c8_i32 : i32
            %column_12 = arith.divui %inside_9, %rows_11 : i32
            %row_13 = arith.remui %inside_9, %rows_11 : i32
            %row_14 = arith.addi %first_10, %row_13 : i32
            %81 = arith.andi %group_8, %c1_i32 : i32
            %82 = arith.cmpi ne, %81, %c0_i32 : i32
            %83 = arith.subi %raster_3, %c1_i32 : i32
            %84 = arith.subi %83, %column_12 : i32
            %column_15 = arith.select %82, %84, %column_12 : i32
            %85 = arith.muli %row_14, %c2_i32 : i32
            %row_16 = arith.addi %85, %24 : i32
            %86:3 = scf.for %i = %arg1 to %k_tiles step %c1_i32 iter_args(%arg5 = %arg2, %arg6 = %arg3, %arg7 = %arg4) -> (i32, i32, i32) : i32 {
              %87 = arith.subi %k_tiles, %c1_i32 : i32
              %88 = arith.subi %87, %i : i32
              %89 = arith.select %arg0, %88, %i : i32
              %90 = arith.addi %arg6, %c4_i32 : i32
              %91 = cute.make_int_tuple(%90) : (i32) -> !cute.int_tuple<"?">
              %92 = cute.add_offset(%barrier_storage, %91) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
              cute_nvgpu.arch.mbarrier_wait(%92, %arg7) : (!cute.ptr<i64, smem>, i32) -> ()
              %93 = cute.make_int_tuple(%arg6) : (i32) -> !cute.int_tuple<"?">
              %94 = cute.add_offset(%barrier_storage, %93) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
              cute_nvgpu.arch.mbarrier_arrive_expect_tx(%94, %c49152_i32) : (!cute.ptr<i64, smem>, i32) -> ()
              %following = arith.addi %arg6, %c1_i32 : i32
              %wraps = arith.cmpi eq, %following, %c4_i32 : i32
              %95 = arith.select %wraps, %c0_i32, %following : i32
              %96 = arith.select %wraps, %c1_i32, %c0_i32 : i32
              %97 = arith.xori %arg7, %96 : i32
              %98 = arith.addi %arg5, %c1_i32 : i32
              %99 = cute.make_int_tuple(%arg6) : (i32) -> !cute.int_tuple<"?">
              %100 = cute.add_offset(%barrier_storage, %99) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
              %101 = cute.make_coord(%row_16, %89) : (i32, i32) -> !cute.coord<"(_,?,?)">
              %102 = cute.slice(%34, %101) : !coord_tensor_2, !cute.coord<"(_,?,?)">
              %103 = cute.make_coord(%arg6) : (i32) -> !cute.coord<"(_,?)">
              %104 = cute.slice(%32, %103) : !memref_2, !cute.coord<"(_,?)">
              %105 = cute.atom.set_value(%tma_a, %100) {field = tma_bar} : (!tma_a, !cute.ptr<i64, smem>) -> !tma_a
              cute.copy(%105, %102, %104) : (!tma_a, !coord_tensor_7, !memref_7) -> ()
              %106 = cute.make_coord(%column_15, %89) : (i32, i32) -> !cute.coord<"(_,?,?)">
              %107 = cute.slice(%46, %106) : !coord_tensor_6, !cute.coord<"(_,?,?)">
              %108 = cute.make_coord(%arg6) : (i32) -> !cute.coord<"(_,?)">
              %109 = cute.slice(%43, %108) : !memref_5, !cute.coord<"(_,?)">
              %110 = cute.atom.set_value(%tma_b, %100) {field = tma_bar} : (!tma_a, !cute.ptr<i64, smem>) -> !tma_a
              %111 = cute.atom.set_value(%110, %c3_i16) {field = multicast_mask} : (!tma_a, i16) -> !tma_a
              cute.copy(%111, %107, %109) : (!tma_a, !coord_tensor_8, !memref_8) -> ()
              scf.yield %98, %95, %97 : i32, i32, i32
            }
            %backwards = arith.xori %arg0, %true : i1
            scf.yield %backwards, %c0_i32, %86#0, %86#1, %86#2 : i1, i32, i32, i32, i32
          }
          scf.yield %78#2, %78#3, %78#4 : i32, i32, i32
        } else {
          scf.yield %c0_i32, %c0_i32, %c1_i32 : i32, i32, i32
        }
        scf.yield %66#0, %66#1, %66#2, %c0_i32, %c0_i32, %c0_i32 : i32, i32, i32, i32, i32, i32
      } else {
        cute_nvgpu.arch.setmaxnreg() {action = "increase", count = 232 : i32} : () -> ()
        %first = arith.subi %warp_group, %c1_i32 : i32
        %64 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
        %65 = arith.cmpi eq, %64, %c128_i32 : i32
        scf.if %65 {
          cute_nvgpu.arch.prefetch_tensormap(%tmas_c) : (!tmas_c) -> ()
        }
        %66 = arith.muli %first, %c128_i32 : i32
        %67 = cute.assume(%66) : (i32) -> !cute.i32<divby 128>
        %68 = cute.make_coord(%67) : (!cute.i32<divby 128>) -> !cute.coord<"?{div=128}">
        %69 = cute.tiled.mma.partition_A(%10, %sA, %68) : (!tiled_mma, !sA, !cute.coord<"?{div=128}">) -> !rA
        %rA = cute.tiled.mma.make_fragment_A(%10, %69) : (!tiled_mma, !rA) -> !rA
        %70 = cute.assume(%66) : (i32) -> !cute.i32<divby 128>
        %71 = cute.make_coord(%70) : (!cute.i32<divby 128>) -> !cute.coord<"?{div=128}">
        %72 = cute.tiled.mma.partition_B(%10, %sB, %71) : (!tiled_mma, !sB, !cute.coord<"?{div=128}">) -> !rB
        %rB = cute.tiled.mma.make_fragment_B(%10, %72) : (!tiled_mma, !rB) -> !rB
        // The tensor-core accumulators: one, or two that alternate.
        %acc = cute.tiled.mma.make_fragment_C(%10, %11) : (!tiled_mma, !cute.shape<"((2,2,32),1,1)">) -> !acc
        %start = cute.get_iter(%acc) : !acc
        %start_4 = cute.get_iter(%acc) : !acc
        %73 = cute_nvgpu.arch.lane_id() : () -> i32
        %74 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
        %75 = arith.shrui %74, %c5_i32 : i32
        %76 = arith.andi %75, %c3_i32 : i32
        %77 = builtin.unrealized_conversion_cast %staging : !staging to !llvm.ptr<3>
        %start_5 = builtin.unrealized_conversion_cast %77 : !llvm.ptr<3> to !start_2
        %78 = cute.make_view(%start_5, %12) : !memref_9
        %79 = cute.make_fragment_like(%acc) [f16] : !acc -> !memref_10
        %80 = cute.get_iter(%79) : !memref_10
        %81 = cute.get_iter(%79) : !memref_10
        %82 = cute.get_iter(%79) : !memref_10
        %83 = cute.get_iter(%79) : !memref_10
        %84 = cute.get_iter(%79) : !memref_10
        %85 = cute.get_iter(%79) : !memref_10
        %86 = cute.get_iter(%79) : !memref_10
        %87 = cute.get_iter(%79) : !memref_10
        %88 = cute.get_iter(%79) : !memref_10
        %89 = cute.get_iter(%79) : !memref_10
        %90 = cute.get_iter(%79) : !memref_10
        %91 = cute.get_iter(%79) : !memref_10
        %92 = cute.get_iter(%79) : !memref_10
        %93 = cute.get_iter(%79) : !memref_10
        %94 = cute.get_iter(%79) : !memref_10
        %95 = cute.get_iter(%79) : !memref_10
        %96 = cute.get_iter(%79) : !memref_10
        %97 = cute.get_iter(%79) : !memref_10
        %98 = cute.get_iter(%79) : !memref_10
        %99 = cute.get_iter(%79) : !memref_10
        %tiles = arith.muli %raster, %raster_3 : i32
        %100:5 = scf.for %tile_15 = %tile to %tiles step %27 iter_args(%arg0 = %c0_i32, %arg1 = %c0_i32, %arg2 = %c0_i32, %arg3 = %c0_i32, %arg4 = %c0_i32) -> (i32, i32, i32, i32, i32) : i32 {
          %152 = arith.muli %raster_3, %c8_i32 : i32
          %group = arith.divui %tile_15, %152 : i32
          %inside = arith.remui %tile_15, %152 : i32
          %first_16 = arith.muli %group, %c8_i32 : i32
          %153 = arith.subi %raster, %first_16 : i32
          %rows = arith.minsi %153, %c8_i32 : i32
          %column = arith.divui %inside, %rows : i32
          %row = arith.remui %inside, %rows : i32
          %row_17 = arith.addi %first_16, %row : i32
          %154 = arith.andi %group, %c1_i32 : i32
          %155 = arith.cmpi ne, %154, %c0_i32 : i32
          %156 = arith.subi %raster_3, %c1_i32 : i32
          %157 = arith.subi %156, %column : i32
          %column_18 = arith.select %155, %157, %column : i32
          %158 = arith.muli %row_17, %c2_i32 : i32
          %row_19 = arith.addi %158, %24 : i32
          %159 = cute.make_int_tuple(%arg3) : (i32) -> !cute.int_tuple<"?">
          %160 = cute.add_offset(%barrier_storage, %159) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_wait(%160, %arg4) : (!cute.ptr<i64, smem>, i32) -> ()
          %following = arith.addi %arg3, %c1_i32 : i32
          %wraps = arith.cmpi eq, %following, %c4_i32 : i32
          %161 = arith.select %wraps, %c0_i32, %following : i32
          %162 = arith.select %wraps, %c1_i32, %c0_i32 : i32
          %163 = arith.xori %arg4, %162 : i32
          %164 = arith.addi %arg2, %c1_i32 : i32
          cute_nvgpu.arch.wgmma_fence() : () -> ()
          %165 = cute.make_coord(%arg3) : (i32) -> !cute.coord<"(_,_,_,?)">
          %166 = cute.slice(%rA, %165) : !rA, !cute.coord<"(_,_,_,?)">
          %167 = cute.make_coord(%arg3) : (i32) -> !cute.coord<"(_,_,_,?)">
          %168 = cute.slice(%rB, %167) : !rB, !cute.coord<"(_,_,_,?)">
          cute.gemm(%10, %acc, %166, %168) : (!tiled_mma, !acc, !memref_11, !memref_12) -> ()
          cute_nvgpu.arch.wgmma_commit_group() : () -> ()
          %169 = arith.cmpi ne, %tile_15, %tile : i32
          scf.if %169 {
            %values_24 = cute.make_view(%91, %14) : !values
            // The previous tile may have used the first chunk's buffer last. Extra outputs precede C.
            %slot_25 = arith.muli %first, %c2_i32 : i32
            %199 = arith.muli %arg0, %c128_i32 : i32
            %200 = arith.muli %first, %c64_i32 : i32
            %201 = arith.addi %199, %200 : i32
            %202 = arith.muli %arg1, %c256_i32 : i32
            %203 = arith.cmpi eq, %73, %c0_i32 : i32
            scf.if %203 {
              cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
            }
            cute_nvgpu.arch.syncwarp() : () -> ()
            // 0 for every tile, since rows are below 2^31, but ptxas does not know it and cannot hoist the addresses
            %204 = cute.assume(%slot_25) : (i32) -> !cute.i32<divby 2>
            %205 = cute.make_coord(%76, %204) : (i32, !cute.i32<divby 2>) -> !coord
            %here_26 = cute.slice(%78, %205) : !memref_9, !coord
            %206 = cute.tiled.copy.retile(%16, %values_24) : (!tiled_copy, !values) -> !memref_13
            %207 = cute.make_coord(%73) : (i32) -> !cute.coord<"?">
            %208 = cute.tiled.copy.partition_D(%16, %here_26, %207) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_14
            cute.copy(%15, %206, %208) : (!stsm, !memref_13, !memref_14) -> ()
            cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
            cute_nvgpu.arch.syncwarp() : () -> ()
            %209 = arith.cmpi eq, %73, %c0_i32 : i32
            scf.if %209 {
              %223 = arith.muli %76, %c16_i32 : i32
              %224 = arith.addi %201, %223 : i32
              %225 = cute.assume(%224) : (i32) -> !cute.i32<divby 16>
              %226 = cute.assume(%202) : (i32) -> !cute.i32<divby 256>
              %227 = cute.make_coord(%225, %226) : (!cute.i32<divby 16>, !cute.i32<divby 256>) -> !coord_2
              %228 = cute.domain_offset(%tmas_c_2, %227) : (!tma_a_2, !coord_2) -> !coord_tensor_9
              %tiles_30 = cute.flat_divide(%228, %17) : (!coord_tensor_9, !cute.shape<"(16,64)">) -> !tiles
              %229 = cute.get_layout(%tiles_30) : !tiles
              %230:2 = cute.get_scalars<{only_dynamic}> (%229) : !layout_3
              %source = cute.group_modes<0, 2> (%here_26) : (!here) -> !source
              %231 = cute.slice(%tiles_30, %18) : !tiles, !cute.coord<"(_,_,0,0)">
              %target = cute.group_modes<0, 2> (%231) : (!coord_tensor_10) -> !target
              cute.copy(%tmas_c, %source, %target) : (!tmas_c, !source, !target) -> ()
              cute_nvgpu.arch.bulk_commit_group() : () -> ()
            }
            %210 = cute.add_offset(%90, %19) : (!ptr, !cute.int_tuple<"32">) -> !ptr
            %values_27 = cute.make_view(%210, %14) : !values
            %211 = arith.muli %first, %c2_i32 : i32
            %slot_28 = arith.addi %211, %c1_i32 : i32
            %212 = arith.muli %arg0, %c128_i32 : i32
            %213 = arith.muli %first, %c64_i32 : i32
            %214 = arith.addi %212, %213 : i32
            %215 = arith.muli %arg1, %c256_i32 : i32
            %216 = arith.addi %215, %c64_i32 : i32
            %217 = arith.cmpi eq, %73, %c0_i32 : i32
            scf.if %217 {
              cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
            }
            cute_nvgpu.arch.syncwarp() : () -> ()
            %218 = cute.make_coord(%76, %slot_28) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
            %here_29 = cute.slice(%78, %218) : !memref_9, !cute.coord<"(_,_,?,?)">
            %219 = cute.tiled.copy.retile(%16, %values_27) : (!tiled_copy, !values) -> !memref_13
            %220 = cute.make_coord(%73) : (i32) -> !cute.coord<"?">
            %221 = cute.tiled.copy.partition_D(%16, %here_29, %220) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_14
            cute.copy(%15, %219, %221) : (!stsm, !memref_13, !memref_14) -> ()
            cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
            cute_nvgpu.arch.syncwarp() : () -> ()
            %222 = arith.cmpi eq, %73, %c0_i32 : i32
            scf.if %222 {
              %223 = arith.muli %76, %c16_i32 : i32
              %224 = arith.addi %214, %223 : i32
              %225 = cute.assume(%224) : (i32) -> !cute.i32<divby 16>
              %226 = cute.assume(%216) : (i32) -> !cute.i32<divby 64>
              %227 = cute.make_coord(%225, %226) : (!cute.i32<divby 16>, !cute.i32<divby 64>) -> !coord_3
              %228 = cute.domain_offset(%tmas_c_2, %227) : (!tma_a_2, !coord_3) -> !coord_tensor_11
              %tiles_30 = cute.flat_divide(%228, %17) : (!coord_tensor_11, !cute.shape<"(16,64)">) -> !tiles_2
              %229 = cute.get_layout(%tiles_30) : !tiles_2
              %230:2 = cute.get_scalars<{only_dynamic}> (%229) : !layout_3
              %source = cute.group_modes<0, 2> (%here_29) : (!here) -> !source
              %231 = cute.slice(%tiles_30, %18) : !tiles_2, !cute.coord<"(_,_,0,0)">
              %target = cute.group_modes<0, 2> (%231) : (!coord_tensor_12) -> !target_2
              cute.copy(%tmas_c, %source, %target) : (!tmas_c, !source, !target_2) -> ()
              cute_nvgpu.arch.bulk_commit_group() : () -> ()
            }
          }
          %170 = arith.minui %k_tiles, %c2_i32 : i32
          %171:6 = scf.for %arg5 = %c1_i32 to %170 step %c1_i32 iter_args(%arg6 = %arg3, %arg7 = %arg4, %arg8 = %arg2, %arg9 = %164, %arg10 = %161, %arg11 = %163) -> (i32, i32, i32, i32, i32, i32) : i32 {
            %199 = cute.make_int_tuple(%arg10) : (i32) -> !cute.int_tuple<"?">
            %200 = cute.add_offset(%barrier_storage, %199) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_wait(%200, %arg11) : (!cute.ptr<i64, smem>, i32) -> ()
            %following_24 = arith.addi %arg10, %c1_i32 : i32
            %wraps_25 = arith.cmpi eq, %following_24, %c4_i32 : i32
            %201 = arith.select %wraps_25, %c0_i32, %following_24 : i32
            %202 = arith.select %wraps_25, %c1_i32, %c0_i32 : i32
            %203 = arith.xori %arg11, %202 : i32
            %204 = arith.addi %arg9, %c1_i32 : i32
            cute_nvgpu.arch.wgmma_fence() : () -> ()
            %205 = cute.make_coord(%arg10) : (i32) -> !cute.coord<"(_,_,_,?)">
            %206 = cute.slice(%rA, %205) : !rA, !cute.coord<"(_,_,_,?)">
            %207 = cute.make_coord(%arg10) : (i32) -> !cute.coord<"(_,_,_,?)">
            %208 = cute.slice(%rB, %207) : !rB, !cute.coord<"(_,_,_,?)">
            cute.gemm(%10, %acc, %206, %208, %acc) : (!tiled_mma, !acc, !memref_11, !memref_12, !acc) -> ()
            cute_nvgpu.arch.wgmma_commit_group() : () -> ()
            cute_nvgpu.arch.wgmma_wait_group() {n = 1 : i32} : () -> ()
            %209 = arith.addi %arg6, %c4_i32 : i32
            %210 = cute.make_int_tuple(%209) : (i32) -> !cute.int_tuple<"?">
            %211 = cute.add_offset(%barrier_storage, %210) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_arrive_cluster(%211, %51, %50) : (!cute.ptr<i64, smem>, i32, i1) -> ()
            scf.yield %arg10, %arg11, %arg9, %204, %201, %203 : i32, i32, i32, i32, i32, i32
          }
          %172 = arith.cmpi ne, %tile_15, %tile : i32
          scf.if %172 {
            %199 = cute.add_offset(%89, %21) : (!ptr, !cute.int_tuple<"64">) -> !ptr
            %values_24 = cute.make_view(%199, %14) : !values
            %slot_25 = arith.muli %first, %c2_i32 : i32
            %200 = arith.muli %arg0, %c128_i32 : i32
            %201 = arith.muli %first, %c64_i32 : i32
            %202 = arith.addi %200, %201 : i32
            %203 = arith.muli %arg1, %c256_i32 : i32
            %204 = arith.addi %203, %c128_i32 : i32
            %205 = arith.cmpi eq, %73, %c0_i32 : i32
            scf.if %205 {
              cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
            }
            cute_nvgpu.arch.syncwarp() : () -> ()
            %206 = cute.assume(%slot_25) : (i32) -> !cute.i32<divby 2>
            %207 = cute.make_coord(%76, %206) : (i32, !cute.i32<divby 2>) -> !coord
            %here_26 = cute.slice(%78, %207) : !memref_9, !coord
            %208 = cute.tiled.copy.retile(%16, %values_24) : (!tiled_copy, !values) -> !memref_13
            %209 = cute.make_coord(%73) : (i32) -> !cute.coord<"?">
            %210 = cute.tiled.copy.partition_D(%16, %here_26, %209) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_14
            cute.copy(%15, %208, %210) : (!stsm, !memref_13, !memref_14) -> ()
            cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
            cute_nvgpu.arch.syncwarp() : () -> ()
            %211 = arith.cmpi eq, %73, %c0_i32 : i32
            scf.if %211 {
              %225 = arith.muli %76, %c16_i32 : i32
              %226 = arith.addi %202, %225 : i32
              %227 = cute.assume(%226) : (i32) -> !cute.i32<divby 16>
              %228 = cute.assume(%204) : (i32) -> !cute.i32<divby 128>
              %229 = cute.make_coord(%227, %228) : (!cute.i32<divby 16>, !cute.i32<divby 128>) -> !coord_4
              %230 = cute.domain_offset(%tmas_c_2, %229) : (!tma_a_2, !coord_4) -> !coord_tensor_13
              %tiles_30 = cute.flat_divide(%230, %17) : (!coord_tensor_13, !cute.shape<"(16,64)">) -> !tiles_3
              %231 = cute.get_layout(%tiles_30) : !tiles_3
              %232:2 = cute.get_scalars<{only_dynamic}> (%231) : !layout_3
              %source = cute.group_modes<0, 2> (%here_26) : (!here) -> !source
              %233 = cute.slice(%tiles_30, %18) : !tiles_3, !cute.coord<"(_,_,0,0)">
              %target = cute.group_modes<0, 2> (%233) : (!coord_tensor_14) -> !target_3
              cute.copy(%tmas_c, %source, %target) : (!tmas_c, !source, !target_3) -> ()
              cute_nvgpu.arch.bulk_commit_group() : () -> ()
            }
            %212 = cute.add_offset(%88, %22) : (!ptr, !cute.int_tuple<"96">) -> !ptr
            %values_27 = cute.make_view(%212, %14) : !values
            %213 = arith.muli %first, %c2_i32 : i32
            %slot_28 = arith.addi %213, %c1_i32 : i32
            %214 = arith.muli %arg0, %c128_i32 : i32
            %215 = arith.muli %first, %c64_i32 : i32
            %216 = arith.addi %214, %215 : i32
            %217 = arith.muli %arg1, %c256_i32 : i32
            %218 = arith.addi %217, %c192_i32 : i32
            %219 = arith.cmpi eq, %73, %c0_i32 : i32
            scf.if %219 {
              cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
            }
            cute_nvgpu.arch.syncwarp() : () -> ()
            %220 = cute.make_coord(%76, %slot_28) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
            %here_29 = cute.slice(%78, %220) : !memref_9, !cute.coord<"(_,_,?,?)">
            %221 = cute.tiled.copy.retile(%16, %values_27) : (!tiled_copy, !values) -> !memref_13
            %222 = cute.make_coord(%73) : (i32) -> !cute.coord<"?">
            %223 = cute.tiled.copy.partition_D(%16, %here_29, %222) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_14
            cute.copy(%15, %221, %223) : (!stsm, !memref_13, !memref_14) -> ()
            cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
            cute_nvgpu.arch.syncwarp() : () -> ()
            %224 = arith.cmpi eq, %73, %c0_i32 : i32
            scf.if %224 {
              %225 = arith.muli %76, %c16_i32 : i32
              %226 = arith.addi %216, %225 : i32
              %227 = cute.assume(%226) : (i32) -> !cute.i32<divby 16>
              %228 = cute.assume(%218) : (i32) -> !cute.i32<divby 64>
              %229 = cute.make_coord(%227, %228) : (!cute.i32<divby 16>, !cute.i32<divby 64>) -> !coord_3
              %230 = cute.domain_offset(%tmas_c_2, %229) : (!tma_a_2, !coord_3) -> !coord_tensor_11
              %tiles_30 = cute.flat_divide(%230, %17) : (!coord_tensor_11, !cute.shape<"(16,64)">) -> !tiles_2
              %231 = cute.get_layout(%tiles_30) : !tiles_2
              %232:2 = cute.get_scalars<{only_dynamic}> (%231) : !layout_3
              %source = cute.group_modes<0, 2> (%here_29) : (!here) -> !source
              %233 = cute.slice(%tiles_30, %18) : !tiles_2, !cute.coord<"(_,_,0,0)">
              %target = cute.group_modes<0, 2> (%233) : (!coord_tensor_12) -> !target_2
              cute.copy(%tmas_c, %source, %target) : (!tmas_c, !source, !target_2) -> ()
              cute_nvgpu.arch.bulk_commit_group() : () -> ()
            }
          }
          %173:6 = scf.for %arg5 = %c2_i32 to %k_tiles step %c1_i32 iter_args(%arg6 = %171#0, %arg7 = %171#1, %arg8 = %171#2, %arg9 = %171#3, %arg10 = %171#4, %arg11 = %171#5) -> (i32, i32, i32, i32, i32, i32) : i32 {
            %199 = cute.make_int_tuple(%arg10) : (i32) -> !cute.int_tuple<"?">
            %200 = cute.add_offset(%barrier_storage, %199) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_wait(%200, %arg11) : (!cute.ptr<i64, smem>, i32) -> ()
            %following_24 = arith.addi %arg10, %c1_i32 : i32
            %wraps_25 = arith.cmpi eq, %following_24, %c4_i32 : i32
            %201 = arith.select %wraps_25, %c0_i32, %following_24 : i32
            %202 = arith.select %wraps_25, %c1_i32, %c0_i32 : i32
            %203 = arith.xori %arg11, %202 : i32
            %204 = arith.addi %arg9, %c1_i32 : i32
            cute_nvgpu.arch.wgmma_fence() : () -> ()
            %205 = cute.make_coord(%arg10) : (i32) -> !cute.coord<"(_,_,_,?)">
            %206 = cute.slice(%rA, %205) : !rA, !cute.coord<"(_,_,_,?)">
            %207 = cute.make_coord(%arg10) : (i32) -> !cute.coord<"(_,_,_,?)">
            %208 = cute.slice(%rB, %207) : !rB, !cute.coord<"(_,_,_,?)">
            cute.gemm(%10, %acc, %206, %208, %acc) : (!tiled_mma, !acc, !memref_11, !memref_12, !acc) -> ()
            cute_nvgpu.arch.wgmma_commit_group() : () -> ()
            cute_nvgpu.arch.wgmma_wait_group() {n = 1 : i32} : () -> ()
            %209 = arith.addi %arg6, %c4_i32 : i32
            %210 = cute.make_int_tuple(%209) : (i32) -> !cute.int_tuple<"?">
            %211 = cute.add_offset(%barrier_storage, %210) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_arrive_cluster(%211, %51, %50) : (!cute.ptr<i64, smem>, i32, i1) -> ()
            scf.yield %arg10, %arg11, %arg9, %204, %201, %203 : i32, i32, i32, i32, i32, i32
          }
          cute_nvgpu.arch.wgmma_wait_group(%acc) {n = 0 : i32} : (!acc) -> ()
          %174 = arith.addi %173#0, %c4_i32 : i32
          %175 = cute.make_int_tuple(%174) : (i32) -> !cute.int_tuple<"?">
          %176 = cute.add_offset(%barrier_storage, %175) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_arrive_cluster(%176, %51, %50) : (!cute.ptr<i64, smem>, i32, i1) -> ()
          %values_20 = cute.make_view(%start, %23) : !values_2
          %177 = cute.get_iter(%values_20) : !values_2
          %178 = cute.get_iter(%values_20) : !values_2
          %179 = cute.get_iter(%values_20) : !values_2
          %180 = cute.get_iter(%values_20) : !values_2
          %sums = cute.make_view(%180, %14) : !sums
          %181 = cute.make_view(%87, %14) : !values
          %182 = cute.memref.load_vec %sums : !sums
          %183 = arith.truncf %182 : vector<32xf32> to vector<32xf16>
          cute.memref.store_vec %183, %181 : !values
          %184 = cute.add_offset(%179, %19) : (!start, !cute.int_tuple<"32">) -> !start
          %sums_21 = cute.make_view(%184, %14) : !sums
          %185 = cute.add_offset(%86, %19) : (!ptr, !cute.int_tuple<"32">) -> !ptr
          %186 = cute.make_view(%185, %14) : !values
          %187 = cute.memref.load_vec %sums_21 : !sums
          %188 = arith.truncf %187 : vector<32xf32> to vector<32xf16>
          cute.memref.store_vec %188, %186 : !values
          %189 = cute.add_offset(%178, %21) : (!start, !cute.int_tuple<"64">) -> !start
          %sums_22 = cute.make_view(%189, %14) : !sums
          %190 = cute.add_offset(%85, %21) : (!ptr, !cute.int_tuple<"64">) -> !ptr
          %191 = cute.make_view(%190, %14) : !values
          %192 = cute.memref.load_vec %sums_22 : !sums
          %193 = arith.truncf %192 : vector<32xf32> to vector<32xf16>
          cute.memref.store_vec %193, %191 : !values
          %194 = cute.add_offset(%177, %22) : (!start, !cute.int_tuple<"96">) -> !start
          %sums_23 = cute.make_view(%194, %14) : !sums
          %195 = cute.add_offset(%84, %22) : (!ptr, !cute.int_tuple<"96">) -> !ptr
          %196 = cute.make_view(%195, %14) : !values
          %197 = cute.memref.load_vec %sums_23 : !sums
          %198 = arith.truncf %197 : vector<32xf32> to vector<32xf16>
          cute.memref.store_vec %198, %196 : !values
          scf.yield %row_19, %column_18, %173#3, %173#4, %173#5 : i32, i32, i32, i32, i32
        }
        %values = cute.make_view(%83, %14) : !values
        %slot = arith.muli %first, %c2_i32 : i32
        %101 = arith.muli %100#0, %c128_i32 : i32
        %102 = arith.muli %first, %c64_i32 : i32
        %103 = arith.addi %101, %102 : i32
        %104 = arith.muli %100#1, %c256_i32 : i32
        %105 = arith.cmpi eq, %73, %c0_i32 : i32
        scf.if %105 {
          cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
        }
        cute_nvgpu.arch.syncwarp() : () -> ()
        %106 = cute.assume(%slot) : (i32) -> !cute.i32<divby 2>
        %107 = cute.make_coord(%76, %106) : (i32, !cute.i32<divby 2>) -> !coord
        %here = cute.slice(%78, %107) : !memref_9, !coord
        %108 = cute.tiled.copy.retile(%16, %values) : (!tiled_copy, !values) -> !memref_13
        %109 = cute.make_coord(%73) : (i32) -> !cute.coord<"?">
        %110 = cute.tiled.copy.partition_D(%16, %here, %109) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_14
        cute.copy(%15, %108, %110) : (!stsm, !memref_13, !memref_14) -> ()
        cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
        cute_nvgpu.arch.syncwarp() : () -> ()
        %111 = arith.cmpi eq, %73, %c0_i32 : i32
        scf.if %111 {
          %152 = arith.muli %76, %c16_i32 : i32
          %153 = arith.addi %103, %152 : i32
          %154 = cute.assume(%153) : (i32) -> !cute.i32<divby 16>
          %155 = cute.assume(%104) : (i32) -> !cute.i32<divby 256>
          %156 = cute.make_coord(%154, %155) : (!cute.i32<divby 16>, !cute.i32<divby 256>) -> !coord_2
          %157 = cute.domain_offset(%tmas_c_2, %156) : (!tma_a_2, !coord_2) -> !coord_tensor_9
          %tiles_15 = cute.flat_divide(%157, %17) : (!coord_tensor_9, !cute.shape<"(16,64)">) -> !tiles
          %158 = cute.get_layout(%tiles_15) : !tiles
          %159:2 = cute.get_scalars<{only_dynamic}> (%158) : !layout_3
          %source = cute.group_modes<0, 2> (%here) : (!here) -> !source
          %160 = cute.slice(%tiles_15, %18) : !tiles, !cute.coord<"(_,_,0,0)">
          %target = cute.group_modes<0, 2> (%160) : (!coord_tensor_10) -> !target
          cute.copy(%tmas_c, %source, %target) : (!tmas_c, !source, !target) -> ()
          cute_nvgpu.arch.bulk_commit_group() : () -> ()
        }
        %112 = cute.add_offset(%82, %19) : (!ptr, !cute.int_tuple<"32">) -> !ptr
        %values_6 = cute.make_view(%112, %14) : !values
        %113 = arith.muli %first, %c2_i32 : i32
        %slot_7 = arith.addi %113, %c1_i32 : i32
        %114 = arith.muli %100#0, %c128_i32 : i32
        %115 = arith.muli %first, %c64_i32 : i32
        %116 = arith.addi %114, %115 : i32
        %117 = arith.muli %100#1, %c256_i32 : i32
        %118 = arith.addi %117, %c64_i32 : i32
        %119 = arith.cmpi eq, %73, %c0_i32 : i32
        scf.if %119 {
          cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
        }
        cute_nvgpu.arch.syncwarp() : () -> ()
        %120 = cute.make_coord(%76, %slot_7) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
        %here_8 = cute.slice(%78, %120) : !memref_9, !cute.coord<"(_,_,?,?)">
        %121 = cute.tiled.copy.retile(%16, %values_6) : (!tiled_copy, !values) -> !memref_13
        %122 = cute.make_coord(%73) : (i32) -> !cute.coord<"?">
        %123 = cute.tiled.copy.partition_D(%16, %here_8, %122) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_14
        cute.copy(%15, %121, %123) : (!stsm, !memref_13, !memref_14) -> ()
        cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
        cute_nvgpu.arch.syncwarp() : () -> ()
        %124 = arith.cmpi eq, %73, %c0_i32 : i32
        scf.if %124 {
          %152 = arith.muli %76, %c16_i32 : i32
          %153 = arith.addi %116, %152 : i32
          %154 = cute.assume(%153) : (i32) -> !cute.i32<divby 16>
          %155 = cute.assume(%118) : (i32) -> !cute.i32<divby 64>
          %156 = cute.make_coord(%154, %155) : (!cute.i32<divby 16>, !cute.i32<divby 64>) -> !coord_3
          %157 = cute.domain_offset(%tmas_c_2, %156) : (!tma_a_2, !coord_3) -> !coord_tensor_11
          %tiles_15 = cute.flat_divide(%157, %17) : (!coord_tensor_11, !cute.shape<"(16,64)">) -> !tiles_2
          %158 = cute.get_layout(%tiles_15) : !tiles_2
          %159:2 = cute.get_scalars<{only_dynamic}> (%158) : !layout_3
          %source = cute.group_modes<0, 2> (%here_8) : (!here) -> !source
          %160 = cute.slice(%tiles_15, %18) : !tiles_2, !cute.coord<"(_,_,0,0)">
          %target = cute.group_modes<0, 2> (%160) : (!coord_tensor_12) -> !target_2
          cute.copy(%tmas_c, %source, %target) : (!tmas_c, !source, !target_2) -> ()
          cute_nvgpu.arch.bulk_commit_group() : () -> ()
        }
        %125 = cute.add_offset(%81, %21) : (!ptr, !cute.int_tuple<"64">) -> !ptr
        %values_9 = cute.make_view(%125, %14) : !values
        %slot_10 = arith.muli %first, %c2_i32 : i32
        %126 = arith.muli %100#0, %c128_i32 : i32
        %127 = arith.muli %first, %c64_i32 : i32
        %128 = arith.addi %126, %127 : i32
        %129 = arith.muli %100#1, %c256_i32 : i32
        %130 = arith.addi %129, %c128_i32 : i32
        %131 = arith.cmpi eq, %73, %c0_i32 : i32
        scf.if %131 {
          cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
        }
        cute_nvgpu.arch.syncwarp() : () -> ()
        %132 = cute.assume(%slot_10) : (i32) -> !cute.i32<divby 2>
        %133 = cute.make_coord(%76, %132) : (i32, !cute.i32<divby 2>) -> !coord
        %here_11 = cute.slice(%78, %133) : !memref_9, !coord
        %134 = cute.tiled.copy.retile(%16, %values_9) : (!tiled_copy, !values) -> !memref_13
        %135 = cute.make_coord(%73) : (i32) -> !cute.coord<"?">
        %136 = cute.tiled.copy.partition_D(%16, %here_11, %135) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_14
        cute.copy(%15, %134, %136) : (!stsm, !memref_13, !memref_14) -> ()
        cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
        cute_nvgpu.arch.syncwarp() : () -> ()
        %137 = arith.cmpi eq, %73, %c0_i32 : i32
        scf.if %137 {
          %152 = arith.muli %76, %c16_i32 : i32
          %153 = arith.addi %128, %152 : i32
          %154 = cute.assume(%153) : (i32) -> !cute.i32<divby 16>
          %155 = cute.assume(%130) : (i32) -> !cute.i32<divby 128>
          %156 = cute.make_coord(%154, %155) : (!cute.i32<divby 16>, !cute.i32<divby 128>) -> !coord_4
          %157 = cute.domain_offset(%tmas_c_2, %156) : (!tma_a_2, !coord_4) -> !coord_tensor_13
          %tiles_15 = cute.flat_divide(%157, %17) : (!coord_tensor_13, !cute.shape<"(16,64)">) -> !tiles_3
          %158 = cute.get_layout(%tiles_15) : !tiles_3
          %159:2 = cute.get_scalars<{only_dynamic}> (%158) : !layout_3
          %source = cute.group_modes<0, 2> (%here_11) : (!here) -> !source
          %160 = cute.slice(%tiles_15, %18) : !tiles_3, !cute.coord<"(_,_,0,0)">
          %target = cute.group_modes<0, 2> (%160) : (!coord_tensor_14) -> !target_3
          cute.copy(%tmas_c, %source, %target) : (!tmas_c, !source, !target_3) -> ()
          cute_nvgpu.arch.bulk_commit_group() : () -> ()
        }
        %138 = cute.add_offset(%80, %22) : (!ptr, !cute.int_tuple<"96">) -> !ptr
        %values_12 = cute.make_view(%138, %14) : !values
        %139 = arith.muli %first, %c2_i32 : i32
        %slot_13 = arith.addi %139, %c1_i32 : i32
        %140 = arith.muli %100#0, %c128_i32 : i32
        %141 = arith.muli %first, %c64_i32 : i32
        %142 = arith.addi %140, %141 : i32
        %143 = arith.muli %100#1, %c256_i32 : i32
        %144 = arith.addi %143, %c192_i32 : i32
        %145 = arith.cmpi eq, %73, %c0_i32 : i32
        scf.if %145 {
          cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
        }
        cute_nvgpu.arch.syncwarp() : () -> ()
        %146 = cute.make_coord(%76, %slot_13) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
        %here_14 = cute.slice(%78, %146) : !memref_9, !cute.coord<"(_,_,?,?)">
        %147 = cute.tiled.copy.retile(%16, %values_12) : (!tiled_copy, !values) -> !memref_13
        %148 = cute.make_coord(%73) : (i32) -> !cute.coord<"?">
        %149 = cute.tiled.copy.partition_D(%16, %here_14, %148) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_14
        cute.copy(%15, %147, %149) : (!stsm, !memref_13, !memref_14) -> ()
        cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
        cute_nvgpu.arch.syncwarp() : () -> ()
        %150 = arith.cmpi eq, %73, %c0_i32 : i32
        scf.if %150 {
          %152 = arith.muli %76, %c16_i32 : i32
          %153 = arith.addi %142, %152 : i32
          %154 = cute.assume(%153) : (i32) -> !cute.i32<divby 16>
          %155 = cute.assume(%144) : (i32) -> !cute.i32<divby 64>
          %156 = cute.make_coord(%154, %155) : (!cute.i32<divby 16>, !cute.i32<divby 64>) -> !coord_3
          %157 = cute.domain_offset(%tmas_c_2, %156) : (!tma_a_2, !coord_3) -> !coord_tensor_11
          %tiles_15 = cute.flat_divide(%157, %17) : (!coord_tensor_11, !cute.shape<"(16,64)">) -> !tiles_2
          %158 = cute.get_layout(%tiles_15) : !tiles_2
          %159:2 = cute.get_scalars<{only_dynamic}> (%158) : !layout_3
          %source = cute.group_modes<0, 2> (%here_14) : (!here) -> !source
          %160 = cute.slice(%tiles_15, %18) : !tiles_2, !cute.coord<"(_,_,0,0)">
          %target = cute.group_modes<0, 2> (%160) : (!coord_tensor_12) -> !target_2
          cute.copy(%tmas_c, %source, %target) : (!tmas_c, !source, !target_2) -> ()
          cute_nvgpu.arch.bulk_commit_group() : () -> ()
        }
        %151 = arith.cmpi eq, %73, %c0_i32 : i32
        scf.if %151 {
          cute_nvgpu.arch.bulk_wait_group() {n = 0 : i32, read = true} : () -> ()
        }
        scf.yield %c0_i32, %c0_i32, %c1_i32, %100#2, %100#3, %100#4 : i32, i32, i32, i32, i32, i32
      }
      cute_nvgpu.arch.cluster_arrive() : () -> ()
      cute_nvgpu.arch.cluster_wait() : () -> ()
      gpu.return
    }
    // Compute one tile of C of f16, bf16, tf32 or 8-bit floats, with an f32 accumulator.
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
      // This block's tile of C, and its matrix.
      %tile = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2147483647> : i32
      %8 = arith.addi %7#0, %c63_i32 : i32
      %tiles_m = arith.shrui %8, %c6_i32 : i32
      %9 = arith.addi %7#1, %c63_i32 : i32
      %tiles_n = arith.shrui %9, %c6_i32 : i32
      %10 = arith.remui %tile, %tiles_m : i32
      %m0 = arith.muli %10, %c64_i32 : i32
      %11 = arith.divui %tile, %tiles_m : i32
      %n0 = arith.muli %11, %c64_i32 : i32
      // Tiles of A and B in shared memory, then the result. Rows are padded by 16 bytes, so that fragment reads map to all
      // banks once.
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
      // Store through shared memory, so that stores are coalesced.
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
  // Launch the kernel of a configuration.
  //
  // Args:
  //     A, B, C: Matrices, or batches of them, in the layouts of the configuration.
  //     workspace: f32 scratch for partial accumulators (split-K, stream-K).
  //     flags, counters: Zeroed i32 semaphores of stream-K and split-K.
  //     scale_a, scale_b: Block scales.
  //     source, bias, alpha, beta, operands: Arguments of the epilogue.
  //     places: Offsets of the matrices of a pointer array.
  //     config: A :class:`GemmConfig` or :class:`SplitConfig`.
  func.func @launch(%A: !A, %B: !A, %C: !A) {
    %0 = cute.get_iter(%C) : !A
    %1 = cute.get_iter(%B) : !A
    %2 = cute.get_iter(%A) : !A
    %3 = cute.static : !cute.int_tuple<"64">
    %4 = cute.static : !layout_4
    %5 = cute.static : !cute.shape<"(128,64)">
    %6 = cute.static : !layout_5
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
    %17 = cute.size<[0]> (%C) : (!A) -> !cute.int_tuple<"?">
    %18 = cute.get_scalars<{only_dynamic}> (%17) : !cute.int_tuple<"?">
    %19 = cute.size<[1]> (%C) : (!A) -> !cute.int_tuple<"?">
    %20 = cute.get_scalars<{only_dynamic}> (%19) : !cute.int_tuple<"?">
    %21 = arith.cmpi eq, %15#0, %18 : i32
    cf.assert %21, "A and C must have the same M"
    %22 = arith.cmpi eq, %13#0, %20 : i32
    cf.assert %22, "B and C must have the same N"
    %23 = cute.size<[0]> (%C) : (!A) -> !cute.int_tuple<"?">
    %24 = cute.get_scalars<{only_dynamic}> (%23) : !cute.int_tuple<"?">
    %25 = cute.size<[1]> (%C) : (!A) -> !cute.int_tuple<"?">
    %26 = cute.get_scalars<{only_dynamic}> (%25) : !cute.int_tuple<"?">
    %27 = cute.size<[0]> (%C) : (!A) -> !cute.int_tuple<"?">
    %28 = cute.get_scalars<{only_dynamic}> (%27) : !cute.int_tuple<"?">
    %29 = cute.size<[1]> (%C) : (!A) -> !cute.int_tuple<"?">
    %30 = cute.get_scalars<{only_dynamic}> (%29) : !cute.int_tuple<"?">
    %31 = cute.make_int_tuple(%11#0) : (i32) -> !cute.int_tuple<"?">
    %32 = cute.ceil_div(%31, %3) : (!cute.int_tuple<"?">, !cute.int_tuple<"64">) -> !cute.int_tuple<"?">
    %33 = cute.get_scalars<{only_dynamic}> (%32) : !cute.int_tuple<"?">
    %34 = cute.make_int_tuple(%11#1) : (i32) -> !cute.int_tuple<"?">
    %35 = cute.ceil_div(%34, %3) : (!cute.int_tuple<"?">, !cute.int_tuple<"64">) -> !cute.int_tuple<"?">
    %36 = cute.get_scalars<{only_dynamic}> (%35) : !cute.int_tuple<"?">
    %tiles = arith.muli %33, %36 : i32
    %37 = cute.assume(%2) : (!cute.ptr<f16, gmem>) -> !ptr_2
    %38 = cute.make_shape(%15#0, %15#1) : (i32, i32) -> !cute.shape<"(?,?)">
    %39 = cute.assume(%15#2) : (i32) -> !cute.i32<divby 8>
    %40 = cute.make_stride(%39) : (!cute.i32<divby 8>) -> !cute.stride<"(?{div=8},1)">
    %41 = cute.make_layout(%38, %40) : (!cute.shape<"(?,?)">, !cute.stride<"(?{div=8},1)">) -> !layout_6
    %A_0 = cute.make_view(%37, %41) : !A_2
    %42 = cute.get_layout(%A_0) : !A_2
    %43:3 = cute.get_scalars<{only_dynamic}> (%42) : !layout_6
    %44 = cute.assume(%1) : (!cute.ptr<f16, gmem>) -> !ptr_2
    %45 = cute.make_shape(%13#0, %13#1) : (i32, i32) -> !cute.shape<"(?,?)">
    %46 = cute.assume(%13#2) : (i32) -> !cute.i32<divby 8>
    %47 = cute.make_stride(%46) : (!cute.i32<divby 8>) -> !cute.stride<"(?{div=8},1)">
    %48 = cute.make_layout(%45, %47) : (!cute.shape<"(?,?)">, !cute.stride<"(?{div=8},1)">) -> !layout_6
    %B_1 = cute.make_view(%44, %48) : !A_2
    %49 = cute.get_layout(%B_1) : !A_2
    %50:3 = cute.get_scalars<{only_dynamic}> (%49) : !layout_6
    %51 = cute.assume(%0) : (!cute.ptr<f16, gmem>) -> !ptr_2
    %52 = cute.make_shape(%11#0, %11#1) : (i32, i32) -> !cute.shape<"(?,?)">
    %53 = cute.assume(%11#2) : (i32) -> !cute.i32<divby 8>
    %54 = cute.make_stride(%53) : (!cute.i32<divby 8>) -> !cute.stride<"(?{div=8},1)">
    %55 = cute.make_layout(%52, %54) : (!cute.shape<"(?,?)">, !cute.stride<"(?{div=8},1)">) -> !layout_6
    %C_2 = cute.make_view(%51, %55) : !A_2
    %56:2 = cute_nvgpu.make_tma_load(%A_0, %4, %5) {swizzle = 128 : i32} : (!A_2, !layout_4, !cute.shape<"(128,64)">) -> (!tma_a, !tma_a_2)
    %57:2 = cute_nvgpu.make_tma_load(%B_1, %4, %5) {swizzle = 128 : i32} : (!A_2, !layout_4, !cute.shape<"(128,64)">) -> (!tma_a, !tma_a_2)
    %58:2 = cute_nvgpu.make_tma_store(%C_2, %6, %7) {swizzle = 128 : i32} : (!A_2, !layout_5, !cute.shape<"(16,64)">) -> (!tmas_c, !tma_a_2)
    %59 = cute.make_int_tuple(%24, %26) : (i32, i32) -> !cute.int_tuple<"(?,?)">
    %60 = cute.ceil_div(%59, %8) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(256,256)">) -> !cute.int_tuple<"(?,?)">
    %61:2 = cute.get_scalars<{only_dynamic}> (%60) : !cute.int_tuple<"(?,?)">
    %62 = cute.make_int_tuple(%43#1) : (i32) -> !cute.int_tuple<"?">
    %63 = cute.ceil_div(%62, %3) : (!cute.int_tuple<"?">, !cute.int_tuple<"64">) -> !cute.int_tuple<"?">
    %k_tiles = cute.get_scalars<{only_dynamic}> (%63) : !cute.int_tuple<"?">
    %tiles_3 = arith.muli %61#0, %61#1 : i32
    %64 = cute.make_int_tuple(%tiles_3) : (i32) -> !cute.int_tuple<"?">
    %65 = cute.ceil_div(%64, %9) : (!cute.int_tuple<"?">, !cute.int_tuple<"66">) -> !cute.int_tuple<"?">
    %66 = cute.get_scalars<{only_dynamic}> (%65) : !cute.int_tuple<"?">
    %waves = arith.maxui %66, %c1_i32 : i32
    %67 = cute.make_int_tuple(%tiles_3) : (i32) -> !cute.int_tuple<"?">
    %68 = cute.make_int_tuple(%waves) : (i32) -> !cute.int_tuple<"?">
    %69 = cute.ceil_div(%67, %68) : (!cute.int_tuple<"?">, !cute.int_tuple<"?">) -> !cute.int_tuple<"?">
    %70 = cute.get_scalars<{only_dynamic}> (%69) : !cute.int_tuple<"?">
    %grid = arith.muli %70, %c2_i32 : i32
    gpu.launch_func @kernels::@gemm clusters in (%c2_i32, %c1_i32, %c1_i32) blocks in (%grid, %c1_i32, %c1_i32) threads in (%c384_i32, %c1_i32, %c1_i32) : i32 args(%56#0 : !tma_a, %56#1 : !tma_a_2, %57#0 : !tma_a, %57#1 : !tma_a_2, %58#0 : !tmas_c, %58#1 : !tma_a_2, %61#0 : i32, %61#1 : i32, %k_tiles : i32)
    gpu.launch_func @kernels::@gemm_any blocks in (%tiles, %c1_i32, %c1_i32) threads in (%c256_i32, %c1_i32, %c1_i32) : i32 args(%A : !A, %B : !A, %C : !A) {cute.fallback}
    return
  }
}
