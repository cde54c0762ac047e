// --validate runs each function before and after each pass; what it cannot compare, it says once.

// RUN: cute-opt %s --validate --pipeline=base --verify-diagnostics
// RUN: cute-opt %s --validate=samples=3,seed=9 --cute-expand-ops --cse --canonicalize --cute-fold-static --verify-diagnostics
// RUN: cute-opt %s --validate --pass-pipeline='builtin.module(func.func(cute-fold-static,cse),cute-expand-ops)' --verify-diagnostics
// RUN: cute-opt %root/test/examples/elementwise_add.mlir --validate --pipeline=base 2>&1 | FileCheck %s --check-prefix=ADD
// RUN: not cute-opt %s --validate 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not cute-opt %s --validate=sample=3 --cse 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: cute-opt --help | FileCheck %s --check-prefix=HELP

// ADD-NOT: @launch is not validated
// ADD:     remark: @add is not validated: a kernel needs memory and threads to run
// ADD-NOT: @launch is not validated
// NONE:    cute-opt: error: --validate needs at least one pass that runs in xDSL; add a pass or --pipeline
// BAD:     cute-opt: error: option '--validate': expected samples=N,seed=S with numbers (N from 1), got 'sample=3'
// HELP:    --validate[=samples=N,seed=S]

func.func @tile(%l: !cute.layout<"(?{div=4},(8,?)):(1,(?{i64},?))">, %c: !cute.coord<"(?,?)">)
    -> (!cute.layout<"(4,?,(8,?)):(1,4,(?{i64},?))">, i1) {
  %t = cute.static : !cute.tile<"[4:1]">
  %d = cute.flat_divide(%l, %t) : (!cute.layout<"(?{div=4},(8,?)):(1,(?{i64},?))">, !cute.tile<"[4:1]">)
    -> !cute.layout<"(4,?,(8,?)):(1,4,(?{i64},?))">
  cute.print(%d) : !cute.layout<"(4,?,(8,?)):(1,4,(?{i64},?))">
  %s = cute.get_shape(%l) : !cute.layout<"(?{div=4},(8,?)):(1,(?{i64},?))"> -> !cute.shape<"(?{div=4},(8,?))">
  %z = cute.tuple_product_each(%s) : (!cute.shape<"(?{div=4},(8,?))">) -> !cute.shape<"(?{div=4},?{div=8})">
  %in = cute.elem_less(%c, %z) : (!cute.coord<"(?,?)">, !cute.shape<"(?{div=4},?{div=8})">) -> i1
  return %d, %in : !cute.layout<"(4,?,(8,?)):(1,4,(?{i64},?))">, i1
}

// expected-remark @+1 {{@memory is not validated: an argument of type !llvm.ptr}}
func.func @memory(%p: !llvm.ptr) -> f32 {
  %x = llvm.load %p : !llvm.ptr -> f32
  return %x : f32
}

// expected-remark @+1 {{@never is not validated: it is undefined, or runs for too long, on every sample}}
func.func @never(%n: i32) -> i32 {
  %no = arith.constant false
  cf.assert %no, "never"
  return %n : i32
}
