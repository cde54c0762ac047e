"""``arch-dialect=nvgpu``: lowering through upstream's nvgpu gives the same results as lowering directly to nvvm.

For the interpreter, upstream's ``convert-nvgpu-to-nvvm`` lowers the nvgpu ops.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from copy_atom_kernels import CopyCase, copy_atom_kernels
from copy_atom_kernels import cases as copy_cases
from copy_atoms_support import run_case
from mma_atom_kernels import MmaCase, kernels, register_cases
from mma_atoms_support import register_arrays
from tma_support import CASES, arrays, kernel_text, multicast_arrays, multicast_text

from cute_dialect.cute_nvgpu.to_nvgpu import NOT_CARRIED, mma_obstacle
from cute_dialect.kernels.gemm.ampere import AmpereConfig, ampere_gemm_text
from cute_dialect.passes.base import PassOptionError
from cute_dialect.passes.to_base import ToBasePass
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines.compiler import lower_to_base
from cute_dialect.pipelines.cpu import without_nvgpu
from cute_dialect.pipelines.registry import PipelineError, named_pipeline
from cute_dialect.pipelines.upstream import UpstreamModule
from cute_dialect.runtime.launch import CompiledModule

EXAMPLES = Path(__file__).parents[2] / "examples"
MMA = [c for c in register_cases() if c.atom.emit.kind == "mma_sync"]
CARRIED = [c for c in MMA if not mma_obstacle(c.atom)]


def nvgpu(text: str) -> str:
    """Return the base IR with nvgpu ops."""
    return lower_to_base(text, pipeline="base=arch-dialect=nvgpu")


def by_way_of_nvgpu(text: str) -> CompiledModule:
    """Lower the instructions to nvgpu, then let upstream MLIR convert nvgpu to nvvm for the interpreter."""
    module = compile_cute(text, pipeline="base=arch-dialect=nvgpu", emit="base")
    assert any(op.name.startswith("nvgpu.") for op in module.lowered().walk())
    read = list(without_nvgpu(module.lowered()).walk())
    assert not any(op.name.startswith(("nvgpu.", "builtin.unrealized")) for op in read)
    return module


def instructions(ptx: str) -> Counter[str]:
    """Count each PTX instruction except register moves."""
    found = re.findall(r"^\s+(?:@!?%p\d+ )?([a-z][\w.:]+)[\s;]", ptx, re.MULTILINE)
    return Counter(x for x in found if not x.startswith(("mov.", "cvta")))


def both_ptx(text: str, chip: str = "sm_90a") -> tuple[Counter[str], Counter[str]]:
    """Return the instruction counts of both lowerings."""
    ways = (f"nvptx=arch-dialect=nvgpu,chip={chip}", f"nvptx=chip={chip}")
    made = [compile_cute(text, pipeline=p, emit="ptx").artifact.code[0].ptx for p in ways]
    return instructions(made[0]), instructions(made[1])


# -------------------------------------------------------------------------------------------------------- on the CPU


@cache
def mma_module() -> CompiledModule:
    return by_way_of_nvgpu(kernels(CARRIED))


@pytest.mark.sample(
    "SM75_16x8x8_F32F16F16F32_TN",
    "SM80_16x8x16_F16F16F16F16_TN",
    "SM80_16x8x4_F32TF32TF32F32_TN",
    "SM80_8x8x4_F64F64F64F64_TN",
)
@pytest.mark.parametrize("case", CARRIED, ids=lambda c: c.name)
def test_mma_sync(case: MmaCase) -> None:
    given, wanted = register_arrays(case)
    mma_module().kernel(case.name)(*given, grid=(1, 1, 1), device="cpu")
    assert np.array_equal(given[-1].astype(np.float64), wanted)


@pytest.mark.slow
def test_atoms_are_lowered_to_nvgpu_or_reported() -> None:
    assert len(CARRIED) == 10
    one_each = {mma_obstacle(c.atom): c for c in MMA}
    text = nvgpu(kernels(one_each.values()))
    assert text.count('"nvgpu.mma.sync"') == 1
    words = ("bf16", "i4", "wraps", "f8E4M3FN and f8E5M2", "ui8", "8x8x4")
    assert all(any(word in reason for reason in one_each) for word in words)


@cache
def copy_module() -> CompiledModule:
    return by_way_of_nvgpu(copy_atom_kernels())


@pytest.mark.end_to_end  # The first case compiles the kernels of all cases.
@pytest.mark.sample("stsm_x1_n", "cp_async_always_8", "bulk_reduce_add_f32", "bulk_reduce_max_f16")
@pytest.mark.parametrize("case", list(copy_cases()), ids=lambda c: c.name)
def test_copies(case: CopyCase) -> None:
    source, out, expected = run_case(case)
    copy_module().kernel(case.name)(source, out, device="cpu", grid=(1, 1, 1))
    assert np.array_equal(out.view(f"u{out.itemsize}"), expected.view(f"u{out.itemsize}"))


@pytest.mark.slow
def test_gemm_gives_the_same_bits() -> None:
    text = ampere_gemm_text(AmpereConfig(tile=(32, 32, 32)))
    rng = np.random.default_rng(1)
    m, n, k = 40, 48, 104
    a, b = (rng.standard_normal((rows, k)).astype(np.float16) for rows in (m, n))
    results: list[np.ndarray] = []
    for module in (compile_cute(text, emit="base"), by_way_of_nvgpu(text)):
        c = np.full((m, n), np.nan, np.float16)
        module.kernel("gemm")(a, b, c, device="cpu")
        results.append(c)
    assert np.array_equal(results[0], results[1])
    assert np.abs(results[0] - a.astype(np.float64) @ b.astype(np.float64).T).max() < 0.05


@pytest.mark.sample("f16_k")
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_tma(case: object) -> None:
    a, b, want = arrays(case, 1)  # type: ignore[arg-type]
    by_way_of_nvgpu(kernel_text(case)).kernel("launch")(a, b, device="cpu")  # type: ignore[arg-type]
    assert np.array_equal(b, want)  # type: ignore[arg-type]


def test_tma_multicast() -> None:
    a, b, want = multicast_arrays(3)
    by_way_of_nvgpu(multicast_text()).kernel("launch")(a, b, device="cpu")
    assert np.array_equal(b, want)  # type: ignore[arg-type]
    assert "multicast_mask" in UpstreamModule.from_text(nvgpu(multicast_text())).text()


# -------------------------------------------------------------------------------------------------------------- as PTX


@pytest.mark.sample("tma_copy")
@pytest.mark.parametrize("name", ["gemm_sm80", "tma_copy"])
def test_kernels_have_the_same_instructions(name: str) -> None:
    small = ampere_gemm_text(AmpereConfig(tile=(32, 32, 32), stages=2))
    one, other = both_ptx(small if name == "gemm_sm80" else (EXAMPLES / f"{name}.mlir").read_text())
    assert one == other and sum(one.values()) > 50


@pytest.mark.slow
def test_mma_atoms_have_the_same_instructions() -> None:
    one, other = both_ptx(kernels(CARRIED))
    of_mma = {k: n for k, n in one.items() if k.startswith("mma.")}
    assert of_mma == {k: n for k, n in other.items() if k.startswith("mma.")}
    assert sum(of_mma.values()) == len(CARRIED)


# ------------------------------------------------------------------------------------------------------------- options


def test_unknown_options_are_rejected() -> None:
    with pytest.raises(PassOptionError, match="expected nvvm or nvgpu, got 'nvpgu'"):
        ToBasePass.from_text({"arch-dialect": "nvpgu"})
    row, options = named_pipeline("nvptx=arch-dialect=llvm")
    with pytest.raises(PipelineError, match="expected nvvm or nvgpu, got 'llvm'"):
        row.text(options)


def test_the_pipelines_text() -> None:
    row, options = named_pipeline("base=arch-dialect=nvgpu")
    assert row.text(options).endswith("cute-to-base{arch-dialect=nvgpu})")
    row, options = named_pipeline("nvptx=arch-dialect=nvgpu")
    passes = (
        "cute-to-base{chip=sm_90a arch-dialect=nvgpu},cute-strong-atomics,cute-wgmma-registers,convert-nvgpu-to-nvvm,"
        "base-prepare,"
    )
    assert passes in row.text(options)
    assert "nvgpu" not in row.text()


def test_ops_without_lowering_to_nvgpu_exist() -> None:
    from cute_dialect.passes.to_base import handler_of

    listed = (EXAMPLES.parents[1] / "docs" / "nvgpu.md").read_text()
    for name, why in NOT_CARRIED.items():
        assert handler_of(f"cute_nvgpu.arch.{name}") is not None
        assert f"| `{name}` | {why} |" in listed
