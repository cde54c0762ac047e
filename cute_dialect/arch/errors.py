"""Errors that the arch package raises; all are ValueErrors that say expected what, got what, where."""

from __future__ import annotations

from cute_dialect.errors import CuteError


class ArchError(CuteError, ValueError):
    """Base of the errors of this package.  ``mode`` names the place: a mode, a dimension, an operand ("" if none)."""

    def __init__(self, message: str, mode: str = ""):
        super().__init__(f"{mode}: {message}" if mode else message)
        self.mode = mode


class AtomError(ArchError):
    """An atom whose parts do not fit, or a look-up of an atom that there is not."""


class DescriptorError(ArchError):
    """A shared-memory layout that no WGMMA descriptor can describe; the text says why."""


class TmaError(ArchError):
    """A tensor, box or tile that no tensor map can describe; the text says which limit it breaks."""


__all__ = ["ArchError", "AtomError", "DescriptorError", "TmaError"]
