"""Tiled MMAs: partitions, fragments, ``cute.gemm``; what the families of matrix instructions share."""

from cute_dialect.cute_nvgpu.family import Family

FAMILY = Family(
    __name__,
    types={"types": ("cute.tiled_mma",)},
    ops={
        "ops": ("cute.tiled.mma.*", "cute.make_tiled_mma"),
        "gemm": ("cute.gemm",),
        "copies": tuple(f"cute.make_tiled_copy_{x}" for x in "ABC"),
    },
    tile={"ops": "tile", "gemm": "tile", "copies": "tile"},
)
