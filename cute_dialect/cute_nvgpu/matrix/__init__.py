"""Copies of 8x8 matrices by a warp: ``ldmatrix``, ``stmatrix``, ``movmatrix``."""

from cute_dialect.cute_nvgpu.family import Family

FAMILY = Family(
    __name__,
    types={"types": tuple(f"cute_nvgpu.atom.{n}" for n in ("ldsm", "stsm", "movm"))},
    ops={"ops": tuple(f"cute_nvgpu.arch.{n}" for n in ("ldmatrix", "stmatrix", "movmatrix"))},
    lower={"ops": "lower"},
    atoms="tile",
    uses=("instruction_copy",),
)
