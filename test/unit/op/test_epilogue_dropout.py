"""``random`` and ``dropout`` in epilogues give the same numbers in kernels as on numpy and torch arrays."""

# Traced functions have no type annotations.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from refused_calls import without_place

from cute_dialect import op
from cute_dialect.op.epilogue import FakeTensor, dropout, pairs, permute, random, trace
from cute_dialect.op.errors import EpilogueError, OpError


def factors(*shape: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(sum(shape))
    *more, m, n, k = shape
    return tuple(rng.integers(-2, 3, (*more, *s)).astype(np.float16) for s in ((m, k), (k, n)))  # type: ignore[return-value]


def dropped(accum: Any, p: Any, seed: Any, offset: Any) -> Any:
    D = dropout(accum, p, seed, offset)
    return D, random(accum, seed, offset)


def check(a: np.ndarray, b: np.ndarray, args: dict[str, Any], out: Any = None) -> None:
    call = op.mm if a.ndim == 2 else op.bmm
    n = a @ b
    given = {**args, "D1": np.empty(n.shape, np.float32)}
    if out is not None:
        given["D"] = out
    d, r = call(a, b, epilogue=dropped, args=given, device="cpu", checks=["race", "uninit", "oob", "sync"])
    wanted, drawn = dropped(a.astype(np.float64) @ b, **args)
    assert (r == drawn).all() and ((r >= 0.0) & (r < 1.0)).all()
    assert np.array_equal(d == 0, wanted == 0) and np.allclose(d.astype(np.float64), wanted, rtol=1e-3)


@pytest.mark.slow
def test_kernels() -> None:
    """Odd tile offsets, batches, transposed results, kernels without TMA, and 64-bit seeds."""
    check(*factors(72, 104, 16), {"p": 0.25, "seed": 2**40 + 12345, "offset": 7})
    check(*factors(3, 24, 32, 16), {"p": 0.5, "seed": 3, "offset": 0})
    check(*factors(40, 64, 16), {"p": 0.1, "seed": 9, "offset": 2**32 - 1}, np.empty((64, 40), np.float16).T)
    check(*factors(21, 35, 9), {"p": 0.3, "seed": 11, "offset": 5})


@pytest.mark.slow
def test_seeds_are_arguments() -> None:
    """Seeds passed as numbers or in memory share one kernel. A constant seed needs its own."""
    a, b = factors(24, 32, 16)
    examples = {"accum": FakeTensor("f32", (24, 32)), "p": 0.5, "seed": 1, "offset": 0}
    traced = trace(dropped, examples)
    assert not traced.fixed and trace(dropped, {**examples, "seed": 77}).key == traced.key
    again = type(traced).from_json(traced.to_json())
    found = [
        op.mm(a, b, epilogue=t, args={"p": 0.5, "seed": seed, "offset": 3}, device="cpu", dtype=np.float32)[1]
        for t, seed in ((traced, 5), (again, 5), (traced, np.array([5])), (traced, np.array([6], np.int32)))
    ]
    assert (found[0] == found[1]).all() and (found[0] == found[2]).all() and (found[0] != found[3]).any()
    assert (found[0] == random(np.zeros((24, 32)), 5, 3)).all()
    fixed = trace(lambda accum, n: random(accum, 5) * range(n)[-1], {"accum": examples["accum"], "n": 3})
    assert fixed.fixed == {"n": 3} and [x.op for x in fixed.graph.nodes if x.op == "load"] == []


@pytest.mark.slow
def test_pairs() -> None:
    def gated(accum: Any, seed: Any) -> Any:
        gate, up = pairs(accum)
        D = dropout(gate * up, 0.5, seed)
        return D, random(accum, seed)

    a, b = factors(40, 64, 16)
    d, r = op.mm(a, b, epilogue=gated, args={"seed": 21, "D1": np.empty((40, 64), np.float32)}, device="cpu")
    want, drawn = gated(a.astype(np.float64) @ b, 21)
    assert (r == drawn).all() and (d == want).all()


@pytest.mark.slow
def test_shares() -> None:
    """The fraction of kept elements matches ``p``, in kernels and in torch."""
    torch = pytest.importorskip("torch")
    x = np.ones((256, 384))
    kept = dropout(x, 0.3, 2)
    assert abs((kept != 0).mean() - 0.7) < 0.01 and abs(kept.mean() - 1.0) < 0.02
    assert (dropout(torch.from_numpy(x), 0.3, torch.tensor([2])).numpy() == kept).all()
    assert (dropout(x, 1.0, 2) == 0).all() and (dropout(x, 0.0, 2) == 1).all()


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        (lambda accum: dropout(accum, 1.5, 1), {}, "mm: dropout: p is 1.5; it must be a probability from 0 to 1"),
        (lambda accum, s: random(accum, s), {"s": 0.5},
         "mm: epilogue <lambda>: seed must be an integer, or an argument that is an array of one integer"),
        (lambda accum, s: random(accum, s), {"s": -1},
         "mm: epilogue <lambda>: s is -1; it must be an integer from 0 to 2**63 - 1"),
        (lambda accum, s: random(accum + s, 1) + random(s, 1), {"s": np.zeros(32, np.float16)},
         "mm: epilogue <lambda>: random() needs a value of shape (32, 32), got (32,)"),
        (lambda accum, s: random(accum, 1) + random(s, 1), {"s": np.zeros((1, 32), np.float16)},
         "mm: epilogue <lambda>: random() needs a value of shape (32, 32), got (1, 32)"),
        (lambda accum: random(permute(accum, (1, 0)), 1), {},
         "mm: epilogue <lambda>: random() must come before reshape() and permute()"),
    ],
)  # fmt: skip
def test_errors(function: Any, args: dict[str, Any], message: str) -> None:
    a = np.zeros((32, 32), np.float16)
    with pytest.raises(OpError) as e:
        op.mm(a, a, epilogue=function, args=args, device="cpu")
    assert without_place(e.value) == message


def test_invalid_seeds_are_rejected() -> None:
    traced = trace(dropped, {"accum": FakeTensor("f32", (24, 32)), "p": 0.5, "seed": 1, "offset": 0})
    a, b = factors(24, 32, 16)
    with pytest.raises(EpilogueError) as e:
        args = {"p": 0.5, "seed": np.ones(1, np.float32), "offset": 0}
        op.mm(a, b, epilogue=traced, args=args, device="cpu")
    assert str(e.value) == "mm: epilogue dropped: seed has dtype f32; it must have an integer type"
