"""Descriptors of tcgen05: the 32-bit instruction descriptor, and 64-bit matrix descriptors of version 1.

The *instruction descriptor* is a register operand of ``tcgen05.mma``.  It holds the shape and the element types, which
are therefore data that the assembler does not check.

>>> idesc = InstructionDescriptor("f16", "f32", "bf16", "bf16", 128, 256)
>>> hex(idesc.bits), InstructionDescriptor.of_bits(0x08400490, "f16") == idesc
('0x8400490', True)

A *matrix descriptor* has the fields of those of ``wgmma`` (:mod:`.descriptors`), a version of 1 in bits 46 to 48, and
three bits of swizzle.

>>> from cute_dialect.arch.descriptors import derive, smem_tile
>>> hex(matrix_bits(derive(smem_tile("k", 128, "bf16", (128, 64)), "bf16").descriptor.at(0x2400)))
'0x4000404000010240'

Source: PTX ISA 9.1, "Instruction descriptor" and "Shared memory descriptor" of tcgen05.mma; CUTLASS
``include/cute/arch/mma_sm100_desc.hpp`` (BSD-3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cute_dialect.arch.descriptors import MatrixDescriptor
from cute_dialect.arch.errors import DescriptorError

_NARROW = {"f8E4M3FN": 0, "f8E5M2": 1, "f6E2M3FN": 3, "f6E3M2FN": 4, "f4E2M1FN": 5}

FORMATS: Mapping[str, Mapping[str, int]] = {
    "f16": {"f16": 0, "bf16": 1},
    "tf32": {"tf32": 2},
    "f8f6f4": _NARROW,
    "i8": {"ui8": 0, "i8": 1},
    "mxf8f6f4": _NARROW,
    "mxf4": {"f4E2M1FN": 1},
    "mxf4nvf4": {"f4E2M1FN": 1},
}
"""Kind of an MMA -> element type of A or B -> its code."""

RESULTS: Mapping[str, int] = {"f16": 0, "f32": 1, "i32": 2}
"""Element type of D -> its code, for the kinds without block scales."""

SCALES: Mapping[str, int] = {"ue4m3": 0, "f8E8M0FNU": 1}
"""Element type of the scale factors -> its code.  ``ue4m3`` is an f8E4M3FN without a sign."""


@dataclass(frozen=True, slots=True)
class InstructionDescriptor:
    """The fields of an instruction descriptor.

    Raises:
        DescriptorError: a value does not fit its field, or the kind does not have it.
    """

    kind: str
    """Kind of the MMA: f16, tf32, f8f6f4, i8, mxf8f6f4, mxf4 or mxf4nvf4.  The instruction, not the descriptor, names
    it."""

    d: str
    """Element type of D; likewise ``a`` and ``b``."""

    a: str
    b: str
    m: int
    """Rows of D, of both blocks if a pair computes it; ``n`` are its columns."""

    n: int
    major_a: str = "k"
    """Contiguous index of A: "k" or "mn"; likewise ``major_b``."""

    major_b: str = "k"
    negate_a: bool = False
    """True if A is negated; likewise ``negate_b``."""

    negate_b: bool = False
    saturate: bool = False
    """Clamp integer results."""

    sparse: bool = False
    """True if A is sparse."""

    selector: int = 0
    """Sparsity selector, 0 to 3."""

    max_shift: int = 0
    """Code of the maximum shift of ``.ws``: 0, 1, 2, 3 for 0, 8, 16, 32."""

    scale: str = ""
    """Element type of the scale factors: ue4m3 or f8E8M0FNU, or "" without block scales."""

    sf_a: int = 0
    """Byte of a tensor-memory word that holds the scale factors of A, 0 to 3; likewise ``sf_b``."""

    sf_b: int = 0
    k96: bool = False
    """K is 96 instead of 64."""

    def __post_init__(self) -> None:
        if self.kind not in FORMATS:
            raise DescriptorError(f"expected one of {', '.join(FORMATS)}, got {self.kind!r}", "kind")
        formats = FORMATS[self.kind]
        for name, t in (("A", self.a), ("B", self.b)):
            if t not in formats:
                raise DescriptorError(f"expected one of {', '.join(formats)} for kind {self.kind}, got {t}", name)
        if self.is_block_scaled != bool(self.scale):
            raise DescriptorError(f"expected {_scales(self.kind)}, got {self.scale or 'none'}", "scale factors")
        if self.scale and self.scale not in SCALES:
            raise DescriptorError(f"expected one of {', '.join(SCALES)}, got {self.scale}", "scale factors")
        if self.d not in (("f32",) if self.scale else RESULTS):
            raise DescriptorError(f"expected {'f32' if self.scale else ', '.join(RESULTS)}, got {self.d}", "D")
        for name, value, step, most in (("M", self.m, 16, 31), ("N", self.n, 8, 63)):
            if value <= 0 or value % step or value // step > most:
                raise DescriptorError(f"expected a multiple of {step} up to {step * most}, got {value}", name)
        for name, major in (("A", self.major_a), ("B", self.major_b)):
            if major not in ("k", "mn"):
                raise DescriptorError(f"expected 'k' or 'mn', got {major!r}", f"major of {name}")
        for name, value in (
            ("sparsity selector", self.selector),
            ("maximum shift", self.max_shift),
            ("scale factor id of A", self.sf_a),
            ("scale factor id of B", self.sf_b),
        ):
            if not 0 <= value < 4:
                raise DescriptorError(f"expected 0 to 3, got {value}", name)

    @property
    def is_block_scaled(self) -> bool:
        """True for the kinds with block scales."""
        return self.kind.startswith("mx")

    @property
    def bits(self) -> int:
        """The 32-bit descriptor."""
        formats = FORMATS[self.kind]
        word = (
            self.sparse << 2
            | formats[self.a] << 7
            | formats[self.b] << 10
            | self.negate_a << 13
            | self.negate_b << 14
            | (self.major_a == "mn") << 15
            | (self.major_b == "mn") << 16
            | self.n // 8 << 17
            | self.m // 16 << 24
        )
        if self.is_block_scaled:
            return word | self.sf_b << 4 | SCALES[self.scale] << 23 | self.sf_a << 29 | self.k96 << 31
        return word | self.selector | self.saturate << 3 | RESULTS[self.d] << 4 | self.max_shift << 30

    @classmethod
    def of_bits(cls, bits: int, kind: str) -> InstructionDescriptor:
        """Decode a descriptor for a kind of MMA.  Raises DescriptorError for reserved bits and unknown codes.

        >>> InstructionDescriptor.of_bits(0x08400480, "mxf4nvf4").scale
        'ue4m3'
        >>> InstructionDescriptor.of_bits(0x08400490 | 1 << 6, "f16")
        Traceback (most recent call last):
        cute_dialect.arch.errors.DescriptorError: instruction descriptor: reserved bit 6 is set in 0x084004d0
        """
        if kind not in FORMATS:
            raise DescriptorError(f"expected one of {', '.join(FORMATS)}, got {kind!r}", "kind")
        scaled = kind.startswith("mx")
        for bit in (0, 1, 3, 6) if scaled else (6, 23, 29):
            if bits >> bit & 1:
                raise DescriptorError(f"reserved bit {bit} is set in 0x{bits:08x}", "instruction descriptor")
        a, b = (_named(FORMATS[kind], bits >> at & 7, f"type of {name}") for name, at in (("A", 7), ("B", 10)))
        whole = cls(
            kind,
            "f32" if scaled else _named(RESULTS, bits >> 4 & 3, "type of D"),
            a,
            b,
            m=(bits >> 24 & 31) * 16,
            n=(bits >> 17 & 63) * 8,
            major_a="mn" if bits >> 15 & 1 else "k",
            major_b="mn" if bits >> 16 & 1 else "k",
            negate_a=bool(bits >> 13 & 1),
            negate_b=bool(bits >> 14 & 1),
            sparse=bool(bits >> 2 & 1),
            saturate=not scaled and bool(bits >> 3 & 1),
            selector=0 if scaled else bits & 3,
            max_shift=0 if scaled else bits >> 30 & 3,
            scale=_named(SCALES, bits >> 23 & 1, "type of the scale factors") if scaled else "",
            sf_a=bits >> 29 & 3 if scaled else 0,
            sf_b=bits >> 4 & 3 if scaled else 0,
            k96=scaled and bool(bits >> 31 & 1),
        )
        assert whole.bits == bits & 0xFFFFFFFF
        return whole


def _scales(kind: str) -> str:
    return f"one of {', '.join(SCALES)} for kind {kind}" if kind.startswith("mx") else f"none for kind {kind}"


def _named(codes: Mapping[str, int], code: int, what: str) -> str:
    for name, known in codes.items():
        if known == code:
            return name
    raise DescriptorError(f"expected one of the codes {', '.join(map(str, codes.values()))}, got {code}", what)


# ------------------------------------------------------------------------------------------------- matrix descriptors

_VERSION = 1 << 46
_LAYOUTS: Mapping[tuple[int, int], int] = {(0, 16): 0, (128, 32): 1, (128, 16): 2, (64, 16): 4, (32, 16): 6}
"""Width of the swizzle and bytes that it keeps together -> code in bits 61 to 63."""


def matrix_bits(descriptor: MatrixDescriptor) -> int:
    """Return the 64-bit matrix descriptor of tcgen05."""
    return (
        descriptor.start >> 4
        | descriptor.lbo >> 4 << 16
        | descriptor.sbo >> 4 << 32
        | _VERSION
        | descriptor.base_offset << 49
        | _LAYOUTS[descriptor.width, descriptor.atom] << 61
    )


def matrix_of_bits(bits: int, major: str = "k") -> MatrixDescriptor:
    """Decode a matrix descriptor of tcgen05.  The instruction descriptor, not this one, encodes the major.

    Raises DescriptorError for another version, an absolute leading offset (bit 52), reserved bits or an unknown
    swizzle.

    >>> matrix_of_bits(0x4000404000010240).sbo
    1024
    >>> matrix_of_bits(0x4000004000010240)
    Traceback (most recent call last):
    cute_dialect.arch.errors.DescriptorError: version: expected 1, got 0, which wgmma uses
    """
    version = bits >> 46 & 7
    if version != 1:
        raise DescriptorError(f"expected 1, got {version}{', which wgmma uses' if version == 0 else ''}", "version")
    if bits >> 52 & 1:
        raise DescriptorError("expected 0, got 1: an absolute leading-dimension address is not supported", "bit 52")
    for bit in (14, 15, 30, 31, *range(53, 61)):
        if bits >> bit & 1:
            raise DescriptorError(f"reserved bit {bit} is set in 0x{bits:016x}", "matrix descriptor")
    code = bits >> 61 & 7
    found = [key for key, known in _LAYOUTS.items() if known == code]
    if not found:
        raise DescriptorError(f"expected one of {', '.join(map(str, _LAYOUTS.values()))}, got {code}", "swizzle")
    (width, atom), field = found[0], (1 << 14) - 1
    return MatrixDescriptor(
        major,
        width,
        lbo=(bits >> 16 & field) << 4,
        sbo=(bits >> 32 & field) << 4,
        start=(bits & field) << 4,
        base_offset=bits >> 49 & 7,
        atom=atom,
    )
