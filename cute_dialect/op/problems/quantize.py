"""Quantization to 8 bits: regions that share a scale, and the problem of a launch.

>>> regions_of_block((128, 128)), shape_of_scales("block", (3, 5, 300))
('tile', (3, 5, 3))
>>> QuantizeProblem("quantize", "row", "bf16", "i8", 100, 4096).config.threads
128
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from cute_dialect.kernels.common.elements import BITS
from cute_dialect.kernels.epilogue.functions import LARGEST
from cute_dialect.kernels.rows.quantize import BLOCK, QuantizeConfig, choose_config
from cute_dialect.op.errors import ArgumentError, ShapeError, UnsupportedError

WIDE = ("bf16", "f16", "f32")
"""Types that are quantized."""

QUANTIZED = tuple(LARGEST)
"""Types of quantized values."""


class QuantizeProblem(NamedTuple):
    """A launch: types and extents, but no addresses."""

    task: str  # see QuantizeConfig
    regions: str  # see choose_config
    element: str
    result: str
    rows: int
    n: int  # length of a row

    @property
    def config(self) -> QuantizeConfig:
        return choose_config(self.regions, self.element, self.result, self.n, self.task)

    @property
    def scales(self) -> tuple[int, int]:
        """Shape of the scales: one per region."""
        c = self.config
        return -(-self.rows // c.rows), -(-self.n // c.block) if c.block else 1

    @property
    def bytes(self) -> int:
        """Bytes that are read and written, each once."""
        elements = self.rows * self.n
        return elements * (BITS[self.element] + BITS[self.result]) // 8 + 4 * prod(self.scales)


def regions_of_block(block: object, has_scale: bool = False) -> str:
    """Return the regions that the argument ``block`` selects.  Raises UnsupportedError, ArgumentError.

    Args:
        has_scale: the scales are given, and their shape selects the regions.
    """
    if has_scale and block is not None:
        raise ArgumentError(f"quantize: block={block!r} cannot be combined with scale, whose shape selects it; omit it")
    known = ((None, "array"), ("row", "row"), (BLOCK, "block"), ((1, BLOCK), "block"), ((BLOCK, BLOCK), "tile"))
    for value, regions in known:
        if type(block) is type(value) and block == value:
            return regions
    raise UnsupportedError(f"quantize: block={block!r} is not supported; use None, 'row', 128 or (128, 128)")


def shape_of_scales(regions: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the scales of an array.  Raises ShapeError."""
    if regions == "array":
        return ()
    if regions == "row":
        return (*shape[:-1], 1)
    if regions == "block":
        return (*shape[:-1], -(-shape[-1] // BLOCK))
    if len(shape) != 2:
        raise ShapeError(f"quantize: x has shape {shape}; block=(128, 128) needs a matrix")
    return -(-shape[0] // BLOCK), -(-shape[1] // BLOCK)


def regions_of_scales(call: str, name: str, shape: tuple[int, ...], scales: str, found: tuple[int, ...]) -> str:
    """Return the regions that given scales have.  Raises ShapeError.

    Args:
        call, name, scales: names of the function, the array and the scales, for errors.
        shape: of the array.
        found: shape of the scales.
    """
    if prod(found) == 1:
        return "array"
    kinds = ("row", "block", "tile") if len(shape) == 2 else ("row", "block")
    allowed = {shape_of_scales(regions, shape): regions for regions in reversed(kinds)}
    if found not in allowed:
        known = ", ".join(str(s) for s in reversed(allowed))
        raise ShapeError(f"{call}: {scales} has shape {found}, but {name} has {shape}; pass one element, or {known}")
    return allowed[found]
