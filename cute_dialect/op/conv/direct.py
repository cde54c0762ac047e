"""Convolutions of few channels per group on tiles of the image: forward, and the gradients of image and filters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import gcd, prod
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.kernels.conv.config import DGRAD, WGRAD
from cute_dialect.kernels.conv.direct import DirectConfig, padded
from cute_dialect.kernels.conv.direct_weights import DirectWeightsConfig
from cute_dialect.op.arrays.library import Library
from cute_dialect.op.arrays.operand_views import aligned_vector, as_rows, dense, merged, padded_view, strides_of
from cute_dialect.op.execute.kernels import kernel_of
from cute_dialect.op.execute.launcher import launched
from cute_dialect.op.execute.tma_copies import pads, with_padding
from cute_dialect.op.problems.conv import Geometry, of_pixels
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.conv.compute import Call
    from cute_dialect.op.problems.conv import Prepared

MEMORY = 227 * 1024
"""Bytes of shared memory per multiprocessor that its blocks can use."""


_TYPES = ("f16", "bf16")
_MOST = 64
"""Maximum number of channels or filters per group for tiles of the image."""
_LONG = 128
"""Number of columns above which tiles of one row have more columns than others."""
_HELD = 100
"""Maximum number of registers in which a warp keeps filters."""
_STEPS, _LONG_CODE, _MANY_STEPS = 400, 128, 48
"""Maximum number of MMAs (16 pixels, 8 results and 16 channels) in the code of a warp, and numbers of MMAs and of K
steps above which the code loops over filter rows.
"""


def is_narrow(g: Geometry, element: str) -> bool:
    """Return True if a group's channels and filters are too few for an im2col GEMM.

    >>> from cute_dialect.op.problems.conv import geometry
    >>> is_narrow(geometry("conv2d", "fprop", (32, 56, 56, 256), (256, 3, 3, 8), 1, 1, 1, 32), "f16")
    True
    """
    c, k = g.filter[-1], g.filter[0] // g.groups
    if element not in _TYPES or len(g.window.taps) != 2 or 0 in g.result or 0 in g.image:
        return False
    return min(c, k) <= _MOST


def vector_of(channels: int) -> int:
    """Return the number of channels per copy: a divisor of ``channels``, at most 8."""
    return gcd(8, channels)


def direct_configs(g: Geometry, element: str, output: str) -> Iterator[DirectConfig]:
    """Yield kernels of a convolution that differ in the tile, the groups per block and the use of registers."""
    if g.kind == WGRAD or not is_narrow(g, element) or output not in (*_TYPES, "f32"):
        return
    w, c, k = g.window._replace(left=()), g.filter[-1], g.filter[0] // g.groups
    base = DirectConfig(element, output, w, c, k, g.kind == DGRAD)
    base = base._replace(vectors=(vector_of(base.depth), vector_of(c), vector_of(base.width)))
    bases = [base]
    if base.vectors[0] < 8 and not g.is_product:
        bases.append(base._replace(padded=True, vectors=(8, base.vectors[1] if base.gradient else 8, base.vectors[2])))
    extents = [-(-n // u) for n, u in zip(g.output[1:-1], base.remainders)]
    most = max(1, min(g.groups, 64 // max(base.deep, padded(base.width))))
    slabs = dict.fromkeys((next(n for n in (8, 4, 2, 1) if n <= most), 1))
    parts = dict.fromkeys(-(-base.width // n) for n in (64, 32, 16, 8))
    whole = False  # True once several whole groups fit a block
    for slab, part, (rows, columns), base in product(slabs, parts, direct_tiles(extents), bases):
        if (slab > 1 and part > 1) or (slab == 1 < most and part == 1 and whole):
            continue
        config = base._replace(groups=slab, parts=part, tile=(rows, columns))
        split = 1 if config.wide <= 64 else 2
        tiles = -(-rows * columns // 16)
        few = tiles <= 4 and slab == 1 and config.narrow >= 16 and not g.is_product
        splits = (1, 2) if few and split == 1 else (split,)
        for held, atoms, split in product((True, False), (2, 1), splits):
            found = config._replace(held=held, atoms=atoms, split=split)
            registers = -(-g.taps * found.deep // 16) * found.narrow // 8 * 2
            long = _multiplications(found) > _LONG_CODE or found.unrolled > _MANY_STEPS
            if not held and long and any(x.rows > 1 for x in found.classes):
                found = found._replace(rolled=True)
            long = _multiplications(found) > _STEPS * 2 * len(found.classes)
            if found.bytes > MEMORY or (held and registers > _HELD) or long:
                continue
            across = next(n for n in (8, 4, 2, 1) if found.units % n == 0)
            if atoms == 1 and (tiles > 8 // across or g.is_product):
                continue
            # The compiler computes offsets again rather than keeping them, so two blocks fit in any case.
            fit = max(2, 65536 // (found.threads * min(255, found.registers)))
            fit = min(4, MEMORY // (found.bytes + 1024), fit)
            whole = whole or slab > 1
            yield found._replace(warps=(across, 8 // across), blocks=max(1, fit))


def _multiplications(c: DirectConfig) -> int:
    """Return the number of MMAs in the code of all residue classes."""
    steps = sum(-(-len(x.row if c.rolled else x.taps) * c.deep // 16) for x in c.classes)
    return steps * c.narrow // 8 * c.atoms


def direct_tiles(extents: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield tiles of rows and columns, the preferred one first."""
    if extents[0] == 1 and extents[1] > _LONG:  # pixels of a convolution of one tap
        for columns in (256, 512, 128, 1024):
            yield 1, columns
        return
    for columns in dict.fromkeys(_even(extents[1], n) for n in (28, 16)):
        for rows in dict.fromkeys(_even(extents[0], n) for n in (8, 4, 16, 2)):
            yield rows, columns


def _even(extent: int, most: int) -> int:
    """Return the extent of tiles, at most ``most``, that divide an extent as evenly as possible."""
    return -(-extent // -(-extent // most))


def direct_config(g: Geometry, element: str, output: str, sms: int = 132) -> DirectConfig | None:
    """Return the kernel of few channels per group that is predicted to be the fastest; None for other convolutions."""
    return min(direct_configs(g, element, output), key=lambda c: _cost(g, c, sms), default=None)


def pixels_of(library: Library, ready: Prepared) -> Prepared:
    """Return a convolution of one tap as in :func:`of_pixels`, with views or copies of its arrays."""
    before, g = ready.geometry, of_pixels(ready.geometry)
    if g is before:
        return ready
    image, other = ready.image, ready.other
    if not before.is_product:
        steps = (1, *before.window.strides, 1)
        strides = tuple([step * u for step, u in zip(image.strides, steps)])
        return ready._replace(geometry=g, image=padded_view(image._replace(shape=g.image, strides=strides)))
    rows = as_rows(image) or as_rows(dense(library, image))
    assert rows is not None
    image = rows._replace(shape=g.image if g.kind != DGRAD else g.result, strides=(0, 0, *rows.strides))
    if g.kind == WGRAD:
        rows = as_rows(other) or as_rows(dense(library, other))
        assert rows is not None
        other = rows._replace(shape=g.result, strides=(0, 0, *rows.strides))
    else:
        other = other._replace(shape=g.filter, strides=(other.strides[0], 0, 0, other.strides[-1]))
    return ready._replace(geometry=g, image=padded_view(image), other=padded_view(other))


_COPIED, _STORED, _SHARED, _MMA, _START = 16, 16, 6, 2.4, 500
"""Bytes per cycle that a block loads and stores; cycles of an ``ldmatrix`` and of an MMA; cycles before a block's data
arrive. Fitted to times of 11 problems and 9 kernels each on an H200.
"""


_FIT, _SPILLED = 150, 1.25
"""Registers above which some are spilled if filters are kept in registers, and the factor of the time then."""
NARROW, _NARROW_STORES = 0.85, 0.5
"""Exponents of the cost of vectors of fewer than 8 elements."""


def _cost(g: Geometry, c: DirectConfig, sms: int) -> float:
    """Return the cycles that a convolution takes, up to a factor."""
    (h, w), (rows, columns), taps = c.tile, c.halo, prod(c.window.taps)
    extents = [-(-n // u) for n, u in zip(g.output[1:-1], c.remainders)]
    tiles = g.image[0] * -(-extents[0] // h) * -(-extents[1] // w)
    blocks = tiles * -(-g.groups // c.groups) * c.parts * len(c.classes)
    share = max(1, min(16, blocks // (4 * sms * c.blocks)))  # tiles for which a block loads filters once
    of_filters = taps * c.channels * -(-c.filters // c.parts) * (8 / c.vectors[1]) ** NARROW / share
    loaded = c.groups * (rows * columns * c.depth * (8 / c.vectors[0]) ** NARROW + of_filters)
    atoms = -(-h * w // (16 * c.atoms * c.warps[1])) * c.warps[1] * c.atoms * c.units
    steps, results = max(len(x.taps) for x in c.classes) * c.deep / 16, c.narrow // 8
    shared = _SHARED * (1 if c.held else 1 + results / 2 / c.atoms)
    stored = h * w * c.groups * c.wide * (8 / c.vectors[2]) ** _NARROW_STORES
    cycles = 2 * loaded / _COPIED + 2 * stored / _STORED + _START
    cycles += atoms * steps * max(shared, _MMA * results)
    cycles *= _SPILLED if c.held and c.registers > _FIT else 1.0
    pads = _padding_microseconds(g, c) * CLOCK if c.padded else 0.0
    return pads + max(1.0, blocks / (sms * c.blocks)) * cycles * c.blocks**0.85 * (1.35 if c.blocks == 1 else 1.0)


def _padding_microseconds(g: Geometry, c: DirectConfig) -> float:
    """Return the time to pad the channels of the image and, for fprop, of the filter."""
    image = g.result if c.gradient else g.image
    rows = prod(image[:-1]) * g.groups + (0 if c.gradient else g.filter[0] * g.taps)
    return _LAUNCH + rows * 2 * (c.depth + c.deep) / _PAD


def microseconds(g: Geometry, c: DirectConfig, sms: int) -> float:
    """Return the predicted time of a kernel. Fitted to the times of 40 random convolutions on an H200."""
    found = _cost(g, c, sms) / CLOCK
    return 3.5 + found * (0.75 + 0.5 / (1 + found / 30))  # blocks of large problems overlap better


CLOCK = 1755
"""Cycles per microsecond."""
_LAUNCH, _PAD = 3.0, 3.4e6
"""Microseconds per launch, and bytes per microsecond that the kernel that pads rows reads and writes."""


def _with_padded_groups(call: Call, ready: Prepared, config: DirectConfig) -> Prepared:
    """Return copies with a multiple of 8 channels per group, and zeros past the last one, for the loads of a kernel."""
    library = call.where.library
    wanted = {"image": (ready.image, config.depth)} | (
        {} if config.gradient else {"other": (ready.other, config.depth)}
    )
    lines = dict[str, tuple[ArrayView, int]]()
    for name, (x, channels) in wanted.items():
        groups = x.shape[-1] // channels
        rows = as_rows(x)
        if rows is None or not pads(rows, 1) or (groups > 1 and rows.strides[0] != x.shape[-1]):
            rows = as_rows(dense(library, x))
        assert rows is not None
        step = channels if groups > 1 else rows.strides[0]
        lines[name] = rows._replace(shape=(rows.shape[0] * groups, channels), strides=(step, 1)), 1
    made = with_padding(library, lines, call.told, call.options, call.where.cpu)
    found = dict[str, ArrayView]()
    for name, (x, channels) in wanted.items():
        shape = (*x.shape[:-1], x.shape[-1] // channels * config.deep)
        found[name] = made[name]._replace(shape=shape, strides=strides_of(shape))
    return ready._replace(**found)


def direct(call: Call, ready: Prepared, rows: ArrayView, config: DirectConfig, operands: Sequence[Any] = ()) -> None:
    """Compute a convolution to a matrix of rows; ``operands``: the arguments of its epilogue."""
    ready = pixels_of(call.where.library, ready)
    ready = _with_padded_groups(call, ready, config) if config.padded else ready
    g, library = ready.geometry, call.where.library
    image, filters, out = (aligned_vector(x) for x in (ready.image, ready.other, rows))
    of_image, of_filters, of_rows = config.vectors
    taken = padded_view(ready.image if image else dense(library, ready.image))
    other, inner = ready.other, prod(ready.other.shape[1:])
    if not filters or merged(other, 1, len(other.shape)) != 1 or other.strides[0] != inner:
        other = dense(library, other)
        filters = 8
    config = config._replace(vectors=(min(of_image, image or 8), min(of_filters, filters), min(of_rows, out)))
    channels, step = g.output[-1], rows.strides[0]
    steps = strides_of(g.output)
    result = rows._replace(shape=g.output[::-1], strides=(1, *[n // channels * step for n in steps[-2::-1]]))
    taken = taken._replace(shape=taken.shape[::-1], strides=(1, *taken.strides[-2::-1]))
    other = other._replace(shape=(other.shape[-1], g.taps, other.shape[0]), strides=(1, other.shape[-1], inner))
    kernel = kernel_of(config, call.where.cpu)
    call.told(launched(kernel, taken, other, result, *operands, **call.options))


# ------------------------------------------------------------------------------------------------- gradients of filters


_REGISTERS = 100
"""Maximum number of accumulators and offsets per thread."""
_THREADS = 512
"""Maximum number of threads per block."""
_MANY = 64
"""Number of accumulators and offsets above which more warps share the taps."""


class DirectWeights(NamedTuple):
    """A kernel and the rows of partial sums that it writes."""

    config: DirectWeightsConfig
    rows: int


def direct_weights_of_all(g: Geometry, element: str, sms: int = 132) -> Iterator[DirectWeights]:
    """Yield kernels of the gradient of filters that differ in the tile and in the work of a warp."""
    if g.kind != WGRAD or not is_narrow(g, element):
        return
    c, k = g.filter[-1], g.filter[0] // g.groups
    base = DirectWeightsConfig(element, g.window._replace(left=()), c, k, (vector_of(c), vector_of(k)))
    _, p, q, _ = g.result
    most = max(1, min(g.groups, 64 // max(base.deep, base.wide)))
    parts = dict.fromkeys(((-(-c // 64), -(-k // 64)), (-(-c // 64), -(-k // 32)), (-(-c // 32), -(-k // 16))))
    for slab in (n for n in (8, 4, 2, 1) if n <= most):
        fits = False
        for part in parts if slab == 1 else ((1, 1),):
            config = base._replace(parts=part)
            for rows, columns in direct_tiles((p, q)):
                for along in _parts_of_taps(config, slab):
                    found = config._replace(tile=(rows, columns), warps=(slab, along, max(1, 8 // (slab * along))))
                    if found.registers > _REGISTERS or found.bytes > MEMORY or found.threads > _THREADS:
                        continue
                    most = 3 if found.registers <= 30 and found.threads <= 256 else 2
                    fit = min(most, MEMORY // (found.bytes + 1024), 512 // found.threads if found.registers > 60 else 9)
                    fits = True
                    yield weights_launch(g, found._replace(blocks=max(1, fit)), sms)
        if fits:
            return


def _parts_of_taps(config: DirectWeightsConfig, slab: int) -> list[int]:
    """Return the number of warps that share the taps; an even division of the work is preferred.

    The list is empty if the accumulators of ``slab`` groups do not fit the registers of a block.
    """
    pairs = -(-config.chunks // 2)
    most = max(6, 8 // slab) if slab == 1 else _THREADS // 32 // slab
    every = {n: config._replace(warps=(1, n, 1)).registers for n in range(1, most + 1)}
    found = [n for n in every if every[n] <= _REGISTERS]
    best = sorted(found, key=lambda n: (-(-pairs // n) * n - pairs, every[n] > _MANY, n))[:1]
    return best or [16] * (slab == 1)


def _weights_cost(g: Geometry, found: DirectWeights, sms: int) -> float:
    """Return the cycles that a gradient takes, up to a factor."""
    c = found.config
    (h, w), (rows, columns) = c.tile, c.halo
    loaded = 2 * c.groups * (
        rows * columns * min(c.deep, c.channels) * (8 / c.vectors[0]) ** NARROW
        + h * w * min(c.wide, c.filters) * (8 / c.vectors[1]) ** NARROW
    )  # fmt: skip
    atoms = -(-h * w // (16 * c.warps[2])) * c.warps[2]
    cycles = 2 * atoms * c.groups * c.warps[1] * (c.pairs * max(6, 2.4 * c.wide // 8) + 4 * c.warps[1]) / 2
    cycles += loaded / 16 + 1000
    _, p, q, _ = g.result
    tiles = g.image[0] * -(-p // h) * -(-q // w)
    rounds = -(-tiles // (found.rows // c.warps[2]))
    slabs = -(-g.groups // c.groups) * prod(c.parts)
    blocks = slabs * (found.rows // c.warps[2])
    resident = min(c.blocks, max(1, -(-blocks // sms)))
    sums = found.rows * prod(g.filter) * 8 / 2000  # cycles to write partial sums and add them up
    cycles *= resident**0.85 * (1.35 if resident == 1 else 1.0) * max(1, blocks / (sms * c.blocks))
    return rounds * cycles + sums


def weights_microseconds(g: Geometry, found: DirectWeights, sms: int) -> float:
    """Return the predicted time of both kernels. Fitted to the times of 20 random convolutions on an H200."""
    cost = _weights_cost(g, found, sms) / CLOCK
    return 7.5 + cost * (0.72 + 0.4 / (1 + cost / 30))


def weights_launch(g: Geometry, config: DirectWeightsConfig, sms: int = 132) -> DirectWeights:
    """Return the launch of a kernel: as many blocks as the chip holds."""
    slabs = -(-g.groups // config.groups) * config.parts[0] * config.parts[1]
    n, p, q, _ = g.result
    tiles = n * -(-p // config.tile[0]) * -(-q // config.tile[1])
    blocks = max(1, min(sms * config.blocks // slabs, tiles))
    return DirectWeights(config, blocks * config.warps[2])


def direct_weights_of(g: Geometry, element: str, sms: int = 132) -> DirectWeights | None:
    """Return the kernel of the gradient of filters of few channels per group; None for others."""
    return min(direct_weights_of_all(g, element, sms), key=lambda x: _weights_cost(g, x, sms), default=None)
