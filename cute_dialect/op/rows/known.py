"""Calls on rows that were made before: one look-up finds what to launch, which only takes addresses.

As :mod:`cute_dialect.op.known`, for any number of tensors and results.  A key is all that the checks and the choice of
a kernel look at but the addresses; only calls at addresses of whole 16 bytes are recognised, the others are looked at.
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from cute_dialect.op.repeated import Repeated, Stayed, repeating
from cute_dialect.runtime.arrays import current_stream_of_torch
from cute_dialect.runtime.fast_call import guard_of

__all__ = ["KnownRows", "Launch"]

_LIMIT = 1024
"""Kinds of calls that are remembered."""


class Launch(NamedTuple):
    """A prepared launch: ``launch(stream, *addresses)``, of the tensors and results with the numbers in ``order``,
    which count those that are read, then results; -1 stands for a number.  ``mask``: bits that are 0 in addresses.
    """

    launch: Callable[..., None]
    order: tuple[int, ...]
    mask: int


class _Known(NamedTuple):
    """A kind of call: what tells its tensors, its numbers, whether a tensor wants gradients; what launches again;
    whether its first result is given; and how many tensors are given.
    """

    guard: Callable[..., bool]
    numbers: tuple[object, ...]
    grads: bool
    run: Callable[..., Any]
    given: bool
    tensors: int


def _never(*tensors: object) -> bool:
    return False


_NONE = _Known(_never, (), False, _never, False, 0)


class KnownRows:
    """The calls of an operation that were made: ``y = calls.again((x,), (eps,))``."""

    def __init__(self) -> None:
        self._found: dict[object, _Known] = {}
        self._last = _NONE
        self._with_grads: Callable[[], bool] | None = None
        self.is_traced: Callable[[], bool] = _ask_torch
        """Tells whether ``torch.compile`` traces a call, which is no known one then."""

    def __len__(self) -> int:
        return len(self._found)

    def clear(self) -> None:
        """Forget all."""
        self._found.clear()
        self._last = _NONE

    def again(self, tensors: tuple[Any, ...], numbers: tuple[object, ...] = (), out: Any = None) -> Any:
        """Compute what an earlier call did, of like tensors; None, and nothing is done, where there was none.

        ``out``: the first result, where it is given.
        """
        given = tensors if out is None else (*tensors, out)
        known = self._last
        like = numbers == known.numbers and len(given) == known.tensors and known.given is (out is not None)
        if not like or not known.guard(*given):
            try:
                found = self._found.get((_key(given), numbers, out is None))
                if found is not None:
                    _ = [t.data_ptr() for t in given]  # what vmap makes of tensors has none
            except (AttributeError, TypeError, RuntimeError):  # no strided tensors: who computes says so
                return None
            if found is None:
                return None
            self._last = known = found
        if known.grads and self._with_grads():  # type: ignore[misc]
            return None
        return known.run(*given)

    def remember(
        self, tensors: tuple[Any, ...], numbers: tuple[object, ...], results: Sequence[Any], launches: Sequence[Launch],
        returned: tuple[int, ...] = (0,), out: Any = None,
    ) -> None:  # fmt: skip
        """Remember a call; only of plain torch tensors at addresses of whole 16 bytes."""
        torch = sys.modules["torch"]
        plain = (torch.Tensor, torch.nn.Parameter)
        if any(type(t) not in plain or t.data_ptr() & launches[0].mask for t in (*tensors, *results)):
            return
        given = tensors if out is None else (*tensors, out)
        if len(self._found) >= _LIMIT:
            self._found.clear()
        self._with_grads, self.is_traced = torch.is_grad_enabled, torch.compiler.is_dynamo_compiling
        made = [(tuple(t.shape), t.stride(), t.dtype) for t in results[out is not None :]]
        count = len(tensors)
        apart = () if out is None else [(count, i, _reach(out), _reach(t)) for i, t in enumerate(tensors)]
        places = tuple([count + i for i in returned])
        run = repeating(
            len(given), [Repeated(x.launch, x.order) for x in launches], made, results[0].device, launches[0].mask,
            current_stream_of_torch(), places[0] if len(places) == 1 else places, Stayed(apart=tuple(apart)),
        )  # fmt: skip
        grads = any(t.requires_grad for t in given)
        self._found[_key(given), numbers, out is None] = _Known(
            guard_of(given) or _never, numbers, grads, run, out is not None, len(given)
        )


def _ask_torch() -> bool:
    """Tell whether ``torch.compile`` traces this call, where torch is imported."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_dynamo_compiling()


def _reach(t: Any) -> int:
    """Return the bytes from the first to behind the last element."""
    return (sum([(n - 1) * step for n, step in zip(t.shape, t.stride())]) + 1) * t.element_size() if t.numel() else 0


def _key(tensors: tuple[Any, ...]) -> tuple[object, ...]:
    """Return what tells tensors from others."""
    return tuple(
        [(type(t), t.shape, t.stride(), t.dtype, t.is_cuda, t.get_device(), t.requires_grad) for t in tensors]
    )  # fmt: skip
