gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_90a", features = "+ptx83">] attributes {tag = 1 : i32} {
  gpu.func @k(%a: memref<?xf32>, %n: i32 {llvm.signext}) workgroup(%w : memref<32xf32, 3> {llvm.align = 16 : i64}, %w2 : memref<4xi32, #gpu.address_space<workgroup>>) private(%p : memref<1xf32, 5>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 4, 1, 1>} {
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y upper_bound 64
    %bx = gpu.block_id x
    %bd = gpu.block_dim z
    %gd = gpu.grid_dim x
    %gi = gpu.global_id x
    %ci = gpu.cluster_id x
    %cd = gpu.cluster_dim x
    %cb = gpu.cluster_block_id y
    %cdb = gpu.cluster_dim_blocks x
    %lane = gpu.lane_id
    %lane2 = gpu.lane_id upper_bound 32
    %sg = gpu.subgroup_id : index
    %ns = gpu.num_subgroups : index
    %ss = gpu.subgroup_size : index
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %r, %ok = gpu.shuffle xor %n, %c1, %c32 : i32
    %r2, %ok2 = gpu.shuffle idx %n, %c1, %c32 : i32
    gpu.barrier
    gpu.printf "thread %d of %ld\0A", %n, %tx : i32, index
    gpu.printf "done\0A"
    %sum = gpu.all_reduce add %n {
    } : (i32) -> i32
    %max = gpu.subgroup_reduce maxsi %n uniform : (i32) -> i32
    %cl = gpu.subgroup_reduce add %n cluster(size = 4) : (i32) -> i32
    %dyn = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %b = gpu.subgroup_broadcast %n, first_active_lane : i32
    gpu.return
  }
  gpu.func @device(%a: i32) -> (i32, f32 {llvm.noundef}) {
    %f = arith.constant 1.000000e+00 : f32
    gpu.return %a, %f : i32, f32
  }
  gpu.func @empty() kernel {
    gpu.return
  }
}

// -----
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k(%a: f32, %b: memref<?xf32>) kernel {
      gpu.return
    }
  }
  func.func @host(%g: index, %x: f32, %m: memref<?xf32>, %s: i32, %i: i32, %l: i64) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @m::@k blocks in (%g, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : f32, %m : memref<?xf32>)
    gpu.launch_func @m::@k blocks in (%g, %c1, %c1) threads in (%c1, %c1, %c1) dynamic_shared_memory_size %s args(%x : f32, %m : memref<?xf32>)
    gpu.launch_func @m::@k clusters in (%c1, %c1, %c1) blocks in (%g, %c1, %c1) threads in (%c1, %c1, %c1) dynamic_shared_memory_size %s args(%x : f32, %m : memref<?xf32>)
    %t = gpu.wait async
    %t1 = gpu.launch_func async [%t] @m::@k blocks in (%g, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : f32, %m : memref<?xf32>)
    %t2 = gpu.launch_func async [%t, %t1] @m::@k blocks in (%i, %i, %i) threads in (%i, %i, %i) : i32 args(%x : f32, %m : memref<?xf32>)
    gpu.launch_func @m::@k clusters in (%l, %l, %l) blocks in (%l, %l, %l) threads in (%l, %l, %l) : i64 dynamic_shared_memory_size %s args(%x : f32, %m : memref<?xf32>)
    %t3 = gpu.wait async [%t1, %t2]
    gpu.wait [%t3]
    %d = gpu.alloc () : memref<16xf32>
    %d2, %t4 = gpu.alloc async [%t3] (%g) : memref<?xf32>
    %t5 = gpu.memcpy async [%t4] %d2, %m : memref<?xf32>, memref<?xf32>
    %t6 = gpu.memset async [%t5] %d2, %x : memref<?xf32>, f32
    gpu.dealloc %d : memref<16xf32>
    return
  }
}

// -----
func.func @launch(%g: index, %s: i32, %x: f32) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %g, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %0 = arith.addi %bx, %tx : index
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %g, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) dynamic_shared_memory_size %s workgroup(%w : memref<32xf32, 3>) {
    gpu.barrier
    gpu.terminator
  } {tag}
  gpu.launch clusters(%cx, %cy, %cz) in (%kx = %c1, %ky = %c1, %kz = %c1) blocks(%bx, %by, %bz) in (%gx = %g, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  %t = gpu.launch async blocks(%bx, %by, %bz) in (%gx = %g, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %g, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) module(@mod) function(@fn) {
    gpu.terminator
  }
  return
}

// -----
gpu.module @handler <#gpu.select_object<0 : i64>> [#nvvm.target, #nvvm.target<chip = "sm_80">] {
}

// -----
gpu.binary @objects [#gpu.object<#nvvm.target<chip = "sm_90a">, properties = {O = 3 : i32}, assembly = ".version 8.3\0A">]
gpu.binary @handled <#gpu.select_object<0 : i64>> [#gpu.object<#nvvm.target, "\7FELF">]
func.func @mma(%m: memref<32x32xf16, 3>, %i: index, %f: f32) {
  %0 = gpu.subgroup_mma_load_matrix %m[%i, %i] {leadDimension = 32 : index} : memref<32x32xf16, 3> -> !gpu.mma_matrix<16x16xf16, "AOp">
  %1 = gpu.subgroup_mma_load_matrix %m[%i, %i] {leadDimension = 32 : index, transpose} : memref<32x32xf16, 3> -> !gpu.mma_matrix<16x16xf16, "BOp">
  %2 = gpu.subgroup_mma_constant_matrix %f : !gpu.mma_matrix<16x16xf32, "COp">
  %3 = gpu.subgroup_mma_compute %0, %1, %2 : !gpu.mma_matrix<16x16xf16, "AOp">, !gpu.mma_matrix<16x16xf16, "BOp"> -> !gpu.mma_matrix<16x16xf32, "COp">
  %4 = gpu.subgroup_mma_elementwise addf %3, %3 : (!gpu.mma_matrix<16x16xf32, "COp">, !gpu.mma_matrix<16x16xf32, "COp">) -> !gpu.mma_matrix<16x16xf32, "COp">
  return
}
func.func @host(%u: memref<*xf32>, %d: i32) {
  gpu.host_register %u : memref<*xf32>
  gpu.host_unregister %u : memref<*xf32>
  gpu.set_default_device %d
  return
}
