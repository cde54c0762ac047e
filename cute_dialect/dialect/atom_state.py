"""Run-time state of atoms: ``cute.atom.set_value``.

The type of an atom determines its fields. For example, this sets the mbarrier of a TMA load:

    %a = cute.atom.set_value(%atom, %bar) {field = tma_bar} : (!load, !bar) -> !load
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr, i1
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.dialect.atom_types import FIELDS, AtomType, TiledCopyType, TiledType
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.machine import MachineOp
from cute_dialect.dialect.typed_values import Properties
from cute_dialect.dialect.views import expect, expect_operands


def check_accumulate(atom: Attribute, value: Attribute) -> None:
    """Raise AlgebraError unless the atom has a field ``accumulate`` and the value is an ``i1``."""
    if not isinstance(atom, AtomType) or "accumulate" not in atom.fields():
        expect(atom, (), 0, "a wgmma atom or a !cute.tiled_mma of one for accumulate")
    if value != i1:
        raise AlgebraError(f"operand #1 must be i1 for accumulate, got {value}")


@cute_op
class AtomSetValueOp(MachineOp):
    """Sets a field of an atom's run-time state and returns the updated atom, of the same type.

    Syntax: ``%b = cute.atom.set_value(%a, %v) {field = FIELD} : (ATOM, V) -> ATOM`` with one of the fields below.

    The fields are:

    * ``tma_bar``: the mbarrier (``!cute.ptr<i64, smem>``) that counts the bytes of a load. A load requires one.
    * ``accumulate``: i1, for ``wgmma`` and its tiled MMA. If true, a ``gemm`` without C adds to D.
    * ``multicast_mask``: i16, one bit per CTA of the cluster. The load writes to each selected CTA, at the same offset
      of its shared memory.
    * ``cache_hint``: i64, an L2 cache policy.
    * ``pred``: i1. If false, the copy does nothing.
    * ``im2col_offsets``: a coordinate (W first) that is added to all pixels of an im2col load. The default is 0.

    The atom may be the atom of a tiled copy. A copy uses the values set in its own function, between the creation of
    the atom and the copy.

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
            raise AlgebraError(
                f"property 'field': {inner.name} has no field {field}; its fields are {', '.join(having)}"
            )
        assert isinstance(inner, AtomType)
        if not inner.takes(field, value):
            raise AlgebraError(f"operand #1 must be {FIELDS[field]} for {field}, got {value}")
        return [atom]


OPS = ops_of(__name__)
