"""``cute-bench op --groups epilogues``: products with epilogues that are Python functions, beside torch and
``torch.compile``.
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from cute_dialect import op
from cute_dialect.op.compiled import text_of
from cute_dialect.op.epilogue import FakeTensor, Traced, gelu, pairs, silu, trace
from cute_dialect.tools.bench_add import BenchError
from cute_dialect.tools.bench_op import Trial, compiled
from cute_dialect.tools.bench_op_products import LIMITS, TYPES

__all__ = ["CASES", "Fused"]


def bias_gelu(accum: Any, bias: Any) -> Any:
    """Return ``gelu(a @ b + bias)``."""
    return gelu(accum + bias)


def residual(accum: Any, bias: Any, skip: Any) -> Any:
    """Return ``a @ b + bias + skip``."""
    return accum + bias + skip


def gelu_residual(accum: Any, bias: Any, skip: Any) -> Any:
    """Return ``gelu(a @ b + bias) + skip``."""
    return gelu(accum + bias) + skip


def swiglu(accum: Any) -> Any:
    """Return ``silu(gate) * up`` of the even and the odd columns."""
    gate, up = pairs(accum)
    return silu(gate) * up


def bias_gelu_aux(accum: Any, bias: Any) -> Any:
    """Return ``gelu(pre)`` and ``pre``, which training keeps."""
    pre = accum + bias
    return {"D": gelu(pre), "pre": pre}


def _torch(name: str, a: Any, b: Any, bias: Any, skip: Any) -> Any:
    """Return what torch computes."""
    import torch

    if name == "swiglu":
        x = a @ b
        return torch.nn.functional.silu(x[:, 0::2]) * x[:, 1::2]
    pre = torch.addmm(bias, a, b)
    if name == "residual":
        return pre + skip
    d = torch.nn.functional.gelu(pre)
    return (d, pre) if name == "bias_gelu_aux" else d if name == "bias_gelu" else d + skip


FUNCTIONS = {f.__name__: f for f in (bias_gelu, residual, gelu_residual, swiglu, bias_gelu_aux)}
_SHAPES: dict[str, Callable[[int, int], tuple[int, ...]]] = {"bias": lambda m, n: (n,), "skip": lambda m, n: (m, n)}


class Fused(NamedTuple):
    """``function`` of ``a @ b``, (M, K) by (K, N)."""

    function: str
    m: int
    n: int
    k: int
    element: str = "bf16"

    @property
    def operation(self) -> str:
        """``mm + residual``"""
        return f"mm + {self.function}"

    @property
    def name(self) -> str:
        """The row's name."""
        return f"{self.operation} {self.element} {self.m}x{self.n}x{self.k}"

    def _parameters(self) -> list[str]:
        code = FUNCTIONS[self.function].__code__
        return list(code.co_varnames[1 : code.co_argcount])

    def _described(self) -> dict[str, FakeTensor]:
        return {p: FakeTensor(self.element, _SHAPES[p](self.m, self.n)) for p in self._parameters()}

    def traced(self) -> Traced:
        """Return the epilogue."""
        return trace(FUNCTIONS[self.function], {"accum": FakeTensor("f32", (self.m, self.n)), **self._described()})

    def kernels(self) -> Mapping[str, Callable[[], str]]:
        """Return the kernel that is chosen."""
        choice = op.explain(
            op.mm, (self.m, self.k), (self.k, self.n), element=self.element, epilogue=self.traced(),
            args=self._described(), gpu="NVIDIA H200",
        ).choice  # fmt: skip
        assert choice is not None
        return {choice.name: lambda: text_of(choice)}

    def trial(self) -> Trial:
        """Make normal data."""
        import torch

        torch.manual_seed(0)
        m, n, k = self.m, self.n, self.k
        kind = getattr(torch, TYPES[self.element])
        # Sums of about 1, as networks have them.
        a, b = torch.randn(m, k, device="cuda").to(kind), (torch.randn(k, n, device="cuda") / k**0.5).to(kind)
        bias, skip = torch.randn(n, device="cuda").to(kind), torch.randn(m, n, device="cuda").to(kind)
        args = {p: {"bias": bias, "skip": skip}[p] for p in self._parameters()}
        traced, function = self.traced(), FUNCTIONS[self.function]

        def ours() -> Any:
            return op.mm(a, b, epilogue=traced, args=args)

        def check() -> float:
            rows = slice(0, m, max(1, m // 64))
            some = {p: x[rows].double() if x.dim() == 2 else x.double() for p, x in args.items()}
            wanted = function(a[rows].double() @ b.double(), **some)
            found, share = ours(), 0.0
            both = [(found[x], wanted[x]) for x in wanted] if isinstance(wanted, dict) else [(found, wanted)]
            for x, y in both:
                error = (x[rows].double() - y).abs()
                scale = y.square().mean().sqrt()
                share = max(share, float((error / (LIMITS[self.element] * (y.abs() + scale))).max()))
            if not share <= 1:
                raise BenchError(f"{self.name}: an error of {share:.2f} of the limit")
            return share

        def peer(a: Any, b: Any, bias: Any, skip: Any) -> Any:
            return _torch(self.function, a, b, bias, skip)

        results = {"swiglu": 0.5, "bias_gelu_aux": 2.0}.get(self.function, 1.0)
        size = 2 * (m * k + k * n + int(results * m * n) + (m * n if "skip" in args else 0))
        return Trial(check, ours, compiled(peer, a, b, bias, skip), size, 2.0 * m * n * k, "TFLOP/s")


CASES = (
    *(Fused(f, s, s, s) for f in ("bias_gelu", "residual", "gelu_residual", "bias_gelu_aux") for s in (4096, 8192)),
    *(Fused(f, 8192, 28672, 4096) for f in ("bias_gelu", "residual", "swiglu")),
    Fused("swiglu", 4096, 8192, 4096),
)
