"""Tensors, vectors and shared memory in complete kernels with branches, loops and calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.errors import CuteError


def test_a_tensor_chosen_at_run_time() -> None:
    @cute.kernel
    def choose(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, n: cute.Int32) -> None:
        t, _, _ = cute.arch.thread_idx()
        source = x
        if t % 2 == 0:
            source = y
        rows = source[None, t] if n > 3 else x[None, 0]
        total = cute.Float32(0)
        for i in range(n):
            total += rows[i]
        out[t] = total

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, n: cute.Int32) -> None:
        choose(x, y, out, n).launch(grid=1, block=8)

    x, y = (np.random.default_rng(i).integers(0, 9, (6, 8)).astype(np.float32) for i in range(2))
    for n in (0, 2, 6):
        out = np.full(8, -1, np.float32)
        host(x, y, out, n, device="cpu")
        source = np.where(np.arange(8) % 2 == 0, y, x) if n > 3 else np.repeat(x[:, :1], 8, 1)
        assert (out == source[:n].sum(0)).all()


def test_vectors_and_registers_through_loops() -> None:
    @cute.kernel
    def sums(x: cute.Tensor, out: cute.Tensor, n: cute.Int32) -> None:
        t, _, _ = cute.arch.thread_idx()
        total = cute.zeros_like(x[0, (None, t)].load())
        seen = cute.make_rmem_tensor(4, cute.Float32)
        seen.fill(0)
        most = cute.full(4, -1000.0, cute.Float32)
        for i in range(n):
            row = x[i, (None, t)].load()
            total = total + row * 2
            if i % 2 == 1:
                seen[i % 4] = seen[i % 4] + row[0]
                most = cute.where(row > most, row, most)
        out[0, (None, t)].store(total)
        out[1, (None, t)] = seen.load()
        out[2, (None, t)] = most

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor, n: cute.Int32) -> None:
        layout = cute.make_layout((x.shape[0], (4, 8)), stride=(32, (1, 4)))
        sums(cute.make_tensor(x.iterator, layout), cute.make_tensor(out.iterator, cute.make_layout(
            (3, (4, 8)), stride=(32, (1, 4)))), n).launch(grid=1, block=8)  # fmt: skip

    x = np.random.default_rng(3).integers(-9, 9, (7, 32)).astype(np.float32)
    out = np.zeros((3, 32), np.float32)
    host(x, out, 7, device="cpu")
    assert (out[0] == 2 * x.sum(0)).all()
    odd = x[1::2].reshape(3, 8, 4)
    seen = np.zeros((8, 4), np.float32)
    for k, i in enumerate((1, 3, 5)):
        seen[:, i % 4] += odd[k, :, 0]
    assert (out[1].reshape(8, 4) == seen).all()
    assert (out[2] == x[1::2].max(0)).all()


def test_a_structure_in_shared_memory() -> None:
    @cute.struct
    class Storage:
        count: cute.Int32
        values: cute.struct.Align[cute.struct.MemRange[cute.Float32, 64], 128]

    @cute.kernel
    def turn(x: cute.Tensor, out: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        storage = cute.utils.SmemAllocator().allocate(Storage)
        values = storage.values.get_tensor(cute.make_layout(64))
        if t == 0:
            storage.count.store(5)
        for i in range(2):
            values[t + 32 * i] = x[t + 32 * i]
        cute.arch.sync_threads()
        for i in range(2):
            out[t + 32 * i] = values[63 - t - 32 * i] + storage.count.load()

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor) -> None:
        turn(x, out).launch(grid=1, block=32)

    x = np.arange(64, dtype=np.float32)
    out = np.zeros(64, np.float32)
    host(x, out, device="cpu")
    assert (out == x[::-1] + 5).all()


def test_f_strings_print_when_the_kernel_runs(capsys: pytest.CaptureFixture[str]) -> None:
    @cute.kernel
    def show(x: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        print(f"gX: {x}")
        if t == 1:
            cute.printf(f"t={t} x={x[t]:.1f} shape {x.shape} at {(t, (1, t + 1))} of {x}")

    @cute.jit
    def host(x: cute.Tensor) -> None:
        tiles = cute.zipped_divide(x, 4)
        show(tiles[None, 1]).launch(grid=1, block=4)

    host(np.arange(8, dtype=np.float32), device="cpu")
    assert capsys.readouterr().out == (
        "gX: tensor<ptr<f32, gmem, align<16>> o (4):(1)>\n"
        "t=1 x=5.0 shape (4,) at (1,(1,2)) of tensor<ptr<f32, gmem, align<16>> o (4):(1)>\n"
    )


def test_two_register_tensors_do_not_merge() -> None:
    @cute.kernel
    def bad(x: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        r = cute.make_rmem_tensor(4, cute.Float32)
        if t == 0:
            r = cute.make_rmem_tensor(4, cute.Float32)
        r.fill(1)

    @cute.jit
    def host(x: cute.Tensor) -> None:
        bad(x).launch(grid=1, block=4)

    with pytest.raises(CuteError, match="F206"):
        host(np.zeros(8, np.float32), device="cpu")


def test_a_vector_that_changes_shape_does_not_merge() -> None:
    @cute.kernel
    def bad(x: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        v: Any = cute.zeros_like(x.load())
        if t == 0:
            v = cute.full(2, 0.0)
        x.store(v)

    @cute.jit
    def host(x: cute.Tensor) -> None:
        bad(cute.make_tensor(x.iterator, cute.make_layout(4))).launch(grid=1, block=4)

    with pytest.raises(CuteError, match="F205"):
        host(np.zeros(8, np.float32), device="cpu")


def test_a_layout_of_an_f_string() -> None:
    @cute.kernel
    def rows(x: cute.Tensor, out: cute.Tensor, n: cute.Int32) -> None:
        t, _, _ = cute.arch.thread_idx()
        view = cute.make_tensor(x.iterator, cute.layout(f"(2,{n}):({n},1)"))
        out[t] = view[1, t]

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor, n: cute.Int32) -> None:
        rows(x, out, n).launch(grid=1, block=4)

    out = np.zeros(4, np.float32)
    host(np.arange(12, dtype=np.float32), out, 6, device="cpu")
    assert out.tolist() == [6, 7, 8, 9]


def test_a_host_function_without_launches_prints(capsys: pytest.CaptureFixture[str]) -> None:
    @cute.jit
    def host(a: cute.Tensor, n: cute.Int32) -> None:
        cute.printf("n = {}", n)
        cute.print_tensor(a)
        v = a.load()
        cute.print_tensor(v.reduce(cute.ReductionOp.ADD, 0.0, reduction_profile=(None, 1)))
        cute.printf(v.reduce(cute.ReductionOp.ADD, 0.0, reduction_profile=0))

    host(cute.from_dlpack(np.arange(6, dtype=np.float32).reshape(2, 3)), 3)
    assert capsys.readouterr().out == (
        "n = 3\ntensor<ptr<f32, gmem, align<16>> o (2,3):(3,1)>:\n[[0.000000, 1.000000, 2.000000],\n"
        " [3.000000, 4.000000, 5.000000]]\nvector<2xf32> o (2):\n[3.000000, 12.000000]\n15.000000\n"
    )


@pytest.mark.parametrize("first", [True, False])
def test_a_host_function_with_launches_prints_no_values_of_run_time(first: bool) -> None:
    @cute.kernel
    def one(a: cute.Tensor) -> None:
        a[cute.arch.thread_idx()[0]] = 1.0

    @cute.jit
    def host(a: cute.Tensor, n: cute.Int32, first: cute.Constexpr[bool]) -> None:
        if first:
            cute.printf("hello {}", n)
        one(a).launch(grid=1, block=4)
        if not first:
            cute.printf("hello {}", n)

    with pytest.raises(CuteError) as caught:
        host(np.zeros(4, np.float32), 3, first, device="cpu")
    text = str(caught.value)
    assert "error F260: a host function that launches kernels prints run-time values" in text
    assert 'cute.printf("hello {}", n)' in text
    assert "hint: use print(…) to print at compile time, or cute.printf in the kernel" in text


@cute.kernel
def printing_kernel() -> None:
    cute.printf("thread {}", cute.arch.thread_idx()[0])


@cute.jit
def printing_host(n: cute.Constexpr[int]) -> None:
    cute.printf("{} %, {}", n, (4, 5))
    printing_kernel().launch(grid=1, block=1)
    cute.printf("after", end="")


def test_a_host_function_with_launches_prints_constant_text_in_each_call(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        printing_host(8, device="cpu")
        assert capsys.readouterr().out == "8 %, (4,5)\nthread 0\nafter"
    compiled = cute.compile(printing_host, 8, device="cpu")
    compiled(device="cpu")
    assert capsys.readouterr().out == "8 %, (4,5)\nthread 0\nafter"
    with pytest.raises(cute.LaunchError, match=r"printing_host: bind cannot be used .* calls cute.printf"):
        compiled.bind()


def test_conditional_printf_next_to_a_launch_is_rejected() -> None:
    @cute.jit
    def host(n: cute.Int32) -> None:
        if n > 2:
            cute.printf("large")
        printing_kernel().launch(grid=1, block=1)

    with pytest.raises(
        CuteError, match="F260: a host function that launches kernels prints under a run-time condition"
    ):
        host(3, device="cpu")
