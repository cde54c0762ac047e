"""The kernels of convolutions, compiled: each once, whoever asks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

from cute_dialect.kernels.conv.config import WGRAD, ConvConfig
from cute_dialect.kernels.conv.depthwise import DepthwiseConfig, depthwise_text
from cute_dialect.kernels.conv.hopper import conv_text
from cute_dialect.kernels.conv.unfold import UnfoldConfig, unfold_text
from cute_dialect.op.compiled import Libraries, Runner, by_name
from cute_dialect.op.conv.choice import choice_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.runtime.launch import CompiledModule, Kernel

__all__ = ["ConvKernel", "ConvRunner", "conv_runner", "kernel_library", "kernel_of"]

_LIBRARIES = Libraries()


ConvKernel: TypeAlias = ConvConfig | DepthwiseConfig | UnfoldConfig
"""A kernel of convolutions: with im2col loads, of one channel each, what writes out what the taps see."""


def kernel_library(kernel: ConvKernel, *, elsewhere: bool = False, cpu: bool = False) -> CompiledModule:
    """Return the compiled kernel; ``elsewhere``: compiled in another process; ``cpu``: for the interpreter."""
    match kernel:
        case ConvConfig():
            text = partial(conv_text, kernel)
        case DepthwiseConfig():
            text = partial(depthwise_text, kernel)
        case UnfoldConfig():
            text = partial(unfold_text, kernel)
    return _LIBRARIES.get((kernel, cpu), lambda: by_name(kernel.name, text, elsewhere, cpu))


class ConvRunner(Runner):
    """A kernel with the memory that its blocks share: call it with image, filter and result, or what stands there."""

    def __init__(self, config: ConvConfig, module: CompiledModule):
        super().__init__(choice_of(config), module)
        self.config = config

    def _memory(self, stream: int, device: int, shape: Sequence[int], of_torch: bool) -> tuple[Any, Any]:
        """Return the memory for a launch: of a filter's gradient there are 64 columns for each chunk of a tap."""
        if self.config.kind == WGRAD:
            filters, channels, taps, *groups = shape
            shape = filters, -(-channels // 64) * 64 * taps, *groups
        return super()._memory(stream, device, shape, of_torch)


@cache
def conv_runner(config: ConvConfig, cpu: bool = False) -> ConvRunner:
    """Return the compiled kernel, ready to be called with image, filter and result."""
    return ConvRunner(config, kernel_library(config, cpu=cpu))


@cache
def kernel_of(kernel: DepthwiseConfig | UnfoldConfig, cpu: bool = False) -> Kernel:
    """Return a compiled kernel whose blocks share no memory."""
    return kernel_library(kernel, cpu=cpu).kernel("launch")
