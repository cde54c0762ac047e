"""Matrix instructions with a sparse operand A and its metadata E: ``mma.sp``, ``wgmma.sp``."""

from cute_dialect.cute_nvgpu.family import Family

FAMILY = Family(
    __name__,
    types={"ops": ("cute_nvgpu.atom.mma_sp", "cute_nvgpu.atom.wgmma_sp")},
    ops={
        "ops": (
            *(f"cute.tiled.mma.{n}" for n in ("layout_E_tv", "make_fragment_E", "partition_E", "partition_shape_E")),
            "cute.sparse_gemm",
            "cute_nvgpu.arch.mma_sp",
            "cute_nvgpu.arch.wgmma_sp",
        )
    },
    tile={"ops": "tile"},
    lower={"ops": "lower"},
    uses=("tiled_mma", "mma", "wgmma"),
)
