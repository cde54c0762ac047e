"""Grouped GEMMs over groups of rows, columns or steps of K, in one launch."""
