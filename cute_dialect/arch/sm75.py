"""Turing: ``mma.sync`` on f16, 8-bit, 4-bit and 1-bit elements.

Source: PTX ISA 9.0, 9.7.14.5.14 "Multiply-and-Accumulate Instruction: mma" (types, versions, target notes).
"""

from __future__ import annotations

from collections.abc import Iterator

from cute_dialect.arch.mma_sync import Row, binary_rows, integer_rows, row


def rows() -> Iterator[Row]:
    """Return the table rows of f16 m16n8k8, 8-bit m8n8k16, 4-bit m8n8k32 and b1 m8n8k128 (xor)."""
    for acc in ("f16", "f32"):
        yield row(75, (16, 8, 8), (acc, "f16", "f16", acc), "6.5")
    yield from integer_rows(75, 8, ((8, 16),), "6.5")
    yield from integer_rows(75, 4, ((8, 32),), "6.5")
    yield from binary_rows(75, "xor", "7.0", ((8, 128),))


__all__ = ["rows"]
