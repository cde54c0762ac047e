"""Errors of the arch package.  All are ValueErrors whose message has the expected and the actual value."""

from __future__ import annotations

from cute_dialect.errors import CuteError


class ArchError(CuteError, ValueError):
    """Base class of the errors.  ``mode`` names the mode, dimension or operand at fault, or is ""."""

    def __init__(self, message: str, mode: str = ""):
        super().__init__(f"{mode}: {message}" if mode else message)
        self.mode = mode


class AtomError(ArchError):
    """The fields of an atom are inconsistent, or no atom has the requested name."""


class DescriptorError(ArchError):
    """A shared-memory layout has no WGMMA descriptor.  The message states the reason."""


class TmaError(ArchError):
    """A tensor, box or tile has no tensor map.  The message states the exceeded limit."""
