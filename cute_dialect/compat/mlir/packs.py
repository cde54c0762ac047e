"""Several numbers in registers as one value: LLVM vectors and structures, for programs that use them directly."""

from __future__ import annotations

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.values.dtypes import type_of_mlir

__all__ = ["Pack", "bits_as", "element", "number_type", "pack_type", "with_element"]


class Pack(tuple[Any, ...]):
    """A sequence of numbers, the first in the low bits.

    >>> Pack((cute.Int32(1), cute.Int32(2))).type
    (Int32, Int32)
    """

    __slots__ = ()

    @property
    def type(self) -> tuple[Any, ...]:
        """The types of the numbers."""
        return tuple(type(x) for x in self)


def number_type(kind: Any) -> Any:
    """Return a number type or a tuple of number types, each given as itself or as the text of its MLIR type.

    >>> number_type("f32"), number_type(cute.Uint32), number_type(("i16", cute.Float16))
    (Float32, Uint32, (Int16, Float16))
    """
    if isinstance(kind, tuple):
        return tuple(number_type(k) for k in kind)
    return type_of_mlir(kind) if isinstance(kind, str) else kind


def pack_type(count: int, kind: Any) -> tuple[Any, ...]:
    """Return the type of a pack of ``count`` numbers.

    >>> pack_type(2, cute.Float32)
    (Float32, Float32)
    """
    return (number_type(kind),) * count


def element(pack: Any, position: Any) -> Any:
    """Return one number of a pack. Raises F251 if ``position`` is not a static index, or a list of one, in range."""
    where = [int(p) for p in position] if isinstance(position, list | tuple) else [int(position)]
    if not isinstance(pack, Pack) or len(where) != 1 or not 0 <= where[0] < len(pack):
        raise KernelTypeError(
            "F251", f"index {where} is out of range for {pack!r}, which must be a vector or structure of numbers"
        )
    return pack[where[0]]


def with_element(pack: Any, position: Any, value: Any) -> Pack:
    """Return a copy of a pack with one number replaced."""
    old = element(pack, position)
    at = int(position[0]) if isinstance(position, list | tuple) else int(position)
    return Pack((*pack[:at], type(old)(value), *pack[at + 1 :]))


def bits_as(kind: Any, value: Any) -> Any:
    """Reinterpret the bits of a number or pack as a number or pack of another type. Raises F251 if the widths differ.

    >>> bits_as((cute.Int16, cute.Int16), cute.Int32(0x20001))
    (Int16(1), Int16(2))
    """
    given = value if isinstance(value, Pack) else (value,)
    kind = number_type(kind)
    wanted = kind if isinstance(kind, tuple) else (kind,)
    have, want = [type(x).width for x in given], [k.width for k in wanted]
    if sum(have) != sum(want) or len({*have}) != 1 or len({*want}) != 1:
        raise KernelTypeError(
            "F251", f"bitcast: the result type must have {sum(have)} bits, got {kind} with {sum(want)} bits"
        )
    old, new = have[0], want[0]
    words = [x.bitcast(_word(old)) for x in given]
    if new > old:
        each = new // old
        words = [_joined(words[i : i + each], old, new) for i in range(0, len(words), each)]
    elif new < old:
        words = [_word(new)(w >> (new * i)) for w in words for i in range(old // new)]
    numbers = [w.bitcast(k) for w, k in zip(words, wanted)]
    return Pack(numbers) if isinstance(kind, tuple) else numbers[0]


def _word(width: int) -> Any:
    return getattr(cute, f"Uint{width}")


def _joined(words: list[Any], old: int, new: int) -> Any:
    found = _word(new)(words[0])
    for i, word in enumerate(words[1:], 1):
        found = found | (_word(new)(word) << (old * i))
    return found
