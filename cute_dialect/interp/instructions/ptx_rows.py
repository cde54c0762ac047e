"""Table format for scalar PTX instructions: syntax, operand types and computation.

The `syntax` of a row is that of the PTX manual with all sets spelled out: `{.ftz}` is optional, `{.rn,.rz}` is an
optional choice and `(.rn,.rz)` a required choice. `operands` are types, with the result first: `t` is the last type of
the opcode, and `s` the one before it. `w` is twice as wide as `t`, and `dot` is signed if one of the types is.
`compute` receives the words of the opcode and one array per operand. Integers are numpy integers, floats have the numpy
type of their format, and packed values a last axis of 2.

>>> [*expand("add(.rn,.rz){.ftz}.f32")]
['add.rn.f32', 'add.rn.ftz.f32', 'add.rz.f32', 'add.rz.ftz.f32']
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np

from cute_dialect.interp.compiler.poison_flags import fail
from cute_dialect.interp.errors import InterpError
from cute_dialect.interp.instructions.ptx_text import Handler, Statement, Text, number
from cute_dialect.interp.machine.group import Group
from cute_dialect.interp.types import Leaf
from cute_dialect.interp.values import Array, Regs, merge, to_lanes

if TYPE_CHECKING:
    from cute_dialect.interp.values import Value


class Kind(NamedTuple):
    """A PTX type: register width in bits, numpy type of an element, number of elements."""

    bits: int
    dtype: np.dtype  # type: ignore[type-arg]
    elements: int = 1


_HALVES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
KINDS: dict[str, Kind] = {
    **{f"s{n}": Kind(n, np.dtype(f"i{n // 8}")) for n in (8, 16, 32, 64)},
    **{f"{k}{n}": Kind(n, np.dtype(f"u{n // 8}")) for n in (8, 16, 32, 64) for k in "ub"},
    "f32": Kind(32, np.dtype(np.float32)),
    "f64": Kind(64, np.dtype(np.float64)),
    "tf32": Kind(32, np.dtype(np.float32)),
    **{name: Kind(16, dtype) for name, dtype in _HALVES.items()},
    **{f"{name}x2": Kind(32, dtype, 2) for name, dtype in _HALVES.items()},
    "s16x2": Kind(32, np.dtype(np.int16), 2),
    "u16x2": Kind(32, np.dtype(np.uint16), 2),
    "e4m3x2": Kind(16, np.dtype(ml_dtypes.float8_e4m3fn), 2),
    "e5m2x2": Kind(16, np.dtype(ml_dtypes.float8_e5m2), 2),
    "pred": Kind(1, np.dtype(np.bool_)),
}
FLOATS = frozenset({"f16", "bf16", "f32", "f64", "tf32", "f16x2", "bf16x2", "e4m3x2", "e5m2x2"})


@dataclass(frozen=True)
class Words:
    """The dot-separated words of an opcode such as `fma.rn.ftz.f32`."""

    opcode: str

    @cached_property
    def all(self) -> tuple[str, ...]:
        """All words."""
        return tuple(self.opcode.split("."))

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The types, in order of appearance."""
        return tuple(w for w in self.all[1:] if w in KINDS)

    @property
    def type(self) -> str:
        """The last type, without `x2`."""
        return self.types[-1].removesuffix("x2")

    @property
    def width(self) -> int:
        """Width in bits of an element of the last type."""
        return KINDS[self.types[-1]].dtype.itemsize * 8

    @cached_property
    def mode(self) -> str:
        """The rounding mode, `rn` by default; `rzi` is `rz`."""
        return next((w.removesuffix("i") for w in self.all if re.fullmatch(r"r[nzmp]i?|rna", w)), "rn")

    def __contains__(self, word: str) -> bool:
        return word in self.all


Compute: TypeAlias = "Callable[..., Array | tuple[Array, ...]]"


@dataclass(frozen=True)
class Row:
    """An instruction.

    - syntax, operands, compute: see the module
    - section: of the PTX ISA (9.0)
    - bound: maximum error of the device according to that section; the interpreter rounds correctly
    - undefined: a mask of the lanes without a defined result, and the message for them
    """

    syntax: str
    operands: str
    compute: Compute
    section: str
    bound: str = ""
    undefined: tuple[Callable[..., Array], str] | None = None

    def kinds(self, words: Words) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return (types of the results, types of the operands) of an opcode."""
        t = words.types[-1] if words.types else ""
        names = {"t": t, "s": words.types[-2] if len(words.types) > 1 else t}
        if "w" in self.operands.split():
            names["w"] = f"{t[0]}{2 * int(t[1:])}"
        names["dot"] = "s32" if "s32" in words.types else "u32"
        results, _, sources = self.operands.partition("=")
        return tuple(names.get(x, x) for x in results.split()), tuple(names.get(x, x) for x in sources.split())


_PART = re.compile(r"\{([^}]*)\}|\(([^)]*)\)|([^{(]+)")


def _choices(syntax: str) -> Iterator[tuple[str, ...]]:
    for optional, choice, text in _PART.findall(syntax):
        yield ("", *optional.split(",")) if optional else tuple(choice.split(",")) if choice else (text,)


def expand(syntax: str) -> Iterator[str]:
    """Yield all opcodes of a syntax."""
    for parts in itertools.product(*_choices(syntax)):
        yield "".join(parts)


def pattern(syntax: str) -> str:
    """Return a regular expression that matches the opcodes of a syntax."""
    return "".join(f"(?:{'|'.join(map(re.escape, parts))})" for parts in _choices(syntax))


# ----------------------------------------------------------------------------------------------------------- registers


def bits(text: Text, R: Regs, g: Group, slot: int, width: int) -> Array:
    """Return a register as unsigned integers of `width` bits. A float literal gives the bits of that float."""
    leaf = text.leaf(slot)
    v = to_lanes(R[slot], leaf, g.lanes)
    if leaf.kind == "f" and leaf.width == 64 and width < 64:
        with np.errstate(over="ignore"):
            v = v.astype(np.float32 if width == 32 else np.float16)
    raw = np.ascontiguousarray(v)
    if raw.dtype == np.bool_:
        return raw.astype(np.dtype(f"u{width // 8}"))
    if leaf.shape:
        raw = raw.reshape(g.lanes, -1).view(np.dtype(f"u{leaf.size}"))[:, 0]
    return raw.view(np.dtype(f"u{raw.dtype.itemsize}")).astype(np.dtype(f"u{width // 8}"))


def typed(raw: Array, leaf: Leaf) -> Array:
    """Convert integers to the register type."""
    if leaf.width == 1 and leaf.kind == "i":
        return raw.astype(np.bool_)
    size = leaf.size if leaf.shape else leaf.dtype.itemsize
    whole = np.ascontiguousarray(raw.astype(np.dtype(f"u{size}"))).view(leaf.dtype)
    return whole.reshape(-1, *leaf.shape) if leaf.shape else whole


def put(text: Text, s: Statement, slot: int, compute: Callable[[Regs, Group], Array]) -> None:
    """Emit the definition of a register. Under a guard, the other lanes keep the old value."""
    leaf = text.leaf(slot)
    guarded = text.guard(s)[0] >= 0

    def step(R: Regs, g: Group) -> None:
        v = compute(R, g)
        R[slot] = merge(g.mask, v, R[slot], leaf) if guarded else v

    text.emit(s, step)


def _register(text: Text, s: Statement, name: str, kind: str) -> int:
    """Return the slot of an operand of a type. Raises InterpError where the assembler would also fail."""
    slot = text.slot(name)
    leaf, width = text.leaf(slot), KINDS[kind].bits
    literal = number(name)
    if literal is not None:
        allowed = kind in ("f32", "f64") if isinstance(literal, float) else kind not in FLOATS and kind != "pred"
        if not allowed:
            raise InterpError("unsupported", f"{s.opcode}: literal {name} is not of type {kind}")
        return slot
    have = leaf.width * leaf.count
    wider = s.opcode.startswith("cvt") and kind not in FLOATS and have > width
    if have != width and not wider:
        raise InterpError("unsupported", f"{s.opcode}: the register is {leaf!r}; {kind} needs {width} bits")
    return slot


def _read(text: Text, R: Regs, g: Group, slot: int, kind: str, inverted: bool) -> Array:
    k = KINDS[kind]
    if text.leaf(slot).dtype == k.dtype and not text.leaf(slot).shape and k.bits != 1:
        return to_lanes(R[slot], text.leaf(slot), g.lanes)
    if k.bits == 1:
        flags = to_lanes(R[slot], text.leaf(slot), g.lanes)
        return ~flags if inverted else flags
    raw = np.ascontiguousarray(bits(text, R, g, slot, k.bits)).view(k.dtype)
    return raw.reshape(g.lanes, 2) if k.elements == 2 else raw


def _write(v: Array, kind: str, leaf: Leaf) -> Array:
    k = KINDS[kind]
    if leaf.dtype == v.dtype == k.dtype and not leaf.shape:
        return v
    if k.bits == 1:
        return v.astype(np.bool_)
    raw = np.ascontiguousarray(v.astype(k.dtype)).view(np.dtype(f"u{k.bits // 8}")).reshape(-1)
    if kind[0] == "s" and k.elements == 1:  # A wider register is sign-extended.
        raw = raw.view(k.dtype).astype(np.int64)
    return typed(raw, leaf)


def handler_of(row: Row) -> Handler:
    """Return the handler of the statements of a row."""

    def build(text: Text, s: Statement) -> None:
        words = Words(s.opcode)
        results, sources = row.kinds(words)
        targets = s.operands[0].split("|")
        if len(s.operands) != len(sources) + 1 or len(targets) > len(results):
            raise InterpError(
                "unsupported", f"{s.opcode} takes {len(sources) + 1} operands, got {', '.join(s.operands)}"
            )
        ins: list[tuple[int, str, bool]] = []
        for name, kind in zip(s.operands[1:], sources):
            inverted = kind == "pred" and name.startswith("!")
            ins.append((_register(text, s, name.removeprefix("!") if inverted else name, kind), kind, inverted))
        outs = [(_register(text, s, d.strip(), k), k) for d, k in zip(targets, results) if d.strip() != "_"]
        where = [i for i, d in enumerate(targets) if d.strip() != "_"]
        leaves = [text.leaf(d) for d, _ in outs]
        guarded = text.guard(s)[0] >= 0

        def step(R: Regs, g: Group) -> None:
            args = [_read(text, R, g, *x) for x in ins]
            if row.undefined is not None:
                said = f"{s.opcode}: {row.undefined[1]}"
                fail(g, row.undefined[0](words, *args), "division", lambda at: said, 0)
            with np.errstate(all="ignore"):
                got = row.compute(words, *args)
            parts: Sequence[Array] = got if isinstance(got, tuple) else (got,)
            for i, (d, kind), leaf in zip(where, outs, leaves):
                v: Value = _write(parts[i], kind, leaf)
                R[d] = merge(g.mask, v, R[d], leaf) if guarded else v

        text.emit(s, step)

    return build


class Rows:
    """Rows by the first word of their opcodes. The pattern of a row is compiled when such an opcode is looked up."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._by_word: dict[str, list[Row]] = {}
        for row in rows:
            for text in next(_choices(row.syntax)):
                self._by_word.setdefault(text.partition(".")[0], []).append(row)

    def find(self, opcode: str) -> Row | None:
        """Return the row of an opcode, None if there is none."""
        rows = self._by_word.get(opcode.partition(".")[0], ())
        return next((row for row in rows if re.fullmatch(pattern(row.syntax), opcode)), None)


__all__ = ["FLOATS", "KINDS", "Kind", "Row", "Rows", "Words", "bits", "expand", "handler_of", "pattern", "put", "typed"]
