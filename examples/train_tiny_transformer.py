"""A small language model trained on `cute_dialect.op`, next to the same model on torch's functions.

The text is this file, read as bytes. The parameters are f32 and the activations bf16. Both models start from the same
parameters and see the same batches. Their losses, averaged over the steps, must agree within 1 %: rounding makes single
steps differ more as training goes on.

    python examples/train_tiny_transformer.py          # on the GPU if there is one, else tiny, on the interpreter
    python examples/train_tiny_transformer.py --steps 300
"""

# Type checking runs without torch.

# REQUIRES: slow
# RUN: %python %s --device cpu --steps 4 | FileCheck %s
# CHECK: step 4: loss
# CHECK: the losses agree

from __future__ import annotations

import argparse
import copy
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from cute_dialect import op

TEXT = torch.tensor(list(Path(__file__).read_bytes()))


class Block(torch.nn.Module):
    """Attention and a gated MLP, each after an RMSNorm and with a residual."""

    def __init__(self, width: int, heads: int, kv_heads: int, run_on: str | None) -> None:
        super().__init__()
        self.norms = torch.nn.ModuleList([op.nn.RMSNorm(width, run_on=run_on) for _ in range(2)])
        self.attention = op.nn.Attention(width, heads, kv_heads, run_on=run_on)
        self.mlp = op.nn.MLP(width, 2 * width, run_on=run_on)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's result for (B, S, width)."""
        x = self.attention(self.norms[0](x), residual=x)
        return self.mlp(self.norms[1](x), residual=x)


class Model(torch.nn.Module):
    """A decoder whose output layer shares its weight with the embedding."""

    def __init__(self, width: int, layers: int, heads: int, kv_heads: int, run_on: str | None) -> None:
        super().__init__()
        self.run_on = run_on
        self.embedding = torch.nn.Embedding(128, width)
        torch.nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.blocks = torch.nn.ModuleList([Block(width, heads, kv_heads, run_on) for _ in range(layers)])
        self.norm = op.nn.RMSNorm(width, run_on=run_on)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the mean loss of predicting each token but the first from those before it."""
        x = self.embedding(tokens[:, :-1]).bfloat16()
        for block in self.blocks:
            x = block(x)
        weight = self.embedding.weight.bfloat16()
        return op.linear_cross_entropy(self.norm(x), weight, tokens[:, 1:], device=self.run_on)


def by_torch(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    """Return the loss of the same model, computed by torch's functions."""

    def norm(x: torch.Tensor, layer: Any) -> torch.Tensor:
        return F.rms_norm(x, x.shape[-1:], layer.weight.bfloat16(), 2.0**-23)

    def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        a, b = x.float().chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).bfloat16()

    x = model.embedding(tokens[:, :-1]).bfloat16()
    for block in model.blocks:
        attention, mlp = block.attention, block.mlp
        joined = F.linear(norm(x, block.norms[0]), attention.qkv.weight.bfloat16())
        joined = joined.view(*x.shape[:2], -1, attention.head_dim).transpose(1, 2)
        q, k, v = joined.split([attention.heads, attention.kv_heads, attention.kv_heads], 1)
        angles = attention.angles(x.shape[1], x.device)
        q, k = rotated(q, *angles), rotated(k, *angles)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + F.linear(seen.transpose(1, 2).flatten(2), attention.out.weight.bfloat16())
        a, b = F.linear(norm(x, block.norms[1]), mlp.up.weight.bfloat16()).chunk(2, -1)
        x = x + F.linear(F.silu(a) * b, mlp.down.weight.bfloat16())
    logits = F.linear(norm(x, model.norm), model.embedding.weight.bfloat16())
    return F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())


def main() -> None:
    """Train both models and print their losses."""
    parser = argparse.ArgumentParser(description="Train a small language model on this file's text.")
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=0, help="default: 100, or 10 on the CPU")
    args = parser.parse_args()
    if args.steps < 0:
        parser.error("--steps must be at least 0")
    gpu = args.device == "gpu"
    steps = args.steps or (100 if gpu else 10)
    torch.manual_seed(0)
    batch, length, width, layers, heads, kv_heads = (32, 256, 512, 4, 8, 2) if gpu else (2, 32, 32, 1, 2, 1)
    ours: Any = Model(width, layers, heads, kv_heads, None if gpu else "cpu")
    if gpu:
        ours = ours.cuda()
    theirs = copy.deepcopy(ours)
    optimizers = [torch.optim.AdamW(model.parameters(), lr=3e-4 if gpu else 1e-2) for model in (ours, theirs)]
    total = [0.0, 0.0]
    for step in range(1, steps + 1):
        starts = torch.randint(len(TEXT) - length, (batch,))
        tokens = torch.stack([TEXT[start : start + length + 1] for start in starts]).to(next(ours.parameters()).device)
        losses: list[float] = []
        for loss_of, optimizer in zip((ours, lambda x: by_torch(theirs, x)), optimizers):
            loss = loss_of(tokens)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        total = [t + loss for t, loss in zip(total, losses)]
        if step % max(1, steps // 10) == 0:
            print(f"step {step}: loss {losses[0]:.4f}, by torch {losses[1]:.4f}")
    difference = abs(total[0] / total[1] - 1)
    assert difference < 0.01, f"the mean losses, {total[0] / steps:.4f} and {total[1] / steps:.4f}, differ by over 1 %"
    print("the losses agree")


if __name__ == "__main__":
    main()
