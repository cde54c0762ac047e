"""``wgmma.mma_async.sp``: warpgroup-level MMAs with a sparse A, of which half of each row is kept.

A holds the kept elements, ``(64, K/2)``, which are 32 bytes per row.  They are in registers or behind a matrix
descriptor, as in a dense ``wgmma``.  B is twice as deep: 64 bytes along K behind one descriptor.  The metadata E takes
one register per thread; see :class:`cute_dialect.arch.atom.Metadata`.

>>> from cute_dialect.arch import mma_atom
>>> atom = mma_atom("SM90_SPARSE_64x128x32_F32F16F16_SS_TN")
>>> atom.tile("A"), atom.tile("B"), atom.tile("E"), atom.metadata.layout
((64, 16), (128, 32), (64, 2), Layout("((2,2,8,4),2):((64,0,1,16),8)"))

Source: PTX ISA 9.0, 9.7.15.6.1 "Sparse matrix storage", 9.7.15.6.2 "Matrix fragments for warpgroup-level
multiply-accumulate operation with sparse matrix A", 9.7.15.6.3 "Asynchronous Multiply-and-Accumulate Instruction:
wgmma.mma_async.sp"; CUTLASS ``include/cute/atom/mma_traits_sm90_gmma_sparse.hpp`` (BSD-3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cute_dialect.arch.atom import Emit, MmaAtom
from cute_dialect.arch.elements import bits_of
from cute_dialect.arch.fragments import packed_values, shared_tile, warpgroup_fragment
from cute_dialect.arch.mma_sp import metadata
from cute_dialect.arch.mma_sync import Row
from cute_dialect.arch.sm90 import wgmma, wgmma_name, wgmma_rows
from cute_dialect.spaces import AddressSpace

_SECTIONS = {
    16: '9.7.15.6.2.1 "Matrix Fragments for sparse wgmma.mma_async.m64nNk32"',
    32: '9.7.15.6.2.2 "Matrix Fragments for sparse wgmma.mma_async.m64nNk16"',
    8: '9.7.15.6.2.3 "Matrix Fragments for sparse wgmma.mma_async.m64nNk64"',
}


def rows() -> Iterator[Row]:
    """Return the table rows: the types, sources, majors and N of the dense atoms, with twice the K."""
    yield from wgmma_rows("SM90_SPARSE", 512, _wgmma_sp)


def wgmma_sp_name(n: int, types: tuple[str, str, str], source: str, majors: str = "TN", saturate: bool = False) -> str:
    """Return the name of a sparse wgmma atom: that of the dense atom with twice the K.

    >>> wgmma_sp_name(128, ("f32", "f16", "f16"), "smem")
    'SM90_SPARSE_64x128x32_F32F16F16_SS_TN'
    """
    k = 256 // bits_of(types[1])
    dense = wgmma_name(n, types, source, majors, saturate)
    return dense.replace(f"SM90_64x{n}x{k}_", f"SM90_SPARSE_64x{n}x{2 * k}_")


def _wgmma_sp(name: str, n: int, types: tuple[str, str, str], source: str, majors: str, saturate: bool) -> MmaAtom:
    dense = wgmma(wgmma_name(n, types, source, majors, saturate), n, types, source, majors, saturate)
    a = types[1]
    k = 512 // bits_of(a)
    mnemonic = dense.emit.mnemonic.replace("mma_async.sync", "mma_async.sp.sync").replace(f"k{k // 2}", f"k{k}")
    in_registers = source == AddressSpace.rmem
    return replace(
        dense,
        name=name,
        family="wgmma_sp",
        shape_mnk=(64, n, k),
        layout_a=warpgroup_fragment(k // 2, packed_values(a)) if in_registers else shared_tile(128, 64, k // 2),
        layout_b=shared_tile(128, n, k),
        emit=Emit(kind="wgmma_sp", mnemonic=mnemonic, pieces=dense.emit.pieces),
        ptx=dense.ptx.replace(dense.emit.mnemonic, mnemonic).replace("$scale_d", "$e, $selector, $scale_d"),
        isa=_SECTIONS[bits_of(a)],
        ptx_version=max(dense.ptx_version, "8.2"),
        metadata=metadata(64, k, a),
    )


__all__ = ["rows", "wgmma_sp_name"]
