// A kernel in xDSL's own program.  xDSL's gpu dialect reads the generic form; nvvm is one of the dialects that xDSL lacks
// and this package brings.

// RUN: xdsl-opt %s -p cute-fold-static,cute-expand-ops,convert-cute-algo-to-arch,canonicalize,cute-to-base,cse,dce > %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: cute-opt %t.mlir --dialects=base --verify-diagnostics

// CHECK:      "gpu.module"() <{sym_name = "m"}> ({
// CHECK-NEXT:   llvm.func @k(%x: !llvm.struct<(ptr<1>, struct<(i32, struct<()>)>)>, %s: i32) attributes {
// CHECK-SAME:     gpu.kernel, nvvm.kernel
// CHECK-DAG:     %[[T:.*]] = nvvm.read.ptx.sreg.tid.x : i32
// CHECK-DAG:     %[[P:.*]] = llvm.extractvalue %x[0]
// CHECK:         %[[W:.*]] = arith.extsi %[[T]] : i32 to i64
// CHECK:         %[[A:.*]] = llvm.getelementptr %[[P]][%[[W]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
// CHECK:         llvm.load %[[A]]
// CHECK:         llvm.store %{{.*}}, %[[A]]
// CHECK:         gpu.printf "(%d,6)\0A", %s : i32
// CHECK-NEXT:    llvm.return
"gpu.module"() <{sym_name = "m"}> ({
  "gpu.func"() <{function_type = (!cute.memref<f32, gmem, align<16>, "?:1">, !cute.shape<"(?,6)">) -> (), kernel}> ({
  ^bb0(%x: !cute.memref<f32, gmem, align<16>, "?:1">, %s: !cute.shape<"(?,6)">):
    %t = "nvvm.read.ptx.sreg.tid.x"() : () -> i32
    %c = cute.make_coord(%t) : (i32) -> !cute.coord<"?">
    %v = cute.memref.load(%x, %c) : (!cute.memref<f32, gmem, align<16>, "?:1">, !cute.coord<"?">) -> f32
    %w = arith.addf %v, %v : f32
    cute.memref.store(%x, %c, %w) : (!cute.memref<f32, gmem, align<16>, "?:1">, !cute.coord<"?">, f32) -> ()
    cute.print(%s) : !cute.shape<"(?,6)">
    "gpu.return"() : () -> ()
  }) {sym_name = "k"} : () -> ()
}) : () -> ()
