// Machine-level ops: their text, the stages they pass through, what they become.
// RUN: cute-opt %s | cute-opt | FileCheck %s --check-prefix=TEXT
// RUN: cute-opt %s --cute-fold-static --cute-expand-ops --convert-cute-algo-to-arch --verify-legality | FileCheck %s --check-prefix=TEXT
// RUN: cute-opt %s --pipeline=base --verify-legality | FileCheck %s --check-prefix=BASE
// RUN: cute-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // Every warp leaves its number where one thread of the cluster's next block waits for it.
    // TEXT-LABEL: gpu.func @ring
    // BASE-LABEL: llvm.func @ring
    // BASE-SAME:    nvvm.cluster_dim = array<i32: 2, 1, 1>
    gpu.func @ring(%o: !cute.memref<i32, gmem, "?:1">) kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_cluster_size = array<i32: 2, 1, 1>} {
      %one = arith.constant 1 : i32
      %zero = arith.constant 0 : i32
      %two = arith.constant 2 : i32
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %sums = cute.memref.alloc_smem() : !cute.memref<i32, smem, "2:1">
      %bars = cute.memref.alloc_smem() : !cute.memref<i64, smem, "1:1">
      %bar = cute.get_iter(%bars) : !cute.memref<i64, smem, "1:1">
      // TEXT: %[[RANK:.*]] = cute_nvgpu.arch.cluster_rank() : () -> i32
      // BASE: nvvm.read.ptx.sreg.cluster.ctarank
      %rank = cute_nvgpu.arch.cluster_rank() : () -> i32
      %next = arith.xori %rank, %one : i32
      %first = arith.cmpi eq, %tid, %zero : i32
      scf.if %first {
        // TEXT: cute_nvgpu.arch.mbarrier_init(%{{.*}}, %{{.*}}) : (!cute.ptr<i64, smem>, i32) -> ()
        // BASE: nvvm.mbarrier.init %{{.*}}, %{{.*}} : !llvm.ptr<3>, i32
        cute_nvgpu.arch.mbarrier_init(%bar, %two) : (!cute.ptr<i64, smem>, i32) -> ()
        // TEXT: cute_nvgpu.arch.fence_mbarrier_init() : () -> ()
        // BASE: nvvm.fence.mbarrier.init
        cute_nvgpu.arch.fence_mbarrier_init() : () -> ()
      }
      // TEXT: cute_nvgpu.arch.cluster_arrive() {relaxed} : () -> ()
      // GENERIC: "cute_nvgpu.arch.cluster_arrive"() <{relaxed}> : () -> ()
      // BASE: nvvm.cluster.arrive.relaxed {aligned}
      cute_nvgpu.arch.cluster_arrive() {relaxed} : () -> ()
      // TEXT: cute_nvgpu.arch.cluster_wait() : () -> ()
      // BASE: nvvm.cluster.wait {aligned}
      cute_nvgpu.arch.cluster_wait() : () -> ()

      // The number of the warp is the same for its threads, and is known to be.
      // TEXT: cute_nvgpu.arch.warp_id() : () -> i32
      // BASE: %[[T:.*]] = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32
      // BASE: %[[W:.*]] = arith.shrui %[[T]], %{{.*}} : i32
      // BASE: nvvm.shfl.sync idx %{{.*}}, %[[W]], %{{.*}}, %{{.*}} : i32 -> i32
      %warp = cute_nvgpu.arch.warp_id() : () -> i32
      %p = cute.get_iter(%sums) : !cute.memref<i32, smem, "2:1">
      // TEXT: cute_nvgpu.arch.map_cluster(%{{.*}}, %{{.*}}) : (!cute.ptr<i32, smem>, i32) -> !cute.ptr<i32, dsmem>
      // BASE: nvvm.mapa %{{.*}}, %{{.*}} : !llvm.ptr<3> -> !llvm.ptr<7>
      %q = cute_nvgpu.arch.map_cluster(%p, %next) : (!cute.ptr<i32, smem>, i32) -> !cute.ptr<i32, dsmem>
      %l = cute.static : !cute.layout<"2:1">
      %far = cute.make_view(%q, %l) : !cute.memref<i32, dsmem, "2:1">
      %w = cute.make_coord(%warp) : (i32) -> !cute.coord<"?">
      // TEXT: cute_nvgpu.arch.elect_one() : () -> i1
      // BASE: nvvm.elect.sync -> i1
      %chosen = cute_nvgpu.arch.elect_one() : () -> i1
      scf.if %chosen {
        // BASE: llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : i32, !llvm.ptr<7>
        cute.memref.store(%far, %w, %warp) : (!cute.memref<i32, dsmem, "2:1">, !cute.coord<"?">, i32) -> ()
        // TEXT: cute_nvgpu.arch.fence_acq_rel() {scope = "cluster"} : () -> ()
        // BASE: llvm.fence syncscope("cluster") acq_rel
        cute_nvgpu.arch.fence_acq_rel() {scope = "cluster"} : () -> ()
        // TEXT: cute_nvgpu.arch.mbarrier_arrive_cluster(%{{.*}}, %{{.*}}) : (!cute.ptr<i64, smem>, i32) -> ()
        // BASE: %[[R:.*]] = nvvm.mapa %{{.*}}, %{{.*}} : !llvm.ptr<3> -> !llvm.ptr<7>
        // BASE: nvvm.mbarrier.arrive %[[R]] : !llvm.ptr<7>
        cute_nvgpu.arch.mbarrier_arrive_cluster(%bar, %next) : (!cute.ptr<i64, smem>, i32) -> ()
        // TEXT: cute_nvgpu.arch.mbarrier_arrive_expect_tx(%{{.*}}, %{{.*}}, %{{.*}}) : (!cute.ptr<i64, smem>, i32, i32) -> ()
        // BASE: %[[X:.*]] = nvvm.mapa %{{.*}}, %{{.*}} : !llvm.ptr<3> -> !llvm.ptr<7>
        // BASE: nvvm.inline_ptx "mbarrier.arrive.expect_tx.shared::cluster.b64 _, [$0], $1;" ro(%[[X]], %{{.*}}
        cute_nvgpu.arch.mbarrier_arrive_expect_tx(%bar, %next, %next) : (!cute.ptr<i64, smem>, i32, i32) -> ()
      }
      // TEXT: cute_nvgpu.arch.mbarrier_wait(%{{.*}}, %{{.*}}) : (!cute.ptr<i64, smem>, i32) -> ()
      // BASE: nvvm.mbarrier.try_wait.parity %{{.*}}, %{{.*}}, %{{.*}} : !llvm.ptr<3>, i32, i32
      cute_nvgpu.arch.mbarrier_wait(%bar, %zero) : (!cute.ptr<i64, smem>, i32) -> ()
      %mine = cute.memref.load(%sums, %w) : (!cute.memref<i32, smem, "2:1">, !cute.coord<"?">) -> i32
      // TEXT: cute_nvgpu.arch.shfl_sync(%{{.*}}, %{{.*}}) {mode = "down", width = 16 : i32} : (i32, i32) -> i32
      // BASE: %[[CLAMP:.*]] = arith.constant 4127 : i32
      // BASE: nvvm.shfl.sync down %{{.*}}, %{{.*}}, %{{.*}}, %[[CLAMP]] : i32 -> i32
      %other = cute_nvgpu.arch.shfl_sync(%mine, %one) {mode = "down", width = 16 : i32} : (i32, i32) -> i32
      %at = cute.get_iter(%o) : !cute.memref<i32, gmem, "?:1">
      // TEXT: cute_nvgpu.arch.atomic_add(%{{.*}}, %{{.*}}) {scope = "sys"} : (!cute.ptr<i32, gmem>, i32) -> i32
      // BASE: llvm.atomicrmw add %{{.*}}, %{{.*}} monotonic {alignment = 4 : i64} : !llvm.ptr<1>, i32
      %old = cute_nvgpu.arch.atomic_add(%at, %other) {scope = "sys"} : (!cute.ptr<i32, gmem>, i32) -> i32
      // TEXT: cute_nvgpu.arch.cluster_arrive() : () -> ()
      // BASE: nvvm.cluster.arrive {aligned}
      cute_nvgpu.arch.cluster_arrive() : () -> ()
      cute_nvgpu.arch.cluster_wait() : () -> ()
      gpu.return
    }
    // A reduction that another block's mbarrier counts.
    // TEXT-LABEL: gpu.func @reduce
    // BASE-LABEL: llvm.func @reduce
    gpu.func @reduce(%p: !cute.ptr<i32, dsmem>, %v: i32, %bar: !cute.ptr<i64, dsmem>) {
      // TEXT: cute_nvgpu.arch.reduce_async_umax(%{{.*}}, %{{.*}}, %{{.*}}) : (!cute.ptr<i32, dsmem>, i32, !cute.ptr<i64, dsmem>) -> ()
      // BASE: nvvm.inline_ptx "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.u32 [$0], $1, [$2];"
      cute_nvgpu.arch.reduce_async_umax(%p, %v, %bar) : (!cute.ptr<i32, dsmem>, i32, !cute.ptr<i64, dsmem>) -> ()
      gpu.return
    }
  }
}
