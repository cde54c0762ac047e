// RUN: cute-opt %s --convert-cute-algo-to-arch --verify-legality | FileCheck %s

!atom = !cute_nvgpu.atom.universal_copy<f32>
!regs = !cute.memref<f32, rmem, align<32>, "((1,(4,4)),1,1):((0,(1,4)),0,0)">
!flags = !cute.memref<i1, rmem, align<16>, "((1,(4,4)),1,1):((0,(1,4)),0,0)">

// Rows of whole vectors, 16-byte alignment: four accesses of four elements.
// CHECK-LABEL: func.func @vectors
// CHECK-COUNT-4: cute.memref.load_vec %{{.*}} : !cute.memref<f32, gmem, align<16>, "4:1">
// CHECK-NOT:     cute.memref.load
// CHECK:         return
func.func @vectors(%s: !cute.memref<f32, gmem, align<16>, "((1,(4,4)),1,1):((0,(1,?{div=4})),0,0)">, %d: !regs) {
  %atom = cute.atom() : !atom
  cute.copy(%atom, %s, %d) : (!atom, !cute.memref<f32, gmem, align<16>, "((1,(4,4)),1,1):((0,(1,?{div=4})),0,0)">, !regs) -> ()
  return
}

// Half of what is needed is known: 64 bits at a time.
// CHECK-LABEL: func.func @half_vectors
// CHECK-COUNT-8: cute.memref.load_vec %{{.*}} : !cute.memref<f32, gmem, align<{{8|16}}>, "2:1">
// CHECK-NOT:     cute.memref.load
// CHECK:         return
func.func @half_vectors(%s: !cute.memref<f32, gmem, align<16>, "((1,(4,4)),1,1):((0,(1,?{div=2})),0,0)">, %d: !regs) {
  %atom = cute.atom() : !atom
  cute.copy(%atom, %s, %d) : (!atom, !cute.memref<f32, gmem, align<16>, "((1,(4,4)),1,1):((0,(1,?{div=2})),0,0)">, !regs) -> ()
  return
}

// Nothing is known of the rows: element by element.
// CHECK-LABEL: func.func @elements
// CHECK-NOT:     load_vec
// CHECK-COUNT-16: cute.memref.load(
// CHECK:         return
func.func @elements(%s: !cute.memref<f32, gmem, "((1,(4,4)),1,1):((0,(1,?)),0,0)">, %d: !regs) {
  %atom = cute.atom() : !atom
  cute.copy(%atom, %s, %d) : (!atom, !cute.memref<f32, gmem, "((1,(4,4)),1,1):((0,(1,?)),0,0)">, !regs) -> ()
  return
}

// A static layout whose contiguous mode is the second one, contiguous over both: vectors all the same.
// CHECK-LABEL: func.func @second_mode
// CHECK-COUNT-4: cute.memref.load_vec %{{.*}} : !cute.memref<f32, gmem, align<16>, "4:1">
func.func @second_mode(%s: !cute.memref<f32, gmem, align<16>, "(4,4):(64,1)">, %d: !cute.memref<f32, rmem, align<32>, "(4,4):(1,4)">) {
  %atom = cute.atom() : !atom
  cute.copy(%atom, %s, %d) : (!atom, !cute.memref<f32, gmem, align<16>, "(4,4):(64,1)">, !cute.memref<f32, rmem, align<32>, "(4,4):(1,4)">) -> ()
  return
}

// Under flags a vector moves as one if all of its flags hold, else element by element.
// CHECK-LABEL: func.func @guarded
// CHECK:         %[[A:.*]] = arith.andi
// CHECK:         %[[B:.*]] = arith.andi %[[A]]
// CHECK:         %[[ALL:.*]] = arith.andi %[[B]]
// CHECK:         scf.if %[[ALL]] {
// CHECK:           cute.memref.load_vec
// CHECK:         } else {
// CHECK-COUNT-4:   scf.if
// CHECK:         }
func.func @guarded(%s: !cute.memref<f32, gmem, align<16>, "((1,(4,4)),1,1):((0,(1,?{div=4})),0,0)">, %d: !regs, %p: !flags) {
  %atom = cute.atom() : !atom
  cute.copy(%atom, %s, %d, pred = %p) : (!atom, !cute.memref<f32, gmem, align<16>, "((1,(4,4)),1,1):((0,(1,?{div=4})),0,0)">, !regs, !flags) -> ()
  return
}

// One flag for all of mode 0.
// CHECK-LABEL: func.func @one_flag
// CHECK:         %[[P:.*]] = cute.memref.load(%arg2
// CHECK-NEXT:    scf.if %[[P]] {
// CHECK:           cute.memref.load_vec
// CHECK:         }
// CHECK-NOT:     else
func.func @one_flag(%arg0: !cute.memref<f32, gmem, align<16>, "(4,2):(1,?{div=4})">, %arg1: !cute.memref<f32, rmem, align<32>, "(4,2):(1,4)">, %arg2: !cute.memref<i1, rmem, align<2>, "(1,2):(0,1)">) {
  %atom = cute.atom() : !atom
  cute.copy(%atom, %arg0, %arg1, pred = %arg2) : (!atom, !cute.memref<f32, gmem, align<16>, "(4,2):(1,?{div=4})">, !cute.memref<f32, rmem, align<32>, "(4,2):(1,4)">, !cute.memref<i1, rmem, align<2>, "(1,2):(0,1)">) -> ()
  return
}

// CHECK-LABEL: func.func @fragments
// CHECK:         %[[F:.*]] = cute.memref.alloca() : !cute.memref<f32, rmem, align<16>, "4:1">
// CHECK-COUNT-8: cute.memref.store(%[[F]]
func.func @fragments(%t: !cute.memref<f32, gmem, "4:1">, %x: f32) {
  %f = cute.make_fragment_like(%t) : !cute.memref<f32, gmem, "4:1"> -> !cute.memref<f32, rmem, align<16>, "4:1">
  cute.clear(%f) : (!cute.memref<f32, rmem, align<16>, "4:1">) -> ()
  cute.fill(%f, %x) : (!cute.memref<f32, rmem, align<16>, "4:1">, f32) -> ()
  return
}
