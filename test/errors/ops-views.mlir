// Errors of ops on iterators, scalars and trees.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

func.func @f(%p: !cute.ptr<f32, gmem>) {
  // expected-error @below {{'cute.add_offset' op expected 2 operands, got 1}}
  %r = "cute.add_offset"(%p) : (!cute.ptr<f32, gmem>) -> !cute.ptr<f32, gmem>
//     ^
  return
}

// -----

func.func @f(%p: !cute.ptr<f32, gmem>, %o: !cute.int_tuple<"(1,2)">) {
  // expected-error @below {{'cute.add_offset' op expected a scalar offset for a pointer, got (1,2)}}
  %r = cute.add_offset(%p, %o) : (!cute.ptr<f32, gmem>, !cute.int_tuple<"(1,2)">) -> !cute.ptr<f32, gmem>
//     ^
  return
}

// -----

func.func @f(%p: !cute.ptr<f32, gmem>, %o: i32) {
  // expected-error @below {{'cute.add_offset' op operand #1 must be a tuple (!cute.int_tuple), got i32}}
  %r = cute.add_offset(%p, %o) : (!cute.ptr<f32, gmem>, i32) -> !cute.ptr<f32, gmem>
//     ^
  return
}

// -----

func.func @f(%p: !cute.ptr<f32, gmem>) {
  // expected-error @below {{'cute.recast_iter' op cannot change the memory space or the swizzle of a pointer, or raise its alignment of 4 bytes: !cute.ptr<f32, gmem> to !cute.ptr<f32, smem>}}
  %r = cute.recast_iter(%p) : !cute.ptr<f32, gmem> to !cute.ptr<f32, smem>
//     ^
  return
}

// -----

func.func @f(%p: !cute.ptr<f32, gmem, align<4>>) {
  // expected-error @below {{'cute.recast_iter' op cannot change the memory space or the swizzle of a pointer, or raise its alignment of 4 bytes: !cute.ptr<f32, gmem> to !cute.ptr<f16, gmem, align<16>>}}
  %r = cute.recast_iter(%p) : !cute.ptr<f32, gmem, align<4>> to !cute.ptr<f16, gmem, align<16>>
//     ^
  return
}

// -----

func.func @f(%x: !cute.i32<divby 4>) {
  // expected-error @below {{'cute.assume' op expected a result type at least as strong as the operand type, got !cute.i32<divby 4> -> !cute.i32<divby 6>}}
  %y = cute.assume(%x) : (!cute.i32<divby 4>) -> !cute.i32<divby 6>
//     ^
  return
}

// -----

func.func @f(%x: !cute.i32<divby 4>) {
  // expected-error @below {{'cute.assume' op expected a result type at least as strong as the operand type, got !cute.i32<divby 4> -> i64}}
  %y = cute.assume(%x) : (!cute.i32<divby 4>) -> i64
//     ^
  return
}

// -----

func.func @f(%x: i32) {
  // expected-error @below {{invalid stride '(1,1@0)': expected integer strides or basis elements, got both 1 and 1@0}}
  %y = cute.to_int_tuple(%x) : !cute.stride<"(1,1@0)"> -> !cute.int_tuple<"(1,1@0)">
//                                          ^
  return
}

// -----

// expected-error @below {{invalid stride '(1,1@0)': expected integer strides or basis elements, got both 1 and 1@0}}
func.func @f(%x: !cute.stride<"(1,1@0)">) {
//                            ^
  %y = "cute.to_int_tuple"(%x) : (!cute.stride<"(1,1@0)">) -> !cute.int_tuple<"(1,1@0)">
  return
}

// -----

func.func @f(%x: !cute.coord<"(1,_)">) {
  // expected-error @below {{invalid int_tuple '(1,_)': expected an integer, '?' or '(', got '_' at offset 3}}
  %y = "cute.to_int_tuple"(%x) : (!cute.coord<"(1,_)">) -> !cute.int_tuple<"(1,_)">
//                                                                             ^
  return
}

// -----

func.func @f(%x: !cute.coord<"(1,?)">) {
  // expected-error @below {{unknown property only_static; only only_dynamic is allowed}}
  %y = cute.get_scalars <{only_static}> (%x) : !cute.coord<"(1,?)">
//                      ^
  return
}

// -----

func.func @f(%x: !cute.coord<"(1,?)">) {
  // expected-error @below {{expected 1 operand, got 2}}
  %y = cute.get_scalars(%x, %x) : !cute.coord<"(1,?)">
//                     ^
  return
}

// -----

// expected-error @below {{invalid coord '(1,1@0)': expected ',' or ')', got '@' at offset 4}}
func.func @f(%x: !cute.coord<"(1,1@0)">) {
//                                ^
  %y = cute.get_scalars(%x) : !cute.coord<"(1,1@0)">
  return
}

// -----

func.func @f(%x: !cute.coord<"(1,?)">) {
  // expected-error @below {{expected 1 operand, got 2}}
  cute.print(%x, %x) : !cute.coord<"(1,?)">
//          ^
  return
}

// -----

func.func @f(%x: !cute.coord<"1">) {
  // expected-error @below {{expected a 32-bit integer, got 4294967296}}
  %y = cute.get<[4294967296]> (%x) : !cute.coord<"1"> -> !cute.coord<"1">
//               ^
  return
}

// -----

func.func @f(%x: !cute.layout<"(4,8):(8,1)">) {
  // expected-error @below {{expected a 32-bit integer, got 4294967296}}
  %y = cute.size<[4294967296]> (%x) : (!cute.layout<"(4,8):(8,1)">) -> !cute.int_tuple<"4">
//                ^
  return
}

// -----

func.func @f(%s: !cute.shape<"(6,5)">) {
  // expected-error @below {{'cute.make_layout' op expected 2 operands, got 1}}
  %l = cute.make_layout(%s) : !cute.shape<"(6,5)">
//     ^
  return
}

// -----

func.func @f(%s: !cute.shape<"(6,5)">, %d: !cute.stride<"(5,1)">) {
  // expected-error @below {{expected 1 operand type, got 2}}
  %l = cute.make_layout(%s) : (!cute.shape<"(6,5)">, !cute.stride<"(5,1)">) -> !cute.layout<"(6,5):(5,1)">
//                             ^
  return
}

// -----

func.func @f(%s: !cute.shape<"(6,5)">) {
  // expected-error @below {{expected 2 operand types, got 1}}
  %l = cute.size(%s, %s) : (!cute.shape<"(6,5)">) -> !cute.int_tuple<"30">
//                         ^
  return
}

// -----

func.func @f(%s: !cute.shape<"(6,5)">) {
  // expected-error @below {{property 'mode' is written before the operands, not in the attribute dictionary}}
  %l = cute.size(%s) {mode = array<i32: 0>} : (!cute.shape<"(6,5)">) -> !cute.int_tuple<"30">
//                   ^
  return
}

// -----

func.func @f() {
  // expected-error @below {{'cute.static' op expected 1 result, got 2}}
  %l:2 = "cute.static"() : () -> (!cute.shape<"(6,5)">, !cute.shape<"(6,5)">)
//       ^
  return
}

// -----

func.func @f(%i: f32) {
  // expected-error @below {{'cute.make_coord' op operand #0: expected i32, i64 or a scalar !cute.int_tuple, got f32}}
  %l = cute.make_coord(%i) : (f32) -> !cute.coord<"?">
//     ^
  return
}

// -----

func.func @f(%i: !cute.coord<"1">) {
  // expected-error @below {{'cute.make_layout' op expected 2 operands, got 1}}
  %l = "cute.make_layout"(%i) : (!cute.coord<"1">) -> !cute.layout<"1:1">
//     ^
  return
}

// -----

func.func @f(%a: !cute.memref<f32, gmem, "(8,8):(8,1)">) {
  // expected-error @below {{expected 2 operand types, got 1}}
  %r = cute.local_tile(%a, %b) : (!cute.memref<f32, gmem, "(8,8):(8,1)">) -> !cute.memref<f32, gmem, "(4,4):(8,1)">
//                               ^
  return
}

// -----

func.func @f() {
  // expected-error @below {{'cute.get_iter' op operand #0 must be a tensor, got !cute.layout<"(4,8):(8,1)">}}
  %y = cute.get_iter(%y) : !cute.layout<"(4,8):(8,1)"> -> i32
//                  ^
  return
}

// -----

func.func @f(%x: !cute.stride<"(1@0,1@1)">) {
  // expected-error @below {{'cute.to_int_tuple' op expected a stride whose leaves are integers, got the leaf '1@0'}}
  %y = "cute.to_int_tuple"(%x) : (!cute.stride<"(1@0,1@1)">) -> !cute.int_tuple<"1">
//     ^
  return
}

// -----

func.func @f(%a: !cute.int_tuple<"(1,2)">, %b: i32) {
  // expected-error @below {{'cute.make_coord' op expected 0 operands, one per '?' of !cute.coord<"(1,2)">, got 2}}
  %y = cute.make_coord(%a, %b) : (!cute.int_tuple<"(1,2)">, i32) -> !cute.coord<"(1,2)">
//     ^
  return
}

// -----

func.func @f(%x: i32) {
  // expected-error @below {{'cute.get_scalars' op operand #0: expected a cute value, got i32}}
  %y = cute.get_scalars(%x) : i32
//                     ^
  return
}

// -----

func.func @f() {
  // expected-error @below {{expected a value that is defined above, because this form does not write operand types}}
  %s = cute.make_layout(%l) : !cute.layout<"(6,5):(1,6)">
//                      ^
  return
}

// -----

func.func @f(%a: i32) {
  // expected-error @below {{'cute.print' op operand #0: expected a cute value, got i32}}
  "cute.print"(%a) : (i32) -> ()
//^
  return
}

// -----

func.func @f(%x: !cute.coord<"(1,?)">) {
  %y:2 = cute.get_scalars(%x) : !cute.coord<"(1,?)">
  // expected-error @below {{'cute.get_scalars' has 2 results, but 3 are named here}}
  %z:3 = cute.get_scalars(%x) : !cute.coord<"(1,?)">
//^
  return
}
