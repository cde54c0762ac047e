"""Volta: ``mma.sync.m8n8k4`` on f16, in which each of the four quad-pairs of a warp computes its own MMA.

A quad-pair is eight lanes: 0-3 and 16-19, then 4-7 and 20-23, and so on, so ``ThrID = (4,2):(1,16)``.  The fragments of
A and B depend on the major.  A lane holds one row of four if k is contiguous, else four rows of one column.

Source: PTX ISA 9.0, 9.7.14.5.1 "Matrix Fragments for mma.m8n8k4 with .f16 floating point type".
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cute_dialect.algebra.values import Layout, raw_layout
from cute_dialect.arch.atom import Emit, MmaAtom, Registers
from cute_dialect.arch.fragments import accumulator_registers
from cute_dialect.arch.mma_sync import Row

QUAD_PAIR: Layout = raw_layout((4, 2), (1, 16))
_K_MAJOR: Layout = raw_layout((8, 4), (1, 8))
_MN_MAJOR: Layout = raw_layout(((4, 2), 4), ((8, 4), 1))
_C_F16: Layout = raw_layout((8, 8), (1, 8))
_C_F32: Layout = raw_layout(((2, 2, 2), (2, 2, 2)), ((1, 16, 4), (8, 2, 32)))


def rows() -> Iterator[Row]:
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


__all__ = ["QUAD_PAIR", "rows"]
