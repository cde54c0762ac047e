// Each failure is one message at a place; the pieces of a split input are independent.
// RUN: not cute-opt %s --split-input-file 2>&1 >/dev/null | filecheck %s
// RUN: cute-opt %s --split-input-file --verify-diagnostics | diff - /dev/null

// CHECK: errors.mlir:[[# @LINE + 4]]:3: error: 'func.return' op
// CHECK-NEXT: return %a : i32
// CHECK-NEXT: {{^}}  ^~~~~~{{$}}
func.func @type(%a: i32) -> i64 {
  return %a : i32 // expected-error {{'func.return' op}}
}
// CHECK: errors.mlir:[[# @LINE + 2]]:3: error: 'func.return' op
func.func @and_the_next_function_too(%a: i32) -> i64 {
  return %a : i32 // expected-error {{}}
}

// -----

func.func @op(%a: i32) {
  // CHECK: errors.mlir:[[# @LINE + 4]]:8: error: unregistered operation 'arith.mulli'; did you mean 'arith.muli'?
  // CHECK-NEXT: %0 = arith.mulli
  // CHECK-NEXT: {{^}}       ^~~~~~~~~~~{{$}}
  // expected-error@below {{did you mean}}
  %0 = arith.mulli %a, %a : i32
  return
}

// -----

func.func @dialect(%a: i32) {
  // CHECK: errors.mlir:[[# @LINE + 2]]:3: error: operation 'cutlass.go' belongs to the unregistered dialect 'cutlass'
  // expected-error@+1 {{unregistered dialect 'cutlass'}}
  "cutlass.go"(%a) : (i32) -> ()
  return
}

// -----

// CHECK: errors.mlir:[[# @LINE + 2]]:18: error: type '!foo.bar' belongs to the unregistered dialect 'foo'
// expected-error@+1 {{unregistered dialect 'foo'}}
func.func @t(%a: !foo.bar<"x">) {
  return
}

// -----

func.func @undefined(%a: i32) {
  // CHECK: errors.mlir:[[# @LINE + 2]]:23: error: use of undeclared SSA value name '%x'
  // expected-error@+1 {{undeclared SSA value name '%x'}}
  %0 = arith.addi %a, %x : i32
  return
}
func.func @where_it_is_defined(%x: i32) {
  return
}

// -----

func.func @order(%a: i32) {
  // CHECK: errors.mlir:[[# @LINE + 2]]:8: error: 'arith.addi' op operand #0 does not dominate this use
  // expected-error@+1 {{does not dominate}}
  %0 = arith.addi %1, %a : i32
  %1 = arith.addi %a, %a : i32
  return
}

// -----

// expected-note@+1 {{previously defined here}}
func.func @twice(%a: i32) {
  // CHECK: errors.mlir:[[# @LINE + 2]]:3: error: redefinition of SSA value '%a'
  // expected-error@+1 {{redefinition}}
  %a = arith.addi %a, %a : i32
  return
}

// -----

func.func @blocks(%c: i1, %a: i32) -> i32 {
  cf.cond_br %c, ^left, ^right
^left:
  %x = arith.addi %a, %a : i32
  cf.br ^join
^right:
  cf.br ^join
^join:
  // CHECK: errors.mlir:[[# @LINE + 2]]:3: error: 'func.return' op operand #0 does not dominate this use
  // expected-error@+1 {{does not dominate}}
  return %x : i32
}

// -----

func.func @no_size(%s: !cute.shape<"(6,2)">) {
  // CHECK: errors.mlir:[[# @LINE + 2]]:40: error: dense array element type must have a size, got i0
  // expected-error@+1 {{must have a size}}
  %r = "cute.select"(%s) <{mode = array<i0: 0>}> : (!cute.shape<"(6,2)">) -> !cute.shape<"(6)">
  return
}

// -----

func.func @too_wide(%s: !cute.shape<"(6,2)">) {
  // CHECK: errors.mlir:[[# @LINE + 2]]:40: error: dense array element type must have at most 64 bits
  // expected-error@+1 {{at most 64 bits}}
  %r = "cute.select"(%s) <{mode = array<i128: 0>}> : (!cute.shape<"(6,2)">) -> !cute.shape<"(6)">
  return
}
