"""Ops and attributes of the math dialect of upstream MLIR 22.1.8; made by generate.py."""

# fmt: off
# ruff: noqa: E501, RUF100
OPS: tuple[tuple[str | None, ...], ...] = (
    ("absf", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("absi", "operand%1", "result%1", "", "traits=P same=everything()", "$operand attr-dict `:` type($result)"),
    ("acos", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("acosh", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("asin", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("asinh", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("atan", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("atan2", "lhs%0 rhs%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$lhs `,` $rhs (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("atanh", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("cbrt", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("ceil", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("clampf", "value%0 min%0 max%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$value `to` ` ` `[` $min `,` $max `]` (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("copysign", "lhs%0 rhs%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$lhs `,` $rhs (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("cos", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("cosh", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("ctlz", "operand%1", "result%1", "", "traits=P same=everything()", "$operand attr-dict `:` type($result)"),
    ("ctpop", "operand%1", "result%1", "", "traits=P same=everything()", "$operand attr-dict `:` type($result)"),
    ("cttz", "operand%1", "result%1", "", "traits=P same=everything()", "$operand attr-dict `:` type($result)"),
    ("erf", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("erfc", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("exp", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("exp2", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("expm1", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("floor", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("fma", "a%0 b%0 c%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$a `,` $b `,` $c (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("fpowi", "lhs%0 rhs%1", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=all(lhs,result)", "$lhs `,` $rhs (`fastmath` `` $fastmath^)? attr-dict `:` type($lhs) `,` type($rhs)"),
    ("ipowi", "lhs%1 rhs%1", "result%1", "", "traits=P same=everything()", "$lhs `,` $rhs attr-dict `:` type($result)"),
    ("isfinite", "operand%0", "result%2", "fastmath:@arith.fastmath=none", "traits=P same=i1_shape(operand,result)", "$operand attr-dict `:` type($operand)"),
    ("isinf", "operand%0", "result%2", "fastmath:@arith.fastmath=none", "traits=P same=i1_shape(operand,result)", "$operand attr-dict `:` type($operand)"),
    ("isnan", "operand%0", "result%2", "fastmath:@arith.fastmath=none", "traits=P same=i1_shape(operand,result)", "$operand attr-dict `:` type($operand)"),
    ("isnormal", "operand%0", "result%2", "fastmath:@arith.fastmath=none", "traits=P same=i1_shape(operand,result)", "$operand attr-dict `:` type($operand)"),
    ("log", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("log10", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("log1p", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("log2", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("powf", "lhs%0 rhs%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$lhs `,` $rhs (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("round", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("roundeven", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("rsqrt", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("sin", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("sincos", "operand%0", "sin%0 cos%0", "fastmath:@arith.fastmath=none", "traits=P same=all(operand,sin,cos)", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($operand)"),
    ("sinh", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("sqrt", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("tan", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("tanh", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
    ("trunc", "operand%0", "result%0", "fastmath:@arith.fastmath=none", "traits=P same=everything()", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"),
)
ATTRS = (
)
ENUMS = {
}
CONSTRAINTS = (
    "floating-point-like",
    "signless-integer-like",
    "bool-like",
)
