"""MMA atoms of sm_61 to sm_89: ``mma.sync``, built from their shape and element types, ``dp4a`` and ``dp2a``.

>>> mma_sync("X", "sm_80", (16, 8, 8), ("f32", "bf16", "bf16", "f32"), "7.0").layout_a
Layout("((4,8),(2,2)):((32,1),(16,8))")

Source: PTX ISA 9.0, 9.7.1.24 "Integer Arithmetic Instructions: dp4a", 9.7.1.25 "dp2a".

**sm_70.** A quad-pair is eight lanes: 0-3 and 16-19, then 4-7 and 20-23, and so on, so ``ThrID = (4,2):(1,16)``.  The
fragments of A and B depend on the major.  A lane holds one row of four if k is contiguous, else four rows of one
column.

Source: PTX ISA 9.0, 9.7.14.5.1 "Matrix Fragments for mma.m8n8k4 with .f16 floating point type".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from cute_dialect.algebra.values import Layout, raw_layout
from cute_dialect.arch.atom import Atom, Emit, MmaAtom, Registers
from cute_dialect.arch.elements import bits_of, element
from cute_dialect.arch.fragments import (
    ONE_THREAD,
    WARP,
    accumulator_registers,
    fragment,
    operand_registers,
    packed_values,
)

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


# ---------------------------------------------------------------------------------------------------------------- sm_61


_SIGNS = (("i", "i"), ("i", "ui"), ("ui", "i"), ("ui", "ui"))


def rows_sm61() -> Iterator[Row]:
    """Return the table rows of all sign combinations.  The name without types denotes the signed form, as in CuTe."""
    for a, b in _SIGNS:
        signed = "i32" if "i" in (a, b) else "ui32"
        for name, k, types in (
            ("SM61_DP4A", 4, (signed, f"{a}8", f"{b}8")),
            ("SM61_DP2A", 2, (signed, f"{a}16", f"{b}8")),
        ):
            d, x, y = [element(t).cute for t in types]
            full = name if (a, b) == ("i", "i") else f"{name}_{d}{x}{y}{d}"
            yield full, partial(_dot_product, full, k, *types)


def _dot_product(name: str, k: int, d: str, a: str, b: str) -> MmaAtom:
    sign_a, sign_b = ("s32" if x.startswith("i") else "u32" for x in (a, b))
    # dp2a multiplies two 16-bit values of A with the low two of the four bytes of B.
    mnemonic = f"dp4a.{sign_a}.{sign_b}" if k == 4 else f"dp2a.lo.{sign_a}.{sign_b}"
    tile = raw_layout((1, k), (0, 1))
    accumulator = Registers("s32", 1, 1, "i32")
    return MmaAtom(
        name=name,
        arch="sm_61",
        family=mnemonic.split(".")[0],
        shape_mnk=(1, 1, k),
        d=d,
        a=a,
        b=b,
        c=d,
        thr_id=ONE_THREAD,
        layout_a=tile,
        layout_b=tile,
        layout_c=raw_layout((1, 1), (0, 0)),
        registers_d=accumulator,
        registers_a=Registers("b32", 1, k, "vector<4xi8>" if k == 4 else "vector<2xi16>"),
        registers_b=Registers("b32", 1, k, "vector<4xi8>", spare=32 - 8 * k),
        registers_c=accumulator,
        major_a="k",
        major_b="k",
        emit=Emit(
            kind=mnemonic.split(".")[0],
            mnemonic=mnemonic,
            nvvm="nvvm.dot.accumulate.4way" if k == 4 else "nvvm.dot.accumulate.2way",
            pieces=(("type_a", sign_a), ("type_b", sign_b)),
        ),
        ptx=f"{mnemonic} $d, $a, $b, $c;",
        isa='9.7.1.24 "dp4a"' if k == 4 else '9.7.1.25 "dp2a"',
        ptx_version="5.0",
    )


# ---------------------------------------------------------------------------------------------------------------- sm_70


QUAD_PAIR: Layout = raw_layout((4, 2), (1, 16))
_K_MAJOR: Layout = raw_layout((8, 4), (1, 8))
_MN_MAJOR: Layout = raw_layout(((4, 2), 4), ((8, 4), 1))
_C_F16: Layout = raw_layout((8, 8), (1, 8))
_C_F32: Layout = raw_layout(((2, 2, 2), (2, 2, 2)), ((1, 16, 4), (8, 2, 32)))


def rows_sm70() -> Iterator[Row]:
    """Return the table rows.  The last two letters are A and B in BLAS notation: TN is k-major A and k-major B."""
    for accumulator, letters in (("f16", "F16F16F16F16"), ("f32", "F32F16F16F32")):
        for majors in ("TN", "NT", "NN", "TT"):
            name = f"SM70_8x8x4_{letters}_{majors}"
            yield name, partial(_m8n8k4, name, accumulator, majors)


def _m8n8k4(name: str, accumulator: str, majors: str) -> MmaAtom:
    major_a = "k" if majors[0] == "T" else "mn"
    major_b = "k" if majors[1] == "N" else "mn"
    order_a = "row" if major_a == "k" else "col"
    order_b = "col" if major_b == "k" else "row"
    mnemonic = f"mma.sync.aligned.m8n8k4.{order_a}.{order_b}.{accumulator}.f16.f16.{accumulator}"
    operand = Registers("b32", 2, 2, "vector<2xf16>")
    accumulators = accumulator_registers(accumulator, 8)
    return MmaAtom(
        name=name,
        arch="sm_70",
        family="mma_sync",
        shape_mnk=(8, 8, 4),
        d=accumulator,
        a="f16",
        b="f16",
        c=accumulator,
        thr_id=QUAD_PAIR,
        layout_a=_K_MAJOR if major_a == "k" else _MN_MAJOR,
        layout_b=_K_MAJOR if major_b == "k" else _MN_MAJOR,
        layout_c=_C_F16 if accumulator == "f16" else _C_F32,
        registers_d=accumulators,
        registers_a=operand,
        registers_b=operand,
        registers_c=accumulators,
        major_a=major_a,
        major_b=major_b,
        emit=Emit(
            kind="mma_sync",
            mnemonic=mnemonic,
            nvvm="nvvm.mma.sync",
            intrinsic=f"llvm.nvvm.mma.m8n8k4.{order_a}.{order_b}.{accumulator}.{accumulator}",
            pieces=(
                ("layout_a", order_a),
                ("layout_b", order_b),
                ("type_a", "f16"),
                ("type_b", "f16"),
                ("saturate", False),
                ("bit_op", ""),
            ),
        ),
        ptx=f"{mnemonic} $d, $a, $b, $c;",
        isa='9.7.14.5.1 "Matrix Fragments for mma.m8n8k4 with .f16 floating point type"',
        ptx_version="6.4",
    )


# ---------------------------------------------------------------------------------------------------------------- sm_75


def rows_sm75() -> Iterator[Row]:
    """Return the table rows of f16 m16n8k8, 8-bit m8n8k16, 4-bit m8n8k32 and b1 m8n8k128 (xor)."""
    for acc in ("f16", "f32"):
        yield row(75, (16, 8, 8), (acc, "f16", "f16", acc), "6.5")
    yield from integer_rows(75, 8, ((8, 16),), "6.5")
    yield from integer_rows(75, 4, ((8, 32),), "6.5")
    yield from binary_rows(75, "xor", "7.0", ((8, 128),))


# ---------------------------------------------------------------------------------------------------------------- sm_80


def rows_sm80() -> Iterator[Row]:
    """Return the table rows of f16, bf16, tf32, f64, 8-bit and 4-bit integers, and b1."""
    for k in (8, 16):
        for acc in ("f16", "f32"):
            yield row(80, (16, 8, k), (acc, "f16", "f16", acc), "7.0")
        yield row(80, (16, 8, k), ("f32", "bf16", "bf16", "f32"), "7.0")
    for k in (4, 8):
        yield row(80, (16, 8, k), ("f32", "tf32", "tf32", "f32"), "7.0")
    yield row(80, (8, 8, 4), ("f64", "f64", "f64", "f64"), "7.0")
    yield from integer_rows(80, 8, ((8, 16), (16, 16), (16, 32)), "7.0")
    yield from integer_rows(80, 4, ((8, 32), (16, 32), (16, 64)), "7.0")
    yield from binary_rows(80, "xor", "7.0", ((8, 128), (16, 128), (16, 256)))
    yield from binary_rows(80, "and", "7.1", ((8, 128), (16, 128), (16, 256)))


# ---------------------------------------------------------------------------------------------------------------- sm_89


_FP8 = ("f8E4M3FN", "f8E5M2")


def rows_sm89() -> Iterator[Row]:
    """Return the table rows of e4m3 and e5m2, including mixed types.

    m16n8k32 with f32 accumulators needs PTX 8.4.  f16 accumulators and m16n8k16 need PTX 8.7.
    """
    for k in (32, 16):
        for acc in ("f32", "f16"):
            version = "8.4" if (k, acc) == (32, "f32") else "8.7"
            for a in _FP8:
                for b in _FP8:
                    yield row(89, (16, 8, k), (acc, a, b, acc), version, nvvm=False)
