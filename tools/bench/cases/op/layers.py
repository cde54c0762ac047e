"""Parts of a transformer other than GEMMs and attention, for ``cute-bench op``: group ``layers``.

Quantization in blocks, rotary positions, gated activations of halves, and the loss of a linear layer.  Their kernels
are compiled when they are measured, except those of one call that :func:`cute_dialect.op.explain` names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect import op
from cute_dialect.tools.bench.runner import (
    BenchError,
    Text,
    Trial,
    check_close,
    check_limit,
    compiled,
    normal,
)

if TYPE_CHECKING:  # pragma: no cover
    import torch

_BLOCK = 128
"""Columns that share a scale."""

_ROWS = 512
"""Rows of logits that are computed in float64 at once."""


def _place(device: str) -> str | None:
    """Return the argument ``device`` of a function."""
    return "cpu" if device == "cpu" else None


class Quantize(NamedTuple):
    """Quantization to e4m3 with a scale per 128 columns of a row."""

    element: str
    rows: int
    n: int

    @property
    def operation(self) -> str:
        return "quantize to e4m3"

    @property
    def name(self) -> str:
        return f"{self.operation} {self.element} {self.rows}x{self.n} 1x{_BLOCK}"

    def kernels(self) -> Mapping[str, Text]:
        found = op.explain(op.quantize, (self.rows, self.n), block=_BLOCK, element=self.element)
        return {kernel.name: kernel.text for kernel in found.kernels}

    def trial(self, device: str = "cuda") -> Trial:
        import torch

        torch.manual_seed(self.n)
        x, place = normal(self.element, self.rows, self.n, device=device), _place(device)

        def with_torch(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            blocks = x.float().view(self.rows, -1, _BLOCK)
            scales = blocks.abs().amax(-1, keepdim=True) / 448.0
            return (blocks / scales).to(torch.float8_e4m3fn).view(x.shape), scales[..., 0]

        def check() -> float:
            q, scales = op.quantize(x, block=_BLOCK, device=place)
            blocks = x.double().view(self.rows, -1, _BLOCK)
            wanted = blocks.abs().amax(-1) / 448.0
            check_close(f"{self.name}: scales", scales, wanted, 4e-7)
            # Half a unit in the last place of e4m3, relative to elements and, for subnormal ones, to the scale.
            limit = 2.0**-4 * 1.001 * blocks.abs() + 2.0**-10 * 1.01 * wanted[..., None]
            return check_limit(self.name, q.double().view(blocks.shape) * scales.double()[..., None], blocks, limit)

        peers = compiled(with_torch, x) if device == "cuda" else {}
        traffic = self.rows * (self.n * (x.element_size() + 1) + self.n // _BLOCK * 4)
        return Trial(check, lambda: op.quantize(x, block=_BLOCK, device=place), peers, traffic, float(traffic), "TB/s")


class Rope(NamedTuple):
    """Rotary positions of queries and keys in one launch."""

    element: str
    batch: int
    length: int
    heads: int
    shared: int  # key heads
    head: int = 128

    @property
    def operation(self) -> str:
        return "rope of q and k"

    @property
    def name(self) -> str:
        return f"{self.operation} {self.element} {self.batch}x{self.length} heads {self.heads}/{self.shared}"

    def kernels(self) -> Mapping[str, Text]:
        return {}

    def trial(self, device: str = "cuda") -> Trial:
        import torch

        torch.manual_seed(self.length)
        sizes = [(self.batch, heads, self.length, self.head) for heads in (self.heads, self.shared)]
        pair = tuple([normal(self.element, *size, device=device) for size in sizes])
        angles = torch.rand(self.length, self.head // 2, device=device) * 6.28
        cos, sin, place = angles.cos(), angles.sin(), _place(device)

        def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
            a, b = x.to(cos.dtype).chunk(2, -1)
            return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

        def with_torch(q: torch.Tensor, k: torch.Tensor) -> list[torch.Tensor]:
            return [rotated(x, cos, sin).to(x.dtype) for x in (q, k)]

        def check() -> float:
            found = op.rope(pair, cos, sin, device=place)
            wanted = [rotated(x, cos.double(), sin.double()) for x in pair]
            return max([check_close(self.name, x, y, 9e-3) for x, y in zip(found, wanted)])

        peers = compiled(with_torch, *pair) if device == "cuda" else {}
        traffic = 2 * sum([x.numel() * x.element_size() for x in pair]) + 2 * cos.numel() * 4
        return Trial(check, lambda: op.rope(pair, cos, sin, device=place), peers, traffic, float(traffic), "TB/s")


class Gated(NamedTuple):
    """``silu(a) * b`` of the halves of each row, or its gradient."""

    element: str
    rows: int
    n: int  # columns of the result
    backward: bool = False

    @property
    def operation(self) -> str:
        return "gated silu" + " backward" * self.backward

    @property
    def name(self) -> str:
        return f"{self.operation} {self.element} {self.rows}x2x{self.n}"

    def kernels(self) -> Mapping[str, Text]:
        found = op.explain(op.gated, (self.rows, 2 * self.n), element=self.element).kernels
        return {} if self.backward else {kernel.name: kernel.text for kernel in found}

    def trial(self, device: str = "cuda") -> Trial:
        import torch

        torch.manual_seed(self.n)
        x, place = normal(self.element, self.rows, 2 * self.n, device=device), _place(device)
        dy = normal(self.element, self.rows, self.n, device=device)

        def product(x: torch.Tensor) -> torch.Tensor:
            a, b = x.chunk(2, -1)
            return torch.nn.functional.silu(a) * b

        def with_torch(x: torch.Tensor) -> torch.Tensor:
            return product(x.float()).to(x.dtype)

        traffic = x.element_size() * self.rows * self.n * (5 if self.backward else 3)
        if not self.backward:

            def check() -> float:
                return check_close(self.name, op.gated(x, device=place), product(x.double()), 9e-3)

            peers = compiled(with_torch, x) if device == "cuda" else {}
            return Trial(check, lambda: op.gated(x, device=place), peers, traffic, float(traffic), "TB/s")
        leaf, y, also, of_torch = _graphs(x, lambda t: op.gated(t, device=place), with_torch)

        def gradient(y: torch.Tensor, leaf: torch.Tensor) -> torch.Tensor:
            return torch.autograd.grad(y, leaf, dy, retain_graph=True)[0]

        def check_gradient() -> float:
            wide = x.double().requires_grad_()
            (wanted,) = torch.autograd.grad(product(wide), wide, dy.double())
            return check_close(self.name, gradient(y, leaf), wanted, 9e-3)

        peers = {"torch": lambda: gradient(of_torch, also)} if device == "cuda" else {}
        return Trial(check_gradient, lambda: gradient(y, leaf), peers, traffic, float(traffic), "TB/s")


def _graphs(x: torch.Tensor, *functions: Callable[[torch.Tensor], torch.Tensor]) -> list[torch.Tensor]:
    """Return a leaf and a result for each function."""
    found: list[torch.Tensor] = []
    for f in functions:
        leaf = x.clone().requires_grad_()
        found += [leaf, f(leaf)]
    return found


class LinearLoss(NamedTuple):
    """The mean cross entropy of ``x @ weight.T``, and its gradients of ``x`` and the weight."""

    element: str
    rows: int
    k: int
    classes: int

    @property
    def operation(self) -> str:
        return "linear cross entropy"

    @property
    def name(self) -> str:
        return f"{self.operation} {self.element} {self.rows}x{self.k}x{self.classes}"

    def kernels(self) -> Mapping[str, Text]:
        return {}

    def trial(self, device: str = "cuda") -> Trial:
        import torch
        from torch.nn.functional import cross_entropy, linear

        torch.manual_seed(self.k)
        x = normal(self.element, self.rows, self.k, device=device).requires_grad_()
        weight = normal(self.element, self.classes, self.k, device=device, scale=self.k**-0.5).requires_grad_()
        target, place = torch.randint(0, self.classes, (self.rows,), device=device), _place(device)

        def step(loss: Callable[[], torch.Tensor]) -> Sequence[torch.Tensor]:
            found = loss()
            return [found.detach(), *torch.autograd.grad(found, (x, weight))]

        def ours() -> Sequence[torch.Tensor]:
            return step(lambda: op.linear_cross_entropy(x, weight, target, device=place))

        def check() -> float:
            if device == "cuda":
                self._check_memory(ours)
            loss, dx, dw = ours()
            exact, of_x, of_weight = self._exact(x.detach(), weight.detach(), target)
            return max(
                check_close(f"{self.name}: loss", loss, exact, 1e-3),
                check_close(f"{self.name}: gradient of x", dx[: len(of_x)], of_x, 2e-2),
                check_close(f"{self.name}: gradient of the weight", dw[: len(of_weight)], of_weight, 2e-2),
            )

        peers = {"torch": lambda: step(lambda: cross_entropy(linear(x, weight).float(), target))}
        traffic = x.element_size() * (2 * x.numel() + 2 * weight.numel())
        work = 6.0 * self.rows * self.k * self.classes
        return Trial(check, ours, peers if device == "cuda" else {}, traffic, work, "TFLOP/s")

    def _check_memory(self, ours: Callable[[], object]) -> None:
        """Raise BenchError if a call allocates more memory than the gradients and a quarter of the logits in f32."""
        import torch

        ours()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        ours()
        taken = torch.cuda.max_memory_allocated() - before
        most = 4 * (self.rows + self.classes) * self.k + self.rows * self.classes
        if taken > most:
            raise BenchError(f"{self.name}: {taken / 1e9:.2f} GB of memory, above {most / 1e9:.2f} GB")

    def _exact(
        self, x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the loss, and the gradients of the first rows and of the first classes, in float64."""
        import torch

        wide, classes = weight.double(), min(self.classes, _BLOCK)
        total, of_weight = wide.new_zeros(()), wide.new_zeros(classes, self.k)
        of_x = wide[:0]
        for start in range(0, self.rows, _ROWS):
            part, wanted = x[start : start + _ROWS].double(), target[start : start + _ROWS]
            logits = part @ wide.T
            total += torch.nn.functional.cross_entropy(logits, wanted, reduction="sum")
            slope = torch.softmax(logits, -1)
            slope[torch.arange(len(part), device=x.device), wanted] -= 1
            of_weight += slope[:, :classes].T @ part
            if start == 0:
                of_x = slope @ wide
        return total / self.rows, of_x / self.rows, of_weight / self.rows


GROUPS = {
    "layers": [
        *(Quantize("bf16", rows, n) for rows, n in ((16384, 4096), (8192, 7168), (8191, 8192))),
        *(Rope("bf16", batch, length, 32, shared) for batch, length in ((4, 4096), (1, 16384)) for shared in (8, 32)),
        *(Gated("bf16", m, n, back) for back in (False, True) for m, n in ((16384, 4096), (8192, 14336), (8191, 5000))),
        LinearLoss("bf16", 8192, 4096, 128256),
        LinearLoss("bf16", 4096, 2048, 50257),
    ]
}
