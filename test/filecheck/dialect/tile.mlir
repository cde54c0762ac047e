// Products and divides: every op in its canonical form, and the same by way of the generic form.
// RUN: cute-opt %s --verify-roundtrip | filecheck %s
// RUN: cute-opt %s --mlir-print-op-generic | cute-opt | filecheck %s

// CHECK-LABEL: @logical_product(
func.func @logical_product(%a: !cute.layout<"4:1">, %b: !cute.layout<"?:3">) {
  // CHECK: %{{.*}} = cute.logical_product(%{{.*}}, %{{.*}}) : (!cute.layout<"4:1">, !cute.layout<"?:3">) -> !cute.layout<"(4,?):(1,12)">
  %r = cute.logical_product(%a, %b) : (!cute.layout<"4:1">, !cute.layout<"?:3">) -> !cute.layout<"(4,?):(1,12)">
  return
}

// CHECK-LABEL: @zipped_product(
func.func @zipped_product(%a: !cute.layout<"4:1">, %b: !cute.layout<"?:3">) {
  // CHECK: %{{.*}} = cute.zipped_product(%{{.*}}, %{{.*}}) : (!cute.layout<"4:1">, !cute.layout<"?:3">) -> !cute.layout<"(4,?):(1,12)">
  %r = cute.zipped_product(%a, %b) : (!cute.layout<"4:1">, !cute.layout<"?:3">) -> !cute.layout<"(4,?):(1,12)">
  return
}

// CHECK-LABEL: @tiled_product(
func.func @tiled_product(%a: !cute.layout<"4:1">, %b: !cute.layout<"?:3">) {
  // CHECK: %{{.*}} = cute.tiled_product(%{{.*}}, %{{.*}}) : (!cute.layout<"4:1">, !cute.layout<"?:3">) -> !cute.layout<"(4,?):(1,12)">
  %r = cute.tiled_product(%a, %b) : (!cute.layout<"4:1">, !cute.layout<"?:3">) -> !cute.layout<"(4,?):(1,12)">
  return
}

// CHECK-LABEL: @flat_product(
func.func @flat_product(%a: !cute.layout<"4:1">, %b: !cute.layout<"?:3">) {
  // CHECK: %{{.*}} = cute.flat_product(%{{.*}}, %{{.*}}) : (!cute.layout<"4:1">, !cute.layout<"?:3">) -> !cute.layout<"(4,?):(1,12)">
  %r = cute.flat_product(%a, %b) : (!cute.layout<"4:1">, !cute.layout<"?:3">) -> !cute.layout<"(4,?):(1,12)">
  return
}

// CHECK-LABEL: @blocked_product(
func.func @blocked_product(%a: !cute.layout<"4:1">, %b: !cute.layout<"?:3">) {
  // CHECK: %{{.*}} = cute.blocked_product(%{{.*}}, %{{.*}}) : (!cute.layout<"4:1">, !cute.layout<"?:3">) -> !cute.layout<"((4,?)):((1,12))">
  %r = cute.blocked_product(%a, %b) : (!cute.layout<"4:1">, !cute.layout<"?:3">) -> !cute.layout<"((4,?)):((1,12))">
  return
}

// CHECK-LABEL: @raked_product(
func.func @raked_product(%a: !cute.layout<"4:1">, %b: !cute.layout<"?:3">) {
  // CHECK: %{{.*}} = cute.raked_product(%{{.*}}, %{{.*}}) : (!cute.layout<"4:1">, !cute.layout<"?:3">) -> !cute.layout<"((?,4)):((12,1))">
  %r = cute.raked_product(%a, %b) : (!cute.layout<"4:1">, !cute.layout<"?:3">) -> !cute.layout<"((?,4)):((12,1))">
  return
}

// CHECK-LABEL: @logical_divide(
func.func @logical_divide(%l: !cute.layout<"(?,?):(?,1)">, %t: !cute.shape<"(16,128)">) {
  // CHECK: %{{.*}} = cute.logical_divide(%{{.*}}, %{{.*}}) : (!cute.layout<"(?,?):(?,1)">, !cute.shape<"(16,128)">) -> !cute.layout<"((16,?),(128,?)):((?,?),(1,128))">
  %r = cute.logical_divide(%l, %t) : (!cute.layout<"(?,?):(?,1)">, !cute.shape<"(16,128)">) -> !cute.layout<"((16,?),(128,?)):((?,?),(1,128))">
  return
}

// CHECK-LABEL: @zipped_divide(
func.func @zipped_divide(%l: !cute.layout<"(?,?):(?,1)">, %t: !cute.shape<"(16,128)">) {
  // CHECK: %{{.*}} = cute.zipped_divide(%{{.*}}, %{{.*}}) : (!cute.layout<"(?,?):(?,1)">, !cute.shape<"(16,128)">) -> !cute.layout<"((16,128),(?,?)):((?,1),(?,128))">
  %r = cute.zipped_divide(%l, %t) : (!cute.layout<"(?,?):(?,1)">, !cute.shape<"(16,128)">) -> !cute.layout<"((16,128),(?,?)):((?,1),(?,128))">
  return
}

// CHECK-LABEL: @tiled_divide(
func.func @tiled_divide(%l: !cute.layout<"(?,?):(?,1)">, %t: !cute.shape<"(16,128)">) {
  // CHECK: %{{.*}} = cute.tiled_divide(%{{.*}}, %{{.*}}) : (!cute.layout<"(?,?):(?,1)">, !cute.shape<"(16,128)">) -> !cute.layout<"((16,128),?,?):((?,1),?,128)">
  %r = cute.tiled_divide(%l, %t) : (!cute.layout<"(?,?):(?,1)">, !cute.shape<"(16,128)">) -> !cute.layout<"((16,128),?,?):((?,1),?,128)">
  return
}

// CHECK-LABEL: @flat_divide(
func.func @flat_divide(%l: !cute.layout<"(?,?):(?,1)">, %t: !cute.shape<"(16,128)">) {
  // CHECK: %{{.*}} = cute.flat_divide(%{{.*}}, %{{.*}}) : (!cute.layout<"(?,?):(?,1)">, !cute.shape<"(16,128)">) -> !cute.layout<"(16,128,?,?):(?,1,?,128)">
  %r = cute.flat_divide(%l, %t) : (!cute.layout<"(?,?):(?,1)">, !cute.shape<"(16,128)">) -> !cute.layout<"(16,128,?,?):(?,1,?,128)">
  return
}

// CHECK-LABEL: @tile_to_shape(
func.func @tile_to_shape(%b: !cute.layout<"(4,2):(1,4)">, %s: !cute.shape<"(?,8)">) {
  // CHECK: %{{.*}} = cute.tile_to_shape(%{{.*}}, %{{.*}}) : (!cute.layout<"(4,2):(1,4)">, !cute.shape<"(?,8)">) -> !cute.layout<"((4,?),(2,4)):((1,8),(4,?))">
  %r = cute.tile_to_shape(%b, %s) : (!cute.layout<"(4,2):(1,4)">, !cute.shape<"(?,8)">) -> !cute.layout<"((4,?),(2,4)):((1,8),(4,?))">
  return
}

// CHECK-LABEL: @tile_to_shape_2(
func.func @tile_to_shape_2(%b: !cute.layout<"(2,3):(3,1)">, %s: !cute.shape<"(4,6)">, %o: !cute.int_tuple<"(1,0)">) {
  // CHECK: %{{.*}} = cute.tile_to_shape(%{{.*}}, %{{.*}}, %{{.*}}) : (!cute.layout<"(2,3):(3,1)">, !cute.shape<"(4,6)">, !cute.int_tuple<"(1,0)">) -> !cute.layout<"((2,2),(3,2)):((3,12),(1,6))">
  %r = cute.tile_to_shape(%b, %s, %o) : (!cute.layout<"(2,3):(3,1)">, !cute.shape<"(4,6)">, !cute.int_tuple<"(1,0)">) -> !cute.layout<"((2,2),(3,2)):((3,12),(1,6))">
  return
}

// CHECK-LABEL: @tile_to_shape_3(
func.func @tile_to_shape_3(%b: !cute.layout<"((32,4),(?,4)):((16,4),(0,1))">, %s: !cute.shape<"(256,?,2)">, %o: !cute.int_tuple<"(2,1,0)">) {
  // CHECK: %{{.*}} = cute.tile_to_shape(%{{.*}}, %{{.*}}, %{{.*}}) : (!cute.layout<"((32,4),(?,4)):((16,4),(0,1))">, !cute.shape<"(256,?,2)">, !cute.int_tuple<"(2,1,0)">) -> !cute.layout<"(((32,4),2),((?,4),?),(1,2)):(((16,4),?),((0,1),1024),(0,512))">
  %r = cute.tile_to_shape(%b, %s, %o) : (!cute.layout<"((32,4),(?,4)):((16,4),(0,1))">, !cute.shape<"(256,?,2)">, !cute.int_tuple<"(2,1,0)">) -> !cute.layout<"(((32,4),2),((?,4),?),(1,2)):(((16,4),?),((0,1),1024),(0,512))">
  return
}
