"""Parameters of kernels and host functions, as plain data in the manifest.

    {"kind": "memref", "type": "!cute.memref<…>", "lowered": "!llvm.struct<…>", "size": 24, "align": 8,
     "element": "f32", "space": "gmem", "alignment": 4, "pointer": 0,
     "shape": [{"width": 32, "div": 1, "offset": 8}, {"width": 32, "div": 1, "offset": 12}],
     "stride": [{"width": 32, "div": 1, "offset": 16}, 1]}

A static leaf is an integer.  A dynamic leaf has a width in bits, a divisor, and a byte offset in the parameter.

Kinds: ``memref``, ``pointer``, ``scalar``, ``tuple`` (int tuples, shapes, coordinates, strides), ``layout``,
``tensormap`` (a 128-byte TMA descriptor passed by value) and ``opaque`` (a lowered value that only a host function
can build).  ``type`` is for messages; the other fields hold its constraints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NotRequired, TypeAlias, TypedDict

from cute_dialect.runtime import abi

__all__ = [
    "FIELDS",
    "DynamicLeaf",
    "Param",
    "SignatureError",
    "Tree",
    "dynamic_leaves",
    "integer_slots",
    "leaves",
    "scalar_paths",
]


class SignatureError(ValueError):
    """A parameter type that cannot be described, or that contradicts its lowered type."""


class DynamicLeaf(TypedDict):
    """A leaf known at run time: ``width`` bits, a multiple of ``div``, at byte ``offset`` of the parameter."""

    width: int
    div: int
    offset: int


Tree: TypeAlias = "int | DynamicLeaf | list[Tree] | None"
"""Leaves of a shape or stride; ``None`` is the ``_`` of a coordinate."""

Kind: TypeAlias = Literal["memref", "pointer", "scalar", "tuple", "layout", "tensormap", "opaque"]

FIELDS: Mapping[Kind, tuple[str, ...]] = {
    "memref": ("element", "space", "alignment", "pointer", "shape", "stride"),
    "pointer": ("element", "space", "alignment", "pointer"),
    "scalar": ("element", "div"),
    "tuple": ("shape",),
    "layout": ("shape", "stride"),
    "tensormap": ("alignment",),
    "opaque": (),
}
"""Kind -> the fields that a parameter has in addition to the common ones."""


class Param(TypedDict):
    """One parameter.  Keys that its kind does not use are absent."""

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


def leaves(tree: Tree) -> Iterator[int | DynamicLeaf | None]:
    if isinstance(tree, list):
        for t in tree:
            yield from leaves(t)
    else:
        yield tree


def dynamic_leaves(param: Param) -> list[DynamicLeaf]:
    """Return the dynamic leaves of shape and stride, in order."""
    trees = (param.get("shape"), param.get("stride"))
    return [leaf for tree in trees for leaf in leaves(tree) if isinstance(leaf, dict)]


def scalar_paths(param: Param) -> dict[int, tuple[int, ...]]:
    """Map the byte offset of each scalar of the lowered type to its index path."""
    return {offset: slot.path for slot, offset in abi.parse_type(param["lowered"]).scalars()}


def integer_slots(param: Param) -> list[tuple[str, int]]:
    """Return type and byte offset of the integers that hold the dynamic leaves, in order.

    Raises :class:`SignatureError` if the lowered type holds anything else after a tensor's pointer.

    >>> leaf: DynamicLeaf = {"width": 32, "div": 1, "offset": 0}
    >>> lowered = "!llvm.struct<(i32, i32)>"
    >>> param: Param = {"kind": "tuple", "type": "t", "lowered": lowered, "size": 8, "align": 4, "shape": [leaf, 8]}
    >>> integer_slots({**param, "shape": [leaf, 8, leaf]})
    [('i32', 0), ('i32', 4)]
    >>> integer_slots(param)
    Traceback (most recent call last):
    ...
    cute_dialect.runtime.signature.SignatureError: t has the dynamic leaves (i32), but its lowered type \
!llvm.struct<(i32, i32)> holds (i32, i32)
    """
    slots = [(slot.name, offset) for slot, offset in abi.parse_type(param["lowered"]).scalars()]
    if param["kind"] == "memref":
        if not slots or slots[0][0] != "ptr":
            raise SignatureError(f"{param['type']} does not lower to {param['lowered']}: no pointer at its start")
        del slots[0]
    widths = [f"i{leaf['width']}" for leaf in dynamic_leaves(param)]
    names = [name for name, _ in slots]
    if widths != names:
        raise SignatureError(
            f"{param['type']} has the dynamic leaves ({', '.join(widths) or 'none'}), "
            f"but its lowered type {param['lowered']} holds ({', '.join(names) or 'none'})"
        )
    return slots
