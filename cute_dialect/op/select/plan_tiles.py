"""Candidate tiles of a planned GEMM, the best first, and the default choice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import overload

import numpy as np

from cute_dialect.kernels.common.elements import BITS
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.split_tf32 import padded
from cute_dialect.kernels.gemm.tcgen05_scales import FP4
from cute_dialect.op.errors import AlignmentError
from cute_dialect.op.problems.gemm import without_memory
from cute_dialect.op.problems.operands import Operands, fits_results, fits_tma
from cute_dialect.op.select.backends import SIMT, WGMMA, unmeasured
from cute_dialect.op.select.candidates import Menu, menu, suiting
from cute_dialect.op.select.configurations import KernelRequest, ampere_tiles, described, simt_tiles, tiles_of_chip
from cute_dialect.op.select.cost_model import costs_of, ranked, times
from cute_dialect.op.select.descriptions import ALONE, MathOperation, Split, TileDescription
from cute_dialect.op.select.gemm_dispatch import CACHES, choose, taking, with_epilogue
from cute_dialect.op.select.kernel_choice import Choice, Problem
from cute_dialect.op.select.sm100_model import bound_of_tile


class TileDescriptions(Sequence[TileDescription]):
    """Descriptions of all candidate kernels for a problem, the best first, created on access, then ``others``."""

    def __init__(self, found: Menu, order: Sequence[int], asked: KernelRequest, others: Sequence[TileDescription] = ()):
        self._menu, self._order, self._asked, self._others = found, order, asked, others

    def __len__(self) -> int:
        return len(self._order) + len(self._others)

    @overload
    def __getitem__(self, index: int) -> TileDescription: ...
    @overload
    def __getitem__(self, index: slice) -> TileDescriptions: ...
    def __getitem__(self, index: int | slice) -> TileDescription | TileDescriptions:
        places, count = range(len(self))[index], len(self._order)
        if isinstance(places, range):
            order, others = [self._order[i] for i in places if i < count], [i - count for i in places if i >= count]
            return TileDescriptions(self._menu, order, self._asked, [self._others[i] for i in others])
        if places >= count:
            return self._others[places - count]
        return described(self._menu.choice(int(self._order[places])), self._asked)

    def __iter__(self) -> Iterator[TileDescription]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        shown = ", ".join(td.name for td in self[:3])
        return f"<{len(self)} tile descriptions: {shown}{', …' if len(self) > 3 else ''}>"


def problem_of(asked: KernelRequest, m: int, n: int, k: int, matrices: int = 1) -> Problem:
    """Return the problem for which a kernel is chosen: the transposed one if D is column-major, that of the tf32 parts
    if f32 is split.
    """
    element, majors = asked.element, asked.majors
    k = 3 * padded(k) if asked.in_parts else k
    if asked.packed == 2:
        element, k = FP4, 2 * k
    if asked.flipped:
        element = "_".join(reversed(element.split("_"))) if asked.element_a != asked.element_b else element
        m, n = n, m
    sums = asked.sums or (asked.accumulator if asked.accumulator == "f16" else "")
    return Problem(m, n, k, element, asked.output, *majors, matrices, sums)


def _alone(choice: Choice) -> bool:
    """Return True for a kernel without split-K and stream-K."""
    return choice.skinny is None and choice.parts == 1 and not choice.config.stream_k


def tiles_of(
    asked: KernelRequest, problem: Sequence[int], *, gpu: str, sms: int, opclass: str, chip: int
) -> Sequence[TileDescription]:
    """Return the tiles with kernels for such operands, the best for a problem first.  Raises UnsupportedError."""
    if opclass == "simt":
        return simt_tiles(asked.element_a)
    by_wgmma = asked.of_parts()
    if unmeasured(chip):
        others = [] if asked.scaling else ampere_tiles(asked)  # for operands that TMA cannot read
        return [*tiles_of_chip(chip, asked), *others]
    if not (WGMMA.is_allowed(chip) and WGMMA.supports(by_wgmma)):
        return ampere_tiles(asked)
    p = problem_of(by_wgmma, *problem)
    found = menu(p, sms)
    which = np.flatnonzero(suiting(found, p))
    if asked.math == MathOperation.multiply_add_saturate:  # Partial sums would not saturate.
        which = np.array([i for i in which if _alone(found.choice(int(i)))], dtype=which.dtype)
    taken = times(found.some(which), p, costs_of(gpu, sms))
    order: list[int] = which[np.argsort(taken, kind="stable")].tolist()
    return TileDescriptions(found, order, by_wgmma, ampere_tiles(asked) if by_wgmma.in_parts else ())


def _of_parts(problem: Problem, split: Split, gpu: str, sms: int, *, array: bool) -> Choice:
    """Return the kernel with the best tile for a split of K.

    ``array`` is True for pointer arrays, whose kernels support neither split-K nor stream-K.
    """
    if split.parts == 1:
        choice = choose(problem, sms, gpu)
        if not array or _alone(choice):
            return choice
    costs = costs_of(gpu, sms)
    if split.mode == "parallel":  # The slices are a batch.
        parts = problem._replace(k=-(-problem.k // split.parts), matrices=problem.matrices * split.parts)
        return next(c for _, c in ranked(parts, costs) if _alone(c))
    found = [c for _, c in ranked(problem, costs) if c.skinny is None and not c.config.stream_k]
    if split.mode == "serial" and split.parts > 1:
        steps = -(-problem.k * BITS[problem.element] // 1024)
        wanted, there = min(split.parts, steps), {c.parts for c in found} - {1}
        near = min([n for n in there if n >= wanted], default=max(there, default=1))
        found = [c for c in found if c.parts == near]
    else:
        found = [c for c in found if c.parts == 1]
    return found[0]._replace(parts=1)


def chosen(
    x: Operands, asked: KernelRequest, *, gpu: str, sms: int, opclass: str, chip: int, call: str = "Gemm.run",
    array: bool = False, split: Split = ALONE,
) -> TileDescription:  # fmt: skip
    """Return the tile for a call's operands.

    ``array`` is True for pointer arrays.  Raises AlignmentError if no kernel can read the operands.
    """
    there = [(name, getattr(x, name)) for name in "abdc"]
    forms = dict(without_memory({name: view for name, view in there if view is not None}))
    of = Operands(forms["a"], forms["b"], forms["d"], forms.get("c"), along=x.along, graph=x.graph)
    return _chosen(of, asked, gpu, sms, opclass, chip, call, array, split)


@lru_cache(maxsize=4096)
def _chosen(
    x: Operands, asked: KernelRequest, gpu: str, sms: int, opclass: str, chip: int, call: str, array: bool, split: Split
) -> TileDescription:
    extents = x.d.shape[-2], x.b.shape[-1], x.a.shape[-1]
    m, n, k = (max(1, extent) for extent in extents)  # For empty results any extent will do.
    if opclass == "simt":
        return simt_tiles(asked.element_a)[0 if SIMT.is_allowed(chip) else 1]
    backend = unmeasured(chip)
    if backend is not None and not array and fits_tma(x.a, asked.layout_a) and fits_tma(x.b, asked.layout_b):
        found = tiles_of_chip(chip, asked)
        if found and backend.has_tensor_memory:
            p = problem_of(asked, m, n, k, max(1, x.d.shape[0]) if len(x.d.shape) == 3 else 1)
            if x.graph is not None and x.graph.whole_rows:
                found = [td for td in found if td.threadblock_shape[1] >= n] or found[:1]
            td = min(
                found,
                key=lambda td: bound_of_tile((td.threadblock_shape[0], td.threadblock_shape[1]), p, backend.target),
            )
            is_direct = not fits_results(x, flipped=asked.flipped)
            return td.replace({"epilogue_schedule": "direct"}) if is_direct else td
        if found:
            return next((td for td in found if _is_filled(td, m, n)), found[-1])
    by_wgmma = asked if array else asked.of_parts()  # No kernel splits pointer arrays into tf32 parts.
    readable = fits_results(x, flipped=asked.flipped)
    if by_wgmma.in_parts:  # If D is unaligned, the accumulator goes to a workspace.
        readable |= x.graph is None or Epilogue(graph=x.graph).by_element
    else:
        readable &= fits_tma(x.a, asked.layout_a) and fits_tma(x.b, asked.layout_b)
    if WGMMA.is_allowed(chip) and WGMMA.supports(by_wgmma) and readable:
        asked = by_wgmma
        matrices = max(1, x.d.shape[0]) if len(x.d.shape) == 3 else 1
        if asked.math == MathOperation.multiply_add_saturate:
            return tiles_of(asked, (m, n, k, matrices), gpu=gpu, sms=sms, opclass=opclass, chip=chip)[0]
        problem = problem_of(asked, m, n, k, matrices)
        choice = _of_parts(problem, split, gpu, sms, array=array)
        if x.graph is not None:
            e = Epilogue(graph=x.graph)
            found = taking(choice, e.transposed() if asked.flipped else e, problem, costs_of(gpu, sms))
            choice = with_epilogue(found, Epilogue())
        return described(choice, asked)
    if asked.accumulator != "f16" and not asked.sums:
        return ampere_tiles(asked)[0]
    names = [name for name, v in zip("ABDC", (x.a, x.b, x.d, x.c)) if v is not None and not fits_tma(v)]
    what = "N is odd" if not names else f"{', '.join(names)} has an address or row stride that is not a multiple of 16"
    more = "" if not names else " bytes"
    cure = "op.scaled_mm" if asked.scaling else "mm()"
    raise AlignmentError(f"{call}: {what}{more}, which TMA does not support for {asked.element}; use {cure}")


def _is_filled(td: TileDescription, m: int, n: int) -> bool:
    """Return True if a problem has at least as many rows and columns as the tile."""
    rows, columns, _ = td.threadblock_shape
    return m >= rows and n >= columns


CACHES.append(_chosen.cache_clear)
