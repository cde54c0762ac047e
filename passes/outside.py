"""Passes from outside this package: of installed packages, by entry points, and of modules named by ``--load``.

A package offers a pass by an entry point of the group ``cute_dialect.passes``, whose name is the pass's::

    [project.entry-points."cute_dialect.passes"]
    count-ops = "my_package.passes:CountPass"

A module given to :class:`PassTable` (``cute-opt --load=my_module`` or ``--load=path/to/file.py``) offers every subclass
of :class:`.base.Pass` that it defines.  Entry points are looked for when a name is not one of this package's, or when
all passes are to be listed; their modules are imported when the pass is used.
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

__all__ = ["GROUP", "OutsideError", "PassTable"]

GROUP = "cute_dialect.passes"
"""The entry point group."""

_NAME = re.compile(r"[a-z][a-z0-9_-]*")


class OutsideError(ValueError):
    """A pass from outside cannot be used: it is not found, cannot be imported, is no pass, or its name is taken."""


class PassTable:
    """All passes that can be named: this package's, those of ``modules``, those of installed packages.

    ``reserved`` are names that no pass may have.  Raises OutsideError.

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
        """Find the row of a pass; None if no pass has that name."""
        if name not in self._rows and _NAME.fullmatch(name) is not None:
            self._search()
        return self._rows.get(name)

    def names(self, dialects: str = "all") -> list[str]:
        """List the names of all passes that go with ``--dialects=cute|base|all``."""
        self._search()
        return [row.name for row in self._rows.values() if row.goes_with(dialects)]

    def rows(self) -> list[PassInfo]:
        """List all passes, with their summaries; a pass that cannot be imported says so in place of its summary."""
        self._search()
        return [self._described(row) if row.origin else row for row in self._rows.values()]

    def load(self, row: PassInfo) -> type[Pass]:
        """Import the class of a pass that runs here.  Raises OutsideError for one from outside that cannot be used."""
        if not row.origin:
            return row.load()
        from cute_dialect.passes.base import Pass

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
        """Return the names of a pass's options; None if they are not known here."""
        return row.options if row.upstream else self.load(row).Options.names()

    def unknown(self, name: str, dialects: str = "all") -> str:
        """Write the message for a name that no pass has."""
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
                f"{row.origin} names a pass '{row.name}': expected small letters, digits and '-', a letter first"
            )
        other = self._rows.get(row.name)
        if other is not None and (other.module, other.class_name) == (row.module, row.class_name):
            return  # the same pass, by another way
        if other is not None or row.name in self._reserved:
            whose = "an option of this program" if other is None else f"a pass of {other.origin or 'cute_dialect'}"
            raise OutsideError(f"pass '{row.name}' of {row.origin} has the name of {whose}")
        self._rows[row.name] = row

    # --------------------------------------------------------------------------------------------------- entry points

    def _search(self) -> None:
        """Find the entry points of all installed packages, once."""
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
        from cute_dialect.passes.base import Pass

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
    """Import the module of a dotted name or of a ``.py`` file.  Raises OutsideError."""
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
            raise OutsideError(f"cannot import '{name}': there is a module '{spec.name}' already, rename the file")
        module = sys.modules[spec.name] = module_from_spec(spec)
        folder = os.path.dirname(file)
        if folder not in sys.path:
            sys.path.append(folder)  # what lies beside it can be imported, as beside a program
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
    """Say in one line why an import failed, with the place in the file that raised it."""
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
    """Say why an object cannot be the pass of a name; empty if it can."""
    from dataclasses import MISSING, fields, is_dataclass  # here, for cute-opt begins without them

    from cute_dialect.passes.base import Pass, PassOptions, can_be_written

    if not isinstance(found, type) or not issubclass(found, Pass):
        return f"expected a subclass of cute_dialect.passes.base.Pass, got {found!r}"
    theirs: object = getattr(found, "name", None)
    if not isinstance(theirs, str):
        return f"{found.__name__} has no 'name'"
    if theirs != name:
        return f"{found.__name__} calls itself '{theirs}'"
    if found.run is Pass.run:
        return f"{found.__name__} has no method 'run'"
    options: object = getattr(found, "Options", None)
    if not isinstance(options, type) or not issubclass(options, PassOptions) or not is_dataclass(options):
        return f"{found.__name__}.Options is no dataclass that derives from cute_dialect.passes.base.PassOptions"
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
