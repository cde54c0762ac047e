"""Launches of the C++ extension, and its build: compared with the Python launcher on a fake driver."""

# pyright: basic

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread, current_thread
from threading import enumerate as threads
from typing import Any
from unittest.mock import patch

import pytest
from pipelines_support import FakeDriver

from cute_dialect.runtime import driver, native
from cute_dialect.runtime.bound_call import Ready
from cute_dialect.runtime.driver import CudaError
from cute_dialect.runtime.fast_call import address_call
from cute_dialect.runtime.host_program import Pointer, TensorMap
from cute_dialect.runtime.launch_plan import LaunchShape, Packed, Plan

torch = pytest.importorskip("torch")


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A process without the extension, and an empty cache."""
    monkeypatch.setenv("CUTE_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("CUTE_CACHE", "CUTE_NATIVE", "CXX"):
        monkeypatch.delenv(name, raising=False)
    with patch.object(native._State, "module", None), patch.object(native._State, "is_prepared", False):
        yield tmp_path


def prepared() -> None:
    """Prepare the extension, and wait for the thread that compiles it."""
    native.prepare()
    for thread in threads():
        if thread.name == "cute-native":
            thread.join()


def compiler_at(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_build_imports_torch(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has not imported torch can build the extension; without torch the error says so."""
    (fresh / "torch.py").write_text("class version: git_version = '1'\n__version__ = '0.0'\n")
    commands = list[list[str]]()

    def run(command: list[str], environment: object) -> None:
        commands.append(command)
        raise native.BuildError("nothing is compiled here")

    monkeypatch.setattr(native, "_run", run)
    monkeypatch.syspath_prepend(str(fresh))
    monkeypatch.delitem(sys.modules, "torch")
    with pytest.raises(native.BuildError, match="nothing is compiled here"):
        native.build()
    assert len(commands) == 1 and sys.modules["torch"].__version__ == "0.0"
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        native.BuildError, match=r"cute_replay needs torch, which cannot be imported: .*; install torch"
    ):
        native.build()


@pytest.mark.slow  # Another process imports torch.
def test_a_compiler_that_fails_runs_once(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", compiler_at(fresh / "cxx", f"echo called >> {fresh}/calls; echo no headers >&2; exit 3"))
    prepared()
    assert native.loaded() is None
    (log,) = (fresh / "cache" / "native").glob("*.log")
    assert "failed with code 3: no headers" in log.read_text()
    native._State.is_prepared = False  # another process
    prepared()
    assert (fresh / "calls").read_text() == "called\n"
    with pytest.raises(native.BuildError, match="failed with code 3: no headers"):
        native.build()


@pytest.mark.slow  # Another process imports torch.
def test_a_file_that_is_no_extension_is_not_used(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler's result is loaded in another process before it is put into the cache."""
    monkeypatch.setenv("CXX", compiler_at(fresh / "cxx", 'while [ "$1" != -o ]; do shift; done; echo text > "$2"'))
    with pytest.raises(native.BuildError, match=r"failed with code 1: .*(invalid ELF header|file too short)"):
        native.build()
    assert not list((fresh / "cache").rglob("*.so"))


@pytest.mark.parametrize("name", ["CUTE_NATIVE", "CUTE_CACHE"])
def test_settings_that_turn_it_off(fresh: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "0")
    monkeypatch.setenv("CXX", compiler_at(fresh / "cxx", f"touch {fresh}/called"))
    prepared()
    assert native.loaded() is None and not (fresh / "called").exists()


@pytest.mark.end_to_end
def test_no_compiler(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(fresh))
    prepared()
    assert native.loaded() is None
    with pytest.raises(native.BuildError, match=r"no C\+\+ compiler was found; install g\+\+, or set CXX"):
        native.build()


# ---------------------------------------------------------------------------------------------------------- launches


class Config(ctypes.Structure):
    _fields_ = (
        *[(name, ctypes.c_uint * 3) for name in ("grid", "block")], ("smem", ctypes.c_uint),
        ("stream", ctypes.c_uint64), ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint),
    )  # fmt: skip


class LaunchDriver(FakeDriver):
    """A driver whose launch function can be called from C, and which notes parameters and tensor maps."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []
        self.seen: list[tuple[Any, ...]] = []
        self.codes: list[int] = []
        self.encoded: list[int] = []

        def launch(config: Any, function: int, parameters: Any, extra: int) -> int:
            c = config.contents
            attributes = [ctypes.string_at(c.attributes + 72 * i, 72) for i in range(c.count)]
            given = [ctypes.string_at(parameters[i], n) for i, n in enumerate(self.sizes)]
            self.seen.append((function, list(c.grid), list(c.block), c.smem, c.stream, attributes, given))
            return self.codes.pop(0) if self.codes else 0

        kind = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.POINTER(Config), ctypes.c_uint64, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint64
        )
        self._launch = kind(launch)
        self.launch_address = ctypes.cast(self._launch, ctypes.c_void_p).value

    def encode_map(self, address: int, *rest: Any) -> bytes:
        self.encoded.append(address)
        return address.to_bytes(8, "little") * 16

    def is_current(self, device: int) -> bool:
        return self.context == self.primary_context(device)

    def launcher(self, function: int, shape: LaunchShape, parameters: Any, stream: int = 0) -> Any:
        def run() -> tuple[int]:
            given = [ctypes.string_at(parameters[i], n) for i, n in enumerate(self.sizes)]
            self.seen.append((function, list(shape.grid), list(shape.block), shape.smem, stream, None, given))
            return (self.codes.pop(0) if self.codes else 0,)

        return run

    def check(self, name: str, code: int) -> None:
        if code:
            raise CudaError(name, code, "CUDA_ERROR_TEST")


def plan_of(shape: LaunchShape, packed: Packed) -> Plan:
    fields = dict.fromkeys(Plan._fields)
    return Plan(**{**fields, "shape": shape, "packed": packed, "empty": False})  # type: ignore[arg-type]


def ready_of(gpu: LaunchDriver, launches: int = 1) -> Ready:
    """Return launches with two addresses, one of them 6 bytes into a parameter, a number, and a tensor map."""
    tensor_map = TensorMap(Pointer(1, 32), (64, 8), (128,), (64, 8), (1, 1), 6, 0, 0, 2, 0)
    number = bytes(4)  # its bits are written as an address
    patches = ((0, 0, 0, 0), (1, 6, 1, 24), (3, 0, 0, 0))
    packed = Packed((bytes(8), bytes(range(20)), bytes(128), number), patches, ((2, tensor_map),))
    gpu.sizes = [8, 20, 128, 4]
    shape = LaunchShape((3, 2, 1), (128, 1, 1), 4096, (2, 1, 1), True, True)
    plans = [plan_of(shape, packed)] * launches
    return Ready(gpu, plans, [77 + i for i in range(launches)], 0)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def extension() -> Any:
    if native._compiler() is None:
        pytest.skip("launches in C++ were not tested, because this machine has no C++ compiler")
    try:
        return native.build()
    finally:
        native._State.module = None


@pytest.mark.slow
def test_the_extension_is_loaded_once(extension: Any) -> None:
    """Listeners run once, in the thread that loads it, and see the extension."""
    seen: list[Any] = []
    state, listener = native._State, lambda: seen.append((native.loaded(), current_thread().name))
    fresh = {"module": None, "is_prepared": False, "listeners": [listener]}
    with patch.multiple(state, **fresh), patch.object(native, "flag", lambda *_: True):
        many = [Thread(target=native.prepare, name="one") for _ in range(4)]
        many += [Thread(target=native._build_quietly, args=(native._path(),), name="one") for _ in range(4)]
        for thread in many:
            thread.start()
        for thread in many:
            thread.join()
        assert len(seen) == 1 and seen[0] == (native.loaded(), "one") and native.loaded() is not None


@pytest.mark.slow
def test_launches_are_those_of_python(extension: Any) -> None:
    """Parameters, grid, block, shared memory and attributes, at aligned and odd addresses; maps are encoded once."""
    gpu = LaunchDriver()
    python = address_call(ready_of(gpu), 2)
    with patch.object(native._State, "module", extension):
        compiled = address_call(ready_of(gpu), 2)
    assert type(compiled) is extension.Kernels
    for addresses in ((256, 1024), (0x7F00_0000_0001, 2**48 + 512), (256, 1024)):
        for launch in (python, compiled):
            launch(5, *addresses)
        theirs, ours = gpu.seen[-2:]
        assert ours[:5] == theirs[:5] == (77, [3, 2, 1], [128, 1, 1], 4096, 5)
        assert ours[6] == theirs[6]
    # CUlaunchAttribute: an id, 4 bytes of padding, and the value in 64 bytes
    words = [tuple(int.from_bytes(a[i : i + 4], "little") for i in (0, 8, 12, 16)) for a in gpu.seen[-1][5]]
    assert sorted(words) == [(2, 1, 0, 0), (4, 2, 1, 1), (6, 1, 0, 0)]
    assert sorted(gpu.encoded) == sorted([1056, 1056, 2**48 + 544, 2**48 + 544])


@pytest.mark.slow
def test_errors_of_launches(extension: Any) -> None:
    """A failed first launch is tried again in the kernel's context; a later one is an error."""
    gpu = LaunchDriver()
    with patch.object(native._State, "module", extension):
        launch = address_call(ready_of(gpu, 2), 2)
    gpu.codes = [201]
    launch(0, 256, 512)
    assert [x[0] for x in gpu.seen] == [77, 77, 78]
    gpu.codes = [0, 700]
    with pytest.raises(CudaError, match="cuLaunchKernelEx"):
        launch(0, 256, 512)
    gpu.codes, gpu.context = [201, 201], gpu.primary_context(0)
    with pytest.raises(CudaError, match="cuLaunchKernelEx"):
        launch(0, 256, 512)
    with pytest.raises(OverflowError):
        launch(0, -1, 512)
    with pytest.raises(TypeError):
        launch(0, "256", 512)


@pytest.mark.slow
def test_few_addresses_are_no_crash(extension: Any) -> None:
    gpu = LaunchDriver()
    with patch.object(native._State, "module", extension):
        launch = address_call(ready_of(gpu), 2)
    launch(0)
    assert gpu.seen[-1][6][0] == bytes(8)


def test_the_address_of_the_launch_function() -> None:
    """A cuda-python that calls another function of the driver is not bypassed."""
    library = type("Library", (), {"cuLaunchKernelEx": ctypes.CFUNCTYPE(None)(print)})
    for value, has_address in (("0", True), ("", True), ("1", False)):
        gpu = object.__new__(driver.Driver)
        environment = {"CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM": value}
        with patch.dict(os.environ, environment), patch.object(driver, "CDLL", lambda name: library):
            assert bool(gpu.launch_address) is has_address
