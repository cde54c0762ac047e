"""Pointers: arithmetic, promised alignment, loads, stores and addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tracing import run_kernel_on_cpu, text_of, trace_kernel

from cute_dialect.errors import CuteError
from cute_dialect.lang.calls.arguments import make_ptr
from cute_dialect.lang.values.dtypes import Float16, Float32, Int16, Int32, Int64
from cute_dialect.lang.values.pointers import recast_ptr
from cute_dialect.lang.values.tensors import Tensor

X = '!cute.memref<f32, gmem, align<16>, "16:1">'
OUT = '!cute.memref<f32, gmem, "8:1">'


def run(body: Callable[..., None], x: Any, out: Any, *others: Any, types: dict[str, str] | None = None) -> None:
    """Run a body on two tensors and some integers."""
    parameters = {"x": X, "out": OUT, **(types or {})}
    module = trace_kernel(
        body, parameters, lambda v: Tensor.of(v) if "memref" in str(v.type) else Int32.of(v), threads=1
    )
    run_kernel_on_cpu(module, [x, out, *others], threads=1)


def test_arithmetic_and_access() -> None:
    def body(x: Any, out: Any, n: Any) -> None:
        p = x.iterator
        assert p.alignment == 16 and (p + 4).alignment == 16 and (p + 2).alignment == 8 and (p + 1).alignment == 4
        assert (p + n).alignment == 4 and p + 0 is p and repr(p + 2) == "ptr<f32, gmem, align<8>>"
        assert (p + n).align(16).alignment == 16 and p.align(8) is p
        q = out.iterator
        q.store(p.load())
        q[1] = p[n]
        q[2] = (p + n - 1)[0]
        q[n] = (5 + p - n).load() * 2
        (q + 4).store(n)

    x = np.arange(16, dtype=np.float32) + 100
    out = np.zeros(8, np.float32)
    run(body, x, out, 3, types={"n": "i32"})
    assert out.tolist() == [100, 103, 102, 204, 3, 0, 0, 0]


def test_addresses() -> None:
    def body(x: Any, out: Any) -> None:
        p = x.iterator
        address = p.toint()
        assert isinstance(address, Int64)
        again = make_ptr(Float32, address + 8, assumed_align=8)
        assert repr(again) == "ptr<f32, gmem, align<8>>" and repr(make_ptr(Int32, address, "gmem")) == "ptr<i32, gmem>"
        out[0] = again.load()
        out[1] = (again.toint() - address).to(Float32)

    x = np.arange(16, dtype=np.float32) + 100
    out = np.zeros(8, np.float32)
    run(body, x, out)
    assert out.tolist()[:2] == [102, 8]


def test_other_types_of_the_same_bytes() -> None:
    def body(x: Any, out: Any) -> None:
        halves = recast_ptr(x.iterator, dtype=Float16)
        assert repr(halves) == "ptr<f16, gmem, align<16>>" and halves.dtype is Float16
        assert repr(recast_ptr(halves + 3, dtype=Int16)) == "ptr<i16, gmem>"
        out[0] = halves[5]

    x = np.arange(16, dtype=np.float32)
    x.view(np.float16)[5] = 0.25
    out = np.zeros(8, np.float32)
    run(body, x, out)
    assert out[0] == 0.25


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (lambda p: p + 1.5, "F262: a pointer offset must be an integer, got this Float32"),
        (lambda p: p.align(24), "F262: the alignment must be a power of two, got 24"),
        (lambda p: recast_ptr(p + 1, dtype=Int64),
         "F262: ptr<f32, gmem> is aligned to 4 bytes, but Int64 needs 8\nhint: promise the alignment with p.align(8)"),
        (lambda p: recast_ptr(p, swizzle=3),
         "F262: a swizzle needs a pointer to shared memory, got ptr<f32, gmem, align<16>>"),
        (lambda p: make_ptr(Float32, 1.5), "F262: make_ptr: the address must be an integer, got this Float32"),
        (lambda p: make_ptr(Float32, p.toint(), assumed_align=2),
         "F262: make_ptr: the alignment for Float32 must be a power of two of at least 4 bytes, got 2"),
    ],
)  # fmt: skip
def test_errors(body: Callable[[Any], object], text: str) -> None:
    with pytest.raises(CuteError) as caught:
        trace_kernel(lambda x: body(x.iterator), {"x": X}, Tensor.of)
    e = caught.value
    assert f"{e.code}: {e.message}" + (f"\nhint: {e.hint}" if e.hint else "") == text


def test_unused_pointers_emit_one_op() -> None:
    module = trace_kernel(lambda x: x.iterator.memspace, {"x": X}, Tensor.of)
    assert text_of(module).count("cute.get_iter") == 1
