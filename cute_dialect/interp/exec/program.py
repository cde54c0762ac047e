"""Functions of a module, compiled on demand for one launch, its globals, and the table of builders of ops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.interp.compiler.control_flow import (
    compile_execute_region,
    compile_for,
    compile_if,
    compile_index_switch,
    compile_region,
    compile_while,
)
from cute_dialect.interp.compiler.function_compiler import Builder, FnCompiler, Function, result_types
from cute_dialect.interp.errors import InterpError, attr_of, op_name
from cute_dialect.interp.instructions import (
    async_copies,
    bulk_copies,
    calls,
    cluster_launch,
    conversions,
    field_ops,
    float_ops,
    gpu,
    integer_ops,
    matrix,
    memory,
    moves,
    ptx,
    tcgen05,
    vectors,
    warp,
    wgmma,
)
from cute_dialect.interp.instructions.moves import literal
from cute_dialect.interp.machine.group import Machine
from cute_dialect.interp.memory.allocations import Allocations, Segment, parameters, shared_allocations
from cute_dialect.interp.memory.buffers import SHARED, SMEM_ORIGIN
from cute_dialect.interp.types import Type, round_up, size_of, type_of
from cute_dialect.interp.values import Array

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.ir import Attribute, Operation

    from cute_dialect.interp.field import Algebra
    from cute_dialect.interp.reports.run_report import FlopCount


OPS: dict[str, Builder] = {
    "scf.if": compile_if,
    "scf.for": compile_for,
    "scf.while": compile_while,
    "scf.execute_region": compile_execute_region,
    "scf.index_switch": compile_index_switch,
    **integer_ops.OPS,
    **float_ops.OPS,
    **moves.OPS,
    **vectors.OPS,
    **memory.OPS,
    **gpu.OPS,
    **warp.OPS,
    **conversions.OPS,
    **matrix.OPS,
    **async_copies.OPS,
    **bulk_copies.OPS,
    **cluster_launch.OPS,
    **tcgen05.OPS,
    **wgmma.OPS,
    **ptx.OPS,
    **calls.OPS,
}
"""The builders that compile ops, by op name."""

PREFIXES: tuple[tuple[str, Builder], ...] = gpu.PREFIXES
"""Op families that one builder compiles, by prefix of the name."""


class Program:
    """The functions of a module, compiled on demand for one launch."""

    def __init__(self, module: Operation, overflow: str, algebra: Algebra | None = None) -> None:
        if overflow not in ("error", "wrap"):
            raise InterpError("argument", f'unknown overflow {overflow!r}; use "error" or "wrap"')
        self.module = module
        self.overflow = overflow
        self.algebra = algebra  # arithmetic of floats, None for that of the machine
        self.flops: FlopCount | None = None  # None if operations are not counted
        self.tracks = False  # True if unwritten registers are tracked
        self.stops = False  # True if warps stop before instructions that others can observe, see `replay`
        self.cta_group: tuple[int, str] | None = None  # cta_group of the tcgen05 ops, and the first of them
        self.tensor_columns = 0  # columns of tensor memory that tcgen05.alloc allocates, as far as they are constants
        self.segments: dict[str, Segment] = {}  # shared memory, laid out before any function is compiled
        self._functions: dict[Operation, Function] = {}
        self._active: list[Operation] = []

    def builder(self, name: str) -> Builder | None:
        """Return the builder for an op name, or for a prefix of it. None if there is none."""
        got = OPS.get(name)
        if got is None:
            for prefix, b in PREFIXES:
                if name.startswith(prefix):
                    got = b
        return got if self.algebra is None else field_ops.over_algebra(name, got)

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


Global: TypeAlias = "tuple[Operation, str, Attribute, int, int]"
SMEM_LIMIT = DEFAULT_TARGET.shared


def lay_out_shared(program: Program, machine: Machine, func: Operation, dynamic_smem: int) -> list[Global]:
    """Assign an offset to every global in shared memory, static before dynamic. Returns the other globals."""
    static: list[tuple[str, int, int]] = []
    at = 0
    dynamic: list[tuple[str, int]] = []
    others: list[Global] = []
    for one in _globals(program, func):
        op, name, _, size, align = one
        if _int(op, "addr_space") != SHARED:
            others.append(one)
        else:
            if size == 0:
                dynamic.append((name, align))
            else:
                static.append((name, size, align))
    segments: dict[str, tuple[int, int]] = {}
    for name, size, align in static:
        at = round_up(at, align)
        segments[name] = (at, size)
        machine.symbols[name] = SMEM_ORIGIN + at
        at += size
    for name, align in dynamic:
        start = round_up(at, align)
        segments[name] = (start, dynamic_smem)
        machine.symbols[name] = SMEM_ORIGIN + start
        at = start
    machine.dynamic_smem = dynamic_smem
    machine.smem_size = at + dynamic_smem
    if machine.smem_size > SMEM_LIMIT:
        raise InterpError("limit", f"{machine.smem_size} bytes of shared memory exceed the limit of {SMEM_LIMIT} bytes")
    machine.shared_names = names = shared_allocations(func, segments)
    for name, (start, size) in segments.items():
        inside = [a for a in names.known if start <= a.start < start + size and a.name != f"@{name}"]
        program.segments[name] = machine.segments[name] = Segment(name, start, size, Allocations(inside))
    return others


def place_globals(machine: Machine, others: list[Global]) -> None:
    """Allocate the globals outside shared memory."""
    for op, name, t, size, _ in others:
        data = _initial(op, t, size)
        constant = attr_of(op, "constant") is not None
        buf = machine.memory.add(data, f"global @{name}", writable=not constant)
        machine.symbols[name] = buf.base


def _globals(program: Program, func: Operation) -> Iterator[Global]:
    """Yield the globals that a function uses: op, name, type, bytes and alignment."""
    used = _names_used(program, func)
    if not used:
        return
    for op in program.module.walk():
        if op_name(op) != "llvm.mlir.global":
            continue
        name = symbol_name(op)
        if name not in used:
            continue
        t = attr_of(op, "global_type")
        if t is None:
            raise InterpError("unsupported", f"global @{name} has no type")
        size, align = size_of(t)
        yield op, name, t, size, max(_int(op, "alignment"), align, 1)


def _names_used(program: Program, func: Operation) -> set[str]:
    """Return the names of the globals that a function and its callees refer to."""
    out: set[str] = set()
    todo, seen = [func], {func}
    while todo:
        for op in todo.pop().walk():
            for key in ("global_name", "callee"):
                ref = attr_of(op, key)
                if ref is None:
                    continue
                data = getattr(getattr(ref, "root_reference", ref), "data", None)
                if not isinstance(data, str):
                    continue
                if key == "global_name":
                    out.add(data)
                else:
                    callee = program.find(data, op)
                    if callee is not None and callee not in seen:
                        seen.add(callee)
                        todo.append(callee)
    return out


def _int(op: Operation, name: str) -> int:
    data = getattr(getattr(attr_of(op, name), "value", None), "data", None)
    return data if isinstance(data, int) else 0


def _initial(op: Operation, t: object, size: int) -> Array:
    data = np.zeros(size, np.uint8)
    value = attr_of(op, "value")
    if value is None and op.regions and op.regions[0].blocks:
        if any(
            op_name(o) not in ("llvm.mlir.undef", "llvm.mlir.zero", "llvm.mlir.poison", "llvm.return")
            for o in op.regions[0].walk()
        ):
            raise InterpError("unsupported", f"the initializer of global @{symbol_name(op)} must be undef or zero")
        return data
    if value is None:
        return data
    text = getattr(value, "data", None)
    if isinstance(text, (str, bytes)):
        raw = text.encode("latin-1", "replace") if isinstance(text, str) else text
        data[: len(raw)] = np.frombuffer(raw[:size], np.uint8)
        return data
    kind = type_of(t)  # type: ignore[arg-type]
    for leaf, off, v in zip(kind.leaves, kind.offsets, literal(value, kind)):
        raw_leaf = np.ascontiguousarray(np.asarray(v, leaf.dtype)).reshape(-1).view(np.uint8)
        data[off : off + len(raw_leaf)] = raw_leaf
    return data
