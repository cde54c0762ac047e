"""A small evaluator of arith and scf on Python numbers, independent of the interpreter and the front-end.

An integer that exceeds its width raises OverflowError. ``f32`` is rounded after each operation. An endless loop raises
an exception.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

MOST_TURNS = 100_000


def signed(value: int, width: int) -> int:
    """Return the low bits of an integer as a signed number; one bit gives 0 or 1."""
    value &= (1 << width) - 1
    return value if width == 1 or not value >> (width - 1) else value - (1 << width)


def unsigned(value: int, width: int) -> int:
    """Return the low bits of an integer as an unsigned number."""
    return value & ((1 << width) - 1)


def rounded(value: float, text: str) -> float:
    """Return a float rounded to its type."""
    if text != "f32":
        return value
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


_INTEGER: dict[str, Callable[[int, int], int]] = {
    "addi": lambda a, b: a + b, "subi": lambda a, b: a - b, "muli": lambda a, b: a * b, "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b, "xori": lambda a, b: a ^ b, "shli": lambda a, b: a << b, "shrsi": lambda a, b: a >> b,
    "floordivsi": lambda a, b: a // b, "minsi": min, "maxsi": max,
}  # fmt: skip
_NATURAL: dict[str, Callable[[int, int], int]] = {
    "divui": lambda a, b: a // b, "remui": lambda a, b: a % b, "shrui": lambda a, b: a >> b, "minui": min, "maxui": max,
}  # fmt: skip
_FLOAT: dict[str, Callable[[float, float], float]] = {
    "addf": lambda a, b: a + b, "subf": lambda a, b: a - b, "mulf": lambda a, b: a * b, "divf": lambda a, b: a / b,
    "minimumf": min, "maximumf": max,
}  # fmt: skip
_COMPARED: list[Callable[[Any, Any], bool]] = [
    lambda a, b: a == b, lambda a, b: a != b, lambda a, b: a < b, lambda a, b: a <= b, lambda a, b: a > b,
    lambda a, b: a >= b,
]  # fmt: skip
_COMPARED_FLOATS = {1: 0, 2: 4, 3: 5, 4: 2, 5: 3, 13: 1}


def evaluate(block: Any, env: dict[Any, Any]) -> list[Any]:
    """Run the ops of a block and return the operands of its terminator."""
    for op in block.ops:
        name = op.name
        args = [env[o] for o in op.operands]
        if name in ("scf.yield", "scf.condition", "gpu.return", "func.return"):
            return args
        found = _scf(op, args, env) if name.startswith("scf.") else [_arith(op, args)]
        env.update(zip(op.results, found))
    return []


def _scf(op: Any, args: list[Any], env: dict[Any, Any]) -> list[Any]:
    regions = [r.blocks[0] if r.blocks else None for r in op.regions]
    if op.name == "scf.if":
        block = regions[0] if args[0] else regions[1]
        return evaluate(block, env) if block is not None else []
    if op.name == "scf.for":
        low, high, step, *carried = args
        assert step > 0
        for i in range(low, high, step):
            env.update(zip(regions[0].args, [i, *carried]))
            carried = evaluate(regions[0], env)
        return carried
    assert op.name == "scf.while", op.name
    for _ in range(MOST_TURNS):
        env.update(zip(regions[0].args, args))
        goes_on, *forwarded = evaluate(regions[0], env)
        if not goes_on:
            return forwarded
        env.update(zip(regions[1].args, forwarded))
        args = evaluate(regions[1], env)
    raise RuntimeError("the loop does not end")


def _arith(op: Any, args: list[Any]) -> Any:
    name = op.name.removeprefix("arith.")
    text = str(op.results[0].type)
    width = int(text[1:]) if text[0] == "i" and text != "index" else 64
    if name == "constant":
        value = op.properties["value"].value.data
        return signed(value, width) if isinstance(value, int) else value
    if name in _INTEGER:
        whole = _INTEGER[name](*args)
        if signed(whole, width) != whole:
            raise OverflowError(f"{whole} in {width} bits")
        return whole
    if name in _NATURAL:
        return signed(_NATURAL[name](*(unsigned(a, width) for a in args)), width)
    if name in _FLOAT:
        return rounded(_FLOAT[name](*args), text)
    if name == "select":
        return args[1] if args[0] else args[2]
    if name == "cmpi":
        code = op.properties["predicate"].value.data
        operand = int(str(op.operands[0].type)[1:])
        if code >= 6:
            args, code = [unsigned(a, operand) for a in args], code - 4
        return int(_COMPARED[code](*args))
    if name == "cmpf":
        return int(_COMPARED[_COMPARED_FLOATS[op.properties["predicate"].value.data]](*args))
    if name == "negf":
        return -args[0]
    if name in ("extsi", "extui", "trunci"):
        source = int(str(op.operands[0].type)[1:])
        return signed(unsigned(args[0], source) if name == "extui" else args[0], width)
    if name in ("sitofp", "uitofp"):
        source = int(str(op.operands[0].type)[1:])
        return rounded(float(args[0] if name == "sitofp" else unsigned(args[0], source)), text)
    if name in ("fptosi", "fptoui"):
        return signed(int(args[0]), width)
    if name in ("extf", "truncf"):
        return rounded(args[0], text)
    if op.name == "math.absi":
        return abs(args[0])
    if op.name == "math.absf":
        return abs(args[0])
    if op.name == "math.floor":
        return float(math.floor(args[0]))
    raise NotImplementedError(op.name)
