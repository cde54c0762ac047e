"""Copies of 8x8 matrices by a warp: ``ldmatrix``, ``stmatrix``, ``movmatrix``."""

from cute_dialect.cute_nvgpu.family import Family

FAMILY = Family(
    __name__,
    types={"types": tuple(f"cute_nvgpu.atom.{n}" for n in ("ldsm", "stsm", "movm"))},
    ops={"ops": tuple(f"cute_nvgpu.arch.{n}" for n in ("ldmatrix", "stmatrix", "movmatrix"))},
    lower={"ops": "lower"},
    atoms="instruction_copy.tile",
    instructions={
        "cute_nvgpu.atom.ldsm": "cute_nvgpu.arch.ldmatrix",
        "cute_nvgpu.atom.stsm": "cute_nvgpu.arch.stmatrix",
        "cute_nvgpu.atom.movm": "cute_nvgpu.arch.movmatrix",
    },
    uses=("instruction_copy",),
)
