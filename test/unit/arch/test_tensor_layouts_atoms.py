"""The atom table compared, as functions, with the atoms of the independent package tensor-layouts."""

from __future__ import annotations

import pytest
import tensor_layouts.atoms_nv as theirs
from tensor_layouts import mode
from tensor_layouts import size as their_size
from tensor_layouts.atoms import CopyAtom as TheirCopy
from tensor_layouts.atoms import MMAAtom as TheirMma

from cute_dialect.algebra.evaluation import evaluate, size
from cute_dialect.algebra.values import Layout
from cute_dialect.arch import ATOMS, CopyAtom, MmaAtom

THEIRS = {n: a for n, a in vars(theirs).items() if isinstance(a, TheirMma | TheirCopy)}

OTHER_NAMES = {
    "SM61_1x1x2_S32S16S16S32": "SM61_DP2A",
    "SM100_64x64x8_F32TF32TF32F32_SS": "SM100_64x64x8_F32TF32TF32_SS",
    "SM100_128x128x8_F32TF32TF32F32_SS": "SM100_128x128x8_F32TF32TF32_SS",
}
"""Name in tensor-layouts -> our name.

dp2a multiplies 16-bit by 8-bit values, but the name in tensor-layouts has 16 bits for both operands. Only its names of
tcgen05 with tf32 name the type of C.
"""

NOT_OURS = {
    "_C64C64C64C64_": "complex f64 is four real instructions, not one",
    "_SPARSE": "theirs give A as if it were dense; B and C are compared in test_sparse_atoms",
    "x16_F16BF16BF16_SS": "tcgen05.mma of bf16 has D of f32 only",
    "SM120_16x8x64_": "mma.sync of 8-bit floats has K of 32",
}
"""Part of a name -> reason why the table has no such atom."""

OUR_PTX = {
    "SM61_1x1x2_S32S16S16S32": "dp2a.lo.s32.s32",  # tensor-layouts does not state which half of B is used.
    # Both forms exist for two 8-bit types; only that with a kind takes the other types of these atoms.
    "SM120_16x8x32_F16E4M3E4M3F16_TN": "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f16.e4m3.e4m3.f16",
    "SM120_16x8x32_F32E4M3E4M3F32_TN": "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32",
}


THEIR_ERRORS = {"SM80_16x8x32_S32S4S4S32_TN"}
"""Atoms with a wrong layout in tensor-layouts.

B is ((4,8),8):((32,1),8) there, which holds some elements of (8,32) twice and others never. The PTX ISA has column
index 8*(lane % 4) + i, stride 64.
"""


def reason(name: str) -> str | None:
    return next((why for part, why in NOT_OURS.items() if part in name), None)


SHARED = sorted(n for n in THEIRS if reason(n) is None)


def same_function(ours: Layout, other: object) -> None:
    """Assert that both layouts agree for all threads and values.

    A thread-value layout is the sum of a function of the thread and a function of the value, so each is compared alone.
    """
    threads, values = ours
    assert (size(threads), size(values)) == (their_size(mode(other, 0)), their_size(mode(other, 1)))  # type: ignore
    for t in range(size(threads)):  # type: ignore[arg-type]
        assert evaluate(t, threads) == other(t, 0)  # type: ignore[operator]
    for v in range(size(values)):  # type: ignore[arg-type]
        assert evaluate(v, values) == other(0, v)  # type: ignore[operator]


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("name", SHARED)
def test_shared_atoms(name: str) -> None:
    other = THEIRS[name]
    ours = ATOMS[OTHER_NAMES.get(name, name)]
    if isinstance(other, TheirMma):
        assert isinstance(ours, MmaAtom)
        assert ours.shape_mnk == other.shape_mnk
        if other.thr_id is not None:
            n = size(ours.thr_id)
            assert [evaluate(i, ours.thr_id) for i in range(n)] == [other.thr_id(i) for i in range(n)]  # type: ignore
        else:
            # tensor-layouts omits an identity thread layout.
            assert str(ours.thr_id) == ("128:1" if name.startswith("SM90_64x") else "32:1")
        same_function(ours.layout_a, other.a_layout)
        if name in THEIR_ERRORS:
            with pytest.raises(AssertionError):
                same_function(ours.layout_b, other.b_layout)
        else:
            same_function(ours.layout_b, other.b_layout)
        same_function(ours.layout_c, other.c_layout)
        known = OUR_PTX.get(name, other.ptx)
        if "tcgen05" in known:  # The shape is in the instruction descriptor, not in the text.
            assert ours.emit.mnemonic.startswith("tcgen05.mma.")
        else:
            assert ours.emit.mnemonic.startswith(known) if "wgmma" in known else ours.emit.mnemonic == known
    else:
        assert isinstance(ours, CopyAtom)
        threads = size(ours.thr_id)
        assert [evaluate(i, ours.thr_id) for i in range(threads)] == [other.thr_id(i) for i in range(threads)]  # type: ignore
        same_function(ours.src, other.src_layout_bits)
        same_function(ours.dst, other.dst_layout_bits)


def test_atoms_missing_here_have_a_reason() -> None:
    for name in THEIRS:
        if reason(name) is not None:
            assert name not in ATOMS
        else:
            assert OTHER_NAMES.get(name, name) in ATOMS
    assert len(SHARED) > 100
    for part in NOT_OURS:
        assert any(part in n for n in THEIRS), part


def test_their_errors_are_errors() -> None:
    for name in THEIR_ERRORS:
        layout = THEIRS[name].b_layout  # type: ignore[union-attr]
        held = [layout(t, v) for t in range(32) for v in range(8)]
        assert len(set(held)) < len(held) == 8 * 32
