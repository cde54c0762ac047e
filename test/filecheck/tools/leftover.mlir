// REQUIRES: mlir
// An op that upstream does not know stops the hand-off at its place; so does a pass that fails there.
// RUN: cute-opt %s --base-prepare --split-input-file --verify-diagnostics

func.func @op(%n: i32) {
  // expected-error@below {{pass 'base-prepare' runs in upstream MLIR, which does not know 'cute.make_coord': lower it first, with cute-to-base}}
  %c = cute.make_coord(%n) : (i32) -> !cute.coord<"(?,2)">
  return
}

// -----

// expected-error@below {{does not know 'func.func' with cute types}}
func.func private @type(!cute.layout<"(6,?):(?,1)">)

// -----

func.func @fine(%n: i32) -> i32 {
  return %n : i32
}
