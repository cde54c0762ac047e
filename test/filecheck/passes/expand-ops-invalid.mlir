// What cannot be expanded is an error at the op.
// RUN: cute-opt %s --cute-expand-ops --split-input-file --verify-diagnostics

// Leaves of other widths than 32 and 64 bits cannot be put together again.
func.func @narrow(%s: !cute.shape<"(?{i8},4)">) -> !cute.shape<"?{i8}"> {
  // expected-error @below {{cannot expand 'cute.get': expected dynamic leaves of 32 or 64 bits, got '?{i8}'}}
  %r = cute.get<[0]> (%s) : !cute.shape<"(?{i8},4)"> -> !cute.shape<"?{i8}">
  return %r : !cute.shape<"?{i8}">
}

// -----

// Taking them apart is fine.
func.func @narrow_operand(%s: !cute.shape<"(?{i8},4)">) -> !cute.int_tuple<"?"> {
  %r = cute.size (%s) : (!cute.shape<"(?{i8},4)">) -> !cute.int_tuple<"?">
  return %r : !cute.int_tuple<"?">
}
