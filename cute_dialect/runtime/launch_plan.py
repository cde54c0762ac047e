"""From Python arguments to one launch: which kernel, which grid, which bytes.

Shared by the GPU launcher and the CPU interpreter.  Needs the manifest only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from cute_dialect.arch.targets import DEFAULT_TARGET as LIMITS
from cute_dialect.runtime import host_program
from cute_dialect.runtime.arrays import ArrayView, NotAnArray, plain_address, view_of
from cute_dialect.runtime.binding import ArgumentError, DtypeError, LaunchError, Packed, bind_array, bind_plain, pack
from cute_dialect.runtime.host_program import Value
from cute_dialect.runtime.launch_shape import Dim3, LaunchShape
from cute_dialect.runtime.manifest import HostEntry, KernelEntry, Manifest
from cute_dialect.runtime.signature import Param

__all__ = ["Arguments", "Plan", "Target", "find_target", "prepare", "read_arguments"]

MAX_GRID: Dim3 = ((1 << 31) - 1, 65535, 65535)
"""Largest grid that CUDA launches (CUDA C Programming Guide, compute capabilities)."""


class Target(NamedTuple):
    """What a name stands for: a kernel (``variants``: the stronger ones tried first) and its host function, if any."""

    name: str
    kernel: KernelEntry
    variants: tuple[KernelEntry, ...]
    host: HostEntry | None
    fallback: Target | None = None
    """what is launched where this one cannot be: the same arguments, another host function"""

    @property
    def kernels(self) -> list[KernelEntry]:
        """All kernels that may be launched."""
        more = self.fallback.kernels if self.fallback is not None else []
        return [*self.variants, self.kernel, *more]

    @property
    def params(self) -> list[Param]:
        """The parameters a caller gives: those of the host function, else the kernel's own."""
        return self.host["params"] if self.host else self.kernel["params"]

    @property
    def names(self) -> list[str]:
        """Names of the parameters."""
        return self.host["names"] if self.host else self.kernel["names"]


class Arguments(NamedTuple):
    """The arguments as read: ``views[i]`` for an array, else ``None`` and the plain value."""

    values: tuple[object, ...]
    views: tuple[ArrayView | None, ...]


class Plan(NamedTuple):
    """One launch, ready to go.  ``operands`` are the kernel's arguments in lowered form (for the interpreter);
    ``rejected`` says why each stronger variant was passed over."""

    kernel: str
    module: str
    shape: LaunchShape
    packed: Packed
    operands: tuple[Value, ...]
    params: tuple[Param, ...]
    rejected: tuple[str, ...]
    empty: bool
    """nothing to do: an array has no elements and the grid is empty"""


def find_target(manifest: Manifest, name: str) -> Target:
    """Look up a kernel or a host function.  A kernel that a host function names (or lists as a variant) is launched by
    its rule; asking for a variant by name allows that one only, and a kernel's name no fallback of its host function.
    Raises :class:`LaunchError`.
    """
    kernels = {k["name"]: k for k in manifest["kernels"]}
    by_name: Mapping[str, HostEntry] = {h["name"]: h for h in manifest["hosts"]}
    if name in kernels:
        for host in manifest["hosts"]:
            base, variants = _launch_names(host)
            if name == base:
                return Target(name, kernels[name], tuple(kernels[v] for v in variants if v != name), host)
            if name in variants:
                return Target(name, kernels[name], (), host)
        return Target(name, kernels[name], (), None)
    if name in by_name:
        host = by_name[name]
        base, variants = _launch_names(host)
        fallback = find_target(manifest, host["fallback"]) if "fallback" in host else None
        return Target(name, kernels[base], tuple(kernels[v] for v in variants if v != base), host, fallback)
    known = ", ".join([*kernels, *by_name]) or "none"
    raise LaunchError(f"no kernel or host function @{name} here (there are: {known})")


def _launch_names(host: HostEntry) -> tuple[str, list[str]]:
    launch = cast("dict[str, object]", host["program"]["launch"])
    return str(launch["kernel"]), cast("list[str]", launch["variants"])


def read_arguments(target: Target, args: Sequence[object], stream: int = 0) -> Arguments:
    """Read the arrays among the arguments.  Raises :class:`LaunchError` for a wrong number or kind."""
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
) -> Plan:
    """Check the arguments, choose the kernel, compute the launch.

    ``grid``, ``block`` and ``smem`` override the host function's rule (a kernel without one needs a grid).  ``smem``
    bytes come on top of those that the kernel itself needs.
    Raises :class:`LaunchError`; its subclasses say which promise was broken.
    """
    rejected: list[str] = []
    while True:
        try:
            plan = _prepare(manifest, target, arguments, grid=grid, block=block, smem=smem)
        except ArgumentError as e:
            # Who says the launch's shape means one kernel.
            if target.fallback is None or grid is not None or block is not None:
                raise
            rejected.append(f"@{target.name}: {e}")
            target = target.fallback
            continue
        return plan._replace(rejected=(*rejected, *plan.rejected)) if rejected else plan


def _prepare(
    manifest: Manifest,
    target: Target,
    arguments: Arguments,
    *,
    grid: Dim3 | None,
    block: Dim3 | None,
    smem: int | None,
) -> Plan:
    """:func:`prepare` for one host function."""
    values: list[Value] = []
    addresses: list[int] = []
    for i, (param, view, given) in enumerate(zip(target.params, arguments.views, arguments.values)):
        label = f"argument {target.names[i]}"
        values.append(bind_array(param, view, i, label) if view else bind_plain(param, given, i, label))
        addresses.append(view.pointer if view else given if isinstance(given, int) else 0)

    if target.host is not None:
        try:
            launch = host_program.evaluate(target.host["program"], values)
        except host_program.HostError as e:
            raise LaunchError(str(e)) from e
        base = _named(manifest, launch.kernel)
        operands = launch.args
        grid = grid or launch.shape.grid
        block = block or launch.shape.block
        cluster = launch.shape.cluster
        smem = launch.shape.smem if smem is None else smem
    else:
        base, operands, cluster = target.kernel, tuple(values), None
        if grid is None:
            raise LaunchError(f"no host function launches @{target.name}: give grid=(x, y, z)")
    names = target.names if len(operands) == len(target.names) else base["names"]
    nothing = _nothing_to_do(grid, arguments)
    rejected: list[str] = []
    for kernel in (*target.variants, target.kernel):
        try:
            packed = pack(
                base["params"], kernel["params"], names, operands, addresses, kernel["offset_bits"], empty=nothing
            )
        except ArgumentError as e:
            if kernel is target.kernel:
                raise
            rejected.append(f"@{kernel['name']}: {e}")
            continue
        threads = block or (_three(kernel["block"]) if kernel["block"] else None)
        if threads is None:
            raise LaunchError(f"@{kernel['name']} says no block size: give block=(x, y, z)")
        empty = _check_shape(kernel, grid, threads, arguments)
        own = _three(kernel["cluster"]) if kernel["cluster"] else None
        if cluster is not None and own is not None and cluster != own:
            raise LaunchError(f"@{kernel['name']} is compiled for clusters of {own}, the host function asks {cluster}")
        for size, g, axis in zip(own or cluster or (1, 1, 1), grid, "xyz"):
            if g % max(1, size):
                raise LaunchError(f"grid {grid} is no multiple of the cluster {own or cluster} in {axis}")
        return Plan(
            kernel["name"],
            kernel["module"],
            LaunchShape(grid, threads, kernel.get("dynamic_smem", 0) + (smem or 0), None if own else cluster),
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
    """Limits of CUDA and of the kernel; tells whether there is nothing to do."""
    name = kernel["name"]
    if len(grid) != 3 or len(block) != 3:
        raise LaunchError(f"grid and block have three entries each, got {grid} and {block}")
    if any(b < 1 for b in block) or block[0] * block[1] * block[2] > LIMITS.threads or block[2] > LIMITS.threads_z:
        raise LaunchError(f"block {block} of @{name} is outside of what CUDA launches (1 to {LIMITS.threads} threads)")
    if kernel["block"] and tuple(kernel["block"]) != tuple(block):
        raise LaunchError(f"@{name} is compiled for blocks of {tuple(kernel['block'])}, got {block}")
    if block[0] * block[1] * block[2] > kernel["max_threads"]:
        raise LaunchError(f"@{name} is compiled for at most {kernel['max_threads']} threads a block, got {block}")
    if _nothing_to_do(grid, arguments):
        return True
    if any(not 1 <= g <= limit for g, limit in zip(grid, MAX_GRID)):
        raise LaunchError(f"grid {grid} of @{name} is outside of what CUDA launches (1 to {MAX_GRID})")
    return False


def _nothing_to_do(grid: Sequence[int], arguments: Arguments) -> bool:
    """Whether the grid is empty because an array is."""
    return 0 in grid and any(v is not None and 0 in v.shape for v in arguments.views)
