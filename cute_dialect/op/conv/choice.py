"""Kernels of convolutions with im2col loads: the fastest one, or the one that a call selects.

>>> from cute_dialect.op.problems.conv import geometry
>>> g = geometry("conv2d", "fprop", (32, 56, 56, 64), (64, 3, 3, 64), 1, 1, 1, 1)
>>> chosen(ConvRequest(g, "f16", "f16")).name
'fprop-f16-f16-3x3-p1x1-256x64-c1d'
>>> chosen(ConvRequest(g, "f32", "f32")) is None
True
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import gcd, prod
from typing import NamedTuple

from cute_dialect.kernels.common.elements import FACTORS, factors, sums_of
from cute_dialect.kernels.conv.config import DGRAD, FPROP, WGRAD, ConvConfig, of_elements
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.config import BITS
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.keywords import no_such_kernel
from cute_dialect.op.problems.conv import Geometry
from cute_dialect.op.select.configurations import KernelRequest, wanted
from cute_dialect.op.select.cost_model import Costs, costs_of, ranked
from cute_dialect.op.select.descriptions import Split, TileDescription
from cute_dialect.op.select.kernel_choice import Choice, Problem, tuned


class ConvRequest(NamedTuple):
    """A convolution with its types, arithmetic and epilogue."""

    geometry: Geometry
    element: str
    output: str
    sums: str = ""  # arithmetic
    epilogue: Epilogue = Epilogue()
    parts: int = 0  # wanted split-K slices, an upper limit; 0 for any number
    width: int = 0  # channels per load; 0 for the default

    @property
    def key(self) -> str:
        """Key of the problem in a table of tuned kernels."""
        g = self.geometry
        width = f"-w{self.channels}" * (self.channels * BITS[self.element] < 1024)
        return f"{g.kind}-{g.window.name}{width}{'-b' * (g.groups > 1)}-{problem_of(self).key}"

    @property
    def channels(self) -> int:
        """Channels per load."""
        return self.width or width_of(self.geometry, BITS[self.element])


def width_of(geometry: Geometry, bits: int) -> int:
    """Return the number of channels per load.

    A load reads 128 bytes, or fewer if there are few channels.  With groups the number divides the channels of a
    group.
    """
    most, least = 1024 // bits, 128 // bits
    channels = geometry.filter[-1]
    if geometry.kind != FPROP:
        return most
    if geometry.groups > 1:
        return gcd(most, channels)
    padded = -(-channels // least) * least
    if padded == 3 * least and pads_channels(geometry, 4 * least):
        return 4 * least
    return padded if padded in (least, 2 * least, 4 * least) and geometry.taps > 1 else most


def pads_channels(g: Geometry, width: int) -> bool:
    """Return True if image and filter are copied with as many channels as a load has, zeros past the last one.

    Loads of a part of their channels take 1.6 times as long.  The copy is worth it if it takes less than a third of
    the time of the GEMM.

    >>> from cute_dialect.op.problems.conv import geometry
    >>> pads_channels(geometry("conv2d", "fprop", (18, 59, 82, 24), (888, 6, 6, 24), 1, 2, 1, 1), 32)
    True
    """
    channels = g.filter[-1]
    if g.kind != FPROP or g.groups > 1 or g.taps == 1 or not width // 2 < channels < width:
        return False
    copied = _LAUNCH + prod(g.image[:-1]) * 2 * (channels + width) / _COPY
    return copied < 2 * prod(g.result) * g.taps * width / _SPEED / 3


def problem_of(asked: ConvRequest) -> Problem:
    """Return the GEMM of a convolution, with the K that the kernel computes, padding included."""
    g, bits = asked.geometry, BITS[asked.element]
    rows, columns = g.matrix
    step = 1024 // bits
    groups = g.groups
    if g.kind == WGRAD:
        k = g.result[0]
        for n in g.result[1:-1]:
            k *= n
        columns = -(-g.filter[-1] // step) * step * g.taps
        return Problem(rows // groups, columns, k, asked.element, asked.output, "m", "n", groups, asked.sums)
    if g.kind == DGRAD:
        k = -(-(g.result[-1] // groups) // step) * step * g.taps
        residues = 1
        for u in g.window.strides:
            residues *= u
        major = "n" if bits == 16 else "k"
        return Problem(
            -(-rows // residues), columns // groups, -(-k // residues), asked.element, asked.output, "k", major,
            residues * groups, asked.sums,
        )  # fmt: skip
    width = asked.channels
    k = -(-g.filter[-1] // width) * width * g.taps
    return Problem(rows, columns // groups, k, asked.element, asked.output, "k", "k", groups, asked.sums)


def has_epilogue(geometry: Geometry, epilogue: Epilogue) -> bool:
    """Return True if the kernel of a convolution supports an epilogue.

    Element-wise epilogues are always possible, others only if rows and columns of the accumulator are those of the
    result.
    """
    strided = geometry.kind == DGRAD and set(geometry.window.strides) != {1}
    if geometry.kind != WGRAD and not strided and geometry.groups == 1:
        return True
    per = geometry.output[-1] // (1 if geometry.kind == WGRAD else geometry.groups)
    return of_elements(epilogue) and (per % 2 == 0 or not epilogue.active)  # two neighbors are read at once


def config_of(asked: ConvRequest, choice: Choice) -> ConvConfig | None:
    """Return a GEMM kernel with the producer of a convolution, or None if there is no such kernel."""
    g, c = asked.geometry, choice.config
    if choice.skinny is not None or choice.swapped or c.stream_k:
        return None
    c = c._replace(batch=g.groups > 1 or (g.kind == DGRAD and set(g.window.strides) != {1}))
    if g.kind == DGRAD and set(g.window.strides) != {1}:  # a tile is stored when it is done, 16 bytes at a time
        c = c._replace(deferred=False, serpentine=False)
    config = ConvConfig(
        c._replace(epilogue=asked.epilogue), g.window, g.kind, asked.channels, g.groups > 1, choice.parts
    )
    try:
        config.check()
    except ValueError:
        return None
    return config


def chosen(asked: ConvRequest, gpu: str = "", sms: int = 132) -> ConvConfig | None:
    """Return the kernel that is predicted to be the fastest; None if im2col loads do not support the problem."""
    found = chosen_with_time(asked, gpu, sms)
    return None if found is None else found[1]


def chosen_with_time(asked: ConvRequest, gpu: str = "", sms: int = 132) -> tuple[float, ConvConfig] | None:
    """Return the kernel with its predicted time in microseconds; a tuned kernel takes precedence."""
    costs = costs_of(gpu, sms)
    if not served(asked):
        return None
    measured = tuned(gpu).get(asked.key) if gpu and not asked.parts else None
    config = None if measured is None else config_of(asked, measured)
    if config is None:
        return _predicted(asked, costs)
    return next((time for time, found in kernels_for(asked, costs) if found == config), 0.0), config


@lru_cache(maxsize=4096)
def _predicted(asked: ConvRequest, costs: Costs) -> tuple[float, ConvConfig] | None:
    if not asked.parts:
        return next(kernels_for(asked, costs), None)
    found: dict[int, tuple[float, ConvConfig]] = {}  # the wanted number of slices, or the largest possible one
    for time, config in kernels_for(asked, costs):
        if config.parts <= asked.parts:
            found.setdefault(config.parts, (time, config))
    return found[max(found)] if found else None


def served(asked: ConvRequest) -> bool:
    """Return True if im2col loads and wgmma support the types and channels of a convolution."""
    g = asked.geometry
    if asked.element not in FACTORS or (g.kind == WGRAD and BITS[asked.element] != 16):
        return False
    if g.kind == WGRAD and g.taps > 1 and 2 * g.filter[-1] < 64:  # a chunk of 64 columns would be mostly zeros
        return False
    if g.groups == 1:
        return True
    k, c, bits = g.filter[0] // g.groups, g.filter[-1], BITS[asked.element]
    stored = (k if g.kind == FPROP else c) * BITS[asked.output] % 128 == 0  # groups are adjacent in memory
    if g.kind == FPROP:
        return stored and width_of(g, bits) * bits >= 128
    if g.kind == WGRAD:
        return stored and k * bits % 128 == 0
    # A load must not read channels of the next group, because their values, such as NaN, would be multiplied by zeros.
    return stored and bits == 16 and k % 64 == 0 and set(g.window.strides) == {1}


_LAUNCH, _COPY, _SPEED = 3.0, 3.4e6, 5e8
"""Microseconds per launch, bytes per microsecond of the kernel that pads rows, and FLOPs per microsecond of a GEMM."""

_FIRST = 64
"""Number of GEMM kernels, the fastest first, among which there usually is one for a convolution."""


def kernels_for(asked: ConvRequest, costs: Costs) -> Iterator[tuple[float, ConvConfig]]:
    """Yield the kernels with the predicted times of their GEMMs in microseconds, the fastest first."""
    problem = problem_of(asked)
    for count in (_FIRST, None):
        for time, choice in ranked(problem, costs, count)[0 if count else _FIRST :]:
            found = config_of(asked, choice)
            if found is not None:
                yield time, found


# ------------------------------------------------------------------------------------------ kernels that a call selects


def plain(config: ConvConfig) -> ConvConfig:
    """Return a kernel without its epilogue."""
    return config._replace(base=config.base._replace(epilogue=Epilogue()))


def slices_of(split_k: object) -> int:
    """Return the number of split-K slices that a call selects; 0 for the fastest number.  Raises UnsupportedError."""
    if split_k is None:
        return 0
    found = Split.of(split_k)
    if found.mode != "serial":
        raise UnsupportedError(
            f"split_k: {split_k!r} is not supported; pass a number, ('serial', number), or use op.Conv2d"
        )
    return found.parts


def config_for(asked: ConvRequest, kernel: object, gpu: str = "", sms: int = 132) -> ConvConfig:
    """Return the kernel that a call selects.

    Args:
        kernel: a name as reported by :func:`cute_dialect.op.explain`, a ConvConfig, or a tile as a Choice or a
            TileDescription.

    Raises UnsupportedError if the kernel cannot compute the convolution.

    >>> from cute_dialect.op.problems.conv import geometry
    >>> g = geometry("conv2d", "fprop", (8, 56, 56, 64), (64, 3, 3, 64), 1, 1, 1, 1)
    >>> config_for(ConvRequest(g, "f16", "f16"), "fprop-f16-f16-3x3-p1x1-128x64-c1-q8").base.tile
    (128, 64, 64)
    """
    if not served(asked):
        raise UnsupportedError(
            "kernel needs im2col loads, which do not support this convolution; omit kernel (see op.explain)"
        )
    if isinstance(kernel, str):
        return _named(asked, kernel, gpu, sms)
    if isinstance(kernel, ConvConfig):
        found = config_of(asked, Choice(kernel.base, kernel.parts))
        if found is None or plain(found) != plain(kernel):
            of = f"{asked.geometry.kind} of {asked.element} to {asked.output}, {asked.geometry.window.name}"
            raise UnsupportedError(f"kernel {plain(kernel).name} does not compute {of}; omit kernel, or see op.explain")
        return found
    name = getattr(kernel, "name", "")
    if isinstance(kernel, TileDescription):
        kernel = _described(asked, kernel)
    if not isinstance(kernel, Choice):
        raise UnsupportedError(f"kernel is {kernel!r}; pass a ConvConfig, a Choice, a name or a TileDescription")
    g, c = asked.geometry, kernel.config
    majors = {FPROP: ("k", "k"), DGRAD: ("k", "n" if c.bits == 16 else "k")}.get(g.kind, ("m", "n"))
    of_any = c._replace(batch=g.groups > 1 or (g.kind == DGRAD and set(g.window.strides) != {1}))
    of_any = of_any._replace(major_a=majors[0], major_b=majors[1])
    fits = (c.element, c.output, kernel.majors) == (asked.element, asked.output, majors)
    found = config_of(asked, kernel._replace(config=of_any)) if fits else None
    if found is None:
        raise UnsupportedError(
            f"kernel {name} does not compute {g.kind} of {asked.element} to {asked.output}; omit kernel"
        )
    return found


def _named(asked: ConvRequest, name: str, gpu: str, sms: int) -> ConvConfig:
    """Return the kernel of a name."""
    names: dict[str, ConvConfig] = {}
    for _, config in kernels_for(asked, costs_of(gpu, sms)):
        names[plain(config).name] = config
        if plain(config).name == name:
            return config
    raise no_such_kernel(name, names, asked.key)


def _described(asked: ConvRequest, tile: TileDescription) -> object:
    """Return the kernel of a tile description."""
    a, b = factors(asked.element)
    of_a, of_b = {FPROP: ("row", "column"), DGRAD: ("row", "row")}.get(asked.geometry.kind, ("column", "row"))
    sums = asked.sums or sums_of(asked.element)
    return wanted(tile, KernelRequest(a, b, sums, asked.output, of_a, of_b, "row", False))
