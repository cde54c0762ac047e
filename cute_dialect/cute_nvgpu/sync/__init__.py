"""Synchronisation, warp, cluster and atomic instructions, defined by a table."""

from cute_dialect.cute_nvgpu.family import Family

FAMILY = Family(__name__, ops={"ops": ("cute_nvgpu.arch.*",)}, lower={"ops": "lower"})
