// The stages of test/examples/transpose.mlir, kernel @transpose_v.
// RUN: cute-opt %S/../../examples/transpose.mlir --cute-fold-static --cute-expand-ops --verify-legality --mlir-use-nameloc-as-prefix | FileCheck %s --check-prefix=EXPAND
// RUN: cute-opt %S/../../examples/transpose.mlir --cute-fold-static --cute-expand-ops --convert-cute-algo-to-arch --verify-legality --mlir-use-nameloc-as-prefix | FileCheck %s --check-prefix=ARCH
// RUN: cute-opt %S/../../examples/transpose.mlir --pipeline=base --verify-legality | FileCheck %s --check-prefix=BASE

// A tile is its offset and a static layout; B is seen as (m, n).
// EXPAND-LABEL: gpu.func @transpose_v
// EXPAND-NOT:     cute.local_tile
// EXPAND:         %gA = cute.make_view(%{{.*}}, %{{.*}}) : !cute.memref<f32, gmem, align<16>, "(64,64):(?{div=4},1)">
// EXPAND:         %gB = cute.make_view(%{{.*}}, %{{.*}}) : !cute.memref<f32, gmem, align<16>, "(64,64):(1,?{div=4})">
// EXPAND:         %sT = cute.memref.alloc_smem() : !cute.memref<f32, smem, align<1024>, S<3,4,3>, "((32,2),(4,16)):((1,2048),(512,32))">

// Vectors of A, vectors of the transposed square.
// ARCH-LABEL: gpu.func @transpose_v
// ARCH:         scf.if %whole
// ARCH-COUNT-4:   cute.memref.load_vec %{{.*}} : !cute.memref<f32, gmem, align<16>, "4:1">
// ARCH-COUNT-4:   cute.memref.store_vec %{{.*}}, %{{.*}} : !cute.memref<f32, smem, align<16>, S<3,4,3>, "4:1">
// ARCH:         } else {
// ARCH:         cute_nvgpu.arch.barrier
// ARCH:         scf.if %whole
// ARCH-COUNT-4:   cute.memref.load_vec %{{.*}} : !cute.memref<f32, smem, align<16>, S<3,4,3>, "4:1">
// ARCH-COUNT-4:   cute.memref.store_vec %{{.*}}, %{{.*}} : !cute.memref<f32, gmem, align<16>, "4:1">

// One xor for four accesses: the others are immediates.
// BASE:       llvm.mlir.global internal @transpose_v__smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<16384 x i8>
// BASE-LABEL: llvm.func @transpose_v
// BASE:         scf.if
// BASE:           arith.xori
// BASE-NOT:       arith.xori
// BASE:           llvm.store %{{.*}}, %[[P:.*]] {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
// BASE:           %[[Q:.*]] = llvm.getelementptr %[[P]][2048] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
// BASE:           llvm.store %{{.*}}, %[[Q]] {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
// BASE-NOT:       arith.xori
// BASE:         } else {
