// Arithmetic and comparison: every op in its canonical form, and the same by way of the generic form.
// RUN: cute-opt %s --verify-roundtrip | filecheck %s
// RUN: cute-opt %s --mlir-print-op-generic | cute-opt | filecheck %s

// CHECK-LABEL: @tuple_add(
func.func @tuple_add(%a: !cute.int_tuple<"(1,?)">, %b: !cute.int_tuple<"(2,0)">) {
  // CHECK: %{{.*}} = cute.tuple_add(%{{.*}}, %{{.*}}) : (!cute.int_tuple<"(1,?)">, !cute.int_tuple<"(2,0)">) -> !cute.int_tuple<"(3,?)">
  %r = cute.tuple_add(%a, %b) : (!cute.int_tuple<"(1,?)">, !cute.int_tuple<"(2,0)">) -> !cute.int_tuple<"(3,?)">
  return
}

// CHECK-LABEL: @tuple_sub(
func.func @tuple_sub(%a: !cute.shape<"(7,8)">, %b: !cute.shape<"(1,2,5)">) {
  // CHECK: %{{.*}} = cute.tuple_sub(%{{.*}}, %{{.*}}) : (!cute.shape<"(7,8)">, !cute.shape<"(1,2,5)">) -> !cute.shape<"(6,6,5)">
  %r = cute.tuple_sub(%a, %b) : (!cute.shape<"(7,8)">, !cute.shape<"(1,2,5)">) -> !cute.shape<"(6,6,5)">
  return
}

// CHECK-LABEL: @shape_div(
func.func @shape_div(%a: !cute.shape<"(?,6)">, %b: !cute.shape<"4">) {
  // CHECK: %{{.*}} = cute.shape_div(%{{.*}}, %{{.*}}) : (!cute.shape<"(?,6)">, !cute.shape<"4">) -> !cute.shape<"(?,?)">
  %r = cute.shape_div(%a, %b) : (!cute.shape<"(?,6)">, !cute.shape<"4">) -> !cute.shape<"(?,?)">
  return
}

// CHECK-LABEL: @ceil_div(
func.func @ceil_div(%s: !cute.shape<"(?,18)">, %t: !cute.tile<"[2:1;4:1]">) {
  // CHECK: %{{.*}} = cute.ceil_div(%{{.*}}, %{{.*}}) : (!cute.shape<"(?,18)">, !cute.tile<"[2:1;4:1]">) -> !cute.shape<"(?,5)">
  %r = cute.ceil_div(%s, %t) : (!cute.shape<"(?,18)">, !cute.tile<"[2:1;4:1]">) -> !cute.shape<"(?,5)">
  return
}

// CHECK-LABEL: @elem_less(
func.func @elem_less(%c: !cute.coord<"(?,3)">, %s: !cute.shape<"(6,?)">) {
  // CHECK: %{{.*}} = cute.elem_less(%{{.*}}, %{{.*}}) {note} : (!cute.coord<"(?,3)">, !cute.shape<"(6,?)">) -> i1
  %p = cute.elem_less(%c, %s) {note} : (!cute.coord<"(?,3)">, !cute.shape<"(6,?)">) -> i1
  return
}

// CHECK-LABEL: @equal(
func.func @equal(%a: !cute.layout<"(?,6):(6,1)">, %b: !cute.layout<"(4,6):(6,1)">) {
  // CHECK: %{{.*}} = cute.equal(%{{.*}}, %{{.*}}) : (!cute.layout<"(?,6):(6,1)">, !cute.layout<"(4,6):(6,1)">) -> i1
  %p = cute.equal(%a, %b) : (!cute.layout<"(?,6):(6,1)">, !cute.layout<"(4,6):(6,1)">) -> i1
  return
}
