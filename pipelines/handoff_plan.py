"""What the hand-off leaves out, and what it writes as one: the smaller the text, the sooner upstream is done with it.

*Dead values* are not written: the parts of a memref that no instruction read, say.

*Chains of wgmma* are written as one piece of inline PTX.  Upstream makes each ``nvvm.wgmma.mma_async`` a piece of its
own, with every accumulator as an input and as an output: in LLVM a K tile of four instructions over 128 accumulators
is 512 values to take apart and 512 copies to join again, half the time of a GEMM's way to PTX.  As one piece::

    { .reg .pred p; setp.ne.b32 p, 0, 0;
      wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {$0, …, $127}, $256, $257, p, 1, 1, 0, 0;
      setp.ne.b32 p, 1, 0;
      wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {$0, …, $127}, $258, $259, p, 1, 1, 0, 0;
      … }

ptxas gives the same machine code for both.  A chain is what hands its accumulators from one instruction to the next
within a block, with nothing in between but computations without effects, which all stand before the piece.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from xdsl.traits import IsTerminator, NoMemoryEffect

from cute_dialect.ir.xdsl_compat import following_use
from cute_dialect.pipelines.handoff_registers import (
    LETTERS,
    WGMMA,
    RegisterTypes,
    Webs,
    find_webs,
    names,
    register_types,
)

if TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable, Sequence

    from xdsl.ir import Attribute, Operation, Region, SSAValue

__all__ = ["Plan", "chain_text", "make_plan"]

_DIGITS = re.compile(r"\d+")


@dataclass
class Plan:
    """``left_out``: ops that are not written; ``chains``: the last op of a chain and the whole of it, in order;
    ``webs``: accumulators that are only in registers.
    """

    left_out: set[Operation] = field(default_factory=lambda: set())
    chains: dict[Operation, list[Operation]] = field(default_factory=lambda: {})
    webs: Webs = field(default_factory=Webs)


def make_plan(module: Operation) -> Plan:
    """The plan for all of ``module``, which is not changed."""
    planner = _Planner()
    for region in module.regions:
        planner.region(region)
    plan = Plan(planner.dead)
    if planner.found:
        plan.webs = find_webs(module, planner.types)
        plan.left_out |= plan.webs.unused
    for chain in planner.found:
        if len(chain) > 1 or chain[0].results[0] in plan.webs.number:
            chain.reverse()
            plan.chains[chain[-1]] = chain
            plan.left_out.update(chain[:-1])
    return plan


class _Planner:
    """Looks at the ops backwards, so that the users of a value are known to be dead before it is looked at."""

    def __init__(self) -> None:
        self.dead: set[Operation] = set()
        self.found: list[list[Operation]] = []
        """Chains, each from its last instruction to its first."""
        self.harmless: dict[type[Operation], bool] = {}
        self.types = RegisterTypes()

    def region(self, region: Region) -> None:
        """All ops of a region."""
        dead, harmless = self.dead, self.harmless
        for block in reversed(region.blocks):
            chain: list[Operation] | None = None  # what begins after op, with nothing but computations in between
            op = block.last_op
            while op is not None:
                kind = type(op)
                pure = harmless.get(kind)
                if pure is None:
                    pure = harmless[kind] = _is_harmless(op)
                if pure:
                    if _is_dead(op, dead):
                        dead.add(op)
                elif op.name == WGMMA and "satfinite" not in op.properties and self.types.of(op.results[0].type):
                    result = op.results[0]
                    if chain is not None and chain[-1].operands[0] is result and result.has_one_use():
                        chain.append(op)
                    else:
                        chain = [op]
                        self.found.append(chain)
                else:
                    chain = None
                    for inner in op.regions:
                        self.region(inner)
                op = op.prev_op


def _is_harmless(op: Operation) -> bool:
    return not op.regions and op.has_trait(NoMemoryEffect) and not op.has_trait(IsTerminator)


def _is_dead(op: Operation, dead: set[Operation]) -> bool:
    for result in op.results:
        use = result.first_use
        while use is not None:
            if use.operation not in dead:
                return False
            use = following_use(use)
    return True


# ---------------------------------------------------------------------------------------------------------- as text


def chain_text(
    chain: Sequence[Operation],
    web: int | None,
    value: Callable[[SSAValue], str],
    text: Callable[[Attribute], str],
    number: int,
) -> str:
    """The lines of a chain, without a location; ``web``: where its accumulators are, if they are in registers.

    ``value`` and ``text`` give names and types; ``number`` is the chain's own, for the names of its accumulators.
    """
    first, last = chain[0], chain[-1]
    types = register_types(first.results[0].type)
    n = len(types)
    descriptors = [value(o) for op in chain for o in op.operands[1:]]
    code = ["{\\0A.reg .pred p;\\0A"]
    scale = ""
    for i, op in enumerate(chain):
        if _word(op, "scaleD") != scale:
            scale = _word(op, "scaleD")
            code.append(f"setp.ne.b32 p, {int(scale == 'one')}, 0;\\0A")
        accumulators = _all(n) if web is None else "{" + ", ".join(names(web, n)) + "}"
        code.append(f"{_instruction(op, accumulators, 2 * i + (2 * n if web is None else 0))}\\0A")
    code.append("}")
    properties = f'<{{"asm_string" = "{"".join(code)}", "constraints" = "'
    if web is not None:
        return (
            f'"llvm.inline_asm"({", ".join(descriptors)}) {properties}{_constraints("", len(descriptors))}", '
            f'"has_side_effects"}}> : ({", ".join(["i64"] * len(descriptors))}) -> ()'
        )
    start, struct = first.operands[0], text(first.operands[0].type)
    if getattr(start.owner, "name", "") == "llvm.mlir.undef" and _word(first, "scaleD") == "zero":
        lines = [f'%w{number}_{t} = "llvm.mlir.undef"() : () -> {t}\n' for t in dict.fromkeys(types)]
        inputs = [f"%w{number}_{t}" for t in types]
    else:
        whole = value(start)
        inputs = [f"%w{number}_{i}" for i in range(n)]
        lines = [
            f'{name} = "llvm.extractvalue"({whole}) <{{"position" = array<i64: {i}>}}> : ({struct}) -> ({t})\n'
            for i, (name, t) in enumerate(zip(inputs, types))
        ]
    constraints = _constraints("".join([LETTERS[t] for t in types]), len(descriptors))
    given = ", ".join([*types, *["i64"] * len(descriptors)])
    lines.append(
        f'{value(last.results[0])} = "llvm.inline_asm"({", ".join([*inputs, *descriptors])}) '
        f'{properties}{constraints}", "has_side_effects"}}> : ({given}) -> ({struct})'
    )
    return "".join(lines)


def _instruction(op: Operation, accumulators: str, at: int) -> str:
    """One instruction whose descriptors are ``$at`` and the one after it (PTX ISA 9.7.15.5.2)."""
    m, n, k = _DIGITS.findall(str(op.properties["shape"]))
    types = [_word(op, f"type{x}") for x in "DAB"]
    operands = [accumulators, f"${at}", f"${at + 1}", "p"]
    if types[0] != "s32":
        operands += ["-1" if _word(op, f"scale{x}") == "neg" else "1" for x in "AB"]
    if types[1] in ("f16", "bf16"):
        operands += [str(int(_word(op, "layoutA") == "col")), str(int(_word(op, "layoutB") == "row"))]
    return f"wgmma.mma_async.sync.aligned.m{m}n{n}k{k}.{'.'.join(types)} {', '.join(operands)};"


def _word(op: Operation, name: str) -> str:
    """The case of an enum attribute: ``row`` of ``#nvvm.mma_layout<row>``."""
    text = str(op.properties[name])
    return text[text.index("<") + 1 : -1]


@lru_cache(maxsize=64)
def _all(n: int) -> str:
    return "{" + ", ".join([f"${i}" for i in range(n)]) + "}"


@lru_cache(maxsize=64)
def _constraints(letters: str, descriptors: int) -> str:
    return ",".join([*[f"={x}" for x in letters], *[str(i) for i in range(len(letters))], *["l"] * descriptors])
