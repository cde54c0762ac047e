"""A transformer block: forward and backward passes on `cute_dialect.op`, checked against torch in f64.

The block has RMSNorm, one GEMM for queries, keys and values, causal grouped-query attention, and two linear layers.
Residuals are added in the epilogues of GEMMs. The gradient of attention comes from torch's flash-attention kernel.

    python examples/transformer_block.py           # on the GPU if there is one, else small, on the interpreter
"""

# Type checking runs without torch.

# REQUIRES: slow
# RUN: %python %s --device cpu | FileCheck %s
# CHECK: a block of 128, 2 heads on 1: correct

from __future__ import annotations

import argparse
from typing import Any

import torch
import torch.nn.functional as F

from cute_dialect import op


class Block(torch.nn.Module):
    """Attention with ``heads`` query heads and ``shared`` key heads, and a hidden layer."""

    def __init__(self, width: int, heads: int, shared: int, hidden: int, run_on: str | None) -> None:
        super().__init__()
        self.heads, self.shared, self.size, self.run_on = heads, shared, width // heads, run_on

        def weights(*shape: int) -> torch.nn.Parameter:
            return torch.nn.Parameter(torch.randn(*shape) * shape[-1] ** -0.5)

        self.first, self.second = (torch.nn.Parameter(torch.ones(width)) for _ in range(2))
        self.qkv = weights((heads + 2 * shared) * self.size, width)
        self.out = weights(width, width)
        self.up, self.shift = weights(hidden, width), torch.nn.Parameter(torch.randn(hidden))
        self.down = weights(width, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's result for (B, S, width)."""
        device, rows = self.run_on, x.reshape(-1, x.shape[-1])
        joined = op.linear(op.rms_norm(rows, self.first, device=device), self.qkv, device=device)
        q, k, v = joined.view(*x.shape[:2], -1, self.size).split([self.heads, self.shared, self.shared], 2)
        seen = op.attention(q, k, v, causal=True, layout="bshd", device=device)
        rows = op.addmm(rows, seen.reshape(rows.shape), self.out.t(), device=device)
        normed = op.rms_norm(rows, self.second, device=device)
        hidden = op.linear(normed, self.up, self.shift, "gelu", device=device)
        return op.addmm(rows, hidden, self.down.t(), device=device).view(x.shape)


def by_torch(block: Any, x: torch.Tensor) -> torch.Tensor:
    """Return the result of torch in f64."""
    of = {name: p.double() for name, p in block.named_parameters()}
    x, width = x.double(), x.shape[-1:]
    joined = F.rms_norm(x, width, of["first"], 2.0**-23) @ of["qkv"].t()
    parts = joined.view(*x.shape[:2], -1, block.size).split([block.heads, block.shared, block.shared], 2)
    q, k, v = (p.transpose(1, 2) for p in parts)
    seen = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    x = x + seen.transpose(1, 2).reshape(x.shape) @ of["out"].t()
    hidden = F.gelu(F.rms_norm(x, width, of["second"], 2.0**-23) @ of["up"].t() + of["shift"])
    return x + hidden @ of["down"].t()


def main() -> None:
    """Compare the result and the gradients."""
    parser = argparse.ArgumentParser(description="A block of a transformer against torch's.")
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu" if torch.cuda.is_available() else "cpu")
    gpu = parser.parse_args().device == "gpu"
    torch.manual_seed(0)
    batch, length, width, heads, shared = (1, 4096, 2048, 16, 4) if gpu else (2, 40, 128, 2, 1)
    block: Any = Block(width, heads, shared, 4 * width, None if gpu else "cpu").to(torch.float16)
    x = torch.randn(batch, length, width).half()
    if gpu:
        block, x = block.cuda(), x.cuda()
    x.requires_grad_()
    of = (x, *block.parameters())
    found, exact = block(x), by_torch(block, x)
    grad = torch.randn_like(found)
    pairs = [("result", found, exact)]
    of_found, of_exact = torch.autograd.grad(found, of, grad), torch.autograd.grad(exact, of, grad.double())
    names = ["x", *(name for name, _ in block.named_parameters())]
    pairs += [(f"gradient of {name}", y, z) for name, y, z in zip(names, of_found, of_exact)]
    for name, y, z in pairs:
        error = float((y.double() - z.double()).detach().norm() / z.double().detach().norm())
        assert error < 5e-3, f"{name}: the relative error is {error:.1e}; at most 5e-3 is allowed"
    print(f"a block of {width}, {heads} heads on {shared}: correct, with {len(pairs) - 1} gradients")


if __name__ == "__main__":
    main()
