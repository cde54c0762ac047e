// RUN: cute-opt %s --cute-expand-ops --cute-to-base --canonicalize --cse | FileCheck %s
// Two uses of one SSA value are equal: a mode whose stride is what the mode before it spans is one with it.

// CHECK-LABEL: func.func @column_major
// CHECK-SAME: (%{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32)
// CHECK-NEXT: return %[[I]] : i32
func.func @column_major(%m: i32, %n: i32, %i: i32) -> !cute.int_tuple<"?"> {
  %d = cute.make_stride(%m) : (i32) -> !cute.stride<"(1,?)">
  %s = cute.make_shape(%m, %n) : (i32, i32) -> !cute.shape<"(?,?)">
  %l = cute.make_layout(%s, %d) : (!cute.shape<"(?,?)">, !cute.stride<"(1,?)">) -> !cute.layout<"(?,?):(1,?)">
  %c = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
  %x = cute.crd2idx(%c, %l) : (!cute.coord<"?">, !cute.layout<"(?,?):(1,?)">) -> !cute.int_tuple<"?">
  return %x : !cute.int_tuple<"?">
}

// Another value, even if it may be equal: quotient and remainder stay.
// CHECK-LABEL: func.func @padded
// CHECK: arith.divsi
// CHECK: arith.remsi
func.func @padded(%m: i32, %n: i32, %ld: i32, %i: i32) -> !cute.int_tuple<"?"> {
  %d = cute.make_stride(%ld) : (i32) -> !cute.stride<"(1,?)">
  %s = cute.make_shape(%m, %n) : (i32, i32) -> !cute.shape<"(?,?)">
  %l = cute.make_layout(%s, %d) : (!cute.shape<"(?,?)">, !cute.stride<"(1,?)">) -> !cute.layout<"(?,?):(1,?)">
  %c = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
  %x = cute.crd2idx(%c, %l) : (!cute.coord<"?">, !cute.layout<"(?,?):(1,?)">) -> !cute.int_tuple<"?">
  return %x : !cute.int_tuple<"?">
}
