"""Copies by bulk atoms on the CPU interpreter: runs of any length, clusters, predicates; tiled copies by TMA atoms."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import f16, f32
from xdsl.utils.exceptions import VerifyException

from cute_dialect.cute_nvgpu.bulk.types import BulkCopy, BulkCopyType
from cute_dialect.cute_nvgpu.tma.im2col_types import Im2colMap, TmaStoreIm2colType
from cute_dialect.ir.printing import ir_text
from cute_dialect.kernels.builder import Builder
from cute_dialect.kernels.values import Value
from cute_dialect.pipelines import compile as compile_cute

BULK = "!cute_nvgpu.atom.bulk_copy<f32>"
BAR = '!cute.memref<i64, smem, "1:0">'


def barrier(b: Builder, n_bytes: int, tid: Value) -> Value:
    """An mbarrier that waits for so many bytes."""
    bar = b.iterator(b.alloc_smem(BAR))
    with b.if_(tid.eq(0)):
        b.run("mbarrier_init", bar, 1)
        b.run("fence_mbarrier_init")
        b.run("mbarrier_arrive_expect_tx", bar, n_bytes)
    return bar


def run(b: Builder, name: str, *arguments: object, grid: int = 1) -> None:
    module = compile_cute(b.text(), emit="base")
    module.kernel(name)(*arguments, device="cpu", grid=(grid, 1, 1), checks=("race", "uninit", "sync"))


@pytest.mark.parametrize(("columns", "pitch"), [(100, 100), (100, 112), (4, 20)], ids=["whole", "rows", "16 bytes"])
def test_as_few_instructions_as_the_layouts_allow(columns: int, pitch: int) -> None:
    """A run need not be a power of two; a dynamic stride ends it."""
    b = Builder()
    x = f'!cute.memref<f32, gmem, align<16>, "(8,{columns}):(?{{div=4}},1)">'
    if pitch == columns:
        x = f'!cute.memref<f32, gmem, align<16>, "(8,{columns}):({columns},1)">'
    with b.kernel("rows", {"x": x, "y": x}, threads=32) as (source, target):
        tid = b.thread_id()
        s = b.alloc_smem(f'!cute.memref<f32, smem, align<16>, "(8,{columns}):({columns},1)">')
        bar = barrier(b, 8 * columns * 4, tid)
        b.run("barrier")
        atom = b.atom(BULK)
        with b.if_(tid.eq(0)):
            b.copy(b.op("cute.atom.set_value", atom, bar, field='"tma_bar"'), source, s)
        b.run("mbarrier_wait", bar, 0)
        with b.if_(tid.eq(0)):
            b.copy(atom, s, target)
            b.run("bulk_commit_group")
            b.run("bulk_wait_group", n=0)
    text = ir_text(compile_cute(b.text(), emit="base").lowered())
    for op in ("shared.cluster.global", "global.shared.cta"):
        assert text.count(f"nvvm.cp.async.bulk.{op} ") == (1 if pitch == columns else 8)
    given = np.arange(8 * pitch, dtype=np.float32).reshape(8, pitch)
    out = np.full((8, pitch), -1, np.float32)
    run(b, "rows", given[:, :columns], out[:, :columns])
    assert np.array_equal(out[:, :columns], given[:, :columns])
    assert (out[:, columns:] == -1).all()


@pytest.mark.parametrize("flag", [0, 1])
def test_a_predicate_for_all(flag: int) -> None:
    b = Builder()
    x = '!cute.memref<f32, gmem, align<16>, "32:1">'
    with b.kernel("guarded", {"x": x, "flag": "i32"}, threads=32) as (target, n):
        tid = b.thread_id()
        s = b.alloc_smem('!cute.memref<f32, smem, align<16>, "32:1">')
        b.store(s, tid, b.constant(7.0, "f32"))
        b.run("fence_proxy_async")
        b.run("barrier")
        with b.if_(tid.eq(0)):
            b.copy(b.op("cute.atom.set_value", b.atom(BULK), n.ne(0), field='"pred"'), s, target)
            b.run("bulk_commit_group")
            b.run("bulk_wait_group", n=0)
    out = np.zeros(32, np.float32)
    run(b, "guarded", out, flag)
    assert (out == 7 * flag).all()


def test_a_multicast_reaches_the_cluster() -> None:
    """Block 0 loads for both."""
    b = Builder()
    x, y = '!cute.memref<f32, gmem, align<16>, "64:1">', '!cute.memref<f32, gmem, align<16>, "(64,2):(1,64)">'
    with b.kernel("multicast", {"x": x, "y": y}, threads=32, cluster=(2, 1, 1)) as (source, target):
        tid, rank = b.thread_id(), b.arch("cluster_rank")
        s = b.alloc_smem('!cute.memref<f32, smem, align<16>, "64:1">')
        bar = barrier(b, 256, tid)
        b.run("cluster_arrive")
        b.run("cluster_wait")
        with b.if_(b.binary("and", tid.eq(0), rank.eq(0))):
            atom = b.op("cute.atom.set_value", b.atom(BULK), bar, field='"tma_bar"')
            mask = b.constant(3, "i16")
            b.copy(b.op("cute.atom.set_value", atom, mask, field='"multicast_mask"'), source, s)
        b.run("mbarrier_wait", bar, 0)
        for start in (0, 32):
            b.store(target, (tid + start, rank), b.load(s, tid + start))
    given, out = np.arange(64, dtype=np.float32), np.full((2, 64), np.nan, np.float32)
    run(b, "multicast", given, out.T, grid=2)
    assert np.array_equal(out, np.stack([given, given]))


def test_shared_memory_of_the_other_block() -> None:
    """Each block sends its values to the other and tells that one's barrier."""
    b = Builder()
    y = '!cute.memref<f32, gmem, align<16>, "(32,2):(1,32)">'
    with b.kernel("exchange", {"y": y}, threads=32, cluster=(2, 1, 1)) as (target,):
        tid, rank = b.thread_id(), b.arch("cluster_rank")
        mine = b.alloc_smem('!cute.memref<f32, smem, align<16>, "32:1">')
        theirs = b.alloc_smem('!cute.memref<f32, smem, align<16>, "32:1">')
        bar = barrier(b, 128, tid)
        value = b.op("arith.uitofp", tid + rank * 100, type="f32")
        b.store(mine, tid, value)
        b.run("fence_proxy_async")
        b.run("cluster_arrive")
        b.run("cluster_wait")
        with b.if_(tid.eq(0)):
            other = rank ^ 1
            far = b.view(b.arch("map_cluster", b.iterator(theirs), other), "32:1")
            there = b.arch("map_cluster", bar, other)
            b.copy(b.op("cute.atom.set_value", b.atom(BULK), there, field='"tma_bar"'), mine, far)
        b.run("mbarrier_wait", bar, 0)
        b.store(target, (tid, rank), b.load(theirs, tid))
        b.run("cluster_arrive")
        b.run("cluster_wait")
    out = np.full((2, 32), np.nan, np.float32)
    run(b, "exchange", out.T, grid=2)
    lanes = np.arange(32, dtype=np.float32)
    assert np.array_equal(out, np.stack([lanes + 100, lanes]))


def test_a_tiled_copy_by_tma() -> None:
    """One thread of a tiled copy takes a whole tile of two boxes; the coordinates are partitioned as any tensor."""
    b = Builder()
    load = "!cute_nvgpu.atom.tma_load<f16, box = (64, 16), swizzle = 128>"
    store = "!cute_nvgpu.atom.tma_store<f16, box = (64, 16), swizzle = 128>"
    matrix = '!cute.memref<f16, gmem, align<16>, "(?,?):(?{div=8},1)">'
    smem = '!cute.memref<f16, smem, align<1024>, S<3,4,3>, "(16,(64,2)):(64,(1,1024))">'
    with b.host("launch", {"X": matrix, "Y": matrix}) as (x, y):
        layout, tiler = b.layout("(16,(64,2)):(64,(1,1024))"), b.tile("[16:1;128:1]")
        loads = b.results("cute_nvgpu.make_tma_load", x, layout, tiler, swizzle=128)
        stores = b.results("cute_nvgpu.make_tma_store", y, layout, tiler, swizzle=128)
        b.launch("tiles", [*loads, *stores], grid=b.constant(3), threads=32)
    coords = '!cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">'
    parameters = {"load": load, "from": coords, "store": store, "to": coords}
    with b.kernel("tiles", parameters, threads=32) as (load_, source, store_, target):
        tid = b.thread_id()
        s = b.alloc_smem(smem)
        bar = barrier(b, 16 * 128 * 2, tid)
        b.run("barrier")
        tv = 'layout_copy_tv = <"(1,2048):(0,1)">, tiler_mn = <"[16:1;128:1]">'
        with b.if_(tid.eq(0)):
            there, back = (b.local_tile(t, "[16:1;128:1]", (b.block_id(), 0)) for t in (source, target))
            tc = b.op("cute.make_tiled_copy", load_, type=f"!cute.tiled_copy<{load}, {tv}>")
            counted = b.op("cute.atom.set_value", tc, bar, field='"tma_bar"')
            b.do("cute.tiled_copy", counted, there, s, b.coord(0))
            b.run("mbarrier_wait", bar, 0)
            tc = b.op("cute.make_tiled_copy", store_, type=f"!cute.tiled_copy<{store}, {tv}>")
            b.do("cute.tiled_copy", tc, s, back, b.coord(0))
            b.run("bulk_commit_group")
            b.run("bulk_wait_group", n=0)
    given = np.arange(40 * 120).reshape(40, 120).astype(np.float16)
    out = np.zeros_like(given)
    compile_cute(b.text(), emit="base").kernel("launch")(given, out, device="cpu")
    assert np.array_equal(out, given)


def test_atoms_that_cannot_be_are_refused_in_python_too() -> None:
    with pytest.raises(VerifyException, match="expected a multiple of 128 bits"):
        BulkCopyType(BulkCopy(f32, 100))
    with pytest.raises(VerifyException, match="expected 1 to 8 as element stride"):
        TmaStoreIm2colType(Im2colMap(f16, 64, 16, (0,), (0,), (9,)))
