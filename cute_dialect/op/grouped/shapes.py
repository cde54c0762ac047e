"""What a grouped product is of: which extent its groups cut, read from the ranks of its operands and checked.

>>> shapes_of("grouped_mm", (100, 64), (8, 64, 32), {"offs": (8,)})
Shapes(form='m', groups=8, m=100, n=32, k=64)
>>> shapes_of("grouped_mm", (64, 100), (100, 32), {"offs": (8,)}).result
(8, 64, 32)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cute_dialect.op.errors import ShapeError, UnsupportedError

__all__ = ["Shapes", "shapes_of"]


class Shapes(NamedTuple):
    """A grouped product: ``form``, the extent that is cut (``m``, ``n``, ``k``, or ``rows``: how many of its rows each
    matrix of a batch uses), how many groups there are, and all extents, those that are cut as a whole.
    """

    form: str
    groups: int
    m: int
    n: int
    k: int

    @property
    def result(self) -> tuple[int, ...]:
        """The shape of the result."""
        return (self.groups, self.m, self.n) if self.form in ("k", "rows") else (self.m, self.n)

    @property
    def cut(self) -> int:
        """The extent that is cut."""
        return {"n": self.n, "k": self.k}.get(self.form, self.m)


_FORMS = {(2, 3): "m", (3, 2): "n", (2, 2): "k", (3, 3): "rows"}
"""Ranks of a and b -> what is cut."""


def shapes_of(
    call: str, a: Sequence[int], b: Sequence[int], given: Mapping[str, Sequence[int]], out: Sequence[int] | None = None
) -> Shapes:
    """Return what a product of such operands is; ``given``: the shapes of offs, lengths, row_groups, those that there
    are.  Raises ShapeError, UnsupportedError.
    """
    form = _FORMS.get((len(a), len(b)))
    if form is None:
        raise ShapeError(f"{call}: expected a and b of rank 2 or 3, got {tuple(a)} and {tuple(b)}")
    if len(given) != 1:
        raise UnsupportedError(
            f"{call}: expected one of offs, lengths and row_groups, got {', '.join(given) or 'none of them'}"
        )
    ((name, shape),) = given.items()
    wanted = {"rows": ("lengths",), "m": ("offs", "row_groups")}.get(form, ("offs",))
    if name not in wanted:
        raise UnsupportedError(
            f"{call}: expected {' or '.join(wanted)} for a of rank {len(a)} and b of rank {len(b)}, got {name}"
        )
    if len(shape) != 1:
        raise ShapeError(f"{call}: expected {name} of rank 1, got {tuple(shape)}")
    m, k, n = a[-2], a[-1], b[-1]
    if b[-2] != k:
        inner = f"({k}, N)" if len(b) == 2 else f"({'G' if len(a) == 2 else a[0]}, {k}, N)"
        raise ShapeError(f"{call}: expected b of {inner}, as a is {tuple(a)}, got {tuple(b)}")
    if form == "rows" and a[0] != b[0]:
        raise ShapeError(f"{call}: expected as many matrices in b as in a ({a[0]}), got {b[0]}")
    if form == "k":
        groups = shape[0] if out is None or len(out) != 3 else out[0]
        holder = "out"
    else:
        groups, holder = (b if form == "m" else a)[0], "b" if form == "m" else "a"
    if name == "row_groups":
        if shape[0] != m:
            raise ShapeError(f"{call}: expected row_groups of ({m},), a group for each row of a, got {tuple(shape)}")
    elif name == "lengths":
        if shape[0] != groups:
            raise ShapeError(f"{call}: expected lengths of ({groups},), as a has, got {tuple(shape)}")
    elif shape[0] not in (groups, groups + 1):
        raise ShapeError(
            f"{call}: expected offs of ({groups},) or ({groups + 1},), as {holder} has {groups} groups, "
            f"got {tuple(shape)}"
        )
    return Shapes(form, groups, m, n, k)
