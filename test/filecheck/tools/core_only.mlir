// The core dialect has no divisibility: --core-only (or --div=off) makes it a parse error.
// RUN: cute-opt %s | filecheck %s
// RUN: cute-opt %s --core-only --verify-diagnostics
// RUN: not cute-opt %s --div=off 2>&1 | filecheck %s --check-prefix=ERROR
// CHECK: !cute.shape<"(?{div=8},2)">
// ERROR: core_only.mlir:[[# @LINE + 2]]:38: error: divisibility ('div=') is not part of the core dialect (--core-only)
// expected-error@below {{divisibility ('div=') is not part of the core dialect}}
func.func @f(%s: !cute.shape<"(?{i32 div=8},2)">) {
  return
}
