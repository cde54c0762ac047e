"""Epilogues of the Hopper GEMM on the CPU interpreter, compared with float64."""

from __future__ import annotations

import re
import runpy
from math import erf
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig, SkinnyConfig, SplitConfig
from cute_dialect.kernels.gemm.few_rows import few_rows_text
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.pipelines import compile
from cute_dialect.runtime.launch_plan import LaunchError

DOCS = Path(__file__).parents[3] / "docs" / "kernels.md"
BASE = GemmConfig()
SINGLE = GemmConfig(cluster_m=1, deferred=False, tile=(128, 128, 64))
DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}
FUNCTIONS = {
    "": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2))),
    "gelu_tanh": lambda x: x * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
}


def diagonal(x: Any, row: Any, column: Any) -> Any:
    """Hook that uses the coordinates: the diagonal becomes 7."""
    return cute.Float32(7.0) if row == column else x


CASES = {
    "alpha": (BASE, Epilogue(alpha=-0.5)),
    "alpha and beta at run time": (BASE, Epilogue(alpha="arg", beta="arg")),
    "S added": (SINGLE, Epilogue(beta=1.0)),
    "bias a column, relu": (BASE, Epilogue(bias="n", activation="relu")),
    "bias a row, silu": (SINGLE, Epilogue(bias="m", bias_type="f16", activation="silu")),
    "gelu": (SINGLE, Epilogue(activation="gelu")),
    "gelu_tanh, bf16": (SINGLE._replace(output="bf16"), Epilogue(activation="gelu_tanh", bias="n", bias_type="bf16")),
    "hook": (SINGLE, Epilogue(activation="relu", hook=diagonal)),
    "all, f32": (
        SINGLE._replace(output="f32"),
        Epilogue(alpha="arg", beta=2.0, bias="n", activation="gelu", hook=diagonal),
    ),
    "batch": (SINGLE._replace(batch=True), Epilogue(beta="arg", bias="m")),
}


def expected(e: Epilogue, product: np.ndarray, more: dict[str, object]) -> np.ndarray:
    """Return the result in float64. Matrices have shape (L, M, N)."""
    alpha = more["alpha"] if e.alpha == "arg" else e.alpha
    beta = more["beta"] if e.beta == "arg" else e.beta
    x = float(str(alpha)) * product
    if "source" in more:
        x = x + float(str(beta)) * np.asarray(more["source"]).astype(np.float64)
    if e.bias:
        bias = np.asarray(more["bias"]).astype(np.float64)
        x = x + (bias[:, None] if e.bias == "m" else bias)
    x = FUNCTIONS[e.activation](x)
    if e.hook is diagonal:
        i = np.arange(min(x.shape[-2:]))
        x[..., i, i] = 7.0
    return x


def run(c: GemmConfig, shape: tuple[int, int, int], text: str, workspace: tuple[object, ...] = ()) -> None:
    """Run a kernel on random data and compare."""
    m, n, k = shape
    e, matrices = c.epilogue, 2 if c.batch else 1
    rng = np.random.default_rng(m + n + k)
    a, b = (rng.standard_normal((matrices, x, k)).astype(np.float16) for x in (m, n))
    out = np.full((matrices, m, n), np.nan, DTYPES[c.output])
    more: dict[str, object] = {}
    for name in e.arguments(c.output):
        if name == "source":
            more[name] = rng.standard_normal(out.shape).astype(out.dtype)
        elif name == "bias":
            more[name] = rng.standard_normal(n if e.bias == "n" else m).astype(DTYPES[e.bias_type])
        else:
            more[name] = {"alpha": 0.75, "beta": -1.5}[name]
    exact = expected(e, a.astype(np.float64) @ b.astype(np.float64).transpose(0, 2, 1), more)

    def given(x: object) -> object:
        if not isinstance(x, np.ndarray) or x.ndim < 3:
            return x
        return x.transpose(1, 2, 0) if c.batch else x[0]

    module = compile(text, emit="base")
    module.kernel("launch")(*map(given, (a, b, out)), *workspace, *map(given, more.values()), device="cpu")
    got = out.astype(np.float64)
    limit = 4 * float(ml_dtypes.finfo(out.dtype).eps) * np.maximum(np.abs(exact), 1) + 1e-5 * k**0.5
    assert (np.abs(got - exact) <= limit).all()


@pytest.mark.end_to_end
@pytest.mark.sample("alpha")
@pytest.mark.parametrize("name", CASES)
def test_epilogue(name: str) -> None:
    base, epilogue = CASES[name]
    c = base._replace(epilogue=epilogue)
    run(c, (136, 264, 72), gemm_text(c))


@pytest.mark.slow
def test_split_k_applies_the_epilogue_once() -> None:
    """The split-K slices are added before the epilogue runs."""
    e = Epilogue(alpha="arg", beta=1.0, bias="n", activation="silu")
    config = SplitConfig(SplitConfig().base._replace(tile=(128, 128, 64), stages=6, cluster_n=1, epilogue=e), 2)
    floats, counters = Choice(config.base, config.parts).workspace(136, 136)
    run(
        config.base,
        (136, 136, 200),
        gemm_text(config),
        (np.full(floats, np.nan, np.float32), np.zeros(counters, np.int32)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("parts", [1, 2])
def test_few_rows(parts: int) -> None:
    e = Epilogue(alpha="arg", beta=1.0, bias="n", activation="silu", hook=diagonal)
    c = SkinnyConfig(columns=64 * parts, stages_a=2, stages=4, parts=parts, epilogue=e)
    run(c.base._replace(epilogue=e), (100, 136, 200), few_rows_text(c))


@pytest.mark.slow
def test_empty_epilogue_does_not_change_the_kernel() -> None:
    assert gemm_text(BASE._replace(epilogue=Epilogue())) == gemm_text(BASE)
    assert gemm_text(BASE._replace(epilogue=Epilogue(activation="relu"))) != gemm_text(BASE)


@pytest.mark.slow
def test_the_example_of_the_documentation(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert len(blocks) == 2
    for i, block in enumerate(blocks):
        program = tmp_path / f"kernels_example_{i}.py"  # The frontend reads a kernel's source from its file.
        program.write_text(block)
        runpy.run_path(str(program))


@pytest.mark.parametrize(
    ("epilogue", "says"),
    [
        (Epilogue(activation="selu"), 'activation "selu" is not supported.*use one of elu, gelu, gelu_tanh'),
        (Epilogue(bias="k"), "bias 'k' of type 'f32' is not supported"),
        (Epilogue(alpha="beta"), "alpha is 'beta'; use a number"),
    ],
)
def test_invalid_epilogues_are_rejected(epilogue: Epilogue, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        gemm_text(BASE._replace(epilogue=epilogue))


@pytest.mark.slow
def test_mismatched_arguments_are_rejected() -> None:
    c = SINGLE._replace(epilogue=Epilogue(beta=1.0, bias="n"))
    kernel = compile(gemm_text(c), emit="base").kernel("launch")
    a, b, d, s = (np.zeros(x, np.float16) for x in ((64, 64), (128, 64), (64, 128), (64, 120)))
    with pytest.raises(LaunchError, match="source and C must have the same N"):
        kernel(a, b, d, s, np.zeros(128, np.float32), device="cpu")
    with pytest.raises(LaunchError, match="bias must have a value for each column of C"):
        kernel(a, b, d, d, np.zeros(120, np.float32), device="cpu")
