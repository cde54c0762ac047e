// Accessors: what the verifier rejects, and what it says.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

func.func @f(%s: !cute.shape<"((6),5)">) {
  // expected-error @below {{result #0: expected !cute.shape<"(6)">, got !cute.shape<"6">}}
  %r = cute.get<[0]> (%s) : !cute.shape<"((6),5)"> -> !cute.shape<"6">
  return
}

// -----

func.func @f(%s: !cute.shape<"(6,5)">) {
  // expected-error @below {{result #0: expected !cute.shape<"6">, got !cute.int_tuple<"6">}}
  %r = cute.get<[0]> (%s) : !cute.shape<"(6,5)"> -> !cute.int_tuple<"6">
  return
}

// -----

func.func @f(%s: !cute.shape<"(6,5,4)">) {
  // expected-error @below {{'cute.get_leaves' op expected 3 results, got 2}}
  %a:2 = "cute.get_leaves"(%s) : (!cute.shape<"(6,5,4)">) -> (!cute.shape<"6">, !cute.shape<"5">)
  return
}

// -----

func.func @f(%i: i32) {
  // expected-error @below {{operand #0: expected !cute.layout, !cute.tile or !cute.composed_layout, got i32}}
  %s = cute.get_shape(%i) : i32 -> !cute.shape<"6">
  return
}

// -----

func.func @f(%s: !cute.shape<"6">) {
  // expected-error @below {{requires the property 'mode'}}
  %r = "cute.select"(%s) : (!cute.shape<"6">) -> !cute.shape<"(6)">
  return
}

// -----

func.func @f(%s: !cute.shape<"6">) {
  // expected-error @below {{property 'mode' has the wrong type: array<i64: 0>}}
  %r = "cute.select"(%s) <{mode = array<i64: 0>}> : (!cute.shape<"6">) -> !cute.shape<"(6)">
  return
}

// -----

func.func @f(%s: !cute.shape<"(6,(2,5))">) {
  // expected-error @below {{expected mode index in [0, 2) at depth 1, got 2}}
  %r = cute.get<[1, 2]> (%s) : !cute.shape<"(6,(2,5))"> -> !cute.shape<"2">
  return
}

// -----

func.func @f(%s: !cute.shape<"(4,2)">) {
  // expected-error @below {{expected the path [0, 0] to end at the leaf at depth 1}}
  %r = cute.get<[0, 0]> (%s) : !cute.shape<"(4,2)"> -> !cute.shape<"4">
  return
}
