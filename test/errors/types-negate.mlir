// Negated operands of wgmma: the printed form of the types, and errors.
// RUN: cute-opt %s --split-input-file --verify-diagnostics -o - | FileCheck %s

// CHECK: !cute_nvgpu.atom.wgmma<64x8x16, (f32,f16,f16,f32), A = smem, major = (k, k), negate_a>
// CHECK-SAME: !cute_nvgpu.atom.wgmma<64x8x16, (f32,f16,f16,f32), A = rmem, major = (k, k), negate_a, negate_b>
func.func private @f(!cute_nvgpu.atom.wgmma<64x8x16, (f32,f16,f16,f32), negate_a>,
  !cute_nvgpu.atom.wgmma<64x8x16, (f32,f16,f16,f32), negate_b, A = rmem, negate_a>)

// -----

// expected-error @below {{negated operands must be floating-point, got i8 and i8}}
func.func private @f(!cute_nvgpu.atom.wgmma<64x8x32, (i32,i8,i8,i32), negate_a>)

// -----

// expected-error @below {{'minus' is not supported here; write one of A, major, negate_a, negate_b, saturate}}
func.func private @f(!cute_nvgpu.atom.wgmma<64x8x16, (f32,f16,f16,f32), minus>)
