"""Callees in converted code: a converted twin, a replacement of a builtin, or the function itself."""

from __future__ import annotations

import types
from functools import partial
from inspect import signature
from types import FunctionType, MethodType
from typing import Any

from cute_dialect.lang.rewrite.convert import conversion_of, is_converted, is_users
from cute_dialect.lang.tracing.tracer import active

__all__ = ["callee", "callee_of_op"]


def callee(f: Any) -> Any:
    """Return the function to call in place of ``f``."""
    kind = type(f)
    if kind is FunctionType:
        return _function(f)
    if kind is MethodType:
        inner = f.__func__
        made = callee(inner)
        return f if made is inner else MethodType(made, f.__self__)
    if kind is types.BuiltinFunctionType or kind is type:
        if active() is None:
            return f
        from cute_dialect.lang.control.builtins import OVERLAYS

        overlay = OVERLAYS.get(f)
        if overlay is not None:
            return overlay
        return f if kind is not type else _class(f)
    if kind is partial:
        made = callee(f.func)
        return f if made is f.func else partial(made, *f.args, **f.keywords)
    if isinstance(f, type):
        return f
    call = next((c.__dict__["__call__"] for c in kind.__mro__ if "__call__" in c.__dict__), None)
    if type(call) is FunctionType:
        made = _function(call)
        return f if made is call else MethodType(made, f)
    return f


def callee_of_op(f: Any) -> Any:
    """Return the function to call in place of ``f``, without ``loc=`` and ``ip=`` if it does not take them."""
    made = callee(f)
    try:
        parameters = signature(made).parameters.values()
    except (TypeError, ValueError):
        return made
    if any(p.name in ("loc", "ip") or p.kind is p.VAR_KEYWORD for p in parameters):
        return made

    def without_place(*args: Any, loc: object = None, ip: object = None, **kwargs: Any) -> Any:
        return made(*args, **kwargs)

    return without_place


def _function(f: FunctionType) -> FunctionType:
    code = f.__code__
    if is_converted(code) or not is_users(code.co_filename, f.__module__) or "__cute_native__" in f.__dict__:
        return f
    conversion = conversion_of(code, f.__globals__)
    return f if conversion is None else conversion.bind(f)


def _class(cls: type) -> Any:
    """Return a class, or a constructor that runs its converted ``__init__``."""
    init = cls.__init__
    if type(init) is not FunctionType or cls.__new__ is not object.__new__:
        return cls
    made = _function(init)
    if made is init:
        return cls

    def construct(*args: Any, **kwargs: Any) -> Any:
        instance = object.__new__(cls)
        made(instance, *args, **kwargs)
        return instance

    return construct
