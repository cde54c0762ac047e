"""Element types of atoms: name in MLIR, width, names in PTX and in CuTe.

>>> element("f8E4M3FN")
Element(name='f8E4M3FN', bits=8, ptx='e4m3', cute='E4M3')

``ue4m3`` is a role, not a type of memory: an f8E4M3FN with sign 0, as scale factor of a block-scaled MMA.
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.arch.errors import AtomError


class Element(NamedTuple):
    """An element type.  ``bits`` is the width of a value in registers and memory; tf32 has 32."""

    name: str
    bits: int
    ptx: str
    cute: str


_ELEMENTS = {
    e.name: e
    for e in (
        Element("f64", 64, "f64", "F64"),
        Element("f32", 32, "f32", "F32"),
        Element("tf32", 32, "tf32", "TF32"),
        Element("f16", 16, "f16", "F16"),
        Element("bf16", 16, "bf16", "BF16"),
        Element("f8E4M3FN", 8, "e4m3", "E4M3"),
        Element("f8E5M2", 8, "e5m2", "E5M2"),
        Element("f8E8M0FNU", 8, "ue8m0", "UE8M0"),
        Element("ue4m3", 8, "ue4m3", "UE4M3"),
        Element("f6E2M3FN", 6, "e2m3", "E2M3"),
        Element("f6E3M2FN", 6, "e3m2", "E3M2"),
        Element("f4E2M1FN", 4, "e2m1", "E2M1"),
        Element("i64", 64, "s64", "S64"),
        Element("i32", 32, "s32", "S32"),
        Element("ui32", 32, "u32", "U32"),
        Element("i16", 16, "s16", "S16"),
        Element("ui16", 16, "u16", "U16"),
        Element("i8", 8, "s8", "S8"),
        Element("ui8", 8, "u8", "U8"),
        Element("i4", 4, "s4", "S4"),
        Element("ui4", 4, "u4", "U4"),
        Element("b1", 1, "b1", "U1"),
    )
}


def element(name: str) -> Element:
    """Return the element type of a name.  Raises AtomError if there is none."""
    try:
        return _ELEMENTS[name]
    except KeyError:
        raise AtomError(f"expected one of {', '.join(_ELEMENTS)} as element type, got {name!r}") from None


def by_ptx(name: str) -> str:
    """Return the element type with a PTX name.  Raises AtomError if there is none.

    >>> by_ptx("e4m3"), by_ptx("u4")
    ('f8E4M3FN', 'ui4')
    """
    for e in _ELEMENTS.values():
        if e.ptx == name:
            return e.name
    raise AtomError(f"expected the PTX name of an element type, got {name!r}")


def bits_of(name: str) -> int:
    """Return the width of one value in bits.

    >>> bits_of("tf32"), bits_of("ui4"), bits_of("b1")
    (32, 4, 1)
    """
    return element(name).bits
