"""Tensors of torch for kernels: ``cute.torch``.  torch is imported when a function is called (names: CuTe DSL's).

>>> dtype(cute.Float16), is_fp8_dtype(cute.Float8E5M2)
(torch.float16, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import cute_dialect.lang as cute
from cute_dialect.front.runtime_tensor import RuntimeTensor, from_dlpack
from cute_dialect.lang.torch_ops import custom_op

__all__ = [
    "GaussianInitConfig", "RandomInitConfig", "ScalarInitConfig", "TensorInitType", "convert_cute_tensor",
    "create_and_permute_torch_tensor", "create_cute_tensor_for_fp8", "current_stream", "custom_op",
    "cute_tensor_like",
    "default_stream", "dtype", "from_dlpack", "get_leading_dim", "is_fp8_dtype", "matrix",
]  # fmt: skip


class TensorInitType(Enum):
    """What a new tensor is filled with."""

    SKIP = "skip"
    SCALAR = "scalar"
    RANDOM = "random"
    GAUSSIAN = "gaussian"


@dataclass(frozen=True)
class RandomInitConfig:
    """Integers from ``min_val`` (included) to ``max_val`` (not included), which all element types hold exactly."""

    min_val: int = -2
    max_val: int = 2


@dataclass(frozen=True)
class ScalarInitConfig:
    """One number."""

    value: float = 0.0


@dataclass(frozen=True)
class GaussianInitConfig:
    """Numbers of a normal distribution, times ``scale``."""

    mean: float = 0.0
    std: float = 1.0
    scale: float = 1.0


def dtype(kind: Any) -> Any:
    """Return torch's type of elements.  Raises TypeError where torch has none."""
    import torch

    name = "float32" if kind is cute.TFloat32 else getattr(kind, "torch", "")
    found = getattr(torch, name, None) if name else None
    if found is None:
        raise TypeError(f"torch has no type for {kind!r}")
    return found


def is_fp8_dtype(kind: Any) -> bool:
    """Tell whether a type is an 8-bit float."""
    return kind in (cute.Float8E4M3FN, cute.Float8E5M2, cute.Float8E8M0FNU)


def get_leading_dim(tensor: Any) -> int:
    """Return the dimension of stride 1; the last one with several elements.  Raises ValueError for none."""
    ones = [i for i, stride in enumerate(tensor.stride()) if stride == 1]
    several = [i for i in ones if tensor.shape[i] > 1]
    if not ones:
        raise ValueError(f"expected a tensor with a dimension of stride 1, got strides {tuple(tensor.stride())}")
    return (several or ones)[-1]


def create_and_permute_torch_tensor(
    shape: Sequence[int], dtype: Any, permute_order: Sequence[int] | None = None,
    init_type: TensorInitType = TensorInitType.RANDOM, init_config: Any = None, device: Any = None,
) -> Any:  # fmt: skip
    """Return a tensor of this shape in memory, its dimensions permuted after that; on the CPU unless told otherwise.

    Raises TypeError for an ``init_config`` that is not that of ``init_type``.
    """
    import torch

    wide = torch.empty(*shape, dtype=torch.float32, device=device)
    _filled(wide, init_type, init_config, unsigned=dtype == torch.uint8)
    made = wide.to(dtype)
    return made if permute_order is None else made.permute(*permute_order)


def _filled(wide: Any, init_type: TensorInitType, config: Any, *, unsigned: bool) -> None:
    kind = {
        TensorInitType.SCALAR: ScalarInitConfig, TensorInitType.RANDOM: RandomInitConfig,
        TensorInitType.GAUSSIAN: GaussianInitConfig,
    }.get(init_type)  # fmt: skip
    if config is not None and kind is not None and not isinstance(config, kind):
        raise TypeError(f"init_config: expected {kind.__name__} for {init_type}, got {config!r}")
    match init_type:
        case TensorInitType.RANDOM:
            found = config or (RandomInitConfig(0, 4) if unsigned else RandomInitConfig())
            wide.random_(found.min_val, found.max_val)
        case TensorInitType.SCALAR:
            wide.fill_((config or ScalarInitConfig()).value)
        case TensorInitType.GAUSSIAN:
            found = config or GaussianInitConfig()
            wide.normal_(found.mean, found.std).mul_(found.scale)
        case TensorInitType.SKIP:
            return


def matrix(
    l: int, mode0: int, mode1: int, is_mode0_major: bool, cutlass_dtype: Any,  # noqa: E741  (CuTe DSL's name)
    init_type: TensorInitType = TensorInitType.RANDOM, init_config: Any = None, device: Any = None,
) -> Any:  # fmt: skip
    """Return ``l`` matrices as a float32 tensor (mode0, mode1, l) whose numbers the element type holds.

    ``is_mode0_major``: dimension 0 is the contiguous one, else dimension 1.
    """
    import torch

    shape = (l, mode1, mode0) if is_mode0_major else (l, mode0, mode1)
    order = (2, 1, 0) if is_mode0_major else (1, 2, 0)
    if init_config is None and init_type is TensorInitType.RANDOM and cutlass_dtype in (cute.Uint8, cute.Uint4):
        init_config = RandomInitConfig(0, 4)
    made = create_and_permute_torch_tensor(shape, torch.float32, order, init_type, init_config, device)
    return made.to(_stored(cutlass_dtype)).to(torch.float32) if cutlass_dtype.is_float else made


def _stored(kind: Any) -> Any:
    """Return the type of torch whose tensors hold elements of a type of ours."""
    import torch

    try:
        return dtype(kind)
    except TypeError:
        return torch.uint8


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def cute_tensor_like(
    data_ref: Any, cutlass_dtype: Any, is_dynamic_layout: bool, assumed_align: int | None = None
) -> tuple[RuntimeTensor, Any]:
    """Return a tensor with the numbers of ``data_ref`` in another element type, for kernels and as torch's.

    It is on the GPU where there is one; its layout is that of ``data_ref``.
    """
    stored = _stored(cutlass_dtype)
    made = data_ref.to(device=_device(), dtype=stored)
    if made is data_ref:
        made = made.clone()
    tensor = from_dlpack(made, assumed_align=assumed_align, dtype=cutlass_dtype)
    if is_dynamic_layout:
        tensor.mark_layout_dynamic(get_leading_dim(made))
    return tensor, made


def convert_cute_tensor(
    f32_torch_tensor: Any, cute_tensor: RuntimeTensor, dtype: Any, is_dynamic_layout: bool = True
) -> RuntimeTensor:
    """Write numbers into the memory of a tensor, rounded to its element type, and return the tensor.

    Beyond the range of an 8-bit float they are its greatest number, as a GPU converts (PTX ISA, "cvt", .satfinite).
    ``is_dynamic_layout``: the layout of ``cute_tensor`` is marked already; nothing else depends on it.
    """
    kept: Any = cute_tensor.array
    if not hasattr(kept, "copy_"):
        raise TypeError(f"expected a tensor over memory of torch, got {cute_tensor!r}")
    stored = _stored(dtype)
    kept = kept if kept.dtype == stored else kept.view(stored)
    if is_fp8_dtype(dtype):
        import torch

        most = torch.finfo(stored).max
        f32_torch_tensor = f32_torch_tensor.clamp(-most, most)
    kept.copy_(f32_torch_tensor.to(stored))
    return cute_tensor


def create_cute_tensor_for_fp8(
    storage_tensor: Any, dtype: Any, leading_dim: int, source_f32_tensor: Any = None
) -> RuntimeTensor:
    """Return a tensor for kernels over memory of torch, its extents dynamic; an 8-bit float may lie in bytes.

    ``source_f32_tensor``: for 8-bit floats, the numbers that are written into it.
    """
    tensor = from_dlpack(storage_tensor, assumed_align=16, dtype=dtype)
    tensor.mark_layout_dynamic(leading_dim=leading_dim)
    if is_fp8_dtype(dtype) and source_f32_tensor is not None:
        convert_cute_tensor(source_f32_tensor, tensor, dtype)
    return tensor


def current_stream() -> Any:
    """Return torch's current stream for launches; without a GPU one that means nothing."""
    import torch

    handle = torch.cuda.current_stream().cuda_stream if torch.cuda.is_available() else 0
    return cute.Stream(handle)


def default_stream() -> Any:
    """Return torch's default stream for launches; without a GPU one that means nothing."""
    import torch

    return cute.Stream(torch.cuda.default_stream().cuda_stream if torch.cuda.is_available() else 0)
