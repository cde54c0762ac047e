"""Mixtures of experts for ``cute-bench op``: group ``routing``.

TB/s counts each input and output once.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect import op
from cute_dialect.op.execute.array_call import RowKernel
from cute_dialect.op.execute.routing import (
    combine_gradient_kernel,
    combine_kernel,
    gradient_kernel,
    route_kernel,
)
from cute_dialect.op.problems.routing import RouteSettings, rows_config
from cute_dialect.tools.bench.runner import BenchError, Text, Trial, check_close, compiled, normal

if TYPE_CHECKING:  # pragma: no cover
    import torch


class Route(NamedTuple):
    """The choice of ``k`` of ``experts`` experts for each of ``tokens`` tokens, or the gradient of the logits."""

    element: str
    tokens: int
    experts: int
    k: int
    score: str = "softmax"
    groups: int | None = None
    top_groups: int | None = None
    backward: bool = False

    @property
    def operation(self) -> str:
        return "route" + " backward" * self.backward

    @property
    def name(self) -> str:
        groups = f" groups {self.groups}x{self.top_groups}" if self.groups else ""
        return f"{self.operation} {self.score} {self.element} {self.tokens}x{self.experts} k={self.k}{groups}"

    @property
    def _how(self) -> dict[str, Any]:
        return {"k": self.k, "score": self.score, "groups": self.groups, "top_groups": self.top_groups}

    @property
    def traffic(self) -> int:
        """The minimum number of bytes to move: each operand and result once."""
        return self.tokens * (self.experts * (4 if self.element == "f32" else 2) * (1 + self.backward) + 8 * self.k)

    def kernels(self) -> Mapping[str, Text]:
        c = RouteSettings(**self._how).config(self.element, self.experts)
        found: RowKernel = gradient_kernel(c) if self.backward else route_kernel(c)
        return {found.name: found.text}

    def trial(self, device: str = "cuda") -> Trial:
        import torch

        torch.manual_seed(self.experts)
        x = normal(self.element, self.tokens, self.experts, device=device)
        run: dict[str, Any] = {"device": "cpu"} if device == "cpu" else {}
        peer = partial(route_with_torch, self)
        if not self.backward:
            peers = compiled(peer, x) if device == "cuda" else {}
            return Trial(
                lambda: self._check(x, *op.route(x, **self._how, **run)), lambda: op.route(x, **self._how, **run),
                peers, self.traffic, float(self.traffic), "TB/s",
            )  # fmt: skip
        given, also = (x.clone().requires_grad_() for _ in range(2))
        weights, chosen = op.route(given, **self._how, **run)
        of_torch, g = peer(also)[0], torch.randn_like(weights)

        def gradient(y: torch.Tensor, leaf: torch.Tensor) -> torch.Tensor:
            return torch.autograd.grad(y, leaf, g, retain_graph=True)[0]

        def check() -> float:
            wide = x.double().requires_grad_()
            exact = weights_of(self.score, wide, chosen.long())
            (wanted,) = torch.autograd.grad(exact, wide, g.double())
            return check_close(self.name, gradient(weights, given), wanted, 9e-3)

        peers = {"torch": lambda: gradient(of_torch, also)}
        return Trial(check, lambda: gradient(weights, given), peers, self.traffic, float(self.traffic), "TB/s")

    def _check(self, x: torch.Tensor, weights: torch.Tensor, chosen: torch.Tensor) -> float:
        """Compare the choice with a stable sort of the logits, and the weights with float64."""
        wide = x.double()
        if self.groups:
            best = wide.view(self.tokens, self.groups, -1).amax(-1).sort(dim=-1, descending=True, stable=True)[1]
            closed = best[:, self.top_groups :]
            size = self.experts // self.groups
            wide = wide.view(self.tokens, self.groups, size)
            wide = wide.scatter(1, closed[:, :, None].expand(-1, -1, size), float("-inf")).view(self.tokens, -1)
        wanted = wide.sort(dim=-1, descending=True, stable=True)[1][:, : self.k]
        if not bool((wanted == chosen).all()):
            raise BenchError(f"{self.name}: {int((wanted != chosen).sum())} experts differ")
        return check_close(self.name, weights, weights_of(self.score, x.double(), chosen.long()), 4e-6)


def weights_of(score: str, x: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Return the normalized weights of chosen experts."""
    import torch

    scores = torch.softmax(x, -1) if score == "softmax" else torch.sigmoid(x)
    found = scores.gather(-1, chosen)
    return found / found.sum(-1, keepdim=True)


def route_with_torch(c: Route, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return weights and experts as models compute them with torch."""
    import torch

    scores = torch.softmax(x.float(), -1) if c.score == "softmax" else torch.sigmoid(x.float())
    choice = scores
    if c.groups and c.top_groups:
        of_groups = scores.view(c.tokens, c.groups, -1).amax(-1).topk(c.top_groups, sorted=False)[1]
        is_open = torch.zeros(c.tokens, c.groups, dtype=torch.bool, device=x.device).scatter(1, of_groups, True)
        choice = scores.masked_fill(~is_open.repeat_interleave(c.experts // c.groups, 1), float("-inf"))
    chosen = choice.topk(c.k, sorted=False)[1]
    found = scores.gather(-1, chosen)
    return found / found.sum(-1, keepdim=True), chosen.int()


class Rows(NamedTuple):
    """Dispatch of tokens to the rows of their experts, or the sum of the rows of each token, or its gradient."""

    operation: str  # "dispatch", "combine" or "combine backward"
    element: str
    tokens: int
    columns: int
    experts: int
    k: int

    @property
    def name(self) -> str:
        return f"{self.operation} {self.element} {self.tokens}x{self.columns} to {self.k} of {self.experts}"

    @property
    def traffic(self) -> int:
        """The minimum number of bytes to move: each operand and result once."""
        rows = (1 + self.k) * (4 if self.element == "f32" else 2) * self.columns
        if self.operation == "combine backward":
            rows += self.k * (4 if self.element == "f32" else 2) * self.columns
        return self.tokens * (rows + 8 * self.k)

    def kernels(self) -> Mapping[str, Text]:
        pairs = (self.tokens, self.k)
        if self.operation == "dispatch":
            explained = op.explain(op.dispatch, (self.tokens, self.columns), pairs, self.experts, element=self.element)
            return {kernel.name: kernel.text for kernel in explained.kernels}
        c = rows_config("combine", self.element, self.columns, pairs, True)
        found = combine_kernel(c) if self.operation == "combine" else combine_gradient_kernel(c)
        return {found.name: found.text}

    def trial(self, device: str = "cuda") -> Trial:
        import torch

        torch.manual_seed(self.tokens)
        run: dict[str, Any] = {"device": "cpu"} if device == "cpu" else {}
        x = normal(self.element, self.tokens, self.columns, device=device)
        chosen = torch.rand(self.tokens, self.experts, device=device).topk(self.k)[1].int()
        weights = torch.rand(self.tokens, self.k, device=device)
        rows, _, order = op.dispatch(x, chosen, self.experts, **run)
        if self.operation == "dispatch":

            def with_torch() -> tuple[torch.Tensor, ...]:
                places = chosen.flatten().argsort(stable=True)
                ends = torch.bincount(chosen.flatten(), minlength=self.experts).cumsum(0, dtype=torch.int32)
                return x[places // self.k], ends, places

            def check() -> float:
                found, offs, _ = op.dispatch(x, chosen, self.experts, **run)
                wanted, ends, _ = with_torch()
                if not (torch.equal(found, wanted) and torch.equal(offs, ends)):
                    raise BenchError(f"{self.name}: rows or their ends differ from those of a stable sort")
                return 0.0

            ours = partial(op.dispatch, x, chosen, self.experts, **run)
            return Trial(check, ours, {"torch": with_torch}, self.traffic, float(self.traffic), "TB/s")
        limit = 9e-3 if self.element == "bf16" else 4e-6
        places = order.long()

        def summed(y: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
            return (y[places] * factors[..., None].to(y.dtype)).sum(1)

        if self.operation == "combine":

            def check() -> float:
                wanted = summed(rows.double(), weights.double())
                return check_close(self.name, op.combine(rows, order, weights, **run), wanted, limit)

            peers = compiled(summed, rows, weights) if device == "cuda" else {}
            ours = partial(op.combine, rows, order, weights, **run)
            return Trial(check, ours, peers, self.traffic, float(self.traffic), "TB/s")
        leaves, others = ((rows.clone().requires_grad_(), weights.clone().requires_grad_()) for _ in range(2))
        results, g = op.combine(leaves[0], order, leaves[1], **run), normal(self.element, *x.shape, device=device)
        of_torch = summed(*others)

        def gradient(y: torch.Tensor, of: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
            return torch.autograd.grad(y, of, g, retain_graph=True)

        def check() -> float:
            wide = tuple([t.detach().double().requires_grad_() for t in leaves])
            wanted = torch.autograd.grad(summed(*wide), wide, g.double())
            found = gradient(results, leaves)
            terms = self.columns**0.5
            return max([
                check_close(f"{self.name}: rows", found[0], wanted[0], limit),
                check_close(f"{self.name}: weights", found[1], wanted[1], 4e-6, terms=terms),
            ])  # fmt: skip

        peers = {"torch": lambda: gradient(of_torch, others)}
        ours = partial(gradient, results, leaves)
        return Trial(check, ours, peers, self.traffic, float(self.traffic), "TB/s")


CASES = (
    Route("f32", 4096, 128, 8), Route("bf16", 4096, 128, 8), Route("f32", 64, 256, 8), Route("f32", 65536, 64, 6),
    Route("f32", 4096, 512, 10), Route("f32", 4096, 256, 8, "sigmoid", 8, 4),
    *(
        Rows(operation, "bf16", *sizes)
        for operation in ("dispatch", "combine", "combine backward")
        for sizes in ((4096, 2048, 128, 8), (4096, 7168, 256, 8), (64, 7168, 256, 8), (8192, 4096, 8, 2))
    ),
    Route("f32", 4096, 128, 8, backward=True), Route("f32", 4096, 256, 8, "sigmoid", backward=True),
)  # fmt: skip

GROUPS = {"routing": CASES}
