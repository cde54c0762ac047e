// RUN: cute-opt %s --verify-roundtrip -o - | FileCheck %s
// RUN: cute-opt %s --pipeline=base | FileCheck %s --check-prefix=BASE
// RUN: %if mlir %{ cute-opt %s --pipeline=nvptx=chip=sm_110f --emit=ptx | FileCheck %s --check-prefix=PTX %}
// RUN: %if ptxas %{ cute-opt %s --pipeline=nvptx=chip=sm_110f --emit=cubin -o /dev/null %}

// Allocation, loads and stores of tensor memory. An address counts columns of 32 bits, so offsets of 16-bit elements are
// halved; a lane is 65536.

!slot = !cute.ptr<i32, smem>
!tmem = !cute.ptr<f32, tmem, align<128>>
!load = !cute_nvgpu.atom.tmem_load<f32, 32x32b, x4>
!load_16 = !cute_nvgpu.atom.tmem_load<f16, 16x64b, x2, pack>
!load_split = !cute_nvgpu.atom.tmem_load<f32, 16x32bx2, x2>
!store = !cute_nvgpu.atom.tmem_store<f32, 16x256b, x1>
!store_16 = !cute_nvgpu.atom.tmem_store<f16, 16x32bx2, x2, unpack>
!store_1 = !cute_nvgpu.atom.tmem_store<f32, 32x32b, x1>

gpu.module @m {
  // CHECK-LABEL: gpu.func @accesses
  // BASE-LABEL:  llvm.func @accesses
  // PTX-LABEL:   .entry accesses
  gpu.func @accesses(%slot: !slot, %out: !cute.memref<f32, gmem, align<16>, "(4,128):(1,4)">, %out_16: !cute.memref<f16, gmem, align<8>, "(4,128):(1,4)">) kernel {
    // CHECK: cute_nvgpu.arch.tmem_alloc(%{{.*}}) {columns = 64 : i32} : (!cute.ptr<i32, smem>) -> ()
    // BASE:  "llvm.nvvm.tcgen05.alloc.shared.cg1"(%{{.*}}) : (!llvm.ptr<3>, i32) -> ()
    // PTX:   tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32
    cute_nvgpu.arch.tmem_alloc(%slot) {columns = 64 : i32} : (!slot) -> ()
    // BASE:  "llvm.nvvm.tcgen05.relinq.alloc.permit.cg1"() : () -> ()
    // PTX:   tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
    cute_nvgpu.arch.tmem_relinquish() : () -> ()
    cute_nvgpu.arch.barrier() : () -> ()
    // BASE:  %[[A:.*]] = llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> i32
    // BASE:  %[[P:.*]] = llvm.inttoptr %[[A]] : i32 to !llvm.ptr<6>
    %p = cute_nvgpu.arch.tmem_pointer(%slot) : (!slot) -> !tmem
    %c3 = arith.constant 3 : i32
    %c127 = arith.constant 127 : i32
    %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
    %warp = cute_nvgpu.arch.warp_id() : () -> i32
    %quarter = arith.andi %warp, %c3 : i32
    %row = arith.andi %tid, %c127 : i32

    // Each warp reads its 32 lanes.
    %l = cute.static : !cute.layout<"(4,32,4):(1,65536,2097152)">
    %t = cute.make_view(%p, %l) : !cute.memref<f32, tmem, align<128>, "(4,32,4):(1,65536,2097152)">
    %at = cute.make_coord(%quarter) : (i32) -> !cute.coord<"(_,_,?)">
    %w = cute.slice(%t, %at) : !cute.memref<f32, tmem, align<128>, "(4,32,4):(1,65536,2097152)">, !cute.coord<"(_,_,?)">
    %r = cute.memref.alloca() : !cute.memref<f32, rmem, align<16>, "4:1">
    // CHECK: cute_nvgpu.arch.tmem_load(%{{.*}}, %{{.*}}) {atom = !cute_nvgpu.atom.tmem_load<f32, 32x32b, x4>}
    // BASE:  %[[W:.*]] = llvm.getelementptr %[[P]][%{{.*}}] : (!llvm.ptr<6>, i32) -> !llvm.ptr<6>, i8
    // BASE:  %[[V:.*]] = llvm.call_intrinsic "llvm.nvvm.tcgen05.ld.32x32b.x4"(%[[W]], %{{.*}}) : (!llvm.ptr<6>, i1) -> vector<4xi32>
    // PTX:   tcgen05.ld.sync.aligned.32x32b.x4.b32
    cute_nvgpu.arch.tmem_load(%w, %r) {atom = !load} : (!cute.memref<f32, tmem, align<128>, "(4,32):(1,65536)">, !cute.memref<f32, rmem, align<16>, "4:1">) -> ()
    // The registers are read only after the wait.
    // BASE-NOT: %[[V]]
    // BASE:  "llvm.nvvm.tcgen05.wait.ld"() : () -> ()
    // BASE:  llvm.extractelement %[[V]]
    // PTX-NOT: st.global
    // PTX:   tcgen05.wait::ld.sync.aligned;
    // PTX:   st.global
    cute_nvgpu.arch.tmem_wait() {kind = "load"} : () -> ()
    %v = cute.memref.load_vec %r : !cute.memref<f32, rmem, align<16>, "4:1">
    %spot = cute.make_coord(%row) : (i32) -> !cute.coord<"(_,?)">
    %mine = cute.slice(%out, %spot) : !cute.memref<f32, gmem, align<16>, "(4,128):(1,4)">, !cute.coord<"(_,?)">
    cute.memref.store_vec %v, %mine : !cute.memref<f32, gmem, align<16>, "(4):(1)">

    // 16-bit elements, one per column: two per register.
    %p16 = cute.recast_iter(%p) : !tmem to !cute.ptr<f16, tmem, align<128>>
    %o = cute.static : !cute.int_tuple<"64">
    %q16 = cute.add_offset(%p16, %o) : (!cute.ptr<f16, tmem, align<128>>, !cute.int_tuple<"64">) -> !cute.ptr<f16, tmem, align<128>>
    %l16 = cute.static : !cute.layout<"(8,16):(2,131072)">
    %t16 = cute.make_view(%q16, %l16) : !cute.memref<f16, tmem, align<128>, "(8,16):(2,131072)">
    %r16 = cute.memref.alloca() : !cute.memref<f16, rmem, align<8>, "4:1">
    // BASE:  llvm.getelementptr %[[P]][32] : (!llvm.ptr<6>) -> !llvm.ptr<6>, i8
    // BASE:  arith.constant true
    // BASE:  %[[V16:.*]] = llvm.call_intrinsic "llvm.nvvm.tcgen05.ld.16x64b.x2"(%{{.*}}) : (!llvm.ptr<6>, i1) -> vector<2xi32>
    // PTX:   tcgen05.ld.sync.aligned.16x64b.x2.pack::16b.b32
    cute_nvgpu.arch.tmem_load(%t16, %r16) {atom = !load_16} : (!cute.memref<f16, tmem, align<128>, "(8,16):(2,131072)">, !cute.memref<f16, rmem, align<8>, "4:1">) -> ()
    // BASE-NOT: %[[V16]]
    // BASE:  "llvm.nvvm.tcgen05.wait.ld"() : () -> ()
    // BASE:  llvm.extractelement %[[V16]]
    cute_nvgpu.arch.tmem_wait() {kind = "load"} : () -> ()
    %v16 = cute.memref.load_vec %r16 : !cute.memref<f16, rmem, align<8>, "4:1">
    %mine_16 = cute.slice(%out_16, %spot) : !cute.memref<f16, gmem, align<8>, "(4,128):(1,4)">, !cute.coord<"(_,?)">
    cute.memref.store_vec %v16, %mine_16 : !cute.memref<f16, gmem, align<8>, "(4):(1)">

    // The shape 16x32bx2 has an offset: the columns that threads 16 to 31 access.
    %ls = cute.static : !cute.layout<"(4,16):(1,65536)">
    %ts = cute.make_view(%p, %ls) : !cute.memref<f32, tmem, align<128>, "(4,16):(1,65536)">
    %r2 = cute.memref.alloca() : !cute.memref<f32, rmem, align<8>, "2:1">
    // BASE:  arith.constant 2 : i64
    // BASE:  "llvm.nvvm.tcgen05.ld.16x32bx2.x2"(%{{.*}}) : (!llvm.ptr<6>, i64, i1) -> vector<2xi32>
    // PTX:   tcgen05.ld.sync.aligned.16x32bx2.x2.b32 {{.*}}, 2;
    cute_nvgpu.arch.tmem_load(%ts, %r2) {atom = !load_split} : (!cute.memref<f32, tmem, align<128>, "(4,16):(1,65536)">, !cute.memref<f32, rmem, align<8>, "2:1">) -> ()
    cute_nvgpu.arch.tmem_wait() {kind = "load"} : () -> ()

    // Stores.
    %l256 = cute.static : !cute.layout<"(8,16):(1,65536)">
    %t256 = cute.make_view(%p, %l256) : !cute.memref<f32, tmem, align<128>, "(8,16):(1,65536)">
    // CHECK: cute_nvgpu.arch.tmem_store(%{{.*}}, %{{.*}}) {atom = !cute_nvgpu.atom.tmem_store<f32, 16x256b, x1>}
    // BASE:  "llvm.nvvm.tcgen05.st.16x256b.x1"(%{{.*}}) : (!llvm.ptr<6>, vector<4xi32>, i1) -> ()
    // PTX:   tcgen05.st.sync.aligned.16x256b.x1.b32
    cute_nvgpu.arch.tmem_store(%r, %t256) {atom = !store} : (!cute.memref<f32, rmem, align<16>, "4:1">, !cute.memref<f32, tmem, align<128>, "(8,16):(1,65536)">) -> ()
    // BASE:  "llvm.nvvm.tcgen05.st.16x32bx2.x2"(%{{.*}}) : (!llvm.ptr<6>, i64, vector<2xi32>, i1) -> ()
    // PTX:   tcgen05.st.sync.aligned.16x32bx2.x2.unpack::16b.b32 [{{.*}}], 4,
    cute_nvgpu.arch.tmem_store(%r16, %t16) {atom = !store_16} : (!cute.memref<f16, rmem, align<8>, "4:1">, !cute.memref<f16, tmem, align<128>, "(8,16):(2,131072)">) -> ()
    %l1 = cute.static : !cute.layout<"32:65536">
    %t1 = cute.make_view(%p, %l1) : !cute.memref<f32, tmem, align<128>, "32:65536">
    %i1 = cute.get_iter(%r2) : !cute.memref<f32, rmem, align<8>, "2:1">
    %one = cute.static : !cute.layout<"1:0">
    %r1 = cute.make_view(%i1, %one) : !cute.memref<f32, rmem, align<8>, "1:0">
    // BASE:  "llvm.nvvm.tcgen05.st.32x32b.x1"(%{{.*}}) : (!llvm.ptr<6>, i32, i1) -> ()
    // PTX:   tcgen05.st.sync.aligned.32x32b.x1.b32
    cute_nvgpu.arch.tmem_store(%r1, %t1) {atom = !store_1} : (!cute.memref<f32, rmem, align<8>, "1:0">, !cute.memref<f32, tmem, align<128>, "32:65536">) -> ()
    // BASE:  "llvm.nvvm.tcgen05.wait.st"() : () -> ()
    // PTX:   tcgen05.wait::st.sync.aligned;
    cute_nvgpu.arch.tmem_wait() {kind = "store"} : () -> ()
    // BASE:  "llvm.nvvm.tcgen05.dealloc.cg1"(%[[P]], %{{.*}}) : (!llvm.ptr<6>, i32) -> ()
    // PTX:   tcgen05.dealloc.cta_group::1.sync.aligned.b32
    cute_nvgpu.arch.tmem_dealloc(%p) {columns = 64 : i32} : (!tmem) -> ()
    gpu.return
  }
}
