"""Whole cute values as results of ``scf.if`` and carried by ``scf.for`` and ``scf.while``, through every pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from cute_dialect.pipelines import compile as compile_cute

ROWS, COLUMNS = 12, 8
G = '!cute.memref<i32, gmem, "(?,?):(?,1)">'


Numbers = NDArray[np.int64]


class Value(NamedTuple):
    """A cute type, ops that build ``%v`` of that type from ``%s``, and ops that compute ``%num : i32`` from ``%w``.

    Each ``$`` in a name is replaced by a suffix that makes it unique.  ``number`` is the expected ``%num`` for ``%s``.
    """

    type: str
    make: str
    use: str
    number: Callable[[Numbers], Numbers] = lambda s: s


LAYOUT = '!cute.layout<"(?,4):(4,1)">'
COMPOSED = '!cute.composed_layout<"S<1,0,2> o ? o (4,4):(4,1)">'
COORDS = '!cute.coord_tensor<"(?,0)", "(4,4):(1@0,1@1)">'
ROW = '!cute.memref<i32, gmem, "(?):(1)">'
ONE = '!cute.memref<i32, gmem, "1:1">'
SHARED = '!cute.memref<i32, smem, "(64,1):(1,64)">'
ELEMENT = '!cute.memref<i32, smem, "(1):(64)">'
REGISTERS = '!cute.memref<i32, rmem, "2:1">'

VALUES = {
    "layout": Value(
        LAYOUT,
        f"""%h$ = cute.make_shape(%s) : (i32) -> !cute.shape<"(?,4)">
        %t$ = cute.static : !cute.stride<"(4,1)">
        %v = cute.make_layout(%h$, %t$) : (!cute.shape<"(?,4)">, !cute.stride<"(4,1)">) -> {LAYOUT}""",
        f"""%z = cute.size(%w) : ({LAYOUT}) -> !cute.int_tuple<"?">
        %num = cute.get_scalars (%z) : !cute.int_tuple<"?">""",
        lambda s: 4 * s,
    ),
    "composed layout": Value(
        COMPOSED,
        f"""%x$ = cute.static : !cute.swizzle<"S<1,0,2>">
        %d$ = cute.make_int_tuple(%s) : (i32) -> !cute.int_tuple<"?">
        %h$ = cute.static : !cute.layout<"(4,4):(4,1)">
        %v = cute.make_composed_layout(%x$, %d$, %h$)
          : (!cute.swizzle<"S<1,0,2>">, !cute.int_tuple<"?">, !cute.layout<"(4,4):(4,1)">) -> {COMPOSED}""",
        f"""%k = cute.static : !cute.coord<"(3,1)">
        %z = cute.crd2idx(%k, %w) : (!cute.coord<"(3,1)">, {COMPOSED}) -> !cute.int_tuple<"?">
        %num = cute.get_scalars (%z) : !cute.int_tuple<"?">""",
        lambda s: (s + 13) ^ ((s + 13) >> 2 & 1),
    ),
    "static layout": Value(
        '!cute.layout<"(4,2):(2,1)">',
        '%v = cute.static : !cute.layout<"(4,2):(2,1)">',
        """%k = cute.static : !cute.coord<"(3,1)">
        %z = cute.crd2idx(%k, %w) : (!cute.coord<"(3,1)">, !cute.layout<"(4,2):(2,1)">) -> !cute.int_tuple<"7">
        %num = cute.get_scalars (%z) : !cute.int_tuple<"7">""",
        lambda s: 7 + 0 * s,
    ),
    "shape": Value(
        '!cute.shape<"(?,4)">',
        '%v = cute.make_shape(%s) : (i32) -> !cute.shape<"(?,4)">',
        '%num, %four = cute.get_scalars (%w) : !cute.shape<"(?,4)">',
    ),
    "int_tuple": Value(
        '!cute.int_tuple<"?">',
        '%v = cute.make_int_tuple(%s) : (i32) -> !cute.int_tuple<"?">',
        '%num = cute.get_scalars (%w) : !cute.int_tuple<"?">',
    ),
    "tile": Value(
        '!cute.tile<"[?:1;4:1]">',
        '%v = cute.make_tile(%s) : (i32) -> !cute.tile<"[?:1;4:1]">',
        '%num, %one, %four, %unit = cute.get_scalars (%w) : !cute.tile<"[?:1;4:1]">',
    ),
    "coord": Value(
        '!cute.coord<"(?,_)">',
        '%v = cute.make_coord(%s) : (i32) -> !cute.coord<"(?,_)">',
        f"""%r = cute.slice(%g, %w) : {G}, !cute.coord<"(?,_)">
        %k = cute.static : !cute.coord<"0">
        %num = cute.memref.load(%r, %k) : ({ROW}, !cute.coord<"0">) -> i32""",
        lambda s: 10 * COLUMNS * s,
    ),
    "pointer": Value(
        "!cute.ptr<i32, gmem>",
        f"""%p$ = cute.get_iter(%g) : {G}
        %o$ = cute.make_int_tuple(%s) : (i32) -> !cute.int_tuple<"?">
        %v = cute.add_offset(%p$, %o$) : (!cute.ptr<i32, gmem>, !cute.int_tuple<"?">) -> !cute.ptr<i32, gmem>""",
        f"""%l = cute.static : !cute.layout<"1:1">
        %m = cute.make_view(%w, %l) : {ONE}
        %k = cute.static : !cute.coord<"0">
        %num = cute.memref.load(%m, %k) : ({ONE}, !cute.coord<"0">) -> i32""",
        lambda s: 10 * s,
    ),
    "tensor": Value(
        ROW,
        f"""%c$ = cute.make_coord(%s) : (i32) -> !cute.coord<"(?,_)">
        %v = cute.slice(%g, %c$) : {G}, !cute.coord<"(?,_)">""",
        f"""%k = cute.static : !cute.coord<"0">
        %num = cute.memref.load(%w, %k) : ({ROW}, !cute.coord<"0">) -> i32""",
        lambda s: 10 * COLUMNS * s,
    ),
    "shared memory": Value(
        ELEMENT,
        f"""%c$ = cute.make_coord(%s) : (i32) -> !cute.coord<"(?,_)">
        %v = cute.slice(%shared, %c$) : {SHARED}, !cute.coord<"(?,_)">""",
        f"""%k = cute.static : !cute.coord<"0">
        %num = cute.memref.load(%w, %k) : ({ELEMENT}, !cute.coord<"0">) -> i32""",
        lambda s: 3 * s,
    ),
    "register tensor": Value(
        REGISTERS,
        f"""%v = cute.memref.alloca() : {REGISTERS}
        %k$ = cute.static : !cute.coord<"1">
        cute.memref.store(%v, %k$, %s) : ({REGISTERS}, !cute.coord<"1">, i32) -> ()""",
        f"""%k = cute.static : !cute.coord<"1">
        %num = cute.memref.load(%w, %k) : ({REGISTERS}, !cute.coord<"1">) -> i32""",
    ),
    "coordinate tensor": Value(
        COORDS,
        f"""%i$ = cute.make_int_tuple(%s) : (i32) -> !cute.int_tuple<"(?,0)">
        %l$ = cute.static : !cute.layout<"(4,4):(1@0,1@1)">
        %v = cute.make_view(%i$, %l$) : {COORDS}""",
        f"""%k = cute.static : !cute.coord<"(2,1)">
        %q = cute.memref.load(%w, %k) : ({COORDS}, !cute.coord<"(2,1)">) -> !cute.int_tuple<"(?,1)">
        %num, %one = cute.get_scalars (%q) : !cute.int_tuple<"(?,1)">""",
        lambda s: s + 2,
    ),
}


def made(value: Value, number: str, at: str) -> str:
    """Return the ops that define ``%v`` + ``at`` from ``number``."""
    return (
        value.make.replace("$", at)
        .replace("%s)", f"{number})")
        .replace(", %s)", f", {number})")
        .replace("%v", f"%v{at}")
    )


def region(kind: str, value: Value) -> str:
    """Return the ops that define ``%w`` in a region of this kind."""
    t = value.type
    first, again = made(value, "%sa", "a"), made(value, "%sb", "b")
    start = f"%sa = arith.addi %tid, %c1 : i32\n{first}"
    if kind == "if":
        return f"""%sa = arith.addi %tid, %c1 : i32
      %sb = arith.addi %tid, %c3 : i32
      %w = scf.if %even -> ({t}) {{
        {first}
        scf.yield %va : {t}
      }} else {{
        {again}
        scf.yield %vb : {t}
      }}"""
    if kind.startswith("for"):
        return f"""{start}
      %w = scf.for %i = %c0 to %n step %c1 iter_args(%y = %va) -> ({t}) : i32 {{
        %sb = arith.addi %tid, %i : i32
        {again}
        scf.yield %vb : {t}
      }} {"{cute.unroll = 2 : i32}" if "unrolled" in kind else ""}"""
    return f"""{start}
      %w, %last = scf.while (%y = %va, %i = %c0) : ({t}, i32) -> ({t}, i32) {{
        %more = arith.cmpi slt, %i, %n : i32
        scf.condition(%more) %y, %i : {t}, i32
      }} do {{
      ^bb0(%yy: {t}, %ii: i32):
        %sb = arith.addi %tid, %ii : i32
        {again}
        %next = arith.addi %ii, %c1 : i32
        scf.yield %vb, %next : {t}, i32
      }}"""


def kernel(kind: str, value: Value) -> str:
    """Build a kernel in which each of 8 threads stores ``%num``."""
    return f"""
module attributes {{gpu.container_module}} {{
  gpu.module @m {{
    gpu.func @k(%g: {G}, %out: !cute.memref<i32, gmem, "8:1">, %n: i32)
        kernel attributes {{known_block_size = array<i32: 8, 1, 1>}} {{
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c3 = arith.constant 3 : i32
      %c64 = arith.constant 64 : i32
      %bit = arith.andi %tid, %c1 : i32
      %even = arith.cmpi eq, %bit, %c0 : i32
      %shared = cute.memref.alloc_smem() : {SHARED}
      scf.for %i = %c0 to %c64 step %c1 : i32 {{
        %three = arith.muli %i, %c3 : i32
        %place = cute.make_coord(%i) : (i32) -> !cute.coord<"(?,0)">
        cute.memref.store(%shared, %place, %three) : ({SHARED}, !cute.coord<"(?,0)">, i32) -> ()
      }}
      {region(kind, value)}
      {value.use}
      %at = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      cute.memref.store(%out, %at, %num) : (!cute.memref<i32, gmem, "8:1">, !cute.coord<"?">, i32) -> ()
      gpu.return
    }}
  }}
}}
"""


@pytest.mark.sample(every=17)
@pytest.mark.parametrize("kind", ["if", "for", "for, unrolled", "while"])
@pytest.mark.parametrize("name", VALUES)
def test_a_value_through_a_region(name: str, kind: str) -> None:
    value, threads = VALUES[name], np.arange(8)
    text = kernel(kind, value)
    k = compile_cute(text, emit="base").kernel("k")
    for turns in (0, 1, 3):
        g = (np.arange(ROWS * COLUMNS, dtype=np.int32) * 10).reshape(ROWS, COLUMNS)
        out = np.full(8, -1, np.int32)
        k(g, out, np.int32(turns), grid=(1, 1, 1), device="cpu")
        loop = threads + (turns - 1 if turns else 1)
        assert np.array_equal(
            out, value.number(np.where(threads % 2, threads + 3, threads + 1) if kind == "if" else loop)
        )
    assert ".entry k" in compile_cute(text, emit="ptx").ptx
