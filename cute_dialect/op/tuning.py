"""Tuning: kernels of one problem are compiled, compared and measured, and the fastest one is saved.

``op.tune(op.conv2d, x, f, padding=1)`` measures those of a convolution (:func:`tuned_convolution`), the method ``tune``
of a plan those of its GEMM (:func:`tuned_plan`).
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.kernels.common.elements import BITS
from cute_dialect.kernels.conv.config import ConvConfig
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.lang.calls.timing import differs
from cute_dialect.op.conv.choice import ConvRequest, config_of, kernels_for, plain, problem_of
from cute_dialect.op.errors import DeviceError, UnsupportedError
from cute_dialect.op.execute.arguments import Arguments
from cute_dialect.op.execute.call_cache import forget_calls
from cute_dialect.op.explanations.conv import explain_convolution
from cute_dialect.op.kernel_prefetch import Prefetch, prefetch
from cute_dialect.op.select import gemm_dispatch
from cute_dialect.op.select.candidates import differing
from cute_dialect.op.select.configurations import described
from cute_dialect.op.select.cost_model import COSTS, Costs, costs_of, ranked
from cute_dialect.op.select.kernel_choice import Choice, Problem, choice_of, shipped
from cute_dialect.op.select.kernel_choice import save as save_choices
from cute_dialect.op.select.plan_tiles import problem_of as plan_problem
from cute_dialect.op.select.timing import compare
from cute_dialect.runtime.arrays import view_of
from cute_dialect.runtime.progress import Task, track

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.plans.gemm import Gemm

MARGIN = 1.01
"""Factor by which a kernel must be faster than the default choice."""
_NEAR = 24
"""Number of kernels that are measured, those that are predicted to be the fastest."""
_SCREEN, _FINALISTS = 20, 3
"""Number of runs of each kernel in the screening, and number of finalists."""
_TURNS, _TURN = 4, 160_000
"""Number of rounds per finalist, and microseconds per round."""


class Tuned(NamedTuple):
    """Result of :func:`cute_dialect.op.tune`."""

    problem: Problem
    kernel: Choice  # the fastest one
    microseconds: float
    before: Choice  # the default choice
    before_microseconds: float
    measured: tuple[tuple[str, float], ...]  # median of each kernel in the screening, the fastest first
    left_out: tuple[tuple[str, str], ...]  # kernels that were not measured, and the reason
    saved: Path | None  # the table with the result; None if nothing was saved

    def __str__(self) -> str:
        gain = self.before_microseconds / self.microseconds
        lines = [
            f"tuned {self.problem.key}: {len(self.measured)} kernels measured",
            f"  fastest   {self.kernel.name}: {self.microseconds:.1f} us",
            f"  before    {self.before.name}: {self.before_microseconds:.1f} us, {gain:.3f} times as long",
            f"  saved     {self.saved}" if self.saved else "  saved     nothing",
        ]
        lines += [f"  left out  {name}: {why}" for name, why in self.left_out]
        return "\n".join(lines)


def space(problem: Problem, costs: Costs = COSTS) -> tuple[Choice, ...]:
    """Return the kernels to measure for a problem, those with the shortest predicted times first.

    They are the fastest candidates of the cost model, at most two per tile; the default kernel and the first
    cooperative one, with raster groups of 4, 8 and 16; and the kernel of this package's table.
    """
    found = differing((c for _, c in ranked(problem, costs, 12 * _NEAR)), _NEAR)
    usual = GemmConfig(
        problem.element, problem.output, problem.major_a, problem.major_b,
        tile=(128, 256, 1024 // BITS[problem.element]), deferred=BITS[problem.output] == 16,
        batch=problem.matrices > 1, sms=costs.sms,
    )  # fmt: skip
    plain = [c for c in found if c.skinny is None and c.parts == 1 and c.config.schedule == "cooperative"]
    if problem.m > 512 and not problem.sums:
        for config in (usual, *(c.config for c in plain[:1])):
            found += [Choice(config._replace(group=g)) for g in (4, 8, 16)]
    found += [table[problem.key] for table in (shipped("NVIDIA H200"),) if problem.key in table]
    return tuple(dict.fromkeys(found))


def finals(contestants: Sequence[tuple[str, Callable[[], object]]], traffic: int, runs: int = 100) -> dict[str, float]:
    """Return the median time of each contestant by name, measured in alternating rounds of :data:`_TURN` microseconds.

    A round is long enough for the GPU to settle at the clock that the power limit allows for a kernel.  In shorter
    rounds a kernel that needs more power would run at the clock of the others, a difference larger than that of the
    kernels.
    """
    fastest = min(sample.median for sample in compare(contestants, traffic=traffic, runs=8).values())
    share = max(runs // _TURNS, min(int(_TURN / fastest), 1000))
    samples = compare(contestants, traffic=traffic, runs=share * _TURNS, rounds=_TURNS)
    return {name: sample.median for name, sample in samples.items()}


def contest(
    problem: Problem, rule: Choice, kernels: Mapping[Choice, Choice | ConvConfig], first: Any,
    memory_of: Callable[[], Any], run_of: Callable[[Choice, Any], Callable[[], Any]], *, traffic: int, until: float,
    say: Callable[[str], None] | None,
) -> Tuned:  # fmt: skip
    """Compile kernels, compare their results with ``first``, and measure them.

    Args:
        rule: the default choice.
        kernels: choice -> kernel with its epilogue.
        first: the result of the default choice.
        memory_of: allocates a result.
        run_of: returns the function that computes a result with a kernel.
        traffic: bytes of a call.
        until: time after which no kernel is added.
    """
    if say is not None:
        say(f"{len(kernels)} kernels are compiled")
    made, left_out = _made(kernels, until)
    contestants: list[tuple[str, Callable[[], object]]] = []
    for choice in track(made, "checking", "kernels"):
        memory = memory_of().fill_(float("nan") if first.is_floating_point() else 1)
        if choice != rule and time.monotonic() > until:
            left_out.append((choice.name, "no time"))
            continue
        run = run_of(choice, memory)
        result = run()
        d = result[0] if isinstance(result, tuple) else result["D"] if isinstance(result, Mapping) else memory
        if differs(d, first):
            left_out.append((choice.name, "another result"))
            continue
        contestants.append((choice.name, run))
    if say is not None:
        say(f"{len(contestants)} kernels are measured")
    with Task("measuring", 2, "rounds") as task:
        screened = {n: s.median for n, s in compare(contestants, traffic=traffic, runs=_SCREEN, warmup=2).items()}
        order = sorted(screened, key=lambda n: screened[n])
        last = list(dict.fromkeys((*order[:_FINALISTS], rule.name)))
        task.advance(name=f"{len(order)} kernels")
        times = finals([(n, r) for n, r in contestants if n in last], traffic)
        task.advance(name=f"{len(last)} kernels")
    best = min(last, key=lambda n: times[n] / (MARGIN if n == rule.name else 1.0))
    kernel = next(c for c in made if c.name == best)
    return Tuned(
        problem, kernel, times[best], rule, times[rule.name], tuple((n, screened[n]) for n in order), tuple(left_out),
        None,
    )  # fmt: skip


def kept(found: Tuned, gpu: str, flops: int, key: str = "") -> Tuned:
    """Save a result to the user's table if it is faster than the default choice.

    Args:
        key: key in the table; default: that of the problem.
    """
    if found.kernel == found.before:
        return found
    path = save_choices(gpu, {key or found.problem.key: (found.kernel, flops / found.microseconds / 1e6)})
    _forget()
    return found._replace(saved=path)


def check_place(a: Any, b: Any) -> None:
    """Raise DeviceError or UnsupportedError if a call with these arrays cannot be measured."""
    import torch

    for name, x in (("a", a), ("b", b)):
        if not isinstance(x, torch.Tensor) or not x.is_cuda:
            raise DeviceError(f"tune: {name} ({type(x).__name__}) is not a torch tensor on a GPU; pass one")
    if torch.cuda.is_current_stream_capturing():
        raise UnsupportedError("tune: the current stream is being captured; tune outside of the capture")


def _made(kernels: Mapping[Choice, Choice | ConvConfig], until: float) -> tuple[list[Choice], list[tuple[str, str]]]:
    """Compile kernels; return the choices that are compiled in time, and the reasons for the others."""
    coming: list[tuple[Choice, Prefetch]] = [(c, prefetch([kernel])) for c, kernel in kernels.items()]
    made: list[Choice] = []
    failed: list[tuple[str, str]] = []
    with Task("compiling", len(coming), "kernels") as task:
        for number, (choice, making) in enumerate(coming):
            try:
                making.follow(lambda: None, None if number == 0 else max(0.0, until - time.monotonic()))
                made.append(choice)
            except TimeoutError:
                failed.append((choice.name, "no time"))
            except Exception as e:
                if number == 0:
                    raise
                failed.append((choice.name, str(e).splitlines()[0]))
            task.advance(name=choice.name)
    return made, failed


def _forget() -> None:
    """Clear caches, so that later calls look up the tables again."""
    gemm_dispatch.forget_plans()
    forget_calls()


# --------------------------------------------------------------------------------------------------------- convolutions


def tuned_convolution(
    function: Callable[..., Any], given: Sequence[Any], call: Mapping[str, Any], until: float, save: bool,
    say: Callable[[str], None] | None,
) -> Tuned:  # fmt: skip
    """Measure kernels for a call of a convolution; see :func:`cute_dialect.op.functions.tune.tune`.

    Raises UnsupportedError if im2col loads do not support the problem, or operands would be copied.
    """
    import torch

    name = function.__name__
    arrays = [x for x in given if not isinstance(x, list | tuple)]  # without the shape of a gradient
    check_place(*arrays[:2])
    found = explain_convolution(name, given, call)
    if found.config is None or found.copies:
        what = "pass a convolution that im2col loads support, with operands that are not copied"
        raise UnsupportedError(f"tune: {found.kernel} cannot be tuned ({found.why}); {what}")
    gpu, sms = gemm_dispatch.gpu_of(arrays[0].get_device())
    asked = ConvRequest(found.geometry, found.element, found.output)
    costs = costs_of(gpu, sms)
    fastest = plain(found.config)
    rule = choice_of(fastest)
    near = differing((choice_of(config) for _, config in kernels_for(asked, costs)), _NEAR)
    choices = tuple(dict.fromkeys((rule, *near)))
    epilogue = found.config.base.epilogue
    made = {c: config_of(asked._replace(epilogue=epilogue), c) for c in choices}
    kernels = {c: config for c, config in made.items() if config is not None}
    first = function(*given, **call)

    def memory_of() -> Any:
        return torch.empty_like(first)

    def run_of(choice: Choice, memory: Any) -> Callable[[], Any]:
        return lambda: function(*given, out=memory, kernel=choice, **call)

    measured = contest(
        problem_of(asked), rule, kernels, first, memory_of, run_of, traffic=found.bytes, until=until, say=say
    )
    return kept(measured, gpu, found.flops, asked.key) if save else measured


# ---------------------------------------------------------------------------------------------------------------- plans


def tuned_plan(plan: Gemm, taken: Arguments, budget: float, save: bool, say: Callable[[str], None] | None) -> Tuned:
    """Measure kernels for checked arguments of a plan; see :func:`cute_dialect.op.functions.tune.tune`."""
    import torch

    begin, x = time.monotonic(), taken.operands
    if plan.tile_description is not None:
        raise UnsupportedError("Gemm.tune: tile_description already sets the kernel; set it to None")
    if taken.operation.choice is None:
        raise UnsupportedError(
            f"Gemm.tune: the operands need kernel {taken.operation.name}, but only wgmma kernels can be tuned"
        )
    if 0 in (*x.d.shape, x.a.shape[-1]) or x.alpha == 0.0:
        sizes = *x.d.shape, x.a.shape[-1]
        raise UnsupportedError(
            f"Gemm.tune: nothing is multiplied (extents {sizes}, alpha {x.alpha}); pass matrices that are not empty"
        )
    batch = len(x.d.shape) == 3
    asked, (m, n) = plan.asked(batch=batch).of_parts(), x.d.shape[-2:]
    matrices = x.d.shape[0] if batch else 1
    k = x.a.shape[-1]
    problem = plan_problem(asked, m, n, k, matrices)
    gpu, sms = gemm_dispatch.gpu_of(x.d.device)
    rule = gemm_dispatch.choose(problem, sms, gpu)

    def memory_of() -> Any:
        return torch.empty_strided(x.d.shape, x.d.strides, dtype=taken.D.dtype, device=taken.D.device)

    def arguments(choice: Choice, memory: Any) -> Arguments:
        operation = plan.operation_of(described(choice, asked))
        return Arguments(
            operation, x._replace(d=view_of(memory)), memory, taken.stream, taken.options, call="Gemm.tune"
        )

    def run_of(choice: Choice, memory: Any) -> Callable[[], Any]:
        return prepared(arguments(choice, memory))

    def kernel_of(choice: Choice) -> Choice | None:
        try:
            found = plan.operation_of(described(choice, asked)).variant_for(x).kernel
        except UnsupportedError:
            return None
        return found if isinstance(found, Choice) else None

    choices = dict.fromkeys((rule, *space(problem, costs_of(gpu, sms))))
    kernels = {c: kernel for c in choices if (kernel := kernel_of(c)) is not None}
    first = memory_of()
    prepared(arguments(rule, first))()
    elements = matrices * (m * k + k * n) * BITS[problem.element] + matrices * m * n * BITS[problem.output]
    found = contest(
        problem, rule, kernels, first, memory_of, run_of, traffic=elements // 8, until=begin + budget, say=say
    )
    return kept(found, gpu, 2 * matrices * m * n * k) if save else found


def prepared(arguments: Arguments) -> Callable[[], Any]:
    """Return a function that only launches."""
    return arguments.bind()
