"""GEMMs with traced epilogues, and the kernels that ``op.mm`` and ``op.bmm`` select for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from cute_dialect import op
from cute_dialect.kernels.epilogue.reductions import CombineConfig, combine_parts_text
from cute_dialect.op.epilogue import (
    ACTIVATIONS,
    FakeTensor,
    dropout,
    exp,
    gelu,
    pairs,
    permute,
    quantize,
    random,
    relu,
    reshape,
    silu,
    where,
)
from cute_dialect.op.epilogue import max as most
from cute_dialect.op.epilogue import min as least
from cute_dialect.op.epilogue import sum as total
from cute_dialect.op.execute.kernels import text_of

GPU = "NVIDIA H200"


def example(accum: Any, alpha: Any, C: Any, beta: Any, aux: Any, bias: Any) -> Any:
    """Use every kind of epilogue input, and a value that is used three times and also stored."""
    F = alpha * accum + (beta * C + aux)
    E = relu(F + 1) + bias
    D = E + F
    return D, F


def swiglu(accum: Any, bias: Any) -> Any:
    """Compute SwiGLU of neighbouring columns."""
    gate, up = pairs(accum + bias)
    return silu(gate) * up


def masked(accum: Any, mask: Any, per: Any) -> Any:
    """Apply a boolean mask and one scalar per matrix."""
    return where(mask, gelu(accum * per), 0.0)


def column(accum: Any, scale: Any) -> Any:
    """Apply a per-row scale."""
    return accum * scale


def reduced(accum: Any, bias: Any) -> Any:
    """Compute sums, maxima and minima over rows, over columns and over all elements."""
    x = relu(accum + bias)
    return {
        "D": x, "rows": total(x, -1), "columns": total(accum, -2), "all": total(x), "most": most(accum, -1),
        "least": least(accum, -2),
    }  # fmt: skip


def activations(accum: Any, scale: Any, slope: Any) -> Any:
    """Apply all activations of the table to accumulators scaled to about 1."""
    x = accum * scale
    more = {n: f(x, slope) if n in ("prelu", "leaky_relu", "elu") else f(x) for n, f in ACTIVATIONS.items()}
    return {"D": x, **more}


def shares(accum: Any, bias: Any) -> Any:
    """Compute a softmax over whole rows."""
    power = exp(accum * 0.125 + bias - most(accum * 0.125 + bias, -1, whole_rows=True))
    return power / total(power, -1, whole_rows=True)


def heads(accum: Any, bias: Any) -> Any:
    """Store one matrix per 64 columns."""
    return permute(reshape(accum + bias, (accum.shape[0], -1, 64)), (1, 0, 2))


def other_shapes(accum: Any, scale: Any, angle: Any, skip: Any) -> Any:
    """Use per-head, per-row-and-head and per-element arguments, and store results in two orders."""
    m, n = accum.shape
    x = permute(reshape(accum, (m, n // 16, 16)), (1, 0, 2)) * scale + reshape(angle, (m, 16)) + skip
    D = relu(x)
    F = permute(x, (2, 1, 0)) - 1.0
    return D, F


def by_exponents(accum: Any, factor: Any) -> Any:
    """Quantize with power-of-two scales. Only the last rounding is inexact: to nearest even on every device."""
    q, scales = quantize(accum * factor, "f8E5M2", 32, "e8m0")
    return {"D": accum, "q": q, "scales": scales}


def by_scales(accum: Any, factor: Any) -> Any:
    """Quantize with one f32 scale per 128 columns."""
    D, scales = quantize(accum * factor)
    return D, scales


def dropped(accum: Any, p: Any, seed: Any, offset: Any) -> Any:
    """Apply dropout and store its random numbers."""
    D = dropout(accum, p, seed, offset)
    E = random(accum, seed, offset) * 16777216.0 % 2048.0
    return D, E


def gated_sums(accum: Any, bias: Any) -> Any:
    """Combine reductions with paired columns."""
    gate, up = pairs(accum + bias)
    x = relu(gate) * up
    return {"D": x, "rows": total(x, -1), "columns": total(x, -2), "all": total(accum), "most": most(accum, -2)}


class Case(NamedTuple):
    """A GEMM with the epilogue ``function``.

    ``shape`` is (M, N, K) and ``batch`` the number of matrices, or 0 for a single GEMM. ``arguments`` are shapes with
    types, or numbers. ``element`` is the element type of A, B and D.
    """

    function: Callable[..., Any]
    shape: tuple[int, int, int]
    arguments: dict[str, Any]
    batch: int = 0
    element: str = "f16"

    def kernel(self) -> tuple[str, str]:
        """Return the name and the text of the kernel."""
        m, n, k = self.shape
        batch = (self.batch,) if self.batch else ()
        found = op.explain(
            op.bmm if batch else op.mm, (*batch, m, k), (*batch, k, n), epilogue=self.function, args=self.arguments,
            element=self.element, gpu=GPU,
        )  # fmt: skip
        if found.choice is not None:
            return found.choice.name, text_of(found.choice)
        assert found.other is not None
        return found.other.name, text_of(found.other)


def _example(m: int, n: int, alpha: Any = 0.5, beta: Any = 2.0) -> dict[str, Any]:
    return {
        "alpha": alpha, "C": FakeTensor("f16", (m, n)), "beta": beta, "aux": FakeTensor("f32", (m, n), "column"),
        "bias": FakeTensor("bf16", (n,)),
    }  # fmt: skip


ONE = FakeTensor("f32", (1,))
CASES = {
    **{f"example {m}x{n}x{k}": Case(example, (m, n, k), _example(m, n))
       for m, n, k in ((4096, 4096, 512), (256, 256, 4096), (8, 4096, 1024), (1000, 264, 264), (512, 8192, 256))},
    "numbers on the device": Case(example, (512, 512, 256), _example(512, 512, ONE, ONE)),
    "swiglu": Case(swiglu, (4096, 4096, 512), {"bias": FakeTensor("f16", (4096,))}),
    "swiglu, bf16, some rows": Case(swiglu, (33, 512, 512), {"bias": FakeTensor("bf16", (512,))}, 0, "bf16"),
    "a batch": Case(masked, (256, 320, 128), {"mask": FakeTensor("bool", (8, 256, 320)),
                                            "per": FakeTensor("f32", (8, 1, 1))}, 8),
    "a column": Case(column, (4096, 4096, 512), {"scale": FakeTensor("f32", (4096, 1))}),
    "reductions": Case(reduced, (1000, 2048, 256), {"bias": FakeTensor("f32", (2048,))}),
    "reductions of a batch": Case(reduced, (256, 320, 128), {"bias": FakeTensor("f32", (320,))}, 4),
    "whole rows": Case(shares, (4096, 256, 512), {"bias": FakeTensor("f32", (256,))}),
    "whole rows of a batch": Case(shares, (136, 72, 128), {"bias": FakeTensor("f32", (72,))}, 3, "bf16"),
    "heads": Case(heads, (1000, 1536, 256), {"bias": FakeTensor("f16", (1536,))}),
    "heads of a few rows": Case(heads, (8, 512, 256), {"bias": FakeTensor("f16", (512,))}),
    "other shapes": Case(other_shapes, (264, 192, 128), {
        "scale": FakeTensor("f32", (12, 1, 1)), "angle": FakeTensor("f16", (264, 16)),
        "skip": FakeTensor("f16", (12, 264, 16))}),
    "by exponents": Case(by_exponents, (1000, 1056, 256), {"factor": FakeTensor("f32", (1000, 1))}),
    "by scales, whole": Case(by_scales, (264, 2048, 512), {"factor": FakeTensor("f32", (264, 1))}),
    "dropped": Case(dropped, (1000, 520, 256), {"p": 0.5, "seed": 2**33 + 5, "offset": 3}),
    "dropped of a batch": Case(dropped, (72, 136, 64), {"p": 0.5, "seed": FakeTensor("i64", (1,)), "offset": 3}, 3),
    "sums of pairs": Case(gated_sums, (264, 1040, 128), {"bias": FakeTensor("f32", (1040,))}),
    "any rows": Case(column, (333, 1001, 65), {"scale": FakeTensor("f32", (333, 1))}),
    "activations": Case(activations, (512, 1024, 128), {"scale": 0.1, "slope": 0.25}),
}  # fmt: skip


def texts() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each kernel once."""
    yield from dict(case.kernel() for case in CASES.values()).items()
    for operation in ("sum", "max", "min"):
        for config in (CombineConfig(operation), CombineConfig(operation, across=1)):
            yield config.name, combine_parts_text(config)
