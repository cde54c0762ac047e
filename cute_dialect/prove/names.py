"""Sizes and preconditions of a proof in the names of the kernel: `x.shape[1] >= 1`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from xdsl.ir import Operation

from cute_dialect.interp.errors import attr_of
from cute_dialect.prove.arithmetic import Learned
from cute_dialect.prove.values import ANY, Linear, Terms
from cute_dialect.prove.verdict import where


def preconditions(func: Operation, learned: Learned) -> tuple[str, ...]:
    """Return the least values and ranges of sizes, and the ranges of their products, that a proof assumes."""
    least = [f"{describe(func, terms)} >= {n}" for terms, n in learned.minimum.items()]
    ranges = [
        f"{describe(func, tuple((a, c * factor) for a, c in terms))} < 2^{width - 1}"
        for (terms, width), factor in learned.ranges.items()
        if factor >> width - 20 or factor == 1  # a product of sizes
    ]
    small = sorted(f"0 <= {describe(func, terms)} < 2^30" for terms in learned.small)
    return (*least, *ranges, *dict.fromkeys(small))


def excluded_sizes(func: Operation, learned: Learned) -> tuple[str, ...]:
    """Return the violations at the size 0 that least values exclude."""
    found = [(describe(func, terms), v.text, where(v.op)) for terms, v in learned.excluded.items()]
    return tuple(f"{name} = 0: {text}{f' (at {at})' if at else ''}" for name, text, at in found)


def describe(func: Operation, terms: Terms) -> str:
    """Return a sum of symbols in the names of the kernel."""
    parts = [name if factor == 1 else f"{factor}*{name}" for a, factor in terms for name in [_atom(func, a)]]
    return " + ".join(parts).replace("+ -1*", "- ")


def _atom(func: Operation, atom: tuple[object, ...]) -> str:
    kind = atom[0]
    if kind == "argument":
        arg = func.regions[0].blocks[0].args[int(str(atom[1]))]
        path = cast("tuple[int, ...]", atom[2])
        kinds = getattr(attr_of(func, "cute.args"), "data", ())
        kind = str(getattr(kinds[arg.index], "data", "")) if arg.index < len(kinds) else ""
        return f"{arg.name_hint or f'argument {atom[1]}'}{_member(kind, path)}"
    if kind == "register":
        return str(atom[1])
    if kind == "trips":
        span, step = atom[1], atom[2]
        text = (
            describe(func, span.terms) + (f" + {span.const}" if span.const else "")
            if isinstance(span, Linear)
            else str(span)
        )
        by = describe(func, step.terms) if isinstance(step, Linear) else str(step)
        return f"iterations of ({text}) by {by}" if by != "1" else f"({text})"
    if kind == "tensor":
        return "the column of tcgen05.alloc"
    if kind == "iterations":
        return "iterations of the while loop"
    if kind == ANY and str(atom[1]).startswith("variable"):
        return "tile"
    if kind == ANY:
        kind, atom = str(atom[1]).partition(" ")[0], atom[1:]
    sides = [_operand(func, x) if isinstance(x, Linear) else str(x) for x in atom[1:]]
    return f"({f' {_WORDS.get(str(kind), kind)} '.join(sides)})"


def _operand(func: Operation, x: Linear) -> str:
    text = describe(func, x.terms) + (f" {'+' if x.const > 0 else '-'} {abs(x.const)}" if x.const else "")
    return f"({text})" if x.const else text


_WORDS = {
    "muli": "*", "addi": "+", "subi": "-", "ceildivsi": "ceildiv", "ceildivui": "ceildiv", "divui": "/", "divsi": "/",
    "remui": "%", "remsi": "%", "remainder": "%", "shrui": ">>", "shrsi": ">>", "shli": "<<", "andi": "&", "ori": "|",
    "xori": "^",
}  # fmt: skip


def _member(kind: str, path: Sequence[int]) -> str:
    """Return the name of a field of an argument of a type: the extents and strides of a tensor are numbered by mode.

    >>> _member('!cute.memref<f32, gmem, "(32,?):(?,1)">', (1, 0))
    '.shape[1]'
    """
    layout = re.search(r'"([^"]*):([^":]*)">$', kind)
    if layout is None or len(path) not in (2, 3) or path[0] != 1:
        return "".join(f"[{i}]" for i in path)
    modes = layout[1 + path[1]].strip("()").split(",")
    dynamic = [i for i, mode in enumerate(modes) if mode.startswith("?")]
    nth = path[2] if len(path) > 2 else 0
    if nth >= len(dynamic) or "(" in "".join(modes):
        return "".join(f"[{i}]" for i in path)
    return f".{'stride' if path[1] else 'shape'}" + (f"[{dynamic[nth]}]" if len(modes) > 1 else "")
