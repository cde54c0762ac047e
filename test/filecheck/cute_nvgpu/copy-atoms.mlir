// RUN: cute-opt %s | FileCheck %s --check-prefix=ROUND
// RUN: cute-opt %s --cute-expand-ops --convert-cute-algo-to-arch --verify-legality | FileCheck %s --check-prefix=ARCH
// RUN: cute-opt %s --cute-expand-ops --convert-cute-algo-to-arch --cute-to-base | FileCheck %s --check-prefix=BASE

!cp = !cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>
!cp4 = !cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>
!ld4 = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>
!ld2t = !cute_nvgpu.atom.ldsm<val_type = bf16, num_matrices = 2, t>
!st4 = !cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>

// Two instructions; the swizzle keeps their 16 bytes together.
// ROUND-LABEL: func.func @async
// ROUND: cute.copy(%{{.*}}, %{{.*}}, %{{.*}}) : (!cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>,
// ARCH-LABEL: func.func @async
// ARCH-COUNT-2: cute_nvgpu.arch.cp_async(%{{.*}}, %{{.*}}) {atom = !cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>} : (!cute.memref<f16, gmem, align<16>, "8:1">, !cute.memref<f16, smem, align<16>, S<3,4,3>, "8:1">) -> ()
// BASE-LABEL: func.func @async
// BASE-COUNT-2: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
!g = !cute.memref<f16, gmem, align<16>, "((8,1),2):((1,0),?{div=8})">
!s = !cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,1),2):((1,0),512)">
func.func @async(%g: !g, %s: !s) {
  %atom = cute.atom() : !cp
  cute.copy(%atom, %g, %s) : (!cp, !g, !s) -> ()
  return
}

// A flag an iteration; where it is false the source size is 0: nothing is read, zeros are written.
// ARCH-LABEL: func.func @async_predicated
// ARCH: cute_nvgpu.arch.cp_async(%{{.*}}, %{{.*}}, %{{.*}}) {{.*}} : (!cute.memref<f32, gmem, "1:1">, !cute.memref<f32, smem, "1:1">, i1) -> ()
// BASE-LABEL: func.func @async_predicated
// BASE: %[[SIZE:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : i32
// BASE-NEXT: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 4, cache = ca, %[[SIZE]] : !llvm.ptr<3>, !llvm.ptr<1>, i32
!g4 = !cute.memref<f32, gmem, "(1,3):(0,?)">
!s4 = !cute.memref<f32, smem, "(1,3):(0,33)">
!p4 = !cute.memref<i1, rmem, "(1,3):(0,1)">
func.func @async_predicated(%g: !g4, %s: !s4, %flag: i1) {
  %atom = cute.atom() : !cp4
  %p = cute.memref.alloca() : !p4
  cute.fill(%p, %flag) : (!p4, i1) -> ()
  cute.copy(%atom, %g, %s, pred = %p) : (!cp4, !g4, !s4, !p4) -> ()
  return
}

// The registers of one copy go into the next as they are.
// ARCH-LABEL: func.func @matrices
// ARCH: cute_nvgpu.arch.ldmatrix(%{{.*}}, %{{.*}}) {atom = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>} : (!cute.memref<f16, smem, align<16>, "8:1">, !cute.memref<f16, rmem, "(2,2,2):(1,4,2)">) -> ()
// ARCH: cute_nvgpu.arch.stmatrix(%{{.*}}, %{{.*}}) {{.*}} : (!cute.memref<f16, rmem, "(2,2,2):(1,4,2)">, !cute.memref<f16, smem, align<16>, "8:1">) -> ()
// BASE-LABEL: func.func @matrices
// BASE: %[[L:.*]] = nvvm.ldmatrix
// BASE-SAME: num = 4
// BASE-DAG: %[[R0:.*]] = llvm.extractvalue %[[L]][0]
// BASE-DAG: %[[R1:.*]] = llvm.extractvalue %[[L]][1]
// BASE-DAG: %[[R2:.*]] = llvm.extractvalue %[[L]][2]
// BASE-DAG: %[[R3:.*]] = llvm.extractvalue %[[L]][3]
// BASE: nvvm.stmatrix %{{.*}}, %[[R0]], %[[R1]], %[[R2]], %[[R3]]
!row = !cute.memref<f16, smem, align<16>, "8:1">
!frag = !cute.memref<f16, rmem, "((2,2,2),1):((1,4,2),0)">
func.func @matrices(%s: !cute.memref<f16, smem, align<16>, "(8,1):(1,0)">, %d: !cute.memref<f16, smem, align<16>, "(8,1):(1,0)">) {
  %ld = cute.atom() : !ld4
  %st = cute.atom() : !st4
  %f = cute.memref.alloca() : !frag
  cute.copy(%ld, %s, %f) : (!ld4, !cute.memref<f16, smem, align<16>, "(8,1):(1,0)">, !frag) -> ()
  cute.copy(%st, %f, %d) : (!st4, !frag, !cute.memref<f16, smem, align<16>, "(8,1):(1,0)">) -> ()
  return
}

// A fragment of B, four values a tile of 8 rows: the copy takes two tiles at once.
// ROUND-LABEL: func.func @retile
// ROUND: cute.tiled.copy.retile(%{{.*}}, %{{.*}}) : {{.*}} -> !cute.memref<f16, rmem, "((8,1),2,2):((1,0),8,16)">
// ARCH-LABEL: func.func @retile
// ARCH: cute.make_view(%{{.*}}, %{{.*}}) : !cute.memref<f16, rmem, "((8,1),2,2):((1,0),8,16)">
!tc4 = !cute.tiled_copy<!cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"((4,8),((2,2),2)):((32,1),((16,128),8))">, tiler_mn = <"[16:1;16:1]">>
!mma_b = !cute.memref<f16, rmem, "((2,2),4,2):((1,2),4,16)">
func.func @retile(%tc: !tc4, %f: !cute.memref<f16, rmem, "((2,2),4,2):((1,2),4,16)">) -> !cute.memref<f16, rmem, "((8,1),2,2):((1,0),8,16)"> {
  %r = cute.tiled.copy.retile(%tc, %f) : (!tc4, !mma_b) -> !cute.memref<f16, rmem, "((8,1),2,2):((1,0),8,16)">
  return %r : !cute.memref<f16, rmem, "((8,1),2,2):((1,0),8,16)">
}

// A whole tile at once.
// ROUND-LABEL: func.func @whole
// ROUND: cute.tiled_copy(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (
// ARCH-LABEL: func.func @whole
// ARCH-COUNT-2: cute_nvgpu.arch.cp_async
!tc = !cute.tiled_copy<!cp, layout_copy_tv = <"((4,8),8):((64,1),8)">, tiler_mn = <"[8:1;32:1]">>
func.func @whole(%tc: !tc, %g: !cute.memref<f16, gmem, align<16>, "(16,32):(?{div=8},1)">, %s: !cute.memref<f16, smem, align<128>, "(16,32):(40,1)">, %tid: !cute.coord<"?">) {
  cute.tiled_copy(%tc, %g, %s, %tid) : (!tc, !cute.memref<f16, gmem, align<16>, "(16,32):(?{div=8},1)">, !cute.memref<f16, smem, align<128>, "(16,32):(40,1)">, !cute.coord<"?">) -> ()
  return
}

// ROUND-LABEL: func.func @registers
// ROUND: cute.atom() : !cute_nvgpu.atom.movm<val_type = bf16>
// ROUND: cute.atom() : !cute_nvgpu.atom.shuffle<val_type = f32, transpose = 4>
// ROUND: cute.atom() : !cute_nvgpu.atom.shuffle<val_type = i32, broadcast>
// ARCH-LABEL: func.func @registers
// ARCH: cute_nvgpu.arch.movmatrix(
// ARCH: cute_nvgpu.arch.shuffle(
// ARCH: cute_nvgpu.arch.shuffle(
// BASE-LABEL: func.func @registers
// BASE: nvvm.inline_ptx "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;"
// BASE: nvvm.shfl.sync bfly
// BASE: nvvm.shfl.sync idx
func.func @registers(%x: bf16, %y: f32, %n: i32) {
  %movm = cute.atom() : !cute_nvgpu.atom.movm<val_type = bf16>
  %xor = cute.atom() : !cute_nvgpu.atom.shuffle<val_type = f32, transpose = 4>
  %first = cute.atom() : !cute_nvgpu.atom.shuffle<val_type = i32, broadcast>
  %m = cute.memref.alloca() : !cute.memref<bf16, rmem, "2:1">
  cute.fill(%m, %x) : (!cute.memref<bf16, rmem, "2:1">, bf16) -> ()
  cute.copy(%movm, %m, %m) : (!cute_nvgpu.atom.movm<val_type = bf16>, !cute.memref<bf16, rmem, "2:1">, !cute.memref<bf16, rmem, "2:1">) -> ()
  %s = cute.memref.alloca() : !cute.memref<f32, rmem, "2:1">
  cute.fill(%s, %y) : (!cute.memref<f32, rmem, "2:1">, f32) -> ()
  cute.copy(%xor, %s, %s) : (!cute_nvgpu.atom.shuffle<val_type = f32, transpose = 4>, !cute.memref<f32, rmem, "2:1">, !cute.memref<f32, rmem, "2:1">) -> ()
  %b = cute.memref.alloca() : !cute.memref<i32, rmem, "1:0">
  cute.fill(%b, %n) : (!cute.memref<i32, rmem, "1:0">, i32) -> ()
  cute.copy(%first, %b, %b) : (!cute_nvgpu.atom.shuffle<val_type = i32, broadcast>, !cute.memref<i32, rmem, "1:0">, !cute.memref<i32, rmem, "1:0">) -> ()
  return
}

// ROUND-LABEL: func.func @runs
// ROUND: cute_nvgpu.arch.prefetch(%{{.*}}) {level = "L1"} :
// BASE-LABEL: func.func @runs
// BASE: nvvm.cp.async.bulk.shared.cluster.global %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : !llvm.ptr<7>, <1>
// BASE: nvvm.cp.async.bulk.global.shared.cta
// BASE: nvvm.cp.async.bulk.prefetch
// BASE: nvvm.prefetch level = L1
func.func @runs(%g: !cute.memref<f32, gmem, align<16>, "(8,4):(1,8)">, %s: !cute.memref<f32, smem, align<16>, "32:1">, %bar: !cute.ptr<i64, smem>) {
  cute_nvgpu.arch.bulk_copy(%g, %s, %bar) : (!cute.memref<f32, gmem, align<16>, "(8,4):(1,8)">, !cute.memref<f32, smem, align<16>, "32:1">, !cute.ptr<i64, smem>) -> ()
  cute_nvgpu.arch.bulk_copy(%s, %g) : (!cute.memref<f32, smem, align<16>, "32:1">, !cute.memref<f32, gmem, align<16>, "(8,4):(1,8)">) -> ()
  cute_nvgpu.arch.bulk_prefetch(%g) : (!cute.memref<f32, gmem, align<16>, "(8,4):(1,8)">) -> ()
  cute_nvgpu.arch.prefetch(%g) {level = "L1"} : (!cute.memref<f32, gmem, align<16>, "(8,4):(1,8)">) -> ()
  return
}
