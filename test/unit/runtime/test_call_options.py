"""Kernel calls with all kinds of options and arrays, including arrays that share memory."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from pipelines_support import FakeArray, FakeDriver, add_module, tensor_of

from cute_dialect.errors import CompileError
from cute_dialect.interp import InterpError
from cute_dialect.ir.context import make_context
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines.build_manifest import describe, parse_type
from cute_dialect.runtime import driver as cuda
from cute_dialect.runtime import load
from cute_dialect.runtime.artifact import Artifact, ArtifactError
from cute_dialect.runtime.call_options import OptionError
from cute_dialect.runtime.launch import CompiledModule, Kernel
from cute_dialect.runtime.launch_plan import DtypeError, LaunchError, RangeError, ReadOnlyError, ShapeError
from cute_dialect.runtime.manifest import Param

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@lru_cache(maxsize=1)
def shipped() -> Kernel:
    return compile_cute(EXAMPLES / "elementwise_add.mlir", emit="base").kernel("add")


@lru_cache(maxsize=1)
def artifact() -> Artifact:
    return compile_cute(add_module(), emit="ptx").artifact


def add() -> Kernel:
    """Return a kernel that no driver has loaded yet."""
    return CompiledModule(artifact()).kernel("add")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    fake = FakeDriver()
    monkeypatch.setattr(cuda, "driver", lambda: fake)

    def run(record: dict[str, object]) -> None:
        a, b, c = (tensor_of(p) for p in record["parameters"])  # type: ignore[attr-defined]
        c[...] = a + b

    fake.kernels = {"add": run, "add_v": run}
    return fake


def matrices(count: int = 3, shape: tuple[int, int] = (5, 7)) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.standard_normal(shape).astype(np.float32) for _ in range(count)]


# ------------------------------------------------------------------------------------------------------------ options

THREE = "one to three positive integers like (8, 1, 1)"
NUMBERS = "block numbers, or a string such as '0,5,16:32' or 'sample:16'"
CHECKS = "any of 'race', 'oob', 'uninit', 'sync', 'strict', as 'race,sync' or a tuple; or 'all', 'auto', 'none'"
REPORTS = "a tuple or list with any of 'banks', 'coalescing', 'occupancy', 'timeline', 'flops'"
SCHEDULES = "one of 'round-robin', 'reverse', 'random', 'adversarial', 'replay:...'"
DEVICES = "'gpu', 'cuda:N', a number or 'cpu'"
WRONG = [
    ("grid", 4, f"{THREE}, got 4"),
    ("grid", 1.5, f"{THREE}, got 1.5"),
    ("grid", (1.5, 1, 1), f"{THREE}, got (1.5, 1, 1)"),
    ("grid", (2.0,), f"{THREE}, got (2.0,)"),
    ("grid", (1, 1, 1, 1), f"{THREE}, got (1, 1, 1, 1)"),
    ("grid", (), f"{THREE}, got ()"),
    ("grid", (-1, 1, 1), f"{THREE}, got (-1, 1, 1)"),
    ("grid", "8", f"{THREE}, got '8'"),
    ("grid", ("8", 1, 1), f"{THREE}, got ('8', 1, 1)"),
    ("grid", (True, 1, 1), f"{THREE}, got (True, 1, 1)"),
    ("grid", {8: 1}, f"{THREE}, got {{8: 1}}"),
    ("block", (0, 1, 1), f"{THREE}, got (0, 1, 1)"),
    ("block", (32, None), f"{THREE}, got (32, None)"),
    ("block", b"abc", f"{THREE}, got b'abc'"),
    ("smem", -1, "a number of bytes, got -1"),
    ("smem", "48K", "a number of bytes, got '48K'"),
    ("smem", 0.5, "a number of bytes, got 0.5"),
    ("smem", True, "a number of bytes, got True"),
    ("smem", 1 << 40, "a number of bytes, got 1099511627776"),
    ("device", "tpu", f"{DEVICES}, got 'tpu'"),
    ("device", "cuda:x", f"{DEVICES}, got 'cuda:x'"),
    ("device", "cuda:-1", f"{DEVICES}, got 'cuda:-1'"),
    ("device", -1, f"{DEVICES}, got -1"),
    ("device", True, f"{DEVICES}, got True"),
    ("device", 0.0, f"{DEVICES}, got 0.0"),
    ("checks", "races", f"{CHECKS}, got 'races'"),
    ("checks", ("races",), f"{CHECKS}, got 'races'"),
    ("checks", 1, f"{CHECKS}, got 1"),
    ("checks", (1,), f"{CHECKS}, got 1"),
    ("reports", "banks", f"{REPORTS}, got 'banks'"),
    ("reports", ["bank"], f"{REPORTS}, got 'bank'"),
    ("schedule", "fastest", f"{SCHEDULES}, got 'fastest'"),
    ("schedule", 3, f"{SCHEDULES}, got 3"),
    ("schedule", ["random"], f"{SCHEDULES}, got ['random']"),
    ("seed", "7", "an integer, got '7'"),
    ("seed", 1.5, "an integer, got 1.5"),
    ("seed", None, "an integer, got None"),
    ("resident", 0, "a number of blocks that is at least 1, got 0"),
    ("resident", 1.5, "a number of blocks that is at least 1, got 1.5"),
    ("blocks", 3, f"{NUMBERS}, got 3"),
    ("blocks", 0.5, f"{NUMBERS}, got 0.5"),
    ("blocks", (0.5,), "block numbers, got 0.5"),
    ("blocks", ("0",), "block numbers, got '0'"),
    ("blocks", (-1,), "block numbers, got -1"),
    ("progress", "yes", "a function, got 'yes'"),
    ("unwritten", "mC", "a tuple or list of names of array arguments, got 'mC'"),
    ("unwritten", [3], "a tuple or list of names of array arguments, got [3]"),
]


@pytest.mark.parametrize(("name", "value", "said"), WRONG, ids=[f"{n}={v!r}" for n, v, _ in WRONG])
def test_invalid_options_are_rejected(gpu: FakeDriver, name: str, value: object, said: str) -> None:
    arrays = matrices()
    for given in ({"device": "cpu", name: value}, {name: value}):
        for kernel in (shipped(), add()):
            with pytest.raises(OptionError) as e:
                kernel(*arrays, **given)  # type: ignore[arg-type]
            assert str(e.value) == f"{name}: expected {said}"
    if name in ("grid", "block", "smem"):
        for call in (add().plan, add().bind):
            with pytest.raises(OptionError, match=re.escape(said)):
                call(*[FakeArray((5, 7))] * 3, **{name: value})  # type: ignore[arg-type]
    assert gpu.launches == []


def test_valid_options(gpu: FakeDriver) -> None:
    a, b, c = matrices()
    for given in (
        {"grid": [1]},
        {"grid": np.array([1, 1])},
        {"grid": (np.int64(1), 1, 1)},
        {"grid": range(1, 2), "smem": np.int32(16)},
        {"device": "cuda"},
        {"device": 0},
        {"device": np.int64(0)},
        {"device": "cuda:0", "checks": [], "blocks": None},
        {"device": None},
    ):
        c[...] = 0
        add()(a, b, c, **given)  # type: ignore[arg-type]
        assert np.array_equal(c, a + b)
    for given in ({"seed": np.int64(3)}, {"blocks": range(1)}, {"blocks": [np.int32(0)]}, {"checks": {"race"}}):
        shipped()(a, b, c, device="cpu", **given)  # type: ignore[arg-type]


def test_options_of_the_interpreter_are_not_ignored_on_the_gpu(gpu: FakeDriver) -> None:
    for given in (
        {"checks": ("race",)}, {"reports": ("banks",)}, {"blocks": (0,)}, {"schedule": "reverse"}, {"seed": 3},
        {"progress": print}, {"unwritten": ("mC",)}, {"resident": 4},
    ):  # fmt: skip
        with pytest.raises(
            OptionError, match=f'^{next(iter(given))}: only the interpreter has this option; pass device="cpu"$'
        ):
            add()(*matrices(), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("stream", ["0", 1.5, True, -1, object(), (0,)])
def test_wrong_streams(gpu: FakeDriver, stream: object) -> None:
    said = f"stream: expected a stream of torch, cupy or cuda-python, or its handle, got {stream!r}"
    for given in ({}, {"device": "cpu"}):
        with pytest.raises(TypeError, match=re.escape(said)):
            add()(*matrices(), stream=stream, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"emit": "binary"}, "emit: expected one of 'auto', 'cubin', 'ptx', 'base', got 'binary'"),
        ({"emit": None}, "emit: expected one of 'auto', 'cubin', 'ptx', 'base', got None"),
        ({"emit": ["ptx"]}, "emit: expected one of 'auto', 'cubin', 'ptx', 'base', got ['ptx']"),
        ({"pipeline": 3}, "pipeline: expected a text like 'nvptx=chip=sm_90a', got 3"),
        ({"chip": 90}, "chip: expected a text like 'sm_90a', got 90"),
        ({"features": ["+ptx83"]}, "features: expected a text like '+ptx83', got ['+ptx83']"),
        ({"opt_level": 4}, "opt_level: expected 0, 1, 2 or 3, got 4"),
        ({"opt_level": "3"}, "opt_level: expected 0, 1, 2 or 3, got '3'"),
        ({"opt_level": True}, "opt_level: expected 0, 1, 2 or 3, got True"),
        ({"filename": 1}, "filename: expected a text, got 1"),
        ({"keep_stages": "no"}, "keep_stages: expected True or False, got 'no'"),
        ({"save": 1}, "save: expected the path of a folder, got 1"),
        ({"cache": 0}, "cache: expected True or False, got 0"),
        ({"source": 7}, "source: expected a text, a path or an xDSL module, got 7"),
        ({"source": b"module {}"}, "source: expected a text, a path or an xDSL module, got b'module {}'"),
    ],
)
def test_wrong_keywords_of_compile(given: dict[str, object], said: str) -> None:
    with pytest.raises(CompileError) as e:
        compile_cute(**{"source": "module {}", **given})  # type: ignore[arg-type]
    assert str(e.value) == f"error: {said}"


# ------------------------------------------------------------------------------------------------------------- arrays

KNOWN = (
    "float64, float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, float8_e8m0fnu, int64, int32, int16, int8, "
    "uint64, uint32, uint16, uint8, bool"
)
ARRAY = "expected an array (torch, cupy, numpy, or anything with DLPack or the CUDA array interface), got"
F32 = np.zeros((5, 7), np.float32)
REFUSED = {
    "masked": (
        np.ma.masked_array(F32, F32 > 1),
        "masked numpy arrays are not supported, a kernel sees no mask: pass x.filled(…) or x.data",
    ),
    "object": (F32.astype(object), f"numpy arrays of object are not supported (supported: {KNOWN}): pass x.astype(…)"),
    "complex": (
        F32.astype(np.complex64),
        f"numpy arrays of complex64 are not supported (supported: {KNOWN}): pass x.astype(…)",
    ),
    "4-bit floats": (
        np.zeros((5, 8), ml_dtypes.float4_e2m1fn),
        f"numpy arrays of float4_e2m1fn are not supported (supported: {KNOWN}): pass u[..., ::2] | u[..., 1::2] << 4 "
        'with u = x.view("uint8"), two numbers per byte, and use cute.recast_tensor(x, cute.Float4E2M1FN) in the '
        "kernel",
    ),
    "text": (F32.astype("U3"), f"numpy arrays of <U3 are not supported (supported: {KNOWN}): pass x.astype(…)"),
    "dates": (
        F32.astype("datetime64[s]"),
        f"numpy arrays of datetime64[s] are not supported (supported: {KNOWN}): pass x.astype(…)",
    ),
    "structured": (
        np.zeros((5, 7), [("x", "f4")]),
        f"numpy arrays of [('x', '<f4')] are not supported (supported: {KNOWN}): pass x.astype(…)",
    ),
    "big-endian": (
        F32.astype(">f4"),
        "numpy arrays of '>f4' (float32 in the other byte order) are not supported: pass x.astype(\"float32\")",
    ),
    "a field": (
        np.zeros((5, 7), [("x", "f4"), ("y", "i1")])["x"],
        "numpy array has strides (35, 5) bytes, not multiples of its element (4 bytes): pass "
        "numpy.ascontiguousarray(x)",
    ),
    "list": ([[1.0]], f"{ARRAY} list; numpy.asarray(…, dtype=…) makes one"),
    "text alone": ("abc", f"{ARRAY} str"),
    "nothing": (None, f"{ARRAY} NoneType"),
    "number": (3, f"{ARRAY} int"),
    "numpy's number": (np.float32(3), f"{ARRAY} float32"),
}


@pytest.mark.parametrize("how", REFUSED)
def test_invalid_arrays_are_rejected(gpu: FakeDriver, how: str) -> None:
    bad, said = REFUSED[how]
    for given in ({}, {"device": "cpu"}):
        for place in range(3):
            arrays: list[object] = list(matrices())
            arrays[place] = bad
            with pytest.raises(DtypeError) as e:
                add()(*arrays, **given)  # type: ignore[arg-type]
            assert str(e.value).split(": ", 1)[1] == said
    assert gpu.memory == {}


@pytest.mark.parametrize("shape", [(), (7,), (5, 7, 1), (1, 5, 7)])
def test_other_ranks_are_refused(shape: tuple[int, ...]) -> None:
    a, b, _ = matrices()
    with pytest.raises(ShapeError, match=re.escape("expects an array of rank 2, got shape (")):
        shipped()(a, b, np.zeros(shape, np.float32), device="cpu")


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_accepted_arrays(gpu: FakeDriver, device: str) -> None:
    """Arrays with any row stride, read-only inputs and empty arrays give the same results as numpy."""
    kernel = shipped() if device == "cpu" else add()
    big, b, c = matrices(3, (10, 7))
    backwards, constant = big[::-1], big[:]
    constant.flags.writeable = False
    rows = np.broadcast_to(big[3], (10, 7))
    for a in (constant, big[::2], np.asfortranarray(big[:1]), *([backwards, rows] if device == "cpu" else [])):
        n = len(a)
        c[...] = 9
        kernel(a, b[:n], c[:n], device=device)
        assert np.array_equal(c[:n], a + b[:n]) and (c[n:] == 9).all()
    kernel(big[:0], b[:0], c[:0], device=device)
    kernel(constant[:, :0], b[:, :0], c[:, :0], device=device)


def test_a_read_only_output(gpu: FakeDriver) -> None:
    a, b, c = matrices()
    before = c.copy()
    c.flags.writeable = False
    with pytest.raises(ReadOnlyError) as e:
        add()(a, b, c)
    name = add().target.names[2]
    assert str(e.value) == (
        f"argument {name}: the kernel writes to it, and this array is read-only; pass one that may be written (a copy: "
        "array.copy())"
    )
    assert gpu.memory == {}
    with pytest.raises(InterpError, match="read-only"):
        shipped()(a, b, c, device="cpu")
    assert np.array_equal(c, before)


def test_numbers_for_scalars() -> None:
    from cute_dialect.runtime.launch_plan import bind_plain

    def param(text: str, lowered: str) -> Param:
        return describe(text, parse_type(text, make_context("all")), lowered)

    for text, value, error, said in (
        ("i32", "3", DtypeError, "x expects an integer for i32, got str"),
        ("i32", None, DtypeError, "x expects an integer for i32, got NoneType"),
        ("i32", np.array([1, 2]), DtypeError, "x expects a single number for i32, got several (ndarray)"),
        ("f32", np.complex64(1), DtypeError, "x expects a number for f32, got complex"),
        ("i1", 2, RangeError, "x: 2 does not fit i1 (expected 0, 1, False or True)"),
        ("!llvm.ptr<1>", -1, RangeError, "x: -1 is not an address; it must be from 0 to 2^64 - 1"),
        ("!llvm.ptr<1>", True, DtypeError, "x expects an array or an address, got bool"),
    ):
        with pytest.raises(error) as e:
            bind_plain(param(text, text), value, 0, "x")
        assert str(e.value) == said
    assert bind_plain(param("i32", "i32"), np.array([7]), 0, "x") == 7
    shape = param('!cute.shape<"(?,8)">', "i32")
    assert bind_plain(shape, (np.int64(3), np.int32(8)), 0, "x") == 3


# -------------------------------------------------------------------------------------------------- memory in common


def overlaps(which: str) -> tuple[np.ndarray, ...]:
    """Return two arrays that share memory in one allocation."""
    base = np.arange(20 * 7, dtype=np.float32).reshape(20, 7)
    return {
        "the same": (base[:5], base[:5]),
        "another object": (base[:5], base[0:5]),
        "part": (base[:5], base[3:8]),
        "part, the later first": (base[3:8], base[:5]),
        "inside": (base[:10:2], base[1:6]),
        "woven": (base[0:10:2], base[1:11:2]),
        "apart": (base[:5], base[5:10]),
        "backwards": (base[4::-1], base[:5]),
    }[which]


CASES = ["the same", "another object", "part", "part, the later first", "inside", "woven", "apart", "backwards"]


@pytest.mark.parametrize("which", CASES)
def test_views_that_share_memory_are_staged_as_one(gpu: FakeDriver, which: str) -> None:
    """Writes through one view are visible through the other, on the GPU and on the CPU."""
    a, c = overlaps(which)
    shared = np.may_share_memory(a, c)
    seen: list[bool] = []

    def run(record: dict[str, object]) -> None:
        pa, _, pc = (int.from_bytes(pointer_of(p), "little") for p in record["parameters"])  # type: ignore[attr-defined]
        seen.append(pc - pa == c.ctypes.data - a.ctypes.data)

    gpu.kernels = {"add": run, "add_v": run}
    expected = a.copy(), c.copy()
    add()(a, matrices()[0], c)
    assert seen == [True] or not shared
    assert np.array_equal(a, expected[0]) and np.array_equal(c, expected[1])
    assert gpu.memory == {}


def pointer_of(parameter: int) -> bytes:
    import ctypes

    return bytes((ctypes.c_uint8 * 8).from_address(parameter))


@pytest.mark.parametrize(
    "which", [c for c in CASES if c not in ("part", "part, the later first", "inside", "backwards")]
)
def test_views_that_share_memory_on_the_cpu(which: str) -> None:
    a, c = overlaps(which)
    b = matrices()[0]
    expected = a + b
    rest = a.base.copy()
    shipped()(a, b, c, device="cpu")
    assert np.array_equal(c, expected)
    c[...] = 0
    untouched = a.base != 0
    assert np.array_equal(a.base[untouched], rest[untouched])


@pytest.mark.parametrize("which", ["part", "part, the later first", "backwards"])
def test_an_output_over_an_input_is_one_memory_for_the_race_check(which: str) -> None:
    """The interpreter reports a race between accesses through both arrays."""
    a, c = overlaps(which)
    with pytest.raises(InterpError) as e:
        shipped()(a, matrices()[0], c, device="cpu", checks=("race",))
    assert e.value.kind == "race"


def test_a_read_only_view_of_the_output(gpu: FakeDriver) -> None:
    """A read-only input may share the output's memory, but a read-only output is an error."""
    base = np.arange(14 * 7, dtype=np.float32).reshape(14, 7)
    a, c = base[:5], base[:5]
    a.flags.writeable = False
    expected = a + a
    add()(a, a, c)
    assert np.array_equal(c, expected)
    a, c = base[:5], base[2:7]
    c.flags.writeable = False
    with pytest.raises(ReadOnlyError):
        add()(a, a, c)
    assert gpu.memory == {}


def test_memory_is_given_back_when_there_is_not_enough(gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    allocate, calls = gpu.allocate, iter(range(9))

    def scarce(size: int) -> int:
        if next(calls) == 2:
            raise cuda.CudaError("cuMemAlloc_v2", 2, "CUDA_ERROR_OUT_OF_MEMORY")
        return allocate(size)

    monkeypatch.setattr(gpu, "allocate", scarce)
    with pytest.raises(cuda.CudaError):
        add()(*matrices())
    assert gpu.memory == {}


def test_errors_are_launch_errors() -> None:
    assert issubclass(OptionError, LaunchError) and issubclass(ReadOnlyError, LaunchError)


def test_kernel_names_are_checked(gpu: FakeDriver) -> None:
    for name, said in ((5, "kernel: name must be a string, got 5"), (None, "kernel: name must be a string, got None")):
        with pytest.raises(LaunchError, match=f"^{said}$"):
            CompiledModule(artifact()).kernel(name)  # type: ignore[arg-type]
    for folder in (5, None, b"x", "\0"):
        with pytest.raises(ArtifactError, match=f"^load: folder must be a path, got {re.escape(repr(folder))}$"):
            load(folder)  # type: ignore[arg-type]
        with pytest.raises(ArtifactError, match=f"^save: folder must be a path, got {re.escape(repr(folder))}$"):
            CompiledModule(artifact()).save(folder)  # type: ignore[arg-type]
    with pytest.raises(LaunchError) as e:
        CompiledModule(artifact()._replace(code=())).kernel("add")(*matrices())
    assert str(e.value) == (
        "@add has no machine code (it was compiled with emit='base'); compile it with emit='auto', or run it on the "
        "CPU: device='cpu'"
    )
    assert gpu.memory == {}
