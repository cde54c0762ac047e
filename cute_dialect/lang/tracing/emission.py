"""Emission of single-result ops on numbers and vectors, and fast-math flags."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from cute_dialect.arch.targets import TARGETS
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.tracing.tracer import active, current, parse_type

if TYPE_CHECKING:
    from types import TracebackType

    from xdsl.ir import Attribute, SSAValue

FLAGS = ("none", "reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "fast")
"""Fast-math flags (LLVM LangRef, "Fast-Math Flags")."""


def emit(name: str, operands: Sequence[SSAValue], type: Attribute | None = None, **properties: Attribute) -> SSAValue:
    """Append an op with one result. The result type defaults to that of the first operand."""
    return current().value(name, operands, [operands[0].type if type is None else type], properties)


def require_chip(what: str, needed: int | str) -> None:
    """Raise F280 unless the target supports an instruction.

    ``needed`` is ``90`` for that architecture or a later one, or ``sm_90a`` for exactly that target.
    """
    chip = current().chip
    target = TARGETS.get(chip)
    exact = isinstance(needed, str) and needed[-1].isalpha()
    number = int("".join(c for c in str(needed) if c.isdigit()))
    if target is None or (chip == needed if exact else target.number >= number):
        return
    first = needed if isinstance(needed, str) else f"sm_{needed}"
    raise KernelTypeError("F280", f"{what} needs {first}{'' if exact else ' or later'}, but the target is {chip}")


def shaped(element: Attribute, like: SSAValue) -> Attribute:
    """Return ``element``, or a vector of it if ``like`` is a vector."""
    if like.type.name != "vector":
        return element
    from xdsl.dialects.builtin import VectorType

    return VectorType(element, like.type.get_shape())


def alike(a: SSAValue, b: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Return two operands with the same type: a number is broadcast if the other operand is a vector."""
    if a.type != b.type:
        if a.type.name == "vector":
            return a, emit("vector.broadcast", [b], a.type)
        if b.type.name == "vector":
            return emit("vector.broadcast", [a], b.type), b
    return a, b


def float_flags(flags: str | None = None) -> dict[str, Attribute]:
    """Return the fast-math property of float ops: that of the enclosing :class:`fastmath`, else ``contract``."""
    if flags is None:
        tracer = active()
        flags = tracer.state.get("fastmath", "contract") if tracer is not None else "contract"
    return {"fastmath": parse_type(f"#arith.fastmath<{flags}>")}


def no_wrap_flags() -> dict[str, Attribute]:
    """Return the property of integer ops that may wrap."""
    return {"overflowFlags": parse_type("#arith.overflow<none>")}


class fastmath:
    """Set the fast-math flags of float ops in a ``with`` block, such as ``"fast"``, ``"none"`` or ``"contract,nsz"``.

    The default is ``contract``, which allows fused multiply-add.  ``nnan`` and ``ninf`` are promises, which the
    interpreter checks::

        with cute.fastmath("none"):
            error = a * b - p
    """

    def __init__(self, flags: str = "fast"):
        self.flags = ",".join(word.strip() for word in flags.split(","))
        for word in self.flags.split(","):
            if word not in FLAGS:
                raise KernelTypeError("F238", f"fastmath: unknown flag '{word}'; flags: {', '.join(FLAGS)}")
        self._saved: list[str | None] = []

    def __enter__(self) -> None:
        state = current().state
        self._saved.append(state.get("fastmath"))
        state["fastmath"] = self.flags

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None) -> None:
        saved = self._saved.pop()
        state = current().state
        if saved is None:
            state.pop("fastmath", None)
        else:
            state["fastmath"] = saved


# ------------------------------------------------------------------------------------------------------------ vectors


@lru_cache(maxsize=1024)
def vector_of_length(element: Attribute, n: int) -> Attribute:
    from xdsl.dialects.builtin import VectorType

    return VectorType(element, [n])


@lru_cache(maxsize=4096)
def _positions(numbers: tuple[int, ...]) -> Attribute:
    from xdsl.dialects.builtin import DenseArrayBase, i64

    return DenseArrayBase.from_list(i64, numbers)


def extract(vector: SSAValue, index: int) -> SSAValue:
    return emit("vector.extract", [vector], vector.type.element_type, static_position=_positions((index,)))


def shuffle(vector: SSAValue, picked: Sequence[int], other: SSAValue | None = None) -> SSAValue:
    """Return selected elements of a vector. Indices past its end select elements of ``other``."""
    chosen = tuple(picked)
    if other is None and chosen == tuple(range(vector.type.get_shape()[0])):
        return vector
    operands = [vector, vector if other is None else other]
    type = vector_of_length(vector.type.element_type, len(chosen))
    return emit("vector.shuffle", operands, type, mask=_positions(chosen))


def concatenated(a: SSAValue, b: SSAValue) -> SSAValue:
    """Return the concatenated elements of two vectors of the same type."""
    return shuffle(a, range(a.type.get_shape()[0] + b.type.get_shape()[0]), b)
