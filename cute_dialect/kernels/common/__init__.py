"""Parts that kernels of several kinds share."""
