"""Functions of a module, compiled on demand for one launch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cute_dialect.interp.errors import InterpError, attr_of, op_name
from cute_dialect.interp.exec.cfg import compile_region
from cute_dialect.interp.exec.compiler import Builder, FnCompiler, Function, result_types
from cute_dialect.interp.instructions.table import OPS, PREFIXES
from cute_dialect.interp.memory.provenance import Segment, parameters
from cute_dialect.interp.types import Type, type_of

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from cute_dialect.interp.reports.flops import FlopCount


class Program:
    """The functions of a module, compiled on demand for one launch."""

    def __init__(self, module: Operation, overflow: str) -> None:
        if overflow not in ("error", "wrap"):
            raise InterpError("argument", f'unknown overflow {overflow!r}; use "error" or "wrap"')
        self.module = module
        self.overflow = overflow
        self.flops: FlopCount | None = None  # None if operations are not counted
        self.tracks = False  # True if unwritten registers are tracked
        self.segments: dict[str, Segment] = {}  # shared memory, laid out before any function is compiled
        self._functions: dict[Operation, Function] = {}
        self._active: list[Operation] = []

    def builder(self, name: str) -> Builder | None:
        """Return the builder for an op name, or for a prefix of it. None if there is none."""
        got = OPS.get(name)
        if got is None:
            for prefix, b in PREFIXES:
                if name.startswith(prefix):
                    return b
        return got

    def function(self, op: Operation) -> Function:
        """Return the compiled function of a func op."""
        got = self._functions.get(op)
        if got is not None:
            return got
        name = symbol_name(op)
        if op in self._active:
            raise InterpError("unsupported", f"@{name} calls itself; recursion is not supported")
        self._active.append(op)
        try:
            fn = _compile(FnCompiler(self, op, name))
        finally:
            self._active.pop()
        self._functions[op] = fn
        return fn

    def find(self, name: str, from_op: Operation | None = None) -> Operation | None:
        """Return a function op by symbol or `module::symbol`, searching first the symbol tables around `from_op`."""
        scope, _, leaf = name.rpartition("::")
        table = from_op.parent_op() if from_op is not None else None
        while table is not None:
            for op in _table(table):
                if symbol_name(op) == leaf and not scope:
                    return op
            table = table.parent_op()
        for op in _symbols(self.module):
            if symbol_name(op) == leaf:
                parent = op.parent_op()
                if not scope or (parent is not None and symbol_name(parent) == scope):
                    return op
        return None


def _compile(c: FnCompiler) -> Function:
    """Compile the body of a function. Raises InterpError for a declaration."""
    fn = c.fn
    region = c.op.regions[0]
    if not region.blocks:
        raise InterpError("unsupported", f"@{fn.name} has no body, so it cannot run")
    entry = region.blocks[0]
    params: list[tuple[int, ...]] = []
    types: list[Type] = []
    for arg in entry.args:
        t = type_of(arg.type)
        slots = tuple(c.new_slot(leaf, fixed=True) for leaf in t.leaves)
        c.slots[arg] = slots
        params.append(slots)
        types.append(t)
    for slots, parameter in zip(params, parameters(c.op)):
        if len(slots) == 1 and c.leaf_of(slots[0]).kind == "p":
            c.pieces.takes(slots[0], parameter)
    fn.params, fn.param_types = tuple(params), tuple(types)
    fn.result_types = tuple(type_of(t) for t in result_types(c.op))
    fn.body = body = compile_region(c, region)
    fn.out = body.out
    c.prune()
    fn.frame_size = (c.frame + 127) // 128 * 128
    return fn


def _table(op: Operation) -> Iterator[Operation]:
    for region in op.regions:
        for block in region.blocks:
            yield from block.ops


def _symbols(module: Operation) -> Iterator[Operation]:
    """Yield the ops of a module and of nested modules, without the ops inside functions."""
    for op in _table(module):
        yield op
        if op_name(op).endswith(".module"):
            yield from _symbols(op)


def symbol_name(op: Operation) -> str:
    """Return the op's symbol name, empty if it has none."""
    got = attr_of(op, "sym_name")
    data = getattr(got, "data", None)
    return data if isinstance(data, str) else ""


__all__ = ["Program", "symbol_name"]
