"""Layout algebra on layouts and tensors: composition, divides, products, tiles and partitions.

Each function applies the dialect op of the same name (``docs/dialect.md``); see
:func:`cute_dialect.lang.values.layouts.apply`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import Swizzle
from cute_dialect.lang.tracing.errors import LayoutError
from cute_dialect.lang.tracing.tracer import op_class
from cute_dialect.lang.values.indexing import check_part
from cute_dialect.lang.values.int_tuples import Tree, map_tree
from cute_dialect.lang.values.layouts import (
    AnyLayout,
    ComposedLayout,
    Layout,
    alignment_of,
    apply,
    as_layout,
    layout_of,
    make_composed_layout,
    make_layout,
    operand_type,
    plain_payload,
    static_layout,
)
from cute_dialect.lang.values.tuple_functions import dice, slice_

if TYPE_CHECKING:
    from cute_dialect.lang.values.signature_types import Coord, Int, IntTuple, LayoutLike, Shape, Tiler


def _tiler(x: Any) -> Any:
    """Return the second operand of a divide: a layout unchanged, a tree as a tiler."""
    return x if isinstance(x, AnyLayout) else as_layout(x) if isinstance(x, str) else Tree(x, "tiler")


def composition(lhs: LayoutLike, rhs: LayoutLike) -> LayoutLike:
    """Return the composition ``c -> lhs(rhs(c))``.

    ``lhs`` is a layout, tensor or swizzle, ``rhs`` a layout or tiler.

    >>> composition(make_layout((6, 10), (10, 1)), make_layout((3, 4), (2, 6)))
    (3,4):(20,1)
    """
    if isinstance(lhs, Swizzle):
        return make_composed_layout(lhs, 0, rhs)
    return apply("cute.composition", as_layout(lhs), _tiler(rhs))


def coalesce(x: LayoutLike, target_profile: IntTuple = None) -> LayoutLike:
    """Return the same function with as few modes as possible. With a profile, each mode is coalesced separately.

    >>> coalesce(make_layout((2, (1, 6)), (1, (6, 2))))
    12:1
    """
    if target_profile is None:
        return apply("cute.coalesce", as_layout(x))
    return apply("cute.coalesce", as_layout(x), Tree(target_profile, "coord"))


def complement(x: LayoutLike, cotarget: Shape = None) -> Layout:
    """Return the layout of the offsets that ``x`` does not reach, up to the size of ``cotarget``.

    >>> complement(make_layout((2, 3), (4, 12)), 48)
    (4,2):(1,36)
    """
    if cotarget is None:
        return apply("cute.complement", as_layout(x))
    target = cotarget if isinstance(cotarget, AnyLayout) else Tree(cotarget, "shape")
    return apply("cute.complement", as_layout(x), target)


def right_inverse(x: LayoutLike) -> Layout:
    """Return the largest layout ``R`` with ``x(R(i)) == i``.

    >>> right_inverse(make_layout((5, 3), (3, 1)))
    (3,5):(5,1)
    """
    return apply("cute.right_inverse", as_layout(x))


def left_inverse(x: LayoutLike) -> Layout:
    """Return the layout ``R`` with ``R(x(i)) == i``.

    >>> left_inverse(make_layout((3, 4), (8, 2)))
    (2,4,3):(0,3,1)
    """
    return apply("cute.left_inverse", as_layout(x))


def recast_layout(new_type_bits: int, old_type_bits: int, x: LayoutLike) -> LayoutLike:
    """Return the layout for elements of another width.

    >>> recast_layout(16, 8, make_layout((10, 3)))
    (5,3):(1,5)
    """
    return apply("cute.recast_layout", as_layout(x), new_type_bits=new_type_bits, old_type_bits=old_type_bits)


def _divide(name: str, example: str, what: str) -> Callable[..., Any]:
    def divide(target: LayoutLike, tiler: Tiler) -> LayoutLike:
        return apply(f"cute.{name}", as_layout(target), _tiler(tiler))

    divide.__name__ = divide.__qualname__ = name
    divide.__doc__ = f"Return {what}. ``tiler`` is a shape, a layout, or a tuple of them and ``None``.\n\n    {example}"
    return divide


logical_divide = _divide("logical_divide", "``(12,10):(10,1)`` by ``(4, 5)`` gives ``((4,3),(5,2)):((10,40),(1,5))``.",
                         "the layout with each mode split into ``(tile, rest)``")  # fmt: skip
zipped_divide = _divide("zipped_divide", "``(12,10):(10,1)`` by ``(4, 5)`` gives ``((4,5),(3,2)):((10,1),(40,5))``.",
                        "the divided layout ``((tiles), (rests))``")  # fmt: skip
tiled_divide = _divide("tiled_divide", "``(12,10):(10,1)`` by ``(4, 5)`` gives ``((4,5),3,2):((10,1),40,5)``.",
                       "the divided layout ``((tiles), rest, rest, …)``")  # fmt: skip
flat_divide = _divide("flat_divide", "``(12,10):(10,1)`` by ``(4, 5)`` gives ``(4,5,3,2):(10,1,40,5)``.",
                      "the divided layout ``(tiles…, rests…)``")  # fmt: skip


def _product(name: str, what: str) -> Callable[[Any, Any], Any]:
    def product(block: LayoutLike, tiler: LayoutLike) -> LayoutLike:
        return apply(f"cute.{name}", as_layout(block), as_layout(tiler))

    product.__name__ = product.__qualname__ = name
    product.__doc__ = f"Return {what}, where ``block`` is repeated according to the layout ``tiler``."
    return product


logical_product = _product("logical_product", "the product ``(block, repetitions)``")
zipped_product = _product("zipped_product", "the product ``((block), (repetitions))``")
tiled_product = _product("tiled_product", "the product ``((block), repetition, repetition, …)``")
flat_product = _product("flat_product", "the product ``(block modes…, repetitions…)``")
blocked_product = _product("blocked_product", "the product with modes ``(block_i, repetitions_i)``")
raked_product = _product("raked_product", "the product with modes ``(repetitions_i, block_i)``")


def tile_to_shape(atom: LayoutLike, trg_shape: Shape, order: IntTuple = None) -> LayoutLike:
    """Return ``atom`` repeated to cover a shape. ``order`` is the order of the modes in which blocks repeat.

    >>> tile_to_shape(make_layout((2, 3), (3, 1)), (4, 6), (1, 0))
    ((2,2),(3,2)):((3,12),(1,6))
    """
    operands = [as_layout(atom), Tree(trg_shape, "shape")]
    if order is not None:
        operands.append(Tree(order, "int_tuple"))
    return apply("cute.tile_to_shape", *operands)


# ------------------------------------------------------------------------------------------------- tiles of tensors


def local_tile(input: LayoutLike, tiler: Tiler, coord: Coord, proj: Coord = None) -> LayoutLike:
    """Return the tile of a tensor at a tile coordinate: ``(tile modes…, rest modes…)``.

    Args:
        input: the tensor.
        tiler: the tile's shape.
        coord: the coordinate among the tiles. ``None`` keeps a rest mode.
        proj: a tuple with ``None`` at each element of ``tiler`` and ``coord`` to skip for this tensor. Elements of
            ``coord`` past its end index untiled modes of the tensor.
    """
    if isinstance(input, AnyLayout):
        raise LayoutError(
            "F240", f"local_tile needs a tensor, got {input.describe()}",
            hint="for a layout, use zipped_divide and slice the result",
        )  # fmt: skip
    if isinstance(proj, tuple) and isinstance(coord, tuple) and isinstance(tiler, tuple) and len(coord) > len(proj):
        kept = [i for i, p in enumerate(proj) if p is not None]
        tiler = tuple(tiler[i] for i in kept)
        coord = (*(coord[i] for i in kept), *coord[len(proj) :])
        proj = None
    operands = [input, _tiler(tiler), Tree(coord, "coord")]
    if proj is not None:
        operands.append(Tree(proj, "coord"))
    tile = apply("cute.local_tile", *operands)
    if proj is not None:
        tiler, coord = dice(tiler, proj), dice(coord, proj)
    _check_tile(tile, input, tiler, coord)
    return tile


def _check_tile(tile: Any, tensor: Any, tiler: Any, coord: Any) -> None:
    """Check the coordinate of a tile of a tensor in memory.  Raises F242 for a static one past the static extents."""
    if getattr(tensor, "element_type", None) is None:
        return
    from cute_dialect.dialect.inference import infer_types_memo  # late: start-up

    (divided,) = infer_types_memo(
        op_class("cute.zipped_divide"), [operand_type(tensor), operand_type(_tiler(tiler))], {}
    )
    extents = divided.data.layout.shape[1]
    check_part(tile, tensor, coord, extents, lambda: zipped_divide(tensor, tiler).shape[1], "tiles")


def local_partition(target: LayoutLike, tiler: LayoutLike, index: Int, proj: Coord = None) -> LayoutLike:
    """Return a thread's partition of a tensor that is distributed in tiles of a thread layout."""
    if proj is not None:
        tiler = dice(tiler, proj)
    made = apply("cute.local_partition", target, as_layout(tiler), Tree(index, "coord"))
    if getattr(target, "element_type", None) is not None:
        threads = as_layout(tiler).shape
        if is_static(threads):
            check_part(made, target, index, threads, lambda: threads, "threads' parts")
    return made


def outer_partition(target: LayoutLike, tiler: Tiler, coord: Coord) -> LayoutLike:
    """Return one part of a tensor that is divided into as many parts as the tiler has elements.

    It slices the first mode of ``zipped_divide(target, tiler)`` at the coordinate, whereas ``local_tile`` slices the
    second.
    """
    divided = zipped_divide(target, tiler)
    made = slice_(divided, (coord, None))
    if getattr(target, "element_type", None) is not None:
        check_part(made, target, coord, divided.shape_payload[0], lambda: divided.shape[0], "parts")
    return made


def domain_offset(coord: Coord, tensor: LayoutLike) -> LayoutLike:
    """Return the tensor shifted so that its coordinate ``c`` is coordinate ``c + coord`` of the original."""
    return apply("cute.domain_offset", tensor, Tree(coord, "coord"))


# ------------------------------------------------------------------------------------------- of static layouts only


def max_common_vector(a: LayoutLike, b: LayoutLike) -> int:
    """Return the number of elements that are contiguous in both layouts, at least 1.

    >>> max_common_vector(make_layout((4, 8), (1, 16)), make_layout((4, 8)))
    4
    """
    from cute_dialect.algebra.vectors import max_common_vector as count  # late: start-up

    return count(plain_payload("max_common_vector", layout_of(a)), plain_payload("max_common_vector", layout_of(b)))


def max_common_layout(a: LayoutLike, b: LayoutLike) -> Layout:
    """Return the elements that are contiguous in both layouts, as a layout into their common domain.

    >>> max_common_layout(make_layout((8, 4), (16, 1)), make_layout((8, 4), (4, 1)))
    4:8
    """
    from cute_dialect.algebra.vectors import common_vector  # late: start-up

    found = common_vector(
        plain_payload("max_common_layout", layout_of(a)), plain_payload("max_common_layout", layout_of(b))
    )
    return make_layout(1, 0) if found is None else Layout(found)


def max_alignment(x: LayoutLike) -> int:
    """Return the largest number known to divide every offset of a layout.

    >>> max_alignment(make_layout((4, 8), (16, 64)))
    16
    """
    return alignment_of("max_alignment", layout_of(x))


def nullspace(x: LayoutLike) -> Layout:
    """Return the part of the domain along which a static layout is constant.

    >>> nullspace(make_layout((2, (4, 3)), (1, (0, 2))))
    4:2
    """
    from cute_dialect.algebra.vectors import nullspace as find  # late: start-up

    return Layout(find(static_layout("nullspace", x)))


def filter_zeros(x: LayoutLike) -> LayoutLike:
    """Return the layout with extent 1 in place of every mode with a static stride of 0.

    >>> filter_zeros(make_layout((4, 8), (0, 1)))
    (1,8):(0,1)
    """
    if isinstance(x, ComposedLayout):
        return make_composed_layout(x.inner, x.offset, filter_zeros(x.outer))
    made = layout_of(x)
    if not isinstance(x, AnyLayout | str):
        return x.with_layout(filter_zeros(made))
    shape = map_tree(lambda d, s: 1 if type(d) is int and d == 0 else s, made.stride, made.shape)
    return make_layout(shape, made.stride)


def filter(x: LayoutLike) -> LayoutLike:
    """Return the layout without its stride-0 modes, coalesced.

    >>> filter(make_layout((4, 8, 2), (0, 1, 8)))
    16:1
    """
    return coalesce(filter_zeros(x))
