"""The dialect ``cute_nvgpu``: NVIDIA instructions, by family.

A family has a module of its types, ops and their constructors, and a module of their lowerings: ``TO_ARCH`` in
``convert-cute-algo-to-arch``, and ``TO_BASE`` in ``cute-to-base``. Code that several families share is in those of
``instruction_copy`` and ``tiled_mma``. A :class:`Family` record names the modules; the lists of ops, types and
lowerings are derived from the records.

Every program reads all records when it starts. It imports the modules of a family only when a file uses one of its ops
or types. Therefore a record contains names only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

_NONE: Mapping[str, str] = {}
_NO_NAMES: Mapping[str, tuple[str, ...]] = {}


class Family(NamedTuple):
    """Modules and names of one family.

    Args:
        name: the name of the family.
        types: module -> names of the types in its ``ATTRS``. A name that ends in ``*`` matches all names with this
            prefix that no other record lists.
        ops: module -> names of the ops in its ``OPS``, with the same use of ``*``.
        to_arch: module of ops -> module whose ``TO_ARCH`` lowers them in ``convert-cute-algo-to-arch``.
        to_base: module of ops -> module whose ``TO_BASE`` lowers them in ``cute-to-base``.
        atoms: module with a function ``copy`` or ``multiply``, which lowers ``cute.copy`` or ``cute.gemm`` with an atom
            of the family.
        instructions: name of an atom type -> name of the op for one instruction. The module of another family uses it.
        uses: other families that the modules of this family may import.
        package: the package of the modules.
    """

    name: str
    types: Mapping[str, tuple[str, ...]] = _NO_NAMES
    ops: Mapping[str, tuple[str, ...]] = _NO_NAMES
    to_arch: Mapping[str, str] = _NONE
    to_base: Mapping[str, str] = _NONE
    atoms: str = ""
    instructions: Mapping[str, str] = _NONE
    uses: tuple[str, ...] = ()
    package: str = "cute_dialect.cute_nvgpu"

    def module(self, name: str) -> str:
        """Return the qualified name of a module of the family."""
        return f"{self.package}.{name}"


def _arch(*names: str) -> tuple[str, ...]:
    return tuple(f"cute_nvgpu.arch.{n}" for n in names)


def _atoms(*names: str) -> tuple[str, ...]:
    return tuple(f"cute_nvgpu.atom.{n}" for n in names)


_SYNC = Family("sync", ops={"sync": ("cute_nvgpu.arch.*",)}, to_base={"sync": "sync_lowering"})

_COPIES = _atoms("simt_async_copy", "ldsm", "stsm", "movm", "shuffle")
_COPY_OPS = _arch("cp_async", "ldmatrix", "stmatrix", "movmatrix", "shuffle")
_INSTRUCTION_COPY = Family(
    "instruction_copy",
    types={"instruction_copy": _COPIES},
    ops={"instruction_copy": _COPY_OPS},
    to_base={"instruction_copy": "instruction_copy_lowering"},
    atoms="instruction_copy_lowering",
    instructions=dict(zip(_COPIES, _COPY_OPS)),
)

_BULK = Family(
    "bulk",
    types={"bulk": _atoms("bulk_copy", "bulk_reduce")},
    ops={"bulk": _arch("bulk_copy", "bulk_prefetch", "bulk_reduce", "prefetch")},
    to_base={"bulk": "bulk_lowering"},
    atoms="bulk_lowering",
    uses=("instruction_copy",),
)

_TMA = Family(
    "tma",
    types={"tma_types": _atoms(*(f"tma_{n}{m}" for m in ("", "_im2col") for n in ("load", "store", "reduce")))},
    ops={
        "tma": (
            "cute_nvgpu.make_tma_*",
            *_arch("make_tensor_map", "prefetch_tensormap", "tensor_map_address", "tensor_map_at", "make_im2col_map"),
            *_arch(*(f"tma_{n}{m}" for m in ("", "_im2col") for n in ("load", "prefetch", "reduce", "store"))),
        )
    },
    to_arch={"tma": "tma_lowering"},
    to_base={"tma": "tma_lowering"},
    atoms="tma_lowering",
)

_TILED_MMA = Family(
    "tiled_mma",
    types={"tiled_mma": ("cute.tiled_mma",)},
    ops={
        "tiled_mma": ("cute.tiled.mma.*", "cute.make_tiled_mma", *(f"cute.make_tiled_copy_{x}" for x in "ABC")),
        "gemm": ("cute.gemm",),
    },
    to_arch={"tiled_mma": "tiled_mma_lowering", "gemm": "tiled_mma_lowering"},
)

_MMAS, _MMA_OPS = _atoms("universal_fma", "dot_product", "mma_sync"), _arch("fma", "dot_product", "mma_sync")
_MMA = Family(
    "mma",
    types={"mma": _MMAS},
    ops={"mma": _MMA_OPS},
    to_base={"mma": "mma_lowering"},
    atoms="tiled_mma_lowering",
    instructions=dict(zip(_MMAS, _MMA_OPS)),
    uses=("tiled_mma",),
)

_WGMMA = Family(
    "wgmma",
    types={"wgmma": _atoms("wgmma")},
    ops={"wgmma": _arch("wgmma", "wgmma_fence", "wgmma_commit_group", "wgmma_wait_group")},
    to_base={"wgmma": "wgmma_lowering"},
    atoms="wgmma_lowering",
    uses=("tiled_mma",),
)

_TMEM_COPIES = _atoms("tmem_load", "tmem_store")
_TMEM_COPY_OPS = _arch("tmem_load", "tmem_store")
_TMEM = Family(
    "tmem",
    types={"tmem": _TMEM_COPIES},
    ops={
        "tmem": (
            "cute.make_tmem_copy",
            *_arch(
                *(f"tmem_{n}" for n in ("alloc", "relinquish", "pointer", "address", "dealloc", "wait", "load_red"))
            ),
            *_TMEM_COPY_OPS,
        )
    },
    to_arch={"tmem": "tmem_lowering"},
    to_base={"tmem": "tmem_lowering"},
    atoms="instruction_copy_lowering",
    instructions=dict(zip(_TMEM_COPIES, _TMEM_COPY_OPS)),
    uses=("sync", "instruction_copy"),
)

_TMEM_COPY = Family(
    "tmem_copy",
    types={"tmem_copy": _atoms("tmem_copy")},
    ops={"tmem_copy": _arch("tmem_copy")},
    to_base={"tmem_copy": "tmem_copy_lowering"},
    atoms="tmem_copy_lowering",
    uses=("sync", "instruction_copy", "tmem"),
)

_TCGEN05 = Family(
    "tcgen05",
    types={"tcgen05": _atoms("tcgen05_mma")},
    ops={"tcgen05": _arch("tcgen05_mma", "tcgen05_mma_ws", "tcgen05_scaled_mma", "tcgen05_commit", "tcgen05_fence")},
    to_base={"tcgen05": "tcgen05_lowering"},
    atoms="tcgen05_lowering",
    uses=("sync", "tiled_mma", "tmem", "wgmma"),
)

_SPARSE = Family(
    "sparse",
    types={"sparse": _atoms("mma_sp", "wgmma_sp")},
    ops={
        "sparse": (
            *(f"cute.tiled.mma.{n}" for n in ("layout_E_tv", "make_fragment_E", "partition_E", "partition_shape_E")),
            "cute.sparse_gemm",
            *_arch("mma_sp", "wgmma_sp"),
        )
    },
    to_arch={"sparse": "sparse_lowering"},
    to_base={"sparse": "sparse_lowering"},
    uses=("tiled_mma", "mma", "wgmma"),
)

_TCGEN05_SPARSE = Family(
    "tcgen05_sparse",
    types={"tcgen05_sparse": _atoms("tcgen05_mma_sp")},
    ops={"tcgen05_sparse": _arch("tcgen05_mma_sp")},
    to_base={"tcgen05_sparse": "tcgen05_sparse_lowering"},
    atoms="tcgen05_sparse_lowering",
    uses=("sync", "tiled_mma", "tmem", "tcgen05", "wgmma"),
)

_SCALE_OPERANDS = ("SFA", "SFB")
_BLOCK_SCALING = Family(
    "block_scaling",
    ops={
        "block_scaling": (
            *(
                f"cute.tiled.mma.{n}_{x}"
                for n in ("partition", "partition_shape", "make_fragment")
                for x in _SCALE_OPERANDS
            ),
            *(f"cute.tiled.mma.layout_{x}_tv" for x in _SCALE_OPERANDS),
            "cute.scaled_gemm",
        )
    },
    to_arch={"block_scaling": "block_scaling_lowering"},
    uses=("tiled_mma", "mma", "wgmma", "sparse"),
)

_COOPERATIVE_GEMM = Family(
    "cooperative_gemm",
    ops={"cooperative_gemm": ("cute.cooperative_gemm",)},
    to_arch={"cooperative_gemm": "cooperative_gemm_lowering"},
    uses=("instruction_copy", "tiled_mma", "wgmma"),
)

FAMILIES = (
    _SYNC,
    _INSTRUCTION_COPY,
    _BULK,
    _TMA,
    _TILED_MMA,
    _MMA,
    _WGMMA,
    _TMEM,
    _TMEM_COPY,
    _TCGEN05,
    _SPARSE,
    _TCGEN05_SPARSE,
    _BLOCK_SCALING,
    _COOPERATIVE_GEMM,
)
"""All families, in the order of the documentation."""

TO_NVGPU = "cute_dialect.cute_nvgpu.to_nvgpu"
"""Module that lowers to upstream's ``nvgpu`` dialect, for ``cute-to-base`` with ``arch-dialect=nvgpu``."""
