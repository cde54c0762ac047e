"""``ldmatrix``, ``stmatrix`` and ``movmatrix``: copies of 8×8 matrices of 16-bit elements.

Layouts map to bits of one abstract array.  Element ``e`` of row ``r`` of matrix ``j`` begins at bit
``16*e + 128*r + 1024*j``.

* Shared memory: thread ``t`` provides the address of row ``t % 8`` of matrix ``t / 8``.  With fewer than four matrices
  the hardware ignores the addresses of the remaining threads, which repeat the first ones (stride 0).
* Fragments, plain: register ``j`` of thread ``t`` holds elements ``2*(t % 4)`` and ``2*(t % 4) + 1`` of row ``t / 4``.
* Fragments, transposed: it holds element ``t / 4`` of rows ``2*(t % 4)`` and ``2*(t % 4) + 1``.

Source: PTX ISA 9.0, 9.7.14.5.15 "ldmatrix", 9.7.14.5.16 "stmatrix", 9.7.14.5.17 "movmatrix".
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cute_dialect.algebra.values import Layout, raw_layout
from cute_dialect.arch.atom import CopyAtom, Emit, Registers
from cute_dialect.arch.fragments import WARP
from cute_dialect.arch.mma_sync import Row


def row_addresses(matrices: int) -> Layout:
    """Return the layout of the shared-memory side, ``(thread, bit) -> bit``.

    >>> row_addresses(2)
    Layout("((16,2),128):((128,0),1)")
    """
    if matrices == 4:
        return raw_layout((32, 128), (128, 1))
    return raw_layout(((8 * matrices, 4 // matrices), 128), ((128, 0), 1))


def matrix_fragments(matrices: int, transposed: bool) -> Layout:
    """Return the layout of the register side, ``(thread, bit) -> bit``.

    >>> matrix_fragments(4, False), matrix_fragments(1, True)
    (Layout("(32,(32,4)):(32,(1,1024))"), Layout("((4,8),(16,2)):((256,16),(1,128))"))
    """
    if transposed:
        if matrices == 1:
            return raw_layout(((4, 8), (16, 2)), ((256, 16), (1, 128)))
        return raw_layout(((4, 8), (16, 2, matrices)), ((256, 16), (1, 128, 1024)))
    if matrices == 1:
        return raw_layout((32, 32), (32, 1))
    return raw_layout((32, (32, matrices)), (32, (1, 1024)))


def _letters(matrices: int, transposed: bool) -> str:
    return f"U16x{2 * matrices}" if transposed else f"U32x{matrices}"


def load_rows() -> Iterator[Row]:
    """Return the table rows of SM75: ldmatrix x1, x2, x4, plain and transposed; movmatrix."""
    for transposed in (False, True):
        for matrices in (1, 2, 4):
            name = f"SM75_{_letters(matrices, transposed)}_LDSM_{'T' if transposed else 'N'}"
            yield name, partial(_matrix_copy, name, matrices, transposed, False)
    yield "SM75_U32x1_MOVM_T", _movmatrix


def store_rows() -> Iterator[Row]:
    """Return the table rows of SM90: stmatrix x1, x2, x4, plain and transposed."""
    for transposed in (False, True):
        for matrices in (1, 2, 4):
            name = f"SM90_{_letters(matrices, transposed)}_STSM_{'T' if transposed else 'N'}"
            yield name, partial(_matrix_copy, name, matrices, transposed, True)


def _matrix_copy(name: str, matrices: int, transposed: bool, store: bool) -> CopyAtom:
    instruction = "stmatrix" if store else "ldmatrix"
    mnemonic = f"{instruction}.sync.aligned.m8n8.x{matrices}{'.trans' if transposed else ''}.shared.b16"
    memory, held = row_addresses(matrices), matrix_fragments(matrices, transposed)
    return CopyAtom(
        name=name,
        arch="sm_90" if store else "sm_75",
        family=instruction,
        element="b16",
        src_space="rmem" if store else "smem",
        dst_space="smem" if store else "rmem",
        thr_id=WARP,
        src=held if store else memory,
        dst=memory if store else held,
        ref_side="src" if store else "dst",
        registers=Registers("b32", matrices, 2, "i32"),
        emit=Emit(instruction, mnemonic, f"nvvm.{instruction}", pieces=(("num", matrices), ("trans", transposed))),
        ptx=f"{mnemonic} [$a], $s;" if store else f"{mnemonic} $d, [$a];",
        isa='9.7.14.5.16 "stmatrix"' if store else '9.7.14.5.15 "ldmatrix"',
        ptx_version="7.8" if store else "6.5",
        src_align=0 if store else 16,
        dst_align=16 if store else 0,
    )


def _movmatrix() -> CopyAtom:
    mnemonic = "movmatrix.sync.aligned.m8n8.trans.b16"
    return CopyAtom(
        name="SM75_U32x1_MOVM_T",
        arch="sm_75",
        family="movmatrix",
        element="b16",
        src_space="rmem",
        dst_space="rmem",
        thr_id=WARP,
        src=matrix_fragments(1, False),
        dst=matrix_fragments(1, True),
        ref_side="src",
        registers=Registers("b32", 1, 2, "i32"),
        emit=Emit("movmatrix", mnemonic, pieces=(("num", 1), ("trans", True))),
        ptx=f"{mnemonic} $d, $a;",
        isa='9.7.14.5.17 "movmatrix"',
        ptx_version="7.8",
    )


__all__ = ["load_rows", "matrix_fragments", "row_addresses", "store_rows"]
