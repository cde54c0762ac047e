// C[M,N] = A[M,K] * B[N,K]^T: A (K-major), B (K-major) of f16, sums in f32, C of f16.
//
// A block computes tiles of 128 x 256; 2 blocks form a cluster and share B.
// Its first warp group fills 4 stages of shared memory (64 elements of K each) by TMA; the other
// 2 multiply them by wgmma, 64 rows each, and store their results by TMA.  Rows of the matrices are
// multiples of 16 bytes; what lies outside of them is filled with zeros and not stored.
//
// full[s] says that stage s is there: one arrival of the producer and all bytes.  empty[s] says that it may be
// filled again: one arrival of every consumer of the cluster.  Their phases alternate with every round of the ring.
//
// TMA wants addresses and rows of whole 16 bytes.  For other matrices the launch falls back to @launch_any: its kernel
// multiplies by mma.sync and reads element by element.

!sA = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,64,4):(64,1,8192)">
!sB = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(256,64,4):(64,1,16384)">
!sC = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,64,2,2):(64,1,4096,8192)">
!barriers = !cute.memref<i64, smem, "(4,2):(1,4)">
!loadA = !cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128, l2 = 256>
!storeC = !cute_nvgpu.atom.tma_store<f16, box = (64, 16), swizzle = 128, l2 = 256>
!wgmma = !cute_nvgpu.atom.wgmma<64x256x16, (f32,f16,f16,f32), A = smem, major = (k, k)>
!mma = !cute.tiled_mma<!wgmma, atom_layout_MNK = <"(2,1,1):(1,0,0)">>
!acc = !cute.memref<f32, rmem, "((2,2,32),1,1):((1,2,4),0,0)">
!result = !cute.memref<f16, rmem, "((2,2,32),1,1):((1,2,4),0,0)">
!A = !cute.memref<f16, gmem, align<16>, "(?,?):(?{div=8},1)">
!tA = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,16),1,4,4):((64,1),0,16,8192)">
!tB = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((256,16),1,4,4):((64,1),0,16,16384)">
!mma_any = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,4,1):(1,2,0)">>
!A_any = !cute.memref<f16, gmem, "(?,?):(?,1)">
!sA2 = !cute.memref<f16, smem, align<16>, "(64,32):(40,1)">
!sums = !cute.memref<f32, smem, align<16>, "(64,64):(72,1)">
!acc2 = !cute.memref<f32, rmem, align<32>, "((2,2),2,2):((1,2),4,8)">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @gemm(%loadA: !loadA, %loadB: !loadA, %storeC: !storeC, %tiles_m: i32, %tiles_n: i32, %k_tiles: i32) kernel attributes {known_block_size = array<i32: 384, 1, 1>, known_cluster_size = array<i32: 2, 1, 1>, nvvm.minctasm = 1 : i32} {
      %c192_i32 = arith.constant 192 : i32
      %c16_i32 = arith.constant 16 : i32
      %c3_i16 = arith.constant 3 : i16
      %c64_i32 = arith.constant 64 : i32
      %c49152_i32 = arith.constant 49152 : i32
      %c256_i32 = arith.constant 256 : i32
      %c128_i32 = arith.constant 128 : i32
      %c8_i32 = arith.constant 8 : i32
      %c1_i32 = arith.constant 1 : i32
      %c0_i32 = arith.constant 0 : i32
      %c4_i32 = arith.constant 4 : i32
      %c2_i32 = arith.constant 2 : i32
      // This block's tiles: every grid-size-th one, from its own number on.
      %0 = nvvm.read.ptx.sreg.ctaid.x : i32
      %1 = nvvm.read.ptx.sreg.nctaid.x : i32
      %rank = cute_nvgpu.arch.cluster_rank() : () -> i32
      %2 = arith.divui %0, %c2_i32 : i32
      %3 = arith.divui %1, %c2_i32 : i32
      %4 = arith.muli %tiles_m, %tiles_n : i32
      // Shared memory: the stages of A and B, two buffers a consumer for C, the barriers full and empty.
      %sA = cute.memref.alloc_smem() : !sA
      %sB = cute.memref.alloc_smem() : !sB
      %sC = cute.memref.alloc_smem() : !sC
      %barriers = cute.memref.alloc_smem() : !barriers
      %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 384> : i32
      %5 = cute_nvgpu.arch.warp_id() : () -> i32
      %warp_group = arith.divui %5, %c4_i32 : i32
      %warp = arith.remui %5, %c4_i32 : i32
      %lane = cute_nvgpu.arch.lane_id() : () -> i32
      // One thread makes the barriers.
      %6 = arith.cmpi eq, %tid, %c0_i32 : i32
      scf.if %6 {
        cute_nvgpu.arch.prefetch_tensormap(%loadA) : (!loadA) -> ()
        cute_nvgpu.arch.prefetch_tensormap(%loadB) : (!loadA) -> ()
        cute_nvgpu.arch.prefetch_tensormap(%storeC) : (!storeC) -> ()
        scf.for %arg0 = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
          %16 = cute.get_iter(%barriers) : !barriers
          %17 = cute.make_int_tuple(%arg0) : (i32) -> !cute.int_tuple<"?">
          %18 = cute.add_offset(%16, %17) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%18, %c1_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %19 = arith.addi %arg0, %c4_i32 : i32
          %20 = cute.get_iter(%barriers) : !barriers
          %21 = cute.make_int_tuple(%19) : (i32) -> !cute.int_tuple<"?">
          %22 = cute.add_offset(%20, %21) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%22, %c4_i32) : (!cute.ptr<i64, smem>, i32) -> ()
        }
        cute_nvgpu.arch.fence_mbarrier_init() : () -> ()
      }
      %7 = cute.get_iter(%sA) : !sA
      %8 = cute.static : !cute.layout<"(128,1,64,4):(64,8192,1,8192)">
      %9 = cute.make_view(%7, %8) : !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,1,64,4):(64,8192,1,8192)">
      %10 = cute.get_iter(%sB) : !sB
      %11 = cute.static : !cute.layout<"(128,2,64,4):(64,8192,1,16384)">
      %12 = cute.make_view(%10, %11) : !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,2,64,4):(64,8192,1,16384)">
      // The first loads: those that only this block's barriers see need not wait for the cluster.
      %13 = arith.minui %k_tiles, %c4_i32 : i32
      %14 = arith.cmpi eq, %tid, %c0_i32 : i32
      scf.if %14 {
        %16 = arith.muli %tiles_n, %c8_i32 : i32
        %17 = arith.divui %2, %16 : i32
        %18 = arith.muli %17, %16 : i32
        %19 = arith.subi %2, %18 : i32
        %20 = arith.muli %17, %c8_i32 : i32
        %21 = arith.subi %tiles_m, %20 : i32
        %22 = arith.minui %21, %c8_i32 : i32
        %23 = arith.divui %19, %22 : i32
        %24 = arith.muli %23, %22 : i32
        %25 = arith.subi %19, %24 : i32
        %26 = arith.addi %20, %25 : i32
        %27 = arith.andi %17, %c1_i32 : i32
        %28 = arith.cmpi ne, %27, %c0_i32 : i32
        %29 = arith.subi %tiles_n, %c1_i32 : i32
        %30 = arith.subi %29, %23 : i32
        %31 = arith.select %28, %30, %23 : i32
        %32 = arith.muli %26, %c2_i32 : i32
        %33 = arith.addi %32, %rank : i32
        %m0 = arith.muli %33, %c128_i32 : i32
        %n0 = arith.muli %31, %c256_i32 : i32
        scf.for %arg0 = %c0_i32 to %13 step %c1_i32 : i32 {
          %34 = cute.get_iter(%barriers) : !barriers
          %35 = cute.make_int_tuple(%arg0) : (i32) -> !cute.int_tuple<"?">
          %36 = cute.add_offset(%34, %35) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_arrive_expect_tx(%36, %c49152_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %37 = arith.muli %arg0, %c64_i32 : i32
          %38 = cute.make_int_tuple(%37, %m0) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %39 = cute.static : !cute.layout<"(128,64):(1@1,1@0)">
          %40 = cute.make_view(%38, %39) : !cute.coord_tensor<"(?,?)", "(128,64):(1@1,1@0)">
          %41 = cute.get_iter(%barriers) : !barriers
          %42 = cute.make_int_tuple(%arg0) : (i32) -> !cute.int_tuple<"?">
          %43 = cute.add_offset(%41, %42) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          %44 = cute.atom.set_value(%loadA, %43) {field = tma_bar} : (!loadA, !cute.ptr<i64, smem>) -> !loadA
          %45 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,0,_,?)">
          %46 = cute.slice(%9, %45) : !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,1,64,4):(64,8192,1,8192)">, !cute.coord<"(_,0,_,?)">
          cute.copy(%44, %40, %46) : (!loadA, !cute.coord_tensor<"(?,?)", "(128,64):(1@1,1@0)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,64):(64,1)">) -> ()
        }
      }
      cute_nvgpu.arch.cluster_arrive() {relaxed = true} : () -> ()
      cute_nvgpu.arch.cluster_wait() : () -> ()
      // Warp group 0 produces, the others consume.
      %15 = arith.cmpi eq, %warp_group, %c0_i32 : i32
      scf.if %15 {
        cute_nvgpu.arch.setmaxnreg() {action = "decrease", count = 40 : i32} : () -> ()
        %16 = arith.cmpi eq, %warp, %c0_i32 : i32
        scf.if %16 {
          %17 = cute_nvgpu.arch.elect_one() : () -> i1
          scf.if %17 {
            %18 = arith.muli %tiles_n, %c8_i32 : i32
            %19 = arith.divui %2, %18 : i32
            %20 = arith.muli %19, %18 : i32
            %21 = arith.subi %2, %20 : i32
            %22 = arith.muli %19, %c8_i32 : i32
            %23 = arith.subi %tiles_m, %22 : i32
            %24 = arith.minui %23, %c8_i32 : i32
            %25 = arith.divui %21, %24 : i32
            %26 = arith.muli %25, %24 : i32
            %27 = arith.subi %21, %26 : i32
            %28 = arith.addi %22, %27 : i32
            %29 = arith.andi %19, %c1_i32 : i32
            %30 = arith.cmpi ne, %29, %c0_i32 : i32
            %31 = arith.subi %tiles_n, %c1_i32 : i32
            %32 = arith.subi %31, %25 : i32
            %33 = arith.select %30, %32, %25 : i32
            %34 = arith.muli %28, %c2_i32 : i32
            %35 = arith.addi %34, %rank : i32
            %m0 = arith.muli %35, %c128_i32 : i32
            %n0 = arith.muli %33, %c256_i32 : i32
            scf.for %arg0 = %c0_i32 to %13 step %c1_i32 : i32 {
              %40 = arith.muli %rank, %c128_i32 : i32
              %41 = arith.addi %n0, %40 : i32
              %42 = arith.muli %arg0, %c64_i32 : i32
              %43 = cute.make_int_tuple(%42, %41) : (i32, i32) -> !cute.int_tuple<"(?,?)">
              %44 = cute.static : !cute.layout<"(128,64):(1@1,1@0)">
              %45 = cute.make_view(%43, %44) : !cute.coord_tensor<"(?,?)", "(128,64):(1@1,1@0)">
              %46 = cute.get_iter(%barriers) : !barriers
              %47 = cute.make_int_tuple(%arg0) : (i32) -> !cute.int_tuple<"?">
              %48 = cute.add_offset(%46, %47) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
              %49 = cute.atom.set_value(%loadB, %48) {field = tma_bar} : (!loadA, !cute.ptr<i64, smem>) -> !loadA
              %50 = cute.atom.set_value(%49, %c3_i16) {field = multicast_mask} : (!loadA, i16) -> !loadA
              %51 = cute.make_coord(%rank, %arg0) : (i32, i32) -> !cute.coord<"(_,?,_,?)">
              %52 = cute.slice(%12, %51) : !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,2,64,4):(64,8192,1,16384)">, !cute.coord<"(_,?,_,?)">
              cute.copy(%50, %45, %52) : (!loadA, !cute.coord_tensor<"(?,?)", "(128,64):(1@1,1@0)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,64):(64,1)">) -> ()
            }
            %36 = arith.remui %13, %c4_i32 : i32
            %37 = arith.divui %13, %c4_i32 : i32
            %38 = arith.andi %37, %c1_i32 : i32
            %39:4 = scf.for %tile = %2 to %4 step %3 iter_args(%slot = %36, %phase = %38, %start = %13, %flip = %c0_i32) -> (i32, i32, i32, i32) : i32 {
              %40 = arith.muli %tiles_n, %c8_i32 : i32
              %41 = arith.divui %tile, %40 : i32
              %42 = arith.muli %41, %40 : i32
              %43 = arith.subi %tile, %42 : i32
              %44 = arith.muli %41, %c8_i32 : i32
              %45 = arith.subi %tiles_m, %44 : i32
              %46 = arith.minui %45, %c8_i32 : i32
              %47 = arith.divui %43, %46 : i32
              %48 = arith.muli %47, %46 : i32
              %49 = arith.subi %43, %48 : i32
              %50 = arith.addi %44, %49 : i32
              %51 = arith.andi %41, %c1_i32 : i32
              %52 = arith.cmpi ne, %51, %c0_i32 : i32
              %53 = arith.subi %tiles_n, %c1_i32 : i32
              %54 = arith.subi %53, %47 : i32
              %55 = arith.select %52, %54, %47 : i32
              %56 = arith.muli %50, %c2_i32 : i32
              %57 = arith.addi %56, %rank : i32
              %m0_0 = arith.muli %57, %c128_i32 : i32
              %n0_1 = arith.muli %55, %c256_i32 : i32
              %58:2 = scf.for %k = %start to %k_tiles step %c1_i32 iter_args(%slot_2 = %slot, %phase_3 = %phase) -> (i32, i32) : i32 {
                %60 = arith.addi %slot_2, %c4_i32 : i32
                %61 = cute.get_iter(%barriers) : !barriers
                %62 = cute.make_int_tuple(%60) : (i32) -> !cute.int_tuple<"?">
                %63 = cute.add_offset(%61, %62) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
                %64 = arith.xori %phase_3, %c1_i32 : i32
                cute_nvgpu.arch.mbarrier_wait(%63, %64) : (!cute.ptr<i64, smem>, i32) -> ()
                %65 = cute.get_iter(%barriers) : !barriers
                %66 = cute.make_int_tuple(%slot_2) : (i32) -> !cute.int_tuple<"?">
                %67 = cute.add_offset(%65, %66) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
                cute_nvgpu.arch.mbarrier_arrive_expect_tx(%67, %c49152_i32) : (!cute.ptr<i64, smem>, i32) -> ()
                %68 = arith.cmpi ne, %flip, %c0_i32 : i32
                %69 = arith.subi %k_tiles, %c1_i32 : i32
                %70 = arith.subi %69, %k : i32
                %71 = arith.select %68, %70, %k : i32
                %72 = arith.muli %71, %c64_i32 : i32
                %73 = cute.make_int_tuple(%72, %m0_0) : (i32, i32) -> !cute.int_tuple<"(?,?)">
                %74 = cute.static : !cute.layout<"(128,64):(1@1,1@0)">
                %75 = cute.make_view(%73, %74) : !cute.coord_tensor<"(?,?)", "(128,64):(1@1,1@0)">
                %76 = cute.get_iter(%barriers) : !barriers
                %77 = cute.make_int_tuple(%slot_2) : (i32) -> !cute.int_tuple<"?">
                %78 = cute.add_offset(%76, %77) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
                %79 = cute.atom.set_value(%loadA, %78) {field = tma_bar} : (!loadA, !cute.ptr<i64, smem>) -> !loadA
                %80 = cute.make_coord(%slot_2) : (i32) -> !cute.coord<"(_,0,_,?)">
                %81 = cute.slice(%9, %80) : !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,1,64,4):(64,8192,1,8192)">, !cute.coord<"(_,0,_,?)">
                cute.copy(%79, %75, %81) : (!loadA, !cute.coord_tensor<"(?,?)", "(128,64):(1@1,1@0)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,64):(64,1)">) -> ()
                %82 = arith.muli %rank, %c128_i32 : i32
                %83 = arith.addi %n0_1, %82 : i32
                %84 = arith.muli %71, %c64_i32 : i32
                %85 = cute.make_int_tuple(%84, %83) : (i32, i32) -> !cute.int_tuple<"(?,?)">
                %86 = cute.static : !cute.layout<"(128,64):(1@1,1@0)">
                %87 = cute.make_view(%85, %86) : !cute.coord_tensor<"(?,?)", "(128,64):(1@1,1@0)">
                %88 = cute.get_iter(%barriers) : !barriers
                %89 = cute.make_int_tuple(%slot_2) : (i32) -> !cute.int_tuple<"?">
                %90 = cute.add_offset(%88, %89) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
                %91 = cute.atom.set_value(%loadB, %90) {field = tma_bar} : (!loadA, !cute.ptr<i64, smem>) -> !loadA
                %92 = cute.atom.set_value(%91, %c3_i16) {field = multicast_mask} : (!loadA, i16) -> !loadA
                %93 = cute.make_coord(%rank, %slot_2) : (i32, i32) -> !cute.coord<"(_,?,_,?)">
                %94 = cute.slice(%12, %93) : !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,2,64,4):(64,8192,1,16384)">, !cute.coord<"(_,?,_,?)">
                cute.copy(%92, %87, %94) : (!loadA, !cute.coord_tensor<"(?,?)", "(128,64):(1@1,1@0)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,64):(64,1)">) -> ()
                %95 = arith.addi %slot_2, %c1_i32 : i32
                %96 = arith.cmpi eq, %95, %c4_i32 : i32
                %97 = arith.select %96, %c0_i32, %95 : i32
                %98 = arith.extui %96 : i1 to i32
                %99 = arith.xori %phase_3, %98 : i32
                scf.yield %97, %99 : i32, i32
              }
              %59 = arith.xori %flip, %c1_i32 : i32
              scf.yield %58#0, %58#1, %c0_i32, %59 : i32, i32, i32, i32
            }
          }
        }
      } else {
        cute_nvgpu.arch.setmaxnreg() {action = "increase", count = 232 : i32} : () -> ()
        %16 = arith.subi %warp_group, %c1_i32 : i32
        %17 = cute.atom() : !wgmma
        %18 = cute.make_tiled_mma(%17) : !mma
        %19 = arith.muli %16, %c128_i32 : i32
        // What this warp group multiplies: 64 rows of A, all of B; its sums stay in registers.
        %20 = cute.make_coord(%19) : (i32) -> !cute.coord<"?">
        %tA = cute.tiled.mma.partition_A(%18, %sA, %20) : (!mma, !sA, !cute.coord<"?">) -> !tA
        %21 = cute.make_coord(%19) : (i32) -> !cute.coord<"?">
        %tB = cute.tiled.mma.partition_B(%18, %sB, %21) : (!mma, !sB, !cute.coord<"?">) -> !tB
        %acc = cute.memref.alloca() : !acc
        // A slot is free: thread d of a warp group tells block d of the cluster.
        %22 = arith.remui %tid, %c2_i32 : i32
        %23 = arith.remui %tid, %c128_i32 : i32
        %24 = arith.cmpi ult, %23, %c2_i32 : i32
        %25 = cute.atom() : !cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>
        %26 = cute.make_tiled_copy(%25) : !cute.tiled_copy<!cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"((4,8,4),(2,2,8)):((128,1,16),(64,8,512))">, tiler_mn = <"[64:1;64:1]">>
        // Who writes what of a chunk of C: 64 rows of 128 bytes; one warp stores 16 of them.
        %result = cute.memref.alloca() : !result
        %27 = cute.make_coord(%16) : (i32) -> !cute.coord<"(_,_,_,?)">
        %28 = cute.slice(%sC, %27) : !sC, !cute.coord<"(_,_,_,?)">
        %29 = arith.remui %tid, %c128_i32 : i32
        %30 = cute.make_coord(%29) : (i32) -> !cute.coord<"?">
        %31 = cute.tiled.copy.partition_D(%26, %28, %30) : (!cute.tiled_copy<!cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"((4,8,4),(2,2,8)):((128,1,16),(64,8,512))">, tiler_mn = <"[64:1;64:1]">>, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,64,2):(64,1,4096)">, !cute.coord<"?">) -> !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,4),1,1,2):((1,16),0,0,4096)">
        %32 = cute.get_iter(%sC) : !sC
        %33 = cute.static : !cute.layout<"(16,4,64,2,2):(64,1024,1,4096,8192)">
        %34 = cute.make_view(%32, %33) : !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(16,4,64,2,2):(64,1024,1,4096,8192)">
        %35 = cute.make_coord(%warp, %16) : (i32, i32) -> !cute.coord<"(_,?,_,_,?)">
        %36 = cute.slice(%34, %35) : !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(16,4,64,2,2):(64,1024,1,4096,8192)">, !cute.coord<"(_,?,_,_,?)">
        %37 = arith.cmpi eq, %lane, %c0_i32 : i32
        %38:4 = scf.for %tile = %2 to %4 step %3 iter_args(%slot = %c0_i32, %phase = %c0_i32, %last_m0 = %c0_i32, %last_n0 = %c0_i32) -> (i32, i32, i32, i32) : i32 {
          %71 = arith.muli %tiles_n, %c8_i32 : i32
          %72 = arith.divui %tile, %71 : i32
          %73 = arith.muli %72, %71 : i32
          %74 = arith.subi %tile, %73 : i32
          %75 = arith.muli %72, %c8_i32 : i32
          %76 = arith.subi %tiles_m, %75 : i32
          %77 = arith.minui %76, %c8_i32 : i32
          %78 = arith.divui %74, %77 : i32
          %79 = arith.muli %78, %77 : i32
          %80 = arith.subi %74, %79 : i32
          %81 = arith.addi %75, %80 : i32
          %82 = arith.andi %72, %c1_i32 : i32
          %83 = arith.cmpi ne, %82, %c0_i32 : i32
          %84 = arith.subi %tiles_n, %c1_i32 : i32
          %85 = arith.subi %84, %78 : i32
          %86 = arith.select %83, %85, %78 : i32
          %87 = arith.muli %81, %c2_i32 : i32
          %88 = arith.addi %87, %rank : i32
          %m0 = arith.muli %88, %c128_i32 : i32
          %n0 = arith.muli %86, %c256_i32 : i32
          %89 = arith.cmpi ne, %tile, %2 : i32
          %90 = cute.get_iter(%barriers) : !barriers
          %91 = cute.make_int_tuple(%slot) : (i32) -> !cute.int_tuple<"?">
          %92 = cute.add_offset(%90, %91) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_wait(%92, %phase) : (!cute.ptr<i64, smem>, i32) -> ()
          cute_nvgpu.arch.wgmma_fence() : () -> ()
          %93 = cute.make_coord(%slot) : (i32) -> !cute.coord<"(_,_,_,?)">
          %94 = cute.slice(%tA, %93) : !tA, !cute.coord<"(_,_,_,?)">
          %95 = cute.make_coord(%slot) : (i32) -> !cute.coord<"(_,_,_,?)">
          %96 = cute.slice(%tB, %95) : !tB, !cute.coord<"(_,_,_,?)">
          cute.gemm(%18, %acc, %94, %96) : (!mma, !acc, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,16),1,4):((64,1),0,16)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((256,16),1,4):((64,1),0,16)">) -> ()
          cute_nvgpu.arch.wgmma_commit_group() : () -> ()
          %97 = arith.addi %slot, %c1_i32 : i32
          %98 = arith.cmpi eq, %97, %c4_i32 : i32
          %99 = arith.select %98, %c0_i32, %97 : i32
          %100 = arith.extui %98 : i1 to i32
          %101 = arith.xori %phase, %100 : i32
          scf.if %89 {
            %109 = cute.get_iter(%result) : !result
            %110 = cute.static : !cute.int_tuple<"0">
            %111 = cute.add_offset(%109, %110) : (!cute.ptr<f16, rmem>, !cute.int_tuple<"0">) -> !cute.ptr<f16, rmem>
            %112 = cute.static : !cute.layout<"((2,2,8),1,1):((1,2,4),0,0)">
            %113 = cute.make_view(%111, %112) : !cute.memref<f16, rmem, "((2,2,8),1,1):((1,2,4),0,0)">
            scf.if %37 {
              cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
            }
            cute_nvgpu.arch.syncwarp() : () -> ()
            %114 = cute.tiled.copy.retile(%26, %113) : (!cute.tiled_copy<!cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"((4,8,4),(2,2,8)):((128,1,16),(64,8,512))">, tiler_mn = <"[64:1;64:1]">>, !cute.memref<f16, rmem, "((2,2,8),1,1):((1,2,4),0,0)">) -> !cute.memref<f16, rmem, "((8,4),1,1):((1,8),0,0)">
            %115 = cute.static : !cute.coord<"(_,_,_,0)">
            %116 = cute.slice(%31, %115) : !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,4),1,1,2):((1,16),0,0,4096)">, !cute.coord<"(_,_,_,0)">
            cute.copy(%26, %114, %116) : (!cute.tiled_copy<!cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"((4,8,4),(2,2,8)):((128,1,16),(64,8,512))">, tiler_mn = <"[64:1;64:1]">>, !cute.memref<f16, rmem, "((8,4),1,1):((1,8),0,0)">, !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,4),1,1):((1,16),0,0)">) -> ()
            cute_nvgpu.arch.fence_proxy_async() : () -> ()
            cute_nvgpu.arch.syncwarp() : () -> ()
            scf.if %37 {
              %125 = arith.muli %16, %c64_i32 : i32
              %126 = arith.addi %last_m0, %125 : i32
              %127 = arith.muli %warp, %c16_i32 : i32
              %128 = arith.addi %126, %127 : i32
              %129 = arith.addi %last_n0, %c0_i32 : i32
              %130 = cute.static : !cute.coord<"(_,_,0)">
              %131 = cute.slice(%36, %130) : !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(16,64,2):(64,1,4096)">, !cute.coord<"(_,_,0)">
              %132 = cute.make_int_tuple(%129, %128) : (i32, i32) -> !cute.int_tuple<"(?,?)">
              %133 = cute.static : !cute.layout<"(16,64):(1@1,1@0)">
              %134 = cute.make_view(%132, %133) : !cute.coord_tensor<"(?,?)", "(16,64):(1@1,1@0)">
              cute.copy(%storeC, %131, %134) : (!storeC, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(16,64):(64,1)">, !cute.coord_tensor<"(?,?)", "(16,64):(1@1,1@0)">) -> ()
              cute_nvgpu.arch.bulk_commit_group() : () -> ()
            }
            %117 = cute.get_iter(%result) : !result
            %118 = cute.static : !cute.int_tuple<"32">
            %119 = cute.add_offset(%117, %118) : (!cute.ptr<f16, rmem>, !cute.int_tuple<"32">) -> !cute.ptr<f16, rmem>
            %120 = cute.static : !cute.layout<"((2,2,8),1,1):((1,2,4),0,0)">
            %121 = cute.make_view(%119, %120) : !cute.memref<f16, rmem, "((2,2,8),1,1):((1,2,4),0,0)">
            scf.if %37 {
              cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
            }
            cute_nvgpu.arch.syncwarp() : () -> ()
            %122 = cute.tiled.copy.retile(%26, %121) : (!cute.tiled_copy<!cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"((4,8,4),(2,2,8)):((128,1,16),(64,8,512))">, tiler_mn = <"[64:1;64:1]">>, !cute.memref<f16, rmem, "((2,2,8),1,1):((1,2,4),0,0)">) -> !cute.memref<f16, rmem, "((8,4),1,1):((1,8),0,0)">
            %123 = cute.static : !cute.coord<"(_,_,_,1)">
            %124 = cute.slice(%31, %123) : !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,4),1,1,2):((1,16),0,0,4096)">, !cute.coord<"(_,_,_,1)">
            cute.copy(%26, %122, %124) : (!cute.tiled_copy<!cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"((4,8,4),(2,2,8)):((128,1,16),(64,8,512))">, tiler_mn = <"[64:1;64:1]">>, !cute.memref<f16, rmem, "((8,4),1,1):((1,8),0,0)">, !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,4),1,1):((1,16),0,0)">) -> ()
            cute_nvgpu.arch.fence_proxy_async() : () -> ()
            cute_nvgpu.arch.syncwarp() : () -> ()
            scf.if %37 {
              %125 = arith.muli %16, %c64_i32 : i32
              %126 = arith.addi %last_m0, %125 : i32
              %127 = arith.muli %warp, %c16_i32 : i32
              %128 = arith.addi %126, %127 : i32
              %129 = arith.addi %last_n0, %c64_i32 : i32
              %130 = cute.static : !cute.coord<"(_,_,1)">
              %131 = cute.slice(%36, %130) : !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(16,64,2):(64,1,4096)">, !cute.coord<"(_,_,1)">
              %132 = cute.make_int_tuple(%129, %128) : (i32, i32) -> !cute.int_tuple<"(?,?)">
              %133 = cute.static : !cute.layout<"(16,64):(1@1,1@0)">
              %134 = cute.make_view(%132, %133) : !cute.coord_tensor<"(?,?)", "(16,64):(1@1,1@0)">
              cute.copy(%storeC, %131, %134) : (!storeC, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(16,64):(64,1)">, !cute.coord_tensor<"(?,?)", "(16,64):(1@1,1@0)">) -> ()
              cute_nvgpu.arch.bulk_commit_group() : () -> ()
            }
          }
          %102 = arith.minui %k_tiles, %c2_i32 : i32
          %103:3 = scf.for %k = %c1_i32 to %102 step %c1_i32 iter_args(%slot_0 = %99, %phase_1 = %101, %previous = %slot) -> (i32, i32, i32) : i32 {
            %109 = cute.get_iter(%barriers) : !barriers
            %110 = cute.make_int_tuple(%slot_0) : (i32) -> !cute.int_tuple<"?">
            %111 = cute.add_offset(%109, %110) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_wait(%111, %phase_1) : (!cute.ptr<i64, smem>, i32) -> ()
            cute_nvgpu.arch.wgmma_fence() : () -> ()
            %112 = cute.make_coord(%slot_0) : (i32) -> !cute.coord<"(_,_,_,?)">
            %113 = cute.slice(%tA, %112) : !tA, !cute.coord<"(_,_,_,?)">
            %114 = cute.make_coord(%slot_0) : (i32) -> !cute.coord<"(_,_,_,?)">
            %115 = cute.slice(%tB, %114) : !tB, !cute.coord<"(_,_,_,?)">
            cute.gemm(%18, %acc, %113, %115, %acc) : (!mma, !acc, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,16),1,4):((64,1),0,16)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((256,16),1,4):((64,1),0,16)">, !acc) -> ()
            cute_nvgpu.arch.wgmma_commit_group() : () -> ()
            cute_nvgpu.arch.wgmma_wait_group() {n = 1 : i32} : () -> ()
            %116 = arith.addi %previous, %c4_i32 : i32
            %117 = cute.get_iter(%barriers) : !barriers
            %118 = cute.make_int_tuple(%116) : (i32) -> !cute.int_tuple<"?">
            %119 = cute.add_offset(%117, %118) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_arrive_cluster(%119, %22, %24) : (!cute.ptr<i64, smem>, i32, i1) -> ()
            %120 = arith.addi %slot_0, %c1_i32 : i32
            %121 = arith.cmpi eq, %120, %c4_i32 : i32
            %122 = arith.select %121, %c0_i32, %120 : i32
            %123 = arith.extui %121 : i1 to i32
            %124 = arith.xori %phase_1, %123 : i32
            scf.yield %122, %124, %slot_0 : i32, i32, i32
          }
          scf.if %89 {
            %109 = cute.get_iter(%result) : !result
            %110 = cute.static : !cute.int_tuple<"64">
            %111 = cute.add_offset(%109, %110) : (!cute.ptr<f16, rmem>, !cute.int_tuple<"64">) -> !cute.ptr<f16, rmem>
            %112 = cute.static : !cute.layout<"((2,2,8),1,1):((1,2,4),0,0)">
            %113 = cute.make_view(%111, %112) : !cute.memref<f16, rmem, "((2,2,8),1,1):((1,2,4),0,0)">
            scf.if %37 {
              cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
            }
            cute_nvgpu.arch.syncwarp() : () -> ()
            %114 = cute.tiled.copy.retile(%26, %113) : (!cute.tiled_copy<!cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"((4,8,4),(2,2,8)):((128,1,16),(64,8,512))">, tiler_mn = <"[64:1;64:1]">>, !cute.memref<f16, rmem, "((2,2,8),1,1):((1,2,4),0,0)">) -> !cute.memref<f16, rmem, "((8,4),1,1):((1,8),0,0)">
            %115 = cute.static : !cute.coord<"(_,_,_,0)">
            %116 = cute.slice(%31, %115) : !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,4),1,1,2):((1,16),0,0,4096)">, !cute.coord<"(_,_,_,0)">
            cute.copy(%26, %114, %116) : (!cute.tiled_copy<!cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"((4,8,4),(2,2,8)):((128,1,16),(64,8,512))">, tiler_mn = <"[64:1;64:1]">>, !cute.memref<f16, rmem, "((8,4),1,1):((1,8),0,0)">, !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,4),1,1):((1,16),0,0)">) -> ()
            cute_nvgpu.arch.fence_proxy_async() : () -> ()
            cute_nvgpu.arch.syncwarp() : () -> ()
            scf.if %37 {
              %125 = arith.muli %16, %c64_i32 : i32
              %126 = arith.addi %last_m0, %125 : i32
              %127 = arith.muli %warp, %c16_i32 : i32
              %128 = arith.addi %126, %127 : i32
              %129 = arith.addi %last_n0, %c128_i32 : i32
              %130 = cute.static : !cute.coord<"(_,_,0)">
              %131 = cute.slice(%36, %130) : !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(16,64,2):(64,1,4096)">, !cute.coord<"(_,_,0)">
              %132 = cute.make_int_tuple(%129, %128) : (i32, i32) -> !cute.int_tuple<"(?,?)">
              %133 = cute.static : !cute.layout<"(16,64):(1@1,1@0)">
              %134 = cute.make_view(%132, %133) : !cute.coord_tensor<"(?,?)", "(16,64):(1@1,1@0)">
              cute.copy(%storeC, %131, %134) : (!storeC, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(16,64):(64,1)">, !cute.coord_tensor<"(?,?)", "(16,64):(1@1,1@0)">) -> ()
              cute_nvgpu.arch.bulk_commit_group() : () -> ()
            }
            %117 = cute.get_iter(%result) : !result
            %118 = cute.static : !cute.int_tuple<"96">
            %119 = cute.add_offset(%117, %118) : (!cute.ptr<f16, rmem>, !cute.int_tuple<"96">) -> !cute.ptr<f16, rmem>
            %120 = cute.static : !cute.layout<"((2,2,8),1,1):((1,2,4),0,0)">
            %121 = cute.make_view(%119, %120) : !cute.memref<f16, rmem, "((2,2,8),1,1):((1,2,4),0,0)">
            scf.if %37 {
              cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
            }
            cute_nvgpu.arch.syncwarp() : () -> ()
            %122 = cute.tiled.copy.retile(%26, %121) : (!cute.tiled_copy<!cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"((4,8,4),(2,2,8)):((128,1,16),(64,8,512))">, tiler_mn = <"[64:1;64:1]">>, !cute.memref<f16, rmem, "((2,2,8),1,1):((1,2,4),0,0)">) -> !cute.memref<f16, rmem, "((8,4),1,1):((1,8),0,0)">
            %123 = cute.static : !cute.coord<"(_,_,_,1)">
            %124 = cute.slice(%31, %123) : !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,4),1,1,2):((1,16),0,0,4096)">, !cute.coord<"(_,_,_,1)">
            cute.copy(%26, %122, %124) : (!cute.tiled_copy<!cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"((4,8,4),(2,2,8)):((128,1,16),(64,8,512))">, tiler_mn = <"[64:1;64:1]">>, !cute.memref<f16, rmem, "((8,4),1,1):((1,8),0,0)">, !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,4),1,1):((1,16),0,0)">) -> ()
            cute_nvgpu.arch.fence_proxy_async() : () -> ()
            cute_nvgpu.arch.syncwarp() : () -> ()
            scf.if %37 {
              %125 = arith.muli %16, %c64_i32 : i32
              %126 = arith.addi %last_m0, %125 : i32
              %127 = arith.muli %warp, %c16_i32 : i32
              %128 = arith.addi %126, %127 : i32
              %129 = arith.addi %last_n0, %c192_i32 : i32
              %130 = cute.static : !cute.coord<"(_,_,1)">
              %131 = cute.slice(%36, %130) : !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(16,64,2):(64,1,4096)">, !cute.coord<"(_,_,1)">
              %132 = cute.make_int_tuple(%129, %128) : (i32, i32) -> !cute.int_tuple<"(?,?)">
              %133 = cute.static : !cute.layout<"(16,64):(1@1,1@0)">
              %134 = cute.make_view(%132, %133) : !cute.coord_tensor<"(?,?)", "(16,64):(1@1,1@0)">
              cute.copy(%storeC, %131, %134) : (!storeC, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(16,64):(64,1)">, !cute.coord_tensor<"(?,?)", "(16,64):(1@1,1@0)">) -> ()
              cute_nvgpu.arch.bulk_commit_group() : () -> ()
            }
          }
          %104:3 = scf.for %k = %c2_i32 to %k_tiles step %c1_i32 iter_args(%slot_0 = %103#0, %phase_1 = %103#1, %previous = %103#2) -> (i32, i32, i32) : i32 {
            %109 = cute.get_iter(%barriers) : !barriers
            %110 = cute.make_int_tuple(%slot_0) : (i32) -> !cute.int_tuple<"?">
            %111 = cute.add_offset(%109, %110) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_wait(%111, %phase_1) : (!cute.ptr<i64, smem>, i32) -> ()
            cute_nvgpu.arch.wgmma_fence() : () -> ()
            %112 = cute.make_coord(%slot_0) : (i32) -> !cute.coord<"(_,_,_,?)">
            %113 = cute.slice(%tA, %112) : !tA, !cute.coord<"(_,_,_,?)">
            %114 = cute.make_coord(%slot_0) : (i32) -> !cute.coord<"(_,_,_,?)">
            %115 = cute.slice(%tB, %114) : !tB, !cute.coord<"(_,_,_,?)">
            cute.gemm(%18, %acc, %113, %115, %acc) : (!mma, !acc, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,16),1,4):((64,1),0,16)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((256,16),1,4):((64,1),0,16)">, !acc) -> ()
            cute_nvgpu.arch.wgmma_commit_group() : () -> ()
            cute_nvgpu.arch.wgmma_wait_group() {n = 1 : i32} : () -> ()
            %116 = arith.addi %previous, %c4_i32 : i32
            %117 = cute.get_iter(%barriers) : !barriers
            %118 = cute.make_int_tuple(%116) : (i32) -> !cute.int_tuple<"?">
            %119 = cute.add_offset(%117, %118) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            cute_nvgpu.arch.mbarrier_arrive_cluster(%119, %22, %24) : (!cute.ptr<i64, smem>, i32, i1) -> ()
            %120 = arith.addi %slot_0, %c1_i32 : i32
            %121 = arith.cmpi eq, %120, %c4_i32 : i32
            %122 = arith.select %121, %c0_i32, %120 : i32
            %123 = arith.extui %121 : i1 to i32
            %124 = arith.xori %phase_1, %123 : i32
            scf.yield %122, %124, %slot_0 : i32, i32, i32
          }
          cute_nvgpu.arch.wgmma_wait_group(%acc) {n = 0 : i32} : (!acc) -> ()
          %105 = arith.addi %104#2, %c4_i32 : i32
          %106 = cute.get_iter(%barriers) : !barriers
          %107 = cute.make_int_tuple(%105) : (i32) -> !cute.int_tuple<"?">
          %108 = cute.add_offset(%106, %107) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_arrive_cluster(%108, %22, %24) : (!cute.ptr<i64, smem>, i32, i1) -> ()
          scf.for %arg0 = %c0_i32 to %c64_i32 step %c1_i32 : i32 {
            %109 = arith.muli %arg0, %c2_i32 : i32
            %110 = cute.get_iter(%acc) : !acc
            %111 = cute.make_int_tuple(%109) : (i32) -> !cute.int_tuple<"?">
            %112 = cute.add_offset(%110, %111) : (!cute.ptr<f32, rmem>, !cute.int_tuple<"?">) -> !cute.ptr<f32, rmem>
            %113 = cute.static : !cute.layout<"2:1">
            %114 = cute.make_view(%112, %113) : !cute.memref<f32, rmem, "2:1">
            %115 = cute.memref.load_vec %114 : !cute.memref<f32, rmem, "2:1">
            %116 = arith.truncf %115 : vector<2xf32> to vector<2xf16>
            %117 = cute.get_iter(%result) : !result
            %118 = cute.make_int_tuple(%109) : (i32) -> !cute.int_tuple<"?">
            %119 = cute.add_offset(%117, %118) : (!cute.ptr<f16, rmem>, !cute.int_tuple<"?">) -> !cute.ptr<f16, rmem>
            %120 = cute.static : !cute.layout<"2:1">
            %121 = cute.make_view(%119, %120) : !cute.memref<f16, rmem, "2:1">
            cute.memref.store_vec %116, %121 : !cute.memref<f16, rmem, "2:1">
          }
          scf.yield %104#0, %104#1, %m0, %n0 : i32, i32, i32, i32
        }
        %39 = cute.get_iter(%result) : !result
        %40 = cute.static : !cute.int_tuple<"0">
        %41 = cute.add_offset(%39, %40) : (!cute.ptr<f16, rmem>, !cute.int_tuple<"0">) -> !cute.ptr<f16, rmem>
        %42 = cute.static : !cute.layout<"((2,2,8),1,1):((1,2,4),0,0)">
        %43 = cute.make_view(%41, %42) : !cute.memref<f16, rmem, "((2,2,8),1,1):((1,2,4),0,0)">
        scf.if %37 {
          cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
        }
        cute_nvgpu.arch.syncwarp() : () -> ()
        %44 = cute.tiled.copy.retile(%26, %43) : (!cute.tiled_copy<!cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"((4,8,4),(2,2,8)):((128,1,16),(64,8,512))">, tiler_mn = <"[64:1;64:1]">>, !cute.memref<f16, rmem, "((2,2,8),1,1):((1,2,4),0,0)">) -> !cute.memref<f16, rmem, "((8,4),1,1):((1,8),0,0)">
        %45 = cute.static : !cute.coord<"(_,_,_,0)">
        %46 = cute.slice(%31, %45) : !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,4),1,1,2):((1,16),0,0,4096)">, !cute.coord<"(_,_,_,0)">
        cute.copy(%26, %44, %46) : (!cute.tiled_copy<!cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"((4,8,4),(2,2,8)):((128,1,16),(64,8,512))">, tiler_mn = <"[64:1;64:1]">>, !cute.memref<f16, rmem, "((8,4),1,1):((1,8),0,0)">, !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,4),1,1):((1,16),0,0)">) -> ()
        cute_nvgpu.arch.fence_proxy_async() : () -> ()
        cute_nvgpu.arch.syncwarp() : () -> ()
        scf.if %37 {
          %71 = arith.muli %16, %c64_i32 : i32
          %72 = arith.addi %38#2, %71 : i32
          %73 = arith.muli %warp, %c16_i32 : i32
          %74 = arith.addi %72, %73 : i32
          %75 = arith.addi %38#3, %c0_i32 : i32
          %76 = cute.static : !cute.coord<"(_,_,0)">
          %77 = cute.slice(%36, %76) : !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(16,64,2):(64,1,4096)">, !cute.coord<"(_,_,0)">
          %78 = cute.make_int_tuple(%75, %74) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %79 = cute.static : !cute.layout<"(16,64):(1@1,1@0)">
          %80 = cute.make_view(%78, %79) : !cute.coord_tensor<"(?,?)", "(16,64):(1@1,1@0)">
          cute.copy(%storeC, %77, %80) : (!storeC, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(16,64):(64,1)">, !cute.coord_tensor<"(?,?)", "(16,64):(1@1,1@0)">) -> ()
          cute_nvgpu.arch.bulk_commit_group() : () -> ()
        }
        %47 = cute.get_iter(%result) : !result
        %48 = cute.static : !cute.int_tuple<"32">
        %49 = cute.add_offset(%47, %48) : (!cute.ptr<f16, rmem>, !cute.int_tuple<"32">) -> !cute.ptr<f16, rmem>
        %50 = cute.static : !cute.layout<"((2,2,8),1,1):((1,2,4),0,0)">
        %51 = cute.make_view(%49, %50) : !cute.memref<f16, rmem, "((2,2,8),1,1):((1,2,4),0,0)">
        scf.if %37 {
          cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
        }
        cute_nvgpu.arch.syncwarp() : () -> ()
        %52 = cute.tiled.copy.retile(%26, %51) : (!cute.tiled_copy<!cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"((4,8,4),(2,2,8)):((128,1,16),(64,8,512))">, tiler_mn = <"[64:1;64:1]">>, !cute.memref<f16, rmem, "((2,2,8),1,1):((1,2,4),0,0)">) -> !cute.memref<f16, rmem, "((8,4),1,1):((1,8),0,0)">
        %53 = cute.static : !cute.coord<"(_,_,_,1)">
        %54 = cute.slice(%31, %53) : !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,4),1,1,2):((1,16),0,0,4096)">, !cute.coord<"(_,_,_,1)">
        cute.copy(%26, %52, %54) : (!cute.tiled_copy<!cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"((4,8,4),(2,2,8)):((128,1,16),(64,8,512))">, tiler_mn = <"[64:1;64:1]">>, !cute.memref<f16, rmem, "((8,4),1,1):((1,8),0,0)">, !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,4),1,1):((1,16),0,0)">) -> ()
        cute_nvgpu.arch.fence_proxy_async() : () -> ()
        cute_nvgpu.arch.syncwarp() : () -> ()
        scf.if %37 {
          %71 = arith.muli %16, %c64_i32 : i32
          %72 = arith.addi %38#2, %71 : i32
          %73 = arith.muli %warp, %c16_i32 : i32
          %74 = arith.addi %72, %73 : i32
          %75 = arith.addi %38#3, %c64_i32 : i32
          %76 = cute.static : !cute.coord<"(_,_,1)">
          %77 = cute.slice(%36, %76) : !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(16,64,2):(64,1,4096)">, !cute.coord<"(_,_,1)">
          %78 = cute.make_int_tuple(%75, %74) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %79 = cute.static : !cute.layout<"(16,64):(1@1,1@0)">
          %80 = cute.make_view(%78, %79) : !cute.coord_tensor<"(?,?)", "(16,64):(1@1,1@0)">
          cute.copy(%storeC, %77, %80) : (!storeC, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(16,64):(64,1)">, !cute.coord_tensor<"(?,?)", "(16,64):(1@1,1@0)">) -> ()
          cute_nvgpu.arch.bulk_commit_group() : () -> ()
        }
        %55 = cute.get_iter(%result) : !result
        %56 = cute.static : !cute.int_tuple<"64">
        %57 = cute.add_offset(%55, %56) : (!cute.ptr<f16, rmem>, !cute.int_tuple<"64">) -> !cute.ptr<f16, rmem>
        %58 = cute.static : !cute.layout<"((2,2,8),1,1):((1,2,4),0,0)">
        %59 = cute.make_view(%57, %58) : !cute.memref<f16, rmem, "((2,2,8),1,1):((1,2,4),0,0)">
        scf.if %37 {
          cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
        }
        cute_nvgpu.arch.syncwarp() : () -> ()
        %60 = cute.tiled.copy.retile(%26, %59) : (!cute.tiled_copy<!cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"((4,8,4),(2,2,8)):((128,1,16),(64,8,512))">, tiler_mn = <"[64:1;64:1]">>, !cute.memref<f16, rmem, "((2,2,8),1,1):((1,2,4),0,0)">) -> !cute.memref<f16, rmem, "((8,4),1,1):((1,8),0,0)">
        %61 = cute.static : !cute.coord<"(_,_,_,0)">
        %62 = cute.slice(%31, %61) : !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,4),1,1,2):((1,16),0,0,4096)">, !cute.coord<"(_,_,_,0)">
        cute.copy(%26, %60, %62) : (!cute.tiled_copy<!cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"((4,8,4),(2,2,8)):((128,1,16),(64,8,512))">, tiler_mn = <"[64:1;64:1]">>, !cute.memref<f16, rmem, "((8,4),1,1):((1,8),0,0)">, !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,4),1,1):((1,16),0,0)">) -> ()
        cute_nvgpu.arch.fence_proxy_async() : () -> ()
        cute_nvgpu.arch.syncwarp() : () -> ()
        scf.if %37 {
          %71 = arith.muli %16, %c64_i32 : i32
          %72 = arith.addi %38#2, %71 : i32
          %73 = arith.muli %warp, %c16_i32 : i32
          %74 = arith.addi %72, %73 : i32
          %75 = arith.addi %38#3, %c128_i32 : i32
          %76 = cute.static : !cute.coord<"(_,_,0)">
          %77 = cute.slice(%36, %76) : !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(16,64,2):(64,1,4096)">, !cute.coord<"(_,_,0)">
          %78 = cute.make_int_tuple(%75, %74) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %79 = cute.static : !cute.layout<"(16,64):(1@1,1@0)">
          %80 = cute.make_view(%78, %79) : !cute.coord_tensor<"(?,?)", "(16,64):(1@1,1@0)">
          cute.copy(%storeC, %77, %80) : (!storeC, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(16,64):(64,1)">, !cute.coord_tensor<"(?,?)", "(16,64):(1@1,1@0)">) -> ()
          cute_nvgpu.arch.bulk_commit_group() : () -> ()
        }
        %63 = cute.get_iter(%result) : !result
        %64 = cute.static : !cute.int_tuple<"96">
        %65 = cute.add_offset(%63, %64) : (!cute.ptr<f16, rmem>, !cute.int_tuple<"96">) -> !cute.ptr<f16, rmem>
        %66 = cute.static : !cute.layout<"((2,2,8),1,1):((1,2,4),0,0)">
        %67 = cute.make_view(%65, %66) : !cute.memref<f16, rmem, "((2,2,8),1,1):((1,2,4),0,0)">
        scf.if %37 {
          cute_nvgpu.arch.bulk_wait_group() {n = 1 : i32, read = true} : () -> ()
        }
        cute_nvgpu.arch.syncwarp() : () -> ()
        %68 = cute.tiled.copy.retile(%26, %67) : (!cute.tiled_copy<!cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"((4,8,4),(2,2,8)):((128,1,16),(64,8,512))">, tiler_mn = <"[64:1;64:1]">>, !cute.memref<f16, rmem, "((2,2,8),1,1):((1,2,4),0,0)">) -> !cute.memref<f16, rmem, "((8,4),1,1):((1,8),0,0)">
        %69 = cute.static : !cute.coord<"(_,_,_,1)">
        %70 = cute.slice(%31, %69) : !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,4),1,1,2):((1,16),0,0,4096)">, !cute.coord<"(_,_,_,1)">
        cute.copy(%26, %68, %70) : (!cute.tiled_copy<!cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"((4,8,4),(2,2,8)):((128,1,16),(64,8,512))">, tiler_mn = <"[64:1;64:1]">>, !cute.memref<f16, rmem, "((8,4),1,1):((1,8),0,0)">, !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,4),1,1):((1,16),0,0)">) -> ()
        cute_nvgpu.arch.fence_proxy_async() : () -> ()
        cute_nvgpu.arch.syncwarp() : () -> ()
        scf.if %37 {
          %71 = arith.muli %16, %c64_i32 : i32
          %72 = arith.addi %38#2, %71 : i32
          %73 = arith.muli %warp, %c16_i32 : i32
          %74 = arith.addi %72, %73 : i32
          %75 = arith.addi %38#3, %c192_i32 : i32
          %76 = cute.static : !cute.coord<"(_,_,1)">
          %77 = cute.slice(%36, %76) : !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(16,64,2):(64,1,4096)">, !cute.coord<"(_,_,1)">
          %78 = cute.make_int_tuple(%75, %74) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %79 = cute.static : !cute.layout<"(16,64):(1@1,1@0)">
          %80 = cute.make_view(%78, %79) : !cute.coord_tensor<"(?,?)", "(16,64):(1@1,1@0)">
          cute.copy(%storeC, %77, %80) : (!storeC, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(16,64):(64,1)">, !cute.coord_tensor<"(?,?)", "(16,64):(1@1,1@0)">) -> ()
          cute_nvgpu.arch.bulk_commit_group() : () -> ()
        }
        scf.if %37 {
          cute_nvgpu.arch.bulk_wait_group() {n = 0 : i32, read = true} : () -> ()
        }
      }
      cute_nvgpu.arch.cluster_arrive() {relaxed = false} : () -> ()
      cute_nvgpu.arch.cluster_wait() : () -> ()
      gpu.return
    }
    gpu.func @gemm_any(%A: !A_any, %B: !A_any, %C: !A_any) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c16_i32 = arith.constant 16 : i32
      %c2_i32 = arith.constant 2 : i32
      %c0_i16 = arith.constant 0 : i16
      %c256_i32 = arith.constant 256 : i32
      %c8_i32 = arith.constant 8 : i32
      %c1_i32 = arith.constant 1 : i32
      %c0_i32 = arith.constant 0 : i32
      %c32_i32 = arith.constant 32 : i32
      %c31_i32 = arith.constant 31 : i32
      %c64_i32 = arith.constant 64 : i32
      %c63_i32 = arith.constant 63 : i32
      %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %0 = cute.get_layout(%A) : !A_any
      %1 = cute.get_shape(%0) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
      %2:2 = cute.get_scalars (%1) : !cute.shape<"(?,?)">
      %3 = cute.get_layout(%B) : !A_any
      %4 = cute.get_shape(%3) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
      %5:2 = cute.get_scalars (%4) : !cute.shape<"(?,?)">
      // This block's tile of C, and the matrix.
      %6 = nvvm.read.ptx.sreg.ctaid.x : i32
      %7 = arith.addi %2#0, %c63_i32 : i32
      %8 = arith.divui %7, %c64_i32 : i32
      %9 = arith.remui %6, %8 : i32
      %m0 = arith.muli %9, %c64_i32 : i32
      %10 = arith.divui %6, %8 : i32
      %n0 = arith.muli %10, %c64_i32 : i32
      // Tiles of A and B in shared memory; at the end the sums.
      %sA = cute.memref.alloc_smem() : !sA2
      %sB = cute.memref.alloc_smem() : !sA2
      %sums = cute.memref.alloc_smem() : !sums
      %11 = cute.atom() : !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>
      %tiled_mma = cute.make_tiled_mma(%11) : !mma_any
      %12 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %13 = cute.tiled.mma.partition_A(%tiled_mma, %sA, %12) : (!mma_any, !sA2, !cute.coord<"?">) -> !cute.memref<f16, smem, align<4>, "((2,2,2),2,2):((1,320,8),1280,16)">
      %14 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %15 = cute.tiled.mma.partition_B(%tiled_mma, %sB, %14) : (!mma_any, !sA2, !cute.coord<"?">) -> !cute.memref<f16, smem, align<4>, "((2,2),2,2):((1,8),1280,16)">
      %16 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %17 = cute.tiled.mma.partition_C(%tiled_mma, %sums, %16) : (!mma_any, !sums, !cute.coord<"?">) -> !cute.memref<f32, smem, align<8>, "((2,2),2,2):((1,576),2304,32)">
      %acc = cute.tiled.mma.make_fragment_C(%tiled_mma, %17) : (!mma_any, !cute.memref<f32, smem, align<8>, "((2,2),2,2):((1,576),2304,32)">) -> !acc2
      cute.clear(%acc) : (!acc2) -> ()
      %18 = cute.recast_tensor(%A) : !A_any to !cute.memref<i16, gmem, "(?,?):(?,1)">
      %19 = cute.recast_tensor(%sA) : !sA2 to !cute.memref<i16, smem, align<16>, "(64,32):(40,1)">
      %20 = cute.recast_tensor(%B) : !A_any to !cute.memref<i16, gmem, "(?,?):(?,1)">
      %21 = cute.recast_tensor(%sB) : !sA2 to !cute.memref<i16, smem, align<16>, "(64,32):(40,1)">
      %22 = cute.atom() : !cute_nvgpu.atom.universal_copy<f16, 32 b>
      %23 = arith.addi %2#1, %c31_i32 : i32
      %24 = arith.divui %23, %c32_i32 : i32
      scf.for %arg0 = %c0_i32 to %24 step %c1_i32 : i32 {
        %26 = arith.muli %arg0, %c32_i32 : i32
        scf.for %arg1 = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %28 = arith.muli %arg1, %c256_i32 : i32
          %29 = arith.addi %28, %tid : i32
          %30 = arith.divui %29, %c32_i32 : i32
          %31 = arith.remui %29, %c32_i32 : i32
          %32 = arith.addi %m0, %30 : i32
          %33 = arith.addi %26, %31 : i32
          %34 = arith.cmpi ult, %32, %2#0 : i32
          %35 = arith.cmpi ult, %33, %2#1 : i32
          %36 = arith.andi %34, %35 : i1
          %37 = arith.subi %2#0, %c1_i32 : i32
          %38 = arith.minui %32, %37 : i32
          %39 = arith.subi %2#1, %c1_i32 : i32
          %40 = arith.minui %33, %39 : i32
          %41 = cute.make_coord(%38, %40) : (i32, i32) -> !cute.coord<"(?,?)">
          %42 = cute.memref.load(%18, %41) : (!cute.memref<i16, gmem, "(?,?):(?,1)">, !cute.coord<"(?,?)">) -> i16
          %43 = arith.select %36, %42, %c0_i16 : i16
          %44 = cute.make_coord(%30, %31) : (i32, i32) -> !cute.coord<"(?,?)">
          cute.memref.store(%19, %44, %43) : (!cute.memref<i16, smem, align<16>, "(64,32):(40,1)">, !cute.coord<"(?,?)">, i16) -> ()
        }
        %27 = arith.muli %arg0, %c32_i32 : i32
        scf.for %arg1 = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %28 = arith.muli %arg1, %c256_i32 : i32
          %29 = arith.addi %28, %tid : i32
          %30 = arith.divui %29, %c32_i32 : i32
          %31 = arith.remui %29, %c32_i32 : i32
          %32 = arith.addi %n0, %30 : i32
          %33 = arith.addi %27, %31 : i32
          %34 = arith.cmpi ult, %32, %5#0 : i32
          %35 = arith.cmpi ult, %33, %2#1 : i32
          %36 = arith.andi %34, %35 : i1
          %37 = arith.subi %5#0, %c1_i32 : i32
          %38 = arith.minui %32, %37 : i32
          %39 = arith.subi %2#1, %c1_i32 : i32
          %40 = arith.minui %33, %39 : i32
          %41 = cute.make_coord(%38, %40) : (i32, i32) -> !cute.coord<"(?,?)">
          %42 = cute.memref.load(%20, %41) : (!cute.memref<i16, gmem, "(?,?):(?,1)">, !cute.coord<"(?,?)">) -> i16
          %43 = arith.select %36, %42, %c0_i16 : i16
          %44 = cute.make_coord(%30, %31) : (i32, i32) -> !cute.coord<"(?,?)">
          cute.memref.store(%21, %44, %43) : (!cute.memref<i16, smem, align<16>, "(64,32):(40,1)">, !cute.coord<"(?,?)">, i16) -> ()
        }
        cute_nvgpu.arch.barrier() : () -> ()
        scf.for %arg1 = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
          %28 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,?)">
          %29 = cute.slice(%13, %28) : !cute.memref<f16, smem, align<4>, "((2,2,2),2,2):((1,320,8),1280,16)">, !cute.coord<"(_,_,?)">
          %30 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,_,?)">
          %31 = cute.slice(%15, %30) : !cute.memref<f16, smem, align<4>, "((2,2),2,2):((1,8),1280,16)">, !cute.coord<"(_,_,?)">
          %32 = cute.tiled.mma.make_fragment_A(%tiled_mma, %29) : (!mma_any, !cute.memref<f16, smem, align<4>, "((2,2,2),2):((1,320,8),1280)">) -> !cute.memref<f16, rmem, align<32>, "((2,2,2),2):((1,2,4),8)">
          %33 = cute.tiled.mma.make_fragment_B(%tiled_mma, %31) : (!mma_any, !cute.memref<f16, smem, align<4>, "((2,2),2):((1,8),1280)">) -> !cute.memref<f16, rmem, align<16>, "((2,2),2):((1,2),4)">
          cute.copy(%22, %29, %32) : (!cute_nvgpu.atom.universal_copy<f16, 32 b>, !cute.memref<f16, smem, align<4>, "((2,2,2),2):((1,320,8),1280)">, !cute.memref<f16, rmem, align<32>, "((2,2,2),2):((1,2,4),8)">) -> ()
          cute.copy(%22, %31, %33) : (!cute_nvgpu.atom.universal_copy<f16, 32 b>, !cute.memref<f16, smem, align<4>, "((2,2),2):((1,8),1280)">, !cute.memref<f16, rmem, align<16>, "((2,2),2):((1,2),4)">) -> ()
          cute.gemm(%tiled_mma, %acc, %32, %33, %acc) : (!mma_any, !acc2, !cute.memref<f16, rmem, align<32>, "((2,2,2),2):((1,2,4),8)">, !cute.memref<f16, rmem, align<16>, "((2,2),2):((1,2),4)">, !acc2) -> ()
        }
        cute_nvgpu.arch.barrier() : () -> ()
      }
      // Through shared memory, so that neighbours write neighbours.
      %25 = cute.atom() : !cute_nvgpu.atom.universal_copy<f32, 64 b>
      cute.copy(%25, %acc, %17) : (!cute_nvgpu.atom.universal_copy<f32, 64 b>, !acc2, !cute.memref<f32, smem, align<8>, "((2,2),2,2):((1,576),2304,32)">) -> ()
      cute_nvgpu.arch.barrier() : () -> ()
      scf.for %arg0 = %c0_i32 to %c16_i32 step %c1_i32 : i32 {
        %26 = arith.muli %arg0, %c256_i32 : i32
        %27 = arith.addi %26, %tid : i32
        %28 = arith.divui %27, %c64_i32 : i32
        %29 = arith.remui %27, %c64_i32 : i32
        %30 = arith.addi %m0, %28 : i32
        %31 = arith.cmpi ult, %30, %2#0 : i32
        %32 = arith.addi %n0, %29 : i32
        %33 = arith.cmpi ult, %32, %5#0 : i32
        %34 = arith.andi %31, %33 : i1
        scf.if %34 {
          %35 = cute.make_coord(%28, %29) : (i32, i32) -> !cute.coord<"(?,?)">
          %36 = cute.memref.load(%sums, %35) : (!sums, !cute.coord<"(?,?)">) -> f32
          %37 = arith.truncf %36 : f32 to f16
          %38 = arith.addi %m0, %28 : i32
          %39 = arith.addi %n0, %29 : i32
          %40 = cute.make_coord(%38, %39) : (i32, i32) -> !cute.coord<"(?,?)">
          cute.memref.store(%C, %40, %37) : (!A_any, !cute.coord<"(?,?)">, f16) -> ()
        }
      }
      gpu.return
    }
  }
  func.func @launch(%A: !A, %B: !A, %C: !A) attributes {cute.fallback = @launch_any} {
    %c384_i32 = arith.constant 384 : i32
    %c2_i32 = arith.constant 2 : i32
    %c1_i32 = arith.constant 1 : i32
    %c66_i32 = arith.constant 66 : i32
    %c65_i32 = arith.constant 65 : i32
    %c64_i32 = arith.constant 64 : i32
    %c63_i32 = arith.constant 63 : i32
    %c256_i32 = arith.constant 256 : i32
    %c255_i32 = arith.constant 255 : i32
    %0 = cute.get_layout(%A) : !A
    %1 = cute.get_shape(%0) : !cute.layout<"(?,?):(?{div=8},1)"> -> !cute.shape<"(?,?)">
    %2:2 = cute.get_scalars (%1) : !cute.shape<"(?,?)">
    %3 = cute.get_layout(%B) : !A
    %4 = cute.get_shape(%3) : !cute.layout<"(?,?):(?{div=8},1)"> -> !cute.shape<"(?,?)">
    %5:2 = cute.get_scalars (%4) : !cute.shape<"(?,?)">
    %6 = cute.get_layout(%C) : !A
    %7 = cute.get_shape(%6) : !cute.layout<"(?,?):(?{div=8},1)"> -> !cute.shape<"(?,?)">
    %8:2 = cute.get_scalars (%7) : !cute.shape<"(?,?)">
    %9 = arith.cmpi eq, %2#1, %5#1 : i32
    %10 = arith.cmpi eq, %2#0, %8#0 : i32
    %11 = arith.cmpi eq, %5#0, %8#1 : i32
    cf.assert %9, "A and B must have the same K"
    cf.assert %10, "A and C must have the same M"
    cf.assert %11, "B and C must have the same N"
    %12 = cute.static : !cute.tile<"[128:1;64:1]">
    %13 = cute.static : !cute.layout<"(128,64):(64,1)">
    %14:2 = cute_nvgpu.make_tma_load(%A, %13, %12) {l2 = 256 : i32, swizzle = 128 : i32} : (!A, !cute.layout<"(128,64):(64,1)">, !cute.tile<"[128:1;64:1]">) -> (!loadA, !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">)
    %15 = cute.static : !cute.tile<"[128:1;64:1]">
    %16 = cute.static : !cute.layout<"(128,64):(64,1)">
    %17:2 = cute_nvgpu.make_tma_load(%B, %16, %15) {l2 = 256 : i32, swizzle = 128 : i32} : (!A, !cute.layout<"(128,64):(64,1)">, !cute.tile<"[128:1;64:1]">) -> (!loadA, !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">)
    %18 = cute.static : !cute.tile<"[16:1;64:1]">
    %19 = cute.static : !cute.layout<"(16,64):(64,1)">
    %20:2 = cute_nvgpu.make_tma_store(%C, %19, %18) {l2 = 256 : i32, swizzle = 128 : i32} : (!A, !cute.layout<"(16,64):(64,1)">, !cute.tile<"[16:1;64:1]">) -> (!storeC, !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">)
    %21 = arith.addi %2#0, %c255_i32 : i32
    %22 = arith.divui %21, %c256_i32 : i32
    %23 = arith.addi %5#0, %c255_i32 : i32
    %24 = arith.divui %23, %c256_i32 : i32
    %25 = arith.addi %2#1, %c63_i32 : i32
    %26 = arith.divui %25, %c64_i32 : i32
    %27 = arith.muli %22, %24 : i32
    %28 = arith.addi %27, %c65_i32 : i32
    %29 = arith.divui %28, %c66_i32 : i32
    %30 = arith.addi %27, %29 : i32
    %31 = arith.subi %30, %c1_i32 : i32
    %32 = arith.divui %31, %29 : i32
    %33 = arith.muli %32, %c2_i32 : i32
    gpu.launch_func @kernels::@gemm blocks in (%33, %c1_i32, %c1_i32) threads in (%c384_i32, %c1_i32, %c1_i32) : i32 args(%14#0 : !loadA, %17#0 : !loadA, %20#0 : !storeC, %22 : i32, %24 : i32, %26 : i32)
    return
  }
  func.func @launch_any(%A: !A_any, %B: !A_any, %C: !A_any) {
    %c256_i32 = arith.constant 256 : i32
    %c1_i32 = arith.constant 1 : i32
    %c64_i32 = arith.constant 64 : i32
    %c63_i32 = arith.constant 63 : i32
    %0 = cute.get_layout(%A) : !A_any
    %1 = cute.get_shape(%0) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
    %2:2 = cute.get_scalars (%1) : !cute.shape<"(?,?)">
    %3 = cute.get_layout(%B) : !A_any
    %4 = cute.get_shape(%3) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
    %5:2 = cute.get_scalars (%4) : !cute.shape<"(?,?)">
    %6 = cute.get_layout(%C) : !A_any
    %7 = cute.get_shape(%6) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
    %8:2 = cute.get_scalars (%7) : !cute.shape<"(?,?)">
    %9 = arith.cmpi eq, %2#1, %5#1 : i32
    %10 = arith.cmpi eq, %2#0, %8#0 : i32
    %11 = arith.cmpi eq, %5#0, %8#1 : i32
    cf.assert %9, "A and B must have the same K"
    cf.assert %10, "A and C must have the same M"
    cf.assert %11, "B and C must have the same N"
    %12 = arith.addi %2#0, %c63_i32 : i32
    %13 = arith.divui %12, %c64_i32 : i32
    %14 = arith.addi %5#0, %c63_i32 : i32
    %15 = arith.divui %14, %c64_i32 : i32
    %16 = arith.muli %13, %15 : i32
    gpu.launch_func @kernels::@gemm_any blocks in (%16, %c1_i32, %c1_i32) threads in (%c256_i32, %c1_i32, %c1_i32) : i32 args(%A : !A_any, %B : !A_any, %C : !A_any)
    return
  }
}
