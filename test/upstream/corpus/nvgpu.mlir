!group = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
func.func @sm80(%s: memref<64x64xf16, #gpu.address_space<workgroup>>, %g: memref<128x64xf16>, %i: index) {
  %0 = nvgpu.device_async_copy %g[%i, %i], %s[%i, %i], 8 {bypassL1} : memref<128x64xf16> to memref<64x64xf16, #gpu.address_space<workgroup>>
  %1 = nvgpu.device_async_copy %g[%i, %i], %s[%i, %i], 8, %i : memref<128x64xf16> to memref<64x64xf16, #gpu.address_space<workgroup>>
  %2 = nvgpu.device_async_create_group %0, %1
  nvgpu.device_async_wait %2 {numGroups = 0 : i32}
  %3 = nvgpu.ldmatrix %s[%i, %i] {numTiles = 4 : i32, transpose = false} : memref<64x64xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
  return
}
func.func @mma(%a: vector<4x2xf16>, %b: vector<2x2xf16>, %c: vector<2x2xf32>) {
  %0 = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
  return
}
func.func @sm90(%map: !map, %s: memref<64x64xf16, 3>, %i: index, %p: i1) {
  %b = nvgpu.mbarrier.create -> !group
  nvgpu.mbarrier.init %b[%i], %i, predicate = %p : !group
  nvgpu.mbarrier.arrive.expect_tx %b[%i], %i : !group
  nvgpu.mbarrier.try_wait.parity %b[%i], %p, %i : !group
  nvgpu.tma.prefetch.descriptor %map : !map
  nvgpu.tma.async.load %map[%i, %i], %b[%i] to %s, predicate = %p : !map, !group -> memref<64x64xf16, 3>
  nvgpu.tma.async.store %s to %map[%i, %i] : memref<64x64xf16, 3> -> !map
  %d = nvgpu.warpgroup.generate.descriptor %s, %map : memref<64x64xf16, 3>, !map -> !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, 3>>
  %acc = nvgpu.warpgroup.mma.init.accumulator -> !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
  %r = nvgpu.warpgroup.mma %d, %d, %acc {transposeB, waitGroup = 0 : i64} : !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, 3>>, !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, 3>>, !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>> -> !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
  return
}
