"""Decorated functions: arguments, specializations, compilation and calls."""
