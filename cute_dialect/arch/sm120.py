"""MMA atoms of sm_120: ``mma.sync`` and ``mma.sp`` on elements of 8, 6 and 4 bits, with and without block scales.

The *kind* of an instruction selects its types:

* ``f8f6f4``: any two of e4m3, e5m2, e2m3, e3m2 and e2m1, one element per byte;
* ``mxf8f6f4``: the same types with a ue8m0 factor per 32 elements along K;
* ``mxf4``: e2m1, two elements per byte, with a ue8m0 factor per 32 elements;
* ``mxf4nvf4``: e2m1, two elements per byte, with a ue4m3 factor per 16 elements.

With a sparse A, K is twice as large, and a factor belongs to 64 or 32 elements, half of which are kept.

>>> from cute_dialect.arch import ATOMS
>>> ATOMS["SM120_16x8x32_F32E4M3E2M1F32_TN_VS32_UE8M0"].ptx.partition(" ")[0]
'mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m1.f32.ue8m0'

**Bytes.** An element of 6 bits is in the low bits of its byte, and one of 4 bits in bits 5 to 2.  Their fragments are
tensors of i8, which ``ldmatrix`` with ``b6x16_p32`` or ``b4x16_p64`` and, for 4 bits, a shift by 2 fill.  The position
of 4 bits is known from CUTLASS, which shifts so, and has not been compared with a GPU.

Source: PTX ISA 9.0, 9.7.14.5.14 "mma", 9.7.14.3 "Block Scaling for mma.sync", 9.7.14.6.3 "mma.sp"; CUTLASS
``include/cute/atom/mma_traits_sm120.hpp`` and ``mma_traits_sm120_sparse.hpp`` (BSD-3).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cute_dialect.algebra.values import Layout, raw_layout
from cute_dialect.arch.atom import Emit, MmaAtom, Registers, Scales
from cute_dialect.arch.elements import bits_of, element
from cute_dialect.arch.fragments import WARP, accumulator_registers, fragment
from cute_dialect.arch.mma_sync import Row, Types, type_letters
from cute_dialect.arch.sparse_mma import metadata

NARROW = ("f8E4M3FN", "f8E5M2", "f6E3M2FN", "f6E2M3FN", "f4E2M1FN")
"""Element types of A and B that are one per byte."""

FACTORS: dict[str, tuple[tuple[str, int], ...]] = {
    "f8f6f4": (),
    "mxf8f6f4": (("f8E8M0FNU", 32),),
    "mxf4": (("f8E8M0FNU", 32),),
    "mxf4nvf4": (("ue4m3", 16),),
}
"""Kind -> element types of the factors with the elements of a dense A that share one."""

_SECTION = '9.7.14.5.14 "Multiply-and-Accumulate Instruction: mma"'
_SPARSE_SECTION = '9.7.14.6.3 "Multiply-and-Accumulate Instruction: mma.sp"'


def is_packed(kind: str) -> bool:
    """Return True if two elements share a byte: kinds mxf4 and mxf4nvf4."""
    return kind.startswith("mxf4")


def atom_name(types: Types, kind: str, sf: str = "", vector: int = 0, sparse: bool = False) -> str:
    """Return the name of an atom; ``vector`` counts elements of a dense A.

    >>> atom_name(("f32", "f4E2M1FN", "f4E2M1FN", "f32"), "mxf4nvf4", "ue4m3", 16, sparse=True)
    'SM120_SPARSE_16x8x128_F32E2M1E2M1F32_TN_VS32_UE4M3'
    """
    times = 2 if sparse else 1
    k = times * (64 if is_packed(kind) else 32)
    scaled = f"_VS{times * vector}_{element(sf).cute}" if sf else ""
    return f"SM120_{'SPARSE_' if sparse else ''}16x8x{k}_{type_letters(types)}_TN{scaled}"


def scale_layouts(columns: int) -> tuple[Layout, Layout]:
    """Return the thread-value layouts of SFA and SFB with ``columns`` factors per row.

    Lanes 4g and 4g + 1 hold the factors of rows g and g + 8 of A, and lanes 4g + 2 and 4g + 3 copies.  The four lanes
    hold those of column g of B.
    """
    shape, stride = (columns, 16), (columns, 8)
    return (
        raw_layout(((2, 2, 8), shape[0]), ((8, 0, 1), shape[1] if columns > 1 else 0)),
        raw_layout(((4, 8), stride[0]), ((0, 1), stride[1] if columns > 1 else 0)),
    )


def _registers(name: str, values: int, packed: bool) -> Registers:
    per = 8 if packed else 4
    return Registers("b32", values // per, per, "i32", spare=32 - per * bits_of(name))


def narrow_mma(types: Types, kind: str, sf: str = "", vector: int = 0, sparse: bool = False) -> MmaAtom:
    """Build the atom ``mma.sync`` or ``mma.sp::ordered_metadata`` of a kind.

    Args:
        types: element types of D, A, B, C.
        kind: a key of :data:`FACTORS`.
        sf: element type of the factors, or "".
        vector: elements along K of a dense A that share a factor.
        sparse: True if A is sparse.
    """
    d, a, b, c = types
    packed, times = is_packed(kind), 2 if sparse else 1
    m, n, k = 16, 8, times * (64 if packed else 32)
    per = 8 if packed else 4
    columns = k // (times * vector) if sf else 0
    scaled = f".block_scale.scale_vec::{columns}X" if sf else ""
    ptx_types = ".".join([element(t).ptx for t in (*types, *([sf] if sf else []))])
    opcode = "mma.sp::ordered_metadata.sync" if sparse else "mma.sync"
    mnemonic = f"{opcode}.aligned.m{m}n{n}k{k}.row.col.kind::{kind}{scaled}.{ptx_types}"
    operands = ["$d", "$a", "$b", "$c", *(["$e", "$selector"] if sparse else [])]
    if sf:
        operands += ["$sfa", "{$byte_a, $thread_a}", "$sfb", "{$byte_b, $thread_b}"]
    accumulators = accumulator_registers(d, m * n // 32, packed="i32")
    specific = sparse and packed
    return MmaAtom(
        name=atom_name(types, kind, sf, vector, sparse),
        arch="sm_120a|sm_121a" if specific else "sm_120f",
        family="mma_sp" if sparse else "mma_sync",
        shape_mnk=(m, n, k),
        d=d,
        a=a,
        b=b,
        c=c,
        thr_id=WARP,
        layout_a=fragment(m, k // times, per),
        layout_b=fragment(n, k, per),
        layout_c=fragment(m, n, 2),
        registers_d=accumulators,
        registers_a=_registers(a, m * k // times // 32, packed),
        registers_b=_registers(b, n * k // 32, packed),
        registers_c=accumulators,
        major_a="k",
        major_b="k",
        emit=Emit(
            kind="narrow_mma",
            mnemonic=mnemonic,
            pieces=(
                ("type_a", element(a).ptx),
                ("type_b", element(b).ptx),
                ("saturate", False),
                ("bit_op", ""),
                ("kind", kind),
            ),
        ),
        ptx=f"{mnemonic} {', '.join(operands)};",
        isa=_SPARSE_SECTION if sparse else _SECTION,
        ptx_version="8.7",
        metadata=metadata(m, k, a if packed else "f8E4M3FN") if sparse else None,
        scales=Scales(sf, times * vector, *scale_layouts(columns)) if sf else None,
    )


def rows() -> Iterator[Row]:
    """Return the table rows: 77 dense and 77 sparse."""
    for sparse in (False, True):
        make = partial(narrow_mma, sparse=sparse)
        for a in NARROW:
            for b in NARROW:
                for d in ("f32", "f16"):
                    types: Types = (d, a, b, d)
                    yield atom_name(types, "f8f6f4", sparse=sparse), partial(make, types, "f8f6f4")
        for kind in ("mxf8f6f4", "mxf4", "mxf4nvf4"):
            elements = NARROW if kind == "mxf8f6f4" else ("f4E2M1FN",)
            for a in elements:
                for b in elements:
                    for sf, vector in FACTORS[kind]:
                        types = ("f32", a, b, "f32")
                        name = atom_name(types, kind, sf, vector, sparse)
                        yield name, partial(make, types, kind, sf, vector)
