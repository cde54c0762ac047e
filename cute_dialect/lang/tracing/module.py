"""Construction of a trace's module and of its functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.lang.tracing.tracer import op_class

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, Operation, Region

__all__ = [
    "KERNELS", "device_block", "empty_module", "function_op", "trace_boundary"
]  # fmt: skip

KERNELS = "kernels"
"""The name of the ``gpu.module`` that contains a trace's kernels."""


def empty_module() -> ModuleOp:
    """Return a module with an empty ``gpu.module @kernels``."""
    from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
    from xdsl.ir import Block, Region

    device = op_class("gpu.module").create(
        properties={"sym_name": StringAttr(KERNELS)}, regions=[Region(Block())]
    )  # fmt: skip
    return ModuleOp([device], attributes={"gpu.container_module": UnitAttr()})


def device_block(module: ModuleOp) -> Any:
    """Return the block of the module's ``gpu.module``."""
    return next(op for op in module.body.block.ops if op.name == "gpu.module").regions[0].blocks[0]


def function_op(
    kind: str, name: str, types: Sequence[Attribute], attributes: Mapping[str, Attribute], body: Region
) -> Operation:
    """Create a ``func.func`` or ``gpu.func`` without results, with its name stored as upstream does."""
    from xdsl.dialects.builtin import FunctionType, IntegerAttr, StringAttr

    properties: dict[str, Attribute] = {"function_type": FunctionType.from_lists(types, [])}
    more: dict[str, Attribute] = dict(attributes)
    if kind == "gpu.func":  # Upstream stores its name as a discardable attribute.
        more |= {"sym_name": StringAttr(name), "workgroup_attributions": IntegerAttr(0, 64)}
    else:
        properties["sym_name"] = StringAttr(name)
    return op_class(kind).create(properties=properties, attributes=more, regions=[body])


def trace_boundary(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a user's function in a trace. Frames outside this one do not belong to the kernel."""
    return f(*args, **kwargs)
