// Errors of upstream ops are reported at the position of the error.
// RUN: cute-opt %s --split-input-file --verify-diagnostics

llvm.func @kind(%a: i32, %f: f32) {
  // expected-error @below {{expected one of bfly, up, down, idx}}
  %0 = nvvm.shfl.sync sideways %a, %f, %a, %a : f32 -> f32
  llvm.return
}

// -----
llvm.func @position(%s: !llvm.struct<(i32, f32)>) {
  // expected-error @below {{has no element at [2]}}
  %0 = llvm.extractvalue %s[2] : !llvm.struct<(i32, f32)>
  llvm.return
}

// -----
llvm.func @type(%a: i32) {
  // expected-error @below {{'addr' of 'llvm.load': expected LLVM pointer type, got i32}}
  %0 = "llvm.load"(%a) : (i32) -> f32
  llvm.return
}

// -----
llvm.func @missing(%a: i32) {
  // expected-error @below {{'nvvm.shfl.sync' requires attribute 'kind'}}
  %0 = "nvvm.shfl.sync"(%a, %a, %a, %a) : (i32, i32, i32, i32) -> i32
  llvm.return
}

// -----
llvm.func @unknown() {
  // expected-error @below {{nvvm.barier0}}
  nvvm.barier0
  llvm.return
}
