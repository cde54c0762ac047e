// Syntax errors, with their position and the unexpected token.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

func.func @f() {
  return
}
  // expected-error @below {{expected operation name in quotes, or an alias definition}}
  42
//^

// -----

func.func @f() {
    // expected-error @below {{operation 'x.y' belongs to the unregistered dialect 'x' (known here: arith, builtin, cf, cute, cute_nvgpu, func, gpu, index, llvm, math, memref, nvgpu, nvvm, scf, ub, vector)}}
    %x = "x.y"() : () -> i32
//       ^
  return
}

// -----

func.func @f() {
  // expected-error @below {{operation 'foo.bar' belongs to the unregistered dialect 'foo' (known here: arith, builtin, cf, cute, cute_nvgpu, func, gpu, index, llvm, math, memref, nvgpu, nvvm, scf, ub, vector)}}
  foo.bar
//^
  return
}

// -----

func.func @f(%a: i32) {
  // expected-error @below {{custom operation 'fooo' is unknown}}
  fooo %a : i32
//^
  return
}

// -----

// expected-error @below {{integer bitwidth is limited to 16777215 bits}}
func.func private @f(i16777217)
//                   ^

// -----

// expected-error @below {{integer bitwidth is limited to 16777215 bits}}
func.func private @f(i99999999999)
//                   ^

// -----

func.func @f(%a: i32) {
  // expected-note @below {{previously defined here}}
  %b = arith.addi %a, %a : i32
  // expected-error @below {{redefinition of SSA value '%b'}}
  %b = arith.addi %a, %a : i32
//^
  return
}

// -----

func.func @f(%a: i32) {
  // expected-error @below {{'arith.addi' has 1 result, but 2 are named here}}
  %b, %c = arith.addi %a, %a : i32
//^
  return
}

// -----

func.func @f(%a: i32) {
  // expected-error @below {{use of undeclared SSA value name '%nowhere'}}
  %b = arith.addi %a, %nowhere : i32
//                    ^
  return
}

// -----

func.func @f(%a: i32) {
  // expected-error @below {{Expected ','}}
  %b = arith.addi %a : i32
//                   ^
  return
}

// -----

func.func @f(%a: i32) {
  // expected-error @below {{unregistered operation 'cute.sise'; did you mean 'cute.size'?}}
  %b = "cute.sise"(%a) : (i32) -> i32
//     ^
  return
}

// -----

// expected-error @below {{unregistered type '!cute.latout'; did you mean 'cute.layout'?}}
func.func @f(%a: !cute.latout<"4:1">) {
//               ^
  return
}

// -----

// expected-error @below {{type '!cuter.layout' belongs to the unregistered dialect 'cuter'; did you mean 'cute'? (known here: arith, builtin, cf, cute, cute_nvgpu, func, gpu, index, llvm, math, memref, nvgpu, nvvm, scf, ub, vector)}}
func.func @f(%a: !cuter.layout<"4:1">) {
//               ^
  return
}

// -----

// expected-error @below {{Integer value 1 is out of range for type i0 which supports values in the range [0, 1)}}
func.func @f(%a: i32) attributes {a = array<i0: 1>} {
//                                              ^
  return
}

// -----

// expected-error @below {{dense array element type must have at most 64 bits}}
func.func @f(%a: i32) attributes {a = array<i128: 1>} {
//                                         ^
  return
}

// -----

// expected-error @below {{Shape mismatch in dense literal. Expected [3] shape from the type, but got [2] shape.}}
func.func @f(%a: i32) attributes {a = dense<[1, 2]> : tensor<3xi32>} {
//                                                                 ^
  return
}

// -----

// expected-error @below {{type expected, got '?' (examples of types: i32, }}
func.func @f(%a: vector<0x?xi32>) {
//                        ^
  return
}

// -----

  // expected-error @below {{Integer value 300 is out of range for type i8 which supports values in the range [-128, 256)}}
  func.func @f(%a: i32) attributes {a = 300 : i8} {
//^
    return
  }

// -----

  // expected-error @below {{'func.func' op requires the property 'function_type'}}
  "func.func"() ({
//^
  ^bb0(%a: i32):
    "func.return"() : () -> ()
  }) {sym_name = "f"} : () -> ()

// -----

func.func @f(%a: i32) {
  // expected-error @below {{'arith.constant' op property 'value' expected in operation 'arith.constant'}}
  %0 = "arith.constant"() : () -> i32
//     ^
  return
}

// -----

func.func @f(%a: i32) {
  %0 = arith.constant 1.5 : i32
  // expected-error @below {{Floating point value is not valid for integer type.}}
  return
//^
}

// -----

func.func @f(%a: i32) {
  // expected-error @below {{expected one of eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge for attribute 'predicate'}}
  %0 = arith.cmpi foo, %a, %a : i32
//                ^
  return
}

// -----

  // expected-error @below {{expected a layout or an extent in every slot of the tiler, got [4:1;_]}}
  func.func @f(%a: !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f16>, layout_copy_tv = <"(32,4):(4,1)">, tiler_mn = <"[4:1;_]">>) { return }
//                                  ^

// -----

  // expected-error @below {{undefined symbol alias '#nowhere'}}
  func.func private @f() loc(#nowhere)
//                           ^

// -----

#a = 3 : i32
  // expected-error @below {{Expected location alias.}}
  func.func private @f() loc(#a)
//                             ^

// -----

  // expected-error @below {{expected a location, but the alias '#a' is another kind of attribute}}
  func.func private @f() loc(#a)
//                           ^
#a = 3 : i32

// -----

  // expected-error @below {{Integer value 9223372036854775808 is out of range for type i32 which supports values in the range [-2147483648, 4294967296)}}
  #a = 9223372036854775808 : i32
//^
  func.func private @f() attributes {a = #a}

// -----

  // expected-error @below {{Integer value 99999999999999999999 is out of range for type i32 which supports values in the range [-2147483648, 4294967296)}}
  func.func private @f() attributes {a = array<i32: 99999999999999999999>}
//                                                  ^

// -----

func.func @f(%t: !cute.memref<f16, gmem, align<16>, "(4,8):(8,1)">) {
  // expected-error @below {{expected 1 operand, got 0}}
  %r = cute.recast_tensor() : !cute.memref<f16, gmem, align<16>, "(4,8):(8,1)"> to !cute.memref<f32, gmem, align<16>, "(4,4):(4,1)">
//                       ^
  return
}

// -----

func.func @f(%t: !cute.memref<f32, gmem, "(4,8):(8,1)">) {
  // expected-error @below {{expected 1 operand, got 2}}
  %f = cute.make_fragment_like(%t, %t) : !cute.memref<f32, gmem, "(4,8):(8,1)"> -> !cute.memref<f32, rmem, "(4,8):(8,1)">
//                            ^
  return
}

// -----

func.func @f(%p: !cute.ptr<f32, gmem>) {
  // expected-error @below {{expected 1 operand, got 0}}
  %q = cute.recast_iter() : !cute.ptr<f32, gmem> to !cute.ptr<i32, gmem>
//                     ^
  return
}

// -----

  // expected-error @below {{expected digits 0 to 9 in a number, got '¼'}}
  func.func private @f() attributes {a = ¼ : i32}
//                                       ^

// -----

  // expected-error @below {{expected digits 0 to 9 in a number, got '٣'}}
  func.func private @f() attributes {a = ٣ : i32}
//                                       ^

// -----

func.func @f(%a: i32) {
  // expected-error @below {{Expected result SSA value!}}
  %x, arith.addi %a, %a : i32
//    ^
  return
}

// -----

func.func @f(%a: i32) {
  // expected-error @below {{Expected integer as SSA value tuple index}}
  %x = arith.addi %a#b, %a : i32
//                  ^
  return
}

// -----

// expected-note @below {{prior use here}}
func.func @f(%a: i32, %b: f32) {
  // expected-error @below {{use of value '%b' expects different type than prior uses: 'i32' vs 'f32'}}
  %0 = arith.addi %a, %b : i32
//                    ^
  return
}

// -----

func.func @f() {
  // expected-note @below {{prior use here}}
  %r:2 = func.call @g() : () -> (i32, f32)
  // expected-error @below {{use of value '%r' expects different type than prior uses: 'i32' vs 'f32'}}
  %0 = arith.addi %r#0, %r#1 : i32
//                      ^
  return
}

// -----

func.func @f() {
  // expected-note @below {{defined here}}
  %r:2 = func.call @g() : () -> (i32, i32)
  // expected-error @below {{reference to invalid result number: '%r' has 2 results, there is no #2}}
  %0 = arith.addi %r#0, %r#2 : i32
//                      ^
  return
}

// -----

func.func @f() {
  cf.br ^b
^a:
  // expected-note @below {{prior use here}}
  %0 = arith.addi %x, %x : i32
  // expected-error @below {{use of value '%x' expects different type than prior uses: 'f32' vs 'i32'}}
  %1 = arith.addf %x, %x : f32
//                ^
  return
^b:
  %x = arith.constant 1 : i32
  cf.br ^a
}

// -----

func.func @f() {
  cf.br ^b
^a:
  // expected-note @below {{previously used here with type 'i32'}}
  %0 = arith.addi %x, %x : i32
  return
^b:
  // expected-error @below {{definition of SSA value '%x#0' has type 'f32'}}
  %x = arith.constant 1.0 : f32
//^
  cf.br ^a
}

// -----

func.func @f() {
  cf.br ^b
^a:
  // expected-note @below {{previously used here}}
  %0 = arith.negf %x#1 : f32
  return
^b:
  // expected-error @below {{'%x' is used with result number 1, but has 1 here}}
  %x = arith.constant 1.0 : f32
//^
  cf.br ^a
}

// -----

// expected-error @below {{type expected, got 'float32'; did you mean 'f32'?}}
func.func private @f(float32)
//                   ^

// -----

// expected-error @below {{type expected, got 'Half'; did you mean 'f16'?}}
func.func private @f(i32, Half)
//                        ^

// -----

// expected-error @below {{type expected, got 'double'; did you mean 'f64'?}}
func.func private @f(vector<4xdouble>)
//                            ^

// -----

// expected-error @below {{type expected, got 'uint8_t'; did you mean 'i8'?}}
func.func private @f(memref<?xuint8_t>)
//                            ^

// -----

// expected-error @below {{type expected, got 'cute.layout'; did you mean '!cute.layout'?}}
func.func private @f(cute.layout<"4:1">)
//                   ^

// -----

// expected-error @below {{type expected, got ')' (examples of types: i32, index, f16, bf16, f32, vector<4xf32>, memref<4xf32>, !llvm.ptr, !cute.layout<"4:1">, (i32) -> f32)}}
func.func private @f(i32, )
//                        ^

// -----

// expected-error @below {{expected a number of at most 600 digits, got 601}}
func.func private @f() attributes {a = 9999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999}
//                                     ^

// -----

func.func @f(%a: i32) {
  // expected-error @below {{unregistered operation 'cute.addi'; did you mean 'arith.addi'?}}
  %0 = cute.addi %a, %a : i32
//     ^

// -----

  // expected-error @below {{expected a number of at most 600 digits, got 601}}
  %b = arith.addi %a#9999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999, %a : i32
//                  ^
  return
}

// -----

func.func @f(%a: i32) {
  // expected-error @below {{custom operation 'addi' is unknown; did you mean 'arith.addi'?}}
  %0 = addi %a, %a : i32
//     ^
  return
}

// -----

func.func @f() {
  // expected-error @below {{unregistered operation 'cute.barrier'; did you mean 'gpu.barrier'?}}
  cute.barrier
//^
  return
}

// -----

func.func @f() {
  // expected-error @below {{unregistered operation 'barrier'; did you mean 'gpu.barrier'?}}
  "barrier"() : () -> ()
//^
  return
}

// -----

// expected-error @below {{hexadecimal float constant out of range for its type}}
func.func private @f() attributes {a = 0xFFFFFFFFFF : f32}
//                                     ^

// -----

// expected-error @below {{expected elements that fit their type, of at most 64 bits, in a dense constant}}
func.func private @f() attributes {a = dense<0> : vector<4xi128>}
//                                          ^

// -----

// expected-error @below {{expected aliases and dense constants that expand to at most 4215104 characters and elements in a file of this length, got 2147483648 with a dense constant of 2147483648}}
func.func private @f() attributes {a = dense<0> : vector<2147483648xi8>}
//                                                ^

// -----

// expected-error @below {{the alias '#a' refers to itself}}
func.func private @f() loc(#a)
//                         ^
#a = loc(callsite(#a at unknown))

// -----

func.func @f() {
  // expected-error @below {{expected at least 1 result per name, got 0}}
  %r:0 = arith.constant 1 : i32
  return
}

// -----

func.func @f() {
  cf.br ^b
// expected-note @below {{originally declared here}}
^b:
  return
// expected-error @below {{re-declaration of block 'b'}}
^b:
  return
}
