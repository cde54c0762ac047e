"""Malformed ops in generic form are reported at the op, whatever part is missing."""

from __future__ import annotations

import pytest
from form_fuzz import check, op_names

from cute_dialect.ir.context import make_context
from cute_dialect.ir.diagnostics import DiagnosticEngine, Source
from cute_dialect.ir.parsing import parse_module
from cute_dialect.ir.verifier import verify

KERNEL = '"gpu.func"() ({ gpu.return }) {gpu.kernel, sym_name = "k"} : () -> ()'
LAUNCH = """
  func.func @launch(%n: i32) {
    gpu.launch_func @m::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) : i32 args(%n : i32) {cute.args = [3 : i32]}
    return
  }
"""


@pytest.mark.parametrize(
    "text, errors",
    [
        ('%0 = "arith.select"() : () -> i32', ["1:6: 'arith.select' expects 3 operands, got 0"]),
        ('llvm.func @t() {\n  "llvm.br"() : () -> ()\n}', ["2:3: 'llvm.br' expects 1 successors, got 0"]),
        ("scf.if %c {\n  func.func @f(%c: i1) {\n    return\n  }\n}", ["1:8: use of undeclared SSA value name '%c'"]),
        (
            '"cute_nvgpu.make_tma_reduce_im2col"(%a) : (!cute.memref<f16, gmem, "4:1">) -> ()\n'
            '%a = builtin.unrealized_conversion_cast to !cute.memref<f16, gmem, "4:1">',
            ["1:1: 'cute_nvgpu.make_tma_reduce_im2col' op expected 1 result, got 0"],
        ),
        # The launch precedes the malformed kernel that it names, so it cannot be checked. Only the kernel is reported.
        (
            f"module attributes {{gpu.container_module}} {{{LAUNCH}\n  gpu.module @m {{ {KERNEL} }}\n}}",
            ["7:19: 'gpu.func' requires attribute 'function_type'"],
        ),
        (
            f"module attributes {{gpu.container_module}} {{{LAUNCH}\n"
            "  gpu.module @m { gpu.func @k(%a: i32) kernel { gpu.return } }\n}",
            ["3:5: 'cute.args' must be an array of strings, one type for each argument; got [3 : i32]"],
        ),
    ],
)
def test_messages(text: str, errors: list[str]) -> None:
    engine = DiagnosticEngine()
    module = parse_module(make_context("all"), Source("f", text), engine)
    if module is not None:
        verify(module, engine)
    found = [d for d in engine.seen if d.severity == "error"]
    assert [f"{d.position.line}:{d.position.col}: {d.message}" for d in found] == errors


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 1000, 100))
def test_each_op_once(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_CACHE", "0")
    found = {seed: wrong for seed in range(start, min(start + 100, len(op_names()))) if (wrong := check(seed))}
    assert not found
