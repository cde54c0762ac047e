"""Specializations: methods and receivers, generics, globals, threads and ahead-of-time compilation."""

from __future__ import annotations

import inspect
import linecache
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute

FACTOR = 2


def factor() -> int:
    return FACTOR


@cute.kernel
def scale(x: cute.Tensor, y: cute.Tensor, by: Any) -> None:
    i = cute.arch.thread_idx()[0]
    y[i] = x[i] * by


@cute.jit
def run(x: Any, y: Any) -> None:
    scale(x, y, factor()).launch(grid=1, block=32)


def arrays() -> tuple[Any, Any]:
    return np.arange(32, dtype=np.float32), np.zeros(32, np.float32)


@pytest.fixture(autouse=True)
def on_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_DEVICE", "cpu")


def test_changed_globals_respecialize(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = arrays()
    run.cache_clear()
    run(x, y)
    run(x, y)
    assert (y == 2 * x).all() and run.cache_info()[:2] == (1, 1)
    monkeypatch.setitem(globals(), "FACTOR", 5)
    run(x, y)
    assert (y == 5 * x).all() and run.cache_info()[:3] == (1, 2, 1)


class Scaler:
    """A configuration object that modifies itself while it is traced."""

    made = 0

    def __init__(self, by: int):
        self.by = by
        self.notes: list[Any] = []
        self.traces = 0

    @cute.jit
    def __call__(self, x: Any, y: Any) -> None:
        self.traces += 1
        self.kept = x
        self.notes.append(y)
        self.work(x, y).launch(grid=1, block=32)
        Scaler.made += 1

    @cute.kernel
    def work(self, x: cute.Tensor, y: cute.Tensor) -> None:
        i = cute.arch.thread_idx()[0]
        y[i] = self.times(x[i])

    @cute.jit
    def times(self, value: Any) -> Any:
        return value * self.by

    @staticmethod
    @cute.jit
    def outside(x: Any, y: Any) -> None:
        scale(x, y, 7).launch(grid=1, block=32)

    @cute.jit
    @classmethod
    def of_class(cls, x: Any, y: Any) -> None:
        scale(x, y, len(cls.__name__)).launch(grid=1, block=32)


def test_methods_and_their_receivers() -> None:
    x, y = arrays()
    Scaler.made = 0
    three = Scaler(3)
    for _ in range(2):
        three(x, y)
        assert (y == 3 * x).all()
    assert vars(three) == {"by": 3, "notes": [], "traces": 0}
    assert Scaler.made == 1
    three.by = 4
    three(x, y)
    assert (y == 4 * x).all() and Scaler.made == 2
    Scaler(4)(x, y)
    assert Scaler.made == 2  # An object with equal attributes is the same constant.
    three.work(x, y).launch(grid=1, block=32)
    k = cute.compile(three, x, y)
    y[:] = 0
    k(x, y)
    assert (y == 4 * x).all()
    Scaler.outside(x, y)
    assert (y == 7 * x).all()
    three.outside(x, y)
    Scaler.of_class(x, y)
    assert (y == 6 * x).all()


@cute.generic("N", "T", BLOCK=32)
@cute.kernel
def generic_kernel(x: cute.Tensor[T, N], y: cute.Tensor[T, N]) -> None:  # noqa: F821
    i = cute.arch.thread_idx()[0]
    assert type(N) is int  # noqa: F821
    y[i] = T(N + BLOCK) + x[i]  # noqa: F821


def test_generics() -> None:
    x, y = arrays()
    generic_kernel(x, y).launch(grid=1, block=32)
    assert (y == x + 64).all()
    generic_kernel[32, cute.Float32, 100](x, y).launch(grid=1, block=32)
    assert (y == x + 132).all()
    half = generic_kernel[32]
    half[cute.Float32](x, y).launch(grid=1, block=32)
    assert (y == x + 64).all()
    with pytest.raises(cute.KernelTypeError, match="F132: the generic parameter 'N' is 16, but argument 'x' gives 32"):
        generic_kernel[16](x, y).launch(grid=1, block=32)
    with pytest.raises(cute.KernelTypeError, match=r"F131: .* has 3 generic parameters \(N, T, BLOCK\), got 4"):
        generic_kernel[1, 2, 3, 4]
    with pytest.raises(cute.KernelTypeError, match=r"F131: .* has no generic parameters"):
        scale[1]

    @cute.generic("M")
    @cute.kernel
    def unknown(x: cute.Tensor) -> None:
        x[0] = M  # noqa: F821

    with pytest.raises(cute.KernelTypeError) as caught:
        unknown(x).launch(grid=1, block=1)
    assert caught.value.code == "F130"
    assert caught.value.message == "the generic parameter 'M' of 'unknown' is neither given nor deduced"
    assert caught.value.hint == "unknown[M](…), or use it in an annotation"

    @cute.jit
    def host(x: Any, y: Any) -> None:
        generic_kernel(x, y).launch(grid=1, block=32)

    y[:] = 0
    with pytest.raises(cute.KernelTypeError, match="F130"):
        host(x, y)  # The extents are dynamic, so N is unknown.
    cute.compile(host, cute.from_dlpack(x), cute.from_dlpack(y))(x, y)
    assert (y == x + 64).all()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters are Python 3.12's")
def test_type_parameters(tmp_path: Path) -> None:
    text = (
        "import cute_dialect.lang as cute\n"
        "@cute.kernel\n"
        "def k[N, T: cute.Float32](x: cute.Tensor[T, N]):\n"
        "    x[0] = T(N)\n"
    )
    path = tmp_path / "parameters.py"
    path.write_text(text)
    space: dict[str, Any] = {"__name__": "parameters"}
    exec(compile(text, str(path), "exec"), space)
    x = np.zeros(5, np.float32)
    space["k"](x).launch(grid=1, block=1)
    assert x[0] == 5


def test_number_of_cached_specializations_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from cute_dialect.lang.calls import specializations

    monkeypatch.setattr(specializations, "MOST", 2)

    @cute.jit
    def f(n: cute.Constexpr[int]) -> int:
        return n + 1

    assert [f(n) for n in (1, 2, 1, 3, 2)] == [2, 3, 2, 4, 3]
    assert f.cache_info()[:3] == (1, 4, 2)


def test_threads_share_one_compilation() -> None:
    traces: list[int] = []

    @cute.jit
    def f(x: Any, y: Any) -> None:
        note()
        scale(x, y, 3).launch(grid=1, block=32)

    def note() -> None:
        traces.append(1)
        time.sleep(0.05)

    results: list[Any] = []

    def work() -> None:
        x, y = arrays()
        f(x, y)
        results.append((y == 3 * x).all())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [True] * 4 and len(f.kinds()) == 1 and f.cache_info().misses == 1


def test_host_functions_without_launches() -> None:
    @cute.jit
    def f(n: cute.Int32, m: cute.Constexpr[int]) -> Any:
        return {"sum": n + m, "static": (m, "text"), "half": [n * 0.5]}

    assert f(5, 2) == {"sum": 7, "static": (2, "text"), "half": [2.5]}
    assert f(n=6, m=2)["sum"] == 8

    @cute.jit
    def g(x: cute.Tensor) -> Any:
        x[1] = x[0] + 1
        return cute.size(x), x[1]

    x = np.array([4, 0, 0], np.int32)
    assert g(x) == (3, 5) and list(x) == [4, 5, 0]

    @cute.jit
    def both(x: cute.Tensor, n: cute.Int32) -> Any:
        scale(x, x, 2).launch(grid=1, block=1)
        return n

    with pytest.raises(cute.CompileError, match="F117: a host function that launches kernels cannot return a run-time"):
        both(x, 3)


def test_compile_ahead_of_time(tmp_path: Path) -> None:
    x, y = arrays()
    k = cute.compile[cute.OptLevel(2), cute.KeepPTX](run, x, y, chip="sm_80")
    assert k.options.opt_level == 2 and ".target sm_80" in k.ptx
    assert "gpu.func @scale" in k.mlir() and '"llvm.func"' in k.mlir("base")
    assert k.key == cute.compile(run, x, y, chip="sm_80", options="--opt-level 2").key
    assert k.key != cute.compile(run, x, y, chip="sm_80").key
    k(x, y)
    assert (y == FACTOR * x).all()
    loaded = cute.load(k.save(tmp_path / "saved"))
    assert loaded.name == "run" and len(loaded.params) == 2
    with pytest.raises(cute.KernelTypeError, match=r"F115: cute.compile: the kernel 'scale' needs grid and block"):
        cute.compile(scale, x, y, 1)
    with pytest.raises(cute.CompileError, match=r"F102: cute.compile takes a function decorated with @cute.jit"):
        cute.compile(len, x)
    with pytest.raises(cute.CompileError, match=r"hint: pass the @cute.jit function, not the compiled one"):
        cute.compile(k, x, y)
    with pytest.raises(cute.CompileError, match="F103: options: unknown option '--fast'"):
        cute.compile(run, x, y, options="--fast")
    many = cute.precompile([(run, (x, y)), (Scaler(2), (x, y))], workers=2)
    y[:] = 0
    many[1](x, y)
    assert (y == 2 * x).all()
    assert cute.compile_async(run, x, y).result() is many[0]
    by_type = cute.compile(only_number, cute.Int32)
    assert by_type(4) == 5


@cute.jit
def only_number(n: cute.Int32) -> Any:
    return n + 1


def test_the_target() -> None:
    seen: list[str] = []

    @cute.jit
    def f(n: cute.Constexpr[int]) -> None:
        seen.append(cute.current_target())

    with cute.target("sm_80"):
        assert cute.current_target() == "sm_80"
        f(1)
    f(1)
    with cute.target("sm_80"):
        f(1)
    assert seen[0] == "sm_80" and len(seen) == 2 and len(f.kinds()) == 2
    with pytest.raises(Exception, match="sm_7x"), cute.target("sm_7x"):
        pass


def test_after_an_error_the_next_call_compiles() -> None:
    x, y = arrays()

    @cute.jit
    def f(x: Any, y: Any, wrong: cute.Constexpr[bool]) -> None:
        scale(x, y, "text" if wrong else 2).launch(grid=1, block=32)

    for _ in range(2):
        with pytest.raises(Exception):  # noqa: B017
            f(x, y, True)
        f(x, y, False)
        assert (y == 2 * x).all()


def test_explain() -> None:
    x, y = arrays()
    text = cute.explain(scale, x, y, cute.Float32(3), grid=1, block=32)
    lines = text.splitlines()
    assert lines[0].startswith("scale for sm_")
    assert lines[1] == '  x                passed   !cute.memref<f32, gmem, align<16>, "(?):(1)">'
    assert __file__ in lines
    at = next(i for i, line in enumerate(lines) if line.endswith("y[i] = x[i] * by"))
    assert "arith.mulf" in lines[at + 1]


def test_invalid_launches_are_rejected() -> None:
    x, y = arrays()

    def launched(**how: Any) -> Any:
        @cute.jit
        def f(x: Any, y: Any) -> None:
            scale(x, y, 1).launch(**how)

        return f

    for how, text in (
        (
            {"grid": 1, "block": 32, "stream": 5},
            "F118: launch: stream must be the stream of the host function's call, got 5",
        ),
        ({"grid": 1.5, "block": 32}, "F115: grid takes integers, got 1.5"),
        ({"grid": 1, "block": (1, 2, 3, 4)}, "F115: block takes one to three integers, got 4"),
        ({"grid": 1}, "F115: the launch has no block"),
    ):
        with pytest.raises(cute.CompileError, match=text):
            launched(**how)(x, y)

    @cute.kernel
    def nested(x: cute.Tensor) -> None:
        scale(x, x, 1).launch(grid=1, block=1)

    with pytest.raises(cute.CompileError, match="F114: the kernel 'scale' is called in a kernel; only host functions"):
        nested(x).launch(grid=1, block=1)

    @cute.jit
    def twice(x: Any, y: Any) -> None:
        one = scale(x, y, 1)
        one.launch(grid=1, block=1)
        one.launch(grid=1, block=1)

    with pytest.raises(cute.CompileError, match="F119: the kernel 'scale' is launched twice"):
        twice(x, y)

    @cute.kernel(max_threads=64)
    def small(x: cute.Tensor) -> None:
        x[0] = 1

    with pytest.raises(cute.CompileError, match="F115: the kernel 'small' has max_threads=64, but"):
        small(x).launch(grid=1, block=128)
    with pytest.raises(TypeError, match=r"@cute.kernel has no option 'threads'; options: max_threads"):
        cute.kernel(threads=3)  # type: ignore[call-overload]


def test_shared_memory_of_a_launch() -> None:
    @cute.kernel
    def k(x: cute.Tensor) -> None:
        s = cute.smem_tensor(cute.Float32, (64,))
        s[cute.arch.thread_idx()[0]] = x[0]

    def launched(smem: Any) -> Any:
        @cute.jit
        def f(x: Any) -> None:
            k(x).launch(grid=1, block=32, smem=smem)

        return f

    x, _ = arrays()
    text = "the kernel 'k' allocates 256 bytes of shared memory but is launched with smem=255; it gets 256 bytes"
    with pytest.warns(RuntimeWarning, match=text):
        launched(255)(x)
    for smem, said in ((256, ""), (300, " dynamic_shared_memory_size %c44_i32")):
        f = launched(smem)
        f(x)
        line = next(t for t in f.kinds()[0].mlir().splitlines() if "gpu.launch_func" in t)
        assert ("dynamic_shared" in line) == bool(said) and said in line


def test_floats_in_a_host_function() -> None:
    x, y = arrays()

    @cute.jit
    def f(x: Any, y: Any, a: cute.Float32, n: cute.Int32) -> None:
        scale(x, y, a * n + 0.5).launch(grid=1, block=32)

    f(x, y, 1.5, 3)
    assert (y == 5 * x).all()
    f(x, y, 0.1, 7)  # Each step rounds to float32.
    assert (y == x * (np.float32(0.1) * np.float32(7) + np.float32(0.5))).all()


def test_decorators_do_not_read_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """The source and the signature are read at the first call, not by the decorator."""

    def body(x: Any) -> None: ...

    def looked(*_: Any, **__: Any) -> Any:
        raise AssertionError("decorating looked at the function")

    monkeypatch.setattr(linecache, "getlines", looked)
    monkeypatch.setattr(inspect, "signature", looked)
    assert cute.jit(body).__wrapped__ is body and cute.kernel(body).__wrapped__ is body


def test_asserts(monkeypatch: pytest.MonkeyPatch) -> None:
    @cute.kernel
    def k(x: cute.Tensor) -> None:
        i = cute.arch.thread_idx()[0]
        assert x[i] < 3, "too large"
        x[i] = x[i] + 1

    @cute.jit
    def f(x: Any) -> None:
        k(x).launch(grid=1, block=4)

    x = np.zeros(4, np.float32)
    for _ in range(3):
        f(x)
    with pytest.raises(Exception, match="too large"):
        f(x)
    monkeypatch.setenv("CUTE_DEVICE", "gpu")
    plain = cute.trace(f, x)
    assert plain.mlir().count("cf.assert") == 1  # the user's
    assert "cf.assert" not in cute.trace[cute.EnableAssertions(False)](f, x).mlir()
    assert "cf.assert" not in cute.trace(f, x, options="--enable-assertions=false").mlir()
    assert cute.trace[cute.EnableAssertions](f, x).mlir().count("cf.assert") >= 2  # One assert is the user's.
    monkeypatch.setenv("CUTE_ASSERT", "0")
    assert "cf.assert" not in cute.trace(f, x).mlir()
    monkeypatch.setenv("CUTE_ASSERT", "1")
    assert cute.trace(f, x).mlir().count("cf.assert") >= 2
