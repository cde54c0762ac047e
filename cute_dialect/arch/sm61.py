"""Pascal: dot products of packed integers within a thread, ``dp4a`` and ``dp2a``.

Source: PTX ISA 9.0, 9.7.1.24 "Integer Arithmetic Instructions: dp4a", 9.7.1.25 "dp2a".
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cute_dialect.algebra.values import raw_layout
from cute_dialect.arch.atom import Emit, MmaAtom, Registers
from cute_dialect.arch.elements import element
from cute_dialect.arch.fragments import ONE_THREAD
from cute_dialect.arch.mma_sync import Row

_SIGNS = (("i", "i"), ("i", "ui"), ("ui", "i"), ("ui", "ui"))


def rows() -> Iterator[Row]:
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


__all__ = ["rows"]
