"""What generated code calls: the object ``.rt`` of a converted function."""

from __future__ import annotations

import builtins
import operator
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from types import GeneratorType
from typing import Any

from cute_dialect.front import match_subjects
from cute_dialect.front.analysis import Site
from cute_dialect.front.boolean_ops import both, either, equal, inverted, is_dynamic_truth, truth_of, unequal
from cute_dialect.front.branches import Branch, pick, regions
from cute_dialect.front.calls import callee, callee_of_op
from cute_dialect.front.errors import LoopError, StaticError, SyntaxErrorInKernel
from cute_dialect.front.generators import GeneratorFor, consumers
from cute_dialect.front.loops import For, StaticFor, loop_over
from cute_dialect.front.mutable_state import U
from cute_dialect.front.trace import active
from cute_dialect.front.values import Dynamic, is_dynamic
from cute_dialect.front.whiles import While

__all__ = ["Hooks", "Text"]

YES, NO = (1,), (0,)
_PACKAGE = str(Path(__file__).parents[1]) + "/"
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": equal, "!=": unequal, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "is": operator.is_, "is not": operator.is_not,
}  # fmt: skip


class Text(str):
    """Text with values of run time in it, shown as ``?``; ``pieces`` are its texts, and values with their formats."""

    __slots__ = ("pieces",)
    pieces: tuple[str | tuple[Any, str], ...]


def _holds_run_time(value: Any) -> bool:
    """Tell whether a value, or an element of a tuple of values, is known only when the kernel runs."""
    if isinstance(value, tuple | list):
        return any(map(_holds_run_time, value))
    return is_dynamic(value)


def _are_numbers(a: Any, b: Any) -> bool:
    """Tell whether two values are numbers, one of them of run time."""
    from cute_dialect.front.numeric import is_number

    return (is_dynamic(a) and is_number(a) and is_number(b)) or (is_dynamic(b) and is_number(b) and is_number(a))


def _shown(value: Any) -> str:
    """Return a value of run time as text: ``?`` stands for numbers, tensors and layouts show what is static."""
    return f"({','.join(map(_shown, value))})" if isinstance(value, tuple | list) else str(value)


def _static_truth(condition: Any) -> bool | None:
    """Return the truth of a condition, None where it is known only when the kernel runs."""
    truth = truth_of(condition)
    return truth if truth is True or truth is False else None


class Hooks:
    """The runtime object of one conversion; ``sites``: the branches and loops of its source, by number."""

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
        """Return the sides of an ``if``."""
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
        """Return the sides of a ``with``: one, unless the manager is a condition."""
        region = getattr(type(manager), "__cute_region__", None)
        return YES if region is None else self.If(region(manager), n)

    @staticmethod
    def manager(manager: Any) -> Any:
        """Return what Python's own ``with`` shall enter."""
        if getattr(type(manager), "__cute_region__", None) is None:
            return manager
        from contextlib import nullcontext

        return nullcontext(manager)

    def While(self, n: int, values: Mapping[str, Any]) -> While:
        """Return a ``while``."""
        return While(active(), self.sites[n], values)

    def For(self, iterable: Any, n: int, values: Mapping[str, Any]) -> For | StaticFor | GeneratorFor:
        """Return a ``for``."""
        return loop_over(active(), iterable, self.sites[n], values)

    # -------------------------------------------------------------------------------------------------- expressions

    @staticmethod
    def and_(a: Any, b: Callable[[], Any]) -> Any:
        """Return ``a and b()``."""
        truth = truth_of(a)
        if truth is True or truth is False:
            return b() if truth else a
        return both(truth, b) if is_dynamic_truth(a) else pick(_tracer(), truth, b, lambda: a)

    @staticmethod
    def or_(a: Any, b: Callable[[], Any]) -> Any:
        """Return ``a or b()``."""
        truth = truth_of(a)
        if truth is True or truth is False:
            return a if truth else b()
        return either(truth, b) if is_dynamic_truth(a) else pick(_tracer(), truth, lambda: a, b)

    @staticmethod
    def all_(a: Any, b: Callable[[], Any]) -> Any:
        """Return the truth of ``a and b()``."""
        truth = truth_of(a)
        if truth is True or truth is False:
            return truth_of(b()) if truth else False
        return both(truth, lambda: truth_of(b()))

    @staticmethod
    def any_(a: Any, b: Callable[[], Any]) -> Any:
        """Return the truth of ``a or b()``."""
        truth = truth_of(a)
        if truth is True or truth is False:
            return True if truth else truth_of(b())
        return either(truth, lambda: truth_of(b()))

    @staticmethod
    def not_(a: Any) -> Any:
        """Return ``not a``."""
        if a is True or a is False:
            return not a
        truth = truth_of(a)
        return not truth if truth is True or truth is False else inverted(truth)

    @staticmethod
    def pick(condition: Any, a: Callable[[], Any], b: Callable[[], Any]) -> Any:
        """Return ``a() if condition else b()``."""
        truth = truth_of(condition)
        if truth is True or truth is False:
            return a() if truth else b()
        return pick(_tracer(), truth, a, b)

    eq = staticmethod(equal)
    ne = staticmethod(unequal)

    @staticmethod
    def compare(word: str, a: Any, b: Any) -> Any:
        """Return ``a word b``."""
        if word in ("in", "not in"):
            return Hooks.contains(a, b) if word == "in" else Hooks.lacks(a, b)
        if word in ("is", "is not"):
            flag, known = (b, a) if isinstance(a, bool) else (a, b)
            if isinstance(known, bool) and is_dynamic_truth(flag):  # it is True, or it is False
                return flag if known == (word == "is") else inverted(flag)
            if a is not b and not isinstance(known, bool) and _are_numbers(a, b):
                raise StaticError(
                    "F152", f"'{word}' asks whether two numbers are one object of Python, whatever their values are",
                    hint=f"write '{'==' if word == 'is' else '!='}'",
                )  # fmt: skip
        return _COMPARISONS[word](a, b)

    @staticmethod
    def chain(words: Sequence[str], a: Any, b: Any, *later: Callable[[], Any]) -> Any:
        """Return ``a word b word later()…``, each operand once."""
        first = Hooks.compare(words[0], a, b)
        if len(words) == 1:
            return first
        return Hooks.and_(first, lambda: Hooks.chain(words[1:], b, later[0](), *later[1:]))

    @staticmethod
    def contains(a: Any, b: Any) -> Any:
        """Return ``a in b``."""
        from cute_dialect.front.builtins import contains

        return contains(a, b)

    @staticmethod
    def lacks(a: Any, b: Any) -> Any:
        """Return ``a not in b``."""
        return Hooks.not_(Hooks.contains(a, b))

    @staticmethod
    def sure(condition: Any) -> bool:
        """Return the truth of what precedes an operand that sets a name.  Raises F153 where it is not static."""
        if (truth := _static_truth(condition)) is None:
            raise SyntaxErrorInKernel(
                "F153", "an operand with ':=' (or 'yield') stands behind a condition known only when the kernel runs",
                hint="assign the name in a statement before",
            )  # fmt: skip
        return truth

    @staticmethod
    def clause(condition: Any) -> bool:
        """Return the truth of a clause of a comprehension.  Raises F157 where it is not static."""
        if (truth := _static_truth(condition)) is None:
            raise StaticError(
                "F157", "the 'if' of a comprehension is known only when the kernel runs: the length would be",
                hint="keep all elements, and select their values: [x if c else 0 for …]",
            )  # fmt: skip
        return truth

    @staticmethod
    def text(*parts: str | tuple[Any, int, str]) -> str:
        """Return an f-string."""
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

    # ------------------------------------------------------------------------------------ the structure of a subject

    is_sequence = staticmethod(match_subjects.is_sequence)
    part_of = staticmethod(match_subjects.part_of)
    has_keys = staticmethod(match_subjects.has_keys)
    rest_of = staticmethod(match_subjects.rest_of)
    is_instance = staticmethod(match_subjects.is_instance)
    attribute_of = staticmethod(match_subjects.attribute_of)

    # --------------------------------------------------------------------------------------------------- statements

    @staticmethod
    def let(name: str, value: Any) -> Any:
        """Return a value that gets a name; its SSA value gets it too."""
        if isinstance(value, Dynamic) and name != "_" and not getattr(value, "is_static", False):
            ssa = getattr(value, "ssa", None)
            if ssa is not None and ssa.name_hint is None and name.isascii():
                ssa.name_hint = name
        return value

    @staticmethod
    def let_each(names: tuple[str, ...], values: Any) -> Any:
        """Return what is unpacked to these names; its SSA values get them."""
        if type(values) is tuple or type(values) is list:
            for name, value in zip(names, values):
                Hooks.let(name, value)
        elif type(values) is GeneratorType:
            return _named_each(names, values)
        return values

    @staticmethod
    def declared(kind: Callable[[], Any], value: Any) -> Any:
        """Return what ``x: kind = value`` sets: a number is converted to a number type."""
        if active() is None:
            return value
        from cute_dialect.front.dtypes import NumericType
        from cute_dialect.front.numeric import is_number

        try:
            wanted = kind()
        except Exception:  # Python does not evaluate it either
            return value
        return wanted(value) if isinstance(wanted, NumericType) and is_number(value) else value

    @staticmethod
    def check(condition: Any, message: Callable[[], Any] | None = None) -> None:
        """Do ``assert condition, message``.

        A host function checks it at each call. A kernel checks it when it runs, unless asserts are off; those of this
        package's kernels are checked in debug builds and on the interpreter only."""
        truth = truth_of(condition)
        if truth is True:
            return
        tracer = active()
        if truth is False and (tracer is None or not regions(tracer)):
            raise AssertionError(*(() if message is None else (message(),)))
        assert tracer is not None
        if truth is False:
            from cute_dialect.front.dtypes import Boolean

            truth = Boolean.exactly(False)
        wanted = tracer.kind == "host" or tracer.state.get("asserts")
        if not wanted and tracer.state.get("users_asserts"):
            wanted = not sys._getframe(1).f_code.co_filename.startswith(_PACKAGE)
        if wanted:
            from xdsl.dialects.builtin import StringAttr

            text = "assertion failed" if message is None else str(message())
            tracer.op("cf.assert", [truth.ssa], (), {"msg": StringAttr(text)})

    @staticmethod
    def stores_global(name: str) -> None:
        """Refuse a store to a global in a trace."""
        if active() is not None:
            raise SyntaxErrorInKernel(
                "F158", f"the global '{name}' is assigned in a kernel: it would be, once, while compiling",
                hint="return the value, or keep it in an object that is passed",
            )  # fmt: skip

    @staticmethod
    def mark() -> Any:
        """Return where ops go before a ``try``."""
        tracer = active()
        return None if tracer is None else tracer.block

    @staticmethod
    def caught(mark: Any) -> None:
        """Refuse an exception that was caught outside of the branch or loop of run time that it left."""
        tracer = active()
        if tracer is not None and tracer.block is not mark:
            raise SyntaxErrorInKernel(
                "F155", "an exception left a branch or loop of run time, and is caught outside of it",
                hint="catch it inside, or decide while compiling",
            )  # fmt: skip

    @staticmethod
    def yielded(value: Any, handles: Sequence[Any]) -> Any:
        """Return what a generator yields.  Raises F160 where no ``for`` can take it from a loop of run time."""
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
                "F160", "a generator yields in a branch or loop of run time, and no 'for' statement takes it",
                hint="loop over it by a 'for' statement of a converted function",
            )  # fmt: skip
        return value

    @staticmethod
    def yielded_from(values: Any, handles: Sequence[Any]) -> Any:
        """Return what ``yield from`` walks.  Raises F160 in a branch or loop of run time."""
        if any(getattr(h, "rolled", False) for h in handles):
            raise LoopError("F160", "'yield from' in a branch or loop that is decided when the kernel runs")
        return values


def _tracer() -> Any:
    tracer = active()
    assert tracer is not None, "a value of run time outside of a trace"
    return tracer


def _named_each(names: tuple[str, ...], values: Generator[Any]) -> Generator[Any]:
    """Yield what a generator does; the SSA values get names."""
    for name, value in zip(names, values):
        yield Hooks.let(name, value)
    yield from values
