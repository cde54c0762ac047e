// Named pipelines, and what is said when a pass of upstream meets cute ops.
// RUN: cute-opt %s --pipeline=base --verify-legality | filecheck %s --check-prefix=BASE
// RUN: cute-opt %s --cute-fold-static --cute-expand-ops --cute-to-base --cse | filecheck %s --check-prefix=BASE
// RUN: not cute-opt %s --dialects=base 2>&1 | filecheck %s --check-prefix=LEAK
// RUN: not cute-opt %s --cute-fold-static --dialects=cute --cute-to-base --base-prepare 2>&1 | filecheck %s --check-prefix=SCOPE
// RUN: cute-opt %s --verify-roundtrip --mlir-print-op-generic | cute-opt - --verify-roundtrip | filecheck %s --check-prefix=SAME
// RUN: cute-opt %s --pipeline --dump-pass-pipeline -o %t 2>&1 | filecheck %s --check-prefix=NVPTX
// RUN: cute-opt %s --pipeline=base --dump-pass-pipeline -o %t 2>&1 | filecheck %s --check-prefix=STOPS
// RUN: cute-opt --list-passes | filecheck %s --check-prefix=LIST

// NVPTX: cute-to-base{chip=sm_90a},cute-strong-atomics,cute-wgmma-registers,base-prepare,
// STOPS: cute-to-base)
// LIST:  cute-strong-atomics {{.*}}convert atomics whose order
// LIST:  cute-wgmma-registers {{.*}}join consecutive wgmma and keep their accumulators in PTX registers

// BASE-LABEL: func.func @offset
// BASE-NOT:   cute
// BASE:       arith.muli %{{.*}}, %{{.*}} overflow<nsw> : i32
// BASE:       return %{{.*}} : i32
// SAME: cute.layout_eval(%{{.*}}, %{{.*}}) : (!cute.coord<"(?,2)">, !cute.layout<"(6,5):(5,1)">) -> !cute.int_tuple<"?">
// LEAK: pipelines.mlir:[[# @LINE + 2]]:8: error: operation 'cute.make_coord' belongs to the unregistered dialect 'cute'
func.func @offset(%n: i32) -> i32 {
  %c = cute.make_coord(%n) : (i32) -> !cute.coord<"(?,2)">
  %l = cute.static : !cute.layout<"(6,5):(5,1)">
  %i = cute.layout_eval(%c, %l) : (!cute.coord<"(?,2)">, !cute.layout<"(6,5):(5,1)">) -> !cute.int_tuple<"?">
  %r = cute.get_scalars(%i) : !cute.int_tuple<"?">
  return %r : i32
}
// SCOPE: cute-opt: error: pass 'base-prepare' is not available with --dialects=cute
