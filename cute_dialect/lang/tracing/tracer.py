"""The tracer: the module under construction, the current insertion point, and emission of ops there.

One trace builds one module: a host function with the kernels that it launches, or a single kernel.  Ops are created by
name.  cute ops infer their result types, and each op carries the user's source lines as its location.  Float ops get
the fast-math flags of the enclosing :class:`fastmath`.

A :class:`Recorder` keeps the dependencies of a trace that its source does not name: called functions, and GPU
properties queried.  The cache on disk compares both before it accepts an entry
(:mod:`cute_dialect.lang.calls.cache.disk`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from cute_dialect.arch.targets import DEFAULT_TARGET, TARGETS, has_arch, name_chips
from cute_dialect.errors import CompileError, CuteError, Place
from cute_dialect.lang.tracing.errors import KernelTypeError, LayoutError
from cute_dialect.lang.tracing.source_location import (
    holds,
    is_library,
    is_user_code,
    location,
    place_at,
    place_of_frame,
    user_frames,
    user_places,
)
from cute_dialect.runtime.driver import CudaError, driver
from cute_dialect.runtime.launch_plan import LaunchError
from cute_dialect.runtime.settings import word
from cute_dialect.tracebacks import shorten

if TYPE_CHECKING:
    from types import CodeType, TracebackType

    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, Block, Operation, Region, SSAValue


class Recorder:
    """The record of one trace."""

    def __init__(self) -> None:
        self.functions: dict[int, FunctionType] = {}
        """The called functions, by the identity of their code."""
        self.multiprocessors: dict[int, int] = {}
        """The SM count of each GPU that was queried."""
        self.remarks: dict[str, None] = {}
        """Remarks of the tracer, without duplicates."""


_recorder: ContextVar[Recorder | None] = ContextVar("cute_dialect_recorder", default=None)


@contextmanager
def recorded() -> Generator[Recorder]:
    """Record the dependencies of traces within the ``with`` block."""
    recorder = Recorder()
    token = _recorder.set(recorder)
    try:
        yield recorder
    finally:
        _recorder.reset(token)


def called(f: FunctionType) -> None:
    """Record a function that a trace calls."""
    recorder = _recorder.get()
    if recorder is not None:
        recorder.functions.setdefault(id(f.__code__), f)


def remark(code: str, text: str, place: Place | None) -> None:
    """Record a remark for the user that is not an error."""
    recorder = _recorder.get()
    if recorder is not None:
        recorder.remarks[said(code, text, place)] = None


def said(code: str, text: str, place: Place | None) -> str:
    """Return the text of a remark."""
    return f"{place or '?'}: remark {code}: {text}"


def multiprocessors(device: int) -> int:
    """Return the number of SMs of a GPU. Without a GPU it is that of an H100 or H200 SXM."""
    try:
        found = driver().multiprocessors(device)
    except CudaError:
        found = DEFAULT_TARGET.sms
    recorder = _recorder.get()
    if recorder is not None:
        recorder.multiprocessors[device] = found
    return found


class LaunchFacts(NamedTuple):
    """Sizes of a launch known while its kernel is traced; None for run-time sizes."""

    grid: tuple[int | None, int | None, int | None] = (None, None, None)
    block: tuple[int | None, int | None, int | None] = (None, None, None)
    cluster: tuple[int, int, int] = (1, 1, 1)
    fallback_cluster: tuple[int, int, int] | None = (
        None  # the size of the clusters that do not have that of ``cluster``
    )


_current: ContextVar[Tracer | None] = ContextVar("cute_dialect_tracer", default=None)


@lru_cache(maxsize=1)
def context() -> Context:
    """Return the context shared by all traces. It has every dialect, loaded on first use."""
    from cute_dialect.ir.context import make_context  # late: start-up

    return make_context("all")


@lru_cache(maxsize=8192)
def parse_type(text: str) -> Attribute:
    from xdsl.parser import Parser

    return Parser(context(), text).parse_attribute()


class Tracer:
    """The function being traced, and the block to which ops are appended.

    ``converted`` converts a function that a value calls, such as the inner function of a composed layout.
    """

    def __init__(
        self,
        kind: str,
        module: ModuleOp,
        function: Operation,
        *,
        launch: LaunchFacts,
        chip: str,
        converted: Callable[[Any], Any],
    ):
        self.kind = kind
        self.module = module
        self.function = function
        self.launch = launch
        self.chip = chip
        self.converted = converted
        self.entry: Block = function.regions[0].blocks[0]
        self.block: Block = self.entry
        self._constants: dict[tuple[object, ...], SSAValue] = {}
        self._last_constant: Operation | None = None
        self._parts: set[Operation] = set()
        self.state: dict[str, Any] = {}
        """Per-function state of other modules of the language, each under its own key."""

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
        """Append an op.

        ``types``: the result types, inferred by default.  ``segments``: the operandSegmentSizes.
        """
        from cute_dialect.ir.editing import make_op  # late: start-up
        from cute_dialect.ir.xdsl_compat import append_op  # late: start-up

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
        """Append an op with one result and return the result."""
        (result,) = self.op(name, operands, types, properties, **more).results
        return result

    def after(
        self,
        value: SSAValue,
        name: str,
        operands: Sequence[SSAValue] = (),
        properties: Mapping[str, Attribute] | None = None,
    ) -> Operation:
        """Insert an op directly after the definition of ``value``, so that it dominates all uses of the value."""
        from xdsl.ir import Block

        from cute_dialect.ir.editing import make_op  # late: start-up

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
        """Return True if :meth:`after` inserted ``op``."""
        return op in self._parts

    def _inferred(self, cls: type[Any], types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> Any:
        from cute_dialect.algebra.leaf import AlgebraError  # late: start-up
        from cute_dialect.dialect.inference import infer_types_memo  # late: start-up

        try:
            return infer_types_memo(cls, types, properties)
        except AlgebraError as e:
            raise LayoutError("F240", str(e)) from None

    def constant(self, value: int | float, type: Attribute) -> SSAValue:
        """Return a constant. Equal constants share one op at the top of the function."""
        from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, IntegerType

        key = (float(value).hex() if isinstance(value, float) else int(value), type)
        known = self._constants.get(key)
        if known is None:
            integer = isinstance(type, IntegerType | IndexType)
            attribute: Any = IntegerAttr(int(value), type) if integer else FloatAttr(float(value), type)  # pyright: ignore
            known = self._constants[key] = self._at_top("arith.constant", type, {"value": attribute})
        return known

    def static(self, type: str | Attribute) -> SSAValue:
        """Return the value of a static cute type. Equal types share one op at the top of the function."""
        t = parse_type(type) if isinstance(type, str) else type
        known = self._constants.get((None, t))
        if known is None:
            known = self._constants[None, t] = self._at_top("cute.static", t, {})
        return known

    def at_top(self, name: str, type: Attribute, operands: Sequence[SSAValue] = ()) -> SSAValue:
        """Emit an op at the start of the function (an atom, tiled copy or tiled MMA).  Equal ops are emitted once."""
        key = (name, type, *operands)
        known = self._constants.get(key)
        if known is None:
            known = self._constants[key] = self._at_top(name, type, {}, operands)
        return known

    def _at_top(
        self, name: str, type: Attribute, properties: Mapping[str, Attribute], operands: Sequence[SSAValue] = ()
    ) -> SSAValue:
        from cute_dialect.ir.editing import make_op  # late: start-up

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
        """The last constant at the top of the function."""
        return self._last_constant

    @contextmanager
    def into(self, block: Block) -> Generator[Block]:
        """Append to ``block`` within the ``with`` block."""
        saved, self.block = self.block, block
        try:
            yield block
        finally:
            self.block = saved


@lru_cache(maxsize=2048)
def op_class(name: str) -> type[Any]:
    found = context().get_optional_op(name)
    if found is None:
        # unreachable: the language names registered ops only
        raise ValueError(f"unknown op '{name}'")
    return found


def active() -> Tracer | None:
    """Return the tracer of the running trace, or None."""
    return _current.get()


def current() -> Tracer:
    """Return the tracer of the running trace.  Raises F100 if there is none."""
    found = _current.get()
    if found is None:
        raise CompileError(
            "F100",
            "this works only while a function under @cute.kernel or @cute.jit is traced",
            hint="call it inside such a function",
        )
    return found


@contextmanager
def activate(tracer: Tracer) -> Generator[Tracer]:
    """Make ``tracer`` current within the ``with`` block."""
    token = _current.set(tracer)
    try:
        yield tracer
    finally:
        _current.reset(token)


def finish_error(error: CuteError) -> None:
    """Add the user's call to an error that leaves the outermost call, and shorten the traceback.

    The call becomes the place of an error that has none, otherwise the last entry of its call chain. Errors inside a
    trace are unchanged.
    """
    if active() is not None:
        return
    # Host functions of the package in files with kernels, such as cute.testing.prove, are not the user's.
    here = next((place_of_frame(f) for f in user_frames() if not is_library(f.f_code)), None)
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
    """Decorate the outermost function of a call so that :func:`finish_error` completes the errors that leave it."""

    @wraps(call)
    def finishing(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except CuteError as error:
            finish_error(error)
            raise

    return cast("_F", finishing)


def locate(error: CompileError) -> None:
    """Set the place and call chain of an error from the user's frames in its traceback.

    Each trace that the error leaves calls this again, so the frames of a host function follow those of its kernels.
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
    if error.stated is None:  # An error raised in a library is reported at the line that called the library.
        outside = next((n for n, (code, _) in enumerate(frames) if not is_library(code)), 0)
        frames = frames[outside:]
    calls = [place for _, place in frames]
    if error.stated is not None:  # Frames that contain the stated place led to it and are not its callers.
        inner = [n for n, (code, _) in enumerate(frames) if holds(code, error.stated)]
        calls = calls[inner[-1] + 1 if inner else 0 :]
    elif places := calls or user_places()[:1]:
        error.place, *calls = places
    before: list[Place | None] = [error.place, *calls]
    error.calls = [p for p, inside in zip(calls, before) if inside is None or not p.encloses(inside)]


# ------------------------------------------------------------------------------------------------ modules and functions

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


FLAGS = ("none", "reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "fast")
"""Fast-math flags (LLVM LangRef, "Fast-Math Flags")."""


def emit(name: str, operands: Sequence[SSAValue], type: Attribute | None = None, **properties: Attribute) -> SSAValue:
    """Append an op with one result. The result type defaults to that of the first operand."""
    return current().value(name, operands, [operands[0].type if type is None else type], properties)


def require_chip(what: str, needed: int | str) -> None:
    """Raise F280 unless the target supports an instruction.

    ``needed`` is ``90`` for that architecture or a later one, or a rule of :func:`~cute_dialect.arch.targets.has_arch`,
    such as ``sm_90a`` or ``sm_100f|sm_110f``.
    """
    chip = current().chip
    rule = needed if isinstance(needed, str) else f"sm_{needed}"
    if chip not in TARGETS or has_arch(chip, rule):
        return
    exact = not rule[-1].isdigit()
    raise KernelTypeError(
        "F280", f"{what} needs {name_chips(rule)}{'' if exact else ' or later'}, but the target is {chip}"
    )


def has_instruction(rule: str) -> bool:
    """Return True if the target is a known chip that satisfies a rule; see :func:`require_chip`."""
    return current().chip in TARGETS and has_arch(current().chip, rule)


def shaped(element: Attribute, like: SSAValue) -> Attribute:
    """Return ``element``, or a vector of it if ``like`` is a vector."""
    if like.type.name != "vector":
        return element
    from xdsl.dialects.builtin import VectorType

    return VectorType(element, like.type.get_shape())


def alike(a: SSAValue, b: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Return two operands with the same type: a number is broadcast if the other operand is a vector."""
    if a.type != b.type:
        if a.type.name == "vector":
            return a, emit("vector.broadcast", [b], a.type)
        if b.type.name == "vector":
            return emit("vector.broadcast", [a], b.type), b
    return a, b


def float_flags(flags: str | None = None) -> dict[str, Attribute]:
    """Return the fast-math property of float ops: that of the enclosing :class:`fastmath`, else ``contract``."""
    if flags is None:
        tracer = active()
        flags = tracer.state.get("fastmath", "contract") if tracer is not None else "contract"
    return {"fastmath": parse_type(f"#arith.fastmath<{flags}>")}


def no_wrap_flags() -> dict[str, Attribute]:
    """Return the property of integer ops that may wrap."""
    return {"overflowFlags": parse_type("#arith.overflow<none>")}


class fastmath:
    """Set the fast-math flags of float ops in a ``with`` block, such as ``"fast"``, ``"none"`` or ``"contract,nsz"``.

    The default is ``contract``, which allows fused multiply-add.  ``nnan`` and ``ninf`` are promises, which the
    interpreter checks::

        with cute.fastmath("none"):
            error = a * b - p
    """

    def __init__(self, flags: str = "fast"):
        self.flags = ",".join(flag.strip() for flag in flags.split(","))
        for flag in self.flags.split(","):
            if flag not in FLAGS:
                raise KernelTypeError("F238", f"fastmath: unknown flag '{flag}'; flags: {', '.join(FLAGS)}")
        self._saved: list[str | None] = []

    def __enter__(self) -> None:
        state = current().state
        self._saved.append(state.get("fastmath"))
        state["fastmath"] = self.flags

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None) -> None:
        saved = self._saved.pop()
        state = current().state
        if saved is None:
            state.pop("fastmath", None)
        else:
            state["fastmath"] = saved


# ------------------------------------------------------------------------------------------------------------ vectors


@lru_cache(maxsize=1024)
def vector_of_length(element: Attribute, n: int) -> Attribute:
    from xdsl.dialects.builtin import VectorType

    return VectorType(element, [n])


@lru_cache(maxsize=4096)
def _positions(numbers: tuple[int, ...]) -> Attribute:
    from xdsl.dialects.builtin import DenseArrayBase, i64

    return DenseArrayBase.from_list(i64, numbers)


def extract(vector: SSAValue, index: int) -> SSAValue:
    return emit("vector.extract", [vector], vector.type.element_type, static_position=_positions((index,)))


def shuffle(vector: SSAValue, picked: Sequence[int], other: SSAValue | None = None) -> SSAValue:
    """Return selected elements of a vector. Indices past its end select elements of ``other``."""
    chosen = tuple(picked)
    if other is None and chosen == tuple(range(vector.type.get_shape()[0])):
        return vector
    operands = [vector, vector if other is None else other]
    type = vector_of_length(vector.type.element_type, len(chosen))
    return emit("vector.shuffle", operands, type, mask=_positions(chosen))


def concatenated(a: SSAValue, b: SSAValue) -> SSAValue:
    """Return the concatenated elements of two vectors of the same type."""
    return shuffle(a, range(a.type.get_shape()[0] + b.type.get_shape()[0]), b)
