"""Tensor memory: its addresses, and the table of its load and store instructions.

A block has 128 lanes of up to 512 columns of 32 bits.  An address holds the lane in bits 16 to 31 and the column in
bits 0 to 15.  Layouts count elements, so the stride of a lane of f32 is 65536 and that of a column is 1::

    accumulator 128x256 of f32     (128,256):(65536,1)
    accumulator 128x256 of f16     (128,256):(131072,2)         one element per column

A warp loads and stores 32 or 16 lanes at once.  Thread ``t`` holds in register ``r`` the word

    shape      lane                       column
    32x32b     t                          r
    16x64b     t//4 + 8*(t%2)             2*r + t//2%2
    16x128b    t//4 + 8*(r%2)             4*(r//2) + t%4
    16x256b    t//4 + 8*(r//2%2)          8*(r//4) + 2*(t%4) + r%2
    16x32bx2   t%16                       r + (N if t >= 16 else 0)

where ``N`` is the number of repetitions.  A packed access of 16-bit elements accesses two columns per register: those
of ``2*r`` and ``2*r + 1`` if ``r`` is the column above.

>>> load = tmem_atom("load", "32x32b", 32)
>>> load.name, load.src, load.dst
('SM100_TMEM_LOAD_32dp32b32x', Layout("(32,32768):(0,1)"), Layout("(32,1024):(1024,1)"))

Source: PTX ISA 9.1, "Tensor Memory" and "tcgen05.ld", "tcgen05.st"; CUTLASS ``include/cute/arch/copy_sm100.hpp``,
``include/cute/atom/copy_traits_sm100.hpp`` (BSD-3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import NamedTuple

from cute_dialect.algebra.compose import compose
from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.values import Layout, raw_layout
from cute_dialect.arch.atom import CopyAtom, Emit, Registers
from cute_dialect.arch.errors import AtomError
from cute_dialect.arch.fragments import WARP
from cute_dialect.arch.mma_sync import Row
from cute_dialect.arch.targets import TCGEN05
from cute_dialect.spaces import AddressSpace

LANES = 128
"""Lanes of the tensor memory of a block."""

COLUMNS = 512
"""Columns of the tensor memory of a block."""

LANE_BITS = 1 << 21
"""Distance of two lanes, in bits of the address space."""

COLUMN_BITS = 32
"""Width of a column in bits."""

ALLOCATIONS = (32, 64, 128, 256, 512)
"""Numbers of columns that can be allocated."""


def strides(bits: int) -> tuple[int, int]:
    """Return the distances of two lanes and of two columns, in elements of ``bits`` bits.

    >>> strides(32), strides(16)
    ((65536, 1), (131072, 2))
    """
    return LANE_BITS // bits, COLUMN_BITS // bits


class Shape(NamedTuple):
    """A shape of ``tcgen05.ld`` and ``tcgen05.st``.

    Args:
        name: the qualifier in PTX.
        cute: the shape in the names of CuTe.
        lanes: lanes that a warp accesses.
        registers: registers per thread and repetition.
        most: greatest number of repetitions.
    """

    name: str
    cute: str
    lanes: int
    registers: int
    most: int

    @property
    def repetitions(self) -> tuple[int, ...]:
        """The numbers of repetitions that exist."""
        return tuple(1 << i for i in range(self.most.bit_length()))

    @property
    def columns(self) -> int:
        """Columns of one repetition."""
        return 32 * self.registers // self.lanes


SHAPES: Mapping[str, Shape] = {
    shape.name: shape
    for shape in (
        Shape("16x256b", "16dp256b", 16, 4, 32),
        Shape("16x128b", "16dp128b", 16, 2, 64),
        Shape("16x64b", "16dp64b", 16, 1, 128),
        Shape("16x32bx2", "16dp32b", 16, 1, 128),
        Shape("32x32b", "32dp32b", 32, 1, 128),
    )
}
"""The shapes by their names in PTX."""


def words(shape: str, n: int) -> Layout:
    """Return ``(thread, bit) -> bit`` of the words that the threads hold, in the order of lanes of ``n`` repetitions.

    >>> words("16x256b", 1)
    Layout("((4,8),(64,2,1)):((64,256),(1,2048,256))")
    """
    layouts = {
        "32x32b": ((32, 32 * n), (32 * n, 1)),
        "16x32bx2": (((16, 2), 32 * n), ((64 * n, 32 * n), 1)),
        "16x64b": (((2, 2, 8), (32, n)), ((512 * n, 32, 64 * n), (1, 64))),
        "16x128b": (((4, 8), (32, 2, n)), ((32, 128 * n), (1, 1024 * n, 128))),
        "16x256b": (((4, 8), (64, 2, n)), ((64, 256 * n), (1, 2048 * n, 256))),
    }
    return raw_layout(*layouts[shape])


def window(shape: str, n: int, bits: int, packed: bool = False) -> Layout:
    """Return the elements of tensor memory that one instruction accesses: ``element -> offset`` in elements.

    The elements are numbered along the columns of a lane first.  ``packed`` accesses take the lower halves of words.

    >>> window("32x32b", 8, 32), window("16x64b", 4, 16, packed=True)
    (Layout("(8,32):(1,65536)"), Layout("(16,16):(2,131072)"))
    """
    held = SHAPES[shape]
    lane, column = strides(bits)
    columns = n * held.columns
    if packed:
        return raw_layout((2 * columns, held.lanes), (column, lane))
    return raw_layout((columns * column, held.lanes), (1, lane))


REDUCED_SHAPES = ("32x32b", "16x32bx2")
"""The shapes of ``tcgen05.ld.red``, which also reduces the columns that a thread loads."""
REDUCED_TYPES = {"f32": "f32", "i32": "s32", "ui32": "u32"}
"""Element type -> the type of a reduction in PTX."""


def load_reduction(shape: str, n: int, reduction: str, element: str) -> str:
    """Return the PTX name of a load that also reduces the columns that a thread loads.

    Args:
        shape: a key of ``SHAPES``.
        n: number of repetitions, a power of two.
        reduction: "min" or "max", for f32 with ".abs" (of absolute values) and ".NaN" (a NaN is the result).
        element: type of the elements.

    Raises:
        AtomError: there is no such instruction.

    >>> load_reduction("32x32b", 32, "max.abs", "f32")
    'tcgen05.ld.red.sync.aligned.32x32b.x32.max.abs.f32'
    """
    operation, *modifiers = reduction.split(".")
    if operation not in ("min", "max"):
        raise AtomError(f"{operation} is not a reduction of a load; use min or max")
    if shape not in REDUCED_SHAPES or n < 2:
        raise AtomError(
            f"{shape} with x{n} has no load with a reduction; use {' or '.join(REDUCED_SHAPES)}, with x2 or more"
        )
    if element not in REDUCED_TYPES:
        raise AtomError(f"a load cannot reduce {element}; use one of {', '.join(REDUCED_TYPES)}")
    if modifiers and element != "f32":
        raise AtomError(f"abs and nan need elements of f32, got {element}")
    return f"tcgen05.ld.red.sync.aligned.{shape}.x{n}.{reduction}.{REDUCED_TYPES[element]}"


def tmem_atom(direction: str, shape: str, n: int, packed: bool = False) -> CopyAtom:
    """Find the load or the store of tensor memory of a shape and a number of repetitions.

    Args:
        direction: "load" (tensor memory to registers) or "store".
        shape: a key of ``SHAPES``.
        n: number of repetitions, a power of two.
        packed: two 16-bit elements of consecutive columns are one register.

    Raises:
        AtomError: there is no such instruction.  The message lists the allowed values.
    """
    if shape not in SHAPES:
        raise AtomError(f"{shape} is not a shape of tensor memory; use one of {', '.join(SHAPES)}")
    found = SHAPES[shape]
    if n not in found.repetitions:
        allowed = ", ".join(f"x{i}" for i in found.repetitions)
        raise AtomError(f"{shape} has no x{n}; use one of {allowed}")
    return _made(direction, shape, n, packed)


@cache
def _made(direction: str, shape: str, n: int, packed: bool) -> CopyAtom:
    found = SHAPES[shape]
    load = direction == "load"
    registers = n * found.registers
    whole = raw_layout((32, 1024 * registers), (0, 1))
    held = words(shape, n)
    ptx, option = ("ld", ".pack::16b") if load else ("st", ".unpack::16b")
    mnemonic = f"tcgen05.{ptx}.sync.aligned.{shape}.x{n}{option if packed else ''}.b32"
    split = n * (2 if packed else 1)
    offset = f", {split}" if shape == "16x32bx2" else ""
    return CopyAtom(
        name=f"SM100_TMEM_{direction.upper()}_{found.cute}{n}x{'_16b' if packed else ''}",
        arch=TCGEN05,
        family=f"tmem_{direction}",
        element="b32",
        src_space=AddressSpace.tmem if load else AddressSpace.rmem,
        dst_space=AddressSpace.rmem if load else AddressSpace.tmem,
        thr_id=WARP,
        src=whole if load else held,
        dst=held if load else whole,
        ref_side="src" if load else "dst",
        emit=Emit(
            kind=f"tmem_{direction}",
            mnemonic=mnemonic,
            intrinsic=f"llvm.nvvm.tcgen05.{ptx}.{shape}.x{n}",
            pieces=(("shape", shape), ("repetitions", n), ("packed", packed), ("split", split)),
        ),
        ptx=f"{mnemonic} $d, [$a]{offset};" if load else f"{mnemonic} [$d]{offset}, $a;",
        isa=f'"tcgen05.{ptx}"',
        ptx_version="8.6",
        registers=Registers("b32", registers, 1, "i32"),
    )


class SharedCopyShape(NamedTuple):
    """A shape of ``tcgen05.cp``, which copies rows of shared memory to lanes of tensor memory.

    Args:
        name: the qualifiers in the names of the intrinsics.
        cute: the shape in the names of CuTe.
        lanes: lane of each row in its first copy, as a layout.
        row_bytes: bytes of a row, 16 or 32.
    """

    name: str
    cute: str
    lanes: Layout
    row_bytes: int

    @property
    def qualifiers(self) -> str:
        """The qualifiers in PTX."""
        first, *others = self.name.split("_")
        if not others:
            return f".{first}"
        return f".{first}.{others[0]}" + (f"::{'_'.join(others[1:])}" if others[1:] else "")


SHARED_COPIES: Mapping[str, SharedCopyShape] = {
    shape.name: shape
    for shape in (
        SharedCopyShape("128x256b", "128dp256bit", raw_layout(128, 1), 32),
        SharedCopyShape("128x128b", "128dp128bit", raw_layout(128, 1), 16),
        SharedCopyShape("4x256b", "4dp256bit", raw_layout(4, 32), 32),
        SharedCopyShape("64x128b_warpx2_02_13", "2x64dp128bitlw0213", raw_layout(64, 1), 16),
        SharedCopyShape("64x128b_warpx2_01_23", "2x64dp128bitlw0123", raw_layout((32, 2), (1, 64)), 16),
        SharedCopyShape("32x128b_warpx4", "4x32dp128bit", raw_layout(32, 1), 16),
    )
}
"""The shapes of ``tcgen05.cp`` by the names of their intrinsics: PTX ISA 9.1, "tcgen05.cp"."""


def shared_window(shape: str, bits: int) -> Layout:
    """Return the elements of tensor memory that a copy from shared memory writes, in the order of shared memory.

    Units of 16 bytes of all rows are consecutive in shared memory.  Copies of rows in further lanes are left out.

    >>> shared_window("32x128b_warpx4", 8), shared_window("64x128b_warpx2_01_23", 32)
    (Layout("(16,32,1):(1,262144,16)"), Layout("(4,(32,2),1):(1,(65536,4194304),4)"))
    """
    found = SHARED_COPIES[shape]
    lane, _ = strides(bits)
    unit = 128 // bits
    rows_ = compose(raw_layout(LANES, lane), found.lanes)
    return raw_layout((unit, rows_.shape, found.row_bytes // 16), (1, rows_.stride, unit))


def shared_copy_atom(shape: str, cta_group: int) -> CopyAtom:
    """Find the copy from shared to tensor memory of a shape; ``cta_group`` is 2 for a pair of blocks.

    Raises:
        AtomError: there is no such instruction.  The message lists the allowed values.
    """
    if shape not in SHARED_COPIES:
        raise AtomError(f"tcgen05.cp has no shape {shape}; use one of {', '.join(SHARED_COPIES)}")
    if cta_group not in (1, 2):
        raise AtomError(f"cta_group is {cta_group}; use 1, or 2 for a pair of blocks")
    return _shared_copy(shape, cta_group)


@cache
def _shared_copy(shape: str, cta_group: int) -> CopyAtom:
    found = SHARED_COPIES[shape]
    count = size(found.lanes)
    assert isinstance(count, int)
    whole = raw_layout((1, 8 * found.row_bytes * count), (0, 1))
    mnemonic = f"tcgen05.cp.cta_group::{cta_group}{found.qualifiers}"
    return CopyAtom(
        name=f"SM100_UTCCP_{found.cute}_{cta_group}cta",
        arch=TCGEN05,
        family="tmem_copy",
        element="b128",
        src_space=AddressSpace.smem,
        dst_space=AddressSpace.tmem,
        thr_id=raw_layout(1, 0),
        src=whole,
        dst=whole,
        ref_side="dst",
        emit=Emit(
            kind="tmem_copy",
            mnemonic=mnemonic,
            intrinsic=f"llvm.nvvm.tcgen05.cp.{shape}.cg{cta_group}",
            pieces=(("shape", shape), ("cta_group", cta_group)),
        ),
        ptx=f"{mnemonic} [$d], $a;",
        isa='"tcgen05.cp"',
        ptx_version="8.6",
        src_align=16,
    )


def rows() -> Iterator[Row]:
    """Return the table rows of all loads and stores of tensor memory."""
    for direction in ("load", "store"):
        for shape in SHAPES.values():
            for packed in (False, True):
                for n in shape.repetitions:
                    name = f"SM100_TMEM_{direction.upper()}_{shape.cute}{n}x{'_16b' if packed else ''}"
                    yield name, partial(_made, direction, shape.name, n, packed)
