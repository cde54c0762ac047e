// A host function prints each of the eight kinds of values, with leaves of both widths. It runs in upstream's
// mlir-runner and in this process.

// REQUIRES: mlir, mlir-runner

// RUN: cute-opt %s --pipeline=host > %t.mlir
// RUN: mlir-runner -e main -entry-point-result=void %t.mlir > %t.runner
// RUN: FileCheck %s --strict-whitespace --match-full-lines < %t.runner
// RUN: cute-run %s --host > %t.process
// RUN: diff %t.runner %t.process

// The output does not depend on the order of the passes before cute-to-base.
// RUN: cute-opt %s --cute-expand-ops --cute-to-base --base-prepare --one-shot-convert-to-llvm \
// RUN:   | mlir-runner -e main -entry-point-result=void | diff %t.runner -
// RUN: cute-opt %s --canonicalize --cute-expand-ops --cse --cute-fold-static --cute-to-base --one-shot-convert-to-llvm \
// RUN:   | mlir-runner -e main -entry-point-result=void | diff %t.runner -

//      CHECK:(7,(5000000000,4),-3)
// CHECK-NEXT:7
// CHECK-NEXT:()
// CHECK-NEXT:-9
// CHECK-NEXT:(7,(8,5000000000))
// CHECK-NEXT:(1,(-3,-5000000000))
// CHECK-NEXT:(7@0,1@1,5000000000@2)
// CHECK-NEXT:((7,_),_)
// CHECK-NEXT:(6,5):(5,1)
// CHECK-NEXT:(7,(8,5000000000)):(1,(-3,-5000000000))
// CHECK-NEXT:[(7,3):(1,-3);_;[4:5000000000;_]]
// CHECK-NEXT:S<2,3,3>
// CHECK-NEXT:S<2,3,3> o 7 o (-3,3):(1,5000000000)
// CHECK-NEXT:(4,7):(1,-3) o 5 o (8,7):(1,8)
//  CHECK-NOT:{{.+}}
func.func @main() {
  %n = arith.constant 7 : i32
  %m = arith.constant 5000000000 : i64
  %neg = arith.constant -3 : i32
  %minus = arith.constant -5000000000 : i64
  %small = arith.constant -9 : i8

  %a = cute.make_int_tuple(%n, %m, %neg) : (i32, i64, i32) -> !cute.int_tuple<"(?,(?{i64},4),?)">
  cute.print(%a) : !cute.int_tuple<"(?,(?{i64},4),?)">
  %a1 = cute.make_int_tuple(%n) : (i32) -> !cute.int_tuple<"?">
  cute.print(%a1) : !cute.int_tuple<"?">
  %a2 = cute.static : !cute.int_tuple<"()">
  cute.print(%a2) : !cute.int_tuple<"()">
  %wide = arith.extsi %small : i8 to i32
  %a3 = cute.make_int_tuple(%wide) : (i32) -> !cute.int_tuple<"?">
  cute.print(%a3) : !cute.int_tuple<"?">

  %s = cute.make_shape(%n, %m) : (i32, i64) -> !cute.shape<"(?,(8,?{i64}))">
  cute.print(%s) : !cute.shape<"(?,(8,?{i64}))">
  %d = cute.make_stride(%neg, %minus) : (i32, i64) -> !cute.stride<"(1,(?,?{i64}))">
  cute.print(%d) : !cute.stride<"(1,(?,?{i64}))">
  %d1 = cute.make_stride(%n, %m) : (i32, i64) -> !cute.stride<"(?@0,1@1,?{i64}@2)">
  cute.print(%d1) : !cute.stride<"(?@0,1@1,?{i64}@2)">
  %c = cute.make_coord(%n) : (i32) -> !cute.coord<"((?,_),_)">
  cute.print(%c) : !cute.coord<"((?,_),_)">

  %l0 = cute.static : !cute.layout<"(6,5):(5,1)">
  cute.print(%l0) : !cute.layout<"(6,5):(5,1)">
  %l = cute.make_layout(%s, %d)
    : (!cute.shape<"(?,(8,?{i64}))">, !cute.stride<"(1,(?,?{i64}))">) -> !cute.layout<"(?,(8,?{i64})):(1,(?,?{i64}))">
  cute.print(%l) : !cute.layout<"(?,(8,?{i64})):(1,(?,?{i64}))">
  %t = cute.make_tile(%n, %neg, %m) : (i32, i32, i64) -> !cute.tile<"[(?,3):(1,?);_;[4:?{i64};_]]">
  cute.print(%t) : !cute.tile<"[(?,3):(1,?);_;[4:?{i64};_]]">
  %w = cute.static : !cute.swizzle<"S<2,3,3>">
  cute.print(%w) : !cute.swizzle<"S<2,3,3>">

  // A composed layout is stored as B, offset, A and printed as A, offset, B.
  %bs = cute.make_shape(%neg) : (i32) -> !cute.shape<"(?,3)">
  %bd = cute.make_stride(%m) : (i64) -> !cute.stride<"(1,?{i64})">
  %b = cute.make_layout(%bs, %bd) : (!cute.shape<"(?,3)">, !cute.stride<"(1,?{i64})">) -> !cute.layout<"(?,3):(1,?{i64})">
  %ab = cute.make_composed_layout(%w, %a1, %b)
    : (!cute.swizzle<"S<2,3,3>">, !cute.int_tuple<"?">, !cute.layout<"(?,3):(1,?{i64})">)
      -> !cute.composed_layout<"S<2,3,3> o ? o (?,3):(1,?{i64})">
  cute.print(%ab) : !cute.composed_layout<"S<2,3,3> o ? o (?,3):(1,?{i64})">
  %xs = cute.make_shape(%n) : (i32) -> !cute.shape<"(4,?)">
  %xd = cute.make_stride(%neg) : (i32) -> !cute.stride<"(1,?)">
  %x = cute.make_layout(%xs, %xd) : (!cute.shape<"(4,?)">, !cute.stride<"(1,?)">) -> !cute.layout<"(4,?):(1,?)">
  %ys = cute.make_shape(%n) : (i32) -> !cute.shape<"(8,?)">
  %yd = cute.static : !cute.stride<"(1,8)">
  %y = cute.make_layout(%ys, %yd) : (!cute.shape<"(8,?)">, !cute.stride<"(1,8)">) -> !cute.layout<"(8,?):(1,8)">
  %five = cute.static : !cute.int_tuple<"5">
  %xy = cute.make_composed_layout(%x, %five, %y)
    : (!cute.layout<"(4,?):(1,?)">, !cute.int_tuple<"5">, !cute.layout<"(8,?):(1,8)">)
      -> !cute.composed_layout<"(4,?):(1,?) o 5 o (8,?):(1,8)">
  cute.print(%xy) : !cute.composed_layout<"(4,?):(1,?) o 5 o (8,?):(1,8)">
  return
}
