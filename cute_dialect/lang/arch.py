"""``cute.arch``: threads, barriers, fences, atomics and machine instructions.

Each module lists its names of ``cute.arch`` in ``__all__``.
"""

from __future__ import annotations

from cute_dialect.lang.machine import atomics, instructions, sync, tensor_memory, threads, warps
from cute_dialect.lang.machine.atomics import *  # noqa: F403
from cute_dialect.lang.machine.instructions import *  # noqa: F403
from cute_dialect.lang.machine.sync import *  # noqa: F403
from cute_dialect.lang.machine.tensor_memory import *  # noqa: F403
from cute_dialect.lang.machine.threads import *  # noqa: F403
from cute_dialect.lang.machine.threads import issues as issues
from cute_dialect.lang.machine.warps import *  # noqa: F403
from cute_dialect.lang.values.math import popc as popc
from cute_dialect.lang.values.shared_memory import alloc_smem as alloc_smem
from cute_dialect.lang.values.shared_memory import dynamic_smem_size as dynamic_smem_size
from cute_dialect.lang.values.shared_memory import get_dyn_smem as get_dyn_smem

__all__ = ["alloc_smem", "dynamic_smem_size", "get_dyn_smem", "issues", "popc"]
__all__ += atomics.__all__
__all__ += threads.__all__
__all__ += instructions.__all__
__all__ += sync.__all__
__all__ += tensor_memory.__all__
__all__ += warps.__all__


def __dir__() -> list[str]:
    return sorted(__all__)
