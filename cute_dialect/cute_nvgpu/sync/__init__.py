"""Synchronisation, warps and clusters: one row of a table an instruction."""

from cute_dialect.cute_nvgpu.family import Family

FAMILY = Family(
    __name__,
    ops={"ops": ("cute_nvgpu.arch.*",)},
    lower={"ops": "lower"},
)
