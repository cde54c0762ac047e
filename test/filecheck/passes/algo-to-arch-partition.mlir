// RUN: cute-opt %s --convert-cute-algo-to-arch --verify-legality | FileCheck %s

!copy = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"((32,4),(4,4)):((64,4),(16,1))">, tiler_mn = <"[16:1;128:1]">>

// The offset of a thread is (t mod 32)*4 + (t div 32)*(4*stride); the view keeps its sixteen values.
// CHECK-LABEL: func.func @dynamic_stride
// CHECK-DAG:     %[[T:.*]] = cute.get_scalars<{only_dynamic}> (%{{.*}}) : !cute.coord<"?">
// CHECK-DAG:     %[[LD:.*]] = cute.get_scalars<{only_dynamic}> (%{{.*}}) : !cute.layout<"(16,128):(?,1)">
// CHECK:         %[[C4:.*]] = arith.constant 4 : i32
// CHECK:         %[[LD4:.*]] = arith.muli %[[LD]], %[[C4]] overflow<nsw> : i32
// CHECK:         %[[Q:.*]] = arith.divsi %[[T]], %[[C32:.*]] : i32
// CHECK:         %[[R:.*]] = arith.remsi %[[T]], %[[C32]] : i32
// CHECK:         %[[A:.*]] = arith.muli %[[R]], %[[C4]] overflow<nsw> : i32
// CHECK:         %[[B:.*]] = arith.muli %[[Q]], %[[LD4]] overflow<nsw> : i32
// CHECK:         %[[O:.*]] = arith.addi %[[A]], %[[B]] overflow<nsw> : i32
// CHECK:         %[[D:.*]] = cute.assume(%[[O]]) : (i32) -> !cute.i32<divby 4>
// CHECK:         %[[I:.*]] = cute.make_int_tuple(%[[D]]) : (!cute.i32<divby 4>) -> !cute.int_tuple<"?{div=4}">
// CHECK:         cute.add_offset(%{{.*}}, %[[I]])
// CHECK:         cute.make_stride(%[[LD]]) : (i32) -> !cute.stride<"((0,(1,?)),0,0)">
// CHECK:         %[[V:.*]] = cute.make_view
// CHECK-SAME:      !cute.memref<f32, gmem, "((1,(4,4)),1,1):((0,(1,?)),0,0)">
// CHECK:         return %[[V]]
func.func @dynamic_stride(%b: !cute.memref<f32, gmem, "(16,128):(?,1)">, %t: !cute.coord<"?">) -> !cute.memref<f32, gmem, "((1,(4,4)),1,1):((0,(1,?)),0,0)"> {
  %atom = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
  %copy = cute.make_tiled_copy(%atom) : !copy
  %p = cute.tiled.copy.partition_S(%copy, %b, %t) : (!copy, !cute.memref<f32, gmem, "(16,128):(?,1)">, !cute.coord<"?">) -> !cute.memref<f32, gmem, "((1,(4,4)),1,1):((0,(1,?)),0,0)">
  return %p : !cute.memref<f32, gmem, "((1,(4,4)),1,1):((0,(1,?)),0,0)">
}

// A static layout: the strides are numbers, the partitioned layout is static.
// CHECK-LABEL: func.func @static_stride
// CHECK-DAG:     %[[C1216:.*]] = arith.constant 1216 : i32
// CHECK:         arith.muli %{{.*}}, %[[C1216]] overflow<nsw> : i32
// CHECK:         cute.static : !cute.layout<"((1,(4,4)),1,1):((0,(1,304)),0,0)">
// CHECK:         cute.make_view
func.func @static_stride(%b: !cute.memref<f32, gmem, "(16,128):(304,1)">, %t: !cute.coord<"?">) -> !cute.memref<f32, gmem, "((1,(4,4)),1,1):((0,(1,304)),0,0)"> {
  %atom = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
  %copy = cute.make_tiled_copy(%atom) : !copy
  %p = cute.tiled.copy.partition_D(%copy, %b, %t) : (!copy, !cute.memref<f32, gmem, "(16,128):(304,1)">, !cute.coord<"?">) -> !cute.memref<f32, gmem, "((1,(4,4)),1,1):((0,(1,304)),0,0)">
  return %p : !cute.memref<f32, gmem, "((1,(4,4)),1,1):((0,(1,304)),0,0)">
}

// Coordinates: the iterator moves, both components keep what is known of them.
// CHECK-LABEL: func.func @coordinates
// CHECK:         cute.add_offset
// CHECK-SAME:      -> !cute.int_tuple<"(?{div=4},?{div=4})">
// CHECK:         cute.static : !cute.layout<"((1,(4,4)),1,1):((0,(1@1,1@0)),0,0)">
func.func @coordinates(%b: !cute.coord_tensor<"(?{div=16},?{div=128})", "(16,128):(1@0,1@1)">, %t: !cute.coord<"?">) -> !cute.coord_tensor<"(?{div=4},?{div=4})", "((1,(4,4)),1,1):((0,(1@1,1@0)),0,0)"> {
  %atom = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
  %copy = cute.make_tiled_copy(%atom) : !copy
  %p = cute.tiled.copy.partition_S(%copy, %b, %t) : (!copy, !cute.coord_tensor<"(?{div=16},?{div=128})", "(16,128):(1@0,1@1)">, !cute.coord<"?">) -> !cute.coord_tensor<"(?{div=4},?{div=4})", "((1,(4,4)),1,1):((0,(1@1,1@0)),0,0)">
  return %p : !cute.coord_tensor<"(?{div=4},?{div=4})", "((1,(4,4)),1,1):((0,(1@1,1@0)),0,0)">
}
