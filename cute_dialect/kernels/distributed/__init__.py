"""Kernels of several GPUs that exchange data through memory of peers."""
