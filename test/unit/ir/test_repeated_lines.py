"""A line that repeats an earlier one is parsed to the same result by the fast path."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.utils.exceptions import ParseError

from cute_dialect.ir.context import make_context
from cute_dialect.ir.diagnostics import DiagnosticEngine, Source
from cute_dialect.ir.lexing import QuickToken
from cute_dialect.ir.parsing import LocatedParser, parse_module
from cute_dialect.ir.printing import ir_text

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted(p for folder in ("examples", "filecheck/kernels") for p in (ROOT / "test" / folder).rglob("*.mlir"))

HEAD = """func.func @f(%a: i32, %b: i32, %c: i64) {
  %0 = arith.addi %a, %b : i32
"""


class _TokenByToken(LocatedParser):
    def _line(self, name: QuickToken) -> None:
        return None


def outcome(parser: type[LocatedParser], text: str) -> str:
    """Return the generic IR with its locations, or the parse error."""
    try:
        module = parser(make_context("all", allow_unregistered=True), Source("f", text)).parse_module()
    except ParseError as e:
        return f"{e.span.start}:{e.span.end}: {e.msg}"
    return ir_text(module, generic=True, debuginfo=True)


@pytest.mark.sample(every=10)
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_files(path: Path) -> None:
    text = path.read_text()
    assert outcome(LocatedParser, text) == outcome(_TokenByToken, text)


@pytest.mark.parametrize(
    "second",
    [
        "%1 = arith.addi %b, %0 : i32",
        "%1 = arith.addi %b, %c : i32",  # a value of another type
        "%1 = arith.addi %b, %later : i32",  # an undefined value
        "%1 = arith.addi %b, %0#1 : i32",  # a result number past the end
        "%1:2 = arith.addi %b, %0 : i32",  # more result names than results
        "%0 = arith.addi %b, %0 : i32",  # a name that is already defined
        '%1 = arith.addi %b, %0 : i32 loc("g":7:8)',
        '%1 = arith.addi %b, %0 : i32\n    loc("g":7:8)',  # location on the next line
        '%1 = arith.addi %b, %0 : i32 {x = "%a"}',
        "%1 = arith.addi %b, %0 : i32 %2 = arith.addi %b, %0 : i32",  # two ops on a line
        "%1 = arith.addi %b, %0 : i32 // a comment\n  // another",
        "%1 = arith.addi %b, %0 : i32 junk",
        "%1 = arith.addi %b, %0 : i32\n  junk.y",
        "%1 = arith.addi %b,\n    %0 : i32",
        "%x, %y = arith.addi %b, %0 : i32",
    ],
)
def test_second_line(second: str) -> None:
    text = f"{HEAD}  {second}\n  %last = arith.addi %a, %a : i32\n  return\n}}\n"
    assert outcome(LocatedParser, text) == outcome(_TokenByToken, text)


def test_text_with_a_percent_sign_is_not_a_value() -> None:
    text = """func.func @f(%a: i1) {
  cf.assert %a, "50 %d"
  cf.assert %a, "50 %e"
  cf.assert %a, "50 %d"
  return
}
"""
    assert outcome(LocatedParser, text) == outcome(_TokenByToken, text)
    assert "50 %e" in outcome(LocatedParser, text)


def test_repeated_lines_share_a_parse() -> None:
    """A repeated line reuses the attribute objects of the first, so it is not parsed again."""
    line = "arith.addi %a, %b overflow<nsw> : i32\n"
    text = f"func.func @f(%a: i32, %b: i32) {{\n  %0 = {line}  %1 = {line}  %2 = {line}  return\n}}\n"
    module = parse_module(make_context("all"), Source("f", text), DiagnosticEngine())
    assert module is not None
    first, second, _ = [op for op in module.walk() if op.name == "arith.addi"]
    assert first.properties["overflowFlags"] is second.properties["overflowFlags"]
    assert [o.type for o in second.operands] == [o.type for o in first.operands]
