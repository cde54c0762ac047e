"""The dialects ``cute`` and ``cute_nvgpu``: ops, types and attributes.

Modules are imported when a dialect is used, so pass the functions of this module to xDSL's ``Context``.  Contexts of
:mod:`cute_dialect.ir.context` import an extension when a file uses one of its names.

>>> from xdsl.context import Context
>>> context = Context()
>>> context.register_dialect("cute", get_cute_dialect)

The core of ``cute`` (layout algebra, tensors, universal copies) is always loaded.  Records describe the rest: one per
instruction family (:mod:`cute_dialect.cute_nvgpu`), and one for the optional part of ``cute``.

>>> module_of_op("cute.gemm"), module_of_op("cute.make_layout"), module_of_type("cute.tiled_mma")
('cute_dialect.cute_nvgpu.gemm', None, 'cute_dialect.cute_nvgpu.tiled_mma')
>>> tile_of_op("cute.gemm"), lower_of_op("cute.gemm")
('cute_dialect.cute_nvgpu.tiled_mma_lowering', None)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from xdsl.dialect_interfaces import DialectInterface
from xdsl.dialect_interfaces.constant_materialization import ConstantMaterializationInterface
from xdsl.ir import Attribute, Dialect, Operation

from cute_dialect.cute_nvgpu import FAMILIES, Family
from cute_dialect.dialect.types import CuteType
from cute_dialect.ir.context import LazyDialect

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.ir import Operation


# ----------------------------------------------------------------------------------------------------------- extensions


OF_CUTE = Family(
    "cute",
    ops={
        "dialect.tensors": ("cute.local_tile", "cute.local_partition", "cute.domain_offset", "cute.recast_tensor"),
        "dialect.shared_memory": ("cute.memref.alloc_smem", "cute.smem_base"),
        "dialect.tile_copies": (
            "cute.make_tiled_copy_tv", "cute.tiled.copy.retile", "cute.tiled_copy", "cute.cooperative_copy",
        ),
        "dialect.machine": ("cute.atom.set_value",),
    },
    to_arch={"dialect.tile_copies": "passes.lowering.tile_copies", "dialect.machine": "passes.lowering.tile_copies"},
    to_base={"dialect.shared_memory": "passes.lowering.smem"},
    package="cute_dialect",
)  # fmt: skip
"""The part of ``cute`` that most files do not use."""

EXTENSIONS = (OF_CUTE, *FAMILIES)
"""All records, in the order of the documentation."""


def _by_name(tables: list[tuple[Family, Mapping[str, tuple[str, ...]]]]) -> dict[str, str]:
    return {n: family.module(module) for family, table in tables for module, names in table.items() for n in names}


_MODULE_OF_TYPE = _by_name([(f, f.types) for f in EXTENSIONS])
_MODULE_OF_OP = _by_name([(f, f.ops) for f in EXTENSIONS])
_PREFIXES = sorted((n[:-1] for n in _MODULE_OF_OP if n.endswith("*")), key=len, reverse=True)
_TILE = {f.module(ops): f.module(tile) for f in EXTENSIONS for ops, tile in f.to_arch.items()}
_LOWER = {f.module(ops): f.module(lower) for f in EXTENSIONS for ops, lower in f.to_base.items()}
_ATOMS = {name: f.module(f.atoms) for f in EXTENSIONS if f.atoms for names in f.types.values() for name in names}
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


# ------------------------------------------------------------------------------------------------------------- dialects


CORE_MODULES = ("make", "access", "algebra", "sizes", "arith", "tile", "diag")
"""Modules with the core ops, in the order of the documentation."""


class CuteConstants(ConstantMaterializationInterface):
    """Materializes a folded ``cute.static``."""

    def materialize_constant(self, value: Attribute, type: Attribute) -> Operation | None:
        from cute_dialect.dialect.make import StaticOp  # late: start-up

        if isinstance(type, CuteType) and type.is_static() and type.value_attr() == value:
            return StaticOp(type)
        return None


def core_ops() -> list[type[Operation]]:
    """Return the 63 ops of the core dialect in the order of the documentation, without aliases."""
    return [op for m in CORE_MODULES for op in _held(f"cute_dialect.dialect.{m}", "OPS", Operation)]


@cache
def get_core_dialect(name: str) -> Dialect:
    """Build ``cute`` or ``cute_nvgpu`` without extensions, which suffices for most files."""
    from cute_dialect.dialect import access, atom_types, memory, memory_types, tiled, types  # late: start-up

    if name == "cute_nvgpu":
        return Dialect(name, [], [tiled.UniversalCopyType])

    ops: list[type[Operation]] = [*core_ops(), *access.ALIASES, *memory.OPS, *tiled.OPS]
    attributes: list[type[Attribute]] = [
        *types.TYPES.values(),
        *types.ATTRS.values(),
        *memory_types.ATTRS,
        *atom_types.ATTRS,
    ]
    return Dialect(name, ops, attributes, [CuteConstants()])


class ExtensibleDialect(LazyDialect):
    """A dialect of this project: its core, and extensions imported when a file names them.

    An unknown name imports all extensions.
    """

    def __init__(self, name: str, whole: Callable[[], Dialect], interfaces: Sequence[CuteConstants] = ()):
        super().__init__(name, [], [], list(interfaces))
        core = get_core_dialect(name)
        self._core_ops = {op.name: op for op in core.operations}
        self._core_attributes = list(core.attributes)
        self._whole = whole

    @property
    def operations(self) -> Iterator[type[Operation]]:
        """All ops."""
        return self._whole().operations

    @property
    def attributes(self) -> Iterator[type[Attribute]]:
        """All attributes and types."""
        return self._whole().attributes

    def find_op(self, name: str) -> type[Operation] | None:
        full = f"{self.name}.{name}"
        found = self._core_ops.get(full)
        if found is None:
            module = module_of_op(full)
            ops = self.operations if module is None else _held(module, "OPS", Operation)
            found = next((op for op in ops if op.name == full), None)
        return found

    def find_attributes(self, name: str) -> Sequence[type[Attribute]]:
        full = f"{self.name}.{name}"
        found = [a for a in self._core_attributes if a.name == full]
        if not found:
            module = module_of_type(full)
            attributes = self.attributes if module is None else _held(module, "ATTRS", Attribute)
            found = [a for a in attributes if a.name == full]
        return found


T = TypeVar("T")


def _held(module: str, what: str, kind: type[T]) -> list[type[T]]:
    """Return the classes in a list of a module."""
    return getattr(import_module(module), what)


@cache
def get_cute_dialect() -> Dialect:
    """Build the dialect ``cute``: layouts, their algebra, tensors and memory."""
    return _whole("cute", [CuteConstants()])


@cache
def get_cute_nvgpu_dialect() -> Dialect:
    """Build the dialect ``cute_nvgpu``: copy and MMA atoms, and ops of a single architecture."""
    return _whole("cute_nvgpu", [])


def _whole(name: str, interfaces: list[DialectInterface]) -> Dialect:
    """Build a dialect from its core and all extensions."""
    core = get_core_dialect(name)
    ops = [op for m in modules_of_ops() for op in _held(m, "OPS", Operation) if _is_of(name, op)]
    attributes = [a for m in modules_of_types() for a in _held(m, "ATTRS", Attribute) if _is_of(name, a)]
    return Dialect(name, [*core.operations, *ops], [*core.attributes, *attributes], interfaces)


def _is_of(dialect: str, definition: type[Operation] | type[Attribute]) -> bool:
    return definition.name.partition(".")[0] == dialect


LAZY_DIALECTS: Mapping[str, Callable[[], Dialect]] = {
    "cute": lambda: ExtensibleDialect("cute", get_cute_dialect, [CuteConstants()]),
    "cute_nvgpu": lambda: ExtensibleDialect("cute_nvgpu", get_cute_nvgpu_dialect),
}
"""Dialects that a context of :mod:`cute_dialect.ir.context` registers; each is built on first use."""
