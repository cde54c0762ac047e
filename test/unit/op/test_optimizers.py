"""``op.adamw_`` on the interpreter, compared with float64 and with torch."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.kernels.elementwise.adamw import CHUNK, AdamwConfig, adamw_text, table_of
from cute_dialect.op.execute.array_call import RowKernel
from cute_dialect.op.functions.optimizers import AdamwSettings

BF16: Any = ml_dtypes.bfloat16
ADAMW: Any = op.adamw_  # takes unpacked lists
HOW: dict[str, Any] = {"lr": 0.02, "beta1": 0.8, "beta2": 0.99, "eps": 1e-6, "weight_decay": 0.1}


def arrays_of(shape: tuple[int, ...], dtype: Any, state: Any, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng([*shape, seed])
    p, g = (rng.standard_normal(shape).astype(dtype) for _ in range(2))
    return [p, g, (rng.standard_normal(shape) * 0.1).astype(state), (rng.random(shape) * 0.1).astype(state)]


def exact(arrays: Any, step: int, scale: float = 1.0, maximize: bool = False) -> list[Any]:
    p, g, m, v = (x.astype(np.float64) for x in arrays)
    g = (-g if maximize else g) / scale
    b1, b2 = HOW["beta1"], HOW["beta2"]
    p, m, v = p * (1 - HOW["lr"] * HOW["weight_decay"]), b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
    p = p - HOW["lr"] / (1 - b1**step) * m / (np.sqrt(v / (1 - b2**step)) + HOW["eps"])
    return [p, m, v]


def compare(found: Any, wanted: Any) -> None:
    unit = {"float32": 2.0**-22, "bfloat16": 2.0**-8, "float16": 2.0**-10}[str(found.dtype)]
    assert np.abs(found.astype(np.float64) - wanted).max(initial=0) <= unit * max(1.0, np.abs(wanted).max(initial=0))


@pytest.mark.end_to_end
@pytest.mark.sample("7-bfloat16-float32")
@pytest.mark.parametrize(
    ("dtype", "state"), [(np.float32, np.float32), (BF16, np.float32), (BF16, BF16), (np.float16, np.float32)]
)
@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_step(step: int, dtype: Any, state: Any) -> None:
    """Parameters of several sizes, one of no elements, and one at an odd address."""
    made = [arrays_of(shape, dtype, state) for shape in ((3, 5), (0, 4), (CHUNK + 9,), (64,))]
    odd = np.zeros(15, dtype)[1:]
    odd[:] = made[3][0][:14]
    made[3] = [odd, *[x[:14] for x in made[3][1:]]]
    wanted = [exact(x, step) for x in made]
    ADAMW(*[list(x) for x in zip(*made)], step, **HOW, device="cpu", checks="all")
    for (p, _, m, v), want in zip(made, wanted):
        for found, x in zip((p, m, v), want):
            compare(found, x)


def test_transposed_gradients() -> None:
    made = arrays_of((6, 10), np.float32, np.float32)
    made[1] = np.asfortranarray(made[1])
    wanted = exact(made, 2)
    ADAMW(*[[x] for x in made], 2, **HOW, device="cpu")
    for found, x in zip((made[0], *made[2:]), wanted):
        compare(found, x)


def test_arrays_in_place_of_numbers() -> None:
    made, step = arrays_of((40,), np.float32, np.float32), np.array([3.0], np.float32)
    same = [x.copy() for x in made]
    lr = np.array(HOW["lr"], np.float32)
    scale, none, some = (np.array([x], np.float32) for x in (4.0, 0.0, 1.0))
    how: dict[str, Any] = {**HOW, "lr": lr, "grad_scale": scale, "device": "cpu", "maximize": True}
    ADAMW(*[[x] for x in made], step, **how, found_inf=some)
    for x, y in zip(made, same):
        np.testing.assert_array_equal(x, y)
    wanted = exact(made, 3, 4.0, True)
    ADAMW(*[[x] for x in made], step, **how, found_inf=none)
    for found, x in zip((made[0], *made[2:]), wanted):
        compare(found, x)


@pytest.mark.end_to_end
@pytest.mark.sample("4-random", "1-reverse")
@pytest.mark.parametrize("schedule", ["random", "reverse", "adversarial"])
@pytest.mark.parametrize("vector", [4, 1])
def test_one_launch(vector: int, schedule: str) -> None:
    """Parameters in one allocation, as the kernel finds those on a GPU; NaN between them stays."""
    counts, offsets = (5, CHUNK + 4, 64), (0, 16, CHUNK + 64)
    size = offsets[-1] + counts[-1]
    memory = arrays_of((size,), np.float32, np.float32)
    inside = np.zeros(size, bool)
    for n, at in zip(counts, offsets):
        inside[at : at + n] = True
    for x in memory:
        x[~inside] = np.nan
    wanted = exact([x[inside] for x in memory], 2)
    table = table_of(counts, [[at] * 4 for at in offsets])
    c = AdamwConfig("f32", "f32", vector)
    kernel: Any = RowKernel(c.name, adamw_text, (c,)).compiled(cpu=True).kernel("launch")
    numbers = AdamwSettings(2.0, **HOW).numbers()
    kernel(*memory, table, *numbers, device="cpu", checks="all", schedule=schedule, seed=3)
    for found, x in zip((memory[0], *memory[2:]), wanted):
        compare(found[inside], x)
        assert np.isnan(found[~inside]).all()


@pytest.mark.end_to_end
def test_torch() -> None:
    """Three steps of a small model equal those of ``torch.optim.AdamW``; gradients may flow through later steps."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    ours = [torch.randn(shape, requires_grad=True) for shape in ((5, 7), (7,))]
    theirs = [p.detach().clone().requires_grad_() for p in ours]
    peer = torch.optim.AdamW(theirs, lr=0.02, betas=(0.8, 0.99), eps=1e-6, weight_decay=0.1)
    m, v, x = [torch.zeros_like(p) for p in ours], [torch.zeros_like(p) for p in ours], torch.randn(3, 5)
    for step in range(1, 4):
        for params in (ours, theirs):
            grads = torch.autograd.grad((x @ params[0] + params[1]).square().sum(), params)
            if params is ours:
                versions = [p._version for p in ours]
                ADAMW(ours, list(grads), m, v, step, **HOW, device="cpu")
                assert all(p._version > before for p, before in zip(ours, versions))
            else:
                for p, g in zip(theirs, grads):
                    p.grad = g
                peer.step()
        for p, q in zip(ours, theirs):
            assert torch.allclose(p, q, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.end_to_end
def test_compiled() -> None:
    torch = pytest.importorskip("torch")
    made = [[torch.tensor(x)] for x in arrays_of((12,), np.float32, np.float32)]
    same = [[x[0].clone()] for x in made]

    def update(p: Any, g: Any, m: Any, v: Any, step: Any) -> Any:
        ADAMW([p], [g], [m], [v], step, **HOW, device="cpu")
        return p + 1

    step = torch.tensor([2.0])
    found = torch.compile(update, fullgraph=True, backend="aot_eager")(*[x[0] for x in made], step)
    ADAMW(*same, step, **HOW, device="cpu")
    assert all(torch.equal(x[0], y[0]) for x, y in zip(made, same)) and torch.equal(found, made[0][0] + 1)


def test_no_gradient() -> None:
    """A parameter without a gradient stays, and may have no moments."""
    made = [arrays_of((n,), np.float32, np.float32) for n in (3, 5, 7)]
    same, wanted = made[1][0].copy(), [exact(made[i], 2) for i in (0, 2)]
    params, grads, m, v = [list(x) for x in zip(*made)]
    grads[1] = m[1] = v[1] = None
    ADAMW(params, grads, m, v, 2, **HOW, device="cpu")
    for i, want in zip((0, 2), wanted):
        for found, x in zip((params[i], m[i], v[i]), want):
            compare(found, x)
    np.testing.assert_array_equal(params[1], same)
    ADAMW([params[1]], [None], [None], [None], 2, device="cpu")
    np.testing.assert_array_equal(params[1], same)
    with pytest.raises(op.ShapeError, match=r"grads\[2\] has shape \(2,\)"):  # numbered as the caller does
        ADAMW(params, [*grads[:2], grads[2][:2]], m, v, 2, device="cpu")


def fresh() -> list[Any]:
    return [np.ones(8, np.float32) for _ in range(8)]


def overlapping(first: int, second: int) -> list[Any]:
    """Lists of two parameters, where two of the eight arrays share four elements."""
    arrays, memory = fresh(), np.ones(12, np.float32)
    arrays[first], arrays[second] = memory[:8], memory[4:]
    return [arrays[i : i + 2] for i in range(0, 8, 2)]


NAMES = [f"{name}[{i}]" for name in ("params", "grads", "exp_avgs", "exp_avg_sqs") for i in range(2)]


@pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 0), (2, 0), (1, 3), (4, 6), (7, 5), (6, 3), (2, 7)])
def test_overlap(first: int, second: int) -> None:
    with pytest.raises(op.LayoutError) as e:
        ADAMW(*overlapping(first, second), 1, device="cpu")
    assert f"{NAMES[second]} overlaps {NAMES[first]}; pass" in str(e.value)


def test_overlap_of_what_is_read() -> None:
    """Gradients may share memory; a parameter that comes twice, or is its own gradient, is refused."""
    ADAMW(*overlapping(2, 3), 1, device="cpu")
    p, _, m, v, *more = fresh()
    for lists in (([p, p], more[:2], [m, more[2]], [v, more[3]]), ([p], [p], [m], [v]), ([p], [v], [m], [m])):
        with pytest.raises(op.LayoutError, match="overlaps"):
            ADAMW(*lists, 1, device="cpu")


@pytest.mark.slow
@pytest.mark.end_to_end
def test_compiled_without_a_gradient() -> None:
    torch = pytest.importorskip("torch")
    p, q, g, m, v = (torch.full((4,), x) for x in (1.0, 2.0, 0.5, 0.0, 0.0))

    def update(p: Any, q: Any, g: Any, m: Any, v: Any, step: Any) -> Any:
        ADAMW([q, p], [None, g], [None, m], [None, v], step, **HOW, device="cpu")
        return p + 1

    wanted = exact([x.numpy() for x in (p, g, m, v)], 2)
    torch.compile(update, fullgraph=True, backend="aot_eager")(p, q, g, m, v, torch.tensor([2.0]))
    for found, x in zip((p, m, v), wanted):
        compare(found.numpy(), x)
    assert torch.equal(q, torch.full((4,), 2.0))


X = [np.ones(4, np.float32)]
LISTS: Any = (X, X, X, X)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ADAMW(X[0], X, X, X, 1), op.ArgumentError, "params is of type ndarray; pass a list"),
        (lambda: ADAMW(X, X, X, [], 1), op.ArgumentError, "exp_avg_sqs has 0 arrays for 1 params"),
        (lambda: ADAMW(X, X, [None], X, 1), op.ArgumentError, r"exp_avgs\[0\] is None; pass an array, or None"),
        (lambda: ADAMW([None], X, X, X, 1), op.ArgumentError, r"params\[0\] is None"),
        (lambda: ADAMW(*LISTS, 0), op.ArgumentError, "step is 0; pass a number of at least 1, or an f32 array"),
        (lambda: ADAMW(*LISTS, 1, beta1=1.0), op.ArgumentError, "beta1 is 1.0; pass a number from 0 to less"),
        (lambda: ADAMW(*LISTS, 1, lr=-1.0), op.ArgumentError, "lr is -1.0; pass a finite number"),
        (lambda: ADAMW(*LISTS, 1, betas=(0, 1)), op.ArgumentError, "no argument 'betas'; pass beta1 and beta2"),
        (
            lambda: ADAMW(X, [X[0].astype(BF16)], X, X, 1, device="cpu"), op.DtypeError,
            r"grads\[0\] has dtype bf16; it must have f32",
        ),
        (lambda: ADAMW(X, X, [X[0][:2]], X, 1, device="cpu"), op.ShapeError, r"exp_avgs\[0\] has shape \(2,\)"),
        (
            lambda: ADAMW([np.ones(8, "f4")[::2]], X, X, X, 1, device="cpu"), op.LayoutError,
            r"params\[0\] has strides \(2,\); pass contiguous arrays",
        ),
        (
            lambda: ADAMW(*[[x] for x in fresh()[:4]], np.ones(2, np.float32), device="cpu"), op.ShapeError,
            "step has shape",
        ),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[op.OpError], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"step": np.zeros(1, np.float32)}, "step is 0.0; pass a number of at least 1, or an f32 array of one element"),
        ({"step": np.full((), np.nan, np.float32)}, "step is nan; pass a number of at least 1, or an f32 array of one"),
        ({"step": np.ones(1, np.int64)}, "step has dtype i64; pass a number or an f32 array of one element"),
        ({"step": 1, "lr": np.full(1, -1, np.float32)}, "lr is -1.0; pass a finite number of at least 0, or an array"),
        ({"step": np.int64(0)}, "step is "),
        ({"step": 1, "found_inf": np.zeros(1, np.int32)}, "found_inf has dtype i32; pass an f32 array of one element"),
    ],
    ids=range(6),
)
def test_refused_scalars(given: dict[str, Any], message: str) -> None:
    """Values of arrays are checked on the CPU; nothing is written."""
    lists = [[np.ones(3, np.float32)] for _ in range(4)]
    with pytest.raises(op.OpError) as raised:
        ADAMW(*lists, **given, device="cpu")
    assert str(raised.value).startswith(f"adamw_: {message}")
    assert all((x[0] == 1).all() for x in lists)


def test_a_skipped_step_may_be_0() -> None:
    """With ``found_inf`` nothing is computed, so the step of a first call that is skipped may be 0."""
    lists = [[np.ones(3, np.float32)] for _ in range(4)]
    ADAMW(*lists, np.zeros(1, np.float32), found_inf=np.ones(1, np.float32), device="cpu")
    assert all((x[0] == 1).all() for x in lists)
