"""A mixture of experts: forward and backward passes on `cute_dialect.op`, checked against torch in f64.

Each token goes to its two best experts. Its row is copied to the rows of each, whose ends stay on the GPU. The layer is
two grouped GEMMs with an activation; its gradients are grouped GEMMs as well.

Routing is discontinuous. If the shares of two experts differ by less than a rounding error, they may be swapped, which
changes the token's result entirely. The program therefore checks the routing first, and then the result and gradients
for that routing.

    python examples/mixture_of_experts.py          # on the GPU if there is one, else small, on the interpreter
"""

# Type checking runs without torch.

# REQUIRES: slow
# RUN: %python %s --device cpu | FileCheck %s
# CHECK: experts of 32 x 48: correct

from __future__ import annotations

import argparse
from typing import Any

import torch

from cute_dialect import op

CHOSEN = 2
"""Experts per token."""


class Experts(torch.nn.Module):
    """A gate, which chooses experts for each token, and the experts with two layers each."""

    def __init__(self, experts: int, width: int, hidden: int, run_on: str | None) -> None:
        super().__init__()
        self.experts = experts
        self.gate = op.nn.Linear(width, experts, bias=False, run_on=run_on)
        self.up = op.nn.GroupedLinear(experts, width, hidden, activation="gelu", run_on=run_on)
        self.down = op.nn.GroupedLinear(experts, hidden, width, run_on=run_on)
        self.run_on = run_on

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the weighted sum of the chosen experts' results, and the experts chosen for each token."""
        weights, expert = op.route(self.gate(tokens), CHOSEN, device=self.run_on)
        rows, ends, order = op.dispatch(tokens, expert, self.experts, device=self.run_on)
        found = self.down(self.up(rows, ends), ends)
        return op.combine(found, order, weights, device=self.run_on), expert.long()


def by_torch(model: Any, tokens: torch.Tensor, expert: torch.Tensor) -> torch.Tensor:
    """Return the result in f64, expert by expert, for the given choice of experts."""
    x = tokens.double()
    shares = torch.softmax(x @ model.gate.weight.double().t(), -1)
    weight = shares.gather(-1, expert)
    weight = weight / weight.sum(-1, keepdim=True)
    found = torch.zeros_like(x)
    for e in range(model.experts):
        rows, which = torch.nonzero(expert == e, as_tuple=True)
        up = x[rows] @ model.up.weight[e].double().t() + model.up.bias[e].double()
        down = torch.nn.functional.gelu(up) @ model.down.weight[e].double().t() + model.down.bias[e].double()
        found = found.index_add(0, rows, down * weight[rows, which, None])
    return found


def check_routing(model: Any, tokens: torch.Tensor, expert: torch.Tensor) -> int:
    """Raise AssertionError if rounding does not explain a token's choice of experts; return the number of ties.

    A share in f16 has a relative error of 2^-11 from its own rounding, and of 2^-11 times the largest logit from the
    rounding of the logits. Two shares are tied if they differ by less than twice that much.
    """
    logits = tokens.double() @ model.gate.weight.double().t()
    shares = torch.softmax(logits, -1)
    best = shares.topk(CHOSEN)[0]
    missed = 1 - shares.gather(-1, expert).sort(-1, descending=True)[0] / best
    allowed = 2 * 2.0**-11 * (1 + 2 * float(logits.abs().max()))
    assert float(missed.max()) <= allowed, (
        f"routing: a chosen expert's share is {float(missed.max()):.1e} below the best; {allowed:.1e} is allowed"
    )
    return int((missed > 0).any(-1).sum())


def main() -> None:
    """Check the routing, then results and gradients for that routing."""
    parser = argparse.ArgumentParser(description="A mixture of experts against torch's.")
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu" if torch.cuda.is_available() else "cpu")
    gpu = parser.parse_args().device == "gpu"
    torch.manual_seed(0)
    tokens, experts, width, hidden = (4096, 32, 1024, 2048) if gpu else (24, 4, 32, 48)
    model: Any = Experts(experts, width, hidden, None if gpu else "cpu").to(torch.float16)
    x = torch.randn(tokens, width).half()
    if gpu:
        model, x = model.cuda(), x.cuda()
    x.requires_grad_()
    of = (x, *model.parameters())
    found, expert = model(x)
    assert bool((expert[:, :1] != expert[:, 1:]).all()), "routing: one expert twice"
    with torch.no_grad():
        ties = check_routing(model, x, expert)
    exact = by_torch(model, x, expert)
    grad = torch.randn_like(found)
    pairs = [("result", found, exact)]
    of_found, of_exact = torch.autograd.grad(found, of, grad), torch.autograd.grad(exact, of, grad.double())
    names = ["x", *(name for name, _ in model.named_parameters())]
    pairs += [(f"gradient of {name}", y, z) for name, y, z in zip(names, of_found, of_exact)]
    for name, y, z in pairs:
        error = float((y.double() - z.double()).detach().norm() / z.double().detach().norm())
        assert error < 5e-3, f"{name}: the relative error is {error:.1e}; at most 5e-3 is allowed"
    print(f"{tokens} tokens, {experts} experts of {width} x {hidden}: correct, with {len(pairs) - 1} gradients")
    print(f"{ties} tokens chose between experts whose shares are equal up to rounding")


if __name__ == "__main__":
    main()
