// RUN: cute-opt %s --cute-to-base --verify-legality | FileCheck %s

// CHECK-LABEL: func.func @make
// CHECK-SAME:    (%[[S:.*]]: i32, %[[N:.*]]: i32) -> !llvm.struct<(i32, i32)>
// CHECK:         %[[P:.*]] = ub.poison : !llvm.struct<(i32, i32)>
// CHECK:         %[[A:.*]] = llvm.insertvalue %[[S]], %[[P]][0]
// CHECK:         %[[B:.*]] = llvm.insertvalue %[[N]], %[[A]][1]
// CHECK:         return %[[B]] : !llvm.struct<(i32, i32)>
func.func @make(%s: !cute.shape<"(?,6)">, %n: i32) -> !cute.layout<"(?,6):(6,?)"> {
  %d = cute.make_stride(%n) : (i32) -> !cute.stride<"(6,?)">
  %l = cute.make_layout(%s, %d) : (!cute.shape<"(?,6)">, !cute.stride<"(6,?)">) -> !cute.layout<"(?,6):(6,?)">
  return %l : !cute.layout<"(?,6):(6,?)">
}

// CHECK-LABEL: func.func private @types
// CHECK-SAME:    (!llvm.struct<()>, i32, i64, !llvm.struct<(i32, i64)>, i32,
// CHECK-SAME:     !llvm.struct<(struct<()>, struct<()>)>, !llvm.struct<(i32, struct<()>)>, !llvm.struct<(struct<(i32, i32)>, i32)>,
// CHECK-SAME:     !llvm.struct<()>, !llvm.struct<(i32, i32)>, !llvm.struct<(struct<(i32, struct<()>)>, struct<(struct<()>, i32)>)>,
// CHECK-SAME:     !llvm.struct<(struct<(struct<()>, struct<()>)>, i32, struct<()>)>,
// CHECK-SAME:     !llvm.struct<(struct<(struct<()>, i32)>, struct<()>, struct<(i32, struct<()>)>)>, !llvm.struct<()>)
func.func private @types(
  !cute.shape<"7">, !cute.shape<"((?))">, !cute.int_tuple<"?{i64}">, !cute.shape<"(?,(8,?{i64}))">, !cute.stride<"(?@0,1@1)">,
  !cute.layout<"(6,5):(5,1)">, !cute.layout<"(?,5):(5,1)">, !cute.layout<"(?,?):(1,?)">,
  !cute.tile<"[_]">, !cute.tile<"[(?,3):(1,?);_]">, !cute.tile<"[?:1;[3:?;_]]">,
  !cute.composed_layout<"S<2,3,3> o ? o (8,8):(8,1)">, !cute.composed_layout<"(?):(2) o 0 o (8,8):(8,?)">, !cute.swizzle<"S<2,3,3>">)

// Scalars of a layout in order: shape, then stride; static ones are constants.
// CHECK-LABEL: func.func @scalars
// CHECK-SAME:    (%[[L:.*]]: !llvm.struct<(i32, i64)>) -> (i32, i32, i32, i64)
// CHECK:         %[[A:.*]] = llvm.extractvalue %[[L]][0]
// CHECK:         %[[B:.*]] = llvm.extractvalue %[[L]][1]
// CHECK:         return %[[A]], %{{.*}}, %{{.*}}, %[[B]] : i32, i32, i32, i64
func.func @scalars(%l: !cute.layout<"(?,6):(6,?{i64})">) -> (i32, i32, i32, i64) {
  %v:4 = cute.get_scalars (%l) : !cute.layout<"(?,6):(6,?{i64})">
  return %v#0, %v#1, %v#2, %v#3 : i32, i32, i32, i64
}

// A composed layout is stored outer, offset, inner; what holds nothing is not inserted.
// CHECK-LABEL: func.func @composed
// CHECK-NOT:     llvm.insertvalue
// CHECK:         llvm.insertvalue %arg0, %{{.*}}[1] : !llvm.struct<(struct<(struct<()>, struct<()>)>, i32, struct<()>)>
// CHECK-NOT:     llvm.insertvalue
// CHECK:         return
func.func @composed(%arg0: i32) -> !cute.composed_layout<"S<2,3,3> o ? o (8,8):(8,1)"> {
  %sw = cute.static : !cute.swizzle<"S<2,3,3>">
  %o = cute.make_int_tuple(%arg0) : (i32) -> !cute.int_tuple<"?">
  %b = cute.static : !cute.layout<"(8,8):(8,1)">
  %c = cute.make_composed_layout(%sw, %o, %b) : (!cute.swizzle<"S<2,3,3>">, <"?">, <"(8,8):(8,1)">) -> <"S<2,3,3> o ? o (8,8):(8,1)">
  return %c : !cute.composed_layout<"S<2,3,3> o ? o (8,8):(8,1)">
}

// A static int tuple fills a dynamic slot as a constant of the slot's width.
// CHECK-LABEL: func.func @static_slot
// CHECK:         %[[C:.*]] = arith.constant 7 : i64
// CHECK:         return %[[C]] : i64
func.func @static_slot() -> !cute.shape<"?{i64}"> {
  %c = cute.static : !cute.int_tuple<"7">
  %s = cute.make_shape(%c) : (!cute.int_tuple<"7">) -> !cute.shape<"?{i64}">
  return %s : !cute.shape<"?{i64}">
}

// Values of cute type are carried by loops and branches, and passed to calls.
// CHECK-LABEL: func.func @carried
// CHECK:         %[[R:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (i32)  : i32
// CHECK:         call @carried(%{{.*}}, %{{.*}}, %[[R]]) : (i32, i32, i32) -> i32
func.func @carried(%n: i32, %k: i32, %s: !cute.shape<"(?,2)">) -> !cute.shape<"(?,2)"> {
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %k to %n step %c1 iter_args(%x = %s) -> (!cute.shape<"(?,2)">) : i32 {
    %v = cute.get_scalars<{only_dynamic}> (%x) : !cute.shape<"(?,2)">
    %w = arith.addi %v, %i : i32
    %y = cute.make_shape(%w) : (i32) -> !cute.shape<"(?,2)">
    scf.yield %y : !cute.shape<"(?,2)">
  }
  %q = func.call @carried(%n, %k, %r) : (i32, i32, !cute.shape<"(?,2)">) -> !cute.shape<"(?,2)">
  return %q : !cute.shape<"(?,2)">
}

// 16-bit floats of a kernel are multiplied and added with one rounding.
gpu.module @fma {
  // CHECK-LABEL: @fma16
  gpu.func @fma16(%p: !llvm.ptr<1>, %a: bf16, %b: f16, %c: f32) kernel {
    // CHECK: llvm.intr.fma(%{{.*}}, %{{.*}}, %{{.*}}) : (bf16, bf16, bf16) -> bf16
    %0 = math.fma %a, %a, %a : bf16
    // CHECK: llvm.intr.fma(%{{.*}}, %{{.*}}, %{{.*}}) {fastmathFlags = #llvm.fastmath<contract>} : (f16, f16, f16) -> f16
    %1 = math.fma %b, %b, %b fastmath<contract> : f16
    // CHECK: math.fma %{{.*}}, %{{.*}}, %{{.*}} : f32
    %2 = math.fma %c, %c, %c : f32
    llvm.store %0, %p : bf16, !llvm.ptr<1>
    llvm.store %1, %p : f16, !llvm.ptr<1>
    llvm.store %2, %p : f32, !llvm.ptr<1>
    gpu.return
  }
}
