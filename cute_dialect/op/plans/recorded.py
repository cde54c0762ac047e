"""What plans of all kinds have: the kernels of their calls, told, shown and saved; :class:`Recorded` is the base.

A plan from a folder (:func:`~cute_dialect.op.plans.saved.load`) has the kernels of that folder.  What a call takes is
first asked as ever, and taken where its kernels are there; else what was taken before the plan was saved.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

from cute_dialect.op.errors import AlignmentError, EpilogueError, LayoutError, UnsupportedError
from cute_dialect.op.plans.kernel_source import Source, ir_of
from cute_dialect.op.plans.saved import Fields, SavedKernels, module_of, write

if TYPE_CHECKING:  # pragma: no cover
    from typing import Self

__all__ = ["Call", "Recorded"]


class Call(Protocol):
    """A call that is checked."""

    @property
    def problem(self) -> str:
        """What tells it from calls of other sizes."""
        ...

    def sources(self) -> Sequence[Source]:
        """Return the kernels that it launches."""
        ...

    def taken(self) -> Fields:
        """Return what was chosen for it, as data."""
        ...


_C = TypeVar("_C", bound=Call)


class Recorded:
    """A plan that knows the kernels of its calls; ``call``: its name in messages; ``saved``: the kernels of the folder
    that it is from.
    """

    call: ClassVar[str]

    def __init__(self) -> None:
        self.saved: SavedKernels | None = None
        self._sources: dict[str, Source] = {}
        self._choices: dict[str, Fields] = {}
        self._chosen: dict[str, Self] = {}

    # ------------------------------------------------------------------------------------------- what a kind must say

    @classmethod
    def of_settings(cls, settings: Fields) -> Self:
        """Return a plan of what :meth:`settings` told."""
        raise NotImplementedError

    def settings(self) -> Fields:
        """Return what makes the plan again, as data."""
        raise NotImplementedError

    def _take(self, choice: Fields) -> None:
        """Take what was chosen for a call for all of them."""
        raise NotImplementedError

    def _shown(self) -> Source:
        """Return the kernel that texts are of."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------------- recording

    def _record(self, call: Call) -> None:
        """Remember the kernels of a call that was launched, to save them."""
        for source in call.sources():
            self._sources.setdefault(source.name, source)
        if call.problem not in self._choices:
            self._choices[call.problem] = call.taken()

    def _forget(self) -> None:
        """Forget what was run, by other settings."""
        self._sources.clear()
        self._choices.clear()
        self._chosen.clear()

    def save(self, folder: str | os.PathLike[str]) -> str:
        """Write the plan to a folder, with the kernels of the calls that were run, and return its path.

        ``op.load(folder)`` gives a plan that runs them, with the driver and numpy or torch alone (or on the
        interpreter, if it is there).  Raises UnsupportedError where nothing was run.
        """
        if not self._sources:
            raise UnsupportedError("save: expected a plan that was run: it is saved with the kernels of its calls")
        return write(folder, self.call, self.settings(), list(self._sources.values()), self._choices)

    # --------------------------------------------------------------------------------------------------------- serving

    def _served(self, name: str, make: Callable[[Self], _C]) -> _C:
        """Return a call, ``make(plan)``, by kernels that are there.  Raises UnsupportedError where it is by others."""
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
                continue  # it was for operands that lie otherwise
            if saved.has(other.sources()):
                return other
        if saved.has(found.sources()):
            return found
        raise UnsupportedError(
            f"{name}: expected a call that is saved (there are {', '.join(saved.names)}), got {wanted} by "
            f"{', '.join([x.name for x in found.sources()])}: run it before the plan is saved"
        )

    def _others(self, saved: SavedKernels, wanted: str) -> Iterator[Self]:
        """Yield plans that take what was taken once, for the wanted problem first."""
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
        """Return the file of the last run's kernel, the one that multiplies, after a stage: ``cute``, ``expanded``,
        ``arch``, ``base`` or ``llvm``.
        """
        return ir_of(self._shown(), stage)

    @property
    def ptx(self) -> str:
        """The PTX of that kernel."""
        return module_of(self._shown(), self.saved).ptx

    @property
    def report(self) -> str:
        """What ptxas says of that kernel: registers, spills."""
        return module_of(self._shown(), self.saved).report
