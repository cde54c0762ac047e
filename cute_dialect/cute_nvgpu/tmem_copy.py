"""Copies from shared to tensor memory (``tcgen05.cp``): the atom of tiled copies, and the op of one instruction.

``!cute_nvgpu.atom.tmem_copy<f8E8M0FNU, 32x128b_warpx4>`` copies 512 bytes, the factors of 128 rows, to 4 columns::

    %tc = cute.make_tmem_copy(%atom, %factors) : (!cute_nvgpu.atom.tmem_copy<…>, !cute.memref<f8E8M0FNU, tmem, …>) -> …

One thread issues the copy. Later MMAs of this thread read the columns without a wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from xdsl.ir import Attribute, Data, Operation
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.layout import coalesce
from cute_dialect.algebra.leaf import AlgebraError, divisibility
from cute_dialect.algebra.trees import leaves
from cute_dialect.algebra.values import Layout, layout_modes
from cute_dialect.arch.errors import AtomError
from cute_dialect.arch.targets import TCGEN05
from cute_dialect.arch.tmem import SHARED_COPIES, shared_copy_atom, shared_window, strides
from cute_dialect.cute_nvgpu.instruction_copy import Pieces, parse_element
from cute_dialect.cute_nvgpu.sync import Row, Words, op_class
from cute_dialect.cute_nvgpu.tmem import CTA_GROUP, TmemAtomType
from cute_dialect.dialect.memory_types import MemRefType, PtrType, element_bits
from cute_dialect.dialect.typed_values import payload_text

if TYPE_CHECKING:
    from cute_dialect.arch.atom import CopyAtom


def _check_source(types: Sequence[Attribute]) -> None:
    source = types[1]
    assert isinstance(source, PtrType)
    if source.data.alignment < 16 or source.data.swizzle is not None:
        raise AlgebraError(f"operand #1, src, is {source}; use a pointer aligned to 16 bytes, without a swizzle")


ROWS: tuple[Row, ...] = (
    Row(
        "tmem_copy",
        "Copies rows of 16 or 32 bytes from shared memory to lanes of tensor memory. The shape 32x128b_warpx4 copies "
        "512 bytes to 4 columns, as scale factors of 128 rows: bytes 16i to 16i + 15 go to lanes i, i + 32, i + 64 "
        "and i + 96. Rows of 32 bytes are two units of 16 bytes, and the first units of all rows precede the "
        "second ones. ``src`` is aligned to 16 bytes. One thread executes it. Later ``tcgen05_scaled_mma`` of the "
        "thread read the factors without a wait.",
        '"tcgen05.cp"',
        ("ptr:tmem", "src:smem"),
        properties=(Words("shape", tuple(SHARED_COPIES), "32x128b_warpx4"), CTA_GROUP),
        check=_check_source,
        arch=TCGEN05,
        example="(%ptr, %src) : (!cute.ptr<f32, tmem, align<16>>, !cute.ptr<i8, smem, align<512>>) -> ()",
    ),
)


class SharedCopy(NamedTuple):
    """Parameters of the atom: the value type, the shape, and the number of blocks that execute it together."""

    element: Attribute
    shape: str
    cta_group: int = 1


@irdl_attr_definition
class SharedCopyType(Data[SharedCopy], TmemAtomType):
    """``!cute_nvgpu.atom.tmem_copy<T, SHAPE [, cta_group = 2]>``: ``tcgen05.cp``, shared memory to tensor memory.

    SHAPE is 128x256b, 128x128b, 4x256b, 64x128b_warpx2_02_13, 64x128b_warpx2_01_23 or 32x128b_warpx4. Each row goes to
    one lane, or with ``warpx2`` and ``warpx4`` to two or four lanes, of which layouts contain the first. With
    ``cta_group = 2`` both blocks of a pair copy, from the same address to the same columns. One thread issues it.
    """

    name = "cute_nvgpu.atom.tmem_copy"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> SharedCopy:
        with parser.in_angle_brackets():
            start = parser.pos
            element, bits = parse_element(parser)
            parser.parse_punctuation(",")
            at = parser.pos
            shape = f"{parser.parse_integer(allow_boolean=False, allow_negative=False)}{parser.parse_identifier()}"
            group = 1
            if parser.parse_optional_punctuation(",") is not None:
                parser.parse_keyword("cta_group")
                parser.parse_punctuation("=")
                group = parser.parse_integer(allow_boolean=False)
            if bits not in (8, 16, 32):
                parser.raise_error(f"the element {element} has {bits} bits; use one of 8, 16 or 32", start, parser.pos)
            try:
                shared_copy_atom(shape, group)
            except AtomError as e:
                parser.raise_error(str(e), at, parser.pos)
        return SharedCopy(element, shape, group)

    def print_parameter(self, printer: Printer) -> None:
        element, shape, group = self.data
        printer.print_string("<")
        printer.print_attribute(element)
        printer.print_string(f", {shape}{f', cta_group = {group}' if group != 1 else ''}>")

    @property
    def element(self) -> Attribute:
        return self.data.element

    def row(self) -> CopyAtom:
        return shared_copy_atom(self.data.shape, self.data.cta_group)

    def side_values(self, side: str) -> int:
        return cast("int", size(self.window()))

    def reference_map(self, side: str) -> Layout | None:
        return None

    def window(self) -> Layout:
        """Return the elements of tensor memory that one instruction writes, in the order of shared memory."""
        return shared_window(self.data.shape, element_bits(self.element))

    def check_window(self, what: str, t: MemRefType, pieces: Pieces) -> None:
        wanted = self.window()
        if coalesce(pieces.piece) != coalesce(wanted):
            raise AlgebraError(
                f"one copy with {self} writes the elements {payload_text(coalesce(wanted))} of tensor memory, got "
                f"{payload_text(coalesce(pieces.piece))} in mode 0 of {payload_text(t.layout)}"
            )
        lane, column = strides(element_bits(t.element))
        for i, mode in enumerate(layout_modes(pieces.others)):
            for extent, stride in zip(leaves(mode.shape), leaves(mode.stride)):
                step = divisibility(stride)  # type: ignore[arg-type]
                if extent != 1 and (step % column or step >= lane):
                    raise AlgebraError(
                        f"mode {i} of the {what} has stride {payload_text(stride)} in {payload_text(t.layout)}; use "
                        f"multiples of {column} (columns) below {lane} (a lane)"
                    )


ATTRS: list[type[Attribute]] = [SharedCopyType]
OPS: list[type[Operation]] = [op_class(row, __name__) for row in ROWS]
