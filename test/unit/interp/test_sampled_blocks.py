"""Runs of selected blocks of a grid: selection, results, checks, progress."""

from __future__ import annotations

import os
from itertools import pairwise

import numpy as np
import pytest
from interp_corpus import KERNELS
from interp_support import DSMEM, kernel, run_kernel

from cute_dialect.interp import InterpError, Pointer, Progress, RunReport, TensorMap
from cute_dialect.interp.exec.launch import choose
from cute_dialect.tools.check_expressions import CheckError
from cute_dialect.tools.cute_run import main
from cute_dialect.tools.run_check import check

EXAMPLE = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "elementwise_add.mlir")
GEMM = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "gemm_sm90.mlir")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("0,5,17", [0, 5, 17]),
        ("0:3", [0, 1, 2]),
        ("62:", [62, 63]),
        (":2,1,63", [0, 1, 63]),
        ("sample:1", [0]),
        ("sample:2", [0, 63]),
        ("sample:64", list(range(64))),
    ],
)
def test_which_blocks_run(text: str, want: list[int]) -> None:
    assert choose(text, (4, 4, 4), (1, 1, 1)) == [[b] for b in want]


def test_a_sample_has_the_ends_and_depends_on_the_seed() -> None:
    samples = [[c[0] for c in choose(f"sample:10:{seed}", (1000, 1, 1), (1, 1, 1))] for seed in (0, 0, 1)]
    assert samples[0] == samples[1] != samples[2]
    assert all(len(set(s)) == 10 and s[0] == 0 and s[-1] == 999 and s == sorted(s) for s in samples)


def test_clusters_run_whole() -> None:
    """Selecting block 5, at (1, 1), of a grid with 2 x 2 clusters also runs (0, 0), (1, 0) and (0, 1)."""
    assert choose("5", (4, 4, 1), (2, 2, 1)) == [[0, 1, 4, 5]]
    assert choose([15], (4, 4, 1), (2, 2, 1)) == [[10, 11, 14, 15]]
    assert sum(map(len, choose("sample:5", (4, 4, 1), (2, 2, 1)))) == 8


@pytest.mark.parametrize("text", ["", "x", "3:x", "sample", "sample:0", "sample:2:x", "1;2", "64", "-1", "60:65"])
def test_invalid_block_selections_are_rejected(text: str) -> None:
    with pytest.raises(InterpError, match=r"invalid blocks|not (all )?exist|it must have at least one"):
        choose(text, (64, 1, 1), (1, 1, 1))
    with pytest.raises(InterpError, match="select at least one of the 64 blocks"):
        choose([], (64, 1, 1), (1, 1, 1))


def written(report: RunReport, array: np.ndarray) -> np.ndarray:
    """Return a mask of the elements of an array that were written."""
    mask = next(m for a, m in report.written if a is array)
    assert len(mask) == array.nbytes
    bytes_ = mask.reshape(-1, array.itemsize)
    assert (bytes_.all(axis=1) == bytes_.any(axis=1)).all()
    return np.asarray(bytes_.all(axis=1)).reshape(array.shape)


@pytest.mark.parametrize("width", ["auto", "warp"])
def test_other_blocks_have_no_effect(width: str) -> None:
    """The `scale` kernel processes 1000 elements with 8 blocks of 128 threads."""
    k = KERNELS["scale"]
    args, _ = k.make()
    out = next(a.buffer for a in args[::-1] if isinstance(a, Pointer))
    before = out.copy()
    report = run_kernel(kernel(k.body, k.params, DSMEM), "k", args, 8, k.block, blocks="1,7", width=width)
    assert (report.blocks, report.all_blocks) == (2, 8)
    mask = written(report, out)
    want = np.isin(np.arange(out.size) // 128, (1, 7))
    assert np.array_equal(mask.reshape(-1), want)
    assert np.array_equal(out[~mask], before[~mask]) and not np.array_equal(out[mask], before[mask])


def test_atomics_and_copies_mark_written_bytes() -> None:
    body = """
      %i = llvm.getelementptr %a[%cta] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %one = arith.constant 1 : i32
      %o = llvm.atomicrmw add %i, %one monotonic : !llvm.ptr<1>, i32
      llvm.return"""
    a = np.zeros(8, np.int32)
    report = run_kernel(kernel(body, "%a: !llvm.ptr<1>"), "k", [Pointer(a)], 8, 32, blocks=[2, 3])
    assert a.tolist() == [0, 0, 32, 32, 0, 0, 0, 0]
    assert written(report, a).tolist() == [False, False, True, True, False, False, False, False]
    k = KERNELS["gemm"]  # This kernel has one block, which writes through a TMA store.
    args, _ = k.make()
    assert isinstance(args[2], TensorMap) and args[2].pointer is not None
    out = args[2].pointer.buffer
    report = run_kernel(kernel(k.body, k.params, DSMEM), "k", args, 1, k.block, dynamic_smem=k.smem, blocks="0")
    assert written(report, out).all()


def test_a_missing_partner_is_named() -> None:
    """Block 0 polls a flag that block 1, outside the sample, would set. The error counts the unselected blocks."""
    body = """
      %c0 = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %first = arith.cmpi eq, %cta, %c0 : i32
      scf.if %first {
        scf.while : () -> () {
          %v = llvm.load volatile %a : !llvm.ptr<1> -> i32
          %wait = arith.cmpi eq, %v, %c0 : i32
          scf.condition(%wait)
        } do {
          scf.yield
        }
      } else {
        llvm.store volatile %one, %a : i32, !llvm.ptr<1>
      }
      llvm.return"""
    module = kernel(body, "%a: !llvm.ptr<1>")
    run_kernel(module, "k", [Pointer(np.zeros(1, np.int32))], 2, 32)
    with pytest.raises(InterpError, match="1 blocks of the grid were not selected to run") as e:
        run_kernel(module, "k", [Pointer(np.zeros(1, np.int32))], 2, 32, blocks="0")
    assert e.value.kind == "deadlock"


def test_progress_is_reported() -> None:
    k = KERNELS["scale"]
    for width in ("auto", "warp"):
        told: list[Progress] = []
        args, _ = k.make()
        run_kernel(kernel(k.body, k.params, DSMEM), "k", args, 8, k.block, width=width, progress=told.append)
        assert told[-1].done == told[-1].total == 8 and told[-1].lane_ops > 0
        assert all(a.done <= b.done and a.lane_ops <= b.lane_ops for a, b in pairwise(told))


def test_checks_compare_written_elements_only() -> None:
    a = np.arange(12.0).reshape(3, 4)
    c = np.full((3, 4), np.nan)
    c[1] = a[1] + 1
    mask = np.isfinite(c)
    values = {"a": a, "c": c}
    whole = ("c == a + 1", "allclose(c.T, transpose(a) + 1)", "abs(c - a) < 2", "c[1:] == a[1:] + 1")
    for text in (*whole, "c[1] == a[1] + 1"):
        got = check(text, values, ["a", "c"], {"c": mask})
        assert got.ok and got.detail.startswith("holds for the 4 of "), text
        assert text == "c[1] == a[1] + 1" or not check(text, values, ["a", "c"]).ok
    got = check("c == a", values, ["a", "c"], {"c": mask})
    assert got == (False, "fails for 4 of the 4 of 12 elements that were written, the first at (1, 0)")
    for text, message in (
        ("sum(c) == 3", "only some elements of 'c' were written"),
        ("c[0] == a[0]", "wrote no element"),
        ("a == a", "wrote no element"),
        ("c", "not a comparison"),
    ):
        with pytest.raises(CheckError, match=message):
            check(text, values, ["a", "c"], {"c": mask})
    assert not check("c == a[0]", values, ["a", "c"], {"c": mask}).ok


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    options = [EXAMPLE, "--device=cpu", "--in", "100x300", "--in", "100x300", "--check", "c == a + b"]
    assert main([*options, "--blocks=sample:3:1"]) == 0
    out = capsys.readouterr().out
    assert "3 of 21 blocks" in out and "lane-ops/s" in out and "elements that were written" in out
    assert main([*options[:-1], "c == a - b", "--blocks=0,20"]) == 1
    assert "elements that were written, the first at" in capsys.readouterr().err
    assert main([*options, "--blocks=21"]) == 1
    assert "block 21 does not exist; the grid has 21 blocks" in capsys.readouterr().err
    assert main([EXAMPLE, "--device=gpu", *options[2:], "--blocks=1"]) == 1


def test_a_sample_of_a_gemm() -> None:
    """When one block or cluster of a Hopper GEMM runs, its tile is right and the other tiles are unchanged."""
    from cute_dialect.pipelines import compile as compile_cute

    gemm = compile_cute(GEMM, emit="base")
    run = gemm.kernel(next(h["name"] for h in gemm.manifest["hosts"]))
    rng = np.random.default_rng(0)
    shapes = {"A": (512, 64), "B": (512, 64), "C": (512, 512)}
    names = run.target.names
    args = [rng.integers(-2, 3, shapes[n]).astype(np.float16) for n in names]
    where = dict(zip(names, args))
    where["C"][...] = -7
    report = run(*args, device="cpu", blocks="1")
    assert report is not None and report.blocks < report.all_blocks
    mask = report.written_elements["C"]
    want = (where["A"].astype(np.float32) @ where["B"].astype(np.float32).T).astype(np.float16)
    assert 0 < mask.sum() < mask.size
    assert np.array_equal(where["C"][mask], want[mask]) and (where["C"][~mask] == -7).all()
