"""Torch tensors for kernels, and host functions as torch operators: ``cute.torch`` (names: CuTe DSL's).

torch is imported on the first call.  :func:`custom_op` registers an operator for ``torch.compile`` and
``torch.export``.

>>> dtype(cute.Float16), is_fp8_dtype(cute.Float8E5M2)
(torch.float16, True)
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeAlias

import cute_dialect.lang as cute
from cute_dialect.errors import UsageError
from cute_dialect.lang.calls.decorators import JitFunction
from cute_dialect.lang.calls.runtime_tensor import RuntimeTensor, from_dlpack
from cute_dialect.lang.values.annotations import Stream, TensorAnnotation, annotations_of
from cute_dialect.lang.values.dtypes import Boolean, NumericType
from cute_dialect.lang.values.tensors import Tensor
from cute_dialect.runtime.host_memory import remember

if TYPE_CHECKING:
    import torch

    from cute_dialect.lang.values.dtypes import Numeric

__all__ = [
    "GaussianInitConfig",
    "RandomInitConfig",
    "ScalarInitConfig",
    "TensorInitType",
    "convert_cute_tensor",
    "create_and_permute_torch_tensor",
    "create_cute_tensor_for_fp8",
    "current_stream",
    "custom_op",
    "cute_tensor_like",
    "default_stream",
    "dtype",
    "from_dlpack",
    "get_leading_dim",
    "is_fp8_dtype",
    "matrix",
]


# ------------------------------------------------------------------------------------------------------ torch operators


_PLAIN = {int: "int", float: "float", bool: "bool", str: "str"}


def custom_op(name: str, mutates_args: str | Iterable[str]) -> Callable[[JitFunction], torch.library.CustomOpDef]:
    """Return a decorator that registers a host function as the torch operator ``name``.

    A parameter without an annotation or default is a tensor. Numbers, ``Constexpr[int]`` and the like become ``int``,
    ``float``, ``bool`` and ``str`` in torch's schema. The operator returns nothing, so tracing it needs no memory.
    Tensors in host memory run on the interpreter. Raises UsageError for a function that cannot be an operator::

        @cute.torch.custom_op("mine::scale", mutates_args="out")
        @cute.jit
        def scale(x: cute.Tensor, out: cute.Tensor, factor: cute.Float32): ...

        torch.ops.mine.scale(x, out, 2.0)          # also in a function under torch.compile

    Args:
        name: the qualified name, ``"library::name"``.
        mutates_args: the parameters that the function writes to: one name or several.
    """
    written = (mutates_args,) if isinstance(mutates_args, str) else tuple(mutates_args)

    def register(f: JitFunction) -> torch.library.CustomOpDef:
        import torch

        if not isinstance(f, JitFunction):
            raise UsageError(f"custom_op must decorate a host function under @cute.jit, got {f!r}")
        schema = _schema(f, written)

        def run(*args: Any, **named: Any) -> None:
            tensors = (x for x in (*args, *named.values()) if isinstance(x, torch.Tensor))
            on_host = any(x.device.type == "cpu" for x in tensors)
            f(*args, **named, **({"device": "cpu"} if on_host else {}))

        made = torch.library.custom_op(name, run, mutates_args=written, schema=schema)
        made.register_fake(lambda *args, **named: None)
        return made

    return register


def _schema(f: JitFunction, written: tuple[str, ...]) -> str:
    """Return torch's schema of the parameters of a host function."""
    function = inspect.unwrap(f)
    annotations = annotations_of(function, {})
    parameters = inspect.signature(function).parameters
    unknown = [n for n in written if n not in parameters]
    if unknown:
        raise UsageError(f"mutates_args: unknown parameter '{unknown[0]}'; parameters: {', '.join(parameters)}")
    parts: list[str] = []
    for name, parameter in parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise UsageError(f"a torch operator cannot have the variadic parameter '{name}'")
        default = parameter.default
        kind = _kind(name, annotations.get(name), default)
        if name in written:
            if kind not in ("Tensor", "Tensor?"):
                raise UsageError(f"mutates_args: '{name}' must be a tensor, got {kind}")
            kind = kind.replace("Tensor", f"Tensor({chr(97 + len(parts))}!)")
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        shown = f'"{default}"' if isinstance(default, str) else default
        parts.append(f"{kind} {name}" + ("" if default is parameter.empty else f"={shown}"))
    return f"({', '.join(parts)}) -> ()"


def _kind(name: str, annotation: Any, default: Any) -> str:
    """Return the torch schema type of a parameter."""
    if typing.get_origin(annotation) in (typing.Union, UnionType):
        inner = [a for a in typing.get_args(annotation) if a is not NoneType]
        if len(inner) == 1:
            return _kind(name, inner[0], inspect.Parameter.empty).rstrip("?") + "?"
    if isinstance(annotation, NumericType):
        return "bool" if annotation is Boolean else "float" if annotation.is_float else "int"
    constant = getattr(annotation, "args", ())
    if len(constant) == 1 and constant[0] in _PLAIN:
        return _PLAIN[constant[0]]
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if annotation is Tensor or isinstance(annotation, TensorAnnotation):
        return "Tensor"
    if annotation is None and type(default) in _PLAIN:
        return _PLAIN[type(default)]
    if annotation is None and default is inspect.Parameter.empty:
        return "Tensor"
    what = "a stream; the operator uses torch's current stream" if annotation is Stream else f"{annotation!r}"
    raise UsageError(f"parameter '{name}' has no torch type: {what}")


# -------------------------------------------------------------------------------------------------------------- tensors


class TensorInitType(Enum):
    """The initial contents of a new tensor."""

    SKIP = "skip"
    SCALAR = "scalar"
    RANDOM = "random"
    GAUSSIAN = "gaussian"


@dataclass(frozen=True)
class RandomInitConfig:
    """Configuration of random integers from ``min_val`` to ``max_val - 1``. Every type represents the defaults."""

    min_val: int = -2
    max_val: int = 2


@dataclass(frozen=True)
class ScalarInitConfig:
    """Configuration of a constant fill."""

    value: float = 0.0


@dataclass(frozen=True)
class GaussianInitConfig:
    """Configuration of normally distributed numbers, multiplied by ``scale``."""

    mean: float = 0.0
    std: float = 1.0
    scale: float = 1.0


InitConfig: TypeAlias = ScalarInitConfig | RandomInitConfig | GaussianInitConfig


def dtype(kind: type[Numeric]) -> torch.dtype:  # pyright: ignore[reportGeneralTypeIssues]
    """Return the torch dtype of an element type. Raises UsageError if torch has none."""
    import torch

    name = "float32" if kind is cute.TFloat32 else getattr(kind, "torch", "")
    found = getattr(torch, name, None) if name else None
    if found is None:
        raise UsageError(f"torch has no dtype for {kind!r}")
    return found


def is_fp8_dtype(kind: type[Numeric]) -> bool:
    """Return True for an 8-bit float type."""
    return kind in (cute.Float8E4M3FN, cute.Float8E5M2, cute.Float8E8M0FNU)


def get_leading_dim(tensor: torch.Tensor) -> int:
    """Return the dimension of stride 1, the last one of extent greater than 1. Raises UsageError if there is none."""
    ones = [i for i, stride in enumerate(tensor.stride()) if stride == 1]
    several = [i for i in ones if tensor.shape[i] > 1]
    if not ones:
        raise UsageError(f"the tensor must have a dimension of stride 1, got strides {tuple(tensor.stride())}")
    return (several or ones)[-1]


def create_and_permute_torch_tensor(
    shape: Sequence[int],
    dtype: torch.dtype,  # pyright: ignore[reportGeneralTypeIssues]
    permute_order: Sequence[int] | None = None,
    init_type: TensorInitType = TensorInitType.RANDOM,
    init_config: InitConfig | None = None, device: torch.device | str | None = None,
) -> torch.Tensor:  # fmt: skip
    """Return a new tensor, by default on the CPU.

    Args:
        shape: the shape in memory order, before the permutation.
        dtype: a torch dtype.
        permute_order: the permutation of the dimensions, as for ``Tensor.permute``.
        init_type: the initial contents.
        init_config: the configuration of ``init_type``.

    Raises UsageError for an ``init_config`` of another ``init_type``.
    """
    import torch

    wide = torch.empty(*shape, dtype=torch.float32, device=device)
    _filled(wide, init_type, init_config, unsigned=dtype == torch.uint8)
    made = wide.to(dtype)
    return made if permute_order is None else made.permute(*permute_order)


def _filled(wide: torch.Tensor, init_type: TensorInitType, config: InitConfig | None, *, unsigned: bool) -> None:
    kind = {
        TensorInitType.SCALAR: ScalarInitConfig, TensorInitType.RANDOM: RandomInitConfig,
        TensorInitType.GAUSSIAN: GaussianInitConfig,
    }.get(init_type)  # fmt: skip
    if config is not None and kind is not None and not isinstance(config, kind):
        raise UsageError(f"init_config: {init_type} needs a {kind.__name__}, got {config!r}")
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
    l: int, mode0: int, mode1: int, is_mode0_major: bool, cutlass_dtype: type[Numeric],  # noqa: E741  (CuTe DSL's name)
    init_type: TensorInitType = TensorInitType.RANDOM,
    init_config: InitConfig | None = None, device: torch.device | str | None = None,
) -> torch.Tensor:  # fmt: skip
    """Return ``l`` matrices as a float32 tensor of shape (mode0, mode1, l).

    Args:
        cutlass_dtype: an element type, which represents all numbers exactly.
        is_mode0_major: True if dimension 0 is contiguous, False if dimension 1 is.
    """
    import torch

    shape = (l, mode1, mode0) if is_mode0_major else (l, mode0, mode1)
    order = (2, 1, 0) if is_mode0_major else (1, 2, 0)
    if init_config is None and init_type is TensorInitType.RANDOM and cutlass_dtype in (cute.Uint8, cute.Uint4):
        init_config = RandomInitConfig(0, 4)
    made = create_and_permute_torch_tensor(shape, torch.float32, order, init_type, init_config, device)
    return made.to(_stored(cutlass_dtype)).to(torch.float32) if cutlass_dtype.is_float else made


def _stored(kind: type[Numeric]) -> torch.dtype:  # pyright: ignore[reportGeneralTypeIssues]
    """Return the torch dtype that stores elements of a type."""
    import torch

    try:
        return dtype(kind)
    except TypeError:
        return torch.uint8


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def cute_tensor_like(
    data_ref: torch.Tensor, cutlass_dtype: type[Numeric], is_dynamic_layout: bool, assumed_align: int | None = None
) -> tuple[RuntimeTensor, torch.Tensor]:
    """Return the numbers of ``data_ref`` in another element type, as a kernel argument and as a torch tensor.

    The tensor is on the GPU if there is one. Its layout is that of ``data_ref``. Kernels on the interpreter may reach
    it by its address (``data_ptr()``).
    """
    if cutlass_dtype is cute.Float4E2M1FN:
        made = _packed(data_ref).to(_device())
    else:
        made = data_ref.to(device=_device(), dtype=_stored(cutlass_dtype))
    if made is data_ref:
        made = made.clone()
    remember(made)
    tensor = from_dlpack(made, assumed_align=assumed_align, dtype=cutlass_dtype)
    if is_dynamic_layout:
        tensor.mark_layout_dynamic(get_leading_dim(made))
    return tensor, made


def _packed(x: torch.Tensor) -> torch.Tensor:
    """Return numbers rounded to Float4E2M1FN, two per byte along the contiguous dimension, as torch stores them.

    Ties round to an even code, and numbers of more than 6 saturate, as in GPU conversions (PTX ISA, "cvt").
    """
    import torch

    lead = get_leading_dim(x)
    if x.shape[lead] % 2:
        raise UsageError(f"Float4E2M1FN: the contiguous dimension must have an even extent, got {tuple(x.shape)}")
    order = [i for i in sorted(range(x.dim()), key=lambda i: x.stride(i)) if i != lead]
    order = [*reversed(order), lead]
    dense = x.float().cpu().permute(order).contiguous()
    size = dense.abs()
    codes = torch.zeros_like(dense, dtype=torch.uint8)
    # Between codes i and i + 1 the midpoint belongs to the even one.
    for i, middle in enumerate((0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)):
        codes += ((size > middle) | ((size == middle) & bool(i % 2))).to(torch.uint8)
    codes |= torch.signbit(dense).to(torch.uint8) << 3
    made = codes[..., ::2] | codes[..., 1::2] << 4
    return made.permute([order.index(i) for i in range(x.dim())])


def convert_cute_tensor(
    f32_torch_tensor: torch.Tensor, cute_tensor: RuntimeTensor, dtype: type[Numeric], is_dynamic_layout: bool = True
) -> RuntimeTensor:
    """Write numbers into the memory of a tensor, rounded to its element type, and return the tensor.

    Numbers beyond the range of an 8-bit float become its largest finite number, as in GPU conversions (PTX ISA, "cvt",
    .satfinite).

    Args:
        is_dynamic_layout: ignored; the layout of ``cute_tensor`` is already marked.
    """
    kept: Any = cute_tensor.array
    if not hasattr(kept, "copy_"):
        raise UsageError(f"cute_tensor must be made from a torch tensor, got {cute_tensor!r}")
    if dtype is cute.Float4E2M1FN:
        kept.copy_(_packed(f32_torch_tensor))
        return cute_tensor
    stored = _stored(dtype)
    kept = kept if kept.dtype == stored else kept.view(stored)
    if is_fp8_dtype(dtype):
        import torch

        most = torch.finfo(stored).max
        f32_torch_tensor = f32_torch_tensor.clamp(-most, most)
    kept.copy_(f32_torch_tensor.to(stored))
    return cute_tensor


def create_cute_tensor_for_fp8(
    storage_tensor: torch.Tensor, dtype: type[Numeric], leading_dim: int, source_f32_tensor: torch.Tensor | None = None
) -> RuntimeTensor:
    """Return a kernel argument over a torch tensor, with dynamic extents. 8-bit floats may be stored as bytes.

    Args:
        source_f32_tensor: for 8-bit floats, the numbers to write into the tensor.
    """
    tensor = from_dlpack(storage_tensor, assumed_align=16, dtype=dtype)
    tensor.mark_layout_dynamic(leading_dim=leading_dim)
    if is_fp8_dtype(dtype) and source_f32_tensor is not None:
        convert_cute_tensor(source_f32_tensor, tensor, dtype)
    return tensor


def current_stream() -> cute.Stream:
    """Return torch's current stream for launches; a null stream without a GPU."""
    import torch

    handle = torch.cuda.current_stream().cuda_stream if torch.cuda.is_available() else 0
    return cute.Stream(handle)


def default_stream() -> cute.Stream:
    """Return torch's default stream for launches; a null stream without a GPU."""
    import torch

    return cute.Stream(torch.cuda.default_stream().cuda_stream if torch.cuda.is_available() else 0)


def __dir__() -> list[str]:
    return sorted(__all__)
