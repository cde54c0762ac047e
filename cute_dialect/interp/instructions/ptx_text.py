"""Parser of PTX text: statements whose operands are slots."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from cute_dialect.interp.compiler.function_compiler import FnCompiler
from cute_dialect.interp.compiler.steps import Step, settle
from cute_dialect.interp.errors import InterpError, OpInfo, PoisonUse
from cute_dialect.interp.machine.group import Group
from cute_dialect.interp.memory.addresses import SHARED, SHARED_CLUSTER, SHARED_SPACES
from cute_dialect.interp.types import Leaf, float_leaf, int_leaf
from cute_dialect.interp.values import Mask, Regs, to_lanes, wrap_int

if TYPE_CHECKING:
    from xdsl.ir import Operation

_TYPES = {"pred": 1, **{f"{k}{n}": n for k in "bus" for n in (8, 16, 32, 64)}}


@dataclass(frozen=True)
class Statement:
    """An instruction: full opcode, operands as written, and guard as written (`@p`, `@!p`)."""

    opcode: str
    operands: tuple[str, ...]
    guard: str

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
        """Return the leaf of a slot."""
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


__all__ = ["Handler", "Statement", "Text", "no_effect", "number", "parse"]
