"""Compilation options as objects, strings and decorator arguments take effect or raise an error."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.errors import CompileError
from cute_dialect.runtime.launch_plan import LaunchError

X = np.zeros(32, np.float32)


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CUTE_DEVICE", raising=False)
    monkeypatch.setenv("CUTE_CHIP", "sm_90a")
    monkeypatch.setenv("CUTE_CACHE_DIR", str(tmp_path / "cache"))


@cute.kernel
def scale(x: cute.Tensor) -> None:
    i = cute.arch.thread_idx()[0]
    assert i < 32, "too far"
    x[i] *= 2


@cute.jit
def run(x: Any) -> None:
    scale(x).launch(grid=1, block=32)


@cute.jit(options="--opt-level 1 --generate-line-info --enable-assertions")
def careful(x: Any) -> None:
    scale(x).launch(grid=1, block=32)


def test_decorator_options_apply_to_each_specialization() -> None:
    made = cute.trace(careful, X).options
    assert (made.opt_level, made.lineinfo, made.assertions) == (1, True, True)
    k = cute.compile(careful, X)
    assert ".loc" in k.ptx and "__assertfail" in k.ptx
    assert ".loc" not in cute.compile(run, X).ptx
    own = cute.trace[cute.OptLevel(2), cute.GenerateLineInfo(False)](careful, X).options
    assert (own.opt_level, own.lineinfo, own.assertions) == (2, False, True)
    assert cute.trace(careful, X, options="-O3").options.opt_level == 3


def test_the_chip_and_ptxas() -> None:
    k = cute.compile[cute.GPUArch("sm_80"), cute.PtxasOptions("--maxrregcount 24")](run, X)
    assert (k.options.chip, k.options.ptxas) == ("sm_80", ("--maxrregcount", "24")) and ".target sm_80" in k.ptx
    assert cute.compile(run, X, options="--gpu-arch=sm_80 --ptxas-options='--maxrregcount 24'") is k
    plain = cute.compile(run, X, chip="sm_80")
    uncached = cute.compile(run, X, chip="sm_80", options="--ptxas-options=-dlcm=cg")  # Loads bypass L1.
    assert len({k.key, plain.key, uncached.key}) == 3 and uncached.cubin != plain.cubin
    with pytest.raises(CompileError, match="Unknown option '-nothing'"):
        cute.compile(run, X, options="--ptxas-options=--nothing").cubin  # noqa: B018


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("--fast", "options: unknown option '--fast'"),
        ("--keep-ptx=3", "options: unknown option '--keep-ptx=3'"),
        ("--opt-level 7", "OptLevel must be 0, 1, 2 or 3, got 7"),
        ("--opt-level", "OptLevel must be 0, 1, 2 or 3, got ''"),
        ("--gpu-arch sm_1", "GPUArch must be one of "),
        ("--ptxas-options fast", "PtxasOptions takes text such as '-dlcm=cg', got 'fast'"),
        ("--ptxas-options '-v -o here'", "PtxasOptions: '-o' is set by the compiler and cannot be given"),
        ("--ptxas-options=-O1", "PtxasOptions: '-O1' is set by the compiler and cannot be given"),
    ],
)
def test_invalid_arguments_are_rejected(text: str, said: str) -> None:
    with pytest.raises(cute.CompileError) as error:
        cute.compile(run, X, options=text)
    assert error.value.code == "F103" and error.value.message.startswith(said)


def test_decorators_reject_invalid_options() -> None:
    with pytest.raises(cute.CompileError, match="F103: options: unknown option '--fast'"):
        cute.jit(options="--fast")(run.function)
    with pytest.raises(cute.CompileError, match="F103: inline=False is not supported"):
        cute.jit(inline=False)(run.function)
    assert cute.jit(inline=True)(run.function).name == "run"


NVDISASM = """#!/bin/sh
[ "$1" = -c ] && [ "$(head -c 4 "$2" | tail -c 3)" = ELF ] || exit 3
echo "code of $(wc -c < "$2") bytes"
"""


def test_machine_code_as_text(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    k = cute.compile(run, X)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "path", [p for p in sys.path if not os.path.exists(f"{p}/nvidia/cu13/bin/nvdisasm")])
    with pytest.raises(LaunchError, match=r"^run: no nvdisasm found: pip install nvidia-cuda-nvdisasm, or put one on"):
        k.sass()
    program = tmp_path / "nvidia" / "cu13" / "bin" / "nvdisasm"
    program.parent.mkdir(parents=True)
    program.write_text(NVDISASM)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])  # `syspath_prepend` would restore the path above.
    assert k.sass() == f"code of {len(k.cubin)} bytes\n"
    program.write_text("#!/bin/sh\necho no such thing >&2\nexit 1\n")
    with pytest.raises(LaunchError, match=r"run: .*/nvdisasm: no such thing$"):
        k.sass()


def test_the_bytes_of_dynamic_shared_memory() -> None:
    @cute.kernel
    def ask(x: cute.Tensor) -> None:
        at = cute.arch.get_dyn_smem(cute.Float32)
        (at + cute.arch.thread_idx()[0]).store(cute.Float32(1.0))
        x[0] = cute.Float32(cute.arch.dynamic_smem_size())

    @cute.jit
    def run_it(x: Any) -> None:
        ask(x).launch(grid=1, block=32, smem=2048)

    x = np.zeros(1, np.float32)
    run_it(x, device="cpu")
    assert x[0] == 2048
    assert "%dynamic_smem_size" in cute.compile(run_it, x).ptx
