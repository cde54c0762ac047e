"""Kernels that move elements without computing: transposes, and copies between row alignments."""
