"""Kernels for programs without Python, or without a compiler: C source over the CUDA driver, and files beside it."""
