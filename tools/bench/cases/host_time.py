"""``cute-bench launch``: host time of launches compared with ``torch.add``, ``torch.mm`` and ``torch.bmm``.

The kernels are an f32 elementwise add (three arrays) and an f16 Hopper GEMM (three tensor maps).  The time per call in
microseconds is the best of 50 rounds of 200 calls, so that the launch queue never fills.  Measured are a call with
torch tensors, a bound launch, a call that alternates between four output tensors, a call that alternates between two
shapes, and ``cuLaunchKernelEx`` with prepared arguments.  The differences split the time of a call: reading, checking
and writing arguments (call - bound), stream and frame (bound - driver), and the driver.  First, results are compared
with torch for plain and bound launches, from a CUDA graph, and from two threads.

Then whole operations are measured: ``op.mm`` and ``op.bmm``, with and without a given output, compared with torch, and
the calls of :func:`compared`: GEMMs with epilogues, plans, row and elementwise functions, operations with several
launches, and training steps.  All are so small that GPU time is negligible, and they repeat the arguments of their
first call, so that no kernel is selected again.

:func:`random_rows`, which ``cute-bench op --random host`` runs, calls every function of ``op`` with small arrays in
three ways: without gradients, with inputs that require gradients, and forward and backward.  The GPU is idle before
each call, so the host determines the time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count, cycle
from random import Random
from statistics import median
from threading import Thread
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from unittest.mock import patch

import numpy as np

from cute_dialect import op
from cute_dialect.kernels.elementwise.add import elementwise_add_text, streaming_tile
from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.op.execute.kernels import text_of
from cute_dialect.op.execute.rows import row_kernel, sum_kernel
from cute_dialect.op.select.kernel_choice import Problem
from cute_dialect.op.select.timing import host_overhead
from cute_dialect.runtime import native
from cute_dialect.runtime.progress import track
from cute_dialect.runtime.settings import flag
from cute_dialect.tools.bench.cases.gemm import chosen
from cute_dialect.tools.bench.cases.op import Case
from cute_dialect.tools.bench.cases.op.conv import named as conv
from cute_dialect.tools.bench.cases.op.epilogues import Fused, Learned
from cute_dialect.tools.bench.cases.op.gemm import Scaled, Typed
from cute_dialect.tools.bench.runner import BenchError, Benchmark, Row, Say, Text, build_kernels, loaded, operator, row
from cute_dialect.tools.bench.runner import normal as normal_of

if TYPE_CHECKING:  # pragma: no cover
    import torch

    from cute_dialect.runtime.launch import Kernel


# ------------------------------------------------------------------------------------------------------------- launches


OPERATIONS = {"mm": Problem(128, 128, 256, major_b="n"), "bmm": Problem(128, 128, 64, major_b="n", matrices=4)}
"""Shapes of the operations, so small that GPU time is negligible."""


M, N, K = 128, 128, 256
"""The GEMM: (M, K) (K, N) -> (M, N) of f16."""


class Call(NamedTuple):
    """A call of ours and the equivalent of torch, with the same result up to rounding.

    ``check`` compares calls with several results or other tolerances with float64, and raises BenchError.
    """

    name: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    check: Callable[[], object] | None = None


CASES: Mapping[str, Case] = {
    "op.scaled_mm, row": Scaled(M, N, K, "row"),
    "op.scaled_mm, block": Scaled(M, N, K, "block"),
    "op.mm, padded": Typed(1023, 1023, 1023, "i8", "i8", "i32"),
    "op.mm, reduction": Fused("squares", M, N, K),
    "op.conv2d, depthwise": conv("fprop", 2, 14, 96, 96, groups=96),
    "op.mm, forward and backward": Learned("bias_gelu", M, N, K),
}
"""Calls with several launches, from the tables of other benchmarks."""


class Measured(NamedTuple):
    """Host time of a launch in microseconds.

    The fields are a call, a bound launch, calls with alternating outputs, calls with alternating shapes, and the driver
    call alone.
    """

    call: float
    bound: float
    other_output: float
    other_shape: float
    driver: float

    def __str__(self) -> str:
        arguments, rest = self.call - self.bound, self.bound - self.driver
        return (
            f"{self.call:.2f} us a call = arguments {arguments:.2f} + stream and frame {rest:.2f} + "
            f"cuLaunchKernelEx {self.driver:.2f}"
        )


def build_launch(folder: str, chip: str) -> list[str]:
    texts: dict[str, Text] = {
        "launch-add": partial(elementwise_add_text, "f32", streaming_tile("f32")),
        "launch-gemm": gemm_text,
    }
    operators: dict[str, Text] = {c.name: partial(text_of, c) for c in map(chosen, OPERATIONS.values())}
    texts |= {f"launch-op/{name}": text for name, text in {**operators, **kernels()}.items()}
    return build_kernels(texts, folder, chip)


def run_launch(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    import torch

    x, y = (torch.randn(64, 256, device="cuda") for _ in range(2))
    a, b = (torch.randint(-2, 3, (128, 256), device="cuda").half() for _ in range(2))
    adds = [torch.empty_like(x) for _ in range(4)]
    products = [torch.empty(128, 128, device="cuda", dtype=torch.float16) for _ in range(4)]
    rows: list[Row] = []
    for name, kernel, inputs, outputs, peer in (
        ("add", loaded(folder, "launch-add").kernel("add"), (x, y), adds, torch.add),
        ("gemm", loaded(folder, "launch-gemm").kernel("launch"), (a, b), products, torch.mm),
    ):
        other = inputs if name == "add" else (a, b.t())
        expected = peer(*other)
        check(kernel, inputs, outputs[0], expected)
        check_threads(kernel, inputs, outputs, expected)
        say(f"  correct: {name}: plain, bound, from a graph, from two threads")
        ours = measure_launch(kernel, inputs, outputs)
        theirs = _host(partial(peer, *other, out=outputs[0]))
        say(f"  {name}: {ours}; torch.{peer.__name__} {theirs:.2f}")
        rows += [row(f"{name}: {k.replace('_', ' ')}", "us", value, theirs) for k, value in ours._asdict().items()]
    rows += operations(os.path.join(folder, "launch-op"), say)
    return {"rows": rows}


def operations(folder: str, say: Say) -> list[Row]:
    """Check and measure ``op.mm`` and ``op.bmm`` with the kernels in ``folder``.  Raises :class:`BenchError`."""
    import torch

    rows: list[Row] = []
    for name, ours, theirs in (("mm", op.mm, torch.mm), ("bmm", op.bmm, torch.bmm)):
        p = OPERATIONS[name]
        batch = (p.matrices,) if name == "bmm" else ()
        a, b = (torch.randint(-2, 3, (*batch, *s), device="cuda").half() for s in ((p.m, p.k), (p.k, p.n)))
        out = torch.empty((*batch, p.m, p.n), device="cuda", dtype=a.dtype)
        with patch.dict(os.environ, {"CUTE_KERNELS": folder}):
            for call in range(4):  # The first call selects a kernel; later calls allocate or get the output.
                out.fill_(float("nan"))
                found = ours(a, b, out) if call % 2 else ours(a, b)
                if not torch.equal(found, theirs(a, b)):
                    raise BenchError(f"op.{name}: the result differs from torch")
        say(f"  correct: op.{name}")
        for what, calls in (
            (f"op.{name}", (partial(ours, a, b), partial(theirs, a, b))),
            (f"op.{name}, out=", (partial(ours, a, b, out), partial(theirs, a, b, out=out))),
        ):
            mine, peer = (_host(call) for call in calls)
            rows.append(row(what, "us", mine, peer))
            say(f"  {what}: {mine:.2f} us a call; torch.{name} {peer:.2f}")
    with patch.dict(os.environ, {"CUTE_KERNELS": folder}):
        for each in track(compared(), "measuring", "calls"):
            want = each.theirs()
            for _ in range(3):  # The first call selects a kernel.
                if each.check is not None:
                    each.check()
                elif not torch.allclose(each.ours(), want, rtol=2e-3, atol=2e-3):
                    raise BenchError(f"{each.name}: the result differs from torch")
            mine, peer = _host(each.ours), _host(each.theirs)
            rows.append(row(each.name, "us", mine, peer))
            say(f"  correct: {each.name}: {mine:.2f} us a call; torch {peer:.2f}")
    return rows


def check(kernel: Kernel, inputs: tuple[torch.Tensor, ...], output: torch.Tensor, expected: torch.Tensor) -> None:
    """Launch plainly, bound and from a CUDA graph.  Raises :class:`BenchError` if an output is wrong."""
    import torch

    bound = kernel.bind(*inputs, output)
    call = partial(kernel, *inputs, output)
    graph = torch.cuda.CUDAGraph()
    call()
    with torch.cuda.graph(graph):
        call()
        bound()
    for name, launch in (("first call", call), ("call", call), ("bound", bound), ("graph", graph.replay)):
        output.fill_(float("nan"))
        launch()
        torch.cuda.synchronize()
        if not torch.equal(output, expected):
            raise BenchError(f"{kernel.name}, {name}: the output differs from torch")


def check_threads(
    kernel: Kernel, inputs: tuple[torch.Tensor, ...], outputs: list[torch.Tensor], expected: torch.Tensor
) -> None:
    """Call from two threads at once, with different outputs.  Raises :class:`BenchError` if an output is wrong."""
    import torch

    def work(mine: torch.Tensor) -> None:
        for _ in range(500):
            kernel(*inputs, mine)

    for output in outputs:
        output.fill_(float("nan"))
    torch.cuda.synchronize()
    threads = [Thread(target=work, args=(output,)) for output in outputs[:2]]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    torch.cuda.synchronize()
    if not all(torch.equal(o, expected) for o in outputs[:2]) or not all(o.isnan().all() for o in outputs[2:]):
        raise BenchError(f"{kernel.name}, from two threads: the output differs from torch")


def measure_launch(kernel: Kernel, inputs: tuple[torch.Tensor, ...], outputs: list[torch.Tensor]) -> Measured:
    """Measure the host time of each kind of launch."""
    bound = kernel.bind(*inputs, outputs[0])
    bound()
    turns = cycle(outputs)
    half = outputs[0].shape[0] // 2
    shapes = cycle([(*inputs, outputs[0]), (inputs[0][:half], *_halves(inputs[1:], outputs[0], half))])
    return Measured(
        call=_host(partial(kernel, *inputs, outputs[0])),
        bound=_host(bound),
        other_output=_host(lambda: kernel(*inputs, next(turns))),
        other_shape=_host(lambda: kernel(*next(shapes))),
        driver=_host(bound.driver_call),
    )


def _halves(rest: tuple[torch.Tensor, ...], output: torch.Tensor, half: int) -> tuple[torch.Tensor, ...]:
    """Return the first half of the output, and of the inputs with the same number of elements (not GEMM operands)."""
    same = output.shape == rest[0].shape
    return (*[x[:half] if same else x for x in rest], output[:half])


def _host(launch: Callable[[], object]) -> float:
    launch()
    return host_overhead(launch, calls=200, rounds=50)


# -------------------------------------------------------------------------------------------------------- calls of op


def scaled(accum: Any, bias: Any) -> Any:
    """Return the accumulator plus a bias: an epilogue to trace."""
    return accum + bias


def _traced() -> Any:
    fake = op.epilogue.FakeTensor
    return op.epilogue.trace(scaled, {"accum": fake("f32", (M, N)), "bias": fake("f16", (N,))})


def kernels() -> Mapping[str, Text]:
    """Return the kernels of :func:`compared` by name, with functions that compile them."""
    sizes = (M, K), (K, N)
    found = [
        op.explain(op.mm, *sizes),
        op.explain(op.mm, *sizes, bias=np.zeros(N, np.float16)),
        op.explain(op.mm, *sizes, epilogue=_traced(), args={"bias": np.zeros(N, np.float16)}),
    ]
    made: dict[str, Text] = {}
    for each in found:
        assert each.choice is not None
        made[each.choice.name] = partial(text_of, each.choice)
    x = np.zeros((M, K), np.float16)
    rows = [row_kernel("softmax", "f16", K), row_kernel("rms_norm", "f16", K, "w"), sum_kernel("sum", "f16", K, M)]
    rows += [row_kernel("layer_norm", "f16", K, "wb"), op.add.kernel(x, x)]
    made |= {kernel.name: kernel.text for kernel in rows}
    for case in CASES.values():
        made |= case.kernels()
    return made


def compared() -> list[Call]:
    """Return the calls, with tensors on the GPU."""
    import torch

    functional = torch.nn.functional

    def half(*shape: int) -> torch.Tensor:
        return torch.randint(-2, 3, shape, device="cuda").half()

    a, b, out, bias = half(M, K), half(K, N), half(M, N), half(N)
    x, y, weight, shift = half(M, K), half(M, K), half(K), half(K)
    plan, traced = op.Gemm(element="f16", layout="row"), _traced()
    run_launch, bound = partial(plan.run, a, b, None, out, sync=False), plan.bind(a, b, None, out)

    def bound_result() -> torch.Tensor:
        bound()
        return out

    return [
        Call("op.mm, bias=", partial(op.mm, a, b, bias=bias), partial(torch.addmm, bias, a, b)),
        Call(
            "op.mm, epilogue=", partial(op.mm, a, b, epilogue=traced, args={"bias": bias}),
            partial(torch.addmm, bias, a, b),
        ),
        Call("plan.run", lambda: run_launch().D, partial(torch.mm, a, b, out=half(M, N))),
        Call("plan.bind", bound_result, partial(torch.mm, a, b, out=half(M, N))),
        Call("op.softmax", partial(op.softmax, x), partial(torch.softmax, x, -1)),
        Call("op.rms_norm", partial(op.rms_norm, x, weight), partial(functional.rms_norm, x, (K,), weight)),
        Call(
            "op.layer_norm", partial(op.layer_norm, x, weight, shift),
            partial(functional.layer_norm, x, (K,), weight, shift),
        ),
        Call("op.sum", partial(op.sum, x), partial(torch.sum, x, -1)),
        Call("op.add", partial(op.add, x, y), partial(torch.add, x, y)),
        *[_of(name, case) for name, case in CASES.items()],
    ]  # fmt: skip


def _of(name: str, case: Case) -> Call:
    """Return the call of a case of another benchmark."""
    trial = case.trial()
    return Call(name, trial.ours, next(iter(trial.peers.values())), trial.check)


# ---------------------------------------------------------------------------------------------------------- calls of op


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
    table, used = (torch.tensor(t, dtype=torch.int32, device="cuda") for t in ([[0], [1], [2], [3]], [64] * 4))
    image, taps = normal(2, 64, 16, 16).to(memory_format=torch.channels_last), normal(64, 64, 3, 3)
    taps = taps.to(memory_format=torch.channels_last)
    e4m3 = [t.to(torch.float8_e4m3fn) for t in (x, w)]
    scales = [torch.ones(1, device="cuda") for _ in range(2)]
    offsets = torch.tensor([128, 256], device="cuda", dtype=torch.int32)
    experts, n = normal(2, 256, 256), (256,)

    def plus(a: Any, b: Any) -> Any:
        return op.epilogue.relu(a + b)

    fused = op.elementwise(plus)
    optimizers = [
        _optimizer("12 parameters", [(256, 256)] * 12),
        _optimizer("80 parameters", [(256, 256), (256,)] * 40),
        _optimizer("180 small parameters", [(128, 512), (512,), (128,)] * 60),
    ]
    return [
        *optimizers,
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
        HostCase(
            "attention, pages",
            lambda a, b, c: op.attention(a, b, c, page_table=table, seqused_k=used, layout="bshd"),
            lambda a, b, c: F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (a, b, c))),
            (normal(4, 1, 4, 64), normal(4, 64, 4, 64), normal(4, 64, 4, 64)),
            (),
        ),
    ]


def _optimizer(name: str, shapes: Sequence[tuple[int, ...]]) -> HostCase:
    """Return a step of AdamW with f32 state, compared with torch's fused optimizer."""
    import torch

    lists = [[torch.rand(s, device="cuda") for s in shapes] for _ in range(4)]
    theirs = [torch.nn.Parameter(t.clone()) for t in lists[0]]
    peer = torch.optim.AdamW(theirs, fused=True)
    for p, g in zip(theirs, lists[1]):
        p.grad = g
    steps = count(1)

    def ours(*tensors: torch.Tensor) -> None:
        n = len(shapes)
        op.adamw_(*[tensors[i : i + n] for i in range(0, 4 * n, n)], next(steps))  # type: ignore[arg-type]

    inputs = tuple([t for x in lists for t in x])
    return HostCase(f"adamw_, {name}", ours, lambda *_: peer.step(), inputs, ())


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


def random_rows(count: int, seed: int, say: Say) -> tuple[list[Row], list[str]]:
    """Measure ``count`` calls in random order, so that cached calls alternate as in a program.

    Calls are replayed in C++ unless ``CUTE_NATIVE=0``.  Returns the rows of the calls that succeeded, and the errors of
    the others.
    """
    if flag("CUTE_NATIVE", True):
        try:
            native.build()
        except native.BuildError as e:
            say(f"  replay in Python, because {e}")
    random, drawn = Random(seed), list[tuple[HostCase, _Way]]()
    ways = [(case, way) for case in host_cases() for way in _ways(case)]
    while len(drawn) < count:
        drawn += random.sample(ways, len(ways))
    rows = [_row(case, way, 40, say) for case, way in drawn[:count]]
    failed = [f"{r['name']}: {r['error']}" for r in rows if "error" in r]
    return [r for r in rows if "error" not in r], failed


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


BENCHMARKS = {"launch": Benchmark(build_launch, run_launch)}
