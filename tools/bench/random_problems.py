"""``cute-bench op --random GROUP``: operations on random problems, checked and compared with their fastest peer.

A function of :data:`DRAW` draws a problem of a group; its docstring states the distribution and the error bound.
Problem ``i`` of a seed is always the same.  First, parallel processes run each problem once, to fill the disk caches of
kernels and of ``torch.compile``.  Then this process checks and times the problems one at a time on an idle GPU.
Results are compared with float64, or with the peer in f32 if float64 would take too long.

    cute-bench op --random conv --seed 1 --json conv.json      200 convolutions on a GPU
    cute-bench op --random conv --count 8 --plan               the same kinds, small, on the interpreter (no GPU)
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from math import exp, log
from typing import Any, Protocol
from unittest.mock import patch

from cute_dialect.op.errors import UnsupportedError
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.cases.host_time import random_rows
from cute_dialect.tools.bench.cases.op.attention import Attention
from cute_dialect.tools.bench.cases.op.block import Block, fits
from cute_dialect.tools.bench.cases.op.conv import Conv
from cute_dialect.tools.bench.cases.op.decode import Decode, decoding
from cute_dialect.tools.bench.cases.op.epilogues import ACTIVATIONS, TextEpilogue
from cute_dialect.tools.bench.cases.op.mixed import Mixed
from cute_dialect.tools.bench.cases.op.rows import Rows
from cute_dialect.tools.bench.runner import Row, Say, Trial, in_processes, is_gpu_alive, ratio_lines, row, speeds


class Drawn(Protocol):
    """A random problem; hashable and picklable."""

    @property
    def name(self) -> str:
        """The name of the row, which identifies the problem."""
        ...

    @property
    def operation(self) -> str:
        """The key of the summary, for example ``dgrad``."""
        ...

    def tiny(self) -> Drawn:
        """Return a problem of the same kind that takes about a second on the interpreter."""
        ...

    def trial(self, device: str, compiled: bool) -> Trial:
        """Create the data on ``"cuda"`` or ``"cpu"``; ``compiled`` adds ``torch.compile`` to the peers."""
        ...


def log_uniform(rng: random.Random, low: float, high: float, step: int = 1) -> int:
    """Return a multiple of ``step`` from ``low`` to ``high``, uniform on a logarithmic scale.

    >>> all(8 <= log_uniform(random.Random(i), 8, 64, 8) <= 64 for i in range(99))
    True
    """
    found = exp(rng.uniform(log(low), log(high)))
    return min(int(high) // step * step, max(-(-int(low) // step) * step, round(found / step) * step))


def problems(group: str, count: int, seed: int) -> list[Drawn]:
    """Return the first ``count`` problems of a seed.

    >>> problems("conv", 2, 1) == problems("conv", 3, 1)[:2]
    True
    """
    return [DRAW[group](random.Random(f"{group} {seed} {i}"), i) for i in range(count)]


def plan(group: str, count: int, seed: int, say: Say) -> dict[str, object]:
    """Print the problems of a seed, and check a small problem of each kind on the interpreter.

    Returns the rows, without times, and the errors.
    """
    rows: list[Row] = []
    wrong: list[str] = []
    for number, problem in enumerate(problems(group, count, seed)):
        small = problem.tiny()
        say(f"  {number:4} {problem.name}; as {small.name}")
        try:
            share = small.trial("cpu", False).check()
        except Exception as e:  # The other problems are still checked.
            wrong.append(f"problem {number}, {small.name}: {type(e).__name__}: {e}")
            say(f"  failed: {wrong[-1]}")
            continue
        rows.append({"name": problem.name, "operation": problem.operation, "tiny": small.name, "error": share})
    return {"rows": rows, "wrong": wrong}


def _is_compiled(group: str, number: int) -> bool:
    """Return True if ``torch.compile`` is a peer of problem ``number``.

    Compilation takes seconds, so only blocks and every second problem of rows and epilogues have this peer.
    """
    return group == "block" or (group in ("rows", "epilogue") and number % 2 == 0)


def _warm(job: tuple[str, int, Drawn]) -> str:
    """Run a problem and its peers once in a child process to fill the disk caches; return the error message."""
    import torch

    group, number, problem = job
    torch.set_num_threads(1)
    try:
        trial = problem.trial("cuda", _is_compiled(group, number))
        trial.ours()
        if "compiled" in trial.peers:
            trial.peers["compiled"]()
        torch.cuda.synchronize()
    except Exception as e:  # The error is reported when the problem is measured.
        return f"{type(e).__name__}: {e}"
    finally:
        torch.cuda.empty_cache()
    return ""


def run(group: str, count: int, seed: int, *, runs: int, say: Say) -> dict[str, object]:
    """Check and measure ``count`` problems of a seed; wrong results and rejected problems are reported at the end."""
    if group == "host":
        return _host(count, seed, say)
    import torch

    begin = time.monotonic()
    drawn = problems(group, count, seed)
    jobs = [(group, i, p) for i, p in enumerate(drawn)]
    # A process compiles one kernel at a time.  Each has a CUDA context, so more than 16 would need much memory.
    processes = min(16, len(os.sched_getaffinity(0)))
    with patch.dict(os.environ, {"TORCHINDUCTOR_COMPILE_THREADS": "1"}):
        try:
            in_processes(_warm, jobs, [p.name for p in drawn], what="compiling", unit="problems", processes=processes)
        except BrokenProcessPool:  # Kernels that are not in the cache yet are compiled when they are measured.
            say("  a compile process crashed; the remaining kernels are compiled one at a time")
    compiled_s = time.monotonic() - begin
    say(f"  compiled in {compiled_s:.0f} s")
    rows: list[Row] = []
    wrong: list[str] = []
    for number, problem in enumerate(track(drawn, f"measuring {group}", "problems")):
        try:
            rows.append(_measured(group, number, problem, runs, say))
        except Exception as e:  # The other problems are still measured.
            refused = "refused: " if isinstance(e, UnsupportedError) else ""
            wrong.append(f"problem {number}, {problem.name}: {refused}{type(e).__name__}: {e}")
            say(f"  failed: {wrong[-1]}")
            if not is_gpu_alive():
                wrong.append(f"the GPU context is broken: {count - number - 1} problems were not measured")
                break
        torch.cuda.empty_cache()
    for line in summary(rows):
        say(line)
    seconds = round(time.monotonic() - begin, 1)
    say(f"  {len(rows)} of {count} measured, {len(wrong)} wrong or rejected, {seconds} s")
    return {
        "group": group, "seed": seed, "count": count, "seconds": seconds, "compile_seconds": round(compiled_s, 1),
        "rows": rows, "wrong": wrong,
    }  # fmt: skip


def _host(count: int, seed: int, say: Say) -> dict[str, object]:
    """Measure host time; rows have ``ours`` and ``peer`` in microseconds per call."""
    rows, wrong = random_rows(count, seed, say)
    for line in summary(rows):
        say(line)
    return {"group": "host", "seed": seed, "count": count, "rows": rows, "wrong": wrong}


def _measured(group: str, number: int, problem: Drawn, runs: int, say: Say) -> Row:
    """Check and time a problem."""
    trial = problem.trial("cuda", _is_compiled(group, number))
    share = trial.check()
    times, speed = speeds(trial, trial.contestants, max(runs // 5, 5), warmup=3, hide_host=True)
    peers_us = {k: times[k] for k in trial.peers}
    best = min(peers_us, key=lambda k: times[k])
    more = {"group": group, "operation": problem.operation, "number": number, "us": times["ours"],
            "peers_us": peers_us, "best_peer": best, "error": share}  # fmt: skip
    if trial.copy is not None:
        more["of_copy"] = times["copy"] / times["ours"]
    found = row(problem.name, trial.unit, speed["ours"], speed[best], **more)
    peers = ", ".join(f"{k} {t:.1f}" for k, t in peers_us.items())
    say(f"  {number:4} {problem.name}: {times['ours']:.1f} us, {peers}, ratio {found['ratio']:.3f}; error {share:.2f}")
    return found


def summary(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of a table: all problems, those with ``torch.compile`` as a peer, and each operation.

    A further line has the speeds relative to a copy of the same bytes.

    >>> row = {"operation": "fprop", "ratio": 1.1}
    >>> summary([row, {**row, "ratio": 0.9}])[1].split()
    ['all', '2', '0.995', '0.900', '0.900', '1', 'of', '2']
    """
    classes: dict[str, list[float]] = {}
    for r in rows:
        has_compiled = "compiled" in r.get("peers_us", ())
        for name in ("all", *["with torch.compile"] * has_compiled, str(r["operation"])):
            classes.setdefault(name, []).append(r["ratio"])
    classes["share of the copy bandwidth"] = [r["of_copy"] for r in rows if "of_copy" in r]
    return ratio_lines(classes)


ATTENTION_FLOPS, ATTENTION_BYTES = 5e11, 4e9


def draw_attention(rng: random.Random, number: int) -> Attention:
    """Draw an attention call.

    * Elements: f16 or bf16.
    * Heads: 64 or 128 elements in two of three problems, else 32, 80, 96, 192 or 256; 1 to 32 query heads, which share
      key heads in groups of 1, 2, 4 or 8; either memory layout.
    * Lengths: a quarter is decoding (1 to 16 queries, 256 to 65,536 keys, 1 to 128 sequences), a fifth is packed (2 to
      16 sequences of 16 to 4,096), a fifth has a window.  The others have 64 to 8,192 queries and one to four times as
      many keys.
    * Half is causal, aligned at the first or last key.  A third of the problems without decoding is backward.
    * At most 5e11 FLOPs and 4 GB.

    Data is normally distributed.  64 rows of up to four heads are compared with float64.  The tolerance is 2^-9 (bf16:
    2^-6) of the element and of the RMS.  Gradients of one key head of two sequences are checked by
    :meth:`Attention.check_gradient`.
    """
    while True:
        element, layout = rng.choice(("f16", "bf16")), rng.choice(("bhsd", "bshd"))
        head = rng.choice((64, 128)) if rng.random() < 2 / 3 else rng.choice((32, 80, 96, 192, 256))
        shared = rng.choice((1, 1, 2, 4, 8))
        heads_k = max(1, log_uniform(rng, 1, 32) // shared)
        causal = rng.choice(("", "", "top_left", "bottom_right"))
        style, window, lengths, backward = rng.random(), None, tuple[int, ...](), False
        batch = log_uniform(rng, 1, 32)
        if style < 0.25:
            queries, keys = rng.choice((1, 1, 1, 2, 4, 16)), log_uniform(rng, 256, 65536)
            batch = log_uniform(rng, 1, 128)
            causal = "bottom_right" if causal and queries > 1 else ""
        elif style < 0.45:
            lengths = tuple(log_uniform(rng, 16, 4096) for _ in range(rng.randint(2, 16)))
            queries = keys = max(lengths)
            batch, layout = len(lengths), "packed"
            causal = "top_left" if causal else ""
        else:
            queries = log_uniform(rng, 64, 8192)
            keys = queries if rng.random() < 2 / 3 else log_uniform(rng, queries, 4 * queries)
            if style < 0.65:
                window = (log_uniform(rng, 16, 2048), 0 if causal else log_uniform(rng, 16, 2048))
        if style >= 0.25:
            backward = rng.random() < 1 / 3
        found = Attention(
            element, head, batch, heads_k * shared, heads_k, queries, keys, causal, window, layout, lengths, backward
        )
        while found.batch > 1 and not lengths and not _attention_fits(found):
            found = found._replace(batch=found.batch // 2)
        if _attention_fits(found):
            return found


def _attention_fits(case: Attention) -> bool:
    # The float64 reference of gradients stores the scores of the heads that share keys.
    scores = case.queries * case.keys * case.heads // case.heads_k if case.backward else 0
    return case.flops <= ATTENTION_FLOPS and case.traffic <= ATTENTION_BYTES and scores <= 1 << 30


DECODE_BYTES = 1e9


def draw_decode(rng: random.Random, number: int) -> Decode:
    """Draw an attention call of few queries, as when tokens are generated.

    * Elements: f16 or bf16.
    * Heads: 64 or 128 elements in two of three problems, else 96, 192 or 256; 1 to 16 key heads, log-uniform, each
      shared by 1, 2, 4 or 8 query heads.
    * Queries: one in half of the problems, else 2 to 16, which are causal and end at the last key.
    * Lengths: 1,024 to 65,536 keys and 1 to 128 sequences, log-uniform, and at most 1 GB.  The sequences of a problem
      have the same length, because torch's ``scaled_dot_product_attention`` supports no other.
    * Keys and values: contiguous, or pages of 16, 64 or 128 keys in random order.

    Data is normally distributed, and NaN past the last key of a sequence.  Results are checked like those of
    :func:`draw_attention`.
    """
    while True:
        element = rng.choice(("f16", "bf16"))
        head = rng.choice((64, 128)) if rng.random() < 2 / 3 else rng.choice((96, 192, 256))
        heads_k, shared = log_uniform(rng, 1, 16), rng.choice((1, 2, 4, 8))
        queries = 1 if rng.random() < 0.5 else rng.randint(2, 16)
        batch, keys = log_uniform(rng, 1, 128), log_uniform(rng, 1024, 65536)
        found = decoding(
            keys, batch, queries, heads_k * shared, heads_k, head, element, page=rng.choice((0, 16, 64, 128))
        )
        if found.call.traffic <= DECODE_BYTES:
            return found


CONV_FLOPS, CONV_BYTES = 2e11, 1e9


def draw_conv(rng: random.Random, number: int) -> Conv:
    """Draw a convolution.

    * Pass: forward, dgrad and wgrad alternately; f16 or bf16.
    * Groups: one in two of five problems, depthwise in one of four, else 2 to 64.
    * Channels: 3 to 1,024, log-uniform, three in four rounded to multiples of 8.
    * Filters: 1 to 7, one in five not square; stride 1, 2 or 3 in 14, 5 and 1 of 20 problems; dilation 1, 2 or 3 in 16,
      3 and 1 of 20 if the filter is larger than 1; padding that keeps the image size in three of four, else at most
      that.
    * Images: 7 to 256, log-uniform, one in five not square; 1 to 128 images, limited by 2e11 FLOPs and 1 GB.

    Data is normally distributed.  The tolerance is 2^-10 (bf16: 2^-7) of the element plus 2^-11 sqrt(terms), compared
    with a float64 result that does not use cuDNN.
    """
    kind = ("fprop", "dgrad", "wgrad")[number % 3]
    while True:
        element = rng.choice(("f16", "bf16"))
        style = rng.random()
        step = 8 if rng.random() < 0.75 else 1
        if style < 0.4:
            groups, c, k = 1, *(log_uniform(rng, 3, 1024, step) for _ in "ck")
        elif style < 0.65:
            groups = c = log_uniform(rng, 3, 1024, step)
            k = c * (2 if rng.random() < 0.1 else 1)
        else:
            groups = rng.choice((2, 4, 8, 16, 32, 32, 64))
            most = 1024 // groups
            c, k = (groups * log_uniform(rng, 1, most, min(step, most)) for _ in "ck")
        side = rng.randint(1, 7)
        taps = (side, rng.randint(1, 7)) if rng.random() < 0.2 else (side, side)
        stride = rng.choice((1,) * 14 + (2,) * 5 + (3,))
        dilation = rng.choice((1,) * 16 + (2,) * 3 + (3,)) if max(taps) > 1 else 1
        same = (dilation * (taps[0] - 1) // 2, dilation * (taps[1] - 1) // 2)
        padding = same if rng.random() < 0.75 else (rng.randint(0, same[0]), rng.randint(0, same[1]))
        size = log_uniform(rng, 7, 256)
        image = (size, log_uniform(rng, 7, 256)) if rng.random() < 0.2 else (size, size)
        found = Conv(
            kind,
            element,
            log_uniform(rng, 1, 128),
            image,
            c,
            k,
            taps,
            (stride, stride),
            padding,
            (dilation, dilation),
            groups,
        )
        while found.n > 1 and not _conv_fits(found):
            found = found._replace(n=found.n // 2)
        if min(found.result) > 0 and _conv_fits(found):
            return found


def _conv_fits(one: Conv) -> bool:
    return min(one.result) < 1 or (one.flops <= CONV_FLOPS and 2 * one.elements <= CONV_BYTES)


EPILOGUE_FLOPS = 3e11


def draw_epilogue(rng: random.Random, number: int) -> TextEpilogue:
    """Draw a GEMM and an epilogue.

    * GEMM: f16 or bf16; M 16 to 16,384, N and K 64 to 16,384, log-uniform, N and K multiples of 8, at most 3e11 FLOPs;
      B is stored as (N, K) or as (K, N).
    * Epilogue: 1 to 5 steps on the last value or on two earlier values.  A step adds or multiplies a per-column,
      per-row or full array, applies one of ten activations, scales a value, or takes the maximum or (once) the product
      of two values.
    * Results: one in four returns an earlier value as a second result, one in eight a row sum or row sum of squares.

    Data is normally distributed, with accumulators of about 1.  64 rows are compared with float64.  The tolerance is
    2^-10 (bf16: 2^-7) of the element and of the RMS, plus 8 times the effect of accumulator errors of 2^-12.
    """
    element = rng.choice(("f16", "bf16"))
    while True:
        m, n, k = log_uniform(rng, 16, 16384), log_uniform(rng, 64, 16384, 8), log_uniform(rng, 64, 16384, 8)
        if 2.0 * m * n * k <= EPILOGUE_FLOPS:
            break
    linear = rng.random() < 0.5
    steps = rng.randint(1, 5)
    values, body = ["accum"], list[str]()
    while len(body) < steps:
        x = values[-1]
        other = rng.choice(values)
        kind = rng.choice(("bias", "bias", "array", "array", "activation", "activation", "scale", "two"))
        if kind == "bias" and not body:
            made = f"{x} + bias"
        elif kind in ("bias", "array"):
            made = f"{x} {rng.choice('+*')} {rng.choice(('bias', 'row', 'skip', 'skip'))}"
        elif kind == "activation":
            made = f"{rng.choice(ACTIVATIONS)}({x})"
        elif kind == "scale":
            made = f"{x} * {rng.choice((0.125, 0.5, 1.702))}"
        else:
            made = rng.choice((f"{x} * {other}", f"maximum({x}, {other})", f"{x} + {other}"))
            if "*" in made and any(f"{y} * {z}" in line for line in body for y in values for z in values):
                continue  # Only one product of values is drawn, because higher powers overflow f16.
        values.append(f"x{len(body)}")
        body.append(f"{values[-1]} = {made}")
    body.append(f"D = {values[-1]}")
    results = ["D"]
    chance = rng.random()
    if chance < 0.25 and len(values) > 2:
        results.append(rng.choice(values[1:-1]))
    elif chance < 0.375:
        body.append(f"reduced = {rng.choice(('sum', 'sum_squares'))}(D, -1)")
        results.append("reduced")
    return TextEpilogue(element, m, n, k, linear, tuple(body), tuple(results))


FORWARD = (
    "softmax", "log_softmax", "logsumexp", "sum", "mean", "max", "rms_norm", "rms_norm + residual", "layer_norm",
    "layer_norm + residual", "cross_entropy", "transpose",
)  # fmt: skip
BACKWARD = tuple(f for f in FORWARD if f not in ("sum", "transpose"))
"""Without the sum: its gradient is a broadcast view, for which neither side launches a kernel."""


def draw_rows(rng: random.Random, number: int) -> Rows:
    """Draw a row operation.

    * Pass: forward in three of five problems, else gradients of all arguments.  The gradient of a sum is not drawn: it
      is a broadcast view, for which neither side launches a kernel.  The transpose is a copy on both sides.
    * Elements: bf16, f16 or f32 in 5, 3 and 2 of 10 problems.
    * Sizes: 1 to 200,000 columns, log-uniform, half of them rounded to multiples of 8 if at least 8; 2^16 to 2^27
      elements in all, log-uniform.

    Data is normally distributed.  All elements are compared with float64.  The tolerance is 4e-6 (f32), 1.1e-3 (f16) or
    9e-3 (bf16) of the element and of the RMS of the result.  For sums, and for gradients whose terms cancel, it is
    relative to the magnitude of the terms.
    """
    backward = rng.random() >= 0.6
    function = rng.choice(BACKWARD if backward else FORWARD)
    element = rng.choice(("bf16",) * 5 + ("f16",) * 3 + ("f32",) * 2)
    n = log_uniform(rng, 1, 200_000)
    if n >= 8 and rng.random() < 0.5:
        n = n // 8 * 8
    rows = max(1, log_uniform(rng, 2**16, 2**27) // n)
    return Rows(function, backward, element, min(rows, 1 << 20), n)


def draw_mixed(rng: random.Random, number: int) -> Mixed:
    """Draw a GEMM with packed weights.

    * Rows: 1 to 4,096, log-uniform.
    * Weights: N and K 256 to 16,384, log-uniform, three in four rounded to multiples of 128; 4 bits in three of four
      problems, else 8, of which one in two is e4m3.
    * Scales: bf16, f16 or f32 per 32, 64 or 128 columns or per row; zero points of integers in one of two problems.
    * x and the result: bf16 in two of three problems, else f16; a bias in one of three.

    Integers are uniform, scales between 0.5 and 1.5, and x is normally distributed.  64 rows are compared with float64.
    The tolerance is 2^-11 (bf16: 2^-8) of the element plus 2^-11 of the root of the sum of squared terms, and five
    times the former of that if weights are rounded.
    """
    m = log_uniform(rng, 1, 4096)
    n, k = (log_uniform(rng, 256, 16384, 128 if rng.random() < 0.75 else 8) for _ in "nk")
    weight = "ui4" if rng.random() < 0.75 else rng.choice(("i8", "f8E4M3FN"))
    group = rng.choice(("g128", "g128", "g64", "g32", "row"))
    zeros = "-z" * (rng.random() < 0.5 and weight != "f8E4M3FN")
    form = f"{weight}-{group}-{rng.choice(('bf16', 'f16', 'f32'))}{zeros}"
    return Mixed(m, n, k, form, rng.choice(("bf16", "bf16", "f16")), rng.random() < 1 / 3)


def draw_block(rng: random.Random, number: int) -> Block:
    """Draw a transformer block.

    * Pass: the forward pass and a training step alternately; bf16 in three of four problems, else f16.
    * Width: 2,560 to 4,096, a multiple of 256; heads of 128 elements, which share key heads in groups of 1, 2, 4 or 8
      that divide their number; a hidden layer of 2 to 4 times the width, a multiple of 256.
    * Tokens: 1 to 8 sequences of 1,000 to 8,192, log-uniform, at most 2e13 FLOPs.

    Data is normally distributed.  The first 512 tokens and, of steps, their gradients are compared with float64; all
    results and gradients with torch.  The tolerance of the norm of the error is 2 % (f16: 0.4 %) of the norm.
    """
    while True:
        width = 256 * rng.randint(10, 16)
        heads = width // 128
        shared = heads // rng.choice([n for n in (1, 2, 4, 8) if heads % n == 0])
        batch, length = log_uniform(rng, 1, 8), log_uniform(rng, 1000, 8192)
        element, hidden = (
            rng.choice(("bf16", "bf16", "bf16", "f16")),
            256 * (log_uniform(rng, 2 * width, 4 * width) // 256),
        )
        found = Block(element, batch, length, width, heads, shared, hidden, number % 2 == 1)
        while found.batch > 1 and not fits(found):
            found = found._replace(batch=found.batch // 2)
        if fits(found):
            return found


DRAW: dict[str, Callable[[random.Random, int], Drawn]] = {
    "conv": draw_conv,
    "rows": draw_rows,
    "epilogue": draw_epilogue,
    "attention": draw_attention,
    "decode": draw_decode,
    "mixed": draw_mixed,
    "block": draw_block,
}
