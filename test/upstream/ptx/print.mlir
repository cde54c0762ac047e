// cute.print in a kernel is lowered to gpu.printf, then to vprintf with a buffer of arguments in LLVM and PTX.

// REQUIRES: mlir

// RUN: cute-opt %s --pipeline=base | FileCheck %s --check-prefix=BASE
// RUN: cute-opt %s --pipeline --emit=llvm | FileCheck %s --check-prefix=LLVM
// RUN: cute-opt %s --pipeline --emit=ptx | FileCheck %s --check-prefix=PTX

// BASE-LABEL: llvm.func @k(
// BASE:         gpu.printf "(_,%d)\0A", %{{.*}} : i32
// BASE:         gpu.printf "(%d,(8,%lld)):(1,(%d,%lld))\0A", %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : i32, i64, i32, i64
// BASE:         gpu.printf "S<2,3,3> o %d o (8,%d):(1,%lld)\0A", %{{.*}}, %{{.*}}, %{{.*}} : i32, i32, i64
// BASE:         gpu.printf "S<2,3,3>\0A"
// BASE-NOT:     cute.print
// BASE-NOT:     @printf

// LLVM-DAG: c"(_,%d)\0A\00"
// LLVM-DAG: c"(%d,(8,%lld)):(1,(%d,%lld))\0A\00"
// LLVM-DAG: declare i32 @vprintf(ptr, ptr)

// PTX:         .extern .func (.param .b32 func_retval0) vprintf
// PTX-LABEL:   .visible .entry k(
// PTX:         mov.u32 %[[T:r[0-9]+]], %tid.x;
// PTX:         st.local.b32 [{{.*}}], %[[T]];
// PTX-COUNT-4: call.uni (retval0), vprintf, (param0, param1);
// PTX-NOT:     vprintf
// PTX:         ret;
gpu.module @m {
  gpu.func @k(%l: !cute.layout<"(?,(8,?{i64})):(1,(?,?{i64}))">, %o: i32, %b: !cute.layout<"(8,?):(1,?{i64})">) kernel {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c = cute.make_coord(%t) : (i32) -> !cute.coord<"(_,?)">
    cute.print(%c) : !cute.coord<"(_,?)">
    cute.print(%l) : !cute.layout<"(?,(8,?{i64})):(1,(?,?{i64}))">
    %w = cute.static : !cute.swizzle<"S<2,3,3>">
    %x = cute.make_int_tuple(%o) : (i32) -> !cute.int_tuple<"?">
    %a = cute.make_composed_layout(%w, %x, %b)
      : (!cute.swizzle<"S<2,3,3>">, !cute.int_tuple<"?">, !cute.layout<"(8,?):(1,?{i64})">)
        -> !cute.composed_layout<"S<2,3,3> o ? o (8,?):(1,?{i64})">
    cute.print(%a) : !cute.composed_layout<"S<2,3,3> o ? o (8,?):(1,?{i64})">
    cute.print(%w) : !cute.swizzle<"S<2,3,3>">
    gpu.return
  }
}
