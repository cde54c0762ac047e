"""The IR text that is passed to upstream MLIR, and the line info of the resulting PTX.

The text is the generic form, with numbered values and aliases for long types.

Line info consists of the source locations of ops in PTX, including inlined functions.  Upstream's pass
``ensure-debug-info-scope-on-llvm-func`` makes LLVM write ``.file`` and ``.loc`` for the locations of ops.  For a call
site, LLVM 22 writes only the callee.  The hand-off therefore numbers the chains of callers and appends the number to
the file name of the callee.  For a helper ``f`` at ``h.py:3:5``, inlined at ``x.py:41:7``::

    loc("h.py (call site 0)":3:5)                     the hand-off
    .file 2 "h.py (call site 0)"   .loc 2 3 5         LLVM's PTX

    .file 1 "x.py"   .file 2 "h.py"                   after :meth:`CallSites.restore`
    .loc 1 41 7
    .loc 2 3 5, function_name $L__function0, inlined_at 1 41 7

"The source location specified as part of inlined_at must lexically precede" (PTX ISA 9.0, 11.5.3), so the callers
have lines of their own.  PTX before 7.2 lacks ``inlined_at`` and keeps only the callee.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import UNKNOWN_LOC, FileLineColLoc, IntAttr, NameLoc, StringAttr

from cute_dialect.ir.diagnostics import Frame, Position, location_frames
from cute_dialect.ir.generic import GenericWriter

if TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping

    from xdsl.ir import Attribute, Operation

__all__ = ["LINE_INFO_PASS", "CallSites", "handoff_text"]


# ------------------------------------------------------------------------------------------------------------ line info


LINE_INFO_PASS = "ensure-debug-info-scope-on-llvm-func"
"""Upstream pass that makes LLVM emit locations.  The hand-off keeps call sites if a pipeline contains it."""

_MARKED = re.compile(r" \(call site (\d+)\)$")
_IN_TEXT = re.compile(r'([^"]* \(call site \d+\))"')
_FILE = re.compile(r'^\t\.file\t(\d+) "((?:[^"\\]|\\.)*)"\n', re.M)
_PLACE = re.compile(r"^\t\.loc\t(\d+) (\d+) (\d+)(.*)$", re.M)
_FIRST = (7, 2)
"""First PTX version with ``inlined_at``."""


class CallSites:
    """The numbered chains of callers in a module that is handed over."""

    def __init__(self) -> None:
        self._chains: list[tuple[Frame, ...]] = []
        """Innermost first.  The first frame holds the function of the callee; its position is unused."""
        self._numbers: dict[tuple[Frame, ...], int] = {}

    def place(self, location: Attribute) -> tuple[str, int, int] | None:
        """Return file, line and column for a location; the file name is marked if there are callers."""
        frames = location_frames(location)
        if not frames:
            return None
        (file, line, col, _), function = frames[0]
        file = file.replace('"', "'")  # ptxas does not accept \" in .file
        if len(frames) > 1:
            key = (Frame(frames[0].position._replace(line=0, col=0), function), *frames[1:])
            number = self._numbers.setdefault(key, len(self._chains))
            if number == len(self._chains):
                self._chains.append(key)
            file = f"{file} (call site {number})"
        return file, line, col

    def plain(self, file: str) -> str:
        """Return a file name without its mark."""
        return file if self._chain(file) is None else _MARKED.sub("", file)

    def plain_text(self, text: str) -> str:
        """Return IR printed by upstream, with the marks removed from file names."""
        return _IN_TEXT.sub(lambda found: f'{self.plain(found.group(1))}"', text)

    def _chain(self, file: str) -> tuple[Frame, ...] | None:
        marked = _MARKED.search(file)
        number = int(marked.group(1)) if marked is not None else len(self._chains)
        return self._chains[number] if number < len(self._chains) else None

    def restore(self, ptx: str) -> str:
        """Restore the file names in PTX, and write the chains of callers with ``inlined_at``."""
        given = {int(number): _unescaped(name) for number, name in _FILE.findall(ptx)}
        if not any(self._chain(name) for name in given.values()):
            return ptx
        table = _Table()
        version = re.search(r"^\.version (\d+)\.(\d+)", ptx, re.M)
        chained = version is None or (int(version.group(1)), int(version.group(2))) >= _FIRST

        def place(found: re.Match[str]) -> str:
            name = given.get(int(found.group(1)), "")
            line, col, rest = int(found.group(2)), int(found.group(3)), found.group(4)
            chain = self._chain(name)
            if chain is None or not chained or line == 0:  # line 0: LLVM merged instructions from several locations
                return f"\t.loc\t{table.file(self.plain(name))} {line} {col}{rest}"
            return table.lines([Frame(chain[0].position._replace(line=line, col=col), chain[0].function), *chain[1:]])

        body = _PLACE.sub(place, _FILE.sub("", ptx))
        return body.rstrip("\n") + "\n" + table.text()


class _Table:
    """Files and function names referenced by a PTX text."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}
        self._functions: dict[str, int] = {}

    def file(self, name: str) -> int:
        return self._files.setdefault(name.replace('"', "'"), len(self._files) + 1)

    def lines(self, frames: list[Frame]) -> str:
        """Return the ``.loc`` lines of frames (innermost first), outermost first, without the final newline."""
        out: list[str] = []
        caller = ""
        for (file, line, col, _), _function in reversed(frames):
            at = f"{self.file(file)} {line} {col}"
            inlined = f", function_name {self._function(_function or file)}, inlined_at {caller}" if caller else ""
            out.append(f"\t.loc\t{at}{inlined}")
            caller = at
        return "\n".join(out)

    def _function(self, name: str) -> str:
        return f"$L__function{self._functions.setdefault(name, len(self._functions))}"

    def text(self) -> str:
        """Return the ``.file`` lines and the section of names."""
        files = [f'\t.file\t{number} "{_escaped(name)}"\n' for name, number in self._files.items()]
        names = [
            f"$L__function{number}:\n\t.b8 {','.join(map(str, (*name.encode(), 0)))}\n"
            for name, number in self._functions.items()
        ]
        section = ["\t.section\t.debug_str\n\t{\n", *names, "\t}\n"] if names else []
        return "".join([*files, *section])


def _escaped(name: str) -> str:
    """Escape a name as LLVM does, with non-ASCII bytes in octal."""
    return "".join("\\\\" if b == 0x5C else chr(b) if 0x20 <= b < 0x7F else f"\\{b:03o}" for b in name.encode())


def _unescaped(text: str) -> str:
    """Return the name that LLVM escaped."""
    out = re.sub(rb"\\([0-7]{3}|.)", lambda m: m[1] if len(m[1]) == 1 else bytes([int(m[1], 8) & 255]), text.encode())
    return out.decode(errors="replace")


# ------------------------------------------------------------------------------------------------------------- the text


_LONG = 80
"""Struct types with a longer text become aliases, because accumulators have hundreds of members."""


def handoff_text(
    module: Operation,
    *,
    locations: bool = True,
    location_texts: Mapping[Attribute, str] | None = None,
    call_sites: CallSites | None = None,
) -> str:
    """Return ``module`` in generic form.

    Args:
        locations: write the location of each op, so that upstream's errors can show it.
        location_texts: replacement texts of locations. With it, an op without a location gets an unknown location;
            otherwise upstream would use its position in this text.
        call_sites: for line tables; each location is written as one file, line and column.
    """
    writer = _HandOff(locations, location_texts or {}, call_sites)
    text = writer.write(module)
    return "".join([*writer.aliases, text, "\n"])


class _HandOff(GenericWriter):
    def __init__(self, locations: bool, location_texts: Mapping[Attribute, str], call_sites: CallSites | None):
        super().__init__(locations=locations, unknown_locations=bool(location_texts) or call_sites is not None)
        self._location_texts = location_texts
        self._call_sites = call_sites
        self.aliases: list[str] = []

    def write_attribute(self, attribute: Attribute) -> str:
        text = super().write_attribute(attribute)
        if len(text) > _LONG and text.startswith("!llvm.struct"):
            name = f"!s{len(self.aliases)}"
            self.aliases.append(f"{name} = {text}\n")
            return name
        return text

    def write_op_location(self, op: Operation) -> str:
        """Return the location of an op.

        Upstream passes file, line and name of an assertion's location to ``__assertfail``, which prints them. The name
        is therefore the function, with its callers. For line tables a function needs a location, otherwise upstream
        assigns its ops to no file; it gets the location of its first op.
        """
        if self._call_sites is not None and op.regions and "sym_name" in op.properties:
            inner = (location_frames(o.location) for o in op.walk())
            return next((_place_text(frames[-1].position) for frames in inner if frames), str(UNKNOWN_LOC))
        kernel = _kernel_around(op) if op.name == "cf.assert" and not self._location_texts else None
        frames = location_frames(op.location) if kernel is not None else ()
        if kernel is None or not frames:
            return super().write_op_location(op)
        function = frames[0].function or kernel
        called = [f", called from {Position(f.position.file, f.position.line, f.position.col)}" for f in frames[1:]]
        return str(NameLoc(StringAttr(function + "".join(called)), _place(frames[0].position)))

    def write_location(self, location: Attribute) -> str:
        if self._call_sites is not None:
            place = self._call_sites.place(location)
            return str(UNKNOWN_LOC) if place is None else _place_text(Position(*place))
        found = self._location_texts.get(location) if self._location_texts else None
        return found or super().write_location(location)


def _place(position: Position) -> FileLineColLoc:
    return FileLineColLoc(StringAttr(position.file), IntAttr(position.line), IntAttr(position.col))


def _place_text(position: Position) -> str:
    """Return ``loc("file":line:col)``.  Plain file names skip xDSL's slower printer."""
    file, line, col, _ = position
    if file.isascii() and file.isprintable() and '"' not in file and "\\" not in file:
        return f'loc("{file}":{line}:{col})'
    return str(_place(position))


def _kernel_around(op: Operation) -> str | None:
    """Return the name of the GPU function around an op, or None for an op in host code."""
    here, name = op.parent_op(), None
    while here is not None and here.name != "gpu.module":
        found = here.properties.get("sym_name")
        name = found.data if isinstance(found, StringAttr) else name
        here = here.parent_op()
    return name if here is not None else None
