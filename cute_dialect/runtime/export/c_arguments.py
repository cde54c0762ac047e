"""Parameters of an exported C function and their lowered values: :mod:`cute_dialect.runtime.launch_plan` in C.

A tensor is passed as ``cute_tensor_<rank>`` and an address as ``CUdeviceptr``.  A number has the C type that holds
it; f16 and bf16 are passed as ``float``, and 8-bit floats as their bits.  Tuples and layouts are passed as one
``int64_t`` per dynamic leaf.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple, cast

from cute_dialect.runtime import abi
from cute_dialect.runtime.export.c_text import ExportError, Function, Scalar, Value, name, number, text
from cute_dialect.runtime.launch_plan import MAX_EXTENT_I32
from cute_dialect.runtime.manifest import Param, Tree, dynamic_leaves, leaves, scalar_paths

__all__ = ["Parameter", "bind", "declared"]


class Parameter(NamedTuple):
    """A parameter of the exported function: type and name of its C ``pieces``, and its ``label`` in messages."""

    param: Param
    label: str
    pieces: tuple[tuple[str, str], ...]
    rank: int = 0
    """number of modes, if it is a tensor"""

    @property
    def text(self) -> str:
        """C declarations of the pieces."""
        return ", ".join([f"{type} {name}" for type, name in self.pieces])


def declared(params: Sequence[Param], names: Sequence[str]) -> list[Parameter]:
    """Return the parameters of the exported function.  Raises :class:`ExportError` if C cannot pass one of them."""
    taken: set[str] = set()
    made: list[Parameter] = []
    for param, label in zip(params, names):
        own = name(label)
        while own in taken:
            own += "_"
        taken.add(own)
        made.append(_declared(param, label, own))
    return made


def _declared(param: Param, label: str, own: str) -> Parameter:
    match param["kind"]:
        case "memref":
            rank = len(modes(param["shape"]))  # type: ignore[typeddict-item]
            return Parameter(param, label, ((f"cute_tensor_{rank}", own),), rank)
        case "pointer":
            return Parameter(param, label, (("CUdeviceptr", own),))
        case "scalar":
            return Parameter(param, label, ((_scalar_type(param.get("element", "i32")), own),))
        case "tuple" | "layout":
            count = len(dynamic_leaves(param))
            return Parameter(param, label, tuple([("int64_t", f"{own}_{i}") for i in range(count)]))
        case kind:
            raise ExportError(
                f"argument {label}: a parameter of kind {kind} ({param['type']}) cannot be passed from C; export the "
                "host function that builds it"
            )


def _scalar_type(element: str) -> str:
    if element in ("f64", "index"):
        return {"f64": "double", "index": "int64_t"}[element]
    if element in ("f8E4M3FN", "f8E5M2"):
        return "uint8_t"
    return "float" if element[0] != "i" else "bool" if element == "i1" else f"int{element[1:]}_t"


def modes(tree: Tree) -> list[Tree]:
    return tree if isinstance(tree, list) else [tree]


def bind(f: Function, parameter: Parameter, index: int) -> Value:
    """Write the checks of argument number ``index`` and return its lowered value."""
    param, label, pieces = parameter.param, f"argument {parameter.label}", parameter.pieces
    numbers: dict[int, Scalar] = {}
    match param["kind"]:
        case "memref":
            _bind_tensor(f, parameter, numbers, label)
            numbers[param.get("pointer", 0)] = Scalar(f"(uint64_t){pieces[0][1]}.data", "uint64_t", index)
        case "pointer":
            return Scalar(f"(uint64_t){pieces[0][1]}", "uint64_t", index)
        case "scalar":
            return _bind_scalar(f, parameter, label)
        case _:
            for leaf, (_, own) in zip(dynamic_leaves(param), pieces):
                checks = f"{leaf['width']}, {leaf['div']}, 0"
                f.refuse(f"cute_promise(&{own}, {checks}, {text(label)}, {f.type(param['type'])})")
                numbers[leaf["offset"]] = Scalar(own)
    paths = {path: numbers[offset] for offset, path in scalar_paths(param).items()}
    return _nested(abi.parse_type(param["lowered"]), paths)


def _nested(type_: abi.Type, scalars: dict[tuple[int, ...], Scalar], path: tuple[int, ...] = ()) -> Value:
    if isinstance(type_, abi.Struct):
        return tuple([_nested(m, scalars, (*path, i)) for i, m in enumerate(type_.members)])
    return scalars[path]


def _bind_scalar(f: Function, parameter: Parameter, label: str) -> Value:
    param, own = parameter.param, parameter.pieces[0][1]
    element = param.get("element", "i32")
    if element in ("f8E4M3FN", "f8E5M2"):
        return Scalar(own, "bits")
    if element[0] != "i":
        if element == "f16":
            f.say(f"!isfinite({own}) || isfinite(cute_half_value(cute_half({own})))", "CUTE_REFUSED",
                  text(f"{label}: the number does not fit f16"))  # fmt: skip
        return Scalar(f"(double){own}" if parameter.pieces[0][0] == "float" else own, "double")
    div = param.get("div", 1)
    made = f.let("int64_t", own)
    if div > 1:
        f.refuse(f"cute_promise(&{made.text}, 64, {div}, 0, {text(label)}, {f.type(param['type'])})")
    return made


def _bind_tensor(f: Function, parameter: Parameter, numbers: dict[int, Scalar], label: str) -> None:
    param, own = parameter.param, parameter.pieces[0][1]
    shape, stride = modes(param["shape"]), modes(param["stride"])  # type: ignore[typeddict-item]
    type_ = f.type(param["type"])
    empty = " || ".join([f"{own}.shape[{i}] == 0" for i in range(len(shape))])
    extents = [_bind_extents(f, s, f"{own}.shape[{i}]", numbers, f"{label}, mode {i}", type_)
               for i, s in enumerate(shape)]  # fmt: skip
    # A dimension of extent 1, and any dimension of an empty tensor, has an unused stride.
    for i, d in enumerate(stride):
        unused = f"{own}.shape[{i}] <= 1" if len(shape) == 1 else f"{own}.shape[{i}] <= 1 || {empty}"
        _bind_strides(f, d, extents[i], unused, f"{own}.stride[{i}]", numbers, f"{label}, stride {i}", type_)


def _bind_extents(
    f: Function, tree: Tree, extent: str, numbers: dict[int, Scalar], label: str, type_: str
) -> list[str]:
    """Write the checks of a mode's extents and return one expression per leaf."""
    flat = list(leaves(tree))
    dynamic = [leaf for leaf in flat if isinstance(leaf, dict)]
    known = prod([leaf for leaf in flat if isinstance(leaf, int)])
    if len(dynamic) > 1:
        raise ExportError(
            f"{label}: its extents cannot be derived from an array, it has more than one dynamic leaf; give them one "
            "mode each"
        )
    if not dynamic or known == 0:
        f.refuse(f"cute_equal({extent}, {number(known)}, {text(label)}, {type_})")
        return [number(leaf) if isinstance(leaf, int) else "0" for leaf in flat]
    leaf = dynamic[0]
    limit = MAX_EXTENT_I32 if leaf["width"] == 32 else (1 << (leaf["width"] - 1)) - 1
    value = f.variable("int64_t")
    checks = f"{known}, {leaf['div']}, {number(limit)}"
    f.refuse(f"cute_extent(&{value.text}, {extent}, {checks}, {text(label)}, {type_})")
    numbers[leaf["offset"]] = value
    return [value.text if isinstance(x, dict) else number(cast(int, x)) for x in flat]


def _bind_strides(
    f: Function,
    tree: Tree,
    extents: Sequence[str],
    unused: str,
    stride: str,
    numbers: dict[int, Scalar],
    label: str,
    type_: str,
) -> None:
    """Write the checks of a mode's strides."""
    step = stride
    flat = list(leaves(tree))
    for k, (leaf, size) in enumerate(zip(flat, extents)):
        free = unused if len(flat) == 1 else f"{unused} || {size} <= 1"
        if isinstance(leaf, dict):
            value = f.variable("int64_t")
            f.line(f"{value.text} = {step};")
            checks = f"{leaf['width']}, {leaf['div']}, {free}"
            f.refuse(f"cute_promise(&{value.text}, {checks}, {text(label)}, {type_})")
            numbers[leaf["offset"]] = value
        else:
            wanted = number(cast(int, leaf))
            f.refuse(f"cute_equal({free} ? {wanted} : {step}, {wanted}, {text(label)}, {type_})")
        if k + 1 < len(flat):
            step = f.let("int64_t", f"{step} * {size}").text
