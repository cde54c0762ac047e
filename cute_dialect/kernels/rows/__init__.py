"""Kernels of row functions: softmax, norms, reductions to numbers, and their gradients."""
