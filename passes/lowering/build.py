"""Makes base ops at the end of a block: one method an instruction, integer constants shared within a block."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    UnknownLoc,
    VectorType,
    i32,
    i64,
)
from xdsl.dialects.ub import PoisonOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from cute_dialect.passes.lowering.types import Path
from cute_dialect.upstream import llvm


class BaseBuilder:
    """Appends ops to ``block``; every op gets ``location``."""

    def __init__(self, block: Block):
        self.block = block
        self.location: LocationAttr = UnknownLoc()
        self._constants: dict[tuple[Block, int, Attribute], SSAValue] = {}

    def emit(self, op: Operation) -> SSAValue:
        """Append an op; gives its first result."""
        self.add(op)
        return op.results[0]

    def add(self, op: Operation) -> Operation:
        """Append an op."""
        op.location = self.location
        self.block.add_op(op)
        return op

    def constant(self, value: int, type: Attribute) -> SSAValue:
        """An integer (or, for a float type, float) constant."""
        key = (self.block, value, type)
        known = self._constants.get(key)
        if known is None:
            attribute = IntegerAttr(value, type) if _is_int(type) else FloatAttr(float(value), type)  # pyright: ignore
            known = self.emit(arith.ConstantOp(attribute, type))  # pyright: ignore[reportArgumentType]
            self._constants[key] = known
        return known

    def poison(self, type: Attribute) -> SSAValue:
        """``ub.poison``"""
        return self.emit(PoisonOp.create(result_types=[type]))

    def extract(self, value: SSAValue, path: Path, type: Attribute) -> SSAValue:
        """``llvm.extractvalue``; the empty path is the value itself."""
        if not path:
            return value
        return self.emit(llvm.ExtractValueOp.create(operands=[value], result_types=[type], properties=_position(path)))

    def insert(self, value: SSAValue, container: SSAValue, path: Path) -> SSAValue:
        """``llvm.insertvalue``"""
        return self.emit(
            llvm.InsertValueOp.create(
                operands=[container, value], result_types=[container.type], properties=_position(path)
            )
        )

    def gep(self, base: SSAValue, index: int | SSAValue, element: Attribute) -> SSAValue:
        """``llvm.getelementptr``: ``base + index`` elements."""
        if isinstance(index, int):
            if index == 0:
                return base
            if not -(1 << 31) < index < (1 << 31):
                index = self.constant(index, i64)
        return self.emit(llvm.GEPOp(base, [index], element))

    def load(self, address: SSAValue, type: Attribute, align: int) -> SSAValue:
        """``llvm.load`` with an alignment in bytes."""
        return self.emit(llvm.LoadOp(address, type, alignment=align))

    def store(self, value: SSAValue, address: SSAValue, align: int) -> None:
        """``llvm.store`` with an alignment in bytes."""
        self.add(llvm.StoreOp(value, address, alignment=align))

    def lane(self, vector: SSAValue, index: int) -> SSAValue:
        """One element of a vector."""
        t = vector.type
        assert isinstance(t, VectorType)
        at = self.constant(index, i32)
        return self.emit(llvm.OPS["extractelement"].create(operands=[vector, at], result_types=[t.element_type]))

    def vector(self, elements: Sequence[SSAValue]) -> SSAValue:
        """A vector of scalars."""
        t = VectorType(elements[0].type, [len(elements)])
        result = self.poison(t)
        for i, x in enumerate(elements):
            at = self.constant(i, i32)
            result = self.emit(llvm.OPS["insertelement"].create(operands=[result, x, at], result_types=[t]))
        return result


def _position(path: Path) -> dict[str, Attribute]:
    return {"position": DenseArrayBase.from_list(i64, path)}


def _is_int(type: Attribute) -> bool:
    from xdsl.dialects.builtin import IndexType

    return isinstance(type, IntegerType | IndexType)
