"""Compilation of a module with all stages and their source locations, and construction of the panes."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from cute_dialect.explore.links import (
    Groups,
    Pane,
    Source,
    disassembled,
    files_of,
    linked,
    of_mlir,
    of_ptx,
    source_pane,
)
from cute_dialect.ir.printing import ir_text
from cute_dialect.lang.rewrite.trace_text import type_names
from cute_dialect.pipelines.compilation import CompileRequest
from cute_dialect.pipelines.compiler import compile_module
from cute_dialect.pipelines.ptxas import PtxasError
from cute_dialect.pipelines.upstream import UpstreamMissing, is_available

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from cute_dialect.runtime.launch import CompiledModule

_TITLES = {
    "cute-fold-static": "folded",
    "cute-expand-ops": "expanded",
    "convert-cute-algo-to-arch": "atoms",
    "cute-to-base": "base",
    "cute-strong-atomics": "atomics",
    "cute-wgmma-registers": "wgmma",
    "base-prepare": "prepared",
    "one-shot-convert-to-llvm": "llvm",
}
"""Maps a stage to the title of its pane."""

_UPSTREAM = ("base-prepare", "one-shot-convert-to-llvm")
"""Stages printed by upstream MLIR, whose locations lack the callers."""


@dataclass
class Assembly:
    """PTX and machine code, with the live registers and spills of each line of machine code.

    A spill is "store" or "load", else "".  ``kernels`` is the report of ptxas per kernel.
    """

    ptx: Pane
    sass: Pane
    live: list[int] = field(default_factory=list[int])
    spills: list[str] = field(default_factory=list[str])
    kernels: list[Mapping[str, object]] = field(default_factory=list[Mapping[str, object]])


@dataclass
class Collected:
    """A compiled module with its source, the IR of each stage (trace first), its code, and the groups of all lines."""

    module: CompiledModule
    groups: Groups
    source: Source
    stages: Sequence[Pane]
    code: Assembly
    is_mlir: bool
    """True if the source is IR."""

    @property
    def trace(self) -> Pane:
        """The traced or parsed cute IR."""
        return self.stages[0]

    @property
    def panes(self) -> list[Pane]:
        """All panes, from source to machine code."""
        return [self.source, *self.stages, self.code.ptx, self.code.sass]


def compiled(
    module: ModuleOp, *, filename: str, pipeline: str = "nvptx", chip: str | None = None, opt_level: int | None = None
) -> CompiledModule:
    """Compile a module, keeping its stages and PTX with source locations.

    Without upstream MLIR, compilation stops at base IR.  Raises CompileError.
    """
    request = CompileRequest(
        module, filename=filename, pipeline=pipeline, chip=chip, opt_level=opt_level, keep_stages=True, located=_TITLES,
        lineinfo=pipeline.partition("=")[0] == "nvptx", emit="auto" if is_available() else "base",
    )  # fmt: skip
    return compile_module(request)


def collect(module: CompiledModule, trace: ModuleOp, sources: Sequence[str]) -> Collected:
    """Build the panes of a module compiled by :func:`compiled`.

    ``trace`` is its input, ``sources`` are its source files.
    """
    groups = Groups()
    stages = _stages(groups, module, trace)
    code = _code(groups, module)
    source = source_pane(groups, _read(sources, groups))
    made = Collected(module, groups, source, stages, code, is_mlir=sources[0].endswith(".mlir"))
    made.trace.shown = not made.is_mlir
    for pane in made.panes:
        pane.cut()
    return made


def _stages(groups: Groups, module: CompiledModule, trace: ModuleOp) -> list[Pane]:
    """Return the panes of the trace and of each stage that changed the IR."""
    text = of_mlir(ir_text(trace, debuginfo=True, source_names=True, aliases=type_names(trace)))
    panes = [Pane("trace", "cute IR", "mlir", text.lines, linked(groups, text))]
    for stage in module.artifact.stages:
        text = of_mlir(stage.text)
        if text.lines == panes[-1].lines:
            continue
        found = linked(groups, text, callers=stage.name not in _UPSTREAM)
        panes.append(Pane(stage.name, _TITLES[stage.name], "mlir", text.lines, found, stage.name == "cute-to-base"))
    return panes


def _code(groups: Groups, module: CompiledModule) -> Assembly:
    """Return PTX and machine code. A missing one has the reason in its pane."""
    ptx, sass = Pane("ptx", "PTX", "ptx", [], []), Pane("sass", "SASS", "sass", [], [])
    made = Assembly(ptx, sass)
    if not module.artifact.code:
        has_mlir = is_available()
        ptx.missing = sass.missing = "There is no kernel in this module." if has_mlir else UpstreamMissing.HINT
        ptx.shown = sass.shown = not has_mlir
    for one in module.artifact.code:
        text = of_ptx(one.ptx or "")
        ptx.lines += text.lines
        ptx.groups += linked(groups, text)
        if one.ptxas is not None:
            made.kernels += cast("Sequence[Mapping[str, object]]", one.ptxas["kernels"])
        if one.cubin is None:
            sass.missing = one.report.strip() or "there is no machine code"
            continue
        try:
            found = disassembled(one.cubin)
        except PtxasError as e:
            sass.missing = str(e)
            continue
        sass.lines += found.text.lines
        # ptxas may keep only one frame of a location. In machine code, such a frame stands for all of its groups.
        sass.groups += linked(groups, found.text, callers=False)
        sass.notes += [f"{n or ''}{' spills' if s else ''}" for n, s in zip(found.live, found.spills)]
        made.live += found.live
        made.spills += found.spills
    return made


def _read(sources: Sequence[str], groups: Groups) -> list[tuple[str, str]]:
    """Read the user's files, followed by other files that lines come from."""
    names = [os.path.abspath(s) for s in sources]
    # our own callers, which are not part of the source
    ours = {os.path.abspath(frame.filename) for frame in traceback.extract_stack()}
    names += [f for f in files_of(groups) if f not in names and f not in ours]
    found: list[tuple[str, str]] = []
    for name in names:
        try:
            with open(name, encoding="utf-8", errors="replace") as f:
                found.append((name, f.read()))
        except OSError:
            continue
    return found
