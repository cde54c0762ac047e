"""Layout of lowered types in the parameter space of a kernel.

A kernel parameter of struct type is passed by value, in one ``.param`` with the size and alignment of the C struct.
Members follow in order, each at the next multiple of its alignment, and the struct is padded to its alignment.
``test/unit/runtime/test_abi.py`` checks these rules against the PTX that LLVM 22 prints.

An empty struct has size 0 and alignment 1, and may be nested in another struct.  The NVPTX back end aborts on a
parameter that is empty as a whole, so the compiler removes such parameters.

    !llvm.struct<(ptr<1>, struct<(struct<(i32, i32)>, i32)>)>     24 bytes, alignment 8
      [0]       pointer   offset 0
      [1, 0, 0] i32       offset 8
      [1, 0, 1] i32       offset 12
      [1, 1]    i32       offset 16

>>> t = parse_type("!llvm.struct<(ptr<1>, struct<(struct<(i32, i32)>, i32)>)>")
>>> t.size, t.align, [(s.path, s.name, o) for s, o in t.scalars()]
(24, 8, [((0,), 'ptr', 0), ((1, 0, 0), 'i32', 8), ((1, 0, 1), 'i32', 12), ((1, 1), 'i32', 16)])
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

__all__ = [
    "MERGED_SMEM",
    "PREFERRED_CLUSTER",
    "AbiError",
    "Scalar",
    "Struct",
    "Type",
    "Value",
    "nested",
    "pack_scalar",
    "parse_type",
    "zero",
]

MERGED_SMEM = "cute.merged_smem"
"""Attribute of a kernel: the two sides of each ``scf.if`` have the same shared memory."""
PREFERRED_CLUSTER = "cute.preferred_cluster"
"""Attribute of a kernel and of its launch: the larger of two sizes of clusters, in blocks."""

Value: TypeAlias = "int | float | bytes | tuple[Value, ...]"
"""Run-time value of a lowered type: a number, or a tuple with one entry per struct member."""


class AbiError(ValueError):
    """A type that cannot be a kernel parameter, or a value out of range for its type."""


class Slot(NamedTuple):
    """Path of a scalar inside a type (indices as for ``llvm.extractvalue``), and its name (``i32``, ``ptr``)."""

    path: tuple[int, ...]
    name: str


class Scalar(NamedTuple):
    """A scalar type such as ``ptr``, ``i32`` or ``f16``; ``text`` is its source text."""

    name: str
    size: int
    align: int
    text: str

    def scalars(self) -> Iterator[tuple[Slot, int]]:
        """Yield the scalar itself, at offset 0."""
        yield Slot((), self.name), 0


class Struct(NamedTuple):
    """A literal struct with the byte offsets of its members."""

    members: tuple[Type, ...]
    offsets: tuple[int, ...]
    size: int
    align: int
    text: str

    def scalars(self) -> Iterator[tuple[Slot, int]]:
        """Yield every scalar in the struct, depth first, with its byte offset."""
        for i, (member, offset) in enumerate(zip(self.members, self.offsets)):
            for slot, inner in member.scalars():
                yield Slot((i, *slot.path), slot.name), offset + inner


Type: TypeAlias = Scalar | Struct

_SIZES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "tf32": 4, "f8E4M3FN": 1, "f8E5M2": 1, "f8E8M0FNU": 1, "index": 8}
_TOKEN = re.compile(r"\s*(?:(!?llvm\.)?(struct<\(|ptr(?:<\d+>)?|[A-Za-z]\w*)|(\)>|,))")


def parse_type(text: str) -> Type:
    """Parse a lowered type as printed by xDSL or MLIR.  Raises :class:`AbiError`."""
    parsed, end = _parse(text.strip(), 0)
    if text.strip()[end:].strip():
        raise AbiError(f"cannot read the type {text!r} beyond position {end}")
    return parsed


def _parse(text: str, at: int) -> tuple[Type, int]:
    found = _TOKEN.match(text, at)
    if found is None or found.group(2) is None:
        raise AbiError(f"expected an integer, float, pointer or struct type at position {at} of {text!r}")
    word, end = found.group(2), found.end()
    if word != "struct<(":
        return _scalar(word, text), end
    members: list[Type] = []
    close = re.compile(r"\s*\)>").match(text, end)
    if close:
        return _struct((), text[found.start() : close.end()]), close.end()
    while True:
        member, end = _parse(text, end)
        members.append(member)
        sep = _TOKEN.match(text, end)
        if sep is None or sep.group(3) is None:
            raise AbiError(f"expected ',' or ')>' at position {end} of {text!r}")
        end = sep.end()
        if sep.group(3) == ")>":
            return _struct(tuple(members), text[found.start() : end]), end


def _scalar(word: str, text: str) -> Scalar:
    if word.startswith("ptr"):
        if word in ("ptr<3>", "ptr<5>", "ptr<7>"):
            raise AbiError(f"a pointer of address space {word} cannot be passed to a kernel (in {text!r})")
        return Scalar("ptr", 8, 8, word)
    if word in _SIZES:
        return Scalar(word, _SIZES[word], _SIZES[word], word)
    integer = re.fullmatch(r"i(1|8|16|32|64)", word)
    if integer is None:
        raise AbiError(f"{word!r} cannot be a kernel parameter (in {text!r})")
    size = max(1, int(integer.group(1)) // 8)
    return Scalar(word, size, size, word)


def _struct(members: tuple[Type, ...], text: str) -> Struct:
    offsets: list[int] = []
    size, align = 0, 1
    for member in members:
        size = -(-size // member.align) * member.align
        offsets.append(size)
        size += member.size
        align = max(align, member.align)
    return Struct(members, tuple(offsets), -(-size // align) * align, align, text.strip())


def nested(type_: Type, scalars: dict[tuple[int, ...], Value], path: tuple[int, ...] = ()) -> Value:
    """Build the nested value of ``type_`` from its scalars, which are given by path."""
    if isinstance(type_, Struct):
        return tuple(nested(m, scalars, (*path, i)) for i, m in enumerate(type_.members))
    return scalars[path]


def zero(type_: Type) -> Value:
    """Return the zero value of ``type_``."""
    if isinstance(type_, Struct):
        return tuple(zero(m) for m in type_.members)
    return 0


def pack_scalar(name: str, value: int | float | bytes) -> bytes:
    """Return the little-endian bytes of one scalar.

    An integer may use the signed or the unsigned range of its width.

    >>> pack_scalar("i32", -2).hex(), pack_scalar("bf16", 1.5).hex(), pack_scalar("f16", 1.5).hex()
    ('feffffff', 'c03f', '003e')
    """
    import struct

    if isinstance(value, bytes):
        return value
    if name in ("f32", "f64", "f16", "tf32"):
        return struct.pack({"f64": "<d", "f16": "<e"}.get(name, "<f"), value)
    if name == "bf16":
        bits = int.from_bytes(struct.pack("<f", value), "little")
        if (bits & 0x7F800000) == 0x7F800000 and bits & 0x7FFFFF:
            return struct.pack("<H", (bits >> 16) | 0x40)
        return struct.pack("<H", ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF)
    if name.startswith("f8"):
        import ml_dtypes
        import numpy as np

        return np.asarray(value, dtype=getattr(ml_dtypes, f"float8_{name[2:].lower()}")).tobytes()
    if not isinstance(value, int):
        raise AbiError(f"expected an integer for {name}, got {value!r}")
    width = 64 if name in ("ptr", "index") else int(name[1:])
    size = max(1, width // 8)
    if not -(1 << (width - 1)) <= value < (1 << width):
        raise AbiError(f"{value} does not fit {name}")
    return (value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")
