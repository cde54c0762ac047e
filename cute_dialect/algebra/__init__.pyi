# ruff: noqa: I001 (sorting would make a statement of each name)
"""Public names of the layout algebra, imported from the modules that define them."""

from cute_dialect.algebra.arithmetic import (
    elem_less as elem_less,
    equal as equal,
    shape_div as shape_div,
    tuple_add as tuple_add,
    tuple_sub as tuple_sub,
)
from cute_dialect.algebra.complements import (
    complement as complement,
)
from cute_dialect.algebra.compose import (
    composition as composition,
)
from cute_dialect.algebra.evaluation import (
    coshape as coshape,
    cosize as cosize,
    crd2idx as crd2idx,
    evaluate as evaluate,
    idx2crd as idx2crd,
    increment_coord as increment_coord,
    size as size,
)
from cute_dialect.algebra.inverses import (
    left_inverse as left_inverse,
    right_inverse as right_inverse,
)
from cute_dialect.algebra.layout import (
    append_to_rank as append_to_rank,
    coalesce as coalesce,
    group_modes as group_modes,
    prepend_to_rank as prepend_to_rank,
    recast_layout as recast_layout,
)
from cute_dialect.algebra.layout_pictures import (
    layout_table as layout_table,
    print_layout as print_layout,
    thread_value_table as thread_value_table,
)
from cute_dialect.algebra.leaf import (
    AlgebraError as AlgebraError,
    Dyn as Dyn,
    Emitter as Emitter,
    Leaf as Leaf,
)
from cute_dialect.algebra.layout import (
    make_identity_layout as make_identity_layout,
    make_layout as make_layout,
    make_layout_like as make_layout_like,
    make_ordered_layout as make_ordered_layout,
)
from cute_dialect.algebra.slicing import (
    dice as dice,
    slice_ as slice_,
    slice_and_offset as slice_and_offset,
)
from cute_dialect.algebra.text import (
    parse_composed_layout as parse_composed_layout,
    parse_coord as parse_coord,
    parse_int_tuple as parse_int_tuple,
    parse_layout as parse_layout,
    parse_shape as parse_shape,
    parse_stride as parse_stride,
    parse_swizzle as parse_swizzle,
    parse_tile as parse_tile,
    TextError as TextError,
    to_text as to_text,
)
from cute_dialect.algebra.tiled_copy import (
    local_partition as local_partition,
    local_tile as local_tile,
    make_layout_tv as make_layout_tv,
    retile as retile,
    thread_slice as thread_slice,
    tile_to_thread as tile_to_thread,
)
from cute_dialect.algebra.tiled_mma import (
    TiledMma as TiledMma,
)
from cute_dialect.algebra.tiling import (
    blocked_product as blocked_product,
    ceil_div as ceil_div,
    flat_divide as flat_divide,
    flat_product as flat_product,
    logical_divide as logical_divide,
    logical_product as logical_product,
    raked_product as raked_product,
    tile_to_shape as tile_to_shape,
    tiled_divide as tiled_divide,
    tiled_product as tiled_product,
    zipped_divide as zipped_divide,
    zipped_product as zipped_product,
)
from cute_dialect.algebra.trees import (
    carries_divisor as carries_divisor,
    column_major as column_major,
    compatible as compatible,
    congruent as congruent,
    depth as depth,
    flatten as flatten,
    get as get,
    implies as implies,
    is_static as is_static,
    leaves as leaves,
    map_leaves as map_leaves,
    prefix_product as prefix_product,
    product as product,
    product_each as product_each,
    rank as rank,
    row_major as row_major,
    select as select,
    tracked as tracked,
    tree_flatten as tree_flatten,
    tree_get as tree_get,
    tree_select as tree_select,
    untracked as untracked,
    unwrap as unwrap,
    weakly_congruent as weakly_congruent,
)
from cute_dialect.algebra.values import (
    AnyLayout as AnyLayout,
    Basis as Basis,
    ComposedLayout as ComposedLayout,
    Coord as Coord,
    IntTuple as IntTuple,
    Layout as Layout,
    Payload as Payload,
    Stride as Stride,
    Swizzle as Swizzle,
    Tile as Tile,
    UNDERSCORE as UNDERSCORE,
    Underscore as Underscore,
)
from cute_dialect.algebra.vectors import (
    max_common_vector as max_common_vector,
    nullspace as nullspace,
    vector_bits as vector_bits,
)

slice = slice_  # As in CuTe.  ``slice_`` does not hide Python's own.
