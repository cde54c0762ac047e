// The stages of test/examples/gemm_sm90.mlir.
// RUN: cute-opt %S/../../examples/gemm_sm90.mlir --cute-fold-static --cute-expand-ops --convert-cute-algo-to-arch --verify-legality --mlir-use-nameloc-as-prefix | FileCheck %s --check-prefix=ARCH
// RUN: cute-opt %S/../../examples/gemm_sm90.mlir --pipeline=base --verify-legality --mlir-use-nameloc-as-prefix | FileCheck %s --check-prefix=BASE
// RUN: cute-opt %S/../../examples/gemm_sm90.mlir --pipeline=base | grep -v cute.args | not grep -E "cute\.[a-z_]+\(|!cute\.(layout|shape|coord|tile|ptr)|llvm.alloca"

// The producer: own loads of A, multicast loads of half of B.
// ARCH-LABEL: gpu.func @gemm
// ARCH:         cute_nvgpu.arch.mbarrier_init
// ARCH:         cute_nvgpu.arch.cluster_arrive() {relaxed = true}
// ARCH:         cute_nvgpu.arch.setmaxnreg() {action = "decrease", count = 40 : i32}
// ARCH:         cute_nvgpu.arch.elect_one
// ARCH:           cute_nvgpu.arch.mbarrier_wait
// ARCH:           cute_nvgpu.arch.mbarrier_arrive_expect_tx
// ARCH-COUNT-2:   cute_nvgpu.arch.tma_load
// A consumer: the first step of K needs no zeros, the others add.
// ARCH:         cute_nvgpu.arch.setmaxnreg() {action = "increase", count = 232 : i32}
// ARCH:           cute_nvgpu.arch.wgmma({{.*}}accumulate = false
// ARCH-COUNT-3:   cute_nvgpu.arch.wgmma({{.*}}accumulate = true
// ARCH-NEXT:      cute_nvgpu.arch.wgmma_commit_group
// The result of the tile before, while that runs.
// ARCH:           scf.if
// ARCH-COUNT-4:     cute_nvgpu.arch.stmatrix
// ARCH:             cute_nvgpu.arch.fence_proxy_async
// ARCH:             cute_nvgpu.arch.tma_store
// ARCH:         cute_nvgpu.arch.wgmma_wait_group(%acc) {n = 0 : i32}

// Accumulators are one struct from wgmma to wgmma and through the loop; what waits for them takes and gives them.
// BASE-LABEL: llvm.func @gemm
// BASE-SAME:    llvm.byval
// BASE:         %[[FIRST:.*]] = nvvm.wgmma.mma_async {{.*}}D[<f32>, <zero>]
// BASE-NOT:     llvm.extractvalue {{.*}}(f32
// BASE:         nvvm.wgmma.mma_async %{{.*}}, %{{.*}}, %[[FIRST]], {{.*}}D[<f32>, <one>]
// BASE:         llvm.inline_asm {{.*}}"wgmma.wait_group.sync.aligned 0;"
