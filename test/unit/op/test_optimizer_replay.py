"""Replayed calls of ``op.adamw_``: equal to ``torch.optim.AdamW`` whatever changes between two calls."""

# pyright: basic

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch
from weakref import ref

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cute_dialect import op  # noqa: E402
from cute_dialect.op.arrays import library  # noqa: E402
from cute_dialect.op.execute import pointer_arrays, recording  # noqa: E402
from cute_dialect.op.execute.array_call import RowCall  # noqa: E402
from cute_dialect.op.functions import optimizers  # noqa: E402
from cute_dialect.runtime.arrays import view_of  # noqa: E402

ADAMW: Any = op.adamw_
HOW: dict[str, Any] = {"lr": 0.02, "beta1": 0.8, "beta2": 0.99, "eps": 1e-6, "weight_decay": 0.1}
TYPES = {"bf16": None, "f16": np.float16, "f32": np.float32}


class Kernels:
    """The kernel ``@adamw`` in NumPy, on raw addresses and a table, with counts of first and later launches."""

    alignment = 16

    def __init__(self) -> None:
        self.first = self.again = 0
        self.configs: list[Any] = []

    def module(self, kernel: Any) -> Any:
        (config,) = kernel.args
        self.configs.append(config)
        return Module(self, config)


class Module:
    """A compiled module and its kernel."""

    alignment = 16

    def __init__(self, kernels: Kernels, config: Any) -> None:
        self.kernels, self.config = kernels, config

    def kernel(self, name: str) -> Module:
        return self

    def __call__(self, *given: Any, **_: Any) -> None:
        self.kernels.first += 1
        numbers = [np.array([x], "f4").view("u4")[0] for x in given[5:15]]
        self.compute(given[4].shape[0], [view_of(x).pointer for x in (*given[:5], *given[15:])], numbers)

    def by_address(self, *given: Any, numbers: bool = False) -> Any:
        assert numbers
        blocks, count = given[4].shape[0], len(given)

        def launch(stream: int, *addresses: int) -> None:
            assert stream == 7 and len(addresses) == count
            self.kernels.again += 1
            self.compute(blocks, [*addresses[:5], *addresses[15:]], addresses[5:15])

        return launch

    def compute(self, blocks: int, addresses: Any, bits: Any) -> None:
        lr, decay, b2, rest1, rest2, log1, log2, eps, step, sign = np.array(bits, "u4").view("f4").astype(np.float64)
        extras = dict(zip(self.config.arrays, [memory(x, 1, np.float32)[0] for x in addresses[5:]]))
        lr, step = extras.get("lr", lr), extras.get("step", step)
        kinds = [TYPES[self.config.element]] * 2 + [TYPES[self.config.state]] * 2
        for count, *offsets in memory(addresses[4], 5 * blocks, np.int64).reshape(-1, 5):
            starts = [a + o * np.dtype(k).itemsize for a, o, k in zip(addresses, offsets, kinds)]
            assert self.config.vector == 1 or not any(x % 16 for x in starts)
            p, g, m, v = (memory(x, count, k) for x, k in zip(starts, kinds))
            if extras.get("found_inf"):
                continue
            grad = g.astype(np.float64) * sign / extras.get("grad_scale", 1)
            p[...] = p * (1 - lr * decay)
            m[...] = m + rest1 * (grad - m)
            v[...] = b2 * v + rest2 * grad * grad
            size = lr / (1 - np.exp(step * log1))
            p[...] = p - size * m / (np.sqrt(v / (1 - np.exp(step * log2))) + eps)


def memory(address: int, count: int, dtype: Any) -> Any:
    kind = ctypes.c_uint8 * (int(count) * np.dtype(dtype).itemsize)
    return np.frombuffer(kind.from_address(int(address)), dtype)


@pytest.fixture
def kernels() -> Iterator[Kernels]:
    """Let CPU tensors be treated as GPU tensors, so that one launch updates all of them."""
    made = Kernels()
    with ExitStack() as stack:
        for where, name, value in (
            (library, "_check_place", lambda *_: None),
            (RowCall, "check_gpu", lambda self: None),
            (RowCall, "module", lambda self, kernel: made.module(kernel)),
            (optimizers, "_is_alone", lambda view: False),
            (recording, "current_stream_of_torch", lambda: lambda device: 7),
        ):
            stack.enter_context(patch.object(where, name, value))
        optimizers.CALLS.known.clear()
        yield made
    optimizers.CALLS.known.clear()


def lists_of(*shapes: tuple[int, ...], dtype: Any = torch.float32, state: Any = torch.float32) -> list[list[Any]]:
    """Parameters, gradients and moments."""
    params = [torch.nn.Parameter(torch.randn(s).to(dtype)) for s in shapes]
    moments = [[torch.rand(s).to(state) * 0.1 for s in shapes] for _ in range(2)]
    return [params, [torch.randn(s).to(dtype) for s in shapes], *moments]


def expected(lists: Any, step: int, **how: Any) -> list[list[Any]]:
    """Return the parameters and moments after a step of torch's optimizer."""
    how = HOW | how
    ps = [torch.nn.Parameter(p.detach().double()) for p in lists[0]]
    peer = torch.optim.AdamW(
        ps, lr=how["lr"], betas=(how["beta1"], how["beta2"]), eps=how["eps"], weight_decay=how["weight_decay"]
    )
    for p, g, m, v in zip(ps, *lists[1:]):
        p.grad = None if g is None else g.double()
        if g is not None:
            peer.state[p] = {"step": torch.tensor(step - 1.0), "exp_avg": m.double(), "exp_avg_sq": v.double()}
    peer.step()
    states = [[peer.state[p][n] if p in peer.state else None for p in ps] for n in ("exp_avg", "exp_avg_sq")]
    return [ps, *states]


def step(lists: Any, number: int, given: Any = None, **how: Any) -> None:
    """Compute a step and compare it with torch's."""
    wanted = expected(lists, number, **{n: x for n, x in how.items() if n in HOW})
    before = [t._version for t in lists[0]]
    ADAMW(*lists, number if given is None else given, **(HOW | how))
    for old, p, g in zip(before, lists[0], lists[1]):
        assert p._version > old if g is not None else p._version == old
    for found, exact in zip((lists[0], *lists[2:]), wanted):
        for x, y in zip(found, exact):
            if y is not None and y.numel():
                y, unit = y.detach(), 2.0 ** (-9 if x.dtype == torch.float16 else -20)
                assert float((x.detach().double() - y).abs().max()) <= unit * max(1, float(y.abs().max()))


def test_steps_and_rates_are_those_of_each_call(kernels: Kernels) -> None:
    """The numbers change from step to step, and yet calls after the first one are replayed, one launch each."""
    lists = lists_of((3, 5), (300,), (4,))
    for n in range(1, 7):
        step(lists, n, lr=0.02 / n, weight_decay=0.1 * n, beta1=0.8 - n / 100)
        lists[1] = [torch.randn_like(g) for g in lists[1]]
    assert (kernels.first, kernels.again, len(optimizers.CALLS.known)) == (1, 5, 1)
    ADAMW(*lists, 7, **HOW, maximize=True)
    with torch.no_grad():
        step(lists, 8)
    assert (kernels.first, kernels.again) == (1, 7)


def test_other_memory(kernels: Kernels) -> None:
    """New storage of parameters, gradients and moments, memory that is freed and used again, and tensors in turns."""
    lists = lists_of((4, 4), (9,), (0, 3), (17,))
    step(lists, 1)
    step(lists, 2)
    for n in range(3, 30):
        which = n % 4
        if which == 0:
            with torch.no_grad():
                lists[0][n % 2].data = torch.randn_like(lists[0][n % 2])
        else:
            shapes = [t.shape for t in lists[which]]
            lists[which] = []  # The next tensors may get the memory of these.
            lists[which] = [torch.rand(s) for s in shapes]
        step(lists, n)
    one, other = lists_of((5,), (6,)), lists_of((5,), (6,))
    for n in range(1, 6):
        step(one, n)
        step(other, n)
        one[1][0] = torch.randn(5)
    assert kernels.first <= 4 and kernels.again >= 35


def test_tensors_change_places(kernels: Kernels) -> None:
    """Equal shapes in another order are at other addresses of the same set."""
    lists = lists_of((8,), (8,), (8,))
    for n in range(1, 8):
        step(lists, n)
        for x in lists[n % 4], lists[(n + 1) % 4]:
            x[n % 3], x[(n + 1) % 3] = x[(n + 1) % 3], x[n % 3]
    assert kernels.first == 1


def test_other_specializations(kernels: Kernels) -> None:
    """Other types, shapes, strides and alignments are not replayed as the recorded ones."""
    memory = torch.randn(64)
    cases = [
        lists_of((8,), (3, 4)),
        lists_of((8,), (4, 3)),
        lists_of((8,), (3, 4), dtype=torch.float16),
        lists_of((8,), (3, 4), dtype=torch.float16, state=torch.float16),
        [[memory[1:9], memory[16:28].view(3, 4)], *lists_of((8,), (3, 4))[1:]],
        lists_of((8,), (3, 4)),
    ]
    cases[-1][1][1] = torch.randn(4, 3).t()
    for n in range(1, 5):
        for lists in cases:
            step(lists, n)
    assert {(c.element, c.state, c.vector) for c in kernels.configs} == {
        ("f32", "f32", 4), ("f16", "f32", 4), ("f16", "f16", 8), ("f32", "f32", 1)
    }  # fmt: skip
    assert kernels.again > kernels.first


def test_gradients_do_not_matter(kernels: Kernels) -> None:
    """Tensors with and without ``requires_grad``, with and without recording of gradients."""
    for n in range(1, 4):
        for needs in (True, False):
            for mode in (torch.enable_grad, torch.no_grad):
                lists = lists_of((6,), (2, 2))
                lists[0] = [p.detach().requires_grad_(needs) for p in lists[0]]
                with mode():
                    step(lists, n)
    assert kernels.first <= 2 and not lists[0][0].requires_grad


def test_parameters_without_gradients(kernels: Kernels) -> None:
    lists = lists_of((6,), (2, 2), (3,))
    for n in range(1, 8):
        lists[1] = [torch.randn_like(p) for p in lists[0]]
        lists[1][n % 3] = None
        same = lists[0][n % 3].detach().clone()
        step(lists, n)
        assert torch.equal(lists[0][n % 3], same)
    assert kernels.first <= 3 and kernels.again >= 4


def test_arrays_in_place_of_numbers_are_replayed(kernels: Kernels) -> None:
    lists, number, rate = lists_of((6,), (2, 2)), torch.tensor([0.0]), torch.tensor(HOW["lr"])
    scale, found = torch.ones(1), torch.zeros(1)
    for n in range(1, 5):
        number += 1
        rate /= 2
        wanted = expected(lists, n, lr=float(rate))
        ADAMW(*lists, number, **HOW | {"lr": rate}, grad_scale=scale, found_inf=found)
        assert all(torch.allclose(p.double(), q) for p, q in zip(lists[0], wanted[0]))
        number = number.clone()
    same = [p.detach().clone() for p in lists[0]]
    ADAMW(*lists, number, **HOW | {"lr": rate}, grad_scale=scale, found_inf=torch.ones(1))
    assert all(torch.equal(p, q) for p, q in zip(lists[0], same))
    assert (kernels.first, kernels.again) == (1, 4)


def test_overlaps_of_a_replayed_call_are_refused(kernels: Kernels) -> None:
    """Nothing is written, and the error is that of a first call."""
    lists, memory = lists_of((8,), (8,)), torch.zeros(12)
    for n in (1, 2):
        step(lists, n)
    for first, second, names in (((0, 0), (2, 1), r"exp_avgs\[1\] overlaps params\[0\]"), ((1, 1), (0, 1), "overlaps")):
        x = [list(y) for y in lists]
        x[first[0]][first[1]], x[second[0]][second[1]] = memory[:8], memory[4:]
        same = [[t.detach().clone() for t in y] for y in x]
        with pytest.raises(op.LayoutError, match=names):
            ADAMW(*x, 3, **HOW)
        assert all(torch.equal(t, u) for y, z in zip(x, same) for t, u in zip(y, z))
    x = [list(y) for y in lists]
    x[3] = x[2]
    with pytest.raises(op.LayoutError, match="overlaps"):
        ADAMW(*x, 3, **HOW)
    x = [list(y) for y in lists]
    x[0][1] = x[0][0]
    with pytest.raises(op.LayoutError, match="overlaps"):
        ADAMW(*x, 3, **HOW)
    x = [list(y) for y in lists]
    x[1][1] = x[1][0]  # One gradient for two parameters is only read.
    step(x, 3)
    step(lists, 4)


def test_errors_of_replayed_calls(kernels: Kernels) -> None:
    lists = lists_of((8,), (8,))
    for n in (1, 2):
        step(lists, n)
    with pytest.raises(op.ShapeError, match=r"grads\[1\] has shape \(7,\)"):
        ADAMW(lists[0], [lists[1][0], torch.randn(7)], *lists[2:], 3, **HOW)
    with pytest.raises(op.ArgumentError, match="step is 0"):
        ADAMW(*lists, 0, **HOW)
    with pytest.raises(op.ArgumentError, match=r"exp_avgs\[1\] is None"):
        ADAMW(*lists[:2], [lists[2][0], None], lists[3], 3, **HOW)
    with pytest.raises(op.ArgumentError, match="grads has 1 arrays for 2 params"):
        ADAMW(lists[0], lists[1][:1], *lists[2:], 3, **HOW)
    step(lists, 3)


def test_a_cached_call_keeps_no_tensor_alive(kernels: Kernels) -> None:
    lists = lists_of((8,), (8,))
    for n in (1, 2, 3):
        step(lists, n)
    alive = [ref(t) for x in lists for t in x]
    del lists
    gc.collect()
    assert all(x() is None for x in alive) and len(optimizers.CALLS.known) == 1


def test_tables_of_many_addresses(kernels: Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    """More sets of addresses than are kept; each is computed with its own table."""
    monkeypatch.setattr(pointer_arrays, "_PLACES", 3)
    lists = lists_of((8,), (300,))
    grads = [[torch.randn(8), torch.randn(300)] for _ in range(5)]
    for n in range(1, 16):
        lists[1] = grads[n % 5]
        step(lists, n)
    assert kernels.first == 1 and kernels.again == 14


def test_many_parameters(kernels: Kernels) -> None:
    lists = lists_of(*[(4,)] * 90, *[(2, 3)] * 20)
    for n in (1, 2, 3):
        step(lists, n)
        lists[1] = [torch.randn_like(g) for g in lists[1]]
    assert (kernels.first, kernels.again) == (1, 2)


def test_tables_of_captured_graphs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table stays while a CUDA graph may read it, whichever launch used it first."""
    table = view_of(torch.zeros(4, dtype=torch.int32))._replace(device=0)
    launched: list[tuple[int, ...]] = []

    def launched_with(*given: int) -> None:
        launched.append(given)

    def placed(addresses: Any) -> Any:
        return [(launched_with, (5, table.pointer), table)]

    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    launch = pointer_arrays.LaunchByTables(2, placed, table)
    launch(7, 16, 32, 64)
    assert table.pointer not in pointer_arrays._PINNED
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    launch(7, 16, 32, 64)
    assert pointer_arrays._PINNED.pop(table.pointer) is table
    assert launched == [(7, 5, table.pointer, 64)] * 2
