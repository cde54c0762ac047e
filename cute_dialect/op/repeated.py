"""Launch again what was launched before, at other addresses: straight lines, generated for so many tensors and results.

For two tensors, one result that is made and one launch, :func:`repeating` gives::

    def run(a0, a1, /):
        p0 = a0.data_ptr()
        p1 = a1.data_ptr()
        r0 = empty(s0, e0, k0)
        p2 = r0.data_ptr()
        if (p0 | p1 | p2) & mask:
            return None
        raw = stream_of(number)
        l0(raw, p0, p1, p2)
        return r0

Who calls it has told that the tensors are like those it was made for.  Tensors are made by what the code of torch's own
compiler calls for that, where this torch has it: half the time of ``torch.empty_strided``.
"""

# torch is not there where the types are checked.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

if TYPE_CHECKING:  # pragma: no cover
    import torch

__all__ = ["Made", "Repeated", "maker_of", "repeating"]

Made: TypeAlias = "tuple[Sequence[int], Sequence[int], torch.dtype]"
"""A result that each call makes: shape, strides, type."""


class Repeated(NamedTuple):
    """A launch: ``launch(stream, *addresses)`` of tensors, then results, with the numbers in ``order``; -1 is a number
    of the kernel's, whose address is 0.  ``more``: gives the addresses of what blocks share, for a stream, which stand
    behind the first ``behind`` ones.
    """

    launch: Callable[..., object]
    order: tuple[int, ...]
    more: Callable[[int], tuple[int, ...]] | None = None
    behind: int = 0


def repeating(
    tensors: int, launches: Sequence[Repeated], made: Sequence[Made], device: torch.device, mask: int,
    stream_of: Callable[[int], int], returned: Sequence[int], *, reach: Sequence[int] = (), out: int = -1,
) -> Callable[..., Any]:  # fmt: skip
    """Return what launches again on so many tensors: ``run(*tensors)``, which returns the results ``returned`` (places
    among tensors and results), or None, with nothing done, where an address has bits of ``mask``, or where the tensor
    ``out``, which is written, shares memory with another that is read.

    ``reach``: with an ``out``, the bytes from the first to behind the last element of each tensor; negative of one that
    may be ``out``, and lies as it does.
    """
    form = _Form(
        tensors, tuple([x.order for x in launches]), tuple([x.behind if x.more else -1 for x in launches]), len(made),
        tuple(returned), out, tuple([n < 0 for n in reach]),
    )  # fmt: skip
    values = [x for one in made for x in one] + [abs(n) for n in reach]
    values += [x for one in launches for x in (one.launch, one.more)]
    return _maker(form)(maker_of(device), stream_of, device.index or 0, mask, *values)


class _Form(NamedTuple):
    """What the code depends on."""

    tensors: int
    orders: tuple[tuple[int, ...], ...]
    behind: tuple[int, ...]
    made: int
    returned: tuple[int, ...]
    out: int
    same: tuple[bool, ...]


@lru_cache(maxsize=256)
def _maker(form: _Form) -> Callable[..., Callable[..., Any]]:
    """Return what makes the function of a form of the values that it closes over."""
    names = [f"a{i}" for i in range(form.tensors)] + [f"r{i}" for i in range(form.made)]
    used = sorted({i for order in form.orders for i in order if i >= 0})
    given = [f"{x}{i}" for i in range(form.made) for x in "sek"] + [f"n{i}" for i in range(len(form.same))]
    given += [f"{x}{i}" for i in range(len(form.orders)) for x in "lm"]
    lines = [f"p{i} = {names[i]}.data_ptr()" for i in used if i < form.tensors]
    o = form.out
    for i in used if o >= 0 else ():
        if i != o and i < form.tensors:
            other = f"p{i} != p{o} and " * form.same[i]
            lines += [f"if {other}p{i} < p{o} + n{o} and p{o} < p{i} + n{i}:", "    return None"]
    for i in range(form.made):
        lines.append(f"r{i} = empty(s{i}, e{i}, k{i})")
        lines += [f"p{form.tensors + i} = r{i}.data_ptr()"] * (form.tensors + i in used)
    lines += [f"if ({' | '.join(f'p{i}' for i in used)}) & mask:", "    return None", "raw = stream_of(number)"]
    for i, (order, behind) in enumerate(zip(form.orders, form.behind)):
        arguments = ["raw", *[f"p{k}" if k >= 0 else "0" for k in order]]
        if behind >= 0:
            arguments.insert(1 + behind, f"*m{i}(raw)")
        lines.append(f"l{i}({', '.join(arguments)})")
    results = ", ".join(names[i] for i in form.returned)
    lines.append(f"return {results}" if len(form.returned) == 1 else f"return ({results},)")
    text = [
        f"def make(empty, stream_of, number, mask, {', '.join(given)}):",
        f"    def run({''.join(f'{x}, ' for x in names[: form.tensors])}/):",
        *[f"        {line}" for line in lines],
        "    return run",
    ]
    space: dict[str, object] = {}
    exec(compile("\n".join(text) + "\n", "<a repeated call>", "exec"), space)
    return cast("Callable[..., Callable[..., Any]]", space["make"])


def maker_of(device: torch.device) -> Callable[[Sequence[int], Sequence[int], torch.dtype], torch.Tensor]:
    """Return what makes tensors on a device: ``empty(shape, strides, dtype)``."""
    torch = sys.modules["torch"]
    number = device.index or 0

    def usual(shape: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        return torch.empty_strided(shape, stride, dtype=dtype, device=device)

    quick = _quick(device.type)
    if quick is None or device.type != "cuda" or torch.cuda.device_count() == 1:
        return quick or usual
    current: Callable[[], int] = torch.cuda.current_device

    def on_the_current_one(shape: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        return (quick if current() == number else usual)(shape, stride, dtype)

    return on_the_current_one


@lru_cache(maxsize=8)
def _quick(kind: str) -> Callable[..., Any] | None:
    """Return what makes tensors on the current device of a kind, as ``torch.empty_strided`` does, if torch has it."""
    torch = sys.modules["torch"]
    guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
    found: Callable[..., Any] | None = getattr(guards, f"_empty_strided_{kind}", None)
    try:
        seen = None if found is None else found((2, 3), (4, 1), torch.float16)
    except Exception:  # whatever a later torch wants to be given
        return None
    like = torch.empty_strided((2, 3), (4, 1), dtype=torch.float16, device=kind)
    if seen is None or any(getattr(seen, n) != getattr(like, n) for n in ("shape", "dtype", "device", "layout")):
        return None
    return found if type(seen) is type(like) and seen.stride() == like.stride() else None
