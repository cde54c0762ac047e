"""Command line of the atom table, ``python -m cute_dialect.arch``: listings in JSON and text, and tables of layouts.

python -m cute_dialect.arch                        list all atoms, two lines per atom
python -m cute_dialect.arch --family wgmma -k x64x  list selected atoms
python -m cute_dialect.arch --json                 print all fields as a JSON array
python -m cute_dialect.arch --show SM80_16x8x16_F32F16F16F32_TN

>>> record(ATOMS["SM75_U32x1_LDSM_N"])["dst"]
'(32,32):(32,1)'
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from cute_dialect.algebra.evaluation import evaluate, size
from cute_dialect.algebra.values import Layout, layout_modes
from cute_dialect.arch.atom import Atom, CopyAtom, Metadata, MmaAtom, Registers
from cute_dialect.arch.errors import ArchError
from cute_dialect.arch.table import ATOMS, generated_names
from cute_dialect.arch.targets import TARGETS, TCGEN05, has_arch
from cute_dialect.spaces import AddressSpace

# ------------------------------------------------------------------------------------------------------------- listings


Json: TypeAlias = "str | int | bool | list[Json] | dict[str, Json] | None"


def record(atom: Atom) -> dict[str, Json]:
    """Return one atom as a JSON object, with layouts as strings.

    The layouts of an MMA atom have the keys A, B, C (and E), those of a copy atom src, dst and ref.
    """
    emit: dict[str, Json] = {
        "kind": atom.emit.kind,
        "mnemonic": atom.emit.mnemonic,
        "route": atom.emit.route,
        "nvvm": atom.emit.nvvm or None,
        "intrinsic": atom.emit.intrinsic or None,
        **dict(atom.emit.pieces),
    }
    out: dict[str, Json] = {"name": atom.name, "kind": "mma" if isinstance(atom, MmaAtom) else "copy"}
    out |= {"family": atom.family, "arch": atom.arch}
    if isinstance(atom, MmaAtom):
        out |= {
            "shape_mnk": list(atom.shape_mnk),
            "element_types": {op: atom.element(op) for op in "DABC"},
            "thr_id": str(atom.thr_id),
            "A": str(atom.layout_a),
            "B": str(atom.layout_b),
            "C": str(atom.layout_c),
            "majors": {"A": atom.major_a, "B": atom.major_b},
            "sources": {"A": atom.source_a, "B": atom.source_b},
            "registers": {op: _registers(atom.registers(op)) for op in "DABC"},
        }
        if atom.metadata is not None:
            out |= {"E": str(atom.metadata.layout), "metadata": _metadata(atom.metadata, atom.shape_mnk[0])}
    else:
        out |= {
            "shape_mnk": None,
            "element_types": {"value": atom.element},
            "thr_id": str(atom.thr_id),
            "src": str(atom.src),
            "dst": str(atom.dst),
            "ref": str(atom.ref),
            "bits": atom.bits,
            "sizes": atom.sizes or None,
            "spaces": {"src": atom.src_space, "dst": atom.dst_space},
            "alignment": {"src": atom.src_align, "dst": atom.dst_align},
            "registers": _registers(atom.registers) if atom.registers is not None else None,
        }
    out |= {"emit": emit, "ptx": atom.ptx, "isa": f"PTX ISA 9.0, {atom.isa}", "ptx_version": atom.ptx_version}
    return out


def _registers(held: Registers) -> Json:
    return {"type": held.type, "count": held.count, "values": held.values}


def _metadata(held: Metadata, m: int) -> Json:
    return {
        "element": held.element,
        "registers": _registers(held.registers),
        "group": held.group,
        "group_layout": str(held.group_layout(m)),
        "kept": {f"{bits:04b}": list(elements) for bits, elements in held.kept.items()},
        "selectors": held.selectors,
    }


def as_json(atoms: Iterable[Atom]) -> Iterator[str]:
    """Return the lines of a JSON array with one atom per line."""
    import json

    before = "["
    for atom in atoms:
        yield f"{before}{json.dumps(record(atom))}"
        before = ","
    yield "]" if before == "," else "[]"


def as_text(atoms: Iterable[Atom]) -> Iterator[str]:
    """Return the lines of a readable listing."""
    for atom in atoms:
        if isinstance(atom, MmaAtom):
            m, n, k = atom.shape_mnk
            types = " ".join(atom.element(op) for op in "DABC")
            yield f"{atom.name}  {atom.arch}  {m}x{n}x{k}  D A B C: {types}  ThrID {atom.thr_id}"
            e = "" if atom.metadata is None else f"  E {atom.metadata.layout}"
            yield f"    A {atom.layout_a}  B {atom.layout_b}  C {atom.layout_c}{e}"
        else:
            what = f"{atom.bits} bits" if not atom.sizes else atom.sizes
            yield f"{atom.name}  {atom.arch}  {atom.src_space} -> {atom.dst_space}, {what}  ThrID {atom.thr_id}"
            yield f"    src {atom.src}  dst {atom.dst}  ref {atom.ref}"


# ------------------------------------------------------------------------------------------------------------- tables


def holders(layout: Layout, thr_id: Layout | None = None) -> dict[int, list[tuple[int, int]]]:
    """Map each position to the (thread, value) pairs that hold it, with threads numbered by ``thr_id``.

    >>> holders(Layout("(2,2):(2,1)"))
    {0: [(0, 0)], 1: [(0, 1)], 2: [(1, 0)], 3: [(1, 1)]}
    """
    threads, values = layout_modes(layout)
    out: dict[int, list[tuple[int, int]]] = {}
    offsets = [evaluate(v, values) for v in range(size(values))]  # type: ignore[arg-type]
    for t in range(size(threads)):  # type: ignore[arg-type]
        base = evaluate(t, threads)
        name: int = t if thr_id is None else evaluate(t, thr_id)  # type: ignore[assignment]
        for v, offset in enumerate(offsets):
            out.setdefault(base + offset, []).append((name, v))  # type: ignore[operator]
    return out


def grid(
    layout: Layout, rows: int, columns: int, row_step: int, column_step: int, thr_id: Layout | None = None
) -> list[str]:
    """Return a table of ``T<thread>V<value>`` over positions ``row*row_step + column*column_step``.

    A position that several threads hold shows the first of them and ``+``.
    """
    where = holders(layout, thr_id)
    cells: list[list[str]] = [["", *map(str, range(columns))]]
    for r in range(rows):
        line = [str(r)]
        for c in range(columns):
            held = where.get(r * row_step + c * column_step, [])
            line.append(f"T{held[0][0]}V{held[0][1]}{'+' if len(held) > 1 else ''}" if held else "-")
        cells.append(line)
    widths = [max(len(line[i]) for line in cells) for i in range(columns + 1)]
    return [" ".join(text.rjust(w) for text, w in zip(line, widths)).rstrip() for line in cells]


def show(atom: Atom) -> Iterator[str]:
    """Return thread-value tables of an atom: each operand of an MMA atom, both sides of a copy atom."""
    yield f"{atom.name}  ({atom.arch}, PTX {atom.ptx_version})"
    yield f"{atom.ptx}"
    yield f"ThrID {atom.thr_id}"
    if isinstance(atom, MmaAtom):
        metadata = () if atom.metadata is None else (("E", "m words"),)
        for op, names in (("A", "m k"), ("B", "n k"), ("C", "m n"), *metadata):
            rows, columns = atom.tile(op)
            layout = atom.layout(op)
            yield ""
            yield f"{op} {atom.element(op)} ({rows},{columns})  {layout}"
            if {"A": atom.source_a, "B": atom.source_b}.get(op) == AddressSpace.smem:
                major = atom.major_a if op == "A" else atom.major_b
                yield f"  in shared memory, {major}-major, behind a matrix descriptor: each thread sees the whole tile"
                continue
            row, column = names.split()
            held = atom.registers(op)
            yield f"  {held.count} {held.type} registers of {held.values}; rows {row}, columns {column}"
            yield from ("  " + line for line in grid(layout, rows, columns, 1, rows, atom.thr_id))
    else:
        yield from _show_copy(atom)


def _show_copy(atom: CopyAtom) -> Iterator[str]:
    for side, layout, space in (("src", atom.src, atom.src_space), ("dst", atom.dst, atom.dst_space)):
        yield ""
        yield f"{side} ({space})  {layout}" + ("  the reference" if atom.ref_side == side else "")
        if atom.threads == 1:
            yield f"  one thread, {size(layout)} bits" + (f": {atom.sizes}" if atom.sizes else "")
            continue
        bits = int(atom.element[1:])
        per_row = 8 if bits == 16 else 2
        columns = per_row
        rows = (max(holders(layout)) + 1) // (bits * per_row)
        yield f"  in units of {bits} bits, {per_row} per row" + (
            ", + where threads repeat each other" if _repeats(layout) else ""
        )
        units = atom.in_elements(side, bits)
        yield from ("  " + line for line in grid(units, max(rows, 1), columns, per_row, 1, atom.thr_id))


def _repeats(layout: Layout) -> bool:
    return any(len(held) > 1 for held in holders(layout).values())


# --------------------------------------------------------------------------------------------------------- command line


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m cute_dialect.arch", description="The table of copy and MMA atoms.")
    parser.add_argument("--json", action="store_true", help="print a JSON array with all fields")
    parser.add_argument(
        "--show", metavar="NAME", action="append", default=[], help="print the thread-value tables of an atom"
    )
    parser.add_argument("-k", metavar="TEXT", default="", help="only atoms whose name contains TEXT")
    parser.add_argument(
        "--family", metavar="NAME", help="only atoms of a family: mma_sync, wgmma, ldmatrix, tma_load …"
    )
    parser.add_argument("--arch", metavar="SM", help="only atoms that a GPU such as sm_80 supports")
    args = parser.parse_args(argv)
    try:
        if args.show:
            for i, name in enumerate(args.show):
                print(*([""] if i else []), *show(ATOMS[name]), sep="\n")
            return 0
        if args.arch and args.arch not in TARGETS:
            raise ArchError(f"expected one of {', '.join(TARGETS)}, got {args.arch!r}", "--arch")
    except ArchError as e:
        print(f"error: {e}", file=sys.stderr)
        return 1
    generated = args.family in (None, "tcgen05") and (not args.arch or has_arch(args.arch, TCGEN05))
    names = (*ATOMS, *generated_names()) if generated else tuple(ATOMS)
    chosen = (ATOMS[name] for name in names if args.k in name)
    kept = (
        a
        for a in chosen
        if (args.family is None or a.family == args.family) and (args.arch is None or has_arch(args.arch, a.arch))
    )
    for line in (as_json if args.json else as_text)(kept):
        print(line)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:
        sys.exit(0)
