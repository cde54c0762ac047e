"""Base of the copy atoms that are one machine instruction, such as ``cp.async`` and ``ldmatrix``."""

from cute_dialect.cute_nvgpu.family import Family

FAMILY = Family(
    __name__,
)
