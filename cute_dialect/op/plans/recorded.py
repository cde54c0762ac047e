"""Base of all plans: records the kernels of calls, to show and save them.

A plan loaded from a folder (:func:`~cute_dialect.op.execute.saved.load`) has the kernels of that folder.  A call first
chooses a kernel as usual, and uses it if it is in the folder.  Otherwise it uses a choice that was recorded before
the plan was saved.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

from cute_dialect.op.errors import AlignmentError, EpilogueError, LayoutError, UnsupportedError
from cute_dialect.op.execute.kernel_source import Source, ir_of
from cute_dialect.op.execute.saved import Fields, SavedKernels, module_of, write

if TYPE_CHECKING:  # pragma: no cover
    from typing import Self

__all__ = ["Call", "Recorded"]


class Call(Protocol):
    """A checked call."""

    @property
    def problem(self) -> str:
        """Text that distinguishes the call from calls of other sizes."""
        ...

    def sources(self) -> Sequence[Source]:
        """Return the kernels that the call launches."""
        ...

    def taken(self) -> Fields:
        """Return the choices made for the call as data."""
        ...


_C = TypeVar("_C", bound=Call)


class Recorded:
    """A plan that records the kernels of its calls.

    ``call`` is the name of the plan in messages. ``saved`` holds the kernels loaded from its folder.
    """

    call: ClassVar[str]

    def __init__(self) -> None:
        self.saved: SavedKernels | None = None
        self._sources: dict[str, Source] = {}
        self._choices: dict[str, Fields] = {}
        self._chosen: dict[str, Self] = {}

    # ------------------------------------------------------------------------------------------- methods of subclasses

    @classmethod
    def of_settings(cls, settings: Fields) -> Self:
        """Return the plan of :meth:`settings`."""
        raise NotImplementedError

    def settings(self) -> Fields:
        """Return the settings of the plan as data."""
        raise NotImplementedError

    def _take(self, choice: Fields) -> None:
        """Use the choices of one call for all calls."""
        raise NotImplementedError

    def _shown(self) -> Source:
        """Return the kernel that texts refer to."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------------- recording

    def _record(self, call: Call) -> None:
        """Record the kernels of a launched call, to save them."""
        for source in call.sources():
            self._sources.setdefault(source.name, source)
        if call.problem not in self._choices:
            self._choices[call.problem] = call.taken()

    def _forget(self) -> None:
        """Discard records made with other settings."""
        self._sources.clear()
        self._choices.clear()
        self._chosen.clear()

    def save(self, folder: str | os.PathLike[str]) -> str:
        """Write the plan and the kernels of its calls to a folder, and return its path.

        ``op.load(folder)`` returns a plan that runs them with the driver and NumPy or torch only (or on the
        interpreter, if it is installed).  Raises UnsupportedError if nothing was run.
        """
        if not self._sources:
            raise UnsupportedError("save: the plan was never run, so it has no kernels to save; run it first")
        return write(folder, self.call, self.settings(), list(self._sources.values()), self._choices)

    # --------------------------------------------------------------------------------------------------------- serving

    def _served(self, name: str, make: Callable[[Self], _C]) -> _C:
        """Return the call ``make(plan)`` with saved kernels.  Raises UnsupportedError if it needs others."""
        saved = self.saved
        if saved is None:
            return make(self)
        found = make(self)
        wanted = found.problem
        if wanted not in saved.choices and saved.has(found.sources()):
            return found
        for plan in self._others(saved, wanted):
            try:
                other = make(plan)
            except (AlignmentError, EpilogueError, LayoutError, UnsupportedError):
                continue  # This choice was for operands of other layouts.
            if saved.has(other.sources()):
                return other
        if saved.has(found.sources()):
            return found
        raise UnsupportedError(
            f"{name}: the call {wanted} needs {', '.join([x.name for x in found.sources()])}, which the folder does "
            f"not have (it has {', '.join(saved.names) or 'none'}); run the call before saving the plan"
        )

    def _others(self, saved: SavedKernels, wanted: str) -> Iterator[Self]:
        """Yield plans with recorded choices, that of the wanted problem first."""
        for problem in dict.fromkeys([*([wanted] if wanted in saved.choices else ()), *saved.choices]):
            choice = saved.choices[problem]
            key = repr(choice)
            if key not in self._chosen:
                plan = copy(self)
                plan._take(choice)
                self._chosen[key] = plan
            yield self._chosen[key]

    # ----------------------------------------------------------------------------------------------------------- texts

    def ir(self, stage: str = "cute") -> str:
        """Return the text of the last run's GEMM kernel after a stage: ``cute``, ``expanded``, ``arch``, ``base`` or
        ``llvm``.
        """
        return ir_of(self._shown(), stage)

    @property
    def ptx(self) -> str:
        """The PTX of that kernel."""
        return module_of(self._shown(), self.saved).ptx

    @property
    def report(self) -> str:
        """The report of ptxas for that kernel: registers and spills."""
        return module_of(self._shown(), self.saved).report
