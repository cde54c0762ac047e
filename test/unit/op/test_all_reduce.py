"""``op.distributed.all_reduce`` on simulated ranks: definitions, algorithms, schedules, errors, and failed waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from all_reduce_runs import DTYPES, Case, gives_up, reports_other_call, run
from numpy.typing import NDArray

import cute_dialect.lang as cute
from cute_dialect import op
from cute_dialect.interp import InterpError
from cute_dialect.kernels.distributed.all_reduce import all_reduce_text
from cute_dialect.kernels.distributed.exchange import ABORT, LATE
from cute_dialect.op.execute.array_call import RowKernel
from cute_dialect.op.execute.rank_groups import group_of, hash_of
from cute_dialect.op.execute.rank_memory import MemoryShape, failure_text
from cute_dialect.op.select import all_reduce as choice
from cute_dialect.op.select.all_reduce import AllReduceProblem, choose_all_reduce
from cute_dialect.runtime.arrays import view_of
from cute_dialect.runtime.call_options import SCHEDULES

all_reduce = op.distributed.all_reduce


def on_ranks(ranks: int, call: Callable[[int], Any], schedule: str = "round-robin") -> list[Any]:
    """Return the results of a function of the rank."""
    found: dict[int, Any] = {}
    with cute.testing.ranks(ranks, schedule=schedule, seed=3) as world:
        world.run(lambda rank: found.update({rank: call(rank)}))
    return [found[r] for r in range(ranks)]


# ------------------------------------------------------------------------------------------------------------ kernels


@pytest.mark.sample("True-adversarial")
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("two_shot", [False, True])
def test_kernels_under_all_schedules(two_shot: bool, schedule: str) -> None:
    assert run(Case("f16", 2, 4 * 72 + 5, 72, two_shot=two_shot), schedule)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("two_shot", [False, True])
@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
def test_all_kernels(ranks: int, element: str, norm: bool, two_shot: bool, schedule: str) -> None:
    """Rows of whole vectors, and with a ragged end; rows read element by element; more and fewer rows than blocks."""
    for vectors, length in ((True, 72), (False, 37)):
        for rows, residual in ((1, False), (5, True)):
            size = rows * length if norm else rows * length - 3
            case = Case(element, ranks, size, length, two_shot=two_shot, norm=norm, residual=residual, vectors=vectors)
            assert run(case, schedule), case


@pytest.mark.slow
@pytest.mark.parametrize("two_shot", [False, True])
def test_failed_waits_end_on_all_ranks(two_shot: bool) -> None:
    case = Case("f16", size=3 * 72, length=72, two_shot=two_shot, residual=True)
    assert gives_up(case, 0) and gives_up(case, 1) and gives_up(case, 0, 1) and reports_other_call(case)


# ----------------------------------------------------------------------------------------------------------- operation


def exact(x: NDArray[Any], *more: NDArray[Any]) -> NDArray[Any]:
    """Return the sum of the ranks in f32 in their order, then of further arrays, rounded once."""
    total = x[0].astype(np.float32)
    for term in (*x[1:], *more):
        total = total + term.astype(np.float32)
    return total.astype(x.dtype)


@pytest.mark.parametrize("two_shot", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_chained_calls_with_a_norm(two_shot: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call takes the result of the last one, and both algorithms give the same bits."""
    monkeypatch.setattr(choice, "ONE_SHOT_BYTES", {32: 0 if two_shot else 1 << 30})
    rng = np.random.default_rng(0)
    x, residual = (rng.standard_normal(s).astype(ml_dtypes.bfloat16) for s in ((2, 3, 40), (3, 40)))
    weight = rng.standard_normal(40).astype(ml_dtypes.bfloat16)

    def call(rank: int) -> tuple[Any, Any]:
        normed, total = all_reduce(x[rank], residual, weight, 1e-3)
        return normed, all_reduce(total)

    (norm, twice), (other_norm, other_twice) = on_ranks(2, call, "random")
    total = exact(x, residual)
    assert (twice == exact(np.stack([total, total]))).all() and (other_twice == twice).all()
    rows = total.astype(np.float64)
    want = rows / np.sqrt((rows * rows).mean(-1, keepdims=True) + 1e-3) * weight.astype(np.float64)
    assert (np.abs(norm.astype(np.float64) - want) <= np.abs(want) * 2**-8 + 1e-6).all()
    assert (norm == other_norm).all()


@pytest.mark.slow
@pytest.mark.parametrize("two_shot", [False, True])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
def test_sizes_and_types(ranks: int, two_shot: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "ONE_SHOT_BYTES", {32: 0 if two_shot else 1 << 30})
    rng = np.random.default_rng(ranks)
    for dtype in DTYPES.values():
        for shape in ((1,), (7,), (513,), (2049,), (3, 5, 11), (0, 4)):
            x = rng.standard_normal((ranks, *shape)).astype(dtype)
            residual = rng.standard_normal(shape).astype(dtype)
            weight = rng.standard_normal(shape[-1]).astype(dtype)
            plain = on_ranks(ranks, lambda r, x=x: all_reduce(x[r]), "random")
            fused = on_ranks(ranks, lambda r, x=x, m=residual, w=weight: all_reduce(x[r], m, w), "adversarial")
            for rank in range(ranks):
                assert (plain[rank] == exact(x)).all()
                assert (fused[rank].sum == exact(x, residual)).all()
                assert (fused[rank].norm == fused[0].norm).all()
            rows = fused[0].sum.astype(np.float64)
            if rows.size:
                want = rows / np.sqrt((rows * rows).mean(-1, keepdims=True) + 2.0**-23) * weight.astype(np.float64)
                error = np.abs(fused[0].norm.astype(np.float64) - want)
                step = float(ml_dtypes.finfo(dtype).eps)
                assert (error <= np.abs(want) * (step * 0.51 + 2e-6) + 6e-8).all()


@pytest.mark.slow
def test_tensors_of_torch_at_any_address() -> None:
    """A tensor that begins at an odd element is read element by element, also if others are aligned."""
    torch = pytest.importorskip("torch")
    x = torch.arange(2 * 101).reshape(2, 101).half() / 8
    for first in (0, 1):
        found = on_ranks(2, lambda r, first=first: all_reduce(x[r][first:]))
        assert all(torch.equal(t, (x[0] + x[1])[first:]) for t in found)


def test_chooses_by_size_and_ranks() -> None:
    """The vector is covered by the rows, and rows fit the threads."""
    for element in DTYPES:
        for ranks in (1, 2, 3, 4, 8, 16):
            for size in (1, 1000, 1 << 17, 1 << 20, (1 << 29) - 1):
                for cpu in (False, True):
                    unaligned = choose_all_reduce(AllReduceProblem(element, ranks, size, 0, False, False), cpu=cpu)
                    assert unaligned[1:] == choose_all_reduce(AllReduceProblem(element, ranks, size), cpu=cpu)[1:]
                    for columns in (0, 1000, 8192):
                        c, length, blocks, why = choose_all_reduce(
                            AllReduceProblem(element, ranks, size, columns), cpu=cpu
                        )
                        assert 0 < length <= c.capacity and length in (columns or length,)
                        assert 0 < blocks <= (2 if cpu else 64) and why.startswith("two" if c.two_shot else "one")
                        assert columns or not c.vectors or length % c.width == 0
                        limit = next(b for most, b in choice.ONE_SHOT_BYTES.items() if ranks <= most)
                        assert c.two_shot == (size * (4 if element == "f32" else 2) > limit)


def test_explains_the_choice() -> None:
    text = str(op.explain(all_reduce, (16, 8192), element="bf16", ranks=8))
    assert text.splitlines()[0] == "all_reduce of 16 x 8192 bf16 over 8 ranks"
    assert "one-shot: 262,144 bytes are at most 262,144 bytes for 8 ranks" in text and "sends     1.84 MB" in text
    found = op.explain(all_reduce, np.zeros((17, 8192), np.float16), residual=(17, 8192), weight=(8192,), ranks=8)
    assert found.kernel == "all-reduce-f16-r8-two-512x2-rn" and found.blocks == 3
    with pytest.raises(op.OpError, match="explain: all_reduce needs ranks, the number of ranks of the group"):
        op.explain(all_reduce, (16, 8192))


# -------------------------------------------------------------------------------------------------------------- errors


def test_different_calls_name_both_ranks() -> None:
    x = np.zeros((3, 4, 8), np.float16)
    for other, text in (
        (lambda: all_reduce(x[1][:2]), r"all_reduce of \(2, 8\) f16, but that of rank 0 is all_reduce of \(4, 8\) f16"),
        (lambda: all_reduce(x[1].astype(np.float32)), r"of \(4, 8\) f32, but that of rank 0 is .* f16"),
        (lambda: all_reduce(x[1], x[1]), "with a residual, but that of rank 0 is"),
    ):
        with pytest.raises(op.DistributedError, match=f"call 1 of rank 1 is .*{text}"):
            on_ranks(3, lambda r, other=other: other() if r == 1 else all_reduce(x[r]))


def test_eps_that_differs_in_a_late_digit() -> None:
    x = np.ones((2, 8), np.float16)
    with pytest.raises(
        op.DistributedError, match=r"call 1 of rank 1 .* eps=0\.1000001, but that of rank 0 .* eps=0\.1;"
    ):
        on_ranks(2, lambda r: all_reduce(x[r], None, x[0], (0.1, 0.1000001)[r]))


def test_weights_that_differ_name_both_ranks() -> None:
    x, weights = np.ones((2, 2, 5), np.float16), np.ones((2, 5), np.float16)
    weights[1, 3] = 2
    text = r"weight of call 1 differs between ranks \d and \d: element 3 is .*2.0 on rank 1|2.0 on rank 1.* on rank 0"
    with pytest.raises(op.DistributedError, match=text):
        on_ranks(2, lambda r: all_reduce(x[r], None, weights[r]))


def test_residuals_that_differ_name_both_ranks() -> None:
    """A kernel computes the residual, so it is compared when the kernel that reads it begins."""
    x = np.ones((3, 2, 5), np.float16)

    def call(rank: int, other: float) -> Any:
        return all_reduce(x[rank], op.add(x[rank], np.full((2, 5), other, np.float16)))

    assert all((total == 6).all() for total in on_ranks(3, lambda r: call(r, 2.0)))
    text = r"residual of call 1 differs between ranks \d and \d: element 0 is .*; pass the same on all ranks"
    with pytest.raises(op.DistributedError, match=text) as e:
        on_ranks(3, lambda r: call(r, 3.0 if r == 2 else 2.0))
    assert "3.0 on rank" in str(e.value) and "4.0 on rank 2" in str(e.value)


def test_a_failed_exchange_is_reported_by_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of a failed exchange are undefined: the run raises, and so do all later calls of these ranks."""
    numbers = iter(range(9))
    x = np.ones((2, 8), np.float16)
    with cute.testing.ranks(2) as world:
        with monkeypatch.context() as m:
            m.setattr("cute_dialect.op.functions.all_reduce.hash_of", lambda text: next(numbers))
            with pytest.raises(op.DistributedError, match=r"rank \d has failed: .*rank \d .*; make new ranks"):
                world.run(lambda r: all_reduce(x[r]))
        with pytest.raises(op.DistributedError, match="make new ranks"):
            world.run(lambda r: all_reduce(x[r]))


def test_a_missing_rank_is_named() -> None:
    x = np.zeros((3, 8), np.float16)
    with pytest.raises(InterpError, match="deadlock") as e:
        on_ranks(3, lambda r: all_reduce(x[r]) if r != 1 else None)
    assert "rank 1 has launched nothing" in str(e.value) and "rank 0 is in launch 0" in str(e.value)


@pytest.mark.slow
def test_a_new_run_begins_new_calls() -> None:
    x = np.ones((2, 8), np.float16)
    with cute.testing.ranks(2) as world:
        with pytest.raises(op.DistributedError):
            world.run(lambda r: all_reduce(x[r][r:]))
        found: dict[int, Any] = {}
        world.run(lambda r: found.update({r: all_reduce(x[r])}))
    assert (found[0] == 2).all() and (found[1] == 2).all()


def test_texts_of_failed_waits() -> None:
    def text(*status: int) -> str:
        return failure_text("all_reduce", "all_reduce of (8,) f16", status, 2500)

    assert "rank 2 sent nothing within 2.5 s (ranks 0 and 1 did)" in text(0, 0, LATE)
    assert "ranks 0 and 2 sent nothing within 2.5 s (rank 1 did)" in text(LATE, 0, LATE)
    assert "rank 1 made another call; compare" in text(0, 5 << 16, ABORT)
    assert "rank 1 failed in the call" in text(0, ABORT)
    assert all("op.distributed.reset" in text(*s) for s in ((0, 1), (0, ABORT)))
    assert 0 <= hash_of("a") < 1 << 16 and hash_of("a") != hash_of("b")


def test_groups() -> None:
    with pytest.raises(op.OpError, match=r"there is no group of ranks; call torch.distributed.init_process_group"):
        all_reduce(np.zeros(8, np.float16), device="cpu")
    with cute.testing.ranks(2) as world:
        with pytest.raises(op.OpError, match=r"not in its world\.run"):
            group_of("all_reduce", world)
        world.run(lambda rank: group_of("all_reduce", world))
        with pytest.raises(op.OpError, match="omit group"):
            world.run(lambda rank: group_of("all_reduce", "tp"))
    with cute.testing.ranks(33) as world, pytest.raises(op.UnsupportedError, match="33 ranks; at most 32"):
        world.run(lambda rank: group_of("all_reduce"))


# ------------------------------------------------------------------------------------------------------ torch's groups


SMALL, LARGE = MemoryShape(256, 4096, 128, 64), MemoryShape(256, 32768, 128, 64)


class FakeHandle:
    def __init__(self, tensor: Any) -> None:
        self.buffer_ptrs = [tensor.data_ptr(), 0]


@pytest.fixture
def fake_group(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Provide rank 0 of a group of two ranks that communicate nothing, with memory of the CPU."""
    torch: Any = pytest.importorskip("torch")
    fake_pg = pytest.importorskip("torch.testing._internal.distributed.fake_pg")
    symm_mem = pytest.importorskip("torch.distributed._symmetric_memory")
    monkeypatch.setattr(symm_mem, "empty", torch.empty)
    monkeypatch.setattr(symm_mem, "rendezvous", lambda tensor, group: FakeHandle(tensor))
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setenv("CUTE_DIST_TIMEOUT_MS", "2500")
    torch.distributed.init_process_group("fake", store=fake_pg.FakeStore(), rank=0, world_size=2)
    yield torch.distributed.group.WORLD
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_memory_of_a_group_of_torch(fake_group: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    of_torch = group_of("all_reduce")
    assert group_of("all_reduce", fake_group.group_name) is of_torch is group_of("all_reduce", fake_group)
    assert (of_torch.rank, of_torch.ranks, of_torch.limit) == (0, 2, 2_500_000_000)
    x = view_of(torch.zeros(8, dtype=torch.float16))
    memory = of_torch.memory("all_reduce", LARGE, x)
    assert of_torch.memory("all_reduce", SMALL, x) is memory
    assert of_torch.memory("all_reduce", SMALL._replace(slot=LARGE.slot + 1), x).staging.shape == (256, 65536)
    assert of_torch.memory("all_reduce", SMALL._replace(slots=4), x).staging.shape == (4, 4096)
    staging = memory.of_type("f16", 2).staging
    assert staging.shape == (256, 16384) and staging.strides == (16384, 1) and memory.words.shape == (128, 2, 16)
    assert (
        memory.addresses.keep.tolist()[0] == staging.pointer
        and memory.word_addresses.keep.tolist()[0] == memory.words.pointer
    )
    of_torch.agree("all_reduce of (8,) f16")
    memory.status.keep[1] = LATE
    memory.steps.keep[:] = -1
    for raises in (lambda: of_torch.agree("all_reduce of (8,) f16"), op.distributed.check):
        with pytest.raises(op.DistributedError, match=r"rank 1 sent nothing within 2\.5 s \(rank 0 did\)"):
            raises()
    op.distributed.reset()
    op.distributed.check()
    assert not memory.steps.keep.any()
    with pytest.raises(op.UnsupportedError, match=r"x is in CPU memory, but the ranks of the group are GPUs"):
        all_reduce(torch.zeros(8).half(), device="cpu")
    with pytest.raises(op.OpError, match=r"group is 'tp'; pass a ProcessGroup, its name"):
        group_of("all_reduce", "tp")


@pytest.mark.slow
def test_memory_that_cannot_be_allocated(fake_group: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    import torch.distributed._symmetric_memory as symm_mem

    def refused(tensor: Any, group: Any) -> None:
        raise RuntimeError("no peer access")

    x = view_of(torch.zeros(8, dtype=torch.float16))
    monkeypatch.setattr(symm_mem, "rendezvous", refused)
    with pytest.raises(op.DeviceError, match=r"cannot map memory of each other \(no peer access\)"):
        group_of("all_reduce").memory("all_reduce", SMALL, x)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    with pytest.raises(op.UnsupportedError, match="make a call on this stream before the capture"):
        group_of("all_reduce").memory("all_reduce", SMALL, x)


def test_refused_arrays() -> None:
    x = np.zeros((4, 8), np.float16)
    wide = np.zeros((1, 16392), np.float16)
    for call, error, text in (
        (lambda: all_reduce(x.T), op.LayoutError, r"x has strides \(1, 8\); pass x.contiguous\(\)"),
        (lambda: all_reduce(x, x[:2]), op.ShapeError, r"residual has shape \(2, 8\); it must have \(4, 8\)"),
        (lambda: all_reduce(x, None, x[0][:4]), op.ShapeError, r"weight has shape \(4,\); it must have \(8,\)"),
        (lambda: all_reduce(x.astype(np.int32)), op.DtypeError, "x has dtype i32"),
        (lambda: all_reduce(wide, None, wide[0]), op.UnsupportedError, "rows of 16392 f16 are longer than 16384"),
        (lambda: all_reduce(x[:, :0], None, x[0][:0]), op.ShapeError, "rows of the norm must not be empty"),
        (lambda: all_reduce(x, eps="a"), op.DtypeError, "eps is 'a'; pass a number"),
        (lambda: all_reduce(x, eps=True), op.DtypeError, "eps is True; pass a number"),
        *(
            (lambda eps=eps: all_reduce(x, None, x[0], eps), op.ArgumentError, f"eps is {eps!r}; pass a finite")
            for eps in (float("nan"), -1e-5, float("inf"))
        ),
        (
            lambda: all_reduce(np.lib.stride_tricks.as_strided(x, (1 << 30,), (0,))),
            op.UnsupportedError,
            "less than 1073741824",
        ),
        (lambda: all_reduce(x, residul=x), op.ArgumentError, "did you mean 'residual'"),
    ):
        with pytest.raises(error, match=text):
            on_ranks(1, lambda r, call=call: call())


@pytest.mark.slow
def test_gradients_are_refused() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(op.UnsupportedError, match=r"gradients are not supported; call it under torch.no_grad\(\)"):
        on_ranks(1, lambda r: all_reduce(torch.zeros(8, requires_grad=True)))


@pytest.mark.slow
@pytest.mark.parametrize("p", [AllReduceProblem("bf16", 2, 1 << 16), AllReduceProblem("f16", 8, 1 << 24, 8192, True)])
def test_compiled_kernels(p: AllReduceProblem) -> None:
    """Signals have the scope of the system, staging memory is read by coherent loads, and nothing is spilled."""
    c = choose_all_reduce(p).config
    module = RowKernel(c.name, all_reduce_text, (c,)).compiled()
    assert "st.release.sys.global.b64" in module.ptx and "ld.acquire.sys.global.b64" in module.ptx
    assert "ld.global.nc" not in module.ptx and "multimem" not in module.ptx and "globaltimer" in module.ptx
    report = module.artifact.code[0].ptxas
    assert report is None or (report["warnings"] == [] and report["kernels"][0]["spill_stores"] == 0)
