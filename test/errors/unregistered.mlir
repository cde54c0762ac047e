// Unregistered ops that --allow-unregistered-dialect accepts or rejects.
// RUN: cute-opt %s --allow-unregistered-dialect --split-input-file --verify-diagnostics

func.func @f(%a: i32) {
  // expected-error @below {{unregistered operation 'foo.bar' must be written in generic form}}
  foo.bar %a : i32
//^
  return
}

// -----

func.func @f(%a: i32) {
  // expected-error @below {{unregistered operation 'cute.bar'; did you mean 'cute.clear'?}}
  "cute.bar"(%a) : (i32) -> ()
//^
  return
}
