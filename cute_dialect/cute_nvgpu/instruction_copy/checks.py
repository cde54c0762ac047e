"""Checks of ``cute.copy`` with an atom that is one machine instruction (``cp.async``, ``ldmatrix``, …).

Such a copy is a sequence of instructions. Each side is cut into *pieces*: the values of one thread in one instruction.
The pieces are numbered along mode 0 first, then along the other modes. On a side in memory a piece must be contiguous
and aligned; on a side in registers it may have any layout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute

from cute_dialect.algebra.evaluation import evaluate, size
from cute_dialect.algebra.layout import coalesce, make_layout
from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf, divisibility
from cute_dialect.algebra.tiling import logical_divide
from cute_dialect.algebra.trees import is_static, leaves
from cute_dialect.algebra.values import AnyLayout, ComposedLayout, IntTuple, Layout, Swizzle, layout_modes, raw_layout
from cute_dialect.dialect.memory_types import MemRefType, element_bits
from cute_dialect.dialect.typed_values import payload_text

if TYPE_CHECKING:
    from cute_dialect.cute_nvgpu.instruction_copy.types import InstructionCopyType


class Pieces(NamedTuple):
    """A side of a copy after cutting: the layout of one piece, and the layout of the pieces (mode 0, then the
    others).
    """

    piece: Layout
    others: Layout
    swizzled: ComposedLayout | None

    @property
    def counts(self) -> list[int]:
        """Number of pieces in mode 0, followed by the sizes of the other modes."""
        return [cast("int", size(m)) for m in layout_modes(self.others)]

    def offset(self, number: int) -> Leaf:
        """Return the offset of a piece in elements. Pieces are numbered colexicographically."""
        found = evaluate(number, self.others)
        at: Leaf = 0 if isinstance(found, tuple) else found  # type: ignore[assignment]
        if self.swizzled is None:
            return at
        whole = ComposedLayout(self.swizzled.inner, self.swizzled.offset, self.others)
        return cast("Leaf", evaluate(number, whole))


def outer_layout(layout: AnyLayout) -> Layout:
    """Return the layout itself, or the outer layout of a swizzled layout."""
    return layout.outer if isinstance(layout, ComposedLayout) else layout


def cut(layout: AnyLayout, values: int) -> Pieces:
    """Cut a side into pieces of ``values`` values. Raises AlgebraError if mode 0 is not a multiple of ``values``.

    ``layout`` may have leaves bound to run-time values.
    """
    plain = outer_layout(layout)
    modes = layout_modes(plain) if isinstance(plain.shape, tuple) else [plain]
    count = size(modes[0])
    if not isinstance(count, int) or count % values:
        raise AlgebraError(f"the layout is {payload_text(plain)}; the size of mode 0 must be a multiple of {values}")
    piece, among = layout_modes(logical_divide(modes[0], raw_layout(values, 1)))
    return Pieces(piece, make_layout(among, *modes[1:]), layout if isinstance(layout, ComposedLayout) else None)


# -------------------------------------------------------------------------------------------------------------- checks


def check_copy(
    atom: InstructionCopyType, source: Attribute, destination: Attribute, pred: Attribute | None
) -> tuple[Pieces, Pieces]:
    """Return both sides of a copy, cut into pieces. Raises AlgebraError unless ``atom`` can move each piece."""
    row = atom.row()
    cuts: list[Pieces] = []
    sides = (("source", "src", source, row.src_space), ("destination", "dst", destination, row.dst_space))
    for i, (what, side, t, space) in enumerate(sides, 1):
        assert isinstance(t, MemRefType)
        if t.space != space:
            raise AlgebraError(
                f"the {what} is in {t.space} ({t}); it must be in {space}, because {row.emit.kind} moves "
                f"{row.src_space} to {row.dst_space}"
            )
        if element_bits(t.element) != element_bits(atom.element):
            raise AlgebraError(f"operand #{i} must have elements as wide as the atom's {atom.element}, got {t.element}")
        cuts.append(_cut_side(atom, what, side, t))
    assert isinstance(source, MemRefType) and isinstance(destination, MemRefType)
    if source.element != destination.element:
        raise AlgebraError(
            f"the element types of both sides are {source.element} and {destination.element}; they must be equal"
        )
    _check_counts(atom, cuts, (source, destination))
    align = {"source": row.src_align, "destination": row.dst_align}
    for (what, _, t, _), pieces in zip(sides, cuts):
        assert isinstance(t, MemRefType)
        if t.space.per_thread:
            if not is_static(t.layout):
                raise AlgebraError(
                    f"the layout of the {what} in registers is not static ({t}); use static extents and strides"
                )
        else:
            check_memory_side(row.emit.kind, what, t, pieces, align[what])
    if pred is not None:
        _check_predicate(row.emit.kind, pred, cuts[1].counts)
    return cuts[0], cuts[1]


def _cut_side(atom: InstructionCopyType, what: str, side: str, t: MemRefType) -> Pieces:
    shape = outer_layout(t.layout).shape
    if not is_static(shape):
        raise AlgebraError(f"the shape of the {what} is not static ({payload_text(shape)}); use static extents")
    values = atom.side_values(side)
    try:
        return cut(t.layout, values)
    except AlgebraError:
        raise AlgebraError(
            f"the shape of the {what} is {payload_text(shape)}; the size of mode 0 must be a multiple of "
            f"{values}, the values per thread of one {atom.row().emit.kind} with {atom}"
        ) from None


def _check_counts(atom: InstructionCopyType, cuts: list[Pieces], sides: tuple[MemRefType, MemRefType]) -> None:
    a, b = cuts[0].counts, cuts[1].counts
    shapes = " and ".join(payload_text(outer_layout(t.layout).shape) for t in sides)
    if len(a) != len(b):
        raise AlgebraError(f"the shapes of the tensors are {shapes}; their ranks must be equal")
    if a[0] != b[0]:
        raise AlgebraError(
            f"mode 0 has {a[0]} instructions at the source ({atom.side_values('src')} values each) and {b[0]} "
            f"at the destination ({atom.side_values('dst')} values each) of {shapes}; use the same number"
        )
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            raise AlgebraError(f"mode {i} has sizes {x} and {y} in {shapes}; they must be equal")


def check_memory_side(kind: str, what: str, t: MemRefType, pieces: Pieces, align: int) -> None:
    """Raise AlgebraError unless each piece is contiguous and starts at a multiple of ``align`` bytes."""
    values = cast("int", size(pieces.piece))
    bits = element_bits(t.element)
    run = coalesce(pieces.piece)
    if values > 1 and not (run.shape == values and run.stride == 1):
        raise AlgebraError(
            f"one {kind} has {payload_text(pieces.piece)} elements of the {what} in mode 0 of "
            f"{payload_text(t.layout)}; {values} must be contiguous"
        )
    if t.alignment % align:
        raise AlgebraError(f"the {what} is aligned to {t.alignment} bytes ({t}); {kind} needs {align}")
    step = align * 8 // bits
    for i, mode in enumerate(layout_modes(pieces.others)):
        for extent, stride in zip(leaves(mode.shape), leaves(mode.stride)):
            if extent != 1 and divisibility(_leaf(stride)) % step:
                raise AlgebraError(
                    f"mode {i} of the {what} has stride {payload_text(mode)} in {payload_text(t.layout)}; "
                    f"{kind} needs multiples of {step} elements ({align} bytes)"
                )
    pointer = t.data.ptr.swizzle
    if pointer is not None and 1 << pointer.base < align:
        raise AlgebraError(
            f"the swizzle {payload_text(pointer)} of the {what} keeps {1 << pointer.base} bytes together; "
            f"{kind} needs {align}"
        )
    if pieces.swizzled is not None:
        _check_composed(kind, what, pieces.swizzled, step)


def _check_composed(kind: str, what: str, layout: ComposedLayout, step: int) -> None:
    if not isinstance(layout.inner, Swizzle):
        raise AlgebraError(
            f"the layout of the {what} is neither plain nor swizzled ({payload_text(layout)}); use one that is"
        )
    if 1 << layout.inner.base < step:
        raise AlgebraError(
            f"the swizzle {payload_text(layout.inner)} of the {what} keeps {1 << layout.inner.base} elements "
            f"together; {kind} needs {step}"
        )
    offset = layout.offset
    if not isinstance(offset, int | Dyn) or divisibility(offset) % step:
        raise AlgebraError(
            f"the layout of the {what} is {payload_text(layout)}; {kind} needs an offset that is a multiple "
            f"of {step} elements"
        )


def _leaf(x: object) -> Leaf:
    return x if isinstance(x, int | Dyn) else 0


def _check_predicate(kind: str, pred: Attribute, counts: list[int]) -> None:
    if kind != "cp_async":
        raise AlgebraError(
            f"{kind} takes no predicate, because all threads of the warp execute it together; "
            "use an scf.if with a warp-uniform condition"
        )
    if not (isinstance(pred, MemRefType) and pred.element == i1 and pred.space.per_thread):
        raise AlgebraError(f"operand #3 must be an rmem tensor of i1, got {pred}")
    shape = outer_layout(pred.layout).shape
    modes = shape if isinstance(shape, tuple) else (shape,)
    sizes = [size(cast("IntTuple", m)) for m in modes]
    if len(sizes) != len(counts) or sizes[0] not in (1, counts[0]) or sizes[1:] != counts[1:]:
        rest = "".join(f",{c}" for c in counts[1:])
        wanted = " or ".join(f"({n}{rest})" for n in dict.fromkeys((counts[0], 1)))
        raise AlgebraError(
            f"the predicate has shape {payload_text(shape)}; it must have one flag per instruction, of sizes {wanted}"
        )
