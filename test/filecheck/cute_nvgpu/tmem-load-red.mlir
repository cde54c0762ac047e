// Loads of tensor memory that also reduce the columns of a thread.
// RUN: cute-opt %s --verify-roundtrip | FileCheck %s
// RUN: cute-opt %s --cute-expand-ops --convert-cute-algo-to-arch --cute-to-base | FileCheck %s --check-prefix=BASE

!max = !cute_nvgpu.atom.tmem_load<f32, 32x32b, x4, red = max>
!min = !cute_nvgpu.atom.tmem_load<f32, 16x32bx2, x4, red = min, abs, nan>
!int = !cute_nvgpu.atom.tmem_load<ui32, 32x32b, x2, red = max>
!p = !cute.ptr<f32, tmem, align<128>>
!pi = !cute.ptr<ui32, tmem, align<128>>

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @k
  // BASE-LABEL: llvm.func @k
  gpu.func @k(%p: !p, %q: !pi, %out: !cute.memref<f32, gmem, "2:1">) kernel {
    %l = cute.static : !cute.layout<"(4,32):(1,65536)">
    %t = cute.make_view(%p, %l) : !cute.memref<f32, tmem, align<128>, "(4,32):(1,65536)">
    %lh = cute.static : !cute.layout<"(8,16):(1,65536)">
    %h = cute.make_view(%p, %lh) : !cute.memref<f32, tmem, align<128>, "(8,16):(1,65536)">
    %li = cute.static : !cute.layout<"(2,32):(1,65536)">
    %i = cute.make_view(%q, %li) : !cute.memref<ui32, tmem, align<128>, "(2,32):(1,65536)">
    %r = cute.memref.alloca() : !cute.memref<f32, rmem, "4:1">
    %m = cute.memref.alloca() : !cute.memref<f32, rmem, "1:0">
    %ri = cute.memref.alloca() : !cute.memref<ui32, rmem, "2:1">
    %mi = cute.memref.alloca() : !cute.memref<ui32, rmem, "1:0">
    // CHECK: cute_nvgpu.arch.tmem_load_red(%{{.*}}, %{{.*}}, %{{.*}}) {atom = !cute_nvgpu.atom.tmem_load<f32, 32x32b, x4, red = max>}
    // BASE: llvm.inline_asm has_side_effects {{.*}}"tcgen05.ld.red.sync.aligned.32x32b.x4.max.f32 {$0, $1, $2, $3}, $4, [$5];", "=r,=r,=r,=r,=r,r"
    cute_nvgpu.arch.tmem_load_red(%t, %r, %m) {atom = !max} : (!cute.memref<f32, tmem, align<128>, "(4,32):(1,65536)">, !cute.memref<f32, rmem, "4:1">, !cute.memref<f32, rmem, "1:0">) -> ()
    // CHECK: tmem_load<f32, 16x32bx2, x4, red = min, abs, nan>
    // BASE: "tcgen05.ld.red.sync.aligned.16x32bx2.x4.min.abs.NaN.f32 {$0, $1, $2, $3}, $4, [$5], 4;"
    cute_nvgpu.arch.tmem_load_red(%h, %r, %m) {atom = !min} : (!cute.memref<f32, tmem, align<128>, "(8,16):(1,65536)">, !cute.memref<f32, rmem, "4:1">, !cute.memref<f32, rmem, "1:0">) -> ()
    // BASE: "tcgen05.ld.red.sync.aligned.32x32b.x2.max.u32 {$0, $1}, $2, [$3];"
    cute_nvgpu.arch.tmem_load_red(%i, %ri, %mi) {atom = !int} : (!cute.memref<ui32, tmem, align<128>, "(2,32):(1,65536)">, !cute.memref<ui32, rmem, "2:1">, !cute.memref<ui32, rmem, "1:0">) -> ()
    gpu.return
  }
}
