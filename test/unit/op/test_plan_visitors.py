"""Plans and descriptions with traced epilogues on the interpreter, compared with the same function in float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.op import epilogue
from cute_dialect.op.epilogue import FakeTensor, pairs, relu, trace

GENERATOR = np.random.default_rng(11)
F16: dict[str, Any] = {"element": "f16", "layout": "row"}


def integers(*shape: int, element: Any = np.float16) -> np.ndarray:
    return GENERATOR.integers(-2, 3, shape).astype(element)


def example(accum: Any, alpha: Any, C: Any, beta: Any, bias: Any) -> Any:
    F = alpha * accum + beta * C
    D = relu(F + 1) + bias
    return D, F


def reduced(accum: Any, bias: Any) -> Any:
    x = accum + bias
    return {"D": x, "rows": epilogue.sum(x, -1), "columns": epilogue.max(accum, -2), "all": epilogue.sum(x)}


def gated(accum: Any, skip: Any) -> Any:
    gate, up = pairs(accum)
    return relu(gate) * up + skip


def arguments(m: int, n: int, *batch: int) -> dict[str, Any]:
    bias = integers(n, element=np.float32)
    return {"alpha": 0.5, "C": integers(*batch, m, n), "beta": 2.0, "bias": bias}


def equal(done: Any, want: Any) -> None:
    """Assert that the results are bitwise equal to those of the function."""
    wanted = want if isinstance(want, dict) else dict(zip("DF", want)) if isinstance(want, tuple) else {"D": want}
    assert set(done.results) == set(wanted)
    for name, x in wanted.items():
        assert done.results[name].shape == x.shape and np.array_equal(done.results[name], x), name


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["row"])
def test_results_of_a_visitor(layout: str) -> None:
    m, n, k = 40, 88, 72
    a, b, args = integers(m, k), integers(k, n), arguments(m, n)
    plan = op.Gemm(**F16, layout_C=layout)
    plan.epilogue_visitor = example
    f = np.full((n, m), np.nan, np.float32).T
    done = plan.run(a, b, visitor_args={**args, "F": f}, device="cpu", checks=("race", "uninit", "oob", "sync"))
    assert done.results["F"] is f and done.D.flags.f_contiguous == (layout == "column")
    equal(done, plan.reference(a, b))
    # C, alpha, beta and bias of the call become the epilogue arguments of these names. With beta = 0, C is not read.
    args["C"], bias = np.full((m, n), np.nan, np.float16), args["bias"]
    done = plan.run(a, b, args["C"], alpha=2.0, beta=0.0, bias=bias, device="cpu")
    product = 2.0 * (a.astype(float) @ b)
    equal(done, (np.maximum(product + 1, 0) + bias, product))
    assert plan.traced is not None and plan.traced.name == "example" and "g-" in done.operation.name


@pytest.mark.slow
def test_batches_and_numbers_of_the_trace() -> None:
    m, n, k = 24, 40, 64
    a, b, args = integers(3, m, k), integers(3, k, n), arguments(m, n, 3)
    plan = op.Gemm(**F16)
    plan.epilogue_visitor = trace(example, {**args, "accum": FakeTensor("f32", (3, m, n))})
    equal(plan.run(a, b, visitor_args={**args, "alpha": -1.0}, device="cpu"), plan.reference(a, b))
    one = {**args, "C": args["C"][:1]}
    equal(plan.run(a[:1], b[:1], visitor_args=one, device="cpu"), plan.reference(a[:1], b[:1], visitor_args=one))


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["column"])
def test_rows_and_columns(layout: str) -> None:
    m, n, k = 40, 72, 40
    a, b, bias = integers(m, k), integers(k, n), integers(n, element=np.float32)
    plan = op.Gemm(**F16, layout_C=layout)
    plan.epilogue_visitor = reduced
    rows = np.full((m, 1), np.nan, np.float32)
    equal(plan.run(a, b, visitor_args={"bias": bias, "rows": rows}, device="cpu"), plan.reference(a, b))
    assert rows.any()
    equal(
        plan.run(a[:, :0], b[:0], bias=bias, device="cpu"), plan.reference(a[:, :0], b[:0], visitor_args={"bias": bias})
    )
    nothing = plan.run(a, b[:, :0], bias=bias[:0], device="cpu").results
    assert nothing["rows"].shape == (m, 1) and not nothing["rows"].any() and not nothing["all"].any()


@pytest.mark.slow
def test_two_columns_become_one() -> None:
    m, n, k = 40, 192, 64
    a, b, skip = integers(m, k), integers(k, n), integers(m, n // 2)
    plan = op.Gemm(**F16)
    plan.epilogue_visitor = gated
    done = plan.run(a, b, visitor_args={"skip": skip}, device="cpu")
    assert done.D.shape == (m, n // 2)
    equal(done, plan.reference(a, b))
    assert plan.explain(a, b).problem.n == n
    zeros = plan.run(a[:, :0], b[:0], visitor_args={"skip": skip}, device="cpu")
    assert np.array_equal(zeros.D, skip)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kinds", "shape"),
    [({"element": "f32", "layout": "row"}, (33, 35, 7)),
     ({"element": "tf32", "layout_A": "row", "layout_B": "column", "layout_C": "row", "kernel_cc": 80}, (24, 40, 32))],
)  # fmt: skip
def test_kernels_without_tma(kinds: dict[str, Any], shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    element = np.float32 if kinds["element"].endswith("32") else np.float16
    a, b, args = integers(2, m, k, element=element), integers(2, k, n, element=element), arguments(m, n, 2)
    b = b.swapaxes(1, 2).copy().swapaxes(1, 2) if "layout_B" in kinds else b
    plan = op.Gemm(**kinds)
    plan.epilogue_visitor = example
    equal(plan.run(a, b, visitor_args=args, device="cpu"), plan.reference(a, b))


@pytest.mark.slow
def test_split_k() -> None:
    m, n, k = 24, 32, 192
    a, b, args = integers(m, k), integers(k, n), arguments(m, n)
    plan = op.Gemm(**F16, element_C="f32")
    plan.epilogue_visitor = example
    for split in (("serial", 2), ("parallel", 3)):
        equal(plan.run(a, b, visitor_args=args, split_k=split, device="cpu"), plan.reference(a, b))
    plan.epilogue_visitor = gated
    with pytest.raises(
        op.EpilogueError, match=r"mode 'parallel' does not support an epilogue with pairs\(\) or reductions"
    ):
        plan.run(a, b, visitor_args={"skip": integers(m, n // 2)}, split_k=("parallel", 3), device="cpu")
    nothing = plan.run(a[:, :0], b[:0], visitor_args={"skip": integers(m, n // 2)}, device="cpu")
    assert nothing.D.shape == (m, n // 2)


@pytest.mark.slow
def test_a_described_operation() -> None:
    m, n, k = 64, 96, 72
    a, b, c, bias = integers(m, k), integers(k, n), integers(m, n), integers(n, element=np.float32)
    examples = {"accum": FakeTensor("f32", (m, n)), "alpha": 1.0, "C": c, "beta": 0.0, "bias": bias}
    traced = trace(example, examples, runtime=("alpha", "beta"))
    math = op.MathInstruction([64, 64, 16], "f16", "f16", "f32", op.OpClass.TensorOp)
    tile = op.TileDescription([64, 64, 64], 4, [4, 1, 1], math)
    A = B = C = op.TensorDescription("f16", op.RowMajor, 8)
    operation = op.GemmOperationUniversal(90, tile, A, B, C, traced, op.IdentitySwizzle8, visitor=True)
    op.compiler.add_module([operation])
    assert "-g-" in operation.procedural_name() and operation.procedural_name() in op.emit.mlir(operation)
    d, f = np.zeros(m * n, np.float16), np.zeros((m, n), np.float16)
    out = operation.epilogue_type(D=d, F=f, alpha=2.0, C=c.ravel(), beta=0.5, bias=bias, problem_size=[m, n])
    done = op.GemmArguments(operation, op.GemmCoord(m, n, k), a.ravel(), b.ravel(), None, None, out, device="cpu")
    operation.run(done)
    out.sync()
    want = example(a.astype(float) @ b, 2.0, c.astype(float), 0.5, bias.astype(float))
    assert np.array_equal(d.reshape(m, n), want[0]) and np.array_equal(f, want[1])
    with pytest.raises(op.EpilogueError, match="output_op does not match the epilogue"):
        op.GemmArguments(operation, None, a, b, c, None, op.LinearCombination("f16", 8).epilogue_type(2.0, 0.0))
    with pytest.raises(op.EpilogueError, match="visitor=True needs a traced epilogue_functor"):
        op.GemmOperationUniversal(90, tile, A, B, C, None, visitor=True)


def test_mismatched_arguments_are_rejected() -> None:
    m, n, k = 40, 88, 72
    a, b, args = integers(m, k), integers(k, n), arguments(m, n)
    plan = op.Gemm(**F16)
    plan.epilogue_visitor = example
    with pytest.raises(op.EpilogueError, match="the epilogue_visitor is not traced yet"):
        plan.compile()
    plan.epilogue_visitor = trace(example, {**args, "accum": FakeTensor("f32", (m, n))})
    column, less = integers(m, 1), {x: y for x, y in args.items() if x != "bias"}
    for given, said in (
        (less, 'epilogue example: args has no "bias"; its arguments are alpha, C, beta, bias'),
        ({**args, "bias": column}, r"epilogue example: bias is \(M, 1\), but was \(1, N\) in the trace; trace"),
        ({**args, "F": integers(m, 80)}, r"F has shape \(40, 80\); it must have \(40, 88\)"),
        ({**args, "other": 1.0}, "epilogue example: args has unknown names other"),
    ):
        with pytest.raises(op.EpilogueError, match=said):
            plan.run(a, b, visitor_args=given, device="cpu")
    with pytest.raises(op.EpilogueError, match=r"D and visitor_args\['D'\] are different arrays"):
        plan.run(a, b, None, integers(m, n), visitor_args={**args, "D": integers(m, n)}, device="cpu")
    plan.activation = "relu"
    with pytest.raises(op.EpilogueError, match="activation relu cannot be combined with a traced epilogue"):
        plan.run(a, b, visitor_args=args, device="cpu")
    plan.activation, plan.epilogue_visitor = "", reduced
    with pytest.raises(op.EpilogueError, match="alpha cannot be combined with this epilogue_visitor"):
        plan.run(a, b, alpha=2.0, visitor_args={"bias": args["bias"]}, device="cpu")
    with pytest.raises(op.EpilogueError, match="does not support reductions in an epilogue"):
        plan.run(a[:, :7].copy(), b[:7], visitor_args={"bias": args["bias"]}, device="cpu")
    square, f = integers(n, n), op.Gemm(**F16)
    f.epilogue_visitor = example
    with pytest.raises(op.LayoutError, match="F shares memory with A"):
        f.run(square, integers(n, n), visitor_args={**arguments(n, n), "F": square}, device="cpu")


@pytest.mark.slow
def test_a_plan_that_is_saved(tmp_path: Path) -> None:
    m, n, k = 40, 88, 72
    a, b, bias = integers(m, k), integers(k, n), integers(n, element=np.float32)
    plan = op.Gemm(**F16)
    plan.epilogue_visitor = reduced
    plan.run(a, b, bias=bias, device="cpu")
    assert "wgmma" in plan.ir() and "-g-" in plan.explain(a, b).kernel
    loaded = op.load(plan.save(tmp_path / "plan"))
    more = integers(m, k)
    equal(loaded.run(more, b, visitor_args={"bias": bias}, device="cpu"), plan.reference(more, b))
    with pytest.raises(op.EpilogueError, match='args has no "bias"'):
        loaded.run(a, b, device="cpu")


@pytest.mark.slow
def test_a_package_for_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    def scaled(accum: Any, alpha: Any, bias: Any, times: Any) -> Any:
        for _ in range(times):
            accum = accum + 1.0
        D = relu(alpha * accum + bias)
        return {"rows": epilogue.sum(D, -1), "D": D}

    m, n, k = 64, 32, 72
    plan, v = op.Gemm(**F16), integers(n)
    examples = {"accum": FakeTensor("f32", (m, n)), "alpha": 1.0, "bias": v, "times": 2}
    plan.epilogue_visitor = trace(scaled, examples)
    plan.tile_description = {"threadblock_shape": [64, 32, 64], "stages": 4, "cluster_shape": [1, 1, 1]}
    package: Any = op.emit.pytorch(plan.construct(), "visited_for_torch", tmp_path, jit=True)
    a, b, bias = (torch.from_numpy(x) for x in (integers(m, k), integers(k, n), v))
    rows, d = package.run(a, b, 0.5, bias)
    want = scaled(a.double() @ b.double(), 0.5, bias.double(), 2)
    assert torch.equal(rows.double(), want["rows"]) and torch.equal(d.double(), want["D"])
    torch.library.opcheck(torch.ops.visited_for_torch.run.default, (a, b, 0.5, bias), test_utils="test_faketensor")
