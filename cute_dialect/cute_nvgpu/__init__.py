"""The dialect ``cute_nvgpu``: one folder for each family of instructions.

A family has up to four modules: ``types.py`` (its atoms; small families have them in ``ops.py``), ``ops.py`` (its
instructions and their constructors), ``tile.py`` (lowering in ``convert-cute-algo-to-arch``) and ``lower.py`` (lowering
in ``cute-to-base``). Its ``__init__.py`` is a :class:`~.family.Family` record of these modules. Code that several
families share is in the folders ``instruction_copy`` and ``tiled_mma``.
"""

from cute_dialect.cute_nvgpu.bulk import FAMILY as BULK
from cute_dialect.cute_nvgpu.cooperative_gemm import FAMILY as COOPERATIVE_GEMM
from cute_dialect.cute_nvgpu.instruction_copy import FAMILY as INSTRUCTION_COPY
from cute_dialect.cute_nvgpu.mma import FAMILY as MMA
from cute_dialect.cute_nvgpu.sparse import FAMILY as SPARSE
from cute_dialect.cute_nvgpu.sync import FAMILY as SYNC
from cute_dialect.cute_nvgpu.tiled_mma import FAMILY as TILED_MMA
from cute_dialect.cute_nvgpu.tma import FAMILY as TMA
from cute_dialect.cute_nvgpu.wgmma import FAMILY as WGMMA

FAMILIES = (SYNC, INSTRUCTION_COPY, BULK, TMA, TILED_MMA, MMA, WGMMA, SPARSE, COOPERATIVE_GEMM)
"""All families, in the order of the documentation."""

TO_NVGPU = "cute_dialect.cute_nvgpu.to_nvgpu"
"""Module that lowers to upstream's ``nvgpu`` dialect, for ``cute-to-base`` with ``arch-dialect=nvgpu``."""
