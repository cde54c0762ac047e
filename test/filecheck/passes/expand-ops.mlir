// cute-expand-ops: scalars in, arithmetic, scalars out.
// RUN: cute-opt %s --cute-expand-ops --verify-legality | filecheck %s
// RUN: cute-opt %s --cute-fold-static --cute-expand-ops --cute-fold-static --cute-to-base --verify-legality | filecheck %s --check-prefix=BASE
// BASE-NOT: cute.

// CHECK-LABEL: @static(
// CHECK-NEXT:  %[[I:.*]] = cute.static : !cute.int_tuple<"9">
// CHECK-NEXT:  return %[[I]]
func.func @static(%c: !cute.coord<"(1,(0,1))">, %l: !cute.layout<"(3,(2,4)):(8,(4,1))">) -> !cute.int_tuple<"9"> {
  %i = cute.layout_eval(%c, %l) : (!cute.coord<"(1,(0,1))">, !cute.layout<"(3,(2,4)):(8,(4,1))">) -> !cute.int_tuple<"9">
  return %i : !cute.int_tuple<"9">
}

// CHECK-LABEL: @layout_eval(
// CHECK-SAME:  %[[A:[^:]+]]: !cute.layout<"(?,8):(8,1)">, %[[C:[^:]+]]: !cute.coord<"(?,3)">
// CHECK-NEXT:  %[[I:.*]] = cute.get_scalars<{only_dynamic}> (%[[C]]) : !cute.coord<"(?,3)">
// CHECK-NEXT:  cute.get_scalars<{only_dynamic}> (%[[A]]) : !cute.layout<"(?,8):(8,1)">
// CHECK-NEXT:  %[[EIGHT:.*]] = arith.constant 8 : i32
// CHECK-NEXT:  %[[M:.*]] = arith.muli %[[I]], %[[EIGHT]] overflow<nsw> : i32
// CHECK-NEXT:  %[[THREE:.*]] = arith.constant 3 : i32
// CHECK-NEXT:  %[[S:.*]] = arith.addi %[[M]], %[[THREE]] overflow<nsw> : i32
// CHECK-NEXT:  %[[R:.*]] = cute.make_int_tuple(%[[S]]) : (i32) -> !cute.int_tuple<"?">
// CHECK-NEXT:  return %[[R]]
func.func @layout_eval(%a: !cute.layout<"(?,8):(8,1)">, %c: !cute.coord<"(?,3)">) -> !cute.int_tuple<"?"> {
  %i = cute.layout_eval(%c, %a) : (!cute.coord<"(?,3)">, !cute.layout<"(?,8):(8,1)">) -> !cute.int_tuple<"?">
  return %i : !cute.int_tuple<"?">
}

// Last mode without a modulo; basis scale 1 and zeros of the arithmetic tuple emit nothing.
// CHECK-LABEL: @idx2crd(
// CHECK:       %[[I:.*]] = cute.get_scalars<{only_dynamic}>
// CHECK-NEXT:  %[[SIX:.*]] = arith.constant 6 : i32
// CHECK-NEXT:  %[[Q:.*]] = arith.divsi %[[I]], %[[SIX]] : i32
// CHECK-NEXT:  %[[R:.*]] = arith.remsi %[[I]], %[[SIX]] : i32
// CHECK-NEXT:  cute.make_coord(%[[R]], %[[Q]]) : (i32, i32) -> !cute.coord<"(?,?)">
func.func @idx2crd(%i: !cute.int_tuple<"?">, %s: !cute.shape<"(6,3)">) -> !cute.coord<"(?,?)"> {
  %k = cute.idx2crd(%i, %s) : (!cute.int_tuple<"?">, !cute.shape<"(6,3)">) -> !cute.coord<"(?,?)">
  return %k : !cute.coord<"(?,?)">
}

// Narrower operands are extended, wide constants make the operation wide.
// CHECK-LABEL: @widths(
// CHECK:       %[[A:.*]]:2 = cute.get_scalars<{only_dynamic}> (%{{.*}}) : !cute.int_tuple<"(?,?)">
// CHECK-NEXT:  %[[C:.*]] = cute.get_scalars<{only_dynamic}> (%{{.*}}) : !cute.int_tuple<"(?{i64},4294967296)">
// CHECK-NEXT:  %[[X:.*]] = arith.extsi %[[A]]#0 : i32 to i64
// CHECK-NEXT:  %[[S:.*]] = arith.addi %[[X]], %[[C]] overflow<nsw> : i64
// CHECK-NEXT:  %[[Y:.*]] = arith.extsi %[[A]]#1 : i32 to i64
// CHECK-NEXT:  %[[K:.*]] = arith.constant 4294967296 : i64
// CHECK-NEXT:  %[[T:.*]] = arith.addi %[[Y]], %[[K]] overflow<nsw> : i64
// CHECK-NEXT:  cute.make_int_tuple(%[[S]], %[[T]]) : (i64, i64) -> !cute.int_tuple<"(?{i64},?{i64})">
func.func @widths(%a: !cute.int_tuple<"(?,?)">, %b: !cute.int_tuple<"(?{i64},4294967296)">) -> !cute.int_tuple<"(?{i64},?{i64})"> {
  %r = cute.tuple_add(%a, %b) : (!cute.int_tuple<"(?,?)">, !cute.int_tuple<"(?{i64},4294967296)">) -> !cute.int_tuple<"(?{i64},?{i64})">
  return %r : !cute.int_tuple<"(?{i64},?{i64})">
}

// A layout is put together again from shape and stride, even if one of them is static.
// CHECK-LABEL: @divide(
// CHECK:       %[[L0:.*]]:3 = cute.get_scalars<{only_dynamic}>
// CHECK:       %[[I:.*]] = arith.ceildivsi %[[L0]]#0, %{{.*}} : i32
// CHECK:       %[[D:.*]] = arith.muli %[[L0]]#2, %{{.*}} overflow<nsw> : i32
// CHECK:       %[[J:.*]] = arith.ceildivsi %[[L0]]#1, %{{.*}} : i32
// CHECK:       %[[S:.*]] = cute.make_shape(%[[I]], %[[J]]) : (i32, i32) -> !cute.shape<"((16,128),(?,?))">
// CHECK-NEXT:  %[[T:.*]] = cute.make_stride(%[[L0]]#2, %[[D]]) : (i32, i32) -> !cute.stride<"((?,1),(?,128))">
// CHECK-NEXT:  %[[L:.*]] = cute.make_layout(%[[S]], %[[T]])
// CHECK-NEXT:  return %[[L]]
func.func @divide(%l: !cute.layout<"(?,?):(?,1)">, %t: !cute.shape<"(16,128)">) -> !cute.layout<"((16,128),(?,?)):((?,1),(?,128))"> {
  %r = cute.zipped_divide(%l, %t) : (!cute.layout<"(?,?):(?,1)">, !cute.shape<"(16,128)">) -> !cute.layout<"((16,128),(?,?)):((?,1),(?,128))">
  return %r : !cute.layout<"((16,128),(?,?)):((?,1),(?,128))">
}

// CHECK-LABEL: @layout_with_a_static_stride(
// CHECK:       cute.make_shape(%{{.*}}) : (i32) -> !cute.shape<"(?)">
// CHECK-NEXT:  cute.make_stride() : () -> !cute.stride<"(5)">
// CHECK-NEXT:  cute.make_layout
func.func @layout_with_a_static_stride(%l: !cute.layout<"(?,5):(5,1)">, %c: !cute.coord<"(_,2)">) -> !cute.layout<"(?):(5)"> {
  %r = cute.slice(%l, %c) : !cute.layout<"(?,5):(5,1)">, !cute.coord<"(_,2)">
  return %r : !cute.layout<"(?):(5)">
}

// Of a composed layout the parts are made in the order outer, offset, inner.
// CHECK-LABEL: @composed(
// CHECK:       %[[B:.*]] = cute.static : !cute.layout<"(8):(8)">
// CHECK-NEXT:  %[[O:.*]] = cute.make_int_tuple(%{{.*}}) : (i32) -> !cute.int_tuple<"?">
// CHECK-NEXT:  %[[A:.*]] = cute.static : !cute.swizzle<"S<2,3,3>">
// CHECK-NEXT:  cute.make_composed_layout(%[[A]], %[[O]], %[[B]])
func.func @composed(%l: !cute.composed_layout<"S<2,3,3> o ? o (8,8):(8,1)">) -> !cute.composed_layout<"S<2,3,3> o ? o (8):(8)"> {
  %r = cute.select<[0]> (%l) : !cute.composed_layout<"S<2,3,3> o ? o (8,8):(8,1)"> -> !cute.composed_layout<"S<2,3,3> o ? o (8):(8)">
  return %r : !cute.composed_layout<"S<2,3,3> o ? o (8):(8)">
}

// A swizzle of a run-time index: and, shift, xor.
// CHECK-LABEL: @swizzled(
// CHECK:       %[[M:.*]] = arith.andi
// CHECK:       %[[Y:.*]] = arith.shrui %[[M]], %{{.*}} : i32
// CHECK:       arith.xori %{{.*}}, %[[Y]] : i32
func.func @swizzled(%c: !cute.coord<"?">, %l: !cute.composed_layout<"S<2,3,3> o 0 o (8,64):(64,1)">) -> !cute.int_tuple<"?"> {
  %r = cute.layout_eval(%c, %l) : (!cute.coord<"?">, !cute.composed_layout<"S<2,3,3> o 0 o (8,64):(64,1)">) -> !cute.int_tuple<"?">
  return %r : !cute.int_tuple<"?">
}

// A choice at run time is an scf.if whose branches only yield.
// CHECK-LABEL: @increment(
// CHECK:       %[[N:.*]] = arith.addi
// CHECK:       %[[LT:.*]] = arith.cmpi slt, %[[N]], %{{.*}} : i32
// CHECK:       scf.if %[[LT]] -> (i32) {
// CHECK-NEXT:    scf.yield
// CHECK-NEXT:  } else {
// CHECK-NEXT:    scf.yield
// CHECK-NEXT:  }
func.func @increment(%c: !cute.coord<"(?,1)">, %s: !cute.shape<"(6,3)">) -> !cute.coord<"(?,?)"> {
  %r = cute.increment_coord(%c, %s) : (!cute.coord<"(?,1)">, !cute.shape<"(6,3)">) -> !cute.coord<"(?,?)">
  return %r : !cute.coord<"(?,?)">
}

// Comparisons look at all scalars of both sides.
// CHECK-LABEL: @elem_less(
// CHECK:       %[[A:.*]]:2 = cute.get_scalars (%{{.*}}) : !cute.coord<"(?,3)">
// CHECK-NEXT:  %[[C:.*]]:2 = cute.get_scalars (%{{.*}}) : !cute.shape<"(6,?)">
// CHECK-NEXT:  %[[P:.*]] = arith.cmpi slt, %[[A]]#0, %[[C]]#0 : i32
// CHECK-NEXT:  %[[Q:.*]] = arith.cmpi slt, %[[A]]#1, %[[C]]#1 : i32
// CHECK-NEXT:  %[[R:.*]] = arith.andi %[[P]], %[[Q]] : i1
// CHECK-NEXT:  return %[[R]]
func.func @elem_less(%c: !cute.coord<"(?,3)">, %s: !cute.shape<"(6,?)">) -> i1 {
  %p = cute.elem_less(%c, %s) : (!cute.coord<"(?,3)">, !cute.shape<"(6,?)">) -> i1
  return %p : i1
}

// CHECK-LABEL: @equal_static(
// CHECK:       arith.constant true
func.func @equal_static(%s: !cute.shape<"(6,5)">) -> i1 {
  %p = cute.equal(%s, %s) : (!cute.shape<"(6,5)">, !cute.shape<"(6,5)">) -> i1
  return %p : i1
}

// CHECK-LABEL: @equal_of_other_structure(
// CHECK-NEXT:  %[[P:.*]] = arith.constant false
// CHECK-NEXT:  return %[[P]]
func.func @equal_of_other_structure(%a: !cute.shape<"(?,5)">, %b: !cute.shape<"?">) -> i1 {
  %p = cute.equal(%a, %b) : (!cute.shape<"(?,5)">, !cute.shape<"?">) -> i1
  return %p : i1
}

// A divisor that the result type states is promised before the value is made.
// CHECK-LABEL: @divisor(
// CHECK:       %[[X:.*]] = arith.muli
// CHECK-NEXT:  %[[Y:.*]] = cute.assume(%[[X]]) : (i32) -> !cute.i32<divby 64>
// CHECK-NEXT:  cute.make_int_tuple(%[[Y]]) : (!cute.i32<divby 64>) -> !cute.int_tuple<"?{div=64}">
func.func @divisor(%c: !cute.coord<"?{div=4}">, %l: !cute.layout<"8:16">) -> !cute.int_tuple<"?{div=64}"> {
  %r = cute.layout_eval(%c, %l) : (!cute.coord<"?{div=4}">, !cute.layout<"8:16">) -> !cute.int_tuple<"?{div=64}">
  return %r : !cute.int_tuple<"?{div=64}">
}

// The ten ops that survive are left alone.
// CHECK-LABEL: @survivors(
// CHECK-NEXT:  %[[S:.*]] = cute.make_shape(%{{.*}}) : (i32) -> !cute.shape<"(?,6)">
// CHECK-NEXT:  %[[D:.*]] = cute.make_stride() : () -> !cute.stride<"(6,1)">
// CHECK-NEXT:  %[[L:.*]] = cute.make_layout(%[[S]], %[[D]])
// CHECK-NEXT:  cute.print(%[[L]])
// CHECK-NEXT:  %[[N:.*]] = cute.get_scalars<{only_dynamic}> (%[[L]])
// CHECK-NEXT:  return %[[N]] : i32
func.func @survivors(%n: i32) -> i32 {
  %s = cute.make_shape(%n) : (i32) -> !cute.shape<"(?,6)">
  %d = cute.make_stride() : () -> !cute.stride<"(6,1)">
  %l = cute.make_layout(%s, %d) : (!cute.shape<"(?,6)">, !cute.stride<"(6,1)">) -> !cute.layout<"(?,6):(6,1)">
  cute.print(%l) : !cute.layout<"(?,6):(6,1)">
  %v = cute.get_scalars<{only_dynamic}> (%l) : !cute.layout<"(?,6):(6,1)">
  return %v : i32
}

// Ops in regions expand where they stand.
// CHECK-LABEL: @loop(
// CHECK:       scf.for
// CHECK:         cute.get_scalars
// CHECK:         arith.muli
// CHECK:         cute.make_int_tuple
// CHECK:         cute.print
func.func @loop(%l: !cute.layout<"(?,8):(?,1)">, %c: !cute.coord<"(?,0)">, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = cute.layout_eval(%c, %l) : (!cute.coord<"(?,0)">, !cute.layout<"(?,8):(?,1)">) -> !cute.int_tuple<"?">
    cute.print(%x) : !cute.int_tuple<"?">
  }
  return
}
