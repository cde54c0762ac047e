func.func @for(%lo: index, %hi: index, %s: index, %x: f32) -> f32 {
  %0 = scf.for %i = %lo to %hi step %s iter_args(%acc = %x) -> (f32) {
    %1 = arith.addf %acc, %acc : f32
    scf.yield %1 : f32
  }
  scf.for %i = %lo to %hi step %s {
  }
  return %0 : f32
}

// -----
func.func @for_typed(%lo: i32, %hi: i32, %s: i32, %x: f32, %y: i64) {
  %0:2 = scf.for %i = %lo to %hi step %s iter_args(%a = %x, %b = %y) -> (f32, i64) : i32 {
    scf.yield %a, %b : f32, i64
  }
  scf.for %i = %lo to %hi step %s : i32 {
    %1 = arith.addi %i, %i : i32
  } {loop.unroll = 4 : i64}
  scf.for unsigned %i = %lo to %hi step %s : i32 {
  }
  return
}

// -----
func.func @if(%p: i1, %a: i32) -> i32 {
  scf.if %p {
    %1 = arith.addi %a, %a : i32
  }
  scf.if %p {
    %1 = arith.addi %a, %a : i32
  } else {
    %1 = arith.muli %a, %a : i32
  }
  %0 = scf.if %p -> (i32) {
    scf.yield %a : i32
  } else {
    %1 = arith.muli %a, %a : i32
    scf.yield %1 : i32
  }
  %2:2 = scf.if %p -> (i32, i1) {
    scf.yield %a, %p : i32, i1
  } else {
    scf.yield %0, %p : i32, i1
  }
  return %0 : i32
}

// -----
func.func @while(%a: i32, %p: i1) -> i32 {
  %0 = scf.while (%x = %a) : (i32) -> i32 {
    %1 = arith.cmpi slt, %x, %a : i32
    scf.condition(%1) %x : i32
  } do {
  ^bb0(%y: i32):
    scf.yield %y : i32
  }
  scf.while : () -> () {
    scf.condition(%p)
  } do {
    scf.yield
  }
  %2:2 = scf.while (%x = %a, %y = %p) : (i32, i1) -> (i32, i32) {
    scf.condition(%y) %x, %x : i32, i32
  } do {
  ^bb0(%u: i32, %v: i32):
    %t = arith.cmpi eq, %u, %v : i32
    scf.yield %u, %t : i32, i1
  } attributes {tag}
  return %0 : i32
}

// -----
func.func @execute_region(%p: i1, %a: i32) -> i32 {
  %0 = scf.execute_region -> i32 {
    cf.cond_br %p, ^bb1, ^bb2
  ^bb1:
    scf.yield %a : i32
  ^bb2:
    %c = arith.constant 1 : i32
    scf.yield %c : i32
  }
  scf.execute_region {
    scf.yield
  }
  %1:2 = scf.execute_region -> (i32, i32) no_inline {
    scf.yield %a, %a : i32, i32
  }
  return %0 : i32
}

// -----
func.func @index_switch(%i: index) -> i32 {
  %0 = scf.index_switch %i -> i32
  case 2 {
    %1 = arith.constant 10 : i32
    scf.yield %1 : i32
  }
  case 5 {
    %2 = arith.constant 20 : i32
    scf.yield %2 : i32
  }
  default {
    %3 = arith.constant 30 : i32
    scf.yield %3 : i32
  }
  scf.index_switch %i
  case 1 {
    scf.yield
  }
  default {
  }
  return %0 : i32
}
