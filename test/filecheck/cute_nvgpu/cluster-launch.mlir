// Cluster launch control: a request, its response, and the multicast form.
// RUN: cute-opt %s --pipeline=nvptx=chip=sm_100a --emit=ptx | FileCheck %s
// RUN: cute-opt %s --pipeline=nvptx=chip=sm_120f --emit=ptx | FileCheck %s
// RUN: cute-opt %s --pipeline=nvptx=chip=sm_110a --emit=cubin -o /dev/null
// RUN: cute-opt %s --pipeline=nvptx=chip=sm_121a --emit=cubin -o /dev/null
// RUN: not cute-opt %s --pipeline=nvptx=chip=sm_100 --emit=ptx 2>&1 | FileCheck %s --check-prefix=BASE
// REQUIRES: mlir, ptxas

gpu.module @m {
  // BASE: sm_100 has no cute_nvgpu.arch.clc_try_cancel with multicast, which needs sm_100a/f
  // CHECK-LABEL: .entry k(
  // CHECK: mbarrier.{{.*}}expect_tx
  // CHECK: clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [
  // CHECK: ld.shared.b128
  // CHECK-SAME: clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, h;
  // CHECK-SAME: @p clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {
  // CHECK: fence.proxy.async.shared::cta
  // CHECK: clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [
  gpu.func @k(%o: !cute.memref<i32, gmem, "4:1">) kernel {
    %s = cute.memref.alloc_smem() : !cute.memref<i64, smem, align<16>, "4:1">
    %q = cute.get_iter(%s) : !cute.memref<i64, smem, align<16>, "4:1">
    %two = cute.make_int_tuple() : () -> !cute.int_tuple<"2">
    %b = cute.add_offset(%q, %two) : (!cute.ptr<i64, smem, align<16>>, !cute.int_tuple<"2">) -> !cute.ptr<i64, smem, align<16>>
    %bytes = arith.constant 16 : i32
    %c0 = arith.constant 0 : i32
    cute_nvgpu.arch.mbarrier_arrive_expect_tx(%b, %bytes) : (!cute.ptr<i64, smem, align<16>>, i32) -> ()
    cute_nvgpu.arch.clc_try_cancel(%q, %b) : (!cute.ptr<i64, smem, align<16>>, !cute.ptr<i64, smem, align<16>>) -> ()
    cute_nvgpu.arch.mbarrier_wait(%b, %c0) : (!cute.ptr<i64, smem, align<16>>, i32) -> ()
    %p, %x, %y, %z = cute_nvgpu.arch.clc_query(%q) : (!cute.ptr<i64, smem, align<16>>) -> (i1, i32, i32, i32)
    cute_nvgpu.arch.fence_proxy_async() : () -> ()
    %v = arith.select %p, %x, %y : i32
    %cc = cute.make_coord() : () -> !cute.coord<"0">
    cute.memref.store(%o, %cc, %v) : (!cute.memref<i32, gmem, "4:1">, !cute.coord<"0">, i32) -> ()
    cute_nvgpu.arch.clc_try_cancel(%q, %b) {multicast} : (!cute.ptr<i64, smem, align<16>>, !cute.ptr<i64, smem, align<16>>) -> ()
    gpu.return
  }
}
