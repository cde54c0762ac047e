// REQUIRES: mlir
// RUN: cute-opt %S/../../examples/sgemm_tile2d.mlir --pipeline=nvptx=chip=sm_90a --emit=ptx | FileCheck %s --check-prefix=TILE
// RUN: cute-opt %S/../../examples/sgemm_warptile.mlir --pipeline=nvptx=chip=sm_90a --emit=ptx | FileCheck %s --check-prefix=WARP
// RUN: cute-opt %S/../../examples/sgemm_pipelined.mlir --pipeline=nvptx=chip=sm_90a --emit=ptx | FileCheck %s --check-prefix=PIPE
// RUN: cute-opt %S/../../examples/sgemm_warptile.mlir --pipeline=nvptx=chip=sm_90a --emit=ptx | not grep -E "\.local|call"

// Each thread computes 8 x 8 FMAs per k, with the accumulators in registers.
// TILE:          .visible .entry sgemm(
// TILE:          bar.sync 0;
// TILE-COUNT-64: fma.rn
// TILE:          bar.sync 0;

// Three cp.async stages. Operands are loaded as vectors, eight rows of A for two k at a time.
// WARP:          .visible .entry sgemm_v(
// WARP:          .shared .align 512 .b8 sgemm_v__smem[49152];
// WARP-COUNT-4:  cp.async.cg.shared.global
// WARP:          cp.async.commit_group
// WARP-COUNT-4:  cp.async.cg.shared.global
// WARP:          cp.async.commit_group
// WARP:          cp.async.wait_group 1;
// WARP-NEXT:     bar.sync 0;
// WARP-COUNT-4:  cp.async.cg.shared.global
// WARP:          cp.async.commit_group
// WARP:          ld.shared.v2.b32
// WARP:          ld.shared.v4.b32
// WARP-COUNT-128: fma.rn
// WARP:          st.global.v4.b32

// TMA loads the tiles. B of the next k is loaded before the 128 FMAs of this k, A of the next four k in step two.
// PIPE:           .visible .entry sgemm(
// PIPE-COUNT-6:   cp.async.bulk.tensor.2d.shared
// PIPE:           mbarrier.try_wait
// PIPE-COUNT-12:  ld.shared.v4.b32
// PIPE:           ld.shared.v4.b32
// PIPE-COUNT-128: fma.rn
// PIPE-COUNT-12:  ld.shared.v4.b32
// PIPE-COUNT-128: fma.rn
// PIPE-COUNT-4:   ld.shared.v4.b32
// PIPE-COUNT-128: fma.rn
// PIPE:           add.f32
// PIPE:           st.global.v4.b32
