"""Report of a trace: the static part of each argument, and the ops that each source line emitted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from cute_dialect.lang.calls.arguments import StaticSpec

if TYPE_CHECKING:
    from cute_dialect.lang.calls.compiled import Compiled

__all__ = ["explained"]


def explained(kind: Compiled) -> str:
    """Return the report of a specialization: arguments, kernels, and the ops of each line."""
    module = kind.program.module
    from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc

    lines = [f"{kind.name} for {kind.options.chip}"]
    lines += [f"  {name:16} {_said(spec)}" for name, spec in kind.specs.items()]
    found: dict[tuple[str, int], Counter[str]] = {}
    for op in module.walk():
        at: Any = getattr(op, "location", None)
        while isinstance(at, CallSiteLoc):
            at = at.callee
        if isinstance(at, FileLineColLoc):
            found.setdefault((at.filename.data, at.line.data), Counter())[op.name] += 1
    import linecache

    file = ""
    for (name, line), ops in sorted(found.items()):
        if name != file:
            file = name
            lines.append(file)
        text = linecache.getline(name, line).strip()
        made = ", ".join(f"{op} × {n}" if n > 1 else op for op, n in ops.items())
        lines.append(f"  {line:5}  {text}\n         -> {made}")
    return "\n".join(lines)


def _said(spec: Any) -> str:
    return f"static   {spec!r}" if isinstance(spec, StaticSpec) else f"passed   {spec!r}"
