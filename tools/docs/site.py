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
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from posixpath import normpath, relpath

import cute_dialect.lang as cute
from cute_dialect.files import replace_file
from cute_dialect.runtime.progress import Task, add_options, reporting, track
from cute_dialect.tools.docs.public_names import PACKAGES
from cute_dialect.tools.docs.reference import PAGES as REFERENCE_PAGES
from cute_dialect.tools.docs.site_pages import (
    atom_pages,
    atom_pictures,
    atoms_text,
    dialect_pages,
    dialect_text,
    names_text,
)
from cute_dialect.viz import draw_tv

__all__ = ["GUIDES", "REFERENCES", "TUTORIALS", "main", "notebook", "page_text", "start_text", "write_sources"]

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
        prog="python -m cute_dialect.tools.docs.site",
        description="Build the documentation site.",
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
