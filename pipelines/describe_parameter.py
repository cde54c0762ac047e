"""Parameter descriptions for the manifest, from a cute type and its lowered type.

The cute type (``!cute.memref<f32, gmem, "(?,?):(?,1)">``) defines the constraints of a parameter.  The lowered type
(``!llvm.struct<…>``) defines the offset of each dynamic leaf.  ``cute-to-base`` stores only the dynamic leaves, in
one flat struct; a single leaf has no struct.  :mod:`cute_dialect.runtime.manifest` describes the record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from cute_dialect.algebra.leaf import Dyn
from cute_dialect.algebra.values import UNDERSCORE, Layout
from cute_dialect.dialect.memory_types import ConstrainedIntType, MemRefType, PtrType
from cute_dialect.dialect.types import CoordType, IntTupleType, LayoutType, ShapeType
from cute_dialect.runtime import abi
from cute_dialect.runtime.manifest import Param, SignatureError, Tree, dynamic_leaves, integer_slots

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.context import Context
    from xdsl.ir import Attribute

    from cute_dialect.dialect.memory_types import Ptr

__all__ = ["describe", "parse_type"]


def parse_type(text: str, context: Context) -> Attribute | None:
    """Parse one entry of ``cute.args``; ``None`` for a type of another dialect, whose lowered type is sufficient.

    Raises :class:`SignatureError`.
    """
    if not text.startswith(("!cute.", "!cute_nvgpu.")):
        return None
    from xdsl.parser import Parser
    from xdsl.utils.exceptions import ParseError

    parser = Parser(context, text)
    try:
        found = parser.parse_type()
    except ParseError as e:
        raise SignatureError(f"{e.msg} (in {text})") from None
    if parser.pos != len(text):
        raise SignatureError(f"expected one type, got {text}")
    return found


def describe(text: str, type_: Attribute | None, lowered_text: str, *, byval: bool = False) -> Param:
    """Describe a parameter of type ``type_``, whose source text is ``text``.  Raises :class:`SignatureError`.

    >>> from cute_dialect.ir.context import make_context
    >>> text = '!cute.memref<f16, gmem, align<16>, "(?,64):(?{div=8},1)">'
    >>> p = describe(text, parse_type(text, make_context()), "!llvm.struct<(ptr<1>, struct<(i32, i32)>)>")
    >>> p["size"], p["alignment"], p["shape"], p["stride"]
    (16, 16, [{'width': 32, 'div': 1, 'offset': 8}, 64], [{'width': 32, 'div': 8, 'offset': 12}, 1])
    """
    if byval:
        interleave = cast(int, getattr(getattr(type_, "data", None), "interleave", 0))
        return {
            "kind": "tensormap",
            "type": text,
            "lowered": lowered_text,
            "size": 128,
            "align": 64,
            "alignment": max(16, interleave),
        }
    try:
        lowered = abi.parse_type(lowered_text)
    except abi.AbiError as e:
        raise SignatureError(str(e)) from e
    param: Param = {
        "kind": "opaque",
        "type": text,
        "lowered": lowered_text,
        "size": lowered.size,
        "align": lowered.align,
    }
    if type_ is None or not type_.name.startswith("cute."):
        if isinstance(lowered, abi.Struct):
            return param
        if lowered.name == "ptr":
            param.update({"kind": "pointer", "element": "i8", "space": "gmem", "alignment": 1, "pointer": 0})
        else:
            param.update({"kind": "scalar", "element": lowered.name, "div": 1})
        return param
    return _describe_cute(param, type_, lowered)


def _describe_cute(param: Param, type_: Attribute, lowered: abi.Type) -> Param:
    """Complete the description of a parameter of cute type; types without a description stay opaque."""
    if isinstance(type_, MemRefType):
        layout = type_.data.layout
        if isinstance(layout, Layout) and type_.data.ptr.swizzle is None:
            _pointer(param, type_.data.ptr)
            param.update({"kind": "memref", "shape": _tree(layout.shape), "stride": _tree(layout.stride)})
            _place(param)
    elif isinstance(type_, PtrType):
        if isinstance(lowered, abi.Struct) or lowered.name != "ptr":
            raise SignatureError(f"{param['type']} does not lower to {param['lowered']}")
        _pointer(param, type_.data)
    elif isinstance(type_, ConstrainedIntType):
        if isinstance(lowered, abi.Struct):
            raise SignatureError(f"{param['type']} does not lower to {param['lowered']}")
        param.update({"kind": "scalar", "element": lowered.name, "div": type_.divisor})
    elif isinstance(type_, (IntTupleType, ShapeType, CoordType)):
        param.update({"kind": "tuple", "shape": _tree(type_.data)})
        _place(param)
    elif isinstance(type_, LayoutType) and isinstance(type_.data, Layout):
        param.update({"kind": "layout", "shape": _tree(type_.data.shape), "stride": _tree(type_.data.stride)})
        _place(param)
    return param


def _pointer(param: Param, ptr: Ptr) -> None:
    space = ptr.space.name
    param.update(
        {"kind": "pointer", "element": str(ptr.element), "space": space, "alignment": ptr.alignment, "pointer": 0}
    )


def _tree(payload: object) -> Tree:
    """Convert a shape, stride or coordinate to plain data; :func:`_place` fills in the offsets."""
    if isinstance(payload, tuple):
        return [_tree(p) for p in cast("tuple[object, ...]", payload)]
    if isinstance(payload, int):
        return payload
    if payload is UNDERSCORE:
        return None
    if isinstance(payload, Dyn):
        return {"width": payload.width, "div": payload.div or 1, "offset": -1}
    raise SignatureError(f"the stride {payload} cannot be passed to a kernel")


def _place(param: Param) -> None:
    """Set the offset of each dynamic leaf; the integers of the lowered type are the dynamic leaves in order."""
    for leaf, (_, offset) in zip(dynamic_leaves(param), integer_slots(param)):
        leaf["offset"] = offset
