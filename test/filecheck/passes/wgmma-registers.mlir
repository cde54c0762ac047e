// RUN: cute-opt %s --cute-wgmma-registers --verify-legality | FileCheck %s

!s = !llvm.struct<(f32, f32, f32, f32)>
module attributes {gpu.container_module} {
  gpu.module @m {
    // No two structs live at a time: they are registers, which the loop does not carry.
    // CHECK-LABEL: llvm.func @web
    // CHECK-NEXT:  llvm.inline_asm has_side_effects {{.*}}".reg .f32 %acc0_<4>;", "" : () -> ()
    // CHECK-NOT:   llvm.mlir.undef
    // CHECK:       llvm.inline_asm has_side_effects {{.*}}"{\0A.reg .pred p;\0Asetp.ne.b32 p, 0, 0;\0Awgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%acc0_0, %acc0_1, %acc0_2, %acc0_3}, $0, $1, p, 1, 1, 0, 0;\0Asetp.ne.b32 p, 1, 0;\0Awgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%acc0_0, %acc0_1, %acc0_2, %acc0_3}, $2, $3, p, 1, 1, 0, 0;\0A}", "l,l,l,l" %arg1, %arg2, %arg2, %arg1 : (i64, i64, i64, i64) -> ()
    // CHECK:       %[[I:.*]] = scf.for %{{.*}} = %arg1 to %arg2 step %arg1 iter_args(%{{.*}} = %arg1) -> (i64) : i64 {
    // CHECK-NEXT:    llvm.inline_asm has_side_effects {{.*}}{%acc0_0, %acc0_1, %acc0_2, %acc0_3}, $0, $1, p, 1, 1, 0, 0;\0A}", "l,l"
    // CHECK:         scf.yield %{{[a-z0-9]*}} : i64
    // CHECK:       %[[W:.*]] = llvm.inline_asm has_side_effects {{.*}}"wgmma.wait_group.sync.aligned 0;\0Amov.b32 $0, %acc0_0;\0Amov.b32 $1, %acc0_1;\0Amov.b32 $2, %acc0_2;\0Amov.b32 $3, %acc0_3;", "=f,=f,=f,=f" : () -> !llvm.struct<(f32, f32, f32, f32)>
    // CHECK-NEXT:  %[[X:.*]] = llvm.extractvalue %[[W]][0]
    // CHECK-NEXT:  llvm.store %[[X]]
    // CHECK-NEXT:  llvm.store %[[I]]
    llvm.func @web(%o: !llvm.ptr<1>, %a: i64, %b: i64) attributes {gpu.kernel, nvvm.kernel} {
      %u = llvm.mlir.undef : !s
      %d0 = nvvm.wgmma.mma_async %a, %b, %u, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, <zero>], A [<f16>, <one>, <row>], B [<f16>, <one>, <col>] : !s -> !s
      %d1 = nvvm.wgmma.mma_async %b, %a, %d0, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, <one>], A [<f16>, <one>, <row>], B [<f16>, <one>, <col>] : !s -> !s
      nvvm.wgmma.commit.group.sync.aligned
      %r:2 = scf.for %i = %a to %b step %a iter_args(%d = %d1, %j = %a) -> (!s, i64) : i64 {
        %d2 = nvvm.wgmma.mma_async %b, %a, %d, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, <one>], A [<f16>, <one>, <row>], B [<f16>, <one>, <col>] : !s -> !s
        nvvm.wgmma.commit.group.sync.aligned
        %k = arith.addi %j, %i : i64
        scf.yield %d2, %k : !s, i64
      }
      %t0 = llvm.extractvalue %r#0[0] : !s
      %t1 = llvm.extractvalue %r#0[1] : !s
      %t2 = llvm.extractvalue %r#0[2] : !s
      %t3 = llvm.extractvalue %r#0[3] : !s
      %w = llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;", "=f,=f,=f,=f,0,1,2,3" %t0, %t1, %t2, %t3 : (f32, f32, f32, f32) -> !s
      %x = llvm.extractvalue %w[0] : !s
      llvm.store %x, %o : f32, !llvm.ptr<1>
      llvm.store %r#1, %o : i64, !llvm.ptr<1>
      llvm.return
    }

    // The accumulators come from outside: no registers of the kernel's, but the two instructions are one op.
    // CHECK-LABEL: llvm.func @chain
    // CHECK-NOT:   %acc
    // CHECK:       %[[C:.*]] = llvm.extractvalue %arg3[0]
    // CHECK:       llvm.inline_asm has_side_effects {{.*}}{$0, $1, $2, $3}, $8, $9, p, 1, 1, 0, 0;\0Awgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, $10, $11, p, 1, 1, 0, 0;\0A}", "=f,=f,=f,=f,0,1,2,3,l,l,l,l" %[[C]],
    // CHECK-NOT:   nvvm.wgmma.mma_async
    llvm.func @chain(%o: !llvm.ptr<1>, %a: i64, %b: i64, %c: !s) attributes {gpu.kernel, nvvm.kernel} {
      %d0 = nvvm.wgmma.mma_async %a, %b, %c, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, <one>], A [<f16>, <one>, <row>], B [<f16>, <one>, <col>] : !s -> !s
      %d1 = nvvm.wgmma.mma_async %b, %a, %d0, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, <one>], A [<f16>, <one>, <row>], B [<f16>, <one>, <col>] : !s -> !s
      llvm.store %d1, %o : !s, !llvm.ptr<1>
      llvm.return
    }

    // Two structs live at a time, and nothing follows directly: it stays as it is.
    // CHECK-LABEL: llvm.func @neither
    // CHECK-COUNT-2: nvvm.wgmma.mma_async
    // CHECK-NOT:   inline_asm
    llvm.func @neither(%o: !llvm.ptr<1>, %a: i64, %b: i64, %c: !s) attributes {gpu.kernel, nvvm.kernel} {
      %d0 = nvvm.wgmma.mma_async %a, %b, %c, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, <one>], A [<f16>, <one>, <row>], B [<f16>, <one>, <col>] : !s -> !s
      llvm.store %d0, %o : !s, !llvm.ptr<1>
      %d1 = nvvm.wgmma.mma_async %b, %a, %d0, #nvvm.shape<m = 64, n = 8, k = 16>, D [<f32>, <one>], A [<f16>, <one>, <row>], B [<f16>, <one>, <col>] : !s -> !s
      llvm.store %d1, %o : !s, !llvm.ptr<1>
      llvm.return
    }
  }
}
