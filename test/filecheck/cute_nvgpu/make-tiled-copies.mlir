// Tiled copies from a tiled MMA, and from layouts of threads and values.
// RUN: cute-opt %s --verify-roundtrip | FileCheck %s
// RUN: cute-opt %s --cute-expand-ops --convert-cute-algo-to-arch --verify-legality | FileCheck %s --check-prefix=ARCH

!ld4 = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>
!ld2 = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 2, n>
!st = !cute_nvgpu.atom.universal_copy<f16>
!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">>
!a = !cute.tiled_copy<!ld4, layout_copy_tv = <"((4,8,2,2),((2,2,2),(1,1))):((64,1,16,0),((32,8,256),(32,512)))">, tiler_mn = <"[32:1;16:1]">>
!b = !cute.tiled_copy<!ld2, layout_copy_tv = <"((4,8,2,2),((2,2),(1,1))):((32,1,0,8),((16,128),(16,256)))">, tiler_mn = <"[16:1;16:1]">>
!c = !cute.tiled_copy<!st, layout_copy_tv = <"((4,8,2,2),((2,2),(1,1))):((64,1,16,256),((32,8),(32,512)))">, tiler_mn = <"[32:1;16:1]">>
!v = !cute.tiled_copy<!st, layout_copy_tv = <"((32,4),(4,4)):((64,4),(16,1))">, tiler_mn = <"[16:1;128:1]">>

// CHECK-LABEL: @made
// ARCH-LABEL: @made
// ARCH-NOT: make_tiled_copy
func.func @made(%s: !cute.memref<f16, smem, align<16>, "(32,16):(24,1)">, %tid: i32) {
  %mma_atom = cute.atom() : !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>
  %mma = cute.make_tiled_mma(%mma_atom) : !mma
  %4 = cute.atom() : !ld4
  %2 = cute.atom() : !ld2
  %e = cute.atom() : !st
  %k = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
  // CHECK: cute.make_tiled_copy_A(%{{.*}}, %{{.*}}) : (!cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>, !cute.tiled_mma<{{.*}}>) -> !cute.tiled_copy<
  %a = cute.make_tiled_copy_A(%4, %mma) : (!ld4, !mma) -> !a
  // CHECK: cute.make_tiled_copy_B(
  %b = cute.make_tiled_copy_B(%2, %mma) : (!ld2, !mma) -> !b
  // CHECK: cute.make_tiled_copy_C(
  %c = cute.make_tiled_copy_C(%e, %mma) : (!st, !mma) -> !c
  %t = cute.static : !cute.layout<"(4,32):(32,1)">
  %w = cute.static : !cute.layout<"(4,4):(4,1)">
  // CHECK: cute.make_tiled_copy_tv(%{{.*}}, %{{.*}}, %{{.*}}) : (!cute_nvgpu.atom.universal_copy<f16>, !cute.layout<"(4,32):(32,1)">, !cute.layout<"(4,4):(4,1)">) -> !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f16>, layout_copy_tv = <"((32,4),(4,4)):((64,4),(16,1))">, tiler_mn = <"[16:1;128:1]">>
  %v = cute.make_tiled_copy_tv(%e, %t, %w) : (!st, !cute.layout<"(4,32):(32,1)">, !cute.layout<"(4,4):(4,1)">) -> !v
  %p = cute.tiled.copy.partition_S(%a, %s, %k) : (!a, !cute.memref<f16, smem, align<16>, "(32,16):(24,1)">, !cute.coord<"?">) -> !cute.memref<f16, smem, align<16>, "((8,1),1,1):((1,0),0,0)">
  %r = cute.memref.alloca() : !cute.memref<f16, rmem, "((8,1),1,1):((1,0),0,0)">
  // ARCH: cute_nvgpu.arch.ldmatrix
  cute.copy(%a, %p, %r) : (!a, !cute.memref<f16, smem, align<16>, "((8,1),1,1):((1,0),0,0)">, !cute.memref<f16, rmem, "((8,1),1,1):((1,0),0,0)">) -> ()
  return
}
