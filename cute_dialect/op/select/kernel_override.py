"""Kernels that a call of ``mm`` or ``bmm`` asks for itself: ``kernel=``, ``split_k=``."""

from __future__ import annotations

import difflib
from typing import NamedTuple

from cute_dialect.kernels.gemm.elements import BITS, factors, sums_of
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.plans.describe import TileDescription
from cute_dialect.op.select.candidates import menu, suiting, suits
from cute_dialect.op.select.cost_model import costs_of, ranked
from cute_dialect.op.select.kernel_choice import Choice, Problem

__all__ = ["ANY", "Wanted", "kernel_for"]


class Wanted(NamedTuple):
    """What a call asks for: a kernel (its name, :class:`Choice` or :class:`TileDescription`), or so many blocks that
    share K.
    """

    kernel: object = None
    split_k: int | None = None


ANY = Wanted()
"""Nothing: the kernel is chosen."""


def kernel_for(problem: Problem, wanted: Wanted, gpu: str = "", sms: int = 132) -> Choice:
    """Return the kernel that a call wants, where it can compute the problem.  Raises UnsupportedError.

    >>> p = Problem(4096, 4096, 4096)
    >>> kernel_for(p, Wanted("f16-f16-kk-128x192-c2d")).config.tile
    (128, 192, 64)
    >>> kernel_for(Problem(640, 256, 16384), Wanted(split_k=4)).parts
    4
    """
    if wanted.kernel is not None and wanted.split_k is not None:
        raise UnsupportedError("expected kernel or split_k, got both")
    if wanted.split_k is not None:
        return _with_parts(problem, wanted.split_k, gpu, sms)
    kernel = wanted.kernel
    if isinstance(kernel, str):
        kernel = _named(problem, kernel, sms)
    elif isinstance(kernel, TileDescription):
        kernel = _described(problem, kernel)
    if not isinstance(kernel, Choice):
        raise UnsupportedError(f"kernel: expected a Choice, its name or a TileDescription, got {kernel!r}")
    c = kernel.config
    have = (c.element, c.output, *kernel.majors, c.batch)
    asked = (problem.element, problem.output, problem.major_a, problem.major_b, problem.matrices > 1)
    if have != asked:
        raise UnsupportedError(f"kernel: expected one for {_told(*asked)}, got {kernel.name} for {_told(*have)}")
    sums = "columns" if c.scaled_columns else "block" if c.scaled else "two" if c.promote else c.accumulator
    if sums != problem.sums and (sums, problem.sums) != ("two", ""):  # two levels are as good as one
        raise UnsupportedError(f"kernel: expected sums in {problem.sums or 'f32'}, got those of {kernel.name}")
    if not suits(kernel, problem):
        raise UnsupportedError(
            f"kernel: {kernel.name} cannot compute {problem.m}x{problem.n}x{problem.k}: its blocks that share K would "
            "not all run at once, or K has too few steps, or there are too many rows"
        )
    return kernel


def _told(element: str, output: str, major_a: str, major_b: str, batch: bool) -> str:
    return f"{'batches' if batch else 'matrices'} of {element} to {output}, majors {major_a} and {major_b}"


def _with_parts(problem: Problem, parts: object, gpu: str, sms: int) -> Choice:
    """Return the fastest kernel whose blocks share K by so many, or by as many as there can be."""
    if isinstance(parts, bool) or not isinstance(parts, int):
        raise UnsupportedError(f"split_k: expected a number of parts, got {parts!r}")
    if parts < 1:
        raise UnsupportedError(f"split_k: expected at least 1 part, got {parts}")
    found = [c for _, c in ranked(problem, costs_of(gpu, sms))]
    there = sorted({_parts(c) for c in found})
    most = max(n for n in there if n <= parts)
    return next(c for c in found if _parts(c) == most)


def _parts(choice: Choice) -> int:
    return choice.skinny.parts if choice.skinny is not None else choice.parts


def _named(problem: Problem, name: str, sms: int) -> Choice:
    """Return the kernel of the menu with a name."""
    found = menu(problem, sms)
    names: dict[str, Choice] = {}
    for index in suiting(found, problem).nonzero()[0].tolist():
        choice = found.choice(index)
        if choice.name == name:
            return choice
        names[choice.name] = choice
    near = difflib.get_close_matches(name, names, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise UnsupportedError(f'kernel: expected a kernel of the menu for {problem.key}, got "{name}"{hint}')


def _described(problem: Problem, tile: TileDescription) -> Choice:
    """Return the kernel of a description."""
    from cute_dialect.op.plans.configure import Asked, wanted

    a, b = factors(problem.element)
    sums = problem.sums or sums_of(problem.element)
    layouts = ("row" if problem.major_a == "k" else "column", "row" if problem.major_b == "n" else "column")
    found = wanted(tile, Asked(a, b, sums, problem.output, *layouts, "row", problem.matrices > 1))
    if not isinstance(found, Choice):
        raise UnsupportedError(f"kernel: expected a tile of wgmma for {BITS[a]}-bit elements, got {tile.name}")
    return found
