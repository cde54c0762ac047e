"""Timing, tuning and checking of kernels: ``cute.testing``.

::

    us = cute.testing.benchmark(compiled, workspace_generator=make_arguments, workspace_count=10, iterations=100)
    cute.testing.check(add, (a, b, c), {"c": a + b})        # every schedule of the interpreter, with race detection
    cute.testing.assert_equivalent(gemm, other, [(a, b, c)])        # exact equality of values over a prime field
    cute.testing.prove(gemm, (a, b, c))         # no race and no deadlock in shared memory, for all trip counts
"""

from __future__ import annotations

import inspect
import itertools
import statistics
import time
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import cute_dialect.lang as cute
from cute_dialect.errors import CuteError, UsageError
from cute_dialect.lang.calls import autotune
from cute_dialect.lang.calls.options import default_device, without_checks
from cute_dialect.lang.machine.printf import assert_ as assert_
from cute_dialect.lang.ranks import ranks as ranks
from cute_dialect.lang.values.annotations import Stream
from cute_dialect.runtime.launch import Kernel

if TYPE_CHECKING:
    from cute_dialect.interp.field import Algebra
    from cute_dialect.interp.validation.equivalence import Contents, Side, Verdict
    from cute_dialect.lang.values.signature_types import Array
    from cute_dialect.prove.proof import Proof

__all__ = [
    "CantImplementError", "JitArguments", "add_tensor_init_args", "assert_", "assert_close", "assert_equivalent",
    "autotune_jit", "benchmark", "check", "convert", "get_workspace_count", "prove", "ranks", "recheck", "tune",
    "validate_tensor_init_args",
]  # fmt: skip

_ROUNDS = 10
"""Maximum number of rounds."""
_L2_BYTES = 64 << 20
"""More than the L2 cache of any supported GPU (H100, H200: 50 MB), so that its contents are evicted."""


class CantImplementError(CuteError):
    """Raised by a program that cannot implement a configuration."""


class JitArguments:
    """The arguments of one call."""

    def __init__(self, *args: object, **kwargs: object):
        self.args = args
        self.kwargs = kwargs
        self._kept: list[object] = []

    def add_to_scope(self, references: Sequence[object]) -> None:
        """Keep objects, such as the arrays behind pointers, alive as long as the arguments."""
        self._kept += references

    def __repr__(self) -> str:
        return f"JitArguments({', '.join([*map(repr, self.args), *(f'{k}={v!r}' for k, v in self.kwargs.items())])})"


def add_tensor_init_args(parser: ArgumentParser, supports_int_dtypes: bool = True) -> None:
    """Add the options ``--init_normal``, ``--normal_mean`` and ``--normal_std`` to a program for its random inputs."""
    others = " (integers stay uniform)" if supports_int_dtypes else ""
    parser.add_argument("--init_normal", action="store_true", help=f"normally distributed inputs{others}")
    parser.add_argument("--normal_mean", type=float, default=0.0, help="mean of --init_normal")
    parser.add_argument("--normal_std", type=float, default=1.0, help="standard deviation of --init_normal")


def validate_tensor_init_args(args: Namespace, parser: ArgumentParser) -> None:
    """End the program with a usage error unless the options of :func:`add_tensor_init_args` are valid."""
    if args.normal_std <= 0:
        parser.error(f"--normal_std must be positive, got {args.normal_std}")


def get_workspace_count(one_workspace_bytes: int, warmup_iterations: int, iterations: int) -> int:
    """Return the number of argument sets a benchmark needs so that each is evicted from L2 before it is reused.

    >>> get_workspace_count(1 << 20, 2, 100), get_workspace_count(1 << 30, 2, 100), get_workspace_count(8, 0, 3)
    (65, 2, 3)
    """
    if one_workspace_bytes < 1:
        return 1
    return max(
        1, min(warmup_iterations + iterations, _L2_BYTES // one_workspace_bytes + 1 + (one_workspace_bytes > _L2_BYTES))
    )


def benchmark(
    callable: Callable[..., object],
    *,
    warmup_iterations: int = 10,
    iterations: int = 100,
    stream: Stream | int | None = None,
    kernel_arguments: JitArguments | None = None,
    workspace_generator: Callable[[], JitArguments] | None = None,
    workspace_count: int = 1,
    use_cuda_graphs: bool = False,
) -> float:
    """Return the median time of a call in microseconds, by CUDA events; on the interpreter, by host time and
    without checks.

    Args:
        callable: the function to time.
        warmup_iterations: calls before the measurement.
        iterations: measured calls.
        stream: the stream on which the calls launch.
        kernel_arguments: the arguments of every call.
        workspace_generator: creates the arguments of a call; called ``workspace_count`` times. Calls use them in turn.
        workspace_count: number of argument sets.
        use_cuda_graphs: accepted for compatibility; launches are always queued without waiting.
    """
    if iterations < 1 or warmup_iterations < 0 or workspace_count < 1:
        raise UsageError(
            "benchmark: iterations and workspace_count must be at least 1 and warmup_iterations at least 0, got "
            f"{iterations}, {workspace_count} and {warmup_iterations}"
        )
    if kernel_arguments is not None and workspace_generator is not None:
        raise UsageError("benchmark: pass either kernel_arguments or workspace_generator")
    made = [workspace_generator() for _ in range(workspace_count)] if workspace_generator is not None else []
    for arguments in made:
        if not isinstance(arguments, JitArguments):
            raise UsageError(f"benchmark: workspace_generator must return JitArguments, got {type(arguments).__name__}")
    turns = itertools.cycle(made or [kernel_arguments or JitArguments()])

    def call() -> None:
        arguments = next(turns)
        callable(*arguments.args, **arguments.kwargs)

    with without_checks():
        for _ in range(warmup_iterations):
            call()
        times = _host_times(call, iterations) if default_device() == "cpu" else _gpu_times(call, iterations, stream)
        return statistics.median(times)


def _host_times(call: Callable[[], None], iterations: int) -> Iterator[float]:
    for _ in range(iterations):
        start = time.perf_counter()
        call()
        yield 1e6 * (time.perf_counter() - start)


def _gpu_times(call: Callable[[], None], iterations: int, stream: Stream | int | None) -> Iterator[float]:
    from cute_dialect.runtime.driver import driver  # late: start-up

    gpu = driver()
    handle = int(stream.handle if isinstance(stream, Stream) else stream) if stream is not None else 0
    events = [(gpu.new_event(), gpu.new_event()) for _ in range(iterations)]
    for start, end in events:
        gpu.record(start, handle)
        call()
        gpu.record(end, handle)
    for start, end in events:
        yield gpu.elapsed(start, end)


def tune(
    func: Callable[..., Callable[[], object]], params_dict: Mapping[str, Sequence[object]],
    kernel_arguments: JitArguments | None = None, warmup_iterations: int = 10, iterations: int = 100,
    stream: Stream | int | None = None,
) -> dict[str, object]:  # fmt: skip
    """Time each combination of ``params_dict`` and return the parameters of the fastest kernel.

    ``func`` takes the arguments and the parameters, and returns a function without arguments to time.  Combinations for
    which it raises :class:`CantImplementError` are skipped; those with another error are skipped with a warning. Raises
    CantImplementError if no combination is left.
    """
    given = kernel_arguments or JitArguments()
    best: tuple[float, dict[str, object]] | None = None
    for values in itertools.product(*params_dict.values()):
        params = dict(zip(params_dict, values))
        try:
            made = func(*given.args, **given.kwargs, **params)
        except CantImplementError:
            continue
        except Exception as e:
            warnings.warn(f"tune: {params} is skipped: {type(e).__name__}: {e}", RuntimeWarning, stacklevel=2)
            continue
        if not callable(made):
            raise UsageError(f"tune: func must return a function without arguments, got {type(made).__name__}")
        us = benchmark(made, warmup_iterations=warmup_iterations, iterations=iterations, stream=stream)
        if best is None or us < best[0]:
            best = us, params
    if best is None:
        raise CantImplementError(f"tune: no combination of {dict(params_dict)} can be implemented")
    return best[1]


def autotune_jit(
    params_dict: Mapping[str, Sequence[object]], update_on_change: Sequence[str] = (), warmup_iterations: int = 10,
    iterations: int = 100,
) -> Callable[[Callable[..., object]], autotune.Autotuned]:  # fmt: skip
    """Decorate a host function so that its constants in ``params_dict`` are chosen by timing.

    This is ``cute.autotune`` with CuTe DSL's interface.  The first call times every combination with its own arguments,
    also on the interpreter.  A call with a new value of an argument named in ``update_on_change`` does so again.
    Combinations that raise :class:`CantImplementError` are skipped, results are not compared, and no table is written.

    ::

        @cute.testing.autotune_jit(params_dict={"threads": [64, 128, 256]}, update_on_change=["columns"])
        @cute.jit
        def row_sum(x: cute.Tensor, out: cute.Tensor, columns: cute.Constexpr, threads: cute.Constexpr = 128): ...
    """
    candidates = [dict(zip(params_dict, values)) for values in itertools.product(*params_dict.values())]
    share = -(-iterations // _ROUNDS)
    how = autotune.TuneOptions(
        tuple(update_on_change), None, None, -(-iterations // share), share, None, saved=False, compared=False,
        on_cpu=True, warmup=warmup_iterations,
    )  # fmt: skip

    def decorate(f: Callable[..., object]) -> autotune.Autotuned:
        return autotune.make(f, candidates, how)

    return decorate


_THREADS = 256


@cute.kernel
def _convert_kernel(src: cute.Tensor, dst: cute.Tensor) -> None:
    i = cute.arch.block_idx().x * _THREADS + cute.arch.thread_idx().x
    if i < cute.size(dst):
        dst[i] = src[i].to(dst.element_type)


@cute.jit
def convert(src: cute.Tensor, dst: cute.Tensor) -> None:
    """Copy the elements of a tensor into another of the same shape, converted to its element type.

    A host function: called with arrays it runs; called in a host function it is inlined.
    """
    if cute.is_static(src.shape) and cute.is_static(dst.shape) and src.shape != dst.shape:
        raise UsageError(f"convert: src and dst must have the same shape, got {src.shape} and {dst.shape}")
    cute.assert_(cute.equal(src.shape, dst.shape), "convert: src and dst must have the same shape")
    _convert_kernel(src, dst).launch(grid=cute.ceil_div(cute.size(dst), _THREADS), block=_THREADS)


def assert_close(actual: Array, expected: Array, rtol: float = 1e-5, atol: float = 1e-8) -> None:
    """Raise AssertionError unless two arrays agree: ``|actual - expected| <= atol + rtol * |expected|``."""
    import numpy as np

    np.testing.assert_allclose(_numbers(actual), _numbers(expected), rtol=rtol, atol=atol)


def _numbers(x: Any) -> Any:
    """Return an array (or a tensor over one) as float64, or integers unchanged."""
    import numpy as np

    x = getattr(x, "array", x)
    if hasattr(x, "detach"):
        x = x.detach().cpu()
        x = x.double() if x.is_floating_point() else x
    found = np.asarray(x)
    return found if found.dtype.kind in "iub" else found.astype(np.float64)


_SCHEDULES = ("round-robin", "random")


def check(
    f: Callable[..., object], args: Sequence[object],
    reference: Mapping[str, object] | Sequence[object] | Callable[..., object] = (), *,
    schedules: Sequence[str] = _SCHEDULES, checks: Sequence[str] | str = "all",
    rtol: float = 1e-5, atol: float = 1e-8,
) -> None:  # fmt: skip
    """Run a host function on the interpreter under each schedule with all checks, and compare its results.

    Args:
        f: the host function.
        args: its arguments. Arrays hold the results of the last run afterwards.
        reference: the expected contents of arrays, by parameter name or position (None: not compared), or a function
            that writes them into copies of the arguments.
        schedules: the schedules of the interpreter.
        checks: the checks of the interpreter.
        rtol, atol: tolerances of the comparison.

    Raises AssertionError, or an error of the interpreter.
    """
    if not callable(f):
        raise UsageError(f"check: f must be a host function, got {f!r}")
    if not isinstance(args, tuple | list):
        raise UsageError(f"check: args must be a tuple of arguments, as in check(f, (x, y), …), got {_what(args)}")
    if not isinstance(schedules, tuple | list | str):
        raise UsageError(f"check: schedules must be names of schedules, as in {_SCHEDULES}, got {schedules!r}")
    before = [_copied(a) for a in args]
    expected = _expected(reference, before, list(inspect.signature(f).parameters))
    for schedule in (schedules,) if isinstance(schedules, str) else schedules:
        for mine, first in zip(args, before):
            _restore(mine, first)
        f(*args, device="cpu", checks=checks, schedule=schedule)
        for at, want in expected.items():
            assert_close(args[at], want, rtol, atol)


def assert_equivalent(
    f: Callable[..., object], reference: Callable[..., object], problems: Sequence[Sequence[object]], *,
    field: int | str = "auto", runs: int | str = "auto", bound: float = 2.0**-40, fixed: Sequence[str] = (),
    explain: bool = True, allow_unchecked: bool = False,
) -> list[Verdict]:  # fmt: skip
    """Check on the interpreter that a host function computes the same values as a reference, exactly.

    Floats are elements of a prime field: sums and products are exact, in any order. Random elements replace the numbers
    in the arrays. If there are exponentials, quotients, maxima or roots, floats are pairs of residues that model them.

    Args:
        f: the host function, or a compiled kernel.
        reference: another one with the same parameters, or a Python function that writes results into its arguments,
            such as ``def gemm(a, b, c): c[:] = a @ b.T``. Its arrays are ``cute_dialect.interp.field.FieldArray``.
        problems: the arguments of each call, which give shapes and types. Their contents are restored.
        field: the prime, below 2^31; "auto" selects two or more that fit the narrowest float type.
        runs: random points for each problem; "auto" selects the number from ``bound``.
        bound: limit of the probability that a difference is missed.
        fixed: names of arrays whose numbers are kept.
        explain: search the term and the source line of a difference, with some 30 more runs.
        allow_unchecked: give a verdict, which names them, if comparisons had the same outcome in all runs.

    Returns the verdict of each problem.

    Raises AssertionError for a difference, and InterpError for an op without a value over a field, or if equal values
    are no verdict: a divisor is always 0, a comparison had one outcome, or there are too few runs for ``bound``.
    """
    if not callable(f) or not callable(reference):
        raise UsageError("assert_equivalent: f and reference must be functions")
    if not isinstance(problems, list | tuple) or not all(isinstance(p, list | tuple) for p in problems):
        raise UsageError(
            "assert_equivalent: problems must be a list with the arguments of each call, as in [(a, b, c)]"
        )
    if not (field == "auto" or isinstance(field, int)) or not (runs == "auto" or (isinstance(runs, int) and runs > 0)):
        raise UsageError(f'assert_equivalent: field and runs must be "auto" or positive integers, got {field}, {runs}')
    return [
        _equivalent(f, reference, problem, field, runs, bound, fixed, explain, allow_unchecked) for problem in problems
    ]


def prove(
    f: Callable[..., object],
    problem: Sequence[object],
    *,
    problems: Sequence[Sequence[object]] = (),
    seconds: float = 60,
    engine: str = "auto",
    certificate: str | PathLike[str] | None = None,
) -> list[Proof]:
    """Prove that the kernels of a host function are synchronized correctly for all trip counts of their loops.

    Args:
        f: the host function.
        problem: arguments that select the specialization.
        problems: arguments of further calls, on which a counterexample is replayed; ``problem`` comes first.
        seconds: limit of CPU time per kernel.
        engine: ``"facts"`` searches one schedule, ``"exhaustive"`` all interleavings of small kernels, and ``"auto"``
            the second if the first does not decide.
        certificate: file for the certificates, which is written if all kernels are proved, see :func:`recheck`.

    Returns a proof per kernel, which is true if the kernel is proved; its text has the reason otherwise.
    """
    from cute_dialect.prove import proof  # late: start-up
    from cute_dialect.prove.certificate import save_certificates  # late: start-up

    compiled = cute.compile(f, *problem, device="cpu")
    module = compiled.kernel(cpu=True).module

    def candidate(arguments: Sequence[object]) -> tuple[str, Callable[[str], object]]:
        shapes = ", ".join(str(tuple(x.shape)) for x in arguments if hasattr(x, "shape"))
        return shapes, lambda schedule: compiled(
            *map(_copied, arguments), device="cpu", checks=["race", "uninit"], schedule=schedule
        )

    def command(problem: str, schedule: str) -> str:
        return f'call it with device="cpu", checks=["race", "uninit"], schedule="{schedule}" and arrays of {problem}'

    proofs = [
        proof.prove(
            module.lowered(name),
            name,
            [candidate(p) for p in (problem, *problems)],
            seconds=seconds,
            engine=engine,
            certify=certificate is not None,
            command=command,
        )
        for name in module.names
    ]
    if certificate is not None and all(p.certificate for p in proofs):
        save_certificates([p.certificate for p in proofs if p.certificate], Path(certificate))
    return proofs


def recheck(f: Callable[..., object], problem: Sequence[object], certificate: str | PathLike[str]) -> list[str]:
    """Check the certificates of the kernels of a host function without a search.

    Args:
        f: the host function.
        problem: arguments that select the specialization.
        certificate: file that ``prove(..., certificate=...)`` or ``cute-prove --certificate`` has written.

    Returns one line per kernel, such as ``gemm: certificate accepted: ...``.

    Raises:
        UsageError: the file is not a certificate.
        RejectedError: a certificate is not a proof for its kernel, or a kernel has none. The text names the reason.
    """
    from cute_dialect.prove.certificate import load_certificates  # late: start-up
    from cute_dialect.prove.recheck import recheck_all  # late: start-up

    module = cute.compile(f, *problem, device="cpu").kernel(cpu=True).module
    return recheck_all({name: module.lowered(name) for name in module.names}, load_certificates(Path(certificate)))


def _equivalent(
    f: Callable[..., object], reference: Callable[..., object], problem: Sequence[object],
    field: int | str, runs: int | str, bound: float, fixed: Sequence[str], explain: bool,
    allow_unchecked: bool,
) -> Verdict:  # fmt: skip
    import numpy as np  # late: start-up

    from cute_dialect.interp.field import FieldArray, elements_of, held  # late: start-up
    from cute_dialect.interp.reports.run_report import RunReport  # late: start-up
    from cute_dialect.interp.validation.equivalence import Side, Subject, compare  # late: start-up

    names = list(f.target.names if isinstance(f, Kernel) else inspect.signature(f).parameters)
    arrays = {n: x for n, x in zip(names, problem) if isinstance(x, np.ndarray)}
    if len(names) != len(problem):
        raise UsageError(f"assert_equivalent: a problem must have the arguments {', '.join(names)}; got {len(problem)}")
    if not arrays:
        raise UsageError("assert_equivalent: a problem has no numpy array, so there are no values to compare")
    unknown = [n for n in fixed if n not in arrays]
    if unknown:
        raise UsageError(
            f"assert_equivalent: fixed names {unknown[0]!r}, which is not an array; arrays: {', '.join(arrays)}"
        )

    def run(algebra: Algebra, lines: bool) -> RunReport | None:
        found = f(*problem, device="cpu", checks=("race",) if lines else "none", field=algebra)
        return found if isinstance(found, RunReport) else None

    def sides(before: Contents, after: Contents) -> list[Side]:
        floats = {n: x for n, x in before.items() if isinstance(x, FieldArray)}
        if inspect.isfunction(reference):
            reference(*[before.get(n, x) for n, x in zip(names, problem)])
            want = {n: x.elements for n, x in floats.items()}
        else:
            algebra = next(iter(floats.values())).algebra
            mine: dict[str, Any] = {n: held(x.elements, arrays[n].dtype) for n, x in floats.items()}
            mine.update({n: x for n, x in before.items() if n not in floats})
            reference(*[mine.get(n, x) for n, x in zip(names, problem)], device="cpu", checks="none", field=algebra)
            want = {n: elements_of(mine[n]) for n in floats}
        return [Side(n, cast("FieldArray", after[n]).elements, want[n]) for n in floats]

    prime = field if isinstance(field, int) else None
    points = runs if isinstance(runs, int) else None
    verdict = compare(
        Subject(run, arrays, fixed),
        sides,
        prime=prime,
        runs=points,
        bound=bound,
        explain=explain,
        allow_unchecked=allow_unchecked,
    )
    if verdict.difference is not None:
        shapes = ", ".join(f"{n} {tuple(a.shape)}" for n, a in arrays.items())
        raise AssertionError(f"assert_equivalent: {shapes}: {verdict}")
    return verdict


def _copied(x: Any) -> Any:
    kept = getattr(x, "array", x)
    return kept.clone() if hasattr(kept, "clone") else kept.copy() if hasattr(kept, "copy") else kept


def _restore(x: Any, first: Any) -> None:
    kept = getattr(x, "array", x)
    if hasattr(kept, "copy_"):
        kept.copy_(first)
    elif hasattr(kept, "copy"):
        kept[...] = first


def _expected(reference: Any, before: list[Any], names: list[str]) -> dict[int, Any]:
    """Return the expected contents of arguments, by position.  Raises UsageError."""
    if callable(reference):
        copies = [_copied(b) for b in before]
        try:
            inspect.signature(reference).bind(*copies)
        except TypeError as e:
            raise UsageError(f"check: reference is called with copies of the {len(copies)} arguments: {e}") from None
        except ValueError:  # Builtins may have no signature.
            pass
        reference(*copies)
        return {i: c for i, c in enumerate(copies) if hasattr(c, "shape")}
    if isinstance(reference, Mapping):
        unknown = [n for n in reference if n not in names]
        if unknown:
            raise UsageError(f"check: the function has no parameter '{unknown[0]}'; parameters: {', '.join(names)}")
        found = {names.index(n): x for n, x in reference.items()}
    elif isinstance(reference, tuple | list):
        found = dict(enumerate(reference))
    else:
        raise UsageError(
            f"check: reference must be a mapping from parameter names to arrays, a tuple of arrays or a function, got "
            f"{_what(reference)}"
        )
    if max(found, default=-1) >= len(before):
        raise UsageError(f"check: got {max(found) + 1} references for {len(before)} arguments")
    found = {i: x for i, x in found.items() if x is not None}
    for i, x in found.items():
        for what, array in (("the argument", before[i]), ("the reference", x)):
            try:
                _numbers(array)
            except (TypeError, ValueError):
                raise UsageError(
                    f"check: {what} '{names[i]}' must hold numbers to be compared, got {_what(array)}"
                ) from None
    return found


def _what(x: object) -> str:
    return f"an array of shape {tuple(x.shape)}" if hasattr(x, "shape") else repr(x)  # pyright: ignore


def __dir__() -> list[str]:
    return sorted(__all__)
