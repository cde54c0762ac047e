// REQUIRES: mlir
// RUN: cute-opt %S/../../examples/elementwise_add.mlir --pipeline=nvptx=chip=sm_90a --emit=ptx | FileCheck %s
// RUN: cute-opt %S/../../examples/elementwise_add.mlir --pipeline --emit=ptx | not grep -E "\.local|call|st\.global\.f64"

// Tiles inside the matrix use twelve 128-bit accesses without predicates. The code for edge tiles follows.
// CHECK:      .target sm_90a
// CHECK:      .visible .entry add_v(
// CHECK-NEXT: .param .align 8 .b8 add_v_param_0[24]
// CHECK:      .reqntid 128, 1, 1
// CHECK:      @%p{{[0-9]+}} bra
// CHECK-COUNT-8: ld.global.v4.b32
// CHECK-NOT:  bra
// CHECK-NOT:  div.
// CHECK-COUNT-4: st.global.v4.b32
// CHECK:      bra.uni
