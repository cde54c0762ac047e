"""Backends of kernels: the GPUs that run them, and no test of a GPU's generation outside of their module."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.select.backends import BACKENDS, MMA_SYNC, SIMT, SM100, WGMMA, backend_of
from cute_dialect.op.select.configurations import SgemmRung
from cute_dialect.op.select.kernel_choice import Choice

OP = Path(__file__).parents[3] / "cute_dialect" / "op"
PUBLIC = "needs_hopper"
"""An attribute of ``op.GemmOperationUniversal``."""


def generation_tests(path: Path) -> list[str]:
    """Return the comparisons with a compute capability, and the names with ``hopper``, in a module."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        name = getattr(node, "id", getattr(node, "attr", getattr(node, "name", None)))
        if isinstance(node, ast.Compare):
            values = [ast.unparse(x) for x in (node.left, *node.comparators)]
            if any(x in ("90", "(9, 0)") or (x == "9" and "major" in values) for x in values):
                found.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
        elif not isinstance(node, ast.alias) and isinstance(name, str) and "hopper" in name and name != PUBLIC:
            found.append(f"{path.name}:{getattr(node, 'lineno', 0)}: {name}")
    return found


@pytest.mark.slow
@pytest.mark.end_to_end  # The test reads every module of the package.
def test_generations_are_compared_in_one_module() -> None:
    modules = [p for p in sorted(OP.rglob("*.py")) if p.name != "backends.py"]
    found = [line for path in modules for line in generation_tests(path)]
    assert found == [], "ask a record of op/select/backends.py"


def test_a_comparison_is_found(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("if chip >= 90 or major != 9 or of_hopper(x) or capability == (9, 0) or count == 9: pass\n")
    assert len(generation_tests(path)) == 4


def test_a_gpu_of_another_generation() -> None:
    WGMMA.check_gpu((9, 0))
    MMA_SYNC.check_gpu((12, 0))
    with pytest.raises(UnsupportedError, match=r"mm: wgmma kernels need sm_90, but the GPU is sm_75; use device="):
        WGMMA.check_gpu((7, 5), "mm")
    with pytest.raises(UnsupportedError, match=r"the GPU is sm_121; use op\.Conv2dFprop with kernel_cc=80, or device"):
        WGMMA.check_gpu((12, 1), "conv2d")
    with pytest.raises(UnsupportedError, match='the GPU is sm_100; use device="cpu"'):
        WGMMA.check_gpu((10, 0), "mla_decode")
    with pytest.raises(UnsupportedError, match="the GPU is sm_90; use kernel_cc=90, or device"):
        SM100.check_gpu((9, 0), "Gemm.run")
    with pytest.raises(UnsupportedError, match=r"^mma\.sync kernels need sm_80, but the GPU is sm_75; "):
        MMA_SYNC.check_gpu((7, 5))


def test_configurations_have_a_backend() -> None:
    from cute_dialect.kernels.gemm.config import GemmConfig
    from cute_dialect.kernels.gemm.simt import ExactConfig
    from cute_dialect.kernels.gemm.sm100 import Sm100Config

    assert backend_of(Choice(GemmConfig())) is WGMMA
    assert backend_of(ExactConfig()) is SIMT
    assert backend_of(SgemmRung("tile2d")) is MMA_SYNC
    pairs = [(name, b.target) for b in BACKENDS for name in b.configs]
    assert len(set(pairs)) == len(pairs)
    for chip, target in ((100, "sm_100a"), (103, "sm_103a"), (110, "sm_110a")):
        assert backend_of(Sm100Config(chip=target)).chip == chip
