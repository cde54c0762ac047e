// Errors of tiled copies, fill and clear with incompatible operands.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

func.func @f() {
  // expected-error @below {{'cute.atom' op expected an atom type, got i32}}
  %a = cute.atom() : i32
//     ^
  return
}

// -----

!tc = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f16>, layout_copy_tv = <"(32,4):(4,1)">, tiler_mn = <"[128:1]">>
func.func @f(%a: !cute_nvgpu.atom.universal_copy<f32>) {
  // expected-error @below {{'cute.make_tiled_copy' op expected an atom of type !cute_nvgpu.atom.universal_copy<f16> as in the result type, got !cute_nvgpu.atom.universal_copy<f32>}}
  %m = cute.make_tiled_copy(%a) : !tc
//     ^
  return
}

// -----

!a = !cute_nvgpu.atom.universal_copy<f32>
func.func @f(%a: !a, %s: !cute.memref<f32, gmem, "(4,?):(1,4)">, %d: !cute.memref<f32, rmem, "(4,2):(1,4)">) {
  // expected-error @below {{'cute.copy' op operand #1 must have a static shape, got (4,?)}}
  cute.copy(%a, %s, %d) : (!a, !cute.memref<f32, gmem, "(4,?):(1,4)">, !cute.memref<f32, rmem, "(4,2):(1,4)">) -> ()
//^
  return
}

// -----

!a = !cute_nvgpu.atom.universal_copy<f32>
func.func @f(%a: !a, %s: !cute.memref<i32, gmem, "4:1">, %d: !cute.memref<f32, rmem, "4:1">) {
  // expected-error @below {{'cute.copy' op expected the same element type on both sides, got i32 and f32}}
  cute.copy(%a, %s, %d) : (!a, !cute.memref<i32, gmem, "4:1">, !cute.memref<f32, rmem, "4:1">) -> ()
//^
  return
}

// -----

!a = !cute_nvgpu.atom.universal_copy<f32>
func.func @f(%a: !a, %s: !cute.memref<f32, gmem, "(4,2):(1,4)">, %d: !cute.memref<f32, rmem, "8:1">) {
  // expected-error @below {{'cute.copy' op expected tensors of equal rank, got (4,2) and 8}}
  cute.copy(%a, %s, %d) : (!a, !cute.memref<f32, gmem, "(4,2):(1,4)">, !cute.memref<f32, rmem, "8:1">) -> ()
//^
  return
}

// -----

!a = !cute_nvgpu.atom.universal_copy<f32>
func.func @f(%a: !a, %s: !cute.memref<f32, gmem, "(4,2):(1,4)">, %d: !cute.memref<f32, rmem, "(4,2):(1,4)">, %p: i1) {
  // expected-error @below {{'cute.copy' op operand #3 must be an rmem tensor of i1, got i1}}
  "cute.copy"(%a, %s, %d, %p) : (!a, !cute.memref<f32, gmem, "(4,2):(1,4)">, !cute.memref<f32, rmem, "(4,2):(1,4)">, i1) -> ()
//^
  return
}

// -----

!a = !cute_nvgpu.atom.universal_copy<f32>
func.func @f(%a: !a, %s: !cute.memref<f32, gmem, "(4,2):(1,4)">, %d: !cute.memref<f32, rmem, "(4,2):(1,4)">, %p: !cute.memref<i1, smem, "(1,2):(0,1)">) {
  // expected-error @below {{'cute.copy' op operand #3 must be an rmem tensor of i1, got !cute.memref<i1, smem, "(1,2):(0,1)">}}
  "cute.copy"(%a, %s, %d, %p) : (!a, !cute.memref<f32, gmem, "(4,2):(1,4)">, !cute.memref<f32, rmem, "(4,2):(1,4)">, !cute.memref<i1, smem, "(1,2):(0,1)">) -> ()
//^
  return
}

// -----

!a = !cute_nvgpu.atom.universal_copy<f32>
func.func @f(%a: !a, %s: !cute.memref<f32, gmem, "(4,2):(1,4)">, %d: !cute.memref<f32, rmem, "(4,2):(1,4)">, %p: !cute.memref<i1, rmem, "(4,3):(0,1)">) {
  // expected-error @below {{'cute.copy' op expected a predicate of shape (4,2), or with size 1 in mode 0, got (4,3)}}
  "cute.copy"(%a, %s, %d, %p) : (!a, !cute.memref<f32, gmem, "(4,2):(1,4)">, !cute.memref<f32, rmem, "(4,2):(1,4)">, !cute.memref<i1, rmem, "(4,3):(0,1)">) -> ()
//^
  return
}

// -----

!a = !cute_nvgpu.atom.universal_copy<f32>
func.func @f(%a: !a, %s: !cute.memref<f64, gmem, "4:1">, %d: !cute.memref<f64, rmem, "4:1">) {
  // expected-error @below {{'cute.copy' op operand #1 must have elements as wide as the atom's f32, got f64}}
  cute.copy(%a, %s, %d) : (!a, !cute.memref<f64, gmem, "4:1">, !cute.memref<f64, rmem, "4:1">) -> ()
//^
  return
}

// -----

func.func @f(%t: !cute.memref<f32, rmem, "(4,?):(1,4)">, %x: f32) {
  // expected-error @below {{'cute.fill' op operand #0 must have a static shape, got (4,?)}}
  "cute.fill"(%t, %x) : (!cute.memref<f32, rmem, "(4,?):(1,4)">, f32) -> ()
//^
  return
}

// -----

func.func @f(%t: !cute.memref<f32, rmem, "(4,2):(1,4)">, %x: f16) {
  // expected-error @below {{'cute.fill' op operand #1 must be f32, got f16}}
  "cute.fill"(%t, %x) : (!cute.memref<f32, rmem, "(4,2):(1,4)">, f16) -> ()
//^
  return
}

// -----

func.func @f(%t: !cute.memref<f32, rmem, "(4,?):(1,4)">) {
  // expected-error @below {{'cute.clear' op operand #0 must have a static shape, got (4,?)}}
  "cute.clear"(%t) : (!cute.memref<f32, rmem, "(4,?):(1,4)">) -> ()
//^
  return
}

// -----

!tc = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f16>, layout_copy_tv = <"(32,4):(4,1)">, tiler_mn = <"[128:1]">>
func.func @f(%c: !tc, %t: !cute.memref<f16, rmem, "(4,?):(1,4)">) {
  // expected-error @below {{'cute.tiled.copy.retile' op expected a fragment with a static layout that is not composed, got (4,?):(1,4)}}
  %r = cute.tiled.copy.retile(%c, %t) : (!tc, !cute.memref<f16, rmem, "(4,?):(1,4)">) -> !cute.memref<f16, rmem, "4:1">
//     ^
  return
}

// -----

!tc = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f16>, layout_copy_tv = <"(32,4):(4,1)">, tiler_mn = <"[128:1]">>
func.func @f(%c: !tc, %t: !cute.memref<f16, rmem, "(3,2):(1,3)">) {
  // expected-error @below {{'cute.tiled.copy.retile' op result #0: expected !cute.memref<f16, rmem, "((1,6),1):((0,1),0)">, got !cute.memref<f16, rmem, "4:1">}}
  %r = cute.tiled.copy.retile(%c, %t) : (!tc, !cute.memref<f16, rmem, "(3,2):(1,3)">) -> !cute.memref<f16, rmem, "4:1">
//     ^
  return
}

// -----

func.func @f(%a: !cute_nvgpu.atom.universal_copy<f32>) {
  // expected-error @below {{'cute.make_tiled_copy' op expected an atom of type !cute_nvgpu.atom.universal_copy<f16> as in the result type, got !cute_nvgpu.atom.universal_copy<f32>}}
  %m = cute.make_tiled_copy(%a) : !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f16>, layout_copy_tv = <"(32,4):(4,1)">, tiler_mn = <"128:1">>
//     ^
  return
}

// -----

!tc = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f16>, layout_copy_tv = <"(32,4):(4,1)">, tiler_mn = <"128:1">>
func.func @f(%c: !tc, %t: !cute.memref<f16, rmem, "(4,?):(1,4)">) {
  // expected-error @below {{'cute.tiled.copy.retile' op expected a fragment with a static layout that is not composed, got (4,?):(1,4)}}
  %r = cute.tiled.copy.retile(%c, %t) : (!tc, !cute.memref<f16, rmem, "(4,?):(1,4)">) -> !cute.memref<f16, rmem, "4:1">
//     ^
  return
}

// -----

!tc = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f16>, layout_copy_tv = <"(32,4):(4,1)">, tiler_mn = <"128:1">>
func.func @f(%c: !tc, %t: !cute.memref<f16, rmem, "(3,2):(1,3)">) {
  // expected-error @below {{'cute.tiled.copy.retile' op the fragment does not consist of whole tiles of the copy: expected a tiler of rank at most 2 for (3,2):(1,3), got rank 3}}
  %r = cute.tiled.copy.retile(%c, %t) : (!tc, !cute.memref<f16, rmem, "(3,2):(1,3)">) -> !cute.memref<f16, rmem, "4:1">
//     ^
  return
}
