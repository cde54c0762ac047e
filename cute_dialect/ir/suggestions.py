"""Suggestions for misspelled IR: the intended op for an unknown name, the intended type for an unknown word.

>>> meant_type("float32", ()), meant_type("cute.layout", ["cute.layout"]), meant_type("F16", ())
('f32', '!cute.layout', 'f16')
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from cute_dialect.ir.diagnostics import nearest

__all__ = ["meant_op", "meant_type", "no_type"]

_MEANT: Mapping[str, str] = {
    "float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16", "bfloat16": "bf16",
    "int": "i32", "uint": "i32", "integer": "i32", "unsigned": "i32", "long": "i64", "short": "i16", "char": "i8",
    "byte": "i8", "bool": "i1", "boolean": "i1", "size_t": "index", "idx": "index",
    "fp8": "f8E4M3FN", "float8": "f8E4M3FN", "e4m3": "f8E4M3FN", "e4m3fn": "f8E4M3FN", "f8e4m3fn": "f8E4M3FN",
    "e5m2": "f8E5M2", "f8e5m2": "f8E5M2", "tfloat32": "tf32", "ptr": "!llvm.ptr", "pointer": "!llvm.ptr",
    "array": "memref", "buffer": "memref", "vec": "vector",
}  # fmt: skip
"""Names of types in other languages -> types of MLIR."""
_SIZED: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r"(?:float|fp|f)_?(16|32|64|128)(?:_t)?"), r"f\1"),
    (re.compile(r"(?:u?int|integer|[usi])_?(\d{1,4})(?:_t)?"), r"i\1"),
)
_WORDS = ("index", "bf16", "tf32", "f8E4M3FN", "f8E5M2", "vector", "memref", "tensor", "tuple", "complex", "none")
_EXAMPLES = 'i32, index, f16, bf16, f32, vector<4xf32>, memref<4xf32>, !llvm.ptr, !cute.layout<"4:1">, (i32) -> f32'


def meant_type(word: str, types: Collection[str]) -> str:
    """Return the type that ``word`` names in another language or resembles, or "".

    ``types`` lists the types of all dialects.
    """
    bare = word.lstrip("!")
    if bare in types:
        return f"!{bare}"
    small = bare.lower()
    if small in _MEANT:
        return _MEANT[small]
    for pattern, instead in _SIZED:
        if pattern.fullmatch(small):
            return pattern.sub(instead, small)
    if small in _WORDS:
        return small
    found = nearest(bare, [*_WORDS, *types])
    return f"!{found[0]}" if found and found[0] in types else found[0] if found else ""


def no_type(word: str, types: Collection[str]) -> str:
    """Return the message for a missing type: the token found, and a suggestion or examples.

    >>> no_type("half", ())
    "type expected, got 'half'; did you mean 'f16'?"
    """
    seen = f"'{word}'" if word else "the end of the input"
    meant = meant_type(word, types) if word[:1].isalpha() else ""
    hint = f"; did you mean '{meant}'?" if meant else f" (examples of types: {_EXAMPLES})"
    return f"type expected, got {seen}{hint}"


def meant_op(name: str, known: Iterable[str]) -> str:
    """Return the op that an unknown name most likely means, or "": a similar name, or the same name in another dialect.

    >>> meant_op("cute.addi", ["arith.addi", "cute.dice"]), meant_op("addi", ["arith.addi"])
    ('arith.addi', 'arith.addi')
    """
    names = sorted(set(known))
    dialect, _, rest = name.rpartition(".")
    near = nearest(name, [n for n in names if n.startswith(f"{name.partition('.')[0]}.")] if dialect else [])
    if near and _share(near[0], name) > 0.85:
        return near[0]
    alike = [n for n in names if n.endswith(f".{rest}")]
    if alike:
        return min(alike, key=lambda n: (n.count("."), len(n), n))
    if near:
        return near[0]
    by_end = {n.partition(".")[2]: n for n in reversed(names)}
    end = nearest(rest, by_end)
    return by_end[end[0]] if end else next(iter(nearest(name, names)), "")


def _share(one: str, other: str) -> float:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, one, other).ratio()
