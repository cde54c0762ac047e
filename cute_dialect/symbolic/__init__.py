"""Symbolic integers and proofs about layouts of symbolic extents."""
