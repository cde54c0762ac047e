"""Graphs traced from Python epilogue functions, and tracing errors."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.op import epilogue
from cute_dialect.op.epilogue import FakeTensor, cast, column, gelu, leaky_relu, relu, row, trace, where
from cute_dialect.op.errors import EpilogueError

M, N = 128, 256
ACCUM = FakeTensor("f32", (M, N))
BIAS, AUX, COLUMN = FakeTensor("f16", (N,)), FakeTensor("bf16", (M, N)), FakeTensor("f32", (M, 1))


def example(accum: Any, alpha: Any, C: Any, beta: Any, aux: Any, bias: Any) -> Any:
    F = alpha * accum + (beta * C + aux)
    E = relu(F + 1) + bias
    D = E + F
    return D, F


EXAMPLES = {"accum": ACCUM, "alpha": 0.5, "C": AUX, "beta": 2.0, "aux": AUX, "bias": BIAS}


def ops(traced: Any) -> list[str]:
    return [n.op for n in traced.graph.nodes]


def test_a_graph() -> None:
    found = trace(example, EXAMPLES)
    assert found.results == ("D", "F") and found.parameters == tuple(EXAMPLES)
    assert ops(found).count("relu") == 1 and ops(found).count("add") == 5  # F is used three times
    assert {a.name: a.kind for a in found.arguments} == {
        "alpha": "scalar", "beta": "scalar", "C": "aux", "aux": "aux", "bias": "row",
    }  # fmt: skip
    assert str(found).splitlines()[:3] == [
        f"epilogue example: {found.key}",
        "  %0 = load alpha: scalar of f32",
        "  %1 = accum",
    ]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(x) for x in ((M, N), (M, N), (M, N), (N,))]
    accum, c, aux, bias = arrays
    values = {"alpha": 0.5, "C": c, "beta": 2.0, "aux": aux, "bias": bias}
    want = found.reference(accum, **values)
    got = found.evaluate(accum, [values[a.name] for a in found.arguments])
    assert np.allclose(got["D"], want[0], rtol=1e-15) and np.allclose(got["F"], want[1], rtol=1e-15)
    assert found.formed(got) == (got["D"], got["F"])


def test_structure_is_the_key() -> None:
    """Names and the order of independent statements do not change the kernel, but constants do."""

    def renamed(accum: Any, x: Any) -> Any:
        y = x * 2.0
        z = accum + 1.0
        return relu(z + y)

    def ordered(accum: Any, x: Any) -> Any:
        z = accum + 1.0
        return relu(z + x * 2.0)

    def scaled(by: float) -> Any:
        def f(accum: Any, x: Any) -> Any:
            return relu((accum + 1.0) + x * by)

        return f

    examples = {"accum": ACCUM, "x": BIAS}
    keys = [trace(f, examples).key for f in (renamed, ordered, scaled(2.0), scaled(3.0))]
    assert keys[0] == keys[1] == keys[2] != keys[3]
    assert trace(ordered, {**examples, "x": COLUMN}).key != keys[0]
    zeros = [trace(lambda accum, z=z: accum * z, {"accum": ACCUM, "z": z}, runtime=()).key for z in (0.0, -0.0)]
    assert zeros[0] != zeros[1]


def test_python_steers_the_trace() -> None:
    """Loops, helpers and closures are traced, and numbers that Python reads become constants."""

    def polynomial(x: Any, coefficients: Any) -> Any:
        total = 0.0
        for c in reversed(coefficients):
            total = total * x + c
        return total

    def f(accum: Any, degree: Any, gain: Any, slope: Any) -> Any:
        x = polynomial(accum, [1.0 / math.factorial(i) for i in range(degree)])
        if gain > 1.0:
            x = x * math.sqrt(gain)
        return {"D": leaky_relu(x, slope), "extra": x}

    values = {"accum": ACCUM, "degree": 3, "gain": 4.0, "slope": 0.25}
    found = trace(f, values)
    assert found.fixed == {"degree": 3, "gain": 4.0} and [a.name for a in found.arguments] == ["slope"]
    assert found.form == "dict" and found.results == ("D", "extra")
    assert "multiply" not in ops(trace(f, {**values, "gain": 0.5}))[-2:]
    assert trace(f, values, runtime=()).arguments == ()
    x = np.linspace(-2, 2, M * N).reshape(M, N)
    got = found.evaluate(x, [0.25])
    assert np.allclose(got["D"], found.reference(x, degree=3, gain=4.0, slope=0.25)["D"])


def test_shapes_of_a_batch() -> None:
    shapes = {"a": (5, 1, N), "b": (5, M, 1), "c": (5, M, N), "d": (M, N), "e": (5, 1, 1), "f": (1,), "g": (N,)}

    def f(accum: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any) -> Any:
        return accum + a + b + c + d + e + f + g

    found = trace(f, {"accum": FakeTensor("f32", (5, M, N)), **{n: FakeTensor("f32", s) for n, s in shapes.items()}})
    assert [(a.kind, a.batch) for a in found.arguments] == [
        ("row", True), ("column", True), ("aux", True), ("aux", False), ("matrix", False), ("scalar", False),
        ("row", False),
    ]  # fmt: skip


def test_functions_of_numpy_and_torch() -> None:
    torch = pytest.importorskip("torch")

    def by_numpy(accum: Any) -> Any:
        return np.maximum(np.exp(-accum), 0.0) + np.clip(accum, -1.0, 1.0)

    def by_torch(accum: Any) -> Any:
        x = torch.nn.functional.gelu(accum, approximate="tanh") + torch.clamp(accum, max=3.0)
        return torch.where(accum > 0.0, x, accum.exp())

    x = np.linspace(-3, 3, M * N).reshape(M, N)
    found = trace(by_numpy, {"accum": ACCUM})
    assert ops(found) == ["accum", "negative", "exp", "constant", "maximum", "constant", "maximum", "constant",
                          "minimum", "add"]  # fmt: skip
    assert np.allclose(found.evaluate(x, [])["D"], by_numpy(x))
    found = trace(by_torch, {"accum": ACCUM})
    assert np.allclose(found.evaluate(x, [])["D"], by_torch(torch.tensor(x)).numpy())


NO = FakeTensor("f32", (M - 1, N))


@pytest.mark.parametrize(
    ("function", "examples", "said"),
    [
        (lambda accum, bias: accum + bias, {}, 'args has no "bias"; its arguments are bias'),
        (lambda accum: accum if accum > 0 else 0.0, {}, "`not` needs a value that is known while tracing"),
        (lambda accum: [x for x in accum], {}, "a loop needs a value that is known while tracing"),
        (lambda accum: accum[0], {}, "an index needs a value that is known while tracing"),
        (lambda accum: float(accum), {}, r"float\(\) needs a value that is known while tracing"),
        (lambda accum: 1.0, {}, "result D must be computed from the arguments, got float"),
        (lambda accum: None, {}, "result D must be computed from the arguments, got NoneType"),
        (lambda accum: {"E": accum}, {}, "one result must be named D, got E"),
        (lambda accum: np.sin(accum), {}, "numpy.sin cannot be traced; use functions of op.epilogue"),
        (lambda accum: accum.sin(), {}, "traced values have no attribute .sin"),
        (lambda accum: accum + np.ones(N), {}, "pass arrays as arguments"),
        (lambda accum: accum**0.5, {}, "exponent 0.5 is not supported"),
        (lambda accum: accum @ accum, {}, "unsupported operand"),
        (lambda accum: relu(accum, 1.0), {}, "relu takes 1 operands, got 2"),
        (lambda accum, x: accum + x, {"x": NO}, r"argument x of shape \(127, 256\) does not broadcast to \(128, 256\)"),
        (lambda accum, x: accum + x, {"x": "no"}, "x is a str; it must be a number, an array or a FakeTensor"),
        (lambda x: x, {"x": BIAS}, "the function needs a parameter accum"),
        (lambda accum: accum, {"accum": BIAS}, r"accum must have shape \(M, N\) or \(L, M, N\), got \(256,\)"),
    ],
)  # fmt: skip
def test_untraceable_functions_are_rejected(function: Any, examples: dict[str, Any], said: str) -> None:
    with pytest.raises((EpilogueError, TypeError), match=said):
        trace(function, {"accum": ACCUM, **examples})


def test_the_table_of_activations() -> None:
    assert {"relu", "gelu", "gelu_tanh", "silu", "prelu", "mish"} <= set(epilogue.ACTIVATIONS)
    for name, f in epilogue.ACTIVATIONS.items():
        assert getattr(epilogue, name) is f
        if name != "prelu":
            slope = np.gradient(f(np.linspace(-4, 4, 80001) + 1e-5), 1e-4)
            assert np.abs(getattr(epilogue, f"d_{name}")(np.linspace(-4, 4, 80001) + 1e-5) - slope).max() < 0.6
            inside = getattr(epilogue, f"d_{name}")(np.array([-3.3, -1.7, 0.4, 2.2, 3.7, 7.0]))
            at = np.array([-3.3, -1.7, 0.4, 2.2, 3.7, 7.0])
            assert np.allclose(inside, (f(at + 1e-6) - f(at - 1e-6)) / 2e-6, atol=1e-6)
    assert gelu(1.0) == pytest.approx(0.8413447460685429)
    assert (where(np.array([True, False]), 1.0, 2.0) == [1.0, 2.0]).all()


def test_indices_and_casts() -> None:
    def f(accum: Any) -> Any:
        x = cast(accum, "bf16")
        return where(row(x) >= column(x), x, 0.0)

    found = trace(f, {"accum": ACCUM})
    assert ops(found) == ["row", "column", "greater_equal", "accum", "cast", "constant", "where"]
    x = np.linspace(-3, 3, M * N).reshape(M, N)
    place = {"row": np.arange(M)[:, None], "column": np.arange(N)}.__getitem__
    got = found.evaluate(x, [], place=place)["D"]
    assert (got == f(x)).all() and (got == np.tril(x.astype(ml_dtypes.bfloat16).astype(float))).all()
    torch = pytest.importorskip("torch")
    assert np.array_equal(f(torch.tensor(x)).numpy(), f(x))
    with pytest.raises(EpilogueError, match="element type i8 is not supported; use one of f16, bf16, f32"):
        cast(x, "i8")
    with pytest.raises(EpilogueError, match=r"matrix\(\) needs at least 3 modes, got shape \(128, 256\)"):
        trace(lambda accum: accum + epilogue.matrix(accum), {"accum": ACCUM})
    odd = FakeTensor("f32", (M, N - 1))
    with pytest.raises(EpilogueError, match=r"pairs\(\) needs an even number of columns"):
        trace(lambda accum: epilogue.pairs(accum)[0], {"accum": odd})
    with pytest.raises(EpilogueError, match=r"operands of shapes .* do not broadcast"):
        trace(lambda accum: epilogue.pairs(accum)[0] + accum, {"accum": ACCUM})


def misspelled(accum: Any, bias: Any) -> Any:
    h = accum + bias
    return h.rellu()  # misspelled


def test_errors_name_the_line_and_a_similar_name() -> None:
    lines = Path(__file__).read_text().splitlines()
    line = next(i for i, text in enumerate(lines, 1) if "# misspelled" in text)
    a = np.zeros((16, 16), np.float16)
    with pytest.raises(EpilogueError) as e:
        op.mm(a, a, epilogue=misspelled, args={"bias": np.zeros(16, np.float32)}, device="cpu")
    assert str(e.value) == (
        f"mm: epilogue misspelled ({__file__}:{line}): traced values have no attribute .rellu; did you mean .relu?"
    )
    with pytest.raises(EpilogueError) as e:
        op.mm(a, a, epilogue=misspelled, args={"biass": 1.0}, device="cpu")
    assert str(e.value) == (
        f"mm: epilogue misspelled ({__file__}:{line - 2}): "
        'args has no "bias", but "biass"; did you mean "bias"? Its arguments are bias'
    )
    with pytest.raises(EpilogueError, match=r"numpy\.log10 cannot be traced; did you mean numpy\.log\?"):
        op.mm(a, a, epilogue=lambda accum: np.log10(accum), device="cpu")
    with pytest.raises(EpilogueError, match=rf"elementwise <lambda> \({__file__}:\d+\): traced values"):
        op.elementwise(lambda x: x.rellu(), a, device="cpu")
