"""Public names of the Hopper GEMM, each imported from the module that defines it."""

from cute_dialect.kernels.gemm.hopper import (
    gemm_text as gemm_text,
)
