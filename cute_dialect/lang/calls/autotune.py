"""Autotuning of a host function's constants by measurement: ``@cute.autotune``.

::

    @cute.autotune(space={"threads": [64, 128, 256]}, key=["x"])
    @cute.jit
    def row_sum(x: cute.Tensor, out: cute.Tensor, threads: cute.Constexpr = 128): ...

    row_sum(x, out)                   # the first call of a key measures; later calls and processes reuse the result
    print(row_sum.tune(x, out))       # measure now and print the result

Results are kept in one file per GPU, ``functions/nvidia-h200.json`` in the user's folder::

    {"format": 1, "gpu": "NVIDIA H200",
     "functions": {"mymodule.row_sum": {"x=f32[128x4096]": {"chosen": {"threads": "256"}, "microseconds": 4.5}}}}

Values are stored as their ``repr`` and looked up among the candidates of the function.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import statistics
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, cast

from cute_dialect.errors import CuteError
from cute_dialect.files import gpu_file_name, replace_file
from cute_dialect.lang.calls.compile import compile_async
from cute_dialect.lang.calls.decorators import JitFunction
from cute_dialect.lang.calls.options import default_device, without_checks
from cute_dialect.lang.calls.timing import GpuClock, HostClock, Measure, contest, differs
from cute_dialect.lang.tracing.tracer import active
from cute_dialect.runtime.arrays import ArrayView, NotAnArray, stream_of, view_of
from cute_dialect.runtime.settings import flag, user_folder

_FORMAT = 1
Candidate = Mapping[str, Any]
"""Values of the autotuned parameters."""
_Entries = dict[str, dict[str, Any]]


def table_path(gpu: str) -> Path:
    """Return the path of the user's file for a GPU; ``gpu`` is its name as the driver reports it."""
    return Path(user_folder("CUTE_CONFIG_DIR", "XDG_CONFIG_HOME", ".config")) / "functions" / gpu_file_name(gpu)


def read_table(gpu: str) -> dict[str, _Entries]:
    """Return the entries of a GPU's file, by function and key.

    The result is empty if the file is missing, damaged or of another format; functions are then measured again.
    """
    try:
        found = json.loads(table_path(gpu).read_text(encoding="utf-8"))
        functions = cast("dict[str, _Entries]", found["functions"]) if found["format"] == _FORMAT else {}
        kept = {
            name: {key: e for key, e in entries.items() if isinstance(e["chosen"], dict)}
            for name, entries in functions.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return kept


def find_entry(entries: Mapping[str, Mapping[str, Any]], key: str, candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the candidate that a function's entries record for a key, or None if there is no such entry or candidate.

    >>> find_entry({"n=8": {"chosen": {"threads": "64"}}}, "n=8", [{"threads": 32}, {"threads": 64}])
    {'threads': 64}
    """
    entry = entries.get(key)
    wanted = entry["chosen"] if entry is not None else None
    return next((c for c in candidates if {n: repr(v) for n, v in c.items()} == wanted), None)


def save_entry(gpu: str, function: str, key: str, chosen: Candidate, microseconds: float) -> Path:
    """Add an entry to the user's file, which is replaced atomically. Raises OSError."""
    functions = read_table(gpu)
    entry = {"chosen": {n: repr(v) for n, v in chosen.items()}, "microseconds": round(microseconds, 2)}
    functions.setdefault(function, {})[key] = entry
    document = {"format": _FORMAT, "gpu": gpu, "functions": dict(sorted(functions.items()))}
    path = table_path(gpu)
    replace_file(path, f"{json.dumps(document, indent=1)}\n".encode())
    return path


class TuneError(CuteError, ValueError):
    """A function cannot be tuned as requested."""


class Tuned(NamedTuple):
    """The result of tuning.

    Attributes:
        key: the key of the call.
        chosen: the fastest candidate.
        microseconds: its median time.
        measured: each measured candidate with its median time and number of runs, fastest first.
        left_out: each candidate that failed to compile or gave a different result, with the reason.
        saved: the table to which the result was written, or None.
    """

    key: str
    chosen: Candidate
    microseconds: float
    measured: tuple[tuple[Candidate, float, int], ...]
    left_out: tuple[tuple[Candidate, str], ...]
    saved: Path | None = None

    def __str__(self) -> str:
        lines = [f"tuned for {self.key}: {shown(self.chosen)}, {self.microseconds:.2f} us"]
        lines += [f"  {us:10.2f} us  {runs:4} runs  {shown(c)}" for c, us, runs in self.measured]
        lines += [f"  left out: {shown(c)}: {why}" for c, why in self.left_out]
        lines += [f"  saved in {self.saved}"] if self.saved is not None else []
        return "\n".join(lines)


def shown(candidate: Candidate) -> str:
    """Return a candidate as the keyword arguments of a call."""
    return ", ".join([f"{n}={v!r}" for n, v in candidate.items()]) or "no parameters"


Told = Callable[[str, int, int], None]


class TuneOptions(NamedTuple):
    """The settings of tuning; see :func:`autotune`.

    Attributes:
        saved: read and write the table of tuned constants.
        compared: compare the results of candidates.
        on_cpu: also measure calls on the interpreter, by host time.
        warmup: calls of each candidate before the measurement.
    """

    key: Sequence[str] | None
    prune: Callable[[list[Candidate], dict[str, object]], Sequence[Candidate]] | None
    reference: Callable[..., object] | None
    rounds: int
    share: int
    budget: float | None
    saved: bool = True
    compared: bool = True
    on_cpu: bool = False
    warmup: int = 0


class Autotuned:
    """A host function whose constants are chosen by measurement. It is called like the function, without the constants.

    :func:`autotune` creates it.  ``function`` is the host function.
    """

    def __init__(self, function: JitFunction, candidates: Sequence[Candidate], how: TuneOptions):
        self.function = function
        self.candidates = list(candidates)
        self._signature = inspect.signature(function)
        self._how = how
        self._known: dict[tuple[tuple[str, ...], str], Candidate] = {}
        functools.update_wrapper(self, function, updated=())  # type: ignore[arg-type]
        self._name = f"{function.function.__module__}.{function.function.__qualname__}"

    def __repr__(self) -> str:
        return f"<@cute.autotune {self.function!r}, {len(self.candidates)} candidates>"

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call the function with the fastest constants. The first call of a key on a GPU measures them.

        In a trace, where shapes may be unknown, the first candidate is used.  Use ``chosen`` outside the trace for
        others.
        """
        if active() is not None:
            named, _ = self._named(args, kwargs)
            return self.function(*args, **kwargs, **{n: v for n, v in self.candidates[0].items() if n not in named})
        return self.function(*args, **kwargs, **self._find(args, kwargs, measure=True))

    def best(self, *args: object, **kwargs: object) -> Candidate:
        """Return the constants for a call without measuring: a previous result, an entry of the table, or the first
        candidate.
        """
        return self._find(args, kwargs, measure=False)

    def chosen(self, *args: object, **kwargs: object) -> Callable[..., Any]:
        """Return the function with the constants for a call bound, for similar calls without a lookup."""
        return functools.partial(self.function, **self.best(*args, **kwargs))

    def table(self, gpu: str | None = None) -> dict[str, object]:
        """Return the function's entries in the table of a GPU (by default the current one), by key."""
        return dict(read_table(gpu or _gpu_name()).get(self._name, {}))

    def compile(self, *args: object, **kwargs: object) -> list[tuple[Candidate, str]]:
        """Compile all candidates for these arguments in parallel. Return those that fail, with the reason.

        If ``CUTE_CACHE_DIR`` is copied to a machine with a GPU, tuning there needs no compiler.
        """
        named, _ = self._named(args, kwargs)
        with _progress(None) as say:
            return self._compiled(self._open(named), args, kwargs, None, say)[1]

    def tune(
        self, *args: object, measure: Measure[Callable[[], object]] | None = None, save: bool = True,
        told: Told | None = None, **kwargs: object,
    ) -> Tuned:  # fmt: skip
        """Measure the candidates on these arguments, and use the fastest for similar calls.

        Candidates are traced in this process and compiled in others.  Each runs once, and its results are compared with
        those of ``reference`` or of the first candidate.  The correct ones then run in alternation with a cold L2
        cache, and those that are significantly slower are dropped.  The arrays keep their original contents.

        Args:
            measure: times calls; by default with GPU events.
            save: write the result to the user's table for this GPU.
            told: progress callback, called with the step, the amount done and the total.

        Raises TuneError if no candidate is left, or the arrays are not in GPU memory.
        """
        named, options = self._named(args, kwargs)
        views = _views(named)
        if measure is None and (_on_cpu(options) or any(v.device < 0 for v in views)):
            raise TuneError(f"{self._name}: the arrays must be in GPU memory for a measurement; or pass measure=")
        until = None if self._how.budget is None else time.monotonic() + self._how.budget
        with _progress(told) as say, _Kept(named) as kept:
            ready, left_out = self._compiled(self._open(named), args, kwargs, until, say)
            runs, wrong = self._right(ready, args, kwargs, kept)
            left_out += wrong
            if not runs:
                why = "; ".join([f"{shown(c)}: {w}" for c, w in left_out])
                raise TuneError(f"{self._name}: no candidate is left: {why}")
            clock: AbstractContextManager[Measure[Callable[[], object]]]
            if measure is None:
                clock = GpuClock(max([0, *[v.device for v in views]]), stream_of(options.get("stream"), tuple(views)))
            else:
                clock = nullcontext(measure)
            say("measured", 0, self._how.rounds)
            with clock as timer:
                times = contest(
                    {i: run for i, (_, run) in enumerate(runs)}, timer, rounds=self._how.rounds, share=self._how.share,
                    until=until, told=lambda done, of: say("measured", done, of),
                )  # fmt: skip
        medians = {i: statistics.median(t) for i, t in times.items()}
        most = max(len(t) for t in times.values())
        first = min([i for i, t in times.items() if len(t) == most], key=medians.__getitem__)
        chosen, key = runs[first][0], self._text(named)
        self._known[(tuple(chosen), key)] = chosen
        path = None
        if save and measure is None and self._how.saved:
            path = save_entry(_gpu_name(), self._name, key, chosen, medians[first])
        order = sorted(medians, key=medians.__getitem__)
        measured = tuple([(runs[i][0], medians[i], len(times[i])) for i in order])
        return Tuned(key, chosen, medians[first], measured, tuple(left_out), path)

    def _named(
        self, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[dict[str, object], dict[str, object]]:
        """Return the arguments by name, and the options of the call."""
        own = {n: v for n, v in kwargs.items() if n in self._signature.parameters}
        named = self._signature.bind_partial(*args, **own).arguments
        return dict(named), {n: v for n, v in kwargs.items() if n not in own}

    def _open(self, named: Mapping[str, object]) -> list[Candidate]:
        """Return the candidates without duplicates and without the constants that the call itself gives."""
        whole: list[Candidate] = []
        for candidate in self.candidates:
            filled = {n: named.get(n, v) for n, v in candidate.items()}
            if filled not in whole:
                whole.append(filled)
        if self._how.prune is not None:
            whole = list(self._how.prune(whole, dict(named)))
            if not whole:
                raise TuneError(f"{self._name}: prune removed all candidates for {self._text(named)}")
        return [{n: v for n, v in c.items() if n not in named} for c in whole]

    def _text(self, named: Mapping[str, object]) -> str:
        """Return the key of a call."""
        keys = self._how.key
        names = keys if keys is not None else [n for n in named if n not in self.candidates[0]]
        return " ".join([f"{n}={_described(named.get(n))}" for n in names]) or "any"

    def _find(self, args: tuple[object, ...], kwargs: dict[str, object], *, measure: bool) -> Candidate:
        named, options = self._named(args, kwargs)
        left = tuple([n for n in self.candidates[0] if n not in named])
        key = self._text(named)
        found = self._known.get((left, key))
        if found is not None or not left:
            return found or {}
        candidates = self._open(named)
        cpu = _on_cpu(options)
        if self._how.saved and not cpu and _has_gpu():
            entries = read_table(_gpu_name()).get(self._name, {})
            kept = find_entry(entries, key, candidates)
            if kept is not None:
                self._known[(left, key)] = kept
                return kept
        if not measure or len(candidates) == 1 or not flag("CUTE_AUTOTUNE", True):
            return candidates[0]
        if self._how.on_cpu and cpu:
            with without_checks():
                return self.tune(*args, measure=HostClock(), **kwargs).chosen
        if cpu or any(v.device < 0 for v in _views(named)):
            return candidates[0]
        return self.tune(*args, **kwargs).chosen

    def _compiled(
        self, candidates: Sequence[Candidate], args: tuple[object, ...], kwargs: dict[str, object], until: float | None,
        say: Told,
    ) -> tuple[list[Candidate], list[tuple[Candidate, str]]]:  # fmt: skip
        """Compile candidates in parallel. Return those that are ready, and the reasons why others are not."""
        own = {n: v for n, v in kwargs.items() if n in self._signature.parameters or n == "device"}
        coming = [(c, compile_async(self.function, *args, **own, **c)) for c in candidates]
        say("compiled", 0, len(coming))
        ready: list[Candidate] = []
        left_out: list[tuple[Candidate, str]] = []
        for number, (candidate, making) in enumerate(coming, 1):
            try:
                making.result(None if until is None or not ready else max(0.0, until - time.monotonic()))
                ready.append(candidate)
            except TimeoutError:
                making.cancel()
                left_out.append((candidate, "no time"))
            except Exception as e:
                left_out.append((candidate, str(e).splitlines()[0] if str(e) else type(e).__name__))
            say("compiled", number, len(coming))
        return ready, left_out

    def _right(
        self, candidates: Sequence[Candidate], args: tuple[object, ...], kwargs: dict[str, object], kept: _Kept
    ) -> tuple[list[tuple[Candidate, Callable[[], object]]], list[tuple[Candidate, str]]]:
        """Run each candidate once. Return calls of those with correct results, and the reasons why others fail."""
        runs: list[tuple[Candidate, Callable[[], object]]] = []
        wrong: list[tuple[Candidate, str]] = []
        wanted: dict[str, object] | None = None
        if self._how.reference is not None:
            self._how.reference(*args, **{n: v for n, v in kwargs.items() if n in self._signature.parameters})
            wanted = kept.now()
            kept.restore()
        for candidate in candidates:
            run = functools.partial(self.function, *args, **kwargs, **candidate)
            try:
                run()
                for _ in range(self._how.warmup):
                    run()
            except Exception as e:
                wrong.append((candidate, str(e).splitlines()[0] if str(e) else type(e).__name__))
                kept.restore()
                continue
            if self._how.compared:
                wanted = kept.now() if wanted is None else wanted
                other = [n for n, x in kept.arrays.items() if differs(x, wanted[n])]
                kept.restore()
                if other:
                    wrong.append((candidate, f"different result in {', '.join(other)}"))
                    continue
            runs.append((candidate, run))
        return runs, wrong


class _Kept:
    """The arrays of a call by name, and their original contents. The context manager restores them."""

    def __init__(self, named: Mapping[str, object]):
        self.arrays: dict[str, Any] = {}
        for name, value in named.items():
            array = getattr(value, "array", value)
            if hasattr(array, "clone") or (hasattr(array, "copy") and hasattr(array, "dtype")):
                self.arrays[name] = array
        self._before = self.now()

    def now(self) -> dict[str, Any]:
        """Return copies of the arrays."""
        return {n: x.clone() if hasattr(x, "clone") else x.copy() for n, x in self.arrays.items()}

    def restore(self) -> None:
        """Restore the original contents of the arrays."""
        for name, array in self.arrays.items():
            if hasattr(array, "copy_"):
                array.copy_(self._before[name])
            elif getattr(getattr(array, "flags", None), "writeable", True):
                array[...] = self._before[name]

    def __enter__(self) -> _Kept:
        return self

    def __exit__(self, *_: object) -> None:
        self.restore()


def _views(named: Mapping[str, object]) -> list[ArrayView]:
    """Return the arrays among the arguments."""
    found: list[ArrayView] = []
    for value in named.values():
        if isinstance(value, int | float | str | tuple | list | type) or value is None:
            continue
        try:
            found.append(view_of(getattr(value, "array", value)))
        except (NotAnArray, TypeError):
            continue
    return found


def _described(value: object) -> str:
    """Return an argument's part of the key: for an array, its element type and shape."""
    found = _views({"": value})
    if not found:
        return repr(value).replace(" ", "")
    return f"{found[0].dtype}[{'x'.join(map(str, found[0].shape))}]"


def _on_cpu(options: Mapping[str, object]) -> bool:
    return (options.get("device") or default_device()) == "cpu"


def _has_gpu() -> bool:
    from cute_dialect.runtime.driver import NoGpuError, driver  # late: start-up

    try:
        driver()
    except NoGpuError:
        return False
    return True


def _gpu_name() -> str:
    from cute_dialect.runtime.driver import driver  # late: start-up

    return driver().name(0)


@contextmanager
def _progress(told: Told | None) -> Generator[Told]:
    """Yield the progress callback: ``told``, or a progress bar (:mod:`cute_dialect.runtime.progress`)."""
    if told is not None:
        yield told
        return
    from cute_dialect.runtime.progress import Task  # late: start-up

    units = {"compiled": ("tuning: compiling", "candidates"), "measured": ("tuning: measuring", "rounds")}
    with ExitStack() as stack:
        tasks: dict[str, Task] = {}

        def say(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = stack.enter_context(Task(units[what][0], of, units[what][1]))
            tasks[what].update(done)

        yield say


def autotune(
    space: Mapping[str, Sequence[object]] | None = None, *, configs: Sequence[Candidate] | None = None,
    key: Sequence[str] | None = None,
    prune: Callable[[list[Candidate], dict[str, object]], Sequence[Candidate]] | None = None,
    reference: Callable[..., object] | None = None, rounds: int = 10, share: int = 10, budget: float | None = 60.0,
) -> Callable[[JitFunction], Autotuned]:  # fmt: skip
    """Decorate a function under ``@cute.jit`` so that its constants are chosen by measurement.

    The first candidate is used where nothing is measured: on the interpreter, in traces, and with ``CUTE_AUTOTUNE=0``.

    Args:
        space: the values of each parameter; all their combinations are candidates.
        configs: the candidates, instead of ``space``.
        key: the parameters whose values (for arrays: element type and shape) require a new choice; by default all.
        prune: a function of the candidates and of the arguments by name, which returns the candidates to measure.
        reference: a function of the arguments that writes the correct results; by default the first candidate.
        rounds: maximum number of rounds.
        share: number of runs of each candidate per round.
        budget: time in seconds after which no further step is started; None for no limit.

    Raises TuneError if a candidate names an unknown parameter.
    """
    if (space is None) == (configs is None):
        raise TuneError("autotune: pass either space= or configs=")
    if space is not None:
        candidates: list[Candidate] = [dict(zip(space, values)) for values in itertools.product(*space.values())]
    else:
        candidates = [dict(c) for c in configs or ()]
    how = TuneOptions(key, prune, reference, rounds, share, budget)
    return lambda function: make(function, candidates, how)


def make(function: object, candidates: Sequence[Candidate], how: TuneOptions) -> Autotuned:
    """Return an autotuned function, for the decorators.  Raises TuneError."""
    if not isinstance(function, JitFunction):
        raise TuneError(
            f"autotune: must decorate a function under @cute.jit, got {function!r}; place it above @cute.jit"
        )
    if not candidates or not candidates[0]:
        raise TuneError("autotune: there are no candidates")
    if any(set(c) != set(candidates[0]) for c in candidates):
        raise TuneError("autotune: all configs must have the same parameters")
    names = inspect.signature(function).parameters
    for name in (*candidates[0], *(how.key or ())):
        if name not in names:
            raise TuneError(f"autotune: the function has no parameter '{name}'; parameters: {', '.join(names)}")
    return Autotuned(function, candidates, how)
