"""Activations as text, with their parameters: ``relu``, ``leaky_relu(0.1)``.

>>> spelled(("leaky_relu", 0.1)), spelled(("leaky_relu", 0.01)), is_activation("relu(0.1)")
('leaky_relu(0.1)', 'leaky_relu', False)
>>> parsed("elu(0.5)")
Activation(name='elu', numbers=(0.5,))
"""

from __future__ import annotations

import math
import re
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, cast

from cute_dialect.kernels.epilogue.functions import ACTIVATIONS

PLAIN = tuple(sorted([name for name, f in ACTIVATIONS.items() if f.arity == 1 + len(f.parameters)]))
"""Activations of a single operand."""


class Activation(NamedTuple):
    """An activation and the values of its parameters."""

    name: str
    numbers: tuple[float, ...]


Spelled: TypeAlias = str | tuple[Any, ...]
"""An activation as users write it: ``"relu"`` or ``("leaky_relu", 0.1)``."""


def spelled(activation: object) -> str:
    """Return the text of an activation.

    It may be a text, a tuple of a name and numbers, an object with a ``name`` and perhaps ``numbers``, or a function of
    ``op.epilogue``. Default parameters are omitted. Any other value is returned as it is, for the caller to reject.
    """
    if type(activation) is str:
        return activation
    name, numbers = _named(activation)
    if name not in PLAIN or not all([isinstance(x, int | float) for x in numbers]):
        return str(activation) if isinstance(activation, str) else cast(str, activation)
    defaults = list(ACTIVATIONS[name].defaults)
    usual = [float(x) for x in numbers] == defaults[: len(numbers)]
    return name if usual else f"{name}({', '.join([repr(float(x)) for x in numbers])})"


def _named(activation: Any) -> tuple[Any, list[Any]]:
    """Return the name and the numbers of an activation, as far as it has them."""
    if isinstance(getattr(activation, "name", None), str):
        return activation.name, list(getattr(activation, "numbers", ()))
    if not isinstance(activation, tuple):
        return getattr(activation, "__name__", None), []
    name, *numbers = cast("tuple[Any, ...]", activation) or (None,)
    return name, numbers


@lru_cache(maxsize=256)
def parsed(text: str) -> Activation:
    """Parse the text of an activation.

    Raises:
        ValueError: if the text is not an activation.
    """
    name, bracket, rest = text.partition("(")
    try:
        numbers = [float(x) for x in rest.removesuffix(")").split(",")] if bracket else []
    except ValueError:
        numbers = [math.nan]
    fits = name in PLAIN and len(numbers) <= len(ACTIVATIONS[name].parameters) and all(map(math.isfinite, numbers))
    if not fits or bool(bracket) != text.endswith(")"):
        raise ValueError(unknown_activation(text))
    return Activation(name, (*numbers, *ACTIVATIONS[name].defaults[len(numbers) :]))


def is_activation(value: object) -> bool:
    """Return True for the text of an activation."""
    if not isinstance(value, str):
        return False
    try:
        parsed(value)
    except ValueError:
        return False
    return True


def unknown_activation(name: Any) -> str:
    """Return the error message for an unknown activation.

    >>> unknown_activation("swish").partition("; use")[0]
    'activation "swish" is not supported; silu is x * sigmoid(x)'
    """
    also = "; silu is x * sigmoid(x)" if name in ("swish", "swiglu") else ""
    word = re.split(r"\W", name)[0] if isinstance(name, str) else _named(name)[0]
    if word in PLAIN and word != name:
        parameters = ACTIVATIONS[word].parameters
        also = f"; {word} takes {'one parameter, ' + ', '.join(parameters) if parameters else 'no parameters'}"
    near = get_close_matches(name.lower(), PLAIN, 1, 0.5) if isinstance(name, str) and not also else ()
    also = f" (did you mean {near[0]}?)" if near else also
    shown = f'"{name}"' if isinstance(name, str) else repr(name)
    return f"activation {shown} is not supported{also}; use one of {', '.join(PLAIN)}"
