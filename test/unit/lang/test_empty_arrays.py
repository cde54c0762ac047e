"""Empty arrays and numpy scalars as arguments."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute


@cute.kernel
def sum_kernel(x: cute.Tensor, o: cute.Tensor):
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s += x[i, j]
    o[0] = s


@cute.jit
def total(x: cute.Tensor, o: cute.Tensor):
    sum_kernel(x, o).launch(grid=1, block=1)


EMPTY: dict[str, Callable[[], Any]] = {
    "rows": lambda: np.ones((8, 16), np.float32)[:0],
    "columns": lambda: np.ones((8, 16), np.float32)[:, :0],
    "with gaps": lambda: np.ones((8, 16), np.float32)[:0, ::2],
    "columns with gaps": lambda: np.ones((8, 16), np.float32)[::2, 3:3],
    "turned": lambda: np.ones((8, 16), np.float32)[2:2].T,
    "both": lambda: np.zeros((0, 0), np.float32),
}
WRAPPED: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda x: x,
    "from_dlpack": lambda x: cute.from_dlpack(x),
    "dynamic": lambda x: cute.from_dlpack(x).mark_layout_dynamic(),
    "dynamic but for the last stride": lambda x: cute.from_dlpack(x).mark_layout_dynamic(leading_dim=1),
    "compact": lambda x: cute.from_dlpack(x).mark_compact_shape_dynamic(0),
    "compact in an order": lambda x: cute.from_dlpack(x).mark_compact_shape_dynamic(1, stride_order=(0, 1)),
}


@pytest.mark.parametrize("wrapped", WRAPPED)
@pytest.mark.parametrize("empty", EMPTY)
def test_arrays_without_elements(empty: str, wrapped: str):
    x, o = EMPTY[empty](), np.full(1, 5, np.float32)
    total(WRAPPED[wrapped](x), o, device="cpu")
    assert o[0] == 0


def test_a_compiled_function_takes_arrays_with_and_without_elements():
    fixed = cute.compile(total, np.ones((2, 4), np.float32), np.zeros(1, np.float32))
    for shape in ((0, 4), (4, 0), (3, 4)):
        o = np.full(1, 5, np.float32)
        fixed(np.ones(shape, np.float32), o, device="cpu")
        assert o[0] == shape[0] * shape[1]


def test_torch_tensors_without_elements():
    torch = pytest.importorskip("torch")
    for x in (torch.ones(8, 16)[:0], torch.ones(8, 16)[:, :0], torch.ones(8, 16)[:0, ::2]):
        for wrap in (lambda x: x, cute.from_dlpack):
            o = np.full(1, 5, np.float32)
            total(wrap(x), o, device="cpu")
            assert o[0] == 0


def test_empty_fake_tensors():
    fake = cute.runtime.make_fake_compact_tensor(cute.Float32, (0, 4), stride_order=(1, 0))
    fixed = cute.compile(total, fake, np.zeros(1, np.float32))
    o = np.full(1, 5, np.float32)
    fixed(np.zeros((0, 4), np.float32), o, device="cpu")
    assert o[0] == 0


SCALARS = [
    np.int8(-3), np.int16(-3), np.int32(-3), np.int64(-3), np.uint8(3), np.uint16(3), np.uint32(3), np.uint64(3),
    np.float16(1.5), np.float32(1.5), np.float64(1.5), np.bool_(True),
]  # fmt: skip


@pytest.mark.parametrize("scalar", SCALARS, ids=lambda s: str(s.dtype))
def test_scalars_of_numpy(scalar: Any):
    @cute.kernel
    def kernel(o: cute.Tensor, given: Any):
        o[0] = cute.Float32(given)
        o[1] = cute.Float32(scalar)
        o[2] = o[2] + scalar

    @cute.jit
    def run(o: cute.Tensor, given: Any):
        kernel(o, given).launch(grid=1, block=1)

    o = np.array([0, 0, 10], np.float32)
    run(o, scalar, device="cpu")
    assert o.tolist() == [float(scalar), float(scalar), 10 + float(scalar)]


@pytest.mark.parametrize("scalar", SCALARS, ids=lambda s: str(s.dtype))
def test_scalars_of_numpy_as_constants(scalar: Any):
    @cute.kernel
    def kernel(o: cute.Tensor, given: cute.Constexpr):
        o[0] = o[0] + given

    @cute.jit
    def run(o: cute.Tensor, given: cute.Constexpr):
        kernel(o, given).launch(grid=1, block=1)

    o = np.array([10], np.float32)
    run(o, scalar, device="cpu")
    assert o[0] == 10 + float(scalar)


def test_integers_of_64_bits():
    @cute.kernel
    def kernel(o: cute.Tensor, given: Any):
        o[0] = cute.Uint64(given)
        o[1] = cute.Uint64(1 if given > 0 else 0)

    @cute.jit
    def run(o: cute.Tensor, given: Any):
        kernel(o, given).launch(grid=1, block=1)

    for scalar in (np.uint64(5), np.uint64(1 << 40), np.uint64((1 << 64) - 1), (1 << 63) + 1, np.uint64(1 << 41), 7):
        o = np.zeros(2, np.uint64)
        run(o, scalar, device="cpu")
        assert o.tolist() == [int(scalar), 1]
