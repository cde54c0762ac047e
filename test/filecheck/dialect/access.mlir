// Accessors: every op in its canonical form, and the same by way of the generic form.
// RUN: cute-opt %s --verify-roundtrip | filecheck %s
// RUN: cute-opt %s --mlir-print-op-generic | cute-opt | filecheck %s

// CHECK-LABEL: @get_shape(
func.func @get_shape(%l: !cute.layout<"(?,(2,5)):(10,(5,1))">) {
  // CHECK: %{{.*}} = cute.get_shape(%{{.*}}) : !cute.layout<"(?,(2,5)):(10,(5,1))"> -> !cute.shape<"(?,(2,5))">
  %s = cute.get_shape(%l) : !cute.layout<"(?,(2,5)):(10,(5,1))"> -> !cute.shape<"(?,(2,5))">
  return
}

// CHECK-LABEL: @get_stride(
func.func @get_stride(%l: !cute.layout<"(6,5):(1@1,1@0)">) {
  // CHECK: %{{.*}} = cute.get_stride(%{{.*}}) {note = 1 : i32} : <"(6,5):(1@1,1@0)"> -> !cute.stride<"(1@1,1@0)">
  %d = cute.get_stride(%l) {note = 1 : i32} : <"(6,5):(1@1,1@0)"> -> !cute.stride<"(1@1,1@0)">
  return
}

// CHECK-LABEL: @composed_get_inner(
func.func @composed_get_inner(%c: !cute.composed_layout<"S<2,3,3> o 5 o (8,8):(1,8)">) {
  // CHECK: %{{.*}} = cute.composed_get_inner(%{{.*}}) : <"S<2,3,3> o 5 o (8,8):(1,8)"> -> !cute.swizzle<"S<2,3,3>">
  %a = cute.composed_get_inner(%c) : <"S<2,3,3> o 5 o (8,8):(1,8)"> -> !cute.swizzle<"S<2,3,3>">
  return
}

// CHECK-LABEL: @composed_get_inner_2(
func.func @composed_get_inner_2(%c: !cute.composed_layout<"(4,?):(1,4) o 5 o 8:1">) {
  // CHECK: %{{.*}} = cute.composed_get_inner(%{{.*}}) : <"(4,?):(1,4) o 5 o 8:1"> -> !cute.layout<"(4,?):(1,4)">
  %a = cute.composed_get_inner(%c) : <"(4,?):(1,4) o 5 o 8:1"> -> !cute.layout<"(4,?):(1,4)">
  return
}

// CHECK-LABEL: @composed_get_offset(
func.func @composed_get_offset(%c: !cute.composed_layout<"S<2,3,3> o ? o (8,8):(1,8)">) {
  // CHECK: %{{.*}} = cute.composed_get_offset(%{{.*}}) : <"S<2,3,3> o ? o (8,8):(1,8)"> -> !cute.int_tuple<"?">
  %o = cute.composed_get_offset(%c) : <"S<2,3,3> o ? o (8,8):(1,8)"> -> !cute.int_tuple<"?">
  return
}

// CHECK-LABEL: @composed_get_outer(
func.func @composed_get_outer(%c: !cute.composed_layout<"S<2,3,3> o 5 o (8,?):(1,8)">) {
  // CHECK: %{{.*}} = cute.composed_get_outer(%{{.*}}) : <"S<2,3,3> o 5 o (8,?):(1,8)"> -> <"(8,?):(1,8)">
  %b = cute.composed_get_outer(%c) : <"S<2,3,3> o 5 o (8,?):(1,8)"> -> <"(8,?):(1,8)">
  return
}

// CHECK-LABEL: @get_leaves(
func.func @get_leaves(%s: !cute.shape<"(6,(?,2))">) {
  // CHECK: %{{.*}}:3 = cute.get_leaves(%{{.*}}) : !cute.shape<"(6,(?,2))">
  %a, %b, %c = cute.get_leaves(%s) : !cute.shape<"(6,(?,2))">
  return
}

// CHECK-LABEL: @get_leaves_2(
func.func @get_leaves_2(%s: !cute.coord<"_">) {
  // CHECK: %{{.*}} = cute.get_leaves(%{{.*}}) : !cute.coord<"_">
  %a = cute.get_leaves(%s) : !cute.coord<"_">
  return
}

// CHECK-LABEL: @get_scalars(
func.func @get_scalars(%l: !cute.layout<"(?,6):(6,?{i64})">) {
  // CHECK: %{{.*}}:2 = cute.get_scalars<{only_dynamic}> (%{{.*}}) : !cute.layout<"(?,6):(6,?{i64})">
  %v, %v_1 = cute.get_scalars<{only_dynamic}> (%l) : !cute.layout<"(?,6):(6,?{i64})">
  return
}

// CHECK-LABEL: @get_scalars_2(
func.func @get_scalars_2(%s: !cute.swizzle<"S<2,3,3>">) {
  // CHECK: %{{.*}}:3 = cute.get_scalars (%{{.*}}) {note} : !cute.swizzle<"S<2,3,3>">
  %v, %v_1, %v_2 = cute.get_scalars (%s) {note} : !cute.swizzle<"S<2,3,3>">
  return
}

// CHECK-LABEL: @get(
func.func @get(%l: !cute.layout<"(6,(2,?)):(10,(5,1))">) {
  // CHECK: %{{.*}} = cute.get<[1, 0]> (%{{.*}}) : !cute.layout<"(6,(2,?)):(10,(5,1))"> -> !cute.layout<"2:5">
  %r = cute.get<[1, 0]> (%l) : !cute.layout<"(6,(2,?)):(10,(5,1))"> -> !cute.layout<"2:5">
  return
}

// CHECK-LABEL: @get_2(
func.func @get_2(%l: !cute.shape<"(6,5)">) {
  // CHECK: %{{.*}} = cute.get (%{{.*}}) : !cute.shape<"(6,5)"> -> !cute.shape<"(6,5)">
  %r = cute.get (%l) : !cute.shape<"(6,5)"> -> !cute.shape<"(6,5)">
  return
}

// CHECK-LABEL: @select(
func.func @select(%l: !cute.layout<"(6,5,2):(10,2,1)">) {
  // CHECK: %{{.*}} = cute.select<[2, 0]> (%{{.*}}) : !cute.layout<"(6,5,2):(10,2,1)"> -> !cute.layout<"(2,6):(1,10)">
  %r = cute.select<[2, 0]> (%l) : !cute.layout<"(6,5,2):(10,2,1)"> -> !cute.layout<"(2,6):(1,10)">
  return
}

// CHECK-LABEL: @select_2(
func.func @select_2(%s: !cute.shape<"(6,5)">) {
  // CHECK: %{{.*}} = cute.select<[]> (%{{.*}}) : !cute.shape<"(6,5)"> -> !cute.shape<"()">
  %r = cute.select<[]> (%s) : !cute.shape<"(6,5)"> -> !cute.shape<"()">
  return
}

// CHECK-LABEL: @get_layouts_from_tile(
func.func @get_layouts_from_tile(%t: !cute.tile<"[6:1;_;[(2,?):(?,1);_]]">) {
  // CHECK: %{{.*}}:2 = cute.get_layouts_from_tile(%{{.*}}) : <"[6:1;_;[(2,?):(?,1);_]]">
  %a, %b = cute.get_layouts_from_tile(%t) : <"[6:1;_;[(2,?):(?,1);_]]">
  return
}

// CHECK-LABEL: @to_int_tuple(
func.func @to_int_tuple(%s: !cute.shape<"(6,(?,2))">) {
  // CHECK: %{{.*}} = cute.to_int_tuple(%{{.*}}) : !cute.shape<"(6,(?,2))"> -> !cute.int_tuple<"(6,(?,2))">
  %i = cute.to_int_tuple(%s) : !cute.shape<"(6,(?,2))"> -> !cute.int_tuple<"(6,(?,2))">
  return
}

// CHECK-LABEL: @to_shape(
func.func @to_shape(%s: !cute.int_tuple<"(6,?{i64})">) {
  // CHECK: %{{.*}} = cute.to_shape(%{{.*}}) : !cute.int_tuple<"(6,?{i64})"> -> !cute.shape<"(6,?{i64})">
  %i = cute.to_shape(%s) : !cute.int_tuple<"(6,?{i64})"> -> !cute.shape<"(6,?{i64})">
  return
}

// CHECK-LABEL: @to_stride(
func.func @to_stride(%s: !cute.int_tuple<"(6,?{i64})">) {
  // CHECK: %{{.*}} = cute.to_stride(%{{.*}}) : !cute.int_tuple<"(6,?{i64})"> -> !cute.stride<"(6,?{i64})">
  %i = cute.to_stride(%s) : !cute.int_tuple<"(6,?{i64})"> -> !cute.stride<"(6,?{i64})">
  return
}

// CHECK-LABEL: @to_coord(
func.func @to_coord(%s: !cute.int_tuple<"(6,?{i64})">) {
  // CHECK: %{{.*}} = cute.to_coord(%{{.*}}) : !cute.int_tuple<"(6,?{i64})"> -> !cute.coord<"(6,?{i64})">
  %i = cute.to_coord(%s) : !cute.int_tuple<"(6,?{i64})"> -> !cute.coord<"(6,?{i64})">
  return
}
