"""Exported C compiled with the system compiler and launched: the Hopper GEMM and its fallback, compared with numpy."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from exported_c import tensor
from pipelines_support import FakeArray

from cute_dialect.runtime import driver as cuda

FOLDER = "export"
"""Folder of the kernels; see ``folder``."""


def headers() -> str:
    """Return the folder of cuda.h, from the CUDA toolkit or the Python package that contains ptxas."""
    roots = [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include"]
    nvcc = shutil.which("nvcc")
    roots += [Path(nvcc).resolve().parents[1] / "include"] if nvcc else []
    found = [r for r in roots if (r / "cuda.h").exists()]
    if found:
        return str(found[0])
    import exported_c

    return str(exported_c.headers())


@pytest.fixture(scope="module")
def library(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if shutil.which("cc") is None:
        pytest.skip("NOT RUN: there is no C compiler here")
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"libcuda\.so\.1 .*=> (\S+)", listed)
    made = tmp_path_factory.mktemp("c") / "gemm.so"
    flags = ["-std=c11", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", f"-I{headers()}"]
    command = ["cc", *flags, str(folder / "gemm.c"), "-o", str(made), found[1] if found else "-lcuda", "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(made))


def test_c_multiplies(library: ctypes.CDLL) -> None:
    """The exported GEMM is exact on rows that TMA accepts and rows that need the fallback, and reports wrong shapes."""
    gpu = cuda.driver()
    gpu.enter(0)
    module = ctypes.c_void_p()
    library.gemm_error.restype = ctypes.c_char_p
    assert library.gemm_load(ctypes.byref(module)) == 0, library.gemm_error()
    rng = np.random.default_rng(0)
    for m, n, k in ((512, 768, 320), (264, 136, 72), (77, 93, 33), (1, 8, 8)):
        a, b = (rng.integers(-3, 4, (rows, k)).astype(np.float16) for rows in (m, n))
        c = np.full((m, n), np.nan, np.float16)
        memory = [gpu.allocate(x.nbytes) for x in (a, b, c)]
        for pointer, x in zip(memory, (a, b, c)):
            gpu.to_device(pointer, x.ctypes.data, x.nbytes)
        given = [tensor(FakeArray(x.shape, (x.shape[1], 1), "<f2", p)) for p, x in zip(memory, (a, b, c))]
        assert library.gemm_launch(module, *given, ctypes.c_void_p(0)) == 0, library.gemm_error()
        gpu.to_host(c.ctypes.data, memory[2], c.nbytes)
        assert np.array_equal(c, (a.astype(np.float64) @ b.astype(np.float64).T).astype(np.float16)), (m, n, k)
        wrong = [given[0], given[1], tensor(FakeArray((m + 1, n), (n, 1), "<f2", memory[2]))]
        assert library.gemm_launch(module, *wrong, ctypes.c_void_p(0)) == 1
        assert library.gemm_error() == b"host function @launch: A and C must have the same M"
        for pointer in memory:
            gpu.free(pointer)
    assert library.gemm_unload(module) == 0
