"""Choice of the kernels of a grouped GEMM.

With wgmma, the cost model selects the fastest kernel for groups of average size.  The last tile of a group is partial,
so the model adds half a tile of wasted work per group.

Without wgmma, for f64, exact f32, f32 as three tf32 parts, and mma.sync tiles, a one-block kernel builds a table of the
groups' GEMMs from the group ends, with the running count of their tiles.  The kernel of pointer-array GEMMs
(:mod:`cute_dialect.kernels.gemm.pointer_array`) then computes them.  No step waits for the host.

A plan for sm_100 requests a :class:`Sm100Groups`.  Its tile is the one with the lowest static bound.
"""

# Pyright does not infer the types of NumPy's results.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import gcd
from typing import NamedTuple

import numpy as np

from cute_dialect.kernels.common.elements import sums_of
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.ampere import AmpereConfig
from cute_dialect.kernels.gemm.config import BITS, GroupedConfig
from cute_dialect.kernels.gemm.grouped_sm100 import FORMS, GroupedSm100Config
from cute_dialect.kernels.gemm.mma_sync import WarpConfig
from cute_dialect.kernels.gemm.pointer_array import COLUMNS, Base, ListedConfig, ProblemsConfig
from cute_dialect.kernels.gemm.simt import ExactConfig
from cute_dialect.kernels.gemm.sm100 import ELEMENTS, TILES, Sm100Config
from cute_dialect.op.arrays.library import Library
from cute_dialect.op.errors import EpilogueError, UnsupportedError
from cute_dialect.op.problems.grouped import Shapes
from cute_dialect.op.select.backends import UNMEASURED
from cute_dialect.op.select.candidates import TURNS, WHOLE, menu
from cute_dialect.op.select.configurations import KernelRequest, wanted
from cute_dialect.op.select.cost_model import COSTS, CostQuery, costs_of, times, work_of
from cute_dialect.op.select.descriptions import TileDescription
from cute_dialect.op.select.kernel_choice import Choice, Problem
from cute_dialect.op.select.mma_sync_model import cut_for
from cute_dialect.op.select.sm100_model import bound_of_tile
from cute_dialect.runtime.arrays import ArrayView, numpy_dtype
from cute_dialect.runtime.host_memory import span
from cute_dialect.runtime.launch_plan import MAX_EXTENT_I32


def average(s: Shapes, element: str, output: str, majors: tuple[str, str], sums: str = "") -> Problem:
    """Return the GEMM of a group of average size, with the number of groups as its batch.

    >>> average(Shapes("m", 8, 4096, 1024, 512), "bf16", "bf16", ("k", "n")).key
    'bf16-bf16-kn 8x512x1024x512'
    """
    groups = max(1, min(s.groups, s.cut)) if s.form != "rows" else max(1, s.groups)
    # The lengths of a batch are unknown here; assume that half of the rows are used.
    each = max(1, -(-s.cut // (2 if s.form == "rows" else groups)))
    m, n, k = (each if x in (s.form, {"rows": "m"}.get(s.form)) else y for x, y in zip("mnk", (s.m, s.n, s.k)))
    return Problem(max(1, m), max(1, n), max(1, k), element, output, *majors, max(2, groups), sums)


def majors_of(form: str, element: str, a: str, b: str) -> tuple[str, str]:
    """Return the modes along which A and B must be contiguous, given that they are contiguous along ``a`` and ``b``.

    A group begins at any row, column or step of K, but TMA reads from multiples of 16 bytes.  So the contiguous mode
    must not be the one that groups split.

    >>> majors_of("m", "f16", "m", "n"), majors_of("k", "f16", "m", "k"), majors_of("rows", "i8", "m", "n")
    (('k', 'n'), ('m', 'n'), ('k', 'k'))
    """
    if BITS[element] != 16:
        return "k", "k"
    if form == "k":
        return "m", "n"
    return "k" if form == "m" else a, "k" if form == "n" else b


def as_grouped(choice: Choice, form: str, begins: bool, epilogue: Epilogue | None = None) -> GroupedConfig:
    """Return a kernel for groups, with as many stages as fit in shared memory.  Raises ValueError if there is none."""
    if choice.skinny is not None or choice.parts > 1 or choice.swapped:
        raise ValueError("skinny, split-K and transposed kernels are not supported")
    config = choice.config._replace(batch=False, early=False, serpentine=False, epilogue=epilogue or Epilogue())
    found = GroupedConfig(config, form, begins)
    for stages in range(config.stages, 1, -1):
        found = found._replace(base=config._replace(stages=stages))
        try:
            found.check()
        except ValueError as e:
            if "shared memory" not in str(e) or stages == 2:
                raise
            continue
        break
    return found


def ranked_grouped(
    p: Problem, form: str, begins: bool = False, epilogue: Epilogue | None = None, gpu: str = "", sms: int = 132,
    count: int = 1,
) -> list[tuple[float, GroupedConfig]]:  # fmt: skip
    """Return the ``count`` fastest kernels for groups of this size, with their predicted microseconds.

    Raises UnsupportedError if there is none.
    """
    found = menu(p, sms)
    fits = ((found.way == WHOLE) | (found.way == TURNS)) & ~found.swapped
    if form == "k":
        fits &= ~found.deferred
    found = found.some(np.flatnonzero(fits))
    asked = CostQuery.of(p)
    if form in ("m", "rows"):
        asked = asked._replace(m=p.m + found.rows * found.cluster_m / 2)
    elif form == "n":
        asked = asked._replace(n=p.n + found.columns * found.cluster_n / 2)
    else:
        asked = asked._replace(k=p.k + found.base.tile[2] / 2)
    taken = times(found, asked, costs_of(gpu, sms), work_of(epilogue, p.output))
    kept: list[tuple[float, GroupedConfig]] = []
    for i in np.argsort(taken, kind="stable"):
        try:
            kept.append((float(taken[i]), as_grouped(found.choice(int(i)), form, begins, epilogue)))
        except ValueError:
            continue
        if len(kept) == count:
            break
    if not kept:
        raise UnsupportedError(f"no grouped kernel supports the problem {p.key}")
    return kept


@lru_cache(maxsize=1024)
def choose_grouped(
    p: Problem, form: str, begins: bool = False, epilogue: Epilogue | None = None, gpu: str = "", sms: int = 132
) -> GroupedConfig:
    """Return the kernel that is predicted to be the fastest for groups of this size.

    >>> choose_grouped(average(Shapes("m", 8, 8192, 14336, 4096), "bf16", "bf16", ("k", "n")), "m").base.tile[:2]
    (128, 256)
    """
    return ranked_grouped(p, form, begins, epilogue, gpu, sms)[0][1]


# --------------------------------------------------------------------------------------------------- kernels of sm_100


class Sm100Groups(NamedTuple):
    """A request for the kernels of sm_100."""

    chip: str  # target for which they are compiled
    tile: tuple[int, int] | None = None  # M and N of the tile, None for the one with the lowest bound

    def check_gpu(self, capability: tuple[int, int], call: str) -> None:
        """Raise UnsupportedError if a GPU does not run the kernels of a call."""
        next(b for b in UNMEASURED if b.target == self.chip).check_gpu(capability, call)


def choose_sm100(
    p: Problem, form: str, begins: bool, epilogue: Epilogue | None, asked: Sm100Groups
) -> GroupedSm100Config:
    """Return the kernel of sm_100 for groups of this size.  Raises UnsupportedError.

    >>> problem = average(Shapes("m", 8, 8192, 14336, 4096), "bf16", "bf16", ("k", "n"))
    >>> choose_sm100(problem, "m", False, None, Sm100Groups("sm_100a")).base.tile
    (256, 256)
    """
    number = asked.chip.strip("sm_a")
    if form not in FORMS:
        raise UnsupportedError(
            f"groups of steps of K are not supported on sm_{number}; use kernel_cc=90, or one call for each group"
        )
    a, b = p.element.partition("_")[::2]
    if not {a, b or a} <= {*ELEMENTS}:
        raise UnsupportedError(
            f"no grouped kernel of sm_{number} multiplies {p.element}; use {', '.join(ELEMENTS)}, or kernel_cc=90"
        )
    if p.sums:
        raise UnsupportedError(f"accumulation {p.sums!r} is not supported on sm_{number}; use the default")
    waste = {"m": (0.5, 0), "rows": (0.5, 0), "n": (0, 0.5)}[form]

    def bound(tile: tuple[int, int]) -> float:
        m, n = (int(x + w * t) for x, w, t in zip((p.m, p.n), waste, tile))
        return bound_of_tile(tile, p._replace(m=m, n=n), asked.chip)

    tiles = (asked.tile,) if asked.tile is not None else sorted(TILES, key=bound)
    why = ""
    for tile in tiles:
        base = Sm100Config(
            p.element, p.output, p.major_a, p.major_b, tile, stages=2, epilogue=epilogue or Epilogue(), chip=asked.chip
        )
        try:
            found = GroupedSm100Config(base, form, begins).deepest()
            found.check()
        except ValueError as e:
            why = why or str(e)
            continue
        return found
    raise UnsupportedError(f"no grouped kernel of sm_{number} supports the problem {p.key}: {why}")


# ------------------------------------------------------------------------------------------------ kernels without wgmma


MATH = {"3xtf32": "fast_f32", "fast_f16": "fast_f16", "fast_bf16": "fast_bf16"}
"""Arithmetic of f32: the name in a call -> the name in :class:`~cute_dialect.kernels.gemm.mma_sync.WarpConfig`."""


def is_of_warps(p: Problem, kernel: object, form: str) -> bool:
    """Return True if a GEMM, or the kernel requested for it, uses mma.sync or plain FMAs instead of wgmma.

    wgmma reads operands that are not 16-bit along K only.  Groups of steps of K may begin at any step, but TMA reads
    from multiples of 16 bytes.  So such operands cannot be grouped along K.
    """
    if isinstance(kernel, Sm100Groups):
        return False
    if isinstance(kernel, TileDescription) and kernel.kernel is None and kernel.math_instruction is not None:
        return kernel.math_instruction.instruction_shape[0] != 64
    return p.element in ("f32", "f64") or (form == "k" and BITS[p.element] != 16)


def base_of(p: Problem, form: str, epilogue: Epilogue, kernel: object, sms: int) -> Base:
    """Return the kernel for one GEMM of the groups' average size.  Raises UnsupportedError, EpilogueError."""
    if p.sums == "two":
        raise UnsupportedError(
            f"math='promote' is not supported for groups of {p.element} along {form}; use math='default'"
        )
    if p.sums == "f16":
        raise UnsupportedError("accumulator of f16 is not supported by mma.sync tiles; use f32")
    majors = p.major_a, p.major_b
    of_any = ("k" if majors[0] == "k" else "mn", "k" if majors[1] == "k" else "mn")
    if isinstance(kernel, TileDescription):
        a, _, b = p.element.partition("_")
        layouts = "row" if majors[0] == "k" else "column", "column" if majors[1] == "k" else "row"
        found = wanted(kernel, KernelRequest(a, b or a, sums_of(p.element), p.output, *layouts))
        if not isinstance(found, AmpereConfig | WarpConfig | ExactConfig):
            raise UnsupportedError(
                f"kernel {found.name} is not supported for groups of {p.element}; use an mma.sync tile, or a tile "
                "without tensor cores that has at least two stages"
            )
    elif kernel is not None:
        raise UnsupportedError(f"kernel={kernel!r} is not supported for groups of {p.element}; pass a TileDescription")
    elif p.element == "f32" and not p.sums:
        found = ExactConfig(*majors)
    else:
        # An f64 block has a multiprocessor to itself, so no other block hides the latency of fragment loads.
        cut = cut_for(p, COSTS._replace(sms=sms), share=False)
        found = WarpConfig(
            p.element, p.output, of_any, tile=cut.tile, warps=cut.warps, ahead=p.element == "f64", math=p.sums
        )  # fmt: skip
    found = found._replace(epilogue=epilogue)
    try:
        ListedConfig(found, 1).check()
    except ValueError as e:
        raise EpilogueError(f"groups of {p.element}: {e}") from None
    return found


class Cut(NamedTuple):
    """The layout of a matrix that is split into groups."""

    cut: int  # stride in elements along the mode that groups split, 0 if none is
    group: int  # stride in elements between the matrices of two groups
    line: int  # stride in elements between two lines
    size: int  # bytes that one copy may move


def cut_of(x: ArrayView, mode: int | None, along: int) -> Cut:
    """Return the layout of a matrix.

    Args:
        x: the matrix, or a batch.
        mode: which of its two modes the groups split, None for neither.
        along: which of its two modes is contiguous.
    """
    item = numpy_dtype(x.dtype).itemsize
    shape, strides = x.shape[-2:], x.strides[-2:]
    line = strides[1 - along]
    if shape[1 - along] <= 1:  # The stride of a single line is arbitrary.
        unit = max(1, 16 // item)
        line = -(-max(1, shape[along]) // unit) * unit
    steps = [line, line]
    steps[along] = 1
    group = x.strides[0] if len(x.shape) == 3 and x.shape[0] > 1 else 0
    units = [x.pointer, line * item, group * item, item if mode == along else shape[along] * item]
    return Cut(0 if mode is None else steps[mode], group, line, gcd(16, *units))


_CUT: Mapping[str, tuple[int | None, int | None, int | None]] = {
    "m": (0, None, 0), "n": (None, 1, 1), "k": (1, 0, None), "rows": (None, None, None)
}  # fmt: skip
"""Form of the groups -> the split mode of A, of B (K, N) and of C."""


def launches_of(
    library: Library, base: Base, s: Shapes, a: ArrayView, b: ArrayView, out: ArrayView,
    ends: ArrayView, begins: ArrayView | None, *, nothing: bool = False,
) -> list[tuple[ProblemsConfig | ListedConfig, tuple[object, ...]]]:  # fmt: skip
    """Return the launches that build the table and compute the GEMMs, without the operands of the epilogue.

    With ``nothing``, K is treated as 0, so that A and B are not read.
    """
    config = ListedConfig(base)
    config = config._replace(size=size_of(config, s, a, b, out))
    of_a, of_b, of_c = _cuts(config, s, a, b, out)
    m, n = config.tile
    across, along = -(-s.m // m), -(-s.n // n)
    blocks = {"m": (across + s.groups) * along, "n": across * (along + s.groups)}.get(
        s.form, across * along * s.groups
    )  # fmt: skip
    problems = library.strided((2 * s.groups * len(COLUMNS),), (1,), "i32", ends)
    problems = problems._replace(shape=(s.groups, len(COLUMNS)), strides=(len(COLUMNS), 1), dtype="i64")
    tiles = library.strided((s.groups,), (1,), "i32", ends)
    first = ProblemsConfig(s.form, config.tile, begins is not None)
    k = 0 if nothing else s.k
    cut = s.cut if s.form != "k" else k
    steps = [x for field in zip(*(y[:3] for y in (of_a, of_b, of_c))) for x in field]
    more = () if begins is None else (begins,)
    return [
        (first, (problems, tiles, ends, cut, s.m, s.n, k, *steps, *more)),
        (config, (*(_flat(x) for x in (a, b, out)), problems, tiles, blocks)),
    ]


def size_of(config: ListedConfig, s: Shapes, a: ArrayView, b: ArrayView, out: ArrayView | None) -> int:
    """Return the bytes that one copy moves, 1 for single elements.  ``out`` is None for a result that is allocated
    later.
    """
    of_a, of_b, of_c = _cuts(config, s, a, b, a if out is None else out)
    # 16-bit C is stored in vectors, too.
    unit = gcd(of_a.size, of_b.size, of_c.size if config.stores_vectors and out is not None else 16)
    return next((x for x in (16, 8, 4) if unit % x == 0 and config.takes(x)), 1)


def _cuts(config: ListedConfig, s: Shapes, a: ArrayView, b: ArrayView, c: ArrayView) -> tuple[Cut, Cut, Cut]:
    """Return the layouts of A, B and C."""
    by_a, by_b = config.by_k
    of_a, of_b, of_c = _CUT[s.form]
    return cut_of(a, of_a, int(by_a)), cut_of(b, of_b, 0 if by_b else 1), cut_of(c, of_c, 1)


def _flat(x: ArrayView) -> ArrayView:
    """Return the memory of an array as one mode, from its first to its last element."""
    _, size = span(x)
    return x._replace(shape=(min(size // numpy_dtype(x.dtype).itemsize, MAX_EXTENT_I32),), strides=(1,))
