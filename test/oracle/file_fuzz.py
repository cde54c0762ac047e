"""Damaged ``.mlir`` files through ``cute-opt``: whatever the file, there is output or a diagnostic, and it comes soon.

    python test/oracle/file_fuzz.py --count 1000000 --seed 0

Every case takes one of the project's own test files, one in five in generic form, and damages it: bytes changed,
removed, doubled; lines moved; tokens swapped with those of other files; numbers made huge; brackets nested deep.  The
pieces of a file between ``// -----`` are cases of their own.  Failures (an exception that is no diagnostic, a run that
takes longer than the limit, more memory than the limit) are written to a folder, with the seed that makes them again.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import resource
import signal
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[1]
SECONDS = 10
MEMORY = 6 << 30
PASSES = (
    [],
    ["--cute-fold-static"],
    ["--cute-expand-ops"],
    ["--cute-fold-static", "--cute-expand-ops", "--convert-cute-algo-to-arch", "--cute-to-base"],
    ["--canonicalize", "--cse"],
    ["--verify-roundtrip"],
)
TOKEN = re.compile(r'"[^"\n]*"|[%@!#^]?[A-Za-z_][\w.$]*|\d+|->|\S')


class TooSlow(BaseException):
    """The time limit was reached."""


def corpus() -> list[str]:
    """The pieces of the project's test files."""
    pieces: list[str] = []
    for folder in ("errors", "filecheck", "examples"):
        for path in sorted((ROOT / folder).rglob("*.mlir")):
            pieces += [p for p in path.read_text().split("// -----") if p.strip()]
    return pieces


@cache
def generic(text: str) -> str:
    """A piece in generic form, where nothing but the verifier holds an op's parts together; as it is if it has none."""
    from cute_dialect.context import make_context
    from cute_dialect.diagnostics import DiagnosticEngine, Source
    from cute_dialect.parsing import parse_module
    from cute_dialect.printing import ir_text

    module = parse_module(make_context("all"), Source("piece", text), DiagnosticEngine())
    return text if module is None else ir_text(module, generic=True)


def damaged(rng: Random, pieces: list[str]) -> str:
    """One piece, damaged in one to four ways."""
    text = rng.choice(pieces)
    if rng.random() < 0.2:
        text = generic(text)
    if len(text) > 6000:
        start = rng.randrange(len(text) - 6000)
        text = text[start : start + 6000]
    for _ in range(rng.choice([1, 1, 1, 2, 3, 4])):
        text = rng.choice(DAMAGES)(rng, text, pieces)
    return text


def _byte(rng: Random, text: str, pieces: list[str]) -> str:
    if not text:
        return text
    i = rng.randrange(len(text))
    return (
        text[:i] + rng.choice(["", chr(rng.randrange(256)), text[i] * 2, "\0", "٣", '"', "?", "{", "}"]) + text[i + 1 :]
    )


def _tokens(rng: Random, text: str, pieces: list[str]) -> str:
    """A token replaced by one of another file, or removed, or doubled."""
    found = list(TOKEN.finditer(text))
    if not found:
        return text
    m = rng.choice(found)
    others = TOKEN.findall(rng.choice(pieces))
    new = rng.choice(["", m.group() + " " + m.group(), rng.choice(others) if others else ""])
    return text[: m.start()] + new + text[m.end() :]


def _swap(rng: Random, text: str, pieces: list[str]) -> str:
    """Two tokens change places."""
    found = list(TOKEN.finditer(text))
    if len(found) < 2:
        return text
    a, b = sorted(rng.sample(found, 2), key=lambda m: m.start())
    return text[: a.start()] + b.group() + text[a.end() : b.start()] + a.group() + text[b.end() :]


def _line(rng: Random, text: str, pieces: list[str]) -> str:
    """A line removed, doubled or moved."""
    lines = text.split("\n")
    i = rng.randrange(len(lines))
    line = lines.pop(i)
    for _ in range(rng.choice([0, 1, 2])):
        lines.insert(rng.randrange(len(lines) + 1), line)
    return "\n".join(lines)


def _number(rng: Random, text: str, pieces: list[str]) -> str:
    """A number made zero, negative, huge, or dynamic."""
    found = list(re.finditer(r"\d+", text))
    if not found:
        return text
    m = rng.choice(found)
    new = rng.choice(["0", "-1", "?", "?{i64}", "?{div=4}", "2147483648", "9223372036854775808", "9" * 400, "1000000"])
    return text[: m.start()] + new + text[m.end() :]


def _nest(rng: Random, text: str, pieces: list[str]) -> str:
    """Brackets nested deep."""
    if not text:
        return text
    i = rng.randrange(len(text))
    opening, closing = rng.choice(["()", "[]", "{}", "<>"])
    n = rng.choice([1, 2, 30, 300, 3000])
    return text[:i] + opening * n + text[i : i + 1] + closing * rng.choice([n, n, 0]) + text[i + 1 :]


def _cut(rng: Random, text: str, pieces: list[str]) -> str:
    """The end is missing."""
    return text[: rng.randrange(len(text) + 1)]


DAMAGES = (_byte, _byte, _tokens, _tokens, _swap, _line, _number, _number, _nest, _cut)


@contextlib.contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise :class:`TooSlow` after so many seconds."""

    def ring(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def check(seed: int, pieces: list[str]) -> tuple[str, str] | None:
    """Run the case of a seed; what went wrong and the text that shows it, or None."""
    from cute_dialect.tools.cute_opt import main

    rng = Random(seed)
    text = damaged(rng, pieces)
    passes = rng.choice(PASSES)
    with tempfile.NamedTemporaryFile("w", suffix=".mlir", encoding="utf-8") as f:
        f.write(text)
        f.flush()
        out, err = io.StringIO(), io.StringIO()
        try:
            with time_limit(SECONDS), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status = main([f.name, *passes])
        except TooSlow:
            return f"no end after {SECONDS} s with {passes}", text
        except MemoryError:
            return f"more than {MEMORY >> 30} GiB with {passes}", text
        except BaseException as e:
            return f"{type(e).__name__}: {e} with {passes}", text
    said = err.getvalue()
    if "internal error" in said or "Traceback" in said:
        return f"{said.strip()[:300]} with {passes}", text
    if (status != 0) != ("error:" in said):
        return f"exit status {status}, said: {said.strip()[:300]!r} with {passes}", text
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first case; each case has its own")
    parser.add_argument("--out", default="out/fuzz", help="folder for the cases that fail")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    pieces = corpus()
    failures = 0
    for i in range(options.seed, options.seed + options.count):
        wrong = check(i, pieces)
        if wrong is not None:
            failures += 1
            Path(options.out).mkdir(parents=True, exist_ok=True)
            path = Path(options.out) / f"case{i}.mlir"
            path.write_text(wrong[1])
            print(f"seed {i}: {wrong[0]}  ({path})", flush=True)
        if (i + 1 - options.seed) % 10_000 == 0:
            print(f"{i + 1 - options.seed} files, {failures} failures", flush=True)
    print(f"{options.count} files from {len(pieces)} pieces: {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
