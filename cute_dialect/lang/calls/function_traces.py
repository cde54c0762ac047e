"""Traces of functions: the op with its parameters, location of errors, and checks of the finished body."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cute_dialect.lang.control.dominance import check_dominance
from cute_dialect.lang.control.failures import explained, translated
from cute_dialect.lang.control.runtime import converted
from cute_dialect.lang.machine.partitions import check_partitions
from cute_dialect.lang.tracing.errors import CompileError, StaticError, UnboundError
from cute_dialect.lang.tracing.module import device_block, function_op
from cute_dialect.lang.tracing.tracer import LaunchFacts, Tracer, activate, locate
from cute_dialect.tracebacks import is_full

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, Operation, SSAValue

__all__ = ["host_function", "kernel_function"]


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
    tracer = Tracer("kernel", module, function, launch=launch, chip=chip, converted=converted)
    with _tracing(tracer):
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
    tracer = Tracer("host", module, function, launch=LaunchFacts(), chip=chip, converted=converted)
    with _tracing(tracer):
        yield tracer, _named(function, parameters)
        tracer.op("func.return")
        check_dominance(function)


@contextmanager
def _tracing(tracer: Tracer) -> Generator[Tracer]:
    """Make ``tracer`` current within the ``with`` block, and locate errors that leave it in the user's source."""
    try:
        with activate(tracer):
            yield tracer
    except CompileError as e:
        if isinstance(e, StaticError):
            explained(e)
        locate(e)
        raise
    except Exception as e:
        meant = translated(e, tracer)
        if meant is None:
            raise
        meant.__traceback__ = e.__traceback__
        locate(meant)
        if not isinstance(meant, UnboundError) and not isinstance(e, RecursionError):
            meant.original = e
        raise meant from (meant.original if is_full() else None)


def _function(
    kind: str, name: str, parameters: Sequence[tuple[str, Attribute]], attributes: Mapping[str, Attribute]
) -> Operation:
    from xdsl.ir import Block, Region

    types = [t for _, t in parameters]
    return function_op(kind, name, types, attributes, Region(Block(arg_types=types)))


def _named(function: Operation, parameters: Sequence[tuple[str, Attribute]]) -> tuple[SSAValue, ...]:
    values = function.regions[0].blocks[0].args
    for value, (name, _) in zip(values, parameters):
        value.name_hint = name
    return tuple(values)
