"""``printf`` in kernels on the interpreter, with C format strings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tracing import run_kernel_on_cpu, trace_kernel

from cute_dialect import lang as cute
from cute_dialect.errors import CuteError
from cute_dialect.lang.control.runtime import Hooks
from cute_dialect.lang.values.dtypes import Boolean, Float16, Float32, Int32, Int64, Uint8
from cute_dialect.lang.values.tensors import Tensor

X = '!cute.memref<f32, gmem, "(3,4):(4,1)">'
N = '!cute.memref<i32, gmem, "(?,4):(?,1)">'


def wrap(ssa: Any) -> Any:
    """Return the language's value for a kernel parameter."""
    return Tensor.of(ssa) if "memref" in str(ssa.type) else Int32.of(ssa)


def printed(body: Any, capsys: pytest.CaptureFixture[str], threads: int = 1) -> str:
    """Run a body with the 3x4 matrix 0.5, 1.5, … and the integer 7, and return its output."""
    module = trace_kernel(body, {"x": X, "n": "i32"}, wrap, threads=threads)
    run_kernel_on_cpu(module, [np.arange(12, dtype=np.float32).reshape(3, 4) + 0.5, 7], threads=threads)
    return capsys.readouterr().out


def test_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    def body(x: Any, n: Any) -> None:
        cute.printf("hello, 100%")
        cute.printf("n = {}, x = {}, both {}", n, x[1, 2], (n, (3, n + 1)))
        cute.printf("%d of %5.1f%% and %x, %s", n, x[0, 0], n * 16, "text")
        cute.printf("{1} before {0}", n, x[0, 1])
        cute.printf("{:04d}|{:8.2f}|{:x}", n, x[0, 0], n + 20)
        cute.printf("{} {} {} {}", Int64(n) * 2**40, Boolean(n), x[0, 1].to(Float16), Uint8(n) - 8)
        cute.printf(n, x[0, 0])
        cute.printf("no ", end="")
        cute.printf("new line\n")
        cute.printf("{} {}", 3, None)

    assert printed(body, capsys) == (
        "hello, 100%\nn = 7, x = 6.500000, both (7,(3,8))\n7 of   0.5% and 70, text\n1.500000 before 7\n"
        "0007|    0.50|1b\n7696581394432 1 1.500000 255\n7 0.500000\nno new line\n3 _\n"
    )


def test_f_strings(capsys: pytest.CaptureFixture[str]) -> None:
    def body(x: Any, n: Any) -> None:
        text = Hooks.text("n is ", (n, -1, ""), ", x is ", (x[2, 3], -1, ".2f"), " (100%)")
        assert text == "n is ?, x is ? (100%)"
        cute.printf(text)

    assert printed(body, capsys) == "n is 7, x is 11.50 (100%)\n"


def test_layouts_tensors_and_vectors(capsys: pytest.CaptureFixture[str]) -> None:
    def body(x: Any, n: Any) -> None:
        cute.printf("{}", cute.make_layout((n, 4), stride=(4, 1)))
        inner = cute.make_layout((64, n), stride=(n, 1))
        cute.printf(cute.make_composed_layout(inner, n + 1, cute.make_layout((n, 2))))
        cute.printf("{}", cute.make_tensor(x.iterator, cute.make_layout((2, n), stride=(n, 1))))
        cute.printf("{}", x[0, None].load())

    assert printed(body, capsys) == (
        "(7,4):(4,1)\n(64,7):(7,1) o 8 o (7,2):(1,7)\ntensor<ptr<f32, gmem> o (2,7):(7,1)>\n"
        "[0.500000, 1.500000, 2.500000, 3.500000]\n"
    )


def test_print_tensor(capsys: pytest.CaptureFixture[str]) -> None:
    def body(x: Any, n: Any) -> None:
        cute.print_tensor(x)
        r = cute.make_rmem_tensor_like(x[0, None], Int32)
        r.store(x[0, None].load().to(Int32))
        cute.print_tensor(r)
        cute.print_tensor(x.load()[(None, 1)] * 2)
        cute.print_tensor(x[None, 0], verbose=True)
        cute.print_tensor(cute.make_identity_tensor((2, 2)))

    assert printed(body, capsys) == (
        "tensor<ptr<f32, gmem> o (3,4):(4,1)>:\n"
        "[[0.500000, 1.500000, 2.500000, 3.500000],\n"
        " [4.500000, 5.500000, 6.500000, 7.500000],\n"
        " [8.500000, 9.500000, 10.500000, 11.500000]]\n"
        "tensor<ptr<i32, rmem, align<16>> o (4):(1)> of thread (0,0,0) in block (0,0,0):\n[0, 1, 2, 3]\n"
        "vector<3xf32> o (3) of thread (0,0,0) in block (0,0,0):\n[3.000000, 11.000000, 19.000000]\n"
        "tensor<ptr<f32, gmem> o (3):(4)>:\n(0): 0.500000\n(1): 4.500000\n(2): 8.500000\n"
        "tensor<(0,0) o (2,2):(1@0,1@1)>:\n[[(0,0), (0,1)],\n [(1,0), (1,1)]]\n"
    )


def test_long_rows_are_printed_in_chunks(capsys: pytest.CaptureFixture[str]) -> None:
    def body(x: Any, n: Any) -> None:
        cute.print_tensor(cute.arange(70))

    _, row = printed(body, capsys).split(":\n")
    assert row == f"[{', '.join(map(str, range(70)))}]\n"


def test_text_of_static_values() -> None:
    assert cute.pretty_str((4, (None, 8))) == "(4,(_,8))" and cute.pretty_str(cute.make_layout((4, 8))) == "(4,8):(1,4)"


def test_assertions() -> None:
    def body(x: Any, n: Any) -> None:
        cute.assert_(True, "static")
        cute.assert_(n < 7, "n is small")

    module = trace_kernel(body, {"x": X, "n": "i32"}, wrap, threads=1)
    x = np.zeros((3, 4), np.float32)
    run_kernel_on_cpu(module, [x, 6], threads=1)
    with pytest.raises(Exception, match="n is small"):
        run_kernel_on_cpu(module, [x, 7], threads=1)
    with pytest.raises(AssertionError, match="never"):
        trace_kernel(lambda x, n: cute.assert_(False, "never"), {"x": X, "n": "i32"}, wrap)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (lambda x, n: cute.printf("{} {}", n), "F239: printf: '{} {}' needs more arguments than the 1 given"),
        (lambda x, n: cute.printf("{}", n, n), "F239: printf: '{}' needs 1 arguments, got 2"),
        (lambda x, n: cute.printf("%d", n, n), "F239: printf: '%d' needs 1 arguments, got 2"),
        (lambda x, n: cute.printf("%f", n), "F239: printf: '%f' needs a float, got 'n' (Int32)\nhint: cute.Float32(x)"),
        (lambda x, n: cute.printf("%d", x[0]), "F239: printf: '%d' needs an integer, got this Float32\nhint: "
         "cute.Int32(x)"),
        (lambda x, n: cute.printf("{n}", n),
         "F239: printf: named fields such as '{n}' are not supported\nhint: use an f-string"),
        (lambda x, n: cute.printf("{:>8}", n),
         "F239: printf: device printf does not support the format '>8'\nhint: use formats such as {:8.3f}, {:04d}"),
        (lambda x, n: cute.printf("{:b}", n),
         "F239: printf: device printf cannot print binary numbers\nhint: use {:x} for hexadecimal"),
        (lambda x, n: cute.printf("{", n), "F239: printf: invalid format '{': Single '{' encountered in format string"),
        (lambda x, n: cute.printf("{}", cute.arange(33).to(Float32) * x[0]),
         "F172: a printf can print at most 32 numbers, this one has 33\n"
         "hint: use cute.print_tensor for tensors and vectors"),
        (lambda x, n: cute.print_tensor(n),
         "F239: print_tensor needs a tensor or a vector, got Int32(?)\nhint: use cute.printf(x)"),
        (lambda x, n: cute.print_tensor(cute.make_tensor(x.iterator, (n, 2))),
         "F240: print_tensor needs a static shape, but this tensor has shape (?,2)\nhint: print a tile or a "
         "slice of it"),
        (lambda x, n: cute.print_tensor(cute.make_identity_tensor((64, 64))),
         "F171: print_tensor prints at most 1024 elements, but (64,64) has "
         "4096"),
        (lambda x, n: cute.assert_(n, "x"),
         "F151: assert_: the condition must be a Boolean, got Int32(?)\nhint: compare it: x != 0"),
    ],
)  # fmt: skip
def test_errors(body: Any, text: str) -> None:
    with pytest.raises(CuteError) as caught:
        trace_kernel(body, {"x": X, "n": "i32"}, wrap)
    e = caught.value
    assert f"{e.code}: {e.message}" + (f"\nhint: {e.hint}" if e.hint else "") == text
