// RUN: cute-opt %s --verify-roundtrip -o - | FileCheck %s
// RUN: %if mlir %{ cute-opt %s --pipeline=nvptx=chip=sm_100a --emit=ptx | FileCheck %s --check-prefix=PTX %}
// RUN: %if ptxas %{ cute-opt %s --pipeline=nvptx=chip=sm_103f --emit=cubin -o /dev/null %}

// Instructions of a pair of blocks. Each block holds half of the rows of A and D, and half of the rows of B. With 128 rows,
// the halves of the columns of D are in the lanes from 0 and from 64 on.
// CHECK: tcgen05_mma<256x64x16, (f32,f16,f16,f32), A = smem, major = (k, k), cta_group = 2>
// PTX:   tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32
// PTX:   tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
// PTX-COUNT-2: tcgen05.mma.cta_group::2.kind::f16.collector::a::discard
// PTX:   tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
// PTX:   tcgen05.dealloc.cta_group::2.sync.aligned.b32
!mma = !cute_nvgpu.atom.tcgen05_mma<256x64x16, (f32,f16,f16,f32), cta_group = 2>
!mma128 = !cute_nvgpu.atom.tcgen05_mma<128x64x16, (f32,f16,f16,f32), cta_group = 2>
!d = !cute.memref<f32, tmem, align<128>, "(128,64):(65536,1)">
!d2 = !cute.memref<f32, tmem, align<128>, "(64,(32,2)):(65536,(1,4194304))">
!a = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(128,16):(64,1)">
!a2 = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">
!b = !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(32,16):(64,1)">
gpu.module @m {
  gpu.func @pair(%s: !cute.ptr<i32, smem>, %bar: !cute.ptr<i64, smem>, %mask: i16, %lanes: vector<8xi32>) kernel {
    cute_nvgpu.arch.tmem_alloc(%s) {columns = 64 : i32, cta_group = 2 : i32} : (!cute.ptr<i32, smem>) -> ()
    cute_nvgpu.arch.tmem_relinquish() {cta_group = 2 : i32} : () -> ()
    cute_nvgpu.arch.barrier() : () -> ()
    %p = cute_nvgpu.arch.tmem_pointer(%s) : (!cute.ptr<i32, smem>) -> !cute.ptr<f32, tmem, align<128>>
    %l = cute.static : !cute.layout<"(128,64):(65536,1)">
    %d = cute.make_view(%p, %l) : !d
    %l2 = cute.static : !cute.layout<"(64,(32,2)):(65536,(1,4194304))">
    %d2 = cute.make_view(%p, %l2) : !d2
    %a = cute.memref.alloc_smem() : !a
    %a2 = cute.memref.alloc_smem() : !a2
    %b = cute.memref.alloc_smem() : !b
    cute_nvgpu.arch.tcgen05_mma(%d, %a, %b, %lanes) {accumulate = false, atom = !mma} : (!d, !a, !b, vector<8xi32>) -> ()
    cute_nvgpu.arch.tcgen05_mma(%d2, %a2, %b) {accumulate = true, atom = !mma128} : (!d2, !a2, !b) -> ()
    cute_nvgpu.arch.tcgen05_commit(%bar, %mask) {cta_group = 2 : i32} : (!cute.ptr<i64, smem>, i16) -> ()
    cute_nvgpu.arch.tmem_dealloc(%p) {columns = 64 : i32, cta_group = 2 : i32} : (!cute.ptr<f32, tmem, align<128>>) -> ()
    gpu.return
  }
}
