"""Fast path for repeated calls: generated code that recognizes the arguments and launches again.

:func:`quick_call` takes a launch that was just prepared.  It returns functions that recognize equal arguments (torch
tensors and numbers) and launch again.  The functions are straight-line code, generated for the number of arguments,
the positions of numbers, the words to write, and the watched names of the user's modules.  Only those identifiers
come from the user; shapes, strides, types and numbers are values in the closure.  Calls of the same form share code.
For ``k(a, 2)`` with a contiguous ``a``::

    def make(t0, d0, g0, s0, t1, v1, guard, device, mask, frames, new_frame, write, failed, otherwise, stream_now,
             stream_of, missing):
        def call(a0=missing, a1=missing, /, *rest, stream=None, **options):
            if rest or options or not (type(a1) is t1 and a1 == v1) or not guard(a0) and not (
                type(a0) is t0 and a0.dtype is d0 and a0.device == g0 and a0.shape == s0 and a0.is_contiguous()
            ):
                return otherwise((a0, a1, *rest), stream, options)
            p0 = a0.data_ptr()
            if p0 & mask:
                return otherwise((a0, a1, *rest), stream, options)
            raw = stream_now(device) if stream is None else stream if type(stream) is int else stream_of(stream)
            try:
                frame = frames.pop()
            except IndexError:
                frame = new_frame()
            (w0,), (), launches, _, _ = frame
            w0.value = p0
            run = launches[raw]
            (code,) = run()
            if code:
                failed(run, code)
            frames.append(frame)
            return None

        def again(args, stream):
            try:
                a0, a1 = args
            except ValueError:
                return False
            ...                             # as above, but returns False if the arguments differ, and True at the end
        return call, again

The word of a tensor map is looked up by address, ``w0.value = m0[p0]``; for an unknown address, ``write`` encodes it.

``guard`` compares all tensors in one call.  It is ``TensorGuards``, with which torch's own compiler decides whether
compiled code may run again (Python type, dispatch keys, element type, device, sizes, strides).  A positive result is
trusted after a self-test has shown that the guard detects each of those differences.  A negative result is not final,
because the guard also checks gradients, inference mode and repeated tensors; the tensors are then compared one
by one.
The same happens if torch has no such guard.

``is_contiguous()`` takes half the time of ``stride()``.  With a known shape it leaves open only the strides of
dimensions of extent 1, which kernels do not use.

Costs on a 2.6 GHz EPYC with torch 2.13, in ns: ``type`` 16, ``dtype`` 52, ``device ==`` 90, ``shape ==`` 116,
``stride() ==`` 126, ``is_contiguous()`` 66, ``data_ptr()`` 69; the guard 360 for three tensors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, cast

from cute_dialect.runtime import native
from cute_dialect.runtime.arrays import current_stream_of_torch, stream_of
from cute_dialect.runtime.bound_call import Ready, Word

__all__ = [
    "MISSING",
    "Constants",
    "Otherwise",
    "QuickCall",
    "address_call",
    "guard_of",
    "number_key",
    "quick_call",
    "torch_key",
]

Otherwise: TypeAlias = Callable[[tuple[object, ...], object, dict[str, object]], object]
"""Handles any other call: takes arguments (:data:`MISSING` where one was not given), stream and options."""


class QuickCall(NamedTuple):
    """Two entry points to a cached launch.

    ``call`` has the signature of the kernel and forwards other calls to ``otherwise``.  ``again`` takes arguments and
    stream; it launches and returns True if they match, else returns False.
    """

    call: Callable[..., None]
    again: Callable[[tuple[object, ...], object], bool]


MISSING = object()
"""Placeholder for an argument that was not given."""

_NATIVE_ARGUMENTS = 60
"""Maximum number of arguments of a launch in C++."""

_STREAM = "raw = stream_now(device) if stream is None else stream if type(stream) is int else stream_of(stream)"
_TEXT, _NUMBER, _CONTIGUOUS, _STRIDED = "text", "number", "contiguous", "strided"
_SAME, _EQUAL, _STREAM_KIND = "same", "equal", "stream"
"""Kinds of arguments that the caller takes and the kernel does not: constants by identity or by value; a stream."""


class Opening(NamedTuple):
    """Decomposition of a caller's arguments ``b0``, ``b1``, … into the values that are compared one by one.

    Args:
        arguments: number of arguments.
        conditions: expressions that must hold, in this order, over the ``b`` and the values ``q0``, ``q1``, ….
        parts: expressions of the resulting values.
        values: the values ``q0``, ``q1``, ….

    The expressions are generated, and their only literals are numbers.
    """

    arguments: int
    conditions: tuple[str, ...]
    parts: tuple[str, ...]
    values: tuple[object, ...]


class Watch(NamedTuple):
    """An object that generated code compares by identity: ``owner.attribute``, or ``owner.get(key)`` of a dictionary.

    ``attribute`` becomes part of the code, so it must be an identifier; "" for a dictionary.
    """

    owner: Any
    attribute: str
    key: str
    value: object


class Constants(NamedTuple):
    """Properties of a kernel's caller that the fast path checks besides the arguments.

    Args:
        same: positions of constant arguments that must be the same object.
        equal: positions of constant arguments that must be of the same type and equal.
        stream: position of the stream, -1 for none.
        watched: objects that must still be the values of their attributes or keys.
        state: returns True if the other objects that the kernel depends on are unchanged.
        opening: decomposition of the arguments before they are compared; None for no decomposition.
    """

    same: frozenset[int] = frozenset()
    equal: frozenset[int] = frozenset()
    stream: int = -1
    watched: tuple[Watch, ...] = ()
    state: Callable[[], bool] | None = None
    opening: Opening | None = None


_NO_CONSTANTS = Constants()


class _Form(NamedTuple):
    """The key of generated code.

    Args:
        kinds: kinds of the arguments.
        words: words to write.
        aligned: all addresses are zero under the mask.
        guarded: torch has a usable guard.
    """

    kinds: tuple[str, ...]
    words: tuple[Word, ...]
    aligned: bool
    guarded: bool
    watched: tuple[str, ...] = ()
    state: bool = False
    opening: tuple[int, tuple[str, ...], tuple[str, ...], int] | None = None


def number_key(value: object) -> object:
    """Return a key that separates numbers of different types or signs: ``0.0`` and ``-0.0``; ``1``, ``True``, ``1.0``.

    >>> number_key(1) == number_key(True), number_key(0.0) == number_key(-0.0), number_key(2.5) == number_key(2.5)
    (False, False, True)
    """
    return type(value), repr(value) if isinstance(value, float) else value


def torch_key(args: tuple[object, ...], mask: int) -> tuple[object, ...] | None:
    """Return the cache key of a call: the numbers, and shape, strides, types, GPU and address & ``mask`` of tensors.

    Return ``None`` if an argument is neither a torch tensor nor a number, a tensor is not on a GPU, or there is
    no tensor.
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
            device = tensor.device
            if device.type != "cuda":
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


def quick_call(
    ready: Ready, args: tuple[object, ...], mask: int, otherwise: Otherwise, constants: Constants = _NO_CONSTANTS
) -> QuickCall | None:
    """Build the fast path that launches ``ready`` for arguments like ``args``, for which it was prepared.

    Tensors match if shape, strides, type, GPU and address & ``mask`` are equal; numbers match if they are equal.

    Args:
        ready: the prepared launch.
        args: arguments of the caller.
        mask: address bits that must match.
        otherwise: called for any other call.
        constants: arguments of the caller that the kernel does not take, and objects that must be unchanged.

    Return ``None`` if the arguments are not all torch tensors and numbers.
    """
    torch = sys.modules.get("torch")
    if torch is None or ready.empty:
        return None
    types = _tensor_types(torch)
    kinds: list[str] = []
    values: list[object] = []
    tensors: list[object] = []
    lows: list[int] = []
    for i, a in enumerate(args):
        if i == constants.stream:
            kinds.append(_STREAM_KIND)
        elif i in constants.same:
            kinds.append(_SAME)
            values.append(a)
        elif i in constants.equal:
            kinds.append(_EQUAL)
            values += (type(a), a)
        elif type(a) in types:
            t = cast(Any, a)
            contiguous = bool(t.is_contiguous())
            kinds.append(_CONTIGUOUS if contiguous else _STRIDED)
            values += (type(a), t.dtype, t.device, t.shape)
            if not contiguous:
                values.append(t.stride())
            tensors.append(a)
            lows.append(t.data_ptr() & mask)
        elif type(a) in (int, float, bool):
            kinds.append(_TEXT if a == 0.0 and type(a) is float else _NUMBER)
            values += (type(a), repr(a) if kinds[-1] == _TEXT else a)
        else:
            return None
    taken = [i for i, kind in enumerate(kinds) if kind not in (_SAME, _EQUAL, _STREAM_KIND)]
    words = tuple([(taken[argument], add, number) for argument, add, number in ready.words])
    if not lows or any(kinds[argument] in (_TEXT, _NUMBER) for argument, _, _ in words):
        return None  # there is no tensor, or a number is used as an address
    guard = guard_of(tensors)
    opening = constants.opening
    opened = None if opening is None else (*opening[:3], len(opening.values))
    watched, state = constants.watched, constants.state
    attributes = tuple([w.attribute for w in watched])
    form = _Form(tuple(kinds), words, not any(lows), guard is not None, attributes, state is not None, opened)
    for w in watched:
        values += (w.owner, w.value) if w.attribute else (w.owner, w.key, w.value)
    values += () if state is None else (state,)
    values += () if opening is None else opening.values
    parts = (ready.frames, ready.frame, ready.write, ready.failed, otherwise)
    rest = (guard, ready.device, mask, *parts, current_stream_of_torch(), stream_of, MISSING)
    return QuickCall(*_maker(form)(*values, *([] if form.aligned else lows), *rest))


def address_call(ready: Ready, arguments: int) -> Callable[..., None]:
    """Return ``launch(stream, address, …)``, which launches ``ready`` at other addresses without any check.

    It takes ``arguments`` addresses.  Numbers keep their values; pass 0 as their address.  ``stream`` is the driver's
    handle.
    """
    extension = native.loaded()
    if extension is not None:
        launch = _native_launch(extension, ready, arguments)
        if launch is not None:
            return launch
    return _address_maker(ready.words, arguments)(ready.frames, ready.frame, ready.write, ready.failed)


def _native_launch(extension: Any, ready: Ready, arguments: int) -> Callable[..., None] | None:
    """Return a launch in C++, or None if it does not support the launch, or the driver's function has no address."""
    if any(plan.shape.preferred_cluster for plan in ready.plans):
        return None
    launch, longest = ready.launch_address, max([arguments, *[len(plan.packed.buffers) for plan in ready.plans]])
    if not launch or longest > _NATIVE_ARGUMENTS:
        return None
    kernels = ready.native_kernels()
    return cast("Callable[..., None]", extension.Kernels(launch, kernels, arguments, ready.native_failed))


@lru_cache(maxsize=256)
def _address_maker(words: tuple[Word, ...], arguments: int) -> Callable[..., Callable[..., None]]:
    given = "".join(f"p{i}, " for i in range(arguments))
    lines = [
        "def make(frames, new_frame, write, failed):",
        f"    def launch(raw, {given}/):",
        *[f"        {line}" for line in _launching(words, given)],
        "    return launch",
    ]
    space: dict[str, object] = {"__name__": __name__}
    exec(compile("\n".join(lines) + "\n", "<a call by addresses>", "exec"), space)
    return cast("Callable[..., Callable[..., None]]", space["make"])


def _launching(words: tuple[Word, ...], addresses: str) -> list[str]:
    """Generate the lines that launch on stream ``raw`` at the addresses ``p0``, ``p1``, … listed in ``addresses``."""
    slots = "".join(f"w{j}, " for j in range(len(words)))
    known = "".join(f"m{number:d}, " for _, _, number in words if number >= 0)
    writes: list[str] = []
    for j, (argument, add, number) in enumerate(words):
        value = f"m{number:d}[p{argument}]" if number >= 0 else f"p{argument} + {add:d}" if add else f"p{argument}"
        writes.append(f"w{j}.value = {value}")
    if known:
        writes = ["try:", *[f"    {w}" for w in writes], "except KeyError:", f"    write(frame, ({addresses}))"]
    return [
        "try:",
        "    frame = frames.pop()",
        "except IndexError:",
        "    frame = new_frame()",
        f"({slots}), ({known}), launches, _, _ = frame",
        *writes,
        "run = launches[raw]",
        "(code,) = run()",
        "if code:",
        "    failed(run, code)",
        "frames.append(frame)",
    ]


def guard_of(tensors: Sequence[object]) -> Callable[..., bool] | None:
    """Return a predicate for tensors equal in type and shape to these; ``None`` if torch has no reliable guard."""
    torch = sys.modules["torch"]
    make = _guard_maker(torch)
    guard = make(*tensors) if make is not None else None
    return guard if guard is not None and guard(*tensors) else None


@lru_cache(maxsize=1)
def _guard_maker(torch: Any) -> Callable[..., Callable[..., bool]] | None:
    """Return the guard factory of torch, if this version has one and the self-test passes."""
    try:
        guards = torch._C._dynamo.guards.TensorGuards

        def make(*tensors: object) -> Callable[..., bool]:
            return guards(*tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None).check

        def empty(*shape: int, device: str = "cpu", dtype: Any = torch.float32) -> Any:
            return torch.empty(shape, device=device, dtype=dtype)

        others = (
            empty(4, 7),
            empty(4, 6, 1),
            empty(6, 4).t(),
            empty(4, 6, dtype=torch.float16),
            empty(4, 6, device="meta"),
            torch.nn.Parameter(empty(4, 6)),
            empty(4, 6).requires_grad_(),
            None,
            4,
        )
        guard, same = make(empty(4, 6)), empty(4, 6)
        with torch.enable_grad():
            return make if guard(same) and not any(guard(x) for x in others) else None
    except Exception:  # the API is private and may change in any way
        return None


@lru_cache(maxsize=256)
def _maker(form: _Form) -> Callable[..., tuple[Callable[..., None], Callable[..., bool]]]:
    space: dict[str, object] = {"__name__": __name__}
    exec(compile(_source(form), "<a quick call>", "exec"), space)
    return cast("Callable[..., tuple[Callable[..., None], Callable[..., bool]]]", space["make"])


def _streams(form: _Form) -> list[int]:
    return [i for i, kind in enumerate(form.kinds) if kind == _STREAM_KIND]


def _source(form: _Form) -> str:
    """Return the source code for a form; it contains only generated names and numbers."""
    given: list[str] = []
    numbers: list[str] = []
    tests: list[str] = []
    tensors: list[int] = []
    for i, kind in enumerate(form.kinds):
        if kind == _STREAM_KIND:
            continue
        if kind == _SAME:
            given.append(f"v{i}")
            numbers.append(f"a{i} is v{i}")
            continue
        given.append(f"t{i}")
        if kind == _EQUAL:
            given.append(f"v{i}")
            numbers += (f"type(a{i}) is t{i}", f"a{i} == v{i}")
            continue
        if kind in (_TEXT, _NUMBER):
            given.append(f"v{i}")
            numbers += (f"type(a{i}) is t{i}", f"repr(a{i}) == v{i}" if kind == _TEXT else f"a{i} == v{i}")
            continue
        tensors.append(i)
        given += (f"d{i}", f"g{i}", f"s{i}")
        tests += (
            f"type(a{i}) is t{i}",
            f"a{i}.dtype is d{i}",
            f"a{i}.device == g{i}",
            f"a{i}.shape == s{i}",
        )
        if kind == _CONTIGUOUS:
            tests.append(f"a{i}.is_contiguous()")
        else:
            given.append(f"e{i}")
            tests.append(f"a{i}.stride() == e{i}")
    for i, attribute in enumerate(form.watched):
        if attribute:
            given += (f"n{i}", f"c{i}")
            numbers.append(f"n{i}.{attribute} is c{i}")
        else:
            given += (f"n{i}", f"k{i}", f"c{i}")
            numbers.append(f"n{i}.get(k{i}) is c{i}")
    if form.state:
        given.append("state")
        numbers.append("state()")
    unpack = "".join(f"a{i}, " for i in range(len(form.kinds)))
    opened: list[str] = []
    if form.opening is not None:
        count, conditions, parts, values = form.opening
        unpack = "".join(f"b{i}, " for i in range(count))
        given += [f"q{i}" for i in range(values)]
        opened = [f"if not ({' and '.join(conditions)}):"] if conditions else []
        opened += ["    return {differ}"] if conditions else []
        opened += [f"a{i} = {part}" for i, part in enumerate(parts)]
    condition = f"not ({' and '.join(tests)})"
    if form.guarded:
        condition = f"not guard({', '.join(f'a{i}' for i in tensors)}) and {condition}"
    if numbers:
        condition = f"not ({' and '.join(numbers)}) or {condition}"
    if form.aligned:
        misaligned = f"({' | '.join(f'p{i}' for i in tensors)}) & mask"
    else:
        given += [f"l{i}" for i in tensors]
        misaligned = " or ".join(f"p{i} & mask != l{i}" for i in tensors)
    addresses = "".join(
        f"p{i}, " if i in tensors else "0, "
        for i, kind in enumerate(form.kinds)
        if kind not in (_SAME, _EQUAL, _STREAM_KIND)
    )
    streams = [f"        stream = a{i} if stream is None else stream" for i in _streams(form)]

    def test(differs: str) -> list[str]:
        if not any(form.watched):
            return [f"        if {differs}:"]
        return [  # a watched name may be deleted, or a cell may be empty
            "        try:",
            f"            differs = {differs}",
            "        except (AttributeError, ValueError):",
            "            differs = True",
            "        if differs:",
        ]

    def body(first: str, differ: str, end: str) -> list[str]:
        return [
            *[f"        {line.format(differ=differ)}" if "{differ}" in line else f"        {line}" for line in opened],
            *test(f"{first}{condition}"),
            f"            return {differ}",
            *[f"        p{i} = a{i}.data_ptr()" for i in tensors],
            f"        if {misaligned}:",
            f"            return {differ}",
            *streams,
            f"        {_STREAM}",
            *[f"        {line}" for line in _launching(form.words, addresses)],
            f"        return {end}",
        ]

    lines = [
        f"def make({', '.join(given)}, guard, device, mask, frames, new_frame, write, failed, otherwise, stream_now, "
        "stream_of, missing):",
        f"    def call({unpack.replace(', ', '=missing, ')}/, *rest, stream=None, **options):",
        *body("rest or options or ", f"otherwise(({unpack}*rest), stream, options)", "None"),
        "    def again(args, stream):",
        "        try:",
        f"            {unpack}= args",
        "        except ValueError:",
        "            return False",
        *body("", "False", "True"),
        "    return call, again",
    ]
    return "\n".join(lines) + "\n"
