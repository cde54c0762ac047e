// RUN: cute-opt %s --convert-cute-algo-to-arch --split-input-file --verify-diagnostics

!atom = !cute_nvgpu.atom.universal_copy<f32, 128 b>
!src = !cute.memref<f32, gmem, "(4,4):(1,?)">
!regs = !cute.memref<f32, rmem, align<32>, "(4,4):(1,4)">
func.func @too_narrow(%s: !src, %d: !regs) {
  %atom = cute.atom() : !atom
  // expected-error @below {{the atom moves 128 bits at a time, but alignment and layouts prove accesses of 32 bits only}}
  cute.copy(%atom, %s, %d) : (!atom, !src, !regs) -> ()
  return
}

// -----

!atom = !cute_nvgpu.atom.universal_copy<f32>
!src = !cute.memref<f32, gmem, "(4,4):(1,4)">
!regs = !cute.memref<f32, rmem, align<32>, "(2,8):(1,2)">
func.func @sizes(%s: !src, %d: !regs) {
  %atom = cute.atom() : !atom
  // expected-error @below {{expected modes of equal size, got 4 and 2 in mode 0 of (4,4) and (2,8)}}
  cute.copy(%atom, %s, %d) : (!atom, !src, !regs) -> ()
  return
}

// -----

!atom = !cute_nvgpu.atom.universal_copy<f32>
!src = !cute.memref<f32, gmem, "(4,4):(1,4)">
!half = !cute.memref<f16, rmem, align<32>, "(4,4):(1,4)">
func.func @elements(%s: !src, %d: !half) {
  %atom = cute.atom() : !atom
  // expected-error @below {{operand #2 must have elements as wide as the atom's f32, got f16}}
  cute.copy(%atom, %s, %d) : (!atom, !src, !half) -> ()
  return
}

// -----

!atom = !cute_nvgpu.atom.universal_copy<f32>
!src = !cute.memref<f32, gmem, "(4,4):(1,4)">
!regs = !cute.memref<f32, rmem, align<32>, "(4,4):(1,4)">
!flags = !cute.memref<i1, rmem, align<8>, "(2,4):(1,2)">
func.func @flags(%s: !src, %d: !regs, %p: !flags) {
  %atom = cute.atom() : !atom
  // expected-error @below {{expected a predicate of shape (4,4), or with size 1 in mode 0, got (2,4)}}
  cute.copy(%atom, %s, %d, pred = %p) : (!atom, !src, !regs, !flags) -> ()
  return
}

// -----

// expected-error @below {{expected a thread-value layout of rank 2 (thread, value), got 16:1}}
!tc = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"16:1">, tiler_mn = <"[4:1;4:1]">>

// -----

// expected-error @below {{expected multiples of the atom's 1 threads and 4 values, got 4 threads and 6 values}}
!tc = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32, 128 b>, layout_copy_tv = <"(4,6):(6,1)">, tiler_mn = <"[4:1;6:1]">>

// -----

!tc = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"(4,4):(4,1)">, tiler_mn = <"[4:1;4:1]">>
!t = !cute.memref<f16, gmem, "(4,4):(4,1)">
!p = !cute.memref<f16, gmem, "((1,4),1,1):((0,4),0,0)">
func.func @partition_width(%c: !tc, %t: !t, %i: !cute.coord<"?">) {
  %p = cute.tiled.copy.partition_S(%c, %t, %i) : (!tc, !t, !cute.coord<"?">) -> !p
  // expected-error @below {{operand #1 must have elements as wide as the atom's f32, got f16}}
  cute.copy(%c, %p, %p) : (!tc, !p, !p) -> ()
  return
}

// -----

!tc = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"(4,4):(4,1)">, tiler_mn = <"[4:1;4:1]">>
!t = !cute.memref<f32, gmem, "(4,4):(4,1)">
func.func @partition_thread(%c: !tc, %t: !t, %i: !cute.coord<"(?,?)">) {
  // expected-error @below {{operand #2 must be a thread index, got (?,?)}}
  %p = cute.tiled.copy.partition_S(%c, %t, %i) : (!tc, !t, !cute.coord<"(?,?)">) -> !t
  return
}
