"""Lazy loading of dialects.  A file loads only the dialects and ops that it uses.

Dialects are registered by name, and their modules are imported when a file refers to them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Literal, TypeAlias

from xdsl.context import Context
from xdsl.ir import Attribute, Dialect, Operation, TypeAttribute

from cute_dialect.ir.xdsl_compat import OpenContext

DialectScope: TypeAlias = Literal["cute", "base", "all"]

_BASE = (
    "arith", "builtin", "cf", "func", "gpu", "index", "llvm", "math", "memref", "nvgpu", "nvvm", "scf", "ub", "vector",
)  # fmt: skip
_UPSTREAM: Mapping[str, tuple[str, ...]] = {
    "cute": ("arith", "builtin", "func", "gpu", "llvm", "math", "scf", "ub"),
    "base": _BASE,
    "all": _BASE,
}
_UPSTREAM_REGISTRY = "cute_dialect.upstream.registry"
_OWN = ("cute", "cute_nvgpu")
_OWN_REGISTRY = "cute_dialect.dialect.registry"


class LazyDialect(Dialect, ABC):
    """A dialect that imports or creates each of its classes on first use.

    ``operations`` and ``attributes`` load all classes.
    """

    @abstractmethod
    def find_op(self, name: str) -> type[Operation] | None:
        """Return the class of op ``dialect.name``, or None."""

    @abstractmethod
    def find_attributes(self, name: str) -> Sequence[type[Attribute]]:
        """Return the classes of the attribute and the type ``dialect.name``, if they exist."""


class CuteContext(OpenContext):
    """A context that loads classes of a :class:`LazyDialect` by name on first use.

    A query for all ops or attributes, such as for a spelling suggestion in a message, loads all classes.
    """

    def __init__(self, allow_unregistered: bool = False):
        super().__init__(allow_unregistered)
        self._lazy: dict[str, LazyDialect] = {}

    def load_registered_dialect(self, name: str) -> None:
        """Load a dialect.  A lazy dialect loads none of its classes yet."""
        factory = self.dialect_factories.get(name)
        dialect = factory() if factory is not None else None
        if isinstance(dialect, LazyDialect):
            self.dialects_by_name[name] = self._lazy[name] = dialect
        else:
            super().load_registered_dialect(name)

    def clone(self) -> Context:
        """Return a copy that loads further dialects independently."""
        made = type(self)(self.allow_unregistered)
        made.dialect_factories.update(self.dialect_factories)
        made.dialects_by_name.update(self.dialects_by_name)
        made.ops_by_name.update(self.ops_by_name)
        made.attrs_by_name.update(self.attrs_by_name)
        made.types_by_name.update(self.types_by_name)
        made._lazy.update(self._lazy)
        return made

    def get_known_op(self, name: str) -> type[Operation] | None:
        """Return the class of an op by its full name, or None."""
        found = super().get_known_op(name)
        if found is None:
            prefix, _, rest = name.partition(".")
            dialect = self._lazy.get(prefix)
            found = dialect.find_op(rest) if dialect is not None else None
            if found is not None:
                self.ops_by_name[name] = found
        return found

    def get_optional_type(self, name: str) -> type[TypeAttribute] | None:
        """Return the class of a type by its full name, or None."""
        if name not in self.types_by_name:
            self._find_attributes(name)
        return super().get_optional_type(name)

    def get_optional_attr(self, name: str) -> type[Attribute] | None:
        """Return the class of an attribute by its full name, or None."""
        if name not in self.attrs_by_name:
            self._find_attributes(name)
        return super().get_optional_attr(name)

    @property
    def loaded_ops(self) -> Iterable[type[Operation]]:
        """All ops of the dialects loaded so far."""
        self._load_rest()
        return self.ops_by_name.values()

    @property
    def loaded_attrs(self) -> Iterable[type[Attribute]]:
        """All attributes of the dialects loaded so far."""
        self._load_rest()
        return self.attrs_by_name.values()

    @property
    def loaded_types(self) -> Iterable[type[TypeAttribute]]:
        """All types of the dialects loaded so far."""
        self._load_rest()
        return self.types_by_name.values()

    def _find_attributes(self, name: str) -> None:
        """Load the type and the attribute of this name if they belong to a lazy dialect."""
        prefix, _, rest = name.partition(".")
        if rest and prefix in self.dialect_factories:
            if prefix not in self.dialects_by_name:
                self.load_registered_dialect(prefix)
            if prefix in self._lazy:
                self._add_attributes(self._lazy[prefix].find_attributes(rest))

    def _load_rest(self) -> None:
        for dialect in self._lazy.values():
            self.ops_by_name.update({op.name: op for op in dialect.operations})
            self._add_attributes(dialect.attributes)

    def _add_attributes(self, attributes: Iterable[type[Attribute]]) -> None:
        for attribute in attributes:
            if issubclass(attribute, TypeAttribute):
                self.types_by_name[attribute.name] = attribute
            else:
                self.attrs_by_name[attribute.name] = attribute


def make_context(dialects: DialectScope = "all", *, allow_unregistered: bool = False) -> Context:
    """Return a context with the dialects of a scope.

    Args:
        dialects: ``cute`` for programs before lowering, ``base`` for the output of ``cute-to-base``, or ``all`` for
            both.  With ``base`` a remaining cute op is unregistered.
        allow_unregistered: accept ops of unregistered dialects.
    """
    context = CuteContext(allow_unregistered)
    import_module(_UPSTREAM_REGISTRY).register(context, _UPSTREAM[dialects])
    if dialects != "base":
        for name in _OWN:
            context.register_dialect(name, _own(name))
    return context


def _own(name: str) -> Callable[[], Dialect]:
    return lambda: import_module(_OWN_REGISTRY).LAZY_DIALECTS[name]()
