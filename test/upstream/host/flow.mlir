// Cute values pass through calls, loops and branches, and the algebra runs on run-time numbers.

// REQUIRES: mlir, mlir-runner

// RUN: cute-opt %s --pipeline=host > %t.mlir
// RUN: mlir-runner -e main -entry-point-result=void %t.mlir > %t.runner
// RUN: FileCheck %s --strict-whitespace --match-full-lines < %t.runner
// RUN: cute-run --host %s | diff %t.runner -
// RUN: cute-opt %s --cute-expand-ops --canonicalize --cute-to-base --base-prepare --one-shot-convert-to-llvm \
// RUN:   | mlir-runner -e main -entry-point-result=void | diff %t.runner -

// Run a function other than @main.
// RUN: cute-run %s --host=other | FileCheck %s --check-prefix=OTHER
// OTHER: 144

//      CHECK:(12,8):(8,1)
// CHECK-NEXT:((3,2),(4,4)):((8,4),(24,1))
// CHECK-NEXT:59
// CHECK-NEXT:(11,7)
// CHECK-NEXT:96
// CHECK-NEXT:96
// CHECK-NEXT:(1,2)
// CHECK-NEXT:(2,2)
// CHECK-NEXT:(0,3)
// CHECK-NEXT:(1,3)
// CHECK-NEXT:(1,3)
// CHECK-NEXT:0
// CHECK-NEXT:1
// CHECK-NEXT:3
// CHECK-NEXT:3
// CHECK-NEXT:8
// CHECK-NEXT:9
//  CHECK-NOT:{{.+}}

!rows = !cute.layout<"(?,8):(8,1)">
!tiled = !cute.layout<"((3,2),(?,4)):((8,4),(24,1))">

func.func @matrix(%n: i32) -> !rows {
  %s = cute.make_shape(%n) : (i32) -> !cute.shape<"(?,8)">
  %o = cute.static : !cute.int_tuple<"(1,0)">
  %l = cute.make_ordered_layout(%s, %o) : (!cute.shape<"(?,8)">, !cute.int_tuple<"(1,0)">) -> !rows
  return %l : !rows
}

func.func @tiles(%l: !rows) -> (!tiled, !cute.int_tuple<"?">) {
  cute.print(%l) : !rows
  %t = cute.static : !cute.tile<"[3:1;2:4]">
  %d = cute.zipped_divide(%l, %t) : (!rows, !cute.tile<"[3:1;2:4]">) -> !tiled
  %z = cute.size (%d) : (!tiled) -> !cute.int_tuple<"?">
  return %d, %z : !tiled, !cute.int_tuple<"?">
}

func.func @larger(%a: !cute.int_tuple<"?">, %b: !cute.int_tuple<"?">) -> !cute.int_tuple<"?"> {
  %ab = cute.elem_less(%a, %b) : (!cute.int_tuple<"?">, !cute.int_tuple<"?">) -> i1
  %r = scf.if %ab -> (!cute.int_tuple<"?">) {
    scf.yield %b : !cute.int_tuple<"?">
  } else {
    scf.yield %a : !cute.int_tuple<"?">
  }
  return %r : !cute.int_tuple<"?">
}

func.func @main() {
  %n = arith.constant 12 : i32
  %l = func.call @matrix(%n) : (i32) -> !rows
  %d, %z = func.call @tiles(%l) : (!rows) -> (!tiled, !cute.int_tuple<"?">)
  cute.print(%d) : !tiled

  // Print the offset of (7,3), and the coordinate of the last element in column-major order.
  %i = arith.constant 7 : i32
  %j = arith.constant 3 : i32
  %c = cute.make_coord(%i, %j) : (i32, i32) -> !cute.coord<"(?,?)">
  %at = cute.layout_eval(%c, %l) : (!cute.coord<"(?,?)">, !rows) -> !cute.int_tuple<"?">
  cute.print(%at) : !cute.int_tuple<"?">
  %last = arith.constant 95 : i32
  %k = cute.make_int_tuple(%last) : (i32) -> !cute.int_tuple<"?">
  %shape = cute.get_shape(%l) : !rows -> !cute.shape<"(?,8)">
  %kc = cute.idx2crd(%k, %shape) : (!cute.int_tuple<"?">, !cute.shape<"(?,8)">) -> !cute.coord<"(?,?)">
  cute.print(%kc) : !cute.coord<"(?,?)">
  cute.print(%z) : !cute.int_tuple<"?">
  %max = func.call @larger(%at, %z) : (!cute.int_tuple<"?">, !cute.int_tuple<"?">) -> !cute.int_tuple<"?">
  cute.print(%max) : !cute.int_tuple<"?">

  // Increment a coordinate in each iteration of a loop.
  %lo = arith.constant 0 : index
  %hi = arith.constant 4 : index
  %by = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %three = arith.constant 3 : i32
  %start = cute.make_coord(%one, %two) : (i32, i32) -> !cute.coord<"(?,?)">
  %box = cute.make_shape(%three) : (i32) -> !cute.shape<"(?,5)">
  %end = scf.for %x = %lo to %hi step %by iter_args(%p = %start) -> (!cute.coord<"(?,?)">) {
    cute.print(%p) : !cute.coord<"(?,?)">
    %q = cute.increment_coord(%p, %box) : (!cute.coord<"(?,?)">, !cute.shape<"(?,5)">) -> !cute.coord<"(?,?)">
    %first = arith.cmpi eq, %x, %hi : index
    %next = scf.if %first -> (!cute.coord<"(?,?)">) {
      scf.yield %p : !cute.coord<"(?,?)">
    } else {
      scf.yield %q : !cute.coord<"(?,?)">
    }
    scf.yield %next : !cute.coord<"(?,?)">
  }
  %stop = cute.make_coord(%one, %three) : (i32, i32) -> !cute.coord<"(?,?)">
  cute.print(%stop) : !cute.coord<"(?,?)">

  // A while loop adds 0, 1 and 2; branches between blocks follow.
  %zero32 = arith.constant 0 : i32
  %zero = cute.make_int_tuple(%zero32) : (i32) -> !cute.int_tuple<"?">
  %sum, %count = scf.while (%s = %zero, %m = %zero32) : (!cute.int_tuple<"?">, i32) -> (!cute.int_tuple<"?">, i32) {
    %more = arith.cmpi slt, %m, %three : i32
    scf.condition(%more) %s, %m : !cute.int_tuple<"?">, i32
  } do {
  ^bb0(%s: !cute.int_tuple<"?">, %m: i32):
    %mt = cute.make_int_tuple(%m) : (i32) -> !cute.int_tuple<"?">
    %added = cute.tuple_add(%s, %mt) : (!cute.int_tuple<"?">, !cute.int_tuple<"?">) -> !cute.int_tuple<"?">
    cute.print(%added) : !cute.int_tuple<"?">
    %m1 = arith.addi %m, %one : i32
    scf.yield %added, %m1 : !cute.int_tuple<"?">, i32
  }
  cute.print(%sum) : !cute.int_tuple<"?">
  %eight = arith.constant 8 : i32
  %e = cute.make_int_tuple(%eight) : (i32) -> !cute.int_tuple<"?">
  cf.br ^next(%e : !cute.int_tuple<"?">)
^next(%v: !cute.int_tuple<"?">):
  cute.print(%v) : !cute.int_tuple<"?">
  %unit = cute.static : !cute.int_tuple<"1">
  %v1 = cute.tuple_add(%v, %unit) : (!cute.int_tuple<"?">, !cute.int_tuple<"1">) -> !cute.int_tuple<"?">
  %limit = cute.static : !cute.int_tuple<"9">
  %again = cute.elem_less(%v1, %limit) : (!cute.int_tuple<"?">, !cute.int_tuple<"9">) -> i1
  cf.cond_br %again, ^next(%v1 : !cute.int_tuple<"?">), ^done(%v1 : !cute.int_tuple<"?">)
^done(%r: !cute.int_tuple<"?">):
  cute.print(%r) : !cute.int_tuple<"?">
  return
}

func.func @other() {
  %n = arith.constant 18 : i32
  %l = func.call @matrix(%n) : (i32) -> !rows
  %z = cute.cosize (%l) : (!rows) -> !cute.int_tuple<"?">
  cute.print(%z) : !cute.int_tuple<"?">
  return
}
