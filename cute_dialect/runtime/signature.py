"""What a kernel or a host function takes, as plain data for the manifest.

A parameter is described from two texts: its cute type (``!cute.memref<f32, gmem, "(?,?):(?,1)">``), which says what
it promises, and the lowered type (``!llvm.struct<…>``), which says where each dynamic leaf lies.  The result is plain
data:

    {"kind": "memref", "type": "!cute.memref<…>", "lowered": "!llvm.struct<…>", "size": 24, "align": 8,
     "element": "f32", "space": "gmem", "alignment": 4, "pointer": 0,
     "shape": [{"width": 32, "div": 1, "offset": 8}, {"width": 32, "div": 1, "offset": 12}],
     "stride": [{"width": 32, "div": 1, "offset": 16}, 1]}

A static leaf is the integer itself; a dynamic one says its bits, its divisor, its byte offset in the parameter.  Kinds:
``memref``, ``pointer``, ``scalar``, ``tuple`` (int tuples, shapes, coordinates, strides), ``layout``, ``tensormap``
(a 128-byte TMA descriptor passed by value) and ``opaque`` (a lowered value that only a host function can make).

Lowered forms: cute-to-base stores the dynamic leaves only, flat; one leaf alone is not wrapped in a struct.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NotRequired, TypeAlias, TypedDict, cast

from cute_dialect.runtime import abi

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.algebra.leaf import Dyn

__all__ = ["DynamicLeaf", "Param", "SignatureError", "Tree", "describe", "is_empty", "leaves", "scalar_paths"]


class SignatureError(ValueError):
    """A parameter type that cannot be described, or that disagrees with its lowered type."""


class DynamicLeaf(TypedDict):
    """A leaf known at run time: ``width`` bits, multiple of ``div``, at byte ``offset`` of the parameter."""

    width: int
    div: int
    offset: int


Tree: TypeAlias = "int | DynamicLeaf | list[Tree] | None"
"""Leaves of a shape or stride; ``None`` is the ``_`` of a coordinate."""

Kind: TypeAlias = Literal["memref", "pointer", "scalar", "tuple", "layout", "tensormap", "opaque"]


class Param(TypedDict):
    """One parameter; the keys that a kind does not use are absent."""

    kind: Kind
    type: str
    lowered: str
    size: int
    align: int
    element: NotRequired[str]
    space: NotRequired[str]
    alignment: NotRequired[int]
    pointer: NotRequired[int]
    shape: NotRequired[Tree]
    stride: NotRequired[Tree]
    div: NotRequired[int]


def describe(type_text: str, lowered_text: str, *, byval: bool = False) -> Param:
    """Describe one parameter.  Raises :class:`SignatureError`.

    >>> lowered = "!llvm.struct<(ptr<1>, struct<(i32, i32)>)>"
    >>> p = describe('!cute.memref<f16, gmem, align<16>, "(?,64):(?{div=8},1)">', lowered)
    >>> p["size"], p["alignment"], p["shape"], p["stride"]
    (16, 16, [{'width': 32, 'div': 1, 'offset': 8}, 64], [{'width': 32, 'div': 8, 'offset': 12}, 1])
    """
    if byval:
        alignment = 32 if "interleave = 32" in type_text else 16
        return {
            "kind": "tensormap",
            "type": type_text,
            "lowered": lowered_text,
            "size": 128,
            "align": 64,
            "alignment": alignment,
        }
    try:
        lowered = abi.parse_type(lowered_text)
    except abi.AbiError as e:
        raise SignatureError(str(e)) from e
    base: Param = {
        "kind": "scalar",
        "type": type_text,
        "lowered": lowered_text,
        "size": lowered.size,
        "align": lowered.align,
    }
    if not type_text.startswith("!cute."):
        if isinstance(lowered, abi.Struct):
            base["kind"] = "opaque"
        elif lowered.name == "ptr":
            base.update({"kind": "pointer", "element": "i8", "space": "gmem", "alignment": 1, "pointer": 0})
        else:
            base.update({"element": lowered.name, "div": 1})
        return base
    name, body = _split_type(type_text)
    handler = _HANDLERS.get(name)
    if handler is None:
        base["kind"] = "opaque"
        return base
    return handler(base, body, lowered)


def is_empty(lowered_text: str) -> bool:
    """Whether a lowered type has no bytes; kernels drop such parameters."""
    return abi.parse_type(lowered_text).size == 0


def leaves(tree: Tree) -> Iterator[int | DynamicLeaf | None]:
    """The leaves, in order."""
    if isinstance(tree, list):
        for t in tree:
            yield from leaves(t)
    else:
        yield tree


def scalar_paths(param: Param) -> dict[int, tuple[int, ...]]:
    """Byte offset → path of indices, for each scalar of the lowered type."""
    return {offset: slot.path for slot, offset in abi.parse_type(param["lowered"]).scalars()}


# --------------------------------------------------------------------------------------------------------- handlers


def _memref(base: Param, body: str, lowered: abi.Type) -> Param:
    parts = _split_arguments(body)
    if len(parts) < 3 or not parts[-1].startswith('"'):
        raise SignatureError(f'expected !cute.memref<element, space, "layout">, got {base["type"]}')
    element, space = parts[0], parts[1]
    layout = _unquote(parts[-1])
    if " o " in layout or any(p.startswith("S<") for p in parts[2:-1]):
        base["kind"] = "opaque"
        return base
    shape, stride = _layout_trees(layout)
    _place(base, [shape, stride], lowered, skip_pointer=True)
    base.update(
        {
            "kind": "memref",
            "element": element,
            "space": space,
            "alignment": _alignment(parts[2:-1], element),
            "pointer": 0,
            "shape": shape,
            "stride": stride,
        }
    )
    return base


def _ptr(base: Param, body: str, lowered: abi.Type) -> Param:
    parts = _split_arguments(body)
    if len(parts) < 2 or not isinstance(lowered, abi.Scalar) or lowered.name != "ptr":
        raise SignatureError(f"{base['type']} does not lower to {base['lowered']}")
    alignment = _alignment(parts[2:], parts[0])
    base.update({"kind": "pointer", "element": parts[0], "space": parts[1], "alignment": alignment, "pointer": 0})
    return base


def _integer(base: Param, body: str, lowered: abi.Type) -> Param:
    found = re.fullmatch(r"divby\s+(\d+)", body.strip())
    if found is None or isinstance(lowered, abi.Struct):
        raise SignatureError(f"expected !cute.i32<divby N> or !cute.i64<divby N>, got {base['type']}")
    base.update({"element": lowered.name, "div": int(found.group(1))})
    return base


def _int_tuple(base: Param, body: str, lowered: abi.Type) -> Param:
    from cute_dialect.algebra import text

    tree = _tree(text.parse_coord(_unquote(body)))
    _place(base, [tree], lowered, skip_pointer=False)
    base.update({"kind": "tuple", "shape": tree})
    return base


def _layout(base: Param, body: str, lowered: abi.Type) -> Param:
    if " o " in body:
        base["kind"] = "opaque"
        return base
    shape, stride = _layout_trees(_unquote(body))
    _place(base, [shape, stride], lowered, skip_pointer=False)
    base.update({"kind": "layout", "shape": shape, "stride": stride})
    return base


_HANDLERS = {
    "memref": _memref,
    "ptr": _ptr,
    "i32": _integer,
    "i64": _integer,
    "int_tuple": _int_tuple,
    "shape": _int_tuple,
    "coord": _int_tuple,
    "layout": _layout,
}


# ----------------------------------------------------------------------------------------------------------- helpers


def _split_type(text: str) -> tuple[str, str]:
    found = re.fullmatch(r"!cute\.(\w+)<(.*)>", text.strip(), re.S)
    if found is None:
        raise SignatureError(f"expected a cute type !cute.name<…>, got {text!r}")
    return found.group(1), found.group(2)


def _split_arguments(body: str) -> list[str]:
    """Split at the commas that are in no quotes, parentheses or angle brackets."""
    parts: list[str] = []
    depth, quoted, start = 0, False, 0
    for i, c in enumerate(body):
        if c == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif c in "<([":
            depth += 1
        elif c in ">)]":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(body[start:i].strip())
            start = i + 1
    parts.append(body[start:].strip())
    return parts


def _unquote(text: str) -> str:
    return text.strip().removeprefix('"').removesuffix('"')


def element_bits(element: str) -> int:
    """Bits of an element type, by its name: ``f32`` 32, ``bf16`` 16, ``f8E4M3FN`` 8, ``i1`` 8 (stored as a byte)."""
    if element == "i1":
        return 8
    if element.startswith("f8"):
        return 8
    found = re.fullmatch(r"(?:u?i|si|f|bf|tf)(\d+)", element)
    if found is None:
        raise SignatureError(f"unknown element type {element!r}")
    return int(found.group(1))


def _alignment(parts: Sequence[str], element: str) -> int:
    for part in parts:
        found = re.fullmatch(r"align<(\d+)>", part)
        if found:
            return int(found.group(1))
    return max(1, element_bits(element) // 8)


def _layout_trees(text: str) -> tuple[Tree, Tree]:
    from cute_dialect.algebra import text as algebra_text

    layout = algebra_text.parse_layout(text)
    return _tree(layout.shape), _tree(layout.stride)


def _tree(payload: object) -> Tree:
    """A shape, stride or coordinate of the algebra as plain data; offsets are filled in by :func:`_place`."""
    if isinstance(payload, tuple):
        return [_tree(p) for p in cast("tuple[object, ...]", payload)]
    if isinstance(payload, int):
        return payload
    if repr(payload) == "_":
        return None
    if hasattr(payload, "width") and hasattr(payload, "div"):
        leaf: Dyn = payload  # type: ignore[assignment]
        return {"width": leaf.width, "div": leaf.div or 1, "offset": -1}
    raise SignatureError(f"the stride {payload} cannot be passed to a kernel")


def _place(base: Param, trees: list[Tree], lowered: abi.Type, *, skip_pointer: bool) -> None:
    """Give each dynamic leaf its offset: the integers of the lowered type, in order, are the dynamic leaves."""
    slots = list(lowered.scalars())
    if skip_pointer:
        if not slots or slots[0][0].name != "ptr":
            raise SignatureError(f"{base['type']} does not lower to {base['lowered']}: no pointer at its start")
        slots = slots[1:]
    dynamic = [leaf for tree in trees for leaf in leaves(tree) if isinstance(leaf, dict)]
    widths = [f"i{leaf['width']}" for leaf in dynamic]
    names = [slot.name for slot, _ in slots]
    if widths != names:
        raise SignatureError(
            f"{base['type']} has the dynamic leaves ({', '.join(widths) or 'none'}), "
            f"its lowered type {base['lowered']} holds ({', '.join(names) or 'none'})"
        )
    for leaf, (_, offset) in zip(dynamic, slots):
        leaf["offset"] = offset
