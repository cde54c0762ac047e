"""TMA loads of columns of pixels: from cute text through the launcher, against a convolution's matrix made by numpy."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pytest

from cute_dialect.arch.tensor_map_codes import ELEMENT_CODES
from cute_dialect.kernels.builder import Builder, Value
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines.binding import TensorMapError
from cute_dialect.pipelines.driver import Driver
from cute_dialect.pipelines.hostprog import Pointer, TensorMap
from cute_dialect.pipelines.tensor_maps import MapSlot, checked


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


def atom(case: Case) -> str:
    lower = tuple(-p for p in case.padding)
    upper = tuple(p - (t - 1) * d for p, t, d in zip(case.padding, case.taps, case.dilation))
    words = [f"channels = {case.channels}", f"pixels = {case.pixels}"]
    words += [f"{k} = ({', '.join(map(str, v))})" for k, v in (("lower", lower), ("upper", upper))]
    words += [f"pixel_strides = ({', '.join(map(str, case.stride))})"] if case.stride else []
    words += [f"swizzle = {case.swizzle}"] if case.swizzle else []
    return f"!cute_nvgpu.atom.tma_load_im2col<f16, {', '.join(words)}>"


def text(case: Case) -> str:
    """``@launch(X, Y)``: block b loads the columns from base pixel 0 on, of tap b, channels from 0 on, to ``Y[b]``."""
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


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_columns_of_pixels(case: Case) -> None:
    rng = np.random.default_rng(3)
    image = rng.integers(1, 99, (case.batch, *reversed(case.spatial), CHANNELS)).astype(np.float16)
    taps = int(np.prod(case.taps))
    y = np.full((taps, case.pixels * case.channels), np.nan, np.float16)
    compile_cute(text(case), emit="base").kernel("launch")(image.T, y.T, device="cpu")
    assert np.array_equal(y.reshape(taps, case.pixels, case.channels), columns(case, image))


def test_ptx_of_the_instruction() -> None:
    made = compile_cute(text(CASES[1]), emit="ptx", cache=False).artifact.code[0].ptx
    assert "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes" in made


# ------------------------------------------------------------------------------------------------------------- the host

MAP = TensorMap(
    Pointer(0, 0), (64, 7, 6, 2), (128, 896, 5376), (64,), (1, 1, 1, 1), ELEMENT_CODES["f16"], 0, 3, 2, 0, 16,
    (-1, -1), (-1, -1),
)  # fmt: skip


class Im2colDriver(Driver):
    """A driver without a GPU: keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []

    def encode_im2col(self, address: int, *rest: object) -> bytes:
        self.asked.append((address, *rest))
        return bytes(128)


def test_the_driver_gets_the_numbers() -> None:
    import ctypes

    gpu, to = Im2colDriver(), ctypes.create_string_buffer(128)
    slot = MapSlot(MAP, ctypes.addressof(to))
    for _ in range(2):
        slot.update(gpu, [4096])
    codes = (ELEMENT_CODES["f16"], 0, 3, 2, 0)
    strides = (128, 896, 5376)
    assert gpu.asked == [(4096, (64, 7, 6, 2), strides, (-1, -1), (-1, -1), 64, 16, (1, 1, 1, 1), *codes)]


@pytest.mark.parametrize(
    ("changes", "address", "message"),
    [
        ({}, 4104, "expected an address that is a multiple of 16"),
        ({"strides": (120, 896, 5376)}, 4096, "expected a stride that is a positive multiple of 16 bytes, got 120"),
        ({"pixels": 2000}, 4096, "pixels"),
        ({"lower": (-200, -1)}, 4096, "lower corner"),
    ],
)
def test_the_launcher_refuses(changes: dict[str, object], address: int, message: str) -> None:
    from cute_dialect.arch.errors import TmaError

    assert checked(MAP, 4096) == MAP
    with pytest.raises(TmaError, match=message):
        checked(MAP._replace(**changes), address)  # type: ignore[arg-type]


def test_an_array_that_tma_cannot_take_is_refused_with_the_reason() -> None:
    kernel = compile_cute(text(CASES[0]), emit="base").kernel("launch")
    narrow = np.zeros((2, 21, 65), np.float16)[:, :, :64]
    y = np.zeros((3, 16 * 64), np.float16)
    with pytest.raises(TensorMapError, match="multiple of 16 bytes, got 130"):
        kernel(narrow.T, y.T, device="cpu")
