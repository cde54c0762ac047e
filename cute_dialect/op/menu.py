"""The kernels that a product can be computed by: every configuration of the Hopper GEMM that is worth a thought.

>>> len(menu(Problem(8192, 8192, 8192))) > 50
True
>>> suits(Choice(GemmConfig(cluster_m=1, deferred=False, serpentine=False), 4), Problem(8192, 8192, 8192))
False
"""

from __future__ import annotations

from functools import cache

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.kernels.gemm.config import BITS, GemmConfig, SplitConfig
from cute_dialect.kernels.gemm.skinny_config import SkinnyConfig, deepest
from cute_dialect.op.choice import Choice, Problem, few_rows

__all__ = ["blocks", "forget", "menu", "suits"]

_TILES = ((192, 128), (128, 256), (128, 192), (128, 128), (128, 64), (64, 256), (64, 128), (64, 64))
_IN_TURNS = ((128, 128), (128, 64), (64, 256), (64, 192), (64, 128), (64, 64))
_SHARED_LAST = ((128, 256), (128, 192), (128, 128))
_SHARED_K = ((128, 256), (128, 192), (128, 128), (128, 64), (64, 256), (64, 128), (64, 64))
_PARTS = (2, 3, 4, 6, 8, 12, 16, 24, 32)
_FEW_COLUMNS = (32, *range(64, 257, 32))
_ALIGNMENT = 1024
"""Bytes that aligning the stages may take."""


def menu(problem: Problem, sms: int = 132) -> tuple[Choice, ...]:
    """Return all kernels for the types and majors of a problem; which suit its size :func:`suits` says."""
    p = problem
    found = _menu if p.matrices == 1 else _of_batches
    return found(p.element, p.output, p.major_a, p.major_b, sms)


def forget() -> None:
    """Forget the menus that were made."""
    _menu.cache_clear()
    _of_batches.cache_clear()


@cache
def _of_batches(element: str, output: str, major_a: str, major_b: str, sms: int) -> tuple[Choice, ...]:
    """Return the kernels that take batches: of those for a matrix all whose blocks have whole tiles."""
    all_of_them = _menu(element, output, major_a, major_b, sms)
    whole = [c for c in all_of_them if c.skinny is None and c.parts == 1 and not c.config.stream_k]
    return tuple([c._replace(config=c.config._replace(batch=True)) for c in whole])


@cache
def _menu(element: str, output: str, major_a: str, major_b: str, sms: int) -> tuple[Choice, ...]:
    wide = BITS[output] == 32
    base = GemmConfig(
        element=element, output=output, major_a=major_a, major_b=major_b, cluster_m=1, deferred=False, sms=sms
    )
    k = 1024 // base.bits
    found: list[Choice] = []

    def add(config: GemmConfig, parts: int = 1) -> None:
        made = _deepest(config)
        if made is not None and _is_kernel(made, parts):
            found.append(Choice(made, parts))

    for tile in _TILES:
        one = base._replace(tile=(*tile, k))
        add(one)
        for c in ({}, {"cluster_m": 2}, {"cluster_n": 2}):
            add(one._replace(**c, deferred=not wide))
    for tile in _SHARED_LAST:
        for n in (1, 2):
            add(base._replace(tile=(*tile, k), stream_k=True, deferred=not wide, cluster_m=n))
    for tile in _IN_TURNS:
        for n in (1, 2):
            add(base._replace(tile=(*tile, k), schedule="pingpong", cluster_m=n))
    for tile in _SHARED_K:
        for parts in _PARTS:
            add(base._replace(tile=(*tile, k), serpentine=False), parts)
    if (major_a, major_b) == ("k", "k"):
        found += _few_rows(element, output)
    return tuple(dict.fromkeys(found))


def _few_rows(element: str, output: str) -> list[Choice]:
    """Return the kernels for few rows; 32-bit results and odd pieces of columns go to memory directly."""
    found: list[Choice] = []
    for rows, live in ((64, 0), (64, 16), (64, 32), (128, 0)):
        for columns in _FEW_COLUMNS:
            for parts in (1, 2, 4):
                piece = columns // max(1, parts // (rows // 64))
                direct = BITS[output] == 32 or piece % 32 != 0
                if direct and rows == 128 and parts > 1 and columns >= 160:
                    continue  # its registers spill
                try:
                    made = deepest(SkinnyConfig(element, output, rows, columns, parts=parts, live=live, direct=direct))
                    made.check()
                except ValueError:
                    continue
                if min(made.stages_a, made.stages) >= 3:  # fewer hide no latency, and their registers spill
                    found.append(few_rows(made))
    return found


def _deepest(config: GemmConfig) -> GemmConfig | None:
    """Return a configuration with as many stages as fit, 3 to 12."""
    with_one, without = (config._replace(stages=n).smem_bytes for n in (1, 0))
    stages = min(12, (DEFAULT_TARGET.shared - _ALIGNMENT - without) // (with_one - without))
    return config._replace(stages=stages) if stages >= 3 else None


def _is_kernel(config: GemmConfig, parts: int) -> bool:
    try:
        config.check() if parts == 1 else SplitConfig(config, parts).check()
    except ValueError:
        return False
    return True


def blocks(choice: Choice, problem: Problem) -> int:
    """Return the blocks of a launch where each has one tile, or a part of one."""
    p, c, s = problem, choice.config, choice.skinny
    if s is not None:
        return -(-p.m // s.rows) * -(-p.n // (s.columns * s.share)) * s.cluster
    across, along = -(-p.m // (c.tile[0] * c.cluster_m)), -(-p.n // (c.tile[1] * c.cluster_n))
    return across * along * p.matrices * c.cluster * choice.parts


def suits(choice: Choice, problem: Problem) -> bool:
    """Tell whether a kernel can compute a problem: those whose blocks wait for each other run all at once, and each
    part of K has two stages or more.  Those for few rows have at most two tiles of them, or as many rows as they load.
    """
    k_tiles = -(-problem.k // choice.config.tile[2])
    if choice.skinny is not None:
        s = choice.skinny
        return problem.m <= (s.live or 2 * s.rows) and k_tiles >= 2 * s.parts
    if choice.parts > 1:
        return blocks(choice, problem) <= choice.config.sms and k_tiles >= 2 * choice.parts
    return True
