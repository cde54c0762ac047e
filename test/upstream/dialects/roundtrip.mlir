// Ops of upstream dialects round-trip in custom form, and upstream parses their generic form.
// RUN: cute-opt %s --mlir-use-nameloc-as-prefix | filecheck %s
// RUN: cute-opt %s --mlir-use-nameloc-as-prefix | cute-opt --mlir-use-nameloc-as-prefix | filecheck %s
// RUN: cute-opt %s --mlir-use-nameloc-as-prefix --mlir-print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: cute-opt %s --mlir-use-nameloc-as-prefix --mlir-print-op-generic | cute-opt --mlir-use-nameloc-as-prefix | filecheck %s

// CHECK: gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
// GENERIC: "gpu.module"() <{sym_name = "kernels"}> ({
gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  // CHECK: llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
  llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
  // CHECK: llvm.func @kernel(%p: !llvm.ptr<1> {llvm.noalias}, %s: !llvm.struct<(ptr<1>, struct<(i32, i32)>)>) attributes {gpu.kernel, nvvm.kernel} {
  llvm.func @kernel(%p: !llvm.ptr<1> {llvm.noalias}, %s: !llvm.struct<(ptr<1>, struct<(i32, i32)>)>) attributes {gpu.kernel, nvvm.kernel} {
    // CHECK-NEXT: %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32
    // GENERIC: %tid = "nvvm.read.ptx.sreg.tid.x"() <{range = #llvm.constant_range<i32, 0, 1024>}> : () -> i32
    %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32
    // CHECK-NEXT: %n = llvm.extractvalue %s[1, 0] : !llvm.struct<(ptr<1>, struct<(i32, i32)>)>
    %n = llvm.extractvalue %s[1, 0] : !llvm.struct<(ptr<1>, struct<(i32, i32)>)>
    // CHECK-NEXT: %sum = llvm.add %tid, %n overflow<nsw, nuw> : i32
    // GENERIC: %sum = "llvm.add"(%tid, %n) <{overflowFlags = 3 : i32}> : (i32, i32) -> i32
    %sum = llvm.add %tid, %n overflow<nsw, nuw> : i32
    // CHECK-NEXT: %q = llvm.getelementptr inbounds|nuw %p[%sum, 2] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<4 x f32>
    %q = llvm.getelementptr inbounds|nuw %p[%sum, 2] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<4 x f32>
    // CHECK-NEXT: %v = llvm.load %q atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> f32
    // GENERIC: "llvm.load"(%q) <{alignment = 4 : i64, ordering = 4 : i64, syncscope = "device"}> : (!llvm.ptr<1>) -> f32
    %v = llvm.load %q atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> f32
    // CHECK-NEXT: %w = nvvm.shfl.sync bfly %sum, %v, %tid, %n : f32 -> f32
    // GENERIC: %w = "nvvm.shfl.sync"(%sum, %v, %tid, %n) <{kind = #nvvm<shfl_kind bfly>}> : (i32, f32, i32, i32) -> f32
    %w = nvvm.shfl.sync bfly %sum, %v, %tid, %n : f32 -> f32
    // CHECK-NEXT: nvvm.barrier id = %tid number_of_threads = %n
    // GENERIC: "nvvm.barrier"(%tid, %n) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (i32, i32) -> ()
    nvvm.barrier id = %tid number_of_threads = %n
    // CHECK-NEXT: llvm.store %w, %q {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.store %w, %q {alignment = 4 : i64} : f32, !llvm.ptr<1>
    // CHECK-NEXT: llvm.return
    llvm.return
  }
  // CHECK: gpu.func @device(%a: i32) workgroup(%w : memref<32xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
  gpu.func @device(%a: i32) workgroup(%w : memref<32xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    // CHECK-NEXT: %x = gpu.thread_id x upper_bound 128
    %x = gpu.thread_id x upper_bound 128
    // CHECK-NEXT: gpu.printf "%d\0A", %a : i32
    gpu.printf "%d\0A", %a : i32
    // CHECK-NEXT: gpu.return
    gpu.return
  }
}
