"""Copies between the registers of a warp by shuffles."""

from cute_dialect.cute_nvgpu.family import Family

FAMILY = Family(
    __name__,
    types={"types": ("cute_nvgpu.atom.shuffle",)},
    ops={"ops": ("cute_nvgpu.arch.shuffle",)},
    lower={"ops": "lower"},
    atoms="instruction_copy.tile",
    instructions={
        "cute_nvgpu.atom.shuffle": "cute_nvgpu.arch.shuffle",
    },
    uses=("instruction_copy",),
)
