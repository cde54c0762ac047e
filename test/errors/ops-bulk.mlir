// Errors of the types, ops and copies of bulk copies.
// RUN: cute-opt %s --convert-cute-algo-to-arch --split-input-file --verify-diagnostics

// expected-error @below {{the atom has 100 bits; use a multiple of 128 bits that holds whole f32 elements}}
func.func private @f(!cute_nvgpu.atom.bulk_copy<f32, 100 b>)

// -----

// expected-error @below {{'mul' is not a reduction; write one of add, min, max, inc, dec, and, or, xor}}
func.func private @f(!cute_nvgpu.atom.bulk_reduce<f32, mul>)

// -----

// expected-error @below {{cp.reduce.async.bulk.max does not support elements f32; use one of f16, bf16, s32, u32, s64, u64}}
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
  // expected-error @below {{operand #2 has a swizzle (!cute.memref<f16, smem, align<1024>, S<3,4,3>, "64:1">), but bulk copies move plain runs of bytes; use one without}}
  cute.copy(%a, %g, %s) : (!at, !g, !s) -> ()
  return
}

// -----

!at = !cute_nvgpu.atom.bulk_reduce<f32, add>
!g = !cute.memref<f32, gmem, align<16>, "64:1">
!s = !cute.memref<f32, smem, align<16>, "64:1">
func.func @f(%a: !at, %g: !g, %s: !s) {
  // expected-error @below {{cute_nvgpu.atom.bulk_reduce does not copy from gmem to smem; it supports smem to gmem}}
  cute.copy(%a, %g, %s) : (!at, !g, !s) -> ()
  return
}

// -----

!at = !cute_nvgpu.atom.bulk_copy<f32>
!g = !cute.memref<f32, gmem, align<16>, "?:1">
!s = !cute.memref<f32, smem, align<16>, "64:1">
func.func @f(%a: !at, %g: !g, %s: !s) {
  // expected-error @below {{the shape of the source is not static (?); use static extents}}
  cute.copy(%a, %g, %s) : (!at, !g, !s) -> ()
  return
}

// -----

!at = !cute_nvgpu.atom.bulk_copy<f32, 2048 b>
!g = !cute.memref<f32, gmem, align<16>, "(32,2):(1,64)">
!s = !cute.memref<f32, smem, align<16>, "64:1">
func.func @f(%a: !at, %g: !g, %s: !s) {
  // expected-error @below {{32 elements are contiguous in both (32,2):(1,64) and 64:1; the 2048 bits of the atom need runs of 64}}
  cute.copy(%a, %g, %s) : (!at, !g, !s) -> ()
  return
}

// -----

!at = !cute_nvgpu.atom.bulk_copy<f32>
!g = !cute.memref<f32, gmem, align<16>, "(6,2):(1,64)">
!s = !cute.memref<f32, smem, align<16>, "12:1">
func.func @f(%a: !at, %g: !g, %s: !s) {
  // expected-error @below {{6 elements of f32 are contiguous in both (6,2):(1,64) and 12:1; runs must be multiples of 16 bytes}}
  cute.copy(%a, %g, %s) : (!at, !g, !s) -> ()
  return
}

// -----

!at = !cute_nvgpu.atom.bulk_copy<f32>
!g = !cute.memref<f32, gmem, "64:1">
!s = !cute.memref<f32, smem, align<16>, "64:1">
func.func @f(%a: !at, %g: !g, %s: !s) {
  // expected-error @below {{the source is aligned to 4 bytes (!cute.memref<f32, gmem, "64:1">); a bulk copy needs 16}}
  cute.copy(%a, %g, %s) : (!at, !g, !s) -> ()
  return
}

// -----

!at = !cute_nvgpu.atom.bulk_copy<f32>
!g = !cute.memref<f32, gmem, align<16>, "(32,2):(1,?)">
!s = !cute.memref<f32, smem, align<16>, "64:1">
func.func @f(%a: !at, %g: !g, %s: !s) {
  // expected-error @below {{the layout of the source is (32,2):(1,?); its runs must begin at multiples of 4 elements (16 bytes)}}
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
  // expected-error @below {{a copy from smem to gmem does not take i16; pass at most an i64 cache hint}}
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
  // expected-error @below {{the runs are !cute.memref<f32, smem, align<16>, "64:1"> and !cute.memref<i32, gmem, align<16>, "64:1">; their lengths and element types must be equal}}
  cute_nvgpu.arch.bulk_reduce(%s, %g) {reduction = "add"} : (!s, !g) -> ()
  return
}

// -----

!g = !cute.memref<f32, gmem, align<16>, "64:1">
!s = !cute.memref<f32, smem, align<16>, "64:1">
func.func @f(%g: !g, %s: !s) {
  // expected-error @below {{the reduction is 'mul'; use one of add, min, max, inc, dec, and, or, xor}}
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
