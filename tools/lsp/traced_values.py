"""Recording of the values of Python names while functions are traced.

A Python trace function runs after each line of the text.  When a name is first bound to a new value, the value is
recorded at the location of the binding.  Inspecting a value must not emit ops, so only the text of a layout is read.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any, NamedTuple, cast

from cute_dialect.lang.values.numeric import Numeric
from cute_dialect.tools.lsp.analysis_results import Place, ValueInfo
from cute_dialect.viz.messages import layouts_in

__all__ = ["bindings", "watched"]

_LONGEST = 2000
"""Maximum length of the text of a value."""

_DEEPEST = 3
_SHOWN = 16
"""Maximum number of tuple elements in the text."""


class Binding(NamedTuple):
    """The location of a binding; ``argument`` is True for function parameters."""

    place: Place
    argument: bool = False


def bindings(text: str) -> dict[int, dict[str, Binding]]:
    """Map each line, from 1, to the bindings of the statement or signature that contains it.

    >>> [(name, b.place.line, b.argument) for name, b in bindings("def f(a,\\n  b):\\n  c = a")[2].items()]
    [('a', 0, True), ('b', 1, True)]
    """
    lines = text.splitlines()
    found: dict[int, dict[str, Binding]] = {}
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return found
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt):
            continue
        body = cast("Sequence[ast.stmt]", getattr(node, "body", ()))
        end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
        bound: dict[str, Binding] = {}
        for part in _header(node):
            if isinstance(part, ast.arg):
                bound.setdefault(part.arg, Binding(_place(part, lines), True))
            elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                bound.setdefault(part.id, Binding(_place(part, lines)))
        for line in range(node.lineno, max(end, node.lineno) + 1):
            found.setdefault(line, {}).update(bound)
    return found


def _header(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a statement without nested statements."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.stmt | ast.Lambda):
            yield child
            yield from _header(child)


def _place(node: ast.arg | ast.Name, lines: Sequence[str]) -> Place:
    """Return the location of a node, whose column counts UTF-8 bytes."""
    column = node.col_offset
    line = lines[node.lineno - 1]
    return Place(
        node.lineno - 1, len(line.encode()[:column].decode(errors="replace")) if not line.isascii() else column
    )


@contextmanager
def watched(file: str, text: str) -> Generator[dict[Place, ValueInfo]]:
    """Context manager that records the values of names in frames of a file, by location."""
    places = bindings(text)
    found: dict[Place, ValueInfo] = {}
    seen: dict[FrameType, tuple[int, dict[str, object]]] = {}

    def note(frame: FrameType) -> None:
        line, before = seen.get(frame, (frame.f_code.co_firstlineno, {}))
        now: dict[str, object] = dict(frame.f_locals)
        here = places.get(line, {})
        for name, (at, argument) in here.items():
            if at in found or name not in now or (name in before and before[name] is now[name]):
                continue
            known = described(name, now[name])
            if known is not None:
                found[at] = known._replace(argument=argument)
        seen[frame] = (frame.f_lineno, now)

    def step(frame: FrameType, event: str, argument: object) -> Any:
        if event in ("line", "return"):
            note(frame)
        if event == "return":
            seen.pop(frame, None)
        return step

    def entered(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename != file:
            return None
        note(frame)
        return step

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        yield found
    finally:
        sys.settrace(before)


def described(name: str, value: object, depth: int = _DEEPEST) -> ValueInfo | None:
    """Describe a value; None for modules, functions, classes and objects of unknown types.

    ``depth`` limits the nesting of tuples.

    >>> described("n", (3, True))
    ValueInfo(name='n', text='(3, True)', drawn='', argument=False)
    """
    if value is None or isinstance(value, bool | int | float | str):
        return ValueInfo(name, repr(value)[:_LONGEST])
    if isinstance(value, tuple | list):
        items = cast("Sequence[object]", value)
        parts = [described("", v, depth - 1) if depth else None for v in items[:_SHOWN]]
        more = ", …" if len(items) > _SHOWN else ""
        return ValueInfo(name, f"({', '.join(p.text if p is not None else '…' for p in parts)}{more})"[:_LONGEST])
    kind = type(value)
    if isinstance(value, ModuleType | type) or not kind.__module__.startswith("cute_dialect."):
        return None
    decorated = kind.__module__ in ("cute_dialect.lang.calls.decorators", "cute_dialect.lang.calls.traced")
    if kind.__repr__ is object.__repr__ or decorated:
        return None
    try:
        text = repr(value)
        drawn = "" if isinstance(value, Numeric) else text if text.startswith("!") else next(iter(layouts_in(text)), "")
    except Exception:  # An exception here would propagate into the user's function.
        return None
    says_its_kind = text.startswith("!") or text.lower().startswith(kind.__name__.lower())
    shown = text if says_its_kind or isinstance(value, Numeric) else f"{kind.__name__} {text}"
    return ValueInfo(name, shown[:_LONGEST], drawn)
