"""Ampere: all dense ``mma.sync`` shapes.

Shapes that Turing already has are listed again, as in CuTe; the SM75 atoms have the lower minimum architecture.

Source: PTX ISA 9.0, 9.7.14.5.14 "Multiply-and-Accumulate Instruction: mma" (types, versions, target notes).
"""

from __future__ import annotations

from collections.abc import Iterator

from cute_dialect.arch.mma_sync import Row, binary_rows, integer_rows, row


def rows() -> Iterator[Row]:
    """Return the table rows of f16, bf16, tf32, f64, 8-bit and 4-bit integers, and b1."""
    for k in (8, 16):
        for acc in ("f16", "f32"):
            yield row(80, (16, 8, k), (acc, "f16", "f16", acc), "7.0")
        yield row(80, (16, 8, k), ("f32", "bf16", "bf16", "f32"), "7.0")
    for k in (4, 8):
        yield row(80, (16, 8, k), ("f32", "tf32", "tf32", "f32"), "7.0")
    yield row(80, (8, 8, 4), ("f64", "f64", "f64", "f64"), "7.0")
    yield from integer_rows(80, 8, ((8, 16), (16, 16), (16, 32)), "7.0")
    yield from integer_rows(80, 4, ((8, 32), (16, 32), (16, 64)), "7.0")
    yield from binary_rows(80, "xor", "7.0", ((8, 128), (16, 128), (16, 256)))
    yield from binary_rows(80, "and", "7.1", ((8, 128), (16, 128), (16, 256)))


__all__ = ["rows"]
