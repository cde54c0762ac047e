"""Passes of other packages: installed ones with entry points, and modules given by ``--load``.

A package registers a pass with an entry point in the group ``cute_dialect.passes``, named like the pass::

    [project.entry-points."cute_dialect.passes"]
    count-ops = "my_package.passes:CountPass"

A module given to :class:`PassTable` (``cute-opt --load=my_module`` or ``--load=path/to/file.py``) registers every
subclass of :class:`.base.Pass` that it defines.  Entry points are searched when a name is not one of this package's,
or to list all passes.  Their modules are imported on first use of the pass.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from cute_dialect.ir.diagnostics import did_you_mean
from cute_dialect.passes.registry import PASSES, PassInfo

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from types import ModuleType

    from cute_dialect.passes.base import Pass

GROUP = "cute_dialect.passes"

_NAME = re.compile(r"[a-z][a-z0-9_-]*")


class OutsideError(ValueError):
    """A pass of another package cannot be used: not found, not importable, not a pass, or its name is taken."""


class PassTable:
    """All passes by name: those of this package, of ``modules``, and of installed packages.

    ``reserved`` names are not available for passes.  Raises OutsideError.

    >>> PassTable().get("cse").summary
    'eliminate common subexpressions'
    """

    def __init__(self, modules: Sequence[str] = (), reserved: Collection[str] = ()):
        self._rows: dict[str, PassInfo] = dict(PASSES)
        self._reserved = reserved
        self._searched = False
        self.modules = tuple(dict.fromkeys(modules))
        for module in self.modules:
            self._load_module(module)

    def get(self, name: str) -> PassInfo | None:
        """Return the entry of a pass; None if there is no such pass."""
        if name not in self._rows and _NAME.fullmatch(name) is not None:
            self._search()
        return self._rows.get(name)

    def names(self, dialects: str = "all") -> list[str]:
        """Return the names of all passes available with ``--dialects=cute|base|all``."""
        self._search()
        return [row.name for row in self._rows.values() if row.goes_with(dialects)]

    def rows(self) -> list[PassInfo]:
        """Return all passes with their summaries; an import error replaces the summary."""
        self._search()
        return [self._described(row) if row.origin else row for row in self._rows.values()]

    def load(self, row: PassInfo) -> type[Pass]:
        """Import the class of a pass that runs here.

        Raises OutsideError if a pass of another package is unusable.
        """
        if not row.origin:
            return row.load()
        from cute_dialect.passes.base import Pass  # late: start-up

        try:
            found: object = row.load()
        except (Exception, SystemExit) as e:
            raise OutsideError(f"pass '{row.name}' of {row.origin} cannot be imported: {_reason(e)}") from e
        wrong = _what_is_wrong(found, row.name)
        if wrong:
            raise OutsideError(f"pass '{row.name}' of {row.origin}: {wrong}")
        assert isinstance(found, type) and issubclass(found, Pass)
        return found

    def option_names(self, row: PassInfo) -> tuple[str, ...] | None:
        """Return the option names of a pass; None if only upstream knows them."""
        return row.options if row.upstream else self.load(row).Options.names()

    def unknown(self, name: str, dialects: str = "all") -> str:
        """Return the message for an unknown pass."""
        return f"unknown pass '{name}'{did_you_mean(name, self.names(dialects))}"

    def _described(self, row: PassInfo) -> PassInfo:
        try:
            cls = self.load(row)
        except OutsideError as e:
            return row._replace(summary=f"({e})")
        return row._replace(summary=f"{cls.summary or 'no summary'} [{row.origin}]")

    def _add(self, row: PassInfo) -> None:
        if _NAME.fullmatch(row.name) is None:
            raise OutsideError(
                f"invalid pass name '{row.name}' in {row.origin}; use lower-case letters, digits and '-', "
                "starting with a letter"
            )
        other = self._rows.get(row.name)
        if other is not None and (other.module, other.class_name) == (row.module, row.class_name):
            return  # the same pass, registered twice
        if other is not None or row.name in self._reserved:
            whose = "an option of this program" if other is None else f"a pass of {other.origin or 'cute_dialect'}"
            raise OutsideError(f"pass '{row.name}' of {row.origin} has the same name as {whose}")
        self._rows[row.name] = row

    # --------------------------------------------------------------------------------------------------- entry points

    def _search(self) -> None:
        """Search the entry points of all installed packages, once."""
        if self._searched:
            return
        from importlib.metadata import entry_points

        for point in sorted(entry_points(group=GROUP), key=lambda p: (p.name, p.value)):
            module, colon, class_name = point.value.partition(":")
            if not colon or not all(part.isidentifier() for part in [*module.strip().split("."), class_name.strip()]):
                raise OutsideError(
                    f"entry point '{point.name} = {point.value}' of {_origin(point)}: expected 'module:Class'"
                )
            self._add(PassInfo(point.name, "", "generic", module.strip(), class_name.strip(), origin=_origin(point)))
        self._searched = True

    # -------------------------------------------------------------------------------------------------------- modules

    def _load_module(self, name: str) -> None:
        module = _import(name)
        from cute_dialect.passes.base import Pass  # late: start-up

        mine = (module.__name__, module.__name__ + ".")
        found = [
            (key, value)
            for key, value in vars(module).items()
            if isinstance(value, type)
            and issubclass(value, Pass)
            and "name" in vars(value)
            and (value.__module__ == mine[0] or value.__module__.startswith(mine[1]))
        ]
        if not found:
            raise OutsideError(
                f"'{name}' defines no pass: expected a subclass of cute_dialect.passes.base.Pass with a 'name'"
            )
        for key, cls in {id(cls): (key, cls) for key, cls in found}.values():
            wrong = _what_is_wrong(cls, cls.name)
            if wrong:
                raise OutsideError(f"{cls.__name__} of '{name}': {wrong}")
            self._add(PassInfo(cls.name, "", "generic", module.__name__, key, origin=f"'{name}'"))


def _import(name: str) -> ModuleType:
    """Import a module by dotted name or ``.py`` file.  Raises OutsideError."""
    from importlib import import_module
    from importlib.util import module_from_spec, spec_from_file_location

    try:
        if not name.endswith(".py"):
            return import_module(name)
        file = os.path.abspath(name)
        spec = spec_from_file_location(os.path.basename(name)[:-3], file)
        if spec is None or spec.loader is None or not os.path.isfile(file):
            raise OutsideError(f"cannot import '{name}': there is no such file")
        loaded = sys.modules.get(spec.name)
        if loaded is not None and os.path.abspath(getattr(loaded, "__file__", None) or "") == file:
            return loaded
        if loaded is not None:
            raise OutsideError(f"cannot import '{name}': a module '{spec.name}' already exists; rename the file")
        module = sys.modules[spec.name] = module_from_spec(spec)
        folder = os.path.dirname(file)
        if folder not in sys.path:
            sys.path.append(folder)  # modules next to the file can be imported, as for a script
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[spec.name]
            raise
        return module
    except OutsideError:
        raise
    except (Exception, SystemExit) as e:
        here = name.replace(".", os.sep) + ".py"
        absent = isinstance(e, ModuleNotFoundError) and e.name is not None and f"{name}.".startswith(f"{e.name}.")
        hint = f" (there is a file of that name here: --load=./{here})" if absent and os.path.isfile(here) else ""
        raise OutsideError(f"cannot import '{name}': {_reason(e)}{hint}") from e


def _reason(error: BaseException) -> str:
    """Format an import error as one line, with the file position that raised it."""
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg} ({error.filename}:{error.lineno})"
    frame, at = error.__traceback__, ""
    while frame is not None:
        file = frame.tb_frame.f_code.co_filename
        ours = os.path.dirname(file) == os.path.dirname(__file__)
        if not ours and not file.startswith("<") and os.sep + "importlib" + os.sep not in file:
            at = f" ({file}:{frame.tb_lineno})"
        frame = frame.tb_next
    return f"{type(error).__name__}: {str(error) or 'no message'}{at}"


def _what_is_wrong(found: object, name: str) -> str:
    """Return the reason why an object cannot be the pass ``name``; empty if it can."""
    from dataclasses import MISSING, fields, is_dataclass  # imported here, because they slow down the start of cute-opt

    from cute_dialect.passes.base import Pass, PassOptions, can_be_written  # late: start-up

    if not isinstance(found, type) or not issubclass(found, Pass):
        return f"expected a subclass of cute_dialect.passes.base.Pass, got {found!r}"
    theirs: object = getattr(found, "name", None)
    if not isinstance(theirs, str):
        return f"{found.__name__} has no 'name'"
    if theirs != name:
        return f"{found.__name__} has the name '{theirs}'"
    if found.run is Pass.run:
        return f"{found.__name__} has no method 'run'"
    options: object = getattr(found, "Options", None)
    if not isinstance(options, type) or not issubclass(options, PassOptions) or not is_dataclass(options):
        return f"{found.__name__}.Options is not a dataclass derived from cute_dialect.passes.base.PassOptions"
    for f in fields(options):
        if f.default is MISSING:
            return f"option '{f.name}' has no default"
        if not can_be_written(f):
            return (
                f"option '{f.name}' has the type {f.type}: expected int, bool, float, str, a tuple of one of these "
                "(tuple[int, ...]), or one of them | None"
            )
    return ""


def _origin(point: EntryPoint) -> str:
    distribution = point.dist
    return f"{distribution.name} {distribution.version}" if distribution is not None else point.value
