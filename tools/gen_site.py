"""Builds the documentation site: Sphinx on the pages of ``docs``, the public names, the atoms and the examples.

    python -m cute_dialect.tools.gen_site -o out/site       # out/site/html/index.html; needs the extra ``docs``
    python -m cute_dialect.tools.gen_site --sources         # only the pages that Sphinx reads

The pages of ``docs`` stay Markdown as any host shows it.  What Sphinx reads is made beside them: a copy in which links
to files of the repository lead to pages; a page for each package with public names, those of its stub; a page for each
family of atoms with drawings; a page for each example; a notebook of each tutorial, which the build runs.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from posixpath import normpath, relpath

from cute_dialect.arch import ATOMS, Atom, MmaAtom
from cute_dialect.runtime.files import replace_file
from cute_dialect.viz import draw

__all__ = ["GUIDES", "PACKAGES", "REFERENCES", "TUTORIALS", "drawn_atoms", "main", "notebook", "write_sources"]

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS = ("first_kernel", "layouts_by_pictures", "gemm_step_by_step", "epilogue")
GUIDES = (
    "language",
    "operations",
    "kernels",
    "layouts",
    "drawings",
    "explore",
    "editors",
    "progress",
    "interpreter",
    "porting",
    "performance",
)
REFERENCES = ("dialect", "atoms", "passes", "nvgpu", "abi", "interpreter-values", "upstream", "design")
PACKAGES = (
    "cute_dialect.lang",
    "cute_dialect.lang.nvgpu",
    "cute_dialect.op",
    "cute_dialect.op.epilogue",
    "cute_dialect.algebra",
    "cute_dialect.arch",
    "cute_dialect.interp",
    "cute_dialect.viz",
    "cute_dialect.kernels.gemm",
)
"""The packages with a stub ``__init__.pyi``, which says what of them is public."""

_FENCE = re.compile(r"^(```+).*?^\1`*$", re.DOTALL | re.MULTILINE)


# --------------------------------------------------------------------------------------------------------------- pages


def page_text(text: str, name: str) -> str:
    """Return a page of the repository as the site has it: links to files outside of ``docs`` lead to their pages.

    ``name``: the page, as ``docs/language.md``.  A file that is no page of the site is named, not linked.

    >>> page_text("See [it](../examples/hello.py), [that](../passes).", "docs/language.md")
    'See [it](examples/hello.md), that.'
    """
    home = name.rsplit("/", 1)[0] if "/" in name else ""

    def link(found: re.Match[str]) -> str:
        words, target = found[1], found[2]
        path, mark, anchor = target.partition("#")
        there = normpath(f"{home}/{path}" if home else path)
        if re.fullmatch(r"examples/\w+\.py", there):
            there = f"docs/examples/{there[9:-3]}.md"
        elif there == "examples":
            there = "docs/examples/index.md"
        elif re.fullmatch(r"docs/tutorials/\w+\.md", there):
            there = f"{there[:-3]}.ipynb"
        elif there in ("CHANGELOG.md", "CONTRIBUTING.md"):
            there = f"docs/project/{there.lower()}"
        elif not (there.startswith("docs/") and (ROOT / there).is_file()):
            return words
        at = f"docs/project/{name.lower()}" if home == "" else name
        return f"[{words}]({relpath(there, at.rsplit('/', 1)[0])}{mark}{anchor})"

    parts: list[str] = []
    end = 0
    for block in _FENCE.finditer(text):
        parts += [_linked(text[end : block.start()], link), block[0]]
        end = block.end()
    return "".join([*parts, _linked(text[end:], link)])


def _linked(text: str, link: Callable[[re.Match[str]], str]) -> str:
    return re.sub(r"(?<!!)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)\s]+)\)", link, text)


def notebook(text: str) -> str:
    """Return a page of Markdown as a notebook, JSON: its blocks of Python are the cells of code.

    >>> [c["cell_type"] for c in json.loads(notebook("# A\\n```python\\n1\\n```\\nB"))["cells"]]
    ['markdown', 'code', 'markdown']
    """
    cells: list[dict[str, object]] = []
    for i, part in enumerate(re.split(r"^```python\n(.*?)\n?^```$", text, flags=re.DOTALL | re.MULTILINE)):
        kind = "code" if i % 2 else "markdown"
        if part.strip():
            cell: dict[str, object] = {"cell_type": kind, "id": f"cell{i}", "metadata": {}, "source": part.strip("\n")}
            if kind == "code":
                cell |= {"execution_count": None, "outputs": ()}
            cells.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1)


# ----------------------------------------------------------------------------------------------------------- reference


def public_names(package: str) -> list[str]:
    """Return the public names of a package, in the order of its stub."""
    stub = ROOT.joinpath(*package.split("."), "__init__.pyi")
    names: dict[str, None] = {}
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            names.update((alias.asname or alias.name, None) for alias in node.names)
        elif isinstance(node, ast.Assign):
            names.update((target.id, None) for target in node.targets if isinstance(target, ast.Name))
    return list(names)


def reference_text(package: str, described: set[int]) -> str:
    """Return the page of a package's public names, reStructuredText for Sphinx's autodoc.

    ``described``: the identities of the classes that earlier pages describe; those of this page are added.
    """
    module = import_module(package)
    groups: dict[str, list[str]] = {"Functions": [], "Classes": [], "Values": [], "Modules": []}
    for name in public_names(package):
        value = getattr(module, name)
        if inspect.ismodule(value):
            where = f":doc:`{value.__name__}`" if value.__name__ in PACKAGES else f"``{value.__name__}``"
            summary = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")
            groups["Modules"].append(f"* ``{name}``, {where}: {summary}\n")
        elif inspect.isclass(value):
            again = "   :no-index:\n" if id(value) in described else ""
            described.add(id(value))
            groups["Classes"].append(f".. autoclass:: {package}.{name}\n   :members:\n{again}")
        elif callable(value):
            groups["Functions"].append(f".. autofunction:: {package}.{name}\n")
        else:
            groups["Values"].append(f"* ``{name}``: of type ``{type(value).__name__}``\n")
    out = [package, "=" * len(package), "", inspect.getdoc(module) or "", ""]
    for title, entries in groups.items():
        if entries:
            out += [title, "-" * len(title), "", *entries, ""]
    return "\n".join(out)


# --------------------------------------------------------------------------------------------------------------- atoms


def drawn_atoms() -> dict[str, list[Atom]]:
    """Return the atoms that get a picture, by family; of ``wgmma`` those of N = 8: wider ones repeat its columns."""
    families: dict[str, list[Atom]] = {}
    for name in ATOMS:
        if "_64x" not in name or "_64x8x" in name:
            atom = ATOMS[name]
            families.setdefault(atom.family, []).append(atom)
    return families


def _atom_entry(atom: Atom) -> Iterator[str]:
    yield from (f"## {atom.name}", "", f"![{atom.name}](../../pictures/atoms/{atom.name}.svg)", "")
    yield from ("| | |", "|---|---|", f"| since | {atom.arch}, PTX {atom.ptx_version} |")
    if isinstance(atom, MmaAtom):
        yield f"| shape, D A B C | {'x'.join(map(str, atom.shape_mnk))}, {atom.d} {atom.a} {atom.b} {atom.c} |"
        for operand in ("a", "b", "c"):
            yield f"| {operand.upper()}: (thread, value) | `{getattr(atom, f'layout_{operand}')}` |"
    yield f"| instruction | `{str(atom.ptx).replace('|', chr(92) + '|')}` |"
    yield f"| source | {atom.isa} |"
    yield ""


def _write_atoms(source: Path) -> list[str]:
    """Write a page for each family, the pictures, and give the rows of the table of all of them."""
    rows = ["", "## Pictures", "", "What each instruction moves or multiplies, thread by thread.", ""]
    rows += ["| family | atoms | first |", "|---|---|---|"]
    for family, atoms in drawn_atoms().items():
        text = [f"# Atoms: {family}", "", "Pictures and layouts; [all of them as a table](../../atoms.md).", ""]
        if "wgmma" in family:
            text += ["Those of N = 8: of wider ones columns repeat.", ""]
        text += ["| atom | since | instruction |", "|---|---|---|"]
        text += [f"| [{a.name}](#{a.name.lower()}) | {a.arch} | `{a.emit.mnemonic}` |" for a in atoms] + [""]
        for atom in atoms:
            _write(source / "pictures" / "atoms" / f"{atom.name}.svg", draw(atom.name).svg)
            text += _atom_entry(atom)
        _write(source / "reference" / "atoms" / f"{family}.md", "\n".join(text))
        rows.append(f"| [{family}](reference/atoms/{family}.md) | {len(atoms)} | `{atoms[0].name}` |")
    return rows


# --------------------------------------------------------------------------------------------------------------- build


def _write(path: Path, text: str) -> None:
    replace_file(path, text.encode())
    path.chmod(0o644)  # a host of pages reads them as another user


def _toc(title: str, pages: Sequence[str], depth: int = 1) -> str:
    return f"```{{toctree}}\n:caption: {title}\n:maxdepth: {depth}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n"


def speed_text() -> str:
    """Return the first table of figures of ``docs/performance.md``, which is made from the committed results."""
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- gemm -->\n(.*?)\n<!-- /gemm -->", text, re.DOTALL)
    assert found is not None
    return found[1]


def start_text() -> str:
    """Return the start page: what README says first, with its kernel and its flow, a drawing and the speed."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    opening = readme.split("## ", 1)[0].replace("](docs/", "](").replace("](examples/", "](../examples/")
    opening = re.sub(r"\]\(examples\)", "](../examples)", opening).replace("](test/examples)", "](../test/examples)")
    return "\n".join(
        [
            page_text(opening, "docs/index.md"),
            "## What a thread holds\n",
            "Each instruction is a layout, and each layout has a picture: here the `mma.sync` of 16x8x16 that the GEMM",
            "for Ampere uses, [as all others](atoms.md), drawn by [`cute.viz`](drawings.md).\n",
            "![who holds what](pictures/atoms/SM80_16x8x16_F32F16F16F32_TN.svg)\n",
            "## How fast\n",
            "GEMM on one NVIDIA H200, TFLOP/s: ours / cuBLAS (the ratio). [Everything measured](performance.md).\n",
            speed_text() + "\n",
            _toc("Tutorials", [f"tutorials/{name}" for name in TUTORIALS]),
            _toc("Guides", [*GUIDES, "examples/index"]),
            _toc("Public names", [f"reference/{package}" for package in PACKAGES]),
            _toc("Reference", [*REFERENCES]),
            _toc("Project", ["project/changelog", "project/contributing"]),
        ]
    )


def write_sources(source: Path) -> int:
    """Write all that Sphinx reads to a folder, emptied before; returns how many pages there are."""
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(ROOT / "docs" / "site", source, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "docs" / "pictures", source / "pictures")
    for name in (*GUIDES, *REFERENCES):
        _write(source / f"{name}.md", page_text(_read(f"docs/{name}.md"), f"docs/{name}.md"))
    for name in TUTORIALS:
        text = page_text(_read(f"docs/tutorials/{name}.md"), f"docs/tutorials/{name}.md")
        _write(source / "tutorials" / f"{name}.ipynb", notebook(text))
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        _write(source / "project" / name.lower(), page_text(_read(name), name))
    described: set[int] = set()
    for package in PACKAGES:
        _write(source / "reference" / f"{package}.rst", reference_text(package, described))
    rows = _write_atoms(source)
    families = [f"reference/atoms/{family}" for family in drawn_atoms()]
    with open(source / "atoms.md", "a", encoding="utf-8") as atoms:
        atoms.write("\n".join(rows) + "\n\n" + _toc("Atoms", families))
    _write_examples(source / "examples")
    _write(source / "index.md", start_text())
    return sum(1 for p in source.rglob("*") if p.suffix in (".md", ".rst", ".ipynb"))


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _write_examples(folder: Path) -> None:
    programs = sorted(p for p in (ROOT / "examples").glob("*.py") if p.name != "lit.cfg.py")
    text = [
        "# Examples",
        "",
        "Programs to read, run and change: the folder `examples`.",
        "",
        "| program | |",
        "|---|---|",
    ]
    for program in programs:
        code = program.read_text(encoding="utf-8")
        doc = (ast.get_docstring(ast.parse(code)) or "").split("\n\n")[0].replace("\n", " ")
        text.append(f"| [{program.stem}]({program.stem}.md) | {doc} |")
        _write(folder / f"{program.stem}.md", f"# {program.name}\n\n{doc}\n\n````python\n{code}````\n")
    toc = _toc("Examples", [program.stem for program in programs])
    _write(folder / "index.md", "\n".join(text) + "\n\n" + toc)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; give the exit status, that of Sphinx."""
    parser = argparse.ArgumentParser(prog="gen_site", description="Build the documentation site.")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "out" / "site", metavar="DIR")
    parser.add_argument("--sources", action="store_true", help="write only the pages that Sphinx reads")
    options = parser.parse_args(arguments)
    source, built = options.output / "source", options.output / "html"
    pages = write_sources(source)
    print(f"{source}: {pages} pages")
    if options.sources:
        return 0
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-j", "auto", "-b", "html"]
    return subprocess.run([*command, "-d", str(options.output / "doctrees"), str(source), str(built)]).returncode


if __name__ == "__main__":
    sys.exit(main())
