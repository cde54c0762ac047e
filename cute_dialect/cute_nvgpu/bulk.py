"""Bulk copies and reductions of runs of bytes (``cp.async.bulk``, sm_90), and prefetches: atom types and ops.

* ``!cute_nvgpu.atom.bulk_copy<f32>``: copies between global and shared memory, or from shared memory to that of another
  block of the cluster. It uses as few instructions as the layouts of both sides allow. ``<f32, 4096 b>`` moves 4096
  bits per instruction.
* ``!cute_nvgpu.atom.bulk_reduce<f32, add>``: combines shared memory with global memory.

Source: PTX ISA 9.0, 9.7.9.25.4 "Non-tensor copy instructions".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import gcd
from typing import TYPE_CHECKING, NamedTuple, cast

from xdsl.dialects.builtin import StringAttr, i16, i64
from xdsl.ir import Attribute, Data, SSAValue
from xdsl.irdl import irdl_attr_definition, operand_def, opt_operand_def, prop_def, var_operand_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.layout import coalesce
from cute_dialect.algebra.leaf import AlgebraError, Leaf, add, divisibility, mul
from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import AnyLayout, ComposedLayout, Layout
from cute_dialect.algebra.vectors import Mode, common_modes
from cute_dialect.dialect.atom_types import CopyAtomType
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.memory_types import MemRefType, PtrType, element_bits
from cute_dialect.dialect.typed_values import payload_text
from cute_dialect.dialect.views import InstructionOp
from cute_dialect.ir.editing import fill_op
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from cute_dialect.arch.atom import CopyAtom


UNIT_BITS = 128
"""Granularity of size and address of a bulk copy in bits (16 bytes)."""

DESTINATIONS = {AddressSpace.gmem: (AddressSpace.smem,), AddressSpace.smem: (AddressSpace.gmem, AddressSpace.dsmem)}
"""Memory space of the source of a bulk copy -> those of the destination."""


class Runs(NamedTuple):
    """The runs of a copy: each instruction moves ``elements`` elements; ``loops`` are the loops over instructions, with
    the strides of source and destination.
    """

    elements: int
    loops: tuple[Mode, ...]

    def offsets(self) -> Iterator[tuple[Leaf, Leaf]]:
        """Yield the offset of each instruction in the source and in the destination, in elements."""
        for step in product(*[range(m.extent) for m in reversed(self.loops)]):
            yield cast("tuple[Leaf, Leaf]", tuple([_dot(step[::-1], self.loops, side) for side in (0, 1)]))


def _dot(step: Sequence[int], modes: Sequence[Mode], side: int) -> Leaf:
    total: Leaf = 0
    for i, mode in zip(step, modes):
        if i:
            moved = mul(mode.strides[side], i)
            total = moved if isinstance(total, int) and total == 0 else add(total, moved)
    return total


def needs_barrier(destination: MemRefType) -> bool:
    """Return True if an mbarrier counts the bytes of copies to this destination, False if they join a bulk group."""
    return destination.space.shared


_SPACES = {False: DESTINATIONS, True: {AddressSpace.smem: (AddressSpace.gmem,)}}
"""Whether the atom reduces -> source space -> allowed destination spaces."""


def check_copy(atom: BulkAtomType, operand_types: Sequence[Attribute]) -> None:
    """Raise AlgebraError unless the atom can copy between tensors of the types ``(_, source, destination)``."""
    if len(operand_types) != 3:
        raise AlgebraError(
            "a copy with a bulk atom takes no predicate tensor; "
            "set one flag for all elements with cute.atom.set_value 'pred'"
        )
    source, destination = operand_types[1:]
    for i, t in enumerate((source, destination), 1):
        if not isinstance(t, MemRefType):
            raise AlgebraError(f"operand #{i} must be a !cute.memref, got {t}")
        if t.element != atom.element:
            raise AlgebraError(f"operand #{i} must have elements of the atom's {atom.element}, got {t.element}")
        if isinstance(t.layout, ComposedLayout) or t.data.ptr.swizzle is not None:
            raise AlgebraError(
                f"operand #{i} has a swizzle ({t}), but bulk copies move plain runs of bytes; use one without"
            )
    assert isinstance(source, MemRefType) and isinstance(destination, MemRefType)
    spaces = _SPACES[bool(atom.data.reduction)]
    if destination.space not in spaces.get(source.space, ()):
        pairs = ", ".join(f"{a} to {b}" for a, to in spaces.items() for b in to)
        raise AlgebraError(f"{atom.name} does not copy from {source.space} to {destination.space}; it supports {pairs}")
    runs(atom, (source, destination), (source.layout, destination.layout))


def runs(atom: BulkAtomType, types: tuple[MemRefType, MemRefType], layouts: tuple[AnyLayout, AnyLayout]) -> Runs:
    """Return the runs of a copy. ``layouts`` may have leaves bound to run-time values.

    Raises AlgebraError that names the invalid side.
    """
    names = ("source", "destination")
    plain: list[Layout] = []
    for what, layout in zip(names, layouts):
        assert isinstance(layout, Layout)
        if not is_static(layout.shape):
            raise AlgebraError(
                f"the shape of the {what} is not static ({payload_text(layout.shape)}); use static extents"
            )
        plain.append(layout)
    bits = element_bits(atom.element)
    rest = [m for m in common_modes(plain) if m.strides[1] != 0]  # Stride 0 in the destination: write once.
    limit, width = atom.data.bits // bits, 1
    while not limit or width < limit:
        at = next((i for i, m in enumerate(rest) if m.strides == (width, width)), None)
        if at is None:
            break
        mode = rest.pop(at)
        take = gcd(mode.extent, limit // width) if limit else mode.extent
        if take < mode.extent:
            rest.insert(at, Mode(mode.extent // take, (width * take, width * take)))
        width *= take
        if take < mode.extent:
            break
    shown = " and ".join(payload_text(layout) for layout in plain)
    if limit and width != limit:
        raise AlgebraError(
            f"{width} elements are contiguous in both {shown}; the {atom.data.bits} bits of the atom need "
            f"runs of {limit}"
        )
    if width * bits % UNIT_BITS:
        raise AlgebraError(
            f"{width} elements of {atom.element} are contiguous in both {shown}; runs must be multiples of 16 bytes"
        )
    unit = UNIT_BITS // bits
    for side, (what, t, layout) in enumerate(zip(names, types, plain)):
        if t.alignment % 16:
            raise AlgebraError(f"the {what} is aligned to {t.alignment} bytes ({t}); a bulk copy needs 16")
        if any(divisibility(m.strides[side]) % unit for m in rest):
            raise AlgebraError(
                f"the layout of the {what} is {payload_text(layout)}; its runs must begin at multiples of "
                f"{unit} elements (16 bytes)"
            )
    return Runs(width, tuple(rest))


REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


class BulkCopy(NamedTuple):
    """Parameters of a bulk atom.

    ``bits`` is the size of one instruction, or 0 for the longest contiguous run. ``reduction`` is one of
    ``REDUCTIONS``, or empty.
    """

    element: Attribute
    bits: int = 0
    reduction: str = ""


def reduced_as(element: Attribute, reduction: str) -> str:
    """Return the PTX type of a reduction of an element type. Raises AlgebraError if there is none.

    >>> from xdsl.dialects.builtin import f32, i32
    >>> reduced_as(f32, "add"), reduced_as(i32, "xor")
    ('f32', 'b32')
    """
    from cute_dialect.arch.copies import BULK_REDUCTIONS  # late: start-up

    bits, text = element_bits(element), str(element)
    names = [text]
    if text[0] in "iu":
        signed = () if text.startswith("ui") else (f"s{bits}",)
        names = [*signed, f"u{bits}", f"b{bits}"]
        if text.startswith("i") and reduction in ("min", "max"):
            names = [f"s{bits}"]
    known = BULK_REDUCTIONS[reduction]
    found = next((name for name in names if name in known), None)
    if found is None:
        raise AlgebraError(
            f"cp.reduce.async.bulk.{reduction} does not support elements {element}; use one of {', '.join(known)}"
        )
    return found


def check_bulk(b: BulkCopy) -> None:
    """Raise AlgebraError unless an instruction with these parameters exists."""
    natural = element_bits(b.element)
    if b.bits % UNIT_BITS or b.bits % natural or b.bits < 0:
        raise AlgebraError(
            f"the atom has {b.bits} bits; use a multiple of {UNIT_BITS} bits that holds whole {b.element} elements"
        )
    if b.reduction:
        reduced_as(b.element, b.reduction)


class BulkAtomType(Data[BulkCopy], CopyAtomType):
    """Base of the bulk atom types."""

    ONE_THREAD = True
    REDUCES = False

    def fields(self) -> tuple[str, ...]:
        return ("cache_hint", "pred") if self.REDUCES else ("tma_bar", "multicast_mask", "cache_hint", "pred")

    def takes(self, field: str, value: Attribute) -> bool:
        remote = isinstance(value, PtrType) and value.data.space == AddressSpace.dsmem and value.data.element == i64
        return (field == "tma_bar" and remote) or super().takes(field, value)

    def check_copy(self, operand_types: Sequence[Attribute]) -> None:
        check_copy(self, operand_types)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> BulkCopy:
        with parser.in_angle_brackets():
            at = parser.pos
            b = BulkCopy(parser.parse_type())
            if cls.REDUCES:
                parser.parse_punctuation(",")
                here = parser.pos
                word = parser.parse_identifier(" reduction")
                if word not in REDUCTIONS:
                    parser.raise_error(
                        f"'{word}' is not a reduction; write one of {', '.join(REDUCTIONS)}", here, parser.pos
                    )
                b = b._replace(reduction=word)
            if parser.parse_optional_punctuation(",") is not None:
                b = b._replace(bits=parser.parse_integer(allow_boolean=False, allow_negative=False))
                parser.parse_keyword("b")
            try:
                check_bulk(b)
            except AlgebraError as e:
                parser.raise_error(str(e), at, parser.pos)
        return b

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<")
        printer.print_attribute(self.data.element)
        if self.data.reduction:
            printer.print_string(f", {self.data.reduction}")
        if self.data.bits:
            printer.print_string(f", {self.data.bits} b")
        printer.print_string(">")

    def verify(self) -> None:
        try:
            check_bulk(self.data)
        except AlgebraError as e:
            raise VerifyException(str(e)) from None

    @property
    def element(self) -> Attribute:
        return self.data.element

    def threads(self) -> int:
        return 1

    def values(self) -> int:
        return max(1, self.data.bits // element_bits(self.data.element))

    def row(self) -> CopyAtom:
        """Return the row of the atom in the table. For copies between global and shared memory it is the row of the
        load.
        """
        from cute_dialect.arch import copy_atom  # late: start-up

        b = self.data
        if not b.reduction:
            return copy_atom("SM90_BULK_COPY_G2S")
        return copy_atom(f"SM90_BULK_REDUCE_{b.reduction.upper()}_S2G_{reduced_as(b.element, b.reduction).upper()}")


@irdl_attr_definition
class BulkCopyType(BulkAtomType):
    """``!cute_nvgpu.atom.bulk_copy<T [, N b]>``: copies runs of bytes, issued by one thread. Each instruction moves
    ``N`` bits, or as many as are contiguous on both sides.

    Copies from gmem to smem and from smem to dsmem signal an mbarrier. Copies from smem to gmem belong to a bulk group.
    Fields: ``tma_bar`` (the mbarrier), ``multicast_mask`` (gmem to smem), ``cache_hint``, ``pred``.
    """

    name = "cute_nvgpu.atom.bulk_copy"


@irdl_attr_definition
class BulkReduceType(BulkAtomType):
    """``!cute_nvgpu.atom.bulk_reduce<T, add|min|max|inc|dec|and|or|xor [, N b]>``: reduces runs of shared memory into
    global memory in a bulk group, atomically for each element.

    Fields: ``cache_hint``, ``pred``.
    """

    name = "cute_nvgpu.atom.bulk_reduce"
    REDUCES = True


ATTRS: list[type[Attribute]] = [BulkCopyType, BulkReduceType]


class _RunOp(InstructionOp):
    """Base of the bulk ops, which access contiguous runs of bytes."""

    def verify_(self) -> None:
        try:
            self.check()
        except AlgebraError as e:
            raise VerifyException(f"'{self.name}' op {e}") from None

    def check(self) -> None:
        """Raise AlgebraError unless the operands are valid."""
        raise NotImplementedError(self.name)


def run_bytes(t: Attribute, what: str, spaces: tuple[AddressSpace, ...]) -> int:
    """Return the size in bytes of a tensor that is one contiguous run, as bulk copies require.

    Raises AlgebraError unless the tensor is in one of ``spaces``, has no swizzle, and has a static contiguous layout.
    Its alignment and its size must be multiples of 16 bytes.
    """
    assert isinstance(t, MemRefType)
    if t.space not in spaces:
        raise AlgebraError(f"the {what} is in {t.space} ({t}); it must be in {' or '.join(spaces)}")
    layout = t.layout
    if isinstance(layout, ComposedLayout) or t.data.ptr.swizzle is not None:
        raise AlgebraError(f"the {what} has a swizzle ({t}); use one without")
    n = size(layout)
    run = coalesce(layout)
    if not isinstance(n, int) or not (n == 1 or (run.shape == n and run.stride == 1)):
        raise AlgebraError(f"the {what} is not one contiguous run of static size ({t}); use a contiguous static layout")
    n_bytes = n * element_bits(t.element) // 8
    if n_bytes % 16 or t.alignment % 16:
        raise AlgebraError(
            f"the {what} has {n_bytes} bytes aligned to {t.alignment} ({t}); size and alignment must be "
            "multiples of 16 bytes"
        )
    return n_bytes


@cute_op
class BulkCopyOp(_RunOp):
    """Copies a contiguous run asynchronously (``cp.async.bulk``, sm_90). One thread issues it.

    Syntax: ``cute_nvgpu.arch.bulk_copy(%src, %dst [, %bar] [, %mask : i16] [, %hint : i64]) : (S, D, …) -> ()``

    Copies from gmem to smem, and from smem to the shared memory of another block of the cluster (dsmem), signal
    completion on the mbarrier ``%bar``. Copies from smem to gmem are completed with ``bulk_commit_group`` and
    ``bulk_wait_group``.

    * Both runs have the same size in bytes, a multiple of 16, and are aligned to 16 bytes.
    * ``%mask`` (gmem to smem) selects the blocks of the cluster that receive the run, each at the same offset of its
      shared memory.
    * ``%hint`` (to or from gmem) is an L2 cache policy.

    Example:
        cute_nvgpu.arch.bulk_copy(%g, %s, %bar) : (!cute.memref<f32, gmem, align<16>, "256:1">, !cute.memref<f32, smem, align<16>, "256:1">, !cute.ptr<i64, smem>) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.bulk_copy"
    source = operand_def(MemRefType)
    destination = operand_def(MemRefType)
    rest = var_operand_def()

    def __init__(self, source: SSAValue, destination: SSAValue, rest: Sequence[SSAValue] = ()):
        fill_op(self, [source, destination, *rest])

    def check(self) -> None:
        source, destination = self.source.type, self.destination.type
        assert isinstance(source, MemRefType)
        a = run_bytes(source, "source", tuple(DESTINATIONS))
        b = run_bytes(destination, "destination", DESTINATIONS[source.space])
        if a != b:
            raise AlgebraError(f"the runs have {a} and {b} bytes; their lengths must be equal")
        assert isinstance(destination, MemRefType)
        signals = destination.space != AddressSpace.gmem
        rest = [o.type for o in self.rest]
        if signals != (bool(rest) and isinstance(rest[0], PtrType)):
            needs = "needs an mbarrier" if signals else "takes no mbarrier, because a bulk group completes it"
            raise AlgebraError(f"a copy from {source.space} to {destination.space} {needs}")
        if signals:
            bar = rest.pop(0)
            assert isinstance(bar, PtrType)
            if bar.data.element != i64 or not bar.data.space.shared:
                raise AlgebraError(f"operand #2 must be a !cute.ptr<i64, smem>, got {bar}")
        last = "neither mask nor cache hint"
        allowed: tuple[tuple[Attribute, ...], ...] = ((),)
        if source.space == AddressSpace.gmem:
            last, allowed = "at most an i16 mask and an i64 cache hint", ((), (i16,), (i64,), (i16, i64))
        elif destination.space == AddressSpace.gmem:
            last, allowed = "at most an i64 cache hint", ((), (i64,))
        if tuple(rest) not in allowed:
            raise AlgebraError(
                f"a copy from {source.space} to {destination.space} does not take "
                f"{', '.join(map(str, rest))}; pass {last}"
            )


@cute_op
class BulkReduceOp(_RunOp):
    """Reduces a contiguous run of shared memory into a run of global memory (``cp.reduce.async.bulk``, sm_90).

    Syntax: ``cute_nvgpu.arch.bulk_reduce(%src, %dst [, %hint : i64]) {reduction = "add"} : (S, D [, i64]) -> ()``

    The reduction is atomic for each element and belongs to the current bulk group. One thread issues it, after a fence
    of the async proxy. ``reduction`` is add, min, max, inc, dec, and, or, xor, if the element type supports it.

    PTX ISA 9.7.9.25.4.2 "cp.reduce.async.bulk".

    Example:
        cute_nvgpu.arch.bulk_reduce(%s, %g) {reduction = "add"} : (!cute.memref<f32, smem, align<16>, "256:1">, !cute.memref<f32, gmem, align<16>, "256:1">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.bulk_reduce"
    source = operand_def(MemRefType)
    destination = operand_def(MemRefType)
    hint = opt_operand_def(i64)
    reduction = prop_def(StringAttr)

    def __init__(self, source: SSAValue, destination: SSAValue, reduction: StringAttr, hint: Sequence[SSAValue] = ()):
        fill_op(self, [source, destination, *hint], properties={"reduction": reduction})

    def check(self) -> None:
        source, destination = self.source.type, self.destination.type
        a = run_bytes(source, "source", (AddressSpace.smem,))
        b = run_bytes(destination, "destination", (AddressSpace.gmem,))
        assert isinstance(source, MemRefType) and isinstance(destination, MemRefType)
        if a != b or source.element != destination.element:
            raise AlgebraError(
                f"the runs are {source} and {destination}; their lengths and element types must be equal"
            )
        word = self.reduction.data
        if word not in REDUCTIONS:
            raise AlgebraError(f"the reduction is '{word}'; use one of {', '.join(REDUCTIONS)}")
        reduced_as(source.element, word)


@cute_op
class BulkPrefetchOp(_RunOp):
    """Prefetches a contiguous run of global memory into the L2 cache (``cp.async.bulk.prefetch``, sm_90).

    Syntax: ``cute_nvgpu.arch.bulk_prefetch(%t) : (T) -> ()``

    Example:
        cute_nvgpu.arch.bulk_prefetch(%g) : (!cute.memref<f32, gmem, align<16>, "256:1">) -> ()
    """

    name = "cute_nvgpu.arch.bulk_prefetch"
    tensor = operand_def(MemRefType)

    def check(self) -> None:
        run_bytes(self.tensor.type, "tensor", (AddressSpace.gmem,))


@cute_op
class PrefetchOp(_RunOp):
    """Prefetches the cache line of the first element of a tensor.

    Syntax: ``cute_nvgpu.arch.prefetch(%t) {level = "L1"|"L2"} : (T) -> ()``

    Example:
        cute_nvgpu.arch.prefetch(%g) {level = "L2"} : (!cute.memref<f32, gmem, "(?,?):(?,1)">) -> ()
    """

    name = "cute_nvgpu.arch.prefetch"
    tensor = operand_def(MemRefType)
    level = prop_def(StringAttr)

    def check(self) -> None:
        t = self.tensor.type
        assert isinstance(t, MemRefType)
        if t.space != AddressSpace.gmem:
            raise AlgebraError(f"the tensor is in {t.space} ({t}); it must be in gmem")
        if self.level.data not in ("L1", "L2"):
            raise AlgebraError(f'the level is "{self.level.data}"; use "L1" or "L2"')


OPS = ops_of(__name__)
