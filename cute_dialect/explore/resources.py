"""Tabs for the resources of a kernel: shared memory buffers, and registers and spills per source line."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from cute_dialect.explore.collect import Collected
from cute_dialect.explore.tabs import Cell, Row, Tab, Table, code, number, words
from cute_dialect.interp.errors import attr_of
from cute_dialect.interp.memory.allocations import shared_allocations
from cute_dialect.ir.diagnostics import op_frames

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

__all__ = ["registers_tab", "shared_tab"]


def shared_tab(made: Collected, trace: ModuleOp) -> Tab:
    """Return the tab of the shared memory buffers.

    ``trace`` is the module that was compiled, with source locations.
    """
    tab = Tab("shared", "Shared memory")
    rows: list[Row] = []
    total = 0
    for name in [k["name"] for k in made.module.manifest["kernels"]]:
        lines = _allocating(made, trace, name)
        for op in cast("Operation", made.module.lowered(name)).walk():
            listed = attr_of(op, "cute.smem")
            if listed is None:
                continue
            segments = {str(e.data["segment"].data): (0, 0) for e in listed.data}  # type: ignore[union-attr]
            for a in shared_allocations(op, segments).known:
                total = max(total, a.start + a.size)
                buffer = a.name.strip("%'")
                groups = lines.get(buffer, ())
                row = Row((name, buffer, a.start, a.size, a.type), groups, made.source.line_of(groups))
                if row not in rows:
                    rows.append(row)
    static = [f"{k['name']}: {k['smem']} bytes static" for k in made.code.kernels if k.get("smem")]
    tab.says = (
        f"{total} bytes in {len(rows)} buffers. {'; '.join(static)}"
        if rows
        else "The kernel allocates no shared memory."
    )
    if rows:
        columns = (code("kernel"), code("buffer"), number("first byte"), number("bytes"), code("type"))
        tab.parts.append(Table(columns, rows))
    return tab


def _allocating(made: Collected, trace: ModuleOp, kernel: str) -> dict[str, tuple[int, ...]]:
    """Map each buffer name of the lowered kernel to the groups of the op that allocates it."""
    found: dict[str, tuple[int, ...]] = {}
    functions = (op for op in trace.walk() if op.name == "gpu.func")
    for function in functions:
        if getattr(attr_of(function, "sym_name"), "data", "") != kernel:
            continue
        made_by = (op for op in function.walk() if op.name == "cute.memref.alloc_smem")
        for n, op in enumerate(made_by):
            hint = op.results[0].name_hint
            chain = tuple((f.position.file, f.position.line) for f in op_frames(op))
            found[hint or f"alloc_smem #{n}"] = made.groups.of_chain(chain)
    return found


_KERNEL = {
    "name": code("kernel"), "registers": number("registers"), "spill_stores": number("spill stores, bytes"),
    "spill_loads": number("spill loads, bytes"), "stack": number("stack, bytes"),
    "smem": number("static shared, bytes"), "barriers": number("barriers"), "code": number("code, bytes"),
}  # fmt: skip
"""Maps a value that ptxas reports for a kernel to its column."""

_LINE = (
    words("where"), number("live registers"), number("instructions"), number("spill stores"), number("spill loads"),
    code("source"),
)  # fmt: skip


def registers_tab(made: Collected) -> Tab:
    """Return the tab of registers and spills: the report of ptxas per kernel, and the instructions per source line."""
    tab = Tab("registers", "Registers and spills")
    kernels = [Row([cast("Cell", k[name]) for name in _KERNEL]) for k in made.code.kernels]
    if kernels:
        tab.parts.append(Table(tuple(_KERNEL.values()), kernels))
    sass = made.code.sass
    if not sass.lines:
        tab.says = sass.missing
        return tab
    tab.says = (
        "Per source line: the maximum number of live registers at its instructions, the number of instructions, and "
        "the number of instructions that spill (nvdisasm)."
    )
    by_line: dict[int, list[int]] = {}
    for i, groups in enumerate(sass.groups):
        line = made.source.line_of(groups)
        if line >= 0:
            by_line.setdefault(line, []).append(i)
    rows: list[tuple[tuple[int, int, int], Row]] = []
    for line, found in by_line.items():
        stores, loads = (sum(made.code.spills[i] == kind for i in found) for kind in ("store", "load"))
        most = max(made.code.live[i] for i in found)
        cells = (made.source.name_of(line), most, len(found), stores, loads, made.source.text_of(line))
        row = Row(cells, made.source.own[line], line, bad=stores + loads > 0)
        rows.append(((-stores - loads, -most, line), row))
    rows.sort(key=lambda pair: pair[0])
    tab.parts.append(Table(_LINE, [row for _, row in rows]))
    tab.count = sum(row.bad for _, row in rows)
    return tab
