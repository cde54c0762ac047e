"""Convolution kernels in the kernel language. Start with :mod:`cute_dialect.kernels.conv.hopper`."""

from cute_dialect.kernels.conv.hopper import conv_text as conv_text

__all__ = ["conv_text"]
