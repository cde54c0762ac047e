"""C format strings, for device printf."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SPEC = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?(hh|h|ll|l|z|t|j)?([diouxXeEfFgGaAcsp%])")


def specs(fmt: str) -> list[tuple[str, str]]:
    """Return the (length modifier, conversion) of each argument of a format string."""
    out: list[tuple[str, str]] = []
    for m in _SPEC.finditer(fmt):
        if m[5] == "%":
            continue
        out.extend([("", "d")] * ((m[2] == "*") + (m[3] == "*")))
        out.append((m[4] or "", m[5]))
    return out


def format_c(fmt: str, args: Sequence[object]) -> str:
    r"""Format arguments by the rules of C. A missing argument prints as `<missing>`.

    >>> format_c("i=%d v=%5.2f\\n", [3, 1.5])
    'i=3 v= 1.50\\n'
    """
    left = list(args)

    def take() -> object:
        return left.pop(0) if left else None

    def one(m: re.Match[str]) -> str:
        flags, width, precision, length, conv = m.groups()
        if conv == "%":
            return "%"
        if width == "*":
            width = str(take())
        if precision == "*":
            precision = str(take())
        v = take()
        if v is None:
            return "<missing>"
        spec = "%" + flags + (width or "") + (f".{precision}" if precision is not None else "")
        if conv in "di":
            return (spec + "d") % int(v)  # type: ignore[call-overload]
        if conv in "ouxX":
            bits = 64 if length in ("ll", "l", "z", "j", "t") else 32
            n = int(v) & ((1 << bits) - 1)  # type: ignore[call-overload]
            return (spec + ("d" if conv == "u" else conv)) % n
        if conv in "aA":
            return float(v).hex()  # type: ignore[arg-type]
        if conv in "eEfFgG":
            return (spec + conv) % float(v)  # type: ignore[arg-type]
        if conv == "c":
            return chr(int(v) & 0xFF)  # type: ignore[call-overload]
        if conv == "p":
            return f"{int(v):#x}"  # type: ignore[call-overload]
        return (spec + "s") % v

    return _SPEC.sub(one, fmt)
