"""MMA atom types with a sparse A: ``mma_sp``, ``wgmma_sp``."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from xdsl.ir import Attribute
from xdsl.irdl import irdl_attr_definition

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.arch.atom import MmaAtom
from cute_dialect.arch.errors import AtomError
from cute_dialect.cute_nvgpu.tiled_mma.types import MmaAtomType, MmaKey
from cute_dialect.cute_nvgpu.wgmma.types import wgmma_key


@irdl_attr_definition
class MmaSpType(MmaAtomType):
    """``!cute_nvgpu.atom.mma_sp<MxNxK, (D,A,B,C) [, saturate] [, selector = S]>``: ``mma.sp::ordered_metadata``.

    A is ``(M, K/2)``: half of each group of 4 elements in a row is kept (2 of tf32, 8 of 4-bit integers). The metadata
    E holds the positions of the kept elements (:class:`cute_dialect.arch.atom.Metadata`). ``selector`` chooses the
    threads of each group of four whose metadata is used. Any selector is correct for an E from
    ``cute.tiled.mma.partition_E``.
    """

    name = "cute_nvgpu.atom.mma_sp"
    OPTIONS: ClassVar[frozenset[str]] = frozenset({"saturate", "selector"})
    SPARSE: ClassVar[bool] = True

    @staticmethod
    def find(key: MmaKey, names: tuple[str, str, str, str]) -> MmaAtom:
        from cute_dialect.arch.table import find_mma_sp  # late: start-up

        row = find_mma_sp(key.shape, names, key.saturate)
        check_selector(row, key.selector)
        return row


@irdl_attr_definition
class WgmmaSpType(MmaAtomType):
    """``!cute_nvgpu.atom.wgmma_sp<64xNxK, (D,A,B,C), A = smem|rmem, major = (k|mn, k|mn) [, saturate] [, selector = S]
    [, negate_a] [, negate_b]>``

    ``wgmma`` with a sparse A in the format of ``mma_sp``. K is twice the K of the dense atom.
    """

    name = "cute_nvgpu.atom.wgmma_sp"
    ASYNCHRONOUS: ClassVar[bool] = True
    OPTIONS: ClassVar[frozenset[str]] = frozenset({"A", "major", "saturate", "selector", "negate"})
    SPARSE: ClassVar[bool] = True

    @staticmethod
    def find(key: MmaKey, names: tuple[str, str, str, str]) -> MmaAtom:
        from cute_dialect.arch.table import find_wgmma_sp  # late: start-up

        row = find_wgmma_sp(*wgmma_key(key, names, 512, "wgmma with a sparse A"))
        check_selector(row, key.selector)
        return row


def check_selector(row: MmaAtom, selector: int) -> None:
    """Raise AtomError unless the sparse atom has this sparsity selector."""
    assert row.metadata is not None
    last = row.metadata.selectors - 1
    if not 0 <= selector <= last:
        shape = "x".join(map(str, row.shape_mnk))
        known = f"from 0 to {last}" if last else "of 0"
        raise AtomError(f"expected a sparsity selector {known} for {shape} on {row.a}, got {selector}")


ATTRS: list[type[Attribute]] = [MmaSpType, WgmmaSpType]
