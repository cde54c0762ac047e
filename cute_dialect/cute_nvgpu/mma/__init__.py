"""Matrix instructions of one thread and of one warp: ``fma``, ``dp4a``, ``mma.sync``."""

from cute_dialect.cute_nvgpu.family import Family

FAMILY = Family(
    __name__,
    types={"ops": tuple(f"cute_nvgpu.atom.{n}" for n in ("universal_fma", "dot_product", "mma_sync"))},
    ops={"ops": tuple(f"cute_nvgpu.arch.{n}" for n in ("fma", "dot_product", "mma_sync"))},
    lower={"ops": "lower"},
    atoms="tiled_mma.tile",
    instructions={
        "cute_nvgpu.atom.universal_fma": "cute_nvgpu.arch.fma",
        "cute_nvgpu.atom.dot_product": "cute_nvgpu.arch.dot_product",
        "cute_nvgpu.atom.mma_sync": "cute_nvgpu.arch.mma_sync",
    },
    uses=("tiled_mma",),
)
