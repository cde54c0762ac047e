// B = A^T for matrices of f32, any shape, any strides.
//
// A block of 256 threads takes a tile of 64 x 64 elements of A through shared memory.  @transpose assumes
// nothing of the strides and moves single elements.  @transpose_v takes contiguous rows, row strides of whole 16 bytes
// and aligned pointers: all accesses inside the matrix have 128 bits.  The launch takes @transpose_v when it can.

!any = !cute.memref<f32, gmem, "(?,?):(?,?)">
!vec = !cute.memref<f32, gmem, align<16>, "(?,?):(?{div=4},1)">
!gA = !cute.memref<f32, gmem, "(64,64):(?,?)">
!mIds = !cute.coord_tensor<"(0,0)", "(?,?):(1@0,1@1)">
!ids_tile = !cute.coord_tensor<"(?{div=64},?{div=64})", "(64,64):(1@0,1@1)">
!smem = !cute.memref<f32, smem, align<4096>, S<5,2,5>, "(64,(32,2)):(32,(1,2048))">
!load = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"((64,4),(1,16)):((64,1),(4096,4))">, tiler_mn = <"[64:1;64:1]">>
!tA = !cute.memref<f32, gmem, "((1,16),1,1):((0,?{div=4}),0,0)">
!tS = !cute.memref<f32, smem, S<5,2,5>, "((1,16),1,1):((0,128),0,0)">
!regs = !cute.memref<f32, rmem, align<32>, "((1,16),1,1):((0,1),0,0)">
!store = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"((64,4),(1,16)):((1,64),(64,256))">, tiler_mn = <"[64:1;64:1]">>
!tT = !cute.memref<f32, smem, S<5,2,5>, "((1,(8,2)),1,1):((0,(4,2048)),0,0)">
!regs2 = !cute.memref<f32, rmem, align<32>, "((1,(8,2)),1,1):((0,(1,8)),0,0)">
!gA2 = !cute.memref<f32, gmem, align<16>, "(64,64):(?{div=4},1)">
!mBt = !cute.memref<f32, gmem, align<16>, "(?,?):(1,?{div=4})">
!gB = !cute.memref<f32, gmem, align<16>, "(64,64):(1,?{div=4})">
!smem_v = !cute.memref<f32, smem, align<1024>, S<3,4,3>, "((32,2),(4,16)):((1,2048),(512,32))">
!load_v = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"((16,16),(4,4)):((256,4),(64,1))">, tiler_mn = <"[64:1;64:1]">>
!tA2 = !cute.memref<f32, gmem, align<16>, "((1,(4,4)),1,1):((0,(1,?{div=4})),0,0)">
!tS2 = !cute.memref<f32, smem, align<16>, S<3,4,3>, "((1,(4,4)),1,1):((0,(512,1)),0,0)">
!regs3 = !cute.memref<f32, rmem, align<32>, "((1,(4,4)),1,1):((0,(1,4)),0,0)">
!store_v = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"((16,16),(4,4)):((4,256),(1,64))">, tiler_mn = <"[64:1;64:1]">>
!tT2 = !cute.memref<f32, smem, align<16>, S<3,4,3>, "((1,(4,4)),1,1):((0,(1,512)),0,0)">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @transpose(%mA: !any, %mB: !any) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c256_i32 = arith.constant 256 : i32
      %c4096_i32 = arith.constant 4096 : i32
      %c64_i32 = arith.constant 64 : i32
      // This block's tile of A, of B seen as (m, n), and of the coordinates.
      %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %bid = nvvm.read.ptx.sreg.ctaid.x : i32
      %0 = cute.get_layout(%mA) : !any
      %1 = cute.get_shape(%0) : !cute.layout<"(?,?):(?,?)"> -> !cute.shape<"(?,?)">
      %2:2 = cute.get_scalars (%1) : !cute.shape<"(?,?)">
      %across = arith.ceildivsi %2#1, %c64_i32 : i32
      %3 = arith.divsi %bid, %across : i32
      %4 = arith.remsi %bid, %across : i32
      %5 = cute.get_layout(%mA) : !any
      %mn = cute.get_shape(%5) : !cute.layout<"(?,?):(?,?)"> -> !cute.shape<"(?,?)">
      %6 = cute.static : !cute.tile<"[64:1;64:1]">
      %7 = cute.make_coord(%3, %4) : (i32, i32) -> !cute.coord<"(?,?)">
      %gA = cute.local_tile(%mA, %6, %7) : (!any, !cute.tile<"[64:1;64:1]">, !cute.coord<"(?,?)">) -> !gA
      %mBt = cute.select<[1, 0]> (%mB) : !any -> !any
      %8 = cute.static : !cute.tile<"[64:1;64:1]">
      %9 = cute.make_coord(%3, %4) : (i32, i32) -> !cute.coord<"(?,?)">
      %gB = cute.local_tile(%mBt, %8, %9) : (!any, !cute.tile<"[64:1;64:1]">, !cute.coord<"(?,?)">) -> !gA
      %10 = cute.get_layout(%mA) : !any
      %11 = cute.get_shape(%10) : !cute.layout<"(?,?):(?,?)"> -> !cute.shape<"(?,?)">
      %12 = cute.make_identity_layout(%11) : !cute.shape<"(?,?)"> -> !cute.layout<"(?,?):(1@0,1@1)">
      %13 = cute.static : !cute.int_tuple<"(0,0)">
      %mIds = cute.make_view(%13, %12) : !mIds
      %14 = cute.static : !cute.tile<"[64:1;64:1]">
      %15 = cute.make_coord(%3, %4) : (i32, i32) -> !cute.coord<"(?,?)">
      %ids = cute.local_tile(%mIds, %14, %15) : (!mIds, !cute.tile<"[64:1;64:1]">, !cute.coord<"(?,?)">) -> !ids_tile
      %16 = cute.static : !cute.coord<"4095">
      %17 = cute.memref.load(%ids, %16) : (!ids_tile, !cute.coord<"4095">) -> !cute.int_tuple<"(?,?)">
      %whole = cute.elem_less(%17, %mn) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
      %atom = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
      %sT = cute.memref.alloc_smem() : !smem
      scf.if %whole {
        // A thread's elements of A, through registers to shared memory.
        %18 = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
        %load = cute.make_tiled_copy(%18) : !load
        %19 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %tA = cute.tiled.copy.partition_S(%load, %gA, %19) : (!load, !gA, !cute.coord<"?">) -> !tA
        %20 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %tS = cute.tiled.copy.partition_D(%load, %sT, %20) : (!load, !smem, !cute.coord<"?">) -> !tS
        %r = cute.make_fragment_like(%tA) : !tA -> !regs
        cute.copy(%atom, %tA, %r) : (!cute_nvgpu.atom.universal_copy<f32>, !tA, !regs) -> ()
        cute.copy(%atom, %r, %tS) : (!cute_nvgpu.atom.universal_copy<f32>, !regs, !tS) -> ()
      } else {
        // At an edge, element by element along the rows of A.
        scf.for %arg0 = %tid to %c4096_i32 step %c256_i32 : i32 {
          %18 = arith.remui %arg0, %c64_i32 : i32
          %19 = arith.divui %arg0, %c64_i32 : i32
          %20 = cute.make_coord(%19, %18) : (i32, i32) -> !cute.coord<"(?,?)">
          %21 = cute.memref.load(%ids, %20) : (!ids_tile, !cute.coord<"(?,?)">) -> !cute.int_tuple<"(?,?)">
          %22 = cute.elem_less(%21, %mn) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
          scf.if %22 {
            %23 = cute.memref.load(%gA, %20) : (!gA, !cute.coord<"(?,?)">) -> f32
            cute.memref.store(%sT, %20, %23) : (!smem, !cute.coord<"(?,?)">, f32) -> ()
          }
        }
      }
      cute_nvgpu.arch.barrier() : () -> ()
      scf.if %whole {
        // The tile as rows of B.
        %18 = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
        %store = cute.make_tiled_copy(%18) : !store
        %19 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %tT = cute.tiled.copy.partition_S(%store, %sT, %19) : (!store, !smem, !cute.coord<"?">) -> !tT
        %20 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %tB = cute.tiled.copy.partition_D(%store, %gB, %20) : (!store, !gA, !cute.coord<"?">) -> !tA
        %q = cute.make_fragment_like(%tT) : !tT -> !regs2
        cute.copy(%atom, %tT, %q) : (!cute_nvgpu.atom.universal_copy<f32>, !tT, !regs2) -> ()
        cute.copy(%atom, %q, %tB) : (!cute_nvgpu.atom.universal_copy<f32>, !regs2, !tA) -> ()
      } else {
        // At an edge, element by element along the rows of B.
        scf.for %arg0 = %tid to %c4096_i32 step %c256_i32 : i32 {
          %18 = arith.remui %arg0, %c64_i32 : i32
          %19 = arith.divui %arg0, %c64_i32 : i32
          %20 = cute.make_coord(%18, %19) : (i32, i32) -> !cute.coord<"(?,?)">
          %21 = cute.memref.load(%ids, %20) : (!ids_tile, !cute.coord<"(?,?)">) -> !cute.int_tuple<"(?,?)">
          %22 = cute.elem_less(%21, %mn) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
          scf.if %22 {
            %23 = cute.memref.load(%sT, %20) : (!smem, !cute.coord<"(?,?)">) -> f32
            cute.memref.store(%gB, %20, %23) : (!gA, !cute.coord<"(?,?)">, f32) -> ()
          }
        }
      }
      gpu.return
    }
    gpu.func @transpose_v(%mA: !vec, %mB: !vec) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c256_i32 = arith.constant 256 : i32
      %c4096_i32 = arith.constant 4096 : i32
      %c64_i32 = arith.constant 64 : i32
      // This block's tile of A, of B seen as (m, n), and of the coordinates.
      %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %bid = nvvm.read.ptx.sreg.ctaid.x : i32
      %0 = cute.get_layout(%mA) : !vec
      %1 = cute.get_shape(%0) : !cute.layout<"(?,?):(?{div=4},1)"> -> !cute.shape<"(?,?)">
      %2:2 = cute.get_scalars (%1) : !cute.shape<"(?,?)">
      %across = arith.ceildivsi %2#1, %c64_i32 : i32
      %3 = arith.divsi %bid, %across : i32
      %4 = arith.remsi %bid, %across : i32
      %5 = cute.get_layout(%mA) : !vec
      %mn = cute.get_shape(%5) : !cute.layout<"(?,?):(?{div=4},1)"> -> !cute.shape<"(?,?)">
      %6 = cute.static : !cute.tile<"[64:1;64:1]">
      %7 = cute.make_coord(%3, %4) : (i32, i32) -> !cute.coord<"(?,?)">
      %gA = cute.local_tile(%mA, %6, %7) : (!vec, !cute.tile<"[64:1;64:1]">, !cute.coord<"(?,?)">) -> !gA2
      %mBt = cute.select<[1, 0]> (%mB) : !vec -> !mBt
      %8 = cute.static : !cute.tile<"[64:1;64:1]">
      %9 = cute.make_coord(%3, %4) : (i32, i32) -> !cute.coord<"(?,?)">
      %gB = cute.local_tile(%mBt, %8, %9) : (!mBt, !cute.tile<"[64:1;64:1]">, !cute.coord<"(?,?)">) -> !gB
      %10 = cute.get_layout(%mA) : !vec
      %11 = cute.get_shape(%10) : !cute.layout<"(?,?):(?{div=4},1)"> -> !cute.shape<"(?,?)">
      %12 = cute.make_identity_layout(%11) : !cute.shape<"(?,?)"> -> !cute.layout<"(?,?):(1@0,1@1)">
      %13 = cute.static : !cute.int_tuple<"(0,0)">
      %mIds = cute.make_view(%13, %12) : !mIds
      %14 = cute.static : !cute.tile<"[64:1;64:1]">
      %15 = cute.make_coord(%3, %4) : (i32, i32) -> !cute.coord<"(?,?)">
      %ids = cute.local_tile(%mIds, %14, %15) : (!mIds, !cute.tile<"[64:1;64:1]">, !cute.coord<"(?,?)">) -> !ids_tile
      %16 = cute.static : !cute.coord<"4095">
      %17 = cute.memref.load(%ids, %16) : (!ids_tile, !cute.coord<"4095">) -> !cute.int_tuple<"(?,?)">
      %whole = cute.elem_less(%17, %mn) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
      %atom = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
      %sT = cute.memref.alloc_smem() : !smem_v
      scf.if %whole {
        // A thread's elements of A, through registers to shared memory.
        %18 = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
        %load = cute.make_tiled_copy(%18) : !load_v
        %19 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %tA = cute.tiled.copy.partition_S(%load, %gA, %19) : (!load_v, !gA2, !cute.coord<"?">) -> !tA2
        %20 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %tS = cute.tiled.copy.partition_D(%load, %sT, %20) : (!load_v, !smem_v, !cute.coord<"?">) -> !tS2
        %r = cute.make_fragment_like(%tA) : !tA2 -> !regs3
        cute.copy(%atom, %tA, %r) : (!cute_nvgpu.atom.universal_copy<f32>, !tA2, !regs3) -> ()
        cute.copy(%atom, %r, %tS) : (!cute_nvgpu.atom.universal_copy<f32>, !regs3, !tS2) -> ()
      } else {
        // At an edge, element by element along the rows of A.
        scf.for %arg0 = %tid to %c4096_i32 step %c256_i32 : i32 {
          %18 = arith.remui %arg0, %c64_i32 : i32
          %19 = arith.divui %arg0, %c64_i32 : i32
          %20 = cute.make_coord(%19, %18) : (i32, i32) -> !cute.coord<"(?,?)">
          %21 = cute.memref.load(%ids, %20) : (!ids_tile, !cute.coord<"(?,?)">) -> !cute.int_tuple<"(?,?)">
          %22 = cute.elem_less(%21, %mn) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
          scf.if %22 {
            %23 = cute.memref.load(%gA, %20) : (!gA2, !cute.coord<"(?,?)">) -> f32
            cute.memref.store(%sT, %20, %23) : (!smem_v, !cute.coord<"(?,?)">, f32) -> ()
          }
        }
      }
      cute_nvgpu.arch.barrier() : () -> ()
      scf.if %whole {
        // The tile as rows of B.
        %18 = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
        %store = cute.make_tiled_copy(%18) : !store_v
        %19 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %tT = cute.tiled.copy.partition_S(%store, %sT, %19) : (!store_v, !smem_v, !cute.coord<"?">) -> !tT2
        %20 = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
        %tB = cute.tiled.copy.partition_D(%store, %gB, %20) : (!store_v, !gB, !cute.coord<"?">) -> !tA2
        %q = cute.make_fragment_like(%tT) : !tT2 -> !regs3
        cute.copy(%atom, %tT, %q) : (!cute_nvgpu.atom.universal_copy<f32>, !tT2, !regs3) -> ()
        cute.copy(%atom, %q, %tB) : (!cute_nvgpu.atom.universal_copy<f32>, !regs3, !tA2) -> ()
      } else {
        // At an edge, element by element along the rows of B.
        scf.for %arg0 = %tid to %c4096_i32 step %c256_i32 : i32 {
          %18 = arith.remui %arg0, %c64_i32 : i32
          %19 = arith.divui %arg0, %c64_i32 : i32
          %20 = cute.make_coord(%18, %19) : (i32, i32) -> !cute.coord<"(?,?)">
          %21 = cute.memref.load(%ids, %20) : (!ids_tile, !cute.coord<"(?,?)">) -> !cute.int_tuple<"(?,?)">
          %22 = cute.elem_less(%21, %mn) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
          scf.if %22 {
            %23 = cute.memref.load(%sT, %20) : (!smem_v, !cute.coord<"(?,?)">) -> f32
            cute.memref.store(%gB, %20, %23) : (!gB, !cute.coord<"(?,?)">, f32) -> ()
          }
        }
      }
      gpu.return
    }
  }
  func.func @launch(%mA: !any, %mB: !any) {
    %c256_i32 = arith.constant 256 : i32
    %c1_i32 = arith.constant 1 : i32
    %c64_i32 = arith.constant 64 : i32
    %0 = cute.get_layout(%mA) : !any
    %1 = cute.get_shape(%0) : !cute.layout<"(?,?):(?,?)"> -> !cute.shape<"(?,?)">
    %2:2 = cute.get_scalars (%1) : !cute.shape<"(?,?)">
    %3 = cute.get_layout(%mB) : !any
    %4 = cute.get_shape(%3) : !cute.layout<"(?,?):(?,?)"> -> !cute.shape<"(?,?)">
    %5:2 = cute.get_scalars (%4) : !cute.shape<"(?,?)">
    %6 = arith.cmpi eq, %5#0, %2#1 : i32
    %7 = arith.cmpi eq, %5#1, %2#0 : i32
    cf.assert %6, "B must have as many rows as A has columns"
    cf.assert %7, "B must have as many columns as A has rows"
    // One block a tile.
    %8 = arith.ceildivsi %2#0, %c64_i32 : i32
    %9 = arith.ceildivsi %2#1, %c64_i32 : i32
    %10 = arith.muli %8, %9 : i32
    gpu.launch_func @kernels::@transpose blocks in (%10, %c1_i32, %c1_i32) threads in (%c256_i32, %c1_i32, %c1_i32) : i32 args(%mA : !any, %mB : !any) {cute.variants = [@kernels::@transpose_v]}
    return
  }
}
