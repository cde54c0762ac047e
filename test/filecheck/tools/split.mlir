// RUN: cute-opt %s --split-input-file --cse | filecheck %s
// RUN: cute-opt %s --split-input-file --mlir-print-ir-tree-dir=%t.tree --cse -o %t.out
// RUN: filecheck %s < %t.out
// RUN: filecheck %s --check-prefix=TREE < %t.tree/chunk-2/01-cse.mlir

!int = i32
// CHECK: func.func @one(%{{.*}}: i32)
func.func @one(%a: !int) {
  return
}

// CHECK: {{^}}// -----{{$}}

// -----

// An alias belongs to its piece; a location counts lines of the whole file.
!int = i64
// CHECK: func.func @two(%{{.*}}: i64)
// TREE: func.func @two
func.func @two(%a: !int) {
  return
}
