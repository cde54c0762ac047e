"""Manifest of a compiled module: launch data of its kernels and host functions.

The manifest has one entry per kernel (parameters, block, cluster) and one per launching host function (parameters and
program, see :mod:`cute_dialect.runtime.host_program`).  The compiler builds it from the output of ``cute-to-base``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict, cast

from cute_dialect.runtime.host_program import Program, launch_records
from cute_dialect.runtime.signature import Param, Tree

__all__ = [
    "FORMAT",
    "EqualNumbers",
    "HostEntry",
    "KernelEntry",
    "Manifest",
    "ManifestError",
    "check_manifest",
    "required_alignment",
]

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
