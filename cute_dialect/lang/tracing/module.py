"""Construction of a trace's module: the empty module, functions with parameters, and their ends."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cute_dialect.lang.control.dominance import check_dominance
from cute_dialect.lang.machine.partitions import check_partitions
from cute_dialect.lang.tracing.tracer import LaunchFacts, Tracer, op_class, tracing

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, Operation, Region, SSAValue

__all__ = [
    "KERNELS", "device_block", "empty_module", "function_op", "host_function", "kernel_function", "trace_boundary"
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


@contextmanager
def kernel_function(
    module: ModuleOp, name: str, parameters: Sequence[tuple[str, Attribute]], *, launch: LaunchFacts, chip: str,
    attributes: Mapping[str, Attribute] | None = None,
) -> Generator[tuple[Tracer, tuple[SSAValue, ...]]]:  # fmt: skip
    """Create ``gpu.func @name`` and trace into it within the ``with`` block; yields its tracer and parameters."""
    from xdsl.dialects.builtin import DenseArrayBase, UnitAttr, i32

    more: dict[str, Attribute] = {"gpu.kernel": UnitAttr(), **(attributes or {})}
    if None not in launch.block:
        more["known_block_size"] = DenseArrayBase.from_list(i32, [int(n) for n in launch.block if n is not None])
    if launch.cluster != (1, 1, 1):
        more["known_cluster_size"] = DenseArrayBase.from_list(i32, list(launch.cluster))
    function = _function("gpu.func", name, parameters, more)
    device_block(module).add_op(function)
    tracer = Tracer("kernel", module, function, launch=launch, chip=chip)
    with tracing(tracer):
        yield tracer, _named(function, parameters)
        tracer.op("gpu.return")
        check_dominance(function)
        check_partitions(function)


@contextmanager
def host_function(
    module: ModuleOp, name: str, parameters: Sequence[tuple[str, Attribute]], *, chip: str,
    attributes: Mapping[str, Attribute] | None = None,
) -> Generator[tuple[Tracer, tuple[SSAValue, ...]]]:  # fmt: skip
    """Create ``func.func @name`` and trace into it within the ``with`` block; yields its tracer and parameters."""
    function = _function("func.func", name, parameters, attributes or {})
    module.body.block.add_op(function)
    tracer = Tracer("host", module, function, launch=LaunchFacts(), chip=chip)
    with tracing(tracer):
        yield tracer, _named(function, parameters)
        tracer.op("func.return")
        check_dominance(function)


def _function(
    kind: str, name: str, parameters: Sequence[tuple[str, Attribute]], attributes: Mapping[str, Attribute]
) -> Operation:
    from xdsl.ir import Block, Region

    types = [t for _, t in parameters]
    return function_op(kind, name, types, attributes, Region(Block(arg_types=types)))


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


def _named(function: Operation, parameters: Sequence[tuple[str, Attribute]]) -> tuple[SSAValue, ...]:
    values = function.regions[0].blocks[0].args
    for value, (name, _) in zip(values, parameters):
        value.name_hint = name
    return tuple(values)


def trace_boundary(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a user's function in a trace. Frames outside this one do not belong to the kernel."""
    return f(*args, **kwargs)
