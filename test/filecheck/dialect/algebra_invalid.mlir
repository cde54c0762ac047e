// Layout algebra: what the verifier rejects, and what it says.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

func.func @f(%l: !cute.layout<"6:1">, %p: !cute.coord<"1">) {
  // expected-error @below {{'cute.coalesce' op expected 1 to 2 operands, got 3}}
  %r = cute.coalesce(%l, %p, %p) : (!cute.layout<"6:1">, !cute.coord<"1">, !cute.coord<"1">) -> !cute.layout<"6:1">
  return
}

// -----

func.func @f(%l: !cute.layout<"(2,3):(1,2)">) {
  // expected-error @below {{'cute.group_modes' op expected}}
  %r = cute.group_modes<1, 3> (%l) : (!cute.layout<"(2,3):(1,2)">) -> !cute.layout<"(2,3):(1,2)">
  return
}

// -----

func.func @f(%a: !cute.layout<"(6,2):(8,2)">, %b: !cute.layout<"3:4">) {
  // expected-error @below {{'cute.composition' op expected an extent divisible by 2, got 3}}
  %r = cute.composition(%a, %b) : (!cute.layout<"(6,2):(8,2)">, !cute.layout<"3:4">) -> !cute.layout<"3:4">
  return
}

// -----

func.func @f(%a: !cute.layout<"(12,8):(8,1)">, %t: !cute.tile<"[3:4;_;_]">) {
  // expected-error @below {{expected a tiler of rank at most 2 for (12,8):(8,1), got rank 3}}
  %r = cute.composition(%a, %t) : (!cute.layout<"(12,8):(8,1)">, !cute.tile<"[3:4;_;_]">) -> !cute.layout<"3:4">
  return
}

// -----

func.func @f(%l: !cute.layout<"5:1">, %p: !cute.coord<"(1,1)">) {
  // expected-error @below {{expected a profile of rank at most 1 for 5:1, got (1,1)}}
  %r = cute.coalesce(%l, %p) : (!cute.layout<"5:1">, !cute.coord<"(1,1)">) -> !cute.layout<"5:1">
  return
}

// -----

func.func @f(%l: !cute.layout<"?:1">) {
  // expected-error @below {{'cute.complement' op expected a static layout or a cotarget, got the dynamic layout ?:1 and no cotarget}}
  %r = cute.complement(%l) : (!cute.layout<"?:1">) -> !cute.layout<"1:1">
  return
}

// -----

func.func @f(%l: !cute.layout<"(2,2):(1,1)">) {
  // expected-error @below {{expected an injective layout, got (2,2):(1,1)}}
  %r = cute.complement(%l) : (!cute.layout<"(2,2):(1,1)">) -> !cute.layout<"1:1">
  return
}

// -----

func.func @f(%l: !cute.composed_layout<"(4,5):(1,4) o 3 o 8:1">) {
  // expected-error @below {{expected an offset divisible by 2, got 3}}
  %r = cute.recast_layout<32, 16> (%l) : !cute.composed_layout<"(4,5):(1,4) o 3 o 8:1"> -> !cute.layout<"4:1">
  return
}

// -----

func.func @f(%l: !cute.layout<"8:1">) {
  // expected-error @below {{expected positive element widths, got 0 and 16 bits}}
  %r = cute.recast_layout<0, 16> (%l) : !cute.layout<"8:1"> -> !cute.layout<"8:1">
  return
}

// -----

func.func @f(%l: !cute.layout<"(?,2):(1,4)">) {
  // expected-error @below {{expected a static shape, got (?,2)}}
  %r = cute.right_inverse(%l) : (!cute.layout<"(?,2):(1,4)">) -> !cute.layout<"2:4">
  return
}

// -----

func.func @f(%l: !cute.layout<"(4,2):(?,1)">) {
  // expected-error @below {{expected a static layout, got (4,2):(?,1)}}
  %r = cute.left_inverse(%l) : (!cute.layout<"(4,2):(?,1)">) -> !cute.layout<"2:4">
  return
}

// -----

func.func @f(%l: !cute.layout<"(6,5):(5,1)">, %c: !cute.coord<"(_,2,3)">) {
  // expected-error @below {{'cute.slice' op expected a coordinate that fits (6,5), got (_,2,3)}}
  %r = cute.slice(%l, %c) : !cute.layout<"(6,5):(5,1)">, !cute.coord<"(_,2,3)">
  return
}

// -----

func.func @f(%l: !cute.composed_layout<"S<2,0,2> o 0 o (4,4):(1,4)">, %c: !cute.coord<"(1,1)">) {
  // expected-error @below {{expected a coordinate with '_' for a swizzled layout, got (1,1)}}
  %r = cute.slice(%l, %c) : !cute.composed_layout<"S<2,0,2> o 0 o (4,4):(1,4)">, !cute.coord<"(1,1)">
  return
}

// -----

func.func @f(%l: !cute.layout<"(6,5):(5,1)">, %c: !cute.coord<"(?,_)">) {
  // expected-error @below {{'cute.dice' op expected a static coordinate, got (?,_)}}
  %r = cute.dice(%l, %c) : !cute.layout<"(6,5):(5,1)">, !cute.coord<"(?,_)">
  return
}
