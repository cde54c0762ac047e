"""Convolutions on Hopper in the language: :mod:`cute_dialect.kernels.conv.hopper` is where to begin."""

from cute_dialect.kernels.conv.hopper import conv_text as conv_text

__all__ = ["conv_text"]
