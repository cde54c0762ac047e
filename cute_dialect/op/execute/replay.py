"""Replay of recorded calls at other addresses, by generated functions without branches on types.

For two tensors, one allocated result and one launch, :func:`repeating` returns::

    def run(a0, a1, /):
        p0 = a0.data_ptr()
        p1 = a1.data_ptr()
        if (p0 | p1) & mask:
            return None
        r0 = empty(s0, e0, k0)
        p2 = r0.data_ptr()
        if p2 & mask:
            return None
        raw = stream_of(number)
        l0(raw, p0, p1, p2)
        return r0

The caller has checked that the tensors match the recorded ones.  Tensors are allocated by the function that code from
torch's compiler uses, if this release of torch has it: it takes half the time of ``torch.empty_strided``.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from cute_dialect.runtime import native

if TYPE_CHECKING:  # pragma: no cover
    import torch

Allocation: TypeAlias = "tuple[Sequence[int], Sequence[int], torch.dtype]"
"""A tensor that each call allocates: shape, strides, type."""


class Repeated(NamedTuple):
    """A launch, ``launch(stream, *addresses)``."""

    launch: Callable[..., object]
    order: tuple[int, ...]  # indices of tensors, then of allocations; -1 for a number, whose address is 0
    more: Callable[[int], tuple[int, ...]] | None = None  # returns the workspace's addresses for a stream
    behind: int = 0  # number of addresses before those of the workspace
    offsets: tuple[int, ...] = ()  # bytes to add to the addresses; () for none


class Slice(NamedTuple):
    """A part of a tensor."""

    place: int  # index of the tensor
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int  # in elements
    given: bool  # the tensor is not an allocation, so it may begin anywhere in its memory
    whole: bool = False  # the part is the tensor itself


class Copied(NamedTuple):
    """A copy by torch, which may change the type."""

    to: Slice
    of: Slice


class Filled(NamedTuple):
    """A fill by torch."""

    to: Slice
    value: float


class Called(NamedTuple):
    """A call of a torch operator whose results are new tensors."""

    operator: Callable[..., Any]
    given: tuple[Any, ...]  # arguments: a Slice for each tensor, and constants
    named: tuple[tuple[str, Any], ...]  # arguments by name
    results: int  # number of results in a tuple; 0 for a single tensor


Step: TypeAlias = "Repeated | Copied | Filled | Called"


class AddressGuard(NamedTuple):
    """Properties of addresses that must be as in the recorded call."""

    lows: tuple[int, ...] = ()  # masked bits of each tensor's address
    tied: tuple[tuple[int, int, int], ...] = ()  # tensors that share memory: (i, j, distance in bytes)
    apart: tuple[tuple[int, int, int, int], ...] = ()  # tensors that must not: (i, j, bytes of i, bytes of j)


_NOTHING = AddressGuard()

_NATIVE_ARGUMENTS = 48
"""Maximum number of arguments of ``Kernels`` in C++, without those of the workspace."""
_TOGETHER = 64
"""Maximum number of addresses whose alignment one expression checks."""


def repeating(
    tensors: int, steps: Sequence[Step], made: Sequence[Allocation], device: torch.device,
    mask: int,
    stream_of: Callable[[int], int], returned: object, stayed: AddressGuard = _NOTHING,
) -> Callable[..., Any]:  # fmt: skip
    """Return ``run(*tensors)``, which replays ``steps`` and returns the results.

    ``run`` returns None, and does nothing, if an address has other bits under ``mask`` than the recorded one, or if
    other tensors share memory.

    Args:
        returned: index of a tensor, of an allocation, or of a result of :class:`Called`; a :class:`Slice`; None; or a
            tuple or dictionary of these.
    """
    extension = native.loaded()
    if extension is not None:
        run = _native_run(extension, tensors, steps, made, device, mask, stream_of, returned, stayed)
        if run is not None:
            return run
    values = [x for one in made for x in one]
    forms = tuple([_form_of(x, values) for x in steps])
    names = _names(tensors, len(made), forms)
    views: list[Slice] = []
    text = _text_of(returned, names, views)
    values += [x for view in views for x in view[1:4]]
    form = _Form(
        tensors, len(made), forms, text, len(views), stayed.lows if any(stayed.lows) else (),
        tuple([x[:2] for x in stayed.tied]), tuple([x[:2] for x in stayed.apart]),
    )  # fmt: skip
    values += [n for x in (*stayed.tied, *stayed.apart) for n in x[2:]]
    return _maker(form)(maker_of(device), stream_of, device.index or 0, mask, *values)


def _native_run(
    extension: Any, tensors: int, steps: Sequence[Step], made: Sequence[Allocation], device: torch.device, mask: int,
    stream_of: Callable[[int], int], returned: object, stayed: AddressGuard,
) -> Callable[..., Any] | None:  # fmt: skip
    """Return :func:`repeating` in C++; None if the call returns nested results."""
    results = returned if type(returned) is tuple else (returned,)
    if any([not (x is None or isinstance(x, int | Slice)) for x in results]):
        return None
    torch = sys.modules["torch"]
    done: list[tuple[object, ...]] = []
    used: set[int] = set()
    for x in steps:
        match x:
            case Repeated():
                done.append((x.launch, x.order, x.offsets, x.more, x.behind))
                used |= set(x.order)
            case Copied():
                done.append((x.to, x.of))
                used |= {x.to.place, x.of.place}
            case Filled():
                done.append((x.to, x.value, None))
                used.add(x.to.place)
            case Called():
                taken = [*x.given, *[value for _, value in x.named]]
                parts = [(isinstance(value, Slice), value) for value in taken]
                done.append((x.operator, parts, tuple([name for name, _ in x.named]), x.results))
    launches = [x for x in steps if isinstance(x, Repeated) and len(x.order) > _NATIVE_ARGUMENTS]
    if any([x.more is not None or isinstance(x.launch, extension.Kernels) for x in launches]):
        return None
    lows = stayed.lows or (0,) * tensors
    return extension.Run(
        tensors, done, [(shape, strides, torch.empty(0, dtype=dtype)) for shape, strides, dtype in made],
        torch.empty(1, device=device), stream_of, mask, results, type(returned) is tuple,
        [lows[i] if i in used else -1 for i in range(tensors)], stayed.tied, stayed.apart,
    )  # fmt: skip


class _Form(NamedTuple):
    """Cache key of the generated code; steps are described by kind and indices."""

    tensors: int
    made: int
    steps: tuple[tuple[Any, ...], ...]
    returned: str
    views: int  # number of slices in `returned`
    lows: tuple[int, ...]
    tied: tuple[tuple[int, int], ...]
    apart: tuple[tuple[int, int], ...]


def _form_of(step: Step, values: list[Any]) -> tuple[Any, ...]:
    """Return the cache key of a step's code, and append the values that it closes over to ``values``."""
    match step:
        case Repeated():
            values += (step.launch, step.more)
            offsets = step.offsets if any(step.offsets) else ()
            return ("launch", step.order, step.behind if step.more else -1, offsets)
        case Copied():
            values += (*step.to[1:4], *step.of[1:4])
            return ("copy", *_begin_of(step.to), *_begin_of(step.of))
        case Filled():
            values += (*step.to[1:4], step.value)
            return ("fill", *_begin_of(step.to))
        case Called():
            values.append(step.operator)
            taken = [*step.given, *[x for _, x in step.named]]
            for x in taken:
                values += x[1:4] if isinstance(x, Slice) else (x,)
            kinds = tuple([_begin_of(x) if isinstance(x, Slice) else None for x in taken])
            return ("call", kinds, tuple([name for name, _ in step.named]), step.results)


def _begin_of(x: Slice) -> tuple[int, str]:
    """Return the tensor of a part, and the kind of its offset: none, relative to an argument, or absolute."""
    return x.place, "whole" if x.whole else "" if x.offset == 0 else "more" if x.given else "own"


def _view(name: str, kind: str, shape: str, strides: str, offset: str) -> str:
    """Return the code of a part of a tensor.

    Args:
        name: the tensor.
        kind: kind of the offset, as returned by :func:`_begin_of`.
        shape, strides, offset: names of these values.
    """
    if kind == "whole":
        return name
    begin = {"": "", "own": f", {offset}", "more": f", {name}.storage_offset() + {offset}"}[kind]
    return f"{name}.as_strided({shape}, {strides}{begin})"


def _names(tensors: int, made: int, steps: Sequence[tuple[Any, ...]]) -> list[str]:
    """Return the names of arguments, allocations, and results of torch operators."""
    results = sum([max(1, x[3]) for x in steps if x[0] == "call"])
    return [f"{x}{i}" for x, n in (("a", tensors), ("r", made), ("c", results)) for i in range(n)]


def _text_of(returned: object, names: Sequence[str], views: list[Slice]) -> str:
    """Return results as Python code, and append the slices among them to ``views``."""
    if returned is None:
        return "None"
    if isinstance(returned, int):
        return names[returned]
    if isinstance(returned, Slice):
        n = len(views)
        views.append(returned)
        return _view(names[returned.place], _begin_of(returned)[1], f"vs{n}", f"ve{n}", f"vo{n}")
    if isinstance(returned, dict):
        items = cast("dict[object, object]", returned).items()
        return "{" + "".join(f"{key!r}: {_text_of(x, names, views)}, " for key, x in items) + "}"
    return "(" + "".join(f"{_text_of(x, names, views)}, " for x in cast("Sequence[object]", returned)) + ")"


@lru_cache(maxsize=256)
def _maker(form: _Form) -> Callable[..., Callable[..., Any]]:
    """Return the factory of a replay function, whose arguments are the values that the function closes over."""
    names = _names(form.tensors, form.made, form.steps)
    known = form.tensors + form.made
    used = {i for x in form.steps if x[0] == "launch" for i in x[1] if i >= 0}
    compared = {i for pair in (*form.tied, *form.apart) for i in pair}
    given = [f"{x}{i}" for i in range(form.made) for x in "sek"]
    done: list[str] = []
    result = known
    for i, step in enumerate(form.steps):
        if step[0] == "launch":
            given += (f"l{i}", f"m{i}")
            done.append(f"l{i}({', '.join(_arguments(i, *step[1:]))})")
            continue
        if step[0] == "call":
            _, kinds, named, results = step
            results = names[result : result + max(1, results)]
            result += len(results)
            given.append(f"f{i}")
            taken: list[str] = []
            for n, kind in enumerate(kinds):
                values = [f"g{i}_{n}"] if kind is None else [f"g{i}_{n}{x}" for x in "seo"]
                given += values
                taken.append(values[0] if kind is None else _view(names[kind[0]], kind[1], *values))
            by_name = zip(named, taken[len(kinds) - len(named) :])
            taken = [*taken[: len(kinds) - len(named)], *[f"{name}={x}" for name, x in by_name]]
            done.append(f"{', '.join(results)}{',' * (step[3] == 1)} = f{i}({', '.join(taken)})")
            done += [f"p{n} = {names[n]}.data_ptr()" for n in range(result - len(results), result) if n in used]
            continue
        for x, place, kind in zip("xy", step[1::2], step[2::2]):
            given += (f"{x}s{i}", f"{x}e{i}", f"{x}o{i}")
            done.append(f"{x} = {_view(names[place], kind, f'{x}s{i}', f'{x}e{i}', f'{x}o{i}')}")
        if step[0] == "fill":
            given.append(f"v{i}")
        done.append("x.copy_(y)" if step[0] == "copy" else f"x.fill_(v{i})")
    given += [f"{x}{i}" for i in range(form.views) for x in ("vs", "ve", "vo")]
    ours = sorted(
        {i for i in (*used, *[n for x in form.steps if x[0] in ("copy", "fill") for n in x[1::2]]) if i < form.tensors}
    )
    lines = [f"p{i} = {names[i]}.data_ptr()" for i in sorted({*ours, *compared})]
    for n, (i, j) in enumerate(form.tied):
        given.append(f"t{n}")
        lines += [f"if p{j} - p{i} != t{n}:", "    return None"]
    for n, (i, j) in enumerate(form.apart):
        given += (f"n{n}", f"o{n}")
        lines += [f"if p{j} < p{i} + n{n} and p{i} < p{j} + o{n}:", "    return None"]
    lines += _aligned([i for i in ours if not form.lows or not form.lows[i]])
    for i in ours if form.lows else ():
        if form.lows[i]:
            lines += [f"if p{i} & mask != {form.lows[i]}:", "    return None"]
    for i in range(form.made):
        lines.append(f"r{i} = empty(s{i}, e{i}, k{i})")
        lines += [f"p{form.tensors + i} = r{i}.data_ptr()"] * (form.tensors + i in used)
    lines += _aligned(sorted(i for i in used if form.tensors <= i < known))
    lines += ["raw = stream_of(number)"] * any(x[0] == "launch" for x in form.steps)
    lines += [*done, f"return {form.returned}"]
    text = [
        f"def make(empty, stream_of, number, mask, {', '.join(given)}):",
        f"    def run({''.join(f'{x}, ' for x in names[: form.tensors])}/):",
        *[f"        {line}" for line in lines],
        "    return run",
    ]
    space: dict[str, object] = {}
    exec(compile("\n".join(text) + "\n", "<a repeated call>", "exec"), space)
    return cast("Callable[..., Callable[..., Any]]", space["make"])


def _aligned(places: Sequence[int]) -> list[str]:
    """Return code that returns None if an address has bits of the mask."""
    lines: list[str] = []
    for n in range(0, len(places), _TOGETHER):
        lines += [f"if ({' | '.join(f'p{i}' for i in places[n : n + _TOGETHER])}) & mask:", "    return None"]
    return lines


def _arguments(i: int, order: tuple[int, ...], behind: int, offsets: tuple[int, ...]) -> list[str]:
    """Return the arguments of a launch as Python code."""
    arguments = ["raw"]
    for n, k in enumerate(order):
        more = f" + {offsets[n]}" if offsets and offsets[n] else ""
        arguments.append(f"p{k}{more}" if k >= 0 else "0")
    if behind >= 0:
        arguments.insert(1 + behind, f"*m{i}(raw)")
    return arguments


def maker_of(device: torch.device) -> Callable[[Sequence[int], Sequence[int], torch.dtype], torch.Tensor]:
    """Return the allocator of a device: ``empty(shape, strides, dtype)``."""
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
    """Return torch's fast allocator for a device type, or None if this release of torch has none that works."""
    torch = sys.modules["torch"]
    guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
    found: Callable[..., Any] | None = getattr(guards, f"_empty_strided_{kind}", None)
    try:
        seen = None if found is None else found((2, 3), (4, 1), torch.float16)
    except Exception:  # the function is private and may change its arguments
        return None
    like = torch.empty_strided((2, 3), (4, 1), dtype=torch.float16, device=kind)
    if seen is None or any(getattr(seen, n) != getattr(like, n) for n in ("shape", "dtype", "device", "layout")):
        return None
    return found if type(seen) is type(like) and seen.stride() == like.stride() else None
