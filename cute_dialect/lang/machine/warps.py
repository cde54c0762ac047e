"""Warp-level operations: shuffles of any value, votes, reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cute_dialect.arch.targets import TARGETS
from cute_dialect.lang.machine.instructions import emit_machine, in_kernel, operand
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.tracing.tracer import current, parse_type, require_chip
from cute_dialect.lang.values.dtypes import Boolean, Float32, Int32, Numeric, Uint32
from cute_dialect.lang.values.forms import form_of
from cute_dialect.lang.values.numeric import as_number, binary

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

    from cute_dialect.lang.values.signature_types import Condition, Int, Number, Value

__all__ = [
    "FULL_MASK", "make_warp_uniform", "match_any", "shuffle_sync", "shuffle_sync_bfly", "shuffle_sync_down",
    "shuffle_sync_op", "shuffle_sync_up", "vote_all_sync", "vote_any_sync", "vote_ballot_sync", "vote_uni_sync",
    "warp_reduction", "warp_reduction_max", "warp_reduction_min", "warp_reduction_sum", "warp_redux_sync",
]  # fmt: skip
"""The names of ``cute.arch``."""

FULL_MASK = 0xFFFFFFFF
"""The mask of all threads of a warp."""


def whole_warp(mask: object, what: str) -> None:
    """Raise F253 unless a mask selects all threads of the warp."""
    number = as_number(mask)
    if not number.is_static or int(number.value) & FULL_MASK != FULL_MASK:
        raise KernelTypeError(
            "F253", f"{what}: the mask must be FULL_MASK, because the whole warp executes it; got {mask!r}"
        )


def _width(mode: str, clamp: int | None, what: str) -> int:
    """Return the group size in lanes given by operand c of ``shfl`` (PTX ISA, "shfl.sync")."""
    last = 0 if mode == "up" else 31
    if clamp is None:
        return 32
    segments, found = clamp >> 8 & 31, clamp & 31
    width = 32 - segments
    if found != last or width & (width - 1) or clamp >> 13:
        raise KernelTypeError(
            "F253", f"{what}: mask_and_clamp must be {last} | (32 - width) << 8 with a width of 1, 2, 4, 8, 16 or "
            f"32, got {clamp:#x}",
        )  # fmt: skip
    return width


def shuffle_sync_op(
    value: Value, offset: Int, mask: int = FULL_MASK, mask_and_clamp: int | None = None, kind: str = "idx"
) -> Value:
    """Return the value of another lane.

    Values may be numbers of 8 to 64 bits, Booleans, vectors, and tuples or objects of these.

    Args:
        value: the value to read.
        offset: the lane (idx), or its distance: ``lane - offset`` (up), ``lane + offset`` (down), ``lane ^ offset``
            (bfly).
        mask: must be FULL_MASK.
        mask_and_clamp: operand c of the instruction, ``(32 - width) << 8 | 31`` for groups of ``width`` lanes (``| 0``
            for up).
        kind: ``"idx"``, ``"up"``, ``"down"`` or ``"bfly"``.
    """
    what = "cute.arch.shuffle_sync" + ("" if kind == "idx" else f"_{kind}")
    whole_warp(mask, what)
    width = _width(kind, mask_and_clamp, what)
    in_kernel(what)
    index = operand("i32", offset, f"'offset' of {what}")

    def one(v: SSAValue) -> SSAValue:
        return emit_machine("shfl_sync", [v, index], what=what, mode=kind, width=width).results[0]

    form = form_of(value).widened()
    if not form.types:
        raise KernelTypeError("F253", f"{what}: value must be a number, a vector or an object of these, got {value!r}")
    return form.make([_piecewise(leaf, one, what) for leaf in form.take(value)])


def shuffle_sync(value: Value, offset: Int, mask: int = FULL_MASK, mask_and_clamp: int | None = None) -> Value:
    """Return the value of lane ``offset``; see :func:`shuffle_sync_op`."""
    return shuffle_sync_op(value, offset, mask, mask_and_clamp, "idx")


def shuffle_sync_up(value: Value, offset: Int, mask: int = FULL_MASK, mask_and_clamp: int | None = None) -> Value:
    """Return the value of lane ``lane - offset``, or the thread's own if there is none; see :func:`shuffle_sync_op`."""
    return shuffle_sync_op(value, offset, mask, mask_and_clamp, "up")


def shuffle_sync_down(value: Value, offset: Int, mask: int = FULL_MASK, mask_and_clamp: int | None = None) -> Value:
    """Return the value of lane ``lane + offset``, or the thread's own if there is none; see :func:`shuffle_sync_op`."""
    return shuffle_sync_op(value, offset, mask, mask_and_clamp, "down")


def shuffle_sync_bfly(value: Value, offset: Int, mask: int = FULL_MASK, mask_and_clamp: int | None = None) -> Value:
    """Return the value of lane ``lane ^ offset``; see :func:`shuffle_sync_op`."""
    return shuffle_sync_op(value, offset, mask, mask_and_clamp, "bfly")


def _piecewise(value: SSAValue, one: Callable[[SSAValue], SSAValue], what: str) -> SSAValue:
    """Apply ``one``, which takes numbers of 8 to 64 bits, to a leaf. Booleans are widened, vectors split into words."""
    from xdsl.dialects.builtin import IntegerType, VectorType

    t = current()
    kind: Any = value.type
    if isinstance(kind, IntegerType) and kind.width.data == 1:
        word = t.value("arith.extui", [value], [Int32.attribute])
        return t.value("arith.trunci", [one(word)], [kind], {"overflowFlags": _none_overflow()})
    if not isinstance(kind, VectorType):
        if str(kind) not in _SHUFFLED:
            raise KernelTypeError("F253", f"{what}: values must be {', '.join(_SHUFFLED)}, got {kind}")
        return one(value)
    return _vector_piecewise(value, kind, one)


_SHUFFLED = ("i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64")


def _none_overflow() -> Attribute:
    return parse_type("#arith.overflow<none>")


def _vector_piecewise(value: SSAValue, kind: Any, one: Callable[[SSAValue], SSAValue]) -> SSAValue:
    from xdsl.dialects.builtin import DenseArrayBase, VectorType, i64

    from cute_dialect.dialect.memory_types import element_bits  # late: start-up

    t = current()
    bits = element_bits(kind.element_type) * kind.get_shape()[0]
    words: Any = VectorType(Int32.attribute, [bits // 32]) if bits % 32 == 0 else kind
    source = value if words == kind else t.value("vector.bitcast", [value], [words])
    made = source
    for i in range(words.get_shape()[0]):
        at = {"static_position": DenseArrayBase.from_list(i64, [i])}
        part = one(t.value("vector.extract", [source], [words.element_type], at))
        made = t.value("vector.insert", [part, made], [words], at)
    return made if words == kind else t.value("vector.bitcast", [made], [kind])


def make_warp_uniform(value: Value) -> Value:
    """Return the first lane's value, which is warp-uniform. All threads of the warp must execute the call."""
    number = as_number(value)
    if number.is_static:
        return number
    found = shuffle_sync(number, 0)
    found.facts = number.facts
    return found


# ---------------------------------------------------------------------------------------------------------- votes


def _vote(op: str, predicate: object, mask: object, name: str) -> SSAValue:
    what = f"cute.arch.{name}"
    whole_warp(mask, what)
    return emit_machine(op, [operand("i1", predicate, f"'pred' of {what}")], what=what).results[0]


def vote_any_sync(pred: Condition, mask: int = FULL_MASK) -> Boolean:
    """Return True if ``pred`` is true for any thread of the warp."""
    return Boolean.of(_vote("vote_any", pred, mask, "vote_any_sync"))


def vote_all_sync(pred: Condition, mask: int = FULL_MASK) -> Boolean:
    """Return True if ``pred`` is true for all threads of the warp."""
    return Boolean.of(_vote("vote_all", pred, mask, "vote_all_sync"))


def vote_uni_sync(pred: Condition, mask: int = FULL_MASK) -> Boolean:
    """Return True if ``pred`` is the same for all threads of the warp."""
    ballot = vote_ballot_sync(pred, mask)
    return (ballot == 0) | (ballot == FULL_MASK)


def vote_ballot_sync(pred: Condition, mask: int = FULL_MASK) -> Uint32:
    """Return a Uint32 with one bit per thread of the warp: bit ``i`` is ``pred`` of lane ``i``."""
    return Uint32.of(_vote("ballot", pred, mask, "vote_ballot_sync"))


def match_any(value: Number, mask: int = FULL_MASK) -> Uint32:
    """Return a Uint32 with a bit for each thread of the warp with the same 32- or 64-bit value (sm_70 or later)."""
    what = "cute.arch.match_any"
    whole_warp(mask, what)
    tracer = in_kernel(what)
    require_chip(what, 70)
    number = as_number(value)
    if type(number).width not in (32, 64):
        raise KernelTypeError("F253", f"{what}: value must have 32 or 64 bits, got {number.describe()}")
    ssa = number.ssa
    if not type(number).is_integer:
        word = parse_type(f"i{type(number).width}")
        ssa = tracer.value("arith.bitcast", [ssa], [word])
    kind = {"kind": parse_type("#nvvm<match_sync_kind any>")}
    lanes = Int32.exactly(-1).ssa
    return Uint32.of(tracer.value("nvvm.match.sync", [lanes, ssa], [Uint32.attribute], kind))


# ----------------------------------------------------------------------------------------------------- reductions

_REDUX = ("add", "and", "or", "xor", "min", "max")


def warp_redux_sync(
    value: Number, kind: str, mask_and_clamp: int = FULL_MASK, *, abs: bool = False, nan: bool = False
) -> Numeric:
    """Return a 32-bit number reduced over the warp by one instruction.

    Integers need sm_80, and Float32 needs sm_100a, sm_103a or their families. Float32 ignores NaN unless all lanes
    have NaN.

    Args:
        value: an Int32, Uint32 or Float32.
        kind: ``"add"``, ``"and"``, ``"or"``, ``"xor"``, ``"min"`` or ``"max"``; Float32 has ``"min"`` and ``"max"``,
            also called ``"fmin"`` and ``"fmax"``.
        mask_and_clamp: the mask of all lanes.
        abs: True to reduce the absolute values of a Float32.
        nan: True to return NaN if any lane has NaN.
    """
    what = "cute.arch.warp_redux_sync"
    whole_warp(mask_and_clamp, what)
    number = as_number(value)
    dtype = type(number)
    if dtype is Float32 and kind.removeprefix("f") in ("min", "max"):
        require_chip(what + " of Float32", "sm_100f")
        flags = {"kind": kind.removeprefix("f"), "abs": abs, "nan": nan}
        return Float32.of(emit_machine("redux_sync_f32", [number.ssa], what=what, **flags).results[0])
    if abs or nan:
        raise KernelTypeError("F253", f"{what}: abs and nan need a Float32, got {number.describe()}")
    if kind not in _REDUX or dtype not in (Int32, Uint32):
        raise KernelTypeError(
            "F253",
            f"{what}: needs an Int32 or Uint32 and one of {', '.join(_REDUX)}, or a Float32 and min or max, got "
            f"{number.describe()} and {kind!r}",
            hint="use cute.arch.warp_reduction for other types",
        )
    signed = f"u{kind}" if kind in ("min", "max") and dtype is Uint32 else kind
    return dtype.of(emit_machine("redux_sync", [number.ssa], what=what, kind=signed).results[0])


def warp_reduction(val: Value, op: Callable[[Value, Value], Value], threads_in_group: int = 32) -> Value:
    """Return ``val`` reduced by ``op`` over groups of lanes. Every lane of a group gets the result.

    Lanes are combined as a tree: distance 16 first, then 8, 4, 2, 1.
    """
    if threads_in_group not in (1, 2, 4, 8, 16, 32):
        raise KernelTypeError(
            "F253", f"cute.arch.warp_reduction: threads_in_group must be 1, 2, 4, 8, 16 or 32, got {threads_in_group!r}"
        )
    distance = threads_in_group // 2
    while distance:
        val = op(val, shuffle_sync_bfly(val, distance))
        distance //= 2
    return val


def _reduced(name: str, kind: str, val: Any, threads_in_group: int) -> Any:
    number: Any = as_number(val) if isinstance(val, int | float | Numeric) else val
    if threads_in_group == 32 and type(number) in (Int32, Uint32) and _has_redux(current().chip):
        return warp_redux_sync(number, kind)

    if kind != "add" and not isinstance(number, Numeric):
        raise KernelTypeError(
            "F253", f"cute.arch.warp_reduction_{name}: val must be a number, got a {type(val).__name__}",
            hint="use cute.arch.warp_reduction(v, op)",
        )  # fmt: skip

    def combine(a: Any, b: Any) -> Any:
        return binary(kind, a, b) if isinstance(a, Numeric) else a + b

    return warp_reduction(number, combine, threads_in_group)


def _has_redux(chip: str) -> bool:
    return chip in TARGETS and TARGETS[chip].number >= 80


def warp_reduction_sum(val: Value, threads_in_group: int = 32) -> Value:
    """Return the sum over groups of lanes; see :func:`warp_reduction`."""
    return _reduced("sum", "add", val, threads_in_group)


def warp_reduction_max(val: Value, threads_in_group: int = 32) -> Value:
    """Return the maximum over groups of lanes; see :func:`warp_reduction`."""
    return _reduced("max", "max", val, threads_in_group)


def warp_reduction_min(val: Value, threads_in_group: int = 32) -> Value:
    """Return the minimum over groups of lanes; see :func:`warp_reduction`."""
    return _reduced("min", "min", val, threads_in_group)
