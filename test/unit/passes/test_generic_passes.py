"""Generic passes: their effect on the IR, and equal results before and after, by direct evaluation."""

from __future__ import annotations

import random

import pytest
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from cute_dialect.ir.context import make_context
from cute_dialect.ir.diagnostics import DiagnosticEngine, Source
from cute_dialect.ir.parsing import parse_module
from cute_dialect.ir.printing import ir_text
from cute_dialect.ir.verifier import verify
from cute_dialect.passes.base import PassContext, run_pass
from cute_dialect.passes.registry import load


def module(text: str) -> ModuleOp:
    engine = DiagnosticEngine()
    parsed = parse_module(make_context(allow_unregistered=True), Source("t", text), engine)
    assert parsed is not None, engine.seen
    assert verify(parsed, engine), engine.seen
    return parsed


def run(text: str, *passes: str) -> str:
    """Return the text after the passes. The IR must verify after each one."""
    parsed = module(text)
    engine = DiagnosticEngine()
    context = PassContext(make_context(), engine)
    for name in passes:
        run_pass(load(name)(), parsed, context)
        assert verify(parsed, engine), engine.seen
    return ir_text(parsed, source_names=True)


# ------------------------------------------------------------------------------------------------ evaluated equality

WIDTH = 32
BINARY = ("addi", "subi", "muli", "divsi", "remsi", "divui", "remui", "ceildivsi", "floordivsi", "andi", "ori", "xori",
          "shli", "shrsi", "shrui", "minsi", "maxsi", "minui", "maxui")  # fmt: skip
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


class Undefined(Exception):
    """Undefined behavior: a division by zero, a shift by the bit width or more, or an overflow in a division."""


def signed(value: int) -> int:
    value &= (1 << WIDTH) - 1
    return value - (1 << WIDTH) if value >> (WIDTH - 1) else value


def unsigned(value: int) -> int:
    return value & ((1 << WIDTH) - 1)


def binary(name: str, a: int, b: int) -> int:
    """Evaluate one op of arith on two's complement numbers by its definition."""
    if name in ("divsi", "remsi", "ceildivsi", "floordivsi", "divui", "remui") and (
        b == 0 or (b == -1 and a == -(1 << (WIDTH - 1)))
    ):
        raise Undefined
    if name.startswith("sh") and not 0 <= b < WIDTH:
        raise Undefined
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0
    return signed(
        {
            "addi": lambda: a + b,
            "subi": lambda: a - b,
            "muli": lambda: a * b,
            "divsi": lambda: quotient,
            "remsi": lambda: a - quotient * b,
            "divui": lambda: unsigned(a) // unsigned(b),
            "remui": lambda: unsigned(a) % unsigned(b),
            "ceildivsi": lambda: -(-a // b),
            "floordivsi": lambda: a // b,
            "andi": lambda: a & b,
            "ori": lambda: a | b,
            "xori": lambda: a ^ b,
            "shli": lambda: a << b,
            "shrsi": lambda: a >> b,
            "shrui": lambda: unsigned(a) >> b,
            "minsi": lambda: min(a, b),
            "maxsi": lambda: max(a, b),
            "minui": lambda: min(unsigned(a), unsigned(b)),
            "maxui": lambda: max(unsigned(a), unsigned(b)),
        }[name]()
    )


def compare(predicate: str, a: int, b: int) -> bool:
    if predicate[0] == "u":
        a, b = unsigned(a), unsigned(b)
    relation = predicate if predicate in ("eq", "ne") else predicate[1:]
    return {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[relation]


def evaluate(parsed: ModuleOp, arguments: tuple[int, ...]) -> int:
    """Return the result of the only function of the module.  Raises Undefined."""
    (function,) = parsed.body.block.ops
    block = function.regions[0].block
    values: dict[SSAValue, int] = dict(zip(block.args, arguments, strict=True))
    for op in block.ops:
        inputs = [values[v] for v in op.operands]
        name = op.name.removeprefix("arith.")
        if op.name == "func.return":
            return inputs[0]
        values[op.results[0]] = _one(op, name, inputs)
    raise AssertionError("no return")


def _one(op: Operation, name: str, inputs: list[int]) -> int:
    if name == "constant":
        attribute = op.properties["value"]
        assert isinstance(attribute, IntegerAttr)
        return attribute.value.data & 1 if attribute.type == op.results[0].type and _is_i1(op) else attribute.value.data
    if name == "cmpi":
        attribute = op.properties["predicate"]
        assert isinstance(attribute, IntegerAttr)
        order = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
        return int(compare(order[attribute.value.data], *inputs))
    if name == "select":
        return inputs[1] if inputs[0] & 1 else inputs[2]
    if _is_i1(op):
        return {"andi": inputs[0] & inputs[1], "ori": inputs[0] | inputs[1], "xori": inputs[0] ^ inputs[1]}[name] & 1
    return binary(name, *inputs)


def _is_i1(op: Operation) -> bool:
    return str(op.results[0].type) == "i1"


def program(rng: random.Random) -> str:
    """Build a random straight-line function of two i32 arguments."""
    lines: list[str] = []
    ints = ["%a", "%b"]
    bits: list[str] = []
    for i in range(rng.randint(3, 14)):
        kind = rng.random()
        if kind < 0.3:
            value = rng.choice([0, 1, -1, 2, 3, 8, 31, 32, -7, 2**31 - 1, -(2**31), rng.randint(-50, 50)])
            lines.append(f"%v{i} = arith.constant {value} : i32")
            ints.append(f"%v{i}")
        elif kind < 0.45:
            lines.append(f"%v{i} = arith.cmpi {rng.choice(PREDICATES)}, {rng.choice(ints)}, {rng.choice(ints)} : i32")
            bits.append(f"%v{i}")
        elif kind < 0.6 and bits:
            lines.append(f"%v{i} = arith.select {rng.choice(bits)}, {rng.choice(ints)}, {rng.choice(ints)} : i32")
            ints.append(f"%v{i}")
        else:
            lines.append(f"%v{i} = arith.{rng.choice(BINARY)} {rng.choice(ints)}, {rng.choice(ints)} : i32")
            ints.append(f"%v{i}")
    body = "\n  ".join([*lines, f"return {ints[-1]} : i32"])
    return f"func.func @f(%a: i32, %b: i32) -> i32 {{\n  {body}\n}}\n"


@pytest.mark.slow
@pytest.mark.parametrize("passes", [("canonicalize",), ("cse",), ("cse", "canonicalize", "cse")])
def test_optimized_code_computes_the_same(passes: tuple[str, ...]):
    rng = random.Random(20260521)
    compared = 0
    for _ in range(50):
        text = program(rng)
        before = module(text)
        after = module(run(text, *passes))
        for _ in range(6):
            arguments = (rng.choice([0, 1, -1, 7, -(2**31), rng.randint(-99, 99)]), rng.randint(-9, 9))
            try:
                expected = evaluate(before, arguments)
            except Undefined:
                continue
            assert evaluate(after, arguments) == expected, (text, ir_text(after), arguments)
            compared += 1
    assert compared > 100


# ------------------------------------------------------------------------------------------------------------- casts


def test_casts_that_cancel_out_go():
    text = run(
        """
        func.func @f(%a: i32, %b: i64) -> (i32, i64) {
          %0 = builtin.unrealized_conversion_cast %a : i32 to f32
          %1 = builtin.unrealized_conversion_cast %0 : f32 to f64
          %2 = builtin.unrealized_conversion_cast %1 : f64 to i32
          %3:2 = builtin.unrealized_conversion_cast %b : i64 to i32, i32
          %4 = builtin.unrealized_conversion_cast %3#0, %3#1 : i32, i32 to i64
          return %2, %4 : i32, i64
        }
        """,
        "reconcile-unrealized-casts",
    )
    assert "unrealized" not in text
    assert "return %a, %b : i32, i64" in text


def test_required_casts_stay():
    text = run(
        """
        func.func @f(%b: i64) -> (f32, i32) {
          %0 = builtin.unrealized_conversion_cast %b : i64 to f32
          %1:2 = builtin.unrealized_conversion_cast %b : i64 to i32, i32
          %2 = builtin.unrealized_conversion_cast %1#1, %1#0 : i32, i32 to i64
          %3 = builtin.unrealized_conversion_cast %2 : i64 to i32
          %dead = builtin.unrealized_conversion_cast %b : i64 to f64
          return %0, %3 : f32, i32
        }
        """,
        "reconcile-unrealized-casts",
    )
    assert text.count("unrealized_conversion_cast") == 4
    assert "f64" not in text


# ------------------------------------------------------------------------------------------------------------- loops


def test_invariant_ops_leave_nested_loops():
    text = run(
        """
        func.func @f(%n: index, %a: i32, %b: i32) -> i32 {
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> (i32) {
            %s = scf.for %j = %c0 to %n step %c1 iter_args(%y = %x) -> (i32) {
              %m = arith.muli %a, %b : i32
              %t = arith.addi %m, %b : i32
              %u = arith.addi %y, %t : i32
              %d = arith.divsi %a, %b : i32
              %v = arith.addi %u, %d : i32
              scf.yield %v : i32
            }
            scf.yield %s : i32
          }
          return %r : i32
        }
        """,
        "loop-invariant-code-motion",
    )
    before_loop, inside = text.split("scf.for", 1)
    assert "arith.muli" in before_loop
    assert "arith.addi %m" in before_loop
    assert "arith.divsi" in inside, "a division by what may be zero is not speculated"


def test_locations_survive_and_can_be_stripped():
    text = "func.func @f(%a: i32) -> i32 {\n  %0 = arith.addi %a, %a : i32\n  return %0 : i32\n}\n"
    parsed = module(text)
    assert 'loc("t":2:8)' in ir_text(parsed, debuginfo=True)
    run_pass(load("strip-debuginfo")(), parsed, PassContext(make_context()))
    assert 'loc("t"' not in ir_text(parsed, debuginfo=True)
