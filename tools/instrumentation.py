"""Observers of the pass runner of ``cute-opt``: IR dumps, timing, statistics and code size.

``--code-size`` counts the ops of each function, PTX instructions and bytes of machine code::

    ===-- code size report --===
          @add   @launch  ops after
            31        12  input
            …
            58        20  one-shot-convert-to-llvm
            47            PTX instructions
           640            bytes of machine code (ptxas 13.0.88, sm_90a)
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from cute_dialect.tools.opt_options import CommandLineError, OptOptions

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.dialects.builtin import ModuleOp

    from cute_dialect.pipelines.runner import IR, Step
    from cute_dialect.pipelines.upstream import GpuObject


class IRDumper:
    """Prints the IR before and after passes, to standard error or to one file per dump.

    Files are ``DIR/<number>-<pass>.mlir`` and ``<number>-before-<pass>.mlir``, numbered by pass from 1;
    ``00-input.mlir`` is the parsed module.  Chunk ``k`` of a split input has the folder ``DIR/chunk-k``.
    """

    def __init__(self, options: OptOptions):
        self._generic = options.flag("mlir-print-op-generic")
        self._debuginfo = options.flag("mlir-print-debuginfo")
        self._local = options.flag("mlir-print-local-scope")
        self._folder = options.value("mlir-print-ir-tree-dir")
        self._before = _selected(options, "before")
        self._after = _selected(options, "after")
        self._failure = options.flag("mlir-print-ir-after-failure")
        self._changed = options.flag("mlir-print-ir-after-change")
        if (self._folder or self._changed) and self._before == () and self._after == () and not self._failure:
            self._after = None
        self._text = ""
        """The IR before the current pass, kept to detect changes."""
        self._chunk = ""
        self._number = 0

    def start(self, ir: IR, chunk: int | None) -> None:
        """Record a parsed module; ``chunk`` numbers the chunks of a split input from 1."""
        self._chunk = "" if chunk is None else f"chunk-{chunk}"
        self._number = 0
        if self._folder:
            self._show(ir, "00-input", "")

    def before(self, step: Step, ir: IR) -> None:
        """Print the module before a pass if it is selected."""
        self._number += 1
        if self._changed:
            self._text = self._text_of(ir)
        if self._before is None or step.name in self._before:
            self._show(ir, f"{self._number:02d}-before-{step.name}", f"IR Dump Before {step.name}")

    def after(self, step: Step, ir: IR, ok: bool, seconds: float, verify_seconds: float) -> None:
        """Print the module after a pass if it is selected."""
        if not ok and (self._failure or self._after is None or step.name in self._after):
            self._show(ir, f"{self._number:02d}-{step.name}-failed", f"IR Dump After {step.name} Failed")
        elif ok and self._changed and self._text_of(ir) == self._text:
            return
        elif ok and (self._after is None or step.name in self._after):
            self._show(ir, f"{self._number:02d}-{step.name}", f"IR Dump After {step.name}")

    def warn_of_absent(self, steps: Sequence[Step]) -> None:
        """Warn about selected passes that are not in the pipeline."""
        for name in dict.fromkeys([*(self._before or ()), *(self._after or ())]):
            if all(step.name != name for step in steps):
                runs = ", ".join(dict.fromkeys(step.name for step in steps)) or "nothing"
                sys.stderr.write(
                    f"cute-opt: warning: cannot print the IR around '{name}': it is not in the pipeline ({runs})\n"
                )

    def _text_of(self, ir: IR) -> str:
        return ir.text(generic=self._generic, debuginfo=self._debuginfo, local_scope=self._local)

    def _show(self, ir: IR, file: str, title: str) -> None:
        text = self._text_of(ir)
        if not self._folder:
            sys.stderr.write(f"// -----// {title} //----- //\n{text}\n")
            return
        folder = os.path.join(self._folder, self._chunk)
        try:
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, file + ".mlir"), "w", encoding="utf-8") as f:
                f.write(text)
        except OSError as e:
            raise CommandLineError(f"option '--mlir-print-ir-tree-dir': cannot write {folder}: {e.strerror}") from None


def _selected(options: OptOptions, when: str) -> tuple[str, ...] | None:
    """Return the passes to print around, or None for all passes."""
    if options.flag(f"mlir-print-ir-{when}-all"):
        return None
    return tuple(name.strip() for name in options.value(f"mlir-print-ir-{when}").split(",") if name.strip())


class Timing:
    """Accumulates wall time per phase and formats the ``--mlir-timing`` table."""

    def __init__(self, start: float):
        self._start = start
        self._rows: dict[str, float] = {}

    def add(self, name: str, seconds: float) -> None:
        """Add seconds to a row."""
        self._rows[name] = self._rows.get(name, 0.0) + seconds

    def lap(self, name: str, since: float) -> float:
        """Add the time since ``since`` to a row and return the current time."""
        now = perf_counter()
        self.add(name, now - since)
        return now

    def before(self, step: Step, ir: IR) -> None:
        """Do nothing; times are recorded after each pass."""

    def after(self, step: Step, ir: IR, ok: bool, seconds: float, verify_seconds: float) -> None:
        """Add the times of a pass and of the verifier after it to their rows."""
        self.add(step.name, seconds)
        if verify_seconds > 1e-5:
            self.add("verify", verify_seconds)

    def table(self) -> str:
        """Return the table of wall time in seconds, share of the total and name."""
        total = perf_counter() - self._start
        rows = dict(self._rows)
        rows["rest"] = max(total - sum(rows.values()), 0.0)
        lines = ["===-- execution time report (wall) --===", f"  {'seconds':>9}  {'share':>6}  name"]
        lines += [_row(seconds, total, name) for name, seconds in rows.items()]
        return "\n".join([*lines, _row(total, total, "total"), ""])


def _row(seconds: float, total: float, name: str) -> str:
    return f"  {seconds:9.4f}  {100 * seconds / total if total else 0:5.1f}%  {name}"


def statistics_text(statistics: Mapping[str, int]) -> str:
    """Format the statistics of the passes (``--mlir-pass-statistics``)."""
    lines = ["===-- pass statistics --==="]
    lines += [f"  {count:9d}  {name}" for name, count in sorted(statistics.items())]
    return "\n".join([*lines, ""])


# ------------------------------------------------------------------------------------------------------------ code size


FUNCTIONS = ("func.func", "gpu.func", "llvm.func")
_OP = re.compile(r'(?m)^( *)(?:%[\w:#, %]+ = )?"([\w.]+)"\(')
_SYMBOL = re.compile(r'sym_name = "([^"]+)"')


class CodeSize:
    """Observer of the pass runner that counts the ops after each step."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, Mapping[str, int]]] = []

    def start(self, ir: IR) -> None:
        """Count the ops of the parsed module."""
        self._add("input", _count(ir))

    def before(self, step: Step, ir: IR) -> None:
        """Do nothing; ops are counted after each pass."""

    def after(self, step: Step, ir: IR, ok: bool, seconds: float, verify_seconds: float) -> None:
        """Count the ops after a pass that succeeded."""
        if ok:
            self._add(step.name, _count(ir))

    def _add(self, stage: str, counts: Mapping[str, int]) -> None:
        if counts:
            self._rows.append((stage, counts))

    def objects(self, objects: Iterable[GpuObject]) -> None:
        """Count the PTX instructions of each kernel and, if ptxas is available, its bytes of machine code."""
        from cute_dialect.pipelines.ptxas import PtxasError, assemble, code_sizes  # late: start-up

        for o in objects:
            if o.format == "bin":
                self._add(f"bytes of machine code ({o.chip})", code_sizes(o.data))
                continue
            text = o.data.decode()
            self._add("PTX instructions", ptx_instructions(text))
            try:
                made = assemble(text, o.chip)
            except PtxasError as e:
                self._rows.append((f"no machine code: {e}", {}))
                continue
            what = f"bytes of machine code (ptxas {made.ptxas}, {o.chip})"
            self._add(what, {k.name: k.code for k in made.kernels})

    def table(self) -> str:
        """Return the report: one column per function, one row per stage."""
        names = list(dict.fromkeys(name for _, counts in self._rows for name in counts))
        widths = [max(9, len(name) + 1) for name in names]
        head = "".join(f" {'@' + name:>{width}}" for name, width in zip(names, widths))
        lines = ["===-- code size report --===", f"{head}  ops after"]
        for stage, counts in self._rows:
            cells = "".join(f" {counts.get(name, ''):>{width}}" for name, width in zip(names, widths))
            lines.append(f"{cells}  {stage}")
        return "\n".join([*lines, ""])


def _count(ir: IR) -> dict[str, int]:
    """Count the ops of each function with a body."""
    if ir.module is not None and ir.upstream is None:
        return _ops(ir.module)
    return count_generic(ir.text(generic=True))


def _ops(module: ModuleOp) -> dict[str, int]:
    from xdsl.dialects.builtin import StringAttr

    found: dict[str, int] = {}
    for op in module.walk():
        symbol = {**op.attributes, **op.properties}.get("sym_name")
        if op.name in FUNCTIONS and isinstance(symbol, StringAttr):
            size = sum(1 for _ in op.walk()) - 1
            if size:
                found[symbol.data] = size
    return found


def count_generic(text: str) -> dict[str, int]:
    """Count the ops of each function in a module in generic form.

    >>> count_generic('''"func.func"() <{function_type = () -> (), sym_name = "f"}> ({
    ...   %0 = "arith.constant"() <{value = 1 : i32}> : () -> i32
    ...   "func.return"() : () -> ()
    ... }) : () -> ()''')
    {'f': 2}
    """
    found: dict[str, int] = {}
    name, outside = "", 0
    for match in _OP.finditer(text):
        indent = len(match[1])
        if match[2] in FUNCTIONS:
            symbol = _SYMBOL.search(text, match.end())
            name, outside = symbol[1] if symbol is not None else "", indent
        elif name and indent > outside:
            found[name] = found.get(name, 0) + 1
        else:
            name = ""
    return found


def ptx_instructions(text: str) -> dict[str, int]:
    """Count the instructions of each kernel: statements that are neither directives nor labels.

    >>> ptx_instructions('''.visible .entry f(.param .u32 p)
    ... {
    ...   .reg .b32 %r<2>;
    ...   ld.param.b32 %r1, [p];
    ... $L: @%p1 bra $L;
    ...   ret;
    ... }''')
    {'f': 3}
    """
    found: dict[str, int] = {}
    for entry in re.split(r"(?m)^\.visible \.entry ", text)[1:]:
        name, _, body = re.sub(r"//.*", "", entry).partition("(")
        statements = [re.sub(r"^[\s{}]*(?:[\w$]+:[\s{}]*)*", "", s) for s in body.partition("{")[2].split(";")]
        found[name.strip()] = sum(1 for s in statements if s and not s.startswith("."))
    return found
