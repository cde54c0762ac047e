"""How ``cute-run`` starts as a program; a process that has it as a library does none of this."""

from __future__ import annotations

import gc
from contextlib import ExitStack
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.pipelines.ahead import Ahead

__all__ = ["Start"]


class Start:
    """Told of what will be imported, before it is.  ``later`` holds what :mod:`.quick_start` puts off, in a program."""

    def __init__(self, later: ExitStack | None = None):
        self._later = later
        self._methods = False
        self._compiler = False

    def methods(self) -> None:
        """What has data classes comes."""
        if self._later is not None and not self._methods:
            self._methods = True
            from cute_dialect.tools.quick_start import methods_made_later

            self._later.enter_context(methods_made_later())

    def arrays(self) -> None:
        """numpy comes."""
        if self._later is not None:
            self.methods()
            from cute_dialect.tools.quick_modules import import_numpy

            import_numpy()

    def upstream(self) -> None:
        """MLIR comes, into this process."""
        if self._later is not None:
            from cute_dialect.pipelines.upstream import import_light

            import_light()

    def compiler(self, *, upstream: bool = False) -> Ahead | None:
        """What compiles, or runs what it compiled, comes; with ``upstream``, the child that runs MLIR, if it helps."""
        ahead = None
        if self._later is not None and upstream:
            from cute_dialect.pipelines.ahead import start

            ahead = start()  # ends by itself when we do
        if self._later is not None and not self._compiler:
            self._compiler = True
            self.methods()
            from cute_dialect.tools.quick_definitions import definitions_made_later

            self._later.enter_context(definitions_made_later())
            gc.freeze()
            gc.set_threshold(100_000, 20, 20)
            gc.enable()
        return ahead
