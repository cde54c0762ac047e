"""Kernel arguments of every kind: dynamic parts are passed to the kernel, static parts select the specialization."""

from __future__ import annotations

import dataclasses
import enum
import types
from typing import Any, NamedTuple

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.lang.calls.decorators import KernelFunction
from cute_dialect.runtime.launch_plan import DtypeError, RangeError


def tid() -> Any:
    return cute.arch.thread_idx()[0]


@cute.kernel
def scale(x: cute.Tensor, y: cute.Tensor, factor: Any) -> None:
    y[tid()] = x[tid()] * factor


@cute.kernel
def combined(x: cute.Tensor, y: cute.Tensor, a: Any, b: Any, c: Any) -> None:
    y[tid()] = x[tid()] * (a * b + c)


def arrays(n: int = 32, dtype: Any = np.float32) -> tuple[Any, Any]:
    return np.arange(n).astype(dtype), np.zeros(n, dtype)


def launch(x: Any, y: Any, factor: Any) -> None:
    scale(x, y, factor).launch(grid=1, block=32)


def test_numbers() -> None:
    @cute.jit
    def run(x: Any, y: Any, a: cute.Float32, b: int, c: float = 1.0) -> None:
        combined(x, y, a, b, c).launch(grid=1, block=32)

    x, y = arrays()
    for a, b, c in ((2, 3, 0.5), (np.float32(1.5), np.int64(2), 0.25), (np.array(4.0), 1, cute.Float32(2))):
        run(x, y, a, b, c, device="cpu")
        assert (y == x * np.float32(float(a) * int(b) + (c.value if isinstance(c, cute.Float32) else c))).all()
    assert run.cache_info().misses == 1
    run(x, y, 1, 1, device="cpu")  # The default is a constant.
    assert (y == 2 * x).all()
    assert run.cache_info().misses == 2
    with pytest.raises(cute.KernelTypeError, match=r"F123: argument 'a' is Float32 and needs a number, got str 'no'"):
        run(x, y, "no", 1, device="cpu")


def test_unsigned_and_wide_numbers() -> None:
    @cute.kernel
    def keep(y: cute.Tensor, a: Any, b: Any) -> None:
        y[0] = cute.Int64(a)
        y[1] = cute.Int64(b)

    @cute.jit
    def run(y: Any, a: cute.Uint32, b: Any) -> None:
        keep(y, a, b).launch(grid=1, block=1)

    y = np.zeros(2, np.int64)
    run(y, 4_000_000_000, 1 << 40, device="cpu")
    assert list(y) == [4_000_000_000, 1 << 40]
    with pytest.raises(RangeError, match="argument a: -1 is out of range for Uint32"):
        run(y, -1, 1 << 40, device="cpu")
    with pytest.raises(DtypeError, match=r"argument a is Uint32 and needs an integer, got 1.5"):
        run(y, 1.5, 1 << 40, device="cpu")


class Mode(enum.Enum):
    TWICE = 2
    THRICE = 3


@dataclasses.dataclass(frozen=True)
class Config:
    factor: int
    names: tuple[str, ...] = ()


@dataclasses.dataclass
class Pair:
    x: Any
    y: Any
    factor: cute.Float32


class Named(NamedTuple):
    x: Any
    factor: Any


def test_static_values_are_constants() -> None:
    @cute.jit
    def run(x: Any, y: Any, n: cute.Constexpr[int], mode: Any, config: Any, f: Any) -> None:
        assert type(n) is int
        launch(x, y, f(n * mode.value * config.factor))

    x, y = arrays()
    run(x, y, 3, Mode.TWICE, Config(5), lambda v: v + 1, device="cpu")
    assert (y == 31 * x).all()
    run(x, y, 3, Mode.TWICE, Config(5, ()), lambda v: v + 2, device="cpu")
    assert (y == 32 * x).all()
    for _ in range(3):
        run(x, y, 4, Mode.THRICE, Config(1), abs, device="cpu")
    assert (y == 12 * x).all()
    assert run.cache_info()[:3] == (2, 3, 3)
    assert len(run.kinds()) == 3
    run.cache_clear()
    assert run.cache_info()[:3] == (0, 0, 0)


def test_containers() -> None:
    @cute.jit
    def run(many: Any) -> None:
        if isinstance(many, dict):
            launch(many["x"], many["y"], many["factor"])
        elif isinstance(many, Pair):
            launch(many.x, many.y, many.factor)
        elif isinstance(many, types.SimpleNamespace):
            launch(many.pair.x, many.y[0], many.pair.factor)
        else:
            launch(many[0], many[1], many[2])

    for make in (
        lambda x, y: [x, y, 3],
        lambda x, y: (x, y, 3),
        lambda x, y: {"x": x, "y": y, "factor": 3.0},
        lambda x, y: Pair(x, y, 3),  # type: ignore[arg-type]
        lambda x, y: types.SimpleNamespace(pair=Named(x, 3), y=[y]),
    ):
        x, y = arrays()
        run(make(x, y), device="cpu")
        assert (y == 3 * x).all()
    before = run.cache_info().misses
    x, y = arrays()
    run([x, y, 7], device="cpu")
    assert (y == 7 * x).all()
    assert run.cache_info().misses == before


class Weights:
    """A class with its own methods for decomposition into kernel arguments."""

    def __init__(self, data: Any, factor: int):
        self.data = data
        self.factor = factor

    def __cute_flatten__(self) -> tuple[list[Any], int]:
        return [self.data], self.factor

    @classmethod
    def __cute_unflatten__(cls, static: int, leaves: list[Any]) -> Weights:
        return cls(leaves[0], static)


def test_classes_with_their_own_leaves() -> None:
    @cute.jit
    def run(w: Any, y: Any) -> None:
        launch(w.data, y, w.factor)

    x, y = arrays()
    run(Weights(x, 2), y, device="cpu")
    assert (y == 2 * x).all()
    run(Weights(x, 5), y, device="cpu")
    assert (y == 5 * x).all()
    assert run.cache_info().misses == 2


def test_optional_and_star_arguments() -> None:
    @cute.jit
    def run(x: cute.Tensor, y: Any, bias: cute.Tensor | None = None, *more: Any, **named: Any) -> None:
        launch(x, y, sum(more, 1) + named.get("extra", 0) + (0 if bias is None else 100))

    x, y = arrays()
    run(x, y, device="cpu")
    assert (y == x).all()
    run(x, y, None, 2, 3, extra=4, device="cpu")
    assert (y == 10 * x).all()
    run(x, y, x, device="cpu")
    assert (y == 101 * x).all()


def test_trees_of_integers() -> None:
    seen: list[Any] = []

    @cute.jit
    def run(x: Any, y: Any, shape: cute.Shape) -> None:
        seen.append(shape)
        launch(x, y, shape[0] * shape[1][1])

    x, y = arrays()
    run(x, y, (3, (4, cute.Int32(5))), device="cpu")
    assert (y == 15 * x).all()
    assert seen[0][0] == 3 and type(seen[0][0]) is int and isinstance(seen[0][1][1], cute.Int32)
    run(x, y, (3, (4, cute.Int32(6))), device="cpu")
    assert (y == 18 * x).all()
    assert len(seen) == 1


def test_equal_arguments_share_a_parameter_and_constants_have_none() -> None:
    @cute.kernel
    def k(a: Any, b: Any, n: Any, m: Any, text: Any) -> None:
        b[tid()] = a[tid()] + n + m

    @cute.jit
    def run(x: Any, n: cute.Int32) -> None:
        k(x, x, n, 1, "text").launch(grid=1, block=32)

    x, _ = arrays(dtype=np.int32)
    run(x, 2, device="cpu")
    assert (x == np.arange(32) + 3).all()
    assert 'gpu.func @k(%a: !cute.memref<i32, gmem, align<16>, "(?):(1)">, %n: i32)' in run.kinds()[0].mlir()


def test_pointers() -> None:
    @cute.jit
    def run(p: cute.Pointer[cute.Float32], y: Any) -> None:
        assert p.dtype is cute.Float32
        launch(y, y, 2)

    x, y = arrays()
    y[:] = x
    run(x, y, device="cpu")
    assert (y == 2 * x).all()
    run(cute.runtime.make_ptr(cute.Float32, x, assumed_align=16), y, device="cpu")
    assert "align<16>" in repr(run.kinds()[1].specs["p"].key)
    with pytest.raises(cute.KernelTypeError, match="F128: argument 'p' must be a pointer, got str 'a'"):
        run("a", y, device="cpu")


def test_streams_do_not_select_the_specialization() -> None:
    @cute.jit
    def run(x: Any, y: Any, stream: cute.Stream) -> None:
        scale(x, y, 2).launch(grid=1, block=32, stream=stream)

    x, y = arrays()
    run(x, y, 0, device="cpu")
    run(x, y, cute.Stream(7), device="cpu")
    assert (y == 2 * x).all()
    assert run.cache_info().misses == 1


def test_arrays_as_constants_are_rejected() -> None:
    class Holder:
        def __init__(self) -> None:
            self.weight = np.zeros(3)

    @cute.jit
    def run(x: Any, held: Any) -> None:
        launch(x, x, 1)

    with pytest.raises(cute.KernelTypeError) as caught:
        run(np.zeros(32, np.float32), Holder(), device="cpu")
    assert caught.value.message == ("argument 'held.weight' is an array, which cannot be a compile-time constant")
    assert caught.value.code == "F121"
    assert caught.value.hint == "pass the array as a separate argument without Constexpr"


def test_invalid_arguments_are_rejected() -> None:
    @cute.jit
    def run(x: Any, y: Any) -> None:
        launch(x, y, 1)

    with pytest.raises(cute.KernelTypeError, match="F116: 'run': missing a required argument: 'y'"):
        run(np.zeros(32, np.float32), device="cpu")
    with pytest.raises(cute.KernelTypeError, match="F122: argument 'x': numpy arrays of complex64 are not supported"):
        run(np.zeros(32, np.complex64), 1, device="cpu")

    @cute.jit
    def wrong(x: Any) -> None:
        scale(x).launch(grid=1, block=1)

    with pytest.raises(cute.KernelTypeError, match="F116: the kernel 'scale': missing a required argument: 'y'"):
        wrong(np.zeros(32, np.float32), device="cpu")
    run(*arrays(), device="cpu")


@pytest.mark.parametrize(
    "value,kind",
    [
        (0.1, cute.Float32), (np.float64(0.1), cute.Float32), (np.float16(0.1), cute.Float32),
        (np.int8(3), cute.Int32), (np.int64(3), cute.Int32), (np.int64(2**40), cute.Int64),
        (cute.Float64(0.1), cute.Float64),
    ],
)  # fmt: skip
def test_numpy_scalars_are_passed_as_python_numbers(value: Any, kind: type) -> None:
    seen: list[Any] = []

    @cute.jit
    def run(n: Any) -> None:
        seen.append(type(n))

    @cute.jit
    def wide(n: cute.Float64) -> None:
        seen.append(type(n))

    cute.trace(run, value)
    cute.trace(wide, value)
    assert seen == [kind, cute.Float64]


def test_compile_needs_arguments_without_a_complete_annotation() -> None:
    def traced(annotation: object) -> Any:
        def run(x: Any, y: Any) -> None: ...

        run.__annotations__ = {"y": annotation}
        return cute.trace(cute.jit(run), np.zeros(32, np.float32))

    for annotation in (cute.Int32, cute.Tensor[cute.Float32, "(?):(1)"]):
        assert traced(annotation).specs["y"] is not None
    for annotation in (cute.Tensor, cute.Tensor[cute.Float32], cute.Pointer, cute.Constexpr, int, Any, None):
        with pytest.raises(cute.KernelTypeError, match="F116: 'run': missing a required argument: 'y'"):
            traced(annotation)


def test_a_kernel_has_the_types_of_its_annotations() -> None:
    seen: list[Any] = []

    @cute.kernel
    def k(x: cute.Tensor, n: cute.Float32, m: cute.Int32) -> None:
        seen.extend((n, m))
        x[0] = n

    @cute.jit
    def run(x: Any, n: cute.Int32) -> None:
        k(x, n, 3).launch(grid=1, block=1)

    x, _ = arrays()
    run(x, 5, device="cpu")
    assert x[0] == 5
    assert type(seen[0]) is cute.Float32 and type(seen[1]) is cute.Int32 and seen[1].is_static
    assert isinstance(k, KernelFunction)


def test_compiled_for_the_cpu() -> None:
    """``device=`` of ``cute.compile`` selects the device of later calls."""

    @cute.kernel
    def twice(x: cute.Tensor):
        i = cute.arch.thread_idx().x
        x[i] = x[i] * 2

    @cute.jit
    def run(x: cute.Tensor):
        twice(x).launch(grid=1, block=8)

    x = np.arange(8, dtype=np.float32)
    cute.compile(run, x, device="cpu")(x)
    assert x.tolist() == [0, 2, 4, 6, 8, 10, 12, 14]


def test_a_function_that_only_computes_does_not_run() -> None:
    """The function is traced but not run, so its arrays may be on a GPU."""

    @cute.jit
    def divided(x: cute.Tensor):
        print(cute.zipped_divide(x, (1, 32)))

    x = np.zeros((3, 64), np.float32)
    assert cute.compile(divided, x, device="cpu").outcome.outputs.empty
