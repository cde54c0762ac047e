// Errors of IR structure: values must be defined before their uses, and blocks must end with terminators.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: i32) {
  // expected-error @below {{'cf.br' op has successors, so it must be the last op of its block}}
  cf.br ^x
//^
  %b = arith.addi %a, %a : i32
^x:
  return
}

// -----

func.func @f(%a: i32) {
  cf.br ^x
^x:
  // expected-error @below {{'arith.addi' op ends a block, but is not a terminator}}
  %b = arith.addi %a, %a : i32
//     ^
}

// -----

  "func.func"() <{sym_name = "f", function_type = () -> ()}> ({
    // expected-error @below {{'arith.constant' op ends the block of 'func.func', but is not a terminator}}
    %b = "arith.constant"() <{value = 1 : i32}> : () -> i32
//       ^
  }) : () -> ()

// -----

  // expected-error @below {{'func.func' op contains an empty block; a block must end with a terminator}}
  "func.func"() <{sym_name = "f", function_type = () -> ()}> ({
//^
  ^x:
  }) : () -> ()

// -----

  // expected-error @below {{'func.func' op contains an empty block; a block must end with a terminator}}
  func.func @f(%a: i32) {
//^
    cf.br ^x
  ^x:
  ^y:
    return
  }

// -----

func.func @f(%a: i32, %c: i1) {
  scf.if %c {
    %b = arith.addi %a, %a : i32
  }
  // expected-error @below {{use of undeclared SSA value name '%b'}}
  %d = arith.addi %b, %a : i32
//                ^
  return
}

// -----

func.func @f(%a: i32, %c: i1) {
  cf.cond_br %c, ^x, ^y
^x:
  %b = arith.addi %a, %a : i32
  cf.br ^y
^y:
  // expected-error @below {{'arith.addi' op operand #0 does not dominate this use}}
  %d = arith.addi %b, %a : i32
//     ^
  return
}

// -----

func.func @f(%a: i32) {
  // expected-error @below {{'arith.addi' op operand #0 does not dominate this use}}
  %d = arith.addi %b, %a : i32
//     ^
  %b = arith.addi %a, %a : i32
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

  // expected-error @below {{'func.func' op i32 should be of base attribute fun}}
  "func.func"() <{sym_name = "f", function_type = i32}> ({
//^
  ^bb0(%a: i32):
    "func.return"() : () -> ()
  }) : () -> ()

// -----

  // expected-error @below {{'func.func' op Expected 1 region, but got 0}}
  "func.func"() <{sym_name = "f", function_type = (i32) -> ()}> : () -> ()
//^

// -----

func.func @f() {
    // expected-error @below {{'llvm.func' op attribute 'function_type' of 'llvm.func': expected a function type, got i32}}
    "llvm.func"() <{sym_name = "f", function_type = i32, linkage = #llvm.linkage<external>, CConv = #llvm.cconv<ccc>}> ({
//  ^
    }) : () -> ()
  return
}

// -----

func.func @f() {
    // expected-error @below {{'llvm.func' op the entry block must have the arguments of the function type (i32), got (i64)}}
    "llvm.func"() <{sym_name = "f", function_type = !llvm.func<void (i32)>}> ({
//  ^
    ^bb0(%a: i64):
      "llvm.return"() : () -> ()
    }) : () -> ()
  return
}

// -----

gpu.module @m {
  // expected-error @below {{'gpu.func' requires a string as attribute 'sym_name'}}
  "gpu.func"() <{function_type = (i32) -> ()}> ({
//^
  ^bb0(%a: i32):
    "gpu.return"() : () -> ()
  }) : () -> ()
}

// -----

gpu.module @m {
  // expected-error @below {{'gpu.func' op the entry block must have the arguments of the function type (i32), got (i64, i64)}}
  "gpu.func"() <{function_type = (i32) -> ()}> ({
//^
  ^bb0(%a: i64, %b: i64):
    "gpu.return"() : () -> ()
  }) {sym_name = "a", gpu.kernel} : () -> ()
}

// -----

gpu.module @m {
  // expected-error @below {{'gpu.func' op the entry block must have the arguments of the function type (i32) and 1 attributions, got (i32)}}
  "gpu.func"() <{function_type = (i32) -> ()}> ({
//^
  ^bb0(%a: i32):
    "gpu.return"() : () -> ()
  }) {sym_name = "a", gpu.kernel, workgroup_attributions = 1 : i64} : () -> ()
}

// -----

func.func @f() {
  // expected-error @below {{'scf.while' op Region 'before_region' at position 0 expected a single block, but got 0 blocks}}
  "scf.while"() ({}, {}) : () -> ()
//^
  return
}

// -----

func.func @f() {
  // expected-error @below {{'scf.while' op expected two regions of one block each, got block counts: none}}
  "scf.while"() : () -> ()
//^
  return
}

// -----

func.func @f(%c: i1, %i: i32) {
  scf.if %c {
    // expected-error @below {{'func.return' op is a terminator, so it must be the last op of its block}}
    "func.return"() : () -> ()
//  ^
    %b = arith.addi %i, %i : i32
    scf.yield
  }
  return
}

// -----

func.func @f(%c: i1) {
  scf.if %c {
    // expected-error @below {{'scf.yield' op is a terminator, so it must be the last op of its block}}
    scf.yield
//  ^
    scf.yield
  }
  return
}

// -----

func.func @f(%c: i1, %a: i32) {
  // expected-error @below {{'scf.if' op expected the else region to yield (i32), got an empty region}}
  %x = scf.if %c -> (i32) {
//     ^
    scf.yield %a : i32
  }
  return
}

// -----

func.func @f(%c: i1, %a: i32) {
  // expected-error @below {{'scf.if' op expected the else region to yield the result types (i32), got (i1)}}
  %x = scf.if %c -> (i32) {
//     ^
    scf.yield %a : i32
  } else {
    scf.yield %c : i1
  }
  return
}

// -----

func.func @f(%c: i1, %a: i32) {
  // expected-error @below {{'scf.if' op expected the then region to yield the result types (), got (i32)}}
  scf.if %c {
//^
    scf.yield %a : i32
  }
  return
}

// -----

// All wrong result types of all ops are reported, but no errors of ops that use these results.
func.func @f(%s: !cute.shape<"(?,6)">, %n: i32) -> i32 {
  // expected-error @below {{'cute.size' op result #0: expected !cute.int_tuple<"?">, got !cute.int_tuple<"7">}}
  %z = "cute.size"(%s) : (!cute.shape<"(?,6)">) -> !cute.int_tuple<"7">
//     ^
  // expected-error @below {{'cute.get_scalars' op result #0: expected i32, got f32; result #1: expected i32, got i64}}
  %a, %b = "cute.get_scalars"(%s) : (!cute.shape<"(?,6)">) -> (f32, i64)
//         ^
  %q = "cute.get_scalars"(%z) : (!cute.int_tuple<"7">) -> f32
  %c = arith.constant true
  scf.if %c {
    // expected-error @below {{'cute.size' op result #0: expected !cute.int_tuple<"?">, got !cute.int_tuple<"8">}}
    %y = "cute.size"(%s) : (!cute.shape<"(?,6)">) -> !cute.int_tuple<"8">
//       ^
  }
  // expected-error @below {{'cute.size' op result #0: expected !cute.int_tuple<"?">, got !cute.int_tuple<"9">}}
  %r = "cute.size"(%s) : (!cute.shape<"(?,6)">) -> !cute.int_tuple<"9">
//     ^
  return %n : i32
}
