"""Which dialects a tool knows: made lazily, so that a file pays for the dialects, and of ours the ops, that it uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Literal, TypeAlias

from xdsl.context import Context
from xdsl.ir import Attribute, Dialect, Operation, TypeAttribute

from cute_dialect.extensions import module_of_op, module_of_type
from cute_dialect.ir.xdsl_compat import OpenContext

if TYPE_CHECKING:
    from cute_dialect.upstream.lazy import TableDialect

DialectScope: TypeAlias = Literal["cute", "base", "all"]

_BASE = (
    "arith", "builtin", "cf", "func", "gpu", "index", "llvm", "math", "memref", "nvgpu", "nvvm", "scf", "ub", "vector",
)  # fmt: skip
_UPSTREAM: Mapping[str, tuple[str, ...]] = {
    "cute": ("arith", "builtin", "func", "gpu", "llvm", "math", "scf", "ub"),
    "base": _BASE,
    "all": _BASE,
}
_OWN = ("cute", "cute_nvgpu")


class CuteContext(OpenContext):
    """A context that knows ``cute`` and ``cute_nvgpu`` whole, but imports an extension when a name of it is met.

    A name that :mod:`.extensions` does not list, and a question for all ops or attributes that there are (the nearest
    name, in a message), import everything.  Of a dialect whose classes are made from upstream's tables, those are made
    that are met.
    """

    def load_registered_dialect(self, name: str) -> None:
        """Load a dialect; of ours just the core."""
        if name not in _OWN or self.dialect_factories.get(name) not in (_cute, _cute_nvgpu):
            from cute_dialect.upstream.lazy import TableDialect

            factory = self.dialect_factories.get(name)
            dialect = factory() if factory is not None else None
            if isinstance(dialect, TableDialect):
                self.dialects_by_name[name] = self._tables[name] = dialect
            else:
                super().load_registered_dialect(name)
            return
        from cute_dialect.dialect import get_core_dialect

        dialect = get_core_dialect(name)
        self.dialects_by_name[name] = dialect
        self._add(dialect.operations, dialect.attributes)

    @cached_property
    def _tables(self) -> dict[str, TableDialect]:
        """The dialects that make their classes when they are asked for, as far as they are loaded."""
        from cute_dialect.upstream.lazy import TableDialect

        return {name: d for name, d in self.dialects_by_name.items() if isinstance(d, TableDialect)}

    def clone(self) -> Context:
        """Return a copy; what it loads later is its own."""
        made = type(self)(self.allow_unregistered)
        made.dialect_factories.update(self.dialect_factories)
        made.dialects_by_name.update(self.dialects_by_name)
        made.ops_by_name.update(self.ops_by_name)
        made.attrs_by_name.update(self.attrs_by_name)
        made.types_by_name.update(self.types_by_name)
        return made

    def get_known_op(self, name: str) -> type[Operation] | None:
        found = super().get_known_op(name)
        if found is None:
            prefix, _, rest = name.partition(".")
            if prefix in self._tables:
                found = self._tables[prefix].find_op(rest)
                if found is not None:
                    self.ops_by_name[name] = found
            elif self._extend(name, module_of_op(name)):
                found = self.ops_by_name.get(name)
        return found

    def get_optional_type(self, name: str) -> type[TypeAttribute] | None:
        """The class of a type, or ``None``."""
        if name not in self.types_by_name:
            self._load_own(name)
        return super().get_optional_type(name)

    def get_optional_attr(self, name: str) -> type[Attribute] | None:
        """The class of an attribute, or ``None``."""
        if name not in self.attrs_by_name:
            self._load_own(name)
        return super().get_optional_attr(name)

    @property
    def loaded_ops(self) -> Iterable[type[Operation]]:
        """All ops of the dialects met so far."""
        self._load_rest()
        return self.ops_by_name.values()

    @property
    def loaded_attrs(self) -> Iterable[type[Attribute]]:
        """All attributes of the dialects met so far."""
        self._load_rest()
        return self.attrs_by_name.values()

    @property
    def loaded_types(self) -> Iterable[type[TypeAttribute]]:
        """All types of the dialects met so far."""
        self._load_rest()
        return self.types_by_name.values()

    def _load_own(self, name: str) -> None:
        """See to it that a type or attribute of ours, or of a table, is there."""
        dialect, _, rest = name.partition(".")
        if rest and dialect in self.dialect_factories:
            if dialect not in self.dialects_by_name:
                self.load_registered_dialect(dialect)
            if dialect in self._tables:
                self._add((), self._tables[dialect].find_attributes(rest))
            elif dialect in _OWN and name not in self.types_by_name and name not in self.attrs_by_name:
                self._extend(name, module_of_type(name))

    def _extend(self, name: str, module: str | None) -> bool:
        """Load the extension that holds ``name``, or all if that is not known.  Tells whether ``name`` may be ours."""
        if name.partition(".")[0] not in self.dialects_by_name or not name.startswith(("cute.", "cute_nvgpu.")):
            return False
        if module is None:
            self._load_rest()
            return True
        found = import_module(module)
        self._add([*getattr(found, "OPS", ()), *getattr(found, "CUTE_OPS", ())], ())
        self._add((), [*getattr(found, "ATTRS", ()), *getattr(found, "CUTE_ATTRS", ())])
        return True

    def _load_rest(self) -> None:
        for name in _OWN:
            if name in self.dialects_by_name and self.dialect_factories.get(name) in (_cute, _cute_nvgpu):
                dialect = self.dialect_factories[name]()
                self._add(dialect.operations, dialect.attributes)
        for dialect in self._tables.values():
            self._add(dialect.operations, dialect.attributes)

    def _add(self, ops: Iterable[type[Operation]], attributes: Iterable[type[Attribute]]) -> None:
        """Make classes known, those of a dialect that is not registered here (``cute_nvgpu`` alone) aside."""
        for op in ops:
            if op.name.partition(".")[0] in self.dialect_factories:
                self.ops_by_name[op.name] = op
        for a in attributes:
            if a.name.partition(".")[0] in self.dialect_factories:
                if issubclass(a, TypeAttribute):
                    self.types_by_name[a.name] = a
                else:
                    self.attrs_by_name[a.name] = a


def make_context(dialects: DialectScope = "all", *, allow_unregistered: bool = False) -> Context:
    """A context in which the dialects of a scope can be used.

    ``cute`` is what a program is written in before it is lowered, ``base`` what is left after ``cute-to-base`` (so that
    a cute op that leaked is an unregistered one), ``all`` both.
    """
    from cute_dialect.upstream.registry import register

    context = CuteContext(allow_unregistered=allow_unregistered)
    register(context, _UPSTREAM[dialects])
    if dialects != "base":
        context.register_dialect("cute", _cute)
        context.register_dialect("cute_nvgpu", _cute_nvgpu)
    return context


def _cute() -> Dialect:
    from cute_dialect.dialect import get_cute_dialect

    return get_cute_dialect()


def _cute_nvgpu() -> Dialect:
    from cute_dialect.dialect import get_cute_nvgpu_dialect

    return get_cute_nvgpu_dialect()
