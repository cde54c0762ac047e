"""Catalogue of documented names: ops, types, attributes, passes and the exports of ``cute_dialect.lang``.

The ops of this package have the documentation of ``docs/dialect.md`` (:mod:`cute_dialect.tools.docs.dialect`), those of
upstream dialects their declarations.  Passes and options have the text of ``cute-opt --help NAME``, Python names their
signatures and docstrings.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from enum import EnumMeta
from importlib import import_module
from inspect import cleandoc
from types import ModuleType

from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation

from cute_dialect.dialect.types import TYPES
from cute_dialect.ir.context import CuteContext, make_context
from cute_dialect.passes.outside import PassTable
from cute_dialect.tools.docs.dialect import EXAMPLE_OF_TYPE, code, facts, op_text, properties, sections
from cute_dialect.tools.lsp.analysis_results import Catalogue, Entry
from cute_dialect.tools.opt_options import GROUPS, CommandLineError, pass_help
from cute_dialect.upstream.op import TableOp
from cute_dialect.upstream.spec import ArgSpec, OpSpec

_PACKAGE = "cute_dialect"
_QUOTED = re.compile(r"((?:: |-> ))'([^']*)'")
_FORWARD = re.compile(r"ForwardRef\('([^']*)'\)")
_DEEPEST = 3
"""Modules of ``cute``, and their submodules, whose names are listed."""


def make_catalogue() -> Catalogue:
    """Return the catalogue, with a one-line description of each name.

    >>> made = make_catalogue()
    >>> made.ops["cute.size"].summary, made.flags["cse"].summary
    ('Returns the number of elements of a value.', 'eliminate common subexpressions')
    """
    context = make_context()
    assert isinstance(context, CuteContext)
    for name in sorted(context.registered_dialect_names):
        context.get_optional_op(f"{name}.there_is_none")  # This loads the dialect.
    return Catalogue(
        {op.name: _op(op) for op in context.loaded_ops},
        {a.name: Entry(a.name, _first_line(_doc(a))) for a in context.loaded_types if "." in a.name},
        {a.name: Entry(a.name, _first_line(_doc(a))) for a in context.loaded_attrs if "." in a.name},
        dict(_flags()),
        dict(_python()),
    )


def describe(kind: str, name: str) -> str:
    """Return the documentation of a name in Markdown, or an empty string for an unknown name.

    Args:
        kind: "op", "type", "attribute", "flag" or "python".

    >>> print(describe("type", "cute.layout"))
    **`!cute.layout`**
    <BLANKLINE>
    A shape and a congruent stride.
    <BLANKLINE>
    `!cute.layout<"(8,?):(?,1)">`
    """
    if kind == "flag":
        try:
            summary, _, rest = pass_help(name, PassTable()).strip().partition("\n")
        except CommandLineError:
            return ""
        summary = re.sub(r"\s{2,}", "`**: **`", summary)
        return f"**`{summary}`**\n\n{_blocks(code(rest.strip()))}".strip()
    if kind == "python":
        value = _value(name)
        return _of_python(name, value) if value is not None else ""
    context = make_context()
    if "." not in name:  # The name belongs to the builtin dialect.
        return ""
    if kind == "op":
        op = context.get_optional_op(name)
        return _op_text(op) if op is not None else ""
    attribute = context.get_optional_type(name) if kind == "type" else context.get_optional_attr(name)
    return _attribute_text(attribute, "!" if kind == "type" else "#") if attribute is not None else ""


def _doc(documented: type[Operation] | type[Attribute]) -> str:
    """Return the docstring of a class, but not the one that dataclasses generate."""
    doc = documented.__doc__ or ""
    return "" if doc.startswith(f"{documented.__name__}(") else cleandoc(doc)


def _op(op: type[Operation]) -> Entry:
    if TableOp in op.__mro__:  # Faster than issubclass, which checks a thousand subclasses.
        spec = _spec(op)
        named = tuple((a.name, a.kind.lstrip("@")) for a in spec.attrs.values())
        return Entry(op.name, _first_line(_doc(op)) or f"of upstream's dialect {spec.dialect}", named)
    if IRDLOperation not in op.__mro__:
        return Entry(op.name, "")
    found = (p.partition(":") for p in properties(_irdl(op)))
    named = tuple((p.split("`")[1], what.strip(" `")) for p, _, what in found)
    return Entry(op.name, _first_line(sections(_doc(op)).summary), named)


def _spec(op: type[Operation]) -> OpSpec:
    assert issubclass(op, TableOp)
    return op.spec()


def _irdl(op: type[Operation]) -> type[IRDLOperation]:
    assert issubclass(op, IRDLOperation)
    return op


def _op_text(op: type[Operation]) -> str:
    if TableOp in op.__mro__:
        return _declared(op.name, _doc(op), _spec(op))
    if IRDLOperation not in op.__mro__:
        return f"**`{op.name}`**"
    if op.__module__.startswith(_PACKAGE):
        return op_text(_irdl(op)).removeprefix("### ").replace(f"`{op.name}`", f"**`{op.name}`**", 1)
    doc = [_doc(op), ""] if _doc(op) else []
    return "\n".join([f"**`{op.name}`**", "", *doc, *facts(_irdl(op))])


def _declared(name: str, doc: str, spec: OpSpec) -> str:
    """Return the upstream declaration of an op."""
    out = [f"**`{name}`**", "", code(doc), ""] if doc else [f"**`{name}`**", ""]
    if spec.format and spec.format != "custom":
        out += ["```text", f"{name} {spec.format}", "```", ""]
    for what, given in (("operands", spec.operands), ("results", spec.results)):
        if given:
            out.append(f"- {what}: " + "; ".join(map(_argument, given)))
    shown = [f"`{a.name}`{' (optional)' if a.optional else ''}: `{a.kind.lstrip('@')}`" for a in spec.attrs.values()]
    return "\n".join([*out, "- properties: " + "; ".join(shown)] if shown else out)


def _argument(arg: ArgSpec) -> str:
    how = {"?": " (optional)", "*": " (any number)", "**": " (groups of any number)"}.get(arg.arity, "")
    what = f"`{arg.type_text}`" if arg.type_text else arg.constraint
    return f"`{arg.name}`{how}" + (f": {what}" if what else "")


def _attribute_text(attribute: type[Attribute], mark: str) -> str:
    kind = attribute.name.removeprefix("cute.")
    lines = [f"**`{mark}{attribute.name}`**", "", _blocks(code(_doc(attribute)))]
    if TYPES.get(kind) is attribute:
        lines += ["", f'`!cute.{kind}<"{EXAMPLE_OF_TYPE[kind]}">`']
    return "\n".join(lines).strip()


def _first_line(text: str) -> str:
    """Return the first sentence of a text on one line."""
    line = code(text.split("\n\n")[0].replace("\n", " "))
    end = re.search(r"\.(\s|$)", line)
    return line[: end.start() + 1] if end is not None else line


# --------------------------------------------------------------------------------------------------------------- flags


def _flags() -> Iterator[tuple[str, Entry]]:
    for row in PassTable().rows():
        yield row.name, Entry(row.name, row.summary)
    for group in GROUPS:
        for option in group.rows:
            yield option.name, Entry(option.name, option.help)


# -------------------------------------------------------------------------------------------------------------- Python


def _python() -> Iterator[tuple[str, Entry]]:
    """Yield the public names of the language and its modules as ``cute.…``."""
    yield from _names("cute", import_module(f"{_PACKAGE}.lang"), set(), 1)


def _names(prefix: str, module: ModuleType, seen: set[str], depth: int) -> Iterator[tuple[str, Entry]]:
    seen.add(module.__name__)
    for name in _public(module):
        try:
            value: object = getattr(module, name)
        except (AttributeError, ImportError):  # The name needs an extra that is not installed.
            continue
        whole = f"{prefix}.{name}"
        yield whole, Entry(whole, _first_line(_docstring(value)), (), _signature(value))
        inner = value if isinstance(value, ModuleType) and depth < _DEEPEST else None
        if inner is not None and inner.__name__.startswith(_PACKAGE) and inner.__name__ not in seen:
            yield from _names(whole, inner, seen, depth + 1)


def _public(module: ModuleType) -> list[str]:
    """Return the public names of a module: ``__all__``, or else the names that it defines or re-exports."""
    listed: list[str] | None = getattr(module, "__all__", None)
    if listed is not None:
        return [n for n in listed if not n.startswith("_")]
    found: list[str] = []
    for node in ast.parse(inspect.getsource(module)).body:
        match node:
            case ast.ImportFrom(names=names):
                found += [n.name for n in names if n.asname == n.name]
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.append(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found.append(name)
            case _:
                pass
    return [n for n in dict.fromkeys(found) if not n.startswith("_")]


def _value(whole: str) -> object:
    """Return the value of a public name ``cute.…``, or None if it is unknown."""
    value: object = import_module(f"{_PACKAGE}.lang")
    for name in whole.split(".")[1:]:
        value = getattr(value, name, None)
    return value


def _of_python(whole: str, value: object) -> str:
    kind = "module " if isinstance(value, ModuleType) else "class " if isinstance(value, type) else ""
    return f"```python\n{kind}{whole}{_signature(value)}\n```\n\n{_blocks(_docstring(value))}".strip()


def _docstring(value: object) -> str:
    """Return the docstring of a value, but not that of its type for instances of built-in types."""
    own = not isinstance(value, bool | int | float | str | tuple | list | dict)
    return code(cleandoc(value.__doc__ or "")) if own and isinstance(value.__doc__, str) else ""


def _signature(value: object) -> str:
    if not callable(value) or isinstance(value, ModuleType | EnumMeta):
        return ""
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    return _QUOTED.sub(r"\1\2", _FORWARD.sub(r"\1", text))


def _blocks(doc: str) -> str:
    """Convert a docstring to Markdown: examples (``>>>``) and literal blocks (``::``) become code blocks.

    >>> _blocks("Sum.\\n\\n>>> 1 + 1\\n2").splitlines()
    ['Sum.', '', '```python', '>>> 1 + 1', '2', '```']
    """
    out: list[str] = []
    inside = ""

    def close() -> None:
        while not out[-1].strip():
            out.pop()
        out.extend(["```", ""])

    for line in doc.splitlines():
        if inside and (not line.strip() if inside == "example" else line.strip() and line[0] != " "):
            close()
            inside = ""
        if not inside and line.lstrip().startswith(">>>"):
            out.append("```python")
            inside = "example"
        elif not inside and line.endswith("::"):
            out += [line[:-1], "", "```mlir"]
            inside = "block"
            continue
        if inside != "block" or line.strip() or out[-1] != "```mlir":
            out.append(re.sub(r":(mod|class|func|attr):(?=`)", "", line))
    if inside:
        close()
    return "\n".join(out).rstrip()
