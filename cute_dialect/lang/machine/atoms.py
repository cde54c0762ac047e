"""Atoms: one copy or MMA instruction each, created from a descriptor (an "op") that the user writes.

The type of an atom, ``!cute_nvgpu.atom.…``, describes it completely, except for the tensor map of a TMA atom, which the
host builds.  Settings that may vary per copy are state of the Python object and are applied where the atom is used.
Examples are a barrier, a mask and the accumulate flag of an MMA.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from cute_dialect.algebra.values import raw_layout
from cute_dialect.lang.tracing.errors import KernelTypeError, LayoutError, MergeError
from cute_dialect.lang.tracing.tracer import active, current, parse_type, require_chip
from cute_dialect.lang.values.dtypes import Numeric
from cute_dialect.lang.values.dynamic import Dynamic, Form, made_of
from cute_dialect.lang.values.forms import form_of
from cute_dialect.type_text import language_terms

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

    from cute_dialect.lang.values.layouts import Layout
    from cute_dialect.lang.values.signature_types import Value

# ------------------------------------------------------------------------------------------------------------- forms


class LeafForm(Form):
    """The form of a single SSA value."""

    __slots__ = ("types",)

    def __init__(self, type: Attribute):
        self.types = (type,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LeafForm) and self.types == other.types

    def __hash__(self) -> int:
        return hash(self.types)

    def take(self, value: object) -> list[SSAValue]:
        return [value]  # pyright: ignore[reportReturnType]

    def make(self, leaves: Sequence[SSAValue]) -> object:
        return leaves[0]

    def join(self, other: Form) -> Form:
        if self != other:
            raise MergeError("F209", f"it is a value of type {self.types[0]} or {getattr(other, 'types', other)}")
        return self


class RecordForm(Form):
    """The form of an atom or of an object built from one: its fixed part (the type), and the forms of its parts."""

    __slots__ = ("fixed", "kind", "parts", "types")

    def __init__(self, kind: type[Record], fixed: tuple[object, ...], parts: Sequence[Form]):
        self.kind = kind
        self.fixed = fixed
        self.parts = tuple(parts)
        self.types = tuple(t for p in self.parts for t in p.types)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RecordForm):
            return False
        return self.kind is other.kind and self.fixed == other.fixed and self.parts == other.parts

    def __hash__(self) -> int:
        return hash((self.kind, self.fixed, self.parts))

    def take(self, value: object) -> list[SSAValue]:
        assert isinstance(value, Record)
        return [leaf for part, form in zip(value.parts(), self.parts) for leaf in form.take(part)]

    def make(self, leaves: Sequence[SSAValue]) -> object:
        return self.kind.remade(self.fixed, made_of(self.parts, leaves))

    def join(self, other: Form) -> Form:
        if not isinstance(other, RecordForm) or self.kind is not other.kind or self.fixed != other.fixed:
            raise MergeError(
                "F209", f"it is {self._text()} or {other._text() if isinstance(other, RecordForm) else other}"
            )
        return RecordForm(self.kind, self.fixed, [a.join(b) for a, b in zip(self.parts, other.parts, strict=True)])

    def widened(self) -> Form:
        return RecordForm(self.kind, self.fixed, [p.widened() for p in self.parts])

    def _text(self) -> str:
        type = language_terms(str(self.fixed[0])).removeprefix("tiled copy of ").removeprefix("tiled MMA of ")
        return f"a {self.kind.__name__} of {type}"


class Record(Dynamic):
    """Base of values that consist of a type and a few parts."""

    __slots__ = ()

    def fixed(self) -> tuple[object, ...]:
        """Return the static part, hashable, with the type first."""
        raise NotImplementedError

    def parts(self) -> tuple[object, ...]:
        """Return the parts that may be dynamic: values, or plain SSA values."""
        return ()

    @classmethod
    def remade(cls, fixed: tuple[Any, ...], parts: Sequence[Any]) -> Record:
        """Return the value with these parts."""
        raise NotImplementedError

    def __cute_form__(self) -> Form:
        return RecordForm(type(self), self.fixed(), [_part_form(p) for p in self.parts()])


def _part_form(part: object) -> Form:
    from xdsl.ir import SSAValue

    return LeafForm(part.type) if isinstance(part, SSAValue) else form_of(part)


# ------------------------------------------------------------------------------------------------------- descriptors


class AtomOp:
    """Base of the descriptors that users write: ``cute.nvgpu.CopyUniversalOp()``.

    ``chip`` is the first architecture that has the instruction ("" for any); ``sm_90a`` means only that one.
    """

    chip: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """Its name in messages."""
        return type(self).__name__


class CopyOp(AtomOp):
    """Base of copy descriptors."""

    def atom_text(self, dtype: type[Numeric], bits: int | None) -> str:
        """Return the atom's type as text. ``bits``: the size of one copy, or None if the user did not specify it."""
        raise NotImplementedError


class MmaOp(AtomOp):
    """Base of MMA descriptors."""

    def atom_text(self) -> str:
        """Return the atom's type as text."""
        raise NotImplementedError


def element_text(dtype: Any, what: str, *, signed: bool = False) -> str:
    """Return an element type as text.  Raises F250 if it is not one.  ``signed``: write unsigned types as ``ui8``."""
    if not (isinstance(dtype, type) and issubclass(dtype, Numeric) and dtype.mlir_type):
        raise KernelTypeError(
            "F250", f"{what}: the element type must be a number type such as cute.Float16, got {dtype!r}"
        )
    unsigned = signed and dtype.is_integer and not dtype.signed and dtype.width > 1
    return f"u{dtype.mlir_type}" if unsigned else dtype.mlir_type


def refuse(code: str, what: str, error: Exception, hint: str = "", arguments: Sequence[str] = ()) -> NoReturn:
    """Raise a KernelTypeError in the user's vocabulary for an op that the dialect rejected.

    ``arguments`` are the names of the op's operands in Python.
    """
    text = error.message if isinstance(error, LayoutError | KernelTypeError) else str(error)
    for i, name in enumerate(arguments):
        text = re.sub(rf"\boperand #{i}\b", name, text)
    raise KernelTypeError(code, f"{what}: {text}", hint=hint) from None


def check_target(what: str, needed: str) -> None:
    """Raise F280 if the target of the running trace lacks an instruction."""
    if needed and active() is not None:
        require_chip(what, needed)


def parsed_atom(text: str, what: str, hint: str = "") -> Attribute:
    """Parse an atom's type.  Raises F250 with the reason from the instruction table."""
    from xdsl.utils.exceptions import ParseError

    try:
        return parse_type(text)
    except ParseError as e:
        raise KernelTypeError("F250", f"{what}: {e.msg}", hint=hint) from None


# ------------------------------------------------------------------------------------------------------------ atoms


class Atom(Record):
    """Base of atoms. ``type`` identifies the instruction, ``op`` is the descriptor it was created from."""

    __slots__ = ("_ssa", "op", "type")

    type: Attribute
    op: AtomOp

    def __init__(self, type: Attribute, op: AtomOp, ssa: SSAValue | None = None):
        self.type = type
        self.op = op
        self._ssa = ssa

    @property
    def is_static(self) -> bool:
        """True if the type describes the atom completely. A TMA atom also has a tensor map."""
        return self._ssa is None

    @property
    def ssa(self) -> SSAValue:
        if self._ssa is not None:
            return self._ssa
        check_target(self.op.name, self.op.chip)
        return current().at_top("cute.atom", self.type)

    def fixed(self) -> tuple[object, ...]:
        return (self.type, self.op)

    def parts(self) -> tuple[object, ...]:
        return () if self._ssa is None else (self._ssa,)

    @classmethod
    def remade(cls, fixed: tuple[Any, ...], parts: Sequence[Any]) -> Atom:
        return cls(*fixed, *parts)

    def describe(self) -> str:
        return f"this atom ({self.op.name})"

    def __repr__(self) -> str:
        return str(self.type)

    @property
    def _table_row(self) -> Any:
        """Its row in the instruction table."""
        row: Any = getattr(self.type, "row", None)
        if row is None:
            raise KernelTypeError("F251", f"{self.op.name} has no layout because it is not a single instruction")
        return row() if callable(row) else row

    @property
    def thr_id(self) -> Any:
        """Layout from the instruction's logical threads to the threads of the warp or warpgroup."""
        from cute_dialect.lang.values.layouts import Layout  # late: start-up

        return Layout(self._table_row.thr_id)


class CopyAtom(Atom):
    """A copy instruction with its element type and access size.

    ``set(field, value)`` sets the state for later copies: ``tma_bar``, ``multicast_mask``, ``cache_hint``, ``pred``.
    """

    __slots__ = ("map_modes", "state")
    __cute_places__ = ("state",)

    state: tuple[tuple[str, Any], ...]
    map_modes: tuple[int, ...]
    """For each dimension of the tensor map of a TMA atom, the mode of the tensor, if each is one mode; else empty."""

    def __init__(
        self, type: Attribute, op: AtomOp, ssa: SSAValue | None = None, state: tuple[tuple[str, Any], ...] = ()
    ):
        super().__init__(type, op, ssa)
        self.state = state
        self.map_modes = ()

    def fixed(self) -> tuple[object, ...]:
        return (*super().fixed(), self.map_modes)

    def parts(self) -> tuple[object, ...]:
        return (*super().parts(), self.state)

    @classmethod
    def remade(cls, fixed: tuple[Any, ...], parts: Sequence[Any]) -> CopyAtom:
        made = cls(*fixed[:-1], *(parts if len(parts) == 2 else (None, *parts)))
        made.map_modes = fixed[-1]
        return made

    @property
    def value_type(self) -> type[Numeric]:
        """The element type."""
        from cute_dialect.lang.values.pointers import element_class  # late: start-up

        return element_class(self.type.element)

    def set(self, field: str, value: Value) -> None:
        """Set a field of the run-time state for all later copies. None clears it."""
        self.state = (*[(f, v) for f, v in self.state if f != field], *([] if value is None else [(field, value)]))

    def _side(self, side: str) -> Any:
        from cute_dialect.dialect.memory_types import element_bits  # late: start-up
        from cute_dialect.lang.values.layouts import Layout  # late: start-up

        element = self.type.element
        if not hasattr(self.type, "row"):
            n = self.type.values()
            return Layout(raw_layout((1, n), (0, 1 if n > 1 else 0)))
        return Layout(self._table_row.in_elements(side, element_bits(element)))

    @property
    def layout_src_tv(self) -> Any:
        """Layout (thread, value) -> element of the source side of one instruction."""
        return self._side("src")

    @property
    def layout_dst_tv(self) -> Any:
        """Layout (thread, value) -> element of the destination side of one instruction."""
        return self._side("dst")


class MmaAtom(Atom):
    """An MMA instruction, ``D = A * B + C``, executed by a group of threads."""

    __slots__ = ()

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        """The shape ``(M, N, K)``."""
        return self.type.data.shape

    @property
    def is_asynchronous(self) -> bool:
        """True for asynchronous MMAs (``wgmma``), for which the user issues fence, commit and wait."""
        return self.type.ASYNCHRONOUS

    def tv_layout(self, operand: str) -> Layout:
        """Return the layout (thread, value) -> column-major index in the operand's tile."""
        from cute_dialect.lang.values.layouts import Layout  # late: start-up

        return Layout(self._table_row.layout(operand))


def make_copy_atom(op: CopyOp, dtype: type[Numeric], *, num_bits_per_copy: int | None = None) -> CopyAtom:
    """Create the atom of a copy.

    Args:
        op: a copy descriptor, such as ``cute.nvgpu.CopyUniversalOp()``.
        dtype: the element type.
        num_bits_per_copy: the size of one access in bits, for instructions with several sizes.

    ``cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=128)`` copies four floats at
    once.
    """
    if not isinstance(op, CopyOp):
        raise KernelTypeError(
            "F250", f"cute.make_copy_atom: op must be a copy descriptor, got {_shown(op)}",
            hint="such as cute.nvgpu.CopyUniversalOp(), cute.nvgpu.cpasync.CopyG2SOp(), "
            "cute.nvgpu.warp.LdMatrix8x8x16bOp()",
        )  # fmt: skip
    what = f"cute.make_copy_atom({op.name}, …)"
    element_text(dtype, what)
    text = op.atom_text(dtype, None if num_bits_per_copy is None else int(num_bits_per_copy))
    check_target(op.name, op.chip)
    return CopyAtom(parsed_atom(text, what), op)


def make_mma_atom(op: MmaOp) -> MmaAtom:
    """Create the atom of an MMA.

    ``cute.make_mma_atom(cute.nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))``
    """
    if isinstance(op, MmaAtom):
        return op
    if not isinstance(op, MmaOp):
        raise KernelTypeError(
            "F250", f"cute.make_mma_atom: op must be an MMA descriptor, got {_shown(op)}",
            hint="such as cute.nvgpu.MmaUniversalOp(…), cute.nvgpu.warp.MmaF16BF16Op(…), "
            "cute.nvgpu.warpgroup.MmaF16BF16Op(…)",
        )  # fmt: skip
    check_target(op.name, op.chip)
    made = MmaAtom(parsed_atom(op.atom_text(), op.name), op)
    check_target(op.name, made._table_row.arch)
    return made


def make_atom(op: AtomOp, *args: Any, **kwargs: Any) -> Atom:
    """Create the atom of a copy or MMA descriptor."""
    return make_mma_atom(op) if isinstance(op, MmaOp) else make_copy_atom(op, *args, **kwargs)


def _shown(x: object) -> str:
    return f"the class {x.__name__}: call it" if isinstance(x, type) else repr(x)
