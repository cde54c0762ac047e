"""Convolution of one tap with few results per pixel: each result is a dot product of channels, without tensor cores.

An MMA computes at least 8 results per group, and ``ldmatrix`` and TMA need rows of whole 16-byte vectors.  Here a warp
reads all channels of some pixels with the widest aligned loads, multiplies them by filters in shared memory, and adds
its lanes by shuffles.  The kernel is bound by the loads of the image if a group has at most 8 results.

    launch(x, f, y, config=FewResultsConfig("f16", "f16", groups=2, depth=479, width=1))

The gradient of an image (dgrad) is the same sum over the output's gradient, with filters in another order.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from typing import NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.lang.values.signature_types import Int

WARPS = 8
"""Warps per block."""
_LANES = 32
_AT_ONCE = 8
"""Elements of filters per thread in flight to shared memory."""
_SUMS = 32
"""Maximum number of accumulators per lane."""


class FewResultsConfig(NamedTuple):
    """Configuration of a convolution of one tap with few results per pixel."""

    element: str
    output: str
    groups: int
    depth: int  # channels of a group that are read
    width: int  # results of a group
    gradient: bool = False  # dgrad: the filter has the results of a group in adjacent elements
    vector: int = 8  # channels per load: 1, 2, 4 or 8, a divisor of all channels
    pixels: int = 4  # that a warp reads at once
    blocks: int = 2  # resident blocks per multiprocessor

    @property
    def channels(self) -> int:
        """Channels of a pixel that are read."""
        return self.groups * self.depth

    @property
    def results(self) -> int:
        """Results per pixel."""
        return self.groups * self.width

    @property
    def steps(self) -> int:
        """Number of vectors per lane and pixel."""
        return -(-self.channels // (_LANES * self.vector))

    @property
    def registers(self) -> int:
        """Registers for the loaded vectors and the accumulators."""
        return self.pixels * (self.steps * -(-self.vector // 2) + self.results)

    @property
    def bytes(self) -> int:
        """Bytes of shared memory."""
        return 4 * _LANES * self.steps * self.vector * self.width

    @property
    def name(self) -> str:
        """Name of the kernel."""
        kind = "dgrad" if self.gradient else "fprop"
        shape = f"g{self.groups}c{self.depth}k{self.width}-v{self.vector}p{self.pixels}x{self.blocks}"
        return f"few-results-{kind}-{self.element}-{self.output}-{shape}"

    def groups_of(self, step: int) -> range:
        """Return the groups of the channels that a step reads.

        >>> config = FewResultsConfig("f16", "f16", 2, 479, 1, vector=2)
        >>> [len(config.groups_of(i)) for i in (6, 7, 8)]
        [1, 2, 1]
        """
        across = _LANES * self.vector
        last = min((step + 1) * across, self.channels) - 1
        return range(step * across // self.depth, last // self.depth + 1)

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        if self.vector not in (1, 2, 4, 8) or self.channels % self.vector:
            raise ValueError(
                f"few results: vectors of {self.vector} elements do not divide {self.channels} channels; "
                "use 1, 2, 4 or 8"
            )
        if self.pixels * self.results > _SUMS:
            raise ValueError(
                f"few results: {self.pixels} pixels of {self.results} results need more than {_SUMS} accumulators; "
                "use fewer pixels"
            )
        if self.bytes > 227 * 1024:
            raise ValueError(f"few results: the filters need {self.bytes} bytes of shared memory; use another kernel")


@cute.jit
def launch(
    image: cute.Tensor,
    filter: cute.Tensor,
    result: cute.Tensor,
    blocks: cute.Int32,
    config: cute.Constexpr[FewResultsConfig],
):
    """Launch the kernel.

    Args:
        image: (C, pixels).
        filter: All elements of the filter, contiguous.
        result: (K, pixels).
        blocks: Maximum number of blocks.
        config: The configuration.
    """
    config.check()
    assert image.shape[0] == config.channels, "the image must have the channels of the configuration"
    assert result.shape[0] == config.results, "the result must have the results of the configuration"
    assert result.shape[1] == image.shape[1], "image and result must have the same number of pixels"
    assert cute.size(filter) == config.channels * config.width, "filter must have one element per channel and result"
    turns = cute.ceil_div(result.shape[1], config.pixels)
    grid = cute.max(1, cute.min(cute.ceil_div(turns, WARPS), blocks))
    few_results(image, filter, result, turns, config).launch(
        grid=grid, block=_LANES * WARPS, min_blocks_per_mp=config.blocks
    )


@cute.kernel
def few_results(
    image: cute.Tensor,
    filter: cute.Tensor,
    result: cute.Tensor,
    turns: cute.Int32,
    config: cute.Constexpr[FewResultsConfig],
):
    """Compute the results of some pixels per warp and iteration."""
    filters = _staged(filter, config)
    warp, lane = divmod(cute.arch.thread_idx().x, _LANES)
    filters = cute.make_tensor(filters.iterator + lane, filters.layout)
    for turn in range(cute.arch.block_idx().x * WARPS + warp, turns, cute.arch.grid_dim().x * WARPS):
        # Zero, unknown to the optimizer, which would keep all filters in registers across iterations.
        zero = cute.arch.opaque(turn) - turn
        own = cute.make_tensor(filters.iterator + zero, filters.layout)
        _compute(config, image, own, result, turn * config.pixels, lane)


def _staged(filter: cute.Tensor, config: FewResultsConfig) -> cute.Tensor:
    """Return the filters as f32 in shared memory, (results of a group, elements of a vector, steps) per lane."""
    count, size = config.width, config.vector
    shape = (count, size, config.steps)
    layout = cute.make_layout(shape, stride=(_LANES, _LANES * count, _LANES * count * size))
    filters = cute.smem_tensor(cute.Float32, cute.make_layout(config.bytes // 4), 16)
    atom, one = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), filter.element_type), cute.make_layout(1)
    total, threads = config.bytes // 4, _LANES * WARPS
    for start in range(cute.arch.thread_idx().x, total, threads * _AT_ONCE):
        held = cute.make_rmem_tensor((1, _AT_ONCE), filter.element_type)
        flags = cute.make_rmem_tensor((1, _AT_ONCE), cute.Boolean)
        held.fill(0)
        for n in cute.range_constexpr(_AT_ONCE):
            rest, lane = divmod(start + n * threads, _LANES)
            rest, c = divmod(rest, count)
            step, e = divmod(rest, size)
            channel = (step * _LANES + lane) * size + e
            at = channel * count + c
            if not config.gradient:
                at = (channel // config.depth * count + c) * config.depth + channel % config.depth
            flags[0, n] = channel < config.channels
            source = cute.make_tensor(filter.iterator + cute.where(flags[0, n], at, 0), one)
            cute.copy(atom, source, held[None, n], pred=flags[None, n])
        for n in cute.range_constexpr(_AT_ONCE):
            _put(filters, start + n * threads, total, held[0, n].to(cute.Float32))
    cute.arch.sync_threads()
    return cute.make_tensor(filters.iterator, layout)


def _put(filters: cute.Tensor, i: cute.Int32, total: int, value: cute.Float32) -> None:
    if i < total:
        filters[i] = value


def _compute(
    config: FewResultsConfig,
    image: cute.Tensor,
    filters: cute.Tensor,
    result: cute.Tensor,
    first: Int,
    lane: cute.Int32,
) -> None:
    """Load some pixels, compute their results, and store them."""
    size, width, total = config.vector, config.width, result.shape[1]
    kind, bits = image.element_type, config.vector * image.element_type.width
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), kind, num_bits_per_copy=bits)
    held = cute.make_rmem_tensor((size, config.steps, config.pixels), kind)
    held.fill(0)
    flag = cute.make_rmem_tensor(1, cute.Boolean)
    vector = cute.make_layout(size)
    for r in cute.range_constexpr(config.pixels):
        start = image[None, cute.min(first + r, total - 1)].iterator
        for i in cute.range_constexpr(config.steps):
            channel = (i * _LANES + lane) * size
            flag[0] = (channel < config.channels) & (first + r < total)
            source = (start + cute.where(flag[0], channel, 0)).align(bits // 8)
            cute.copy(atom, cute.make_tensor(source, vector), held[None, i, r], pred=flag)
    sums = cute.make_rmem_tensor((config.results, config.pixels), cute.Float32)
    sums.fill(0.0)
    for i in cute.range_constexpr(config.steps):
        groups = config.groups_of(i)
        for e in cute.range_constexpr(size):
            group = ((i * _LANES + lane) * size + e) // config.depth
            factors = [filters[c, e, i] for c in range(width)]
            for r in cute.range_constexpr(config.pixels):
                value = held[e, i, r].to(cute.Float32)
                for of in groups:
                    # Values of other groups are excluded rather than multiplied by zero, because they may be infinite.
                    own = value if len(groups) == 1 else cute.where(group == of, value, 0.0)
                    for c in range(width):
                        place = of * width + c, r
                        factor = factors[c] if len(groups) == 1 else cute.where(group == of, factors[c], 0.0)
                        sums[place] = cute.math.fma(own, factor, sums[place])
    _store(config, sums, result, first, lane)


def _store(
    config: FewResultsConfig, sums: cute.Tensor, result: cute.Tensor, first: cute.Int32, lane: cute.Int32
) -> None:
    """Add the lanes of a warp, and store one result per lane."""
    mine = cute.Float32(0.0)
    for r in cute.range_constexpr(config.pixels):
        for k in cute.range_constexpr(config.results):
            total = sums[k, r]
            for step in (16, 8, 4, 2, 1):
                total = total + cute.arch.shuffle_sync_bfly(total, step)
            mine = cute.where(lane == r * config.results + k, total, mine)
    r, k = divmod(lane, config.results)
    if (lane < config.pixels * config.results) & (first + r < result.shape[1]):
        result[k, first + r] = mine.to(result.element_type)


@printed
def few_results_text(config: FewResultsConfig) -> cute.Compiled:
    """Trace the kernel ``@few_results`` and its host function ``@launch``."""
    kind, size = number(config.element), config.vector
    step = f"?{{div={size}}}" if size > 1 else "?"
    image = cute.Tensor[kind, f"({config.channels},?):(1,{step})", f"align<{size * kind.width // 8}>"]
    filter = cute.Tensor[kind, "?:1"]
    result = cute.Tensor[number(config.output), "(?,?):(1,?)"]
    return cute.trace(launch, image, filter, result, cute.Int32(0), config=config)
