"""Random checks of the text format of layouts, on strings from the grammar and on damaged strings.

For any string, a parser returns a value or raises a TextError with a position inside the string. The text of the value
must parse to the same value.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from random import Random

from cute_dialect.algebra import text, verify
from cute_dialect.algebra.leaf import AlgebraError

PARSERS: dict[str, Callable[..., object]] = {
    "int_tuple": text.parse_int_tuple,
    "shape": text.parse_shape,
    "coord": text.parse_coord,
    "stride": text.parse_stride,
    "layout": text.parse_layout,
    "tile": text.parse_tile,
    "composed_layout": text.parse_composed_layout,
    "swizzle": text.parse_swizzle,
}
ALPHABET = "0123456789-?{}()[]<>,:;@_/ox \tSidv=+.\n\\\"'é٣"


def space(rng: Random) -> str:
    return rng.choice(["", "", "", "", " ", "\t", "  "])


def integer(rng: Random) -> str:
    n = rng.choice([0, 1, 2, 3, 8, 64, -1, -5, 2**31, 2**63 - 1, -(2**63), rng.randrange(1000)])
    zeros = rng.choice(["", "", "", "0", "000", "0" * 40])
    return ("-" if n < 0 else "") + zeros + str(abs(n))


def dynamic(rng: Random) -> str:
    properties = []
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        properties.append(
            rng.choice(["i1", "i8", "i16", "i32", "i64", f"div{space(rng)}={space(rng)}{rng.randrange(1, 99)}"])
        )
    if not properties and rng.random() < 0.7:
        return "?"
    return "?{" + space(rng) + rng.choice([" ", ",", " , "]).join(properties) + space(rng) + "}"


def leaf(rng: Random, kind: str) -> str:
    if kind == "coord" and rng.random() < 0.3:
        return "_"
    value = dynamic(rng) if rng.random() < 0.3 else integer(rng)
    if kind == "stride" and rng.random() < 0.3:
        value += "".join(f"{space(rng)}@{space(rng)}{rng.randrange(4)}" for _ in range(rng.choice([1, 1, 2])))
    return value


def tree(rng: Random, kind: str, depth: int = 3) -> str:
    if depth == 0 or rng.random() < 0.4:
        return leaf(rng, kind)
    elements = [space(rng) + tree(rng, kind, depth - 1) + space(rng) for _ in range(rng.choice([0, 1, 2, 2, 3]))]
    return "(" + ",".join(elements) + ("," if elements and rng.random() < 0.1 else space(rng)) + ")"


def sentence(rng: Random, kind: str, depth: int = 2) -> str:
    """Return a random string of one kind from the grammar."""
    if kind in ("int_tuple", "shape"):
        return space(rng) + tree(rng, "shape") + space(rng)
    if kind in ("coord", "stride"):
        return space(rng) + tree(rng, kind) + space(rng)
    if kind == "layout":
        shape = tree(rng, "shape", 2)
        return f"{shape}{space(rng)}:{space(rng)}{tree(rng, 'stride', 2)}"
    if kind == "tile":
        if depth == 0 or rng.random() < 0.4:
            return rng.choice(["_", "4:1", "(2,4):(4,1)", "?:2", sentence(rng, "layout")])
        return (
            "["
            + ";".join([space(rng) + sentence(rng, "tile", depth - 1) for _ in range(rng.choice([0, 1, 2, 3]))])
            + "]"
        )
    if kind == "swizzle":
        b = rng.randrange(5)
        s = rng.choice([1, -1]) * (b + rng.randrange(3))
        return f"S{space(rng)}<{b}{space(rng)},{rng.randrange(6)},{space(rng)}{s}>"
    inner = sentence(rng, rng.choice(["swizzle", "layout"]))
    return f"{inner}{space(rng)}o{space(rng)}{tree(rng, 'shape', 1)}{space(rng)}o{space(rng)}{sentence(rng, 'layout')}"


def check_text_grammar(rng: Random) -> None:
    kind = rng.choice(list(PARSERS))
    string = sentence(rng, kind)
    parse = PARSERS[kind]
    value = getattr(parse, "__wrapped__", parse)(string)
    printed = text.to_text(value, kind)
    again = parse(printed)
    assert text.to_text(again, kind) == printed, f"{string!r} prints {printed!r}, that prints otherwise"
    if not (kind == "composed_layout" and "o" not in printed):
        assert again == value and hash(again) == hash(value), string
    assert printed.replace(" o ", "").count(" ") == printed.count("div=") - printed.count("{div="), printed
    try:
        getattr(verify, f"verify_{kind}")(value)
    except AlgebraError as e:
        assert "expected" in str(e)


def check_text_damage(rng: Random) -> None:
    kind = rng.choice(list(PARSERS))
    string = list(sentence(rng, rng.choice([kind, kind, rng.choice(list(PARSERS))])))
    for _ in range(rng.choice([1, 1, 2, 3, 8])):
        at = rng.randrange(len(string) + 1)
        action = rng.randrange(4)
        if action == 0 or not string:
            string.insert(at, rng.choice(ALPHABET))
        elif action == 1:
            del string[at : at + rng.choice([1, 1, 2, 5])]
        elif action == 2 and at < len(string):
            string[at] = rng.choice([rng.choice(ALPHABET), chr(rng.randrange(1, 0x250))])
        else:
            string[at:at] = string[at : at + rng.choice([1, 3, 9])] * rng.choice([1, 1, 70])
    damaged = "".join(string)
    parse = PARSERS[kind]
    try:
        value = getattr(parse, "__wrapped__", parse)(damaged)
    except text.TextError as e:
        assert 0 <= e.position <= len(damaged), f"{damaged!r}: position {e.position}"
        assert str(e)
        return
    printed = text.to_text(value, kind)
    assert text.to_text(parse(printed), kind) == printed, damaged
    with contextlib.suppress(AlgebraError):
        getattr(verify, f"verify_{kind}")(value)


CHECKS: dict[str, Callable[[Random], None]] = {"text_grammar": check_text_grammar, "text_damage": check_text_damage}
"""Name -> check."""
