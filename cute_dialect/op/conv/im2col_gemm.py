"""Convolutions without im2col loads: columns are written to memory and multiplied by a GEMM.

This serves types without wgmma, channels that im2col loads cannot read, and windows beyond their limits.  The columns
of as many images as fit :data:`MOST` bytes are written at a time.
"""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from math import gcd, prod
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.kernels.conv.config import DGRAD, WGRAD
from cute_dialect.kernels.conv.unfold import UnfoldConfig
from cute_dialect.op.arrays.dtypes import result_of
from cute_dialect.op.arrays.library import Library
from cute_dialect.op.arrays.operand_views import as_rows, dense, with_padded_rows
from cute_dialect.op.epilogue.bind import Bound
from cute_dialect.op.epilogue.combination import LinearCombination, unfused
from cute_dialect.op.execute.gemm import product
from cute_dialect.op.execute.kernels import kernel_of
from cute_dialect.op.execute.launcher import launched
from cute_dialect.op.execute.tma_copies import without_padding
from cute_dialect.op.problems.conv import Geometry
from cute_dialect.op.problems.operands import matrix
from cute_dialect.op.select.gemm_dispatch import KernelOverride
from cute_dialect.op.select.mma_sync_model import is_stored_directly
from cute_dialect.runtime.arrays import ArrayView, numpy_dtype, view_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.conv.compute import Call
    from cute_dialect.op.problems.conv import Prepared

MOST = 1 << 29
"""Maximum number of bytes of columns that are written before they are multiplied."""


def unfolded(
    call: Call, ready: Prepared, rows: ArrayView, extras: LinearCombination, found: Bound | None, kernel: object, *,
    apart: bool,
) -> None:  # fmt: skip
    """Compute a convolution to a matrix of rows.

    Args:
        kernel: the kernel of the GEMM, if the call selects one.
        apart: the array library computes the epilogue.
    """
    g, library = ready.geometry, call.where.library
    image, other = ready.image, ready.other
    c = None if ready.c is None else _addend(library, ready, ready.c)
    pixels = prod(g.output[1:-1]) if g.kind != WGRAD else prod(g.result[1:-1])
    images, wide = g.image[0], g.taps * image.shape[-1] * numpy_dtype(image.dtype).itemsize
    at_once = max(1, min(images, MOST // max(1, pixels * wide)))
    simple, plain = not apart and at_once >= images, not apart and g.kind != WGRAD
    sums = rows if simple or plain else sums_for(library, ready, rows)
    made = sums
    stored = g.is_product and simple and extras.plain and is_stored_directly(prod(g.output), rows.dtype)
    if g.groups == 1 and not stored and not matrix(sums).is_tma_storable():
        made = with_padded_rows(library, sums.shape, sums.dtype, sums)  # fast GEMM kernels need aligned rows
    how = extras if sums is rows else extras.of_sums()
    first = True
    for start in range(0, images, at_once):
        count = min(at_once, images - start)
        columns = columns_of(call, ready, start, count)
        if g.kind == WGRAD:
            y = _rows(library, _images(library, other, start, count))
            added = None if not first or sums is not rows else c
            _weights(call, columns, y, made, how, added, first, kernel, owned=made is not sums)
        else:
            span = start * pixels, count * pixels
            added = None if c is None or sums is not rows else _images(library, c, *span)
            bias = ready.bias if sums is rows else None
            target = _images(library, made, *span)
            factor = _factor(library, other, g)
            _pixels(call, columns, factor, target, how, added, bias, kernel, owned=made is not sums)
        first = False
    if made is not sums:
        without_padding(library, made, sums, call.told, call.options, call.where.cpu)
    if sums is not rows:
        finish(library, ready, sums, rows, extras, found)


def sums_for(library: Library, ready: Prepared, rows: ArrayView) -> ArrayView:
    """Return memory for the accumulator of a result."""
    return library.strided(rows.shape, (rows.shape[1], 1), type_of_sums(ready.image.dtype), rows)


def type_of_sums(element: str) -> str:
    """Return the type of an accumulator in memory, for operands of a type."""
    kind = result_of(element)
    return kind if kind in ("f64", "i32") else "f32"


def finish(
    library: Library, ready: Prepared, sums: ArrayView, rows: ArrayView, extras: LinearCombination, found: Bound | None
) -> None:
    """Compute the epilogue with the array library."""
    native = library.native
    if found is not None:
        found.by_library(native(sums))
        return
    c = None if ready.c is None else _addend(library, ready, ready.c)
    added, bias = (None if x is None else native(x) for x in (c, ready.bias))
    unfused(native(sums), native(rows), extras.alpha, extras.beta, added, bias, extras.activation)


def _addend(library: Library, ready: Prepared, c: ArrayView) -> ArrayView:
    """Return an addend as a matrix like the result."""
    rows, columns = ready.geometry.matrix
    found = as_rows(c)
    if ready.geometry.kind != WGRAD and found is not None:
        return found
    return dense(library, c)._replace(shape=(rows, columns), strides=(columns, 1))


def columns_of(call: Call, ready: Prepared, start: int, count: int) -> ArrayView:
    """Return the columns of some images: (pixels, groups, taps and channels)."""
    g, library = ready.geometry, call.where.library
    image = _images(library, ready.image, start, count)
    per = image.shape[-1] // g.groups
    if g.is_product:
        rows = _rows(library, image)
        rows = rows._replace(shape=(rows.shape[0], g.groups, per), strides=(rows.strides[0], per, 1))
        return _padded(library, rows) if g.groups > 1 else rows
    if g.groups > 1 and not _lines_suit(image, g.taps * per):
        return _columns_apart(call, g, image, per)
    rows, line = extents_of(g, image)
    made = library.strided((rows, line), (line, 1), image.dtype, image)
    _write(call, g, image, made)
    return made._replace(shape=(rows, g.groups, g.taps * per), strides=(line, g.taps * per, 1))


def _columns_apart(call: Call, g: Geometry, image: ArrayView, per: int) -> ArrayView:
    """Return the columns of an image as a matrix per group, whose lines are padded to 16 bytes."""
    library = call.where.library
    native = library.native(image)
    one = g._replace(image=(*g.image[:-1], per), groups=1)
    parts = [view_of(native[..., i * per : (i + 1) * per]) for i in range(g.groups)]
    rows, line = extents_of(one, parts[0])
    made = library.strided((g.groups, rows, line), (rows * line, line, 1), image.dtype, image)
    matrices = library.native(made)
    for i, part in enumerate(parts):
        _write(call, one, part, view_of(matrices[i]))
    return made._replace(shape=(rows, g.groups, g.taps * per), strides=(line, rows * line, 1))


def _write(call: Call, g: Geometry, image: ArrayView, made: ArrayView) -> None:
    """Launch the kernel that writes columns."""
    found = writing(g, image, made)
    kernel = kernel_of(found.config, call.where.cpu)
    call.told(launched(kernel, found.image, found.columns, *found.numbers, **call.options))


def _lines_suit(x: ArrayView, elements: int) -> bool:
    """Return True if lines of a number of elements are whole vectors of 16 bytes."""
    return elements * numpy_dtype(x.dtype).itemsize % 16 == 0


def _padded(library: Library, x: ArrayView) -> ArrayView:
    """Return matrices that fast GEMM kernels can read: a copy with lines padded to 16 bytes, if that is needed."""
    item = numpy_dtype(x.dtype).itemsize
    steps = [step for n, step in zip(x.shape[:-1], x.strides[:-1]) if n != 1]
    if x.pointer % 16 == 0 and all(step * item % 16 == 0 for step in steps):
        return x
    return dense(library, x, max(1, 16 // item))


class Writing(NamedTuple):
    """A launch that writes columns."""

    config: UnfoldConfig
    image: ArrayView
    columns: ArrayView
    numbers: tuple[int, ...]


def extents_of(g: Geometry, image: ArrayView) -> tuple[int, int]:
    """Return the number of rows of the columns of some images, and the elements per row, padded to 16 bytes."""
    pixels = prod(g.extents if g.kind == DGRAD else g.result[1:-1])
    unit = max(1, 16 // numpy_dtype(image.dtype).itemsize)
    return image.shape[0] * pixels, -(-g.taps * image.shape[-1] // unit) * unit


def writing(g: Geometry, image: ArrayView, made: ArrayView) -> Writing:
    """Return the launch that writes the columns of some images to a matrix."""
    w, channels, line = g.window, image.shape[-1], made.strides[0]
    gradient = g.kind == DGRAD
    extents = g.extents if gradient else g.result[1:-1]
    per = channels // g.groups
    item = numpy_dtype(image.dtype).itemsize
    steps = image.strides[:-1]
    last = image.strides[-1] == 1 or channels == 1
    size = gcd(8, per * item, image.pointer, *[s * item for s in steps]) if last else item
    words = size // item
    name, more = f"i{8 * size}", 3 - len(extents)

    def word(x: ArrayView, shape: tuple[int, ...], strides: tuple[int, ...]) -> ArrayView:
        inner = [s // words for s in strides[:-1]]
        return x._replace(dtype=name, shape=(*shape[:-1], shape[-1] // words), strides=(*inner, strides[-1]))

    shape, strides = (image.shape[0], *(1,) * more, *image.shape[1:]), (steps[0], *(0,) * more, *image.strides[1:])
    given = word(image, shape, strides)
    given = given._replace(shape=given.shape[::-1], strides=given.strides[::-1])
    matrix = word(made, (made.shape[0], line), (line, 1))  # with zeros past the last tap
    along = list(zip(w.taps, extents, w.before, w.strides, w.dilations))
    if w.flip:  # The last tap of a flipped filter is the first, and dilations are negative.
        along = [(t, n, before - (t - 1) * d, u, -d) for t, n, before, u, d in along]
    numbers = [(1, 1, 0, 1, 1)] * more + along
    flat = [n for of_one in numbers[::-1] for n in of_one]
    return Writing(UnfoldConfig(8 * size, gradient), given, matrix, (per // words, g.groups, *flat))


def _images(library: Library, x: ArrayView, start: int, count: int) -> ArrayView:
    """Return some images of an array, or rows of a matrix."""
    return x if count == x.shape[0] else view_of(library.native(x)[start : start + count])


def _rows(library: Library, x: ArrayView) -> ArrayView:
    """Return an image as a matrix of rows, copied if its strides do not allow that."""
    found = as_rows(x) if x.strides[-1] == 1 or x.shape[-1] == 1 else None
    found = found or as_rows(dense(library, x))
    assert found is not None
    return found


def _factor(library: Library, other: ArrayView, g: Geometry) -> ArrayView:
    """Return the filter as the second factor, (groups, taps and channels, columns)."""
    per_k, per_c = g.filter[0] // g.groups, g.filter[-1]
    unit = max(1, 16 // numpy_dtype(other.dtype).itemsize)
    shape, (row, *taps, channel) = other.shape, other.strides
    grouped = other._replace(shape=(g.groups, per_k, *shape[1:]), strides=(per_k * row, row, *taps, channel))
    if g.kind == DGRAD and g.groups == g.taps == 1 and 1 in (row, channel):  # op.mm copies what it cannot read
        return other._replace(shape=(1, per_k, per_c), strides=(per_k * row, row, channel))
    if g.kind == DGRAD:  # (groups, taps, K, C)
        order = (0, *range(2, len(shape)), 1, len(shape))
        turned = grouped._replace(
            shape=tuple([grouped.shape[i] for i in order]), strides=tuple([grouped.strides[i] for i in order])
        )
        turned = dense(library, turned, unit)
        line, rows = turned.strides[-2], g.taps * per_k
        return turned._replace(shape=(g.groups, rows, per_c), strides=(rows * line, line, 1))
    made = grouped if _goes_on(grouped) else dense(library, grouped)
    across = g.taps * per_c
    made = made._replace(shape=(g.groups, per_k, across), strides=(*made.strides[:2], 1))
    made = _padded(library, made) if g.groups > 1 else made
    return made._replace(shape=(g.groups, across, per_k), strides=(made.strides[0], 1, made.strides[1]))


def _goes_on(x: ArrayView) -> bool:
    """Return True if taps and channels of a grouped filter can be merged into one mode."""
    reach = 1
    for n, step in zip(reversed(x.shape[2:]), reversed(x.strides[2:])):
        if n != 1 and step != reach:
            return False
        reach *= n
    return True


def _multiplied(
    call: Call, a: ArrayView, b: ArrayView, out: ArrayView, extras: LinearCombination, c: ArrayView | None,
    bias: ArrayView | None, kernel: object, *, owned: bool = False,
) -> None:  # fmt: skip
    """Compute a GEMM or a batched GEMM.

    Args:
        kernel: the kernel that the call selects.
        owned: stores may overwrite the padding between rows of ``out``.
    """
    library = call.where.library

    def given(x: ArrayView | None) -> Any:
        return None if x is None else library.native(x)

    rank = len(a.shape)
    extras = extras._replace(c=given(c), bias=given(bias))
    device = "cpu" if call.where.cpu else call.where.device
    stream = None if library.name in ("torch", "cupy") else call.stream
    arrays = given(a), given(b), given(out)
    wanted = KernelOverride(kernel)
    product(call.name, rank, *arrays, None, extras, device, stream, call.run, wanted=wanted, owned=owned)


def _pixels(
    call: Call, columns: ArrayView, factor: ArrayView, out: ArrayView, extras: LinearCombination,
    c: ArrayView | None, bias: ArrayView | None, kernel: object, *, owned: bool,
) -> None:  # fmt: skip
    """Compute the GEMM of the result's pixels."""
    (m, groups, k), (row, group, one) = columns.shape, columns.strides
    if groups == 1:
        _multiplied(call, _of_group(columns, 1), _of_group(factor, 0), out, extras, c, bias, kernel, owned=owned)
        return
    a = columns._replace(shape=(groups, m, k), strides=(group, row, one))
    per = out.shape[1] // groups
    made = out._replace(shape=(groups, m, per), strides=(per, out.strides[0], 1))
    _multiplied(call, a, factor, made, extras, None, None, kernel)


def _of_group(x: ArrayView, mode: int) -> ArrayView:
    """Return the matrix of the only group."""
    kept = [i for i in range(3) if i != mode]
    return x._replace(shape=tuple([x.shape[i] for i in kept]), strides=tuple([x.strides[i] for i in kept]))


def _weights(
    call: Call, columns: ArrayView, y: ArrayView, out: ArrayView, extras: LinearCombination, c: ArrayView | None,
    first: bool, kernel: object, *, owned: bool,
) -> None:  # fmt: skip
    """Compute the GEMM of the gradient of the filters, or add to it."""
    if not first:
        extras, c = extras.of_sums()._replace(beta=1.0), out
    (m, groups, k), (row, group, one) = columns.shape, columns.strides
    if groups == 1:
        a = y._replace(shape=y.shape[::-1], strides=y.strides[::-1])
        _multiplied(call, a, _of_group(columns, 1), out, extras, c, None, kernel, owned=owned)
        return
    per = out.shape[0] // groups
    y = _padded(call.where.library, y._replace(shape=(m, groups, per), strides=(y.strides[0], per, 1)))
    a = y._replace(shape=(groups, per, m), strides=(y.strides[1], 1, y.strides[0]))
    b = columns._replace(shape=(groups, m, k), strides=(group, row, one))
    made = out._replace(shape=(groups, per, k), strides=(per * out.strides[0], out.strides[0], 1))
    if c is not None:
        c = made
    _multiplied(call, a, b, made, extras, c, None, kernel)
