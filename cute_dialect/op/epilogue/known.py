"""Products with traced epilogues that were computed before: one look-up finds what to launch.

As :mod:`cute_dialect.op.known` does for plain products; a key has, besides, the traced epilogue and what its arguments
are but their addresses.  Numbers are part of the key: another one is another kind of call.
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.op.known import Prepared, key_of
from cute_dialect.op.repeated import maker_of
from cute_dialect.runtime.arrays import current_stream_of_torch

if TYPE_CHECKING:  # pragma: no cover
    import torch

    from cute_dialect.op.epilogue.tracing import Traced

__all__ = ["KnownGraphs"]

_LIMIT = 1024


class _Known(NamedTuple):
    """A kind of call: what launches; the names of what is read and of what is written behind the matrices ("" for a
    number); how results are made that are not given.
    """

    prepared: Prepared
    operands: tuple[str, ...]
    made: tuple[tuple[str, tuple[int, ...], tuple[int, ...], torch.dtype], ...]
    empty: Callable[..., Any]
    number: int


class KnownGraphs:
    """The calls of an operation with traced epilogues: ``found = calls.again(a, b, out, dtype, traced, args)``."""

    def __init__(self) -> None:
        self._found: dict[object, _Known] = {}
        self._stream: Callable[[int], int] | None = None
        self._grad: Callable[[], bool] | None = None

    def __len__(self) -> int:
        return len(self._found)

    def clear(self) -> None:
        """Forget all."""
        self._found.clear()

    def again(self, a: Any, b: Any, out: Any, dtype: object, traced: Traced, args: Mapping[str, Any]) -> Any:
        """Compute a product like an earlier one; None, and nothing is done, where there was none."""
        try:
            found = self._found.get(_key(a, b, out, dtype, traced, args))
            if found is not None:
                _ = [t.data_ptr() for t in _tensors(a, b, out, args)]  # what vmap makes of tensors has none
        except (AttributeError, TypeError, RuntimeError):
            return None
        if found is None or (self._grad() and any(t.requires_grad for t in _tensors(a, b, out, args))):  # type: ignore[misc]
            return None
        (launch, mask, more, _), operands, made, empty, number = found
        results = dict(args)
        for name, shape, stride, kind in made:
            results[name] = empty(shape, stride, kind)
        p, q, r = a.data_ptr(), b.data_ptr(), results["D"].data_ptr()
        others = [results[name].data_ptr() if name else 0 for name in operands]
        bits = p | q | r
        for address in others:
            bits |= address
        if bits & mask:
            return None
        stream = self._stream(number)  # type: ignore[misc]
        launch(stream, p, q, r, *(() if more is None else more(stream)), *others)
        return traced.formed(results)

    def remember(
        self, a: Any, b: Any, out: Any, dtype: object, traced: Traced, args: Mapping[str, Any],
        results: Mapping[str, torch.Tensor], prepared: Prepared, operands: Sequence[str],
    ) -> None:  # fmt: skip
        """Remember how a call was computed; only of plain tensors at addresses of whole units, and where all results
        were made.

        ``operands``: names of what the launch takes behind the matrices, "" for a number.
        """
        import torch

        plain = (torch.Tensor, torch.nn.Parameter)
        tensors = [*results.values(), *_tensors(a, b, out, args)]
        if out is not None or any(name in args for name in results):
            return
        if any(type(t) not in plain or t.data_ptr() & prepared.mask for t in tensors):
            return
        self._grad = torch.is_grad_enabled
        if self._grad() and any(t.requires_grad for t in tensors):
            return
        if len(self._found) >= _LIMIT:
            self._found.clear()
        self._stream = current_stream_of_torch()
        made = tuple([(n, tuple(t.shape), t.stride(), t.dtype) for n, t in results.items()])
        d = results["D"]
        known = _Known(prepared, tuple(operands), made, maker_of(d.device), d.device.index or 0)
        self._found[_key(a, b, out, dtype, traced, args)] = known


def _tensors(a: Any, b: Any, out: Any, args: Mapping[str, Any]) -> list[Any]:
    """Return the tensors of a call."""
    found = [x for x in args.values() if not isinstance(x, bool | int | float)]
    return [a, b, *found] if out is None else [a, b, out, *found]


def _key(a: Any, b: Any, out: Any, dtype: object, traced: Traced, args: Mapping[str, Any]) -> tuple[object, ...]:
    """Return what tells one kind of call from another."""
    found: list[object] = [key_of(a, b, out, dtype), traced]
    for name, x in args.items():
        if isinstance(x, bool | int | float):
            found.append((name, type(x), repr(x)))
        else:
            found.append((name, type(x), x.shape, x.stride(), x.dtype, x.is_cuda, x.get_device()))
    return tuple(found)
