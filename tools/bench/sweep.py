"""``cute-bench gemm --fit --random N --seed S``: time many kernels on random problems, to fit the cost model.

Three quarters of the N problems are those of ``--random``; the others have up to 256 rows.  bf16 becomes f16, for which
the kernels are as fast, and operands are copied if the element type requires it.  For each problem, the kernels with
the lowest predicted times are timed, at most two per tile.  A few random others show slow kernels to the fit.  Kernels
are built problem by problem in parallel processes, and the plan is written next to them.  The machine with the GPU
therefore needs no costs of its own, and a budget that runs out leaves complete problems.

Before a kernel is timed, its result is compared with torch's and, if that is fast enough, with the float64 product of
small integers.  All kernels of a problem run in alternating rounds with torch, with a cold L2.  A kernel that is wrong,
crashes or hangs is reported and skipped.  An illegal memory access makes the GPU unusable for its process, and only the
end of its process stops a kernel that hangs, so :func:`supervised` times the kernels in a child process and continues
in a new one.

A sweep file holds the times of many kernels for many problems on a GPU::

    {"format": 1, "machine": {"gpu": NAME, …}, "sms": 132, "date": "2026-11-23", "command": "…",
     "menu": {KERNEL: {…}},                                                 as encoded by op.select.kernel_choice.encode
     "rows": [{"problem": "f16-f16-kk 128x8192x4096", "times": {"torch": 12.3, KERNEL: 11.9, …}, "bad": {KERNEL: WHY}}],
     "failed": {KERNEL: WHY}, "left": 0}             times in microseconds; kernels not built; problems not reached

Kernels that this version does not support are skipped and counted when a file is read.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import exp, log
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypedDict, cast

from cute_dialect.kernels.gemm.config import BITS
from cute_dialect.op.execute.kernels import text_of
from cute_dialect.op.select.candidates import differing
from cute_dialect.op.select.cost_model import Costs, ranked
from cute_dialect.op.select.kernel_choice import Choice, Problem, decode, encode
from cute_dialect.runtime.progress import Task
from cute_dialect.tools.bench.cases.gemm import (
    EXACT,
    OUTPUTS,
    Runner,
    inputs,
    of_menu,
    peer_of,
    random_problems,
    traffic_of,
)
from cute_dialect.tools.bench.runner import BenchError, Say, build_kernel, loaded, median_times, new_pool

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.runtime.launch import CompiledModule


FORMAT = 1
PEER = "torch"

NEAR = 20
"""Number of kernels per problem with the lowest predicted times; a fifth as many random kernels are added."""
PATIENCE = 60.0
"""Seconds after which a kernel is assumed to hang."""
_PLAN = "sweep.json"
_FEW = (1, 256)
_ELEMENTS = ("f16", "f8E4M3FN", "tf32")


class Plan(NamedTuple):
    """The kernels to time: their names for each problem, and the kernels by name.

    ``failed`` maps kernels that were not built to the reason.
    """

    problems: int
    seed: int
    sms: int
    rows: tuple[tuple[Problem, tuple[str, ...]], ...]
    menu: Mapping[str, Choice]
    failed: Mapping[str, str]


def sweep_problems(count: int, seed: int) -> list[Problem]:
    """Return the problems of a sweep; every fourth has few rows.

    >>> [p.m <= 256 for p in sweep_problems(8, 5)][3::4]
    [True, True]
    """
    few = _few_rows(count // 4, seed)
    usual = [p._replace(element="f16", output="f16") if p.element == "bf16" else p
             for p in map(of_menu, random_problems(count - len(few), seed))]  # fmt: skip
    found: list[Problem] = []
    for i in range(count):
        found.append(few[i // 4] if i % 4 == 3 else usual[i - i // 4])
    return found


def _few_rows(count: int, seed: int) -> list[Problem]:
    rng = random.Random(f"few rows {seed}")
    found: list[Problem] = []
    for i in range(count):
        element = _ELEMENTS[i % len(_ELEMENTS)]
        m = round(exp(rng.uniform(*map(log, _FEW))))
        n, k = (int(exp(rng.uniform(log(1024), log(most)))) // 64 * 64 for most in (32768, 16384))
        major_b = rng.choice("kn") if BITS[element] == 16 else "k"
        found.append(Problem(m, n, k, element, OUTPUTS[element], "k", major_b))
    return found


def plan(count: int, seed: int, costs: Costs, near: int | None = NEAR) -> Plan:
    """Return the plan of a sweep.

    ``near`` is the number of kernels per problem by predicted time; None selects all that support it.
    """
    menu: dict[str, Choice] = {}
    rows: list[tuple[Problem, tuple[str, ...]]] = []
    for problem in sweep_problems(count, seed):
        found = [choice for _, choice in ranked(problem, costs)]
        if near is not None:
            first = differing(found, near)
            rest = [c for c in found[: 40 * near] if c not in first]
            rng = random.Random(f"{seed} {problem.key}")
            found = [*first, *rng.sample(rest, min(len(rest), -(-near // 5)))]
        menu |= {c.name: c for c in found}
        rows.append((problem, tuple(c.name for c in found)))
    return Plan(count, seed, costs.sms, tuple(rows), menu, {})


# ---------------------------------------------------------------------------------------------------------------- build


def build(folder: str, chip: str, wanted: Plan, *, deadline: float, say: Say) -> Plan:
    """Compile the kernels of a plan into ``folder/NAME``, in parallel processes, and write the plan.

    Kernels that fail or are not built by the deadline (of ``time.monotonic``) are recorded in ``failed``.
    """
    os.makedirs(folder, exist_ok=True)
    failed: dict[str, str] = {}
    begin = time.monotonic()
    pool = new_pool()
    try:
        jobs: dict[Future[str], str] = {
            pool.submit(build_kernel, (name, partial(text_of, choice), folder, chip)): name
            for name, choice in wanted.menu.items()
        }
        say(f"building {len(jobs)} kernels for {len(wanted.rows)} problems")
        try:
            with Task("compiling", len(jobs), "kernels") as task:
                for job in as_completed(jobs, None if deadline == float("inf") else max(0.0, deadline - begin)):
                    why = job.exception()
                    if why is not None:
                        failed[jobs[job]] = f"{type(why).__name__}: {_short(why)}"
                        say(f"  FAILED: {jobs[job]}: {failed[jobs[job]]}")
                    elif " 0 bytes spilled" not in job.result():
                        say(f"  {job.result()}")
                    task.advance(name=jobs[job])
        except TimeoutError:
            late = [name for job, name in jobs.items() if not job.done()]
            failed |= dict.fromkeys(late, "not built within the budget")
            say(f"  budget exhausted: {len(late)} of {len(jobs)} kernels were not built")
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    made = wanted._replace(failed=failed)
    write_plan(folder, made)
    say(f"built in {time.monotonic() - begin:.0f} s")
    return made


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


def write_plan(folder: str, made: Plan) -> None:
    """Write the plan next to the kernels."""
    record: dict[str, object] = {
        "format": FORMAT,
        **made._asdict(),
        "rows": [(p.key, names) for p, names in made.rows],
        "menu": {name: encode(choice) for name, choice in made.menu.items()},
    }
    with open(os.path.join(folder, _PLAN), "w", encoding="utf-8") as f:
        json.dump(record, f)


def read_plan(folder: str, count: int, seed: int) -> Plan:
    """Return the plan that :func:`build` wrote.  Raises BenchError if it is missing or for other problems."""
    path = os.path.join(folder, _PLAN)
    try:
        with open(path, encoding="utf-8") as f:
            found = json.load(f)
        if found["format"] != FORMAT:
            raise ValueError(f"format {found['format']!r}")
        rows = tuple((Problem.of_key(key), tuple(names)) for key, names in found["rows"])
        menu: dict[str, Choice] = {}
        failed: dict[str, str] = dict(found["failed"])
        for name, fields in found["menu"].items():
            try:
                menu[name] = decode(fields)
            except ValueError as e:  # This version does not support the kernel.
                failed.setdefault(name, str(e))
        made = Plan(found["problems"], found["seed"], found["sms"], rows, menu, failed)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        raise BenchError(
            f"--run: '{folder}' was not built by cute-bench gemm --fit --random N --build: {type(e).__name__}: {e}"
        ) from None
    if (made.problems, made.seed) != (count, seed):
        raise BenchError(
            f"--run: '{folder}' was built for --random {made.problems} --seed {made.seed}; use the same options"
        )
    return made


# ------------------------------------------------------------------------------------------------------------------ run


def run(folder: str, wanted: Plan, *, runs: int, deadline: float, say: Say) -> dict[str, object]:
    """Time the kernels of a plan in a folder; return the sweep without the machine.

    Raises BenchError if the GPU has another number of SMs.
    """
    import torch

    sms = torch.cuda.get_device_properties(0).multi_processor_count
    if sms != wanted.sms:
        raise BenchError(f"the kernels are for a GPU of {wanted.sms} SMs, but this one has {sms}; build with "
                         f'--costs FILE, where FILE holds {{"format": 1, "costs": {{"sms": {sms}}}}}')  # fmt: skip
    return timed(wanted, partial(time_jobs, folder, wanted, runs), deadline=deadline, say=say)


def timed(wanted: Plan, work: Work, *, deadline: float, say: Say, patience: float = PATIENCE) -> dict[str, object]:
    """Implement :func:`run` with a timing function that runs in a child process, which may crash or hang."""
    begin, total = time.monotonic(), len(wanted.rows)

    with Task("measuring", total, "problems") as task:

        def tell(job: int, result: object) -> None:
            say(f"  {job + 1} of {total} {_row_text(cast('Mapping[str, object]', result))}")
            task.advance(name=wanted.rows[job][0].key)

        found = supervised(work, total, patience=patience, deadline=deadline, tell=tell)
    if found.stopped and not found.results:
        raise BenchError(f"no kernel could be timed: {found.stopped}")
    for name, why in found.broken.items():
        say(f"  BROKEN: {name}: {why}")
    for job, why in found.lost.items():
        say(f"  LOST: {wanted.rows[job][0].key}: {why}")
    say(f"timed {len(found.results)} of {total} problems in {time.monotonic() - begin:.0f} s")
    if found.left:
        say(f"{found.stopped or 'budget exhausted'}: {len(found.left)} problems remain")
    return {
        "format": FORMAT,
        "sms": wanted.sms,
        "problems": wanted.problems,
        "seed": wanted.seed,
        "menu": {name: encode(choice) for name, choice in wanted.menu.items()},
        "rows": [found.results[job] for job in sorted(found.results)],
        "failed": {**wanted.failed, **found.broken},
        "lost": {wanted.rows[job][0].key: why for job, why in found.lost.items()},
        "left": len(found.left),
    }


def _row_text(row: Mapping[str, object]) -> str:
    times, bad = cast("dict[str, float]", row["times"]), cast("dict[str, str]", row["bad"])
    ours = min(((t, n) for n, t in times.items() if n != PEER), default=None)
    text = str(row["problem"])
    if ours is not None:
        text += f": {len(times)} kernels, best {ours[1].split('-', 3)[-1]} {ours[0]:.1f} us"
        text += f", {times[PEER] / ours[0]:.3f} of torch" if PEER in times else ""
    return text + "".join(f"; BAD {name}: {why}" for name, why in bad.items())


def time_jobs(
    folder: str, wanted: Plan, runs: int, jobs: Sequence[int], broken: frozenset[str], reporter: Reporter
) -> None:
    """Time all kernels of some problems; runs in the child process."""
    modules: dict[str, CompiledModule] = {}
    for job in jobs:
        problem, names = wanted.rows[job]
        bad: dict[str, str] = {}
        runners: list[Runner] = []  # Runners are created per problem because they hold workspaces.
        for name in (n for n in names if n not in broken and n not in wanted.failed):
            reporter.at(job, name)
            try:
                if name not in modules:
                    modules[name] = loaded(folder, name)
                runners.append(Runner(wanted.menu[name], modules[name]))
            except Exception as e:
                bad[name] = f"{type(e).__name__}: {_short(e)}"
        row = time_problem(problem, runners, runs, partial(reporter.at, job), reporter.last_words)
        reporter.done(job, {**row, "bad": bad | row["bad"]})


class Timed(TypedDict):
    """A row of a sweep: microseconds by kernel, and the reasons why kernels were not timed."""

    problem: str
    times: dict[str, float]
    bad: dict[str, str]


def time_problem(
    problem: Problem, runners: Iterable[Runner], runs: int, at: Callable[[str], None], last_words: Callable[[str], None]
) -> Timed:
    """Check the kernels of a problem and time the correct ones; return a row of the sweep."""
    import torch

    at("")
    m, n, k = problem[:3]
    bad: dict[str, str] = {}
    exact = None
    if 2.0 * m * n * k <= EXACT:
        x, y, out = inputs(problem, integers=True)
        exact = (x, y, (x.double() @ y.double().T).to(out.dtype))
    a, b, c = inputs(problem, integers=False)
    peer, expected = peer_of(problem, a, b)
    contestants: list[tuple[str, Callable[[], object]]] = [(PEER, peer)]
    peer()
    for runner in runners:
        name = runner.choice.name
        at(name)
        try:
            wrong = ""
            if exact is not None:
                c.fill_(float("nan"))
                runner(exact[0], exact[1], c)
                wrong = "" if torch.equal(c, exact[2]) else "wrong on integers"
            c.fill_(float("nan"))
            runner(a, b, c)
            if not torch.allclose(c.float(), expected.float(), rtol=2e-2, atol=2e-2 * k**0.5):
                wrong = wrong or "differs from torch"
        except Exception as e:
            wrong = f"{type(e).__name__}: {_short(e)}"
            try:
                torch.cuda.synchronize()
            except Exception:  # The CUDA context is unusable.
                last_words(wrong)
                os._exit(1)
        if wrong:
            bad[name] = wrong
        else:
            contestants.append((name, partial(runner, a, b, c)))
    at("")
    large = 2.0 * m * n * k > EXACT
    times = median_times(
        contestants, traffic=traffic_of(problem), runs=max(5, runs * 2 // 3) if large else runs, warmup=1
    )
    return {"problem": problem.key, "times": {x: round(t, 3) for x, t in times.items()}, "bad": bad}


# ---------------------------------------------------------------------------------------------------------------- files


class SweepError(ValueError):
    """A sweep that cannot be read or does not fit the command."""


class Row(NamedTuple):
    """The kernels timed for a problem, their times and that of torch in microseconds (0: not timed)."""

    problem: Problem
    kernels: tuple[Choice, ...]
    times: tuple[float, ...]
    peer: float = 0.0

    @property
    def best(self) -> int:
        """The index of the fastest kernel."""
        return min(range(len(self.times)), key=self.times.__getitem__)


class Sweep:
    """The rows of one or more files of the same GPU.

    ``unknown`` maps the kernels that this version lacks to the reason.  ``left_out`` counts their times in the files.
    """

    def __init__(self, gpu: str, sms: int, rows: Sequence[Row], unknown: Mapping[str, str], left_out: int):
        self.gpu, self.sms, self.rows = gpu, sms, tuple(rows)
        self.unknown, self.left_out = dict(unknown), left_out

    @cached_property
    def said(self) -> str:
        """A one-line summary."""
        times = sum(len(r.times) for r in self.rows)
        text = f"{self.gpu}, {self.sms} SMs: {len(self.rows)} problems, {times} kernel times"
        if self.unknown:
            text += f"; skipped {self.left_out} times of {len(self.unknown)} kernels that this version does not support"
        return text


def read_sweeps(paths: Sequence[str | Path]) -> Sweep:
    """Read and merge sweep files.

    Raises:
        SweepError: a file is not a sweep or has another format, the files are of different GPUs, or no problem has
            two kernels.
    """
    found = [_read(Path(p)) for p in paths]
    first = found[0]
    for path, other in zip(paths, found):
        if (other.gpu, other.sms) != (first.gpu, first.sms):
            raise SweepError(f"expected sweeps of one GPU, got {first.gpu} ({first.sms} SMs) in {paths[0]}, {other.gpu}"
                             f" ({other.sms} SMs) in {path}")  # fmt: skip
    rows = [row for sweep in found for row in sweep.rows if len(row.times) > 1]
    if not rows:
        names = ", ".join(map(str, paths))
        raise SweepError(f"{names}: no problem has two or more kernels to choose from")
    unknown = {name: why for sweep in found for name, why in sweep.unknown.items()}
    return Sweep(first.gpu, first.sms, rows, unknown, sum(sweep.left_out for sweep in found))


def _read(path: Path) -> Sweep:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise SweepError(f"{path}: {e.strerror or e}") from None
    except ValueError as e:
        raise SweepError(f"{path}: not a sweep: {e}; record one with cute-bench gemm --fit --random") from None
    try:
        if found["format"] != FORMAT:
            raise SweepError(f"{path}: expected a sweep of format {FORMAT}, got format {found['format']!r}")
        gpu, sms = found["machine"]["gpu"], found["sms"]
        if not isinstance(gpu, str) or not gpu or isinstance(sms, bool) or not isinstance(sms, int) or sms < 1:
            raise ValueError(f"GPU {gpu!r} of {sms!r} SMs")
        return _sweep(gpu, sms, found["menu"], found["rows"])
    except SweepError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        said = f"no {e}" if isinstance(e, KeyError) else e
        raise SweepError(f"{path}: not a sweep: {said}; record one with cute-bench gemm --fit --random") from None


def _sweep(gpu: str, sms: int, menu: Mapping[str, object], listed: Sequence[Mapping[str, object]]) -> Sweep:
    known: dict[str, Choice] = {}
    unknown: dict[str, str] = {}
    for name, fields in menu.items():
        try:
            choice = decode(cast("Mapping[str, object]", fields))
        except (ValueError, TypeError) as e:
            unknown[name] = str(e)
            continue
        if choice.skinny is not None or choice.config.sms == sms:
            known[name] = choice
        else:
            unknown[name] = f"for {choice.config.sms} SMs"
    rows: list[Row] = []
    left_out = 0
    for row in listed:
        times: dict[Choice, float] = {}
        peer = 0.0
        for name, us in cast("Mapping[str, object]", row["times"]).items():
            if isinstance(us, bool) or not isinstance(us, int | float) or not 0 < us < float("inf"):
                raise ValueError(f"{us!r} us of {name}")
            if name == PEER:
                peer = float(us)
            elif name in known:
                times[known[name]] = float(us)
            else:
                unknown.setdefault(name, "not in the menu of the file")
                left_out += 1
        rows.append(Row(Problem.of_key(str(row["problem"])), tuple(times), tuple(times.values()), peer))
    return Sweep(gpu, sms, rows, unknown, left_out)


# ------------------------------------------------------------------------------------------ jobs that may crash or hang


class Reporter:
    """The messages of the child process to its parent."""

    def __init__(self, pipe: Connection):
        self._pipe = pipe

    def at(self, job: int, step: str) -> None:
        """Report the start of a step of a job."""
        self._pipe.send(("at", job, step))

    def done(self, job: int, result: object) -> None:
        """Report the result of a job."""
        self._pipe.send(("done", job, result))

    def last_words(self, why: str) -> None:
        """Report the reason why the process is about to exit."""
        self._pipe.send(("last words", 0, why))


class Work(Protocol):
    """A module-level function that processes jobs in order.

    It reports each step before it starts and skips the steps in ``broken``.  The step "" is the whole job.
    """

    def __call__(self, jobs: Sequence[int], broken: frozenset[str], reporter: Reporter) -> None: ...


@dataclass
class Supervised:
    """The outcome: results by job, reasons of failed steps (``broken``) and of failed jobs (``lost``), remaining jobs
    (``left``), and the reason for stopping before the deadline (``stopped``).
    """

    results: dict[int, object] = field(default_factory=dict[int, object])
    broken: dict[str, str] = field(default_factory=dict[str, str])
    lost: dict[int, str] = field(default_factory=dict[int, str])
    left: list[int] = field(default_factory=list[int])
    stopped: str = ""


def supervised(
    work: Work, jobs: int, *, patience: float, deadline: float, tell: Callable[[int, object], None]
) -> Supervised:
    """Process jobs ``0`` to ``jobs - 1``; ``tell`` is called with each result.

    Stop if a process ends before its first step, because the next process would too.

    Args:
        patience: time limit of a step in seconds, including the start of the process.
        deadline: the value of ``time.monotonic()`` at which to stop.
    """
    found = Supervised(left=list(range(jobs)))
    while found.left and time.monotonic() < deadline:
        at, why = _one_process(work, found, patience, deadline, tell)
        if not why:
            continue
        if at is None:
            found.stopped = why
            break
        job, step = at
        if step:
            found.broken[step] = why
        elif job in found.left:
            found.lost[job] = why
            found.left.remove(job)
    return found


def _one_process(
    work: Work, found: Supervised, patience: float, deadline: float, tell: Callable[[int, object], None]
) -> tuple[tuple[int, str] | None, str]:
    """Process jobs in one child process.

    Returns the step at which the process stopped and the reason, empty at the deadline or when all jobs are done.
    """
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(work, tuple(found.left), frozenset(found.broken), theirs))
    process.start()
    theirs.close()
    at: tuple[int, str] | None = None
    last_words = ""
    try:
        while True:
            wait = min(patience, max(0.0, deadline - time.monotonic()))
            if not ours.poll(wait):
                return at, "" if time.monotonic() >= deadline else f"no answer for {patience:g} s"
            try:
                kind, job, value = ours.recv()
            except EOFError:
                process.join()
                return at, (last_words or f"its process ended with {process.exitcode}") if found.left else ""
            if kind == "done":
                found.results[job] = value
                found.left.remove(job)
                tell(job, value)
            elif kind == "at":
                at = (job, str(value))
            else:
                last_words = str(value)
    finally:
        process.kill()
        process.join()
        ours.close()


def _child(work: Work, jobs: Sequence[int], broken: frozenset[str], pipe: Connection) -> None:
    work(jobs, broken, Reporter(pipe))
