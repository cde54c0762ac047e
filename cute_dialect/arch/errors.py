"""Errors of the arch package.  All are ValueErrors whose message has the expected and the actual value."""

from __future__ import annotations

from cute_dialect.errors import CuteError


class ArchError(CuteError, ValueError):
    """Base class of the errors.  ``mode`` names the mode, dimension or operand at fault, or is ""."""

    def __init__(self, message: str, mode: str = ""):
        super().__init__(f"{mode}: {message}" if mode else message)
        self.mode = mode


class AtomError(ArchError):
    """An atom whose fields are inconsistent, or the name of an atom that does not exist."""


class DescriptorError(ArchError):
    """A shared-memory layout without a WGMMA descriptor.  The message has the reason."""


class TmaError(ArchError):
    """A tensor, box or tile without a tensor map.  The message has the limit that is exceeded."""


__all__ = ["ArchError", "AtomError", "DescriptorError", "TmaError"]
