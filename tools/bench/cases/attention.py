"""``cute-bench attention``: tiles, stages and schedules of attention compared with the back ends of torch.

Without ``--tune``, the default configurations are measured; with it, also those of :func:`space`.
``kernels.attention.config.default_config`` should return the fastest of each case.

    cute-bench attention --tune --build build/attention && cute-bench attention --tune --run build/attention
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from unittest.mock import patch

from cute_dialect.kernels.attention.config import AttentionConfig, default_config
from cute_dialect.kernels.attention.forward import attention_text
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.cases.op.attention import NamedAttention, named
from cute_dialect.tools.bench.checks import BenchError
from cute_dialect.tools.bench.runner import Row, Say, build_kernels, row, speeds

__all__ = ["CASES", "build", "configs", "run", "space"]

CASES = tuple(
    named(n, causal, head, heads=2048 // head, heads_k=2048 // head)
    for head in (128, 64, 256) for causal in (False, True) for n in (1024, 4096, 16384)
)  # fmt: skip
"""The cases to measure."""

_TILES = {
    64: ((192, 128), (192, 112), (192, 96), (128, 128), (128, 176), (128, 224)),
    128: ((128, 176), (128, 160), (128, 144), (128, 128), (128, 112), (192, 96), (192, 80)),
    256: ((128, 80), (128, 64), (128, 48)),
}
"""Map head sizes to the query and key extents of the tiles."""


def space(head: int, mask: str) -> list[AttentionConfig]:
    """Return the search space: all tiles with all numbers of stages that fit, and variants of the default with one
    optimization disabled.
    >>> len(space(128, "full")) > 12
    True
    """
    plain = default_config("bf16", head, mask)
    tiled = [plain._replace(tile_m=m, tile_n=n) for m, n in _TILES[head]]
    found = [c._replace(stages=stages, q_stages=q_stages) for c in tiled for stages in (2, 3) for q_stages in (1, 2)]
    found += [c._replace(overlap=False) for c in tiled[:2]]
    found += [plain._replace(**{name: not getattr(plain, name)}) for name in ("overlap", "pingpong", "lazy")]
    return [c for c in dict.fromkeys(found) if c != plain and _is_there(c)]


def configs(head: int, mask: str, tune: bool) -> list[AttentionConfig]:
    """Return the configurations to measure, the default first."""
    return [default_config("bf16", head, mask), *(space(head, mask) if tune else ())]


def _is_there(config: AttentionConfig) -> bool:
    try:
        config.check()
    except ValueError:
        return False
    return True


def build(folder: str, chip: str, *, tune: bool = False) -> list[str]:
    """Compile all kernels into ``folder/NAME``; return the reports of ptxas."""
    kinds = dict.fromkeys((case.problem.head, case.explained().config.mask) for case in CASES)
    found = [c for head, mask in kinds for c in configs(head, mask, tune)]
    return build_kernels({c.name: partial(attention_text, c) for c in found}, folder, chip)


def run(folder: str, *, runs: int, large: bool, say: Say, tune: bool = False) -> dict[str, object]:
    """Check and measure the kernels of :func:`build`; wrong kernels are reported and skipped."""
    rows: list[Row] = []
    wrong: list[str] = []
    with patch.dict(os.environ, {"CUTE_KERNELS": folder}):
        for case in track(CASES, "measuring", "cases"):
            found = _measured(case, folder, runs, tune, wrong, say)
            if found is not None:
                rows.append(found)
    if wrong and not rows:
        raise BenchError("\n".join(wrong))
    return {"rows": rows, "wrong": wrong}


def _measured(case: NamedAttention, folder: str, runs: int, tune: bool, wrong: list[str], say: Say) -> Row | None:
    """Measure the kernels of a case alternating with torch; return None if no kernel is correct."""
    import torch

    ours: dict[str, Callable[[], object]] = {}
    trial = case.trial()
    for c in configs(case.problem.head, case.explained().config.mask, tune):
        if not os.path.isdir(os.path.join(folder, c.name)):
            continue
        mine = case.trial(c)
        try:
            mine.check()
            ours[c.name] = mine.ours
        except Exception as e:  # The other cases are still measured.
            wrong.append(f"{case.name}, {c.name}: {type(e).__name__}: {e}")
            say(f"  WRONG {wrong[-1]}")
    if not ours:
        return None
    times, speed = speeds(trial, ours, runs)
    best = max(ours, key=lambda k: speed[k])
    peer = max((speed[k] for k in trial.peers), default=float("nan"))
    say(f"  {case.name}: " + ", ".join(f"{k} {x:.0f}" for k, x in sorted(speed.items(), key=lambda x: -x[1])))
    torch.cuda.empty_cache()
    first = next(iter(ours))
    more = {"best": best, "best speed": speed[best], "us": times[first], **speed}
    return row(case.name, trial.unit, speed[first], peer, **more)
