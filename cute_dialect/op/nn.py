"""Torch modules: the layers of a transformer block, and linear, grouped and convolution layers with an activation.

Parameters that have another type than the input are converted to it in each call.  A model with f32 parameters and
16-bit activations thus trains in mixed precision: its optimizer updates the f32 parameters.  In ``torch.autocast`` the
activations may be f32 as well.

>>> layer = MLP(64, 128, run_on="cpu")
>>> layer.up.weight.shape, layer.down.weight.shape
(torch.Size([256, 64]), torch.Size([64, 128]))
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar, overload

import torch

from cute_dialect.op.arrays.library import is_autocast
from cute_dialect.op.errors import ArgumentError, DtypeError, OpError, ShapeError, UnsupportedError, renamed
from cute_dialect.op.functions.attention import attention
from cute_dialect.op.functions.conv import conv2d
from cute_dialect.op.functions.embedding import embedding
from cute_dialect.op.functions.gated import gated
from cute_dialect.op.functions.gemm import linear, mm
from cute_dialect.op.functions.grouped import grouped_mm
from cute_dialect.op.functions.packed_weights import mm_packed, pack_weight
from cute_dialect.op.functions.rank_gemm import Options, all_gather_matmul, matmul_all_reduce, matmul_reduce_scatter
from cute_dialect.op.functions.rope import rope
from cute_dialect.op.functions.routing import combine, dispatch, route
from cute_dialect.op.functions.rows import layer_norm, rms_norm
from cute_dialect.op.functions.sparse_weights import compressed, mm_sparse
from cute_dialect.op.keywords import checks_keywords
from cute_dialect.op.problems.compressed_weights import PackedWeight, SparseWeight
from cute_dialect.op.problems.packed_weights import check_bits, checked_packed, format_of
from cute_dialect.op.problems.sparse_weights import check_problem as check_sparse_problem
from cute_dialect.op.problems.sparse_weights import metadata_shape
from cute_dialect.op.signature_types import Window

__all__ = [
    "MLP",
    "Attention",
    "ColumnParallelLinear",
    "Conv2d",
    "Embedding",
    "Experts",
    "GroupedLinear",
    "LayerNorm",
    "Linear",
    "PackedLinear",
    "ParallelOptions",
    "RMSNorm",
    "RowParallelLinear",
    "SparseLinear",
]


@overload
def _like(parameter: torch.Tensor, x: torch.Tensor) -> torch.Tensor: ...
@overload
def _like(parameter: torch.Tensor | None, x: torch.Tensor) -> torch.Tensor | None: ...
def _like(parameter: torch.Tensor | None, x: torch.Tensor) -> torch.Tensor | None:
    """Return a parameter in the type of ``x``, or as it is in ``torch.autocast``, where functions convert it."""
    return parameter if parameter is None or parameter.dtype == x.dtype or is_autocast(x) else parameter.to(x.dtype)


def _check_size(layer: str, name: str, size: object) -> None:
    """Raise ArgumentError if a size is not a positive int."""
    if type(size) is not int or size < 1:
        raise ArgumentError(f"{layer}: {name} is {size!r}; pass a positive int")


_P = ParamSpec("_P")
_R = TypeVar("_R")


def _names_errors(
    *functions: str, label: str = "{}", **arguments: str
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Report errors of the functions that a method calls under the name of its layer.

    Args:
        functions: names of the functions.
        label: name of the method; "{}" is the name of the layer.
        arguments: names of the functions' arguments -> names that the caller used; ``device`` is ``run_on``.
    """
    names = {"device": "run_on", **arguments}

    def decorate(method: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(method)
        def call(*args: _P.args, **more: _P.kwargs) -> _R:
            try:
                return method(*args, **more)
            except OpError as e:
                raise renamed(e, label.format(type(args[0]).__name__), *functions, arguments=names) from None

        return call

    return decorate


class Linear(torch.nn.Linear):
    """A layer ``activation(x @ weight.T + bias)``: ``torch.nn.Linear`` with a fused activation.

    Args:
        activation: as in :func:`cute_dialect.op.linear`.
        run_on: ``"cpu"`` runs on the interpreter, with parameters on the CPU.
    """

    @checks_keywords
    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, *, activation: str = "",
        device: Any = None, dtype: Any = None, run_on: str | None = None,
    ):  # fmt: skip
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        self.activation, self.run_on = activation, run_on

    @_names_errors("linear", "mm", x="input")
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return (…, out_features) for an input of (…, in_features)."""
        weight, bias = _like(self.weight, input), _like(self.bias, input)
        return linear(input, weight, bias, self.activation, device=self.run_on)

    @_names_errors("mm", label="{}.add", c="residual")
    def add(self, input: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Return ``residual`` plus the result without its activation; the GEMM's epilogue adds them."""
        if input.shape[-1:] != (self.in_features,):
            raise ShapeError(f"Linear.add: input has shape {tuple(input.shape)}; pass (…, {self.in_features})")
        alike = residual.dtype == input.dtype or is_autocast(input)
        if residual.shape != (*input.shape[:-1], self.out_features) or not alike:
            raise ArgumentError(
                f"Linear.add: residual has shape {tuple(residual.shape)} and dtype {residual.dtype}; it must be "
                f"{(*input.shape[:-1], self.out_features)} of {input.dtype}"
            )
        a, c = input.flatten(0, -2), residual.flatten(0, -2)
        weight, bias = _like(self.weight, input), _like(self.bias, input)
        dtype = residual.dtype if is_autocast(input) else None
        return mm(a, weight.t(), c=c, bias=bias, dtype=dtype, device=self.run_on).view(residual.shape)

    def extra_repr(self) -> str:
        return super().extra_repr() + (f", activation={self.activation}" if self.activation else "")


class ParallelOptions(NamedTuple):
    """Options of the linear layers of several ranks.

    Attributes:
        group: as in ``op.distributed.all_reduce``.
        sequence_parallel: activations outside of the two layers are divided over the ranks by rows.
        device, dtype: those of the parameters.
        run_on: ``"cpu"`` runs on the interpreter.
    """

    group: object = None
    sequence_parallel: bool = True
    device: torch.device | str | None = None
    dtype: torch.dtype | None = None
    run_on: str | None = None


_PARALLEL = ParallelOptions()


class _ParallelLinear(torch.nn.Module):
    """A linear layer whose weight is divided over the ranks of a group."""

    def __init__(self, sizes: tuple[int, int], bias: int, how: ParallelOptions) -> None:
        super().__init__()
        self.how, self.run_on = how, how.run_on
        self.weight = torch.nn.Parameter(torch.empty(sizes, device=how.device, dtype=how.dtype))
        self.bias = torch.nn.Parameter(torch.empty(bias, device=how.device, dtype=how.dtype)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize as ``torch.nn.Linear`` of this rank's sizes."""
        torch.nn.init.kaiming_uniform_(self.weight, a=5**0.5)
        if self.bias is not None:
            torch.nn.init.uniform_(self.bias, -(self.weight.shape[1] ** -0.5), self.weight.shape[1] ** -0.5)

    def _weight(self, input: torch.Tensor) -> torch.Tensor:
        """Return the weight as the second operand of a GEMM."""
        if input.shape[-1:] != self.weight.shape[1:]:
            raise ShapeError(
                f"{type(self).__name__}: input has shape {tuple(input.shape)}; pass (…, {self.weight.shape[1]})"
            )
        return _like(self.weight, input).t()

    def _add_bias(self, x: torch.Tensor) -> torch.Tensor:
        if self.bias is None:
            return x
        from cute_dialect.op.torch.rank_gemm import BiasAdd  # late: torch

        return BiasAdd.apply(x, _like(self.bias, x), Options(None, self.run_on, None, {}))

    def extra_repr(self) -> str:
        rows, columns = self.weight.shape
        return f"{columns}, {rows}, bias={self.bias is not None}, sequence_parallel={self.how.sequence_parallel}"


class ColumnParallelLinear(_ParallelLinear):
    """A layer ``x @ weight.T + bias`` of which each rank has some output features.

    With sequence parallelism the input is this rank's rows, and the output has the rows of all ranks; the rows are
    gathered while they are multiplied.  Otherwise the input is equal on all ranks.

    Args:
        in_features: columns of the input.
        out_features: output features of this rank.
        how: group, sequence parallelism, and parameters.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, how: ParallelOptions = _PARALLEL
    ) -> None:
        super().__init__((out_features, in_features), out_features if bias else 0, how)

    @_names_errors("all_gather_matmul", "mm", a="input")
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return (rows, out_features) for a matrix of rows."""
        weight, how = self._weight(input), Options(self.how.group, self.run_on, None, {})
        if self.how.sequence_parallel:
            return self._add_bias(all_gather_matmul(input, weight, group=how.group, device=how.device))
        from cute_dialect.op.torch.rank_gemm import ReplicatedMatmul  # late: torch

        return self._add_bias(ReplicatedMatmul.apply(input, weight, how))


class RowParallelLinear(_ParallelLinear):
    """A layer ``x @ weight.T + bias`` of which each rank has some input features; the ranks' products are added.

    With sequence parallelism the output is this rank's rows.  Otherwise it is equal on all ranks, and so must be its
    gradient.

    Args:
        in_features: input features of this rank.
        out_features: columns of the output.
        how: group, sequence parallelism, and parameters.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, how: ParallelOptions = _PARALLEL
    ) -> None:
        super().__init__((out_features, in_features), out_features if bias else 0, how)

    @_names_errors("matmul_reduce_scatter", "matmul_all_reduce", a="input")
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return (rows, out_features) for a matrix of rows; of this rank only, with sequence parallelism."""
        function = matmul_reduce_scatter if self.how.sequence_parallel else matmul_all_reduce
        return self._add_bias(function(input, self._weight(input), group=self.how.group, device=self.run_on))


class GroupedLinear(torch.nn.Module):
    """Layers of experts: ``activation(x_g @ weight[g].T + bias[g])`` for the rows of each group, in one launch.

    Args:
        groups: number of experts; ``weight`` is (groups, out_features, in_features).
        run_on: ``"cpu"`` runs on the interpreter.
    """

    @checks_keywords
    def __init__(
        self, groups: int, in_features: int, out_features: int, bias: bool = True, *, activation: str = "",
        device: Any = None, dtype: Any = None, run_on: str | None = None,
    ):  # fmt: skip
        super().__init__()
        self.groups, self.in_features, self.out_features = groups, in_features, out_features
        self.activation, self.run_on = activation, run_on
        kind = {"device": device, "dtype": dtype}
        self.weight = torch.nn.Parameter(torch.empty(groups, out_features, in_features, **kind))
        self.bias = torch.nn.Parameter(torch.empty(groups, out_features, **kind)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the parameters as ``torch.nn.Linear`` does."""
        bound = self.in_features**-0.5 if self.in_features else 0.0
        for parameter in self.parameters():
            torch.nn.init.uniform_(parameter, -bound, bound)

    @_names_errors("grouped_mm")
    def forward(self, input: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
        """Return (T, out_features) for rows (T, in_features).

        Group g ends before row ``offs[g]``.  Rows past the last group are zeros.
        """
        weight, bias = _like(self.weight, input), _like(self.bias, input)
        return grouped_mm(
            input, weight.mT, offs, bias=bias, activation=self.activation, rest="zero", device=self.run_on
        )

    def extra_repr(self) -> str:
        shown = f"{self.groups} groups, in_features={self.in_features}, out_features={self.out_features}"
        return f"{shown}, bias={self.bias is not None}" + (f", activation={self.activation}" if self.activation else "")


class PackedLinear(torch.nn.Module):
    """A layer ``x @ w.T + bias`` with packed weights of 4 or 8 bits, which are not trained.

    :meth:`from_linear` quantizes a layer, and :meth:`from_packed` takes packed weights, such as those of a GPTQ or AWQ
    checkpoint.  A new layer has zeros for ``load_state_dict``: its buffer ``data`` holds the packed words.

    >>> layer = PackedLinear.from_linear(torch.nn.Linear(64, 24), group=32, run_on="cpu")
    >>> layer, layer(torch.ones(3, 64).half()).shape
    (PackedLinear(in_features=64, out_features=24, bias=True, format=ui4-g32-f32), torch.Size([3, 24]))

    Args:
        format: storage of the weights, as in :attr:`format` of other layers and of packed weights.
        dtype: type of the bias; default: that of torch.
        run_on: ``"cpu"`` runs on the interpreter.
    """

    data: torch.Tensor

    @checks_keywords
    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        format: str = "ui4-g128-f16",
        device: Any = None,
        dtype: Any = None,
        run_on: str | None = None,
    ):
        super().__init__()
        for name, size in (("in_features", in_features), ("out_features", out_features)):
            _check_size("PackedLinear", name, size)
        self.in_features, self.out_features, self.format, self.run_on = in_features, out_features, format, run_on
        shape = format_of("PackedLinear", format, is_packed=False).shape(out_features, in_features)
        self.register_buffer("data", torch.zeros(shape, dtype=torch.int32, device=device))
        self.bias = torch.nn.Parameter(torch.zeros(out_features, device=device, dtype=dtype)) if bias else None

    @classmethod
    @checks_keywords
    def from_packed(
        cls, packed: PackedWeight, bias: torch.Tensor | None = None, *, run_on: str | None = None
    ) -> PackedLinear:
        """Return a layer with weights of :func:`cute_dialect.op.pack_weight`, ``pack_gptq`` or ``pack_awq``.

        Args:
            bias: (out_features,), or None.
            run_on: ``"cpu"`` runs on the interpreter.
        """
        checked_packed("PackedLinear.from_packed", packed)
        layer = cls(packed.k, packed.n, False, format=packed.format, device="meta", run_on=run_on)
        layer.data, layer.bias = packed.data, _bias("PackedLinear.from_packed", bias, packed.n)
        return layer

    @classmethod
    @checks_keywords
    def from_linear(
        cls, linear: torch.nn.Linear, *, bits: int = 4, group: int | None = 128, run_on: str | None = None
    ) -> PackedLinear:
        """Return a layer with the weights of another one, rounded to integers of ``bits`` bits.

        The scale of a group of columns maps its largest absolute value to 7 or 127.

        Args:
            linear: a layer with floating-point weights; it shares its bias with the result.
            bits: 4 or 8.
            group: columns that share a scale: 32, 64 or 128; None: all columns of a row.
            run_on: ``"cpu"`` packs the weights, and runs the layer, on the interpreter.
        """
        call = "PackedLinear.from_linear"
        weight, most = _weight_of(call, linear), 2 ** (check_bits(call, bits) - 1) - 1
        k = weight.shape[1]
        size = k if group is None else group
        if type(size) is not int or (group is not None and size not in (32, 64, 128)):
            raise ArgumentError(f"{call}: group is {group!r}; pass 32, 64, 128 or None")
        groups = torch.nn.functional.pad(weight.float(), (0, -k % size)).unflatten(1, (-1, size))
        scales = (groups.abs().amax(2) / most).to(weight.dtype)
        steps = scales.float()[..., None]
        rounded = torch.where(steps > 0, groups / steps, 0.0).round().clamp(-most - 1, most)
        q = rounded.to(torch.int8).flatten(1)[:, :k]
        try:
            packed = pack_weight(q, scales, bits=bits, group=None if scales.shape[1] == 1 else group, device=run_on)
        except OpError as e:
            raise renamed(e, call, "pack_weight", arguments={"w": "linear.weight", "device": "run_on"}) from None
        return cls.from_packed(packed, linear.bias, run_on=run_on)

    @property
    def packed(self) -> PackedWeight:
        """The weights, as the argument of :func:`cute_dialect.op.mm_packed`."""
        return PackedWeight(self.data, self.out_features, self.in_features, self.format)

    @_names_errors("mm_packed", x="input", packed="weight")
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return (…, out_features) for an input of (…, in_features), f16 or bf16."""
        if input.dtype in (torch.float32, torch.float64):
            raise DtypeError(f"PackedLinear: input has dtype {input.dtype}; pass input.half() or input.bfloat16()")
        return mm_packed(input, self.packed, _like(self.bias, input), device=self.run_on)

    def get_extra_state(self) -> str:
        return self.format

    def set_extra_state(self, state: str) -> None:
        if state != self.format:
            raise ArgumentError(
                f"PackedLinear: the weights to load have the format {state}, but the layer has {self.format}; "
                f'build the layer with format="{state}"'
            )

    def extra_repr(self) -> str:
        shown = f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
        return f"{shown}, format={self.format}"


class SparseLinear(torch.nn.Module):
    """A layer ``x @ w.T + bias`` with 2:4 sparse weights, which are not trained.

    :meth:`from_linear` compresses the weights of a layer.  A new layer has zeros for ``load_state_dict``: its buffers
    ``kept`` and ``metadata`` hold the weights.

    >>> layer = SparseLinear.from_linear(torch.nn.Linear(64, 24).half(), prune=True, run_on="cpu")
    >>> layer, layer(torch.ones(3, 64).half()).shape
    (SparseLinear(in_features=64, out_features=24, bias=True), torch.Size([3, 24]))

    Args:
        dtype: type of the weights and the bias, f16 (default) or bf16.
        run_on: ``"cpu"`` runs on the interpreter.
    """

    kept: torch.Tensor
    metadata: torch.Tensor

    @checks_keywords
    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        device: Any = None,
        dtype: torch.dtype = torch.float16,
        run_on: str | None = None,
    ):
        super().__init__()
        for name, size in (("in_features", in_features), ("out_features", out_features)):
            _check_size("SparseLinear", name, size)
        check_sparse_problem("SparseLinear", out_features, in_features, "weight")
        self.in_features, self.out_features, self.run_on = in_features, out_features, run_on
        kept = torch.zeros(out_features, in_features // 2, dtype=dtype, device=device)
        words = torch.zeros(metadata_shape(out_features, in_features), dtype=torch.int32, device=device)
        self.register_buffer("kept", kept)
        self.register_buffer("metadata", words)
        self.bias = torch.nn.Parameter(torch.zeros(out_features, device=device, dtype=dtype)) if bias else None

    @classmethod
    @checks_keywords
    def from_linear(cls, linear: torch.nn.Linear, *, prune: bool = False, run_on: str | None = None) -> SparseLinear:
        """Return a layer with the weights of another one.

        Args:
            linear: a layer with weights of f16 or bf16; it shares its bias with the result.
            prune: set the two smaller absolute values of each four consecutive weights of a row to 0.  Without it
                weights that are not 2:4 sparse are refused.
            run_on: ``"cpu"`` compresses the weights, and runs the layer, on the interpreter.
        """
        call = "SparseLinear.from_linear"
        weight = _weight_of(call, linear)
        if prune and weight.shape[1] % 4 == 0:
            fours = weight.unflatten(1, (-1, 4))
            weight = fours.scatter(2, fours.abs().argsort(2)[..., :2], 0.0).flatten(1)
        cure = "pass prune=True to set the two smaller ones to 0"
        try:
            found = compressed(call, "linear.weight", weight, cure, run_on)
        except OpError as e:
            raise renamed(e, call, call, arguments={"device": "run_on"}) from None
        layer = cls(weight.shape[1], weight.shape[0], False, device="meta", dtype=weight.dtype, run_on=run_on)
        layer.kept, layer.metadata = found
        layer.bias = _bias(call, linear.bias, weight.shape[0])
        return layer

    @property
    def sparse(self) -> SparseWeight:
        """The weights, as the argument of :func:`cute_dialect.op.mm_sparse`."""
        return SparseWeight(self.kept, self.metadata)

    @_names_errors("mm_sparse", x="input", w="weight")
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return (…, out_features) for an input of (…, in_features) of the type of the weights."""
        if input.dtype != self.kept.dtype:
            kind = self.kept.dtype
            raise DtypeError(f"SparseLinear: input has dtype {input.dtype}, the weights {kind}; pass input.to({kind})")
        return mm_sparse(input, self.sparse, _like(self.bias, input), device=self.run_on)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def _weight_of(call: str, linear: object) -> torch.Tensor:
    """Return the weights of a layer without their gradient.  Raises ArgumentError."""
    weight = getattr(linear, "weight", None)
    if not isinstance(weight, torch.Tensor) or weight.dim() != 2 or not weight.is_floating_point():
        raise ArgumentError(f"{call}: linear is of type {type(linear).__name__}; pass a torch.nn.Linear")
    return weight.detach()


def _bias(call: str, bias: object, size: int) -> torch.nn.Parameter | None:
    """Return a bias as a parameter.  Raises ArgumentError if its shape is wrong."""
    if bias is None or (isinstance(bias, torch.Tensor) and tuple(bias.shape) == (size,)):
        return bias if bias is None or isinstance(bias, torch.nn.Parameter) else torch.nn.Parameter(bias)
    shown = tuple(bias.shape) if isinstance(bias, torch.Tensor) else type(bias).__name__
    raise ArgumentError(f"{call}: bias is {shown}; pass a tensor of shape ({size},), or None")


class Conv2d(torch.nn.Conv2d):
    """A layer ``activation(conv2d(x, weight) + bias)``: ``torch.nn.Conv2d`` with a fused activation.

    The weights have channels-last memory format.

    Args:
        padding_mode: ``"zeros"``; UnsupportedError is raised for others.
        run_on: ``"cpu"`` runs on the interpreter.
    """

    @checks_keywords
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", *, activation: str = "",
        device: Any = None, dtype: Any = None, run_on: str | None = None,
    ):  # fmt: skip
        if padding_mode != "zeros":
            raise UnsupportedError(f"Conv2d: padding_mode={padding_mode!r} is not supported; use 'zeros'")
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode,
            device=device, dtype=dtype,
        )  # fmt: skip
        self.activation, self.run_on = activation, run_on
        self.weight.data = self.weight.data.to(memory_format=torch.channels_last)

    @_names_errors("conv2d", x="input", w="weight")
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return (N, K, P, Q) for an input of (N, C, H, W)."""
        how = (self.stride, self.padding, self.dilation, self.groups)
        weight, bias = _like(self.weight, input), _like(self.bias, input)
        return conv2d(input, weight, bias, *how, activation=self.activation, device=self.run_on)

    def extra_repr(self) -> str:
        return super().extra_repr() + (f", activation={self.activation}" if self.activation else "")


class Embedding(torch.nn.Embedding):
    """``torch.nn.Embedding`` with a deterministic gradient.

    Args:
        padding_idx: index of a row of zeros without a gradient.
        max_norm, norm_type, scale_grad_by_freq, sparse: must be the defaults, else UnsupportedError is raised.
        run_on: ``"cpu"`` runs on the interpreter.
    """

    @checks_keywords
    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        run_on: str | None = None,
    ):
        if max_norm is not None:
            raise UnsupportedError(
                f"Embedding: max_norm={max_norm!r} is not supported; scale the rows of weight yourself"
            )
        if scale_grad_by_freq or sparse:
            name = "sparse" if sparse else "scale_grad_by_freq"
            raise UnsupportedError(f"Embedding: {name}=True is not supported; omit it: gradients are dense sums")
        if padding_idx is not None and not (
            type(padding_idx) is int and -num_embeddings <= padding_idx < num_embeddings
        ):
            raise ArgumentError(
                f"Embedding: padding_idx is {padding_idx!r}; pass None, or an index of the {num_embeddings} rows"
            )
        super().__init__(num_embeddings, embedding_dim, padding_idx, device=device, dtype=dtype)
        self.run_on = run_on

    @classmethod
    @checks_keywords
    def from_pretrained(
        cls,
        embeddings: torch.Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        *,
        run_on: str | None = None,
    ) -> Embedding:
        """Return a layer whose weight is ``embeddings``, without a copy; ``freeze`` omits its gradient."""
        shape: tuple[int, ...] = tuple(getattr(embeddings, "shape", ()))
        if len(shape) != 2:
            shown = shape or type(embeddings).__name__
            raise ArgumentError(f"Embedding.from_pretrained: embeddings is {shown}; pass a tensor (rows, columns)")
        (rows, columns), how = shape, (max_norm, norm_type, scale_grad_by_freq, sparse)
        layer = cls(rows, columns, padding_idx, *how, device="meta", run_on=run_on)
        layer.weight = torch.nn.Parameter(embeddings, requires_grad=not freeze)
        return layer

    @_names_errors("embedding")
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return (…, embedding_dim) for indices (…)."""
        return embedding(input, self.weight, self.padding_idx, device=self.run_on)


class RMSNorm(torch.nn.RMSNorm):
    """``torch.nn.RMSNorm``, which can add a residual first.

    Args:
        run_on: ``"cpu"`` runs on the interpreter.
    """

    @checks_keywords
    def __init__(
        self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True, *,
        device: Any = None, dtype: Any = None, run_on: str | None = None,
    ):  # fmt: skip
        super().__init__(normalized_shape, eps, elementwise_affine, device=device, dtype=dtype)
        self.run_on = run_on

    @_names_errors("rms_norm")
    def forward(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> Any:
        """Return the norm of ``x``, or with ``residual`` the pair: norm of the sum, and the sum."""
        weight = _like(self.weight, x)
        return rms_norm(x, self.normalized_shape, weight, self.eps, residual=residual, device=self.run_on)


class LayerNorm(torch.nn.LayerNorm):
    """``torch.nn.LayerNorm``, which can add a residual first.

    Args:
        run_on: ``"cpu"`` runs on the interpreter.
    """

    @checks_keywords
    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True, *,
        device: Any = None, dtype: Any = None, run_on: str | None = None,
    ):  # fmt: skip
        super().__init__(normalized_shape, eps, elementwise_affine, bias, device=device, dtype=dtype)
        self.run_on = run_on

    @_names_errors("layer_norm", x="input")
    def forward(self, input: torch.Tensor, residual: torch.Tensor | None = None) -> Any:
        """Return the norm of ``input``, or with ``residual`` the pair: norm of the sum, and the sum."""
        weight, bias = _like(self.weight, input), _like(self.bias, input)
        return layer_norm(input, self.normalized_shape, weight, bias, self.eps, residual=residual, device=self.run_on)


class Attention(torch.nn.Module):
    """Self-attention: one GEMM for queries, keys and values, rotary positions, attention, and a GEMM for the result.

    Args:
        dim: size of a token.
        heads: number of query heads.
        kv_heads: number of key heads, a divisor of ``heads``; default: ``heads``.
        head_dim: size of a head, a multiple of 16 with rotary positions; default: ``dim / heads``.
        bias: both linear layers have a bias.
        causal, window: as in :func:`cute_dialect.op.attention`.
        rope_base: base of the angles of rotary positions, ``base^(-2 i / head_dim)``; None for no positions.
        run_on: ``"cpu"`` runs on the interpreter.
    """

    @checks_keywords
    def __init__(
        self, dim: int, heads: int, kv_heads: int | None = None, *, head_dim: int | None = None, bias: bool = False,
        causal: bool | str = True, window: Window | None = None,
        rope_base: float | None = 10_000.0, device: Any = None, dtype: Any = None, run_on: str | None = None,
    ):  # fmt: skip
        super().__init__()
        shared = heads if kv_heads is None else kv_heads
        for name, number in {"dim": dim, "heads": heads, "kv_heads": shared, "head_dim": head_dim}.items():
            _check_size("Attention", name, 1 if number is None else number)
        if heads % shared:
            raise ArgumentError(f"Attention: heads={heads} is not a multiple of kv_heads={kv_heads}; change one")
        if head_dim is None and dim % heads:
            raise ArgumentError(f"Attention: dim={dim} is not a multiple of heads={heads}; pass head_dim")
        size = dim // heads if head_dim is None else head_dim
        if rope_base is not None and size % 16:
            raise ArgumentError(
                f"Attention: heads of {size} elements cannot have rotary positions, which need a multiple of 16; "
                "pass another head_dim, or rope_base=None"
            )
        self.heads, self.kv_heads, self.head_dim = heads, shared, size
        self.causal, self.window, self.rope_base, self.run_on = causal, window, rope_base, run_on
        more: dict[str, Any] = {"device": device, "dtype": dtype, "run_on": run_on}
        self.qkv = Linear(dim, (heads + 2 * shared) * size, bias, **more)
        self.out = Linear(heads * size, dim, bias, **more)
        self._tables: tuple[torch.Tensor, torch.Tensor] | None = None

    @_names_errors("Linear", "Linear.add", "rope", "attention", input="x")
    def forward(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> torch.Tensor:
        """Return (B, S, dim) for tokens (B, S, dim), plus ``residual`` if there is one."""
        types = (torch.float16, torch.bfloat16, *([torch.float32] if is_autocast(x) else []))
        if x.ndim != 3 or x.dtype not in types:
            raise ArgumentError(
                f"Attention: x has shape {tuple(x.shape)} and dtype {x.dtype}; pass (B, S, {self.qkv.in_features}) of "
                "f16 or bf16 (the parameters may stay f32), or of f32 in torch.autocast"
            )
        joined = self.qkv(x).view(*x.shape[:2], self.heads + 2 * self.kv_heads, self.head_dim)
        q, k, v = joined.split([self.heads, self.kv_heads, self.kv_heads], 2)
        if self.rope_base is not None:
            q, k = rope((q, k), *self.angles(x.shape[1], x.device), layout="bshd", device=self.run_on)
        seen = attention(q, k, v, causal=self.causal, window=self.window, layout="bshd", device=self.run_on).flatten(2)
        return self.out(seen) if residual is None else self.out.add(seen, residual)

    def angles(self, length: int, device: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the cosines and sines of ``length`` positions, each (length, head_dim / 2), f32."""
        if self._tables is None or len(self._tables[0]) < length or self._tables[0].device != device:
            positions = torch.arange(max(length, 64), dtype=torch.float64, device=device)
            powers = torch.arange(0, self.head_dim, 2, dtype=torch.float64, device=device) / self.head_dim
            turns = positions[:, None] * float(self.rope_base or 1.0) ** -powers
            self._tables = turns.cos().float(), turns.sin().float()
        cos, sin = self._tables
        return cos[:length], sin[:length]

    def extra_repr(self) -> str:
        window = "" if self.window is None else f", window={self.window}"
        return f"heads={self.heads}, kv_heads={self.kv_heads}, head_dim={self.head_dim}, causal={self.causal}{window}"


class MLP(torch.nn.Module):
    """Two linear layers with an activation between them.

    Args:
        dim: size of a token.
        hidden: size between the layers.
        activation: as in :func:`cute_dialect.op.gated`, or if not ``gated`` in :func:`cute_dialect.op.linear`.
        gated: the first layer computes two halves ``a`` and ``b``, and the second one reads ``activation(a) * b``.
        bias: both layers have a bias.
        run_on: ``"cpu"`` runs on the interpreter.
    """

    @checks_keywords
    def __init__(
        self, dim: int, hidden: int, *, activation: str = "silu", gated: bool = True, bias: bool = False,
        device: Any = None, dtype: Any = None, run_on: str | None = None,
    ):  # fmt: skip
        super().__init__()
        _check_size("MLP", "dim", dim)
        _check_size("MLP", "hidden", hidden)
        more: dict[str, Any] = {"device": device, "dtype": dtype, "run_on": run_on}
        self.gate, self.run_on = activation if gated else "", run_on
        self.up = Linear(dim, 2 * hidden if gated else hidden, bias, activation="" if gated else activation, **more)
        self.down = Linear(hidden, dim, bias, **more)

    @_names_errors("Linear", "gated", input="x")
    def forward(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> torch.Tensor:
        """Return (…, dim) for tokens (…, dim), plus ``residual`` if there is one."""
        hidden = self.up(x)
        if self.gate:
            hidden = gated(hidden, self.gate, device=self.run_on)
        return self.down(hidden) if residual is None else self.down.add(hidden, residual)

    def extra_repr(self) -> str:
        return f"gate={self.gate}" if self.gate else ""


class Experts(torch.nn.Module):
    """A mixture of experts: each token passes through the ``top_k`` gated MLPs that its router prefers.

    Args:
        dim: size of a token.
        hidden: size between the two layers of an expert.
        experts: number of experts.
        top_k: experts of a token.
        activation: as in :func:`cute_dialect.op.gated`.
        score, normalise: as in :func:`cute_dialect.op.route`.
        run_on: ``"cpu"`` runs on the interpreter.
    """

    @checks_keywords
    def __init__(
        self, dim: int, hidden: int, experts: int, top_k: int, *, activation: str = "silu", score: str = "softmax",
        normalise: bool = True, device: Any = None, dtype: Any = None, run_on: str | None = None,
    ):  # fmt: skip
        super().__init__()
        for name, number in {"dim": dim, "hidden": hidden, "experts": experts, "top_k": top_k}.items():
            _check_size("Experts", name, number)
        if top_k > experts:
            raise ArgumentError(
                f"Experts: top_k={top_k} exceeds the number of experts, {experts}; pass at most {experts}"
            )
        more: dict[str, Any] = {"device": device, "dtype": dtype, "run_on": run_on}
        self.top_k, self.activation, self.run_on = top_k, activation, run_on
        self.score, self.normalise = score, normalise
        self.router = Linear(dim, experts, False, **more)
        self.up = GroupedLinear(experts, dim, 2 * hidden, False, **more)
        self.down = GroupedLinear(experts, hidden, dim, False, **more)

    @_names_errors("Linear", "GroupedLinear", "route", "dispatch", "gated", "combine", input="x")
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (…, dim) for tokens (…, dim): the sum of the results of the experts, times their weights."""
        kind: dict[str, Any] = {"device": self.run_on}
        weights, chosen = route(self.router(x), self.top_k, self.score, normalise=self.normalise, **kind)
        rows, offs, order = dispatch(x, chosen, self.up.groups, **kind)
        return combine(self.down(gated(self.up(rows, offs), self.activation, **kind), offs), order, weights, **kind)

    def extra_repr(self) -> str:
        return f"top_k={self.top_k}, activation={self.activation}, score={self.score}"
