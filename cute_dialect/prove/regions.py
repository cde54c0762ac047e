"""Regions of shared memory as small masks: bits stand for pieces that accesses have told apart so far.

A mask with a bit per 16 bytes of a cluster has thousands of bits, but a kernel accesses few different regions. The
`Partition` keeps the coarsest pieces of which every region is a union, and a mask has a bit per piece. A region that
splits a piece appends a new one. Masks made before are then out of date, and `current` brings them up to date.

>>> pieces = Partition(8)
>>> a, b = Region(0b00001111), Region(0b00111100)
>>> pieces.mask(a), pieces.version
(1, 1)
>>> pieces.mask(b), pieces.version, pieces.mask(a)
(3, 3, 5)
>>> bin(pieces.units(3)), bin(pieces.units(pieces.mask(a) & pieces.mask(b)))
('0b111100', '0b1100')
"""

from __future__ import annotations


class Region:
    """A set of units of shared memory.

    Attributes:
        units: Mask of the units.
        mask: Mask of the pieces, at a version of the partition.
        version: The version that the mask belongs to, -1 before the first.
    """

    __slots__ = ("mask", "units", "version")

    def __init__(self, units: int) -> None:
        self.units, self.mask, self.version = units, 0, -1


class Partition:
    """The pieces of shared memory that accesses have told apart.

    Args:
        units: Number of units of shared memory.
    """

    def __init__(self, units: int) -> None:
        self._size, self._pieces = units, [(1 << units) - 1]
        self._splits: list[tuple[int, int]] = []

    @property
    def version(self) -> int:
        """Number of times that a piece was split."""
        return len(self._splits)

    def mask(self, region: Region) -> int:
        """Return the mask of the pieces of a region. Splits the pieces that it cuts."""
        if region.version != len(self._splits):
            if region.version < 0:
                region.mask = self._cut(region.units)
            else:
                region.mask = self.current(region.mask, region.version)
            region.version = len(self._splits)
        return region.mask

    def _cut(self, units: int) -> int:
        if units >> self._size:
            raise ValueError("a region outside of the partition")
        out = 0
        for i, piece in enumerate(self._pieces[:]):
            if common := piece & units:
                if common != piece:
                    self._splits.append((i, len(self._pieces)))
                    self._pieces[i] = common
                    self._pieces.append(piece ^ common)
                out |= 1 << i
        return out

    def current(self, mask: int, version: int) -> int:
        """Return the present mask of a set of pieces of an earlier version."""
        for i, new in self._splits[version:]:
            if mask >> i & 1:
                mask |= 1 << new
        return mask

    def units(self, mask: int) -> int:
        """Return the mask of the units of some pieces."""
        out = 0
        for i, piece in enumerate(self._pieces):
            if mask >> i & 1:
                out |= piece
        return out
