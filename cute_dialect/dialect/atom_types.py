"""Base classes of the atom types, and types that repeat an atom over a tile.

* ``!cute.tiled_copy<ATOM, layout_copy_tv = <"…">, tiler_mn = <"…">>``: an atom, the (thread, value) layout over a tile,
  and the tile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import ClassVar, NamedTuple, cast

from xdsl.dialects.builtin import i1, i16, i64
from xdsl.ir import Attribute, Data, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from cute_dialect.algebra import text, verify
from cute_dialect.algebra.evaluation import cosize, evaluate, size
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.trees import is_static, tree_leaves
from cute_dialect.algebra.values import UNDERSCORE, AnyLayout, ComposedLayout, Layout, Tile, layout_modes
from cute_dialect.dialect.memory_types import is_barrier, parse_layout_string

FIELDS: Mapping[str, str] = {
    "tma_bar": "a !cute.ptr<i64, smem>",
    "im2col_offsets": "a !cute.coord with one offset per spatial dimension",
    "rows": "a !cute.coord of four row indices",
    "multicast_mask": "i16",
    "cache_hint": "i64",
    "pred": "i1",
}
"""Run-time field of a copy atom -> description of its value, for error messages."""

_TYPES = {"multicast_mask": i16, "cache_hint": i64, "pred": i1}


class AtomType(TypeAttribute):
    """Base of the atom types of ``cute_nvgpu``, which describe a single copy or MMA instruction."""

    def fields(self) -> tuple[str, ...]:
        """Return the names of the run-time state fields that ``cute.atom.set_value`` sets."""
        return ()

    def takes(self, field: str, value: Attribute) -> bool:
        """Return True if a state field accepts a value of this type."""
        return is_barrier(value) if field == "tma_bar" else value == _TYPES.get(field)

    def accumulator_registers(self) -> int:
        """Return the number of accumulator registers per thread and instruction; only for MMA atoms."""
        raise NotImplementedError(self.name)


class TiledType(TypeAttribute):
    """Base of the tiled copy and the tiled MMA, which repeat an atom."""

    @property
    def atom(self) -> Attribute:
        """Type of the atom."""
        raise NotImplementedError(self.name)

    def block_size(self) -> int:
        """Return the smallest block size that contains all thread indices of the slices."""
        raise NotImplementedError(self.name)

    def thread_indices(self) -> frozenset[int]:
        """Return the thread indices whose slices make up the tile."""
        raise NotImplementedError(self.name)

    def tile_of(self, operand: str) -> tuple[int | Layout, ...]:
        """Return the tile's mode for each mode of an operand (A, B, C, S, D, …)."""
        raise NotImplementedError(self.name)

    def shared_slice(self, operand: str) -> int:
        """Return the number of consecutive threads that share a slice of an operand (A, B, C, S, D, …)."""
        return 1


class CopyAtomType(AtomType):
    """Base of the copy atom types."""

    ONE_THREAD: ClassVar[bool] = False
    """True if one thread starts the copy of a whole tile, so that no thread exceeds the tensor's bounds."""
    TENSOR_MAP: ClassVar[bool] = False
    """True if the value of the atom is a tensor map, and its global side a coordinate tensor."""

    def check_copy(self, operand_types: Sequence[Attribute]) -> None:
        """Raise AlgebraError unless ``cute.copy`` with the atom accepts ``(_, source, destination[, predicate])``."""
        raise NotImplementedError(self.name)

    def threads(self) -> int:
        """Return the number of threads that execute one instruction."""
        raise NotImplementedError

    def values(self) -> int:
        """Return the number of values, of the atom's value type, that a thread moves per instruction."""
        raise NotImplementedError

    @property
    def element(self) -> Attribute:
        """The value type."""
        raise NotImplementedError

    def side_values(self, side: str) -> int:
        """Return a thread's values per instruction on side "src" or "dst"; :meth:`values` is for the reference side."""
        return self.values()

    def reference_map(self, side: str) -> Layout | None:
        """Return the map from (thread, value) of side "src" or "dst" to indices in (thread, value) of the reference.

        Values are in units of the value type.  ``None`` means that both sides are equal.
        """
        return None


class TiledCopy(NamedTuple):
    """A tiled copy.

    ``layout_tv`` maps (thread, value) to the column-major index in the tile; ``tiler`` has one layout per mode.
    """

    atom: Attribute
    layout_tv: Layout
    tiler: Tile


@irdl_attr_definition
class TiledCopyType(Data[TiledCopy], TiledType):
    """``!cute.tiled_copy<ATOM, layout_copy_tv = <"…">, tiler_mn = <"…">>``"""

    name = "cute.tiled_copy"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> TiledCopy:
        with parser.in_angle_brackets():
            at = parser.pos
            atom = parser.parse_type()
            if not isinstance(atom, CopyAtomType):
                parser.raise_error(f"expected a copy atom type, got {atom}", at, parser.pos)
            parser.parse_punctuation(",")
            parser.parse_keyword("layout_copy_tv")
            parser.parse_punctuation("=")
            with parser.in_angle_brackets():
                tv = parse_layout_string(parser)
            parser.parse_punctuation(",")
            parser.parse_keyword("tiler_mn")
            parser.parse_punctuation("=")
            with parser.in_angle_brackets():
                tile_at = parser.pos
                string = parser.parse_str_literal(" tile")
                try:
                    tiler = text.parse_tile(string)
                except text.TextError as e:
                    parser.raise_error(f"invalid tile '{string}': {e}", tile_at + 1 + e.position)
            try:
                value = TiledCopy(atom, _plain(tv), tiler)
                verify_tiled_copy(value)
            except AlgebraError as e:
                parser.raise_error(str(e), at, parser.pos)
        return value

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<")
        printer.print_attribute(self.data.atom)
        tv, tiler = text.to_text(self.data.layout_tv), text.to_text(self.data.tiler)
        printer.print_string(f', layout_copy_tv = <"{tv}">, tiler_mn = <"{tiler}">>')

    @property
    def atom(self) -> Attribute:
        """Type of the atom."""
        return self.data.atom

    def block_size(self) -> int:
        return cast("int", size(layout_modes(self.data.layout_tv)[0]))

    def tile_of(self, operand: str) -> tuple[int | Layout, ...]:
        tiler = self.data.tiler
        return cast("tuple[int | Layout, ...]", tiler if isinstance(tiler, tuple) else (tiler,))

    def thread_indices(self) -> frozenset[int]:
        threads = layout_modes(self.data.layout_tv)[0]
        first: dict[int, int] = {}  # threads that copy the same elements count once
        for i in range(cast("int", size(threads))):
            first.setdefault(cast("int", evaluate(i, threads)), i)
        return frozenset(first.values())


def _plain(layout: AnyLayout) -> Layout:
    if isinstance(layout, ComposedLayout):
        raise AlgebraError(f"expected a plain thread-value layout, got {text.to_text(layout)}")
    return layout


def verify_tiled_copy(tc: TiledCopy) -> None:
    """Raise AlgebraError unless the thread-value layout and the tile fit the atom."""
    tv = tc.layout_tv
    if not (is_static(tv) and is_static(tc.tiler)):
        both = f"{text.to_text(tv)} and {text.to_text(tc.tiler)}"
        raise AlgebraError(f"expected a static thread-value layout and a static tiler, got {both}")
    if not isinstance(tv.shape, tuple) or len(tv.shape) != 2:
        raise AlgebraError(f"expected a thread-value layout of rank 2 (thread, value), got {text.to_text(tv)}")
    assert isinstance(tc.atom, CopyAtomType)
    verify.verify_tile(tc.tiler)
    slots = list(tree_leaves(tc.tiler))
    if any(slot is UNDERSCORE for slot in slots):
        raise AlgebraError(f"expected a layout or an extent in every slot of the tiler, got {text.to_text(tc.tiler)}")
    tile = prod(cast("int", size(cast("Layout", slot))) for slot in slots)
    reached = cast("int", cosize(tv))
    if reached > tile:
        raise AlgebraError(
            f"expected a thread-value layout that stays in the {tile} elements of the tile {text.to_text(tc.tiler)}, "
            f"got {text.to_text(tv)}, which reaches element {reached - 1}"
        )
    threads, values = size(tv.shape[0]), size(tv.shape[1])
    assert isinstance(threads, int) and isinstance(values, int)
    if threads % tc.atom.threads() or values % tc.atom.values():
        raise AlgebraError(
            f"expected multiples of the atom's {tc.atom.threads()} threads and {tc.atom.values()} values, "
            f"got {threads} threads and {values} values"
        )


def is_tensor_map(t: Attribute) -> bool:
    """Return True if values of this type are tensor maps."""
    return isinstance(t, CopyAtomType) and t.TENSOR_MAP


ATTRS = [TiledCopyType]
