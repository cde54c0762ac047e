"""``cute-bench op --groups conv``: f16 convolutions and gradients, channels last, compared with cuDNN."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import gcd, prod
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect import op
from cute_dialect.kernels.conv import conv_text
from cute_dialect.kernels.conv.few_results import FewResultsConfig
from cute_dialect.kernels.conv.unfold import UnfoldConfig, unfold_text
from cute_dialect.op.conv.channel_padding import narrow
from cute_dialect.op.conv.choice import ConvRequest, chosen
from cute_dialect.op.conv.few_channels import PartialWeights, few_channels
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.execute.kernels import text_of
from cute_dialect.op.problems.conv import Geometry, geometry
from cute_dialect.op.problems.gemm import epilogue_of
from cute_dialect.op.select.gemm_dispatch import choose
from cute_dialect.op.select.kernel_choice import Problem
from cute_dialect.tools.bench import runner
from cute_dialect.tools.bench.runner import Text, Trial, check_limit

if TYPE_CHECKING:  # pragma: no cover
    import torch


GPU = "NVIDIA H200"
UNITS = {"f16": 2.0**-10, "bf16": 2.0**-7}
_NAMES = {"fprop": "conv2d", "dgrad": "conv2d_input", "wgrad": "conv2d_weight"}


class Conv(NamedTuple):
    """A convolution of ``n`` images of (h, w, c) with ``k`` filters of (r, s, c / groups).

    ``fused`` adds a bias, relu and a residual to the forward convolution, or a residual to a gradient.
    """

    kind: str
    element: str
    n: int
    image: tuple[int, int]
    c: int
    k: int
    taps: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    groups: int
    fused: bool = False

    @property
    def operation(self) -> str:
        """The pass and the kind of grouping, for example ``dgrad grouped``."""
        depthwise = 1 < self.groups == self.c
        return self.kind + (" depthwise" if depthwise else " grouped" if self.groups > 1 else "")

    @property
    def name(self) -> str:

        def both(x: tuple[int, int]) -> str:
            return str(x[0]) if x[0] == x[1] else f"{x[0]},{x[1]}"

        text = f"{self.kind} {self.element} n{self.n} {self.image[0]}x{self.image[1]} {self.c}->{self.k}"
        text += f" {self.taps[0]}x{self.taps[1]} s{both(self.stride)} p{both(self.padding)} d{both(self.dilation)}"
        return text + f" g{self.groups}"

    @property
    def result(self) -> tuple[int, int]:
        """The height and width of the result."""
        h, w = (
            (x + 2 * p - d * (t - 1) - 1) // s + 1
            for x, t, s, p, d in zip(self.image, self.taps, self.stride, self.padding, self.dilation)
        )
        return h, w

    @property
    def flops(self) -> float:
        """The number of FLOPs."""
        return 2.0 * self.n * prod(self.result) * self.k * prod(self.taps) * (self.c // self.groups)

    @property
    def elements(self) -> int:
        """The number of elements of images, filters and results."""
        filters = self.k * prod(self.taps) * self.c // self.groups
        return self.n * (prod(self.image) * self.c + prod(self.result) * self.k) + filters

    def tiny(self) -> Conv:
        """Return a problem with one image of few pixels and channels, and the same filter and kind of grouping."""
        depthwise = self.groups > 1 and self.groups == self.c
        groups = 8 if depthwise else min(self.groups, 2)
        c, k = (groups if depthwise else groups * min(x // self.groups, 8) for x in (self.c, self.k))
        if depthwise:
            k = c * min(self.k // self.c, 2)
        small = [
            max(d * (t - 1) + 1 - 2 * p, min(x, 6))
            for x, t, p, d in zip(self.image, self.taps, self.padding, self.dilation)
        ]
        return self._replace(n=1, image=(small[0], small[1]), c=c, k=k, groups=groups)

    def trial(self, device: str = "cuda", compiled: bool = False) -> Trial:
        """Create operands of normally distributed values, channels last; grouped peers also run channels first."""
        import torch

        torch.manual_seed(0)
        torch.backends.cudnn.benchmark = device == "cuda"
        shapes = (
            (self.n, *self.image, self.c), (self.k, *self.taps, self.c // self.groups), (self.n, *self.result, self.k),
        )  # fmt: skip
        x, f, y = (runner.normal(self.element, *s, device=device).permute(0, 3, 1, 2) for s in shapes)
        forward, source = self.kind == "fprop", {"fprop": y, "dgrad": x, "wgrad": f}[self.kind]
        bias = runner.normal(self.element, self.k, device=device) if forward and self.fused else None
        how = (self.stride, self.padding, self.dilation)
        run: dict[str, Any] = {"device": "cpu"} if device == "cpu" else {}
        run |= {"c": source} if self.fused else {}
        run |= {"activation": "relu"} if bias is not None else {}

        def ours() -> torch.Tensor:
            if forward:
                return op.conv2d(x, f, bias, *how, groups=self.groups, **run)
            if self.kind == "dgrad":
                return op.conv2d_input(tuple(x.shape), f, y, *how, groups=self.groups, **run)
            return op.conv2d_weight(x, tuple(f.shape), y, *how, groups=self.groups, **run)

        def peer(x: torch.Tensor, f: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            if forward:
                found = torch.nn.functional.conv2d(x, f, bias, *how, self.groups)
            else:
                mask = [self.kind == "dgrad", self.kind == "wgrad", False]
                more = (*map(list, how), False, [0, 0], self.groups, mask)
                found = torch.ops.aten.convolution_backward(y, x, f, None, *more)[mask.index(True)]
            found = found.add_(source) if self.fused else found
            return torch.relu_(found) if bias is not None else found

        others: dict[str, Callable[[], object]] = {"cudnn": lambda: peer(x, f, y)}
        if self.groups > 1:
            first = [t.contiguous() for t in (x, f, y)]
            others["cudnn, channels first"] = lambda: peer(*first)

        def check() -> float:
            wanted = self.reference(x, f, y)
            wanted = wanted + source.double() if self.fused else wanted
            wanted = (wanted + bias.double()[:, None, None]).relu() if bias is not None else wanted
            # The limit covers rounding to the element and occasional truncation of sums to 13 bits.
            limit = UNITS[self.element] * wanted.abs() + 2.0**-11 * self._terms**0.5
            return check_limit(self.name, ours(), wanted, limit)

        traffic = 2 * (self.elements + (source.numel() if self.fused else 0))
        return Trial(check, ours, others, traffic, self.flops, "TFLOP/s")

    def reference(self, x: Any, f: Any, y: Any) -> Any:
        """Return the result in float64 from tensors (N, C, H, W): a matmul per tap and group, independent of cuDNN."""
        import torch

        g, (r, s), (p, q) = self.groups, self.taps, self.result
        per_c, per_k, pixels = self.c // g, self.k // g, self.n * p * q
        images, filters = (t.permute(0, 2, 3, 1).double() for t in (x, f))
        pad = (0, 0, self.padding[1], self.padding[1], self.padding[0], self.padding[0])
        images = torch.nn.functional.pad(images, pad)
        grads = y.permute(0, 2, 3, 1).double().reshape(pixels, g, per_k).transpose(0, 1)
        filters = filters.reshape(g, per_k, r, s, per_c)
        if self.kind == "dgrad":
            images.zero_()
        sums = torch.zeros_like(filters if self.kind == "wgrad" else grads)
        for i in range(r):
            for j in range(s):
                rows, columns = (
                    slice(t * d, t * d + (n - 1) * u + 1, u)
                    for t, n, u, d in zip((i, j), (p, q), self.stride, self.dilation)
                )
                tap, seen = filters[:, :, i, j], images[:, rows, columns]
                of_group = seen.reshape(pixels, g, per_c).transpose(0, 1)
                if self.kind == "fprop":
                    sums += of_group * tap.transpose(1, 2) if per_c == per_k == 1 else of_group @ tap.transpose(1, 2)
                elif self.kind == "wgrad":
                    alone = per_c == 1
                    sums[:, :, i, j] = (
                        (grads * of_group).sum(1).unsqueeze(2) if alone else grads.transpose(1, 2) @ of_group
                    )
                else:
                    added = grads * tap if per_c == per_k == 1 else grads @ tap
                    seen += added.transpose(0, 1).reshape(seen.shape)
        if self.kind == "fprop":
            return sums.transpose(0, 1).reshape(self.n, p, q, self.k).permute(0, 3, 1, 2)
        if self.kind == "wgrad":
            return sums.reshape(self.k, r, s, per_c).permute(0, 3, 1, 2)
        (top, left), (h, w) = self.padding, self.image
        return images[:, top : top + h, left : left + w].permute(0, 3, 1, 2)

    @property
    def _terms(self) -> int:
        """The number of products per element of the result."""
        pixels, taps = self.n * prod(self.result), prod(self.taps)
        return {"fprop": taps * self.c // self.groups, "dgrad": taps * self.k // self.groups, "wgrad": pixels}[
            self.kind
        ]


class NamedConv(NamedTuple):
    """A case of the table: square images and filters, padded to keep the image size."""

    problem: Conv

    @property
    def operation(self) -> str:
        """The pass and the filter, for example ``fprop 3x3``."""
        p, (taps, _) = self.problem, self.problem.taps
        more = f" s{p.stride[0]}" * (p.stride[0] > 1) + " fused" * p.fused
        more += " depthwise" * (1 < p.groups == p.c) + f" g{p.groups}" * (1 < p.groups < p.c)
        return f"{p.kind} {taps}x{taps}{more}"

    @property
    def name(self) -> str:
        p = self.problem
        return f"{self.operation} f16 n{p.n} {p.image[0]}^2 {p.c}->{p.k}"

    @property
    def geometry(self) -> Geometry:
        p = self.problem
        image, filters = (p.n, *p.image, p.c), (p.k, *p.taps, p.c // p.groups)
        return geometry(_NAMES[p.kind], p.kind, image, filters, p.stride[0], p.padding[0], 1, p.groups)

    def kernels(self) -> Mapping[str, Text]:
        """Return the kernels of the call on an H200, for convolutions with im2col TMA."""
        g = self.geometry
        if g.is_product:
            return self._product(g)
        asked = ConvRequest(g, "f16", "f16")
        few = few_channels(asked)
        if isinstance(few, PartialWeights):
            return {few.name: partial(text_of, few.kernel("f16"))}
        if few is not None and self.problem.fused and not isinstance(few, FewResultsConfig):
            few = few._replace(epilogue=self._epilogue(g, forward=True))
        if few is not None:
            return {few.name: partial(text_of, few)}
        if self.problem.fused:
            asked = asked._replace(epilogue=self._epilogue(g, forward=self.problem.kind == "fprop"))
        left = narrow(asked, GPU)
        config = chosen(asked if left is None else asked._replace(geometry=left), GPU)
        unfold = UnfoldConfig(8 * gcd(8, 2 * self.problem.c), self.problem.kind == "dgrad")
        written = {unfold.name: partial(unfold_text, unfold)}
        if config is not None:
            return {config.name: partial(conv_text, config), **(written if left is not None else {})}
        return {**written, **self._product(g)}

    def _epilogue(self, g: Geometry, *, forward: bool) -> Any:
        added: Any = True  # A residual is added.
        extras = LinearCombination(c=added, activation="relu") if forward else LinearCombination(c=added)
        return epilogue_of("conv2d", extras, *g.matrix, (self.problem.k,) if forward else None, "f16", "f16")

    def _product(self, g: Geometry) -> Mapping[str, Text]:
        """Return the GEMM kernel of a 1x1 convolution or of an explicit im2col."""
        pixels, c, k = prod(g.result[:-1]), self.problem.c, self.problem.k
        problem = {
            "fprop": Problem(pixels, k, c),
            "dgrad": Problem(pixels, c, k, major_b="n"),
            "wgrad": Problem(k, g.taps * c, pixels, major_a="m", major_b="n"),
        }[self.problem.kind]
        choice = choose(problem, gpu=GPU)
        return {choice.name: partial(text_of, choice)}

    def trial(self) -> Trial:
        """Create operands of normally distributed values, channels last."""
        found = self.problem.trial()
        return found._replace(peers={"cudnn": found.peers["cudnn"]})


def named(
    kind: str, n: int, size: int, c: int, k: int, taps: int = 3, stride: int = 1, fused: bool = False, groups: int = 1
) -> NamedConv:
    """Return a case of f16."""
    pair = (taps // 2, taps // 2)
    return NamedConv(
        Conv(kind, "f16", n, (size, size), c, k, (taps, taps), (stride, stride), pair, (1, 1), groups, fused)
    )


_RESNET = (
    (56, 64, 64, 1, 1), (56, 64, 64, 3, 1), (56, 256, 64, 1, 1), (28, 128, 128, 3, 1), (14, 256, 256, 3, 1),
    (7, 512, 512, 3, 1), (56, 128, 128, 3, 2), (28, 256, 256, 3, 2), (14, 512, 512, 3, 2), (56, 256, 512, 1, 2),
)  # fmt: skip
_OTHERS = ((8, 64, 320, 320), (8, 32, 640, 640), (8, 16, 1280, 1280), (1, 512, 128, 128), (32, 56, 256, 256))
"""Convolutions of diffusion models, and a large one."""
CASES = (
    *(
        named(kind, n, size, c, k, taps, stride)
        for kind in ("fprop", "dgrad", "wgrad") for n in (32, 128) for size, c, k, taps, stride in _RESNET
    ),
    *(named(kind, n, size, c, k) for kind in ("fprop", "dgrad", "wgrad") for n, size, c, k in _OTHERS),
    *(
        named(kind, n, size, c, c, groups=c)
        for kind in ("fprop", "dgrad") for n in (32, 128) for size, c in ((56, 144), (112, 96))
    ),
    named("fprop", 32, 224, 3, 64, 7, 2), named("wgrad", 32, 224, 3, 64, 7, 2),
    named("fprop", 32, 56, 144, 144, 3, 1, True, 144),
    *(named(kind, 32, 28, 256, 256, groups=4) for kind in ("fprop", "dgrad", "wgrad")),
    named("fprop", 32, 28, 256, 256, 3, 1, True, 4), named("dgrad", 32, 56, 128, 128, 3, 2, True),
    named("wgrad", 32, 28, 128, 128, 3, 1, True),
    *(named("fprop", n, size, c, c, 3, 1, True) for n in (32, 128) for size, c in ((56, 64), (28, 128), (14, 256))),
)  # fmt: skip

GROUPS = {"conv": CASES}
