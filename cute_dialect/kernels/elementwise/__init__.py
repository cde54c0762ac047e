"""Elementwise kernels: sums of two matrices, graphs of functions, and reductions of their gradients."""
