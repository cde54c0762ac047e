// C[M,N] = A[M,K] * B[N,K]^T in f16, accumulated in f32; any M, N, K.
//
// A block of 128 threads computes a tile of 128 x 128, in warps of 2 x 2; tiles of 32 along K go through
// 3 stages of shared memory: cp.async fills them while earlier ones are multiplied by ldmatrix and mma.sync.
// Shared memory is swizzled (S<3,4,3>: 16-byte units among 128 bytes): no bank conflicts.
// What lies outside of the matrices is filled with zeros.  The last, perhaps incomplete tile of K is taken first.
//
// The kernels differ in what one copy moves: @gemm_16 16 bytes … and @gemm, which no alignment stops, one element.
// The launch takes the first whose types hold for the arguments.

!mma_atom = !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>
!mma = !cute.tiled_mma<!mma_atom, atom_layout_MNK = <"(2,2,1):(1,2,0)">, permutation_MNK = <"[32:1;32:1;16:1]">>
!ldmatrixA = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>
!loadA = !cute.tiled_copy<!ldmatrixA, layout_copy_tv = <"((4,8,2,2),((2,2,2),(1,1))):((64,1,16,0),((32,8,256),(32,512)))">, tiler_mn = <"[32:1;16:1]">>
!loadB = !cute.tiled_copy<!ldmatrixA, layout_copy_tv = <"((4,8,2,2),((2,2),(2,1))):((64,1,0,8),((32,256),(16,512)))">, tiler_mn = <"[32:1;16:1]">>
!storeS = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f16>, layout_copy_tv = <"((4,8,2,2),((2,2),(1,2))):((64,1,16,256),((32,8),(32,512)))">, tiler_mn = <"[32:1;32:1]">>
!storeC = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f16>, layout_copy_tv = <"(128,1):(1,1)">, tiler_mn = <"[1:1;128:1]">>
!fillA = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f16>, layout_copy_tv = <"((32,4),1):((4,1),4)">, tiler_mn = <"[4:1;32:1]">>
!mat = !cute.memref<f16, gmem, "(?,?):(?,1)">
!storeC_16 = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f16>, layout_copy_tv = <"((16,8),8):((64,1),8)">, tiler_mn = <"[8:1;128:1]">>
!copy_16 = !cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>
!fillA_16 = !cute.tiled_copy<!copy_16, layout_copy_tv = <"((4,32),8):((256,1),32)">, tiler_mn = <"[32:1;32:1]">>
!mat_16 = !cute.memref<f16, gmem, align<16>, "(?,?{div=8}):(?{div=8},1)">
!smem = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "24576:1">
!sA = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,32,3):(32,1,4096)">
!gA = !cute.memref<f16, gmem, "(128,32,?):(?,1,32)">
!tA = !cute.memref<f16, gmem, "((1,1),32,1,?):((0,0),?{div=4},0,32)">
!tAs = !cute.memref<f16, smem, S<3,4,3>, "((1,1),32,1,3):((0,0),128,0,4096)">
!lAs = !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,1),4,2,3):((1,0),1024,16,4096)">
!idA = !cute.coord_tensor<"(?,0)", "(128,32):(1@0,1@1)">
!tIdA = !cute.coord_tensor<"(?,?)", "((1,1),32,1):((0,0),4@0,0)">
!flagsA = !cute.memref<i1, rmem, "(1,32,1):(0,1,0)">
!acc = !cute.memref<f32, rmem, "((2,2),4,8):((1,2),4,16)">
!residueA = !cute.memref<i1, rmem, "(1,32,1):(0,1,32)">
!hA = !cute.memref<f16, rmem, align<32>, "((1,1),32,1):((0,0),1,0)">
!tAk = !cute.memref<f16, gmem, "((1,1),32,1):((0,0),?{div=4},0)">
!tAsk = !cute.memref<f16, smem, S<3,4,3>, "((1,1),32,1):((0,0),128,0)">
!pA = !cute.memref<f16, smem, align<4>, S<3,4,3>, "((2,2,2),4,2):((1,256,8),1024,16)">
!fA = !cute.memref<f16, rmem, align<32>, "((2,2,2),4,2):((1,2,4),8,32)">
!pB = !cute.memref<f16, smem, align<4>, S<3,4,3>, "((2,2),8,2):((1,8),512,16)">
!fB = !cute.memref<f16, rmem, align<32>, "((2,2),8,2):((1,2),4,32)">
!rA = !cute.memref<f16, rmem, align<32>, "((8,1),4,2):((1,0),8,32)">
!fAk = !cute.memref<f16, rmem, align<32>, "((2,2,2),4):((1,2,4),8)">
!fBk = !cute.memref<f16, rmem, align<32>, "((2,2),8):((1,2),4)">
!fC = !cute.memref<f16, rmem, "((2,2),4,8):((1,2),4,16)">
!sC = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,(64,2)):(64,(1,8192))">
!rC = !cute.memref<f16, rmem, "((1,(4,2)),4,4):((0,(1,16)),4,32)">
!tCs = !cute.memref<f16, smem, align<4>, S<3,4,3>, "((1,(2,2,2)),4,(2,2)):((0,(1,512,16)),2048,(32,8192))">
!sCv = !cute.memref<f16, smem, S<3,4,3>, "((1,1),128,1):((0,0),64,0)">
!gC = !cute.memref<f16, gmem, "(128,128):(?,1)">
!tC = !cute.memref<f16, gmem, "((1,1),128,1):((0,0),?,0)">
!idC = !cute.coord_tensor<"(?,?)", "(128,128):(1@0,1@1)">
!tIdC = !cute.coord_tensor<"(?,?)", "((1,1),128,1):((0,0),1@0,0)">
!gA2 = !cute.memref<f16, gmem, align<16>, "(128,32,?):(?{div=8},1,32)">
!tA2 = !cute.memref<f16, gmem, align<16>, "((8,1),4,1,?):((1,0),?{div=256},0,32)">
!tAs2 = !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,1),4,1,3):((1,0),1024,0,4096)">
!tIdA2 = !cute.coord_tensor<"(?,?{div=8})", "((8,1),4,1):((1@1,0),32@0,0)">
!flagsA2 = !cute.memref<i1, rmem, "(1,4,1):(0,1,0)">
!residueA2 = !cute.memref<i1, rmem, "(1,4,1):(0,1,4)">
!tAk2 = !cute.memref<f16, gmem, align<16>, "((8,1),4,1):((1,0),?{div=256},0)">
!tAsk2 = !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,1),4,1):((1,0),1024,0)">
!sCv2 = !cute.memref<f16, smem, align<16>, S<3,4,3>, "((1,8),16,1):((0,1),512,0)">
!gC2 = !cute.memref<f16, gmem, align<16>, "(128,128):(?{div=8},1)">
!tC2 = !cute.memref<f16, gmem, align<16>, "((1,8),16,1):((0,1),?{div=64},0)">
!tIdC2 = !cute.coord_tensor<"(?,?)", "((1,8),16,1):((0,1@1),8@0,0)">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @gemm(%A: !mat, %B: !mat, %C: !mat) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c64_i32 = arith.constant 64 : i32
      %c3_i32 = arith.constant 3 : i32
      %c2_i32 = arith.constant 2 : i32
      %c1_i32 = arith.constant 1 : i32
      %c0_i32 = arith.constant 0 : i32
      %c8_i32 = arith.constant 8 : i32
      %c128_i32 = arith.constant 128 : i32
      %c127_i32 = arith.constant 127 : i32
      %c32_i32 = arith.constant 32 : i32
      %c31_i32 = arith.constant 31 : i32
      %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
      %thr = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %0 = cute.get_layout(%A) : !mat
      %1 = cute.size<[0]> (%0) : (!cute.layout<"(?,?):(?,1)">) -> !cute.int_tuple<"?">
      %M = cute.get_scalars (%1) : !cute.int_tuple<"?">
      %2 = cute.size<[1]> (%0) : (!cute.layout<"(?,?):(?,1)">) -> !cute.int_tuple<"?">
      %K = cute.get_scalars (%2) : !cute.int_tuple<"?">
      %3 = cute.get_layout(%B) : !mat
      %4 = cute.size<[0]> (%3) : (!cute.layout<"(?,?):(?,1)">) -> !cute.int_tuple<"?">
      %N = cute.get_scalars (%4) : !cute.int_tuple<"?">
      %5 = cute.size<[1]> (%3) : (!cute.layout<"(?,?):(?,1)">) -> !cute.int_tuple<"?">
      %_ = cute.get_scalars (%5) : !cute.int_tuple<"?">
      %6 = arith.addi %K, %c31_i32 : i32
      %k_tiles = arith.divui %6, %c32_i32 : i32
      %7 = arith.addi %M, %c127_i32 : i32
      %8 = arith.divui %7, %c128_i32 : i32
      %9 = arith.addi %N, %c127_i32 : i32
      %10 = arith.divui %9, %c128_i32 : i32
      // Tiles of C: 8 rows of tiles at a time, column by column.
      %tile = nvvm.read.ptx.sreg.ctaid.x : i32
      %11 = arith.muli %10, %c8_i32 : i32
      %12 = arith.divui %tile, %11 : i32
      %13 = arith.muli %12, %11 : i32
      %14 = arith.subi %tile, %13 : i32
      %15 = arith.muli %12, %c8_i32 : i32
      %16 = arith.subi %8, %15 : i32
      %17 = arith.minui %16, %c8_i32 : i32
      %tile_n = arith.divui %14, %17 : i32
      %18 = arith.muli %tile_n, %17 : i32
      %19 = arith.subi %14, %18 : i32
      %tile_m = arith.addi %15, %19 : i32
      %m0 = arith.muli %tile_m, %c128_i32 : i32
      %n0 = arith.muli %tile_n, %c128_i32 : i32
      // The stages of A, then those of B; at the end C.
      %smem = cute.memref.alloc_smem() : !smem
      %20 = cute.get_iter(%smem) : !smem
      %21 = cute.static : !cute.layout<"(128,32,3):(32,1,4096)">
      %sA = cute.make_view(%20, %21) : !sA
      %22 = cute.atom() : !cute_nvgpu.atom.universal_copy<f16>
      %fillA = cute.make_tiled_copy(%22) : !fillA
      // Tiles of A for this block; what this thread copies, from where to where; what it loads into fragments.
      %23 = cute.static : !cute.tile<"[128:1;32:1]">
      %24 = cute.make_coord(%tile_m) : (i32) -> !cute.coord<"(?,_)">
      %gA = cute.local_tile(%A, %23, %24) : (!mat, !cute.tile<"[128:1;32:1]">, !cute.coord<"(?,_)">) -> !gA
      %tA = cute.tiled.copy.partition_S(%fillA, %gA, %thr) : (!fillA, !gA, !cute.coord<"?">) -> !tA
      %tAs = cute.tiled.copy.partition_D(%fillA, %sA, %thr) : (!fillA, !sA, !cute.coord<"?">) -> !tAs
      %25 = cute.atom() : !ldmatrixA
      %loadA = cute.make_tiled_copy(%25) : !loadA
      %lAs = cute.tiled.copy.partition_S(%loadA, %sA, %thr) : (!loadA, !sA, !cute.coord<"?">) -> !lAs
      // A flag an instruction: is its row inside of A?
      %26 = cute.make_int_tuple(%m0) : (i32) -> !cute.int_tuple<"(?,0)">
      %27 = cute.static : !cute.layout<"(128,32):(1@0,1@1)">
      %idA = cute.make_view(%26, %27) : !idA
      %tIdA = cute.tiled.copy.partition_S(%fillA, %idA, %thr) : (!fillA, !idA, !cute.coord<"?">) -> !tIdA
      %flagsA = cute.memref.alloca() : !flagsA
      scf.for %arg0 = %c0_i32 to %c32_i32 step %c1_i32 : i32 {
        %64 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(0,?,0)">
        %65 = cute.memref.load(%tIdA, %64) : (!tIdA, !cute.coord<"(0,?,0)">) -> !cute.int_tuple<"(?,?)">
        %66:2 = cute.get_scalars (%65) : !cute.int_tuple<"(?,?)">
        %67 = arith.cmpi ult, %66#0, %M : i32
        %68 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%flagsA, %68, %67) : (!flagsA, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %28 = cute.static : !cute.int_tuple<"12288">
      %29 = cute.add_offset(%20, %28) : (!cute.ptr<f16, smem, align<1024>, S<3,4,3>>, !cute.int_tuple<"12288">) -> !cute.ptr<f16, smem, align<1024>, S<3,4,3>>
      %30 = cute.static : !cute.layout<"(128,32,3):(32,1,4096)">
      %sB = cute.make_view(%29, %30) : !sA
      %31 = cute.atom() : !cute_nvgpu.atom.universal_copy<f16>
      %fillB = cute.make_tiled_copy(%31) : !fillA
      // The same of B.
      %32 = cute.static : !cute.tile<"[128:1;32:1]">
      %33 = cute.make_coord(%tile_n) : (i32) -> !cute.coord<"(?,_)">
      %gB = cute.local_tile(%B, %32, %33) : (!mat, !cute.tile<"[128:1;32:1]">, !cute.coord<"(?,_)">) -> !gA
      %tB = cute.tiled.copy.partition_S(%fillB, %gB, %thr) : (!fillA, !gA, !cute.coord<"?">) -> !tA
      %tBs = cute.tiled.copy.partition_D(%fillB, %sB, %thr) : (!fillA, !sA, !cute.coord<"?">) -> !tAs
      %34 = cute.atom() : !ldmatrixA
      %loadB = cute.make_tiled_copy(%34) : !loadB
      %lBs = cute.tiled.copy.partition_S(%loadB, %sB, %thr) : (!loadB, !sA, !cute.coord<"?">) -> !lAs
      // A flag an instruction: is its row inside of B?
      %35 = cute.make_int_tuple(%n0) : (i32) -> !cute.int_tuple<"(?,0)">
      %36 = cute.static : !cute.layout<"(128,32):(1@0,1@1)">
      %idB = cute.make_view(%35, %36) : !idA
      %tIdB = cute.tiled.copy.partition_S(%fillB, %idB, %thr) : (!fillA, !idA, !cute.coord<"?">) -> !tIdA
      %flagsB = cute.memref.alloca() : !flagsA
      scf.for %arg0 = %c0_i32 to %c32_i32 step %c1_i32 : i32 {
        %64 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(0,?,0)">
        %65 = cute.memref.load(%tIdB, %64) : (!tIdA, !cute.coord<"(0,?,0)">) -> !cute.int_tuple<"(?,?)">
        %66:2 = cute.get_scalars (%65) : !cute.int_tuple<"(?,?)">
        %67 = arith.cmpi ult, %66#0, %N : i32
        %68 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%flagsB, %68, %67) : (!flagsA, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %37 = cute.atom() : !mma_atom
      %tiled_mma = cute.make_tiled_mma(%37) : !mma
      %acc = cute.memref.alloca() : !acc
      cute.clear(%acc) : (!acc) -> ()
      // The last tile of K, with zeros beyond K, comes first; the others follow from tile 0 on.
      %last = arith.subi %k_tiles, %c1_i32 : i32
      %38 = arith.muli %last, %c32_i32 : i32
      %39 = arith.subi %K, %38 : i32
      %left = arith.minui %39, %K : i32
      %residueA = cute.memref.alloca() : !residueA
      scf.for %arg0 = %c0_i32 to %c32_i32 step %c1_i32 : i32 {
        scf.for %arg1 = %c0_i32 to %c1_i32 step %c1_i32 : i32 {
          %64 = cute.make_coord(%arg0, %arg1) : (i32, i32) -> !cute.coord<"(0,?,?)">
          %65 = cute.memref.load(%tIdA, %64) : (!tIdA, !cute.coord<"(0,?,?)">) -> !cute.int_tuple<"(?,?)">
          %66:2 = cute.get_scalars (%65) : !cute.int_tuple<"(?,?)">
          %67 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(0,?,0)">
          %68 = cute.memref.load(%flagsA, %67) : (!flagsA, !cute.coord<"(0,?,0)">) -> i1
          %69 = arith.cmpi ult, %66#1, %left : i32
          %70 = arith.andi %68, %69 : i1
          %71 = cute.make_coord(%arg0, %arg1) : (i32, i32) -> !cute.coord<"(0,?,?)">
          cute.memref.store(%residueA, %71, %70) : (!residueA, !cute.coord<"(0,?,?)">, i1) -> ()
        }
      }
      %40 = cute.static : !cute.coord<"(_,_,_,0)">
      %41 = cute.slice(%tAs, %40) : !tAs, !cute.coord<"(_,_,_,0)">
      %hA = cute.make_fragment_like(%41) : !tAsk -> !hA
      cute.clear(%hA) : (!hA) -> ()
      %42 = cute.make_coord(%last) : (i32) -> !cute.coord<"(_,_,_,?)">
      %tAk = cute.slice(%tA, %42) : !tA, !cute.coord<"(_,_,_,?)">
      cute.copy(%fillA, %tAk, %hA, pred = %residueA) : (!fillA, !tAk, !hA, !residueA) -> ()
      %43 = cute.make_coord(%c0_i32) : (i32) -> !cute.coord<"(_,_,_,?)">
      %tAsk = cute.slice(%tAs, %43) : !tAs, !cute.coord<"(_,_,_,?)">
      cute.copy(%fillA, %hA, %tAsk) : (!fillA, !hA, !tAsk) -> ()
      %residueB = cute.memref.alloca() : !residueA
      scf.for %arg0 = %c0_i32 to %c32_i32 step %c1_i32 : i32 {
        scf.for %arg1 = %c0_i32 to %c1_i32 step %c1_i32 : i32 {
          %64 = cute.make_coord(%arg0, %arg1) : (i32, i32) -> !cute.coord<"(0,?,?)">
          %65 = cute.memref.load(%tIdB, %64) : (!tIdA, !cute.coord<"(0,?,?)">) -> !cute.int_tuple<"(?,?)">
          %66:2 = cute.get_scalars (%65) : !cute.int_tuple<"(?,?)">
          %67 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(0,?,0)">
          %68 = cute.memref.load(%flagsB, %67) : (!flagsA, !cute.coord<"(0,?,0)">) -> i1
          %69 = arith.cmpi ult, %66#1, %left : i32
          %70 = arith.andi %68, %69 : i1
          %71 = cute.make_coord(%arg0, %arg1) : (i32, i32) -> !cute.coord<"(0,?,?)">
          cute.memref.store(%residueB, %71, %70) : (!residueA, !cute.coord<"(0,?,?)">, i1) -> ()
        }
      }
      %44 = cute.static : !cute.coord<"(_,_,_,0)">
      %45 = cute.slice(%tBs, %44) : !tAs, !cute.coord<"(_,_,_,0)">
      %hB = cute.make_fragment_like(%45) : !tAsk -> !hA
      cute.clear(%hB) : (!hA) -> ()
      %46 = cute.make_coord(%last) : (i32) -> !cute.coord<"(_,_,_,?)">
      %tBk = cute.slice(%tB, %46) : !tA, !cute.coord<"(_,_,_,?)">
      cute.copy(%fillB, %tBk, %hB, pred = %residueB) : (!fillA, !tAk, !hA, !residueA) -> ()
      %47 = cute.make_coord(%c0_i32) : (i32) -> !cute.coord<"(_,_,_,?)">
      %tBsk = cute.slice(%tBs, %47) : !tAs, !cute.coord<"(_,_,_,?)">
      cute.copy(%fillB, %hB, %tBsk) : (!fillA, !hA, !tAsk) -> ()
      %48 = arith.cmpi ult, %c1_i32, %k_tiles : i32
      scf.if %48 {
        %64 = cute.static : !cute.coord<"(_,_,_,0)">
        %65 = cute.slice(%tAs, %64) : !tAs, !cute.coord<"(_,_,_,0)">
        %hA_0 = cute.make_fragment_like(%65) : !tAsk -> !hA
        cute.clear(%hA_0) : (!hA) -> ()
        %66 = cute.make_coord(%c0_i32) : (i32) -> !cute.coord<"(_,_,_,?)">
        %tAk_1 = cute.slice(%tA, %66) : !tA, !cute.coord<"(_,_,_,?)">
        cute.copy(%fillA, %tAk_1, %hA_0, pred = %flagsA) : (!fillA, !tAk, !hA, !flagsA) -> ()
        %67 = cute.make_coord(%c1_i32) : (i32) -> !cute.coord<"(_,_,_,?)">
        %tAsk_2 = cute.slice(%tAs, %67) : !tAs, !cute.coord<"(_,_,_,?)">
        cute.copy(%fillA, %hA_0, %tAsk_2) : (!fillA, !hA, !tAsk) -> ()
        %68 = cute.static : !cute.coord<"(_,_,_,0)">
        %69 = cute.slice(%tBs, %68) : !tAs, !cute.coord<"(_,_,_,0)">
        %hB_3 = cute.make_fragment_like(%69) : !tAsk -> !hA
        cute.clear(%hB_3) : (!hA) -> ()
        %70 = cute.make_coord(%c0_i32) : (i32) -> !cute.coord<"(_,_,_,?)">
        %tBk_4 = cute.slice(%tB, %70) : !tA, !cute.coord<"(_,_,_,?)">
        cute.copy(%fillB, %tBk_4, %hB_3, pred = %flagsB) : (!fillA, !tAk, !hA, !flagsA) -> ()
        %71 = cute.make_coord(%c1_i32) : (i32) -> !cute.coord<"(_,_,_,?)">
        %tBsk_5 = cute.slice(%tBs, %71) : !tAs, !cute.coord<"(_,_,_,?)">
        cute.copy(%fillB, %hB_3, %tBsk_5) : (!fillA, !hA, !tAsk) -> ()
      }
      %49:2 = scf.for %arg0 = %c0_i32 to %k_tiles step %c1_i32 iter_args(%read = %c0_i32, %write = %c2_i32) -> (i32, i32) : i32 {
        cute_nvgpu.arch.barrier() : () -> ()
        // The stage that was read in the last step is filled with the tile 2 steps ahead.
        %ahead = arith.addi %arg0, %c2_i32 : i32
        %more = arith.cmpi ult, %ahead, %k_tiles : i32
        %64 = cute.static : !cute.coord<"(_,_,_,0)">
        %65 = cute.slice(%tAs, %64) : !tAs, !cute.coord<"(_,_,_,0)">
        %hA_0 = cute.make_fragment_like(%65) : !tAsk -> !hA
        cute.clear(%hA_0) : (!hA) -> ()
        %66 = cute.static : !cute.coord<"(_,_,_,0)">
        %67 = cute.slice(%tBs, %66) : !tAs, !cute.coord<"(_,_,_,0)">
        %hB_1 = cute.make_fragment_like(%67) : !tAsk -> !hA
        cute.clear(%hB_1) : (!hA) -> ()
        scf.if %more {
          %78 = arith.subi %ahead, %c1_i32 : i32
          %79 = cute.make_coord(%78) : (i32) -> !cute.coord<"(_,_,_,?)">
          %tAk_2 = cute.slice(%tA, %79) : !tA, !cute.coord<"(_,_,_,?)">
          cute.copy(%fillA, %tAk_2, %hA_0, pred = %flagsA) : (!fillA, !tAk, !hA, !flagsA) -> ()
          %80 = arith.subi %ahead, %c1_i32 : i32
          %81 = cute.make_coord(%80) : (i32) -> !cute.coord<"(_,_,_,?)">
          %tBk_3 = cute.slice(%tB, %81) : !tA, !cute.coord<"(_,_,_,?)">
          cute.copy(%fillB, %tBk_3, %hB_1, pred = %flagsB) : (!fillA, !tAk, !hA, !flagsA) -> ()
        }
        %68 = cute.make_coord(%read) : (i32) -> !cute.coord<"(_,_,?)">
        %69 = cute.slice(%sA, %68) : !sA, !cute.coord<"(_,_,?)">
        %pA = cute.tiled.mma.partition_A(%tiled_mma, %69, %thr) : (!mma, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,32):(32,1)">, !cute.coord<"?">) -> !pA
        %fA = cute.tiled.mma.make_fragment_A(%tiled_mma, %pA) : (!mma, !pA) -> !fA
        %70 = cute.make_coord(%read) : (i32) -> !cute.coord<"(_,_,?)">
        %71 = cute.slice(%sB, %70) : !sA, !cute.coord<"(_,_,?)">
        %pB = cute.tiled.mma.partition_B(%tiled_mma, %71, %thr) : (!mma, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,32):(32,1)">, !cute.coord<"?">) -> !pB
        %fB = cute.tiled.mma.make_fragment_B(%tiled_mma, %pB) : (!mma, !pB) -> !fB
        %rA = cute.tiled.copy.retile(%loadA, %fA) : (!loadA, !fA) -> !rA
        %rB = cute.tiled.copy.retile(%loadB, %fB) : (!loadB, !fB) -> !rA
        scf.for %k = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
          %78 = cute.make_coord(%k, %read) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
          %79 = cute.slice(%lAs, %78) : !lAs, !cute.coord<"(_,_,?,?)">
          %80 = cute.make_coord(%k) : (i32) -> !cute.coord<"(_,_,?)">
          %81 = cute.slice(%rA, %80) : !rA, !cute.coord<"(_,_,?)">
          cute.copy(%loadA, %79, %81) : (!loadA, !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,1),4):((1,0),1024)">, !cute.memref<f16, rmem, align<32>, "((8,1),4):((1,0),8)">) -> ()
          %82 = cute.make_coord(%k, %read) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
          %83 = cute.slice(%lBs, %82) : !lAs, !cute.coord<"(_,_,?,?)">
          %84 = cute.make_coord(%k) : (i32) -> !cute.coord<"(_,_,?)">
          %85 = cute.slice(%rB, %84) : !rA, !cute.coord<"(_,_,?)">
          cute.copy(%loadB, %83, %85) : (!loadB, !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,1),4):((1,0),1024)">, !cute.memref<f16, rmem, align<32>, "((8,1),4):((1,0),8)">) -> ()
        }
        scf.for %k = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
          %78 = cute.make_coord(%k) : (i32) -> !cute.coord<"(_,_,?)">
          %fAk = cute.slice(%fA, %78) : !fA, !cute.coord<"(_,_,?)">
          %79 = cute.make_coord(%k) : (i32) -> !cute.coord<"(_,_,?)">
          %fBk = cute.slice(%fB, %79) : !fB, !cute.coord<"(_,_,?)">
          cute.gemm(%tiled_mma, %acc, %fAk, %fBk, %acc) : (!mma, !acc, !fAk, !fBk, !acc) -> ()
        }
        scf.if %more {
          %78 = cute.make_coord(%write) : (i32) -> !cute.coord<"(_,_,_,?)">
          %tAsk_2 = cute.slice(%tAs, %78) : !tAs, !cute.coord<"(_,_,_,?)">
          cute.copy(%fillA, %hA_0, %tAsk_2) : (!fillA, !hA, !tAsk) -> ()
          %79 = cute.make_coord(%write) : (i32) -> !cute.coord<"(_,_,_,?)">
          %tBsk_3 = cute.slice(%tBs, %79) : !tAs, !cute.coord<"(_,_,_,?)">
          cute.copy(%fillB, %hB_1, %tBsk_3) : (!fillA, !hA, !tAsk) -> ()
        }
        %72 = arith.addi %read, %c1_i32 : i32
        %73 = arith.cmpi eq, %72, %c3_i32 : i32
        %74 = arith.select %73, %c0_i32, %72 : i32
        %75 = arith.addi %write, %c1_i32 : i32
        %76 = arith.cmpi eq, %75, %c3_i32 : i32
        %77 = arith.select %76, %c0_i32, %75 : i32
        scf.yield %74, %77 : i32, i32
      }
      cute_nvgpu.arch.barrier() : () -> ()
      // The result in the type of C.
      %fC = cute.memref.alloca() : !fC
      scf.for %arg0 = %c0_i32 to %c64_i32 step %c1_i32 : i32 {
        %64 = arith.muli %arg0, %c2_i32 : i32
        %65 = cute.get_iter(%acc) : !acc
        %66 = cute.make_int_tuple(%64) : (i32) -> !cute.int_tuple<"?">
        %67 = cute.add_offset(%65, %66) : (!cute.ptr<f32, rmem>, !cute.int_tuple<"?">) -> !cute.ptr<f32, rmem>
        %68 = cute.static : !cute.layout<"2:1">
        %69 = cute.make_view(%67, %68) : !cute.memref<f32, rmem, "2:1">
        %70 = cute.memref.load_vec %69 : !cute.memref<f32, rmem, "2:1">
        %71 = arith.truncf %70 : vector<2xf32> to vector<2xf16>
        %72 = arith.muli %arg0, %c2_i32 : i32
        %73 = cute.get_iter(%fC) : !fC
        %74 = cute.make_int_tuple(%72) : (i32) -> !cute.int_tuple<"?">
        %75 = cute.add_offset(%73, %74) : (!cute.ptr<f16, rmem>, !cute.int_tuple<"?">) -> !cute.ptr<f16, rmem>
        %76 = cute.static : !cute.layout<"2:1">
        %77 = cute.make_view(%75, %76) : !cute.memref<f16, rmem, "2:1">
        cute.memref.store_vec %71, %77 : !cute.memref<f16, rmem, "2:1">
      }
      // Through shared memory, so that rows of C are written in whole vectors.
      %50 = cute.static : !cute.layout<"(128,(64,2)):(64,(1,8192))">
      %sC = cute.make_view(%20, %50) : !sC
      %51 = cute.atom() : !cute_nvgpu.atom.universal_copy<f16>
      %52 = cute.make_tiled_copy(%51) : !storeS
      %rC = cute.tiled.copy.retile(%52, %fC) : (!storeS, !fC) -> !rC
      %tCs = cute.tiled.copy.partition_D(%52, %sC, %thr) : (!storeS, !sC, !cute.coord<"?">) -> !tCs
      cute.copy(%52, %rC, %tCs) : (!storeS, !rC, !tCs) -> ()
      cute_nvgpu.arch.barrier() : () -> ()
      %53 = cute.atom() : !cute_nvgpu.atom.universal_copy<f16>
      %54 = cute.make_tiled_copy(%53) : !storeC
      %sCv = cute.tiled.copy.partition_S(%54, %sC, %thr) : (!storeC, !sC, !cute.coord<"?">) -> !sCv
      %55 = cute.static : !cute.tile<"[128:1;128:1]">
      %56 = cute.make_coord(%tile_m, %tile_n) : (i32, i32) -> !cute.coord<"(?,?)">
      %gC = cute.local_tile(%C, %55, %56) : (!mat, !cute.tile<"[128:1;128:1]">, !cute.coord<"(?,?)">) -> !gC
      %tC = cute.tiled.copy.partition_D(%54, %gC, %thr) : (!storeC, !gC, !cute.coord<"?">) -> !tC
      %57 = cute.make_int_tuple(%m0, %n0) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %58 = cute.static : !cute.layout<"(128,128):(1@0,1@1)">
      %idC = cute.make_view(%57, %58) : !idC
      %tIdC = cute.tiled.copy.partition_S(%54, %idC, %thr) : (!storeC, !idC, !cute.coord<"?">) -> !tIdC
      %59 = cute.make_shape(%M, %N) : (i32, i32) -> !cute.shape<"(?,?)">
      // At the edges of C each element has a flag.
      %60 = arith.addi %m0, %c128_i32 : i32
      %61 = arith.cmpi ule, %60, %M : i32
      %62 = arith.addi %n0, %c128_i32 : i32
      %63 = arith.cmpi ule, %62, %N : i32
      %inside = arith.andi %61, %63 : i1
      scf.if %inside {
        scf.for %arg0 = %c0_i32 to %c128_i32 step %c1_i32 : i32 {
          %64 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,?,0)">
          %65 = cute.slice(%sCv, %64) : !sCv, !cute.coord<"(_,?,0)">
          %66 = cute.make_fragment_like(%65) : !cute.memref<f16, smem, S<3,4,3>, "((1,1)):((0,0))"> -> !cute.memref<f16, rmem, "((1,1)):((0,0))">
          %67 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,?,0)">
          %68 = cute.slice(%sCv, %67) : !sCv, !cute.coord<"(_,?,0)">
          cute.copy(%54, %68, %66) : (!storeC, !cute.memref<f16, smem, S<3,4,3>, "((1,1)):((0,0))">, !cute.memref<f16, rmem, "((1,1)):((0,0))">) -> ()
          %69 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,?,0)">
          %70 = cute.slice(%tC, %69) : !tC, !cute.coord<"(_,?,0)">
          cute.copy(%54, %66, %70) : (!storeC, !cute.memref<f16, rmem, "((1,1)):((0,0))">, !cute.memref<f16, gmem, "((1,1)):((0,0))">) -> ()
        }
      } else {
        scf.for %arg0 = %c0_i32 to %c128_i32 step %c1_i32 : i32 {
          %64 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,?,0)">
          %65 = cute.slice(%tIdC, %64) : !tIdC, !cute.coord<"(_,?,0)">
          %66 = cute.make_fragment_like(%65) [i1] : !cute.coord_tensor<"(?,?)", "((1,1)):((0,0))"> -> !cute.memref<i1, rmem, "((1,1)):((0,0))">
          scf.for %arg1 = %c0_i32 to %c1_i32 step %c1_i32 : i32 {
            %74 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"?">
            %75 = cute.memref.load(%65, %74) : (!cute.coord_tensor<"(?,?)", "((1,1)):((0,0))">, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
            %76 = cute.elem_less(%75, %59) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
            %77 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"?">
            cute.memref.store(%66, %77, %76) : (!cute.memref<i1, rmem, "((1,1)):((0,0))">, !cute.coord<"?">, i1) -> ()
          }
          %67 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,?,0)">
          %68 = cute.slice(%sCv, %67) : !sCv, !cute.coord<"(_,?,0)">
          %69 = cute.make_fragment_like(%68) : !cute.memref<f16, smem, S<3,4,3>, "((1,1)):((0,0))"> -> !cute.memref<f16, rmem, "((1,1)):((0,0))">
          %70 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,?,0)">
          %71 = cute.slice(%sCv, %70) : !sCv, !cute.coord<"(_,?,0)">
          cute.copy(%54, %71, %69) : (!storeC, !cute.memref<f16, smem, S<3,4,3>, "((1,1)):((0,0))">, !cute.memref<f16, rmem, "((1,1)):((0,0))">) -> ()
          %72 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,?,0)">
          %73 = cute.slice(%tC, %72) : !tC, !cute.coord<"(_,?,0)">
          cute.copy(%54, %69, %73, pred = %66) : (!storeC, !cute.memref<f16, rmem, "((1,1)):((0,0))">, !cute.memref<f16, gmem, "((1,1)):((0,0))">, !cute.memref<i1, rmem, "((1,1)):((0,0))">) -> ()
        }
      }
      gpu.return
    }
    gpu.func @gemm_16(%A: !mat_16, %B: !mat_16, %C: !mat_16) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c16_i32 = arith.constant 16 : i32
      %c64_i32 = arith.constant 64 : i32
      %c3_i32 = arith.constant 3 : i32
      %c2_i32 = arith.constant 2 : i32
      %c1_i32 = arith.constant 1 : i32
      %c4_i32 = arith.constant 4 : i32
      %c0_i32 = arith.constant 0 : i32
      %c8_i32 = arith.constant 8 : i32
      %c128_i32 = arith.constant 128 : i32
      %c127_i32 = arith.constant 127 : i32
      %c32_i32 = arith.constant 32 : i32
      %c31_i32 = arith.constant 31 : i32
      %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
      %thr = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %0 = cute.get_layout(%A) : !mat_16
      %1 = cute.size<[0]> (%0) : (!cute.layout<"(?,?{div=8}):(?{div=8},1)">) -> !cute.int_tuple<"?">
      %M = cute.get_scalars (%1) : !cute.int_tuple<"?">
      %2 = cute.size<[1]> (%0) : (!cute.layout<"(?,?{div=8}):(?{div=8},1)">) -> !cute.int_tuple<"?{div=8}">
      %K = cute.get_scalars (%2) : !cute.int_tuple<"?{div=8}">
      %3 = cute.get_layout(%B) : !mat_16
      %4 = cute.size<[0]> (%3) : (!cute.layout<"(?,?{div=8}):(?{div=8},1)">) -> !cute.int_tuple<"?">
      %N = cute.get_scalars (%4) : !cute.int_tuple<"?">
      %5 = cute.size<[1]> (%3) : (!cute.layout<"(?,?{div=8}):(?{div=8},1)">) -> !cute.int_tuple<"?{div=8}">
      %_ = cute.get_scalars (%5) : !cute.int_tuple<"?{div=8}">
      %6 = arith.addi %K, %c31_i32 : i32
      %k_tiles = arith.divui %6, %c32_i32 : i32
      %7 = arith.addi %M, %c127_i32 : i32
      %8 = arith.divui %7, %c128_i32 : i32
      %9 = arith.addi %N, %c127_i32 : i32
      %10 = arith.divui %9, %c128_i32 : i32
      // Tiles of C: 8 rows of tiles at a time, column by column.
      %tile = nvvm.read.ptx.sreg.ctaid.x : i32
      %11 = arith.muli %10, %c8_i32 : i32
      %12 = arith.divui %tile, %11 : i32
      %13 = arith.muli %12, %11 : i32
      %14 = arith.subi %tile, %13 : i32
      %15 = arith.muli %12, %c8_i32 : i32
      %16 = arith.subi %8, %15 : i32
      %17 = arith.minui %16, %c8_i32 : i32
      %tile_n = arith.divui %14, %17 : i32
      %18 = arith.muli %tile_n, %17 : i32
      %19 = arith.subi %14, %18 : i32
      %tile_m = arith.addi %15, %19 : i32
      %m0 = arith.muli %tile_m, %c128_i32 : i32
      %n0 = arith.muli %tile_n, %c128_i32 : i32
      // The stages of A, then those of B; at the end C.
      %smem = cute.memref.alloc_smem() : !smem
      %20 = cute.get_iter(%smem) : !smem
      %21 = cute.static : !cute.layout<"(128,32,3):(32,1,4096)">
      %sA = cute.make_view(%20, %21) : !sA
      %22 = cute.atom() : !copy_16
      %fillA = cute.make_tiled_copy(%22) : !fillA_16
      // Tiles of A for this block; what this thread copies, from where to where; what it loads into fragments.
      %23 = cute.static : !cute.tile<"[128:1;32:1]">
      %24 = cute.make_coord(%tile_m) : (i32) -> !cute.coord<"(?,_)">
      %gA = cute.local_tile(%A, %23, %24) : (!mat_16, !cute.tile<"[128:1;32:1]">, !cute.coord<"(?,_)">) -> !gA2
      %tA = cute.tiled.copy.partition_S(%fillA, %gA, %thr) : (!fillA_16, !gA2, !cute.coord<"?">) -> !tA2
      %tAs = cute.tiled.copy.partition_D(%fillA, %sA, %thr) : (!fillA_16, !sA, !cute.coord<"?">) -> !tAs2
      %25 = cute.atom() : !ldmatrixA
      %loadA = cute.make_tiled_copy(%25) : !loadA
      %lAs = cute.tiled.copy.partition_S(%loadA, %sA, %thr) : (!loadA, !sA, !cute.coord<"?">) -> !lAs
      // A flag an instruction: is its row inside of A?
      %26 = cute.make_int_tuple(%m0) : (i32) -> !cute.int_tuple<"(?,0)">
      %27 = cute.static : !cute.layout<"(128,32):(1@0,1@1)">
      %idA = cute.make_view(%26, %27) : !idA
      %tIdA = cute.tiled.copy.partition_S(%fillA, %idA, %thr) : (!fillA_16, !idA, !cute.coord<"?">) -> !tIdA2
      %flagsA = cute.memref.alloca() : !flagsA2
      scf.for %arg0 = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
        %60 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(0,?,0)">
        %61 = cute.memref.load(%tIdA, %60) : (!tIdA2, !cute.coord<"(0,?,0)">) -> !cute.int_tuple<"(?,?{div=8})">
        %62:2 = cute.get_scalars (%61) : !cute.int_tuple<"(?,?{div=8})">
        %63 = arith.cmpi ult, %62#0, %M : i32
        %64 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%flagsA, %64, %63) : (!flagsA2, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %28 = cute.static : !cute.int_tuple<"12288">
      %29 = cute.add_offset(%20, %28) : (!cute.ptr<f16, smem, align<1024>, S<3,4,3>>, !cute.int_tuple<"12288">) -> !cute.ptr<f16, smem, align<1024>, S<3,4,3>>
      %30 = cute.static : !cute.layout<"(128,32,3):(32,1,4096)">
      %sB = cute.make_view(%29, %30) : !sA
      %31 = cute.atom() : !copy_16
      %fillB = cute.make_tiled_copy(%31) : !fillA_16
      // The same of B.
      %32 = cute.static : !cute.tile<"[128:1;32:1]">
      %33 = cute.make_coord(%tile_n) : (i32) -> !cute.coord<"(?,_)">
      %gB = cute.local_tile(%B, %32, %33) : (!mat_16, !cute.tile<"[128:1;32:1]">, !cute.coord<"(?,_)">) -> !gA2
      %tB = cute.tiled.copy.partition_S(%fillB, %gB, %thr) : (!fillA_16, !gA2, !cute.coord<"?">) -> !tA2
      %tBs = cute.tiled.copy.partition_D(%fillB, %sB, %thr) : (!fillA_16, !sA, !cute.coord<"?">) -> !tAs2
      %34 = cute.atom() : !ldmatrixA
      %loadB = cute.make_tiled_copy(%34) : !loadB
      %lBs = cute.tiled.copy.partition_S(%loadB, %sB, %thr) : (!loadB, !sA, !cute.coord<"?">) -> !lAs
      // A flag an instruction: is its row inside of B?
      %35 = cute.make_int_tuple(%n0) : (i32) -> !cute.int_tuple<"(?,0)">
      %36 = cute.static : !cute.layout<"(128,32):(1@0,1@1)">
      %idB = cute.make_view(%35, %36) : !idA
      %tIdB = cute.tiled.copy.partition_S(%fillB, %idB, %thr) : (!fillA_16, !idA, !cute.coord<"?">) -> !tIdA2
      %flagsB = cute.memref.alloca() : !flagsA2
      scf.for %arg0 = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
        %60 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(0,?,0)">
        %61 = cute.memref.load(%tIdB, %60) : (!tIdA2, !cute.coord<"(0,?,0)">) -> !cute.int_tuple<"(?,?{div=8})">
        %62:2 = cute.get_scalars (%61) : !cute.int_tuple<"(?,?{div=8})">
        %63 = arith.cmpi ult, %62#0, %N : i32
        %64 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(0,?,0)">
        cute.memref.store(%flagsB, %64, %63) : (!flagsA2, !cute.coord<"(0,?,0)">, i1) -> ()
      }
      %37 = cute.atom() : !mma_atom
      %tiled_mma = cute.make_tiled_mma(%37) : !mma
      %acc = cute.memref.alloca() : !acc
      cute.clear(%acc) : (!acc) -> ()
      // The last tile of K, with zeros beyond K, comes first; the others follow from tile 0 on.
      %last = arith.subi %k_tiles, %c1_i32 : i32
      %38 = arith.muli %last, %c32_i32 : i32
      %39 = arith.subi %K, %38 : i32
      %left = arith.minui %39, %K : i32
      %residueA = cute.memref.alloca() : !residueA2
      scf.for %arg0 = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
        scf.for %arg1 = %c0_i32 to %c1_i32 step %c1_i32 : i32 {
          %60 = cute.make_coord(%arg0, %arg1) : (i32, i32) -> !cute.coord<"(0,?,?)">
          %61 = cute.memref.load(%tIdA, %60) : (!tIdA2, !cute.coord<"(0,?,?)">) -> !cute.int_tuple<"(?,?{div=8})">
          %62:2 = cute.get_scalars (%61) : !cute.int_tuple<"(?,?{div=8})">
          %63 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(0,?,0)">
          %64 = cute.memref.load(%flagsA, %63) : (!flagsA2, !cute.coord<"(0,?,0)">) -> i1
          %65 = arith.cmpi ult, %62#1, %left : i32
          %66 = arith.andi %64, %65 : i1
          %67 = cute.make_coord(%arg0, %arg1) : (i32, i32) -> !cute.coord<"(0,?,?)">
          cute.memref.store(%residueA, %67, %66) : (!residueA2, !cute.coord<"(0,?,?)">, i1) -> ()
        }
      }
      %40 = cute.make_coord(%last) : (i32) -> !cute.coord<"(_,_,_,?)">
      %tAk = cute.slice(%tA, %40) : !tA2, !cute.coord<"(_,_,_,?)">
      %41 = cute.make_coord(%c0_i32) : (i32) -> !cute.coord<"(_,_,_,?)">
      %tAsk = cute.slice(%tAs, %41) : !tAs2, !cute.coord<"(_,_,_,?)">
      cute.copy(%fillA, %tAk, %tAsk, pred = %residueA) : (!fillA_16, !tAk2, !tAsk2, !residueA2) -> ()
      %residueB = cute.memref.alloca() : !residueA2
      scf.for %arg0 = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
        scf.for %arg1 = %c0_i32 to %c1_i32 step %c1_i32 : i32 {
          %60 = cute.make_coord(%arg0, %arg1) : (i32, i32) -> !cute.coord<"(0,?,?)">
          %61 = cute.memref.load(%tIdB, %60) : (!tIdA2, !cute.coord<"(0,?,?)">) -> !cute.int_tuple<"(?,?{div=8})">
          %62:2 = cute.get_scalars (%61) : !cute.int_tuple<"(?,?{div=8})">
          %63 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(0,?,0)">
          %64 = cute.memref.load(%flagsB, %63) : (!flagsA2, !cute.coord<"(0,?,0)">) -> i1
          %65 = arith.cmpi ult, %62#1, %left : i32
          %66 = arith.andi %64, %65 : i1
          %67 = cute.make_coord(%arg0, %arg1) : (i32, i32) -> !cute.coord<"(0,?,?)">
          cute.memref.store(%residueB, %67, %66) : (!residueA2, !cute.coord<"(0,?,?)">, i1) -> ()
        }
      }
      %42 = cute.make_coord(%last) : (i32) -> !cute.coord<"(_,_,_,?)">
      %tBk = cute.slice(%tB, %42) : !tA2, !cute.coord<"(_,_,_,?)">
      %43 = cute.make_coord(%c0_i32) : (i32) -> !cute.coord<"(_,_,_,?)">
      %tBsk = cute.slice(%tBs, %43) : !tAs2, !cute.coord<"(_,_,_,?)">
      cute.copy(%fillB, %tBk, %tBsk, pred = %residueB) : (!fillA_16, !tAk2, !tAsk2, !residueA2) -> ()
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      %44 = arith.cmpi ult, %c1_i32, %k_tiles : i32
      scf.if %44 {
        %60 = cute.make_coord(%c0_i32) : (i32) -> !cute.coord<"(_,_,_,?)">
        %tAk_0 = cute.slice(%tA, %60) : !tA2, !cute.coord<"(_,_,_,?)">
        %61 = cute.make_coord(%c1_i32) : (i32) -> !cute.coord<"(_,_,_,?)">
        %tAsk_1 = cute.slice(%tAs, %61) : !tAs2, !cute.coord<"(_,_,_,?)">
        cute.copy(%fillA, %tAk_0, %tAsk_1, pred = %flagsA) : (!fillA_16, !tAk2, !tAsk2, !flagsA2) -> ()
        %62 = cute.make_coord(%c0_i32) : (i32) -> !cute.coord<"(_,_,_,?)">
        %tBk_2 = cute.slice(%tB, %62) : !tA2, !cute.coord<"(_,_,_,?)">
        %63 = cute.make_coord(%c1_i32) : (i32) -> !cute.coord<"(_,_,_,?)">
        %tBsk_3 = cute.slice(%tBs, %63) : !tAs2, !cute.coord<"(_,_,_,?)">
        cute.copy(%fillB, %tBk_2, %tBsk_3, pred = %flagsB) : (!fillA_16, !tAk2, !tAsk2, !flagsA2) -> ()
      }
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      %45:2 = scf.for %arg0 = %c0_i32 to %k_tiles step %c1_i32 iter_args(%read = %c0_i32, %write = %c2_i32) -> (i32, i32) : i32 {
        cute_nvgpu.arch.cp_async_wait_group() {n = 1 : i32} : () -> ()
        cute_nvgpu.arch.barrier() : () -> ()
        // The stage that was read in the last step is filled with the tile 2 steps ahead.
        %ahead = arith.addi %arg0, %c2_i32 : i32
        %more = arith.cmpi ult, %ahead, %k_tiles : i32
        scf.if %more {
          %70 = arith.subi %ahead, %c1_i32 : i32
          %71 = cute.make_coord(%70) : (i32) -> !cute.coord<"(_,_,_,?)">
          %tAk_0 = cute.slice(%tA, %71) : !tA2, !cute.coord<"(_,_,_,?)">
          %72 = cute.make_coord(%write) : (i32) -> !cute.coord<"(_,_,_,?)">
          %tAsk_1 = cute.slice(%tAs, %72) : !tAs2, !cute.coord<"(_,_,_,?)">
          cute.copy(%fillA, %tAk_0, %tAsk_1, pred = %flagsA) : (!fillA_16, !tAk2, !tAsk2, !flagsA2) -> ()
          %73 = arith.subi %ahead, %c1_i32 : i32
          %74 = cute.make_coord(%73) : (i32) -> !cute.coord<"(_,_,_,?)">
          %tBk_2 = cute.slice(%tB, %74) : !tA2, !cute.coord<"(_,_,_,?)">
          %75 = cute.make_coord(%write) : (i32) -> !cute.coord<"(_,_,_,?)">
          %tBsk_3 = cute.slice(%tBs, %75) : !tAs2, !cute.coord<"(_,_,_,?)">
          cute.copy(%fillB, %tBk_2, %tBsk_3, pred = %flagsB) : (!fillA_16, !tAk2, !tAsk2, !flagsA2) -> ()
        }
        cute_nvgpu.arch.cp_async_commit_group() : () -> ()
        %60 = cute.make_coord(%read) : (i32) -> !cute.coord<"(_,_,?)">
        %61 = cute.slice(%sA, %60) : !sA, !cute.coord<"(_,_,?)">
        %pA = cute.tiled.mma.partition_A(%tiled_mma, %61, %thr) : (!mma, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,32):(32,1)">, !cute.coord<"?">) -> !pA
        %fA = cute.tiled.mma.make_fragment_A(%tiled_mma, %pA) : (!mma, !pA) -> !fA
        %62 = cute.make_coord(%read) : (i32) -> !cute.coord<"(_,_,?)">
        %63 = cute.slice(%sB, %62) : !sA, !cute.coord<"(_,_,?)">
        %pB = cute.tiled.mma.partition_B(%tiled_mma, %63, %thr) : (!mma, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,32):(32,1)">, !cute.coord<"?">) -> !pB
        %fB = cute.tiled.mma.make_fragment_B(%tiled_mma, %pB) : (!mma, !pB) -> !fB
        %rA = cute.tiled.copy.retile(%loadA, %fA) : (!loadA, !fA) -> !rA
        %rB = cute.tiled.copy.retile(%loadB, %fB) : (!loadB, !fB) -> !rA
        scf.for %k = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
          %70 = cute.make_coord(%k, %read) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
          %71 = cute.slice(%lAs, %70) : !lAs, !cute.coord<"(_,_,?,?)">
          %72 = cute.make_coord(%k) : (i32) -> !cute.coord<"(_,_,?)">
          %73 = cute.slice(%rA, %72) : !rA, !cute.coord<"(_,_,?)">
          cute.copy(%loadA, %71, %73) : (!loadA, !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,1),4):((1,0),1024)">, !cute.memref<f16, rmem, align<32>, "((8,1),4):((1,0),8)">) -> ()
          %74 = cute.make_coord(%k, %read) : (i32, i32) -> !cute.coord<"(_,_,?,?)">
          %75 = cute.slice(%lBs, %74) : !lAs, !cute.coord<"(_,_,?,?)">
          %76 = cute.make_coord(%k) : (i32) -> !cute.coord<"(_,_,?)">
          %77 = cute.slice(%rB, %76) : !rA, !cute.coord<"(_,_,?)">
          cute.copy(%loadB, %75, %77) : (!loadB, !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,1),4):((1,0),1024)">, !cute.memref<f16, rmem, align<32>, "((8,1),4):((1,0),8)">) -> ()
        }
        scf.for %k = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
          %70 = cute.make_coord(%k) : (i32) -> !cute.coord<"(_,_,?)">
          %fAk = cute.slice(%fA, %70) : !fA, !cute.coord<"(_,_,?)">
          %71 = cute.make_coord(%k) : (i32) -> !cute.coord<"(_,_,?)">
          %fBk = cute.slice(%fB, %71) : !fB, !cute.coord<"(_,_,?)">
          cute.gemm(%tiled_mma, %acc, %fAk, %fBk, %acc) : (!mma, !acc, !fAk, !fBk, !acc) -> ()
        }
        %64 = arith.addi %read, %c1_i32 : i32
        %65 = arith.cmpi eq, %64, %c3_i32 : i32
        %66 = arith.select %65, %c0_i32, %64 : i32
        %67 = arith.addi %write, %c1_i32 : i32
        %68 = arith.cmpi eq, %67, %c3_i32 : i32
        %69 = arith.select %68, %c0_i32, %67 : i32
        scf.yield %66, %69 : i32, i32
      }
      cute_nvgpu.arch.cp_async_wait_group() {n = 0 : i32} : () -> ()
      cute_nvgpu.arch.barrier() : () -> ()
      // The result in the type of C.
      %fC = cute.memref.alloca() : !fC
      scf.for %arg0 = %c0_i32 to %c64_i32 step %c1_i32 : i32 {
        %60 = arith.muli %arg0, %c2_i32 : i32
        %61 = cute.get_iter(%acc) : !acc
        %62 = cute.make_int_tuple(%60) : (i32) -> !cute.int_tuple<"?">
        %63 = cute.add_offset(%61, %62) : (!cute.ptr<f32, rmem>, !cute.int_tuple<"?">) -> !cute.ptr<f32, rmem>
        %64 = cute.static : !cute.layout<"2:1">
        %65 = cute.make_view(%63, %64) : !cute.memref<f32, rmem, "2:1">
        %66 = cute.memref.load_vec %65 : !cute.memref<f32, rmem, "2:1">
        %67 = arith.truncf %66 : vector<2xf32> to vector<2xf16>
        %68 = arith.muli %arg0, %c2_i32 : i32
        %69 = cute.get_iter(%fC) : !fC
        %70 = cute.make_int_tuple(%68) : (i32) -> !cute.int_tuple<"?">
        %71 = cute.add_offset(%69, %70) : (!cute.ptr<f16, rmem>, !cute.int_tuple<"?">) -> !cute.ptr<f16, rmem>
        %72 = cute.static : !cute.layout<"2:1">
        %73 = cute.make_view(%71, %72) : !cute.memref<f16, rmem, "2:1">
        cute.memref.store_vec %67, %73 : !cute.memref<f16, rmem, "2:1">
      }
      // Through shared memory, so that rows of C are written in whole vectors.
      %46 = cute.static : !cute.layout<"(128,(64,2)):(64,(1,8192))">
      %sC = cute.make_view(%20, %46) : !sC
      %47 = cute.atom() : !cute_nvgpu.atom.universal_copy<f16>
      %48 = cute.make_tiled_copy(%47) : !storeS
      %rC = cute.tiled.copy.retile(%48, %fC) : (!storeS, !fC) -> !rC
      %tCs = cute.tiled.copy.partition_D(%48, %sC, %thr) : (!storeS, !sC, !cute.coord<"?">) -> !tCs
      cute.copy(%48, %rC, %tCs) : (!storeS, !rC, !tCs) -> ()
      cute_nvgpu.arch.barrier() : () -> ()
      %49 = cute.atom() : !cute_nvgpu.atom.universal_copy<f16>
      %50 = cute.make_tiled_copy(%49) : !storeC_16
      %sCv = cute.tiled.copy.partition_S(%50, %sC, %thr) : (!storeC_16, !sC, !cute.coord<"?">) -> !sCv2
      %51 = cute.static : !cute.tile<"[128:1;128:1]">
      %52 = cute.make_coord(%tile_m, %tile_n) : (i32, i32) -> !cute.coord<"(?,?)">
      %gC = cute.local_tile(%C, %51, %52) : (!mat_16, !cute.tile<"[128:1;128:1]">, !cute.coord<"(?,?)">) -> !gC2
      %tC = cute.tiled.copy.partition_D(%50, %gC, %thr) : (!storeC_16, !gC2, !cute.coord<"?">) -> !tC2
      %53 = cute.make_int_tuple(%m0, %n0) : (i32, i32) -> !cute.int_tuple<"(?,?)">
      %54 = cute.static : !cute.layout<"(128,128):(1@0,1@1)">
      %idC = cute.make_view(%53, %54) : !idC
      %tIdC = cute.tiled.copy.partition_S(%50, %idC, %thr) : (!storeC_16, !idC, !cute.coord<"?">) -> !tIdC2
      %55 = cute.make_shape(%M, %N) : (i32, i32) -> !cute.shape<"(?,?)">
      // At the edges of C each element has a flag.
      %56 = arith.addi %m0, %c128_i32 : i32
      %57 = arith.cmpi ule, %56, %M : i32
      %58 = arith.addi %n0, %c128_i32 : i32
      %59 = arith.cmpi ule, %58, %N : i32
      %inside = arith.andi %57, %59 : i1
      scf.if %inside {
        scf.for %arg0 = %c0_i32 to %c16_i32 step %c1_i32 : i32 {
          %60 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,?,0)">
          %61 = cute.slice(%sCv, %60) : !sCv2, !cute.coord<"(_,?,0)">
          %62 = cute.make_fragment_like(%61) : !cute.memref<f16, smem, align<16>, S<3,4,3>, "((1,8)):((0,1))"> -> !cute.memref<f16, rmem, align<16>, "((1,8)):((0,1))">
          %63 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,?,0)">
          %64 = cute.slice(%sCv, %63) : !sCv2, !cute.coord<"(_,?,0)">
          cute.copy(%50, %64, %62) : (!storeC_16, !cute.memref<f16, smem, align<16>, S<3,4,3>, "((1,8)):((0,1))">, !cute.memref<f16, rmem, align<16>, "((1,8)):((0,1))">) -> ()
          %65 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,?,0)">
          %66 = cute.slice(%tC, %65) : !tC2, !cute.coord<"(_,?,0)">
          cute.copy(%50, %62, %66) : (!storeC_16, !cute.memref<f16, rmem, align<16>, "((1,8)):((0,1))">, !cute.memref<f16, gmem, align<16>, "((1,8)):((0,1))">) -> ()
        }
      } else {
        scf.for %arg0 = %c0_i32 to %c16_i32 step %c1_i32 : i32 {
          %60 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,?,0)">
          %61 = cute.slice(%tIdC, %60) : !tIdC2, !cute.coord<"(_,?,0)">
          %62 = cute.make_fragment_like(%61) [i1] : !cute.coord_tensor<"(?,?)", "((1,8)):((0,1@1))"> -> !cute.memref<i1, rmem, align<8>, "((1,8)):((0,1))">
          scf.for %arg1 = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
            %70 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"?">
            %71 = cute.memref.load(%61, %70) : (!cute.coord_tensor<"(?,?)", "((1,8)):((0,1@1))">, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
            %72 = cute.elem_less(%71, %55) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
            %73 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"?">
            cute.memref.store(%62, %73, %72) : (!cute.memref<i1, rmem, align<8>, "((1,8)):((0,1))">, !cute.coord<"?">, i1) -> ()
          }
          %63 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,?,0)">
          %64 = cute.slice(%sCv, %63) : !sCv2, !cute.coord<"(_,?,0)">
          %65 = cute.make_fragment_like(%64) : !cute.memref<f16, smem, align<16>, S<3,4,3>, "((1,8)):((0,1))"> -> !cute.memref<f16, rmem, align<16>, "((1,8)):((0,1))">
          %66 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,?,0)">
          %67 = cute.slice(%sCv, %66) : !sCv2, !cute.coord<"(_,?,0)">
          cute.copy(%50, %67, %65) : (!storeC_16, !cute.memref<f16, smem, align<16>, S<3,4,3>, "((1,8)):((0,1))">, !cute.memref<f16, rmem, align<16>, "((1,8)):((0,1))">) -> ()
          %68 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,?,0)">
          %69 = cute.slice(%tC, %68) : !tC2, !cute.coord<"(_,?,0)">
          cute.copy(%50, %65, %69, pred = %62) : (!storeC_16, !cute.memref<f16, rmem, align<16>, "((1,8)):((0,1))">, !cute.memref<f16, gmem, align<16>, "((1,8)):((0,1))">, !cute.memref<i1, rmem, align<8>, "((1,8)):((0,1))">) -> ()
        }
      }
      gpu.return
    }
  }
  func.func @launch(%A: !mat, %B: !mat, %C: !mat) {
    %c1_i32 = arith.constant 1 : i32
    %c128_i32 = arith.constant 128 : i32
    %c127_i32 = arith.constant 127 : i32
    %0 = cute.get_layout(%A) : !mat
    %1 = cute.size<[0]> (%0) : (!cute.layout<"(?,?):(?,1)">) -> !cute.int_tuple<"?">
    %M = cute.get_scalars (%1) : !cute.int_tuple<"?">
    %2 = cute.size<[1]> (%0) : (!cute.layout<"(?,?):(?,1)">) -> !cute.int_tuple<"?">
    %K = cute.get_scalars (%2) : !cute.int_tuple<"?">
    %3 = cute.get_layout(%B) : !mat
    %4 = cute.size<[0]> (%3) : (!cute.layout<"(?,?):(?,1)">) -> !cute.int_tuple<"?">
    %N = cute.get_scalars (%4) : !cute.int_tuple<"?">
    %5 = cute.size<[1]> (%3) : (!cute.layout<"(?,?):(?,1)">) -> !cute.int_tuple<"?">
    %KB = cute.get_scalars (%5) : !cute.int_tuple<"?">
    %6 = cute.get_layout(%C) : !mat
    %7 = cute.size<[0]> (%6) : (!cute.layout<"(?,?):(?,1)">) -> !cute.int_tuple<"?">
    %MC = cute.get_scalars (%7) : !cute.int_tuple<"?">
    %8 = cute.size<[1]> (%6) : (!cute.layout<"(?,?):(?,1)">) -> !cute.int_tuple<"?">
    %NC = cute.get_scalars (%8) : !cute.int_tuple<"?">
    %9 = arith.cmpi eq, %K, %KB : i32
    %10 = arith.cmpi eq, %M, %MC : i32
    %11 = arith.cmpi eq, %N, %NC : i32
    cf.assert %9, "A and B must have the same K"
    cf.assert %10, "A and C must have the same M"
    cf.assert %11, "B and C must have the same N"
    %12 = arith.addi %M, %c127_i32 : i32
    %13 = arith.divui %12, %c128_i32 : i32
    %14 = arith.addi %N, %c127_i32 : i32
    %15 = arith.divui %14, %c128_i32 : i32
    %16 = arith.muli %13, %15 : i32
    gpu.launch_func @kernels::@gemm blocks in (%16, %c1_i32, %c1_i32) threads in (%c128_i32, %c1_i32, %c1_i32) : i32 args(%A : !mat, %B : !mat, %C : !mat) {cute.variants = [@kernels::@gemm_16]}
    return
  }
}
