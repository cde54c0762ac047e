// RUN: cute-opt %s --cute-to-base --verify-diagnostics

// An index that only the run knows: the tensor lies in local memory, and the pass says so.
func.func @dynamic_index(%x: f32, %i: !cute.coord<"?">) -> f32 {
  // expected-remark @below {{this register tensor is kept in local memory: it is indexed by a value known only at run time}}
  %f = cute.memref.alloca() : !cute.memref<f32, rmem, align<16>, "4:1">
  cute.memref.store(%f, %i, %x) : (!cute.memref<f32, rmem, align<16>, "4:1">, !cute.coord<"?">, f32) -> ()
  %r = cute.memref.load(%f, %i) : (!cute.memref<f32, rmem, align<16>, "4:1">, !cute.coord<"?">) -> f32
  return %r : f32
}
