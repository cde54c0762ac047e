// Errors of MMAs with scale factors.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{kind = f8f6f4 has k-major operands and no 'saturate', 'xor' or 'and'; remove them}}
func.func private @f(!cute_nvgpu.atom.mma_sync<16x8x32, (f32,f8E4M3FN,f8E4M3FN,f32), kind = f8f6f4, saturate>)

// -----

// expected-error @below {{sf and vec need a kind; write kind = mxf8f6f4, mxf4 or mxf4nvf4}}
func.func private @f(!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32), sf = ue4m3>)

// -----

!mma = !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,1,1):(1,0,0)">>
!sf = !cute.memref<f8E4M3FN, gmem, "(64,8):(8,1)">
func.func @f(%m: !mma, %s: !sf, %k: !cute.coord<"?">) {
  // expected-error @below {{operand #0 must be a tiled MMA of an atom with scale factors (kind = mxf8f6f4, mxf4 or mxf4nvf4), got}}
  %r = cute.tiled.mma.partition_SFA(%m, %s, %k) : (!mma, !sf, !cute.coord<"?">) -> !sf
//     ^
  return
}

// -----

!mma = !cute_nvgpu.atom.mma_sync<16x8x64, (f32,f4E2M1FN,f4E2M1FN,f32), kind = mxf4nvf4, sf = ue4m3, vec = 16>
!a = !cute.memref<f4E2M1FN, rmem, align<32>, "((8,2,2),2,1):((1,8,16),32,0)">
!b = !cute.memref<f4E2M1FN, rmem, align<32>, "((8,2),2,1):((1,8),16,0)">
!d = !cute.memref<f32, rmem, align<32>, "((2,2),2,2):((1,2),4,8)">
func.func @f(%m: !mma, %d: !d, %a: !a, %b: !b) {
  // expected-error @below {{operand #0 must be an atom without scale factors, got one with them, !cute_nvgpu.atom.mma_sync<16x8x64, (f32,f4E2M1FN,f4E2M1FN,f32), kind = mxf4nvf4, sf = ue4m3, vec = 16> (see cute.scaled_gemm)}}
  cute.gemm(%m, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d) -> ()
//^
  return
}

// -----

!mma = !cute_nvgpu.atom.mma_sync<16x8x64, (f32,f4E2M1FN,f4E2M1FN,f32), kind = mxf4nvf4, sf = ue4m3, vec = 16>
!a = !cute.memref<f4E2M1FN, rmem, align<32>, "((8,2,2),2,1):((1,8,16),32,0)">
!b = !cute.memref<f4E2M1FN, rmem, align<32>, "((8,2),2,1):((1,8),16,0)">
!d = !cute.memref<f32, rmem, align<32>, "((2,2),2,2):((1,2),4,8)">
!sf = !cute.memref<f8E4M3FN, rmem, align<8>, "(4,2,1):(1,4,0)">
!sa = !cute.memref<f8E4M3FN, rmem, align<8>, "(4,2,1,1):(1,4,0,0)">
func.func @f(%m: !mma, %d: !d, %a: !a, %b: !b, %sa: !sa, %sb: !sf) {
  // expected-error @below {{the layout of SFA has rank 4, (4,2,1,1); use that of A}}
  cute.scaled_gemm(%m, %d, %a, %b, %sa, %sb, %d) : (!mma, !d, !a, !b, !sa, !sf, !d) -> ()
//^
  return
}

// -----

!mma = !cute_nvgpu.atom.mma_sync<16x8x64, (f32,f4E2M1FN,f4E2M1FN,f32), kind = mxf4nvf4, sf = ue4m3, vec = 16>
!a = !cute.memref<f4E2M1FN, rmem, align<32>, "((8,2,2),2,1):((1,8,16),32,0)">
!b = !cute.memref<f4E2M1FN, rmem, align<32>, "((8,2),2,1):((1,8),16,0)">
!d = !cute.memref<f32, rmem, align<32>, "((2,2),2,2):((1,2),4,8)">
!sf = !cute.memref<f8E4M3FN, rmem, align<8>, "(4,2,1):(1,4,0)">
!sb = !cute.memref<f8E4M3FN, rmem, align<8>, "(2,2,1):(1,2,0)">
func.func @f(%m: !mma, %d: !d, %a: !a, %b: !b, %sa: !sf, %sb: !sb) {
  // expected-error @below {{SFB has 2 values in mode V of (2,2,1); the atom !cute_nvgpu.atom.mma_sync<16x8x64, (f32,f4E2M1FN,f4E2M1FN,f32), kind = mxf4nvf4, sf = ue4m3, vec = 16> needs 4}}
  cute.scaled_gemm(%m, %d, %a, %b, %sa, %sb, %d) : (!mma, !d, !a, !b, !sf, !sb, !d) -> ()
//^
  return
}

// -----

!mma = !cute_nvgpu.atom.mma_sync<16x8x64, (f32,f4E2M1FN,f4E2M1FN,f32), kind = mxf4nvf4, sf = ue4m3, vec = 16>
!a = !cute.memref<f4E2M1FN, rmem, align<32>, "((8,2,2),2,1):((1,8,16),32,0)">
!b = !cute.memref<f4E2M1FN, rmem, align<32>, "((8,2),2,1):((1,8),16,0)">
!d = !cute.memref<f32, rmem, align<32>, "((2,2),2,2):((1,2),4,8)">
!sf = !cute.memref<f8E4M3FN, rmem, align<8>, "(4,2,1):(1,4,0)">
!sb = !cute.memref<f8E4M3FN, rmem, align<8>, "(4,1,1):(1,0,0)">
func.func @f(%m: !mma, %d: !d, %a: !a, %b: !b, %sa: !sf, %sb: !sb) {
  // expected-error @below {{mode 1 of SFB has extent 1 in (4,1,1); B has 2 there}}
  cute.scaled_gemm(%m, %d, %a, %b, %sa, %sb, %d) : (!mma, !d, !a, !b, !sf, !sb, !d) -> ()
//^
  return
}
