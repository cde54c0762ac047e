// RUN: cute-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

!load = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (-1), upper = (-1), swizzle = 128>
!smem = !cute.ptr<f16, smem, align<1024>, S<3,4,3>>
!bar = !cute.ptr<i64, smem>

func.func @fits(%g: !cute.memref<f16, gmem, "(?,?,?):(1,?{div=8},?{div=8})">) -> !load {
  %a = cute_nvgpu.make_tma_load_im2col(%g) : (!cute.memref<f16, gmem, "(?,?,?):(1,?{div=8},?{div=8})">) -> !load
  return %a : !load
}

func.func @instruction(%a: !load, %c: i32, %s: !smem, %b: !bar, %o: i16, %hint: i64) {
  cute_nvgpu.arch.tma_load_im2col(%a, %c, %c, %c, %s, %b, %o) : (!load, i32, i32, i32, !smem, !bar, i16) -> ()
  cute_nvgpu.arch.tma_load_im2col(%a, %c, %c, %c, %s, %b, %o, %o, %hint) : (!load, i32, i32, i32, !smem, !bar, i16, i16, i64) -> ()
  return
}

// -----

// expected-error @below {{dimension 1: expected 1 to 8 as element stride, got 9}}
func.func private @strides(!cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (-1, 0), upper = (-1, 0), pixel_strides = (9, 1)>)

// -----

// expected-error @below {{expected lower = …}}
func.func private @needed(!cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, upper = (0)>)

// -----

// expected-error @below {{expected one of channels, pixels, lower, upper, pixel_strides, swizzle, oob, l2, got 'box'}}
func.func private @word(!cute_nvgpu.atom.tma_load_im2col<f16, box = 64>)

// -----

// expected-error @below {{upper corner}}
func.func private @corners(!cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (0, 0), upper = (0)>)

// -----

// expected-error @below {{channels}}
func.func private @row(!cute_nvgpu.atom.tma_load_im2col<f16, channels = 128, pixels = 128, lower = (0), upper = (0), swizzle = 128>)

// -----

// expected-error @below {{expected a lower corner of 1 to 3 numbers (W, H, D), got 4}}
func.func private @rank(!cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (0, 0, 0, 0), upper = (0, 0, 0, 0)>)

// -----

!load = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (-1, -1), upper = (-1, -1)>
func.func @modes(%g: !cute.memref<f16, gmem, "(?,?,?):(1,?{div=8},?{div=8})">) {
  // expected-error @below {{expected modes (C,W,H,N) of operand #0 for the atom, got (?,?,?):(1,?{div=8},?{div=8})}}
  %a = cute_nvgpu.make_tma_load_im2col(%g) : (!cute.memref<f16, gmem, "(?,?,?):(1,?{div=8},?{div=8})">) -> !load
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (-1), upper = (-1)>
func.func @contiguous(%g: !cute.memref<f16, gmem, "(?,?,?):(?,1,?)">) {
  // expected-error @below {{expected stride 1 in mode 0 (channels) of operand #0, got (?,?,?):(?,1,?)}}
  %a = cute_nvgpu.make_tma_load_im2col(%g) : (!cute.memref<f16, gmem, "(?,?,?):(?,1,?)">) -> !load
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (-1), upper = (-1)>
func.func @element(%g: !cute.memref<f32, gmem, "(?,?,?):(1,?,?)">) {
  // expected-error @below {{operand #0 must be a !cute.memref<f16, gmem, …>, got !cute.memref<f32, gmem, "(?,?,?):(1,?,?)">}}
  %a = cute_nvgpu.make_tma_load_im2col(%g) : (!cute.memref<f32, gmem, "(?,?,?):(1,?,?)">) -> !load
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (-1), upper = (-1)>
!smem = !cute.ptr<f16, smem, align<128>>
!bar = !cute.ptr<i64, smem>
func.func @operands(%a: !load, %c: i32, %s: !smem, %b: !bar, %o: i32) {
  // expected-error @below {{expected 3 coordinates, shared memory, a barrier and 1 offsets after the map, got 5 operands}}
  cute_nvgpu.arch.tma_load_im2col(%a, %c, %c, %c, %s, %b) : (!load, i32, i32, i32, !smem, !bar) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (-1), upper = (-1)>
!smem = !cute.ptr<f16, smem, align<128>>
!bar = !cute.ptr<i64, smem>
func.func @offset(%a: !load, %c: i32, %s: !smem, %b: !bar, %o: i32) {
  // expected-error @below {{operand #6 must be an i16 offset (1 of them), got i32}}
  cute_nvgpu.arch.tma_load_im2col(%a, %c, %c, %c, %s, %b, %o) : (!load, i32, i32, i32, !smem, !bar, i32) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (-1), upper = (-1)>
!smem = !cute.ptr<f16, smem, align<1024>, S<3,4,3>>
!bar = !cute.ptr<i64, smem>
func.func @swizzle(%a: !load, %c: i32, %s: !smem, %b: !bar, %o: i16) {
  // expected-error @below {{expected smem with a swizzle of 0 bytes, the swizzle of the tensor map, got !cute.ptr<f16, smem, align<1024>, S<3,4,3>>}}
  cute_nvgpu.arch.tma_load_im2col(%a, %c, %c, %c, %s, %b, %o) : (!load, i32, i32, i32, !smem, !bar, i16) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (-1), upper = (-1)>
!smem = !cute.ptr<f16, smem>
!bar = !cute.ptr<i64, smem>
func.func @alignment(%a: !load, %c: i32, %s: !smem, %b: !bar, %o: i16) {
  // expected-error @below {{expected smem aligned to 128 bytes, as TMA requires, got !cute.ptr<f16, smem>}}
  cute_nvgpu.arch.tma_load_im2col(%a, %c, %c, %c, %s, %b, %o) : (!load, i32, i32, i32, !smem, !bar, i16) -> ()
  return
}
