"""Classes that are built from a table on first use, and dialects of such classes.

The tables of upstream have 800 ops and 200 attributes, of which a file uses about ten. A :class:`MadeLater` maps their
names to classes. A :class:`TableDialect` provides them to a context by name
(:class:`cute_dialect.ir.context.CuteContext`), or all of them to other tools.

>>> squares = MadeLater(("1", "2"), lambda name: type(f"Square{name}", (), {}))
>>> "2" in squares, len(squares), squares["2"].__name__, squares["2"] is squares["2"], squares.get("3")
(True, 2, 'Square2', True, None)
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from xdsl.ir import Attribute, Operation

from cute_dialect.ir.context import LazyDialect

T = TypeVar("T")


class MadeLater(Mapping[str, type[T]]):
    """Mapping of names to classes. ``make(name)`` builds a class on first access."""

    def __init__(self, names: Iterable[str], make: Callable[[str], type[T]]) -> None:
        self._made: dict[str, type[T] | None] = dict.fromkeys(names)
        self._make = make

    def __getitem__(self, name: str) -> type[T]:
        found = self._made[name]
        if found is None:
            found = self._made[name] = self._make(name)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._made

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


class TableDialect(LazyDialect):
    """Dialect that builds its classes on first use.

    ``ops`` and ``attributes`` are keyed by name without dialect. ``others`` are attributes and types that already
    exist.
    """

    def __init__(
        self,
        name: str,
        ops: Mapping[str, type[Operation]],
        attributes: Mapping[str, type[Attribute]],
        others: Sequence[type[Attribute]] = (),
    ) -> None:
        super().__init__(name)
        self._ops_by_name = ops
        self._attributes_by_name = attributes
        self._others = others

    @property
    def operations(self) -> Iterator[type[Operation]]:
        """All ops."""
        return iter(self._ops_by_name.values())

    @property
    def attributes(self) -> Iterator[type[Attribute]]:
        """All attributes and types."""
        yield from self._others
        yield from self._attributes_by_name.values()

    def find_op(self, name: str) -> type[Operation] | None:
        return self._ops_by_name.get(name)

    def find_attributes(self, name: str) -> list[type[Attribute]]:
        found = [a for a in self._others if a.name == f"{self.name}.{name}"]
        if name in self._attributes_by_name:
            found.append(self._attributes_by_name[name])
        return found
