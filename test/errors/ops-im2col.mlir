// Errors of cute.copy, stores and prefetches with im2col atoms.
// RUN: cute-opt %s --convert-cute-algo-to-arch --split-input-file --verify-diagnostics

// expected-error @below {{'mul' is not a reduction; write one of add, min, max, inc, dec, and, or, xor}}
func.func private @f(!cute_nvgpu.atom.tma_reduce_im2col<f16, mul, channels = 64, pixels = 128, lower = (0), upper = (0)>)

// -----

// expected-error @below {{TMA does not support the reduction max for f32; use one of add}}
func.func private @f(!cute_nvgpu.atom.tma_reduce_im2col<f32, max, channels = 32, pixels = 128, lower = (0), upper = (0)>)

// -----

// expected-error @below {{the lower corner is (-1, 0); a store or reduction needs a nonnegative one}}
func.func private @f(!cute_nvgpu.atom.tma_store_im2col<f16, channels = 64, pixels = 128, lower = (-1, 0), upper = (0, 0)>)

// -----

!load = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 16, lower = (0), upper = (0)>
!s = !cute.memref<f16, smem, align<128>, "(64,16):(1,64)">
!c = !cute.coord_tensor<"(0,0,0)", "(64,16):(1@0,1@1)">
func.func @f(%a: !load, %c: !c, %s: !s) {
  // expected-error @below {{the coordinates are (64,16):(1@0,1@1); they must step along dimension 0, the channels, with stride 0 for the pixels}}
  cute.copy(%a, %c, %s) : (!load, !c, !s) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 16, lower = (0), upper = (0)>
!s = !cute.memref<f16, smem, align<128>, "(64,32):(1,64)">
!c = !cute.coord_tensor<"(0,0,0)", "(64,32):(1@0,0)">
func.func @f(%a: !load, %c: !c, %s: !s) {
  // expected-error @below {{the tile is (64,32):(1@0,0); it must have 16 pixels, as in the tensor map, because one instruction copies all of them}}
  cute.copy(%a, %c, %s) : (!load, !c, !s) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 16, lower = (0), upper = (0)>
!s = !cute.memref<f16, smem, align<128>, "(64,16):(1,64)">
!c = !cute.coord_tensor<"(0,0,0)", "(64,16):(1@0,0)">
func.func @f(%a: !load, %c: !c, %s: !s) {
  // expected-error @below {{this copy needs the mbarrier that counts its bytes: set it with cute.atom.set_value … {field = tma_bar} between the atom and the copy, in the same function}}
  cute.copy(%a, %c, %s) : (!load, !c, !s) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 16, lower = (0, 0), upper = (0, 0)>
func.func @f(%a: !load, %o: !cute.coord<"?">) {
  // expected-error @below {{operand #1 must be a !cute.coord with one offset per spatial dimension for im2col_offsets, got !cute.coord<"?">}}
  %b = cute.atom.set_value(%a, %o) {field = im2col_offsets} : (!load, !cute.coord<"?">) -> !load
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 16)>
func.func @f(%a: !load, %o: !cute.coord<"?">) {
  // expected-error @below {{property 'field': cute_nvgpu.atom.tma_load has no field im2col_offsets; its fields are tma_bar, multicast_mask, cache_hint, pred}}
  %b = cute.atom.set_value(%a, %o) {field = im2col_offsets} : (!load, !cute.coord<"?">) -> !load
  return
}

// -----

!store = !cute_nvgpu.atom.tma_store_im2col<f16, channels = 64, pixels = 16, lower = (0), upper = (0)>
func.func @f(%a: !store, %c: i32) {
  // expected-error @below {{the number of operands after the map is 3; pass 3 coordinates, shared memory}}
  cute_nvgpu.arch.tma_store_im2col(%a, %c, %c, %c) : (!store, i32, i32, i32) -> ()
  return
}

// -----

!store = !cute_nvgpu.atom.tma_store_im2col<f16, channels = 64, pixels = 16, lower = (0), upper = (0)>
!p = !cute.ptr<f16, smem, align<128>>
func.func @f(%a: !store, %c: i32, %s: !p, %m: i16) {
  // expected-error @below {{the operands after #4 are i16; pass at most an i64 cache hint}}
  cute_nvgpu.arch.tma_store_im2col(%a, %c, %c, %c, %s, %m) : (!store, i32, i32, i32, !p, i16) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 16, lower = (0), upper = (0)>
func.func @f(%a: !load, %c: i32) {
  // expected-error @below {{operand #4 must be an i16 offset (1 of them), got i32}}
  cute_nvgpu.arch.tma_prefetch_im2col(%a, %c, %c, %c, %c) : (!load, i32, i32, i32, i32) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 16)>
func.func @f(%a: !load, %c: i32) {
  // expected-error @below {{the number of operands after the map is 1; pass 2 coordinates}}
  cute_nvgpu.arch.tma_prefetch(%a, %c) : (!load, i32) -> ()
  return
}

// -----

func.func @f(%a: i32) {
  // expected-error @below {{operand #0 must be a TMA atom, got i32}}
  cute_nvgpu.arch.prefetch_tensormap(%a) : (i32) -> ()
  return
}

// -----

func.func @f(%a: i32) {
  // expected-error @below {{operand #0 must be a TMA atom, got i32}}
  %p = cute_nvgpu.arch.tensor_map_address(%a) : (i32) -> !cute.ptr<i64, generic, align<64>>
  return
}

// -----

func.func @f(%a: i32, %p: !cute.ptr<i64, gmem, align<64>>) {
  // expected-error @below {{operand #0 must be a TMA atom, got i32}}
  %b = cute_nvgpu.arch.tensor_map_at(%a, %p) : (i32, !cute.ptr<i64, gmem, align<64>>) -> i32
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load<f16, box = (64, 8)>
func.func @f(%a: !load, %p: !cute.ptr<i64, gmem>) {
  // expected-error @below {{operand #1 must be a !cute.ptr in gmem or generic, aligned to 64 bytes, got !cute.ptr<i64, gmem>}}
  %b = cute_nvgpu.arch.tensor_map_at(%a, %p) : (!load, !cute.ptr<i64, gmem>) -> !load
  return
}

// -----

// expected-error @below {{corners: expected 0 along all dimensions but W in mode w, got (-1, 0)}}
func.func private @f(!cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (-1, -1), upper = (0, 0), swizzle = 128, mode = w>)

// -----

// expected-error @below {{element strides: expected 1 along all dimensions but W in mode w, got (2, 1)}}
func.func private @f(!cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (-1, 0), upper = (0, 0), pixel_strides = (2, 2), swizzle = 128, mode = w>)

// -----

// expected-error @below {{the halo is 2; a load without mode w or w_128 allows 0 to 0}}
func.func private @f(!cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (-1), upper = (0), halo = 2>)

// -----

// expected-error @below {{mode: expected w, w_128 or no mode, got tile}}
func.func private @f(!cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (-1), upper = (0), swizzle = 128, mode = tile>)

// -----

!load = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 16, lower = (0, 0), upper = (0, 0), swizzle = 128, mode = w, halo = 2>
func.func @f(%m: !load, %x: !cute.coord_tensor<"(?,?,?,?)", "(64,16):(1@0,0)">, %s: !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(1,64)">) {
  // expected-error @below {{'cute.copy' op the boxes of the tensor map do not fill the tile: dimension 1: expected 18 elements at stride 64 in shared memory, like the box (64, 18), got 16}}
  cute.copy(%m, %x, %s) : (!load, !cute.coord_tensor<"(?,?,?,?)", "(64,16):(1@0,0)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(1,64)">) -> ()
  return
}
