"""Proofs about the synchronization of kernels, for all trip counts."""
