"""cute.print in kernels on the CPU interpreter: every kind of value, one line per thread, and calls of vprintf."""

from __future__ import annotations

from pathlib import Path

import pytest
from interp_support import run_kernel
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from cute_dialect.ir.context import make_context
from cute_dialect.pipelines import compile
from cute_dialect.pipelines.compiler import lower_to_base
from cute_dialect.pipelines.upstream import UpstreamModule, is_available
from cute_dialect.tools.cute_run import main

BODY = """
  gpu.func @k(%n: i32, %m: i64) kernel {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %a = cute.make_int_tuple(%n, %m, %t) : (i32, i64, i32) -> !cute.int_tuple<"(?,(?{i64},4),?)">
    cute.print(%a) : !cute.int_tuple<"(?,(?{i64},4),?)">
    %s = cute.make_shape(%t, %m) : (i32, i64) -> !cute.shape<"(?,(8,?{i64}))">
    cute.print(%s) : !cute.shape<"(?,(8,?{i64}))">
    %d = cute.make_stride(%n, %m) : (i32, i64) -> !cute.stride<"(1,(?,?{i64}))">
    %e = cute.make_stride(%t) : (i32) -> !cute.stride<"(?@0,1@1)">
    cute.print(%e) : !cute.stride<"(?@0,1@1)">
    %c = cute.make_coord(%t) : (i32) -> !cute.coord<"(_,?)">
    cute.print(%c) : !cute.coord<"(_,?)">
    %l = cute.make_layout(%s, %d)
      : (!cute.shape<"(?,(8,?{i64}))">, !cute.stride<"(1,(?,?{i64}))">) -> !cute.layout<"(?,(8,?{i64})):(1,(?,?{i64}))">
    cute.print(%l) : !cute.layout<"(?,(8,?{i64})):(1,(?,?{i64}))">
    %i = cute.make_tile(%t, %n) : (i32, i32) -> !cute.tile<"[(?,3):(1,?);_]">
    cute.print(%i) : !cute.tile<"[(?,3):(1,?);_]">
    %w = cute.static : !cute.swizzle<"S<2,3,3>">
    cute.print(%w) : !cute.swizzle<"S<2,3,3>">
    %o = cute.make_int_tuple(%t) : (i32) -> !cute.int_tuple<"?">
    %x = cute.make_composed_layout(%w, %o, %l)
      : (!cute.swizzle<"S<2,3,3>">, !cute.int_tuple<"?">, !cute.layout<"(?,(8,?{i64})):(1,(?,?{i64}))">)
        -> !cute.composed_layout<"S<2,3,3> o ? o (?,(8,?{i64})):(1,(?,?{i64}))">
    cute.print(%x) : !cute.composed_layout<"S<2,3,3> o ? o (?,(8,?{i64})):(1,(?,?{i64}))">
    gpu.return
  }
"""
TEXT = f"module attributes {{gpu.container_module}} {{\ngpu.module @m {{{BODY}}}\n}}\n"
N, M = -7, 5_000_000_000


def expected(t: int) -> list[str]:
    """Return the output of thread ``t``."""
    layout = f"({t},(8,{M})):(1,({N},{M}))"
    return [
        f"({N},({M},4),{t})", f"({t},(8,{M}))", f"({t}@0,1@1)", f"(_,{t})", layout, f"[({t},3):(1,{N});_]", "S<2,3,3>",
        f"S<2,3,3> o {t} o {layout}",
    ]  # fmt: skip


def by_line(lines: list[str]) -> None:
    """Assert that print ``i`` gave one line per thread, before any line of print ``i + 1``."""
    assert len(lines) == 24
    for i in range(8):
        assert sorted(lines[3 * i : 3 * i + 3]) == sorted(expected(t)[i] for t in range(3))


def test_base_ir_on_the_interpreter() -> None:
    module = Parser(make_context(), lower_to_base(TEXT, pipeline="base")).parse_module()
    assert isinstance(module, ModuleOp)
    by_line("".join(run_kernel(module, "k", [N, M], block=(3,)).printf).splitlines())
    alone = run_kernel(module, "k", [N, M], block=(1,))
    assert "".join(alone.printf).splitlines() == expected(0)


@pytest.mark.skipif(not is_available(), reason="upstream MLIR is not installed")
def test_vprintf_on_the_interpreter() -> None:
    """Upstream lowers gpu.printf to vprintf with a buffer of C variadic arguments."""
    upstream = UpstreamModule.from_text(lower_to_base(TEXT, pipeline="base"))
    upstream.run("base-prepare")
    upstream.run("one-shot-convert-to-llvm")
    text = upstream.text(generic=True)
    assert "vprintf" in text and "gpu.printf" not in text
    report = run_kernel(Parser(make_context(), text).parse_module(), "k", [N, M], block=(1,))
    assert "".join(report.printf).splitlines() == expected(0)


def test_a_launch_on_the_cpu_prints(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = compile(TEXT, emit="base").kernel("k")
    kernel(N, M, device="cpu", grid=(1, 1, 1), block=(3, 1, 1))
    by_line(capsys.readouterr().out.splitlines())


def test_cute_run_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "print.mlir"
    file.write_text(TEXT)
    words = ["--kernel", "k", "--in", str(N), "--in", str(M), "--device=cpu", "--grid=1", "--block=3", "-q"]
    assert main([str(file), *words]) == 0
    by_line(capsys.readouterr().out.splitlines())
