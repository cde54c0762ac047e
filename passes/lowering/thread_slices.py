"""Tiled copies and tiled MMAs that need more threads than a block has.

A tiled MMA of 128 threads in a block of 64 leaves half of its tile untouched, unless a thread takes two slices.  The
check evaluates the thread indices of all slices of an operand for every thread of the block:

    part = mma.get_slice(t)                # t in 0..63 of 128: slices 64 to 127 are missing, an error
    a, b = mma.get_slice(t), mma.get_slice(t + 64)    # both together take all 128 slices

An index that is not computed from constants and thread indices alone may have any value, so its operand passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from operator import eq, ge, gt, le, lt, ne
from typing import NamedTuple

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.dialect.atom_types import TiledType
from cute_dialect.dialect.types import CoordType

Dim3 = tuple[int, int, int]

_WHOLE = {"cute.tiled_copy": 3, "cute.cooperative_gemm": 4}
"""Ops on whole tiles that take the thread's slice themselves -> the operand with the thread index."""
_PARTITIONS = ("cute.tiled.copy.partition_", "cute.tiled.mma.partition_")
_WARP = 32


class MissingSlices(NamedTuple):
    """An operand with slices that no thread of the block takes."""

    op: Operation  # the first op that takes a slice of the operand
    threads: int  # the threads that the tile needs
    block: int  # the threads of the block
    first: int  # the first and the last slice of the first missing range
    last: int

    @property
    def tile(self) -> str:
        """The name, in messages, of the tiled object that partitions the tile."""
        if self.op.name == "cute.cooperative_copy":
            return "it"
        return "the tiled copy" if "copy" in self.op.name else "the tiled MMA"

    @property
    def message(self) -> str:
        """The error message, without position and cure."""
        missing = f"slice {self.first}" if self.first == self.last else f"slices {self.first} to {self.last}"
        return f"{self.tile} needs {self.threads} threads, and the block has {self.block}: no thread takes {missing}"


class _Slice(NamedTuple):
    """A slice of a tile that an op takes."""

    op: Operation
    thread: SSAValue  # its thread index
    tiled: Attribute  # the tiled copy or MMA, or the number of threads
    threads: int  # the least block size with all slices
    shared: int  # the consecutive threads that have this slice together

    def needed(self) -> frozenset[int]:
        """Return the thread indices whose slices make up the tile."""
        return self.tiled.thread_indices() if isinstance(self.tiled, TiledType) else frozenset(range(self.threads))


def missing_slices(function: Operation) -> list[MissingSlices]:
    """Return the operands with missing slices in a kernel with ``known_block_size``, in program order."""
    sizes = function.attributes.get("known_block_size", function.properties.get("known_block_size"))
    if not isinstance(sizes, DenseArrayBase):
        return []
    x, y, z = (*(int(n) for n in sizes.get_values()), 1, 1)[:3]
    block = (x, y, z)
    slices: dict[tuple[str, Attribute], list[_Slice]] = {}
    for op in function.walk():
        found = _slice(op)
        if found is not None and found.threads > prod(block):
            slices.setdefault((op.name, found.tiled), []).append(found)
    checked = (_missing(taken, block) for taken in slices.values())
    return [found for found in checked if found is not None]


def _slice(op: Operation) -> _Slice | None:
    """Return the slice that an op takes; None for other ops."""
    if op.name == "cute.cooperative_copy":
        threads = op.properties.get("threads")
        if not isinstance(threads, IntegerAttr):
            return None
        return _Slice(op, op.operands[2], threads, threads.value.data, 1)
    is_partition = op.name.startswith(_PARTITIONS) and len(op.operands) == 3
    at = 2 if is_partition else _WHOLE.get(op.name)
    if at is None or (is_partition and next(iter(op.results[0].uses), None) is None):
        return None
    tiled = op.operands[0].type
    if not isinstance(tiled, TiledType):
        return None
    return _Slice(op, op.operands[at], tiled, tiled.block_size(), tiled.shared_slice(op.name.rpartition("_")[2]))


def _missing(slices: Sequence[_Slice], block: Dim3) -> MissingSlices | None:
    """Return the first range of slices that no thread takes; None if there is none or an index is unknown."""
    taken: set[int] = set()
    varies = False
    known: dict[SSAValue, list[int] | None] = {}
    for one in slices:
        indices = _indices(one.thread, block, known)
        if indices is None:
            return None
        varies = varies or len(set(indices)) > 1
        starts = {i // one.shared * one.shared for i in indices}
        taken.update(i + k for i in starts for k in range(one.shared))
    if not varies and prod(block) > 1:
        return None  # all threads take the same slice, which is intended
    first = slices[0]
    needed = first.needed()
    missing = sorted(needed - taken)
    if not missing:
        return None
    last = next((i for i, j in pairwise(missing) if j != i + 1), missing[-1])
    return MissingSlices(first.op, max(needed) + 1, prod(block), missing[0], last)


def indices_under(index: SSAValue, conditions: Sequence[tuple[SSAValue, bool]], block: Dim3) -> list[int] | None:
    """Return the values of an index in the threads of a block for which the conditions have the given values.

    An unknown condition may have either value.  The result is None if the index is unknown.

        t < 128 is true, block (256, 1, 1)    ->    0, …, 127 for the index t
    """
    known: dict[SSAValue, list[int] | None] = {}
    indices = _values(index, block, known)
    if indices is None:
        return None
    reaching = set(range(len(indices)))
    for condition, value in conditions:
        found = _values(condition, block, known)
        if found is not None:
            reaching &= {i for i, x in enumerate(found) if bool(x) == value}
    return [indices[i] for i in sorted(reaching)]


# ----------------------------------------------------------------------------------------- indices, thread by thread

_BINARY: dict[str, Callable[[int, int], int]] = {
    "addi": lambda a, b: a + b, "subi": lambda a, b: a - b, "muli": lambda a, b: a * b,
    "andi": lambda a, b: a & b, "ori": lambda a, b: a | b, "xori": lambda a, b: a ^ b,
    "shli": lambda a, b: a << b, "shrui": lambda a, b: a >> b, "shrsi": lambda a, b: a >> b,
    "divui": lambda a, b: a // b, "divsi": lambda a, b: a // b, "floordivsi": lambda a, b: a // b,
    "remui": lambda a, b: a % b, "remsi": lambda a, b: a % b, "minsi": min, "minui": min, "maxsi": max, "maxui": max,
}  # fmt: skip
"""Integer ops of arith, for non-negative numbers."""
_SIGNED = ("arith.addi", "arith.subi", "arith.muli", "arith.minsi", "arith.maxsi")
"""Ops that are the same for negative numbers."""
_LIMIT = 1 << 31
"""Numbers of a larger magnitude count as unknown, because they may wrap."""
_PREDICATES: tuple[Callable[[int, int], bool], ...] = (eq, ne, lt, le, gt, ge, lt, le, gt, ge)
"""Predicates of ``arith.cmpi`` by code, for non-negative numbers."""
_COPIES = ("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "arith.index_castui")
_REGISTERS = ("nvvm.read.ptx.sreg.", "gpu.", "cute_nvgpu.arch.")


def _indices(index: SSAValue, block: Dim3, known: dict[SSAValue, list[int] | None]) -> list[int] | None:
    """Return the index for each thread of the block, x fastest; None if unknown."""
    declared, owner = index.type, index.owner
    if isinstance(declared, CoordType) and isinstance(declared.data, int):
        return [declared.data] * prod(block)
    if isinstance(owner, Operation) and owner.name == "cute.make_coord" and len(owner.operands) == 1:
        found = _values(owner.operands[0], block, known)
        return found if found is not None and min(found) >= 0 else None
    return None


def _values(value: SSAValue, block: Dim3, known: dict[SSAValue, list[int] | None]) -> list[int] | None:
    if value not in known:
        known[value] = None  # values in a cycle are unknown
        found = _computed(value, block, known)
        known[value] = found if found is not None and all(-_LIMIT <= n < _LIMIT for n in found) else None
    return known[value]


def _computed(value: SSAValue, block: Dim3, known: dict[SSAValue, list[int] | None]) -> list[int] | None:
    op = value.owner
    if not isinstance(op, Operation):
        return None
    threads = range(prod(block))
    if op.name == "arith.constant":
        attribute = op.properties.get("value")
        return [attribute.value.data] * len(threads) if isinstance(attribute, IntegerAttr) else None
    if op.name in _COPIES:
        found = _values(op.operands[0], block, known)
        return None if found is None or ("ui" in op.name and min(found) < 0) else found
    if op.name == "cute_nvgpu.arch.shfl_sync":
        return _shuffled(op, block, known)
    if op.name.startswith(_REGISTERS):
        return _register(op, block)
    binary = _compared(op) if op.name == "arith.cmpi" else _BINARY.get(op.name.removeprefix("arith."))
    if binary is None or len(op.operands) != 2:
        return None
    a, b = (_values(x, block, known) for x in op.operands)
    if a is None or b is None or (op.name not in _SIGNED and min(*a, *b) < 0):
        return None
    try:
        return [binary(i, j) for i, j in zip(a, b)]
    except ZeroDivisionError:
        return None


def _compared(op: Operation) -> Callable[[int, int], int] | None:
    code = op.properties.get("predicate")
    return _PREDICATES[code.value.data] if isinstance(code, IntegerAttr) else None


def _register(op: Operation, block: Dim3) -> list[int] | None:
    """Return a thread's position in its block or warp, or the extents of the block, for each thread."""
    name = op.name[max(len(p) for p in _REGISTERS if op.name.startswith(p)) :]
    if op.name.startswith("gpu."):
        dimension = op.properties.get("dimension")
        axis = str(getattr(dimension, "data", "")).rpartition(".")[2]
        name = f"{ {'thread_id': 'tid', 'block_dim': 'ntid'}.get(name, '') }.{axis}"
    x, y, _ = block
    places = [(i % x, i // x % y, i // (x * y)) for i in range(prod(block))]
    if name in ("laneid", "lane_id"):
        return [i % _WARP for i in range(len(places))]
    register, _, axis = name.partition(".")
    if axis not in ("x", "y", "z") or register not in ("tid", "ntid"):
        return None
    at = "xyz".index(axis)
    return [place[at] for place in places] if register == "tid" else [block[at]] * len(places)


def _shuffled(op: Operation, block: Dim3, known: dict[SSAValue, list[int] | None]) -> list[int] | None:
    """Return the value that all threads of a warp read from one lane, e.g. for the warp index."""
    mode, width = op.properties.get("mode"), op.properties.get("width")
    if not isinstance(mode, StringAttr) or mode.data != "idx":
        return None
    if isinstance(width, IntegerAttr) and width.value.data != _WARP:
        return None
    values, lanes = (_values(x, block, known) for x in op.operands[:2])
    if values is None or lanes is None:
        return None
    sources = [i // _WARP * _WARP + lane for i, lane in enumerate(lanes)]
    return [values[i] for i in sources] if max(sources) < len(values) else None
