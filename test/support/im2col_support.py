"""TMA copies of columns of pixels: cases, their kernels and what these give; shared by the CPU and the GPU tests."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from cute_dialect.kernels.values import Value


class Case(NamedTuple):
    """Spatial tuples are W first."""

    name: str
    spatial: tuple[int, ...]
    taps: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    stride: tuple[int, ...] = ()
    swizzle: int = 0
    pixels: int = 16
    channels: int = 64
    batch: int = 2


CASES = [
    Case("1d", (21,), (3,), (1,), (1,)),
    Case("2d", (7, 6), (3, 3), (1, 1), (1, 1), swizzle=128),
    Case("2d_dilated", (9, 8), (3, 2), (1, 0), (2, 3), swizzle=64, channels=32),
    Case("2d_stride", (8, 6), (3, 3), (1, 1), (1, 1), stride=(2, 2)),
    Case("3d", (4, 3, 3), (1, 3, 2), (0, 1, 1), (1, 1, 1)),
]
CHANNELS = 64


def words(case: Case, writes: bool = False) -> str:
    """What the type of an atom says; what is written begins with the first pixel."""
    lower = tuple(0 if writes else -p for p in case.padding)
    upper = tuple(p - (t - 1) * d for p, t, d in zip(case.padding, case.taps, case.dilation))
    found = [f"channels = {case.channels}", f"pixels = {case.pixels}"]
    found += [f"{k} = ({', '.join(map(str, v))})" for k, v in (("lower", lower), ("upper", upper))]
    found += [f"pixel_strides = ({', '.join(map(str, case.stride))})"] if case.stride else []
    found += [f"swizzle = {case.swizzle}"] if case.swizzle else []
    return ", ".join(found)


def atom(case: Case) -> str:
    return f"!cute_nvgpu.atom.tma_load_im2col<f16, {words(case)}>"


def text(case: Case) -> str:
    """``@launch(X, Y)``: block b loads the columns from base pixel 0 on, of tap b, channels from 0 on, to ``Y[b]``."""
    from cute_dialect.kernels.builder import Builder

    b = Builder()
    rank, n = len(case.spatial) + 2, case.pixels * case.channels
    x = f'!cute.memref<f16, gmem, "({",".join("?" * rank)}):(1,{",".join(["?"] * (rank - 1))})">'
    y = f'!cute.memref<f16, gmem, "({n},?):(1,{n})">'
    taps = int(np.prod(case.taps))
    bits = {0: "", 64: ", S<2,4,3>", 128: ", S<3,4,3>"}[case.swizzle]
    with b.host("launch", {"X": x, "Y": y}) as (m_x, m_y):
        load = b.op("cute_nvgpu.make_tma_load_im2col", m_x, type=atom(case))
        b.launch("columns", [load, m_y], grid=b.constant(taps), threads=32)
    with b.kernel("columns", {"load": atom(case), "Y": y}, threads=32) as (load, m_y):
        smem = b.alloc_smem(f'!cute.memref<f16, smem, align<1024>{bits}, "{n}:1">')
        bar = b.iterator(b.alloc_smem('!cute.memref<i64, smem, "1:0">'))
        tid, block = b.thread_id(), b.block_id()
        with b.if_(tid.eq(0)):
            b.run("mbarrier_init", bar, 1)
            b.run("fence_mbarrier_init")
        b.run("barrier")
        with b.if_(tid.eq(0)):
            b.run("mbarrier_arrive_expect_tx", bar, 2 * n)
            offsets: list[Value] = []
            rest = block
            for t, d in zip(case.taps, case.dilation):
                offsets.append(b.op("arith.trunci", (rest % t) * d, type="i16"))
                rest = rest // t
            at = [b.constant(c) for c in (0, *[-p for p in case.padding], 0)]
            b.run("tma_load_im2col", load, *at, b.iterator(smem), bar, *offsets)
        b.run("mbarrier_wait", bar, 0)
        with b.for_(tid, n, 32) as loop:
            b.store(m_y, (loop.iv, block), b.load(smem, loop.iv))
    return b.text()


def copy_text(case: Case, tiled: bool) -> str:
    """``@launch(X, Y, Z)``: as :func:`text`, by ``cute.copy`` of all channels at once, or by ``cute.tiled_copy``; what
    was loaded with offset zero is then stored to Z and added to it, from the first pixel on.
    """
    from cute_dialect.kernels.builder import Builder

    b = Builder()
    rank, n = len(case.spatial) + 2, case.pixels * CHANNELS
    x = f'!cute.memref<f16, gmem, "({",".join("?" * rank)}):(1,{",".join(["?"] * (rank - 1))})">'
    y = f'!cute.memref<f16, gmem, "({n},?):(1,{n})">'
    taps, parts = int(np.prod(case.taps)), CHANNELS // case.channels
    store = f"!cute_nvgpu.atom.tma_store_im2col<f16, {words(case, True)}>"
    reduce = f"!cute_nvgpu.atom.tma_reduce_im2col<f16, add, {words(case, True)}>"
    bits = {0: "", 64: ", S<2,4,3>", 128: ", S<3,4,3>"}[case.swizzle]
    with b.host("launch", {"X": x, "Y": y, "Z": x}) as (m_x, m_y, m_z):
        atoms = [
            b.op(f"cute_nvgpu.make_tma_{kind}_im2col", m, type=t)
            for kind, m, t in (("load", m_x, atom(case)), ("store", m_z, store), ("reduce", m_z, reduce))
        ]
        b.launch("columns", [*atoms, m_y], grid=b.constant(taps), threads=32)
    parameters = {"load": atom(case), "store": store, "reduce": reduce, "Y": y}
    with b.kernel("columns", parameters, threads=32) as (load, store_, reduce_, m_y):
        c = case.channels
        mode = f"({c},{parts})" if parts > 1 else f"{c}"
        step = f"(1,{c * case.pixels})" if parts > 1 else "1"
        layout = f"({mode},{case.pixels}):({step},{c})"
        smem = b.alloc_smem(f'!cute.memref<f16, smem, align<1024>{bits}, "{layout}">')
        bar = b.iterator(b.alloc_smem('!cute.memref<i64, smem, "1:0">'))
        tid, block = b.thread_id(), b.block_id()
        with b.if_(tid.eq(0)):
            b.run("mbarrier_init", bar, 1)
            b.run("fence_mbarrier_init")
        b.run("barrier")
        first = tid.eq(0)
        at = b.int_tuple((0, *[-p for p in case.padding], 0))
        tile = b.view(at, f"({CHANNELS},{case.pixels}):(1@0,0)")
        target = b.view(b.int_tuple((0,) * rank), f"({CHANNELS},{case.pixels}):(1@0,0)")

        def copy(a: Value, source: Value, target: Value) -> None:
            if not tiled:
                b.copy(a, source, target)
                return
            tv = f'layout_copy_tv = <"(1,{n}):(0,1)">, tiler_mn = <"[{CHANNELS}:1;{case.pixels}:1]">'
            tc = b.op("cute.make_tiled_copy", a, type=f"!cute.tiled_copy<{a.type}, {tv}>")
            b.do("cute.tiled_copy", tc, source, target, b.coord(0))

        with b.if_(first):
            b.run("mbarrier_arrive_expect_tx", bar, 2 * n)
            offsets: list[Value] = []
            rest = block
            for t, d in zip(case.taps, case.dilation):
                offsets.append((rest % t) * d)
                rest = rest // t
            b.run("tma_prefetch_im2col", load, *[b.constant(0) for _ in range(rank)],
                  *[b.constant(0, "i16") for _ in case.spatial])  # fmt: skip
            moved = b.op("cute.atom.set_value", load, b.coord(tuple(offsets)), field='"im2col_offsets"')
            copy(b.op("cute.atom.set_value", moved, bar, field='"tma_bar"'), tile, smem)
        b.run("mbarrier_wait", bar, 0)
        with b.for_(tid, n, 32) as loop:
            b.store(m_y, (loop.iv, block), b.load(smem, loop.iv))
        with b.if_(b.binary("and", first, block.eq(0))):
            copy(store_, smem, target)
            b.run("bulk_commit_group")
            b.run("bulk_wait_group", n=0)
            copy(reduce_, smem, target)
            b.run("bulk_commit_group")
            b.run("bulk_wait_group", n=0)
    return b.text()


def stored(case: Case, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What Z holds after :func:`copy_text`, of zeros, in the order of X: twice the pixels of tap 0 in ``y``."""
    image = x.T
    z = np.zeros_like(image)
    spans = [
        range(0, s + p - (t - 1) * d, step)
        for s, p, t, d, step in zip(
            case.spatial, case.padding, case.taps, case.dilation, case.stride or (1,) * len(case.spatial)
        )
    ]
    loaded = y[:, 0].reshape(case.pixels, CHANNELS)
    for i, pixel in enumerate(list(itertools.product(range(case.batch), *reversed(spans)))[: case.pixels]):
        z[pixel] = 2 * loaded[i]
    return z.T


def columns(case: Case, x: np.ndarray) -> np.ndarray:
    """``[tap, pixel, channel]``: what a convolution reads, from the padded image (``x`` is [N, …, H, W, C])."""
    spatial = len(case.spatial)
    pad = [(0, 0), *[(p, p + 8) for p in reversed(case.padding)], (0, 0)]
    padded = np.pad(x, pad)
    stride = case.stride or (1,) * spatial
    spans = [
        range(0, s + 2 * p - (t - 1) * d, step)
        for s, p, t, d, step in zip(case.spatial, case.padding, case.taps, case.dilation, stride)
    ]
    base = list(itertools.product(range(case.batch), *reversed(spans)))[: case.pixels]
    out: list[np.ndarray] = []
    for tap in itertools.product(*[range(t) for t in reversed(case.taps)]):
        moved = [tuple(i + t * d for i, t, d in zip(p[1:], tap, reversed(case.dilation))) for p in base]
        out.append(np.array([padded[(p[0], *m)][: case.channels] for p, m in zip(base, moved)]))
    return np.array(out)


def arrays(case: Case, seed: int, channels: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X (C,W,…,N) and Y (pixel and channel, tap) for the kernel, and what Y must become.

    ``channels``: of a pixel in Y, by default those of one instruction.
    """
    case = case._replace(channels=channels or case.channels)
    rng = np.random.default_rng(seed)
    image = rng.integers(1, 99, (case.batch, *reversed(case.spatial), CHANNELS)).astype(np.float16)
    taps = int(np.prod(case.taps))
    y = np.full((taps, case.pixels * case.channels), np.nan, np.float16)
    return image.T, y.T, columns(case, image).reshape(taps, -1).T
