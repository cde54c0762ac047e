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

// expected-error @below {{'box' is not supported here; write one of channels, pixels, lower, upper, pixel_strides, swizzle, oob, l2}}
func.func private @word(!cute_nvgpu.atom.tma_load_im2col<f16, box = 64>)

// -----

// expected-error @below {{upper corner}}
func.func private @corners(!cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (0, 0), upper = (0)>)

// -----

// expected-error @below {{channels}}
func.func private @row(!cute_nvgpu.atom.tma_load_im2col<f16, channels = 128, pixels = 128, lower = (0), upper = (0), swizzle = 128>)

// -----

// expected-error @below {{the lower corner has 4 numbers; write 1 to 3 (W, H, D)}}
func.func private @rank(!cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (0, 0, 0, 0), upper = (0, 0, 0, 0)>)

// -----

!load = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (-1, -1), upper = (-1, -1)>
func.func @modes(%g: !cute.memref<f16, gmem, "(?,?,?):(1,?{div=8},?{div=8})">) {
  // expected-error @below {{the layout of operand #0 is (?,?,?):(1,?{div=8},?{div=8}); the atom needs modes (C,W,H,N)}}
  %a = cute_nvgpu.make_tma_load_im2col(%g) : (!cute.memref<f16, gmem, "(?,?,?):(1,?{div=8},?{div=8})">) -> !load
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (-1), upper = (-1)>
func.func @contiguous(%g: !cute.memref<f16, gmem, "(?,?,?):(?,1,?)">) {
  // expected-error @below {{the layout of operand #0 is (?,?,?):(?,1,?); mode 0 (channels) must have stride 1}}
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
  // expected-error @below {{the number of operands after the map is 5; pass 3 coordinates, shared memory, a barrier and 1 offsets}}
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
  // expected-error @below {{smem does not have the swizzle of the tensor map (!cute.ptr<f16, smem, align<1024>, S<3,4,3>>); use one of 0 bytes}}
  cute_nvgpu.arch.tma_load_im2col(%a, %c, %c, %c, %s, %b, %o) : (!load, i32, i32, i32, !smem, !bar, i16) -> ()
  return
}

// -----

!load = !cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 128, lower = (-1), upper = (-1)>
!smem = !cute.ptr<f16, smem>
!bar = !cute.ptr<i64, smem>
func.func @alignment(%a: !load, %c: i32, %s: !smem, %b: !bar, %o: i16) {
  // expected-error @below {{smem is not aligned to 128 bytes (!cute.ptr<f16, smem>), as TMA requires; write align<128>}}
  cute_nvgpu.arch.tma_load_im2col(%a, %c, %c, %c, %s, %b, %o) : (!load, i32, i32, i32, !smem, !bar, i16) -> ()
  return
}
