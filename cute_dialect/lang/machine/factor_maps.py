"""TMA of scale factors: tensor maps of blocks of 128 rows x 4 factors.

A tensor of factors has the layout of ``blockscaled.tile_atom_to_shape_SF``, in which each block has 512 consecutive
bytes. Its map has the dimensions (256 bytes, 2, RestM, RestK, L), so that one box covers all blocks of a tile. The
coordinates have the shape of the tensor, in elements of A or B: modes of stride 0 repeat a factor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from cute_dialect.algebra.layout import coalesce, flat_modes
from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import Layout as Payload
from cute_dialect.algebra.values import layout_modes, raw_layout
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.values.layouts import as_layout, make_layout
from cute_dialect.lang.values.tensors import Tensor, make_tensor

if TYPE_CHECKING:
    from cute_dialect.lang.values.signature_types import LayoutLike, Tiler

_BLOCK, _RUN = 512, 256
"""Bytes of a block, and those of a row of a box."""


def holds_factors(tensor: Tensor) -> bool:
    """Return True if a global tensor has the layout of scale factors: a mode of stride 0 in its K."""
    layout = getattr(tensor, "payload", None)
    if not isinstance(layout, Payload) or not isinstance(layout.shape, tuple) or len(layout.shape) < 2:
        return False
    return _has_zeros(layout_modes(layout_modes(layout)[1])[0])


def refuse_plain(source: Tensor, smem: LayoutLike, what: str) -> None:
    """Raise F254 if a tile in shared memory has the layout of scale factors, but the global tensor has not."""
    payload = as_layout(smem).payload
    if not isinstance(payload, Payload) or not isinstance(payload.shape, tuple) or len(payload.shape) != 2:
        return
    k = layout_modes(payload)[1]
    if not _has_zeros(k):
        return
    vector = next(s for s, d in zip(*flat_modes(k)) if type(d) is int and d == 0 and s != 1)
    raise KernelTypeError(
        "F254",
        f"{what}: smem_layout is that of scale factors for {vector} elements along K, but gmem_tensor is {source!r}; "
        "scale factors in global memory must be in blocks of 128 rows x 4 factors",
        hint="store the factors in these blocks, and pass cute.make_tensor(pointer, "
        f"blockscaled.tile_atom_to_shape_SF(A.shape, {vector})), with the shape of A or B in elements",
    )


def repeats(tensor: Tensor) -> bool:
    """Return True if mode 0 of a tensor, a tile, has a mode of stride 0."""
    layout = getattr(tensor, "payload", None)
    return isinstance(layout, Payload) and isinstance(layout.shape, tuple) and _has_zeros(layout_modes(layout)[0])


def _has_zeros(layout: Payload) -> bool:
    return any(type(d) is int and d == 0 and s != 1 for s, d in zip(*flat_modes(layout)))


class FactorBlocks:
    """A tensor of scale factors as a tensor of blocks, for which a tensor map exists.

    Args:
        source: the tensor in global memory.
        smem: the layout (X, K) of the tile in shared memory.
        tile: the extents (X, K) of the tile, in elements of A or B.
        what: the function, for messages.

    Raises F254 if the layouts are not those of ``blockscaled``.
    """

    def __init__(self, source: Tensor, smem: LayoutLike, tile: Tiler, what: str):
        self.source, self.what = source, what
        shape, stride = source.layout.shape, source.layout.stride
        (atom_m, self.rest_m), (atom_k, self.rest_k) = self._pair(shape, 0), self._pair(shape, 1)
        (step_m, next_m), (step_k, next_k) = self._pair(stride, 0), self._pair(stride, 1)
        if (atom_m, step_m, atom_k[1:], step_k) != ((32, 4), (16, 4), (4,), (0, 1)) or source.element_type.width != 8:
            self._refuse(f"the tensor is {source!r}")
        self.vector: int = atom_k[0]
        self.batches = tuple(shape[2:])
        if not isinstance(tile, tuple | list) or len(tile) != 2 or not all(isinstance(n, int) for n in tile):
            raise KernelTypeError("F254", f"{what}: the tile of scale factors must be two integers (X, K), got {tile}")
        (x, k), columns = tile, 4 * self.vector
        if x % 128 or k % columns:
            raise KernelTypeError(
                "F254",
                f"{what}: the tile of scale factors is {x} x {k}; it must be a multiple of 128 x {columns}",
                hint="use an MMA and a tile whose M (for SFA) or N (for SFB) is a multiple of 128, or load the factors "
                "without TMA"
                if x % 128
                else f"use a tile with K = {-(-k // columns) * columns}",
            )
        self.tiler = (_BLOCK, x // 128, k // columns)
        self._check_tile(smem)
        self.tensor = make_tensor(
            source.iterator,
            make_layout(
                ((_RUN, 2), self.rest_m, self.rest_k, *self.batches),
                stride=((1, _RUN), next_m, next_k, *stride[2:]),
            ),
        )

    def _pair(self, tree: Any, mode: int) -> tuple[Any, Any]:
        part: Any = tree[mode] if isinstance(tree, tuple) and len(tree) in (2, 3) else None
        if isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], tuple) and len(part[0]) == 2:
            return part[0], part[1]
        self._refuse(f"the tensor is {self.source!r}")

    def _refuse(self, found: str) -> NoReturn:
        raise KernelTypeError(
            "F254",
            f"{self.what}: scale factors must have the layouts of cute.blockscaled; {found}",
            hint="tile_atom_to_shape_SF for global memory; for a stage make_smem_layout_sfa or make_smem_layout_sfb, "
            "or those of sm_120",
        )

    @property
    def smem(self) -> Payload:
        """The layout of the tile in shared memory, blocks along M first."""
        _, m, k = self.tiler
        return raw_layout(((_RUN, 2), m, k), ((1, _RUN), _BLOCK, _BLOCK * m))

    def _check_tile(self, smem: LayoutLike) -> None:
        _, m, k = self.tiler
        wanted = raw_layout(((32, 4, m), (4, k)), ((16, 4, _BLOCK), (1, _BLOCK * m)))
        payload = as_layout(smem).payload
        if not isinstance(payload, Payload) or not is_static(payload) or len(layout_modes(payload)) != 2:
            self._refuse(f"smem_layout is {smem}")
        for given, mode in zip(layout_modes(payload), layout_modes(wanted)):
            kept = [(s, d) for s, d in zip(*flat_modes(given)) if d != 0 and s != 1]
            held = raw_layout(tuple([s for s, _ in kept]), tuple([d for _, d in kept]))
            if coalesce(held) != coalesce(mode):
                self._refuse(f"smem_layout is {smem}")

    def coordinates(self, blocks: Tensor) -> Tensor:
        """Return the coordinates of the factors, given those of the blocks."""
        (run, half), next_m, next_k, *batches = blocks.layout.stride
        shape = ((((16, 2), 4), self.rest_m), ((self.vector, 4), self.rest_k), *self.batches)
        stride = ((((16 * run, half), 4 * run), next_m), ((0, run), next_k), *batches)
        return make_tensor(blocks.iterator, make_layout(shape, stride=stride))
