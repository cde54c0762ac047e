"""Blackwell: the atoms of ``tcgen05.mma.ws``, which keeps B in a buffer (weight stationary).

The shapes suit products with few rows: M is 32, 64 or 128, and N is 64, 128 or 256.  One block executes the
instruction.  With M of 64 or 32, the columns of D are divided among two halves or four quarters of the lanes.

>>> atom = find_tcgen05_ws("f16", (32, 64, 16), ("f32", "f16", "f16"))
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

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial

from cute_dialect.algebra.values import Layout, raw_layout
from cute_dialect.arch import tcgen05 as dense
from cute_dialect.arch.atom import Emit, MmaAtom
from cute_dialect.arch.errors import AtomError
from cute_dialect.arch.mma_sync import Row
from cute_dialect.arch.tmem import LANES
from cute_dialect.spaces import AddressSpace

ROWS_M, EXTENTS_N = (32, 64, 128), (64, 128, 256)
"""M and N of an instruction."""

BUFFERS = 4
"""Collector buffers of B."""


def rows() -> Iterator[Row]:
    """Return the table rows of all kinds, types, shapes, sources of A, and majors."""
    for kind in dense.KINDS:
        for types in kind.types:
            for source, ms in (("smem", ROWS_M), ("tmem", ROWS_M[2:])):
                for m in ms:
                    for n in EXTENTS_N:
                        for majors in dense.majors_of(kind, types, source):
                            for saturate in (False, True) if types[0] == "i32" else (False,):
                                name = _name(m, n, types, source, majors, saturate)
                                yield name, partial(_made, m, n, types, source, majors, saturate)


def _name(m: int, n: int, types: tuple[str, str, str], source_a: str, majors: str, saturate: bool) -> str:
    return dense.tcgen05_name(1, m, n, types, source_a, majors, saturate).replace("SM100_", "SM100_WS_", 1)


@cache
def _made(m: int, n: int, types: tuple[str, str, str], source_a: str, majors: str, saturate: bool) -> MmaAtom:
    name = _name(m, n, types, source_a, majors, saturate)
    found = dense.atom(name, 1, m, n, types, source_a, majors, saturate)
    emit = found.emit
    mnemonic = emit.mnemonic.replace("tcgen05.mma.", "tcgen05.mma.ws.")
    return replace(
        found,
        emit=Emit(
            kind="tcgen05_ws",
            mnemonic=mnemonic,
            intrinsic=emit.intrinsic.replace("tcgen05.mma.", "tcgen05.mma.ws."),
            pieces=emit.pieces,
        ),
        ptx=found.ptx.replace(emit.mnemonic, mnemonic),
        isa=found.isa.replace("tcgen05.mma", "tcgen05.mma.ws"),
    )


def find_tcgen05_ws(
    kind: str,
    shape_mnk: tuple[int, int, int],
    types: tuple[str, str, str],
    source_a: str = "smem",
    majors: tuple[str, str] = ("k", "k"),
    saturate: bool = False,
) -> MmaAtom:
    """Find the atom of ``tcgen05.mma.ws`` of a kind, a shape and element types of D, A and B.

    Args:
        kind: f16, tf32, f8f6f4 or i8.
        shape_mnk: ``(M, N, K)``.
        types: element types of D, A, B.
        source_a: memory of A, "smem" or "tmem".
        majors: contiguous index of A and of B, "k" or "mn".
        saturate: clamp integer results to their range.

    Raises:
        AtomError: there is no such atom.  The message lists the allowed values.
    """
    m, n, k = shape_mnk
    depth = dense.kind_of(kind).depth
    allowed = ROWS_M if source_a == AddressSpace.smem else ROWS_M[2:]
    if m not in allowed or n not in EXTENTS_N or k != depth:
        raise AtomError(
            f"the shape is {m}x{n}x{k}; kind {kind} with ws and A in {source_a} needs M of "
            f"{' or '.join(map(str, allowed))}, N of {' or '.join(map(str, EXTENTS_N))}, and K of {depth}"
        )
    like = dense.find_tcgen05(kind, 1, (128, n, k), types, source_a, majors, saturate)
    letters = ("T" if like.major_a == "k" else "N") + ("N" if like.major_b == "k" else "T")
    return _made(m, n, types, source_a, letters, saturate)


def accumulator_layout(found: MmaAtom) -> Layout:
    """Return the position of the accumulator in tensor memory: ``(row, column) -> lane + 128*column``."""
    m, n, _ = found.shape_mnk
    parts = LANES // m
    return raw_layout((m, n), (1, LANES)) if parts == 1 else raw_layout((m, (n // parts, parts)), (1, (LANES, m)))
