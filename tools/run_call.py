"""The kernel call of ``cute-run``, from the command line and the compiled module."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.runtime.launch import CompiledModule, Kernel
    from cute_dialect.runtime.launch_plan import Plan
    from cute_dialect.tools.run_inputs import Argument


SANITIZERS = ("race", "oob", "uninit", "sync", "strict")
"""Sanitizers of the interpreter."""


class RunError(Exception):
    """A user error of ``cute-run``."""


class RunRequest(NamedTuple):
    """The launch configuration, checks and reports requested on the command line."""

    grid: tuple[int, ...] | None
    block: tuple[int, ...] | None
    smem: int | None
    sanitizers: Sequence[str] | None
    expressions: Sequence[str]
    reports: Sequence[str]
    prime: int | None = None  # of a run over a field; None selects it from the arrays


class Call(NamedTuple):
    """A kernel with validated arguments and its launches.  ``seconds`` is the time of the validation."""

    kernel: Kernel
    arguments: Sequence[Argument]
    outs: Mapping[str, str]
    plans: Sequence[Plan]
    seconds: float


def read_request(options: argparse.Namespace) -> RunRequest:
    """Parse and validate the options that do not depend on the module.

    Raises:
        RunError: an option is invalid.
    """
    if options.chip is not None and not re.fullmatch(r"sm_\d+[af]?", options.chip):
        raise RunError(f"--chip: expected sm_<number>, e.g. sm_90a, got {options.chip!r}")
    shape = _triple(options.grid, "--grid"), _triple(options.block, "--block"), options.smem
    reports = [n for text in options.report for n in text.split(",") if n]
    if options.timeline is not None:
        from cute_dialect.viz.drawing import file_format  # late: start-up

        file_format(options.timeline, without=".tex")
        if "timeline" not in reports:
            reports.append("timeline")
    sanitizers, expressions = _split_checks(options.check)
    for expression in expressions:
        _read(expression)
    return RunRequest(*shape, sanitizers, expressions, reports, _read_field(options, expressions))


def make_call(module: CompiledModule, request: RunRequest, options: argparse.Namespace) -> Call:
    """Resolve the kernel, its arguments and its launches.

    Raises:
        RunError: the command line does not fit the module.
        LaunchError: the arguments do not fit the kernel.
    """
    from cute_dialect.tools.run_inputs import Tensor  # late: start-up

    began = time.perf_counter()
    kernel = module.kernel(options.kernel or only_kernel(module))
    arguments = _arguments(kernel, options)
    tensors = [a.name for a in arguments if isinstance(a, Tensor)]
    for expression in request.expressions:
        _read(expression, kernel.target.names, tensors)
    outs = _outs(options.out, kernel.target.names, tensors)
    plans = kernel.plans(*values_of(arguments), grid=request.grid, block=request.block, smem=request.smem)
    return Call(kernel, arguments, outs, plans, time.perf_counter() - began)


def _read_field(options: argparse.Namespace, expressions: Sequence[str]) -> int | None:
    """Return the prime of ``--field``, None for ``auto`` or without the option."""
    if options.field is None:
        return None
    if not expressions:
        raise RunError("--field: needs an expression to check, for example --check='c == a @ b.T'")
    for option in ("blocks", "report", "out", "repeat", "timeline"):
        if getattr(options, option):
            raise RunError(f"--field: cannot be combined with --{option}, because a run over a field has no floats")
    if options.field == "auto":
        return None
    if not re.fullmatch(r"\d{1,10}", options.field):
        raise RunError(f"--field: expected 'auto' or a prime like 65521, got {options.field!r}")
    return int(options.field)


def _read(expression: str, names: Sequence[str] | None = None, tensors: Sequence[str] = ()) -> None:
    """Parse a check expression.

    Raises:
        RunError: the expression is invalid.
    """
    from cute_dialect.tools.check_expressions import CheckError, read_expression  # late: start-up
    from cute_dialect.tools.run_inputs import letters  # late: start-up

    try:
        read_expression(expression, names, tensors, letters(names) if names is not None else ())
    except CheckError as e:
        raise RunError(f"--check: {e}") from e


def values_of(arguments: Sequence[Argument]) -> list[object]:
    """Return the argument values of the kernel call."""
    from cute_dialect.tools.run_inputs import Tensor  # late: start-up

    return [a.array if isinstance(a, Tensor) else a for a in arguments]


def only_kernel(module: CompiledModule) -> str:
    """Return the name of the only kernel, or of the only host function.

    Raises:
        RunError: there are several, or none.
    """
    hosts = [h["name"] for h in module.manifest["hosts"]]
    names = module.names
    if len(names) == 1:
        return names[0]
    if len(hosts) == 1:
        return hosts[0]
    raise RunError(f"choose a kernel with --kernel=NAME (available: {', '.join([*names, *hosts]) or 'none'})")


def _arguments(kernel: Kernel, options: argparse.Namespace) -> list[Argument]:
    from cute_dialect.tools.run_inputs import SpecError, make_arguments  # late: start-up

    try:
        return make_arguments(kernel.params, kernel.target.names, options.inputs, options.seed)
    except SpecError as e:
        raise RunError(str(e)) from e


def _triple(text: str | None, option: str) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(v) for v in text.replace("x", ",").split(","))
    except ValueError as e:
        raise RunError(f"{option}: expected up to three numbers like 8,1,1, got {text!r}") from e


def _outs(given: Sequence[str], names: Sequence[str], tensors: Sequence[str]) -> dict[str, str]:
    from cute_dialect.tools.run_inputs import letters  # late: start-up

    out: dict[str, str] = {}
    known = letters(names)
    for text in given:
        name, equals, path = text.partition("=")
        name = names[known[name]] if name in known else name
        if name in out and path != out[name]:
            raise RunError(f"--out: {name} is given twice: {out[name]!r} and {path!r}")
        if not equals or not path or name not in tensors:
            raise RunError(
                f"--out: expected NAME=FILE.npy with NAME one of {', '.join(tensors) or 'none'}, got {text!r}"
            )
        out[name] = path
    return out


def _split_checks(texts: Sequence[str]) -> tuple[list[str] | None, list[str]]:
    """Split the values of ``--check`` into sanitizers and expressions."""
    names: list[str] = []
    expressions: list[str] = []
    for text in texts:
        parts = [p.strip() for p in text.split(",")]
        if text in ("all", "auto", "none"):
            names.append(text)
        elif all(p in SANITIZERS for p in parts):
            names += parts
        elif any(p in SANITIZERS for p in parts) and all(p.isidentifier() for p in parts):
            wrong = next(p for p in parts if p not in SANITIZERS)
            raise RunError(f"--check: unknown sanitizer {wrong!r}; expected {', '.join(SANITIZERS)}")
        else:
            expressions.append(text)
    return names or None, expressions
