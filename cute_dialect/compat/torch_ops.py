"""Host functions as torch operators for ``torch.compile`` and ``torch.export``: ``cute.torch.custom_op``."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any

from cute_dialect.errors import UsageError
from cute_dialect.lang.calls.decorators import JitFunction
from cute_dialect.lang.values.annotations import Stream, TensorAnnotation, annotations_of
from cute_dialect.lang.values.dtypes import Boolean, NumericType
from cute_dialect.lang.values.tensors import Tensor

if TYPE_CHECKING:
    import torch

__all__ = ["custom_op"]

_PLAIN = {int: "int", float: "float", bool: "bool", str: "str"}


def custom_op(name: str, mutates_args: str | Iterable[str]) -> Callable[[JitFunction], torch.library.CustomOpDef]:
    """Return a decorator that registers a host function as the torch operator ``name``.

    A parameter without an annotation or default is a tensor. Numbers, ``Constexpr[int]`` and the like become ``int``,
    ``float``, ``bool`` and ``str`` in torch's schema. The operator returns nothing, so tracing it needs no memory.
    Tensors in host memory run on the interpreter. Raises UsageError for a function that cannot be an operator::

        @cute.torch.custom_op("mine::scale", mutates_args="out")
        @cute.jit
        def scale(x: cute.Tensor, out: cute.Tensor, factor: cute.Float32): ...

        torch.ops.mine.scale(x, out, 2.0)          # also in a function under torch.compile

    Args:
        name: the qualified name, ``"library::name"``.
        mutates_args: the parameters that the function writes to: one name or several.
    """
    written = (mutates_args,) if isinstance(mutates_args, str) else tuple(mutates_args)

    def register(f: JitFunction) -> torch.library.CustomOpDef:
        import torch

        if not isinstance(f, JitFunction):
            raise UsageError(f"custom_op must decorate a host function under @cute.jit, got {f!r}")
        schema = _schema(f, written)

        def run(*args: Any, **named: Any) -> None:
            tensors = (x for x in (*args, *named.values()) if isinstance(x, torch.Tensor))
            on_host = any(x.device.type == "cpu" for x in tensors)
            f(*args, **named, **({"device": "cpu"} if on_host else {}))

        made = torch.library.custom_op(name, run, mutates_args=written, schema=schema)
        made.register_fake(lambda *args, **named: None)
        return made

    return register


def _schema(f: JitFunction, written: tuple[str, ...]) -> str:
    """Return torch's schema of the parameters of a host function."""
    function = inspect.unwrap(f)
    annotations = annotations_of(function, {})
    parameters = inspect.signature(function).parameters
    unknown = [n for n in written if n not in parameters]
    if unknown:
        raise UsageError(f"mutates_args: unknown parameter '{unknown[0]}'; parameters: {', '.join(parameters)}")
    parts: list[str] = []
    for name, parameter in parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise UsageError(f"a torch operator cannot have the variadic parameter '{name}'")
        default = parameter.default
        kind = _kind(name, annotations.get(name), default)
        if name in written:
            if kind not in ("Tensor", "Tensor?"):
                raise UsageError(f"mutates_args: '{name}' must be a tensor, got {kind}")
            kind = kind.replace("Tensor", f"Tensor({chr(97 + len(parts))}!)")
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        shown = f'"{default}"' if isinstance(default, str) else default
        parts.append(f"{kind} {name}" + ("" if default is parameter.empty else f"={shown}"))
    return f"({', '.join(parts)}) -> ()"


def _kind(name: str, annotation: Any, default: Any) -> str:
    """Return the torch schema type of a parameter."""
    if typing.get_origin(annotation) in (typing.Union, UnionType):
        inner = [a for a in typing.get_args(annotation) if a is not NoneType]
        if len(inner) == 1:
            return _kind(name, inner[0], inspect.Parameter.empty).rstrip("?") + "?"
    if isinstance(annotation, NumericType):
        return "bool" if annotation is Boolean else "float" if annotation.is_float else "int"
    constant = getattr(annotation, "args", ())
    if len(constant) == 1 and constant[0] in _PLAIN:
        return _PLAIN[constant[0]]
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if annotation is Tensor or isinstance(annotation, TensorAnnotation):
        return "Tensor"
    if annotation is None and type(default) in _PLAIN:
        return _PLAIN[type(default)]
    if annotation is None and default is inspect.Parameter.empty:
        return "Tensor"
    what = "a stream; the operator uses torch's current stream" if annotation is Stream else f"{annotation!r}"
    raise UsageError(f"parameter '{name}' has no torch type: {what}")
