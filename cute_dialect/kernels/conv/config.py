"""Configuration of a Hopper convolution: the static window, and the GEMM that computes it.

Tuples have one entry per spatial dimension, one to three, in the order D, H, W.

>>> config = ConvConfig(GemmConfig(), Window((3, 3), (1, 1), (1, 1)))
>>> config.window.lower, config.window.upper
((-1, -1), (-1, -1))
>>> config.name
'fprop-f16-f16-3x3-p1x1-128x256-c2d'
"""

from __future__ import annotations

from math import gcd, prod
from typing import NamedTuple

from cute_dialect.arch.errors import ArchError
from cute_dialect.kernels.common.kernel_names import by, differing
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.config import LETTERS, GemmConfig, SplitConfig

FPROP, DGRAD, WGRAD = "fprop", "dgrad", "wgrad"
KINDS = (FPROP, DGRAD, WGRAD)


def extent_of(extent: int, taps: int, before: int, after: int, stride: int, dilation: int) -> int:
    """Return the output extent along one dimension. It is 0 or negative if the filter does not fit.

    >>> extent_of(7, 3, 1, 1, 2, 1), extent_of(7, 5, 0, 0, 1, 2)
    (4, -1)
    """
    return (extent + before + after - dilation * (taps - 1) - 1) // stride + 1


class Residue(NamedTuple):
    """Filter taps that reach the pixels of a residue class: pixels with the same coordinate modulo the stride.

    The class uses taps ``first``, ``first + step``, and so on. The last of these taps reads
    pixel ``q + at`` of the output's gradient for pixel ``q * stride + residue`` of the image.
    """

    first: int  # the first tap
    step: int  # distance between two taps
    hits: int  # number of taps
    at: int  # offset of the pixel that the last tap reads
    apart: int  # distance between the pixels that consecutive taps read


class Window(NamedTuple):
    """Geometry of a convolution window; ``before`` and ``after`` are the padding."""

    taps: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    stride: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    left: tuple[int, ...] = ()  # for dgrad: the image's extents modulo the stride
    flip: bool = False  # apply the filter reversed (convolution instead of cross-correlation)

    @property
    def strides(self) -> tuple[int, ...]:
        return self.stride or (1,) * len(self.taps)

    @property
    def dilations(self) -> tuple[int, ...]:
        return self.dilation or (1,) * len(self.taps)

    @property
    def lower(self) -> tuple[int, ...]:
        """Lower corner of the im2col box: the first pixels that a tap sees, relative to the image's first pixel."""
        return tuple([-p for p in self.before])

    @property
    def upper(self) -> tuple[int, ...]:
        """Upper corner of the im2col box: the last pixels that the first tap sees, from the image's last pixel on."""
        return tuple([p - (t - 1) * d for p, t, d in zip(self.after, self.taps, self.dilations)])

    def result(self, extents: tuple[int, ...]) -> tuple[int, ...]:
        """Return the output extents for those of an image."""
        of_each = zip(extents, self.taps, self.before, self.after, self.strides, self.dilations)
        return tuple([extent_of(*x) for x in of_each])

    def residues(self, i: int) -> tuple[Residue, ...]:
        """Return the taps of each residue class along dimension ``i``.

        >>> Window((3,), (1,), (1,), (2,)).residues(0)
        (Residue(first=1, step=2, hits=1, at=0, apart=1), Residue(first=0, step=2, hits=2, at=0, apart=1))
        """
        taps, before, u, d = self.taps[i], self.before[i], self.strides[i], self.dilations[i]
        step, found = u // gcd(u, d), list[Residue]()
        for a in range(u):
            hit = [t for t in range(taps) if (a + before - t * d) % u == 0]
            at = (a + before - hit[-1] * d) // u if hit else 0
            found.append(Residue(hit[0] if hit else 0, step, len(hit), at, step * d // u))
        return tuple(found)

    def of_gradient(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the corners of the im2col box over the output's gradient, for dgrad."""
        lower, upper = list[int](), list[int]()
        for i, (taps, before, after) in enumerate(zip(self.taps, self.before, self.after)):
            u, d = self.strides[i], self.dilations[i]
            low = min([r.at for r in self.residues(i) if r.hits], default=0)
            left = self.left[i] if self.left else 0
            # One pixel per ``u`` of the image, minus the output extent as computed by extent_of.
            more = (left > 0) - extent_of(left, taps, before, after, u, d)
            lower.append(low)
            upper.append(low + more)
        return tuple(lower), tuple(upper)

    @property
    def name(self) -> str:
        """The part of a kernel's name that stands for the window."""
        parts = [by(self.taps)]
        if any(self.before) or any(self.after):
            parts.append("p" + by(self.before) + ("" if self.before == self.after else "to" + by(self.after)))
        if set(self.strides) != {1}:
            parts.append("s" + by(self.strides) + ("m" + by(self.left) if any(self.left) else ""))
        if set(self.dilations) != {1}:
            parts.append("d" + by(self.dilations))
        return "-".join(parts) + "-f" * self.flip


def of_elements(epilogue: Epilogue) -> bool:
    """Return True if the epilogue computes each element of its outputs independently."""
    if epilogue.graph is None:
        return True
    of_rows = epilogue.paired or epilogue.reduces or epilogue.whole_tiles
    return not of_rows and not any(x.split for x in (*epilogue.graph.inputs, *epilogue.graph.outputs))


class ConvConfig(NamedTuple):
    """Configuration of a convolution kernel."""

    base: GemmConfig  # types, tile, cluster, schedule and epilogue of the GEMM
    window: Window
    kind: str = FPROP  # "fprop", "dgrad" (gradient of the image) or "wgrad" (gradient of the filter)
    # Channels of one im2col load, 16 to 128 bytes. Less than 128 bytes only if the width divides the channels.
    width: int = 64
    groups: bool = False  # grouped convolution
    parts: int = 1  # split-K slices of a tile

    @property
    def gemm(self) -> GemmConfig | SplitConfig:
        """The configuration of the GEMM."""
        return self.base if self.parts == 1 else SplitConfig(self.base, self.parts)

    @property
    def boxes(self) -> int:
        """Number of im2col loads of a stage."""
        return self.base.tile[2] // self.width

    @property
    def flat(self) -> bool:
        """Return True if taps and channels of the filter are one mode.

        No load reads channels past the last one then.
        """
        return (self.groups and self.kind == FPROP) or self.boxes > 1

    @property
    def strided(self) -> bool:
        """Return True for a strided dgrad, whose residue classes use different taps."""
        return self.kind == DGRAD and set(self.window.strides) != {1}

    @property
    def placed(self) -> bool:
        """Return True if rows and columns of the accumulator are not those of the result.

        This holds for residue classes, groups, and wgrad, whose taps may have a partial chunk of channels.
        """
        return self.strided or self.groups or self.kind == WGRAD

    @property
    def residues(self) -> int:
        """Number of residue classes of output pixels under the stride. Pixels of one class use the same filter taps."""
        return prod(self.window.strides) if self.strided else 1

    @property
    def corners(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Corners of the im2col box: the start pixels of the first and the last row."""
        return self.window.of_gradient() if self.kind == DGRAD else (self.window.lower, self.window.upper)

    @property
    def name(self) -> str:
        """Name of the kernel: kind, types, window, tile, and settings that differ from the defaults."""
        c = self.base
        letters = {x: LETTERS[x] for x in ("deferred", "promote", "schedule", "stream_k")}
        more = "b" * self.groups + differing(c, letters, deferred=False)
        more += differing(self, {"width": "-w{}"}, width=1024 // c.bits)
        more += differing(c, {"stages": "-q{}", "group": "-g{}"}) + differing(self, {"parts": "-s{}"})
        more += differing(c, {"buffers": "-u{}"}) + c.epilogue.suffix
        return f"{self.kind}-{c.element}-{c.output}-{self.window.name}-{by(c.tile[:2])}-{c.cluster_name}{more}"

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        from cute_dialect.arch.tensor_map import Im2colMapSpec  # late: start-up

        self.gemm.check()
        c, w = self.base, self.window
        if self.kind not in KINDS:
            raise ValueError(f"kind is {self.kind!r}; use one of {', '.join(KINDS)}")
        if not 1 <= len(w.taps) <= 3 or {len(w.before), len(w.after), len(w.strides), len(w.dilations)} != {
            len(w.taps)
        }:
            raise ValueError(f"all fields of the window need one to three entries, equally many, got {w}")
        majors = {FPROP: ("k", "k"), DGRAD: ("k", "n" if c.bits == 16 else "k"), WGRAD: ("m", "n")}[self.kind]
        if (c.major_a, c.major_b) != majors or c.major_c != "n" or c.fallback or c.scaled or c.direct or c.dependent:
            raise ValueError(
                f"{self.kind} needs majors {majors}, major_c='n' and no fallback, scaled, direct or dependent, got {c}"
            )
        if c.batch != (self.groups or self.strided):
            raise ValueError(f"batch must be True for groups or a strided dgrad, and only for these, got {c}")
        most = 1024 // c.bits
        if self.width not in (most, most // 2, most // 4, most // 8):
            raise ValueError(f"width is {self.width} channels; a load must have 16, 32, 64 or 128 bytes")
        if self.kind != FPROP and (self.boxes > 1 or (self.groups and (c.bits != 16 or self.strided))):
            raise ValueError(
                f"{self.kind} needs loads of 128 bytes of channels, and groups need 16-bit elements and stride 1"
            )
        if self.kind == WGRAD and (c.tile[1] % 64 or c.cluster_m > 1):
            raise ValueError(f"{self.kind} needs a tile N that is a multiple of 64 and cluster_m=1, got {c}")
        if self.strided and (c.schedule != "cooperative" or c.deferred or c.serpentine or self.parts > 1):
            raise ValueError(
                f"a strided dgrad needs the cooperative schedule, no deferred, no serpentine and parts=1, got {c}"
            )
        if self.placed and not of_elements(c.epilogue):
            what = self.kind + " of groups" * self.groups + " with a stride" * self.strided
            raise ValueError(f"{what} needs an elementwise epilogue, got one over rows or columns")
        lower, upper = self.corners
        rank = len(w.taps)
        reach = max([0] + [(t - 1) * d for t, d in zip(w.taps, w.dilations)])
        try:
            if reach > 255:
                raise ArchError(f"a tap is {reach} pixels from the first one; im2col TMA supports at most 255")
            Im2colMapSpec(
                c.element, (1,) * (rank + 2), (most,) * (rank + 1), lower[::-1], upper[::-1], self.width, 64,
                element_strides=(1, *([1] * rank if self.kind == DGRAD else w.strides[::-1]), 1), swizzle=0,
            )  # fmt: skip
        except ArchError as e:
            raise ValueError(str(e)) from None
