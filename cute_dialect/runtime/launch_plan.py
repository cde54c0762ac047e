"""Launch plans: from Python arguments to kernels, grids and parameter bytes.

:func:`read_arguments` finds the arrays among the arguments, and :func:`prepare` plans the launches of a call.  The GPU
launcher and the CPU interpreter share this module, which needs only the manifest.

:func:`bind_array` and :func:`bind_plain` convert one Python argument to the lowered value of a host parameter.  Mode
*i* of the layout is dimension *i* of the array; static leaves are compared, and dynamic leaves are filled in.

:func:`pack` converts the lowered values that a host function passes to the bytes of one kernel's parameters.  It
checks the constraints in that kernel's types.  A variant with stronger constraints fails here, and the plan tries
the next one.

A mode with several leaves, ``(s0,s1):(d0,d1)``, describes one dimension of extent ``s0*s1`` and stride ``d``.  The
leaves run colexicographically, so ``d0 = d`` and ``d1 = d*s0``.  At most one of its extents may be dynamic.

The stride of a dimension of extent 1 or 0 is never used, so it is not checked.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from cute_dialect.arch.errors import TmaError
from cute_dialect.arch.targets import DEFAULT_TARGET as LIMITS
from cute_dialect.errors import CuteError, Place
from cute_dialect.runtime import abi, host_program
from cute_dialect.runtime.arrays import PACKED, ArrayView, NotAnArray, accepts, as_packed, plain_address, view_of
from cute_dialect.runtime.host_program import Dim3, LaunchShape, Pointer, TensorMap, Value
from cute_dialect.runtime.manifest import (
    DynamicLeaf,
    EqualNumbers,
    HostEntry,
    KernelEntry,
    Manifest,
    Param,
    Tree,
    leaves,
    scalar_paths,
)
from cute_dialect.runtime.tensor_maps import checked

__all__ = [
    "LATER",
    "MAX_EXTENT_I32",
    "AlignmentError",
    "ArgumentError",
    "Arguments",
    "Choice",
    "DeviceError",
    "DivisibilityError",
    "DtypeError",
    "LaunchError",
    "Packed",
    "Plan",
    "RangeError",
    "ReadOnlyError",
    "ShapeError",
    "ShapeOverrides",
    "StrideError",
    "Target",
    "TensorMapError",
    "bind_array",
    "bind_plain",
    "find_target",
    "only",
    "pack",
    "prepare",
    "read_arguments",
]


MAX_EXTENT_I32 = (1 << 31) - (1 << 16)
"""Largest extent of a 32-bit leaf.  Coordinates of a partial tile could overflow with larger ones."""


class LaunchError(CuteError):
    """The launch is not possible as requested.  ``call`` is the source position of the call, if known."""

    call: Place | None = None

    def __str__(self) -> str:
        text = super().__str__()
        return text if self.call is None or self.repeats(self.call) else f"{text}\ncalled from {self.call}"


class ArgumentError(LaunchError):
    """An argument does not match its parameter.  The message names the argument and both values."""


class ShapeError(ArgumentError):
    """The rank or an extent does not match the type."""


class StrideError(ArgumentError):
    """A stride does not match the type."""


class DivisibilityError(ArgumentError):
    """A number is not a multiple of the divisor in the type."""


class DtypeError(ArgumentError):
    """The element type does not match, or the argument is not an array."""


class AlignmentError(ArgumentError):
    """An address is less aligned than the type requires."""


class RangeError(ArgumentError):
    """A number does not fit the width of its leaf."""


class TensorMapError(ArgumentError):
    """TMA does not support the strides, the address or the extents of an array."""


class ReadOnlyError(ArgumentError):
    """The kernel writes to a read-only array."""

    def __init__(self, name: str):
        super().__init__(
            f"argument {name}: the kernel writes to it, and this array is read-only; pass one that may be written "
            "(a copy: array.copy())"
        )


class DeviceError(ArgumentError):
    """An array is on another device than the launch."""


# -------------------------------------------------------------------------------------------------------------- bind


def bind_array(param: Param, view: ArrayView, index: int, label: str) -> Value:
    """Return the lowered value of an array passed for a memref or pointer; its pointer is ``Pointer(index, 0)``."""
    element = param.get("element", "")
    is_packed = element == PACKED and view.dtype in ("ui8", "i8")
    if param["kind"] == "pointer":
        if param["type"].startswith("!cute.") and not (is_packed or accepts(element, view.dtype)):
            raise DtypeError(f"{label} expects a pointer to {element}, got an array of {view.dtype}")
        return Pointer(index, 0)
    if is_packed:
        view = as_packed(view)
    elif not accepts(element, view.dtype):
        raise DtypeError(f"{label} expects elements of {element}, got {view.dtype} ({param['type']})")
    shape = cast("list[Tree]", _modes(param["shape"]))  # type: ignore[typeddict-item]
    stride = cast("list[Tree]", _modes(param["stride"]))  # type: ignore[typeddict-item]
    if len(shape) != len(view.shape):
        raise ShapeError(
            f"{label} expects an array of rank {len(shape)}, got shape {_show(view.shape)} ({param['type']})"
        )
    numbers: dict[int, int] = {}
    # Report a wrong extent before a wrong stride: an array of another shape usually has other strides, too.
    extents = [_bind_extents(s, view.shape[i], numbers, label, i, param) for i, s in enumerate(shape)]
    for i, d in enumerate(stride):
        used = 0 if 0 in view.shape else view.shape[i]  # strides of an empty array are never used
        _bind_strides(d, extents[i], used, view.strides[i], numbers, label, i, param)
    paths = scalar_paths(param)
    scalars: dict[tuple[int, ...], object] = {paths[offset]: n for offset, n in numbers.items()}
    scalars[paths[param.get("pointer", 0)]] = Pointer(index, 0)
    return cast(Value, abi.nested(abi.parse_type(param["lowered"]), scalars))  # type: ignore[arg-type]


class Later:
    """The type of :data:`LATER`."""


LATER = Later()
"""A float argument that is known at the launch only, which gets its bits with the addresses of the arrays."""


def bind_plain(param: Param, value: object, index: int, label: str) -> Value:
    """Return the lowered value of a parameter that is not a tensor: a number, or nested tuples of integers."""
    kind = param["kind"]
    if kind == "scalar":
        return Pointer(index, 0) if value is LATER else _bind_scalar(param, value, label)
    if kind == "pointer":
        if not isinstance(value, int) or isinstance(value, bool):
            raise DtypeError(f"{label} expects an array or an address, got {type(value).__name__}")
        if not 0 <= value < 1 << 64:
            raise RangeError(f"{label}: {value} is not an address; it must be from 0 to 2^64 - 1")
        return Pointer(index, 0)
    if kind == "tuple":
        pairs = [("", param["shape"], value)]  # type: ignore[typeddict-item]
    elif kind == "layout":
        if not isinstance(value, (tuple, list)) or len(cast("Sequence[object]", value)) != 2:
            raise DtypeError(f"{label} expects a pair (shape, stride) for {param['type']}, got {value!r}")
        shape, stride = cast("Sequence[object]", value)
        pairs = [("shape ", param["shape"], shape), ("stride ", param["stride"], stride)]  # type: ignore[typeddict-item]
    else:
        raise DtypeError(f"{label}: a parameter of type {param['type']} cannot be passed from Python")
    numbers: dict[int, int] = {}
    for part, tree, given in pairs:
        _bind_tree(tree, given, numbers, f"{label} {part}".strip(), param)
    paths = scalar_paths(param)
    return cast(
        Value,
        abi.nested(
            abi.parse_type(param["lowered"]),
            {paths[o]: n for o, n in numbers.items()},
        ),
    )


def _modes(tree: Tree) -> list[Tree]:
    return tree if isinstance(tree, list) else [tree]


def _bind_extents(tree: Tree, extent: int, numbers: dict[int, int], label: str, mode: int, param: Param) -> list[int]:
    """Return the extents of the leaves of one mode of size ``extent``."""
    flat = list(leaves(tree))
    known = 1
    dynamic: DynamicLeaf | None = None
    for leaf in flat:
        if isinstance(leaf, dict):
            if dynamic is not None:
                raise ShapeError(
                    f"{label}, mode {mode}: the extents of {param['type']} cannot be derived from an array, "
                    "this mode has more than one dynamic leaf"
                )
            dynamic = leaf
        else:
            known *= cast(int, leaf)
    if dynamic is None:
        if known != extent:
            raise ShapeError(f"{label}, mode {mode}: expected extent {known}, got {extent} ({param['type']})")
        return [cast(int, leaf) for leaf in flat]
    if known == 0 or extent % known:
        raise ShapeError(
            f"{label}, mode {mode}: expected an extent that is a multiple of {known}, got {extent} ({param['type']})"
        )
    value = extent // known
    _check_extent(dynamic, value, label, mode, param)
    numbers[dynamic["offset"]] = value
    return [value if isinstance(leaf, dict) else cast(int, leaf) for leaf in flat]


def _check_extent(leaf: DynamicLeaf, value: int, label: str, mode: int, param: Param) -> None:
    if value % leaf["div"]:
        raise DivisibilityError(
            f"{label}, mode {mode}: expected an extent that is a multiple of {leaf['div']}, got {value} "
            f"({param['type']})"
        )
    limit = MAX_EXTENT_I32 if leaf["width"] == 32 else (1 << (leaf["width"] - 1)) - 1
    if value > limit:
        raise RangeError(
            f"{label}, mode {mode}: extent {value} does not fit a {leaf['width']}-bit leaf (at most {limit}); "
            f"declare it ?{{i64}} in {param['type']}"
        )


def _bind_strides(
    tree: Tree,
    extents: Sequence[int],
    extent: int,
    stride: int,
    numbers: dict[int, int],
    label: str,
    mode: int,
    param: Param,
) -> None:
    """Bind the leaf strides of one mode to the stride of the array's dimension."""
    step = stride
    for leaf, size in zip(leaves(tree), extents):
        free = extent <= 1 or size <= 1
        if isinstance(leaf, dict):
            value = step
            if free and not _stride_fits(leaf, value):
                value = 0
            _check_stride(leaf, value, label, mode, param)
            numbers[leaf["offset"]] = value
        elif not free and leaf != step:
            raise StrideError(f"{label}, mode {mode}: expected stride {leaf}, got {step} elements ({param['type']})")
        step *= size


def _stride_fits(leaf: DynamicLeaf, value: int) -> bool:
    half = 1 << (leaf["width"] - 1)
    return value % leaf["div"] == 0 and -half <= value < half


def _check_stride(leaf: DynamicLeaf, value: int, label: str, mode: int, param: Param) -> None:
    if value % leaf["div"]:
        raise DivisibilityError(
            f"{label}, mode {mode}: expected a stride that is a multiple of {leaf['div']} elements, got {value} "
            f"({param['type']})"
        )
    if not _stride_fits(leaf, value):
        raise RangeError(
            f"{label}, mode {mode}: stride {value} does not fit a {leaf['width']}-bit leaf; declare it ?{{i64}} in "
            f"{param['type']}"
        )


def _bind_scalar(param: Param, value: object, label: str) -> Value:
    name = param.get("element", "i32")
    item = getattr(value, "item", None)
    if item is not None and not isinstance(value, (int, float)):
        try:
            value = item()
        except (ValueError, TypeError, RuntimeError):
            raise DtypeError(
                f"{label} expects a single number for {name}, got several ({type(value).__name__})"
            ) from None
    if name.startswith(("f", "bf", "tf")):
        if not isinstance(value, (int, float)):
            raise DtypeError(f"{label} expects a number for {name}, got {type(value).__name__}")
        try:
            abi.pack_scalar(name, float(value))
        except OverflowError as e:
            raise RangeError(f"{label}: {value} does not fit {name}") from e
        return float(value)
    if not isinstance(value, int):
        raise DtypeError(f"{label} expects an integer for {name}, got {type(value).__name__}")
    width = 64 if name == "index" else int(name.removeprefix("i"))
    if width == 1:
        if value not in (0, 1):
            raise RangeError(f"{label}: {value} does not fit i1 (expected 0, 1, False or True)")
        return int(value)
    if not -(1 << (width - 1)) <= value < (1 << (width - 1)):
        raise RangeError(f"{label}: {value} does not fit {name}")
    if value % param.get("div", 1):
        raise DivisibilityError(f"{label}: expected a multiple of {param.get('div')}, got {value} ({param['type']})")
    return value


def _bind_tree(tree: Tree, given: object, numbers: dict[int, int], label: str, param: Param) -> None:
    if isinstance(tree, list):
        if not isinstance(given, (tuple, list)) or len(cast("Sequence[object]", given)) != len(tree):
            raise ShapeError(f"{label} expects a tuple of {len(tree)} entries, got {given!r} ({param['type']})")
        for t, g in zip(tree, cast("Sequence[object]", given)):
            _bind_tree(t, g, numbers, label, param)
        return
    if tree is None:
        if given is not None:
            raise ShapeError(f"{label} expects None where {param['type']} has '_', got {given!r}")
        return
    try:
        given = operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        raise ShapeError(f"{label} expects an integer, got {given!r} ({param['type']})") from None
    if isinstance(tree, dict):
        if given % tree["div"]:
            raise DivisibilityError(f"{label}: expected a multiple of {tree['div']}, got {given} ({param['type']})")
        if not _stride_fits(tree, given):
            raise RangeError(f"{label}: {given} does not fit a {tree['width']}-bit leaf; declare it ?{{i64}}")
        numbers[tree["offset"]] = given
    elif tree != given:
        raise ShapeError(f"{label}: expected {tree}, got {given} ({param['type']})")


# -------------------------------------------------------------------------------------------------------------- pack


class Packed(NamedTuple):
    """Parameter bytes of a kernel, with the positions to patch at launch.

    Args:
        buffers: bytes of each parameter.
        patches: addresses to write: (parameter, byte offset, array argument, bytes to add).
        maps: tensor maps to encode: (parameter, description).
    """

    buffers: tuple[bytes, ...]
    patches: tuple[tuple[int, int, int, int], ...]
    maps: tuple[tuple[int, TensorMap], ...] = ()


def pack(
    base: Sequence[Param],
    chosen: Sequence[Param],
    names: Sequence[str],
    values: Sequence[Value],
    addresses: Sequence[int],
    offset_bits: int = 64,
    *,
    empty: bool = False,
) -> Packed:
    """Return the parameter bytes of a kernel with parameter types ``chosen``.

    Args:
        base: parameters of the kernel that the host function names.
        chosen: parameters of that kernel or of one of its variants.
        names: names of the operands, for messages.
        values: operands of the launch, in the lowered form of ``base``.
        addresses: address of each array argument.
        offset_bits: width of the kernel's element offsets; with 32, larger tensors are refused.
        empty: the launch does nothing, so its tensor maps are not checked.

    Raises an :class:`ArgumentError` that names the violated constraint of ``chosen``.
    """
    buffers: list[bytes] = []
    patches: list[tuple[int, int, int, int]] = []
    maps: list[tuple[int, TensorMap]] = []
    for i, (b, c, value) in enumerate(zip(base, chosen, values)):
        label = f"argument {names[i]}" if i < len(names) else f"argument {i}"
        buffer = bytearray(c["size"])
        scalars = (
            {offset: _at(value, path) for offset, path in scalar_paths(b).items()} if b["kind"] != "tensormap" else {}
        )
        if c["kind"] in ("memref", "tuple", "layout"):
            _pack_trees(b, c, scalars, buffer, label)
            if c["kind"] == "memref":
                _check_span(b, scalars, label, offset_bits)
        elif c["kind"] == "scalar":
            number = cast("int | float | Pointer", scalars[0])
            if isinstance(number, Pointer):  # LATER
                patches.append((i, 0, number.argument, number.offset))
                buffers.append(bytes(buffer))
                continue
            if isinstance(number, int) and number % c.get("div", 1):
                raise DivisibilityError(f"{label}: expected a multiple of {c.get('div')}, got {number} ({c['type']})")
            data = abi.pack_scalar(c.get("element", "i32"), number)
            buffer[: len(data)] = data
        elif c["kind"] == "opaque":
            for slot, offset in abi.parse_type(c["lowered"]).scalars():
                part = scalars[offset]
                if isinstance(part, Pointer):
                    patches.append((i, offset, part.argument, part.offset))
                elif part is not None:
                    data = abi.pack_scalar(slot.name, cast("int | float", part))
                    buffer[offset : offset + len(data)] = data
        elif c["kind"] == "tensormap":
            maps.append((i, _tensor_map(c, value, addresses, label, check=not empty)))
        if c["kind"] in ("memref", "pointer"):
            pointer = scalars[b.get("pointer", 0)]
            if not isinstance(pointer, Pointer):
                raise LaunchError(f"{label}: the host function passes no address for {c['type']}")
            _check_alignment(c, addresses[pointer.argument] + pointer.offset, label)
            patches.append((i, c.get("pointer", 0), pointer.argument, pointer.offset))
        buffers.append(bytes(buffer))
    return Packed(tuple(buffers), tuple(patches), tuple(maps))


def _tensor_map(param: Param, value: Value, addresses: Sequence[int], label: str, *, check: bool) -> TensorMap:
    if not isinstance(value, TensorMap):
        raise LaunchError(f"{label}: the host function passes no tensor map for {param['type']}")
    if not check:
        return value
    try:
        return checked(value, addresses[value.address.argument] + value.address.offset)
    except TmaError as e:
        raise TensorMapError(f"{label}: TMA does not support this array: {e} ({param['type']})") from None


def _at(value: Value, path: Sequence[int]) -> Value:
    for i in path:
        value = cast("tuple[Value, ...]", value)[i]
    return value


def _pack_trees(base: Param, chosen: Param, scalars: dict[int, Value], buffer: bytearray, label: str) -> None:
    """Write the dynamic leaves of ``chosen`` with the values that ``base`` has."""
    for part in ("shape", "stride"):
        if part not in chosen:
            continue
        extents = [_number(leaf, scalars) for leaf in leaves(base["shape"])] if part == "stride" else []  # type: ignore[typeddict-item]
        pairs = zip(leaves(base[part]), leaves(chosen[part]))  # type: ignore[literal-required]
        for k, (b, c) in enumerate(pairs):
            value = _number(b, scalars)
            if value is None:
                continue
            what = f"{label}, {'extent' if part == 'shape' else 'stride'} of leaf {k}"
            unused = part == "stride" and chosen["kind"] == "memref" and (extents[k] or 0) <= 1
            if isinstance(c, dict):
                if unused and not _stride_fits(c, value):
                    value = 0
                if value % c["div"]:
                    raise DivisibilityError(
                        f"{what}: expected a multiple of {c['div']} elements, got {value} ({chosen['type']})"
                    )
                if not _stride_fits(c, value):
                    raise RangeError(f"{what}: {value} does not fit a {c['width']}-bit leaf ({chosen['type']})")
                size = c["width"] // 8
                buffer[c["offset"] : c["offset"] + size] = (value & ((1 << c["width"]) - 1)).to_bytes(size, "little")
            elif c is not None and c != value and not unused:
                error = ShapeError if part == "shape" else StrideError
                raise error(f"{what}: expected {c}, got {value} ({chosen['type']})")


def _number(leaf: int | DynamicLeaf | None, scalars: dict[int, Value]) -> int | None:
    if isinstance(leaf, dict):
        value = scalars[leaf["offset"]]
        if not isinstance(value, int):
            raise LaunchError("the host function passes an undefined value")
        return value
    return leaf


def _check_span(param: Param, scalars: dict[int, Value], label: str, offset_bits: int) -> None:
    if offset_bits >= 64:
        return
    extents = [_number(leaf, scalars) or 0 for leaf in leaves(param["shape"])]  # type: ignore[typeddict-item]
    strides = [_number(leaf, scalars) or 0 for leaf in leaves(param["stride"])]  # type: ignore[typeddict-item]
    reach = sum(max(0, e - 1) * abs(d) for e, d in zip(extents, strides))
    if reach >= 1 << (offset_bits - 1):
        raise RangeError(
            f"{label}: its last element is {reach} elements from the first, and this kernel computes offsets in "
            f"{offset_bits} bits; declare a leaf ?{{i64}} in {param['type']}"
        )


def _check_alignment(param: Param, address: int, label: str) -> None:
    wanted = param.get("alignment", 1)
    if address % wanted:
        raise AlignmentError(
            f"{label}: expected an address that is a multiple of {wanted} bytes, got {address:#x}, which is "
            f"{address % wanted} bytes past a multiple ({param['type']})"
        )


def _show(shape: Sequence[int]) -> str:
    return "(" + ", ".join(str(s) for s in shape) + ")"


# ----------------------------------------------------------------------------------------------------------------- plan


MAX_GRID: Dim3 = ((1 << 31) - 1, 65535, 65535)
"""Largest grid (CUDA C++ Programming Guide, compute capabilities)."""


class Choice(NamedTuple):
    """Candidate kernels of one launch: ``variants`` have stronger constraints and are tried first."""

    kernel: KernelEntry
    variants: tuple[KernelEntry, ...] = ()


class Target(NamedTuple):
    """A launchable name: a host function with the kernels of each launch, or one kernel without a host function."""

    name: str
    launches: tuple[Choice, ...]
    host: HostEntry | None
    fallback: Target | None = None
    """host function with the same arguments that launches if this one cannot"""

    @property
    def kernels(self) -> list[KernelEntry]:
        """All kernels that a call may launch, including those of fallbacks."""
        more = self.fallback.kernels if self.fallback is not None else []
        own = [k for choice in self.launches for k in (*choice.variants, choice.kernel)]
        return [*own, *more]

    @property
    def params(self) -> list[Param]:
        """Parameters of a call: those of the host function, or else the kernel's own."""
        return self.host["params"] if self.host else self.launches[0].kernel["params"]

    @property
    def names(self) -> list[str]:
        """Names of the parameters."""
        return self.host["names"] if self.host else self.launches[0].kernel["names"]


class Arguments(NamedTuple):
    """Arguments of a call: ``views[i]`` is the array, or ``None`` for a plain value."""

    values: tuple[object, ...]
    views: tuple[ArrayView | None, ...]


class Plan(NamedTuple):
    """One launch, ready to run.

    ``operands`` are the kernel's arguments in lowered form, for the interpreter.  ``rejected`` gives the reason for
    each variant that was skipped.
    """

    kernel: str
    module: str
    shape: LaunchShape
    packed: Packed
    operands: tuple[Value, ...]
    params: tuple[Param, ...]
    rejected: tuple[str, ...]
    empty: bool
    """nothing to launch: an array has no elements and the grid is empty"""


def only(plans: Sequence[Plan]) -> Plan:
    """Return the only launch of a call.  Raises :class:`LaunchError` if there are several or none."""
    if len(plans) != 1:
        kernels = ", ".join(f"@{p.kernel}" for p in plans) or "no kernel"
        raise LaunchError(f"expected a call with one launch, but this call launches {kernels}; use Kernel.plans")
    return plans[0]


def find_target(manifest: Manifest, name: str) -> Target:
    """Look up a kernel or a host function by name.  Raises :class:`LaunchError`.

    A kernel is launched by the host function that launches it, or one of its variants, and nothing else.  The name of
    a variant selects only that variant.  The name of a kernel does not select the fallback of its host function.
    """
    kernels = {k["name"]: k for k in manifest["kernels"]}
    by_name: Mapping[str, HostEntry] = {h["name"]: h for h in manifest["hosts"]}
    if name in kernels:
        for host in manifest["hosts"]:
            choices = _choices(host, kernels)
            if len(choices) != 1:
                continue
            if name == choices[0].kernel["name"]:
                return Target(name, choices, host)
            if any(name == v["name"] for v in choices[0].variants):
                return Target(name, (Choice(kernels[name]),), host)
        return Target(name, (Choice(kernels[name]),), None)
    if name in by_name:
        host = by_name[name]
        fallback = find_target(manifest, host["fallback"]) if "fallback" in host else None
        return Target(name, _choices(host, kernels), host, fallback)
    known = ", ".join([*kernels, *by_name]) or "none"
    raise LaunchError(f"no kernel or host function @{name} in this module (known: {known})")


def _choices(host: HostEntry, kernels: Mapping[str, KernelEntry]) -> tuple[Choice, ...]:
    """Return the candidate kernels of each launch of a host function."""
    out: list[Choice] = []
    for launch in host_program.launch_records(host["program"]):
        base, variants = str(launch["kernel"]), cast("list[str]", launch["variants"])
        out.append(Choice(kernels[base], tuple(kernels[v] for v in variants if v != base)))
    return tuple(out)


def read_arguments(target: Target, args: Sequence[object], stream: int = 0) -> Arguments:
    """Read the arrays among the arguments.  Raises :class:`LaunchError` for a wrong number or type of arguments."""
    params = target.params
    if len(args) != len(params):
        wanted = ", ".join(f"{n}: {p['type']}" for n, p in zip(target.names, params)) or "none"
        raise LaunchError(f"@{target.name} takes {len(params)} arguments ({wanted}), got {len(args)}")
    views: list[ArrayView | None] = []
    args = [plain_address(a) if p["kind"] == "pointer" else a for p, a in zip(params, args)]
    for param, name, value in zip(params, target.names, args):
        wants_array = param["kind"] == "memref" or (param["kind"] == "pointer" and not isinstance(value, int))
        if not wants_array:
            views.append(None)
            continue
        try:
            views.append(view_of(value, stream))
        except NotAnArray as e:
            raise DtypeError(f"argument {name}: {e}") from e
    return Arguments(tuple(args), tuple(views))


class ShapeOverrides(NamedTuple):
    """Parts of the launch shape that the caller specifies; None for the others.

    They override the host function, which must have one launch.  A kernel without a host function needs ``grid``.
    ``smem`` is in bytes, added to the kernel's own dynamic shared memory.
    """

    grid: Dim3 | None = None
    block: Dim3 | None = None
    smem: int | None = None


def prepare(
    manifest: Manifest,
    target: Target,
    arguments: Arguments,
    overrides: ShapeOverrides,
) -> tuple[Plan, ...]:
    """Check the arguments, choose the kernels and plan the launches whose conditions hold, in order.

    Raises :class:`LaunchError` or a subclass for the violated constraint.
    """
    rejected: list[str] = []
    while True:
        try:
            plans = _prepare(manifest, target, arguments, overrides)
        except ArgumentError as e:
            # An explicit launch shape is meant for this kernel, not for a fallback.
            if target.fallback is None or overrides.grid is not None or overrides.block is not None:
                raise
            rejected.append(f"@{target.name}: {e}")
            target = target.fallback
            continue
        return tuple([p._replace(rejected=(*rejected, *p.rejected)) for p in plans]) if rejected else plans


def _prepare(manifest: Manifest, target: Target, arguments: Arguments, overrides: ShapeOverrides) -> tuple[Plan, ...]:
    """Plan the launches of one host function."""
    count = len(target.launches)
    if count > 1 and overrides != (None, None, None):
        raise LaunchError(
            f"grid, block and smem apply to one launch, but @{target.name} has {count}: call one of its kernels by "
            "name to set them"
        )
    values: list[Value] = []
    addresses: list[int] = []
    for i, (param, view, given) in enumerate(zip(target.params, arguments.views, arguments.values)):
        label = f"argument {target.names[i]}"
        values.append(bind_array(param, view, i, label) if view else bind_plain(param, given, i, label))
        addresses.append(view.pointer if view else given if isinstance(given, int) else 0)
    if target.host is not None:
        for symbol in target.host.get("symbols", ()):
            _check_symbol(symbol, target.names, arguments.views)
    call = _Call(target, arguments, addresses, overrides)

    if target.host is None:
        if overrides.grid is None:
            raise LaunchError(f"no host function launches @{target.name}: pass grid=(x, y, z)")
        base = target.launches[0].kernel
        return (_plan(call, base, target.launches[0], tuple(values), None, target.names),)
    try:
        launches = host_program.evaluate(target.host["program"], values)
    except host_program.HostOverflow as e:  # a fallback with 64-bit leaves may hold the number
        raise RangeError(str(e)) from e
    except host_program.HostError as e:
        raise LaunchError(str(e)) from e
    records = host_program.launch_records(target.host["program"])
    plans: list[Plan] = []
    refused: list[str] = []
    for i, launch in enumerate(launches):
        if launch.fallback and not refused:
            continue
        base = _named(manifest, launch.kernel)
        names = _operand_names(target, base, launch, cast("list[int]", records[launch.number]["args"]))
        try:
            plan = _plan(call, base, target.launches[launch.number], launch.args, launch.shape, names)
        except ArgumentError as e:
            if i + 1 == len(launches) or not launches[i + 1].fallback:
                raise
            refused.append(f"@{launch.kernel}: {e}")
            continue
        plans.append(plan._replace(rejected=(*refused, *plan.rejected)) if refused else plan)
        refused = []
    return tuple(plans)


def _check_symbol(symbol: EqualNumbers, names: Sequence[str], views: Sequence[ArrayView | None]) -> None:
    """Check that all extents and strides of one symbol are equal.  Raises ShapeError, which names both places."""
    first: tuple[int, int, int] | None = None
    for at, part, mode in cast("list[tuple[int, str, int]]", symbol["places"]):
        view = views[at]
        assert view is not None
        number = (view.strides if part == "stride" else view.shape)[mode]
        if first is None:
            first = (number, at, mode)
        elif number != first[0]:
            raise ShapeError(
                f"'{symbol['name']}' is {first[0]} in argument {names[first[1]]}, mode {first[2]}, and {number} in "
                f"argument {names[at]}, mode {mode}"
            )


class _Call(NamedTuple):
    """Data shared by the launches of a call."""

    target: Target
    arguments: Arguments
    addresses: Sequence[int]
    overrides: ShapeOverrides


def _operand_names(
    target: Target, base: KernelEntry, launch: host_program.Launch, registers: Sequence[int]
) -> list[str]:
    """Name each operand of a launch after the host function's parameter that it is, or whose array it points to.

    Computed operands take the name of the kernel's parameter.
    """
    out: list[str] = []
    for i, (register, value) in enumerate(zip(registers, launch.args)):
        source = register if register < len(target.names) else _array_of(value)
        out.append(base["names"][i] if source is None else target.names[source])
    return out


def _array_of(value: Value) -> int | None:
    """Return the number of the array argument that a value points to, or ``None``."""
    if isinstance(value, host_program.TensorMap):
        return value.address.argument
    if isinstance(value, host_program.Pointer):
        return value.argument
    if isinstance(value, tuple):
        return next((found for v in value if (found := _array_of(v)) is not None), None)
    return None


def _plan(
    call: _Call,
    base: KernelEntry,
    choice: Choice,
    operands: tuple[Value, ...],
    shape: LaunchShape | None,
    names: Sequence[str],
) -> Plan:
    """Plan one launch.

    ``base`` is the kernel whose parameters match ``operands``.  ``shape`` comes from the host function; ``None``
    without one.
    """
    overrides = call.overrides
    grid = overrides.grid or (shape.grid if shape is not None else None)
    assert grid is not None
    block = overrides.block or (shape.block if shape is not None else None)
    smem = overrides.smem if overrides.smem is not None else shape.smem if shape is not None else 0
    cluster = shape.cluster if shape is not None else None
    nothing = _nothing_to_do(grid, call.arguments)
    rejected: list[str] = []
    for kernel in (*choice.variants, choice.kernel):
        try:
            packed = pack(
                base["params"], kernel["params"], names, operands, call.addresses, kernel["offset_bits"], empty=nothing
            )
        except ArgumentError as e:
            if kernel is choice.kernel:
                raise
            rejected.append(f"@{kernel['name']}: {e}")
            continue
        threads = block or (_three(kernel["block"]) if kernel["block"] else None)
        if threads is None:
            raise LaunchError(f"@{kernel['name']} has no required block size: pass block=(x, y, z)")
        empty = _check_shape(kernel, grid, threads, call.arguments)
        own = _three(kernel["cluster"]) if kernel["cluster"] else None
        if cluster is not None and own is not None and cluster != own:
            raise LaunchError(
                f"@{kernel['name']} is compiled for clusters of {own}, the host function requests {cluster}"
            )
        whole = (shape.preferred_cluster if shape is not None else None) or own or cluster or (1, 1, 1)
        for size, g, axis in zip(whole, grid, "xyz"):
            if g % max(1, size):
                raise LaunchError(f"grid {grid} is not a multiple of the cluster {whole} in {axis}")
        return Plan(
            kernel["name"],
            kernel["module"],
            (shape or LaunchShape())._replace(
                grid=grid, block=threads, smem=kernel.get("dynamic_smem", 0) + smem, cluster=None if own else cluster
            ),
            packed,
            operands,
            tuple(base["params"]),
            tuple(rejected),
            empty,
        )
    raise AssertionError("the loop returns or raises")


def _named(manifest: Manifest, name: str) -> KernelEntry:
    return next(k for k in manifest["kernels"] if k["name"] == name)


def _three(values: Sequence[int]) -> Dim3:
    x, y, z = values
    return x, y, z


def _check_shape(kernel: KernelEntry, grid: Dim3, block: Dim3, arguments: Arguments) -> bool:
    """Check a launch shape against the limits of CUDA and of the kernel.  Return True if the launch is empty."""
    name = kernel["name"]
    if len(grid) != 3 or len(block) != 3:
        raise LaunchError(f"grid and block have three entries each, got {grid} and {block}")
    if any(b < 1 for b in block) or block[0] * block[1] * block[2] > LIMITS.threads or block[2] > LIMITS.threads_z:
        raise LaunchError(f"block {block} of @{name} is not a valid CUDA block (1 to {LIMITS.threads} threads)")
    if kernel["block"] and tuple(kernel["block"]) != tuple(block):
        raise LaunchError(f"@{name} is compiled for blocks of {tuple(kernel['block'])}, got {block}")
    if block[0] * block[1] * block[2] > kernel["max_threads"]:
        raise LaunchError(f"@{name} is compiled for at most {kernel['max_threads']} threads per block, got {block}")
    if _nothing_to_do(grid, arguments):
        return True
    if any(not 1 <= g <= limit for g, limit in zip(grid, MAX_GRID)):
        raise LaunchError(f"grid {grid} of @{name} is not a valid CUDA grid (1 to {MAX_GRID})")
    return False


def _nothing_to_do(grid: Sequence[int], arguments: Arguments) -> bool:
    """Return True if the grid is empty because an array is."""
    return 0 in grid and any(v is not None and 0 in v.shape for v in arguments.views)
