// Constructors: what the verifier rejects, and what it says.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

func.func @f(%s: !cute.shape<"(6,5)">, %d: !cute.stride<"1">) {
  // expected-error @below {{expected congruent shape and stride, got (6,5) and 1}}
  %l = cute.make_layout(%s, %d) : (!cute.shape<"(6,5)">, !cute.stride<"1">) -> !cute.layout<"6:1">
  return
}

// -----

func.func @f(%s: !cute.shape<"(0,2)">) {
  // expected-error @below {{expected extents >= 1}}
  %r = cute.make_identity_layout(%s) : !cute.shape<"(0,2)"> -> !cute.layout<"(1,2):(1@0,1@1)">
  return
}

// -----

func.func @f() {
  // expected-error @below {{'cute.static' op result #0: expected a static type, got !cute.shape<"(6,?)">}}
  %s = cute.static : !cute.shape<"(6,?)">
  return
}

// -----

func.func @f() {
  // expected-error @below {{result #0: expected a cute value, got i32}}
  %s = cute.static : i32
  return
}

// -----

func.func @f() {
  // expected-error @below {{expected a static type, got !cute.memref}}
  %s = cute.static : !cute.memref<f32, gmem, "8:1">
  return
}

// -----

func.func @f(%m: i32) {
  // expected-error @below {{expected 2 operands, one per '?' of}}
  %s = cute.make_shape(%m) : (i32) -> !cute.shape<"(?,?)">
  return
}

// -----

func.func @f(%x: i64) {
  // expected-error @below {{operand #0: expected 32 bits for '?', got 64}}
  %s = cute.make_shape(%x) : (i64) -> !cute.shape<"?">
  return
}

// -----

func.func @f() {
  // expected-error @below {{expected 1 operand}}
  %c = cute.make_coord() : () -> !cute.coord<"(?,_)">
  return
}

// -----

func.func @f(%m: i32) {
  // expected-error @below {{result #0: expected !cute.shape, got !cute.stride}}
  %s = cute.make_shape(%m) : (i32) -> !cute.stride<"?">
  return
}

// -----

func.func @f(%m: !cute.int_tuple<"(?)">) {
  // expected-error @below {{operand #0: expected i32, i64 or a scalar !cute.int_tuple, got !cute.int_tuple<"(?)">}}
  %s = cute.make_shape(%m) : (!cute.int_tuple<"(?)">) -> !cute.shape<"?">
  return
}

// -----

func.func @f(%m: !cute.shape<"?">) {
  // expected-error @below {{operand #0: expected i32, i64 or}}
  %s = cute.make_shape(%m) : (!cute.shape<"?">) -> !cute.shape<"?">
  return
}

// -----

func.func @f(%m: i16) {
  // expected-error @below {{operand #0: expected i32, i64 or}}
  %s = cute.make_shape(%m) : (i16) -> !cute.shape<"?{i16}">
  return
}

// -----

func.func @f(%m: !cute.int_tuple<"4294967296">) {
  // expected-error @below {{operand #0: expected a value of 32 bits for '?', got 4294967296}}
  %s = cute.make_shape(%m) : (!cute.int_tuple<"4294967296">) -> !cute.shape<"?">
  return
}

// -----

func.func @f(%m: i32) {
  // expected-error @below {{operand #0: expected a known multiple of 8 for '?{div=8}', got a multiple of 1}}
  %s = cute.make_shape(%m) : (i32) -> !cute.shape<"?{div=8}">
  return
}

// -----

func.func @f(%m: !cute.i32<divby 4>) {
  // expected-error @below {{expected a known multiple of 8 for '?{div=8}', got a multiple of 4}}
  %s = cute.make_shape(%m) : (!cute.i32<divby 4>) -> !cute.shape<"?{div=8}">
  return
}

// -----

func.func @f(%m: !cute.int_tuple<"12">) {
  // expected-error @below {{expected a multiple of 8 for '?{div=8}', got 12}}
  %s = cute.make_shape(%m) : (!cute.int_tuple<"12">) -> !cute.shape<"?{div=8}">
  return
}

// -----

func.func @f(%m: !cute.i64<divby 8>) {
  // expected-error @below {{expected 32 bits for '?{div=8}', got 64}}
  %s = cute.make_shape(%m) : (!cute.i64<divby 8>) -> !cute.shape<"?{div=8}">
  return
}
