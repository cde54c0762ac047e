"""Traces of functions: the op with its parameters, location of errors, and checks of the finished function.

The checks run when the ops of discarded traces are gone and the conditions around a copy are known.  Values must be
used only where they are defined (F211, F212).  Tiles must fit in static extents and in the threads of the block
(F254)::

    copy = cute.make_tiled_copy_tv(atom, …)        # a tile of 4 x 32
    part = copy.get_slice(t).partition_S(tile)     # of a static tile of 6 x 32: its second step ends 2 rows past it
    cute.copy(atom, part, …)                       # F254 without pred=, unless a branch keeps threads from it

The compiler applies the checks of tiles to textual IR as well (``cute-opt``).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cute_dialect.errors import CompileError
from cute_dialect.lang.control.errors import explained, translated
from cute_dialect.lang.control.runtime import converted
from cute_dialect.lang.machine.threads import varies_by_thread
from cute_dialect.lang.tracing.errors import KernelTypeError, MergeError, StaticError, UnboundError
from cute_dialect.lang.tracing.source_location import place_of_location
from cute_dialect.lang.tracing.tracer import LaunchFacts, Tracer, activate, device_block, function_op, locate
from cute_dialect.tracebacks import is_full

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, Block, Operation, SSAValue

# ------------------------------------------------------------------------------------------------------------ dominance


def check_dominance(function: Operation) -> None:
    """Raise F211 if an op uses a value from a branch or loop that does not contain the op.

    Such a value passed through state that snapshots do not cover: a global of another module, or an object array.
    """
    for region in function.regions:
        for block in region.blocks:
            _check(block, set())


def _check(block: Block, known: set[SSAValue]) -> None:
    here: list[SSAValue] = [*block.args]
    known.update(here)
    for op in block.ops:
        for operand in op.operands:
            if operand not in known:
                raise _leaked(op, operand)
        for region in op.regions:
            for inner in region.blocks:
                _check(inner, known)
        known.update(op.results)
        here += op.results
    known.difference_update(here)


def _leaked(op: Operation, value: SSAValue) -> MergeError:
    owner: Any = value.owner
    if _function_of(owner) is not _function_of(op):
        return _of_another(op, value)
    name = f"'{value.name_hint}'" if value.name_hint else f"a value of type {value.type}"
    made = place_of_location(getattr(owner, "location", None))
    return MergeError(
        "F211", f"{name} is used outside the branch or loop that computes it", place=place_of_location(op.location),
        notes=[("it is computed here", made)] if made is not None else [],
        hint="it was stored in an object that the branch does not track: pass it as an argument, or return the value",
    )  # fmt: skip


def _of_another(op: Operation, value: SSAValue) -> MergeError:
    """Return the error for a value of another function: from a finished trace, or from the host in its kernel."""
    name = f"'{value.name_hint}'" if value.name_hint else f"a value of type {value.type}"
    made = place_of_location(getattr(value.owner, "location", None))
    return MergeError(
        "F212", f"{name} is used in a function other than the one that computes it",
        place=place_of_location(op.location), notes=[("it is computed here", made)] if made is not None else [],
        hint="pass it as an argument",
    )  # fmt: skip


def _function_of(at: Any) -> Any:
    """Return the function that contains an op or a block, or None."""
    while at is not None and getattr(at, "name", "") not in ("func.func", "gpu.func"):
        at = at.parent
    return at


# ----------------------------------------------------------------------------------------------------------- partitions


_COPIES = ("cute.copy", "cute.tiled_copy")
_CALLS = {
    "cute.tiled_copy": "cute.copy with thread=", "cute.cooperative_gemm": "cute.gemm with thread=",
    "cute.cooperative_copy": "cute.cooperative_copy",
}  # fmt: skip
"""Maps an op on a whole tile to the call that emits it."""


def check_partitions(function: Operation) -> None:
    """Raise F254 for copies past the end of static tiles, and for tiles that need more threads than the block has."""
    _check_threads(function)
    known: dict[SSAValue, bool] = {}
    for op in function.walk():
        if op.name in _COPIES:
            _check_tile(op, known)


def _check_threads(function: Operation) -> None:
    from cute_dialect.passes.lowering.thread_slices import missing_slices  # late: start-up

    for missing in missing_slices(function):
        name = missing.op.name
        raise KernelTypeError(
            "F254", f"{_CALLS.get(name, name.rpartition('.')[2])}: {missing.message}",
            place=place_of_location(missing.op.location),
            hint=f"launch with block={missing.threads}, distribute the tile over fewer threads, or take several slices "
            "in each thread",
        )  # fmt: skip


def _check_tile(op: Operation, known: dict[SSAValue, bool]) -> None:
    from xdsl.dialects.builtin import UnitAttr

    from cute_dialect.dialect.tiled import PARTIAL, TilePassed  # late: start-up

    try:
        op.check_definitions()  # pyright: ignore[reportAttributeAccessIssue]
    except TilePassed as e:
        if _is_guarded(op, known):
            op.attributes[PARTIAL] = UnitAttr()
            return
        raise KernelTypeError(
            "F254", f"copy of a partition: {e.fact}", place=place_of_location(op.location),
            hint="add pred= to cute.copy, use a tile that divides the tensor, or add partial=True",
        ) from None  # fmt: skip


def _is_guarded(op: Operation, known: dict[SSAValue, bool]) -> bool:
    """Return True if a condition or loop bound around an op may differ between the threads of the block."""
    parent = op.parent_op()
    while parent is not None and not parent.name.endswith(".func"):
        deciding = list(parent.operands[:3] if parent.name == "scf.for" else parent.operands[:1])
        if parent.name == "scf.while":
            deciding = [end.operands[0] for end in (parent.regions[0].blocks[0].last_op,) if end is not None]
        if any(varies_by_thread(value, known) for value in deciding):
            return True
        parent = parent.parent_op()
    return False


# ------------------------------------------------------------------------------------------------------------ functions


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
    if launch.cluster != (1, 1, 1) and launch.fallback_cluster is None:
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
