// Layout algebra: every op in its canonical form, and the same by way of the generic form.
// RUN: cute-opt %s --verify-roundtrip | filecheck %s
// RUN: cute-opt %s --mlir-print-op-generic | cute-opt | filecheck %s

// CHECK-LABEL: @composition(
func.func @composition(%a: !cute.layout<"8:3">, %b: !cute.layout<"(?,2):(1,?)">) {
  // CHECK: %{{.*}} = cute.composition(%{{.*}}, %{{.*}}) : (!cute.layout<"8:3">, !cute.layout<"(?,2):(1,?)">) -> !cute.layout<"(?,2):(3,?)">
  %r = cute.composition(%a, %b) : (!cute.layout<"8:3">, !cute.layout<"(?,2):(1,?)">) -> !cute.layout<"(?,2):(3,?)">
  return
}

// CHECK-LABEL: @composition_2(
func.func @composition_2(%a: !cute.composed_layout<"S<2,3,3> o 4 o (12,8):(8,1)">, %b: !cute.tile<"[3:4;_]">) {
  // CHECK: %{{.*}} = cute.composition(%{{.*}}, %{{.*}}) : (!cute.composed_layout<"S<2,3,3> o 4 o (12,8):(8,1)">, !cute.tile<"[3:4;_]">) -> !cute.composed_layout<"S<2,3,3> o 4 o (3,8):(32,1)">
  %r = cute.composition(%a, %b) : (!cute.composed_layout<"S<2,3,3> o 4 o (12,8):(8,1)">, !cute.tile<"[3:4;_]">) -> !cute.composed_layout<"S<2,3,3> o 4 o (3,8):(32,1)">
  return
}

// CHECK-LABEL: @coalesce(
func.func @coalesce(%l: !cute.layout<"(?,1,3):(2,4,?)">) {
  // CHECK: %{{.*}} = cute.coalesce(%{{.*}}) : (!cute.layout<"(?,1,3):(2,4,?)">) -> !cute.layout<"(?,3):(2,?)">
  %r = cute.coalesce(%l) : (!cute.layout<"(?,1,3):(2,4,?)">) -> !cute.layout<"(?,3):(2,?)">
  return
}

// CHECK-LABEL: @coalesce_2(
func.func @coalesce_2(%l: !cute.layout<"(5,(4,2)):(1,(5,20))">, %p: !cute.coord<"(1,1)">) {
  // CHECK: %{{.*}} = cute.coalesce(%{{.*}}, %{{.*}}) : (!cute.layout<"(5,(4,2)):(1,(5,20))">, !cute.coord<"(1,1)">) -> !cute.layout<"(5,8):(1,5)">
  %r = cute.coalesce(%l, %p) : (!cute.layout<"(5,(4,2)):(1,(5,20))">, !cute.coord<"(1,1)">) -> !cute.layout<"(5,8):(1,5)">
  return
}

// CHECK-LABEL: @flatten(
func.func @flatten(%t: !cute.tile<"[6:1;[2:1;_]]">) {
  // CHECK: %{{.*}} = cute.flatten(%{{.*}}) {note} : (!cute.tile<"[6:1;[2:1;_]]">) -> !cute.tile<"[6:1;2:1;_]">
  %r = cute.flatten(%t) {note} : (!cute.tile<"[6:1;[2:1;_]]">) -> !cute.tile<"[6:1;2:1;_]">
  return
}

// CHECK-LABEL: @complement(
func.func @complement(%l: !cute.layout<"5:2">) {
  // CHECK: %{{.*}} = cute.complement(%{{.*}}) : (!cute.layout<"5:2">) -> !cute.layout<"(2,1):(1,10)">
  %r = cute.complement(%l) : (!cute.layout<"5:2">) -> !cute.layout<"(2,1):(1,10)">
  return
}

// CHECK-LABEL: @complement_2(
func.func @complement_2(%l: !cute.layout<"4:2">, %m: !cute.shape<"(6,?)">) {
  // CHECK: %{{.*}} = cute.complement(%{{.*}}, %{{.*}}) : (!cute.layout<"4:2">, !cute.shape<"(6,?)">) -> !cute.layout<"(2,?):(1,8)">
  %r = cute.complement(%l, %m) : (!cute.layout<"4:2">, !cute.shape<"(6,?)">) -> !cute.layout<"(2,?):(1,8)">
  return
}

// CHECK-LABEL: @group_modes(
func.func @group_modes(%l: !cute.layout<"(2,?,4):(1,2,?)">) {
  // CHECK: %{{.*}} = cute.group_modes<0, 2> (%{{.*}}) : (!cute.layout<"(2,?,4):(1,2,?)">) -> !cute.layout<"((2,?),4):((1,2),?)">
  %r = cute.group_modes<0, 2> (%l) : (!cute.layout<"(2,?,4):(1,2,?)">) -> !cute.layout<"((2,?),4):((1,2),?)">
  return
}

// CHECK-LABEL: @recast_layout(
func.func @recast_layout(%l: !cute.layout<"(?,4):(1,?)">) {
  // CHECK: %{{.*}} = cute.recast_layout<32, 16> (%{{.*}}) : !cute.layout<"(?,4):(1,?)"> -> !cute.layout<"(?,4):(1,?)">
  %r = cute.recast_layout<32, 16> (%l) : !cute.layout<"(?,4):(1,?)"> -> !cute.layout<"(?,4):(1,?)">
  return
}

// CHECK-LABEL: @slice(
func.func @slice(%l: !cute.layout<"((16,128),(?,?)):((?,1),(?,128))">, %c: !cute.coord<"((_,_),?)">) {
  // CHECK: %{{.*}} = cute.slice(%{{.*}}, %{{.*}}) : !cute.layout<"((16,128),(?,?)):((?,1),(?,128))">, !cute.coord<"((_,_),?)">
  %r = cute.slice(%l, %c) : !cute.layout<"((16,128),(?,?)):((?,1),(?,128))">, !cute.coord<"((_,_),?)">
  return
}

// CHECK-LABEL: @dice(
func.func @dice(%l: !cute.layout<"((3,2),5):((2,1),6)">, %c: !cute.coord<"((1,_),_)">) {
  // CHECK: %{{.*}} = cute.dice(%{{.*}}, %{{.*}}) {note} : !cute.layout<"((3,2),5):((2,1),6)">, !cute.coord<"((1,_),_)">
  %r = cute.dice(%l, %c) {note} : !cute.layout<"((3,2),5):((2,1),6)">, !cute.coord<"((1,_),_)">
  return
}

// CHECK-LABEL: @right_inverse(
func.func @right_inverse(%l: !cute.layout<"(4,2):(?,1)">) {
  // CHECK: %{{.*}} = cute.right_inverse(%{{.*}}) : (!cute.layout<"(4,2):(?,1)">) -> !cute.layout<"2:4">
  %r = cute.right_inverse(%l) : (!cute.layout<"(4,2):(?,1)">) -> !cute.layout<"2:4">
  return
}

// CHECK-LABEL: @left_inverse(
func.func @left_inverse(%l: !cute.layout<"(3,4):(8,2)">) {
  // CHECK: %{{.*}} = cute.left_inverse(%{{.*}}) : (!cute.layout<"(3,4):(8,2)">) -> !cute.layout<"(2,4,3):(0,3,1)">
  %r = cute.left_inverse(%l) : (!cute.layout<"(3,4):(8,2)">) -> !cute.layout<"(2,4,3):(0,3,1)">
  return
}
