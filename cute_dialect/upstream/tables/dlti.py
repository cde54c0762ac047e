"""Ops and attributes of the dlti dialect of upstream MLIR 22.1.8; made by generate.py."""

# fmt: off
# ruff: noqa: E501, RUF100
OPS: tuple[tuple[str | None, ...], ...] = (
)
ATTRS = (
    ("dl_entry", "text", ""),
    ("dl_spec", "text", ""),
    ("function_pointer_alignment", "text", ""),
    ("map", "text", ""),
    ("target_device_spec", "text", ""),
    ("target_system_spec", "text", ""),
)
ENUMS = {
}
CONSTRAINTS = (
)
