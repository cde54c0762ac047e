// RUN: cute-opt %s --cute-to-base --verify-legality | FileCheck %s

// A kernel keeps what its arguments promised; an argument that holds nothing is dropped, here and where it is launched.
// CHECK-LABEL: llvm.func @k
// CHECK-SAME:    (%{{.*}}: !llvm.struct<(ptr<1>, struct<(i32, struct<()>)>)>, %{{.*}}: i32)
// CHECK-DAG:     gpu.kernel
// CHECK-DAG:     nvvm.kernel
// CHECK-DAG:     nvvm.reqntid = array<i32: 64, 1, 1>
// CHECK-DAG:     cute.args = ["!cute.memref<f32, gmem, \22(?):(1)\22>", "i32"]
// CHECK-DAG:     cute.names = ["first", "n_1"]
// CHECK:         llvm.return
// CHECK-LABEL: func.func @launch
// CHECK:         gpu.launch_func @m::@k
// CHECK-SAME:      args(%{{.*}} : !llvm.struct<(ptr<1>, struct<(i32, struct<()>)>)>, %{{.*}} : i32)
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k(%t: !cute.memref<f32, gmem, "(?):(1)">, %s: !cute.shape<"4">, %n: i32) kernel attributes {known_block_size = array<i32: 64, 1, 1>, cute.names = ["first", "none", "n_1"]} {
      gpu.return
    }
  }
  func.func @launch(%t: !cute.memref<f32, gmem, "(?):(1)">, %n: i32) {
    %s = cute.static : !cute.shape<"4">
    %c = arith.constant 64 : i32
    %one = arith.constant 1 : i32
    gpu.launch_func @m::@k blocks in (%n, %one, %one) threads in (%c, %one, %one) : i32 args(%t : !cute.memref<f32, gmem, "(?):(1)">, %s : !cute.shape<"4">, %n : i32)
    return
  }
}
