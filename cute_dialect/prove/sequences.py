"""While loops over tiles: the sequence of values that decides how long a loop runs.

A persistent kernel takes its tiles in a while loop:

    while tile < tiles:        # variable: tile
        ...
        tile = tile + blocks

The *variables* of the loop are the carried values that its condition depends on, through each other and integers that
do not change. They form a sequence that is fixed before the loop begins: two loops with equal structure and equal first
values take the same tiles. So the prover gives the sequence a name, its digest. The number of iterations is the symbol
`("iterations", digest)`, which all roles share, and a variable is the symbol `(ANY, "variable n", digest)`. The latter
has another value in each iteration, so a value that is computed from it must not be used in the next one: `varies`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from cute_dialect.prove.values import (
    ANY,
    UNKNOWN,
    Atom,
    Counter,
    Guard,
    Linear,
    Spread,
    Strided,
    Struct,
    Terms,
    Value,
    symbol,
)
from cute_dialect.prove.verdict import NotProved

_LEAVES = (
    "arith.constant",
    "llvm.mlir.constant",
    "llvm.extractvalue",
    "nvvm.read.ptx.sreg.ctaid.",
    "nvvm.read.ptx.sreg.nctaid.",
    "nvvm.read.ptx.sreg.clusterid.",
    "nvvm.read.ptx.sreg.nclusterid.",
    "nvvm.read.ptx.sreg.cluster.",
)
"""Ops inside a loop whose result is fixed before it begins."""
_ITERATIONS, _VARIABLE = "iterations", "variable"


@dataclass(frozen=True)
class WhileLoop:
    """The structure of a while loop.

    Attributes:
        passes: The carried value that each argument of the body, and each result, is.
        variables: The carried values that the condition depends on.
        leaves: Values that are fixed before the loop begins: first values of the variables, and others.
        structure: The computation of the condition and of the next values from variables and leaves.
    """

    passes: tuple[int, ...]
    variables: tuple[int, ...]
    leaves: tuple[SSAValue, ...]
    structure: tuple[object, ...]

    def digest(self, values: Sequence[Value]) -> str | None:
        """Return the name of the sequence, given the values of the leaves. None if one of them is not known."""
        if not all(isinstance(v, (int, Linear)) for v in values):
            return None
        return hashlib.sha256(repr((self.structure, tuple(values))).encode()).hexdigest()[:32]


@lru_cache(maxsize=1024)
def while_loop(op: Operation) -> WhileLoop:
    """Return the structure of a while loop. Raises NotProved if its condition depends on anything but integers."""
    before, after = op.regions[0].block, op.regions[1].block
    condition, last = before.last_op, after.last_op
    assert condition is not None and last is not None
    passes: list[int] = []
    for v in condition.operands[1:]:
        if not isinstance(v, BlockArgument) or v.block is not before:
            raise NotProved("a while loop passes a value to its body that its condition computes", op)
        passes.append(v.index)
    builder = _Builder(op, passes)
    root = builder.number(condition.operands[0])
    following: list[int] = []
    for i in builder.variables:  # which grows
        following.append(builder.number(last.operands[i]))
    leaves = [*builder.leaves, *(op.operands[i] for i in builder.variables)]
    structure = (*builder.nodes, root, *following)
    return WhileLoop(tuple(passes), tuple(builder.variables), tuple(leaves), structure)


class _Builder:
    """Numbers the ops that compute a condition. Equal code gets equal numbers."""

    def __init__(self, loop: Operation, passes: Sequence[int]) -> None:
        self.loop, self.passes = loop, passes
        self.nodes: list[tuple[object, ...]] = []
        self.leaves: list[SSAValue] = []
        self.variables: list[int] = []
        self._known: dict[SSAValue, int] = {}

    def number(self, value: SSAValue) -> int:
        """Return the number of a value."""
        got = self._known.get(value)
        if got is None:
            node = self._node(value)
            self.nodes.append(node)
            got = self._known[value] = len(self.nodes) - 1
        return got

    def _node(self, value: SSAValue) -> tuple[object, ...]:
        block = value.block if isinstance(value, BlockArgument) else value.owner.parent_block()
        inside = block is not None and _is_inside(block.parent_op(), self.loop)
        if not inside:
            return self._leaf(value)
        if isinstance(value, BlockArgument):
            if value.block.parent_op() is not self.loop:
                raise self._refused()
            carried = value.index if value.block is self.loop.regions[0].block else self.passes[value.index]
            if carried not in self.variables:
                self.variables.append(carried)
            return ("variable", self.variables.index(carried), str(value.type))
        op = value.owner
        assert isinstance(op, Operation)
        if op.name.startswith(_LEAVES):
            if any(_is_inside(v.owner, self.loop) for v in op.operands):
                raise self._refused()
            return self._leaf(value)
        if not op.name.startswith("arith.") or op.regions or len(op.results) != 1:
            raise self._refused()
        operands = tuple(self.number(v) for v in op.operands)
        attributes = sorted((k, str(a)) for k, a in (*op.properties.items(), *op.attributes.items()))
        return (op.name, str(value.type), tuple(attributes), operands)

    def _leaf(self, value: SSAValue) -> tuple[object, ...]:
        self.leaves.append(value)
        return ("leaf", len(self.leaves) - 1)

    def _refused(self) -> NotProved:
        return NotProved(
            "the number of iterations of a while loop depends on more than sizes and block numbers; use a for loop",
            self.loop,
        )


def _is_inside(where: Operation | Block | None, loop: Operation) -> bool:
    """Return True if an op, or a block, is in the regions of a loop."""
    op = where.parent_op() if isinstance(where, Block) else where
    while op is not None:
        if op is loop:
            return True
        op = op.parent_op()
    return False


def is_while(op: Operation | None) -> bool:
    """Return True for a while loop."""
    return op is not None and op.name == "scf.while"


def iterations(digest: str) -> Linear:
    """Return the number of iterations of the loop over a sequence."""
    return symbol((_ITERATIONS, digest))


def variable(digest: str, n: int) -> Linear:
    """Return the variable `n` of a sequence, in the present iteration."""
    return symbol((ANY, f"{_VARIABLE} {n}", digest))


@lru_cache(maxsize=4096)
def varies(terms: Terms) -> bool:
    """Return True if a sum depends on the present iteration of a while loop.

    >>> varies(variable("a", 0).terms), varies(symbol(("shrui", variable("a", 0), 1)).terms)
    (True, True)
    >>> varies(iterations("a").terms)
    False
    """
    return any(_atom_varies(atom) for atom, _ in terms)


def _atom_varies(atom: Atom) -> bool:
    if atom[0] == ANY and str(atom[1]).startswith(_VARIABLE):
        return True
    return any(isinstance(part, Linear) and varies(part.terms) for part in atom)


@lru_cache(maxsize=4096)
def reads_array(terms: Terms) -> bool:
    """Return True if a size depends on an element of an array."""
    return any(
        (atom[0] == ANY and str(atom[1]).startswith("load "))
        or any(isinstance(part, Linear) and reads_array(part.terms) for part in atom)
        for atom, _ in terms
    )


def value_varies(value: Value) -> bool:
    """Return True if a value depends on the present iteration of a while loop."""
    if isinstance(value, (Linear, Spread)):
        return varies(value.terms)
    if isinstance(value, Guard):
        return any(varies(terms) for terms, _ in value.parts)
    if isinstance(value, Counter):
        return varies(value.loop[0])
    if isinstance(value, Strided):
        return any(map(value_varies, (value.counter, value.lower, value.step)))
    return isinstance(value, Struct) and any(value_varies(v) for _, v in value.fields)


def settled(value: Value) -> Value:
    """Return a value as it leaves an iteration: unknown if it depends on it."""
    return UNKNOWN if value_varies(value) else value


def sources(value: SSAValue) -> Iterator[SSAValue]:
    """Yield the values that an argument or result of a while loop is computed from."""
    assert isinstance(value, (BlockArgument, OpResult))
    op = value.owner if isinstance(value, OpResult) else value.block.parent_op()
    assert op is not None
    try:
        loop = while_loop(op)
    except NotProved:
        return  # The value is unknown.
    is_first = isinstance(value, BlockArgument) and value.block is op.regions[0].block
    carried = value.index if is_first else loop.passes[value.index]
    yield from condition_sources(op)
    if carried not in loop.variables:
        last = op.regions[1].block.last_op
        assert last is not None
        yield from (op.operands[carried], last.operands[carried])


def condition_sources(op: Operation) -> Iterator[SSAValue]:
    """Yield the values that the number of iterations of a while loop is computed from."""
    for leaf in while_loop(op).leaves:
        if isinstance(leaf.owner, Operation) and _is_inside(leaf.owner, op):
            yield from leaf.owner.operands
        else:
            yield leaf
