"""Cached convolutions are launched after one lookup, and calls may select a kernel. Nothing is launched: the tests
record the launches instead.
"""

# pyright: basic

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from cute_dialect import op  # noqa: E402
from cute_dialect.op.arrays import library as arrays  # noqa: E402
from cute_dialect.op.conv import compute, dispatch  # noqa: E402
from cute_dialect.op.execute import gemm as products  # noqa: E402
from cute_dialect.op.execute import recording  # noqa: E402
from cute_dialect.op.execute.call_cache import KnownCalls  # noqa: E402
from cute_dialect.op.execute.launcher import Launch, Launcher  # noqa: E402
from cute_dialect.op.functions import conv as functions  # noqa: E402
from cute_dialect.op.select import gemm_dispatch  # noqa: E402

GPU = ("NVIDIA H200", 132)


class Told:
    """A kernel that records its name instead of launching."""

    def __init__(self, name: str, launched: list[Any]):
        self.name, self.launched = name, launched

    def __call__(self, *given: Any, **_: Any) -> None:
        self.launched.append(self.name)

    def repeated(self, *given: Any) -> Launch:
        return Launch(lambda *x: self.launched.append(x), given, 15)


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record the names of launched kernels, and the replayed launches on stream 7."""
    found: list[Any] = []
    monkeypatch.setattr(arrays, "_check_place", lambda *_: None)
    monkeypatch.setattr(compute, "gpu_of", lambda _: GPU)
    monkeypatch.setattr(products, "target_of", lambda _: gemm_dispatch.Target(*GPU))
    monkeypatch.setattr(recording, "current_stream_of_torch", lambda: lambda device: 7)
    monkeypatch.setattr(dispatch, "few_channels", lambda *_: None)
    monkeypatch.setattr(compute, "kernel_of", lambda config, cpu=False: Told(config.name, found))
    monkeypatch.setattr(products, "launcher_of", lambda v, cpu=False: Launcher(Told(v.name, found), v.recipe()))
    monkeypatch.setattr(functions, "KNOWN", KnownCalls())
    return found


def image(*shape: int) -> Any:
    return torch.zeros(shape, dtype=torch.float16).to(memory_format=torch.channels_last)


X, F, Y = image(2, 64, 8, 8), image(32, 64, 3, 3), image(2, 32, 8, 8)
BIAS = torch.zeros(32, dtype=torch.float16)


def addresses(*tensors: Any) -> tuple[int, ...]:
    return (7, *[t.data_ptr() for t in tensors])


def test_cached_calls_are_replayed(launched: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kind of convolution is replayed, with epilogues and with ``out``, and so are GEMMs of 1x1 filters."""
    like, taps, grad, one = X.clone(), F.clone(), Y.clone(), image(32, 64, 1, 1)
    calls: list[tuple[Any, Any]] = [
        (lambda x, f, y: op.conv2d(x, f, None, 1, 1), lambda d: (like, taps, d)),
        (
            lambda x, f, y: op.conv2d(x, f, BIAS, 1, 1, c=y, activation="relu", alpha=2.0),
            lambda d: (like, taps, d, grad, BIAS),
        ),
        (lambda x, f, y: op.conv2d(x, f, None, 1, (1, 1), out=y), lambda d: (like, taps, grad)),
        (lambda x, f, y: op.conv2d_input(x.shape, f, y, 1, 1), lambda d: (grad, taps, d)),
        (lambda x, f, y: op.conv2d_weight(x, f.shape, y, 1, 1), lambda d: (like, grad, d)),
        (lambda x, f, y: op.conv2d(x, one), lambda d: (one, like, d)),  # The kernel computes the transposed GEMM.
        (lambda x, f, y: op.conv2d_weight(x, one.shape, y), lambda d: (like, grad, d)),
    ]
    with torch.no_grad():
        for call, _ in calls:
            call(X, F, Y)
        assert all(isinstance(x, str) for x in launched) and len(launched) == len(calls)
        monkeypatch.setattr(functions, "convolution", None)  # fails if a call is not replayed
        for call, of in calls:
            d = call(like, taps, grad)
            assert launched.pop()[: len(of(d)) + 1] == addresses(*of(d))
            assert d.is_contiguous(memory_format=torch.channels_last)


def test_other_calls_are_not_replayed(launched: list[Any]) -> None:
    """Calls with another window, type, layout, gradients or overlapping memory miss the cache."""
    op.conv2d(X, F, None, 1, 1)
    others: list[Any] = [
        lambda: op.conv2d(X, F, None, 1, 2), lambda: op.conv2d(X, F, None, 2, 1),
        lambda: op.conv2d(X, F, None, 1, [1, 1]),
        lambda: op.conv2d(X.bfloat16(), F.bfloat16(), None, 1, 1), lambda: op.conv2d(X[:1], F, None, 1, 1),
        lambda: op.conv2d(X, F, None, 1, 1, alpha=0.5), lambda: op.conv2d(X, F, None, 1, 1, dtype="f32"),
        lambda: op.conv2d(X, F, None, 1, 1, split_k=2), lambda: op.conv2d(X, F, None, 1, 1, mode="convolution"),
    ]  # fmt: skip
    del launched[:]
    for call in others:
        call()
    assert len(launched) == len(others) and all(isinstance(x, str) for x in launched)
    out = image(2, 32, 8, 8)
    op.conv2d(X, F, None, 1, 1, out=out)
    both = torch.zeros(2 * X.numel(), dtype=torch.float16)
    x = both[: X.numel()].view(2, 8, 8, 64).permute(0, 3, 1, 2)
    inside = both[64 : 64 + out.numel()].view(2, 8, 8, 32).permute(0, 3, 1, 2)
    with pytest.raises(
        op.LayoutError, match=(r"conv2d: out shares memory with x; pass a separate out \(only c may be out\)")
    ):
        op.conv2d(x, F, None, 1, 1, out=inside)


def test_explicitly_selected_kernel(launched: list[Any]) -> None:
    """Calls may select a kernel by name, configuration or tile, with an epilogue too."""
    found = op.explain(op.conv2d, (2, 8, 8, 64), (32, 3, 3, 64), padding=1)
    name = "fprop-f16-f16-3x3-p1x1-128x32-c1-q9"
    assert found.kernel != name
    op.conv2d(X, F, None, 1, 1, kernel=name)
    op.conv2d(X, F, BIAS, 1, 1, kernel=name)
    tile = op.TileDescription([128, 32, 64], 4, [8, 1, 1], op.MathInstruction([64, 32, 16], "f16", "f16", "f32"))
    op.conv2d(X, F, None, 1, 1, kernel=tile)
    op.conv2d(X, F, None, 1, 1, kernel=found.config)
    assert launched == [name, f"{name}-bnf16", "fprop-f16-f16-3x3-p1x1-128x32-c1d", found.kernel]
    op.conv2d(X, image(32, 64, 1, 1), kernel="f16-f16-kk-64x32-c1-q16")  # computed as a GEMM
    assert launched[-1] == "f16-f16-kk-64x32-c1-q16"


WRONG: dict[str, Any] = {
    'conv2d: there is no kernel "fprop-f16-f16-3x3-p1x1-128x32-c3" for fprop-3x3-p1x1-f16-f16-kk 128x32x576; did '
    "you mean fprop-f16-f16-3x3-p1x1-128x32-c1-q9?": {
        "kernel": "fprop-f16-f16-3x3-p1x1-128x32-c3"
    },
    "conv2d: kernel is 3; pass a ConvConfig, a Choice, a name or a TileDescription": {"kernel": 3},
    "conv2d: kernel needs im2col loads, which do not support this convolution; omit kernel (see op.explain)": {
        "kernel": "fast", "math": "exact", "dtype": "f32",
    },
}  # fmt: skip


@pytest.mark.parametrize("message", WRONG)
def test_unknown_kernels_are_rejected(message: str, launched: list[Any]) -> None:
    how = WRONG[message]
    x, f = (X.float(), F.float()) if "math" in how else (X, F)
    with pytest.raises(op.UnsupportedError) as caught:
        op.conv2d(x, f, None, 1, 1, **how)
    assert str(caught.value) == message and launched == []


def test_a_kernel_of_another_convolution(launched: list[Any]) -> None:
    config = op.explain(op.conv2d, (2, 8, 8, 64), (32, 3, 3, 64), padding=1).config
    with pytest.raises(op.UnsupportedError) as caught:
        op.conv2d(X, F, None, 1, 2, kernel=config)
    wanted = (
        f"conv2d: kernel {config.name} does not compute fprop of f16 to f16, 3x3-p2x2; omit kernel, or see op.explain"
    )
    assert str(caught.value) == wanted
    with pytest.raises(op.UnsupportedError) as caught:
        op.conv2d(X, F, None, 1, 1, kernel=op.choose(op.Problem(64, 64, 64, "bf16", "bf16")))
    assert str(caught.value).startswith("conv2d: kernel bf16-bf16-kk-") and "does not compute fprop" in str(
        caught.value
    )
    grouped = image(32, 32, 3, 3)
    with pytest.raises(op.UnsupportedError) as caught:
        op.conv2d_input(X.shape, grouped, Y, 1, 1, groups=2, kernel="any")
    assert "kernel needs im2col loads, which do not support this convolution" in str(caught.value)
    assert launched == []


def test_tuning(launched: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """With fake times, later calls use the fastest kernel, with epilogues too."""
    from cute_dialect.op import tuning
    from cute_dialect.op.kernel_prefetch import Prefetch
    from cute_dialect.op.select import kernel_choice
    from cute_dialect.op.select.timing import Sample

    monkeypatch.setenv("CUTE_CONFIG_DIR", str(tmp_path))
    kernel_choice.tuned.cache_clear()
    compiled: list[str] = []

    def prefetch(kernels: Any) -> Prefetch:
        compiled.extend(k.name for k in kernels)
        return Prefetch(())

    def compare(contestants: Any, **_: Any) -> dict[str, Sample]:
        times = {name: 5.0 if "64x32-c1d" in name else 10.0 for name, _ in contestants}
        return {name: Sample(t, t, t, 1) for name, t in times.items()}

    monkeypatch.setattr(tuning, "check_place", lambda *_: None)
    monkeypatch.setattr(gemm_dispatch, "gpu_of", lambda _: GPU)
    monkeypatch.setattr(tuning, "prefetch", prefetch)
    monkeypatch.setattr(tuning, "compare", compare)
    monkeypatch.setattr(tuning, "differs", lambda x, y: False)
    try:
        found = op.tune(op.conv2d, X, F, bias=BIAS, padding=1)
        assert "64x32-c1d" in found.kernel.name and found.saved is not None and found.saved.parent.parent == tmp_path
        assert all(name.startswith("fprop-f16-f16-3x3-p1x1-") and name.endswith("-bnf16") for name in compiled)
        assert "measured to be the fastest" in str(op.explain(op.conv2d, X, F, padding=1))
        del launched[:]
        op.conv2d(X, F, None, 1, 1)
        op.conv2d(X, F, None, 1, 2)
        assert "3x3-p1x1-64x32-c1d" in launched[0] and "64x32" not in launched[1]
        with pytest.raises(op.UnsupportedError) as caught:
            op.tune(op.conv2d, X, image(32, 64, 1, 1))
        assert str(caught.value) == (
            "tune: a GEMM cannot be tuned (there is one tap, see op.mm); pass a convolution that im2col loads support, "
            "with operands that are not copied"
        )
    finally:
        kernel_choice.tuned.cache_clear()


def test_prefetching(monkeypatch: pytest.MonkeyPatch) -> None:
    """``prefetch`` compiles the explained kernels: im2col with an epilogue, depthwise, and image tiles."""
    from cute_dialect.op import kernel_prefetch

    made: list[Any] = []
    monkeypatch.setattr(kernel_prefetch.kernels, "library", lambda kernel, elsewhere: made.append(kernel.name))
    fused = op.explain(op.conv2d, (2, 8, 8, 64), (32, 3, 3, 64), padding=1, bias=(32,), activation="relu")
    each = op.explain(op.conv2d, (2, 8, 8, 64), (64, 3, 3, 1), groups=64)
    columns = op.explain(op.conv2d_weight, (2, 8, 8, 3), (32, 3, 3, 3), (2, 6, 6, 32))
    op.prefetch([fused, each, columns, fused.config], workers=1).wait(60)
    tiles = "direct-wgrad-f16-3x3-c3k32-1_1_1_8-2x6-w1x5x1x3"
    assert made[0].endswith("-bn-relu") and made[1:] == ["depthwise-f16-f16-3x3-1x2", tiles]


def test_training_steps_are_replayed(launched: list[Any]) -> None:
    """The second training step of a layer replays the first without any cache lookup."""
    filters = F.clone().requires_grad_()

    def step() -> tuple[Any, ...]:
        x = torch.zeros_like(X).requires_grad_()
        y = op.conv2d(x, filters, None, 1, 1)
        return torch.autograd.grad(y, (x, filters), torch.zeros_like(y))

    step()
    first = list(launched)
    assert sum(isinstance(x, str) for x in first) >= 3
    launched.clear()
    found = step()
    assert launched and not any(isinstance(x, str) for x in launched)
    assert [t.shape for t in found] == [X.shape, F.shape]
