"""Validation and encoding of tensor maps at launch.

A host program describes a map by numbers (:class:`~cute_dialect.runtime.host_program.TensorMap`) with the address of
an array argument.  A prepared launch keeps the description, and encodes the 128 bytes at the first launch for an
address.  The last few encodings are kept, so a kernel that alternates between buffers encodes each map once.

Limits: CUDA driver API, ``cuTensorMapEncodeTiled``, ``cuTensorMapEncodeIm2col``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cute_dialect.arch.errors import TmaError
from cute_dialect.arch.tensor_map_codes import (
    ELEMENT_BITS,
    ELEMENTS,
    INTERLEAVES,
    L2_PROMOTIONS,
    OOB_FILLS,
    SWIZZLES,
    WIDE_MODES,
    unpack_of,
)
from cute_dialect.runtime.host_program import TensorMap

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.runtime.driver import Driver

__all__ = ["MAP_BYTES", "EncodedMaps", "checked"]

MAP_BYTES = 128
_KEPT = 16
"""Number of encoded maps kept per parameter."""


def checked(tensor_map: TensorMap, address: int) -> TensorMap:
    """Validate a map and replace unused strides by valid ones.  Raises TmaError, which names the violated limit.

    >>> from cute_dialect.runtime.host_program import Pointer
    >>> checked(TensorMap(Pointer(0, 0), (64, 1), (6,), (64, 1), (1, 1), 6, 0, 0, 2, 0), 256).strides
    (16,)
    """
    from cute_dialect.arch.tensor_map import TensorDim, TensorMapSpec  # late: start-up

    m = tensor_map
    unit = 32 if unpack_of(m.element) else max(16, INTERLEAVES[m.interleave])
    # The stride of a dimension of extent 1 is never used, so any value is accepted for it.
    strides = tuple([unit if n == 1 else s for n, s in zip(m.extents[1:], m.strides)])
    bits = ELEMENT_BITS[m.element]
    _check_strides(strides, unit)
    if m.pixels:
        _check_im2col(m, strides, address)
        return m._replace(strides=strides)
    pitches = (1, *(8 * s // bits for s in strides))
    dims = tuple([TensorDim(n, s, b, e) for n, s, b, e in zip(m.extents, pitches, m.box, m.steps)])
    TensorMapSpec(
        element=ELEMENTS[m.element],
        dims=dims,
        swizzle=SWIZZLES[m.swizzle],
        interleave=INTERLEAVES[m.interleave],
        l2_promotion=L2_PROMOTIONS[m.l2],
        oob_fill=OOB_FILLS[m.oob],
        unpack=unpack_of(m.element),
    ).bind((), address)
    return m._replace(strides=strides)


def _check_strides(strides: Sequence[int], unit: int) -> None:
    # Check byte strides here, because conversion to element strides would drop a remainder.
    for i, stride in enumerate(strides, 1):
        if stride <= 0 or stride % unit:
            raise TmaError(
                f"expected a stride that is a positive multiple of {unit} bytes, got {stride}", f"dimension {i}"
            )


def _check_im2col(m: TensorMap, strides: Sequence[int], address: int) -> None:
    from cute_dialect.arch.tensor_map import Im2colMapSpec  # late: start-up

    if address % 16:
        raise TmaError(f"expected an address that is a multiple of 16, got {address:#x}", "address")
    bits = ELEMENT_BITS[m.element]
    Im2colMapSpec(
        element=ELEMENTS[m.element],
        extents=m.extents,
        element_pitches=tuple([8 * s // bits for s in strides]),
        lower=m.lower,
        upper=m.upper,
        channels=m.box[0],
        pixels=m.pixels,
        element_strides=m.steps,
        swizzle=SWIZZLES[m.swizzle],
        interleave=INTERLEAVES[m.interleave],
        l2_promotion=L2_PROMOTIONS[m.l2],
        oob_fill=OOB_FILLS[m.oob],
        mode=WIDE_MODES[m.wide],
    )


class EncodedMaps:
    """Encoded tensor maps of one parameter by array address, with the last few kept.  Not thread-safe."""

    __slots__ = ("_gpu", "_made", "_map", "known")

    def __init__(self, gpu: Driver, tensor_map: TensorMap):
        self._gpu = gpu
        self._map = tensor_map
        self._made: dict[int, object] = {}
        self.known: dict[int, int] = {}
        """Maps the array address to the host address of the 128 bytes, valid until :meth:`at` encodes another map."""

    def at(self, address: int) -> int:
        """Return the host address of the map for an array at ``address``.

        Raises ``CudaError`` on driver errors.
        """
        found = self.known.get(address)
        if found is not None:
            return found
        data = self._gpu.encode_map(address + self._map.address.offset, self._map)
        memory = (ctypes.c_uint8 * (MAP_BYTES + 64))()
        at = -(-ctypes.addressof(memory) // 64) * 64
        ctypes.memmove(at, data, MAP_BYTES)
        if len(self.known) >= _KEPT:
            oldest = next(iter(self.known))
            del self.known[oldest], self._made[oldest]
        self.known[address] = at
        self._made[address] = memory
        return at
