"""Base class of decorated functions: the Python function, its options, methods and specializations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cute_dialect.errors import CuteError, UsageError
from cute_dialect.lang.tracing.tracer import finish_error, finishes_errors

if TYPE_CHECKING:
    from cute_dialect.lang.calls.compiled import Compiled
    from cute_dialect.lang.calls.specializations import CacheInfo, Specializations


class Traced:
    """Base class of decorated functions: the Python function and the options of the decorator."""

    # __call__ is an instance attribute, so that Python calls generated code directly.
    __slots__ = ("__call__", "__dict__", "__weakref__", "binds", "methods")
    __call__: Callable[..., Any]

    kind = ""

    def __init__(self, function: Any, options: dict[str, Any]):
        self.function = function
        self.options = options
        self.__call__ = self._called
        self.methods = MethodCalls(self)
        """The function's calls as a method, whose first argument is the receiver."""
        self.binds = not isinstance(function, staticmethod | classmethod)
        """True if access through an instance binds that instance as the first argument."""
        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            if hasattr(function, name):
                self.__dict__[name] = getattr(function, name)
        self.__dict__["__wrapped__"] = function

    @property
    def name(self) -> str:
        """The function's name in compiled code."""
        own = self.options.get("name") or getattr(self.function, "__name__", "kernel")
        prefix = self.options.get("prefix")
        return f"{prefix}_{own}" if prefix else own

    def set_name_prefix(self, prefix: str) -> None:
        """Prefix the function's name in code compiled from now on with ``prefix`` and ``_``."""
        if not prefix.isidentifier():
            raise UsageError(f"set_name_prefix: prefix must be an identifier, got {prefix!r}")
        self.options["prefix"] = prefix

    def __repr__(self) -> str:
        return f"<@cute.{self.kind} {getattr(self.function, '__qualname__', self.function)}>"

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if self.binds:
            return self if instance is None else BoundMethod(self, instance)
        return self if isinstance(self.function, staticmethod) else BoundMethod(self, owner)

    @finishes_errors
    def _called(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(args, kwargs)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, receiver: bool = False) -> Any:
        """Run a call that no cached call matches. ``receiver``: the first argument is the receiver of a method."""
        raise NotImplementedError

    @property
    def table(self) -> Specializations:
        """The table of compiled specializations."""
        found = self.__dict__.get("_table")
        if found is None:
            found = self.__dict__.setdefault("_table", self._new_table())
        return found

    def _new_table(self) -> Specializations:
        raise NotImplementedError

    def kinds(self) -> list[Compiled]:
        """Return the compiled specializations, least recently used first."""
        return list(self.table)

    def cache_info(self) -> CacheInfo:
        """Return the number of lookups that found a specialization (``hits``) or compiled one (``misses``), and the
        size.
        """
        return self.table.info()

    def cache_clear(self) -> None:
        """Discard the compiled specializations in memory. The compile cache on disk keeps them."""
        self.forget()
        self.table.clear()

    def forget(self) -> None:
        """Discard the cached call, so that the next call looks up its specialization again."""
        self.__dict__.pop("_recent", None)
        self.__call__ = self._called
        self.methods = MethodCalls(self)

    def recall(self, calls: Any, args: tuple[Any, ...], stream: Any, options: dict[str, Any]) -> tuple[Any, ...] | None:
        """Run a call if it is among the cached calls of a function or method, else return its arguments."""
        raise NotImplementedError


class MethodCalls:
    """The calls of a function as a method, whose first argument is the receiver. They have a fast path too."""

    # As in Traced: __call__ is an instance attribute, so that Python calls generated code directly.
    __slots__ = ("__call__", "__dict__")
    __call__: Callable[..., Any]

    def __init__(self, function: Traced):
        self.function = function
        self.__call__ = self._called

    @finishes_errors
    def _called(self, *args: Any, **kwargs: Any) -> Any:
        return self.function.call(args, kwargs, receiver=True)

    @finishes_errors
    def other(self, args: tuple[Any, ...], stream: Any, options: dict[str, Any]) -> Any:
        """Run a call that the generated fast path did not recognize."""
        left = self.function.recall(self, args, stream, options)
        if left is None:
            return None
        return self._called(*left, **(options if stream is None else {**options, "stream": stream}))


class BoundMethod:
    """A decorated method bound to its receiver, which is a compile-time constant."""

    __slots__ = ("__self__", "function")

    def __init__(self, function: Traced, receiver: object):
        self.function = function
        self.__self__ = receiver

    @property
    def __func__(self) -> Traced:
        return self.function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self.function.methods(self.__self__, *args, **kwargs)
        except CuteError as error:
            finish_error(error)
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)

    def __repr__(self) -> str:
        return f"<bound {self.function!r} of {self.__self__!r}>"


class Config:
    """The sizes of a launch, as part of a specialization's key."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[tuple[str, Any], ...]):
        self.items = items

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and repr(self.items) == repr(other.items)

    def __hash__(self) -> int:
        return hash(repr(self.items))


def plain(function: Any) -> Any:
    """Return the undecorated Python function."""
    while True:
        if isinstance(function, staticmethod | classmethod | Traced):
            function = function.__wrapped__
        else:
            return function
