// The stages of test/examples/row_sum.mlir, kernel @sum_v; and it runs.
// RUN: cute-opt %S/../../examples/row_sum.mlir --cute-fold-static --cute-expand-ops --convert-cute-algo-to-arch --verify-legality --mlir-use-nameloc-as-prefix | FileCheck %s --check-prefix=ARCH
// RUN: cute-opt %S/../../examples/row_sum.mlir --pipeline=base --verify-legality --mlir-use-nameloc-as-prefix | FileCheck %s --check-prefix=BASE

// Four vectors of 128 bits a thread.
// ARCH-LABEL: gpu.func @sum_v
// ARCH-COUNT-4: cute.memref.load_vec %{{.*}} : !cute.memref<f32, gmem, align<16>, "4:1">
// ARCH:         cute_nvgpu.arch.shfl_sync
// ARCH:         cute_nvgpu.arch.barrier() : () -> ()

// Registers are values; partial sums meet in shared memory.
// BASE:       llvm.mlir.global internal @sum_v__smem() {addr_space = 3 : i32, alignment = 4 : i64} : !llvm.array<32 x i8>
// BASE-LABEL: llvm.func @sum_v
// BASE-NOT:     llvm.alloca
// BASE-COUNT-4: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// BASE-COUNT-5: nvvm.shfl.sync bfly
// BASE:         nvvm.shfl.sync idx
// BASE:         llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
// BASE:         nvvm.barrier0
// BASE-COUNT-3: nvvm.shfl.sync bfly
