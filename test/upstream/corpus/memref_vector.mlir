memref.global "private" constant @table : memref<4xf32> = dense<[0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00]>
memref.global "private" @smem : memref<128xf16, 3> {alignment = 1024 : i64}
memref.global @blank : memref<4xi32> = uninitialized
func.func @memref(%m: memref<?x?xf32>, %s: memref<64x32xf16, 3>, %i: index, %x: f32, %i32: i32, %k: memref<?xi32>) {
  %0 = memref.load %m[%i, %i] : memref<?x?xf32>
  memref.store %x, %m[%i, %i] : memref<?x?xf32>
  %1 = memref.alloc() : memref<16xf32>
  %2 = memref.alloc(%i) {alignment = 64 : i64} : memref<?xf32>
  %3 = memref.alloca() : memref<4xi32>
  memref.dealloc %1 : memref<16xf32>
  %c0 = arith.constant 0 : index
  %4 = memref.dim %m, %c0 : memref<?x?xf32>
  %5 = memref.get_global @table : memref<4xf32>
  %6 = memref.cast %1 : memref<16xf32> to memref<?xf32>
  %7 = memref.subview %m[0, %i] [4, 8] [1, 1] : memref<?x?xf32> to memref<4x8xf32, strided<[?, 1], offset: ?>>
  %8 = memref.reinterpret_cast %1 to offset: [0], sizes: [4, %i], strides: [%i, 1] : memref<16xf32> to memref<4x?xf32, strided<[?, 1]>>
  %9 = memref.extract_aligned_pointer_as_index %m : memref<?x?xf32> -> index
  %10 = memref.memory_space_cast %s : memref<64x32xf16, 3> to memref<64x32xf16>
  memref.copy %1, %1 : memref<16xf32> to memref<16xf32>
  %11 = memref.atomic_rmw addf %x, %m[%i, %i] : (f32, memref<?x?xf32>) -> f32
  %12 = memref.collapse_shape %s [[0, 1]] : memref<64x32xf16, 3> into memref<2048xf16, 3>
  %13 = memref.expand_shape %12 [[0, 1]] output_shape [64, 32] : memref<2048xf16, 3> into memref<64x32xf16, 3>
  %14 = memref.assume_alignment %m, 16 : memref<?x?xf32>
  %15 = memref.rank %m : memref<?x?xf32>
  %16 = memref.load %m[%i, %i] {nontemporal = true} : memref<?x?xf32>
  %17:2 = memref.distinct_objects %1, %2 : memref<16xf32>, memref<?xf32>
  %18 = memref.atomic_rmw maxs %i32, %k[%i] : (i32, memref<?xi32>) -> i32
  return
}

// -----
func.func @vector(%v: vector<4xf32>, %w: vector<2x4xf32>, %x: f32, %m: memref<?x?xf32>, %i: index, %k: vector<4xi1>) {
  %0 = vector.broadcast %x : f32 to vector<4xf32>
  %1 = vector.broadcast %v : vector<4xf32> to vector<2x4xf32>
  %2 = vector.extract %v[1] : f32 from vector<4xf32>
  %3 = vector.extract %w[1] : vector<4xf32> from vector<2x4xf32>
  %4 = vector.extract %v[%i] : f32 from vector<4xf32>
  %5 = vector.insert %x, %v[2] : f32 into vector<4xf32>
  %6 = vector.insert %x, %w[0, %i] : f32 into vector<2x4xf32>
  %7 = vector.bitcast %v : vector<4xf32> to vector<8xf16>
  %8 = vector.reduction <add>, %v : vector<4xf32> into f32
  %9 = vector.reduction <maximumf>, %v, %x : vector<4xf32> into f32
  %10 = vector.reduction <add>, %v fastmath<reassoc> : vector<4xf32> into f32
  %11 = vector.load %m[%i, %i] : memref<?x?xf32>, vector<4xf32>
  %12 = vector.load %m[%i, %i] {alignment = 16 : i64} : memref<?x?xf32>, vector<4xf32>
  vector.store %v, %m[%i, %i] : memref<?x?xf32>, vector<4xf32>
  %13 = vector.from_elements %x, %x, %x, %x : vector<4xf32>
  %14:4 = vector.to_elements %v : vector<4xf32>
  %15 = vector.extract_strided_slice %v {offsets = [0], sizes = [2], strides = [1]} : vector<4xf32> to vector<2xf32>
  %16 = vector.insert_strided_slice %15, %v {offsets = [2], strides = [1]} : vector<2xf32> into vector<4xf32>
  %17 = vector.shape_cast %w : vector<2x4xf32> to vector<8xf32>
  vector.print %x : f32
  vector.print %v : vector<4xf32>
  vector.print str "text"
  vector.print punctuation <comma>
  %18 = vector.fma %v, %v, %v : vector<4xf32>
  %19 = vector.shuffle %v, %v [0, 5, 2, 7] : vector<4xf32>, vector<4xf32>
  %20 = vector.transpose %w, [1, 0] : vector<2x4xf32> to vector<4x2xf32>
  %21 = vector.maskedload %m[%i, %i], %k, %v : memref<?x?xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  vector.maskedstore %m[%i, %i], %k, %v : memref<?x?xf32>, vector<4xi1>, vector<4xf32>
  %22 = vector.create_mask %i : vector<4xi1>
  %23 = vector.constant_mask [2] : vector<4xi1>
  %24 = vector.interleave %v, %v : vector<4xf32> -> vector<8xf32>
  %25, %26 = vector.deinterleave %24 : vector<8xf32> -> vector<4xf32>
  %27 = vector.multi_reduction <add>, %w, %v [0] : vector<2x4xf32> to vector<4xf32>
  %28 = vector.step : vector<4xindex>
  %29 = vector.transfer_read %m[%i, %i], %x : memref<?x?xf32>, vector<4xf32>
  %30 = vector.transfer_read %m[%i, %i], %x, %k {in_bounds = [true]} : memref<?x?xf32>, vector<4xf32>
  vector.transfer_write %v, %m[%i, %i] {in_bounds = [true]} : vector<4xf32>, memref<?x?xf32>
  vector.transfer_write %v, %m[%i, %i], %k : vector<4xf32>, memref<?x?xf32>
  return
}
