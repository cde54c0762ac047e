"""Kernels that a call of ``mm`` or ``bmm`` selects with ``kernel=`` or ``split_k=``."""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.kernels.common.elements import BITS, factors, sums_of
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.keywords import no_such_kernel
from cute_dialect.op.select.candidates import menu, suiting, suits
from cute_dialect.op.select.configurations import KernelRequest, wanted
from cute_dialect.op.select.cost_model import costs_of, ranked
from cute_dialect.op.select.descriptions import TileDescription
from cute_dialect.op.select.kernel_choice import Choice, Problem

__all__ = ["ANY", "KernelOverride", "kernel_for"]


class KernelOverride(NamedTuple):
    """The kernel or the number of split-K slices that a call selects."""

    kernel: object = None  # a name, a Choice or a TileDescription
    split_k: int | None = None


ANY = KernelOverride()
"""No selection: the cost model chooses the kernel."""


def kernel_for(problem: Problem, wanted: KernelOverride, gpu: str = "", sms: int = 132) -> Choice:
    """Return the kernel that a call selects.  Raises UnsupportedError if it cannot compute the problem.

    >>> p = Problem(4096, 4096, 4096)
    >>> kernel_for(p, KernelOverride("f16-f16-kk-128x192-c2d")).config.tile
    (128, 192, 64)
    >>> kernel_for(Problem(640, 256, 16384), KernelOverride(split_k=4)).parts
    4
    """
    if wanted.kernel is not None and wanted.split_k is not None:
        raise UnsupportedError("kernel and split_k are both given; pass one of them")
    if wanted.split_k is not None:
        return _with_parts(problem, wanted.split_k, gpu, sms)
    kernel = wanted.kernel
    if isinstance(kernel, str):
        kernel = _named(problem, kernel, sms)
    elif isinstance(kernel, TileDescription):
        kernel = _described(problem, kernel)
    if not isinstance(kernel, Choice):
        raise UnsupportedError(f"kernel is {kernel!r}; pass a Choice, a kernel name or a TileDescription")
    c = kernel.config
    have = (c.element, c.output, *kernel.majors, c.batch)
    asked = (problem.element, problem.output, problem.major_a, problem.major_b, problem.matrices > 1)
    if have != asked:
        raise UnsupportedError(
            f"kernel {kernel.name} is for {_told(*have)}, but the problem is {_told(*asked)}; omit kernel"
        )
    sums = "columns" if c.scaled_columns else "block" if c.scaled else "two" if c.promote else c.accumulator
    if sums != problem.sums and (sums, problem.sums) != ("two", ""):  # two-level accumulation is at least as accurate
        raise UnsupportedError(
            f"kernel {kernel.name} has another accumulator than the {problem.sums or 'f32'} of this call; omit kernel"
        )
    if not suits(kernel, problem):
        raise UnsupportedError(
            f"kernel {kernel.name} does not support {problem.m}x{problem.n}x{problem.k}: its split-K blocks would not "
            "all run at once, K has too few steps, or there are too many rows; omit kernel"
        )
    return kernel


def _told(element: str, output: str, major_a: str, major_b: str, batch: bool) -> str:
    return f"{'batches' if batch else 'matrices'} of {element} to {output}, majors {major_a} and {major_b}"


def _with_parts(problem: Problem, parts: object, gpu: str, sms: int) -> Choice:
    """Return the fastest kernel with this number of split-K slices, or with the largest possible one below it."""
    if isinstance(parts, bool) or not isinstance(parts, int):
        raise UnsupportedError(f"split_k is {parts!r}; pass an integer")
    if parts < 1:
        raise UnsupportedError(f"split_k is {parts}; pass 1 or more")
    found = [c for _, c in ranked(problem, costs_of(gpu, sms))]
    there = sorted({_parts(c) for c in found})
    most = max(n for n in there if n <= parts)
    return next(c for c in found if _parts(c) == most)


def _parts(choice: Choice) -> int:
    return choice.skinny.parts if choice.skinny is not None else choice.parts


def _named(problem: Problem, name: str, sms: int) -> Choice:
    """Return the candidate kernel with a name."""
    found = menu(problem, sms)
    names: dict[str, Choice] = {}
    for index in suiting(found, problem).nonzero()[0].tolist():
        choice = found.choice(index)
        if choice.name == name:
            return choice
        names[choice.name] = choice
    raise no_such_kernel(name, names, problem.key)


def _described(problem: Problem, tile: TileDescription) -> Choice:
    """Return the kernel of a tile description."""
    a, b = factors(problem.element)
    sums = problem.sums or sums_of(problem.element)
    layouts = ("row" if problem.major_a == "k" else "column", "row" if problem.major_b == "n" else "column")
    found = wanted(tile, KernelRequest(a, b, sums, problem.output, *layouts, "row", problem.matrices > 1))
    if not isinstance(found, Choice):
        raise UnsupportedError(f"kernel {tile.name} does not use wgmma for {BITS[a]}-bit elements; pass another tile")
    return found
