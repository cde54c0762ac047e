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
!staging = !cute.memref<i8, smem, align<1024>, "32768:1">
!staging_2 = !cute.ptr<i8, smem, align<1024>>
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
!barrier_storage = !cute.memref<i8, smem, align<8>, "64:1">
!coord_tensor_7 = !cute.coord_tensor<"(?{div=64},?{div=128})", "((128,64)):((1@1,1@0))">
!memref_5 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(((8,16),(64,1))):(((64,512),(1,0)))">
!coord_tensor_8 = !cute.coord_tensor<"(?{div=64},?{div=128})", "((64,128)):((1@0,1@1))">
!memref_6 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,128)):((1,64))">
!rA = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,16),1,4,(1,4)):((64,1),0,16,(0,8192))">
!rB = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((256,16),1,4,(1,4)):((64,1),0,16,(0,16384))">
!acc = !cute.memref<f32, rmem, align<32>, "((2,2,32),1,1):((1,2,4),0,0)">
!start = !cute.ptr<f32, rmem, align<32>>
!start_2 = !cute.ptr<f16, smem, align<1024>, S<3,4,3>>
!memref_7 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(16,64,4,4):(64,1,1024,4096)">
!memref_8 = !cute.memref<f16, rmem, align<32>, "((2,2,32),1,1):((1,2,4),0,0)">
!ptr = !cute.ptr<f16, rmem, align<32>>
!memref_9 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,16),1,4):((64,1),0,16)">
!memref_10 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((256,16),1,4):((64,1),0,16)">
!values = !cute.memref<f16, rmem, align<32>, "((2,2,8),1,1):((1,2,4),0,0)">
!coord = !cute.coord<"(_,_,?,?{div=2})">
!here = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(16,64):(64,1)">
!memref_11 = !cute.memref<f16, rmem, align<32>, "((8,4),1,1):((1,8),0,0)">
!memref_12 = !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,4),1,1):((1,16),0,0)">
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
      %sA = cute.memref.alloc_smem() : !sA
      %sB = cute.memref.alloc_smem() : !sB
      %staging = cute.memref.alloc_smem() : !staging
      %30 = cute.get_iter(%staging) : !staging
      %staging_4 = cute.recast_iter(%30) : !staging_2 to !staging_2
      // A tile that is sliced along K: the number of slices, and this block's.
      %31 = cute.group_modes<0, 2> (%sA) : (!sA) -> !memref
      %32 = cute.flat_divide(%tma_a_0, %0) : (!tma_a_2, !cute.shape<"(128,64)">) -> !coord_tensor
      %33 = cute.group_modes<0, 2> (%32) : (!coord_tensor) -> !coord_tensor_2
      %34 = cute.group_modes<0, 2> (%sB) : (!sB) -> !memref_2
      %35 = cute.flat_divide(%tma_b_1, %1) : (!tma_a_2, !cute.shape<"(256,64)">) -> !coord_tensor_3
      %36 = cute.group_modes<0, 2> (%35) : (!coord_tensor_3) -> !coord_tensor_4
      %37 = cute.make_coord(%24) : (i32) -> !cute.coord<"?">
      %38 = cute.layout_eval(%37, %2) : (!cute.coord<"?">, !cute.layout<"2:1">) -> !cute.int_tuple<"?">
      %39 = cute.get_scalars<{only_dynamic}> (%38) : !cute.int_tuple<"?">
      %40 = cute.composition(%34, %3) : (!memref_2, !tile) -> !memref_3
      %41 = cute.make_coord(%39) : (i32) -> !cute.coord<"((_,?),_)">
      %42 = cute.slice(%40, %41) : !memref_3, !cute.coord<"((_,?),_)">
      %43 = cute.composition(%36, %4) : (!coord_tensor_4, !tile_2) -> !coord_tensor_5
      %44 = cute.make_coord(%39) : (i32) -> !cute.coord<"((_,?),_,_)">
      %45 = cute.slice(%43, %44) : !coord_tensor_5, !cute.coord<"((_,?),_,_)">
      // A slot is released per warpgroup, or per warp if each warp reads a part of it.
      %barrier_storage = cute.memref.alloc_smem() : !barrier_storage
      %46 = cute.get_iter(%barrier_storage) : !barrier_storage
      %barrier_storage_5 = cute.recast_iter(%46) : !cute.ptr<i8, smem, align<8>> to !cute.ptr<i64, smem>
      %47 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
      %thread = arith.andi %47, %c127_i32 : i32
      %48 = arith.cmpi ult, %thread, %c2_i32 : i32
      // Thread d of each warp (or warpgroup) signals block d of the cluster if they share an operand.
      %49 = arith.andi %thread, %c1_i32 : i32
      %50 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
      %51 = arith.shrui %50, %c5_i32 : i32
      %52 = arith.cmpi eq, %51, %c0_i32 : i32
      scf.if %52 {
        %62 = cute_nvgpu.arch.elect_one() : () -> i1
        scf.if %62 {
          %63 = cute.add_offset(%barrier_storage_5, %5) : (!cute.ptr<i64, smem>, !cute.int_tuple<"4">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%63, %c4_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          cute_nvgpu.arch.mbarrier_init(%barrier_storage_5, %c1_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %64 = cute.add_offset(%barrier_storage_5, %5) : (!cute.ptr<i64, smem>, !cute.int_tuple<"4">) -> !cute.ptr<i64, smem>
          %65 = cute.add_offset(%64, %6) : (!cute.ptr<i64, smem>, !cute.int_tuple<"1">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%65, %c4_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %66 = cute.add_offset(%barrier_storage_5, %6) : (!cute.ptr<i64, smem>, !cute.int_tuple<"1">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%66, %c1_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %67 = cute.add_offset(%barrier_storage_5, %5) : (!cute.ptr<i64, smem>, !cute.int_tuple<"4">) -> !cute.ptr<i64, smem>
          %68 = cute.add_offset(%67, %7) : (!cute.ptr<i64, smem>, !cute.int_tuple<"2">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%68, %c4_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %69 = cute.add_offset(%barrier_storage_5, %7) : (!cute.ptr<i64, smem>, !cute.int_tuple<"2">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%69, %c1_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %70 = cute.add_offset(%barrier_storage_5, %5) : (!cute.ptr<i64, smem>, !cute.int_tuple<"4">) -> !cute.ptr<i64, smem>
          %71 = cute.add_offset(%70, %8) : (!cute.ptr<i64, smem>, !cute.int_tuple<"3">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%71, %c4_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %72 = cute.add_offset(%barrier_storage_5, %8) : (!cute.ptr<i64, smem>, !cute.int_tuple<"3">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%72, %c1_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          cute_nvgpu.arch.fence_mbarrier_init() : () -> ()
        }
      }
      // Loads that signal only this block's barriers start before the cluster and block barriers: the issuing thread has
      // initialized those mbarriers itself. No other thread waits for these loads to be issued.
      cute_nvgpu.arch.cluster_arrive() {relaxed = true} : () -> ()
      %53 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
      %54 = arith.shrui %53, %c5_i32 : i32
      %55 = arith.cmpi eq, %54, %c0_i32 : i32
      scf.if %55 {
        %62 = cute_nvgpu.arch.elect_one() : () -> i1
        scf.if %62 {
          %63 = arith.muli %raster_3, %c8_i32 : i32
          %group = arith.divui %tile, %63 : i32
          %inside = arith.remui %tile, %63 : i32
          %first = arith.muli %group, %c8_i32 : i32
          %64 = arith.subi %raster, %first : i32
          %rows = arith.minsi %64, %c8_i32 : i32
          %column = arith.divui %inside, %rows : i32
          %row = arith.remui %inside, %rows : i32
          %row_6 = arith.addi %first, %row : i32
          %65 = arith.andi %group, %c1_i32 : i32
          %66 = arith.cmpi ne, %65, %c0_i32 : i32
          %67 = arith.subi %raster_3, %c1_i32 : i32
          %68 = arith.subi %67, %column : i32
          %column_7 = arith.select %66, %68, %column : i32
          %69 = arith.muli %row_6, %c2_i32 : i32
          %row_8 = arith.addi %69, %24 : i32
          %70 = arith.minui %k_tiles, %c4_i32 : i32
          scf.for %i = %c0_i32 to %70 step %c1_i32 : i32 {
            %71 = cute.make_int_tuple(%i) : (i32) -> !cute.int_tuple<"?">
            %72 = cute.add_offset(%barrier_storage_5, %71) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_arrive_expect_tx(%72, %c49152_i32) : (!cute.ptr<i64, smem>, i32) -> ()
            %73 = cute.make_int_tuple(%i) : (i32) -> !cute.int_tuple<"?">
            %74 = cute.add_offset(%barrier_storage_5, %73) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            %75 = cute.make_coord(%row_8, %i) : (i32, i32) -> !cute.coord<"(_,?,?)">
            %76 = cute.slice(%33, %75) : !coord_tensor_2, !cute.coord<"(_,?,?)">
            %77 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?)">
            %78 = cute.slice(%31, %77) : !memref, !cute.coord<"(_,?)">
            %79 = cute.atom.set_value(%tma_a, %74) {field = tma_bar} : (!tma_a, !cute.ptr<i64, smem>) -> !tma_a
            cute.copy(%79, %76, %78) : (!tma_a, !coord_tensor_7, !memref_5) -> ()
          }
        }
      }
      cute_nvgpu.arch.cluster_wait() : () -> ()
      %56 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
      %57 = arith.shrui %56, %c7_i32 : i32
      %warp_group = cute_nvgpu.arch.shfl_sync(%57, %c0_i32) {mode = "idx", width = 32 : i32} : (i32, i32) -> i32
      %58 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
      %59 = arith.shrui %58, %c5_i32 : i32
      %warp = arith.andi %59, %c3_i32 : i32
      %60 = arith.cmpi eq, %warp_group, %c0_i32 : i32
      %61:6 = scf.if %60 -> (i32, i32, i32, i32, i32, i32) {
        cute_nvgpu.arch.setmaxnreg() {action = "decrease", count = 40 : i32} : () -> ()
        %62 = arith.cmpi eq, %warp, %c0_i32 : i32
        %63 = scf.if %62 -> (i1) {
          %65 = cute_nvgpu.arch.elect_one() : () -> i1
          scf.yield %65 : i1
        } else {
          scf.yield %false : i1
        }
        %64:3 = scf.if %63 -> (i32, i32, i32) {
          %done = arith.minui %k_tiles, %c4_i32 : i32
          %65 = arith.muli %raster_3, %c8_i32 : i32
          %group = arith.divui %tile, %65 : i32
          %inside = arith.remui %tile, %65 : i32
          %first = arith.muli %group, %c8_i32 : i32
          %66 = arith.subi %raster, %first : i32
          %rows = arith.minsi %66, %c8_i32 : i32
          %column = arith.divui %inside, %rows : i32
          %row = arith.remui %inside, %rows : i32
          %row_6 = arith.addi %first, %row : i32
          %67 = arith.andi %group, %c1_i32 : i32
          %68 = arith.cmpi ne, %67, %c0_i32 : i32
          %69 = arith.subi %raster_3, %c1_i32 : i32
          %70 = arith.subi %69, %column : i32
          %column_7 = arith.select %68, %70, %column : i32
          %71 = arith.muli %row_6, %c2_i32 : i32
          %row_8 = arith.addi %71, %24 : i32
          scf.for %i = %c0_i32 to %done step %c1_i32 : i32 {
            %77 = cute.make_int_tuple(%i) : (i32) -> !cute.int_tuple<"?">
            %78 = cute.add_offset(%barrier_storage_5, %77) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            %79 = cute.make_coord(%column_7, %i) : (i32, i32) -> !cute.coord<"(_,?,?)">
            %80 = cute.slice(%45, %79) : !coord_tensor_6, !cute.coord<"(_,?,?)">
            %81 = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?)">
            %82 = cute.slice(%42, %81) : !memref_4, !cute.coord<"(_,?)">
            %83 = cute.atom.set_value(%tma_b, %78) {field = tma_bar} : (!tma_a, !cute.ptr<i64, smem>) -> !tma_a
            %84 = cute.atom.set_value(%83, %c3_i16) {field = multicast_mask} : (!tma_a, i16) -> !tma_a
            cute.copy(%84, %80, %82) : (!tma_a, !coord_tensor_8, !memref_6) -> ()
          }
          %72 = arith.andi %done, %c3_i32 : i32
          %73 = arith.shrui %done, %c2_i32 : i32
          %74 = arith.andi %73, %c1_i32 : i32
          %75 = arith.xori %c1_i32, %74 : i32
          %tiles = arith.muli %raster, %raster_3 : i32
          %76:5 = scf.for %tile_9 = %tile to %tiles step %27 iter_args(%arg0 = %false, %arg1 = %done, %arg2 = %done, %arg3 = %72, %arg4 = %75) -> (i1, i32, i32, i32, i32) : i32 {
            %77 = arith.muli %raster_3, %c8_i32 : i32
            %group_10 = arith.divui %tile_9, %77 : i32
            %inside_11 = arith.remui %tile_9, %77 : i32
            %first_12 = arith.muli %group_10, %c8_i32 : i32
            %78 = arith.subi %raster, %first_12 : i32
            %rows_13 = arith.minsi %78, %c8_i32 : i32
            %column_14 = arith.divui %inside_11, %rows_13 : i32
            %row_15 = arith.remui %inside_11, %rows_13 : i32
            %row_16 = arith.addi %first_12, %row_15 : i32
            %79 = arith.andi %group_10, %c1_i32 : i32
            %80 = arith.cmpi ne, %79, %c0_i32 : i32
            %81 = arith.subi %raster_3, %c1_i32 : i32
            %82 = arith.subi %81, %column_14 : i32
            %column_17 = arith.select %80, %82, %column_14 : i32
            %83 = arith.muli %row_16, %c2_i32 : i32
            %row_18 = arith.addi %83, %24 : i32
            %84:3 = scf.for %i = %arg1 to %k_tiles step %c1_i32 iter_args(%arg5 = %arg2, %arg6 = %arg3, %arg7 = %arg4) -> (i32, i32, i32) : i32 {
              %85 = arith.subi %k_tiles, %c1_i32 : i32
              %86 = arith.subi %85, %i : i32
              %87 = arith.select %arg0, %86, %i : i32
              %88 = arith.addi %arg6, %c4_i32 : i32
              %89 = cute.make_int_tuple(%88) : (i32) -> !cute.int_tuple<"?">
              %90 = cute.add_offset(%barrier_storage_5, %89) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
              cute_nvgpu.arch.mbarrier_wait(%90, %arg7) : (!cute.ptr<i64, smem>, i32) -> ()
              %91 = cute.make_int_tuple(%arg6) : (i32) -> !cute.int_tuple<"?">
              %92 = cute.add_offset(%barrier_storage_5, %91) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
              cute_nvgpu.arch.mbarrier_arrive_expect_tx(%92, %c49152_i32) : (!cute.ptr<i64, smem>, i32) -> ()
              %following = arith.addi %arg6, %c1_i32 : i32
              %wraps = arith.cmpi eq, %following, %c4_i32 : i32
              %93 = arith.select %wraps, %c0_i32, %following : i32
              %94 = arith.select %wraps, %c1_i32, %c0_i32 : i32
              %95 = arith.xori %arg7, %94 : i32
              %96 = arith.addi %arg5, %c1_i32 : i32
              %97 = cute.make_int_tuple(%arg6) : (i32) -> !cute.int_tuple<"?">
              %98 = cute.add_offset(%barrier_storage_5, %97) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
              %99 = cute.make_coord(%row_18, %87) : (i32, i32) -> !cute.coord<"(_,?,?)">
              %100 = cute.slice(%33, %99) : !coord_tensor_2, !cute.coord<"(_,?,?)">
              %101 = cute.make_coord(%arg6) : (i32) -> !cute.coord<"(_,?)">
              %102 = cute.slice(%31, %101) : !memref, !cute.coord<"(_,?)">
              %103 = cute.atom.set_value(%tma_a, %98) {field = tma_bar} : (!tma_a, !cute.ptr<i64, smem>) -> !tma_a
              cute.copy(%103, %100, %102) : (!tma_a, !coord_tensor_7, !memref_5) -> ()
              %104 = cute.make_coord(%column_17, %87) : (i32, i32) -> !cute.coord<"(_,?,?)">
              %105 = cute.slice(%45, %104) : !coord_tensor_6, !cute.coord<"(_,?,?)">
              %106 = cute.make_coord(%arg6) : (i32) -> !cute.coord<"(_,?)">
              %107 = cute.slice(%42, %106) : !memref_4, !cute.coord<"(_,?)">
              %108 = cute.atom.set_value(%tma_b, %98) {field = tma_bar} : (!tma_a, !cute.ptr<i64, smem>) -> !tma_a
              %109 = cute.atom.set_value(%108, %c3_i16) {field = multicast_mask} : (!tma_a, i16) -> !tma_a
              cute.copy(%109, %105, %107) : (!tma_a, !coord_tensor_8, !memref_6) -> ()
              scf.yield %96, %93, %95 : i32, i32, i32
            }
            %backwards = arith.xori %arg0, %true : i1
            scf.yield %backwards, %c0_i32, %84#0, %84#1, %84#2 : i1, i32, i32, i32, i32
          }
          scf.yield %76#2, %76#3, %76#4 : i32, i32, i32
        } else {
          scf.yield %c0_i32, %c0_i32, %c1_i32 : i32, i32, i32
        }
        scf.yield %64#0, %64#1, %64#2, %c0_i32, %c0_i32, %c0_i32 : i32, i32, i32, i32, i32, i32
      } else {
        cute_nvgpu.arch.setmaxnreg() {action = "increase", count = 232 : i32} : () -> ()
        %first = arith.subi %warp_group, %c1_i32 : i32
        %62 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
        %63 = arith.cmpi eq, %62, %c128_i32 : i32
        scf.if %63 {
          cute_nvgpu.arch.prefetch_tensormap(%tmas_c) : (!tmas_c) -> ()
        }
        %64 = arith.muli %first, %c128_i32 : i32
        %65 = cute.assume(%64) : (i32) -> !cute.i32<divby 128>
        %66 = cute.make_coord(%65) : (!cute.i32<divby 128>) -> !cute.coord<"?{div=128}">
        %67 = cute.tiled.mma.partition_A(%10, %sA, %66) : (!tiled_mma, !sA, !cute.coord<"?{div=128}">) -> !rA
        %rA = cute.tiled.mma.make_fragment_A(%10, %67) : (!tiled_mma, !rA) -> !rA
        %68 = cute.assume(%64) : (i32) -> !cute.i32<divby 128>
        %69 = cute.make_coord(%68) : (!cute.i32<divby 128>) -> !cute.coord<"?{div=128}">
        %70 = cute.tiled.mma.partition_B(%10, %sB, %69) : (!tiled_mma, !sB, !cute.coord<"?{div=128}">) -> !rB
        %rB = cute.tiled.mma.make_fragment_B(%10, %70) : (!tiled_mma, !rB) -> !rB
        // The tensor-core accumulators: one, or two that alternate.
        %acc = cute.tiled.mma.make_fragment_C(%10, %11) : (!tiled_mma, !cute.shape<"((2,2,32),1,1)">) -> !acc
        %start = cute.get_iter(%acc) : !acc
        %start_6 = cute.get_iter(%acc) : !acc
        %71 = cute_nvgpu.arch.lane_id() : () -> i32
        %72 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
        %73 = arith.shrui %72, %c5_i32 : i32
        %74 = arith.andi %73, %c3_i32 : i32
        %75 = builtin.unrealized_conversion_cast %staging_4 : !staging_2 to !llvm.ptr<3>
        %start_7 = builtin.unrealized_conversion_cast %75 : !llvm.ptr<3> to !start_2
        %76 = cute.make_view(%start_7, %12) : !memref_7
        %77 = cute.make_fragment_like(%acc) [f16] : !acc -> !memref_8
        %78 = cute.get_iter(%77) : !memref_8
        %79 = cute.get_iter(%77) : !memref_8
        %80 = cute.get_iter(%77) : !memref_8
        %81 = cute.get_iter(%77) : !memref_8
        %82 = cute.get_iter(%77) : !memref_8
        %83 = cute.get_iter(%77) : !memref_8
        %84 = cute.get_iter(%77) : !memref_8
        %85 = cute.get_iter(%77) : !memref_8
        %86 = cute.get_iter(%77) : !memref_8
        %87 = cute.get_iter(%77) : !memref_8
        %88 = cute.get_iter(%77) : !memref_8
        %89 = cute.get_iter(%77) : !memref_8
        %90 = cute.get_iter(%77) : !memref_8
        %91 = cute.get_iter(%77) : !memref_8
        %92 = cute.get_iter(%77) : !memref_8
        %93 = cute.get_iter(%77) : !memref_8
        %94 = cute.get_iter(%77) : !memref_8
        %95 = cute.get_iter(%77) : !memref_8
        %96 = cute.get_iter(%77) : !memref_8
        %97 = cute.get_iter(%77) : !memref_8
        %tiles = arith.muli %raster, %raster_3 : i32
        %98:5 = scf.for %tile_17 = %tile to %tiles step %27 iter_args(%arg0 = %c0_i32, %arg1 = %c0_i32, %arg2 = %c0_i32, %arg3 = %c0_i32, %arg4 = %c0_i32) -> (i32, i32, i32, i32, i32) : i32 {
          %150 = arith.muli %raster_3, %c8_i32 : i32
          %group = arith.divui %tile_17, %150 : i32
          %inside = arith.remui %tile_17, %150 : i32
          %first_18 = arith.muli %group, %c8_i32 : i32
          %151 = arith.subi %raster, %first_18 : i32
          %rows = arith.minsi %151, %c8_i32 : i32
          %column = arith.divui %inside, %rows : i32
          %row = arith.remui %inside, %rows : i32
          %row_19 = arith.addi %first_18, %row : i32
          %152 = arith.andi %group, %c1_i32 : i32
          %153 = arith.cmpi ne, %152, %c0_i32 : i32
          %154 = arith.subi %raster_3, %c1_i32 : i32
          %155 = arith.subi %154, %column : i32
          %column_20 = arith.select %153, %155, %column : i32
          %156 = arith.muli %row_19, %c2_i32 : i32
          %row_21 = arith.addi %156, %24 : i32
          %157 = cute.make_int_tuple(%arg3) : (i32) -> !cute.int_tuple<"?">
          %158 = cute.add_offset(%barrier_storage_5, %157) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_wait(%158, %arg4) : (!cute.ptr<i64, smem>, i32) -> ()
          %following = arith.addi %arg3, %c1_i32 : i32
          %wraps = arith.cmpi eq, %following, %c4_i32 : i32
          %159 = arith.select %wraps, %c0_i32, %following : i32
          %160 = arith.select %wraps, %c1_i32, %c0_i32 : i32
          %161 = arith.xori %arg4, %160 : i32
          %162 = arith.addi %arg2, %c1_i32 : i32
          cute_nvgpu.arch.wgmma_fence() : () -> ()
          %163 = cute.make_coord(%arg3) : (i32) -> !cute.coord<"(_,_,_,?)">
          %164 = cute.slice(%rA, %163) : !rA, !cute.coord<"(_,_,_,?)">
          %165 = cute.make_coord(%arg3) : (i32) -> !cute.coord<"(_,_,_,?)">
          %166 = cute.slice(%rB, %165) : !rB, !cute.coord<"(_,_,_,?)">
          cute.gemm(%10, %acc, %164, %166) : (!tiled_mma, !acc, !memref_9, !memref_10) -> ()
          cute_nvgpu.arch.wgmma_commit_group() : () -> ()
          %167 = arith.cmpi ne, %tile_17, %tile : i32
          scf.if %167 {
            %values_26 = cute.make_view(%89, %14) : !values
            // The previous tile may have used the first chunk's buffer last. Extra outputs precede C.
            %slot_27 = arith.muli %first, %c2_i32 : i32
            %197 = arith.muli %arg0, %c128_i32 : i32
            %198 = arith.muli %first, %c64_i32 : i32
            %199 = arith.addi %197, %198 : i32
            %200 = arith.muli %arg1, %c256_i32 : i32
            %201 = arith.cmpi eq, %71, %c0_i32 : i32
            scf.if %201 {
              cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
            }
            cute_nvgpu.arch.syncwarp() : () -> ()
            // 0 for every tile, since rows are below 2^31, but ptxas does not know it and cannot hoist the addresses
            %202 = cute.assume(%slot_27) : (i32) -> !cute.i32<divby 2>
            %203 = cute.make_coord(%74, %202) : (i32, !cute.i32<divby 2>) -> !coord
            %here_28 = cute.slice(%76, %203) : !memref_7, !coord
            %204 = cute.tiled.copy.retile(%16, %values_26) : (!tiled_copy, !values) -> !memref_11
            %205 = cute.make_coord(%71) : (i32) -> !cute.coord<"?">
            %206 = cute.tiled.copy.partition_D(%16, %here_28, %205) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_12
            cute.copy(%15, %204, %206) : (!stsm, !memref_11, !memref_12) -> ()
            cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
            cute_nvgpu.arch.syncwarp() : () -> ()
            %207 = arith.cmpi eq, %71, %c0_i32 : i32
            scf.if %207 {
              %221 = arith.muli %74, %c16_i32 : i32
              %222 = arith.addi %199, %221 : i32
              %223 = cute.assume(%222) : (i32) -> !cute.i32<divby 16>
              %224 = cute.assume(%200) : (i32) -> !cute.i32<divby 256>
              %225 = cute.make_coord(%223, %224) : (!cute.i32<divby 16>, !cute.i32<divby 256>) -> !coord_2
              %226 = cute.domain_offset(%tmas_c_2, %225) : (!tma_a_2, !coord_2) -> !coord_tensor_9
              %tiles_32 = cute.flat_divide(%226, %17) : (!coord_tensor_9, !cute.shape<"(16,64)">) -> !tiles
              %227 = cute.get_layout(%tiles_32) : !tiles
              %228:2 = cute.get_scalars<{only_dynamic}> (%227) : !layout_3
              %source = cute.group_modes<0, 2> (%here_28) : (!here) -> !source
              %229 = cute.slice(%tiles_32, %18) : !tiles, !cute.coord<"(_,_,0,0)">
              %target = cute.group_modes<0, 2> (%229) : (!coord_tensor_10) -> !target
              cute.copy(%tmas_c, %source, %target) : (!tmas_c, !source, !target) -> ()
              cute_nvgpu.arch.bulk_commit_group() : () -> ()
            }
            %208 = cute.add_offset(%88, %19) : (!ptr, !cute.int_tuple<"32">) -> !ptr
            %values_29 = cute.make_view(%208, %14) : !values
            %209 = arith.muli %first, %c2_i32 : i32
            %slot_30 = arith.addi %209, %c1_i32 : i32
            %210 = arith.muli %arg0, %c128_i32 : i32
            %211 = arith.muli %first, %c64_i32 : i32
            %212 = arith.addi %210, %211 : i32
            %213 = arith.muli %arg1, %c256_i32 : i32
            %214 = arith.addi %213, %c64_i32 : i32
            %215 = arith.cmpi eq, %71, %c0_i32 : i32
            scf.if %215 {
              cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
            }
            cute_nvgpu.arch.syncwarp() : () -> ()
            %216 = cute.make_coord(%74, %slot_30) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
            %here_31 = cute.slice(%76, %216) : !memref_7, !cute.coord<"(_,_,?,?)">
            %217 = cute.tiled.copy.retile(%16, %values_29) : (!tiled_copy, !values) -> !memref_11
            %218 = cute.make_coord(%71) : (i32) -> !cute.coord<"?">
            %219 = cute.tiled.copy.partition_D(%16, %here_31, %218) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_12
            cute.copy(%15, %217, %219) : (!stsm, !memref_11, !memref_12) -> ()
            cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
            cute_nvgpu.arch.syncwarp() : () -> ()
            %220 = arith.cmpi eq, %71, %c0_i32 : i32
            scf.if %220 {
              %221 = arith.muli %74, %c16_i32 : i32
              %222 = arith.addi %212, %221 : i32
              %223 = cute.assume(%222) : (i32) -> !cute.i32<divby 16>
              %224 = cute.assume(%214) : (i32) -> !cute.i32<divby 64>
              %225 = cute.make_coord(%223, %224) : (!cute.i32<divby 16>, !cute.i32<divby 64>) -> !coord_3
              %226 = cute.domain_offset(%tmas_c_2, %225) : (!tma_a_2, !coord_3) -> !coord_tensor_11
              %tiles_32 = cute.flat_divide(%226, %17) : (!coord_tensor_11, !cute.shape<"(16,64)">) -> !tiles_2
              %227 = cute.get_layout(%tiles_32) : !tiles_2
              %228:2 = cute.get_scalars<{only_dynamic}> (%227) : !layout_3
              %source = cute.group_modes<0, 2> (%here_31) : (!here) -> !source
              %229 = cute.slice(%tiles_32, %18) : !tiles_2, !cute.coord<"(_,_,0,0)">
              %target = cute.group_modes<0, 2> (%229) : (!coord_tensor_12) -> !target_2
              cute.copy(%tmas_c, %source, %target) : (!tmas_c, !source, !target_2) -> ()
              cute_nvgpu.arch.bulk_commit_group() : () -> ()
            }
          }
          %168 = arith.minui %k_tiles, %c2_i32 : i32
          %169:6 = scf.for %arg5 = %c1_i32 to %168 step %c1_i32 iter_args(%arg6 = %arg3, %arg7 = %arg4, %arg8 = %arg2, %arg9 = %162, %arg10 = %159, %arg11 = %161) -> (i32, i32, i32, i32, i32, i32) : i32 {
            %197 = cute.make_int_tuple(%arg10) : (i32) -> !cute.int_tuple<"?">
            %198 = cute.add_offset(%barrier_storage_5, %197) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_wait(%198, %arg11) : (!cute.ptr<i64, smem>, i32) -> ()
            %following_26 = arith.addi %arg10, %c1_i32 : i32
            %wraps_27 = arith.cmpi eq, %following_26, %c4_i32 : i32
            %199 = arith.select %wraps_27, %c0_i32, %following_26 : i32
            %200 = arith.select %wraps_27, %c1_i32, %c0_i32 : i32
            %201 = arith.xori %arg11, %200 : i32
            %202 = arith.addi %arg9, %c1_i32 : i32
            cute_nvgpu.arch.wgmma_fence() : () -> ()
            %203 = cute.make_coord(%arg10) : (i32) -> !cute.coord<"(_,_,_,?)">
            %204 = cute.slice(%rA, %203) : !rA, !cute.coord<"(_,_,_,?)">
            %205 = cute.make_coord(%arg10) : (i32) -> !cute.coord<"(_,_,_,?)">
            %206 = cute.slice(%rB, %205) : !rB, !cute.coord<"(_,_,_,?)">
            cute.gemm(%10, %acc, %204, %206, %acc) : (!tiled_mma, !acc, !memref_9, !memref_10, !acc) -> ()
            cute_nvgpu.arch.wgmma_commit_group() : () -> ()
            cute_nvgpu.arch.wgmma_wait_group() {n = 1 : i32} : () -> ()
            %207 = arith.addi %arg6, %c4_i32 : i32
            %208 = cute.make_int_tuple(%207) : (i32) -> !cute.int_tuple<"?">
            %209 = cute.add_offset(%barrier_storage_5, %208) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_arrive_cluster(%209, %49, %48) : (!cute.ptr<i64, smem>, i32, i1) -> ()
            scf.yield %arg10, %arg11, %arg9, %202, %199, %201 : i32, i32, i32, i32, i32, i32
          }
          %170 = arith.cmpi ne, %tile_17, %tile : i32
          scf.if %170 {
            %197 = cute.add_offset(%87, %21) : (!ptr, !cute.int_tuple<"64">) -> !ptr
            %values_26 = cute.make_view(%197, %14) : !values
            %slot_27 = arith.muli %first, %c2_i32 : i32
            %198 = arith.muli %arg0, %c128_i32 : i32
            %199 = arith.muli %first, %c64_i32 : i32
            %200 = arith.addi %198, %199 : i32
            %201 = arith.muli %arg1, %c256_i32 : i32
            %202 = arith.addi %201, %c128_i32 : i32
            %203 = arith.cmpi eq, %71, %c0_i32 : i32
            scf.if %203 {
              cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
            }
            cute_nvgpu.arch.syncwarp() : () -> ()
            %204 = cute.assume(%slot_27) : (i32) -> !cute.i32<divby 2>
            %205 = cute.make_coord(%74, %204) : (i32, !cute.i32<divby 2>) -> !coord
            %here_28 = cute.slice(%76, %205) : !memref_7, !coord
            %206 = cute.tiled.copy.retile(%16, %values_26) : (!tiled_copy, !values) -> !memref_11
            %207 = cute.make_coord(%71) : (i32) -> !cute.coord<"?">
            %208 = cute.tiled.copy.partition_D(%16, %here_28, %207) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_12
            cute.copy(%15, %206, %208) : (!stsm, !memref_11, !memref_12) -> ()
            cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
            cute_nvgpu.arch.syncwarp() : () -> ()
            %209 = arith.cmpi eq, %71, %c0_i32 : i32
            scf.if %209 {
              %223 = arith.muli %74, %c16_i32 : i32
              %224 = arith.addi %200, %223 : i32
              %225 = cute.assume(%224) : (i32) -> !cute.i32<divby 16>
              %226 = cute.assume(%202) : (i32) -> !cute.i32<divby 128>
              %227 = cute.make_coord(%225, %226) : (!cute.i32<divby 16>, !cute.i32<divby 128>) -> !coord_4
              %228 = cute.domain_offset(%tmas_c_2, %227) : (!tma_a_2, !coord_4) -> !coord_tensor_13
              %tiles_32 = cute.flat_divide(%228, %17) : (!coord_tensor_13, !cute.shape<"(16,64)">) -> !tiles_3
              %229 = cute.get_layout(%tiles_32) : !tiles_3
              %230:2 = cute.get_scalars<{only_dynamic}> (%229) : !layout_3
              %source = cute.group_modes<0, 2> (%here_28) : (!here) -> !source
              %231 = cute.slice(%tiles_32, %18) : !tiles_3, !cute.coord<"(_,_,0,0)">
              %target = cute.group_modes<0, 2> (%231) : (!coord_tensor_14) -> !target_3
              cute.copy(%tmas_c, %source, %target) : (!tmas_c, !source, !target_3) -> ()
              cute_nvgpu.arch.bulk_commit_group() : () -> ()
            }
            %210 = cute.add_offset(%86, %22) : (!ptr, !cute.int_tuple<"96">) -> !ptr
            %values_29 = cute.make_view(%210, %14) : !values
            %211 = arith.muli %first, %c2_i32 : i32
            %slot_30 = arith.addi %211, %c1_i32 : i32
            %212 = arith.muli %arg0, %c128_i32 : i32
            %213 = arith.muli %first, %c64_i32 : i32
            %214 = arith.addi %212, %213 : i32
            %215 = arith.muli %arg1, %c256_i32 : i32
            %216 = arith.addi %215, %c192_i32 : i32
            %217 = arith.cmpi eq, %71, %c0_i32 : i32
            scf.if %217 {
              cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
            }
            cute_nvgpu.arch.syncwarp() : () -> ()
            %218 = cute.make_coord(%74, %slot_30) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
            %here_31 = cute.slice(%76, %218) : !memref_7, !cute.coord<"(_,_,?,?)">
            %219 = cute.tiled.copy.retile(%16, %values_29) : (!tiled_copy, !values) -> !memref_11
            %220 = cute.make_coord(%71) : (i32) -> !cute.coord<"?">
            %221 = cute.tiled.copy.partition_D(%16, %here_31, %220) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_12
            cute.copy(%15, %219, %221) : (!stsm, !memref_11, !memref_12) -> ()
            cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
            cute_nvgpu.arch.syncwarp() : () -> ()
            %222 = arith.cmpi eq, %71, %c0_i32 : i32
            scf.if %222 {
              %223 = arith.muli %74, %c16_i32 : i32
              %224 = arith.addi %214, %223 : i32
              %225 = cute.assume(%224) : (i32) -> !cute.i32<divby 16>
              %226 = cute.assume(%216) : (i32) -> !cute.i32<divby 64>
              %227 = cute.make_coord(%225, %226) : (!cute.i32<divby 16>, !cute.i32<divby 64>) -> !coord_3
              %228 = cute.domain_offset(%tmas_c_2, %227) : (!tma_a_2, !coord_3) -> !coord_tensor_11
              %tiles_32 = cute.flat_divide(%228, %17) : (!coord_tensor_11, !cute.shape<"(16,64)">) -> !tiles_2
              %229 = cute.get_layout(%tiles_32) : !tiles_2
              %230:2 = cute.get_scalars<{only_dynamic}> (%229) : !layout_3
              %source = cute.group_modes<0, 2> (%here_31) : (!here) -> !source
              %231 = cute.slice(%tiles_32, %18) : !tiles_2, !cute.coord<"(_,_,0,0)">
              %target = cute.group_modes<0, 2> (%231) : (!coord_tensor_12) -> !target_2
              cute.copy(%tmas_c, %source, %target) : (!tmas_c, !source, !target_2) -> ()
              cute_nvgpu.arch.bulk_commit_group() : () -> ()
            }
          }
          %171:6 = scf.for %arg5 = %c2_i32 to %k_tiles step %c1_i32 iter_args(%arg6 = %169#0, %arg7 = %169#1, %arg8 = %169#2, %arg9 = %169#3, %arg10 = %169#4, %arg11 = %169#5) -> (i32, i32, i32, i32, i32, i32) : i32 {
            %197 = cute.make_int_tuple(%arg10) : (i32) -> !cute.int_tuple<"?">
            %198 = cute.add_offset(%barrier_storage_5, %197) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_wait(%198, %arg11) : (!cute.ptr<i64, smem>, i32) -> ()
            %following_26 = arith.addi %arg10, %c1_i32 : i32
            %wraps_27 = arith.cmpi eq, %following_26, %c4_i32 : i32
            %199 = arith.select %wraps_27, %c0_i32, %following_26 : i32
            %200 = arith.select %wraps_27, %c1_i32, %c0_i32 : i32
            %201 = arith.xori %arg11, %200 : i32
            %202 = arith.addi %arg9, %c1_i32 : i32
            cute_nvgpu.arch.wgmma_fence() : () -> ()
            %203 = cute.make_coord(%arg10) : (i32) -> !cute.coord<"(_,_,_,?)">
            %204 = cute.slice(%rA, %203) : !rA, !cute.coord<"(_,_,_,?)">
            %205 = cute.make_coord(%arg10) : (i32) -> !cute.coord<"(_,_,_,?)">
            %206 = cute.slice(%rB, %205) : !rB, !cute.coord<"(_,_,_,?)">
            cute.gemm(%10, %acc, %204, %206, %acc) : (!tiled_mma, !acc, !memref_9, !memref_10, !acc) -> ()
            cute_nvgpu.arch.wgmma_commit_group() : () -> ()
            cute_nvgpu.arch.wgmma_wait_group() {n = 1 : i32} : () -> ()
            %207 = arith.addi %arg6, %c4_i32 : i32
            %208 = cute.make_int_tuple(%207) : (i32) -> !cute.int_tuple<"?">
            %209 = cute.add_offset(%barrier_storage_5, %208) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_arrive_cluster(%209, %49, %48) : (!cute.ptr<i64, smem>, i32, i1) -> ()
            scf.yield %arg10, %arg11, %arg9, %202, %199, %201 : i32, i32, i32, i32, i32, i32
          }
          cute_nvgpu.arch.wgmma_wait_group(%acc) {n = 0 : i32} : (!acc) -> ()
          %172 = arith.addi %171#0, %c4_i32 : i32
          %173 = cute.make_int_tuple(%172) : (i32) -> !cute.int_tuple<"?">
          %174 = cute.add_offset(%barrier_storage_5, %173) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_arrive_cluster(%174, %49, %48) : (!cute.ptr<i64, smem>, i32, i1) -> ()
          %values_22 = cute.make_view(%start, %23) : !values_2
          %175 = cute.get_iter(%values_22) : !values_2
          %176 = cute.get_iter(%values_22) : !values_2
          %177 = cute.get_iter(%values_22) : !values_2
          %178 = cute.get_iter(%values_22) : !values_2
          %sums = cute.make_view(%178, %14) : !sums
          %179 = cute.make_view(%85, %14) : !values
          %180 = cute.memref.load_vec %sums : !sums
          %181 = arith.truncf %180 : vector<32xf32> to vector<32xf16>
          cute.memref.store_vec %181, %179 : !values
          %182 = cute.add_offset(%177, %19) : (!start, !cute.int_tuple<"32">) -> !start
          %sums_23 = cute.make_view(%182, %14) : !sums
          %183 = cute.add_offset(%84, %19) : (!ptr, !cute.int_tuple<"32">) -> !ptr
          %184 = cute.make_view(%183, %14) : !values
          %185 = cute.memref.load_vec %sums_23 : !sums
          %186 = arith.truncf %185 : vector<32xf32> to vector<32xf16>
          cute.memref.store_vec %186, %184 : !values
          %187 = cute.add_offset(%176, %21) : (!start, !cute.int_tuple<"64">) -> !start
          %sums_24 = cute.make_view(%187, %14) : !sums
          %188 = cute.add_offset(%83, %21) : (!ptr, !cute.int_tuple<"64">) -> !ptr
          %189 = cute.make_view(%188, %14) : !values
          %190 = cute.memref.load_vec %sums_24 : !sums
          %191 = arith.truncf %190 : vector<32xf32> to vector<32xf16>
          cute.memref.store_vec %191, %189 : !values
          %192 = cute.add_offset(%175, %22) : (!start, !cute.int_tuple<"96">) -> !start
          %sums_25 = cute.make_view(%192, %14) : !sums
          %193 = cute.add_offset(%82, %22) : (!ptr, !cute.int_tuple<"96">) -> !ptr
          %194 = cute.make_view(%193, %14) : !values
          %195 = cute.memref.load_vec %sums_25 : !sums
          %196 = arith.truncf %195 : vector<32xf32> to vector<32xf16>
          cute.memref.store_vec %196, %194 : !values
          scf.yield %row_21, %column_20, %171#3, %171#4, %171#5 : i32, i32, i32, i32, i32
        }
        %values = cute.make_view(%81, %14) : !values
        %slot = arith.muli %first, %c2_i32 : i32
        %99 = arith.muli %98#0, %c128_i32 : i32
        %100 = arith.muli %first, %c64_i32 : i32
        %101 = arith.addi %99, %100 : i32
        %102 = arith.muli %98#1, %c256_i32 : i32
        %103 = arith.cmpi eq, %71, %c0_i32 : i32
        scf.if %103 {
          cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
        }
        cute_nvgpu.arch.syncwarp() : () -> ()
        %104 = cute.assume(%slot) : (i32) -> !cute.i32<divby 2>
        %105 = cute.make_coord(%74, %104) : (i32, !cute.i32<divby 2>) -> !coord
        %here = cute.slice(%76, %105) : !memref_7, !coord
        %106 = cute.tiled.copy.retile(%16, %values) : (!tiled_copy, !values) -> !memref_11
        %107 = cute.make_coord(%71) : (i32) -> !cute.coord<"?">
        %108 = cute.tiled.copy.partition_D(%16, %here, %107) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_12
        cute.copy(%15, %106, %108) : (!stsm, !memref_11, !memref_12) -> ()
        cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
        cute_nvgpu.arch.syncwarp() : () -> ()
        %109 = arith.cmpi eq, %71, %c0_i32 : i32
        scf.if %109 {
          %150 = arith.muli %74, %c16_i32 : i32
          %151 = arith.addi %101, %150 : i32
          %152 = cute.assume(%151) : (i32) -> !cute.i32<divby 16>
          %153 = cute.assume(%102) : (i32) -> !cute.i32<divby 256>
          %154 = cute.make_coord(%152, %153) : (!cute.i32<divby 16>, !cute.i32<divby 256>) -> !coord_2
          %155 = cute.domain_offset(%tmas_c_2, %154) : (!tma_a_2, !coord_2) -> !coord_tensor_9
          %tiles_17 = cute.flat_divide(%155, %17) : (!coord_tensor_9, !cute.shape<"(16,64)">) -> !tiles
          %156 = cute.get_layout(%tiles_17) : !tiles
          %157:2 = cute.get_scalars<{only_dynamic}> (%156) : !layout_3
          %source = cute.group_modes<0, 2> (%here) : (!here) -> !source
          %158 = cute.slice(%tiles_17, %18) : !tiles, !cute.coord<"(_,_,0,0)">
          %target = cute.group_modes<0, 2> (%158) : (!coord_tensor_10) -> !target
          cute.copy(%tmas_c, %source, %target) : (!tmas_c, !source, !target) -> ()
          cute_nvgpu.arch.bulk_commit_group() : () -> ()
        }
        %110 = cute.add_offset(%80, %19) : (!ptr, !cute.int_tuple<"32">) -> !ptr
        %values_8 = cute.make_view(%110, %14) : !values
        %111 = arith.muli %first, %c2_i32 : i32
        %slot_9 = arith.addi %111, %c1_i32 : i32
        %112 = arith.muli %98#0, %c128_i32 : i32
        %113 = arith.muli %first, %c64_i32 : i32
        %114 = arith.addi %112, %113 : i32
        %115 = arith.muli %98#1, %c256_i32 : i32
        %116 = arith.addi %115, %c64_i32 : i32
        %117 = arith.cmpi eq, %71, %c0_i32 : i32
        scf.if %117 {
          cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
        }
        cute_nvgpu.arch.syncwarp() : () -> ()
        %118 = cute.make_coord(%74, %slot_9) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
        %here_10 = cute.slice(%76, %118) : !memref_7, !cute.coord<"(_,_,?,?)">
        %119 = cute.tiled.copy.retile(%16, %values_8) : (!tiled_copy, !values) -> !memref_11
        %120 = cute.make_coord(%71) : (i32) -> !cute.coord<"?">
        %121 = cute.tiled.copy.partition_D(%16, %here_10, %120) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_12
        cute.copy(%15, %119, %121) : (!stsm, !memref_11, !memref_12) -> ()
        cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
        cute_nvgpu.arch.syncwarp() : () -> ()
        %122 = arith.cmpi eq, %71, %c0_i32 : i32
        scf.if %122 {
          %150 = arith.muli %74, %c16_i32 : i32
          %151 = arith.addi %114, %150 : i32
          %152 = cute.assume(%151) : (i32) -> !cute.i32<divby 16>
          %153 = cute.assume(%116) : (i32) -> !cute.i32<divby 64>
          %154 = cute.make_coord(%152, %153) : (!cute.i32<divby 16>, !cute.i32<divby 64>) -> !coord_3
          %155 = cute.domain_offset(%tmas_c_2, %154) : (!tma_a_2, !coord_3) -> !coord_tensor_11
          %tiles_17 = cute.flat_divide(%155, %17) : (!coord_tensor_11, !cute.shape<"(16,64)">) -> !tiles_2
          %156 = cute.get_layout(%tiles_17) : !tiles_2
          %157:2 = cute.get_scalars<{only_dynamic}> (%156) : !layout_3
          %source = cute.group_modes<0, 2> (%here_10) : (!here) -> !source
          %158 = cute.slice(%tiles_17, %18) : !tiles_2, !cute.coord<"(_,_,0,0)">
          %target = cute.group_modes<0, 2> (%158) : (!coord_tensor_12) -> !target_2
          cute.copy(%tmas_c, %source, %target) : (!tmas_c, !source, !target_2) -> ()
          cute_nvgpu.arch.bulk_commit_group() : () -> ()
        }
        %123 = cute.add_offset(%79, %21) : (!ptr, !cute.int_tuple<"64">) -> !ptr
        %values_11 = cute.make_view(%123, %14) : !values
        %slot_12 = arith.muli %first, %c2_i32 : i32
        %124 = arith.muli %98#0, %c128_i32 : i32
        %125 = arith.muli %first, %c64_i32 : i32
        %126 = arith.addi %124, %125 : i32
        %127 = arith.muli %98#1, %c256_i32 : i32
        %128 = arith.addi %127, %c128_i32 : i32
        %129 = arith.cmpi eq, %71, %c0_i32 : i32
        scf.if %129 {
          cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
        }
        cute_nvgpu.arch.syncwarp() : () -> ()
        %130 = cute.assume(%slot_12) : (i32) -> !cute.i32<divby 2>
        %131 = cute.make_coord(%74, %130) : (i32, !cute.i32<divby 2>) -> !coord
        %here_13 = cute.slice(%76, %131) : !memref_7, !coord
        %132 = cute.tiled.copy.retile(%16, %values_11) : (!tiled_copy, !values) -> !memref_11
        %133 = cute.make_coord(%71) : (i32) -> !cute.coord<"?">
        %134 = cute.tiled.copy.partition_D(%16, %here_13, %133) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_12
        cute.copy(%15, %132, %134) : (!stsm, !memref_11, !memref_12) -> ()
        cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
        cute_nvgpu.arch.syncwarp() : () -> ()
        %135 = arith.cmpi eq, %71, %c0_i32 : i32
        scf.if %135 {
          %150 = arith.muli %74, %c16_i32 : i32
          %151 = arith.addi %126, %150 : i32
          %152 = cute.assume(%151) : (i32) -> !cute.i32<divby 16>
          %153 = cute.assume(%128) : (i32) -> !cute.i32<divby 128>
          %154 = cute.make_coord(%152, %153) : (!cute.i32<divby 16>, !cute.i32<divby 128>) -> !coord_4
          %155 = cute.domain_offset(%tmas_c_2, %154) : (!tma_a_2, !coord_4) -> !coord_tensor_13
          %tiles_17 = cute.flat_divide(%155, %17) : (!coord_tensor_13, !cute.shape<"(16,64)">) -> !tiles_3
          %156 = cute.get_layout(%tiles_17) : !tiles_3
          %157:2 = cute.get_scalars<{only_dynamic}> (%156) : !layout_3
          %source = cute.group_modes<0, 2> (%here_13) : (!here) -> !source
          %158 = cute.slice(%tiles_17, %18) : !tiles_3, !cute.coord<"(_,_,0,0)">
          %target = cute.group_modes<0, 2> (%158) : (!coord_tensor_14) -> !target_3
          cute.copy(%tmas_c, %source, %target) : (!tmas_c, !source, !target_3) -> ()
          cute_nvgpu.arch.bulk_commit_group() : () -> ()
        }
        %136 = cute.add_offset(%78, %22) : (!ptr, !cute.int_tuple<"96">) -> !ptr
        %values_14 = cute.make_view(%136, %14) : !values
        %137 = arith.muli %first, %c2_i32 : i32
        %slot_15 = arith.addi %137, %c1_i32 : i32
        %138 = arith.muli %98#0, %c128_i32 : i32
        %139 = arith.muli %first, %c64_i32 : i32
        %140 = arith.addi %138, %139 : i32
        %141 = arith.muli %98#1, %c256_i32 : i32
        %142 = arith.addi %141, %c192_i32 : i32
        %143 = arith.cmpi eq, %71, %c0_i32 : i32
        scf.if %143 {
          cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
        }
        cute_nvgpu.arch.syncwarp() : () -> ()
        %144 = cute.make_coord(%74, %slot_15) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
        %here_16 = cute.slice(%76, %144) : !memref_7, !cute.coord<"(_,_,?,?)">
        %145 = cute.tiled.copy.retile(%16, %values_14) : (!tiled_copy, !values) -> !memref_11
        %146 = cute.make_coord(%71) : (i32) -> !cute.coord<"?">
        %147 = cute.tiled.copy.partition_D(%16, %here_16, %146) : (!tiled_copy, !here, !cute.coord<"?">) -> !memref_12
        cute.copy(%15, %145, %147) : (!stsm, !memref_11, !memref_12) -> ()
        cute_nvgpu.arch.fence_proxy_async() {space = "shared_cta"} : () -> ()
        cute_nvgpu.arch.syncwarp() : () -> ()
        %148 = arith.cmpi eq, %71, %c0_i32 : i32
        scf.if %148 {
          %150 = arith.muli %74, %c16_i32 : i32
          %151 = arith.addi %140, %150 : i32
          %152 = cute.assume(%151) : (i32) -> !cute.i32<divby 16>
          %153 = cute.assume(%142) : (i32) -> !cute.i32<divby 64>
          %154 = cute.make_coord(%152, %153) : (!cute.i32<divby 16>, !cute.i32<divby 64>) -> !coord_3
          %155 = cute.domain_offset(%tmas_c_2, %154) : (!tma_a_2, !coord_3) -> !coord_tensor_11
          %tiles_17 = cute.flat_divide(%155, %17) : (!coord_tensor_11, !cute.shape<"(16,64)">) -> !tiles_2
          %156 = cute.get_layout(%tiles_17) : !tiles_2
          %157:2 = cute.get_scalars<{only_dynamic}> (%156) : !layout_3
          %source = cute.group_modes<0, 2> (%here_16) : (!here) -> !source
          %158 = cute.slice(%tiles_17, %18) : !tiles_2, !cute.coord<"(_,_,0,0)">
          %target = cute.group_modes<0, 2> (%158) : (!coord_tensor_12) -> !target_2
          cute.copy(%tmas_c, %source, %target) : (!tmas_c, !source, !target_2) -> ()
          cute_nvgpu.arch.bulk_commit_group() : () -> ()
        }
        %149 = arith.cmpi eq, %71, %c0_i32 : i32
        scf.if %149 {
          cute_nvgpu.arch.bulk_wait_group() {n = 0 : i32, read = true} : () -> ()
        }
        scf.yield %c0_i32, %c0_i32, %c1_i32, %98#2, %98#3, %98#4 : i32, i32, i32, i32, i32, i32
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
