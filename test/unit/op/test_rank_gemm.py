"""GEMMs of several ranks on simulated ranks: kernels, operation, errors, the choice of a kernel, and the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from rank_gemm_runs import DTYPES, Case, gives_up, reports_other_call, run, sends_nothing_after_a_failure

import cute_dialect.lang as cute
from cute_dialect import op
from cute_dialect.interp import InterpError
from cute_dialect.kernels.distributed.gather_gemm import gather_gemm_text
from cute_dialect.kernels.distributed.scatter_gemm import scatter_gemm_text
from cute_dialect.op.execute.array_call import RowKernel
from cute_dialect.op.select import rank_gemm as choice
from cute_dialect.op.select.rank_gemm import RankGemmProblem, choose_rank_gemm, predict
from cute_dialect.runtime.call_options import SCHEDULES

D = op.distributed
KINDS = ("gather", "scatter", "one_shot", "two_shot")


def on_ranks(ranks: int, call: Callable[[int], object], schedule: str = "round-robin") -> list[object]:
    """Return the results of a function of the rank."""
    found: dict[int, object] = {}
    with cute.testing.ranks(ranks, schedule=schedule, seed=3) as world:
        world.run(lambda rank: found.update({rank: call(rank)}))
    return [found[r] for r in range(ranks)]


# ------------------------------------------------------------------------------------------------------------ kernels


@pytest.mark.slow
@pytest.mark.parametrize(("schedule", "element"), list(zip(SCHEDULES, [*DTYPES, *DTYPES])))
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("kind", KINDS)
def test_all_kernels(kind: str, ranks: int, element: str, schedule: str) -> None:
    """More and fewer tiles than blocks, ragged ends in all extents, and calls in a row."""
    for rows, columns, k in ((70, 72, 80), (9, 13, 77)):
        case = Case(kind, element, ranks, rows, columns, k, returns_a=True, average=kind == "scatter")
        assert run(case, schedule), case


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_tiles_clusters_and_majors(kind: str) -> None:
    for case in (
        Case(kind, rows=130, tile=(128, 64, 64), deferred=True, blocks=3),
        Case(kind, rows=130, cluster=2, blocks=4, major_b="k"),
        Case(kind, rows=70, tile=(64, 128, 64), columns=136, deferred=True, cluster=2, blocks=2),
    ):
        assert run(case, "adversarial"), case


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_failed_waits_end(kind: str) -> None:
    case = Case(kind, rows=70)
    assert gives_up(case, 0) and gives_up(case, 1) and reports_other_call(case)
    assert sends_nothing_after_a_failure(case)


# ----------------------------------------------------------------------------------------------------------- operation


class Data(NamedTuple):
    """Operands of all ranks."""

    a: NDArray[np.generic]  # (ranks, m, k)
    parts: NDArray[np.generic]  # (ranks, ranks m, k)
    b: NDArray[np.generic]  # (ranks, k, n)

    @property
    def sum(self) -> NDArray[np.float32]:
        """The sum of rounded products, in the order of the ranks."""
        products = np.einsum("rmk,rkn->rmn", self.parts.astype(np.float64), self.b.astype(np.float64))
        rounded = products.astype(self.a.dtype).astype(np.float32)
        total = rounded[0]
        for product in rounded[1:]:
            total = total + product
        return total

    def gathered(self, rank: int) -> NDArray[np.generic]:
        rows = self.a.reshape(-1, self.a.shape[2]).astype(np.float64)
        return (rows @ self.b[rank].astype(np.float64)).astype(self.a.dtype)


def data(ranks: int, m: int, k: int, n: int, dtype: type[np.generic] = np.float16) -> Data:
    rng = np.random.default_rng(m)
    shapes = (ranks, m, k), (ranks, ranks * m, k), (ranks, k, n)
    return Data(*[rng.integers(-4, 5, s).astype(dtype) for s in shapes])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_functions_in_a_row(ranks: int, dtype: type[np.generic]) -> None:
    """Functions share the memory of the group. b may be transposed, and rows may have any distance."""
    x = data(ranks, 9, 20, 17, dtype)
    wide = np.zeros((ranks, ranks * 9, 27), dtype)
    wide[:, :, :20] = x.parts

    def call(r: int) -> tuple[object, ...]:
        gathered = D.all_gather_matmul(x.a[r], x.b[r], return_a=True)
        scattered = D.matmul_reduce_scatter(wide[r][:, :20], np.ascontiguousarray(x.b[r].T).T)
        mean = D.matmul_reduce_scatter(x.parts[r], x.b[r], op="avg")
        return gathered, scattered, mean, D.matmul_all_reduce(x.parts[r], x.b[r])

    for r, (gathered, scattered, mean, total) in enumerate(on_ranks(ranks, call, "random")):
        assert (gathered.gathered == x.a.reshape(-1, 20)).all() and (gathered.product == x.gathered(r)).all()
        assert (scattered == x.sum.astype(dtype)[9 * r : 9 * r + 9]).all()
        assert (mean == (x.sum / np.float32(ranks)).astype(dtype)[9 * r : 9 * r + 9]).all()
        assert (total == x.sum.astype(dtype)).all()


@pytest.mark.slow
def test_two_shot_gives_the_bits_of_one_shot(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(ml_dtypes.bfloat16) for s in ((2, 10, 20), (2, 20, 16)))
    one = on_ranks(2, lambda r: D.matmul_all_reduce(a[r], b[r]))
    monkeypatch.setattr(choice, "ONE_SHOT_BYTES", {32: 0})
    two = on_ranks(2, lambda r: D.matmul_all_reduce(a[r], b[r]))
    assert all((x == one[0]).all() for x in (*one, *two))


@pytest.mark.slow
def test_ranks_with_other_numbers_of_columns() -> None:
    """The columns of a gathered product, and the part of K of a scattered one, may differ between ranks."""
    x, y = data(2, 9, 20, 8), data(2, 9, 20, 30)
    found = on_ranks(2, lambda r: D.all_gather_matmul(x.a[r], (x.b[0], y.b[1])[r]))
    rows = x.a.reshape(-1, 20).astype(np.float64)
    assert (found[0] == (rows @ x.b[0].astype(np.float64)).astype(np.float16)).all()
    assert (found[1] == (rows @ y.b[1].astype(np.float64)).astype(np.float16)).all()
    parts = on_ranks(2, lambda r: D.matmul_reduce_scatter(x.parts[r][:, : 12 + 8 * r], x.b[r][: 12 + 8 * r]))
    want = sum(
        x.parts[r][:, : 12 + 8 * r].astype(np.float64) @ x.b[r][: 12 + 8 * r].astype(np.float64) for r in range(2)
    )
    assert (np.concatenate(parts) == want.astype(np.float16)).all()


@pytest.mark.slow
def test_tensors_of_torch() -> None:
    torch = pytest.importorskip("torch")
    x = data(2, 9, 20, 17)
    a, b = torch.from_numpy(x.a), torch.from_numpy(x.b)
    weights = b.transpose(1, 2).contiguous()  # as of torch.nn.Linear
    for r, found in enumerate(on_ranks(2, lambda r: D.all_gather_matmul(a[r], weights[r].T))):
        assert torch.equal(found, torch.from_numpy(x.gathered(r)))


# -------------------------------------------------------------------------------------------------------------- errors


def test_refused_arguments() -> None:
    a, b = np.zeros((4, 8), np.float16), np.zeros((8, 16), np.float16)
    for call, error, text in (
        (lambda: D.all_gather_matmul(a, b.T), op.ShapeError, r"a has shape \(4, 8\) and b \(16, 8\)"),
        (lambda: D.all_gather_matmul(a[0], b), op.ShapeError, r"a has shape \(8,\); pass a matrix"),
        (lambda: D.matmul_all_reduce(a[:0], b), op.ShapeError, r"a has shape \(0, 8\); pass a matrix"),
        (lambda: D.matmul_reduce_scatter(a[:3], b), op.ShapeError, "a has 3 rows; pass a multiple of 2"),
        (lambda: D.matmul_reduce_scatter(a, b, op="max"), op.ArgumentError, "op is 'max'; pass 'sum' or 'avg'"),
        (lambda: D.matmul_all_reduce(a.astype(np.float32), b), op.DtypeError, "a has dtype f32"),
        (lambda: D.matmul_all_reduce(a, b.astype(ml_dtypes.bfloat16)), op.DtypeError, "b has dtype bf16"),
        (lambda: D.all_gather_matmul(a, b, returns_a=True), op.ArgumentError, "did you mean 'return_a'"),
    ):
        with pytest.raises(error, match=text):
            on_ranks(2, lambda r, call=call: call())
    with pytest.raises(op.OpError, match="there is no group of ranks"):
        D.all_gather_matmul(a, b, device="cpu")


def test_a_call_that_is_too_large() -> None:
    a = np.lib.stride_tricks.as_strided(np.zeros(8, np.float16), (1 << 20, 1024), (0, 2), writeable=False)
    with pytest.raises(op.OpError):
        on_ranks(2, lambda r: D.all_gather_matmul(a, np.zeros((1024, 8), np.float16)))


def test_different_calls_name_both_ranks() -> None:
    x = data(2, 9, 20, 16)
    text = r"call 1 of rank 1 is matmul_all_reduce of 18 rows .*, but that of rank 0 is all_gather_matmul of \(9, 20\)"
    with pytest.raises(op.DistributedError, match=text):
        on_ranks(2, lambda r: D.matmul_all_reduce(x.parts[1], x.b[1]) if r else D.all_gather_matmul(x.a[0], x.b[0]))


@pytest.mark.slow
def test_a_missing_rank_is_named() -> None:
    x = data(2, 9, 20, 16)
    with pytest.raises(InterpError, match="deadlock") as e:
        on_ranks(2, lambda r: None if r else D.matmul_all_reduce(x.parts[r], x.b[r]))
    assert "rank 1 has launched nothing" in str(e.value)


# ---------------------------------------------------------------------------------------------------- choice and model


def test_chooses_kernels_that_exist() -> None:
    """All ranks divide shards and results alike, whatever their columns of b."""
    for call in ("all_gather_matmul", "matmul_reduce_scatter", "matmul_all_reduce"):
        for ranks in (2, 3, 8, 32):
            for rows, columns, k in ((ranks, 8, 8), (128 * ranks, 64, 72), (8192, 4096, 8192), (96, 28672, 100)):
                for how in ({}, {"multiprocessors": 33, "shares_gpu": True}, {"cpu": True}):
                    p = RankGemmProblem(call, "bf16", ranks, rows, columns, k, returns_a=True)
                    config, slots, _ = choose_rank_gemm(p, **how)
                    config.base.check()
                    tiles = -(-(rows // p.matrices) // config.base.tile[0]) * -(-columns // config.base.tile[1])
                    assert slots >= (64 if p.kind == "gather" else tiles)
                    if not how:
                        other = choose_rank_gemm(p._replace(columns=96), **how).config.base
                        assert p.kind != "gather" or config.base.tile[0] == other.tile[0] == 128
                        assert p.kind == "gather" or choose_rank_gemm(p._replace(k=k + 64), **how).config == config


MEASURED = {
    # (call, ranks, rows, columns, k): transfer by NCCL, GEMM, one after the other, in us, on two H200 (2026-11-28)
    ("all_gather_matmul", 2, 8192, 4096, 8192): (296, 690, 978),
    ("all_gather_matmul", 2, 8192, 1024, 8192): (308, 185, 498),
    ("matmul_reduce_scatter", 2, 8192, 8192, 4096): (312, 722, 1036),
    ("matmul_reduce_scatter", 2, 8192, 8192, 1024): (314, 199, 510),
}
PUBLISHED = {2: 147, 4: 290, 8: 565}
"""Ranks -> us of NCCL and cuBLAS: 1024 x 4096 f16 per rank, 4096 columns, H100.

Source: JAX docs, "Collective matrix multiplication".
"""


def test_the_model_is_close_to_measured_times() -> None:
    for (call, ranks, *sizes), times in MEASURED.items():
        found = predict(RankGemmProblem(call, "bf16", ranks, *sizes))
        for x, y in zip((found.transfer, found.gemm, found.separate), times):
            assert abs(x * 1e6 / y - 1) < 0.15, (call, sizes, x * 1e6, y)
        assert found.ideal <= found.fused < found.separate
    for ranks, separate in PUBLISHED.items():
        found = predict(RankGemmProblem("all_gather_matmul", "f16", ranks, 1024 * ranks, 4096, 4096))
        assert abs(found.separate * 1e6 / separate - 1) < 0.15


def test_explains_calls() -> None:
    text = str(op.explain(D.all_gather_matmul, (1024, 4096), (4096, 4096), element="bf16", ranks=8))
    assert text.startswith("all_gather_matmul of 1024 x 4096 bf16 per rank and 4096 x 4096 over 8 ranks")
    assert "gather-r8-bf16" in text and "58.7 MB to other ranks" in text and "one after the other" in text
    found = op.explain(D.matmul_all_reduce, (16, 1024), (1024, 8192), ranks=8)
    assert found.problem.kind == "one_shot" and "adds all rows" in found.why
    assert op.explain(D.matmul_all_reduce, (4096, 1024), (1024, 8192), ranks=8).problem.kind == "two_shot"
    far = op.explain(D.matmul_reduce_scatter, (8192, 1024), (1024, 8192), ranks=64, topology="h100-dgx")
    assert "kernels reach 8 GPUs only" in str(far) and far.times.transfer > 4e-4
    times = [
        op.explain(D.matmul_reduce_scatter, (8192, 128), (128, 8192), ranks=n).microseconds for n in (2, 8, 64, 1024)
    ]
    assert times == sorted(times)
    for call, text in (
        (lambda: op.explain(D.matmul_all_reduce, (16, 64), (64, 8)), "needs ranks"),
        (lambda: op.explain(D.matmul_all_reduce, (16, 64), (64, 8), ranks=2, topology="ring"), "topology is 'ring'"),
        (lambda: op.explain(D.matmul_all_reduce, (16, 64), (65, 8), ranks=2), r"pass matrices \(M, K\) and \(K, N\)"),
        (lambda: op.explain(D.matmul_reduce_scatter, (15, 64), (64, 8), ranks=2), "pass a multiple of 2"),
        (lambda: op.explain(D.matmul_all_reduce, (16, 64), (64, 8), ranks=2, op="avg"), "explained with op"),
    ):
        with pytest.raises(op.OpError, match=text):
            call()


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 8])
@pytest.mark.parametrize("call", ["all_gather_matmul", "matmul_reduce_scatter", "matmul_all_reduce"])
def test_compiled_kernels(call: str, ranks: int) -> None:
    """Signals have the scope of the system, staging memory is read by coherent loads, and little is spilled."""
    for columns in (64, 128, 4096):
        config = choose_rank_gemm(RankGemmProblem(call, "bf16", ranks, 8192, columns, 8192, returns_a=True)).config
        text = gather_gemm_text if config.kind == "gather" else scatter_gemm_text
        module = RowKernel(config.name, text, (config,)).compiled()
        assert "st.release.sys.global.b64" in module.ptx and "ld.acquire.sys.global.b64" in module.ptx
        assert "ld.global.nc" not in module.ptx and "multimem" not in module.ptx
        assert config.kind != "gather" or "fence.proxy.async.global" in module.ptx
        report = module.artifact.code[0].ptxas
        assert report is None or (report["warnings"] == [] and report["kernels"][0]["spill_stores"] <= 128)
