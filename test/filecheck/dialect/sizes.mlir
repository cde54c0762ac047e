// Size and index: every op in its canonical form, and the same by way of the generic form.
// RUN: cute-opt %s --verify-roundtrip | filecheck %s
// RUN: cute-opt %s --mlir-print-op-generic | cute-opt | filecheck %s

// CHECK-LABEL: @size(
func.func @size(%s: !cute.shape<"(6,(2,?))">) {
  // CHECK: %{{.*}} = cute.size<[1]> (%{{.*}}) : (!cute.shape<"(6,(2,?))">) -> !cute.int_tuple<"?">
  %n = cute.size<[1]> (%s) : (!cute.shape<"(6,(2,?))">) -> !cute.int_tuple<"?">
  return
}

// CHECK-LABEL: @size_2(
func.func @size_2(%s: !cute.shape<"()">) {
  // CHECK: %{{.*}} = cute.size (%{{.*}}) : (!cute.shape<"()">) -> !cute.int_tuple<"1">
  %n = cute.size (%s) : (!cute.shape<"()">) -> !cute.int_tuple<"1">
  return
}

// CHECK-LABEL: @cosize(
func.func @cosize(%l: !cute.layout<"(5,?):(1,5)">) {
  // CHECK: %{{.*}} = cute.cosize (%{{.*}}) : (!cute.layout<"(5,?):(1,5)">) -> !cute.int_tuple<"?">
  %n = cute.cosize (%l) : (!cute.layout<"(5,?):(1,5)">) -> !cute.int_tuple<"?">
  return
}

// CHECK-LABEL: @tuple_product(
func.func @tuple_product(%s: !cute.shape<"(6,(?,2))">) {
  // CHECK: %{{.*}} = cute.tuple_product(%{{.*}}) : (!cute.shape<"(6,(?,2))">) -> !cute.shape<"?">
  %p = cute.tuple_product(%s) : (!cute.shape<"(6,(?,2))">) -> !cute.shape<"?">
  return
}

// CHECK-LABEL: @tuple_product_each(
func.func @tuple_product_each(%s: !cute.int_tuple<"(6,(?,2),())">) {
  // CHECK: %{{.*}} = cute.tuple_product_each(%{{.*}}) : (!cute.int_tuple<"(6,(?,2),())">) -> !cute.int_tuple<"(6,?,1)">
  %p = cute.tuple_product_each(%s) : (!cute.int_tuple<"(6,(?,2),())">) -> !cute.int_tuple<"(6,?,1)">
  return
}

// CHECK-LABEL: @layout_eval(
func.func @layout_eval(%c: !cute.coord<"(?,2)">, %l: !cute.layout<"(6,5):(1@0,3@1)">) {
  // CHECK: %{{.*}} = cute.layout_eval(%{{.*}}, %{{.*}}) : (!cute.coord<"(?,2)">, !cute.layout<"(6,5):(1@0,3@1)">) -> !cute.int_tuple<"(?,6)">
  %i = cute.layout_eval(%c, %l) : (!cute.coord<"(?,2)">, !cute.layout<"(6,5):(1@0,3@1)">) -> !cute.int_tuple<"(?,6)">
  return
}

// CHECK-LABEL: @crd2idx(
func.func @crd2idx(%c: !cute.coord<"(1,2)">, %s: !cute.shape<"(?,3)">) {
  // CHECK: %{{.*}} = cute.crd2idx(%{{.*}}, %{{.*}}) : (!cute.coord<"(1,2)">, !cute.shape<"(?,3)">) -> !cute.int_tuple<"?">
  %i = cute.crd2idx(%c, %s) : (!cute.coord<"(1,2)">, !cute.shape<"(?,3)">) -> !cute.int_tuple<"?">
  return
}

// CHECK-LABEL: @crd2idx_2(
func.func @crd2idx_2(%c: !cute.coord<"(1,2)">, %s: !cute.layout<"(?,3):(1,?)">) {
  // CHECK: %{{.*}} = cute.crd2idx(%{{.*}}, %{{.*}}) : (!cute.coord<"(1,2)">, !cute.layout<"(?,3):(1,?)">) -> !cute.int_tuple<"?">
  %i = cute.crd2idx(%c, %s) : (!cute.coord<"(1,2)">, !cute.layout<"(?,3):(1,?)">) -> !cute.int_tuple<"?">
  return
}

// CHECK-LABEL: @idx2crd(
func.func @idx2crd(%i: !cute.int_tuple<"?{i64}">, %s: !cute.shape<"(4,2)">) {
  // CHECK: %{{.*}} = cute.idx2crd(%{{.*}}, %{{.*}}) : (!cute.int_tuple<"?{i64}">, !cute.shape<"(4,2)">) -> !cute.coord<"(?{i64},?{i64})">
  %c = cute.idx2crd(%i, %s) : (!cute.int_tuple<"?{i64}">, !cute.shape<"(4,2)">) -> !cute.coord<"(?{i64},?{i64})">
  return
}

// CHECK-LABEL: @increment_coord(
func.func @increment_coord(%c: !cute.coord<"(?,1)">, %s: !cute.shape<"(6,3)">) {
  // CHECK: %{{.*}} = cute.increment_coord(%{{.*}}, %{{.*}}) : (!cute.coord<"(?,1)">, !cute.shape<"(6,3)">) -> !cute.coord<"(?,?)">
  %n = cute.increment_coord(%c, %s) : (!cute.coord<"(?,1)">, !cute.shape<"(6,3)">) -> !cute.coord<"(?,?)">
  return
}

// CHECK-LABEL: @append_to_rank(
func.func @append_to_rank(%l: !cute.layout<"6:2">, %e: !cute.layout<"1:0">) {
  // CHECK: %{{.*}} = cute.append_to_rank<3> (%{{.*}}, %{{.*}}) : !cute.layout<"6:2">, !cute.layout<"1:0">
  %r = cute.append_to_rank<3> (%l, %e) : !cute.layout<"6:2">, !cute.layout<"1:0">
  return
}

// CHECK-LABEL: @prepend_to_rank(
func.func @prepend_to_rank(%l: !cute.stride<"(?,2)">, %e: !cute.stride<"0">) {
  // CHECK: %{{.*}} = cute.prepend_to_rank<3> (%{{.*}}, %{{.*}}) {note} : !cute.stride<"(?,2)">, !cute.stride<"0">
  %r = cute.prepend_to_rank<3> (%l, %e) {note} : !cute.stride<"(?,2)">, !cute.stride<"0">
  return
}

// With a 64-bit extent the same size fits.
// CHECK-LABEL: func.func @size_wide
// CHECK:         cute.size (%{{.*}}) : (!cute.layout<"(?{i64},65536,65536):(1,1,1)">) -> !cute.int_tuple<"?{i64}">
func.func @size_wide(%l: !cute.layout<"(?{i64},65536,65536):(1,1,1)">) -> !cute.int_tuple<"?{i64}"> {
  %n = cute.size (%l) : (!cute.layout<"(?{i64},65536,65536):(1,1,1)">) -> !cute.int_tuple<"?{i64}">
  return %n : !cute.int_tuple<"?{i64}">
}
