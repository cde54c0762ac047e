"""Schema of a manifest: a table of its fields, and consistency checks between them.

A manifest may be old, damaged or written by another program.  It must not crash a launch or launch anything but what
it describes, so :func:`check_document` checks every field.  It also checks fields against each other, e.g. the size
of a parameter against its type, and the arguments of a host program against those of the kernel.  The error names the
first wrong field by its path: ``kernels[0].params[2].size: expected …``.

The table consists of validators for plain data:

>>> check = record({"name": text(), "block": nullable(list_of(integer(1, 1024), 3))})
>>> check({"name": "add", "block": [128, 1, 1]}, "kernel")
>>> check({"name": "add", "block": [128, 0, 1]}, "kernel")
Traceback (most recent call last):
...
cute_dialect.runtime.manifest_schema.SchemaError: kernel.block[1]: expected an integer from 1 to 1024, got 0
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, cast

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.runtime import abi, host_program
from cute_dialect.runtime.host_program import launch_records
from cute_dialect.runtime.manifest import (
    FIELDS,
    FORMAT,
    HostEntry,
    KernelEntry,
    Manifest,
    ManifestError,
    Param,
    SignatureError,
    Tree,
    check_manifest,
    dynamic_leaves,
    integer_slots,
    leaves,
)

__all__ = [
    "Check",
    "SchemaError",
    "check_document",
    "expected",
    "integer",
    "list_of",
    "map_of",
    "nullable",
    "one_of",
    "record",
    "row",
    "text",
]


# ----------------------------------------------------------------------------------------------------------- validators


Check: TypeAlias = Callable[[object, str], None]
"""Checks a value; the second argument is the name of its field.  Raises :class:`SchemaError`."""


class SchemaError(Exception):
    """A field has an invalid value.  The message names the field, the expected and the actual value."""


def expected(where: str, what: str, got: object) -> SchemaError:
    """Build the error for a field with a wrong value."""
    try:
        shown = json.dumps(got)
    except (TypeError, ValueError, RecursionError):
        shown = type(got).__name__
    return SchemaError(f"{where}: expected {what}, got {shown if len(shown) <= 80 else shown[:77] + '...'}")


def integer(low: int, high: int) -> Check:
    """Accept an integer from ``low`` to ``high``, but neither a bool nor ``1.0``."""

    def check(value: object, where: str) -> None:
        if type(value) is not int or not low <= value <= high:
            raise expected(where, f"an integer from {low} to {high}", value)

    return check


def one_of(*values: object) -> Check:
    """Accept one of these values."""

    def check(value: object, where: str) -> None:
        if not any(type(value) is type(v) and value == v for v in values):
            raise expected(where, "one of " + ", ".join(json.dumps(v) for v in values), value)

    return check


def text(pattern: str = ".*", what: str = "a text") -> Check:
    """Accept a string that ``pattern`` matches in full."""
    compiled = re.compile(pattern, re.S)

    def check(value: object, where: str) -> None:
        if not isinstance(value, str) or not compiled.fullmatch(value):
            raise expected(where, what, value)

    return check


def nullable(inner: Check) -> Check:
    """Accept ``null`` and the values that ``inner`` accepts."""
    return lambda value, where: None if value is None else inner(value, where)


def list_of(inner: Check, length: int | None = None) -> Check:
    """Accept a list whose entries ``inner`` accepts."""

    def check(value: object, where: str) -> None:
        if not isinstance(value, list):
            raise expected(where, "a list", value)
        entries = cast("list[object]", value)
        if length is not None and len(entries) != length:
            raise expected(where, f"a list of {length}", entries)
        for i, entry in enumerate(entries):
            inner(entry, f"{where}[{i}]")

    return check


def row(*columns: Check) -> Check:
    """Accept a list with one entry per column."""

    def check(value: object, where: str) -> None:
        if not isinstance(value, list) or len(cast("list[object]", value)) != len(columns):
            raise expected(where, f"a list of {len(columns)}", cast(object, value))
        for i, (column, entry) in enumerate(zip(columns, cast("list[object]", value))):
            column(entry, f"{where}[{i}]")

    return check


def map_of(key: Check, inner: Check) -> Check:
    """Accept an object with any field names that ``key`` accepts."""

    def check(value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise expected(where, "an object", value)
        for name, entry in cast("dict[str, object]", value).items():
            key(name, f"a name in {where}")
            inner(entry, f"{where}[{json.dumps(name)}]")

    return check


def record(fields: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """Accept an object with these fields and no others; fields of ``optional`` may be missing."""
    all_fields = {**fields, **(optional or {})}

    def check(value: object, where: str) -> None:
        dot = f"{where}." if where else ""
        if not isinstance(value, dict):
            raise expected(where or "the file", "an object", value)
        given = cast("dict[str, object]", value)
        for name in fields:
            if name not in given:
                raise SchemaError(f"{dot}{name}: expected this field, it is missing")
        for name, entry in given.items():
            if name not in all_fields:
                raise SchemaError(f"{dot}{name}: unknown field (known: {', '.join(all_fields)})")
            all_fields[name](entry, f"{dot}{name}")

    return check


# --------------------------------------------------------------------------------------------------------- the manifest


_BYTES = integer(0, 1 << 31)
_THREADS = integer(1, DEFAULT_TARGET.threads)
_NAME = text(r".+", "a name")
_POWER = one_of(*(1 << i for i in range(13)))
_FILE = text(r"(?!\.\.?$)(?!manifest\.json$)[^/\0]{1,255}", "the name of a file in this folder")
_SHA = text(r"[0-9a-f]{64}", "a SHA-256, 64 hexadecimal digits")


def _tree(value: object, where: str) -> None:
    """Check a shape or stride: an integer, ``null``, a dynamic leaf, or a list of those."""
    if isinstance(value, list):
        for i, entry in enumerate(cast("list[object]", value)):
            _tree(entry, f"{where}[{i}]")
    elif isinstance(value, dict):
        _LEAF(cast(object, value), where)
    elif value is not None and type(value) is not int:
        raise expected(where, "an integer, null, a dynamic leaf or a list", value)


_LEAF = record({"width": one_of(8, 16, 32, 64), "div": integer(1, (1 << 63) - 1), "offset": integer(0, 4096)})

_COMMON = ("kind", "type", "lowered", "size", "align")
_PARAM = record(
    {
        "kind": one_of("memref", "pointer", "scalar", "tuple", "layout", "tensormap", "opaque"),
        "type": text(),
        "lowered": text(),
        "size": integer(0, 32764),  # PTX ISA, "Kernel Function Parameters": at most 32764 bytes
        "align": _POWER,
    },
    {
        "element": text(r"(si|u?i|t?f|bf)\d+|f8E\w+|index", "an element type"),
        "space": text(r"\w+", "a memory space"),
        "alignment": one_of(*(1 << i for i in range(31))),
        "pointer": integer(0, 4096),
        "shape": _tree,
        "stride": _tree,
        "div": integer(1, (1 << 63) - 1),
    },
)

_KERNEL = record(
    {
        "name": _NAME,
        "module": _NAME,
        "params": list_of(_PARAM),
        "names": list_of(text()),
        "block": nullable(row(_THREADS, _THREADS, integer(1, 64))),
        "max_threads": _THREADS,
        "cluster": nullable(list_of(integer(1, DEFAULT_TARGET.opt_in_cluster), 3)),
        "offset_bits": one_of(32, 64),
        "dynamic_smem": _BYTES,
    }
)

_REGISTER = integer(0, 1 << 20)
_REGISTERS = list_of(_REGISTER)
_WIDTH = integer(1, 128)
_PATH = list_of(integer(0, 4096))


def _number(value: object, where: str) -> None:
    if type(value) not in (int, float):
        raise expected(where, "a number", value)


def _anything(value: object, where: str) -> None:
    """Accept any value; :class:`_Program` checks it."""


_EXTRA: Mapping[str, Check] = {
    "const": row(_number, _WIDTH),
    "same": one_of(None),
    "select": one_of(None),
    "poison": text(),
    "zero": text(),
    "get": _PATH,
    "set": _PATH,
    "gep": row(integer(0, 1 << 40), nullable(integer(-(1 << 40), 1 << 40))),
    "tensor_map": integer(1, 5),
    "im2col_map": integer(3, 5),
    "cmpi": row(one_of(*host_program.PREDICATES), _WIDTH),
    "cmpf": row(one_of(*host_program.FLOAT_PREDICATES), one_of(*host_program.FLOATS)),
    "absi": _WIDTH,
    **{name: one_of(*host_program.FLOATS) for name in host_program.FLOAT_STEPS},
    **{name: row(_WIDTH, one_of(*host_program.FLOATS)) for name in host_program.FROM_INTEGER},
    "assert": text(),
    "if": row(_anything, _REGISTERS, _anything, _REGISTERS),
    **{name: _WIDTH for name in host_program.BINARY},
    **{name: row(_WIDTH, _WIDTH) for name in host_program.CASTS},
}
"""Schema of the extra field of an instruction, by the instruction's name."""

_ON_FLOATS = (*host_program.FLOAT_STEPS, "cmpf")
_TWO_OPERANDS = (*host_program.BINARY, *host_program.FLOAT_BINARY, "cmpi", "cmpf")

_FLAG = one_of(False, True)
_LAUNCH = record(
    {
        "kernel": _NAME,
        "variants": list_of(_NAME),
        "when": list_of(row(_REGISTER, one_of(0, 1))),
        "fallback": _FLAG,
        "cooperative": _FLAG,
        "pdl": _FLAG,
        "grid": list_of(_REGISTER, 3),
        "block": list_of(_REGISTER, 3),
        "cluster": nullable(list_of(_REGISTER, 3)),
        "smem": nullable(_REGISTER),
        "args": _REGISTERS,
    },
    {"types": list_of(text()), "preferred_cluster": list_of(integer(1, DEFAULT_TARGET.opt_in_cluster), 3)},
)

_HOST = record(
    {
        "name": _NAME,
        "params": list_of(_PARAM),
        "names": list_of(text()),
        "program": record(
            {
                "name": _NAME,
                "arguments": integer(0, 4096),
                "code": list_of(_anything),
                "launches": list_of(_LAUNCH),
            }
        ),
    },
    {
        "fallback": _NAME,
        "symbols": list_of(
            record(
                {"name": text(), "places": list_of(row(integer(0, 4096), one_of("shape", "stride"), integer(0, 4096)))}
            )
        ),
    },
)

_COUNT = integer(0, 1 << 40)
_ASSEMBLED = record(
    {
        "ptxas": text(),
        "kernels": list_of(
            record(
                {
                    "name": text(),
                    **{
                        key: _COUNT
                        for key in ("registers", "spill_stores", "spill_loads", "stack", "smem", "constant", "barriers")
                    },
                },
                {"code": _COUNT},
            )
        ),
        "warnings": list_of(text()),
    }
)

_DOCUMENT = record(
    {
        "format": one_of(FORMAT),
        "chip": text(r"sm_\d{2,3}[af]?", "sm_<number>, e.g. sm_90a"),
        "features": text(r"[\w+,.-]*", "features like +ptx83"),
        "opt_level": integer(0, 3),
        "modules": list_of(_NAME),
        "kernels": list_of(_KERNEL),
        "hosts": list_of(_HOST),
        "code": list_of(
            record(
                {"module": _NAME, "ptx": _FILE, "cubin": nullable(_FILE), "ptxas": nullable(_ASSEMBLED)},
                {"report": _FILE},
            )
        ),
        "stages": list_of(text(r"\d\d+-[^/\0]{1,200}\.mlir", "the name of a stage like 01-input.mlir")),
        "files": map_of(_FILE, _SHA),
    },
    {"remarks": list_of(text())},
)


def check_document(document: object) -> None:
    """Check a whole manifest document.  Raises :class:`SchemaError`."""
    try:
        _DOCUMENT(document, "")
        manifest = cast(Manifest, document)
        _check_names(manifest)
        for i, kernel in enumerate(manifest["kernels"]):
            _check_kernel(kernel, manifest, f"kernels[{i}]")
        _check_files(cast("dict[str, object]", document))
        for i, host in enumerate(manifest["hosts"]):
            _check_params(host["params"], host["names"], f"hosts[{i}]")
            for j, launch in enumerate(launch_records(host["program"])):
                args = cast("list[object]", launch["args"])
                types = cast("list[object]", launch.get("types", args))
                if len(types) != len(args):
                    count = f"a list of {len(args)}, the number of args"
                    raise expected(f"hosts[{i}].program.launches[{j}].types", count, types)
        check_manifest(manifest)
        for i, host in enumerate(manifest["hosts"]):
            _check_program(host, manifest, f"hosts[{i}].program")
    except ManifestError as e:
        raise SchemaError(str(e)) from None
    except RecursionError:
        raise SchemaError("it is nested too deeply") from None


def _check_names(manifest: Manifest) -> None:
    """Check that names are unique."""
    seen: dict[str, str] = {}
    for key in ("kernels", "hosts"):
        for i, entry in enumerate(manifest[key]):
            where = f"{key}[{i}].name"
            if entry["name"] in seen:
                raise expected(where, f"a unique name (it is already used by {seen[entry['name']]})", entry["name"])
            seen[entry["name"]] = where
    for i, name in enumerate(manifest["modules"]):
        if name in manifest["modules"][:i]:
            raise expected(f"modules[{i}]", "a unique name", name)


def _check_files(document: Mapping[str, object]) -> None:
    """Check that each file is listed and used once, and that each kernel has code, unless there is no code."""
    files = cast("dict[str, str]", document["files"])
    modules = cast("list[str]", document["modules"])
    code = cast("list[dict[str, str | None]]", document["code"])
    used = [(f"code[{i}].{k}", c.get(k)) for i, c in enumerate(code) for k in ("ptx", "cubin", "report")]
    used += [(f"stages[{i}]", name) for i, name in enumerate(cast("list[str]", document["stages"]))]
    seen: set[str] = set()
    for where, name in used:
        if name is None:
            continue
        if name not in files or name in seen:
            what = "a file that nothing else names" if name in seen else "one of the files"
            raise expected(where, f"{what} ({', '.join(files) or 'there are none'})", name)
        seen.add(name)
    for i, c in enumerate(code):
        if c["module"] not in modules or c["module"] in [other["module"] for other in code[:i]]:
            raise expected(f"code[{i}].module", f"one of the modules, once each ({', '.join(modules)})", c["module"])
    for i, kernel in enumerate(cast("list[KernelEntry]", document["kernels"])):
        if code and kernel["module"] not in [c["module"] for c in code]:
            raise expected(f"kernels[{i}].module", "a module with code", kernel["module"])


def _check_kernel(kernel: KernelEntry, manifest: Manifest, where: str) -> None:
    if kernel["module"] not in manifest["modules"]:
        raise expected(f"{where}.module", f"one of the modules ({', '.join(manifest['modules'])})", kernel["module"])
    block = kernel["block"]
    if block is not None and block[0] * block[1] * block[2] > kernel["max_threads"]:
        raise expected(f"{where}.block", f"at most max_threads ({kernel['max_threads']}) threads", block)
    _check_params(kernel["params"], kernel["names"], where)


def _check_params(params: Sequence[Param], names: Sequence[str], where: str) -> None:
    """Check each parameter against its types."""
    if len(names) != len(params):
        raise expected(f"{where}.names", f"a list of {len(params)}, the number of params", list(names))
    for i, param in enumerate(params):
        _check_param(param, f"{where}.params[{i}]")


def _check_param(param: Param, where: str) -> None:
    """Check that a parameter has exactly the fields of its kind, with the layout of its lowered type."""
    known = (*_COMMON, *FIELDS[param["kind"]])
    for key in dict.fromkeys((*known, *param)):
        if key not in param:
            raise SchemaError(f"{where}.{key}: expected this field for {param['type']}, it is missing")
        if key not in known:
            raise SchemaError(f"{where}.{key}: unknown field for {param['type']}")
    wanted: dict[str, object] = {"size": 128, "align": 64}
    try:
        if param["kind"] != "tensormap":
            wanted = _lowered_fields(param)
    except ValueError as e:
        raise SchemaError(f"{where}.type: {e}") from None
    for key, value in wanted.items():
        given = cast(object, param[key])
        if given != value:
            raise expected(f"{where}.{key}", f"{json.dumps(value)} (by its type, {param['type']})", given)
    if param["kind"] in ("memref", "layout"):
        shape, stride = param.get("shape"), param.get("stride")
        if _profile(shape) != _profile(stride) or None in (*leaves(shape), *leaves(stride)):
            raise expected(f"{where}.stride", f"a tree of integers like the shape, {json.dumps(shape)}", stride)


def _lowered_fields(param: Param) -> dict[str, object]:
    """Return the fields that the lowered type determines.  Raises ValueError if it is of another kind."""
    lowered = abi.parse_type(param["lowered"])
    fields: dict[str, object] = {"size": lowered.size, "align": lowered.align}
    if "pointer" in param:
        fields["pointer"] = 0
    if param["kind"] in ("pointer", "scalar"):
        if isinstance(lowered, abi.Struct) or (lowered.name == "ptr") != (param["kind"] == "pointer"):
            raise SignatureError(f"{param['type']} does not lower to {param['lowered']}")
        if param["kind"] == "scalar":
            fields["element"] = lowered.name
    elif param["kind"] != "opaque":
        for leaf, (_, offset) in zip(dynamic_leaves(param), integer_slots(param)):
            if leaf["offset"] != offset:
                raise SignatureError(f"expected a dynamic leaf at byte {offset}, got {leaf['offset']}")
    return fields


def _profile(tree: Tree) -> object:
    return [_profile(t) for t in tree] if isinstance(tree, list) else 0


# ----------------------------------------------------------------------------------------------------- host programs

_Kind: TypeAlias = "str | tuple[_Kind, ...]"
"""Type of a register: ``integer``, ``float``, ``pointer``, ``map``, or a tuple of those."""


def _kind_of(lowered: str, where: str) -> _Kind:
    def kind(t: abi.Type) -> _Kind:
        if isinstance(t, abi.Struct):
            return tuple(kind(m) for m in t.members)
        return "pointer" if t.name == "ptr" else "integer" if t.name[0] == "i" else "float"

    try:
        return kind(abi.parse_type(lowered))
    except abi.AbiError as e:
        raise SchemaError(f"{where}: {e}") from None


def _passed(param: Param, where: str) -> _Kind:
    return "map" if param["kind"] == "tensormap" else _kind_of(param["lowered"], where)


def _show(kind: _Kind) -> str:
    return kind if isinstance(kind, str) else f"({', '.join(map(_show, kind))})"


def _check_program(host: HostEntry, manifest: Manifest, where: str) -> None:
    """Check that registers are set once, before their use, with the type that the use needs."""
    program = host["program"]
    if program["arguments"] != len(host["params"]):
        raise expected(f"{where}.arguments", f"{len(host['params'])}, the number of params", program["arguments"])
    registers = {i: _passed(p, where) for i, p in enumerate(host["params"])}
    top = _Program(registers)
    top.code(cast("list[object]", program["code"]), f"{where}.code")
    before: object = None
    for i, launch in enumerate(launch_records(program)):
        if launch["fallback"] and launch["when"] != before:
            raise expected(
                f"{where}.launches[{i}].when",
                "the conditions of the previous launch, because this is its fallback",
                before,
            )
        before = launch["when"]
        kernel = next(k for k in manifest["kernels"] if k["name"] == launch["kernel"])
        _check_registers(launch, kernel, top, f"{where}.launches[{i}]")


def _check_registers(launch: Mapping[str, object], kernel: KernelEntry, top: _Program, where: str) -> None:
    """Check that the registers of a launch are set in its branch."""
    use = top.under(cast("list[list[int]]", launch["when"]), f"{where}.when")
    for key in ("grid", "block", "cluster"):
        for i, register in enumerate(cast("list[int] | None", launch[key]) or ()):
            use.holds(register, "integer", f"{where}.{key}[{i}]")
    if launch["smem"] is not None:
        use.holds(cast(int, launch["smem"]), "integer", f"{where}.smem")
    for i, (register, param) in enumerate(zip(cast("list[int]", launch["args"]), kernel["params"])):
        use.holds(register, _passed(param, where), f"{where}.args[{i}]")


_Path: TypeAlias = "tuple[tuple[int, int], ...]"
"""Conditions of the ``if`` instructions around an instruction: (register, branch taken)."""


class _Program:
    """Type checker for the code of a host program.

    ``path`` is the position of the code in nested branches.  ``around`` is the checker of the enclosing code, with
    which this one shares the sets of all used registers and of registers per branch.
    """

    def __init__(self, registers: dict[int, _Kind], path: _Path = (), around: _Program | None = None):
        self._registers = registers
        self._path = path
        self._taken: set[int] = set(registers) if around is None else around._taken
        self._inside: dict[_Path, dict[int, _Kind]] = {} if around is None else around._inside

    def under(self, when: Sequence[Sequence[int]], where: str) -> _Program:
        """Return a checker that knows the registers set in a branch and around it.

        Raises :class:`SchemaError` if the code has no such branch.
        """
        path = tuple([(register, side) for register, side in when])
        registers = dict(self._registers)
        for n in range(1, len(path) + 1):
            if path[:n] not in self._inside:
                raise expected(
                    f"{where}[{n - 1}]", "a condition and a branch (0 or 1) of an 'if' in the code", list(path[n - 1])
                )
            registers |= self._inside[path[:n]]
        return _Program(registers)

    def holds(self, register: int, wanted: _Kind | None, where: str) -> _Kind:
        """Return the type of a register.  Raises :class:`SchemaError` if ``wanted`` is another type."""
        if register not in self._registers:
            raise expected(where, "a register that was set before", register)
        found = self._registers[register]
        if wanted is not None and found != wanted:
            raise SchemaError(f"{where}: expected a register with {_show(wanted)}, {register} holds {_show(found)}")
        return found

    def _set(self, register: int, kind: _Kind, where: str) -> None:
        if register in self._taken:
            raise expected(where, "a register that was not set before", register)
        self._taken.add(register)
        self._registers[register] = kind

    def code(self, code: Sequence[object], where: str) -> None:
        """Check instructions in order."""
        for i, instruction in enumerate(code):
            self._instruction(instruction, f"{where}[{i}]")

    def _instruction(self, instruction: object, where: str) -> None:
        row(one_of(*_EXTRA), _anything, _REGISTERS, _anything)(instruction, where)
        name, result, given, extra = cast("tuple[str, object, list[int], object]", instruction)
        _EXTRA[name](extra, f"{where}[3]")
        counts = {"const": 0, "poison": 0, "zero": 0, "select": 3, "set": 2}
        count = counts.get(name, 2 if name in _TWO_OPERANDS else 1)
        if name == "gep":
            count = 2 if cast("list[object]", extra)[1] is None else 1
        elif name in ("tensor_map", "im2col_map"):
            count = 6 + sum(host_program.map_sizes(name, cast(int, extra)))
        if len(given) != count:
            raise expected(f"{where}[2]", f"a list of {count} for '{name}'", given)
        operands = [f"{where}[2][{i}]" for i in range(count)]
        if name == "if":
            self._if(cast("list[int]", result), given[0], cast("list[list[object]]", extra), where)
            return
        if name == "assert":
            one_of(-1)(result, f"{where}[1]")
            self.holds(given[0], "integer", operands[0])
            return
        _REGISTER(result, f"{where}[1]")
        kind: _Kind = "integer"
        if name == "const":
            kind = "float" if isinstance(cast("list[object]", extra)[0], float) else "integer"
        elif name in ("poison", "zero"):
            kind = _kind_of(cast(str, extra), f"{where}[3]")
        elif name == "same":
            kind = self.holds(given[0], None, operands[0])
        elif name == "select":
            self.holds(given[0], "integer", operands[0])
            kind = self.holds(given[2], self.holds(given[1], None, operands[1]), operands[2])
        elif name in ("get", "set"):
            kind = whole = self.holds(given[0], None, operands[0])
            for step in cast("list[int]", extra):
                if isinstance(kind, str) or step >= len(kind):
                    raise SchemaError(f"{where}[3]: expected a path into {_show(whole)}, got {extra}")
                kind = kind[step]
            if name == "set":
                self.holds(given[1], kind, operands[1])
                kind = whole
        else:
            pointers = name in ("gep", "tensor_map", "im2col_map")
            for i, (register, place) in enumerate(zip(given, operands)):
                wanted = "pointer" if pointers and i == 0 else "float" if name in _ON_FLOATS else "integer"
                self.holds(register, wanted, place)
            floats = name in host_program.FLOAT_STEPS or name in host_program.FROM_INTEGER
            kind = "pointer" if name == "gep" else "map" if pointers else "float" if floats else "integer"
        self._set(cast(int, result), kind, f"{where}[1]")

    def _if(self, results: list[int], condition: int, parts: list[list[object]], where: str) -> None:
        self.holds(condition, "integer", f"{where}[2][0]")
        _REGISTERS(results, f"{where}[1]")
        kinds: list[list[_Kind]] = []
        for at in (0, 2):
            list_of(_anything)(parts[at], f"{where}[3][{at}]")
            path = (*self._path, (condition, 1 if at == 0 else 0))
            inner = _Program(dict(self._registers), path, self)
            inner.code(parts[at], f"{where}[3][{at}]")
            self._inside[path] = self._inside.get(path, {}) | inner._registers
            given = cast("list[int]", parts[at + 1])
            kinds.append([inner.holds(r, None, f"{where}[3][{at + 1}][{i}]") for i, r in enumerate(given)])
        if kinds[0] != kinds[1] or len(kinds[0]) != len(results):
            raise SchemaError(
                f"{where}[3]: expected both branches to yield the types of the {len(results)} results, got "
                f"{_show(tuple(kinds[0]))} and {_show(tuple(kinds[1]))}"
            )
        for i, (register, kind) in enumerate(zip(results, kinds[0])):
            self._set(register, kind, f"{where}[1][{i}]")
