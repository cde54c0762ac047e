"""Ops and attributes of the index dialect of upstream MLIR 22.1.8; made by generate.py."""

# fmt: off
# ruff: noqa: E501, RUF100
OPS: tuple[tuple[str | None, ...], ...] = (
    ("add", "lhs:index rhs:index", "result:index", "", "traits=MP", "$lhs `,` $rhs attr-dict"),
    ("and", "lhs:index rhs:index", "result:index", "", "traits=MP", "$lhs `,` $rhs attr-dict"),
    ("bool.constant", "", "result:i1", "value:bool", "traits=CP", "attr-dict $value"),
    ("casts", "input%0", "output%0", "", "traits=P", "$input attr-dict `:` type($input) `to` type($output)"),
    ("castu", "input%0", "output%0", "", "traits=P", "$input attr-dict `:` type($input) `to` type($output)"),
    ("ceildivs", "lhs:index rhs:index", "result:index", "", "traits=E", "$lhs `,` $rhs attr-dict"),
    ("ceildivu", "lhs:index rhs:index", "result:index", "", "traits=E", "$lhs `,` $rhs attr-dict"),
    ("cmp", "lhs:index rhs:index", "result:i1", "pred:@index.cmp_predicate", "traits=P", "`` $pred `(` $lhs `,` $rhs `)` attr-dict"),
    ("constant", "", "result:index", "value:index", "traits=CP", "attr-dict $value"),
    ("divs", "lhs:index rhs:index", "result:index", "", "traits=E", "$lhs `,` $rhs attr-dict"),
    ("divu", "lhs:index rhs:index", "result:index", "", "traits=E", "$lhs `,` $rhs attr-dict"),
    ("floordivs", "lhs:index rhs:index", "result:index", "", "traits=E", "$lhs `,` $rhs attr-dict"),
    ("maxs", "lhs:index rhs:index", "result:index", "", "traits=MP", "$lhs `,` $rhs attr-dict"),
    ("maxu", "lhs:index rhs:index", "result:index", "", "traits=MP", "$lhs `,` $rhs attr-dict"),
    ("mins", "lhs:index rhs:index", "result:index", "", "traits=MP", "$lhs `,` $rhs attr-dict"),
    ("minu", "lhs:index rhs:index", "result:index", "", "traits=MP", "$lhs `,` $rhs attr-dict"),
    ("mul", "lhs:index rhs:index", "result:index", "", "traits=MP", "$lhs `,` $rhs attr-dict"),
    ("or", "lhs:index rhs:index", "result:index", "", "traits=MP", "$lhs `,` $rhs attr-dict"),
    ("rems", "lhs:index rhs:index", "result:index", "", "traits=E", "$lhs `,` $rhs attr-dict"),
    ("remu", "lhs:index rhs:index", "result:index", "", "traits=E", "$lhs `,` $rhs attr-dict"),
    ("shl", "lhs:index rhs:index", "result:index", "", "traits=P", "$lhs `,` $rhs attr-dict"),
    ("shrs", "lhs:index rhs:index", "result:index", "", "traits=P", "$lhs `,` $rhs attr-dict"),
    ("shru", "lhs:index rhs:index", "result:index", "", "traits=P", "$lhs `,` $rhs attr-dict"),
    ("sizeof", "", "result:index", "", "traits=P", "attr-dict"),
    ("sub", "lhs:index rhs:index", "result:index", "", "traits=P", "$lhs `,` $rhs attr-dict"),
    ("xor", "lhs:index rhs:index", "result:index", "", "traits=MP", "$lhs `,` $rhs attr-dict"),
)
ATTRS = (
    ("cmp_predicate", "bare", "eq ne slt sle sgt sge ult ule ugt uge"),
)
ENUMS = {
}
CONSTRAINTS = (
    "integer or index",
)
