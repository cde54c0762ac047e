"""Candidate kernels for a GEMM: the configurations of the Hopper GEMM that may be the fastest.

There are up to three thousand for each type of operands.  They have tiles of 64 to 256 rows and 16 to 256 columns, of
the problem or of the transposed problem (``C^T = B A^T``), and different schedules.  Stream-K for a partial last wave
(``stream_k``) is not among them, because another tile is as fast.  A menu is a table with a column per :class:`Kernel`
field, evaluated for all kernels at once; a :class:`~cute_dialect.op.select.kernel_choice.Choice` is built only for a
kernel that is selected.

>>> found = menu(Problem(8192, 8192, 8192))
>>> len(found) > 1000, found.choice(0).config.tile
(True, (64, 16, 64))
>>> suits(Choice(GemmConfig(cluster_m=1, deferred=False, serpentine=False), 4), Problem(8192, 8192, 8192))
False
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.kernels.common.elements import swapped as swapped_element
from cute_dialect.kernels.gemm.config import BITS, GemmConfig, SkinnyConfig, SplitConfig, deepest
from cute_dialect.op.select.kernel_choice import OF_BLOCKS, Choice, Problem, few_rows, swapped_majors

if TYPE_CHECKING:
    from numpy.typing import NDArray

WHOLE, TURNS, STREAM, SPLIT, FEW = range(5)
"""Schedules of blocks: data-parallel, ping-pong (a tile per warpgroup), stream-K, split-K, few-rows kernel."""

_PARTS = (2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 44, 66, 132)
_FEW_COLUMNS = (32, *range(64, 257, 32))
_CLUSTERS, _LARGER = ((1, 1), (2, 1), (1, 2)), ((2, 2), (4, 1), (1, 4), (2, 4), (4, 2), (8, 1), (1, 8))
"""Clusters along M and N: for tiles of any size, and for smaller tiles."""
_ALIGNMENT = 1024
"""Bytes reserved for the alignment of the stages."""
_MOST_STAGES = 16


class Kernel(NamedTuple):
    """Properties of a kernel in the cost model."""

    rows: int  # of a tile, of the transposed problem if swapped
    columns: int
    live: int  # rows that are loaded
    stages: int
    parts: int = 1  # split-K slices
    cluster_m: int = 1  # blocks along M, which share B
    cluster_n: int = 1  # blocks along N, which share A
    way: int = WHOLE  # the schedule: WHOLE, TURNS, STREAM, SPLIT or FEW
    swapped: bool = False
    deferred: bool = False  # see GemmConfig
    buffers: int = 2  # see GemmConfig
    direct: bool = False  # see SkinnyConfig
    finishers: int = 1  # blocks that finish columns of a tile
    accumulators: int = 1  # per warpgroup


_COLUMN = {name: i for i, name in enumerate(Kernel._fields)}
_FLAGS = {"swapped", "deferred", "direct"}


class Menu:
    """Kernels for one type of operands, with an array per field of :class:`Kernel`.

    ``kept`` caches results of the cost model.
    """

    def __init__(self, kernels: Sequence[Sequence[float]], base: GemmConfig):
        self._kernels, self.base = kernels, base
        self.table: NDArray[np.float64] = np.array(kernels, np.float64).T
        self.kept: object = None

    def __len__(self) -> int:
        return len(self._kernels)

    def __iter__(self) -> Iterator[Choice]:
        return (self.choice(i) for i in range(len(self)))

    def kernel(self, index: int) -> Kernel:
        """Return the properties of one kernel."""
        return Kernel(*self._kernels[index])  # type: ignore[arg-type]

    def some(self, which: NDArray[Any]) -> Menu:
        """Return a menu of the kernels with these indices."""
        found = Menu.__new__(Menu)
        indices: list[int] = which.tolist()
        found._kernels, found.base = [self._kernels[i] for i in indices], self.base
        found.table, found.kept = self.table[:, which], None
        return found

    def __getattr__(self, name: str) -> NDArray[Any]:
        try:
            column = self.__dict__["table"][_COLUMN[name]]
        except KeyError:
            raise AttributeError(name) from None
        return column != 0 if name in _FLAGS else column

    def choice(self, index: int) -> Choice:
        """Return one of the kernels."""
        x, base = self.kernel(index), self.base
        if x.way == FEW:
            live = x.live if x.live < x.rows else 0
            return few_rows(_of_few_rows(base, x.rows, x.columns, x.parts, live, direct=x.direct, swapped=x.swapped))
        majors = base.major_a, base.major_b
        major_a, major_b = swapped_majors(*majors) if x.swapped else majors
        config = base._replace(
            tile=(x.rows, x.columns, 1024 // base.bits), stages=x.stages, cluster_m=x.cluster_m, cluster_n=x.cluster_n,
            deferred=x.deferred, buffers=x.buffers, stream_k=x.way == STREAM,
            serpentine=x.way != SPLIT and not base.scaled,
            schedule="pingpong" if x.way == TURNS else "cooperative", major_a=major_a, major_b=major_b,
            major_c="m" if x.swapped else "n", element=swapped_element(base.element) if x.swapped else base.element,
        )  # fmt: skip
        return Choice(config, x.parts)


def menu(problem: Problem, sms: int = 132) -> Menu:
    """Return all kernels for the types and majors of a problem; :func:`suits` checks its size."""
    p = problem
    return _menu(p.element, p.output, p.major_a, p.major_b, p.matrices > 1, sms, p.sums)


def forget() -> None:
    """Clear the cache of menus."""
    _menu.cache_clear()


@cache
def _menu(element: str, output: str, major_a: str, major_b: str, batch: bool, sms: int, sums: str) -> Menu:
    base = GemmConfig(
        element=element, output=output, major_a=major_a, major_b=major_b, batch=batch, sms=sms,
        promote=sums in ("two", *OF_BLOCKS), accumulator="f16" if sums == "f16" else "", scaled=sums in OF_BLOCKS,
        scaled_columns=sums == "columns",
    )  # fmt: skip
    found: list[Sequence[float]] = []
    for swapped in _orders(base):
        # Lines of B along N have at least 32 elements in shared memory.
        step = 16 if (major_a if swapped else major_b) == "k" and BITS[output] > 8 else 32
        for rows, most in ((64, 256), (128, 256), (192, 192), (256, 192)):
            for columns in range(step, most + 1, step):
                found += _of_tile(base, rows, columns, swapped)
    if not batch and not sums:
        for swapped in (False, True):
            found += _few_rows(base, swapped)
    return Menu(found, base)


def _orders(base: GemmConfig) -> list[bool]:
    """Return the values of ``swapped`` that are possible; none if neither A nor B is contiguous along K."""
    majors, found = (base.major_a, base.major_b), list[bool]()
    for swapped in (False, True):
        major_a, major_b = swapped_majors(*majors) if swapped else majors
        through = base.bits != 16 and major_a == "m"
        readable = base.bits == 16 or major_b == "k"
        by_columns = BITS[base.output] == 16 or (through and BITS[base.output] == 32)
        if readable and not (swapped and (base.scaled or not by_columns)) and not (through and base.scaled):
            found.append(swapped)
    return found


def _of_tile(base: GemmConfig, rows: int, columns: int, swapped: bool) -> list[Sequence[float]]:
    """Return the kernels with a tile, as fields of :class:`Kernel`."""
    found: list[Sequence[float]] = []
    area, wide, consumers = rows * columns, BITS[base.output] == 32, 2 if rows == 256 else rows // 64
    most = 96 if consumers == 3 else 176 if base.scaled and rows == 256 else 192  # registers
    sums = rows // 64 // consumers * columns // 2
    majors = base.major_a, base.major_b
    k_major = [major == "k" for major in (swapped_majors(*majors) if swapped else majors)]
    clusters = [
        (m, n) for m, n in (*_CLUSTERS, *_LARGER * (area <= 128 * 192))
        if (not k_major[1] or columns % (8 * m) == 0) and (not k_major[0] or rows % (8 * n) == 0)
    ]  # fmt: skip
    through = base.bits != 16 and not k_major[0]
    held = 16 * (rows // 64 // consumers) if through else base.of_columns  # A in registers, or scales
    levels = 2 if base.promote else 1
    can_wait = not wide and sums * levels + sums // 2 + held <= most
    if sums * levels + held > most:
        return found
    clusters = [c for c in clusters if not through or base.bits == 8 or c[1] <= 4]

    def accumulators(m: int, n: int, deferred: bool) -> int:
        tile, major_a = (rows, columns, 1024 // base.bits), "k" if k_major[0] else "m"
        return base._replace(tile=tile, cluster_m=m, cluster_n=n, deferred=deferred, major_a=major_a).accumulators

    def add(
        consumers: int, way: int, m: int, n: int, deferred: bool = False, parts: int = 1, finishers: int = 1
    ) -> None:
        stages, buffers = _ring(rows + columns, consumers)
        if stages >= 3:
            found.append((
                rows, columns, rows, stages, parts, m, n, way, swapped, deferred, buffers, False, finishers,
                accumulators(m, n, deferred),
            ))  # fmt: skip

    add(consumers, WHOLE, 1, 1)
    for m, n in clusters:
        if can_wait or (m, n) != (1, 1):
            add(consumers, WHOLE, m, n, can_wait)
        # With two-level accumulation, registers of the deferred store may hold a second accumulator.
        if can_wait and base.promote and (m, n) != (1, 1) and accumulators(m, n, False) == 2:
            add(consumers, WHOLE, m, n)
    if rows <= 128 and area <= 128 * 128 and not base.promote:
        for m, n in clusters:
            if m * n <= 4 and max(m, n) <= 2:
                add(2, TURNS, m, n)
    if base.accumulator or rows == 256:
        return found
    # Two blocks share the larger operand; larger clusters might not all run at once.
    more = [c for c in clusters if area >= 64 * 128 and c == ((1, 2) if rows > columns else (2, 1))]
    for m, n in [(1, 1), *more]:
        for parts, finishers in zip(_PARTS, _finishers(columns, 1024 // BITS[base.output])):
            add(consumers, SPLIT, m, n, parts=parts, finishers=finishers)
    return found


@cache
def _finishers(columns: int, chunk: int) -> tuple[int, ...]:
    return tuple(SplitConfig.finishers_of(columns, chunk, parts) for parts in _PARTS)


@cache
def _ring(lines: int, consumers: int) -> tuple[int, int]:
    """Return the number of stages that fit for lines of 128 bytes, and the staging buffers per consumer.

    A consumer has one buffer, not two, if that makes room for the fourth stage.
    """
    room = DEFAULT_TARGET.shared - _ALIGNMENT
    stages = [(room - consumers * n * 8192) // (lines * 128 + 16) for n in (2, 1)]
    return (stages[1], 1) if stages[0] < 4 <= stages[1] else (min(stages[0], _MOST_STAGES), 2)


def _of_few_rows(
    base: GemmConfig, rows: int, columns: int, parts: int, live: int, *, direct: bool, swapped: bool
) -> SkinnyConfig:
    """Return a few-rows (or with ``swapped`` few-columns) kernel with the deepest rings that fit.  Raises
    ValueError.
    """
    majors = base.major_a, base.major_b
    major_a, major_b = swapped_majors(*majors) if swapped else majors
    made = SkinnyConfig(
        base.element, base.output, rows, columns, parts=parts, live=live, direct=direct, major_a=major_a,
        major_b=major_b, major_c="m" if swapped else "n",
    )  # fmt: skip
    return deepest(made)


def _few_rows(base: GemmConfig, swapped: bool) -> list[Sequence[float]]:
    """Return the few-rows or few-columns kernels.

    32-bit results are stored without TMA, as are slices whose width is not a multiple of 32.
    """
    found: list[Sequence[float]] = []
    for rows, live in ((64, 0), (64, 16), (64, 32), (128, 0)):
        for columns in _FEW_COLUMNS:
            for parts in (1, 2, 4):
                piece = columns // max(1, parts // (rows // 64))
                direct = BITS[base.output] == 32 or (piece % 32 != 0 and not swapped)
                if rows == 128 and parts > 1 and columns >= (160 if direct else 224):
                    continue  # its registers spill
                try:
                    made = _of_few_rows(base, rows, columns, parts, live, direct=direct, swapped=swapped)
                    made.check()
                except ValueError:
                    continue
                if min(made.stages_a, made.stages) >= 3:  # fewer hide no latency, and their registers spill
                    kernel = Kernel(
                        rows, columns, live or rows, made.stages, parts, way=FEW, swapped=swapped, direct=direct
                    )
                    found.append(kernel)
    return found


def blocks(choice: Choice, problem: Problem) -> int:
    """Return the number of blocks of a launch in which each block has one tile, or a slice of one."""
    p, c, s = problem, choice.config, choice.skinny
    m, n = (p.n, p.m) if choice.swapped else (p.m, p.n)
    if s is not None:
        return -(-m // s.rows) * -(-n // (s.columns * s.share)) * s.cluster
    across, along = -(-m // (c.tile[0] * c.cluster_m)), -(-n // (c.tile[1] * c.cluster_n))
    return across * along * c.cluster * choice.parts * p.matrices


def suits(choice: Choice, problem: Problem) -> bool:
    """Return True if a kernel can compute a problem.

    Blocks that wait for each other must all run at once, and a split-K slice needs two stages.  Few-rows kernels
    support two tiles of rows (or columns), or as many rows as they load.
    """
    return bool(suiting(one(choice), problem)[0])


def one(choice: Choice) -> Menu:
    """Return a menu of one kernel."""
    return of_choices([choice])


def of_choices(choices: Sequence[Choice]) -> Menu:
    """Return a menu of kernels; :meth:`Menu.choice` returns them if all have one type."""
    first = choices[0]
    majors = first.majors
    element = swapped_element(first.config.element) if first.swapped else first.config.element
    base = first.config._replace(major_a=majors[0], major_b=majors[1], element=element)
    return Menu([_kernel_of(c) for c in choices], base)


def _kernel_of(choice: Choice) -> Kernel:
    c, s = choice.config, choice.skinny
    if s is not None:
        live = s.live or s.rows
        return Kernel(s.rows, s.columns, live, s.stages, s.parts, way=FEW, swapped=choice.swapped, direct=s.direct)
    way = STREAM if c.stream_k else TURNS if c.schedule == "pingpong" else SPLIT if choice.parts > 1 else WHOLE
    finishers = SplitConfig.finishers_of(c.tile[1], c.chunk, choice.parts) if choice.parts > 1 else 1
    return Kernel(
        *c.tile[:2], c.tile[0], c.stages, choice.parts, c.cluster_m, c.cluster_n, way, choice.swapped, c.deferred,
        c.buffers, finishers=finishers, accumulators=c.accumulators,
    )  # fmt: skip


def differing(choices: Iterable[Choice], count: int) -> list[Choice]:
    """Return the first ``count`` kernels, with at most two of the same tile and problem.

    >>> [c.config.group for c in differing([Choice(GemmConfig(group=g)) for g in (8, 4, 16)], 3)]
    [8, 4]
    """
    kept: list[Choice] = []
    seen: dict[object, int] = {}
    for c in choices:
        tile = (c.config.tile, c.swapped) if c.skinny is None else (c.skinny.rows, c.skinny.columns)
        seen[tile] = seen.get(tile, 0) + 1
        if seen[tile] <= 2:
            kept.append(c)
        if len(kept) == count:
            break
    return kept


def suiting(found: Menu, problem: Problem) -> NDArray[np.bool_]:
    """Return for each kernel whether it can compute a problem, see :func:`suits`."""
    p, x = problem, found
    steps = -(-p.k * found.base.bits // 1024)
    few, split = x.way == FEW, x.way == SPLIT
    enough = steps >= 2 * x.parts
    m, n = np.where(x.swapped, p.n, p.m), np.where(x.swapped, p.m, p.n)
    running = np.ceil(m / (x.rows * x.cluster_m)) * np.ceil(n / (x.columns * x.cluster_n))
    at_once = running * (x.cluster_m * x.cluster_n * x.parts) * p.matrices <= found.base.sms
    rows = m <= np.where(x.live < x.rows, x.live, 2 * x.rows)
    return np.where(few, rows & enough, ~split | (at_once & enough))
