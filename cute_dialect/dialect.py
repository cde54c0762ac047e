"""The dialects ``cute`` and ``cute_nvgpu``: their ops, types and attributes.

Everything is imported when a dialect is asked for, not before: give the functions themselves to xDSL's ``Context``.

>>> from xdsl.context import Context
>>> context = Context()
>>> context.register_dialect("cute", get_cute_dialect)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.dialect_interfaces.constant_materialization import ConstantMaterializationInterface
from xdsl.ir import Attribute, Dialect, Operation

from cute_dialect.types import CuteType

CORE_MODULES = ("make", "access", "algebra", "size_index", "arith", "tile", "diag")
"""The modules of :mod:`cute_dialect.ops` that hold the core ops, in the order of the documentation."""


class CuteConstants(ConstantMaterializationInterface):
    """Makes a ``cute.static`` of what a ``cute.static`` folds to."""

    def materialize_constant(self, value: Attribute, type: Attribute) -> Operation | None:
        from cute_dialect.ops.make import StaticOp

        if isinstance(type, CuteType) and type.is_static() and type.value_attr() == value:
            return StaticOp(type)
        return None


def core_ops() -> list[type[Operation]]:
    """The 63 ops of the core dialect, in the order of the documentation; other names of ops are left out."""
    from cute_dialect.ops import access, algebra, arith, diag, make, size_index, tile

    return [op for m in (make, access, algebra, size_index, arith, tile, diag) for op in m.OPS]


@cache
def get_core_dialect(name: str) -> Dialect:
    """``cute`` or ``cute_nvgpu`` without the extensions (:mod:`.extensions`): what nearly every file uses."""
    from cute_dialect import memory_types, nvgpu_types, types

    if name == "cute_nvgpu":
        return Dialect(name, [], nvgpu_types.ATTRS)
    from cute_dialect.ops import access, memory, tiled

    ops: list[type[Operation]] = [*core_ops(), *access.ALIASES, *memory.OPS, *tiled.OPS]
    attributes: list[type[Attribute]] = [*types.TYPES.values(), *types.ATTRS.values(), *memory_types.ATTRS]
    return Dialect(name, ops, attributes, [CuteConstants()])


@cache
def get_cute_dialect() -> Dialect:
    """The dialect ``cute``: layouts, their algebra, tensors and memory."""
    from cute_dialect import nvgpu_mma_types
    from cute_dialect.ops import arch

    core = get_core_dialect("cute")
    attributes: list[type[Attribute]] = [*core.attributes, *nvgpu_mma_types.CUTE_ATTRS]
    return Dialect("cute", [*core.operations, *arch.CUTE_OPS], attributes, [CuteConstants()])


@cache
def get_cute_nvgpu_dialect() -> Dialect:
    """The dialect ``cute_nvgpu``: atoms of copy and matrix multiply, and what is particular to one architecture."""
    from cute_dialect import (
        nvgpu_bulk_types,
        nvgpu_copy_types,
        nvgpu_im2col_types,
        nvgpu_mma_types,
        nvgpu_tma_types,
        nvgpu_types,
    )
    from cute_dialect.ops import arch

    ops: Sequence[type[Operation]] = arch.OPS
    attributes: Sequence[type[Attribute]] = [
        *nvgpu_types.ATTRS, *nvgpu_copy_types.ATTRS, *nvgpu_mma_types.ATTRS, *nvgpu_tma_types.ATTRS,
        *nvgpu_im2col_types.ATTRS, *nvgpu_bulk_types.ATTRS,
    ]  # fmt: skip
    return Dialect("cute_nvgpu", list(ops), list(attributes))
