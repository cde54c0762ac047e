"""Attention for sm_100 with packed sequences: results, values of other sequences that are NaN, and mutants."""

# pyright: basic

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest

from cute_dialect.interp import InterpError
from cute_dialect.kernels.attention.sm100 import Sm100Attention, sm100_attention_text
from cute_dialect.pipelines.compilation import LoweringError
from cute_dialect.pipelines.compiler import compile_lazily

CHECKS = ("race", "uninit", "sync", "oob", "strict")
SCHEDULES = ("round-robin", "adversarial", "reverse", "random")
CONFIG = Sm100Attention("f16", 64, "right", lse=True, packed=True)
LENGTHS = ((40, 0, 150, 7), (150, 33, 90, 300))
"""Queries and keys of each sequence: tiles that end inside of a sequence, no queries, and more keys than queries."""


def softmax(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights and the log-sum-exp of rows; a row without keys has weights of 0 and -inf."""
    most = scores.max(-1, keepdims=True, initial=-np.inf)
    powers = np.exp(scores - np.where(np.isfinite(most), most, 0))
    total = powers.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        return powers / np.where(total > 0, total, 1), (np.where(np.isfinite(most), most, 0) + np.log(total))[..., 0]


def error(
    lines: list[str],
    c: Sm100Attention,
    lengths: Any,
    schedule: str,
    *,
    size: int = 64,
    from_end: int = 1,
    poison: int = -1,
) -> float:
    """Return the error of a kernel, relative to the rounding of P and of the result; inf for rows that must not change.

    Args:
        lines: the kernel.
        c: its configuration.
        lengths: queries and keys of each sequence.
        schedule: order of the threads.
        size: elements per head.
        from_end: 1 if the last query is aligned with the last key.
        poison: a sequence whose keys and values are NaN, so that its own results are NaN.
    """
    rng, (heads, sharing) = np.random.default_rng(0), (2, 2)
    begins = [np.cumsum([0, *x]).astype(np.int32) for x in lengths]
    rows, keys = (int(x[-1]) for x in begins)
    q = rng.standard_normal((rows, heads, size)).astype(np.float16)
    k, v = (rng.standard_normal((keys, heads // sharing, size)).astype(np.float16) for _ in range(2))
    out, lse = np.full((rows + 3, heads, size), np.nan, np.float16), np.full((heads, rows), np.nan, np.float32)
    if poison >= 0:
        for x in (k, v):
            x[begins[1][poison] : begins[1][poison + 1]] = np.nan
    views = [x.transpose(0, 2, 1)[..., None] for x in (q, k, v, out[:rows])]
    module, scale = compile_lazily("\n".join(lines), "packed", chip=c.chip), 1 / np.sqrt(size)
    more = [lse.T[..., None]] if c.lse else []
    numbers = float(scale / np.log(2)), 0, *begins, int(max(lengths[0])), from_end
    module.kernel("launch")(*views, *more, *numbers, device="cpu", checks=CHECKS, schedule=schedule, seed=1)
    if not np.isnan(out[rows:]).all():
        return np.inf
    worst = 0.0
    for i in range(len(lengths[0])):
        if i == poison:
            continue
        (a, b), (first, last) = ((x[i], x[i + 1]) for x in begins)
        for head in range(heads):
            scores = q[a:b, head].astype(float) @ k[first:last, head // sharing].astype(float).T * scale
            if c.mask == "right":
                shift = from_end * ((last - first) - (b - a))
                hidden = np.arange(last - first)[None] > np.arange(b - a)[:, None] + shift
                scores = np.where(hidden, -np.inf, scores)
            weights, log = softmax(scores)
            wanted = weights @ v[first:last, head // sharing].astype(float)
            found = np.abs(out[a:b, head].astype(float) - wanted) / 2e-3
            worst = max(worst, found.max(initial=0.0) if not np.isnan(found).any() else np.inf)
            if c.lse:
                same = np.isclose(lse[head, a:b], log, rtol=1e-5, atol=1e-5) | (lse[head, a:b] == log)
                worst = worst if same.all() else np.inf
    return worst


@cache
def kernel(config: Sm100Attention = CONFIG) -> list[str]:
    return sm100_attention_text(config).splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_results_agree_with_float64(schedule: str) -> None:
    assert error(kernel(), CONFIG, LENGTHS, schedule) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("from_end", [0, 1])
def test_keys_and_values_of_other_sequences_do_not_matter(from_end: int) -> None:
    """A NaN times a weight of 0 is a NaN, so the values of the next sequence in the last tile are set to 0."""
    assert error(kernel(), CONFIG, LENGTHS, "round-robin", from_end=from_end, poison=1) <= 1
    assert error(kernel(), CONFIG, LENGTHS, "round-robin", from_end=from_end, poison=3) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_lengths(seed: int) -> None:
    rng = np.random.default_rng(seed)
    head = (64, 128)[seed % 2]
    c = Sm100Attention("f16", head, ("full", "right")[seed // 2], packed=True, chip=("sm_100a", "sm_103a")[seed % 2])
    lengths = tuple(tuple(int(n) for n in rng.integers(0, 300, 3)) for _ in range(2))
    size = head - 8 * int(rng.integers(0, 4))
    assert error(kernel(c), c, lengths, SCHEDULES[seed], size=size, from_end=seed % 2, poison=int(rng.integers(3))) <= 1


CHANGED = (
    (r"^.*mbarrier_wait\(%clean\w*, .*$", "", "no wait"),
    (r"^.*mbarrier_arrive\(%clean\w*\).*$", "", "no arrival"),
    (r"^.*mbarrier_init\(%clean\w*, .*$", "", "no initialization"),
    (r"^.*cute.copy\(%\w+, %zeros\w*, .*$", "", "values of other sequences"),
    (r"^( *%\w+ = arith\.)addi( %first\w*, %\w+ : i32)$", r"\1subi\2", "other values are cleared"),
    (r"^( *%\w+ = arith\.)muli (%sequences_\w+), %\w+( : i32)$", r"\1subi \2, \2\3", "no shift of the sequence"),
)
"""Changes of the code for packed sequences: a pattern, its replacement, and a name."""


def caught(lines: list[str], poison: int = 3) -> str:
    """Return the first report of a mutant, or "" if no schedule has one."""
    for schedule in SCHEDULES:
        try:
            found = error(lines, CONFIG, LENGTHS, schedule, poison=poison)
        except (InterpError, LoweringError) as e:
            return str(e).splitlines()[0]
        if found > 1:
            return "wrong result"
    return ""


def mutants() -> dict[str, list[str]]:
    """Return the mutants of the code for packed sequences, by name."""
    lines, found = kernel(), dict[str, list[str]]()
    for pattern, replacement, name in CHANGED:
        for i, line in enumerate(lines):
            if re.search(pattern, line):
                found[f"{name}, line {i}"] = [*lines[:i], re.sub(pattern, replacement, line), *lines[i + 1 :]]
    # The second barrier, for the cleared tile: its initialization, the wait of the MMA thread, and the arrival.
    seconds = [i + 1 for i, line in enumerate(lines) if re.search(r"add_offset\(%clean", line)]
    assert len(seconds) == 3
    found |= {f"without {lines[i].split('(')[0].strip()}": [*lines[:i], *lines[i + 1 :]] for i in seconds}
    for name in ("fence_proxy_async", "syncwarp"):
        i = max(i for i in range(seconds[-1]) if name in lines[i])
        found[f"no {name}"] = [*lines[:i], *lines[i + 1 :]]
    return found


@pytest.mark.slow
def test_no_mutant_is_missed() -> None:
    found = mutants()
    assert all(any(x.startswith(name) for x in found) for *_, name in CHANGED)
    assert [name for name, lines in found.items() if not caught(lines)] == []
