"""Builder of base ops at the end of a block, with one method per instruction and shared constants."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    StringAttr,
    UnknownLoc,
    VectorType,
    i32,
    i64,
)
from xdsl.dialects.ub import PoisonOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from cute_dialect.ir.editing import make_op
from cute_dialect.ir.xdsl_compat import append_op
from cute_dialect.passes.emitter import integer_attr
from cute_dialect.passes.lowering.types import Path, is_empty, vector
from cute_dialect.upstream import llvm
from cute_dialect.upstream.constraints import width

UNWRITTEN = "cute.unwritten"


class BaseBuilder:
    """Appends ops to ``block`` with the location ``location``.

    Constants and address arithmetic are shared: values created earlier in this block or an enclosing one are reused.
    """

    # _known holds the values visible here; _made holds the keys created in each open block.

    def __init__(self, block: Block):
        self.block = block
        self.location: LocationAttr = UnknownLoc()
        self._types: dict[int, tuple[int, Attribute]] = {}
        self._equal: dict[Attribute, Attribute] = {}
        self._known: dict[object, SSAValue] = {}
        self._made: list[list[object]] = [[]]
        self._beside: dict[tuple[object, SSAValue], SSAValue] = {}
        self._parts: dict[tuple[SSAValue, Path], SSAValue] = {}
        self._tensors: dict[Operation, dict[str, Attribute]] = {}

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Append to ``block``, nested in the current one, for the duration of the context."""
        saved, location = self.block, self.location
        self.block = block
        self._made.append([])
        try:
            yield
        finally:
            for key in self._made.pop():
                del self._known[key]
            self.block, self.location = saved, location

    def once(self, key: object, make: Callable[[], Operation]) -> SSAValue:
        """Return the result of a pure op with this key that is visible here, or create it."""
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self.emit(make())
            self._made[-1].append(key)
        return known

    def type_key(self, type: Attribute) -> int:
        """Return a number shared by equal types, for a key of :meth:`once`; hashing struct types is slow."""
        found = self._types.get(id(type))
        if found is None:  # keep the type alive, so that its id is not reused
            found = self._types[id(type)] = id(self._equal.setdefault(type, type)), type
        return found[0]

    def emit(self, op: Operation) -> SSAValue:
        """Append an op and return its first result."""
        self.add(op)
        return op.results[0]

    def add(self, op: Operation) -> Operation:
        op.location = self.location
        append_op(self.block, op)
        return op

    def constant(self, value: int, type: Attribute) -> SSAValue:
        """Return an integer constant (for a float type, a float constant), shared where visible."""

        def make() -> Operation:
            if bits:
                attribute: Attribute = integer_attr(value, bits)
            elif isinstance(type, IndexType):
                attribute = IntegerAttr(value, type)
            else:
                attribute = FloatAttr(float(value), cast("AnyFloat", type))
            return make_op(arith.ConstantOp, (), [type], {"value": attribute})

        bits = width(type)
        return self.once((value, bits or type), make)  # a width hashes fast

    def poison(self, type: Attribute) -> SSAValue:
        """Return ``ub.poison`` of a type, shared where visible."""
        return self.once(("poison", self.type_key(type)), lambda: make_op(PoisonOp, (), [type]))

    def unwritten(self, type: Attribute, tensor: Operation, cells: Sequence[int]) -> SSAValue:
        """Return ``ub.poison`` for a register that holds cells of the tensor ``tensor`` that are not yet written."""

        def make() -> Operation:
            op = make_op(PoisonOp, (), [type])
            op.attributes[UNWRITTEN] = self.unwritten_cells(tensor, cells)
            return op

        return self.once(("unwritten", self.type_key(type), tensor, tuple(cells)), make)

    def unwritten_cells(self, tensor: Operation, cells: Sequence[int]) -> DictionaryAttr:
        """Describe the cells of a register tensor that a register stands for, for diagnostics."""
        named = self._tensors.get(tensor)
        if named is None:
            result = tensor.results[0]
            name, text = StringAttr(result.name_hint or ""), StringAttr(str(result.type))
            named = self._tensors[tensor] = {"name": name, "type": text}
        return DictionaryAttr({**named, "cells": DenseArrayBase.from_list(i64, list(cells))})

    def extract(self, value: SSAValue, path: Path, type: Attribute) -> SSAValue:
        """Extract a member with ``llvm.extractvalue``, or return the value that was inserted at the path.

        The empty path is the value itself.  An empty member (a static layout) becomes poison.
        """
        value, path = inserted_at(value, path) if path else (value, path)
        if not path:
            return value
        if _holds_nothing(type):
            return self.poison(type)
        return self.emit(make_op(llvm.ExtractValueOp, [value], [type], _position(path)))

    def beside(self, key: object, value: SSAValue, make: Callable[[], Operation]) -> SSAValue:
        """Return the result of a pure op on ``value``, placed right after the definition of ``value``.

        The op is shared wherever that definition is visible.
        """
        known = self._beside.get((key, value))
        if known is None:
            op = make()
            insert_after(op, value)
            known = self._beside[key, value] = op.results[0]
        return known

    def extract_once(self, value: SSAValue, path: Path, type: Attribute) -> SSAValue:
        """Return ``llvm.extractvalue`` at this place, shared where visible."""
        make = lambda: make_op(llvm.ExtractValueOp, [value], [type], _position(path))  # noqa: E731
        return self.once(("extract", value, path), make)

    def part(self, value: SSAValue, path: Path, type: Attribute) -> SSAValue:
        """Return the member of a struct at ``path``.

        The result is the value that was inserted there, or a shared ``llvm.extractvalue`` right after the struct.
        """
        value, path = inserted_at(value, path)
        if not path:
            return value
        known = self._parts.get((value, path))
        if known is None:
            op = make_op(llvm.ExtractValueOp, [value], [type], _position(path))
            insert_after(op, value)
            known = self._parts[value, path] = op.results[0]
        return known

    def insert(self, value: SSAValue, container: SSAValue, path: Path) -> SSAValue:
        """Insert a member with ``llvm.insertvalue``; an empty value leaves the container unchanged."""
        if _holds_nothing(value.type):
            return container
        return self.emit(make_op(llvm.InsertValueOp, [container, value], [container.type], _position(path)))

    def gep(self, base: SSAValue, index: int | SSAValue, element: Attribute) -> SSAValue:
        """Return ``base + index`` elements, with ``llvm.getelementptr``."""
        if isinstance(index, int):
            if index == 0:
                return base
            if not -(1 << 31) < index < (1 << 31):
                index = self.constant(index, i64)
        return self.emit(llvm.GEPOp(base, [index], element))

    def load(self, address: SSAValue, type: Attribute, align: int) -> SSAValue:
        """Load with an alignment in bytes."""
        return self.emit(llvm.LoadOp(address, type, alignment=align))

    def store(self, value: SSAValue, address: SSAValue, align: int) -> None:
        """Store with an alignment in bytes."""
        self.add(llvm.StoreOp(value, address, alignment=align))

    def lane(self, vector: SSAValue, index: int) -> SSAValue:
        """Extract one element from a vector."""
        t = vector.type
        assert isinstance(t, VectorType)
        element = cast("VectorType[Attribute]", t).element_type
        at = self.constant(index, i32)
        return self.emit(make_op(llvm.OPS["extractelement"], [vector, at], [element]))

    def vector(self, elements: Sequence[SSAValue]) -> SSAValue:
        """Build a vector from scalars."""
        t = vector(elements[0].type, len(elements))
        result = self.poison(t)
        insert = llvm.OPS["insertelement"]
        for i, x in enumerate(elements):
            at = self.constant(i, i32)
            result = self.emit(make_op(insert, [result, x, at], [t]))
        return result


def inserted_at(value: SSAValue, path: Path) -> tuple[SSAValue, Path]:
    """Look through ``llvm.insertvalue`` and ``llvm.extractvalue``; return the value and the remaining path in it."""
    while True:
        owner = value.owner
        if not isinstance(owner, Operation):
            return value, path
        if owner.name == "llvm.extractvalue":
            value, path = owner.operands[0], (*position_of(owner), *path)
        elif owner.name == "llvm.insertvalue" and path:
            at = position_of(owner)
            if path[: len(at)] == at:
                value, path = owner.operands[1], path[len(at) :]
            elif at[: len(path)] == path:
                return value, path  # the struct at the path was modified inside, so it is not a single value
            else:
                value = owner.operands[0]
        else:
            return value, path


def position_of(op: Operation) -> Path:
    """Return the indices of an ``llvm.extractvalue`` or ``llvm.insertvalue``."""
    return _indices(op.properties["position"])


@lru_cache(maxsize=1024)
def _holds_nothing(t: Attribute) -> bool:
    return is_empty(t)


@lru_cache(maxsize=1024)
def _indices(position: Attribute) -> Path:
    assert isinstance(position, DenseArrayBase)
    return tuple(cast("DenseArrayBase[IntegerType]", position).get_values())


def insert_after(op: Operation, value: SSAValue) -> None:
    """Insert an op right after the definition of a value, with its location."""
    owner = value.owner
    if isinstance(owner, Block):
        first = owner.first_op
        if first is None:
            owner.add_op(op)
        else:
            owner.insert_op_before(op, first)
        return
    op.location = owner.location
    block = owner.parent
    assert block is not None
    block.insert_op_after(op, owner)


@lru_cache(maxsize=1024)
def _position_attr(path: Path) -> DenseArrayBase:
    return DenseArrayBase.from_list(i64, path)


def _position(path: Path) -> dict[str, Attribute]:
    return {"position": _position_attr(path)}
