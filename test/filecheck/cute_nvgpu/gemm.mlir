// RUN: cute-opt %s --convert-cute-algo-to-arch --verify-legality | FileCheck %s --check-prefix=ARCH
// RUN: cute-opt %s --convert-cute-algo-to-arch --cute-to-base --verify-legality | FileCheck %s --check-prefix=BASE

!f16 = !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>
!d = !cute.memref<f32, rmem, align<32>, "((2,2),2,2):((1,2),4,8)">
!a = !cute.memref<f16, rmem, align<32>, "((2,2,2),2,2):((1,2,4),8,16)">
!b = !cute.memref<f16, rmem, align<32>, "((2,2),2,2):((1,2),4,8)">

// k by k, (m, n) in serpentine order: 00 01 11 10; a view is made once.
// ARCH-LABEL: func.func @serpentine
// ARCH-DAG:     %[[D00:.*]] = cute.make_view(%{{.*}}, %{{.*}}) : !cute.memref<f32, rmem, align<32>, "(2,2):(1,2)">
// ARCH:         cute_nvgpu.arch.mma_sync(%[[D0:.*]], %[[A0:.*]], %[[B0:.*]], %[[Z:.*]]) {atom = !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>}
// ARCH:         cute_nvgpu.arch.mma_sync(%[[D1:.*]], %[[A0]], %[[B1:.*]], %[[Z]])
// ARCH:         cute_nvgpu.arch.mma_sync(%[[D3:.*]], %[[A1:.*]], %[[B1]], %[[Z]])
// ARCH:         cute_nvgpu.arch.mma_sync(%[[D2:.*]], %[[A1]], %[[B0]], %[[Z]])
// ARCH:         cute_nvgpu.arch.mma_sync(%[[D0]], %{{.*}}, %{{.*}}, %[[D0]])
// ARCH-COUNT-3: cute_nvgpu.arch.mma_sync(
// ARCH-NOT:     cute_nvgpu.arch.mma_sync(
// ARCH:         return

// Registers pass from product to product; a vector that is loaded whole is cut into registers by a bitcast.
// BASE-LABEL: func.func @serpentine
// BASE:         %[[A:.*]] = llvm.bitcast %{{.*}} : vector<32xf16> to vector<16xi32>
// BASE:         %[[R0:.*]] = nvvm.mma.sync A[{{.*}}] B[{{.*}}] C[{{.*}}] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)>
// BASE-COUNT-7: nvvm.mma.sync
// BASE-NOT:     llvm.alloca
// BASE:         return
func.func @serpentine(%va: vector<32xf16>, %vb: vector<16xf16>) -> vector<16xf32> {
  %mma = cute.atom() : !f16
  %d = cute.memref.alloca() : !d
  %a = cute.memref.alloca() : !a
  %b = cute.memref.alloca() : !b
  cute.memref.store_vec %va, %a : !a
  cute.memref.store_vec %vb, %b : !b
  cute.gemm(%mma, %d, %a, %b) : (!f16, !d, !a, !b) -> ()
  %r = cute.memref.load_vec %d : !d
  return %r : vector<16xf32>
}

!fma = !cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f32)>
!m = !cute.memref<f32, rmem, align<8>, "2:1">
!mn = !cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">

// BASE-LABEL:  func.func @outer_product
// BASE-COUNT-4: llvm.intr.fma(%{{.*}}, %{{.*}}, %{{.*}}) : (f32, f32, f32) -> f32
// BASE-NOT:     llvm.intr.fma
// BASE:         return
func.func @outer_product(%va: vector<2xf32>, %vb: vector<2xf32>) -> vector<4xf32> {
  %mma = cute.atom() : !fma
  %d = cute.memref.alloca() : !mn
  %a = cute.memref.alloca() : !m
  %b = cute.memref.alloca() : !m
  cute.memref.store_vec %va, %a : !m
  cute.memref.store_vec %vb, %b : !m
  cute.gemm(%mma, %d, %a, %b) : (!fma, !mn, !m, !m) -> ()
  %r = cute.memref.load_vec %d : !mn
  return %r : vector<4xf32>
}

!tiled = !cute.tiled_mma<!f16, atom_layout_MNK = <"(2,2,1):(1,2,0)">>

// What a tiled MMA knows is in its type.
// ARCH-LABEL: func.func @queries
// ARCH-DAG:     cute.static : !cute.layout<"(32,2,2,1):(1,32,64,0)">
// ARCH-DAG:     cute.static : !cute.shape<"(32,16,16)">
// ARCH-DAG:     cute.static : !cute.layout<"((4,8,2,2),((2,2),(1,1))):((64,1,16,256),((32,8),(32,512)))">
// ARCH:         return
func.func @queries() -> (!cute.layout<"(32,2,2,1):(1,32,64,0)">, !cute.shape<"(32,16,16)">, !cute.layout<"((4,8,2,2),((2,2),(1,1))):((64,1,16,256),((32,8),(32,512)))">) {
  %a = cute.atom() : !f16
  %mma = cute.make_tiled_mma(%a) : !tiled
  %t = cute.tiled.mma.thr_layout_vmnk(%mma) : (!tiled) -> !cute.layout<"(32,2,2,1):(1,32,64,0)">
  %s = cute.tiled.mma.tile_shape_mnk(%mma) : (!tiled) -> !cute.shape<"(32,16,16)">
  %c = cute.tiled.mma.layout_C_tv(%mma) : (!tiled) -> !cute.layout<"((4,8,2,2),((2,2),(1,1))):((64,1,16,256),((32,8),(32,512)))">
  return %t, %s, %c : !cute.layout<"(32,2,2,1):(1,32,64,0)">, !cute.shape<"(32,16,16)">, !cute.layout<"((4,8,2,2),((2,2),(1,1))):((64,1,16,256),((32,8),(32,512)))">
}
