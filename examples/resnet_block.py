"""A bottleneck block of a ResNet: forward and backward passes on `cute_dialect.op`, checked against torch in f64.

    python examples/resnet_block.py            # on the GPU if there is one, else small, on the interpreter

The block has stride 2: a 1x1 projection, 1x1 and 3x3 convolutions with bias and relu, and a last 1x1 convolution whose
kernel adds the shortcut before its relu. Normalization is folded into weights and biases, as for inference.

The derivative of relu is discontinuous. If an activation rounds to the other side of zero (7 of 100,000 do in f16), its
whole gradient appears or vanishes, and the gradient of the image moves by 1 %. The program therefore checks the signs
first, and then the result and gradients for these signs.
"""

# Type checking runs without torch.

# REQUIRES: slow
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
# Each of the four tensors between the input and the result, or a gradient, is rounded to f16, with a relative error of
# at most 2^-11.
LIMIT = 4 * 2.0**-11
# Before its relu, an activation inherits the rounding errors of its inputs, 2^-11 / sqrt(3) rms each. They add up
# randomly. The largest of 13 million errors is at 6 standard deviations, from at most three tensors (inputs, shortcut,
# itself).
SIGN_LIMIT = 6 * 2.0**-11
# number of images; height and width; input, middle and output channels
SIZES = (32, 56, 256, 128, 512) if GPU else (1, 4, 16, 8, 16)


def block(x: torch.Tensor, weights: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """Return the activations after each relu, ending with the block's result. Each line is one kernel."""
    w = weights
    shortcut = op.conv2d(x, w["project"], w["b0"], stride=2, device=RUN_ON)
    y1 = op.conv2d(x, w["reduce"], w["b1"], activation="relu", device=RUN_ON)
    y2 = op.conv2d(y1, w["middle"], w["b2"], stride=2, padding=1, activation="relu", device=RUN_ON)
    return [y1, y2, op.conv2d(y2, w["expand"], w["b3"], c=shortcut, activation="relu", device=RUN_ON)]


def block_of_torch(x: torch.Tensor, weights: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """Return the activations computed by torch."""
    w, conv = weights, torch.nn.functional.conv2d
    y1 = conv(x, w["reduce"], w["b1"]).relu()
    y2 = conv(y1, w["middle"], w["b2"], stride=2, padding=1).relu()
    return [y1, y2, (conv(y2, w["expand"], w["b3"]) + conv(x, w["project"], w["b0"], stride=2)).relu()]


def exact_block(x: torch.Tensor, weights: dict[str, torch.Tensor], signs: list[torch.Tensor]) -> torch.Tensor:
    """Return the result in the precision of the arguments, with given signs of the activations.

    Raises:
        AssertionError: if rounding does not explain a different sign.
    """
    w, conv, left = weights, torch.nn.functional.conv2d, iter(signs)

    def relu(before: torch.Tensor) -> torch.Tensor:
        positive = next(left)
        wrong = before.detach().abs() * ((before.detach() > 0) != positive)
        off = float(wrong.max() / before.detach().square().mean().sqrt())
        assert off <= SIGN_LIMIT, f"a sign differs at {off:.1e} of the rms; at most {SIGN_LIMIT:.1e} is allowed"
        return before * positive

    y = relu(conv(x, w["reduce"], w["b1"]))
    y = relu(conv(y, w["middle"], w["b2"], stride=2, padding=1))
    return relu(conv(y, w["expand"], w["b3"]) + conv(x, w["project"], w["b0"], stride=2))


def parameters() -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Return an image and weights with normally distributed values, channels last."""
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
    """Compare signs, the result and all gradients with f64 on the same numbers; on a GPU also time both."""
    x, weights = parameters()
    results: list[list[torch.Tensor]] = []
    signs: list[torch.Tensor] = []
    for kind in (torch.float16, torch.float64):
        given = {n: t.detach().to(kind).requires_grad_() for n, t in weights.items()}
        image = x.detach().to(kind).requires_grad_()
        if kind == torch.float16:
            activations = block(image, given)
            signs, y = [t.detach() > 0 for t in activations], activations[-1]
        else:
            y = exact_block(image, given, signs)
        # Use the same f16 values for both.
        y.backward(torch.linspace(-1, 1, y.numel(), device=DEVICE).half().reshape(y.shape).to(kind))
        results.append([y, *[t.grad for t in (image, *given.values()) if t.grad is not None]])
    assert len(results[0]) == len(results[1]) == 2 + len(weights)
    for label, ours, exact in zip(("result", "image", *weights), *results):
        error = float((ours.detach().double() - exact.detach()).norm() / exact.detach().norm())
        assert error <= LIMIT, f"{label}: relative error {error:.1e}; at most {LIMIT:.1e} is allowed"
    print(f"result and {len(weights) + 1} gradients agree with torch's on the {'GPU' if GPU else 'interpreter'}")
    if GPU:
        from torch.utils.benchmark import Timer

        for name, function in (("ours", block), ("torch", block_of_torch)):
            with torch.no_grad():
                timer = Timer("function(x, weights)", globals={"function": function, "x": x, "weights": weights})
                print(f"{name}: {timer.blocked_autorange().median * 1e6:.0f} us forward")


if __name__ == "__main__":
    main()
