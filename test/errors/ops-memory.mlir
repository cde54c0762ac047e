// Errors of loads, stores and allocation of tensors.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

func.func @f(%t: !cute.memref<f32, gmem, "(4,8):(8,1)">, %c: !cute.coord<"(1,2,3)">) {
  // expected-error @below {{'cute.memref.load' op expected a coordinate weakly congruent to the shape (4,8), got (1,2,3)}}
  %x = cute.memref.load(%t, %c) : (!cute.memref<f32, gmem, "(4,8):(8,1)">, !cute.coord<"(1,2,3)">) -> f32
//     ^
  return
}

// -----

func.func @f(%t: !cute.layout<"(4,8):(8,1)">, %c: !cute.coord<"(1,2)">) {
  // expected-error @below {{'cute.memref.load' op operand #0 must be a tensor, got !cute.layout<"(4,8):(8,1)">}}
  %x = cute.memref.load(%t, %c) : (!cute.layout<"(4,8):(8,1)">, !cute.coord<"(1,2)">) -> f32
//     ^
  return
}

// -----

func.func @f(%t: !cute.memref<f32, gmem, "(4,8):(8,1)">) {
  // expected-error @below {{'cute.memref.load' op expected 2 operands, got 1}}
  %x = "cute.memref.load"(%t) : (!cute.memref<f32, gmem, "(4,8):(8,1)">) -> f32
//     ^
  return
}

// -----

func.func @f(%t: !cute.memref<f32, gmem, "(4,8):(8,1)">, %c: !cute.coord<"(1,2)">) {
  // expected-error @below {{'cute.memref.load' op result #0: expected f32, got f16}}
  %x = cute.memref.load(%t, %c) : (!cute.memref<f32, gmem, "(4,8):(8,1)">, !cute.coord<"(1,2)">) -> f16
//     ^
  return
}

// -----

func.func @f(%t: !cute.memref<f32, gmem, "(4,8):(8,1)">, %c: !cute.coord<"(1,2)">, %x: f16) {
  // expected-error @below {{'cute.memref.store' op operand #2 must be the element type f32, got f16}}
  cute.memref.store(%t, %c, %x) : (!cute.memref<f32, gmem, "(4,8):(8,1)">, !cute.coord<"(1,2)">, f16) -> ()
//^
  return
}

// -----

func.func @f(%t: !cute.coord_tensor<"(0,0)", "(4,8):(1@0,1@1)">, %c: !cute.coord<"(1,2)">, %x: f16) {
  // expected-error @below {{'cute.memref.store' op operand #0 must be a !cute.memref, got !cute.coord_tensor<"(0,0)", "(4,8):(1@0,1@1)">}}
  cute.memref.store(%t, %c, %x) : (!cute.coord_tensor<"(0,0)", "(4,8):(1@0,1@1)">, !cute.coord<"(1,2)">, f16) -> ()
//^
  return
}

// -----

func.func @f(%t: !cute.coord_tensor<"(0,0)", "(4,8):(1@0,1@1)">) {
  // expected-error @below {{'cute.memref.load_vec' op expected a !cute.memref, got !cute.coord_tensor<"(0,0)", "(4,8):(1@0,1@1)">}}
  %x = cute.memref.load_vec %t : !cute.coord_tensor<"(0,0)", "(4,8):(1@0,1@1)">
//                               ^
  return
}

// -----

func.func @f(%t: !cute.memref<f32, rmem, "(4,?):(1,4)">) {
  // expected-error @below {{'cute.memref.load_vec' op expected a static shape, got (4,?)}}
  %x = cute.memref.load_vec %t : !cute.memref<f32, rmem, "(4,?):(1,4)">
//                               ^
  return
}

// -----

func.func @f(%v: vector<32xf32>, %t: !cute.memref<f32, rmem, "(4,?):(1,4)">) {
  // expected-error @below {{'cute.memref.store_vec' op expected a static shape, got (4,?)}}
  cute.memref.store_vec %v, %t : !cute.memref<f32, rmem, "(4,?):(1,4)">
//                               ^
  return
}

// -----

func.func @f(%v: vector<16xf32>, %t: !cute.memref<f32, rmem, "(4,8):(1,4)">) {
  // expected-error @below {{'cute.memref.store_vec' op operand #0 must be vector<32xf32>, got vector<16xf32>}}
  "cute.memref.store_vec"(%v, %t) : (vector<16xf32>, !cute.memref<f32, rmem, "(4,8):(1,4)">) -> ()
//^
  return
}

// -----

func.func @f() {
  // expected-error @below {{'cute.memref.alloca' op expected an rmem tensor with a static layout, got !cute.memref<f32, rmem, "(4,?):(1,4)">}}
  %t = cute.memref.alloca() : !cute.memref<f32, rmem, "(4,?):(1,4)">
//     ^
  return
}

// -----

func.func @f() {
  // expected-error @below {{'cute.memref.alloca' op expected an rmem tensor with a static layout, got !cute.memref<f32, smem, "(4,8):(1,4)">}}
  %t = cute.memref.alloca() : !cute.memref<f32, smem, "(4,8):(1,4)">
//     ^
  return
}

// -----

func.func @f(%t: !cute.memref<f32, gmem, "(4,?):(1,4)">) {
  // expected-error @below {{'cute.make_fragment_like' op expected a static shape, got (4,?)}}
  %f = cute.make_fragment_like(%t) : !cute.memref<f32, gmem, "(4,?):(1,4)"> -> !cute.memref<f32, rmem, "(4,8):(1,4)">
//     ^
  return
}

// -----

func.func @f(%t: !cute.memref<f32, gmem, "(4,8):(8,1)">) {
  // expected-error @below {{expected a memref of f16, got !cute.memref<f32, rmem, align<32>, "(4,8):(8,1)">}}
  %f = cute.make_fragment_like(%t) [f16] : !cute.memref<f32, gmem, "(4,8):(8,1)"> -> !cute.memref<f32, rmem, align<32>, "(4,8):(8,1)">
//                                                                                   ^
  return
}

// -----

func.func @f(%t: !cute.layout<"(4,8):(8,1)">) {
  // expected-error @below {{'cute.make_fragment_like' op expected a tensor, got !cute.layout<"(4,8):(8,1)">}}
  "cute.make_fragment_like"(%t) : (!cute.layout<"(4,8):(8,1)">) -> !cute.memref<f32, rmem, align<32>, "(4,8):(8,1)">
//^
  return
}

// -----

func.func @f() {
  // expected-error @below {{'cute.memref.alloc_smem' op expected an smem tensor, got !cute.memref<f32, gmem, "(4,8):(1,4)">}}
  %t = cute.memref.alloc_smem() : !cute.memref<f32, gmem, "(4,8):(1,4)">
//     ^
  return
}

// -----

func.func @f() {
  // expected-error @below {{'cute.memref.alloc_smem' op expected a static layout, got (4,?):(1,4)}}
  %t = cute.memref.alloc_smem() : !cute.memref<f32, smem, "(4,?):(1,4)">
//     ^
  return
}

// -----

func.func @f() {
  // expected-error @below {{'cute.memref.alloc_smem' op expected whole bytes, got 5 elements of i4}}
  %t = cute.memref.alloc_smem() : !cute.memref<i4, smem, "5:1">
//     ^
  return
}

// -----

func.func @f() {
  // expected-error @below {{'cute.memref.alloc_smem' op expected at most 232448 bytes of shared memory, got 262144 for !cute.memref<f32, smem, "(256,256):(1,256)">}}
  %t = cute.memref.alloc_smem() : !cute.memref<f32, smem, "(256,256):(1,256)">
//     ^
  return
}

// -----

func.func @f() {
  // expected-error @below {{'cute.memref.alloc_smem' op expected an alignment of at least 1024 bytes, the period of S<3,4,3>, got 128; write align<1024>}}
  %t = cute.memref.alloc_smem() : !cute.memref<f16, smem, align<128>, S<3,4,3>, "(8,64):(64,1)">
//     ^
  return
}

// -----

func.func @f() {
  // expected-error @below {{'cute.memref.alloc_smem' op expected a swizzled or plain layout, got (4,2):(2,1) o 0 o 8:1}}
  %t = cute.memref.alloc_smem() : !cute.memref<f16, smem, "(4,2):(2,1) o 0 o 8:1">
//     ^
  return
}

// -----

func.func @f(%t: !cute.coord_tensor<"(0,0)", "(4,?):(1@0,1@1)">) {
  // expected-error @below {{'cute.make_fragment_like' op expected a static shape, got (4,?)}}
  %f = cute.make_fragment_like(%t) [f32] : !cute.coord_tensor<"(0,0)", "(4,?):(1@0,1@1)"> -> !cute.memref<f32, rmem, "(4,8):(1,4)">
//     ^
  return
}

// -----

func.func @f(%t: !cute.memref<f32, gmem, "(4,8):(8,1)">) {
  // expected-error @below {{'cute.make_fragment_like' op result #0: expected !cute.memref<f32, rmem, align<32>, "(4,8):(1,4)">, got !cute.memref<f32, smem, "(4,8):(8,1)">}}
  %f = cute.make_fragment_like(%t) : !cute.memref<f32, gmem, "(4,8):(8,1)"> -> !cute.memref<f32, smem, "(4,8):(8,1)">
//     ^
  return
}

// -----

func.func @f(%t: !cute.memref<f32, gmem, "(4,8):(8,1)">) {
  // expected-error @below {{'cute.make_fragment_like' op result 'result' at position 0 does not verify: i32 should be of base attribute cute.memref}}
  %f = cute.make_fragment_like(%t) : !cute.memref<f32, gmem, "(4,8):(8,1)"> -> i32
//     ^
  return
}

// -----

func.func @f() {
  // expected-error @below {{'cute.memref.alloca' op expected a register tensor of at most 524288 bytes, the local memory of a thread, got 8589934592 bytes in !cute.memref<f32, rmem, "2147483648:1">}}
  %t = cute.memref.alloca() : !cute.memref<f32, rmem, "2147483648:1">
//     ^
  return
}

// -----

func.func @f(%t: !cute.memref<f32, gmem, "2147483648:1">) {
  // expected-error @below {{'cute.make_fragment_like' op expected a register tensor of at most 524288 bytes, the local memory of a thread, got 8589934592 bytes in !cute.memref<f32, rmem, align<32>, "2147483648:1">}}
  %t2 = cute.make_fragment_like(%t) : !cute.memref<f32, gmem, "2147483648:1"> -> !cute.memref<f32, rmem, align<32>, "2147483648:1">
//      ^
  return
}
