"""The command line of ``cute-opt``: what may be given, how it is read, and the help.

Passes are flags that run in the order given, so the line is read from left to right by hand; one dash and two mean the
same, as in mlir-opt.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from cute_dialect.diagnostics import did_you_mean

Kind: TypeAlias = Literal["flag", "value", "optional"]


class Row(NamedTuple):
    """One option: a ``flag`` takes ``=true|false``, a ``value`` needs ``=VALUE`` or a next word, an ``optional`` one
    may have ``=VALUE``."""

    name: str
    kind: Kind
    metavar: str
    help: str
    choices: tuple[str, ...] = ()


class Group(NamedTuple):
    """A heading of the help and the options under it."""

    title: str
    rows: tuple[Row, ...]


GROUPS: tuple[Group, ...] = (
    Group(
        "What to run",
        (
            Row("pipeline", "optional", "NAME=key=value,…", "a named pipeline; alone: nvptx"),
            Row("pass-pipeline", "value", "TEXT", "a textual pipeline, e.g. 'builtin.module(gpu.module(cse))'"),
            Row("list-pipelines", "flag", "", "list the named pipelines and their options"),
            Row("list-passes", "flag", "", "list the passes"),
        ),
    ),
    Group(
        "Input and output",
        (
            Row("o", "value", "FILE", "write to FILE (only if all went well) instead of standard output"),
            Row("emit", "value", "KIND", "what to write (default mlir)", ("mlir", "llvm", "ptx", "cubin")),
            Row("dialects", "value", "SET", "dialects and passes to know (default all)", ("cute", "base", "all")),
            Row("allow-unregistered-dialect", "flag", "", "accept unknown dialects, in generic form"),
            Row("core-only", "flag", "", "the core dialect: 'div=' in a type is a parse error"),
            Row("div", "value", "on|off", "--div=off is --core-only", ("on", "off")),
            Row("split-input-file", "flag", "", "treat the pieces between lines '// -----' one by one"),
            Row("mlir-print-op-generic", "flag", "", 'print every op in generic form, "dialect.op"(…)'),
            Row("mlir-print-debuginfo", "flag", "", "print locations"),
            Row("mlir-print-local-scope", "flag", "", "print attributes in full, without aliases"),
            Row("mlir-use-nameloc-as-prefix", "flag", "", "values keep the names that the source gave them"),
        ),
    ),
    Group(
        "Checking",
        (
            Row("verify-diagnostics", "flag", "", "compare diagnostics with '// expected-error {{…}}' comments"),
            Row("verify-each", "flag", "", "run the verifier after each pass (default true)"),
            Row("verify-legality", "flag", "", "check after each pass what it promises to leave behind"),
            Row("verify-roundtrip", "flag", "", "print, parse again and compare, before the passes"),
            Row("validate", "optional", "samples=N,seed=S", "run each function before and after each pass, compare"),
        ),
    ),
    Group(
        "Watching",
        (
            Row("mlir-print-ir-after-all", "flag", "", "print the IR after each pass"),
            Row("mlir-print-ir-before-all", "flag", "", "print the IR before each pass"),
            Row("mlir-print-ir-after", "value", "PASS,…", "print the IR after these passes"),
            Row("mlir-print-ir-before", "value", "PASS,…", "print the IR before these passes"),
            Row("mlir-print-ir-after-failure", "flag", "", "print the IR after a pass that fails"),
            Row("mlir-print-ir-tree-dir", "value", "DIR", "print each of these into a file of DIR"),
            Row("mlir-timing", "flag", "", "say how long each step took"),
            Row("mlir-pass-statistics", "flag", "", "say what passes counted"),
            Row("code-size", "flag", "", "say how many ops each step leaves, and how many bytes a kernel becomes"),
            Row("debug", "flag", "", "show the Python traceback of an internal error"),
        ),
    ),
    Group(
        "About",
        (
            Row("help", "optional", "PASS", "this text, or what PASS does and its options"),
            Row("show-dialects", "flag", "", "list the dialects"),
            Row("version", "flag", "", "print versions"),
        ),
    ),
)

ROWS = {row.name: row for group in GROUPS for row in group.rows}
_ALIASES = {"h": "help", "v": "version", "mlir-disable-threading": "", "verify-diagnostics=all": "verify-diagnostics"}


class CommandLineError(ValueError):
    """The command line cannot be understood."""


class PassFlag(NamedTuple):
    """A pass as given on the command line: its name and the text of its options."""

    name: str
    options: str


class PipelineFlag(NamedTuple):
    """``--pipeline=TEXT`` or ``--pass-pipeline=TEXT``."""

    named: bool
    text: str


class OptOptions:
    """A command line, read."""

    def __init__(self) -> None:
        self.input = "-"
        self.run: list[PassFlag | PipelineFlag] = []
        self.values: dict[str, str] = {}
        self.flags: dict[str, bool] = {}

    def flag(self, name: str, default: bool = False) -> bool:
        """Whether a flag is on."""
        return self.flags.get(name, default)

    def value(self, name: str, default: str = "") -> str:
        """The value of an option."""
        return self.values.get(name, default)


def parse_arguments(arguments: Sequence[str]) -> OptOptions:
    """Read a command line (without the program's name).  Raises CommandLineError.

    >>> parse_arguments(["k.mlir", "-cse", "--attach-nvvm-target=chip=sm_90", "opt-level=3"]).run[1].options
    'chip=sm_90 opt-level=3'
    """
    from cute_dialect.passes.registry import PASSES

    out = OptOptions()
    inputs: list[str] = []
    words = list(arguments)
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
        name, equals, value = word.lstrip("-").partition("=")
        name = _ALIASES.get(name, name)
        if not name:
            continue
        row = ROWS.get(name)
        if row is None:
            if name not in PASSES:
                raise CommandLineError(f"unknown option or pass '{word}'{_suggest(name)}")
            out.run.append(PassFlag(name, value))
            continue
        if row.kind == "flag":
            out.flags[name] = _boolean(name, value) if equals else True
            continue
        if row.kind == "value" and not equals:
            if at == len(words):
                raise CommandLineError(f"option '--{name}' needs a value: {row.metavar}")
            value = words[at]
            at += 1
        elif name == "help" and not equals and at < len(words) and words[at].lstrip("-") in PASSES:
            value = words[at].lstrip("-")
            at += 1
        if row.choices and value not in row.choices:
            raise CommandLineError(f"option '--{name}': expected {', '.join(row.choices)}, got '{value}'")
        if name in ("pipeline", "pass-pipeline"):
            out.run.append(PipelineFlag(name == "pipeline", value))
        out.values[name] = value
    if len(inputs) > 1:
        raise CommandLineError(f"one input file at most, got {len(inputs)}: {' '.join(inputs)}")
    if inputs:
        out.input = inputs[0]
    if "pass-pipeline" in out.values and len(out.run) > 1:
        raise CommandLineError("--pass-pipeline cannot be combined with passes given as flags or with --pipeline")
    if out.value("div") == "off":
        out.flags["core-only"] = True
    return out


def _boolean(name: str, value: str) -> bool:
    if value.lower() in ("true", "1"):
        return True
    if value.lower() in ("false", "0"):
        return False
    raise CommandLineError(f"option '--{name}': expected true or false, got '{value}'")


def _continues(word: str, previous: str, out: OptOptions) -> bool:
    """Whether a word is one more option of the pass before it: ``--attach-nvvm-target=chip=sm_90 opt-level=3``."""
    key, equals, _ = word.partition("=")
    if not equals or not out.run or not isinstance(out.run[-1], PassFlag) or os.path.exists(word):
        return False
    last = out.run[-1]
    if not last.options or not (previous.lstrip("-").startswith(last.name + "=") or previous in last.options.split()):
        return False
    from cute_dialect.passes.registry import PASSES, option_names

    names = option_names(PASSES[last.name])
    return names is None or key in names


def _suggest(name: str) -> str:
    from cute_dialect.passes.registry import PASSES

    return did_you_mean(name, [*PASSES, *ROWS])
