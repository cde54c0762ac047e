"""The kernels of convolutions, compiled: each once, whoever asks."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

from cute_dialect.kernels.conv.config import ConvConfig
from cute_dialect.op.compiled import Libraries, Runner, by_name
from cute_dialect.op.conv.choice import choice_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.runtime.launch import CompiledModule, Kernel

__all__ = ["conv_library", "conv_runner", "unfolder"]

_LIBRARIES = Libraries()


def conv_library(config: ConvConfig, *, elsewhere: bool = False, cpu: bool = False) -> CompiledModule:
    """Return the compiled kernel; ``elsewhere``: compiled in another process; ``cpu``: for the interpreter."""
    from cute_dialect.kernels.conv import conv_text

    return _LIBRARIES.get(
        (config, cpu), lambda: by_name(config.name, partial(conv_text, config), elsewhere, cpu)
    )  # fmt: skip


@cache
def conv_runner(config: ConvConfig, cpu: bool = False) -> Runner:
    """Return the compiled kernel, ready to be called with image, filter and result."""
    return Runner(choice_of(config), conv_library(config, cpu=cpu))


@cache
def unfolder(bits: int, gradient: bool, cpu: bool = False) -> Kernel:
    """Return the kernel that writes out what taps see, in words of some bits."""
    from cute_dialect.kernels.conv.unfold import unfold_text

    name = f"unfold-{bits}{'-gradient' * gradient}"
    return _LIBRARIES.get(
        (name, cpu), lambda: by_name(name, partial(unfold_text, bits, gradient), False, cpu)
    ).kernel("launch")  # fmt: skip
