"""Calls like earlier ones: recognised and launched with as little Python as there can be.

:func:`quick_call` makes, for a launch that was just prepared, the function that recognises such arguments among torch
tensors and numbers and launches again.  It is straight-line code, generated for the number of arguments, which of them
are numbers, and where their addresses go; nothing of it comes from the user (shapes, strides, types and numbers are
values that it closes over), and kernels of the same form share it.  For ``k(a, 2)``, ``a`` contiguous::

    def make(t0, d0, s0, t1, v1, device, mask, frames, new_frame, failed, stream_now, stream_of):
        def call(args, stream):
            try:
                a0, a1 = args
            except ValueError:
                return False
            if not (type(a0) is t0 and a0.dtype is d0 and a0.get_device() == device and a0.shape == s0
                    and a0.is_contiguous() and type(a1) is t1 and a1 == v1):
                return False
            p0 = a0.data_ptr()
            if p0 & mask:
                return False
            raw = stream_now(device) if stream is None else stream if type(stream) is int else stream_of(stream)
            try:
                frame = frames.pop()
            except IndexError:
                frame = new_frame()
            (w0,), maps, where, run, _ = frame
            w0.value = p0
            where.value = raw
            code = run()
            if code:
                failed(run, code)
            frames.append(frame)
            return True
        return call

``is_contiguous()`` costs half of ``stride()`` and says as much once the shape is known: it leaves open only strides of
dimensions of extent 1, which no kernel uses.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, cast

from cute_dialect.pipelines.arrays import current_stream_of_torch, stream_of
from cute_dialect.pipelines.prepared import Ready, Word

__all__ = ["QuickCall", "number_key", "quick_call", "torch_key"]

QuickCall: TypeAlias = Callable[[tuple[object, ...], object], bool]
"""Given arguments and stream: launches if the arguments are of the kind it was made for; tells whether they were."""

_TEXT, _NUMBER, _CONTIGUOUS, _STRIDED = "text", "number", "contiguous", "strided"


class _Form(NamedTuple):
    """What the code of a quick call depends on: kinds of arguments, words to write, whether all addresses are aligned
    to the mask."""

    kinds: tuple[str, ...]
    words: tuple[Word, ...]
    aligned: bool


def number_key(value: object) -> object:
    """What tells one number from another: ``0.0`` from ``-0.0``, ``1`` from ``True`` and ``1.0``.

    >>> number_key(1) == number_key(True), number_key(0.0) == number_key(-0.0), number_key(2.5) == number_key(2.5)
    (False, False, True)
    """
    return type(value), repr(value) if isinstance(value, float) else value


def torch_key(args: tuple[object, ...], mask: int) -> tuple[object, ...] | None:
    """What a launch depends on: shape, strides, types, GPU and address & ``mask`` of torch tensors, and the numbers.

    ``None`` if an argument is neither tensor nor number, none is a tensor, or a tensor is on no GPU.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    types = _tensor_types(torch)
    key: list[object] = []
    tensors = 0
    for a in args:
        if type(a) in types:
            tensor = cast(Any, a)
            device: int = tensor.get_device()
            if device < 0:
                return None
            key += (type(a), tensor.shape, tensor.stride(), tensor.dtype, device, tensor.data_ptr() & mask)
            tensors += 1
        elif type(a) in (int, float, bool):
            key.append(number_key(a))
        else:
            return None
    return tuple(key) if tensors else None


def _tensor_types(torch: Any) -> tuple[type, ...]:
    parameter = getattr(getattr(torch, "nn", None), "Parameter", None)
    return (torch.Tensor,) if parameter is None else (torch.Tensor, parameter)


def quick_call(ready: Ready, args: tuple[object, ...], mask: int) -> QuickCall | None:
    """The function that launches ``ready`` for arguments like ``args``, which it was prepared for; ``None`` if they are
    not torch tensors and numbers.

    Tensors are alike if shape, strides, type, GPU and address & ``mask`` are the same, numbers if they are equal.
    """
    torch = sys.modules.get("torch")
    if torch is None or ready.plan.empty:
        return None
    types = _tensor_types(torch)
    kinds: list[str] = []
    values: list[object] = []
    lows: list[int] = []
    for a in args:
        if type(a) in types:
            t = cast(Any, a)
            contiguous = bool(t.is_contiguous())
            kinds.append(_CONTIGUOUS if contiguous else _STRIDED)
            values += (type(a), t.dtype, t.shape)
            if not contiguous:
                values.append(t.stride())
            lows.append(t.data_ptr() & mask)
        elif type(a) in (int, float, bool):
            kinds.append(_TEXT if a == 0.0 and type(a) is float else _NUMBER)
            values += (type(a), repr(a) if kinds[-1] == _TEXT else a)
        else:
            return None
    if not lows or any(kinds[argument] in (_TEXT, _NUMBER) for argument, _, _ in ready.words):
        return None  # no tensor, or an address given as a number
    form = _Form(tuple(kinds), ready.words, not any(lows))
    rest = (ready.device, mask, ready.frames, ready.frame, ready.failed, current_stream_of_torch(), stream_of)
    return _maker(form)(*values, *(() if form.aligned else lows), *rest)


@lru_cache(maxsize=256)
def _maker(form: _Form) -> Callable[..., QuickCall]:
    space: dict[str, object] = {}
    exec(_source(form), space)
    return cast("Callable[..., QuickCall]", space["make"])


def _source(form: _Form) -> str:
    """The code for a form: numbers and names that are made here, nothing else."""
    given: list[str] = []
    tests: list[str] = []
    tensors: list[int] = []
    for i, kind in enumerate(form.kinds):
        given.append(f"t{i}")
        tests.append(f"type(a{i}) is t{i}")
        if kind in (_TEXT, _NUMBER):
            given.append(f"v{i}")
            tests.append(f"repr(a{i}) == v{i}" if kind == _TEXT else f"a{i} == v{i}")
            continue
        tensors.append(i)
        given += (f"d{i}", f"s{i}")
        tests += (f"a{i}.dtype is d{i}", f"a{i}.get_device() == device", f"a{i}.shape == s{i}")
        if kind == _CONTIGUOUS:
            tests.append(f"a{i}.is_contiguous()")
        else:
            given.append(f"e{i}")
            tests.append(f"a{i}.stride() == e{i}")
    if form.aligned:
        misaligned = f"({' | '.join(f'p{i}' for i in tensors)}) & mask"
    else:
        given += [f"l{i}" for i in tensors]
        misaligned = " or ".join(f"p{i} & mask != l{i}" for i in tensors)
    slots = "".join(f"w{j}, " for j in range(len(form.words)))
    writes: list[str] = []
    for j, (argument, add, number) in enumerate(form.words):
        writes.append(
            f"w{j}.value = "
            + (
                (f"p{argument} + {add:d}" if add else f"p{argument}")
                if number < 0
                else f"maps[{number:d}][p{argument}]"
            )
        )
    unpack = "".join(f"a{i}, " for i in range(len(form.kinds)))
    lines = [
        f"def make({', '.join(given)}, device, mask, frames, new_frame, failed, stream_now, stream_of):",
        "    def call(args, stream):",
        "        try:",
        f"            {unpack.rstrip()} = args" if unpack else "            () = args",
        "        except ValueError:",
        "            return False",
        f"        if not ({' and '.join(tests)}):",
        "            return False",
        *[f"        p{i} = a{i}.data_ptr()" for i in tensors],
        f"        if {misaligned}:",
        "            return False",
        "        raw = stream_now(device) if stream is None else stream if type(stream) is int else stream_of(stream)",
        "        try:",
        "            frame = frames.pop()",
        "        except IndexError:",
        "            frame = new_frame()",
        f"        ({slots}), maps, where, run, _ = frame" if slots else "        _, maps, where, run, _ = frame",
        *[f"        {w}" for w in writes],
        "        where.value = raw",
        "        code = run()",
        "        if code:",
        "            failed(run, code)",
        "        frames.append(frame)",
        "        return True",
        "    return call",
    ]
    return "\n".join(lines) + "\n"
