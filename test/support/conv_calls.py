"""Convolutions that the GPU tests compute, and the kernels that they launch."""

# pyright: basic

from __future__ import annotations

from typing import Any

import numpy as np
from conv_reference import How, how

from cute_dialect import op
from cute_dialect.kernels.conv import conv_text
from cute_dialect.kernels.conv.depthwise import depthwise_text
from cute_dialect.kernels.conv.direct import DirectConfig, direct_text
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.op.conv.choice import ConvRequest, chosen
from cute_dialect.op.conv.depthwise import depthwise_config
from cute_dialect.op.conv.few_channels import few_channels
from cute_dialect.op.problems.conv import geometry

GPU = "NVIDIA H200"
CALLS: dict[str, tuple[tuple[int, ...], tuple[int, ...], How]] = {
    "3x3": ((8, 28, 28, 128), (128, 3, 3, 128), how()),
    "3x3, 72 channels": ((2, 19, 23, 72), (136, 3, 3, 72), how()),
    "stride": ((8, 28, 28, 128), (256, 3, 3, 128), how(1, 2)),
    "odd extents, stride 3": ((2, 29, 23, 64), (72, 3, 3, 64), how(1, 3)),
    "one tap, stride": ((8, 28, 28, 256), (512, 1, 1, 256), how(0, 2)),
    "uneven, dilated, backwards": (
        (2, 17, 21, 64), (64, 3, 2, 64), How((1, 0), (0, 2), (2, 1), (1, 2), 1, True)
    ),
    "first layer": ((4, 64, 64, 8), (64, 7, 7, 8), how(3, 2)),
    "16 channels": ((4, 33, 31, 16), (64, 3, 3, 16), how()),
    "few tiles": ((4, 7, 7, 512), (512, 3, 3, 512), how()),
    "many tiles": ((32, 56, 56, 64), (64, 3, 3, 64), how()),
    "three dimensions": ((2, 5, 9, 11, 64), (64, 3, 3, 3, 64), how(1, 1, rank=3)),
    "groups": ((4, 14, 14, 160), (256, 3, 3, 80), how(groups=2)),
    "one dimension": ((8, 1000, 64), (128, 5, 64), how(2, 1, rank=1)),
}  # fmt: skip
KINDS = ("fprop", "dgrad", "wgrad")
PLAIN, ADDED = Epilogue(), Epilogue(alpha="arg", beta=1.0)
FUSED = [("stride", "dgrad"), ("3x3, 72 channels", "wgrad"), ("few tiles", "wgrad"), ("groups", "fprop"),
         ("groups", "dgrad"), ("groups", "wgrad")]  # fmt: skip
"""Calls whose epilogue adds an array and whose accumulator layout differs from that of a plain GEMM."""
PLANS: list[tuple[str, str, str | None, Any]] = [
    ("3x3", "fprop", None, None),
    ("3x3", "dgrad", "analytic", None),
    ("stride", "dgrad", None, None),
    ("few tiles", "wgrad", None, ("parallel", 2)),
    ("few tiles", "fprop", None, ("serial", 3)),
    ("first layer", "fprop", "fixed_channels", None),
    ("16 channels", "fprop", "few_channels", None),
    ("groups", "wgrad", None, None),
]


def request(name: str, kind: str, epilogue: Epilogue = PLAIN) -> ConvRequest:
    """Return the convolution request of a named call."""
    of_x, of_f, h = CALLS[name]
    a = h.arguments
    found = geometry(name, kind, of_x, of_f, a["stride"], a["padding"], a["dilation"], h.groups, a["mode"])
    return ConvRequest(found, "f16", "f32" if kind == "wgrad" else "f16", epilogue=epilogue)


def kernel(name: str, kind: str, epilogue: Epilogue = PLAIN) -> Any:
    """Return the im2col kernel that a call uses on an H200, or None if im2col loads do not support it."""
    return chosen(request(name, kind, epilogue), GPU)


def served() -> list[tuple[str, str]]:
    """Return the calls that have an im2col kernel."""
    return [(name, kind) for name in CALLS for kind in KINDS if kernel(name, kind) is not None]


def texts() -> dict[str, str]:
    """Return the kernels by name."""
    configs = [kernel(*call) for call in served()] + [kernel(*call, ADDED) for call in FUSED]
    found = {config.name: conv_text(config) for config in configs}
    tiles = [few_channels(request(*call)) for call in served()]
    found |= {x.name: direct_text(x) for x in tiles if isinstance(x, DirectConfig)}
    depthwise = kernel_of_single_channels()
    found[depthwise.name] = depthwise_text(depthwise)
    for name, plan, arrays, more in plans():
        del name
        of_call = plan.arguments(*arrays, **more, device="cpu")
        found |= {step.variant.name: step.variant.text() for step in of_call.steps(of_call.operands)}
    return found


SINGLE: tuple[tuple[int, ...], tuple[int, ...], How] = ((4, 28, 27, 64), (64, 3, 3, 1), how(groups=64))
"""A depthwise convolution with a bias, an addend and an activation."""


def kernel_of_single_channels() -> Any:
    """Return the kernel of the depthwise call."""
    of_x, of_f, h = SINGLE
    g = geometry("conv2d", "fprop", of_x, of_f, 1, 1, 1, h.groups)
    config = depthwise_config(g, "f16", "f16")
    assert config is not None
    return config._replace(epilogue=Epilogue(beta=1.0, bias="n", activation="relu"))


def plans() -> list[tuple[str, Any, list[Any], dict[str, Any]]]:
    """Yield planned convolutions as (name, plan, A and B, keyword arguments); all arrays are zero."""
    found: list[tuple[str, Any, list[Any], dict[str, Any]]] = []
    for name, kind, algorithm, split in PLANS:
        of_x, of_f, h = CALLS[name]
        a = h.arguments
        g = geometry(name, kind, of_x, of_f, a["stride"], a["padding"], a["dilation"], h.groups, a["mode"])
        plan = op.Conv2d(kind, element="f16", element_C="f32" if kind == "wgrad" else "f16", group=h.groups)
        plan.iterator_algorithm = algorithm
        shapes = {"fprop": (of_x, of_f), "dgrad": (g.result, of_f), "wgrad": (g.result, of_x)}[kind]
        more = {n: a[n] for n in ("stride", "padding", "dilation")} | {"size": g.output, "split_k": split}
        found.append((name, plan, [np.zeros(s, np.float16) for s in shapes], more))
    return found
