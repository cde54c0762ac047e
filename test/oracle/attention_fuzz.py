"""Random attention calls on the interpreter with all checks and schedules, compared with float64.

    python test/oracle/attention_fuzz.py --count 100 --seed 1
    python test/oracle/attention_fuzz.py --assemble

Types, 8-bit floats included, head sizes, masks, windows, lengths, tiles, stages, split keys, schedules and blocks are
random. In packed batches all sequences but one may contain NaN. ``--assemble`` instead compiles each kind of kernel and
reports register spills and serialized wgmmas. Up to 16 spilled bytes are allowed for heads of 256 elements, outside the
main loop, and 64 or 256 in the warps that transpose 8-bit values.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

from cute_dialect.kernels.attention.combine import CombineConfig, combine_text
from cute_dialect.kernels.attention.config import ELEMENTS, HEADS, MASKS, OUTPUTS, AttentionConfig, default_config
from cute_dialect.kernels.attention.forward import attention_text
from cute_dialect.pipelines import compile

TYPES = {
    "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
    "f32": np.float32,
}  # fmt: skip
UNITS = {"bf16": 2.0**-7, "f16": 2.0**-10, "f32": 0.0}
ROUNDED = 2.0**-4
"""Largest relative error of a probability of 8 bits."""
SCHEDULES = ("round-robin", "adversarial", "random")
TILES = {
    64: (16, 32, 48, 128), 96: (16, 48, 96, 112), 128: (16, 32, 96, 160, 176), 192: (16, 32, 48, 96),
    256: (16, 48, 64, 80),
}  # fmt: skip


def configuration(r: random.Random) -> AttentionConfig:
    while True:
        head = r.choice(HEADS)
        c = default_config(r.choice(ELEMENTS), head, r.choice(MASKS))
        c = c._replace(
            from_end=r.random() < 0.5, packed=r.random() < 0.4, lse=True, tile_m=r.choice((64, 128, 192)),
            tile_n=r.choice(TILES[head]), stages=r.choice((1, 2, 3)), q_stages=r.choice((1, 2)),
            overlap=r.random() < 0.8, pingpong=r.random() < 0.8, lazy=r.random() < 0.8, sms=r.choice((1, 2, 5)),
            pairs=r.random() < 0.5,
        )  # fmt: skip
        c = c._replace(split=not c.packed and r.random() < 0.4)
        if c.bits == 8:
            c = c._replace(output=r.choice(OUTPUTS), emulated=r.choice((0, 0, 3)))
        try:
            c.check()
        except ValueError:
            continue
        return c


def reference(q: Any, k: Any, v: Any, seen: Any) -> tuple[Any, Any, Any]:
    """Compute the output and log-sum-exp of one head, and the mean magnitude of the values.

    ``seen`` marks the keys that each query attends to.
    """
    scores = np.where(seen, q.astype(np.float64) @ k.astype(np.float64).T / np.sqrt(q.shape[1]), -np.inf)
    most = scores.max(1, keepdims=True, initial=-1e30)
    powers = np.exp(scores - most)
    total = powers.sum(1, keepdims=True)
    with np.errstate(divide="ignore"):
        logs = np.where(total > 0, most + np.log(total), -np.inf)
    powers, values = powers / np.where(total > 0, total, 1), v.astype(np.float64)
    return powers @ values, logs[:, 0], powers @ np.abs(values)


def trial(r: random.Random) -> str:
    """Run one random kernel and return its description. Raises AssertionError for a wrong result."""
    c = configuration(r)
    size, shared = (
        r.choice([d for d in range(128 // c.bits, c.head + 1, 128 // c.bits) if d > c.head // 2 or c.head == 64]),
        r.choice((1, 2, 3)),
    )
    heads_k, count = r.choice((1, 2)), r.choice((1, 2, 4)) if c.packed else 1
    batch = 1 if c.packed else r.choice((1, 2))
    lengths = [
        (r.choice((0, 1, 65, 200)), r.choice((0, 1, 64, 177))) if c.packed else (r.randint(1, 260), r.randint(1, 260))
        for _ in range(count)
    ]
    begins = [np.cumsum([0, *x]).astype(np.int32) for x in zip(*lengths)]
    left, right = r.choice((0, 5, 90)), r.choice((0, 5, 90))
    rng = np.random.default_rng(r.getrandbits(32))

    def normal(rows: int, heads: int) -> Any:
        return rng.standard_normal((batch, max(rows, 1), heads, size)).astype(TYPES[c.element])

    q, k, v = normal(int(begins[0][-1]), heads_k * shared), *(normal(int(begins[1][-1]), heads_k) for _ in "kv")
    said = f"{c.name} heads of {size}, {heads_k}x{shared} heads, {batch} of {lengths}, window {left}, {right}"
    chosen = r.randrange(count)
    if c.packed and r.random() < 0.5:
        for x, b in ((q, begins[0]), (k, begins[1]), (v, begins[1])):
            x[:, : b[chosen]] = x[:, b[chosen + 1] :] = np.nan
    out, logs = np.full(q.shape, np.nan, TYPES[c.result]), np.full(q.shape[:3], np.nan, np.float32)
    longest = max(1, *(x for x, _ in lengths)) if c.packed else q.shape[1]
    kernel = compile(attention_text(c), emit="base", filename=f"{c.name}.mlir").kernel("launch")
    run: dict[str, Any] = {"device": "cpu", "checks": ("race", "uninit", "sync", "oob")}
    run |= {"schedule": r.choice(SCHEDULES), "seed": r.randrange(1000)}
    numbers = longest, size**-0.5 * 1.4426950408889634, left, right
    matrices, lines = [x.transpose(1, 3, 2, 0) for x in (q, k, v, out)], logs.transpose(1, 2, 0)
    if c.split:
        parts, (_, queries, heads, _) = r.choice((1, 2, 5, 9)), q.shape
        said += f", {parts} parts"
        sums = np.full((parts * batch, heads, queries, size), np.nan, np.float32)
        ends = np.full(sums.shape[:3], np.nan, np.float32)
        kernel(*matrices[:3], sums.transpose(2, 3, 1, 0), ends.transpose(2, 1, 0), *numbers, parts, **run)
        combined = CombineConfig(c.result, c.head, True, r.random() < 0.5)
        text = combine_text(combined)
        combine = compile(text, emit="base", filename=f"{combined.name}.mlir").kernel("launch")
        combine(sums.reshape(parts, -1, size).transpose(2, 1, 0), ends.reshape(parts, -1).T, matrices[3], lines, **run)
    else:
        kernel(*matrices, lines, *(begins if c.packed else ()), *numbers, **run)
    queries, keys = lengths[chosen]
    own = np.arange(queries)[:, None] + (keys - queries if c.from_end else 0)
    at, seen = np.arange(keys)[None], np.ones((queries, keys), bool)
    if c.bounded[0]:
        seen &= at >= own - left
    if c.bounded[1]:
        seen &= at <= own + right
    mine, theirs = (slice(int(b[chosen]), int(b[chosen + 1])) for b in begins)
    for b in range(batch):
        for h in range(heads_k * shared):
            want, exact, values = reference(q[b, mine, h], k[b, theirs, h // shared], v[b, theirs, h // shared], seen)
            error = np.abs(out[b, mine, h].astype(np.float64) - want)
            rounded = ROUNDED * values + 1e-5 if c.bits == 8 else 0.0
            assert (error <= UNITS[c.result] * (np.abs(want) + 0.5) + rounded).all(), said
            assert np.allclose(logs[b, mine, h], exact, rtol=0, atol=3e-4 if c.emulated else 1e-4), said
    return said


def assemble() -> int:
    """Compile each kind of kernel and return how many spill registers or serialize wgmmas."""
    wrong = 0
    for element, head, mask, packed in product(("bf16", "f8E4M3FN"), HEADS, MASKS, (False, True)):
        c = default_config(element, head, mask)._replace(packed=packed, lse=True, from_end=True)
        if packed and c.transposes and head > 192:
            c = c._replace(tile_n=96)
        report = compile(attention_text(c), filename=f"{c.name}.mlir").report
        spilled = int(re.findall(r"(\d+) bytes spilled", report)[0])
        most = 64 if c.transposes else 0
        if head == 256:
            most = 256 if c.transposes else 16
        bad = "C75" in report or spilled > most
        wrong += bad
        print("WRONG" if bad else "ok", c.name, report.strip().splitlines()[-1], flush=True)
    return wrong


def main() -> int:
    """Run the trials and return the exit status."""
    p = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    p.add_argument("--count", type=int, default=20)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--assemble", action="store_true")
    options = p.parse_args()
    if options.assemble:
        return 1 if assemble() else 0
    for i in range(options.count):
        print(i, trial(random.Random(f"{options.seed} {i}")), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
