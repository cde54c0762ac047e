"""Generators of documents: ``python -m cute_dialect.tools.docs.NAME``, most with ``--check``.

``dialect``, ``reference``, ``interpreter_values`` and ``performance`` write pages of ``docs``.  ``grammar`` writes the
grammars of editors, ``examples`` the printed kernels of ``test/examples``, and ``irdl`` the dialect in IRDL.  ``site``
builds the documentation site.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cute_dialect.files import replace_file


def generate(
    name: str,
    description: str,
    output: Path,
    files: Callable[[Path], Mapping[Path, str | None]],
    arguments: Sequence[str] | None,
) -> int:
    """Run a generator with ``--check`` and ``--output``, and return the exit status.

    Args:
        name: the module of the generator in ``cute_dialect.tools.docs``.
        output: the default file or folder.
        files: return the texts of all files for an output; None for a file that must not exist.
    """
    parser = argparse.ArgumentParser(prog=f"python -m cute_dialect.tools.docs.{name}", description=description)
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if a file is out of date")
    where = f"{output.parent.name}/{output.name}" if output.parent.name == "docs" else output.name
    parser.add_argument("-o", "--output", type=Path, default=output, help=f"output file or folder (default: {where})")
    options = parser.parse_args(arguments)
    return write_or_check(files(options.output), name, check=options.check)


def write_or_check(files: Mapping[Path, str | None], name: str, *, check: bool) -> int:
    """Write the files that differ, or, if ``check``, report them and return 1."""
    stale = 0
    for path, text in files.items():
        if (path.read_text(encoding="utf-8") if path.exists() else None) == text:
            continue
        if check:
            stale = 1
            print(f"{path} is out of date: run python -m cute_dialect.tools.docs.{name}", file=sys.stderr)
        elif text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, text.encode())
    return stale
