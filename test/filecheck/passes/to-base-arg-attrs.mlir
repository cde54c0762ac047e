// RUN: cute-opt %s --cute-to-base | FileCheck %s
// RUN: cute-opt %s --pass-pipeline='builtin.module(gpu.module(cute-to-base))' | FileCheck %s

// Attributes of arguments stay with their arguments, also when an argument before them is dropped because it is empty.
gpu.module @m {
  // CHECK: llvm.func @k(%{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: i32) attributes
  gpu.func @k(%s: !cute.shape<"4"> {llvm.inreg}, %p: !llvm.ptr {llvm.noalias}, %n: i32) kernel {
    gpu.return
  }
  // CHECK: llvm.func @f(%{{.*}}: i32, %{{.*}}: i64 {llvm.signext})
  gpu.func @f(%n: i32, %m: i64 {llvm.signext}) {
    gpu.return
  }
}
