"""GEMM of whole tiles by all threads of a tiled MMA: ``cute.cooperative_gemm``."""

from cute_dialect.cute_nvgpu.family import Family

FAMILY = Family(
    __name__,
    ops={"ops": ("cute.cooperative_gemm",)},
    tile={"ops": "tile"},
    uses=("instruction_copy", "tiled_mma", "wgmma"),
)
