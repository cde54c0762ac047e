"""TMA on the interpreter: boxes compared with an element-by-element definition, and copies in whole kernels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interp_support import DSMEM, kernel, run_kernel

from cute_dialect.arch.tensor_map import Im2colMapSpec
from cute_dialect.interp import InterpError, Pointer, TensorMap
from cute_dialect.interp.errors import Fault
from cute_dialect.interp.memory.buffers import SMEM_ORIGIN, Buffer
from cute_dialect.interp.memory.tensor_map import read_shared, write_shared

MAP = "!llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}"


def box_of(array: np.ndarray, tm: TensorMap, at: tuple[int, ...]) -> np.ndarray:
    """Return the box, computed element by element, with the innermost dimension last."""
    out = np.zeros(tm.counts[::-1], array.dtype)
    for index in itertools.product(*(range(c) for c in tm.counts)):
        where = [c + i * s for c, i, s in zip(at, index, tm.steps)]
        if all(0 <= w < e for w, e in zip(where, tm.extents)):
            out[index[::-1]] = array[tuple(where[::-1])]
    return out


@st.composite
def maps(draw: st.DrawFn) -> tuple[TensorMap, tuple[int, ...]]:
    rank = draw(st.integers(1, 4))
    inner = 8 * draw(st.integers(1, 4))
    extents = (inner, *(draw(st.integers(1, 5)) for _ in range(rank - 1)))
    steps = (1, *(draw(st.integers(1, 2)) for _ in range(rank - 1)))
    box = (8 * draw(st.integers(1, 2)), *(draw(st.integers(1, 4)) for _ in range(rank - 1)))
    strides: list[int] = []
    pitch = 2 * inner
    for e in extents[1:]:
        strides.append(pitch)
        pitch *= e
    at = (8 * draw(st.integers(-2, inner // 8)), *(draw(st.integers(-3, 5)) for _ in range(rank - 1)))
    return TensorMap("f16", extents, tuple(strides), box, steps), at


@settings(max_examples=150, deadline=None)
@given(maps(), st.integers(0, 2**32 - 1))
def test_gather_and_scatter(case: tuple[TensorMap, tuple[int, ...]], seed: int) -> None:
    tm, at = case
    rng = np.random.default_rng(seed)
    array = rng.integers(1, 999, tm.extents[::-1]).astype(np.float16)
    buf = Buffer(4096, array.reshape(-1).view(np.uint8), "a")
    tm = tm.at(4096)
    assert TensorMap.decode(tm.encode()) == tm
    got = tm.gather(buf, at).view(np.float16).reshape(tm.counts[::-1])
    assert np.array_equal(got, box_of(array, tm, at))
    new = rng.integers(1, 999, tm.counts[::-1]).astype(np.float16)
    want, added = array.copy(), array.copy()
    for index in itertools.product(*(range(c) for c in tm.counts)):
        where = [c + i * s for c, i, s in zip(at, index, tm.steps)]
        if all(0 <= w < e for w, e in zip(where, tm.extents)):
            want[tuple(where[::-1])] = new[index[::-1]]
            added[tuple(where[::-1])] += new[index[::-1]]
    for combine, expected in (("", want), ("add", added)):
        copy = array.copy()
        target = Buffer(4096, copy.reshape(-1).view(np.uint8), "a")
        tm.scatter(target, at, new.reshape(-1).view(np.uint8), combine)
        assert np.array_equal(copy, expected)
    inside: set[int] = set()
    for index in itertools.product(*(range(c) for c in tm.counts)):
        where = [c + i * s for c, i, s in zip(at, index, tm.steps)]
        if all(0 <= w < e for w, e in zip(where, tm.extents)):
            inside.add(2 * int(np.ravel_multi_index(where[::-1], array.shape)))
    assert sorted(tm.touched(buf, at).tolist()) == sorted(inside)


@pytest.mark.parametrize(("element", "right", "wrong"), [("f16", 8, 4), ("f16", -8, -9), ("f32", 4, 6), ("ui8", 16, 8)])
def test_alignment_of_lines(element: str, right: int, wrong: int) -> None:
    """The innermost coordinate must be a multiple of 16 bytes, else the GPU raises an illegal-instruction error."""
    tm = TensorMap(element, (32,), (), (16,), (1,)).at(4096)
    buf, box = Buffer(4096, np.zeros(tm.element_bytes * 32, np.uint8), "a"), np.zeros(tm.box_bytes, np.uint8)
    assert tm.gather(buf, (right,)).size == box.size
    tm.scatter(buf, (right,), box)
    said = f"the first coordinate of a box must be a multiple of 16 bytes, got coordinate {wrong} of {element}"
    with pytest.raises(Fault, match=said):
        tm.gather(buf, (wrong,))
    with pytest.raises(Fault, match=said):
        tm.scatter(buf, (wrong,), box)


@pytest.mark.parametrize("combine", ["", "add"])
def test_stores_write_whole_units(combine: str) -> None:
    """A row of 13 f16 ends inside its second 16-byte unit, so a store overwrites 3 elements past the end of the row."""
    tm = TensorMap("f16", (13, 3), (48,), (16, 2), (1, 1)).at(4096)
    memory = np.full((3, 24), 7, np.float16)
    buf = Buffer(4096, memory.reshape(-1).view(np.uint8), "a")
    tm.scatter(buf, (0, 1), np.full(32, 5, np.float16).view(np.uint8), combine)
    expected = np.full((3, 24), 7, np.float16)
    expected[1:, :16] = 12 if combine else 5
    assert np.array_equal(memory, expected)
    assert len(tm.touched(buf, (0, 1))) == 26
    assert len(tm.touched(buf, (0, 1), stored=True)) == 32
    assert tm.gather(buf, (0, 1)).view(np.float16).reshape(2, 16)[:, 13:].any() == 0
    short = Buffer(4096, memory.reshape(-1)[: 2 * 24 + 13].view(np.uint8), "a")
    with pytest.raises(Fault, match="a store of lines of 26 bytes writes whole units of 16 bytes"):
        tm.scatter(short, (0, 2), np.zeros(64, np.uint8))


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_swizzle(swizzle: int) -> None:
    """The swizzle XORs address bits 4 to 6 with bits 7 to 9. The swizzle width sets the number of bits."""
    buf = Buffer(0, np.zeros(8192, np.uint8), "s")
    data = np.random.default_rng(0).integers(0, 256, 2048).astype(np.uint8)
    for start in (0, 128, 384, 1024):
        write_shared(buf, start, SMEM_ORIGIN + start, data, swizzle)
        for i in range(2048):
            address = SMEM_ORIGIN + start + i
            mask = {0: 0, 32: 1, 64: 3, 128: 7}[swizzle]
            where = address ^ ((address >> 7 & mask) << 4)
            assert buf.data[where - SMEM_ORIGIN] == data[i]
        assert np.array_equal(read_shared(buf, start, SMEM_ORIGIN + start, 2048, swizzle), data)


def test_im2col() -> None:
    """im2col loads for a 3x3 filter on an NHWC image with padding 1 equal slices of the padded image."""
    n, h, w, c = 2, 5, 6, 8
    image = np.random.default_rng(1).integers(1, 99, (n, h, w, c)).astype(np.float16)
    spec = Im2colMapSpec("f16", (c, w, h, n), (c, w * c, h * w * c), (-1, -1), (-1, -1), c, 16)
    tm = TensorMap.of_spec(spec).at(0)
    padded = np.zeros((n, h + 2, w + 2, c), np.float16)
    padded[:, 1:-1, 1:-1] = image
    buf = Buffer(0, image.reshape(-1).view(np.uint8), "image")
    for s, r in itertools.product(range(3), range(3)):
        got = tm.gather(buf, (0, -1, -1, 0), (s, r)).view(np.float16).reshape(16, c)
        base = [(b, y, x) for b in range(n) for y in range(h) for x in range(w)][:16]
        want = np.array([padded[b, y + r, x + s] for b, y, x in base])
        assert np.array_equal(got, want)


# -- kernels ----------------------------------------------------------------------------------------------------------

COPY = """
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %tk = arith.constant 1000 : i32
    %x = arith.constant 32 : i32
    %y = arith.constant 6 : i32
    %bytes = arith.constant BYTES : i32
    %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
    %bar = llvm.getelementptr %d[4096] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %first = arith.cmpi eq, %tid, %c0 : i32
    scf.if %first {
      nvvm.mbarrier.init %bar, %c1 : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
      nvvm.mbarrier.arrive.expect_tx %bar, %bytes : !llvm.ptr<3>, i32
      %sc = llvm.addrspacecast %d : !llvm.ptr<3> to !llvm.ptr<7>
      nvvm.cp.async.bulk.tensor.shared.cluster.global %sc, %ta, %bar, box[%x, %y] : !llvm.ptr<7>, !llvm.ptr
    }
    nvvm.barrier0
    nvvm.mbarrier.try_wait.parity %bar, %c0, %tk : !llvm.ptr<3>, i32, i32
    CHANGE
    scf.if %first {
      STORE
      nvvm.cp.async.bulk.commit.group
      nvvm.cp.async.bulk.wait_group 0
    }
    llvm.return
"""
STORE = "nvvm.cp.async.bulk.tensor.global.shared.cta %tb, %d, box[%x, %y] : !llvm.ptr, !llvm.ptr<3>"
REDUCE = (
    "nvvm.cp.async.bulk.tensor.reduce %tb, %d, box[%x, %y] {redKind = #nvvm.tma_redux_kind<add>, "
    "mode = #nvvm.tma_store_mode<tile>} : !llvm.ptr, !llvm.ptr<3>"
)
PLAIN = "nvvm.cp.async.bulk.global.shared.cta %raw, %d, %bytes : !llvm.ptr<1>, !llvm.ptr<3>"


def copy(store: str = STORE, change: str = "", nbytes: int = 2048) -> str:
    return COPY.replace("STORE", store).replace("CHANGE", change).replace("BYTES", str(nbytes))


PARAMS = f"%ta: {MAP}, %tb: {MAP}, %raw: !llvm.ptr<1>"


def run_copy(text: str, swizzle: int = 128, **options: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a = np.arange(10 * 80, dtype=np.float16).reshape(10, 80)
    b = np.ones((10, 80), np.float16)
    raw = np.zeros(2048, np.uint8)
    maps_ = [TensorMap("f16", (80, 10), (160,), (64, 16), swizzle=swizzle, pointer=Pointer(x)) for x in (a, b)]
    run_kernel(kernel(text, PARAMS, DSMEM), "k", [*maps_, Pointer(raw)], block=(64,), dynamic_smem=4104, **options)
    return a, b, raw


@pytest.mark.parametrize("schedule", ["round-robin", "reverse", "random", "adversarial"])
@pytest.mark.parametrize("swizzle", [0, 128])
def test_load_and_store_a_partial_box(schedule: str, swizzle: int) -> None:
    a, b, _ = run_copy(copy(), swizzle, schedule=schedule, checks=["race", "uninit"])
    want = np.ones_like(b)
    want[6:, 32:] = a[6:, 32:]
    assert np.array_equal(b, want)


def test_reduce_and_plain_copy() -> None:
    a, b, raw = run_copy(copy(REDUCE + "\n" + PLAIN), 0, checks=["race"])
    want = np.ones_like(b)
    want[6:, 32:] += a[6:, 32:]
    assert np.array_equal(b, want)
    box = np.zeros((16, 64), np.float16)
    box[:4, :48] = a[6:, 32:]
    assert np.array_equal(raw.view(np.float16).reshape(16, 64), box)


def test_reduction_of_a_run() -> None:
    """cp.reduce.async.bulk, written as inline PTX, reduces a box that is zero outside the tensor."""
    text = 'nvvm.inline_ptx "cp.reduce.async.bulk.global.shared::cta.bulk_group.OP [$0], [$1], $2;" ro(%raw, %d, %bytes'
    text += " : !llvm.ptr<1>, !llvm.ptr<3>, i32)"
    for op, changed in (("add.noftz.f16", lambda old, new: old + new), ("max.f16", np.maximum)):
        a, _, raw = run_copy(copy(text.replace("OP", op)), 0, checks=["race"])
        box = np.zeros((16, 64), np.float16)
        box[:4, :48] = a[6:, 32:]
        assert np.array_equal(raw.view(np.float16).reshape(16, 64), changed(np.zeros_like(box), box))


@pytest.mark.parametrize("store", [STORE, REDUCE])
def test_store_mode_must_match_the_tensor_map(store: str) -> None:
    """An im2col store through a tiled tensor map is an error."""
    columns = "mode = #nvvm.tma_store_mode<im2col>"
    if store is STORE:
        store = store.replace(" : ", f" {{{columns}}} : ")
    with pytest.raises(InterpError, match="a tiled tensor map needs a store of the same mode"):
        run_copy(copy(store.replace("mode = #nvvm.tma_store_mode<tile>", columns)))


def test_wrong_byte_count() -> None:
    for nbytes, text in ((4096, "2048 bytes missing: 4096 expected"), (1024, "1024 bytes more delivered")):
        with pytest.raises(InterpError) as e:
            run_copy(copy(nbytes=nbytes))
        assert e.value.kind == "deadlock" and text in str(e.value)


WRITE = """
    %w = arith.constant 7 : i32
    %wp = llvm.getelementptr %d[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %w, %wp : i32, !llvm.ptr<3>
    FENCE
    nvvm.barrier0
"""
PROXY = "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}"


def test_store_after_a_generic_write_needs_a_proxy_fence() -> None:
    run_copy(copy(change=WRITE.replace("FENCE", PROXY)), checks=["race"])
    with pytest.raises(InterpError, match=r"missing fence\.proxy\.async") as e:
        run_copy(copy(change=WRITE.replace("FENCE", "")), checks=["race"])
    assert e.value.kind == "race"
    with pytest.raises(InterpError, match=r"read-after-write race"):
        run_copy(copy(change=WRITE.replace("FENCE", PROXY).replace("nvvm.barrier0", "")), checks=["race"])


MULTICAST = """
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant MASK : i16
    %tk = arith.constant 1000 : i32
    %half = arith.constant 8 : i32
    %quarter = arith.constant 1024 : i32
    %bytes = arith.constant 2048 : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
    %bar = llvm.getelementptr %d[2048] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %first = arith.cmpi eq, %tid, %c0 : i32
    scf.if %first {
      nvvm.mbarrier.init %bar, %c1 : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
    }
    nvvm.cluster.arrive.relaxed {aligned}
    nvvm.cluster.wait {aligned}
    scf.if %first {
      nvvm.mbarrier.arrive.expect_tx %bar, %bytes : !llvm.ptr<3>, i32
      %at = arith.muli %rank, %quarter : i32
      %y = arith.muli %rank, %half : i32
      %mine = llvm.getelementptr %d[%at] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %sc = llvm.addrspacecast %mine : !llvm.ptr<3> to !llvm.ptr<7>
      nvvm.cp.async.bulk.tensor.shared.cluster.global %sc, %ta, %bar, box[%c0, %y] multicast_mask = %c3
        : !llvm.ptr<7>, !llvm.ptr
    }
    nvvm.bar.warp.sync %full : i32
    nvvm.mbarrier.try_wait.parity %bar, %c0, %tk : !llvm.ptr<3>, i32, i32
    scf.if %first {
      %n = arith.muli %cta, %bytes : i32
      %to = llvm.getelementptr %raw[%n] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
      nvvm.cp.async.bulk.global.shared.cta %to, %d, %bytes : !llvm.ptr<1>, !llvm.ptr<3>
      nvvm.cp.async.bulk.commit.group
      nvvm.cp.async.bulk.wait_group 0
    }
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    llvm.return
"""


@pytest.mark.parametrize("schedule", ["round-robin", "random", "adversarial"])
def test_multicast(schedule: str) -> None:
    """Each block of the cluster multicasts half of the box to both blocks."""
    a = np.arange(16 * 64, dtype=np.float16).reshape(16, 64)
    raw = np.zeros((4, 2048), np.uint8)
    tm = TensorMap("f16", (64, 16), (128,), (64, 8), pointer=Pointer(a))
    text = "%full = arith.constant -1 : i32\n" + MULTICAST
    module = kernel(text.replace("MASK", "3"), f"%ta: {MAP}, %raw: !llvm.ptr<1>", DSMEM)
    run_kernel(
        module,
        "k",
        [tm, Pointer(raw)],
        grid=(4,),
        block=(32,),
        cluster=2,
        dynamic_smem=2056,
        schedule=schedule,
        checks=["race", "uninit"],
    )
    for row in raw:
        assert np.array_equal(row.view(np.float16).reshape(16, 64), a)
    with pytest.raises(InterpError, match="multicast mask"):
        run_kernel(
            kernel(text.replace("MASK", "7"), f"%ta: {MAP}, %raw: !llvm.ptr<1>", DSMEM),
            "k",
            [tm, Pointer(raw)],
            grid=(2,),
            block=(32,),
            cluster=2,
            dynamic_smem=2056,
        )


def test_not_a_tensor_map() -> None:
    text = copy()
    with pytest.raises(InterpError, match="128 bytes are not a tensor map"):
        run_kernel(
            kernel(text, PARAMS, DSMEM),
            "k",
            [Pointer(np.zeros(256, np.uint8)), Pointer(np.zeros(256, np.uint8)), Pointer(np.zeros(64, np.uint8))],
            block=(64,),
            dynamic_smem=4104,
        )
