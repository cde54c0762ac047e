"""The kernels of convolutions, compiled: each once, whoever asks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

from cute_dialect.kernels.conv.config import WGRAD, ConvConfig
from cute_dialect.kernels.conv.depthwise import DepthwiseConfig, depthwise_text
from cute_dialect.kernels.conv.depthwise_weights import DepthwiseWeightsConfig, depthwise_weights_text
from cute_dialect.kernels.conv.direct import DirectConfig, direct_text
from cute_dialect.kernels.conv.direct_weights import DirectWeightsConfig, direct_weights_text
from cute_dialect.kernels.conv.hopper import conv_text
from cute_dialect.kernels.conv.unfold import UnfoldConfig, unfold_text
from cute_dialect.op.compiled import Libraries, Runner, by_name
from cute_dialect.op.conv.choice import choice_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.runtime.launch import CompiledModule, Kernel

__all__ = ["ConvKernel", "ConvRunner", "PlainKernel", "conv_runner", "kernel_library", "kernel_of", "kernel_text"]

_LIBRARIES = Libraries()


PlainKernel: TypeAlias = DepthwiseConfig | DepthwiseWeightsConfig | DirectConfig | DirectWeightsConfig | UnfoldConfig
"""A kernel whose blocks share no memory: depthwise, its gradient of the filters, one on tiles of the image, or one that
writes columns.
"""

ConvKernel: TypeAlias = ConvConfig | PlainKernel
"""A kernel of convolutions: a GEMM with im2col loads, or one without."""


def kernel_text(kernel: ConvKernel) -> str:
    """Return a kernel and its host function as text."""
    match kernel:
        case ConvConfig():
            return conv_text(kernel)
        case DepthwiseConfig():
            return depthwise_text(kernel)
        case DepthwiseWeightsConfig():
            return depthwise_weights_text(kernel)
        case DirectConfig():
            return direct_text(kernel)
        case DirectWeightsConfig():
            return direct_weights_text(kernel)
        case UnfoldConfig():
            return unfold_text(kernel)


def kernel_library(kernel: ConvKernel, *, elsewhere: bool = False, cpu: bool = False) -> CompiledModule:
    """Return the compiled kernel; ``elsewhere``: compiled in another process; ``cpu``: for the interpreter."""
    text = partial(kernel_text, kernel)
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
def kernel_of(kernel: PlainKernel, cpu: bool = False) -> Kernel:
    """Return a compiled kernel whose blocks share no memory."""
    return kernel_library(kernel, cpu=cpu).kernel("launch")
