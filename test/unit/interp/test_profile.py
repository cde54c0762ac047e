"""Bank conflicts, sectors and occupancy, compared with a direct count, in kernels and on the command line."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interp_corpus import KERNELS
from interp_support import DSMEM, kernel, run_kernel

from cute_dialect.arch.targets import TARGETS
from cute_dialect.interp import Pointer
from cute_dialect.interp.reports.profile import bank_transactions, occupancy, sector_transactions

EXAMPLE = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "elementwise_add.mlir")


def banks_by_definition(offsets: list[int], nbytes: int) -> int:
    """Count the shared-memory transactions of a warp from the definition.

    A phase of 32, 16 or 8 threads takes as many transactions as the most distinct words in one bank. Two phases of
    8-byte or 16-byte accesses are merged if each thread i has the address of thread i ^ 1, or each that of i ^ 2.
    """
    per = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}[nbytes]
    phases: list[list[int]] = []
    if per == 32:
        phases.append(offsets)
    else:
        for first in range(0, 32, 2 * per):
            both = offsets[first : first + 2 * per]
            joined = any(all(both[i] == both[i ^ d] for i in range(2 * per)) for d in (1, 2))
            phases += [both] if joined else [both[:per], both[per:]]
    total = 0
    for phase in phases:
        banks: dict[int, set[int]] = {}
        for off in phase:
            for word in range(off // 4, (off + nbytes - 1) // 4 + 1):
                banks.setdefault(word % 32, set()).add(word)
        total += max(len(words) for words in banks.values())
    return total


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([1, 2, 4, 8, 16]),
    st.lists(st.integers(0, 255), min_size=32, max_size=32),
    st.sampled_from([0, 1, 2, 31]),
)
def test_banks(nbytes: int, places: list[int], shared: int) -> None:
    offsets = [places[i & ~shared] * nbytes for i in range(32)]
    got, ideal = bank_transactions(np.array(offsets), np.arange(32), nbytes)
    assert got == banks_by_definition(offsets, nbytes)
    assert ideal <= got


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([1, 2, 4, 8, 16]), st.lists(st.integers(0, 255), min_size=32, max_size=32))
def test_sectors(nbytes: int, places: list[int]) -> None:
    touched = {(p * nbytes + i) // 32 for p in places for i in range(nbytes)}
    got, ideal = sector_transactions(np.array(places) * nbytes, nbytes)
    assert got == len(touched)
    assert ideal <= got


def columns(pitch: int) -> tuple[int, int]:
    """Return the actual and ideal transactions of a warp that reads a column of an f32 tile with this pitch."""
    body = f"""
        %pitch = arith.constant {pitch} : i32
        %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
        %i = arith.muli %tid, %pitch : i32
        %s = llvm.getelementptr %d[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
        %v = llvm.load %s : !llvm.ptr<3> -> f32
        %p = llvm.getelementptr %a[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        llvm.store %v, %p : f32, !llvm.ptr<1>
        llvm.return
    """
    report = run_kernel(
        kernel(body, "%a: !llvm.ptr<1>", DSMEM),
        "k",
        [Pointer(np.zeros(64, np.float32))],
        block=(64,),
        dynamic_smem=64 * 33 * 4,
        reports=["banks", "coalescing"],
    )
    assert report.profile is not None
    shared, stored = report.profile.lines[0], report.profile.lines[-1]
    if shared.space != "shared":
        shared, stored = stored, shared
    assert (shared.op, shared.width, shared.requests) == ("llvm.load", 4, 2)
    assert (stored.space, stored.transactions, stored.ideal) == ("global", 8, 8)
    return shared.transactions, shared.ideal


@pytest.mark.parametrize(("pitch", "conflicts"), [(1, 1), (2, 2), (8, 8), (32, 32), (33, 1), (12, 4)])
def test_a_column(pitch: int, conflicts: int) -> None:
    assert columns(pitch) == (2 * conflicts, 2)


def test_padding_of_the_transpose_pays() -> None:
    k = KERNELS["transpose"]
    counts = []
    for pitch in (33, 32):
        args, _ = k.make()
        text = k.body.replace("%pitch = arith.constant 33", f"%pitch = arith.constant {pitch}")
        report = run_kernel(
            kernel(text, k.params, DSMEM), "k", args, block=k.block, dynamic_smem=k.smem, reports=["banks"]
        )
        assert report.profile is not None
        counts.append(sum(x.transactions for x in report.profile.lines))
    assert counts == [128, 64 + 64 * 32]


def test_occupancy() -> None:
    """Occupancy is limited by threads, blocks, shared memory or registers."""
    assert occupancy(256, 0)[:2] == (8, 64)
    assert occupancy(32, 0)[:2] == (32, 32)
    assert occupancy(128, 100 * 1024)[:2] == (2, 8)
    assert occupancy(128, 0, 128) == (4, 16, 25.0, "registers", 64)
    assert occupancy(256, 0, target=TARGETS["sm_86"]) == (6, 48, 100.0, "threads", 48)


def test_command_line(tmp_path: os.PathLike[str], capsys: pytest.CaptureFixture[str]) -> None:
    from cute_dialect.tools.cute_run import main

    path = os.path.join(tmp_path, "report.json")
    inputs = ["--in", "16x40", "--in", "16x40"]
    options = ["--device", "cpu", "--check", "race,oob,uninit,sync", "--check", "c == a + b", "--schedule", "random"]
    reports = ["--report", "coalescing,occupancy", "--report-json", path]
    assert main([EXAMPLE, *inputs, *options, *reports]) == 0
    with open(path, encoding="utf-8") as f:
        told = json.load(f)
    assert {x["op"] for x in told["accesses"]} == {"llvm.load", "llvm.store"}
    assert all(
        x["transactions"] >= x["ideal"] > 0 and "elementwise_add.mlir" in x["location"] for x in told["accesses"]
    )
    from cute_dialect.pipelines import compile as compile_cute

    kernels = [k for c in compile_cute(EXAMPLE).artifact.code for k in (c.ptxas or {}).get("kernels", [])]
    registers = next((k["registers"] for k in kernels if k["name"] == "add_v"), 0)  # The count is 0 without ptxas.
    assert told["occupancy"]["percent"] == occupancy(128, 0, registers).percent
    assert main([EXAMPLE, *inputs, *options, "--report", "coalescing"]) == 0
    assert "memory accesses" in capsys.readouterr().out
    assert main([EXAMPLE, *inputs, "--device", "cpu", "--report", "nothing"]) == 1
    assert (
        "reports: expected a tuple or list with any of 'banks', 'coalescing', 'occupancy', 'timeline'"
        in capsys.readouterr().err
    )


def test_only_the_interpreter_checks() -> None:
    from cute_dialect.pipelines import compile as compile_cute
    from cute_dialect.runtime.launch_plan import LaunchError

    add = compile_cute(EXAMPLE, emit="base").kernel("add")
    a = np.zeros((4, 4), np.float32)
    with pytest.raises(LaunchError, match='checks: only the interpreter has this option; pass device="cpu"'):
        add(a, a, a, checks=["race"], reports=["banks"])
