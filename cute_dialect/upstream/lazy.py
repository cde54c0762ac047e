"""Classes made from a table when they are first asked for, and dialects of such classes.

The tables of upstream hold 800 ops and 200 attributes, of which a file uses some ten.  A :class:`MadeLater` is the
mapping of their names to classes; a :class:`TableDialect` gives them to a context by name
(:class:`cute_dialect.ir.context.CuteContext`), or all to whoever asks for all.

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
    """Classes by name, each made by ``make(name)`` when it is first asked for."""

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
    """A dialect that makes its classes when they are asked for.

    ``ops`` and ``attributes`` are by name without dialect; ``others`` are attributes and types that are there anyway.
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
        """Every op."""
        return iter(self._ops_by_name.values())

    @property
    def attributes(self) -> Iterator[type[Attribute]]:
        """Every attribute and type."""
        yield from self._others
        yield from self._attributes_by_name.values()

    def find_op(self, name: str) -> type[Operation] | None:
        return self._ops_by_name.get(name)

    def find_attributes(self, name: str) -> list[type[Attribute]]:
        found = [a for a in self._others if a.name == f"{self.name}.{name}"]
        if name in self._attributes_by_name:
            found.append(self._attributes_by_name[name])
        return found
