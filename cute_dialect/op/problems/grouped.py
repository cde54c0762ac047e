"""Grouped GEMMs: their arguments, and the form that the ranks of the operands select.

>>> shapes_of("grouped_mm", (100, 64), (8, 64, 32), {"offs": (8,)})
Shapes(form='m', groups=8, m=100, n=32, k=64)
>>> shapes_of("grouped_mm", (64, 100), (100, 32), {"offs": (8,)}).result
(8, 64, 32)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.errors import ShapeError, UnsupportedError

GROUPS = ("offs", "lengths", "row_groups")
"""Arguments that define the groups, also of the torch operator."""


class GroupedArguments(NamedTuple):
    """The arguments of a grouped GEMM, or of the GEMMs of lists."""

    a: Any
    b: Any
    groups: Mapping[str, Any]  # offs, lengths or row_groups, those that are passed
    out: Any = None
    extras: LinearCombination = LinearCombination()  # its alpha, and for lists c and bias, may be one per group
    epilogue: Any = None
    args: Mapping[str, Any] | None = None
    rest: str = "keep"
    schedule: str = "auto"
    dtype: object = None
    kernel: object = None
    # First index of each group, for offs of groups that do not begin at the end of the previous one.
    begins: Any = None
    # scale_a and scale_b, checked: block scales if accumulator is "block", else factors of the accumulator.
    scales: Mapping[str, Any] = MappingProxyType({})
    gather: Any = None  # row of a for each row to multiply


class Shapes(NamedTuple):
    """The form and the extents of a grouped GEMM."""

    # The extent that groups split: "m", "n" or "k"; or "rows" for a batch of which each matrix uses its first rows.
    form: str
    groups: int
    m: int  # The extent that groups split counts all groups together.
    n: int
    k: int

    @property
    def result(self) -> tuple[int, ...]:
        """Shape of the result."""
        return (self.groups, self.m, self.n) if self.form in ("k", "rows") else (self.m, self.n)

    @property
    def cut(self) -> int:
        """The extent that groups split."""
        return {"n": self.n, "k": self.k}.get(self.form, self.m)


_FORMS = {(2, 3): "m", (3, 2): "n", (2, 2): "k", (3, 3): "rows"}
"""Ranks of a and b -> form."""


def shapes_of(
    call: str, a: Sequence[int], b: Sequence[int], given: Mapping[str, Sequence[int]], out: Sequence[int] | None = None
) -> Shapes:
    """Return the form and the extents of a grouped GEMM; ``given`` holds the shape of offs, lengths or row_groups.

    Raises ShapeError, UnsupportedError.
    """
    form = _FORMS.get((len(a), len(b)))
    if form is None:
        raise ShapeError(f"{call}: a and b must have rank 2 or 3, got shapes {tuple(a)} and {tuple(b)}")
    if len(given) != 1:
        raise UnsupportedError(
            f"{call}: pass exactly one of offs, lengths and row_groups, got {', '.join(given) or 'none of them'}"
        )
    ((name, shape),) = given.items()
    wanted = {"rows": ("lengths",), "m": ("offs", "row_groups")}.get(form, ("offs",))
    if name not in wanted:
        raise UnsupportedError(
            f"{call}: {name} does not suit a of rank {len(a)} and b of rank {len(b)}; pass {' or '.join(wanted)}"
        )
    if len(shape) != 1:
        raise ShapeError(f"{call}: {name} has shape {tuple(shape)}; it must have rank 1")
    m, k, n = a[-2], a[-1], b[-1]
    if b[-2] != k:
        inner = f"({k}, N)" if len(b) == 2 else f"({'G' if len(a) == 2 else a[0]}, {k}, N)"
        raise ShapeError(f"{call}: b has shape {tuple(b)}; it must have {inner}, because a has {tuple(a)}")
    if form == "rows" and a[0] != b[0]:
        raise ShapeError(f"{call}: b has {b[0]} matrices, but a has {a[0]}; the numbers must be equal")
    if form == "k":
        groups = shape[0] if out is None or len(out) != 3 else out[0]
        holder = "out"
    else:
        groups, holder = (b if form == "m" else a)[0], "b" if form == "m" else "a"
    if name == "row_groups":
        if shape[0] != m:
            raise ShapeError(f"{call}: row_groups has shape {tuple(shape)}; it must have ({m},), one per row of a")
    elif name == "lengths":
        if shape[0] != groups:
            raise ShapeError(f"{call}: lengths has shape {tuple(shape)}; it must have ({groups},), one per matrix of a")
    elif shape[0] not in (groups, groups + 1):
        raise ShapeError(
            f"{call}: offs has shape {tuple(shape)}; it must have ({groups},) or ({groups + 1},), because {holder} has "
            f"{groups} groups"
        )
    return Shapes(form, groups, m, n, k)
