// RUN: cute-opt %s --convert-cute-algo-to-arch --split-input-file --verify-diagnostics

// expected-error @below {{the copy has 64 bits; with cache = global use 128, a multiple of the element's 16}}
func.func @width(%a: !cute_nvgpu.atom.simt_async_copy<f16, cache = global, 64 b>) { return }

// -----

// expected-error @below {{'all' is not a cache mode; write always or global}}
func.func @cache(%a: !cute_nvgpu.atom.simt_async_copy<f16, cache = all, 128 b>) { return }

// -----

// expected-error @below {{the number of matrices is 3; use 1, 2 or 4}}
func.func @matrices(%a: !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 3, n>) { return }

// -----

// expected-error @below {{the element f32 has 32 bits; transposed matrices need 8 or 16}}
func.func @transposed(%a: !cute_nvgpu.atom.ldsm<val_type = f32, num_matrices = 4, t>) { return }

// -----

// expected-error @below {{the element f64 has 64 bits; rows of 16 bytes need 4, 8, 16 or 32}}
func.func @element(%a: !cute_nvgpu.atom.stsm<val_type = f64, num_matrices = 4, n>) { return }

// -----

!atom = !cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>
func.func @space(%s: !cute.memref<f16, smem, align<16>, "8:1">, %d: !cute.memref<f16, smem, align<16>, "8:1">) {
  %atom = cute.atom() : !atom
  // expected-error @below {{the source is in smem (!cute.memref<f16, smem, align<16>, "8:1">); it must be in gmem, because cp_async moves gmem to smem}}
  cute.copy(%atom, %s, %d) : (!atom, !cute.memref<f16, smem, align<16>, "8:1">, !cute.memref<f16, smem, align<16>, "8:1">) -> ()
  return
}

// -----

!atom = !cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>
func.func @alignment(%s: !cute.memref<f16, gmem, align<8>, "8:1">, %d: !cute.memref<f16, smem, align<16>, "8:1">) {
  %atom = cute.atom() : !atom
  // expected-error @below {{the source is aligned to 8 bytes (!cute.memref<f16, gmem, align<8>, "8:1">); cp_async needs 16}}
  cute.copy(%atom, %s, %d) : (!atom, !cute.memref<f16, gmem, align<8>, "8:1">, !cute.memref<f16, smem, align<16>, "8:1">) -> ()
  return
}

// -----

!atom = !cute_nvgpu.atom.simt_async_copy<f16, cache = always, 64 b>
func.func @strides(%s: !cute.memref<f16, gmem, align<16>, "(4,8):(1,?)">, %d: !cute.memref<f16, smem, align<16>, "(4,8):(1,4)">) {
  %atom = cute.atom() : !atom
  // expected-error @below {{mode 1 of the source has stride 8:? in (4,8):(1,?); cp_async needs multiples of 4 elements (8 bytes)}}
  cute.copy(%atom, %s, %d) : (!atom, !cute.memref<f16, gmem, align<16>, "(4,8):(1,?)">, !cute.memref<f16, smem, align<16>, "(4,8):(1,4)">) -> ()
  return
}

// -----

!atom = !cute_nvgpu.atom.simt_async_copy<f16, cache = always, 64 b>
func.func @contiguous(%s: !cute.memref<f16, gmem, align<16>, "(4,8):(8,1)">, %d: !cute.memref<f16, smem, align<16>, "(4,8):(1,4)">) {
  %atom = cute.atom() : !atom
  // expected-error @below {{one cp_async has 4:8 elements of the source in mode 0 of (4,8):(8,1); 4 must be contiguous}}
  cute.copy(%atom, %s, %d) : (!atom, !cute.memref<f16, gmem, align<16>, "(4,8):(8,1)">, !cute.memref<f16, smem, align<16>, "(4,8):(1,4)">) -> ()
  return
}

// -----

!atom = !cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>
func.func @swizzle(%s: !cute.memref<f16, gmem, align<16>, "8:1">, %d: !cute.memref<f16, smem, align<16>, S<3,3,3>, "8:1">) {
  %atom = cute.atom() : !atom
  // expected-error @below {{the swizzle S<3,3,3> of the destination keeps 8 bytes together; cp_async needs 16}}
  cute.copy(%atom, %s, %d) : (!atom, !cute.memref<f16, gmem, align<16>, "8:1">, !cute.memref<f16, smem, align<16>, S<3,3,3>, "8:1">) -> ()
  return
}

// -----

!atom = !cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>
func.func @composed(%s: !cute.memref<f16, gmem, align<16>, "8:1">, %d: !cute.memref<f16, smem, align<16>, "S<3,2,3> o 0 o 8:1">) {
  %atom = cute.atom() : !atom
  // expected-error @below {{the swizzle S<3,2,3> of the destination keeps 4 elements together; cp_async needs 8}}
  cute.copy(%atom, %s, %d) : (!atom, !cute.memref<f16, gmem, align<16>, "8:1">, !cute.memref<f16, smem, align<16>, "S<3,2,3> o 0 o 8:1">) -> ()
  return
}

// -----

!atom = !cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>
func.func @offset(%s: !cute.memref<f16, gmem, align<16>, "8:1">, %d: !cute.memref<f16, smem, align<16>, "S<3,3,3> o 4 o 8:1">) {
  %atom = cute.atom() : !atom
  // expected-error @below {{the layout of the destination is S<3,3,3> o 4 o 8:1; cp_async needs an offset that is a multiple of 8 elements}}
  cute.copy(%atom, %s, %d) : (!atom, !cute.memref<f16, gmem, align<16>, "8:1">, !cute.memref<f16, smem, align<16>, "S<3,3,3> o 4 o 8:1">) -> ()
  return
}

// -----

!atom = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 2, n>
func.func @instructions(%s: !cute.memref<f16, smem, align<16>, "(8,2):(1,8)">, %d: !cute.memref<f16, rmem, "(8,2):(1,8)">) {
  %atom = cute.atom() : !atom
  // expected-error @below {{mode 0 has 1 instructions at the source (8 values each) and 2 at the destination (4 values each) of (8,2) and (8,2); use the same number}}
  cute.copy(%atom, %s, %d) : (!atom, !cute.memref<f16, smem, align<16>, "(8,2):(1,8)">, !cute.memref<f16, rmem, "(8,2):(1,8)">) -> ()
  return
}

// -----

!atom = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>
func.func @values(%s: !cute.memref<f16, smem, align<16>, "(4,2):(1,8)">, %d: !cute.memref<f16, rmem, "(8,2):(1,8)">) {
  %atom = cute.atom() : !atom
  // expected-error @below {{the shape of the source is (4,2); the size of mode 0 must be a multiple of 8, the values per thread of one ldmatrix with !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>}}
  cute.copy(%atom, %s, %d) : (!atom, !cute.memref<f16, smem, align<16>, "(4,2):(1,8)">, !cute.memref<f16, rmem, "(8,2):(1,8)">) -> ()
  return
}

// -----

!atom = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>
func.func @rank(%s: !cute.memref<f16, smem, align<16>, "(8,2):(1,8)">, %d: !cute.memref<f16, rmem, "(8,2,1):(1,8,0)">) {
  %atom = cute.atom() : !atom
  // expected-error @below {{the shapes of the tensors are (8,2) and (8,2,1); their ranks must be equal}}
  cute.copy(%atom, %s, %d) : (!atom, !cute.memref<f16, smem, align<16>, "(8,2):(1,8)">, !cute.memref<f16, rmem, "(8,2,1):(1,8,0)">) -> ()
  return
}

// -----

!atom = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>
func.func @modes(%s: !cute.memref<f16, smem, align<16>, "(8,2):(1,8)">, %d: !cute.memref<f16, rmem, "(8,3):(1,8)">) {
  %atom = cute.atom() : !atom
  // expected-error @below {{mode 1 has sizes 2 and 3 in (8,2) and (8,3); they must be equal}}
  cute.copy(%atom, %s, %d) : (!atom, !cute.memref<f16, smem, align<16>, "(8,2):(1,8)">, !cute.memref<f16, rmem, "(8,3):(1,8)">) -> ()
  return
}

// -----

!atom = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>
func.func @elements(%s: !cute.memref<f16, smem, align<16>, "8:1">, %d: !cute.memref<bf16, rmem, "8:1">) {
  %atom = cute.atom() : !atom
  // expected-error @below {{the element types of both sides are f16 and bf16; they must be equal}}
  cute.copy(%atom, %s, %d) : (!atom, !cute.memref<f16, smem, align<16>, "8:1">, !cute.memref<bf16, rmem, "8:1">) -> ()
  return
}

// -----

!atom = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>
func.func @element_width(%s: !cute.memref<f32, smem, align<16>, "8:1">, %d: !cute.memref<f32, rmem, "8:1">) {
  %atom = cute.atom() : !atom
  // expected-error @below {{operand #1 must have elements as wide as the atom's f16, got f32}}
  cute.copy(%atom, %s, %d) : (!atom, !cute.memref<f32, smem, align<16>, "8:1">, !cute.memref<f32, rmem, "8:1">) -> ()
  return
}

// -----

!atom = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>
func.func @dynamic(%s: !cute.memref<f16, smem, align<16>, "(8,?):(1,8)">, %d: !cute.memref<f16, rmem, "(8,3):(1,8)">) {
  %atom = cute.atom() : !atom
  // expected-error @below {{the shape of the source is not static ((8,?)); use static extents}}
  cute.copy(%atom, %s, %d) : (!atom, !cute.memref<f16, smem, align<16>, "(8,?):(1,8)">, !cute.memref<f16, rmem, "(8,3):(1,8)">) -> ()
  return
}

// -----

!atom = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>
func.func @coordinates(%s: !cute.coord_tensor<"0", "8:1@0">, %d: !cute.memref<f16, rmem, "8:1">) {
  %atom = cute.atom() : !atom
  // expected-error @below {{operand #1 must be a !cute.memref, got !cute.coord_tensor<"0", "8:1@0">}}
  cute.copy(%atom, %s, %d) : (!atom, !cute.coord_tensor<"0", "8:1@0">, !cute.memref<f16, rmem, "8:1">) -> ()
  return
}

// -----

!atom = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>
func.func @predicate_of_a_warp(%s: !cute.memref<f16, smem, align<16>, "8:1">, %d: !cute.memref<f16, rmem, "8:1">, %p: !cute.memref<i1, rmem, "1:0">) {
  %atom = cute.atom() : !atom
  // expected-error @below {{ldmatrix takes no predicate, because all threads of the warp execute it together; use an scf.if with a warp-uniform condition}}
  cute.copy(%atom, %s, %d, pred = %p) : (!atom, !cute.memref<f16, smem, align<16>, "8:1">, !cute.memref<f16, rmem, "8:1">, !cute.memref<i1, rmem, "1:0">) -> ()
  return
}

// -----

!atom = !cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>
func.func @predicate_shape(%s: !cute.memref<f16, gmem, align<16>, "(8,3):(1,8)">, %d: !cute.memref<f16, smem, align<16>, "(8,3):(1,8)">, %p: !cute.memref<i1, rmem, "(8,3):(1,8)">) {
  %atom = cute.atom() : !atom
  // expected-error @below {{the predicate has shape (8,3); it must have one flag per instruction, of sizes (1,3)}}
  cute.copy(%atom, %s, %d, pred = %p) : (!atom, !cute.memref<f16, gmem, align<16>, "(8,3):(1,8)">, !cute.memref<f16, smem, align<16>, "(8,3):(1,8)">, !cute.memref<i1, rmem, "(8,3):(1,8)">) -> ()
  return
}

// -----

!atom = !cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>
func.func @predicate_type(%s: !cute.memref<f16, gmem, align<16>, "8:1">, %d: !cute.memref<f16, smem, align<16>, "8:1">, %p: !cute.memref<i8, rmem, "1:0">) {
  %atom = cute.atom() : !atom
  // expected-error @below {{operand #3 must be an rmem tensor of i1, got !cute.memref<i8, rmem, "1:0">}}
  cute.copy(%atom, %s, %d, pred = %p) : (!atom, !cute.memref<f16, gmem, align<16>, "8:1">, !cute.memref<f16, smem, align<16>, "8:1">, !cute.memref<i8, rmem, "1:0">) -> ()
  return
}

// -----

!ld = !cute.tiled_copy<!cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"((4,8),(2,2,2)):((32,1),(16,8,128))">, tiler_mn = <"[16:1;16:1]">>
func.func @retile_memory(%tc: !ld, %f: !cute.memref<f16, smem, "(8,1,1):(1,0,0)">) {
  // expected-error @below {{operand #1 must be a fragment in registers, got !cute.memref<f16, smem, "(8,1,1):(1,0,0)">}}
  %r = cute.tiled.copy.retile(%tc, %f) : (!ld, !cute.memref<f16, smem, "(8,1,1):(1,0,0)">) -> !cute.memref<f16, smem, "((8,1),1,1):((1,0),0,0)">
  return
}

// -----

!ld = !cute.tiled_copy<!cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"((4,8),(2,2,2)):((32,1),(16,8,128))">, tiler_mn = <"[16:1;16:1]">>
func.func @retile_rank(%tc: !ld, %f: !cute.memref<f16, rmem, "(8,2):(1,8)">) {
  // expected-error @below {{expected a fragment of rank 3 or more (a value mode, then one mode per mode of the tile), got (8,2):(1,8)}}
  %r = cute.tiled.copy.retile(%tc, %f) : (!ld, !cute.memref<f16, rmem, "(8,2):(1,8)">) -> !cute.memref<f16, rmem, "((8,1),1,1):((1,0),0,0)">
  return
}

// -----

!atom = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>
func.func @two_pieces(%s: !cute.memref<f16, smem, align<16>, "16:1">, %r: !cute.memref<f16, rmem, "16:1">) {
  // expected-error @below {{the source must hold the values of exactly one instruction, got those of 2}}
  cute_nvgpu.arch.ldmatrix(%s, %r) {atom = !atom} : (!cute.memref<f16, smem, align<16>, "16:1">, !cute.memref<f16, rmem, "16:1">) -> ()
  return
}

// -----

func.func @no_atom(%s: !cute.memref<f16, smem, align<16>, "8:1">, %r: !cute.memref<f16, rmem, "8:1">) {
  // expected-error @below {{property 'atom' expected in operation 'cute_nvgpu.arch.ldmatrix'}}
  cute_nvgpu.arch.ldmatrix(%s, %r) : (!cute.memref<f16, smem, align<16>, "8:1">, !cute.memref<f16, rmem, "8:1">) -> ()
  return
}

// -----

// expected-error @below {{the element f32 has 32 bits; use one of 16 bits}}
func.func @movm_element(%a: !cute_nvgpu.atom.movm<val_type = f32>) { return }

// -----

// expected-error @below {{'rotate' is not a kind of shuffle; write transpose or broadcast}}
func.func @shuffle_kind(%a: !cute_nvgpu.atom.shuffle<val_type = f32, rotate>) { return }

// -----

// expected-error @below {{the transposition is over 2 lanes; use 1 or 4}}
func.func @shuffle_distance(%a: !cute_nvgpu.atom.shuffle<val_type = f32, transpose = 2>) { return }

// -----

func.func @bulk_no_bar(%g: !cute.memref<f32, gmem, align<16>, "4:1">, %s: !cute.memref<f32, smem, align<16>, "4:1">) {
  // expected-error @below {{a copy from gmem to smem needs an mbarrier}}
  cute_nvgpu.arch.bulk_copy(%g, %s) : (!cute.memref<f32, gmem, align<16>, "4:1">, !cute.memref<f32, smem, align<16>, "4:1">) -> ()
  return
}

// -----

func.func @bulk_bar(%g: !cute.memref<f32, gmem, align<16>, "4:1">, %s: !cute.memref<f32, smem, align<16>, "4:1">, %b: !cute.ptr<i64, smem>) {
  // expected-error @below {{a copy from smem to gmem takes no mbarrier, because a bulk group completes it}}
  cute_nvgpu.arch.bulk_copy(%s, %g, %b) : (!cute.memref<f32, smem, align<16>, "4:1">, !cute.memref<f32, gmem, align<16>, "4:1">, !cute.ptr<i64, smem>) -> ()
  return
}

// -----

func.func @bulk_bar_type(%g: !cute.memref<f32, gmem, align<16>, "4:1">, %s: !cute.memref<f32, smem, align<16>, "4:1">, %b: !cute.ptr<i32, smem>) {
  // expected-error @below {{operand #2 must be a !cute.ptr<i64, smem>, got !cute.ptr<i32, smem>}}
  cute_nvgpu.arch.bulk_copy(%g, %s, %b) : (!cute.memref<f32, gmem, align<16>, "4:1">, !cute.memref<f32, smem, align<16>, "4:1">, !cute.ptr<i32, smem>) -> ()
  return
}

// -----

func.func @bulk_length(%g: !cute.memref<f32, gmem, align<16>, "8:1">, %s: !cute.memref<f32, smem, align<16>, "4:1">, %b: !cute.ptr<i64, smem>) {
  // expected-error @below {{the runs have 32 and 16 bytes; their lengths must be equal}}
  cute_nvgpu.arch.bulk_copy(%g, %s, %b) : (!cute.memref<f32, gmem, align<16>, "8:1">, !cute.memref<f32, smem, align<16>, "4:1">, !cute.ptr<i64, smem>) -> ()
  return
}

// -----

func.func @bulk_short(%g: !cute.memref<f32, gmem, align<16>, "3:1">) {
  // expected-error @below {{the tensor has 12 bytes aligned to 16}}
  cute_nvgpu.arch.bulk_prefetch(%g) : (!cute.memref<f32, gmem, align<16>, "3:1">) -> ()
  return
}

// -----

func.func @bulk_strided(%g: !cute.memref<f32, gmem, align<16>, "(4,4):(8,1)">) {
  // expected-error @below {{the tensor is not one contiguous run of static size}}
  cute_nvgpu.arch.bulk_prefetch(%g) : (!cute.memref<f32, gmem, align<16>, "(4,4):(8,1)">) -> ()
  return
}

// -----

func.func @bulk_space(%s: !cute.memref<f32, smem, align<16>, "4:1">, %b: !cute.ptr<i64, smem>) {
  // expected-error @below {{the destination is in smem}}
  cute_nvgpu.arch.bulk_copy(%s, %s, %b) : (!cute.memref<f32, smem, align<16>, "4:1">, !cute.memref<f32, smem, align<16>, "4:1">, !cute.ptr<i64, smem>) -> ()
  return
}

// -----

func.func @bulk_swizzle(%g: !cute.memref<f32, gmem, align<16>, "4:1">, %s: !cute.memref<f32, smem, align<16>, S<3,4,3>, "4:1">, %b: !cute.ptr<i64, smem>) {
  // expected-error @below {{the destination has a swizzle}}
  cute_nvgpu.arch.bulk_copy(%g, %s, %b) : (!cute.memref<f32, gmem, align<16>, "4:1">, !cute.memref<f32, smem, align<16>, S<3,4,3>, "4:1">, !cute.ptr<i64, smem>) -> ()
  return
}

// -----

func.func @prefetch_level(%g: !cute.memref<f32, gmem, "4:1">) {
  // expected-error @below {{the level is "L3"; use "L1" or "L2"}}
  cute_nvgpu.arch.prefetch(%g) {level = "L3"} : (!cute.memref<f32, gmem, "4:1">) -> ()
  return
}

// -----

func.func @prefetch_space(%s: !cute.memref<f32, smem, "4:1">) {
  // expected-error @below {{the tensor is in smem}}
  cute_nvgpu.arch.prefetch(%s) {level = "L2"} : (!cute.memref<f32, smem, "4:1">) -> ()
  return
}

// -----

func.func @cooperative_registers(%g: !cute.memref<f32, gmem, "4:1">, %r: !cute.memref<f32, rmem, "4:1">, %t: !cute.coord<"?">) {
  // expected-error @below {{operand #1 must be in memory that the threads share, got !cute.memref<f32, rmem, "4:1">}}
  cute.cooperative_copy(%g, %r, %t) {threads = 32 : i32} : (!cute.memref<f32, gmem, "4:1">, !cute.memref<f32, rmem, "4:1">, !cute.coord<"?">) -> ()
  return
}

// -----

func.func @cooperative_sizes(%g: !cute.memref<f32, gmem, "4:1">, %s: !cute.memref<f32, smem, "8:1">, %t: !cute.coord<"?">) {
  // expected-error @below {{expected tensors of equal size, got 4 and 8 elements}}
  cute.cooperative_copy(%g, %s, %t) {threads = 32 : i32} : (!cute.memref<f32, gmem, "4:1">, !cute.memref<f32, smem, "8:1">, !cute.coord<"?">) -> ()
  return
}

// -----

func.func @cooperative_elements(%g: !cute.memref<f32, gmem, "4:1">, %s: !cute.memref<i32, smem, "4:1">, %t: !cute.coord<"?">) {
  // expected-error @below {{expected the same element type on both sides, got f32 and i32}}
  cute.cooperative_copy(%g, %s, %t) {threads = 32 : i32} : (!cute.memref<f32, gmem, "4:1">, !cute.memref<i32, smem, "4:1">, !cute.coord<"?">) -> ()
  return
}

// -----

func.func @cooperative_dynamic(%g: !cute.memref<f32, gmem, "?:1">, %s: !cute.memref<f32, smem, "4:1">, %t: !cute.coord<"?">) {
  // expected-error @below {{operand #0 must have a static shape, got ?}}
  cute.cooperative_copy(%g, %s, %t) {threads = 32 : i32} : (!cute.memref<f32, gmem, "?:1">, !cute.memref<f32, smem, "4:1">, !cute.coord<"?">) -> ()
  return
}

// -----

func.func @cooperative_thread(%g: !cute.memref<f32, gmem, "4:1">, %s: !cute.memref<f32, smem, "4:1">, %t: !cute.coord<"(?,?)">) {
  // expected-error @below {{operand #2 must be a thread index, got (?,?)}}
  cute.cooperative_copy(%g, %s, %t) {threads = 32 : i32} : (!cute.memref<f32, gmem, "4:1">, !cute.memref<f32, smem, "4:1">, !cute.coord<"(?,?)">) -> ()
  return
}

// -----

func.func @cooperative_threads(%g: !cute.memref<f32, gmem, "4:1">, %s: !cute.memref<f32, smem, "4:1">, %t: !cute.coord<"?">) {
  // expected-error @below {{expected at least one thread, got 0}}
  cute.cooperative_copy(%g, %s, %t) {threads = 0 : i32} : (!cute.memref<f32, gmem, "4:1">, !cute.memref<f32, smem, "4:1">, !cute.coord<"?">) -> ()
  return
}
