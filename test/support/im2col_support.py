"""TMA im2col copies: cases, kernels and expected results, shared by the CPU and the GPU tests."""

# pyright: basic

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

import cute_dialect.lang as cute
from cute_dialect.lang.nvgpu import cpasync


class Case(NamedTuple):
    """An im2col load. Tuples over spatial dimensions start with W."""

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


def atom(op: Any, image: Any, case: Case) -> Any:
    """Return the im2col TMA atom of a case. Stores start at the first pixel, without padding."""
    writes = not isinstance(op, cpasync.CopyBulkTensorIm2colG2SOp)
    return cpasync.make_im2col_tma_atom(
        op, image, channels=case.channels, pixels=case.pixels,
        lower=[0 if writes else -p for p in case.padding],
        upper=[p - (t - 1) * d for p, t, d in zip(case.padding, case.taps, case.dilation)],
        pixel_strides=case.stride or None, swizzle=case.swizzle,
    )  # fmt: skip


def buffer(case: Case, layout: Any) -> Any:
    """Allocate a tile of f16 in shared memory, with the swizzle of the case."""
    swizzle = cute.Swizzle({64: 2, 128: 3}[case.swizzle], 4, 3) if case.swizzle else None
    return cute.smem_tensor(cute.Float16, layout, 1024, swizzle)


def barrier() -> Any:
    """Allocate an mbarrier with one arrival."""
    bar = cute.arch.alloc_smem(cute.Int64, 1)
    if cute.arch.thread_idx().x == 0:
        cute.arch.mbarrier_init(bar, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    return bar


def tap(case: Case) -> tuple[Any, ...]:
    """Return the offsets of the filter tap of this block, one per dimension."""
    offsets, rest = [], cute.arch.block_idx().x
    for t, d in zip(case.taps, case.dilation):
        offsets.append(rest % t * d)
        rest = rest // t
    return tuple(offsets)


def pixels(case: Case, channels: int, first: tuple[int, ...]) -> Any:
    """Return the coordinate tensor of the channels of the pixels from ``first`` on."""
    return cute.make_tensor((0, *first, 0), cute.layout(f"({channels},{case.pixels}):(1@0,0)"))


def types(case: Case, n: int) -> tuple[Any, Any]:
    """Return the annotations of an image, and of an array with ``n`` elements per filter tap."""
    rank = len(case.spatial) + 2
    image = f"({','.join('?' * rank)}):(1,{','.join('?' * (rank - 1))})"
    return cute.Tensor[cute.Float16, image], cute.Tensor[cute.Float16, f"({n},?):(1,{n})"]


def text(case: Case) -> str:
    """Return the module of ``@launch(X, Y)``.

    Block b loads the im2col columns of filter tap b to ``Y[b]``, starting at base pixel 0 and channel 0.
    """
    n = case.pixels * case.channels

    @cute.kernel
    def columns(load: Any, Y: Any):
        tid = cute.arch.thread_idx().x
        tile = buffer(case, cute.make_layout((case.channels, case.pixels)))
        bar = barrier()
        if tid == 0:
            cute.arch.mbarrier_arrive_and_expect_tx(bar, 2 * n)
            first = pixels(case, case.channels, tuple(-p for p in case.padding))
            cute.copy(load, first, tile, tma_bar_ptr=bar, im2col_offsets=tap(case))
        cute.arch.mbarrier_wait(bar, 0)
        for i in range(tid, n, 32):
            Y[i, cute.arch.block_idx().x] = tile[i]

    @cute.jit
    def launch(X: Any, Y: Any):
        load = atom(cpasync.CopyBulkTensorIm2colG2SOp(), X, case)
        columns(load, Y).launch(grid=int(np.prod(case.taps)), block=32)

    return cute.trace(launch, *types(case, n)).mlir()


def copy_text(case: Case, tiled: bool, first: int = 0) -> str:
    """Return the module of ``@launch(X, Y, Z)``, which copies all channels with ``cute.copy`` or with a tiled copy.

    Loads are as in :func:`text`. The tile loaded with offset zero is then stored to Z and added to it, starting at
    pixel ``first`` along W.
    """
    n, parts, c = case.pixels * CHANNELS, CHANNELS // case.channels, case.channels

    def move(atom: Any, source: Any, target: Any, bar: Any = None) -> None:
        if tiled:
            whole = cute.make_layout((1, n), stride=(0, 1))
            copy = cute.make_tiled_copy(atom, whole, (CHANNELS, case.pixels))
            cute.copy(copy, source, target, thread=0, tma_bar_ptr=bar)
        else:
            cute.copy(atom, source, target, tma_bar_ptr=bar)

    @cute.kernel
    def columns(load: Any, store: Any, reduce: Any, Y: Any):
        tid, block = cute.arch.thread_idx().x, cute.arch.block_idx().x
        of_channels = (c, parts) if parts > 1 else c
        strides = (1, c * case.pixels) if parts > 1 else 1
        tile = buffer(case, cute.make_layout((of_channels, case.pixels), stride=(strides, c)))
        bar = barrier()
        load.set("im2col_offsets", tap(case))
        target = pixels(case, CHANNELS, (first, *(0 for _ in case.padding[1:])))
        if tid == 0:
            cute.arch.mbarrier_arrive_and_expect_tx(bar, 2 * n)
            cute.prefetch(load, pixels(case, c, tuple(0 for _ in case.padding)))
            move(load, pixels(case, CHANNELS, tuple(-p for p in case.padding)), tile, bar)
        cute.arch.mbarrier_wait(bar, 0)
        for i in range(tid, n, 32):
            Y[i, block] = tile[i]
        if tid == 0 and block == 0:
            for atom in (store, reduce):
                move(atom, tile, target)
                cute.arch.cp_async_bulk_commit_group()
                cute.arch.cp_async_bulk_wait_group(0)

    @cute.jit
    def launch(X: Any, Y: Any, Z: Any):
        load = atom(cpasync.CopyBulkTensorIm2colG2SOp(), X, case)
        store, reduce = (
            atom(op, Z, case)
            for op in (cpasync.CopyBulkTensorIm2colS2GOp(), cpasync.CopyReduceBulkTensorIm2colS2GOp("add"))
        )
        columns(load, store, reduce, Y).launch(grid=int(np.prod(case.taps)), block=32)

    image, numbers = types(case, n)
    return cute.trace(launch, image, numbers, image).mlir()


def stored(case: Case, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the expected Z of :func:`copy_text` in the order of X: twice the pixels of tap 0 in ``y``, else zero."""
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
    """Return the im2col columns ``[tap, pixel, channel]`` of an image ``x`` of shape [N, …, H, W, C]."""
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
    """Return X (C,W,…,N) and Y (pixel and channel, tap) for the kernel, and the expected Y.

    ``channels`` is the number of channels per pixel in Y, by default that of one instruction.
    """
    case = case._replace(channels=channels or case.channels)
    rng = np.random.default_rng(seed)
    image = rng.integers(1, 99, (case.batch, *reversed(case.spatial), CHANNELS)).astype(np.float16)
    taps = int(np.prod(case.taps))
    y = np.full((taps, case.pixels * case.channels), np.nan, np.float16)
    return image.T, y.T, columns(case, image).reshape(taps, -1).T
