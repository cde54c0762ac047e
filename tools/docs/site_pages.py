"""Generated pages of the site: public names of a package, atoms of a family, and ops of a dialect.

The pages of names are reStructuredText for Sphinx's autodoc, the other pages Markdown with pictures.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from itertools import pairwise

from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation

from cute_dialect.algebra import AlgebraError, parse_layout, size
from cute_dialect.arch import ATOMS, Atom, MmaAtom
from cute_dialect.dialect.registry import get_cute_dialect, get_cute_nvgpu_dialect
from cute_dialect.tools.docs.dialect import TITLES, by_module, op_text, read_example, sections
from cute_dialect.tools.docs.public_names import PACKAGES, public_names
from cute_dialect.viz import Drawing, DrawingError, draw, draw_divide

__all__ = [
    "alike", "atom_pages", "atom_pictures", "atoms_text", "dialect_pages", "dialect_text", "families", "literal_blocks",
    "names_text", "op_drawing",
]  # fmt: skip

MORE = {"cute_dialect.runtime": ("cute_dialect.runtime.launch",)}
"""Modules that define the classes of objects that a package's functions return."""


def literal_blocks(text: str) -> str:
    """Convert a docstring to reStructuredText: indented text below a paragraph becomes a code block.

    >>> literal_blocks("Adds.\\n\\n    add(1, 2)\\n\\nAnd more.")
    'Adds.\\n\\n::\\n\\n    add(1, 2)\\n\\nAnd more.'
    """
    paragraphs = text.split("\n\n")
    out = paragraphs[:1]
    for before, paragraph in pairwise(paragraphs):
        if paragraph.startswith("    ") and not before.startswith((" ", "*", "-", "..")) and not before.endswith("::"):
            out.append("::")
        out.append(paragraph)
    return "\n\n".join(out)


def _opening(value: object) -> str:
    """Return the first paragraph of a docstring on one line."""
    return (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")


def names_text(package: str, described: set[int]) -> str:
    """Return the page of a package's public names in reStructuredText for Sphinx's autodoc.

    ``described`` holds the identities of the classes described on earlier pages; those of this page are added.
    """
    groups: dict[str, dict[str, list[str]]] = {"Functions": {}, "Classes": {}, "Values": {}, "Modules": {}}
    entries: dict[str, str] = {}
    for module in (package, *MORE.get(package, ())):
        for name in sorted(public_names(module), key=str.lower):
            value = getattr(import_module(module), name)
            if inspect.ismodule(value):
                where = f":doc:`{value.__name__}`" if value.__name__ in PACKAGES else f"``{value.__name__}``"
                groups["Modules"][name] = [where, _opening(value)]
            elif inspect.isclass(value):
                again = "   :no-index:\n" if id(value) in described else ""
                described.add(id(value))
                groups["Classes"][name] = [f":py:class:`~{module}.{name}`", _opening(value)]
                entries[name] = f".. autoclass:: {module}.{name}\n   :members:\n{again}"
            elif callable(value):
                groups["Functions"][name] = [f":py:func:`~{module}.{name}`", _opening(value)]
                entries[name] = f".. autofunction:: {module}.{name}\n"
            else:
                groups["Values"][name] = [f"``{name}``", f"of type ``{type(value).__name__}``"]
    out = [package, "=" * len(package), "", literal_blocks(inspect.getdoc(import_module(package)) or ""), ""]
    for title, rows in groups.items():
        if rows:
            out += [title, "-" * len(title), "", ".. list-table::", "   :widths: 30 70", ""]
            for first, second in rows.values():
                out += [f"   * - {first}", f"     - {second}"]
            out += ["", *(entries[name] for name in rows if name in entries), ""]
    return "\n".join(out)


# ---------------------------------------------------------------------------------------------------------------- atoms


def families() -> dict[str, list[Atom]]:
    """Return the atoms of the pages by family; only N = 8 for ``wgmma``, because wider ones repeat its columns."""
    found: dict[str, list[Atom]] = {}
    for name in ATOMS:
        if "_64x" not in name or "_64x8x" in name:
            atom = ATOMS[name]
            found.setdefault(atom.family, []).append(atom)
    return found


def alike(atoms: Sequence[Atom]) -> list[list[Atom]]:
    """Group the atoms with equal pictures, which differ only in element types or in the operation on a value.

    >>> names = ["SM80_16x8x16_F32F16F16F32_TN", "SM80_16x8x16_F32BF16BF16F32_TN", "SM80_16x8x8_F32F16F16F32_TN"]
    >>> [len(group) for group in alike([ATOMS[name] for name in names])]
    [2, 1]
    """
    groups: dict[tuple[str, ...], list[Atom]] = {}
    for atom in atoms:
        if isinstance(atom, MmaAtom):
            shown = (atom.shape_mnk, atom.thr_id, atom.layout_a, atom.layout_b, atom.layout_c, atom.metadata)
        else:
            shown = (atom.thr_id, atom.src, atom.dst, atom.ref)
        groups.setdefault(tuple(map(str, shown)), []).append(atom)
    return list(groups.values())


def _inline(text: object) -> str:
    """Format a text as code in a table cell."""
    return f"`{str(text).replace('|', chr(92) + '|')}`"


def _entry(group: Sequence[Atom]) -> Iterator[str]:
    """Yield the lines for a picture and its atoms."""
    first = group[0]
    yield from (f"## {first.name}", "", f"![{first.name}](../../pictures/atoms/{first.name}.svg)", "")
    if isinstance(first, MmaAtom):
        yield from ("| (M,N,K) | A: (thread, value) | B | C |", "|---|---|---|---|")
        layouts = " | ".join(map(_inline, (first.layout_a, first.layout_b, first.layout_c)))
        yield from (f"| {','.join(map(str, first.shape_mnk))} | {layouts} |", "")
        yield from ("| atom | D A B C | since | instruction | PTX ISA |", "|---|---|---|---|---|")
        for a in group:
            types = " ".join((a.d, a.a, a.b, a.c)) if isinstance(a, MmaAtom) else ""
            yield f"| {a.name} | {types} | {a.arch}, PTX {a.ptx_version} | {_inline(a.ptx)} | {a.isa} |"
    else:
        yield from ("| atom | since | instruction | PTX ISA |", "|---|---|---|---|")
        for a in group:
            yield f"| {a.name} | {a.arch}, PTX {a.ptx_version} | {_inline(a.ptx)} | {a.isa} |"
    yield ""


def atom_pages() -> dict[str, str]:
    """Return the Markdown page of each family."""
    pages: dict[str, str] = {}
    for family, atoms in families().items():
        groups = alike(atoms)
        text = [
            f"# {family}",
            "",
            "Which thread holds what; [all atoms, and what a row of them says](../../atoms.md).",
            "",
        ]
        if "wgmma" in family:
            text += ["Those of N = 8: in wider ones the columns of B and C go on in the same way.", ""]
        if len(groups) > 1:
            text += ["| picture | the same for |", "|---|---|"]
            for group in groups:
                others = ", ".join(a.name for a in group[1:])
                text.append(f"| [{group[0].name}](#{group[0].name.lower()}) | {others} |")
            text.append("")
        for group in groups:
            text += _entry(group)
        pages[family] = "\n".join(text)
    return pages


def atom_pictures() -> Iterator[tuple[str, str]]:
    """Yield the names and SVG texts of the pictures."""
    for atoms in families().values():
        for group in alike(atoms):
            yield group[0].name, draw(group[0].name).svg


def atoms_text() -> str:
    """Return the tables of the families and of all atoms, to append to the atom page."""
    rows = ["", "## Pictures", "", "What each instruction moves or multiplies, thread by thread.", ""]
    rows += ["| family | atoms | pictures |", "|---|---|---|"]
    shown = families()
    for family, atoms in shown.items():
        rows.append(f"| [{family}](reference/atoms/{family}.md) | {len(atoms)} | {len(alike(atoms))} |")
    rows += ["", "## All atoms", "", "| atom | family | since | instruction |", "|---|---|---|---|"]
    for family, atoms in shown.items():
        for group in alike(atoms):
            page = f"reference/atoms/{family}.md#{group[0].name.lower()}"
            rows += [f"| [{a.name}]({page}) | {family} | {a.arch} | `{a.emit.mnemonic}` |" for a in group]
    return "\n".join(rows) + "\n"


# -------------------------------------------------------------------------------------------------------------- dialect


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
