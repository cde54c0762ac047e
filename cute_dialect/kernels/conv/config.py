"""The configuration of a Hopper convolution: what is static of it, and the GEMM that computes it.

Tuples are in the order of the image's dimensions, D, H, W, of which there are one to three.

>>> config = ConvConfig(GemmConfig(), Window((3, 3), (1, 1), (1, 1)))
>>> config.window.lower, config.window.upper
((-1, -1), (-1, -1))
>>> config.name
'fprop-f16-f16-3x3-p1x1-128x256-c2d'
"""

from __future__ import annotations

from math import gcd, prod
from typing import NamedTuple

from cute_dialect.kernels.gemm.config import GemmConfig, SplitConfig
from cute_dialect.kernels.gemm.epilogue import Epilogue

__all__ = ["ConvConfig", "Residue", "Window", "extent_of", "of_elements"]

FPROP, DGRAD, WGRAD = "fprop", "dgrad", "wgrad"
KINDS = (FPROP, DGRAD, WGRAD)


def extent_of(extent: int, taps: int, before: int, after: int, stride: int, dilation: int) -> int:
    """Return the extent of a result along one dimension; not more than 0 where the filter does not fit.

    >>> extent_of(7, 3, 1, 1, 2, 1), extent_of(7, 5, 0, 0, 1, 2)
    (4, -1)
    """
    return (extent + before + after - dilation * (taps - 1) - 1) // stride + 1


class Residue(NamedTuple):
    """Of one dimension: which taps of a filter reach pixels whose number leaves some remainder, divided by the stride.

    Taps ``first``, ``first + step`` …, ``hits`` of them; the last one reads the gradient's pixel ``at``, from the
    pixel's number divided by the stride on, each one before it ``apart`` pixels more.
    """

    first: int
    step: int
    hits: int
    at: int
    apart: int


class Window(NamedTuple):
    """What of an image the taps of a filter see: ``before`` and ``after`` are the padding.

    ``left``: for the gradient of an image, its extents modulo the stride; ``flip``: the filter's last tap comes first.
    """

    taps: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    stride: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    flip: bool = False

    @property
    def strides(self) -> tuple[int, ...]:
        """The stride along each dimension."""
        return self.stride or (1,) * len(self.taps)

    @property
    def dilations(self) -> tuple[int, ...]:
        """The dilation along each dimension."""
        return self.dilation or (1,) * len(self.taps)

    @property
    def lower(self) -> tuple[int, ...]:
        """The first pixels that a tap sees, from the image's first one."""
        return tuple([-p for p in self.before])

    @property
    def upper(self) -> tuple[int, ...]:
        """The last pixels that the first tap sees, from the image's last one."""
        return tuple([p - (t - 1) * d for p, t, d in zip(self.after, self.taps, self.dilations)])

    def result(self, extents: tuple[int, ...]) -> tuple[int, ...]:
        """Return the extents of the result for those of an image."""
        of_each = zip(extents, self.taps, self.before, self.after, self.strides, self.dilations)
        return tuple([extent_of(*x) for x in of_each])

    def residues(self, i: int) -> tuple[Residue, ...]:
        """Return the taps that reach a pixel, for each remainder of its number along dimension ``i``.

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
        """Return the corners of the box of pixels of the result's gradient from which that of an image is made."""
        lower, upper = list[int](), list[int]()
        for i, (taps, before, after) in enumerate(zip(self.taps, self.before, self.after)):
            u, d = self.strides[i], self.dilations[i]
            low = min([r.at for r in self.residues(i) if r.hits], default=0)
            left = self.left[i] if self.left else 0
            # Of a pixel for each ``u`` of the image, less the extent of the result, which is that of extent_of.
            more = (left > 0) - extent_of(left, taps, before, after, u, d)
            lower.append(low)
            upper.append(low + more)
        return tuple(lower), tuple(upper)

    @property
    def name(self) -> str:
        """Names it in a kernel's name."""
        parts = [_by(self.taps)]
        if any(self.before) or any(self.after):
            parts.append("p" + _by(self.before) + ("" if self.before == self.after else "to" + _by(self.after)))
        if set(self.strides) != {1}:
            parts.append("s" + _by(self.strides) + ("m" + _by(self.left) if any(self.left) else ""))
        if set(self.dilations) != {1}:
            parts.append("d" + _by(self.dilations))
        return "-".join(parts) + "-f" * self.flip


def _by(numbers: tuple[int, ...]) -> str:
    return "x".join(map(str, numbers))


def of_elements(epilogue: Epilogue) -> bool:
    """Tell whether an epilogue computes each element of its results by itself."""
    if epilogue.graph is None:
        return True
    of_rows = epilogue.paired or epilogue.reduces or epilogue.whole_tiles
    return not of_rows and not any(x.split for x in (*epilogue.graph.inputs, *epilogue.graph.outputs))


class ConvConfig(NamedTuple):
    """The configuration of a kernel.

    ``base``: types, tile, cluster, schedule and epilogue of the GEMM; ``kind``: ``fprop``, ``dgrad`` (the gradient of
    the image) or ``wgrad`` (that of the filter); ``width``: channels that one load brings, 8, 16, 32 or 64 of 16 bits
    (16 to 128 bytes); fewer than 128 bytes only where they divide the channels; ``groups``: channels and results
    are in groups; ``parts``: blocks that share the sums of a tile.
    """

    base: GemmConfig
    window: Window
    kind: str = FPROP
    width: int = 64
    groups: bool = False
    parts: int = 1

    @property
    def gemm(self) -> GemmConfig | SplitConfig:
        """The configuration of the GEMM."""
        return self.base if self.parts == 1 else SplitConfig(self.base, self.parts)

    @property
    def boxes(self) -> int:
        """Loads of the image for a stage."""
        return self.base.tile[2] // self.width

    @property
    def flat(self) -> bool:
        """Tell whether taps and channels of the filter are one mode: no load brings channels behind the last one."""
        return (self.groups and self.kind == FPROP) or self.boxes > 1

    @property
    def strided(self) -> bool:
        """Tell whether it is the gradient of an image whose pixels differ in the taps that reach them."""
        return self.kind == DGRAD and set(self.window.strides) != {1}

    @property
    def placed(self) -> bool:
        """Tell whether rows and columns of the sums are not those of the result: pixels of several kinds, groups, taps
        with the channels that a chunk has too many.
        """
        return self.strided or self.groups or self.kind == WGRAD

    @property
    def residues(self) -> int:
        """How many sets of pixels there are that the same taps reach."""
        return prod(self.window.strides) if self.strided else 1

    @property
    def corners(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The corners of the box of pixels that the first row and the last one begin with."""
        return self.window.of_gradient() if self.kind == DGRAD else (self.window.lower, self.window.upper)

    @property
    def name(self) -> str:
        """Names the kernel: kind, types, window, tile, and what differs from the defaults."""
        c = self.base
        m, n, _ = c.tile
        flags = (
            ("b", self.groups), ("d", c.deferred), ("p", c.promote), ("t", c.schedule == "pingpong"), ("k", c.stream_k),
        )  # fmt: skip
        shape = f"c{c.cluster_m}" * (c.cluster_m > 1 or c.cluster_n == 1) + f"n{c.cluster_n}" * (c.cluster_n > 1)
        more = "".join(letter for letter, there in flags if there)
        options = (
            ("w", self.width, 128 * 8 // c.bits), ("q", c.stages, 4), ("g", c.group, 8), ("s", self.parts, 1),
            ("u", c.buffers, 2),
        )  # fmt: skip
        more += "".join(f"-{key}{value}" for key, value, default in options if value != default)
        more += f"-{c.epilogue.name}" if c.epilogue.active else ""
        return f"{self.kind}-{c.element}-{c.output}-{self.window.name}-{m}x{n}-{shape}{more}"

    def check(self) -> None:
        """Raise ValueError unless there is such a kernel."""
        from cute_dialect.arch.errors import ArchError
        from cute_dialect.arch.tensor_map import Im2colMapSpec

        self.gemm.check()
        c, w = self.base, self.window
        if self.kind not in KINDS:
            raise ValueError(f"expected a convolution of {', '.join(KINDS)}, got {self.kind!r}")
        if not 1 <= len(w.taps) <= 3 or {len(w.before), len(w.after), len(w.strides), len(w.dilations)} != {
            len(w.taps)
        }:
            raise ValueError(f"expected one to three numbers of each, as many of all, got {w}")
        majors = {FPROP: ("k", "k"), DGRAD: ("k", "n" if c.bits == 16 else "k"), WGRAD: ("m", "n")}[self.kind]
        if (c.major_a, c.major_b) != majors or c.major_c != "n" or c.fallback or c.scaled or c.direct or c.dependent:
            raise ValueError(f"expected majors {majors} and rows of results for {self.kind}, got {c}")
        if c.batch != (self.groups or self.strided):
            raise ValueError(f"expected a batch where there are groups or pixels of several kinds, got {c}")
        most = 1024 // c.bits
        if self.width not in (most, most // 2, most // 4, most // 8):
            raise ValueError(f"expected loads of 16, 32, 64 or 128 bytes of channels, got {self.width} channels")
        if self.kind != FPROP and (self.boxes > 1 or (self.groups and (c.bits != 16 or self.strided))):
            raise ValueError(
                f"expected 128 bytes of channels at once, groups of 16 bits, with stride 1 of images, for {self.kind}"
            )
        if self.kind == WGRAD and (c.tile[1] % 64 or c.cluster_m > 1):
            raise ValueError(f"expected columns in 64s that are not shared for {self.kind}, got {c}")
        if self.strided and (
            c.schedule != "cooperative" or c.deferred or c.serpentine or self.parts > 1
        ):  # fmt: skip
            raise ValueError(f"expected plain tiles, stored when they are done, for pixels of several kinds, got {c}")
        if self.placed and not of_elements(c.epilogue):
            what = self.kind + " of groups" * self.groups + " with a stride" * self.strided
            raise ValueError(f"expected an epilogue of single elements for {what}, got one of rows or columns")
        lower, upper = self.corners
        rank = len(w.taps)
        reach = max([0] + [(t - 1) * d for t, d in zip(w.taps, w.dilations)])
        try:
            if reach > 255:
                raise ArchError(f"expected taps at most 255 pixels from the first one, got {reach}")
            Im2colMapSpec(
                c.element, (1,) * (rank + 2), (most,) * (rank + 1), lower[::-1], upper[::-1], self.width, 64,
                element_strides=(1, *([1] * rank if self.kind == DGRAD else w.strides[::-1]), 1), swizzle=0,
            )  # fmt: skip
        except ArchError as e:
            raise ValueError(str(e)) from None
