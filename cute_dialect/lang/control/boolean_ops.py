"""Truth and equality of values that may be known only at run time: ``and``, ``or``, ``not``, ``==``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cute_dialect.lang.control.branches import CHEAP, MOST_SPECULATED, Open, check_unmoved, erase, pick, regions, splice
from cute_dialect.lang.control.mutable_state import Snapshot
from cute_dialect.lang.tracing.errors import StaticError
from cute_dialect.lang.tracing.tracer import current
from cute_dialect.lang.values.dtypes import Boolean, Numeric
from cute_dialect.lang.values.dynamic import Dynamic
from cute_dialect.lang.values.numeric import emit

__all__ = ["both", "either", "equal", "inverted", "is_dynamic_truth", "select", "truth_of", "unequal"]


def truth_of(x: Any) -> Any:
    """Return the truth of a value: True, False, or a run-time Boolean."""
    if x is True or x is False:
        return x
    if isinstance(x, Numeric) and not x.is_static:
        return x if type(x) is Boolean else Boolean(x)
    return bool(x)


def is_dynamic_truth(x: Any) -> bool:
    """Return True for a run-time Boolean."""
    return type(x) is Boolean and not x.is_static


def inverted(x: Any) -> Any:
    """Return the negation of a run-time Boolean."""
    return Boolean.of(emit("arith.xori", [x.ssa, current().constant(True, x.ssa.type)]))


def both(a: Any, b: Callable[[], Any]) -> Any:
    """Return ``a and b()`` for a run-time Boolean ``a``. Costly operands are evaluated only if ``a`` is true."""
    return _joined(a, b, conjunction=True)


def either(a: Any, b: Callable[[], Any]) -> Any:
    """Return ``a or b()`` for a run-time Boolean ``a``. Costly operands are evaluated only if ``a`` is false."""
    return _joined(a, b, conjunction=False)


def _joined(a: Any, b: Callable[[], Any], *, conjunction: bool) -> Any:
    from xdsl.ir import Block, Region

    tracer = current()
    snap = Snapshot([b])
    depth = len(regions(tracer))
    block = Block()
    regions(tracer).append(Open([block]))
    with tracer.into(block):
        value = b()
    del regions(tracer)[depth:]
    check_unmoved(snap)
    changed = any(
        any(x is not y for x, y in zip(_values(now), _values(kept))) or len(now) != len(kept)
        for now, (_, kept) in zip(snap.state().values(), snap.objects.values())
    )
    if changed:  # The operand changes objects, so it must run conditionally.
        snap.restore()
        erase([block])
        return pick(tracer, a, b, lambda: False) if conjunction else pick(tracer, a, lambda: True, b)
    if block.first_op is None and (value is True or value is False):
        return (a if value else False) if conjunction else (True if value else a)
    if not isinstance(value, bool | Boolean):
        word = "and" if conjunction else "or"
        raise StaticError(
            "F151", f"'{word}' would give a bool or {_named(value)}, depending on a run-time condition",
            hint="compare both sides, or write 'x if c else y'",
        )  # fmt: skip
    number = value if isinstance(value, Boolean) else Boolean(value)
    t = Boolean.attribute
    ops = list(block.ops)
    if len(ops) <= MOST_SPECULATED and all(op.name in CHEAP for op in ops):
        splice(block, tracer)
        return Boolean.of(tracer.value("arith.andi" if conjunction else "arith.ori", [a.ssa, number.ssa], [t]))
    with tracer.into(block):
        tracer.op("scf.yield", [number.ssa], ())
    with tracer.into(Block()) as other:
        tracer.op("scf.yield", [tracer.constant(not conjunction, t)], ())
    sides = [Region(block), Region(other)] if conjunction else [Region(other), Region(block)]
    return Boolean.of(tracer.value("scf.if", [a.ssa], [t], regions=sides))


def select(condition: Any, a: Any, b: Any) -> Any:
    """Return ``a if condition else b`` for two values that are already computed."""
    truth = truth_of(condition)
    if truth is True or truth is False:
        return a if truth else b
    return pick(current(), truth, lambda: a, lambda: b)


def _values(kept: Any) -> Any:
    return kept.values() if isinstance(kept, dict) else kept


def _named(value: Any) -> str:
    return value.describe() if isinstance(value, Dynamic) else repr(value)


def equal(a: Any, b: Any) -> Any:
    """Return ``a == b``. Tuples, lists and dataclasses are compared leaf by leaf."""
    cls = type(a)
    for base in (tuple, list):
        if isinstance(a, base) and isinstance(b, base):
            if not cls.__eq__ is type(b).__eq__ is base.__eq__:
                return a == b
            return _all_equal(a, b) if len(a) == len(b) else False
    if cls is type(b):
        fields = getattr(cls, "__dataclass_fields__", None)
        if fields is not None and cls.__dataclass_params__.eq and _is_generated(cls.__eq__):
            names = [f.name for f in fields.values() if f.compare]
            return _all_equal([getattr(a, n) for n in names], [getattr(b, n) for n in names])
    return a == b


def _is_generated(f: Any) -> bool:
    code = getattr(f, "__code__", None)
    return code is not None and code.co_filename == "<string>"


def _all_equal(a: Any, b: Any) -> Any:
    result: Any = True
    for x, y in zip(a, b):
        if x is y and not isinstance(x, Dynamic):
            continue
        one = truth_of(equal(x, y))
        if one is False:
            return False
        if one is not True:
            result = one if result is True else both(result, lambda one=one: one)
    return result


def unequal(a: Any, b: Any) -> Any:
    """Return ``a != b``. Tuples, lists and dataclasses are compared leaf by leaf."""
    if type(a) is not type(b) or (not isinstance(a, tuple | list) and not hasattr(type(a), "__dataclass_fields__")):
        return a != b
    same = equal(a, b)
    return inverted(same) if is_dynamic_truth(same) else not same
