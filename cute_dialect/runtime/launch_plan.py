"""Launch plans: from Python arguments to kernels, grids and parameter bytes.

The GPU launcher and the CPU interpreter share this module, which needs only the manifest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from cute_dialect.arch.targets import DEFAULT_TARGET as LIMITS
from cute_dialect.runtime import host_program
from cute_dialect.runtime.arrays import ArrayView, NotAnArray, plain_address, view_of
from cute_dialect.runtime.binding import (
    ArgumentError,
    DtypeError,
    LaunchError,
    Packed,
    RangeError,
    ShapeError,
    bind_array,
    bind_plain,
    pack,
)
from cute_dialect.runtime.host_program import Value
from cute_dialect.runtime.launch_shape import Dim3, LaunchShape
from cute_dialect.runtime.manifest import EqualNumbers, HostEntry, KernelEntry, Manifest
from cute_dialect.runtime.signature import Param

__all__ = ["Arguments", "Choice", "Plan", "Target", "find_target", "only", "prepare", "read_arguments"]

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


def prepare(
    manifest: Manifest,
    target: Target,
    arguments: Arguments,
    *,
    grid: Dim3 | None = None,
    block: Dim3 | None = None,
    smem: int | None = None,
) -> tuple[Plan, ...]:
    """Check the arguments, choose the kernels and plan the launches whose conditions hold, in order.

    ``grid``, ``block`` and ``smem`` override the host function, which must have one launch; a kernel without a host
    function needs ``grid``.  ``smem`` is in bytes, added to the kernel's own dynamic shared memory.
    Raises :class:`LaunchError` or a subclass for the violated constraint.
    """
    rejected: list[str] = []
    overrides = _ShapeOverrides(grid, block, smem)
    while True:
        try:
            plans = _prepare(manifest, target, arguments, overrides)
        except ArgumentError as e:
            # An explicit launch shape is meant for this kernel, not for a fallback.
            if target.fallback is None or grid is not None or block is not None:
                raise
            rejected.append(f"@{target.name}: {e}")
            target = target.fallback
            continue
        return tuple([p._replace(rejected=(*rejected, *p.rejected)) for p in plans]) if rejected else plans


class _ShapeOverrides(NamedTuple):
    """Parts of the launch shape that the caller specifies; None for the others."""

    grid: Dim3 | None
    block: Dim3 | None
    smem: int | None


def _prepare(manifest: Manifest, target: Target, arguments: Arguments, overrides: _ShapeOverrides) -> tuple[Plan, ...]:
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
    overrides: _ShapeOverrides


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
        for size, g, axis in zip(own or cluster or (1, 1, 1), grid, "xyz"):
            if g % max(1, size):
                raise LaunchError(f"grid {grid} is not a multiple of the cluster {own or cluster} in {axis}")
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
