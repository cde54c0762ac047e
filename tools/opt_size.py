"""Code size report (``--code-size``): ops per function, PTX instructions, machine code bytes.

===-- code size report --===
      @add   @launch  ops after
        31        12  input
        …
        58        20  one-shot-convert-to-llvm
        47            PTX instructions
       640            bytes of machine code (ptxas 13.0.88, sm_90a)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from cute_dialect.pipelines.gpu_objects import GpuObject
    from cute_dialect.pipelines.runner import IR, Step

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
