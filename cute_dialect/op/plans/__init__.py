"""Planned products: descriptions of operations, their arguments, what is compiled, kept and run."""
