// Products and divides: what the verifier rejects, and what it says.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: !cute.layout<"?:1">, %b: !cute.layout<"2:1">) {
  // expected-error @below {{expected a static layout to repeat, got ?:1}}
  %r = cute.logical_product(%a, %b) : (!cute.layout<"?:1">, !cute.layout<"2:1">) -> !cute.layout<"(?,2):(1,?)">
  return
}

// -----

func.func @f(%a: !cute.layout<"(8):(1)">, %b: !cute.layout<"2:1">) {
  // expected-error @below {{expected two layouts of rank 1 to pair, got (8):(1) and 2:8}}
  %r = cute.blocked_product(%a, %b) : (!cute.layout<"(8):(1)">, !cute.layout<"2:1">) -> !cute.layout<"8:1">
  return
}

// -----

func.func @f(%l: !cute.layout<"(6,10):(10,1)">, %t: !cute.layout<"15:1">) {
  // expected-error @below {{expected an extent divisible by 6, got 15}}
  %r = cute.logical_divide(%l, %t) : (!cute.layout<"(6,10):(10,1)">, !cute.layout<"15:1">) -> !cute.layout<"(15,4):(1,15)">
  return
}

// -----

func.func @f(%l: !cute.layout<"(12,10):(10,1)">, %t: !cute.tile<"[4:1;_]">) {
  // expected-error @below {{expected mode 1 to divide into a tile and a rest, got 10:1}}
  %r = cute.zipped_divide(%l, %t) : (!cute.layout<"(12,10):(10,1)">, !cute.tile<"[4:1;_]">) -> !cute.layout<"((4,10),3):((10,1),40)">
  return
}

// -----

func.func @f(%b: !cute.layout<"(2,3):(3,1)">, %s: !cute.shape<"(4,6)">, %o: !cute.int_tuple<"(0,0)">) {
  // expected-error @below {{expected a permutation of 0 … 1 as the order, got (0,0)}}
  %r = cute.tile_to_shape(%b, %s, %o) : (!cute.layout<"(2,3):(3,1)">, !cute.shape<"(4,6)">, !cute.int_tuple<"(0,0)">) -> !cute.layout<"(2,3):(3,1)">
  return
}
