"""A missing program, a wrong setting or an unwritable folder is reported early, with its remedy."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from cute_dialect.errors import CompileError
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines import ptxas
from cute_dialect.runtime import settings
from cute_dialect.runtime.artifact import ArtifactError
from cute_dialect.runtime.settings import SettingError
from cute_dialect.tools.cute_bench import main as cute_bench
from cute_dialect.tools.cute_opt import main as cute_opt
from cute_dialect.tools.cute_run import main as cute_run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ADD = str(EXAMPLES / "elementwise_add.mlir")
BLOCK = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Block())
"""


def without(names: tuple[str, ...], program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program and its child processes in a Python without these packages."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text(BLOCK.format(names=names))
        environment = {**os.environ, "CUTE_CACHE": "0", "PYTHONPATH": folder}
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


RUN = "import sys\nfrom cute_dialect.tools.{0} import main\nsys.exit(main(sys.argv[1:]))"


@pytest.mark.slow
def test_without_mlir() -> None:
    done = without(("mlir",), RUN.format("cute_opt"), ADD, "--pipeline", "--emit=ptx")
    assert done.returncode == 1 and "pip install" in done.stderr and "Traceback" not in done.stderr
    done = without(
        ("mlir",),
        "from cute_dialect.pipelines import compile\n"
        "import sys\n"
        "try: compile(sys.argv[1])\n"
        "except Exception as e: print(type(e).__name__, e)",
        ADD,
    )
    assert done.stdout.startswith("LoweringError error: ") and "pip install" in done.stdout, done.stderr
    done = without(
        ("mlir",), RUN.format("cute_run"), ADD, "--kernel=add", "--device=cpu", "--in=4x8", "--check=add", "-q"
    )
    assert (done.returncode, done.stderr) == (0, "")  # The CPU needs no chip.
    for arguments in (("gemm", "--build", "/nowhere/x"), ("opt",)):
        done = without(("mlir",), RUN.format("cute_bench"), *arguments)
        assert done.returncode == 1 and done.stderr.startswith("cute-bench: error: ") and "pip install" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.end_to_end
def test_without_xdsl(tmp_path: Path) -> None:
    """Without xDSL a compiled kernel can be loaded and its launch planned; compiling reports the missing package."""
    compile_cute(ADD, save=tmp_path / "add", emit="ptx")
    done = without(("xdsl", "mlir"), RUN.format("cute_run"), str(tmp_path / "add"), "--list")
    assert done.returncode == 0 and done.stdout.startswith("@add "), done.stderr
    done = without(
        ("xdsl", "mlir"), RUN.format("cute_run"), str(tmp_path / "add"), "--kernel=add", "--device=cpu", "--in=4x8"
    )
    assert done.returncode == 1
    assert done.stderr == "cute-run: error: xdsl is not installed: pip install 'xdsl==0.74.*'\n"
    done = without(("xdsl",), RUN.format("cute_run"), ADD, "--kernel=add", "--device=cpu", "--in=4x8")
    said = "xdsl is not installed: pip install 'xdsl==0.74.*'\n"
    assert (done.returncode, done.stderr) == (1, f"error: {said}")
    done = without(("xdsl",), RUN.format("cute_opt"), ADD)
    assert (done.returncode, done.stderr) == (1, f"cute-opt: error: {said}")
    program = "import cute_dialect.pipelines as p\ntry: p.compile('module {}')\nexcept Exception as e: print(repr(e))"
    assert without(("xdsl",), program).stdout == f'LoweringError("error: {said.strip()}")\n'


@pytest.mark.slow
def test_without_numpy(tmp_path: Path) -> None:
    """Without numpy kernels can be compiled and listed; only arrays need it."""
    compile_cute(ADD, save=tmp_path / "add", emit="ptx")
    done = without(("numpy", "ml_dtypes"), RUN.format("cute_run"), str(tmp_path / "add"), "--list")
    assert done.returncode == 0, done.stderr
    for path in (ADD, str(tmp_path / "add")):
        done = without(("numpy", "ml_dtypes"), RUN.format("cute_run"), path, "--kernel=add", "--device=cpu", "--in=4x8")
        assert done.returncode == 1
        assert done.stderr == "cute-run: error: numpy is not installed: pip install 'numpy>=1.26'\n"


def test_benchmarks_report_missing_torch_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from cute_dialect.tools.cute_bench import CASES

    monkeypatch.setitem(sys.modules, "torch", None)  # type: ignore[arg-type]
    for name in CASES:
        for more in ([], ["--run", str(tmp_path)], ["--build", "/nowhere/x", "--run", "x"]):
            assert cute_bench([name, *more]) == 1
            said = "cute-bench: error: measuring needs torch (pip install torch); to compile only, use --build\n"
            assert capsys.readouterr() == ("", said)


def test_missing_benchmark_folder_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    torch = SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: True))
    monkeypatch.setitem(sys.modules, "torch", torch)  # type: ignore[arg-type]
    assert cute_bench(["gemm", "--run", "/nowhere/x"]) == 1
    said = "cute-bench: error: --run: folder '/nowhere/x' does not exist; create it with --build\n"
    assert capsys.readouterr().err == said


# -------------------------------------------------------------------------------------------------------------- ptxas


def program(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def no_ptxas(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = os.access
    monkeypatch.setattr(ptxas.os, "access", lambda p, m: not str(p).endswith("/bin/ptxas") and real(p, m))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUTE_PTXAS", raising=False)


def test_without_ptxas(no_ptxas: None, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    made = compile_cute(ADD, cache=False)
    assert made.ptx and made.report.startswith(f"not assembled: {ptxas.INSTALL_HINT}")
    with pytest.raises(CompileError) as e:
        compile_cute(ADD, cache=False, emit="cubin")
    assert str(e.value) == f"error: {ptxas.INSTALL_HINT}"
    assert cute_opt([ADD, "--pipeline=base", "-base-prepare", "-one-shot-convert-to-llvm", "-attach-nvvm-target",
                     "--emit-gpu-binary=compilation-target=bin", "-o", str(tmp_path / "o")]) == 1  # fmt: skip
    said = capsys.readouterr().err
    assert f"emit-gpu-binary: compilation-target=bin needs a ptxas: {ptxas.INSTALL_HINT}" in said, said
    assert "internal error" not in said


@pytest.mark.slow
def test_invalid_ptxas_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "ptxas"
    for text, said in (
        ("not a program", f"cannot run {path}: Exec format error; set CUTE_PTXAS to another ptxas"),
        ("#!/bin/sh\nexit 0\n", f"{path} wrote no cubin; it may not be a ptxas"),
        ("#!/bin/sh\nexit 3\n", "ptxas unknown for sm_90a: exited with status 3 and printed nothing"),
        ("#!/bin/sh\necho ptxas fatal: no licence >&2; exit 1\n", "ptxas unknown for sm_90a: ptxas fatal: no licence"),
    ):
        monkeypatch.setenv("CUTE_PTXAS", program(path, text))
        ptxas.version.cache_clear()
        with pytest.raises(CompileError) as e:
            compile_cute(ADD, cache=False)
        assert str(e.value) == f"{ADD}: error: {said}"
    ptxas.version.cache_clear()


def test_a_disk_without_room_for_ptxas(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> object:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/tmp/x")

    monkeypatch.setattr("tempfile.TemporaryDirectory", full)
    with pytest.raises(CompileError) as e:
        compile_cute(ADD, cache=False)
    assert str(e.value) == (
        f"{ADD}: error: cannot write the PTX to a temporary folder: No space left on device; free some space, or "
        "set TMPDIR to another folder"
    )


# --------------------------------------------------------------------------------------------------- disks and folders


@pytest.mark.sample("28")
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """If the disk is full at any step of a write, the old folder is unchanged and no other files remain."""
    made = compile_cute(ADD, emit="ptx", cache=False)
    target = tmp_path / "add"
    made.save(target)
    before = {p.name: p.read_bytes() for p in target.iterdir()}
    for name in ("mkdir", "chmod", "rename"):
        for at in range(3):
            calls = iter(range(99))

            def fail(*args: object, real: object = getattr(os, name), stop: int = at, **options: object) -> object:
                if next(calls) == stop:  # noqa: B023
                    raise OSError(code, os.strerror(code))
                return real(*args, **options)  # type: ignore[operator]

            with monkeypatch.context() as m:
                m.setattr(os, name, fail)
                try:
                    made.save(target)
                except ArtifactError as e:
                    assert str(e).startswith(f"cannot write {target}: {os.strerror(code)}; ")
            assert {p.name: p.read_bytes() for p in target.iterdir()} == before
            assert os.listdir(tmp_path) == ["add"]


# ----------------------------------------------------------------------------------------------------- the environment

SWITCH = "expected one of 1, on, true, yes, 0, off, false, no"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("CUTE_CACHE", "maybe", f"CUTE_CACHE: {SWITCH}, got 'maybe'"),
        ("CUTE_CACHE", "2", f"CUTE_CACHE: {SWITCH}, got '2'"),
        ("CUTE_CACHE_DIR", ADD, f"CUTE_CACHE_DIR: expected a folder, got '{ADD}', which is not a folder"),
        ("CUTE_CACHE_SIZE", "lots", "CUTE_CACHE_SIZE: expected a size in bytes such as 500M (K, M or G), got 'lots'"),
        ("CUTE_CACHE_SIZE", "-1", "CUTE_CACHE_SIZE: expected a size in bytes such as 500M (K, M or G), got '-1'"),
        ("CUTE_CACHE_SIZE", "1.5G", "CUTE_CACHE_SIZE: expected a size in bytes such as 500M (K, M or G), got '1.5G'"),
        ("CUTE_CACHE_SIZE", "5T", "CUTE_CACHE_SIZE: expected a size in bytes such as 500M (K, M or G), got '5T'"),
        ("CUTE_CACHE_SIZE", "٣", "CUTE_CACHE_SIZE: expected a size in bytes such as 500M (K, M or G), got '٣'"),
        ("CUTE_CACHE_SIZE", " ", "CUTE_CACHE_SIZE: expected a size in bytes such as 500M (K, M or G), got ' '"),
        ("CUTE_PTXAS", "/nowhere/ptxas", "CUTE_PTXAS: expected a program, got '/nowhere/ptxas', which does not exist"),
        ("CUTE_PTXAS", "/", "CUTE_PTXAS: expected a program, got '/', which is not a file"),
        ("CUTE_PTXAS", ADD, f"CUTE_PTXAS: expected a program, got '{ADD}', which is not executable (chmod +x)"),
    ],
)  # fmt: skip
def test_variables_of_compiling(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, value: str,
    said: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("CUTE_CACHE", "1")
    monkeypatch.setenv(name, value)
    unseen = tmp_path / "add.mlir"  # Neither this process nor the cache knows this file.
    unseen.write_text(f"// {tmp_path}\n{Path(ADD).read_text()}")
    with pytest.raises(SettingError) as e:
        compile_cute(unseen)
    assert str(e.value) == said
    assert cute_run([str(unseen), "--kernel=add", "--device=cpu", "--in=4x8"]) == 1
    assert capsys.readouterr().err == f"cute-run: error: {said}\n"


def test_other_variables(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from cute_dialect.op.execute import kernel_cache
    from cute_dialect.op.select import kernel_choice

    monkeypatch.setenv("CUTE_OPT_TRACEBACK", "perhaps")
    assert cute_opt([ADD]) == 1
    assert capsys.readouterr().err == f"cute-opt: error: CUTE_OPT_TRACEBACK: {SWITCH}, got 'perhaps'\n"
    monkeypatch.setenv("CUTE_OPT_TRACEBACK", "0")
    assert cute_opt([ADD, "-o", os.devnull]) == 0
    monkeypatch.setenv("CUTE_KERNELS", "/nowhere/k")
    with pytest.raises(
        SettingError, match=r"^CUTE_KERNELS: expected a folder, got '/nowhere/k', which does not exist$"
    ):
        kernel_cache.load_or_compile("x", lambda: "")
    monkeypatch.setenv("CUTE_CONFIG_DIR", ADD)
    with pytest.raises(SettingError, match=r"^CUTE_CONFIG_DIR: expected a folder, got '.*', which is not a folder$"):
        kernel_choice.table_path("H200")


def test_sizes_and_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert [settings.parse_size(t, "SIZE") for t in ("3G", "77", "2k", "0")] == [3 << 30, 77, 2048, 0]
    for name in ("X_DIR", "X_BASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    assert settings.user_folder("X_DIR", "X_BASE", ".x") == "/home/me/.x/cute-dialect"
    monkeypatch.setenv("X_BASE", "relative")  # The XDG specification ignores relative paths.
    assert settings.user_folder("X_DIR", "X_BASE", ".x") == "/home/me/.x/cute-dialect"
    monkeypatch.setenv("X_BASE", "/base")
    assert settings.user_folder("X_DIR", "X_BASE", ".x") == "/base/cute-dialect"
    monkeypatch.setenv("X_DIR", str(tmp_path / "new"))
    assert settings.user_folder("X_DIR", "X_BASE", ".x") == str(tmp_path / "new")


def test_every_variable_is_read_by_one_module() -> None:
    """``settings.py`` alone reads and documents environment variables."""
    root = Path(settings.__file__).resolve().parents[2]
    paths = [p for name in ("cute_dialect", "passes", "pipelines", "tools") for p in (root / name).rglob("*.py")]
    reads = re.compile(r"""environ(\.get\(|\[)["']CUTE_""")
    assert len(paths) > 200 and not [p for p in paths if reads.search(p.read_text())]
