"""Hopper: ``mma.sync`` on f64 with 16 rows, and ``wgmma``.

One ``wgmma`` multiplies 64×K by K×N with the 128 threads of a warpgroup; K is 32 bytes of elements.  B is read from
shared memory through a matrix descriptor.  A is in shared memory in the SS forms and in registers in the RS forms.
16-bit elements in shared memory may have either major; all other operands are k-major.  Integer MMAs have fewer N.

Source: PTX ISA 9.0, 9.7.15.2 "Matrix Shape", 9.7.15.5.1 "Register Fragments and Shared Memory Matrix Layouts",
9.7.15.5.2 "Asynchronous Multiply-and-Accumulate Instruction: wgmma.mma_async".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from cute_dialect.arch.atom import Emit, MmaAtom, Registers
from cute_dialect.arch.elements import bits_of, element
from cute_dialect.arch.errors import AtomError
from cute_dialect.arch.fragments import (
    WARPGROUP,
    accumulator_registers,
    operand_registers,
    packed_values,
    shared_tile,
    warpgroup_fragment,
)
from cute_dialect.arch.mma_sync import Row, row
from cute_dialect.spaces import AddressSpace

FLOAT_N = tuple(range(8, 257, 8))
INTEGER_N = (8, 16, 24, *range(32, 257, 16))
"""Extents N of integer wgmma: PTX ISA 9.0, 9.7.15.2."""

_FP8 = ("f8E4M3FN", "f8E5M2")
_S8 = ("i8", "ui8")
TYPES: tuple[tuple[str, str, str], ...] = (
    ("f16", "f16", "f16"),
    ("f32", "f16", "f16"),
    ("f32", "bf16", "bf16"),
    ("f32", "tf32", "tf32"),
    *((d, a, b) for d in ("f32", "f16") for a in _FP8 for b in _FP8),
    *(("i32", a, b) for a in _S8 for b in _S8),
)
"""Element types of D, A and B that wgmma supports."""

_Types = tuple[str, str, str]
_DESCRIPTOR = Registers("b64", 1, 0, "i64")


def rows() -> Iterator[Row]:
    """Return the table rows of the f64 and wgmma atoms."""
    for k in (4, 8, 16):
        yield row(90, (16, 8, k), ("f64", "f64", "f64", "f64"), "7.8", nvvm=False)
    yield from wgmma_rows("SM90", 256, wgmma)


def wgmma_rows(prefix: str, depth: int, make: Callable[[str, int, _Types, str, str, bool], MmaAtom]) -> Iterator[Row]:
    """Return the table rows of all types, N, sources and majors.

    Args:
        prefix: prefix of the names.
        depth: extent of K of one instruction, in bits.
        make: function that builds an atom.
    """
    for types in TYPES:
        integer = types[0] == "i32"
        letters = "".join([element(t).cute for t in types])
        k = depth // bits_of(types[1])
        forms = [
            (source, majors, saturate, _form(k, letters, source, majors, saturate))
            for source in ("smem", "rmem")
            for majors in majors_of(types[1], source)
            for saturate in ((False, True) if integer else (False,))
        ]
        for n in INTEGER_N if integer else FLOAT_N:
            for source, majors, saturate, form in forms:
                name = f"{prefix}_64x{n}{form}"
                yield name, partial(make, name, n, types, source, majors, saturate)


def _form(k: int, letters: str, source: str, majors: str, saturate: bool) -> str:
    return f"x{k}_{letters}_{'SS' if source == AddressSpace.smem else 'RS'}_{majors}{'_SATURATE' if saturate else ''}"


def majors_of(a: str, source: str) -> tuple[str, ...]:
    """Return the majors (BLAS notation) that wgmma supports for element type ``a``, with A in ``source``."""
    if bits_of(a) != 16:
        return ("TN",)
    return ("TN", "TT", "NN", "NT") if source == AddressSpace.smem else ("TN", "TT")


def wgmma_name(n: int, types: tuple[str, str, str], source: str, majors: str = "TN", saturate: bool = False) -> str:
    """Return the name of a wgmma atom: CuTe's name with the majors appended.

    ``source``, the memory that holds A, is "smem" (SS) or "rmem" (RS).  ``majors`` of A and B are in BLAS notation: TN
    is k-major for both.

    >>> wgmma_name(128, ("f32", "f16", "f16"), "smem")
    'SM90_64x128x16_F32F16F16_SS_TN'
    """
    letters = "".join([element(t).cute for t in types])
    return f"SM90_64x{n}{_form(256 // bits_of(types[1]), letters, source, majors, saturate)}"


def wgmma(name: str, n: int, types: tuple[str, str, str], source: str, majors: str, saturate: bool) -> MmaAtom:
    """Build the atom of ``wgmma.mma_async`` for element types D, A, B; see :func:`wgmma_name`."""
    d, a, b = types
    if n not in (INTEGER_N if d == "i32" else FLOAT_N):
        raise AtomError(f"expected an N that wgmma supports for these types, got {n}", name)
    bits = bits_of(a)
    k = 256 // bits
    major_a = "k" if majors[0] == "T" else "mn"
    major_b = "k" if majors[1] == "N" else "mn"
    ptx_types = ".".join([element(t).ptx for t in types])
    mnemonic = (
        f"wgmma.mma_async.sync.aligned.m64n{n}k{k}{'.satfinite' if saturate else ''}.{ptx_types}"  # D, A, B: C is D
    )
    operands = ["$d", "$a", "$b", "$scale_d"]
    if d != "i32":
        operands += ["$scale_a", "$scale_b"]
    if bits == 16:
        # 1 selects a transposed (mn-major) operand.  There is no such flag for A in registers.
        operands += ([f"{major_a != 'k':d}"] if source == AddressSpace.smem else []) + [f"{major_b != 'k':d}"]
    accumulators = accumulator_registers(d, n // 2, packed="i32")
    in_registers = source == AddressSpace.rmem
    return MmaAtom(
        name=name,
        arch="sm_90a",
        family="wgmma",
        shape_mnk=(64, n, k),
        d=d,
        a=a,
        b=b,
        c=d,
        thr_id=WARPGROUP,
        layout_a=warpgroup_fragment(k, packed_values(a)) if in_registers else shared_tile(128, 64, k),
        layout_b=shared_tile(128, n, k),
        layout_c=warpgroup_fragment(n, 2),
        registers_d=accumulators,
        registers_a=_words(a, 64 * k // 128) if in_registers else _DESCRIPTOR,
        registers_b=_DESCRIPTOR,
        registers_c=accumulators,
        major_a=major_a,
        major_b=major_b,
        source_a=source,
        source_b="smem",
        emit=Emit(
            kind="wgmma",
            mnemonic=mnemonic,
            nvvm="" if in_registers else "nvvm.wgmma.mma_async",
            pieces=(
                ("layout_a", "row" if major_a == "k" else "col"),
                ("layout_b", "col" if major_b == "k" else "row"),
                ("type_a", element(a).ptx),
                ("type_b", element(b).ptx),
                ("type_d", element(d).ptx),
                ("source_a", source),
                ("saturate", saturate),
                ("negate", d != "i32"),
                ("transpose", bits == 16),
            ),
        ),
        ptx=f"{mnemonic} {', '.join(operands)};",
        isa='9.7.15.5.1 "Register Fragments and Shared Memory Matrix Layouts" for wgmma.m64nNk' + str(k),
        ptx_version="8.4" if d == "i32" and a != b else "8.0",
    )


def _words(name: str, values: int) -> Registers:
    held = operand_registers(name, values)
    return Registers(held.type, held.count, held.values, "i32")
