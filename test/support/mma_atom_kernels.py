"""Kernels of one warp or warpgroup that execute each MMA atom once, so that tests can compare results with its table.

:func:`register_cases` are the atoms with operands in registers.  Their kernels take ``(A, B, C, D)`` and compute
``D = A * B + C``: A is ``(M,K)``, B ``(N,K)``, C and D ``(M,N)``, row-major.  The tile is that of 32 threads.  Operands
with elements smaller than a byte are passed as registers: A, B ``(32, registers)`` of i32.

:func:`sparse_cases` are the atoms with operands in registers whose A is sparse.  Their kernels take
``(A, B, E, C, D)``: A holds the kept half, ``(M,K/2)``, and E the metadata words, ``(M,K/columns)``, both row-major.
Threads that the selector does not select hold different metadata, so a wrong selector changes the result.

:func:`wgmma_cases` and :func:`wgmma_sparse_cases` are ``wgmma``. Their kernels take ``(A, B, D)`` and compute
``D = 2 * A * B``.  A and B span two instructions along K and are copied to shared memory in the layout of the case.
The first gemm initializes the accumulators, and the second adds to them.  For a sparse A the kernels take
``(A, B, E, D)``.

``python test/support/mma_atom_kernels.py FOLDER`` compiles them for the GPU tests.
"""

# pyright: basic

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kernel_modules import Use, module_text

import cute_dialect.lang as cute
from cute_dialect.arch import ATOMS, MmaAtom, mma_atom
from cute_dialect.arch.elements import bits_of
from cute_dialect.arch.sm90 import FLOAT_N, majors_of, wgmma_name
from cute_dialect.arch.sm90 import TYPES as WGMMA_TYPES
from cute_dialect.arch.sparse_mma import wgmma_sp_name
from cute_dialect.lang.nvgpu import DotProductOp, MmaUniversalOp, warp, warpgroup

WARP = 32
OTHER_METADATA = 0x44444444
"""Metadata that keeps the first elements of each group; valid for every type of A."""
TYPES = {
    "f64": cute.Float64, "f32": cute.Float32, "tf32": cute.TFloat32, "f16": cute.Float16, "bf16": cute.BFloat16,
    "f8E4M3FN": cute.Float8E4M3FN, "f8E5M2": cute.Float8E5M2, "i32": cute.Int32, "ui32": cute.Uint32,
    "i16": cute.Int16, "ui16": cute.Uint16, "i8": cute.Int8, "ui8": cute.Uint8, "i4": cute.Int4, "ui4": cute.Uint4,
    "b1": cute.Boolean, "f6E3M2FN": cute.Float6E3M2FN, "f6E2M3FN": cute.Float6E2M3FN, "f4E2M1FN": cute.Float4E2M1FN,
}  # fmt: skip
"""Element type of the table -> type of the language."""


class MmaCase(NamedTuple):
    """A kernel of one MMA atom.

    ``swizzle`` is the row width of both operands in shared memory, in bytes.  ``flag`` means that scale-d is a run-time
    argument.  ``selector`` selects the threads that hold the metadata.
    """

    name: str
    row: str
    swizzle: int = 128
    flag: bool = False
    selector: int = 0

    @property
    def atom(self) -> MmaAtom:
        """Return the atom's row of the table."""
        return mma_atom(self.row)

    @property
    def op(self) -> Any:
        """Return the descriptor of the atom in the language."""
        return descriptor(self.atom, self.selector)

    @property
    def words(self) -> bool:
        """Return True if A and B are passed as registers."""
        return bits_of(self.atom.a) < 8

    @property
    def tile(self) -> tuple[int, int, int]:
        """Return (M, N, K) of the kernel's operands."""
        m, n, k = self.atom.shape_mnk
        if self.atom.family in ("wgmma", "wgmma_sp"):
            return m, n, 2 * k
        am, an, _ = atom_layout(self.atom)
        return m * am, n * an, k


def atom_layout(atom: MmaAtom) -> tuple[int, int, int]:
    """Return the number of atoms per warp along M, N and K."""
    return {32: (1, 1, 1), 8: (2, 2, 1), 1: (8, 4, 1)}[atom.threads]


def descriptor(atom: MmaAtom, selector: int = 0) -> Any:
    """Return the descriptor of an atom; ``selector`` selects the threads that hold the metadata of a sparse A.

    >>> descriptor(mma_atom("SM80_8x8x128_S32U1U1S32_TN_XORPOPC"))
    MmaB1Op(bit_op='xor', shape_mnk=(8, 8, 128))
    """
    a, b, d, shape = TYPES[atom.a], TYPES[atom.b], TYPES[atom.d], atom.shape_mnk
    majors = {"a_major_mode": atom.major_a, "b_major_mode": atom.major_b}
    saturate = atom.emit.kind in ("mma_sync", "mma_sp", "wgmma", "wgmma_sp") and bool(atom.emit["saturate"])
    group = {"instruction_shape": shape, "a_src": atom.source_a, **majors} if "wgmma" in atom.family else {}
    match atom.family, dict(atom.emit.pieces).get("kind"):
        case "mma_sync", "f8f6f4":
            return warp.MmaF8F6F4Op(a, b, d, shape)
        case "mma_sync", "mxf8f6f4":
            return warp.MmaMXF8F6F4Op(a, b, d)
        case "mma_sync", "mxf4":
            return warp.MmaMXF4Op(a, d)
        case "mma_sync", "mxf4nvf4":
            return warp.MmaMXF4NVF4Op(a, d)
    match atom.family, atom.a:
        case "fma", _:
            return MmaUniversalOp(a)
        case "dp4a" | "dp2a", _:
            return DotProductOp(a, b)
        case "mma_sp", _:
            return warp.MmaSparseOp(a, d, shape, selector, b_dtype=b, saturate=saturate)
        case "wgmma_sp", _:
            return warpgroup.MmaSparseOp(a, b, d, **group, selector=selector, saturate=saturate)
        case "wgmma", "f16" | "bf16":
            return warpgroup.MmaF16BF16Op(a, d, **group)
        case "wgmma", "tf32":
            return warpgroup.MmaTF32Op(d, **group)
        case "wgmma", "i8" | "ui8":
            return warpgroup.MmaI8Op(a, b, d, **group, saturate=saturate)
        case "wgmma", _:
            return warpgroup.MmaF8Op(a, b, d, **group)
        case _, "f16" | "bf16":
            return warp.MmaF16BF16Op(a, d, shape, **majors)
        case _, "tf32":
            return warp.MmaTF32Op(shape)
        case _, "f64":
            return warp.MmaF64Op(shape)
        case _, "b1":
            return warp.MmaB1Op(str(atom.emit["bit_op"]), shape)
        case _, "f8E4M3FN" | "f8E5M2":
            return warp.MmaFP8Op(a, d, shape, b_dtype=b)
        case _:
            return warp.MmaI8Op(a, b, shape, saturate)


def register_cases() -> Iterator[MmaCase]:
    """Yield all atoms with operands in registers. If two generations have the same atom, yield the older."""
    seen: set[Any] = set()
    for name in ATOMS:
        if name.startswith(("SM90_64x", "SM120_")) or "_SPARSE_" in name:
            continue
        atom = ATOMS[name]
        if not isinstance(atom, MmaAtom):
            continue
        op = descriptor(atom)
        if op not in seen:
            seen.add(op)
            yield MmaCase(name, name)


def sparse_cases() -> Iterator[MmaCase]:
    """Yield all atoms in registers whose A is sparse, and for each shape and width every selector once."""
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
    """Yield ``wgmma`` for each type, source and major mode at N = 64, each N, each swizzle, and run-time scale-d."""
    for types in WGMMA_TYPES:
        for source in ("smem", "rmem"):
            wide = types[1] in ("f16", "bf16")
            for majors in ("TN", "TT", "NN", "NT") if wide else ("TN",):
                if source == "rmem" and majors[0] == "N":
                    continue
                for saturate in (False, True) if types[0] == "i32" else (False,):
                    name = wgmma_name(64, types, source, majors, saturate)
                    yield MmaCase(name, name)
    yield from _widths_and_swizzles(wgmma_name)
    for source in ("smem", "rmem"):
        name = wgmma_name(64, ("f32", "bf16", "bf16"), source)
        yield MmaCase(f"{name}_FLAG", name, flag=True)


def _widths_and_swizzles(row_name: Any) -> Iterator[MmaCase]:
    for n in FLOAT_N:
        if n != 64:
            name = row_name(n, ("f32", "f16", "f16"), "smem")
            yield MmaCase(name, name)
    for width in (0, 32, 64):
        for types in (("f32", "f16", "f16"), ("f32", "tf32", "tf32"), ("i32", "i8", "ui8")):
            for majors in ("TN", "NT") if types[1] == "f16" else ("TN",):
                name = row_name(64, types, "smem", majors)
                yield MmaCase(f"{name}_SW{width}", name, width)


def wgmma_sparse_cases() -> Iterator[MmaCase]:
    """Yield the cases of :func:`wgmma_cases` for a sparse A, and each selector.

    B has swizzles of at least 64 bytes.
    """
    for types in WGMMA_TYPES:
        for source in ("smem", "rmem"):
            for majors in majors_of(types[1], source):
                for saturate in (False, True) if types[0] == "i32" else (False,):
                    name = wgmma_sp_name(64, types, source, majors, saturate)
                    yield MmaCase(name, name)
    yield from _widths_and_swizzles(wgmma_sp_name)
    for source in ("smem", "rmem"):
        for types in (("f32", "bf16", "bf16"), ("f32", "tf32", "tf32")):
            name = wgmma_sp_name(64, types, source)
            yield MmaCase(f"{name}_SEL1", name, selector=1)
        name = wgmma_sp_name(64, ("f32", "bf16", "bf16"), source)
        yield MmaCase(f"{name}_FLAG", name, flag=True)


def kernels(cases: Iterable[MmaCase]) -> str:
    """Return the text of one module with these kernels."""
    return module_text([use(case) for case in cases])


def use(case: MmaCase) -> Use:
    """Return the kernel of a case."""
    return in_registers(case) if case.atom.source_b == "rmem" else by_warp_group(case)


def in_memory(element: str) -> Any:
    """Return the type of an operand's elements in memory; tf32 operands are stored as f32."""
    return cute.Float32 if element == "tf32" else TYPES[element]


def matrix(element: str, rows: int, columns: int) -> Any:
    """Return the annotation of a row-major matrix in global memory."""
    return cute.Tensor[in_memory(element), f"({rows},{columns}):({columns},1)"]


def in_registers(case: MmaCase) -> Use:
    """Return the kernel of an atom whose operands are in registers."""
    atom = case.atom
    m, n, k = case.tile
    operands = [matrix(atom.a, m, k if atom.metadata is None else k // 2), matrix(atom.b, n, k)]
    if case.words:
        operands = [matrix("i32", WARP, atom.registers(x).count) for x in "AB"]
    metadata = [] if atom.metadata is None else [matrix(atom.metadata.element, *atom.tile("E"))]
    sums = matrix(atom.c, m, n)

    @cute.kernel(name=case.name)
    def multiply(A: Any, B: Any, C: Any, D: Any, E: Any = None):
        tid = cute.arch.thread_idx().x
        mma = cute.make_tiled_mma(case.op, atom_layout(atom))
        thread = mma.get_slice(tid)
        rA, rB = loaded(case, thread, "A", A), loaded(case, thread, "B", B)
        acc = mma.make_fragment_C(thread.partition_C(C))
        cute.autovec_copy(thread.partition_C(C), acc)
        if E is None:
            cute.gemm(mma, acc, rA, rB, acc)
        else:
            cute.sparse_gemm(mma, acc, rA, rB, asked(case, thread, E), acc)
        cute.autovec_copy(acc, thread.partition_C(D))

    @cute.kernel(name=case.name)
    def multiply_sparse(A: Any, B: Any, E: Any, C: Any, D: Any):
        multiply.function(A, B, C, D, E)

    return Use(multiply_sparse if metadata else multiply, (*operands, *metadata, sums, sums))


def asked(case: MmaCase, thread: Any, E: Any) -> Any:
    """Return the fragment of E. Threads outside the selector hold ``OTHER_METADATA`` instead."""
    held = case.atom.metadata
    part = thread.partition_E(E)
    fragment = thread.make_fragment_E(part)
    fragment.fill(OTHER_METADATA & ((1 << 4 * held.groups) - 1))
    if thread.thr_idx % 4 // (4 // held.selectors) == case.selector:
        cute.autovec_copy(part, fragment)
    return fragment


def loaded(case: MmaCase, thread: Any, operand: str, tensor: Any) -> Any:
    """Return the fragment of an operand, loaded from memory."""
    atom = case.atom
    if case.words:
        held = atom.registers(operand)
        words = cute.make_rmem_tensor(held.count, cute.Int32)
        cute.autovec_copy(tensor[thread.thr_idx, None], words)
        fragment = cute.make_rmem_tensor((held.count * held.values, 1, 1), TYPES[atom.element(operand)])
        values = words.load().bitcast(TYPES[atom.element(operand)])
        fragment.store(values.reshape((held.count * held.values, 1, 1)))
        return fragment
    part = thread.partition_A(tensor) if operand == "A" else thread.partition_B(tensor)
    if atom.element(operand) == "tf32":
        fragment = cute.make_rmem_tensor_like(part)
    else:
        fragment = thread.make_fragment_A(part) if operand == "A" else thread.make_fragment_B(part)
    cute.autovec_copy(part, fragment)
    return fragment


def by_warp_group(case: MmaCase) -> Use:
    """Return the kernel of a ``wgmma`` atom."""
    atom = case.atom
    m, n, k = case.tile
    ka = k if atom.metadata is None else k // 2
    # A sparse wgmma reads 64 bytes of B along K, which do not fit into rows of 32 bytes.
    wide = 64 if atom.metadata is not None and case.swizzle == 32 and atom.major_b == "k" else case.swizzle

    @cute.kernel(name=case.name)
    def multiply(A: Any, B: Any, D: Any, E: Any = None, more: Any = None):
        thread = cute.make_tiled_mma(case.op).get_slice(cute.arch.thread_idx().x)
        b = thread.partition_B(shared(B, atom.major_b, atom.b, wide))
        if atom.source_a == "smem":
            a = thread.partition_A(shared(A, atom.major_a, atom.a, case.swizzle))
        else:
            a = loaded(case, thread, "A", A)
        metadata = [] if E is None else [asked(case, thread, E)]
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        target = thread.partition_C(D)
        acc = thread.make_fragment_C(target)
        gemm = cute.gemm if E is None else cute.sparse_gemm
        warpgroup.fence()
        gemm(thread, acc, a, b, *metadata, accumulate=False)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        warpgroup.fence(acc)
        gemm(thread, acc, a, b, *metadata, accumulate=True if more is None else more != 0)
        warpgroup.commit_group()
        warpgroup.wait_group(0, acc)
        cute.autovec_copy(acc, target)

    @cute.kernel(name=case.name)
    def multiply_sparse(A: Any, B: Any, E: Any, D: Any, more: Any = None):
        multiply.function(A, B, D, E, more)

    @cute.kernel(name=case.name)
    def multiply_flagged(A: Any, B: Any, D: Any, more: Any):
        multiply.function(A, B, D, None, more)

    operands = [matrix(atom.a, m, ka), matrix(atom.b, n, k)]
    metadata = [] if atom.metadata is None else [matrix(atom.metadata.element, m, k // atom.metadata.columns)]
    flag = [1] if case.flag else []
    kernel = multiply_sparse if metadata else multiply_flagged if flag else multiply
    return Use(kernel, (*operands, *metadata, matrix(atom.d, m, n), *flag), threads=128)


def shared(source: Any, major: str, element: str, width: int) -> Any:
    """Copy a tile (X, K) to shared memory in swizzled rows of ``width`` bytes.

    If the tile is narrower than ``width``, use the widest swizzle that fits.
    """
    extent = source.shape[1] if major == "k" else source.shape[0]
    while (width or 16) * 8 // bits_of(element) > extent:
        width = {128: 64, 64: 32, 32: 0}[width]
    kind = warpgroup.SmemLayoutAtomKind(f"{major}_{width}")
    layout = cute.tile_to_shape(warpgroup.make_smem_layout_atom(kind, in_memory(element)), source.shape, (0, 1))
    tile = cute.smem_tensor(in_memory(element), layout.outer, 1024, layout.inner)
    for start in range(0, cute.size(source), 128):
        where = cute.arch.thread_idx().x + start
        tile[where] = source[where]
    return tile


def build(folder: str, chip: str = "sm_90a") -> list[str]:
    """Compile the kernels into ``folder/{registers,sparse,wgmma,wgmma_sparse}`` and return the output of ptxas."""
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
        module = compile_cute(kernels(cases), chip=chip, features="+ptx87", filename=f"mma_atoms_{name}.mlir")
        save_artifact(module.artifact._replace(stages=()), os.path.join(folder, name))
        reports.append(module.report.strip())
    return reports


if __name__ == "__main__":
    import sys

    print("\n".join(build(sys.argv[1])))
