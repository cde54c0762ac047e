"""Kernels that a call of ``op.conv2d`` selects with ``kernel=`` or ``split_k=``."""

from __future__ import annotations

from cute_dialect.kernels.common.elements import factors, sums_of
from cute_dialect.kernels.conv.config import DGRAD, FPROP, ConvConfig
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.op.conv.choice import ConvRequest, config_of, kernels_for, served
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.keywords import no_such_kernel
from cute_dialect.op.select.configurations import KernelRequest, wanted
from cute_dialect.op.select.cost_model import costs_of
from cute_dialect.op.select.descriptions import Split, TileDescription
from cute_dialect.op.select.kernel_choice import Choice

__all__ = ["config_for", "plain", "slices_of"]


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
