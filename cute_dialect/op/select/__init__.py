"""Kernel selection for GEMMs: candidates, cost model, tables of measured kernels."""
