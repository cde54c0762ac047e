"""``cute.torch``: torch tensors as kernel arguments."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cute_dialect.lang as cute

torch = pytest.importorskip("torch")


def test_types() -> None:
    assert cute.torch.dtype(cute.BFloat16) is torch.bfloat16
    assert cute.torch.dtype(cute.TFloat32) is torch.float32
    assert cute.torch.dtype(cute.Boolean) is torch.bool
    assert cute.torch.is_fp8_dtype(cute.Float8E5M2) and not cute.torch.is_fp8_dtype(cute.Int8)
    with pytest.raises(TypeError, match="torch has no dtype for Int4"):
        cute.torch.dtype(cute.Int4)


@pytest.mark.parametrize("major", [True, False])
def test_matrices(major: bool) -> None:
    torch.manual_seed(0)
    x = cute.torch.matrix(3, 8, 16, major, cute.Float8E4M3FN)
    assert tuple(x.shape) == (8, 16, 3) and x.dtype == torch.float32
    assert cute.torch.get_leading_dim(x) == (0 if major else 1)
    assert set(x.unique().tolist()) <= {-2.0, -1.0, 0.0, 1.0}
    tensor, own = cute.torch.cute_tensor_like(x, cute.Float8E4M3FN, is_dynamic_layout=True, assumed_align=16)
    assert own.dtype == torch.float8_e4m3fn and torch.equal(own.float(), x)
    assert tensor.element_type is cute.Float8E4M3FN and tensor.leading_dim == (0 if major else 1)
    assert "?" in tensor.type and "align<16>" in tensor.type
    assert cute.torch.cute_tensor_like(x, cute.Float32, is_dynamic_layout=False)[1].data_ptr() != x.data_ptr()


def test_initial_values_of_tensors() -> None:
    names = cute.torch
    kinds = names.TensorInitType
    shape = (64, 64)
    made = names.create_and_permute_torch_tensor(shape, torch.uint8, (1, 0))
    assert made.stride() == (1, 64) and set(made.unique().tolist()) <= {0, 1, 2, 3}
    made = names.create_and_permute_torch_tensor(
        shape, torch.float16, init_type=kinds.SCALAR, init_config=names.ScalarInitConfig(3.0)
    )
    assert bool((made == 3).all())
    config = names.GaussianInitConfig(mean=100.0, std=1.0, scale=2.0)
    made = names.create_and_permute_torch_tensor(
        shape, torch.float32, init_type=kinds.GAUSSIAN, init_config=config
    )  # fmt: skip
    assert abs(float(made.mean()) - 200) < 1
    assert names.create_and_permute_torch_tensor(shape, torch.int8, init_type=kinds.SKIP).shape == shape
    with pytest.raises(TypeError, match=r"init_config: .* needs a RandomInitConfig"):
        names.create_and_permute_torch_tensor(shape, torch.int8, init_config=config)
    with pytest.raises(ValueError, match="stride 1"):
        names.get_leading_dim(torch.zeros(8, 8)[:, ::2][::2])


def test_numbers_are_written_into_bytes() -> None:
    source = torch.tensor([[0.5, 1.0], [-2.0, 448.0]])
    stored = torch.zeros(2, 2, dtype=torch.uint8)
    tensor = cute.torch.create_cute_tensor_for_fp8(stored, cute.Float8E4M3FN, 1, source_f32_tensor=source)
    assert tensor.element_type is cute.Float8E4M3FN
    assert torch.equal(stored.view(torch.float8_e4m3fn).float(), source)
    cute.torch.convert_cute_tensor(source * 1000, tensor, cute.Float8E4M3FN)
    assert stored.view(torch.float8_e4m3fn).float().tolist() == [[448, 448], [-448, 448]]
    plain = cute.from_dlpack(torch.zeros(2, 2, dtype=torch.float16))
    assert cute.torch.convert_cute_tensor(source, plain, cute.Float16) is plain
    assert torch.equal(plain.array.float(), source)
    import numpy as np

    with pytest.raises(TypeError, match="a torch tensor"):
        cute.torch.convert_cute_tensor(source, cute.from_dlpack(np.zeros((2, 2), np.float32)), cute.Float32)


def test_numbers_of_4_bits_are_packed() -> None:
    """Two consecutive numbers of the contiguous dimension share a byte. They round and saturate as in ml_dtypes."""
    x = torch.randn(2, 6, 4).mul(4).permute(1, 0, 2)
    x[0, 0] = torch.tensor([0.25, -0.75, 2.5, 100.0])
    tensor, stored = cute.torch.cute_tensor_like(x, cute.Float4E2M1FN, is_dynamic_layout=True)
    assert tensor.shape == (6, 2, 4) and stored.shape == (6, 2, 2)
    codes = np.stack([stored.numpy() & 15, stored.numpy() >> 4], -1).reshape(6, 2, 4)
    wanted = x.numpy().clip(-6, 6).astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    np.testing.assert_array_equal(codes, wanted)
    cute.torch.convert_cute_tensor(-x, tensor, cute.Float4E2M1FN)
    np.testing.assert_array_equal(stored.numpy() & 0x77, codes[..., ::2] & 7 | (codes[..., 1::2] & 7) << 4)
    with pytest.raises(ValueError, match=r"must have an even extent, got .3, 5."):
        cute.torch.cute_tensor_like(torch.zeros(3, 5), cute.Float4E2M1FN, is_dynamic_layout=True)


def test_streams_without_a_gpu() -> None:
    if not torch.cuda.is_available():
        assert cute.torch.current_stream().handle == cute.torch.default_stream().handle == 0


def test_element_types_of_tensors_can_be_set() -> None:
    x = cute.from_dlpack(torch.zeros(4, 8, dtype=torch.uint8))
    x.element_type = cute.Float8E5M2
    assert x.dtype is cute.Float8E5M2 and "f8E5M2" in x.type and x.memspace == cute.AddressSpace.gmem
    with pytest.raises(
        TypeError, match="F123: elements of f8E5M2 cannot be viewed as Float16, which has a different size"
    ):
        x.element_type = cute.Float16
    fake = cute.runtime.make_fake_compact_tensor(cute.Uint8, (4, 8))
    fake.element_type = cute.Float8E5M2
    with pytest.raises(TypeError, match="F123: elements of Float8E5M2 cannot be viewed as Int32"):
        fake.element_type = cute.Int32


def test_stride_order_accepts_both_conventions() -> None:
    """``stride_order`` ranks the modes (0 is the fastest) or, as in CuTe DSL, lists them from slowest to fastest."""
    x = torch.zeros(2, 3, 8)
    first = cute.from_dlpack(x).mark_compact_shape_dynamic(2, stride_order=(2, 1, 0))
    second = cute.from_dlpack(x).mark_compact_shape_dynamic(2, stride_order=(0, 1, 2))
    assert first.type == second.type
    with pytest.raises(TypeError, match="F126"):
        cute.from_dlpack(x).mark_compact_shape_dynamic(2, stride_order=(1, 0, 2))
    with pytest.raises(TypeError, match="F125"):
        cute.from_dlpack(x).mark_compact_shape_dynamic(2, stride_order=(1, 1, 2))


@cute.kernel
def widen_kernel(x: cute.Tensor, out: cute.Tensor):
    i = cute.arch.thread_idx().x
    out[i] = x[i].to(cute.Float32)


@cute.jit
def widen(x: cute.Tensor, out: cute.Tensor):
    widen_kernel(x, out).launch(grid=1, block=4)


def test_fp8_stored_as_bytes_is_passed() -> None:
    source = torch.tensor([0.5, 1.0, -2.0, 448.0])
    stored, out = torch.zeros(4, dtype=torch.uint8), torch.zeros(4)
    x = cute.torch.create_cute_tensor_for_fp8(stored, cute.Float8E4M3FN, 0, source_f32_tensor=source)
    widen(x, out, device="cpu")
    assert torch.equal(out, source)
    y = cute.from_dlpack(stored)
    y.element_type = cute.Float8E4M3FN
    out.zero_()
    cute.compile(widen, y, out, chip="sm_90a")(y, out, device="cpu")
    assert torch.equal(out, source)


def test_tensors_without_memory() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = cute.from_dlpack(torch.zeros(4, dtype=torch.uint8))
    meta = cute.from_dlpack(torch.empty(4, 8, dtype=torch.float16, device="meta").T, assumed_align=16)
    assert (fake.view, fake.shape, fake.element_type) == (None, (4,), cute.Uint8)
    assert (meta.view, meta.shape, meta.stride, meta.alignment) == (None, (8, 4), (1, 8), 16)
    out = torch.zeros(4)
    compiled = cute.compile[cute.EnableTVMFFI](widen, fake, out, chip="sm_90a")
    compiled(torch.tensor([1, 2, 3, 250], dtype=torch.uint8), out, device="cpu")
    assert out.tolist() == [1, 2, 3, 250]


@cute.kernel
def scale_kernel(x: cute.Tensor, out: cute.Tensor, factor: cute.Float32, shift: cute.Constexpr[int]):
    """One thread per element."""
    i = cute.arch.block_idx().x * 32 + cute.arch.thread_idx().x
    if i < x.shape[0]:
        out[i] = x[i] * factor + shift


@cute.jit
def scale(
    x: cute.Tensor, out: cute.Tensor, factor: cute.Float32, more: cute.Tensor | None = None, *,
    shift: cute.Constexpr[int] = 0,
):  # fmt: skip
    """Launch ``scale_kernel``."""
    scale_kernel(x if more is None else more, out, factor, shift).launch(
        grid=cute.ceil_div(x.shape[0], 32), block=32
    )  # fmt: skip


@pytest.mark.slow
def test_a_host_function_is_an_operator_of_torch() -> None:
    op = cute.torch.custom_op("cute_test::scale", mutates_args="out")(scale)
    schema = "(Tensor x, Tensor(b!) out, float factor, Tensor? more=None, *, int shift=0) -> ()"
    assert str(torch.ops.cute_test.scale.default._schema) == "cute_test::scale" + schema
    x, out = torch.arange(40.0), torch.zeros(40)
    torch.ops.cute_test.scale(x, out, 2.0)
    assert torch.equal(out, 2 * x)
    op(x, out, 0.5, x + 1, shift=3)
    assert torch.equal(out, (x + 1) / 2 + 3)
    torch.library.opcheck(torch.ops.cute_test.scale.default, (x, out, 3.0), {"shift": 1})

    def twice(x: Any) -> Any:
        out = torch.empty_like(x)
        torch.ops.cute_test.scale(x, out, 2.0)
        return out + 1

    compiled = torch.compile(twice, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(x), 2 * x + 1)
    with torch._subclasses.FakeTensorMode():  # Only shapes are computed; nothing runs.
        assert twice(torch.empty(7)).shape == (7,)


def test_invalid_custom_ops_are_rejected() -> None:
    register = cute.torch.custom_op("cute_test::none", mutates_args=("x",))
    with pytest.raises(TypeError, match="must decorate a host function under @cute"):
        register(lambda x: x)
    with pytest.raises(TypeError, match="unknown parameter 'x'; parameters: y"):
        register(cute.jit(lambda y: None))
    with pytest.raises(TypeError, match="a torch operator cannot have the variadic parameter 'xs'"):
        register(cute.jit(lambda x, *xs: None))

    @cute.jit
    def takes_a_stream(x: cute.Tensor, stream: cute.Stream) -> None: ...

    with pytest.raises(TypeError, match="parameter 'stream' has no torch type: a stream"):
        register(takes_a_stream)

    @cute.jit
    def writes_a_number(x: cute.Int32) -> None: ...

    with pytest.raises(TypeError, match="'x' must be a tensor, got int"):
        register(writes_a_number)
