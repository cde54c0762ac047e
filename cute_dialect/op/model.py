"""How long a kernel takes for a problem, predicted: which one of the menu is taken where nobody has measured.

A block does steps of K, 128 bytes of it each; a step takes the longest of what the tensor cores take, what its bytes
take through the L2, shared by all blocks that run, and what the ring of stages hides of the latency.  Around the steps
lie the launch, the first loads and the stores, between waves what of a store is not hidden, and where blocks share K
what their meeting takes.  Reading and writing DRAM once bounds all of it.  The numbers of a GPU (:class:`Costs`) are
data, fitted to measurements by ``cute-bench gemm --fit``; files of them come with this package (``tables/costs-*``),
and the user's own are in ``CUTE_CONFIG_DIR`` (as tuned tables are, :mod:`cute_dialect.op.choice`).

>>> best(Problem(8192, 8192, 8192), COSTS).config.tile
(128, 256, 64)
>>> round(predict(best(Problem(8192, 8192, 8192), COSTS), Problem(8192, 8192, 8192), COSTS) / 1600, 0)
1.0
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from functools import cache, lru_cache
from math import inf
from pathlib import Path
from typing import NamedTuple

from cute_dialect.kernels.gemm.config import BITS
from cute_dialect.op.choice import Choice, Problem, TableError
from cute_dialect.op.menu import menu, suits
from cute_dialect.runtime.settings import user_folder

__all__ = [
    "COSTS", "GIVEN", "RANGES", "Costs", "Group", "best", "costs_of", "forget", "groups", "least", "predict", "ranked",
    "read_costs", "write_costs",
]  # fmt: skip

FORMAT = 1


class Costs(NamedTuple):
    """The numbers of a GPU; times in microseconds, of a tile as of one of 128 x 256.

    ``sms``, ``ghz``: multiprocessors, and the clock that they keep.  ``mma``, ``mma_tf32``, ``mma_8``: cycles of a step
    of all, of tf32, of 8 bits, to what the tensor cores could do; ``step_cycles``: more of each step.  ``l2_bytes``: of
    an SM a cycle, while all read.  ``dram``: TB/s.  ``latency``: of a load.  ``other_major``: factor for steps whose A
    or B is not contiguous along K.  ``launch``, ``first_loads``, ``clusters_meet`` (of a cluster, to ``first_loads``).
    ``store``, ``store_tile`` (16-bit results), ``not_hidden``: of a store that overlaps the next tile.  ``wave``: more
    between tiles.  ``alone``: factor for one tile of a block whose consumers take turns.  ``split``, ``split_tile``,
    ``split_add``, ``stream``, ``collect_tile``: where blocks share K.  ``few_launch``, ``few_split``: of the kernels
    for few rows.  ``sharpness``: how suddenly one bound follows another.
    """

    sms: int = 132
    ghz: float = 1.6
    mma: float = 0.976
    mma_tf32: float = 0.912
    mma_8: float = 1.171
    step_cycles: float = 9.1
    l2_bytes: float = 40.66
    dram: float = 2.788
    latency: float = 1.686
    other_major: float = 0.861
    launch: float = 4.242
    first_loads: float = 1.231
    clusters_meet: float = 0.745
    store: float = 0.436
    store_tile: float = 0.377
    not_hidden: float = 0.339
    wave: float = 0.0
    alone: float = 1.025
    split: float = 1.961
    split_tile: float = 1.3
    split_add: float = 0.6
    stream: float = 5.16
    collect_tile: float = 2.017
    few_launch: float = 4.872
    few_split: float = 0.185
    sharpness: float = 4.463


COSTS = Costs()
"""Of an H200 (2026-11-23: 160 problems of ``--random`` with seed 101, 22 kernels each)."""

GIVEN = ("sms", "ghz")
"""Costs that are not fitted: the number of multiprocessors, and the clock that all cycles are counted in."""

RANGES = {"sharpness": (1.5, 20.0), "not_hidden": (0.01, 1.0), "wave": (0.001, 1.0), "alone": (1.0, 1.5)}
"""Between what a cost is looked for where a tenth of that of :data:`COSTS` to ten times it would not do."""


def predict(choice: Choice, problem: Problem, costs: Costs = COSTS) -> float:
    """Return the microseconds that a kernel takes for a problem, its operands in DRAM.

    >>> p = Problem(4096, 4096, 4096)
    >>> 150 < predict(best(p), p) < 250
    True
    """
    p, c, s, x = problem, choice.config, choice.skinny, costs
    bits, out_bits = BITS[p.element], BITS[p.output]
    if s is not None:
        rows, columns, parts, cluster, cluster_m, cluster_n = s.rows, s.columns, s.parts, s.cluster, 1, 1
        tiles, stages, live = -(-p.m // rows) * -(-p.n // columns), s.stages, s.live or rows
    else:
        rows, columns, parts, cluster, cluster_m, cluster_n = (
            *c.tile[:2],
            choice.parts,
            c.cluster,
            c.cluster_m,
            c.cluster_n,
        )
        tiles, stages, live = -(-p.m // (rows * cluster_m)) * -(-p.n // (columns * cluster_n)), c.stages, rows
    tiles *= p.matrices
    steps = -(-p.k // c.tile[2])
    slots = max(1, x.sms // cluster)
    running = tiles * parts * (1 if s is not None else cluster)
    busy = x.sms if c.stream_k and s is None else min(x.sms, running)

    cycle = 1e-3 / x.ghz
    kind = x.mma_tf32 if bits == 32 else x.mma_8 if bits == 8 else 1.0
    products = (rows * columns / 32 * x.mma * kind + x.step_cycles) * cycle
    loads = (live / cluster_n + columns / cluster_m) * 128 * busy / x.sms / x.l2_bytes * cycle
    step = _longest(x.sharpness, products, loads, x.latency / stages)
    if (p.major_a, p.major_b) != ("k", "k"):
        step *= x.other_major

    tile = rows * columns / 32768
    store = x.store + x.store_tile * tile * out_bits / 16
    begin = x.launch + x.first_loads * (1 + x.clusters_meet * (cluster > 1))
    if s is not None:
        begin = x.few_launch + x.first_loads
        waves = -(-running // x.sms)
        body = waves * (-(-steps // parts) * step + store) + (x.few_split * (1 + 0.2 * parts) if parts > 1 else 0.0)
    elif parts > 1:
        added = parts * tile / min(parts, max(1, columns // c.chunk))  # sums that a block which finishes reads
        body = -(-steps // parts) * step + store + x.split + x.split_tile * tile + x.split_add * added
    elif c.stream_k:
        body = _shared_last_wave(x, tiles, slots, steps, step, store, tile)
    elif c.schedule == "pingpong":
        each, product = -(-tiles // slots), steps * step
        body = product * x.alone + store
        if each > 1:
            body = each * product + store + (each - 1) * (max(0.0, store - product) / 2 + x.wave)
    else:
        waves = -(-tiles // slots)
        between = store * (x.not_hidden if c.deferred else 1.0) + x.wave
        body = waves * steps * step + (waves - 1) * between + store
    moved = p.matrices * ((p.m * p.k + p.n * p.k) * bits / 8 + p.m * p.n * out_bits / 8)
    return begin + _longest(x.sharpness, body, moved / x.dram / 1e6)


def _shared_last_wave(
    x: Costs, tiles: int, slots: int, steps: int, step: float, store: float, tile: float
) -> float:  # fmt: skip
    """Return the time of tiles of which the last wave's are shared by all blocks (``stream_k``)."""
    whole, left = divmod(tiles, slots)
    if left * steps < slots:  # too few steps: nothing is shared
        return (whole + (left > 0)) * steps * step + (whole + 1) * store / 2 + store
    body = whole * steps * step + max(0, whole - 1) * store * x.not_hidden + (store if whole else 0.0)
    if left:
        body += -(-left * steps // slots) * step + x.stream + x.collect_tile * tile * max(1.0, slots / left) + store
    return body


def _longest(sharpness: float, *times: float) -> float:
    """Return the longest of some times, rounded where they are near."""
    longest = max(times)
    return longest * sum((t / longest) ** sharpness for t in times) ** (1 / sharpness)


def ranked(problem: Problem, costs: Costs = COSTS) -> list[tuple[float, Choice]]:
    """Return the kernels that suit a problem with their predicted microseconds, the fastest first."""
    found = [(predict(c, problem, costs), c) for c in menu(problem, costs.sms) if suits(c, problem)]
    return sorted(found, key=lambda x: x[0])


class Group(NamedTuple):
    """Kernels whose tiles are of one size, with a time that none of them goes below.

    ``rows``, ``columns``: of a cluster; ``slots``: clusters that run at once; ``parts``: of K; ``shared``: the last
    wave is; ``step``: least time of a step of K; ``begin``: of what comes before.  ``members``: the kernels, and their
    places in the menu.
    """

    rows: int
    columns: int
    slots: int
    parts: int
    shared: bool
    step: float
    begin: float
    members: tuple[tuple[int, Choice], ...]


def groups(problem: Problem, costs: Costs = COSTS) -> tuple[Group, ...]:
    """Return the menu of a problem in groups; the same for all sizes."""
    p = problem
    return _groups(p._replace(m=1, n=1, k=1, matrices=min(p.matrices, 2)), costs)


@lru_cache(maxsize=256)
def _groups(p: Problem, x: Costs) -> tuple[Group, ...]:
    bits, cycle = BITS[p.element], 1e-3 / x.ghz
    kind = x.mma_tf32 if bits == 32 else x.mma_8 if bits == 8 else 1.0
    factor = x.other_major if (p.major_a, p.major_b) != ("k", "k") else 1.0
    found: dict[tuple[int, int, int, int, bool], list[tuple[float, float, int, Choice]]] = {}
    for i, choice in enumerate(menu(p, x.sms)):
        c, s = choice.config, choice.skinny
        if s is not None:
            key, stages = (s.rows, s.columns, x.sms, s.parts, False), s.stages
            begin = x.few_launch + x.first_loads
        else:
            across, along, stages = c.tile[0] * c.cluster_m, c.tile[1] * c.cluster_n, c.stages
            key = (across, along, max(1, x.sms // c.cluster), choice.parts, c.stream_k)
            begin = x.launch + x.first_loads
        rows, columns, _ = c.tile
        step = max((rows * columns / 32 * x.mma * kind + x.step_cycles) * cycle, x.latency / stages)
        found.setdefault(key, []).append((step * factor, begin, i, choice))
    made: list[Group] = []
    for key, members in found.items():
        steps, begins, places, kernels = zip(*members)
        made.append(Group(*key, min(steps), min(begins), tuple(zip(places, kernels))))
    return tuple(made)


def least(group: Group, problem: Problem, steps: int, moved: float) -> float:
    """Return a time that :func:`predict` does not go below for any kernel of a group: what its waves multiply.

    ``steps``: of K; ``moved``: how long DRAM takes.
    """
    rows, columns, slots, parts, shared, step, begin, _ = group
    tiles = -(-problem.m // rows) * -(-problem.n // columns) * problem.matrices * parts
    body = (tiles / slots if shared else -(-tiles // slots)) * -(-steps // parts) * step
    return begin + (body if body > moved else moved)


@lru_cache(maxsize=4096)
def best(problem: Problem, costs: Costs = COSTS) -> Choice:
    """Return the kernel that is predicted to be the fastest: the first of :func:`ranked`.

    Groups of kernels are tried in the order of their least times (:func:`least`), until that of the next one is longer
    than what was found.
    """
    p, bits = problem, BITS[problem.element]
    steps = -(-p.k * bits // 1024)
    moved = p.matrices * ((p.m + p.n) * p.k * bits + p.m * p.n * BITS[p.output]) / 8 / costs.dram / 1e6
    order = sorted([(least(group, p, steps, moved), i, group) for i, group in enumerate(groups(p, costs))])
    found: tuple[float, int] = (inf, 0)
    choice: Choice | None = None
    for time, _, group in order:
        if time > found[0] * _ROUNDING:
            break
        for i, candidate in group.members:
            if suits(candidate, p) and (this := (predict(candidate, p, costs), i)) < found:
                found, choice = this, candidate
    if choice is None:
        raise ValueError(f"expected a problem that there is a kernel for, got {problem.key}")
    return choice


def forget() -> None:
    """Forget what was chosen, and the groups."""
    best.cache_clear()
    _groups.cache_clear()


_ROUNDING = 1 + 1e-9
"""What sums in another order may differ by."""


# ---------------------------------------------------------------------------------------------------------------- files


def _name(gpu: str) -> str:
    return f"costs-{re.sub(r'[^a-z0-9]+', '-', gpu.lower()).strip('-')}.json"


def costs_path(gpu: str) -> Path:
    """Return where the user's costs of a GPU are; ``gpu``: its name as the driver tells it."""
    return Path(user_folder("CUTE_CONFIG_DIR", "XDG_CONFIG_HOME", ".config")) / "gemm" / _name(gpu)


@cache
def costs_of(gpu: str, sms: int = 132) -> Costs:
    """Return the costs of a GPU: the user's, those of this package, else an H200's with its number of SMs.

    Raises TableError for a file that cannot be read.
    """
    for path in (costs_path(gpu), Path(__file__).parent / "tables" / _name(gpu)):
        found = read_costs(path)
        if found is not None:
            return found
    return COSTS._replace(sms=sms)


def read_costs(path: Path) -> Costs | None:
    """Return the costs of a file; None where there is none, or one of another format.  Raises TableError."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        found = json.loads(text)
        if found["format"] != FORMAT:
            return None
        values = found["costs"]
        unknown = sorted({*values} - {*Costs._fields})
        if unknown:
            raise ValueError(f"unknown costs {', '.join(unknown)}")
        for name, value in values.items():
            least = 1 if name == "sms" else 0
            if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < float("inf"):
                raise ValueError(f"{name}: {value!r}")
        return Costs(**{**values, "sms": int(values.get("sms", COSTS.sms))})
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise TableError(f"{path}: expected costs of a GPU (cute-bench gemm --fit writes them), got {e}") from None


def write_costs(path: Path, gpu: str, costs: Costs, said: Iterable[tuple[str, object]] = ()) -> None:
    """Write the costs of a GPU, with what is to be said of them (date, command, quality); replaces the file as a
    whole.
    """
    import tempfile

    path.parent.mkdir(parents=True, exist_ok=True)
    values = {n: v if n == "sms" else float(f"{v:.4g}") for n, v in costs._asdict().items()}
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with open(descriptor, "w", encoding="utf-8") as f:
            json.dump({"format": FORMAT, "gpu": gpu, **dict(said), "costs": values}, f, indent=1)
            f.write("\n")
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    costs_of.cache_clear()
