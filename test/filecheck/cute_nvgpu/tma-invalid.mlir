// TMA atoms, tensor maps and copies: what parser and verifier reject, and what they say.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{'size' is not supported here; write one of box, swizzle, interleave, element_strides, oob, l2}}
func.func private @f(!cute_nvgpu.atom.tma_load<f16, size = (64, 128)>)

// -----

// expected-error @below {{expected the box, e.g. box = (64, 128)}}
func.func private @f(!cute_nvgpu.atom.tma_load<f16, swizzle = 128>)

// -----

// expected-error @below {{dimension 0: expected 1 to 256 elements in the box, got 264}}
func.func private @f(!cute_nvgpu.atom.tma_load<f16, box = (264, 8)>)

// -----

// expected-error @below {{dimension 0: expected a box whose rows are a multiple of 16 bytes, got 8}}
func.func private @f(!cute_nvgpu.atom.tma_load<f16, box = (4, 8)>)

// -----

// expected-error @below {{dimension 0: expected rows of at most 64 bytes, the width of the swizzle, got 128}}
func.func private @f(!cute_nvgpu.atom.tma_store<f16, box = (64, 8), swizzle = 64>)

// -----

// expected-error @below {{rank: expected 1 to 5 dimensions, got 6}}
func.func private @f(!cute_nvgpu.atom.tma_store<f16, box = (64, 1, 1, 1, 1, 1)>)

// -----

// expected-error @below {{swizzle: expected one of 0, 32, 64, 128, got 256}}
func.func private @f(!cute_nvgpu.atom.tma_store<f16, box = (64, 8), swizzle = 256>)

// -----

// expected-error @below {{dimension 1: expected 1 to 8 as element stride, got 9}}
func.func private @f(!cute_nvgpu.atom.tma_load<f16, box = (64, 8), element_strides = (1, 9)>)

// -----

// expected-error @below {{the number of element strides is 1; write 2, one per dimension}}
func.func private @f(!cute_nvgpu.atom.tma_load<f16, box = (64, 8), element_strides = (2)>)

// -----

// expected-error @below {{out-of-bounds fill: expected a float type of 16 bits or more for NaN, got i32}}
func.func private @f(!cute_nvgpu.atom.tma_load<i32, box = (64, 8), oob = nan>)

// -----

// expected-error @below {{element: expected elements of whole bytes, got i4: recast the tensor to ui8}}
func.func private @f(!cute_nvgpu.atom.tma_load<i4, box = (64, 8)>)

// -----

// expected-error @below {{'mul' is not a reduction; write one of add, min, max, inc, dec, and, or, xor}}
func.func private @f(!cute_nvgpu.atom.tma_reduce<f32, mul, box = (32, 8)>)

// -----

// expected-error @below {{TMA does not support the reduction max for f32; use one of add}}
func.func private @f(!cute_nvgpu.atom.tma_reduce<f32, max, box = (32, 8)>)

// -----

!g = !cute.memref<f16, smem, "(?,?):(?,1)">
func.func @f(%g: !g, %l: !cute.layout<"(8,64):(64,1)">, %t: !cute.tile<"[8:1;64:1]">) {
  // expected-error @below {{'cute_nvgpu.make_tma_load' op operand #0 must be a !cute.memref in gmem, got one in smem}}
  %a, %c = cute_nvgpu.make_tma_load(%g, %l, %t) : (!g, !cute.layout<"(8,64):(64,1)">, !cute.tile<"[8:1;64:1]">)
    -> (!cute_nvgpu.atom.tma_load<f16, box = (64, 8)>, !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">)
  return
}

// -----

!g = !cute.memref<f16, gmem, "(?,?):(?,2)">
func.func @f(%g: !g, %l: !cute.layout<"(8,64):(64,1)">, %t: !cute.tile<"[8:1;64:1]">) {
  // expected-error @below {{dimension 0: expected stride 1 in global memory, got 2 along mode 1, which is contiguous in shared memory: the majors differ}}
  %a, %c = cute_nvgpu.make_tma_load(%g, %l, %t) : (!g, !cute.layout<"(8,64):(64,1)">, !cute.tile<"[8:1;64:1]">)
    -> (!cute_nvgpu.atom.tma_load<f16, box = (64, 8)>, !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">)
  return
}

// -----

!g = !cute.memref<f16, gmem, "(?,?):(100,1)">
func.func @f(%g: !g, %l: !cute.layout<"(8,64):(64,1)">, %t: !cute.tile<"[8:1;64:1]">) {
  // expected-error @below {{dimension 1: expected a stride that is a positive multiple of 16 bytes, got 200 (100 elements)}}
  %a, %c = cute_nvgpu.make_tma_load(%g, %l, %t) : (!g, !cute.layout<"(8,64):(64,1)">, !cute.tile<"[8:1;64:1]">)
    -> (!cute_nvgpu.atom.tma_load<f16, box = (64, 8)>, !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">)
  return
}

// -----

!g = !cute.memref<f16, gmem, "(?,?):(?,1)">
func.func @f(%g: !g, %l: !cute.layout<"(8,64):(64,1)">, %t: !cute.tile<"[8:1;64:1]">) {
  // expected-error @below {{result #0: expected !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>, got !cute_nvgpu.atom.tma_load<f16, box = (64, 8), swizzle = 128>}}
  %a, %c = cute_nvgpu.make_tma_load(%g, %l, %t) : (!g, !cute.layout<"(8,64):(64,1)">, !cute.tile<"[8:1;64:1]">)
    -> (!cute_nvgpu.atom.tma_load<f16, box = (64, 8), swizzle = 128>, !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">)
  return
}

// -----

!g = !cute.memref<f16, gmem, "(?,?):(?,1)">
func.func @f(%g: !g, %l: !cute.layout<"(8,64):(64,1)">, %t: !cute.tile<"[8:1;64:1]">) {
  // expected-error @below {{property 'swizzle' is 16; use 0, 32, 64 or 128 bytes}}
  %a, %c = cute_nvgpu.make_tma_load(%g, %l, %t) {swizzle = 16 : i32}
    : (!g, !cute.layout<"(8,64):(64,1)">, !cute.tile<"[8:1;64:1]">)
    -> (!cute_nvgpu.atom.tma_load<f16, box = (64, 8)>, !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">)
  return
}

// -----

!g = !cute.memref<f16, gmem, "(?,?):(?,1)">
func.func @f(%g: !g, %l: !cute.layout<"(8,64):(64,1)">, %t: !cute.tile<"[8:1;64:1]">) {
  // expected-error @below {{multicast: expected a number of CTAs that divides the box (64, 8) from its outermost dimension, got 3}}
  %a, %c = cute_nvgpu.make_tma_load(%g, %l, %t) {multicast = 3 : i32}
    : (!g, !cute.layout<"(8,64):(64,1)">, !cute.tile<"[8:1;64:1]">)
    -> (!cute_nvgpu.atom.tma_load<f16, box = (64, 8)>, !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">)
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
func.func @f(%a: !load, %m: i32) {
  // expected-error @below {{operand #1 must be i16 for multicast_mask, got i32}}
  %b = cute.atom.set_value(%a, %m) {field = multicast_mask} : (!load, i32) -> !load
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
func.func @f(%a: !load, %m: !cute.ptr<i32, smem>) {
  // expected-error @below {{operand #1 must be a !cute.ptr<i64, smem> for tma_bar, got !cute.ptr<i32, smem>}}
  %b = cute.atom.set_value(%a, %m) {field = tma_bar} : (!load, !cute.ptr<i32, smem>) -> !load
  return
}

// -----

!store = !cute_nvgpu.atom.tma_store<f16, box = (64, 8)>
func.func @f(%a: !store, %m: !cute.ptr<i64, smem>) {
  // expected-error @below {{property 'field': cute_nvgpu.atom.tma_store has no field tma_bar; its fields are cache_hint, pred}}
  %b = cute.atom.set_value(%a, %m) {field = tma_bar} : (!store, !cute.ptr<i64, smem>) -> !store
  return
}

// -----

!store = !cute_nvgpu.atom.tma_store<f16, box = (64, 8)>
func.func @f(%a: !store, %m: i1) {
  // expected-error @below {{property 'field': cute_nvgpu.atom.tma_store has no field when; its fields are cache_hint, pred}}
  %b = cute.atom.set_value(%a, %m) {field = when} : (!store, i1) -> !store
  return
}

// -----

!plain = !cute_nvgpu.atom.universal_copy<f16>
func.func @f(%a: !plain, %m: i1) {
  // expected-error @below {{operand #0 must be an atom with run-time state (tma_load, tma_store, tma_reduce, bulk_copy, bulk_reduce), got !cute_nvgpu.atom.universal_copy<f16>}}
  %b = cute.atom.set_value(%a, %m) {field = pred} : (!plain, i1) -> !plain
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
!xy = !cute.coord_tensor<"(?,?)", "(8,64):(1@1,1@0)">
!s = !cute.memref<f16, smem, align<128>, "(8,64):(64,1)">
func.func @f(%a: !load, %c: !xy, %s: !s) {
  // expected-error @below {{'cute.copy' op operand #1 must be a !cute.coord_tensor of TMA coordinates, the source of cute_nvgpu.atom.tma_load, got !cute.memref<f16, smem, align<128>, "(8,64):(64,1)">}}
  cute.copy(%a, %s, %c) : (!load, !s, !xy) -> ()
  return
}

// -----

!store = !cute_nvgpu.atom.tma_store<f16, box = (64, 8)>
!xy = !cute.coord_tensor<"(?,?)", "(8,64):(1@1,1@0)">
!s = !cute.memref<f16, gmem, align<128>, "(8,64):(64,1)">
func.func @f(%a: !store, %c: !xy, %s: !s) {
  // expected-error @below {{'cute.copy' op operand #1 must be a !cute.memref in smem, got !cute.memref<f16, gmem}}
  cute.copy(%a, %s, %c) : (!store, !s, !xy) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
!xy = !cute.coord_tensor<"(?,?)", "(8,64):(1@1,1@0)">
!s = !cute.memref<bf16, smem, align<128>, "(8,64):(64,1)">
func.func @f(%a: !load, %c: !xy, %s: !s) {
  // expected-error @below {{smem has elements bf16; the tensor map needs f16}}
  cute.copy(%a, %c, %s) : (!load, !xy, !s) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8), swizzle = 128>
!xy = !cute.coord_tensor<"(?,?)", "(8,64):(1@1,1@0)">
!s = !cute.memref<f16, smem, align<1024>, S<2,4,3>, "(8,64):(64,1)">
func.func @f(%a: !load, %c: !xy, %s: !s) {
  // expected-error @below {{smem has a swizzle of 64 bytes}}
  cute.copy(%a, %c, %s) : (!load, !xy, !s) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8), swizzle = 128>
!xy = !cute.coord_tensor<"(?,?)", "(8,64):(1@1,1@0)">
!s = !cute.memref<f16, smem, align<1024>, S<2,5,2>, "(8,64):(64,1)">
func.func @f(%a: !load, %c: !xy, %s: !s) {
  // expected-error @below {{swizzle: expected one of S<0,4,3>, S<1,4,3>, S<2,4,3>, S<3,4,3> on bytes, got S<2,5,2>}}
  cute.copy(%a, %c, %s) : (!load, !xy, !s) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8), swizzle = 128>
!xy = !cute.coord_tensor<"(?,?)", "(8,64):(1@1,1@0)">
!s = !cute.memref<f16, smem, align<128>, S<3,4,3>, "(8,64):(64,1)">
func.func @f(%a: !load, %c: !xy, %s: !s) {
  // expected-error @below {{smem is aligned to 128 bytes}}
  cute.copy(%a, %c, %s) : (!load, !xy, !s) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
!xy = !cute.coord_tensor<"(?,?)", "(8,64):(1@1,1@0)">
!s = !cute.memref<f16, smem, align<16>, "(8,64):(64,1)">
func.func @f(%a: !load, %c: !xy, %s: !s) {
  // expected-error @below {{smem is aligned to 16 bytes}}
  cute.copy(%a, %c, %s) : (!load, !xy, !s) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
!xy = !cute.coord_tensor<"(?,?)", "(8,64):(1@0,1@1)">
!s = !cute.memref<f16, smem, align<128>, "(8,64):(64,1)">
func.func @f(%a: !load, %c: !xy, %s: !s) {
  // expected-error @below {{the boxes of the tensor map do not fill the tile: dimension 0: expected 64 elements at stride 1 in shared memory, like the box (64, 8), but after 1 of them got 64 elements at stride 1 along dimension 1, every 1}}
  cute.copy(%a, %c, %s) : (!load, !xy, !s) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
!xy = !cute.coord_tensor<"(?,?)", "(4,64):(1@1,1@0)">
!s = !cute.memref<f16, smem, align<128>, "(4,64):(64,1)">
func.func @f(%a: !load, %c: !xy, %s: !s) {
  // expected-error @below {{dimension 1: expected 8 elements at stride 64 in shared memory, like the box (64, 8), got a tile of 4}}
  cute.copy(%a, %c, %s) : (!load, !xy, !s) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
!xy = !cute.coord_tensor<"(?,?)", "(8,64):(1@1,1@0)">
!s = !cute.memref<f16, smem, align<128>, "(8,64):(72,1)">
func.func @f(%a: !load, %c: !xy, %s: !s) {
  // expected-error @below {{dimension 1: expected 8 elements at stride 64 in shared memory, like the box (64, 8), but after 1 of them got 8 elements at stride 72 along dimension 1, every 1}}
  cute.copy(%a, %c, %s) : (!load, !xy, !s) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
!xy = !cute.coord_tensor<"(?,?)", "(8,32):(1@1,1@0)">
!s = !cute.memref<f16, smem, align<128>, "(8,64):(64,1)">
func.func @f(%a: !load, %c: !xy, %s: !s) {
  // expected-error @below {{mode 1: 64:1 has extent 64, but the tile has 32}}
  cute.copy(%a, %c, %s) : (!load, !xy, !s) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
!xy = !cute.coord_tensor<"(?,?,?)", "(8,64):(1@1,1@0)">
!s = !cute.memref<f16, smem, align<128>, "(8,64):(64,1)">
func.func @f(%a: !load, %c: !xy, %s: !s) {
  // expected-error @below {{the iterator is (?,?,?); it must have 2 coordinates, one per dimension of the tensor map}}
  cute.copy(%a, %c, %s) : (!load, !xy, !s) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
!xy = !cute.coord_tensor<"(?,?)", "(8,?):(1@1,1@0)">
!s = !cute.memref<f16, smem, align<128>, "(8,64):(64,1)">
func.func @f(%a: !load, %c: !xy, %s: !s) {
  // expected-error @below {{the layout of coordinates is not static ((8,?):(1@1,1@0)); use static extents and strides}}
  cute.copy(%a, %c, %s) : (!load, !xy, !s) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 1)>
!xy = !cute.coord_tensor<"(?,?)", "(2,64):(1@1,1@0)">
!s = !cute.memref<f16, smem, align<128>, "(2,64):(72,1)">
func.func @f(%a: !load, %c: !xy, %s: !s) {
  // expected-error @below {{a box begins at byte 144 of smem; boxes must begin at multiples of 128 bytes}}
  cute.copy(%a, %c, %s) : (!load, !xy, !s) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8), swizzle = 128>
!xy = !cute.coord_tensor<"(?,?)", "(8,64):(1@1,1@0)">
!s = !cute.memref<f16, smem, align<1024>, "S<3,3,3> o ?{div=64} o (8,64):(64,1)">
func.func @f(%a: !load, %c: !xy, %s: !s) {
  // expected-error @below {{the composed layout is S<3,3,3> o ?{div=64} o (8,64):(64,1); its offset must be a multiple of 512 elements, the period of the swizzle}}
  cute.copy(%a, %c, %s) : (!load, !xy, !s) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
!xy = !cute.coord_tensor<"(?,?)", "(8,64):(1@1,1@0)">
!s = !cute.memref<f16, smem, align<128>, "(8,64):(64,1)">
!p = !cute.memref<i1, rmem, "(1,64):(0,0)">
func.func @f(%a: !load, %c: !xy, %s: !s, %p: !p) {
  // expected-error @below {{a copy with a TMA atom takes no predicate tensor; set one flag for all elements with cute.atom.set_value 'pred'}}
  cute.copy(%a, %c, %s, pred = %p) : (!load, !xy, !s, !p) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
func.func @f(%a: !load, %x: i32, %s: !cute.ptr<f16, smem, align<128>>, %b: !cute.ptr<i64, smem>) {
  // expected-error @below {{operand #2 must be an i32 coordinate (2 dimensions), got !cute.ptr<f16, smem, align<128>>}}
  cute_nvgpu.arch.tma_load(%a, %x, %s, %b)
    : (!load, i32, !cute.ptr<f16, smem, align<128>>, !cute.ptr<i64, smem>) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
func.func @f(%a: !load, %x: i32, %s: !cute.ptr<f16, smem, align<128>>, %m: i16) {
  // expected-error @below {{operand #4 must be a !cute.ptr<i64, smem>, the barrier, got i16}}
  cute_nvgpu.arch.tma_load(%a, %x, %x, %s, %m) : (!load, i32, i32, !cute.ptr<f16, smem, align<128>>, i16) -> ()
  return
}

// -----

!store = !cute_nvgpu.atom.tma_store<f16, box = (64, 8), swizzle = 128>
func.func @f(%a: !store, %x: i32, %s: !cute.ptr<f16, smem, align<128>, S<1,4,3>>) {
  // expected-error @below {{smem does not have the swizzle of the tensor map (!cute.ptr<f16, smem, align<128>, S<1,4,3>>); use one of 128 bytes}}
  cute_nvgpu.arch.tma_store(%a, %x, %x, %s) : (!store, i32, i32, !cute.ptr<f16, smem, align<128>, S<1,4,3>>) -> ()
  return
}

// -----

!store = !cute_nvgpu.atom.tma_store<f16, box = (64, 8)>
func.func @f(%a: !store, %x: i32, %s: !cute.ptr<f16, smem, align<128>>, %m: i16) {
  // expected-error @below {{the operands after #3 are i16; pass at most an i64 cache hint}}
  cute_nvgpu.arch.tma_store(%a, %x, %x, %s, %m) : (!store, i32, i32, !cute.ptr<f16, smem, align<128>>, i16) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
func.func @f(%p: !cute.ptr<f16, gmem>, %n: i64) {
  // expected-error @below {{the operands after the address are i64, i64; pass 3 i64 (2 extents, 1 strides)}}
  %a = cute_nvgpu.arch.make_tensor_map(%p, %n, %n) : (!cute.ptr<f16, gmem>, i64, i64) -> !load
  return
}
