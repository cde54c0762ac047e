"""Host time of calls of ``cute_dialect.op`` compared with torch: the time until the call returns.

Every function is called with small arrays in three ways: without gradients, with inputs that require gradients, and
forward and backward.  The GPU is idle before each call, so the host determines the time.  A ratio above 1 means that
ours is faster::

    rows = measure(print)      # [{"name": "linear forward", "ours": 14.1, "peer": 12.9, "ratio": 0.91, …}, …]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

from cute_dialect import op
from cute_dialect.tools.bench.checks import BenchError
from cute_dialect.tools.bench.peers import normal as normal_of
from cute_dialect.tools.bench.peers import operator
from cute_dialect.tools.bench.runner import Row, Say, row

__all__ = ["HostCase", "host_cases", "host_time", "measure", "random_rows"]


_Way: TypeAlias = "tuple[str, Callable[[], object], Callable[[], object]]"
"""A way to call a function: its name, our call and torch's."""


class HostCase(NamedTuple):
    """A function of ``op`` and its equivalent in torch on the same tensors."""

    name: str
    ours: Callable[..., Any]
    torchs: Callable[..., Any]
    inputs: tuple[Any, ...]
    leaves: tuple[int, ...]
    """Indices of the inputs that get gradients; empty for functions without gradients."""


def host_cases() -> list[HostCase]:
    """Return a case for every public function, with tensors on the current GPU."""
    import torch
    import torch.nn.functional as F

    def normal(*shape: int) -> Any:
        return normal_of("bf16", *shape)

    x, w, bias, batch = normal(256, 256), normal(256, 256), normal(256), normal(4, 128, 128)
    # Distinct tensors: a tensor that is passed twice would prevent a cached call.
    y, weight = normal(256, 256), normal(256)
    q, k, v = (normal(1, 4, 64, 64) for _ in range(3))
    targets = torch.randint(0, 256, (256,), device="cuda")
    image, taps = normal(2, 64, 16, 16).to(memory_format=torch.channels_last), normal(64, 64, 3, 3)
    taps = taps.to(memory_format=torch.channels_last)
    e4m3 = [t.to(torch.float8_e4m3fn) for t in (x, w)]
    scales = [torch.ones(1, device="cuda") for _ in range(2)]
    offsets = torch.tensor([128, 256], device="cuda", dtype=torch.int32)
    experts, n = normal(2, 256, 256), (256,)

    def plus(a: Any, b: Any) -> Any:
        return op.epilogue.relu(a + b)

    fused = op.elementwise(plus)
    return [
        HostCase("mm", op.mm, torch.mm, (x, w), (0, 1)),
        HostCase("bmm", op.bmm, torch.bmm, (batch, batch.clone()), (0, 1)),
        HostCase("addmm", op.addmm, torch.addmm, (y, x, w), (0, 1, 2)),
        HostCase("baddbmm", op.baddbmm, torch.baddbmm, (batch.clone(), batch, batch.clone()), (0, 1, 2)),
        HostCase("matmul", op.matmul, torch.matmul, (batch, w[:128, :128].contiguous()), (0, 1)),
        HostCase("linear", op.linear, F.linear, (x, w, bias), (0, 1, 2)),
        HostCase("linear 3d", op.linear, F.linear, (x.view(2, 128, 256), w, bias), (0, 1, 2)),
        HostCase(
            "linear gelu",
            lambda a, b, c: op.linear(a, b, c, "gelu"),
            lambda a, b, c: F.gelu(F.linear(a, b, c)),
            (x, w, bias),
            (0, 1, 2),
        ),
        HostCase(
            "scaled_mm",
            lambda a, b, s, t: op.scaled_mm(a, b.t(), s, t),
            lambda a, b, s, t: operator("_scaled_mm")(a, b.t(), s, t, out_dtype=torch.bfloat16),
            (*e4m3, *scales),
            (),
        ),
        HostCase(
            "grouped_mm",
            lambda a, b, offs: op.grouped_mm(a, b, offs),
            lambda a, b, offs: operator("_grouped_mm")(a, b, offs=offs),
            (x, experts, offsets),
            (0, 1),
        ),
        HostCase("softmax", op.softmax, lambda t: torch.softmax(t, -1), (x,), (0,)),
        HostCase("log_softmax", op.log_softmax, lambda t: torch.log_softmax(t, -1), (x,), (0,)),
        HostCase("rms_norm", op.rms_norm, lambda t, s: F.rms_norm(t, n, s), (x, weight), (0, 1)),
        HostCase("layer_norm", op.layer_norm, lambda t, s, b: F.layer_norm(t, n, s, b), (x, weight, bias), (0, 1, 2)),
        HostCase("cross_entropy", op.cross_entropy, F.cross_entropy, (x, targets), (0,)),
        HostCase("sum", op.sum, lambda t: torch.sum(t, -1), (x,), (0,)),
        HostCase("mean", op.mean, lambda t: torch.mean(t, -1), (x,), (0,)),
        HostCase("max", op.max, lambda t: torch.amax(t, -1), (x,), (0,)),
        HostCase("logsumexp", op.logsumexp, lambda t: torch.logsumexp(t, -1), (x,), (0,)),
        HostCase("transpose", op.transpose, lambda t: t.t().contiguous(), (x,), ()),
        HostCase("add", op.add, torch.add, (x, y), (0, 1)),
        HostCase("mul", op.mul, torch.mul, (x, y), (0, 1)),
        HostCase("elementwise", fused, lambda a, b: torch.relu(a + b), (x, y), (0, 1)),
        HostCase(
            "conv2d",
            lambda a, f: op.conv2d(a, f, None, 1, 1),
            lambda a, f: F.conv2d(a, f, None, 1, 1),
            (image, taps),
            (0, 1),
        ),
        HostCase(
            "attention",
            lambda a, b, c: op.attention(a, b, c, causal=True),
            lambda a, b, c: F.scaled_dot_product_attention(a, b, c, is_causal=True),
            (q, k, v),
            (0, 1, 2),
        ),
        HostCase(
            "attention, one tensor",
            lambda a: op.attention(a, a, a, causal=True),
            lambda a: F.scaled_dot_product_attention(a, a, a, is_causal=True),
            (q,),
            (0,),
        ),
    ]


def host_time(call: Callable[[], object], calls: int = 40) -> float:
    """Return the median microseconds until a call returns, with an idle GPU before each call."""
    import torch

    for _ in range(5):
        call()
    times: list[float] = []
    for _ in range(calls):
        torch.cuda.synchronize()
        begin = perf_counter()
        call()
        times.append(perf_counter() - begin)
    torch.cuda.synchronize()
    return median(times) * 1e6


def measure(say: Say, names: Sequence[str] = (), calls: int = 40) -> list[Row]:
    """Measure and report some or all cases; a case that fails has ``error`` instead of times."""
    cases = [case for case in host_cases() if not names or case.name in names]
    return [_row(case, way, calls, say) for case in cases for way in _ways(case)]


def random_rows(count: int, seed: int, say: Say) -> list[Row]:
    """Measure ``count`` calls in random order, so that cached calls alternate as in a program.

    Raises BenchError after all calls are measured if some failed.
    """
    random, drawn = Random(seed), list[tuple[HostCase, _Way]]()
    ways = [(case, way) for case in host_cases() for way in _ways(case)]
    while len(drawn) < count:
        drawn += random.sample(ways, len(ways))
    rows = [_row(case, way, 40, say) for case, way in drawn[:count]]
    failed = [f"{r['name']}: {r['error']}" for r in rows if "error" in r]
    if failed:
        raise BenchError("\n".join(failed))
    return rows


def _row(case: HostCase, of: _Way, calls: int, say: Say) -> Row:
    """Measure one call."""
    way, ours, torchs = of
    name = f"{case.name} {way}"
    more = {"group": "host", "operation": way}
    try:
        pairs = [(host_time(ours, calls), host_time(torchs, calls)) for _ in range(2)]
    except Exception as e:  # The other calls are still measured.
        say(f"  {name:40} FAILED {type(e).__name__}: {e}")
        return {"name": name, **more, "error": f"{type(e).__name__}: {e}"}
    mine, peer = (min(x) for x in zip(*pairs))
    say(f"  {name:40} {mine:8.1f} us, torch {peer:8.1f} us, ratio {peer / mine:.2f}")
    return row(name, "us", mine, peer, **more)


def _ways(case: HostCase) -> list[_Way]:
    """Return the ways to call a case: a name, our call and torch's."""
    import torch

    inputs = [t.detach() for t in case.inputs]
    ways = [("forward", lambda: case.ours(*inputs), lambda: case.torchs(*inputs))]
    if not case.leaves:
        return ways
    learning = [t.detach().requires_grad_() if i in case.leaves else t for i, t in enumerate(case.inputs)]
    leaves = [learning[i] for i in case.leaves]
    with torch.no_grad():
        like = case.torchs(*inputs)
    grad = torch.randn_like(like)

    def both(function: Callable[..., Any]) -> Callable[[], object]:
        def call() -> object:
            result = function(*learning)
            return torch.autograd.grad(result, leaves, grad.to(result.dtype))

        return call

    return [
        *ways,
        ("with gradients", lambda: case.ours(*learning), lambda: case.torchs(*learning)),
        ("forward and backward", both(case.ours), both(case.torchs)),
    ]
