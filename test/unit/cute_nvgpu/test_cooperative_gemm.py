"""``cute.gemm`` of whole tiles (``cute.cooperative_gemm``) on the CPU interpreter, compared with exact results."""

# pyright: basic

import re
from typing import Any, NamedTuple

import numpy as np
import pytest
from mma_atoms_support import dtype

import cute_dialect.lang as cute
from cute_dialect.lang.nvgpu import MmaUniversalOp, warp, warpgroup
from cute_dialect.pipelines.compiler import lower_to_base

NUMBERS = {
    "f16": cute.Float16, "f32": cute.Float32, "f64": cute.Float64, "i8": cute.Int8, "i32": cute.Int32,
}  # fmt: skip


class Case(NamedTuple):
    """A tiled MMA (``atoms``, ``tiles``), shared-memory layouts ``a`` and ``b``, and the ldmatrix form ``loads``.

    ``align`` is the alignment of the shared-memory tiles in bytes. Tiles aligned to 1024 bytes are swizzled.
    """

    name: str
    op: Any
    atoms: Any
    tiles: Any
    threads: int
    mnk: tuple[int, int, int]
    elements: tuple[str, str, str]
    a: str
    b: str
    loads: str
    align: int = 16

    @property
    def mma(self) -> Any:
        return cute.make_tiled_mma(self.op, self.atoms, self.tiles)

    def shared(self, layout: str, element: str) -> Any:
        """Allocate a tile in shared memory."""
        swizzle = cute.Swizzle(3, 4, 3) if self.align == 1024 else None
        return cute.smem_tensor(NUMBERS[element], cute.layout(layout), self.align, swizzle)


F16 = warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16))
TF32 = warp.MmaTF32Op()
INT = warp.MmaI8Op(cute.Int8, cute.Int8)
WIDE = (32, 32, 16)
ROWS = cute.layout("(8,4,1):(4,1,0)")
SMEM, RMEM = (
    warpgroup.MmaF16BF16Op(cute.Float16, cute.Float32, (64, 16, 16), source) for source in warpgroup.OperandSource
)
F16S, F32S = ("f16", "f16", "f32"), ("f32", "f32", "f32")
I8S, F64S = ("i8", "i8", "i32"), ("f64", "f64", "f64")
S64, S32 = "(64,64):(64,1)", "(32,64):(64,1)"
CASES = [
    Case("f16_k", F16, (2, 2, 1), WIDE, 128, (64, 64, 64), F16S, S64, S64, "4, n", 1024),
    Case("f16_mn", F16, (2, 2, 1), WIDE, 128, (64, 64, 32), F16S, "(64,32):(1,64)", "(64,32):(1,64)", "4, t", 1024),
    Case("f16_x2", F16, (2, 2, 1), None, 128, (32, 16, 16), F16S, "(32,16):(24,1)", "(16,16):(24,1)", "2, n"),
    Case("f16_odd", F16, (2, 2, 1), None, 128, (32, 16, 32), F16S, "(32,32):(33,1)", "(16,32):(33,1)", "", 2),
    Case(
        "tf32", warp.MmaTF32Op(), (2, 2, 1), None, 128, (32, 32, 16), F32S, "(32,16):(20,1)", "(32,16):(20,1)", "4, n"
    ),
    Case("i8", INT, (2, 2, 1), None, 128, (32, 16, 64), I8S, "(32,64):(64,1)", "(16,64):(64,1)", "4, n"),
    Case("f64", warp.MmaF64Op(), (2, 2, 1), None, 128, (16, 32, 8), F64S, "(16,8):(8,1)", "(32,8):(1,32)", "", 8),
    Case("fma", MmaUniversalOp(cute.Float32), ROWS, None, 32, (16, 8, 4), F32S, "(16,4):(1,16)", "(8,4):(4,1)", "", 4),
    Case("wgmma", SMEM, (1, 1, 1), None, 128, (64, 32, 64), F16S, S64, S32, "", 1024),
    Case("wgmma_rs", RMEM, (1, 1, 1), None, 128, (64, 32, 64), F16S, S64, S32, "4, n", 1024),
]


def fill(source: Any, target: Any, threads: int) -> None:
    """Copy a tile element by element with all threads."""
    tid = cute.arch.thread_idx().x
    for start in range(0, cute.size(source), threads):
        if tid + start < cute.size(source):
            target[tid + start] = source[tid + start]


def product(case: Case, place: str, accumulate: bool) -> Any:
    """Run a GEMM with A and B in shared memory and C in registers, shared or global memory."""
    m, n, _ = case.mnk

    @cute.kernel
    def multiply(A: Any, B: Any, C: Any):
        tid = cute.arch.thread_idx().x
        mma = case.mma
        sA, sB = case.shared(case.a, case.elements[0]), case.shared(case.b, case.elements[1])
        fill(A, sA, case.threads)
        fill(B, sB, case.threads)
        target = C
        if place == "smem":
            rows = cute.make_layout((m, n), stride=(n + 4, 1))
            target = cute.smem_tensor(NUMBERS[case.elements[2]], rows, 16)
            fill(C, target, case.threads)
        if case.op in (SMEM, RMEM):
            cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        part = mma.get_slice(tid).partition_C(C)
        if place == "rmem":
            target = mma.make_fragment_C(part)
            if accumulate:
                cute.autovec_copy(part, target)
        cute.gemm(mma, target, sA, sB, accumulate=accumulate, thread=tid)
        if place == "rmem":
            cute.autovec_copy(target, part)
        if place == "smem":
            cute.arch.sync_threads()
            fill(target, C, case.threads)

    return multiply


@pytest.mark.sample(pairs=True)
@pytest.mark.parametrize("place", ["rmem", "smem", "gmem"])
@pytest.mark.parametrize("accumulate", [True, False])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_the_product(case: Case, place: str, accumulate: bool) -> None:
    m, n, k = case.mnk
    rng = np.random.default_rng(7)
    a, b, c = (rng.integers(-3, 4, s).astype(dtype(e)) for s, e in zip(((m, k), (n, k), (m, n)), case.elements))
    want = a.astype(np.float64) @ b.astype(np.float64).T + (c.astype(np.float64) if accumulate else 0)
    given = [cute.from_dlpack(x) for x in (a, b, c)]
    product(case, place, accumulate)(*given).launch(grid=1, block=case.threads, device="cpu")
    assert np.array_equal(c.astype(np.float64), want)


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_fragments_use_ldmatrix_where_possible(case: Case) -> None:
    m, n, k = case.mnk
    shapes = zip(((m, k), (n, k), (m, n)), case.elements)
    given = [cute.from_dlpack(np.zeros(shape, dtype(element))) for shape, element in shapes]
    traced = cute.trace(product(case, "rmem", True), *given, grid=1, block=case.threads)
    text = lower_to_base(traced.mlir(), pipeline="base")
    found = {
        (int(m[1]), {"row": "n", "col": "t"}[m[2]])
        for line in text.splitlines()
        if "nvvm.ldmatrix" in line and (m := re.search(r'(?=.*\bnum"? = (\d))(?=.*mma_layout<(\w+)>)', line))
    }
    wanted = {(int(case.loads[0]), case.loads[-1])} if case.loads else set()
    assert wanted <= found and bool(found) == bool(wanted)
