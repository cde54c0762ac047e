// Size and index: what the verifier rejects, and what it says.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

func.func @f(%s: !cute.shape<"(6,5)">) {
  // expected-error @below {{'cute.size' op result #0: expected !cute.int_tuple<"30">, got !cute.int_tuple<"31">}}
  %n = cute.size (%s) : (!cute.shape<"(6,5)">) -> !cute.int_tuple<"31">
  return
}

// -----

func.func @f(%s: !cute.shape<"(6,?)">) {
  // expected-error @below {{result #0: expected !cute.int_tuple<"?">, got !cute.int_tuple<"?{i64}">}}
  %n = cute.size (%s) : (!cute.shape<"(6,?)">) -> !cute.int_tuple<"?{i64}">
  return
}

// -----

func.func @f(%s: !cute.shape<"6">) {
  // expected-error @below {{result #0: expected !cute.int_tuple<"6">, got i32}}
  %n = cute.size (%s) : (!cute.shape<"6">) -> i32
  return
}

// -----

func.func @f(%s: !cute.shape<"(?{div=4},6)">) {
  // expected-error @below {{result #0: expected !cute.int_tuple<"?{div=24}">, got !cute.int_tuple<"?{div=16}">}}
  %r = cute.size (%s) : (!cute.shape<"(?{div=4},6)">) -> !cute.int_tuple<"?{div=16}">
  return
}

// -----

func.func @f(%s: !cute.coord<"6">) {
  // expected-error @below {{operand #0: expected !cute.int_tuple, !cute.shape, !cute.layout or !cute.composed_layout, got !cute.coord<"6">}}
  %n = cute.size (%s) : (!cute.coord<"6">) -> !cute.int_tuple<"6">
  return
}

// -----

func.func @f() {
  // expected-error @below {{'cute.size' op expected 1 operand, got 0}}
  %n = "cute.size"() : () -> !cute.int_tuple<"6">
  return
}

// -----

func.func @f(%s: !cute.shape<"6">) {
  // expected-error @below {{has no property 'made'}}
  %n = "cute.size"(%s) <{made = 3 : i32}> : (!cute.shape<"6">) -> !cute.int_tuple<"6">
  return
}

// -----

func.func @f(%l: !cute.layout<"(6,5):(5,1)">) {
  // expected-error @below {{'cute.size' op expected mode index in [0, 2) at depth 0, got 5}}
  %n = cute.size<[5]> (%l) : (!cute.layout<"(6,5):(5,1)">) -> !cute.int_tuple<"5">
  return
}

// -----

func.func @f(%c: !cute.coord<"(1,2,3)">, %l: !cute.layout<"(6,5):(5,1)">) {
  // expected-error @below {{expected a coordinate of rank 2 for the shape (6,5), got (1,2,3)}}
  %i = cute.layout_eval(%c, %l) : (!cute.coord<"(1,2,3)">, !cute.layout<"(6,5):(5,1)">) -> !cute.int_tuple<"0">
  return
}

// -----

func.func @f(%s: !cute.shape<"6">, %e: !cute.shape<"1">) {
  // expected-error @below {{'cute.append_to_rank' op expected a rank >= 1, got 0}}
  %r = cute.append_to_rank<0> (%s, %e) : !cute.shape<"6">, !cute.shape<"1">
  return
}

// -----

// A size that a 32-bit value cannot hold, whatever the extent.
func.func @size_width(%l: !cute.layout<"(?,65536,65536):(1,1,1)">) {
  // expected-error @+1 {{expected the size of the layout to fit i32, got at least 4294967296; make a dynamic extent 64 bits wide}}
  %n = cute.size (%l) : (!cute.layout<"(?,65536,65536):(1,1,1)">) -> !cute.int_tuple<"?">
  return
}

// -----

func.func @size_width_mode(%l: !cute.layout<"(4,(?,65536,32768)):(1,(1,1,1))">) {
  // expected-error @+1 {{expected the size of mode [1] to fit i32, got at least 2147483648}}
  %n = cute.size<[1]> (%l) : (!cute.layout<"(4,(?,65536,32768)):(1,(1,1,1))">) -> !cute.int_tuple<"?">
  return
}

// -----

func.func @cosize_width(%l: !cute.layout<"(?,65536):(1,65536)">) {
  // expected-error @+1 {{expected the cosize of the layout to fit i32, got at least 4294901761}}
  %n = cute.cosize (%l) : (!cute.layout<"(?,65536):(1,65536)">) -> !cute.int_tuple<"?">
  return
}
