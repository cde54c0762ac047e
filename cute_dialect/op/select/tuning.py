"""Measure which kernel is the fastest for a call: :func:`tune`."""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cute_dialect.kernels.conv.config import ConvConfig
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.kernels.gemm.elements import BITS
from cute_dialect.lang.timing import differs
from cute_dialect.op import gemm, scaled
from cute_dialect.op.conv import functions as of_images
from cute_dialect.op.conv.report import is_convolution
from cute_dialect.op.errors import DeviceError, UnsupportedError
from cute_dialect.op.kernel_prefetch import Prefetch, prefetch
from cute_dialect.op.select import gemm_dispatch
from cute_dialect.op.select.candidates import differing
from cute_dialect.op.select.cost_model import COSTS, Costs, costs_of, ranked
from cute_dialect.op.select.kernel_choice import Choice, Problem, shipped
from cute_dialect.op.select.kernel_choice import save as save_choices
from cute_dialect.op.select.report import explain
from cute_dialect.op.select.timing import compare
from cute_dialect.runtime.progress import Task, track

__all__ = ["MARGIN", "Tuned", "check_place", "contest", "finals", "kept", "space", "tune"]

MARGIN = 1.01
"""The factor by which another kernel must be faster than what is taken without tuning."""
_NEAR = 24
"""Kernels of a problem that are predicted to be the fastest."""
_SCREEN, _FINALISTS = 20, 3
"""Runs of each kernel at first, and how many go on."""
_TURNS, _TURN = 4, 160_000
"""Turns of each finalist, and how many microseconds of it one is."""


class Tuned(NamedTuple):
    """What :func:`tune` found.

    ``kernel``: the fastest, ``microseconds``: of it; ``before``, ``before_microseconds``: what was taken without;
    ``measured``: the median of each kernel when all were screened, the fastest first; ``left_out``: kernels that do
    not compile or give another result, and why, or for which there was no time; ``saved``: the table it is in, None
    where it is in none (what was taken before is as fast, or nothing was to be saved).
    """

    problem: Problem
    kernel: Choice
    microseconds: float
    before: Choice
    before_microseconds: float
    measured: tuple[tuple[str, float], ...]
    left_out: tuple[tuple[str, str], ...]
    saved: Path | None

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
    """List the kernels that are worth measuring for a problem, what the model takes first: those of the menu that are
    predicted to be the fastest, at most two of a tile; the default kernel and the first one with the usual schedule,
    with raster groups of 4, 8 and 16; and what the table of this package takes.
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
    """Measure calls that take turns of :data:`_TURN` microseconds; gives the median of each by name.

    A turn is long enough that the power limit finds the clock that goes with a kernel: it moves clocks by more than
    kernels differ; in shorter turns one that needs more power would borrow the others'.
    """
    fastest = min(sample.median for sample in compare(contestants, traffic=traffic, runs=8).values())
    share = max(runs // _TURNS, min(int(_TURN / fastest), 1000))
    samples = compare(contestants, traffic=traffic, runs=share * _TURNS, rounds=_TURNS)
    return {name: sample.median for name, sample in samples.items()}


def tune(
    function: Callable[..., Any],
    a: Any,
    b: Any,
    out: Any = None,
    *,
    budget: float = 30.0,
    save: bool = True,
    say: Callable[[str], None] | None = None,
    **call: Any,
) -> Tuned:
    """Measure kernels for a call of ``op.mm``, ``op.bmm`` or a convolution on its own arguments, tensors of torch on a
    GPU, and let calls like it take the fastest from now on; a convolution's are its first ones (``out`` the third).

    Kernels are compiled in processes (:func:`prefetch`), each result is compared with that of the kernel that is taken
    without tuning, and all are screened in turns with a cold L2; the three fastest and that one then run longer.  Where
    one is faster by a percent it goes into the user's table for this GPU, which ``mm`` asks first, in this process and
    in others (``save``).  Nothing is written into ``out``.  ``budget``: seconds after which no kernel is added;
    ``say``: is told what is being done, line by line.

    Raises DeviceError for arrays that are not on a GPU, UnsupportedError inside of a CUDA graph's capture and for
    matrices that one kernel only can read.
    """
    import torch

    begin = time.monotonic()
    name = getattr(function, "__name__", repr(function))
    convolves = is_convolution(function)
    if not convolves and function not in (gemm.mm, gemm.bmm):
        raise UnsupportedError(f"tune: expected op.mm, op.bmm or a convolution, got {name}")
    for what in ("kernel", "split_k", "device", "stream"):
        if call.get(what) is not None:
            raise UnsupportedError(f"tune: expected no {what}: kernels are measured on the GPU of the arguments")
    if convolves:
        from cute_dialect.op.conv.tuning import tuned_convolution

        return tuned_convolution(function, [x for x in (a, b, out) if x is not None], call, begin + budget, save, say)
    check_place(a, b)
    found = explain(function, a, b, out, **call)
    if found.choice is None or found.by_torch or found.copies:
        raise UnsupportedError(f"tune: expected matrices that TMA reads where they are, got {found.problem.key}")
    gpu, sms = gemm_dispatch.gpu_of(a.get_device())
    wanted = function(a, b, **call) if out is None else function(a, b, torch.empty_like(out), **call)
    first = wanted[0] if isinstance(wanted, tuple) else wanted["D"] if isinstance(wanted, Mapping) else wanted
    rule = gemm_dispatch.choose(found.problem, sms, gpu)
    choices = tuple(dict.fromkeys((rule, *space(found.problem, costs_of(gpu, sms)))))
    epilogue = found.choice.config.epilogue if found.choice.skinny is None else found.choice.skinny.epilogue
    epilogue = epilogue.transposed() if found.choice.swapped else epilogue
    kernels = {c: gemm_dispatch.with_epilogue(c, epilogue) if epilogue.active else c for c in choices}

    def memory_of() -> Any:
        return torch.empty_like(first if out is None else out)

    def run_of(choice: Choice, memory: Any) -> Callable[[], Any]:
        return lambda: function(a, b, memory, kernel=choice, **call)

    measured = contest(
        found.problem, rule, kernels, first, memory_of, run_of, traffic=found.bytes, until=begin + budget, say=say
    )
    return kept(measured, gpu, found.flops) if save else measured


def contest(
    problem: Problem, rule: Choice, kernels: Mapping[Choice, Choice | ConvConfig], first: Any,
    memory_of: Callable[[], Any], run_of: Callable[[Choice, Any], Callable[[], Any]], *, traffic: int, until: float,
    say: Callable[[str], None] | None,
) -> Tuned:  # fmt: skip
    """Compile kernels (of each choice, with what becomes of the sums), compare their results with the ``first`` one,
    and measure them; ``rule``: what is taken without.

    ``memory_of``: gives memory for a result; ``run_of``: what computes it there; ``traffic``: bytes of a call;
    ``until``: when no kernel is added any more.
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
    """Write what was found to the user's table, where it is faster than what is taken without; ``key``: what it is kept
    for, by default the problem.
    """
    if found.kernel == found.before:
        return found
    path = save_choices(gpu, {key or found.problem.key: (found.kernel, flops / found.microseconds / 1e6)})
    _forget()
    return found._replace(saved=path)


def check_place(a: Any, b: Any) -> None:
    """Raise DeviceError or UnsupportedError where a call with these cannot be measured."""
    import torch

    for name, x in (("a", a), ("b", b)):
        if not isinstance(x, torch.Tensor) or not x.is_cuda:
            raise DeviceError(f"tune: expected {name} as a tensor of torch on a GPU, got {type(x).__name__}")
    if torch.cuda.is_current_stream_capturing():
        raise UnsupportedError("tune: a stream is being captured")


def _made(kernels: Mapping[Choice, Choice | ConvConfig], until: float) -> tuple[list[Choice], list[tuple[str, str]]]:
    """Compile kernels; gives the choices whose are compiled in time, the first among them, and why others are not."""
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
    """Let calls ask the tables again."""
    gemm_dispatch.way_of.cache_clear()
    for known in (gemm.PLAIN, gemm.FUSED, gemm.GRAPHS):
        for calls in known.values():
            calls.clear()
    for calls in (scaled.KNOWN, of_images.KNOWN):
        calls.clear()
