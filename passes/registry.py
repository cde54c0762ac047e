"""Table of all passes: name, summary, and location of the class, which is imported on first use.

A pass of this package is a class in a module of ``passes``.  Its ``name``, ``summary`` and ``scope`` are its record.
The table reads them from the text of the module, so that a start imports no pass.  The other passes belong to upstream
MLIR and run there, after the hand-off (:mod:`cute_dialect.pipelines.runner`).

>>> PASSES["cute-drop-asserts"].module, PASSES["cute-drop-asserts"].class_name
('.drop_asserts', 'DropAssertsPass')
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast

if TYPE_CHECKING:
    from cute_dialect.passes.base import Pass

Scope: TypeAlias = Literal["cute", "base", "generic"]
"""Scope of a pass: ``--dialects=cute`` selects cute and generic, ``--dialects=base`` base and generic."""


class PassInfo(NamedTuple):
    """One entry of the table.

    Args:
        name, summary: name and one-line help.
        scope: dialects that the pass works on.
        module: module of the class, starting with a dot in this package; empty for a pass of upstream MLIR.
        class_name: name of the class.
        anchor: ops that an upstream pass runs on.
        options: option names of an upstream pass.
        both: the pass exists here and in upstream, and runs on the side that holds the IR (``in_upstream`` of the
            class).
        origin: package or module of a pass of another package (:mod:`.outside`); empty for passes of this package.
    """

    name: str
    summary: str
    scope: Scope
    module: str = ""
    class_name: str = ""
    anchor: tuple[str, ...] | None = None
    options: tuple[str, ...] | None = ()
    """option names of an upstream pass; None: upstream checks them"""
    both: bool = False
    origin: str = ""

    @property
    def upstream(self) -> bool:
        """True if only upstream MLIR can run the pass."""
        return not self.module

    def goes_with(self, dialects: str) -> bool:
        """Return True if the pass is available with ``--dialects=cute|base|all``."""
        return dialects == "all" or self.scope in (dialects, "generic")

    def load(self) -> type[Pass]:
        """Import the class of a pass that runs here.  Raises KeyError for a pass of upstream."""
        if self.upstream:
            raise KeyError(self.name)
        return getattr(import_module(self.module, "cute_dialect.passes"), self.class_name)


_MODULE = ("builtin.module",)

_UPSTREAM: tuple[PassInfo, ...] = (
    PassInfo("convert-nvgpu-to-nvvm", "lower nvgpu ops of cute-to-base{arch-dialect=nvgpu} to nvvm", "base"),
    PassInfo("base-prepare", "canonicalize, cse, hoist and reconcile casts (base IR)", "base", anchor=_MODULE),
    PassInfo("one-shot-convert-to-llvm", "base IR to llvm and nvvm, device and host", "base", anchor=_MODULE),
    PassInfo(
        "ensure-debug-info-scope-on-llvm-func",
        "give functions of the llvm dialect a debug scope, so that PTX has line info",
        "base",
        anchor=_MODULE,
        options=("emission-kind",),
    ),
    PassInfo(
        "attach-nvvm-target",
        "add #nvvm.target to every gpu.module",
        "base",
        anchor=_MODULE,
        options=("chip", "features", "opt-level"),
    ),
    PassInfo(
        "emit-gpu-binary",
        "compile every gpu.module: PTX, cubin or bitcode",
        "base",
        anchor=_MODULE,
        options=("compilation-target",),
    ),
    PassInfo("control-flow-sink", "sink ops into the branch that uses them", "generic", options=None),
    PassInfo("inline", "inline function calls", "generic", options=None),
    PassInfo("mem2reg", "promote memory slots to values", "generic", options=None),
    PassInfo("remove-dead-values", "remove arguments and results that nothing uses", "generic", options=None),
    PassInfo("sccp", "propagate constants through control flow", "generic", options=None),
    PassInfo("sroa", "split aggregates in memory into their scalars", "generic", options=None),
    PassInfo("symbol-dce", "remove private symbols that nothing uses", "generic", options=None),
)

_RECORD = re.compile(
    r'^    name = "(?P<name>.*)"\n    summary = "(?P<summary>.*)"\n    scope = "(?P<scope>\w+)"\n'
    r"(?P<both>    in_upstream = True\n)?",
    re.MULTILINE,
)


def records(folder: str) -> Iterator[PassInfo]:
    """Yield the records of the passes in a folder: three or four literals that stand together in each class."""
    for file in sorted(os.listdir(folder)):
        if not file.endswith(".py"):
            continue
        with open(os.path.join(folder, file), encoding="utf-8") as f:
            text = f.read()
        for found in _RECORD.finditer(text):
            line = text[text.rindex("\nclass ", 0, found.start()) :].split("\n", 2)[1]
            class_name = line.removeprefix("class ").partition("(")[0]
            yield PassInfo(
                found["name"],
                found["summary"],
                cast("Scope", found["scope"]),
                f".{file[:-3]}",
                class_name,
                both=found["both"] is not None,
            )


def _rows() -> list[PassInfo]:
    """Return all passes: those on cute ops, on base ops and on any ops; of each, those of this package first."""
    own = [row for folder in sys.modules["cute_dialect.passes"].__path__ for row in records(folder)]
    scopes = ("cute", "base", "generic")
    return sorted([*own, *_UPSTREAM], key=lambda row: scopes.index(row.scope))


_ROWS = _rows()
PASSES: Mapping[str, PassInfo] = {row.name: row for row in _ROWS}


def in_scope(dialects: str) -> Iterable[PassInfo]:
    """Yield the passes available with ``--dialects=cute|base|all``."""
    return (row for row in _ROWS if row.goes_with(dialects))


def load(name: str) -> type[Pass]:
    """Import the class of a pass that runs here.  Raises KeyError for an unknown name or a pass of upstream."""
    return PASSES[name].load()
