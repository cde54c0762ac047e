// Errors of tiled copies that are made from a tiled MMA, or from layouts of threads and values.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

!ld = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>
func.func @f(%a: !ld, %b: !ld) {
  // expected-error @below {{'cute.make_tiled_copy_A' op operand #1 must be a !cute.tiled_mma, got !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>}}
  %c = "cute.make_tiled_copy_A"(%a, %b) : (!ld, !ld) -> !cute.tiled_copy<!ld, layout_copy_tv = <"(32,8):(8,1)">, tiler_mn = <"[256:1]">>
  return
}

// -----

!st = !cute_nvgpu.atom.universal_copy<f32>
!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(1,1,1):(0,0,0)">>
!tc = !cute.tiled_copy<!st, layout_copy_tv = <"(32,8):(8,1)">, tiler_mn = <"[256:1]">>
func.func @f(%a: !st, %m: !mma) {
  // expected-error @below {{the atom !cute_nvgpu.atom.universal_copy<f32> moves elements of another width than B's f16; use one of the same width}}
  %c = cute.make_tiled_copy_B(%a, %m) : (!st, !mma) -> !tc
  return
}

// -----

!st = !cute_nvgpu.atom.universal_copy<f16>
!atom = !cute_nvgpu.atom.wgmma<64x8x16, (f32,f16,f16,f32), A = smem, major = (k, k)>
!mma = !cute.tiled_mma<!atom, atom_layout_MNK = <"(1,1,1):(0,0,0)">>
!tc = !cute.tiled_copy<!st, layout_copy_tv = <"(32,8):(8,1)">, tiler_mn = <"[256:1]">>
func.func @f(%a: !st, %m: !mma) {
  // expected-error @below {{!cute_nvgpu.atom.wgmma<64x8x16, (f32,f16,f16,f32), A = smem, major = (k, k)> does not read operand A from registers, which the copy writes; use an atom that does}}
  %c = cute.make_tiled_copy_A(%a, %m) : (!st, !mma) -> !tc
  return
}

// -----

!st = !cute_nvgpu.atom.universal_copy<f16>
!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(1,1,1):(0,0,0)">>
!tc = !cute.tiled_copy<!st, layout_copy_tv = <"(32,8):(8,1)">, tiler_mn = <"[256:1]">>
func.func @f(%a: !st, %m: !mma) {
  // expected-error @below {{result #0: expected !cute.tiled_copy<}}
  %c = cute.make_tiled_copy_B(%a, %m) : (!st, !mma) -> !tc
  return
}

// -----

!ld = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>
!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(1,1,1):(0,0,0)">>
!tc = !cute.tiled_copy<!ld, layout_copy_tv = <"(32,8):(8,1)">, tiler_mn = <"[256:1]">>
func.func @f(%a: !ld, %m: !mma) {
  // expected-error @below {{expected multiples of the atom's 32 threads and 8 values, got 32 threads and 4 values}}
  %c = cute.make_tiled_copy_B(%a, %m) : (!ld, !mma) -> !tc
  return
}

// -----

!st = !cute_nvgpu.atom.universal_copy<f16>
!l = !cute.layout<"(4,?):(?,1)">
!tc = !cute.tiled_copy<!st, layout_copy_tv = <"(32,8):(8,1)">, tiler_mn = <"[256:1]">>
func.func @f(%a: !st, %t: !l) {
  // expected-error @below {{operand #1 must be a static layout, got (4,?):(?,1)}}
  %c = cute.make_tiled_copy_tv(%a, %t, %t) : (!st, !l, !l) -> !tc
  return
}

// -----

!st = !cute_nvgpu.atom.universal_copy<f16>
!l = !cute.layout<"(4,8):(16,1)">
!tc = !cute.tiled_copy<!st, layout_copy_tv = <"(32,8):(8,1)">, tiler_mn = <"[256:1]">>
func.func @f(%a: !st, %t: !l) {
  // expected-error @below {{expected a thread layout that numbers its elements without gaps, got (4,8):(16,1)}}
  %c = cute.make_tiled_copy_tv(%a, %t, %t) : (!st, !l, !l) -> !tc
  return
}
