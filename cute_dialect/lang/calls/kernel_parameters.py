"""Forms of the arguments that a host function passes to a kernel. Containers and instances are taken apart too.

The kernel gets its own objects, built from its parameters.  Objects without dynamic values are shared with the host.
Two references to one object on the host are references to one object in the kernel.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.lang.control.mutable_state import kept_in
from cute_dialect.lang.values.dynamic import Dynamic, Form, made_of
from cute_dialect.lang.values.forms import ConstForm
from cute_dialect.lang.values.tensors import TensorForm

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

__all__ = ["argument_form"]


class ObjectForm(Form):
    """The form of an object and everything it holds: the tree of its dynamic leaves."""

    __slots__ = ("leaves", "types", "value")

    def __init__(self, value: object, leaves: dict[int, Form]):
        self.value = value
        self.leaves = leaves
        self.types: tuple[Attribute, ...] = tuple(t for form in leaves.values() for t in form.types)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectForm) and self.value is other.value

    def __hash__(self) -> int:
        return hash((ObjectForm, id(self.value)))

    def take(self, value: object) -> list[SSAValue]:
        found = _dynamic_leaves(value)
        return [leaf for at, form in self.leaves.items() for leaf in form.take(found[at])]

    def make(self, leaves: Sequence[SSAValue]) -> object:
        return _rebuilt(self.value, dict(zip(self.leaves, made_of(self.leaves.values(), leaves))))


def argument_form(value: object) -> Form:
    """Return the form of a kernel's argument."""
    if isinstance(value, Dynamic):
        return value.__cute_form__()
    leaves = {key: leaf.__cute_form__() for key, leaf in _dynamic_leaves(value).items()}
    # Constant coordinates are not parameters, but each function needs its own value for them.
    leaves = {key: form for key, form in leaves.items() if form.types or isinstance(form, TensorForm)}
    return ObjectForm(value, leaves) if leaves else ConstForm(value)


def _dynamic_leaves(value: object) -> dict[int, Dynamic]:
    """Return the dynamic values reachable from an object, by identity, in order of first reach."""
    found: dict[int, Dynamic] = {}
    seen: set[int] = set()

    def walk(x: Any) -> None:
        if isinstance(x, Dynamic):
            found.setdefault(id(x), x)
            return
        held = x if isinstance(x, tuple) else kept_in(x)
        if held is None or id(x) in seen:
            return
        seen.add(id(x))
        for part in held.values() if isinstance(held, dict) else held:
            walk(part)

    walk(value)
    return found


def _rebuilt(value: object, made: dict[int, Any]) -> Any:
    """Return a copy of ``value`` with its dynamic values replaced. Parts without dynamic values are shared."""
    done: dict[int, Any] = dict(made)

    def changes(x: Any, seen: set[int]) -> bool:
        if id(x) in made:
            return True
        held = x if isinstance(x, tuple) else kept_in(x)
        if held is None or id(x) in seen:
            return False
        seen.add(id(x))
        return any(changes(part, seen) for part in (held.values() if isinstance(held, dict) else held))

    def again(x: Any) -> Any:
        if id(x) in done:
            return done[id(x)]
        if isinstance(x, Dynamic) or not changes(x, set()):
            return x
        if isinstance(x, tuple):
            parts = [again(part) for part in x]
            result: Any = tuple(parts) if type(x) is tuple else type(x)(*parts)
            done[id(x)] = result
            return result
        held: Any = kept_in(x)
        result = done[id(x)] = copy.copy(x)
        if isinstance(held, set):
            result.clear()
            result.update(again(part) for part in held)
            return result
        for slot in list(held) if isinstance(held, dict) else range(len(held)):
            if isinstance(x, list | dict):
                result[slot] = again(held[slot])
            else:
                object.__setattr__(result, slot, again(held[slot]))
        return result

    return again(value)
