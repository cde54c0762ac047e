"""MMA atom type of a warpgroup: ``wgmma``."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from xdsl.ir import Attribute
from xdsl.irdl import irdl_attr_definition

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.arch.atom import MmaAtom
from cute_dialect.arch.elements import bits_of
from cute_dialect.arch.errors import AtomError
from cute_dialect.cute_nvgpu.tiled_mma.types import MmaAtomType, MmaKey


@irdl_attr_definition
class WgmmaType(MmaAtomType):
    """``!cute_nvgpu.atom.wgmma<64xNxK, (D,A,B,C), A = smem|rmem, major = (k|mn, k|mn) [, saturate] [, negate_a] [,
    negate_b]>``

    ``A`` and ``major`` are optional; the defaults are A in shared memory, and k-major for both operands. ``negate_a``
    and ``negate_b`` negate A and B, which must be floating-point (an input scale of -1).
    """

    name = "cute_nvgpu.atom.wgmma"
    ASYNCHRONOUS: ClassVar[bool] = True
    OPTIONS: ClassVar[frozenset[str]] = frozenset({"A", "major", "saturate", "negate"})

    @staticmethod
    def find(key: MmaKey, names: tuple[str, str, str, str]) -> MmaAtom:
        from cute_dialect.arch.table import find_wgmma  # late: start-up

        return find_wgmma(*wgmma_key(key, names, 256, "wgmma"))


def wgmma_key(
    key: MmaKey, names: tuple[str, str, str, str], depth_bits: int, what: str
) -> tuple[int, tuple[str, str, str], str, tuple[str, str], bool]:
    """Return the arguments of ``find_wgmma``. Raises AtomError for a shape that does not exist.

    ``depth_bits`` is the width of K elements of A in bits.
    """
    d, a, b, c = names
    m, n, k = key.shape
    if c != d:
        raise AtomError(f"expected the same element type for C as for D ({d}), got {c}")
    depth = depth_bits // bits_of(a)
    if m != 64 or k != depth:
        raise AtomError(f"expected 64x{n}x{depth} for {what} on {a}, got {m}x{n}x{k}")
    if key.negate and d == "i32":
        raise AtomError(f"negated operands must be floating-point, got {a} and {b}")
    return n, (d, a, b), key.source_a, key.majors, key.saturate


ATTRS: list[type[Attribute]] = [WgmmaType]
