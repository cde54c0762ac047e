// Invalid types of pointers, tensors, atoms, tiled copies and tiled MMAs.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{'>' expected}}
func.func private @f(!cute.memref<f32, gmem, "4:1" x>)
//                                                 ^

// -----

// expected-error @below {{invalid int_tuple '(0,0': expected ',' or ')', got the end at offset 4}}
func.func private @f(!cute.coord_tensor<"(0,0", "(4,8):(1@0,1@1)">)
//                                           ^

// -----

// expected-error @below {{expected a divisor >= 1, got 0}}
func.func private @f(!cute.i32<divby 0>)
//                                   ^

// -----

// expected-error @below {{expected a scalar element type (f64 f32 tf32 f16 bf16 f8E4M3FN f8E5M2 f8E8M0FNU f6E2M3FN f6E3M2FN f4E2M1FN i64 i32 i16 i8 i4 i1 or unsigned), got vector<4xf32>}}
func.func private @f(!cute.ptr<vector<4xf32>, gmem>)
//                             ^

// -----

// expected-error @below {{expected a scalar element type (f64 f32 tf32 f16 bf16 f8E4M3FN f8E5M2 f8E8M0FNU f6E2M3FN f6E3M2FN f4E2M1FN i64 i32 i16 i8 i4 i1 or unsigned), got f80}}
func.func private @f(!cute.ptr<f80, gmem>)
//                             ^

// -----

// expected-error @below {{expected a memory space (generic, gmem, smem, rmem, tmem, dsmem), got 'shared'}}
func.func private @f(!cute.ptr<f32, shared>)
//                                  ^

// -----

// expected-error @below {{expected align<…> or S<…> after the comma}}
func.func private @f(!cute.ptr<f32, gmem, "4:1">)
//                                        ^

// -----

// expected-error @below {{expected an alignment in bytes that is a power of two, got 3}}
func.func private @f(!cute.ptr<f32, gmem, align<3>>)
//                                        ^

// -----

// expected-error @below {{expected an alignment in bytes that is a power of two, got 0}}
func.func private @f(!cute.ptr<f32, gmem, align<0>>)
//                                        ^

// -----

// expected-error @below {{expected an alignment of at least the element's 4 bytes, got 2}}
func.func private @f(!cute.ptr<f32, gmem, align<2>>)
//                                        ^

// -----

// expected-error @below {{a swizzle needs an smem pointer, got gmem}}
func.func private @f(!cute.ptr<f32, gmem, S<3,4,3>>)
//                                        ^

// -----

// expected-error @below {{expected ',', got '>' at offset 5}}
func.func private @f(!cute.ptr<f32, smem, S<3,4>>)
//                                        ^

// -----

// expected-error @below {{expected the bits of a swizzle >= 0, got -1 at offset 2}}
func.func private @f(!cute.ptr<f32, smem, S<-1,4,3>>)
//                                        ^

// -----

// expected-error @below {{expected |shift| >= bits in a swizzle, got S<3,4,1> at offset 0}}
func.func private @f(!cute.ptr<f32, smem, S<3,4,1>>)
//                                        ^

// -----

// expected-error @below {{expected align<…> or S<…>, got 'aligned'}}
func.func private @f(!cute.ptr<f32, smem, aligned<16>>)
//                                        ^

// -----

// expected-error @below {{expected |shift| >= bits in a swizzle, got S<40,40,3> at offset 0}}
func.func private @f(!cute.ptr<f32, smem, S<40,40,3>>)
//                                        ^

// -----

// expected-error @below {{expected a layout string, e.g. "(4,8):(8,1)", after the memory space}}
func.func private @f(!cute.memref<f32, gmem>)
//                                         ^

// -----

// expected-error @below {{expected a layout string, e.g. "(4,8):(8,1)", after the memory space}}
func.func private @f(!cute.memref<f32, gmem, align<8>>)
//                                                   ^

// -----

// expected-error @below {{invalid layout '(4,8):(1)': expected a stride congruent with the shape (4,8), got (1)}}
func.func private @f(!cute.memref<f32, gmem, "(4,8):(1)">)
//                                           ^

// -----

// expected-error @below {{expected integer strides in a memref (basis strides make a cute.coord_tensor), got (4,8):(1@0,1@1)}}
func.func private @f(!cute.memref<f32, gmem, "(4,8):(1@0,1@1)">)
//                                           ^

// -----

// expected-error @below {{invalid layout '4:1 o (1,2) o 8:1': indices of the form (1,2) are not coordinates of the inner layout 4:1}}
func.func private @f(!cute.memref<f32, gmem, "4:1 o (1,2) o 8:1">)
//                                           ^

// -----

// expected-error @below {{expected an integer offset in the layout of a memref, got (1,2)}}
func.func private @f(!cute.memref<f32, gmem, "(4,8):(1,4) o (1,2) o 8:1">)
//                                           ^

// -----

// expected-error @below {{expected integer strides in a memref (basis strides make a cute.coord_tensor), got (4,8):(1@0,1@1)}}
func.func private @f(!cute.memref<f32, gmem, "(4,8):(1@0,1@1) o 0 o 8:1">)
//                                           ^

// -----

// expected-error @below {{expected a swizzle on the pointer or in the layout, got both: S<3,4,3> and S<1,4,3> o 0 o 8:1}}
func.func private @f(!cute.memref<f32, smem, align<128>, S<3,4,3>, "S<1,4,3> o 0 o 8:1">)
//                                                                 ^

// -----

// expected-error @below {{expected a copy atom type, got f32}}
func.func private @f(!cute.tiled_copy<f32, layout_copy_tv = <"(32,4):(4,1)">, tiler_mn = <"128:1">>)
//                                    ^

// -----

// expected-error @below {{invalid tile '[128:1': expected ';' or ']', got the end at offset 6}}
func.func private @f(!cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f16>, layout_copy_tv = <"(32,4):(4,1)">, tiler_mn = <"[128:1">>)
//                                                                                                                                ^

// -----

// expected-error @below {{expected a plain thread-value layout, got S<1,0,1> o 0 o (32,4):(4,1)}}
func.func private @f(!cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f16>, layout_copy_tv = <"S<1,0,1> o 0 o (32,4):(4,1)">, tiler_mn = <"128:1">>)
//                                    ^

// -----

// expected-error @below {{expected a static thread-value layout and a static tiler, got (?,4):(4,1) and 128:1}}
func.func private @f(!cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f16>, layout_copy_tv = <"(?,4):(4,1)">, tiler_mn = <"128:1">>)
//                                    ^

// -----

// expected-error @below {{expected a thread-value layout of rank 2 (thread, value), got 128:1}}
func.func private @f(!cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f16>, layout_copy_tv = <"128:1">, tiler_mn = <"128:1">>)
//                                    ^

// -----

// expected-error @below {{expected multiples of the atom's 32 threads and 8 values, got 16 threads and 8 values}}
func.func private @f(!cute.tiled_copy<!cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"(16,8):(8,1)">, tiler_mn = <"128:1">>)
//                                    ^

// -----

// expected-error @below {{expected a layout or an extent in every slot of the tiler, got _}}
func.func private @f(!cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f16>, layout_copy_tv = <"(32,4):(4,1)">, tiler_mn = <"_">>)
//                                    ^

// -----

// expected-error @below {{expected a thread-value layout that stays in the 128 elements of the tile 128:1, got (32,8):(8,1), which reaches element 255}}
func.func private @f(!cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f16>, layout_copy_tv = <"(32,8):(8,1)">, tiler_mn = <"128:1">>)
//                                    ^

// -----

// expected-error @below {{expected a scalar element type (f64 f32 tf32 f16 bf16 f8E4M3FN f8E5M2 f8E8M0FNU f6E2M3FN f6E3M2FN f4E2M1FN i64 i32 i16 i8 i4 i1 or unsigned), got vector<2xf32>}}
func.func private @f(!cute_nvgpu.atom.universal_copy<vector<2xf32>>)
//                                                   ^

// -----

// expected-error @below {{expected 8, 16, 32, 64, 128 or 256 bits and a multiple of the element's 32, got 24}}
func.func private @f(!cute_nvgpu.atom.universal_copy<f32, 24 b>)
//                                                        ^

// -----

// expected-error @below {{expected 8, 16, 32, 64, 128 or 256 bits and a multiple of the element's 32, got 16}}
func.func private @f(!cute_nvgpu.atom.universal_copy<f32, 16 b>)
//                                                        ^

// -----

// expected-error @below {{expected a scalar element type (f64 f32 tf32 f16 bf16 f8E4M3FN f8E5M2 f8E8M0FNU f6E2M3FN f6E3M2FN f4E2M1FN i64 i32 i16 i8 i4 i1 or unsigned), got index}}
func.func private @f(!cute_nvgpu.atom.ldsm<val_type = index, num_matrices = 4, n>)
//                                                    ^

// -----

// expected-error @below {{the shape has rank 2; write MxNxK}}
func.func private @f(!cute_nvgpu.atom.mma_sync<16x8, (f32,f16,f16,f32)>)
//                                             ^

// -----

// expected-error @below {{the number of element types is 3; write those of D, A, B and C}}
func.func private @f(!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16)>)
//                                                      ^

// -----

// expected-error @below {{mma.sync has no shape 16x8x17 with majors k and k for D, A, B, C = f32, f16, f16, f32; shapes of these types: 8x8x4, 16x8x8, 16x8x16}}
func.func private @f(!cute_nvgpu.atom.mma_sync<16x8x17, (f32,f16,f16,f32)>)
//                                             ^

// -----

// expected-error @below {{'A' is not supported here; write one of and, xor, kind, major, saturate, sf, vec}}
func.func private @f(!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32), A = smem>)
//                                                                         ^

// -----

// expected-error @below {{'fast' is not supported here; write one of and, xor, kind, major, saturate, sf, vec}}
func.func private @f(!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32), fast>)
//                                                                         ^

// -----

// expected-error @below {{'gmem' is not supported here; write smem or rmem}}
func.func private @f(!cute_nvgpu.atom.wgmma<64x64x16, (f32,f16,f16,f32), A = gmem, major = (k, k)>)
//                                                                           ^

// -----

// expected-error @below {{C has elements f16; they must be those of D, f32}}
func.func private @f(!cute_nvgpu.atom.wgmma<64x64x16, (f32,f16,f16,f16), A = smem, major = (k, k)>)
//                                          ^

// -----

// expected-error @below {{64x64x32 is not supported by wgmma on f16; use 64x64x16}}
func.func private @f(!cute_nvgpu.atom.wgmma<64x64x32, (f32,f16,f16,f32), A = smem, major = (k, k)>)
//                                          ^

// -----

// expected-error @below {{N: expected N among 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152, 160, 168, 176, 184, 192, 200, 208, 216, 224, 232, 240, 248, 256 for f32 f16 f16, got 65}}
func.func private @f(!cute_nvgpu.atom.wgmma<64x65x16, (f32,f16,f16,f32), A = smem, major = (k, k)>)
//                                          ^

// -----

// expected-error @below {{expected one of these types of D, A, B for wgmma: f16 f16 f16, f32 f16 f16, f32 bf16 bf16, f32 tf32 tf32, f32 f8E4M3FN f8E4M3FN, f32 f8E4M3FN f8E5M2, f32 f8E5M2 f8E4M3FN, f32 f8E5M2 f8E5M2, f16 f8E4M3FN f8E4M3FN, f16 f8E4M3FN f8E5M2, f16 f8E5M2 f8E4M3FN, f16 f8E5M2 f8E5M2, i32 i8 i8, i32 i8 ui8, i32 ui8 i8, i32 ui8 ui8; got f32 f16 bf16}}
func.func private @f(!cute_nvgpu.atom.wgmma<64x64x16, (f32,f16,bf16,f32), A = smem, major = (k, k)>)
//                                          ^

// -----

// expected-error @below {{B: expected a k-major tf32 operand for wgmma, got mn-major}}
func.func private @f(!cute_nvgpu.atom.wgmma<64x64x8, (f32,tf32,tf32,f32), A = smem, major = (k, mn)>)
//                                          ^

// -----

// expected-error @below {{A: expected a k-major operand in registers, got mn-major}}
func.func private @f(!cute_nvgpu.atom.wgmma<64x64x16, (f32,f16,f16,f32), A = rmem, major = (mn, k)>)
//                                          ^

// -----

// expected-error @below {{1x1x1 (f32,f32,f32,f64) is not supported; use one of these multiply-adds: 1x1x1 (f64,f64,f64,f64); 1x1x1 (f32,f32,f32,f32); 1x1x1 (f16,f16,f16,f16); 1x1x1 (bf16,bf16,bf16,bf16); 1x1x1 (i32,i32,i32,i32)}}
func.func private @f(!cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f64)>)
//                                                  ^

// -----

// expected-error @below {{f32 is not an MMA atom type; write one, such as !cute_nvgpu.atom.mma_sync<…>}}
func.func private @f(!cute.tiled_mma<f32, atom_layout_MNK = <"(2,2,1):(1,2,0)">>)
//                                   ^

// -----

// expected-error @below {{invalid layout '(2,2,1):(1,2': expected ',' or ')', got the end at offset 12}}
func.func private @f(!cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2">>)
//                                                                                                                          ^

// -----

// expected-error @below {{expected an atom layout of rank 3 (M,N,K), got (2,2):(1,2)}}
func.func private @f(!cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2):(1,2)">>)
//                                   ^

// -----

// expected-error @below {{the atom layout or the permutation is not static ((2,?,1):(1,2,0) and (_,_,_)); use static ones}}
func.func private @f(!cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,?,1):(1,2,0)">>)
//                                   ^

// -----

// expected-error @below {{the permutation of N has extent 24; it must be a multiple of 16 (2 atoms of extent 8)}}
func.func private @f(!cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">, permutation_MNK = <"[32:1;24:1;_]">>)
//                                   ^

// -----

// expected-error @below {{expected a permutation of rank 3 (M,N,K), got rank 2}}
func.func private @f(!cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">, permutation_MNK = <"[32:1;32:1]">>)
//                                   ^

// -----

// expected-error @below {{expected a layout, an extent or '_' as a permutation, got [32:1;4:1]}}
func.func private @f(!cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">, permutation_MNK = <"[32:1;[32:1;4:1];_]">>)
//                                   ^

// -----

// expected-error @below {{the number of pixel strides is 3; write 2, one per number of the lower corner}}
func.func private @f(!cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 64, lower = (0, 0), upper = (0, 0), pixel_strides = (1, 1, 1)>)
//                                                    ^

// -----

// expected-error @below {{the lower corner has 4 numbers; write 1 to 3 (W, H, D)}}
func.func private @f(!cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 64, lower = (0, 0, 0, 0), upper = (0, 0, 0, 0)>)
//                                                    ^

// -----

// expected-error @below {{swizzle: expected a swizzle of 32 bytes with interleave 32, got 0}}
func.func private @f(!cute_nvgpu.atom.tma_load<f16, box = (64, 8), interleave = 32>)
//                                             ^

// -----

// expected-error @below {{swizzle: expected a swizzle of 32 bytes with interleave 32, got 64}}
func.func private @f(!cute_nvgpu.atom.tma_load<f16, box = (16, 8, 8), interleave = 32, swizzle = 64>)
//                                             ^

// -----

// expected-error @below {{dimension 0: expected rows of 32 bytes, the interleave, got 128}}
func.func private @f(!cute_nvgpu.atom.tma_load<f16, box = (64, 8, 8), interleave = 32, swizzle = 32>)
//                                             ^

// -----

// expected-error @below {{'(' expected}}
func.func private @f(!cute_nvgpu.atom.tma_load<f16, box = (64, 8), box = 3>)
//                                                                       ^

// -----

// expected-error @below {{Expected integer literal}}
func.func private @f(!cute_nvgpu.atom.tma_load<f16, box = (64, 8), swizzle = (3)>)
//                                                                           ^

// -----

// expected-error @below {{out-of-bounds fill: expected one of zero, nan, got one}}
func.func private @f(!cute_nvgpu.atom.tma_load<f16, box = (64, 8), oob = one>)
//                                             ^

// -----

// expected-error @below {{expected a scalar element type (f64 f32 tf32 f16 bf16 f8E4M3FN f8E5M2 f8E8M0FNU f6E2M3FN f6E3M2FN f4E2M1FN i64 i32 i16 i8 i4 i1 or unsigned), got index}}
func.func private @f(!cute_nvgpu.atom.tma_load<index, box = (64, 8)>)
//                                             ^

// -----

// expected-error @below {{L2 promotion: expected one of 0, 64, 128, 256, got 100}}
func.func private @f(!cute_nvgpu.atom.tma_load<f16, box = (64, 8), l2 = 100>)
//                                             ^

// -----

// expected-error @below {{expected the box, e.g. box = (64, 128)}}
func.func private @f(!cute_nvgpu.atom.tma_load<f16, box = ()>)
//                                             ^

// -----

// expected-error @below {{dimension 0: expected element stride 1 in the contiguous dimension, got 2}}
func.func private @f(!cute_nvgpu.atom.tma_load<f16, box = (64, 8), element_strides = (2, 1)>)
//                                             ^

// -----

// expected-error @below {{the iterator 5 does not fit the layout (4,8):(1@0,1@1): expected two tuples or two integers at [], got 5 and (0,0)}}
func.func private @f(!cute.coord_tensor<"5", "(4,8):(1@0,1@1)">)
//                                           ^

// -----

// expected-error @below {{the atom layout (1,2,1):(0,0,0) assigns several atoms to the same threads; use strides other than 0 in modes of extent above 1, or a permutation}}
func.func private @f(!cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(1,2,1):(0,0,0)">>)
//                                   ^

// -----

// expected-error @below {{expected extents >= 1, got 0 in (2,2,0):(1,2,0)}}
func.func private @f(!cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,0):(1,2,0)">>)
//                                   ^

// -----

// expected-error @below {{expected a stride congruent with the shape (2,2,1), got (1,2)}}
func.func private @f(!cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,)">>)
//                                   ^

// -----

// expected-error @below {{expected a stride congruent with the shape (4,4), got (1)}}
func.func private @f(!cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,2,1):(1,2,0)">, permutation_MNK = <"[32:1;(4,4):(1);_]">>)
//                                   ^

// -----

// expected-error @below {{expected align<…> or S<…> after the comma}}
func.func private @f(!cute.ptr<f32, gmem, "4:1">)
//                                        ^

// -----

// expected-error @below {{the element f16 has 16 bits; from = b6x16_p32 makes elements of 8}}
func.func private @f(!cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 2, n, from = b6x16_p32>)
//                                                    ^

// -----

// expected-error @below {{the number of matrices is 4; transposed bytes have 1 or 2}}
func.func private @f(!cute_nvgpu.atom.ldsm<val_type = i8, num_matrices = 4, t>)
//                                                                       ^
