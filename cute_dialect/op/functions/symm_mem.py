"""Functions of ``op.distributed`` behind the operators ``torch.ops.symm_mem``, which DTensor and async TP call.

``op.distributed.install()`` replaces these operators for GPUs::

    fused_all_gather_matmul      op.distributed.all_gather_matmul
    fused_matmul_reduce_scatter  op.distributed.matmul_reduce_scatter
    one_shot_all_reduce          op.distributed.all_reduce
    two_shot_all_reduce_         op.distributed.all_reduce

A call that they do not support, such as one of f32 or along the last dimension, runs the operator of torch.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from cute_dialect.op.errors import DistributedError, OpError, UnsupportedError
from cute_dialect.op.functions.all_reduce import all_reduce
from cute_dialect.op.functions.gemm import mm
from cute_dialect.op.functions.rank_gemm import all_gather_matmul, matmul_reduce_scatter

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.signature_types import Array


class Library(Protocol):
    """A library of torch's operators."""

    def impl(self, op_name: str, fn: Callable[..., object], dispatch_key: str) -> object: ...


class _Installed:
    """The replaced operators."""

    library: Library | None = None


def _gathered_matmul(
    A_shard: Array, Bs: Sequence[Array], gather_dim: int, group_name: str, *, return_A: bool = True
) -> tuple[Array, list[Array]]:
    """Implement ``symm_mem::fused_all_gather_matmul``."""
    if not Bs or A_shard.dim() < 2 or not 0 <= gather_dim < A_shard.dim() - 1:
        raise UnsupportedError("fused_all_gather_matmul: rows must be gathered; gather_dim is not one of them")
    moved = A_shard.movedim(gather_dim, 0)
    rows, group = moved.flatten(0, -2), group_name or None
    leading = moved.shape[1:-1]

    def unflatten(t: Array) -> Array:
        return t.reshape(-1, *leading, t.shape[-1]).movedim(0, gather_dim)

    if len(Bs) == 1 and not return_A:
        return None, [unflatten(all_gather_matmul(rows, Bs[0], group=group))]
    product, gathered = all_gather_matmul(rows, Bs[0], return_a=True, group=group)
    products = [product, *[mm(gathered, b) for b in Bs[1:]]]
    return unflatten(gathered) if return_A else None, [unflatten(t) for t in products]


def _scattered_matmul(A: Array, B: Array, reduce_op: str, scatter_dim: int, group_name: str) -> Array:
    """Implement ``symm_mem::fused_matmul_reduce_scatter``."""
    if A.dim() < 2 or not 0 <= scatter_dim < A.dim() - 1:
        raise UnsupportedError("fused_matmul_reduce_scatter: rows must be scattered; scatter_dim is not one of them")
    moved = A.movedim(scatter_dim, 0)
    found = matmul_reduce_scatter(moved.flatten(0, -2), B, op=reduce_op, group=group_name or None)
    return found.reshape(-1, *moved.shape[1:-1], found.shape[-1]).movedim(0, scatter_dim)


def _sum(input: Array, reduce_op: str, group_name: str) -> Array:
    """Implement ``symm_mem::one_shot_all_reduce``."""
    if reduce_op != "sum":
        raise UnsupportedError(f"one_shot_all_reduce: reduce_op is {reduce_op!r}; only 'sum' is supported")
    return all_reduce(input.contiguous(), group=group_name or None)


def _sum_in_place(input: Array, reduce_op: str, group_name: str) -> Array:
    """Implement ``symm_mem::two_shot_all_reduce_``."""
    return input.copy_(_sum(input, reduce_op, group_name))


OPERATORS: dict[str, Callable[..., Array]] = {
    "fused_all_gather_matmul": _gathered_matmul,
    "fused_matmul_reduce_scatter": _scattered_matmul,
    "one_shot_all_reduce": _sum,
    "two_shot_all_reduce_": _sum_in_place,
}
"""Names of operators of ``symm_mem``, and what replaces them."""


def _or_torch(function: Callable[..., Array], torch_kernel: Callable[..., Array] | None, *args: object, **more: object):
    """Call a function, or the kernel of torch if the function refuses the arguments.

    All ranks have arguments of the same shapes and types, so all of them take the same branch.
    """
    try:
        return function(*args, **more)
    except DistributedError:
        raise
    except OpError:
        if torch_kernel is None:
            raise
    return torch_kernel(*args, **more)


def install() -> None:
    """Replace operators of ``torch.ops.symm_mem`` for GPUs, which async tensor parallelism of DTensor calls.

    Calls that these kernels do not support run torch's operators.  torch warns that its operators are overridden.

    Raises:
        UnsupportedError: torch is older than 2.9.
    """
    install_for("CUDA")


def install_for(key: str) -> None:
    """Replace the operators of a dispatch key; does nothing if they are replaced."""
    if _Installed.library is not None:
        return
    torch = import_module("torch")
    import_module("torch.distributed._symmetric_memory")
    if not hasattr(torch.library, "get_kernel"):
        raise UnsupportedError(f"install: torch is {torch.__version__}; it must be 2.9 or later")
    library = torch.library.Library("symm_mem", "IMPL")
    for name, function in OPERATORS.items():
        library.impl(name, partial(_or_torch, function, _kernel_of_torch(name, key)), key)
    _Installed.library = library


def _kernel_of_torch(name: str, key: str) -> Callable[..., Array] | None:
    """Return the kernel that an operator has, or None."""
    torch = import_module("torch")
    try:
        kernel = torch.library.get_kernel(f"symm_mem::{name}", key)
    except RuntimeError:
        return None
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))
    return partial(kernel.call_boxed, keys)


def uninstall() -> None:
    """Restore the operators of torch."""
    _Installed.library = None  # torch removes the kernels of a library that is deleted
