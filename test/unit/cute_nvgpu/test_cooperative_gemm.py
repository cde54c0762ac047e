"""``cute.cooperative_gemm`` on the CPU interpreter, against exact products of small integers."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pytest
from mma_atoms_support import dtype

from cute_dialect.kernels.builder import Builder
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines.stages import lower_to_base

MMA = "!cute_nvgpu.atom.mma_sync<{shape}, ({types})>"
SWIZZLED = "align<1024>, S<3,4,3>, "


class Case(NamedTuple):
    """``mma``: the tiled MMA after its atom; ``a``, ``b``: layouts in shared memory; ``loads``: form of ldmatrix."""

    name: str
    atom: str
    mma: str
    threads: int
    mnk: tuple[int, int, int]
    elements: tuple[str, str, str]
    a: str
    b: str
    loads: str


F16 = MMA.format(shape="16x8x16", types="f32,f16,f16,f32")
TWO_BY_TWO = 'atom_layout_MNK = <"(2,2,1):(1,2,0)">'
WIDE = f'{TWO_BY_TWO}, permutation_MNK = <"[32:1;32:1;16:1]">'
FMA = "!cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f32)>"
GMMA = "!cute_nvgpu.atom.wgmma<64x16x16, (f32,f16,f16,f32), A = {a}, major = (k, k)>"
ONE = 'atom_layout_MNK = <"(1,1,1):(0,0,0)">'
F16S, F32S = ("f16", "f16", "f32"), ("f32", "f32", "f32")
INT = MMA.format(shape="16x8x32", types="i32,i8,i8,i32")
TF32 = MMA.format(shape="16x8x8", types="f32,tf32,tf32,f32")
F64 = MMA.format(shape="8x8x4", types="f64,f64,f64,f64")
S64, S32 = SWIZZLED + '"(64,64):(64,1)"', SWIZZLED + '"(32,64):(64,1)"'
CASES = [
    Case("f16_k", F16, WIDE, 128, (64, 64, 64), F16S, S64, S64, "4, n"),
    Case("f16_mn", F16, WIDE, 128, (64, 64, 32), F16S, SWIZZLED + '"(64,32):(1,64)"',
         SWIZZLED + '"(64,32):(1,64)"', "4, t"),
    Case("f16_x2", F16, TWO_BY_TWO, 128, (32, 16, 16), F16S, 'align<16>, "(32,16):(24,1)"',
         'align<16>, "(16,16):(24,1)"', "2, n"),
    Case("f16_odd", F16, TWO_BY_TWO, 128, (32, 16, 32), F16S, '"(32,32):(33,1)"', '"(16,32):(33,1)"', ""),
    Case("tf32", TF32, TWO_BY_TWO, 128, (32, 32, 16), F32S, 'align<16>, "(32,16):(20,1)"',
         'align<16>, "(32,16):(20,1)"', "4, n"),
    Case("i8", INT, TWO_BY_TWO, 128, (32, 16, 64), ("i8", "i8", "i32"), 'align<16>, "(32,64):(64,1)"',
         'align<16>, "(16,64):(64,1)"', "4, n"),
    Case("f64", F64, TWO_BY_TWO, 128, (16, 32, 8), ("f64",) * 3, '"(16,8):(8,1)"', '"(32,8):(1,32)"', ""),
    Case("fma", FMA, 'atom_layout_MNK = <"(8,4,1):(4,1,0)">', 32, (16, 8, 4), F32S, '"(16,4):(1,16)"',
         '"(8,4):(4,1)"', ""),
    Case("wgmma", GMMA.format(a="smem"), ONE, 128, (64, 32, 64), F16S, S64, S32, ""),
    Case("wgmma_rs", GMMA.format(a="rmem"), ONE, 128, (64, 32, 64), F16S, S64, S32, "4, n"),
]  # fmt: skip


def fill(b: Builder, source: object, target: object, n: int, threads: int) -> None:
    with b.for_(0, n, threads) as loop, b.if_(b.thread_id() + loop.iv < n):
        where = b.thread_id() + loop.iv
        b.store(target, where, b.load(source, where))  # type: ignore[arg-type]


def kernel(case: Case, place: str, accumulate: bool) -> str:
    """C in registers, shared or global memory; A and B are first put into shared memory."""
    b = Builder()
    m, n, k = case.mnk
    shapes = {"A": (m, k), "B": (n, k), "C": (m, n)}
    tensors = {
        x: f'!cute.memref<{e}, gmem, "({s[0]},{s[1]}):({s[1]},1)">' for (x, s), e in zip(shapes.items(), case.elements)
    }
    with b.kernel("product", tensors, threads=case.threads) as (pa, pb, pc):
        tid = b.thread_id()
        mma = b.op("cute.make_tiled_mma", b.atom(case.atom), type=f"!cute.tiled_mma<{case.atom}, {case.mma}>")
        sa, sb = (b.alloc_smem(f"!cute.memref<{e}, smem, {t}>") for e, t in zip(case.elements, (case.a, case.b)))
        fill(b, pa, sa, m * k, case.threads)
        fill(b, pb, sb, n * k, case.threads)
        target = pc
        if place == "smem":
            target = b.alloc_smem(f'!cute.memref<{case.elements[2]}, smem, align<16>, "({m},{n}):({n + 4},1)">')
            fill(b, pc, target, m * n, case.threads)
        if "wgmma" in case.atom:
            b.run("fence_proxy_async")
        b.run("barrier")
        part = b.partition("C", mma, pc, tid)
        if place == "rmem":
            target = b.op("cute.tiled.mma.make_fragment_C", mma, part)
            if accumulate:
                b.copy(b.atom(f"!cute_nvgpu.atom.universal_copy<{case.elements[2]}>"), part, target)
        properties: dict[str, bool] = {} if accumulate else {"accumulate": False}
        b.do("cute.cooperative_gemm", mma, target, sa, sb, b.coord(tid), **properties)
        if place == "rmem":
            b.copy(b.atom(f"!cute_nvgpu.atom.universal_copy<{case.elements[2]}>"), target, part)
        if place == "smem":
            b.run("barrier")
            fill(b, target, pc, m * n, case.threads)
    return b.text()


@pytest.mark.parametrize("place", ["rmem", "smem", "gmem"])
@pytest.mark.parametrize("accumulate", [True, False])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_the_product(case: Case, place: str, accumulate: bool) -> None:
    m, n, k = case.mnk
    rng = np.random.default_rng(7)
    a, b, c = (rng.integers(-3, 4, s).astype(dtype(e)) for s, e in zip(((m, k), (n, k), (m, n)), case.elements))
    want = a.astype(np.float64) @ b.astype(np.float64).T + (c.astype(np.float64) if accumulate else 0)
    module = compile_cute(kernel(case, place, accumulate), emit="base")
    module.kernel("product")(a, b, c, device="cpu", grid=(1, 1, 1))
    assert np.array_equal(c.astype(np.float64), want)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_fragments_are_loaded_by_ldmatrix_where_it_can(case: Case) -> None:
    text = lower_to_base(kernel(case, "rmem", True), pipeline="base")
    found = {
        (int(m[1]), {"row": "n", "col": "t"}[m[2]])
        for line in text.splitlines()
        if "nvvm.ldmatrix" in line and (m := re.search(r'(?=.*\bnum"? = (\d))(?=.*mma_layout<(\w+)>)', line))
    }
    wanted = {(int(case.loads[0]), case.loads[-1])} if case.loads else set()
    assert wanted <= found and bool(found) == bool(wanted)
