"""Memory types: constrained integers, pointers, tensors.

* ``!cute.i32<divby N>``, ``!cute.i64<divby N>``: an integer known to be a multiple of ``N``.
* ``!cute.ptr<f32, gmem, align<16>>``: a typed pointer; alignment in bytes, by default the natural one of the element.
* ``!cute.memref<f32, gmem, "(?,?):(?,1)">``: a pointer with a layout; the element at coordinate ``c`` is ``L(c)``
  elements after the pointer.
* ``!cute.coord_tensor<"(0,0)", "(?,?):(1@0,1@1)">``: an arithmetic tuple with a basis-stride layout; element ``c`` is
  ``iter + L(c)``.
"""

from __future__ import annotations

from math import gcd
from typing import ClassVar, NamedTuple, cast

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, IntegerType, i64
from xdsl.ir import Attribute, Data, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra import text, verify
from cute_dialect.algebra.arithmetic import tuple_add
from cute_dialect.algebra.evaluation import evaluate
from cute_dialect.algebra.leaf import AlgebraError, Leaf, divisibility
from cute_dialect.algebra.trees import implies, is_static, leaves
from cute_dialect.algebra.values import AnyLayout, Basis, ComposedLayout, IntTuple, Layout, Swizzle
from cute_dialect.spaces import AddressSpace

_NARROW_FLOATS = {
    **{"tf32": 32, "f8E4M3FN": 8, "f8E5M2": 8, "f8E8M0FNU": 8},
    **{"f6E2M3FN": 6, "f6E3M2FN": 6, "f4E2M1FN": 4},
}


def integer_width(t: Attribute) -> int | None:
    """Return the width of an integer type in bits; ``None`` for any other attribute.

    >>> from xdsl.dialects.builtin import f32, i64
    >>> integer_width(i64), integer_width(f32)
    (64, None)
    """
    return cast("IntegerType[int]", t).width.data if isinstance(t, IntegerType) else None


def element_bits(element: Attribute) -> int:
    """Return the bits of an element in memory: 8 for ``i1``, 32 for ``tf32``.  Raises AlgebraError."""
    width = integer_width(element)
    if width is not None:
        return 8 if width == 1 else width
    if isinstance(element, Float32Type):
        return 32
    if isinstance(element, Float16Type | BFloat16Type):
        return 16
    if isinstance(element, Float64Type):
        return 64
    bits = _NARROW_FLOATS.get(getattr(element, "name", ""))
    if bits is None:
        raise AlgebraError(
            "expected a scalar element type (f64 f32 tf32 f16 bf16 f8E4M3FN f8E5M2 f8E8M0FNU f6E2M3FN f6E3M2FN "
            f"f4E2M1FN i64 i32 i16 i8 i4 i1 or unsigned), got {element}"
        )
    return bits


def natural_alignment(element: Attribute) -> int:
    """Return the size of an element in bytes, at least 1."""
    return max(1, element_bits(element) // 8)


def derived_alignment(align: int, offset: Leaf, element: Attribute) -> int:
    """Return the alignment in bytes of ``p + offset`` (elements) for a pointer aligned to ``align`` bytes.

    This is ``gcd(align, d(offset) * size)`` rounded down to a power of two, at least the natural alignment.

    >>> from cute_dialect.algebra.leaf import Dyn
    >>> from xdsl.dialects.builtin import f32
    >>> derived_alignment(16, Dyn(div=4), f32), derived_alignment(16, Dyn(div=2), f32), derived_alignment(16, 0, f32)
    (16, 8, 16)
    """
    n = gcd(align * 8, divisibility(offset) * element_bits(element)) // 8
    return max(n & -n, natural_alignment(element))


# ------------------------------------------------------------------------------------------------ constrained integers


class _ConstrainedInt(Data[int], TypeAttribute):
    width: ClassVar[int]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> int:
        with parser.in_angle_brackets():
            parser.parse_keyword("divby")
            at = parser.pos
            n = parser.parse_integer(allow_boolean=False)
            if n < 1:
                parser.raise_error(f"expected a divisor >= 1, got {n}", at, parser.pos)
        return n

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<divby {self.data}>")

    @property
    def divisor(self) -> int:
        """The known divisor."""
        return self.data


class ConstrainedIntType(_ConstrainedInt):
    """Base of ``!cute.i32<divby N>`` and ``!cute.i64<divby N>``, with ``width`` in bits and ``divisor``."""


@irdl_attr_definition
class ConstrainedI32Type(ConstrainedIntType):
    """``!cute.i32<divby N>``"""

    name = "cute.i32"
    width = 32


@irdl_attr_definition
class ConstrainedI64Type(ConstrainedIntType):
    """``!cute.i64<divby N>``"""

    name = "cute.i64"
    width = 64


def constrained_int(width: int, divisor: int) -> Attribute:
    """Build the integer type of this width with this divisor."""
    if divisor <= 1:
        return IntegerType(width)
    return ConstrainedI32Type(divisor) if width == 32 else ConstrainedI64Type(divisor)


# ------------------------------------------------------------------------------------------------------------ pointers


class Ptr(NamedTuple):
    """Parameters of a pointer type; ``align`` in bytes, 0 for the natural alignment."""

    element: Attribute
    space: AddressSpace
    align: int = 0
    swizzle: Swizzle | None = None

    @property
    def alignment(self) -> int:
        """Guaranteed alignment in bytes."""
        return self.align or natural_alignment(self.element)


def ptr(element: Attribute, space: AddressSpace | str, align: int = 0, swizzle: Swizzle | None = None) -> Ptr:
    """Build pointer parameters in canonical form, without natural alignment and identity swizzle."""
    if not isinstance(space, AddressSpace):
        space = AddressSpace(space)
    if align == natural_alignment(element):
        align = 0
    if swizzle is not None and swizzle.bits == 0:
        swizzle = None
    return Ptr(element, space, align, swizzle)


def _parse_ptr(parser: AttrParser) -> Ptr:
    """Parse ``elt, space``; options follow."""
    at = parser.pos
    element = parser.parse_type()
    try:
        natural = natural_alignment(element)
    except AlgebraError as e:
        parser.raise_error(str(e), at, parser.pos)
    parser.parse_punctuation(",")
    at = parser.pos
    name = parser.parse_identifier(" memory space")
    try:
        space = AddressSpace(name)
    except ValueError:
        parser.raise_error(f"expected a memory space ({', '.join(AddressSpace)}), got '{name}'", at, parser.pos)
    return Ptr(element, space, natural, None)


def _parse_ptr_options(parser: AttrParser, base: Ptr, *, more: bool) -> Ptr:
    align, swizzle = base.align, None
    while parser.parse_optional_punctuation(",") is not None:
        at = parser.pos
        word = parser.parse_optional_identifier()
        if word is None:
            if more:
                return ptr(base.element, base.space, align, swizzle)
            parser.raise_error("expected align<…> or S<…> after the comma", at)
        if word == "align":
            with parser.in_angle_brackets():
                align = parser.parse_integer(allow_boolean=False, allow_negative=False)
            if align < 1 or align & (align - 1):
                parser.raise_error(
                    f"expected an alignment in bytes that is a power of two, got {align}", at, parser.pos
                )
            if align < base.align:
                parser.raise_error(
                    f"expected an alignment of at least the element's {base.align} bytes, got {align}", at, parser.pos
                )
        elif word == "S":
            with parser.in_angle_brackets():
                numbers = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_integer)
            if not base.space.swizzled:
                spaces = " or ".join(space for space in AddressSpace if space.swizzled)
                parser.raise_error(f"a swizzle needs an {spaces} pointer, got {base.space}", at, parser.pos)
            try:
                swizzle = text.parse_swizzle(f"S<{','.join(map(str, numbers))}>")
            except AlgebraError as e:
                parser.raise_error(str(e), at, parser.pos)
            assert isinstance(swizzle, Swizzle)
        else:
            parser.raise_error(f"expected align<…> or S<…>, got '{word}'", at, parser.pos)
    if more:
        parser.raise_error('expected a layout string, e.g. "(4,8):(8,1)", after the memory space')
    return ptr(base.element, base.space, align, swizzle)


def _print_ptr(printer: Printer, p: Ptr) -> None:
    printer.print_attribute(p.element)
    printer.print_string(f", {p.space}")
    if p.align:
        printer.print_string(f", align<{p.align}>")
    if p.swizzle is not None:
        printer.print_string(f", {text.to_text(p.swizzle)}")


@irdl_attr_definition
class PtrType(Data[Ptr], TypeAttribute):
    """``!cute.ptr<elt, space [, align<bytes>] [, S<b,m,s>]>``; the swizzle acts on the byte address."""

    name = "cute.ptr"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Ptr:
        with parser.in_angle_brackets():
            return _parse_ptr_options(parser, _parse_ptr(parser), more=False)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<")
        _print_ptr(printer, self.data)
        printer.print_string(">")


def is_barrier(t: Attribute) -> bool:
    """Return True if the type is a pointer to an mbarrier."""
    return isinstance(t, PtrType) and t.data.space == AddressSpace.smem and t.data.element == i64


# ------------------------------------------------------------------------------------------------------------- tensors


class TensorType(TypeAttribute):
    """Base of memrefs and coordinate tensors: an iterator and a layout."""

    @property
    def layout(self) -> AnyLayout:
        """The layout, in elements."""
        raise NotImplementedError

    def with_layout(self, layout: AnyLayout) -> TensorType:
        """Build the type with the same iterator and another layout."""
        raise NotImplementedError


class MemRef(NamedTuple):
    """A pointer and its layout."""

    ptr: Ptr
    layout: AnyLayout


def parse_layout_string(parser: AttrParser) -> AnyLayout:
    """Parse a quoted layout, plain or composed; errors have their position in the text."""
    at = parser.pos
    string = parser.parse_str_literal(" layout")
    try:
        layout = text.parse_composed_layout(string) if "o" in string else text.parse_layout(string)
        if isinstance(layout, ComposedLayout):
            verify.verify_composed_layout(layout)
        else:
            verify.verify_layout(layout)
    except AlgebraError as e:
        where = at + 1 + e.position if isinstance(e, text.TextError) else at
        parser.raise_error(f"invalid layout '{string}': {e}", min(where, parser.pos - 1), parser.pos)
    assert isinstance(layout, Layout | ComposedLayout)
    return layout


@irdl_attr_definition
class MemRefType(Data[MemRef], TensorType):
    """``!cute.memref<elt, space [, align<bytes>] [, S<b,m,s>], "layout">``"""

    name = "cute.memref"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> MemRef:
        with parser.in_angle_brackets():
            p = _parse_ptr_options(parser, _parse_ptr(parser), more=True)
            at = parser.pos
            layout = parse_layout_string(parser)
            try:
                _verify_memref(p, layout)
            except AlgebraError as e:
                parser.raise_error(str(e), at, parser.pos)
        return MemRef(p, layout)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<")
        _print_ptr(printer, self.data.ptr)
        printer.print_string(f', "{text.to_text(self.data.layout)}">')

    def verify(self) -> None:
        try:
            _verify_memref(self.data.ptr, self.data.layout)
        except AlgebraError as e:
            raise VerifyException(str(e)) from None

    @property
    def layout(self) -> AnyLayout:
        return self.data.layout

    @property
    def element(self) -> Attribute:
        """The element type."""
        return self.data.ptr.element

    @property
    def space(self) -> AddressSpace:
        """The memory space."""
        return self.data.ptr.space

    @property
    def alignment(self) -> int:
        """Guaranteed alignment of the iterator in bytes."""
        return self.data.ptr.alignment

    def with_layout(self, layout: AnyLayout) -> MemRefType:
        return MemRefType(MemRef(self.data.ptr, layout))


def _verify_memref(p: Ptr, layout: AnyLayout) -> None:
    parts = (layout.outer, layout.inner) if isinstance(layout, ComposedLayout) else (layout,)
    for part in parts:
        if isinstance(part, Layout) and any(isinstance(leaf, Basis) for leaf in leaves(part.stride)):
            got = text.to_text(part)
            raise AlgebraError(
                f"expected integer strides in a memref (basis strides make a cute.coord_tensor), got {got}"
            )
    if isinstance(layout, ComposedLayout):
        if isinstance(layout.offset, tuple):
            got = text.to_text(layout.offset)
            raise AlgebraError(f"expected an integer offset in the layout of a memref, got {got}")
        if p.swizzle is not None:
            raise AlgebraError(
                f"expected a swizzle on the pointer or in the layout, got both: {text.to_text(p.swizzle)} and "
                f"{text.to_text(layout)}"
            )


class CoordTensor(NamedTuple):
    """An arithmetic tuple and a layout with basis strides."""

    iter: IntTuple
    layout: AnyLayout


@irdl_attr_definition
class CoordTensorType(Data[CoordTensor], TensorType):
    """``!cute.coord_tensor<"iter", "layout">``: element ``c`` is ``iter + layout(c)``."""

    name = "cute.coord_tensor"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> CoordTensor:
        with parser.in_angle_brackets():
            at = parser.pos
            string = parser.parse_str_literal(" iterator")
            try:
                it = text.parse_int_tuple(string)
            except text.TextError as e:
                parser.raise_error(f"invalid int_tuple '{string}': {e}", at + 1 + e.position)
            parser.parse_punctuation(",")
            at = parser.pos
            layout = parse_layout_string(parser)
            try:
                _verify_coord_tensor(it, layout)
            except AlgebraError as e:
                parser.raise_error(str(e), at, parser.pos)
        return CoordTensor(it, layout)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f'<"{text.to_text(self.data.iter)}", "{text.to_text(self.data.layout)}">')

    def verify(self) -> None:
        try:
            _verify_coord_tensor(self.data.iter, self.data.layout)
        except AlgebraError as e:
            raise VerifyException(str(e)) from None

    @property
    def layout(self) -> AnyLayout:
        return self.data.layout

    def with_layout(self, layout: AnyLayout) -> CoordTensorType:
        return CoordTensorType(CoordTensor(self.data.iter, layout))

    def is_static(self) -> bool:
        """Return True if neither iterator nor layout has a dynamic leaf."""
        return is_static(self.data.iter) and is_static(self.data.layout)


def _verify_coord_tensor(it: IntTuple, layout: AnyLayout) -> None:
    origin = evaluate(0, layout.outer if isinstance(layout, ComposedLayout) else layout)
    try:
        tuple_add(it, origin)
    except AlgebraError as e:
        raise AlgebraError(
            f"the iterator {text.to_text(it)} does not fit the layout {text.to_text(layout)}: {e}"
        ) from None


def is_tensor(t: Attribute) -> bool:
    """Return True if the type is a memref or a coordinate tensor."""
    return isinstance(t, TensorType)


def tensor_weaker_or_equal(written: Attribute, inferred: Attribute) -> bool:
    """Return True if a declared memory type claims at most the ``div`` and alignment of the inferred one."""
    if isinstance(written, PtrType) and isinstance(inferred, PtrType):
        return _ptr_weaker(written.data, inferred.data)
    if isinstance(written, MemRefType) and isinstance(inferred, MemRefType):
        return _ptr_weaker(written.data.ptr, inferred.data.ptr) and implies(inferred.data.layout, written.data.layout)
    if isinstance(written, CoordTensorType) and isinstance(inferred, CoordTensorType):
        return implies(inferred.data.iter, written.data.iter) and implies(inferred.data.layout, written.data.layout)
    return written == inferred


def _ptr_weaker(written: Ptr, inferred: Ptr) -> bool:
    return (
        written.element == inferred.element
        and written.space == inferred.space
        and written.swizzle == inferred.swizzle
        and inferred.alignment % written.alignment == 0
    )


ATTRS = [ConstrainedI32Type, ConstrainedI64Type, PtrType, MemRefType, CoordTensorType]
