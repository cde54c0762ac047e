"""Generator of the site's atom pages: a page per family with pictures and a table of its atoms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cute_dialect.arch import ATOMS, Atom, MmaAtom
from cute_dialect.viz import draw

__all__ = ["alike", "atom_pages", "atom_pictures", "atoms_text", "families"]


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
