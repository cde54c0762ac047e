"""The run-time state of atoms: ``cute.atom.set_value``, and what a copy sees of it.

    %a = cute.atom.set_value(%atom, %bar) {field = tma_bar} : (!load, !bar) -> !load

Which fields an atom has its type says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import StringAttr, i1, i16, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.atom_types import AtomType, TiledCopyType, TiledType
from cute_dialect.ops.base import cute_op
from cute_dialect.ops.machine import MachineOp, is_barrier
from cute_dialect.ops.typed_values import Properties
from cute_dialect.ops.views import expect, expect_operands

FIELDS: Mapping[str, str] = {
    "tma_bar": "a !cute.ptr<i64, smem>",
    "im2col_offsets": "a !cute.coord with an offset a spatial dimension",
    "multicast_mask": "i16",
    "cache_hint": "i64",
    "pred": "i1",
}
"""Field of a copy atom -> what its value is, in words."""

_TYPES = {"multicast_mask": i16, "cache_hint": i64, "pred": i1}


def fits(field: str, value: Attribute) -> bool:
    """Tell whether a field may have a value of this type, as far as that does not depend on the atom."""
    return is_barrier(value) if field == "tma_bar" else value == _TYPES.get(field)


def check_accumulate(atom: Attribute, value: Attribute) -> None:
    """Raise AlgebraError unless the field ``accumulate`` of this atom can have a value of this type."""
    if not isinstance(atom, AtomType) or "accumulate" not in atom.fields():
        expect(atom, (), 0, "a wgmma atom or a !cute.tiled_mma of one for accumulate")
    if value != i1:
        raise AlgebraError(f"operand #1 must be i1 for accumulate, got {value}")


@cute_op
class AtomSetValueOp(MachineOp):
    """An atom with a value of its run-time state; the type stays.

    Syntax: ``%b = cute.atom.set_value(%a, %v) {field = FIELD} : (ATOM, V) -> ATOM`` with one of the fields below.

    ``tma_bar``: the mbarrier (``!cute.ptr<i64, smem>``) that a load's bytes are counted by; a load needs one.
    ``accumulate`` (of wgmma and its tiled MMA): i1, whether a ``gemm`` without C adds to D instead.
    ``multicast_mask``: i16, a bit a CTA of the cluster that the load writes to, each at the same offset of its shared
    memory.  ``cache_hint``: i64, an L2 cache policy.  ``pred``: i1, nothing is done where it is false.
    ``im2col_offsets``: a coordinate (W first) by which all pixels of an im2col load are moved, else nothing.
    The atom may be that of a tiled copy.
    A copy sees the values that are set in the function it is in, on the way from the atom to the copy.

    Example:
        %b = cute.atom.set_value(%a, %bar) {field = tma_bar} : (!cute_nvgpu.atom.tma_load<f16, box = (64, 128)>, !cute.ptr<i64, smem>) -> !cute_nvgpu.atom.tma_load<f16, box = (64, 128)>
    """  # noqa: E501

    name = "cute.atom.set_value"
    atom = operand_def()
    value = operand_def()
    field = prop_def(StringAttr)
    result = result_def()
    traits = traits_def(Pure())
    WORDS = ("field",)

    def __init__(self, atom: SSAValue, value: SSAValue, field: str):
        self.build_inferred([atom, value], {"field": StringAttr(field)})

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 2)
        atom, value = operand_types
        given = properties.get("field")
        field = given.data if isinstance(given, StringAttr) else ""
        if field == "accumulate":
            check_accumulate(atom.atom if isinstance(atom, TiledType) else atom, value)
            return [atom]
        inner = atom.atom if isinstance(atom, TiledCopyType) else atom
        having = [f for f in FIELDS if isinstance(inner, AtomType) and f in inner.fields()]
        if not having:
            expect(atom, (), 0, "an atom with run-time state (tma_load, tma_store, tma_reduce, bulk_copy, bulk_reduce)")
        if field not in FIELDS:
            raise AlgebraError(f"property 'field': expected one of {', '.join(FIELDS)}, got {field or 'none'}")
        if field not in having:
            raise AlgebraError(f"property 'field': {inner.name} has no {field} (it has {', '.join(having)})")
        assert isinstance(inner, AtomType)
        if not inner.takes(field, value):
            raise AlgebraError(f"operand #1 must be {FIELDS[field]} for {field}, got {value}")
        return [atom]


OPS: list[type[Operation]] = [AtomSetValueOp]
"""The ops of this module."""
