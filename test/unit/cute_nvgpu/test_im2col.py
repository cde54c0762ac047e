"""im2col TMA copies, from cute text through the launcher, compared with an im2col matrix computed by numpy."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from im2col_support import CASES, CHANNELS, Case, arrays, copy_text, stored, text

from cute_dialect.arch.tensor_map_codes import ELEMENT_CODES
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.driver import Driver
from cute_dialect.runtime.host_program import Pointer, TensorMap
from cute_dialect.runtime.launch_plan import TensorMapError
from cute_dialect.runtime.tensor_maps import EncodedMaps, checked


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_columns_of_pixels(case: Case) -> None:
    x, y, want = arrays(case, 3)
    compile_cute(text(case), emit="base").kernel("launch")(x, y, device="cpu")
    assert np.array_equal(y, want)


@pytest.mark.sample(every=7)
@pytest.mark.parametrize("tiled", [False, True], ids=["copy", "tiled_copy"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_copies_of_columns(case: Case, tiled: bool) -> None:
    """Copies load and store im2col columns through shared memory, and elements outside the tensor are not stored."""
    x, y, want = arrays(case, 3, CHANNELS)
    z = np.zeros_like(x.T).T
    compile_cute(copy_text(case, tiled), emit="base").kernel("launch")(x, y, z, device="cpu", checks=("race", "uninit"))
    assert np.array_equal(y, want)
    assert np.array_equal(z, stored(case, x, want))


def test_ptx_of_the_copies() -> None:
    made = compile_cute(copy_text(CASES[1], False), emit="ptx", cache=False).artifact.code[0].ptx
    for instruction in (
        "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group",
        "cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.im2col_no_offs.bulk_group",
        "cp.async.bulk.prefetch.tensor.4d.L2.global.im2col",
    ):
        assert instruction in made


def test_ptx_of_the_instruction() -> None:
    made = compile_cute(text(CASES[1]), emit="ptx", cache=False).artifact.code[0].ptx
    assert "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes" in made


# ------------------------------------------------------------------------------------------------------------- the host

MAP = TensorMap(
    Pointer(0, 0), (64, 7, 6, 2), (128, 896, 5376), (64,), (1, 1, 1, 1), ELEMENT_CODES["f16"], 0, 3, 2, 0, 16,
    (-1, -1), (-1, -1),
)  # fmt: skip


class Im2colDriver(Driver):
    """A driver without a GPU that records its calls."""

    def __init__(self) -> None:
        codes = ("DataType", "Interleave", "Swizzle", "L2promotion", "FloatOOBfill", "Im2ColWideMode")
        numbers = {"cuuint32_t": int, "cuuint64_t": int, **{f"CUtensorMap{name}": int for name in codes}}
        self._cuda = SimpleNamespace(**numbers)
        self.asked: list[tuple[object, ...]] = []

    def _call(self, name: str, *arguments: object) -> SimpleNamespace:
        self.asked.append((name, *arguments))
        return SimpleNamespace(opaque=range(16))


def test_arguments_of_the_driver() -> None:
    gpu = Im2colDriver()
    maps = EncodedMaps(gpu, MAP)
    assert maps.at(4096) == maps.at(4096) == maps.known[4096] and maps.at(4096) % 64 == 0
    array = (4, 4096, [64, 7, 6, 2], [128, 896, 5376])
    box = ([-1, -1], [-1, -1], 64, 16, [1, 1, 1, 1])
    assert gpu.asked == [("cuTensorMapEncodeIm2col", ELEMENT_CODES["f16"], *array, *box, 0, 3, 2, 0)]
    assert gpu.encode_map(0, MAP) == b"".join(i.to_bytes(8, "little") for i in range(16))
    gpu.encode_map(4096, MAP._replace(wide=2, pixels=128, upper=(0, 0)))
    box = (-1, 0, 64, 128, [1, 1, 1, 1])
    assert gpu.asked[-1] == ("cuTensorMapEncodeIm2colWide", ELEMENT_CODES["f16"], *array, *box, 0, 1, 3, 2, 0)
    gpu.encode_map(4096, MAP._replace(pixels=0, box=(64, 4, 2, 1)))
    assert gpu.asked[-1] == (
        "cuTensorMapEncodeTiled", ELEMENT_CODES["f16"], *array, [64, 4, 2, 1], [1, 1, 1, 1], 0, 3, 2, 0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "address", "message"),
    [
        ({}, 4104, "expected an address that is a multiple of 16"),
        ({"strides": (120, 896, 5376)}, 4096, "expected a stride that is a positive multiple of 16 bytes, got 120"),
        ({"pixels": 2000}, 4096, "pixels"),
        ({"lower": (-200, -1)}, 4096, "lower corner"),
        ({"wide": 1, "swizzle": 0}, 4096, "swizzle of mode w: expected one of 64, 128, got 0"),
        ({"wide": 1}, 4096, r"corners: expected 0 along all dimensions but W in mode w, got \(-1, -1\)"),
    ],
)
def test_the_launcher_refuses(changes: dict[str, object], address: int, message: str) -> None:
    from cute_dialect.arch.errors import TmaError

    assert checked(MAP, 4096) == MAP
    with pytest.raises(TmaError, match=message):
        checked(MAP._replace(**changes), address)  # type: ignore[arg-type]


def test_arrays_unsupported_by_tma_are_rejected() -> None:
    kernel = compile_cute(text(CASES[0]), emit="base").kernel("launch")
    narrow = np.zeros((2, 21, 65), np.float16)[:, :, :64]
    y = np.zeros((3, 16 * 64), np.float16)
    with pytest.raises(TensorMapError, match="multiple of 16 bytes, got 130"):
        kernel(narrow.T, y.T, device="cpu")


def test_columns_are_not_written_before_the_first_pixel() -> None:
    """An im2col store at a negative coordinate is an error, because a GPU reports an illegal instruction."""
    x, y, _ = arrays(CASES[0], 0, CHANNELS)
    z = np.zeros_like(x.T).T
    with pytest.raises(Exception, match=r"coordinates of an im2col store must not be negative, got \(0, -1, 0\)"):
        compile_cute(copy_text(CASES[0], False, first=-1), emit="base").kernel("launch")(x, y, z, device="cpu")
