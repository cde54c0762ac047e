"""Explanations of calls, which :func:`cute_dialect.op.explain` returns: a module for each kind of problem."""
