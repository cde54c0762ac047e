"""Which module holds an op or a type that few files use: such a module is imported when a file names one of its own.

The core of ``cute`` (layout algebra, tensors, universal copies) is always there; atoms of an architecture, what is made
of them, shared memory and the instructions of ``cute_nvgpu.arch`` are extensions.  Nothing here imports them.

>>> module_of_op("cute.gemm"), module_of_op("cute.make_layout"), module_of_type("cute.tiled_mma")
('cute_dialect.ops.gemm', None, 'cute_dialect.nvgpu_mma_types')
"""

from __future__ import annotations

from collections.abc import Mapping

_OPS: Mapping[str, tuple[str, ...]] = {
    "tensors": ("cute.local_tile", "cute.local_partition", "cute.domain_offset", "cute.recast_tensor"),
    "shared_memory": ("cute.memref.alloc_smem", "cute.smem_base"),
    "cooperative_gemm": ("cute.cooperative_gemm",),
    "gemm": ("cute.gemm",),
    "sparse_mma": (
        "cute.sparse_gemm", "cute.tiled.mma.layout_E_tv", "cute.tiled.mma.make_fragment_E",
        "cute.tiled.mma.partition_E", "cute.tiled.mma.partition_shape_E",
    ),
    "arch_sparse_mma": ("cute_nvgpu.arch.mma_sp", "cute_nvgpu.arch.wgmma_sp"),
    "im2col": (
        *(f"cute_nvgpu.make_tma_{n}_im2col" for n in ("load", "reduce", "store")), "cute_nvgpu.arch.make_im2col_map",
        *(f"cute_nvgpu.arch.tma_{n}_im2col" for n in ("load", "prefetch", "reduce", "store")),
    ),
    "tile_copies": (
        "cute.cooperative_copy", "cute.tiled.copy.retile", "cute.tiled_copy",
        *(f"cute.make_tiled_copy_{x}" for x in ("A", "B", "C", "tv")),
    ),
    "tma": ("cute.atom.set_value", "cute_nvgpu.arch.make_tensor_map"),
    "arch_tma": tuple(
        f"cute_nvgpu.arch.{n}" for n in ("prefetch_tensormap", "tma_load", "tma_prefetch", "tma_reduce", "tma_store")
    ),
    "arch_copy": tuple(
        f"cute_nvgpu.arch.{n}"
        for n in (
            "bulk_copy", "bulk_prefetch", "bulk_reduce", "cp_async", "ldmatrix", "movmatrix", "prefetch", "shuffle",
            "stmatrix",
        )
    ),
    "arch_mma": tuple(
        f"cute_nvgpu.arch.{n}"
        for n in (
            "dot_product", "fma", "mma_sync", "wgmma", "wgmma_commit_group", "wgmma_fence", "wgmma_wait_group",
        )
    ),
}  # fmt: skip
_OP_PREFIXES: tuple[tuple[str, str], ...] = (
    ("cute.tiled.mma.", "mma"),
    ("cute.make_tiled_mma", "mma"),
    ("cute_nvgpu.make_tma_", "tma"),
    ("cute_nvgpu.arch.", "arch_sync"),
)
_TYPES: Mapping[str, tuple[str, ...]] = {
    "nvgpu_copy_types": tuple(
        f"cute_nvgpu.atom.{n}" for n in ("ldsm", "movm", "shuffle", "simt_async_copy", "stsm")
    ),
    "nvgpu_bulk_types": ("cute_nvgpu.atom.bulk_copy", "cute_nvgpu.atom.bulk_reduce"),
    "nvgpu_im2col_types": tuple(f"cute_nvgpu.atom.tma_{n}_im2col" for n in ("load", "reduce", "store")),
    "nvgpu_mma_types": (
        "cute.tiled_mma",
        *(f"cute_nvgpu.atom.{n}" for n in ("dot_product", "mma_sp", "mma_sync", "universal_fma", "wgmma", "wgmma_sp")),
    ),
    "nvgpu_tma_types": tuple(f"cute_nvgpu.atom.{n}" for n in ("tma_load", "tma_reduce", "tma_store")),
}  # fmt: skip

_MODULE_OF_OP = {name: f"cute_dialect.ops.{module}" for module, names in _OPS.items() for name in names}
_MODULE_OF_TYPE = {name: f"cute_dialect.{module}" for module, names in _TYPES.items() for name in names}


def module_of_op(name: str) -> str | None:
    """The module that holds an op, by the op's name; ``None`` for ops of the core and names that no op has."""
    found = _MODULE_OF_OP.get(name)
    if found is None:
        found = next((f"cute_dialect.ops.{m}" for prefix, m in _OP_PREFIXES if name.startswith(prefix)), None)
    return found


def module_of_type(name: str) -> str | None:
    """The module that holds a type or attribute, by its name; ``None`` for those of the core and unknown names."""
    return _MODULE_OF_TYPE.get(name)
