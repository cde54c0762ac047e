// Diagnostics: what the verifier rejects, and what it says.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

func.func @f(%s: !cute.shape<"6">) {
  // expected-error @below {{'cute.print' op expected 0 results, got 1}}
  %r = "cute.print"(%s) : (!cute.shape<"6">) -> i32
  return
}

// -----

func.func @f(%i: i32) {
  // expected-error @below {{operand #0: expected a cute value, got i32}}
  cute.print(%i) : i32
  return
}
