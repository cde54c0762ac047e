"""Random questions about symbolic layouts, and their answers for integers by enumeration.

A question is a random layout, or an operation on one, compared with an equivalent or nearly equivalent form.
"""

from __future__ import annotations

import random

from cute_dialect.algebra import AlgebraError, AnyLayout, evaluate, size
from cute_dialect.symbolic.expressions import as_layout, evaluate_text
from cute_dialect.symbolic.layouts import Conditions, parse_condition, symbols_of
from cute_dialect.tools.cute_prove import ask

ASSIGNMENTS = 12
"""Assignments of integers that a proved question is compared with."""

SYMBOLS = ("M", "N", "K", "S")
WHERE = ((), (), ("M % 4 == 0",), ("M % 8 == 0", "N % 2 == 0"), ("S >= M",), ("K <= 4",), ("S == 2*M", "N >= 3"))
OPERATIONS = (
    "coalesce({})",
    "logical_divide({}, [{}:1;_])",
    "zipped_divide({}, [{}:1;_])",
    "tiled_divide({}, [{}:1;_])",
)


def draw_layout(rng: random.Random, compact: bool) -> tuple[list[str], list[str]]:
    """Return extents and strides of two to four modes, in text."""
    strides: list[str] = []
    shape = [rng.choice((*SYMBOLS, "2", "4", "8", "M*2", "N+1", "4*K")) for _ in range(rng.randint(2, 4))]
    step = "1"
    for extent in shape:
        strides.append(step if compact or rng.random() < 0.6 else rng.choice(("S", "0", "3", f"({step})+1")))
        step = f"({step})*({extent})"
    return shape, strides


def merged(shape: list[str], strides: list[str], rng: random.Random) -> tuple[list[str], list[str]]:
    """Merge two adjacent modes, or split an extent of 8.  The result is equal if the modes are contiguous."""
    k = rng.randrange(len(shape) - 1)
    if "8" in shape and rng.random() < 0.4:
        k = shape.index("8")
        return [*shape[:k], "2", "4", *shape[k + 1 :]], [
            *strides[:k],
            strides[k],
            f"2*({strides[k]})",
            *strides[k + 1 :],
        ]
    extent = f"({shape[k]})*({shape[k + 1]})"
    return [*shape[:k], extent, *shape[k + 2 :]], [*strides[: k + 1], *strides[k + 2 :]]


def text_of(shape: list[str], strides: list[str]) -> str:
    return f"({','.join(shape)}):({','.join(strides)})" if len(shape) > 1 else f"{shape[0]}:{strides[0]}"


def draw_question(rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """Return a question and conditions of its symbols."""
    question, where = _draw(rng)
    names = symbols_of(_texts(question), where)
    return question, tuple(w for w in where if parse_condition(w)[0] in names)


def _texts(question: str) -> list[str]:
    return question.replace("injective ", "").replace(" covers ", " == ").split(" == ")


def _draw(rng: random.Random) -> tuple[str, tuple[str, ...]]:
    shape, strides = draw_layout(rng, rng.random() < 0.5)
    a, where = text_of(shape, strides), rng.choice(WHERE)
    kind = rng.random()
    if kind < 0.2:
        return f"injective {a}", where
    if kind < 0.35:
        return f"{a} covers {'*'.join(f'({s})' for s in shape)}", where
    b = text_of(*merged(shape, strides, rng))
    if rng.random() < 0.3:
        template = rng.choice(OPERATIONS)
        b = template.format(*((a, rng.choice(("2", "4"))) if template.count("{}") == 2 else (a,)))
    if rng.random() < 0.25:
        a, b = (f"S<2,0,3> o 0 o {x}" for x in (a, b))
        if "(S" in b or "divide" in b or "coalesce" in b:
            a, b = a.removeprefix("S<2,0,3> o 0 o "), b.removeprefix("S<2,0,3> o 0 o ")
    return f"{a} == {b}", where


def holds(question: str, values: dict[str, int]) -> bool | None:
    """Return the answer for integers, None where an operation refuses them or the layouts are large."""
    if question.startswith("injective"):
        layout = as_layout(evaluate_text(question.removeprefix("injective "), values))
        found = indices(layout)
        return None if found is None else len(set(found)) == len(found)
    if " covers " in question:
        a, count = question.split(" covers ")
        found = indices(as_layout(evaluate_text(a, values)))
        total = size(as_layout(evaluate_text(count, values)))
        return None if found is None else set(found) == set(range(total))  # type: ignore[arg-type]
    a, b = (indices(as_layout(evaluate_text(x, values))) for x in question.split(" == "))
    return None if a is None or b is None else a == b


def indices(layout: AnyLayout) -> list[object] | None:
    n = size(layout)
    return [evaluate(i, layout) for i in range(n)] if isinstance(n, int) and n <= 1024 else None


def check(seed: int) -> str:
    """Ask one random question and return its status, or "refused"; raise AssertionError if the verdict is wrong."""
    rng = random.Random(seed)
    question, where = draw_question(rng)
    try:
        verdict = ask(question, where)
    except AlgebraError:
        return "refused"
    if verdict.status == "refuted":
        assert holds(question, verdict.symbols) is False, (
            f"seed {seed}: {question} {where}: {verdict}, but it holds there"
        )
    if verdict.status == "proved":
        drawn = [values for values, _ in Conditions(_texts(question), where).samples()]
        for values in rng.sample(drawn, min(ASSIGNMENTS, len(drawn))):
            try:
                answer = holds(question, values)
            except AlgebraError:
                continue
            assert answer is not False, f"seed {seed}: {question} {where}: {verdict}, but not for {values}"
    return verdict.status
