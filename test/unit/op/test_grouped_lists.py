"""Lists of GEMMs of any sizes on the interpreter: ``op.grouped_mm``, ``op.GroupedGemm`` and descriptions. Small
integers make results exact.
"""

from __future__ import annotations

import ctypes
from functools import partial
from typing import Any, cast

import numpy as np
import pytest
from refused_calls import OnGpu

from cute_dialect import op
from cute_dialect.kernels.gemm.pointer_array import COLUMNS, ProblemsConfig, problems_text
from cute_dialect.op.execute import launcher, recording
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.execute.kernel_cache import load_or_compile
from cute_dialect.op.execute.pointer_arrays import TableLaunch, table_launch
from cute_dialect.op.pycutlass.grouped import GroupArguments
from cute_dialect.runtime.arrays import view_of

CHECKS: Any = {"device": "cpu", "checks": ["race", "uninit", "oob", "sync"]}
SIZES = [(70, 40, 72), (7, 9, 11), (0, 4, 5), (6, 8, 0), (16, 64, 24)]


def numbers(*shape: int, dtype: Any = np.float16, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([sum(shape), seed]).integers(-2, 3, shape).astype(dtype)


def wide(x: Any) -> np.ndarray:
    return np.asarray(x).astype(np.float64)


def lists(dtype: Any = np.float16, sizes: Any = SIZES) -> tuple[list[np.ndarray], ...]:
    """Return A, B and C of each GEMM."""
    return (
        [numbers(m, k, dtype=dtype) for m, _, k in sizes],
        [numbers(k, n, dtype=dtype, seed=1) for _, n, k in sizes],
        [numbers(m, n, dtype=dtype, seed=2) for m, n, _ in sizes],
    )


def products(a: list[np.ndarray], b: list[np.ndarray]) -> list[np.ndarray]:
    return [wide(x) @ wide(y) for x, y in zip(a, b)]


def padded(x: np.ndarray, more: int = 3) -> np.ndarray:
    """Return the same matrix with NaN past the end of each row and of the matrix."""
    memory = np.full((x.shape[0] + 2, x.shape[1] + more), np.nan, x.dtype)
    memory[: x.shape[0], : x.shape[1]] = x
    return memory[: x.shape[0], : x.shape[1]]


def same(found: Any, wanted: Any) -> bool:
    return len(found) == len(wanted) and all(np.array_equal(wide(x), y) for x, y in zip(found, wanted))


@pytest.mark.slow
def test_any_sizes_and_strides() -> None:
    a, b, c = lists()
    a[0] = padded(a[0])
    b[1], b[4] = np.asfortranarray(b[1]), padded(b[4], 8)
    out = [padded(np.full_like(x, np.nan), 1) for x in c]
    bias = [numbers(n) for _, n, _ in SIZES]
    alpha = np.arange(1, 6, dtype=np.float32)
    given: dict[str, Any] = {"c": c, "bias": bias, "alpha": alpha, "beta": 0.5, "activation": "relu"}
    assert op.grouped_mm(a, b, out=out, **given, **CHECKS) is out
    want = [
        np.maximum(x * p + wide(y) / 2 + wide(v), 0) for x, p, y, v in zip(alpha, products(a, b), c, bias)
    ]  # fmt: skip
    assert same(out, want)
    around: list[Any] = [x.base for x in out]
    assert all(np.isnan(y[: len(x), x.shape[1] :]).all() and np.isnan(y[-2:]).all() for x, y in zip(out, around))


@pytest.mark.slow
def test_tile_schedulers() -> None:
    a, b, _ = lists(sizes=[(16, 64, 24), (0, 8, 8), (16, 8, 0), (40, 40, 8)])
    reports: list[Any] = []
    for schedule in ("auto", "device"):
        found = op.grouped_mm(a, b, schedule=schedule, dtype="f32", report=reports.append, **CHECKS)
        assert found[0].dtype == np.float32 and same(found, products(a, b))
    assert len(reports) == 2
    a[0][:] = np.nan  # A GEMM whose alpha is 0 does not read its operands.
    alpha = [0.0, 1.0, 1.0, 3.0]
    found = op.grouped_mm(a, b, alpha=alpha, device="cpu")
    assert (found[0] == 0).all() and same(found[1:], [x * y for x, y in zip(alpha[1:], products(a[1:], b[1:]))])


def test_tiles_are_added_up() -> None:
    config = ProblemsConfig("list", (64, 64))
    kernel = load_or_compile(config.name, partial(problems_text, config), cpu=True).kernel("launch")
    table, tiles = np.zeros((300, len(COLUMNS)), np.int64), np.zeros(300, np.int32)
    table[:, 0], table[:, 1] = np.arange(300) % 131, 100
    kernel(table, tiles, **CHECKS)
    assert np.array_equal(tiles, np.cumsum(-(-table[:, 0] // 64) * 2))


@pytest.mark.slow
@pytest.mark.parametrize("element", ["f64", "f32", "i8"])
def test_other_types(element: str) -> None:
    kind = {"f64": np.float64, "f32": np.float32, "i8": np.int8}[element]
    a, b, c = lists(kind, [(5, 8, 8), (0, 4, 5), (7, 9, 11)])
    if element == "f64":  # D^T = B^T A^T
        a, b = [np.asfortranarray(x) for x in a], [np.asfortranarray(x) for x in b]
        plan = op.GroupedGemm(a, b, element_D="f64", layout_D="column", precompute_mode="host")
        found = plan.run(alpha=-2.0, **CHECKS).D
        assert found[0].flags.f_contiguous and same(found, [-2 * x for x in products(a, b)])
    elif element == "f32":
        assert same(op.grouped_mm(a, b, c=c, **CHECKS), [x + wide(y) for x, y in zip(products(a, b), c)])
    else:
        found = op.grouped_mm(a, b, **CHECKS)
        assert found[0].dtype == np.int32 and same(found, products(a, b))


def test_lists_without_elements_cannot_be_replayed() -> None:
    a, b, _ = lists(sizes=[(0, 4, 5), (7, 0, 11)])
    plan = op.GroupedGemm(element="f16", layout="row", precompute_mode="host")
    done = plan.run(a, b, **CHECKS)
    assert [x.shape for x in done.D] == [(0, 4), (7, 0)] and done.prepared() is None


@pytest.mark.slow
def test_a_plan() -> None:
    a, b, c = lists()
    plan = op.GroupedGemm(element="f16", layout="row")
    assert plan.precompute_mode == op.SchedulerMode.Device and "row" in repr(plan)
    done = plan.run(a, b, c, alpha=2.0, beta=1.0, sync=False, **CHECKS)
    done.sync()
    assert same(done.D, plan.reference(a, b, c, alpha=2.0, beta=1.0)) and len(done.kernels) == 4
    assert isinstance(done, GroupArguments) and done.problem_sizes == [op.GemmCoord(*x) for x in SIZES]
    assert "func @launch" in plan.ir() and plan.activations()
    told = plan.explain(a, b)
    assert (told.products, told.launches, told.largest) == (5, 4, (70, 64, 72)) and told.copied_at_once == (16, 1)
    assert "16 bytes at once, others element by element" in str(told) and told.flops == sum(
        2 * m * n * k for m, n, k in SIZES
    )
    plan.precompute_mode = op.SchedulerMode.Host
    plan.tile_description = plan.tile_descriptions()[6]
    plan.activation = "relu"
    done = plan.run(a, b, device="cpu")
    assert same(done.D, [np.maximum(x, 0) for x in products(a, b)]) and plan.explain(a, b).launches == 2
    assert "set by the plan's tile_description" in str(plan.explain(a, b))
    with pytest.raises(op.DeviceError, match=r"no GPU was found|bind: the arrays are in CPU memory"):
        plan.bind(a, b)


@pytest.mark.slow
def test_a_plan_of_one_matrix_in_groups() -> None:
    a, b = numbers(40, 16), numbers(3, 16, 24)
    a[33:] = np.nan
    plan = op.GroupedGemm(element="f16", layout="row", element_C="void")
    out = np.full((40, 24), 7, np.float16)
    done = plan.run(a, b, D=out, offs=[3, 20, 33], **CHECKS)
    assert done.D is out and (out[33:] == 7).all() and done.kernels[0].endswith("-ragged-m")
    assert np.array_equal(wide(out[:33]), np.concatenate(plan.reference(a, b, offs=[3, 20, 33])))
    assert "8 groups" in str(plan.explain(numbers(40, 16), numbers(8, 16, 24), offs=[40] * 8))
    for given, error, said in (
        ((padded(a), b), op.LayoutError, "GroupedGemm.run: A has strides .* TMA needs contiguous rows"),
        (
            (a.astype(np.float32), b),
            op.DtypeError,
            "GroupedGemm.run: A has f32, row-major; the plan needs f16, row-major",
        ),
        (([a], [b[0]]), op.UnsupportedError, "GroupedGemm.run: offs is not supported for lists"),
    ):
        with pytest.raises(error, match=said):
            plan.run(*given, offs=[3, 20, 33], device="cpu")
    with pytest.raises(op.LayoutError, match=r"GroupedGemm.run: D has rows of 21 elements; TMA stores rows"):
        plan.run(a, b[..., :21], D=out[:, :21], offs=[3, 20, 33], device="cpu")
    apart = np.array([3, 0, 20, 0, 33, 0], np.int32)[::2]  # A plan refuses offsets that it would have to copy.
    with pytest.raises(op.LayoutError, match=r"GroupedGemm.run: offs has strides \(2,\); it must be contiguous"):
        plan.run(a, b, offs=apart, device="cpu")
    assert np.array_equal(op.grouped_mm(a, b, apart, device="cpu")[:33], out[:33])


def test_invalid_ragged_groups_are_rejected() -> None:
    a, b = numbers(40, 16), numbers(3, 16, 24)
    rows = op.GroupedGemm(element="f16", layout="row")
    columns = op.GroupedGemm(element="f16", layout_A="row", layout_B="row", layout_D="column")
    of_places = op.GroupedGemm(element="f16", layout="row")
    of_places.epilogue_visitor = lambda value, row, column: value
    for plan, beta, error, said in (
        (columns, 0.0, op.UnsupportedError, "D is column-major; groups of one matrix need a row-major D"),
        (rows, 1.0, op.ShapeError, "beta is 1.0, but C is missing; pass C or beta=0"),
        (of_places, 0.0, op.EpilogueError, "groups of one matrix need an epilogue_visitor with a parameter accum"),
    ):
        with pytest.raises(error, match=f"^GroupedGemm.run: {said}$"):
            plan.run(a, b, beta=beta, offs=[3, 20, 33], device="cpu")


@pytest.mark.slow
def test_descriptions() -> None:
    a, b, c = lists()
    instruction = op.MathInstruction((16, 8, 16), "f16", "f16", "f32")
    tile = op.TileDescription((64, 64, 32), 3, (2, 2, 1), instruction)
    A, B, C = (op.TensorDescription("f16", "row", 8) for _ in range(3))
    functor = op.LinearCombination("f16", 8, "f32", "f32")
    with_odd = op.TensorDescription("f16", "row", 1)
    for mode, of_a in ((op.SchedulerMode.Host, A), (op.SchedulerMode.Device, with_odd)):
        operation = op.GemmOperationGrouped(80, tile, of_a, B, C, functor, precompute_mode=mode)
        flat = [x.reshape(-1) for x in a], [x.reshape(-1) for x in b], [x.reshape(-1) for x in c]
        out = [np.full_like(x, np.nan) for x in flat[2]]
        output_op: Any = operation.epilogue_type(2.0, 0.5)
        arguments = op.GemmGroupedArguments(operation, SIZES, *flat, out, output_op, **CHECKS)
        operation.run(arguments)
        arguments.sync()
        want = [2 * x + wide(y) / 2 for x, y in zip(products(a, b), c)]
        assert same([x.reshape(y.shape) for x, y in zip(out, want)], want)
        assert operation.name.endswith("-list16-host" if mode == "host" else "-list1")
        assert len(operation.variants()) == (3 if mode == "host" else 4) and operation.procedural_name() in repr(
            operation
        )


@pytest.mark.slow
def test_gradients() -> None:
    torch = pytest.importorskip("torch")

    def made(*shape: int) -> Any:
        return torch.randint(-2, 3, shape).double().requires_grad_()

    sizes = [(5, 8, 16), (0, 4, 6), (4, 6, 2)]
    a, b, c = [made(m, k) for m, _, k in sizes], [made(k, n) for _, n, k in sizes], [made(m, n) for m, n, _ in sizes]
    bias = [made(n) for _, n, _ in sizes]
    leaves = [*a, *b, *c, *bias]
    grads = [torch.randint(-2, 3, (m, n)).double() for m, n, _ in sizes]
    given: dict[str, Any] = {"alpha": 2.0, "activation": "relu", "c": c, "bias": bias}
    torch.autograd.backward(op.grouped_mm(a, b, device="cpu", **given), grads)
    found = [x.grad.clone() for x in leaves]
    for x in leaves:
        x.grad = None
    torch.autograd.backward([torch.relu(2 * (x @ y) + z + v) for x, y, z, v in zip(a, b, c, bias)], grads)
    assert all(torch.equal(x.grad, y) for x, y in zip(leaves, found))
    with pytest.raises(op.UnsupportedError, match="grouped_mm: out cannot be used when gradients are required"):
        op.grouped_mm(a, b, out=[x.detach() for x in c], device="cpu")
    with pytest.raises(op.UnsupportedError, match="grouped_mm: alpha is a list; it must be a number"):
        op.grouped_mm(a, b, alpha=[1.0] * 3, device="cpu")
    bytes_ = torch.zeros(16, 16).to(torch.float8_e4m3fn)
    with pytest.raises(op.DtypeError, match="grouped_mm: a has dtype f8E4M3FN, which has no gradients"):
        op.grouped_mm([bytes_.clone().requires_grad_()], [bytes_.T], device="cpu")
    with pytest.raises(op.ShapeError, match="grouped_mm: the lists are empty"):
        op.grouped_mm([], [], bias=bias[0], device="cpu")


def bad(**changes: Any) -> Any:
    """Return a list call with one argument changed."""
    a, b, c = lists(sizes=[(4, 8, 16), (3, 5, 2)])
    given: dict[str, Any] = {"a": a, "b": b, "device": "cpu"} | changes
    for name, i, x in given.pop("put", ()):
        given.setdefault(name, list(c))[i] = x
    return op.grouped_mm(given.pop("a"), given.pop("b"), **given)


ERRORS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"a": [], "b": []}, op.ShapeError, "the lists are empty; pass at least one matrix"),
    ({"b": [numbers(16, 8)]}, op.ShapeError, "b must be a list of 2 matrices like a, got 1"),
    ({"b": numbers(16, 8)}, op.ShapeError, "b must be a list of 2 matrices like a, got ndarray"),
    ({"c": []}, op.ShapeError, "c must be a list of 2 matrices like a, got 0"),
    ({"put": [("b", 1, numbers(3, 5))]}, op.ShapeError,
     r"B has shape \(3, 5\)"),
    ({"put": [("out", 1, numbers(3, 4))]}, op.ShapeError, r"D has shape \(3, 4\); it must have \(3, 5\) \(problem 1\)"),
    ({"put": [("b", 1, numbers(2, 5, dtype=np.float32))]}, op.DtypeError,
     r"a\[1\] has dtype f16 and b\[1\] has f32; use the same dtype for both"),
    ({"put": [("a", 1, numbers(3, 2, dtype=np.float64)), ("b", 1, numbers(2, 5, dtype=np.float64))]}, op.DtypeError,
     "the lists mix f16 and f16 to f16 with f64 and f64 to f64; all GEMMs of a call must have the same dtypes"),
    ({"put": [("a", 0, numbers(8, 32)[::2, ::2])]}, op.LayoutError,
     r"a has strides \(64, 2\)"),
    ({"put": [("a", 0, numbers(2, 4, 16))]}, op.ShapeError, "expected B of|batch"),
    ({"alpha": numbers(3, dtype=np.float32)}, op.ShapeError,
     r"alpha is f32 of \(3,\)"),
    ({"alpha": [1.0, "2"]}, op.ShapeError, r"alpha is \[1\.0, '2'\]"),
    ({"alpha": OnGpu(2, dtype="<f4")}, op.DeviceError,
     "grouped_mm: alpha is on GPU 0"),
    ({"alpha": OnGpu(2, dtype="<f4", strides=(8,)), "device": None}, op.LayoutError,
     r"grouped_mm: alpha has strides \(2,\); it must be contiguous"),
    ({"alpha": OnGpu(2, dtype="<f4"), "put": [("b", 0, np.asfortranarray(numbers(16, 8)))]}, op.UnsupportedError,
     r"alpha of type OnGpu has no tolist\(\), which matrices of different layouts need"),
    ({"bias": [numbers(8)]}, op.ShapeError, "bias has 1 elements; pass one array for all, or 2"),
    ({"bias": [numbers(8), None]}, op.ShapeError, "bias has 2 arrays, 1 of them None; pass 2, one per problem"),
    ({"bias": [numbers(8), numbers(6)]}, op.ShapeError, r"bias has shape \(6,\)"),
    ({"bias": [numbers(8), numbers(3, 1)]}, op.ShapeError, (
        "the bias of problem 1 is along m, but that of problem 0 along n"
    )),
    ({"bias": [numbers(8), numbers(5, dtype=np.float32)]}, op.EpilogueError,
     "the biases have dtypes f16 and f32"),
    ({"offs": [1, 2]}, op.UnsupportedError, "offs is not supported for lists, whose matrices have their own sizes"),
    ({"gather": [1]}, op.UnsupportedError, "gather is not supported for lists"),
    ({"rest": "zero"}, op.UnsupportedError, "rest='zero' is not supported for lists"),
    ({"kernel": "x"}, op.UnsupportedError, "kernel='x' is not supported for lists; pass a TileDescription"),
    ({"epilogue": numbers}, op.EpilogueError, "epilogue is not supported for lists"),
    ({"activation": "swish"}, op.EpilogueError, "silu is x"),
    ({"math": "promote"}, op.UnsupportedError, "math='promote' is not supported for lists"),
    ({"dtype": "f64"}, op.DtypeError, (
        "grouped_mm: a result of f64 is not supported for f16 operands; use f16, bf16, f32, f8E4M3FN or f8E5M2"
    )),
]  # fmt: skip


@pytest.mark.parametrize(("given", "error", "said"), ERRORS)
def test_errors_of_lists(given: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        bad(**given)


def test_errors_name_the_position_in_the_list() -> None:
    a, b, c = lists(sizes=[(4, 8, 16), (3, 5, 2)])
    with pytest.raises(op.LayoutError, match="grouped_mm: D of matrix 1 shares memory with D of matrix 0"):
        op.grouped_mm([a[0]] * 2, [b[0]] * 2, out=[c[0]] * 2, device="cpu")
    odd = np.frombuffer(bytearray(97), np.uint8)[1:].view(np.float16).reshape(3, 16)
    with pytest.raises(op.AlignmentError, match="grouped_mm: the address of A is 1 mod 2"):
        op.grouped_mm([odd], [b[0]], device="cpu")
    torch = pytest.importorskip("torch")
    mixed = [a[0], torch.zeros(3, 2, dtype=torch.float16)], [b[0], torch.zeros(2, 5, dtype=torch.float16)]
    with pytest.raises(op.DeviceError, match="grouped_mm: D of problem 1 is a torch array on the CPU"):
        op.grouped_mm(*mixed, device="cpu")


def test_errors_of_plans() -> None:
    a, b, c = lists(sizes=[(4, 8, 16), (3, 5, 2)])
    plan = op.GroupedGemm(element="f16", layout="row")
    instruction = op.MathInstruction((64, 128, 16), "f16", "f16", "f32")
    wgmma = op.TileDescription((128, 128, 64), 4, (8, 1, 1), instruction)
    A = op.TensorDescription("f16", "row", 8)

    def traced(accum: Any) -> Any:
        return accum

    with_visitor = op.GroupedGemm(element="f16", layout="row")
    visited: Any = with_visitor
    visited.epilogue_visitor = traced
    functor = op.LinearCombination("f16", 8, "f32", "f32")
    tile, wrong = plan.tile_descriptions()[6], cast(Any, (1.0, 0.0))
    nothing, doubles = (op.GroupedGemm(element=x, layout="row") for x in ("f16", "f64"))
    nothing.run(numbers(0, 16), numbers(2, 16, 24), offs=[0, 0], device="cpu")
    operation = op.GemmOperationGrouped(80, tile, A, A, A, functor)
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: op.GroupedGemm(layout="row"), op.DtypeError, "GroupedGemm: the element type of A is unknown"),
        (lambda: op.GroupedGemm(element="f16", layout="row", kernel_cc=70), op.UnsupportedError,
         "GroupedGemm: kernel_cc=70 is not supported"),
        (lambda: op.GroupedGemm(element="f16", layout="row", kernel_cc=120), op.UnsupportedError,
         "GroupedGemm: kernel_cc=120 is not supported; use 80, 86, 87, 88, 89, 90, 100, 103 or 110"),
        (lambda: op.GroupedGemm(element="f16", layout="row", precompute_mode="both"), op.UnsupportedError,
         "precompute_mode"),
        (lambda: plan.run(device="cpu"), op.UnsupportedError, "GroupedGemm.run: A is missing"),
        (lambda: plan.run(a[0], b, device="cpu"), op.ShapeError,
         "GroupedGemm.run: A is a ndarray; pass a list with one matrix per problem"),
        (lambda: plan.run(a, b[:1], device="cpu"), op.ShapeError,
         "GroupedGemm.run: B has 1 matrices; pass 2, one per problem"),
        (lambda: plan.run([], [], device="cpu"), op.ShapeError,
         "GroupedGemm.run: the lists are empty"),
        (lambda: plan.run(a, b, bias=[numbers(8)], device="cpu"), op.ShapeError,
         "GroupedGemm.run: bias has 1 arrays; pass 2, one per problem$"),
        (lambda: nothing.ir(), op.UnsupportedError,
         "GroupedGemm: the call is empty and has no kernel"),
        (lambda: op.grouped_mm(*lists(np.float64, [(4, 8, 16)])[:2], activation="gelu", device="cpu"), op.EpilogueError,
         "grouped_mm: an f64 epilogue supports alpha, beta, an f64 bias and relu, got gelu"),
        (lambda: doubles.run(*lists(np.float64, [(4, 8, 16)])[:2], bias=numbers(8), device="cpu"), op.EpilogueError,
         "GroupedGemm.run: an f64 epilogue supports alpha, beta, an f64 bias and relu, got a bias of f16"),
        (lambda: plan.run([a[0].T, a[1]], b, device="cpu"), op.ShapeError,
         r"pass B of \(4, N\) \(problem 0\)"),
        (lambda: plan.run(a, b, beta=1.0, device="cpu"), op.ShapeError,
         "GroupedGemm.run: beta is 1.0, but C is missing"),
        (lambda: plan.run(a, b, visitor_args={"x": 1}, device="cpu"), op.EpilogueError,
         r"GroupedGemm.run: visitor_args \(x\) is not supported for lists"),
        (lambda: plan.construct(wgmma), op.UnsupportedError,
         "cannot compute problems of any sizes"),
        (lambda: with_visitor.run(a, b, device="cpu"), op.EpilogueError,
         "GroupedGemm: epilogue_visitor is a function of accum, which lists do not support"),
        (lambda: with_visitor.reference(a, b), op.UnsupportedError,
         "GroupedGemm.reference: epilogue_visitor is a function of accum"),
        (lambda: op.GemmOperationGrouped(80, tile, A, A, A, functor, visitor=True), op.EpilogueError,
         "GemmOperationGrouped: a traced epilogue is not supported"),
        (lambda: op.GemmGroupedArguments(operation, None, a, b, output_op=wrong), op.EpilogueError,
         r"GemmGroupedArguments: output_op is \(1.0, 0.0\); it must come from operation.epilogue_type"),
        (lambda: op.GemmGroupedArguments(operation, None, [a], [b]), op.OpError, "GemmGroupedArguments"),
    ]  # fmt: skip
    for call, error, said in cases:
        with pytest.raises(error, match=said):
            call()
    del c


def test_explained() -> None:
    a, b, _ = lists()
    b[0] = np.asfortranarray(b[0])
    told = op.explain(op.grouped_mm, a, b)
    assert len(told.parts) == 2 and told.launches == 3 and told.flops == sum(2 * m * n * k for m, n, k in SIZES)
    assert "found by the host, longest K first" in str(told)


def test_cached_calls_of_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    sizes = [(3, 8, 8), (0, 8, 8), (2, 16, 0), (5, 16, 24)]
    a, b = [torch.ones(m, k) for m, _, k in sizes], [torch.ones(k, n) for _, n, k in sizes]
    table = np.zeros((4, len(COLUMNS)), np.int64)
    table[:, :3] = sizes
    launched: list[tuple[int, ...]] = []
    tables: list[np.ndarray] = []

    def launch(*given: int) -> None:
        launched.append(given)
        there = (ctypes.c_int64 * table.size).from_address(given[4])
        tables.append(np.array(there).reshape(table.shape))

    here = np.array([True, False, True, False])
    parts = [TableLaunch(launch, here, 1, ()), TableLaunch(launch, ~here, 2, (3,))]
    columns = [COLUMNS.index(n) for n in ("a", "b", "c")]
    lives = [0, 3], [0, 3], [0, 2, 3]
    operands = [(column, np.array(live), 4) for column, live in zip(columns, lives)]
    run = table_launch(table, operands, parts, view_of(np.zeros(1, np.int32)))
    monkeypatch.setattr(recording, "current_stream_of_torch", lambda: lambda device: 77)
    calls = KnownCalls(tf32=False)

    def compute() -> tuple[Any, ...]:
        results = [torch.empty(m, n) for m, n, _ in sizes]
        given = [x[i] for x, live in zip((a, b, results), lives) for i in live]
        assert launcher.CURRENT.recording is not None
        launcher.CURRENT.recording.launch(launcher.Launch(run, tuple(given), 15))
        return tuple(results)

    assert calls.again("as ever", *a, *b) is None
    calls.recorded("as ever", [*a, *b], compute)
    x, y = [t + 1 for t in a], [t + 1 for t in b]
    found = calls.again("as ever", *x, *y)
    assert found is not None and [tuple(d.shape) for d in found] == [(m, n) for m, n, _ in sizes]
    assert [(g[0], *g[5:]) for g in launched] == [(77, 1, 0), (77, 2, 0, 3)]
    for given, mine, rows in zip(launched, tables, ([3, 0, 2, 0], [0, 0, 0, 5])):
        assert mine[:, 0].tolist() == rows
        for i in (0, 3):  # Non-empty matrices are at the table's offsets from the base address.
            where = [base + 4 * int(mine[i, c]) for base, c in zip(given[1:4], columns)]
            assert where == [t[i].data_ptr() for t in (x, y, found)]
        assert given[3] + 4 * int(mine[2, columns[2]]) == found[2].data_ptr()
    assert calls.again("otherwise", *x, *y) is None
    x[0] = torch.zeros(25)[1:].view(3, 8)  # Another alignment misses the cache.
    assert calls.again("as ever", *x, *y) is None and len(calls) == 1 and len(launched) == 2
