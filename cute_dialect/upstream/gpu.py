"""The gpu dialect as upstream MLIR has it: every op, those with a C++ format (func, launch) in `gpu_func.py`."""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Operation, Region, SSAValue

from cute_dialect.upstream.attrs import attrs
from cute_dialect.upstream.gpu_func import GPUFuncOp, LaunchOp
from cute_dialect.upstream.lazy import TableDialect
from cute_dialect.upstream.op import FormatOp, TableOp, make_ops
from cute_dialect.upstream.opaque_types import AsyncTokenType, opaque_types

Value = SSAValue | Operation


class ModuleOp(FormatOp):
    """`gpu.module @m [#nvvm.target<chip = "sm_90a">] { … }`"""

    name = "gpu.module"

    def __init__(self, sym_name: str, body: Region, *, targets: Sequence[Attribute] = ()) -> None:
        super().__init__(sym_name=sym_name, targets=ArrayAttr(targets) if targets else None, regions=[body])

    @property
    def symbol(self) -> str:
        """The name of the module."""
        return cast("StringAttr", self.properties["sym_name"]).data

    @property
    def body(self) -> Region:
        """The region that holds the functions."""
        return self.regions[0]


class LaunchFuncOp(FormatOp):
    """`gpu.launch_func @m::@k blocks in (%gx, %gy, %gz) threads in (%bx, %by, %bz) args(%a : T)`

    Sizes count blocks and threads and are all of one type; `cluster` counts blocks, `smem` bytes (i32).
    """

    name = "gpu.launch_func"

    def __init__(
        self,
        kernel: SymbolRefAttr,
        grid: Sequence[Value],
        block: Sequence[Value],
        args: Sequence[Value] = (),
        *,
        cluster: Sequence[Value] = (),
        smem: Value | None = None,
        async_tokens: Sequence[Value] | None = None,
        async_object: Value | None = None,
    ) -> None:
        """A launch; `async_tokens`, even empty, makes it asynchronous with a token as result."""
        clusters = list(cluster) or [None] * 3
        super().__init__(
            list(async_tokens or ()), *grid, *block, *clusters, smem, list(args), async_object, kernel=kernel,
            result_types=[] if async_tokens is None else [AsyncTokenType()],
        )  # fmt: skip


class _IdOp(FormatOp):
    """A thread or block number along a dimension: `gpu.thread_id x upper_bound 128`."""

    def __init__(self, dimension: str, *, upper_bound: int | None = None) -> None:
        super().__init__(dimension=dimension, upper_bound=upper_bound)


class ThreadIdOp(_IdOp):
    """`gpu.thread_id x`"""

    name = "gpu.thread_id"


class BlockIdOp(_IdOp):
    """`gpu.block_id x`"""

    name = "gpu.block_id"


class BlockDimOp(_IdOp):
    """`gpu.block_dim x`"""

    name = "gpu.block_dim"


class GridDimOp(_IdOp):
    """`gpu.grid_dim x`"""

    name = "gpu.grid_dim"


class ReturnOp(FormatOp):
    """`gpu.return %v : T`"""

    name = "gpu.return"

    def __init__(self, values: Sequence[Value] = ()) -> None:
        super().__init__(values)


class PrintfOp(FormatOp):
    """`gpu.printf "%d\\0A", %i : i32`"""

    name = "gpu.printf"

    def __init__(self, format: str, args: Sequence[Value] = ()) -> None:
        super().__init__(args, format=format)


OWN = (
    ModuleOp, GPUFuncOp, LaunchOp, LaunchFuncOp, ThreadIdOp, BlockIdOp, BlockDimOp, GridDimOp, ReturnOp, PrintfOp,
)  # fmt: skip
OPS = make_ops("gpu", OWN)
"""Every op of the dialect by name without prefix: `OPS["subgroup_reduce"]`."""

FuncOp = GPUFuncOp
GPU = TableDialect("gpu", OPS, attrs("gpu"), opaque_types("gpu"))


def __getattr__(name: str) -> type[TableOp]:
    """The op class `name`, e.g. `gpu.BarrierOp`, `gpu.SubgroupIdOp`."""
    found = OPS.by_class(name)
    if found is not None:
        return found
    raise AttributeError(f"module 'gpu' has no op class '{name}'")
