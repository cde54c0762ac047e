"""Kernels of one warp or warp group that run each MMA atom once, to compare what it computes with its table.

:func:`register_cases` are the atoms with operands in registers.  Their kernels take ``(A, B, C, D)`` and compute
``D = A * B + C``: A is ``(M,K)``, B ``(N,K)``, C and D ``(M,N)``, row-major; the tile is that of 32 threads.  Elements
below a byte come as words: A, B ``(32, registers)`` of i32, each thread's registers in order.

:func:`sparse_cases` are those of them whose A is sparse.  Their kernels take ``(A, B, E, C, D)``: A is the kept half,
``(M,K/2)``, E the words of metadata ``(M,K/columns)``, row-major.  Threads that the selector does not name get other
metadata, so that the result shows who was asked.

:func:`wgmma_cases` and :func:`wgmma_sparse_cases` are ``wgmma``.  Their kernels take ``(A, B, D)`` and compute
``D = 2 * A * B``: A and B, two instructions deep, are put into shared memory in the layout of the case; a first gemm
starts the accumulators, a second adds to them.  Where A is sparse they take ``(A, B, E, D)``.

``python -m cute_dialect.kernels.mma_atoms FOLDER`` compiles them for the GPU tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.arch.targets import DEFAULT_CHIP, DEFAULT_TARGET
from cute_dialect.kernels.builder import Builder
from cute_dialect.kernels.values import Value

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.arch.atom import MmaAtom

__all__ = ["MmaCase", "build", "kernels", "register_cases", "sparse_cases", "wgmma_cases", "wgmma_sparse_cases"]

WARP = DEFAULT_TARGET.warp
OTHER_METADATA = 0x44444444
"""Keeps the first elements of each group; means something for every type of A."""
ELEMENT_TYPES = {"b1": "i1", "tf32": "f32"}
"""Element of the table -> that of the tensors, where it is another."""


class MmaCase(NamedTuple):
    """One kernel.

    ``swizzle``: bytes of the rows of both operands in shared memory; ``flag``: scale-d at run time; ``selector``: which
    threads are asked for metadata.
    """

    name: str
    row: str
    swizzle: int = 128
    flag: bool = False
    selector: int = 0

    @property
    def atom(self) -> MmaAtom:
        """The row of the table."""
        from cute_dialect.arch import mma_atom

        return mma_atom(self.row)

    @property
    def words(self) -> bool:
        """Tell whether A and B come as registers."""
        from cute_dialect.arch.elements import bits_of

        return bits_of(self.atom.a) < 8

    @property
    def tile(self) -> tuple[int, int, int]:
        """(M, N, K) of the kernel's operands."""
        m, n, k = self.atom.shape_mnk
        if self.atom.family in ("wgmma", "wgmma_sp"):
            return m, n, 2 * k
        am, an = _atom_counts(self.atom)
        return m * am, n * an, k


def _atom_counts(atom: MmaAtom) -> tuple[int, int]:
    return {32: (1, 1), 8: (2, 2), 1: (8, 4)}[atom.threads]


def atom_type(atom: MmaAtom, selector: int = 0) -> str:
    """Return the type of a row of the table; ``selector``: of the metadata of a sparse A.

    >>> from cute_dialect.arch import mma_atom
    >>> atom_type(mma_atom("SM80_8x8x128_S32U1U1S32_TN_XORPOPC"))
    '!cute_nvgpu.atom.mma_sync<8x8x128, (i32,i1,i1,i32), xor>'
    """
    kind = {"fma": "universal_fma", "dp4a": "dot_product", "dp2a": "dot_product"}.get(atom.family, atom.family)
    names = ",".join("i1" if t == "b1" else t for t in (atom.d, atom.a, atom.b, atom.c))
    text = f"{'x'.join(map(str, atom.shape_mnk))}, ({names})"
    majors = f", major = ({atom.major_a}, {atom.major_b})"
    if atom.family in ("wgmma", "wgmma_sp"):
        text += f", A = {atom.source_a}{majors}"
    elif (atom.major_a, atom.major_b) != ("k", "k"):
        text += majors
    if atom.emit.kind in ("mma_sync", "mma_sp", "wgmma", "wgmma_sp") and atom.emit["saturate"]:
        text += ", saturate"
    if atom.emit.kind == "mma_sync" and atom.emit["bit_op"]:
        text += f", {atom.emit['bit_op']}"
    if selector:
        text += f", selector = {selector}"
    return f"!cute_nvgpu.atom.{kind}<{text}>"


def register_cases() -> Iterator[MmaCase]:
    """Return all atoms with operands in registers; of those that two generations have, the older."""
    from cute_dialect.arch import ATOMS, MmaAtom

    seen: set[str] = set()
    for name in ATOMS:
        if name.startswith("SM90_64x") or "_SPARSE_" in name:
            continue
        atom = ATOMS[name]
        if not isinstance(atom, MmaAtom):
            continue
        t = atom_type(atom)
        if t not in seen:
            seen.add(t)
            yield MmaCase(name, name)


def sparse_cases() -> Iterator[MmaCase]:
    """Return all atoms in registers whose A is sparse; of each shape and width each selector once."""
    from cute_dialect.arch import ATOMS, mma_atom
    from cute_dialect.arch.elements import bits_of

    seen: set[tuple[int, int]] = set()
    for name in ATOMS:
        if not name.startswith(("SM80_SPARSE_", "SM89_SPARSE_")):
            continue
        yield MmaCase(name, name)
        atom = mma_atom(name)
        assert atom.metadata is not None
        kind = (atom.shape_mnk[2], bits_of(atom.a))
        if kind not in seen:
            seen.add(kind)
            for selector in range(1, atom.metadata.selectors):
                yield MmaCase(f"{name}_SEL{selector}", name, selector=selector)


def wgmma_cases() -> Iterator[MmaCase]:
    """Return each type, source and major at N = 64; each N; each swizzle; scale-d at run time."""
    from cute_dialect.arch.sm90 import FLOAT_N, TYPES, wgmma_name

    for types in TYPES:
        for source in ("smem", "rmem"):
            wide = types[1] in ("f16", "bf16")
            for majors in ("TN", "TT", "NN", "NT") if wide else ("TN",):
                if source == "rmem" and majors[0] == "N":
                    continue
                for saturate in (False, True) if types[0] == "i32" else (False,):
                    name = wgmma_name(64, types, source, majors, saturate)
                    yield MmaCase(name, name)
    for n in FLOAT_N:
        if n != 64:
            name = wgmma_name(n, ("f32", "f16", "f16"), "smem")
            yield MmaCase(name, name)
    for width in (0, 32, 64):
        for types in (("f32", "f16", "f16"), ("f32", "tf32", "tf32"), ("i32", "i8", "ui8")):
            for majors in ("TN", "NT") if types[1] == "f16" else ("TN",):
                name = wgmma_name(64, types, "smem", majors)
                yield MmaCase(f"{name}_SW{width}", name, width)
    for source in ("smem", "rmem"):
        name = wgmma_name(64, ("f32", "bf16", "bf16"), source)
        yield MmaCase(f"{name}_FLAG", name, flag=True)


def wgmma_sparse_cases() -> Iterator[MmaCase]:
    """Return ``wgmma`` with a sparse A: as :func:`wgmma_cases`, and each selector; B takes swizzles of 64 bytes and
    more.
    """
    from cute_dialect.arch.sm90 import FLOAT_N, TYPES, majors_of
    from cute_dialect.arch.wgmma_sp import wgmma_sp_name

    for types in TYPES:
        for source in ("smem", "rmem"):
            for majors in majors_of(types[1], source):
                for saturate in (False, True) if types[0] == "i32" else (False,):
                    name = wgmma_sp_name(64, types, source, majors, saturate)
                    yield MmaCase(name, name)
    for n in FLOAT_N:
        if n != 64:
            name = wgmma_sp_name(n, ("f32", "f16", "f16"), "smem")
            yield MmaCase(name, name)
    for width in (0, 32, 64):
        for types in (("f32", "f16", "f16"), ("f32", "tf32", "tf32"), ("i32", "i8", "ui8")):
            for majors in ("TN", "NT") if types[1] == "f16" else ("TN",):
                name = wgmma_sp_name(64, types, "smem", majors)
                yield MmaCase(f"{name}_SW{width}", name, width)
    for source in ("smem", "rmem"):
        for types in (("f32", "bf16", "bf16"), ("f32", "tf32", "tf32")):
            name = wgmma_sp_name(64, types, source)
            yield MmaCase(f"{name}_SEL1", name, selector=1)
        name = wgmma_sp_name(64, ("f32", "bf16", "bf16"), source)
        yield MmaCase(f"{name}_FLAG", name, flag=True)


def kernels(cases: Iterable[MmaCase]) -> str:
    """Return the text of one module with these kernels."""
    b = Builder()
    for case in cases:
        (_registers if case.atom.source_b == "rmem" else _wgmma)(b, case)
    return b.text()


def _tensor(element: str, shape: tuple[int, int]) -> str:
    element = ELEMENT_TYPES.get(element, element)
    return f'!cute.memref<{element}, gmem, "({shape[0]},{shape[1]}):({shape[1]},1)">'


def _copy(b: Builder, source: Value, target: Value) -> None:
    from cute_dialect.memory_types import MemRefType

    t = target.type
    assert isinstance(t, MemRefType)
    b.copy(b.atom(f"!cute_nvgpu.atom.universal_copy<{t.element}>"), source, target)


def _tiled_mma(b: Builder, case: MmaCase, atom_layout: str) -> Value:
    t = atom_type(case.atom, case.selector)
    return b.op("cute.make_tiled_mma", b.atom(t), type=f'!cute.tiled_mma<{t}, atom_layout_MNK = <"{atom_layout}">>')


def _registers(b: Builder, case: MmaCase) -> None:
    atom = case.atom
    m, n, k = case.tile
    parameters = {"A": _tensor(atom.a, (m, k if atom.metadata is None else k // 2)), "B": _tensor(atom.b, (n, k))}
    if case.words:
        parameters = {x: _tensor("i32", (WARP, atom.registers(x).count)) for x in "AB"}
    if atom.metadata is not None:
        parameters["E"] = _tensor(atom.metadata.element, atom.tile("E"))
    parameters |= {x: _tensor(atom.c, (m, n)) for x in "CD"}
    am, an = _atom_counts(atom)
    with b.kernel(case.name, parameters, threads=WARP) as (pa, pb, *pe, pc, pd):
        tid = b.thread_id()
        mma = _tiled_mma(b, case, f"({am},{an},1):({1 if am > 1 else 0},{am if an > 1 else 0},0)")
        operands = [_fragment(b, case, mma, x, p, tid) for x, p in (("A", pa), ("B", pb))]
        part = b.partition("C", mma, pc, tid)
        acc = b.op("cute.tiled.mma.make_fragment_C", mma, part)
        _copy(b, part, acc)
        if pe:
            b.do("cute.sparse_gemm", mma, acc, *operands, _metadata(b, case, mma, pe[0], tid), acc)
        else:
            b.gemm(mma, acc, operands[0], operands[1], acc)
        _copy(b, acc, b.partition("C", mma, pd, tid))


def _metadata(b: Builder, case: MmaCase, mma: Value, tensor: Value, tid: Value) -> Value:
    """Return the fragment of E; threads that the selector does not name hold ``OTHER_METADATA`` in place of it."""
    held = case.atom.metadata
    assert held is not None
    part = b.partition("E", mma, tensor, tid)
    fragment = b.op("cute.tiled.mma.make_fragment_E", mma, part)
    b.do("cute.fill", fragment, b.constant(OTHER_METADATA & ((1 << 4 * held.groups) - 1), held.element))
    with b.if_((tid % 4 // (4 // held.selectors)).eq(case.selector)):
        _copy(b, part, fragment)
    return fragment


def _fragment(b: Builder, case: MmaCase, mma: Value, operand: str, tensor: Value, tid: Value) -> Value:
    atom = case.atom
    if case.words:
        held = atom.registers(operand)
        element = ELEMENT_TYPES.get(atom.element(operand), atom.element(operand))
        count = held.count * held.values
        row = b.slice(tensor, tid, None)
        words = b.registers(f'!cute.memref<i32, rmem, "{held.count}:1">')
        _copy(b, row, words)
        values = b.op("llvm.bitcast", b.load_vec(words), type=f"vector<{count}x{element}>")
        fragment = b.registers(f'!cute.memref<{element}, rmem, "({count},1,1):(1,0,0)">')
        b.store_vec(values, fragment)
        return fragment
    return _loaded(b, case, mma, operand, tensor, tid)


def _loaded(b: Builder, case: MmaCase, mma: Value, operand: str, tensor: Value, tid: Value) -> Value:
    """Return the fragment of an operand, filled from memory; tf32 numbers come, and stay, as f32."""
    from cute_dialect.ops.memory import fragment_like

    part = b.partition(operand, mma, tensor, tid)
    if case.atom.element(operand) == "tf32":
        fragment = b.registers(fragment_like(part.type))
    else:
        fragment = b.op(f"cute.tiled.mma.make_fragment_{operand}", mma, part)
    _copy(b, part, fragment)
    return fragment


def _wgmma(b: Builder, case: MmaCase) -> None:
    atom = case.atom
    m, n, k = case.tile
    ka = k if atom.metadata is None else k // 2
    parameters = {"A": _tensor(atom.a, (m, ka)), "B": _tensor(atom.b, (n, k))}
    if atom.metadata is not None:
        parameters["E"] = _tensor(atom.metadata.element, (m, k // atom.metadata.columns))
    parameters["D"] = _tensor(atom.d, (m, n))
    if case.flag:
        parameters["more"] = "i32"
    with b.kernel(case.name, parameters, threads=128) as (pa, pb, *rest):
        pe = rest.pop(0) if atom.metadata is not None else None
        pd, *more = rest
        tid = b.thread_id()
        mma = _tiled_mma(b, case, "(1,1,1):(0,0,0)")
        # The 64 bytes of B that a sparse product reads at once do not fit into rows of 32.
        wide = 64 if atom.metadata is not None and case.swizzle == 32 and atom.major_b == "k" else case.swizzle
        shared = {"B": (pb, n, k, atom.major_b, atom.b, wide)}
        if atom.source_a == "smem":
            shared["A"] = (pa, m, ka, atom.major_a, atom.a, case.swizzle)
        parts: dict[str, Value] = {}
        for operand, (source, x, depth, major, elt, width) in shared.items():
            smem = b.alloc_smem(_smem_type(elt, major, width, (x, depth)))
            with b.for_(0, x * depth, 128) as loop:
                where = tid + loop.iv
                b.store(smem, where, b.load(source, where))
            parts[operand] = b.partition(operand, mma, smem, tid)
        if atom.source_a == "rmem":
            parts["A"] = _loaded(b, case, mma, "A", pa, tid)
        if pe is not None:
            parts["E"] = _metadata(b, case, mma, pe, tid)
        b.run("fence_proxy_async")
        b.run("barrier")
        target = b.partition("C", mma, pd, tid)
        acc = b.op("cute.tiled.mma.make_fragment_C", mma, target)
        b.run("wgmma_fence")
        gemm = "cute.gemm" if pe is None else "cute.sparse_gemm"
        operands = [parts[x] for x in "ABE" if x in parts]
        b.do(gemm, mma, acc, *operands)
        b.run("wgmma_commit_group")
        b.run("wgmma_wait_group", n=0)
        b.run("wgmma_fence", acc)
        if more:
            flagged = b.op("cute.atom.set_value", mma, more[0].ne(0), field=b.type('"accumulate"'))
            b.do(gemm, flagged, acc, *operands)
        else:
            b.do(gemm, mma, acc, *operands, acc)
        b.run("wgmma_commit_group")
        b.run("wgmma_wait_group", acc, n=0)
        _copy(b, acc, target)


def _smem_type(element: str, major: str, width: int, tile: tuple[int, int]) -> str:
    """Return the type of a tile (X, K) in shared memory: rows of ``width`` bytes, the swizzle on the pointer."""
    from cute_dialect.algebra.text import to_text
    from cute_dialect.algebra.tiling import tile_to_shape
    from cute_dialect.arch.elements import bits_of
    from cute_dialect.arch.gmma import plain_atom, pointer_swizzle, row_bytes

    extent = tile[1] if major == "k" else tile[0]
    while row_bytes(width) * 8 // bits_of(element) > extent:
        width = {128: 64, 64: 32, 32: 0}[width]
    swizzle = f", {pointer_swizzle(width)}" if width else ""
    layout = tile_to_shape(plain_atom(major, width, element), tile)
    return f'!cute.memref<{ELEMENT_TYPES.get(element, element)}, smem, align<1024>{swizzle}, "{to_text(layout)}">'


def build(folder: str, chip: str = DEFAULT_CHIP) -> list[str]:
    """Compile into ``folder/mma_atoms_registers``, ``…_sparse``, ``…_wgmma``, ``…_wgmma_sparse``; what ptxas says."""
    import os

    from cute_dialect.pipelines import compile as compile_cute
    from cute_dialect.runtime.artifact import save_artifact

    reports: list[str] = []
    for name, cases in (
        ("registers", register_cases()),
        ("sparse", sparse_cases()),
        ("wgmma", wgmma_cases()),
        ("wgmma_sparse", wgmma_sparse_cases()),
    ):
        folder_name = os.path.join(folder, f"mma_atoms_{name}")
        module = compile_cute(kernels(cases), chip=chip, features="+ptx87", filename=f"mma_atoms_{name}.mlir")
        save_artifact(module.artifact._replace(stages=()), folder_name)
        reports.append(module.report.strip())
    return reports


if __name__ == "__main__":
    import sys

    print("\n".join(build(sys.argv[1])))
