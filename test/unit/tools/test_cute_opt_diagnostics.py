"""cute-opt: format of diagnostics, and their comparison with those that a file expects."""

from __future__ import annotations

import pytest

from cute_dialect.ir.diagnostics import Diagnostic, DiagnosticEngine, Position, Severity, Source, nearest, render
from cute_dialect.tools.verify_diagnostics import compare


def test_render_shows_line_caret_and_notes():
    source = Source("f.mlir", "a\n\tlong line here\n", line_offset=10)
    note = Diagnostic("note", "because", Position("f.mlir", 11, 1))
    d = Diagnostic("error", "bad", Position("f.mlir", 12, 7, 11), (note,))
    assert render(d, {"f.mlir": source}) == (
        "f.mlir:12:7: error: bad\n\tlong line here\n\t     ^~~~\nf.mlir:11:1: note: because\na\n^\n"
    )


def test_render_marks_the_word_at_a_position_without_an_end():
    source = Source("f", '  %0 = "arith.addi"(%a)\n')
    assert render(Diagnostic("error", "m", Position("f", 1, 8)), {"f": source}).endswith("\n       ^~~~~~~~~~~~\n")


def test_render_without_a_line():
    assert render(Diagnostic("warning", "m", Position("f"))) == "f: warning: m\n"
    assert render(Diagnostic("error", "m", Position("f", 9, 1)), {"f": Source("f", "x")}) == "f:9:1: error: m\n"


@pytest.mark.parametrize("text", ["", "\n", "ab\ncd", "ab\r\ncd\n", "\n\nx"])
def test_line_col_agrees_with_a_scan(text: str):
    source = Source("f", text)
    for offset in range(len(text) + 1):
        before = text[:offset]
        assert source.line_col(offset) == (before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


def test_nearest():
    assert nearest("cute-expand-op", ["cse", "cute-expand-ops"]) == ["cute-expand-ops"]
    assert nearest("zzz", ["cse"]) == []


def test_engine_counts_errors():
    seen: list[Diagnostic] = []
    engine = DiagnosticEngine(seen.append, "f")
    engine.remark("r")
    engine.error("e", Position("f", 3, 1), [engine.note("n")])
    assert engine.errors == 1
    assert [d.severity for d in seen] == ["remark", "error"]
    assert seen[0].position == Position("f")


def at(line: int, message: str, severity: Severity = "error") -> Diagnostic:
    return Diagnostic(severity, message, Position("f", line, 1) if line else Position("f"))


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("x // expected-error {{bad}}", [at(1, "a bad thing")]),
        ("// expected-error@+1 {{bad}}\nx", [at(2, "bad")]),
        ("x\n// expected-error@-1 {{bad}}", [at(1, "bad")]),
        ("x\n// expected-error@above {{bad}}\n// expected-note@above {{see}}", [at(1, "bad"), at(1, "see", "note")]),
        ("// expected-error@below {{bad}}\n// expected-remark@below {{so}}\nx", [at(3, "bad"), at(3, "so", "remark")]),
        ("// expected-warning@unknown {{odd}}", [at(0, "odd", "warning")]),
        ("x // expected-error 2 {{bad}}", [at(1, "bad"), at(1, "bad")]),
        ("x // expected-error@+0 2 {{bad}}", [at(1, "bad"), at(1, "bad")]),
        ("x // expected-error {{bad}}", [at(1, "bad"), at(1, "bad")]),
        ("x // expected-error-re {{type {{i[0-9]+}} (really)}}", [at(1, "the type i32 (really)")]),
        ("x // expected-error {{a {{b}} c}}", [at(1, "a {{b}} c")]),
    ],
)
def test_expected_diagnostics(text: str, seen: list[Diagnostic]):
    assert compare(text, "f", seen) == []


@pytest.mark.parametrize(
    ("text", "seen", "problems"),
    [
        ("x // expected-error {{bad}}", [], ['expected error "bad" was not produced']),
        ("x", [at(1, "bad")], ["unexpected error: bad"]),
        (
            "x // expected-error {{bad}}",
            [at(2, "bad")],
            ["unexpected error: bad", 'expected error "bad" was not produced'],
        ),
        (
            "x // expected-warning {{bad}}",
            [at(1, "bad")],
            ["'error' diagnostic emitted when expecting a 'warning'", 'expected warning "bad" was not produced'],
        ),
        ("x // expected-error 2 {{bad}}", [at(1, "bad")], ['expected error "bad" was not produced (1 of 2 times)']),
        ("x // expected-error 1 {{bad}}", [at(1, "bad"), at(1, "bad")], ["unexpected error: bad"]),
        (
            "x // expected-error-re {{i[0-9]}}",
            [at(1, "i3")],
            ["unexpected error: i3", 'expected error "i[0-9]" was not produced'],
        ),
        (
            "x // expected-error-re {{a{{(}}}}",
            [],
            ["invalid regular expression '(': missing ), unterminated subpattern at position 0"],
        ),
        ("x // expected-error bad", [], ["malformed expected-* comment"]),
        (
            "// expected-error@below {{bad}}",
            [],
            ["no line follows this comment", 'expected error "bad" was not produced'],
        ),
    ],
)
def test_unexpected_diagnostics(text: str, seen: list[Diagnostic], problems: list[str]):
    assert [d.message for d in compare(text, "f", seen)] == problems


def test_notes_must_be_expected_unless_they_are_context():
    context = Diagnostic("note", "see current operation", Position("f", 1, 1), (), True)
    note = Diagnostic("note", "here", Position("f", 2, 1))
    error = Diagnostic("error", "bad", Position("f", 1, 1), (context, note))
    assert [d.message for d in compare("x // expected-error {{bad}}", "f", [error])] == ["unexpected note: here"]
    assert compare("x // expected-error {{bad}}\ny // expected-note {{here}}", "f", [error]) == []


def test_lines_count_from_the_start_of_the_file():
    assert compare("x // expected-error {{bad}}", "f", [at(41, "bad")], line_offset=40) == []
