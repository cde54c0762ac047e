"""Transformer blocks for ``cute-bench op --random block``: the forward pass, and a training step.

A block is ``h = x + attention(norm(x))``, ``y = h + mlp(norm(h))``, with causal attention on shared key heads, rotary
positions and a gated MLP, of the modules in ``op.nn``.  A step computes the gradients of all parameters and of ``x``,
and updates the parameters with AdamW.  Peers are torch's functions on equal parameters, eager and compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect import op
from cute_dialect.tools.bench.runner import BenchError, Trial, dtype

if TYPE_CHECKING:  # pragma: no cover
    import torch

_PREFIX = 512
"""Tokens of a sequence whose results and gradients are compared with float64."""

_BASE = 10_000.0
"""Base of the angles of rotary positions."""


class Block(NamedTuple):
    """A block of ``width`` on ``batch`` sequences of ``length`` tokens."""

    element: str
    batch: int
    length: int
    width: int
    heads: int
    shared: int  # key heads
    hidden: int  # of the MLP
    is_step: bool = False  # a training step, or the forward pass

    @property
    def operation(self) -> str:
        """The kind: ``block forward`` or ``block step``."""
        return f"block {'step' if self.is_step else 'forward'}"

    @property
    def name(self) -> str:
        sizes = f"{self.batch}x{self.length}x{self.width}"
        return f"{self.operation} {self.element} {sizes} heads {self.heads}/{self.shared} hidden {self.hidden}"

    @property
    def head(self) -> int:
        """Elements of a head."""
        return self.width // self.heads

    @property
    def parameters(self) -> int:
        """Number of elements of the parameters."""
        return self.width * ((self.heads + self.shared) * 2 * self.head + 3 * self.hidden + 2)

    @property
    def flops(self) -> float:
        """Floating-point operations; the backward pass has twice those of the forward pass."""
        tokens = self.batch * self.length
        forward = 2.0 * tokens * self.parameters + 2.0 * tokens * self.length * self.width
        return forward * (3 if self.is_step else 1)

    def tiny(self) -> Block:
        """Return a problem of the same kind that takes seconds on the interpreter."""
        return self._replace(
            batch=1, length=40, width=128, heads=2, shared=1 if self.shared < self.heads else 2, hidden=192
        )

    def kernels(self) -> dict[str, Callable[[], str]]:
        """Return no kernels: those of a block are compiled when it is measured."""
        return {}

    def trial(self, device: str = "cuda", compiled: bool = False) -> Trial:
        """Create normally distributed data and parameters; ``compiled`` adds ``torch.compile`` to the peers."""
        import torch

        torch.manual_seed(self.width + self.length)
        kind, run_on = dtype(self.element), "cpu" if device == "cpu" else None
        how: dict[str, Any] = {"device": device, "dtype": kind, "run_on": run_on}
        layers: Any = torch.nn.ModuleList(
            [
                op.nn.RMSNorm(self.width, **how),
                op.nn.Attention(self.width, self.heads, self.shared, **how),
                op.nn.RMSNorm(self.width, **how),
                op.nn.MLP(self.width, self.hidden, **how),
            ]
        )
        ours = list(layers.parameters())
        with torch.no_grad():  # Scores of deviation 1.3: with smaller ones, wrong positions hardly change the result.
            ours[1][: (self.heads + self.shared) * self.head] *= 2
        x = torch.randn(self.batch, self.length, self.width, device=device).to(kind).requires_grad_(self.is_step)
        dy = torch.randn(x.shape, device=device).to(kind)
        theirs = [p.detach().clone().requires_grad_() for p in ours]
        tables = layers[1].angles(self.length, x.device)

        def of_ours(x: torch.Tensor) -> torch.Tensor:
            hidden = layers[1](layers[0](x), residual=x)
            return layers[3](layers[2](hidden), residual=hidden)

        def of_torch(x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
            return self.by_torch(x, parameters, [t[: x.shape[1]] for t in tables])

        more: dict[str, Callable[..., torch.Tensor]] = {"torch": of_torch}
        if compiled:
            more["compiled"] = torch.compile(of_torch)

        def check() -> float:
            return self._check(of_ours, of_torch, ours, x.detach(), dy)

        if self.is_step:
            step = self._update(ours, device)
            peers = {n: self._peer_step(partial_of(f, theirs), x, theirs, dy) for n, f in more.items()}
            return Trial(
                check,
                lambda: step(_gradients(of_ours(x), [x, *ours], dy)[1:]),
                peers,
                self._traffic(),
                self.flops,
                "TFLOP/s",
            )

        def no_gradients(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[], torch.Tensor]:
            def compute() -> torch.Tensor:
                with torch.no_grad():
                    return function(x)

            return compute

        peers = {n: no_gradients(partial_of(f, theirs)) for n, f in more.items()}
        return Trial(check, no_gradients(of_ours), peers, self._traffic(), self.flops, "TFLOP/s")

    def by_torch(
        self, x: torch.Tensor, parameters: Sequence[torch.Tensor], angles: Sequence[torch.Tensor]
    ) -> torch.Tensor:
        """Return the result of torch's functions.

        Args:
            parameters: those of both norms, of attention and of the MLP, in the order of the modules.
            angles: cosines and sines of the rotary positions.
        """
        import torch

        functional = torch.nn.functional
        first, qkv, out, second, up, down = parameters
        batch, length, width = x.shape
        eps = torch.finfo(dtype(self.element)).eps
        joined = functional.linear(functional.rms_norm(x, (width,), first, eps), qkv).view(batch, length, -1, self.head)
        cos, sin = (t.to(x.dtype)[:, None] for t in angles)

        def turned(t: torch.Tensor) -> torch.Tensor:
            a, b = t.chunk(2, -1)
            return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

        q, k, v = joined.split([self.heads, self.shared, self.shared], 2)
        q, k, v = (t.transpose(1, 2) for t in (turned(q), turned(k), v))
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + functional.linear(seen.transpose(1, 2).flatten(2), out)
        gate, value = functional.linear(functional.rms_norm(x, (width,), second, eps), up).chunk(2, -1)
        return x + functional.linear(functional.silu(gate) * value, down)

    def _update(self, parameters: list[torch.Tensor], device: str) -> Callable[[Sequence[torch.Tensor]], None]:
        """Return a function that updates the parameters by their gradients."""
        import torch

        m, v = ([torch.zeros_like(p) for p in parameters] for _ in range(2))
        first = torch.ones(1, device=device)
        run: dict[str, Any] = {"device": "cpu"} if device == "cpu" else {}

        def update(grads: Sequence[torch.Tensor]) -> None:
            op.adamw_(parameters, list(grads), m, v, first, lr=1e-5, **run)

        return update

    def _peer_step(
        self,
        function: Callable[[torch.Tensor], torch.Tensor],
        x: torch.Tensor,
        parameters: list[torch.Tensor],
        dy: torch.Tensor,
    ) -> Callable[[], None]:
        """Return the step of a peer, with torch's fused AdamW."""
        import torch

        optimizer = torch.optim.AdamW(parameters, lr=1e-5, fused=True)

        def step() -> None:
            for p, g in zip(parameters, _gradients(function(x), [x, *parameters], dy)[1:]):
                p.grad = g
            optimizer.step()

        return step

    def _traffic(self) -> int:
        size = 4 if self.element == "f32" else 2
        tokens = self.batch * self.length * self.width
        return size * ((self.parameters * 7 + 6 * tokens) if self.is_step else self.parameters + 2 * tokens)

    def _check(
        self,
        ours: Callable[[torch.Tensor], torch.Tensor],
        theirs: Callable[..., torch.Tensor],
        parameters: list[torch.Tensor],
        x: torch.Tensor,
        dy: torch.Tensor,
    ) -> float:
        """Compare the first tokens of a sequence with float64, and everything with torch.

        Attention is causal, so the first tokens do not depend on the others.  Results of torch may be off as far as
        ours.
        """
        import torch

        limit = 2e-2 if self.element == "bf16" else 4e-3
        short, shortened = x[:1, :_PREFIX], dy[:1, :_PREFIX]
        wide = [p.detach().double().requires_grad_(self.is_step) for p in parameters]
        with torch.set_grad_enabled(self.is_step):
            inputs = [x.requires_grad_(self.is_step), short.detach().requires_grad_(self.is_step)]
            whole, part = ours(inputs[0]), ours(inputs[1])
            exact_x = short.detach().double().requires_grad_(self.is_step)
            exact, peer = theirs(exact_x, *wide), theirs(inputs[0], *parameters)
        pairs = [("result", whole[:1, :_PREFIX], exact, limit), ("all results", whole, peer.double(), 2 * limit)]
        if self.is_step:
            names = ["x", *(f"parameter {i}" for i in range(len(parameters)))]
            found = _gradients(part, [inputs[1], *parameters], shortened)
            wanted = _gradients(exact, [exact_x, *wide], shortened.double())
            pairs += [(f"gradient of {n}", a, b, limit) for n, a, b in zip(names, found, wanted)]
            everything = [_gradients(y, [inputs[0], *parameters], dy) for y in (whole, peer)]
            pairs += [(f"whole gradient of {n}", a, b.double(), 2 * limit) for n, a, b in zip(names, *everything)]
        x.requires_grad_(False)
        worst = 0.0
        for name, found, wanted, most in pairs:
            error = float((found.detach().double() - wanted.detach()).norm() / wanted.detach().norm())
            if not error <= most:
                raise BenchError(f"{self.name}: {name}: the relative error is {error:.1e}, above {most:.1e}")
            worst = max(worst, error / most)
        return worst


def partial_of(
    function: Callable[..., torch.Tensor], parameters: Sequence[torch.Tensor]
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a function of x alone."""
    return lambda x: function(x, *parameters)


def _gradients(y: torch.Tensor, of: Sequence[torch.Tensor], dy: torch.Tensor) -> Sequence[torch.Tensor]:
    import torch

    return torch.autograd.grad(y, of, dy)


BLOCK_FLOPS = 2e13
"""Limit of the operations of a random problem."""


def fits(block: Block) -> bool:
    """Return True if a problem is small enough to be measured."""
    return block.flops <= BLOCK_FLOPS and prod((block.batch, block.length, block.hidden)) <= 1 << 29


GROUPS = {
    "block": (
        Block("bf16", 1, 4096, 4096, 32, 8, 11008),
        Block("bf16", 1, 4096, 4096, 32, 8, 11008, is_step=True),
        Block("bf16", 8, 1024, 2560, 20, 20, 6912, is_step=True),
    )
}
