"""The specializations of a function, each compiled at the first call that needs it.

A specialization is selected by the static parts of the arguments, the generic parameters and the compile options.
Each call compares the functions, globals and objects that its trace read
(:mod:`cute_dialect.lang.calls.cache.dependencies`).
"""

from __future__ import annotations

import inspect
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.lang.calls.arguments import Spec, StaticSpec, spec_of
from cute_dialect.lang.calls.cache.dependencies import Watched, watched_by
from cute_dialect.lang.calls.cache.disk import plan_of
from cute_dialect.lang.calls.cache.keys import restored, snapshot, static_key
from cute_dialect.lang.calls.compiled import CALL_OPTIONS, Compiled, kernel_assertions
from cute_dialect.lang.calls.options import Options, current_target
from cute_dialect.lang.calls.traced import Reified, plain, reify
from cute_dialect.lang.rewrite.source import is_users_function
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.tracing.source_location import place_of
from cute_dialect.lang.tracing.tracer import recorded, said
from cute_dialect.lang.values.annotations import TensorAnnotation, is_constexpr, is_number_type

if TYPE_CHECKING:
    from cute_dialect.lang.calls.host import Program
    from cute_dialect.lang.calls.traced import Traced

MOST = 512
"""Number of specializations of one function kept in memory."""
MOST_OF_ONE = 32
"""Number of values of one constant argument before a remark is issued."""


class CacheInfo(NamedTuple):
    """Statistics of the specializations: lookups that hit and missed, current and maximum number."""

    hits: int
    misses: int
    currsize: int
    maxsize: int = MOST


class Call(NamedTuple):
    """A call: the function with its generic parameters set, and its arguments with their specs."""

    function: Callable[..., Any]
    signature: inspect.Signature
    specs: dict[str, Spec]
    values: dict[str, Any]
    key: tuple[Any, ...]
    receiver: str = ""
    """The name of the parameter that receives a method's object."""

    def bound(self) -> inspect.BoundArguments:
        """Return the arguments as ``inspect`` binds them; a trace fills in the values."""
        return inspect.BoundArguments(self.signature, dict(self.values))  # pyright: ignore[reportArgumentType]


class _Head(NamedTuple):
    """An undecorated function and its signature, cached while the function does not change."""

    function: Callable[..., Any]
    signature: inspect.Signature


def head_of(traced: Traced) -> _Head:
    """Return the undecorated function and its signature."""
    found, state = traced.__dict__.get("_head", (None, ()))
    if found is None or any(a is not b for a, b in zip(state, _state(found.function), strict=True)):
        function = plain(traced.function)
        found = _Head(function, inspect.signature(function))
        traced.__dict__["_head"] = (found, _state(function))
    return found


def _state(function: Any) -> tuple[object, ...]:
    """Return the objects that determine a function's signature."""
    return tuple([getattr(function, n, None) for n in ("__code__", "__defaults__", "__kwdefaults__")])


def read_call(
    traced: Traced, args: tuple[Any, ...], kwargs: dict[str, Any], *, partial: bool = False, receiver: bool = False
) -> Call:
    """Return the call described by these arguments.

    With ``partial``, arguments may be missing if their annotations are specific enough.  Raises F116 for arguments that
    the function does not take, and F12x and F130.
    """
    function, signature = head_of(traced)
    try:
        call = (signature.bind_partial if partial else signature.bind)(*args, **kwargs)
    except TypeError as e:
        from cute_dialect.lang.control.errors import arguments_error  # late: start-up

        text, hint = arguments_error(e, signature, kwargs, CALL_OPTIONS)
        raise KernelTypeError("F116", f"'{traced.name}': {text}", hint=hint) from None
    given = call.arguments
    reified: Reified = reify(traced, function, given)
    notes = reified.annotations
    values: dict[str, Any] = {}
    specs: dict[str, Spec] = {}
    for at, (name, parameter) in enumerate(signature.parameters.items()):
        if name in given:
            values[name] = given[name]
            if at == 0 and receiver:
                specs[name] = StaticSpec(given[name], static_key(given[name], name))
            else:
                specs[name] = spec_of(given[name], notes.get(name), name)
        elif parameter.default is not parameter.empty:
            values[name] = parameter.default
            specs[name] = _of_default(parameter.default, notes.get(name), name)
        elif parameter.kind is parameter.VAR_POSITIONAL or parameter.kind is parameter.VAR_KEYWORD:
            empty: Any = () if parameter.kind is parameter.VAR_POSITIONAL else {}
            values[name] = empty
            specs[name] = StaticSpec(empty, static_key(empty))
        else:
            values[name] = notes.get(name)
            specs[name] = _of_annotation(traced, values[name], name)
    key = (reified.key, tuple(specs.items()))
    return Call(reified.function, signature, specs, values, key, next(iter(specs)) if receiver else "")


def _of_annotation(traced: Traced, note: object, name: str) -> Spec:
    """Return the spec of an omitted argument.  Raises F116 if the parameter's annotation does not determine it."""
    found: Spec | None = None
    if note is not None and not is_constexpr(note):
        with suppress(KernelTypeError):
            found = spec_of(note, None if isinstance(note, TensorAnnotation) else note, name)
    if found is None or isinstance(found, StaticSpec):  # The annotation itself would be a constant.
        hint = "pass an array, or annotate the parameter with an element type and a layout"
        is_tensor = isinstance(note, TensorAnnotation) or getattr(note, "__name__", "") == "Tensor"
        raise KernelTypeError(
            "F116", f"'{traced.name}': missing a required argument: '{name}'", hint=hint if is_tensor else ""
        )
    return found


def _of_default(default: object, note: object, name: str) -> Spec:
    """Return the spec of an omitted argument: a constant, unless its annotation is a number type."""
    if is_number_type(note):
        return spec_of(default, note, name)
    return StaticSpec(default, static_key(default, name))


class Specializations:
    """All specializations of one function. ``trace`` traces a call of it, as ``lang.calls.host`` does."""

    def __init__(self, traced: Traced, trace: Callable[[Traced, Call, Any, Options], Program]):
        self.traced = traced
        self._trace = trace
        self._compiled: OrderedDict[Any, Compiled] = OrderedDict()
        self._lock = threading.RLock()
        self._making: dict[Any, threading.Lock] = {}
        self._seen: dict[str, set[int]] = {}
        """Hashes of the values seen for each constant argument, up to a limit."""
        self._hits = 0
        self._misses = 0

    def __iter__(self) -> Iterator[Compiled]:
        return iter(list(self._compiled.values()))

    def info(self) -> CacheInfo:
        """Return the statistics."""
        return CacheInfo(self._hits, self._misses, len(self._compiled))

    def clear(self) -> None:
        """Discard all specializations."""
        with self._lock:
            self._compiled.clear()
            self._seen.clear()
            self._hits = self._misses = 0

    def find(self, call: Call, options: Options | None = None, config: Any = None) -> Compiled:
        """Return the specialization for a call, compiling it if needed. ``config`` is an additional part of the key."""
        options = options or Options(current_target())
        key = (call.key, options, config)
        found = self._known(key)
        if found is not None:
            return found
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            found = self._known(key)
            if found is not None:
                return found
            try:
                made = self._made(call, config, options)
            finally:
                with self._lock:
                    self._making.pop(key, None)
            with self._lock:
                self._misses += 1
                self._compiled[key] = made
                if len(self._compiled) > MOST:
                    self._compiled.popitem(last=False)
            return made

    def _made(self, call: Call, config: Any, options: Options) -> Compiled:
        """Load a specialization from disk, or trace it."""
        constants = [s.value for s in call.specs.values() if isinstance(s, StaticSpec)]
        watched = watched_by(call.function, *constants)
        plan = plan_of(self.traced, call, config, options)
        found = plan.find() if plan is not None else None
        # A trace uses placeholders for run-time arguments, so that a specialization keeps no array alive.
        own = call._replace(values={n: s.value if isinstance(s, StaticSpec) else None for n, s in call.specs.items()})

        def trace() -> Program:
            state = snapshot(*constants)
            try:
                return self._trace(self.traced, own, config, options)
            finally:
                restored(state)

        with recorded() as recorder:
            made = Compiled(self.traced.name, call.signature, call.specs, options, trace, found, call.receiver)
        if found is not None:
            made.watched = watched.after_trace(watched_by(*plan.called_by_name()) if plan is not None else Watched())
        else:
            changed = watched.has_changed()
            made.watched = watched.after_trace(watched_by(*filter(is_users_function, recorder.functions.values())))
            made.notes += recorder.remarks
            if plan is not None:
                plan.note(recorder, changed=changed, asserts=bool(kernel_assertions(made.program.module)))
                made.plan = plan
                if plan.why:
                    text = f"'{self.traced.name}' is retraced in every process: {plan.why}"
                    made.notes.append(said("R3", text, place_of(call.function)))
        self._count(call, made)
        return made

    def _count(self, call: Call, made: Compiled) -> None:
        """Issue a remark for a constant number with so many values that a run-time argument would save compilations."""
        for name, spec in call.specs.items():
            # Other types cannot be run-time arguments.
            if isinstance(spec, StaticSpec) and isinstance(spec.value, int | float):
                seen = self._seen.setdefault(name, set())
                if len(seen) <= MOST_OF_ONE:
                    seen.add(hash(spec))
                if len(seen) > MOST_OF_ONE:
                    text = (
                        f"'{name}' of '{self.traced.name}' is a compile-time constant and had more than {MOST_OF_ONE} "
                        "values, each compiled separately; a run-time number (cute.Int32, no annotation) compiles once"
                    )
                    made.notes.append(said("R4", text, place_of(call.function)))

    def _known(self, key: Any) -> Compiled | None:
        with self._lock:
            found = self._compiled.get(key)
            if found is None:
                return None
            if found.watched.has_changed():
                del self._compiled[key]
                return None
            self._compiled.move_to_end(key)
            self._hits += 1
            return found


def split_options(traced: Traced, kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split keyword arguments into those of the function and the options of the call.

    ``no_cache`` compiles for this call only.
    """
    if not kwargs:
        return kwargs, {}
    own = head_of(traced).signature.parameters
    options = {k: v for k, v in kwargs.items() if k in (*CALL_OPTIONS, "no_cache") and k not in own}
    return {k: v for k, v in kwargs.items() if k not in options}, options
