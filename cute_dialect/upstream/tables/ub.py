"""Ops and attributes of the ub dialect of upstream MLIR 22.1.8; made by generate.py."""

# fmt: off
# ruff: noqa: E501, RUF100
OPS: tuple[tuple[str | None, ...], ...] = (
    ("poison", "", "result", "value?:any", "traits=CP", "attr-dict (`<` $value^ `>`)? `:` type($result)"),
    ("unreachable", "", "", "", "traits=T", "attr-dict"),
)
ATTRS = (
    ("poison", "maybe", ""),
)
ENUMS = {
}
CONSTRAINTS = (
)
