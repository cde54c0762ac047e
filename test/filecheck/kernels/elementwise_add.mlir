// The stages of test/examples/elementwise_add.mlir, kernel @add_v.
// RUN: cute-opt %S/../../examples/elementwise_add.mlir --cute-fold-static --cute-expand-ops --verify-legality --mlir-use-nameloc-as-prefix | FileCheck %s --check-prefix=EXPAND
// RUN: cute-opt %S/../../examples/elementwise_add.mlir --cute-fold-static --cute-expand-ops --convert-cute-algo-to-arch --verify-legality --mlir-use-nameloc-as-prefix | FileCheck %s --check-prefix=ARCH
// RUN: cute-opt %S/../../examples/elementwise_add.mlir --pipeline=base --verify-legality --mlir-use-nameloc-as-prefix | FileCheck %s --check-prefix=BASE
// RUN: cute-opt %S/../../examples/elementwise_add.mlir --pipeline=base | not grep -E "cute\.[a-z_]+\(|!cute\.(layout|shape|coord|tile|ptr)"

// A slice of a tensor is a slice of its layout, and an offset of its iterator.
// EXPAND-LABEL: gpu.func @add_v
// EXPAND:         %[[L:.*]] = cute.get_layout(%gA) : !cute.memref<f32, gmem, align<16>, "((16,128),(?,?)):((?{div=4},1),(?{div=64},128))">
// EXPAND:         %[[S:.*]] = cute.slice(%[[L]], %[[W:.*]]) :
// EXPAND:         %[[X:.*]] = cute.crd2idx(%[[W]], %[[L]])
// EXPAND-SAME:      -> !cute.int_tuple<"?{div=64}">
// EXPAND:         %[[I:.*]] = cute.get_iter(%gA)
// EXPAND:         %[[P:.*]] = cute.add_offset(%[[I]], %[[X]])
// EXPAND-SAME:      -> !cute.ptr<f32, gmem, align<16>>
// EXPAND:         %bA = cute.make_view(%[[P]], %[[S]]) : !cute.memref<f32, gmem, align<16>, "(16,128):(?{div=4},1)">

// The thread's partition keeps 16-byte alignment, so 128 bits move at a time; only the edge has flags.
// ARCH-LABEL: gpu.func @add_v
// ARCH:         arith.divsi
// ARCH:         arith.remsi
// ARCH:         %tA = cute.make_view
// ARCH-SAME:      !cute.memref<f32, gmem, align<16>, "((1,(4,4)),1,1):((0,(1,?{div=4})),0,0)">
// ARCH-NOT:     cute.tiled
// ARCH-NOT:     cute.copy
// ARCH:         scf.if %whole {
// ARCH-COUNT-8:   cute.memref.load_vec %{{.*}} : !cute.memref<f32, gmem, align<16>, "4:1">
// ARCH-COUNT-4:   cute.memref.store_vec %{{.*}}, %{{.*}} : !cute.memref<f32, gmem, align<16>, "4:1">
// ARCH:         } else {
// ARCH:           scf.for

// No register tensor lies in memory; at the edge the loop over rows stays, the one over flags is unrolled.
// BASE-LABEL: llvm.func @add_v
// BASE-NOT:     llvm.alloca
// BASE:         scf.if %{{.*}} {
// BASE-COUNT-8:   llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// BASE:           arith.addf %{{.*}}, %{{.*}} : vector<16xf32>
// BASE-COUNT-4:   llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
// BASE:         } else {
// BASE:           scf.for
// BASE-NOT:       scf.for
// BASE:         llvm.return
// BASE:       func.func @launch
// BASE:         gpu.launch_func @kernels::@add
// BASE-SAME:      cute.variants = [@kernels::@add_v]
