"""MMAs of sm_120 on elements of 8, 6 and 4 bits: layouts, values of every row, scale factors, and errors."""

from __future__ import annotations

import numpy as np
import pytest
from arch_support import assemble, header, mma_kernel

from cute_dialect.arch import ATOMS, mma_atom
from cute_dialect.arch.errors import AtomError
from cute_dialect.arch.table import find_narrow_mma

ROWS = [name for name in ATOMS if name.startswith("SM120_")]
SAMPLE = (
    "SM120_16x8x32_F32E4M3E2M1F32_TN", "SM120_16x8x32_F16E3M2E2M3F16_TN", "SM120_16x8x64_F32E2M1E2M1F32_TN_VS16_UE4M3",
    "SM120_SPARSE_16x8x64_F32E2M3E5M2F32_TN_VS64_UE8M0",
)  # fmt: skip
LAYOUTS = {
    "SM120_16x8x32_F32E4M3E2M1F32_TN_VS32_UE8M0": {
        "A": "((4,8),(4,2,2)):((64,1),(16,8,256))", "B": "((4,8),(4,2)):((32,1),(8,128))",
        "C": "((4,8),(2,2)):((32,1),(16,8))", "SFA": "((2,2,8),1):((8,0,1),0)", "SFB": "((4,8),1):((0,1),0)",
    },
    "SM120_16x8x64_F32E2M1E2M1F32_TN_VS16_UE4M3": {
        "A": "((4,8),(8,2,2)):((128,1),(16,8,512))", "B": "((4,8),(8,2)):((64,1),(8,256))",
        "C": "((4,8),(2,2)):((32,1),(16,8))", "SFA": "((2,2,8),4):((8,0,1),16)", "SFB": "((4,8),4):((0,1),8)",
    },
    "SM120_SPARSE_16x8x128_F32E2M1E2M1F32_TN_VS64_UE8M0": {
        "A": "((4,8),(8,2,2)):((128,1),(16,8,512))", "B": "((4,8),(8,4)):((64,1),(8,256))",
        "E": "((2,2,8),1):((8,16,1),0)", "SFA": "((2,2,8),2):((8,0,1),16)", "SFB": "((4,8),2):((0,1),8)",
    },
}  # fmt: skip


def test_there_are_77_dense_and_77_sparse_rows() -> None:
    sparse = [name for name in ROWS if "_SPARSE_" in name]
    assert (len(ROWS), len(sparse)) == (154, 77)
    kinds = [str(mma_atom(name).emit["kind"]) for name in ROWS if name not in sparse]
    assert {kind: kinds.count(kind) for kind in kinds} == {"f8f6f4": 50, "mxf8f6f4": 25, "mxf4": 1, "mxf4nvf4": 1}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name: str) -> None:
    atom = mma_atom(name)
    assert {x: str(atom.layout(x)) for x in LAYOUTS[name]} == LAYOUTS[name]


@pytest.mark.slow
def test_all_rows_assemble() -> None:
    for chip in ("sm_120a", "sm_121a"):
        text = header("8.8", chip) + "".join(mma_kernel(mma_atom(name), name) for name in ROWS)
        assert assemble(text, chip) == ""


@pytest.mark.sample(*SAMPLE)
@pytest.mark.parametrize("name", ROWS)
def test_values(name: str) -> None:
    """Each row on the interpreter is equal to the product in f64, rounded once."""
    from narrow_mma_kernels import arrays, kernel

    import cute_dialect.lang as cute

    atom = mma_atom(name)
    run = kernel(atom)
    for seed in (1, 2):
        arguments, wanted = arrays(atom, seed, wide=seed == 2)
        tensors = [cute.from_dlpack(x) for x in arguments]
        run(*tensors, device="cpu", checks="all")
        assert np.array_equal(arguments[-1].view(np.uint8), wanted.view(np.uint8))


@pytest.mark.parametrize("name", [SAMPLE[2], "SM120_16x8x32_F32E4M3E4M3F32_TN_VS32_UE8M0"])
def test_factors_that_repeat_along_k(name: str) -> None:
    from narrow_mma_kernels import arrays, kernel

    import cute_dialect.lang as cute

    atom = mma_atom(name)
    arguments, wanted = arrays(atom, 4)
    kernel(atom, repeated=True)(*[cute.from_dlpack(x) for x in arguments], device="cpu")
    assert np.array_equal(arguments[-1], wanted)


@pytest.mark.slow
@pytest.mark.parametrize("selector", [0, 1])
def test_selectors_of_sparse_rows(selector: int) -> None:
    from narrow_mma_kernels import arrays, kernel

    import cute_dialect.lang as cute

    for name in ("SM120_SPARSE_16x8x64_F32E4M3E2M1F32_TN", "SM120_SPARSE_16x8x128_F32E2M1E2M1F32_TN_VS32_UE4M3"):
        atom = mma_atom(name)
        assert atom.metadata is not None
        if selector < atom.metadata.selectors:
            arguments, wanted = arrays(atom, 3)
            kernel(atom, selector)(*[cute.from_dlpack(x) for x in arguments], device="cpu")
            assert np.array_equal(arguments[-1], wanted)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mxf8",), "kind: mxf8 is not supported; use one of f8f6f4, mxf8f6f4, mxf4, mxf4nvf4"),
        (("f8f6f4", "f8E8M0FNU"), "kind: f8f6f4 has no scale factors; got sf = f8E8M0FNU, vec = none"),
        (("mxf8f6f4", "ue4m3"), "kind: mxf8f6f4 has sf = f8E8M0FNU, vec = 32; got sf = ue4m3, vec = none"),
        (("mxf8f6f4", "", 16), "kind: mxf8f6f4 has sf = f8E8M0FNU, vec = 32; got sf = none, vec = 16"),
        (
            ("mxf4",),
            "kind mxf4 has no 16x8x32 (f32, f8E4M3FN, f4E2M1FN, f32); use 16x8x64, f32 for D and C, and elements "
            "f4E2M1FN for A and B",
        ),
    ],
)
def test_errors_of_the_look_up(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(AtomError) as error:
        find_narrow_mma((16, 8, 32), ("f32", "f8E4M3FN", "f4E2M1FN", "f32"), *arguments)  # type: ignore[arg-type]
    assert str(error.value) == message
