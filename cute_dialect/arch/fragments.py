"""Fragments of the tensor-core instructions: the elements that each thread holds.

The fragments of all ``mma.sync`` shapes with 8 columns, and of ``wgmma``, follow one rule.  Let ``g = lane / 4`` and
``q = lane % 4``.  Let ``p`` be the number of contiguous elements that a lane holds: those of one 32-bit register, or 1
for tf32 and f64.  Value ``i = i0 + p*(i1 + H*i2)`` of a lane is the element at

    row = g + 8*i1,  column = p*q + i0 + 4*p*i2          (H = rows / 8 is 1 or 2)

A has rows m and columns k, B has rows n and columns k, and C has rows m and columns n, with p = 2.  In ``wgmma`` warp
``w`` of the four holds such a fragment of the rows from ``16w`` on.

Source: PTX ISA 9.0, 9.7.14.5 "Matrix multiply-accumulate operation using mma instruction" (all "Matrix Fragments for
…") and 9.7.15.5.1 "Register Fragments and Shared Memory Matrix Layouts".
"""

from __future__ import annotations

from collections.abc import Mapping

from cute_dialect.algebra.values import Layout, raw_layout
from cute_dialect.arch.atom import Registers
from cute_dialect.arch.elements import bits_of

WARP = raw_layout(32, 1)
WARPGROUP = raw_layout(128, 1)
ONE_THREAD = raw_layout(1, 0)


def fragment(rows: int, columns: int, packed: int) -> Layout:
    """Return ``(lane, value) -> row + rows*column`` of one warp.

    ``rows`` is 8 or 16, and ``packed`` is the number of contiguous elements per lane, ``p`` in the module's docstring.

    >>> fragment(16, 16, 2), fragment(8, 16, 2)
    (Layout("((4,8),(2,2,2)):((32,1),(16,8,128))"), Layout("((4,8),(2,2)):((16,1),(8,64))"))
    >>> fragment(8, 4, 1)
    Layout("((4,8),1):((8,1),0)")
    """
    values = [(packed, rows), (rows // 8, 8), (columns // (4 * packed), 4 * packed * rows)]
    shape, stride = _modes(values)
    return raw_layout(((4, 8), shape), ((packed * rows, 1), stride))  # type: ignore[arg-type]


def warpgroup_fragment(columns: int, packed: int) -> Layout:
    """Return ``(thread, value) -> row + 64*column`` of the four warps of a warpgroup.

    >>> warpgroup_fragment(128, 2)
    Layout("((4,8,4),(2,2,16)):((128,1,16),(64,8,512))")
    """
    values = [(packed, 64), (2, 8), (columns // (4 * packed), 256 * packed)]
    shape, stride = _modes(values, keep=packed > 1)
    return raw_layout(((4, 8, 4), shape), ((packed * 64, 1, 16), stride))  # type: ignore[arg-type]


def _modes(values: list[tuple[int, int]], keep: bool = False) -> tuple[object, object]:
    # Modes of extent 1 are omitted, and a single mode is scalar.
    kept = values if keep else [v for v in values if v[0] != 1]
    if not kept:
        return 1, 0
    if len(kept) == 1:
        return kept[0]
    return tuple([s for s, _ in kept]), tuple([d for _, d in kept])


def shared_tile(threads: int, rows: int, columns: int) -> Layout:
    """Return ``(thread, (row, column)) -> row + rows*column`` of an operand that every thread accesses in full.

    The thread mode has stride 0.

    >>> shared_tile(128, 64, 16)
    Layout("(128,(64,16)):(0,(1,64))")
    """
    return raw_layout((threads, (rows, columns)), (0, (1, rows)))


def packed_values(name: str) -> int:
    """Return the number of contiguous elements per lane for an A or B operand, ``p`` in the module's docstring.

    >>> packed_values("f16"), packed_values("tf32"), packed_values("i4"), packed_values("f64")
    (2, 1, 8, 1)
    """
    return max(1, 32 // bits_of(name))


def operand_registers(name: str, values: int) -> Registers:
    """Return the registers for ``values`` elements of an A or B operand: 32-bit registers, or f64.

    >>> operand_registers("f16", 8)
    Registers(type='b32', count=4, values=2, mlir='vector<2xf16>', spare=0)
    """
    if name == "f64":
        return Registers("f64", values, 1, "f64")
    p = packed_values(name)
    return Registers("b32", values // p, p, "vector<2xf16>" if name == "f16" else "i32")


def accumulator_registers(name: str, values: int, packed: str = "vector<2xf16>") -> Registers:
    """Return the registers for ``values`` accumulators.  ``packed`` is the MLIR type of two f16 in one register.

    >>> accumulator_registers("f32", 4).count, accumulator_registers("f16", 4).count
    (4, 2)
    """
    if name == "f16":
        return Registers("b32", values // 2, 2, packed)
    if name == "i32":
        return Registers("s32", values, 1, "i32")
    return Registers(name, values, 1, name)


BYTE_SOURCES: Mapping[str, int] = {"b4x16_p64": 4, "b6x16_p32": 6}
"""Packed source formats of ``ldmatrix`` -> bits per element."""


def byte_name(matrices: int, transposed: bool, store: bool, source: str = "") -> str:
    """Return the name of the row for matrices of bytes.

    >>> byte_name(2, True, False), byte_name(4, False, False, "b4x16_p64"), byte_name(1, True, True)
    ('SM100_U8x16_LDSM_T', 'SM100_SU4_DU8x16_x4_LDSM_N', 'SM100_U8x4_STSM_T')
    """
    if store:
        return f"SM100_U8x{4 * matrices}_STSM_T"
    unpacked = f"SU{BYTE_SOURCES[source]}_DU8" if source else "U8"
    return f"SM100_{unpacked}x{8 * matrices}_LDSM_T" if transposed else f"SM100_{unpacked}x16_x{matrices}_LDSM_N"
