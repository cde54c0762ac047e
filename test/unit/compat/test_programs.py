"""Programs written for CuTe DSL run unchanged, and only they see the fake ``cutlass`` and GPU torch."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from cute_dialect.compat.run_program import MODULES, main, run

torch = pytest.importorskip("torch")

SCALE = """
    import argparse
    import cuda.bindings.driver as cuda
    import cutlass
    import cutlass.cute as cute
    import cutlass.cute.testing as testing
    import cutlass.torch as cutlass_torch
    from cutlass import Int32
    from cutlass.cute.runtime import from_dlpack
    from another.kernels.factor import factor
    import shared_name


    class Scale:
        def __init__(self, by):
            self.by = by

        @cute.jit
        def __call__(self, x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
            self.kernel(x, y).launch(grid=[cute.ceil_div(cute.size(x), 32), 1, 1], block=[32, 1, 1], stream=stream)

        @cute.kernel
        def kernel(self, x: cute.Tensor, y: cute.Tensor):
            tidx, _, _ = cute.arch.thread_idx()
            bidx, _, _ = cute.arch.block_idx()
            i = bidx * 32 + tidx
            if i < cute.size(x):
                total = cutlass.Float32(0)
                for _ in cutlass.range_dynamic(0, factor(), 1):
                    total += x[i]
                if cutlass.const_expr(self.by is not None):
                    for _ in cutlass.range_constexpr(self.by - 1):
                        total += total
                y[i] = total


    def run(n):
        import torch

        assert torch.cuda.is_available() and isinstance(shared_name.tensor(), torch.Tensor)
        x = torch.arange(n, dtype=cutlass_torch.dtype(cutlass.Float32), device=torch.device("cuda"))
        y = torch.empty(n).cuda()
        stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
        compiled = cute.compile(Scale(2), from_dlpack(x).mark_layout_dynamic(), from_dlpack(y), stream)
        compiled(from_dlpack(x), from_dlpack(y), stream)
        torch.cuda.synchronize()
        torch.testing.assert_close(y.cpu(), 6 * x.to("cuda:0"))
        us = testing.benchmark(
            compiled, kernel_arguments=testing.JitArguments(x, y, stream), iterations=2, warmup_iterations=0
        )
        assert us > 0
        return y


    if __name__ == "__main__":
        parser = argparse.ArgumentParser()
        parser.add_argument("--n", type=int)
        result = run(parser.parse_args().n)
        print("PASS")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scale.py").write_text(dedent(SCALE))
    (tmp_path / "factor.py").write_text("import cutlass\ndef factor():\n    return 3\n")
    (tmp_path / "shared_name.py").write_text("import torch\ndef tensor():\n    return torch.zeros(2, device='cuda')\n")
    return tmp_path


def test_unmodified_program_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = list(sys.meta_path), list(sys.argv), sys.modules["__main__"]
    assert main(["--device=cpu", str(folder / "scale.py"), "--n", "40"]) == 0
    assert capsys.readouterr().out.endswith("PASS\n")
    # The program leaves no state in this process.
    assert (list(sys.meta_path), list(sys.argv), sys.modules["__main__"]) == before
    assert not [m for m in sys.modules if m.partition(".")[0] in ("cutlass", "another", "shared_name")]
    assert not torch.cuda.is_available() and "is_available" not in vars(type(torch.cuda))


@pytest.mark.slow
def test_a_program_from_the_shell(folder: Path) -> None:
    import subprocess

    done = subprocess.run(
        [sys.executable, "-m", "cute_dialect.lang.compat", "--device=cpu", str(folder / "scale.py"), "--n", "33"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "PASS\n"), done.stderr


def test_names_and_exceptions_of_a_program_are_returned(tmp_path: Path) -> None:
    program = tmp_path / "p.py"
    program.write_text(
        "import sys, cutlass\nx = cutlass.Int32(3).value\nif len(sys.argv) > 1: raise KeyError('mine')\n"
    )
    assert run(program, cpu=True)["x"] == 3
    with pytest.raises(KeyError, match="mine"):
        run(program, ["1"], cpu=True)
    assert "cutlass" not in sys.modules


def test_drawings_by_cute_viz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that draws layouts with CuTe DSL and cute-viz runs."""
    from svg_pictures import cells

    monkeypatch.chdir(tmp_path)
    program = tmp_path / "p.py"
    program.write_text(
        dedent("""
            import cutlass.cute as cute
            from cute_viz import display_layout, render_layout_svg, render_tv_layout_svg

            @cute.jit
            def pictures():
                tiler, tv = cute.make_layout_tv(cute.make_layout((4, 8), stride=(8, 1)), cute.make_layout((2, 1)))
                render_tv_layout_svg(tv, tiler, "tv.svg")
                render_layout_svg(tv, "layout.svg")
                display_layout(tv)

            pictures()
        """)
    )
    run(program, cpu=True)
    found = cells((tmp_path / "tv.svg").read_text())
    assert all(t == [f"T{8 * (i // 2) + j}", f"V{i % 2}"] for (_, i, j), (_, t) in found.items()) and len(found) == 64
    assert len(cells((tmp_path / "layout.svg").read_text())) == 64 and "cute_viz" not in sys.modules


def test_unsupported_modules_are_reported(tmp_path: Path) -> None:
    program = tmp_path / "p.py"
    program.write_text("import cutlass.jax\n")
    with pytest.raises(
        ModuleNotFoundError, match=r"'cutlass\.jax' is not available; available modules: cute_viz, cutlass, "
    ):
        run(program)
    with pytest.raises(SystemExit):
        main([str(tmp_path / "none.py")])


def test_every_provided_module_can_be_imported(tmp_path: Path) -> None:
    program = tmp_path / "p.py"
    program.write_text("".join(f"import {name}\n{name}.__name__\n" for name in MODULES))
    run(program)


def test_torch_on_the_cpu() -> None:
    from cute_dialect.compat.torch_cpu import Event, TorchOnCpu, on_cpu

    proxy = TorchOnCpu()
    assert proxy.float16 is torch.float16 and proxy.nn is torch.nn and "randn" in dir(proxy)
    assert proxy.cuda.device_count() == 1 and proxy.cuda.get_device_capability() == (9, 0)
    assert proxy.cuda.get_device_properties(0).multi_processor_count == 132
    with pytest.raises(NotImplementedError, match=r"torch\.cuda\.graph_pool_handle needs a GPU"):
        proxy.cuda.graph_pool_handle()
    start, end = Event(), Event(enable_timing=True)
    with proxy.cuda.stream(proxy.cuda.Stream()) as stream:
        start.record()
        stream.record_event(end)
    assert start.elapsed_time(end) >= 0
    with on_cpu():
        x = torch.ones(3, device="cuda:0", pin_memory=True)
        y = x.cuda().to("cuda", torch.float16).to(device=torch.device("cuda"))
        assert y.is_cuda and y.device == torch.device("cuda", 0)
        assert torch.zeros(2, device=y.device).device == y.device
        assert torch.zeros_like(x, device="cuda").to(torch.int32).dtype == torch.int32
        address = x.data_ptr()
        assert address % 4 == 0 and address.array is x  # type: ignore
    assert y.device.type == "cpu" and not y.is_cuda
    with pytest.raises((RuntimeError, AssertionError)):
        torch.ones(3, device="cuda")


def test_a_graph_replays_calls_of_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "p.py"
    program.write_text("""
import torch
import cutlass.cute as cute

@cute.kernel
def add_one(x: cute.Tensor):
    x[cute.arch.thread_idx()[0]] += 1.0

@cute.jit
def run_twice(x: cute.Tensor):
    add_one(x).launch(grid=1, block=4)
    add_one(x).launch(grid=1, block=4)

x = torch.zeros(4, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph, stream=torch.cuda.Stream()):
    run_twice(x)
print(x.tolist())
graph.replay()
graph.replay()
print(x.tolist())
graph.reset()
graph.replay()
print(x.tolist())
for mistake in (lambda: x.add_(1), lambda: x + 1):
    try:
        with torch.cuda.graph(graph):
            mistake()
    except NotImplementedError as e:
        print(e)
""")
    assert main(["--device=cpu", str(program)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["[0.0, 0.0, 0.0, 0.0]", "[4.0, 4.0, 4.0, 4.0]", "[4.0, 4.0, 4.0, 4.0]"]
    assert [line.partition(" in a graph")[0] for line in lines[3:]] == [
        "torch.cuda.graph: torch.add_", "torch.cuda.graph: torch.add"
    ]  # fmt: skip


def test_names_of_compat() -> None:
    import cute_dialect.lang as cute
    import cute_dialect.lang.compat as cutlass

    assert cutlass.cute is cute and cutlass.Float16 is cute.Float16 and cutlass.Constexpr is cute.Constexpr
    assert cutlass.utils.SmemAllocator is cute.utils.SmemAllocator and "pipeline" in dir(cutlass)
    assert cutlass.dtype("float16") is cute.Float16 and cutlass.dynamic_expr(np.int64(3)) == 3
    assert cutlass.dsl_user_op(abs) is abs
    with pytest.raises(AttributeError):
        _ = cutlass.no_such_name
