"""``cute-bench op --random``: problems cover the whole distribution, are checked, and are compared with a peer."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from cute_dialect import op
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.select.timing import Sample
from cute_dialect.tools.bench import random_problems as bench_random
from cute_dialect.tools.bench import runner
from cute_dialect.tools.bench.cases.op.attention import Attention
from cute_dialect.tools.bench.cases.op.block import Block
from cute_dialect.tools.bench.cases.op.conv import Conv
from cute_dialect.tools.bench.cases.op.decode import Decode, decoding
from cute_dialect.tools.bench.cases.op.epilogues import TextEpilogue
from cute_dialect.tools.bench.cases.op.rows import Rows
from cute_dialect.tools.bench.random_problems import plan, problems
from cute_dialect.tools.bench.runner import BenchError, Trial
from cute_dialect.tools.cute_bench import main

DRAWN = ("conv", "rows", "epilogue", "attention", "decode", "mixed", "block")


@pytest.mark.slow
@pytest.mark.parametrize("group", DRAWN)
def test_small_problems_are_correct_on_the_interpreter(group: str) -> None:
    found = plan(group, 5, 11, lambda line: None)
    assert found["wrong"] == []
    rows = found["rows"]
    assert isinstance(rows, list) and len(rows) == 5


@pytest.mark.parametrize("group", DRAWN)
def test_a_seed_is_always_the_same(group: str) -> None:
    some = problems(group, 40, 3)
    assert some[:7] == problems(group, 7, 3) != problems(group, 7, 4)
    assert pickle.loads(pickle.dumps(some)) == some
    assert len({p.name for p in some}) == 40
    assert all(p.tiny().operation.split()[0] == p.operation.split()[0] for p in some)


def test_convolutions_span_the_distribution() -> None:
    found = [p for p in problems("conv", 400, 5) if isinstance(p, Conv)]
    assert len(found) == 400
    assert {p.kind for p in found} == {"fprop", "dgrad", "wgrad"}
    assert {p.taps[0] for p in found} == set(range(1, 8)) and {p.stride[0] for p in found} == {1, 2, 3}
    assert {p.dilation[0] for p in found} == {1, 2, 3}
    assert {p.operation.partition(" ")[2] for p in found} == {"", "grouped", "depthwise"}
    assert min(p.c for p in found) < 8 and max(p.c for p in found) > 700
    assert min(p.image[0] for p in found) < 10 and max(p.image[0] for p in found) > 220
    assert all(p.flops <= 2e11 and min(p.result) > 0 for p in found)


@pytest.mark.slow
def test_the_reference_of_convolutions_is_exact() -> None:
    """The reference for each kind, grouping, stride and dilation equals torch's float64 convolution on the CPU."""
    torch = pytest.importorskip("torch")
    seen: set[str] = set()
    for p in problems("conv", 90, 7):
        assert isinstance(p, Conv)
        p = p.tiny()._replace(n=2)
        if p.flops > 1e7:
            continue
        shapes = (p.n, *p.image, p.c), (p.k, *p.taps, p.c // p.groups), (p.n, *p.result, p.k)
        x, f, y = (torch.randn(s, dtype=torch.float16).permute(0, 3, 1, 2) for s in shapes)
        a, b, c = (t.double().requires_grad_() for t in (x, f, y))
        result = torch.nn.functional.conv2d(a, b, None, p.stride, p.padding, p.dilation, p.groups)
        dx, df = torch.autograd.grad(result, (a, b), c.detach())
        wanted = {"fprop": result.detach(), "dgrad": dx, "wgrad": df}[p.kind]
        torch.testing.assert_close(p.reference(x, f, y), wanted, rtol=1e-12, atol=1e-12)
        seen.add(p.operation)
    assert len(seen) == 9


def test_the_other_groups_span_their_distributions() -> None:
    rows = [p for p in problems("rows", 400, 5) if isinstance(p, Rows)]
    assert len({(p.function, p.backward) for p in rows}) == 22
    assert min(p.n for p in rows) < 4 and max(p.n for p in rows) > 150_000
    calls = [p for p in problems("attention", 400, 5) if isinstance(p, Attention)]
    kinds = {"packed", "window", "full", "causal"}
    assert {p.operation for p in calls} == {"decode", *kinds, *(f"{kind} backward" for kind in kinds)}
    assert {p.heads // p.heads_k for p in calls} == {1, 2, 4, 8} and len({p.head for p in calls}) == 7
    fused = [p for p in problems("epilogue", 200, 5) if isinstance(p, TextEpilogue)]
    assert {p.operation for p in fused} == {"mm, 1 result", "mm, 2 results", "mm, reduced"}
    assert {len(p.body) for p in fused} >= {2, 3, 4, 5, 6}


def test_gradients_use_the_kernels_of_the_library() -> None:
    """Each drawn problem has kernels; they span the head sizes, masks and alignments."""
    calls = [p for p in problems("attention", 400, 5) if isinstance(p, Attention) and p.backward]
    explained = [p.explained()[1] for p in calls]
    configs = {found.config for found in explained if found is not None}
    assert len(explained) == len(calls) > 60 and None not in explained
    assert {c.head for c in configs} == {64, 96, 128, 192, 256} and {c.packed for c in configs} == {True, False}
    assert {(c.mask, c.from_end) for c in configs} >= {
        ("full", False), ("right", False), ("right", True), ("both", False), ("both", True)
    }  # fmt: skip


def test_blocks_span_their_distribution() -> None:
    found = [p for p in problems("block", 200, 5) if isinstance(p, Block)]
    assert {p.width for p in found} == set(range(2560, 4097, 256)) and {p.is_step for p in found} == {True, False}
    assert {p.heads // p.shared for p in found} == {1, 2, 4, 8} and {p.element for p in found} == {"bf16", "f16"}
    assert min(p.length for p in found) < 1200 and max(p.length for p in found) > 6500
    assert max(p.batch for p in found) > 5 and all(p.flops <= 2e13 for p in found)


@pytest.mark.slow
def test_a_wrong_block_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another base of the rotary positions of the reference."""
    block = Block("bf16", 1, 40, 128, 2, 1, 192)
    assert block.trial("cpu").check() < 1

    def shifted(self: Block, x: Any, parameters: Any, angles: Any, of: Any = Block.by_torch) -> Any:
        return of(self, x, parameters, [t.roll(1, 0) for t in angles])

    monkeypatch.setattr(Block, "by_torch", shifted)
    with pytest.raises(BenchError, match="the relative error is"):
        block.trial("cpu").check()


def test_decoding_spans_its_distribution() -> None:
    found = [p for p in problems("decode", 300, 5) if isinstance(p, Decode)]
    assert {p.page for p in found} == {0, 16, 64, 128} and {p.call.head for p in found} == {64, 96, 128, 192, 256}
    assert {p.call.queries for p in found} == set(range(1, 17))
    assert {p.call.heads // p.call.heads_k for p in found} == {1, 2, 4, 8}
    assert all(bool(p.call.causal) == (p.call.queries > 1) and p.call.traffic <= 1e9 for p in found)
    assert min(p.call.keys for p in found) < 1100 and max(p.call.keys for p in found) > 60_000
    assert min(p.call.batch for p in found) == 1 and max(p.call.batch for p in found) > 90
    kernels = {kernel for p in found for kernel in p.kernels()}
    assert {f"page{n}" for n in (16, 64, 128)} <= {word for kernel in kernels for word in kernel.split("-")}


@pytest.mark.slow
def test_pages_hold_the_keys_of_the_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong page table is reported; keys past the last one are NaN, which would be reported, too."""
    attention = op.attention
    case = decoding(40, 2, 2, 2, 1, 64, page=16)
    assert case.trial("cpu").check() < 1
    monkeypatch.setattr(op, "attention", lambda *a, page_table, **k: attention(*a, page_table=page_table.flip(0), **k))
    with pytest.raises(BenchError, match="times the limit"):
        case.trial("cpu").check()


@pytest.mark.slow
def test_a_wrong_result_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    conv, softmax = op.conv2d, op.softmax
    monkeypatch.setattr(op, "conv2d", lambda *a, **k: conv(*a, **k) * 1.01)
    monkeypatch.setattr(op, "softmax", lambda *a, **k: softmax(*a, **k) * 1.01)
    one = Conv("fprop", "f16", 1, (6, 6), 8, 8, (3, 3), (1, 1), (1, 1), (1, 1), 1)
    with pytest.raises(BenchError, match="times the limit"):
        one.trial("cpu", False).check()
    for backward in (False, True):
        with pytest.raises(BenchError, match="times the limit"):
            Rows("softmax", backward, "f32", 4, 40).trial("cpu", False).check()


@pytest.mark.slow
def test_wrong_epilogues_and_attention_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    mm, attention, backward_of = op.mm, op.attention, op.attention_backward
    monkeypatch.setattr(op, "mm", lambda *a, **k: {n: x * 1.01 for n, x in mm(*a, **k).items()})
    fused = TextEpilogue("f16", 24, 48, 40, True, ("x0 = relu(accum)", "D = x0"), ("D",))
    with pytest.raises(BenchError, match="D: the error is"):
        fused.trial("cpu", False).check()
    call = Attention("f16", 64, 1, 2, 1, 20, 20, "", None, "bhsd", (), True)
    monkeypatch.setattr(op, "attention_backward", lambda *a, **k: [x * 1.1 for x in backward_of(*a, **k)])
    with pytest.raises(BenchError, match="times the limit"):
        call.trial("cpu", False).check()
    monkeypatch.setattr(op, "attention", lambda *a, **k: attention(*a, **k) * 1.1)
    with pytest.raises(BenchError, match="times the limit"):
        call._replace(backward=False).trial("cpu", False).check()


class Fake:
    """A fake problem with a right result, a wrong result or an error."""

    operation = "fake"

    def __init__(self, name: str, error: Exception | None = None, copy: Callable[[], object] | None = None) -> None:
        self.name, self.error, self.copy = name, error, copy

    def tiny(self) -> Fake:
        return self

    def trial(self, device: str, compiled: bool) -> Trial:
        def check() -> float:
            if self.error is not None:
                raise self.error
            return 0.5

        return Trial(check, lambda: None, {"a": lambda: None, "b": lambda: None}, 1, 8e6, "TB/s", self.copy)


def test_wrong_and_refused_problems_are_reported_and_the_others_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def compare(contestants: Sequence[tuple[str, object]], **_: object) -> dict[str, Sample]:
        times = {"ours": 2.0, "a": 4.0, "b": 3.0, "copy": 1.8}
        return {name: Sample(times[name], 0, 0, 1) for name, _ in contestants}

    drawn = [Fake("x"), Fake("y", BenchError("far off")), Fake("z", UnsupportedError("too long"))]
    drawn += [Fake("v", IndexError("tracing")), Fake("w", copy=lambda: None)]
    monkeypatch.setattr(bench_random, "problems", lambda *_: drawn)
    monkeypatch.setattr(bench_random, "in_processes", lambda *_, **__: [])
    monkeypatch.setattr(runner, "compare", compare)
    monkeypatch.setattr(bench_random, "is_gpu_alive", lambda: True)
    said: list[str] = []
    found = bench_random.run("conv", 5, 1, runs=20, say=said.append)
    rows, wrong = found["rows"], found["wrong"]
    assert isinstance(rows, list) and isinstance(wrong, list)
    assert [(r["name"], r["ratio"], r["best_peer"]) for r in rows] == [("x", 1.5, "b"), ("w", 1.5, "b")]
    assert [r.get("of_copy") for r in rows] == [None, 0.9]
    assert [line.split()[4:8] for line in said if "copy" in line] == [["bandwidth", "1", "0.900", "0.900"]]
    assert wrong == [
        "problem 1, y: BenchError: far off", "problem 2, z: refused: UnsupportedError: too long",
        "problem 3, v: IndexError: tracing",
    ]  # fmt: skip
    assert "2 of 5 measured, 3 wrong or rejected" in said[-1]
    assert plan("conv", 5, 1, said.append)["wrong"] == [str(line).replace("refused: ", "") for line in wrong]


@pytest.mark.parametrize(
    "words, message",
    [
        (["op", "--random", "gemm"], "random GEMMs are cute-bench gemm --random N"),
        (
            ["op", "--random", "x"],
            "--random: 'x' is not a group of op; use one of conv, rows, epilogue, attention, decode, mixed, block, "
            "host",
        ),
        (["op", "--random", "conv", "--build", "x"], "--random cannot be combined with --groups, --build or --run"),
        (["op", "--random", "host", "--plan"], "cannot measure group host"),
        (["gemm", "--random", "x"], "argument --random: expected a number of problems, got 'x'"),
        (["gemm", "--random", "3", "--plan"], "--count and --plan apply only to op --random"),
        (["op", "--count", "3"], "--count and --plan apply only to op --random"),
        (["rows", "--random", "3"], "--random applies only to op and to gemm without --tune"),
    ],
)
def test_contradictory_options_are_rejected(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 1
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_the_plan_is_printed_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    words = ["op", "--random", "rows", "--plan", "--count", "2", "--seed", "9", "--json", str(path)]
    assert main(words) == 0
    names = [p.name for p in problems("rows", 2, 9)]
    out = capsys.readouterr().out
    assert all(name in out for name in names)
    assert [r["name"] for r in json.loads(path.read_text())["rows"]] == names


def test_tables_of_the_results(tmp_path: Path) -> None:
    from cute_dialect.tools.docs.performance import render

    (tmp_path / "random").mkdir()
    for card, group, ratios in (
        ("H200", "rows", (2.0, 0.5)),
        ("H200", "conv", (1.0, 1.0)),
        ("H100", "conv", (0.9, 0.9)),
    ):
        rows: list[dict[str, object]] = [
            {"operation": f"kind {i}", "ratio": x, "peers_us": {"torch": 1.0}} for i, x in enumerate(ratios)
        ]
        if card == "H100":
            rows[0]["of_copy"] = 0.8
        if group == "rows":
            rows[1]["peers_us"] = {"torch": 1.0, "compiled": 0.9}
        result = {"group": group, "machine": {"gpu": f"NVIDIA {card}"}, "rows": rows}
        (tmp_path / "random" / f"{card.lower()}_{group}.json").write_text(json.dumps(result))
    lines = render("<!-- random_op -->\n<!-- /random_op -->", tmp_path).splitlines()[1:-1]
    assert lines == [
        "| group | card | problems | geometric mean | 5th percentile | least | faster |",
        "|---|---|---|---|---|---|---|",
        "| conv | H100 | 2 | 0.900 | 0.900 | 0.900 | 0 of 2 |",
        "| conv, share of the copy bandwidth | H100 | 1 | 0.800 | 0.800 | 0.800 | 0 of 1 |",
        "| conv | H200 | 2 | 1.000 | 1.000 | 1.000 | 2 of 2 |",
        "| rows | H200 | 2 | 1.000 | 0.500 | 0.500 | 1 of 2 |",
        "| rows, with torch.compile as a peer | H200 | 1 | 0.500 | 0.500 | 0.500 | 0 of 1 |",
    ]
    rows = [{"name": "page 64", "us": 240.0, "ours": 4.46, "copy": 4.16, "unit": "TB/s", "ratio": float("nan")}]
    one = {"machine": {"gpu": "NVIDIA H200", "torch": "2.11"}, "date": "2026-11-28", "command": "x --y", "rows": rows}
    (tmp_path / "op").mkdir()
    (tmp_path / "op" / "h200_decode.json").write_text(json.dumps(one))
    assert render("<!-- decode -->\n<!-- /decode -->", tmp_path).splitlines()[1:-1] == [
        "| problem | µs | ours | copy | ratio |",
        "|---|---|---|---|---|",
        "| page 64 | 240 | 4.460 TB/s | 4.160 |  |",
        "",
        "Measured by x --y on one H200, torch 2.11, 2026-11-28.",
    ]
    kinds = render("<!-- random_op_kinds -->\n<!-- /random_op_kinds -->", tmp_path).splitlines()
    assert "| rows | kind 0 | H200 | 1 | 2.000 | 2.000 | 2.000 | 1 of 1 |" in kinds and len(kinds) == 10
