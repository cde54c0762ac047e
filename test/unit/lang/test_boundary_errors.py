"""Full messages of errors at the language boundary: functions, launches, arguments, generics."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.lang.calls import compiled


@cute.kernel
def k(x: cute.Tensor, n: cute.Int32 = 0) -> None:
    x[0] = n


@cute.jit
def run(x: Any) -> None:
    k(x).launch(grid=1, block=1)


@cute.jit
def forgets(x: Any) -> None:
    k(x)


@cute.jit
def twice(x: Any) -> None:
    one = k(x)
    one.launch(grid=1, block=1)
    one.launch(grid=1, block=1)


@cute.jit
def returns(x: Any, n: cute.Int32) -> Any:
    k(x, n).launch(grid=1, block=1)
    return n


@cute.jit
def elsewhere(x: Any) -> None:
    k(x).launch(grid=1, block=1, stream=7)


@cute.jit
def half(x: Any) -> None:
    k(x).launch(grid=1.5, block=1)


@cute.jit
def missing(x: Any) -> None:
    k().launch(grid=1, block=1)


@cute.jit
def loops(x: Any, n: cute.Int32) -> None:
    total = n
    for i in range(n):
        total = total + i
    k(x, total).launch(grid=1, block=1)


@cute.jit
def reads(x: Any) -> None:
    if x[0] > 1:
        k(x).launch(grid=1, block=1)


@cute.kernel
def many(x: cute.Tensor, *more: Any) -> None:
    x[0] = sum(more)


@cute.jit
def passes_many(x: Any, *more: Any) -> None:
    many(x, *more).launch(grid=1, block=1)


@cute.kernel
def nested(x: cute.Tensor) -> None:
    k(x).launch(grid=1, block=1)


@cute.jit
def tensors(x: cute.Tensor[cute.Float16]) -> None:
    k(x).launch(grid=1, block=1)


@cute.jit
def numbers(x: Any, n: cute.Int32) -> None:
    k(x, n).launch(grid=1, block=1)


@cute.generic("N")
@cute.kernel
def generic(x: cute.Tensor) -> None:
    x[0] = N  # noqa: F821


class Holder:
    def __init__(self) -> None:
        self.weight = np.zeros(3)


@cute.jit
def holds(x: Any, held: Any) -> None:
    k(x).launch(grid=1, block=1)


ARRAY = np.zeros(32, np.float32)


def cases() -> list[tuple[Any, str, str]]:
    """Return (call, reported line, message after the location)."""
    return [
        (
            lambda: forgets(ARRAY, device="cpu"), "    k(x)",
            "F110: the kernel 'k' is never launched\nhint: add .launch(grid=…, block=…)",
        ),
        (lambda: loops(ARRAY, 3, device="cpu"), "    for i in range(n):",
            "F113: a host function that launches kernels cannot contain a run-time loop\n"
            "hint: move the loop into the kernel, or make its bounds cute.Constexpr"),
        (lambda: reads(ARRAY, device="cpu"), "    if x[0] > 1:",
            "F113: a host function that launches kernels cannot read or write array elements\n"
            "hint: access them in the kernel, or pass the number as an argument"),
        (lambda: nested(ARRAY).launch(grid=1, block=1, device="cpu"), "    k(x).launch(grid=1, block=1)",
            "F114: the kernel 'k' is called in a kernel; only host functions can launch kernels"),
        (lambda: half(ARRAY, device="cpu"), "    k(x).launch(grid=1.5, block=1)", "F115: grid takes integers, got 1.5"),
        (lambda: missing(ARRAY, device="cpu"), "    k().launch(grid=1, block=1)",
            "F116: the kernel 'k': missing a required argument: 'x'"),
        (lambda: returns(ARRAY, 1, device="cpu"), "",
            "F117: a host function that launches kernels cannot return a run-time value\n"
            "hint: write the value to an array in the kernel"),
        (lambda: elsewhere(ARRAY, device="cpu"), "    k(x).launch(grid=1, block=1, stream=7)",
            "F118: launch: stream must be the stream of the host function's call, got 7\n"
            "hint: pass a cute.Stream parameter of the host function, or give stream= in the call"),
        (lambda: twice(ARRAY, device="cpu"), "    one.launch(grid=1, block=1)",
            "F119: the kernel 'k' is launched twice\nhint: call the kernel again for a second launch"),
        (lambda: holds(ARRAY, Holder(), device="cpu"), "HERE",
            "F121: argument 'held.weight' is an array, which cannot be a compile-time constant\n"
            "hint: pass the array as a separate argument without Constexpr"),
        (lambda: run(np.zeros(3, np.complex64), device="cpu"), "HERE",
            "F122: argument 'x': numpy arrays of complex64 are not supported (supported: float64, float32, float16, "
            "bfloat16, float8_e4m3fn, float8_e5m2, float8_e8m0fnu, int64, int32, int16, int8, uint64, uint32, uint16, "
            "uint8, bool): pass x.astype(…)"),
        (lambda: numbers(ARRAY, "many", device="cpu"), "HERE",
            "F123: argument 'n' is Int32 and needs a number, got str 'many'"),
        (lambda: tensors(ARRAY, device="cpu"), "HERE",
            "F129: argument 'x' needs elements of Float16, got Float32\nhint: pass x.astype(…)"),
        (lambda: generic(ARRAY).launch(grid=1, block=1, device="cpu"), "HERE",
            "F130: the generic parameter 'N' of 'generic' is neither given nor deduced\n"
            "hint: generic[N](…), or use it in an annotation"),
        (lambda: cute.compile(len, ARRAY), "HERE",
            "F102: cute.compile takes a function decorated with @cute.jit or @cute.kernel, got <built-in "
            "function len>\n"
            "hint: decorate the function"),
        (lambda: cute.compile(run, ARRAY, options="--fast"), "HERE",
            "F103: options: unknown option '--fast'\nhint: --opt-level 3"),
    ]  # fmt: skip


@pytest.mark.parametrize("at", range(15))
def test_the_text_and_the_line(at: int) -> None:
    call, line, text = cases()[at]
    with pytest.raises(cute.CuteError) as caught:
        call()
    error = caught.value
    error.calls.clear()
    said = str(error)
    code = text[:4]
    if line:
        assert error.place is not None and error.place.file == __file__
        there = linecache.getline(__file__, error.place.line).rstrip("\n")
        assert there == line if line != "HERE" else "(lambda: " in there or "lambda: " in there
        picture = said.splitlines()[1:3]
        assert there in picture[0] and "^" in picture[1]
        said = "\n".join([said.splitlines()[0].partition("error ")[2], *said.splitlines()[3:]])
    else:
        said = said.partition("error ")[2]
        said = "\n".join(x for x in said.splitlines() if "|" not in x)
    assert said == text and error.code == code
    run(ARRAY, device="cpu")  # The next kernel compiles.


def test_too_many_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    """GPUs before sm_70 accept at most 4096 bytes of kernel parameters."""
    monkeypatch.setattr(compiled, "parameter_bytes", {"sm_61": 32, "sm_90a": 64}.__getitem__)
    with cute.target("sm_61"):
        passes_many(ARRAY, 1, 2, device="cpu")
        assert ARRAY[0] == 3
        with pytest.raises(cute.KernelTypeError) as caught:
            passes_many(ARRAY, *range(9), device="cpu")
    assert caught.value.message == (
        "the parameters of kernel 'many' have 52 bytes, more than the limit of 32; the largest is 'x' (16 bytes)"
    )
    with cute.target("sm_90a"):
        passes_many(ARRAY, *range(9), device="cpu")
