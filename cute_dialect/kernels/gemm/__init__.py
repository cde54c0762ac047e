"""The Hopper GEMM in the language: :mod:`cute_dialect.kernels.gemm.hopper` is where to begin."""

from cute_dialect.kernels.gemm.hopper import gemm_text as gemm_text

__all__ = ["gemm_text"]
