"""Ada: ``mma.sync`` on 8-bit floats.

Source: PTX ISA 9.0, 9.7.14.5.14 "Multiply-and-Accumulate Instruction: mma" (types, versions, target notes).
"""

from __future__ import annotations

from collections.abc import Iterator

from cute_dialect.arch.mma_sync import Row, row

_FP8 = ("f8E4M3FN", "f8E5M2")


def rows() -> Iterator[Row]:
    """Return the table rows of e4m3 and e5m2, including mixed types.

    m16n8k32 with f32 accumulators needs PTX 8.4.  f16 accumulators and m16n8k16 need PTX 8.7.
    """
    for k in (32, 16):
        for acc in ("f32", "f16"):
            version = "8.4" if (k, acc) == (32, "f32") else "8.7"
            for a in _FP8:
                for b in _FP8:
                    yield row(89, (16, 8, k), (acc, a, b, acc), version, nvvm=False)


__all__ = ["rows"]
