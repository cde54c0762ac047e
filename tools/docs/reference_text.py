"""Markdown of one name of the reference: its signature, docstring and members.

>>> print(markdown("Add.\\n\\nArgs:\\n    x: a ``Number``,\\n        or None."))
Add.
<BLANKLINE>
- `x`: a `Number`, or None.
"""

from __future__ import annotations

import builtins
import enum
import inspect
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import cute_dialect.lang as cute
from cute_dialect.tools.docs.public_names import public_modules

__all__ = ["anchor", "constant_text", "entry_text", "markdown", "signature_text", "summary"]

_WIDTH = 100
_HIDDEN_MEMBERS = frozenset((
    "as_upstream", "atom_text", "bind", "computed", "describe", "exactly", "facts", "fixed", "inner", "is_on_gpu",
    "kind", "learned", "making", "mlir_type", "number", "numbers", "of", "on", "other", "outer", "parts", "payload",
    "refuse_hash", "remade", "shape_payload", "ssa", "static", "type",
))  # fmt: skip
"""Members that only the compiler uses."""
_HIDDEN_OF = {
    "Compiled": ("arguments", "compiled_module", "explain_error", "kernel", "module", "program", "run"),
    "CuteError": ("repeats",),
    "RuntimeTensor": ("held", "symbols"),
    "Pointer": ("ptr", "data_ptr", "llvm_ptr"),
}
"""Further members that only the compiler uses, by class."""
_COMPILERS_BASES = frozenset(("AtomOp", "CopyOp", "Dynamic", "Im2colOp", "MmaOp", "Record", "TmaOp"))
"""Base classes whose members only the compiler uses."""
_MADE_BY_FUNCTIONS = frozenset((
    "Autotuned", "Compiled", "ComposedLayout", "CopyAtom", "Layout", "MmaAtom", "PipelineAsync", "PipelineConsumer",
    "PipelineCpAsync", "PipelineOrder", "PipelineProducer", "PipelineState", "PipelineTmaAsync",
    "PipelineTmaMultiConsumersAsync", "PipelineTmaStore", "Prefetch", "RuntimePointer", "RuntimeTensor",
    "StaticPersistentTileScheduler", "ThrCopy", "ThrMma", "TiledCopy", "TiledMma", "Traced",
))  # fmt: skip
"""Classes whose constructors programs do not call."""
_HEADINGS = {"Raises": "Raises:", "Returns": "Returns:", "Example": "Example:", "Yields": "Yields:"}


def constant_text(value: Any) -> str | None:
    """Return the text of a constant, or None if the value has a docstring of its own."""
    kind = type(value).__name__
    if kind not in ("int", "str", "float", "dict", "tuple"):
        return None
    return ", ".join(f"`{key}`" for key in value) if kind == "dict" else _default(value)


def _doc(value: object) -> str:
    """Return the docstring of a value; that of a function behind an instance comes first."""
    behind = getattr(value, "function", None)
    if not inspect.isclass(value) and inspect.isfunction(behind) and behind.__doc__:
        return inspect.cleandoc(behind.__doc__)
    doc = inspect.cleandoc(getattr(value, "__doc__", None) or "")
    if not callable(value) or inspect.isclass(value) or inspect.isroutine(value):
        return doc
    called = inspect.cleandoc(type(value).__call__.__doc__ or "")  # the arguments of an instance that is called
    return doc if "Args:" in doc or "Args:" not in called else f"{doc}\n\n{called[called.index('Args:') :]}"


def summary(value: object) -> str:
    """Return the first sentence of a docstring, or the text of a constant."""
    constant = constant_text(value)
    if constant is not None:
        return constant if isinstance(value, dict) else f"`{constant}`"
    first = _doc(value).split("\n\n")[0]
    text = markdown(re.sub(r"\s*\n\s*", " ", first))
    return re.split(r"(?<=[a-z0-9`)\]…])\. +(?=[A-Z`])", text)[0].removesuffix("::").rstrip(".:") + "."


def markdown(text: str) -> str:
    """Return a docstring as Markdown: double backquotes as code, ``Args:`` as a list, literal blocks fenced."""
    out: list[str] = []
    lines = inspect.cleandoc(text).splitlines()
    i = 0
    while i < len(lines):
        line = lines[i]
        section = re.fullmatch(r"(Args|Attributes|Raises|Returns|Yields|Example|Examples):\s*(.*)", line)
        if section is not None and not section[2] and i + 1 < len(lines) and lines[i + 1].startswith("    "):
            end = _block_end(lines, i + 1)
            block = inspect.cleandoc("\n".join(["", *lines[i + 1 : end]])).splitlines()
            if section[1].startswith("Example"):
                out += ["", "```python", *_without_imports(block), "```", ""]
            elif section[1] in ("Returns", "Yields"):
                out += ["", f"{section[1]}: {_inline(' '.join(b.strip() for b in block))}", ""]
            else:
                out += ["", *([_HEADINGS["Raises"], ""] if section[1] == "Raises" else []), *_items(block), ""]
            i = end
        elif line.startswith(">>>") or (
            line.startswith("    ") and (not out or not out[-1].strip() or out[-1] == "```")
        ):
            end = _block_end(lines, i) if line.startswith("    ") else _doctest_end(lines, i)
            block = inspect.cleandoc("\n".join(["", *lines[i:end]])).splitlines()
            out += ["```python", *_without_imports(block), "```", ""]
            i = end
        else:
            if line.strip() == "::":
                line = ""
            out.append(re.sub(r"::$", ":", _inline(line)))
            i += 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip("\n")


def _without_imports(block: list[str]) -> list[str]:
    """Return an example without imports from the module that defines a public name."""
    return [line for line in block if not line.startswith(">>> from cute_dialect.")]


def _block_end(lines: list[str], start: int) -> int:
    """Return the end of an indented block, without its trailing empty lines."""
    end = start
    while end < len(lines) and (not lines[end].strip() or lines[end].startswith("    ")):
        end += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    return end


def _doctest_end(lines: list[str], start: int) -> int:
    end = start
    while end < len(lines) and lines[end].strip():
        end += 1
    return end


def _items(block: list[str]) -> Iterator[str]:
    """Yield the items of an argument list, one line each."""
    items: list[str] = []
    for line in block:
        if line.startswith(" ") and items:
            items[-1] += " " + line.strip()
        elif line.strip():
            items.append(line.strip())
    for item in items:
        name, mark, text = item.partition(": ")
        if mark and re.fullmatch(r"[\w*, ]+", name):
            yield f"- {', '.join(f'`{n.strip()}`' for n in name.split(','))}: {_inline(text)}"
        else:
            yield f"- {_inline(item)}"


def _inline(text: str) -> str:
    role = r":(?:\w+:)?(?:func|class|meth|mod|data|attr|doc):"
    text = re.sub(role + r"`~?([^`<>]+) <[\w.]+>`", r"`\1`", text)
    text = re.sub(role + r"`~?([\w.]+)`", _short, text)
    return re.sub(r"(?<=[^\s|])  (?=[A-Z`])", " ", text.replace("``", "`"))


_PRIVATE = "tracing|values|rewrite|control|machine|calls|lib"
"""Folders of the language that are not part of public names."""


def _short(found: re.Match[str]) -> str:
    name = found[1]
    name = re.sub(rf"^cute_dialect\.lang\b(?!\.(?:{_PRIVATE})\.)", "cute", name)
    name = re.sub(r"^cute_dialect\.op\.epilogue\b", "op.epilogue", name)
    if name.startswith(("cute_dialect.", ".")):
        name = name.rpartition(".")[2]
    return f"`{name}`"


# ---------------------------------------------------------------------------------------------------------- signatures


def _default(value: object) -> str:
    if value == 0xFFFFFFFF and isinstance(value, int):
        return "0xFFFFFFFF"
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if inspect.isclass(value) or inspect.isfunction(value):
        return value.__name__
    text = repr(value)
    return "…" if " object at 0x" in text else text


def _annotation(annotation: object) -> str:
    if annotation is None or annotation is type(None):
        return "None"
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__forward_arg__", None)
    if text is None:
        text = annotation.__name__ if inspect.isclass(annotation) else str(annotation)
    text = re.sub(
        r"\b(?:builtins|typing|collections\.abc|concurrent\.futures|cute|autotuning)\.", "", text.strip("'\"")
    )
    return text


def _parameters(signature: inspect.Signature, skip_self: bool) -> list[str]:
    out: list[str] = []
    star = positional = False
    for parameter in list(signature.parameters.values())[int(skip_self) :]:
        kind, name = parameter.kind, parameter.name
        annotation = "" if parameter.annotation is parameter.empty else _annotation(parameter.annotation)
        if kind is parameter.VAR_KEYWORD and (name.startswith("_") or annotation == "Never"):
            continue
        if out and kind is not parameter.POSITIONAL_ONLY and positional:
            out.append("/")
        positional = kind is parameter.POSITIONAL_ONLY
        if kind is parameter.KEYWORD_ONLY and not star:
            out.append("*")
            star = True
        star = star or kind is parameter.VAR_POSITIONAL
        text = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(kind, "") + name
        text += f": {annotation}" if annotation else ""
        if parameter.default is not parameter.empty:
            text += (" = " if annotation else "=") + _default(parameter.default)
        out.append(text)
    return out


def signature_text(name: str, value: Any, *, method: bool = False) -> str | None:
    """Return the signature of a function, class or method, wrapped to 100 columns; None if there is none."""
    kind = type(value).__name__
    skip = method and kind != "staticmethod"
    try:
        signature = inspect.signature(value.__func__ if kind in ("staticmethod", "classmethod") else value)
    except (TypeError, ValueError):
        return None
    parts = _parameters(signature, skip)
    result = ""
    if not inspect.isclass(value) and signature.return_annotation is not signature.empty:
        result = f" -> {_annotation(signature.return_annotation)}"
    line = f"{name}({', '.join(parts)}){result}"
    if len(line) <= _WIDTH:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){result}"


# -------------------------------------------------------------------------------------------------------------- entries


def heading(spelled: str, value: object) -> str:
    return f"class `{spelled}`" if inspect.isclass(value) else f"`{spelled}`"


def anchor(spelled: str, value: object) -> str:
    """Return the anchor of an entry, as the hosts of repositories make it from its heading."""
    return re.sub(r"[^\w\- ]", "", heading(spelled, value).lower()).replace(" ", "-")


def entry_text(spelled: str, value: object, others: list[str]) -> str:
    """Return the entry of a public name: heading, signature, description and members."""
    out = [f"### {heading(spelled, value)}", ""]
    constant = constant_text(value)
    if constant is not None:
        shown = f"One of {constant}." if isinstance(value, dict) else f"`{spelled} = {constant}`"
        return "\n".join([*out, shown, ""])
    plain = inspect.isclass(value) and issubclass(value, BaseException | enum.Enum)
    text = None if plain else signature_text(spelled, value)
    if inspect.isclass(value) and (value.__name__ in _MADE_BY_FUNCTIONS or text == f"{spelled}()"):
        text = None
    if not inspect.isclass(value) and isinstance(value, str):
        text = f"{spelled} = {str(value)!r}"
    elif not inspect.isclass(value) and hasattr(value, "_fields"):
        text = f"{spelled} = {value!r}"
    if text is not None:
        out += ["```python", text, "```", ""]
    out += [_spelled_out(markdown(_doc(value)), spelled), ""]
    if others:
        out += [f"Also named {', '.join(f'`{o}`' for o in others)}.", ""]
    if inspect.isclass(value):
        if issubclass(value, enum.Enum):
            members = [f"`{m.name}`" for m in value]
            out += [f"Members: {', '.join(members)}.", ""] if members else []
        bases = [b for b in value.__mro__[1:] if b.__module__.startswith("cute_dialect.")]
        base = next((b for b in bases if b.__name__ in _shown()), None)
        if base is not None:
            out += [f"Base class: `{base.__name__}`.", ""]
        members = [text for text in _members(value) if text]
        if members:
            out += ["Methods and properties:", "", *members, ""]
    return "\n".join(out)


def _spelled_out(text: str, spelled: str) -> str:
    """Return a description whose doctests call public names as programs do: ``cute.size(…)``."""
    module, _, own = spelled.rpartition(".")
    names = {own: spelled}
    if module.startswith("cute"):
        names = {**_in_cute(), **names}

    def call(found: re.Match[str]) -> str:
        return names.get(found[0], found[0])

    def lines(block: re.Match[str]) -> str:
        out = [
            re.sub(r"(?<![\w.\"'])[A-Za-z_]\w*(?=[(\[.,)\n]|$)", call, line)
            if line.startswith((">>>", "..."))
            else line
            for line in block[0].splitlines()
        ]
        return "\n".join(out)

    return re.sub(r"```python\n>>>.*?```", lines, text, flags=re.DOTALL)


@cache
def _in_cute() -> Mapping[str, str]:
    return {name: f"cute.{name}" for name in dir(cute) if not hasattr(builtins, name)}


@cache
def _shown() -> frozenset[str]:
    """Return the names of the classes that have an entry."""
    return frozenset(name for _, name in public_modules())


def _members(owner: type) -> Iterator[str]:
    """Yield a list item for each documented method and property of a class."""
    seen: set[str] = set()
    member: Any
    for cls in owner.__mro__:
        if cls is not owner and (cls.__name__ in _shown() or not cls.__module__.startswith("cute_dialect.")):
            break
        if cls.__name__ in _COMPILERS_BASES:
            continue
        hidden = _HIDDEN_MEMBERS.union(_HIDDEN_OF.get(cls.__name__, ()))
        for name, member in vars(cls).items():
            if name.startswith("_") or name in seen or name in hidden:
                continue
            seen.add(name)
            if isinstance(member, property):
                shown, doc = name, member.__doc__
            elif inspect.isfunction(member) or isinstance(member, staticmethod | classmethod):
                shown, doc = signature_text(name, member, method=True), member.__doc__
            else:
                continue
            if shown is None or not doc:
                continue
            lines = markdown(doc).splitlines()
            shown = re.sub(r",? \)", ")", " ".join(shown.split())).replace("( ", "(")
            yield "\n".join([f"- `{shown}`: {lines[0]}", *(f"  {x}".rstrip() for x in lines[1:])])
