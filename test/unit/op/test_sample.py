"""``op.sample`` and ``op.topk`` on the interpreter, compared with float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.kernels.common.philox import drawn_of_arrays
from cute_dialect.kernels.rows.sample import choose_config
from cute_dialect.kernels.rows.topk import TopkConfig, longest_row
from cute_dialect.op.execute.rows import sample_kernel, topk_kernel

BF16 = ml_dtypes.bfloat16


def logits_of(rows: int, n: int, dtype: Any = np.float32) -> Any:
    """Multiples of 1/4, so that many are equal."""
    x = np.random.default_rng([rows, n]).standard_normal((rows, n)) * 2
    return (np.round(x * 4) / 4).astype(dtype)


def kept_powers(x: Any, temperature: Any, top_k: Any, top_p: Any, min_p: Any) -> Any:
    """Return the exponentials of the tokens of a row that are kept, and 0 for the others."""
    if temperature == 0:
        temperature, top_k = 1.0, 1
    x = x.astype(np.float64)
    powers: Any = np.exp((x - x.max()) / temperature)
    order = np.argsort(-x, kind="stable")
    ordered = powers[order]
    count = min(top_k or len(x), len(x))
    reached = np.cumsum(ordered[:count])
    if top_p < 1:
        count = min(count, int(np.searchsorted(reached, top_p * reached[-1] * (1 - 1e-6))) + 1)
    kept = order[:count]
    found = np.zeros(len(x))
    found[kept] = powers[kept]
    return np.where(found >= min_p, found, 0)


def check(x: Any, seed: int = 7, offset: int = 3, **settings: Any) -> Any:
    """Sample tokens and compare them with the inverse of the exact distribution function."""
    tokens = op.sample(x, seed=seed, offset=offset, device="cpu", checks="all", **settings)
    check_tokens(tokens, x, seed, offset, **settings)
    return tokens


def check_tokens(tokens: Any, x: Any, seed: int, offset: int, **settings: Any) -> None:
    how: dict[str, Any] = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, **settings}
    drawn = drawn_of_arrays(np.zeros((len(x), 1), np.float64), seed, offset)[:, 0]
    assert tokens.dtype == np.int32
    for i, token in enumerate(tokens):
        powers = kept_powers(x[i], *[v[i] if hasattr(v, "shape") else v for v in how.values()])
        up_to = np.cumsum(powers) / powers.sum()
        assert powers[token] > 0, "a token that is not kept"
        assert up_to[token] - powers[token] / powers.sum() - 1e-5 <= drawn[i] <= up_to[token] + 1e-5


@pytest.mark.end_to_end
@pytest.mark.sample("x0-settings0")
@pytest.mark.parametrize(
    "settings",
    [{}, {"temperature": 0.5}, {"min_p": 0.1}, {"top_k": 3}, {"top_p": 0.6}, {"top_k": 20, "top_p": 0.7, "min_p": 0.05},
     {"temperature": 0}, {"top_k": 10**6, "top_p": 0.0}],
)  # fmt: skip
@pytest.mark.parametrize(
    "x", [logits_of(5, 700), logits_of(4, 50, BF16), logits_of(3, 1100, np.float16)[:, 5:], logits_of(7, 3).T.copy()]
)
def test_tokens(x: Any, settings: dict[str, Any]) -> None:
    """Several segments, parts of one, unaligned rows, and more rows than columns."""
    check(x, **settings)


@pytest.mark.slow
def test_settings_of_rows() -> None:
    """Arrays with an element per row, and arrays of seed and offset."""
    x = logits_of(4, 64, BF16)
    settings: dict[str, Any] = {
        "temperature": np.array([1, 0, 0.5, 2], np.float32), "top_k": np.array([0, 5, 2, 64], np.int32),
        "top_p": np.array([0.5, 1, 1, 0.9], np.float32), "min_p": np.array([0, 0, 0, 0.1], np.float32),
    }  # fmt: skip
    tokens = check(x, **settings)
    arrays: dict[str, Any] = {"seed": np.array([7], np.int64), "offset": np.array(3, np.int64)}
    np.testing.assert_array_equal(tokens, op.sample(x, device="cpu", **settings, **arrays))


@pytest.mark.slow
def test_frequencies() -> None:
    """4096 draws from one distribution: each frequency is within 4.5 standard deviations."""
    p = np.array([0.4, 0.3, 0.2, 0.05, 0.05])
    x = np.broadcast_to(np.log(p).astype(np.float32), (4096, 5))
    found = np.bincount(op.sample(x, seed=1, device="cpu"), minlength=5) / 4096
    assert (np.abs(found - p) < 4.5 * np.sqrt(p * (1 - p) / 4096)).all()
    kept = np.bincount(op.sample(x[:512], seed=1, top_k=4, device="cpu"), minlength=5)
    assert kept[4] == 0 and kept[3] > 0, "of equal probabilities the first one is kept"


@pytest.mark.slow
def test_special_values() -> None:
    inf = np.inf
    x = np.array([[-inf, -inf, 3.0, -inf], [-inf, 0, -inf, -inf]], np.float32)
    np.testing.assert_array_equal(op.sample(x, device="cpu"), [2, 1])
    wrong = np.array([[np.nan, 1, 2], [inf, 0, inf], [-inf, -inf, -inf]], np.float32)
    assert ((op.sample(wrong, device="cpu") >= 0) & (op.sample(wrong, device="cpu") < 3)).all()
    assert op.sample(np.zeros((0, 4), np.float32), device="cpu").shape == (0,)
    assert op.sample(np.zeros(4, np.float32), device="cpu").shape == ()


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.sample("settings0")
@pytest.mark.parametrize("settings", [{"top_p": 0.5}, {"top_k": 2, "top_p": 0.5, "min_p": 0.1}])
def test_special_values_with_filters(settings: dict[str, Any]) -> None:
    """Rows of NaN or infinities give any token; other rows of the call are correct."""
    x = np.array([[np.nan, 1, 2], [np.inf, 0, np.inf], [-np.inf] * 3, [0, 9, 0]], np.float32)
    tokens = op.sample(x, seed=1, device="cpu", **settings)
    assert ((tokens >= 0) & (tokens < 3)).all() and tokens[3] == 1


@pytest.mark.end_to_end
def test_coldest_temperature() -> None:
    """Temperatures whose reciprocals are infinite in f32, or that are 0 in f32, select the most probable token."""
    x = logits_of(8, 100)
    x[np.arange(8), np.arange(8) * 12] = 99
    for temperature in (1e-40, 1e-300):
        np.testing.assert_array_equal(op.sample(x, temperature=temperature, seed=1, device="cpu"), np.arange(8) * 12)


WRONG = {
    "temperature": ([np.nan, -1, -np.inf, np.inf, 1e-40], [1, 0, 0, 2.0**126, 2.0**-126]),
    "top_k": ([-1, -(2**31), -7, -2, 2], [0, 0, 0, 0, 2]),
    "top_p": ([np.nan, -1, 2, np.inf, -np.inf], [1, 0, 1, 1, 0]),
    "min_p": ([np.nan, -1, 2, np.inf, -np.inf], [0, 0, 1, 1, 0]),
}
"""Elements outside the limits of settings, and those that the kernel uses in their places."""


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.sample("names0-2048")
@pytest.mark.parametrize("capacity", [2048, 2])
@pytest.mark.parametrize("names", [("temperature",), ("top_p",), ("min_p",), ("top_p", "min_p"), tuple(WRONG)])
def test_elements_outside_the_limits(names: tuple[str, ...], capacity: int) -> None:
    """The kernel clamps elements that the host cannot read: their tokens are those of elements within the limits."""
    x = logits_of(5, 50)
    letters = "".join({"temperature": "k", "top_k": "", "top_p": "p", "min_p": "m"}[n] for n in names)
    c = choose_config("f32", 50, letters, names)
    assert c is not None
    kernel: Any = sample_kernel(c._replace(capacity=capacity)).compiled(cpu=True).kernel("launch")

    def drawn(which: int) -> Any:
        tokens = np.full(5, -1, np.int32)
        arrays = {n: np.array(WRONG[n][which], np.int32 if n == "top_k" else np.float32) for n in names}
        flat = [arrays[n] for n in WRONG if n in names]
        kernel(x, tokens, 1.0, 0, 1.0, 0.0, 7, 3, *flat, device="cpu", checks=("race", "uninit"))
        return tokens, arrays

    found, (wanted, arrays) = drawn(0)[0], drawn(1)
    np.testing.assert_array_equal(found, wanted)
    # The numbers within the limits give the tokens of the exact distribution.
    np.testing.assert_array_equal(wanted, check(x, **arrays))


@pytest.mark.parametrize("name", WRONG)
def test_refused_elements(name: str) -> None:
    """The host refuses elements of arrays in CPU memory, of any rank."""
    kind = np.int32 if name == "top_k" else np.float32
    for wrong in [w for w, used in zip(*WRONG[name]) if w != used and w != 1e-40]:
        settings = np.array([[1, wrong]], kind)
        with pytest.raises(op.ArgumentError, match=rf"^sample: {name} has an element of .*; each must be "):
            op.sample(np.zeros((1, 2, 4), np.float32), device="cpu", **{name: settings})


SCHEDULES = ["adversarial", "reverse", "random", "round-robin"]


@pytest.mark.slow
@pytest.mark.parametrize("capacity", [2048, 16])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules(schedule: str, capacity: int) -> None:
    """Tokens from candidates, and from passes over rows with more equal logits than candidates."""
    rows = 2 if capacity > 16 else 1
    x, c = logits_of(rows, 1100, BF16), choose_config("bf16", 1100, "kp")
    assert c is not None and c.threads == 64
    tokens = np.full(rows, -1, np.int32)
    kernel: Any = sample_kernel(c._replace(capacity=capacity)).compiled(cpu=True).kernel("launch")
    how: dict[str, Any] = {"device": "cpu", "checks": ("race", "uninit"), "schedule": schedule, "seed": 5}
    kernel(x, tokens, 1.0, 30, 0.8, 0.0, 7, 3, **how)
    check_tokens(tokens, x, 7, 3, top_k=30, top_p=0.8)


@pytest.mark.slow
@pytest.mark.end_to_end  # Two kernels are compiled and run.
def test_seeds_follow_the_generator() -> None:
    """Calls without a seed differ, and the seed of the library repeats them; temperature 0 draws none."""
    x = np.zeros((9, 40), np.float32)
    np.random.seed(3)
    first, second = (op.sample(x, device="cpu") for _ in range(2))
    np.random.seed(3)
    op.sample(x, temperature=0, device="cpu")
    assert np.array_equal(op.sample(x, device="cpu"), first) and not np.array_equal(first, second)
    torch = pytest.importorskip("torch")
    torch.manual_seed(3)
    drawn, other = (op.sample(torch.from_numpy(x), device="cpu") for _ in range(2))
    torch.manual_seed(3)
    state = torch.randint(1 << 62, (2,))
    assert torch.equal(op.sample(torch.from_numpy(x), seed=state[:1], device="cpu"), drawn)
    assert not torch.equal(drawn, other)


@pytest.mark.end_to_end
def test_operator() -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor(logits_of(3, 40))

    def draw(x: Any, offset: Any) -> Any:
        return op.sample(x, temperature=0.7, seed=5, offset=offset, device="cpu")

    compiled, offset = torch.compile(draw, fullgraph=True, backend="aot_eager"), torch.tensor([9])
    assert torch.equal(compiled(x, offset), op.sample(x, temperature=0.7, seed=5, offset=9, device="cpu"))
    given = (x, *[None] * 5, offset, 0.7, 0, 1.0, 0.0, 5, 0)
    torch.library.opcheck(torch.ops.cute.sample.default, given, test_utils=("test_schema", "test_faketensor"))


def test_explanation() -> None:
    found = op.explain(op.sample, (4096, 32000), element="f32", top_k=50)
    assert found.kernel == "sample-f32-64-256-k" and found.bytes == 4096 * 32001 * 4
    assert str(found).startswith("sample of 4096 x 32000 f32\n") and "in one pass\n" in str(found)
    assert "10 more passes" in str(op.explain(op.sample, (4096, 32000), element="bf16", top_p=0.9))
    assert "in one pass" in str(op.explain(op.sample, logits_of(2, 30)))


# ---------------------------------------------------------------------------------------------------------------- topk


def check_topk(x: Any, k: int, largest: bool = True, **run: Any) -> None:
    values, indices = op.topk(x, k, largest=largest, device="cpu", checks="all", **run)
    # A stable sort; NaN is the greatest element.
    keys = np.where(np.isnan(x.astype(np.float64)), np.inf, x.astype(np.float64)) * (-1 if largest else 1)
    keys[np.isnan(x.astype(np.float64))] *= 2
    order = np.argsort(np.where(np.isnan(keys), 0, keys), axis=-1, kind="stable")[..., :k]
    assert values.dtype == x.dtype and indices.dtype == np.int64
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, -1))


@pytest.mark.slow  # test_topk_of_equal_elements is quick
@pytest.mark.parametrize("k", [1, 3, 20, 40])
@pytest.mark.parametrize(
    "x",
    [logits_of(3, 1100), logits_of(4, 50, BF16), logits_of(3, 1100, np.float16)[:, 5:], logits_of(64, 3).T.copy(),
     np.random.default_rng(1).standard_normal((2, 2, 700)).astype(np.float32)],
)  # fmt: skip
@pytest.mark.parametrize("largest", [True, False])
def test_topk(largest: bool, x: Any, k: int) -> None:
    check_topk(x, k, largest)


@pytest.mark.slow
def test_topk_of_special_values() -> None:
    inf, nan = np.inf, np.nan
    x = np.array([[1, nan, -inf, inf, 0.0, -0.0, nan, 2]], np.float32)
    assert op.topk(x, 8, device="cpu")[1].tolist() == [[1, 6, 3, 7, 0, 4, 5, 2]]
    assert op.topk(x, 8, largest=False, device="cpu")[1].tolist() == [[2, 4, 5, 0, 7, 3, 1, 6]]
    values, indices = op.topk(x[:0], 2, device="cpu")
    assert values.shape == indices.shape == (0, 2) and op.topk(x, 0, device="cpu")[0].shape == (1, 0)
    assert op.topk(x[0], 1, device="cpu")[1].tolist() == [1]


@pytest.mark.end_to_end
@pytest.mark.sample("adversarial-False")
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_topk_of_equal_elements(schedule: str, largest: bool) -> None:
    """More elements are equal than there are candidates, in groups and within one; the results are NaN before."""
    c = TopkConfig("f32", threads=64, largest=largest, capacity=16)
    kernel: Any = topk_kernel(c).compiled(cpu=True).kernel("launch")
    x = np.random.default_rng(3).integers(-1, 2, (3, 330)).astype(np.float32)
    x[1], x[2, :320] = 0, -1 if largest else 1
    values, indices = np.full((3, 14), np.nan, np.float32), np.full((3, 14), -1, np.int64)
    kernel(x, values, indices, device="cpu", checks="all", schedule=schedule, seed=2)
    order = np.argsort(-x if largest else x, axis=-1, kind="stable")[:, :14]
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, -1))


@pytest.mark.slow
@pytest.mark.end_to_end
def test_topk_operator() -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor(logits_of(3, 40)).requires_grad_()
    weights = torch.randn(3, 5)
    values, indices = op.topk(x, 5, device="cpu")
    assert not indices.requires_grad
    (values * weights).sum().backward()
    wanted = torch.zeros(3, 40).scatter(-1, indices, weights)
    assert torch.equal(x.grad, wanted)
    x.grad = None

    def select(x: Any) -> Any:
        return op.topk(x, 5, device="cpu")

    compiled = torch.compile(select, fullgraph=True, backend="aot_eager")
    again, same = compiled(x)
    (again * weights).sum().backward()
    assert torch.equal(again, values) and torch.equal(same, indices) and torch.equal(x.grad, wanted)
    torch.library.opcheck(torch.ops.cute.topk.default, (x, 5, -1, True))
    assert str(op.explain(op.topk, (4096, 32000), 50, element="f32")).startswith("topk of 4096 x 32000 f32\n")


X = np.zeros((3, 8), np.float32)
BAD: dict[str, Any] = {"k": 3}


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: op.sample(X, temperature=-1.0, device="cpu"), op.ArgumentError, "temperature is -1.0; pass 0 or a"),
        (lambda: op.sample(X, top_k=-1, device="cpu"), op.ArgumentError, "top_k is -1; pass the number of tokens"),
        (lambda: op.sample(X, top_p=1.5, device="cpu"), op.ArgumentError, "top_p is 1.5; pass a number from 0 to 1"),
        (lambda: op.sample(X, min_p=None, device="cpu"), op.ArgumentError, "min_p is None; pass a number from 0 to 1"),
        (lambda: op.sample(X, seed=1.0, device="cpu"), op.ArgumentError, "seed is 1.0; pass an integer of 64 bits"),
        (lambda: op.sample(X[:, :0], device="cpu"), op.ShapeError, "rows must have at least one element"),
        (lambda: op.sample(X, top_p=X[0], device="cpu"), op.ShapeError, r"top_p has shape \(8,\); it must have \(3,\)"),
        (lambda: op.sample(X, top_k=X[:, 0], device="cpu"), op.DtypeError, "top_k has dtype f32; it must have i32"),
        (lambda: op.sample(X, seed=np.zeros(2, "i8"), device="cpu"), op.ShapeError, "seed has shape"),
        (lambda: op.sample(X.astype("i4"), device="cpu"), op.DtypeError, "logits has dtype i32; it must have one of"),
        (lambda: op.sample(X, device="cpu", **BAD), op.ArgumentError, r"sample\(\) has no argument 'k'"),
        (lambda: op.sample(X, generator=1), op.ArgumentError, "no argument 'generator'; pass seed"),
        (lambda: op.explain(op.sample, (1, 1 << 23)), op.UnsupportedError, "rows of 8388608 logits are too long"),
        (lambda: op.topk(X, 9, device="cpu"), op.ArgumentError, "topk: k is 9; pass a number from 0 to the length of"),
        (lambda: op.topk(X, 2.0, device="cpu"), op.ArgumentError, "topk: k is 2.0; pass a number"),  # pyright: ignore
        (lambda: op.topk(X, 2, 0, device="cpu"), op.ShapeError, "dim=0 is not the last dimension, 1"),
        (lambda: op.topk(X, 2, largest=1, device="cpu"), op.ArgumentError, "largest is 1; pass True"),  # pyright: ignore
        (lambda: op.topk(X.astype("i4"), 2, device="cpu"), op.DtypeError, "topk: x has dtype i32; it must have one"),
        (lambda: op.explain(op.topk, (2, 5000), 2049), op.UnsupportedError, "k=2049 exceeds the limit of 2048"),
        (
            lambda: op.explain(op.topk, (2, longest_row("f16") + 1), 2), op.UnsupportedError,
            "rows of 2097153 elements are too long; pass at most 2097152",
        ),
        (lambda: op.topk(X, 2, axis=1), op.ArgumentError, "no argument 'axis'; pass dim"),  # pyright: ignore
        (lambda: op.explain(op.sample, (0, 8)), op.ShapeError, "must not be empty"),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[op.OpError], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.slow
def test_numbers_of_numpy() -> None:
    found = op.sample(X, temperature=np.float32(0.5), top_k=np.int64(3), seed=np.uint8(7), device="cpu")
    assert np.array_equal(found, op.sample(X, temperature=0.5, top_k=3, seed=7, device="cpu"))
