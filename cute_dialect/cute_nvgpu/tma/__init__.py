"""TMA: tensor maps, and copies and reductions of boxes and of im2col pixel columns."""

from cute_dialect.cute_nvgpu.family import Family

FAMILY = Family(
    __name__,
    types={"types": tuple(f"cute_nvgpu.atom.tma_{n}{m}" for m in ("", "_im2col") for n in ("load", "store", "reduce"))},
    ops={
        "ops": (
            "cute_nvgpu.make_tma_*",
            "cute_nvgpu.arch.make_tensor_map",
            "cute_nvgpu.arch.prefetch_tensormap",
            "cute_nvgpu.arch.tensor_map_address",
            "cute_nvgpu.arch.tensor_map_at",
            *(f"cute_nvgpu.arch.tma_{n}" for n in ("load", "prefetch", "reduce", "store")),
        ),
        "im2col_ops": (
            *(f"cute_nvgpu.make_tma_{n}_im2col" for n in ("load", "reduce", "store")),
            "cute_nvgpu.arch.make_im2col_map",
            *(f"cute_nvgpu.arch.tma_{n}_im2col" for n in ("load", "prefetch", "reduce", "store")),
        ),
    },
    tile={"ops": "tile", "im2col_ops": "tile"},
    lower={"ops": "lower", "im2col_ops": "lower"},
    atoms="tile",
)
