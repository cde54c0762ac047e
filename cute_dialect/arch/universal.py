"""Atoms of all GPUs: multiply-add of one thread, plain loads and stores, shuffles, prefetches.

The transposing shuffles are those of CuTe.  Lanes t and t^x, whose numbers differ in one bit, exchange halves of their
pairs of values with one ``shfl`` and three selects.  The lane without the bit receives both first values, and the other
lane both second values.

Source: PTX ISA 9.0, 9.7.3.6 "fma", 9.7.9.8 "ld", 9.7.9.12 "st", 9.7.9.6 "shfl.sync", 9.7.9.16 "prefetch, prefetchu".
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cute_dialect.algebra.values import Layout, raw_layout
from cute_dialect.arch.atom import CopyAtom, Emit, MmaAtom, Registers
from cute_dialect.arch.elements import element
from cute_dialect.arch.fragments import ONE_THREAD, WARP
from cute_dialect.arch.mma_sync import Row

_ONE: Layout = raw_layout((1, 1), (0, 0))
_FMA = {
    # element: (registers, PTX, nvvm or intrinsic, first arch, PTX version)
    "f64": (Registers("f64", 1, 1, "f64"), "fma.rn.f64", "sm_50", "1.4"),
    "f32": (Registers("f32", 1, 1, "f32"), "fma.rn.f32", "sm_50", "2.0"),
    "f16": (Registers("b16", 1, 1, "f16"), "fma.rn.f16", "sm_53", "4.2"),
    "bf16": (Registers("b16", 1, 1, "bf16"), "fma.rn.bf16", "sm_80", "7.0"),
    "i32": (Registers("s32", 1, 1, "i32"), "mad.lo.s32", "sm_50", "1.0"),
}
UNIVERSAL_WIDTHS = (8, 16, 32, 64, 128)
"""Widths of plain accesses in bits; 256 requires sm_100."""


def bits_layout(bits: int) -> Layout:
    """Return the layout of one thread and a run of bits: ``(1,N):(0,1)``."""
    return raw_layout((1, bits), (0, 1))


def rows() -> Iterator[Row]:
    """Return the table rows: multiply-adds, plain loads and stores, shuffles and prefetches."""
    for name in _FMA:
        full = f"UniversalFMA_{element(name).cute}"
        yield full, partial(_fma, full, name)
    for bits in (*UNIVERSAL_WIDTHS, 256):
        full = f"UniversalCopy_{bits}b"
        yield full, partial(_universal_copy, full, bits)
    for mask in (1, 4):
        full = f"SM50_Shuffle_U32_2x2Trans_XOR{mask}"
        yield full, partial(_transposing_shuffle, full, mask)
    yield "SM30_SHFL_IDX_U32_BROADCAST", _broadcast
    for level in ("L1", "L2"):
        full = f"SM50_PREFETCH_{level}"
        yield full, partial(_prefetch, full, level)


def _fma(name: str, elt: str) -> MmaAtom:
    held, mnemonic, arch, version = _FMA[elt]
    integer = elt == "i32"
    return MmaAtom(
        name=name,
        arch=arch,
        family="fma",
        shape_mnk=(1, 1, 1),
        d=elt,
        a=elt,
        b=elt,
        c=elt,
        thr_id=ONE_THREAD,
        layout_a=_ONE,
        layout_b=_ONE,
        layout_c=_ONE,
        registers_d=held,
        registers_a=held,
        registers_b=held,
        registers_c=held,
        major_a="k",
        major_b="k",
        emit=Emit(kind="fma", mnemonic=mnemonic, nvvm="" if integer else "llvm.intr.fma"),
        ptx=f"{mnemonic} $d, $a, $b, $c;",
        isa='9.7.1.4 "mad"' if integer else '9.7.3.6 "fma"',
        ptx_version=version,
    )


def _universal_copy(name: str, bits: int) -> CopyAtom:
    suffix = f".v{bits // 32}.b32" if bits > 64 else f".b{bits}"
    layout = bits_layout(bits)
    return CopyAtom(
        name=name,
        arch="sm_100" if bits == 256 else "sm_50",
        family="universal",
        element=f"b{bits}",
        src_space="any",
        dst_space="any",
        thr_id=ONE_THREAD,
        src=layout,
        dst=layout,
        ref_side="src",
        emit=Emit(
            kind="load_store",
            mnemonic=f"ld{suffix}",
            nvvm="llvm.load" if bits <= 128 else "",
            pieces=(("bits", bits), ("store", f"st{suffix}")),
        ),
        ptx=f"ld$space{suffix} $d, [$a]; st$space{suffix} [$a], $d;",
        isa='9.7.9.8 "ld", 9.7.9.12 "st"',
        ptx_version="8.8" if bits == 256 else "2.0",
        src_align=bits // 8,
        dst_align=bits // 8,
    )


def _transposing_shuffle(name: str, mask: int) -> CopyAtom:
    # Thread t holds bits 64t to 64t+63: two values of 32 bits.
    if mask == 1:
        dst = raw_layout(((2, 16), (32, 2)), ((32, 128), (1, 64)))
    else:
        dst = raw_layout(((4, 2, 4), (32, 2)), ((64, 32, 512), (1, 256)))
    return CopyAtom(
        name=name,
        arch="sm_50",
        family="shuffle",
        element="b32",
        src_space="rmem",
        dst_space="rmem",
        thr_id=WARP,
        src=raw_layout((32, 64), (64, 1)),
        dst=dst,
        ref_side="src",
        registers=Registers("b32", 2, 1, "i32"),
        emit=Emit("shuffle_transpose", "shfl.sync.bfly.b32", "nvvm.shfl.sync", pieces=(("xor", mask),)),
        # $p is true if the lane has the bit.  It sends the value that its partner needs and keeps the other.
        ptx=f"selp.b32 $x, $a0, $a1, $p; shfl.sync.bfly.b32 $y, $x, {mask}, 31, -1; "
        "selp.b32 $d0, $y, $a0, $p; selp.b32 $d1, $a1, $y, $p;",
        isa='9.7.9.6 "shfl.sync"',
        ptx_version="6.0",
    )


def _broadcast() -> CopyAtom:
    return CopyAtom(
        name="SM30_SHFL_IDX_U32_BROADCAST",
        arch="sm_30",
        family="shuffle",
        element="b32",
        src_space="rmem",
        dst_space="rmem",
        thr_id=WARP,
        src=raw_layout((32, 32), (32, 1)),
        dst=raw_layout((32, 32), (0, 1)),
        ref_side="src",
        registers=Registers("b32", 1, 1, "i32"),
        emit=Emit("shuffle", "shfl.sync.idx.b32", "nvvm.shfl.sync", pieces=(("mode", "idx"), ("lane", 0))),
        ptx="shfl.sync.idx.b32 $d, $a, 0, 31, -1;",
        isa='9.7.9.6 "shfl.sync"',
        ptx_version="6.0",
    )


def _prefetch(name: str, level: str) -> CopyAtom:
    layout = bits_layout(8)
    return CopyAtom(
        name=name,
        arch="sm_50",
        family="prefetch",
        element="b8",
        src_space="gmem",
        dst_space="cache",
        thr_id=ONE_THREAD,
        src=layout,
        dst=layout,
        ref_side="src",
        emit=Emit("prefetch", f"prefetch.global.{level}", "nvvm.prefetch", pieces=(("level", level),)),
        ptx=f"prefetch.global.{level} [$a];",
        isa='9.7.9.16 "prefetch, prefetchu"',
        ptx_version="2.0",
        src_align=1,
        sizes="the cache line that holds the address",
    )


__all__ = ["UNIVERSAL_WIDTHS", "bits_layout", "rows"]
