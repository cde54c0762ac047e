"""``cute-bench gemm``: Hopper GEMM compared with ``torch`` (cuBLAS).

Kernels are first checked against float64 on random normal and small-integer data, with poisoned outputs and shapes that
are not multiples of a tile.  Integer results must be exact and repeated runs identical.  Then TFLOP/s with a cold L2
are measured in alternating rounds; each round runs one contestant long enough to reach its own power and clock.
``cute_dialect.op.functions.gemm`` selects the kernel of each problem.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.config import BITS, GemmConfig
from cute_dialect.op.execute.kernels import Runner, text_of
from cute_dialect.op.select.candidates import suits
from cute_dialect.op.select.cost_model import best
from cute_dialect.op.select.gemm_dispatch import with_epilogue
from cute_dialect.op.select.kernel_choice import Choice, Problem, shipped
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.checks import BenchError, check_exact, check_limit, check_repeats
from cute_dialect.tools.bench.peers import dtype, operator
from cute_dialect.tools.bench.runner import Row, Say, build_kernels, geometric_mean, loaded, median_times, row

if TYPE_CHECKING:  # pragma: no cover
    import torch

__all__ = ["PROBLEMS", "build", "run"]

LARGE = (
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (16384, 8192, 8192),
    (8192, 28672, 4096),
    (4096, 4096, 14336),
)
"""(M, N, K)"""
SQUARE = ((4096, 4096, 4096), (8192, 8192, 8192))
PROBLEMS: tuple[Problem, ...] = (
    *(Problem(*s, element=e, output=e) for e in ("f16", "bf16") for s in (*LARGE, (128, 8192, 8192))),
    *(Problem(*s, major_a=a, major_b=b) for a, b in (("m", "k"), ("k", "n"), ("m", "n")) for s in SQUARE),
    *(Problem(*s, element="f8E4M3FN", output="bf16") for s in SQUARE),
    Problem(4096, 4096, 4096, element="tf32", output="f32"),
)
FUSED = Epilogue(bias="n", bias_type="f16", activation="gelu")
"""Epilogue compared with ``gelu(addmm(bias, a, b))`` on ``SQUARE``."""
CHECKS = ((64, 256, 64), (128, 256, 192), (200, 264, 72), (256, 512, 64), (1000, 1000, 1000), (4096, 512, 16))
_LIMITS = {"f16": 4e-3, "bf16": 4e-2, "f32": 1e-2}
"""Map output types to the maximum error, in units of sqrt(K)."""


def choices() -> dict[str, Choice]:
    """Return the kernels for the problems and further kernels for the checks, by name."""
    found = [*map(chosen, PROBLEMS), *map(best, PROBLEMS)]
    fp8 = GemmConfig("f8E4M3FN", "bf16", tile=(128, 128, 128), promote=True, deferred=False)
    found.append(Choice(fp8))
    found += [fused(Problem(*shape)) for shape in SQUARE]
    shared = GemmConfig(tile=(128, 128, 64), stages=6, cluster_m=1, deferred=False, serpentine=False)
    found.append(Choice(shared, 2))  # split-K
    return {c.name: c for c in found}


def chosen(problem: Problem) -> Choice:
    """Return the kernel that ``mm`` selects on an H200 without user tuning."""
    return shipped("NVIDIA H200").get(problem.key) or best(problem)


def fused(problem: Problem) -> Choice:
    """Return the kernel for a problem with the epilogue ``FUSED``."""
    return with_epilogue(chosen(problem), FUSED)


def build(folder: str, chip: str) -> list[str]:
    """Compile all kernels into ``folder/NAME``; return the reports of ptxas."""
    return build_choices(choices().values(), folder, chip)


def build_choices(kernels: Iterable[Choice], folder: str, chip: str) -> list[str]:
    """Compile kernels into ``folder/NAME``, each once; return the reports of ptxas."""
    return build_kernels({c.name: partial(text_of, c) for c in kernels}, folder, chip)


def runner_of(folder: str, choice: Choice) -> Runner:
    """Load a kernel that :func:`build_choices` compiled."""
    return Runner(choice, loaded(folder, choice.name))


def run(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    """Check and measure the kernels of :func:`build`.  Raises ``BenchError`` if a result is wrong."""
    runners = {name: runner_of(folder, c) for name, c in choices().items()}
    rng = random.Random(0)
    for name in track(list(runners), "checking", "kernels"):
        runner = runners[name]
        if runner.choice.config.epilogue.active:
            continue  # It is checked when it is measured.
        shapes = [*CHECKS, *((rng.randint(1, 700), 8 * rng.randint(1, 90), 16 * rng.randint(1, 60)) for _ in range(20))]
        worst, done = 0.0, 0
        for shape in shapes:
            shape = fitting(runner.choice, shape)
            for integers in (False, True):
                worst = max(worst, check(runner, shape, integers=integers, repeats=100 if done == 4 else 3))
            done += 1
        say(f"  correct: {name}, {done} shapes, normal (largest error {worst:.1e} sqrt(K)) and integers (exact)")
    rows: list[Row] = []
    for integers in (False, True):
        for problem in track(PROBLEMS, "measuring", "problems"):
            if integers and (problem.major_a, problem.major_b) != ("k", "k"):
                continue
            rows.append(measure(runners[chosen(problem).name], problem, runs, integers=integers))
    for shape in SQUARE:
        rows.append(measure_fused(runners[fused(Problem(*shape)).name], Problem(*shape), runs))
    for element in ("f16", "bf16"):
        for data in ("normal", "int"):
            ratios: list[float] = [
                r["ratio"] for r in rows if r["name"].startswith(f"gemm {element} kk") and data in r["name"]
            ][: len(LARGE)]
            mean = geometric_mean(ratios)
            say(f"  {element} {data}: geometric mean of the six large {mean:.3f}, least {min(ratios):.3f}")
    return {"rows": rows}


def matrix(
    rows: int, columns: int, element: str, *, integers: bool, contiguous: bool, matrices: int = 1
) -> torch.Tensor:
    """Return a random matrix of ``rows`` by ``columns``.

    Args:
        contiguous: whether rows or columns are contiguous.
        matrices: the number of matrices, the third mode.
    """
    import torch

    shape = (matrices, rows, columns) if contiguous else (matrices, columns, rows)
    if integers:
        x = torch.randint(-2, 3, shape, device="cuda").float().to(dtype(element))
    else:
        x = torch.randn(shape, device="cuda").to(dtype(element))
    x = x if contiguous else x.mT
    return x[0] if matrices == 1 else x.permute(1, 2, 0)


def inputs(problem: Problem, *, integers: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return A (M, K), B (N, K) and a poisoned C (M, N), with a third mode for batches."""
    import torch

    m, n, k = problem[:3]
    torch.manual_seed(m + n + k)
    matrices = problem.matrices
    a = matrix(m, k, problem.element, integers=integers, contiguous=problem.major_a == "k", matrices=matrices)
    b = matrix(n, k, problem.element, integers=integers, contiguous=problem.major_b == "k", matrices=matrices)
    c = torch.full((matrices, m, n), float("nan"), device="cuda", dtype=dtype(problem.output))
    return a, b, c[0] if matrices == 1 else c.permute(1, 2, 0)


def fitting(choice: Choice, shape: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return a shape close to ``shape`` that a kernel supports.

    Skinny kernels need few rows, and split-K kernels few tiles and a large K.  TMA needs rows of multiples of 16 bytes.
    """
    m, n, k = shape
    if choice.parts > 1 or choice.skinny is not None:
        rows = (choice.skinny.live if choice.skinny is not None else 0) or 128
        m, n, k = m % rows + 1, n * 4, k + 2048 + 256 * choice.parts
        if choice.skinny is not None and choice.swapped:
            m, n = n, max(8, m // 8 * 8)
    m, k = -(-m // 8) * 8 if choice.majors[0] == "m" else m, -(-k // 16) * 16 if choice.config.bits == 8 else k
    while not suits(choice, Problem(m, n, k)):
        n = n // 16 * 8
        if n == 0:
            raise BenchError(f"{choice.name}: supports no shape close to {shape}")
    return m, n, k


def check(runner: Runner, shape: Sequence[int], *, integers: bool, repeats: int) -> float:
    """Return the maximum error compared with float64, in units of sqrt(K).

    ``shape`` is (M, N, K) and optionally the number of matrices.  Raises :class:`BenchError`.
    """
    c = runner.choice.config
    m, n, k, matrices = (*shape, 1)[:4]
    problem = Problem(m, n, k, c.element, c.output, *runner.choice.majors, matrices)
    return checked(problem, runner, runner.choice.name, integers=integers, repeats=repeats)


def checked(problem: Problem, run: Callable[..., object], name: str, *, integers: bool, repeats: int) -> float:
    """Check a function ``run(a, b, c)`` for a problem like :func:`check`."""
    k, title = problem.k, f"{name} {problem.key.split()[1]}"
    x, y, out = inputs(problem, integers=integers)
    check_repeats(title, lambda: run(x, y, out), out, repeats)
    exact = x.double() @ y.double().T if problem.matrices == 1 else _products(x.double(), y.double())
    if integers:
        check_exact(title, out, exact)
        return 0.0
    limit = _LIMITS[problem.output]
    return limit * check_limit(title, out, exact, limit * k**0.5)


def _products(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the batched products of (M, K, L) and (N, K, L) as (M, N, L)."""
    return (a.permute(2, 0, 1) @ b.permute(2, 1, 0)).permute(1, 2, 0)


def copied_for_torch(problem: Problem) -> tuple[str, ...]:
    """Return the operands that torch must copy: 8-bit floats that are not contiguous along K.

    >>> copied_for_torch(Problem(64, 64, 64, "f8E4M3FN", "bf16", "m", "k"))
    ('a',)
    """
    if BITS[problem.element] != 8:
        return ()
    return tuple([name for name, major in (("a", problem.major_a), ("b", problem.major_b)) if major != "k"])


def peer_of(problem: Problem, a: torch.Tensor, b: torch.Tensor) -> tuple[Callable[[], object], torch.Tensor]:
    """Return torch's call for the problem, and its output."""
    import torch

    kind = dtype(problem.output)
    torch.backends.cuda.matmul.allow_tf32 = True
    if problem.matrices > 1:
        whole = torch.empty(problem.matrices, problem.m, problem.n, device="cuda", dtype=kind)
        x, y = a.permute(2, 0, 1), b.permute(2, 1, 0)
        return (lambda: torch.bmm(x, y, out=whole)), whole.permute(1, 2, 0)
    out = torch.empty(problem.m, problem.n, device="cuda", dtype=kind)
    if problem.element == "f8E4M3FN":
        one, copied = torch.ones((), device="cuda"), copied_for_torch(problem)
        options: dict[str, Any] = {"out_dtype": kind, "use_fast_accum": True, "out": out}

        def product() -> object:
            x, y = (t.contiguous() if name in copied else t for name, t in (("a", a), ("b", b)))
            return operator("_scaled_mm")(x, y.t(), one, one, **options)

        return product, out
    return (lambda: torch.mm(a, b.t(), out=out)), out


def traffic_of(problem: Problem) -> int:
    """Return the number of bytes of A, B and C."""
    m, n, k = problem[:3]
    return problem.matrices * (BITS[problem.element] * (m * k + n * k) + BITS[problem.output] * m * n) // 8


def measure(runner: Runner, problem: Problem, runs: int, *, integers: bool) -> Row:
    """Return one row of the result."""
    found = measured(problem, runner, runner.choice.name, runs, integers=integers)
    return {**found, "kernel": runner.choice.name.split("-", 3)[3]}


def measured(problem: Problem, run: Callable[..., object], name: str, runs: int, *, integers: bool) -> Row:
    """Measure a function ``run(a, b, c)`` for a problem and torch."""
    import torch

    a, b, c = inputs(problem, integers=integers)
    peer, expected = peer_of(problem, a, b)
    found = _row(problem, peer, lambda: run(a, b, c), runs, kernel=name, data="int" if integers else "normal")
    if not torch.allclose(c.float(), expected.float(), rtol=2e-2, atol=2e-2 * problem.k**0.5):
        raise BenchError(f"{name} {problem}: the result differs from torch")
    return found


def measure_fused(runner: Runner, problem: Problem, runs: int) -> Row:
    """Measure ``gelu(a b^T + bias)`` in one kernel compared with the two of torch; return one row."""
    import torch

    a, b, c = inputs(problem, integers=False)
    bias = torch.randn(problem.n, device="cuda").to(c.dtype)
    gelu = torch.nn.functional.gelu
    exact = gelu(torch.addmm(bias.float(), a[:256].float(), b.float().t()))
    runner(a, b, c, bias)
    check_limit(runner.choice.name, c[:256], exact.double(), _LIMITS["f16"] * problem.k**0.5)

    def peer() -> object:
        return gelu(torch.addmm(bias, a, b.t()))

    found = _row(problem, peer, lambda: runner(a, b, c, bias), runs, kernel=runner.choice.name.split("-", 3)[3])
    return {**found, "name": f"gemm {problem.element} gelu(a b + bias) {problem.key.split()[1]}"}


def _row(
    problem: Problem, peer: Callable[[], object], ours: Callable[[], object], runs: int, *, kernel: str, data: str = ""
) -> Row:
    """Time a kernel and torch in four alternating rounds; return one row."""
    times = median_times([("torch", peer), ("ours", ours)], traffic=traffic_of(problem), runs=runs, rounds=4)
    flop = 2e-6 * problem.matrices * problem.m * problem.n * problem.k
    name = f"gemm {problem.element} {problem.major_a}{problem.major_b} {problem.key.split()[1]} {data}"
    return row(name, "TFLOP/s", flop / times["ours"], flop / times["torch"], kernel=kernel)
