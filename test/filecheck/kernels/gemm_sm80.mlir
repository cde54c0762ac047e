// The stages of test/examples/gemm_sm80.mlir, kernel @gemm_16.
// RUN: cute-opt %S/../../examples/gemm_sm80.mlir --cute-fold-static --cute-expand-ops --convert-cute-algo-to-arch --verify-legality --mlir-use-nameloc-as-prefix | FileCheck %s --check-prefix=ARCH
// RUN: cute-opt %S/../../examples/gemm_sm80.mlir --pipeline=base --verify-legality --mlir-use-nameloc-as-prefix | FileCheck %s --check-prefix=BASE
// RUN: cute-opt %S/../../examples/gemm_sm80.mlir --pipeline=base | not grep -E "cute\.[a-z_]+\(|!cute\.(layout|shape|coord|tile|ptr)|llvm.alloca"

// ARCH-LABEL: gpu.func @gemm_16
// ARCH-NOT:     cute.copy
// ARCH-NOT:     cute.gemm
// ARCH:         cute_nvgpu.arch.cp_async(%{{.*}}, %{{.*}}, %{{.*}}) {atom = !cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>} : (!cute.memref<f16, gmem, align<16>, "8:1">, !cute.memref<f16, smem, align<16>, S<3,4,3>, "8:1">, i1) -> ()
// ARCH:         scf.for {{.*}} iter_args({{.*}}, {{.*}}) -> (i32, i32)
// ARCH-NEXT:      cute_nvgpu.arch.cp_async_wait_group() {n = 1 : i32}
// ARCH-NEXT:      cute_nvgpu.arch.barrier()
// ARCH:           scf.if
// ARCH-COUNT-8:     cute_nvgpu.arch.cp_async(
// ARCH:           cute_nvgpu.arch.cp_async_commit_group
// ARCH:           scf.for %j
// ARCH-COUNT-8:     cute_nvgpu.arch.ldmatrix(%{{.*}}, %{{.*}}) {atom = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>}
// ARCH-NOT:         arch.ldmatrix(
// ARCH:           scf.for %j
// ARCH-COUNT-32:    cute_nvgpu.arch.mma_sync(
// ARCH-NOT:         arch.mma_sync(
// ARCH:         gpu.return

// The registers of ldmatrix go into mma.sync as they are; fragments cross the loop as single values.
// BASE-LABEL: llvm.func @gemm_16
// BASE:         scf.for
// BASE:           nvvm.cp.async.wait.group 1
// BASE:           nvvm.barrier0
// BASE:           nvvm.ldmatrix
// BASE-COUNT-64:  nvvm.mma.sync
// BASE-NOT:       llvm.store
// BASE:           scf.yield
// BASE:         func.func @launch
// BASE:           gpu.launch_func @kernels::@gemm
// BASE-SAME:        cute.variants = [@kernels::@gemm_16]
