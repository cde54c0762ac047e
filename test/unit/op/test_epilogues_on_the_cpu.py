"""``mm`` and ``bmm`` with epilogue functions on CPU tensors and the interpreter, compared with f64."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from products_on_the_cpu import put_in_place  # noqa: E402

from cute_dialect import op  # noqa: E402
from cute_dialect.kernels.epilogue.combination import Epilogue  # noqa: E402
from cute_dialect.op.epilogue import FakeTensor, elu, gelu, relu, softplus, trace, where  # noqa: E402
from cute_dialect.op.epilogue import sum as reduced_sum  # noqa: E402
from cute_dialect.op.errors import DeviceError, EpilogueError, LayoutError  # noqa: E402
from cute_dialect.op.select import gemm_dispatch  # noqa: E402
from cute_dialect.op.select.candidates import menu  # noqa: E402
from cute_dialect.op.select.kernel_choice import Choice, Problem  # noqa: E402

f16, f32 = torch.float16, torch.float32


@pytest.fixture(autouse=True)
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the kernels that ran on the interpreter."""
    return put_in_place(monkeypatch)


def integers(*shape: int, dtype: torch.dtype = f16, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randint(-2, 3, shape, generator=generator).to(dtype)


def example(accum: Any, alpha: Any, C: Any, beta: Any, aux: Any, bias: Any) -> Any:
    F = alpha * accum + (beta * C + aux)
    E = relu(F + 1) + bias
    D = E + F
    return D, F


def doubles(args: dict[str, Any]) -> dict[str, Any]:
    return {n: x.double() if isinstance(x, torch.Tensor) and x.dtype != torch.bool else x for n, x in args.items()}


def check(found: Any, function: Any, a: torch.Tensor, b: torch.Tensor, args: dict[str, Any]) -> None:
    wanted = function(a.double() @ b.double(), **doubles(args))
    both = [(found, wanted)] if isinstance(found, torch.Tensor) else list(zip(found, wanted))
    for got, want in both:
        assert torch.equal(got.double(), want.expand(got.shape))


def arguments(*shape: int) -> dict[str, Any]:
    return {
        "alpha": 0.5, "C": integers(*shape), "beta": 2.0, "aux": integers(*shape, dtype=f32, seed=1),
        "bias": integers(shape[-1], seed=2),
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.sample("False")
@pytest.mark.parametrize("swapped", [False, True])
def test_a_product(monkeypatch: pytest.MonkeyPatch, launched: list[str], swapped: bool) -> None:
    """The problem and its transpose, with plain and traced functions. Equal structure gives the same kernel."""

    def chosen(problem: Problem, *_: object, **__: object) -> Choice:
        found = menu(problem)
        return found.choice(
            next(i for i in range(len(found)) if tuple(found.kernel(i)[:2]) == (64, 96) and found.swapped[i] == swapped)
        )

    monkeypatch.setattr(gemm_dispatch, "choose", chosen)
    a, b = integers(40, 72), integers(72, 88)
    args = arguments(40, 88)
    check(op.mm(a, b, epilogue=example, args=args), example, a, b, args)
    examples = {**args, "accum": FakeTensor("f32", (40, 88))}
    graph = trace(example, examples)
    args = {**args, "alpha": torch.tensor([0.25]), "aux": integers(40, 88)[:, :1].expand(40, 88)}
    f = torch.full((88, 40), float("nan"), dtype=f32).t()
    d, same = op.mm(a, b, epilogue=graph, args={**args, "F": f}, dtype=torch.bfloat16)
    assert same is f and d.dtype == torch.bfloat16
    check((d, f), example, a, b, args)
    assert len(launched) == 2 and launched[0] != launched[1]


@pytest.mark.slow
def test_beta_of_zero_does_not_read_c() -> None:
    a, b = integers(40, 72), integers(72, 88)
    args = {**arguments(40, 88), "beta": 0.0}
    want = example(a.double() @ b.double(), **doubles(args))
    args["C"] = torch.full((40, 88), float("nan"), dtype=f16)
    for beta in (0.0, torch.zeros(1), torch.zeros((), dtype=f16)):
        d, f = op.mm(a, b, epilogue=example, args={**args, "beta": beta})
        assert torch.equal(d.double(), want[0]) and torch.equal(f.double(), want[1])


@pytest.mark.slow
def test_batches(launched: list[str]) -> None:
    a, b = integers(3, 40, 72), integers(3, 72, 88)

    def f(accum: Any, per: Any, row: Any, column: Any, skip: Any, shared: Any, mask: Any) -> Any:
        return where(mask, accum * per + row, column) + skip - shared

    args = {
        "per": integers(3, 1, 1, dtype=f32), "row": integers(3, 1, 88), "column": integers(3, 40, 1),
        "skip": integers(3, 88, 40).mT, "shared": integers(40, 88), "mask": integers(40, 88) > 0,
    }  # fmt: skip
    check(op.bmm(a, b, epilogue=f, args=args), f, a, b, args)
    one = {**args, "per": 2.0, "row": args["row"][:1], "column": args["column"][0], "skip": args["skip"][:1]}
    check(op.bmm(a[:1], b[:1], epilogue=f, args=one), f, a[:1], b[:1], one)
    # B is shared and the epilogue does not depend on the row, so the batch is one GEMM.
    check(op.bmm(a, b[:1], epilogue=lambda accum, v: accum + v, args={"v": args["row"][0, 0]}),
          lambda accum, v: accum + v, a, b[:1], {"v": args["row"][0, 0]})  # fmt: skip
    assert ["b" in name.split("-")[4] for name in launched] == [True, False, False]


@pytest.mark.slow
@pytest.mark.parametrize(("m", "n", "k"), [(39, 87, 71), (17, 33, 5), (8, 8, 0)])
def test_rows_not_readable_by_tma(m: int, n: int, k: int) -> None:
    a, b, args = integers(m, k), integers(k, n), arguments(m, n)
    check(op.mm(a, b, epilogue=example, args=args), example, a, b, args)


@pytest.mark.slow
def test_f32_and_odd_results() -> None:
    a, b, args = integers(39, 72, dtype=f32), integers(72, 87, dtype=f32), arguments(39, 87)
    check(op.mm(a, b, epilogue=example, args=args), example, a, b, args)


@pytest.mark.slow
def test_constants_are_part_of_the_graph() -> None:
    def f(accum: Any, times: Any) -> Any:
        for _ in range(times):
            accum = accum + 1.0
        return accum

    a, b = integers(40, 72), integers(72, 88)
    graph = trace(f, {"accum": FakeTensor("f32", (40, 88)), "times": 1})
    for times in (1, 3):
        check(op.mm(a, b, epilogue=graph, args={"times": times}), f, a, b, {"times": times})


def test_mismatched_arguments_are_rejected(launched: list[str]) -> None:
    a, b, args = integers(40, 72), integers(72, 88), arguments(40, 88)
    graph = trace(example, {**args, "accum": FakeTensor("f32", (40, 88))})
    rows = integers(40, 1)
    without = {n: x for n, x in args.items() if n != "bias"}
    for more, said in (
        ({"args": without}, 'epilogue example: args has no "bias"; its arguments are alpha, C, beta, aux, bias'),
        ({"args": {**args, "bias": rows}}, "bias is (M, 1), but was (1, N) in the trace; trace the"),
        ({"args": {**args, "bias": 1.0}}, "epilogue example: bias is a number, but was (1, N) in the trace"),
        ({"args": {**args, "alpha": rows}}, "epilogue example: alpha is (M, 1), but was one element in the trace"),
        ({"args": {**args, "aux": integers(40, 87)}}, "aux of shape (40, 87) does not broadcast to (40, 88)"),
        ({"args": {**args, "other": 1.0}}, "epilogue example: args has unknown names other"),
        ({"args": {**args, "aux": "x"}}, "epilogue example: aux is a str; it must be a number or an array"),
        ({"args": {**args, "F": integers(40, 80)}}, "F has shape (40, 80); it must have (40, 88)"),
        ({"args": {**args, "F": integers(40, 88).int()}}, "F has dtype i32; it must have one of f16, bf16, f32, "
         "f8E4M3FN, f8E5M2, i8, ui8"),
        ({"args": args, "bias": args["bias"]}, "mm: bias cannot be combined with epilogue; compute it in the epilogue"),
        ({"args": args, "activation": "relu"}, "activation cannot be combined with epilogue"),
        ({"args": args, "alpha": 2.0}, "alpha cannot be combined with epilogue"),
        ({"epilogue": "relu"}, "mm: epilogue must be a function or the result of op.epilogue.trace, got 'relu'"),
    ):  # fmt: skip
        with pytest.raises(EpilogueError) as e:
            op.mm(a, b, **{"epilogue": graph, **more})  # type: ignore[arg-type]
        assert said in str(e.value)
    with pytest.raises(DeviceError, match="aux is on meta, but the result is on cpu; move it to cpu"):
        op.mm(a, b, epilogue=graph, args={**args, "aux": args["aux"].to("meta")})
    with pytest.raises(EpilogueError, match=r'activation "swish" is not supported; silu is x \* sigmoid'):
        op.mm(integers(3, 5), integers(5, 7), activation="swish")
    with pytest.raises(EpilogueError, match=r'activation "swish" is not supported; silu is x \* sigmoid'):
        op.linear(torch.ones(3, 5).half().requires_grad_(), torch.ones(7, 5).half(), activation="swish", device="cpu")
    assert launched == []


@pytest.mark.slow
def test_normal_data() -> None:
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(s, generator=generator).half() for s in ((72, 200), (200, 136)))
    bias = torch.randn(136, generator=generator)

    def f(accum: Any, bias: Any) -> Any:
        return gelu(accum / 10.0 + bias)

    want = f(a.double() @ b.double(), bias.double())
    got = op.mm(a, b, epilogue=f, args={"bias": bias})
    assert float((got.double() - want).abs().max()) < 2e-3


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [f16, f32])
def test_any_rows_in_one_kernel(launched: list[str], dtype: torch.dtype) -> None:
    """The accumulator is not rounded before the epilogue, in batches too."""
    a, b = integers(3, 37, 71), integers(3, 71, 85)

    def f(accum: Any, column: Any, skip: Any, per: Any) -> Any:
        F = accum * per + column
        D = F - skip
        return D, F

    args = {"column": integers(37, 1), "skip": integers(3, 37, 85), "per": integers(3, 1, 1, dtype=f32)}
    check(op.bmm(a, b, epilogue=f, args=args, dtype=dtype), f, a, b, args)
    one = {**args, "skip": args["skip"][0], "per": 3.0, "F": torch.full((85, 37), float("nan")).t()}
    found = op.mm(a[0], b[0], epilogue=f, args=one, dtype=dtype)
    check(found, f, a[0], b[0], {n: x for n, x in one.items() if n != "F"})
    assert found[1] is one["F"] and len(launched) == 2


def test_memory_for_results_is_their_own() -> None:
    a, b, args = integers(40, 40), integers(40, 40), arguments(40, 40)
    d = torch.zeros(40, 40).half()
    for f, other in ((a, "a"), (b.t(), "b"), (d, "D")):
        with pytest.raises(LayoutError, match=f"mm: F shares memory with {other}"):
            op.mm(a, b, d, epilogue=example, args={**args, "F": f})


@pytest.mark.slow
@pytest.mark.parametrize(("m", "n"), [(40, 136), (130, 64)])
def test_two_results_of_the_transposed_problem(m: int, n: int) -> None:
    """The second result is staged like D, so the kernel may compute ``D^T``."""

    def function(accum: Any, bias: Any) -> Any:
        x = accum + bias
        return {"D": relu(x), "x": x}

    a, b, bias = integers(m, 72), integers(72, n), integers(n)
    choice = op.explain(op.mm, a, b, epilogue=function, args={"bias": bias}).choice
    assert choice.swapped and choice.config.beside == (1,)
    found = op.mm(a, b, epilogue=function, args={"bias": bias}, checks=("race", "sync", "oob", "uninit"))
    want = function(a.double() @ b.double(), bias.double())
    assert all(torch.equal(found[name].double(), want[name]) for name in want)


@pytest.mark.sample("64x96-c1t-q9-True")
@pytest.mark.parametrize(
    ("name", "reduced"), [("64x96-c1t-q9", True), ("64x96-c2d-q10", False), ("128x96-c1-q6", True)]
)
def test_matrices_are_prefetched_for_whole_tiles(name: str, reduced: bool) -> None:
    """An epilogue that is applied to a whole tile reads matrices that were loaded before the main loop."""

    def function(accum: Any, skip: Any, bias: Any) -> Any:
        x = accum * skip + bias
        return {"D": x, "r": reduced_sum(x + skip, -1)} if reduced else {"D": x}

    a, b, args = integers(140, 72), integers(72, 104), {"skip": integers(140, 104), "bias": integers(104)}
    found = menu(Problem(140, 104, 72, "f16", "f16", "k", "n"))
    choice = next(c for c in found if c.name == f"f16-f16-kn-{name}")
    choice = choice._replace(config=choice.config._replace(prefetch=True))
    done = op.mm(a, b, epilogue=function, args=args, kernel=choice, checks=("race", "sync", "oob", "uninit"))
    want = function(a.double() @ b.double(), **doubles(args))
    assert all(torch.equal(done[x].double(), want[x].reshape(done[x].shape)) for x in want)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["128x128-c1t-q6", "256x160-n2-u1"])
def test_prefetched_matrices(name: str) -> None:
    """``prefetch`` loads the matrices of a chunk before the previous chunk is stored."""

    def function(accum: Any, skip: Any, row: Any) -> Any:
        x = accum + skip
        return {"D": x * row, "x": x}

    a, b, args = integers(140, 72), integers(72, 208), {"skip": integers(140, 208), "row": integers(140, 1)}
    found = menu(Problem(140, 208, 72, "f16", "f16", "k", "n"))
    choice = next(c for c in found if c.name == f"f16-f16-kn-{name}")
    choice = choice._replace(config=choice.config._replace(prefetch=True))
    done = op.mm(a, b, epilogue=function, args=args, kernel=choice, checks=("race", "sync", "oob", "uninit"))
    want = function(a.double() @ b.double(), **doubles(args))
    assert all(torch.equal(done[x].double(), want[x]) for x in want)


def heavy(accum: Any, skip: Any) -> Any:
    x = softplus(accum + skip)
    return {"D": x, "x": elu(x) * skip}


@pytest.mark.parametrize(
    ("tile", "function", "skips", "prefetches"),
    [
        ("128x128-c1t-q6", lambda accum, skip: softplus(accum) + skip, f16, True),
        ("64x128-c1-q8", heavy, f16, True),
        ("128x128-c1t-q6", heavy, f16, False),  # Prefetching would spill registers.
        ("192x128-c1", lambda accum, skip: accum + skip, f16, False),
        ("128x256-c2d", lambda accum, skip: accum + skip, f16, False),
        ("128x128-c1t-q6", lambda accum, skip: accum + skip, f32, False),
        ("128x128-c1t-q6", lambda accum, skip: {"D": accum + skip, "r": reduced_sum(accum, -1)}, f16, False),
        # An epilogue that is applied to a whole tile at once also holds the result.
        ("128x128-c1t-q6", lambda accum, skip: {"D": elu(accum) + skip, "r": reduced_sum(accum, -1)}, f16, False),
        ("64x160-c1t-q6", lambda accum, skip: {"D": elu(accum) + skip, "r": reduced_sum(accum, -1)}, f16, True),
    ],
)  # fmt: skip
def test_kernels_that_prefetch(tile: str, function: Any, skips: torch.dtype, prefetches: bool) -> None:
    skip = torch.empty(512, 512, dtype=skips)
    x = op.explain(op.mm, (512, 64), (64, 512), element="f16", epilogue=function, args={"skip": skip})
    assert x.choice is not None
    found = menu(x.problem)
    choice = next(c for c in found if c.name == f"{x.problem.key.split()[0]}-{tile}")
    e = x.choice.config.epilogue
    chosen = gemm_dispatch.with_epilogue(choice, e.transposed() if x.choice.swapped else e)
    assert chosen.config.prefetch == prefetches
    assert gemm_dispatch.with_epilogue(chosen, Epilogue()) == choice
