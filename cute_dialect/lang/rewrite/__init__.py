"""Rewriting of Python source: jumps, statements and expressions call the runtime object."""
