"""The greatest elements of rows, ``op.topk``, and sampling of tokens from rows of logits, ``op.sample``."""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.rows.sample import COLDEST, HOTTEST, SETTINGS, choose_config
from cute_dialect.kernels.rows.topk import longest_row
from cute_dialect.op.arrays.library import call_operator, random_state
from cute_dialect.op.errors import ArgumentError, ShapeError, UnsupportedError
from cute_dialect.op.execute.array_call import RowCall
from cute_dialect.op.execute.call_cache import KnownCalls, number
from cute_dialect.op.execute.recording import needs_gradients
from cute_dialect.op.execute.rows import sample_kernel, topk_gradient_kernel, topk_kernel
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.problems.rows import WIDE, check_topk
from cute_dialect.runtime.call_options import index_of

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.op.signature_types import Array, Interpreted

_KNOWN = KnownCalls(tf32=False)
"""Cached calls, whose seeds are arrays."""

_KNOWN_TOPK, _KNOWN_GRADIENTS = KnownCalls(tf32=False), KnownCalls(tf32=False)
"""Cached calls of ``topk`` and of its gradient."""

_TYPES = ("f32", "i32", "f32", "f32", "i64", "i64")
"""Types of the settings that are arrays."""

_LIMITS: dict[str, tuple[float, float, str]] = {
    "temperature": (0, 3.4e38, "0 or a positive number"), "top_k": (0, 2**31 - 1, "the number of tokens, or 0 for all"),
    "top_p": (0, 1, "a number from 0 to 1"), "min_p": (0, 1, "a number from 0 to 1"),
    "seed": (-(2**63), 2**63 - 1, "an integer of 64 bits"), "offset": (-(2**63), 2**63 - 1, "an integer of 64 bits"),
}  # fmt: skip
"""Least and greatest value of each setting, in words for errors."""


_SPELLINGS = {
    "generator": "pass seed", "num_samples": "a row gives one token; repeat the rows",
    "do_sample": "pass temperature=0 for the most probable token", "replacement": "a row gives one token",
}  # fmt: skip
"""Arguments of ``torch.multinomial`` and of samplers of tokens."""


def sample(
    logits: Array,
    *,
    temperature: Any = 1.0,
    top_k: Any = 0,
    top_p: Any = 1.0,
    min_p: Any = 0.0,
    seed: Any = None,
    offset: Any = 0,
    device: object = None,
    stream: object = None,
    **run: Any,
) -> Array:
    """Return a token of each row, drawn from ``softmax(logits / temperature)`` with one random number per row.

    The filters keep the most probable tokens; of equally probable ones the first ones precede.  ``top_p`` counts
    probabilities after ``top_k``.  Equal seeds and offsets give equal tokens, on a GPU and on the CPU up to roundings.

    Args:
        logits: (…, V), f16, bf16 or f32.
        temperature: a positive number, or 0 for the most probable token.
        top_k: number of tokens to keep; 0: all.
        top_p: keep the fewest tokens whose probabilities reach this sum.
        min_p: keep tokens of at least this share of the greatest probability.
        seed, offset: integers, or i64 arrays of one element, that determine the random numbers.  Without a seed, each
            call draws one from the default generator of torch for the device, as ``torch.multinomial`` does, or from
            ``numpy.random``, unless ``temperature`` is the number 0.
        device, stream, run: as in :func:`cute_dialect.op.mm`, without its ``seed``.

    The filters and the temperature may be arrays of one element per row, of f32 (``top_k`` of i32).  Elements outside
    the limits are errors in CPU memory.  In GPU memory they are clamped, and NaN is replaced by the default.

    Returns:
        (…), i32.  A row with NaN, with an infinite maximum or without a finite element gives any token.

    Raises:
        OpError: if the arguments are not supported.
    """
    if run:
        check_keywords("sample", sample, run, spellings=_SPELLINGS)
    is_greedy = not _is_array(temperature) and temperature == 0
    if seed is None:
        state = None if is_greedy else random_state("sample", logits, "seed")
        seed = 0 if state is None else state[:1]
    given = (temperature, top_k, top_p, min_p, seed, offset)
    arrays = tuple([x if _is_array(x) else None for x in given])
    numbers = tuple([
        _number(name, x) if array is None else default
        for name, x, array, default in zip(SETTINGS, given, arrays, (1.0, 0, 1.0, 0.0, 0, 0))
    ])  # fmt: skip
    torch = sys.modules.get("torch")
    if torch is not None and torch.compiler.is_compiling():
        from cute_dialect.op.torch.dispatch import CUTE  # late: torch

        return call_operator(
            "sample", lambda: CUTE.sample(logits, *arrays, *numbers), logits, device, stream, run, "logits"
        )
    return sampled(logits, arrays, numbers, device, stream, run)


def _is_array(x: Any) -> bool:
    """Return True for an array, and False for a number of Python or NumPy."""
    return hasattr(x, "shape") and (type(x).__module__ != "numpy" or type(x).__name__ == "ndarray")


def _number(name: str, x: Any) -> float | int:
    """Return a setting.  Raises ArgumentError."""
    least, most, words = _LIMITS[name]
    is_whole = name in ("top_k", "seed", "offset")
    kinds = (int,) if is_whole else (int, float)
    x = found if type(x) is not int and (found := index_of(x)) is not None else x
    if not is_whole and type(x) not in (*kinds, bool) and isinstance(x, Real):
        x = float(x)
    if type(x) not in kinds or not least <= x <= most:
        raise ArgumentError(f"sample: {name} is {x!r}; pass {words}, or an array")
    return x if is_whole else float(x)


def filters_of(numbers: Sequence[Any], arrays: Sequence[Any]) -> str:
    """Return the filters of a call, as letters."""
    temperature, top_k, top_p, min_p = (None if a is not None else n for n, a in zip(numbers[:4], arrays[:4]))
    has_k = not temperature or top_k is None or top_k > 0
    return "k" * has_k + "p" * (top_p is None or top_p < 1) + "m" * (min_p is None or min_p > 0)


def sampled(
    logits: Array,
    arrays: tuple[Any, ...],
    numbers: tuple[Any, ...],
    device: object = None,
    stream: object = None,
    run: Any = None,
) -> Any:
    """Compute :func:`sample`.

    Args:
        arrays: settings that are arrays, or None.
        numbers: the other settings; those of arrays are not used.
    """
    present = tuple([t for t in arrays if t is not None])
    how = (tuple([t is not None for t in arrays]), tuple([number(x) for x in numbers[:4]]))
    # Seeds of a cached call must be arrays: another number would be another call.
    usual = device is None and stream is None and not run and arrays[4] is not None
    how += (None if arrays[5] is not None else numbers[5],)

    def compute() -> object:
        return _launched(logits, arrays, numbers, device, stream, run)

    return _KNOWN.call(how, (logits, *present), compute) if usual else compute()


def _launched(
    logits: Any, arrays: tuple[Any, ...], numbers: tuple[Any, ...], device: object, stream: object, run: Any
) -> Any:
    """Check the arguments of :func:`sampled`, and launch its kernel."""
    names = dict(zip(SETTINGS, arrays))
    one = RowCall("sample", {"logits": logits, **names}, device, SETTINGS, WIDE, stream=stream, run=run)
    n, shape = one.length(), one.x.shape[:-1]
    if not n:
        raise ShapeError(f"sample: logits has shape {one.x.shape}; rows must have at least one element")
    for (name, array), kind in zip(names.items(), _TYPES):
        if array is None:
            continue
        if one.views[name].dtype != kind:
            raise one.wrong_type(name, kind)
        if name in SETTINGS[4:] and one.views[name].shape not in ((), (1,)):
            raise ShapeError(f"sample: {name} has shape {one.views[name].shape}; it must have one element")
        if name in SETTINGS[:4]:
            one.expect(name, shape)
            _check_elements(one, name)
    filters = filters_of(numbers, arrays)
    c = choose_config(one.element, n, filters, tuple([x for x, t in names.items() if t is not None]), one.count)
    if c is None:
        raise UnsupportedError(f"sample: rows of {n} logits are too long; pass at most {longest_row(one.element)}")
    temperature, top_k, *others = numbers
    if arrays[0] is None and temperature == 0:
        temperature, top_k = 1.0, 1
    temperature = min(max(temperature, COLDEST), HOTTEST)
    with one.on():
        tokens = one.result(shape, "i32")
        if one.count:
            flat = [None if t is None else one.flat(name) for name, t in names.items()]
            written = one.numbers(tokens)
            one.launch(sample_kernel(c), one.matrix("logits"), written, temperature, top_k, *others, *flat)
    return tokens


def _check_elements(one: RowCall, name: str) -> None:
    """Raise ArgumentError for an element outside the limits.  The kernel clamps elements in GPU memory."""
    least, most, words = _LIMITS[name]
    if one.views[name].device < 0:
        for x in one.on_host(name):
            if not least <= x <= most:
                raise ArgumentError(f"sample: {name} has an element of {x}; each must be {words}")


# ---------------------------------------------------------------------------------------------------------------- topk


def topk(
    x: Array,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> tuple[Array, Array]:
    """Return the ``k`` greatest elements of each row and their indices, as ``(values, indices)``, like ``torch.topk``.

    They are in decreasing order; of equal elements the first one precedes.  NaN is the greatest element.  ``values``
    has a gradient.

    Args:
        x: (…, N), f16, bf16 or f32.
        k: number of elements, at most N and 2048.  The results are (…, k), of the type of ``x`` and i64.
        dim: must be the last dimension.
        largest: False selects the least elements, in increasing order.
        sorted: no effect; the results are always sorted.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Raises:
        OpError: if the arguments are not supported.
    """
    how = (k, dim, largest)
    usual = device is None and stream is None and not run and not _KNOWN_TOPK.is_traced()
    if usual:
        done = _KNOWN_TOPK.again(how, x)
        if done is not None:
            return done
    if run:
        check_keywords("topk", topk, run, spellings={"out": "use the results", "axis": "pass dim"})
    torch = sys.modules.get("torch")
    if torch is not None and (torch.compiler.is_compiling() or needs_gradients(x)):
        from cute_dialect.op.torch.dispatch import CUTE  # late: torch

        def compute() -> tuple[Array, Array]:
            return call_operator("topk", lambda: CUTE.topk(x, k, dim, largest), x, device, stream, run)

        return _KNOWN_TOPK.differentiable(how, (x,), compute) if usual else compute()
    return selected(x, k, dim, largest, device, stream, run)


def selected(
    x: Array,
    k: int,
    dim: int = -1,
    largest: bool = True,
    device: object = None,
    stream: object = None,
    run: Interpreted | None = None,
) -> tuple[Array, Array]:
    """Compute :func:`topk` without gradients."""

    def compute() -> tuple[object, object]:
        one = RowCall("topk", {"x": x}, device, (), WIDE, stream=stream, run=run)
        n = one.length(dim)
        count, c = check_topk(one.element, one.count, n, k, largest)
        shape = (*one.x.shape[:-1], count)
        with one.on():
            values, indices = one.result(shape), one.result(shape, "i64")
            if one.count and count:
                one.launch(topk_kernel(c), one.matrix("x"), one.matrix_of(values), one.matrix_of(indices))
        return values, indices

    usual = device is None and stream is None and not run
    return _KNOWN_TOPK.call((k, dim, largest), (x,), compute) if usual else compute()


def topk_backward(dvalues: Array, indices: Array, n: int, device: object = None) -> Array:
    """Return the gradient of ``x``, rows of ``n`` elements, given that of the values."""

    def compute() -> object:
        one = RowCall("topk_backward", {"dvalues": dvalues, "indices": indices}, device, ("indices",), WIDE)
        dx = one.result((*one.x.shape[:-1], n))
        if one.count and n:
            one.launch(
                topk_gradient_kernel(one.element), one.matrix("dvalues"), one.matrix("indices"), one.matrix_of(dx)
            )
        return dx

    return _KNOWN_GRADIENTS.call(n, (dvalues, indices), compute) if device is None else compute()
