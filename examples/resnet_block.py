"""A bottleneck block of a ResNet, forward and backward, on `cute_dialect.op` alone, beside torch's.

    python examples/resnet_block.py            # on the GPU if there is one, else small, on the interpreter

The block has stride 2: a projection of one tap, 1x1 and 3x3 convolutions with bias and relu, and a last 1x1 whose
kernel adds the shortcut before its relu.  Normalization is folded into weights and biases, as for inference.
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

# RUN: %python %s --device cpu | FileCheck %s
# CHECK: agree with torch's on the interpreter

from __future__ import annotations

import argparse

import torch

from cute_dialect import op

PARSER = argparse.ArgumentParser(description="A block of a ResNet, forward and backward.")
PARSER.add_argument("--device", choices=("gpu", "cpu"), default="gpu" if torch.cuda.is_available() else "cpu")
GPU = PARSER.parse_args().device == "gpu"
DEVICE, RUN_ON = ("cuda", None) if GPU else ("cpu", "cpu")
# images, extent, channels of the input, of the middle, of the result
SIZES = (32, 56, 256, 128, 512) if GPU else (1, 4, 16, 8, 16)


def block(x: torch.Tensor, weights: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return the block's result: each line is one kernel."""
    w = weights
    shortcut = op.conv2d(x, w["project"], w["b0"], stride=2, device=RUN_ON)
    y = op.conv2d(x, w["reduce"], w["b1"], activation="relu", device=RUN_ON)
    y = op.conv2d(y, w["middle"], w["b2"], stride=2, padding=1, activation="relu", device=RUN_ON)
    return op.conv2d(y, w["expand"], w["b3"], c=shortcut, activation="relu", device=RUN_ON)


def block_of_torch(x: torch.Tensor, weights: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return the same by torch."""
    w, conv = weights, torch.nn.functional.conv2d
    y = conv(x, w["reduce"], w["b1"]).relu()
    y = conv(y, w["middle"], w["b2"], stride=2, padding=1).relu()
    return (conv(y, w["expand"], w["b3"]) + conv(x, w["project"], w["b0"], stride=2)).relu()


def parameters() -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Return an image and weights, normal numbers, channels last."""
    n, size, c, middle, k = SIZES
    torch.manual_seed(0)

    def normal(*shape: int, scale: float = 1.0) -> torch.Tensor:
        made = (torch.randn(shape, device=DEVICE) * scale).half()
        return made.to(memory_format=torch.channels_last) if len(shape) == 4 else made

    shapes = {
        "project": (k, c, 1, 1),
        "reduce": (middle, c, 1, 1),
        "middle": (middle, middle, 3, 3),
        "expand": (k, middle, 1, 1),
    }
    weights = {n: normal(*s, scale=(2 / (s[1] * s[2] * s[3])) ** 0.5) for n, s in shapes.items()}
    weights |= {f"b{i}": normal(s[0], scale=0.1) for i, s in enumerate(shapes.values())}
    return normal(n, c, size, size), weights


def main() -> None:
    """Compute both, compare results and all gradients with f32 on the same numbers, and on a GPU time both."""
    x, weights = parameters()
    results: dict[str, list[torch.Tensor]] = {}
    for name, function, kind in (("ours", block, torch.float16), ("exact", block_of_torch, torch.float32)):
        given = {n: t.detach().to(kind).requires_grad_() for n, t in weights.items()}
        image = x.detach().to(kind).requires_grad_()
        y = function(image, given)
        y.backward(torch.linspace(-1, 1, y.numel(), device=DEVICE).reshape(y.shape).to(kind))
        results[name] = [y, *[t.grad for t in (image, *given.values()) if t.grad is not None]]
    assert len(results["ours"]) == len(results["exact"]) == 2 + len(weights)
    for label, ours, exact in zip(("result", "image", *weights), *results.values()):
        error = float((ours.detach().float() - exact.detach()).norm() / exact.detach().norm())
        assert error < 5e-3, f"{label}: relative error {error:.1e}"
    print(f"result and {len(weights) + 1} gradients agree with torch's on the {'GPU' if GPU else 'interpreter'}")
    if GPU:
        from torch.utils.benchmark import Timer

        for name, function in (("ours", block), ("torch", block_of_torch)):
            with torch.no_grad():
                timer = Timer("function(x, weights)", globals={"function": function, "x": x, "weights": weights})
                print(f"{name}: {timer.blocked_autorange().median * 1e6:.0f} us forward")


if __name__ == "__main__":
    main()
