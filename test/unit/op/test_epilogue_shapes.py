"""``reshape`` and ``permute`` in epilogues, for results and arguments, compared with the same function in numpy."""

# Traced functions have no type annotations.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from refused_calls import without_place

from cute_dialect import op
from cute_dialect.op.epilogue import FakeTensor, cast, pairs, permute, quantize, relu, reshape, sum, trace
from cute_dialect.op.epilogue.output_layout import View, as_array, as_sums, modes_of, permuted, reshaped, view_of_modes
from cute_dialect.op.errors import EpilogueError, LayoutError, OpError, ShapeError

ALL = ["race", "uninit", "oob", "sync"]


def integers(*shape: int, dtype: Any = np.float16, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed + len(shape) + shape[0]).integers(-2, 3, shape).astype(dtype)


def check(function: Any, a: np.ndarray, b: np.ndarray, args: dict[str, Any], **more: Any) -> Any:
    """Compare a GEMM with the function in float64."""
    call = op.mm if a.ndim == 2 else op.bmm
    kernels: list[str] = []
    found = call(a, b, epilogue=function, args=args, device="cpu", report=lambda r: kernels.append(str(r)), **more)
    wide = {n: x.astype(np.float64) if isinstance(x, np.ndarray) else x for n, x in args.items()
            if n in function.__code__.co_varnames[: function.__code__.co_argcount]}  # fmt: skip
    wanted = function(a.astype(np.float64) @ b.astype(np.float64), **wide)
    both = [(found, wanted)] if isinstance(found, np.ndarray) else (
        list(zip(found, wanted)) if isinstance(found, tuple) else [(found[n], wanted[n]) for n in wanted]
    )  # fmt: skip
    for got, want in both:
        assert got.shape == want.shape
        assert (got.astype(np.float64) == want).all()
    return found


def heads(accum: Any, bias: Any) -> Any:
    x = accum + bias
    return permute(reshape(x, (x.shape[0], -1, 64)), (1, 0, 2))


def everything(accum: Any, scale: Any, angle: Any, skip: Any, bias: Any) -> Any:
    """Use per-head, per-row-and-head, per-element and per-column arguments."""
    m, n = accum.shape
    x = permute(reshape(accum + bias, (m, n // 16, 16)), (1, 0, 2))
    x = x * (scale * 2.0) + reshape(angle, (m, 16)) + skip
    D = relu(x)
    F = permute(x, (2, 1, 0)) - 1.0
    E = reshape(permute(F, (2, 1, 0)), (n // 16 * m, 16))
    return D, F, E


@pytest.mark.end_to_end
@pytest.mark.sample("72-192-float16")
@pytest.mark.parametrize(
    ("m", "n", "dtype"), [(72, 192, np.float16), (72, 192, np.float32), (40, 64, np.float16)]
)  # fmt: skip
def test_heads(m: int, n: int, dtype: Any) -> None:
    """Heads of 64 columns are stored by TMA."""
    a, b = integers(m, 40), integers(40, n)
    found = check(heads, a, b, {"bias": integers(n)}, dtype=dtype, checks=ALL, schedule="adversarial")
    assert found.flags.c_contiguous and found.dtype == dtype


@pytest.mark.slow
@pytest.mark.parametrize(("m", "n", "k"), [(24, 48, 40), (23, 48, 9)])
def test_reshape_with_all_results(m: int, n: int, k: int) -> None:
    """Heads of 16 columns use scalar stores. Misaligned rows use another kernel and a copy."""
    a, b = integers(m, k), integers(k, n)
    args = {"scale": integers(n // 16, 1, 1, dtype=np.float32), "angle": integers(m, 16, seed=1),
            "skip": integers(n // 16, m, 16, seed=2), "bias": integers(n, seed=3)}  # fmt: skip
    if k == 9:
        check(everything, a, b, args)
        return
    check(everything, a, b, args, checks=ALL)
    check(everything, a, b, {**args, "skip": np.asfortranarray(args["skip"])}, dtype=np.float32)


@pytest.mark.slow
def test_memory_of_yours() -> None:
    """Outputs may have any strides; (B S, H E) is stored as (B, H, S, E)."""
    a, b = integers(64, 40), integers(40, 128)

    def split(accum: Any) -> Any:
        x = permute(reshape(accum, (2, 32, 2, 64)), (0, 2, 1, 3))
        return {"D": x, "F": x + 1.0}

    f = np.full((2, 2, 32, 80), np.nan, np.float32)
    out = np.full((2, 2, 32, 72), np.nan, np.float16)
    check(split, a, b, {"F": f[..., :64], "D": out[..., 8:]}, checks=ALL)
    assert np.isnan(f[..., 64:]).all() and np.isnan(out[..., :8]).all() and not np.isnan(out[..., 8:]).any()
    check(split, a, b, {"D": np.full((2, 2, 64, 32), np.nan, np.float16).transpose(0, 1, 3, 2)})


@pytest.mark.slow
def test_matrices() -> None:
    """Reshaped or permuted results that are still a matrix or a batch are stored as one."""
    a, b = integers(48, 40), integers(40, 64)
    check(lambda accum: reshape(accum, (2, 24, 4, 16)), a, b, {})
    check(lambda accum: permute(accum, (1, 0)), a, b, {})
    check(lambda accum, s: permute(accum, (1, 0)) + s, a, b, {"s": integers(64, 48)})
    x, y = integers(3, 24, 16), integers(3, 16, 32)
    check(lambda accum: permute(accum, (1, 0, 2)), x, y, {})
    check(lambda accum, s: reshape(permute(accum, (1, 0, 2)), (24, 96)) * s, x, y, {"s": integers(24, 96)})
    check(lambda accum: reshape(accum, (3, 24, 2, 16)).transpose(2, 0, 1, 3) if isinstance(accum, np.ndarray) else
          permute(reshape(accum, (3, 24, 2, 16)), (2, 0, 1, 3)), x, y, {})  # fmt: skip
    check(lambda accum: permute(reshape(accum, (1, 24, 2, 16)), (2, 0, 1, 3)), x[:1], y[:1], {})


@pytest.mark.slow
def test_squares() -> None:
    """A square argument keeps its shape if the function transposes it."""
    a, b, s = integers(32, 16), integers(16, 32), integers(32, 32, seed=5)
    check(lambda accum, s: accum + permute(s, (1, 0)) * 2.0, a, b, {"s": s}, checks=ALL)


@pytest.mark.slow
def test_pairs_and_columns() -> None:
    """Results of ``pairs()`` can be reshaped into heads. Column-major results use the transposed GEMM."""

    def gated(accum: Any, s: Any) -> Any:
        gate, up = pairs(accum)
        D = permute(reshape(gate * up, (24, 2, 16)), (1, 0, 2)) + s
        return D

    check(gated, integers(24, 16), integers(16, 64), {"s": integers(2, 1, 16)}, checks=ALL)
    out = np.zeros((32, 24), np.float16).T

    def skipped(accum: Any, s: Any) -> Any:
        D = reshape(reshape(accum, (24, 2, 16)) + permute(s, (1, 0, 2)), (24, 32))
        return D, reshape(accum, (24, 2, 16)) * 2.0

    check(skipped, integers(24, 16), integers(16, 32), {"s": integers(2, 24, 16), "D": out})


@pytest.mark.slow
def test_traced_once() -> None:
    """A trace accepts another number of rows. If its constants do not fit, it raises an error."""
    traced = trace(
        lambda accum, s: permute(reshape(accum, (-1, 2, 16)), (1, 0, 2)) * s,
        {"accum": FakeTensor("f32", (24, 32)), "s": FakeTensor("f16", (2, 1, 16))},
    )
    again = type(traced).from_json(traced.to_json())
    for m in (24, 40):
        a, b, s = integers(m, 16), integers(16, 32), integers(2, 1, 16)
        want = (a.astype(float) @ b).reshape(m, 2, 16).transpose(1, 0, 2) * s
        for t in (traced, again):
            assert (op.mm(a, b, epilogue=t, args={"s": s}, device="cpu") == want).all()
    with pytest.raises(
        EpilogueError, match=r"the number of columns is 40, which is not a multiple of 16; trace the epilogue again"
    ):
        op.mm(integers(24, 16), integers(16, 40), epilogue=traced, args={"s": integers(2, 1, 16)}, device="cpu")
    with pytest.raises(EpilogueError, match=r"epilogue <lambda>: s has shape \(2, 2, 16\); it must have \(2, 1, 16\)"):
        op.mm(integers(24, 16), integers(16, 32), epilogue=traced, args={"s": integers(2, 2, 16)}, device="cpu")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda accum: reshape(accum, (32, 24)),
         "reshape: (24, 32) cannot be reshaped to (32, 24): each mode must be split or merged as a whole"),
        (lambda accum: reshape(accum, (24, 33)),
         "reshape: shape (24, 33) does not have the 768 elements of (24, 32)"),
        (lambda accum: permute(accum, (0, 0)), "permute: dims (0, 0) is not a permutation of 2 modes"),
        (lambda accum: permute(accum, (1, 0)) + accum,
         "operands of shapes (32, 24) and (24, 32) cover different elements of the accumulator"),
        (lambda accum: reshape(accum, (24, 4, 8)) + permute(reshape(accum, (24, 8, 4)), (0, 2, 1)),
         "operands of shapes (24, 4, 8) and (24, 4, 8) cover different elements of the accumulator"),
        (lambda accum: {"D": accum, "s": sum(reshape(accum, (24, 4, 8)), -1)},
         "sum() must come before reshape() and permute()"),
        (lambda accum, s: {"D": accum, "s": s * 2.0},
         "result s is computed from argument s alone; combine it with accum"),
        (lambda accum, s: accum + s, "argument s of shape (3, 5) does not broadcast to (24, 32)"),
        (lambda accum, s: reshape(accum, (24, 4, 8)) + s,
         "argument s of shape (3, 5) does not broadcast to (24, 4, 8)"),
        (lambda accum, s: accum + s * s,
         "argument s of shape (3, 5) does not broadcast to the accumulator's shape (24, 32); in multiply, combine it "
         "with a value of accum that is reshaped to match"),
        (lambda accum, s: accum + cast(s, "bf16"),
         "cast() of an argument of shape (3, 5) must come after it is combined with accum"),
        (lambda accum, v: {"D": accum, "r": reshape(v, (2, 16))},
         "r: shape (2, 16) does not hold each element of the accumulator's shape (24, 32)"),
        (lambda accum, t: accum + t, "t of shape (3, 5) does not broadcast to (24, 32)"),
        (lambda accum, s: accum + reshape(s, (3, 1, 5)),
         "argument s of shape (3, 1, 5) does not broadcast to shape (24, 32), whose modes are split differently"),
    ],
)  # fmt: skip
def test_errors(function: Any, message: str) -> None:
    given = {"s": integers(3, 5), "v": integers(32), "t": integers(3, 5) > 0}
    args = {n: x for n, x in given.items() if n in function.__code__.co_varnames[: function.__code__.co_argcount]}
    with pytest.raises(EpilogueError) as e:
        op.mm(integers(24, 16), integers(16, 32), epilogue=function, args=args, device="cpu")
    assert without_place(e.value) == f"mm: epilogue <lambda>: {message}"


def of_bytes(accum: Any) -> Any:
    return {"D": accum, "q": quantize(accum)[0]}


def turned(accum: Any) -> Any:
    return permute(accum, (1, 0))


def of_groups(accum: Any, bias: Any, scale: Any) -> Any:
    x = accum + bias
    D = permute(reshape(x, (40, 2, 16)), (1, 0, 2)) * scale
    F = relu(x)
    return D, F


@pytest.mark.slow
def test_groups() -> None:
    """Rows of no group keep their values in the new shape, or become zeros."""
    a, b, ends = integers(40, 24), integers(2, 24, 32), [17, 33]
    args = {"bias": integers(32), "scale": integers(2, 40, 1, seed=3)}
    sums = np.zeros((40, 32))
    sums[:17], sums[17:33] = a[:17].astype(float) @ b[0], a[17:33].astype(float) @ b[1]
    want = of_groups(sums, **{n: x.astype(float) for n, x in args.items()})
    out = np.full((2, 40, 16), 7, np.float32)
    for memory, rest, kept in ((out, "keep", 7), (None, "zero", 0)):
        d, f = op.grouped_mm(a, b, ends, out=memory, epilogue=of_groups, args=args, rest=rest, device="cpu")
        assert d.shape == (2, 40, 16) and (memory is None or d is memory)
        assert (d[:, :33] == want[0][:, :33]).all() and (d[:, 33:] == kept).all() and (f[:33] == want[1][:33]).all()
    with pytest.raises(ShapeError, match=r"grouped_mm: out has shape \(40, 32\); it must have \(2, 40, 16\)"):
        op.grouped_mm(a, b, ends, out=np.zeros((40, 32), np.float16), epilogue=of_groups, args=args, device="cpu")
    traced = trace(of_groups, {"accum": FakeTensor("f32", (40, 32)), **args})
    with pytest.raises(ShapeError, match=r"grouped_mm: scale has shape \(2, 1, 16\); it must have \(2, 40, 1\)"):
        other = args | {"scale": integers(2, 1, 16)}
        op.grouped_mm(a, b, ends, epilogue=traced, args=other, device="cpu")
    plan = op.GroupedGemm(element="f16", layout="row")
    plan.epilogue_visitor = traced
    with pytest.raises(EpilogueError) as e:
        plan.run(a, b, offs=ends, visitor_args=args, device="cpu")
    assert str(e.value) == (
        "GroupedGemm.run: epilogue of_groups reshapes or permutes D, which a plan does not support; use op.grouped_mm"
    )


@pytest.mark.slow
def test_arguments_of_planned_groups() -> None:
    """Arguments are read in place or raise an error."""
    a, b, ends, plan = integers(40, 24), integers(2, 24, 32), [17, 40], op.GroupedGemm(element="f16", layout="row")
    s = integers(40, 2, 16, seed=4)
    plan.epilogue_visitor = lambda accum, s: accum * reshape(s, (40, 32))
    want = np.concatenate([a[:17].astype(float) @ b[0], a[17:].astype(float) @ b[1]]) * s.reshape(40, 32)
    assert (want == plan.run(a, b, offs=ends, visitor_args={"s": s}, device="cpu").D).all()
    plan.epilogue_visitor = lambda accum, s: accum * reshape(permute(s, (1, 0, 2)), (40, 32))
    with pytest.raises(LayoutError) as e:
        plan.run(a, b, offs=ends, visitor_args={"s": integers(2, 40, 16)}, device="cpu")
    assert str(e.value) == (
        "GroupedGemm.run: s does not have the accumulator's layout, and a plan copies nothing; use op.grouped_mm"
    )


def channels_first(accum: Any, scale: Any) -> Any:
    """Reshape pixels by channels to (N, K, P Q)."""
    return permute(reshape(accum, (2, 16, 8)), (0, 2, 1)) * scale


def also_first(accum: Any, t: Any) -> Any:
    x = accum * reshape(permute(t, (0, 2, 1)), (32, 8))
    D = relu(x)
    F = permute(reshape(x, (2, 16, 8)), (0, 2, 1))
    return D, F


@pytest.mark.slow
def test_convolutions() -> None:
    """1x1 convolutions run as GEMMs, with images that are not channels-last, and in plans."""
    x, f, t = integers(2, 4, 4, 16), integers(8, 1, 1, 16), integers(2, 8, 16, seed=5)
    sums = x.reshape(32, 16).astype(float) @ f.reshape(8, 16).T
    found = op.conv2d(x, f, epilogue=channels_first, args={"scale": integers(8, 1)}, device="cpu")
    assert found.shape == (2, 8, 16) and (found == channels_first(sums, integers(8, 1).astype(float))).all()
    want = also_first(sums, t.astype(float))
    plan = op.Conv2d("fprop", element="f16")
    plan.epilogue_visitor = also_first  # type: ignore[assignment]
    done = plan.run(x, f, visitor_args={"t": t}, device="cpu")
    for d, e in (op.conv2d(x, f, epilogue=also_first, args={"t": t}, device="cpu"), (done.D, done.results["F"])):
        assert d.shape == (2, 4, 4, 8) and (d.reshape(32, 8) == want[0]).all() and (e == want[1]).all()
    with pytest.raises(EpilogueError, match="out is not supported if the epilogue reshapes or permutes D"):
        op.conv2d(x, f, out=np.zeros((2, 4, 4, 8), np.float16), epilogue=turned_image, device="cpu")


def turned_image(accum: Any) -> Any:
    return permute(accum, (1, 0))


def beside(accum: Any, bias: Any, t: Any) -> Any:
    """Return D in the shape of the accumulator, and a reshaped result. One argument has another shape."""
    x = (accum + bias) * reshape(permute(t, (1, 0, 2)), (24, 32))
    F = permute(reshape(x, (24, 2, 16)), (1, 0, 2))
    D = relu(x)
    return D, F


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["row", "column"])
def test_plans(layout: str) -> None:
    a, b, args = integers(24, 40), integers(40, 32), {"bias": integers(32), "t": integers(2, 24, 16, seed=4)}
    want = beside(a.astype(float) @ b, **{n: x.astype(float) for n, x in args.items()})
    for more in ({}, {"kernel_cc": 80}, {"split_k": ("parallel", 2)}):
        plan = op.Gemm(element="f16", layout="row", layout_C=layout, kernel_cc=more.pop("kernel_cc", None))
        plan.epilogue_visitor = beside  # type: ignore[assignment]
        done = plan.run(a, b, visitor_args=args, device="cpu", **more)
        assert (want[0] == done.D).all() and (done.results["F"] == want[1]).all()


def test_unsupported_calls_are_rejected() -> None:
    f: Any = turned
    a, b = integers(24, 16), integers(16, 32)
    plan = op.Gemm(element="f16", layout="row")
    plan.epilogue_visitor = f
    conv = op.Conv2d("fprop", element="f16")
    conv.epilogue_visitor = f
    for call, name in (
        (lambda: plan.run(a, b, device="cpu"), "Gemm.run"),
        (lambda: conv.run(integers(1, 2, 2, 16), integers(8, 1, 1, 16), device="cpu"), "Conv2d.run"),
    ):  # fmt: skip
        with pytest.raises(OpError) as e:
            call()
        assert str(e.value) == (
            f"{name}: epilogue turned reshapes or permutes D, which this call does not support; use op.mm or op.bmm"
        )
    with pytest.raises(OpError, match=r"mm_array: epilogue <lambda> reshapes or permutes D"):
        op.mm_array([a] * 2, [b] * 2, epilogue=lambda accum: permute(accum, (0, 2, 1)), device="cpu")
    plan.epilogue_visitor = of_bytes
    with pytest.raises(OpError) as e:
        plan.run(a, b, device="cpu")
    assert str(e.value) == (
        "Gemm.run: epilogue of_bytes uses quantize(), which this call does not support; use op.mm or op.bmm"
    )
    with pytest.raises(OpError) as e:
        op.elementwise(lambda x: reshape(x, (2, 2)))(np.zeros((4, 1), np.float16), device="cpu")
    assert (
        without_place(e.value)
        == "elementwise <lambda>: reshape() is not supported here; use elementwise functions only"
    )
    with pytest.raises(ShapeError, match=r"mm: out has shape \(24, 32\); pass out of shape \(32, 24\)"):
        op.mm(a, b, np.zeros((24, 32), np.float16), epilogue=f, device="cpu")


def test_views_are_numpys() -> None:
    """Random reshapes and permutations give the same views as in numpy."""
    rng = np.random.default_rng(7)
    sums = (6, 8, 12)
    x = np.arange(6 * 8 * 12).reshape(sums)
    for _ in range(60):
        modes, want = modes_of(sums), x
        for _ in range(rng.integers(1, 4)):
            order = [int(i) for i in rng.permutation(len(modes))]
            modes, want = permuted(modes, order), want.transpose(order)
            shape = [int(n) for extent in want.shape for n in _factors(rng, extent)]
            modes, want = reshaped(modes, shape), want.reshape(shape)
        view = view_of_modes(modes, sums, whole=True)
        assert view.shape(sums) == want.shape and View.from_json(view) == view
        assert (as_array(x, view, sums) == want).all() and (as_sums(want, view, sums) == x).all()


def _factors(rng: np.random.Generator, extent: int) -> tuple[int, ...]:
    divisors = [d for d in range(1, extent + 1) if extent % d == 0]
    d = int(rng.choice(divisors))
    return (extent // d, d) if rng.integers(2) else (extent,)


def test_explain() -> None:
    """``explain`` reports the kernel that the call uses."""
    a, b = integers(64, 64), integers(64, 128)
    told = op.explain(op.mm, a, b, epilogue=lambda accum: permute(reshape(accum, (64, 2, 64)), (1, 0, 2)))
    assert told.kernel.startswith("f16-f16-kn-") and "-g-" in told.kernel and not told.copies
