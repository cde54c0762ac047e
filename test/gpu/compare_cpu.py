"""Bitwise comparison of the CPU interpreter and the GPU on the same compiled kernels and inputs.

python test/gpu/compare_cpu.py --build DIR        without a GPU: compile, interpret, save inputs and outputs
python test/gpu/compare_cpu.py --run DIR          on the GPU machine: run, compare, print a table
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

Arrays: TypeAlias = Callable[[np.random.Generator], list[np.ndarray]]


class Case(NamedTuple):
    """A kernel: its text, the host function or kernel to call, and its arrays. The last array is the output."""

    name: str
    text: Callable[[], str]
    call: str
    arrays: Arrays
    numbers: tuple[float, ...] = ()
    """Scalar arguments, passed after the arrays."""


def _matrix(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, *, integers: bool) -> np.ndarray:
    import ml_dtypes

    kind = getattr(ml_dtypes, dtype) if hasattr(ml_dtypes, dtype) else np.dtype(dtype)
    values = rng.integers(-4, 5, shape) if integers else rng.standard_normal(shape)
    return values.astype(kind)


def _gemm(
    m: int, n: int, k: int, dtype: str, out: str, *, integers: bool
) -> Callable[[np.random.Generator], list[np.ndarray]]:
    def arrays(rng: np.random.Generator) -> list[np.ndarray]:
        a, b = (_matrix(rng, (rows, k), dtype, integers=integers) for rows in (m, n))
        return [a, b, _matrix(rng, (m, n), out, integers=True)]

    return arrays


def cases() -> Iterator[Case]:
    """Return one case per family of kernels, on integers and on normally distributed data."""
    from cute_dialect.kernels.copies.transpose import transpose_text
    from cute_dialect.kernels.elementwise.add import elementwise_add_text
    from cute_dialect.kernels.gemm import gemm_text
    from cute_dialect.kernels.gemm.ampere import ampere_gemm_text
    from cute_dialect.kernels.gemm.config import GemmConfig
    from cute_dialect.kernels.gemm.few_rows import few_rows_text
    from cute_dialect.kernels.gemm.sgemm import sgemm_text
    from cute_dialect.kernels.rows.forward import row_text
    from cute_dialect.kernels.rows.sums import sum_text

    def pair(
        shape: tuple[int, int], out: tuple[int, ...], count: int, *, integers: bool
    ) -> Callable[..., list[np.ndarray]]:
        return lambda rng: [
            *(_matrix(rng, shape, "float32", integers=integers) for _ in range(count)),
            np.zeros(out, np.float32),
        ]

    fp8 = GemmConfig(element="f8E4M3FN", output="bf16", tile=(128, 256, 128))
    turns = GemmConfig(tile=(128, 128, 64), stages=6, cluster_m=1, deferred=False, schedule="pingpong")
    tf32 = GemmConfig(element="tf32", output="f32", tile=(128, 256, 32), deferred=False)
    for integers in (True, False):
        data = "integers" if integers else "normal"
        yield Case(f"add f32, {data}", elementwise_add_text, "add", pair((67, 260), (67, 260), 2, integers=integers))
        yield Case(
            f"transpose f32, {data}", transpose_text, "transpose", pair((72, 136), (136, 72), 1, integers=integers)
        )
        for op, out in (("sum", (9,)), ("softmax", (9, 1024))):
            if integers and op == "softmax":
                continue
            text = lambda op=op: (sum_text if op == "sum" else row_text)(op, "f32", 1024)  # noqa: E731
            yield Case(f"row {op} f32, {data}", text, op, pair((9, 1024), out, 1, integers=integers))
        yield Case(f"sgemm warptile, {data}", lambda: sgemm_text("warptile"), "sgemm",
                   lambda rng, i=integers: [_matrix(rng, (133, 68), "float32", integers=i),
                                            _matrix(rng, (68, 140), "float32", integers=i),
                                            np.zeros((133, 140), np.float32)])  # fmt: skip
        shape = (136, 264, 208)
        yield Case(
            f"gemm sm_80 f16, {data}", ampere_gemm_text, "gemm", _gemm(*shape, "float16", "float16", integers=integers)
        )
        for name, config, dtype, out in (
            ("f16", GemmConfig(), "float16", "float16"),
            ("f16, pingpong", turns, "float16", "float16"),
            ("bf16", GemmConfig(element="bf16", output="bf16"), "bfloat16", "bfloat16"),
            ("e4m3", fp8, "float8_e4m3fn", "bfloat16"),
            ("tf32", tf32, "float32", "float32"),
        ):
            text = lambda c=config: gemm_text(c)  # noqa: E731
            yield Case(f"gemm sm_90 {name}, {data}", text, "launch", _gemm(*shape, dtype, out, integers=integers))
        few = _gemm(72, 264, 720, "float16", "float16", integers=integers)
        yield Case(f"gemm sm_90 f16, few rows, {data}", few_rows_text, "launch", few)
        if not integers:
            for op in ("rmsnorm", "layernorm", "softmax"):
                text = lambda op=op: row_text(op, "f16", 32768)  # noqa: E731
                eps = () if op == "softmax" else (1e-5,)
                yield Case(f"row {op} f16 32768, {data}", text, op, _rows(op, 3, 32768), eps)


def _rows(op: str, rows: int, n: int) -> Arrays:
    def arrays(rng: np.random.Generator) -> list[np.ndarray]:
        x, y = (_matrix(rng, (rows, n), "float16", integers=False) for _ in range(2))
        weights = [
            _matrix(rng, (n,), "float16", integers=False) for _ in range({"rmsnorm": 1, "layernorm": 2}.get(op, 0))
        ]
        return [x, *weights, y]

    return arrays


def build(folder: str) -> None:
    """Compile every case, run it on the interpreter and save inputs and outputs."""
    from cute_dialect.pipelines import compile

    for i, case in enumerate(cases()):
        arrays = case.arrays(np.random.default_rng(i))
        module = compile(case.text(), filename=f"{i}.mlir")
        module.save(os.path.join(folder, str(i)))
        given = [a.copy() for a in arrays]
        module.kernel(case.call)(*given, *case.numbers, device="cpu")
        kept = {f"in{j}": a.view(np.uint8) for j, a in enumerate(arrays)} | {"out": given[-1].view(np.uint8)}
        np.savez(os.path.join(folder, f"{i}.npz"), **kept)
        with open(os.path.join(folder, f"{i}.txt"), "w", encoding="utf-8") as f:
            print(
                case.name,
                case.call,
                ",".join(map(str, case.numbers)),
                *[f"{a.dtype}:{'x'.join(map(str, a.shape))}" for a in arrays],
                sep="|",
                file=f,
            )
        print(case.name)


def run(folder: str) -> int:
    """Run on the GPU, compare, and return the number of integer cases that differ."""
    import torch

    from cute_dialect.runtime import load

    wrong = 0
    print("| kernel | elements | identical | largest difference |\n|---|---|---|---|")
    for i in sorted(int(f[:-4]) for f in os.listdir(folder) if f.endswith(".npz")):
        with open(os.path.join(folder, f"{i}.txt"), encoding="utf-8") as f:
            name, call, numbers, *types = f.read().strip().split("|")
        data = np.load(os.path.join(folder, f"{i}.npz"))

        def tensor(bits: np.ndarray, what: str) -> torch.Tensor:
            dtype, shape = what.split(":")
            whole = torch.from_numpy(bits.copy().reshape(-1)).cuda().view(getattr(torch, dtype))
            return whole.reshape([int(x) for x in shape.split("x")])

        arrays = [tensor(data[f"in{j}"], t) for j, t in enumerate(types)]
        expected = tensor(data["out"], types[-1]).double()
        load(os.path.join(folder, str(i))).kernel(call)(*arrays, *map(float, filter(None, numbers.split(","))))
        got = arrays[-1].double()
        same = float((got == expected).double().mean())
        largest = float((got - expected).abs().max())
        if "integers" in name and same != 1:
            wrong += 1
        print(f"| {name} | {got.numel()} | {100 * same:.2f} % | {largest:.1e} |")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--build", metavar="DIR")
    parser.add_argument("--run", metavar="DIR")
    options = parser.parse_args()
    if options.build:
        os.makedirs(options.build, exist_ok=True)
        build(options.build)
    if options.run:
        raise SystemExit(run(options.run))


if __name__ == "__main__":
    main()
