"""Backward of attention on Hopper: dq, dk and dv from q, k, v, out, lse and dout, without storing the scores.

Three kernels run one after the other. :func:`backward_launches` returns them with their operands::

    for launch in backward_launches(config):
        kernel = compile(launch.text(config)).kernel("launch")
        kernel(*[operands[name] for name in launch.operands])

Operands by name, in the order of a launch. A launch lists only those that the configuration uses.

===========================  ==========================================================================================
``q``, ``dq``                (Sq, D, Hq, B) views in the element type; the head dimension is contiguous, and rows begin
                             at multiples of 16 bytes. Packed sequences have B = 1, and Sq counts the rows of all.
``out``, ``dout``            as ``q``
``k``, ``v``, ``dk``, ``dv`` (Sk, D, Hk, B) views, likewise
``lse``, ``dlse``            (Sq, Hq, B) views of f32: log-sum-exps of the forward pass, and their gradient
``stats``, ``dq_sum``,       uninitialized workspaces: C-contiguous arrays of the types and shapes that
``turns``                    :meth:`.BackwardConfig.workspaces` returns, at multiples of 128 bytes
``of_queries``, ``of_keys``  (B + 1,) arrays of i32: boundaries of packed sequences
``queries``                  queries of a sequence; the largest number for packed sequences
``keys``                     keys of a sequence; the largest number for packed sequences
``scale``                    factor of the scores, not 0
``left``, ``right``          keys that a query sees before and after its own; only bounded sides are read
===========================  ==========================================================================================

The kernels write every element of dq, dk and dv, including those of rows without keys and keys without queries (0).
The caller handles empty arrays itself: each of B, Hq, Sq and Sk must be positive.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from collections.abc import Callable
from typing import NamedTuple

from cute_dialect.kernels.attention.backward_config import BackwardConfig

__all__ = ["BackwardLaunch", "backward_launches", "backward_text", "delta_text", "dq_text"]


class BackwardLaunch(NamedTuple):
    """One of the launches of the backward."""

    name: str  # name of the kernel
    text: Callable[[BackwardConfig], str]  # its source, traced for a configuration
    operands: tuple[str, ...]  # names of the arguments of its host function


def backward_launches(c: BackwardConfig) -> tuple[BackwardLaunch, ...]:
    """Return the launches of a configuration, in order.

    >>> [launch.operands for launch in backward_launches(BackwardConfig())][2]
    ('dq_sum', 'dq', 'queries', 'scale')
    """
    turns = ("turns",) if c.deterministic else ()
    of_queries, of_keys = (("of_queries",), ("of_keys",)) if c.packed else ((), ())
    dlse = ("dlse",) if c.dlse else ()
    return (
        BackwardLaunch(
            c.name + "-delta", delta_text,
            ("out", "dout", "lse", *dlse, "stats", "dq_sum", *turns, *of_queries, "queries"),
        ),
        BackwardLaunch(
            c.name, backward_text,
            (
                "q", "k", "v", "dout", "stats", "dq_sum", *turns, "dk", "dv", *of_queries, *of_keys, "queries",
                "keys", "scale", "left", "right",
            ),
        ),
        BackwardLaunch(c.name + "-dq", dq_text, ("dq_sum", "dq", *of_queries, "queries", "scale")),
    )  # fmt: skip


def delta_text(c: BackwardConfig) -> str:
    """Trace the kernel that computes the row statistics and clears ``dq_sum``."""
    raise NotImplementedError(c.name)


def backward_text(c: BackwardConfig) -> str:
    """Trace the kernel that computes dk and dv, and adds dq to ``dq_sum``."""
    raise NotImplementedError(c.name)


def dq_text(c: BackwardConfig) -> str:
    """Trace the kernel that converts ``dq_sum`` to dq."""
    raise NotImplementedError(c.name)
