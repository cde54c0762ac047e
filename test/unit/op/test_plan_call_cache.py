"""Cached calls of plans and row functions are launched after one lookup, and other calls miss the cache."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import pytest

torch = pytest.importorskip("torch")

from cute_dialect import op  # noqa: E402
from cute_dialect.op.execute import array_call, gemm, launcher, recording  # noqa: E402
from cute_dialect.op.execute.arguments import Arguments  # noqa: E402
from cute_dialect.op.execute.array_call import RowCall  # noqa: E402
from cute_dialect.op.execute.call_cache import KnownCalls  # noqa: E402
from cute_dialect.op.execute.launcher import Launcher  # noqa: E402
from cute_dialect.op.plans import attention, grouped  # noqa: E402
from cute_dialect.op.plans import base as known  # noqa: E402
from cute_dialect.op.plans.grouped import CutArguments  # noqa: E402
from cute_dialect.runtime.arrays import view_of  # noqa: E402

A, B, C = (torch.zeros(16, 16, dtype=torch.float16) for _ in range(3))
BIAS = torch.zeros(16, dtype=torch.float16)


class Kernel:
    """A fake kernel that records the addresses of its launches."""

    alignment = 16

    def __init__(self) -> None:
        self.launched: list[tuple[int, ...]] = []

    def __call__(self, *args: Any, **_: Any) -> None:
        pass

    def by_address(self, *args: Any) -> Any:
        return lambda *x: self.launched.append(x)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """Let plans accept CPU tensors as GPU tensors, and launch a recording kernel."""
    made = Kernel()

    def launch(self: Arguments) -> None:
        self.on_cpu, self.options = False, {}
        self._launch(self.operands, 7)

    monkeypatch.setattr(
        "cute_dialect.op.pycutlass.operation.launcher_of", lambda v, cpu: Launcher(cast(Any, made), v.recipe())
    )
    monkeypatch.setattr(Arguments, "launch", launch)
    monkeypatch.setattr(Arguments, "_waits_for", lambda *_: None)
    monkeypatch.setattr(known, "wait_for", lambda *_: None)
    monkeypatch.setattr(Arguments, "sync", lambda self: None)
    for module in (known, recording):
        monkeypatch.setattr(module, "current_stream_of_torch", lambda: lambda device: 7)
    return made


def planned() -> op.Gemm:
    """Return a plan with a fake kernel."""
    plan = op.Gemm(element="f16", layout="row")
    half = op.MathInstruction([64, 128, 16], "f16", "f16", "f32")
    plan.tile_description = op.TileDescription([128, 128, 64], 4, None, half)
    return plan


def first(plan: op.Gemm, *arrays: Any, bias: Any = None, **numbers: float) -> None:
    """Run a plan for the first time, so that it records the call."""
    a, b, c, d = (*arrays, None, None)[:4]
    factors = numbers.get("alpha", plan.alpha), numbers.get("beta", plan.beta)

    def compute() -> Arguments:
        found = plan.arguments(*arrays, bias=bias, device="cpu", **numbers)  # type: ignore[arg-type]
        found.launch()
        return found

    plan._cached_run((), factors, c, (a, b, d, bias), compute, pytest.fail)


@pytest.mark.slow
def test_plans(kernel: Kernel) -> None:
    plan = planned()
    first(plan, A, B)
    a, b, d = A.clone(), B.clone(), C.clone()
    found = plan.run(a, b)
    assert found.D.shape == (16, 16) and found.D.dtype == torch.float16
    assert kernel.launched.pop() == (7, a.data_ptr(), b.data_ptr(), found.D.data_ptr())
    first(plan, A, B, None, C)
    assert plan.run(a, b, None, d).D is d and kernel.launched.pop()[1:] == tuple(t.data_ptr() for t in (a, b, d))
    first(plan, A, B, C, bias=BIAS, beta=0.5)
    found = plan.run(a, b, d, bias=BIAS, beta=0.5)
    want = (7, *[t.data_ptr() for t in (a, b, found.D, d, BIAS)], 0)
    assert kernel.launched.pop() == want and len(plan._known) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "more"),
    [
        ((A[:8], B), {}), ((A, B, C), {"beta": 2.0}), ((A, B), {"alpha": 0.5}), ((A, B), {"alpha": -1.0}),
        ((A.bfloat16(), B.bfloat16()), {}), ((A, B, None, A), {}), ((A, B), {"bias": BIAS}), ((A.t(), B), {}),
        ((A, B), {"split_k": 1}), ((A, B), {"stream": 3}), ((A.numpy(), B.numpy()), {}),
    ],
)  # fmt: skip
def test_other_calls_are_not_replayed(kernel: Kernel, given: tuple[Any, ...], more: dict[str, Any]) -> None:
    """Calls that miss the cache are checked again, and those checks refuse CPU tensors."""
    plan = planned()
    first(plan, A, B)
    first(plan, A, B, None, C)
    with suppress(op.OpError):
        plan.run(*given, **more)
    recorded = {id(call.runs) for call in plan._known._found.values()}  # A repeated tensor adds a key, no recording.
    assert kernel.launched == [] and len(recorded) == 2


@pytest.mark.slow
def test_later_changes_of_a_plan_take_effect(kernel: Kernel) -> None:
    plan = planned()
    for name, value in (("activation", "relu"), ("tile_description", None), ("swizzling_functor", op.IdentitySwizzle2)):
        first(plan, A, B)
        assert len(plan._known) == 1
        setattr(plan, name, value)
        assert len(plan._known) == 0
    first(plan, A, B)
    plan.alpha = 2.0
    with pytest.raises(op.DeviceError):
        plan.run(A, B)
    assert kernel.launched == []


def test_other_arguments_are_not_replayed(monkeypatch: pytest.MonkeyPatch, kernel: Kernel) -> None:
    plan = planned()
    first(plan, A, B)
    found = plan.run(A, B)
    usual, asked = plan.arguments, list[Any]()
    monkeypatch.setattr(plan, "arguments", lambda *x, **more: asked.append(x) or usual(*x, **more, device="cpu"))
    # ``launched`` is read without the arguments, which are created on demand.
    assert found.launched == [] and asked == []
    assert found.problem_size == (16, 16, 16) and asked == [(A, B, None, found.D, 1.0, 0.0)]
    assert found.operands.d.pointer == found.D.data_ptr() and len(asked) == 1
    assert not hasattr(found, "nothing_of_the_kind")


@pytest.mark.slow
@pytest.mark.parametrize(("layout", "columns"), [("row", 16), ("column", 16), ("row", 15)])
def test_plans_of_several_launches(
    monkeypatch: pytest.MonkeyPatch, kernel: Kernel, layout: str, columns: int
) -> None:  # fmt: skip
    """Each call allocates its workspaces for f32 parts and split-K slices."""

    def memory(like: Any, count: int, element: str, zero: bool = False) -> Any:
        return view_of(torch.empty(count))

    monkeypatch.setattr(gemm, "new_memory", memory)
    plan = op.Gemm(element="f32", layout_A="row", layout_B="row", layout_C=layout)
    plan.math_operation = "multiply_add_fast_f32"
    a, b = torch.zeros(16, 8), torch.zeros(8, columns)
    first(plan, a, b, beta=0.0)
    x, y = a.clone(), b.clone()
    found = plan.run(x, y)
    split_a, split_b, product, *written = kernel.launched
    assert split_a[:2] == (7, x.data_ptr()) and split_b[:2] == (7, y.data_ptr()) and split_a[2] != split_b[2]
    parts = (split_a[2], split_b[2]) if layout == "row" else (split_b[2], split_a[2])
    assert product[:3] == (7, *parts) and len(plan._known) == 1
    if columns == 16:
        assert product[3:] == (found.D.data_ptr(),) and written == []
    else:
        assert product[3] != found.D.data_ptr() and written == [(7, product[3], found.D.data_ptr())]
    del kernel.launched[:]
    first(plan, a, b, None, found.D)
    assert plan.run(x, y, None, found.D).D is found.D and kernel.launched[-1][-1] == found.D.data_ptr()


X = torch.zeros(4, 16, dtype=torch.float16)


def test_operands_that_share_a_tensor(kernel: Kernel) -> None:
    """A call whose tensors overlap is replayed only if they overlap in the same way."""
    calls = KnownCalls()

    def compute() -> Any:
        result = RowCall("rms_norm", {"x": X, "residual": X}, "cpu").result(X.shape)
        launcher.launched(kernel, *map(view_of, (X, X, result)))
        return result

    calls.recorded("how", (X, X), compute)
    y, z = X.clone(), X.clone()
    assert calls.again("how", y, y) is not None and kernel.launched.pop()[1:3] == (y.data_ptr(), y.data_ptr())
    assert calls.again("how", y, z) is None and kernel.launched == []


class Module:
    """A fake compiled kernel library."""

    def __init__(self, kernel: Kernel) -> None:
        self.found = kernel

    def kernel(self, host: str) -> Kernel:
        return self.found


F8 = torch.float8_e4m3fn
QUERIES = [torch.zeros(1, 2, 64, 64, dtype=torch.bfloat16) for _ in range(3)]


def _scaled() -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    plan = op.ScaledGemm(element="f8E4M3FN", recipe="row", element_D="bf16")
    a, b = torch.zeros(16, 128, dtype=F8), torch.zeros(16, 128, dtype=F8).t()
    return plan, (a, b, torch.ones(16, 1), torch.ones(1, 16)), {}


def _blocks() -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    plan = op.ScaledGemm(element="f8E4M3FN", recipe="block", element_D="bf16")
    a, b = torch.zeros(16, 128, dtype=F8), torch.zeros(128, 128, dtype=F8).t()
    return plan, (a, b, torch.ones(16, 1), torch.ones(1, 1)), {"bias": torch.zeros(128)}


def _grouped() -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    plan = op.GroupedGemm(element="f16", layout="row")
    return plan, (A, torch.zeros(2, 16, 16, dtype=torch.float16)), {"offs": torch.tensor([8, 16], dtype=torch.int32)}


def _convolution() -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    plan = op.Conv2d(element="f16")
    x, f = torch.zeros(1, 8, 8, 64, dtype=torch.float16), torch.zeros(64, 3, 3, 64, dtype=torch.float16)
    return plan, (x, f), {"padding": 1, "bias": torch.zeros(64)}


def _attention() -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    return op.Attention(element="bf16", head_size=64, causal=True, lse=True), tuple(QUERIES), {}


@pytest.mark.sample("_scaled", "_grouped")
@pytest.mark.parametrize("make", [_scaled, _blocks, _grouped, _convolution, _attention])
def test_each_plan_replays_its_runs(
    monkeypatch: pytest.MonkeyPatch, kernel: Kernel, make: Callable[[], tuple[Any, tuple[Any, ...], dict[str, Any]]]
) -> None:
    """The second run of a plan with other tensors makes the launches of the first at their addresses."""
    monkeypatch.setenv("CUTE_DEVICE", "cpu")
    usual = CutArguments.launch

    def launch(self: CutArguments) -> None:
        self.options = {}
        with monkeypatch.context() as on_gpu:
            on_gpu.delenv("CUTE_DEVICE")
            usual(self)

    monkeypatch.setattr(CutArguments, "launch", launch)
    monkeypatch.setattr(grouped, "kernel_of", lambda *_: kernel)
    monkeypatch.setattr("cute_dialect.op.execute.grouped._on_host", lambda *_: [8, 16])  # reads offsets on the CPU only
    monkeypatch.setattr(array_call, "options_of", lambda *_: {})
    monkeypatch.setattr(attention._Planned, "module", lambda *_: Module(kernel))
    monkeypatch.setattr(attention, "wait_for", lambda *_: None)
    monkeypatch.setattr(attention, "current_stream_of_torch", lambda: lambda device: 7)
    plan, tensors, more = make()
    first = plan.run(*tensors, sync=False, **more)
    assert len(plan._known) == 1 and kernel.launched == []
    others = [t.clone(memory_format=torch.preserve_format) for t in tensors]
    found = plan.run(*others, sync=False, **more)
    (addresses,) = kernel.launched
    results = [found.out, found.lse] if isinstance(plan, op.Attention) else [found.D]
    assert isinstance(found, type(first)) and plan.ir()
    assert {x.data_ptr() for x in (*others, *more.values(), *results) if hasattr(x, "data_ptr")} <= {*addresses}
    if not isinstance(plan, op.Attention):
        assert found.D.data_ptr() != first.D.data_ptr() and found.problem == first.problem
        plan.activation = "relu"
        assert len(plan._known) == 0
