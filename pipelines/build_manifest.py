"""Manifest builder: converts a lowered module to the plain data that a launch reads.

The input is the output of ``cute-to-base``.  :mod:`cute_dialect.runtime.manifest` describes and checks the result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.pipelines.describe_parameter import describe, parse_type
from cute_dialect.pipelines.extract_host_program import extract_host_program, op_name
from cute_dialect.runtime import abi
from cute_dialect.runtime.host_program import HostError, Program
from cute_dialect.runtime.manifest import (
    FORMAT,
    EqualNumbers,
    HostEntry,
    KernelEntry,
    Manifest,
    ManifestError,
    Param,
    SignatureError,
    check_manifest,
)

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, Operation

__all__ = ["build_manifest"]


def build_manifest(module: ModuleOp, context: Context, *, chip: str, features: str, opt_level: int) -> Manifest:
    """Describe the kernels and host functions of a lowered module; ``context`` parses the types in ``cute.args``.

    Raises :class:`ManifestError`.
    """
    build = _Builder(context)
    kernels: list[KernelEntry] = []
    modules: list[str] = []
    hosts: list[HostEntry] = []
    for op in module.ops:
        name = op_name(op)
        if name == "gpu.module":
            module_name = _symbol(op)
            modules.append(module_name)
            for inner in op.regions[0].blocks[0].ops:
                if op_name(inner) in ("llvm.func", "gpu.func") and _is_kernel(inner):
                    kernels.append(build.kernel(inner, module_name))
        elif name in ("func.func", "llvm.func") and op.regions[0].blocks:
            try:
                program = extract_host_program(op)
            except HostError as e:
                raise ManifestError(str(e)) from e
            if program is not None:
                hosts.append(build.host(op, program))
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


class _Builder:
    """Builder of the entries; parses each type once."""

    def __init__(self, context: Context):
        self._context = context
        self._types: dict[str, Attribute | None] = {}

    def _type(self, text: str) -> Attribute | None:
        if text not in self._types:
            self._types[text] = parse_type(text, self._context)
        return self._types[text]

    def kernel(self, op: Operation, module: str) -> KernelEntry:
        name = _symbol(op)
        attributes = {**op.attributes, **op.properties}
        arguments = list(op.regions[0].blocks[0].args)
        byval = [_has_byval(attributes, i) for i in range(len(arguments))]
        lowered = [str(a.type) for a in arguments]
        for text in lowered:
            try:
                empty = not text.startswith("!llvm.ptr") and abi.parse_type(text).size == 0
            except abi.AbiError as e:
                raise ManifestError(f"kernel @{name} has a parameter whose type cannot be passed: {e}") from None
            if empty:
                raise ManifestError(
                    f"kernel @{name} has a parameter of the empty type {text}, which NVPTX does not support"
                )
        params = self._params(name, attributes, lowered, byval)
        required = _ints(attributes.get("nvvm.reqntid"))
        bound = required or _ints(attributes.get("nvvm.maxntid"))
        offset_bits = _ints(attributes.get("cute.offset_bits"))
        dynamic_smem = _ints(attributes.get("cute.dynamic_smem"))
        return {
            "name": name,
            "module": module,
            "params": params,
            "names": _names(name, arguments, attributes),
            "block": _three(required),
            "max_threads": _product(bound) if bound else DEFAULT_TARGET.threads,
            "cluster": _three(_ints(attributes.get("nvvm.cluster_dim"))),
            "offset_bits": offset_bits[0] if offset_bits else 64,
            "dynamic_smem": dynamic_smem[0] if dynamic_smem else 0,
        }

    def host(self, op: Operation, program: Program) -> HostEntry:
        attributes = {**op.attributes, **op.properties}
        arguments = list(op.regions[0].blocks[0].args)
        lowered = [str(a.type) for a in arguments]
        name = _symbol(op)
        entry: HostEntry = {
            "name": name,
            "params": self._params(name, attributes, lowered, [False] * len(lowered)),
            "names": _names(name, arguments, attributes),
            "program": program,
        }
        fallback = attributes.get("cute.fallback")
        if fallback is not None:
            entry["fallback"] = str(getattr(getattr(fallback, "root_reference", fallback), "data", fallback))
        if "cute.symbols" in attributes:
            entry["symbols"] = _equal_numbers(name, attributes["cute.symbols"])
        return entry

    def _params(
        self, name: str, attributes: dict[str, Attribute], lowered: Sequence[str], byval: Sequence[bool]
    ) -> list[Param]:
        given = attributes.get("cute.args")
        texts = list(lowered)
        if given is not None:
            types = [getattr(t, "data", None) for t in cast("Sequence[Attribute]", getattr(given, "data", (given,)))]
            texts = [t for t in types if isinstance(t, str)]
            if len(texts) != len(types):
                raise ManifestError(f"@{name}: cute.args must be an array of strings; got {given}")
        if len(texts) != len(lowered):
            raise ManifestError(
                f"@{name}: cute.args lists {len(texts)} types, the function takes {len(lowered)} arguments"
            )
        params: list[Param] = []
        for i, (text, low) in enumerate(zip(texts, lowered)):
            try:
                params.append(describe(text, self._type(text), low, byval=byval[i]))
            except (SignatureError, ValueError) as e:
                raise ManifestError(f"@{name}, argument {i}: {e}") from e
        return params


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


def _names(function: str, arguments: Sequence[object], attributes: dict[str, Attribute]) -> list[str]:
    """Return the names of the parameters: ``cute.names``, or else the name hints of the values.

    Raises :class:`ManifestError` unless ``cute.names`` names every parameter, without duplicates.
    """
    given = attributes.get("cute.names")
    if given is None:
        return [str(getattr(a, "name_hint", None) or f"arg{i}") for i, a in enumerate(arguments)]
    names = [getattr(n, "data", None) for n in cast("Sequence[object]", getattr(given, "data", ()))]
    if len(names) != len(arguments) or len(set(names)) != len(names) or not all(isinstance(n, str) for n in names):
        raise ManifestError(
            f"@{function}: cute.names needs {len(arguments)} different strings, one per argument, got {given}"
        )
    return [str(n) for n in names]


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


def _equal_numbers(function: str, given: Attribute) -> list[EqualNumbers]:
    """Read ``cute.symbols``, groups of extents and strides that must be equal.

    Raises ManifestError on a syntax error.
    """
    found: list[EqualNumbers] = []
    for entry in cast("Sequence[object]", getattr(given, "data", (given,))):
        name, _, places = str(getattr(entry, "data", entry)).rpartition(": ")
        read = [re.fullmatch(r"(\d+)\.(shape|stride)\[(\d+)\]", place) for place in places.split(" = ")]
        if not name or len(read) < 2 or None in read:
            raise ManifestError(
                f'@{function}: cute.symbols needs strings like "n: 0.shape[0] = 1.shape[0]", got {entry}'
            )
        found.append({"name": name, "places": [[int(m[1]), m[2], int(m[3])] for m in read if m is not None]})
    return found
