"""The public names of the Hopper GEMM: each from the module that defines it."""

from cute_dialect.kernels.gemm.hopper import (
    gemm_text as gemm_text,
)
