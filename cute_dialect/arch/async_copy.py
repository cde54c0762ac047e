"""Asynchronous copies: ``cp.async``, bulk copies, and TMA copies of boxes through a tensor map.

A bulk copy moves any multiple of 16 bytes, and a TMA copy moves one box.  The layouts in the table describe one unit of
16 bytes; :func:`sized` returns the atom for a number of bits.  One thread issues each of these instructions.

Source: PTX ISA 9.0, 9.7.9.25 "Data Movement and Conversion Instructions: Asynchronous copy" (.3 non-bulk, .4 bulk,
.5 tensor), 9.7.9.16 "prefetch, prefetchu".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from cute_dialect.arch.atom import CopyAtom, Emit
from cute_dialect.arch.errors import AtomError
from cute_dialect.arch.fragments import ONE_THREAD
from cute_dialect.arch.mma_sync import Row
from cute_dialect.arch.universal import bits_layout
from cute_dialect.spaces import AddressSpace

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
    """Return the TMA table rows of SM90: boxes of tensors of rank 1 to 5 (im2col: 3 to 5), and tensor-map prefetch."""
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


__all__ = ["BULK_REDUCTIONS", "UNIT_BITS", "bulk_rows", "cp_async_rows", "sized", "tma_rows"]
