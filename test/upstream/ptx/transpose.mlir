// REQUIRES: mlir
// RUN: cute-opt %S/../../examples/transpose.mlir --pipeline=nvptx=chip=sm_90a --emit=ptx | FileCheck %s
// RUN: cute-opt %S/../../examples/transpose.mlir --pipeline --emit=ptx | not grep -E "\.local|call"

// Tiles inside the matrix use only 128-bit accesses, and one xor computes four shared memory addresses.
// CHECK:         .visible .entry transpose_v(
// CHECK:         .shared .align 1024 .b8 transpose_v__smem[16384];
// CHECK-COUNT-4: ld.global.v4.b32
// CHECK:         xor.b32
// CHECK:         st.shared.v4.b32 [%[[A:rd[0-9]+]]],
// CHECK-NEXT:    st.shared.v4.b32 [%[[A]]+2048],
// CHECK-NEXT:    st.shared.v4.b32 [%[[A]]+4096],
// CHECK-NEXT:    st.shared.v4.b32 [%[[A]]+6144],
// CHECK:         bar.sync 0;
// CHECK:         xor.b32
// CHECK-COUNT-4: ld.shared.v4.b32
// CHECK-COUNT-4: st.global.v4.b32
