"""Short runs on the interpreter check for races and uninitialized reads by default."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect import op
from cute_dialect.lang.calls import compiled
from cute_dialect.pipelines import cpu
from cute_dialect.runtime.call_options import CHECKS, OptionError, read_checks


@cute.kernel
def racy_kernel(x: cute.Tensor, out: cute.Tensor) -> None:
    partial = cute.smem_tensor(cute.Float32, cute.make_layout(64))
    thread = cute.arch.thread_idx().x
    partial[thread] = x[thread]
    out[thread] = partial[63 - thread]


@cute.kernel
def unwritten_kernel(x: cute.Tensor, out: cute.Tensor) -> None:
    partial = cute.smem_tensor(cute.Float32, cute.make_layout(64))
    thread = cute.arch.thread_idx().x
    out[thread] = partial[thread] + x[thread]


@cute.kernel
def late_race_kernel(x: cute.Tensor, out: cute.Tensor) -> None:
    """Race on shared memory in block 3 only."""
    partial = cute.smem_tensor(cute.Float32, cute.make_layout(64))
    block, thread = cute.arch.block_idx().x, cute.arch.thread_idx().x
    partial[thread] = x[thread]
    cute.arch.sync_warp()
    if block == 3:
        out[block, thread] = partial[63 - thread]
    else:
        out[block, thread] = partial[thread]


@cute.jit
def run(x: cute.Tensor, out: cute.Tensor, kernel: cute.Constexpr, grid: cute.Constexpr = 1) -> None:
    kernel(x, out).launch(grid=grid, block=64)


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("CUTE_CHECKS", raising=False)
    monkeypatch.setattr(compiled, "_warned_of_unchecked", [])
    yield


def arrays(*shape: int) -> tuple[np.ndarray, np.ndarray]:
    return np.ones(64, np.float32), np.zeros(shape or 64, np.float32)


@pytest.mark.parametrize(("kernel", "kind"), [(racy_kernel, "race"), (unwritten_kernel, "uninit")])
def test_default_checks_find_races(kernel: object, kind: str) -> None:
    with pytest.raises(cute.InterpError) as caught:
        run(*arrays(), kernel, device="cpu")
    assert caught.value.kind == kind


@pytest.mark.parametrize("checks", ["none", (), "oob,sync"])
def test_checks_can_be_disabled(checks: object, monkeypatch: pytest.MonkeyPatch) -> None:
    run(*arrays(), racy_kernel, device="cpu", checks=checks)
    if isinstance(checks, str):
        monkeypatch.setenv("CUTE_CHECKS", checks)
        run(*arrays(), racy_kernel, device="cpu")


@pytest.mark.parametrize("checks", ["race", "all", "auto", "race, sync", ("race",), ["race", "oob"]])
def test_texts_and_tuples(checks: object) -> None:
    with pytest.raises(cute.InterpError, match="race"):
        run(*arrays(), racy_kernel, device="cpu", checks=checks)


def test_wrong_names(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match=r"^checks: .*'all', 'auto', 'none', got 'races'"):
        run(*arrays(), racy_kernel, device="cpu", checks="races")
    with pytest.raises(OptionError, match=r"^checks: .* got 3"):
        run(*arrays(), racy_kernel, device="cpu", checks=3)
    monkeypatch.setenv("CUTE_CHECKS", "rac")
    with pytest.raises(OptionError, match="got 'rac'"):
        run(*arrays(), racy_kernel, device="cpu")


def test_groups() -> None:
    assert read_checks("all").names == tuple(c for c in CHECKS if c != "strict")
    assert not read_checks("all").budgeted
    assert read_checks("auto").budgeted and read_checks(None).names == () == read_checks("none").names


def test_a_long_run_stops_checking_and_warns_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "CHECK_BUDGET", 1)
    monkeypatch.setattr("cute_dialect.interp.exec.schedule.WIDE_LANES", 64)
    x, out = arrays(8, 64)
    with pytest.warns(RuntimeWarning, match="skipped for 7 of 8 blocks of @late_race_kernel") as caught:
        report = run(x, out, late_race_kernel, 8, device="cpu")
    assert report.unchecked == 7 and (out == 1).all() and caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(x, out, late_race_kernel, 8, device="cpu")
    with pytest.raises(cute.InterpError, match="race"):
        run(x, out, late_race_kernel, 8, device="cpu", checks="race")


def test_large_arrays_are_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cute_dialect.interp.exec.launch.MOST_CHECKED_BYTES", 100)
    with pytest.warns(RuntimeWarning, match="skipped for 1 of 1 blocks"):
        run(*arrays(), racy_kernel, device="cpu")
    with pytest.raises(cute.InterpError, match="race"):
        run(*arrays(), racy_kernel, device="cpu", checks="race")


def test_benchmarks_and_op_run_without_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_DEVICE", "cpu")
    x, out = arrays()
    arguments = cute.testing.JitArguments(x, out, racy_kernel)
    assert cute.testing.benchmark(run, iterations=1, warmup_iterations=1, kernel_arguments=arguments) > 0
    reports: list[object] = []
    a = np.ones((16, 16), np.float16)
    assert (op.mm(a, a, device="cpu", checks="all", report=reports.append) == 16).all() and reports
