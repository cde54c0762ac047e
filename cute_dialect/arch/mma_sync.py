"""``mma.sync`` atoms, built from their shape and element types.

>>> mma_sync("X", "sm_80", (16, 8, 8), ("f32", "bf16", "bf16", "f32"), "7.0").layout_a
Layout("((4,8),(2,2)):((32,1),(16,8))")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from cute_dialect.arch.atom import Atom, Emit, MmaAtom, Registers
from cute_dialect.arch.elements import bits_of, element
from cute_dialect.arch.fragments import WARP, accumulator_registers, fragment, operand_registers, packed_values

Types = tuple[str, str, str, str]
"""Element types of D, A, B, C."""

Row = tuple[str, Callable[[], Atom]]
"""Name of an atom and the function that builds it, which is called on first use."""

_SECTIONS = {
    (8, 4): '9.7.14.5.2 "Matrix Fragments for mma.m8n8k4 with .f64 floating point type"',
    (8, 16): '9.7.14.5.3 "Matrix Fragments for mma.m8n8k16"',
    (8, 32): '9.7.14.5.4 "Matrix Fragments for mma.m8n8k32"',
    (8, 128): '9.7.14.5.5 "Matrix Fragments for mma.m8n8k128"',
    (16, 4): '9.7.14.5.6 "Matrix Fragments for mma.m16n8k4"',
    (16, 8): '9.7.14.5.7 "Matrix Fragments for mma.m16n8k8"',
    (16, 16): '9.7.14.5.8 "Matrix Fragments for mma.m16n8k16 with floating point type"',
    (16, 32): '9.7.14.5.10 "Matrix Fragments for mma.m16n8k32"',
    (16, 64): '9.7.14.5.11 "Matrix Fragments for mma.m16n8k64"',
    (16, 128): '9.7.14.5.12 "Matrix Fragments for mma.m16n8k128"',
    (16, 256): '9.7.14.5.13 "Matrix Fragments for mma.m16n8k256"',
}
_SECTION_K16_INTEGER = '9.7.14.5.9 "Matrix Fragments for mma.m16n8k16 with integer type"'


def section(m: int, k: int, bits: int) -> str:
    """Return the section of the PTX ISA 9.0 that defines the fragments of an ``m``x8x``k`` MMA."""
    if (m, k, bits) == (16, 16, 8):
        return _SECTION_K16_INTEGER
    return _SECTIONS[m, k]


def type_letters(types: Types) -> str:
    """Return the element types as they appear in CuTe's atom names.

    >>> type_letters(("i32", "ui8", "i8", "i32"))
    'S32U8S8S32'
    """
    return "".join([element(t).cute for t in types])


def intrinsic_name(shape: tuple[int, int, int], types: Types, saturate: bool, bit_op: str) -> str:
    """Return the name of the LLVM intrinsic of an ``mma.sync`` with row-major A and column-major B.

    The suffix has the types of D and C for f16, and of all four operands for fp8.  For other types it has the type of
    A, and of B if it differs.

    >>> intrinsic_name((16, 8, 16), ("f32", "f16", "f16", "f32"), False, "")
    'llvm.nvvm.mma.m16n8k16.row.col.f32.f32'
    """
    d, a, b, c = [element(t).ptx for t in types]
    m, n, k = shape
    if types[1] == "f16":
        suffix = [d, c]
    elif bits_of(types[1]) == 8 and types[1].startswith("f8"):
        suffix = [d, a, b, c]
    else:
        suffix = [a] if a == b else [a, b]
    parts = ["llvm.nvvm.mma", *([bit_op, "popc"] if bit_op else []), f"m{m}n{n}k{k}", "row.col"]
    return ".".join([*parts, *(["satfinite"] if saturate else []), *suffix])


def mma_sync(
    name: str,
    arch: str,
    shape: tuple[int, int, int],
    types: Types,
    ptx_version: str,
    *,
    saturate: bool = False,
    bit_op: str = "",
    nvvm: bool = True,
    intrinsic: bool = True,
) -> MmaAtom:
    """Build the atom of ``mma.sync.aligned.mMn8kK.row.col`` for element types D, A, B, C.

    Args:
        name: name of the atom.
        arch: the first GPU with the instruction.
        shape: ``(M, N, K)``.
        types: element types of D, A, B, C.
        ptx_version: the first PTX version with the instruction.
        saturate: clamp integer results to their range (``.satfinite``).
        bit_op: "xor" or "and" for b1.
        nvvm: True if upstream MLIR 22 supports it in ``nvvm.mma.sync``.
        intrinsic: True if LLVM 22 has an intrinsic for it.
    """
    m, n, k = shape
    d, a, b, c = types
    packed = packed_values(a)
    ptx_types = ".".join([element(t).ptx for t in types])
    suffix = f".{bit_op}.popc" if bit_op else ""
    mnemonic = f"mma.sync.aligned.m{m}n{n}k{k}.row.col{'.satfinite' if saturate else ''}.{ptx_types}{suffix}"
    accumulators: Registers = accumulator_registers(d, m * n // 32)
    return MmaAtom(
        name=name,
        arch=arch,
        family="mma_sync",
        shape_mnk=shape,
        d=d,
        a=a,
        b=b,
        c=c,
        thr_id=WARP,
        layout_a=fragment(m, k, packed),
        layout_b=fragment(n, k, packed),
        layout_c=fragment(m, n, 2),
        registers_d=accumulators,
        registers_a=operand_registers(a, m * k // 32),
        registers_b=operand_registers(b, n * k // 32),
        registers_c=accumulators,
        major_a="k",
        major_b="k",
        emit=Emit(
            kind="mma_sync",
            mnemonic=mnemonic,
            nvvm="nvvm.mma.sync" if nvvm else "",
            intrinsic=intrinsic_name(shape, types, saturate, bit_op) if intrinsic else "",
            pieces=(
                ("layout_a", "row"),
                ("layout_b", "col"),
                ("type_a", element(a).ptx),
                ("type_b", element(b).ptx),
                ("saturate", saturate),
                ("bit_op", bit_op),
            ),
        ),
        ptx=f"{mnemonic} $d, $a, $b, $c;",
        isa=section(m, k, bits_of(a)),
        ptx_version=ptx_version,
    )


def row(
    sm: int,
    shape: tuple[int, int, int],
    types: Types,
    version: str,
    suffix: str = "",
    *,
    saturate: bool = False,
    bit_op: str = "",
    nvvm: bool = True,
) -> Row:
    """Return the table row of an ``mma.sync`` atom of generation ``sm``, under its CuTe name.

    >>> row(80, (16, 8, 8), ("f32", "bf16", "bf16", "f32"), "7.0")[0]
    'SM80_16x8x8_F32BF16BF16F32_TN'
    """
    name = f"SM{sm}_{'x'.join(map(str, shape))}_{type_letters(types)}_TN{suffix}"
    make = partial(mma_sync, saturate=saturate, bit_op=bit_op, nvvm=nvvm)
    return name, partial(make, name, f"sm_{sm}", shape, types, version)


def integer_rows(sm: int, bits: int, shapes: tuple[tuple[int, int], ...], version: str) -> Iterator[Row]:
    """Return table rows of signed, unsigned and mixed integers, wrapping and saturating; ``shapes`` are (M, K)."""
    for m, k in shapes:
        for a in ("i", "ui"):
            for b in ("i", "ui"):
                types = ("i32", f"{a}{bits}", f"{b}{bits}", "i32")
                yield row(sm, (m, 8, k), types, version)
                yield row(sm, (m, 8, k), types, version, "_SATURATE", saturate=True)


def binary_rows(sm: int, op: str, version: str, shapes: tuple[tuple[int, int], ...]) -> Iterator[Row]:
    """Return table rows of b1 atoms with ``op`` ("xor" or "and") and a population count; ``shapes`` are (M, K)."""
    for m, k in shapes:
        yield row(sm, (m, 8, k), ("i32", "b1", "b1", "i32"), version, f"_{op.upper()}POPC", bit_op=op)
