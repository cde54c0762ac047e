// RUN: cute-opt %s --verify-roundtrip -o - | FileCheck %s
// RUN: cute-opt %s --pipeline=base | FileCheck %s --check-prefix=BASE
// RUN: %if mlir %{ cute-opt %s --pipeline=nvptx=chip=sm_100a --emit=ptx | FileCheck %s --check-prefix=PTX %}
// RUN: %if ptxas %{ cute-opt %s --pipeline=nvptx=chip=sm_100a --emit=cubin -o /dev/null %}

// The kinds of tcgen05.mma, with A in shared and in tensor memory. The instruction descriptor holds types, majors and
// shape; the matrix descriptors have version 1 (bit 46) and the code 2 of the 128-byte swizzle (bit 62).

!f16 = !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f16,f16,f16,f16)>
!bf16 = !cute_nvgpu.atom.tcgen05_mma<64x8x16, (f32,bf16,bf16,f32), A = smem, major = (mn, k), negate_b>
!bf16_ts = !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,bf16,bf16,f32), A = tmem>
!tf32 = !cute_nvgpu.atom.tcgen05_mma<128x64x8, (f32,tf32,tf32,f32), A = smem, major = (k, mn)>
!fp8 = !cute_nvgpu.atom.tcgen05_mma<128x64x32, (f32,f8E4M3FN,f8E5M2,f32), A = smem, major = (k, mn)>
!fp4 = !cute_nvgpu.atom.tcgen05_mma<128x64x32, (f32,f4E2M1FN,f6E3M2FN,f32)>
!i8 = !cute_nvgpu.atom.tcgen05_mma<64x64x32, (i32,i8,i8,i32), A = smem, major = (k, k), saturate>

gpu.module @m {
  // CHECK-LABEL: gpu.func @kinds
  // BASE-LABEL:  llvm.func @kinds
  // PTX-LABEL:   .entry kinds
  gpu.func @kinds(%slot: !cute.ptr<i32, smem>, %bar: !cute.ptr<i64, smem>, %lanes: vector<4xi32>, %flag: i1, %mask: i16) kernel {
    %p = cute_nvgpu.arch.tmem_pointer(%slot) : (!cute.ptr<i32, smem>) -> !cute.ptr<f32, tmem, align<128>>

    // f16 -> f16: one accumulator per column.  0x08100000: D f16, N 64, M 128.
    %p16 = cute.recast_iter(%p) : !cute.ptr<f32, tmem, align<128>> to !cute.ptr<f16, tmem, align<128>>
    %l16 = cute.static : !cute.layout<"(128,64):(131072,2)">
    %d16 = cute.make_view(%p16, %l16) : !cute.memref<f16, tmem, align<128>, "(128,64):(131072,2)">
    %ha = cute.memref.alloc_smem() : !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">
    %hb = cute.memref.alloc_smem() : !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">
    // CHECK: cute_nvgpu.arch.tcgen05_mma(%{{.*}}, %{{.*}}, %{{.*}}) {accumulate = false, atom = !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f16,f16,f16,f16), A = smem, major = (k, k)>}
    // BASE:  arith.constant 135266304 : i32
    // BASE:  llvm.call_intrinsic "llvm.nvvm.tcgen05.mma.shared"(%{{.*}}) : (!llvm.ptr<6>, i64, i64, i32, i1, i32, i32, i32) -> ()
    // PTX:   tcgen05.mma.cta_group::1.kind::f16.collector::a::discard
    cute_nvgpu.arch.tcgen05_mma(%d16, %ha, %hb) {accumulate = false, atom = !f16} : (!cute.memref<f16, tmem, align<128>, "(128,64):(131072,2)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">) -> ()

    // bf16, A mn-major, B negated, 64 rows: half of the lanes.  0x0402c490.
    %l64 = cute.static : !cute.layout<"((16,4),8):((65536,2097152),1)">
    %d64 = cute.make_view(%p, %l64) : !cute.memref<f32, tmem, align<128>, "((16,4),8):((65536,2097152),1)">
    %ba = cute.memref.alloc_smem() : !cute.memref<bf16, smem, align<1024>, S<3,4,3>, "(64,16):(1,64)">
    %bb = cute.memref.alloc_smem() : !cute.memref<bf16, smem, align<1024>, S<3,4,3>, "(8,16):(64,1)">
    // CHECK: tcgen05_mma<64x8x16, (f32,bf16,bf16,f32), A = smem, major = (mn, k), negate_b>
    // BASE:  arith.constant 67290256 : i32
    // BASE:  "llvm.nvvm.tcgen05.mma.shared.scale_d.disable_output_lane.cg1"(%{{.*}}) : (!llvm.ptr<6>, i64, i64, i32, i1, i64, vector<4xi32>, i32, i32) -> ()
    // PTX:   tcgen05.mma.cta_group::1.kind::f16
    cute_nvgpu.arch.tcgen05_mma(%d64, %ba, %bb, %lanes, %flag) {accumulate = true, scale_d = 3 : i32, atom = !bf16} : (!cute.memref<f32, tmem, align<128>, "((16,4),8):((65536,2097152),1)">, !cute.memref<bf16, smem, align<1024>, S<3,4,3>, "(64,16):(1,64)">, !cute.memref<bf16, smem, align<1024>, S<3,4,3>, "(8,16):(64,1)">, vector<4xi32>, i1) -> ()

    // A in tensor memory: two elements per column.
    %l = cute.static : !cute.layout<"(128,64):(65536,1)">
    %d = cute.make_view(%p, %l) : !cute.memref<f32, tmem, align<128>, "(128,64):(65536,1)">
    %pa = cute.recast_iter(%p) : !cute.ptr<f32, tmem, align<128>> to !cute.ptr<bf16, tmem, align<128>>
    %o = cute.static : !cute.int_tuple<"256">
    %pa1 = cute.add_offset(%pa, %o) : (!cute.ptr<bf16, tmem, align<128>>, !cute.int_tuple<"256">) -> !cute.ptr<bf16, tmem, align<128>>
    %la = cute.static : !cute.layout<"(128,16):(131072,1)">
    %ta = cute.make_view(%pa1, %la) : !cute.memref<bf16, tmem, align<128>, "(128,16):(131072,1)">
    %tb = cute.memref.alloc_smem() : !cute.memref<bf16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">
    // CHECK: tcgen05_mma<128x64x16, (f32,bf16,bf16,f32), A = tmem, major = (k, k)>
    // BASE:  llvm.getelementptr %{{.*}}[128] : (!llvm.ptr<6>) -> !llvm.ptr<6>, i8
    // BASE:  "llvm.nvvm.tcgen05.mma.tensor"(%{{.*}}) : (!llvm.ptr<6>, !llvm.ptr<6>, i64, i32, i1, i32, i32, i32) -> ()
    // PTX:   tcgen05.mma.cta_group::1.kind::f16.collector::a::fill
    cute_nvgpu.arch.tcgen05_mma(%d, %ta, %tb) {accumulate = true, collector = "fill", atom = !bf16_ts} : (!cute.memref<f32, tmem, align<128>, "(128,64):(65536,1)">, !cute.memref<bf16, tmem, align<128>, "(128,16):(131072,1)">, !cute.memref<bf16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">) -> ()

    // tf32: B is mn-major with the swizzle in units of 32 bytes, code 1 in bit 61.
    %fa = cute.memref.alloc_smem() : !cute.memref<f32, smem, align<1024>, S<3,4,3>, "(128,8):(32,1)">
    %fb = cute.memref.alloc_smem() : !cute.memref<f32, smem, align<1024>, S<2,5,2>, "((32,2),(4,2)):((1,256),(32,128))">
    // BASE:  arith.constant 135334160 : i32
    // PTX:   tcgen05.mma.cta_group::1.kind::tf32
    cute_nvgpu.arch.tcgen05_mma(%d, %fa, %fb) {accumulate = true, atom = !tf32} : (!cute.memref<f32, tmem, align<128>, "(128,64):(65536,1)">, !cute.memref<f32, smem, align<1024>, S<3,4,3>, "(128,8):(32,1)">, !cute.memref<f32, smem, align<1024>, S<2,5,2>, "((32,2),(4,2)):((1,256),(32,128))">) -> ()

    // 8-bit floats, B mn-major.
    %ea = cute.memref.alloc_smem() : !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(128,32):(128,1)">
    %eb = cute.memref.alloc_smem() : !cute.memref<f8E5M2, smem, align<1024>, S<2,4,3>, "(64,32):(1,64)">
    // PTX:   tcgen05.mma.cta_group::1.kind::f8f6f4
    cute_nvgpu.arch.tcgen05_mma(%d, %ea, %eb) {accumulate = true, atom = !fp8} : (!cute.memref<f32, tmem, align<128>, "(128,64):(65536,1)">, !cute.memref<f8E4M3FN, smem, align<1024>, S<3,4,3>, "(128,32):(128,1)">, !cute.memref<f8E5M2, smem, align<1024>, S<2,4,3>, "(64,32):(1,64)">) -> ()

    // Elements of 4 and 6 bits, 16 in 16 bytes.  0x08101290.
    %na = cute.memref.alloc_smem() : !cute.memref<i8, smem, align<1024>, S<3,4,3>, "(128,32):(128,1)">
    %nb = cute.memref.alloc_smem() : !cute.memref<i8, smem, align<1024>, S<3,4,3>, "(64,32):(128,1)">
    // BASE:  arith.constant 135271056 : i32
    // PTX:   tcgen05.mma.cta_group::1.kind::f8f6f4
    cute_nvgpu.arch.tcgen05_mma(%d, %na, %nb) {accumulate = true, atom = !fp4} : (!cute.memref<f32, tmem, align<128>, "(128,64):(65536,1)">, !cute.memref<i8, smem, align<1024>, S<3,4,3>, "(128,32):(128,1)">, !cute.memref<i8, smem, align<1024>, S<3,4,3>, "(64,32):(128,1)">) -> ()

    // Integers, saturating.  0x041004a8.
    %pi = cute.recast_iter(%p) : !cute.ptr<f32, tmem, align<128>> to !cute.ptr<i32, tmem, align<128>>
    %li = cute.static : !cute.layout<"((16,4),64):((65536,2097152),1)">
    %di = cute.make_view(%pi, %li) : !cute.memref<i32, tmem, align<128>, "((16,4),64):((65536,2097152),1)">
    %ia = cute.memref.alloc_smem() : !cute.memref<i8, smem, align<1024>, S<3,4,3>, "(64,32):(128,1)">
    // BASE:  arith.constant 68158632 : i32
    // PTX:   tcgen05.mma.cta_group::1.kind::i8
    cute_nvgpu.arch.tcgen05_mma(%di, %ia, %nb, %flag) {accumulate = true, atom = !i8} : (!cute.memref<i32, tmem, align<128>, "((16,4),64):((65536,2097152),1)">, !cute.memref<i8, smem, align<1024>, S<3,4,3>, "(64,32):(128,1)">, !cute.memref<i8, smem, align<1024>, S<3,4,3>, "(64,32):(128,1)">, i1) -> ()

    // CHECK: cute_nvgpu.arch.tcgen05_commit(%{{.*}}) : (!cute.ptr<i64, smem>) -> ()
    // BASE:  "llvm.nvvm.tcgen05.commit.shared.cg1"(%{{.*}}) : (!llvm.ptr<3>) -> ()
    // PTX:   tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64
    cute_nvgpu.arch.tcgen05_commit(%bar) : (!cute.ptr<i64, smem>) -> ()
    // BASE:  "llvm.nvvm.tcgen05.commit.mc.shared.cg1"(%{{.*}}) : (!llvm.ptr<3>, i16) -> ()
    // PTX:   tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
    cute_nvgpu.arch.tcgen05_commit(%bar, %mask) : (!cute.ptr<i64, smem>, i16) -> ()
    // CHECK: cute_nvgpu.arch.tcgen05_fence() {kind = "before"} : () -> ()
    // BASE:  "llvm.nvvm.tcgen05.fence.before.thread.sync"() : () -> ()
    // PTX:   tcgen05.fence::before_thread_sync;
    cute_nvgpu.arch.tcgen05_fence() {kind = "before"} : () -> ()
    // BASE:  "llvm.nvvm.tcgen05.fence.after.thread.sync"() : () -> ()
    // PTX:   tcgen05.fence::after_thread_sync;
    cute_nvgpu.arch.tcgen05_fence() {kind = "after"} : () -> ()
    gpu.return
  }
}
