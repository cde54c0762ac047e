// Errors of tiles, offsets and other views of tensors.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

func.func @f() {
  // expected-error @below {{'cute.local_partition' op expected 3 operands, got 0}}
  "cute.local_partition"() : () -> ()
//^
  return
}

// -----

func.func @f(%t: !cute.memref<f32, gmem, "(8,8):(8,1)">, %l: !cute.layout<"(2,2):(2,1)">, %c: !cute.coord<"(1,2)">) {
  // expected-error @below {{'cute.local_partition' op operand #2 must be a thread index, got (1,2)}}
  %r = cute.local_partition(%t, %l, %c) : (!cute.memref<f32, gmem, "(8,8):(8,1)">, !cute.layout<"(2,2):(2,1)">, !cute.coord<"(1,2)">) -> !cute.memref<f32, gmem, "(4,4):(8,1)">
//     ^
  return
}

// -----

func.func @f(%t: !cute.memref<f32, gmem, "(8,8):(8,1)">, %l: !cute.layout<"(2,?):(?,1)">, %c: !cute.coord<"1">) {
  // expected-error @below {{'cute.local_partition' op expected a static thread layout, got (2,?):(?,1)}}
  %r = cute.local_partition(%t, %l, %c) : (!cute.memref<f32, gmem, "(8,8):(8,1)">, !cute.layout<"(2,?):(?,1)">, !cute.coord<"1">) -> !cute.memref<f32, gmem, "(4,4):(8,1)">
//     ^
  return
}

// -----

func.func @f(%t: !cute.memref<f32, gmem, "(8,8):(8,1)">, %l: !cute.coord<"(2,2)">, %c: !cute.coord<"(1,2)">) {
  // expected-error @below {{'cute.local_tile' op operand #1 must be !cute.shape, !cute.layout or !cute.tile, got !cute.coord<"(2,2)">}}
  %r = cute.local_tile(%t, %l, %c) : (!cute.memref<f32, gmem, "(8,8):(8,1)">, !cute.coord<"(2,2)">, !cute.coord<"(1,2)">) -> !cute.memref<f32, gmem, "(4,4):(8,1)">
//     ^
  return
}

// -----

func.func @f(%c: !cute.coord<"(1,2,3)">, %t: !cute.memref<f32, gmem, "(8,8):(8,1)">) {
  // expected-error @below {{'cute.domain_offset' op operand #0 must be a tensor, got !cute.coord<"(1,2,3)">}}
  %r = cute.domain_offset(%c, %t) : (!cute.coord<"(1,2,3)">, !cute.memref<f32, gmem, "(8,8):(8,1)">) -> !cute.memref<f32, gmem, "(8,8):(8,1)">
//     ^
  return
}

// -----

func.func @f(%t: !cute.memref<f32, gmem, "(8,8):(8,1)">, %c: !cute.coord<"(1,2,3)">) {
  // expected-error @below {{'cute.domain_offset' op expected a coordinate weakly congruent to the shape (8,8), got (1,2,3)}}
  %r = cute.domain_offset(%t, %c) : (!cute.memref<f32, gmem, "(8,8):(8,1)">, !cute.coord<"(1,2,3)">) -> !cute.memref<f32, gmem, "(8,8):(8,1)">
//     ^
  return
}

// -----

func.func @f(%t: !cute.memref<f32, gmem, "(4,2):(2,1) o 0 o 8:1">, %c: !cute.coord<"1">) {
  // expected-error @below {{'cute.domain_offset' op result #0: expected !cute.memref<f32, gmem, "(4,2):(2,1) o 1 o 8:1">, got !cute.memref<f32, gmem, "8:1">}}
  %r = cute.domain_offset(%t, %c) : (!cute.memref<f32, gmem, "(4,2):(2,1) o 0 o 8:1">, !cute.coord<"1">) -> !cute.memref<f32, gmem, "8:1">
//     ^
  return
}

// -----

func.func @f(%t: !cute.coord_tensor<"(0,0)", "(4,8):(1@0,1@1)">) {
  // expected-error @below {{expected integer strides in a memref (basis strides make a cute.coord_tensor), got (4,8):(1@0,1@1)}}
  %r = "cute.recast_tensor"(%t) : (!cute.coord_tensor<"(0,0)", "(4,8):(1@0,1@1)">) -> !cute.memref<f32, gmem, "(4,8):(1@0,1@1)">
//                                                                                                            ^
  return
}

// -----

func.func @f(%t: !cute.memref<f16, gmem, "(4,8):(8,1)">) {
  // expected-error @below {{'cute.recast_tensor' op expected an alignment of at least the 4 bytes of f32, got 2; write align<4> in the type of the tensor}}
  %r = cute.recast_tensor(%t) : !cute.memref<f16, gmem, "(4,8):(8,1)"> to !cute.memref<f32, gmem, "(4,4):(4,1)">
//     ^
  return
}

// -----

func.func @f(%t: !cute.memref<f16, gmem, align<16>, "(4,8):(8,1)">) {
  // expected-error @below {{'cute.recast_tensor' op result #0: expected !cute.memref<f32, gmem, align<16>, "(4,4):(4,1)">, got !cute.memref<f32, gmem, align<16>, "(4,8):(4,1)">}}
  %r = cute.recast_tensor(%t) : !cute.memref<f16, gmem, align<16>, "(4,8):(8,1)"> to !cute.memref<f32, gmem, align<16>, "(4,8):(4,1)">
//     ^
  return
}

// -----

func.func @f(%t: !cute.memref<f16, gmem, align<16>, "(4,7):(7,1)">) {
  // expected-error @below {{'cute.recast_tensor' op expected modes divisible into elements of f32 (32 bits), each 2 elements of the tensor, got 4:7 in (4,7):(7,1)}}
  %r = cute.recast_tensor(%t) : !cute.memref<f16, gmem, align<16>, "(4,7):(7,1)"> to !cute.memref<f32, gmem, align<16>, "(4,8):(4,1)">
//     ^
  return
}

// -----

func.func @f(%t: !cute.memref<f16, gmem, "(4,8):(8,1)">, %i: i32) {
  // expected-error @below {{'cute.zipped_divide' op operand #1: expected !cute.shape, !cute.layout or !cute.tile, got i32}}
  %r = "cute.zipped_divide"(%t, %i) : (!cute.memref<f16, gmem, "(4,8):(8,1)">, i32) -> !cute.memref<f16, gmem, "(4,8):(8,1)">
//     ^
  return
}

// -----

func.func @f() {
  // expected-error @below {{'cute.slice' op expected a coordinate that fits (4,8), got (1,2,_)}}
  %r = cute.slice(%t, %i) : !cute.memref<f16, gmem, "(4,8):(8,1)">, !cute.coord<"(1,2,_)">
//               ^
  return
}

// -----

func.func @f() {
  // expected-error @below {{'cute.append_to_rank' op expected an element of kind layout, got shape}}
  %r = cute.append_to_rank<3> (%a, %b) : !cute.layout<"(4,8):(8,1)">, !cute.shape<"1">
//                        ^
  return
}

// -----

// expected-error @below {{invalid layout 'S<1,2,3> o (0,0) o (4,8):(1@0,1@1)': expected an integer index for the swizzle, got the arithmetic tuple (0,0)}}
func.func @f(%t: !cute.coord_tensor<"(0,0)", "S<1,2,3> o (0,0) o (4,8):(1@0,1@1)">, %c: !cute.coord<"(1,2)">) {
//                                           ^
  %r = cute.domain_offset(%t, %c) : (!cute.coord_tensor<"(0,0)", "S<1,2,3> o (0,0) o (4,8):(1@0,1@1)">, !cute.coord<"(1,2)">) -> !cute.coord_tensor<"(0,0)", "(4,8):(1@0,1@1)">
  return
}

// -----

func.func @f(%t: !cute.coord_tensor<"(0,0)", "(4,8):(8,1) o (0,0) o (4,8):(1@0,1@1)">, %c: !cute.coord<"(1,2)">) {
  // expected-error @below {{'cute.domain_offset' op expected an integer offset in the composed layout, got (4,8):(8,1) o (0,0) o (4,8):(1@0,1@1)}}
  %r = cute.domain_offset(%t, %c) : (!cute.coord_tensor<"(0,0)", "(4,8):(8,1) o (0,0) o (4,8):(1@0,1@1)">, !cute.coord<"(1,2)">) -> !cute.coord_tensor<"(0,0)", "(4,8):(1@0,1@1)">
//     ^
  return
}

// -----

func.func @f() {
  // expected-error @below {{'cute.slice' op operand #1: expected !cute.coord, got i32}}
  %r = cute.slice(%t, %i) : !cute.memref<f16, gmem, "(4,8):(8,1)">, i32 -> !cute.memref<f16, gmem, "(4,8):(8,1)">
//               ^
  return
}

// -----

func.func @f(%t: !cute.memref<f16, gmem, "(4,8):(8,1)">, %i: i32) {
  // expected-error @below {{'cute.slice' op operand #1: expected !cute.coord, got i32}}
  %r = "cute.slice"(%t, %i) : (!cute.memref<f16, gmem, "(4,8):(8,1)">, i32) -> !cute.memref<f16, gmem, "(4,8):(8,1)">
//     ^
  return
}

// -----

func.func @f(%t: !cute.memref<f16, gmem, "(4,8):(8,1)">, %i: !cute.memref<f16, gmem, "(4,8):(8,1)">) {
  // expected-error @below {{'cute.composition' op operand #1: expected !cute.shape, !cute.layout or !cute.tile, got !cute.memref<f16, gmem, "(4,8):(8,1)">}}
  %r = "cute.composition"(%t, %i) : (!cute.memref<f16, gmem, "(4,8):(8,1)">, !cute.memref<f16, gmem, "(4,8):(8,1)">) -> !cute.memref<f16, gmem, "(4,8):(8,1)">
//     ^
  return
}

// -----

func.func @f(%t: !cute.memref<f16, gmem, align<16>, "(4,?):(?{div=3},1)">) {
  // expected-error @below {{'cute.recast_tensor' op expected modes divisible into elements of f32 (32 bits), each 2 elements of the tensor, got 4:?{div=3} in (4,?):(?{div=3},1)}}
  %r = cute.recast_tensor(%t) : !cute.memref<f16, gmem, align<16>, "(4,?):(?{div=3},1)"> to !cute.memref<f32, gmem, align<16>, "(4,8):(4,1)">
//     ^
  return
}

// -----

func.func @f(%t: !cute.memref<f16, gmem, align<16>, "(4,8):(3,1)">) {
  // expected-error @below {{'cute.recast_tensor' op expected modes divisible into elements of f32 (32 bits), each 2 elements of the tensor, got 4:3 in (4,8):(3,1)}}
  %r = cute.recast_tensor(%t) : !cute.memref<f16, gmem, align<16>, "(4,8):(3,1)"> to !cute.memref<f32, gmem, align<16>, "(4,8):(4,1)">
//     ^
  return
}

// -----

func.func @f(%t: !cute.memref<f32, gmem, "8:1">) {
  // expected-error @below {{expected the types of the operands and of the result, as in '(T) -> T'}}
  %r = cute.size(%t) : !cute.memref<f32, gmem, "8:1">
//                     ^
  return
}
