"""Torch operators ``torch.ops.cute.NAME``: their table, and the functions that its rows name."""
