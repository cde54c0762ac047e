"""Compile a module, keep each stage with its places, and make panes of them."""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from cute_dialect.explore.links import Groups, Pane, files_of, linked, source_pane
from cute_dialect.explore.places import of_mlir, of_ptx

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from cute_dialect.runtime.launch import CompiledModule

__all__ = ["Collected", "collect", "compiled"]

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
"""Stage -> the title of its pane."""

_UPSTREAM = ("base-prepare", "one-shot-convert-to-llvm")
"""Stages that upstream MLIR prints: without the callers of a place."""

_MOST_LINES = 20_000
"""Lines of a pane beyond which it is cut, and says so."""


@dataclass
class Collected:
    """A compiled module, its panes, the groups of their lines; of each line of SASS its live registers and spills."""

    module: CompiledModule
    panes: list[Pane]
    groups: Groups
    report: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    """What ptxas said of each kernel."""
    is_mlir: bool = False
    """Whether the source is IR."""
    live: list[int] = field(default_factory=list[int])
    spills: list[str] = field(default_factory=list[str])

    @cached_property
    def line_of_group(self) -> dict[int, int]:
        """The line of the source pane, counted from 0, that is the innermost place of each group."""
        return {g: i for i, found in enumerate(self.panes[0].own or ()) for g in found}

    def pane(self, key: str) -> Pane:
        """Return a pane by its key."""
        return next(p for p in self.panes if p.key == key)


def compiled(
    module: ModuleOp, *, filename: str, pipeline: str = "nvptx", chip: str | None = None, opt_level: int | None = None
) -> CompiledModule:
    """Compile a module, and keep its stages with the places of each op; PTX has them, too.

    Without upstream's MLIR it ends at base IR.  Raises CompileError.
    """
    from cute_dialect.pipelines.stages import compile_module
    from cute_dialect.pipelines.upstream import is_available

    return compile_module(
        module, filename=filename, pipeline=pipeline, chip=chip, opt_level=opt_level, keep_stages=True, located=_TITLES,
        lineinfo=pipeline.partition("=")[0] == "nvptx", emit="auto" if is_available() else "base",
    )  # fmt: skip


def collect(module: CompiledModule, trace: ModuleOp, sources: Sequence[str]) -> Collected:
    """Make the panes of a module that :func:`compiled` gave.  ``trace``: what was compiled; ``sources``: its files."""
    groups = Groups()
    panes = [_trace_pane(groups, trace)]
    before = panes[0].lines
    for stage in module.artifact.stages:
        text = of_mlir(stage.text)
        if text.lines == before:
            continue
        before = text.lines
        found = linked(groups, text, callers=stage.name not in _UPSTREAM)
        panes.append(Pane(stage.name, _TITLES[stage.name], "mlir", text.lines, found, stage.name == "cute-to-base"))
    made = Collected(module, panes, groups)
    _machine(made)
    panes.insert(0, source_pane(groups, _read(sources, groups)))
    made.is_mlir = os.path.splitext(sources[0])[1] == ".mlir"
    panes[1].shown = not made.is_mlir
    for pane in panes:
        if len(pane.lines) > _MOST_LINES:
            cut = len(pane.lines) - _MOST_LINES
            pane.lines[_MOST_LINES:] = [f"… {cut} more lines are not shown"]
            pane.groups[_MOST_LINES:] = [()]
    return made


def _trace_pane(groups: Groups, trace: ModuleOp) -> Pane:
    from cute_dialect.front.readable import type_names
    from cute_dialect.ir.printing import ir_text

    text = of_mlir(ir_text(trace, debuginfo=True, source_names=True, aliases=type_names(trace)))
    return Pane("trace", "cute IR", "mlir", text.lines, linked(groups, text))


def _machine(made: Collected) -> None:
    """Add the panes of PTX and machine code; where there is none, they say why."""
    from cute_dialect.explore.machine_code import disassembled
    from cute_dialect.pipelines.cuda_programs import PtxasError
    from cute_dialect.pipelines.upstream import is_available
    from cute_dialect.pipelines.upstream_error import UpstreamMissing

    code = made.module.artifact.code
    ptx = Pane("ptx", "PTX", "ptx", [], [])
    sass = Pane("sass", "SASS", "sass", [], [])
    made.panes += [ptx, sass]
    if not code:
        ptx.missing = sass.missing = UpstreamMissing.HINT
        if is_available():
            ptx.missing = sass.missing = "There is no kernel in this module."
            ptx.shown = sass.shown = False
        return
    sass.notes = []
    for one in code:
        text = of_ptx(one.ptx or "")
        ptx.lines += text.lines
        ptx.groups += linked(made.groups, text)
        made.report += _kernels(one.ptxas)
        if one.cubin is None:
            sass.missing = one.report.strip() or "there is no machine code"
            continue
        try:
            found = disassembled(one.cubin)
        except PtxasError as e:
            sass.missing = str(e)
            continue
        sass.lines += found.text.lines
        # Machine code says one frame of a place where ptxas kept no more: then it stands for all its groups.
        sass.groups += linked(made.groups, found.text, callers=False)
        sass.notes += [
            f"{n}{' spills' if s else ''}" if n or s else "" for n, s in zip(found.live, found.spills)
        ]  # fmt: skip
        made.live += found.live
        made.spills += found.spills


def _kernels(report: object) -> list[dict[str, object]]:
    found: object = report.get("kernels") if isinstance(report, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return list(found) if isinstance(found, list) else []  # pyright: ignore[reportUnknownArgumentType]


def _read(sources: Sequence[str], groups: Groups) -> list[tuple[str, str]]:
    """Return the files of the user, then others that lines come from."""
    names = [os.path.abspath(s) for s in sources]
    ours = {os.path.abspath(frame.filename) for frame in traceback.extract_stack()}  # who calls us is no source
    names += [f for f in files_of(groups) if f not in names and f not in ours]
    found: list[tuple[str, str]] = []
    for name in names:
        try:
            with open(name, encoding="utf-8", errors="replace") as f:
                found.append((name, f.read()))
        except OSError:
            continue
    return found
