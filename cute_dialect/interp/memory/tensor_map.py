"""Emulated tensor maps for TMA copies between global and shared memory.

A `TensorMap` has the parameters of `cuTensorMapEncodeTiled` or `cuTensorMapEncodeIm2col`. Its 128 bytes (`encode`) use
our own, self-contained format. A map may therefore be anywhere a kernel can point to: in a parameter passed by value,
in constant or in global memory. As an argument of `run_kernel`, a map with a `pointer` stands for a parameter
`!llvm.ptr {llvm.byval = !llvm.array<128 x i8>}`. The interpreter places the array, sets its address in the map, and
passes the address of the 128 bytes.

    a = np.zeros((256, 64), np.float16)
    TensorMap("f16", (64, 256), (128,), (64, 128), swizzle=128, pointer=Pointer(a))

Sources: CUDA driver API "Tensor Map Object Management"; PTX ISA 9.0, 5.5 "Tensors" (tiled mode, im2col, swizzling).
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.arch.tensor_map_codes import WIDE_MODES, column_rows
from cute_dialect.interp.errors import Fault

if TYPE_CHECKING:
    from cute_dialect.arch.tensor_map import Im2colMapSpec, TensorMapSpec
    from cute_dialect.interp.field import Algebra
    from cute_dialect.interp.memory.arguments import Pointer
    from cute_dialect.interp.memory.buffers import Buffer, GlobalMemory
    from cute_dialect.interp.values import Array

MAGIC = b"cuteTMap"
ROWS = 4  # Rows that one copy of mode gather4 or scatter4 moves.
MAP_BYTES = 128
ELEMENTS = (
    "f64",
    "f32",
    "tf32",
    "f16",
    "bf16",
    "i64",
    "i32",
    "ui32",
    "i16",
    "ui16",
    "i8",
    "ui8",
    "f8E4M3FN",
    "f8E5M2",
    "f8E8M0FNU",
    "f4E2M1FN",
    "f6E2M3FN",
)
_BYTES = (8, 4, 4, 2, 2, 8, 4, 4, 2, 2, 1, 1, 1, 1, 1, 1, 1)
_PACKED = {"f4E2M1FN": 4, "f6E2M3FN": 6}
_GAP = 0xA5  # Written to the padding of loads that unpack, whose value is not documented.
_SWIZZLES = (0, 32, 64, 128)
_RAW = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}
_HEAD = struct.Struct("<8sQ8B")
_EXTENTS = struct.Struct("<5I")
_STRIDES = struct.Struct("<4Q")
_BOX = struct.Struct("<5H5B")
_CORNERS = struct.Struct("<6h")


def _rounded_to_tf32(bits: Array) -> Array:
    """Round f32 bits to 10 fraction bits, ties to even, as a load with tf32 elements does (observed on an H200)."""
    rounded = (bits + 0xFFF + ((bits >> 13) & 1)) & 0xFFFFE000
    return np.where((bits & 0x7F800000) == 0x7F800000, bits, rounded).astype(bits.dtype)


def combined(element: str, old: Array, new: Array, combine: str, algebra: Algebra | None = None) -> Array:
    """Return the bits of `old` combined with those of `new` by a reduction.

    `element` is the type's name here or in PTX.
    """
    import ml_dtypes

    bfloat16: type = ml_dtypes.bfloat16
    signed = {"i64": "i8", "s64": "i8", "i32": "i4", "s32": "i4", "i16": "i2", "i8": "i1"}
    name = signed.get(element) or {"f64": "f8", "f32": "f4", "f16": "f2"}.get(element)
    dtype = np.dtype(bfloat16 if element == "bf16" else name or old.dtype)
    if algebra is not None and element in ("f64", "f32", "f16", "bf16"):
        if combine != "add":
            raise Fault("field", f"a TMA reduction {combine} of {element} has no value over a field; use add")
        return algebra.add(old.astype(np.int64), new.astype(np.int64)).astype(old.dtype)
    a, b = np.ascontiguousarray(old).view(dtype), np.ascontiguousarray(new).view(dtype)
    if combine in ("and", "or", "xor"):
        f = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[combine]
        return f(old, new)
    if combine == "add":
        r = a + b
    elif combine in ("min", "max"):
        r = (np.minimum if combine == "min" else np.maximum)(a, b)
    elif combine == "inc":
        r = np.where(a >= b, np.zeros_like(a), a + np.ones_like(a))
    elif combine == "dec":
        r = np.where((a == 0) | (a > b), b, a - np.ones_like(a))
    else:
        raise Fault("unsupported", f"reduction {combine} is not supported; use add, min, max, inc, dec, and, or, xor")
    return np.ascontiguousarray(r.astype(dtype)).view(old.dtype)


@dataclass(frozen=True)
class TensorMap:
    """A tensor map.

    - element: element type, one of `ELEMENTS`
    - extents: elements per dimension, innermost first; strides: bytes, for dimensions 1 and up
    - box: elements per dimension that one copy covers; element_strides: every n-th of them is copied
    - swizzle: 0, 32, 64 or 128 bytes; oob_fill: "zero" or "nan"
    - pixels, lower, upper: for im2col, with `box` = (channels,). The corners of the box of base pixels, W first
    - wide: for im2col along W only, 1, or 2 for 128 pixels with a halo after each 32; else 0
    - halo: pixels that such a copy adds. The instruction selects this; the 128 bytes do not contain it
    - unpack: 16 for loads that place 16 elements of 4 or 6 bits in 16 bytes of shared memory, else 0
    - by_row: True for a copy of mode gather4 or scatter4, whose coordinates are a column and four rows. The instruction
      selects this; the 128 bytes do not contain it
    - address: of the tensor in the interpreter's memory; pointer: the array, for a map that is an argument

    >>> m = TensorMap("f16", (64, 256), (128,), (64, 128), swizzle=128)
    >>> m.box_bytes, TensorMap.decode(m.encode()) == m
    (16384, True)
    """

    element: str
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...] = ()
    swizzle: int = 0
    oob_fill: str = "zero"
    pixels: int = 0
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()
    unpack: int = 0
    wide: int = 0
    halo: int = 0
    by_row: bool = False
    address: int = 0
    pointer: Pointer | None = None
    name: str = ""

    @staticmethod
    def of_spec(spec: TensorMapSpec | Im2colMapSpec, pointer: Pointer | None = None, name: str = "") -> TensorMap:
        """Return the tensor map of a specification. Raises ValueError if its extents or strides are dynamic."""
        extents, strides = spec.extents, spec.strides
        if not all(type(x) is int for x in (*extents, *strides)):
            raise ValueError(f"the tensor map has dynamic extents or strides: {extents}, {strides}; bind them first")
        if spec.interleave:
            raise ValueError(f"tensor maps with interleave ({spec.interleave} bytes) are not supported")
        pixels = getattr(spec, "pixels", 0)
        return TensorMap(
            spec.element,
            tuple(int(x) for x in extents),  # type: ignore[arg-type]
            tuple(int(x) for x in strides),  # type: ignore[arg-type]
            (spec.channels,) if pixels else spec.box,  # type: ignore[union-attr]
            tuple(spec.element_strides),
            spec.swizzle,
            spec.oob_fill,
            pixels,
            tuple(getattr(spec, "lower", ())),
            tuple(getattr(spec, "upper", ())),
            getattr(spec, "unpack", 0),
            WIDE_MODES.index(getattr(spec, "mode", "")),
            pointer=pointer,
            name=name,
        )

    @property
    def rank(self) -> int:
        """Number of dimensions of the tensor."""
        return len(self.extents)

    @property
    def element_bytes(self) -> int:
        """Size of an element in bytes. Elements of 4 or 6 bits are moved as bytes."""
        return _BYTES[ELEMENTS.index(self.element)]

    @property
    def steps(self) -> tuple[int, ...]:
        """Element strides, 1 by default."""
        return self.element_strides or (1,) * self.rank

    @property
    def coordinates(self) -> int:
        """Number of coordinates of a copy."""
        return 1 + ROWS if self.by_row else self.rank

    @property
    def rows_by_index(self) -> TensorMap:
        """Return the map of a copy of four rows by index. Raises Fault unless its boxes have one row."""
        if self.rank != 2 or self.pixels or self.box[1] != 1:
            raise Fault(
                "tma",
                f"gather4 and scatter4 need a tensor map of 2 dimensions with boxes of one row, got {self.text}",
            )
        return replace(self, by_row=True)

    def moved(self, elements: int) -> int:
        """Return the units of `element_bytes` that hold a number of consecutive elements.

        >>> TensorMap("f4E2M1FN", (128,), (), (128,)).moved(128), TensorMap("f16", (128,), (), (64,)).moved(64)
        (64, 64)
        """
        bits = _PACKED.get(self.element)
        return elements if bits is None else elements * bits // 8

    def with_halo(self, wide: int, halo: int) -> TensorMap:
        """Return the map of a copy of a wide mode with a halo. Raises Fault unless the map has this mode."""
        mode = WIDE_MODES[wide]
        if self.wide != wide:
            raise Fault("tma", f"a load of mode im2col {mode or 'without w'} needs a tensor map of this mode")
        most = {"w": 511, "w_128": 31}[mode]
        if halo > most:
            raise Fault("tma", f"the halo of mode im2col {mode} is {halo}; it must be 0 to {most}")
        return replace(self, halo=halo)

    @property
    def rows(self) -> int:
        """Pixels of an im2col copy, with the halo."""
        return column_rows(self.pixels, WIDE_MODES[self.wide], self.halo)

    @property
    def in_lines(self) -> bool:
        """True if a copy has one region per line of shared memory: a pixel of im2col, or a row by index."""
        return bool(self.pixels) or self.by_row

    @property
    def counts(self) -> tuple[int, ...]:
        """Elements, or bytes of 4-bit or 6-bit elements, that one copy moves along each dimension, innermost first."""
        if self.pixels:
            return (self.box[0], self.rows)
        if self.by_row:
            return (self.moved(self.box[0]), ROWS)
        first, *others = self.box
        return tuple([-(-b // s) for b, s in zip((self.moved(first), *others), self.steps)])

    @property
    def counted_bytes(self) -> int:
        """Bytes that one copy counts at an mbarrier, see `arch.tensor_map_codes.counted_bytes`."""
        n = self.element_bytes
        for c in self.counts:
            n *= c
        return n

    @property
    def box_bytes(self) -> int:
        """Bytes of shared memory that one copy covers."""
        return self.counted_bytes * 8 // _PACKED[self.element] if self.unpack else self.counted_bytes

    @property
    def unit_bytes(self) -> int:
        """Bytes of each 16 bytes of shared memory that a load writes."""
        return 2 * _PACKED[self.element] if self.unpack else 16

    def encode(self) -> bytes:
        """Return the 128 bytes of the map."""
        pad = (0,) * 5
        rank = self.rank
        raw = _HEAD.pack(
            MAGIC,
            self.address & (1 << 64) - 1,
            ELEMENTS.index(self.element),
            rank,
            _SWIZZLES.index(self.swizzle),
            self.oob_fill == "nan",
            bool(self.pixels),
            bool(self.element_strides),
            self.unpack,
            self.wide,
        )
        raw += _EXTENTS.pack(*(*[e - 1 for e in self.extents], *pad)[:5]) + bytes(4)
        raw += _STRIDES.pack(*(*self.strides, *pad)[:4])
        box = (self.box[0], self.pixels) if self.pixels else self.box
        raw += _BOX.pack(*(*box, *pad)[:5], *(*self.steps, *pad)[:5])
        raw += bytes(1) + _CORNERS.pack(*(*self.lower, *pad)[:3], *(*self.upper, *pad)[:3])
        return raw.ljust(MAP_BYTES, b"\0")

    @staticmethod
    def decode(raw: bytes) -> TensorMap:
        """Return the map encoded in 128 bytes. Raises ValueError if `encode` did not produce them."""
        magic, address, element, rank, swizzle, nan, im2col, strided, unpack, wide = _HEAD.unpack_from(raw)
        if magic != MAGIC or not 1 <= rank <= 5 or element >= len(ELEMENTS) or swizzle > 3:
            raise ValueError("the 128 bytes are not a tensor map")
        extents = tuple([e + 1 for e in _EXTENTS.unpack_from(raw, 24)[:rank]])
        strides = _STRIDES.unpack_from(raw, 48)[: rank - 1]
        fields = _BOX.unpack_from(raw, 80)
        corners = _CORNERS.unpack_from(raw, 96)
        spatial = rank - 2 if im2col else 0
        return TensorMap(
            ELEMENTS[element],
            extents,
            strides,
            fields[:1] if im2col else fields[:rank],
            fields[5 : 5 + rank] if strided else (),
            _SWIZZLES[swizzle],
            "nan" if nan else "zero",
            fields[1] if im2col else 0,
            corners[:spatial],
            corners[3 : 3 + spatial],
            unpack,
            wide,
            address=address,
        )

    def at(self, address: int) -> TensorMap:
        """Return the same map for a tensor at another address."""
        return replace(self, address=address, pointer=None)

    # -- global side ------------------------------------------------------------------------------------------------

    def regions(self, coordinates: Sequence[int], offsets: Sequence[int] = ()) -> list[Region]:
        """Return the regions of a copy at these coordinates (innermost first): one box, or one per im2col pixel or row
        by index.
        """
        if len(coordinates) != self.coordinates:
            raise Fault("tma", f"the copy needs {self.coordinates} coordinates, got {len(coordinates)}")
        inner = int(coordinates[0])
        bits = inner * _PACKED.get(self.element, 8 * self.element_bytes)
        if bits % 128 and not self.unpack:  # The GPU stops with an illegal instruction (observed on an H200).
            what = f"coordinate {inner} of {self.element}, {bits / 8:g} bytes"
            raise Fault("misaligned", f"the first coordinate of a box must be a multiple of 16 bytes, got {what}")
        if self.unpack and inner % 128:  # PTX ISA, "Tensors", b4x16_p64 and b6x16_p32
            raise Fault(
                "misaligned", f"the first coordinate of a load that unpacks must be a multiple of 128, got {inner}"
            )
        if self.pixels:
            return self._columns(coordinates, offsets)
        if self.by_row:
            line = (self.moved(inner), self.counts[0], 1)
            return [Region((line, (int(row), 1, 1)), i) for i, row in enumerate(coordinates[1:])]
        at = (self.moved(inner), *coordinates[1:])
        return [Region(tuple([(int(c), n, s) for c, n, s in zip(at, self.counts, self.steps)]), 0)]

    def _columns(self, coordinates: Sequence[int], offsets: Sequence[int]) -> list[Region]:
        """Return the im2col regions: `pixels` base pixels in order W, H, D, N within the box of corners.

        Each is shifted by the offsets.
        """
        spatial = self.rank - 2
        if self.wide:
            return self._wide_columns(coordinates, offsets)
        if len(offsets) != spatial:
            raise Fault("tma", f"the copy has {len(offsets)} im2col offsets; this tensor map needs {spatial}")
        low = [self.lower[i] for i in range(spatial)]
        high = [self.extents[i + 1] - 1 + self.upper[i] for i in range(spatial)]
        at = [int(c) for c in coordinates[1:]]
        step = self.steps[1 : 1 + spatial]
        out: list[Region] = []
        for p in range(self.pixels):
            spans = [(int(coordinates[0]), self.box[0], 1)]
            spans += [(at[i] + int(offsets[i]), 1, 1) for i in range(spatial)] + [(at[spatial], 1, 1)]
            out.append(Region(tuple(spans), p))
            for i in range(spatial + 1):  # Advance to the next base pixel.
                if i == spatial:
                    at[i] += 1
                    break
                at[i] += step[i]
                if at[i] <= high[i]:
                    break
                at[i] = low[i]
        return out

    def _wide_columns(self, coordinates: Sequence[int], offsets: Sequence[int]) -> list[Region]:
        """Return the regions of pixels along W, then N, with the halo; see `arch.tensor_map_codes.column_rows`."""
        if len(offsets) != 1:
            raise Fault("tma", f"the copy has {len(offsets)} im2col offsets; a map of a wide mode needs 1, along W")
        shift = int(offsets[0])
        if shift > 31:
            raise Fault("tma", f"the offset of an im2col load along W is {shift}; it must be 0 to 31")
        first, step = int(coordinates[1]) + shift, self.steps[1]
        low, high = self.lower[0] + shift, self.extents[1] - 1 + self.upper[0] + shift
        if first > high:
            raise Fault(
                "tma", f"the first pixel of the load is at {first} along W, right of the box, which ends at {high}"
            )
        per_row = (high - low) // step + 1  # pixels of a row of the box after the first row
        ahead = (high - first) // step + 1  # pixels of the first row
        kept = [(int(c), 1, 1) for c in coordinates[2:-1]]
        group = 32 if WIDE_MODES[self.wide] == "w_128" else self.pixels
        out: list[Region] = []
        for start in range(0, self.pixels, group):
            for p in range(start, start + group + self.halo):
                row, column = divmod(p - ahead, per_row) if p >= ahead else (-1, p)
                w = first + column * step if row < 0 else low + column * step
                spans = (
                    (int(coordinates[0]), self.box[0], 1),
                    (w, 1, 1),
                    *kept,
                    (int(coordinates[-1]) + row + 1, 1, 1),
                )
                out.append(Region(spans, len(out)))
        return out

    def _window(self, region: Region, buf: Buffer, stored: bool = False) -> tuple[tuple[slice, ...], Array] | None:
        """Return the part of a region inside the tensor: slices of the box, and a view of memory, outermost first.

        With `stored`, a line that ends inside a unit of 16 bytes is extended to the end of the unit. A GPU stores whole
        units, and overwrites the elements past the end of the line.
        """
        item = self.element_bytes
        strides = (item, *self.strides)
        extents = (self.moved(self.extents[0]), *self.extents[1:])
        if stored and self.steps[0] == 1:
            unit = 16 // item
            extents = (-(-extents[0] // unit) * unit, *extents[1:])
        slices: list[slice] = []
        shape: list[int] = []
        pitch: list[int] = []
        start = self.address - buf.base
        for (first, count, step), extent, stride in zip(region.spans, extents, strides):
            lo = max(0, -(first // step)) if first < 0 else 0
            hi = min(count, -(-(extent - first) // step))
            if hi <= lo:
                return None
            slices.append(slice(lo, hi))
            shape.append(hi - lo)
            pitch.append(stride * step)
            start += (first + lo * step) * stride
        last = start + sum((n - 1) * p for n, p in zip(shape, pitch)) + item
        if start < 0 or last > buf.size:
            where = f"bytes {start} to {last} of {buf.name}, which has {buf.size}"
            line = self.moved(self.extents[0]) * item
            if stored and extents[1:] == self.extents[1:] and extents[0] * item != line:
                where += f"; a store of lines of {line} bytes writes whole units of 16 bytes"
            raise Fault("oob", f"tensor map {self.name or self.text}: the box reaches {where}", -1, buf.base + start)
        view = np.ndarray(shape[::-1], _RAW[item], buf.data.data, start, pitch[::-1])
        return tuple(slices[::-1]), view

    def buffer(self, memory: GlobalMemory) -> Buffer:
        """Return the buffer of the tensor. Raises Fault oob if there is none at its address."""
        buf = memory.find(self.address)
        if buf is None:
            raise Fault("oob", f"tensor map {self.text}: no buffer at its address", -1, self.address)
        return buf

    def gather(self, buf: Buffer, coordinates: Sequence[int], offsets: Sequence[int] = ()) -> Array:
        """Read a box in the order of shared memory before the swizzle. Out-of-bounds elements get the fill value.

        The padding of a load that unpacks is filled with a pattern.
        """
        item = self.element_bytes
        dims = self.counts[::-1]
        out = np.zeros(dims, _RAW[item])
        if self.oob_fill == "nan":
            out[...] = {8: 0x7FFFFFFFFFFFFFFF, 4: 0x7FFFFFFF, 2: 0x7FFF}[item]
        for region in self.regions(coordinates, offsets):
            got = self._window(region, buf)
            if got is not None:
                if self.in_lines:
                    out[region.row, got[0][-1]] = got[1].reshape(-1)
                else:
                    out[got[0]] = got[1]
        if self.element == "tf32":
            out = _rounded_to_tf32(out)
        found = out.reshape(-1).view(np.uint8)
        if not self.unpack:
            return found
        units = np.full((len(found) // self.unit_bytes, 16), _GAP, np.uint8)
        units[:, : self.unit_bytes] = found.reshape(-1, self.unit_bytes)
        return units.reshape(-1)

    def scatter(
        self,
        buf: Buffer,
        coordinates: Sequence[int],
        data: Array,
        combine: str = "",
        offsets: Sequence[int] = (),
        algebra: Algebra | None = None,
    ) -> None:
        """Write a box from bytes in the order of shared memory before the swizzle. Out-of-bounds elements are dropped.

        Whole units of 16 bytes are written, also where a line of the tensor ends inside one.
        `combine` is "" for a store, else the reduction: add, min, max, inc, dec, and, or, xor.
        """
        if not buf.writable:
            raise Fault("readonly", f"TMA store to {buf.name}, which is read-only", -1, self.address)
        box = data.view(_RAW[self.element_bytes]).reshape(self.counts[::-1])
        for region in self.regions(coordinates, offsets):
            got = self._window(region, buf, stored=True)
            if got is None:
                continue
            where, view = got
            part = box[region.row, where[-1]].reshape(view.shape) if self.in_lines else box[where]
            view[...] = part if not combine else combined(self.element, view, part, combine, algebra)
        if buf.written is not None or buf.contents is not None:
            at = self.touched(buf, coordinates, offsets, stored=True)
            buf.note_written(at, self.element_bytes, self.element_bytes, "TMA store", np.zeros(len(at), np.int64))

    def inside(self, buf: Buffer, coordinates: Sequence[int], offsets: Sequence[int] = ()) -> Array:
        """Return a mask of the bytes of a box that belong to elements of the tensor, ordered as before the swizzle."""
        out = np.zeros(self.counts[::-1], np.bool_)
        for region in self.regions(coordinates, offsets):
            got = self._window(region, buf)
            if got is not None:
                where = got[0]
                out[(region.row, where[-1]) if self.in_lines else where] = True
        return np.repeat(out.reshape(-1), self.element_bytes)

    def touched(
        self, buf: Buffer, coordinates: Sequence[int], offsets: Sequence[int] = (), stored: bool = False
    ) -> Array:
        """Return the byte offsets of the elements of the tensor that a copy accesses, ascending within a row.

        With `stored`, they include the elements past the end of a line that a store overwrites.
        """
        out: list[Array] = []
        for region in self.regions(coordinates, offsets):
            got = self._window(region, buf, stored)
            if got is not None:
                view = got[1]
                at = np.array(view.__array_interface__["data"][0] - buf.data.__array_interface__["data"][0])
                for n, p in zip(view.shape, view.strides):
                    at = at[..., None] + np.arange(n) * p
                out.append(at.reshape(-1))
        return np.concatenate(out) if out else np.zeros(0, np.int64)

    @property
    def text(self) -> str:
        """The map on one line, for diagnostics."""
        box = "x".join(map(str, (self.box[0], *self.counts[1:])))
        return f"{'x'.join(map(str, self.extents))} {self.element}, box {box}"


@dataclass(frozen=True)
class Region:
    """A box of elements: (first coordinate, count, step) per dimension, innermost first.

    `row` is the number of the im2col pixel or of the row by index.
    """

    spans: tuple[tuple[int, int, int], ...]
    row: int


@lru_cache(maxsize=256)
def swizzled_units(first: int, count: int, swizzle: int) -> Array:
    """Return the positions, after the swizzle, of `count` consecutive 16-byte units from unit `first` (address / 16).

    A 128-byte swizzle xors bits 4-6 of the address with bits 7-9. A 64-byte swizzle xors bits 4-5 with 7-8, and a
    32-byte swizzle bit 4 with 7.

    >>> swizzled_units(8, 8, 128).tolist()
    [9, 8, 11, 10, 13, 12, 15, 14]
    """
    units = np.arange(first, first + count)
    return units ^ ((units >> 3) & (swizzle // 16 - 1)) if swizzle else units


def write_shared(smem: Buffer, start: int, address: int, data: Array, swizzle: int, unit_bytes: int = 16) -> None:
    """Write bytes at index `start` of a buffer, swizzled by the shared address of this index.

    Only the first `unit_bytes` of each 16 bytes count as written.
    """
    smem.note_range(start, len(data), "TMA load")
    at = units_of(start, address, len(data), swizzle)
    if unit_bytes < 16 and smem.contents is not None:
        smem.contents.forget_padding(start, len(data), unit_bytes)
    smem.view(np.dtype(np.uint64), 2)[at] = data.view(np.uint64).reshape(-1, 2)


def read_shared(smem: Buffer, start: int, address: int, nbytes: int, swizzle: int) -> Array:
    """Invert `write_shared`: return bytes in the order before the swizzle."""
    at = units_of(start, address, nbytes, swizzle)
    return smem.view(np.dtype(np.uint64), 2)[at].reshape(-1).view(np.uint8)


def units_of(start: int, address: int, nbytes: int, swizzle: int) -> Array:
    """Return the 16-byte units of a buffer that hold a box starting at index `start`, ordered as before the swizzle."""
    return swizzled_units(address // 16, nbytes // 16, swizzle) + (start - address) // 16
