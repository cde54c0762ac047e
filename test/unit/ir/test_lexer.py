"""The lexer produces the tokens of xDSL's lexer and fails at the same places."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind

from cute_dialect.ir.lexing import QuickLexer

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted([*(ROOT / "test" / "examples").glob("*.mlir"), *(ROOT / "test" / "filecheck").rglob("*.mlir")])


def tokens(lexer: type[MLIRLexer], text: str) -> list[tuple[MLIRTokenKind, int, int]]:
    machine = lexer(Input(text, "x"))
    out: list[tuple[MLIRTokenKind, int, int]] = []
    try:
        while not out or out[-1][0] is not MLIRTokenKind.EOF:
            t = machine.lex()
            out.append((t.kind, t.span.start, t.span.end))
    except ParseError as e:
        out.append((MLIRTokenKind.EOF, e.span.start, -1))
    return out


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_files(path: Path) -> None:
    text = path.read_text()
    assert tokens(QuickLexer, text) == tokens(MLIRLexer, text)


def test_random_text() -> None:
    rng = random.Random(7)
    parts = [
        "%a", "%0", "%-", "!t.x", "!", "^bb0", "#map", "#-}", "{-#", "{", "}", "->", "-", ">", "...", "..", "(", ")",
        "[", "]", "<", ":", ",", "=", "?", "+", "/", "*", "|", "@f", '@"g"', '"s"', '"\\n"', "0x1F", "12", "1.5e-3",
        "abc.d$", "_x", "\u00e9", " ", "\n", "\t", "// c\n", "//", "&", "%", "^", "#",
    ]  # fmt: skip
    for _ in range(3000):
        text = "".join(rng.choice(parts) + rng.choice(["", " "]) for _ in range(rng.randint(1, 8)))
        assert tokens(QuickLexer, text) == tokens(MLIRLexer, text), text


def test_white_space_and_comments_take_linear_time() -> None:
    """The lexer's patterns must not backtrack over white space and comments, which would take exponential time."""
    assert len(tokens(QuickLexer, " " * 200_000 + "&")) == 1
    assert len(tokens(QuickLexer, "// \n" * 100_000 + "&")) == 1
