// y[i] = sum of row i of x, for rows of 4096 f32; any number of rows, any distance between them.
//
// A row is shared by 256 threads.  @sum_v takes rows that begin at multiples of 16 bytes
// and moves 128 bits at a time; the launch takes it when the arguments allow it.

!matrix = !cute.memref<f32, gmem, "(?,4096):(?,1)">
!gX = !cute.memref<f32, gmem, "(4096):(1)">
!lanes = !cute.memref<f32, rmem, align<16>, "4:1">
!matrix_v = !cute.memref<f32, gmem, align<16>, "(?,4096):(?{div=4},1)">
!gX2 = !cute.memref<f32, gmem, align<16>, "(4096):(1)">
!values = !cute.memref<f32, rmem, align<16>, "16:1">
!thread_part = !cute.memref<f32, gmem, align<16>, "(4,4):(1,1024)">
!registers = !cute.memref<f32, rmem, align<16>, "(4,4):(1,4)">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @sum(%x: !matrix, %y: !cute.memref<f32, gmem, "?:1">) kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 4 : i32} {
      %c4_i32 = arith.constant 4 : i32
      %c8_i32 = arith.constant 8 : i32
      %c16_i32 = arith.constant 16 : i32
      %c2048_i32 = arith.constant 2048 : i32
      %c1_i32 = arith.constant 1 : i32
      %c2_i32 = arith.constant 2 : i32
      %c0_i32 = arith.constant 0 : i32
      %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %block = nvvm.read.ptx.sreg.ctaid.x : i32
      %lane = cute_nvgpu.arch.lane_id() : () -> i32
      %atom = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
      // Where this thread begins in each round of a row.
      %0 = cute.make_coord(%block) : (i32) -> !cute.coord<"(?,_)">
      %gX = cute.slice(%x, %0) : !matrix, !cute.coord<"(?,_)">
      %cst = arith.constant dense<0.000000e+00> : vector<4xf32>
      %1 = scf.for %arg0 = %c0_i32 to %c2_i32 step %c1_i32 iter_args(%arg1 = %cst) -> (vector<4xf32>) : i32 {
        %31 = cute.memref.alloca() : !cute.memref<f32, rmem, align<16>, "8:1">
        %32 = arith.muli %arg0, %c2048_i32 : i32
        %33 = arith.addi %32, %tid : i32
        %34 = cute.get_iter(%gX) : !gX
        %35 = cute.make_int_tuple(%33) : (i32) -> !cute.int_tuple<"?">
        %36 = cute.add_offset(%34, %35) : (!cute.ptr<f32, gmem>, !cute.int_tuple<"?">) -> !cute.ptr<f32, gmem>
        %37 = cute.static : !cute.layout<"8:256">
        %thread_part = cute.make_view(%36, %37) : !cute.memref<f32, gmem, "8:256">
        cute.copy(%atom, %thread_part, %31) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, gmem, "8:256">, !cute.memref<f32, rmem, align<16>, "8:1">) -> ()
        %38 = cute.get_iter(%31) : !cute.memref<f32, rmem, align<16>, "8:1">
        %39 = cute.static : !cute.layout<"(4,2):(1,4)">
        %40 = cute.make_view(%38, %39) : !cute.memref<f32, rmem, align<16>, "(4,2):(1,4)">
        %41 = scf.for %arg2 = %c0_i32 to %c2_i32 step %c1_i32 iter_args(%arg3 = %arg1) -> (vector<4xf32>) : i32 {
          %42 = cute.make_coord(%arg2) : (i32) -> !cute.coord<"(_,?)">
          %43 = cute.slice(%40, %42) : !cute.memref<f32, rmem, align<16>, "(4,2):(1,4)">, !cute.coord<"(_,?)">
          %44 = cute.memref.load_vec %43 : !cute.memref<f32, rmem, align<16>, "(4):(1)">
          %45 = arith.addf %arg3, %44 fastmath<contract> : vector<4xf32>
          scf.yield %45 : vector<4xf32>
        }
        scf.yield %41 : vector<4xf32>
      }
      %lanes = cute.memref.alloca() : !lanes
      cute.memref.store_vec %1, %lanes : !lanes
      %2 = cute.static : !cute.coord<"0">
      %3 = cute.memref.load(%lanes, %2) : (!lanes, !cute.coord<"0">) -> f32
      %4 = cute.static : !cute.coord<"1">
      %5 = cute.memref.load(%lanes, %4) : (!lanes, !cute.coord<"1">) -> f32
      %6 = cute.static : !cute.coord<"2">
      %7 = cute.memref.load(%lanes, %6) : (!lanes, !cute.coord<"2">) -> f32
      %8 = cute.static : !cute.coord<"3">
      %9 = cute.memref.load(%lanes, %8) : (!lanes, !cute.coord<"3">) -> f32
      %10 = arith.addf %3, %5 fastmath<contract> : f32
      %11 = arith.addf %7, %9 fastmath<contract> : f32
      %12 = arith.addf %10, %11 fastmath<contract> : f32
      // By shuffles: the sum of the warp, then of the row; all lanes have it.
      %13 = cute_nvgpu.arch.shfl_sync(%12, %c16_i32) : (f32, i32) -> f32
      %14 = arith.addf %12, %13 fastmath<contract> : f32
      %15 = cute_nvgpu.arch.shfl_sync(%14, %c8_i32) : (f32, i32) -> f32
      %16 = arith.addf %14, %15 fastmath<contract> : f32
      %17 = cute_nvgpu.arch.shfl_sync(%16, %c4_i32) : (f32, i32) -> f32
      %18 = arith.addf %16, %17 fastmath<contract> : f32
      %19 = cute_nvgpu.arch.shfl_sync(%18, %c2_i32) : (f32, i32) -> f32
      %20 = arith.addf %18, %19 fastmath<contract> : f32
      %21 = cute_nvgpu.arch.shfl_sync(%20, %c1_i32) : (f32, i32) -> f32
      %of_warp = arith.addf %20, %21 fastmath<contract> : f32
      %warp = cute_nvgpu.arch.warp_id() : () -> i32
      // The warps put their numbers into shared memory.
      %partials = cute.memref.alloc_smem() : !cute.memref<f32, smem, "8:1">
      %22 = arith.cmpi eq, %lane, %c0_i32 : i32
      scf.if %22 {
        %31 = cute.make_coord(%warp) : (i32) -> !cute.coord<"?">
        cute.memref.store(%partials, %31, %of_warp) : (!cute.memref<f32, smem, "8:1">, !cute.coord<"?">, f32) -> ()
      }
      cute_nvgpu.arch.barrier() : () -> ()
      %23 = arith.remui %lane, %c8_i32 : i32
      %24 = cute.make_coord(%23) : (i32) -> !cute.coord<"?">
      %25 = cute.memref.load(%partials, %24) : (!cute.memref<f32, smem, "8:1">, !cute.coord<"?">) -> f32
      %26 = cute_nvgpu.arch.shfl_sync(%25, %c4_i32) : (f32, i32) -> f32
      %27 = arith.addf %25, %26 fastmath<contract> : f32
      %28 = cute_nvgpu.arch.shfl_sync(%27, %c2_i32) : (f32, i32) -> f32
      %29 = arith.addf %27, %28 fastmath<contract> : f32
      %30 = cute_nvgpu.arch.shfl_sync(%29, %c1_i32) : (f32, i32) -> f32
      %of_row = arith.addf %29, %30 fastmath<contract> : f32
      %writes = arith.cmpi eq, %tid, %c0_i32 : i32
      scf.if %writes {
        %31 = cute.make_coord(%block) : (i32) -> !cute.coord<"?">
        cute.memref.store(%y, %31, %of_row) : (!cute.memref<f32, gmem, "?:1">, !cute.coord<"?">, f32) -> ()
      }
      gpu.return
    }
    gpu.func @sum_v(%x: !matrix_v, %y: !cute.memref<f32, gmem, "?:1">) kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 4 : i32} {
      %c0_i32 = arith.constant 0 : i32
      %c2_i32 = arith.constant 2 : i32
      %c8_i32 = arith.constant 8 : i32
      %c16_i32 = arith.constant 16 : i32
      %c1_i32 = arith.constant 1 : i32
      %c4_i32 = arith.constant 4 : i32
      %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %block = nvvm.read.ptx.sreg.ctaid.x : i32
      %lane = cute_nvgpu.arch.lane_id() : () -> i32
      %atom = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
      // Where this thread begins in each round of a row.
      %0 = arith.muli %tid, %c4_i32 : i32
      %first = cute.assume(%0) : (i32) -> !cute.i32<divby 4>
      %1 = cute.make_coord(%block) : (i32) -> !cute.coord<"(?,_)">
      %gX = cute.slice(%x, %1) : !matrix_v, !cute.coord<"(?,_)">
      // What this thread has of a row; all its loads are under way together.
      %values = cute.memref.alloca() : !values
      %2 = cute.get_iter(%gX) : !gX2
      %3 = cute.make_int_tuple(%first) : (!cute.i32<divby 4>) -> !cute.int_tuple<"?{div=4}">
      %4 = cute.add_offset(%2, %3) : (!cute.ptr<f32, gmem, align<16>>, !cute.int_tuple<"?{div=4}">) -> !cute.ptr<f32, gmem, align<16>>
      %5 = cute.static : !cute.layout<"(4,4):(1,1024)">
      %thread_part = cute.make_view(%4, %5) : !thread_part
      %6 = cute.get_iter(%values) : !values
      %7 = cute.static : !cute.layout<"(4,4):(1,4)">
      %registers = cute.make_view(%6, %7) : !registers
      cute.copy(%atom, %thread_part, %registers) : (!cute_nvgpu.atom.universal_copy<f32>, !thread_part, !registers) -> ()
      %8 = cute.get_iter(%values) : !values
      %9 = cute.static : !cute.layout<"(4,4):(1,4)">
      %10 = cute.make_view(%8, %9) : !registers
      %11 = cute.static : !cute.coord<"(_,0)">
      %12 = cute.slice(%10, %11) : !registers, !cute.coord<"(_,0)">
      %13 = cute.memref.load_vec %12 : !cute.memref<f32, rmem, align<16>, "(4):(1)">
      %14 = scf.for %arg0 = %c1_i32 to %c4_i32 step %c1_i32 iter_args(%arg1 = %13) -> (vector<4xf32>) : i32 {
        %44 = cute.make_coord(%arg0) : (i32) -> !cute.coord<"(_,?)">
        %45 = cute.slice(%10, %44) : !registers, !cute.coord<"(_,?)">
        %46 = cute.memref.load_vec %45 : !cute.memref<f32, rmem, align<16>, "(4):(1)">
        %47 = arith.addf %arg1, %46 fastmath<contract> : vector<4xf32>
        scf.yield %47 : vector<4xf32>
      }
      %lanes = cute.memref.alloca() : !lanes
      cute.memref.store_vec %14, %lanes : !lanes
      %15 = cute.static : !cute.coord<"0">
      %16 = cute.memref.load(%lanes, %15) : (!lanes, !cute.coord<"0">) -> f32
      %17 = cute.static : !cute.coord<"1">
      %18 = cute.memref.load(%lanes, %17) : (!lanes, !cute.coord<"1">) -> f32
      %19 = cute.static : !cute.coord<"2">
      %20 = cute.memref.load(%lanes, %19) : (!lanes, !cute.coord<"2">) -> f32
      %21 = cute.static : !cute.coord<"3">
      %22 = cute.memref.load(%lanes, %21) : (!lanes, !cute.coord<"3">) -> f32
      %23 = arith.addf %16, %18 fastmath<contract> : f32
      %24 = arith.addf %20, %22 fastmath<contract> : f32
      %25 = arith.addf %23, %24 fastmath<contract> : f32
      // By shuffles: the sum of the warp, then of the row; all lanes have it.
      %26 = cute_nvgpu.arch.shfl_sync(%25, %c16_i32) : (f32, i32) -> f32
      %27 = arith.addf %25, %26 fastmath<contract> : f32
      %28 = cute_nvgpu.arch.shfl_sync(%27, %c8_i32) : (f32, i32) -> f32
      %29 = arith.addf %27, %28 fastmath<contract> : f32
      %30 = cute_nvgpu.arch.shfl_sync(%29, %c4_i32) : (f32, i32) -> f32
      %31 = arith.addf %29, %30 fastmath<contract> : f32
      %32 = cute_nvgpu.arch.shfl_sync(%31, %c2_i32) : (f32, i32) -> f32
      %33 = arith.addf %31, %32 fastmath<contract> : f32
      %34 = cute_nvgpu.arch.shfl_sync(%33, %c1_i32) : (f32, i32) -> f32
      %of_warp = arith.addf %33, %34 fastmath<contract> : f32
      %warp = cute_nvgpu.arch.warp_id() : () -> i32
      // The warps put their numbers into shared memory.
      %partials = cute.memref.alloc_smem() : !cute.memref<f32, smem, "8:1">
      %35 = arith.cmpi eq, %lane, %c0_i32 : i32
      scf.if %35 {
        %44 = cute.make_coord(%warp) : (i32) -> !cute.coord<"?">
        cute.memref.store(%partials, %44, %of_warp) : (!cute.memref<f32, smem, "8:1">, !cute.coord<"?">, f32) -> ()
      }
      cute_nvgpu.arch.barrier() : () -> ()
      %36 = arith.remui %lane, %c8_i32 : i32
      %37 = cute.make_coord(%36) : (i32) -> !cute.coord<"?">
      %38 = cute.memref.load(%partials, %37) : (!cute.memref<f32, smem, "8:1">, !cute.coord<"?">) -> f32
      %39 = cute_nvgpu.arch.shfl_sync(%38, %c4_i32) : (f32, i32) -> f32
      %40 = arith.addf %38, %39 fastmath<contract> : f32
      %41 = cute_nvgpu.arch.shfl_sync(%40, %c2_i32) : (f32, i32) -> f32
      %42 = arith.addf %40, %41 fastmath<contract> : f32
      %43 = cute_nvgpu.arch.shfl_sync(%42, %c1_i32) : (f32, i32) -> f32
      %of_row = arith.addf %42, %43 fastmath<contract> : f32
      %writes = arith.cmpi eq, %tid, %c0_i32 : i32
      scf.if %writes {
        %44 = cute.make_coord(%block) : (i32) -> !cute.coord<"?">
        cute.memref.store(%y, %44, %of_row) : (!cute.memref<f32, gmem, "?:1">, !cute.coord<"?">, f32) -> ()
      }
      gpu.return
    }
  }
  func.func @launch(%x: !matrix, %y: !cute.memref<f32, gmem, "?:1">) {
    %c256_i32 = arith.constant 256 : i32
    %c1_i32 = arith.constant 1 : i32
    %0 = cute.size<[0]> (%x) : (!matrix) -> !cute.int_tuple<"?">
    %rows = cute.get_scalars (%0) : !cute.int_tuple<"?">
    // The grid follows from the number of rows.
    %1 = cute.size<[0]> (%y) : (!cute.memref<f32, gmem, "?:1">) -> !cute.int_tuple<"?">
    %rows_0 = cute.get_scalars (%1) : !cute.int_tuple<"?">
    %same = arith.cmpi eq, %rows_0, %rows : i32
    cf.assert %same, "y must have as many rows as x"
    gpu.launch_func @kernels::@sum blocks in (%rows, %c1_i32, %c1_i32) threads in (%c256_i32, %c1_i32, %c1_i32) : i32 args(%x : !matrix, %y : !cute.memref<f32, gmem, "?:1">) {cute.variants = [@kernels::@sum_v]}
    return
  }
}
