"""Manifest of a compiled module: launch data of its kernels and host functions, as plain data.

The manifest has one entry per kernel (parameters, block, cluster) and one per launching host function (parameters and
program, see :mod:`cute_dialect.runtime.host_program`).  The compiler builds it from the output of ``cute-to-base``.

A parameter::

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

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NotRequired, TypeAlias, TypedDict, cast

from cute_dialect.runtime import abi
from cute_dialect.runtime.host_program import Program, launch_records

__all__ = [
    "FIELDS",
    "FORMAT",
    "DynamicLeaf",
    "EqualNumbers",
    "HostEntry",
    "KernelEntry",
    "Manifest",
    "ManifestError",
    "Param",
    "SignatureError",
    "Tree",
    "check_manifest",
    "dynamic_leaves",
    "integer_slots",
    "leaves",
    "required_alignment",
    "scalar_paths",
]


# ----------------------------------------------------------------------------------------------------------- parameters


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
    cute_dialect.runtime.manifest.SignatureError: t has the dynamic leaves (i32), but its lowered type \
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


# ------------------------------------------------------------------------------------------- kernels and host functions


FORMAT = 2
"""Version of the manifest format; readers reject any other version."""


class ManifestError(Exception):
    """The lowered module violates a convention of compiled kernels; the message names the place."""


class KernelEntry(TypedDict):
    """A kernel.

    ``block`` is the required block (``nvvm.reqntid``) or ``None``, ``max_threads`` the maximum threads per block, and
    ``dynamic_smem`` the bytes of dynamic shared memory in every launch.
    """

    name: str
    module: str
    params: list[Param]
    names: list[str]
    block: list[int] | None
    max_threads: int
    cluster: list[int] | None
    offset_bits: int
    dynamic_smem: int


class EqualNumbers(TypedDict):
    """Extents and strides that share the symbol ``name`` and must be equal.

    A place is the number of a parameter, ``"shape"`` or ``"stride"`` (in elements), and a mode.
    """

    name: str
    places: list[list[int | str]]


class HostEntry(TypedDict):
    """A host function that launches kernels.

    ``fallback`` names a host function with the same arguments.  It runs instead if an argument does not match its
    type, or TMA does not support it.
    """

    name: str
    params: list[Param]
    names: list[str]
    program: Program
    fallback: NotRequired[str]
    symbols: NotRequired[list[EqualNumbers]]


class Manifest(TypedDict):
    """The whole manifest.

    ``modules`` are the names of the ``gpu.module`` ops in order, and ``remarks`` the remarks of the passes with
    positions.
    """

    format: int
    chip: str
    features: str
    opt_level: int
    modules: list[str]
    kernels: list[KernelEntry]
    hosts: list[HostEntry]
    remarks: NotRequired[list[str]]


def check_manifest(manifest: Manifest) -> None:
    """Check that launches name existing kernels with matching parameters, and that variants are congruent.

    Raises :class:`ManifestError`.
    """
    kernels = {k["name"]: k for k in manifest["kernels"]}
    _check_fallbacks(manifest["hosts"])
    for host in manifest["hosts"]:
        _check_symbols(host)
        for launch in launch_records(host["program"]):
            _check_launch(host["name"], launch, kernels)


def _check_launch(host: str, launch: Mapping[str, object], kernels: Mapping[str, KernelEntry]) -> None:
    """Check that a launch names existing kernels that take as many arguments as it passes."""
    base = kernels.get(str(launch["kernel"]))
    variants = cast("list[str]", launch["variants"])
    passed = len(cast("list[int]", launch["args"]))
    for name in (str(launch["kernel"]), *variants):
        kernel = kernels.get(name)
        if kernel is None or base is None:
            raise ManifestError(f"host function @{host} launches @{name}, which is not a kernel of this module")
        if len(kernel["params"]) != passed:
            raise ManifestError(
                f"host function @{host} passes {passed} arguments, kernel @{name} takes {len(kernel['params'])}"
            )
        _check_maps(host, cast("list[str] | None", launch.get("types")), kernel)
        for i, (a, b) in enumerate(zip(base["params"], kernel["params"])):
            if a["kind"] != b["kind"] or _profile(a) != _profile(b):
                raise ManifestError(
                    f"kernels @{base['name']} and @{name} differ in the structure of argument {i}: "
                    f"{a['type']} and {b['type']}"
                )


def _check_symbols(host: HostEntry) -> None:
    """Check that symbols refer to existing modes of arrays."""
    for symbol in host.get("symbols", ()):
        for at, _, mode in symbol["places"]:
            param = host["params"][int(at)] if int(at) < len(host["params"]) else None
            shape = param.get("shape") if param is not None and param["kind"] == "memref" else None
            if not isinstance(mode, int) or mode >= (len(shape) if isinstance(shape, list) else shape is not None):
                raise ManifestError(
                    f"host function @{host['name']}: '{symbol['name']}' refers to mode {mode} of argument {at}, which "
                    "is not an array with such a mode"
                )


def _check_maps(host: str, passed: list[str] | None, kernel: KernelEntry) -> None:
    """Check that the tensor maps that the host passes have the types that the kernel takes."""
    for i, param in enumerate(kernel["params"]):
        if param["kind"] == "tensormap" and passed is not None and passed[i] != param["type"]:
            raise ManifestError(
                f"host function @{host} passes {passed[i]} as argument {i}, kernel @{kernel['name']} takes "
                f"{param['type']}"
            )


def _check_fallbacks(hosts: Sequence[HostEntry]) -> None:
    """Check that each fallback is another host function with the same arguments, without cycles."""
    named = {h["name"]: h for h in hosts}
    for host in hosts:
        seen, at = [host["name"]], host
        while "fallback" in at:
            name = at["fallback"]
            if name in seen:
                raise ManifestError(f"host function @{host['name']} falls back to itself ({', '.join(seen)})")
            if name not in named:
                raise ManifestError(
                    f"host function @{at['name']} falls back to @{name}, "
                    "which is not a host function that launches kernels"
                )
            seen.append(name)
            kinds = [[(p["kind"], p.get("element")) for p in h["params"]] for h in (host, named[name])]
            if kinds[0] != kinds[1]:
                raise ManifestError(
                    f"host functions @{host['name']} and its fallback @{name} differ in the structure of arguments"
                )
            at = named[name]


def _profile(param: Param) -> object:
    """Return the properties in which a variant must match its base kernel: nesting, element type, memory space."""

    def shape(tree: Tree) -> object:
        return [shape(t) for t in tree] if isinstance(tree, list) else 0

    return shape(param.get("shape", 0)), shape(param.get("stride", 0)), param.get("element"), param.get("space")


def required_alignment(kernels: Sequence[KernelEntry]) -> int:
    """Return the largest pointer alignment of these kernels, in bytes (a power of two)."""
    return max((p.get("alignment", 1) for k in kernels for p in k["params"]), default=1)
