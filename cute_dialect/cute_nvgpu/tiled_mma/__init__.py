"""Tiled MMAs: partitions, fragments and ``cute.gemm``, shared by the families of matrix instructions."""

from cute_dialect.cute_nvgpu.family import Family

FAMILY = Family(
    __name__,
    types={"types": ("cute.tiled_mma",)},
    ops={
        "ops": ("cute.tiled.mma.*", "cute.make_tiled_mma", *(f"cute.make_tiled_copy_{x}" for x in "ABC")),
        "gemm": ("cute.gemm",),
    },
    tile={"ops": "tile", "gemm": "tile"},
)
