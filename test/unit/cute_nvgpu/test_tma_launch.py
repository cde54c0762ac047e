"""Tensor maps from cute text to launch: host programs, calls of the driver, fallbacks and errors."""

from __future__ import annotations

import ctypes
import json
import random
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from pipelines_support import FakeArray, FakeDriver
from tma_support import CASES, Case, arrays, kernel_text, multicast_arrays, multicast_text

from cute_dialect.algebra import text as algebra_text
from cute_dialect.algebra.trees import shape_to_tile
from cute_dialect.algebra.values import Layout
from cute_dialect.arch.tensor_map import TensorMapSpec
from cute_dialect.arch.tensor_map_codes import ELEMENT_CODES, L2_PROMOTIONS, OOB_FILLS, SWIZZLES
from cute_dialect.arch.tma import derive
from cute_dialect.ir.context import make_context
from cute_dialect.ir.printing import ir_text
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines.build_manifest import build_manifest
from cute_dialect.pipelines.compiler import parse_module
from cute_dialect.runtime import host_program
from cute_dialect.runtime import launch as launch_module
from cute_dialect.runtime.host_program import Pointer, TensorMap
from cute_dialect.runtime.launch import CompiledModule
from cute_dialect.runtime.launch_plan import AlignmentError, Plan, ShapeOverrides, TensorMapError, read_arguments
from cute_dialect.runtime.manifest import ManifestError
from cute_dialect.runtime.tensor_maps import checked

EXAMPLE = Path(__file__).parents[2] / "examples" / "tma_copy.mlir"
_MODULES: dict[str, CompiledModule] = {}


@pytest.fixture(autouse=True)
def _without_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable the compile cache, because cached modules are launched through a different path."""
    monkeypatch.setenv("CUTE_CACHE", "0")


def compiled(text: str | Path) -> CompiledModule:
    """Compile the text, or return the module compiled earlier in this session."""
    key = str(text)
    if key not in _MODULES:
        _MODULES[key] = compile_cute(text)
    return _MODULES[key]


# ------------------------------------------------------------------------------------------------------- on the CPU


@pytest.mark.sample(every=6)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_tiles_move_through_shared_memory(case: Case) -> None:
    kernel = compiled(kernel_text(case)).kernel("launch")
    a, b, want = arrays(case, 1)
    kernel(a, b, device="cpu")
    assert np.array_equal(b, want)  # type: ignore[arg-type]


def test_each_block_of_a_cluster_loads_a_half_for_both() -> None:
    a, b, want = multicast_arrays(3)
    compiled(multicast_text()).kernel("launch")(a, b, device="cpu")
    assert np.array_equal(b, want)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shape", "padding", "kernel"),
    [((128, 64), 0, "copy_tma"), ((130, 100), 12, "copy_tma"), ((3, 8), 0, "copy_tma"), ((1, 8), 0, "copy_tma"),
     ((70, 33), 0, "copy_any"), ((130, 100), 0, "copy_any"), ((0, 8), 0, "copy_tma"), ((0, 3), 0, "copy_tma")],
)  # fmt: skip
def test_example(shape: tuple[int, int], padding: int, kernel: str) -> None:
    launch = compiled(EXAMPLE).kernel("launch")
    rows, columns = shape
    wholes = [np.full((rows, columns + padding), v, np.float16) for v in (0, 7)]
    a, b = (whole[:, :columns] if padding else whole for whole in wholes)
    a[...] = np.random.default_rng(0).standard_normal(shape)
    plan = launch.plan(a, b)
    assert plan.kernel == kernel
    launch(a, b, device="cpu")
    assert np.array_equal(a, b)
    assert (wholes[1][:, columns + -columns % 8 :] == 7).all()  # TMA stores whole units of 16 bytes.


def test_plan_reports_the_reason_of_the_fallback() -> None:
    a = np.zeros((8, 33), np.float16)
    (reason,) = compiled(EXAMPLE).kernel("launch").plan(a, a.copy()).rejected
    assert reason.startswith(
        "@launch: argument mA: TMA does not support this array: dimension 1: expected a stride that is"
    )
    assert "got 66" in reason


def test_kernel_selected_by_name_has_no_fallback() -> None:
    a = np.zeros((8, 33), np.float16)
    with pytest.raises(TensorMapError, match="dimension 1: expected a stride that is a positive multiple of 16 bytes"):
        compiled(EXAMPLE).kernel("copy_tma").plan(a, a.copy())


# ------------------------------------------------------------------------------ the host program and the derivation


class Given(NamedTuple):
    """Extents and strides of a random tensor for a case."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]


def tensor_like(case: Case, rng: random.Random) -> Given:
    """Return random extents, with rows padded to a multiple of 16 bytes and no overlap between modes."""
    unit = 16 // {"f16": 2, "bf16": 2, "f32": 4, "i32": 4, "i8": 1}[case.element]
    shape = [0] * len(case.order)
    stride = [0] * len(case.order)
    step = 1
    for i, mode in enumerate(case.order):
        shape[mode] = rng.randint(1, 300)
        stride[mode] = step if i else 1
        step = -(-stride[mode] * shape[mode] // unit) * unit + unit * rng.randint(0, 3)
    return Given(tuple(shape), tuple(stride))


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_host_program_builds_the_derived_map(case: Case) -> None:
    host = next(h for h in compiled(kernel_text(case)).manifest["hosts"] if h["name"] == "launch")
    program = json.loads(json.dumps(host["program"]))
    spec = derived(case)
    rng = random.Random(case.name)
    for _ in range(20):
        given = tensor_like(case, rng)
        dynamic = [n for n, d in zip(given.stride, strides_of(case)) if d != 1]
        bound = spec.bind([*given.shape, *dynamic])
        value = lowered_argument(given, dynamic)
        (launch,) = host_program.evaluate(program, [value(0), value(1)])
        maps = [x for x in launch.args if isinstance(x, TensorMap)]
        assert [m.address for m in maps] == [Pointer(0, 0), Pointer(1, 0)]
        for m in maps:
            assert m.extents == bound.extents
            assert m.strides == bound.strides
            assert m.box == bound.box
            assert m.steps == bound.element_strides
            assert (m.element, SWIZZLES[m.swizzle]) == (ELEMENT_CODES[case.element], case.swizzle)
            assert (m.interleave, L2_PROMOTIONS[m.l2], OOB_FILLS[m.oob]) == (0, 128, "zero")


def strides_of(case: Case) -> tuple[object, ...]:
    stride = algebra_text.parse_layout(case.gmem).stride
    return stride if isinstance(stride, tuple) else (stride,)


def derived(case: Case) -> TensorMapSpec:
    gmem, smem = algebra_text.parse_layout(case.gmem), algebra_text.parse_layout(case.smem)
    if not isinstance(gmem.shape, tuple):
        gmem, smem = Layout((gmem.shape,), (gmem.stride,)), Layout((smem.shape,), (smem.stride,))  # type: ignore[arg-type]
    swizzle = {0: None, 32: "S<1,4,3>", 64: "S<2,4,3>", 128: "S<3,4,3>"}[case.swizzle]
    pointer = algebra_text.parse_swizzle(swizzle) if swizzle else None
    return derive(gmem, smem, shape_to_tile(case.tile), case.element, pointer_swizzle=pointer)  # type: ignore[arg-type]


def lowered_argument(given: Given, dynamic: list[int]) -> object:
    """Builds the lowered value of a memref with dynamic extents and these dynamic strides."""

    def pack(numbers: list[int]) -> object:
        return numbers[0] if len(numbers) == 1 else tuple(numbers)

    return lambda i: (Pointer(i, 0), (pack(list(given.shape)), pack(dynamic)))


# ----------------------------------------------------------------------------------------------- limits at launch

GOOD = TensorMap(Pointer(0, 0), (64, 32), (128,), (64, 8), (1, 1), 6, 0, 3, 2, 0)


@pytest.mark.parametrize(
    ("changes", "address", "message"),
    [
        ({}, 8, "address: expected an address aligned to 16 bytes, got 0x8"),
        ({"extents": (0, 32)}, 256, "dimension 0: expected 1 to 4294967296 elements, got 0"),
        ({"extents": (64, (1 << 32) + 1)}, 256, "dimension 1: expected 1 to 4294967296 elements, got 4294967297"),
        ({"strides": (-128,)}, 256, "dimension 1: expected a stride that is a positive multiple of 16 bytes, got -128"),
        ({"strides": (0,)}, 256, "dimension 1: expected a stride that is a positive multiple of 16 bytes, got 0"),
        ({"strides": (1 << 40,)}, 256, "dimension 1: expected a stride below 2"),
    ],
)
def test_limits(changes: dict[str, object], address: int, message: str) -> None:
    from cute_dialect.arch.errors import TmaError

    with pytest.raises(TmaError) as error:
        checked(GOOD._replace(**changes), address)  # type: ignore[arg-type]
    assert message in str(error.value)


def test_unused_strides_are_ignored() -> None:
    assert checked(GOOD._replace(extents=(64, 1), strides=(6,)), 256).strides == (16,)
    assert checked(GOOD, 256) == GOOD


# ----------------------------------------------------------------------------------------------------- the launcher


class MapDriver(FakeDriver):
    """A fake driver that records the encoded tensor maps. Each map contains its tensor's address."""

    def encode_map(self, address: int, tensor_map: TensorMap) -> bytes:
        assert self.context == self.primary_context(0)  # CUDA_ERROR_INVALID_CONTEXT
        self.encoded: list[int] = getattr(self, "encoded", [])
        self.encoded.append(address)
        self.last = tensor_map
        return address.to_bytes(8, "little") + bytes(120)


def maps_of(record: dict[str, object], parameters: tuple[int, ...] = (0, 2)) -> list[int]:
    where = [record["parameters"][i] for i in parameters]  # type: ignore[index]
    assert all(w % 64 == 0 for w in where)
    return [int.from_bytes(bytes((ctypes.c_uint8 * 8).from_address(w)), "little") for w in where]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> MapDriver:
    fake = MapDriver()
    monkeypatch.setattr(launch_module.cuda, "driver", lambda: fake)
    return fake


def test_maps_are_rebuilt_when_an_address_changes(gpu: MapDriver) -> None:
    kernel = compile_cute(EXAMPLE).kernel("launch")
    arrays_ = [FakeArray((130, 104), typestr="<f2", pointer=0x7F0000000000 + 0x10000 * i) for i in range(3)]
    a, b, c = arrays_
    for x, y in ((a, b), (a, b), (c, b), (a, b), (c, b)):
        kernel(x, y, stream=5)
        assert maps_of(gpu.launches[-1]) == [x.pointer, y.pointer]
        assert gpu.launches[-1]["kernel"] == "copy_tma"
    assert gpu.encoded == [a.pointer, b.pointer, c.pointer]
    assert gpu.last[1:10] == ((104, 130), (208,), (64, 128), (1, 1), 6, 0, 3, 2, 0)


def two_copies() -> str:
    """Return the example with a second launch, which copies the first launch's output to a third matrix."""
    text = EXAMPLE.read_text()
    text = text.replace("@launch(%mA: !matrix, %mB: !matrix)", "@launch(%mA: !matrix, %mB: !matrix, %mC: !matrix)")
    begin, end = text.index("    %load, %cA = "), text.index("    return\n  }\n\n  // One block for 128")
    body = text[begin:end]
    again = body.replace("%mB", "%mC").replace("%mA", "%mB")
    for name in ("load", "cA", "store", "cB", "gB", "tiles", "grid", "one", "block"):
        again = again.replace(f"%{name}", f"%{name}2")
    return (text[:end] + again + text[end:]).replace(" attributes {cute.fallback = @launch_any}", "")


def test_each_of_several_launches_has_its_maps(gpu: MapDriver) -> None:
    kernel = compile_cute(two_copies()).kernel("launch")
    arrays_ = [FakeArray((130, 104), typestr="<f2", pointer=0x7F0000000000 + 0x10000 * i) for i in range(4)]
    a, b, c, d = arrays_
    for x, y, z in ((a, b, c), (d, b, c), (a, b, d), (a, b, c)):
        kernel(x, y, z, stream=5)
        assert [maps_of(r) for r in gpu.launches[-2:]] == [[x.pointer, y.pointer], [y.pointer, z.pointer]]
    assert len(gpu.encoded) == 6  # Four for a, b, b and c, then one each time d replaces an array.
    first, second = kernel.bind(a, b, c).plans
    assert [len(p.packed.maps) for p in (first, second)] == [2, 2]
    rng = np.random.default_rng(0)
    on_cpu = [rng.standard_normal((130, 104)).astype(np.float16) for _ in range(3)]
    kernel(*on_cpu, device="cpu", checks=["race"])
    assert all(np.array_equal(on_cpu[0], m) for m in on_cpu[1:])


def test_maps_are_built_in_a_thread_without_a_context(gpu: MapDriver) -> None:
    kernel = compile_cute(EXAMPLE).kernel("launch")
    a, b, c = (FakeArray((8, 64), typestr="<f2", pointer=0x7F0000000000 + 0x10000 * i) for i in range(3))
    bound = kernel.bind(a, b)
    ready = kernel._find_ready(read_arguments(kernel.target, (a, b)), 0, ShapeOverrides())
    for context, after in ((0, gpu.primary_context(0)), (77, 77)):
        gpu.context = context
        frame = ready.frame()
        ready.write(frame, [c.pointer, b.pointer])
        assert gpu.context == after
    gpu.context = 0
    bound(5)
    assert gpu.launches[-1]["stream"] == 5


def test_only_recent_maps_are_cached(gpu: MapDriver) -> None:
    kernel = compile_cute(EXAMPLE).kernel("launch")
    many = [FakeArray((8, 64), typestr="<f2", pointer=0x7F0000000000 + 0x10000 * i) for i in range(20)]
    for x in (*many, many[0]):
        kernel(x, many[0], stream=5)
    assert gpu.encoded.count(many[0].pointer) == 3  # Its source map is encoded twice.


def test_launcher_selects_the_fallback(gpu: MapDriver) -> None:
    kernel = compile_cute(EXAMPLE).kernel("launch")
    kernel(FakeArray((8, 33), typestr="<f2"), FakeArray((8, 33), typestr="<f2"), stream=5)
    shifted = FakeArray((8, 64), typestr="<f2", pointer=0x7F0000000002)
    kernel(shifted, FakeArray((8, 64), typestr="<f2"), stream=5)
    kernel(FakeArray((8, 64), typestr="<f2"), FakeArray((8, 64), typestr="<f2"), stream=5)
    assert [r["kernel"] for r in gpu.launches] == ["copy_any", "copy_any", "copy_tma"]


# ----------------------------------------------------------------------------------------------------- the manifest


def lowered_example(change: tuple[str, str]) -> str:
    """Return the lowered example with the last occurrence of ``change[0]`` replaced by ``change[1]``."""
    text = ir_text(compiled(EXAMPLE).lowered())
    before, found, after = text.rpartition(change[0])
    assert found
    return before + change[1] + after


LOAD = "!cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>"
OTHER = "!cute_nvgpu.atom.tma_load<f16, box = (64, 64), swizzle = 128>"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("cute.fallback = @launch_any", "cute.fallback = @launch"), "@launch falls back to itself"),
        (
            ("cute.fallback = @launch_any", "cute.fallback = @missing"),
            "falls back to @missing, which is not a host",
        ),
        (
            (f'{{cute.args = ["{LOAD}", "!cute.coord', f'{{cute.args = ["{OTHER}", "!cute.coord'),
            f"passes {OTHER} as argument 0, kernel @copy_tma takes {LOAD}",
        ),
    ],
)
def test_manifest(change: tuple[str, str], message: str) -> None:
    with pytest.raises(ManifestError) as error:
        build_manifest(
            parse_module(lowered_example(change)), make_context("all"), chip="sm_90a", features="+ptx83", opt_level=3
        )
    assert message in str(error.value)


def test_other_calls_are_refused() -> None:
    text = lowered_example(("@cute_tensor_map_tiled_2d", "@something"))
    with pytest.raises(ManifestError, match=r"llvm\.call cannot be evaluated at launch"):
        build_manifest(parse_module(text), make_context("all"), chip="sm_90a", features="+ptx83", opt_level=3)


def test_plan_names_the_launched_kernel() -> None:
    a = np.zeros((130, 104), np.float16)
    plan: Plan = compiled(EXAMPLE).kernel("launch").plan(a, a.copy())
    assert (plan.kernel, plan.shape.grid, plan.shape.block, plan.rejected) == ("copy_tma", (4, 1, 1), (32, 1, 1), ())
    assert [p for p, _ in plan.packed.maps] == [0, 2]


def test_alignment_errors_stay_errors_without_a_fallback() -> None:
    case = CASES[0]
    a = np.zeros(64 * 64 + 8, np.float16)[1 : 64 * 64 + 1].reshape(64, 64)
    with pytest.raises(TensorMapError, match="address: expected an address aligned to 16 bytes"):
        compiled(kernel_text(case)).kernel("launch").plan(a, a)
    assert not issubclass(TensorMapError, AlignmentError)
