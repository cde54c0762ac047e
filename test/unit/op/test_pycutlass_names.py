"""The table of PyCUTLASS names in docs/operations.md: the PyCUTLASS spelling of each row runs."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.op.execute.kernels import compiled
from cute_dialect.runtime.arrays import numpy_dtype

PAGE = (Path(__file__).parents[3] / "docs" / "plans.md").read_text()
GENERATOR = np.random.default_rng(15)
M, N, K = 40, 24, 48


def flat(element: str, count: int) -> np.ndarray:
    return GENERATOR.integers(-2, 3, count).astype(numpy_dtype(element))


def sync_tile(element: str = op.float16, accumulator: str = op.float32) -> op.TileDescription:
    instruction = op.MathInstruction(
        [16, 8, 16], element, element, accumulator, op.OpClass.TensorOp, op.MathOperation.multiply_add
    )
    return op.TileDescription([32, 32, 32], 2, [1, 1, 1], instruction)


def universal(functor: Any = None, swizzle: Any = op.IdentitySwizzle1, **more: Any) -> op.GemmOperationUniversal:
    a, b = op.TensorDescription(op.float16, op.RowMajor, 8), op.TensorDescription(op.float16, op.ColumnMajor, 8)
    c = op.TensorDescription(op.float16, op.RowMajor, 8)
    functor = functor or op.LinearCombination(c.element, c.alignment, op.float32, op.float32)
    return op.GemmOperationUniversal(80, sync_tile(), a, b, c, functor, swizzle, **more)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.reshape(M, K).astype(float) @ b.reshape(N, K).astype(float).T


def test_names_of_the_table() -> None:
    """Every name in the right column exists."""
    table = PAGE.partition("### From PyCUTLASS")[2].partition("\n\n")[2].partition("\n\n")[0]
    rows = [row.split(" | ") for row in table.splitlines()[2:]]
    assert len(rows) > 12
    for _, here in rows:
        for path in re.findall(r"`op\.([\w.]+)", here):
            found: Any = op
            for name in path.split("."):
                found = getattr(found, name)


ACTIVATIONS = [
    (op.relu, (), lambda x: np.maximum(x, 0)),
    (op.leaky_relu, (), lambda x: np.where(x > 0, x, 0.2 * x)),
    (op.leaky_relu, (0.5,), lambda x: np.where(x > 0, x, 0.5 * x)),
    (op.tanh, (), np.tanh),
    (op.sigmoid, (), lambda x: 1 / (1 + np.exp(-x))),
    (op.silu, (), lambda x: x / (1 + np.exp(-x))),
    (op.hardswish, (), lambda x: x * np.clip(x + 3, 0, 6) / 6),
    (op.gelu, (), lambda x: 0.5 * x * (1 + np.vectorize(math.erf)(x / 2**0.5))),
]  # fmt: skip


@pytest.mark.sample(every=5)
@pytest.mark.parametrize(("activation", "numbers", "exact"), ACTIVATIONS, ids=lambda x: getattr(x, "__name__", str(x)))
def test_activations_by_element(activation: Any, numbers: tuple[float, ...], exact: Any) -> None:
    functor = op.LinearCombinationGeneric(activation(op.float32), op.float16, 8, op.float32, op.float32)
    found = universal(functor)
    a, b = flat("f16", M * K), flat("f16", N * K)
    output_op = found.epilogue_type(*[0.25, 0.0, *numbers])
    arguments = op.GemmArguments(
        operation=found, problem_size=op.GemmCoord(M, N, K), A=a, B=b, C=None, D=None, output_op=output_op,
        gemm_mode=op.Mode.Gemm, split_k_slices=1, device="cpu",
    )  # fmt: skip
    found.run(arguments)
    arguments.sync()
    np.testing.assert_allclose(arguments.D.astype(float), exact(0.25 * product(a, b)), rtol=2e-3, atol=1e-4)


@pytest.mark.slow
def test_activations_with_numbers() -> None:
    """Activations with parameters have one canonical name, and unknown parameters raise an error."""
    a, b = flat("f16", M * K).reshape(M, K), flat("f16", K * N).reshape(K, N)
    sums = a.astype(float) @ b
    for text in (("leaky_relu", 0.5), "leaky_relu(0.5)", op.leaky_relu("f32")._replace(numbers=(0.5,))):
        found = op.mm(a, b, activation=text, device="cpu")
        np.testing.assert_array_equal(found, np.where(sums > 0, sums, 0.5 * sums))
    plan = op.Gemm(element="f16", layout="row")
    for value, text in ((op.epilogue.relu, "relu"), (("leaky_relu", 0.01), "leaky_relu"), (("elu", 2), "elu(2.0)")):
        plan.activation = value
        assert plan.activation == text
    np.testing.assert_allclose(plan.reference(a, b), np.where(sums > 0, sums, 2 * np.expm1(sums)))
    with pytest.raises(op.EpilogueError, match=r'"relu\(0.5\)" is not supported; relu takes no parameters'):
        op.mm(a, b, activation=("relu", 0.5), device="cpu")
    with pytest.raises(op.EpilogueError, match="leaky_relu takes one parameter, slope"):
        universal(op.LinearCombinationGeneric("leaky_relu", "f16", 8)).epilogue_type(1.0, 0.0, 0.5, 0.5)


@pytest.mark.slow
def test_gradients_of_activations_with_numbers() -> None:
    torch = pytest.importorskip("torch")
    a = torch.from_numpy(flat("f16", 16 * 32).reshape(16, 32)).requires_grad_()
    b = torch.from_numpy(flat("f16", 32 * 24).reshape(32, 24))
    op.mm(a, b, activation=("leaky_relu", 0.5), device="cpu").sum().backward()
    x = a.detach().double().requires_grad_()
    torch.nn.functional.leaky_relu(x @ b.double(), 0.5).sum().backward()
    assert torch.equal(a.grad.double(), x.grad)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "stages", "warps", "layouts"),
    [
        ([128, 128, 8], 2, [2, 4, 1], "rcr"), ([32, 64, 32], 2, [1, 2, 1], "ccc"), ([64, 64, 8], 2, [2, 1, 2], "crr"),
    ],
)  # fmt: skip
def test_f32_without_tensor_cores(shape: list[int], stages: int, warps: list[int], layouts: str) -> None:
    """The SIMT tiles of the PyCUTLASS examples work on any GPU."""
    f32 = op.float32
    instruction = op.MathInstruction([1, 1, 1], f32, f32, f32, op.OpClass.Simt, op.MathOperation.multiply_add)
    order = {"r": op.RowMajor, "c": op.ColumnMajor}
    operands = [op.TensorDescription(f32, order[x], 1) for x in layouts]
    functor = op.LinearCombination(f32, 1, f32, f32)
    tile = op.TileDescription(shape, stages, warps, instruction)
    found = op.GemmOperationUniversal(80, tile, *operands, functor, op.IdentitySwizzle1)
    assert not found.needs_hopper
    arrays = [GENERATOR.integers(-3, 4, extents).astype(np.float32) for extents in ((33, 37), (37, 30), (33, 30))]
    a, b, c = (x.reshape(-1) if order == "r" else x.T.reshape(-1) for x, order in zip(arrays, layouts))
    d = np.full(33 * 30, np.nan, np.float32)
    arguments = op.GemmArguments(
        found, op.GemmCoord(33, 30, 37), a, b, c, d, found.epilogue_type(2.0, 0.5), device="cpu",
        checks=["race", "uninit", "oob"],
    )  # fmt: skip
    found.run(arguments)
    arguments.sync()
    exact = 2 * arrays[0] @ arrays[1] + 0.5 * arrays[2]
    np.testing.assert_array_equal(d, (exact if layouts[2] == "r" else exact.T).reshape(-1))


@pytest.mark.slow
def test_assembler_backends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``nvcc`` and ``nvrtc`` select ptxas and the driver. The interpreter needs no assembler."""
    monkeypatch.setenv("CUTE_CACHE_DIR", str(tmp_path))
    assert op.compiler.backend() == "ptxas"
    instruction = op.MathInstruction([1, 1, 1], "f32", "f32", "f32", "simt")
    matrix, tiles = op.TensorDescription("f32", "row"), ([128, 128, 8], [64, 64, 8], [32, 32, 32])
    named = [
        op.GemmOperationUniversal(90, op.TileDescription(x, 1, None, instruction), matrix, matrix, matrix)
        for x in tiles
    ]  # fmt: skip
    of = [x.variants()[0] for x in named]  # Each operation has one kernel.
    try:
        op.compiler.nvrtc()
        assert op.compiler.backend() == "driver"
        op.compiler.add_module([named[0]])
        code = compiled(of[0]).artifact.code[0]
        assert code.cubin is None and ".entry" in code.ptx
        op.compiler.backend("interpreter")
        op.compiler.add_module([named[1]])
        assert compiled(of[1], cpu=True).kernel("launch") and not list(tmp_path.rglob("*.cubin"))
        op.compiler.nvcc()
        assert op.compiler.backend() == "ptxas"
        assert compiled(of[2]).artifact.code[0].cubin
        with pytest.raises(
            op.UnsupportedError, match="backend: 'nvvm' is not supported; use one of ptxas, driver, interpreter"
        ):
            op.compiler.backend("nvvm")
    finally:
        op.compiler.backend("ptxas")


@pytest.mark.slow
def test_arguments_and_modes() -> None:
    """Batches and pointer arrays with their swizzle, and serial and parallel split-K with its reduction kernel."""
    found = universal(swizzle=op.BatchedIdentitySwizzle)
    a, b, c = flat("f16", 2 * M * K), flat("f16", 2 * N * K), flat("f16", 2 * M * N)
    halves = [x.reshape(2, -1) for x in (a, b, c)]
    exact = [2.0 * product(x, y) - z.reshape(M, N) for x, y, z in zip(*halves)]
    output_op, size = found.epilogue_type(*([2.0, -1.0] + [])), op.GemmCoord(M, N, K)
    d = np.zeros_like(c)
    batched = op.GemmArguments(
        operation=found, problem_size=size, A=a, B=b, C=c, D=d, output_op=output_op, gemm_mode=op.Mode.Batched, batch=2,
        device="cpu",
    )  # fmt: skip
    found.run(batched)
    batched.sync()
    np.testing.assert_array_equal(d.reshape(2, M, N), exact)
    outs = [np.zeros(M * N, np.float16) for _ in range(2)]
    several = op.GemmArguments(
        operation=found, problem_size=size, A=list(halves[0]), B=list(halves[1]), C=list(halves[2]), D=outs,
        output_op=output_op, gemm_mode=op.Mode.Array, batch=2, device="cpu",
    )  # fmt: skip
    found.run(several)
    several.sync()
    np.testing.assert_array_equal(np.stack(outs).reshape(2, M, N), exact)
    first = {"A": halves[0][0], "B": halves[1][0], "C": halves[2][0]}
    parallel = op.GemmArguments(
        operation=found, problem_size=size, **first, D=None, output_op=output_op, gemm_mode=op.Mode.GemmSplitKParallel,
        split_k_slices=2, device="cpu",
    )  # fmt: skip
    found.run(parallel)
    c_of = found.C
    reduction = op.ReductionOperation(
        shape=op.MatrixCoord(4, 32 * c_of.alignment), C=c_of, element_accumulator=op.float32,
        element_workspace=op.float32, element_compute=op.float32, epilogue_functor=found.epilogue_functor,
        count=c_of.alignment,
    )  # fmt: skip
    out = np.zeros(M * N, np.float16)
    more = op.ReductionArguments(
        operation=reduction, problem_size=[M, N], partitions=2, workspace=parallel.ptr_D, destination=out,
        source=first["C"], output_op=reduction.epilogue_type(2.0, -1.0), device="cpu",
    )  # fmt: skip
    reduction.run(more)
    more.sync()
    np.testing.assert_array_equal(out.reshape(M, N), exact[0])


def test_lists_of_problems_with_an_activation() -> None:
    functor = op.LinearCombinationGeneric(op.leaky_relu(op.float32), op.float16, 8, op.float32, op.float32)
    of = [op.TensorDescription(op.float16, layout, 8) for layout in (op.RowMajor, op.ColumnMajor, op.RowMajor)]
    found = op.GemmOperationGrouped(
        80, sync_tile(), *of, functor, op.BatchedIdentitySwizzle, precompute_mode=op.SchedulerMode.Device
    )
    sizes = [op.GemmCoord(M, N, K), op.GemmCoord(8, 16, 24)]
    a, b = ([flat("f16", rows * s.k) for s, rows in zip(sizes, x)] for x in ((M, 8), (N, 16)))
    arguments = op.GemmGroupedArguments(
        found, sizes, a, b, None, None, output_op=found.epilogue_type(*([1.0, 0.0] + [0.25])), device="cpu"
    )
    found.run(arguments)
    arguments.sync()
    for s, x, y, d in zip(sizes, a, b, arguments.D):
        sums = x.reshape(s.m, s.k).astype(float) @ y.reshape(s.n, s.k).T
        np.testing.assert_array_equal(d, np.where(sums > 0, sums, 0.25 * sums).astype(np.float16))
