"""PTX text: statements whose operands are slots, and the table format of scalar instructions.

**Rows.** The `syntax` of a row is that of the PTX manual with all sets spelled out: `{.ftz}` is optional, `{.rn,.rz}`
is an optional choice and `(.rn,.rz)` a required choice. `operands` are types, with the result first: `t` is the last
type of the opcode, and `s` the one before it. `w` is twice as wide as `t`, and `dot` is signed if one of the types is.
The elements of an operand in braces are operands of their own. `compute` receives the words of the opcode and one array
per operand. Integers are numpy integers, floats have the numpy type of their format, and packed values a last axis of 2
or 4. Rows of one opcode differ in the number of operands.

>>> [*expand("add(.rn,.rz){.ftz}.f32")]
['add.rn.f32', 'add.rn.ftz.f32', 'add.rz.f32', 'add.rz.ftz.f32']
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np

from cute_dialect.interp.compiler.function_compiler import FnCompiler, Step, settle
from cute_dialect.interp.compiler.undefined import fail
from cute_dialect.interp.errors import InterpError, OpInfo, PoisonUse
from cute_dialect.interp.machine.group import Group
from cute_dialect.interp.memory.buffers import SHARED, SHARED_CLUSTER, SHARED_SPACES
from cute_dialect.interp.types import Leaf, float_leaf, int_leaf
from cute_dialect.interp.values import Array, Mask, Regs, merge, to_lanes, wrap_int

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.ir import Operation

    from cute_dialect.interp.values import Value


_TYPES = {"pred": 1, **{f"{k}{n}": n for k in "bus" for n in (8, 16, 32, 64)}}


B128 = Leaf("i", 64, np.dtype(np.int64), "i64", (2,))
"""A register of 128 bits, lower half first."""


@dataclass(frozen=True)
class Statement:
    """An instruction: full opcode, operands as written, and guard as written (`@p`, `@!p`)."""

    opcode: str
    operands: tuple[str, ...]
    guard: str

    @property
    def sources(self) -> list[str]:
        """Operands after the first one, with the elements of braced operands."""
        return [part for i in range(1, len(self.operands)) for part in self.parts(i)]

    def parts(self, i: int) -> list[str]:
        """Return the elements of a braced operand, or the operand itself."""
        text = self.operands[i]
        if text.startswith("{"):
            return [p.strip() for p in text[1:-1].split(",") if p.strip()]
        return [text]


class Text:
    """A PTX text under compilation, with its operands as slots."""

    def __init__(
        self,
        c: FnCompiler,
        op: Operation,
        statements: list[Statement],
        operands: list[int],
        outputs: int,
        predicate: int,
        registers: dict[str, int],
        tied: dict[int, int],
        pure: bool = False,
        labels: dict[str, int] | None = None,
    ) -> None:
        self.c = c
        self.op = op
        self.statements = statements
        self.operands = operands
        self.outputs = outputs
        self.predicate = predicate
        self.registers = registers
        self.tied = tied
        self.pure = pure  # Poison operands give poison results.
        self.labels = labels or {}  # index of the statement after each label
        self.read_bits: dict[int, int] = {}  # slot of an operand -> mask of the bits that the text reads, if not all

    def slot(self, name: str) -> int:
        """Return the slot of an operand: `$i`, a declared register or a number. Raises InterpError otherwise."""
        name = name.strip()
        m = re.fullmatch(r"\$\{?(\d+)(?::\w+)?\}?", name)
        if m is not None:
            i = int(m[1])
            if i >= len(self.operands):
                raise InterpError("unsupported", f"{name} does not exist; the op has {len(self.operands)} operands")
            return self.operands[i]
        got = self.registers.get(name)
        if got is not None:
            return got
        got = self.c.ptx_registers.get(name)
        if got is not None:
            self.c.reads(got)
            return got
        value = number(name)
        if value is None:
            raise InterpError("unsupported", f"{name} is not a register, operand or number")
        if isinstance(value, float):
            return self.c.new_slot(float_leaf("f64"), value, fixed=True)
        width = 32 if -(1 << 31) <= value < 1 << 31 else 64
        return self.c.new_slot(int_leaf(width), wrap_int(value, width), fixed=True)

    def reads(self, s: Statement, name: str) -> bool:
        """Return True if anything may read a register that statement `s` writes.

        Readers are other statements, users of an output of the text, and later texts if the register is declared for
        the whole function.
        """
        word = re.compile(re.escape(name) + r"(?![\w$%])")
        others = (" ".join((o.guard, *o.operands)) for o in self.statements if o is not s)
        results = self.op.results
        if results and not any(r.first_use is not None for r in results):
            return name in self.c.ptx_registers and name not in self.registers
        return any(map(word.search, others)) or name not in self.registers

    def declares(self, name: str) -> bool:
        """Return True if this text or an earlier one has declared a register of that name."""
        return name in self.registers or name in self.c.ptx_registers

    def address(self, text: str) -> tuple[int, int]:
        """Return the slot and byte offset of `[a]` or `[a + 8]`."""
        m = re.fullmatch(r"\[\s*([^\s+\]]+)\s*(?:\+\s*(-?\w+))?\s*\]", text)
        if m is None:
            raise InterpError("unsupported", f"{text} is not an address; write [register] or [register + offset]")
        return self.slot(m[1]), int(number(m[2] or "0") or 0)

    def plain_address(self, text: str) -> int:
        """Return the slot of `[a]`. Raises InterpError for an address with an offset."""
        slot, offset = self.address(text)
        if offset:
            raise InterpError("unsupported", "an address with an offset is not supported here")
        return slot

    def shared_space(self, s: Statement, slot: int) -> int:
        """Return the address space of a shared address: that of a pointer, else the one in the opcode."""
        leaf = self.leaf(slot)
        if leaf.kind == "p" and leaf.space in SHARED_SPACES:
            return leaf.space
        return SHARED_CLUSTER if "shared::cluster" in s.opcode else SHARED

    def plain_guard(self, s: Statement) -> int:
        """Return the slot of a statement's predicate, -1 for none. Raises InterpError for a negated one."""
        slot, negated = self.guard(s)
        if negated:
            raise InterpError("unsupported", "a negated guard is not supported here")
        return slot

    def leaf(self, slot: int) -> Leaf:
        return self.c.leaf_of(slot)

    def guard(self, s: Statement) -> tuple[int, bool]:
        """Return the slot of a statement's predicate (-1 for none), and whether it is negated."""
        if s.guard:
            negated = s.guard.startswith("@!")
            return self.slot(s.guard.lstrip("@!")), negated
        return self.predicate, False

    def emit(self, s: Statement, step: Step) -> None:
        """Emit a step under the statement's guard. Lanes where the guard is false do not participate."""
        slot, negated = self.guard(s)
        if slot < 0:
            self.c.emit(self.op, step, pure=self.pure, keep=not self.pure)
            return
        bit = int_leaf(1)

        def guarded(R: Regs, g: Group) -> None:
            flags = to_lanes(R[slot], bit, g.lanes)
            m = g.mask
            g.mask = Mask.of(m.array & (~flags if negated else flags))
            try:
                if g.mask.n:
                    _settled(step, info, R, g)
            finally:
                g.mask = m

        info = self.c.info(self.op)
        self.c.emit(self.op, guarded, pure=False)


Handler: TypeAlias = "Callable[[Text, Statement], None]"
"""Compiles one statement of a text."""


_INSTEAD = (
    (r"elect\.sync", "use cute.arch.elect_one()"),
    (r"atom\..*cas.*", "use cute.arch.atomic_cas()"),
    (r"(atom|red)\b.*", "the modelled operations are add, min, max, and, or, xor, exch, inc and dec"),
    (r"discard\..*", "the bytes would be undefined afterwards; write them instead"),
    (r"bra\b.*", "use an if or a loop of the language"),
)


def not_modelled(opcode: str) -> InterpError:
    """Return the error for a PTX instruction that the interpreter cannot execute."""
    instead = next((f"; {text}" for pattern, text in _INSTEAD if re.fullmatch(pattern, opcode)), "")
    return InterpError("unsupported", f"the PTX instruction {opcode} is not modelled by the interpreter{instead}")


def no_effect(text: Text, s: Statement) -> None:
    """Compile an instruction without effect on values, such as a prefetch."""
    text.emit(s, lambda R, g: None)


def _settled(step: Step, info: OpInfo, R: Regs, g: Group) -> None:
    """Run a step under a guard. Undefined operands are only an error in lanes where the guard holds."""
    try:
        step(R, g)
    except PoisonUse:
        held = settle(info, R, g)
        if held is None:
            raise
        step(R, g)
        for s, v in held.items():
            R[s] = v


def number(text: str) -> int | float | None:
    """Return the number of a PTX literal, None for anything else.

    >>> number("0x10"), number("017"), number("0F3F800000"), number("0d3FF0000000000000"), number("1.5"), number("p")
    (16, 15, 1.0, 1.0, 1.5, None)
    """
    text = text.strip()
    if re.fullmatch(r"0[fF][0-9a-fA-F]{8}", text):
        return float(struct.unpack(">f", bytes.fromhex(text[2:]))[0])
    if re.fullmatch(r"0[dD][0-9a-fA-F]{16}", text):
        return float(struct.unpack(">d", bytes.fromhex(text[2:]))[0])
    if re.fullmatch(r"-?(0[xX][0-9a-fA-F]{1,16}|0[bB][01]{1,64}|[1-9]\d{0,19}|0[0-7]{0,22})U?", text):
        digits = text.rstrip("U")
        octal = re.fullmatch(r"(-?)0([0-7]+)", digits)
        return int(octal[1] + octal[2], 8) if octal is not None else int(digits, 0)
    if re.fullmatch(r"-?\d+\.\d*(?:[eE][-+]?\d{1,3})?", text):
        return float(text)
    return None


def parse(
    c: FnCompiler,
    op: Operation,
    code: str,
    operands: list[int],
    outputs: int,
    predicate: int,
    tied: dict[int, int] | None = None,
) -> Text:
    """Split a text into statements and allocate slots for its declared registers.

    Registers declared outside of braces stay visible in later texts of the function.
    """
    code = (
        re.sub(r"//[^\n]*|/\*.*?\*/", " ", code, flags=re.S).replace("$$", "\0").replace("\\n", " ").replace("\\t", " ")
    )
    registers: dict[str, int] = {}
    statements: list[Statement] = []
    labels: dict[str, int] = {}
    # Braces that group statements start the text or follow `;` or another such brace. Operand braces never do.
    body = code.strip()
    depth = 0
    while body:
        body = body.lstrip()
        if body[0] in "{}":
            depth += 1 if body[0] == "{" else -1
            body = body[1:].lstrip()
            continue
        label = re.match(r"[\w$%\0{}:]+:(?!:)\s*", body)
        if label is not None and "::" not in label[0]:
            labels[label[0].strip()[:-1].rstrip()] = len(statements)
            body = body[label.end() :]
            continue
        end = body.find(";")
        one = (body if end < 0 else body[:end]).strip()
        body = "" if end < 0 else body[end + 1 :].lstrip()
        if one and not one.startswith(".pragma"):  # A pragma does not affect the computation.
            _statement(c, one, registers if depth else c.ptx_registers, statements)
    return Text(c, op, statements, operands, outputs, predicate, registers, tied or {}, labels=labels)


def _statement(c: FnCompiler, one: str, registers: dict[str, int], statements: list[Statement]) -> None:
    declared = re.fullmatch(r"\.reg\s*\.(\w+)\s+(.*)", one, re.S)
    if declared is not None:
        kind = declared[1]
        leaf = float_leaf(kind) if kind in ("f16", "f32", "f64") else int_leaf(_TYPES.get(kind, 32))
        leaf = B128 if kind == "b128" else leaf
        for name in declared[2].split(","):
            many = re.fullmatch(r"\s*([\w$%]+)<(\d+)>\s*", name)  # `%r<4>` declares %r0 to %r3.
            names = [name.strip()] if many is None else [f"{many[1]}{i}" for i in range(int(many[2]))]
            registers.update({one: c.new_slot(leaf, fixed=registers is c.ptx_registers) for one in names})
        return
    guard = ""
    m = re.match(r"(@!?[\w$%{}]+)\s+", one)
    if m is not None:
        guard, one = m[1], one[m.end() :]
    opcode, _, rest = one.partition(" ")
    statements.append(Statement(opcode.strip(), tuple(_operands(rest)), guard))


def _operands(text: str) -> list[str]:
    out: list[str] = []
    depth = 0
    now = ""
    for ch in text:
        if ch in "{[":
            depth += 1
        elif ch in "}]":
            depth -= 1
        if ch == "," and depth == 0:
            out.append(now.strip())
            now = ""
        else:
            now += ch
    if now.strip():
        out.append(now.strip())
    return out


# ----------------------------------------------------------------------------------------------------------------- rows


# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.


class Kind(NamedTuple):
    """A PTX type: register width in bits, numpy type of an element, number of elements."""

    bits: int
    dtype: np.dtype  # type: ignore[type-arg]
    elements: int = 1


_HALVES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
_BYTES = {
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "e2m3": np.dtype(ml_dtypes.float6_e2m3fn),
    "e3m2": np.dtype(ml_dtypes.float6_e3m2fn),
    "ue8m0": np.dtype(ml_dtypes.float8_e8m0fnu),
}
"""Floats of a byte each in packed registers; those of 6 bits have two zero bits above."""
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
    "f32x2": Kind(64, np.dtype(np.float32), 2),
    **{f"{name}x{n}": Kind(8 * n, dtype, n) for name, dtype in _BYTES.items() for n in (2, 4)},
    **{f"e2m1x{n}": Kind(4 * n, np.dtype(ml_dtypes.float4_e2m1fn), n) for n in (2, 4)},
    "pred": Kind(1, np.dtype(np.bool_)),
}
FLOATS = frozenset(name for name in KINDS if name[0] in "ft" or name[:2] in ("bf", "ue") or re.match(r"e\dm", name))


def unpacked(raw: Array, kind: Kind) -> Array:
    """Return registers as elements of a type, lowest first: a last axis for packed types. Bytes are `raw`'s last axis.

    >>> unpacked(np.array([[0x21]], np.uint8), KINDS["e2m1x2"]).astype(float).tolist()
    [[0.5, 1.0]]
    """
    if kind.bits == 4 * kind.elements:
        raw = np.stack([raw & 15, raw >> 4], axis=-1).reshape(len(raw), -1)
    elements = np.ascontiguousarray(raw).view(kind.dtype)
    return elements if kind.elements > 1 else elements[:, 0]


def packed(v: Array, kind: Kind) -> Array:
    """Invert `unpacked`: return the bytes of registers along the last axis."""
    raw = np.ascontiguousarray(v.astype(kind.dtype)).view(np.uint8).reshape(len(v), -1)
    return (raw[:, ::2] | raw[:, 1::2] << 4).astype(np.uint8) if kind.bits == 4 * kind.elements else raw


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
        """The last type, without `x2` or `x4`."""
        return re.sub(r"x[24]$", "", self.types[-1])

    @property
    def width(self) -> int:
        """Width in bits of an element of the last type."""
        return KINDS[self.types[-1]].dtype.itemsize * 8

    @cached_property
    def mode(self) -> str:
        """The rounding mode, `rn` by default; `rzi` is `rz`."""
        return next((w.removesuffix("i") for w in self.all if re.fullmatch(r"r[nzmp]i?|rna|rs", w)), "rn")

    def __contains__(self, word: str) -> bool:
        return word in self.all


Compute: TypeAlias = "Callable[..., Array | tuple[Array, ...]]"


@dataclass(frozen=True)
class Row:
    """An instruction.

    - syntax, operands, compute: see the module
    - section: of the PTX ISA (9.0)
    - bound: maximum error of the device according to that section; the interpreter rounds correctly
    - undefined: a mask of the lanes without a defined result, the message for them, and the kind of the error
    """

    syntax: str
    operands: str
    compute: Compute
    section: str
    bound: str = ""
    undefined: tuple[Callable[..., Array], str, str] | None = None

    @property
    def count(self) -> int:
        """Number of source operands."""
        return len(self.operands.partition("=")[2].split())

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
    raw = np.ascontiguousarray(bits(text, R, g, slot, k.bits)).view(np.uint8).reshape(g.lanes, -1)
    return unpacked(raw, k)


def _write(v: Array, kind: str, leaf: Leaf) -> Array:
    k = KINDS[kind]
    if leaf.dtype == v.dtype == k.dtype and not leaf.shape:
        return v
    if k.bits == 1:
        return v.astype(np.bool_)
    raw = np.ascontiguousarray(packed(v, k)).view(np.dtype(f"u{k.bits // 8}")).reshape(-1)
    if kind[0] == "s" and k.elements == 1:  # A wider register is sign-extended.
        raw = raw.view(k.dtype).astype(np.int64)
    return typed(raw, leaf)


def handler_of(row: Row) -> Handler:
    """Return the handler of the statements of a row."""

    def build(text: Text, s: Statement) -> None:
        words = Words(s.opcode)
        results, sources = row.kinds(words)
        targets = s.operands[0].split("|")
        given = s.sources
        if len(given) != len(sources) or len(targets) > len(results):
            raise InterpError(
                "unsupported", f"{s.opcode} takes {len(sources) + 1} operands, got {', '.join(s.operands)}"
            )
        ins: list[tuple[int, str, bool]] = []
        for name, kind in zip(given, sources):
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
                fail(g, row.undefined[0](words, *args), row.undefined[2], lambda at: said, 0)
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

    def find(self, opcode: str, operands: int = 0) -> Row | None:
        """Return the row of an opcode, None if there is none. The number of source operands selects one of several."""
        rows = self._by_word.get(opcode.partition(".")[0], ())
        found = [row for row in rows if re.fullmatch(pattern(row.syntax), opcode)]
        return next((row for row in found if row.count == operands), found[0] if found else None)
