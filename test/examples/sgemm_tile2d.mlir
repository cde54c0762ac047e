// C = A * B in f32 for row-major matrices of any size:
// a thread computes 8 x 8 elements of a tile of 128 x 128.

!mat = !cute.memref<f32, gmem, "(?,?):(?,1)">
!loadA = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"((8,32),1):((32,1),32)">, tiler_mn = <"[32:1;8:1]">>
!ids = !cute.coord_tensor<"(0,0)", "(?,?):(1@0,1@1)">
!mBt = !cute.memref<f32, gmem, "(?,?):(1,?)">
!loadB = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"((128,2),1):((1,128),1)">, tiler_mn = <"[128:1;2:1]">>
!mma = !cute.tiled_mma<!cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f32)>, atom_layout_MNK = <"(16,16,1):(16,1,0)">>
!gC = !cute.memref<f32, gmem, "(128,128):(?,1)">
!tC = !cute.memref<f32, gmem, "(1,8,8):(0,?{div=16},16)">
!acc = !cute.memref<f32, rmem, align<32>, "(1,8,8):(0,1,8)">
!sA = !cute.memref<f32, smem, align<16>, "(128,8):(8,1)">
!sB = !cute.memref<f32, smem, align<16>, "(128,8):(1,128)">
!tA = !cute.memref<f32, gmem, "((1,1),4,1):((0,0),?{div=32},0)">
!xA = !cute.coord_tensor<"(?,?)", "((1,1),4,1):((0,0),32@0,0)">
!pA = !cute.memref<i1, rmem, "(1,4,1):(0,1,4)">
!nextA = !cute.memref<f32, rmem, align<16>, "((1,1),4,1):((0,0),1,0)">
!dA = !cute.memref<f32, smem, "((1,1),4,1):((0,0),256,0)">
!tB = !cute.memref<f32, gmem, "((1,1),1,4):((0,0),0,?{div=2})">
!xB = !cute.coord_tensor<"(?,?)", "((1,1),1,4):((0,0),0,2@1)">
!pB = !cute.memref<i1, rmem, "(1,1,4):(0,1,1)">
!nextB = !cute.memref<f32, rmem, align<16>, "((1,1),1,4):((0,0),0,1)">
!dB = !cute.memref<f32, smem, "((1,1),1,4):((0,0),0,256)">
!sAk = !cute.memref<f32, smem, "(1,8,1):(0,128,0)">
!rA = !cute.memref<f32, rmem, align<32>, "(1,8,1):(0,1,0)">
!sBk = !cute.memref<f32, smem, "(1,8,1):(0,16,0)">
!idsC = !cute.coord_tensor<"(?{div=128},?{div=128})", "(128,128):(1@0,1@1)">
!xC = !cute.coord_tensor<"(?,?)", "(1,8,8):(0,16@0,16@1)">
!pC = !cute.memref<i1, rmem, align<32>, "(1,8,8):(0,8,1)">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @sgemm(%mA: !mat, %mB: !mat, %mC: !mat) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c64_i32 = arith.constant 64 : i32
      %c4_i32 = arith.constant 4 : i32
      %c1_i32 = arith.constant 1 : i32
      %c0_i32 = arith.constant 0 : i32
      %c8_i32 = arith.constant 8 : i32
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
      %3 = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
      %4 = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
      %loadA = cute.make_tiled_copy(%4) : !loadA
      %5 = cute.get_layout(%mA) : !mat
      %6 = cute.get_shape(%5) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
      %7 = cute.make_identity_layout(%6) : !cute.shape<"(?,?)"> -> !cute.layout<"(?,?):(1@0,1@1)">
      %8 = cute.static : !cute.int_tuple<"(0,0)">
      %idsA = cute.make_view(%8, %7) : !ids
      %9 = cute.get_layout(%mA) : !mat
      %shapeA = cute.get_shape(%9) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
      %mBt = cute.select<[1, 0]> (%mB) : !mat -> !mBt
      %10 = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
      %11 = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
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
      %tiles = arith.ceildivsi %23#1, %c8_i32 : i32
      %atom = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
      scf.for %arg0 = %c0_i32 to %tiles step %c1_i32 : i32 {
        // The next tiles, through registers.
        %33 = cute.static : !cute.tile<"[128:1;8:1]">
        %34 = cute.make_coord(%row, %arg0) : (i32, i32) -> !cute.coord<"(?,?)">
        %35 = cute.local_tile(%mA, %33, %34) : (!mat, !cute.tile<"[128:1;8:1]">, !cute.coord<"(?,?)">) -> !cute.memref<f32, gmem, "(128,8):(?,1)">
        %36 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %tA = cute.tiled.copy.partition_S(%loadA, %35, %36) : (!loadA, !cute.memref<f32, gmem, "(128,8):(?,1)">, !cute.coord<"?">) -> !tA
        %37 = cute.static : !cute.tile<"[128:1;8:1]">
        %38 = cute.make_coord(%row, %arg0) : (i32, i32) -> !cute.coord<"(?,?)">
        %39 = cute.local_tile(%idsA, %37, %38) : (!ids, !cute.tile<"[128:1;8:1]">, !cute.coord<"(?,?)">) -> !cute.coord_tensor<"(?{div=128},?{div=8})", "(128,8):(1@0,1@1)">
        %40 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %xA = cute.tiled.copy.partition_S(%loadA, %39, %40) : (!loadA, !cute.coord_tensor<"(?{div=128},?{div=8})", "(128,8):(1@0,1@1)">, !cute.coord<"?">) -> !xA
        %pA = cute.memref.alloca() : !pA
        %41 = cute.static : !cute.coord<"(0,_,_)">
        %42 = cute.slice(%xA, %41) : !xA, !cute.coord<"(0,_,_)">
        %43 = cute.static : !cute.coord<"(0,_,_)">
        %44 = cute.slice(%pA, %43) : !pA, !cute.coord<"(0,_,_)">
        scf.for %arg1 = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
          %59 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"?">
          %60 = cute.memref.load(%42, %59) : (!cute.coord_tensor<"(?,?)", "(4,1):(32@0,0)">, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %61 = cute.elem_less(%60, %shapeA) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
          %62 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"?">
          cute.memref.store(%44, %62, %61) : (!cute.memref<i1, rmem, "(4,1):(1,4)">, !cute.coord<"?">, i1) -> ()
        }
        %nextA = cute.make_fragment_like(%tA) : !tA -> !nextA
        cute.clear(%nextA) : (!nextA) -> ()
        cute.copy(%3, %tA, %nextA, pred = %pA) : (!cute_nvgpu.atom.universal_copy<f32>, !tA, !nextA, !pA) -> ()
        %45 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %dA = cute.tiled.copy.partition_D(%loadA, %sA, %45) : (!loadA, !sA, !cute.coord<"?">) -> !dA
        %46 = cute.static : !cute.tile<"[128:1;8:1]">
        %47 = cute.make_coord(%column, %arg0) : (i32, i32) -> !cute.coord<"(?,?)">
        %48 = cute.local_tile(%mBt, %46, %47) : (!mBt, !cute.tile<"[128:1;8:1]">, !cute.coord<"(?,?)">) -> !cute.memref<f32, gmem, "(128,8):(1,?)">
        %49 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %tB = cute.tiled.copy.partition_S(%loadB, %48, %49) : (!loadB, !cute.memref<f32, gmem, "(128,8):(1,?)">, !cute.coord<"?">) -> !tB
        %50 = cute.static : !cute.tile<"[128:1;8:1]">
        %51 = cute.make_coord(%column, %arg0) : (i32, i32) -> !cute.coord<"(?,?)">
        %52 = cute.local_tile(%idsB, %50, %51) : (!ids, !cute.tile<"[128:1;8:1]">, !cute.coord<"(?,?)">) -> !cute.coord_tensor<"(?{div=128},?{div=8})", "(128,8):(1@0,1@1)">
        %53 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %xB = cute.tiled.copy.partition_S(%loadB, %52, %53) : (!loadB, !cute.coord_tensor<"(?{div=128},?{div=8})", "(128,8):(1@0,1@1)">, !cute.coord<"?">) -> !xB
        %pB = cute.memref.alloca() : !pB
        %54 = cute.static : !cute.coord<"(0,_,_)">
        %55 = cute.slice(%xB, %54) : !xB, !cute.coord<"(0,_,_)">
        %56 = cute.static : !cute.coord<"(0,_,_)">
        %57 = cute.slice(%pB, %56) : !pB, !cute.coord<"(0,_,_)">
        scf.for %arg1 = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
          %59 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"?">
          %60 = cute.memref.load(%55, %59) : (!cute.coord_tensor<"(?,?)", "(1,4):(0,2@1)">, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %61 = cute.elem_less(%60, %shapeB) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
          %62 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"?">
          cute.memref.store(%57, %62, %61) : (!cute.memref<i1, rmem, "(1,4):(1,1)">, !cute.coord<"?">, i1) -> ()
        }
        %nextB = cute.make_fragment_like(%tB) : !tB -> !nextB
        cute.clear(%nextB) : (!nextB) -> ()
        cute.copy(%10, %tB, %nextB, pred = %pB) : (!cute_nvgpu.atom.universal_copy<f32>, !tB, !nextB, !pB) -> ()
        %58 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %dB = cute.tiled.copy.partition_D(%loadB, %sB, %58) : (!loadB, !sB, !cute.coord<"?">) -> !dB
        cute.copy(%atom, %nextA, %dA) : (!cute_nvgpu.atom.universal_copy<f32>, !nextA, !dA) -> ()
        cute.copy(%atom, %nextB, %dB) : (!cute_nvgpu.atom.universal_copy<f32>, !nextB, !dB) -> ()
        cute_nvgpu.arch.barrier() : () -> ()
        // Multiply them.
        scf.for %arg1 = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %59 = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
          %60 = cute.static : !cute.tile<"[128:1;1:1]">
          %61 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(0,?)">
          %62 = cute.local_tile(%sA, %60, %61) : (!sA, !cute.tile<"[128:1;1:1]">, !cute.coord<"(0,?)">) -> !cute.memref<f32, smem, "(128,1):(8,1)">
          %63 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
          %sAk = cute.tiled.mma.partition_A(%mma, %62, %63) : (!mma, !cute.memref<f32, smem, "(128,1):(8,1)">, !cute.coord<"?">) -> !sAk
          %rA = cute.tiled.mma.make_fragment_A(%mma, %sAk) : (!mma, !sAk) -> !rA
          cute.copy(%59, %sAk, %rA) : (!cute_nvgpu.atom.universal_copy<f32>, !sAk, !rA) -> ()
          %64 = cute.static : !cute.tile<"[128:1;1:1]">
          %65 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(0,?)">
          %66 = cute.local_tile(%sB, %64, %65) : (!sB, !cute.tile<"[128:1;1:1]">, !cute.coord<"(0,?)">) -> !cute.memref<f32, smem, align<16>, "(128,1):(1,128)">
          %67 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
          %sBk = cute.tiled.mma.partition_B(%mma, %66, %67) : (!mma, !cute.memref<f32, smem, align<16>, "(128,1):(1,128)">, !cute.coord<"?">) -> !sBk
          %rB = cute.tiled.mma.make_fragment_B(%mma, %sBk) : (!mma, !sBk) -> !rA
          cute.copy(%59, %sBk, %rB) : (!cute_nvgpu.atom.universal_copy<f32>, !sBk, !rA) -> ()
          cute.gemm(%mma, %acc, %rA, %rB, %acc) : (!mma, !acc, !rA, !rA, !acc) -> ()
        }
        cute_nvgpu.arch.barrier() : () -> ()
      }
      // Write C; at an edge, the elements that lie in it.
      %24 = cute.get_layout(%mC) : !mat
      %shapeC = cute.get_shape(%24) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
      %25 = cute.get_layout(%mC) : !mat
      %26 = cute.get_shape(%25) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
      %27 = cute.make_identity_layout(%26) : !cute.shape<"(?,?)"> -> !cute.layout<"(?,?):(1@0,1@1)">
      %28 = cute.static : !cute.int_tuple<"(0,0)">
      %mIds = cute.make_view(%28, %27) : !ids
      %29 = cute.static : !cute.tile<"[128:1;128:1]">
      %30 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %idsC = cute.local_tile(%mIds, %29, %30) : (!ids, !cute.tile<"[128:1;128:1]">, !cute.coord<"(?,?)">) -> !idsC
      %31 = cute.static : !cute.coord<"16383">
      %32 = cute.memref.load(%idsC, %31) : (!idsC, !cute.coord<"16383">) -> !cute.int_tuple<"(?,?)">
      %whole = cute.elem_less(%32, %shapeC) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
      %store = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
      scf.if %whole {
        cute.copy(%store, %acc, %tC) : (!cute_nvgpu.atom.universal_copy<f32>, !acc, !tC) -> ()
      } else {
        %33 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %xC = cute.tiled.mma.partition_C(%mma, %idsC, %33) : (!mma, !idsC, !cute.coord<"?">) -> !xC
        %pC = cute.make_fragment_like(%xC) [i1] : !xC -> !pC
        scf.for %arg0 = %c0_i32 to %c64_i32 step %c1_i32 : i32 {
          %34 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
          %35 = cute.memref.load(%xC, %34) : (!xC, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %36 = cute.elem_less(%35, %shapeC) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
          %37 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
          cute.memref.store(%pC, %37, %36) : (!pC, !cute.coord<"?">, i1) -> ()
        }
        cute.copy(%store, %acc, %tC, pred = %pC) : (!cute_nvgpu.atom.universal_copy<f32>, !acc, !tC, !pC) -> ()
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
    gpu.launch_func @kernels::@sgemm blocks in (%14, %c1_i32, %c1_i32) threads in (%c256_i32, %c1_i32, %c1_i32) : i32 args(%mA : !mat, %mB : !mat, %mC : !mat)
    return
  }
}
