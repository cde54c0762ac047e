"""Block masks of flex attention: torch's ``BlockMask`` or an object with the same attributes."""

# Block masks belong to torch or to the user.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import Any, NamedTuple
from weakref import ref

from cute_dialect.op.errors import DtypeError, OpError, ShapeError, UnsupportedError
from cute_dialect.op.problems.attention import expanded_strides
from cute_dialect.runtime.arrays import ArrayView

__all__ = ["FLEX", "KEY_LISTS", "QUERY_LISTS", "BlockMaskFields", "check_lists", "fields_of", "known_fields"]

FLEX = "flex_attention"
"""Name of the function in errors."""

KEY_LISTS = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices")
"""Lists of the key blocks that each block of queries sees."""

QUERY_LISTS = ("q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices")
"""Lists of the blocks of queries that see each key block."""

_WHOLE = 1 << 30
"""Block size from which a mask has one block, so that its lists say nothing."""


class BlockMaskFields(NamedTuple):
    """Attributes of a block mask that ``flex_attention`` uses."""

    mask_mod: Any  # function of visible keys, or None
    sizes: tuple[int, int] = (0, 0)  # queries and keys of a block; 0 without lists
    lists: tuple[Any, ...] = ()  # arrays in the order of KEY_LISTS, then of QUERY_LISTS; missing ones are None
    lengths: tuple[int, int] = (0, 0)  # queries and keys


class _Read(NamedTuple):
    """A block mask whose fields are known."""

    mask: Callable[[], object]  # a weak reference
    attributes: tuple[object, ...]  # those of ``_ATTRIBUTES``, when the fields were read
    fields: BlockMaskFields


_ATTRIBUTES = ("mask_mod", "BLOCK_SIZE", "seq_lengths", *KEY_LISTS, *QUERY_LISTS)
_reads: dict[int, _Read] = {}
_MOST = 256
"""Maximum number of block masks whose fields are kept."""


def known_fields(block_mask: Any) -> BlockMaskFields:
    """Return :func:`fields_of` a block mask, or the fields of an earlier call if no attribute was replaced since."""
    if block_mask is None:
        return BlockMaskFields(None)
    known = _reads.get(id(block_mask))
    if known is not None and known.mask() is block_mask:
        held = vars(block_mask)
        if all(map(is_, map(held.get, _ATTRIBUTES), known.attributes)):
            return known.fields
    found = fields_of(block_mask)
    held = getattr(block_mask, "__dict__", {})
    if "kv_num_blocks" in held and hasattr(block_mask, "__weakref__"):
        if len(_reads) >= _MOST:
            _reads.clear()
        _reads[id(block_mask)] = _Read(ref(block_mask), tuple(map(held.get, _ATTRIBUTES)), found)
    return found


def fields_of(block_mask: Any) -> BlockMaskFields:
    """Return the attributes of a block mask.  Raises UnsupportedError, ShapeError.

    A mask without lists of full blocks has none that are full.
    """
    if block_mask is None:
        return BlockMaskFields(None)
    if callable(block_mask):
        raise UnsupportedError(
            f"{FLEX}: block_mask is a function; pass op.create_block_mask(function, B, H, Q_LEN, KV_LEN)"
        )
    missing = [name for name in ("kv_num_blocks", "kv_indices", "BLOCK_SIZE") if not hasattr(block_mask, name)]
    if missing:
        raise UnsupportedError(
            f"{FLEX}: block_mask is of type {type(block_mask).__name__}, without {', '.join(missing)}; pass a BlockMask"
        )
    m, n = block_mask.BLOCK_SIZE
    mask_mod = getattr(block_mask, "mask_mod", None)
    if min(m, n) >= _WHOLE:
        return BlockMaskFields(mask_mod)
    if m % 64 or n % 64 or min(m, n) < 64:
        raise UnsupportedError(f"{FLEX}: block_mask has BLOCK_SIZE ({m}, {n}); use multiples of 64")
    lists: list[Any] = []
    for names in (KEY_LISTS, QUERY_LISTS):
        counts, indices, full_counts, full_indices = (getattr(block_mask, name, None) for name in names)
        if counts is not None and (full_counts is None or full_indices is None):
            full_counts, full_indices = counts * 0, indices
        lists += [counts, indices, full_counts, full_indices]
    counts, indices = block_mask.kv_num_blocks, block_mask.kv_indices
    q, k = getattr(block_mask, "seq_lengths", None) or (counts.shape[-1] * m, indices.shape[-1] * n)
    return BlockMaskFields(mask_mod, (m, n), tuple(lists), (int(q), int(k)))


def check_lists(
    views: Mapping[str, ArrayView], names: Sequence[str], sizes: tuple[int, int], shape: Sequence[int]
) -> None:
    """Check the lists of a block mask.

    Args:
        views: views of the lists.
        names: KEY_LISTS, or KEY_LISTS and QUERY_LISTS.
        sizes: queries and keys of a block.
        shape: sequences, heads, queries and keys of the call.

    Raises OpError.
    """
    blocks = tuple([-(-n // size) for n, size in zip(shape[2:], sizes)])
    for i, name in enumerate(names):
        view, (rows, columns) = views[name], blocks if name in KEY_LISTS else blocks[::-1]
        wanted = (*shape[:2], rows) if i % 2 == 0 else (*shape[:2], rows, columns)
        if view.dtype != "i32":
            raise DtypeError(f"{FLEX}: {name} of the block mask has dtype {view.dtype}; it must have i32")
        found = expanded_strides(view._replace(shape=view.shape[: len(wanted)]), (*wanted[:3], *view.shape[3:]))
        if len(view.shape) != len(wanted) or found is None:
            raise _wrong_shape(name, view, wanted, shape)


def _wrong_shape(name: str, view: ArrayView, wanted: Sequence[int], shape: Sequence[int]) -> OpError:
    return ShapeError(
        f"{FLEX}: {name} of the block mask has shape {view.shape}; a call with {shape[0]} sequences, {shape[1]} heads, "
        f"{shape[2]} queries and {shape[3]} keys needs one that expands to {tuple(wanted)}"
    )
