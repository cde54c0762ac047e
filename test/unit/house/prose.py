"""Banned openers, banned words and long sentences in the project's prose.

The script checks docstrings, comments and string literals of the package, examples, tests and tools, and the pages of
documentation.  ``python test/unit/house/prose.py [PATH ...]`` lists violations of CONTRIBUTING.md ("How we write"), one
``file:line: rule: text`` per line, followed by counts.

Options:
    --long     also list sentences of more than 25 words.
    --counts   print only the counts per folder.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("cute_dialect", "passes", "pipelines", "tools", "test", "examples", "docs", "editors")
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
LONG = 25
"""Words that a sentence may have."""

# Matches sentences that open with a relative or interrogative pronoun.
OPENER = re.compile(r"(?:What|Which|Who|Whose|How|Of|Where|That|Whoever|Whatever|Nobody)\b(?![^.!]*\?)")
OPENING = re.compile(
    r"(?:Return|Tell|Say|Give|Yield|Compute|Find|Get|Make) (?:what|who|how|where|that)\b|Tell whether|Say whether"
)
UNIT = (
    r"row|column|thread|warp|block|stage|lane|tile|element|line|vector|group"
    r"|instruction|iteration|call|cluster|channel|head|query|matrix"
)
COUNTED = (
    r"one|two|bytes?|bits|elements?|values?|numbers?|registers|words|times"
    r"|lines|rows|columns|blocks|threads|warps|lanes|stages|tiles"
)
WORDS = {
    "accumulator": r"the sums\b(?! of)",
    "epilogue": r"what becomes of",
    "per": rf"(?:{COUNTED}) an? (?:{UNIT})\b",
    "split-K": r"parts of K\b|shares? K\b|sharing K\b",
    "specified": r"(?:is|are|was|were|be|been|being) (?:said|told)\b",
    "array of pointers": r"lies? anywhere|lists? of matrices",
    "specialization": r"kinds? of calls?\b|call like an earlier|calls like earlier",
    "recorded": r"written down|done again",
    "mma.sync": r"by warps\b",
    "iteration": r"turns? of (?:the|a|an|each|every|this|that|its) (?:\w+ )?loop",
    "elsewhere": r"\belsewhere\b",
    "past the end": r"what lies|behind the (?:end|point|last|array|tensor|tile)",
    "compared with": r"\bbeside\b",
    "most expensive, faster": r"\bdearest\b|\bdearer\b|\bsooner\b",
    "nobody": r"\bnobody\b|\bwhoever\b|\bnought\b",
    "what is": r"\bof what\b|\bto what\b|\bfor what\b|\bfrom what\b",
    "expected no": r"expected no\b",
}
WORD = {
    name: re.compile(rf"\b(?:{text})" if not text.startswith("\\b") else text, re.I) for name, text in WORDS.items()
}
ANY_WORD = re.compile("|".join(pattern.pattern for pattern in WORD.values()), re.I)

# Findings that are correct English: (end of the path, words of the line) -> the reason.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("house/prose.py", ""): "the rules themselves",
    ("house/test_prose.py", ""): "the rules themselves",
    ("CONTRIBUTING.md", "the list of matrices"): "the rules themselves",
    ("CONTRIBUTING.md", "a turn of a loop"): "the rules themselves",
}


class Finding(NamedTuple):
    path: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.text}"


class Passage(NamedTuple):
    """A piece of prose.  `opens` is False for fragments, whose first word opens no sentence."""

    line: int
    text: str
    opens: bool


def prose_of_python(source: str) -> Iterator[Passage]:
    """Yield docstrings, comments, and string literals of at least three words."""
    tree = ast.parse(source)
    documents: set[int] = set()
    nodes = list(ast.walk(tree))
    for node in nodes:
        for body in (getattr(node, "body", None),):
            if isinstance(body, list):
                for stmt in body:
                    if (
                        isinstance(stmt, ast.Expr)
                        and isinstance(stmt.value, ast.Constant)
                        and isinstance(stmt.value.value, str)
                    ):
                        documents.add(id(stmt.value))
                        yield Passage(stmt.value.lineno, _without_code(stmt.value.value), True)
    for node in nodes:
        literal = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents
        if literal and len(node.value.split()) >= 3:
            yield Passage(node.lineno, node.value, False)
    yield from _comments(source)


def _comments(source: str) -> Iterator[Passage]:
    """Yield the comments. Comments on adjacent lines of their own form one passage."""
    start, lines, last = 0, list[str](), -1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or re.match(r"#\s*(fmt|type|noqa|pyright|ruff|late|!)", token.string):
            continue
        alone = token.line.lstrip().startswith("#")
        if alone and token.start[0] == last + 1 and lines:
            lines.append(token.string.lstrip("#: "))
        else:
            if lines:
                yield Passage(start, "\n".join(lines), True)
            start, lines = token.start[0], [token.string.lstrip("#: ")]
        last = token.start[0] if alone else -1
    if lines:
        yield Passage(start, "\n".join(lines), True)


def _without_code(text: str) -> str:
    """Blank out doctest and indented literal blocks, keeping the lines."""
    result, literal, margin = list[str](), False, 0
    for line in text.split("\n"):
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        if literal and stripped and indent <= margin:
            literal = False
        if literal or stripped.startswith((">>>", "...", "|")):
            result.append("")
            continue
        if stripped.endswith("::"):
            literal, margin = True, indent
        result.append(line)
    return "\n".join(result)


def prose_of_page(text: str) -> Iterator[Passage]:
    """Yield the paragraphs, list items and table rows of a Markdown page, without code blocks."""
    start, lines, fenced = 0, list[str](), False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        new = re.match(r"\s*([-*] |\d+\. |\||#|<|!\[)", line)
        if fenced or not line.strip() or line.lstrip().startswith("```") or new:
            if lines:
                yield Passage(start, "\n".join(lines), True)
            lines = []
        if fenced or not line.strip() or line.lstrip().startswith(("```", "#", "<", "![")):
            continue
        if line.lstrip().startswith("|"):
            yield Passage(number, line, False)
            continue
        if not lines:
            start = number
        lines.append(re.sub(r"^\s*([-*] |\d+\. |> )", "", line))
    if lines:
        yield Passage(start, "\n".join(lines), True)


def sentences(passage: Passage) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each sentence."""
    at = 0
    text = passage.text
    for match in re.finditer(r"(?<=[.!?:])\s+(?=[A-Z`\"'(*])|\n\s*\n|\n(?=\s*[-*] )|\Z", text):
        part = text[at : match.start()]
        if part.strip():
            lead = len(part) - len(part.lstrip())
            yield passage.line + text.count("\n", 0, at + lead), " ".join(part.split())
        at = match.end()


def check(path: Path, *, long: bool = False, text: str | None = None) -> Iterator[Finding]:
    """Yield the findings in one file."""
    name = path.relative_to(ROOT).as_posix()
    text = path.read_text() if text is None else text
    excused = [words for (end, words) in EXCEPTIONS if name.endswith(end)]
    if "" in excused:
        return
    for passage in prose_of_page(text) if path.suffix == ".md" else prose_of_python(text):
        found = list[Finding]()
        for line, sentence in sentences(passage):
            bare = re.sub(r"^[-*\"'(`#]+\s*", "", sentence)
            if passage.opens and OPENER.match(bare):
                found.append(Finding(name, line, "opener", sentence[:100]))
            if passage.opens and OPENING.match(bare):
                found.append(Finding(name, line, "opener", sentence[:100]))
            if long and passage.opens and len(sentence.split()) > LONG:
                found.append(Finding(name, line, "long", sentence[:100]))
        spoken = re.sub(r"``?[^`]*``?", lambda m: re.sub(r"[^\n]", "`", m[0]), passage.text)
        flat = spoken.replace("\n", " ")
        for rule, pattern in WORD.items() if ANY_WORD.search(flat) else ():
            for match in pattern.finditer(flat):
                line = passage.line + passage.text.count("\n", 0, match.start())
                found.append(Finding(name, line, rule, flat[max(0, match.start() - 40) : match.end() + 40].strip()))
        yield from (f for f in found if not any(words in f.text for words in excused))


def files(paths: list[Path]) -> Iterator[Path]:
    """Return the Python files and Markdown pages below the paths, without duplicates."""
    seen = set[Path]()
    for path in paths:
        every = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.suffix in (".py", ".pyi", ".md"))
        for file in every:
            if (real := file.resolve()) not in seen and "node_modules" not in file.parts:
                seen.add(real)
                yield real


def everything() -> list[Path]:
    return [ROOT / x for x in (*FOLDERS, *PAGES) if (ROOT / x).exists()]


def main(arguments: list[str]) -> int:
    options = {x for x in arguments if x.startswith("--")}
    paths = [Path(x).resolve() for x in arguments if not x.startswith("--")] or everything()
    found = [f for file in files(paths) for f in check(file, long="--long" in options)]
    if "--counts" not in options:
        for f in found:
            print(f)
    counts = Counter(("/".join(f.path.split("/")[:2]), f.rule) for f in found)
    for (folder, rule), number in sorted(counts.items()):
        print(f"{folder:30} {rule:24} {number}")
    print(f"{len(found)} in all")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
