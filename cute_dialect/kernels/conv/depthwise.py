"""Depthwise convolution: each channel has a filter of its own; memory-bound, without tensor cores.

A thread computes 16 bytes of channels of four pixels that follow each other: what their taps share comes from L1.  The
filter is given as (C, taps), contiguous along C.

    launch(x, f, y, config=DepthwiseConfig("f16", "f16", Window((3, 3), (1, 1), (1, 1))))
"""

# Operators and attributes are those of values in a trace.
# pyright: basic, reportOptionalMemberAccess=false

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.conv.config import Window, of_elements
from cute_dialect.kernels.gemm.elements import number
from cute_dialect.kernels.gemm.epilogue import Addends, Epilogue
from cute_dialect.kernels.gemm.fused import Fused
from cute_dialect.kernels.printed import printed

__all__ = ["DepthwiseConfig", "depthwise_text"]

THREADS = 256
PIXELS = 4
"""Pixels of a row that a thread computes."""


class DepthwiseConfig(NamedTuple):
    """The configuration of a kernel: types of the image and of the result, two dimensions of a window, and what becomes
    of the sums, of each element alone.
    """

    element: str
    output: str
    window: Window
    epilogue: Epilogue = Epilogue()

    @property
    def channels(self) -> int:
        """Channels of a thread: 16 bytes of the image's."""
        return 128 // number(self.element).width

    @property
    def name(self) -> str:
        """Names the kernel."""
        more = f"-{self.epilogue.name}" if self.epilogue.active else ""
        return f"depthwise-{self.element}-{self.output}-{self.window.name}{more}"

    def check(self) -> None:
        """Raise ValueError unless there is such a kernel."""
        self.epilogue.check()
        if not of_elements(self.epilogue):
            raise ValueError("expected an epilogue of single elements, got one of rows or columns")


@cute.jit
def launch(
    image: cute.Tensor, filter: cute.Tensor, result: cute.Tensor, source: cute.Tensor | None = None,
    bias: cute.Tensor | None = None, alpha: cute.Float32 | None = None, beta: cute.Float32 | None = None,
    operands: Any = None, config: cute.Constexpr[Any] = None,
):  # fmt: skip
    """Launch the kernel: ``image`` (C, W, H, N), ``filter`` (C, taps), ``result`` (C, Q, P, N); what stands behind is
    for epilogues that want it, of matrices with a row for each pixel.
    """
    config.check()
    addends = Addends(source, bias, alpha, beta, operands)
    channels, _, _, images = image.shape
    assert channels % config.channels == 0, "channels must be whole vectors"
    assert filter.shape[0] == channels, "the filter must have as many channels"
    assert result.shape[0] == channels, "the result must have as many channels"
    assert result.shape[3] == images, "the result must have as many images"
    _, q, p, _ = result.shape
    strips = cute.ceil_div(q, PIXELS)
    total = cute.assume(channels // config.channels * strips * p * images, range=(0, None))
    config.epilogue.check_extents(q * p * images, channels, addends)
    kernel = depthwise(image, filter, result, total, strips, addends, config)
    kernel.launch(grid=cute.ceil_div(total, THREADS), block=THREADS)


class _Elements:
    """Where the sums of a thread lie in the result as a matrix: row and column of each; a row behind the last one for
    pixels that there are not.
    """

    def __init__(self, vector: int, row: Any, column: Any, pixels: Any):
        self.vector, self.row, self.column, self.pixels = vector, row, column, pixels

    def __getitem__(self, i: Any) -> tuple[Any, Any]:
        pixel = i // self.vector
        return _row(self.row, pixel, self.pixels), self.column + i % self.vector


@cute.jit
def _row(first: Any, pixel: Any, pixels: Any) -> Any:  # an operator's method is not converted
    return first + pixel if pixel < pixels else cute.Int32(1 << 30)


@cute.kernel
def depthwise(
    image: Any, filter: Any, result: Any, total: cute.Int32, strips: cute.Int32, addends: Addends,
    config: cute.Constexpr[Any],
):  # fmt: skip
    """Compute 16 bytes of channels of four pixels."""
    w, vector, kind = config.window, config.channels, image.element_type
    (before_h, before_w), (u, v), (dh, dw) = w.before, w.strides, w.dilations
    channels, width, height, _ = image.shape
    index = cute.arch.block_idx().x * THREADS + cute.arch.thread_idx().x
    if index < total:
        rest, lane = divmod(index, channels // vector)
        rest, strip = divmod(rest, strips)
        n, p = divmod(rest, result.shape[2])
        c, first = lane * vector, strip * PIXELS
        load = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), kind, num_bits_per_copy=128)
        sums = cute.make_rmem_tensor(cute.make_layout((vector, PIXELS)), cute.Float32)
        sums.fill(0.0)
        row = cute.make_layout(vector)
        seen, factor = cute.make_rmem_tensor(row, kind), cute.make_rmem_tensor(row, kind)
        for r in cute.range_constexpr(w.taps[0]):
            h = p * u - before_h + r * dh
            if (h >= 0) & (h < height):
                for s in cute.range_constexpr(w.taps[1]):
                    tap = (w.taps[0] - 1 - r) * w.taps[1] + (w.taps[1] - 1 - s) if w.flip else r * w.taps[1] + s
                    at = (filter[None, tap].iterator + c).align(16)
                    cute.copy(load, cute.make_tensor(at, row), factor)
                    for i in cute.range_constexpr(PIXELS):
                        x = (first + i) * v - before_w + s * dw
                        if (x >= 0) & (x < width):
                            at = (image[None, x, h, n].iterator + c).align(16)
                            cute.copy(load, cute.make_tensor(at, row), seen)
                            for j in cute.range_constexpr(vector):
                                product = seen[j].to(cute.Float32) * factor[j].to(cute.Float32)
                                sums[j, i] = sums[j, i] + product
        if config.epilogue.active:
            _, q, p_all, _ = result.shape
            places = _Elements(vector, (n * p_all + p) * q + first, c, q - first)
            Fused(config.epilogue, addends, pairs=False).apply_each(sums, places)
        for i in cute.range_constexpr(PIXELS):
            if first + i < result.shape[1]:
                out = cute.make_rmem_tensor(row, result.element_type)
                for j in cute.range_constexpr(vector):
                    out[j] = sums[j, i].to(result.element_type)
                at = (result[None, first + i, p, n].iterator + c).align(16)
                cute.autovec_copy(out, cute.make_tensor(at, row))


@printed
def depthwise_text(config: DepthwiseConfig) -> cute.Compiled:
    """Return the kernel ``@depthwise`` and its host function ``@launch`` as text."""
    kind, out = number(config.element), number(config.output)
    d, e = (f"?{{div={config.channels}}}", f"?{{div={max(config.channels, 128 // out.width)}}}")
    tensors = [
        cute.Tensor[kind, f"(?,?,?,?):(1,{d},{d},{d})", "align<16>"],
        cute.Tensor[kind, f"(?,?):(1,{d})", "align<16>"],
        cute.Tensor[out, f"(?,?,?,?):(1,{e},{e},{e})", "align<16>"],
    ]
    behind = config.epilogue.arguments(config.output)
    return cute.trace(launch, *tensors, **behind, config=config)
