# ruff: noqa: F401
# pyright: reportUnusedImport=false
"""The layout algebra: pure Python, no other package needed.

Importing the package costs nothing; a name loads its module when it is first used.

>>> from cute_dialect.algebra import Layout, composition, zipped_divide
>>> composition(Layout("(6,10):(10,1)"), Layout("(3,4):(2,6)"))
Layout("(3,4):(20,1)")
>>> zipped_divide(Layout("(12,10):(10,1)"), (4, 5))
Layout("((4,5),(3,2)):((10,1),(40,5))")

Modules, lowest first: ``leaf`` (integers known now or at run time), ``values`` (layouts, swizzles, …), ``trees`` and
``arithmetic`` (int tuples and their like), ``text`` (parsing, printing), ``verify``, ``evaluation``, ``make``,
``layout``,
``complements``, ``inverses``, ``compose``, ``tiling``, ``swizzle``, ``vectors``, ``tiled_copy``, ``tiled_mma``,
``tables``.  The functions of the package check what they are given (``arguments``), those of the modules do not.
``docs/layouts.md`` is a tutorial.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cute_dialect.algebra.arithmetic import elem_less, equal, shape_div, tuple_add, tuple_sub
    from cute_dialect.algebra.complements import complement
    from cute_dialect.algebra.compose import composition
    from cute_dialect.algebra.evaluation import (
        coshape,
        cosize,
        crd2idx,
        evaluate,
        idx2crd,
        increment_coord,
        size,
    )
    from cute_dialect.algebra.inverses import left_inverse, right_inverse
    from cute_dialect.algebra.layout import (
        append_to_rank,
        coalesce,
        dice,
        group_modes,
        prepend_to_rank,
        recast_layout,
        slice_,
        slice_and_offset,
    )
    from cute_dialect.algebra.layout import (
        slice_ as slice,
    )
    from cute_dialect.algebra.leaf import (
        AlgebraError,
        Dyn,
        Emitter,
        Leaf,
    )
    from cute_dialect.algebra.make import (
        make_identity_layout,
        make_layout,
        make_layout_like,
        make_ordered_layout,
    )
    from cute_dialect.algebra.tables import (
        layout_table,
        print_layout,
        thread_value_table,
    )
    from cute_dialect.algebra.text import (
        TextError,
        parse_composed_layout,
        parse_coord,
        parse_int_tuple,
        parse_layout,
        parse_shape,
        parse_stride,
        parse_swizzle,
        parse_tile,
        to_text,
    )
    from cute_dialect.algebra.tiled_copy import (
        local_partition,
        local_tile,
        make_layout_tv,
        retile,
        thread_slice,
        tile_to_thread,
    )
    from cute_dialect.algebra.tiled_mma import (
        TiledMma,
    )
    from cute_dialect.algebra.tiling import (
        blocked_product,
        ceil_div,
        flat_divide,
        flat_product,
        logical_divide,
        logical_product,
        raked_product,
        tile_to_shape,
        tiled_divide,
        tiled_product,
        zipped_divide,
        zipped_product,
    )
    from cute_dialect.algebra.trees import (
        carries_divisor,
        column_major,
        compatible,
        congruent,
        depth,
        flatten,
        get,
        implies,
        is_static,
        leaves,
        map_leaves,
        prefix_product,
        product,
        product_each,
        rank,
        row_major,
        select,
        tracked,
        tree_flatten,
        tree_get,
        tree_select,
        untracked,
        unwrap,
        weakly_congruent,
    )
    from cute_dialect.algebra.values import (
        UNDERSCORE,
        AnyLayout,
        Basis,
        ComposedLayout,
        Coord,
        IntTuple,
        Layout,
        Payload,
        Stride,
        Swizzle,
        Tile,
        Underscore,
    )
    from cute_dialect.algebra.vectors import (
        max_common_vector,
        nullspace,
        vector_bits,
    )

_MODULES = {
    "leaf": "AlgebraError Dyn Emitter Leaf",
    "values": (
        "UNDERSCORE AnyLayout Basis ComposedLayout Coord IntTuple Layout Payload Stride Swizzle Tile Underscore"
    ),
    "trees": (
        "carries_divisor column_major compatible congruent depth flatten get implies is_static leaves map_leaves "
        "prefix_product product product_each rank row_major select tracked tree_flatten tree_get tree_select untracked "
        "unwrap weakly_congruent"
    ),
    "arithmetic": "elem_less equal shape_div tuple_add tuple_sub",
    "evaluation": "coshape cosize crd2idx evaluate idx2crd increment_coord size",
    "make": "make_identity_layout make_layout make_layout_like make_ordered_layout",
    "layout": "append_to_rank coalesce dice group_modes prepend_to_rank recast_layout slice_ slice_and_offset",
    "complements": "complement",
    "inverses": "left_inverse right_inverse",
    "compose": "composition",
    "tiling": (
        "blocked_product ceil_div flat_divide flat_product logical_divide logical_product raked_product "
        "tile_to_shape tiled_divide tiled_product zipped_divide zipped_product"
    ),
    "tiled_copy": "local_partition local_tile make_layout_tv retile thread_slice tile_to_thread",
    "tiled_mma": "TiledMma",
    "vectors": "max_common_vector nullspace vector_bits",
    "text": (
        "TextError parse_composed_layout parse_coord parse_int_tuple parse_layout parse_shape parse_stride "
        "parse_swizzle parse_tile to_text"
    ),
    "tables": "layout_table print_layout thread_value_table",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()} | {"slice": "layout"}
_NAMES = {"slice": "slice_"}
"""Names that are Python's own inside the modules."""


def __getattr__(name: str) -> object:
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{module}"), _NAMES.get(name, name))
    if not isinstance(value, type) and callable(value):
        from cute_dialect.algebra.arguments import checked

        value = checked(name, value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
