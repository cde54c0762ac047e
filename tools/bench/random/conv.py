"""Random convolutions, forward and both gradients, compared with cuDNN in benchmark mode."""

# torch may be missing when types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import random
from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

from cute_dialect import op
from cute_dialect.tools.bench.cases.elementwise_add import BenchError
from cute_dialect.tools.bench.cases.op import Trial
from cute_dialect.tools.bench.random import log_uniform

__all__ = ["RandomConv", "draw"]

TYPES = {"f16": "float16", "bf16": "bfloat16"}
UNITS = {"f16": 2.0**-10, "bf16": 2.0**-7}
MOST_FLOPS, MOST_BYTES = 2e11, 1e9


class RandomConv(NamedTuple):
    """A convolution of ``n`` images of (h, w, c) with ``k`` filters of (r, s, c / groups)."""

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

    def tiny(self) -> RandomConv:
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

    def trial(self, device: str, compiled: bool) -> Trial:
        """Create operands of normally distributed values, channels last; grouped peers also run channels first."""
        import torch

        torch.manual_seed(0)
        torch.backends.cudnn.benchmark = device == "cuda"
        dtype = getattr(torch, TYPES[self.element])
        shapes = (
            (self.n, *self.image, self.c), (self.k, *self.taps, self.c // self.groups), (self.n, *self.result, self.k),
        )  # fmt: skip
        x, f, y = (torch.randn(s, device=device, dtype=dtype).permute(0, 3, 1, 2) for s in shapes)
        how = (self.stride, self.padding, self.dilation)
        run: dict[str, Any] = {"device": "cpu"} if device == "cpu" else {}

        def ours() -> torch.Tensor:
            if self.kind == "fprop":
                return op.conv2d(x, f, None, *how, groups=self.groups, **run)
            if self.kind == "dgrad":
                return op.conv2d_input(tuple(x.shape), f, y, *how, groups=self.groups, **run)
            return op.conv2d_weight(x, tuple(f.shape), y, *how, groups=self.groups, **run)

        def peer(x: torch.Tensor, f: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            if self.kind == "fprop":
                return torch.nn.functional.conv2d(x, f, None, *how, self.groups)
            mask = [self.kind == "dgrad", self.kind == "wgrad", False]
            more = (*map(list, how), False, [0, 0], self.groups, mask)
            return torch.ops.aten.convolution_backward(y, x, f, None, *more)[mask.index(True)]

        peers: dict[str, Callable[[], object]] = {"cudnn": lambda: peer(x, f, y)}
        if self.groups > 1:
            first = [t.contiguous() for t in (x, f, y)]
            peers["cudnn, channels first"] = lambda: peer(*first)

        def check() -> float:
            wanted = self.reference(x, f, y)
            error = (ours().double() - wanted).abs()
            share = float((error / (UNITS[self.element] * wanted.abs() + 2.0**-11 * self._terms**0.5)).max())
            if not share <= 1:
                raise BenchError(f"{self.name}: the error is {share:.2f} times the limit")
            return share

        return Trial(check, ours, peers, 2 * self.elements, self.flops, "TFLOP/s")

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


def draw(rng: random.Random, number: int) -> RandomConv:
    """Draw a convolution.

    * Pass: forward, dgrad and wgrad alternately; f16 or bf16.
    * Groups: one in two of five problems, depthwise in one of four, else 2 to 64.
    * Channels: 3 to 1,024, log-uniform, three in four rounded to multiples of 8.
    * Filters: 1 to 7, one in five not square; stride 1, 2 or 3 in 14, 5 and 1 of 20 problems; dilation 1, 2 or 3 in 16,
      3 and 1 of 20 if the filter is larger than 1; padding that keeps the image size in three of four, else at most
      that.
    * Images: 7 to 256, log-uniform, one in five not square; 1 to 128 images, limited by 2e11 FLOPs and 1 GB.

    Data is normally distributed.  The tolerance is 2^-10 (bf16: 2^-7) of the element plus 2^-11 sqrt(terms), compared
    with a float64 result that does not use cuDNN.
    """
    kind = ("fprop", "dgrad", "wgrad")[number % 3]
    while True:
        element = rng.choice(("f16", "bf16"))
        style = rng.random()
        step = 8 if rng.random() < 0.75 else 1
        if style < 0.4:
            groups, c, k = 1, *(log_uniform(rng, 3, 1024, step) for _ in "ck")
        elif style < 0.65:
            groups = c = log_uniform(rng, 3, 1024, step)
            k = c * (2 if rng.random() < 0.1 else 1)
        else:
            groups = rng.choice((2, 4, 8, 16, 32, 32, 64))
            most = 1024 // groups
            c, k = (groups * log_uniform(rng, 1, most, min(step, most)) for _ in "ck")
        side = rng.randint(1, 7)
        taps = (side, rng.randint(1, 7)) if rng.random() < 0.2 else (side, side)
        stride = rng.choice((1,) * 14 + (2,) * 5 + (3,))
        dilation = rng.choice((1,) * 16 + (2,) * 3 + (3,)) if max(taps) > 1 else 1
        same = (dilation * (taps[0] - 1) // 2, dilation * (taps[1] - 1) // 2)
        padding = same if rng.random() < 0.75 else (rng.randint(0, same[0]), rng.randint(0, same[1]))
        size = log_uniform(rng, 7, 256)
        image = (size, log_uniform(rng, 7, 256)) if rng.random() < 0.2 else (size, size)
        found = RandomConv(
            kind,
            element,
            log_uniform(rng, 1, 128),
            image,
            c,
            k,
            taps,
            (stride, stride),
            padding,
            (dilation, dilation),
            groups,
        )
        while found.n > 1 and not _fits(found):
            found = found._replace(n=found.n // 2)
        if min(found.result) > 0 and _fits(found):
            return found


def _fits(one: RandomConv) -> bool:
    return min(one.result) < 1 or (one.flops <= MOST_FLOPS and 2 * one.elements <= MOST_BYTES)
