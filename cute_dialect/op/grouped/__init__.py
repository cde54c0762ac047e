"""Products of groups of rows, columns or steps of K: one launch for all."""
