"""Placeholders for names of CuTe DSL that are not supported: those of later architectures and of its own compiler.

Each is a class, so that programs can use it in ``isinstance`` and derive from it.  Creating an object of it, or calling
a function of that name, raises an error.
"""

from __future__ import annotations

from typing import Any, NoReturn

from cute_dialect.arch.targets import NEWEST_ATOMS
from cute_dialect.lang.tracing.errors import KernelTypeError

__all__ = ["LATER_CHIPS", "STATEMENTS", "VENDOR", "refused"]

LATER_CHIPS = f"needs sm_100 or later; this compiler supports instructions up to {NEWEST_ATOMS}"
STATEMENTS = "builds a loop explicitly, which is not supported; use 'for' or 'while'"
VENDOR = "belongs to NVIDIA's compiler and is not available"


class _Refused(type):
    """Metaclass of placeholder classes."""

    why: str

    def __call__(cls, *args: object, **kwargs: object) -> NoReturn:
        base = next(c for c in cls.__mro__ if c.__module__ == __name__)
        raise KernelTypeError("F280", f"{base.__name__} {cls.why}")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return refused(f"{cls.__name__}.{name}", cls.why)


def refused(name: str, why: str) -> type:
    """Return a placeholder class for a name, which raises an error with the reason when used.

    >>> issubclass(refused("tcgen05.MmaF16BF16Op", LATER_CHIPS).kind, object)
    True
    """
    return _Refused(name, (), {"__module__": __name__, "why": why})
