"""Equal GEMMs over an array of pointers run in one launch, on the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.op.epilogue import relu
from cute_dialect.runtime.arrays import numpy_dtype

GENERATOR = np.random.default_rng(15)
CHECKED: dict[str, Any] = {"device": "cpu", "checks": ["race", "uninit", "oob"], "schedule": "adversarial"}


def integers(element: str, *shape: int, offset: int = 0) -> np.ndarray:
    """Return small integers in their own memory, at an offset from 16-byte alignment."""
    kind = numpy_dtype(element)
    memory = np.zeros(np.prod(shape, dtype=int) * kind.itemsize + 64, np.uint8)
    start = -memory.ctypes.data % 16 + offset * kind.itemsize
    made = memory[start : start + int(np.prod(shape)) * kind.itemsize].view(kind).reshape(shape)
    made[...] = GENERATOR.integers(0 if element == "ui8" else -2, 3, shape)
    return made


def columns(x: np.ndarray) -> np.ndarray:
    """Return the same integers in column-major order."""
    made = integers("f16", *x.shape[::-1]).astype(x.dtype).T
    made[...] = x
    return made


def several(element: str, rows: int, cols: int, offset: int = 0) -> list[np.ndarray]:
    return [integers(element, rows, cols, offset=offset) for _ in range(3)]


CASES: dict[str, tuple[str, str, tuple[int, int, int], int, dict[str, Any]]] = {
    # element type, result type, (M, N, K), offset in elements from 16-byte alignment, further arguments
    "tma": ("f16", "f16", (40, 72, 96), 0, {"alpha": 2.0, "activation": "relu"}),
    "ldmatrix": ("f16", "f16", (19, 21, 37), 1, {}),
}


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.sample("tma")
@pytest.mark.parametrize("name", CASES)
def test_equal_strides_are_one_launch(name: str) -> None:
    element, result, (m, n, k), offset, more = CASES[name]
    a, b, c = several(element, m, k, offset), several(element, k, n, offset), several(result, m, n, offset)
    b[2] = b[0]  # The list contains one matrix twice.
    outs: Any = None
    if name == "tma":  # The kernel computes D^T, and C is D.
        c = outs = [columns(x) for x in c]
    exact = [
        more.get("alpha", 1.0) * (x.astype(float) @ y.astype(float)) + 0.5 * z.astype(float) for x, y, z in zip(a, b, c)
    ]
    exact = [np.rint(x) if result == "i32" else x.clip(min=0) if more.get("activation") else x for x in exact]
    reports: list[Any] = []
    found = op.mm_array(a, b, outs, Cs=c, beta=0.5, **more, **CHECKED, report=reports.append)
    assert len(reports) == 1 and op.explain(op.mm_array, a, b).launches == (1, "")
    for x, y in zip(found, exact):
        np.testing.assert_array_equal(np.asarray(x, float), y)


@pytest.mark.slow
def test_addresses_and_plans_with_lists() -> None:
    a, b, d = several("f16", 24, 40), several("f16", 40, 16), several("f32", 24, 16)
    addresses = [np.array([x.ctypes.data for x in given]) for given in (a, b, d)]
    op.mm_array(*addresses, shape=(24, 16, 40), element="f16", dtype="f32", device="cpu")
    for x, y, z in zip(a, b, d):
        np.testing.assert_array_equal(z, x.astype(float) @ y.astype(float))
    plan = op.Gemm(element="f16", layout="row", element_C="f32")
    done = plan.run(a, b, device="cpu", bias=np.ones(16, np.float32))
    assert done.launches == 1 and plan.explain(a, b).launches == (1, "")
    for x, y, z in zip(a, b, done.D):
        np.testing.assert_array_equal(z, x.astype(float) @ y.astype(float) + 1)


def padded(x: np.ndarray, width: int) -> np.ndarray:
    """Return the same integers with a larger row stride."""
    made = integers("f16", x.shape[0], width).astype(x.dtype)[:, : x.shape[1]]
    made[...] = x
    return made


MIXED: dict[str, Callable[[list[Any], list[Any], list[Any]], object]] = {
    "address": lambda a, b, d: a.__setitem__(1, integers("f16", 24, 40, offset=1)),
    "stride": lambda a, b, d: a.__setitem__(1, padded(a[1], 48)),
    "odd stride": lambda a, b, d: a.__setitem__(1, padded(a[1], 43)),
    "odd stride first": lambda a, b, d: a.__setitem__(0, padded(a[0], 43)),
    "columns of A": lambda a, b, d: a.__setitem__(1, columns(a[1])),
    "columns of B": lambda a, b, d: b.__setitem__(2, columns(b[2])),
    "columns of D": lambda a, b, d: d.__setitem__(1, columns(d[1])),
    "odd D": lambda a, b, d: d.__setitem__(1, integers("f16", 24, 16, offset=1)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MIXED)
def test_matrices_of_several_classes(name: str) -> None:
    """Matrices of equal strides and alignment share a launch."""
    a, b, outs = several("f16", 24, 40), several("f16", 40, 16), several("f16", 24, 16)
    MIXED[name](a, b, outs)
    reports: list[Any] = []
    run: dict[str, Any] = {"bias": np.ones(16, np.float16), "activation": "relu", "report": reports.append}
    found = op.mm_array(a, b, outs, Cs=[x.copy() for x in outs], beta=0.0, **run, **CHECKED)
    for x, y, z, out in zip(a, b, found, outs, strict=True):
        assert z is out
        np.testing.assert_array_equal(z.astype(float), (x.astype(float) @ y.astype(float) + 1).clip(min=0))
    assert len(reports) == 2
    assert op.explain(op.mm_array, a, b, outs=outs).launches[0] == 2
    if "D" not in name:
        for x, y, z in zip(a, b, op.mm_array(a, b, device="cpu")):
            np.testing.assert_array_equal(z.astype(float), x.astype(float) @ y.astype(float))
        explanation = op.explain(op.mm_array, a, b)
        assert explanation.launches == (2, "the matrices have different strides or alignments")
        odd = {"odd stride first": 0, "columns of B": 2}.get(name, 1)
        others = [i for i in range(3) if i != odd]
        assert {which for which, _ in explanation.parts} == {tuple(others), (odd,)}
        assert str(explanation).startswith("mm_array: 2 launches, because the matrices have different strides or align")
        assert f"\nmatrices {others[0]}, {others[1]}: mm_array on " in str(explanation)
        assert f"\nmatrix {odd}: mm_array on " in str(explanation) and explanation.flops == 3 * 2 * 24 * 16 * 40


def test_results_of_several_classes_must_not_share_memory() -> None:
    a, b = several("f16", 24, 40), several("f16", 40, 16)
    a[1] = padded(a[1], 43)
    out = integers("f16", 24, 16)
    with pytest.raises(op.LayoutError, match=r"mm_array: D of matrix .* shares memory with D of matrix"):
        op.mm_array(a, b, [out, out, integers("f16", 24, 16)], device="cpu")
    assert not (out != out).any()


@pytest.mark.slow
def test_plans_with_lists_of_several_strides() -> None:
    a, b = several("f16", 24, 40), several("f16", 40, 16)
    a[1] = padded(a[1], 43)
    plan = op.Gemm(element="f16", layout="row")
    done = plan.run(a, b, device="cpu")
    assert done.launches == 3 and done.apart == "the matrices of A have different strides"
    for x, y, z in zip(a, b, done.D):
        np.testing.assert_array_equal(z.astype(float), x.astype(float) @ y.astype(float))


def test_several_launches_are_reported() -> None:
    plan = op.Gemm(element="f16", layout="row")
    a, b = several("f16", 24, 40), several("f16", 40, 16)
    a[1] = integers("f16", 24, 48)[:, :40]
    found = plan.explain(a, b)
    assert found.launches == (3, "the matrices of A have different strides")
    assert "launches  3, one per matrix" in str(found)
    done = plan.run(several("f16", 24, 0), several("f16", 0, 16), device="cpu")
    assert done.apart == "K or alpha is 0" and not any(x.any() for x in done.D)


def shifted(accum: Any, bias: Any, scale: Any) -> Any:
    D = relu(accum * scale + bias)
    return {"D": D, "more": accum + 1, "rows": op.epilogue.sum(accum, -1)}


@pytest.mark.slow
@pytest.mark.parametrize("lies", ["together", "apart", "anyhow"])
def test_traced_epilogues(lies: str) -> None:
    """Epilogue arrays have one matrix per GEMM: in one launch, in one launch per GEMM, or without TMA."""
    k, n = (37, 21) if lies == "anyhow" else (40, 32)
    a, b, bias = several("f16", 24, k), several("f16", k, n), integers("f32", 3, 1, n)
    b[2] = b[0]
    if lies == "apart":
        a[1] = integers("f16", 24, 48)[:, :40]
    scale = np.array([1, 2, 3], np.float32).reshape(3, 1, 1)
    sums = np.stack([x.astype(float) @ y.astype(float) for x, y in zip(a, b)])
    reports: list[Any] = []
    if lies == "anyhow":
        outs = several("f32", 24, n)
        more: dict[str, Any] = {"epilogue": lambda accum, bias: accum * 2 + bias, "args": {"bias": bias}}
        found = op.mm_array(a, b, outs, **more, **CHECKED, report=reports.append)
        assert found is outs
        np.testing.assert_array_equal(np.stack(outs), 2 * sums + bias)
    else:
        args = {"bias": bias, "scale": scale}
        run = CHECKED if lies == "together" else {"device": "cpu"}
        found = op.mm_array(a, b, epilogue=shifted, args=args, **run, report=reports.append)
        assert isinstance(found["D"], list)
        np.testing.assert_array_equal(np.stack(found["D"]).astype(float), (sums * scale + bias).clip(min=0))
        np.testing.assert_array_equal(found["more"].astype(float), sums + 1)
        np.testing.assert_array_equal(found["rows"], sums.sum(-1, keepdims=True))
        launches = op.explain(op.mm_array, a, b, epilogue=shifted, args=args).launches
        assert launches == ((1, "") if lies == "together" else (3, "the matrices of A have different strides"))
    # One launch reports only its last kernel, which combines the row sums. Separate calls report both kernels.
    assert len(reports) == {"together": 1, "apart": 6, "anyhow": 1}[lies]


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_gradients(activation: str) -> None:
    torch = pytest.importorskip("torch")
    lists = [[torch.from_numpy(x) for x in several("f16", *shape)] for shape in ((24, 40), (40, 32), (24, 32))]
    lists[1][2] = lists[1][0]  # The list contains one matrix twice.
    ours = [[t.clone().requires_grad_() for t in x] for x in lists]
    ours[1][2] = ours[1][0]
    doubles = [[t.double().requires_grad_() for t in x] for x in lists]
    doubles[1][2] = doubles[1][0]
    bias, wide = torch.arange(32.0, requires_grad=True), torch.arange(32.0, dtype=torch.float64, requires_grad=True)
    more: dict[str, Any] = {"alpha": 0.5, "beta": 2.0, "activation": activation, "device": "cpu"}
    found = op.mm_array(ours[0], ours[1], Cs=ours[2], bias=bias, **more)
    f: Any = {"relu": torch.relu, "gelu": torch.nn.functional.gelu}[activation]
    exact = [f(0.5 * x @ y + 2 * z + wide) for x, y, z in zip(*doubles)]
    grads = [torch.from_numpy(x) for x in several("f16", 24, 32)]
    torch.autograd.backward(found, grads)
    torch.autograd.backward(exact, [g.double() for g in grads])
    for x, y in ((bias, wide), *((t, u) for of, to in zip(ours, doubles) for t, u in zip(of, to))):
        error = float((x.grad.double() - y.grad).abs().max())
        assert error <= (2e-3 * float(y.grad.abs().max()) if activation == "gelu" else 0.0)


@pytest.mark.slow
def test_gradients_through_epilogues() -> None:
    """Gradients are computed GEMM by GEMM."""
    torch = pytest.importorskip("torch")
    a = [torch.from_numpy(x).requires_grad_() for x in several("f16", 24, 40)]
    w, bias = torch.from_numpy(integers("f16", 40, 32)).requires_grad_(), torch.zeros(3, 1, 32, requires_grad=True)
    found = op.mm_array(a, [w] * 3, epilogue=lambda accum, bias: accum + bias, args={"bias": bias}, device="cpu")
    torch.stack(found).float().sum().backward()
    ones = torch.ones(24, 32, dtype=torch.float64)
    assert torch.equal(w.grad.double(), sum(x.detach().double().T @ ones for x in a))
    assert torch.equal(bias.grad, torch.full((3, 1, 32), 24.0))


A, B = several("f16", 16, 24), several("f16", 24, 32)
SHARED = integers("f16", 16, 40)
STACK = integers("f16", 3, 16, 24)
B24 = several("f16", 24, 24)


def paired(accum: Any) -> Any:
    even, odd = op.epilogue.pairs(accum)
    return even * odd


def several_results(accum: Any) -> Any:
    return {"D": accum, "F": accum}


BAD: list[tuple[type[op.OpError], str, Callable[[], object]]] = [
    (op.ShapeError, "mm_array: Bs has 2 matrices, but As has 3; pass 3", lambda: op.mm_array(A, B[:2])),
    (op.ShapeError, "mm_array: As is empty; pass at least one matrix", lambda: op.mm_array([], [])),
    (op.DtypeError, "mm_array: As is an array of f16; pass a list of arrays, or (L,) addresses as i64",
     lambda: op.mm_array(A[0], B)),
    (op.ShapeError, "mm_array: (M, N, K) is (8, 32, 24) at index 1, but (16, 32, 24) at index 0; all must be equal",
     lambda: op.mm_array([A[0], A[1][:8], A[2]], B, device="cpu")),
    (op.ShapeError, "mm_array: B has shape (16, 24), but A has shape (16, 24); pass B of (24, N)",
     lambda: op.mm_array(A, A, device="cpu")),
    (op.ShapeError, "mm_array: A is given by addresses; pass shape=(M, N, K) and element",
     lambda: op.mm_array([1, 2], [3, 4])),
    (op.ShapeError, "mm_array: A is given by addresses; pass outs",
     lambda: op.mm_array([1, 2], [3, 4], shape=(1, 1, 1), element="f16")),
    (op.DtypeError, "mm_array: b has dtype i8, but a has dtype f16; pass operands of one dtype",
     lambda: op.mm_array(A, [x.astype(np.int8) for x in B], device="cpu")),
    (op.DtypeError, "mm_array: A has f32",
     lambda: op.mm_array([A[0], A[1].astype("f4"), A[2]], B, device="cpu")),
    (op.LayoutError, "mm_array: D of matrix 1 shares memory with D of matrix 0",
     lambda: op.mm_array(A[:2], B[:2], [SHARED[:, :32], SHARED[:, 8:]], device="cpu")),
    (op.UnsupportedError, "mm_array: math='promote' is not supported; use bmm",
     lambda: op.mm_array(A, B, math="promote", device="cpu")),
    (op.DeviceError, "mm_array: no GPU was found", lambda: op.mm_array(A, B)),
    (op.ShapeError, "mm_array: As has shape (1, 16, 24) and Bs has shape (24, 32); pass rank-2 arrays",
     lambda: op.mm_array([A[0][None]], B[:1], epilogue=lambda accum: accum, device="cpu")),
    (op.EpilogueError, "mm_array: alpha cannot be combined with epilogue; compute it in the epilogue function",
     lambda: op.mm_array(A, B, alpha=2.0, epilogue=lambda accum: accum, device="cpu")),
    (op.UnsupportedError, (
        "mm_array: an epilogue needs a single launch, which this call does not allow: 2 split-K slices; use bmm, "
        "or omit epilogue"
    ),
     lambda: op.mm_array(A, B, epilogue=lambda accum: accum, split_k=2, device="cpu")),
    (op.LayoutError, "mm_array: outs is column-major; pairs() and whole_rows=True need row-major results",
     lambda: op.mm_array(A, B, [columns(SHARED[:, :16]) for _ in A], epilogue=paired, device="cpu")),
    (op.LayoutError, "mm_array: F shares memory with A of matrix 0",
     lambda: op.mm_array(list(STACK), B24, epilogue=several_results, args={"F": STACK}, device="cpu")),
]  # fmt: skip


@pytest.mark.parametrize("error, message, call", BAD, ids=[m[:60] for _, m, _ in BAD])
def test_invalid_arguments_are_rejected(error: Any, message: str, call: Callable[[], object]) -> None:
    with pytest.raises(error) as found:
        call()
    assert str(found.value).startswith(message)


@pytest.mark.slow
def test_unsupported_gradients_are_rejected() -> None:
    torch = pytest.importorskip("torch")
    a, b = [torch.from_numpy(x).requires_grad_() for x in A], [torch.from_numpy(x) for x in B]
    bytes_ = [x.detach().to(torch.float8_e4m3fn).requires_grad_() for x in a]
    addresses = [x.ctypes.data for x in B]

    def twice() -> object:
        found = op.mm_array(a, b, device="cpu")
        return torch.autograd.grad(found, a, [torch.ones_like(x) for x in found], create_graph=True)

    def given(*lists: Any, **more: Any) -> Callable[[], object]:
        return lambda: op.mm_array(*lists, **more, device="cpu")

    cases: list[tuple[type[op.OpError], str, Callable[[], object]]] = [
        (op.UnsupportedError, "mm_array: outs has no gradient; omit outs, or call under torch.no_grad()",
         given(a, b, [torch.empty(16, 32).half() for _ in a])),
        (op.UnsupportedError, "mm_array: hook has no gradient; use an epilogue, or call under torch.no_grad()",
         given(a, b, hook=lambda x, row, column: x)),
        (op.UnsupportedError, "mm_array: Bs contains a value of type int, which has no gradient; pass torch tensors",
         given(a, addresses)),
        (op.DtypeError, "mm_array: As has dtype f8E4M3FN, which has no gradients; call it under torch.no_grad()",
         given(bytes_, bytes_)),
        (op.UnsupportedError, "mm_array: second derivatives are not supported; use bmm", twice),
    ]  # fmt: skip
    for kind, said, call in cases:
        with pytest.raises(op.OpError) as told:
            call()
        assert (type(told.value), str(told.value)) == (kind, said)
