// C = A * B in f32 for row-major matrices of any size:
// 8 warps have tiles of 32 x 64, their lanes 8 x 8 elements; three stages in flight by cp.async.
// @sgemm_v is for matrices whose rows are whole aligned vectors of 16 bytes; the launch takes it if it can.

!mat = !cute.memref<f32, gmem, "(?,?):(?,1)">
!vec = !cute.memref<f32, gmem, align<16>, "(?,?{div=4}):(?{div=4},1)">
!loadA = !cute.tiled_copy<!cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>, layout_copy_tv = <"((16,16),1):((16,1),16)">, tiler_mn = <"[16:1;16:1]">>
!ids = !cute.coord_tensor<"(0,0)", "(?,?):(1@0,1@1)">
!mBt = !cute.memref<f32, gmem, "(?,?):(1,?)">
!loadB = !cute.tiled_copy<!cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>, layout_copy_tv = <"((128,2),1):((1,128),1)">, tiler_mn = <"[128:1;2:1]">>
!mma = !cute.tiled_mma<!cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f32)>, atom_layout_MNK = <"((4,4),(8,2),1):((8,64),(1,32),0)">, permutation_MNK = <"[(4,4,8):(1,32,4);(8,2,4,2):(4,64,1,32);_]">>
!gC = !cute.memref<f32, gmem, "(128,128):(?,1)">
!tC = !cute.memref<f32, gmem, "(1,8,(4,2)):(0,?{div=4},(1,32))">
!acc = !cute.memref<f32, rmem, align<32>, "(1,8,(4,2)):(0,1,(8,32))">
!sA = !cute.memref<f32, smem, align<512>, S<2,4,3>, "(128,16,3):(16,1,2048)">
!sB = !cute.memref<f32, smem, align<16>, "(128,16,3):(1,128,2048)">
!tA = !cute.memref<f32, gmem, "((1,1),8,1):((0,0),?{div=16},0)">
!xA = !cute.coord_tensor<"(?,?)", "((1,1),8,1):((0,0),16@0,0)">
!pA = !cute.memref<i1, rmem, "(1,8,1):(0,1,8)">
!dA = !cute.memref<f32, smem, S<2,4,3>, "((1,1),8,1):((0,0),256,0)">
!tB = !cute.memref<f32, gmem, "((1,1),1,8):((0,0),0,?{div=2})">
!xB = !cute.coord_tensor<"(?,?)", "((1,1),1,8):((0,0),0,2@1)">
!pB = !cute.memref<i1, rmem, "(1,1,8):(0,1,1)">
!dB = !cute.memref<f32, smem, "((1,1),1,8):((0,0),0,256)">
!sAk = !cute.memref<f32, smem, align<8>, S<2,4,3>, "(1,8,2):(0,64,1)">
!rA = !cute.memref<f32, rmem, align<32>, "(1,8,2):(0,1,8)">
!sBk = !cute.memref<f32, smem, align<16>, "(1,(4,2),1):(0,(1,32),0)">
!rB = !cute.memref<f32, rmem, align<32>, "(1,(4,2),1):(0,(1,4),0)">
!idsC = !cute.coord_tensor<"(?{div=128},?{div=128})", "(128,128):(1@0,1@1)">
!xC = !cute.coord_tensor<"(?,?{div=4})", "(1,8,(4,2)):(0,4@0,(1@1,32@1))">
!pC = !cute.memref<i1, rmem, align<32>, "(1,8,(4,2)):(0,8,(1,4))">
!loadA_v = !cute.tiled_copy<!cute_nvgpu.atom.simt_async_copy<f32, cache = global, 128 b>, layout_copy_tv = <"((4,64),4):((256,1),64)">, tiler_mn = <"[64:1;16:1]">>
!ids2 = !cute.coord_tensor<"(0,0)", "(?,?{div=4}):(1@0,1@1)">
!mBt2 = !cute.memref<f32, gmem, align<16>, "(?{div=4},?):(1,?{div=4})">
!loadB_v = !cute.tiled_copy<!cute_nvgpu.atom.simt_async_copy<f32, cache = global, 128 b>, layout_copy_tv = <"((32,8),4):((4,128),1)">, tiler_mn = <"[128:1;8:1]">>
!ids3 = !cute.coord_tensor<"(0,0)", "(?{div=4},?):(1@0,1@1)">
!gC2 = !cute.memref<f32, gmem, align<16>, "(128,128):(?{div=4},1)">
!tC2 = !cute.memref<f32, gmem, align<16>, "(1,8,(4,2)):(0,?{div=16},(1,32))">
!tA2 = !cute.memref<f32, gmem, align<16>, "((4,1),2,1):((1,0),?{div=256},0)">
!xA2 = !cute.coord_tensor<"(?,?{div=4})", "((4,1),2,1):((1@1,0),64@0,0)">
!pA2 = !cute.memref<i1, rmem, "(1,2,1):(0,1,2)">
!dA2 = !cute.memref<f32, smem, align<16>, S<2,4,3>, "((4,1),2,1):((1,0),1024,0)">
!tB2 = !cute.memref<f32, gmem, align<16>, "((4,1),1,2):((1,0),0,?{div=32})">
!xB2 = !cute.coord_tensor<"(?{div=4},?)", "((4,1),1,2):((1@0,0),0,8@1)">
!pB2 = !cute.memref<i1, rmem, "(1,1,2):(0,1,1)">
!dB2 = !cute.memref<f32, smem, align<16>, "((4,1),1,2):((1,0),0,1024)">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @sgemm(%mA: !mat, %mB: !mat, %mC: !mat) kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 2 : i32} {
      %c64_i32 = arith.constant 64 : i32
      %c3_i32 = arith.constant 3 : i32
      %c2_i32 = arith.constant 2 : i32
      %c1_i32 = arith.constant 1 : i32
      %c8_i32 = arith.constant 8 : i32
      %c0_i32 = arith.constant 0 : i32
      %c16_i32 = arith.constant 16 : i32
      %c128_i32 = arith.constant 128 : i32
      %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %0 = cute.get_layout(%mC) : !mat
      %1 = cute.get_shape(%0) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
      %2:2 = cute.get_scalars (%1) : !cute.shape<"(?,?)">
      %across = arith.ceildivsi %2#1, %c128_i32 : i32
      %bid = nvvm.read.ptx.sreg.ctaid.x : i32
      %row = arith.divsi %bid, %across : i32
      %column = arith.remsi %bid, %across : i32
      // How tiles of A (m, k) and of B, seen as (n, k), come to shared memory.
      %3 = cute.atom() : !cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>
      %4 = cute.atom() : !cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>
      %loadA = cute.make_tiled_copy(%4) : !loadA
      %5 = cute.get_layout(%mA) : !mat
      %6 = cute.get_shape(%5) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
      %7 = cute.make_identity_layout(%6) : !cute.shape<"(?,?)"> -> !cute.layout<"(?,?):(1@0,1@1)">
      %8 = cute.static : !cute.int_tuple<"(0,0)">
      %idsA = cute.make_view(%8, %7) : !ids
      %9 = cute.get_layout(%mA) : !mat
      %shapeA = cute.get_shape(%9) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
      %mBt = cute.select<[1, 0]> (%mB) : !mat -> !mBt
      %10 = cute.atom() : !cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>
      %11 = cute.atom() : !cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>
      %loadB = cute.make_tiled_copy(%11) : !loadB
      %12 = cute.get_layout(%mBt) : !mBt
      %13 = cute.get_shape(%12) : !cute.layout<"(?,?):(1,?)"> -> !cute.shape<"(?,?)">
      %14 = cute.make_identity_layout(%13) : !cute.shape<"(?,?)"> -> !cute.layout<"(?,?):(1@0,1@1)">
      %15 = cute.static : !cute.int_tuple<"(0,0)">
      %idsB = cute.make_view(%15, %14) : !ids
      %16 = cute.get_layout(%mBt) : !mBt
      %shapeB = cute.get_shape(%16) : !cute.layout<"(?,?):(1,?)"> -> !cute.shape<"(?,?)">
      // How the threads multiply; this thread's elements of C.
      %17 = cute.atom() : !cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f32)>
      %mma = cute.make_tiled_mma(%17) : !mma
      %18 = cute.static : !cute.tile<"[128:1;128:1]">
      %19 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %gC = cute.local_tile(%mC, %18, %19) : (!mat, !cute.tile<"[128:1;128:1]">, !cute.coord<"(?,?)">) -> !gC
      %20 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %tC = cute.tiled.mma.partition_C(%mma, %gC, %20) : (!mma, !gC, !cute.coord<"?">) -> !tC
      %acc = cute.tiled.mma.make_fragment_C(%mma, %tC) : (!mma, !tC) -> !acc
      cute.clear(%acc) : (!acc) -> ()
      %sA = cute.memref.alloc_smem() : !sA
      %sB = cute.memref.alloc_smem() : !sB
      %21 = cute.get_layout(%mA) : !mat
      %22 = cute.get_shape(%21) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
      %23:2 = cute.get_scalars (%22) : !cute.shape<"(?,?)">
      %tiles = arith.ceildivsi %23#1, %c16_i32 : i32
      // The first 2 tiles; a tile beyond the last one is zeros.
      %24 = cute.static : !cute.tile<"[128:1;16:1]">
      %25 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,0)">
      %26 = cute.local_tile(%mA, %24, %25) : (!mat, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,0)">) -> !cute.memref<f32, gmem, "(128,16):(?,1)">
      %27 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %tA = cute.tiled.copy.partition_S(%loadA, %26, %27) : (!loadA, !cute.memref<f32, gmem, "(128,16):(?,1)">, !cute.coord<"?">) -> !tA
      %28 = cute.static : !cute.tile<"[128:1;16:1]">
      %29 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,0)">
      %30 = cute.local_tile(%idsA, %28, %29) : (!ids, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,0)">) -> !cute.coord_tensor<"(?{div=128},0)", "(128,16):(1@0,1@1)">
      %31 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %xA = cute.tiled.copy.partition_S(%loadA, %30, %31) : (!loadA, !cute.coord_tensor<"(?{div=128},0)", "(128,16):(1@0,1@1)">, !cute.coord<"?">) -> !xA
      %pA = cute.memref.alloca() : !pA
      %32 = cute.static : !cute.coord<"(0,_,_)">
      %33 = cute.slice(%xA, %32) : !xA, !cute.coord<"(0,_,_)">
      %34 = cute.static : !cute.coord<"(0,_,_)">
      %35 = cute.slice(%pA, %34) : !pA, !cute.coord<"(0,_,_)">
      scf.for %arg0 = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
        %93 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
        %94 = cute.memref.load(%33, %93) : (!cute.coord_tensor<"(?,?)", "(8,1):(16@0,0)">, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
        %95 = cute.elem_less(%94, %shapeA) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
        %96 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
        cute.memref.store(%35, %96, %95) : (!cute.memref<i1, rmem, "(8,1):(1,8)">, !cute.coord<"?">, i1) -> ()
      }
      %36 = cute.static : !cute.coord<"(_,_,0)">
      %37 = cute.slice(%sA, %36) : !sA, !cute.coord<"(_,_,0)">
      %38 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %dA = cute.tiled.copy.partition_D(%loadA, %37, %38) : (!loadA, !cute.memref<f32, smem, align<512>, S<2,4,3>, "(128,16):(16,1)">, !cute.coord<"?">) -> !dA
      cute.copy(%3, %tA, %dA, pred = %pA) : (!cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>, !tA, !dA, !pA) -> ()
      %39 = cute.static : !cute.tile<"[128:1;16:1]">
      %40 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,0)">
      %41 = cute.local_tile(%mBt, %39, %40) : (!mBt, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,0)">) -> !cute.memref<f32, gmem, "(128,16):(1,?)">
      %42 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %tB = cute.tiled.copy.partition_S(%loadB, %41, %42) : (!loadB, !cute.memref<f32, gmem, "(128,16):(1,?)">, !cute.coord<"?">) -> !tB
      %43 = cute.static : !cute.tile<"[128:1;16:1]">
      %44 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,0)">
      %45 = cute.local_tile(%idsB, %43, %44) : (!ids, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,0)">) -> !cute.coord_tensor<"(?{div=128},0)", "(128,16):(1@0,1@1)">
      %46 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %xB = cute.tiled.copy.partition_S(%loadB, %45, %46) : (!loadB, !cute.coord_tensor<"(?{div=128},0)", "(128,16):(1@0,1@1)">, !cute.coord<"?">) -> !xB
      %pB = cute.memref.alloca() : !pB
      %47 = cute.static : !cute.coord<"(0,_,_)">
      %48 = cute.slice(%xB, %47) : !xB, !cute.coord<"(0,_,_)">
      %49 = cute.static : !cute.coord<"(0,_,_)">
      %50 = cute.slice(%pB, %49) : !pB, !cute.coord<"(0,_,_)">
      scf.for %arg0 = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
        %93 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
        %94 = cute.memref.load(%48, %93) : (!cute.coord_tensor<"(?,?)", "(1,8):(0,2@1)">, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
        %95 = cute.elem_less(%94, %shapeB) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
        %96 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
        cute.memref.store(%50, %96, %95) : (!cute.memref<i1, rmem, "(1,8):(1,1)">, !cute.coord<"?">, i1) -> ()
      }
      %51 = cute.static : !cute.coord<"(_,_,0)">
      %52 = cute.slice(%sB, %51) : !sB, !cute.coord<"(_,_,0)">
      %53 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %dB = cute.tiled.copy.partition_D(%loadB, %52, %53) : (!loadB, !cute.memref<f32, smem, align<16>, "(128,16):(1,128)">, !cute.coord<"?">) -> !dB
      cute.copy(%10, %tB, %dB, pred = %pB) : (!cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>, !tB, !dB, !pB) -> ()
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      %54 = cute.static : !cute.tile<"[128:1;16:1]">
      %55 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,1)">
      %56 = cute.local_tile(%mA, %54, %55) : (!mat, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,1)">) -> !cute.memref<f32, gmem, "(128,16):(?,1)">
      %57 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %tA_0 = cute.tiled.copy.partition_S(%loadA, %56, %57) : (!loadA, !cute.memref<f32, gmem, "(128,16):(?,1)">, !cute.coord<"?">) -> !tA
      %58 = cute.static : !cute.tile<"[128:1;16:1]">
      %59 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,1)">
      %60 = cute.local_tile(%idsA, %58, %59) : (!ids, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,1)">) -> !cute.coord_tensor<"(?{div=128},16)", "(128,16):(1@0,1@1)">
      %61 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %xA_1 = cute.tiled.copy.partition_S(%loadA, %60, %61) : (!loadA, !cute.coord_tensor<"(?{div=128},16)", "(128,16):(1@0,1@1)">, !cute.coord<"?">) -> !xA
      %pA_2 = cute.memref.alloca() : !pA
      %62 = cute.static : !cute.coord<"(0,_,_)">
      %63 = cute.slice(%xA_1, %62) : !xA, !cute.coord<"(0,_,_)">
      %64 = cute.static : !cute.coord<"(0,_,_)">
      %65 = cute.slice(%pA_2, %64) : !pA, !cute.coord<"(0,_,_)">
      scf.for %arg0 = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
        %93 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
        %94 = cute.memref.load(%63, %93) : (!cute.coord_tensor<"(?,?)", "(8,1):(16@0,0)">, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
        %95 = cute.elem_less(%94, %shapeA) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
        %96 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
        cute.memref.store(%65, %96, %95) : (!cute.memref<i1, rmem, "(8,1):(1,8)">, !cute.coord<"?">, i1) -> ()
      }
      %66 = cute.static : !cute.coord<"(_,_,1)">
      %67 = cute.slice(%sA, %66) : !sA, !cute.coord<"(_,_,1)">
      %68 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %dA_3 = cute.tiled.copy.partition_D(%loadA, %67, %68) : (!loadA, !cute.memref<f32, smem, align<512>, S<2,4,3>, "(128,16):(16,1)">, !cute.coord<"?">) -> !dA
      cute.copy(%3, %tA_0, %dA_3, pred = %pA_2) : (!cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>, !tA, !dA, !pA) -> ()
      %69 = cute.static : !cute.tile<"[128:1;16:1]">
      %70 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,1)">
      %71 = cute.local_tile(%mBt, %69, %70) : (!mBt, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,1)">) -> !cute.memref<f32, gmem, "(128,16):(1,?)">
      %72 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %tB_4 = cute.tiled.copy.partition_S(%loadB, %71, %72) : (!loadB, !cute.memref<f32, gmem, "(128,16):(1,?)">, !cute.coord<"?">) -> !tB
      %73 = cute.static : !cute.tile<"[128:1;16:1]">
      %74 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,1)">
      %75 = cute.local_tile(%idsB, %73, %74) : (!ids, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,1)">) -> !cute.coord_tensor<"(?{div=128},16)", "(128,16):(1@0,1@1)">
      %76 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %xB_5 = cute.tiled.copy.partition_S(%loadB, %75, %76) : (!loadB, !cute.coord_tensor<"(?{div=128},16)", "(128,16):(1@0,1@1)">, !cute.coord<"?">) -> !xB
      %pB_6 = cute.memref.alloca() : !pB
      %77 = cute.static : !cute.coord<"(0,_,_)">
      %78 = cute.slice(%xB_5, %77) : !xB, !cute.coord<"(0,_,_)">
      %79 = cute.static : !cute.coord<"(0,_,_)">
      %80 = cute.slice(%pB_6, %79) : !pB, !cute.coord<"(0,_,_)">
      scf.for %arg0 = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
        %93 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
        %94 = cute.memref.load(%78, %93) : (!cute.coord_tensor<"(?,?)", "(1,8):(0,2@1)">, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
        %95 = cute.elem_less(%94, %shapeB) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
        %96 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
        cute.memref.store(%80, %96, %95) : (!cute.memref<i1, rmem, "(1,8):(1,1)">, !cute.coord<"?">, i1) -> ()
      }
      %81 = cute.static : !cute.coord<"(_,_,1)">
      %82 = cute.slice(%sB, %81) : !sB, !cute.coord<"(_,_,1)">
      %83 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %dB_7 = cute.tiled.copy.partition_D(%loadB, %82, %83) : (!loadB, !cute.memref<f32, smem, align<16>, "(128,16):(1,128)">, !cute.coord<"?">) -> !dB
      cute.copy(%10, %tB_4, %dB_7, pred = %pB_6) : (!cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>, !tB, !dB, !pB) -> ()
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      scf.for %arg0 = %c0_i32 to %tiles step %c1_i32 : i32 {
        // Wait for this tile, and for all to be done with the last one; ask for another in its place.
        cute_nvgpu.arch.cp_async_wait_group() {n = 1 : i32} : () -> ()
        cute_nvgpu.arch.barrier() : () -> ()
        %ahead = arith.addi %arg0, %c2_i32 : i32
        %93 = arith.remui %ahead, %c3_i32 : i32
        %94 = cute.static : !cute.tile<"[128:1;16:1]">
        %95 = cute.make_coord(%row, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %96 = cute.local_tile(%mA, %94, %95) : (!mat, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,?)">) -> !cute.memref<f32, gmem, "(128,16):(?,1)">
        %97 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %tA_8 = cute.tiled.copy.partition_S(%loadA, %96, %97) : (!loadA, !cute.memref<f32, gmem, "(128,16):(?,1)">, !cute.coord<"?">) -> !tA
        %98 = cute.static : !cute.tile<"[128:1;16:1]">
        %99 = cute.make_coord(%row, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %100 = cute.local_tile(%idsA, %98, %99) : (!ids, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,?)">) -> !cute.coord_tensor<"(?{div=128},?{div=16})", "(128,16):(1@0,1@1)">
        %101 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %xA_9 = cute.tiled.copy.partition_S(%loadA, %100, %101) : (!loadA, !cute.coord_tensor<"(?{div=128},?{div=16})", "(128,16):(1@0,1@1)">, !cute.coord<"?">) -> !xA
        %pA_10 = cute.memref.alloca() : !pA
        %102 = cute.static : !cute.coord<"(0,_,_)">
        %103 = cute.slice(%xA_9, %102) : !xA, !cute.coord<"(0,_,_)">
        %104 = cute.static : !cute.coord<"(0,_,_)">
        %105 = cute.slice(%pA_10, %104) : !pA, !cute.coord<"(0,_,_)">
        scf.for %arg1 = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %128 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"?">
          %129 = cute.memref.load(%103, %128) : (!cute.coord_tensor<"(?,?)", "(8,1):(16@0,0)">, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %130 = cute.elem_less(%129, %shapeA) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
          %131 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"?">
          cute.memref.store(%105, %131, %130) : (!cute.memref<i1, rmem, "(8,1):(1,8)">, !cute.coord<"?">, i1) -> ()
        }
        %106 = cute.make_coord(%93) : (i32) -> !cute.coord<"(_,_,?)">
        %107 = cute.slice(%sA, %106) : !sA, !cute.coord<"(_,_,?)">
        %108 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %dA_11 = cute.tiled.copy.partition_D(%loadA, %107, %108) : (!loadA, !cute.memref<f32, smem, align<512>, S<2,4,3>, "(128,16):(16,1)">, !cute.coord<"?">) -> !dA
        cute.copy(%3, %tA_8, %dA_11, pred = %pA_10) : (!cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>, !tA, !dA, !pA) -> ()
        %109 = cute.static : !cute.tile<"[128:1;16:1]">
        %110 = cute.make_coord(%column, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %111 = cute.local_tile(%mBt, %109, %110) : (!mBt, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,?)">) -> !cute.memref<f32, gmem, "(128,16):(1,?)">
        %112 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %tB_12 = cute.tiled.copy.partition_S(%loadB, %111, %112) : (!loadB, !cute.memref<f32, gmem, "(128,16):(1,?)">, !cute.coord<"?">) -> !tB
        %113 = cute.static : !cute.tile<"[128:1;16:1]">
        %114 = cute.make_coord(%column, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %115 = cute.local_tile(%idsB, %113, %114) : (!ids, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,?)">) -> !cute.coord_tensor<"(?{div=128},?{div=16})", "(128,16):(1@0,1@1)">
        %116 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %xB_13 = cute.tiled.copy.partition_S(%loadB, %115, %116) : (!loadB, !cute.coord_tensor<"(?{div=128},?{div=16})", "(128,16):(1@0,1@1)">, !cute.coord<"?">) -> !xB
        %pB_14 = cute.memref.alloca() : !pB
        %117 = cute.static : !cute.coord<"(0,_,_)">
        %118 = cute.slice(%xB_13, %117) : !xB, !cute.coord<"(0,_,_)">
        %119 = cute.static : !cute.coord<"(0,_,_)">
        %120 = cute.slice(%pB_14, %119) : !pB, !cute.coord<"(0,_,_)">
        scf.for %arg1 = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %128 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"?">
          %129 = cute.memref.load(%118, %128) : (!cute.coord_tensor<"(?,?)", "(1,8):(0,2@1)">, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %130 = cute.elem_less(%129, %shapeB) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
          %131 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"?">
          cute.memref.store(%120, %131, %130) : (!cute.memref<i1, rmem, "(1,8):(1,1)">, !cute.coord<"?">, i1) -> ()
        }
        %121 = cute.make_coord(%93) : (i32) -> !cute.coord<"(_,_,?)">
        %122 = cute.slice(%sB, %121) : !sB, !cute.coord<"(_,_,?)">
        %123 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %dB_15 = cute.tiled.copy.partition_D(%loadB, %122, %123) : (!loadB, !cute.memref<f32, smem, align<16>, "(128,16):(1,128)">, !cute.coord<"?">) -> !dB
        cute.copy(%10, %tB_12, %dB_15, pred = %pB_14) : (!cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>, !tB, !dB, !pB) -> ()
        cute_nvgpu.arch.cp_async_commit_group() : () -> ()
        // Multiply, two columns at a time.
        %stage = arith.remui %arg0, %c3_i32 : i32
        %124 = cute.make_coord(%stage) : (i32) -> !cute.coord<"(_,_,?)">
        %125 = cute.slice(%sA, %124) : !sA, !cute.coord<"(_,_,?)">
        %126 = cute.make_coord(%stage) : (i32) -> !cute.coord<"(_,_,?)">
        %127 = cute.slice(%sB, %126) : !sB, !cute.coord<"(_,_,?)">
        scf.for %arg1 = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %128 = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
          %129 = cute.static : !cute.tile<"[128:1;2:1]">
          %130 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(0,?)">
          %131 = cute.local_tile(%125, %129, %130) : (!cute.memref<f32, smem, align<512>, S<2,4,3>, "(128,16):(16,1)">, !cute.tile<"[128:1;2:1]">, !cute.coord<"(0,?)">) -> !cute.memref<f32, smem, align<8>, S<2,4,3>, "(128,2):(16,1)">
          %132 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
          %sAk = cute.tiled.mma.partition_A(%mma, %131, %132) : (!mma, !cute.memref<f32, smem, align<8>, S<2,4,3>, "(128,2):(16,1)">, !cute.coord<"?">) -> !sAk
          %rA = cute.tiled.mma.make_fragment_A(%mma, %sAk) : (!mma, !sAk) -> !rA
          cute.copy(%128, %sAk, %rA) : (!cute_nvgpu.atom.universal_copy<f32>, !sAk, !rA) -> ()
          %133 = cute.static : !cute.tile<"[128:1;2:1]">
          %134 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(0,?)">
          %135 = cute.local_tile(%127, %133, %134) : (!cute.memref<f32, smem, align<16>, "(128,16):(1,128)">, !cute.tile<"[128:1;2:1]">, !cute.coord<"(0,?)">) -> !cute.memref<f32, smem, align<16>, "(128,2):(1,128)">
          %136 = cute.static : !cute.tile<"[128:1;1:1]">
          %137 = cute.static : !cute.coord<"(0,0)">
          %138 = cute.local_tile(%135, %136, %137) : (!cute.memref<f32, smem, align<16>, "(128,2):(1,128)">, !cute.tile<"[128:1;1:1]">, !cute.coord<"(0,0)">) -> !cute.memref<f32, smem, align<16>, "(128,1):(1,128)">
          %139 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
          %sBk = cute.tiled.mma.partition_B(%mma, %138, %139) : (!mma, !cute.memref<f32, smem, align<16>, "(128,1):(1,128)">, !cute.coord<"?">) -> !sBk
          %rB = cute.tiled.mma.make_fragment_B(%mma, %sBk) : (!mma, !sBk) -> !rB
          cute.copy(%128, %sBk, %rB) : (!cute_nvgpu.atom.universal_copy<f32>, !sBk, !rB) -> ()
          %140 = cute.static : !cute.coord<"(_,_,0)">
          %141 = cute.slice(%rA, %140) : !rA, !cute.coord<"(_,_,0)">
          %142 = cute.static : !cute.coord<"(_,_,0)">
          %143 = cute.slice(%rB, %142) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%mma, %acc, %141, %143, %acc) : (!mma, !acc, !cute.memref<f32, rmem, align<32>, "(1,8):(0,1)">, !cute.memref<f32, rmem, align<32>, "(1,(4,2)):(0,(1,4))">, !acc) -> ()
          %144 = cute.static : !cute.tile<"[128:1;1:1]">
          %145 = cute.static : !cute.coord<"(0,1)">
          %146 = cute.local_tile(%135, %144, %145) : (!cute.memref<f32, smem, align<16>, "(128,2):(1,128)">, !cute.tile<"[128:1;1:1]">, !cute.coord<"(0,1)">) -> !cute.memref<f32, smem, align<16>, "(128,1):(1,128)">
          %147 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
          %sBk_16 = cute.tiled.mma.partition_B(%mma, %146, %147) : (!mma, !cute.memref<f32, smem, align<16>, "(128,1):(1,128)">, !cute.coord<"?">) -> !sBk
          %rB_17 = cute.tiled.mma.make_fragment_B(%mma, %sBk_16) : (!mma, !sBk) -> !rB
          cute.copy(%128, %sBk_16, %rB_17) : (!cute_nvgpu.atom.universal_copy<f32>, !sBk, !rB) -> ()
          %148 = cute.static : !cute.coord<"(_,_,1)">
          %149 = cute.slice(%rA, %148) : !rA, !cute.coord<"(_,_,1)">
          %150 = cute.static : !cute.coord<"(_,_,0)">
          %151 = cute.slice(%rB_17, %150) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%mma, %acc, %149, %151, %acc) : (!mma, !acc, !cute.memref<f32, rmem, align<32>, "(1,8):(0,1)">, !cute.memref<f32, rmem, align<32>, "(1,(4,2)):(0,(1,4))">, !acc) -> ()
        }
      }
      cute_nvgpu.arch.cp_async_wait_group() {n = 0 : i32} : () -> ()
      // Write C; at an edge, the elements that lie in it.
      %84 = cute.get_layout(%mC) : !mat
      %shapeC = cute.get_shape(%84) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
      %85 = cute.get_layout(%mC) : !mat
      %86 = cute.get_shape(%85) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
      %87 = cute.make_identity_layout(%86) : !cute.shape<"(?,?)"> -> !cute.layout<"(?,?):(1@0,1@1)">
      %88 = cute.static : !cute.int_tuple<"(0,0)">
      %mIds = cute.make_view(%88, %87) : !ids
      %89 = cute.static : !cute.tile<"[128:1;128:1]">
      %90 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %idsC = cute.local_tile(%mIds, %89, %90) : (!ids, !cute.tile<"[128:1;128:1]">, !cute.coord<"(?,?)">) -> !idsC
      %91 = cute.static : !cute.coord<"16383">
      %92 = cute.memref.load(%idsC, %91) : (!idsC, !cute.coord<"16383">) -> !cute.int_tuple<"(?,?)">
      %whole = cute.elem_less(%92, %shapeC) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
      %store = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
      scf.if %whole {
        cute.copy(%store, %acc, %tC) : (!cute_nvgpu.atom.universal_copy<f32>, !acc, !tC) -> ()
      } else {
        %93 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %xC = cute.tiled.mma.partition_C(%mma, %idsC, %93) : (!mma, !idsC, !cute.coord<"?">) -> !xC
        %pC = cute.make_fragment_like(%xC) [i1] : !xC -> !pC
        scf.for %arg0 = %c0_i32 to %c64_i32 step %c1_i32 : i32 {
          %94 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
          %95 = cute.memref.load(%xC, %94) : (!xC, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %96 = cute.elem_less(%95, %shapeC) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
          %97 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
          cute.memref.store(%pC, %97, %96) : (!pC, !cute.coord<"?">, i1) -> ()
        }
        cute.copy(%store, %acc, %tC, pred = %pC) : (!cute_nvgpu.atom.universal_copy<f32>, !acc, !tC, !pC) -> ()
      }
      gpu.return
    }
    gpu.func @sgemm_v(%mA: !vec, %mB: !vec, %mC: !vec) kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 2 : i32} {
      %c64_i32 = arith.constant 64 : i32
      %c8_i32 = arith.constant 8 : i32
      %c3_i32 = arith.constant 3 : i32
      %c1_i32 = arith.constant 1 : i32
      %c2_i32 = arith.constant 2 : i32
      %c0_i32 = arith.constant 0 : i32
      %c16_i32 = arith.constant 16 : i32
      %c128_i32 = arith.constant 128 : i32
      %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %0 = cute.get_layout(%mC) : !vec
      %1 = cute.get_shape(%0) : !cute.layout<"(?,?{div=4}):(?{div=4},1)"> -> !cute.shape<"(?,?{div=4})">
      %2:2 = cute.get_scalars (%1) : !cute.shape<"(?,?{div=4})">
      %across = arith.ceildivsi %2#1, %c128_i32 : i32
      %bid = nvvm.read.ptx.sreg.ctaid.x : i32
      %row = arith.divsi %bid, %across : i32
      %column = arith.remsi %bid, %across : i32
      // How tiles of A (m, k) and of B, seen as (n, k), come to shared memory.
      %3 = cute.atom() : !cute_nvgpu.atom.simt_async_copy<f32, cache = global, 128 b>
      %4 = cute.atom() : !cute_nvgpu.atom.simt_async_copy<f32, cache = global, 128 b>
      %loadA = cute.make_tiled_copy(%4) : !loadA_v
      %5 = cute.get_layout(%mA) : !vec
      %6 = cute.get_shape(%5) : !cute.layout<"(?,?{div=4}):(?{div=4},1)"> -> !cute.shape<"(?,?{div=4})">
      %7 = cute.make_identity_layout(%6) : !cute.shape<"(?,?{div=4})"> -> !cute.layout<"(?,?{div=4}):(1@0,1@1)">
      %8 = cute.static : !cute.int_tuple<"(0,0)">
      %idsA = cute.make_view(%8, %7) : !ids2
      %9 = cute.get_layout(%mA) : !vec
      %shapeA = cute.get_shape(%9) : !cute.layout<"(?,?{div=4}):(?{div=4},1)"> -> !cute.shape<"(?,?{div=4})">
      %mBt = cute.select<[1, 0]> (%mB) : !vec -> !mBt2
      %10 = cute.atom() : !cute_nvgpu.atom.simt_async_copy<f32, cache = global, 128 b>
      %11 = cute.atom() : !cute_nvgpu.atom.simt_async_copy<f32, cache = global, 128 b>
      %loadB = cute.make_tiled_copy(%11) : !loadB_v
      %12 = cute.get_layout(%mBt) : !mBt2
      %13 = cute.get_shape(%12) : !cute.layout<"(?{div=4},?):(1,?{div=4})"> -> !cute.shape<"(?{div=4},?)">
      %14 = cute.make_identity_layout(%13) : !cute.shape<"(?{div=4},?)"> -> !cute.layout<"(?{div=4},?):(1@0,1@1)">
      %15 = cute.static : !cute.int_tuple<"(0,0)">
      %idsB = cute.make_view(%15, %14) : !ids3
      %16 = cute.get_layout(%mBt) : !mBt2
      %shapeB = cute.get_shape(%16) : !cute.layout<"(?{div=4},?):(1,?{div=4})"> -> !cute.shape<"(?{div=4},?)">
      // How the threads multiply; this thread's elements of C.
      %17 = cute.atom() : !cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f32)>
      %mma = cute.make_tiled_mma(%17) : !mma
      %18 = cute.static : !cute.tile<"[128:1;128:1]">
      %19 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %gC = cute.local_tile(%mC, %18, %19) : (!vec, !cute.tile<"[128:1;128:1]">, !cute.coord<"(?,?)">) -> !gC2
      %20 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %tC = cute.tiled.mma.partition_C(%mma, %gC, %20) : (!mma, !gC2, !cute.coord<"?">) -> !tC2
      %acc = cute.tiled.mma.make_fragment_C(%mma, %tC) : (!mma, !tC2) -> !acc
      cute.clear(%acc) : (!acc) -> ()
      %sA = cute.memref.alloc_smem() : !sA
      %sB = cute.memref.alloc_smem() : !sB
      %21 = cute.get_layout(%mA) : !vec
      %22 = cute.get_shape(%21) : !cute.layout<"(?,?{div=4}):(?{div=4},1)"> -> !cute.shape<"(?,?{div=4})">
      %23:2 = cute.get_scalars (%22) : !cute.shape<"(?,?{div=4})">
      %tiles = arith.ceildivsi %23#1, %c16_i32 : i32
      // The first 2 tiles; a tile beyond the last one is zeros.
      %24 = cute.static : !cute.tile<"[128:1;16:1]">
      %25 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,0)">
      %26 = cute.local_tile(%mA, %24, %25) : (!vec, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,0)">) -> !cute.memref<f32, gmem, align<16>, "(128,16):(?{div=4},1)">
      %27 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %tA = cute.tiled.copy.partition_S(%loadA, %26, %27) : (!loadA_v, !cute.memref<f32, gmem, align<16>, "(128,16):(?{div=4},1)">, !cute.coord<"?">) -> !tA2
      %28 = cute.static : !cute.tile<"[128:1;16:1]">
      %29 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,0)">
      %30 = cute.local_tile(%idsA, %28, %29) : (!ids2, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,0)">) -> !cute.coord_tensor<"(?{div=128},0)", "(128,16):(1@0,1@1)">
      %31 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %xA = cute.tiled.copy.partition_S(%loadA, %30, %31) : (!loadA_v, !cute.coord_tensor<"(?{div=128},0)", "(128,16):(1@0,1@1)">, !cute.coord<"?">) -> !xA2
      %pA = cute.memref.alloca() : !pA2
      %32 = cute.static : !cute.coord<"(0,_,_)">
      %33 = cute.slice(%xA, %32) : !xA2, !cute.coord<"(0,_,_)">
      %34 = cute.static : !cute.coord<"(0,_,_)">
      %35 = cute.slice(%pA, %34) : !pA2, !cute.coord<"(0,_,_)">
      scf.for %arg0 = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
        %93 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
        %94 = cute.memref.load(%33, %93) : (!cute.coord_tensor<"(?,?{div=4})", "(2,1):(64@0,0)">, !cute.coord<"?">) -> !cute.int_tuple<"(?,?{div=4})">
        %95 = cute.elem_less(%94, %shapeA) : (!cute.int_tuple<"(?,?{div=4})">, !cute.shape<"(?,?{div=4})">) -> i1
        %96 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
        cute.memref.store(%35, %96, %95) : (!cute.memref<i1, rmem, "(2,1):(1,2)">, !cute.coord<"?">, i1) -> ()
      }
      %36 = cute.static : !cute.coord<"(_,_,0)">
      %37 = cute.slice(%sA, %36) : !sA, !cute.coord<"(_,_,0)">
      %38 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %dA = cute.tiled.copy.partition_D(%loadA, %37, %38) : (!loadA_v, !cute.memref<f32, smem, align<512>, S<2,4,3>, "(128,16):(16,1)">, !cute.coord<"?">) -> !dA2
      cute.copy(%3, %tA, %dA, pred = %pA) : (!cute_nvgpu.atom.simt_async_copy<f32, cache = global, 128 b>, !tA2, !dA2, !pA2) -> ()
      %39 = cute.static : !cute.tile<"[128:1;16:1]">
      %40 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,0)">
      %41 = cute.local_tile(%mBt, %39, %40) : (!mBt2, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,0)">) -> !cute.memref<f32, gmem, align<16>, "(128,16):(1,?{div=4})">
      %42 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %tB = cute.tiled.copy.partition_S(%loadB, %41, %42) : (!loadB_v, !cute.memref<f32, gmem, align<16>, "(128,16):(1,?{div=4})">, !cute.coord<"?">) -> !tB2
      %43 = cute.static : !cute.tile<"[128:1;16:1]">
      %44 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,0)">
      %45 = cute.local_tile(%idsB, %43, %44) : (!ids3, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,0)">) -> !cute.coord_tensor<"(?{div=128},0)", "(128,16):(1@0,1@1)">
      %46 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %xB = cute.tiled.copy.partition_S(%loadB, %45, %46) : (!loadB_v, !cute.coord_tensor<"(?{div=128},0)", "(128,16):(1@0,1@1)">, !cute.coord<"?">) -> !xB2
      %pB = cute.memref.alloca() : !pB2
      %47 = cute.static : !cute.coord<"(0,_,_)">
      %48 = cute.slice(%xB, %47) : !xB2, !cute.coord<"(0,_,_)">
      %49 = cute.static : !cute.coord<"(0,_,_)">
      %50 = cute.slice(%pB, %49) : !pB2, !cute.coord<"(0,_,_)">
      scf.for %arg0 = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
        %93 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
        %94 = cute.memref.load(%48, %93) : (!cute.coord_tensor<"(?{div=4},?)", "(1,2):(0,8@1)">, !cute.coord<"?">) -> !cute.int_tuple<"(?{div=4},?)">
        %95 = cute.elem_less(%94, %shapeB) : (!cute.int_tuple<"(?{div=4},?)">, !cute.shape<"(?{div=4},?)">) -> i1
        %96 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
        cute.memref.store(%50, %96, %95) : (!cute.memref<i1, rmem, "(1,2):(1,1)">, !cute.coord<"?">, i1) -> ()
      }
      %51 = cute.static : !cute.coord<"(_,_,0)">
      %52 = cute.slice(%sB, %51) : !sB, !cute.coord<"(_,_,0)">
      %53 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %dB = cute.tiled.copy.partition_D(%loadB, %52, %53) : (!loadB_v, !cute.memref<f32, smem, align<16>, "(128,16):(1,128)">, !cute.coord<"?">) -> !dB2
      cute.copy(%10, %tB, %dB, pred = %pB) : (!cute_nvgpu.atom.simt_async_copy<f32, cache = global, 128 b>, !tB2, !dB2, !pB2) -> ()
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      %54 = cute.static : !cute.tile<"[128:1;16:1]">
      %55 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,1)">
      %56 = cute.local_tile(%mA, %54, %55) : (!vec, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,1)">) -> !cute.memref<f32, gmem, align<16>, "(128,16):(?{div=4},1)">
      %57 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %tA_0 = cute.tiled.copy.partition_S(%loadA, %56, %57) : (!loadA_v, !cute.memref<f32, gmem, align<16>, "(128,16):(?{div=4},1)">, !cute.coord<"?">) -> !tA2
      %58 = cute.static : !cute.tile<"[128:1;16:1]">
      %59 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,1)">
      %60 = cute.local_tile(%idsA, %58, %59) : (!ids2, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,1)">) -> !cute.coord_tensor<"(?{div=128},16)", "(128,16):(1@0,1@1)">
      %61 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %xA_1 = cute.tiled.copy.partition_S(%loadA, %60, %61) : (!loadA_v, !cute.coord_tensor<"(?{div=128},16)", "(128,16):(1@0,1@1)">, !cute.coord<"?">) -> !xA2
      %pA_2 = cute.memref.alloca() : !pA2
      %62 = cute.static : !cute.coord<"(0,_,_)">
      %63 = cute.slice(%xA_1, %62) : !xA2, !cute.coord<"(0,_,_)">
      %64 = cute.static : !cute.coord<"(0,_,_)">
      %65 = cute.slice(%pA_2, %64) : !pA2, !cute.coord<"(0,_,_)">
      scf.for %arg0 = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
        %93 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
        %94 = cute.memref.load(%63, %93) : (!cute.coord_tensor<"(?,?{div=4})", "(2,1):(64@0,0)">, !cute.coord<"?">) -> !cute.int_tuple<"(?,?{div=4})">
        %95 = cute.elem_less(%94, %shapeA) : (!cute.int_tuple<"(?,?{div=4})">, !cute.shape<"(?,?{div=4})">) -> i1
        %96 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
        cute.memref.store(%65, %96, %95) : (!cute.memref<i1, rmem, "(2,1):(1,2)">, !cute.coord<"?">, i1) -> ()
      }
      %66 = cute.static : !cute.coord<"(_,_,1)">
      %67 = cute.slice(%sA, %66) : !sA, !cute.coord<"(_,_,1)">
      %68 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %dA_3 = cute.tiled.copy.partition_D(%loadA, %67, %68) : (!loadA_v, !cute.memref<f32, smem, align<512>, S<2,4,3>, "(128,16):(16,1)">, !cute.coord<"?">) -> !dA2
      cute.copy(%3, %tA_0, %dA_3, pred = %pA_2) : (!cute_nvgpu.atom.simt_async_copy<f32, cache = global, 128 b>, !tA2, !dA2, !pA2) -> ()
      %69 = cute.static : !cute.tile<"[128:1;16:1]">
      %70 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,1)">
      %71 = cute.local_tile(%mBt, %69, %70) : (!mBt2, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,1)">) -> !cute.memref<f32, gmem, align<16>, "(128,16):(1,?{div=4})">
      %72 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %tB_4 = cute.tiled.copy.partition_S(%loadB, %71, %72) : (!loadB_v, !cute.memref<f32, gmem, align<16>, "(128,16):(1,?{div=4})">, !cute.coord<"?">) -> !tB2
      %73 = cute.static : !cute.tile<"[128:1;16:1]">
      %74 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,1)">
      %75 = cute.local_tile(%idsB, %73, %74) : (!ids3, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,1)">) -> !cute.coord_tensor<"(?{div=128},16)", "(128,16):(1@0,1@1)">
      %76 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %xB_5 = cute.tiled.copy.partition_S(%loadB, %75, %76) : (!loadB_v, !cute.coord_tensor<"(?{div=128},16)", "(128,16):(1@0,1@1)">, !cute.coord<"?">) -> !xB2
      %pB_6 = cute.memref.alloca() : !pB2
      %77 = cute.static : !cute.coord<"(0,_,_)">
      %78 = cute.slice(%xB_5, %77) : !xB2, !cute.coord<"(0,_,_)">
      %79 = cute.static : !cute.coord<"(0,_,_)">
      %80 = cute.slice(%pB_6, %79) : !pB2, !cute.coord<"(0,_,_)">
      scf.for %arg0 = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
        %93 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
        %94 = cute.memref.load(%78, %93) : (!cute.coord_tensor<"(?{div=4},?)", "(1,2):(0,8@1)">, !cute.coord<"?">) -> !cute.int_tuple<"(?{div=4},?)">
        %95 = cute.elem_less(%94, %shapeB) : (!cute.int_tuple<"(?{div=4},?)">, !cute.shape<"(?{div=4},?)">) -> i1
        %96 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
        cute.memref.store(%80, %96, %95) : (!cute.memref<i1, rmem, "(1,2):(1,1)">, !cute.coord<"?">, i1) -> ()
      }
      %81 = cute.static : !cute.coord<"(_,_,1)">
      %82 = cute.slice(%sB, %81) : !sB, !cute.coord<"(_,_,1)">
      %83 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %dB_7 = cute.tiled.copy.partition_D(%loadB, %82, %83) : (!loadB_v, !cute.memref<f32, smem, align<16>, "(128,16):(1,128)">, !cute.coord<"?">) -> !dB2
      cute.copy(%10, %tB_4, %dB_7, pred = %pB_6) : (!cute_nvgpu.atom.simt_async_copy<f32, cache = global, 128 b>, !tB2, !dB2, !pB2) -> ()
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      scf.for %arg0 = %c0_i32 to %tiles step %c1_i32 : i32 {
        // Wait for this tile, and for all to be done with the last one; ask for another in its place.
        cute_nvgpu.arch.cp_async_wait_group() {n = 1 : i32} : () -> ()
        cute_nvgpu.arch.barrier() : () -> ()
        %ahead = arith.addi %arg0, %c2_i32 : i32
        %93 = arith.remui %ahead, %c3_i32 : i32
        %94 = cute.static : !cute.tile<"[128:1;16:1]">
        %95 = cute.make_coord(%row, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %96 = cute.local_tile(%mA, %94, %95) : (!vec, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,?)">) -> !cute.memref<f32, gmem, align<16>, "(128,16):(?{div=4},1)">
        %97 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %tA_8 = cute.tiled.copy.partition_S(%loadA, %96, %97) : (!loadA_v, !cute.memref<f32, gmem, align<16>, "(128,16):(?{div=4},1)">, !cute.coord<"?">) -> !tA2
        %98 = cute.static : !cute.tile<"[128:1;16:1]">
        %99 = cute.make_coord(%row, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %100 = cute.local_tile(%idsA, %98, %99) : (!ids2, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,?)">) -> !cute.coord_tensor<"(?{div=128},?{div=16})", "(128,16):(1@0,1@1)">
        %101 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %xA_9 = cute.tiled.copy.partition_S(%loadA, %100, %101) : (!loadA_v, !cute.coord_tensor<"(?{div=128},?{div=16})", "(128,16):(1@0,1@1)">, !cute.coord<"?">) -> !xA2
        %pA_10 = cute.memref.alloca() : !pA2
        %102 = cute.static : !cute.coord<"(0,_,_)">
        %103 = cute.slice(%xA_9, %102) : !xA2, !cute.coord<"(0,_,_)">
        %104 = cute.static : !cute.coord<"(0,_,_)">
        %105 = cute.slice(%pA_10, %104) : !pA2, !cute.coord<"(0,_,_)">
        scf.for %arg1 = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
          %128 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"?">
          %129 = cute.memref.load(%103, %128) : (!cute.coord_tensor<"(?,?{div=4})", "(2,1):(64@0,0)">, !cute.coord<"?">) -> !cute.int_tuple<"(?,?{div=4})">
          %130 = cute.elem_less(%129, %shapeA) : (!cute.int_tuple<"(?,?{div=4})">, !cute.shape<"(?,?{div=4})">) -> i1
          %131 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"?">
          cute.memref.store(%105, %131, %130) : (!cute.memref<i1, rmem, "(2,1):(1,2)">, !cute.coord<"?">, i1) -> ()
        }
        %106 = cute.make_coord(%93) : (i32) -> !cute.coord<"(_,_,?)">
        %107 = cute.slice(%sA, %106) : !sA, !cute.coord<"(_,_,?)">
        %108 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %dA_11 = cute.tiled.copy.partition_D(%loadA, %107, %108) : (!loadA_v, !cute.memref<f32, smem, align<512>, S<2,4,3>, "(128,16):(16,1)">, !cute.coord<"?">) -> !dA2
        cute.copy(%3, %tA_8, %dA_11, pred = %pA_10) : (!cute_nvgpu.atom.simt_async_copy<f32, cache = global, 128 b>, !tA2, !dA2, !pA2) -> ()
        %109 = cute.static : !cute.tile<"[128:1;16:1]">
        %110 = cute.make_coord(%column, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %111 = cute.local_tile(%mBt, %109, %110) : (!mBt2, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,?)">) -> !cute.memref<f32, gmem, align<16>, "(128,16):(1,?{div=4})">
        %112 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %tB_12 = cute.tiled.copy.partition_S(%loadB, %111, %112) : (!loadB_v, !cute.memref<f32, gmem, align<16>, "(128,16):(1,?{div=4})">, !cute.coord<"?">) -> !tB2
        %113 = cute.static : !cute.tile<"[128:1;16:1]">
        %114 = cute.make_coord(%column, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %115 = cute.local_tile(%idsB, %113, %114) : (!ids3, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,?)">) -> !cute.coord_tensor<"(?{div=128},?{div=16})", "(128,16):(1@0,1@1)">
        %116 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %xB_13 = cute.tiled.copy.partition_S(%loadB, %115, %116) : (!loadB_v, !cute.coord_tensor<"(?{div=128},?{div=16})", "(128,16):(1@0,1@1)">, !cute.coord<"?">) -> !xB2
        %pB_14 = cute.memref.alloca() : !pB2
        %117 = cute.static : !cute.coord<"(0,_,_)">
        %118 = cute.slice(%xB_13, %117) : !xB2, !cute.coord<"(0,_,_)">
        %119 = cute.static : !cute.coord<"(0,_,_)">
        %120 = cute.slice(%pB_14, %119) : !pB2, !cute.coord<"(0,_,_)">
        scf.for %arg1 = %c0_i32 to %c2_i32 step %c1_i32 : i32 {
          %128 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"?">
          %129 = cute.memref.load(%118, %128) : (!cute.coord_tensor<"(?{div=4},?)", "(1,2):(0,8@1)">, !cute.coord<"?">) -> !cute.int_tuple<"(?{div=4},?)">
          %130 = cute.elem_less(%129, %shapeB) : (!cute.int_tuple<"(?{div=4},?)">, !cute.shape<"(?{div=4},?)">) -> i1
          %131 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"?">
          cute.memref.store(%120, %131, %130) : (!cute.memref<i1, rmem, "(1,2):(1,1)">, !cute.coord<"?">, i1) -> ()
        }
        %121 = cute.make_coord(%93) : (i32) -> !cute.coord<"(_,_,?)">
        %122 = cute.slice(%sB, %121) : !sB, !cute.coord<"(_,_,?)">
        %123 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %dB_15 = cute.tiled.copy.partition_D(%loadB, %122, %123) : (!loadB_v, !cute.memref<f32, smem, align<16>, "(128,16):(1,128)">, !cute.coord<"?">) -> !dB2
        cute.copy(%10, %tB_12, %dB_15, pred = %pB_14) : (!cute_nvgpu.atom.simt_async_copy<f32, cache = global, 128 b>, !tB2, !dB2, !pB2) -> ()
        cute_nvgpu.arch.cp_async_commit_group() : () -> ()
        // Multiply, two columns at a time.
        %stage = arith.remui %arg0, %c3_i32 : i32
        %124 = cute.make_coord(%stage) : (i32) -> !cute.coord<"(_,_,?)">
        %125 = cute.slice(%sA, %124) : !sA, !cute.coord<"(_,_,?)">
        %126 = cute.make_coord(%stage) : (i32) -> !cute.coord<"(_,_,?)">
        %127 = cute.slice(%sB, %126) : !sB, !cute.coord<"(_,_,?)">
        scf.for %arg1 = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %128 = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
          %129 = cute.static : !cute.tile<"[128:1;2:1]">
          %130 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(0,?)">
          %131 = cute.local_tile(%125, %129, %130) : (!cute.memref<f32, smem, align<512>, S<2,4,3>, "(128,16):(16,1)">, !cute.tile<"[128:1;2:1]">, !cute.coord<"(0,?)">) -> !cute.memref<f32, smem, align<8>, S<2,4,3>, "(128,2):(16,1)">
          %132 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
          %sAk = cute.tiled.mma.partition_A(%mma, %131, %132) : (!mma, !cute.memref<f32, smem, align<8>, S<2,4,3>, "(128,2):(16,1)">, !cute.coord<"?">) -> !sAk
          %rA = cute.tiled.mma.make_fragment_A(%mma, %sAk) : (!mma, !sAk) -> !rA
          cute.copy(%128, %sAk, %rA) : (!cute_nvgpu.atom.universal_copy<f32>, !sAk, !rA) -> ()
          %133 = cute.static : !cute.tile<"[128:1;2:1]">
          %134 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(0,?)">
          %135 = cute.local_tile(%127, %133, %134) : (!cute.memref<f32, smem, align<16>, "(128,16):(1,128)">, !cute.tile<"[128:1;2:1]">, !cute.coord<"(0,?)">) -> !cute.memref<f32, smem, align<16>, "(128,2):(1,128)">
          %136 = cute.static : !cute.tile<"[128:1;1:1]">
          %137 = cute.static : !cute.coord<"(0,0)">
          %138 = cute.local_tile(%135, %136, %137) : (!cute.memref<f32, smem, align<16>, "(128,2):(1,128)">, !cute.tile<"[128:1;1:1]">, !cute.coord<"(0,0)">) -> !cute.memref<f32, smem, align<16>, "(128,1):(1,128)">
          %139 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
          %sBk = cute.tiled.mma.partition_B(%mma, %138, %139) : (!mma, !cute.memref<f32, smem, align<16>, "(128,1):(1,128)">, !cute.coord<"?">) -> !sBk
          %rB = cute.tiled.mma.make_fragment_B(%mma, %sBk) : (!mma, !sBk) -> !rB
          cute.copy(%128, %sBk, %rB) : (!cute_nvgpu.atom.universal_copy<f32>, !sBk, !rB) -> ()
          %140 = cute.static : !cute.coord<"(_,_,0)">
          %141 = cute.slice(%rA, %140) : !rA, !cute.coord<"(_,_,0)">
          %142 = cute.static : !cute.coord<"(_,_,0)">
          %143 = cute.slice(%rB, %142) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%mma, %acc, %141, %143, %acc) : (!mma, !acc, !cute.memref<f32, rmem, align<32>, "(1,8):(0,1)">, !cute.memref<f32, rmem, align<32>, "(1,(4,2)):(0,(1,4))">, !acc) -> ()
          %144 = cute.static : !cute.tile<"[128:1;1:1]">
          %145 = cute.static : !cute.coord<"(0,1)">
          %146 = cute.local_tile(%135, %144, %145) : (!cute.memref<f32, smem, align<16>, "(128,2):(1,128)">, !cute.tile<"[128:1;1:1]">, !cute.coord<"(0,1)">) -> !cute.memref<f32, smem, align<16>, "(128,1):(1,128)">
          %147 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
          %sBk_16 = cute.tiled.mma.partition_B(%mma, %146, %147) : (!mma, !cute.memref<f32, smem, align<16>, "(128,1):(1,128)">, !cute.coord<"?">) -> !sBk
          %rB_17 = cute.tiled.mma.make_fragment_B(%mma, %sBk_16) : (!mma, !sBk) -> !rB
          cute.copy(%128, %sBk_16, %rB_17) : (!cute_nvgpu.atom.universal_copy<f32>, !sBk, !rB) -> ()
          %148 = cute.static : !cute.coord<"(_,_,1)">
          %149 = cute.slice(%rA, %148) : !rA, !cute.coord<"(_,_,1)">
          %150 = cute.static : !cute.coord<"(_,_,0)">
          %151 = cute.slice(%rB_17, %150) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%mma, %acc, %149, %151, %acc) : (!mma, !acc, !cute.memref<f32, rmem, align<32>, "(1,8):(0,1)">, !cute.memref<f32, rmem, align<32>, "(1,(4,2)):(0,(1,4))">, !acc) -> ()
        }
      }
      cute_nvgpu.arch.cp_async_wait_group() {n = 0 : i32} : () -> ()
      // Write C; at an edge, the elements that lie in it.
      %84 = cute.get_layout(%mC) : !vec
      %shapeC = cute.get_shape(%84) : !cute.layout<"(?,?{div=4}):(?{div=4},1)"> -> !cute.shape<"(?,?{div=4})">
      %85 = cute.get_layout(%mC) : !vec
      %86 = cute.get_shape(%85) : !cute.layout<"(?,?{div=4}):(?{div=4},1)"> -> !cute.shape<"(?,?{div=4})">
      %87 = cute.make_identity_layout(%86) : !cute.shape<"(?,?{div=4})"> -> !cute.layout<"(?,?{div=4}):(1@0,1@1)">
      %88 = cute.static : !cute.int_tuple<"(0,0)">
      %mIds = cute.make_view(%88, %87) : !ids2
      %89 = cute.static : !cute.tile<"[128:1;128:1]">
      %90 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %idsC = cute.local_tile(%mIds, %89, %90) : (!ids2, !cute.tile<"[128:1;128:1]">, !cute.coord<"(?,?)">) -> !idsC
      %91 = cute.static : !cute.coord<"16383">
      %92 = cute.memref.load(%idsC, %91) : (!idsC, !cute.coord<"16383">) -> !cute.int_tuple<"(?,?)">
      %whole = cute.elem_less(%92, %shapeC) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?{div=4})">) -> i1
      %store = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
      scf.if %whole {
        cute.copy(%store, %acc, %tC) : (!cute_nvgpu.atom.universal_copy<f32>, !acc, !tC2) -> ()
      } else {
        %93 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %xC = cute.tiled.mma.partition_C(%mma, %idsC, %93) : (!mma, !idsC, !cute.coord<"?">) -> !xC
        %pC = cute.make_fragment_like(%xC) [i1] : !xC -> !pC
        scf.for %arg0 = %c0_i32 to %c64_i32 step %c1_i32 : i32 {
          %94 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
          %95 = cute.memref.load(%xC, %94) : (!xC, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %96 = cute.elem_less(%95, %shapeC) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?{div=4})">) -> i1
          %97 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
          cute.memref.store(%pC, %97, %96) : (!pC, !cute.coord<"?">, i1) -> ()
        }
        cute.copy(%store, %acc, %tC, pred = %pC) : (!cute_nvgpu.atom.universal_copy<f32>, !acc, !tC2, !pC) -> ()
      }
      gpu.return
    }
  }
  func.func @launch(%mA: !mat, %mB: !mat, %mC: !mat) {
    %c256_i32 = arith.constant 256 : i32
    %c1_i32 = arith.constant 1 : i32
    %c128_i32 = arith.constant 128 : i32
    %0 = cute.get_layout(%mA) : !mat
    %1 = cute.get_shape(%0) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
    %2:2 = cute.get_scalars (%1) : !cute.shape<"(?,?)">
    %3 = cute.get_layout(%mB) : !mat
    %4 = cute.get_shape(%3) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
    %5:2 = cute.get_scalars (%4) : !cute.shape<"(?,?)">
    %6 = cute.get_layout(%mC) : !mat
    %7 = cute.get_shape(%6) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
    %8:2 = cute.get_scalars (%7) : !cute.shape<"(?,?)">
    %9 = arith.cmpi eq, %2#1, %5#0 : i32
    %10 = arith.cmpi eq, %2#0, %8#0 : i32
    %11 = arith.cmpi eq, %5#1, %8#1 : i32
    cf.assert %9, "A and B must have the same K"
    cf.assert %10, "A and C must have the same M"
    cf.assert %11, "B and C must have the same N"
    // One block a tile of C.
    %12 = arith.ceildivsi %8#0, %c128_i32 : i32
    %13 = arith.ceildivsi %8#1, %c128_i32 : i32
    %14 = arith.muli %12, %13 : i32
    gpu.launch_func @kernels::@sgemm blocks in (%14, %c1_i32, %c1_i32) threads in (%c256_i32, %c1_i32, %c1_i32) : i32 args(%mA : !mat, %mB : !mat, %mC : !mat) {cute.variants = [@kernels::@sgemm_v]}
    return
  }
}
