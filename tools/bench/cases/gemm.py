"""GEMMs by TMA and wgmma compared with ``torch`` (cuBLAS): ``cute-bench gemm`` and its options.

Kernels are first checked against float64 on random normal and small-integer data, with poisoned outputs and shapes that
are not multiples of a tile.  Integer results must be exact and repeated runs identical.  Then TFLOP/s with a cold L2
are measured in alternating rounds; each round runs one contestant long enough to reach its own power and clock.
``cute_dialect.op.functions.gemm`` selects the kernel of each problem.

* ``--batched``: :data:`BATCHED` compared with ``torch.bmm``.  ``--kernels N`` measures N kernels per problem: the
  selected one and those with the next lowest predicted times.
* ``--random N --seed S``: :func:`random_problems`, without tuning.  A result is compared exactly with the float64
  product of small integers if that is fast enough.
* ``--tune`` (or ``gemm_tune``, which saves nothing): the search space of :mod:`cute_dialect.op.tuning`.

::

    cute-bench gemm --random 160 --seed 1 --json random.json
    cute-bench gemm --tune --shapes 128x8192x8192 4096x4096x14336 --element bf16
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import cycle
from math import exp, log
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.config import BITS, GemmConfig
from cute_dialect.op.arrays.operand_views import Matrix
from cute_dialect.op.execute.kernels import share_of, text_of
from cute_dialect.op.execute.launcher import ready
from cute_dialect.op.select.candidates import suits
from cute_dialect.op.select.cost_model import best, ranked
from cute_dialect.op.select.cost_model import best as predicted
from cute_dialect.op.select.gemm_dispatch import Plan, way_of, with_epilogue
from cute_dialect.op.select.kernel_choice import Choice, Problem, save, shipped
from cute_dialect.op.tuning import MARGIN, finals, space
from cute_dialect.runtime.launch import CompiledModule
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.runner import (
    BenchError,
    Benchmark,
    Row,
    Say,
    build_kernels,
    check_exact,
    check_limit,
    check_repeats,
    dtype,
    geometric_mean,
    loaded,
    median_times,
    operator,
    ratio_lines,
    row,
)

if TYPE_CHECKING:  # pragma: no cover
    from pathlib import Path

    import torch


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
    return build_choices(choices().values(), folder, chip)


def build_choices(kernels: Iterable[Choice], folder: str, chip: str) -> list[str]:
    return build_kernels({c.name: partial(text_of, c) for c in kernels}, folder, chip)


class Runner:
    """A GEMM kernel, called with A (M, K), B (N, K), C (M, N) and a bias if its epilogue has one.

    Batches have a third mode.
    """

    def __init__(self, choice: Choice, module: CompiledModule):
        self.choice = choice
        self._kernel = ready(module, share_of(choice))

    def __call__(self, a: Any, b: Any, c: Any, *more: Any, **options: Any) -> Any:
        if self.choice.swapped:  # The kernel computes C^T = B A^T.
            a, b, c = b, a, c.transpose(0, 1)
        return self._kernel(a, b, c, *more, **options)


def runner_of(folder: str, choice: Choice) -> Runner:
    """Load a kernel that :func:`build_choices` compiled."""
    return Runner(choice, loaded(folder, choice.name))


def run(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
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


# -------------------------------------------------------------------------------------------------------------- batches


BATCHED_SHAPES = ((32, 2048, 2048, 128), (128, 512, 512, 512), (16, 1024, 1024, 4096), (512, 128, 128, 64))
"""(L, M, N, K)"""
BATCHED: tuple[Problem, ...] = tuple(
    Problem(m, n, k, element, element, "k", major_b, matrices)
    for element, major_b in (("f16", "k"), ("f16", "n"), ("bf16", "n"))
    for matrices, m, n, k in BATCHED_SHAPES
)
ODD_BATCHES = ((200, 264, 72, 5), (1, 8, 8, 3), (130, 520, 328, 7))
"""(M, N, K, L)"""


def candidates(problem: Problem, count: int) -> list[Choice]:
    """Return the selected kernel and the next by predicted time, ``count`` in all."""
    found = [chosen(problem), *(c for _, c in ranked(problem, count=count))]
    return list(dict.fromkeys(found))[:count]


def build_batched(folder: str, chip: str, kernels: int = 1) -> list[str]:
    return build_choices([c for p in BATCHED for c in candidates(p, kernels)], folder, chip)


def run_batched(folder: str, *, runs: int, large: bool, say: Say, kernels: int = 1) -> dict[str, object]:
    wanted = {c.name: c for p in BATCHED for c in candidates(p, kernels)}
    runners = {name: runner_of(folder, c) for name, c in wanted.items()}
    for name in track(list(runners), "checking", "kernels"):
        runner = runners[name]
        worst = 0.0
        for number, shape in enumerate(ODD_BATCHES):
            for integers in (True, False):
                worst = max(worst, check(runner, shape, integers=integers, repeats=3 if number else 100))
        say(f"  correct: {name}, normal (largest error {worst:.1e} sqrt(K)) and integers (exact)")
    rows: list[Row] = []
    others: list[Row] = []
    bests: list[float] = []
    for problem in track(BATCHED, "measuring", "problems"):
        found: list[Row] = []
        for choice in candidates(problem, kernels):
            runner = runners[choice.name]
            check(runner, (*problem[:3], problem.matrices), integers=True, repeats=3)
            found.append(measure(runner, problem, runs, integers=False))
            say(f"  {found[-1]['name']}  {choice.name}  {found[-1]['ratio']:.3f}")
        rows.append(found[0])
        others += found[1:]
        bests.append(max(r["ratio"] for r in found))
    for name, ratios in (("chosen", [r["ratio"] for r in rows]), ("best", bests)):
        say(f"  {name}: geometric mean {geometric_mean(ratios):.3f}, least {min(ratios):.3f}")
    return {"rows": rows, "others": others}


# ------------------------------------------------------------------------------------------------------ random problems


OUTPUTS = {"f16": "f16", "bf16": "bf16", "f8E4M3FN": "bf16", "tf32": "f32"}
EXACT = 2e11
"""Maximum FLOPs of a problem to compare with the float64 product."""


def random_problems(count: int, seed: int) -> list[Problem]:
    """Return the first ``count`` problems of a seed.

    >>> random_problems(2, 1) == random_problems(3, 1)[:2]
    True
    """
    rng, majors = random.Random(seed), random.Random(f"majors {seed}")
    return [_problem(rng, majors, element) for element, _ in zip(cycle(OUTPUTS), range(count))]


def _problem(rng: random.Random, majors: random.Random, element: str) -> Problem:
    """Draw a problem.

    ``majors`` is a separate generator for element types other than 16-bit, to keep the problems of a seed stable.
    """
    even = 128 // BITS[element]  # number of elements in 16 bytes
    if rng.random() < 0.25:
        sizes = [2**p * f // 4 for p in range(6, 15) for f in (3, 4)]
        m, n, k = (rng.choice([s for s in sizes if s >= least]) for least in (16, 64, 64))
    else:
        m, n, k = (round(exp(rng.uniform(log(least), log(16384)))) for least in (16, 64, 64))
    of_majors = rng if BITS[element] == 16 else majors
    major_a, major_b = of_majors.choice("km"), of_majors.choice("kn")
    n, k = (max(64, x // step * step) for x, step in ((n, max(even, 8)), (k, even)))
    m = m if major_a == "k" else max(16, m // even * even)
    return Problem(m, n, k, element, OUTPUTS[element], major_a, major_b)


def way_for(problem: Problem) -> Plan:
    """Return the plan of ``mm`` for a problem on an H200 without user tuning.

    >>> way_for(Problem(4096, 2048, 1024, "tf32", "f32", "m", "n")).copied
    ('b',)
    """
    p, item, of_result = problem, BITS[problem.element] // 8, BITS[problem.output] // 8
    a = Matrix((p.m, p.k), (p.k, 1) if p.major_a == "k" else (1, p.m), item, 0)
    b = Matrix((p.k, p.n), (1, p.k) if p.major_b == "k" else (p.n, 1), item, 0)
    tf32 = p.element == "tf32"
    way = way_of(
        a, b, Matrix((p.m, p.n), (p.n, 1), of_result, 0), "f32" if tf32 else p.element, p.output,
        arithmetic="tf32" if tf32 else "",
    )  # fmt: skip
    return way if way.choice is None else way._replace(kernel=chosen(way.problem))


def of_menu(problem: Problem) -> Problem:
    """Return the problem after the copies that the menu of kernels requires.

    Kernels for element types other than 16-bit need A or B contiguous along K.  If neither is, the smaller is copied.

    >>> of_menu(Problem(64, 4096, 256, "tf32", "f32", "m", "n")).key
    'tf32-f32-kn 64x4096x256'
    """
    if BITS[problem.element] == 16 or (problem.major_a, problem.major_b) != ("m", "n"):
        return problem
    return problem._replace(major_a="k") if problem.m < problem.n else problem._replace(major_b="k")


def build_random(folder: str, chip: str, count: int, seed: int) -> list[str]:
    kernels = [way_for(p).kernel for p in random_problems(count, seed)]
    return build_kernels({c.name: partial(text_of, c) for c in kernels}, folder, chip)


def computed(way: Plan, kernel: Callable[..., object], a: Any, b: Any, c: Any) -> object:
    """Compute ``c = a b^T`` like ``mm``, with the operands in ``way.copied`` copied to be contiguous along K."""
    a = a.contiguous() if "a" in way.copied else a
    b = b.contiguous() if "b" in way.copied else b
    return kernel(a, b, c)


def run_random(folder: str, *, runs: int, large: bool, say: Say, count: int, seed: int) -> dict[str, object]:
    kernels: dict[str, Callable[..., object]] = {}
    rows: list[Row] = []
    for number, problem in enumerate(track(random_problems(count, seed), "measuring", "problems")):
        way = way_for(problem)
        kernel = way.kernel
        name = kernel.name
        if name not in kernels:
            module = loaded(folder, name)
            kernels[name] = Runner(kernel, module) if isinstance(kernel, Choice) else ready(module, share_of(kernel))
        ours = partial(computed, way, kernels[name])
        m, n, k = problem[:3]
        if 2.0 * m * n * k <= EXACT:
            checked(problem, ours, name, integers=True, repeats=2)
        row = {**measured(problem, ours, name, max(runs // 5, 8), integers=False), "kernel": name}
        copies = {"ours": list(way.copied), "torch": list(copied_for_torch(problem))}
        rows.append(row | ({"copied": copies} if any(copies.values()) else {}))
        said = "".join(f", {who} copies {' and '.join(x)}" for who, x in copies.items() if x)
        say(f"  {number + 1:4} {row['name']}  {name}  {row['ratio']:.3f}{said}")
    for line in random_summary(rows):
        say(line)
    return {"rows": rows}


def random_summary(rows: Sequence[Mapping[str, Any]], *, ahead: str = "ahead") -> list[str]:
    """Return the lines of a table of all problems, each element type, and large and small problems.

    >>> row = {"name": "gemm f16 kk 1024x1024x1024 normal", "ratio": 1.1}
    >>> random_summary([row, {**row, "ratio": 0.9}])[1].split()
    ['all', '2', '0.995', '0.900', '0.900', '1', 'of', '2']
    """
    classes: dict[str, list[float]] = {"all": []} | {e: [] for e in OUTPUTS} | {">= 1e11 flop": [], "< 1e10 flop": []}
    for r in rows:
        _, element, _, shape, _ = str(r["name"]).split()
        m, n, k = map(float, shape.split("x"))
        sizes = {">= 1e11 flop": 2 * m * n * k >= 1e11, "< 1e10 flop": 2 * m * n * k < 1e10}
        for name in ("all", element, *(size for size, fits in sizes.items() if fits)):
            classes[name].append(r["ratio"])
    return ratio_lines(classes, ahead=ahead)


# --------------------------------------------------------------------------------------------------------------- tuning


TUNED_SHAPES = (*LARGE, (128, 8192, 8192), (256, 4096, 8192), (512, 8192, 4096))
"""(M, N, K)"""
_FINALISTS = 3


def tuned_problems(shapes: Sequence[tuple[int, int, int]] = (), element: str = "f16") -> list[Problem]:
    """Return the problems to tune, with A and B contiguous along K.  Raises ValueError for an unsupported element."""
    if element not in OUTPUTS:
        raise ValueError(f"unsupported element type {element!r}; expected one of {', '.join(OUTPUTS)}")
    return [Problem(*shape, element=element, output=OUTPUTS[element]) for shape in shapes or TUNED_SHAPES]


def build_tuned(folder: str, chip: str, shapes: Sequence[tuple[int, int, int]] = (), element: str = "f16") -> list[str]:
    return build_choices(_needed(tuned_problems(shapes, element)), folder, chip)


def _needed(wanted: Sequence[Problem]) -> list[Choice]:
    return list(dict.fromkeys(c for p in wanted for c in space(p)))


def run_tuned(
    folder: str, *, runs: int, large: bool, say: Say, shapes: Sequence[tuple[int, int, int]] = (), element: str = "f16"
) -> dict[str, object]:
    """Measure the search space; return a row for each pair of a correct kernel and a problem."""
    wanted = tuned_problems(shapes, element)
    runners = {c: runner_of(folder, c) for c in _needed(wanted)}
    rows: list[Row] = []
    for problem in track(wanted, "measuring", "problems"):
        rule = predicted(problem)
        found: list[tuple[float, Choice, Row]] = []
        for choice in track(space(problem), problem.key, "kernels"):
            runner = runners[choice]
            try:
                check(runner, fitting(choice, (1000, 1000, 1008)), integers=True, repeats=2)
                timed = measure(runner, problem, runs, integers=False)
            except BenchError as e:
                say(f"  wrong result: {e}")
                continue
            found.append((timed["ratio"], choice, timed))
        if not found:
            raise BenchError(f"{problem.key}: all kernels give wrong results")
        found.sort(key=lambda x: x[0], reverse=True)
        finalists = [choice for _, choice, _ in found[:_FINALISTS]]
        if rule not in finalists and any(choice == rule for _, choice, _ in found):
            finalists.append(rule)
        times = in_turns([runners[c] for c in finalists], problem, runs)
        best = min(finalists, key=lambda c: times[c.name] / (MARGIN if c == rule else 1.0))
        for ratio, choice, timed in found:
            timed.update(name=problem.key, kernel=choice.name, best=choice == best)
            rows.append(timed)
            if choice == best:
                say(f"  {problem.key}: best {choice.name} {ratio:.3f}; the model {rule.name}")
    return {"rows": rows}


def in_turns(runners: Sequence[Runner], problem: Problem, runs: int) -> dict[str, float]:
    """Return the median microseconds of kernels by name, measured in alternating rounds by
    :func:`cute_dialect.op.tuning.finals`.
    """
    operands = inputs(problem, integers=False)
    return finals([(r.choice.name, partial(r, *operands)) for r in runners], traffic_of(problem), runs)


def save_best(result: dict[str, object], gpu: str) -> Path:
    """Save the best kernels of :func:`run_tuned` in the user's table for a GPU and return its path."""
    found: dict[str, tuple[Choice, float]] = {}
    rows = result["rows"]
    assert isinstance(rows, list)
    for r in rows:
        if r["best"]:
            key = str(r["name"])
            names = {c.name: c for c in space(Problem.of_key(key))}
            found[key] = (names[str(r["kernel"])], float(r["ours"]))
    return save(gpu, found)


BENCHMARKS = {
    "gemm": Benchmark(build, run),
    "gemm_batched": Benchmark(build_batched, run_batched),
    "gemm_random": Benchmark(build_random, run_random),
    "gemm_tune": Benchmark(build_tuned, run_tuned),
}
