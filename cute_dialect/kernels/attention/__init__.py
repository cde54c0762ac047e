"""Fused attention on Hopper GPUs, ``softmax(Q K^T) V``: configuration, building blocks and kernels."""
