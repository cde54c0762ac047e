// C = A * B in f32 for row-major matrices of any size:
// 4 warps have tiles of 64 x 64, their lanes 8 x 16 elements, loaded one step ahead; four stages by TMA.
// TMA wants rows of whole aligned vectors of 16 bytes; for other matrices the launch falls back to
// @launch_any, which is the rung before.

!mat = !cute.memref<f32, gmem, "(?,?):(?,1)">
!vec = !cute.memref<f32, gmem, align<16>, "(?,?{div=4}):(?{div=4},1)">
!loadA = !cute_nvgpu.atom.tma_load<f32, box = (16, 128), swizzle = 64, l2 = 256>
!loadB = !cute_nvgpu.atom.tma_load<f32, box = (128, 16), l2 = 256>
!mma = !cute.tiled_mma<!cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f32)>, atom_layout_MNK = <"((8,2),(4,2),1):((4,32),(1,64),0)">, permutation_MNK = <"[(8,2,8):(1,64,8);(4,2,4,4):(4,64,1,16);_]">>
!gC = !cute.memref<f32, gmem, align<16>, "(128,128):(?{div=4},1)">
!tC = !cute.memref<f32, gmem, align<16>, "(1,8,(4,4)):(0,?{div=32},(1,16))">
!acc = !cute.memref<f32, rmem, align<32>, "(1,8,(4,4)):(0,1,(8,32))">
!sA = !cute.memref<f32, smem, align<1024>, S<2,4,3>, "(128,16,4):(16,1,2048)">
!sB = !cute.memref<f32, smem, align<1024>, "(128,16,4):(1,128,2048)">
!tA = !cute.memref<f32, smem, align<64>, S<2,4,3>, "(1,8,16,4):(0,128,1,2048)">
!tB = !cute.memref<f32, smem, align<16>, "(1,(4,4),16,4):(0,(1,16),128,2048)">
!a0 = !cute.memref<f32, rmem, align<16>, "(1,8,4):(0,4,1)">
!b0 = !cute.memref<f32, rmem, align<16>, "(1,(4,4)):(0,(1,4))">
!ids = !cute.coord_tensor<"(0,0)", "(?,?{div=4}):(1@0,1@1)">
!idsC = !cute.coord_tensor<"(?{div=128},?{div=128})", "(128,128):(1@0,1@1)">
!xC = !cute.coord_tensor<"(?,?{div=4})", "(1,8,(4,4)):(0,8@0,(1@1,16@1))">
!pC = !cute.memref<i1, rmem, align<32>, "(1,8,(4,4)):(0,16,(1,4))">
!mBt = !cute.memref<f32, gmem, align<16>, "(?{div=4},?):(1,?{div=4})">
!loadA2 = !cute.tiled_copy<!cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>, layout_copy_tv = <"((16,16),1):((16,1),16)">, tiler_mn = <"[16:1;16:1]">>
!ids2 = !cute.coord_tensor<"(0,0)", "(?,?):(1@0,1@1)">
!mBt2 = !cute.memref<f32, gmem, "(?,?):(1,?)">
!loadB2 = !cute.tiled_copy<!cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>, layout_copy_tv = <"((128,2),1):((1,128),1)">, tiler_mn = <"[128:1;2:1]">>
!mma2 = !cute.tiled_mma<!cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f32)>, atom_layout_MNK = <"((4,4),(8,2),1):((8,64),(1,32),0)">, permutation_MNK = <"[(4,4,8):(1,32,4);(8,2,4,2):(4,64,1,32);_]">>
!gC2 = !cute.memref<f32, gmem, "(128,128):(?,1)">
!tC2 = !cute.memref<f32, gmem, "(1,8,(4,2)):(0,?{div=4},(1,32))">
!acc2 = !cute.memref<f32, rmem, align<32>, "(1,8,(4,2)):(0,1,(8,32))">
!sA2 = !cute.memref<f32, smem, align<512>, S<2,4,3>, "(128,16,3):(16,1,2048)">
!sB2 = !cute.memref<f32, smem, align<16>, "(128,16,3):(1,128,2048)">
!tA2 = !cute.memref<f32, gmem, "((1,1),8,1):((0,0),?{div=16},0)">
!xA = !cute.coord_tensor<"(?,?)", "((1,1),8,1):((0,0),16@0,0)">
!pA = !cute.memref<i1, rmem, "(1,8,1):(0,1,8)">
!dA = !cute.memref<f32, smem, S<2,4,3>, "((1,1),8,1):((0,0),256,0)">
!tB2 = !cute.memref<f32, gmem, "((1,1),1,8):((0,0),0,?{div=2})">
!xB = !cute.coord_tensor<"(?,?)", "((1,1),1,8):((0,0),0,2@1)">
!pB = !cute.memref<i1, rmem, "(1,1,8):(0,1,1)">
!dB = !cute.memref<f32, smem, "((1,1),1,8):((0,0),0,256)">
!sAk = !cute.memref<f32, smem, align<8>, S<2,4,3>, "(1,8,2):(0,64,1)">
!rA = !cute.memref<f32, rmem, align<32>, "(1,8,2):(0,1,8)">
!sBk = !cute.memref<f32, smem, align<16>, "(1,(4,2),1):(0,(1,32),0)">
!rB = !cute.memref<f32, rmem, align<32>, "(1,(4,2),1):(0,(1,4),0)">
!xC2 = !cute.coord_tensor<"(?,?{div=4})", "(1,8,(4,2)):(0,4@0,(1@1,32@1))">
!pC2 = !cute.memref<i1, rmem, align<32>, "(1,8,(4,2)):(0,8,(1,4))">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @sgemm(%loadA: !loadA, %loadB: !loadB, %tiles: i32, %mC: !vec) kernel attributes {known_block_size = array<i32: 128, 1, 1>, nvvm.minctasm = 2 : i32} {
      %c16_i32 = arith.constant 16 : i32
      %c3_i32 = arith.constant 3 : i32
      %c16384_i32 = arith.constant 16384 : i32
      %c1_i32 = arith.constant 1 : i32
      %c4_i32 = arith.constant 4 : i32
      %c0_i32 = arith.constant 0 : i32
      %c8_i32 = arith.constant 8 : i32
      %c128_i32 = arith.constant 128 : i32
      %c127_i32 = arith.constant 127 : i32
      %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
      %0 = cute.get_layout(%mC) : !vec
      %1 = cute.get_shape(%0) : !cute.layout<"(?,?{div=4}):(?{div=4},1)"> -> !cute.shape<"(?,?{div=4})">
      %2:2 = cute.get_scalars (%1) : !cute.shape<"(?,?{div=4})">
      %3 = arith.addi %2#0, %c127_i32 : i32
      %4 = arith.divui %3, %c128_i32 : i32
      %5 = arith.addi %2#1, %c127_i32 : i32
      %6 = arith.divui %5, %c128_i32 : i32
      %bid = nvvm.read.ptx.sreg.ctaid.x : i32
      %7 = arith.muli %6, %c8_i32 : i32
      %8 = arith.divui %bid, %7 : i32
      %9 = arith.muli %8, %7 : i32
      %10 = arith.subi %bid, %9 : i32
      %11 = arith.muli %8, %c8_i32 : i32
      %12 = arith.subi %4, %11 : i32
      %13 = arith.minui %12, %c8_i32 : i32
      %column = arith.divui %10, %13 : i32
      %14 = arith.muli %column, %13 : i32
      %15 = arith.subi %10, %14 : i32
      %row = arith.addi %11, %15 : i32
      // How the threads multiply; this thread's elements of C.
      %16 = cute.atom() : !cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f32)>
      %mma = cute.make_tiled_mma(%16) : !mma
      %17 = cute.static : !cute.tile<"[128:1;128:1]">
      %18 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %gC = cute.local_tile(%mC, %17, %18) : (!vec, !cute.tile<"[128:1;128:1]">, !cute.coord<"(?,?)">) -> !gC
      %19 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %tC = cute.tiled.mma.partition_C(%mma, %gC, %19) : (!mma, !gC, !cute.coord<"?">) -> !tC
      %acc = cute.tiled.mma.make_fragment_C(%mma, %tC) : (!mma, !tC) -> !acc
      cute.clear(%acc) : (!acc) -> ()
      // Slots of shared memory, and the barriers that say they are full; thread 0 fills them.
      %sA = cute.memref.alloc_smem() : !sA
      %sB = cute.memref.alloc_smem() : !sB
      %20 = cute.memref.alloc_smem() : !cute.memref<i64, smem, "(4,2):(1,4)">
      %m0 = arith.muli %row, %c128_i32 : i32
      %n0 = arith.muli %column, %c128_i32 : i32
      %leader = arith.cmpi eq, %tid, %c0_i32 : i32
      scf.if %leader {
        scf.for %arg0 = %c0_i32 to %c4_i32 step %c1_i32 : i32 {
          %110 = cute.get_iter(%20) : !cute.memref<i64, smem, "(4,2):(1,4)">
          %111 = cute.make_int_tuple(%arg0) : (i32) -> !cute.int_tuple<"?">
          %112 = cute.add_offset(%110, %111) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_init(%112, %c1_i32) : (!cute.ptr<i64, smem>, i32) -> ()
        }
        cute_nvgpu.arch.fence_mbarrier_init() : () -> ()
        %65 = cute.get_iter(%20) : !cute.memref<i64, smem, "(4,2):(1,4)">
        %66 = cute.static : !cute.int_tuple<"0">
        %67 = cute.add_offset(%65, %66) : (!cute.ptr<i64, smem>, !cute.int_tuple<"0">) -> !cute.ptr<i64, smem>
        cute_nvgpu.arch.mbarrier_arrive_expect_tx(%67, %c16384_i32) : (!cute.ptr<i64, smem>, i32) -> ()
        %68 = cute.atom.set_value(%loadA, %67) {field = tma_bar} : (!loadA, !cute.ptr<i64, smem>) -> !loadA
        %69 = cute.make_int_tuple(%m0) : (i32) -> !cute.int_tuple<"(0,?)">
        %70 = cute.static : !cute.layout<"(128,16):(1@1,1@0)">
        %71 = cute.make_view(%69, %70) : !cute.coord_tensor<"(0,?)", "(128,16):(1@1,1@0)">
        %72 = cute.static : !cute.coord<"(_,_,0)">
        %73 = cute.slice(%sA, %72) : !sA, !cute.coord<"(_,_,0)">
        cute.copy(%68, %71, %73) : (!loadA, !cute.coord_tensor<"(0,?)", "(128,16):(1@1,1@0)">, !cute.memref<f32, smem, align<1024>, S<2,4,3>, "(128,16):(16,1)">) -> ()
        %74 = cute.atom.set_value(%loadB, %67) {field = tma_bar} : (!loadB, !cute.ptr<i64, smem>) -> !loadB
        %75 = cute.make_int_tuple(%n0) : (i32) -> !cute.int_tuple<"(?,0)">
        %76 = cute.static : !cute.layout<"(128,16):(1@0,1@1)">
        %77 = cute.make_view(%75, %76) : !cute.coord_tensor<"(?,0)", "(128,16):(1@0,1@1)">
        %78 = cute.static : !cute.coord<"(_,_,0)">
        %79 = cute.slice(%sB, %78) : !sB, !cute.coord<"(_,_,0)">
        cute.copy(%74, %77, %79) : (!loadB, !cute.coord_tensor<"(?,0)", "(128,16):(1@0,1@1)">, !cute.memref<f32, smem, align<1024>, "(128,16):(1,128)">) -> ()
        %80 = cute.get_iter(%20) : !cute.memref<i64, smem, "(4,2):(1,4)">
        %81 = cute.static : !cute.int_tuple<"1">
        %82 = cute.add_offset(%80, %81) : (!cute.ptr<i64, smem>, !cute.int_tuple<"1">) -> !cute.ptr<i64, smem>
        cute_nvgpu.arch.mbarrier_arrive_expect_tx(%82, %c16384_i32) : (!cute.ptr<i64, smem>, i32) -> ()
        %83 = cute.atom.set_value(%loadA, %82) {field = tma_bar} : (!loadA, !cute.ptr<i64, smem>) -> !loadA
        %84 = cute.make_int_tuple(%m0) : (i32) -> !cute.int_tuple<"(16,?)">
        %85 = cute.static : !cute.layout<"(128,16):(1@1,1@0)">
        %86 = cute.make_view(%84, %85) : !cute.coord_tensor<"(16,?)", "(128,16):(1@1,1@0)">
        %87 = cute.static : !cute.coord<"(_,_,1)">
        %88 = cute.slice(%sA, %87) : !sA, !cute.coord<"(_,_,1)">
        cute.copy(%83, %86, %88) : (!loadA, !cute.coord_tensor<"(16,?)", "(128,16):(1@1,1@0)">, !cute.memref<f32, smem, align<1024>, S<2,4,3>, "(128,16):(16,1)">) -> ()
        %89 = cute.atom.set_value(%loadB, %82) {field = tma_bar} : (!loadB, !cute.ptr<i64, smem>) -> !loadB
        %90 = cute.make_int_tuple(%n0) : (i32) -> !cute.int_tuple<"(?,16)">
        %91 = cute.static : !cute.layout<"(128,16):(1@0,1@1)">
        %92 = cute.make_view(%90, %91) : !cute.coord_tensor<"(?,16)", "(128,16):(1@0,1@1)">
        %93 = cute.static : !cute.coord<"(_,_,1)">
        %94 = cute.slice(%sB, %93) : !sB, !cute.coord<"(_,_,1)">
        cute.copy(%89, %92, %94) : (!loadB, !cute.coord_tensor<"(?,16)", "(128,16):(1@0,1@1)">, !cute.memref<f32, smem, align<1024>, "(128,16):(1,128)">) -> ()
        %95 = cute.get_iter(%20) : !cute.memref<i64, smem, "(4,2):(1,4)">
        %96 = cute.static : !cute.int_tuple<"2">
        %97 = cute.add_offset(%95, %96) : (!cute.ptr<i64, smem>, !cute.int_tuple<"2">) -> !cute.ptr<i64, smem>
        cute_nvgpu.arch.mbarrier_arrive_expect_tx(%97, %c16384_i32) : (!cute.ptr<i64, smem>, i32) -> ()
        %98 = cute.atom.set_value(%loadA, %97) {field = tma_bar} : (!loadA, !cute.ptr<i64, smem>) -> !loadA
        %99 = cute.make_int_tuple(%m0) : (i32) -> !cute.int_tuple<"(32,?)">
        %100 = cute.static : !cute.layout<"(128,16):(1@1,1@0)">
        %101 = cute.make_view(%99, %100) : !cute.coord_tensor<"(32,?)", "(128,16):(1@1,1@0)">
        %102 = cute.static : !cute.coord<"(_,_,2)">
        %103 = cute.slice(%sA, %102) : !sA, !cute.coord<"(_,_,2)">
        cute.copy(%98, %101, %103) : (!loadA, !cute.coord_tensor<"(32,?)", "(128,16):(1@1,1@0)">, !cute.memref<f32, smem, align<1024>, S<2,4,3>, "(128,16):(16,1)">) -> ()
        %104 = cute.atom.set_value(%loadB, %97) {field = tma_bar} : (!loadB, !cute.ptr<i64, smem>) -> !loadB
        %105 = cute.make_int_tuple(%n0) : (i32) -> !cute.int_tuple<"(?,32)">
        %106 = cute.static : !cute.layout<"(128,16):(1@0,1@1)">
        %107 = cute.make_view(%105, %106) : !cute.coord_tensor<"(?,32)", "(128,16):(1@0,1@1)">
        %108 = cute.static : !cute.coord<"(_,_,2)">
        %109 = cute.slice(%sB, %108) : !sB, !cute.coord<"(_,_,2)">
        cute.copy(%104, %107, %109) : (!loadB, !cute.coord_tensor<"(?,32)", "(128,16):(1@0,1@1)">, !cute.memref<f32, smem, align<1024>, "(128,16):(1,128)">) -> ()
      }
      cute_nvgpu.arch.barrier() : () -> ()
      // What this thread multiplies: of A four k at once, of B one, each twice.
      %21 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %tA = cute.tiled.mma.partition_A(%mma, %sA, %21) : (!mma, !sA, !cute.coord<"?">) -> !tA
      %22 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %tB = cute.tiled.mma.partition_B(%mma, %sB, %22) : (!mma, !sB, !cute.coord<"?">) -> !tB
      %23 = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
      %a0 = cute.memref.alloca() : !a0
      %a1 = cute.memref.alloca() : !a0
      %b0 = cute.memref.alloca() : !b0
      %b1 = cute.memref.alloca() : !b0
      %24 = cute.get_iter(%20) : !cute.memref<i64, smem, "(4,2):(1,4)">
      %25 = cute.static : !cute.int_tuple<"0">
      %26 = cute.add_offset(%24, %25) : (!cute.ptr<i64, smem>, !cute.int_tuple<"0">) -> !cute.ptr<i64, smem>
      cute_nvgpu.arch.mbarrier_wait(%26, %c0_i32) : (!cute.ptr<i64, smem>, i32) -> ()
      %27 = cute.static : !cute.tile<"[1:1;8:1;4:1]">
      %28 = cute.make_coord(%c0_i32) : (i32) -> !cute.coord<"(_,_,_,?)">
      %29 = cute.slice(%tA, %28) : !tA, !cute.coord<"(_,_,_,?)">
      %30 = cute.static : !cute.coord<"(0,0,0)">
      %31 = cute.local_tile(%29, %27, %30) : (!cute.memref<f32, smem, align<64>, S<2,4,3>, "(1,8,16):(0,128,1)">, !cute.tile<"[1:1;8:1;4:1]">, !cute.coord<"(0,0,0)">) -> !cute.memref<f32, smem, align<64>, S<2,4,3>, "(1,8,4):(0,128,1)">
      cute.copy(%23, %31, %a0) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, smem, align<64>, S<2,4,3>, "(1,8,4):(0,128,1)">, !a0) -> ()
      %32 = cute.make_coord(%c0_i32) : (i32) -> !cute.coord<"(_,_,0,?)">
      %33 = cute.slice(%tB, %32) : !tB, !cute.coord<"(_,_,0,?)">
      cute.copy(%23, %33, %b0) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, smem, align<16>, "(1,(4,4)):(0,(1,16))">, !b0) -> ()
      %34:2 = scf.for %arg0 = %c0_i32 to %tiles step %c1_i32 iter_args(%slot = %c0_i32, %phase = %c0_i32) -> (i32, i32) : i32 {
        %65 = arith.addi %slot, %c1_i32 : i32
        %66 = arith.cmpi eq, %65, %c4_i32 : i32
        %67 = arith.select %66, %c0_i32, %65 : i32
        %68 = arith.extui %66 : i1 to i32
        %69 = arith.xori %phase, %68 : i32
        %70 = cute.make_coord(%slot) : (i32) -> !cute.coord<"(_,_,1,?)">
        %71 = cute.slice(%tB, %70) : !tB, !cute.coord<"(_,_,1,?)">
        cute.copy(%23, %71, %b1) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, smem, align<16>, "(1,(4,4)):(0,(1,16))">, !b0) -> ()
        %72 = cute.static : !cute.coord<"(_,_,0)">
        %73 = cute.slice(%a0, %72) : !a0, !cute.coord<"(_,_,0)">
        cute.gemm(%mma, %acc, %73, %b0, %acc) : (!mma, !acc, !cute.memref<f32, rmem, align<16>, "(1,8):(0,4)">, !b0, !acc) -> ()
        %74 = cute.make_coord(%slot) : (i32) -> !cute.coord<"(_,_,2,?)">
        %75 = cute.slice(%tB, %74) : !tB, !cute.coord<"(_,_,2,?)">
        cute.copy(%23, %75, %b0) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, smem, align<16>, "(1,(4,4)):(0,(1,16))">, !b0) -> ()
        %76 = cute.static : !cute.tile<"[1:1;8:1;4:1]">
        %77 = cute.make_coord(%slot) : (i32) -> !cute.coord<"(_,_,_,?)">
        %78 = cute.slice(%tA, %77) : !tA, !cute.coord<"(_,_,_,?)">
        %79 = cute.static : !cute.coord<"(0,0,1)">
        %80 = cute.local_tile(%78, %76, %79) : (!cute.memref<f32, smem, align<64>, S<2,4,3>, "(1,8,16):(0,128,1)">, !cute.tile<"[1:1;8:1;4:1]">, !cute.coord<"(0,0,1)">) -> !cute.memref<f32, smem, align<16>, S<2,4,3>, "(1,8,4):(0,128,1)">
        cute.copy(%23, %80, %a1) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, smem, align<16>, S<2,4,3>, "(1,8,4):(0,128,1)">, !a0) -> ()
        %81 = cute.static : !cute.coord<"(_,_,1)">
        %82 = cute.slice(%a0, %81) : !a0, !cute.coord<"(_,_,1)">
        cute.gemm(%mma, %acc, %82, %b1, %acc) : (!mma, !acc, !cute.memref<f32, rmem, "(1,8):(0,4)">, !b0, !acc) -> ()
        %83 = cute.make_coord(%slot) : (i32) -> !cute.coord<"(_,_,3,?)">
        %84 = cute.slice(%tB, %83) : !tB, !cute.coord<"(_,_,3,?)">
        cute.copy(%23, %84, %b1) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, smem, align<16>, "(1,(4,4)):(0,(1,16))">, !b0) -> ()
        %85 = cute.static : !cute.coord<"(_,_,2)">
        %86 = cute.slice(%a0, %85) : !a0, !cute.coord<"(_,_,2)">
        cute.gemm(%mma, %acc, %86, %b0, %acc) : (!mma, !acc, !cute.memref<f32, rmem, align<8>, "(1,8):(0,4)">, !b0, !acc) -> ()
        %87 = cute.make_coord(%slot) : (i32) -> !cute.coord<"(_,_,4,?)">
        %88 = cute.slice(%tB, %87) : !tB, !cute.coord<"(_,_,4,?)">
        cute.copy(%23, %88, %b0) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, smem, align<16>, "(1,(4,4)):(0,(1,16))">, !b0) -> ()
        %89 = cute.static : !cute.coord<"(_,_,3)">
        %90 = cute.slice(%a0, %89) : !a0, !cute.coord<"(_,_,3)">
        cute.gemm(%mma, %acc, %90, %b1, %acc) : (!mma, !acc, !cute.memref<f32, rmem, "(1,8):(0,4)">, !b0, !acc) -> ()
        %91 = cute.make_coord(%slot) : (i32) -> !cute.coord<"(_,_,5,?)">
        %92 = cute.slice(%tB, %91) : !tB, !cute.coord<"(_,_,5,?)">
        cute.copy(%23, %92, %b1) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, smem, align<16>, "(1,(4,4)):(0,(1,16))">, !b0) -> ()
        %93 = cute.static : !cute.coord<"(_,_,0)">
        %94 = cute.slice(%a1, %93) : !a0, !cute.coord<"(_,_,0)">
        cute.gemm(%mma, %acc, %94, %b0, %acc) : (!mma, !acc, !cute.memref<f32, rmem, align<16>, "(1,8):(0,4)">, !b0, !acc) -> ()
        %95 = cute.make_coord(%slot) : (i32) -> !cute.coord<"(_,_,6,?)">
        %96 = cute.slice(%tB, %95) : !tB, !cute.coord<"(_,_,6,?)">
        cute.copy(%23, %96, %b0) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, smem, align<16>, "(1,(4,4)):(0,(1,16))">, !b0) -> ()
        %97 = cute.static : !cute.tile<"[1:1;8:1;4:1]">
        %98 = cute.make_coord(%slot) : (i32) -> !cute.coord<"(_,_,_,?)">
        %99 = cute.slice(%tA, %98) : !tA, !cute.coord<"(_,_,_,?)">
        %100 = cute.static : !cute.coord<"(0,0,2)">
        %101 = cute.local_tile(%99, %97, %100) : (!cute.memref<f32, smem, align<64>, S<2,4,3>, "(1,8,16):(0,128,1)">, !cute.tile<"[1:1;8:1;4:1]">, !cute.coord<"(0,0,2)">) -> !cute.memref<f32, smem, align<32>, S<2,4,3>, "(1,8,4):(0,128,1)">
        cute.copy(%23, %101, %a0) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, smem, align<32>, S<2,4,3>, "(1,8,4):(0,128,1)">, !a0) -> ()
        %102 = cute.static : !cute.coord<"(_,_,1)">
        %103 = cute.slice(%a1, %102) : !a0, !cute.coord<"(_,_,1)">
        cute.gemm(%mma, %acc, %103, %b1, %acc) : (!mma, !acc, !cute.memref<f32, rmem, "(1,8):(0,4)">, !b0, !acc) -> ()
        %104 = cute.make_coord(%slot) : (i32) -> !cute.coord<"(_,_,7,?)">
        %105 = cute.slice(%tB, %104) : !tB, !cute.coord<"(_,_,7,?)">
        cute.copy(%23, %105, %b1) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, smem, align<16>, "(1,(4,4)):(0,(1,16))">, !b0) -> ()
        %106 = cute.static : !cute.coord<"(_,_,2)">
        %107 = cute.slice(%a1, %106) : !a0, !cute.coord<"(_,_,2)">
        cute.gemm(%mma, %acc, %107, %b0, %acc) : (!mma, !acc, !cute.memref<f32, rmem, align<8>, "(1,8):(0,4)">, !b0, !acc) -> ()
        %108 = cute.make_coord(%slot) : (i32) -> !cute.coord<"(_,_,8,?)">
        %109 = cute.slice(%tB, %108) : !tB, !cute.coord<"(_,_,8,?)">
        cute.copy(%23, %109, %b0) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, smem, align<16>, "(1,(4,4)):(0,(1,16))">, !b0) -> ()
        %110 = cute.static : !cute.coord<"(_,_,3)">
        %111 = cute.slice(%a1, %110) : !a0, !cute.coord<"(_,_,3)">
        cute.gemm(%mma, %acc, %111, %b1, %acc) : (!mma, !acc, !cute.memref<f32, rmem, "(1,8):(0,4)">, !b0, !acc) -> ()
        %112 = cute.make_coord(%slot) : (i32) -> !cute.coord<"(_,_,9,?)">
        %113 = cute.slice(%tB, %112) : !tB, !cute.coord<"(_,_,9,?)">
        cute.copy(%23, %113, %b1) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, smem, align<16>, "(1,(4,4)):(0,(1,16))">, !b0) -> ()
        %114 = cute.static : !cute.coord<"(_,_,0)">
        %115 = cute.slice(%a0, %114) : !a0, !cute.coord<"(_,_,0)">
        cute.gemm(%mma, %acc, %115, %b0, %acc) : (!mma, !acc, !cute.memref<f32, rmem, align<16>, "(1,8):(0,4)">, !b0, !acc) -> ()
        %116 = cute.make_coord(%slot) : (i32) -> !cute.coord<"(_,_,10,?)">
        %117 = cute.slice(%tB, %116) : !tB, !cute.coord<"(_,_,10,?)">
        cute.copy(%23, %117, %b0) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, smem, align<16>, "(1,(4,4)):(0,(1,16))">, !b0) -> ()
        %118 = cute.static : !cute.tile<"[1:1;8:1;4:1]">
        %119 = cute.make_coord(%slot) : (i32) -> !cute.coord<"(_,_,_,?)">
        %120 = cute.slice(%tA, %119) : !tA, !cute.coord<"(_,_,_,?)">
        %121 = cute.static : !cute.coord<"(0,0,3)">
        %122 = cute.local_tile(%120, %118, %121) : (!cute.memref<f32, smem, align<64>, S<2,4,3>, "(1,8,16):(0,128,1)">, !cute.tile<"[1:1;8:1;4:1]">, !cute.coord<"(0,0,3)">) -> !cute.memref<f32, smem, align<16>, S<2,4,3>, "(1,8,4):(0,128,1)">
        cute.copy(%23, %122, %a1) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, smem, align<16>, S<2,4,3>, "(1,8,4):(0,128,1)">, !a0) -> ()
        %123 = cute.static : !cute.coord<"(_,_,1)">
        %124 = cute.slice(%a0, %123) : !a0, !cute.coord<"(_,_,1)">
        cute.gemm(%mma, %acc, %124, %b1, %acc) : (!mma, !acc, !cute.memref<f32, rmem, "(1,8):(0,4)">, !b0, !acc) -> ()
        %125 = cute.make_coord(%slot) : (i32) -> !cute.coord<"(_,_,11,?)">
        %126 = cute.slice(%tB, %125) : !tB, !cute.coord<"(_,_,11,?)">
        cute.copy(%23, %126, %b1) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, smem, align<16>, "(1,(4,4)):(0,(1,16))">, !b0) -> ()
        %127 = cute.static : !cute.coord<"(_,_,2)">
        %128 = cute.slice(%a0, %127) : !a0, !cute.coord<"(_,_,2)">
        cute.gemm(%mma, %acc, %128, %b0, %acc) : (!mma, !acc, !cute.memref<f32, rmem, align<8>, "(1,8):(0,4)">, !b0, !acc) -> ()
        %129 = cute.make_coord(%slot) : (i32) -> !cute.coord<"(_,_,12,?)">
        %130 = cute.slice(%tB, %129) : !tB, !cute.coord<"(_,_,12,?)">
        cute.copy(%23, %130, %b0) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, smem, align<16>, "(1,(4,4)):(0,(1,16))">, !b0) -> ()
        %131 = cute.static : !cute.coord<"(_,_,3)">
        %132 = cute.slice(%a0, %131) : !a0, !cute.coord<"(_,_,3)">
        cute.gemm(%mma, %acc, %132, %b1, %acc) : (!mma, !acc, !cute.memref<f32, rmem, "(1,8):(0,4)">, !b0, !acc) -> ()
        %133 = cute.make_coord(%slot) : (i32) -> !cute.coord<"(_,_,13,?)">
        %134 = cute.slice(%tB, %133) : !tB, !cute.coord<"(_,_,13,?)">
        cute.copy(%23, %134, %b1) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, smem, align<16>, "(1,(4,4)):(0,(1,16))">, !b0) -> ()
        %135 = cute.static : !cute.coord<"(_,_,0)">
        %136 = cute.slice(%a1, %135) : !a0, !cute.coord<"(_,_,0)">
        cute.gemm(%mma, %acc, %136, %b0, %acc) : (!mma, !acc, !cute.memref<f32, rmem, align<16>, "(1,8):(0,4)">, !b0, !acc) -> ()
        // All are done with the tile before: its slot gets the tile that comes last.  The next one is there.
        cute_nvgpu.arch.barrier() : () -> ()
        scf.if %leader {
          %157 = arith.addi %arg0, %c3_i32 : i32
          %158 = arith.addi %slot, %c3_i32 : i32
          %159 = arith.remui %158, %c4_i32 : i32
          %160 = cute.get_iter(%20) : !cute.memref<i64, smem, "(4,2):(1,4)">
          %161 = cute.make_int_tuple(%159) : (i32) -> !cute.int_tuple<"?">
          %162 = cute.add_offset(%160, %161) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          cute_nvgpu.arch.mbarrier_arrive_expect_tx(%162, %c16384_i32) : (!cute.ptr<i64, smem>, i32) -> ()
          %163 = arith.muli %157, %c16_i32 : i32
          %164 = cute.atom.set_value(%loadA, %162) {field = tma_bar} : (!loadA, !cute.ptr<i64, smem>) -> !loadA
          %165 = cute.make_int_tuple(%163, %m0) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %166 = cute.static : !cute.layout<"(128,16):(1@1,1@0)">
          %167 = cute.make_view(%165, %166) : !cute.coord_tensor<"(?,?)", "(128,16):(1@1,1@0)">
          %168 = cute.make_coord(%159) : (i32) -> !cute.coord<"(_,_,?)">
          %169 = cute.slice(%sA, %168) : !sA, !cute.coord<"(_,_,?)">
          cute.copy(%164, %167, %169) : (!loadA, !cute.coord_tensor<"(?,?)", "(128,16):(1@1,1@0)">, !cute.memref<f32, smem, align<1024>, S<2,4,3>, "(128,16):(16,1)">) -> ()
          %170 = cute.atom.set_value(%loadB, %162) {field = tma_bar} : (!loadB, !cute.ptr<i64, smem>) -> !loadB
          %171 = cute.make_int_tuple(%n0, %163) : (i32, i32) -> !cute.int_tuple<"(?,?)">
          %172 = cute.static : !cute.layout<"(128,16):(1@0,1@1)">
          %173 = cute.make_view(%171, %172) : !cute.coord_tensor<"(?,?)", "(128,16):(1@0,1@1)">
          %174 = cute.make_coord(%159) : (i32) -> !cute.coord<"(_,_,?)">
          %175 = cute.slice(%sB, %174) : !sB, !cute.coord<"(_,_,?)">
          cute.copy(%170, %173, %175) : (!loadB, !cute.coord_tensor<"(?,?)", "(128,16):(1@0,1@1)">, !cute.memref<f32, smem, align<1024>, "(128,16):(1,128)">) -> ()
        }
        %137 = cute.get_iter(%20) : !cute.memref<i64, smem, "(4,2):(1,4)">
        %138 = cute.make_int_tuple(%67) : (i32) -> !cute.int_tuple<"?">
        %139 = cute.add_offset(%137, %138) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
        cute_nvgpu.arch.mbarrier_wait(%139, %69) : (!cute.ptr<i64, smem>, i32) -> ()
        %140 = cute.make_coord(%slot) : (i32) -> !cute.coord<"(_,_,14,?)">
        %141 = cute.slice(%tB, %140) : !tB, !cute.coord<"(_,_,14,?)">
        cute.copy(%23, %141, %b0) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, smem, align<16>, "(1,(4,4)):(0,(1,16))">, !b0) -> ()
        %142 = cute.static : !cute.tile<"[1:1;8:1;4:1]">
        %143 = cute.make_coord(%67) : (i32) -> !cute.coord<"(_,_,_,?)">
        %144 = cute.slice(%tA, %143) : !tA, !cute.coord<"(_,_,_,?)">
        %145 = cute.static : !cute.coord<"(0,0,0)">
        %146 = cute.local_tile(%144, %142, %145) : (!cute.memref<f32, smem, align<64>, S<2,4,3>, "(1,8,16):(0,128,1)">, !cute.tile<"[1:1;8:1;4:1]">, !cute.coord<"(0,0,0)">) -> !cute.memref<f32, smem, align<64>, S<2,4,3>, "(1,8,4):(0,128,1)">
        cute.copy(%23, %146, %a0) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, smem, align<64>, S<2,4,3>, "(1,8,4):(0,128,1)">, !a0) -> ()
        %147 = cute.static : !cute.coord<"(_,_,1)">
        %148 = cute.slice(%a1, %147) : !a0, !cute.coord<"(_,_,1)">
        cute.gemm(%mma, %acc, %148, %b1, %acc) : (!mma, !acc, !cute.memref<f32, rmem, "(1,8):(0,4)">, !b0, !acc) -> ()
        %149 = cute.make_coord(%slot) : (i32) -> !cute.coord<"(_,_,15,?)">
        %150 = cute.slice(%tB, %149) : !tB, !cute.coord<"(_,_,15,?)">
        cute.copy(%23, %150, %b1) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, smem, align<16>, "(1,(4,4)):(0,(1,16))">, !b0) -> ()
        %151 = cute.static : !cute.coord<"(_,_,2)">
        %152 = cute.slice(%a1, %151) : !a0, !cute.coord<"(_,_,2)">
        cute.gemm(%mma, %acc, %152, %b0, %acc) : (!mma, !acc, !cute.memref<f32, rmem, align<8>, "(1,8):(0,4)">, !b0, !acc) -> ()
        %153 = cute.make_coord(%67) : (i32) -> !cute.coord<"(_,_,0,?)">
        %154 = cute.slice(%tB, %153) : !tB, !cute.coord<"(_,_,0,?)">
        cute.copy(%23, %154, %b0) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, smem, align<16>, "(1,(4,4)):(0,(1,16))">, !b0) -> ()
        %155 = cute.static : !cute.coord<"(_,_,3)">
        %156 = cute.slice(%a1, %155) : !a0, !cute.coord<"(_,_,3)">
        cute.gemm(%mma, %acc, %156, %b1, %acc) : (!mma, !acc, !cute.memref<f32, rmem, "(1,8):(0,4)">, !b0, !acc) -> ()
        scf.yield %67, %69 : i32, i32
      }
      // Tiles that are still under way.
      %35 = arith.addi %34#0, %c1_i32 : i32
      %36 = arith.cmpi eq, %35, %c4_i32 : i32
      %37 = arith.select %36, %c0_i32, %35 : i32
      %38 = arith.extui %36 : i1 to i32
      %39 = arith.xori %34#1, %38 : i32
      %40 = cute.get_iter(%20) : !cute.memref<i64, smem, "(4,2):(1,4)">
      %41 = cute.make_int_tuple(%37) : (i32) -> !cute.int_tuple<"?">
      %42 = cute.add_offset(%40, %41) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
      cute_nvgpu.arch.mbarrier_wait(%42, %39) : (!cute.ptr<i64, smem>, i32) -> ()
      %43 = arith.addi %37, %c1_i32 : i32
      %44 = arith.cmpi eq, %43, %c4_i32 : i32
      %45 = arith.select %44, %c0_i32, %43 : i32
      %46 = arith.extui %44 : i1 to i32
      %47 = arith.xori %39, %46 : i32
      %48 = cute.get_iter(%20) : !cute.memref<i64, smem, "(4,2):(1,4)">
      %49 = cute.make_int_tuple(%45) : (i32) -> !cute.int_tuple<"?">
      %50 = cute.add_offset(%48, %49) : (!cute.ptr<i64, smem>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
      cute_nvgpu.arch.mbarrier_wait(%50, %47) : (!cute.ptr<i64, smem>, i32) -> ()
      %51 = arith.addi %45, %c1_i32 : i32
      %52 = arith.cmpi eq, %51, %c4_i32 : i32
      %53 = arith.select %52, %c0_i32, %51 : i32
      %54 = arith.extui %52 : i1 to i32
      %55 = arith.xori %47, %54 : i32
      // The sums in registers of their own: a store of 128 bits wants four in a row, the FMAs want free choice.
      %sums = cute.make_fragment_like(%acc) : !acc -> !acc
      scf.for %arg0 = %c0_i32 to %c128_i32 step %c1_i32 : i32 {
        %65 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
        %66 = cute.memref.load(%acc, %65) : (!acc, !cute.coord<"?">) -> f32
        %cst = arith.constant 0.000000e+00 : f32
        %67 = arith.addf %66, %cst fastmath<contract> : f32
        %68 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
        cute.memref.store(%sums, %68, %67) : (!acc, !cute.coord<"?">, f32) -> ()
      }
      // Write C; at an edge, the elements that lie in it.
      %56 = cute.get_layout(%mC) : !vec
      %shapeC = cute.get_shape(%56) : !cute.layout<"(?,?{div=4}):(?{div=4},1)"> -> !cute.shape<"(?,?{div=4})">
      %57 = cute.get_layout(%mC) : !vec
      %58 = cute.get_shape(%57) : !cute.layout<"(?,?{div=4}):(?{div=4},1)"> -> !cute.shape<"(?,?{div=4})">
      %59 = cute.make_identity_layout(%58) : !cute.shape<"(?,?{div=4})"> -> !cute.layout<"(?,?{div=4}):(1@0,1@1)">
      %60 = cute.static : !cute.int_tuple<"(0,0)">
      %mIds = cute.make_view(%60, %59) : !ids
      %61 = cute.static : !cute.tile<"[128:1;128:1]">
      %62 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %idsC = cute.local_tile(%mIds, %61, %62) : (!ids, !cute.tile<"[128:1;128:1]">, !cute.coord<"(?,?)">) -> !idsC
      %63 = cute.static : !cute.coord<"16383">
      %64 = cute.memref.load(%idsC, %63) : (!idsC, !cute.coord<"16383">) -> !cute.int_tuple<"(?,?)">
      %whole = cute.elem_less(%64, %shapeC) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?{div=4})">) -> i1
      %store = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
      scf.if %whole {
        cute.copy(%store, %sums, %tC) : (!cute_nvgpu.atom.universal_copy<f32>, !acc, !tC) -> ()
      } else {
        %65 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %xC = cute.tiled.mma.partition_C(%mma, %idsC, %65) : (!mma, !idsC, !cute.coord<"?">) -> !xC
        %pC = cute.make_fragment_like(%xC) [i1] : !xC -> !pC
        scf.for %arg0 = %c0_i32 to %c128_i32 step %c1_i32 : i32 {
          %66 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
          %67 = cute.memref.load(%xC, %66) : (!xC, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %68 = cute.elem_less(%67, %shapeC) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?{div=4})">) -> i1
          %69 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
          cute.memref.store(%pC, %69, %68) : (!pC, !cute.coord<"?">, i1) -> ()
        }
        cute.copy(%store, %sums, %tC, pred = %pC) : (!cute_nvgpu.atom.universal_copy<f32>, !acc, !tC, !pC) -> ()
      }
      gpu.return
    }
    gpu.func @sgemm_any(%mA: !mat, %mB: !mat, %mC: !mat) kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 2 : i32} {
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
      %loadA = cute.make_tiled_copy(%4) : !loadA2
      %5 = cute.get_layout(%mA) : !mat
      %6 = cute.get_shape(%5) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
      %7 = cute.make_identity_layout(%6) : !cute.shape<"(?,?)"> -> !cute.layout<"(?,?):(1@0,1@1)">
      %8 = cute.static : !cute.int_tuple<"(0,0)">
      %idsA = cute.make_view(%8, %7) : !ids2
      %9 = cute.get_layout(%mA) : !mat
      %shapeA = cute.get_shape(%9) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
      %mBt = cute.select<[1, 0]> (%mB) : !mat -> !mBt2
      %10 = cute.atom() : !cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>
      %11 = cute.atom() : !cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>
      %loadB = cute.make_tiled_copy(%11) : !loadB2
      %12 = cute.get_layout(%mBt) : !mBt2
      %13 = cute.get_shape(%12) : !cute.layout<"(?,?):(1,?)"> -> !cute.shape<"(?,?)">
      %14 = cute.make_identity_layout(%13) : !cute.shape<"(?,?)"> -> !cute.layout<"(?,?):(1@0,1@1)">
      %15 = cute.static : !cute.int_tuple<"(0,0)">
      %idsB = cute.make_view(%15, %14) : !ids2
      %16 = cute.get_layout(%mBt) : !mBt2
      %shapeB = cute.get_shape(%16) : !cute.layout<"(?,?):(1,?)"> -> !cute.shape<"(?,?)">
      // How the threads multiply; this thread's elements of C.
      %17 = cute.atom() : !cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f32)>
      %mma = cute.make_tiled_mma(%17) : !mma2
      %18 = cute.static : !cute.tile<"[128:1;128:1]">
      %19 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %gC = cute.local_tile(%mC, %18, %19) : (!mat, !cute.tile<"[128:1;128:1]">, !cute.coord<"(?,?)">) -> !gC2
      %20 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %tC = cute.tiled.mma.partition_C(%mma, %gC, %20) : (!mma2, !gC2, !cute.coord<"?">) -> !tC2
      %acc = cute.tiled.mma.make_fragment_C(%mma, %tC) : (!mma2, !tC2) -> !acc2
      cute.clear(%acc) : (!acc2) -> ()
      %sA = cute.memref.alloc_smem() : !sA2
      %sB = cute.memref.alloc_smem() : !sB2
      %21 = cute.get_layout(%mA) : !mat
      %22 = cute.get_shape(%21) : !cute.layout<"(?,?):(?,1)"> -> !cute.shape<"(?,?)">
      %23:2 = cute.get_scalars (%22) : !cute.shape<"(?,?)">
      %tiles = arith.ceildivsi %23#1, %c16_i32 : i32
      // The first 2 tiles; a tile beyond the last one is zeros.
      %24 = cute.static : !cute.tile<"[128:1;16:1]">
      %25 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,0)">
      %26 = cute.local_tile(%mA, %24, %25) : (!mat, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,0)">) -> !cute.memref<f32, gmem, "(128,16):(?,1)">
      %27 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %tA = cute.tiled.copy.partition_S(%loadA, %26, %27) : (!loadA2, !cute.memref<f32, gmem, "(128,16):(?,1)">, !cute.coord<"?">) -> !tA2
      %28 = cute.static : !cute.tile<"[128:1;16:1]">
      %29 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,0)">
      %30 = cute.local_tile(%idsA, %28, %29) : (!ids2, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,0)">) -> !cute.coord_tensor<"(?{div=128},0)", "(128,16):(1@0,1@1)">
      %31 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %xA = cute.tiled.copy.partition_S(%loadA, %30, %31) : (!loadA2, !cute.coord_tensor<"(?{div=128},0)", "(128,16):(1@0,1@1)">, !cute.coord<"?">) -> !xA
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
      %37 = cute.slice(%sA, %36) : !sA2, !cute.coord<"(_,_,0)">
      %38 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %dA = cute.tiled.copy.partition_D(%loadA, %37, %38) : (!loadA2, !cute.memref<f32, smem, align<512>, S<2,4,3>, "(128,16):(16,1)">, !cute.coord<"?">) -> !dA
      cute.copy(%3, %tA, %dA, pred = %pA) : (!cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>, !tA2, !dA, !pA) -> ()
      %39 = cute.static : !cute.tile<"[128:1;16:1]">
      %40 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,0)">
      %41 = cute.local_tile(%mBt, %39, %40) : (!mBt2, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,0)">) -> !cute.memref<f32, gmem, "(128,16):(1,?)">
      %42 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %tB = cute.tiled.copy.partition_S(%loadB, %41, %42) : (!loadB2, !cute.memref<f32, gmem, "(128,16):(1,?)">, !cute.coord<"?">) -> !tB2
      %43 = cute.static : !cute.tile<"[128:1;16:1]">
      %44 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,0)">
      %45 = cute.local_tile(%idsB, %43, %44) : (!ids2, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,0)">) -> !cute.coord_tensor<"(?{div=128},0)", "(128,16):(1@0,1@1)">
      %46 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %xB = cute.tiled.copy.partition_S(%loadB, %45, %46) : (!loadB2, !cute.coord_tensor<"(?{div=128},0)", "(128,16):(1@0,1@1)">, !cute.coord<"?">) -> !xB
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
      %52 = cute.slice(%sB, %51) : !sB2, !cute.coord<"(_,_,0)">
      %53 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %dB = cute.tiled.copy.partition_D(%loadB, %52, %53) : (!loadB2, !cute.memref<f32, smem, align<16>, "(128,16):(1,128)">, !cute.coord<"?">) -> !dB
      cute.copy(%10, %tB, %dB, pred = %pB) : (!cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>, !tB2, !dB, !pB) -> ()
      cute_nvgpu.arch.cp_async_commit_group() : () -> ()
      %54 = cute.static : !cute.tile<"[128:1;16:1]">
      %55 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,1)">
      %56 = cute.local_tile(%mA, %54, %55) : (!mat, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,1)">) -> !cute.memref<f32, gmem, "(128,16):(?,1)">
      %57 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %tA_0 = cute.tiled.copy.partition_S(%loadA, %56, %57) : (!loadA2, !cute.memref<f32, gmem, "(128,16):(?,1)">, !cute.coord<"?">) -> !tA2
      %58 = cute.static : !cute.tile<"[128:1;16:1]">
      %59 = cute.make_coord(%row) : (i32) -> !cute.coord<"(?,1)">
      %60 = cute.local_tile(%idsA, %58, %59) : (!ids2, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,1)">) -> !cute.coord_tensor<"(?{div=128},16)", "(128,16):(1@0,1@1)">
      %61 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %xA_1 = cute.tiled.copy.partition_S(%loadA, %60, %61) : (!loadA2, !cute.coord_tensor<"(?{div=128},16)", "(128,16):(1@0,1@1)">, !cute.coord<"?">) -> !xA
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
      %67 = cute.slice(%sA, %66) : !sA2, !cute.coord<"(_,_,1)">
      %68 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %dA_3 = cute.tiled.copy.partition_D(%loadA, %67, %68) : (!loadA2, !cute.memref<f32, smem, align<512>, S<2,4,3>, "(128,16):(16,1)">, !cute.coord<"?">) -> !dA
      cute.copy(%3, %tA_0, %dA_3, pred = %pA_2) : (!cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>, !tA2, !dA, !pA) -> ()
      %69 = cute.static : !cute.tile<"[128:1;16:1]">
      %70 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,1)">
      %71 = cute.local_tile(%mBt, %69, %70) : (!mBt2, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,1)">) -> !cute.memref<f32, gmem, "(128,16):(1,?)">
      %72 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %tB_4 = cute.tiled.copy.partition_S(%loadB, %71, %72) : (!loadB2, !cute.memref<f32, gmem, "(128,16):(1,?)">, !cute.coord<"?">) -> !tB2
      %73 = cute.static : !cute.tile<"[128:1;16:1]">
      %74 = cute.make_coord(%column) : (i32) -> !cute.coord<"(?,1)">
      %75 = cute.local_tile(%idsB, %73, %74) : (!ids2, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,1)">) -> !cute.coord_tensor<"(?{div=128},16)", "(128,16):(1@0,1@1)">
      %76 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %xB_5 = cute.tiled.copy.partition_S(%loadB, %75, %76) : (!loadB2, !cute.coord_tensor<"(?{div=128},16)", "(128,16):(1@0,1@1)">, !cute.coord<"?">) -> !xB
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
      %82 = cute.slice(%sB, %81) : !sB2, !cute.coord<"(_,_,1)">
      %83 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %dB_7 = cute.tiled.copy.partition_D(%loadB, %82, %83) : (!loadB2, !cute.memref<f32, smem, align<16>, "(128,16):(1,128)">, !cute.coord<"?">) -> !dB
      cute.copy(%10, %tB_4, %dB_7, pred = %pB_6) : (!cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>, !tB2, !dB, !pB) -> ()
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
        %tA_8 = cute.tiled.copy.partition_S(%loadA, %96, %97) : (!loadA2, !cute.memref<f32, gmem, "(128,16):(?,1)">, !cute.coord<"?">) -> !tA2
        %98 = cute.static : !cute.tile<"[128:1;16:1]">
        %99 = cute.make_coord(%row, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %100 = cute.local_tile(%idsA, %98, %99) : (!ids2, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,?)">) -> !cute.coord_tensor<"(?{div=128},?{div=16})", "(128,16):(1@0,1@1)">
        %101 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %xA_9 = cute.tiled.copy.partition_S(%loadA, %100, %101) : (!loadA2, !cute.coord_tensor<"(?{div=128},?{div=16})", "(128,16):(1@0,1@1)">, !cute.coord<"?">) -> !xA
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
        %107 = cute.slice(%sA, %106) : !sA2, !cute.coord<"(_,_,?)">
        %108 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %dA_11 = cute.tiled.copy.partition_D(%loadA, %107, %108) : (!loadA2, !cute.memref<f32, smem, align<512>, S<2,4,3>, "(128,16):(16,1)">, !cute.coord<"?">) -> !dA
        cute.copy(%3, %tA_8, %dA_11, pred = %pA_10) : (!cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>, !tA2, !dA, !pA) -> ()
        %109 = cute.static : !cute.tile<"[128:1;16:1]">
        %110 = cute.make_coord(%column, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %111 = cute.local_tile(%mBt, %109, %110) : (!mBt2, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,?)">) -> !cute.memref<f32, gmem, "(128,16):(1,?)">
        %112 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %tB_12 = cute.tiled.copy.partition_S(%loadB, %111, %112) : (!loadB2, !cute.memref<f32, gmem, "(128,16):(1,?)">, !cute.coord<"?">) -> !tB2
        %113 = cute.static : !cute.tile<"[128:1;16:1]">
        %114 = cute.make_coord(%column, %ahead) : (i32, i32) -> !cute.coord<"(?,?)">
        %115 = cute.local_tile(%idsB, %113, %114) : (!ids2, !cute.tile<"[128:1;16:1]">, !cute.coord<"(?,?)">) -> !cute.coord_tensor<"(?{div=128},?{div=16})", "(128,16):(1@0,1@1)">
        %116 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %xB_13 = cute.tiled.copy.partition_S(%loadB, %115, %116) : (!loadB2, !cute.coord_tensor<"(?{div=128},?{div=16})", "(128,16):(1@0,1@1)">, !cute.coord<"?">) -> !xB
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
        %122 = cute.slice(%sB, %121) : !sB2, !cute.coord<"(_,_,?)">
        %123 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %dB_15 = cute.tiled.copy.partition_D(%loadB, %122, %123) : (!loadB2, !cute.memref<f32, smem, align<16>, "(128,16):(1,128)">, !cute.coord<"?">) -> !dB
        cute.copy(%10, %tB_12, %dB_15, pred = %pB_14) : (!cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>, !tB2, !dB, !pB) -> ()
        cute_nvgpu.arch.cp_async_commit_group() : () -> ()
        // Multiply, two columns at a time.
        %stage = arith.remui %arg0, %c3_i32 : i32
        %124 = cute.make_coord(%stage) : (i32) -> !cute.coord<"(_,_,?)">
        %125 = cute.slice(%sA, %124) : !sA2, !cute.coord<"(_,_,?)">
        %126 = cute.make_coord(%stage) : (i32) -> !cute.coord<"(_,_,?)">
        %127 = cute.slice(%sB, %126) : !sB2, !cute.coord<"(_,_,?)">
        scf.for %arg1 = %c0_i32 to %c8_i32 step %c1_i32 : i32 {
          %128 = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
          %129 = cute.static : !cute.tile<"[128:1;2:1]">
          %130 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(0,?)">
          %131 = cute.local_tile(%125, %129, %130) : (!cute.memref<f32, smem, align<512>, S<2,4,3>, "(128,16):(16,1)">, !cute.tile<"[128:1;2:1]">, !cute.coord<"(0,?)">) -> !cute.memref<f32, smem, align<8>, S<2,4,3>, "(128,2):(16,1)">
          %132 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
          %sAk = cute.tiled.mma.partition_A(%mma, %131, %132) : (!mma2, !cute.memref<f32, smem, align<8>, S<2,4,3>, "(128,2):(16,1)">, !cute.coord<"?">) -> !sAk
          %rA = cute.tiled.mma.make_fragment_A(%mma, %sAk) : (!mma2, !sAk) -> !rA
          cute.copy(%128, %sAk, %rA) : (!cute_nvgpu.atom.universal_copy<f32>, !sAk, !rA) -> ()
          %133 = cute.static : !cute.tile<"[128:1;2:1]">
          %134 = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(0,?)">
          %135 = cute.local_tile(%127, %133, %134) : (!cute.memref<f32, smem, align<16>, "(128,16):(1,128)">, !cute.tile<"[128:1;2:1]">, !cute.coord<"(0,?)">) -> !cute.memref<f32, smem, align<16>, "(128,2):(1,128)">
          %136 = cute.static : !cute.tile<"[128:1;1:1]">
          %137 = cute.static : !cute.coord<"(0,0)">
          %138 = cute.local_tile(%135, %136, %137) : (!cute.memref<f32, smem, align<16>, "(128,2):(1,128)">, !cute.tile<"[128:1;1:1]">, !cute.coord<"(0,0)">) -> !cute.memref<f32, smem, align<16>, "(128,1):(1,128)">
          %139 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
          %sBk = cute.tiled.mma.partition_B(%mma, %138, %139) : (!mma2, !cute.memref<f32, smem, align<16>, "(128,1):(1,128)">, !cute.coord<"?">) -> !sBk
          %rB = cute.tiled.mma.make_fragment_B(%mma, %sBk) : (!mma2, !sBk) -> !rB
          cute.copy(%128, %sBk, %rB) : (!cute_nvgpu.atom.universal_copy<f32>, !sBk, !rB) -> ()
          %140 = cute.static : !cute.coord<"(_,_,0)">
          %141 = cute.slice(%rA, %140) : !rA, !cute.coord<"(_,_,0)">
          %142 = cute.static : !cute.coord<"(_,_,0)">
          %143 = cute.slice(%rB, %142) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%mma, %acc, %141, %143, %acc) : (!mma2, !acc2, !cute.memref<f32, rmem, align<32>, "(1,8):(0,1)">, !cute.memref<f32, rmem, align<32>, "(1,(4,2)):(0,(1,4))">, !acc2) -> ()
          %144 = cute.static : !cute.tile<"[128:1;1:1]">
          %145 = cute.static : !cute.coord<"(0,1)">
          %146 = cute.local_tile(%135, %144, %145) : (!cute.memref<f32, smem, align<16>, "(128,2):(1,128)">, !cute.tile<"[128:1;1:1]">, !cute.coord<"(0,1)">) -> !cute.memref<f32, smem, align<16>, "(128,1):(1,128)">
          %147 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
          %sBk_16 = cute.tiled.mma.partition_B(%mma, %146, %147) : (!mma2, !cute.memref<f32, smem, align<16>, "(128,1):(1,128)">, !cute.coord<"?">) -> !sBk
          %rB_17 = cute.tiled.mma.make_fragment_B(%mma, %sBk_16) : (!mma2, !sBk) -> !rB
          cute.copy(%128, %sBk_16, %rB_17) : (!cute_nvgpu.atom.universal_copy<f32>, !sBk, !rB) -> ()
          %148 = cute.static : !cute.coord<"(_,_,1)">
          %149 = cute.slice(%rA, %148) : !rA, !cute.coord<"(_,_,1)">
          %150 = cute.static : !cute.coord<"(_,_,0)">
          %151 = cute.slice(%rB_17, %150) : !rB, !cute.coord<"(_,_,0)">
          cute.gemm(%mma, %acc, %149, %151, %acc) : (!mma2, !acc2, !cute.memref<f32, rmem, align<32>, "(1,8):(0,1)">, !cute.memref<f32, rmem, align<32>, "(1,(4,2)):(0,(1,4))">, !acc2) -> ()
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
      %mIds = cute.make_view(%88, %87) : !ids2
      %89 = cute.static : !cute.tile<"[128:1;128:1]">
      %90 = cute.make_coord(%row, %column) : (i32, i32) -> !cute.coord<"(?,?)">
      %idsC = cute.local_tile(%mIds, %89, %90) : (!ids2, !cute.tile<"[128:1;128:1]">, !cute.coord<"(?,?)">) -> !idsC
      %91 = cute.static : !cute.coord<"16383">
      %92 = cute.memref.load(%idsC, %91) : (!idsC, !cute.coord<"16383">) -> !cute.int_tuple<"(?,?)">
      %whole = cute.elem_less(%92, %shapeC) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
      %store = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
      scf.if %whole {
        cute.copy(%store, %acc, %tC) : (!cute_nvgpu.atom.universal_copy<f32>, !acc2, !tC2) -> ()
      } else {
        %93 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %xC = cute.tiled.mma.partition_C(%mma, %idsC, %93) : (!mma2, !idsC, !cute.coord<"?">) -> !xC2
        %pC = cute.make_fragment_like(%xC) [i1] : !xC2 -> !pC2
        scf.for %arg0 = %c0_i32 to %c64_i32 step %c1_i32 : i32 {
          %94 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
          %95 = cute.memref.load(%xC, %94) : (!xC2, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
          %96 = cute.elem_less(%95, %shapeC) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
          %97 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"?">
          cute.memref.store(%pC, %97, %96) : (!pC2, !cute.coord<"?">, i1) -> ()
        }
        cute.copy(%store, %acc, %tC, pred = %pC) : (!cute_nvgpu.atom.universal_copy<f32>, !acc2, !tC2, !pC2) -> ()
      }
      gpu.return
    }
  }
  func.func @launch(%mA: !vec, %mB: !vec, %mC: !vec) attributes {cute.fallback = @launch_any} {
    %c1_i32 = arith.constant 1 : i32
    %c128_i32 = arith.constant 128 : i32
    %c16_i32 = arith.constant 16 : i32
    %c15_i32 = arith.constant 15 : i32
    %0 = cute.get_layout(%mA) : !vec
    %1 = cute.get_shape(%0) : !cute.layout<"(?,?{div=4}):(?{div=4},1)"> -> !cute.shape<"(?,?{div=4})">
    %2:2 = cute.get_scalars (%1) : !cute.shape<"(?,?{div=4})">
    %3 = cute.get_layout(%mB) : !vec
    %4 = cute.get_shape(%3) : !cute.layout<"(?,?{div=4}):(?{div=4},1)"> -> !cute.shape<"(?,?{div=4})">
    %5:2 = cute.get_scalars (%4) : !cute.shape<"(?,?{div=4})">
    %6 = cute.get_layout(%mC) : !vec
    %7 = cute.get_shape(%6) : !cute.layout<"(?,?{div=4}):(?{div=4},1)"> -> !cute.shape<"(?,?{div=4})">
    %8:2 = cute.get_scalars (%7) : !cute.shape<"(?,?{div=4})">
    %9 = arith.cmpi eq, %2#1, %5#0 : i32
    %10 = arith.cmpi eq, %2#0, %8#0 : i32
    %11 = arith.cmpi eq, %5#1, %8#1 : i32
    cf.assert %9, "A and B must have the same K"
    cf.assert %10, "A and C must have the same M"
    cf.assert %11, "B and C must have the same N"
    // One block a tile of C.
    %12 = cute.static : !cute.layout<"(128,16):(16,1)">
    %13 = cute.static : !cute.tile<"[128:1;16:1]">
    %14:2 = cute_nvgpu.make_tma_load(%mA, %12, %13) {l2 = 256 : i32, swizzle = 64 : i32} : (!vec, !cute.layout<"(128,16):(16,1)">, !cute.tile<"[128:1;16:1]">) -> (!loadA, !cute.coord_tensor<"(0,0)", "(?,?{div=4}):(1@1,1@0)">)
    %mBt = cute.select<[1, 0]> (%mB) : !vec -> !mBt
    %15 = cute.static : !cute.layout<"(128,16):(1,128)">
    %16 = cute.static : !cute.tile<"[128:1;16:1]">
    %17:2 = cute_nvgpu.make_tma_load(%mBt, %15, %16) {l2 = 256 : i32} : (!mBt, !cute.layout<"(128,16):(1,128)">, !cute.tile<"[128:1;16:1]">) -> (!loadB, !cute.coord_tensor<"(0,0)", "(?{div=4},?):(1@0,1@1)">)
    %18 = cute.get_layout(%mA) : !vec
    %19 = cute.get_shape(%18) : !cute.layout<"(?,?{div=4}):(?{div=4},1)"> -> !cute.shape<"(?,?{div=4})">
    %20:2 = cute.get_scalars (%19) : !cute.shape<"(?,?{div=4})">
    %21 = arith.addi %20#1, %c15_i32 : i32
    %22 = arith.divui %21, %c16_i32 : i32
    %23 = arith.ceildivsi %8#0, %c128_i32 : i32
    %24 = arith.ceildivsi %8#1, %c128_i32 : i32
    %25 = arith.muli %23, %24 : i32
    gpu.launch_func @kernels::@sgemm blocks in (%25, %c1_i32, %c1_i32) threads in (%c128_i32, %c1_i32, %c1_i32) : i32 args(%14#0 : !loadA, %17#0 : !loadB, %22 : i32, %mC : !vec)
    return
  }
  func.func @launch_any(%mA: !mat, %mB: !mat, %mC: !mat) {
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
    gpu.launch_func @kernels::@sgemm_any blocks in (%14, %c1_i32, %c1_i32) threads in (%c256_i32, %c1_i32, %c1_i32) : i32 args(%mA : !mat, %mB : !mat, %mC : !mat)
    return
  }
}
