"""Runtime of converted code: the methods that it calls as ``.rt`` (:class:`Hooks`), and the callees of calls.

Python builtins have replacements for run-time values.  Calls with static arguments go to the builtin itself.  The
markers of static and dynamic values of CuTe DSL only check a value, because staticness follows from it.
"""

from __future__ import annotations

import builtins
import math
import operator
import sys
import types
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from inspect import signature
from types import FunctionType, GeneratorType, MethodType
from typing import Any, TypeVar

from cute_dialect.files import PACKAGE
from cute_dialect.lang.control.branches import (
    Branch,
    both,
    check_iterator,
    consumers,
    either,
    equal,
    inverted,
    is_dynamic_truth,
    pick,
    regions,
    truth_of,
    unequal,
)
from cute_dialect.lang.control.loops import For, GeneratorFor, LoopRange, StaticFor, While, loop_over, loop_range
from cute_dialect.lang.control.mutable_state import U
from cute_dialect.lang.control.runtime_loops import Rolled
from cute_dialect.lang.rewrite.analysis import Site
from cute_dialect.lang.rewrite.convert import conversion_of, is_converted
from cute_dialect.lang.rewrite.source import is_convertible
from cute_dialect.lang.tracing.errors import LoopError, StaticError, SyntaxErrorInKernel
from cute_dialect.lang.tracing.tracer import active, current
from cute_dialect.lang.values import math as math_ops
from cute_dialect.lang.values.dtypes import Boolean, Float32, Float64, Int32, Int64, Integer, NumericType
from cute_dialect.lang.values.dynamic import Dynamic, is_dynamic
from cute_dialect.lang.values.numeric import binary, is_number

# -------------------------------------------------------------------------------------------------------------- markers


F = TypeVar("F", bound=Callable[..., Any])


def const_expr(value: Any) -> Any:
    """Return a value that is known at compile time.  Raises F140 for a run-time value.

    >>> const_expr(2 > 1)
    True
    """
    if is_dynamic(value):
        raise StaticError(
            "F140", f"const_expr needs a value known at compile time, got {value.describe()}",
            hint="remove const_expr: conditions are evaluated at compile time if their value allows",
        )  # fmt: skip
    return value


def dynamic_expr(value: Any) -> Any:
    """Return the value unchanged. Accepted for compatibility with CuTe DSL.

    >>> dynamic_expr(3)
    3
    """
    return value


def dsl_user_op(function: F) -> F:
    """Return the function unchanged. Helpers called in kernels need no decorator; ``loc`` and ``ip`` stay None."""
    return function


# ------------------------------------------------------------------------------------------------------------- builtins


def _range(*args: Any, **hints: Any) -> Any:
    if hints:  # Programs for CuTe DSL pass hints to range.
        return loop_range(*args, **hints)
    if not any(isinstance(a, Dynamic) for a in args):
        return range(*args)
    if not any(is_dynamic(a) for a in args):
        return range(*(int(a) for a in args))
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1) if len(args) == 2 else args
    return LoopRange(start, stop, step)


def _extreme(name: str, python: Callable[..., Any]) -> Callable[..., Any]:
    def overlay(*args: Any, **more: Any) -> Any:
        values = list(args[0]) if len(args) == 1 else list(args)
        if not any(is_dynamic(v) for v in values):
            return python(values, **more)
        if more.get("key") is not None:
            raise StaticError("F157", f"'{name}' with key= needs values known at compile time")
        result = values[0]
        for value in values[1:]:
            a, b = result, value
            if _integers_alike(a, b):  # Equal integers are indistinguishable, so one min or max instruction suffices.
                result = binary(name, a, b)
                continue
            less = (b < a) if name == "min" else (b > a)
            result = _pick(less, lambda b=b: b, lambda a=a: a)
        return result

    return overlay


def _pick(condition: Any, a: Callable[[], Any], b: Callable[[], Any]) -> Any:
    truth = truth_of(condition)
    return (a() if truth else b()) if truth is True or truth is False else pick(current(), truth, a, b)


def _integers_alike(a: Any, b: Any) -> bool:
    """Return True if two values are integers of one type, at least one of them a number type of this package."""
    x, y = type(a), type(b)
    return (x is y or x is int or y is int) and any(issubclass(k, Integer) and k is not Boolean for k in (x, y))


def _fold(python: Callable[..., Any], joined: Callable[..., Any], ends: bool) -> Callable[..., Any]:
    def overlay(values: Any) -> Any:
        result: Any = not ends
        for value in values:
            truth = truth_of(value)
            if truth is ends:
                return ends
            if truth is not (not ends):
                result = truth if result is (not ends) else joined(result, lambda truth=truth: truth)
        return result

    overlay.__name__ = python.__name__
    return overlay


def _int(*args: Any, **more: Any) -> Any:
    if len(args) != 1 or not is_dynamic(args[0]):
        return int(*args, **more)
    x = args[0]
    return (Int64 if type(x).width == 64 else Int32)(x) if hasattr(type(x), "width") else int(x)


def _float(*args: Any) -> Any:
    if len(args) != 1 or not is_dynamic(args[0]):
        return float(*args)
    x = args[0]
    return (Float64 if type(x).width == 64 else Float32)(x) if hasattr(type(x), "width") else float(x)


def _bool(*args: Any) -> Any:
    return truth_of(args[0]) if args else False


def _divmod(a: Any, b: Any) -> Any:
    ours = any(isinstance(x, Dynamic) for x in (a, b))
    return (a // b, a % b) if ours else divmod(a, b)


def _pow(a: Any, b: Any, *rest: Any) -> Any:
    ours = any(isinstance(x, Dynamic) for x in (a, b))
    return a**b if ours and not rest else pow(a, b, *rest)


def _reversed(values: Any) -> Any:
    return values.reversed() if isinstance(values, LoopRange) else reversed(values)


def _sorted(values: Any, **more: Any) -> Any:
    values = list(values)
    if any(is_dynamic(v) for v in values) and more.get("key") is None:
        raise StaticError("F157", "'sorted' needs values known at compile time")
    return sorted(values, **more)


def _print(*args: Any, **more: Any) -> None:
    tracer = current()
    if more.get("file") is None and any(isinstance(r, Rolled) for r in regions(tracer)):
        text = more.get("sep") or " "
        tracer.state["printed"].append(((text.join(str(a) for a in args),), {k: more[k] for k in more if k == "end"}))
    else:
        print(*args, **more)


def _next(iterator: Any, *default: Any) -> Any:
    check_iterator(current(), iterator)
    return next(iterator, *default)


def contains(x: Any, values: Any) -> Any:
    """Return ``x in values``, compared element by element if a value is known only at run time."""
    if isinstance(values, range) and is_dynamic(x):
        if values.step < 0:
            values = values[::-1]
        if not values:
            return False
        inside = both(x >= values.start, lambda: x < values.stop)
        return inside if values.step == 1 else both(inside, lambda: (x - values.start) % values.step == 0)
    if not isinstance(values, tuple | list | set | frozenset | dict):
        return x in values
    if not is_dynamic(x) and not isinstance(x, tuple) and not any(is_dynamic(v) for v in values):
        return x in values
    result: Any = False
    for value in values:
        one = True if x is value else truth_of(equal(x, value))
        if one is True:
            return True
        if one is not False:
            result = one if result is False else either(result, lambda one=one: one)
    return result


def _math(name: str) -> Callable[..., Any]:
    python = getattr(math, name)

    def overlay(*args: Any) -> Any:
        if not any(is_dynamic(a) for a in args):
            return python(*args)
        found = getattr(math_ops, _MATH[name])(*args)
        return _int(found) if name in ("floor", "ceil", "trunc") else found

    return overlay


_MATH = {
    **{name: name for name in (
        "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan",
        "atan2", "tanh", "erf", "floor", "ceil", "trunc", "copysign", "fma",
    ) if hasattr(math, name)},
    "fabs": "absf",
}  # fmt: skip
"""Maps functions of Python's ``math`` to ``cute.math``. As in Python, ``floor`` and the like return integers."""

OVERLAYS: dict[Any, Callable[..., Any]] = {
    builtins.range: _range, builtins.min: _extreme("min", min), builtins.max: _extreme("max", max),
    builtins.any: _fold(any, either, True), builtins.all: _fold(all, both, False), builtins.int: _int,
    builtins.float: _float, builtins.bool: _bool, builtins.divmod: _divmod, builtins.pow: _pow,
    builtins.reversed: _reversed, builtins.sorted: _sorted, builtins.next: _next, builtins.print: _print,
    **{getattr(math, name): _math(name) for name in _MATH},
}  # fmt: skip
"""Maps builtins to their replacements in converted code."""


YES, NO = (1,), (0,)
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": equal, "!=": unequal, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "is": operator.is_, "is not": operator.is_not,
}  # fmt: skip


class Text(str):
    """Text that contains run-time values, shown as ``?``. ``pieces`` are its texts, and values with their formats."""

    __slots__ = ("pieces",)
    pieces: tuple[str | tuple[Any, str], ...]


def _holds_run_time(value: Any) -> bool:
    """Return True if a value, or an element of a tuple or list, is known only at run time."""
    if isinstance(value, tuple | list):
        return any(map(_holds_run_time, value))
    return is_dynamic(value)


def _are_numbers(a: Any, b: Any) -> bool:
    """Return True if both values are numbers and at least one is a run-time value."""
    return (is_dynamic(a) and is_number(a) and is_number(b)) or (is_dynamic(b) and is_number(b) and is_number(a))


def _shown(value: Any) -> str:
    """Return a run-time value as text. Numbers are shown as ``?``; tensors and layouts show their static part."""
    return f"({','.join(map(_shown, value))})" if isinstance(value, tuple | list) else str(value)


def _name_allocation(value: Any, name: str) -> None:
    """Name the shared memory that a tensor or pointer starts at after the variable, unless it has a name.

    Messages of the interpreter use the name.
    """
    while value.name_hint in (None, name) and hasattr(value, "op"):
        if value.op.name == "cute.memref.alloc_smem":
            value.name_hint = name
        if value.op.name not in ("cute.make_view", "cute.get_iter", "cute.recast_iter"):
            return
        value = value.op.operands[0]


def _static_truth(condition: Any) -> bool | None:
    """Return the truth of a condition, or None if it is known only at run time."""
    truth = truth_of(condition)
    return truth if truth is True or truth is False else None


# ------------------------------------------------------------------------------------------------------ callees


def converted(f: Any) -> Any:
    """Return the twin of ``f`` that also handles values known only at run time.

    A function without source is returned unchanged.  Raises F101 if the file changed after it was imported.

    >>> converted(len) is len
    True
    """
    if isinstance(f, MethodType):
        return MethodType(converted(f.__func__), f.__self__)
    if not isinstance(f, FunctionType) or is_converted(f.__code__) or getattr(f, "__cute_native__", False):
        return f
    conversion = conversion_of(f.__code__, f.__globals__, Hooks)
    if conversion is None:
        return f
    made = conversion.bind(f)
    made.__dict__.update(f.__dict__)
    made.__doc__, made.__module__ = f.__doc__, f.__module__
    made.__annotations__ = f.__annotations__
    return made


def callee(f: Any) -> Any:
    """Return the function to call in place of ``f``."""
    kind = type(f)
    if kind is FunctionType:
        return _function(f)
    if kind is MethodType:
        inner = f.__func__
        made = callee(inner)
        return f if made is inner else MethodType(made, f.__self__)
    if kind is types.BuiltinFunctionType or kind is type:
        if active() is None:
            return f
        overlay = OVERLAYS.get(f)
        if overlay is not None:
            return overlay
        return f if kind is not type else _class(f)
    if kind is partial:
        made = callee(f.func)
        return f if made is f.func else partial(made, *f.args, **f.keywords)
    if isinstance(f, type):
        return f
    call = next((c.__dict__["__call__"] for c in kind.__mro__ if "__call__" in c.__dict__), None)
    if type(call) is FunctionType:
        made = _function(call)
        return f if made is call else MethodType(made, f)
    return f


def callee_of_op(f: Any) -> Any:
    """Return the function to call in place of ``f``, without ``loc=`` and ``ip=`` if it does not take them."""
    made = callee(f)
    try:
        parameters = signature(made).parameters.values()
    except (TypeError, ValueError):
        return made
    if any(p.name in ("loc", "ip") or p.kind is p.VAR_KEYWORD for p in parameters):
        return made

    def without_place(*args: Any, loc: object = None, ip: object = None, **kwargs: Any) -> Any:
        return made(*args, **kwargs)

    return without_place


def _function(f: FunctionType) -> FunctionType:
    code = f.__code__
    if is_converted(code) or not is_convertible(code.co_filename, f.__module__) or "__cute_native__" in f.__dict__:
        return f
    conversion = conversion_of(code, f.__globals__, Hooks)
    return f if conversion is None else conversion.bind(f)


def _class(cls: type) -> Any:
    """Return a class, or a constructor that runs its converted ``__init__``."""
    init = cls.__init__
    if type(init) is not FunctionType or cls.__new__ is not object.__new__:
        return cls
    made = _function(init)
    if made is init:
        return cls

    def construct(*args: Any, **kwargs: Any) -> Any:
        instance = object.__new__(cls)
        made(instance, *args, **kwargs)
        return instance

    return construct


# ------------------------------------------------------------------------------------------------------ the hooks


# ------------------------------------------------------------------------------------------------ match subjects

_THEMSELVES = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)
"""Classes whose single positional pattern matches the subject itself."""


def _positional(cls: Any, count: int) -> tuple[str, ...]:
    names: tuple[str, ...] = getattr(cls, "__match_args__", ()) if count else ()
    if count > len(names):
        raise TypeError(f"{cls.__name__}() accepts {len(names)} positional sub-patterns ({count} given)")
    return names[:count]


class MatchSubjects:
    """Structural tests of the subjects of ``match`` patterns, which are decided at compile time."""

    @staticmethod
    def is_sequence(subject: Any, count: int, more: bool) -> bool:
        """Return True if a subject is a sequence of ``count`` elements, or at least ``count`` with ``more``.

        >>> [MatchSubjects.is_sequence(x, 2, False) for x in ((1, 2), [1], "ab")]
        [True, False, False]
        """
        if not isinstance(subject, Sequence) or isinstance(subject, str | bytes | bytearray):
            return False
        return len(subject) >= count if more else len(subject) == count

    @staticmethod
    def part_of(subject: Any, first: int, last: int | None) -> list[Any]:
        """Return the elements captured by a starred name. ``last`` counts from the end.

        >>> MatchSubjects.part_of((1, 2, 3), 1, None), MatchSubjects.part_of((1, 2, 3), 0, -1)
        ([2, 3], [1, 2])
        """
        return [subject[i] for i in range(first, len(subject) + (last or 0))]

    @staticmethod
    def has_keys(subject: Any, *keys: Any) -> bool:
        """Return True if a subject is a mapping with these keys.

        >>> MatchSubjects.has_keys({"a": 1}, "a"), MatchSubjects.has_keys([], "a")
        (True, False)
        """
        return isinstance(subject, Mapping) and all(key in subject for key in keys)

    @staticmethod
    def rest_of(subject: Any, *keys: Any) -> dict[Any, Any]:
        """Return the items of a mapping without these keys.

        >>> MatchSubjects.rest_of({"a": 1, "b": 2}, "a")
        {'b': 2}
        """
        return {k: v for k, v in subject.items() if k not in keys}

    @staticmethod
    def is_instance(subject: Any, cls: Any, count: int, *names: str) -> bool:
        """Return True if a subject is an instance of a class and has the attributes that the sub-patterns need."""
        if not isinstance(subject, cls):
            return False
        if cls not in _THEMSELVES:
            names = (*_positional(cls, count), *names)
        elif count > 1:
            raise TypeError(f"{cls.__name__}() accepts 1 positional sub-pattern ({count} given)")
        return all(hasattr(subject, name) for name in names)

    @staticmethod
    def attribute_of(subject: Any, cls: Any, n: int) -> Any:
        """Return the value matched by positional pattern ``n`` of a class."""
        return subject if cls in _THEMSELVES else getattr(subject, _positional(cls, n + 1)[n])


class Hooks(MatchSubjects):
    """The hooks of one converted function. ``sites`` are the branches and loops of its source, by number."""

    def __init__(self, sites: list[Site], module_globals: Mapping[str, Any]):
        self.sites = sites
        for site in sites:
            site.globals = module_globals

    U = U
    locals = staticmethod(builtins.locals)
    callee = staticmethod(callee)
    callee_of_op = staticmethod(callee_of_op)

    # ------------------------------------------------------------------------------------------ branches and loops

    def If(self, condition: Any, n: int) -> Any:
        """Return the sides of an ``if`` to trace."""
        if condition is True:
            return YES
        if condition is False:
            return NO
        truth = truth_of(condition)
        if truth is True:
            return YES
        if truth is False:
            return NO
        tracer = active()
        assert tracer is not None
        return Branch(tracer, truth.ssa, self.sites[n])

    def With(self, manager: Any, n: int) -> Any:
        """Return the sides of a ``with`` to trace: one, unless the manager is a run-time condition."""
        region = getattr(type(manager), "__cute_region__", None)
        return YES if region is None else self.If(region(manager), n)

    @staticmethod
    def manager(manager: Any) -> Any:
        """Return the context manager that Python's ``with`` enters."""
        if getattr(type(manager), "__cute_region__", None) is None:
            return manager
        from contextlib import nullcontext

        return nullcontext(manager)

    def While(self, n: int, values: Mapping[str, Any]) -> While:
        """Return the tracer of a ``while``."""
        return While(active(), self.sites[n], values)

    def For(self, iterable: Any, n: int, values: Mapping[str, Any]) -> For | StaticFor | GeneratorFor:
        """Return the tracer of a ``for``."""
        return loop_over(active(), iterable, self.sites[n], values)

    # -------------------------------------------------------------------------------------------------- expressions

    @staticmethod
    def and_(a: Any, b: Callable[[], Any]) -> Any:
        truth = truth_of(a)
        if truth is True or truth is False:
            return b() if truth else a
        return both(truth, b) if is_dynamic_truth(a) else pick(_tracer(), truth, b, lambda: a)

    @staticmethod
    def or_(a: Any, b: Callable[[], Any]) -> Any:
        truth = truth_of(a)
        if truth is True or truth is False:
            return a if truth else b()
        return either(truth, b) if is_dynamic_truth(a) else pick(_tracer(), truth, lambda: a, b)

    @staticmethod
    def all_(a: Any, b: Callable[[], Any]) -> Any:
        """Return the truth of ``a and b()``, as a Boolean."""
        truth = truth_of(a)
        if truth is True or truth is False:
            return truth_of(b()) if truth else False
        return both(truth, lambda: truth_of(b()))

    @staticmethod
    def any_(a: Any, b: Callable[[], Any]) -> Any:
        """Return the truth of ``a or b()``, as a Boolean."""
        truth = truth_of(a)
        if truth is True or truth is False:
            return True if truth else truth_of(b())
        return either(truth, lambda: truth_of(b()))

    @staticmethod
    def not_(a: Any) -> Any:
        if a is True or a is False:
            return not a
        truth = truth_of(a)
        return not truth if truth is True or truth is False else inverted(truth)

    @staticmethod
    def pick(condition: Any, a: Callable[[], Any], b: Callable[[], Any]) -> Any:
        truth = truth_of(condition)
        if truth is True or truth is False:
            return a() if truth else b()
        return pick(_tracer(), truth, a, b)

    eq = staticmethod(equal)
    ne = staticmethod(unequal)

    @staticmethod
    def compare(word: str, a: Any, b: Any) -> Any:
        """Return ``a word b``, where ``word`` is a comparison operator."""
        if word in ("in", "not in"):
            return Hooks.contains(a, b) if word == "in" else Hooks.lacks(a, b)
        if word in ("is", "is not"):
            flag, known = (b, a) if isinstance(a, bool) else (a, b)
            if isinstance(known, bool) and is_dynamic_truth(flag):  # A comparison with True or False.
                return flag if known == (word == "is") else inverted(flag)
            if a is not b and not isinstance(known, bool) and _are_numbers(a, b):
                raise StaticError(
                    "F152", f"'{word}' compares two numbers as Python objects, not by value",
                    hint=f"write '{'==' if word == 'is' else '!='}'",
                )  # fmt: skip
        return _COMPARISONS[word](a, b)

    @staticmethod
    def chain(words: Sequence[str], a: Any, b: Any, *later: Callable[[], Any]) -> Any:
        """Return ``a word b word later()…``. Each operand is evaluated once."""
        first = Hooks.compare(words[0], a, b)
        if len(words) == 1:
            return first
        return Hooks.and_(first, lambda: Hooks.chain(words[1:], b, later[0](), *later[1:]))

    contains = staticmethod(contains)

    @staticmethod
    def lacks(a: Any, b: Any) -> Any:
        return Hooks.not_(Hooks.contains(a, b))

    @staticmethod
    def sure(condition: Any) -> bool:
        """Return the truth of a condition before an operand with ``:=``.  Raises F153 if it is not static."""
        if (truth := _static_truth(condition)) is None:
            raise SyntaxErrorInKernel(
                "F153", "an operand with ':=' or 'yield' follows a condition that is known only at run time",
                hint="assign the name in a statement before this one",
            )  # fmt: skip
        return truth

    @staticmethod
    def clause(condition: Any) -> bool:
        """Return the truth of the ``if`` of a comprehension.  Raises F157 if it is not static."""
        if (truth := _static_truth(condition)) is None:
            raise StaticError(
                "F157", "the 'if' of a comprehension is known only at run time, so the length would be too",
                hint="keep all elements and select their values: [x if c else 0 for …]",
            )  # fmt: skip
        return truth

    @staticmethod
    def text(*parts: str | tuple[Any, int, str]) -> str:
        """Return the value of an f-string."""
        pieces: list[str | tuple[Any, str]] = []
        run_time = False
        for part in parts:
            if isinstance(part, str):
                pieces.append(part)
                continue
            value, conversion, spec = part
            if _holds_run_time(value):
                run_time = True
                pieces.append((value, spec))
                continue
            if conversion != -1:
                value = {"r": repr, "s": str, "a": ascii}[chr(conversion)](value)
            pieces.append(format(value, spec))
        plain = "".join(p if isinstance(p, str) else _shown(p[0]) for p in pieces)
        if not run_time:
            return plain
        made = Text(plain)
        made.pieces = tuple(pieces)
        return made

    # --------------------------------------------------------------------------------------------------- statements

    @staticmethod
    def let(name: str, value: Any) -> Any:
        """Return a value assigned to a name. Its SSA value gets the name as a hint."""
        if isinstance(value, Dynamic) and name != "_" and not getattr(value, "is_static", False):
            ssa = getattr(value, "ssa", None)
            if ssa is None:
                ssa = getattr(getattr(value, "_start", None), "ssa", None)  # a view of a structure
            if ssa is not None and name.isascii():
                if ssa.name_hint is None:
                    ssa.name_hint = name
                _name_allocation(ssa, name)
        return value

    @staticmethod
    def let_each(names: tuple[str, ...], values: Any) -> Any:
        """Return a value unpacked to these names. Its SSA values get the names as hints."""
        if type(values) is tuple or type(values) is list:
            for name, value in zip(names, values):
                Hooks.let(name, value)
        elif type(values) is GeneratorType:
            return _named_each(names, values)
        return values

    @staticmethod
    def declared(kind: Callable[[], Any], value: Any) -> Any:
        """Return the value assigned by ``x: kind = value``. If ``kind`` is a number type, the value is converted."""
        if active() is None:
            return value
        try:
            wanted = kind()
        except Exception:  # Python does not evaluate annotations of locals either.
            return value
        return wanted(value) if isinstance(wanted, NumericType) and is_number(value) else value

    @staticmethod
    def check(condition: Any, message: Callable[[], Any] | None = None) -> None:
        """Run ``assert condition, message``.

        A host function checks it at each call.  A kernel checks it at run time, unless asserts are disabled. Asserts in
        this package's own kernels are checked only in debug builds and on the interpreter.
        """
        truth = truth_of(condition)
        if truth is True:
            return
        tracer = active()
        if truth is False and (tracer is None or not regions(tracer)):
            raise AssertionError(*(() if message is None else (message(),)))
        assert tracer is not None
        if truth is False:
            truth = Boolean.exactly(False)
        wanted = tracer.kind == "host" or tracer.state.get("asserts")
        if not wanted and tracer.state.get("users_asserts"):
            wanted = not sys._getframe(1).f_code.co_filename.startswith(PACKAGE)
        if wanted:
            from xdsl.dialects.builtin import StringAttr

            text = "assertion failed" if message is None else str(message())
            tracer.op("cf.assert", [truth.ssa], (), {"msg": StringAttr(text)})

    @staticmethod
    def stores_global(name: str) -> None:
        """Raise F158 for an assignment to a global in a trace."""
        if active() is not None:
            raise SyntaxErrorInKernel(
                "F158", f"the global '{name}' is assigned in a kernel, which would happen once, at compile time",
                hint="return the value, or store it in an object passed as an argument",
            )  # fmt: skip

    @staticmethod
    def mark() -> Any:
        """Return the insertion block before a ``try``."""
        tracer = active()
        return None if tracer is None else tracer.block

    @staticmethod
    def caught(mark: Any) -> None:
        """Raise F155 if a caught exception has left a run-time branch or loop."""
        tracer = active()
        if tracer is not None and tracer.block is not mark:
            raise SyntaxErrorInKernel(
                "F155", "an exception raised in a run-time branch or loop is caught outside it",
                hint="catch it inside, or make the condition known at compile time",
            )  # fmt: skip

    @staticmethod
    def yielded(value: Any, handles: Sequence[Any]) -> Any:
        """Return a value that a generator yields.  Raises F160 in a run-time loop that no ``for`` consumes."""
        tracer = active()
        if tracer is None:
            return value
        for handle in handles:
            if isinstance(handle, While):
                handle.yielded = True
        if not any(getattr(h, "rolled", False) for h in handles):
            return value
        waiting = consumers(tracer)
        if not waiting or waiting[-1] is not sys._getframe(1):
            raise LoopError(
                "F160", "a generator yields in a run-time branch or loop, but no 'for' statement consumes it",
                hint="loop over it with a 'for' statement in kernel code",
            )  # fmt: skip
        return value

    @staticmethod
    def yielded_from(values: Any, handles: Sequence[Any]) -> Any:
        """Return the iterable of a ``yield from``.  Raises F160 in a run-time branch or loop."""
        if any(getattr(h, "rolled", False) for h in handles):
            raise LoopError(
                "F160", "'yield from' cannot be used in a run-time branch or loop; write 'for x in …: yield x'"
            )
        return values


def _tracer() -> Any:
    tracer = active()
    assert tracer is not None, "a run-time value outside a trace"
    return tracer


def _named_each(names: tuple[str, ...], values: Generator[Any]) -> Generator[Any]:
    """Yield the values of a generator. Their SSA values get the names as hints."""
    for name, value in zip(names, values):
        yield Hooks.let(name, value)
    yield from values
