"""The ``cute-prove`` program: proofs for all sizes.

cute-prove layout '(M,N):(1,M) == M*N:1'
cute-prove layout 'injective (M,N):(1,S)' --where 'S >= M'
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict

from cute_dialect.algebra import AlgebraError
from cute_dialect.symbolic.layouts import (
    Verdict,
    parse_condition,
    prove_covers,
    prove_disjoint,
    prove_equal,
    prove_injective,
    symbols_of,
)
from cute_dialect.tools.command_line import new_parser

EPILOG = """\
cute-prove layout QUESTION decides a question about layouts whose extents and strides are symbols:

    'A == B'           equal sizes, and equal indices at every coordinate
    'injective A'      no two coordinates have one index
    'A covers N'       the indices are exactly 0 to N-1
    'A disjoint B'     no index belongs to both; a layout with an offset is 'M*8:1 o offset o layout'

A and B are layouts such as '((8,m),N):((1,8),S)' or 'S<3,4,3> o 0 o (8,m):(128,1024)', or operations on them:
coalesce(A), composition(A, B), logical_divide(A, [8:1;_]), complement(A, n), blocked_product(A, B), and so on.
Symbols are integers >= 1.  --where adds a condition: 'M % 8 == 0', 'S >= M', 'M <= 64', 'S == 2*M'; < and > are
allowed, and the option may be repeated.  'S >= 0' or an equation replaces the bound of 1.

    cute-prove layout 'logical_divide((M,N):(1,S), [8:1;_]) == (M,N):(1,S)' --where 'M % 8 == 0'

The proof covers the code of the layout operations as the passes run it on dynamic extents.  Integers do not overflow
in it.  A refutation names sizes that layouts of integers have confirmed.

Exit status: 0 proved, 1 refuted, 2 not proved, 3 the question is not understood.
"""

PROVED, REFUTED, NOT_PROVED, USAGE = range(4)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: error: {message}\n")


def build_parser() -> argparse.ArgumentParser:
    parser = new_parser("cute-prove", "Prove properties of layouts for all extents.", EPILOG)
    parser.__class__ = _Parser
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    layout = commands.add_parser(
        "layout",
        help="decide a question about layouts of symbolic extents",
        description="Decide a question about layouts of symbolic extents.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    layout.add_argument("questions", nargs="+", metavar="QUESTION", help="such as 'coalesce((M,N):(1,M)) == M*N:1'")
    layout.add_argument("--where", action="append", default=[], metavar="CONDITION", help="such as 'M %% 8 == 0'")
    layout.add_argument("--json", action="store_true", help="print a JSON list with one verdict per question")
    return parser


def ask(question: str, where: Sequence[str] = ()) -> Verdict:
    """Return the answer to a question in the notation of the command line.

    Raises:
        AlgebraError: the question, a layout or a condition is not understood.

    >>> str(ask("(M,N):(1,M) covers M*N"))
    'proved for all M, N >= 1'
    """
    sides = re.split(r"\s*(==|\bcovers\b|\bdisjoint\b)\s*", question.strip())
    if len(sides) == 3:
        a, relation, b = sides
        return {"==": prove_equal, "covers": prove_covers, "disjoint": prove_disjoint}[relation](a, b, where)
    found = re.fullmatch(r"\s*injective\s+(.*)", question)
    if found and len(sides) == 1:
        return prove_injective(found[1], where)
    raise AlgebraError(
        f"the question {question!r} is not understood; write 'A == B', 'injective A', 'A covers N' or 'A disjoint B'"
    )


def conditions_for(question: str, questions: Sequence[str], where: Sequence[str]) -> list[str]:
    """Return the conditions of a question: those of its symbols, and those of no symbol of any question, an error."""

    def is_about(condition: str, question: str) -> bool:
        return parse_condition(condition)[0] in symbols_of([question.removeprefix("injective ")], where)

    return [w for w in where if is_about(w, question) or not any(is_about(w, q) for q in questions)]


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``cute-prove`` and return the exit status, the worst of all questions."""
    options = build_parser().parse_args(argv)
    verdicts: list[Verdict] = []
    for question in options.questions:
        try:
            verdicts.append(ask(question, conditions_for(question, options.questions, options.where)))
        except AlgebraError as e:
            print(f"cute-prove: {question}: {e}", file=sys.stderr)
            return USAGE
        except (RecursionError, MemoryError, OverflowError) as e:
            print(f"cute-prove: {question[:80]}: the question is too large ({type(e).__name__})", file=sys.stderr)
            return USAGE
    if options.json:
        rows = [{"question": q, **asdict(v)} for q, v in zip(options.questions, verdicts)]
        print(json.dumps(rows, indent=2))
    else:
        for question, verdict in zip(options.questions, verdicts):
            print(f"{question}: {verdict}")
    status = {v.status for v in verdicts}
    return REFUTED if "refuted" in status else NOT_PROVED if "not proved" in status else PROVED


if __name__ == "__main__":
    sys.exit(main())
