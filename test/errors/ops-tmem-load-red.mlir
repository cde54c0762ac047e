// Errors of loads of tensor memory with a reduction.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{16x64b with x4 has no load with a reduction; use 32x32b or 16x32bx2, with x2 or more}}
func.func private @f(!cute_nvgpu.atom.tmem_load<f32, 16x64b, x4, red = max>)

// -----

// expected-error @below {{sum is not a reduction of a load; use min or max}}
func.func private @f(!cute_nvgpu.atom.tmem_load<f32, 32x32b, x4, red = sum>)

// -----

// expected-error @below {{a load cannot reduce f16; use one of f32, i32, ui32}}
func.func private @f(!cute_nvgpu.atom.tmem_load<f16, 32x32b, x4, red = max>)

// -----

// expected-error @below {{abs and nan need elements of f32, got i32}}
func.func private @f(!cute_nvgpu.atom.tmem_load<i32, 32x32b, x4, red = max, abs>)

// -----

!t = !cute.memref<f32, tmem, "(4,32):(1,65536)">
!r = !cute.memref<f32, rmem, "4:1">
func.func @f(%t: !t, %r: !r) {
  // expected-error @below {{'cute_nvgpu.arch.tmem_load' op !cute_nvgpu.atom.tmem_load<f32, 32x32b, x4, red = max> has a reduction; use cute_nvgpu.arch.tmem_load_red}}
  cute_nvgpu.arch.tmem_load(%t, %r) {atom = !cute_nvgpu.atom.tmem_load<f32, 32x32b, x4, red = max>} : (!t, !r) -> ()
//^
  return
}

// -----

!t = !cute.memref<f32, tmem, "(4,32):(1,65536)">
!r = !cute.memref<f32, rmem, "4:1">
func.func @f(%t: !t, %r: !r) {
  // expected-error @below {{'cute_nvgpu.arch.tmem_load_red' op !cute_nvgpu.atom.tmem_load<f32, 32x32b, x4> has no reduction; write one such as red = max}}
  cute_nvgpu.arch.tmem_load_red(%t, %r, %r) {atom = !cute_nvgpu.atom.tmem_load<f32, 32x32b, x4>} : (!t, !r, !r) -> ()
//^
  return
}

// -----

!t = !cute.memref<f32, tmem, "(4,32):(1,65536)">
!r = !cute.memref<f32, rmem, "4:1">
func.func @f(%t: !t, %r: !r) {
  // expected-error @below {{'cute_nvgpu.arch.tmem_load_red' op operand #2 must be one f32 in registers, got !cute.memref<f32, rmem, "4:1">; use !cute.memref<f32, rmem, "1:0">}}
  cute_nvgpu.arch.tmem_load_red(%t, %r, %r) {atom = !cute_nvgpu.atom.tmem_load<f32, 32x32b, x4, red = max>} : (!t, !r, !r) -> ()
//^
  return
}

// -----

!load = !cute_nvgpu.atom.tmem_load<f32, 32x32b, x4, red = max>
!t = !cute.memref<f32, tmem, "(4,32):(1,65536)">
!r = !cute.memref<f32, rmem, "4:1">
func.func @f(%t: !t, %r: !r) {
  %a = cute.atom() : !load
  // expected-error @below {{'cute.copy' op a copy has no operand for the reduction of !cute_nvgpu.atom.tmem_load<f32, 32x32b, x4, red = max>; use cute_nvgpu.arch.tmem_load_red}}
  cute.copy(%a, %t, %r) : (!load, !t, !r) -> ()
//^
  return
}
