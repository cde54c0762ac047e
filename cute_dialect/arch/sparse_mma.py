"""MMA atoms with a sparse A: ``mma.sp`` and ``wgmma.mma_async.sp``.

A holds the kept elements, ``(M, K/2)``, in the fragments of a dense MMA of half the depth.  B, C and D are as in a
dense MMA.  The metadata E selects the elements of A that are kept; see :class:`cute_dialect.arch.atom.Metadata`.

>>> atom = mma_sp("X", "sm_80", (16, 8, 32), ("f32", "bf16", "bf16", "f32"))
>>> atom.tile("A"), atom.tile("E"), atom.layout_a
((16, 16), (16, 2), Layout("((4,8),(2,2,2)):((32,1),(16,8,128))"))
>>> atom.ptx
'mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32 $d, $a, $b, $c, $e, $selector;'

The older ``mma.sp`` computes the same result from the same operands.  ptxas advises against it, so only the ordered
form is in the table.

Source: PTX ISA 9.0, 9.7.14.6.1 "Sparse matrix storage", 9.7.14.6.2 "Matrix fragments for multiply-accumulate operation
with sparse matrix A", 9.7.14.6.3 "Multiply-and-Accumulate Instruction: mma.sp"; CUTLASS
``include/cute/atom/mma_traits_sm120_sparse.hpp`` and ``mma_traits_sm90_gmma_sparse.hpp`` (BSD-3).

**wgmma.** A holds the kept elements, ``(64, K/2)``, which are 32 bytes per row.  They are in registers or behind a
matrix descriptor, as in a dense ``wgmma``.  B is twice as deep: 64 bytes along K behind one descriptor.  The metadata E
takes one register per thread; see :class:`cute_dialect.arch.atom.Metadata`.

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
from functools import partial

from cute_dialect.algebra.values import raw_layout
from cute_dialect.arch.atom import Emit, Metadata, MmaAtom, Registers
from cute_dialect.arch.elements import bits_of, element
from cute_dialect.arch.fragments import (
    WARP,
    accumulator_registers,
    fragment,
    operand_registers,
    packed_values,
    shared_tile,
    warpgroup_fragment,
)
from cute_dialect.arch.mma_sync import Row, Types, type_letters
from cute_dialect.arch.mma_sync import intrinsic_name as dense
from cute_dialect.arch.sm90 import wgmma, wgmma_name, wgmma_rows
from cute_dialect.spaces import AddressSpace

# --------------------------------------------------------------------------------------------------------------- mma.sp


_SECTIONS = {
    (16, 16): '9.7.14.6.2.1 "Matrix Fragments for sparse mma.m16n8k16 with .f16 and .bf16 types"',
    (32, 16): '9.7.14.6.2.2 "Matrix Fragments for sparse mma.m16n8k32 with .f16 and .bf16 types"',
    (16, 32): '9.7.14.6.2.3 "Matrix Fragments for sparse mma.m16n8k16 with .tf32 floating point type"',
    (8, 32): '9.7.14.6.2.4 "Matrix Fragments for sparse mma.m16n8k8 with .tf32 floating point type"',
    (32, 8): '9.7.14.6.2.5 "Matrix Fragments for sparse mma.m16n8k32 with .u8 / .s8 integer type"',
    (64, 8): '9.7.14.6.2.6 "Matrix Fragments for sparse mma.m16n8k64 with .u8 / .s8 / .e4m3 / .e5m2 type"',
    (64, 4): '9.7.14.6.2.7 "Matrix Fragments for sparse mma.m16n8k64 with .u4 / .s4 integer type"',
    (128, 4): '9.7.14.6.2.8 "Matrix Fragments for sparse mma.m16n8k128 with .u4 / .s4 integer type"',
}
_FP8 = ("f8E4M3FN", "f8E5M2")
VERSION = "8.5"
"""The first PTX version with ``::ordered_metadata``."""


def metadata(m: int, k: int, a: str) -> Metadata:
    """Return the metadata operand of a tile ``(m, k)`` of A: 16 rows for a warp, 64 for a warpgroup.

    With 32 bits or more per group of A, elements of E are half words.  A thread holds those of rows ``g`` and ``g + 8``
    in one column of E.  If there are two columns, lane ``q`` of four holds column ``q % 2``.  Otherwise elements of E
    are words.  Lane ``q`` holds row ``g + 8*(q % 2)``, in column ``q / 2`` if there are two columns.

    >>> metadata(16, 16, "f16").layout, metadata(16, 32, "i8").layout, metadata(64, 64, "i8").layout
    (Layout("((4,8),2):((0,1),8)"), Layout("((2,2,8),1):((8,0,1),0)"), Layout("((2,2,8,4),1):((8,64,1,16),0)"))
    """
    group = {32: 2, 16: 4, 8: 4, 4: 8}[bits_of(a)]
    halves = bits_of(a) >= 16
    columns = k // (4 * group if halves else 8 * group)
    quad: tuple[tuple[int, ...], tuple[int, ...]]
    if halves:
        quad = ((4,), (0,)) if columns == 1 else ((2, 2), (m, 0))
    else:
        quad = ((2, 2), (8, 0 if columns == 1 else m))
    warps = ((m // 16,), (16,)) if m > 16 else ((), ())
    values = (2, 8) if halves else (1, 0)
    return Metadata(
        element="i16" if halves else "i32",
        layout=raw_layout((quad[0] + (8,) + warps[0], values[0]), (quad[1] + (1,) + warps[1], values[1])),
        registers=Registers("b32", 1, values[0], "i32"),
        group=group,
        selectors=(4 if halves else 2) // columns,
    )


def intrinsic_name(shape: tuple[int, int, int], types: Types, saturate: bool) -> str:
    """Return the name of the LLVM intrinsic of a sparse MMA.

    >>> intrinsic_name((16, 8, 64), ("f32", "f8E4M3FN", "f8E5M2", "f32"), False)
    'llvm.nvvm.mma.sp.ordered.metadata.m16n8k64.row.col.f32.e4m3.e5m2.f32'
    """
    return dense(shape, types, saturate, "").replace(".mma.", ".mma.sp.ordered.metadata.", 1)


def mma_sp(
    name: str, arch: str, shape: tuple[int, int, int], types: Types, *, saturate: bool = False, nvvm: bool = True
) -> MmaAtom:
    """Build the atom of ``mma.sp::ordered_metadata.sync.aligned.m16n8kK.row.col`` for element types D, A, B, C.

    Args:
        name: name of the atom.
        arch: the first GPU with the instruction.
        shape: ``(M, N, K)``.
        types: element types of D, A, B, C.
        saturate: clamp integer results to their range (``.satfinite``).
        nvvm: True if upstream MLIR 22 supports it in ``nvvm.mma.sp.sync``.  Every atom has an LLVM intrinsic.
    """
    m, n, k = shape
    d, a, b, c = types
    packed = packed_values(a)
    ptx_types = ".".join([element(t).ptx for t in types])
    modifier = ".satfinite" if saturate else ""
    mnemonic = f"mma.sp::ordered_metadata.sync.aligned.m{m}n{n}k{k}.row.col{modifier}.{ptx_types}"
    accumulators = accumulator_registers(d, m * n // 32)
    return MmaAtom(
        name=name,
        arch=arch,
        family="mma_sp",
        shape_mnk=shape,
        d=d,
        a=a,
        b=b,
        c=c,
        thr_id=WARP,
        layout_a=fragment(m, k // 2, packed),
        layout_b=fragment(n, k, packed),
        layout_c=fragment(m, n, 2),
        registers_d=accumulators,
        registers_a=operand_registers(a, m * k // 2 // 32),
        registers_b=operand_registers(b, n * k // 32),
        registers_c=accumulators,
        major_a="k",
        major_b="k",
        emit=Emit(
            kind="mma_sp",
            mnemonic=mnemonic,
            nvvm="nvvm.mma.sp.sync" if nvvm else "",
            intrinsic=intrinsic_name(shape, types, saturate),
            pieces=(("type_a", element(a).ptx), ("type_b", element(b).ptx), ("saturate", saturate)),
        ),
        ptx=f"{mnemonic} $d, $a, $b, $c, $e, $selector;",
        isa=_SECTIONS[k, bits_of(a)],
        ptx_version=VERSION,
        metadata=metadata(m, k, a),
    )


def row(sm: int, k: int, types: Types, *, saturate: bool = False, nvvm: bool = True) -> Row:
    """Return the table row of a 16x8xK atom of generation ``sm``.

    >>> row(80, 16, ("f32", "tf32", "tf32", "f32"))[0]
    'SM80_SPARSE_16x8x16_F32TF32TF32F32_TN'
    """
    name = f"SM{sm}_SPARSE_16x8x{k}_{type_letters(types)}_TN{'_SATURATE' if saturate else ''}"
    return name, partial(mma_sp, name, f"sm_{sm}", (16, 8, k), types, saturate=saturate, nvvm=nvvm)


def mma_sp_rows() -> Iterator[Row]:
    """Return the table rows of SM80 (f16, bf16, tf32, 8-bit and 4-bit integers) and of SM89 (fp8)."""
    for k in (16, 32):
        for acc in ("f16", "f32"):
            yield row(80, k, (acc, "f16", "f16", acc))
        yield row(80, k, ("f32", "bf16", "bf16", "f32"))
    for k in (8, 16):
        yield row(80, k, ("f32", "tf32", "tf32", "f32"))
    for bits, depths in ((8, (32, 64)), (4, (64, 128))):
        for k in depths:
            for a in ("i", "ui"):
                for b in ("i", "ui"):
                    for saturate in (False, True):
                        yield row(80, k, ("i32", f"{a}{bits}", f"{b}{bits}", "i32"), saturate=saturate)
    for a in _FP8:
        for b in _FP8:
            yield row(89, 64, ("f32", a, b, "f32"), nvvm=False)


# ------------------------------------------------------------------------------------------------------------- wgmma.sp


_WGMMA_SECTIONS = {
    16: '9.7.15.6.2.1 "Matrix Fragments for sparse wgmma.mma_async.m64nNk32"',
    32: '9.7.15.6.2.2 "Matrix Fragments for sparse wgmma.mma_async.m64nNk16"',
    8: '9.7.15.6.2.3 "Matrix Fragments for sparse wgmma.mma_async.m64nNk64"',
}


def wgmma_sp_rows() -> Iterator[Row]:
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
        isa=_WGMMA_SECTIONS[bits_of(a)],
        ptx_version=max(dense.ptx_version, "8.2"),
        metadata=metadata(64, k, a),
    )
