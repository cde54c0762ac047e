"""Rows of copy atoms, and the universal FMA.

The transposing shuffles are those of CuTe.  Lanes t and t^x, whose numbers differ in one bit, exchange halves of their
pairs of values with one ``shfl`` and three selects.  The lane without the bit receives both first values, and the other
lane both second values.

Source: PTX ISA 9.0, 9.7.3.6 "fma", 9.7.9.8 "ld", 9.7.9.12 "st", 9.7.9.6 "shfl.sync", 9.7.9.16 "prefetch, prefetchu".

**Asynchronous copies.** A bulk copy moves any multiple of 16 bytes, and a TMA copy moves one box.  The layouts in the
table describe one unit of 16 bytes; :func:`sized` returns the atom for a number of bits.  One thread issues each of
these instructions.

Source: PTX ISA 9.0, 9.7.9.25 "Data Movement and Conversion Instructions: Asynchronous copy" (.3 non-bulk, .4 bulk,
.5 tensor), 9.7.9.16 "prefetch, prefetchu".

**Copies of matrices by a warp.** Layouts map to bits of one abstract array.  Element ``e`` of row ``r`` of matrix ``j``
begins at bit ``16*e + 128*r + 1024*j``.

* Shared memory: thread ``t`` provides the address of row ``t % 8`` of matrix ``t / 8``.  With fewer than four matrices
  the hardware ignores the addresses of the remaining threads, which repeat the first ones (stride 0).
* Fragments, plain: register ``j`` of thread ``t`` holds elements ``2*(t % 4)`` and ``2*(t % 4) + 1`` of row ``t / 4``.
* Fragments, transposed: it holds element ``t / 4`` of rows ``2*(t % 4)`` and ``2*(t % 4) + 1``.

**Bytes** (sm_100a, sm_120a and their families). ``ldmatrix.m16n16`` transposes 16 rows of 16 bytes.  Its two registers
hold four rows of columns ``t / 4`` and ``t / 4 + 8``.  As in CuTe, a byte permutation follows: a register then holds
two rows of both columns.  The lowering emits it, and the layouts describe its result, with rows numbered so that
registers have the order of an accumulator.  ``stmatrix.m16n8`` stores such registers.  The 6-bit and 4-bit sources of
16 bytes (``b6x16_p32``, ``b4x16_p64``) hold 16 numbers and padding; each becomes a byte with zeros above.

Source: PTX ISA 9.0, 9.7.14.5.15 "ldmatrix", 9.7.14.5.16 "stmatrix", 9.7.14.5.17 "movmatrix".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from cute_dialect.algebra.values import Layout, raw_layout
from cute_dialect.arch.atom import CopyAtom, Emit, MmaAtom, Registers
from cute_dialect.arch.elements import element
from cute_dialect.arch.errors import AtomError
from cute_dialect.arch.fragments import BYTE_SOURCES, ONE_THREAD, WARP, byte_name
from cute_dialect.arch.mma_sync import Row
from cute_dialect.arch.targets import BLACKWELL, TCGEN05
from cute_dialect.spaces import AddressSpace

# ------------------------------------------------------------------------------------------------------------ universal


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


def universal_rows() -> Iterator[Row]:
    """Return the table rows: multiply-adds, plain loads and stores, shuffles and prefetches."""
    for name in _FMA:
        full = f"UniversalFMA_{element(name).cute}"
        yield full, partial(_fma, full, name)
    for bits in (*UNIVERSAL_WIDTHS, 256):
        full = f"UniversalCopy_{bits}b"
        yield full, partial(_universal_copy, full, bits)
    for side in ("LOAD", "STORE"):
        full = f"SM100_{side}_256bit_CACHE_NOALLOCATION"
        yield full, partial(_uncached_copy, full, side == "STORE")
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


def _uncached_copy(name: str, store: bool) -> CopyAtom:
    mnemonic = f"{'st' if store else 'ld'}.global.L1::no_allocate.v8.b32"
    layout = bits_layout(256)
    return CopyAtom(
        name=name,
        arch="sm_100",
        family="universal",
        element="b256",
        src_space="rmem" if store else "gmem",
        dst_space="gmem" if store else "rmem",
        thr_id=ONE_THREAD,
        src=layout,
        dst=layout,
        ref_side="src" if store else "dst",
        registers=Registers("b32", 8, 1, "i32"),
        emit=Emit(kind="load_store", mnemonic=mnemonic, pieces=(("bits", 256),)),
        ptx=f"{mnemonic} [$a], $d;" if store else f"{mnemonic} $d, [$a];",
        isa='9.7.9.12 "st"' if store else '9.7.9.8 "ld"',
        ptx_version="8.8",
        src_align=0 if store else 32,
        dst_align=32 if store else 0,
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


# --------------------------------------------------------------------------------------------------------- asynchronous


UNIT_BITS = 128
"""Bulk and TMA copies move multiples of 16 bytes."""

BULK_REDUCTIONS: Mapping[str, tuple[str, ...]] = {
    "add": ("f32", "f16", "bf16", "s32", "u32", "u64", "f64"),
    "min": ("f16", "bf16", "s32", "u32", "s64", "u64"),
    "max": ("f16", "bf16", "s32", "u32", "s64", "u64"),
    "inc": ("u32",),
    "dec": ("u32",),
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
}
"""Reduction of a bulk copy to global memory -> types it supports (PTX ISA 9.7.9.25.4.2)."""

_SHARED = (AddressSpace.smem, "cluster")
_BOX = "one box: a multiple of 16 bytes"
_RUN = "any multiple of 16 bytes"
_SECTION = {
    "cp.async": '9.7.9.25.3.1 "cp.async"',
    "bulk": '9.7.9.25.4.1 "cp.async.bulk"',
    "bulk_reduce": '9.7.9.25.4.2 "cp.reduce.async.bulk"',
    "bulk_prefetch": '9.7.9.25.4.3 "cp.async.bulk.prefetch"',
    "tma": '9.7.9.25.5.2 "cp.async.bulk.tensor"',
    "tma_reduce": '9.7.9.25.5.3 "cp.reduce.async.bulk.tensor"',
    "tma_prefetch": '9.7.9.25.5.4 "cp.async.bulk.prefetch.tensor"',
    "prefetch": '9.7.9.16 "prefetch, prefetchu"',
}


def cp_async_rows() -> Iterator[Row]:
    """Return the ``cp.async`` table rows of SM80, with and without zero fill.

    CACHEALWAYS copies 4, 8 or 16 bytes through L1; CACHEGLOBAL copies 16 bytes and bypasses L1.
    """
    for cache, sizes in (("CACHEALWAYS", (4, 8, 16)), ("CACHEGLOBAL", (16,))):
        for zfill in (False, True):
            for size in sizes:
                name = f"SM80_CP_ASYNC_{cache}_{size}B{'_ZFILL' if zfill else ''}"
                yield name, partial(_cp_async, name, cache, size, zfill)


def _cp_async(name: str, cache: str, size: int, zfill: bool) -> CopyAtom:
    modifier = "ca" if cache == "CACHEALWAYS" else "cg"
    mnemonic = f"cp.async.{modifier}.shared.global"
    layout = bits_layout(8 * size)
    return CopyAtom(
        name=name,
        arch="sm_80",
        family="cp_async",
        element=f"b{8 * size}",
        src_space="gmem",
        dst_space="smem",
        thr_id=ONE_THREAD,
        src=layout,
        dst=layout,
        ref_side="src",
        emit=Emit(
            "cp_async",
            mnemonic,
            "nvvm.cp.async.shared.global",
            pieces=(("bytes", size), ("cache", modifier), ("zfill", zfill)),
        ),
        # $size is the number of bytes to read.  The rest of the destination is filled with zeros.
        ptx=f"{mnemonic} [$d], [$a], {size}{', $size' if zfill else ''};",
        isa=_SECTION["cp.async"],
        ptx_version="7.0",
        src_align=size,
        dst_align=size,
    )


def bulk_rows() -> Iterator[Row]:
    """Return the bulk-copy table rows of SM90."""
    load = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    between = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
    store = "cp.async.bulk.global.shared::cta.bulk_group"
    op = "nvvm.cp.async.bulk"
    for name, family, spaces, instruction, nvvm in (
        ("COPY_G2S", "bulk", "gmem smem", f"{load} [$d], [$a], $size, [$bar];", f"{op}.shared.cluster.global"),
        (
            "COPY_G2S_MULTICAST",
            "bulk",
            "gmem cluster",
            f"{load}.multicast::cluster [$d], [$a], $size, [$bar], $mask;",
            f"{op}.shared.cluster.global",
        ),
        ("COPY_S2G", "bulk", "smem gmem", f"{store} [$d], [$a], $size;", f"{op}.global.shared.cta"),
        (
            "COPY_S2S",
            "bulk",
            "smem cluster",
            f"{between} [$d], [$a], $size, [$bar];",
            f"{op}.shared.cluster.shared.cta",
        ),
        ("PREFETCH", "bulk_prefetch", "gmem cache", f"{op[5:]}.prefetch.L2.global [$a], $size;", f"{op}.prefetch"),
    ):
        full = f"SM90_BULK_{name}"
        yield full, partial(_single, full, family, spaces, instruction, nvvm, _RUN)
    for operation, types in BULK_REDUCTIONS.items():
        for ptx_type in types:
            full = f"SM90_BULK_REDUCE_{operation.upper()}_S2G_{ptx_type.upper()}"
            op = "add.noftz" if operation == "add" and ptx_type in ("f16", "bf16") else operation
            instruction = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}.{ptx_type} [$d], [$a], $size;"
            yield full, partial(_single, full, "bulk_reduce", "smem gmem", instruction, "", _RUN)


def tma_rows() -> Iterator[Row]:
    """Return the TMA table rows: boxes of tensors of rank 1 to 5 (im2col: 3 to 5), rows by index (SM100), and
    tensor-map prefetch.
    """
    for rank in range(1, 6):
        for im2col in (False, True) if rank >= 3 else (False,):
            mode = "_IM2COL" if im2col else ""
            for multicast in (False, True):
                name = f"SM90_TMA_LOAD{mode}{'_MULTICAST' if multicast else ''}_{rank}D"
                yield name, partial(_tma_load, name, rank, im2col, multicast)
            name = f"SM90_TMA_LOAD{mode}_PREFETCH_{rank}D"
            yield name, partial(_tma_prefetch, name, rank, im2col)
            name = f"SM90_TMA_STORE{mode}_{rank}D"
            yield name, partial(_tma_store, name, rank, im2col, "")
            name = f"SM90_TMA_REDUCE_ADD{mode}_{rank}D"
            yield name, partial(_tma_store, name, rank, im2col, "add")
    for multicast in (False, True):
        name = f"SM100_TMA_LOAD{'_MULTICAST' if multicast else ''}_2D_GATHER4"
        yield name, partial(_tma_rows, name, "tma_load", multicast)
    name = "SM100_TMA_LOAD_PREFETCH_2D_GATHER4"
    yield name, partial(_tma_rows, name, "tma_prefetch", False)
    name = "SM100_TMA_STORE_2D_SCATTER4"
    yield name, partial(_tma_rows, name, "tma_store", False)
    name = "SM90_TMA_DESCRIPTOR_PREFETCH"
    what = "the 128 bytes of the tensor map"
    yield name, partial(_single, name, "prefetch", "tensor cache", "prefetch.tensormap [$map];", "nvvm.prefetch", what)


def _single(name: str, family: str, spaces: str, instruction: str, nvvm: str, sizes: str) -> CopyAtom:
    # ``spaces``: memory of the source and of the destination.
    src_space, dst_space = spaces.split()
    mnemonic = instruction.split(" ")[0]
    layout = bits_layout(UNIT_BITS)
    return CopyAtom(
        name=name,
        arch="sm_90",
        family=family,
        element="b128",
        src_space=src_space,
        dst_space=dst_space,
        thr_id=ONE_THREAD,
        src=layout,
        dst=layout,
        ref_side="src",
        emit=Emit(family, mnemonic, nvvm, pieces=(("multicast", "multicast" in mnemonic),)),
        ptx=instruction,
        isa=_SECTION[family],
        ptx_version="8.0",
        src_align=64 if src_space == "tensor" else 16,
        dst_align=0 if dst_space == "cache" else 16,
        sizes=sizes,
    )


def _coordinates(rank: int) -> str:
    return "{" + ", ".join([f"$c{i}" for i in range(rank)]) + "}"


def _tma(
    name: str,
    family: str,
    spaces: tuple[str, str],
    mnemonic: str,
    operands: str,
    nvvm: str,
    pieces: tuple[tuple[str, int | str | bool], ...],
) -> CopyAtom:
    layout = bits_layout(UNIT_BITS)
    return CopyAtom(
        name=name,
        arch="sm_90",
        family=family,
        element="b128",
        src_space=spaces[0],
        dst_space=spaces[1],
        thr_id=ONE_THREAD,
        src=layout,
        dst=layout,
        ref_side="src",
        emit=Emit(family, mnemonic, nvvm, pieces=pieces),
        ptx=f"{mnemonic} {operands};",
        isa=_SECTION[{"tma_load": "tma", "tma_store": "tma"}.get(family, family)],
        ptx_version="8.0",
        # The tensor side has no address of its own.  Shared memory is 128-byte aligned; a swizzle needs alignment to
        # the period of its pattern.
        src_align=128 if spaces[0] in _SHARED else 0,
        dst_align=128 if spaces[1] in _SHARED else 0,
        sizes=_BOX,
    )


def _tma_load(name: str, rank: int, im2col: bool, multicast: bool) -> CopyAtom:
    mnemonic = (
        f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.{'im2col' if im2col else 'tile'}"
        f".mbarrier::complete_tx::bytes{'.multicast::cluster' if multicast else ''}"
    )
    operands = f"[$d], [$map, {_coordinates(rank)}], [$bar]"
    if im2col:
        operands += ", {" + ", ".join([f"$o{i}" for i in range(rank - 2)]) + "}"
    if multicast:
        operands += ", $mask"
    return _tma(
        name,
        "tma_load",
        ("tensor", "cluster" if multicast else "smem"),
        mnemonic,
        operands,
        "nvvm.cp.async.bulk.tensor.shared.cluster.global",
        (("rank", rank), ("mode", "im2col" if im2col else "tile"), ("multicast", multicast)),
    )


def _tma_store(name: str, rank: int, im2col: bool, reduction: str) -> CopyAtom:
    mode = "im2col_no_offs" if im2col else "tile"
    mnemonic = f"cp.{'reduce.' if reduction else ''}async.bulk.tensor.{rank}d.global.shared::cta"
    mnemonic += f"{'.' if reduction else ''}{reduction}.{mode}.bulk_group"
    return _tma(
        name,
        "tma_reduce" if reduction else "tma_store",
        ("smem", "tensor"),
        mnemonic,
        f"[$map, {_coordinates(rank)}], [$a]",
        "nvvm.cp.async.bulk.tensor.reduce" if reduction else "nvvm.cp.async.bulk.tensor.global.shared.cta",
        (("rank", rank), ("mode", "im2col" if im2col else "tile"), ("reduction", reduction)),
    )


def _tma_prefetch(name: str, rank: int, im2col: bool) -> CopyAtom:
    mnemonic = f"cp.async.bulk.prefetch.tensor.{rank}d.L2.global.{'im2col' if im2col else 'tile'}"
    operands = f"[$map, {_coordinates(rank)}]"
    if im2col:
        operands += ", {" + ", ".join([f"$o{i}" for i in range(rank - 2)]) + "}"
    return _tma(
        name,
        "tma_prefetch",
        ("tensor", "cache"),
        mnemonic,
        operands,
        "nvvm.cp.async.bulk.tensor.prefetch",
        (("rank", rank), ("mode", "im2col" if im2col else "tile")),
    )


def _tma_rows(name: str, family: str, multicast: bool) -> CopyAtom:
    """Return a copy of four rows of a matrix by index, of mode gather4 or scatter4."""
    from dataclasses import replace

    where = "[$map, {$c0, $c1, $c2, $c3, $c4}]"
    mnemonic, operands, nvvm, spaces, mode = {
        "tma_load": (
            "cp.async.bulk.tensor.2d.shared::"
            f"{'cluster' if multicast else 'cta'}.global.tile::gather4.mbarrier::complete_tx::bytes"
            f"{'.multicast::cluster' if multicast else ''}",
            f"[$d], {where}, [$bar]{', $mask' if multicast else ''}",
            "nvvm.cp.async.bulk.tensor.shared.cluster.global",
            ("tensor", "cluster" if multicast else AddressSpace.smem),
            "tile_gather4",
        ),
        "tma_prefetch": (
            "cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4",
            where,
            "nvvm.cp.async.bulk.tensor.prefetch",
            ("tensor", "cache"),
            "tile_gather4",
        ),
        "tma_store": (
            "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group",
            f"{where}, [$a]",
            "nvvm.cp.async.bulk.tensor.global.shared.cta",
            (AddressSpace.smem, "tensor"),
            "tile_scatter4",
        ),
    }[family]
    pieces = (("rank", 2), ("mode", mode), ("multicast", multicast))
    row = _tma(name, family, spaces, mnemonic, operands, nvvm, pieces)
    arch = "sm_100" if family == "tma_load" and not multicast else TCGEN05
    return replace(row, arch=arch, ptx_version="8.6", sizes=_BOX)


def sized(atom: CopyAtom, bits: int) -> CopyAtom:
    """Return the variant of a bulk or TMA atom that moves ``bits`` bits; both layouts become ``(1,N):(0,1)``.

    Raises AtomError for any other atom, and unless ``bits`` is a multiple of 128.

    >>> from cute_dialect.arch import ATOMS
    >>> sized(ATOMS["SM90_TMA_LOAD_2D"], 8 * 16384).src
    Layout("(1,131072):(0,1)")
    """
    from dataclasses import replace

    if atom.sizes not in (_BOX, _RUN):
        raise AtomError("expected a bulk or TMA copy, whose size is variable", atom.name)
    if bits <= 0 or bits % UNIT_BITS:
        raise AtomError(f"expected a positive multiple of {UNIT_BITS} bits, got {bits}", atom.name)
    return replace(atom, src=bits_layout(bits), dst=bits_layout(bits))


# ------------------------------------------------------------------------------------------------------------- matrices


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


def byte_rows() -> Iterator[Row]:
    """Return the table rows of SM100: matrices of bytes, transposed, and loads that unpack 4-bit and 6-bit numbers."""
    for matrices in (1, 2, 4):
        name = byte_name(matrices, True, True)
        yield name, partial(_byte_copy, name, matrices, True, True, "")
    for source in ("", *BYTE_SOURCES):
        for matrices in (1, 2):
            name = byte_name(matrices, True, False, source)
            yield name, partial(_byte_copy, name, matrices, True, False, source)
    for source in BYTE_SOURCES:
        for matrices in (1, 2, 4):
            name = byte_name(matrices, False, False, source)
            yield name, partial(_byte_copy, name, matrices, False, False, source)


def _byte_copy(name: str, matrices: int, transposed: bool, store: bool, source: str) -> CopyAtom:
    instruction = "stmatrix" if store else "ldmatrix"
    shape = "m16n8" if store else "m16n16" if transposed else "m8n16"
    kind = f"b8x16.{source}" if source else "b8"
    mnemonic = f"{instruction}.sync.aligned.{shape}.x{matrices}{'.trans' if transposed else ''}.shared.{kind}"
    registers = matrices if store or not transposed else 2 * matrices
    if not transposed:
        memory, held = row_addresses(matrices), matrix_fragments(matrices, False)
    else:
        more = ((), ()) if registers == 1 else ((registers,), (1024,))
        held = raw_layout(((4, 8), (8, 2, 2, *more[0])), ((256, 8), (1, 128, 64, *more[1])))
        last = 0 if matrices == 1 else 2048
        memory = row_addresses(matrices) if store else raw_layout(((2, 2, 4, 2), 128), ((128, 1024, 256, last), 1))
    return CopyAtom(
        name=name,
        arch=BLACKWELL,
        family=instruction,
        element="b8",
        src_space="rmem" if store else "smem",
        dst_space="smem" if store else "rmem",
        thr_id=WARP,
        src=held if store else memory,
        dst=memory if store else held,
        ref_side="src" if store else "dst",
        registers=Registers("b32", registers, 4, "i32"),
        emit=Emit(
            instruction,
            mnemonic,
            f"nvvm.{instruction}",
            pieces=(("num", matrices), ("trans", transposed), ("shape", shape), ("source", source)),
        ),
        ptx=f"{mnemonic} [$a], $s;" if store else f"{mnemonic} $d, [$a];",
        isa='9.7.14.5.16 "stmatrix"' if store else '9.7.14.5.15 "ldmatrix"',
        ptx_version="8.6",
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
