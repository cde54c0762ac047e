"""Ops and attributes of the ub dialect of upstream MLIR 22.1.8, made by `upstream/generate.py`."""

# ruff: noqa: E501
OPS = (
    ('poison', '', 'result', 'value:any', 'traits=CP', 'attr-dict (`<` $value^ `>`)? `:` type($result)'),
    ('unreachable', '', '', '', 'traits=T', 'attr-dict'),
)
ATTRS = (
    ('poison', 'maybe', ''),
)
ENUMS = {
}
