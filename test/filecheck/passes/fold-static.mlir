// cute-fold-static: static values become cute.static, dead pure ops go, nothing else changes.
// RUN: cute-opt %s --cute-fold-static --verify-legality | filecheck %s
// RUN: cute-opt %s --cute-fold-static --cute-fold-static | filecheck %s

// A chain of static ops collapses into one value; what is dynamic stays.
// CHECK-LABEL: @chain(
// CHECK-NOT:   make_shape
// CHECK-NOT:   make_stride
// CHECK:       %[[L:.*]] = cute.static : !cute.layout<"(6,5):(5,1)">
// CHECK-NEXT:  %[[C:.*]] = cute.make_coord(%{{.*}}) : (i32) -> !cute.coord<"(?,2)">
// CHECK-NEXT:  %[[I:.*]] = cute.layout_eval(%[[C]], %[[L]])
// CHECK-NEXT:  return %[[L]], %[[I]]
func.func @chain(%n: i32) -> (!cute.layout<"(6,5):(5,1)">, !cute.int_tuple<"?">) {
  %s = cute.make_shape() : () -> !cute.shape<"(6,5)">
  %d = cute.make_stride() : () -> !cute.stride<"(5,1)">
  %l = cute.make_layout(%s, %d) : (!cute.shape<"(6,5)">, !cute.stride<"(5,1)">) -> !cute.layout<"(6,5):(5,1)">
  %c = cute.make_coord(%n) : (i32) -> !cute.coord<"(?,2)">
  %i = cute.layout_eval(%c, %l) : (!cute.coord<"(?,2)">, !cute.layout<"(6,5):(5,1)">) -> !cute.int_tuple<"?">
  return %l, %i : !cute.layout<"(6,5):(5,1)">, !cute.int_tuple<"?">
}

// A static result of dynamic operands is static; a cute.static that was there stays, used or not.
// CHECK-LABEL: @static_result_of_dynamic_operands(
// CHECK-NEXT:  cute.static : !cute.coord<"(0,0)">
// CHECK-NEXT:  %[[Z:.*]] = cute.static : !cute.int_tuple<"0">
// CHECK-NEXT:  return %[[Z]]
func.func @static_result_of_dynamic_operands(%l: !cute.layout<"(?,8):(?,1)">) -> !cute.int_tuple<"0"> {
  %c = cute.static : !cute.coord<"(0,0)">
  %i = cute.layout_eval(%c, %l) : (!cute.coord<"(0,0)">, !cute.layout<"(?,8):(?,1)">) -> !cute.int_tuple<"0">
  return %i : !cute.int_tuple<"0">
}

// Comparisons of static values are constants; a dynamic one is left.
// CHECK-LABEL: @comparisons(
// CHECK:       %[[T:.*]] = arith.constant true
// CHECK-NEXT:  %[[F:.*]] = arith.constant false
// CHECK-NEXT:  %[[U:.*]] = arith.constant true
// CHECK-NEXT:  %[[X:.*]] = cute.elem_less(%{{.*}}, %{{.*}}) : (!cute.coord<"(?,1)">, !cute.shape<"(6,5)">) -> i1
// CHECK-NEXT:  return %[[T]], %[[F]], %[[U]], %[[X]] : i1, i1, i1, i1
func.func @comparisons(%c: !cute.coord<"(?,1)">) -> (i1, i1, i1, i1) {
  %a = cute.static : !cute.coord<"(1,1)">
  %s = cute.static : !cute.shape<"(6,5)">
  %t = cute.static : !cute.shape<"(6,(5))">
  %0 = cute.elem_less(%a, %s) : (!cute.coord<"(1,1)">, !cute.shape<"(6,5)">) -> i1
  %1 = cute.equal(%s, %t) : (!cute.shape<"(6,5)">, !cute.shape<"(6,(5))">) -> i1
  %2 = cute.equal(%s, %s) : (!cute.shape<"(6,5)">, !cute.shape<"(6,5)">) -> i1
  %3 = cute.elem_less(%c, %s) : (!cute.coord<"(?,1)">, !cute.shape<"(6,5)">) -> i1
  return %0, %1, %2, %3 : i1, i1, i1, i1
}

// Results are folded one by one; the op goes when none is in use any more.
// CHECK-LABEL: @leaves(
// CHECK:       %[[A:.*]] = cute.static : !cute.shape<"6">
// CHECK:       %[[B:.*]]:3 = cute.get_leaves(%{{.*}}) : !cute.shape<"(6,(?,2))">
// CHECK:       return %[[A]], %[[B]]#1
func.func @leaves(%s: !cute.shape<"(6,(?,2))">) -> (!cute.shape<"6">, !cute.shape<"?">) {
  %a, %b, %c = cute.get_leaves(%s) : !cute.shape<"(6,(?,2))">
  return %a, %b : !cute.shape<"6">, !cute.shape<"?">
}

// CHECK-LABEL: @leaves_all_static(
// CHECK-NOT:   get_leaves
// CHECK:       return
func.func @leaves_all_static(%s: !cute.shape<"(6,(?,2))">) -> (!cute.shape<"6">, !cute.shape<"2">) {
  %a, %b, %c = cute.get_leaves(%s) : !cute.shape<"(6,(?,2))">
  return %a, %c : !cute.shape<"6">, !cute.shape<"2">
}

// Divisions are pure only by a static divisor without a zero; prints and integers stay, arguments too.
// CHECK-LABEL: @what_stays(
// CHECK-NOT:   arith.addi
// CHECK:       cute.shape_div(%{{.*}}, %{{.*}}) : (!cute.shape<"12">, !cute.shape<"?">) -> !cute.shape<"?">
// CHECK-NEXT:  cute.ceil_div(%{{.*}}, %{{.*}}) : (!cute.shape<"8">, !cute.tile<"2:1">) -> !cute.shape<"4">
// CHECK-NOT:   cute.ceil_div
// CHECK:       cute.print(%{{.*}}) : !cute.shape<"12">
// CHECK-NEXT:  %[[G:.*]] = cute.get_scalars (%{{.*}}) : !cute.shape<"12">
// CHECK-NEXT:  return %[[G]]
func.func @what_stays(%s: !cute.shape<"12">, %d: !cute.shape<"?">, %n: i32, %t: !cute.tile<"2:1">, %e: !cute.shape<"8">) -> i32 {
  %dead = arith.addi %n, %n : i32
  %0 = cute.shape_div(%s, %d) : (!cute.shape<"12">, !cute.shape<"?">) -> !cute.shape<"?">
  %1 = cute.ceil_div(%e, %t) : (!cute.shape<"8">, !cute.tile<"2:1">) -> !cute.shape<"4">
  %2 = cute.ceil_div(%d, %s) : (!cute.shape<"?">, !cute.shape<"12">) -> !cute.shape<"?">
  cute.print(%s) : !cute.shape<"12">
  %g = cute.get_scalars (%s) : !cute.shape<"12">
  return %g : i32
}

// Inside regions; an scf.if that nobody needs goes with everything in it.
// CHECK-LABEL: @regions(
// CHECK:       scf.for
// CHECK-NEXT:    %[[S:.*]] = cute.static : !cute.shape<"(6,5)">
// CHECK-NEXT:    cute.print(%[[S]])
// CHECK-NEXT:  }
// CHECK-NEXT:  return
func.func @regions(%p: i1, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %s = cute.make_shape() : () -> !cute.shape<"(6,5)">
    cute.print(%s) : !cute.shape<"(6,5)">
  }
  %v = scf.if %p -> (!cute.shape<"(6,5)">) {
    %a = cute.make_shape() : () -> !cute.shape<"(6,5)">
    scf.yield %a : !cute.shape<"(6,5)">
  } else {
    %b = cute.make_shape() : () -> !cute.shape<"(6,5)">
    scf.yield %b : !cute.shape<"(6,5)">
  }
  return
}

// Ops of other dialects are folded too if they are pure.
// CHECK-LABEL: @other_dialects(
// CHECK-NEXT:  %[[A:.*]] = cute.static : !cute.shape<"(6,5)">
// CHECK-NEXT:  %[[B:.*]] = cute.static : !cute.shape<"4">
// CHECK-NEXT:  return %[[A]], %[[B]]
func.func @other_dialects(%p: i1, %a: !cute.shape<"(6,5)">, %n: i32) -> (!cute.shape<"(6,5)">, !cute.shape<"4">) {
  %v = scf.if %p -> (!cute.shape<"(6,5)">) {
    scf.yield %a : !cute.shape<"(6,5)">
  } else {
    %b = cute.make_shape() : () -> !cute.shape<"(6,5)">
    scf.yield %b : !cute.shape<"(6,5)">
  }
  %c = builtin.unrealized_conversion_cast %n : i32 to !cute.shape<"4">
  return %v, %c : !cute.shape<"(6,5)">, !cute.shape<"4">
}

// What has effects stays, though its result is static; so do block arguments.
// CHECK-LABEL: @effects(
// CHECK:       %[[V:.*]] = scf.if
// CHECK:         cute.print
// CHECK:       return %[[V]]
func.func @effects(%p: i1, %a: !cute.shape<"(6,5)">) -> !cute.shape<"(6,5)"> {
  %v = scf.if %p -> (!cute.shape<"(6,5)">) {
    cute.print(%a) : !cute.shape<"(6,5)">
    scf.yield %a : !cute.shape<"(6,5)">
  } else {
    scf.yield %a : !cute.shape<"(6,5)">
  }
  return %v : !cute.shape<"(6,5)">
}
