"""Cached calls of a plan: one look-up finds the launches, which take addresses only.

The other properties of the arguments (``operation``, ``operands``, …) are computed on first use.
"""

# torch is not installed where the types are checked.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cute_dialect.op.execute.arguments import Arguments
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.execute.recording import Launch, Recording
from cute_dialect.runtime.arrays import current_stream_of_torch

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.plans.gemm import Gemm

__all__ = ["Again", "again", "remember"]


class Again(Arguments):
    """The arguments of a replayed call; ``make`` computes their properties from the same arrays."""

    def __init__(self, make: Callable[[], Arguments], D: Any):
        self._make, self.D, self.results = make, D, {"D": D}
        self._transfer, self.launched = None, []
        number = D.device.index or 0
        self._waits_for(number, current_stream_of_torch()(number))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        for key, value in vars(self._make()).items():
            self.__dict__.setdefault(key, value)
        return object.__getattribute__(self, name)


def again(
    plan: Gemm, known: KnownCalls, A: Any, B: Any, C: Any, D: Any, alpha: float, beta: float, bias: Any
) -> Again | None:  # fmt: skip
    """Replay a cached call of a plan, or return None if there is none."""
    if "torch" not in sys.modules or len(known) == 0 or known.is_traced():
        return None
    tensors, how = _key(A, B, C, D, alpha, beta, bias)
    found = known.again(how, *tensors)
    if found is None:
        return None
    return Again(lambda: plan.arguments(A, B, C, found, alpha, beta, bias=bias), found)


def _key(
    A: Any, B: Any, C: Any, D: Any, alpha: float, beta: float, bias: Any
) -> tuple[tuple[Any, ...], tuple[object, ...]]:  # fmt: skip
    """Return the tensors of a call, and all other data that identifies its specialization."""
    read = beta != 0.0
    tensors = (A, B, *((C,) if read else ()), *(() if bias is None else (bias,)), *(() if D is None else (D,)))
    return tensors, (repr(alpha), repr(beta), bias is None, D is None)


def remember(known: KnownCalls, done: Arguments, A: Any, B: Any, C: Any, D: Any, bias: Any) -> None:
    """Cache a call of torch tensors on a GPU, if its blocks share no workspace."""
    x, steps = done.operands, done.launched
    if done.on_cpu or done.is_copied or x.d.library != "torch" or not steps:
        return
    if len(steps) == 1 and steps[0].operands is not x:  # The launch computes a substitute, such as an empty product.
        return
    tensors, how = _key(A, B, C, D, x.alpha, x.beta, bias)
    views = [v for v in (x.a, x.b, x.c, x.bias, x.d) if v is not None]
    if [v.pointer for v in views] != [t.data_ptr() for t in (*tensors, *(() if D is not None else (done.D,)))]:
        return
    recording = Recording(tensors)
    places = {v.pointer for v in views}
    if D is None:
        recording.make(done.D)
    for variant, operands in steps:
        launcher = done.operation.launcher(variant, False)
        launch = launcher.by_address(operands, 0)
        if launch is None:
            return
        arrays = launcher.recipe.arrays(operands)
        for view in arrays:
            if view.pointer not in places:  # Memory that passes data from one launch to the next.
                memory: Any = view.keep
                if not hasattr(memory, "data_ptr") or memory.data_ptr() != view.pointer:
                    return
                places.add(view.pointer)
                recording.make(memory)
        recording.launch(Launch(launch, tuple(arrays), launcher.kernel.alignment - 1))
    known.remember(how, tensors, recording, done.D)
