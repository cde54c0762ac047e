"""Textual descriptions of atoms, for ``tiled_mma.describe()``, ``cute.atoms(…)`` and error messages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cute_dialect.arch.atom import MmaAtom
from cute_dialect.arch.elements import bits_of
from cute_dialect.arch.errors import ArchError
from cute_dialect.arch.gmma import SWIZZLES, plain_atom, smem_tile
from cute_dialect.arch.targets import DEFAULT_CHIP, TARGETS
from cute_dialect.lang.values.dtypes import NUMBER_TYPES

if TYPE_CHECKING:
    from cute_dialect.lang.machine.tiled_mma import TiledMma
    from cute_dialect.lang.values.dtypes import Numeric

__all__ = ["atoms", "atoms_for", "tiled_mma_text"]


@lru_cache(maxsize=64)
def _products(chip: str, a: str) -> tuple[tuple[str, str], ...]:
    """Return the MMA instructions of a chip for element type ``a`` of A, as (family, description with all shapes)."""
    from cute_dialect.arch.table import ATOMS  # late: start-up

    shapes: dict[tuple[str, str, str, str], list[tuple[int, int, int]]] = {}
    for name in ATOMS:
        if name.startswith(("SM90_64x", "SM90_SPARSE_")) or "_SPARSE_" in name:
            continue
        row = ATOMS[name]
        if isinstance(row, MmaAtom) and row.a == a and _has(chip, row.arch):
            found = shapes.setdefault((row.family, row.d, row.a, row.b), [])
            if row.shape_mnk not in found:
                found.append(row.shape_mnk)
    lines = [
        (family, f"{family} {', '.join('x'.join(map(str, s)) for s in sorted(found))} ({d},{x},{y},{d})")
        for (family, d, x, y), found in shapes.items()
    ]
    if _has(chip, "sm_90a"):
        from cute_dialect.arch.sm90 import FLOAT_N, INTEGER_N, TYPES  # late: start-up

        for d, x, y in TYPES:
            if x == a:
                n = INTEGER_N if d == "i32" else FLOAT_N
                lines.append(("wgmma", f"wgmma 64xNx{256 // bits_of(x)} ({d},{x},{y},{d}), N from {n[0]} to {n[-1]}"))
    return tuple(lines)


def _has(chip: str, needed: str) -> bool:
    if needed[-1].isalpha():
        return chip == needed
    target = TARGETS.get(chip)
    return target is None or target.number >= int(needed.removeprefix("sm_"))


def atoms(chip: str = "", a: type[Numeric] | None = None) -> tuple[str, ...]:
    """Return the MMA instructions of a chip: their shapes and the types of (D, A, B, C).

    Args:
        chip: the architecture, such as ``"sm_80"``; by default the compiler's default.
        a: the element type of A; None lists all.

    Example:
        >>> from cute_dialect.lang.values.dtypes import BFloat16
        >>> atoms("sm_80", BFloat16)
        ('fma 1x1x1 (bf16,bf16,bf16,bf16)', 'mma_sync 16x8x8, 16x8x16 (f32,bf16,bf16,f32)')
    """
    kinds = sorted({k.mlir_type for k in NUMBER_TYPES.values()}) if a is None else [a.mlir_type]
    return tuple([text for kind in kinds for _, text in _products(chip or DEFAULT_CHIP, kind)])


def atoms_for(tensors: Sequence[Any], chip: str) -> str:
    """Return one line with the MMA instructions for the element type of A, given the operands (D, A, B)."""
    element = getattr(tensors[1], "element_type", None) if len(tensors) > 1 else None
    return "; ".join(text for _, text in _products(chip, element.mlir_type)) if element is not None else ""


def tiled_mma_text(mma: TiledMma) -> str:
    """Describe a tiled MMA: the instruction, threads, tile, operand layouts and matrix descriptors."""
    row = mma.atom.type.row
    lines = [
        f"atom      {mma.atom.type}",
        f"          {row.ptx}",
        f"threads   {mma.size}, (V,M,N,K) -> thread: {mma.thr_layout_vmnk}",
        f"tile      {'x'.join(map(str, mma.tile_shape_mnk))} (M x N x K)",
    ]
    for operand in "ABC":
        lines.append(f"{operand}         {_operand_text(mma, row, operand)}")
    return "\n".join(lines)


def _operand_text(mma: TiledMma, row: Any, operand: str) -> str:
    if mma.atom.type.in_shared_memory(operand):
        major = {"A": row.major_a, "B": row.major_b}[operand]
        return f"in shared memory, {major}-major, by matrix descriptors: {_descriptors(row, operand, major)}"
    held = row.registers(operand)
    layout = mma.tv_layout(operand)
    return f"in {held.count} registers {held.type} of {held.values}, (thread, value) -> index: {layout}"


def _descriptors(row: Any, operand: str, major: str) -> str:
    """Return the leading and stride byte offsets for each swizzle, for one instruction's tile."""
    from cute_dialect.arch.descriptors import derive  # late: start-up

    m, n, k = row.shape_mnk
    x = m if operand == "A" else n
    element = row.element(operand)
    found: list[str] = []
    for width in SWIZZLES:
        try:
            rows, columns = plain_atom(major, width, element).shape  # pyright: ignore
            tile = (-(-x // rows) * rows, -(-k // columns) * columns)  # pyright: ignore
            descriptor = derive(smem_tile(major, width, element, tile), element, x=x).descriptor  # pyright: ignore
            found.append(f"swizzle {width}: LBO {descriptor.lbo}, SBO {descriptor.sbo}")
        except ArchError:
            continue
    return "; ".join(found)
