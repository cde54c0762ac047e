"""The kernels of convolutions, compiled: each once, whoever asks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.conv.config import WGRAD, ConvConfig
from cute_dialect.op.compiled import Libraries, Runner, by_name
from cute_dialect.op.conv.choice import choice_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.kernels.conv.depthwise import DepthwiseConfig
    from cute_dialect.kernels.conv.unfold import UnfoldConfig
    from cute_dialect.runtime.launch import CompiledModule, Kernel

__all__ = ["ConvRunner", "conv_library", "conv_runner", "depthwise_kernel", "unfold_library", "unfolder"]

_LIBRARIES = Libraries()


def conv_library(config: ConvConfig, *, elsewhere: bool = False, cpu: bool = False) -> CompiledModule:
    """Return the compiled kernel; ``elsewhere``: compiled in another process; ``cpu``: for the interpreter."""
    from cute_dialect.kernels.conv import conv_text

    return _LIBRARIES.get(
        (config, cpu), lambda: by_name(config.name, partial(conv_text, config), elsewhere, cpu)
    )  # fmt: skip


class ConvRunner(Runner):
    """A kernel with the memory that its blocks share: call it with image, filter and result, or what stands there."""

    def __init__(self, config: ConvConfig, module: CompiledModule):
        super().__init__(choice_of(config), module)
        self.config = config

    def _memory(self, stream: int, device: int, shape: Sequence[int], of_torch: bool) -> tuple[Any, Any]:
        """Return the memory for a launch: of a filter's gradient there are 64 columns for each chunk of a tap."""
        if self.config.kind == WGRAD:
            filters, channels, taps = shape
            shape = filters, -(-channels // 64) * 64 * taps
        return super()._memory(stream, device, shape, of_torch)


@cache
def conv_runner(config: ConvConfig, cpu: bool = False) -> ConvRunner:
    """Return the compiled kernel, ready to be called with image, filter and result."""
    return ConvRunner(config, conv_library(config, cpu=cpu))


@cache
def depthwise_kernel(config: DepthwiseConfig, cpu: bool = False) -> Kernel:
    """Return the compiled kernel of a depthwise convolution."""
    from cute_dialect.kernels.conv.depthwise import depthwise_text

    text = partial(depthwise_text, config)
    return _LIBRARIES.get((config, cpu), lambda: by_name(config.name, text, False, cpu)).kernel("launch")


def unfold_library(config: UnfoldConfig, *, elsewhere: bool = False, cpu: bool = False) -> CompiledModule:
    """Return the compiled kernel that writes out what taps see; the rest is as of :func:`conv_library`."""
    from cute_dialect.kernels.conv.unfold import unfold_text

    return _LIBRARIES.get(
        (config, cpu), lambda: by_name(config.name, partial(unfold_text, config), elsewhere, cpu)
    )  # fmt: skip


@cache
def unfolder(config: UnfoldConfig, cpu: bool = False) -> Kernel:
    """Return the kernel that writes out what taps see."""
    return unfold_library(config, cpu=cpu).kernel("launch")
