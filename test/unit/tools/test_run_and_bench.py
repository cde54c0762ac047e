"""``cute-run`` and ``cute-bench``: output, and errors as one message with exit status 1."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from pipelines_support import PLAIN, FakeDriver, add_module, kernel, module, tensor_of
from programs import run

from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines.compilation import Compilation
from cute_dialect.runtime import driver as cuda
from cute_dialect.runtime.artifact import CodeObject
from cute_dialect.tools import cute_bench, cute_run
from cute_dialect.tools.check_expressions import CheckError
from cute_dialect.tools.run_check import check
from cute_dialect.tools.run_inputs import SpecError, Tensor, make_arguments

M = "!llvm.struct<(ptr<1>, struct<(struct<(i32, i32)>, i32)>)>"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a compiled folder of the elementwise add whose kernels only write one number."""
    return compile_cute(add_module(), keep_stages=True).save(tmp_path_factory.mktemp("c") / "add")


class AddGpu(FakeDriver):
    """A fake GPU that runs @add and @add_v. With ``stray`` they write one element past the end."""

    stray = False

    def run(self, record: dict[str, object]) -> None:
        a, b, c = (tensor_of(p) for p in record["parameters"])  # type: ignore[attr-defined]
        c[...] = a + b
        if self.stray:
            np.lib.stride_tricks.as_strided(c, (c.shape[0], c.shape[1] + 1))[0, -1] = 0

    def new_event(self) -> int:
        return 1

    def record(self, event: int, stream: int = 0) -> None:
        return

    def elapsed(self, start: int, end: int) -> float:
        return 12.5


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> AddGpu:
    fake = AddGpu()
    fake.kernels = {"add": fake.run, "add_v": fake.run}
    monkeypatch.setattr(cuda, "driver", lambda: fake)
    return fake


# ------------------------------------------------------------------------------------------------------------- runs


def test_output_of_a_run(compiled: str, gpu: AddGpu, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, out, err = run(
        capsys,
        compiled,
        "--kernel",
        "add",
        "--in",
        "17x128:ld=132",
        "--in",
        "b=17x128=arange",
        "--check",
        "c == a + b",
        "--check",
        "add",
        "--out",
        f"c={tmp_path / 'c.npy'}",
    )
    assert (status, err) == (0, "")
    assert f"@add_v of {compiled} for sm_90a on fake GPU" in out
    assert len(gpu.launches) == 1 + 5  # One launch for the results, then five timed launches.
    assert "grid    (2, 1, 1), block (128, 1, 1)" in out and "12.5 us (median of 5 launches)" in out
    assert re.search(r"a +\(17, 128\):\(132, 1\) float32, read; min -", out)
    assert re.search(r"c +\(17, 128\):\(128, 1\) float32, written", out)
    assert "check   c == a + b: ok, 2176 elements equal" in out
    saved = np.load(tmp_path / "c.npy")
    assert saved.shape == (17, 128) and saved.dtype == np.float32
    status, out, _ = run(capsys, compiled, "--kernel", "launch", "--in", "17x129", "-q")
    assert (status, out) == (0, "") and gpu.launches[-1]["kernel"] == "add"


def test_a_file_is_compiled_for_the_gpu(
    gpu: AddGpu, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machine code is generated only after the arguments are checked."""
    file = tmp_path / "add.mlir"
    file.write_text(add_module())
    made: list[str] = []
    to_code = Compilation.to_code

    def counted(work: Compilation, *rest: Any) -> tuple[CodeObject, ...]:
        made.append(work.name)
        return to_code(work, *rest)

    monkeypatch.setattr(Compilation, "to_code", counted)
    arguments = (str(file), "--no-cache", "--kernel", "add", "--in", "17x128", "--in")
    assert run(capsys, *arguments, "4y8")[0] == 1
    assert run(capsys, *arguments, "17x128x2")[0] == 1
    assert made == [] and gpu.launches == []
    status, out, err = run(capsys, *arguments, "17x128", "--check", "c == a + b")
    assert (status, err) == (0, "") and "check   c == a + b: ok, 2176 elements equal" in out
    assert made == [str(file)] and gpu.launches


def test_npy_files_are_inputs(compiled: str, gpu: AddGpu, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.save(tmp_path / "a.npy", a)
    status, _, err = run(
        capsys,
        compiled,
        "--kernel=add",
        "--in",
        f"a={tmp_path / 'a.npy'}",
        "--in",
        "b=3x4=ones",
        "--out",
        f"c={tmp_path / 'c.npy'}",
    )
    assert (status, err) == (0, "")
    assert np.array_equal(np.load(tmp_path / "c.npy"), a + 1)


def test_a_failed_check_and_a_stray_write_fail_the_run(
    compiled: str, gpu: AddGpu, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = run(capsys, compiled, "--kernel", "add", "--in", "4x8", "--in", "4x8", "--check", "c == a - b")
    assert status == 1 and "check 'c == a - b' failed: 32 of 32 elements differ, the first at (0, 0): got" in err
    gpu.stray = True
    status, _, err = run(capsys, compiled, "--kernel", "add", "--in", "4x8", "--in", "c=4x8=poison:ld=9")
    assert status == 1 and "4 bytes outside c were written" in err


def test_list(compiled: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, compiled, "--list")
    assert status == 0 and "@add  (launched by @launch)\n    tried first: @add_v\n    a: !cute.memref<f32" in out


def test_host_functions_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "host.mlir"
    file.write_text(
        """module {
  llvm.mlir.global internal constant @fmt("%d\\0A\\00") {addr_space = 0 : i32}
  llvm.func @printf(!llvm.ptr, ...) -> i32
  func.func @main() {
    %c = arith.constant 42 : i32
    %f = llvm.mlir.addressof @fmt : !llvm.ptr
    %x = llvm.call @printf(%f, %c) vararg(!llvm.func<i32 (ptr, ...)>) : (!llvm.ptr, i32) -> i32
    return
  }
}
"""
    )
    assert cute_run.main([str(file), "--host"]) == 0
    assert capfd.readouterr().out == "42\n"
    assert cute_run.main([str(file), "--host", "other"]) == 1
    assert "no host function @other to run" in capfd.readouterr().err


# ------------------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            ("--kernel", "nix", "--in", "4x8"),
            "no kernel or host function @nix in this module (known: add, add_v, launch)",
        ),
        (("--kernel", "add"), 'parameter a (!cute.memref<f32, gmem, "(?,?):(?,1)">) needs an array'),
        (("--kernel", "add", "--in", "4y8"), "expected a shape like 64x4096xf32 or a .npy file, got '4y8'"),
        (("--kernel", "add", "--in", "4x8xf99"), "'f99' is not an element type; write a shape like 64x4096xf32"),
        (("--kernel", "add", "--in", "4x8=sevens"), "unknown option 'sevens' (known: randn rand"),
        (("--kernel", "add", "--in", "4x8:ld=7"), "ld=7 is less than the row length 8"),
        (("--kernel", "add", "--in", "z=4x8"), "unknown parameter 'z' (parameters: a, b, c)"),
        (("--kernel", "add", "--in", "a=4x8", "--in", "a=4x8"), "parameter a is given twice"),
        (("--kernel", "add", "--in", "4x8", "--in", "4x8", "--in", "4x8", "--in", "4x8"), "kernel takes 3 (a, b, c)"),
        (("--kernel", "add", "--in", "missing.npy"), "cannot read missing.npy: No such file or directory"),
        (("--kernel", "add", "--in", "4x8x2"), "argument a expects an array of rank 2, got shape (4, 8, 2)"),
        (("--kernel", "add", "--in", "4x8xf16"), "argument a expects elements of f32, got f16"),
        (("--kernel", "add", "--in", "4x8:strides=1,4"), "argument a, mode 1: expected stride 1, got 4 elements"),
        (("--kernel", "add_v", "--in", "4x8:offset=1"), "argument a: expected an address that is a multiple of 16"),
        (("--kernel", "add_v", "--in", "4x9"), "expected a multiple of 4 elements, got 9"),
        (("--kernel", "add", "--in", "4x8", "--grid", "one"), "expected up to three numbers like 8,1,1, got 'one'"),
        (("--kernel", "add", "--chip", "90a"), "--chip: expected sm_<number>, e.g. sm_90a, got '90a'"),
        (("--kernel", "add", "--in", "4x8", "--block", "64"), "compiled for blocks of (128, 1, 1), got (64, 1, 1)"),
        (("--kernel", "add", "--in", "4x8", "--out", "d=x.npy"), "--out: expected NAME=FILE.npy"),
        (("--kernel", "add", "--in", "4x8", "--check", "c == q"), "unknown argument 'q'"),
        (("--kernel", "add", "--in", "4x8", "--check", "c =="), "cannot read the expression"),
        (("--kernel", "add", "--in", "4x8", "--check", "c + a"), "the expression is not a comparison"),
    ],
)
def test_errors(
    compiled: str, gpu: AddGpu, capsys: pytest.CaptureFixture[str], args: tuple[str, ...], said: str
) -> None:
    status, _, err = run(capsys, compiled, *args)
    assert status == 1 and said in err and err.startswith("cute-run: error: ") and err.count("\n") == 1


def test_errors_in_the_file_have_positions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bad.mlir"
    for text, said in (
        ("module {\n  foo.bar\n}\n", f"{file}:2:3: error: "),
        ('module {\n  func.func @f(%a: !cute.shape<"(1,">) {\n    return\n  }\n}\n', f"{file}:2:"),
        ("module {\n  %0 = arith.addi %x, %x : i32\n}\n", f"{file}:2:"),
    ):
        file.write_text(text)
        status, _, err = run(capsys, str(file))
        assert status == 1 and err.startswith(said)
    status, _, err = run(capsys, str(tmp_path / "none.mlir"))
    assert status == 1 and err == f"{tmp_path / 'none.mlir'}: error: cannot read it: No such file or directory\n"
    (tmp_path / "empty").mkdir()
    status, _, err = run(capsys, str(tmp_path / "empty"))
    assert status == 1 and "is not a compiled module" in err


def test_ambiguous_kernels_are_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two = compile_cute(module(kernel("x", [PLAIN], [M]) + kernel("y", [PLAIN], [M])), emit="ptx").save(tmp_path / "two")
    status, _, err = run(capsys, two, "--in", "4x8")
    assert status == 1 and "choose a kernel with --kernel=NAME (available: x, y)" in err
    status, _, err = run(capsys, two, "--kernel", "x", "--in", "4x8", "--device", "cpu")
    assert status == 1 and "no host function launches @x: pass grid=" in err


def test_missing_gpu_is_reported(
    compiled: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> None:
        raise cuda.NoGpuError("no GPU: not here")

    monkeypatch.setattr(cuda, "driver", none)
    status, _, err = run(capsys, compiled, "--kernel", "add", "--in", "4x8", "--device", "gpu")
    assert (status, err) == (1, "cute-run: error: no GPU: not here\n")


def test_bench_reports_missing_torch(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    assert cute_bench.main(["elementwise_add", "--run", "nowhere"]) == 1
    assert "measuring needs torch" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------------ check, inputs


def test_check_expressions() -> None:
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    bf = a.astype(ml_dtypes.bfloat16)
    values = {"a": a, "b": a.T, "h": bf, "x": 3, "n": np.array([np.nan, 1.0]), "m": np.array([np.nan, 2.0])}
    for good in (
        "a == a",
        "b == a.T",
        "a @ b == a @ a.T",
        "allclose(a, a + 1e-9)",
        "a[0, 1:] == a[0][1:]",
        "x == 3",
        "a >= 0",
        "f32(h) == a",
        "h + h == h * like(2, h)",
        "n[0:1] == m[0:1]",
        "sum(a) == 15",
        "a == a and x < 4",
        "maximum(a, -a) == abs(a)",
        "like(a, h) == h",
        "where(a > 2, a, 0)[1] == a[1]",
        "not (a < 0)",
        "-a == 0 - a",
    ):
        assert check(good, values, ["a", "b"]).ok, good
    for bad, said in (
        ("a == a + 1", "6 of 6 elements differ, the first at (0, 0): got 0.0, expected 1.0"),
        ("n == m", "1 of 2 elements differ, the first at (1,): got 1.0, expected 2.0"),
        ("a == b", "shapes differ: (2, 3) and (3, 2)"),
        (
            "allclose(a, a + (a > 4), rtol=0)",
            "1 of 6 elements are not close, the first at (1, 2): got 5.0, expected 6.0",
        ),
        ("a > 0", "fails for 1 of 6 elements, the first at (0, 0)"),
        ("a == a and a > 1", "fails for 2 of 6"),
    ):
        result = check(bad, values, ["a", "b"])
        assert not result.ok and said in result.detail
    assert check("gemm", {"a": a, "b": a, "c": a @ a.T}, ["a", "b", "c"]).detail == "4 elements close"


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "a.__class__",
        "a.dtype",
        "open('x')",
        "[a for a in b]",
        "lambda: a",
        "a ** 9999999",
        "'x' == a",
        "(a := 3) == a",
        "a if a else a",
        "f'{a}' == a",
        "sum.__globals__",
        "sum(a, out=a) == a",
        "a" * 3000,
        "(" * 500 + ")" * 500,
        "a @ a == a",
    ],
)
def test_check_expressions_cannot_reach_python(text: str) -> None:
    with pytest.raises(CheckError):
        check(text, {"a": np.ones((2, 3))}, ["a"])


def params(*elements: str) -> list[dict[str, object]]:
    return [{"kind": "memref", "type": "t", "lowered": M, "size": 24, "align": 8, "element": e} for e in elements]


def test_inputs_have_their_strides_padding_and_guards() -> None:
    a, b = make_arguments(params("f32", "bf16"), ["a", "b"], ["5x7:ld=9:offset=3"], seed=1)  # type: ignore[arg-type]
    assert isinstance(a, Tensor) and isinstance(b, Tensor)
    assert (a.array.shape, a.array.strides, a.array.ctypes.data % 16) == ((5, 7), (36, 4), 12)
    assert b.array.shape == (5, 7) and b.array.dtype.name == "bfloat16" and b.array.ctypes.data % 256 == 0
    assert np.isnan(b.array.astype(np.float32)).all() and not np.isnan(a.array).any()
    assert a.outside_written() == 0
    a.array[...] = 0
    assert a.outside_written() == 0
    a.storage[-1] = 0
    np.lib.stride_tricks.as_strided(a.array, (5, 8), (36, 4))[2, 7] = 1
    assert a.outside_written() == 8


def test_inputs_repeat_with_the_seed() -> None:
    one = make_arguments(params("f32"), ["a"], ["4x4"], seed=1)[0]
    two = make_arguments(params("f32"), ["a"], ["4x4"], seed=1)[0]
    assert isinstance(one, Tensor) and isinstance(two, Tensor) and np.array_equal(one.array, two.array)


def test_initial_contents() -> None:
    kinds = {"zeros": 0.0, "ones": 1.0, "const=2.5": 2.5}
    for text, value in kinds.items():
        (t,) = make_arguments(params("f16"), ["a"], [f"3x3:{text}"], seed=0)  # type: ignore[arg-type]
        assert isinstance(t, Tensor) and (t.array == value).all()
    (t,) = make_arguments(params("ui8"), ["a"], ["2x2=randint"], seed=0)  # type: ignore[arg-type]
    assert isinstance(t, Tensor) and t.array.dtype == np.uint8
    with pytest.raises(SpecError, match="GiB exceed the limit"):
        make_arguments(params("f32"), ["a"], ["999999x999999"], seed=0)  # type: ignore[arg-type]
