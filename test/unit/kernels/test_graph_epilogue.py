"""Graph epilogues in every GEMM kernel on the CPU interpreter, exactly equal to numpy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.epilogue.graph import Builder, Graph, Input, Output, evaluate
from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig, SkinnyConfig, SplitConfig
from cute_dialect.kernels.gemm.few_rows import few_rows_text
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.pipelines import compile
from cute_dialect.runtime.arrays import view_of
from cute_dialect.runtime.launch_plan import LaunchError

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "i8": np.int8, "i32": np.int32}
SINGLE = GemmConfig(cluster_m=1, deferred=False, tile=(128, 128, 64))


def everything() -> Graph:
    """Return a graph with every kind of input: scalars, C, per-row and per-column vectors, and a matrix of another
    type. It also has a node with two uses, element coordinates, and three results.
    """
    make = Builder()
    alpha, beta = make.load(Input("scalar", number=True)), make.load(Input("scalar", "f16"))
    c = make.load(Input("aux", "f16", order="n", pairs=True))
    aux = make.load(Input("aux", "f32"))
    row, column = make.load(Input("row", "bf16", order="n")), make.load(Input("column", "i8", order="m"))
    x = make.call("multiply_add", alpha, make.accum(), make.call("scaled", beta, c))
    f = make.call("add", make.call("add", x, row), make.call("multiply", column, make.constant(2)))
    below = make.call("less_equal", make.place("column"), make.place("row"))
    e = make.call("where", below, make.call("relu", f), make.constant(-1.0))
    d = make.call("subtract", make.call("add", e, f), aux)
    return make.graph([Output(d), Output(f, "f32", order="n", pairs=True), Output(e, "bf16", order="m")])


KERNELS: dict[str, Any] = {
    "cooperative": SINGLE,
    "cluster, deferred": GemmConfig(),
    "pingpong": SINGLE._replace(schedule="pingpong"),
    "f32": SINGLE._replace(output="f32"),
    "columns": SINGLE._replace(major_c="m"),
    "stream": SINGLE._replace(stream_k=True, sms=2),
    "split": SplitConfig(SplitConfig().base._replace(tile=(128, 128, 64), stages=6, cluster_n=1), 2),
    "few rows": SkinnyConfig(columns=64, stages_a=2, stages=4),
    "few rows, parts": SkinnyConfig(columns=128, stages_a=2, stages=4, parts=2),
}


def arrays_of(graph: Graph, m: int, n: int, rng: np.random.Generator) -> list[Any]:
    """Return the inputs of a graph, filled with small integers, followed by its outputs."""
    found: list[Any] = []
    shapes = {"aux": (m, n), "row": (n,), "column": (m,), "scalar": (1,)}
    for x in graph.inputs:
        order = "F" if x.order == "m" and x.kind == "aux" else "C"
        values = rng.integers(-2, 3, shapes[x.kind]).astype(DTYPES[x.element], order=order)
        if x.kind == "aux" and not x.order:  # Neither mode is contiguous.
            values = np.repeat(values, 2, axis=1)[:, ::2]
        found.append(2.0 if x.number else values)
    for x in graph.outputs[1:]:
        found.append(np.full((m, n), np.nan, DTYPES[x.element], order="F" if x.order == "m" else "C"))
    return found


def expected(graph: Graph, product: np.ndarray, inputs: list[Any]) -> list[np.ndarray]:
    """Return the results in float64."""
    m, n = product.shape
    read = []
    for x, value in zip(graph.inputs, inputs):
        t = np.asarray(value).astype(np.float64)
        read.append(t[:, None] if x.kind == "column" else t)
    place = {"row": np.arange(m)[:, None], "column": np.arange(n)[None, :]}
    values = evaluate(graph, product, read, place=place.__getitem__)
    return [np.broadcast_to(values[x.node], (m, n)) for x in graph.outputs]


def run(config: Any, graph: Graph, m: int, n: int, k: int, **checks: Any) -> None:
    """Run a kernel on small integers, and compare exactly."""
    rng = np.random.default_rng(m + n + k)
    e = Epilogue(graph=graph)
    workspace: tuple[Any, ...] = ()
    if isinstance(config, SkinnyConfig):
        base, text = config.base, few_rows_text(config._replace(epilogue=e))
    elif isinstance(config, SplitConfig):
        config = config._replace(base=config.base._replace(epilogue=e))
        base, text = config.base, gemm_text(config)
        floats, counters = Choice(base, config.parts).workspace(m, n)
        workspace = np.full(floats, np.nan, np.float32), np.zeros(counters, np.int32)
    else:
        base = config._replace(epilogue=e)
        text = gemm_text(base)
        if base.stream_k:
            floats, counters = Choice(base).workspace(m, n)
            workspace = np.full(floats, np.nan, np.float32), np.zeros(counters, np.int32)
    a, b = (rng.integers(-2, 3, (x, k)).astype(np.float16) for x in (m, n))
    order = "F" if base.major_c == "m" else "C"
    out = np.full((m, n), np.nan, DTYPES[base.output], order=order)
    operands = arrays_of(graph, m, n, rng)
    wanted = expected(graph, a.astype(np.float64) @ b.T.astype(np.float64), operands[: len(graph.inputs)])
    kernel = compile(text, emit="base").kernel("launch")
    kernel(a, b, out, *workspace, *operands, device="cpu", **checks)
    for got, want in zip((out, *operands[len(graph.inputs) :]), wanted):
        assert (got.astype(np.float64) == want).all()


@pytest.mark.end_to_end
@pytest.mark.sample("columns")
@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel(name: str) -> None:
    config = KERNELS[name]
    columns = isinstance(config, GemmConfig) and config.major_c == "m"
    run(config, everything().transposed() if columns else everything(), 136 if "few" not in name else 100, 136, 200)


@pytest.mark.slow
def test_edges_and_races() -> None:
    """Odd extents use scalar accesses, and memory past the edge is neither read nor written. TMA overwrites the padding
    of D up to a multiple of 16 bytes.
    """
    graph = everything()
    odd = Graph(
        graph.nodes,
        tuple(x._replace(pairs=False) for x in graph.inputs),
        tuple(x._replace(pairs=False) for x in graph.outputs),
    )
    m, n, k = 33, 37, 72
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, (x, k)).astype(np.float16) for x in (m, n))
    out = np.full((m, 40), np.nan, np.float16)
    operands = arrays_of(odd, m, n, rng)
    wanted = expected(odd, a.astype(np.float64) @ b.T.astype(np.float64), operands[: len(odd.inputs)])
    kernel = compile(gemm_text(SINGLE._replace(epilogue=Epilogue(graph=odd))), emit="base").kernel("launch")
    d = view_of(out)._replace(shape=(m, n))
    kernel(a, b, d, *operands, device="cpu", checks=("race", "uninit", "oob", "sync"))
    for got, want in zip((out[:, :n], *operands[len(odd.inputs) :]), wanted):
        assert (got.astype(np.float64) == want).all()


BESIDE = {
    "cooperative": GemmConfig(cluster_m=1, deferred=False, tile=(128, 128, 64), sms=2),
    "deferred": GemmConfig(tile=(128, 256, 64), sms=2),
    "pingpong": GemmConfig(cluster_m=1, deferred=False, tile=(64, 128, 64), schedule="pingpong", sms=1, buffers=3),
    "a buffer": GemmConfig(cluster_m=1, deferred=False, tile=(128, 192, 64), sms=1, buffers=1),
    "two instructions": GemmConfig(cluster_m=1, deferred=False, tile=(256, 192, 64), sms=1, stages=3),
    "several widths": GemmConfig(cluster_m=1, deferred=False, tile=(256, 176, 64), sms=2, stages=3),
    "several widths, deferred": GemmConfig(cluster_m=1, tile=(128, 112, 64), sms=2),
    "columns": GemmConfig(cluster_m=1, deferred=False, tile=(256, 112, 64), sms=2, major_c="m"),
    "columns, deferred": GemmConfig(tile=(128, 208, 64), sms=2, major_c="m"),
    "columns, pingpong": GemmConfig(
        cluster_m=1, deferred=False, tile=(64, 80, 64), schedule="pingpong", sms=1, major_c="m", buffers=1
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BESIDE)
def test_results_by_tma(name: str) -> None:
    """Further results of D's type are staged in the buffers of D, with several tiles per block. One result is f32."""
    make = Builder()
    row = make.load(Input("row", "f16", order="n"))
    f = make.call("add", make.accum(), row)
    order = BESIDE[name].major_c
    d = make.call("relu", f)
    twice = make.call("multiply", f, make.constant(2.0))
    more = (
        Output(f, "f16", order=order, pairs=order == "n", tma=True),
        Output(d, "f32", order="n", pairs=True),
        Output(twice, "f16", order=order, pairs=order == "n", tma=True),
    )
    graph, config = make.graph([Output(d), *more]), BESIDE[name]
    config = config._replace(epilogue=Epilogue(graph=graph))
    assert config.beside == (1, 3)
    m, n, k = 336, 264, 136
    rng = np.random.default_rng(len(name))
    a, b = (rng.integers(-2, 3, (x, k)).astype(np.float16) for x in (m, n))
    found = [np.full((m, n), np.nan, DTYPES[x]) for x in ("f16", "f16", "f32", "f16")]
    if order == "m":
        found = [np.asfortranarray(x) if x.dtype == np.float16 else x for x in found]
    bias = rng.integers(-2, 3, n).astype(np.float16)
    kernel = compile(gemm_text(config), emit="base").kernel("launch")
    kernel(a, b, found[0], bias, *found[1:], device="cpu", checks=("race", "uninit", "oob", "sync"))
    sums = a.astype(np.float64) @ b.T.astype(np.float64) + bias
    for got, want in zip(found, (sums.clip(0), sums, sums.clip(0), 2 * sums)):
        assert (got.astype(np.float64) == want).all()


def test_names_and_zero() -> None:
    graph = everything()
    assert graph.name == everything().name != graph.transposed().name
    assert graph.transposed().transposed().nodes == graph.nodes
    assert Epilogue(graph=graph).name == graph.name
    without, kept = graph.with_zero(1)  # C is not read because beta is 0.
    assert (
        [graph.inputs[i].kind for i in kept] == ["scalar", "row", "column", "aux"] == [x.kind for x in without.inputs]
    )


@pytest.mark.slow
def test_mismatched_arguments_are_rejected() -> None:
    make = Builder()
    graph = make.graph([Output(make.call("add", make.accum(), make.load(Input("row", "f32", order="n"))))])
    kernel = compile(gemm_text(SINGLE._replace(epilogue=Epilogue(graph=graph))), emit="base").kernel("launch")
    a, b, d = (np.zeros(x, np.float16) for x in ((64, 64), (128, 64), (64, 128)))
    with pytest.raises(LaunchError, match="operand 0 of the epilogue, row, must have the extents of C"):
        kernel(a, b, d, np.zeros(120, np.float32), device="cpu")
    with pytest.raises(ValueError, match="graph cannot be combined with other fields"):
        gemm_text(SINGLE._replace(epilogue=Epilogue(graph=graph, bias="n")))


def gated() -> Graph:
    """Return a graph that combines pairs of adjacent columns. It adds a bias before, and half-width inputs after;
    results have full and half width.
    """
    make = Builder()
    x = make.call("add", make.accum(), make.load(Input("row", "f32", order="n", pairs=True)))
    gate, up = make.pair(x)
    d = make.call("multiply", make.call("relu", gate), make.call("add", up, make.place("row")))
    d = make.call("add", d, make.load(Input("row", "f16", order="n", half=True)))
    d = make.call("subtract", d, make.load(Input("aux", "f32", order="n", half=True)))
    return make.graph([Output(d), Output(x, "f32", order="n", pairs=True), Output(up, "f32", order="n")])


PAIRED: dict[str, Any] = {
    "cooperative": SINGLE._replace(tile=(128, 160, 64)),
    "cluster, deferred": GemmConfig(),
    "pingpong": SINGLE._replace(schedule="pingpong"),
    "f32": SINGLE._replace(output="f32", tile=(128, 176, 64)),
    "bytes": SINGLE._replace(element="i8", output="i8", tile=(128, 128, 128)),
    "stream": SINGLE._replace(stream_k=True, sms=2, output="f32"),
    "256 rows": SINGLE._replace(tile=(256, 96, 64)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRED)
def test_pairs(name: str) -> None:
    config = PAIRED[name]._replace(epilogue=Epilogue(graph=gated()))
    m, n, k = 136, 288, 200 if config.element == "f16" else 208
    rng = np.random.default_rng(5)
    workspace: tuple[Any, ...] = ()
    if config.stream_k:
        floats, counters = Choice(config).workspace(m, n)
        workspace = np.full(floats, np.nan, np.float32), np.zeros(counters, np.int32)
    a, b = (rng.integers(-1, 2, (x, k)).astype(DTYPES[config.element]) for x in (m, n))
    out = np.full((m, n // 2), 99, DTYPES[config.output])
    bias, row = rng.integers(-2, 3, n).astype(np.float32), rng.integers(-2, 3, n // 2).astype(np.float16)
    aux = rng.integers(-2, 3, (m, n // 2)).astype(np.float32)
    full, half = np.full((m, n), np.nan, np.float32), np.full((m, n // 2), np.nan, np.float32)
    kernel = compile(gemm_text(config), emit="base").kernel("launch")
    kernel(a, b, out, *workspace, bias, row, aux, full, half, device="cpu")
    x = a.astype(np.float64) @ b.T.astype(np.float64) + bias
    d = np.maximum(x[:, ::2], 0) * (x[:, 1::2] + np.arange(m)[:, None]) + row - aux
    limits = {"i8": (-128, 127)}.get(config.output)
    assert (out.astype(np.float64) == (np.clip(d, *limits) if limits else d.astype(out.dtype))).all()
    assert (full == x).all() and (half == x[:, 1::2]).all()


def test_unsupported_pairs_are_rejected() -> None:
    e = Epilogue(graph=gated())
    for config, said in (
        (SINGLE._replace(major_c="m", epilogue=e), "halves the columns .* a multiple of 32"),
        (SINGLE._replace(tile=(128, 112, 64), epilogue=e), "halves the columns .* a multiple of 32"),
        (
            SplitConfig(SplitConfig().base._replace(tile=(128, 128, 64), stages=6, epilogue=e), 2),
            "split-K cannot be combined",
        ),
    ):
        with pytest.raises(ValueError, match=said):
            gemm_text(config)
    with pytest.raises(ValueError, match="the kernel for few rows does not support"):
        few_rows_text(SkinnyConfig(columns=64, stages_a=2, stages=4, epilogue=e))
