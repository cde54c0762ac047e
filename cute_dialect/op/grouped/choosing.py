"""Choice of the kernel for a grouped GEMM: the fastest by the model, for groups of average size.

Groups end anywhere, so the model adds half a tile per group, which is computed in vain.
"""

# Pyright does not infer the types of NumPy's results.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.config import BITS
from cute_dialect.kernels.gemm.grouped_config import GroupedConfig
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.problems.grouped import Shapes
from cute_dialect.op.select.candidates import TURNS, WHOLE, menu
from cute_dialect.op.select.cost_model import CostQuery, costs_of, times
from cute_dialect.op.select.epilogue_work import work_of
from cute_dialect.op.select.kernel_choice import Choice, Problem

__all__ = ["as_grouped", "average", "choose", "majors_of", "ranked"]


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


def ranked(
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
def choose(
    p: Problem, form: str, begins: bool = False, epilogue: Epilogue | None = None, gpu: str = "", sms: int = 132
) -> GroupedConfig:
    """Return the kernel that is predicted to be the fastest for groups of this size.

    >>> choose(average(Shapes("m", 8, 8192, 14336, 4096), "bf16", "bf16", ("k", "n")), "m").base.tile[:2]
    (128, 256)
    """
    return ranked(p, form, begins, epilogue, gpu, sms)[0][1]
