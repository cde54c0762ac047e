"""Calls of ``cute-bench launch``: host time of ``op`` compared with torch.

The calls are GEMMs with epilogues, traced epilogues, plans, bound plans, row functions, elementwise functions,
operations with several launches, and training steps.  All are so small that GPU time is negligible, and they repeat the
arguments of their first call, so that no kernel is selected again.
"""

# torch may be missing when types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from cute_dialect import op
from cute_dialect.op.execute.kernels import text_of
from cute_dialect.op.rows.functions import row_kernel, sum_kernel
from cute_dialect.tools.bench.cases.op import Case
from cute_dialect.tools.bench.cases.op.conv import Conv
from cute_dialect.tools.bench.cases.op.epilogues import Fused, Learned
from cute_dialect.tools.bench.cases.op.scaled import Scaled
from cute_dialect.tools.bench.cases.op.types import Typed

__all__ = ["Call", "compared", "kernels"]

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
    "op.conv2d, depthwise": Conv("fprop", 2, 14, 96, 96, groups=96),
    "op.mm, forward and backward": Learned("bias_gelu", M, N, K),
}
"""Calls with several launches, from the tables of other benchmarks."""


def scaled(accum: Any, bias: Any) -> Any:
    """Return the accumulator plus a bias: an epilogue to trace."""
    return accum + bias


def _traced() -> Any:
    fake = op.epilogue.FakeTensor
    return op.epilogue.trace(scaled, {"accum": fake("f32", (M, N)), "bias": fake("f16", (N,))})


def kernels() -> Mapping[str, Callable[[], str]]:
    """Return the kernels of :func:`compared` by name, with functions that compile them."""
    import numpy as np

    sizes = (M, K), (K, N)
    found = [
        op.explain(op.mm, *sizes),
        op.explain(op.mm, *sizes, bias=np.zeros(N, np.float16)),
        op.explain(op.mm, *sizes, epilogue=_traced(), args={"bias": np.zeros(N, np.float16)}),
    ]
    made: dict[str, Callable[[], str]] = {}
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
    run, bound = partial(plan.run, a, b, None, out, sync=False), plan.bind(a, b, None, out)

    def bound_result() -> torch.Tensor:
        bound()
        return out

    return [
        Call("op.mm, bias=", partial(op.mm, a, b, bias=bias), partial(torch.addmm, bias, a, b)),
        Call(
            "op.mm, epilogue=", partial(op.mm, a, b, epilogue=traced, args={"bias": bias}),
            partial(torch.addmm, bias, a, b),
        ),
        Call("plan.run", lambda: run().D, partial(torch.mm, a, b, out=half(M, N))),
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
