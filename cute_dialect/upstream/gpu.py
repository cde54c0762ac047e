"""The gpu dialect of upstream MLIR. The ops with a C++ parser (func, launch) are in `gpu_func.py`."""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr, SymbolRefAttr, UnitAttr
from xdsl.dialects.builtin import ModuleOp as BuiltinModuleOp
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

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
        """Name of the module."""
        return cast("StringAttr", self.properties["sym_name"]).data

    @property
    def body(self) -> Region:
        """Region that contains the functions."""
        return self.regions[0]


def enclosing_module(op: Operation) -> BuiltinModuleOp | None:
    """Return the builtin.module that contains an op, or None if there is none."""
    at = op.parent_op()
    while at is not None and not isinstance(at, BuiltinModuleOp):
        at = at.parent_op()
    return at


def _symbols(region: Region) -> dict[str, Operation]:
    """Return the ops that a symbol table defines, by name."""
    found: dict[str, Operation] = {}
    for block in region.blocks:
        for op in block.ops:
            name = op.get_attr_or_prop("sym_name")
            if isinstance(name, StringAttr):
                found[name.data] = op
    return found


def _launched(module: BuiltinModuleOp, name: SymbolRefAttr, passed: int) -> GPUFuncOp | None:
    """Return the launched kernel, or None if its arguments are unknown (a binary, a function of another dialect).

    Raises VerifyException if there is no such kernel, or the number of arguments differs from `passed`.
    """
    path = [name.root_reference.data, *[part.data for part in name.nested_references]]
    shown = "::".join(f"@{part}" for part in path)
    container = _symbols(module.body).get(path[0])
    if container is None or container.name not in ("gpu.module", "gpu.binary"):
        raise VerifyException(f"expected a kernel of a gpu.module, got {shown}: no gpu.module is called @{path[0]}")
    if container.name == "gpu.binary":
        return None
    functions = _symbols(container.regions[0])
    kernel = functions.get(path[1]) if len(path) == 2 else None
    if kernel is None:
        known = ", ".join(f"@{known}" for known, op in functions.items() if "gpu.kernel" in op.attributes) or "none"
        raise VerifyException(f"expected a kernel of @{path[0]} ({known}), got {shown}")
    if "gpu.kernel" not in kernel.attributes:
        raise VerifyException(f"expected a kernel, got {shown}, a function without the attribute 'gpu.kernel'")
    if not isinstance(kernel, GPUFuncOp):
        return None
    if len(kernel.type.inputs) != passed:
        raise VerifyException(f"expected {len(kernel.type.inputs)} arguments for {shown}, got {passed}")
    return kernel


LAUNCH_FLAGS = ("cute.cooperative", "cute.pdl", "cute.fallback")
"""Attributes of a launch without a value.

`cute.cooperative`: all blocks are resident at the same time. `cute.pdl`: the launch may begin before the previous one
ends. `cute.fallback`: the launch replaces the previous one in its block if that one's arguments contradict its types.
"""


class LaunchFuncOp(FormatOp):
    """`gpu.launch_func @m::@k blocks in (%gx, %gy, %gz) threads in (%bx, %by, %bz) args(%a : T)`

    Grid and block sizes are in blocks and threads, all of one type. `cluster` is in blocks, `smem` in bytes (i32).
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
        """Build a launch. If `async_tokens` is given, even empty, the launch is asynchronous and returns a token."""
        clusters = list(cluster) or [None] * 3
        super().__init__(
            list(async_tokens or ()), *grid, *block, *clusters, smem, list(args), async_object, kernel=kernel,
            result_types=[] if async_tokens is None else [AsyncTokenType()],
        )  # fmt: skip

    def verify_(self) -> None:
        """Verify the op, the launched kernel and its arguments, as upstream's gpu dialect does.

        Each kernel of ``cute.variants`` must be in the same module and have the same number of arguments.
        :data:`LAUNCH_FLAGS` must not have a value.
        """
        super().verify_()
        for flag in LAUNCH_FLAGS:
            given = self.attributes.get(flag, UnitAttr())
            if not isinstance(given, UnitAttr):
                raise VerifyException(f"expected '{flag}' without a value, got {given}")
        module = enclosing_module(self)
        if module is None:
            return
        if "gpu.container_module" not in module.attributes:
            raise VerifyException("the enclosing module must have the attribute 'gpu.container_module'")
        passed = [value.type for value in self.group("kernelOperands")]
        kernel = _launched(module, cast("SymbolRefAttr", self.properties["kernel"]), len(passed))
        if kernel is not None:
            for i, (got, expected) in enumerate(zip(passed, kernel.type.inputs)):
                if got != expected:
                    raise VerifyException(f"expected argument {i} of @{kernel.symbol} of type {expected}, got {got}")
        variants = self.attributes.get("cute.variants", ArrayAttr(()))
        if not isinstance(variants, ArrayAttr):
            raise VerifyException(f"attribute 'cute.variants' must be an array of symbols of kernels, got {variants}")
        for variant in cast("ArrayAttr[Attribute]", variants):
            if not isinstance(variant, SymbolRefAttr):
                raise VerifyException(f"attribute 'cute.variants' must contain symbols of kernels, got {variant}")
            _launched(module, variant, len(passed))
        types = self.attributes.get("cute.args", ArrayAttr(()))
        entries = cast("ArrayAttr[Attribute]", types).data if isinstance(types, ArrayAttr) else (types,)
        if not all(isinstance(entry, StringAttr) for entry in entries):
            raise VerifyException(f"'cute.args' must be an array of strings, one type for each argument; got {types}")


class _IdOp(FormatOp):
    """Thread or block index along a dimension: `gpu.thread_id x upper_bound 128`."""

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
"""All ops of the dialect by name without prefix: `OPS["subgroup_reduce"]`."""

FuncOp = GPUFuncOp
GPU = TableDialect("gpu", OPS, attrs("gpu"), opaque_types("gpu"))


def __getattr__(name: str) -> type[TableOp]:
    """Return the op class `name`, for example `gpu.BarrierOp` or `gpu.SubgroupIdOp`."""
    found = OPS.by_class(name)
    if found is not None:
        return found
    raise AttributeError(f"module 'gpu' has no op class '{name}'")
