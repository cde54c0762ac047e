// Errors of TMA: invalid maps, coordinates, shared memory or barriers.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
func.func @f() {
  // expected-error @below {{'cute_nvgpu.arch.tma_load' op there are no operands; pass a tensor map, coordinates and shared memory}}
  "cute_nvgpu.arch.tma_load"() : () -> ()
//^
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
func.func @f(%m: !load, %a: i32) {
  // expected-error @below {{'cute_nvgpu.arch.tma_load' op the number of operands after the map is 1; pass 2 coordinates and shared memory}}
  "cute_nvgpu.arch.tma_load"(%m, %a) : (!load, i32) -> ()
//^
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
func.func @f(%m: !load, %a: i32, %b: i64, %s: !cute.ptr<f16, smem, align<128>>, %bar: !cute.ptr<i64, smem>) {
  // expected-error @below {{'cute_nvgpu.arch.tma_load' op operand #2 must be an i32 coordinate (2 dimensions), got i64}}
  "cute_nvgpu.arch.tma_load"(%m, %a, %b, %s, %bar) : (!load, i32, i64, !cute.ptr<f16, smem, align<128>>, !cute.ptr<i64, smem>) -> ()
//^
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
func.func @f(%m: !load, %a: i32, %b: i32, %s: !cute.ptr<f32, smem, align<128>>, %bar: !cute.ptr<i64, smem>) {
  // expected-error @below {{'cute_nvgpu.arch.tma_load' op operand #3 must be a !cute.ptr<f16, smem>, got !cute.ptr<f32, smem, align<128>>}}
  "cute_nvgpu.arch.tma_load"(%m, %a, %b, %s, %bar) : (!load, i32, i32, !cute.ptr<f32, smem, align<128>>, !cute.ptr<i64, smem>) -> ()
//^
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
func.func @f(%m: !load, %a: i32, %b: i32, %s: !cute.ptr<f16, smem, align<128>>, %bar: !cute.ptr<i32, smem>) {
  // expected-error @below {{'cute_nvgpu.arch.tma_load' op operand #4 must be a !cute.ptr<i64, smem>, the barrier, got !cute.ptr<i32, smem>}}
  "cute_nvgpu.arch.tma_load"(%m, %a, %b, %s, %bar) : (!load, i32, i32, !cute.ptr<f16, smem, align<128>>, !cute.ptr<i32, smem>) -> ()
//^
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
func.func @f(%m: !load, %a: i32, %b: i32, %s: !cute.ptr<f16, smem, align<128>>, %bar: !cute.ptr<i64, smem>, %c: i32) {
  // expected-error @below {{'cute_nvgpu.arch.tma_load' op the operands after #4 are i32; pass at most an i16 mask and an i64 cache hint}}
  "cute_nvgpu.arch.tma_load"(%m, %a, %b, %s, %bar, %c) : (!load, i32, i32, !cute.ptr<f16, smem, align<128>>, !cute.ptr<i64, smem>, i32) -> ()
//^
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
func.func @f(%p: !cute.ptr<f16, gmem>, %a: i64, %b: i64, %c: i64) {
  // expected-error @below {{'cute_nvgpu.arch.make_tensor_map' op result #0 must be a TMA atom, got i32}}
  "cute_nvgpu.arch.make_tensor_map"(%p, %a, %b, %c) : (!cute.ptr<f16, gmem>, i64, i64, i64) -> i32
//^
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
func.func @f(%p: !cute.ptr<f32, gmem>, %a: i64, %b: i64, %c: i64) {
  // expected-error @below {{'cute_nvgpu.arch.make_tensor_map' op operand #0 must be a !cute.ptr<f16, gmem>, got !cute.ptr<f32, gmem>}}
  %m = "cute_nvgpu.arch.make_tensor_map"(%p, %a, %b, %c) : (!cute.ptr<f32, gmem>, i64, i64, i64) -> !load
//     ^
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
func.func @f(%p: !cute.ptr<f16, gmem>, %a: i64, %b: i64) {
  // expected-error @below {{'cute_nvgpu.arch.make_tensor_map' op the operands after the address are i64, i64; pass 3 i64 (2 extents, 1 strides)}}
  %m = "cute_nvgpu.arch.make_tensor_map"(%p, %a, %b) : (!cute.ptr<f16, gmem>, i64, i64) -> !load
//     ^
  return
}

// -----

!g = !cute.memref<f16, gmem, "S<3,4,3> o 0 o (64,64):(64,1)">
func.func @f(%g: !g, %l: !cute.layout<"(8,64):(64,1)">, %t: !cute.tile<"[8:1;64:1]">) {
  // expected-error @below {{'cute_nvgpu.make_tma_load' op operand #0 must have a plain layout, got S<3,4,3> o 0 o (64,64):(64,1)}}
  %a, %c = cute_nvgpu.make_tma_load(%g, %l, %t) : (!g, !cute.layout<"(8,64):(64,1)">, !cute.tile<"[8:1;64:1]">) -> (!cute_nvgpu.atom.tma_load<f16, box = (64, 8)>, !cute.coord_tensor<"(0,0)", "(64,64):(1@1,1@0)">)
//         ^
  return
}

// -----

!im = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 64, lower = (0, 0), upper = (0, 0)>
func.func @f(%g: !cute.memref<f16, gmem, "(8,8,8,64):(4096,512,64,1)">) {
  // expected-error @below {{'cute_nvgpu.make_tma_load_im2col' op result #0 must be a !cute_nvgpu.atom.tma_load_im2col, got i32}}
  "cute_nvgpu.make_tma_load_im2col"(%g) : (!cute.memref<f16, gmem, "(8,8,8,64):(4096,512,64,1)">) -> i32
//^
  return
}

// -----

func.func @f(%g: !cute.ptr<f16, gmem>) {
  // expected-error @below {{'cute_nvgpu.arch.make_im2col_map' op result #0 must be an im2col atom, got i32}}
  "cute_nvgpu.arch.make_im2col_map"(%g) : (!cute.ptr<f16, gmem>) -> i32
//^
  return
}

// -----

!im = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 64, lower = (0, 0), upper = (0, 0)>
func.func @f(%g: !cute.ptr<f32, gmem>) {
  // expected-error @below {{'cute_nvgpu.arch.make_im2col_map' op operand #0 must be a !cute.ptr<f16, gmem>, got !cute.ptr<f32, gmem>}}
  %a = "cute_nvgpu.arch.make_im2col_map"(%g) : (!cute.ptr<f32, gmem>) -> !im
//     ^
  return
}

// -----

!im = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 64, lower = (0, 0), upper = (0, 0)>
func.func @f(%g: !cute.ptr<f16, gmem>, %x: i64) {
  // expected-error @below {{'cute_nvgpu.arch.make_im2col_map' op the operands after the address are i64; pass 7 i64 (4 extents, 3 strides)}}
  %a = "cute_nvgpu.arch.make_im2col_map"(%g, %x) : (!cute.ptr<f16, gmem>, i64) -> !im
//     ^
  return
}

// -----

func.func @f() {
  // expected-error @below {{'cute_nvgpu.arch.tma_load_im2col' op there are no operands; pass a tensor map, coordinates, shared memory, a barrier and offsets}}
  "cute_nvgpu.arch.tma_load_im2col"() : () -> ()
//^
  return
}

// -----

!im = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 64, lower = (0, 0), upper = (0, 0)>
func.func @f(%m: !im, %a: i32, %b: i32, %c: i64, %d: i32, %s: !cute.ptr<f16, smem, align<128>>, %bar: !cute.ptr<i64, smem>, %x: i16, %y: i16) {
  // expected-error @below {{'cute_nvgpu.arch.tma_load_im2col' op operand #3 must be an i32 coordinate (4 dimensions), got i64}}
  "cute_nvgpu.arch.tma_load_im2col"(%m, %a, %b, %c, %d, %s, %bar, %x, %y) : (!im, i32, i32, i64, i32, !cute.ptr<f16, smem, align<128>>, !cute.ptr<i64, smem>, i16, i16) -> ()
//^
  return
}

// -----

!im = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 64, lower = (0, 0), upper = (0, 0)>
func.func @f(%m: !im, %a: i32, %b: i32, %c: i32, %d: i32, %s: !cute.ptr<f16, gmem, align<128>>, %bar: !cute.ptr<i64, smem>, %x: i16, %y: i16) {
  // expected-error @below {{'cute_nvgpu.arch.tma_load_im2col' op operand #5 must be a !cute.ptr<f16, smem>, got !cute.ptr<f16, gmem, align<128>>}}
  "cute_nvgpu.arch.tma_load_im2col"(%m, %a, %b, %c, %d, %s, %bar, %x, %y) : (!im, i32, i32, i32, i32, !cute.ptr<f16, gmem, align<128>>, !cute.ptr<i64, smem>, i16, i16) -> ()
//^
  return
}

// -----

!im = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 64, lower = (0, 0), upper = (0, 0)>
func.func @f(%m: !im, %a: i32, %b: i32, %c: i32, %d: i32, %s: !cute.ptr<f16, smem, align<128>>, %bar: !cute.ptr<i64, gmem>, %x: i16, %y: i16) {
  // expected-error @below {{'cute_nvgpu.arch.tma_load_im2col' op operand #6 must be a !cute.ptr<i64, smem>, the barrier, got !cute.ptr<i64, gmem>}}
  "cute_nvgpu.arch.tma_load_im2col"(%m, %a, %b, %c, %d, %s, %bar, %x, %y) : (!im, i32, i32, i32, i32, !cute.ptr<f16, smem, align<128>>, !cute.ptr<i64, gmem>, i16, i16) -> ()
//^
  return
}

// -----

!im = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 64, lower = (0, 0), upper = (0, 0)>
func.func @f(%m: !im, %a: i32, %b: i32, %c: i32, %d: i32, %s: !cute.ptr<f16, smem, align<128>>, %bar: !cute.ptr<i64, smem>, %x: i16, %y: i16, %z: i1) {
  // expected-error @below {{'cute_nvgpu.arch.tma_load_im2col' op the operands after #8 are i1; pass at most an i16 mask and an i64 cache hint}}
  "cute_nvgpu.arch.tma_load_im2col"(%m, %a, %b, %c, %d, %s, %bar, %x, %y, %z) : (!im, i32, i32, i32, i32, !cute.ptr<f16, smem, align<128>>, !cute.ptr<i64, smem>, i16, i16, i1) -> ()
//^
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
!xy = !cute.coord_tensor<"(?,?)", "(8,64):(1@1,1@0)">
func.func @f(%a: !load, %c: !xy, %s: !cute.memref<f16, smem, align<128>, "(64,8):(8,1) o 0 o (8,64):(64,1)">) {
  // expected-error @below {{'cute.copy' op the smem layout (64,8):(8,1) o 0 o (8,64):(64,1) is neither plain nor swizzled; use one that is}}
  cute.copy(%a, %c, %s) : (!load, !xy, !cute.memref<f16, smem, align<128>, "(64,8):(8,1) o 0 o (8,64):(64,1)">) -> ()
//^
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
!xy = !cute.coord_tensor<"(?,?)", "(8,64):(1@1,1@0)">
func.func @f(%a: !load, %c: !xy, %s: !cute.memref<f16, smem, align<16>, "(8,64):(64,1)">) {
  // expected-error @below {{'cute.copy' op smem is aligned to 16 bytes (!cute.memref<f16, smem, align<16>, "(8,64):(64,1)">); it must be aligned to 128, as TMA requires; write align<128>}}
  cute.copy(%a, %c, %s) : (!load, !xy, !cute.memref<f16, smem, align<16>, "(8,64):(64,1)">) -> ()
//^
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
!xy = !cute.coord_tensor<"(?,?)", "(8,64):(1@1,1@0)">
func.func @f(%a: !load, %c: !xy, %s: !cute.memref<f16, smem, align<128>, S<2,3,2>, "(8,64):(64,1)">) {
  // expected-error @below {{'cute.copy' op swizzle: expected one of S<0,4,3>, S<1,4,3>, S<2,4,3>, S<3,4,3> on bytes, got S<2,3,2>}}
  cute.copy(%a, %c, %s) : (!load, !xy, !cute.memref<f16, smem, align<128>, S<2,3,2>, "(8,64):(64,1)">) -> ()
//^
  return
}

// -----

func.func @f(%a: !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, %m: i1) {
  // expected-error @below {{'cute.atom.set_value' op operand #0 must be a wgmma or tcgen05_mma atom, or a !cute.tiled_mma of one, for accumulate, got !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>}}
  %b = cute.atom.set_value(%a, %m) {field = accumulate} : (!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, i1) -> !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>
//     ^
  return
}

// -----

!atom = !cute_nvgpu.atom.wgmma<64x64x16, (f32,f16,f16,f32), A = smem, major = (k, k)>
func.func @f(%a: !atom, %m: i32) {
  // expected-error @below {{'cute.atom.set_value' op operand #1 must be i1 for accumulate, got i32}}
  %b = cute.atom.set_value(%a, %m) {field = accumulate} : (!atom, i32) -> !atom
//     ^
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
func.func @f(%m: !load, %a: i32, %b: i32, %s: !cute.ptr<f16, smem, align<128>>, %bar: !cute.ptr<i64, smem>) {
  // expected-error @below {{expected '=' and a value after 'multicast'}}
  cute_nvgpu.arch.tma_load(%m, %a, %b, %s, %bar) {multicast} : (!load, i32, i32, !cute.ptr<f16, smem, align<128>>, !cute.ptr<i64, smem>) -> ()
//                                                         ^
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
func.func @f(%a: !load, %p: i1) {
  // expected-error @below {{'cute.atom.set_value' op has no property 'filed'; its properties are field (other attributes need the prefix of a dialect)}}
  %b = cute.atom.set_value(%a, %p) {field = pred, filed = 1 : i32} : (!load, i1) -> !load
//     ^
  return
}

// -----

// expected-error @below {{the box of mode gather4 is (64,8); it must be (columns, 1), without element strides: one instruction moves 4 rows of it}}
func.func private @f(!cute_nvgpu.atom.tma_load<f16, box = (64, 8), mode = gather4>)

// -----

// expected-error @below {{the mode of cute_nvgpu.atom.tma_load is scatter4; use gather4, or none}}
func.func private @f(!cute_nvgpu.atom.tma_load<f16, box = (64, 1), mode = scatter4>)

// -----

!g = !cute.memref<f16, gmem, "(?,?,?):(?{div=8},?{div=8},1)">
func.func @f(%g: !g) {
  %l = cute.static : !cute.layout<"(1,4,64):(256,64,1)">
  %t = cute.static : !cute.tile<"[1:1;4:1;64:1]">
  // expected-error @below {{'cute_nvgpu.make_tma_load' op mode gather4 moves 4 rows of a matrix; this tile has boxes of (64,4,1) elements (contiguous first), multicast = 1; use a tile of 4 rows of a matrix whose rows are contiguous, and multicast = 1}}
  %a, %x = cute_nvgpu.make_tma_load(%g, %l, %t) {mode = gather4} : (!g, !cute.layout<"(1,4,64):(256,64,1)">, !cute.tile<"[1:1;4:1;64:1]">) -> (!cute_nvgpu.atom.tma_load<f16, box = (64, 1), mode = gather4>, !cute.coord_tensor<"(0,0,0)", "(?,?,?):(1@2,1@1,1@0)">)
//         ^
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 1), mode = gather4>
func.func @f(%m: !load, %a: i32, %s: !cute.ptr<f16, smem, align<128>>, %bar: !cute.ptr<i64, smem>) {
  // expected-error @below {{'cute_nvgpu.arch.tma_load' op the number of operands after the map is 4; pass 5 coordinates and shared memory}}
  "cute_nvgpu.arch.tma_load"(%m, %a, %a, %s, %bar) : (!load, i32, i32, !cute.ptr<f16, smem, align<128>>, !cute.ptr<i64, smem>) -> ()
//^
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 1), mode = gather4>
func.func @f(%m: !load) {
  %c = cute.static : !cute.coord<"(1,2)">
  // expected-error @below {{'cute.atom.set_value' op operand #1 must be a !cute.coord of four row indices for rows, got !cute.coord<"(1,2)">}}
  %a = cute.atom.set_value(%m, %c) {field = rows} : (!load, !cute.coord<"(1,2)">) -> !load
//     ^
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 1), mode = gather4>
!tile = !cute.coord_tensor<"(0,0)", "(8,64):(1@1,1@0)">
!s = !cute.memref<f16, smem, align<128>, "(8,64):(64,1)">
func.func @f(%m: !load, %x: !tile, %s: !s) {
  // expected-error @below {{'cute.copy' op the tile is (8,64):(1@1,1@0); it must have 4 rows, one per row index of gather4}}
  cute.copy(%m, %x, %s) : (!load, !tile, !s) -> ()
//^
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 1), swizzle = 128, mode = gather4>
!tile = !cute.coord_tensor<"(0,0)", "(4,64):(1@1,1@0)">
!s = !cute.memref<f16, smem, align<128>, S<3,4,3>, "(4,64):(64,1)">
func.func @f(%m: !load, %x: !tile, %s: !s) {
  // expected-error @below {{smem is aligned to 128 bytes (!cute.memref<f16, smem, align<128>, S<3,4,3>, "(4,64):(64,1)">); it must be aligned to 512, half the period of its 128-byte swizzle; write align<512>}}
  cute.copy(%m, %x, %s) : (!load, !tile, !s) -> ()
//^
  return
}

// -----

// expected-error @below {{element: elements f6E3M2FN are packed in global memory only: use a load that unpacks them, to 8-bit elements of shared memory}}
func.func private @f(!cute_nvgpu.atom.tma_load<f6E3M2FN, box = (128, 8)>)

// -----

// expected-error @below {{element of a load that unpacks: expected one of f4E2M1FN, f6E2M3FN, f6E3M2FN, got f16}}
func.func private @f(!cute_nvgpu.atom.tma_load<f16, box = (128, 8), unpack = 16>)

// -----

// expected-error @below {{dimension 0: expected 128 elements in the box of a load that unpacks, got 64}}
func.func private @f(!cute_nvgpu.atom.tma_load<f4E2M1FN, box = (64, 8), unpack = 16>)

// -----

// expected-error @below {{mode gather4 cannot be combined with unpack; load tiles instead of rows by index}}
func.func private @f(!cute_nvgpu.atom.tma_load<f4E2M1FN, box = (128, 1), mode = gather4, unpack = 16>)

// -----

!load = !cute_nvgpu.atom.tma_load<f4E2M1FN, box = (128, 8), unpack = 16>
func.func @f(%m: !load, %a: i32, %s: !cute.ptr<f4E2M1FN, smem, align<128>>, %bar: !cute.ptr<i64, smem>) {
  // expected-error @below {{'cute_nvgpu.arch.tma_load' op operand #3 must be a !cute.ptr<i8, smem>, got !cute.ptr<f4E2M1FN, smem, align<128>>}}
  "cute_nvgpu.arch.tma_load"(%m, %a, %a, %s, %bar) : (!load, i32, i32, !cute.ptr<f4E2M1FN, smem, align<128>>, !cute.ptr<i64, smem>) -> ()
  return
}
