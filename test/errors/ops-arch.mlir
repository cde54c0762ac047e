// Errors of machine-level ops whose instruction does not support an operand or a property.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

func.func @f(%s: !cute.memref<f16, gmem, align<16>, "8:1">, %d: !cute.memref<f16, smem, align<16>, "8:1">, %p: i32) {
  // expected-error @below {{'cute_nvgpu.arch.cp_async' op operand 'pred' at position 2 does not verify: Expected attribute i1 but got i32}}
  "cute_nvgpu.arch.cp_async"(%s, %d, %p) <{atom = !cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>}> : (!cute.memref<f16, gmem, align<16>, "8:1">, !cute.memref<f16, smem, align<16>, "8:1">, i32) -> ()
//^
  return
}

// -----

func.func @f(%s: !cute.memref<f16, gmem, align<16>, "8:1">, %d: !cute.memref<f16, smem, align<16>, "8:1">) {
  // expected-error @below {{'cute_nvgpu.arch.cp_async' op !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n> should be of base attribute cute_nvgpu.atom.simt_async_copy}}
  "cute_nvgpu.arch.cp_async"(%s, %d) <{atom = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>}> : (!cute.memref<f16, gmem, align<16>, "8:1">, !cute.memref<f16, smem, align<16>, "8:1">) -> ()
//^
  return
}

// -----

func.func @f(%s: !cute.memref<f16, gmem, align<16>, "8:1">, %d: !cute.memref<f16, smem, align<16>, "8:1">) {
  // expected-error @below {{'cute_nvgpu.arch.cp_async' op property 'atom' expected in operation 'cute_nvgpu.arch.cp_async'}}
  "cute_nvgpu.arch.cp_async"(%s, %d) : (!cute.memref<f16, gmem, align<16>, "8:1">, !cute.memref<f16, smem, align<16>, "8:1">) -> ()
//^
  return
}

// -----

func.func @f(%s: !cute.memref<f16, gmem, align<16>, "16:1">, %d: !cute.memref<f16, smem, align<16>, "16:1">) {
  // expected-error @below {{'cute_nvgpu.arch.cp_async' op the source must hold the values of exactly one instruction, got those of 2}}
  cute_nvgpu.arch.cp_async(%s, %d) {atom = !cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>} : (!cute.memref<f16, gmem, align<16>, "16:1">, !cute.memref<f16, smem, align<16>, "16:1">) -> ()
//^
  return
}

// -----

func.func @f(%s: !cute.memref<f16, gmem, align<16>, "16:1">, %d: !cute.memref<f16, smem, align<16>, "16:1">) {
  // expected-error @below {{'cute_nvgpu.arch.cp_async' op unit should be of base attribute cute_nvgpu.atom.simt_async_copy}}
  cute_nvgpu.arch.cp_async(%s, %d) {atom} : (!cute.memref<f16, gmem, align<16>, "16:1">, !cute.memref<f16, smem, align<16>, "16:1">) -> ()
//^
  return
}

// -----

func.func @f(%s: !cute.memref<f16, smem, align<16>, "8:1">, %d: !cute.memref<f16, rmem, "(2,4):(1,?)">) {
  // expected-error @below {{'cute_nvgpu.arch.ldmatrix' op the layout of the destination in registers is not static (!cute.memref<f16, rmem, "((2,4)):((1,?))">); use static extents and strides}}
  cute_nvgpu.arch.ldmatrix(%s, %d) {atom = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>} : (!cute.memref<f16, smem, align<16>, "8:1">, !cute.memref<f16, rmem, "(2,4):(1,?)">) -> ()
//^
  return
}

// -----

func.func @f(%s: !cute.memref<f16, smem, align<16>, "8:1">, %d: !cute.coord_tensor<"(0,0)", "(2,4):(1@0,1@1)">) {
  // expected-error @below {{'cute_nvgpu.arch.ldmatrix' op operand 'destination' at position 1 does not verify: !cute.coord_tensor<"(0,0)", "(2,4):(1@0,1@1)"> should be of base attribute cute.memref}}
  cute_nvgpu.arch.ldmatrix(%s, %d) {atom = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>} : (!cute.memref<f16, smem, align<16>, "8:1">, !cute.coord_tensor<"(0,0)", "(2,4):(1@0,1@1)">) -> ()
//^
  return
}

// -----

func.func @f(%s: !cute.memref<f16, smem, align<16>, "(4,2):(2,1) o 0 o 8:1">, %d: !cute.memref<f16, rmem, "(2,4):(1,2)">) {
  // expected-error @below {{'cute_nvgpu.arch.ldmatrix' op the layout of the source is neither plain nor swizzled ((4,2):(2,1) o 0 o 8:1); use one that is}}
  cute_nvgpu.arch.ldmatrix(%s, %d) {atom = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>} : (!cute.memref<f16, smem, align<16>, "(4,2):(2,1) o 0 o 8:1">, !cute.memref<f16, rmem, "(2,4):(1,2)">) -> ()
//^
  return
}

// -----

func.func @f(%d: !cute.memref<f32, rmem, "4:1">, %a: !cute.memref<f16, smem, "8:1">, %b: !cute.memref<f16, rmem, "4:1">, %c: !cute.memref<f32, rmem, "4:1">) {
  // expected-error @below {{'cute_nvgpu.arch.mma_sync' op A is in smem; the atom !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)> needs it in rmem}}
  "cute_nvgpu.arch.mma_sync"(%d, %a, %b, %c) <{atom = !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>}> : (!cute.memref<f32, rmem, "4:1">, !cute.memref<f16, smem, "8:1">, !cute.memref<f16, rmem, "4:1">, !cute.memref<f32, rmem, "4:1">) -> ()
//^
  return
}

// -----

func.func @f(%d: !cute.memref<f32, rmem, "4:1">, %a: !cute.memref<f16, rmem, "(4,?):(1,4)">, %b: !cute.memref<f16, rmem, "4:1">, %c: !cute.memref<f32, rmem, "4:1">) {
  // expected-error @below {{'cute_nvgpu.arch.mma_sync' op the layout of A is not static and plain ((4,?):(1,4)); use static extents and strides, and no swizzle}}
  "cute_nvgpu.arch.mma_sync"(%d, %a, %b, %c) <{atom = !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>}> : (!cute.memref<f32, rmem, "4:1">, !cute.memref<f16, rmem, "(4,?):(1,4)">, !cute.memref<f16, rmem, "4:1">, !cute.memref<f32, rmem, "4:1">) -> ()
//^
  return
}

// -----

func.func @f(%d: !cute.memref<f32, rmem, "4:1">, %a: !cute.memref<f16, rmem, "4:1">, %b: !cute.memref<f16, rmem, "4:1">, %c: !cute.memref<f32, rmem, "4:1">) {
  // expected-error @below {{'cute_nvgpu.arch.mma_sync' op A has 4 values in 4:1; the atom !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)> needs 8}}
  "cute_nvgpu.arch.mma_sync"(%d, %a, %b, %c) <{atom = !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>}> : (!cute.memref<f32, rmem, "4:1">, !cute.memref<f16, rmem, "4:1">, !cute.memref<f16, rmem, "4:1">, !cute.memref<f32, rmem, "4:1">) -> ()
//^
  return
}

// -----

func.func @f(%d: !cute.memref<f32, rmem, "4:1">, %a: !cute.memref<bf16, rmem, "8:1">, %b: !cute.memref<f16, rmem, "4:1">, %c: !cute.memref<f32, rmem, "4:1">) {
  // expected-error @below {{'cute_nvgpu.arch.mma_sync' op operand A has elements bf16; the atom !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)> needs f16}}
  "cute_nvgpu.arch.mma_sync"(%d, %a, %b, %c) <{atom = !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>}> : (!cute.memref<f32, rmem, "4:1">, !cute.memref<bf16, rmem, "8:1">, !cute.memref<f16, rmem, "4:1">, !cute.memref<f32, rmem, "4:1">) -> ()
//^
  return
}

// -----

!atom = !cute_nvgpu.atom.wgmma<64x64x16, (f32,f16,f16,f32), A = smem, major = (k, k)>
!d = !cute.memref<f32, rmem, "32:1">
!ab = !cute.memref<f16, smem, align<128>, "((8,8),(8,2)):((8,64),(1,512))">
func.func @f(%d: !d, %a: !ab, %b: !ab, %s: i32) {
  // expected-error @below {{'cute_nvgpu.arch.wgmma' op operand #3 must be an i1, got i32}}
  "cute_nvgpu.arch.wgmma"(%d, %a, %b, %s) <{atom = !atom, accumulate = true}> : (!d, !ab, !ab, i32) -> ()
//^
  return
}

// -----

!atom = !cute_nvgpu.atom.wgmma<64x64x16, (f32,f16,f16,f32), A = smem, major = (k, k)>
!d = !cute.memref<f32, rmem, "32:1">
!ab = !cute.memref<f16, smem, align<128>, "((8,8),(8,2)):((8,64),(1,512))">
func.func @f(%d: !d, %a: !ab, %b: !ab, %s: i1) {
  // expected-error @below {{'cute_nvgpu.arch.wgmma' op accumulate must be true if there is a scale_d operand, got false}}
  "cute_nvgpu.arch.wgmma"(%d, %a, %b, %s) <{atom = !atom, accumulate = false}> : (!d, !ab, !ab, i1) -> ()
//^
  return
}

// -----

func.func @f(%d: !cute.memref<f32, smem, "32:1">) {
  // expected-error @below {{'cute_nvgpu.arch.wgmma_wait_group' op operand #0 must be an accumulator tensor in rmem, got !cute.memref<f32, smem, "32:1">}}
  cute_nvgpu.arch.wgmma_wait_group(%d) {n = 0 : i32} : (!cute.memref<f32, smem, "32:1">) -> ()
//^
  return
}

// -----

func.func @f(%d: !cute.memref<f32, rmem, "(4,?):(1,4)">) {
  // expected-error @below {{'cute_nvgpu.arch.wgmma_wait_group' op operand #0 must have a static plain layout, got (4,?):(1,4)}}
  cute_nvgpu.arch.wgmma_wait_group(%d) {n = 0 : i32} : (!cute.memref<f32, rmem, "(4,?):(1,4)">) -> ()
//^
  return
}

// -----

func.func @f(%d: !cute.memref<f32, rmem, "32:1">) {
  // expected-error @below {{'cute_nvgpu.arch.wgmma_wait_group' op property n is 8 : i32; use 0 to 7 of type i32}}
  cute_nvgpu.arch.wgmma_wait_group(%d) {n = 8 : i32} : (!cute.memref<f32, rmem, "32:1">) -> ()
//^
  return
}

// -----

func.func @f(%d: !cute.memref<f32, rmem, "32:1">) {
  // expected-error @below {{'cute_nvgpu.arch.wgmma_wait_group' op property n is 0 : i64; use 0 to 7 of type i32}}
  cute_nvgpu.arch.wgmma_wait_group(%d) {n = 0 : i64} : (!cute.memref<f32, rmem, "32:1">) -> ()
//^
  return
}

// -----

func.func @f(%a: i32, %b: i32) {
  // expected-error @below {{'cute_nvgpu.arch.shfl_sync' op unknown property 'kind'; allowed: mode, width}}
  "cute_nvgpu.arch.shfl_sync"(%a, %b) <{kind = "sideways"}> : (i32, i32) -> i32
//^
  return
}

// -----

func.func @f() {
  // expected-error @below {{'cute_nvgpu.arch.cp_async_wait_group' op property n is -1 : i32; use a number of groups from 0 on (i32)}}
  "cute_nvgpu.arch.cp_async_wait_group"() <{n = -1 : i32}> : () -> ()
//^
  return
}

// -----

func.func @f() {
  // expected-error @below {{'cute_nvgpu.arch.cluster_arrive' op property relaxed is 3 : i32; write relaxed alone, or relaxed = true or false}}
  "cute_nvgpu.arch.cluster_arrive"() <{relaxed = 3 : i32}> : () -> ()
//^
  return
}

// -----

func.func @f() {
  // expected-error @below {{'cute_nvgpu.arch.cluster_arrive' op unknown property 'tight'; allowed: relaxed}}
  "cute_nvgpu.arch.cluster_arrive"() <{tight}> : () -> ()
//^
  return
}

// -----

func.func @f(%b: !cute.ptr<i32, smem>, %n: i32) {
  // expected-error @below {{'cute_nvgpu.arch.mbarrier_init' op operand #0 (bar) must be !cute.ptr<i64, smem>, an mbarrier, got !cute.ptr<i32, smem>}}
  "cute_nvgpu.arch.mbarrier_init"(%b, %n) : (!cute.ptr<i32, smem>, i32) -> ()
//^
  return
}

// -----

func.func @f(%b: !cute.ptr<i64, smem>) {
  // expected-error @below {{'cute_nvgpu.arch.mbarrier_init' op expected 2 operands, got 1}}
  "cute_nvgpu.arch.mbarrier_init"(%b) : (!cute.ptr<i64, smem>) -> ()
//^
  return
}

// -----

func.func @f(%p: !cute.ptr<f32, gmem>, %v: i32) {
  // expected-error @below {{'cute_nvgpu.arch.store_release' op operand #0 (ptr) must be a pointer to i32 or i64 in gmem, smem or dsmem, got !cute.ptr<f32, gmem>}}
  "cute_nvgpu.arch.store_release"(%p, %v) <{scope = "gpu"}> : (!cute.ptr<f32, gmem>, i32) -> ()
//^
  return
}

// -----

func.func @f(%p: !cute.ptr<i64, gmem>, %v: i32) {
  // expected-error @below {{'cute_nvgpu.arch.store_release' op operand #1 must be i64, the element type of operand #0, got i32}}
  "cute_nvgpu.arch.store_release"(%p, %v) <{scope = "gpu"}> : (!cute.ptr<i64, gmem>, i32) -> ()
//^
  return
}

// -----

func.func @f(%p: !cute.ptr<i32, gmem>, %v: i32) {
  // expected-error @below {{'cute_nvgpu.arch.store_release' op property scope is "world"; use one of 'cta', 'cluster', 'gpu', 'sys'}}
  "cute_nvgpu.arch.store_release"(%p, %v) <{scope = "world"}> : (!cute.ptr<i32, gmem>, i32) -> ()
//^
  return
}

// -----

func.func @f(%p: !cute.ptr<f32, gmem>, %v: i32) {
  // expected-error @below {{'cute_nvgpu.arch.atomic_add' op operand #1 must be f32, the element type of operand #0, got i32}}
  %r = "cute_nvgpu.arch.atomic_add"(%p, %v) : (!cute.ptr<f32, gmem>, i32) -> f32
//     ^
  return
}

// -----

func.func @f(%p: !cute.ptr<f8E4M3FN, gmem>, %v: i32) {
  // expected-error @below {{'cute_nvgpu.arch.atomic_add' op the pointer is !cute.ptr<f8E4M3FN, gmem>; it must point to one of i32, i64, f16, bf16, f32, f64}}
  %r = "cute_nvgpu.arch.atomic_add"(%p, %v) : (!cute.ptr<f8E4M3FN, gmem>, i32) -> i32
//     ^
  return
}

// -----

func.func @f(%p: !cute.ptr<f16, smem, align<128>, S<3,3,3>>, %v: i32) {
  // expected-error @below {{'cute_nvgpu.arch.map_cluster' op the pointer has a swizzle (!cute.ptr<f16, smem, align<128>, S<3,3,3>>); use one without}}
  %r = cute_nvgpu.arch.map_cluster(%p, %v) : (!cute.ptr<f16, smem, align<128>, S<3,3,3>>, i32) -> !cute.ptr<f16, dsmem, align<128>>
//     ^
  return
}

// -----

func.func @f(%v: i32) {
  // expected-error @below {{'cute_nvgpu.arch.redux_sync' op property kind is missing; use one of 'add', 'and', 'or', 'xor', 'min', 'max', 'umin', 'umax'}}
  %r = "cute_nvgpu.arch.redux_sync"(%v) : (i32) -> i32
//     ^
  return
}

// -----

func.func @f() {
  // expected-error @below {{attribute expected}}
  cute_nvgpu.arch.cluster_arrive() {relaxed = } : () -> ()
//                                            ^
  return
}

// -----

func.func @f(%d: !cute.memref<f32, rmem, "32:1">) {
  // expected-error @below {{'cute_nvgpu.arch.wgmma_wait_group' op property 'n' has the wrong type: unit}}
  cute_nvgpu.arch.wgmma_wait_group(%d) {n} : (!cute.memref<f32, rmem, "32:1">) -> ()
//^
  return
}

// -----

func.func @f(%s: !cute.memref<f32, rmem, "2:?">, %d: !cute.memref<f32, rmem, "2:1">) {
  // expected-error @below {{'cute_nvgpu.arch.shuffle' op the layout of the source in registers is not static (!cute.memref<f32, rmem, "2:?">); use static extents and strides}}
  cute_nvgpu.arch.shuffle(%s, %d) {atom = !cute_nvgpu.atom.shuffle<val_type = f32, transpose = 4>} : (!cute.memref<f32, rmem, "2:?">, !cute.memref<f32, rmem, "2:1">) -> ()
//^
  return
}

// -----

func.func @f(%response: !cute.ptr<i64, smem>, %bar: !cute.ptr<i64, smem>) {
  // expected-error @below {{'cute_nvgpu.arch.clc_try_cancel' op operand #0 (response) must be aligned to 16 bytes, without a swizzle, got !cute.ptr<i64, smem>}}
  cute_nvgpu.arch.clc_try_cancel(%response, %bar) : (!cute.ptr<i64, smem>, !cute.ptr<i64, smem>) -> ()
//^
  return
}
