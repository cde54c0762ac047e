"""Asynchronous matrix instructions of a warpgroup: ``wgmma``."""

from cute_dialect.cute_nvgpu.family import Family

FAMILY = Family(
    __name__,
    types={"ops": ("cute_nvgpu.atom.wgmma",)},
    ops={
        "ops": tuple(f"cute_nvgpu.arch.{n}" for n in ("wgmma", "wgmma_fence", "wgmma_commit_group", "wgmma_wait_group"))
    },
    lower={"ops": "lower"},
    atoms="tile",
    uses=("tiled_mma",),
)
