// Errors of cute-to-base without the passes that must run before it.
// RUN: cute-opt %s --cute-to-base --split-input-file --verify-diagnostics

func.func private @g(!cute_nvgpu.atom.universal_copy<f32>) -> !cute_nvgpu.atom.universal_copy<f32>
func.func @f() -> !cute_nvgpu.atom.universal_copy<f32> {
  // expected-error @below {{'cute.atom' cannot be lowered here; run the earlier cute passes first}}
  %a = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
//     ^
  %b = func.call @g(%a) : (!cute_nvgpu.atom.universal_copy<f32>) -> !cute_nvgpu.atom.universal_copy<f32>
  return %b : !cute_nvgpu.atom.universal_copy<f32>
}
