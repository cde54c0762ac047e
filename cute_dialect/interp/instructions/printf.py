"""printf of a device, with the rules of C, and failed assertions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.compiler.function_compiler import Builder, FnCompiler
from cute_dialect.interp.errors import Fault, attr_of
from cute_dialect.interp.machine.group import Group
from cute_dialect.interp.memory.accesses import Site, load
from cute_dialect.interp.memory.addresses import GENERIC
from cute_dialect.interp.types import float_leaf, int_leaf, round_up
from cute_dialect.interp.values import Regs, to_lanes

if TYPE_CHECKING:
    from xdsl.ir import Operation

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


MAX_STRING = 4096


def read_string(g: Group, address: int) -> str:
    """Return the NUL-terminated string at a generic address."""
    buf = g.memory.find(address)
    if buf is None:
        raise Fault("oob", "string outside any buffer", -1, address)
    raw = bytes(buf.data[address - buf.base : address - buf.base + MAX_STRING])
    return raw.split(b"\0", 1)[0].decode("latin-1")


def _vprintf(c: FnCompiler, op: Operation) -> None:
    """Compile vprintf(format, buffer). The buffer holds the arguments after C's promotions, each naturally aligned."""
    fmt, buf = c.use(op.operands[0]), c.use(op.operands[1])
    d = c.define(op.results[0]) if op.results else -1

    def step(R: Regs, g: Group) -> None:
        if g.mask.n:
            addresses = to_lanes(R[fmt], c_leaf, g.lanes)
            text = read_string(g, int(addresses[g.mask.idx[0]]))
            columns: list[np.ndarray] = []
            at = 0
            for length, conv in specs(text):
                wide = conv in "eEfFgGaAps" or length in ("l", "ll", "z", "j", "t")
                leaf = float_leaf("f64") if conv in "eEfFgGaA" else int_leaf(64 if wide else 32)
                at = round_up(at, leaf.size)
                value = load(Site(leaf, leaf.size, GENERIC, False, "printf read"), g, R[buf] + at)  # type: ignore[operator]
                columns.append(to_lanes(value, leaf, g.lanes))
                at += leaf.size
            kinds = specs(text)
            for lane in g.mask.idx.tolist():
                vals: list[object] = []
                for (_, conv), col in zip(kinds, columns):
                    v = col[lane].item()
                    vals.append(read_string(g, v) if conv == "s" else v)
                g.machine.print(format_c(text, vals))
        if d >= 0:
            R[d] = 0

    c_leaf = c.leaf_of(fmt)
    c.emit(op, step, pure=False)


def _assertfail(c: FnCompiler, op: Operation) -> None:
    message, file, line = (c.use(v) for v in op.operands[:3])

    def step(R: Regs, g: Group) -> None:
        if not g.mask.n:
            return
        lane = int(g.mask.idx[0])

        def at(slot: int) -> int:
            v = R[slot]
            return int(v[lane] if isinstance(v, np.ndarray) else v)  # type: ignore[arg-type]

        text, name = read_string(g, at(message)), read_string(g, at(file))
        raise Fault("assert", f"assertion failed: {text} ({name}:{at(line)})", lane)

    c.emit(op, step, pure=False)


def _printf(c: FnCompiler, op: Operation) -> None:
    fmt = getattr(attr_of(op, "format"), "data", "")
    args = [c.use(v) for v in op.operands]
    leaves = [c.leaf_of(a) for a in args]

    def step(R: Regs, g: Group) -> None:
        cols = [to_lanes(R[a], leaf, g.lanes) for a, leaf in zip(args, leaves)]
        for lane in g.mask.idx.tolist():
            g.machine.print(format_c(fmt, [col[lane].item() for col in cols]))

    c.emit(op, step, pure=False)


OPS: dict[str, Builder] = {"gpu.printf": _printf}
EXTERNALS: dict[str, Builder] = {"vprintf": _vprintf, "__assertfail": _assertfail}

__all__ = ["EXTERNALS", "OPS", "format_c", "specs"]
