"""Modules of rarely used ops and types and of their lowerings, imported when a file names one.

The core of ``cute`` (layout algebra, tensors, universal copies) is always loaded.  Records describe the rest: one per
instruction family (:mod:`cute_dialect.cute_nvgpu`), and one for the optional part of ``cute``.

>>> module_of_op("cute.gemm"), module_of_op("cute.make_layout"), module_of_type("cute.tiled_mma")
('cute_dialect.cute_nvgpu.tiled_mma.gemm', None, 'cute_dialect.cute_nvgpu.tiled_mma.types')
>>> tile_of_op("cute.gemm"), lower_of_op("cute.gemm")
('cute_dialect.cute_nvgpu.tiled_mma.tile', None)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from cute_dialect.cute_nvgpu import FAMILIES
from cute_dialect.cute_nvgpu.family import Family

if TYPE_CHECKING:
    from xdsl.ir import Operation

OF_CUTE = Family(
    "cute_dialect",
    ops={
        "dialect.tensors": ("cute.local_tile", "cute.local_partition", "cute.domain_offset", "cute.recast_tensor"),
        "dialect.shared_memory": ("cute.memref.alloc_smem", "cute.smem_base"),
        "dialect.tile_copies": (
            "cute.make_tiled_copy_tv", "cute.tiled.copy.retile", "cute.tiled_copy", "cute.cooperative_copy",
        ),
        "dialect.atom_state": ("cute.atom.set_value",),
    },
    tile={"dialect.tile_copies": "passes.lowering.tile_copies", "dialect.atom_state": "passes.lowering.atom_state"},
    lower={"dialect.shared_memory": "passes.lowering.smem"},
)  # fmt: skip
"""The part of ``cute`` that most files do not use."""

EXTENSIONS = (OF_CUTE, *FAMILIES)
"""All records, in the order of the documentation."""


def _by_name(tables: list[tuple[Family, Mapping[str, tuple[str, ...]]]]) -> dict[str, str]:
    return {n: family.module(module) for family, table in tables for module, names in table.items() for n in names}


_MODULE_OF_TYPE = _by_name([(f, f.types) for f in EXTENSIONS])
_MODULE_OF_OP = _by_name([(f, f.ops) for f in EXTENSIONS])
_PREFIXES = sorted((n[:-1] for n in _MODULE_OF_OP if n.endswith("*")), key=len, reverse=True)
_TILE = {f.module(ops): f.module(tile) for f in EXTENSIONS for ops, tile in f.tile.items()}
_LOWER = {f.module(ops): f.module(lower) for f in EXTENSIONS for ops, lower in f.lower.items()}
_ATOMS = {name: f.module_of_atoms() for f in EXTENSIONS if f.atoms for names in f.types.values() for name in names}
_INSTRUCTIONS = {atom: op for f in EXTENSIONS for atom, op in f.instructions.items()}


@cache
def module_of_op(name: str) -> str | None:
    """Return the module of an op; ``None`` for core ops and unknown names."""
    found = _MODULE_OF_OP.get(name)
    if found is None:
        found = next((_MODULE_OF_OP[prefix + "*"] for prefix in _PREFIXES if name.startswith(prefix)), None)
    return found


def module_of_type(name: str) -> str | None:
    """Return the module of a type or attribute; ``None`` for those of the core and unknown names."""
    return _MODULE_OF_TYPE.get(name)


def module_of_atom(name: str) -> str:
    """Return the module that defines ``copy`` or ``multiply`` for an atom type."""
    return _ATOMS[name]


def instruction_of_atom(name: str) -> type[Operation]:
    """Return the op of an atom type that stands for a single instruction; see ``Family.instructions``."""
    op = _INSTRUCTIONS[name]
    ops: Sequence[type[Operation]] = import_module(module_of_op(op) or "").OPS
    return next(cls for cls in ops if cls.name == op)


def tile_of_op(name: str) -> str | None:
    """Return the module that lowers an op in ``convert-cute-algo-to-arch``; ``None`` for core ops."""
    return _TILE.get(module_of_op(name) or "")


def lower_of_op(name: str) -> str | None:
    """Return the module that lowers an op in ``cute-to-base``; ``None`` for core ops."""
    return _LOWER.get(module_of_op(name) or "")


def modules_of_ops() -> list[str]:
    """Return all modules of ops, in the order of the documentation."""
    return [f.module(m) for f in EXTENSIONS for m in f.ops]


def modules_of_types() -> list[str]:
    """Return all modules of types, in the order of the documentation."""
    return [f.module(m) for f in EXTENSIONS for m in f.types]
