"""The timeline report: a warp's intervals have no gaps, waits end at an event, and the drawing shows all events."""

from __future__ import annotations

import json
import re
import runpy
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.interp.reports.timeline import Slice
from cute_dialect.viz import DrawingError, draw, draw_timeline

K, STAGES = 320, 3


@pytest.fixture(scope="module")
def reports() -> dict[str, Any]:
    """Run a 128 x 128 Hopper GEMM with five K steps and three stages, and return its report under each schedule."""
    gemm = runpy.run_path(str(Path(__file__).parents[3] / "examples" / "hopper_gemm.py"))["HopperGemm"]
    made = gemm((128, 128, 64), stages=STAGES, cluster_m=1)
    a, b = (np.ones((128, K), np.float16) for _ in "ab")
    out: dict[str, Any] = {}
    for schedule in ("round-robin", "adversarial", "random"):
        c = np.zeros((128, 128), np.float16)
        out[schedule] = made(a, b, c, device="cpu", reports=["timeline", "banks"], schedule=schedule)
        assert (c == K).all()
    out["off"] = made(a, b, c, device="cpu")
    return out


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["round-robin", "adversarial", "random"])
def test_recorded_events(reports: dict[str, Any], schedule: str) -> None:
    record = reports[schedule].timeline
    assert record.blocks == [0] and not record.dropped
    # From its start to its end a warp either runs or waits, and the intervals do not overlap.
    for warp in range(12):
        mine: list[Slice] = sorted(s for s in [*record.runs, *record.waits] if s.warp == warp)
        mine.sort(key=lambda s: s.start)
        assert mine[0].start == 0 and all(s.end == t.start for s, t in pairwise(mine))
    # Each K step has one TMA load of A, one of B, and four wgmma with K = 16 in each of the two warpgroups.
    loads = [c for c in record.copies if c.nbytes == 128 * 64 * 2]
    assert len(loads) == 2 * K // 64 and all(c.start < c.end and c.warp == 0 for c in loads)
    assert sum(c.nbytes for c in record.copies) == 2 * 128 * K * 2 + 128 * 128 * 2  # with the TMA store of C
    for group in (1, 2):
        products = [p for p in record.products if p.warpgroup == group]
        assert len(products) == K // 16 and {p.shape for p in products} == {"m64n128k16 f32 f16 f16"}
    # At most 2 * STAGES loads are in flight, and no wait ends before its data has arrived.
    for at in sorted({c.start for c in loads}):
        assert sum(c.start <= at < c.end for c in loads) <= 2 * STAGES
    full = [w for w in record.waits if "bytes missing" in w.what or "arrivals missing" in w.what]
    assert full
    ends = {c.end for c in record.copies} | {p.end for p in record.phases} | {s.end for s in record.runs}
    assert all(w.end in ends for w in full)
    assert record.end == max(s.end for s in record.runs)
    assert json.loads(json.dumps(record.json()))["end"] == record.end


def test_phases_follow_each_other(reports: dict[str, Any]) -> None:
    record = reports["round-robin"].timeline
    barriers: dict[str, list[Any]] = {}
    for p in record.phases:
        barriers.setdefault(p.barrier, []).append(p)
    assert len(barriers) >= 2 * STAGES
    for phases in barriers.values():
        assert [p.number for p in phases] == list(range(len(phases)))
        assert all(p.end == q.start for p, q in pairwise(phases))


def test_only_requested_reports_are_collected(reports: dict[str, Any]) -> None:
    assert reports["off"].timeline is None and reports["off"].profile is None
    assert reports["round-robin"].profile.reports == ("banks",)
    with pytest.raises(DrawingError, match=re.escape("run the kernel with device='cpu', reports=['timeline']")):
        draw(reports["off"])
    with pytest.raises(DrawingError, match=re.escape("block 3 did not run; blocks that ran: 0")):
        draw_timeline(reports["random"], block=3)


def test_the_drawing_has_each_event(reports: dict[str, Any]) -> None:
    report = reports["round-robin"]
    record = report.timeline
    drawn = draw(report)
    root = ET.fromstring(drawn.svg)
    names = {"svg": "http://www.w3.org/2000/svg"}
    bars = root.findall("svg:g[@class='cells']/svg:path", names)
    said = [p.findtext("svg:title", namespaces=names) or "" for p in bars]
    for w in record.waits:
        assert any(
            s.startswith(f"warp {w.warp} waits") and f"{w.start} to {w.end} ({w.end - w.start} ops)" in s for s in said
        )
    runs = [s for s in said if " runs: " in s]
    assert len(runs) == len(record.runs)
    assert sum(int(n) for s in said for n in re.findall(r": (\d+) wgmma", s)) == len(record.products)
    assert len([s for s in said if " bytes by warp " in s]) == len(record.copies)
    assert len([s for s in said if ": phase " in s]) == len(record.phases)
    # The bar of warp 0's longest wait is drawn at the position and width of its interval.
    w = max((w for w in record.waits if w.warp == 0), key=lambda w: w.end - w.start)
    bar = next(p for p, s in zip(bars, said) if s.startswith("warp 0 waits") and f"{w.start} to {w.end} " in s)
    found = re.match(r"M([\d.]+) [\d.]+h([\d.]+)v", bar.attrib["d"])
    assert found is not None
    scale = 1040 / record.end
    assert abs(float(found[1]) - 132 - w.start * scale) < 1 and abs(float(found[2]) - (w.end - w.start) * scale) < 1
    with pytest.raises(DrawingError, match="LaTeX draws grids of cells"):
        _ = drawn.latex


def test_polls_are_waits() -> None:
    """A block that polls a flag of another block is recorded as waiting."""

    @cute.kernel
    def kernel(flag: cute.Tensor, out: cute.Tensor) -> None:
        block = cute.arch.block_idx()[0]
        if cute.arch.thread_idx()[0] == 0:
            if block == 1:
                total = cute.Int32(0)
                for i in range(20):
                    total += out[2 + i]
                out[0] = total
                cute.arch.fence_acq_rel_gpu()
                cute.arch.store(flag.iterator, cute.Int32(1), sem="release", scope="gpu")
            else:
                while cute.arch.load(flag.iterator, cute.Int32, sem="acquire", scope="gpu") == 0:
                    pass
                out[1] = out[0]

    @cute.jit
    def host(flag: cute.Tensor, out: cute.Tensor) -> Any:
        kernel(flag, out).launch(grid=2, block=32)

    flag, out = np.zeros(1, np.int32), np.arange(22, dtype=np.int32)
    record = host(flag, out, device="cpu", reports=["timeline"]).timeline
    assert out[1] == out[0] == sum(range(2, 22))
    polls = [w for w in record.waits if w.block == 0]
    assert len(polls) == 1 and polls[0].what.startswith("polls")
    written = max(s.end for s in record.runs if s.block == 1)
    assert polls[0].end <= written and polls[0].end - polls[0].start > 5
    assert record.blocks == [0, 1] and "waits for something else" in draw_timeline(record).svg


def test_cute_run_draws_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from cute_dialect.tools.cute_run import main

    example = str(Path(__file__).parents[3] / "test" / "examples" / "elementwise_add.mlir")
    file, told = tmp_path / "x.svg", tmp_path / "x.json"
    inputs = ["--in", "16x40", "--in", "16x40", "--device", "cpu"]
    assert main([example, *inputs, "--timeline", str(file), "--report-json", str(told), "--report", "banks"]) == 0
    ET.parse(file)
    assert json.loads(told.read_text())["timeline"]["end"] > 0 and str(file) in capsys.readouterr().out
    assert main([example, *inputs, "--timeline", "x.tex"]) == 1
    assert "cute-run: error: the file name must end in .svg, .png, .html, got 'x.tex'" in capsys.readouterr().err
