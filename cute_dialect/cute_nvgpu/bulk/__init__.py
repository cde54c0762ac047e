"""Bulk copies and reductions of contiguous runs of bytes (``cp.async.bulk``), and prefetches."""

from cute_dialect.cute_nvgpu.family import Family

FAMILY = Family(
    __name__,
    types={"types": ("cute_nvgpu.atom.bulk_copy", "cute_nvgpu.atom.bulk_reduce")},
    ops={"ops": tuple(f"cute_nvgpu.arch.{n}" for n in ("bulk_copy", "bulk_prefetch", "bulk_reduce", "prefetch"))},
    lower={"ops": "lower"},
    atoms="tile",
    uses=("instruction_copy",),
)
