"""Tensor maps of TMA, derived from the layouts of global and shared memory.

The tensor of a map has up to five dimensions, the contiguous one first.  One instruction moves a box of the tensor,
which is addressed by coordinates.  In shared memory a box is compact, with its dimensions in the same order, and may be
swizzled.  A box therefore covers as many leading modes of the shared-memory layout as possible.  They must be compact,
and each must continue along one mode of the global tensor.  The rest of the tile is moved as further boxes.

>>> from cute_dialect.arch.descriptors import smem_tile
>>> spec = derive(Layout("(4096,1024):(1024,1)"), smem_tile("k", 128, "f16", (128, 64)), (128, 64), "f16")
>>> spec.extents, spec.strides, spec.box, spec.box_bytes, spec.coordinates
((1024, 4096), (2048,), (64, 128), 16384, Layout("(4096,1024):(1@1,1@0)"))

``coordinates`` is the layout of the coordinate tensor: it maps a coordinate of the global tensor to TMA coordinates.
Tiled and sliced like the tensor, it gives the coordinates of each box.

Source: CUDA driver API, cuTensorMapEncodeTiled; PTX ISA 9.0, 5.5 "Tensors"; CUTLASS
``include/cute/atom/copy_traits_sm90_tma.hpp`` (BSD-3).

**Boxes of a copy.** On the host :func:`cute_dialect.arch.tma.derive` chooses the box.  In the kernel the global side is
a layout of TMA coordinates (basis strides), and the shared side a layout of elements.  A copy must consist of exactly
such boxes.

>>> from cute_dialect.algebra.text import parse_layout
>>> tile, smem = parse_layout("(128,128):(1@1,1@0)"), parse_layout("(128,(64,2)):(64,(1,8192))")
>>> list(boxes(tile, smem, (64, 128)))
[((0, 0), 0), ((64, 0), 8192)]
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import gcd

from cute_dialect.algebra.compose import compose
from cute_dialect.algebra.layout import basis_like
from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf
from cute_dialect.algebra.trees import is_static, product, tree_get, tree_leaves
from cute_dialect.algebra.values import (
    AnyLayout,
    Basis,
    ComposedLayout,
    IntTuple,
    Layout,
    Stride,
    Swizzle,
    Tile,
    layout_modes,
    raw_layout,
)
from cute_dialect.arch.atom import int_leaves
from cute_dialect.arch.descriptors import swizzle_width
from cute_dialect.arch.elements import bits_of
from cute_dialect.arch.errors import DescriptorError, TmaError
from cute_dialect.arch.tensor_map import (
    MAX_BOX,
    MAX_ELEMENT_STRIDE,
    MAX_RANK,
    UNPACKED_BOX,
    Path,
    TensorDim,
    TensorMapSpec,
    check_element,
)


def derive(
    gmem: Layout,
    smem: AnyLayout,
    tile: tuple[int, ...] | Tile,
    elt: str,
    *,
    pointer_swizzle: Swizzle | None = None,
    multicast: int = 1,
    interleave: int = 0,
    unpack: int = 0,
) -> TensorMapSpec:
    """Derive the tensor map for tiles of a global tensor in a shared-memory layout.

    Args:
        gmem: layout of the tensor in elements, static or dynamic.  Its contiguous mode must have static stride 1.
        smem: layout of one tile in elements, plain or swizzled.
        tile: extents or layouts of the tile, one per mode of ``gmem``.
        elt: element type.
        pointer_swizzle: swizzle on byte addresses, if the shared pointer carries it.
        multicast: number of CTAs, each of which loads a slice of the tile for all of them.
        interleave: 0, 16 or 32 bytes.
        unpack: 16 if loads place 16 elements of 4 or 6 bits in 16 bytes; ``smem`` then counts bytes. Else 0.

    Raises:
        TmaError: the tile has no tensor map.  The message names the mode or dimension.

    >>> spec = derive(Layout((Dyn(), Dyn()), (1, Dyn(div=8))), Layout("(64,32):(1,64)"), (64, 32), "bf16")
    >>> spec.box, spec.coordinates
    ((64, 32), Layout("(?,?):(1@0,1@1)"))
    >>> spec.bind([100, 50, 104]).strides
    (208,)
    """
    check_element(elt, unpack)
    width, plain = _shared(smem, 8 if unpack else bits_of(elt), pointer_swizzle)
    runs = _runs(gmem, plain, tile)
    box, rest = _box(runs, UNPACKED_BOX if unpack else MAX_BOX)
    dims = [
        TensorDim(_leaf(gmem.shape, path), _leaf(gmem.stride, path), count * step, step, (path,))
        for path, (count, step) in box.items()
    ]
    dims, basis = _all_dims(gmem, dims)
    coordinates = raw_layout(gmem.shape, _fill(gmem.shape, (), basis))
    spec = TensorMapSpec(
        element=elt,
        dims=tuple(dims),
        swizzle=width,
        interleave=interleave,
        gmem=gmem,
        coordinates=coordinates,
        unpack=unpack,
        **_steps(rest, basis),  # type: ignore[arg-type]
    )
    spec = _multicast(spec, multicast) if multicast != 1 else spec
    row = spec.box[0] * spec.shared_bits // 8
    if spec.swizzle not in (0, row) and spec.box_elements != spec.box[0]:
        raise TmaError(
            f"expected rows of {spec.swizzle} bytes, the width of the swizzle, got {row}: TMA stores each row at that "
            "width in shared memory, so narrower rows leave gaps",
            "dimension 0",
        )
    return spec


# ---------------------------------------------------------------------------------------------------------- both sides


def _shared(smem: AnyLayout, bits: int, pointer: Swizzle | None) -> tuple[int, Layout]:
    width, plain = 0, smem
    try:
        if isinstance(smem, ComposedLayout):
            if not isinstance(smem.inner, Swizzle) or smem.offset != 0:
                raise TmaError(f"expected a plain layout or a swizzled one at offset 0, got {smem}", "smem")
            if pointer is not None and pointer.bits:
                raise TmaError(
                    f"expected one swizzle, got {pointer} on the pointer and {smem.inner} in the layout", "smem"
                )
            width, plain = swizzle_width(smem.inner, bits), smem.outer
        elif pointer is not None:
            width = swizzle_width(pointer)
    except DescriptorError as e:
        raise TmaError(str(e), "smem") from None
    assert isinstance(plain, Layout)
    if not is_static(plain):
        raise TmaError(f"expected a static layout in shared memory, got {plain}", "smem")
    return width, plain


Run = tuple[int, int, Path, int]
"""Extent, stride in shared memory, mode of the global tensor, and step along that mode."""


def _runs(gmem: Layout, smem: Layout, tile: tuple[int, ...] | Tile) -> list[Run]:
    """Return the tile as nested loops, ordered by stride in shared memory."""
    if type(gmem.shape) is not tuple:
        raise TmaError(f"the shape of the global layout must be a tuple of modes, got {gmem}", "gmem")
    tiles = tile if type(tile) is tuple else (tile,)
    if len(tiles) > len(gmem.shape):
        raise TmaError(f"the tile {tile} has rank {len(tiles)}, but the tensor has rank {len(gmem.shape)}", "tile")
    identity = basis_like(gmem.shape)
    blocks: list[Layout] = []
    for i, t in enumerate(tiles):
        mode = raw_layout(gmem.shape[i], identity[i])  # type: ignore[index]
        if type(t) is int:
            t = raw_layout(t, 1)
        if not isinstance(t, Layout) or not is_static(t):
            # unreachable: callers in this package have checked it
            raise TmaError(f"the extent of the tile must be static, got {t}", f"tile[{i}]")
        try:
            blocks.append(compose(mode, t))
        except AlgebraError as e:
            # unreachable: callers in this package have checked it
            raise TmaError(str(e), f"tile[{i}]") from None
    modes = layout_modes(smem)
    if len(modes) != len(blocks):
        raise TmaError(f"{smem} has {len(modes)} modes, but the tile has {len(blocks)}", "smem")
    runs: list[Run] = []
    for i, (block, mode) in enumerate(zip(blocks, modes)):
        runs += match_modes(block, mode, f"mode {i}")
    runs.sort(key=lambda r: r[1])
    for (extent, stride, _, _), (_, above, _, _) in pairwise(runs):
        if above < extent * stride:
            raise TmaError(f"the elements of {smem} overlap", "smem")
    return runs


def match_modes(block: Layout, smem: Layout, where: str) -> list[Run]:
    """Split one mode of the tile into runs that have a single stride on both sides."""
    if not is_static(block.shape):
        raise TmaError(f"the extents of the tile in the tensor must be static, got {block}", where)
    if product(block.shape) != product(smem.shape):
        raise TmaError(f"{smem} has extent {product(smem.shape)}, but the tile has {product(block.shape)}", where)
    ours = list(zip(int_leaves(block.shape), tree_leaves(block.stride)))
    theirs = list(zip(int_leaves(smem.shape), int_leaves(smem.stride)))
    runs: list[Run] = []
    while ours and theirs:
        (s, basis), (t, stride) = ours[0], theirs[0]
        n = min(s, t)
        if s % n or t % n:
            # unreachable: callers in this package have checked it
            raise TmaError(
                f"{block} and {smem} do not split into modes of equal extents: {s} and {t} do not divide", where
            )
        if n != 1:
            if not isinstance(basis, Basis) or type(basis.value) is not int:
                # unreachable: callers in this package have checked it
                raise TmaError(f"the strides of the tile must be basis strides of the tensor, got {block}", where)
            if stride <= 0:
                raise TmaError(f"strides in shared memory must be positive, got {smem}", where)
            runs.append((n, stride, basis.path, basis.value))
        ours[0] = (s // n, Basis(basis.value * n, basis.path) if isinstance(basis, Basis) else basis)  # type: ignore
        theirs[0] = (t // n, stride * n)
        # Runs of extent 1 are dropped.
        if ours[0][0] == 1:
            ours.pop(0)
        if theirs[0][0] == 1:
            theirs.pop(0)
    return runs


# ----------------------------------------------------------------------------------------------------------------- box


def _box(runs: list[Run], first_most: int) -> tuple[dict[Path, tuple[int, int]], list[Run]]:
    """Return the box, as mode -> (count, element stride) in the order of shared memory, and the remaining runs.

    ``first_most`` is the largest extent of the box along its first mode.
    """
    box: dict[Path, tuple[int, int]] = {}
    filled = 1
    rest: list[Run] = []
    current: Path | None = None
    for index, (extent, stride, path, step) in enumerate(runs):
        count, element_stride = box.get(path, (1, step))
        goes_on = path == current or path not in box
        strided = 1 < element_stride <= MAX_ELEMENT_STRIDE and current is not None
        fits = stride == filled and goes_on and step == count * element_stride and (element_stride == 1 or strided)
        if not fits:
            rest = runs[index:]
            break
        limit = first_most if path == runs[0][2] else MAX_BOX
        most = _largest_divisor(extent, limit // (count * element_stride))
        if most > 1:
            box[path] = (count * most, element_stride)
            current = path
            filled *= most
        if most != extent:
            rest = [(extent // most, stride * most, path, step * most), *runs[index + 1 :]]
            break
    if not box:
        raise TmaError(
            "expected the layout in shared memory to begin with stride 1 along a mode of the tensor, got "
            + (f"extent {runs[0][0]}, stride {runs[0][1]}, step {runs[0][3]}" if runs else "a tile of one element"),
            "smem",
        )
    return box, rest


def _largest_divisor(n: int, limit: int) -> int:
    return next(d for d in range(min(n, max(limit, 1)), 0, -1) if n % d == 0)


def _leaf(tree: IntTuple | Stride, path: Path) -> Leaf:
    return tree_get(tree, path)  # type: ignore[return-value]


def _paths(shape: IntTuple, path: Path = ()) -> list[Path]:
    if type(shape) is tuple:
        return [p for i, s in enumerate(shape) for p in _paths(s, (*path, i))]
    return [path]


def _all_dims(gmem: Layout, dims: list[TensorDim]) -> tuple[list[TensorDim], dict[Path, Basis]]:
    """Return the dimensions of the tensor map, box first, and the step in TMA coordinates of each mode.

    Modes of stride 0 repeat the same elements, so they have no dimension and their coordinate has no effect.
    """
    first = dims[0]
    if first.stride != 1:
        raise TmaError(
            f"expected stride 1 in global memory, got {first.stride} along mode {_name(first.modes[0])}, which is "
            "contiguous in shared memory: the majors differ",
            "dimension 0",
        )
    known = {d.modes[0] for d in dims}
    others: list[TensorDim] = []
    for path in _paths(gmem.shape):
        if path in known or _leaf(gmem.shape, path) == 1 or _leaf(gmem.stride, path) == 0:
            continue
        extent, stride = _leaf(gmem.shape, path), _leaf(gmem.stride, path)
        others.append(TensorDim(extent, stride, 1, 1, (path,)))
    basis = {d.modes[0]: Basis(1, (i,)) for i, d in enumerate(dims)}
    single = others
    if len(dims) + len(others) > MAX_RANK:
        keep = MAX_RANK - len(dims) - 1
        if keep < 0:
            raise TmaError(
                f"expected a box of at most {MAX_RANK - 1} dimensions, as the tensor has other modes, got {len(dims)}",
                "box",
            )
        single, merged = others[:keep], others[keep:]
        step = _common_stride(merged)
        last: list[int] = [(d.extent - 1) * (d.stride // step) for d in merged]  # type: ignore[operator]
        extent = 1 + sum(last)
        for d in merged:
            basis[d.modes[0]] = Basis(d.stride // step, (MAX_RANK - 1,))  # type: ignore[operator]
        single = [*single, TensorDim(extent, step, 1, 1, tuple(d.modes[0] for d in merged))]
    dims = [*dims, *single]
    for i, d in enumerate(dims):
        if len(d.modes) == 1:
            basis[d.modes[0]] = Basis(1, (i,))
    return dims, basis


def _common_stride(merged: list[TensorDim]) -> int:
    names = ", ".join([_name(d.modes[0]) for d in merged])
    for d in merged:
        if type(d.extent) is not int or type(d.stride) is not int or d.stride <= 0:
            raise TmaError(
                f"expected static extents and positive strides in the modes {names}, which share one dimension "
                f"because a tensor map has at most {MAX_RANK}, got {d.extent}:{d.stride}",
                f"mode {_name(d.modes[0])}",
            )
    return gcd(*(d.stride for d in merged))  # type: ignore[arg-type]


def _name(path: Path) -> str:
    return ".".join(map(str, path))


def _fill(shape: IntTuple, path: Path, basis: dict[Path, Basis]) -> Stride:
    if type(shape) is tuple:
        return tuple([_fill(s, (*path, i), basis) for i, s in enumerate(shape)])
    # Modes of extent 1 or stride 0 do not move the box.
    return basis.get(path, Basis(0, (0,)))


def _steps(rest: list[Run], basis: dict[Path, Basis]) -> dict[str, Layout]:
    """Return two layouts that map a box index to TMA coordinates relative to the tile and to a shared-memory offset."""
    if not rest:
        return {"steps": raw_layout(1, Basis(0, (0,))), "offsets": raw_layout(1, 0)}
    extents = tuple([r[0] for r in rest])
    steps = tuple([Basis(basis[path].value * step, basis[path].path) for _, _, path, step in rest])  # type: ignore
    return {"steps": raw_layout(extents, steps), "offsets": raw_layout(extents, tuple([r[1] for r in rest]))}


def _multicast(spec: TensorMapSpec, ctas: int) -> TensorMapSpec:
    """Divide the box along its outermost dimensions into one slice per CTA."""
    from dataclasses import replace

    if ctas < 1:
        raise TmaError(f"expected a positive number of CTAs, got {ctas}", "multicast")
    dims, left = list(spec.dims), ctas
    slices: list[tuple[int, Basis]] = []
    for i in reversed(range(len(dims))):
        d = dims[i]
        factor = gcd(left, d.count)
        if factor > 1:
            count = d.count // factor
            dims[i] = replace(d, box=count * d.element_stride)
            slices.insert(0, (factor, Basis(count * d.element_stride, (i,))))
            left //= factor
        if left == 1:
            break
        if dims[i].count > 1:
            # Slices are contiguous in shared memory only if all outer dimensions are cut to one element.
            raise TmaError(
                f"expected a number of CTAs that divides the box {spec.box} from its outermost dimension, got {ctas}",
                "multicast",
            )
    if left != 1:
        # unreachable: callers in this package have checked it
        raise TmaError(f"expected a number of CTAs that divides the box {spec.box}, got {ctas}", "multicast")
    extents, steps = tuple([f for f, _ in slices]), tuple([b for _, b in slices])
    layout = raw_layout(extents, steps) if len(slices) > 1 else raw_layout(extents[0], steps[0])
    return replace(spec, dims=tuple(dims), multicast=ctas, slices=layout)


def scalars(gmem: Layout) -> list[Dyn]:
    """Return the dynamic leaves of a global layout, extents first, in the order of :meth:`TensorMapSpec.bind`."""
    leaves: Sequence[object] = [*tree_leaves(gmem.shape), *tree_leaves(gmem.stride)]
    return [x for x in leaves if isinstance(x, Dyn)]


# ---------------------------------------------------------------------------------------------------------------- boxes


def boxes(
    coords: Layout, smem: Layout, counts: Sequence[int], strides: Sequence[int] = ()
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Return the boxes of a copy as pairs: TMA coordinates relative to the tile, and offset in shared memory.

    The offset is in elements.

    Args:
        coords: static layout of the tile, whose strides step along TMA dimensions.
        smem: static layout of the same shape.
        counts: number of elements that one instruction moves along each dimension.
        strides: element strides along each dimension; the default is 1.

    Raises:
        TmaError: the boxes do not fill the tile.
    """
    rank = len(counts)
    rest = _rest(_box_runs(coords, smem, rank), counts, strides or (1,) * rank)
    # The run with the largest stride in shared memory is the outermost loop.
    for indices in itertools.product(*(range(extent) for extent, _, _, _ in reversed(rest))):
        at, offset = [0] * rank, 0
        for i, (_, stride, path, step) in zip(indices, reversed(rest)):
            at[path[0]] += i * step
            offset += i * stride
        yield tuple(at), offset


def _box_runs(coords: Layout, smem: Layout, rank: int) -> list[Run]:
    ours, theirs = layout_modes(coords), layout_modes(smem)
    if 1 in (len(ours), len(theirs)):  # a whole tile as one mode
        ours, theirs = [coords], [smem]
    if len(ours) != len(theirs):
        raise TmaError(f"expected the same number of modes on both sides, got {coords} and {smem}", "rank")
    runs = [run for i, (a, b) in enumerate(zip(ours, theirs)) for run in match_modes(a, b, f"mode {i}")]
    runs.sort(key=lambda run: run[1])
    for extent, _, path, _ in runs:
        if len(path) != 1 or path[0] >= rank:
            raise TmaError(f"expected coordinates in the {rank} dimensions of the tensor map, got {coords}", "rank")
        assert extent > 1
    for (extent, stride, _, _), (_, above, _, _) in pairwise(runs):
        if above < extent * stride:
            raise TmaError(f"the elements of {smem} overlap", "smem")
    return runs


def _rest(runs: list[Run], counts: Sequence[int], strides: Sequence[int]) -> list[Run]:
    """Return the runs of the tile that remain after the leading runs have filled a box."""
    left = list(runs)
    filled = 1
    for dim, (count, every) in enumerate(zip(counts, strides)):
        taken, what = 1, f"dimension {dim}"
        wanted = f"{count} elements at stride {filled} in shared memory, like the box {tuple(counts)}"
        while taken < count:
            if not left:
                raise TmaError(f"expected {wanted}, got a tile of {taken}", what)
            extent, stride, path, step = left.pop(0)
            if path != (dim,) or stride != filled or step != taken * every:
                raise TmaError(
                    f"expected {wanted}, but after {taken} of them got {extent} elements at stride {stride} along "
                    f"dimension {path[0]}, every {step}",
                    what,
                )
            most = min(extent, count // taken)
            if extent % most or count % (taken * most):
                raise TmaError(f"expected {wanted}, got {extent * taken}", what)
            if extent > most:
                left.insert(0, (extent // most, stride * most, path, step * most))
            taken *= most
            filled *= most
    return left
