"""Command-line options of ``cute-opt``: declarations, parser and help texts.

Passes are flags that run in the order given, so the parser reads the command line from left to right.  One or two
dashes are accepted, as in mlir-opt.  ``--load`` options are processed first, because they register passes that other
arguments name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from cute_dialect.ir.diagnostics import did_you_mean
from cute_dialect.passes.outside import OutsideError, PassTable
from cute_dialect.pipelines.registry import DEFAULT, PIPELINES

Kind: TypeAlias = Literal["flag", "value", "optional"]


class Row(NamedTuple):
    """An option: a ``flag`` takes an optional ``=true|false``, a ``value`` needs ``=VALUE`` or a next word, an
    ``optional`` takes an optional ``=VALUE``.
    """

    name: str
    kind: Kind
    metavar: str
    help: str
    choices: tuple[str, ...] = ()


class Group(NamedTuple):
    """A section of the help text and its options."""

    title: str
    rows: tuple[Row, ...]


GROUPS: tuple[Group, ...] = (
    Group(
        "Passes to run",
        (
            Row("pipeline", "optional", "NAME=key=value,…", "run a named pipeline (default nvptx)"),
            Row("lineinfo", "flag", "", "emit line information in PTX (needs a named pipeline)"),
            Row("pass-pipeline", "value", "TEXT", "run a textual pipeline, e.g. 'builtin.module(gpu.module(cse))'"),
            Row("load", "value", "MODULE", "load passes from a module or a .py file; may be repeated"),
            Row("list-pipelines", "flag", "", "list the named pipelines and their options"),
            Row("list-passes", "flag", "", "list the passes, including those of installed packages"),
            Row("dump-pass-pipeline", "flag", "", "print the pipeline as a --pass-pipeline text on standard error"),
        ),
    ),
    Group(
        "Input and output",
        (
            Row("o", "value", "FILE", "write to FILE instead of standard output, only on success"),
            Row("emit", "value", "KIND", "output format (default mlir)", ("mlir", "llvm", "ptx", "cubin")),
            Row("dialects", "value", "SET", "dialects and passes to register (default all)", ("cute", "base", "all")),
            Row("allow-unregistered-dialect", "flag", "", "accept unknown dialects, in generic form"),
            Row("core-only", "flag", "", "accept the core dialect only: 'div=' in a type is an error"),
            Row("div", "value", "on|off", "--div=off is --core-only", ("on", "off")),
            Row("split-input-file", "flag", "", "split the input at '// -----' lines and process each chunk"),
            Row("mlir-print-op-generic", "flag", "", 'print every op in generic form, "dialect.op"(…)'),
            Row("mlir-print-debuginfo", "flag", "", "print locations"),
            Row("mlir-print-local-scope", "flag", "", "print attributes in full, without aliases"),
            Row("mlir-use-nameloc-as-prefix", "flag", "", "print values with their names from the source"),
        ),
    ),
    Group(
        "Checking",
        (
            Row("verify-diagnostics", "flag", "", "compare diagnostics with '// expected-error {{…}}' comments"),
            Row("verify-each", "flag", "", "run the verifier after each pass (default true)"),
            Row("verify-legality", "flag", "", "check the postconditions of each pass"),
            Row("verify-roundtrip", "flag", "", "print, parse again and compare before running passes"),
            Row("validate", "optional", "samples=N,seed=S", "run each function before and after each pass and compare"),
        ),
    ),
    Group(
        "Instrumentation",
        (
            Row("mlir-print-ir-after-all", "flag", "", "print the IR after each pass"),
            Row("mlir-print-ir-before-all", "flag", "", "print the IR before each pass"),
            Row("mlir-print-ir-after", "value", "PASS,…", "print the IR after these passes"),
            Row("mlir-print-ir-before", "value", "PASS,…", "print the IR before these passes"),
            Row("mlir-print-ir-after-change", "flag", "", "print the IR after each pass that changed it"),
            Row("mlir-print-ir-after-failure", "flag", "", "print the IR after a pass that fails"),
            Row("mlir-print-ir-tree-dir", "value", "DIR", "print to files in DIR instead of standard error"),
            Row("mlir-timing", "flag", "", "print the time of each step"),
            Row("mlir-pass-statistics", "flag", "", "print the statistics of passes"),
            Row("code-size", "flag", "", "print the number of ops after each step and the machine code size"),
            Row("debug", "flag", "", "show the Python traceback of an internal error"),
        ),
    ),
    Group(
        "About",
        (
            Row("help", "optional", "PASS", "print this text, or describe PASS (or an option)"),
            Row("show-dialects", "flag", "", "list the dialects"),
            Row("version", "flag", "", "print versions"),
        ),
    ),
)

ROWS = {row.name: row for group in GROUPS for row in group.rows}
_ALIASES = {"h": "help", "v": "version", "mlir-disable-threading": "", "verify-diagnostics=all": "verify-diagnostics"}
_LISTS = ("mlir-print-ir-after", "mlir-print-ir-before")
"""Options that may be repeated; their values are joined with commas."""


class CommandLineError(ValueError):
    """An invalid command line."""


class PassFlag(NamedTuple):
    """A pass flag and the text of its options."""

    name: str
    options: str


class PipelineFlag(NamedTuple):
    """A pipeline flag: ``--pipeline=TEXT`` if ``named``, else ``--pass-pipeline=TEXT``."""

    named: bool
    text: str


class OptOptions:
    """The parsed command line."""

    def __init__(self) -> None:
        self.input = "-"
        self.run: list[PassFlag | PipelineFlag] = []
        self.values: dict[str, str] = {}
        self.flags: dict[str, bool] = {}
        self.passes = PassTable()
        """Passes that may run: built-in passes, those of ``--load`` and those of installed packages."""

    def flag(self, name: str, default: bool = False) -> bool:
        return self.flags.get(name, default)

    def value(self, name: str, default: str = "") -> str:
        return self.values.get(name, default)


def parse_arguments(arguments: Sequence[str]) -> OptOptions:
    """Parse a command line without the program name.

    Raises:
        CommandLineError: the command line is invalid.

    >>> parse_arguments(["k.mlir", "-cse", "--attach-nvvm-target=chip=sm_90", "opt-level=3"]).run[1].options
    'chip=sm_90 opt-level=3'
    """
    out = OptOptions()
    inputs: list[str] = []
    words = list(arguments)
    try:
        out.passes = PassTable(list(_loads(words)), ROWS)
        return _parse(words, out, inputs)
    except OutsideError as e:
        raise CommandLineError(str(e)) from None


def _loads(words: Sequence[str]) -> Iterator[str]:
    """Yield the values of ``--load``."""
    for at, word in enumerate(words):
        if word == "--":
            return
        name, equals, value = word.lstrip("-").partition("=")
        if word.startswith("-") and name == "load":
            following = words[at + 1] if at + 1 < len(words) else ""
            yield _given(ROWS["load"], value if equals else None, following)


def _given(row: Row, value: str | None, following: str) -> str:
    """Return the value of an option, after its ``=`` or from the following word.

    Raises:
        CommandLineError: the value is missing.
    """
    found = following if value is None else value
    if not found:
        raise CommandLineError(f"option '{_dashed(row)}' needs a value: {row.metavar}")
    if value is None and found.startswith("-") and found != "-":
        raise CommandLineError(
            f"option '{_dashed(row)}' needs a value: {row.metavar}, got '{found}' (a value that starts with a dash "
            f"is written {_dashed(row)}={found})"
        )
    return found


def _dashed(row: Row) -> str:
    return ("-" if len(row.name) == 1 else "--") + row.name


def _parse(words: Sequence[str], out: OptOptions, inputs: list[str]) -> OptOptions:
    only_files = False
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if only_files or word == "-" or not word.startswith("-"):
            if not only_files and _continues(word, words[at - 2] if at > 1 else "", out):
                last = out.run[-1]
                assert isinstance(last, PassFlag)
                out.run[-1] = PassFlag(last.name, f"{last.options} {word}")
            else:
                inputs.append(word)
            continue
        if word == "--":
            only_files = True
            continue
        bare = word.lstrip("-")
        name, equals, value = _ALIASES.get(bare, bare).partition("=")
        name = _ALIASES.get(name, name)
        if not name:
            continue
        row = ROWS.get(name)
        if row is None:
            if out.passes.get(name) is None:
                known = [*out.passes.names(), *ROWS]
                raise CommandLineError(f"unknown option or pass '{word}'{did_you_mean(name, known)}")
            out.run.append(PassFlag(name, value))
            continue
        if row.kind == "flag":
            on = _boolean(name, value) if equals else True
            if out.flags.setdefault(name, on) != on:
                raise CommandLineError(f"option '--{name}' is given both as true and as false")
            continue
        if row.kind == "value":
            value = _given(row, value if equals else None, words[at] if at < len(words) else "")
            at += not equals
        elif name == "help" and not equals and at < len(words) and _is_topic(words[at], out.passes):
            value = words[at].lstrip("-")
            at += 1
        if row.choices and value not in row.choices:
            raise CommandLineError(f"option '--{name}': expected one of {', '.join(row.choices)}, got '{value}'")
        before = out.values.get(name)
        if name in ("pipeline", "pass-pipeline"):
            out.run.append(PipelineFlag(name == "pipeline", value))
        elif name in _LISTS and before is not None:
            value = f"{before},{value}"
        elif name != "load" and before is not None and before != value:
            raise CommandLineError(f"option '{_dashed(row)}' is given twice: '{before}' and '{value}'")
        out.values[name] = value
    if len(inputs) > 1:
        raise CommandLineError(f"expected at most one input file, got {len(inputs)}: {' '.join(inputs)}")
    if inputs:
        out.input = inputs[0]
    if "pass-pipeline" in out.values and len(out.run) > 1:
        raise CommandLineError("--pass-pipeline cannot be combined with passes given as flags or with --pipeline")
    for name in _LISTS:
        for part in _names(out.value(name)):
            if out.passes.get(part) is None:
                raise CommandLineError(f"option '--{name}': {out.passes.unknown(part)}")
    if out.value("div"):
        off = out.value("div") == "off"
        if out.flags.setdefault("core-only", off) != off:
            raise CommandLineError("--core-only cannot be combined with --div=on")
    return out


def _names(text: str) -> list[str]:
    """Split a comma-separated list."""
    return [name for name in (part.strip() for part in text.split(",")) if name]


def _is_topic(word: str, passes: PassTable) -> bool:
    """Return True if the word after ``--help`` is a topic: an option, a pass, or any word but a .mlir file."""
    name = word.lstrip("-")
    return name in ROWS or passes.get(name) is not None or (word == name and not word.endswith(".mlir"))


def _boolean(name: str, value: str) -> bool:
    if value.lower() in ("true", "1"):
        return True
    if value.lower() in ("false", "0"):
        return False
    raise CommandLineError(f"option '--{name}': expected true or false, got '{value}'")


def _continues(word: str, previous: str, out: OptOptions) -> bool:
    """Return True if a word is an option of the preceding pass: ``--attach-nvvm-target=chip=sm_90 opt-level=3``."""
    key, equals, _ = word.partition("=")
    if not equals or not out.run or not isinstance(out.run[-1], PassFlag) or os.path.exists(word):
        return False
    last = out.run[-1]
    if not last.options or not (previous.lstrip("-").startswith(last.name + "=") or previous in last.options.split()):
        return False
    row = out.passes.get(last.name)
    names = out.passes.option_names(row) if row is not None else ()
    return names is None or key in names


# ----------------------------------------------------------------------------------------------------------- help texts


_INTRO = """\
usage: cute-opt [FILE|-] [options]

Reads MLIR with cute ops, runs passes on it and prints the result. -option and --option are equivalent.

  cute-opt layout.mlir                                    parse, verify, print
  cute-opt layout.mlir --cute-fold-static --cse           passes, in the order given
  cute-opt gemm.mlir --pipeline --emit=ptx -o gemm.ptx    compile to PTX (sm_90a, +ptx83)
  cute-opt gemm.mlir --pipeline=nvptx=chip=sm_90a,features=+ptx86 --emit=cubin -o gemm.cubin
  cute-opt k.mlir --attach-nvvm-target=chip=sm_90a opt-level=3
  cute-opt k.mlir --pass-pipeline='builtin.module(cute-fold-static,gpu.module(cse))'
  cute-opt k.mlir --pipeline=base --mlir-print-ir-after-all     print the IR after each pass
  cute-opt k.mlir --load=./my_passes.py --count-ops       run a pass from a Python file
  cute-opt --help cute-to-base                            describe a pass and its options
"""


def help_text(passes: PassTable) -> str:
    out = [_INTRO]
    for group in GROUPS:
        out.append(f"{group.title}:")
        if group.title == "Passes to run":
            out.append(_line("--PASS[=key=value …]", "run a pass (listed below) with its options"))
        out += [_option(row) for row in group.rows]
        out.append("")
    out.append("Passes:")
    out += [_line(f"--{row.name}", row.summary) for row in passes.rows()]
    out += [
        "",
        "Exit status: 0 on success, 1 on error. Errors are printed to standard error as FILE:LINE:COL: error: ….",
        "",
    ]
    return "\n".join(out)


def pass_help(name: str, passes: PassTable) -> str:
    """Return the description and options of a pass, or the description of an option.

    Raises:
        CommandLineError: ``name`` is neither a pass nor an option.
    """
    if name in ROWS:
        return _option(ROWS[name]) + "\n"
    row = passes.get(name)
    if row is None:
        raise CommandLineError(passes.unknown(name))
    summary, anchor = row.summary, row.anchor
    if row.upstream:
        text = "Runs in upstream MLIR, as do all passes after it."
        names = row.options
    else:
        cls = passes.load(row)
        text, summary, anchor = cls.help_text(), summary or cls.summary, anchor or cls.anchor
        names = cls.Options.names()
    out = [f"--{row.name}: {summary}", "", text]
    if names:
        out += ["", "Options: " + ", ".join(names)]
    if anchor:
        out += ["", "Runs on: " + ", ".join(anchor)]
    if row.origin:
        out += ["", f"Comes from: {row.origin}"]
    return "\n".join([*out, ""])


def _option(row: Row) -> str:
    dash = "-" if len(row.name) == 1 else "--"
    metavar = "|".join(row.choices) or row.metavar
    shown = {"flag": "", "optional": f"[={metavar}]", "value": f" {metavar}" if row.name == "o" else f"={metavar}"}
    return _line(f"{dash}{row.name}{shown[row.kind]}", row.help)


def _line(left: str, right: str) -> str:
    return f"  {left:<40} {right}" if len(left) <= 40 else f"  {left}\n{'':<42} {right}"


def versions_text() -> str:
    from importlib.metadata import PackageNotFoundError, version

    out: list[str] = []
    for what, packages in (
        ("cute-opt", ("cute-dialect",)),
        ("xDSL", ("xdsl",)),
        ("upstream MLIR", ("xtc-mlir-python-bindings", "mlir-python-bindings", "mlir")),
    ):
        found = "not installed"
        for package in packages:
            try:
                found = version(package)
                break
            except PackageNotFoundError:
                continue
        out.append(f"{what} {found}")
    return "\n".join([*out, ""])


def passes_text(passes: PassTable) -> str:
    return "".join(f"{row.name:<28} {row.summary}\n" for row in passes.rows())


def pipelines_text() -> str:
    out: list[str] = []
    for row in PIPELINES.values():
        out.append(f"{row.name:<28} {row.summary}")
        out += [f"  {key + '=' + o.default:<26} {o.help}" for key, o in row.options.items()]
        out.append(f"  {row.text()}")
    out.append(f"--pipeline alone means {DEFAULT}.")
    return "\n".join([*out, ""])
