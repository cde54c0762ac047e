// Errors of the types, ops and copies of bulk copies.
// RUN: cute-opt %s --convert-cute-algo-to-arch --split-input-file --verify-diagnostics

// expected-error @below {{expected a multiple of 128 bits that holds whole f32 elements, got 100 bits}}
func.func private @f(!cute_nvgpu.atom.bulk_copy<f32, 100 b>)

// -----

// expected-error @below {{expected one of add, min, max, inc, dec, and, or, xor, got 'mul'}}
func.func private @f(!cute_nvgpu.atom.bulk_reduce<f32, mul>)

// -----

// expected-error @below {{expected elements that cp.reduce.async.bulk.max supports (f16, bf16, s32, u32, s64, u64), got f32}}
func.func private @f(!cute_nvgpu.atom.bulk_reduce<f32, max>)

// -----

!at = !cute_nvgpu.atom.bulk_copy<f32>
!g = !cute.memref<f32, gmem, align<16>, "64:1">
!s = !cute.memref<f32, smem, align<16>, "64:1">
func.func @f(%a: !at, %g: !g, %s: !s, %p: !cute.memref<i1, rmem, "1:0">) {
  // expected-error @below {{a copy with a bulk atom takes no predicate tensor; set one flag for all elements with cute.atom.set_value 'pred'}}
  cute.copy(%a, %s, %g, pred = %p) : (!at, !s, !g, !cute.memref<i1, rmem, "1:0">) -> ()
  return
}

// -----

!at = !cute_nvgpu.atom.bulk_copy<f32>
!c = !cute.coord_tensor<"(0,0)", "(8,8):(1@0,1@1)">
!s = !cute.memref<f32, smem, align<16>, "(8,8):(1,8)">
func.func @f(%a: !at, %c: !c, %s: !s) {
  // expected-error @below {{operand #1 must be a !cute.memref, got !cute.coord_tensor<"(0,0)", "(8,8):(1@0,1@1)">}}
  cute.copy(%a, %c, %s) : (!at, !c, !s) -> ()
  return
}

// -----

!at = !cute_nvgpu.atom.bulk_copy<f32>
!g = !cute.memref<i32, gmem, align<16>, "64:1">
!s = !cute.memref<f32, smem, align<16>, "64:1">
func.func @f(%a: !at, %g: !g, %s: !s) {
  // expected-error @below {{operand #1 must have elements of the atom's f32, got i32}}
  cute.copy(%a, %g, %s) : (!at, !g, !s) -> ()
  return
}

// -----

!at = !cute_nvgpu.atom.bulk_copy<f16>
!g = !cute.memref<f16, gmem, align<16>, "64:1">
!s = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "64:1">
func.func @f(%a: !at, %g: !g, %s: !s) {
  // expected-error @below {{expected operand #2 without swizzle: bulk copies move plain runs of bytes, got !cute.memref<f16, smem, align<1024>, S<3,4,3>, "64:1">}}
  cute.copy(%a, %g, %s) : (!at, !g, !s) -> ()
  return
}

// -----

!at = !cute_nvgpu.atom.bulk_reduce<f32, add>
!g = !cute.memref<f32, gmem, align<16>, "64:1">
!s = !cute.memref<f32, smem, align<16>, "64:1">
func.func @f(%a: !at, %g: !g, %s: !s) {
  // expected-error @below {{expected a copy that cute_nvgpu.atom.bulk_reduce supports (smem to gmem), got gmem to smem}}
  cute.copy(%a, %g, %s) : (!at, !g, !s) -> ()
  return
}

// -----

!at = !cute_nvgpu.atom.bulk_copy<f32>
!g = !cute.memref<f32, gmem, align<16>, "?:1">
!s = !cute.memref<f32, smem, align<16>, "64:1">
func.func @f(%a: !at, %g: !g, %s: !s) {
  // expected-error @below {{expected a static shape of the source, got ?}}
  cute.copy(%a, %g, %s) : (!at, !g, !s) -> ()
  return
}

// -----

!at = !cute_nvgpu.atom.bulk_copy<f32, 2048 b>
!g = !cute.memref<f32, gmem, align<16>, "(32,2):(1,64)">
!s = !cute.memref<f32, smem, align<16>, "64:1">
func.func @f(%a: !at, %g: !g, %s: !s) {
  // expected-error @below {{expected runs of 64 elements, the 2048 bits of the atom, got 32 contiguous in both (32,2):(1,64) and 64:1}}
  cute.copy(%a, %g, %s) : (!at, !g, !s) -> ()
  return
}

// -----

!at = !cute_nvgpu.atom.bulk_copy<f32>
!g = !cute.memref<f32, gmem, align<16>, "(6,2):(1,64)">
!s = !cute.memref<f32, smem, align<16>, "12:1">
func.func @f(%a: !at, %g: !g, %s: !s) {
  // expected-error @below {{expected runs of a multiple of 16 bytes, got 6 elements of f32 that are contiguous in both (6,2):(1,64) and 12:1}}
  cute.copy(%a, %g, %s) : (!at, !g, !s) -> ()
  return
}

// -----

!at = !cute_nvgpu.atom.bulk_copy<f32>
!g = !cute.memref<f32, gmem, "64:1">
!s = !cute.memref<f32, smem, align<16>, "64:1">
func.func @f(%a: !at, %g: !g, %s: !s) {
  // expected-error @below {{expected a source aligned to 16 bytes for a bulk copy, got 4 bytes in !cute.memref<f32, gmem, "64:1">}}
  cute.copy(%a, %g, %s) : (!at, !g, !s) -> ()
  return
}

// -----

!at = !cute_nvgpu.atom.bulk_copy<f32>
!g = !cute.memref<f32, gmem, align<16>, "(32,2):(1,?)">
!s = !cute.memref<f32, smem, align<16>, "64:1">
func.func @f(%a: !at, %g: !g, %s: !s) {
  // expected-error @below {{expected runs of the source that begin at multiples of 4 elements (16 bytes), got (32,2):(1,?)}}
  cute.copy(%a, %g, %s) : (!at, !g, !s) -> ()
  return
}

// -----

!at = !cute_nvgpu.atom.bulk_copy<f32>
!g = !cute.memref<f32, gmem, align<16>, "64:1">
!s = !cute.memref<f32, smem, align<16>, "64:1">
func.func @f(%a: !at, %g: !g, %s: !s) {
  // expected-error @below {{this copy needs the mbarrier that counts its bytes: set it with cute.atom.set_value … {field = tma_bar} between the atom and the copy, in the same function}}
  cute.copy(%a, %g, %s) : (!at, !g, !s) -> ()
  return
}

// -----

!at = !cute_nvgpu.atom.bulk_copy<f32>
func.func @f(%a: !at, %bar: !cute.ptr<i32, smem>) {
  // expected-error @below {{operand #1 must be a !cute.ptr<i64, smem> for tma_bar, got !cute.ptr<i32, smem>}}
  %b = cute.atom.set_value(%a, %bar) {field = tma_bar} : (!at, !cute.ptr<i32, smem>) -> !at
  return
}

// -----

!g = !cute.memref<f32, gmem, align<16>, "64:1">
!s = !cute.memref<f32, smem, align<16>, "64:1">
func.func @f(%g: !g, %s: !s, %mask: i16) {
  // expected-error @below {{expected at most an i64 cache hint for a copy from smem to gmem, got i16}}
  cute_nvgpu.arch.bulk_copy(%s, %g, %mask) : (!s, !g, i16) -> ()
  return
}

// -----

!g = !cute.memref<f32, gmem, align<16>, "64:1">
!s = !cute.memref<f32, smem, align<16>, "64:1">
func.func @f(%g: !g, %s: !s, %bar: !cute.ptr<i64, gmem>) {
  // expected-error @below {{operand #2 must be a !cute.ptr<i64, smem>, got !cute.ptr<i64, gmem>}}
  cute_nvgpu.arch.bulk_copy(%g, %s, %bar) : (!g, !s, !cute.ptr<i64, gmem>) -> ()
  return
}

// -----

!g = !cute.memref<i32, gmem, align<16>, "64:1">
!s = !cute.memref<f32, smem, align<16>, "64:1">
func.func @f(%g: !g, %s: !s) {
  // expected-error @below {{expected runs of equal length and element type, got !cute.memref<f32, smem, align<16>, "64:1"> and !cute.memref<i32, gmem, align<16>, "64:1">}}
  cute_nvgpu.arch.bulk_reduce(%s, %g) {reduction = "add"} : (!s, !g) -> ()
  return
}

// -----

!g = !cute.memref<f32, gmem, align<16>, "64:1">
!s = !cute.memref<f32, smem, align<16>, "64:1">
func.func @f(%g: !g, %s: !s) {
  // expected-error @below {{expected reduction = one of add, min, max, inc, dec, and, or, xor, got 'mul'}}
  cute_nvgpu.arch.bulk_reduce(%s, %g) {reduction = "mul"} : (!s, !g) -> ()
  return
}

// -----

!tc = !cute.tiled_copy<!cute_nvgpu.atom.bulk_copy<f32, 1024 b>, layout_copy_tv = <"(8,32):(1,8)">, tiler_mn = <"[8:1;32:1]">>
!c = !cute.coord_tensor<"(0,0)", "(8,32):(1@0,1@1)">
!s = !cute.memref<f32, smem, align<16>, "(8,32):(32,1)">
func.func @f(%tc: !tc, %c: !c, %s: !s, %k: !cute.coord<"?">) {
  // expected-error @below {{operand #1 must be a !cute.memref, got !cute.coord_tensor<"(0,0)", "(8,32):(1@0,1@1)">}}
  cute.tiled_copy(%tc, %c, %s, %k) : (!tc, !c, !s, !cute.coord<"?">) -> ()
  return
}

// -----

!at = !cute_nvgpu.atom.bulk_copy<f32>
!g = !cute.memref<f32, gmem, align<16>, "(4,6):(1,16)">
!s = !cute.memref<f32, smem, align<16>, "(6,4):(1,16)">
func.func @f(%a: !at, %g: !g, %s: !s) {
  // expected-error @below {{expected shapes that split into common modes, got (4,6):(1,16), (6,4):(1,16)}}
  cute.copy(%a, %g, %s) : (!at, !g, !s) -> ()
  return
}
