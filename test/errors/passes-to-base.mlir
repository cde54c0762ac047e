// cute-to-base reports ops that it cannot lower, with the reason.
// RUN: cute-opt %s --convert-cute-algo-to-arch --cute-to-base --split-input-file --verify-diagnostics

gpu.module @m {
  gpu.func @k(%p: !cute.ptr<f16, gmem>, %n: i64) kernel {
    // expected-error @below {{a tensor map is built on the host; move this op to the function that launches the kernel}}
    %m = cute_nvgpu.arch.make_im2col_map(%p, %n, %n, %n, %n, %n) : (!cute.ptr<f16, gmem>, i64, i64, i64, i64, i64) -> !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 64, lower = (0), upper = (0)>
//       ^
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @k() kernel {
    // expected-error @below {{setmaxnreg requires a kernel with known_block_size}}
    cute_nvgpu.arch.setmaxnreg() {action = "increase", count = 232 : i32} : () -> ()
//  ^
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @k() kernel attributes {known_block_size = array<i32: 128, 1, 1>, nvvm.maxnreg = 168 : i32} {
    // expected-error @below {{setmaxnreg cannot be combined with nvvm.maxnreg on the kernel; remove nvvm.maxnreg}}
    cute_nvgpu.arch.setmaxnreg() {action = "increase", count = 232 : i32} : () -> ()
//  ^
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{workgroup and private attributions are not supported; use cute.memref.alloc_smem and alloca}}
  gpu.func @k() workgroup(%w: memref<4xf32, 3>) kernel {
//^
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{expected a kernel without results, got 1}}
  gpu.func @k(%a: i32) -> i32 kernel {
//^
    gpu.return %a : i32
  }
}

// -----

gpu.module @m {
  gpu.func @k() {
    // expected-error @below {{expected 'cute.memref.alloc_smem' in a kernel (gpu.func … kernel)}}
    %s = cute.memref.alloc_smem() : !cute.memref<f32, smem, "32:1">
//       ^
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{kernel @k uses 262144 bytes of shared memory, at most 232448 are available: %s 131072 bytes, %t 131072 bytes}}
  gpu.func @k() kernel {
//^
    %s = cute.memref.alloc_smem() : !cute.memref<f32, smem, "32768:1">
    %t = cute.memref.alloc_smem() : !cute.memref<f32, smem, "32768:1">
    gpu.return
  }
}

// -----

func.func @f(%s: !cute.memref<i4, gmem, "8:3">) {
  %a = cute.atom() : !cute_nvgpu.atom.universal_copy<i4>
  %d = cute.memref.alloca() : !cute.memref<i4, rmem, "8:1">
  // expected-error @below {{cannot lower 'cute.memref.load': expected an offset of whole bytes for elements of 4 bits (a multiple of 2), got 3}}
  cute.copy(%a, %s, %d) : (!cute_nvgpu.atom.universal_copy<i4>, !cute.memref<i4, gmem, "8:3">, !cute.memref<i4, rmem, "8:1">) -> ()
//^
  return
}

// -----

func.func @f(%p: !cute.ptr<i4, gmem>, %o: !cute.int_tuple<"?">) {
  // expected-error @below {{cannot lower 'cute.add_offset': expected an offset of whole bytes for elements of 4 bits (a multiple of 2), got ?{div=1}}}
  %q = cute.add_offset(%p, %o) : (!cute.ptr<i4, gmem>, !cute.int_tuple<"?">) -> !cute.ptr<i4, gmem>
//     ^
  return
}

// -----

func.func @f(%s: !cute.memref<f32, gmem, "(4,8):(8,1) o 0 o (4,8):(1,4)">) {
  %a = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
  %d = cute.memref.alloca() : !cute.memref<f32, rmem, "(4,8):(1,4)">
  // expected-error @below {{cannot lower 'cute.copy': expected a plain or swizzled layout, got the composed layout (4,8):(8,1) o 0 o (4,8):(1,4)}}
  cute.copy(%a, %s, %d) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, gmem, "(4,8):(8,1) o 0 o (4,8):(1,4)">, !cute.memref<f32, rmem, "(4,8):(1,4)">) -> ()
//^
  return
}

// -----

func.func @f() {
  // expected-error @below {{cannot lower 'arith.constant': a constant of f8E4M3FN must have equal elements, got dense<[1.000000e+00, 2.000000e+00]> : vector<2xf8E4M3FN>}}
  %x = arith.constant dense<[1.0, 2.0]> : vector<2xf8E4M3FN>
//     ^
  return
}

// -----

!atom = !cute_nvgpu.atom.wgmma<64x8x16, (f32,f16,f16,f32), A = smem, major = (k, k)>
gpu.module @m {
  gpu.func @k(%a: !cute.memref<f16, smem, align<128>, "((8,8),(8,2)):((8,64),(1,512))">, %b: !cute.memref<f16, smem, align<128>, "(8,(8,2)):(8,(1,64))">, %c: !cute.coord<"?">) kernel {
    %d = cute.memref.alloca() : !cute.memref<f32, rmem, "4:1">
    // expected-error @below {{the accumulators of wgmma must stay in registers, but this tensor had to be placed in local memory}}
    cute_nvgpu.arch.wgmma(%d, %a, %b) {atom = !atom, accumulate = true} : (!cute.memref<f32, rmem, "4:1">, !cute.memref<f16, smem, align<128>, "((8,8),(8,2)):((8,64),(1,512))">, !cute.memref<f16, smem, align<128>, "(8,(8,2)):(8,(1,64))">) -> ()
//  ^
    %x = cute.memref.load(%d, %c) : (!cute.memref<f32, rmem, "4:1">, !cute.coord<"?">) -> f32
    gpu.return
  }
}

// -----

!atom = !cute_nvgpu.atom.mma_sync<8x8x128, (i32,i1,i1,i32), and>
gpu.module @m {
  gpu.func @k(%c: !cute.coord<"?">) kernel {
    %d = cute.memref.alloca() : !cute.memref<i32, rmem, "2:1">
    %a = cute.memref.alloca() : !cute.memref<i1, rmem, "32:1">
    %b = cute.memref.alloca() : !cute.memref<i1, rmem, "32:1">
    // expected-error @below {{cannot lower 'cute_nvgpu.arch.mma_sync': single-bit operands must stay in registers, but this one is in local memory: !cute.memref<i1, rmem, "32:1">}}
    cute_nvgpu.arch.mma_sync(%d, %a, %b, %d) {atom = !atom} : (!cute.memref<i32, rmem, "2:1">, !cute.memref<i1, rmem, "32:1">, !cute.memref<i1, rmem, "32:1">, !cute.memref<i32, rmem, "2:1">) -> ()
//  ^
    %x = cute.memref.load(%a, %c) : (!cute.memref<i1, rmem, "32:1">, !cute.coord<"?">) -> i1
    gpu.return
  }
}

// -----

func.func @f(%t: !cute.memref<f32, gmem, "(4,?):(?,1)">) {
  // expected-error @below {{'cute.coalesce' cannot be lowered here; run the earlier cute passes first}}
  %r = cute.coalesce(%t) : (!cute.memref<f32, gmem, "(4,?):(?,1)">) -> !cute.memref<f32, gmem, "(4,?):(?,1)">
//     ^
  return
}

// -----

func.func private @g(!cute_nvgpu.atom.universal_copy<f32>) -> !cute_nvgpu.atom.universal_copy<f32>
func.func @f() -> !cute_nvgpu.atom.universal_copy<f32> {
  %a = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
  // expected-error @below {{a value of type !cute_nvgpu.atom.universal_copy<f32> may be used by copies and partitions only, but is used in 'func.call': create it where it is used}}
  %b = func.call @g(%a) : (!cute_nvgpu.atom.universal_copy<f32>) -> !cute_nvgpu.atom.universal_copy<f32>
//     ^
  return %b : !cute_nvgpu.atom.universal_copy<f32>
}

// -----

func.func @f(%n: index, %i: index) {
  %a = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
  // expected-error @below {{a value of type !cute_nvgpu.atom.universal_copy<f32> may be used by copies and partitions only, but is used in 'scf.for': create it where it is used}}
  %r = scf.for %k = %i to %n step %n iter_args(%x = %a) -> (!cute_nvgpu.atom.universal_copy<f32>) {
//     ^
    scf.yield %x : !cute_nvgpu.atom.universal_copy<f32>
  }
  return
}

// -----

func.func @f(%c: i1) {
  %a = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
  // expected-error @below {{a value of type !cute_nvgpu.atom.universal_copy<f32> may be used by copies and partitions only, but is used in 'cf.cond_br': create it where it is used}}
  cf.cond_br %c, ^x(%a : !cute_nvgpu.atom.universal_copy<f32>), ^y
//^
^x(%z: !cute_nvgpu.atom.universal_copy<f32>):
  return
^y:
  return
}

// -----

gpu.module @m {
  gpu.func @k(%c: !cute.coord<"?">) kernel {
    %d = cute.memref.alloca() : !cute.memref<f32, rmem, "4:1">
    // expected-error @below {{accumulators must stay in registers, but this tensor had to be placed in local memory}}
    cute_nvgpu.arch.wgmma_wait_group(%d) {n = 0 : i32} : (!cute.memref<f32, rmem, "4:1">) -> ()
//  ^
    %x = cute.memref.load(%d, %c) : (!cute.memref<f32, rmem, "4:1">, !cute.coord<"?">) -> f32
    gpu.return
  }
}

// -----

func.func @f(%s: !cute.memref<i4, gmem, "8:4">) {
  // expected-error @below {{cannot lower 'cute.memref.load_vec': elements of 4 bits must form whole contiguous bytes, got !cute.memref<i4, gmem, "8:4">}}
  %x = cute.memref.load_vec %s : !cute.memref<i4, gmem, "8:4">
//     ^
  return
}

// -----

func.func @f(%s: !cute.memref<i4, gmem, "(2,4):(2,1)">) {
  // expected-error @below {{cannot lower 'cute.memref.load_vec': elements of 4 bits must form whole contiguous bytes, got !cute.memref<i4, gmem, "(2,4):(2,1)">}}
  %x = cute.memref.load_vec %s : !cute.memref<i4, gmem, "(2,4):(2,1)">
//     ^
  return
}

// -----

!a = !cute_nvgpu.atom.universal_copy<f32>
func.func @f(%s: !cute.memref<f32, gmem, "(4,8):(8,1)">, %p: !cute.memref<i1, rmem, "(1,8):(0,1) o 0 o (1,8):(0,1)">) {
  %a = cute.atom() : !a
  %d = cute.memref.alloca() : !cute.memref<f32, rmem, "(4,8):(1,4)">
  // expected-error @below {{cannot lower 'cute.copy': expected a plain layout, got the composed layout (1,8):(0,1) o 0 o (1,8):(0,1)}}
  cute.copy(%a, %s, %d, pred = %p) : (!a, !cute.memref<f32, gmem, "(4,8):(8,1)">, !cute.memref<f32, rmem, "(4,8):(1,4)">, !cute.memref<i1, rmem, "(1,8):(0,1) o 0 o (1,8):(0,1)">) -> ()
//^
  return
}

// -----

func.func @f(%s: !cute.memref<f32, gmem, "1000000:2">, %d: !cute.memref<f32, gmem, "1000000:1">) {
  %a = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
  // expected-error @below {{cannot lower 'cute.copy': it is unrolled to more than 32768 ops per thread: write a loop over parts of its tensors, or use more threads}}
  cute.copy(%a, %s, %d) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, gmem, "1000000:2">, !cute.memref<f32, gmem, "1000000:1">) -> ()
//^
  return
}

// -----

func.func @f(%s: !cute.memref<f32, gmem, "20000:2">, %d: !cute.memref<f32, gmem, "20000:1">) {
  %a = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
  // expected-error @below {{cannot lower 'cute.copy': it is unrolled to more than 32768 ops per thread: write a loop over parts of its tensors, or use more threads}}
  cute.copy(%a, %s, %d) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, gmem, "20000:2">, !cute.memref<f32, gmem, "20000:1">) -> ()
//^
  return
}

// -----

gpu.module @m {
  gpu.func @k(%n: i32) kernel {
    // expected-error @below {{'cute.unroll' must be from 0 to 4096, got -1}}
    scf.for %i = %n to %n step %n : i32 {
//  ^
    } {cute.unroll = -1 : i32}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @k(%n: i32) kernel {
    // expected-error @below {{'cute.unroll' must be an integer of type i32, got 4 : i64}}
    scf.for %i = %n to %n step %n : i32 {
//  ^
    } {cute.unroll = 4}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @k(%n: i32) kernel {
    // expected-error @below {{'cute.unroll' applies to scf.for only, found it on 'scf.while'}}
    scf.while : () -> () {
//  ^
      %false = arith.constant false
      scf.condition(%false)
    } do {
      scf.yield
    } attributes {cute.unroll = 4 : i32}
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @k(%n: i32) kernel {
    scf.for %i = %n to %n step %n : i32 {
      // expected-error @below {{'cute.unroll' = 1000 gives 101000 copies of a loop's body, including the loops around it; at most 4096 are allowed: use a smaller factor}}
      scf.for %j = %n to %n step %n : i32 {
//    ^
      } {cute.unroll = 1000 : i32}
    } {cute.unroll = 100 : i32}
    gpu.return
  }
}

// -----

// expected-error @below {{'cute.static' is not in a function; move it into a func.func or gpu.func}}
%l = cute.static : !cute.layout<"4:1">
//   ^

// -----

gpu.module @m {
  gpu.func @k(%t: !cute.memref<f32, tmem, align<128>, "(4,32):(1,65536)">, %i: i32, %o: !cute.memref<f32, gmem, "1:0">) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %r = cute.memref.alloca() : !cute.memref<f32, rmem, align<16>, "4:1">
    // expected-error @below {{the result of tmem_load must stay in registers, but this tensor had to be placed in local memory}}
    cute_nvgpu.arch.tmem_load(%t, %r) {atom = !cute_nvgpu.atom.tmem_load<f32, 32x32b, x4>} : (!cute.memref<f32, tmem, align<128>, "(4,32):(1,65536)">, !cute.memref<f32, rmem, align<16>, "4:1">) -> ()
//  ^
    %c = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
    %v = cute.memref.load(%r, %c) : (!cute.memref<f32, rmem, align<16>, "4:1">, !cute.coord<"?">) -> f32
    %z = cute.make_coord() : () -> !cute.coord<"0">
    cute.memref.store(%o, %z, %v) : (!cute.memref<f32, gmem, "1:0">, !cute.coord<"0">, f32) -> ()
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @k(%t: !cute.memref<f32, tmem, align<128>, "(4,32):(1,65536)">, %i: i32, %o: !cute.memref<f32, gmem, "1:0">) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %r = cute.memref.alloca() : !cute.memref<f32, rmem, align<16>, "4:1">
    %m = cute.memref.alloca() : !cute.memref<f32, rmem, "1:0">
    // expected-error @below {{the results of tmem_load_red must stay in registers, but a tensor had to be placed in local memory}}
    cute_nvgpu.arch.tmem_load_red(%t, %r, %m) {atom = !cute_nvgpu.atom.tmem_load<f32, 32x32b, x4, red = max>} : (!cute.memref<f32, tmem, align<128>, "(4,32):(1,65536)">, !cute.memref<f32, rmem, align<16>, "4:1">, !cute.memref<f32, rmem, "1:0">) -> ()
//  ^
    %c = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
    %v = cute.memref.load(%r, %c) : (!cute.memref<f32, rmem, align<16>, "4:1">, !cute.coord<"?">) -> f32
    %z = cute.make_coord() : () -> !cute.coord<"0">
    cute.memref.store(%o, %z, %v) : (!cute.memref<f32, gmem, "1:0">, !cute.coord<"0">, f32) -> ()
    gpu.return
  }
}

// -----

!atom = !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32)>
!d = !cute.memref<f32, tmem, "((128,64),1,1):((65536,1),0,0)">
!a = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((128,16),1,1):((64,1),0,0)">
!b = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "((64,16),1,1):((64,1),0,0)">
gpu.module @m {
  gpu.func @k(%d: !d, %a: !a, %b: !b, %c: !d) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %at = cute.atom() : !atom
    %mma = cute.make_tiled_mma(%at) : !cute.tiled_mma<!atom, atom_layout_MNK = <"(1,1,1):(0,0,0)">>
    // expected-error @below {{C is another tensor than D, but the MMA accumulates in D; pass D as C}}
    cute.gemm(%mma, %d, %a, %b, %c) : (!cute.tiled_mma<!atom, atom_layout_MNK = <"(1,1,1):(0,0,0)">>, !d, !a, !b, !d) -> ()
//  ^
    gpu.return
  }
}
