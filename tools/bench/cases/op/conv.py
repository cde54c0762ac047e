"""``cute-bench op --groups conv``: f16 convolutions and gradients, channels last, compared with cuDNN."""

# torch may be missing when types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import gcd, prod
from typing import Any, NamedTuple

from cute_dialect import op
from cute_dialect.kernels.conv import conv_text
from cute_dialect.kernels.conv.unfold import UnfoldConfig, unfold_text
from cute_dialect.op.conv.channel_padding import narrow
from cute_dialect.op.conv.choice import ConvRequest, chosen
from cute_dialect.op.conv.compiled import kernel_text
from cute_dialect.op.conv.few_channels import few_channels
from cute_dialect.op.conv.partial_weights import PartialWeights
from cute_dialect.op.execute.kernels import text_of
from cute_dialect.op.problems.conv import Geometry, geometry
from cute_dialect.tools.bench.cases.elementwise_add import BenchError
from cute_dialect.tools.bench.cases.op import Trial

__all__ = ["CASES", "Conv"]

GPU = "NVIDIA H200"
_NAMES = {"fprop": "conv2d", "dgrad": "conv2d_input", "wgrad": "conv2d_weight"}


class Conv(NamedTuple):
    """A convolution of (N, H, H, C) with K filters of (taps, taps, C / groups).

    ``fused`` adds a bias, relu and a residual to the forward convolution, or a residual to a gradient.
    """

    kind: str
    n: int
    size: int
    c: int
    k: int
    taps: int = 3
    stride: int = 1
    fused: bool = False
    groups: int = 1

    @property
    def operation(self) -> str:
        """The pass and the filter, for example ``fprop 3x3``."""
        more = f" s{self.stride}" * (self.stride > 1) + " fused" * self.fused
        more += " depthwise" * (1 < self.groups == self.c) + f" g{self.groups}" * (1 < self.groups < self.c)
        return f"{self.kind} {self.taps}x{self.taps}{more}"

    @property
    def name(self) -> str:
        return f"{self.operation} f16 n{self.n} {self.size}^2 {self.c}->{self.k}"

    @property
    def geometry(self) -> Geometry:
        image, filters = (self.n, self.size, self.size, self.c), (self.k, self.taps, self.taps, self.c // self.groups)
        return geometry(_NAMES[self.kind], self.kind, image, filters, self.stride, self.taps // 2, 1, self.groups)

    def kernels(self) -> Mapping[str, Callable[[], str]]:
        """Return the kernels of the call on an H200, for convolutions with im2col TMA."""
        from cute_dialect.op.epilogue.combination import LinearCombination
        from cute_dialect.op.select.gemm_dispatch import epilogue_of

        g = self.geometry
        if g.is_product:
            return self._product(g)
        asked = ConvRequest(g, "f16", "f16")
        few = few_channels(asked)
        if isinstance(few, PartialWeights):
            return {few.name: partial(kernel_text, few.kernel("f16"))}
        if few is not None and self.fused:
            added: Any = True  # A residual is added.
            made = epilogue_of(
                "conv2d", LinearCombination(c=added, activation="relu"), *g.matrix, (self.k,), "f16", "f16"
            )
            few = few._replace(epilogue=made)
        if few is not None:
            return {few.name: partial(kernel_text, few)}
        if self.fused:
            added: Any = True  # A residual is added.
            forward = self.kind == "fprop"
            extras, bias = (
                (LinearCombination(c=added, activation="relu"), (self.k,))
                if forward
                else (LinearCombination(c=added), None)
            )
            asked = asked._replace(epilogue=epilogue_of("conv2d", extras, *g.matrix, bias, "f16", "f16"))
        left = narrow(asked, GPU)
        config = chosen(asked if left is None else asked._replace(geometry=left), GPU)
        unfold = UnfoldConfig(8 * gcd(8, 2 * self.c), self.kind == "dgrad")
        written = {unfold.name: partial(unfold_text, unfold)}
        if config is not None:
            return {config.name: partial(conv_text, config), **(written if left is not None else {})}
        return {**written, **self._product(g)}

    def _product(self, g: Geometry) -> Mapping[str, Callable[[], str]]:
        """Return the GEMM kernel of a 1x1 convolution or of an explicit im2col."""
        from cute_dialect.op.select.gemm_dispatch import choose
        from cute_dialect.op.select.kernel_choice import Problem

        pixels = prod(g.result[:-1])
        problem = {
            "fprop": Problem(pixels, self.k, self.c), "dgrad": Problem(pixels, self.c, self.k, major_b="n"),
            "wgrad": Problem(self.k, g.taps * self.c, pixels, major_a="m", major_b="n"),
        }[self.kind]  # fmt: skip
        choice = choose(problem, gpu=GPU)
        return {choice.name: partial(text_of, choice)}

    def trial(self) -> Trial:
        """Create operands of normally distributed values, channels last."""
        import torch

        torch.manual_seed(0)
        torch.backends.cudnn.benchmark = True
        g = self.geometry

        def image(*shape: int) -> torch.Tensor:
            made = torch.randn(shape, device="cuda", dtype=torch.float16)
            return made.permute(0, 3, 1, 2)

        x, f, y = image(*g.image), image(*g.filter), image(*g.result)
        bias = torch.randn(self.k, device="cuda", dtype=torch.float16)
        stride, padding = self.stride, self.taps // 2
        conv = torch.nn.functional.conv2d
        mask = [self.kind == "dgrad", self.kind == "wgrad", False]

        def backward(y: torch.Tensor, x: torch.Tensor, f: torch.Tensor) -> torch.Tensor:
            how = ([stride] * 2, [padding] * 2, [1, 1], False, [0, 0], self.groups, mask)
            return torch.ops.aten.convolution_backward(y, x, f, None, *how)[mask.index(True)]

        def ours() -> torch.Tensor:
            if self.kind == "fprop" and self.fused:
                return op.conv2d(x, f, bias, stride, padding, groups=self.groups, c=y, activation="relu")
            if self.kind == "fprop":
                return op.conv2d(x, f, None, stride, padding, groups=self.groups)
            if self.kind == "dgrad":
                c = x if self.fused else None
                return op.conv2d_input(x.shape, f, y, stride, padding, groups=self.groups, c=c)
            c = f if self.fused else None
            return op.conv2d_weight(x, f.shape, y, stride, padding, groups=self.groups, c=c)

        def of_torch() -> torch.Tensor:
            forward = self.kind == "fprop"
            if self.fused and forward:
                return torch.relu_(conv(x, f, bias, stride, padding, 1, self.groups).add_(y))
            if self.fused:
                return backward(y, x, f).add_(x if self.kind == "dgrad" else f)
            return conv(x, f, None, stride, padding, 1, self.groups) if forward else backward(y, x, f)

        def check() -> float:
            exact = [t.float() for t in (x, f, y)]
            with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
                if self.kind == "fprop":
                    shift = bias.float() if self.fused else None
                    wanted = conv(exact[0], exact[1], shift, stride, padding, 1, self.groups)
                    wanted = torch.relu(wanted + exact[2]) if self.fused else wanted
                else:
                    wanted = backward(exact[2], exact[0], exact[1])
                    added = exact[0] if self.kind == "dgrad" else exact[1]
                    wanted = wanted + added if self.fused else wanted
            pixels, taps = prod(g.result[:-1]), self.taps**2
            of_kind = {"fprop": taps * self.c, "dgrad": taps * self.k, "wgrad": pixels * self.groups}
            terms = of_kind[self.kind] // self.groups
            # The limit covers rounding to f16 and occasional truncation of sums to 13 bits, and f32 rounding.
            error = (ours().float() - wanted).abs() / (2.0**-10 * wanted.abs() + 2.0**-11 * terms**0.5)
            if not float(error.max()) <= 1:
                raise BenchError(f"{self.name}: the error is {float(error.max()):.2f} times the limit")
            return float(error.max())

        traffic = 2 * (prod(g.image) + prod(g.filter) + prod(g.result) * (2 if self.fused else 1))
        return Trial(check, ours, {"cudnn": of_torch}, traffic, float(g.flops), "TFLOP/s")


_RESNET = (
    (56, 64, 64, 1, 1), (56, 64, 64, 3, 1), (56, 256, 64, 1, 1), (28, 128, 128, 3, 1), (14, 256, 256, 3, 1),
    (7, 512, 512, 3, 1), (56, 128, 128, 3, 2), (28, 256, 256, 3, 2), (14, 512, 512, 3, 2), (56, 256, 512, 1, 2),
)  # fmt: skip
_OTHERS = (
    (8, 64, 320, 320), (8, 32, 640, 640), (8, 16, 1280, 1280), (1, 512, 128, 128), (32, 56, 256, 256),
)  # fmt: skip
"""Convolutions of diffusion models, and a large one."""
CASES = (
    *(
        Conv(kind, n, size, c, k, taps, stride)
        for kind in ("fprop", "dgrad", "wgrad") for n in (32, 128) for size, c, k, taps, stride in _RESNET
    ),
    *(Conv(kind, n, size, c, k) for kind in ("fprop", "dgrad", "wgrad") for n, size, c, k in _OTHERS),
    *(
        Conv(kind, n, size, c, c, groups=c)
        for kind in ("fprop", "dgrad") for n in (32, 128) for size, c in ((56, 144), (112, 96))
    ),
    Conv("fprop", 32, 224, 3, 64, 7, 2), Conv("wgrad", 32, 224, 3, 64, 7, 2),
    Conv("fprop", 32, 56, 144, 144, 3, 1, True, 144),
    *(Conv(kind, 32, 28, 256, 256, groups=4) for kind in ("fprop", "dgrad", "wgrad")),
    Conv("fprop", 32, 28, 256, 256, 3, 1, True, 4), Conv("dgrad", 32, 56, 128, 128, 3, 2, True),
    Conv("wgrad", 32, 28, 128, 128, 3, 1, True),
    *(Conv("fprop", n, size, c, c, 3, 1, True) for n in (32, 128) for size, c in ((56, 64), (28, 128), (14, 256))),
)  # fmt: skip
