"""Exported operations: a Python package with a torch operator, and a file for ``cute-run``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from cute_dialect import op
from cute_dialect.op.epilogue import FakeTensor, relu, trace
from cute_dialect.tools import cute_run

torch = pytest.importorskip("torch")

WGMMA = op.MathInstruction([64, 64, 16], "f16", "f16", "f32")


def operation(**more: str) -> op.GemmOperationUniversal:
    plan = op.Gemm(**{"element": "f16", "layout": "row", **more})
    return plan.construct(op.TileDescription([64, 64, 64], 4, None, WGMMA))


def half(*shape: int) -> torch.Tensor:
    return torch.randint(-2, 3, shape, generator=torch.Generator().manual_seed(sum(shape))).half()


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["row", "column"])
def test_an_operator_of_torch(tmp_path: Path, layout: str) -> None:
    name = f"emitted_{layout}"
    package = op.emit.pytorch(operation(layout_C=layout), name, tmp_path, jit=True)
    assert package is not None
    a, b, c = half(40, 64), half(64, 72), half(40, 72)
    c = c if layout == "row" else c.mT.contiguous().mT
    product = a.double() @ b.double()
    run = getattr(torch.ops, name).run
    assert torch.equal(package.run(a, b).double(), product)
    assert torch.equal(run(a, b, c, 2.0, 0.5).double(), 2.0 * product + 0.5 * c.double())
    torch.library.opcheck(package.run, (a, b, c, 2.0, 0.5), test_utils=("test_schema", "test_faketensor"))
    x, y = a.clone().requires_grad_(), b.clone().requires_grad_()
    package.run(x, y, None, 2.0).sum().backward()
    assert torch.equal(x.grad.double(), 2.0 * b.double().sum(1).expand(40, -1))
    assert torch.equal(y.grad.double(), 2.0 * a.double().sum(0)[:, None].expand(-1, 72))
    with pytest.raises(
        op.UnsupportedError, match=(r"emit\.pytorch: 'no-name' is not a Python identifier; choose another name")
    ):
        op.emit.pytorch(operation(), "no-name", tmp_path)
    (tmp_path / name / "mine.txt").write_text("")
    with pytest.raises(op.UnsupportedError, match="contains other files; choose another name"):
        op.emit.pytorch(operation(), name, tmp_path)


def in_parts(**more: str) -> op.GemmOperationUniversal:
    plan = op.Gemm(**{"element": "f32", "layout": "row", **more})
    plan.math_operation = "multiply_add_fast_f32"
    return plan.construct({"threadblock_shape": [64, 64, 32], "cluster_shape": [1, 1, 1]})


@pytest.mark.slow
def test_emitted_torch_operator_with_split_f32(tmp_path: Path) -> None:
    package = op.emit.pytorch(in_parts(), "emitted_in_parts", tmp_path, jit=True)
    assert package is not None
    a, b, c = (torch.randn(s, generator=torch.Generator().manual_seed(1)) for s in ((40, 33), (33, 72), (40, 72)))
    exact = a.double() @ b.double()
    assert float((package.run(a, b).double() - exact).abs().max()) < 1e-5
    assert float((package.run(a, b, c, 2.0, 0.5).double() - 2 * exact - 0.5 * c).abs().max()) < 2e-5


@pytest.mark.end_to_end
@pytest.mark.sample("operation-layouts0")
@pytest.mark.parametrize("layouts", [("row", "row", "row"), ("column", "row", "column"), ("row", "column", "row")])
@pytest.mark.parametrize("make", [operation, in_parts])
def test_a_file_for_cute_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], layouts: tuple[str, str, str], make: Any
) -> None:
    """The command in the file's header runs and verifies the GEMM."""
    named = dict(zip(("layout_A", "layout_B", "layout_C"), layouts))
    text = op.emit.mlir(make(**named))
    file = tmp_path / "gemm.mlir"
    file.write_text(text)
    (line,) = [x.removeprefix("//").strip() for x in text.splitlines() if x.startswith("//   cute-run")]
    words = shlex.split(line.replace("FILE", str(file)))
    assert cute_run.main(words[1:]) == 0 and "gemm: ok" in capsys.readouterr().out


@pytest.mark.end_to_end
@pytest.mark.parametrize("recipe", ["row", "tensor"])
def test_a_file_with_scales_for_cute_run(tmp_path: Path, capsys: pytest.CaptureFixture[str], recipe: str) -> None:
    """The command passes the scales, and its check multiplies by them."""
    text = op.emit.mlir(op.ScaledGemm(element="f8E4M3FN", recipe=recipe).construct())
    file = tmp_path / "scaled.mlir"
    file.write_text(text)
    (line,) = [x.removeprefix("//").strip() for x in text.splitlines() if x.startswith("//   cute-run")]
    words = shlex.split(line.replace("FILE", str(file)))
    assert cute_run.main(words[1:]) == 0 and "elements close" in capsys.readouterr().out
    for letter in "de":
        wrong = [x.replace(f"* {letter}", f"* ({letter} + 1)") for x in words[1:]]
        assert cute_run.main(wrong) != 0


def test_a_file_with_another_epilogue_has_its_inputs() -> None:
    plan = op.Gemm(element="f16", layout="row")
    examples = {
        "accum": FakeTensor("f32", (64, 96)),
        "bias": FakeTensor("f32", (96,)),
        "C": FakeTensor("f16", (64, 96)),
    }
    plan.epilogue_visitor = trace(lambda accum, bias, C: relu(accum + bias) * C, examples)
    text = op.emit.mlir(plan.construct())
    (line,) = [x for x in text.splitlines() if x.startswith("//   cute-run")]
    assert line.endswith("--in d=96=randint") and "add --in for those that are missing" in text
