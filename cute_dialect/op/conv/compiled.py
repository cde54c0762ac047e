"""Compiled convolution kernels, cached by their configuration."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

from cute_dialect.kernels.conv.config import WGRAD, ConvConfig
from cute_dialect.kernels.conv.depthwise import DepthwiseConfig, depthwise_text
from cute_dialect.kernels.conv.depthwise_weights import DepthwiseWeightsConfig, depthwise_weights_text
from cute_dialect.kernels.conv.direct import DirectConfig, direct_text
from cute_dialect.kernels.conv.direct_weights import DirectWeightsConfig, direct_weights_text
from cute_dialect.kernels.conv.few_results import FewResultsConfig, few_results_text
from cute_dialect.kernels.conv.hopper import conv_text
from cute_dialect.kernels.conv.unfold import UnfoldConfig, unfold_text
from cute_dialect.op.conv.choice import choice_of
from cute_dialect.op.execute.kernel_cache import compiled_kernel
from cute_dialect.op.execute.kernels import Runner

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.runtime.launch import CompiledModule, Kernel

__all__ = ["ConvKernel", "ConvRunner", "PlainKernel", "conv_runner", "kernel_library", "kernel_of", "kernel_text"]

PlainKernel: TypeAlias = (
    DepthwiseConfig | DepthwiseWeightsConfig | DirectConfig | DirectWeightsConfig | FewResultsConfig | UnfoldConfig
)
"""A kernel without a workspace: a depthwise or direct convolution, its gradient of the filters, or unfolding."""

ConvKernel: TypeAlias = ConvConfig | PlainKernel
"""A convolution kernel: a GEMM with im2col loads, or a kernel without."""


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
        case FewResultsConfig():
            return few_results_text(kernel)
        case UnfoldConfig():
            return unfold_text(kernel)


def kernel_library(kernel: ConvKernel, *, elsewhere: bool = False, cpu: bool = False) -> CompiledModule:
    """Return the compiled kernel; ``elsewhere``: compiled in another process; ``cpu``: for the interpreter."""
    return compiled_kernel(kernel.name, partial(kernel_text, kernel), elsewhere=elsewhere, cpu=cpu)


class ConvRunner(Runner):
    """A kernel with its workspace; call it with image, filter and result, or with the arrays in their places."""

    def __init__(self, config: ConvConfig, module: CompiledModule):
        super().__init__(choice_of(config), module)
        self.config = config

    def _memory(self, stream: int, device: int, shape: Sequence[int], of_torch: bool) -> tuple[Any, Any]:
        """Return the workspace of a launch; in the gradient of a filter each chunk of a tap has 64 columns."""
        if self.config.kind == WGRAD:
            filters, channels, taps, *groups = shape
            shape = filters, -(-channels // 64) * 64 * taps, *groups
        return super()._memory(stream, device, shape, of_torch)


@cache
def conv_runner(config: ConvConfig, cpu: bool = False) -> ConvRunner:
    """Return the compiled kernel, ready to launch with image, filter and result."""
    return ConvRunner(config, kernel_library(config, cpu=cpu))


@cache
def kernel_of(kernel: PlainKernel, cpu: bool = False) -> Kernel:
    """Return a compiled kernel without a workspace."""
    return kernel_library(kernel, cpu=cpu).kernel("launch")
