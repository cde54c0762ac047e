"""Binding of kernel arguments: arrays become buffers, and tuples become leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cute_dialect.interp.errors import InterpError
from cute_dialect.interp.field import check_width, held
from cute_dialect.interp.memory.buffers import Buffer, Elements, GlobalMemory
from cute_dialect.interp.memory.tensor_map import TensorMap
from cute_dialect.interp.types import Leaf, Type
from cute_dialect.interp.values import Array, Value, wrap_int

if TYPE_CHECKING:
    from cute_dialect.interp.field import Algebra


class Pointer:
    """A pointer argument: a position in an array that the kernel may read and write.

    - buffer: a C-contiguous numpy array. All its bytes are accessible, unless `window` restricts them
    - byte_offset: position of the pointer, from the start of the array
    - window: (byte offset, byte length) of the rows that belong to the tensor; accesses to other bytes are errors. For
      a tensor with padded rows: `[(r * row_stride_bytes, row_bytes) for r in range(rows)]`
    - elements: the tensor in the array, used for coordinates in messages; default: the array itself
    - unwritten: True if the array has no contents yet. The "uninit" check then reports reads of bytes that the kernel
      has not written. If several pointers share the array, all of them must set it
    """

    def __init__(
        self,
        buffer: Array,
        byte_offset: int = 0,
        name: str = "",
        window: Sequence[tuple[int, int]] | None = None,
        elements: Elements | None = None,
        unwritten: bool = False,
    ) -> None:
        self.buffer = buffer
        self.byte_offset = byte_offset
        self.name = name
        self.window = window
        self.unwritten = unwritten
        if elements is None and buffer.ndim and buffer.size:
            elements = Elements(0, buffer.shape, buffer.strides, buffer.itemsize)
        self.elements = elements


Argument: TypeAlias = "int | float | Pointer | TensorMap | np.ndarray | np.generic | Sequence[Argument]"


class Binder:
    """Converts arguments to leaf values, and the arrays of pointers to buffers."""

    def __init__(self, memory: GlobalMemory, vectorised: bool, algebra: Algebra | None = None) -> None:
        self.memory = memory
        self.vectorised = vectorised
        self.algebra = algebra  # arithmetic over a field: numbers become its elements
        self.lanes = 1
        self._known: dict[int, tuple[Buffer, Array]] = {}
        self.unwritten: dict[int, Buffer] = {}  # by `id`: buffers without contents

    def knows(self, array: Array, buf: Buffer) -> None:
        """Record that an array, which the caller keeps alive, is in a buffer already."""
        self._known[id(array)] = (buf, array)

    def buffer_of(self, array: Array) -> Buffer | None:
        """Return the buffer that holds an array, None if it was not bound."""
        at = array.__array_interface__["data"][0]
        for buf, known in self._known.values():
            start = known.__array_interface__["data"][0]
            if start <= at and at + array.nbytes <= start + known.nbytes:
                return buf
        return None

    def bind(self, t: Type, arg: Argument, where: str) -> list[Value]:
        """Return one value per leaf of a parameter of type `t`. `where` names it in errors. Raises InterpError."""
        if t.children or not t.leaves:
            if not isinstance(arg, (tuple, list)):
                raise InterpError("argument", f"{where} is of type {type(arg).__name__}; {t.text} needs a tuple")
            if len(arg) != len(t.children):
                raise InterpError("argument", f"{where} has {len(arg)} fields; {t.text} has {len(t.children)}")
            out: list[Value] = []
            for i, (child, a) in enumerate(zip(t.children, arg)):
                out.extend(self.bind(child, a, f"{where}[{i}]"))
            return out
        return [self._leaf(t.leaves[0], arg, where)]

    def _leaf(self, leaf: Leaf, arg: Argument, where: str) -> Value:
        if leaf.kind == "p":
            if isinstance(arg, TensorMap):
                return self._tensor_map(arg, where)
            if isinstance(arg, Pointer):
                return self._pointer(arg, where)
            if isinstance(arg, int) and not isinstance(arg, bool):
                return arg
            raise InterpError(
                "argument", f"{where} is of type {type(arg).__name__}; a pointer parameter needs a Pointer"
            )
        if isinstance(arg, Pointer) or (isinstance(arg, (tuple, list)) and not leaf.shape):
            raise InterpError("argument", f"{where} is of type {type(arg).__name__}; the parameter has type {leaf!r}")
        arr = np.asarray(arg)
        rank = len(leaf.shape)
        if arr.ndim == rank + 1 and self.vectorised:
            if self.lanes not in (1, len(arr)):
                raise InterpError("argument", f"{where} has {len(arr)} values; earlier arguments have {self.lanes}")
            self.lanes = len(arr)
        elif arr.shape != leaf.shape:
            raise InterpError("argument", f"{where} is an array of shape {arr.shape}; the parameter has type {leaf!r}")
        if leaf.kind == "f" and self.algebra is not None:
            check_width(self.algebra, leaf)
            numbers = arr.astype(leaf.dtype).astype(np.float64)
            return held(np.vectorize(self.algebra.constant, otypes=[np.int64])(numbers), leaf.dtype)
        if leaf.kind == "f":
            if arr.ndim == 0:
                return leaf.dtype.type(arr.item() if arr.dtype != leaf.dtype else arr[()])
            return arr.astype(leaf.dtype)
        if arr.dtype.kind not in "iub":
            raise InterpError("argument", f"{where} has dtype {arr.dtype}; pass integers of type {leaf!r}")
        lo, hi = -(1 << (leaf.width - 1)), (1 << leaf.width) - 1
        if arr.size and (int(arr.min()) < lo or int(arr.max()) > hi):
            raise InterpError("argument", f"{where} does not fit {leaf!r}: its values are {arr.min()} to {arr.max()}")
        if arr.ndim == 0:
            return wrap_int(int(arr), leaf.width)
        if leaf.width == 1:
            return (arr & 1).astype(np.bool_)
        return arr.astype(leaf.dtype)

    def _tensor_map(self, arg: TensorMap, where: str) -> int:
        """Return the address of the 128 bytes of a tensor map."""
        if arg.pointer is not None:
            arg = replace(arg.at(self._pointer(arg.pointer, where)), name=arg.name)
        raw = np.frombuffer(arg.encode(), np.uint8).copy()
        return self.memory.add(raw, f"{where} (tensor map)", writable=False).base

    def _pointer(self, p: Pointer, where: str) -> int:
        array = p.buffer
        if not isinstance(array, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InterpError("argument", f"{where} is a Pointer to {type(array).__name__}; use a numpy array")
        root = array
        while isinstance(root.base, np.ndarray) and root.base.flags.c_contiguous:
            root = root.base
        if not array.flags.c_contiguous:
            raise InterpError("argument", f"{where} is not C-contiguous; pass its base array and a window")
        start = array.__array_interface__["data"][0]
        for buf, known in self._known.values():
            base = known.__array_interface__["data"][0]
            if base <= start and start + array.nbytes <= base + known.nbytes and array.nbytes:
                if p.window is not None:
                    self._windows(buf, p, start - base, where)
                if not p.unwritten:
                    self.unwritten.pop(id(buf), None)
                return buf.base + (start - base) + p.byte_offset
            if start < base + known.nbytes and base < start + array.nbytes:
                raise InterpError(
                    "argument", f"{where}: partially overlaps {buf.name}; pass the array that contains both"
                )
        data = array.reshape(-1).view(np.uint8)
        name = f'{where.partition("[")[0]} "{p.name}"' if p.name else where
        buf = self.memory.add(data, name, writable=array.flags.writeable)
        buf.elements = p.elements
        buf.source = array
        if p.unwritten:
            self.unwritten[id(buf)] = buf
        self._known[id(array)] = (buf, array)
        if p.window is not None:
            self._windows(buf, p, 0, where)
        return buf.base + p.byte_offset

    def _windows(self, buf: Buffer, p: Pointer, shift: int, where: str) -> None:
        valid = buf.valid if buf.valid is not None else np.zeros(buf.size, np.bool_)
        for off, length in p.window or ():
            if off < 0 or length < 0 or shift + off + length > buf.size:
                raise InterpError(
                    "argument", f"{where}: window ({off}, {length}) is outside the buffer of {buf.size} bytes"
                )
            valid[shift + off : shift + off + length] = True
        buf.valid = valid
