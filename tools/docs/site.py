"""Builder of the documentation site with Sphinx.

    python -m cute_dialect.tools.docs.site -o out/site       # out/site/html/index.html; needs the extra ``docs``
    python -m cute_dialect.tools.docs.site --sources         # writes only the sources for Sphinx

The pages of ``docs`` are plain Markdown.  The sources for Sphinx are generated: copies of the pages in which links to
repository files lead to pages of the site; a page for each package with public names, for each family of atoms with
drawings, and for each example; and a notebook for each tutorial, which the build runs.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from posixpath import normpath, relpath

from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation

import cute_dialect.lang as cute
from cute_dialect.algebra import AlgebraError, parse_layout, size
from cute_dialect.arch import ATOMS, Atom, MmaAtom
from cute_dialect.dialect.registry import get_cute_dialect, get_cute_nvgpu_dialect
from cute_dialect.files import replace_file
from cute_dialect.runtime.progress import Task, add_options, reporting, track
from cute_dialect.tools.docs.dialect import TITLES, by_module, op_text, read_example, sections
from cute_dialect.tools.docs.reference import PACKAGES, public_names
from cute_dialect.tools.docs.reference import PAGES as REFERENCE_PAGES
from cute_dialect.viz import Drawing, DrawingError, draw, draw_divide, draw_tv

# ------------------------------------------------------------------------------------------------------ generated pages


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


@cache
def _picture(name: str) -> str | None:
    """Return the SVG text of an atom's picture, or None if it would have too many cells."""
    try:
        return draw(name).svg
    except DrawingError:
        return None


def _entry(group: Sequence[Atom]) -> Iterator[str]:
    """Yield the lines for a picture and its atoms."""
    first = group[0]
    yield from (f"## {first.name}", "")
    if _picture(first.name) is None:
        yield "Too large for a picture; a narrower atom of the same kind shows the pattern."
    else:
        yield f"![{first.name}](../../pictures/atoms/{first.name}.svg)"
    yield ""
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
            svg = _picture(group[0].name)
            if svg is not None:
                yield group[0].name, svg


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


# ----------------------------------------------------------------------------------------------------------------- site


ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = ("first_kernel", "layouts_by_pictures", "gemm_step_by_step", "epilogue")
GUIDES = (
    "language",
    "operations",
    "plans",
    "kernels",
    "layouts",
    "drawings",
    "explore",
    "editors",
    "progress",
    "interpreter",
    "prove",
    "several-gpus",
    "blackwell",
    "porting",
    "embedding",
    "performance",
)
PERFORMANCE = (
    "gemm",
    "grouped",
    "convolution",
    "attention",
    "rows",
    "elementwise",
    "random",
    "limits",
    "accuracy",
    "host",
    "compile",
)
LANGUAGE_REFERENCE = ("index", *REFERENCE_PAGES)
REFERENCES = ("dialect", "atoms", "passes", "nvgpu", "abi", "interpreter-values", "upstream", "design")
_FENCE = re.compile(r"^(```+).*?^\1`*$", re.DOTALL | re.MULTILINE)


# --------------------------------------------------------------------------------------------------------------- pages


def page_text(text: str, name: str) -> str:
    """Return a repository page for the site, with links to files outside ``docs`` changed to their pages.

    ``name`` is the path of the page, such as ``docs/language.md``.  Links to files without a page become plain text.
    A link whose text is the name of a page gets the page title.

    >>> page_text("[layouts.md](layouts.md), [it](../examples/hello.py), [that](../passes).", "docs/language.md")
    '[](layouts.md), [it](examples/hello.md), that.'
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
        at = "docs/project" if home == "" else "docs" if home == "docs/site" else home
        shown = "" if re.fullmatch(r"[\w/]+\.md", words) else words  # Sphinx inserts the title of the page.
        return f"[{shown}]({relpath(there, at)}{mark}{anchor})"

    parts: list[str] = []
    end = 0
    for block in _FENCE.finditer(text):
        parts += [_linked(text[end : block.start()], link), block[0]]
        end = block.end()
    return "".join([*parts, _linked(text[end:], link)])


def _linked(text: str, link: Callable[[re.Match[str]], str]) -> str:
    return re.sub(r"(?<!!)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)\s]+)\)", link, text)


def notebook(text: str, name: str = "") -> str:
    """Convert a Markdown page to a notebook (JSON) whose code cells are the Python blocks.

    ``name`` is the name of the notebook, for a download link below the title.

    >>> [c["cell_type"] for c in json.loads(notebook("# A\\n```python\\n1\\n```\\nB"))["cells"]]
    ['markdown', 'code', 'markdown']
    """
    if name:
        title, _, rest = text.partition("\n")
        text = f"{title}\n\n{{nb-download}}`{name}.ipynb`: this page as a notebook.\n{rest}"
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


# --------------------------------------------------------------------------------------------------------------- build


def _write(path: Path, text: str) -> None:
    replace_file(path, text.encode())
    path.chmod(0o644)  # The web server reads the file as another user.


def _toc(title: str, pages: Sequence[str]) -> str:
    return f"```{{toctree}}\n:caption: {title}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n"


def _measured(name: str) -> list[str]:
    """Return the lines of a generated table of the performance pages."""
    pages = "".join(_read(f"docs/performance/{page}.md") for page in PERFORMANCE)
    found = re.search(rf"<!-- {name} -->\n(.*?)\n<!-- /{name} -->", pages, re.DOTALL)
    assert found is not None
    return found[1].splitlines()


def _functions(program: str, *names: str) -> str:
    """Return the source of some functions of a program, with their decorators."""
    code = _read(program)
    found = {n.name: n for n in ast.parse(code).body if isinstance(n, ast.FunctionDef) and n.name in names}
    lines = code.splitlines()
    parts = (lines[found[n].decorator_list[0].lineno - 1 : found[n].end_lineno] for n in names)
    return "\n\n\n".join("\n".join(part) for part in parts).replace("", "")


def start_text() -> str:
    """Return the start page: ``docs/site/index.md`` with an example kernel, its speed and the list of pages.

    The drawing of the page is ``pictures/start.svg``.
    """
    code = _functions("examples/elementwise_add.py", "elementwise_add_kernel", "elementwise_add")
    adds = [line for line in _measured("memory") if not line.startswith("| ") or line.startswith(("| kernel", "| add"))]
    parts = {
        "kernel": f"```python\n{code}\n```",
        "drawing": "![elements copied by each thread](pictures/start.svg)",
        "flow": "![from Python through cute IR and base IR to the GPU or the CPU interpreter](pictures/flow.svg)",
        "speed": "\n".join(adds),
        "gemm": "\n".join(_measured("gemm")),
    }
    text = re.sub(
        r"<!-- (\w+) -->", lambda found: parts[found[1]], page_text(_read("docs/site/index.md"), "docs/site/index.md")
    )
    pages = {
        "Tutorials": [f"tutorials/{name}" for name in TUTORIALS],
        "Guides": [*GUIDES, "examples/index"],
        "Performance": [f"performance/{name}" for name in PERFORMANCE],
        "Language and operations": [f"reference/{name}" for name in LANGUAGE_REFERENCE],
        "Reference": REFERENCES,
        "Public names": [f"{p.removeprefix('cute_dialect.')} <reference/{p}>" for p in PACKAGES],
        "Project": ["project/changelog", "project/contributing"],
    }
    return "\n".join([text, *(_toc(title, names) for title, names in pages.items())])


def start_drawing() -> str:
    """Return the SVG drawing of the start page: the layout of the example kernel with fewer threads and values."""
    threads, values = (cute.make_ordered_layout(shape, order=(1, 0)) for shape in ((2, 8), (2, 2)))
    tiler, tv = cute.make_layout_tv(threads, values)
    return draw_tv(tv, tiler).svg


def write_sources(source: Path) -> int:
    """Write the sources for Sphinx to an emptied folder; return the number of pages."""
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(ROOT / "docs" / "site", source, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "docs" / "pictures", source / "pictures")
    for name in (
        *GUIDES, *(f"performance/{name}" for name in PERFORMANCE), *REFERENCES,
        *(f"reference/{name}" for name in LANGUAGE_REFERENCE),
    ):  # fmt: skip
        _write(source / f"{name}.md", page_text(_read(f"docs/{name}.md"), f"docs/{name}.md"))
    for name in TUTORIALS:
        text = page_text(_read(f"docs/tutorials/{name}.md"), f"docs/tutorials/{name}.md")
        _write(source / "tutorials" / f"{name}.ipynb", notebook(text, name))
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        _write(source / "project" / name.lower(), page_text(_read(name), name))
    described: set[int] = set()
    for package in PACKAGES:
        _write(source / "reference" / f"{package}.rst", names_text(package, described))
    _write_atoms(source)
    _write_dialect(source)
    _write_examples(source / "examples")
    _write(source / "pictures" / "start.svg", start_drawing())
    _write(source / "index.md", start_text())
    return sum(1 for p in source.rglob("*") if p.suffix in (".md", ".rst", ".ipynb"))


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _write_atoms(source: Path) -> None:
    pages = atom_pages()
    for family, text in pages.items():
        _write(source / "reference" / "atoms" / f"{family}.md", text)
    for name, svg in track(atom_pictures(), "drawing", "atoms"):
        _write(source / "pictures" / "atoms" / f"{name}.svg", svg)
    page = source / "atoms.md"
    toc = _toc("Atoms", [f"reference/atoms/{family}" for family in pages])
    _write(page, page.read_text(encoding="utf-8") + atoms_text() + "\n" + toc)


def _write_dialect(source: Path) -> None:
    groups: list[str] = []
    for group, text, pictures in dialect_pages():
        groups.append(f"reference/dialect/{group}")
        _write(source / f"{groups[-1]}.md", text)
        for name, svg in pictures.items():
            _write(source / "pictures" / "ops" / f"{name}.svg", svg)
    page = source / "dialect.md"
    _write(page, dialect_text(page.read_text(encoding="utf-8")) + "\n" + _toc("Ops", groups))


def _write_examples(folder: Path) -> None:
    programs = sorted(p for p in (ROOT / "examples").glob("*.py") if p.name != "lit.cfg.py")
    rows = [
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
        rows.append(f"| [{program.stem}]({program.stem}.md) | {doc} |")
        _write(folder / f"{program.stem}.md", f"# {program.name}\n\n{doc}\n\n````python\n{code}````\n")
    _write(folder / "index.md", "\n".join(rows) + "\n\n" + _toc("Examples", [program.stem for program in programs]))


def build(source: Path, output: Path) -> int:
    """Build the site with Sphinx, which runs the tutorials, replace the old pages, and return the exit status.

    Warnings are printed as errors, and the old pages are kept if there are any.
    """
    new, kernels = output.with_name("html.new"), output.with_name("ipython")
    shutil.rmtree(new, ignore_errors=True)
    # The tutorials ignore the user's IPython settings, and port warnings are disabled.
    _write(kernels / "profile_default" / "ipython_kernel_config.py", 'get_config().IPKernelApp.log_level = "ERROR"\n')
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-E", "-j", "auto", "-b", "html"]
    environment = os.environ | {"IPYTHONDIR": str(kernels), "NO_COLOR": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    messages: list[str] = []
    with subprocess.Popen(
        [*command, "-d", str(output.with_name("doctrees")), str(source), str(new)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", env=environment,
    ) as sphinx, Task("building pages", 200, "%") as task:  # fmt: skip
        assert sphinx.stdout is not None
        for line in sphinx.stdout:
            step = re.match(r"(reading sources|writing output)\.\.\. *\[ *(\d+)%\] *(.*)", line)
            if step is None and not re.match(r"[a-z][\w ]*\.\.\.", line):
                messages.append(line)
            elif step is not None:
                task.update(int(step[2]) + (100 if step[1] == "writing output" else 0), name=step[3].strip())
    if sphinx.returncode:
        sys.stderr.writelines(messages)
        return sphinx.returncode
    old = output.with_name("html.old")
    if output.exists():
        output.rename(old)
    new.rename(output)
    shutil.rmtree(old, ignore_errors=True)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return the exit status of Sphinx."""
    parser = argparse.ArgumentParser(
        prog="python -m cute_dialect.tools.docs.site", description="Build the documentation site."
    )
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "out" / "site", metavar="DIR")
    parser.add_argument("--sources", action="store_true", help="write only the sources for Sphinx")
    add_options(parser)
    options = parser.parse_args(arguments)
    source, built = options.output / "source", options.output / "html"
    with reporting(options.progress, options.progress_json):
        pages = write_sources(source)
        status = 0 if options.sources else build(source, built)
    if status == 0:
        print(f"{pages} pages: {source if options.sources else built / 'index.html'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
