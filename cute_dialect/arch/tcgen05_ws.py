"""Blackwell: the atoms of ``tcgen05.mma.ws``, which keeps B in a buffer (weight stationary).

The shapes suit products with few rows: M is 32, 64 or 128, and N is 64, 128 or 256.  One block executes the
instruction.  With M of 64 or 32, the columns of D are divided among two halves or four quarters of the lanes.

>>> from cute_dialect.arch.tcgen05 import find_tcgen05
>>> atom = find_tcgen05("f16", 1, (32, 64, 16), ("f32", "f16", "f16"), form="ws")
>>> atom.name, accumulator_layout(atom)
('SM100_WS_32x64x16_F32F16F16_SS_TN', Layout("(32,(16,4)):(1,(128,32))"))

The collector buffers b0 to b3 hold B for later instructions.  A zero-column mask replaces columns of B by zeros.  These
facts wait for a measurement:

* [?] the layout of A in tensor memory for M of 32 and 64; there are rows for M of 128 only;
* [?] the spans of a zero-column mask, see :class:`ZeroColumns`.

Source: PTX ISA 9.1, "tcgen05.mma.ws" and "Data path layout organization"; CUTLASS
``include/cute/atom/mma_traits_sm100_frag.hpp`` (BSD-3).
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.algebra.values import Layout, raw_layout
from cute_dialect.arch.atom import MmaAtom
from cute_dialect.arch.tmem import LANES

BUFFERS = 4
"""Collector buffers of B."""


class ZeroColumns(NamedTuple):
    """A zero-column mask descriptor: columns of B that an MMA replaces by zeros, in alternating spans.

    The N columns are divided into 128 / M parts.  The columns of a part begin with a span that uses B, or with one of
    zeros if its entry of ``zeros_first`` is True.  ``skipped`` columns at the start of that sequence are left out.

    [?] The table of the PTX ISA describes the field "use span" as the columns of zeros.  In the three examples after
    it, these are the columns that use B, as here.

    Args:
        zeros: columns of a span of zeros, 1 to 256.
        uses: columns of a span that uses B, 1 to 256.
        zeros_first: per part, True if its first span is one of zeros.
        skipped: per part, columns left out at the start, 0 to 255.
        shift: columns by which B is shifted; B begins at this column.

    >>> ZeroColumns(3, 4, (True,)).mask(128, 14)
    [True, True, True, False, False, False, False, True, True, True, False, False, False, False]
    >>> ZeroColumns.of(ZeroColumns(3, 4, (True,)).bits) == ZeroColumns(3, 4, (True, False, False, False), (0, 0, 0, 0))
    True
    """

    zeros: int
    uses: int
    zeros_first: tuple[bool, ...] = (False,)
    skipped: tuple[int, ...] = (0,)
    shift: int = 0

    @property
    def bits(self) -> int:
        """The 64-bit operand of the instruction."""
        word = 1 << 39 | (self.zeros - 1) << 40 | (self.uses - 1) << 48 | self.shift << 56
        for i, n in enumerate(self.skipped):
            word |= n << 8 * i
        for i, first in enumerate(self.zeros_first):
            word |= int(first) << 32 + i
        return word

    @staticmethod
    def of(bits: int) -> ZeroColumns | None:
        """Return the mask of an operand of an instruction, or None if it replaces no columns."""
        if not bits >> 39 & 1:
            return None
        skipped = tuple([bits >> 8 * i & 255 for i in range(4)])
        first = tuple([bool(bits >> 32 + i & 1) for i in range(4)])
        return ZeroColumns((bits >> 40 & 255) + 1, (bits >> 48 & 255) + 1, first, skipped, bits >> 56 & 63)

    def mask(self, m: int, n: int) -> list[bool]:
        """Return a list with True for each of the N columns of B that is replaced by zeros, for an MMA with M rows."""
        parts = LANES // m
        found: list[bool] = []
        for part in range(parts):
            first = part < len(self.zeros_first) and self.zeros_first[part]
            at = self.skipped[part] if part < len(self.skipped) else 0
            head, period = self.zeros if first else self.uses, self.zeros + self.uses
            found += [((at + i) % period < head) == first for i in range(n // parts)]
        return found


def accumulator_layout(found: MmaAtom) -> Layout:
    """Return the position of the accumulator in tensor memory: ``(row, column) -> lane + 128*column``."""
    m, n, _ = found.shape_mnk
    parts = LANES // m
    return raw_layout((m, n), (1, LANES)) if parts == 1 else raw_layout((m, (n // parts, parts)), (1, (LANES, m)))
