// Arithmetic and comparison: what the verifier rejects, and what it says.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: !cute.shape<"6">, %b: !cute.shape<"6">) {
  // expected-error @below {{result #0: expected i1, got i32}}
  %p = cute.equal(%a, %b) : (!cute.shape<"6">, !cute.shape<"6">) -> i32
  return
}

// -----

func.func @f(%a: !cute.shape<"1">, %b: !cute.int_tuple<"1">) {
  // expected-error @below {{expected operands of the same kind, got !cute.shape and !cute.int_tuple}}
  %r = cute.tuple_add(%a, %b) : (!cute.shape<"1">, !cute.int_tuple<"1">) -> !cute.shape<"2">
  return
}

// -----

func.func @f(%a: !cute.shape<"3">, %b: !cute.shape<"(4,5)">) {
  // expected-error @below {{expected two tuples or two integers at [], got 3 and (4,5)}}
  %r = cute.tuple_add(%a, %b) : (!cute.shape<"3">, !cute.shape<"(4,5)">) -> !cute.shape<"(7,8)">
  return
}

// -----

func.func @f(%a: !cute.shape<"7">, %b: !cute.shape<"3">) {
  // expected-error @below {{expected one of 7 and 3 to be a multiple of the other}}
  %r = cute.shape_div(%a, %b) : (!cute.shape<"7">, !cute.shape<"3">) -> !cute.shape<"2">
  return
}

// -----

func.func @f(%a: !cute.shape<"(4,6)">, %b: !cute.int_tuple<"(2,0)">) {
  // expected-error @below {{'cute.ceil_div' op division by zero}}
  %r = cute.ceil_div(%a, %b) : (!cute.shape<"(4,6)">, !cute.int_tuple<"(2,0)">) -> !cute.shape<"(2,1)">
  return
}

// -----

func.func @f(%c: !cute.coord<"(1,2)">, %s: !cute.shape<"6">) {
  // expected-error @below {{expected congruent operands, got (1,2) and 6}}
  %p = cute.elem_less(%c, %s) : (!cute.coord<"(1,2)">, !cute.shape<"6">) -> i1
  return
}
