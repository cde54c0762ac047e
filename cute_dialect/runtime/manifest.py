"""The manifest of a compiled module: everything a launch needs beside the machine code, as plain data.

Built from the output of ``cute-to-base`` (an xDSL module); read back by the launcher without xDSL.  One entry a kernel
(its parameters, block, cluster) and one a host function that launches (its parameters and its program, see
:mod:`cute_dialect.runtime.host_program`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NotRequired, TypedDict, cast

from cute_dialect.runtime import abi, host_program
from cute_dialect.runtime.signature import Param, SignatureError, Tree, describe, leaves

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.dialects.builtin import ModuleOp, StringAttr
    from xdsl.ir import Attribute, Operation

__all__ = ["FORMAT", "HostEntry", "KernelEntry", "Manifest", "ManifestError", "build_manifest", "check_manifest"]

FORMAT = 1
"""Version of the manifest; a reader refuses any other."""


class ManifestError(Exception):
    """The lowered module does not follow the conventions of a compiled kernel; the message says where."""


class KernelEntry(TypedDict):
    """A kernel: ``block`` is what the kernel requires (``nvvm.reqntid``) or ``None``, ``max_threads`` its bound,
    ``dynamic_smem`` the bytes of dynamic shared memory that every launch gives it."""

    name: str
    module: str
    params: list[Param]
    names: list[str]
    block: list[int] | None
    max_threads: int
    cluster: list[int] | None
    offset_bits: int
    dynamic_smem: int


class HostEntry(TypedDict):
    """A host function that launches one kernel.  ``fallback``: another with the same arguments, which launches what
    this one cannot (an argument contradicts a type, or TMA cannot describe it)."""

    name: str
    params: list[Param]
    names: list[str]
    program: host_program.Program
    fallback: NotRequired[str]


class Manifest(TypedDict):
    """The whole of it.  ``modules`` are the names of the ``gpu.module`` ops, in order; ``remarks`` what the passes had
    to say, with positions."""

    format: int
    chip: str
    features: str
    opt_level: int
    modules: list[str]
    kernels: list[KernelEntry]
    hosts: list[HostEntry]
    remarks: NotRequired[list[str]]


def build_manifest(module: ModuleOp, *, chip: str, features: str, opt_level: int) -> Manifest:
    """Describe the kernels and host functions of a lowered module.  Raises :class:`ManifestError`."""
    kernels: list[KernelEntry] = []
    modules: list[str] = []
    hosts: list[HostEntry] = []
    for op in module.ops:
        name = host_program.op_name(op)
        if name == "gpu.module":
            module_name = _symbol(op)
            modules.append(module_name)
            for inner in op.regions[0].blocks[0].ops:
                if host_program.op_name(inner) in ("llvm.func", "gpu.func") and _is_kernel(inner):
                    kernels.append(_kernel(inner, module_name))
        elif name in ("func.func", "llvm.func") and op.regions[0].blocks:
            try:
                program = host_program.compile_host(op)
            except host_program.HostError as e:
                raise ManifestError(str(e)) from e
            if program is not None:
                hosts.append(_host(op, program))
    manifest: Manifest = {
        "format": FORMAT,
        "chip": chip,
        "features": features,
        "opt_level": opt_level,
        "modules": modules,
        "kernels": kernels,
        "hosts": hosts,
    }
    check_manifest(manifest)
    return manifest


def _kernel(op: Operation, module: str) -> KernelEntry:
    name = _symbol(op)
    attributes = {**op.attributes, **op.properties}
    arguments = list(op.regions[0].blocks[0].args)
    byval = [_has_byval(attributes, i) for i in range(len(arguments))]
    lowered = [str(a.type) for a in arguments]
    for text in lowered:
        try:
            empty = not text.startswith("!llvm.ptr") and abi.parse_type(text).size == 0
        except abi.AbiError as e:
            raise ManifestError(f"kernel @{name} has a parameter of a type that cannot be passed: {e}") from None
        if empty:
            raise ManifestError(f"kernel @{name} has a parameter of the empty type {text}, which NVPTX cannot take")
    params = _params(name, attributes, lowered, byval)
    required = _ints(attributes.get("nvvm.reqntid"))
    bound = required or _ints(attributes.get("nvvm.maxntid"))
    offset_bits = _ints(attributes.get("cute.offset_bits"))
    dynamic_smem = _ints(attributes.get("cute.dynamic_smem"))
    return {
        "name": name,
        "module": module,
        "params": params,
        "names": _names(arguments),
        "block": _three(required),
        "max_threads": _product(bound) if bound else 1024,
        "cluster": _three(_ints(attributes.get("nvvm.cluster_dim"))),
        "offset_bits": offset_bits[0] if offset_bits else 64,
        "dynamic_smem": dynamic_smem[0] if dynamic_smem else 0,
    }


def _host(op: Operation, program: host_program.Program) -> HostEntry:
    attributes = {**op.attributes, **op.properties}
    arguments = list(op.regions[0].blocks[0].args)
    lowered = [str(a.type) for a in arguments]
    name = _symbol(op)
    entry: HostEntry = {
        "name": name,
        "params": _params(name, attributes, lowered, [False] * len(lowered)),
        "names": _names(arguments),
        "program": program,
    }
    fallback = attributes.get("cute.fallback")
    if fallback is not None:
        entry["fallback"] = str(getattr(getattr(fallback, "root_reference", fallback), "data", fallback))
    return entry


def _params(name: str, attributes: dict[str, Attribute], lowered: Sequence[str], byval: Sequence[bool]) -> list[Param]:
    given = attributes.get("cute.args")
    types = cast("Sequence[StringAttr]", getattr(given, "data", ()))
    texts = [str(t.data) for t in types] if given is not None else list(lowered)
    if len(texts) != len(lowered):
        raise ManifestError(f"@{name}: cute.args lists {len(texts)} types, the function takes {len(lowered)} arguments")
    params: list[Param] = []
    for i, (text, low) in enumerate(zip(texts, lowered)):
        try:
            params.append(describe(text, low, byval=byval[i]))
        except (SignatureError, ValueError) as e:
            raise ManifestError(f"@{name}, argument {i}: {e}") from e
    return params


def check_manifest(manifest: Manifest) -> None:
    """Host programs name kernels that exist, with as many parameters as they pass; variants are congruent.

    Raises :class:`ManifestError`.
    """
    kernels = {k["name"]: k for k in manifest["kernels"]}
    _check_fallbacks(manifest["hosts"])
    for host in manifest["hosts"]:
        launch = cast("dict[str, object]", host["program"]["launch"])
        base = kernels.get(str(launch["kernel"]))
        variants = cast("list[str]", launch["variants"])
        passed = len(cast("list[int]", launch["args"]))
        for name in (str(launch["kernel"]), *variants):
            kernel = kernels.get(name)
            if kernel is None or base is None:
                raise ManifestError(f"host function @{host['name']} launches @{name}, which is no kernel here")
            if len(kernel["params"]) != passed:
                raise ManifestError(
                    f"host function @{host['name']} passes {passed} arguments, "
                    f"kernel @{name} takes {len(kernel['params'])}"
                )
            _check_maps(host["name"], cast("list[str] | None", launch.get("types")), kernel)
            for i, (a, b) in enumerate(zip(base["params"], kernel["params"])):
                if a["kind"] != b["kind"] or _profile(a) != _profile(b):
                    raise ManifestError(
                        f"kernels @{base['name']} and @{name} differ in the form of argument {i}: "
                        f"{a['type']} and {b['type']}"
                    )


def _check_maps(host: str, passed: list[str] | None, kernel: KernelEntry) -> None:
    """The tensor maps that a kernel takes are those that the host makes."""
    for i, param in enumerate(kernel["params"]):
        if param["kind"] == "tensormap" and passed is not None and passed[i] != param["type"]:
            raise ManifestError(
                f"host function @{host} passes {passed[i]} as argument {i}, kernel @{kernel['name']} takes "
                f"{param['type']}"
            )


def _check_fallbacks(hosts: Sequence[HostEntry]) -> None:
    """A fallback is another host function with the same arguments, and falling back ends."""
    named = {h["name"]: h for h in hosts}
    for host in hosts:
        seen, at = [host["name"]], host
        while "fallback" in at:
            name = at["fallback"]
            if name in seen:
                raise ManifestError(f"host function @{host['name']} falls back to itself ({', '.join(seen)})")
            if name not in named:
                raise ManifestError(
                    f"host function @{at['name']} falls back to @{name}, which is no function here that launches"
                )
            seen.append(name)
            kinds = [[(p["kind"], p.get("element")) for p in h["params"]] for h in (host, named[name])]
            if kinds[0] != kinds[1]:
                raise ManifestError(
                    f"host functions @{host['name']} and @{name}, its fallback, differ in the form of their arguments"
                )
            at = named[name]


def _profile(param: Param) -> object:
    """What a variant must share: the nesting of the trees and the element type."""

    def shape(tree: Tree) -> object:
        return [shape(t) for t in tree] if isinstance(tree, list) else 0

    return shape(param.get("shape", 0)), shape(param.get("stride", 0)), param.get("element"), param.get("space")


def required_alignment(kernels: Sequence[KernelEntry]) -> int:
    """The largest alignment in bytes that any pointer of these kernels asks for (a power of two)."""
    return max((p.get("alignment", 1) for k in kernels for p in k["params"]), default=1)


def dynamic_count(param: Param) -> int:
    """Number of dynamic leaves."""
    trees = (param.get("shape"), param.get("stride"))
    return sum(isinstance(leaf, dict) for t in trees if t is not None for leaf in leaves(t))


# ----------------------------------------------------------------------------------------------------------- helpers


def _symbol(op: Operation) -> str:
    return str({**op.attributes, **op.properties}["sym_name"].data)  # type: ignore[attr-defined]


def _is_kernel(op: Operation) -> bool:
    attributes = {**op.attributes, **op.properties}
    return "gpu.kernel" in attributes or "nvvm.kernel" in attributes


def _has_byval(attributes: dict[str, Attribute], index: int) -> bool:
    given = attributes.get("arg_attrs")
    if given is None:
        return False
    return "llvm.byval" in given.data[index].data  # type: ignore[attr-defined]


def _names(arguments: Sequence[object]) -> list[str]:
    return [str(getattr(a, "name_hint", None) or f"arg{i}") for i, a in enumerate(arguments)]


def _ints(attribute: Attribute | None) -> list[int]:
    if attribute is None:
        return []
    if hasattr(attribute, "get_values"):
        return [int(v) for v in attribute.get_values()]  # type: ignore[attr-defined]
    inner = getattr(attribute, "value", None)
    if inner is not None and hasattr(inner, "data"):
        return [int(inner.data)]
    return []


def _three(values: list[int]) -> list[int] | None:
    return (values + [1, 1])[:3] if values else None


def _product(values: Sequence[int]) -> int:
    out = 1
    for v in values:
        out *= v
    return out
