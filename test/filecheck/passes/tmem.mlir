// Tensor memory: pointers and tensors of it are values like others; what it holds is not for threads to load.
// RUN: cute-opt %s --verify-roundtrip --split-input-file --verify-diagnostics -o - | FileCheck %s
// RUN: cute-opt %s --split-input-file --cute-expand-ops --convert-cute-algo-to-arch --cute-to-base --verify-diagnostics -o - | FileCheck %s --check-prefix=BASE

!p = !cute.ptr<f32, tmem, align<16>>
!t = !cute.memref<f32, tmem, align<16>, "(128,64):(65536,1)">
// CHECK: func.func @views(%{{.*}}: !cute.memref<f32, tmem, align<16>, "(128,64):(65536,1)">, %{{.*}}: !cute.ptr<f32, tmem>) -> !cute.ptr<f32, tmem, align<16>>
// BASE: func.func @views(%{{.*}}: !llvm.struct<(ptr<6>, struct<(struct<()>, struct<()>)>)>, %{{.*}}: !llvm.ptr<6>) -> !llvm.ptr<6>
func.func @views(%t: !t, %q: !cute.ptr<f32, tmem>) -> !p {
  %o = cute.static : !cute.int_tuple<"4">
  %it = cute.get_iter(%t) : !t
  // CHECK: cute.add_offset(%{{.*}}, %{{.*}}) : (!cute.ptr<f32, tmem, align<16>>, !cute.int_tuple<"4">) -> !cute.ptr<f32, tmem, align<16>>
  // BASE: llvm.getelementptr %{{.*}}[4] : (!llvm.ptr<6>) -> !llvm.ptr<6>, i8
  %r = cute.add_offset(%it, %o) : (!p, !cute.int_tuple<"4">) -> !p
  %c = cute.make_coord() : () -> !cute.coord<"(_,3)">
  // CHECK: cute.slice(%{{.*}}, %{{.*}}) : !cute.memref<f32, tmem, align<16>, "(128,64):(65536,1)">
  %s = cute.slice(%t, %c) : !t, !cute.coord<"(_,3)">
  return %r : !p
}

// -----

!t = !cute.memref<f32, tmem, "4:1">
func.func @load(%t: !t, %c: !cute.coord<"?">) {
  // expected-error @below {{expected a tensor that threads can load and store; only tcgen05 instructions access tensor memory, got !cute.memref<f32, tmem, "4:1">}}
  %v = cute.memref.load(%t, %c) : (!t, !cute.coord<"?">) -> f32
  return
}

// -----

!t = !cute.memref<f32, tmem, "4:1">
func.func @vector(%t: !t, %v: vector<4xf32>) {
  // expected-error @below {{expected a tensor that threads can load and store; only tcgen05 instructions access tensor memory, got !cute.memref<f32, tmem, "4:1">}}
  cute.memref.store_vec %v, %t : !t
  return
}

// -----

// expected-error @below {{a swizzle needs an smem pointer, got tmem}}
func.func private @swizzled(!cute.ptr<f32, tmem, align<1024>, S<3,4,3>>)
