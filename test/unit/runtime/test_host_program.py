"""Host programs: results of each instruction, and errors instead of integer wrap-around."""

from __future__ import annotations

import itertools
import json
import random

import numpy as np
import pytest
from pipelines_support import M, add_module, kernel, module

from cute_dialect.pipelines.build_manifest import extract_host_program
from cute_dialect.pipelines.compiler import parse_module
from cute_dialect.runtime import host_program
from cute_dialect.runtime.host_program import HostError, HostOverflow, Launch, LaunchShape, Pointer


def program(text: str) -> host_program.Program:
    """Return the program of the only host function, after a round trip through JSON."""
    functions = [op for op in parse_module(text).ops if op.name == "func.func"]
    (found,) = (p for p in map(extract_host_program, functions) if p is not None)
    return json.loads(json.dumps(found))


def only(p: host_program.Program, values: list[host_program.Value]) -> Launch:
    """Return the only launch of a call."""
    (launch,) = host_program.evaluate(p, values)
    return launch


def host(body: str, args: str, grid: str = "%g, %one, %one", extra: str = "", passes: str = "") -> str:
    return module(
        kernel("k", ["opaque"], ["!llvm.ptr<1>"]),
        f"""  func.func @launch({args}) {{
    %one = arith.constant 1 : i32
    %t = arith.constant 128 : i32
{body}
    gpu.launch_func @kernels::@k blocks in ({grid}) threads in (%t, %one, %one) : i32
      {extra} args({passes or "%p : !llvm.ptr<1>"})
    return
  }}
""",
    )


def run(body: str, args: str, values: list[object]) -> Launch:
    text = host(body, f"%p: !llvm.ptr<1>, {args}")
    return only(program(text), [Pointer(0, 0), *values])  # type: ignore[list-item]


def matrix(rows: int, columns: int, ld: int, index: int = 0) -> host_program.Value:
    return (Pointer(index, 0), ((rows, columns), ld))


def test_the_launch_of_the_add() -> None:
    p = program(add_module())
    got = only(p, [matrix(17, 129, 200, i) for i in range(3)])
    assert got == Launch(
        "add", ("add_v",), LaunchShape((4, 1, 1), (128, 1, 1)), tuple(matrix(17, 129, 200, i) for i in range(3))
    )
    big = only(p, [matrix(2**31 - 65536, 1, 1)] * 3)
    assert big.shape.grid == ((2**31 - 65536) // 16, 1, 1)


OPS = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "divsi": lambda a, b: int(a / b),
    "remsi": lambda a, b: a - b * int(a / b),
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -((-a) // b),
    "maxsi": max,
    "minsi": min,
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
    "divui": lambda a, b: (a % 2**32) // (b % 2**32),
    "remui": lambda a, b: (a % 2**32) % (b % 2**32),
    "maxui": lambda a, b: max(a % 2**32, b % 2**32),
    "minui": lambda a, b: min(a % 2**32, b % 2**32),
}


@pytest.mark.parametrize("op", sorted(OPS))
def test_arithmetic_is_exact_or_refused(op: str) -> None:
    p = program(host(f"    %g = arith.{op} %x, %y : i32", "%p: !llvm.ptr<1>, %x: i32, %y: i32"))
    rng = random.Random(3)
    edge = [0, 1, -1, 2, -2, 7, -7, 65535, 65536, 2**31 - 1, -(2**31)]
    pairs = [(a, b) for a in edge for b in edge] + [(rng.randint(-1000, 1000), rng.randint(-9, 9)) for _ in range(50)]
    for a, b in pairs:
        unsigned = op.endswith("ui")
        if b == 0 and ("div" in op or "rem" in op):
            with pytest.raises(HostError, match="division by zero"):
                only(p, [Pointer(0, 0), a, b])
            continue
        exact = OPS[op](a, b)
        if unsigned:
            exact = exact - 2**32 if exact >= 2**31 else exact
        if -(2**31) <= exact < 2**31:
            assert only(p, [Pointer(0, 0), a, b]).shape.grid[0] == exact, (op, a, b)
        else:
            with pytest.raises(HostOverflow, match=f"= {exact} does not fit i32"):
                only(p, [Pointer(0, 0), a, b])


def test_overflow_names_the_function_and_the_cure() -> None:
    p = program(add_module())
    with pytest.raises(HostOverflow, match=r"@launch: 134217728 \* 16777216 = \d+ does not fit i32; .*\?\{i64\}"):
        only(p, [matrix(2**31 - 1, 2**31 - 1, 1)] * 3)


def test_casts_shifts_and_compare() -> None:
    body = """\
    %w = arith.extsi %x : i32 to i64
    %c16 = arith.constant 16 : i64
    %s = arith.shli %w, %c16 : i64
    %g0 = arith.trunci %s : i64 to i32
    %zero = arith.constant 0 : i32
    %neg = arith.cmpi slt, %x, %zero : i32
    %flip = arith.constant true
    %pos = arith.xori %neg, %flip : i1
    %e = arith.extui %pos : i1 to i32
    %a = math.absi %g0 : i32
    %g = arith.select %pos, %a, %e : i32
"""
    assert run(body, "%x: i32", [3]).shape.grid == (3 << 16, 1, 1)
    assert run(body, "%x: i32", [-3]).shape.grid == (0, 1, 1)
    with pytest.raises(HostOverflow, match="trunci of 2147483648 does not fit i32"):
        run(body, "%x: i32", [1 << 15])


@pytest.mark.sample("oeq")
@pytest.mark.parametrize("predicate", ["oeq", "olt", "oge", "one", "ord", "ueq", "ult", "une", "uno", "ule"])
def test_float_comparisons_use_the_type(predicate: str) -> None:
    """Floats are rounded to f32 before they are compared, so 1 + 1e-9 equals 1."""
    body = f"    %b = arith.cmpf {predicate}, %x, %y : f32\n    %g = arith.extui %b : i1 to i32\n"
    compare = {"eq": np.equal, "lt": np.less, "ge": np.greater_equal, "ne": np.not_equal, "le": np.less_equal}
    values = [0.0, -0.0, 0.1, float(np.float32(0.1)), 1.0, 1.0 + 1e-9, -3.5, float("inf"), float("nan")]
    for a, b in itertools.product(values, values):
        unordered = a != a or b != b
        if predicate in ("ord", "uno"):
            want = unordered == (predicate == "uno")
        else:
            want = predicate[0] == "u" if unordered else bool(compare[predicate[1:]](np.float32(a), np.float32(b)))
        assert run(body, "%x: f32, %y: f32", [a, b]).shape.grid == (int(want), 1, 1), (a, b)


def test_if_with_results() -> None:
    body = """\
    %c5 = arith.constant 5 : i32
    %big = arith.cmpi ugt, %x, %c5 : i32
    %g = scf.if %big -> (i32) {
      %q = arith.divsi %x, %c5 : i32
      scf.yield %q : i32
    } else {
      scf.yield %c5 : i32
    }
"""
    assert [run(body, "%x: i32", [x]).shape.grid[0] for x in (3, 5, 50, -1)] == [5, 5, 10, 0]


def test_aggregates_pointers_and_shared_memory() -> None:
    body = f"""\
    %q = llvm.extractvalue %m[0] : {M}
    %n = llvm.extractvalue %m[1, 0, 1] : {M}
    %g = arith.addi %n, %one : i32
    %r = llvm.getelementptr %q[%n] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %r2 = llvm.getelementptr %r[2] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f16
    %m2 = llvm.insertvalue %r2, %m[0] : {M}
    %u = ub.poison : !llvm.struct<(struct<(i32, i32)>, i32)>
    %u1 = llvm.insertvalue %g, %u[0, 1] : !llvm.struct<(struct<(i32, i32)>, i32)>
"""
    text = host(
        body,
        f"%m: {M}",
        extra="dynamic_shared_memory_size %g",
        passes=f"%m2 : {M}, %u1 : !llvm.struct<(struct<(i32, i32)>, i32)>",
    ).replace(
        kernel("k", ["opaque"], ["!llvm.ptr<1>"]),
        kernel("k", ["o", "o"], [M, "!llvm.struct<(struct<(i32, i32)>, i32)>"]),
    )
    got = only(program(text), [matrix(4, 10, 12)])
    assert got.shape.smem == 11 and got.shape.grid == (11, 1, 1)
    assert got.args == ((Pointer(0, 44), ((4, 10), 12)), ((None, 11), None))


def test_assertions_of_the_host_function() -> None:
    body = """\
    %ok = arith.cmpi sgt, %x, %one : i32
    cf.assert %ok, "x must be more than one"
    %g = arith.addi %x, %one : i32
"""
    assert run(body, "%x: i32", [2]).shape.grid == (3, 1, 1)
    with pytest.raises(HostError, match="x must be more than one"):
        run(body, "%x: i32", [1])


def test_cluster_sizes() -> None:
    text = host("    %g = arith.addi %x, %x : i32", "%p: !llvm.ptr<1>, %x: i32").replace(
        "blocks in", "clusters in (%x, %one, %one) blocks in"
    )
    assert only(program(text), [Pointer(0, 0), 2]).shape.cluster == (2, 1, 1)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "    %f = arith.constant 1.0 : f32\n    %h = arith.remf %f, %f : f32\n    %g = arith.addi %x, %x : i32",
            "arith.remf cannot be evaluated",
        ),
        ("    %g = func.call @other(%x) : (i32) -> i32", "func.call cannot be evaluated"),
    ],
)
def test_unsupported_host_ops_are_rejected(body: str, said: str) -> None:
    text = host(body, "%p: !llvm.ptr<1>, %x: i32").replace(
        "  func.func @launch", "  func.func private @other(i32) -> i32\n  func.func @launch", 1
    )
    with pytest.raises(HostError, match=said):
        program(text)


def test_wrong_number_of_arguments() -> None:
    with pytest.raises(HostError, match="@launch takes 3 arguments, got 1"):
        only(program(add_module()), [matrix(1, 1, 1)])
