"""Invalid programs in the language, with the complete text of their errors.

A file below ``test/errors/lang`` is Python: a preamble, then cases. A case starts with a line ``# ===== title`` and
ends with its expected error in comments ``#: …``: the class, then the text::

    # ===== a bound that is known only when the kernel runs
    def f(a, b):
        for i in cute.range_constexpr(a):
            b += i

    trace(f)
    #: StaticError
    #: loops.py:2:14: error F140: …

Each case runs as a separate file with the name of the corpus file, whose line 1 follows the title. It runs in the
interpreter, with the names of the preamble. ``python test/errors/lang_corpus.py --bless [FILE…]`` replaces the expected
errors by the actual ones, to be reviewed in the diff.
"""

from __future__ import annotations

import difflib
import linecache
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).with_name("lang")
HEAD, SAYS = "# ===== ", "#:"
NONE = "no error"
_HERE = f"{Path(__file__).parents[2]}/"
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


class Case(NamedTuple):
    """An invalid program. ``lines`` is its text, ``says`` the class and the text of its error."""

    file: str
    title: str
    preamble: str
    lines: list[str]
    says: list[str]

    @property
    def name(self) -> str:
        """Return the name of the case in pytest."""
        return f"{self.file.removesuffix('.py')}: {self.title}"


def cases_of(path: Path) -> Iterator[Case]:
    """Yield the cases of a file."""
    preamble, *rest = path.read_text(encoding="utf-8").split(f"\n{HEAD}")
    for text in rest:
        title, *lines = text.rstrip("\n").split("\n")
        code = [line for line in lines if not line.startswith(SAYS)]
        says = [line[len(SAYS) :].removeprefix(" ") for line in lines if line.startswith(SAYS)]
        yield Case(path.name, title, preamble, code, says)


def files() -> list[Path]:
    """Return the files of the corpus."""
    return sorted(FOLDER.glob("*.py"))


def _remember(name: str, text: str) -> None:
    """Register a text as the source of a file, for tracebacks and for the language."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)


_preambles: dict[tuple[str, str], dict[str, Any]] = {}


def _names(case: Case) -> dict[str, Any]:
    """Return the names that the preamble defines. Each preamble runs once."""
    key = case.file, case.preamble
    found = _preambles.get(key)
    if found is None:
        _remember("preamble.py", case.preamble)
        found = _preambles[key] = {"__name__": "preamble"}
        exec(compile(case.preamble, "preamble.py", "exec", dont_inherit=True), found)
    _remember("preamble.py", case.preamble)
    return found


def said_by(case: Case) -> list[str]:
    """Run a case in the interpreter; return the class and the text of its error."""
    from cute_dialect.lang.calls.options import running_on

    text = "\n".join(case.lines).rstrip() + "\n"
    _remember(case.file, text)
    names = {**_names(case), "__name__": case.file.removesuffix(".py")}
    try:
        with running_on("cpu"):
            exec(compile(text, case.file, "exec", dont_inherit=True), names)
    except Exception as e:
        said = _ADDRESS.sub("0x…", str(e).rstrip("\n")).replace(_HERE, "")
        return [type(e).__name__, *said.split("\n")]
    return [NONE]


def difference(case: Case) -> str:
    """Return a diff of the expected and the actual message, or "" if they are equal."""
    got = said_by(case)
    return "\n".join(difflib.unified_diff(case.says, got, "expected", "got", lineterm="")) if got != case.says else ""


def bless(path: Path) -> None:
    """Replace the expected errors in a file by the actual ones."""
    made = [path.read_text(encoding="utf-8").split(f"\n{HEAD}")[0].rstrip("\n") + "\n"]
    for case in cases_of(path):
        got = said_by(case)
        if got == [NONE]:
            print(f"{case.name}: no error")
        code = "\n".join(case.lines).rstrip("\n")
        made.append(f"\n{HEAD}{case.title}\n{code}\n" + "".join(f"{SAYS} {x}".rstrip() + "\n" for x in got))
    path.write_text("".join(made), encoding="utf-8")


if __name__ == "__main__":
    if "--bless" not in sys.argv[1:2]:
        sys.exit(__doc__)
    wanted = [FOLDER / Path(name).name for name in sys.argv[2:]] or files()
    for each in wanted:
        bless(each)
