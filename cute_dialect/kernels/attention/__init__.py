"""Attention on Hopper GPUs, ``softmax(Q K^T) V`` in one kernel: configurations, parts, the kernel."""
