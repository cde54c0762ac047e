"""Operands of a wgmma, as an nvvm op or as inline PTX: descriptors, registers of A, and accumulators."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from xdsl.ir import Operation, SSAValue

from cute_dialect.interp.errors import attr_of
from cute_dialect.interp.instructions.matrix import shape_of
from cute_dialect.interp.instructions.moves import enum_word
from cute_dialect.interp.machine.wgmma import Instruction, Shape, operand_units
from cute_dialect.prove.attributes import integers_of
from cute_dialect.prove.verdict import NotProved

if TYPE_CHECKING:
    from cute_dialect.interp.errors import OpInfo

_PTX = re.compile(
    r"\s*(\{ \.reg \.pred p; setp\.ne\.b32 p, (?P<condition>\$\d+), 0; )?"
    r"wgmma\.mma_async(?P<sparse>\.sp)?\.sync\.aligned\.m64n(?P<n>\d+)k(?P<k>\d+)(\.satfinite)?\.(?P<d>\w+)\."
    r"(?P<a>\w+)\.(?P<b>\w+) (?P<acc>\{[$\d, ]*\}), (?P<first>\{[$\d, ]*\}|\$\d+), (?P<second>\$\d+), "
    r"(?(sparse)(?P<metadata>\$\d+), (?P<selector>\d+), )(?(condition)p|\d+)(?P<rest>(, -?\d+)*);\s*(?(condition)\}\s*)"
)
"""A wgmma as the only instruction, with a constant or a register that enables the accumulator."""


@dataclass(frozen=True)
class WgmmaForm:
    """One wgmma.

    Attributes:
        accumulators: The accumulators before it: a struct, or one value per register.
        a: The descriptor of A, None if A is in registers.
        registers: The registers of A, and the metadata of a sparse A.
        b: The descriptor of B.
        flag: The register that enables the accumulator, None for a constant.
        text: Shape, types and constants, which all warps of a warpgroup must have in common.
    """

    shape: Shape
    accumulators: tuple[SSAValue, ...]
    a: SSAValue | None
    registers: tuple[SSAValue, ...]
    b: SSAValue
    flag: SSAValue | None
    text: str

    @property
    def essential(self) -> tuple[SSAValue, ...]:
        """The operands that the protocol depends on."""
        return tuple(v for v in (self.a, self.b, self.flag) if v is not None)

    def units(self, a: int | None, b: int, warp: int) -> list[tuple[int, ...]]:
        """Return the 16-byte units that one warp's part reads: its rows of A, and B."""
        instruction = Instruction(self.shape, cast("OpInfo", None), 0)
        instruction.a, instruction.b = [] if a is None else a, b
        return [tuple(int(u) for u in units) for units in operand_units(instruction, warp)]


def is_wgmma_text(text: str) -> bool:
    """Return True if inline PTX is one wgmma."""
    return _PTX.fullmatch(text) is not None


@lru_cache(maxsize=4096)
def wgmma_form(op: Operation) -> WgmmaForm:
    """Return the operands of a wgmma. Raises NotProved for a variant that is not modelled."""
    return _of_text(op) if op.name == "llvm.inline_asm" else _of_op(op)


def _of_op(op: Operation) -> WgmmaForm:
    dims = shape_of(op)
    shape = Shape(
        dims["n"],
        dims["k"],
        enum_word(attr_of(op, "typeD")),
        enum_word(attr_of(op, "typeA")),
        enum_word(attr_of(op, "typeB")),
        "k" if enum_word(attr_of(op, "layoutA")) == "row" else "mn",
        "k" if enum_word(attr_of(op, "layoutB")) == "col" else "mn",
    )
    acc, a, b = op.operands[:3]
    text = str([(k, str(v)) for k, v in sorted(op.properties.items())])
    return WgmmaForm(shape, (acc,), a, (), b, None, text)


def _of_text(op: Operation) -> WgmmaForm:
    text = str(getattr(attr_of(op, "asm_string"), "data", ""))
    m = _PTX.fullmatch(text)
    constraints = str(getattr(attr_of(op, "constraints"), "data", "")).split(",")
    outputs = sum(c.startswith("=") for c in constraints)
    if m is None or constraints[outputs : 2 * outputs] != [str(i) for i in range(outputs)]:
        raise NotProved(f"the effect of inline PTX {text.strip()[:60]!r} is not modelled", op)

    def operand(number: str) -> SSAValue:
        return op.operands[int(number.strip()[1:]) - outputs]

    in_registers = m["first"].startswith("{")
    numbers = [int(x) for x in m["rest"].split(",")[1:]]
    majors = [*([0] if in_registers else []), *numbers[2:], 0, 0]
    shape = Shape(
        int(m["n"]),
        int(m["k"]),
        m["d"],
        m["a"],
        m["b"],
        "mn" if majors[0] == 1 else "k",
        "mn" if majors[1] == 1 else "k",
        selector=int(m["selector"]) if m["sparse"] else -1,
    )
    written = [x.strip() for x in m["acc"][1:-1].split(",")]
    if written != [f"${i}" for i in range(outputs)]:
        raise NotProved("a wgmma whose accumulators are not its results in order is not modelled", op)
    registers = [operand(x) for x in m["first"][1:-1].split(",")] if in_registers else []
    if m["sparse"]:
        registers.append(operand(m["metadata"]))
    a = None if in_registers else operand(m["first"])
    flag = operand(m["condition"]) if m["condition"] else None
    return WgmmaForm(shape, tuple(op.operands[:outputs]), a, tuple(registers), operand(m["second"]), flag, text)


@lru_cache(maxsize=4096)
def whole_struct(values: tuple[SSAValue, ...]) -> SSAValue | None:
    """Return the struct of which some values are all fields in order, None if there is none."""
    if len(values) == 1:
        return values[0]
    first = values[0].owner
    if not isinstance(first, Operation) or first.name != "llvm.extractvalue":
        return None
    struct = first.operands[0]
    for n, v in enumerate(values):
        op = v.owner
        if not isinstance(op, Operation) or op.name != "llvm.extractvalue" or op.operands[0] is not struct:
            return None
        if integers_of(op, "position") != (n,):
            return None
    return struct
