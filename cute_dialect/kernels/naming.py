"""Names and comments for what a builder makes, so that the text it prints is one for people.

>>> from cute_dialect.kernels.builder import Builder
>>> b = Builder()
>>> with b.kernel("k", {"x": '!cute.memref<f32, gmem, "128:1">'}, threads=128) as (x,):
...     tid = named(noted(b.thread_id(), "Who am I?"), "tid")
>>> [line.strip() for line in pretty(b).splitlines() if "tid" in line or "//" in line]
['// Who am I?', '%tid = nvvm.read.ptx.sreg.tid.x : i32']
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from cute_dialect.kernels.builder import Builder, Value

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.ir import Attribute, Operation, SSAValue

__all__ = ["named", "noted", "pretty", "type_names"]

_NOTE = "cute.note"
_LONG = 28
"""Types whose text is longer get a name."""


def named(value: Value, name: str) -> Value:
    """The value, called ``%name`` in the text."""
    value.ssa.name_hint = name
    return value


def noted(value: Value, comment: str) -> Value:
    """The value, with a comment on the line above the op that makes it."""
    from xdsl.dialects.builtin import StringAttr
    from xdsl.ir import Operation

    owner = value.ssa.owner
    assert isinstance(owner, Operation)
    owner.attributes[_NOTE] = StringAttr(comment)
    return value


def type_names(b: Builder, known: Mapping[str, str | Attribute]) -> dict[str, Attribute]:
    """Names for the long types of the module: the given ones, then those of named values, ``!tA`` for ``%tA``.

    The same name in two kernels with different types gets the rest of the kernel's name: ``!tA_16`` in ``@gemm_16``.
    """
    found: dict[str, Attribute] = {name: b.type(t) for name, t in known.items()}
    taken = set(found.values())
    for function in b.module.walk():
        if function.name not in ("gpu.func", "func.func"):
            continue
        suffix = _suffix(function)
        values: list[SSAValue] = [*function.regions[0].block.args]
        for op in function.walk():
            values += op.results
        for v in values:
            hint = v.name_hint
            if hint is None or v.type in taken or not v.type.name.startswith("cute.") or len(str(v.type)) <= _LONG:
                continue
            name = next(n for n in (hint, hint + suffix, *(f"{hint}{suffix}_{i}" for i in range(99))) if n not in found)
            found[name] = v.type
            taken.add(v.type)
    return found


def _suffix(function: Operation) -> str:
    from xdsl.dialects.builtin import StringAttr

    symbol = {**function.attributes, **function.properties}.get("sym_name")
    words = symbol.data.split("_", 1) if isinstance(symbol, StringAttr) else []
    return f"_{words[1]}" if len(words) > 1 else ""


def pretty(b: Builder, known: Mapping[str, str | Attribute] | None = None, head: str = "") -> str:
    """The text of the module with names for its types and its comments; ``head`` is the comment at the top."""
    text = b.text(type_names(b, known or {}))
    lines = [f"// {line}".rstrip() for line in head.strip().splitlines()]
    lines += [""] if lines else []
    for line in text.splitlines():
        found = re.search(rf'(?:, )?{re.escape(_NOTE)} = "([^"]*)"', line)
        if found is not None:
            indent = line[: len(line) - len(line.lstrip())]
            line = line[: found.start()] + line[found.end() :]
            line = line.replace(" {}", "", 1).replace("{, ", "{", 1)
            if lines and lines[-1] != "" and not lines[-1].endswith("{"):
                lines.append("")
            lines += [f"{indent}// {words}" for words in found.group(1).split("|")]
        lines.append(line)
    return "\n".join(lines) + "\n"
