"""What copies share that are one machine instruction each, with spaces, alignment and layouts of their own."""

from cute_dialect.cute_nvgpu.family import Family

FAMILY = Family(
    __name__,
)
