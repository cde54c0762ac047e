"""Ops and attributes of the func dialect of upstream MLIR 22.1.8; made by generate.py."""

# fmt: off
# ruff: noqa: E501, RUF100
OPS: tuple[tuple[str | None, ...], ...] = (
    ("call", "operands*", "res0*", "callee:ref arg_attrs?:array res_attrs?:array no_inline?:unit", "", "$callee `(` $operands `)` attr-dict `:` functional-type($operands, results)"),
    ("call_indirect", "callee%0 callee_operands*", "results*", "arg_attrs?:array res_attrs?:array", "same=inputs(callee,callee_operands);outputs(callee,results)", "$callee `(` $callee_operands `)` attr-dict `:` type($callee)"),
    ("constant", "", "res0", "value:ref", "traits=CP", "attr-dict $value `:` type(results)"),
    ("func", "", "", "sym_name:sym function_type:type sym_visibility?:str arg_attrs?:array res_attrs?:array no_inline?:unit", "regions=body traits=SI", "custom"),
    ("return", "operands*", "", "", "traits=PT", "attr-dict ($operands^ `:` type($operands))?"),
)
ATTRS = (
)
ENUMS = {
}
CONSTRAINTS = (
    "function type",
)
