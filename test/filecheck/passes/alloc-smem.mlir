// RUN: cute-opt %s --split-input-file --cute-to-base --verify-legality | FileCheck %s

// Buffers in the order of the program, each at its alignment, in one static segment.
// CHECK:       llvm.mlir.global internal @k__smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<3088 x i8>
// CHECK:       llvm.func @k
// CHECK-NOT:   cute.dynamic_smem
// CHECK:         %[[BASE:.*]] = llvm.mlir.addressof @k__smem : !llvm.ptr<3>
// CHECK:         llvm.getelementptr %[[BASE]][2048] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
// CHECK:         llvm.getelementptr %[[BASE]][3072] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
gpu.module @m {
  gpu.func @k() kernel {
    %a = cute.memref.alloc_smem() : !cute.memref<f32, smem, align<16>, "(17,20):(20,1)">
    %b = cute.memref.alloc_smem() : !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(8,64):(64,1)">
    %bars = cute.memref.alloc_smem() : !cute.memref<i64, smem, "2:1">
    gpu.return
  }
}

// -----

// More than 48 KiB: dynamic shared memory; smem_base is what the launch asks for after it.
// CHECK:       llvm.mlir.global external @k__dynamic_smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
// CHECK:       llvm.func @k{{.*}}cute.dynamic_smem = 50176 : i64
// CHECK:         %[[BASE:.*]] = llvm.mlir.addressof @k__dynamic_smem : !llvm.ptr<3>
// CHECK:         llvm.getelementptr %[[BASE]][50176] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
gpu.module @m {
  gpu.func @k() kernel {
    %a = cute.memref.alloc_smem() : !cute.memref<i8, smem, "50000:1">
    %p = cute.smem_base() : !cute.ptr<i8, smem, align<1024>>
    gpu.return
  }
}
