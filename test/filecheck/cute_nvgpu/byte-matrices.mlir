// ldmatrix and stmatrix of bytes: transposed, and of packed numbers of 4 and 6 bits.
// RUN: cute-opt %s --pipeline=nvptx=chip=sm_100a --emit=ptx | FileCheck %s
// RUN: cute-opt %s --pipeline=nvptx=chip=sm_120a --emit=ptx | FileCheck %s
// RUN: cute-opt %s --pipeline=nvptx=chip=sm_103f --emit=cubin -o /dev/null
// RUN: cute-opt %s --pipeline=nvptx=chip=sm_120a --emit=cubin -o /dev/null
// REQUIRES: mlir, ptxas

!t1 = !cute_nvgpu.atom.ldsm<val_type = i8, num_matrices = 1, t>
!t1_4 = !cute_nvgpu.atom.ldsm<val_type = i8, num_matrices = 1, t, from = b4x16_p64>
!t1_6 = !cute_nvgpu.atom.ldsm<val_type = i8, num_matrices = 1, t, from = b6x16_p32>
!t2 = !cute_nvgpu.atom.ldsm<val_type = i8, num_matrices = 2, t>
!t2_4 = !cute_nvgpu.atom.ldsm<val_type = i8, num_matrices = 2, t, from = b4x16_p64>
!t2_6 = !cute_nvgpu.atom.ldsm<val_type = i8, num_matrices = 2, t, from = b6x16_p32>
!n1_4 = !cute_nvgpu.atom.ldsm<val_type = i8, num_matrices = 1, n, from = b4x16_p64>
!n1_6 = !cute_nvgpu.atom.ldsm<val_type = i8, num_matrices = 1, n, from = b6x16_p32>
!n2_4 = !cute_nvgpu.atom.ldsm<val_type = i8, num_matrices = 2, n, from = b4x16_p64>
!n2_6 = !cute_nvgpu.atom.ldsm<val_type = i8, num_matrices = 2, n, from = b6x16_p32>
!n4_4 = !cute_nvgpu.atom.ldsm<val_type = i8, num_matrices = 4, n, from = b4x16_p64>
!n4_6 = !cute_nvgpu.atom.ldsm<val_type = i8, num_matrices = 4, n, from = b6x16_p32>
!s1 = !cute_nvgpu.atom.stsm<val_type = i8, num_matrices = 1, t>
!s2 = !cute_nvgpu.atom.stsm<val_type = i8, num_matrices = 2, t>
!s4 = !cute_nvgpu.atom.stsm<val_type = i8, num_matrices = 4, t>
!s = !cute.memref<i8, smem, align<16>, "16:1">
!r1 = !cute.memref<i8, rmem, align<16>, "4:1">
!r2 = !cute.memref<i8, rmem, align<16>, "8:1">
!r4 = !cute.memref<i8, rmem, align<16>, "16:1">

gpu.module @m {
  // CHECK-LABEL: .entry k(
  // CHECK: ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {[[A:%r[0-9]+]], [[B:%r[0-9]+]]}, [
  // CHECK: prmt.b32 {{.*}}, [[A]], [[B]], 0x5410;
  // CHECK: prmt.b32 {{.*}}, [[A]], [[B]], 0x7632;
  // CHECK: ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8x16.b4x16_p64 {
  // CHECK: ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8x16.b6x16_p32 {
  // CHECK: ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8 {
  // CHECK: ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8x16.b4x16_p64 {
  // CHECK: ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8x16.b6x16_p32 {
  // CHECK: ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {
  // CHECK: ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 {
  // CHECK: stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [
  // CHECK: ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b4x16_p64 {
  // CHECK: ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b6x16_p32 {
  // CHECK: stmatrix.sync.aligned.m16n8.x2.trans.shared.b8 [
  // CHECK: ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b4x16_p64 {
  // CHECK: ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b6x16_p32 {
  // CHECK: stmatrix.sync.aligned.m16n8.x4.trans.shared.b8 [
  gpu.func @k(%o: !cute.memref<i8, gmem, align<16>, "16:1">) kernel {
    %s = cute.memref.alloc_smem() : !s
    %a = cute.memref.alloca() : !r1
    %b = cute.memref.alloca() : !r2
    %c = cute.memref.alloca() : !r4
    cute_nvgpu.arch.ldmatrix(%s, %b) {atom = !t1} : (!s, !r2) -> ()
    cute_nvgpu.arch.ldmatrix(%s, %b) {atom = !t1_4} : (!s, !r2) -> ()
    cute_nvgpu.arch.ldmatrix(%s, %b) {atom = !t1_6} : (!s, !r2) -> ()
    cute_nvgpu.arch.ldmatrix(%s, %c) {atom = !t2} : (!s, !r4) -> ()
    cute_nvgpu.arch.ldmatrix(%s, %c) {atom = !t2_4} : (!s, !r4) -> ()
    cute_nvgpu.arch.ldmatrix(%s, %c) {atom = !t2_6} : (!s, !r4) -> ()
    cute_nvgpu.arch.ldmatrix(%s, %a) {atom = !n1_4} : (!s, !r1) -> ()
    cute_nvgpu.arch.ldmatrix(%s, %a) {atom = !n1_6} : (!s, !r1) -> ()
    cute_nvgpu.arch.stmatrix(%a, %s) {atom = !s1} : (!r1, !s) -> ()
    cute_nvgpu.arch.ldmatrix(%s, %b) {atom = !n2_4} : (!s, !r2) -> ()
    cute_nvgpu.arch.ldmatrix(%s, %b) {atom = !n2_6} : (!s, !r2) -> ()
    cute_nvgpu.arch.stmatrix(%b, %s) {atom = !s2} : (!r2, !s) -> ()
    cute_nvgpu.arch.ldmatrix(%s, %c) {atom = !n4_4} : (!s, !r4) -> ()
    cute_nvgpu.arch.ldmatrix(%s, %c) {atom = !n4_6} : (!s, !r4) -> ()
    cute_nvgpu.arch.stmatrix(%c, %s) {atom = !s4} : (!r4, !s) -> ()
    gpu.return
  }
}
