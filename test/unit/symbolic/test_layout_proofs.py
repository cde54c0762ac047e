"""Questions about symbolic layouts: identities of the algebra, refutations, conditions, bad input."""

from __future__ import annotations

import doctest
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest
from layout_questions import check

from cute_dialect.algebra import AlgebraError
from cute_dialect.symbolic.layouts import CASES, NO_BOUND, prove_equal
from cute_dialect.symbolic.terms import Domain, Term
from cute_dialect.tools import cute_prove
from cute_dialect.tools.cute_prove import ask

ROOT = Path(__file__).parents[3]
IDENTITIES = [
    # coalesce, evaluation of merged modes
    ("coalesce((M,N):(1,M)) == M*N:1", ()),
    ("coalesce((2,(1,6),N):(1,(6,2),12)) == 12*N:1", ()),
    ("(A,B,C):(S,S*A,T) == (A*B,C):(S,T)", ()),
    # logical, zipped, tiled and flat division keep the function of a tensor that the tile divides
    ("logical_divide((M,N):(1,S), [8:1;_]) == (M,N):(1,S)", ("M % 8 == 0",)),
    ("logical_divide((M,N):(S,1), [_;16:1]) == (M,N):(S,1)", ("N % 16 == 0",)),
    ("zipped_divide((M,N):(1,M), (8,4)) == ((8,4),(M/8,N/4)):((1,M),(8,4*M))", ("M % 8 == 0", "N % 4 == 0")),
    ("tiled_divide((M,N):(1,M), (8,4)) == ((8,4),M/8,N/4):((1,M),8,4*M)", ("M % 8 == 0", "N % 4 == 0")),
    ("flat_divide((M,N):(1,M), (8,4)) == (8,4,M/8,N/4):(1,M,8,4*M)", ("M % 8 == 0", "N % 4 == 0")),
    # products
    ("blocked_product((2,3):(1,2), (M,N):(1,M)) == ((2,M),(3,N)):((1,6),(2,6*M))", ()),
    ("raked_product((2,3):(1,2), (M,N):(1,M)) == ((M,2),(N,3)):((6,1),(6*M,2))", ()),
    ("logical_product((2,4):(1,2), M:1) == ((2,4),M):((1,2),8)", ()),
    # composition by whole modes and by tiles
    ("composition((M,N):(N,1), (N,M):(M,1)) == (N,M):(1,N)", ()),
    ("composition((8*m,N):(1,S), [8:1;_]) == (8,N):(1,S)", ()),
    # swizzles: rows of 128 bytes, atoms that repeat
    ("S<3,4,3> o 0 o (8,m):(128,1024) == S<3,4,3> o 0 o 8*m:128", ()),
    ("S<3,3,3> o 0 o (64,8,m):(1,64,512) == S<3,3,3> o 0 o 512*m:1", ()),
    # injective layouts and permutations
    ("injective (M,N):(1,S)", ("S >= M",)),
    ("injective (4,(2,M)):(2,(1,8))", ()),
    ("injective S<3,4,3> o 0 o (8,M):(1,8)", ()),
    ("(4,(2,M)):(2,(1,8)) covers 8*M", ()),
    ("(M,N,K):(N*K,K,1) covers M*N*K", ()),
    # tiles of different blocks, interleaved threads
    ("M:1 disjoint M*8:1 o M o N:1", ()),
    ("M:2 disjoint 1000:1 o 1 o M:2", ()),
    # the tile of a linear tile number, for all rows and columns
    ("(R,C):(C,1) covers R*C", ()),
    # layouts of integers are enumerated
    ("S<3,4,3> o 0 o (8,64):(128,1024) == S<3,4,3> o 0 o 512:128", ()),
]


@pytest.mark.parametrize(("question", "where"), IDENTITIES)
def test_identity_is_proved(question: str, where: tuple[str, ...]) -> None:
    assert ask(question, where).status == "proved"


@pytest.mark.parametrize(
    ("question", "where", "reason"),
    [
        ("(M,N):(1,M+1) == M*N:1", (), "M = 1, N = 2: index 1 maps to 2 and to 1"),
        ("injective (M,N):(1,S)", (), "M = 2, N = 2, S = 1: coordinates 1 and 2 map to the index 1"),
        ("(M,8):(8,0) covers M", (), "M = 2: no coordinate maps to 1"),
        ("(M,2):(1,M) covers M", (), "M = 1: the index 1 is not below 1"),
        ("8:1 disjoint M:8", (), "M = 1: both contain the index 0"),
        ("logical_divide(M:1, 8:1) == M:1", (), "M = 1: the sizes are 8 and 1"),
        ("S<3,3,3> o 128 o (64,8,m):(1,64,512) == 128:1 o 128 o 512*m:1", (), "m = 1: index 0 maps to 144 and to 128"),
        ("M:1 == 2*N:1", ("M == 2*N+1",), "M = 3, N = 1: the sizes are 3 and 2"),
        # a quotient of a difference may have any sign
        ("injective (2,2):(1,2-ceil_div(M-N,8))", (), "M = 2, N = 1: coordinates 1 and 2 map to the index 1"),
        ("(256,8):(8,1) == (256,8):(1,256)", (), "index 1 maps to 8 and to 1"),
    ],
)
def test_refutation_names_sizes(question: str, where: tuple[str, ...], reason: str) -> None:
    verdict = ask(question, where)
    assert (verdict.status, verdict.reason) == ("refuted", reason)


def test_signs_of_operations_hold_for_all_integers() -> None:
    """Signs that are shown for quotients and masks of symbols hold for small integers."""
    domain = Domain()
    x, y = domain.symbol("x", NO_BOUND), domain.symbol("y", NO_BOUND)
    three = Term.constant(3)
    terms = [
        domain.operation(op, a, three) for op in ("floor", "div", "mod", "ceil_div", "and", "xor") for a in (x, x - y)
    ]
    terms += [domain.operation(op, x, y) for op in ("and", "or", "xor", "min", "max")]
    candidates = [t * k + c for t in terms for k in (1, -1, 2) for c in (-4, 0, 3, 9)]
    shown = [t for t in candidates if domain.is_nonnegative(t)]
    assert shown
    for t in shown:
        assert all(t.evaluate({"x": i, "y": j}) >= 0 for i in range(-9, 10) for j in range(-9, 10)), str(t)


def test_not_proved_says_what_is_missing() -> None:
    verdict = ask("composition((M,N):(1,M), (8,4):(1,8)) == (8,4):(1,8)", ["M <= 12", "N <= 3"])
    assert verdict.status == "not proved"
    assert "are not shown to be equal" in verdict.reason
    assert "'M % 8 == 0'" in verdict.reason


def test_conditions() -> None:
    verdict = ask("(M,N):(S,1) == (M,N):(S,1)", ["S >= N", "N % 4 == 0"])
    assert str(verdict) == "proved for all M, N >= 1, S >= N, N % 4 == 0"
    assert ask("injective (M,N):(1,64)", ["M <= 64"]).status == "proved"
    assert ask("injective (M,N):(1,64)", ["M < 66"]).status == "refuted"


@pytest.mark.parametrize(
    ("question", "where", "message"),
    [
        ("M:1", (), "write 'A == B', 'injective A', 'A covers N' or 'A disjoint B'"),
        ("(M,N):(1,M+ == M:1", (), r"expected an integer, a symbol or '\(', found the end at offset 11"),
        ("halve(M:1) == M:1", (), "expected a layout operation, one of .*coalesce.*, found 'halve'"),
        ("(M,N):1 == M:1", (), "congruent"),
        ("M-5:1 == M:1", (), "the extent M - 5 is not shown to be at least 1; add the condition 'M >= 6'"),
        ("M-N:1 == M:1", (), "add the condition 'M >= N \\+ 1'"),
        ("*".join(["M"] * 99) + ":1 == M:1", (), "products of at most 64 symbols, found one of 65"),
        ("right_inverse((M,N):(N,1)) == M:1", (), r"got \(\?,\?\):\(\?,1\) \(\? is a symbolic number\)"),
        ("M:1 == M:1", ("M % 0 == 0",), "divides by 0"),
        ("M:1 == M:1", ("m % 8 == 0",), "is about m, but the question has the symbols M"),
        ("M:1 == M:1", ("M % 8 == 0", "M == 8"), "an equation of M replaces its other conditions"),
        ("M/0:1 == M:1", (), "division by zero"),
        ("[8:1;_] == M:1", (), "expected a layout, found a tile"),
        ("(M,N):(1@0,1@1) == (M,N):(1@0,1@1)", (), "found '@'"),
        (f"{'(' * 99}M{')' * 99}:1 == M:1", (), "at most 64 nested parentheses"),
        (f"{'coalesce(' * 99}M{')' * 99} == M:1", (), "at most 64 nested operations"),
        ("M:1 == M:1", ("M ~ 3",), "write 'M % 8 == 0', 'S >= M'"),
        ("M:1 == M:1", ("M >= N", "N >= M"), "the conditions of M and N refer to each other"),
        ("M:1 == M:1", ("M >= 3", "M >= 4"), "more than one condition of a kind for M"),
        ("M:1 == M:1", ("M >= 3", "M <= 2"), "it is not shown that a M with 3 <= M <= 2 exists"),
    ],
)
def test_bad_question(question: str, where: tuple[str, ...], message: str) -> None:
    with pytest.raises(AlgebraError, match=message):
        ask(question, where)


def test_values_of_other_types() -> None:
    with pytest.raises(AlgebraError, match="layouts and conditions are texts"):
        prove_equal(3, "M:1")  # type: ignore[arg-type]
    assert prove_equal("(M,N):(1,M)", "M*N:1", "M >= 4")  # type: ignore[arg-type]


def test_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert cute_prove.main(["layout", "M:1 == M:1"]) == cute_prove.PROVED
    assert cute_prove.main(["layout", "M:1 == M:1", "M:1 == M:2"]) == cute_prove.REFUTED
    assert "M:1 == M:2: refuted: M = 2: index 1 maps to 1 and to 2\n" in capsys.readouterr().out
    assert cute_prove.main(["layout", "M:1"]) == cute_prove.USAGE
    assert cute_prove.main(["layout", "M:1 == M:1", "--where", "m >= 2"]) == cute_prove.USAGE
    assert cute_prove.main(["layout", "M:1 == M:1", "N:1 == N:1", "--where", "N >= 2"]) == cute_prove.PROVED
    assert cute_prove.main(["layout", "--json", "injective (M,N):(1,S)", "--where", "S >= M"]) == cute_prove.PROVED
    assert '"status": "proved"' in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        cute_prove.main([])
    assert stop.value.code == cute_prove.USAGE


def test_signs_and_quotients() -> None:
    domain = Domain()
    m, n = domain.symbol("m"), domain.symbol("n", 0)
    tiles = domain.operation("ceil_div", m, Term.constant(8))
    assert domain.is_nonnegative(tiles - 1)
    assert not domain.is_nonnegative(tiles - 2)
    assert domain.is_at_most(m, tiles * 8)
    assert domain.is_at_most(tiles * 8, m + 7)
    assert domain.operation("min", m, m + n) == m
    x = domain.variable("x", m * 8)
    quarter, two = domain.divide(x, Term.constant(4))[0], Term.constant(2)
    eighth = domain.divide(x, Term.constant(8))[0]
    assert domain.divide(quarter, two) == (eighth, quarter - eighth * 2)
    assert CASES >= 8 * 8 * 64


@pytest.mark.parametrize("seed", range(60))
def test_random_question(seed: int) -> None:
    check(seed)


@pytest.mark.slow
def test_many_random_questions() -> None:
    found = [check(seed) for seed in range(1000, 11_000)]
    assert min(found.count("proved"), found.count("refuted")) >= 2000


def test_commands_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```console\n(.*?)^```", (ROOT / "docs" / "prove.md").read_text(), re.DOTALL | re.MULTILINE)
    shown = "".join(b for b in blocks if "cute-prove layout" in b)
    for line in shown.splitlines():
        if line.startswith("$ "):
            cute_prove.main(shlex.split(line)[2:])
    printed = capsys.readouterr().out
    assert printed == "".join(f"{line}\n" for line in shown.splitlines() if not line.startswith("$ "))
    assert printed.count("\n") >= 5


@pytest.mark.parametrize("module", ["terms", "expressions", "layouts"])
def test_examples(module: str) -> None:
    assert doctest.testmod(import_module(f"cute_dialect.symbolic.{module}")).failed == 0
