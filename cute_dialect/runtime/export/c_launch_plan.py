"""Launch plans in C: parameters of an exported function, variants and parameter bytes.

The code does what :mod:`cute_dialect.runtime.launch_plan` does.  A tensor is passed as ``cute_tensor_<rank>`` and an
address as ``CUdeviceptr``.  A number has the C type that holds it; f16 and bf16 are passed as ``float``, and 8-bit
floats as their bits.  Tuples and layouts are passed as one ``int64_t`` per dynamic leaf.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple, cast

from cute_dialect.runtime import abi
from cute_dialect.runtime.export.c_text import ExportError, Function, Scalar, Value, at, name, number, quoted, text
from cute_dialect.runtime.launch_plan import MAX_EXTENT_I32
from cute_dialect.runtime.manifest import DynamicLeaf, KernelEntry, Param, Tree, dynamic_leaves, leaves, scalar_paths

__all__ = ["Parameter", "Shape", "bind", "declared", "places", "write_launch"]


# ----------------------------------------------------------------------------------------------------------- parameters


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
    if element.startswith("f8"):
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
    if element.startswith("f8"):
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


# ------------------------------------------------------------------------------------------------------------- launches


class Shape(NamedTuple):
    """The shape of a launch as C expressions; ``None`` leaves ``block`` and ``cluster`` to the kernel."""

    grid: Sequence[str]
    block: Sequence[str] | None
    smem: str
    cluster: Sequence[str] | None = None
    cooperative: bool = False
    pdl: bool = False
    preferred: Sequence[int] = ()  # the larger size of clusters, if there are two


def places(kernel: KernelEntry) -> tuple[list[int], int]:
    """Return the byte offset of each parameter in a launch's memory, and the total size."""
    found: list[int] = []
    end = 0
    for param in kernel["params"]:
        end = -(-end // param["align"]) * param["align"]
        found.append(end)
        end += param["size"]
    return found, end


class _Checks:
    """Writer for the checks of one parameter; a failed check skips the variant (``break``)."""

    def __init__(self, f: Function, label: str, type_: str):
        self._f, self._label, self._type = f, label, type_

    def call(self, function: str, arguments: str, what: str = "") -> None:
        """Write a call of a function in ``support.c``; label and type follow its arguments."""
        label = quoted(self._label + what)
        self._f.refuse(f"{function}({arguments}, {label}, {self._f.type(self._type)})", "break")

    def never(self, message: str) -> None:
        """Write an unconditional failure."""
        self._f.line(f"found = cute_say(CUTE_FAILED, {text(f'{self._label}: {message} ({self._type})')});")
        self._f.line("break;")

    def unless(self, condition: str, message: str) -> None:
        """Write a check with its own message."""
        shown = text(f"{self._label}: {message} ({self._type})")
        with self._f.block(f"if (!({condition}))"):
            self._f.line(f"found = cute_say(CUTE_REFUSED, {shown});")
            self._f.line("break;")


def write_launch(
    f: Function,
    base: KernelEntry,
    choices: Sequence[KernelEntry],
    numbers: Mapping[str, int],
    labels: Sequence[str],
    values: Sequence[Value],
    shape: Shape,
) -> None:
    """Write the planning of one launch: the first of ``choices`` that accepts the arguments.

    ``found`` holds the result.  ``values`` are the arguments in the form of ``base``.  ``numbers`` gives the position
    of each kernel in the table of functions.  The C variable ``nothing`` must be true if an array of
    the call is empty.
    """
    f.line("struct cute_launch *launch = &plan->launches[plan->count];")
    f.line(f"const int64_t grid[3] = {{{', '.join(shape.grid)}}};")
    f.line("const int empty = nothing && (grid[0] == 0 || grid[1] == 0 || grid[2] == 0);")
    f.line("found = CUTE_REFUSED;")
    f.line("memset(launch->bytes, 0, sizeof launch->bytes);")
    for kernel in choices:
        if kernel is not choices[0]:
            f.line("if (found == CUTE_REFUSED)")
        with f.block("do", "} while (0);"):
            f.line(f"/* @{kernel['name']} */")
            at_, _ = places(kernel)
            for i, (b, c, value) in enumerate(zip(base["params"], kernel["params"], values)):
                _pack(f, b, c, value, at_[i], f"argument {labels[i]}", kernel["offset_bits"])
                f.line(f"launch->pointers[{i}] = launch->bytes + {at_[i]};")
            _shape(f, kernel, shape)
            f.line(f"launch->kernel = {numbers[kernel['name']]};")
    f.line("if (found == CUTE_FAILED) return found;")
    f.line("if (found == CUTE_PLANNED && !empty) plan->count++;")


def _shape(f: Function, kernel: KernelEntry, shape: Shape) -> None:
    own = kernel["block"]
    block = shape.block or ([number(n) for n in own] if own else ["0", "0", "0"])
    cluster = shape.preferred or kernel["cluster"] or shape.cluster
    f.line(f"const int64_t block[3] = {{{', '.join(block)}}};")
    if own:
        f.line(f"const int64_t wanted[3] = {{{', '.join(map(str, own))}}};")
    if cluster:
        f.line(f"const int64_t cluster[3] = {{{', '.join(map(str, cluster))}}};")
    smem = f"{shape.smem} + {kernel.get('dynamic_smem', 0)}"
    given = [
        "launch", text(kernel["name"]), "grid", "block", "cluster" if cluster else "NULL", smem,
        "wanted" if own else "NULL", str(kernel["max_threads"]), "empty",
    ]  # fmt: skip
    f.line(f"found = cute_shape({', '.join(given)});")
    # A cluster that is compiled into the kernel must not be set again as a launch attribute.
    f.line(f"launch->clustered = {int(cluster is not None and not kernel['cluster'])};")
    if shape.preferred and shape.cluster:  # The grid is a multiple of the larger size.
        for i, (n, least) in enumerate(zip(shape.preferred, shape.cluster)):
            f.line(f"launch->preferred[{i}] = {n}, launch->cluster[{i}] = (unsigned){least};")
    f.line(f"launch->cooperative = {int(shape.cooperative)};")
    f.line(f"launch->pdl = {int(shape.pdl)};")


def _pack(f: Function, base: Param, chosen: Param, value: Value, at_: int, label: str, offset_bits: int) -> None:
    checks = _Checks(f, label, chosen["type"])
    if chosen["kind"] == "tensormap":
        if isinstance(value, Scalar) and value.type == "struct cute_map":
            checks.call("empty ? CUTE_PLANNED : cute_encode", f"launch, {at_}, &{value.text}")
        else:
            checks.never("the host function passes no tensor map")
        return
    scalars = {offset: at(value, path) for offset, path in scalar_paths(base).items()}
    match chosen["kind"]:
        case "memref" | "tuple" | "layout":
            _pack_trees(base, chosen, scalars, at_, checks)
            if chosen["kind"] == "memref" and offset_bits < 64:
                _check_span(base, scalars, offset_bits, checks)
        case "scalar":
            given, element, div = scalars[0], chosen.get("element", "i32"), chosen.get("div", 1)
            if isinstance(given, Scalar) and given.type == "int64_t" and div > 1:
                checks.call("cute_leaf", f"launch, {at_}, {given.text}, {_width(element)}, {div}, 0")
            else:
                _put(f, element, given, at_, checks)
        case "opaque":
            for slot, offset in abi.parse_type(chosen["lowered"]).scalars():
                if scalars[offset] is not None:
                    _put(f, slot.name, scalars[offset], at_ + offset, checks)
        case _:
            pass
    if chosen["kind"] in ("memref", "pointer"):
        pointer = scalars[base.get("pointer", 0)]
        if not isinstance(pointer, Scalar) or pointer.type != "uint64_t":
            checks.never("the host function passes no address")
            return
        place = at_ + chosen.get("pointer", 0)
        checks.call("cute_pointer", f"launch, {place}, {pointer.text}, {chosen.get('alignment', 1)}")


def _width(type_: str) -> int:
    return 64 if type_ in ("ptr", "index") else 8 if type_.startswith("f8") else max(8, int(type_[1:]))


def _put(f: Function, type_: str, value: Value, at_: int, checks: _Checks) -> None:
    """Write a scalar of a lowered type to the parameter bytes."""
    if not isinstance(value, Scalar):
        checks.never("the host function passes an undefined value")
        return
    if value.type == "double":
        kind, made = {
            "f64": ("double", "{}"),
            "f16": ("uint16_t", "cute_half({})"),
            "bf16": ("uint16_t", "cute_bfloat((float)({}))"),
        }.get(type_, ("float", "(float)({})"))
        with f.block(""):
            f.line(f"const {kind} bits = {made.format(value.text)};")
            f.line(f"cute_put(launch, {at_}, &bits, sizeof bits);")
        return
    f.line(f"cute_put_integer(launch, {at_}, (int64_t)({value.text}), {_width(type_) // 8});")


def _leaf(leaf: int | DynamicLeaf | None, scalars: Mapping[int, Value]) -> Scalar | None:
    """Return the value of a leaf; its type is ``unset`` if the host function never set it."""
    if isinstance(leaf, dict):
        value = scalars[leaf["offset"]]
        return value if isinstance(value, Scalar) else Scalar("", "unset")
    return None if leaf is None else Scalar(number(leaf))


def _pack_trees(base: Param, chosen: Param, scalars: Mapping[int, Value], at_: int, checks: _Checks) -> None:
    """Write the dynamic leaves of ``chosen`` with the values that ``base`` has."""
    for part in ("shape", "stride"):
        if part not in chosen:
            continue
        extents = [_leaf(leaf, scalars) for leaf in leaves(base["shape"])] if part == "stride" else []  # type: ignore[typeddict-item]
        pairs = zip(leaves(base[part]), leaves(chosen[part]))  # type: ignore[literal-required]
        for k, (b, c) in enumerate(pairs):
            value = _leaf(b, scalars)
            if value is None:
                continue
            if value.type == "unset":
                checks.never("the host function passes an undefined value")
                continue
            what = f", {'extent' if part == 'shape' else 'stride'} of leaf {k}"
            extent = extents[k] if part == "stride" and chosen["kind"] == "memref" else None
            unused = f"{extent.text} <= 1" if extent is not None else "0"
            if isinstance(c, dict):
                place = at_ + c["offset"]
                checks.call("cute_leaf", f"launch, {place}, {value.text}, {c['width']}, {c['div']}, {unused}", what)
            elif c is not None and value.constant != c:
                given = f"{unused} ? {number(c)} : {value.text}" if unused != "0" else value.text
                checks.call("cute_equal", f"{given}, {number(c)}", what)


def _check_span(param: Param, scalars: Mapping[int, Value], offset_bits: int, checks: _Checks) -> None:
    extents = [_leaf(leaf, scalars) for leaf in leaves(param["shape"])]  # type: ignore[typeddict-item]
    strides = [_leaf(leaf, scalars) for leaf in leaves(param["stride"])]  # type: ignore[typeddict-item]
    known = [(e.text, d.text) for e, d in zip(extents, strides) if e and d and "unset" not in (e.type, d.type)]
    if known:
        reach = " + ".join([f"cute_reach({e}, {d})" for e, d in known])
        checks.unless(
            f"{reach} < (cute_wide)1 << {offset_bits - 1}",
            f"its last element is too far from the first, this kernel computes offsets in {offset_bits} bits",
        )
