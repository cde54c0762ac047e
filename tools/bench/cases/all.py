"""All shipped kernels compared with torch: speed (``cute-bench all``) and errors (``cute-bench accuracy``).

``--build DIR`` compiles into ``DIR/NAME``.  ``--run DIR`` checks and measures all benchmarks.  ``--json FILE`` writes
``{"machine": …, "results": [{"name", "ours", "peer", "unit", "ratio"}]}``; a ratio above 1 means that ours is faster.

``accuracy`` compares kernels and torch (cuBLAS) with float64.  GEMM: every kernel of ``cute-bench gemm`` with A and B
contiguous along K, ``mma.sync``, SGEMM.  Rows: every kernel of ``cute-bench rows``.  Inputs are normally distributed,
or normal values times ten to a random power between -3 and 3 (8-bit floats: -1 and 1).  B is scaled so that a 16-bit
result does not overflow.  The report gives the maximum and the root mean square (RMS) error, relative to the RMS of the
exact results.  Outputs are poisoned before each run.  Results of small integers must be exact.  Infinities and NaN must
be where float64 has them; a difference of torch is only reported.  ``--run`` accepts the folder of ``all --build``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, cast

from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.cases import elementwise, gemm, gemm_without_wgmma, rows
from cute_dialect.tools.bench.runner import BenchError, Benchmark, Row, Say, check_exact, dtype, loaded, operator

if TYPE_CHECKING:  # pragma: no cover
    import torch


PARTS = {
    name: module.BENCHMARKS[name]
    for name, module in (
        ("elementwise_add", elementwise),
        ("transpose", elementwise),
        ("rows", rows),
        ("sgemm", gemm_without_wgmma),
        ("gemm_sm80", gemm_without_wgmma),
        ("gemm", gemm),
    )
}
"""The benchmarks of ``all`` in execution order."""
ACCURACY_PARTS = ("gemm", "gemm_sm80", "rows", "sgemm")


def _build(names: Iterable[str], folder: str, chip: str) -> list[str]:
    reports: list[str] = []
    for name in track(list(names), "compiling", "benchmarks"):
        build_part = PARTS[name].build
        assert build_part is not None
        reports += build_part(os.path.join(folder, name), chip)
    return reports


def build(folder: str, chip: str) -> list[str]:
    return _build(PARTS, folder, chip)


def run(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    results: list[Row] = []
    for name, part in track(list(PARTS.items()), "measuring", "benchmarks"):
        say(f"== {name}")
        found = part.run(os.path.join(folder, name), runs=runs, large=large, say=say)
        results += [_row(r) for r in cast("list[Row]", found["rows"])]
    return {"rows": results}


def _row(r: Row) -> Row:
    """Convert a row of any benchmark to the common keys."""
    if "name" in r:
        return {k: r[k] for k in ("name", "ours", "peer", "unit", "ratio")}
    name = f"add {r['element']} {r['size']}x{r['size']} {r['layout']}"
    ours, ratio = r["terabytes"], r["ratio"]
    return {"name": name, "ours": ours, "peer": ours / ratio, "unit": "TB/s", "ratio": ratio}


# ------------------------------------------------------------------------------------------------------------- accuracy


RUNG = "pipelined"
SM80 = ("f16-128x128x32-3-kk", "bf16-128x128x32-3-kk")
SHAPE = (512, 1024, 4096)
"""(M, N, K)"""
FEW_ROWS = 16
"""M for the kernels for few rows."""
ROW_ELEMENTS = 1 << 21
DATA = ("normal", "mixed", "integers", "special")


class Contest(NamedTuple):
    """A kernel, its peer and the exact result.

    ``inputs`` creates the inputs of a kind of :data:`DATA`.  ``ours``, ``peer`` and ``exact`` take the inputs;
    ``exact`` computes in float64.
    """

    name: str
    inputs: Callable[[str], list[torch.Tensor]]
    ours: Callable[[list[torch.Tensor]], torch.Tensor]
    peer: Callable[[list[torch.Tensor]], torch.Tensor]
    exact: Callable[[list[torch.Tensor]], torch.Tensor]
    integers: bool = True


def build_accuracy(folder: str, chip: str) -> list[str]:
    return _build(ACCURACY_PARTS, folder, chip)


def run_accuracy(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    """Compare the kernels of :func:`build` with float64 and torch.  Raises ``BenchError`` if a result is wrong."""
    found: list[Row] = []
    for contest in track(contests(folder), "measuring", "cases"):
        found += [measured(contest, data) for data in ("normal", "mixed")]
        if contest.integers:
            inputs = contest.inputs("integers")
            check_exact(contest.name, contest.ours(inputs), contest.exact(inputs))
        wrong = special(contest)
        say(
            f"  {contest.name}: {'integers exact, ' if contest.integers else ''}infinities and NaN as in float64{wrong}"
        )
    return {"rows": found}


def measured(contest: Contest, data: str) -> Row:
    """Return one row of the result."""
    inputs = contest.inputs(data)
    wanted = contest.exact(inputs)
    ours, peer = (_errors(f(inputs), wanted) for f in (contest.ours, contest.peer))
    if not ours[0] < 1:
        raise BenchError(f"{contest.name}, {data}: the maximum error is {ours[0]:.1e} relative to the results")
    return {
        "name": f"{contest.name} {data}",
        "rms": ours[1],
        "torch's": peer[1],
        "ours": ours[0],
        "peer": peer[0],
        "unit": "max/rms",
        "ratio": peer[1] / ours[1] if ours[1] else 1.0,
    }


def _errors(out: torch.Tensor, exact: torch.Tensor) -> tuple[float, float]:
    """Return the maximum and the RMS error, relative to the RMS of the exact results."""
    scale = float(exact.square().mean().sqrt())
    error = out.double() - exact
    return float(error.abs().max()) / scale, float(error.square().mean().sqrt()) / scale


def special(contest: Contest) -> str:
    """Check the propagation of infinities and NaN; return a note if torch differs.  Raises :class:`BenchError`."""
    inputs = contest.inputs("special")
    wanted = contest.exact(inputs)
    if _classes_differ(contest.ours(inputs), wanted):
        raise BenchError(f"{contest.name}: infinities or NaN differ from float64")
    return " (torch differs)" if _classes_differ(contest.peer(inputs), wanted) else ""


def _classes_differ(out: torch.Tensor, wanted: torch.Tensor) -> bool:
    import torch

    wanted = wanted.to(out.dtype)
    infinite = torch.where(wanted.isinf(), wanted.sign(), 0)
    found = torch.where(out.isinf(), out.sign(), 0)
    return not (bool((out.isnan() == wanted.isnan()).all()) and bool((infinite == found).all()))


# -------------------------------------------------------------------------------------------------------- the contests


def contests(folder: str) -> Iterator[Contest]:
    """Yield the kernels to compare, loading one at a time."""
    for name, choice in gemm.choices().items():
        c = choice.config
        if c.epilogue.active or (c.major_a, c.major_b) != ("k", "k"):
            continue
        m = FEW_ROWS if choice.skinny is not None else 128 if choice.parts > 1 else SHAPE[0]
        kernel = gemm.runner_of(os.path.join(folder, "gemm"), choice)
        yield _gemm_contest(
            f"gemm {name}", kernel, _torch_mm(c.element, c.output, fast=not c.promote), c.element, c.output, m
        )
    for name in SM80:
        element = name.partition("-")[0]
        kernel = loaded(folder, f"gemm_sm80/{name}").kernel("launch")
        yield _gemm_contest(f"gemm_sm80 {name}", kernel, _torch_mm(element, element), element, element)
    single = loaded(folder, f"sgemm/{RUNG}").kernel("launch")
    yield _gemm_contest(
        f"sgemm {RUNG}", lambda a, b, c: single(a, b.t().contiguous(), c), _torch_mm("f32", "f32"), "f32", "f32"
    )
    for case in {c.folder: c for c in rows.CASES}.values():
        yield _row_contest(case, loaded(folder, f"rows/{case.folder}").kernel(case.op))


def _torch_mm(element: str, output: str, *, fast: bool = True) -> Callable[[list[torch.Tensor]], torch.Tensor]:
    """Return a function that computes torch's product of A (M, K) and B (N, K)."""
    import torch

    if element == "f8E4M3FN":
        one, scaled_mm = torch.ones((), device="cuda"), operator("_scaled_mm")
        return lambda x: scaled_mm(x[0], x[1].t(), one, one, out_dtype=dtype(output), use_fast_accum=fast)

    def multiply(x: list[torch.Tensor]) -> torch.Tensor:
        torch.backends.cuda.matmul.allow_tf32 = element == "tf32"
        return torch.mm(x[0], x[1].t())

    return multiply


def _gemm_contest(
    name: str,
    kernel: Callable[..., object],
    peer: Callable[[list[torch.Tensor]], torch.Tensor],
    element: str,
    output: str,
    m: int = SHAPE[0],
) -> Contest:
    import torch

    n, k = SHAPE[1:]
    kind = dtype(element)

    def inputs(data: str) -> list[torch.Tensor]:
        torch.manual_seed(m)
        a, b = (_filled((size, k), data, 1 if element == "f8E4M3FN" else 3) for size in (m, n))
        if data == "mixed":  # The scale is a power of two, so that results stay below 2^14.
            product = (a.to(kind).double() @ b.to(kind).double().t()).abs().max()
            b *= 2.0 ** min(0.0, float(torch.floor(torch.log2(2.0**14 / product))))
        if data == "special":
            a[3, 5], b[2, 11], b[7, 12] = (float(x) for x in ("nan", "nan", "nan"))
            if element != "f8E4M3FN":  # It has no infinity.
                a[5, 7], b[7, 12], b[9, 7] = float("inf"), -float("inf"), 0.0
        return [a.to(kind), b.to(kind)]

    def ours(x: list[torch.Tensor]) -> torch.Tensor:
        out = torch.full((m, n), float("nan"), device="cuda", dtype=dtype(output))
        kernel(*x, out)
        return out

    return Contest(name, inputs, ours, peer, lambda x: x[0].double() @ x[1].double().t())


def _filled(shape: tuple[int, int], data: str, digits: int) -> torch.Tensor:
    """Return f32 values of a kind of :data:`DATA`, without special values."""
    import torch

    if data == "integers":
        return torch.randint(-2, 3, shape, device="cuda").float()
    x = torch.randn(shape, device="cuda")
    return x * 10.0 ** ((torch.rand(shape, device="cuda") * 2 - 1) * digits) if data == "mixed" else x


def _row_contest(case: rows.Case, kernel: Callable[..., object]) -> Contest:
    import torch

    holder = rows.Data(case, max(8, ROW_ELEMENTS // case.n))
    weights = holder.weights

    def inputs(data: str) -> list[torch.Tensor]:
        torch.manual_seed(case.n)
        x = _filled((holder.x.shape[0], holder.x.shape[1]), data, 3)
        if case.op == "sum" and data == "mixed" and case.element == "f16":
            x *= 2.0**-8  # The results must stay finite.
        if data == "special":
            inf = float("inf")
            x[0, 17 % case.n], x[1, 5], x[2, 3], x[2, 9] = float("nan"), inf, inf, -inf
            x[3, : case.n // 2], x[4] = -inf, -inf
        return [x.to(holder.dtype), *weights]

    def ours(x: list[torch.Tensor]) -> torch.Tensor:
        out = torch.full_like(holder.y, float("nan"))
        kernel(*x, out, *holder.given[len(x) + 1 :])
        return out

    def peer(x: list[torch.Tensor]) -> torch.Tensor:
        holder.x.copy_(x[0])
        found = holder.peer()()
        assert isinstance(found, torch.Tensor)
        return found

    def exact(x: list[torch.Tensor]) -> torch.Tensor:
        holder.x.copy_(x[0])
        return holder.reference(slice(None))

    return Contest(str(case).rpartition(" ")[0] + f" {case.n}", inputs, ours, peer, exact, case.op == "sum")


BENCHMARKS = {"all": Benchmark(build, run), "accuracy": Benchmark(build_accuracy, run_accuracy)}
