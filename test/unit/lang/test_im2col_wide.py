"""im2col loads along W, im2col::w and im2col::w::128, compared with numpy."""

# Values of the language are checked when a kernel is traced.
# pyright: basic, reportAttributeAccessIssue=false

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from exported_c import compiler, headers

import cute_dialect.lang as cute
from cute_dialect.errors import CuteError
from cute_dialect.interp import InterpError
from cute_dialect.pipelines.ptxas import assemble

cpasync, arch = cute.nvgpu.cpasync, cute.arch


class Case(NamedTuple):
    """A load of pixels along W. The image has the extents (C, W, [H, [D,]] N).

    Args:
        extents: extents of the image.
        first: coordinates of the first pixel, (W, [H, [D,]] N).
        pixels: pixels of the map.
        corners: lower and upper corner of the box along W.
        stride: step between the pixels along W.
        halo: pixels that the load adds.
        shift: offset along W.
        group: 32 for im2col::w::128, else 0.
        swizzle: 64 or 128 bytes, the size of the channels of a pixel.
    """

    extents: tuple[int, ...]
    first: tuple[int, ...]
    pixels: int
    corners: tuple[int, int] = (0, 0)
    stride: int = 1
    halo: int = 0
    shift: int = 0
    group: int = 0
    swizzle: int = 128

    @property
    def rows(self) -> int:
        return self.pixels + (self.pixels // self.group if self.group else 1) * self.halo

    @property
    def channels(self) -> int:
        return self.swizzle // 2


CASES = {
    "one row": Case((64, 40, 3), (2, 1), 16, halo=2),
    "rows of images": Case((64, 7, 9, 8), (3, 2, 1), 24, halo=2),
    "stride 2, even taps": Case((64, 13, 4, 6), (-1, 2, 0), 16, (-1, 0), 2, 1),
    "stride 2, odd taps": Case((64, 13, 4, 6), (-1, 2, 0), 16, (-1, 0), 2, 0, 1),
    "stride 3": Case((32, 7, 7, 2, 9), (-1, 2, 1, 3), 16, (-1, -1), 3, 0, 2, swizzle=64),
    "left of the box": Case((64, 9, 5), (-3, 0), 16, (0, -2), halo=1),
    "past the last image": Case((64, 6, 2), (1, 1), 16),
    "128": Case((64, 150, 2, 3), (5, 1, 0), 128, halo=2, group=32),
    "128 of rows of images": Case((32, 21, 3, 12), (-1, 2, 2), 128, (-1, 1), 1, 5, 3, 32, 64),
    "128 without a halo": Case((64, 140, 2), (0, 1), 128, group=32),
}


@cute.kernel
def load_pixels(load: Any, y: Any, case: cute.Constexpr, counted: cute.Constexpr) -> None:
    layout = cute.make_layout((case.channels, case.rows))
    s = cute.smem_tensor(cute.Float16, layout, 1024, cute.make_swizzle(3 if case.swizzle == 128 else 2, 4, 3))
    bar, thread = arch.alloc_smem(cute.Int64, 1), arch.thread_idx().x
    if thread == 0:
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
    arch.sync_threads()
    if arch.elect_one():
        arch.mbarrier_arrive_and_expect_tx(bar, counted)
    pixels = cute.make_tensor((0, *case.first), cute.layout(f"({case.channels},{case.rows}):(1@0,0)"))
    cute.copy(load, pixels, s, tma_bar_ptr=bar, im2col_offsets=(case.shift,))
    arch.mbarrier_wait(bar, 0)
    for i in range(thread, case.channels * case.rows, 32):
        y[i] = s[i]


@cute.jit
def loaded(x: Any, y: Any, case: cute.Constexpr, counted: cute.Constexpr) -> None:
    op = cpasync.CopyBulkTensorIm2colW128G2SOp() if case.group else cpasync.CopyBulkTensorIm2colWG2SOp()
    low, high = case.corners
    load = cpasync.make_im2col_tma_atom(
        op, x, channels=case.channels, pixels=case.pixels, lower=[low], upper=[high],
        pixel_strides=[case.stride] if case.stride > 1 else None, swizzle=case.swizzle, halo=case.halo,
    )  # fmt: skip
    load_pixels(load, y, case, counted).launch(grid=1, block=32)


def reference(case: Case, x: np.ndarray) -> np.ndarray:
    """Return the loaded pixels: a walk along W within the box of each image, at fixed H and D."""
    w, *kept, image = case.first
    low, high = case.corners[0] + case.shift, case.extents[1] - 1 + case.corners[1] + case.shift
    walk = itertools.chain(
        ((p, image) for p in range(w + case.shift, high + 1, case.stride)),
        ((p, n) for n in itertools.count(image + 1) for p in range(low, high + 1, case.stride)),
    )
    walk = list(itertools.islice(walk, case.pixels + case.halo))
    group = case.group or case.pixels
    places = [p for i in range(0, case.pixels, group) for p in walk[i : i + group + case.halo]]
    out = np.zeros((len(places), case.channels), np.float16)
    for row, (p, n) in zip(out, places):
        if 0 <= p < case.extents[1] and n < case.extents[-1]:
            row[:] = x[(slice(case.channels), p, *kept, n)]
    return out


def arrays(case: Case) -> tuple[Any, Any]:
    rng = np.random.default_rng(case.pixels)
    x = rng.integers(1, 200, case.extents[::-1]).astype(np.float16).T
    return x, np.full(case.rows * case.channels, np.nan, np.float16)


def run(case: Case, schedule: str = "round-robin", counted: int | None = None) -> Any:
    x, y = arrays(case)
    compiled = cute.compile(loaded, x, y, case, counted or case.rows * case.swizzle, chip="sm_100a", device="cpu")
    compiled(x, y, checks=["race", "uninit"], schedule=schedule)
    return x, y, compiled


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("schedule", ["round-robin", "adversarial"])
@pytest.mark.parametrize("name", CASES)
def test_pixels_along_w(name: str, schedule: str) -> None:
    case = CASES[name]
    x, y, _ = run(case, schedule)
    np.testing.assert_array_equal(y.reshape(case.rows, case.channels), reference(case, x))


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["sm_100a", "sm_103a", "sm_110a"])
@pytest.mark.parametrize("name", ["rows of images", "128"])
def test_ptx(name: str, chip: str) -> None:
    case = CASES[name]
    made = cute.compile(loaded, *arrays(case), case, case.rows * case.swizzle, device="cpu", chip=chip)
    mode = "im2col::w::128" if case.group else "im2col::w"
    assert made.ptx.count(f"cp.async.bulk.tensor.4d.shared::cta.global.{mode}.mbarrier::complete_tx::bytes") == 1
    assert assemble(made.ptx, chip).warnings == ()


@pytest.mark.slow
@pytest.mark.parametrize("change", ["halo", "order"])
def test_mutants(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A halo that repeats the last pixel, and a walk along H, give other results."""
    from cute_dialect.interp.memory.tensor_map import TensorMap

    case, columns = CASES["rows of images"], TensorMap._wide_columns

    def mutant(self: Any, coordinates: Any, offsets: Any) -> Any:
        if change == "order":
            c, w, h, n = coordinates
            return [r for r in columns(self, (c, w, h + 1, n), offsets)]
        found = columns(self, coordinates, offsets)
        last = found[case.pixels - 1].spans
        return [r if r.row < case.pixels else type(r)(last, r.row) for r in found]

    monkeypatch.setattr(TensorMap, "_wide_columns", mutant)
    x, y, _ = run(case)
    assert not np.array_equal(y.reshape(case.rows, case.channels), reference(case, x))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"first": (40, 1)}, "the first pixel of the load is at 40 along W, right of the box, which ends at 39"),
        ({"shift": 32}, "the offset of an im2col load along W is 32; it must be 0 to 31"),
    ],
)
def test_reports(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InterpError, match=message):
        run(CASES["one row"]._replace(**changes))


@pytest.mark.slow
def test_the_halo_counts_at_the_barrier() -> None:
    case = CASES["one row"]
    with pytest.raises(InterpError, match="256 bytes more delivered than expected: 2048 expected, 2304"):
        run(case, counted=case.pixels * case.swizzle)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"halo": 512}, "the halo is 512; mode w allows 0 to 511"),
        ({"halo": 32, "group": 32, "pixels": 128}, "the halo is 32; mode w_128 allows 0 to 31"),
        ({"group": 32}, "expected 128 pixels in mode w_128, got 16"),
        ({"swizzle": 32}, "swizzle of mode w: expected one of 64, 128, got 32"),
    ],
)
def test_errors(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CuteError, match=message):
        run(CASES["one row"]._replace(**changes))


@pytest.mark.slow
def test_other_chips_lack_it() -> None:
    case = CASES["one row"]
    with pytest.raises(CuteError, match="CopyBulkTensorIm2colWG2SOp needs"):
        cute.compile(loaded, *arrays(case), case, 1, device="cpu", chip="sm_120a")


@pytest.mark.slow
def test_exported_to_c(tmp_path: Path) -> None:
    """The C program encodes the map with ``cuTensorMapEncodeIm2colWide``, which others do not refer to."""
    case = CASES["one row"]
    made = cute.compile(loaded, *arrays(case), case, case.rows * case.swizzle, device="cpu", chip="sm_100a")
    made.export(tmp_path, ("c",), name="wide")
    source = (tmp_path / "wide.c").read_text()
    assert "#define CUTE_IM2COL_WIDE 1" in source and ".wide = 1;" in source
    flags = ["-Wall", "-Wextra", "-Werror", f"-isystem{headers()}", "-c"]
    subprocess.run([compiler(), *flags, "wide.c"], cwd=tmp_path, check=True)
    assert b"cuTensorMapEncodeIm2colWide" in (tmp_path / "wide.o").read_bytes()
