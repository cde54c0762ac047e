"""Static parts of arrays (raw arrays, from_dlpack and its marks, fakes, symbols), and their checks at launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.lang.calls.runtime_tensor import raw_type
from cute_dialect.runtime.arrays import view_of
from cute_dialect.runtime.launch_plan import (
    AlignmentError,
    DivisibilityError,
    DtypeError,
    LaunchError,
    ShapeError,
)

torch = pytest.importorskip("torch")


M, K = "m", ("k", 16)


def type_of(x: Any) -> str:
    return raw_type(view_of(x)).removeprefix("!cute.memref<").removesuffix(">")


def aligned(*shape: int, dtype: Any = np.float32) -> Any:
    n = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(n + 64, np.uint8)
    at = -raw.ctypes.data % 64
    return raw[at : at + n].view(dtype).reshape(shape)


def test_raw_arrays() -> None:
    x = aligned(8, 12)
    assert type_of(x) == 'f32, gmem, align<16>, "(?,?):(?{div=4},1)"'
    assert type_of(x.T) == 'f32, gmem, align<16>, "(?,?):(1,?{div=4})"'
    assert type_of(x[:, 1:]) == 'f32, gmem, "(?,?):(?,1)"'
    assert type_of(x[:, ::2]) == 'f32, gmem, "(?,?):(?,?)"'
    assert type_of(aligned(3, 5)) == 'f32, gmem, "(?,?):(?,1)"'
    assert type_of(np.broadcast_to(aligned(1, 12), (4, 12))) == 'f32, gmem, align<16>, "(?,?):(0,1)"'
    assert type_of(aligned(5, 1)) == 'f32, gmem, "(?,?):(?,1)"'
    assert type_of(aligned(4, 8, dtype=np.uint8)) == 'i8, gmem, "(?,?):(?,1)"'
    assert type_of(torch.zeros(4, 16, dtype=torch.bfloat16)) == 'bf16, gmem, align<16>, "(?,?):(?{div=8},1)"'
    assert type_of(np.zeros((), np.int64)).startswith("i64, gmem, ")
    big = view_of(x)._replace(shape=(1 << 31, 2), strides=(4, 1))
    assert '"(?{i64},?):(' in raw_type(big)


def test_marks() -> None:
    x = aligned(4, 8, 16)
    assert cute.from_dlpack(x).type == '!cute.memref<f32, gmem, align<16>, "(4,8,16):(128,16,1)">'
    t = cute.from_dlpack(x, assumed_align=32).mark_layout_dynamic()
    assert t.type == '!cute.memref<f32, gmem, align<32>, "(?,?,?):(?,?,1)">'
    t = cute.from_dlpack(x).mark_compact_shape_dynamic(2, divisibility=8)
    assert t.type == '!cute.memref<f32, gmem, align<16>, "(4,8,?{div=8}):(?{div=64},?{div=8},1)">'
    t = cute.from_dlpack(x).mark_compact_shape_dynamic(0).mark_compact_shape_dynamic(1, stride_order=(2, 1, 0))
    assert t.type == '!cute.memref<f32, gmem, align<16>, "(?,?,16):(?{div=16},16,1)">'
    t = cute.from_dlpack(x).mark_compact_shape_dynamic(0, dim_order=(0, 1, 2))
    assert t.type == '!cute.memref<f32, gmem, align<16>, "(?,8,16):(128,16,1)">'
    t = cute.from_dlpack(x).mark_dynamic([0, 2], divisibility=2).mark_static(2)
    assert t.type == '!cute.memref<f32, gmem, align<16>, "(?{div=2},8,16):(?,16,1)">'
    column = cute.from_dlpack(aligned(8, 4).T)
    assert column.mark_compact_shape_dynamic(1).type == '!cute.memref<f32, gmem, align<16>, "(4,?):(1,4)">'


def test_invalid_marks_are_rejected() -> None:
    x = aligned(4, 8)
    for call, text in (
        (lambda t: t.mark_compact_shape_dynamic(2), "F125: dimension 2 is out of range for shape (4, 8)"),
        (
            lambda t: t.mark_compact_shape_dynamic(0, divisibility=3),
            "F127: dimension 0 has 4 elements, which is not a multiple of divisibility=3",
        ),
        (
            lambda t: t.mark_compact_shape_dynamic(0, stride_order=(0, 0)),
            "F125: stride_order=(0, 0) must name each of the 2 dimensions once",
        ),
        (
            lambda t: t.mark_layout_dynamic(0),
            "F120: mark_layout_dynamic: leading_dim=0 must have stride 1, but the strides are (8, 1)",
        ),
    ):
        with pytest.raises(cute.KernelTypeError) as caught:
            call(cute.from_dlpack(x))  # type: ignore[no-untyped-call]
        assert str(caught.value) == f"error {text}"
    with pytest.raises(cute.KernelTypeError) as caught:
        cute.from_dlpack(x[:, :4]).mark_compact_shape_dynamic(0, stride_order=(1, 0))
    assert str(caught.value) == (
        "error F126: the tensor of shape (4, 4) and strides (8, 1) is not compact in this order\n"
        "hint: use mark_layout_dynamic() or mark_dynamic(modes)"
    )
    strided = np.lib.stride_tricks.as_strided(x, (4, 4), (4, 4))
    with pytest.raises(cute.KernelTypeError) as caught:
        cute.from_dlpack(strided).mark_layout_dynamic()
    assert str(caught.value) == (
        "error F120: more than one dimension of shape (4, 4) and strides (1, 1) is contiguous\n"
        "hint: use mark_layout_dynamic(leading_dim=…)"
    )


@cute.kernel
def add_one(x: cute.Tensor) -> None:
    i = cute.arch.thread_idx()[0]
    x[i] = x[i] + 1


@cute.jit
def run(x: cute.Tensor) -> None:
    add_one(x).launch(grid=1, block=4)


def test_static_tensors_are_checked_at_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_DEVICE", "cpu")
    x, other = aligned(4), aligned(8)
    k = cute.compile(run, cute.from_dlpack(x))
    k(x)
    k(cute.from_dlpack(x))
    assert (x == 2).all()
    with pytest.raises(ShapeError) as caught:
        k(other)
    lines = str(caught.value).splitlines()
    assert lines[0] == (
        "argument x, mode 0: expected extent 4, got 8 (tensor<ptr<f32, gmem, align<16>> o (4):(1)>); "
        "it was compiled for shape (4), but this array has shape (8,)"
    )
    assert lines[1] == "hint: compile for any shape with from_dlpack(x).mark_layout_dynamic()"
    assert lines[2].startswith(f"called from {__file__}:")
    assert (other == 0).all()
    run(other)  # Calling the function itself compiles another specialization.
    assert (other[:4] == 1).all() and len(run.kinds()) == 2


def test_a_launch_checks_type_alignment_and_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_DEVICE", "cpu")
    k = cute.compile(run, cute.from_dlpack(aligned(8)).mark_compact_shape_dynamic(0, divisibility=4))
    k(aligned(12))
    with pytest.raises(
        DivisibilityError, match="argument x, mode 0: expected an extent that is a multiple of 4, got 6"
    ):
        k(aligned(6))
    with pytest.raises(DtypeError, match="argument x expects elements of f32, got f64"):
        k(aligned(8, dtype=np.float64))
    with pytest.raises(AlignmentError, match="argument x"):
        k(aligned(9)[1:])
    with pytest.raises(DtypeError, match=r"argument x: expected an array .*got int"):
        k(3)
    with pytest.raises(LaunchError, match=r"run\(\) needs 1 arguments \(x\), got 2\ncalled from"):
        k(aligned(8), 1)
    k(aligned(8))


def test_fakes_and_symbols(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_DEVICE", "cpu")

    @cute.kernel
    def copy(x: cute.Tensor, y: cute.Tensor) -> None:
        i = cute.arch.thread_idx()[0]
        y[i, 0] = x[i, 0]

    @cute.jit
    def both(x: Any, y: Any, stream: Any) -> None:
        copy(x, y).launch(grid=1, block=4, stream=stream)

    n = cute.sym_int(divisibility=2)
    x = cute.runtime.make_fake_compact_tensor(cute.Float32, (4, n), stride_order=(1, 0))
    y = cute.runtime.make_fake_tensor(cute.Float32, (4, n), (cute.sym_int(), 1))
    assert x.type == '!cute.memref<f32, gmem, "(4,?{div=2}):(?{div=2},1)">'
    k = cute.compile(both, x, y, cute.runtime.make_fake_stream())
    a, b = aligned(4, 6), aligned(4, 6)
    a[:] = 5
    k(a, b, None)
    assert (b[:, 0] == 5).all()
    with pytest.raises(ShapeError, match=r"is 6 in argument x, mode 1, and 8 in argument y, mode 1"):
        k(a, aligned(4, 8), None)
    with pytest.raises(DtypeError, match="argument x is a tensor without memory"):
        k(x, y, None)


def test_annotated_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_DEVICE", "cpu")
    seen: list[Any] = []

    @cute.jit
    def f(x: cute.Tensor[cute.Float32, "(?,128):(?{div=4},1)", "align<16>"]) -> None:  # noqa: F722
        seen.append(int(x.shape[1]))
        add_one(x).launch(grid=1, block=4)

    f(aligned(3, 128))
    f(aligned(5, 128))
    assert len(f.kinds()) == 1 and seen == [128]
    with pytest.raises(ShapeError, match="argument x, mode 1: expected extent 128, got 64"):
        f(aligned(5, 64))

    @cute.jit
    def wrong(x: cute.Tensor[f32, "(?):(1)"]) -> None:  # noqa: F722, F821
        add_one(x).launch(grid=1, block=4)

    with pytest.raises(cute.KernelTypeError) as caught:
        wrong(aligned(4))
    assert caught.value.code == "F124"
    assert caught.value.message == (
        "the annotation cute.Tensor[f32, '(?):(1)'] of 'x' cannot be evaluated: name 'f32' is not defined"
    )

    @cute.jit
    def g(x: cute.Tensor[cute.Float32, M, K], y: cute.Tensor[None, M]) -> None:
        add_one(y).launch(grid=1, block=4)

    y = aligned(4)
    g(aligned(4, 16), y)
    assert (y == 1).all()
    with pytest.raises(ShapeError, match="'m' is 5 in argument x, mode 0, and 4 in argument y, mode 0"):
        g(aligned(5, 16), y)
    with pytest.raises(DivisibilityError, match="multiple of 16, got 8"):
        g(aligned(4, 8), y)
    with pytest.raises(cute.KernelTypeError, match="F129: argument 'x' needs elements of Float32, got Float64"):
        g(aligned(4, 16, dtype=np.float64), y)
    with pytest.raises(cute.KernelTypeError, match="F129: argument 'x' must have rank 2, got rank 1"):
        g(y, y)


def test_types_that_a_library_does_not_have() -> None:
    t = cute.from_dlpack(np.zeros(16, np.uint8), dtype=cute.Float8E4M3FN, assumed_align=16)
    assert t.type == '!cute.memref<f8E4M3FN, gmem, align<16>, "(16):(1)">'
    with pytest.raises(
        cute.KernelTypeError, match="F123: elements of ui8 cannot be viewed as Float16, which has a different size"
    ):
        cute.from_dlpack(np.zeros(16, np.uint8), dtype=cute.Float16)
