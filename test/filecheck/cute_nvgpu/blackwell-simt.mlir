// Instructions of sm_100 and sm_120 outside of the tensor cores: packed f32, maxima of three, 256 bits, narrow floats.
// RUN: cute-opt %s --pipeline=nvptx=chip=sm_100a --emit=ptx | FileCheck %s
// RUN: cute-opt %s --pipeline=nvptx=chip=sm_120a --emit=ptx | FileCheck %s
// RUN: cute-opt %s --pipeline=nvptx=chip=sm_110f --emit=cubin -o /dev/null
// RUN: cute-opt %s --pipeline=nvptx=chip=sm_121a --emit=cubin -o /dev/null
// REQUIRES: mlir, ptxas

!wide = !cute_nvgpu.atom.universal_copy<f32, 256 b>
!g = !cute.memref<f32, gmem, align<32>, "8:1">
!r = !cute.memref<f32, rmem, align<32>, "8:1">

gpu.module @m {
  // CHECK-LABEL: .entry pairs(
  // CHECK-DAG: add.rn.f32x2
  // CHECK-DAG: sub.rn.f32x2
  // CHECK-DAG: mul.rn.f32x2
  // CHECK-DAG: fma.rn.f32x2
  // CHECK-DAG: sub.rz.f32x2
  // CHECK-DAG: fma.rp.ftz.f32x2
  gpu.func @pairs(%p: !llvm.ptr<1>, %a: vector<2xf32>, %b: vector<2xf32>, %x: i64, %y: i64) kernel {
    %0 = arith.addf %a, %b : vector<2xf32>
    %1 = arith.subf %0, %a : vector<2xf32>
    %2 = arith.mulf %1, %b : vector<2xf32>
    %3 = math.fma %2, %a, %1 : vector<2xf32>
    llvm.store volatile %3, %p : vector<2xf32>, !llvm.ptr<1>
    %4 = nvvm.inline_ptx "sub.rz.f32x2 $0, $1, $2;" ro(%x, %y : i64, i64) -> i64
    %5 = nvvm.inline_ptx "fma.rp.ftz.f32x2 $0, $1, $2, $3;" ro(%4, %x, %y : i64, i64, i64) -> i64
    llvm.store volatile %5, %p : i64, !llvm.ptr<1>
    gpu.return
  }

  // CHECK-LABEL: .entry three(
  // CHECK: max.f32 {{.*}}, {{.*}}, {{.*}}, {{.*}};
  // CHECK: min.NaN.abs.f32 {{.*}}, {{.*}}, {{.*}}, {{.*}};
  gpu.func @three(%p: !llvm.ptr<1>, %a: f32, %b: f32, %c: f32) kernel {
    %0 = arith.maxnumf %a, %b : f32
    %1 = arith.maxnumf %0, %c : f32
    %2 = nvvm.inline_ptx "min.NaN.abs.f32 $0, $1, $2, $3;" ro(%1, %b, %c : f32, f32, f32) -> f32
    llvm.store volatile %2, %p : f32, !llvm.ptr<1>
    gpu.return
  }

  // CHECK-LABEL: .entry wide(
  // CHECK: ld.global.v4.b64 {
  // CHECK: st.global.v4.b64 [
  // CHECK: ld.global.nc.L1::no_allocate.L2::evict_last.v4.b64 {
  // CHECK: st.global.L2::evict_first.v4.b64 [
  gpu.func @wide(%at: !wide, %a: !g, %o: !g, %p: !llvm.ptr<1>) kernel {
    %r = cute.memref.alloca() : !r
    cute.copy(%at, %a, %r) : (!wide, !g, !r) -> ()
    cute.copy(%at, %r, %o) : (!wide, !r, !g) -> ()
    llvm.inline_asm has_side_effects "{ .reg .b64 a<4>; ld.global.nc.L1::no_allocate.L2::evict_last.v4.b64 {a0,a1,a2,a3}, [$0]; st.global.L2::evict_first.v4.b64 [$0+64], {a0,a1,a2,a3}; }", "l" %p : (!llvm.ptr<1>) -> ()
    gpu.return
  }

  // CHECK-LABEL: .entry narrow(
  // CHECK: cvt.rn.satfinite.e2m1x2.f32
  // CHECK: cvt.rn.satfinite.relu.e2m3x2.f32
  // CHECK: cvt.rn.f16x2.e2m3x2
  // CHECK: cvt.rn.satfinite.e3m2x2.f32
  // CHECK: cvt.rn.relu.f16x2.e3m2x2
  // CHECK: cvt.rp.satfinite.ue8m0x2.f32
  // CHECK: cvt.rn.bf16x2.ue8m0x2
  // CHECK: cvt.rn.f16x2.e2m1x2
  // CHECK: cvt.rz.satfinite.ue8m0x2.bf16x2
  gpu.func @narrow(%p: !llvm.ptr<1>, %a: f32, %b: f32) kernel {
    %0 = nvvm.convert.f32x2.to.f4x2 %a, %b : i8 (f4E2M1FN)
    llvm.store volatile %0, %p : i8, !llvm.ptr<1>
    %1 = nvvm.convert.f32x2.to.f6x2 %a, %b {relu = true} : i16 (f6E2M3FN)
    %2 = llvm.bitcast %1 : i16 to vector<2xi8>
    %3 = nvvm.convert.f6x2.to.f16x2 %2 : vector<2xi8> (f6E2M3FN) -> vector<2xf16>
    llvm.store volatile %3, %p : vector<2xf16>, !llvm.ptr<1>
    %4 = nvvm.convert.f32x2.to.f6x2 %a, %b : i16 (f6E3M2FN)
    %5 = llvm.bitcast %4 : i16 to vector<2xi8>
    %6 = nvvm.convert.f6x2.to.f16x2 %5 {relu = true} : vector<2xi8> (f6E3M2FN) -> vector<2xf16>
    llvm.store volatile %6, %p : vector<2xf16>, !llvm.ptr<1>
    %7 = nvvm.convert.f32x2.to.f8x2 %a, %b {rnd = #nvvm.fp_rnd_mode<rp>, sat = #nvvm.sat_mode<satfinite>} : i16 (f8E8M0FNU)
    %8 = llvm.bitcast %7 : i16 to vector<2xi8>
    %9 = nvvm.convert.f8x2.to.bf16x2 %8 : vector<2xi8> (f8E8M0FNU) -> vector<2xbf16>
    llvm.store volatile %9, %p : vector<2xbf16>, !llvm.ptr<1>
    %10 = nvvm.convert.f4x2.to.f16x2 %0 : i8 (f4E2M1FN) -> vector<2xf16>
    llvm.store volatile %10, %p : vector<2xf16>, !llvm.ptr<1>
    %11 = nvvm.convert.bf16x2.to.f8x2 %9 {rnd = #nvvm.fp_rnd_mode<rz>, sat = #nvvm.sat_mode<satfinite>} : vector<2xbf16> -> i16 (f8E8M0FNU)
    llvm.store volatile %11, %p : i16, !llvm.ptr<1>
    gpu.return
  }

  // CHECK-LABEL: .entry memory(
  // CHECK: st.bulk.weak.shared::cta [%r
  // CHECK: cp.async.bulk.global.shared::cta.bulk_group.cp_mask [
  // CHECK: multimem.st.relaxed.sys.global.v4.f32 [
  // CHECK: st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [
  // CHECK: st.async.mmio.release.sys.global.b32 [
  gpu.func @memory(%p: !llvm.ptr<1>, %n: i32, %m: i16) kernel {
    %s = cute.memref.alloc_smem() : !cute.memref<f32, smem, align<16>, "64:1">
    %q = cute.get_iter(%s) : !cute.memref<f32, smem, align<16>, "64:1">
    cute_nvgpu.arch.store_bulk_zero(%q, %n) : (!cute.ptr<f32, smem, align<16>>, i32) -> ()
    llvm.inline_asm has_side_effects "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [$0], [$1], $1, $2;", "l,r,h" %p, %n, %m : (!llvm.ptr<1>, i32, i16) -> ()
    llvm.inline_asm has_side_effects "{ .reg .f32 f; mov.b32 f, 0f00000000; multimem.st.relaxed.sys.global.v4.f32 [$0], {f,f,f,f}; }", "l" %p : (!llvm.ptr<1>) -> ()
    llvm.inline_asm has_side_effects "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [$0], {$0,$0,$0,$0}, [$0];", "r" %n : (i32) -> ()
    llvm.inline_asm has_side_effects "st.async.mmio.release.sys.global.b32 [$0], $1;", "l,r" %p, %n : (!llvm.ptr<1>, i32) -> ()
    gpu.return
  }
}
