"""The protocol prover on rings of the language: proofs, and defects that the interpreter reproduces."""

# ruff: noqa: F821, UP037  (the strings in annotations are names of extents)

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import cute_dialect.lang as cute
from cute_dialect.errors import UsageError
from cute_dialect.prove import effects, facts
from cute_dialect.prove.arithmetic import Learned
from cute_dialect.prove.exhaustive import Interleaved, explore
from cute_dialect.prove.machine import Machine
from cute_dialect.prove.program import Program, find_kernel
from cute_dialect.prove.proof import prove
from cute_dialect.prove.values import Counter, Linear, symbol
from cute_dialect.tools import cute_prove

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "oracle"))

import prove_table
from rings import (
    DEFECTS,
    FAMILIES,
    REMAINDERS,
    TILE_DEFECTS,
    alternating_mbarriers,
    alternating_pair,
    alternating_ring,
    arrays,
    cluster_ring,
    ring,
    tail_ring,
    tile_arrays,
    tile_ring,
)

LONG = (tail_ring, alternating_mbarriers)
"""Protocols whose search with three stages does not end."""
MANY = (cluster_ring, alternating_ring, alternating_mbarriers, alternating_pair)
"""Protocols with more interleavings than a test visits."""
PROBLEMS = [arrays(n) for n in (7, 4, 1, 2)]


def module_of(f: Any) -> ModuleOp:
    return cast(ModuleOp, cute.compile(f, *arrays(2), device="cpu").kernel(cpu=True).module.lowered())


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_a_correct_ring_is_proved(stages: int):
    (proof,) = cute.testing.prove(ring(stages), PROBLEMS[0])
    assert proof, str(proof)
    assert proof.states > stages and "proved for all trip counts" in str(proof)


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_refuted_with_a_report_of_the_interpreter(defect: str):
    (proof,) = cute.testing.prove(ring(2, defect), PROBLEMS[0], problems=PROBLEMS[1:])
    assert proof.verdict == "refuted" and not proof
    assert "rings.py:" in proof.location and "the interpreter reports" in proof.cure and "rings.py:" in proof.cure
    assert any(size.startswith("x") for size in proof.sizes)


def test_a_loop_over_two_tiles_of_unknown_length_is_proved():
    (proof,) = cute.testing.prove(alternating_pair(2), tile_arrays(2))
    assert proof and proof.states < 50, str(proof)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "arguments", "stages"), [(f, a, n) for f, _, a in REMAINDERS for n in ((2,) if f in LONG else (2, 3))]
)
def test_skipped_phases_and_remainders_of_trip_counts_are_proved(
    build: Callable[..., Any], arguments: Callable[[int], tuple[Any, ...]], stages: int
):
    (proof,) = cute.testing.prove(build(stages), arguments(2))
    assert proof and not proof.assumed, str(proof)


def test_small_sizes_are_decided_for_all_tiles_at_once():
    """Otherwise the search tries all sequences of sizes that fit the ring: 561 states for the GEMM instead of 80."""
    (proof,) = cute.testing.prove(tile_ring(2), tile_arrays(2))
    assert proof and proof.states < 100, str(proof)


@pytest.mark.slow
@pytest.mark.parametrize("defect", TILE_DEFECTS)
def test_a_defect_for_one_size_is_refuted(defect: str):
    """The sizes that are decided for the whole launch (up to 2), and above them."""
    problems = [tile_arrays(n) for n in range(1, 7)]
    (proof,) = cute.testing.prove(tile_ring(2, defect), tile_arrays(7), problems=problems)
    assert proof.verdict == "refuted", str(proof)


def test_a_counterexample_without_a_replay_is_not_proved():
    proof = prove(module_of(ring(2, "no release")), "ring_kernel")
    assert proof.verdict == "not proved" and "no arguments to replay it on" in proof.reason


def test_a_counterexample_that_runs_do_not_show_is_not_proved():
    runs: list[str] = []
    proof = prove(module_of(ring(2, "no release")), "ring_kernel", [("one", runs.append)])
    assert proof.verdict == "not proved" and "in 5 runs the interpreter does not reproduce it" in proof.reason
    assert runs == ["replay:0*6,1*2,0*5,1*2", "round-robin", "adversarial", "reverse", "random"]


@pytest.mark.parametrize("name", ["nvvm.mbarrier.arrive", "nvvm.mbarrier.try_wait.parity", "nvvm.mbarrier.init"])
def test_an_op_that_the_table_lacks_is_named(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(effects.EFFECTS, name)
    proof = prove(module_of(ring(2)), "ring_kernel")
    assert proof.verdict == "not proved" and proof.reason == f"the effect of {name} is not modelled"
    assert "rings.py:" in proof.location


def test_every_effect_has_a_step():
    from cute_dialect.prove.machine import Machine

    for name, effect in effects.EFFECTS.items():
        assert hasattr(Machine, f"_do_{effect.kind}"), name


@pytest.mark.parametrize(
    ("is_late", "reason"),
    [
        (lambda k: cute.Int32(cute.Int8(k)) < 0, "a size or iteration is truncated to 8 bits"),
        (lambda k: (k << 30) < 0, "a left shift of a size or iteration may reach the sign bit"),
        (lambda k: cute.Uint32(k - 5) > 100, "a value that may be negative as an unsigned integer"),
    ],
)
def test_a_value_that_may_lose_bits_is_not_proved(is_late: Callable[[Any], Any], reason: str):
    @cute.kernel
    def rows(x: cute.Tensor, y: cute.Tensor):
        lane = cute.arch.thread_idx().x
        s = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 32, 16), cute.make_layout(32))
        for k in range(x.shape[1]):
            cute.arch.sync_warp()
            s[lane] = x[lane, k]
            if not is_late(k):
                cute.arch.sync_warp()
            y[lane, k] = s[31 - lane]

    @cute.jit
    def launch(x: cute.Tensor[None, 32, "n"], y: cute.Tensor[None, 32, "n"]):
        rows(x, y).launch(grid=1, block=32)

    (proof,) = cute.testing.prove(launch, arrays(2))
    assert proof.verdict == "not proved" and reason in proof.reason, str(proof)
    assert "test_protocols.py:" in proof.location


@pytest.mark.parametrize("relation", ["remainder", "quotient"])
def test_sizes_that_may_contradict_each_other_are_left_out(relation: str):
    @cute.kernel
    def rows(x: cute.Tensor, y: cute.Tensor):
        lane = cute.arch.thread_idx().x
        s = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 32, 16), cute.make_layout(32))
        for k in range(x.shape[1]):
            cute.arch.sync_warp()
            s[lane] = x[lane, k]
            if x.shape[1] % 7 != 5 if relation == "remainder" else x.shape[1] // 5 != 1:
                cute.arch.sync_warp()
            y[lane, k] = s[31 - lane]

    @cute.jit
    def launch(x: cute.Tensor[None, 32, "n"], y: cute.Tensor[None, 32, "n"]):
        rows(x, y).launch(grid=1, block=32)

    (proof,) = cute.testing.prove(launch, arrays(5))
    assert proof.verdict == "refuted" and "(32, 5)" in proof.cure, str(proof)
    assert proof.sizes == (("(x.shape[1] % 7) = 5",) if relation == "remainder" else ())


def test_an_unknown_kernel_is_named():
    with pytest.raises(UsageError, match=r"the module has no kernel 'no_such'; it has .*ring_kernel"):
        prove(module_of(ring(2)), "no_such")


def test_a_read_that_nothing_orders_after_a_write_of_another_lane():
    @cute.kernel
    def shift(y: cute.Tensor, fixed: cute.Constexpr):
        lane = cute.arch.thread_idx().x
        s = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 32, 16), cute.make_layout(32))
        s[lane] = 1.0
        if fixed:
            cute.arch.sync_warp()
        y[lane] = s[31 - lane]

    @cute.jit
    def launch(y: cute.Tensor, fixed: cute.Constexpr):
        shift(y, fixed).launch(grid=1, block=32)

    y = arrays(1)[0].reshape(-1)
    assert cute.testing.prove(launch, (y, True))[0]
    (proof,) = cute.testing.prove(launch, (y, False))
    assert proof.verdict == "refuted" and "not ordered after the write of warp 0" in proof.reason


def test_values():
    k = symbol(("argument", 0, ()))
    assert k * 2 + 1 - k - k == 1
    difference = k - 3
    assert isinstance(difference, Linear) and difference.const == -3
    assert Counter(((), None), 4) != Counter(((), None), 5)


def test_facts_of_a_read_that_everyone_knows_are_dropped():
    table = facts.Table(everyone=0b11)
    f = facts.Facts(table)
    f.add(table.record(facts.WRITE, ("thread", 0, 0), facts.DONE, 0b01, 0), 0b1111, [])
    assert [(r.kind, common) for r, common in f.touching(0b10001)] == [("write", 0b1)]
    f.add(table.record(facts.READ, ("thread", 1, 0), facts.DONE, 0b10, 0), 0b0001, f.touching(0b0001))
    f.carry(0b10, 0b01)
    assert [r.kind for r in f.records] == ["write"] and f.written == 0b1111


def test_the_program_proves_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "ring.mlir"
    file.write_text(cute.compile(ring(2, "no release"), *arrays(2), device="cpu").mlir("trace"))
    assert cute_prove.main([str(file)]) == 2
    assert "abstract counterexample" in capsys.readouterr().out
    assert cute_prove.main([str(file), "--in", "32xKxf32", "--in", "32xKxf32"]) == 1
    assert "refuted: deadlock" in capsys.readouterr().out
    assert cute_prove.main([str(file), "--kernel", "no_such"]) == 3
    assert "no such kernel" in capsys.readouterr().err
    assert cute_prove.main([str(tmp_path / "none.mlir")]) == 3


@pytest.mark.parametrize(("build", "arguments"), [(f, a) for f, d, a in FAMILIES[1:] if (f, d, a) not in REMAINDERS])
def test_a_correct_protocol_is_proved(build: Callable[..., Any], arguments: Callable[[int], tuple[Any, ...]]):
    (proof,) = cute.testing.prove(build(3), arguments(2))
    assert proof, str(proof)
    assert proof.states >= 3 and f", in {proof.states} states" in str(proof)


def program_of(f: Any, arguments: Callable[[int], tuple[Any, ...]]) -> Program:
    compiled = cute.compile(f, *arguments(2), device="cpu").kernel(cpu=True).module
    module = cast(ModuleOp, compiled.lowered())
    return Program(module, find_kernel(module, compiled.names[0]))


@pytest.mark.slow
@pytest.mark.parametrize(("build", "defect", "arguments"), [(f, d, a) for f, defects, a in FAMILIES for d in defects])
def test_a_defect_of_a_protocol_is_refuted(
    build: Callable[..., Any], defect: str, arguments: Callable[[int], tuple[Any, ...]]
):
    problems = [arguments(n) for n in (7, 4, 1, 2)]
    (proof,) = cute.testing.prove(build(2, defect), problems[0], problems=problems[1:])
    assert proof.verdict == "refuted", str(proof)
    if build in MANY:
        return
    assert proof.schedule.startswith("replay:") or build is tail_ring, proof.schedule
    program = program_of(build(2, defect), arguments)
    assert explore(program, Learned(), 60, trips=4, kind=Machine)[0] is not None
    assert explore(program, Learned(), 60)[0] is not None


@pytest.mark.slow
@pytest.mark.parametrize(("build", "arguments"), [(f, a) for f, _, a in FAMILIES if f not in MANY])
def test_no_interleaving_of_a_proved_protocol_is_wrong(
    build: Callable[..., Any], arguments: Callable[[int], tuple[Any, ...]]
):
    program = program_of(build(2), arguments)
    for trips, kind in ((4, Machine), (None, Interleaved)):
        found, visited = explore(program, Learned(), 60, trips=trips, kind=kind)
        assert found is None and visited.states > 15


def guarded(guard: str) -> Any:
    """Return a host function with accesses, or a barrier, under a condition that memory decides."""

    @cute.kernel
    def guarded_kernel(x: cute.Tensor, y: cute.Tensor):
        lane = cute.arch.thread_idx().x
        s = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 32, 16), cute.make_layout(32))
        s[lane] = 0.0
        if guard != "no barrier":
            cute.arch.sync_warp()
        if x[lane] > 0:
            s[31 - lane] = x[lane]
            if guard == "barrier inside":
                cute.arch.sync_warp()
        if guard != "no second barrier":
            cute.arch.sync_warp()
        if x[lane] > 1:
            y[lane] = s[lane]

    @cute.jit
    def launch(x: cute.Tensor, y: cute.Tensor):
        guarded_kernel(x, y).launch(grid=1, block=32)

    return launch


@pytest.mark.parametrize(
    ("guard", "verdict", "reason"),
    [
        ("", "proved", ""),
        ("no barrier", "refuted", "the store writes shared memory byte 124"),
        ("no second barrier", "refuted", "the load reads shared memory byte 0"),
        ("barrier inside", "not proved", "a branch depends on a value that is not known"),
    ],
)
def test_an_access_under_an_unknown_condition(guard: str, verdict: str, reason: str):
    x = np.arange(32, dtype=np.float32)
    (proof,) = cute.testing.prove(guarded(guard), (x, np.zeros_like(x)))
    assert proof.verdict == verdict and proof.reason.startswith(reason), str(proof)


def test_each_lane_may_run_a_loop_of_its_own_length():
    @cute.kernel
    def rows(x: cute.Tensor, y: cute.Tensor, fixed: cute.Constexpr):
        tid = cute.arch.thread_idx().x
        s = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 80, 16), cute.make_layout(80))
        for i in range(tid, 80, 32):  # 2 or 3 elements
            s[i] = x[i]
        if fixed:
            cute.arch.sync_warp()
        for i in range(tid, 80, 32):
            y[i] = s[79 - i]

    @cute.jit
    def launch(x: cute.Tensor, y: cute.Tensor, fixed: cute.Constexpr):
        rows(x, y, fixed).launch(grid=1, block=32)

    x = np.arange(80, dtype=np.float32)
    assert cute.testing.prove(launch, (x, np.zeros_like(x), True))[0]
    (proof,) = cute.testing.prove(launch, (x, np.zeros_like(x), False))
    assert proof.verdict == "refuted" and "not ordered after the write of warp 0" in proof.reason


def test_a_product_that_only_small_sizes_keep_in_range_is_an_assumption():
    @cute.kernel
    def rows(x: cute.Tensor, y: cute.Tensor):
        lane = cute.arch.thread_idx().x
        s = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 32, 16), cute.make_layout(32))
        for k in range(x.shape[1]):
            cute.arch.sync_warp()
            s[lane] = x[lane, k]
            if k * 65536 >= 0:
                cute.arch.sync_warp()
            y[lane, k] = s[31 - lane]

    @cute.jit
    def launch(x: cute.Tensor[None, 32, "n"], y: cute.Tensor[None, 32, "n"]):
        rows(x, y).launch(grid=1, block=32)

    (proof,) = cute.testing.prove(launch, arrays(2))
    assert proof and proof.assumed == ("65536*x.shape[1] < 2^31",), str(proof)


def test_a_race_on_global_memory_reproduces_nothing():
    @cute.kernel
    def both(y: cute.Tensor):
        s = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 32, 16), cute.make_layout(32))
        if y[0] < 0:  # never, but the prover does not know
            s[0] = y[0]
        y[0] = 1.0

    @cute.jit
    def launch(y: cute.Tensor):
        both(y).launch(grid=1, block=64)

    (proof,) = cute.testing.prove(launch, (np.zeros(1, np.float32),))
    assert proof.verdict == "not proved" and "the interpreter does not reproduce it" in proof.reason, str(proof)


@pytest.mark.slow
def test_the_table_of_the_examples_is_true():
    assert prove_table.published() == prove_table.table(sorted(prove_table.EXAMPLES.glob("*.mlir")))
