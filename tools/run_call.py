"""The call that ``cute-run`` makes, from the command line and the compiled module: a kernel with arguments that fit."""

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

__all__ = ["Call", "RunError", "Wanted", "make_call", "only_kernel", "read_wanted", "values_of"]


SANITIZERS = ("race", "oob", "uninit", "sync")
"""The faults that the interpreter can look for."""


class RunError(Exception):
    """A mistake of a user of ``cute-run``, as one message."""


class Wanted(NamedTuple):
    """The launch that the command line asks for: its form, and what is to be told of it."""

    grid: tuple[int, ...] | None
    block: tuple[int, ...] | None
    smem: int | None
    sanitizers: Sequence[str] | None
    expressions: Sequence[str]
    reports: Sequence[str]


class Call(NamedTuple):
    """A kernel with its arguments, found to fit, and what is launched.  ``seconds``: how long that took."""

    kernel: Kernel
    arguments: Sequence[Argument]
    outs: Mapping[str, str]
    plans: Sequence[Plan]
    seconds: float


def read_wanted(options: argparse.Namespace) -> Wanted:
    """Read what can be read without the module.  Raises :class:`RunError`."""
    if options.chip is not None and not re.fullmatch(r"sm_\d+[af]?", options.chip):
        raise RunError(f"--chip expected sm_<number>, e.g. sm_90a, got {options.chip!r}")
    shape = _triple(options.grid, "--grid"), _triple(options.block, "--block"), options.smem
    reports = [n for text in options.report for n in text.split(",") if n]
    if options.timeline is not None:
        from cute_dialect.viz.drawing import file_format

        file_format(options.timeline, without=".tex")
        if "timeline" not in reports:
            reports.append("timeline")
    sanitizers, expressions = _split_checks(options.check)
    for expression in expressions:
        _read(expression)
    return Wanted(*shape, sanitizers, expressions, reports)


def make_call(module: CompiledModule, wanted: Wanted, options: argparse.Namespace) -> Call:
    """Find what is to be called with what.  Raises :class:`RunError` and what the launcher raises."""
    from cute_dialect.tools.run_inputs import Tensor

    began = time.perf_counter()
    kernel = module.kernel(options.kernel or only_kernel(module))
    arguments = _arguments(kernel, options)
    tensors = [a.name for a in arguments if isinstance(a, Tensor)]
    for expression in wanted.expressions:
        _read(expression, kernel.target.names, tensors)
    outs = _outs(options.out, kernel.target.names, tensors)
    plans = kernel.plans(*values_of(arguments), grid=wanted.grid, block=wanted.block, smem=wanted.smem)
    return Call(kernel, arguments, outs, plans, time.perf_counter() - began)


def _read(expression: str, names: Sequence[str] | None = None, tensors: Sequence[str] = ()) -> None:
    """Raise :class:`RunError` for a check that cannot be read."""
    from cute_dialect.tools.run_expression import CheckError, read_expression
    from cute_dialect.tools.run_inputs import letters

    try:
        read_expression(expression, names, tensors, letters(names) if names is not None else ())
    except CheckError as e:
        raise RunError(f"--check: {e}") from e


def values_of(arguments: Sequence[Argument]) -> list[object]:
    """Return what a kernel is called with."""
    from cute_dialect.tools.run_inputs import Tensor

    return [a.array if isinstance(a, Tensor) else a for a in arguments]


def only_kernel(module: CompiledModule) -> str:
    """Return the one kernel, or the one host function, of a module.  Raises :class:`RunError` where there are more."""
    hosts = [h["name"] for h in module.manifest["hosts"]]
    names = module.names
    if len(names) == 1:
        return names[0]
    if len(hosts) == 1:
        return hosts[0]
    raise RunError(f"say which kernel with --kernel (there are: {', '.join([*names, *hosts]) or 'none'})")


def _arguments(kernel: Kernel, options: argparse.Namespace) -> list[Argument]:
    from cute_dialect.tools.run_inputs import SpecError, make_arguments

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
        raise RunError(f"{option} expects up to three numbers like 8,1,1, got {text!r}") from e


def _outs(given: Sequence[str], names: Sequence[str], tensors: Sequence[str]) -> dict[str, str]:
    from cute_dialect.tools.run_inputs import letters

    out: dict[str, str] = {}
    known = letters(names)
    for text in given:
        name, equals, path = text.partition("=")
        name = names[known[name]] if name in known else name
        if name in out and path != out[name]:
            raise RunError(f"--out: {name} is given twice: {out[name]!r} and {path!r}")
        if not equals or not path or name not in tensors:
            raise RunError(f"--out expects NAME=FILE.npy with a tensor of {', '.join(tensors) or 'none'}, got {text!r}")
        out[name] = path
    return out


def _split_checks(texts: Sequence[str]) -> tuple[list[str] | None, list[str]]:
    """Separate the checks of the interpreter from the expressions."""
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
            raise RunError(f"--check: the interpreter looks for {', '.join(SANITIZERS)}, not for {wrong!r}")
        else:
            expressions.append(text)
    return names or None, expressions
