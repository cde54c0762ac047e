"""GEMMs with packed and with 2:4 sparse weights for ``cute-bench op``: groups ``mixed`` and ``sparse``.

Peers are ``torch.mm`` with the weights in bf16, and torch's ``_weight_int4pack_mm`` for 4-bit weights with bf16 scales.
Speeds are in TFLOP/s.  With few rows the bytes of the weights bound a call, a quarter of those of bf16.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect import op
from cute_dialect.kernels.gemm.mixed_input import FLOATS
from cute_dialect.kernels.gemm.sparse import CompressConfig, compress_text, sparse_gemm_text
from cute_dialect.kernels.gemm.weight_packing import PackConfig, pack_text
from cute_dialect.op.execute.array_call import RowKernel
from cute_dialect.op.problems.packed_weights import PackedWeight, format_of
from cute_dialect.op.problems.sparse_weights import choose_config
from cute_dialect.tools.bench.runner import Text, Trial, check_limit, dtype

if TYPE_CHECKING:  # pragma: no cover
    import torch


class Mixed(NamedTuple):
    """``mm_packed`` of (M, K) rows and (N, K) weights of a format; see ``op.problems.packed_weights``."""

    m: int
    n: int
    k: int
    format: str = "ui4-g128-bf16"
    element: str = "bf16"
    bias: bool = False

    @property
    def operation(self) -> str:
        """The function and the stored type, for example ``mm_packed ui4``."""
        return f"mm_packed {self.format.partition('-')[0]}"

    @property
    def name(self) -> str:
        more = f" {self.element}{' bias' * self.bias}"
        return f"mm_packed {self.format}{more} {self.m}x{self.n}x{self.k}"

    def tiny(self) -> Mixed:
        """Return a problem of the same kind that takes about a second on the interpreter."""
        return self._replace(m=min(self.m, 9), n=64 + self.n % 64, k=128 + self.k % 128)

    def kernels(self) -> Mapping[str, Text]:
        f = format_of("mixed", self.format)
        c = PackConfig(f.weight, f.group, f.scale, source="ui8", zeros="rows" if f.zeros else "")
        packs = RowKernel(c.name, pack_text, (c,), "pack")
        return {kernel.name: partial(_text, kernel) for kernel in (packs, *self._explained().kernels)}

    def _explained(self) -> Any:
        """Explain the call."""
        packed = PackedWeight(None, self.n, self.k, self.format)
        bias = (self.n,) if self.bias else None
        return op.explain(op.mm_packed, (self.m, self.k), packed, element=self.element, bias=bias)

    def trial(self, device: str = "cuda", compiled: bool = False) -> Trial:
        """Create random integers, scales around one, and normally distributed rows."""
        import torch

        torch.manual_seed(self.n + self.k)
        f = format_of("mixed", self.format)
        top, groups = 1 << f.bits, f.groups(self.k)
        q: torch.Tensor
        if f.weight in FLOATS:
            q = torch.randn(self.n, self.k, device=device).to(torch.float8_e4m3fn)
        else:
            q = torch.randint(0, top, (self.n, self.k), dtype=torch.uint8, device=device)
        scales = (torch.rand(self.n, groups, device=device) + 0.5).to(dtype(f.scale))
        zeros = torch.randint(0, top, (self.n, groups), dtype=torch.uint8, device=device) if f.zeros else None
        on: Any = {} if device == "cuda" else {"device": "cpu"}
        middle = 0 if f.weight in FLOATS else top // 2
        packed = op.pack_weight(q, scales, middle if zeros is None else zeros, bits=f.bits, group=f.group or None, **on)
        x = torch.randn(self.m, self.k, device=device).to(dtype(self.element))
        bias = torch.randn(self.n, device=device).to(dtype(self.element)) if self.bias else None

        def ours() -> torch.Tensor:
            return op.mm_packed(x, packed, bias, **on)

        def exact(rows: slice) -> torch.Tensor:
            at = torch.arange(self.k, device=device) // (f.group or self.k)
            points = middle if zeros is None else zeros[rows].double()[:, at]
            return (q[rows].double() - points) * scales[rows].double()[:, at]

        def check() -> float:
            found, worst, wide = ours(), 0.0, x[:: max(1, self.m // 64)].double()
            unit = 2.0**-8 if self.element == "bf16" else 2.0**-11
            c = self._explained().config
            rounds = 1.0 if c is not None and not c.scaled else 6.0  # weights are rounded
            for start in range(0, self.n, 2048):
                part = slice(start, min(self.n, start + 2048))
                w = exact(part)
                wanted = wide @ w.T
                if bias is not None:
                    wanted = wanted + bias[part].double()
                spread = (wide.square() @ w.square().T).sqrt()
                limit = 1.01 * unit * wanted.abs() + (2.0**-11 + (rounds - 1) * unit) * spread + 1e-6
                some = found[:: max(1, self.m // 64), part]
                worst = max(worst, check_limit(self.name, some, wanted, limit))
            return worst

        plain = torch.cat([exact(slice(i, i + 2048)).to(x.dtype) for i in range(0, self.n, 2048)])
        peers: dict[str, Callable[[], Any]] = {"torch": lambda: torch.nn.functional.linear(x, plain, bias)}
        if device == "cuda" and f.weight == "ui4" and self.element == f.scale == "bf16" and not f.zeros and f.group:
            peers |= _int4_peer(x, q, scales, f.group, self.bias)
        traffic = 4 * packed.data.numel() + 2 * self.m * (self.n + self.k)
        return Trial(check, ours, peers, traffic, 2.0 * self.m * self.n * self.k, "TFLOP/s")


class Sparse(NamedTuple):
    """``mm_sparse`` of (M, K) rows and (N, K) weights; peers are torch's GEMMs of dense and of sparse weights."""

    m: int
    n: int
    k: int
    element: str = "f16"

    @property
    def operation(self) -> str:
        return "mm_sparse"

    @property
    def name(self) -> str:
        return f"mm_sparse {self.element} {self.m}x{self.n}x{self.k}"

    def tiny(self) -> Sparse:
        """Return a problem of the same kind that takes about a second on the interpreter."""
        return self._replace(m=min(self.m, 9), n=64, k=128)

    def kernels(self) -> Mapping[str, Text]:
        c = CompressConfig(self.element)
        packs = RowKernel(c.name, compress_text, (c,), "launch_compress")
        gemm = choose_config(self.m, self.n, self.element)
        return {k.name: partial(_text, k) for k in (packs, RowKernel(gemm.name, sparse_gemm_text, (gemm,)))}

    def trial(self, device: str = "cuda", compiled: bool = False) -> Trial:
        """Create normally distributed rows, and weights of which two of four at random are zero."""
        import torch

        torch.manual_seed(self.n + self.k)
        kind = dtype(self.element)
        kept = torch.rand(self.n, self.k // 4, 4, device=device).argsort(-1) < 2
        w = (torch.randn(self.n, self.k, device=device) * kept.reshape(self.n, self.k)).to(kind)
        x = torch.randn(self.m, self.k, device=device).to(kind)
        on: Any = {} if device == "cuda" else {"device": "cpu"}
        packed = op.compress_2_4(w, **on)

        def ours() -> torch.Tensor:
            return op.mm_sparse(x, packed, **on)

        def check() -> float:
            found, worst, wide = ours(), 0.0, x[:: max(1, self.m // 64)].double()
            unit = 2.0**-8 if self.element == "bf16" else 2.0**-11
            for start in range(0, self.n, 2048):
                part = w[start : start + 2048].double()
                wanted, spread = wide @ part.T, (wide.square() @ part.square().T).sqrt()
                limit = 1.01 * unit * wanted.abs() + 2.0**-11 * spread + 1e-6
                some = found[:: max(1, self.m // 64), start : start + 2048]
                worst = max(worst, check_limit(self.name, some, wanted, limit))
            return worst

        peers: dict[str, Callable[[], Any]] = {"torch": lambda: torch.nn.functional.linear(x, w)}
        if device == "cuda":
            semi = torch.sparse.to_sparse_semi_structured(w)
            peers["torch sparse"] = lambda: torch.nn.functional.linear(x, semi)
        traffic = self.n * self.k * 9 // 8 + 2 * self.m * (self.n + self.k)
        return Trial(check, ours, peers, traffic, 2.0 * self.m * self.n * self.k, "TFLOP/s")


def _text(kernel: Any) -> str:
    return kernel.text()


def _int4_peer(
    x: torch.Tensor, q: torch.Tensor, scales: torch.Tensor, group: int, bias: bool
) -> dict[str, Callable[[], Any]]:
    """Return torch's GEMM with 4-bit weights, if it supports the problem."""
    import torch

    convert, mm = (getattr(torch, n, None) for n in ("_convert_weight_to_int4pack", "_weight_int4pack_mm"))
    n, k = q.shape
    if convert is None or mm is None or bias or n % 8 or k % 128 or k % group:
        return {}
    words = convert((q[:, ::2] << 4 | q[:, 1::2]).contiguous(), 8)
    both = torch.stack([scales, torch.zeros_like(scales)], -1).permute(1, 0, 2).contiguous()
    return {"int4pack": lambda: mm(x, words, group, both)}


SHAPES = ((8192, 8192), (14336, 4096), (4096, 14336))
"""(N, K) of layers of a model with 8192 or 4096 features."""

CASES = (
    *(Mixed(m, n, k) for m in (1, 4, 16, 64, 256) for n, k in SHAPES),
    *(Mixed(m, 8192, 8192, "ui4-g128-f16-z", "f16", bias=True) for m in (1, 16, 64)),
    *(Mixed(m, 8192, 8192, "i8-row-f32") for m in (1, 16, 64, 256)),
    *(Mixed(m, 8192, 8192, "f8E4M3FN-row-f32") for m in (1, 16, 64, 256)),
    *(Mixed(m, 8192, 8192, "ui4-g32-bf16") for m in (1, 64, 256, 2048)),
    Mixed(512, 8192, 8192),
    Mixed(2048, 8192, 8192),
)

SPARSE = (
    *(Sparse(m, 4096, 4096) for m in (16, 256, 1024, 4096)), Sparse(8192, 8192, 8192, "bf16"),
    Sparse(4096, 14336, 4096), Sparse(4096, 4096, 14336),
)  # fmt: skip

GROUPS = {"mixed": CASES, "sparse": SPARSE}
