"""Quick fixes parsed from diagnostic messages."""

from __future__ import annotations

import re

__all__ = ["fix_of"]

_MEANT = re.compile(r"did you mean [`'](?P<name>[^`']+)[`']\s*\?")
_NAMED = re.compile(r"[`'](?P<name>[^`']+)[`']")


def fix_of(message: str, marked: str) -> str:
    """Return the replacement of the marked text that the message suggests, or an empty string.

    >>> fix_of("unregistered operation 'cute.sise'; did you mean 'cute.size'?", '"cute.sise"')
    '"cute.size"'
    >>> fix_of("the module has no 'sise'; did you mean 'size'?", "cute.sise")
    'cute.size'
    >>> fix_of("use of undeclared SSA value name '%x'", "%x")
    ''
    """
    meant = _MEANT.search(message)
    if meant is None or not marked:
        return ""
    name = meant["name"]
    if marked[0] == '"' == marked[-1] and len(marked) > 1:
        return f'"{name}"'
    if marked[0] in "!#%@" and name[0] != marked[0]:
        return marked[0] + name
    for said in _NAMED.finditer(message[: meant.start()]):
        wrong = said["name"]
        if marked == wrong:
            return name
        if marked.endswith(f".{wrong}") and not name.startswith(marked.rpartition(".")[0]):
            return f"{marked[: -len(wrong)]}{name}"
    return name if re.fullmatch(r"[\w.$!#-]+", marked) else ""
