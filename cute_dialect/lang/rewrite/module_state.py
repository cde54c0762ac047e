"""State that code reaches through the modules it names: variables of a user's modules, generators of libraries."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from types import ModuleType

from cute_dialect.lang.rewrite.source import has_convertible_globals


def state_of(module: ModuleType, names: Collection[str]) -> list[object]:
    """Return the objects that code with these names may reach through a module and change."""
    return [*_attributes(module, names), *_generators(module, names)]


def _attributes(module: ModuleType, names: Collection[str]) -> list[object]:
    """Return the values of these names in a user's module and in the user's modules that it refers to."""
    found: list[object] = []
    seen: set[int] = set()
    todo = [module]
    while todo:
        held = vars(todo.pop())
        if id(held) in seen or not has_convertible_globals(held):
            continue
        seen.add(id(held))
        values = [held[n] for n in names if n in held]
        found += values
        todo += [v for v in values if isinstance(v, ModuleType)]
    return found


def _generators(module: ModuleType, names: Collection[str]) -> list[object]:
    """Return the random generators behind the functions of a library with these names, such as ``random.random``."""
    found: list[object] = []
    seen: set[str] = set()
    todo = [module]
    while todo:
        module = todo.pop()
        if module.__name__ in seen or module.__name__.partition(".")[0] not in ("random", "numpy", "torch"):
            continue
        seen.add(module.__name__)
        if module.__name__ == "torch":
            found.append(module.default_generator)
        held = vars(module)
        if "random" in names:
            getattr(module, "random", None)  # NumPy imports it on first use.
        values = [held[n] for n in names if n in held]
        receivers = [getattr(v, "__self__", None) for v in values]
        found += [x for x in receivers if is_random_class(type(x))]
        todo += [v for v in values if isinstance(v, ModuleType)]
    return found


@lru_cache(maxsize=4096)
def is_random_class(cls: type) -> bool:
    """Return True for the random generators of Python, NumPy and torch."""
    return any((c.__module__, c.__name__) in _RANDOM for c in cls.__mro__)


_RANDOM = frozenset(
    zip(
        ("random", "numpy.random._generator", "numpy.random.mtrand", "numpy.random.bit_generator", "torch._C"),
        ("Random", "Generator", "RandomState", "BitGenerator", "Generator"),
    )
)
