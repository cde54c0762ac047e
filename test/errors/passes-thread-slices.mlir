// Errors of tiles that are partitioned among more threads than the block has.
// RUN: cute-opt %s --convert-cute-algo-to-arch --verify-diagnostics

!atom = !cute_nvgpu.atom.universal_copy<f32>
!tc = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"(32,4):(4,1)">, tiler_mn = <"[128:1]">>
gpu.module @kernels {
  gpu.func @k(%x: !cute.memref<f32, gmem, "128:1">, %y: !cute.memref<f32, gmem, "128:1">) kernel attributes {known_block_size = array<i32: 16, 1, 1>} {
    %a = cute.atom() : !atom
    %tc = cute.make_tiled_copy(%a) : !tc
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c = cute.make_coord(%t) : (i32) -> !cute.coord<"?">
    // expected-error @below {{'cute.tiled_copy' op: the tiled copy needs 32 threads, and the block has 16: no thread takes slices 16 to 31; use a larger known_block_size, or partition the tile among fewer threads}}
    cute.tiled_copy(%tc, %x, %y, %c) : (!tc, !cute.memref<f32, gmem, "128:1">, !cute.memref<f32, gmem, "128:1">, !cute.coord<"?">) -> ()
    gpu.return
  }
}
