"""Compilation of functions to closures over lanes: control flow, poison, and unwritten registers."""
