"""A traced kernel runs, its ops have the user's line numbers, and errors show them."""

from __future__ import annotations

import numpy as np
import pytest
from tracing import run_kernel_on_cpu, text_of, trace_kernel

from cute_dialect.errors import CompileError
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.tracing.tracer import current
from cute_dialect.lang.values.dtypes import Float32, Int32, Uint32


def _load(x: object, i: Int32) -> Float32:
    t = current()
    where = t.value("cute.make_coord", [i.ssa], [t_type('!cute.coord<"?">')])
    return Float32.of(t.value("cute.memref.load", [x, where]))


def _store(x: object, i: Int32, v: Float32) -> None:
    t = current()
    where = t.value("cute.make_coord", [i.ssa], [t_type('!cute.coord<"?">')])
    t.op("cute.memref.store", [x, where, v.ssa])


def t_type(text: str) -> object:
    from cute_dialect.lang.tracing.tracer import parse_type

    return parse_type(text)


def test_a_kernel_runs() -> None:
    def body(x: object, y: object) -> None:
        tid = Int32.of(current().value("nvvm.read.ptx.sreg.tid.x", (), [t_type("i32")]))
        _store(y, tid, _load(x, tid) * 2 + 1)

    module = trace_kernel(body, {"x": '!cute.memref<f32, gmem, "32:1">', "y": '!cute.memref<f32, gmem, "32:1">'})
    assert "arith.mulf" in text_of(module)
    x = np.arange(32, dtype=np.float32)
    y = np.full(32, np.nan, np.float32)
    run_kernel_on_cpu(module, [x, y])
    assert (y == 2 * x + 1).all()


def test_an_error_has_the_users_line() -> None:
    def body(x: object) -> None:
        a = Int32.of(current().value("nvvm.read.ptx.sreg.tid.x", (), [t_type("i32")]))
        a % Uint32(a)

    with pytest.raises(KernelTypeError) as caught:
        trace_kernel(body, {"x": "i32"})
    assert caught.value.place is not None
    assert caught.value.place.file == __file__
    assert "a % Uint32(a)" in str(
        caught.value
    ) and "error F231: '%' is ambiguous because Int32 and Uint32 differ in signedness" in str(caught.value)


def test_outside_of_a_trace() -> None:
    with pytest.raises(CompileError, match="F100"):
        current()
