"""Generator of the site's dialect pages: a table of all ops, and a page with drawings per group of ops."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation

from cute_dialect.algebra import AlgebraError, parse_layout, size
from cute_dialect.dialect.registry import get_cute_dialect, get_cute_nvgpu_dialect
from cute_dialect.tools.docs.dialect import TITLES, by_module, op_text, read_example, sections
from cute_dialect.viz import Drawing, DrawingError, draw, draw_divide

__all__ = ["dialect_pages", "dialect_text", "op_drawing"]

_MOST = 256  # maximum number of cells of a drawing in an op's example


@cache
def _groups() -> dict[str, list[type[IRDLOperation]]]:
    return {name: ops for name, ops in by_module([get_cute_dialect(), get_cute_nvgpu_dialect()]).items() if ops}


def _title(group: str) -> str:
    return TITLES.get(group, group)


def _static(value: SSAValue, kinds: str) -> str | None:
    """Return the text of a static value of one of some kinds, or None."""
    found = re.fullmatch(rf'!cute\.(?:{kinds})<"([^"?]+)">', str(value.type))
    return found[1] if found else None


def op_drawing(op: type[IRDLOperation]) -> tuple[str, Drawing] | None:
    """Return the result of an op's example and its drawing, or None unless it is a static layout of limited size.

    A divide is drawn as tiles of its operand.
    """
    example = sections(op.__doc__).example
    if not example:
        return None
    for made in read_example(example).walk():
        if type(made) is not op or len(made.results) != 1:
            continue
        text = _static(made.results[0], "layout|composed_layout")
        if text is None:
            continue
        try:
            cells = size(parse_layout(text))
            if not isinstance(cells, int) or not 1 < cells <= _MOST:
                continue
            whole, tiler = (
                (_static(v, "layout|tile|shape") for v in made.operands) if len(made.operands) == 2 else ("", "")
            )
            if op.name.endswith("_divide") and whole and tiler:
                return text, draw_divide(whole, tiler.strip("[]").replace(";", ",").join("()"))
            return text, draw(text)
        except (AlgebraError, DrawingError):
            continue
    return None


def dialect_pages() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield the name, the Markdown and the pictures (by name) of each page of ops."""
    for group, ops in _groups().items():
        text, pictures = [f"# {_title(group)}", "", "[All ops](../../dialect.md).", ""], dict[str, str]()
        text += ["| op | |", "|---|---|", *(_row(op, "") for op in ops), ""]
        for op in ops:
            text.append(op_text(op).replace("### ", "## ", 1))
            drawn = op_drawing(op)
            if drawn is not None:
                pictures[op.name] = drawn[1].svg
                text += [f"The result, `{drawn[0]}`:", "", f"![{drawn[0]}](../../pictures/ops/{op.name}.svg)", ""]
        yield group, "\n".join(text), pictures


def _row(op: type[IRDLOperation], page: str) -> str:
    summary = sections(op.__doc__).summary.split("\n\n")[0].replace("``", "`").replace("\n", " ").replace("|", "\\|")
    anchor = re.sub(r"[^\w\-]", "", op.name.lower())
    return f"| [`{op.name}`]({page}#{anchor}) | {summary} |"


def dialect_text(page: str) -> str:
    """Return the dialect page with a table of all ops instead of their sections, which have their own pages."""
    first = next(iter(_groups()))
    opening = page.partition(f"## {_title(first)}\n")[0]
    rows = ["## All ops", "", "| op | |", "|---|---|"]
    for group, ops in _groups().items():
        rows += [_row(op, f"reference/dialect/{group}.md") for op in ops]
    return opening + "\n".join(rows) + "\n"
