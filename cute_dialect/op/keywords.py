"""Check for keyword arguments that a function does not have, and for missing arguments.

>>> def scale(x, factor=1.0, **unknown): ...
>>> check_keywords("scale", scale, {"facter": 2.0}, interpreted=False)
Traceback (most recent call last):
    ...
cute_dialect.op.errors.ArgumentError: scale() has no argument 'facter'; did you mean 'factor'? Arguments: x, factor

A required argument of a public function has a default, :class:`Missing`, that raises ArgumentError when it is used.
Calls with all arguments pay nothing for this check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import wraps
from inspect import Parameter, signature
from types import FunctionType
from typing import Any, NoReturn, SupportsFloat, TypeVar, cast

from cute_dialect.op.errors import ArgumentError, DtypeError, UnsupportedError
from cute_dialect.op.signature_types import Interpreted


def check_keywords(
    call: str, function: Callable[..., Any], given: Mapping[str, object], *, also: Callable[..., Any] | None = None,
    without: Sequence[str] = (), interpreted: bool = True, spellings: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """Raise ArgumentError if ``given`` has a name that is not an argument of the function.

    Args:
        call: the function's public name.
        given: the keyword arguments that its ``**`` parameter received.
        also: a function whose arguments are accepted as well, except those in ``without``.
        interpreted: the function also accepts the options of the interpreter.
        spellings: arguments of similar functions of other libraries -> what to use instead.
    """
    options = list(Interpreted.__annotations__) if interpreted else []
    if all([name in options for name in given]):
        return
    names = _names(function)
    others = () if also is None else _names(also)
    for name in given:
        if name in names or name in options or (name in others and name not in without):
            continue
        names = list(dict.fromkeys([*names, *[n for n in others if n not in without]]))
        if spellings is not None and name in spellings:
            raise ArgumentError(f"{call}() has no argument '{name}'; {spellings[name]}")
        near = similar(name, names + options)
        guess = f"; did you mean '{near[0]}'?" if near else "."
        more = f'; with device="cpu" also {", ".join(sorted(options))}' if options else ""
        raise ArgumentError(f"{call}() has no argument '{name}'{guess} Arguments: {', '.join(names)}{more}")


def check_flag(call: str, name: str, value: object) -> None:
    """Raise ArgumentError unless the value of a switch is a bool.

    >>> check_flag("attention", "lse", "yes")
    Traceback (most recent call last):
        ...
    cute_dialect.op.errors.ArgumentError: attention: lse is 'yes'; pass True or False
    """
    if not isinstance(value, bool):
        raise ArgumentError(f"{call}: {name} is {value!r}; pass True or False")


def as_number(call: str, name: str, value: object) -> float:
    """Return a number of Python or of an array library.  Raises DtypeError for others and for Booleans.

    >>> as_number("rms_norm", "eps", True)
    Traceback (most recent call last):
        ...
    cute_dialect.op.errors.DtypeError: rms_norm: eps is True; pass a number
    """
    if type(value) is float:
        return value
    if isinstance(value, SupportsFloat) and type(value).__name__ not in ("bool", "bool_"):  # bool_: NumPy 1
        try:
            return float(value)
        except (TypeError, ValueError, RuntimeError):  # an array of several elements
            pass
    raise DtypeError(f"{call}: {name} is {value!r}; pass a number")


def similar(name: str, known: Iterable[str]) -> list[str]:
    """Return the known name that is most similar to ``name`` in a list, or an empty list.

    >>> similar("GeLu", ["relu", "gelu"])
    ['gelu']
    """
    lower = {n.lower(): n for n in known}
    matcher = SequenceMatcher(b=name.lower())
    best: float = 0.6
    found: list[str] = []
    for n in lower:  # not difflib.get_close_matches, which torch.compile cannot trace
        matcher.set_seq1(n)
        ratio = matcher.ratio()
        if ratio >= best:
            best, found = ratio, [lower[n]]
    return found


def no_such_kernel(name: str, known: Iterable[str], problem: str) -> UnsupportedError:
    """Return the error for the name of a kernel that does not exist, with the most similar name."""
    near = similar(name, known)
    hint = f"did you mean {near[0]}?" if near else "see op.explain"
    return UnsupportedError(f'there is no kernel "{name}" for {problem}; {hint}')


_F = TypeVar("_F", bound=Callable[..., Any])


def checks_keywords(function: _F) -> _F:
    """Decorate a function, or the ``__init__`` of a class: unknown, missing or surplus arguments raise ArgumentError.

    A function with a ``**`` parameter checks names itself.  Only for functions that need not be fast: the decorator
    costs a call.
    """

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if not is_open and any(name not in known for name in kwargs):
            check_keywords(_call_of(function, args), function, kwargs, interpreted=False)
        try:
            return function(*args, **kwargs)
        except TypeError as e:
            if e.__traceback__ is None or e.__traceback__.tb_next is not None:  # raised within the function
                raise
            raise _wrong_arguments(_call_of(function, args), function, args, kwargs, e) from None

    known = frozenset(_names(function))
    is_open = any(p.kind is Parameter.VAR_KEYWORD for p in signature(function).parameters.values())
    return cast("_F", checked)


def _call_of(function: Callable[..., Any], args: Sequence[Any]) -> str:
    if function.__name__ == "__init__":
        return type(args[0]).__name__
    return f"{args[0].__name__}.{function.__name__}" if _is_classmethod(function) else function.__name__


def _is_classmethod(function: Callable[..., Any]) -> bool:
    return function.__code__.co_varnames[:1] == ("cls",)


def _wrong_arguments(
    call: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], error: TypeError
) -> ArgumentError:
    """Return the error for arguments that do not match the parameters of a function."""
    parameters = list(signature(function).parameters.values())
    places = [p for p in parameters if p.kind in _PLACES]
    required = [p.name for p in parameters if p.default is Parameter.empty and p.kind in (*_PLACES, *_NAMED)]
    given = {p.name for p in places[: len(args)]}
    is_method = bool(places) and places[0].name in _RECEIVERS
    for name in required:
        if name not in given and name not in kwargs:
            return _missing(call, name, [n for n in required if n not in _RECEIVERS])
    if len(args) > len(places) and not any(p.kind is Parameter.VAR_POSITIONAL for p in parameters):
        most, found = len(places) - is_method, len(args) - is_method
        names = ", ".join([p.name for p in places[is_method:]])
        taken = f"{most} positional argument{'s' * (most != 1)}" + f" ({names})" * (most > 0)
        return ArgumentError(f"{call}() has at most {taken}, but the call passes {found}; pass the others by name")
    twice = [name for name in given if name in kwargs]
    if twice:
        return ArgumentError(f"{call}() has two values of argument '{twice[0]}'; pass it once")
    # Only positional-only parameters that are passed by name get here, and no function has any.
    return ArgumentError(f"{call}(): {error}")


_PLACES = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_NAMED = (Parameter.KEYWORD_ONLY,)
_RECEIVERS = ("self", "cls")


def _missing(call: str, name: str, required: Sequence[str]) -> ArgumentError:
    return ArgumentError(f"{call}() needs an argument '{name}'; required arguments: {', '.join(required)}")


def _names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of parameters. Without `inspect`, so that torch.compile can trace it."""
    wrapped: Any = function
    while hasattr(wrapped, "__wrapped__"):
        wrapped = wrapped.__wrapped__
    code = wrapped.__code__
    return tuple([n for n in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if n not in _RECEIVERS])


class Missing:
    """Default of a required argument: raises ArgumentError when the function uses or prints the argument.

    Attributes with two underscores do not raise, except those that exchange arrays: torch.compile reads such attributes
    of all defaults.
    """

    __slots__ = ("_call", "_name", "_required")

    def __init__(self, call: str, name: str, required: Sequence[str]):
        self._call, self._name, self._required = call, name, required

    def _raise(self, *_: object) -> NoReturn:
        raise _missing(self._call, self._name, self._required)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") and name not in _ARRAY_ATTRIBUTES:
            raise AttributeError(name)
        self._raise()

    __repr__ = __bool__ = __getitem__ = __iter__ = __len__ = __float__ = __index__ = _raise
    __lt__ = __le__ = __gt__ = __ge__ = _raise
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _raise


def type_name(x: object) -> str:
    """Return the name of an argument's type for a message.  Raises ArgumentError if the argument is missing."""
    if isinstance(x, Missing):
        repr(x)
    return type(x).__name__


_ARRAY_ATTRIBUTES = frozenset(["__array__", "__array_interface__", "__cuda_array_interface__", "__dlpack__"])


def report_missing(name: str, value: Any) -> Any:
    """Let a public function or class report missing arguments, at no cost for calls that have all of them.

    The required parameters of a function get :class:`Missing` defaults; its signature stays as written.  The
    ``__init__`` of a class is decorated with :func:`checks_keywords`.  The fields of a named tuple stay required, and
    Python's error names the class.
    """
    if isinstance(value, type):
        kind = cast("type[object]", value)
        new: object = kind.__new__
        if issubclass(kind, tuple) and isinstance(new, FunctionType):
            new.__qualname__ = name
        for base in kind.__mro__:
            init = vars(base).get("__init__")
            if isinstance(init, FunctionType) and not hasattr(init, "__wrapped__") and _is_ours(init):
                setattr(base, "__init__", checks_keywords(init))  # noqa: B010 (pyright refuses the assignment)
    elif isinstance(value, FunctionType) and not hasattr(value, "__wrapped__") and _is_ours(value):
        _give_defaults(name, value)
    return value


def _is_ours(function: FunctionType) -> bool:
    return function.__module__.startswith(f"{__package__}.")


def _give_defaults(name: str, function: FunctionType) -> None:
    """Give the required parameters of a function :class:`Missing` defaults."""
    shown = signature(function)
    free = [p for p in shown.parameters.values() if p.default is Parameter.empty]
    places, named = [p.name for p in free if p.kind in _PLACES], [p.name for p in free if p.kind in _NAMED]
    if places or named:
        required = [*places, *named]
        missing = {at: Missing(name, at, required) for at in required}
        function.__signature__ = shown  # type: ignore[attr-defined]
        function.__defaults__ = (*[missing[at] for at in places], *(function.__defaults__ or ()))
        function.__kwdefaults__ = {**(function.__kwdefaults__ or {}), **{at: missing[at] for at in named}}
