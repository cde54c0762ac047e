"""Compiled modules on a fake driver: manifest, folder, argument checks, variants and launch parameters."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import NamedTuple

import ml_dtypes
import numpy as np
import pytest
import several_launches
from pipelines_support import HOST, PLAIN, FakeArray, FakeDriver, M, add_module, kernel, module, tensor_of

from cute_dialect.errors import CompileError
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime import driver as cuda
from cute_dialect.runtime import load
from cute_dialect.runtime.artifact import ArtifactError, load_artifact
from cute_dialect.runtime.launch import CompiledModule
from cute_dialect.runtime.launch_plan import (
    MAX_EXTENT_I32,
    AlignmentError,
    DeviceError,
    DivisibilityError,
    DtypeError,
    LaunchError,
    RangeError,
    ShapeError,
    StrideError,
)

ALIGNED = 0x7F0000000000


@lru_cache(maxsize=1)
def add() -> CompiledModule:
    return compile_cute(add_module(), keep_stages=True)


@lru_cache(maxsize=32)
def one(type_text: str, lowered: str, attributes: str = "") -> CompiledModule:
    """Compile a module with one kernel @k of one parameter and no host function."""
    return compile_cute(module(kernel("k", [type_text], [lowered], attributes=attributes)), emit="ptx")


def plan(type_text: str, lowered: str, value: object, attributes: str = "") -> bytes:
    """Return the bytes of the only parameter."""
    (data,) = one(type_text, lowered, attributes).kernel("k").plan(value, grid=(1, 1, 1)).packed.buffers
    return data


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    fake = FakeDriver()
    monkeypatch.setattr(cuda, "driver", lambda: fake)
    return fake


# ----------------------------------------------------------------------------------------------------------- manifest


def test_manifest_of_the_add() -> None:
    m = add().manifest
    assert (m["format"], m["chip"], m["features"], m["opt_level"], m["modules"]) == (
        2,
        "sm_90a",
        "+ptx83",
        3,
        ["kernels"],
    )
    k = m["kernels"][1]
    assert (k["name"], k["block"], k["max_threads"], k["cluster"]) == ("add_v", [128, 1, 1], 128, None)
    p = k["params"][0]
    assert (p["size"], p["align"], p.get("element"), p.get("space"), p.get("alignment")) == (24, 8, "f32", "gmem", 16)
    assert p.get("shape") == [{"width": 32, "div": 1, "offset": 8}, {"width": 32, "div": 1, "offset": 12}]
    assert p.get("stride") == [{"width": 32, "div": 4, "offset": 16}, 1]
    assert json.loads(json.dumps(m)) == m


def test_folder_round_trip(tmp_path: Path) -> None:
    folder = add().save(tmp_path / "add")
    back = load(folder)
    assert back.artifact == add().artifact
    names = sorted(os.listdir(folder))
    assert names[:2] == ["01-input.mlir", "02-cute-to-base.mlir"]
    assert {"kernel.ptx", "kernel.cubin", "manifest.json", "ptxas.txt"} <= set(names)
    assert os.listdir(tmp_path) == ["add"]  # No temporary files remain.
    add().save(folder)  # This replaces the folder.
    assert load(folder).names == ["add", "add_v"]


def test_folder_errors(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="is not a compiled module"):
        load_artifact(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(ArtifactError, match="is not a compiled module; it was not replaced"):
        add().save(tmp_path / "mine")
    (tmp_path / "mine" / "manifest.json").write_text('{"name": "a web page"}')
    with pytest.raises(ArtifactError, match="is not a compiled module; it was not replaced"):
        add().save(tmp_path / "mine")
    both = Path(add().save(tmp_path / "both"))
    (both / "thesis.txt").write_text("x")
    with pytest.raises(ArtifactError, match=r"also holds other files .* \(thesis\.txt\); it was not replaced"):
        add().save(both)
    assert (both / "thesis.txt").read_text() == "x"
    folder = Path(add().save(tmp_path / "a"))
    (folder / "kernel.ptx").write_text("other")
    with pytest.raises(ArtifactError, match=r"kernel\.ptx was modified after the compilation"):
        load_artifact(folder)
    document = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**document, "format": 99}))
    with pytest.raises(ArtifactError, match="has format 99, this version reads format 2"):
        load_artifact(folder)
    (folder / "manifest.json").write_text("{")
    with pytest.raises(ArtifactError, match="is damaged"):
        load_artifact(folder)
    document["code"][0]["ptx"] = "../../etc/passwd"
    (folder / "manifest.json").write_text(json.dumps(document))
    with pytest.raises(ArtifactError, match="expected the name of a file in this folder"):
        load_artifact(folder)


def test_bad_conventions_are_compile_errors() -> None:
    for text, said in (
        (module(kernel("k", [PLAIN], [M, "i32"])), "cute.args lists 1 types, the function takes 2"),
        (module(kernel("k", [PLAIN], ["!llvm.struct<(ptr<1>, i32)>"])), "dynamic leaves"),
        (module(kernel("k", ["x"], ["!llvm.struct<()>"])), "empty type"),
        (
            module(kernel("add", [PLAIN] * 3, [M] * 3), HOST),
            r"expected a kernel of @kernels \(@add\), got @kernels::@add_v",
        ),
        (
            module(kernel("add", [PLAIN], [M]) + kernel("add_v", [PLAIN] * 3, [M] * 3), HOST),
            "passes 3 arguments, kernel @add takes 1",
        ),
    ):
        with pytest.raises(CompileError, match=said):
            compile_cute(text, emit="base")


def test_source_errors_have_positions() -> None:
    with pytest.raises(CompileError, match=r"^f\.mlir:2:\d+: error: "):
        compile_cute("module {\n  %x = foo.bar\n}", filename="f.mlir")
    with pytest.raises(CompileError, match=r"nowhere.mlir: error: cannot read it: No such file"):
        compile_cute("nowhere.mlir")
    with pytest.raises(CompileError, match="unknown pipeline 'nix'"):
        compile_cute(add_module(), pipeline="nix")
    with pytest.raises(CompileError, match=r"option 'chip' of pipeline 'nvptx': expected one of sm_50, .*got 'hopper'"):
        compile_cute(add_module(), chip="hopper")


# ---------------------------------------------------------------------------------------------------------- arguments


def planned(*arrays: object) -> str:
    return add().kernel("add").plan(*arrays).kernel


def test_variant_is_taken_when_its_types_hold() -> None:
    good = FakeArray((17, 128))
    assert planned(good, good, good) == "add_v"
    assert planned(*[FakeArray((17, 129), (132, 1))] * 3) == "add_v"
    assert planned(*[FakeArray((17, 129))] * 3) == "add"
    for bad in (FakeArray((17, 128), (130, 1)), FakeArray((17, 128), pointer=ALIGNED + 4)):
        for position in range(3):
            arrays = [good] * 3
            arrays[position] = bad
            assert planned(*arrays) == "add"
    (told,) = add().kernel("add").plan(good, FakeArray((17, 128), (130, 1)), good).rejected
    assert told.startswith("@add_v: argument ")
    assert "stride of leaf 0: expected a multiple of 4 elements, got 130" in told


def test_variant_selected_by_name_has_no_fallback() -> None:
    k = add().kernel("add_v")
    with pytest.raises(DivisibilityError, match="expected a multiple of 4 elements, got 129"):
        k.plan(*[FakeArray((17, 129))] * 3)
    with pytest.raises(
        AlignmentError, match="multiple of 16 bytes, got 0x7f0000000004, which is 4 bytes past a multiple"
    ):
        k.plan(*[FakeArray((17, 128), pointer=ALIGNED + 4)] * 3)


def test_unused_strides_do_not_count() -> None:
    """With one row the row stride need not be divisible; with one column any column stride is allowed."""
    assert planned(*[FakeArray((1, 129))] * 3) == "add_v"
    assert planned(*[FakeArray((1, 1), (7, 5))] * 3) == "add_v"
    assert planned(*[FakeArray((64, 1), (1, 64))] * 3) == "add"


def test_argument_errors_name_argument_mode_expected_and_got() -> None:
    good = FakeArray((17, 128))
    for bad, error, said in (
        (FakeArray((17,)), ShapeError, r"expects an array of rank 2, got shape \(17\)"),
        (FakeArray((17, 128), (1, 17)), StrideError, "mode 1: expected stride 1, got 17 elements"),
        (FakeArray((17, 128), typestr="<f2"), DtypeError, "expects elements of f32, got f16"),
        (FakeArray((17, 128), pointer=ALIGNED + 2), AlignmentError, "multiple of 4 bytes.* 2 bytes past"),
        (
            FakeArray((MAX_EXTENT_I32 + 1, 1)),
            RangeError,
            r"mode 0: extent 2147418113 does not fit a 32-bit leaf .*\?\{i64\}",
        ),
        (FakeArray((2, 4), (2**31, 1)), RangeError, r"stride 2147483648 does not fit a 32-bit leaf.*\?\{i64\}"),
        (3.0, DtypeError, "expected an array"),
        (FakeArray((17, 128), typestr=">f4"), DtypeError, "not supported"),
    ):
        with pytest.raises(error, match=said):
            planned(good, bad, good)
    with pytest.raises(LaunchError, match=r"takes 3 arguments .*, got 2"):
        planned(good, good)
    assert (
        planned(FakeArray((MAX_EXTENT_I32, 1)), FakeArray((MAX_EXTENT_I32, 1)), FakeArray((MAX_EXTENT_I32, 1))) == "add"
    )


def test_static_extents_and_strides_are_checked() -> None:
    text, low = '!cute.memref<f16, gmem, "(64,?):(?{div=8},1)">', "!llvm.struct<(ptr<1>, struct<(i32, i32)>)>"
    assert plan(text, low, np.zeros((64, 40), np.float16))[8:] == bytes([40, 0, 0, 0, 40, 0, 0, 0])
    with pytest.raises(ShapeError, match="mode 0: expected extent 64, got 65"):
        plan(text, low, np.zeros((65, 40), np.float16))
    with pytest.raises(DivisibilityError, match="mode 0: expected a stride that is a multiple of 8 elements, got 41"):
        plan(text, low, np.zeros((64, 41), np.float16))
    static, none = '!cute.memref<f32, gmem, "(4,8):(8,1)">', "!llvm.struct<(ptr<1>, struct<(struct<()>, struct<()>)>)>"
    assert len(plan(static, none, np.zeros((4, 8), np.float32))) == 8
    with pytest.raises(StrideError, match="mode 0: expected stride 8, got 9"):
        plan(static, none, np.zeros((4, 9), np.float32)[:, :8])


def test_nested_modes_are_derived() -> None:
    """For a dimension with layout (s0,s1):(d0,d1) and static s0, s1 = extent/s0 and d1 = d0*s0."""
    text = '!cute.memref<f32, gmem, "((16,?),8):((?,?),1)">'
    low = "!llvm.struct<(ptr<1>, struct<(i32, struct<(i32, i32)>)>)>"
    data = plan(text, low, np.zeros((48, 24), np.float32)[:, :8])
    assert np.frombuffer(data[8:20], "<i4").tolist() == [3, 24, 384]
    with pytest.raises(ShapeError, match="mode 0: expected an extent that is a multiple of 16, got 50"):
        plan(text, low, np.zeros((50, 8), np.float32))
    two = '!cute.memref<f32, gmem, "((?,?),8):((?,?),1)">'
    with pytest.raises(ShapeError, match="more than one dynamic leaf"):
        plan(
            two,
            "!llvm.struct<(ptr<1>, struct<(struct<(i32, i32)>, struct<(i32, i32)>)>)>",
            np.zeros((48, 8), np.float32),
        )
    folded = '!cute.memref<f32, gmem, "((4,8)):((8,32))">'
    none = "!llvm.struct<(ptr<1>, struct<(struct<()>, struct<()>)>)>"
    assert plan(folded, none, np.zeros((32, 8), np.float32)[:, 0])
    with pytest.raises(StrideError, match="expected stride 8, got 9"):
        plan(folded, none, np.zeros((32, 9), np.float32)[:, 0])


def test_leaves_of_64_bits() -> None:
    text = '!cute.memref<i8, gmem, "(?{i64},?):(?{i64 div=2},1)">'
    low = "!llvm.struct<(ptr<1>, struct<(struct<(i64, i32)>, i64)>)>"
    data = plan(text, low, FakeArray((2**33, 2), (2**34, 1), typestr="|i1"))
    assert int.from_bytes(data[8:16], "little") == 2**33 and int.from_bytes(data[24:32], "little") == 2**34


def test_a_kernel_with_32_bit_offsets_refuses_far_tensors() -> None:
    attributes = ", cute.offset_bits = 32 : i32"
    assert plan(PLAIN, M, FakeArray((2**15, 2**15)), attributes)
    far = FakeArray((2**15, 2**16), (2**16 + 2, 1))
    assert plan(PLAIN, M, far)
    with pytest.raises(RangeError, match=r"is 2147549181 elements from the first, .* in 32 bits"):
        plan(PLAIN, M, far, attributes)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("text", "lowered", "value", "expected"),
    [
        ("i32", "i32", -7, np.int32(-7).tobytes()),
        ("i64", "i64", 2**40, np.int64(2**40).tobytes()),
        ("i8", "i8", -1, b"\xff"),
        ("i1", "i1", True, b"\x01"),
        ("f32", "f32", 1.1, np.float32(1.1).tobytes()),
        ("f32", "f32", 3, np.float32(3).tobytes()),
        ("f16", "f16", 1.1, np.float16(1.1).tobytes()),
        ("f64", "f64", np.float64(1.1), np.float64(1.1).tobytes()),
        ("bf16", "bf16", 1.1, np.asarray(1.1).astype(ml_dtypes.bfloat16).tobytes()),
        ("!cute.i32<divby 4>", "i32", 12, np.int32(12).tobytes()),
        (
            '!cute.shape<"(?,(8,?{i64}))">',
            "!llvm.struct<(i32, i64)>",
            (3, (8, 5)),
            bytes([3, 0, 0, 0, 0, 0, 0, 0, 5] + [0] * 7),
        ),
        ('!cute.coord<"(_,?)">', "i32", (None, 9), np.int32(9).tobytes()),
        ('!cute.layout<"(?,5):(5,1)">', "!llvm.struct<(i32, struct<()>)>", ((4, 5), (5, 1)), np.int32(4).tobytes()),
        ("!llvm.ptr<1>", "!llvm.ptr<1>", FakeArray((3,)), bytes(8)),
        ("!cute.ptr<f32, gmem, align<16>>", "!llvm.ptr<1>", FakeArray((3,)), bytes(8)),
    ],
)
def test_plain_parameters(text: str, lowered: str, value: object, expected: bytes) -> None:
    assert plan(text, lowered, value) == expected


@pytest.mark.parametrize(
    ("text", "lowered", "value", "error", "said"),
    [
        ("i32", "i32", 2**31, RangeError, "2147483648 does not fit i32"),
        ("i32", "i32", 1.5, DtypeError, "expects an integer for i32, got float"),
        ("f16", "f16", 1e9, RangeError, "does not fit f16"),
        ("f32", "f32", "x", DtypeError, "expects a number for f32, got str"),
        ("!cute.i32<divby 4>", "i32", 13, DivisibilityError, "multiple of 4, got 13"),
        ('!cute.shape<"(?,8)">', "i32", (3, 9), ShapeError, "expected 8, got 9"),
        ('!cute.shape<"(?,8)">', "i32", 3, ShapeError, "expects a tuple of 2 entries, got 3"),
        ('!cute.shape<"?">', "i32", 2**31, RangeError, r"does not fit a 32-bit leaf"),
        (
            "!cute.ptr<f32, gmem, align<16>>",
            "!llvm.ptr<1>",
            FakeArray((3,), pointer=ALIGNED + 4),
            AlignmentError,
            "16 bytes",
        ),
        (
            "!cute.ptr<f32, gmem>",
            "!llvm.ptr<1>",
            FakeArray((3,), typestr="<f2"),
            DtypeError,
            "expects a pointer to f32",
        ),
    ],
)
def test_plain_parameter_errors(text: str, lowered: str, value: object, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        plan(text, lowered, value)


def test_grid_and_block_limits() -> None:
    k = one("i32", "i32").kernel("k")
    for shape, said in (
        ({}, "pass grid="),
        ({"grid": (1, 65536, 1)}, "not a valid CUDA grid"),
        ({"grid": (0, 1, 1)}, "not a valid CUDA grid"),
        ({"grid": (1,), "block": (64,)}, r"compiled for blocks of \(128, 1, 1\), got \(64, 1, 1\)"),
        ({"grid": (1,), "block": (2048,)}, "1 to 1024 threads"),
    ):
        with pytest.raises(LaunchError, match=said):
            k.plan(1, **shape)  # type: ignore[arg-type]
    with pytest.raises(LaunchError, match=r"no kernel or host function @nix in this module \(known: k\)"):
        one("i32", "i32").kernel("nix")


# ----------------------------------------------------------------------------------------------------------- launching


def parameters(record: dict[str, object]) -> list[bytes]:
    import ctypes

    return [bytes((ctypes.c_uint8 * 24).from_address(p)) for p in record["parameters"]]  # type: ignore[attr-defined]


def matrix_bytes(pointer: int, rows: int, columns: int, ld: int) -> bytes:
    return pointer.to_bytes(8, "little") + np.array([rows, columns, ld, 0], "<i4").tobytes()


def test_launch_writes_addresses_into_cached_buffers(gpu: FakeDriver) -> None:
    seen: list[list[bytes]] = []
    gpu.kernels = {
        "add_v": lambda record: seen.append(parameters(record)),
        "add": lambda record: seen.append(parameters(record)),
    }
    k = CompiledModule(add().artifact).kernel("add")
    for i in range(3):
        arrays = [FakeArray((17, 128), pointer=ALIGNED + 4096 * (3 * i + j)) for j in range(3)]
        k(*arrays, stream=77)
        assert seen[-1] == [matrix_bytes(a.pointer, 17, 128, 128) for a in arrays]
    assert [r["kernel"] for r in gpu.launches] == ["add_v"] * 3
    assert gpu.launches[0] | {"parameters": 0} == {
        "kernel": "add_v", "grid": (2, 1, 1), "block": (128, 1, 1), "stream": 77, "smem": 0, "cluster": None,
        "parameters": 0,
    }  # fmt: skip
    k(*[FakeArray((17, 128), (130, 1))] * 3)
    assert gpu.launches[-1]["kernel"] == "add" and seen[-1][0] == matrix_bytes(ALIGNED, 17, 128, 130)
    k(*[FakeArray((17, 128), pointer=ALIGNED + 4)] * 3)
    assert gpu.launches[-1]["kernel"] == "add"  # With another alignment the cached plan does not apply.
    assert len(gpu.loaded) == 1 and gpu.loaded[0][:4] == b"\x7fELF"


def test_numpy_arrays_are_copied_to_the_gpu_and_back(gpu: FakeDriver) -> None:
    def run(record: dict[str, object]) -> None:
        a, b, c = (tensor_of(p) for p in record["parameters"])  # type: ignore[attr-defined]
        c[...] = a + b

    gpu.kernels = {"add": run, "add_v": run}
    k = CompiledModule(add().artifact).kernel("add")
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((33, 65), dtype=np.float32) for _ in range(2))
    storage = np.full((33, 80), 7, np.float32)
    c = storage[:, 3:68]
    b.flags.writeable = False
    k(a, b, c)
    assert np.array_equal(c, a + b)
    assert (storage[:, :3] == 7).all() and (storage[:, 68:] == 7).all()
    before = a.copy()
    k(a, a, a)  # All three arguments are one array.
    assert np.array_equal(a, before + before)
    assert gpu.memory == {}


def test_empty_arrays_are_not_launched(gpu: FakeDriver) -> None:
    k = CompiledModule(add().artifact).kernel("add")
    k(*[FakeArray((0, 128))] * 3)
    k(*[np.zeros((5, 0), np.float32)] * 3)
    assert gpu.launches == []


def test_devices_must_agree(gpu: FakeDriver) -> None:
    k = CompiledModule(add().artifact).kernel("add")
    good = FakeArray((17, 128))
    with pytest.raises(DeviceError, match="expected an array on GPU 0, got one on GPU 1"):
        k(good, FakeArray((17, 128), device_id=1), good)

    class Cpu:
        def __dlpack__(self) -> object:
            return np.zeros((17, 128), np.float32).__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    with pytest.raises(DeviceError, match=r"expected a tensor on the GPU, got one on the CPU \(dlpack\)"):
        k(good, Cpu(), good)
    with pytest.raises(LaunchError, match="device: expected 'gpu'"):
        k(good, good, good, device="tpu")


def test_dlpack_is_read_in_place() -> None:
    a = np.arange(12, dtype=np.float16).reshape(3, 4)

    class Wrapped:
        def __dlpack__(self) -> object:
            return a.__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    from cute_dialect.runtime.arrays import view_of

    view = view_of(Wrapped())
    assert (view.pointer, view.shape, view.strides, view.dtype, view.device) == (
        a.ctypes.data,
        (3, 4),
        (4, 1),
        "f16",
        -1,
    )


def test_ptx_is_the_fallback_of_the_cubin(gpu: FakeDriver) -> None:
    gpu.refuse_cubin = 209
    k = CompiledModule(add().artifact).kernel("add")
    k(*[FakeArray((17, 128))] * 3)
    assert [i[:2] for i in gpu.loaded] == [b"\x7fE", b"//"] and gpu.loaded[1].endswith(b"\0")


def test_shared_memory_and_clusters(gpu: FakeDriver) -> None:
    host = """  func.func @launch(%p: !llvm.ptr<1>, %x: i32) {
    %one = arith.constant 1 : i32
    %t = arith.constant 128 : i32
    gpu.launch_func @kernels::@k clusters in (%one, %x, %one) blocks in (%one, %x, %one)
      threads in (%t, %one, %one) : i32 dynamic_shared_memory_size %t args(%p : !llvm.ptr<1>)
    return
  }
"""
    m = compile_cute(module(kernel("k", ["!llvm.ptr<1>"], ["!llvm.ptr<1>"]), host), emit="ptx")
    k = m.kernel("k")
    k(FakeArray((4,)), 2)
    assert (gpu.launches[-1]["cluster"], gpu.launches[-1]["smem"]) == ((1, 2, 1), 128)
    k(FakeArray((4,)), 2, smem=100000)
    assert list(gpu.smem_allowed.values()) == [100000]
    with pytest.raises(LaunchError, match="needs 300000 bytes of dynamic shared memory; this GPU has 232448"):
        k(FakeArray((4,)), 2, smem=300000)
    with pytest.raises(LaunchError, match="is not a multiple of the cluster"):
        k(FakeArray((4,)), 2, grid=(1, 3, 1))


def test_missing_gpu_error_names_the_cure() -> None:
    cuda.driver.cache_clear()
    try:
        cuda.driver()
    except cuda.NoGpuError as e:
        assert "device='cpu'" in str(e) or "nvidia-smi" in str(e)
        with pytest.raises(cuda.NoGpuError):
            add().kernel("add")(*[np.zeros((2, 2), np.float32)] * 3)
    else:
        pytest.skip("there is a GPU here")


class FakeDevice(NamedTuple):
    """A fake ``torch.device``."""

    type: str
    index: int


class FakeTensor:
    """The attributes of a torch tensor that the launcher reads."""

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...], pointer: int, device: int = 0):
        self.shape, self._strides, self._pointer, self._device = shape, strides, pointer, device
        self.dtype = "torch.float32"
        self.device = FakeDevice("cuda" if device >= 0 else "cpu", device)

    def stride(self) -> tuple[int, ...]:
        return self._strides

    def is_contiguous(self) -> bool:
        steps = [prod(self.shape[i + 1 :]) for i in range(len(self.shape))]
        return all(n == 1 or s == t for n, s, t in zip(self.shape, self._strides, steps))

    def data_ptr(self) -> int:
        return self._pointer

    def get_device(self) -> int:
        return self._device


class FakeTorch:
    """A fake ``torch`` module whose current stream is 55."""

    Tensor = FakeTensor

    class _C:
        @staticmethod
        def _cuda_getCurrentRawStream(device: int) -> int:
            return 55


def test_second_call_with_torch_tensors_is_fast(gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[bytes]] = []
    gpu.kernels = {n: lambda record: seen.append(parameters(record)) for n in ("add", "add_v")}
    monkeypatch.setitem(sys.modules, "torch", FakeTorch)
    k = CompiledModule(add().artifact).kernel("add")
    plans: list[object] = []
    make = k._make_ready
    monkeypatch.setattr(k, "_make_ready", lambda *a: plans.append(a) or make(*a))
    for i in range(4):
        arrays = [FakeTensor((17, 128), (128, 1), ALIGNED + 4096 * (3 * i + j)) for j in range(3)]
        k(*arrays)
        assert seen[-1] == [matrix_bytes(a.data_ptr(), 17, 128, 128) for a in arrays]
    assert len(plans) == 1 and {(r["kernel"], r["stream"]) for r in gpu.launches} == {("add_v", 55)}
    k(*arrays, stream=9)
    assert gpu.launches[-1]["stream"] == 9
    k(*[FakeTensor((17, 128), (128, 1), ALIGNED + 4)] * 3)
    assert gpu.launches[-1]["kernel"] == "add" and len(plans) == 2
    k(*[FakeTensor((17, 128), (132, 1), ALIGNED)] * 3)
    assert gpu.launches[-1]["kernel"] == "add_v" and seen[-1][0] == matrix_bytes(ALIGNED, 17, 128, 132)
    with pytest.raises(DeviceError, match=r"got one on the CPU \(torch\).*\.cuda\(\)"):
        k(*[FakeTensor((17, 128), (128, 1), ALIGNED, device=-1)] * 3)
    with pytest.raises(StrideError):
        k(*[FakeTensor((17, 128), (1, 17), ALIGNED)] * 3)


def test_fast_calls_with_several_launches(gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each launch receives its own addresses. Cached calls are distinguished by numbers that conditions use."""
    seen: list[tuple[str, list[int]]] = []

    def note(record: dict[str, object]) -> None:
        first = [bytes((ctypes.c_uint8 * 8).from_address(p)) for p in record["parameters"][:2]]  # type: ignore[index]
        seen.append((str(record["kernel"]), [int.from_bytes(b, "little") for b in first]))

    gpu.kernels = dict.fromkeys(("scale", "add", "copy", "copy_16"), note)
    monkeypatch.setitem(sys.modules, "torch", FakeTorch)
    k = CompiledModule(compile_cute(several_launches.ALL, emit="ptx").artifact).kernel("choose")
    plans: list[object] = []
    make = k._make_ready
    monkeypatch.setattr(k, "_make_ready", lambda *a: plans.append(a) or make(*a))
    for i in range(4):
        arrays = [FakeTensor((130,), (1,), ALIGNED + 4096 * (3 * i + j)) for j in range(3)]
        x, y, z = (a.data_ptr() for a in arrays)
        for a in arrays:
            a.dtype = "torch.int32"
        for number, names in ((5, ["scale", "add", "add"]), (3, ["scale", "add"]), (0, ["copy_16"])):
            seen.clear()
            k(*arrays, number)
            assert seen == [(name, [y, z] if name == "add" else [x, y]) for name in names]
            assert {r["stream"] for r in gpu.launches[-len(names) :]} == {55}
    assert len(plans) == 3


def test_fast_calls_distinguish_arguments(gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call with another shape, stride, type, alignment, GPU or argument count does not reuse the cached call."""
    seen: list[list[bytes]] = []
    gpu.kernels = {n: lambda record: seen.append(parameters(record)) for n in ("add", "add_v")}
    monkeypatch.setitem(sys.modules, "torch", FakeTorch)
    k = CompiledModule(add().artifact).kernel("add")
    shapes = [((17, 128), (128, 1)), ((17, 64), (128, 1)), ((17, 128), (132, 1)), ((3, 8), (8, 1))]
    for _ in range(3):  # Alternating calls each find their own cached plan.
        for shape, strides in shapes:
            for offset in (0, 4):
                arrays = [FakeTensor(shape, strides, ALIGNED + offset + 65536 * j) for j in range(3)]
                k(*arrays)
                assert seen[-1] == [matrix_bytes(a.data_ptr(), *shape, strides[0]) for a in arrays]
                assert gpu.launches[-1]["kernel"] == ("add" if offset else "add_v")
    good = [FakeTensor((17, 128), (128, 1), ALIGNED + 65536 * j) for j in range(3)]
    k(*good)
    half = FakeTensor((17, 128), (128, 1), ALIGNED)
    half.dtype = "torch.float16"
    with pytest.raises(LaunchError):
        k(half, *good[1:])
    with pytest.raises(LaunchError):
        k(*good[:2])
    with pytest.raises(DeviceError):
        k(FakeTensor((17, 128), (128, 1), ALIGNED, device=1), *good[1:])
    launched = len(gpu.launches)
    gpu.context = 77
    k(*good)
    assert len(gpu.launches) == launched + 1 and gpu.context == 77


def test_bind(gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[bytes]] = []
    gpu.kernels = {n: lambda record: seen.append(parameters(record)) for n in ("add", "add_v")}
    monkeypatch.setitem(sys.modules, "torch", FakeTorch)
    k = CompiledModule(add().artifact).kernel("add")
    first = [FakeTensor((17, 128), (128, 1), ALIGNED + 65536 * j) for j in range(3)]
    second = [FakeTensor((17, 128), (128, 1), ALIGNED + 4 + 65536 * j) for j in range(3)]
    a, b = k.bind(*first), k.bind(*second)
    assert (a.plan.kernel, b.plan.kernel) == ("add_v", "add") and not gpu.launches
    for call, arrays, stream in ((a, first, None), (b, second, None), (a, first, 7), (b, second, 0), (a, first, None)):
        call(stream)
        assert seen[-1] == [matrix_bytes(x.data_ptr(), 17, 128, 128) for x in arrays]
        assert (gpu.launches[-1]["stream"] or 0) == (55 if stream is None else stream)
    k.bind(*[FakeTensor((0, 128), (128, 1), ALIGNED)] * 3)()
    assert len(gpu.launches) == 5
    with pytest.raises(DeviceError, match="expected an array in GPU memory"):
        k.bind(*[np.zeros((2, 2), np.float32)] * 3)


def test_a_launch_by_addresses(gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[bytes]] = []
    gpu.kernels = {n: lambda record: seen.append(parameters(record)) for n in ("add", "add_v")}
    monkeypatch.setitem(sys.modules, "torch", FakeTorch)
    k = CompiledModule(add().artifact).kernel("add")
    first = [FakeTensor((17, 128), (128, 1), ALIGNED + 65536 * j) for j in range(3)]
    launch = k.by_address(*first)
    assert launch is not None and not gpu.launches and k.alignment == 16
    for stream, start in ((7, ALIGNED), (8, ALIGNED + 4096)):
        addresses = [start + 65536 * j for j in range(3)]
        launch(stream, *addresses)
        assert seen[-1] == [matrix_bytes(x, 17, 128, 128) for x in addresses]
        assert gpu.launches[-1]["stream"] == stream and gpu.launches[-1]["kernel"] == "add_v"
    assert k.by_address(*[FakeTensor((0, 128), (128, 1), ALIGNED)] * 3) is None  # Nothing is launched.
    assert k.by_address(*[np.zeros((17, 128), np.float32)] * 3) is None
    with pytest.raises(LaunchError):
        k.by_address(*first[:2])


SCALED = """
!x = !cute.memref<f32, gmem, "?:1">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @scaled(%x: !x, %s: f32, %n: i32) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      gpu.return
    }
  }
  func.func @launch(%x: !x, %s: f32, %n: i32) {
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    gpu.launch_func @kernels::@scaled blocks in (%n, %c1, %c1) threads in (%c32, %c1, %c1) : i32
        args(%x : !x, %s : f32, %n : i32)
    return
  }
}
"""


def test_a_launch_by_addresses_and_numbers(gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bits of floats are passed like addresses; integers keep their values, because the grid depends on them."""
    seen: list[list[bytes]] = []
    gpu.kernels = {"scaled": lambda record: seen.append(parameters(record))}
    monkeypatch.setitem(sys.modules, "torch", FakeTorch)
    k = CompiledModule(compile_cute(SCALED, emit="ptx").artifact).kernel("launch")
    x = FakeTensor((64,), (1,), ALIGNED)
    launch, fixed = k.by_address(x, 1.5, 3, numbers=True), k.by_address(x, 1.5, 3)
    assert launch is not None and fixed is not None
    for value in (2.5, -0.0, 1e-30):
        launch(7, ALIGNED + 256, int.from_bytes(np.float32(value).tobytes(), "little"), 0)
        assert seen[-1][1][:4] == np.float32(value).tobytes() and seen[-1][2][:4] == np.int32(3).tobytes()
        assert seen[-1][0][:8] == (ALIGNED + 256).to_bytes(8, "little")
    fixed(7, ALIGNED, 0, 0)
    assert seen[-1][1][:4] == np.float32(1.5).tobytes()
    with pytest.raises(LaunchError):
        k.by_address(x, 1.5, numbers=True)


def three(first: int) -> list[FakeTensor]:
    """Return tensors for @add_v at distinct addresses."""
    return [FakeTensor((17, 128), (128, 1), ALIGNED + 65536 * (3 * first + j)) for j in range(3)]


@pytest.mark.parametrize("bound", [False, True])
def test_a_launch_during_another_has_its_own_parameters(
    gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch, bound: bool
) -> None:
    """The driver call releases the GIL, so that another thread can launch the same kernel at the same time."""
    monkeypatch.setitem(sys.modules, "torch", FakeTorch)
    k = CompiledModule(add().artifact).kernel("add")
    outer, inner = three(0), three(1)
    call = k.bind(*outer) if bound else None
    seen: list[list[bytes]] = []
    depth = 0

    def run(record: dict[str, object]) -> None:
        nonlocal depth
        depth += 1
        if depth == 1:
            (call or k)(*([] if call else inner), stream=8)
        depth -= 1
        seen.append(parameters(record))

    k(*outer)
    gpu.kernels = {"add_v": run}
    for _ in range(2):
        (call or k)(*([] if call else outer), stream=9)
        both = [[matrix_bytes(x.data_ptr(), 17, 128, 128) for x in a] for a in (outer if call else inner, outer)]
        assert seen == both
        assert [r["stream"] for r in gpu.launches[-2:]] == [9, 8]
        seen.clear()


def test_a_launch_under_another_context_or_none(gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry the launch in the GPU's primary context, then restore the thread's own context."""
    monkeypatch.setitem(sys.modules, "torch", FakeTorch)
    k = CompiledModule(add().artifact).kernel("add")
    arrays = three(0)
    k(*arrays)
    call = k.bind(*arrays)
    for launch in (call, lambda: k(*arrays)):
        for context, after in ((77, 77), (0, gpu.primary_context(0)), (gpu.primary_context(0),) * 2):
            gpu.context, launched = context, len(gpu.launches)
            launch()
            assert len(gpu.launches) == launched + 1 and gpu.context == after


@pytest.mark.parametrize("context", [1000, 77])
def test_driver_failures_are_errors(gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch, context: int) -> None:
    monkeypatch.setitem(sys.modules, "torch", FakeTorch)
    k = CompiledModule(add().artifact).kernel("add")
    arrays = three(0)
    codes = iter([0, 700, 700])
    launcher = gpu.launcher
    monkeypatch.setattr(gpu, "launcher", lambda *a: lambda: (next(codes),))
    k(*arrays)
    gpu.context = context
    with pytest.raises(cuda.CudaError, match=r"cuLaunchKernelEx failed with .* \(700\)"):
        k(*arrays)
    assert gpu.context == context
    monkeypatch.setattr(gpu, "launcher", launcher)
    gpu.context = 1000
    k(*arrays)
    assert len(gpu.launches) == 1


def test_numbers_are_distinguished_by_type_and_sign(gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cached calls distinguish -0.0 from 0.0 and True from 1."""
    monkeypatch.setitem(sys.modules, "torch", FakeTorch)
    seen: list[bytes] = []
    gpu.kernels = {"k": lambda record: seen.append(bytes((ctypes.c_uint8 * 4).from_address(record["parameters"][1])))}
    text = module(kernel("k", ["!cute.ptr<f32, gmem>", "f32"], ["!llvm.ptr<1>", "f32"]), POINTER_HOST)
    k = compile_cute(text).kernel("k")
    tensor = FakeTensor((4,), (1,), ALIGNED)
    for number in (0.0, -0.0, 2.5, 0.0, -0.0, 2, True) * 2:
        for options in ({}, {"stream": 3}, {"grid": (1, 1, 1)}):
            k(tensor, number, **options)  # type: ignore[arg-type]
            assert seen[-1] == np.float32(number).tobytes()
            assert gpu.launches[-1]["stream"] == options.get("stream", 55)


POINTER_HOST = """\
  func.func @launch(%a: !llvm.ptr<1>, %x: f32) attributes {cute.args = ["!cute.ptr<f32, gmem>", "f32"]} {
    %one = arith.constant 1 : index
    %t = arith.constant 128 : index
    gpu.launch_func @kernels::@k blocks in (%one, %one, %one) threads in (%t, %one, %one)
      args(%a : !llvm.ptr<1>, %x : f32)
    return
  }
"""
