"""Names of CuTe DSL that programs import and do not always use: of later chips, and of the vendor's own compiler.

Each is a class, so that programs can ask ``isinstance`` of it and derive from it; making an object of it, or calling a
function of that name, is refused.
"""

from __future__ import annotations

from typing import Any, NoReturn

from cute_dialect.front.errors import KernelTypeError

__all__ = ["LATER_CHIPS", "STATEMENTS", "VENDOR", "refused"]

LATER_CHIPS = "needs sm_100 or later; instructions up to those of sm_90a are written here"
STATEMENTS = "builds a loop by hand; write 'for' or 'while' instead"
VENDOR = "belongs to the vendor's compiler; nothing here answers it"


class _Refused(type):
    """A class that is there by name."""

    why: str

    def __call__(cls, *args: object, **kwargs: object) -> NoReturn:
        base = next(c for c in cls.__mro__ if c.__module__ == __name__)
        raise KernelTypeError("F280", f"{base.__name__} {cls.why}")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return refused(f"{cls.__name__}.{name}", cls.why)


def refused(name: str, why: str) -> type:
    """Return a class that stands for a name, and says why where it is used.

    >>> issubclass(refused("tcgen05.MmaF16BF16Op", LATER_CHIPS).kind, object)
    True
    """
    return _Refused(name, (), {"__module__": __name__, "why": why})
