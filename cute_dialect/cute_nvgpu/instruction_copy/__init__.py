"""Base of copies that consist of machine instructions with their own memory spaces, alignment and layouts."""

from cute_dialect.cute_nvgpu.family import Family

FAMILY = Family(
    __name__,
)
