"""The problem of shared keys in ``op.cascade_attention``.

All queries of a group of sequences are the queries of one sequence, which sees all of the group's shared keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from cute_dialect.op.errors import DtypeError, LayoutError, ShapeError, UnsupportedError
from cute_dialect.op.problems.attention import LAYOUTS, Form, check_lengths, check_pages, check_rising, numbers_of
from cute_dialect.runtime.arrays import ArrayView

CASCADE = "cascade_attention"
"""Name of the function in errors."""
OTHERS = ("sinks", "cu_groups", "seqused_shared", "page_table_shared", "seqused_k", "page_table")
"""Arrays that a call may have, in the order of the torch operator's arguments."""


class CascadeNumbers(NamedTuple):
    """Arguments of :func:`cute_dialect.op.cascade_attention` that are not arrays."""

    causal: bool = True
    scale: float | None = None
    softcap: float = 0.0
    lse: bool = False
    layout: str = "bhsd"
    seqused_k_offset: int = 0
    max_group: int | None = None


def shared_form(views: Mapping[str, ArrayView], form: Form, largest: object) -> Form:
    """Return the problem of the shared keys.  Raises OpError.

    Args:
        views: the arrays of a call.
        form: the problem of the sequences' own keys.
        largest: sequences of the largest group, or None.
    """
    b, h, s, d = LAYOUTS[form.layout]
    k, v, table, begins = (views.get(x) for x in ("k_shared", "v_shared", "page_table_shared", "cu_groups"))
    assert k is not None and v is not None
    heads = form.heads // form.sharing
    for name, x, size in (("k_shared", k, form.size), ("v_shared", v, form.values)):
        if len(x.shape) != 4 or (x.shape[h], x.shape[d]) != (heads, size) or x.shape[:3] != k.shape[:3]:
            raise ShapeError(
                f"{CASCADE}: {name} has shape {x.shape}; pass an array of rank 4 with {heads} heads of {size}, like "
                f"{name[0]}, and as many keys as k_shared"
            )
    groups, keys, page = k.shape[b], k.shape[s], 0
    if table is not None:
        if table.dtype != "i32":
            raise DtypeError(f"{CASCADE}: page_table_shared has dtype {table.dtype}; pass an i32 array")
        if len(table.shape) != 2 or keys < 1:
            raise ShapeError(
                f"{CASCADE}: page_table_shared has shape {table.shape}, and k_shared has pages of {keys} keys; pass a "
                "table (G, P), and pages of 1 key or more"
            )
        groups, keys, page = table.shape[0], keys * table.shape[1], keys
    if begins is None and groups != 1:
        raise ShapeError(f"{CASCADE}: k_shared has {groups} groups; pass cu_groups, the first sequence of each group")
    if begins is not None:
        if begins.dtype != "i32":
            raise DtypeError(f"{CASCADE}: cu_groups has dtype {begins.dtype}; pass an i32 array")
        if begins.shape != (groups + 1,):
            raise ShapeError(f"{CASCADE}: cu_groups has shape {begins.shape}; pass an array of shape ({groups + 1},)")
        if begins.strides[0] != 1:
            raise LayoutError(f"{CASCADE}: cu_groups has strides {begins.strides}; pass a contiguous array")
    if largest is not None and (type(largest) is not int or largest < 0):
        raise UnsupportedError(f"{CASCADE}: max_group is {largest!r}; pass an int of 0 or more")
    if begins is not None and begins.device < 0:
        _check_groups(numbers_of(begins), form.batch, largest)
    used = views.get("seqused_shared")
    if used is not None:
        check_lengths(CASCADE, "seqused_shared", used, groups, keys)
    if table is not None and table.device < 0:
        ends = [table.shape[1]] * groups if used is None else [-(-n // page) for n in numbers_of(used)]
        check_pages(CASCADE, table, k.shape[b], [range(end) for end in ends], "page_table_shared")
    found = form._replace(batch=groups, queries=form.batch * form.queries, keys=keys, page=page, used=used is not None)
    found = found._replace(mask="full", from_end=False, left=0, right=0, grown=0)
    if begins is None:
        return found
    most = form.batch if largest is None else min(largest, form.batch)
    return found._replace(packed=True, each=form.queries, longest=most * form.queries)


def _check_groups(begins: list[int], batch: int, largest: int | None) -> None:
    """Raise ShapeError unless offsets of groups in CPU memory cover all sequences."""
    check_rising("cu_groups", begins, batch)
    most = max(y - x for x, y in pairwise(begins))
    if begins[-1] != batch:
        raise ShapeError(
            f"{CASCADE}: cu_groups ends at {begins[-1]}; pass offsets that end at {batch}, the sequences of q"
        )
    if largest is not None and most > largest:
        raise ShapeError(f"{CASCADE}: max_group is {largest}, but a group has {most} sequences; pass {most} or more")
