// Constructors: every op in its canonical form, and the same by way of the generic form.
// RUN: cute-opt %s --verify-roundtrip | filecheck %s
// RUN: cute-opt %s --mlir-print-op-generic | cute-opt | filecheck %s

// CHECK-LABEL: @static(
func.func @static() {
  // CHECK: %{{.*}} = cute.static : !cute.layout<"(6,(2,4)):(8,(4,1))">
  %l = cute.static : !cute.layout<"(6,(2,4)):(8,(4,1))">
  return
}

// CHECK-LABEL: @static_2(
func.func @static_2() {
  // CHECK: %{{.*}} = cute.static {name = "k"} : !cute.coord<"(_,3)">
  %k = cute.static {name = "k"} : !cute.coord<"(_,3)">
  return
}

// CHECK-LABEL: @static_3(
func.func @static_3() {
  // CHECK: %{{.*}} = cute.static : !cute.swizzle<"S<2,3,3>">
  %w = cute.static : !cute.swizzle<"S<2,3,3>">
  return
}

// CHECK-LABEL: @make_int_tuple(
func.func @make_int_tuple() {
  // CHECK: %{{.*}} = cute.make_int_tuple() : () -> !cute.int_tuple<"(6,5)">
  %i = cute.make_int_tuple() : () -> !cute.int_tuple<"(6,5)">
  return
}

// CHECK-LABEL: @make_shape(
func.func @make_shape(%m: i32, %n: i64) {
  // CHECK: %{{.*}} = cute.make_shape(%{{.*}}, %{{.*}}) : (i32, i64) -> !cute.shape<"(?,(8,?{i64}))">
  %s = cute.make_shape(%m, %n) : (i32, i64) -> !cute.shape<"(?,(8,?{i64}))">
  return
}

// CHECK-LABEL: @make_shape_2(
func.func @make_shape_2(%m: !cute.int_tuple<"?">, %n: !cute.int_tuple<"7">) {
  // CHECK: %{{.*}} = cute.make_shape(%{{.*}}, %{{.*}}) : (!cute.int_tuple<"?">, !cute.int_tuple<"7">) -> !cute.shape<"(?,(8,?{i64}))">
  %s = cute.make_shape(%m, %n) : (!cute.int_tuple<"?">, !cute.int_tuple<"7">) -> !cute.shape<"(?,(8,?{i64}))">
  return
}

// CHECK-LABEL: @make_shape_3(
func.func @make_shape_3(%m: !cute.i32<divby 16>) {
  // CHECK: %{{.*}} = cute.make_shape(%{{.*}}) : (!cute.i32<divby 16>) -> !cute.shape<"(?{div=8},8)">
  %s = cute.make_shape(%m) : (!cute.i32<divby 16>) -> !cute.shape<"(?{div=8},8)">
  return
}

// CHECK-LABEL: @make_shape_4(
func.func @make_shape_4(%m: !cute.i64<divby 16>) {
  // CHECK: %{{.*}} = cute.make_shape(%{{.*}}) : (!cute.i64<divby 16>) -> !cute.shape<"?{i64 div=16}">
  %s = cute.make_shape(%m) : (!cute.i64<divby 16>) -> !cute.shape<"?{i64 div=16}">
  return
}

// CHECK-LABEL: @make_stride(
func.func @make_stride(%ld: i32) {
  // CHECK: %{{.*}} = cute.make_stride(%{{.*}}) : (i32) -> !cute.stride<"(?@0,1@1)">
  %d = cute.make_stride(%ld) : (i32) -> !cute.stride<"(?@0,1@1)">
  return
}

// CHECK-LABEL: @make_coord(
func.func @make_coord(%i: i32) {
  // CHECK: %{{.*}} = cute.make_coord(%{{.*}}) {note} : (i32) -> !cute.coord<"((_,_),?)">
  %c = cute.make_coord(%i) {note} : (i32) -> !cute.coord<"((_,_),?)">
  return
}

// CHECK-LABEL: @make_tile(
func.func @make_tile(%a: i32, %b: i32) {
  // CHECK: %{{.*}} = cute.make_tile(%{{.*}}, %{{.*}}) : (i32, i32) -> !cute.tile<"[(?,4):(1,?);_]">
  %t = cute.make_tile(%a, %b) : (i32, i32) -> !cute.tile<"[(?,4):(1,?);_]">
  return
}

// CHECK-LABEL: @make_layout(
func.func @make_layout(%s: !cute.shape<"(?,6)">, %d: !cute.stride<"(6,1)">) {
  // CHECK: %{{.*}} = cute.make_layout(%{{.*}}, %{{.*}}) : (!cute.shape<"(?,6)">, !cute.stride<"(6,1)">) -> !cute.layout<"(?,6):(6,1)">
  %l = cute.make_layout(%s, %d) : (!cute.shape<"(?,6)">, !cute.stride<"(6,1)">) -> !cute.layout<"(?,6):(6,1)">
  return
}

// CHECK-LABEL: @make_composed_layout(
func.func @make_composed_layout(%w: !cute.swizzle<"S<2,3,3>">, %o: !cute.int_tuple<"?">, %b: !cute.layout<"(8,8):(8,1)">) {
  // CHECK: %{{.*}} = cute.make_composed_layout(%{{.*}}, %{{.*}}, %{{.*}}) : (!cute.swizzle<"S<2,3,3>">, <"?">, <"(8,8):(8,1)">) -> <"S<2,3,3> o ? o (8,8):(8,1)">
  %c = cute.make_composed_layout(%w, %o, %b) : (!cute.swizzle<"S<2,3,3>">, <"?">, <"(8,8):(8,1)">) -> <"S<2,3,3> o ? o (8,8):(8,1)">
  return
}

// CHECK-LABEL: @make_layout_like(
func.func @make_layout_like(%x: !cute.layout<"(?,5):(?,?)">) {
  // CHECK: %{{.*}} = cute.make_layout_like(%{{.*}}) : !cute.layout<"(?,5):(?,?)"> -> !cute.layout<"(?,5):(1,?)">
  %l = cute.make_layout_like(%x) : !cute.layout<"(?,5):(?,?)"> -> !cute.layout<"(?,5):(1,?)">
  return
}

// CHECK-LABEL: @make_ordered_layout(
func.func @make_ordered_layout(%s: !cute.shape<"(6,?,2)">, %o: !cute.int_tuple<"(1,0,2)">) {
  // CHECK: %{{.*}} = cute.make_ordered_layout(%{{.*}}, %{{.*}}) : (!cute.shape<"(6,?,2)">, !cute.int_tuple<"(1,0,2)">) -> !cute.layout<"(6,?,2):(?,1,?)">
  %l = cute.make_ordered_layout(%s, %o) : (!cute.shape<"(6,?,2)">, !cute.int_tuple<"(1,0,2)">) -> !cute.layout<"(6,?,2):(?,1,?)">
  return
}

// CHECK-LABEL: @make_identity_layout(
func.func @make_identity_layout(%s: !cute.shape<"(6,?{i64})">) {
  // CHECK: %{{.*}} = cute.make_identity_layout(%{{.*}}) : !cute.shape<"(6,?{i64})"> -> !cute.layout<"(6,?{i64}):(1@0,1@1)">
  %l = cute.make_identity_layout(%s) : !cute.shape<"(6,?{i64})"> -> !cute.layout<"(6,?{i64}):(1@0,1@1)">
  return
}
