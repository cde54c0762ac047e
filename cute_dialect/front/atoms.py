"""Atoms: what one instruction copies or multiplies, made of a descriptor (an "op") that the user writes.

An atom's value is in its type, ``!cute_nvgpu.atom.…``; a TMA atom is a tensor map besides, which the host makes.  What
may change from copy to copy (a barrier, a mask, whether a product accumulates) is state of the Python object, and put
on the atom where it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from cute_dialect.front.errors import KernelTypeError, LayoutError, MergeError
from cute_dialect.front.values import Dynamic, Form, form_of, made_of

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

    from cute_dialect.front.dtypes import Numeric

__all__ = [
    "Atom",
    "CopyAtom",
    "CopyOp",
    "LeafForm",
    "MmaAtom",
    "MmaOp",
    "RecordForm",
    "check_target",
    "element_text",
    "make_atom",
    "make_copy_atom",
    "make_mma_atom",
    "refuse",
]


# ------------------------------------------------------------------------------------------------------------- forms


class LeafForm(Form):
    """The form of one SSA value of a type."""

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
            raise MergeError("F209", f"it is a value of {self.types[0]} or of {getattr(other, 'types', other)}")
        return self


class RecordForm(Form):
    """The form of an atom or of what is made of one: what is fixed (its type), and the forms of its parts."""

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
        return f"a {self.kind.__name__} of {self.fixed[0]}"


class Record(Dynamic):
    """The base of values that a type and a few parts make up."""

    __slots__ = ()

    def fixed(self) -> tuple[object, ...]:
        """Return what of it is static, hashable; its type first."""
        raise NotImplementedError

    def parts(self) -> tuple[object, ...]:
        """Return what of it may be dynamic: values, or SSA values as they are."""
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
    """The base of the descriptors that users write: ``cute.nvgpu.CopyUniversalOp()``.

    ``chip``: the first target that has the instruction, empty for any; ``sm_90a`` is that one only.
    """

    chip: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """How messages name it."""
        return type(self).__name__


class CopyOp(AtomOp):
    """The base of the descriptors of copies."""

    def atom_text(self, dtype: type[Numeric], bits: int | None) -> str:
        """Return the text of the atom's type; ``bits``: what one copy moves, None if the user did not say."""
        raise NotImplementedError


class MmaOp(AtomOp):
    """The base of the descriptors of products."""

    def atom_text(self) -> str:
        """Return the text of the atom's type."""
        raise NotImplementedError


def element_text(dtype: Any, what: str, *, signed: bool = False) -> str:
    """Return the text of an element type; raises F250 for what is none.  ``signed``: unsigned ones are ``ui8``."""
    from cute_dialect.front.dtypes import Numeric

    if not (isinstance(dtype, type) and issubclass(dtype, Numeric) and dtype.mlir_type):
        raise KernelTypeError("F250", f"{what}: expected a number type such as cute.Float16, got {dtype!r}")
    unsigned = signed and dtype.is_integer and not dtype.signed and dtype.width > 1
    return f"u{dtype.mlir_type}" if unsigned else dtype.mlir_type


def refuse(code: str, what: str, error: Exception, hint: str = "") -> NoReturn:
    """Raise a type error that says what an op of the dialect refused, in the user's words."""
    text = error.message if isinstance(error, LayoutError | KernelTypeError) else str(error)
    raise KernelTypeError(code, f"{what}: {text}", hint=hint) from None


def check_target(what: str, needed: str) -> None:
    """Raise F280 unless the target of the trace, if one runs, has an instruction."""
    from cute_dialect.front.machine import require_chip
    from cute_dialect.front.trace import active

    if needed and active() is not None:
        require_chip(what, needed if needed[-1].isalpha() else int(needed.removeprefix("sm_")))


def parsed_atom(text: str, what: str, hint: str = "") -> Attribute:
    """Return the type of an atom's text; raises F250 with what the table of instructions says."""
    from xdsl.utils.exceptions import ParseError

    from cute_dialect.front.trace import parse_type

    try:
        return parse_type(text)
    except ParseError as e:
        raise KernelTypeError("F250", f"{what}: {e.msg}", hint=hint) from None


# ------------------------------------------------------------------------------------------------------------ atoms


class Atom(Record):
    """The base of atoms: ``type`` says which instruction, ``op`` is the descriptor it was made of."""

    __slots__ = ("_ssa", "op", "type")

    type: Attribute
    op: AtomOp

    def __init__(self, type: Attribute, op: AtomOp, ssa: SSAValue | None = None):
        self.type = type
        self.op = op
        self._ssa = ssa

    @property
    def is_static(self) -> bool:
        """Whether its type says all of it: a TMA atom has a tensor map besides."""
        return self._ssa is None

    @property
    def ssa(self) -> SSAValue:
        """Its SSA value."""
        if self._ssa is not None:
            return self._ssa
        from cute_dialect.front.trace import current

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
        """Its row in the table of instructions."""
        row: Any = getattr(self.type, "row", None)
        if row is None:
            raise KernelTypeError("F251", f"{self.op.name} has no layout of its own: it is no instruction of the table")
        return row() if callable(row) else row

    @property
    def thr_id(self) -> Any:
        """The logical thread of the instruction -> the thread of the warp or warp group."""
        from cute_dialect.front.layouts import Layout

        return Layout(self._table_row.thr_id)


class CopyAtom(Atom):
    """One copy: an instruction, the type of the values it moves, how many at once.

    ``set(field, value)`` sets what each copy by it takes: ``tma_bar``, ``multicast_mask``, ``cache_hint``, ``pred``.
    """

    __slots__ = ("state",)
    __cute_places__ = ("state",)

    state: tuple[tuple[str, Any], ...]

    def __init__(
        self, type: Attribute, op: AtomOp, ssa: SSAValue | None = None, state: tuple[tuple[str, Any], ...] = ()
    ):
        super().__init__(type, op, ssa)
        self.state = state

    def parts(self) -> tuple[object, ...]:
        return (*super().parts(), self.state)

    @classmethod
    def remade(cls, fixed: tuple[Any, ...], parts: Sequence[Any]) -> CopyAtom:
        return cls(*fixed, *(parts if len(parts) == 2 else (None, *parts)))

    @property
    def value_type(self) -> type[Numeric]:
        """The type of the values it moves."""
        from cute_dialect.front.tensors import element_class

        return element_class(self.type.element)

    def set(self, field: str, value: Any) -> None:
        """Set a field of its run-time state, until it is set again; None: not set."""
        self.state = (*[(f, v) for f, v in self.state if f != field], *([] if value is None else [(field, value)]))

    def _side(self, side: str) -> Any:
        from cute_dialect.front.layouts import Layout
        from cute_dialect.memory_types import element_bits

        element = self.type.element
        if not hasattr(self.type, "row"):
            from cute_dialect.algebra.values import raw_layout

            n = self.type.values()
            return Layout(raw_layout((1, n), (0, 1 if n > 1 else 0)))
        return Layout(self._table_row.in_elements(side, element_bits(element)))

    @property
    def layout_src_tv(self) -> Any:
        """(thread, value) -> element of what one instruction moves, on the source side."""
        return self._side("src")

    @property
    def layout_dst_tv(self) -> Any:
        """(thread, value) -> element of what one instruction moves, on the destination side."""
        return self._side("dst")


class MmaAtom(Atom):
    """One product ``D = A * B + C`` of the threads that execute it together."""

    __slots__ = ()

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        """The extents of the product."""
        return self.type.data.shape

    @property
    def is_asynchronous(self) -> bool:
        """Whether products wait for nothing (``wgmma``): fence, commit and wait are the user's."""
        return self.type.ASYNCHRONOUS

    def tv_layout(self, operand: str) -> Any:
        """Return (thread, value) -> column-major index in the operand's tile."""
        from cute_dialect.front.layouts import Layout

        return Layout(self._table_row.layout(operand))


def make_copy_atom(op: CopyOp, dtype: Any, *, num_bits_per_copy: int | None = None) -> CopyAtom:
    """Return the atom of a copy.  ``num_bits_per_copy``: what one access moves, where the instruction leaves a choice.

    ``cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=128)``: four floats at once.
    """
    if not isinstance(op, CopyOp):
        raise KernelTypeError(
            "F250", f"cute.make_copy_atom: expected the descriptor of a copy, got {_shown(op)}",
            hint="such as cute.nvgpu.CopyUniversalOp(), cute.nvgpu.cpasync.CopyG2SOp(), "
            "cute.nvgpu.warp.LdMatrix8x8x16bOp()",
        )  # fmt: skip
    what = f"cute.make_copy_atom({op.name}, …)"
    element_text(dtype, what)
    text = op.atom_text(dtype, None if num_bits_per_copy is None else int(num_bits_per_copy))
    check_target(op.name, op.chip)
    return CopyAtom(parsed_atom(text, what), op)


def make_mma_atom(op: MmaOp) -> MmaAtom:
    """Return the atom of a product.

    ``cute.make_mma_atom(cute.nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))``
    """
    if isinstance(op, MmaAtom):
        return op
    if not isinstance(op, MmaOp):
        raise KernelTypeError(
            "F250", f"cute.make_mma_atom: expected the descriptor of a product, got {_shown(op)}",
            hint="such as cute.nvgpu.MmaUniversalOp(…), cute.nvgpu.warp.MmaF16BF16Op(…), "
            "cute.nvgpu.warpgroup.MmaF16BF16Op(…)",
        )  # fmt: skip
    check_target(op.name, op.chip)
    made = MmaAtom(parsed_atom(op.atom_text(), op.name), op)
    check_target(op.name, made._table_row.arch)
    return made


def make_atom(op: AtomOp, *args: Any, **kwargs: Any) -> Atom:
    """Return the atom of a descriptor, of a copy or of a product."""
    return make_mma_atom(op) if isinstance(op, MmaOp) else make_copy_atom(op, *args, **kwargs)


def _shown(x: object) -> str:
    return f"the class {x.__name__}: call it" if isinstance(x, type) else repr(x)
