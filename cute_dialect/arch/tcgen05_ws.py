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
* [?] the fields of a zero-column mask other than 0: the table and the examples of the PTX ISA differ.

Source: PTX ISA 9.1, "tcgen05.mma.ws" and "Data path layout organization"; CUTLASS
``include/cute/atom/mma_traits_sm100_frag.hpp`` (BSD-3).
"""

from __future__ import annotations

from cute_dialect.algebra.values import Layout, raw_layout
from cute_dialect.arch.atom import MmaAtom
from cute_dialect.arch.tmem import LANES

BUFFERS = 4
"""Collector buffers of B."""


def accumulator_layout(found: MmaAtom) -> Layout:
    """Return the position of the accumulator in tensor memory: ``(row, column) -> lane + 128*column``."""
    m, n, _ = found.shape_mnk
    parts = LANES // m
    return raw_layout((m, n), (1, LANES)) if parts == 1 else raw_layout((m, (n // parts, parts)), (1, (LANES, m)))
