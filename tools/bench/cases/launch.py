"""``cute-bench launch``: host time of launches compared with ``torch.add``, ``torch.mm`` and ``torch.bmm``.

The kernels are an f32 elementwise add (three arrays) and an f16 Hopper GEMM (three tensor maps).  The time per call in
microseconds is the best of 50 rounds of 200 calls, so that the launch queue never fills.  Measured are a call with
torch tensors, a bound launch, a call that alternates between four output tensors, a call that alternates between two
shapes, and ``cuLaunchKernelEx`` with prepared arguments.  The differences split the time of a call: reading, checking
and writing arguments (call - bound), stream and frame (bound - driver), and the driver.  First, results are compared
with torch for plain and bound launches, from a CUDA graph, and from two threads.

Then whole operations are measured: ``op.mm`` and ``op.bmm``, with and without a given output, compared with torch, and
the calls of :mod:`~cute_dialect.tools.bench.cases.launch_calls`: GEMMs with a bias and with a traced epilogue, plans,
row functions and elementwise functions.
"""

# torch may be missing when types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING, NamedTuple
from unittest.mock import patch

from cute_dialect.op.execute.kernels import text_of
from cute_dialect.op.select.kernel_choice import Problem
from cute_dialect.op.select.timing import host_overhead
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.cases.elementwise_add import BenchError
from cute_dialect.tools.bench.cases.gemm import chosen
from cute_dialect.tools.bench.cases.launch_calls import compared, kernels

if TYPE_CHECKING:  # pragma: no cover
    import torch

    from cute_dialect.runtime.launch import Kernel

__all__ = ["Measured", "build", "operations", "run"]

OPERATIONS = {"mm": Problem(128, 128, 256, major_b="n"), "bmm": Problem(128, 128, 64, major_b="n", matrices=4)}
"""Shapes of the operations, so small that GPU time is negligible."""


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


def build(folder: str, chip: str) -> list[str]:
    """Compile the two kernels into ``folder/launch-add`` and ``folder/launch-gemm``; return the reports of ptxas."""
    from cute_dialect.kernels.elementwise import elementwise_add_text, streaming_tile
    from cute_dialect.kernels.gemm import gemm_text
    from cute_dialect.pipelines import compile as compile_cute

    said: list[str] = []
    for name, text in (("add", elementwise_add_text("f32", streaming_tile("f32"))), ("gemm", gemm_text())):
        module = compile_cute(str(text), chip=chip, filename=f"{name}.mlir")
        module.save(os.path.join(folder, f"launch-{name}"))
        said.append(f"{name}: {module.report.strip().splitlines()[-1]}")
    for problem in OPERATIONS.values():
        choice = chosen(problem)
        module = compile_cute(text_of(choice), chip=chip, filename=f"{choice.name}.mlir")
        module.save(os.path.join(folder, "launch-op", choice.name))
        said.append(f"{choice.name}: {module.report.strip().splitlines()[-1]}")
    wanted = kernels()
    for name in track(list(wanted), "compiling", "kernels"):
        text = wanted[name]
        module = compile_cute(text(), chip=chip, filename=f"{name}.mlir")
        module.save(os.path.join(folder, "launch-op", name))
        said.append(f"{name}: {module.report.strip().splitlines()[-1]}")
    return said


def run(folder: str, *, runs: int, large: bool, say: Callable[[str], None]) -> dict[str, object]:
    """Check and measure the kernels of :func:`build`.  Raises ``BenchError`` if a result is wrong."""
    import torch

    from cute_dialect.runtime import load

    x, y = (torch.randn(64, 256, device="cuda") for _ in range(2))
    a, b = (torch.randint(-2, 3, (128, 256), device="cuda").half() for _ in range(2))
    adds = [torch.empty_like(x) for _ in range(4)]
    products = [torch.empty(128, 128, device="cuda", dtype=torch.float16) for _ in range(4)]
    rows: list[dict[str, object]] = []
    for name, kernel, inputs, outputs, peer in (
        ("add", load(os.path.join(folder, "launch-add")).kernel("add"), (x, y), adds, torch.add),
        ("gemm", load(os.path.join(folder, "launch-gemm")).kernel("launch"), (a, b), products, torch.mm),
    ):
        other = inputs if name == "add" else (a, b.t())
        expected = peer(*other)
        check(kernel, inputs, outputs[0], expected)
        check_threads(kernel, inputs, outputs, expected)
        say(f"  correct: {name}: plain, bound, from a graph, from two threads")
        ours = measure(kernel, inputs, outputs)
        theirs = _host(partial(peer, *other, out=outputs[0]))
        say(f"  {name}: {ours}; torch.{peer.__name__} {theirs:.2f}")
        for what, value in ours._asdict().items():
            row = {"name": f"{name}: {what.replace('_', ' ')}", "ours": value, "peer": theirs, "unit": "us"}
            rows.append({**row, "ratio": theirs / value})
    rows += operations(os.path.join(folder, "launch-op"), say)
    return {"rows": rows}


def operations(folder: str, say: Callable[[str], None]) -> list[dict[str, object]]:
    """Check and measure ``op.mm`` and ``op.bmm`` with the kernels in ``folder``.  Raises :class:`BenchError`."""
    import torch

    from cute_dialect import op

    rows: list[dict[str, object]] = []
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
            rows.append({"name": what, "ours": mine, "peer": peer, "unit": "us", "ratio": peer / mine})
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
            rows.append({"name": each.name, "ours": mine, "peer": peer, "unit": "us", "ratio": peer / mine})
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
    from threading import Thread

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


def measure(kernel: Kernel, inputs: tuple[torch.Tensor, ...], outputs: list[torch.Tensor]) -> Measured:
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
