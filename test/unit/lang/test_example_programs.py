"""Every program of ``examples/`` runs on the interpreter and agrees with torch."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

import cute_dialect.lang as cute

EXAMPLES = Path(__file__).parents[3] / "examples"

RUNS: dict[str, list[tuple[str, str]]] = {
    "elementwise_add.py": [
        ("", "129 x 257 float32 on cpu: correct\n"),
        ("--m 1 --n 1", "1 x 1 float32 on cpu: correct\n"),
        ("--m 300 --n 77 --dtype bfloat16", "300 x 77 bfloat16 on cpu: correct\n"),
        ("--m 257 --n 513 --dtype float16", "257 x 513 float16 on cpu: correct\n"),
        ("--m 16 --n 128 --dtype int32", "16 x 128 int32 on cpu: correct\n"),
    ],
    "all_reduce_one_shot.py": [
        ("", "3 all-reduces of 3 ranks, 200 elements: right\n"),
        ("--ranks 2 --size 33 --schedule adversarial", "3 all-reduces of 2 ranks, 33 elements: right\n"),
    ],
    "tensor_parallel_rows.py": [
        ("", "2 ranks, 16 tokens of 64 features: right, equal on all ranks\n"),
        ("--ranks 3 --hidden 96 --tokens 5 --schedule adversarial", "3 ranks, 5 tokens of 64 features: right"),
    ],
    "tensor_parallel_mlp.py": [
        ("", "2 ranks, 16 tokens of 64 features: right\n"),
        ("--ranks 3 --hidden 96 --tokens 9 --schedule adversarial", "3 ranks, 9 tokens of 64 features: right"),
    ],
    "autotune.py": [("", "the first candidate, {'threads': 32, 'rows': 4}: correct\n")],
    "call_from_c.py": [
        ("", "CUresult axpy_load(axpy_module **module);\nCUresult axpy_launch(const axpy_module *module, c")
    ],
    "descriptors.py": [("", "atom      !cute_nvgpu.atom.wgmma<64x128x16, ")],
    "gemm_parts.py": [
        (
            "",
            "cp_async and wgmma: correct\ncp_async and mma_sync: correct\n"
            "tma and wgmma: correct\ntma and mma_sync: correct\n",
        ),
    ],
    "gemm_sm90.py": [
        ("", "200 x 256 x 192 float16 on cpu: correct\n"),
        ("--cluster 2,1 --n 128", "200 x 128 x 192 float16 on cpu: correct\n"),
        ("--dtype float8_e4m3fn --c float32 --n 128", "200 x 128 x 192 float8_e4m3fn on cpu: correct\n"),
        ("--a-major m --b-major n --dtype bfloat16 --n 128", "200 x 128 x 192 bfloat16 on cpu: correct\n"),
        ("--tile 64,64 --m 128 --n 72", "128 x 72 x 192 float16 on cpu: correct\n"),
    ],
    "gather_rows.py": [
        (arguments, "round-robin: correct\nreverse: correct\nrandom: correct\nadversarial: correct\n")
        for arguments in ("", "--rows 96 --columns 200")
    ],
    "dynamic_tiles.py": [("", "round-robin: correct\nreverse: correct\nrandom: correct\nadversarial: correct\n")],
    "blackwell_gemm.py": [
        ("", "256 x 128 x 192 on cpu: correct\n"),
        ("--k 320 --schedule adversarial", "256 x 128 x 320 on cpu: correct\n"),
        ("--pair", "256 x 128 x 192 on cpu: correct\n"),
        ("--pair --k 320 --schedule adversarial", "256 x 128 x 320 on cpu: correct\n"),
    ],
    "blackwell_attention.py": [
        ("", "1 x 128 x 400 x 64 on cpu: correct\n"),
        ("--queries 200 --keys 300 --causal --schedule adversarial", "1 x 200 x 300 x 64, causal on cpu: correct\n"),
        ("--head-size 128", "1 x 128 x 400 x 128 on cpu: correct\n"),
    ],
    "blackwell_mixed_gemm.py": [
        ("", "int8 128 x 128 x 256: correct\n"),
        ("--format int4 --operand smem --schedule adversarial", "int4 128 x 128 x 256: correct\n"),
    ],
    "blackwell_scaled_gemm.py": [
        ("", "mxfp8 128 x 128 x 512: correct\n"),
        ("--format nvfp4 --k 768 --schedule adversarial", "nvfp4 128 x 128 x 768: correct\n"),
        ("--pair --m 256", "mxfp8 256 x 128 x 512: correct\n"),
    ],
    "blackwell_sparse_gemm.py": [
        ("", "f16 128 x 64 x 512: correct\n"),
        ("--format i8 --k 768 --schedule adversarial", "i8 128 x 64 x 768: correct\n"),
        ("--pair --m 256", "f16 256 x 64 x 512: correct\n"),
    ],
    "geforce_scaled_gemm.py": [
        ("", "mxfp8 128 x 128 x 384: correct\n"),
        ("--format nvfp4 --k 384 --schedule adversarial", "nvfp4 128 x 128 x 384: correct\n"),
    ],
    "hello.py": [
        ("", "1000 sums on the CPU interpreter, all correct:\n  0."),
        ("--n 1", "1 sums on the CPU interpreter"),
    ],
    "hopper_gemm.py": [
        ("", "384 x 256 x 192 on cpu: correct\n"),
        ("--tile 128,256,64 --m 200 --k 72", "200 x 256 x 72 on cpu: correct\n"),
    ],
    "layouts.py": [("", "threads: (4,32):(32,1), values: (4,4):(4,1)\nlayout: ((32,4),(4,4)):((64,4),(16,1))\n")],
    "matmul_ladder.py": [
        (
            "",
            "naive: correct\ncoalesced: correct\nshared: correct\ncolumn: correct\n"
            "square: correct\nvectors: correct\nwarps: correct",
        ),
        ("--rung warps --m 96 --n 128 --k 16", "warps: correct\n"),
    ],
    "mixture_of_experts.py": [("", "24 tokens, 4 experts of 32 x 48: correct, with 6 gradients\n0 tokens chose ")],
    "transformer_block.py": [("", "a block of 128, 2 heads on 1: correct, with 8 gradients\n")],
    "plans.py": [("", "f16-f16-kn-64x16-c1w-q16-relu: correct; the best tile of 4096 each is ")],
    "resnet_block.py": [("", "result and 9 gradients agree with torch's on the interpreter\n")],
    "row_sum.py": [
        ("", "torch tensors as they are: correct\na static layout: correct\nanother shape is refused: argument x"),
        ("--m 1 --n 3", "torch tensors as they are: correct\na static layout: correct\n"),
        ("--m 3 --n 128", "torch tensors as they are: correct\na static layout: correct\n"),
    ],
    "train_tiny_transformer.py": [("--steps 2", "step 1: loss ")],
    "slow_transpose.py": [("", "rows of 32 elements: correct, slow\nrows of 33 elements: correct, fast\n")],
    "yielding_product.py": [
        ("", "three products, 2 compiled functions: correct\n"),
        ("--m 64 --n 32 --k 1", "three products, 2 compiled functions: correct\n"),
    ],
    "tv_layout.py": [("", "layout: (32,1):(1,0)\ntiler: (32,)\ngx: tensor<ptr<f32, gmem> o ((1,32),(?,?)):")],
}
"""Program -> its arguments and how its output begins."""

WITHOUT_DEVICE = (
    "all_reduce_one_shot.py",
    "tensor_parallel_mlp.py",
    "tensor_parallel_rows.py",
    "blackwell_mixed_gemm.py",
    "blackwell_scaled_gemm.py",
    "blackwell_sparse_gemm.py",
    "call_from_c.py",
    "descriptors.py",
    "dynamic_tiles.py",
    "gather_rows.py",
    "geforce_scaled_gemm.py",
    "layouts.py",
)


SLOW = (
    "tensor_parallel_mlp.py",
    "tensor_parallel_rows.py",
    "blackwell_attention.py",
    "blackwell_mixed_gemm.py",
    "blackwell_scaled_gemm.py",
    "blackwell_sparse_gemm.py",
    "gemm_parts.py",
    "geforce_scaled_gemm.py",
    "matmul_ladder.py",
    "mixture_of_experts.py",
    "plans.py",
    "resnet_block.py",
    "train_tiny_transformer.py",
    "transformer_block.py",
)


def test_every_example_is_run() -> None:
    assert sorted(RUNS) == sorted(p.name for p in EXAMPLES.glob("*.py") if p.name != "lit.cfg.py")


@pytest.mark.sample(every=4)
@pytest.mark.parametrize(
    "name, arguments, output",
    [pytest.param(n, a, o, marks=[pytest.mark.slow] if n in SLOW else []) for n, runs in RUNS.items() for a, o in runs],
    ids=lambda x: x[:40] or "-",
)
def test_example(
    name: str, arguments: str, output: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    device = [] if name in WITHOUT_DEVICE else ["--device", "cpu"]
    monkeypatch.setattr(sys, "argv", [name, *arguments.split(), *device])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert capsys.readouterr().out.startswith(output)


NUMBERS = {
    "all_reduce_one_shot.py": "ranks size calls", "blackwell_attention.py": "heads queries keys",
    "blackwell_gemm.py": "m n k", "blackwell_mixed_gemm.py": "m n k", "blackwell_scaled_gemm.py": "m n k",
    "descriptors.py": "n",
    "elementwise_add.py": "m n", "geforce_scaled_gemm.py": "m n k", "gemm_parts.py": "m n k", "gemm_sm90.py": "m n k",
    "hello.py": "n", "hopper_gemm.py": "m n k", "matmul_ladder.py": "m n k", "row_sum.py": "m n",
    "yielding_product.py": "m n k", "blackwell_sparse_gemm.py": "m n k", "gather_rows.py": "rows columns",
    "tensor_parallel_rows.py": "ranks tokens features hidden", "tensor_parallel_mlp.py": "ranks tokens features hidden",
}  # fmt: skip
"""Example -> its options that must be at least 1."""


OTHERS = {
    "all_reduce_one_shot.py": ["--seed=-1", "--schedule=nope"],
    "blackwell_sparse_gemm.py": ["--m=-128", "--m=64", "--m=1099511627776", "--schedule=nope"],
    "gather_rows.py": ["--rows=1099511627776", "--columns=1099511627776"],
    "tensor_parallel_rows.py": [
        "--ranks=33",
        "--tokens=1000000000",
        "--features=100000",
        "--hidden=1",
        "--hidden=3",
        "--schedule=nope",
    ],
    "tensor_parallel_mlp.py": ["--ranks=33", "--tokens=3", "--features=100000000", "--hidden=3", "--schedule=nope"],
    "gemm_sm90.py": ["--tile=0,0", "--tile=a", "--tile=64", "--cluster=0,1", "--cluster=4,4", "--k=70"],
    "blackwell_gemm.py": ["--m=130", "--n=72", "--k=70", "--schedule=nope"],
    "gemm_parts.py": ["--m=70"],
    "hopper_gemm.py": ["--tile=1,2", "--tile=64,128,64", "--tile=192,256,64", "--n=130"],
    "train_tiny_transformer.py": ["--steps=-1"],
}
"""Example -> other wrong options."""


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("name", sorted({*NUMBERS, *OTHERS}))
def test_wrong_options_are_reported_in_one_line(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [f"--{x}={n}" for x in NUMBERS.get(name, "").split() for n in (0, -1)]
    options += OTHERS.get(name, [])
    for option in options:
        monkeypatch.setattr(sys, "argv", [name, option])
        with pytest.raises(SystemExit) as e:
            runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        assert e.value.code == 2
        last = capsys.readouterr().err.splitlines()[-1]
        assert last.startswith(f"{name}: error: ") and option.partition("=")[0] in last


def test_a_gemm_too_large_to_interpret_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["gemm_sm90.py", "--m", "8192", "--n", "8192", "--k", "8192"])
    with pytest.raises(SystemExit, match=r"would take about 2\.3 hours\.\nUse a smaller size \(--m 512"):
        runpy.run_path(str(EXAMPLES / "gemm_sm90.py"), run_name="__main__")


def test_a_stream_may_be_left_out() -> None:
    """A function compiled with a placeholder stream uses the current stream if a call passes none."""
    import torch

    row_sum = runpy.run_path(str(EXAMPLES / "row_sum.py"))["row_sum"]
    x, out = torch.ones(3, 8), torch.zeros(3)
    compiled = cute.compile(row_sum, x, out, cute.runtime.make_fake_stream(), device="cpu")
    compiled(x, out)
    assert (out == 8).all()
    with pytest.raises(cute.LaunchError, match=r"row_sum\(\) needs 3 arguments \(x, out, stream\), got 1"):
        compiled(x)


def test_mismatched_shapes_are_reported_by_shape() -> None:
    """A matrix of another width also has other strides, but the error reports the shape, which the user can fix."""
    import torch

    row_sum = runpy.run_path(str(EXAMPLES / "row_sum.py"))["row_sum"]
    x, out = (cute.from_dlpack(t) for t in (torch.ones(4, 8), torch.zeros(4)))
    compiled = cute.compile(row_sum, x, out, device="cpu")
    with pytest.raises(cute.ShapeError) as e:
        compiled(cute.from_dlpack(torch.ones(4, 32)), out)
    assert str(e.value).startswith("argument x, mode 1: expected extent 8, got 32")
    assert "compiled for shape (4, 8), but this array has shape (4, 32)" in str(e.value)
    assert "from_dlpack(x).mark_layout_dynamic()" in str(e.value)
