// C = A * B in f32 for row-major matrices of any size:
// a thread computes one element; the block multiplies tiles of 32 x 32 in shared memory.

!mat = !cute.memref<f32, gmem, "(?,?):(?,1)">
!loadA = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"((32,32),1):((32,1),32)">, tiler_mn = <"[32:1;32:1]">>
!ids = !cute.coord_tensor<"(0,0)", "(?,?):(1@0,1@1)">
!mBt = !cute.memref<f32, gmem, "(?,?):(1,?)">
!loadB = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"((32,32),1):((1,32),1)">, tiler_mn = <"[32:1;32:1]">>
!mma = !cute.tiled_mma<!cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f32)>, atom_layout_MNK = <"(32,32,1):(32,1,0)">>
!gC = !cute.memref<f32, gmem, "(32,32):(?,1)">
!tC = !cute.memref<f32, gmem, "(1,1,1):(0,0,0)">
!acc = !cute.memref<f32, rmem, "(1,1,1):(0,0,0)">
!sA = !cute.memref<f32, smem, align<16>, "(32,32):(32,1)">
!sB = !cute.memref<f32, smem, align<16>, "(32,32):(1,32)">
!tA = !cute.memref<f32, gmem, "((1,1),1,1):((0,0),0,0)">
!xA = !cute.coord_tensor<"(?,?)", "((1,1),1,1):((0,0),0,0)">
!pA = !cute.memref<i1, rmem, "(1,1,1):(0,1,1)">
!nextA = !cute.memref<f32, rmem, "((1,1),1,1):((0,0),0,0)">
!dA = !cute.memref<f32, smem, "((1,1),1,1):((0,0),0,0)">
!sAk = !cute.memref<f32, smem, align<16>, "(1,1,4):(0,0,1)">
!rA = !cute.memref<f32, rmem, align<16>, "(1,1,4):(0,0,1)">
!sBk = !cute.memref<f32, smem, "(1,1,1):(0,0,0)">
!idsC = !cute.coord_tensor<"(?{div=32},?{div=32})", "(32,32):(1@0,1@1)">
!xC = !cute.coord_tensor<"(?,?)", "(1,1,1):(0,0,0)">
!pC = !cute.memref<i1, rmem, "(1,1,1):(0,0,0)">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @sgemm(%mA: !mat, %mB: !mat, %mC: !mat) kernel attributes {known_block_size = array<i32: 1024, 1, 1>} {
      %c8_i32 = arith.constant 8 : i32
      %c1_i32 = arith.constant 1 : i32
      %c0_i32 = arith.constant 0 : i32
      %c32_i32 = arith.constant 32 : i32
      %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32
      %0 = cute.get_layout(%mC) : !mat
      %1 = cute.get_shape(%0) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
      %2:2 = cute.get_scalars (%1) : !cute.shape<"(?,?)">
      %across = arith.ceildivsi %2#1, %c32_i32 : i32
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
      %18 = cute.static : !cute.tile<"[32:1;32:1]">
      %19 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %gC = cute.local_tile(%mC, %18, %19) : (!mat, !cute.tile<"[32:1;32:1]">, !cute.coord<"(?,?)">) -> !gC
      %20 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %tC = cute.tiled.mma.partition_C(%mma, %gC, %20) : (!mma, !gC, !cute.coord<"?">) -> !tC
      %acc = cute.tiled.mma.make_fragment_C(%mma, %tC) : (!mma, !tC) -> !acc
      cute.clear(%acc) : (!acc) -> ()
      %sA = cute.memref.alloc_smem() : !sA
      %sB = cute.memref.alloc_smem() : !sB
      %21 = cute.get_layout(%mA) : !mat
      %22 = cute.get_shape(%21) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
      %23:2 = cute.get_scalars (%22) : !cute.shape<"(?,?)">
      %tiles = arith.ceildivsi %23#1, %c32_i32 : i32
      %atom = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
      scf.for %arg0 = %c0_i32 to %tiles step %c1_i32 : i32 {
        // The next tiles, through registers.
        %33 = cute.static : !cute.tile<"[32:1;32:1]">
        %34 = cute.make_coord(%row, %arg0) : (i32, i32) -> !cute.coord<"(?,?)">
        %35 = cute.local_tile(%mA, %33, %34) : (!mat, !cute.tile<"[32:1;32:1]">, !cute.coord<"(?,?)">) -> !gC
        %36 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %tA = cute.tiled.copy.partition_S(%loadA, %35, %36) : (!loadA, !gC, !cute.coord<"?">) -> !tA
        %37 = cute.static : !cute.tile<"[32:1;32:1]">
        %38 = cute.make_coord(%row, %arg0) : (i32, i32) -> !cute.coord<"(?,?)">
        %39 = cute.local_tile(%idsA, %37, %38) : (!ids, !cute.tile<"[32:1;32:1]">, !cute.coord<"(?,?)">) -> !idsC
        %40 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %xA = cute.tiled.copy.partition_S(%loadA, %39, %40) : (!loadA, !idsC, !cute.coord<"?">) -> !xA
        %pA = cute.memref.alloca() : !pA
        %41 = cute.static : !cute.coord<"(0,_,_)">
        %42 = cute.slice(%xA, %41) : !xA, !cute.coord<"(0,_,_)">
        %43 = cute.static : !cute.coord<"(0,_,_)">
        %44 = cute.slice(%pA, %43) : !pA, !cute.coord<"(0,_,_)">
        scf.for %arg1 = %c0_i32 to %c1_i32 step %c1_i32 : i32 {
          %59 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"?">
          %60 = cute.memref.load(%42, %59) : (!cute.coord_tensor<"(?,?)", "(1,1):(0,0)">, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %61 = cute.elem_less(%60, %shapeA) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
          %62 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"?">
          cute.memref.store(%44, %62, %61) : (!cute.memref<i1, rmem, "(1,1):(1,1)">, !cute.coord<"?">, i1) -> ()
        }
        %nextA = cute.make_fragment_like(%tA) : !tA -> !nextA
        cute.clear(%nextA) : (!nextA) -> ()
        cute.copy(%3, %tA, %nextA, pred = %pA) : (!cute_nvgpu.atom.universal_copy<f32>, !tA, !nextA, !pA) -> ()
        %45 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %dA = cute.tiled.copy.partition_D(%loadA, %sA, %45) : (!loadA, !sA, !cute.coord<"?">) -> !dA
        %46 = cute.static : !cute.tile<"[32:1;32:1]">
        %47 = cute.make_coord(%column, %arg0) : (i32, i32) -> !cute.coord<"(?,?)">
        %48 = cute.local_tile(%mBt, %46, %47) : (!mBt, !cute.tile<"[32:1;32:1]">, !cute.coord<"(?,?)">) -> !cute.memref<f32, gmem, "(32,32):(1,?)">
        %49 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %tB = cute.tiled.copy.partition_S(%loadB, %48, %49) : (!loadB, !cute.memref<f32, gmem, "(32,32):(1,?)">, !cute.coord<"?">) -> !tA
        %50 = cute.static : !cute.tile<"[32:1;32:1]">
        %51 = cute.make_coord(%column, %arg0) : (i32, i32) -> !cute.coord<"(?,?)">
        %52 = cute.local_tile(%idsB, %50, %51) : (!ids, !cute.tile<"[32:1;32:1]">, !cute.coord<"(?,?)">) -> !idsC
        %53 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %xB = cute.tiled.copy.partition_S(%loadB, %52, %53) : (!loadB, !idsC, !cute.coord<"?">) -> !xA
        %pB = cute.memref.alloca() : !pA
        %54 = cute.static : !cute.coord<"(0,_,_)">
        %55 = cute.slice(%xB, %54) : !xA, !cute.coord<"(0,_,_)">
        %56 = cute.static : !cute.coord<"(0,_,_)">
        %57 = cute.slice(%pB, %56) : !pA, !cute.coord<"(0,_,_)">
        scf.for %arg1 = %c0_i32 to %c1_i32 step %c1_i32 : i32 {
          %59 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"?">
          %60 = cute.memref.load(%55, %59) : (!cute.coord_tensor<"(?,?)", "(1,1):(0,0)">, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %61 = cute.elem_less(%60, %shapeB) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
          %62 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"?">
          cute.memref.store(%57, %62, %61) : (!cute.memref<i1, rmem, "(1,1):(1,1)">, !cute.coord<"?">, i1) -> ()
        }
        %nextB = cute.make_fragment_like(%tB) : !tA -> !nextA
        cute.clear(%nextB) : (!nextA) -> ()
        cute.copy(%10, %tB, %nextB, pred = %pB) : (!cute_nvgpu.atom.universal_copy<f32>, !tA, !nextA, !pA) -> ()
        %58 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %dB = cute.tiled.copy.partition_D(%loadB, %sB, %58) : (!loadB, !sB, !cute.coord<"?">) -> !dA
        cute.copy(%atom, %nextA, %dA) : (!cute_nvgpu.atom.universal_copy<f32>, !nextA, !dA) -> ()
        cute.copy(%atom, %nextB, %dB) : (!cute_nvgpu.atom.universal_copy<f32>, !nextA, !dA) -> ()
        cute_nvgpu.arch.barrier() : () -> ()
        // Multiply them.
        scf.for %arg1 = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %59 = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
          %60 = cute.static : !cute.tile<"[32:1;4:1]">
          %61 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(0,?)">
          %62 = cute.local_tile(%sA, %60, %61) : (!sA, !cute.tile<"[32:1;4:1]">, !cute.coord<"(0,?)">) -> !cute.memref<f32, smem, align<16>, "(32,4):(32,1)">
          %63 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
          %sAk = cute.tiled.mma.partition_A(%mma, %62, %63) : (!mma, !cute.memref<f32, smem, align<16>, "(32,4):(32,1)">, !cute.coord<"?">) -> !sAk
          %rA = cute.tiled.mma.make_fragment_A(%mma, %sAk) : (!mma, !sAk) -> !rA
          cute.copy(%59, %sAk, %rA) : (!cute_nvgpu.atom.universal_copy<f32>, !sAk, !rA) -> ()
          %64 = cute.static : !cute.tile<"[32:1;4:1]">
          %65 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(0,?)">
          %66 = cute.local_tile(%sB, %64, %65) : (!sB, !cute.tile<"[32:1;4:1]">, !cute.coord<"(0,?)">) -> !cute.memref<f32, smem, align<16>, "(32,4):(1,32)">
          %67 = cute.static : !cute.tile<"[32:1;1:1]">
          %68 = cute.static : !cute.coord<"(0,0)">
          %69 = cute.local_tile(%66, %67, %68) : (!cute.memref<f32, smem, align<16>, "(32,4):(1,32)">, !cute.tile<"[32:1;1:1]">, !cute.coord<"(0,0)">) -> !cute.memref<f32, smem, align<16>, "(32,1):(1,32)">
          %70 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
          %sBk = cute.tiled.mma.partition_B(%mma, %69, %70) : (!mma, !cute.memref<f32, smem, align<16>, "(32,1):(1,32)">, !cute.coord<"?">) -> !sBk
          %rB = cute.tiled.mma.make_fragment_B(%mma, %sBk) : (!mma, !sBk) -> !acc
          cute.copy(%59, %sBk, %rB) : (!cute_nvgpu.atom.universal_copy<f32>, !sBk, !acc) -> ()
          %71 = cute.static : !cute.coord<"(_,_,0)">
          %72 = cute.slice(%rA, %71) : !rA, !cute.coord<"(_,_,0)">
          %73 = cute.static : !cute.coord<"(_,_,0)">
          %74 = cute.slice(%rB, %73) : !acc, !cute.coord<"(_,_,0)">
          cute.gemm(%mma, %acc, %72, %74, %acc) : (!mma, !acc, !cute.memref<f32, rmem, align<16>, "(1,1):(0,0)">, !cute.memref<f32, rmem, "(1,1):(0,0)">, !acc) -> ()
          %75 = cute.static : !cute.tile<"[32:1;1:1]">
          %76 = cute.static : !cute.coord<"(0,1)">
          %77 = cute.local_tile(%66, %75, %76) : (!cute.memref<f32, smem, align<16>, "(32,4):(1,32)">, !cute.tile<"[32:1;1:1]">, !cute.coord<"(0,1)">) -> !cute.memref<f32, smem, align<16>, "(32,1):(1,32)">
          %78 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
          %sBk_0 = cute.tiled.mma.partition_B(%mma, %77, %78) : (!mma, !cute.memref<f32, smem, align<16>, "(32,1):(1,32)">, !cute.coord<"?">) -> !sBk
          %rB_1 = cute.tiled.mma.make_fragment_B(%mma, %sBk_0) : (!mma, !sBk) -> !acc
          cute.copy(%59, %sBk_0, %rB_1) : (!cute_nvgpu.atom.universal_copy<f32>, !sBk, !acc) -> ()
          %79 = cute.static : !cute.coord<"(_,_,1)">
          %80 = cute.slice(%rA, %79) : !rA, !cute.coord<"(_,_,1)">
          %81 = cute.static : !cute.coord<"(_,_,0)">
          %82 = cute.slice(%rB_1, %81) : !acc, !cute.coord<"(_,_,0)">
          cute.gemm(%mma, %acc, %80, %82, %acc) : (!mma, !acc, !cute.memref<f32, rmem, "(1,1):(0,0)">, !cute.memref<f32, rmem, "(1,1):(0,0)">, !acc) -> ()
          %83 = cute.static : !cute.tile<"[32:1;1:1]">
          %84 = cute.static : !cute.coord<"(0,2)">
          %85 = cute.local_tile(%66, %83, %84) : (!cute.memref<f32, smem, align<16>, "(32,4):(1,32)">, !cute.tile<"[32:1;1:1]">, !cute.coord<"(0,2)">) -> !cute.memref<f32, smem, align<16>, "(32,1):(1,32)">
          %86 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
          %sBk_2 = cute.tiled.mma.partition_B(%mma, %85, %86) : (!mma, !cute.memref<f32, smem, align<16>, "(32,1):(1,32)">, !cute.coord<"?">) -> !sBk
          %rB_3 = cute.tiled.mma.make_fragment_B(%mma, %sBk_2) : (!mma, !sBk) -> !acc
          cute.copy(%59, %sBk_2, %rB_3) : (!cute_nvgpu.atom.universal_copy<f32>, !sBk, !acc) -> ()
          %87 = cute.static : !cute.coord<"(_,_,2)">
          %88 = cute.slice(%rA, %87) : !rA, !cute.coord<"(_,_,2)">
          %89 = cute.static : !cute.coord<"(_,_,0)">
          %90 = cute.slice(%rB_3, %89) : !acc, !cute.coord<"(_,_,0)">
          cute.gemm(%mma, %acc, %88, %90, %acc) : (!mma, !acc, !cute.memref<f32, rmem, align<8>, "(1,1):(0,0)">, !cute.memref<f32, rmem, "(1,1):(0,0)">, !acc) -> ()
          %91 = cute.static : !cute.tile<"[32:1;1:1]">
          %92 = cute.static : !cute.coord<"(0,3)">
          %93 = cute.local_tile(%66, %91, %92) : (!cute.memref<f32, smem, align<16>, "(32,4):(1,32)">, !cute.tile<"[32:1;1:1]">, !cute.coord<"(0,3)">) -> !cute.memref<f32, smem, align<16>, "(32,1):(1,32)">
          %94 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
          %sBk_4 = cute.tiled.mma.partition_B(%mma, %93, %94) : (!mma, !cute.memref<f32, smem, align<16>, "(32,1):(1,32)">, !cute.coord<"?">) -> !sBk
          %rB_5 = cute.tiled.mma.make_fragment_B(%mma, %sBk_4) : (!mma, !sBk) -> !acc
          cute.copy(%59, %sBk_4, %rB_5) : (!cute_nvgpu.atom.universal_copy<f32>, !sBk, !acc) -> ()
          %95 = cute.static : !cute.coord<"(_,_,3)">
          %96 = cute.slice(%rA, %95) : !rA, !cute.coord<"(_,_,3)">
          %97 = cute.static : !cute.coord<"(_,_,0)">
          %98 = cute.slice(%rB_5, %97) : !acc, !cute.coord<"(_,_,0)">
          cute.gemm(%mma, %acc, %96, %98, %acc) : (!mma, !acc, !cute.memref<f32, rmem, "(1,1):(0,0)">, !cute.memref<f32, rmem, "(1,1):(0,0)">, !acc) -> ()
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
      %29 = cute.static : !cute.tile<"[32:1;32:1]">
      %30 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %idsC = cute.local_tile(%mIds, %29, %30) : (!ids, !cute.tile<"[32:1;32:1]">, !cute.coord<"(?,?)">) -> !idsC
      %31 = cute.static : !cute.coord<"1023">
      %32 = cute.memref.load(%idsC, %31) : (!idsC, !cute.coord<"1023">) -> !cute.int_tuple<"(?,?)">
      %whole = cute.elem_less(%32, %shapeC) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
      %store = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
      scf.if %whole {
        cute.copy(%store, %acc, %tC) : (!cute_nvgpu.atom.universal_copy<f32>, !acc, !tC) -> ()
      } else {
        %33 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %xC = cute.tiled.mma.partition_C(%mma, %idsC, %33) : (!mma, !idsC, !cute.coord<"?">) -> !xC
        %pC = cute.make_fragment_like(%xC) [i1] : !xC -> !pC
        scf.for %arg0 = %c0_i32 to %c1_i32 step %c1_i32 : i32 {
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
    %c1024_i32 = arith.constant 1024 : i32
    %c1_i32 = arith.constant 1 : i32
    %c32_i32 = arith.constant 32 : i32
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
    %12 = arith.ceildivsi %8#0, %c32_i32 : i32
    %13 = arith.ceildivsi %8#1, %c32_i32 : i32
    %14 = arith.muli %12, %13 : i32
    gpu.launch_func @kernels::@sgemm blocks in (%14, %c1_i32, %c1_i32) threads in (%c1024_i32, %c1_i32, %c1_i32) : i32 args(%mA : !mat, %mB : !mat, %mC : !mat)
    return
  }
}
