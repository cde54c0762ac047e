"""The tracer: the module that is being made, and where in it ops go.

One trace makes one module: a host function and the kernels that it launches, or one kernel.  Ops are made by name, cute
ops infer their results; each knows the user's lines that led to it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from cute_dialect.errors import CuteError
from cute_dialect.front.errors import CompileError, LayoutError, Place, StaticError, UnboundError
from cute_dialect.front.source_location import (
    holds,
    is_library,
    is_user_code,
    location,
    place_at,
    user_places,
)
from cute_dialect.runtime.binding import LaunchError
from cute_dialect.runtime.settings import word
from cute_dialect.tracebacks import is_full, shorten

if TYPE_CHECKING:
    from types import CodeType

    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

__all__ = [
    "LaunchFacts", "Tracer", "active", "context", "current", "finish_error", "finishes_errors", "parse_type", "tracing",
]  # fmt: skip


class LaunchFacts(NamedTuple):
    """What a kernel's launch says while the kernel is traced: sizes that are static, None for others."""

    grid: tuple[int | None, int | None, int | None] = (None, None, None)
    block: tuple[int | None, int | None, int | None] = (None, None, None)
    cluster: tuple[int, int, int] = (1, 1, 1)


_current: ContextVar[Tracer | None] = ContextVar("cute_dialect_tracer", default=None)


@lru_cache(maxsize=1)
def context() -> Context:
    """Return the context of all traces: every dialect, each read when it is first used."""
    from cute_dialect.ir.context import make_context

    return make_context("all")


@lru_cache(maxsize=8192)
def parse_type(text: str) -> Attribute:
    """Return the type or attribute that a text says."""
    from xdsl.parser import Parser

    return Parser(context(), text).parse_attribute()


class Tracer:
    """The function that is being traced, and the block of it that ops go to."""

    def __init__(self, kind: str, module: ModuleOp, function: Operation, *, launch: LaunchFacts, chip: str):
        self.kind = kind
        self.module = module
        self.function = function
        self.launch = launch
        self.chip = chip
        self.entry: Block = function.regions[0].blocks[0]
        self.block: Block = self.entry
        self._constants: dict[tuple[object, ...], SSAValue] = {}
        self._last_constant: Operation | None = None
        self._parts: set[Operation] = set()
        self.state: dict[str, Any] = {}
        """What modules of the front-end keep for this function, by a name of their own."""

    # ------------------------------------------------------------------------------------------------------ ops

    def op(
        self,
        name: str,
        operands: Sequence[SSAValue] = (),
        types: Sequence[Attribute] | None = None,
        properties: Mapping[str, Attribute] | None = None,
        *,
        segments: Sequence[int] | None = None,
        regions: Sequence[Region] = (),
        attributes: Mapping[str, Attribute] | None = None,
    ) -> Operation:
        """Append an op.  ``types``: those of the results, inferred if not given; ``segments``: operandSegmentSizes."""
        from cute_dialect.ir.editing import make_op
        from cute_dialect.ir.xdsl_compat import append_op

        cls = op_class(name)
        props = dict(properties) if properties else {}
        if types is None:
            found = self._inferred(cls, [v.type for v in operands], props)
        else:
            found = types
        if segments is not None:
            from xdsl.dialects.builtin import DenseArrayBase, i32

            props["operandSegmentSizes"] = DenseArrayBase.from_list(i32, list(segments))
        if regions or attributes:
            op = cls.create(
                operands=list(operands), result_types=list(found), properties=props, regions=list(regions),
                attributes=dict(attributes or {}), location=location(),
            )  # fmt: skip
        else:
            op = make_op(cls, operands, found, props, location())
        append_op(self.block, op)
        return op

    def value(
        self,
        name: str,
        operands: Sequence[SSAValue] = (),
        types: Sequence[Attribute] | None = None,
        properties: Mapping[str, Attribute] | None = None,
        **more: Any,
    ) -> SSAValue:
        """Append an op with one result and return that."""
        (result,) = self.op(name, operands, types, properties, **more).results
        return result

    def after(
        self,
        value: SSAValue,
        name: str,
        operands: Sequence[SSAValue] = (),
        properties: Mapping[str, Attribute] | None = None,
    ) -> Operation:
        """Insert an op where ``value`` is defined, right behind that: it serves all places that see the value."""
        from xdsl.ir import Block

        from cute_dialect.ir.editing import make_op

        cls = op_class(name)
        props = dict(properties) if properties else {}
        op = make_op(cls, operands, self._inferred(cls, [v.type for v in operands], props), props, location())
        owner = value.owner
        if not isinstance(owner, Block):
            block = owner.parent
            assert block is not None, owner
            block.insert_op_after(op, owner)
        elif owner.first_op is not None:
            owner.insert_op_before(op, owner.first_op)
        else:
            owner.add_op(op)
        self._parts.add(op)
        return op

    def is_part(self, op: Operation) -> bool:
        """Return True if :meth:`after` inserted an op."""
        return op in self._parts

    def _inferred(self, cls: type[Any], types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> Any:
        from cute_dialect.algebra.leaf import AlgebraError
        from cute_dialect.ops.inference import infer_types_memo

        try:
            return infer_types_memo(cls, types, properties)
        except AlgebraError as e:
            raise LayoutError("F240", str(e)) from None

    def constant(self, value: int | float, type: Attribute) -> SSAValue:
        """Return a constant; one of each in a function, at its top."""
        from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, IntegerType

        key = (float(value).hex() if isinstance(value, float) else int(value), type)
        known = self._constants.get(key)
        if known is None:
            integer = isinstance(type, IntegerType | IndexType)
            attribute: Any = IntegerAttr(int(value), type) if integer else FloatAttr(float(value), type)  # pyright: ignore
            known = self._constants[key] = self._at_top("arith.constant", type, {"value": attribute})
        return known

    def static(self, type: str | Attribute) -> SSAValue:
        """Return the value of a static cute type (or of its text); one of each in a function, at its top."""
        t = parse_type(type) if isinstance(type, str) else type
        known = self._constants.get((None, t))
        if known is None:
            known = self._constants[None, t] = self._at_top("cute.static", t, {})
        return known

    def at_top(self, name: str, type: Attribute, operands: Sequence[SSAValue] = ()) -> SSAValue:
        """Return the result of an op at the function's top, one of each: an atom, a tiled copy, a tiled MMA."""
        key = (name, type, *operands)
        known = self._constants.get(key)
        if known is None:
            known = self._constants[key] = self._at_top(name, type, {}, operands)
        return known

    def _at_top(
        self, name: str, type: Attribute, properties: Mapping[str, Attribute], operands: Sequence[SSAValue] = ()
    ) -> SSAValue:
        from cute_dialect.ir.editing import make_op

        op = make_op(op_class(name), operands, [type], properties, location())
        if self._last_constant is not None:
            self.entry.insert_op_after(op, self._last_constant)
        elif self.entry.first_op is not None:
            self.entry.insert_op_before(op, self.entry.first_op)
        else:
            self.entry.add_op(op)
        self._last_constant = op
        return op.results[0]

    @property
    def last_constant(self) -> Operation | None:
        """The last of the constants at the function's top."""
        return self._last_constant

    @contextmanager
    def into(self, block: Block) -> Generator[Block]:
        """Append to ``block`` inside."""
        saved, self.block = self.block, block
        try:
            yield block
        finally:
            self.block = saved


@lru_cache(maxsize=2048)
def op_class(name: str) -> type[Any]:
    """Return the class of an op."""
    found = context().get_optional_op(name)
    if found is None:
        # unreachable: the front-end names ops that there are
        raise ValueError(f"there is no op '{name}'")
    return found


def active() -> Tracer | None:
    """Return the tracer of the trace that runs, if one does."""
    return _current.get()


def current() -> Tracer:
    """Return the tracer of the trace that runs.  Raises F100 where none does."""
    found = _current.get()
    if found is None:
        raise CompileError(
            "F100", "this works inside of a function under @cute.kernel or @cute.jit only, while that is traced"
        )
    return found


@contextmanager
def tracing(tracer: Tracer) -> Generator[Tracer]:
    """Let ``tracer`` be the current one inside; errors that leave get the user's place."""
    token = _current.set(tracer)
    try:
        yield tracer
    except CompileError as e:
        if isinstance(e, StaticError):
            from cute_dialect.front.failures import explained

            explained(e)
        locate(e)
        raise
    except Exception as e:
        from cute_dialect.front.failures import translated

        meant = translated(e, tracer)
        if meant is None:
            raise
        meant.__traceback__ = e.__traceback__
        locate(meant)
        if not isinstance(meant, UnboundError) and not isinstance(e, RecursionError):
            meant.original = e
        raise meant from (meant.original if is_full() else None)
    finally:
        _current.reset(token)


def finish_error(error: CuteError) -> None:
    """Complete an error that leaves the outermost call of the language: add the user's call, shorten the traceback.

    The call becomes the position of an error that has none, and else the last of the calls that led to it. An error
    inside of a trace is left unchanged.
    """
    if active() is not None:
        return
    here = next(iter(user_places()), None)
    if isinstance(error, CompileError):
        if error.place is None:
            error.place = here
        elif here is not None and here != error.place and error.calls[-1:] != [here]:
            error.calls.append(here)
    elif isinstance(error, LaunchError) and error.call is None:
        error.call = here
    if word("CUTE_TRACEBACK", ("user", "full")) != "full":
        shorten(error)


_F = TypeVar("_F", bound=Callable[..., Any])


def finishes_errors(call: _F) -> _F:
    """Decorate the outermost function of a call: errors that leave it are finished."""

    @wraps(call)
    def finishing(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except CuteError as error:
            finish_error(error)
            raise

    return cast("_F", finishing)


def locate(error: CompileError) -> None:
    """Say where an error comes from: the innermost frame of the user's, and what called it.

    Each trace that the error leaves does so again: the frames of a host function come after those of its kernels.
    """
    frames: list[tuple[CodeType, Place]] = []
    at = error.__traceback__
    while at is not None:
        code = at.tb_frame.f_code
        if is_user_code(code):
            frames.append((code, place_at(code, at.tb_lasti)))
        at = at.tb_next
    frames.reverse()
    if not error.is_located:
        error.is_located, error.stated = True, error.place
    if error.stated is None:  # what the library says is said of the line that called it
        outside = next((n for n, (code, _) in enumerate(frames) if not is_library(code)), 0)
        frames = frames[outside:]
    calls = [place for _, place in frames]
    if error.stated is not None:  # the frames that it is in led to it themselves
        inner = [n for n, (code, _) in enumerate(frames) if holds(code, error.stated)]
        calls = calls[inner[-1] + 1 if inner else 0 :]
    elif places := calls or user_places()[:1]:
        error.place, *calls = places
    before: list[Place | None] = [error.place, *calls]
    error.calls = [p for p, inside in zip(calls, before) if inside is None or not p.encloses(inside)]
