"""Attention to keys that sequences share and to their own keys, ``op.cascade_attention``.

A kernel reads the shared keys once for all queries of a group of sequences, another one reads each sequence's own keys,
and a third one combines the partial results, which are f32.
"""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.op.arrays.library import call_operator
from cute_dialect.op.errors import DtypeError, LayoutError, ShapeError, UnsupportedError, named
from cute_dialect.op.execute.array_call import RowCall
from cute_dialect.op.execute.attention import check_call, computed_cascade
from cute_dialect.op.execute.call_cache import KnownCalls, number
from cute_dialect.op.execute.recording import needs_gradients
from cute_dialect.op.keywords import check_flag, check_keywords
from cute_dialect.op.problems.attention import (
    CALL,
    LAYOUTS,
    SPELLINGS,
    Form,
    Numbers,
    check_lengths,
    check_pages,
    check_rising,
    form_of,
    is_number,
    numbers_of,
)
from cute_dialect.op.select.backends import WGMMA
from cute_dialect.runtime.settings import flag

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.op.signature_types import Array, Interpreted

CASCADE = "cascade_attention"
"""Name of the function in errors."""
_OTHERS = ("sinks", "cu_groups", "seqused_shared", "page_table_shared", "seqused_k", "page_table")
"""Arrays that a call may have, in the order of the torch operator's arguments."""
_KNOWN = KnownCalls(tf32=False)
"""Cached calls."""


class CascadeNumbers(NamedTuple):
    """Arguments of :func:`cascade_attention` that are not arrays."""

    causal: bool
    scale: float | None
    softcap: float
    lse: bool
    layout: str
    seqused_k_offset: int
    max_group: int | None


def cascade_attention(
    q: Array, k_shared: Array, v_shared: Array, k: Array, v: Array, *, causal: bool = True,
    scale: float | None = None, softcap: float = 0.0, sinks: Array = None, lse: bool = False, layout: str = "bhsd",
    cu_groups: Array = None, max_group: int | None = None, seqused_shared: Array = None,
    page_table_shared: Array = None, seqused_k: Array = None, seqused_k_offset: int = 0, page_table: Array = None,
    out: Array = None, device: object = None, stream: object = None, **run: Unpack[Interpreted],
) -> Array:  # fmt: skip
    """Return attention of sequences that begin with shared keys, such as those of one system prompt.

    The keys of a sequence are the shared keys of its group, then its own keys.  Shared keys are read once for all
    queries of a group, not once for each sequence.

    Args:
        q: (B, H, S, D), f16 or bf16.
        k_shared, v_shared: (G, H', S0, D), keys and values of G groups of sequences; of D' elements in ``v_shared``.
        k, v: (B, H', S', D), each sequence's own keys and values.
        causal: a query sees the keys up to its own; the last query is aligned with the last key.  False: all keys.
        cu_groups: first sequence of each group, i32 (G + 1,), from 0 to B; default: one group.
        max_group: sequences of the largest group; default: B.
        seqused_shared: number of shared keys of each group, i32 (G,).
        page_table_shared: pages of the shared keys of each group, i32 (G, P); ``k_shared`` then has pages.
        seqused_k, seqused_k_offset, page_table: of a sequence's own keys, as in :func:`cute_dialect.op.attention`.
        scale, softcap, sinks, lse, layout, out: as in :func:`cute_dialect.op.attention`.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Raises UnsupportedError for tensors that need gradients.
    """
    if run:
        check_keywords(CASCADE, cascade_attention, run, spellings=SPELLINGS)
    arrays = (q, k_shared, v_shared, k, v, sinks, cu_groups, seqused_shared, page_table_shared, seqused_k, page_table)
    numbers = CascadeNumbers(causal, scale, softcap, lse, layout, seqused_k_offset, max_group)
    if needs_gradients(*arrays):
        raise UnsupportedError(f"{CASCADE}: gradients are not supported; use torch.no_grad(), or op.attention")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(q, torch.Tensor) and torch.compiler.is_compiling():
        if out is not None:
            raise UnsupportedError(f"{CASCADE}: out is not supported with torch.compile; omit it")
        from cute_dialect.op.torch.dispatch import CUTE  # late: torch

        def compute() -> object:
            found = CUTE.cascade_attention(*arrays, *numbers)
            return tuple(found) if lse else found[0]

        return call_operator(CASCADE, compute, q, device, stream, run, "q")
    return cascaded(arrays, numbers, out, device, stream, run)


def cascaded(
    arrays: tuple[Array, ...],
    numbers: CascadeNumbers,
    out: Array = None,
    device: object = None,
    stream: object = None,
    run: Interpreted | None = None,
) -> Array:
    """Compute :func:`cascade_attention`.

    Args:
        arrays: q, k_shared, v_shared, k, v and those of ``_OTHERS``, or None.
        numbers: the other arguments.
    """
    given = (*arrays, out)

    def compute() -> object:
        return _launched(given, numbers, device, stream, run)

    if device is not None or stream is not None or run or flag("CUTE_OP_CHECK", False):
        return compute()
    factors = [number(x) if is_number(x) else x for x in (numbers.scale, numbers.softcap)]
    how = (numbers, *factors, tuple([x is None for x in given]))
    return _KNOWN.call(how, tuple([x for x in given if x is not None]), compute)


def _launched(
    given: tuple[Array, ...], numbers: CascadeNumbers, device: object, stream: object, run: Interpreted | None
) -> Array:
    """Check the arguments of :func:`cascaded`, and launch its kernels.

    Args:
        given: the arrays, and ``out``.
    """
    with named(CASCADE, CALL):
        return _computed(given, numbers, device, stream, run)


def _computed(
    given: tuple[Array, ...], numbers: CascadeNumbers, device: object, stream: object, run: Interpreted | None
) -> Array:
    """Compute :func:`_launched`, with errors that may name :func:`cute_dialect.op.attention`."""
    causal, scale, softcap, lse, layout, grown, largest = numbers
    check_flag(CASCADE, "causal", causal)
    names = ("q", "k_shared", "v_shared", "k", "v", *_OTHERS, "out")
    one = RowCall(CASCADE, dict(zip(names, given)), device, _OTHERS, ("bf16", "f16"), stream=stream, run=run)
    direction = "bottom_right" if causal else False
    form = form_of(one.views, direction, scale, None, lse, layout, None, one.element, Numbers(softcap, grown))
    shared = _shared_form(one, form, largest)
    check_call(one, form)
    one.check_backend(WGMMA)
    with one.on():
        results = computed_cascade(one, form, shared)
    return tuple(results[:2]) if lse else results[0]


def _shared_form(one: RowCall, form: Form, largest: object) -> Form:
    """Return the problem of the shared keys.  Raises OpError."""
    views, (b, h, s, d) = one.views, LAYOUTS[form.layout]
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
