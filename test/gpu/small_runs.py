"""Small checked runs of every kernel of ``cute-bench all``, for compute-sanitizer."""

from __future__ import annotations

import os
import sys

import torch

from cute_dialect.runtime import load
from cute_dialect.tools.bench.cases.gemm import Runner, choices
from cute_dialect.tools.bench.cases.gemm import check as check_gemm


def close(out: torch.Tensor, exact: torch.Tensor, limit: float, what: str) -> None:
    error = float((out.double() - exact).abs().max())
    if not error <= limit:
        raise SystemExit(f"{what}: error {error:.2e}, expected at most {limit:.1e}")
    print(f"right: {what}")


def adds(folder: str) -> None:
    for name in sorted(os.listdir(folder)):
        dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[name.split("-")[0]]
        a, b = (torch.randn(37, 264, device="cuda").to(dtype) for _ in range(2))
        c = torch.full_like(a, float("nan"))
        load(os.path.join(folder, name)).kernel("add")(a, b, c)
        close(c, (a + b).double(), 0.0, f"add {name}")


def transposes(folder: str) -> None:
    types = {"f32": torch.float32, "f16": torch.float16, "i8": torch.int8, "f64": torch.float64}
    for name in sorted(os.listdir(folder)):
        a = torch.randn(72, 136, device="cuda").mul(50).to(types[name.split("-")[0]])
        b = torch.zeros(136, 72, device="cuda", dtype=a.dtype)
        load(os.path.join(folder, name)).kernel("transpose")(a, b)
        close(b, a.t().double(), 0.0, f"transpose {name}")


def sgemms(folder: str) -> None:
    for name in sorted(os.listdir(folder)):
        a, b = torch.randn(133, 68, device="cuda"), torch.randn(68, 140, device="cuda")
        c = torch.full((133, 140), float("nan"), device="cuda")
        load(os.path.join(folder, name)).kernel("sgemm")(a, b, c)
        close(c, a.double() @ b.double(), 1e-3, f"sgemm {name}")


def sm80(folder: str) -> None:
    for name in sorted(os.listdir(folder)):
        dtype = torch.float16 if name.startswith("f16") else torch.bfloat16
        majors = name.rsplit("-", 1)[1]
        for m, n, k in ((136, 264, 72), (65, 67, 33)):
            a = torch.randn(m, k, device="cuda").to(dtype)
            b = torch.randn(n, k, device="cuda").to(dtype)
            x = a if majors[0] == "k" else a.t().contiguous().t()
            y = b if majors[1] == "k" else b.t().contiguous().t()
            c = torch.full((m, n), float("nan"), device="cuda", dtype=dtype)
            load(os.path.join(folder, name)).kernel("gemm")(x, y, c)
            close(c, a.double() @ b.double().T, 0.3, f"gemm_sm80 {name} {m}x{n}x{k}")


def gemms(folder: str) -> None:
    for name, choice in choices().items():
        runner = Runner(choice, load(os.path.join(folder, name)))
        shape = (136, 520, 2048 if choice.parts > 1 else 208)
        if choice.skinny is not None:
            shape = (72, 520, 720)
        if choice.config.epilogue.active:
            fused(runner, name)
            continue
        for integers in (True, False):
            check_gemm(runner, shape, integers=integers, repeats=2)
        print(f"right: gemm {name} {shape}")


def fused(runner: Runner, name: str) -> None:
    a, b, bias = (torch.randn(*shape, device="cuda").half() for shape in ((136, 208), (520, 208), (520,)))
    out = torch.full((136, 520), float("nan"), device="cuda", dtype=torch.float16)
    runner(a, b, out, bias)
    exact = torch.nn.functional.gelu(a.double() @ b.double().T + bias.double())
    close(out, exact, 0.06, f"gemm {name}")


def rows(folder: str) -> None:
    from cute_dialect.tools.bench.cases.rows import CASES, Data

    for case in {c.folder: c for c in CASES}.values():
        small = case._replace(rows=5)
        data = Data(small, 5)
        data.check(load(os.path.join(folder, case.folder)).kernel(case.op))
        print(f"right: {small}")


def main() -> None:
    folder, *only = sys.argv[1:]
    torch.manual_seed(0)
    parts = {
        "elementwise_add": adds, "transpose": transposes, "sgemm": sgemms, "gemm_sm80": sm80, "gemm": gemms,
        "rows": rows,
    }  # fmt: skip
    for name, run in parts.items():
        if not only or name in only:
            run(os.path.join(folder, name))
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
